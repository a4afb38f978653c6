"""Migrate: bring a file of an older format up to this version's, in one transaction, with a copy of it kept first.

Never done unasked: a file is evidence, and whoever keeps it decides. What the formats of the past were, and the steps between
them, are files of ``formats/``. The records endure; whatever follows from them (indexes, fold, triggers, views, search index) is
dropped, made anew from ``schema.sql`` and derived again, so that a migrated file has the very schema of a fresh one.
"""

from __future__ import annotations

import contextlib
import random
import time
from typing import TYPE_CHECKING

import apsw

from exarch_sql import connection, keeping, rebuild, resources, search
from exarch_sql.answers import Migrated
from exarch_sql.connection import CHECKPOINT_SQL, expected_schema, format_of, open_file, optional_schema, schema_of
from exarch_sql.errors import BadFile, Busy, ExarchError
from exarch_sql.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDURING = ("lineage", "records", "blobs")  # tables of part 1; what else a format has follows from them


def migrate(path: str, copy: str | None, timeout: float) -> Migrated:
    """Migrate the file at ``path``; its copy goes to ``copy``, or beside it. See `Archive.migrate`."""
    db = _alone(path, timeout)
    with connection.translated(path), contextlib.closing(db):
        was, now = format_of(db), connection.FORMAT
        if was == now:
            return Migrated(path, was, now, None)
        copy = copy or f"{path}.format-{was}"
        keeping.copy_as_it_is(db, copy)
        db.execute("BEGIN IMMEDIATE")
        with _all_or_nothing(db, path, f"{path} is as it was, in format {was}, and so is its copy {copy}"):
            _bring(db, was, now)
        db.execute("COMMIT")
        db.execute(CHECKPOINT_SQL)
        return Migrated(path, was, now, copy)


def _alone(path: str, timeout: float) -> apsw.Connection:
    """The file, open in no other connection, where it is of an older format. Raises Busy past ``timeout`` seconds.

    Asked for anew each time: while SQLite waits to have a file alone it keeps its share in it, so two would wait for each other.
    """
    end = time.monotonic() + timeout
    while True:
        try:
            return open_file(path, readonly=False, durability="full", timeout=0, migrating=True)
        except Busy as error:
            if time.monotonic() > end:
                raise Busy(
                    f"{path} is open in another connection, and a migration needs it alone: nothing was done; close it there, "
                    "and try again"
                ) from error
        time.sleep(random.uniform(0.005, 0.05))  # noqa: S311 (so that two do not meet again)


@contextlib.contextmanager
def _all_or_nothing(db: apsw.Connection, path: str, state: str) -> Iterator[None]:
    """Take the transaction back when the block fails, and say in what ``state`` that leaves things."""
    try:
        yield
    except BaseException as error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        if not isinstance(error, apsw.Error | ExarchError):
            raise
        ours = connection.translation(error, path) if isinstance(error, apsw.Error) else error
        kind = type(ours) if ours else BadFile
        raise kind(f"{path} was not migrated: {ours or error}; {state}") from error


def _bring(db: apsw.Connection, was: int, now: int) -> None:
    """Do the steps, derive the rest, and judge all of it, inside the transaction. Raises BadFile where it is not lawful."""
    _drop_derived(db, was)
    for number in range(was, now):
        db.execute(resources.text(f"exarch_sql/formats/{number}-to-{number + 1}.sql"))
    _derive(db)
    db.execute(f"PRAGMA user_version = {now}")
    report = verify(db)
    if not report.ok:
        raise BadFile(f"it would not be lawful afterwards, by {sum(report.counts.values())} faults: {report.first}")


def _drop_derived(db: apsw.Connection, format_: int) -> None:
    """Drop every object of a format but the tables that endure. What is not of the format, others' plain tables, stays."""
    search.drop(db)
    known = {*expected_schema(format_), *optional_schema(format_)}
    for kind in ("trigger", "view", "index", "table"):
        for name in [name for of, name, sql in schema_of(db) & known if of == kind and name not in ENDURING]:
            db.execute(f"DROP {kind} {name}")


def _derive(db: apsw.Connection) -> None:
    """Make what ``schema.sql`` has and the file lacks, and replay the edits before the guards on the fold stand."""
    there = {(kind, name) for kind, name, _ in schema_of(db)}
    lacking = [row for row in expected_schema() if row[:2] not in there]
    guards = [sql for kind, _, sql in lacking if kind == "trigger" and rebuild.guards_fold(sql)]
    for _, _, sql in lacking:
        if sql not in guards:
            db.execute(sql)
    db.execute(rebuild.REPLAY_SQL)
    for sql in guards:
        db.execute(sql)
