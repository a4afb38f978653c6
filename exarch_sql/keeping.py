"""Copies: a backup of a live archive, and the extract of one log's lineage, each one self-contained, verified file.

A copy is made beside its final name and linked into place whole, so that a name either holds a lawful file or nothing.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from exarch_sql import redaction, search
from exarch_sql.connection import CHECKPOINT_SQL, check_vacant, open_file, remove, sync_folder, translated
from exarch_sql.errors import BadFile, Refused
from exarch_sql.store import Store
from exarch_sql.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from exarch_sql.answers import Report

STRANGERS_SQL = """
SELECT r.seq FROM records AS r
 WHERE r.kind NOT IN ('opened', 'redacted') AND r.body IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM ancestry AS a WHERE a.log = ? AND a.ancestor = r.log AND r.seq <= a.upto)
 ORDER BY r.seq"""


def backup(db: apsw.Connection, path: str) -> Report:
    """Copy the file behind ``db``, as it is now, to ``path``, where nothing may be. Raises Refused, or BadFile when unlawful."""
    return _copied(db, path, lambda _: None)


def extract(db: apsw.Connection, log: int, path: str) -> Report:
    """Copy what one log sees, its ancestors as far as it sees them included.

    The records of other logs stay as hashes: their bodies are redacted in the copy, so the chain, and every head kept before, still
    proves the rest.
    """

    def narrow(copy: apsw.Connection) -> None:
        store = Store(copy, path, readonly=False)
        with store.writing():
            strangers: list[Any] = copy.execute(STRANGERS_SQL, (log,)).fetchall()
            for (seq,) in strangers:
                redaction.redact(store, copy, seq, None, f"not part of the lineage of log {log}")
        redaction.scrub(copy)

    return _copied(db, path, narrow)


def copy_as_it_is(db: apsw.Connection, path: str) -> None:
    """Copy the pages behind ``db`` to ``path``, where nothing may be, and judge nothing: of a file in an older format."""
    with _arriving(path) as temporary:
        _pages(db, temporary)


def _copied(db: apsw.Connection, path: str, change: Callable[[apsw.Connection], None]) -> Report:
    """The copy, changed, verified, synced and named."""
    if db.in_transaction:
        raise Refused("a copy is taken of what is committed: leave the batch first, then copy")
    with _arriving(path) as temporary:
        _pages(db, temporary)
        copy = open_file(temporary, readonly=False, durability="full", timeout=5.0)
        try:
            change(copy)
            with Store(copy, path, readonly=False).writing():
                search.drop_if_damaged(copy)  # it is derived: damage to it is no reason to have no copy
            report = verify(copy)
            copy.execute(CHECKPOINT_SQL)
        finally:
            copy.close()
        if not report.ok:
            raise BadFile(f"the copy is not lawful, so it was not kept: {report.first}; verify the original")
    return report


@contextlib.contextmanager
def _arriving(path: str) -> Iterator[str]:
    """Where to write a file that is to be at ``path``: it gets that name when the block ends, synced, whole or not at all.

    Raises Refused where something is there already, BadFile where nothing can be.
    """
    if os.path.lexists(path):
        raise Refused(f"{path} is already there: a copy never overwrites; choose another name or remove it first")
    check_vacant(path)
    folder = Path(path).absolute().parent
    temporary = str(folder / f".{Path(path).name}.{uuid.uuid4().hex}")
    try:
        with translated(temporary):
            yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError as error:
            raise Refused(f"{path} came to be while it was being written: it was left as it is") from error
        try:
            sync_folder(folder)
        except OSError:
            os.unlink(path)  # its name might not last
            raise
    except OSError as error:
        raise BadFile(f"{path} cannot be written: {error.strerror}") from error
    finally:
        remove(temporary)


def _pages(db: apsw.Connection, path: str) -> None:
    """Copy page by page, from one snapshot, into a new file of mode 0600."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    target = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        # without a snapshot held, each append of another connection would start the copy again
        db.execute("BEGIN; SELECT 1 FROM lineage")
        with target.backup("main", db, "main") as copying:
            while not copying.done:
                copying.step(1000)
    finally:
        target.close()
        if db.in_transaction:
            db.execute("COMMIT")
