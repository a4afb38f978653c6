"""The generated pages are what they are generated from, and the tests that pages name are there."""

import ast
import copy
import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

import exarch_sql
from exarch_sql.cli import app

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS = Path(__file__).parents[1] / "docs"
_spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
assert _spec is not None
assert _spec.loader is not None
generate = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(generate)


@pytest.mark.parametrize("name", sorted(generate.PAGES))
def test_a_generated_page_is_up_to_date(name: str) -> None:
    """``make docs`` writes it anew."""
    page: Callable[[], str] = generate.PAGES[name]

    assert page() == (DOCS / name).read_text(encoding="utf-8")


def test_a_command_s_help_is_the_same_without_its_group() -> None:
    """Past fault: click keeps the first help option asked for, and the shell asks without the group, which gave it ``-h``."""
    pages = []
    for group in (None, click.Context(app, **app.context_settings)):
        command = copy.copy(app.get_command(click.Context(app), "logs"))
        assert command is not None
        command._help_option = None
        with command.make_context("logs", [], parent=group, resilient_parsing=True) as context:
            pages.append([parameter.opts for parameter in command.get_params(context)])

    assert pages[0] == pages[1]
    assert ["-h", "--help"] in pages[0]


def test_every_public_name_has_its_place_in_the_python_page() -> None:
    """What can be imported is documented, and nothing else is."""
    documented = {name for names in generate.PUBLIC.values() for name in names}

    assert documented == set(exarch_sql.__all__)


def test_the_schema_page_says_what_every_column_is() -> None:
    """No table, view or column without a sentence."""
    rows = [line for line in generate.schema_page().splitlines() if line.startswith("| `")]

    assert len(rows) > 150
    assert not [row for row in rows if row.endswith("|  |")]


# --- promises and their attacks -----------------------------------------------------------------------------------------------

PROMISING = ("guarantees.md", "durability.md", "replication.md", "file-format.md", "search.md", "schema.md", "door.md")
ATTACK = re.compile(r"`(?:tests/)?(test_\w+\.py)(?:::(\w+))?`")


def defined_in(path: Path) -> set[str]:
    """The tests that a file defines, without running it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defined = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name for node in defined if node.name.startswith("test_")}


def promises(page: str) -> list[str]:
    """What a page promises: the rows of its table of laws, and the bullets of its sections."""
    found = re.findall(r"^\| L\d+ .*$|^- .*(?:\n  .*)*", page, flags=re.MULTILINE)
    return list(found)


@pytest.mark.parametrize("page", PROMISING)
def test_every_test_that_a_page_names_is_there(page: str) -> None:
    """A promise whose attack was renamed or dropped is a promise without one."""
    named = ATTACK.findall((DOCS / page).read_text(encoding="utf-8"))
    here = Path(__file__).parent

    missing = [(file, name) for file, name in named if not (here / file).is_file()]
    assert missing == []
    assert [(file, name) for file, name in named if name and name not in defined_in(here / file)] == []
    assert all(defined_in(here / file) for file, _ in named)
    assert named or page not in PROMISING[:3]


def test_no_promise_is_without_an_attack() -> None:
    """Every law and every promise of docs/guarantees.md names a test; what is not promised names one where it can be shown."""
    page, excused = (DOCS / "guarantees.md").read_text(encoding="utf-8").split("## What is not promised")

    assert len(promises(page)) == 14 + 5 + 4 + 4
    assert [promise for promise in promises(page) if not ATTACK.search(promise)] == []
    unshown = [promise for promise in promises(excused) if not ATTACK.search(promise)]
    assert [promise.split("**")[1] for promise in unshown] == ["Hidden content.", "Network file systems."]
