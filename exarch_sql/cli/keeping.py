"""Keeping an archive: is it whole, what proves it, how large is it, is its fold what its records imply."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exarch_sql import Head
from exarch_sql.cli import failures, printing, tables
from exarch_sql.cli.base import archive_argument, command, opened, output_options
from exarch_sql.cli.printing import Column, Output, Table, talk

if TYPE_CHECKING:
    from collections.abc import Callable

    import apsw

    from exarch_sql import Report

HEX = frozenset("0123456789abcdef")


class KeptHead(click.ParamType):  # type: ignore[type-arg]  # generic only in later releases of click
    """A head kept elsewhere: a file that holds one, ``-`` for stdin, or the JSON itself."""

    name = "head"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Head:
        """Read and check a head; fail for anything else, saying what makes one."""
        text = str(value)
        try:
            if text == "-":
                text = sys.stdin.read()
            elif not text.lstrip().startswith("{"):
                text = Path(text).read_text(encoding="utf-8")
            found = json.loads(text)
            lineage, seq, digest = found["lineage"], found["seq"], found["digest"]
        except OSError as error:
            self.fail(f"{text} could not be read: {error.strerror}", param, ctx)
        except (ValueError, KeyError, TypeError, RecursionError):
            self.fail("this is no head: `exarch-sql head ARCHIVE` prints one", param, ctx)
        sound = (
            isinstance(lineage, str) and isinstance(seq, int) and not isinstance(seq, bool) and isinstance(digest, str)
        )
        if not sound or seq < 1 or len(digest) != 64 or not HEX.issuperset(digest):
            self.fail('a head is {"lineage": text, "seq": 1 or more, "digest": 64 hexadecimal digits}', param, ctx)
        return Head(lineage, seq, digest)


@command(
    "verify",
    "exarch-sql verify agent.exarch",
    "exarch-sql verify agent.exarch --against agent.head",
    "exarch-sql head agent.exarch | exarch-sql verify agent.exarch --against - --json",
    "exarch-sql verify agent.exarch --index",
)
@archive_argument
@click.option(
    "--against", metavar="HEAD", type=KeptHead(), help="A head kept elsewhere: its file, - for stdin, or its JSON."
)
@click.option(
    "--index", is_flag=True, help="Compare the search index with the text too, which takes as long as building it."
)
@output_options
@click.pass_context
def verify(ctx: click.Context, archive: str, against: Head | None, index: bool, out: Output) -> None:
    """Judge the whole file from its bytes; exit 3 when there is a fault."""
    with printing.progress("verify", "records") as tick:
        report = _judged(archive, against, tick, index=index)
    if out.form == "eyes" and report.ok:
        for line in _lawful(report, against):
            printing.write_line(line)
    else:
        out.listing(report, report.faults, lambda: tables.of_faults(report))
    if not report.ok:
        counts = ", ".join(f"{count} of kind {kind}" for kind, count in report.counts.items())
        talk(f"{archive} is not lawful: {counts}; the first is {report.first}")
        ctx.exit(failures.UNLAWFUL)


def _judged(path: str, against: Head | None, tick: Callable[[int, int], None] | None, *, index: bool) -> Report:
    """Judge a file that may be anything: its schema is one of the things judged, and nothing in it is trusted before."""
    from exarch_sql import verify as judging  # noqa: PLC0415
    from exarch_sql.connection import close_reader, open_unjudged, translated  # noqa: PLC0415

    db = open_unjudged(path)
    try:
        with translated(path):
            db.execute("BEGIN")
            report = judging.verify(db, against=against, progress=tick and _counted(db, tick), index=index)
            db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    if report.ok:
        close_reader(db)
    else:
        db.close()  # and leave an unlawful file, with all that lies beside it, as it is
    return report


def _counted(db: apsw.Connection, tick: Callable[[int, int], None]) -> Callable[[int], None]:
    """Progress in records, of as many as there are."""
    total: Any = db.execute("SELECT count(*) FROM records").fetchall()[0][0]
    return lambda done: tick(done, total)


def counted(number: int, noun: str) -> str:
    """A number of things, such as "1 log" or "3 logs"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _lawful(report: Report, against: Head | None) -> list[str]:
    lines = [
        f"lawful: {counted(report.records, 'record')}, {counted(report.logs, 'log')} and {counted(report.blobs, 'blob')},"
        " each checked from its bytes"
    ]
    if report.redacted:
        lines.append(f"redacted, by recorded redactions: records {', '.join(map(str, report.redacted))}")
    if against is not None:
        lines.append(f"up to record {against.seq} it is what the kept head says")
    if report.head is not None:
        lines.append(f"head: {printing.json_text(report.head)}")
    return lines


@command("head", "exarch-sql head agent.exarch", "exarch-sql head agent.exarch > agent.head")
@archive_argument
@output_options
def head(archive: str, out: Output) -> None:
    """Print what to keep elsewhere, as JSON: later it proves that nothing was altered or cut off."""
    with opened(archive) as file:
        found = file.head()
    printing.write_line(printing.json_text(found))


@command("stats", "exarch-sql stats agent.exarch", "exarch-sql stats agent.exarch --json")
@archive_argument
@output_options
def stats(archive: str, out: Output) -> None:
    """Count what the file holds, and its bytes."""
    with opened(archive) as file:
        found = file.stats()
    out.listing(found, [found], lambda: tables.of_facts(found))


@command("rebuild", "exarch-sql rebuild agent.exarch")
@archive_argument
@output_options
def rebuild(archive: str, out: Output) -> None:
    """Derive the fold again from the records, and list what came out differently: in a lawful file nothing."""
    with opened(archive, write=True) as file:
        changes = file.rebuild()
    if not changes:
        talk("the fold is what the records imply: not one row changed")
    if changes or out.form != "eyes":
        out.listing(
            {"changes": changes},
            changes,
            lambda: Table((Column("table and what changed"),), [(one,) for one in changes]),
        )


@command("reindex", "exarch-sql reindex agent.exarch")
@archive_argument
@output_options
def reindex(archive: str, out: Output) -> None:
    """Bring the search index up to the newest record, or make it anew where it is damaged. Searches do without it, slower."""
    with opened(archive, write=True) as file, printing.progress("reindex", "records") as tick:
        done = file.reindex(tick)
    if done.why is not None:
        talk(f"the index that was there could not be used ({done.why}), so it was made anew")
    if out.form == "eyes":
        how = "made" if done.anew else "brought up to date"
        printing.write_line(f"{how}: {counted(done.records, 'record')} added, up to record {done.seq}")
    else:
        out.listing(done, [done], lambda: tables.of_facts(done.to_dict()))
