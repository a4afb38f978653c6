"""Real sessions nobody here wrote: counts as their README states, growth, and contexts every provider takes.

The corpus lies beside the checkout; without it these tests are skipped.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from test_import_archive import records, without_spans

from exarch_sql import Archive, Refused
from exarch_sql.importers import Imported, detect, import_file

if TYPE_CHECKING:
    from collections.abc import Iterator

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
CLAUDE = CORPUS / "claude-code"
FILES = sorted(CLAUDE.glob("*.jsonl"))


pytestmark = pytest.mark.skipif(not FILES, reason="the corpus of real sessions is not here")
each_file = pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """An empty archive, verified after the test."""
    with Archive.open(tmp_path / "a.exarch", durability="normal") as made:
        yield made
        report = made.verify()
        assert report.ok, report.first


def stated() -> dict[str, dict[str, int]]:
    """The counts of the corpus README, by file: ``{"growing-1": {"replies": 8, "calls": 7, "prompts": 2}, ...}``."""
    found: dict[str, dict[str, int]] = {}
    for line in (CORPUS / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 4 or not cells[1].startswith("claude-code/"):
            continue
        name, *others = re.sub(r"^claude-code/", "", cells[1]).split(", ")
        names = [name, *(re.sub(r"-\d+$", "", name) + other for other in others)]
        for count, what in re.findall(r"([\d/]+) (replies|calls|prompts)", cells[2]):
            for name, number in zip(names, count.split("/"), strict=True):
                found.setdefault(name, {})[what] = int(number)
        if synthetic := re.search(r"\((\d+) synthetic\)", cells[2]):
            found[names[0]]["synthetic"] = int(synthetic[1])
    return found


def test_the_readme_states_counts() -> None:
    """The next test would pass on nothing."""
    assert len(stated()) == 7
    assert stated()["growing-2"] == {"replies": 13, "calls": 11, "prompts": 3}


@each_file
def test_counts_are_those_of_the_readme(archive: Archive, path: Path) -> None:
    """Replies there include synthetic ones, which no model gave and which are no turns here."""
    report = import_file(archive, path)
    counts = stated().get(path.stem, {})
    if counts:
        assert report.replies == counts["replies"] - counts.get("synthetic", 0)
        assert (report.calls, report.prompts) == (counts["calls"], counts["prompts"])
    assert report.results == report.calls
    assert report.usage == report.replies
    assert (report.absent, report.refused, report.conflicts, report.damaged) == (0, 0, 0, 0)
    kinds = [kind for kind, *_ in records(archive.trunk)]
    assert kinds.count("assistant") == report.replies
    assert kinds.count("prompt") == report.prompts + report.others


@each_file
def test_twice_adds_nothing(archive: Archive, path: Path) -> None:
    """Every key is found again."""
    import_file(archive, path)
    head = archive.head()
    assert import_file(archive, path).new_records == 0
    assert archive.head() == head


def test_growing_in_turn_equals_the_last_alone(archive: Archive, tmp_path: Path) -> None:
    """Same records in the same order: kinds, turns, keys, bodies."""
    for number in (1, 2, 3):
        import_file(archive, CLAUDE / f"growing-{number}.jsonl")
    with Archive.open(tmp_path / "alone.exarch", durability="normal") as alone:
        import_file(alone, CLAUDE / "growing-3.jsonl")
        assert records(archive.trunk) == records(alone.trunk)


@each_file
def test_any_cut_then_the_whole_renders_as_the_whole(path: Path, tmp_path: Path) -> None:
    """Real files cut at ten places, in the middle of lines and of responses."""
    data = path.read_bytes()
    with Archive.open(tmp_path / "whole.exarch", durability="normal") as whole:
        import_file(whole, path)
        shown = said(whole)
    grown = tmp_path / "grown.jsonl"
    with Archive.open(tmp_path / "grown.exarch", durability="normal") as archive:
        for tenth in range(1, 11):
            grown.write_bytes(data[: len(data) * tenth // 10])
            report: Imported = import_file(archive, grown)
            assert report.refused == 0
        assert said(archive) == shown
        assert archive.verify().ok


def said(archive: Archive) -> list[str]:
    """The context; residues without their ids, which depend on what was withdrawn."""
    return [without_spans(message) for message in archive.trunk.render()]


def test_the_sessions_share_one_archive(archive: Archive) -> None:
    """Each in a log of its own, the three snapshots in one."""
    reports = [import_file(archive, path) for path in FILES]
    assert len(archive.logs()) == len(FILES) - 2
    assert len({report.log for report in reports}) == len(FILES) - 2


@each_file
def test_contexts_are_lawful_for_every_provider(archive: Archive, path: Path) -> None:
    """Pairs whole and in order, nothing empty."""
    import_file(archive, path)
    log = archive.trunk
    check_anthropic(log.render("anthropic"))
    check_chat(log.render("openai-chat"))
    check_responses(log.render("openai-responses"))


def check_anthropic(messages: list[dict[str, Any]]) -> None:
    """Every tool_use is answered at the head of the next user message, and by nothing else."""
    waiting: list[str] = []
    for message in messages:
        blocks = message["content"]
        assert blocks
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        assert all(block["text"].strip() for block in blocks if block["type"] == "text")
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert sorted(results) == sorted(waiting)
        assert [block["type"] == "tool_result" for block in blocks] == [True] * len(results) + [False] * (
            len(blocks) - len(results)
        )
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert waiting == []


def check_chat(messages: list[dict[str, Any]]) -> None:
    """After a message with tool_calls come its tool messages, all of them, before anything else."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        assert message.get("content") is not None or message.get("tool_calls")  # chat takes an empty text, but no null
        waiting = {call["id"] for call in message.get("tool_calls", [])}
    assert not waiting


def check_responses(items: list[dict[str, Any]]) -> None:
    """Every output follows its call, once."""
    called: set[str] = set()
    for item in items:
        if item.get("type") == "function_call":
            called.add(item["call_id"])
        elif item.get("type") == "function_call_output":
            called.remove(item["call_id"])
    assert not called


@pytest.mark.parametrize("path", sorted((CORPUS / "codex").glob("*.jsonl")), ids=lambda path: path.stem)
def test_codex_is_known_and_not_yet_taken(archive: Archive, path: Path) -> None:
    """Refused by name, with what is taken."""
    assert detect(path) == "codex"
    with pytest.raises(Refused, match="codex transcript"):
        import_file(archive, path)
