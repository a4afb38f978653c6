"""What leaves the file, and what leaves it in copies: ``redact``, ``backup``, ``extract``, ``migrate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from exarch_sql import Archive
from exarch_sql.cli.base import TEXT, archive_argument, command, log_option, opened, output_options
from exarch_sql.cli.printing import Column, Output, Table, talk
from exarch_sql.redaction import Redacted, Sighting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from exarch_sql import Report


@command(
    "redact",
    "exarch-sql redact agent.exarch --match 'first' --dry-run",
    "exarch-sql redact agent.exarch 4 --reason 'a password'",
)
@archive_argument
@click.argument("seq", type=int, required=False)
@click.option("--part", metavar="N", type=click.IntRange(min=0), help="Only this part of it, from 0 over its messages.")
@click.option("--match", "pattern", metavar="PATTERN", type=TEXT, help="Every part in which this RE2 pattern is found.")
@click.option("--reason", type=TEXT, help="Why; it is recorded, so it must not repeat the secret.")
@click.option("--dry-run", is_flag=True, help="Only list what --match finds, without its text.")
@output_options
def redact(
    archive: str, seq: int | None, part: int | None, pattern: str | None, reason: str | None, dry_run: bool, out: Output
) -> None:
    """Blank record SEQ, or what --match finds, for good: its hash and its place stay, its text leaves every page."""
    if (seq is None) == (pattern is None):
        raise click.UsageError("name a record by its SEQ, or --match a pattern: one of the two")
    if dry_run:
        if pattern is None:
            raise click.UsageError("--dry-run lists what --match finds: name a pattern")
        with opened(archive) as file:
            found = file.sightings(pattern)
        out.listing([place.to_dict() for place in found], found, lambda: _table(Sighting, found))
        return
    if reason is None:
        raise click.UsageError("a redaction is recorded with its --reason: say why, without the secret")
    with opened(archive, write=True) as file:
        done = [file.redact(seq, reason=reason, part=part)] if seq is not None else []
        if pattern is not None:
            done = file.redact_matching(pattern, reason=reason)
    out.listing([one.to_dict() for one in done], done, lambda: _table(Redacted, done))


def _table(kind: type[Sighting | Redacted], rows: Sequence[Sighting | Redacted]) -> Table:
    """Plain facts in the order of their fields."""
    return Table(tuple(map(Column, kind.__struct_fields__)), [tuple(row.to_dict().values()) for row in rows])


@command("backup", "exarch-sql backup agent.exarch copy.exarch")
@archive_argument
@click.argument("path", type=TEXT)
@output_options
def backup(archive: str, path: str, out: Output) -> None:
    """Copy the archive, live or not, into one verified file at PATH, where nothing may be yet."""
    with opened(archive) as file:
        _copied(file.backup(path), path, out)


@command("extract", "exarch-sql extract agent.exarch trunk.exarch --log trunk")
@archive_argument
@click.argument("path", type=TEXT)
@log_option
@output_options
def extract(archive: str, path: str, log_name: str, out: Output) -> None:
    """Copy one log and its ancestors to PATH; what other logs said is redacted there, the chain stays provable."""
    with opened(archive) as file:
        _copied(file.extract(file.log(log_name), path), path, out)


@command(
    "migrate",
    "exarch-sql migrate agent.exarch",
    "exarch-sql migrate agent.exarch --copy before.exarch",
)
@archive_argument
@click.option(
    "--copy", metavar="PATH", type=TEXT, help="Where to keep the file as it was.  [default: ARCHIVE.format-N]"
)
@output_options
def migrate(archive: str, copy: str | None, out: Output) -> None:
    """Bring a file of an older format up to this version's, after a copy of it; where that fails, nothing is changed."""
    done = Archive.migrate(archive, copy=copy)
    if done.copy is None:
        talk(f"{archive} has format {done.to} already, the newest there is: nothing was done")
    if done.copy is not None or out.form != "eyes":
        _facts(done.to_dict(), out)


def _copied(report: Report, path: str, out: Output) -> None:
    """Say what a copy holds."""
    facts = {"path": path, "records": report.records, "logs": report.logs, "redacted": len(report.redacted)}
    _facts(facts, out)


def _facts(facts: dict[str, Any], out: Output) -> None:
    """One document, or a table of one row."""
    out.listing(facts, [facts], lambda: Table(tuple(map(Column, facts)), [tuple(facts.values())]))
