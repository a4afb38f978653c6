"""Questions in SQL: one of your own, or a shipped audit."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import click

from exarch_sql import query
from exarch_sql.cli.base import TEXT, archive_argument, command, opened, output_options
from exarch_sql.cli.printing import Column, Output, Table, talk, write_line

if TYPE_CHECKING:
    from exarch_sql.audits import Audit

AUDIT_SECONDS = 60.0
AUDIT_ROWS = 100_000


@command(
    "sql",
    "exarch-sql sql agent.exarch 'SELECT role, count(*) FROM turns GROUP BY role'",
    "exarch-sql sql agent.exarch 'SELECT seq, digest FROM records' --rows 3 --nl",
    "echo 'SELECT * FROM evictions' | exarch-sql sql agent.exarch - --json",
)
@archive_argument
@click.argument("statement", metavar="QUERY", type=TEXT)
@click.option("--rows", type=click.IntRange(1, 1_000_000), default=query.ROWS, show_default=True, help="Rows at most.")
@click.option(
    "--seconds", type=click.FloatRange(0.001, 3600), default=query.SECONDS, show_default=True, help="Time at most."
)
@output_options
def sql(archive: str, statement: str, rows: int, seconds: float, out: Output) -> None:
    """Run one reading SQL statement on the file's tables and views; - reads it from stdin.

    Blobs come out in hexadecimal. What would write, open another file or run on is refused.
    """
    text = sys.stdin.read() if statement == "-" else statement
    _bound_memory()
    found = query.query(archive, text, rows=rows, seconds=seconds)
    _show(found, out)
    if found.truncated:
        talk(f"the first {len(found.rows)} rows; there are more: --rows allows more, WHERE and LIMIT ask for fewer")


@command(
    "audit",
    "exarch-sql audit agent.exarch",
    "exarch-sql audit agent.exarch biggest",
    "exarch-sql audit agent.exarch tools --nl",
    "exarch-sql audit agent.exarch all --json",
)
@archive_argument
@click.argument("name", type=TEXT, required=False)
@output_options
def audit(archive: str, name: str | None, out: Output) -> None:
    """Run a shipped audit; without a NAME list them, with `all` run them all."""
    from exarch_sql import audits  # noqa: PLC0415

    if name is None:
        with opened(archive):
            listed = audits.audits()
        out.listing(listed, listed, lambda: _list_of(listed))
        return
    _bound_memory()
    if name != "all":
        one = audits.audit(name)
        _show(_asked(archive, one), out, one)
    elif out.form == "eyes":
        for one in audits.audits():
            found = _asked(archive, one)
            write_line(f"== {one.name} ==")
            _show(found, out, one)
            write_line("")
    else:
        answers = [
            {"name": one.name, "question": one.question, "rows": _objects(_asked(archive, one))}
            for one in audits.audits()
        ]
        out.listing(answers, answers, lambda: Table((), ()))


def _asked(archive: str, one: Audit) -> query.Result:
    found = query.query(archive, one.sql, rows=AUDIT_ROWS, seconds=AUDIT_SECONDS)
    if found.truncated:
        talk(
            f"{one.name}: the first {len(found.rows)} rows; `exarch-sql sql` runs its statement with limits of your own"
        )
    return found


def _show(found: query.Result, out: Output, of: Audit | None = None) -> None:
    """Print an answer; of an audit, eyes are told first what was asked and how to read it."""
    if of and out.form == "eyes":
        talk(f"{of.question} {of.reading}")
    documents = [] if out.form == "eyes" else _objects(found)
    out.listing(documents, documents, lambda: _table(found))


def _list_of(listed: tuple[Audit, ...]) -> Table:
    return Table((Column("audit"), Column("question")), [(one.name, one.question) for one in listed])


def _bound_memory() -> None:
    """Hold SQLite in this process to what a query may take: the command is alone in it."""
    import apsw  # noqa: PLC0415

    apsw.hard_heap_limit(query.MEMORY_BYTES)


def _table(found: query.Result) -> Table:
    numbers = [
        bool(found.rows) and all(isinstance(row[place], (int, float, type(None))) for row in found.rows)
        for place in range(len(found.columns))
    ]
    return Table([Column(name[:60], number) for name, number in zip(found.columns, numbers, strict=True)], found.rows)


def _objects(found: query.Result) -> list[dict[str, Any]]:
    """Rows as objects. A column's name is made its own by a number; infinities, which JSON has not, are text."""
    names: list[str] = []
    for name in found.columns:
        unique, count = name, 2
        while unique in names:
            unique, count = f"{name}_{count}", count + 1
        names.append(unique)
    return [dict(zip(names, map(_finite, row), strict=True)) for row in found.rows]


def _finite(cell: object) -> object:
    return str(cell) if isinstance(cell, float) and not math.isfinite(cell) else cell
