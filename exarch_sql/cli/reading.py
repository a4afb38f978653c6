"""The projections: what a log's context and transcript show. They open the archive for reading and change nothing."""

from __future__ import annotations

import click

from exarch_sql.cli import tables
from exarch_sql.cli.base import (
    TEXT,
    TURNS,
    archive_argument,
    at_option,
    command,
    log_option,
    opened,
    opened_log,
    output_options,
    turn_ids,
)
from exarch_sql.cli.printing import Output, talk

FORMATS = ("otel", "anthropic", "openai-chat", "openai-responses")


@command("logs", "exarch-sql logs agent.exarch", "exarch-sql logs agent.exarch --nl")
@archive_argument
@output_options
def logs(archive: str, out: Output) -> None:
    """List the logs: the trunk, its forks, and where each stands."""
    with opened(archive) as file:
        found = file.logs()
    out.listing(found, found, lambda: tables.of_logs(found))


@command("survey", "exarch-sql survey agent.exarch", "exarch-sql survey agent.exarch --at 12 --json")
@archive_argument
@log_option
@at_option
@output_options
def survey(archive: str, log_name: str, at: int | None, out: Output) -> None:
    """Show the context: each item that is resident, and what all of them weigh."""
    with opened_log(archive, log_name) as log:
        found = log.survey(at=at)
    out.listing(found, found.rows, lambda: tables.of_survey(found))


@command("index", "exarch-sql index agent.exarch", "exarch-sql index agent.exarch --nl")
@archive_argument
@log_option
@at_option
@output_options
def index(archive: str, log_name: str, at: int | None, out: Output) -> None:
    """List the transcript: every item ever recorded, and where it is now."""
    with opened_log(archive, log_name) as log:
        found = log.index(at=at)
    out.listing(found, found, lambda: tables.of_rows(found))


@command("under", "exarch-sql under agent.exarch 2 3", "exarch-sql under agent.exarch 2 3 --json")
@archive_argument
@click.argument("from_", metavar="FROM", type=int)
@click.argument("to", type=int)
@log_option
@at_option
@output_options
def under(archive: str, from_: int, to: int, log_name: str, at: int | None, out: Output) -> None:
    """List what departed under the residue at exactly this span."""
    with opened_log(archive, log_name) as log:
        found = log.under(from_, to, at=at)
    out.listing(found, found, lambda: tables.of_rows(found))


@command("read", "exarch-sql read agent.exarch 2", "exarch-sql read agent.exarch 1-3 5 --json")
@archive_argument
@click.argument("turns", metavar="TURN...", type=TURNS, nargs=-1, required=True)
@log_option
@output_options
def read(archive: str, turns: tuple[list[tuple[int, int]], ...], log_name: str, out: Output) -> None:
    """Print turns whole, wherever they are. TURN is an id, or a run such as 41-60."""
    with opened_log(archive, log_name) as log:
        found = log.read(turn_ids([run for runs in turns for run in runs], log.reach))
    out.prose(found, found, lambda: tables.told(found))


@command("grep", "exarch-sql grep agent.exarch 'FAILED|error'", "exarch-sql grep agent.exarch parser --turns 1-3 --nl")
@archive_argument
@click.argument("pattern", type=TEXT)
@click.option("--turns", metavar="TURNS", type=TURNS, help="Only these, such as 41-60 or 3,7-9.")
@click.option(
    "--seconds", metavar="S", type=float, default=30.0, show_default=True, help="Refused when it takes longer."
)
@log_option
@output_options
def grep(
    archive: str, pattern: str, turns: list[tuple[int, int]] | None, seconds: float, log_name: str, out: Output
) -> None:
    """Search every line ever recorded, and the notes, by an RE2 regular expression."""
    with opened_log(archive, log_name) as log:
        named = None if turns is None else turn_ids(turns, log.reach)
        found = log.grep(pattern, named, seconds=seconds, tell=talk)
    out.listing(found, found.hits, lambda: tables.of_hits(found))
    if found.total > len(found.hits):
        talk(f"the {len(found.hits)} oldest of {tables.grouped(found.total)} hits: --turns narrows the search")


@command(
    "render",
    "exarch-sql render agent.exarch",
    "exarch-sql render agent.exarch --format anthropic",
    "exarch-sql render agent.exarch --at 12 --nl",
)
@archive_argument
@click.option("--format", "format_", type=click.Choice(FORMATS), help="JSON that this API takes as it is.")
@log_option
@at_option
@output_options
def render(archive: str, format_: str | None, log_name: str, at: int | None, out: Output) -> None:
    """Print the messages that the context is, for eyes, or as JSON with --format, --json or --nl."""
    with opened_log(archive, log_name) as log:
        found = log.render(format_ or "otel", at=at)  # type: ignore[arg-type]
    if format_ and out.form == "eyes":
        out = Output("json")
    out.prose(found, found, lambda: tables.spoken(found))
