"""The edits: what leaves a context, and where another begins. Each prints the survey after acting."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from exarch_sql.cli import tables
from exarch_sql.cli.base import TEXT, archive_argument, command, log_option, opened_log, output_options
from exarch_sql.cli.printing import Output, talk

if TYPE_CHECKING:
    from collections.abc import Callable

    from exarch_sql import Log, Survey


def _acted(archive: str, log_name: str, out: Output, act: Callable[[Log], Survey]) -> None:
    """Edit a log, say what it did to the context's size, and print the survey."""
    with opened_log(archive, log_name, write=True) as log:
        before = log.survey().total_bytes
        after = act(log)
    talk(f"{log.name}: {tables.grouped(before)} bytes before, {tables.grouped(after.total_bytes)} now")
    out.listing(after, after.rows, lambda: tables.of_survey(after))


@command("evict", "exarch-sql evict agent.exarch 2 3 --note 'the parser was fine'")
@archive_argument
@click.argument("from_", metavar="FROM", type=int)
@click.argument("to", type=int)
@click.option(
    "--note", type=TEXT, required=True, help="What to remember of it: one line, 240 bytes at most; - reads stdin."
)
@log_option
@output_options
def evict(archive: str, from_: int, to: int, note: str, log_name: str, out: Output) -> None:
    """Let turns FROM to TO, both included, leave the context under a note."""
    said = sys.stdin.readline().removesuffix("\n") if note == "-" else note
    _acted(archive, log_name, out, lambda log: log.evict(from_, to, said))


@command("force", "exarch-sql force agent.exarch", "exarch-sql force agent.exarch --keep 300")
@archive_argument
@click.option("--keep", metavar="BYTES", type=click.IntRange(min=0), help="What to keep.  [default: half of it]")
@log_option
@output_options
def force(archive: str, keep: int | None, log_name: str, out: Output) -> None:
    """Evict the oldest turns without a note, as a harness does under pressure."""
    _acted(archive, log_name, out, lambda log: log.force(keep))


@command("rewind", "exarch-sql rewind agent.exarch 5")
@archive_argument
@click.argument("anchor", type=int)
@log_option
@output_options
def rewind(archive: str, anchor: int, log_name: str, out: Output) -> None:
    """Withdraw everything from turn ANCHOR on, for good; it stays readable."""
    _acted(archive, log_name, out, lambda log: log.rewind(anchor))


@command("clear", "exarch-sql clear agent.exarch")
@archive_argument
@log_option
@output_options
def clear(archive: str, log_name: str, out: Output) -> None:
    """Withdraw the whole context, for good; it stays readable."""
    _acted(archive, log_name, out, lambda log: log.clear())


@command("fork", "exarch-sql fork agent.exarch scout", "exarch-sql fork agent.exarch scout --log trunk --json")
@archive_argument
@click.argument("name", type=TEXT)
@log_option
@output_options
def fork(archive: str, name: str, log_name: str, out: Output) -> None:
    """Begin a log NAME that sees all that --log has recorded so far, and nothing after."""
    with opened_log(archive, log_name, write=True) as log:
        child = log.fork(name)
        survey, reach = child.survey(), child.reach
    talk(f"{child.name} is log {child.number}, forked from {log.name} at turn {reach}")
    out.listing(survey, survey.rows, lambda: tables.of_survey(survey))
