"""What verify asks of the search index: does it still hold what was written, and, on request, is that what the text says.

The exact check builds the index once more, in a temporary file, and has FTS5 merge each of the two into one segment: indexes of the
same text are then the same pages, byte for byte, whatever pieces they were built in.
"""

from __future__ import annotations

import contextlib
import tempfile
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import apsw

from exarch_sql.connection import optional_schema
from exarch_sql.errors import ExarchError
from exarch_sql.search import build, index, pages
from exarch_sql.search.pages import Damaged

if TYPE_CHECKING:
    from collections.abc import Iterator

SHADOWS = {"search_data": "id, block", "search_idx": "segid, term, pgno", "search_config": "k, v"}
PAGES_SQL = (
    f"SELECT id & {(1 << pages.SEGMENT_SHIFT) - 1}, block FROM search_data WHERE id > {pages.STRUCTURE} ORDER BY id"
)
TERMS_SQL = "SELECT term, doc FROM terms ORDER BY term"


def faults(db: apsw.Connection, *, exactly: bool = False) -> Iterator[str]:
    """What is wrong with the index behind an open snapshot; nothing where there is none.

    Every page is compared with the sum it had when it was written. ``exactly`` compares what the pages say with the text: it takes
    about as long as building the index, and as much room in the folder for temporary files.
    """
    try:
        noted = _noted(db)
        if noted is None:
            return
        sound = True
        with index.reading():
            for fault in pages.faults(db, noted):
                sound = False
                yield fault
        if exactly and sound:
            yield from _differences(db, noted.seq)
    except Damaged as damage:
        yield str(damage)


def _noted(db: apsw.Connection) -> pages.Progress | None:
    return pages.progress(db) if index.opened(db) is not None else None


def _differences(db: apsw.Connection, upto: int) -> Iterator[str]:
    """How the index differs from one built of the same records now."""
    with tempfile.TemporaryDirectory(prefix="exarch-sql-") as folder, contextlib.ExitStack() as stack:
        with _scratch(f"{folder}/was") as copy:
            _copy(db, copy)
        was, now = (stack.enter_context(_scratch(f"{folder}/{name}")) for name in ("was", "now"))
        try:
            reached, more = 0, True
            while more:
                with now:
                    reached, more = build.fill(db, now, reached, upto)
        except ExarchError as error:
            yield f"its text could not be read again: {error}"
            return
        try:
            for made in (was, now):
                _merge(made, upto)
            if all(a == b for a, b in zip_longest(was.execute(PAGES_SQL), now.execute(PAGES_SQL))):
                return
            yield f"it does not say what the text says: {_first_term(was, now)}"
        except apsw.Error as error:
            yield f"FTS5 cannot read it: {error}"


@contextlib.contextmanager
def _scratch(path: str) -> Iterator[apsw.Connection]:
    """An index in a file of its own, empty when it is new."""
    made = apsw.Connection(path)
    try:
        made.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        if not index.is_there(made):
            made.execute(next(sql for _, name, sql in optional_schema() if name == "search"))
            build.configure(made)
            made.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(search, row)")
        yield made
    finally:
        made.close()


def _copy(db: apsw.Connection, copy: apsw.Connection) -> None:
    """FTS5's own tables, row by row."""
    with copy:
        for table, columns in SHADOWS.items():
            marks = ", ".join("?" * len(columns.split(", ")))
            copy.execute(f"DELETE FROM {table}")
            copy.executemany(
                f"INSERT INTO {table} ({columns}) VALUES ({marks})", db.execute(f"SELECT {columns} FROM {table}")
            )


def _merge(made: apsw.Connection, upto: int) -> None:
    """One segment out of all, and of one more record: FTS5 leaves a single segment as it is."""
    with made:
        made.execute(build.ADD_SQL, (upto + 1, "merge"))
        made.execute(build.FLUSH_SQL)
        made.execute("INSERT INTO search (search) VALUES ('optimize')")


def _first_term(was: apsw.Connection, now: apsw.Connection) -> str:
    """The first trigram that is in another number of records."""
    pairs: Any = zip_longest(was.execute(TERMS_SQL), now.execute(TERMS_SQL), fillvalue=(None, 0))
    for (got, got_count), (want, want_count) in pairs:
        if (got, got_count) != (want, want_count):
            return f"it has {got!r} in {got_count} records where the text has {want!r} in {want_count}"
    return "a trigram is in other records than the text has it in"
