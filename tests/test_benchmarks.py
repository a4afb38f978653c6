"""The benchmarks run, and the page about them says what was measured."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
SUBJECTS = ("append", "size", "growth", "grep", "verify", "imports", "startup", "door")


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that renders, with the benchmarks' folder on the path for as long as the test runs."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("render")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_benchmark_runs_and_prints_a_table(subject: str) -> None:
    """A benchmark that broke with the interface it measures would be noticed by nobody until figures are wanted."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(BENCHMARKS / f"{subject}.py"), "--tiny"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert re.search(r"^\| --- \|", done.stdout, re.MULTILINE)
    assert re.search(r"\d cores, .* of memory", done.stdout)


def test_every_benchmark_is_on_the_page(modules: ModuleType) -> None:
    """A benchmark without a place on the page would be run and never told of."""
    assert set(SUBJECTS) == set(modules.SUBJECTS)


def test_the_page_is_what_the_kept_results_render_to(modules: ModuleType) -> None:
    """Nothing on the page is typed by hand, so no figure there can differ from what was measured."""
    assert modules.PAGE.read_text(encoding="utf-8") == modules.page()


def test_every_target_missed_says_what_it_would_take(modules: ModuleType) -> None:
    """A miss without a reason is a broken promise; the design asks for what each would take."""
    for target in modules.targets.TARGETS:
        found = modules.kept().get(target.benchmark)
        if found and target.read(found["result"]).met is False:
            assert len(target.needs) > 40, target.what


def test_a_conversation_is_the_same_on_every_run_and_repeats_no_line(modules: ModuleType) -> None:
    """Contestants make their records themselves: they must be the same. Text of one repeated line would flatter an index."""
    conversation = importlib.import_module("conversation")
    said = [conversation.session(index).message for index in range(300)]
    lines = [
        line
        for message in said
        for part in message["parts"]
        for line in str(part.get("content") or part.get("response") or "").split("\n")
        if len(line) > 40
    ]

    assert said == [conversation.session(index).message for index in range(300)]
    assert len(set(lines)) > 0.99 * len(lines)
    assert any(not line.isascii() for line in lines)
    for index in range(40):
        assert len(conversation.compact([conversation.plain(index, 1000).message])) == 1000


def test_the_growth_exponent_of_a_power_law_is_its_power(modules: ModuleType) -> None:
    """Every claim of growth rests on this one function."""
    measuring = importlib.import_module("measuring")
    sizes = [10, 100, 1000]

    assert measuring.growth_exponent(sizes, [7.0, 7.0, 7.0]) == pytest.approx(0)
    assert measuring.growth_exponent(sizes, [3.0 * size for size in sizes]) == pytest.approx(1)
    assert measuring.growth_exponent(sizes, [size**2 / 5 for size in sizes]) == pytest.approx(2)
