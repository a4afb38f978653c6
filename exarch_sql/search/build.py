"""Building the trigram index: in bulk, in transactions of its own, never while something is appended.

Each transaction adds the next records in order, has FTS5 write them as one segment, sums its pages and notes the progress, all or
nothing: killed at any point, the index is what it was or a step further. FTS5 merges segments by itself, 32 at a time.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from exarch_sql.connection import one, optional_schema
from exarch_sql.errors import BadFile, Busy, ExarchError, Refused
from exarch_sql.patterns import indexable
from exarch_sql.search import index, pages
from exarch_sql.search.pages import Damaged
from exarch_sql.search.texts import indexed_text

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from exarch_sql.store import Store

ENOUGH_BYTES = 4 << 20  # of records: fewer are scanned in the time that it takes to think about it
SCAN_BYTES_S = 200e6  # a scan's speed, as reckoned when deciding how long to build
LAZY_SECONDS = (0.1, 1.0)  # a search builds for as long as a scan would take, within these
LAZY_STEP_SECONDS = 0.3  # of building in one transaction of a search: others wait for it
STEP_BYTES = 32 << 20  # of text in one transaction

SETTINGS = {
    "automerge": 0,  # merging a little with each write would rewrite pages that were summed
    "crisismerge": 32,  # segments of one size there may be; then they become one
    "hashsize": 1 << 30,  # bytes FTS5 gathers before it writes by itself: more than a transaction has
}
SET_SQL = "INSERT INTO search (search, rank) VALUES (?, ?)"
FLUSH_SQL = "INSERT INTO search (search) VALUES ('flush')"
ADD_SQL = "INSERT INTO search (rowid, text) VALUES (?, ?)"
NEXT_SQL = """
SELECT seq, note, CASE WHEN turn IS NOT NULL THEN CAST(body AS BLOB) END FROM records NOT INDEXED
 WHERE seq > :after AND seq <= :upto ORDER BY seq"""
ALL = (1 << 63) - 1
HEAD_SQL = "SELECT max(seq) FROM records"
# Of FTS5's own tables something is left only where the table `search` itself was gone.
DROP_SQL = """
DROP TABLE IF EXISTS search; DROP TABLE IF EXISTS search_pages; DROP TABLE IF EXISTS search_progress;
DROP TABLE IF EXISTS search_data; DROP TABLE IF EXISTS search_idx; DROP TABLE IF EXISTS search_config"""
MEND_SQL = """
CREATE TABLE IF NOT EXISTS search_data (id INTEGER PRIMARY KEY, block BLOB);
CREATE TABLE IF NOT EXISTS search_idx (segid, term, pgno, PRIMARY KEY (segid, term)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS search_config (k PRIMARY KEY, v) WITHOUT ROWID;
DELETE FROM search_config;
INSERT INTO search_config (k, v) VALUES ('version', 4);"""


class Indexed(msgspec.Struct, frozen=True):
    """What building did: the seq the index has reached, the records added, whether it was begun anew, and why."""

    seq: int
    records: int
    anew: bool
    why: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """``{"seq", "records", "anew", "why"}``; ``why`` is null unless an index that was there could not be used."""
        return msgspec.structs.asdict(self)


def reindex(store: Store, progress: Callable[[int, int], None] | None = None) -> Indexed:
    """Bring the index up to the newest record, as many transactions as it takes; one that is not sound is made anew.

    ``progress`` is called with the records indexed and the records there are. Raises Busy when another connection writes for
    longer than the store waits; what was built until then stays.
    """
    with store.held() as db:
        if db.in_transaction:
            raise Refused("the index is built in transactions of its own: leave the batch first, then reindex")
    with store.reading() as db:
        there = index.is_there(db)
    why: str | None = None if there else ""
    try:
        return _built(store, progress, why)
    except Damaged as damage:
        why = str(damage)
    _discard(store)
    try:
        return _built(store, progress, why)
    except Damaged as damage:
        raise BadFile(
            f"{store.path}: the search index, begun anew, came out damaged ({damage}): run verify"
        ) from damage


def _built(store: Store, progress: Callable[[int, int], None] | None, why: str | None) -> Indexed:
    """Build to the end. ``why`` it is begun anew: None when it is not, empty when there was none. Raises Damaged."""
    first = reached = -1
    more = True
    while more:
        with store.writing() as db:
            if first < 0 and (fault := _fault(db)):
                raise Damaged(fault)
            before = _prepared(db)
            reached, more = _extended(db, before, None)
            (head,) = one(db, HEAD_SQL)
        first = before if first < 0 else first
        if progress:
            progress(reached, head)
    return Indexed(reached, reached - first, anew=why is not None, why=why or None)


def behind(store: Store) -> float:
    """About how many bytes of records the index has yet to reach; 0 when that is not worth building, or cannot be built."""
    if store.readonly:
        return 0
    with store.held() as db:
        if db.in_transaction:
            return 0
        size = sum(os.path.getsize(name) for name in (store.path, store.path + "-wal") if os.path.exists(name))
        if size < ENOUGH_BYTES:
            return 0
        (head,) = one(db, HEAD_SQL)
        try:
            found = index.opened(db)
        except Damaged:
            found = None
        left = float(size) * (head - (found.seq if found else 0)) / head  # the file's bytes, shared out by records
        return left if left >= ENOUGH_BYTES else 0


def catch_up(store: Store, left: float, seconds: float, tell: Callable[[str], None]) -> None:
    """Let the index come nearer to the newest record, for ``seconds`` at most and without waiting for other writers.

    ``left`` is what `behind` answered. A search builds for as long as scanning that would take, so that at worst it takes twice
    the time it would without, and soon far less. ``tell`` is told of what was in the way.
    """
    low, high = LAZY_SECONDS
    end = time.monotonic() + min(seconds, max(low, min(high, left / SCAN_BYTES_S)))
    with store.held() as db, _without_waiting(db):
        try:
            while _lazy_step(store, end, tell) and time.monotonic() < end:
                pass
        except Busy:
            return
        except ExarchError as error:
            tell(f"the search index could not be brought up to date: {error}")


def drop(db: apsw.Connection) -> None:
    """Take the index out of the file, in whatever state it is, inside an open write transaction."""
    if not index.is_there(db):
        return
    try:
        db.execute(DROP_SQL)
    except apsw.Error:
        # FTS5 drops its tables only when it finds them in order: give it empty ones
        defensive = db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1)
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        try:
            db.execute(MEND_SQL)
            db.execute(DROP_SQL)
        finally:
            db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, defensive)


def drop_if_damaged(db: apsw.Connection) -> None:
    """Take out an index that verify would find fault with, inside an open write transaction."""
    if _fault(db):
        drop(db)


def discard(store: Store) -> None:
    """Take out an index that a search found to be damaged, if the file can be written here and now; searches make it anew."""
    with store.held() as db:
        if not store.readonly and not db.in_transaction:
            with contextlib.suppress(ExarchError), _without_waiting(db):
                _discard(store)


# -- steps ---------------------------------------------------------------------------------------------------------------------


def _discard(store: Store) -> None:
    with store.writing() as db:
        drop(db)


def _fault(db: apsw.Connection) -> str | None:
    """What is wrong with the index in some page; None when it is sound, or not there at all.

    Nothing may be dropped while an exception from a query is handled, for that keeps the query open.
    """
    try:
        if index.opened(db) is not None:
            with index.reading():
                return next(pages.faults(db, pages.progress(db)), None)
    except Damaged as damage:
        return str(damage)
    return None


def _lazy_step(store: Store, end: float, tell: Callable[[str], None]) -> bool:
    """One transaction of building; whether there is more to do."""
    try:
        with store.writing() as db:
            index.opened(db)
            until = min(end, time.monotonic() + LAZY_STEP_SECONDS)
            return _extended(db, _prepared(db), until)[1]
    except Damaged as damage:
        why = str(damage)
    _discard(store)
    tell(f"the search index was damaged ({why}), so it was dropped; searches make it anew as they go")
    return True


def _prepared(db: apsw.Connection) -> int:
    """Make the tables where there are none; the seq that is reached."""
    if not index.is_there(db):
        for _, _, sql in optional_schema():
            db.execute(sql)
        configure(db)
        pages.seal(db, 0, looked=True)
    return pages.progress(db).seq


def configure(db: apsw.Connection) -> None:
    """Tell FTS5 how to keep a new index; it keeps these settings in the file."""
    for name, value in SETTINGS.items():
        db.execute(SET_SQL, (name, value))


def _texts(db: apsw.Connection, after: int, upto: int) -> Generator[tuple[int, str | None], None, None]:
    """What the index is built from, record by record: (seq, the text or None)."""
    rows: Any = db.execute(NEXT_SQL, {"after": after, "upto": upto})
    for seq, note, body in rows:
        yield seq, indexable(indexed_text(seq, body, note)) if note is not None or body is not None else None


def _extended(db: apsw.Connection, after: int, until: float | None) -> tuple[int, bool]:
    """Add the records past ``after``, up to the size or time of a step; the seq reached, and whether there are more.

    Raises Damaged when FTS5 finds its tables broken, or would merge pages that are not what was written.
    """
    with index.reading():
        due = pages.merge_is_due(db, SETTINGS["crisismerge"])
        if due and (fault := _fault(db)):
            raise Damaged(fault)
        reached, more = fill(db, db, after, ALL, until)
        if reached > after:
            pages.seal(db, reached, looked=due)
    return reached, more


def fill(
    db: apsw.Connection, made: apsw.Connection, after: int, upto: int, until: float | None = None
) -> tuple[int, bool]:
    """Add records of ``db`` to the index in ``made``, as one segment: the last one's seq, and whether there are more."""
    reached, size, more = after, 0, False
    with contextlib.closing(_texts(db, after, upto)) as rows:
        for seq, text in rows:
            if reached > after and (size >= STEP_BYTES or (until is not None and time.monotonic() > until)):
                more = True
                break
            if text is not None:
                size += len(text)
                made.execute(ADD_SQL, (seq, text))
            reached = seq
    if reached > after:
        made.execute(FLUSH_SQL)
    return reached, more


@contextlib.contextmanager
def _without_waiting(db: apsw.Connection) -> Iterator[None]:
    """The connection with no patience for other writers."""
    (timeout,) = one(db, "PRAGMA busy_timeout")
    db.set_busy_timeout(0)
    try:
        yield
    finally:
        db.set_busy_timeout(timeout)
