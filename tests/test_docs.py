"""The generated pages are what they are generated from."""

import copy
import importlib.util
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
