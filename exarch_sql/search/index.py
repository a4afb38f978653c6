"""The trigram index as a search reads it: which records up to some seq may hold a match, or why it cannot say.

Everything here reads one snapshot together with the records. What is wrong with an index is ``Damaged``, and a search then does
without it; see docs/search.md for what is noticed when.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import apsw

from exarch_sql.connection import optional_schema
from exarch_sql.patterns import And, Or, Query, Trigram
from exarch_sql.search import pages
from exarch_sql.search.pages import Damaged, Progress
from exarch_sql.search.rarity import Rarity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from exarch_sql.search.stretches import Body

# The tables it consists of, FTS5's own among them: FTS5 asked without its ways would fail the end of the snapshot as well.
NAMES = (*(name for _, name, _ in optional_schema()), "search_data", "search_idx", "search_config")
PRESENT_SQL = f"SELECT name FROM sqlite_schema WHERE name IN ({', '.join(map(repr, NAMES))})"
VERSION_SQL = "SELECT v FROM search_config WHERE k = 'version'"
VERSION = (4,)  # of FTS5's format, for a table with the columns and options of part 4 of schema.sql
DIGEST_SQL = "SELECT digest FROM records WHERE seq = ?"
REDACTED_SQL = "SELECT target FROM records WHERE target <= ? AND seq > ? LIMIT 1"
TURNS_SQL = """
SELECT r.seq, r.turn, CAST(r.body AS BLOB)
  FROM search AS s CROSS JOIN records AS r ON r.seq = s.rowid CROSS JOIN ancestry AS a ON a.log = :log AND a.ancestor = r.log
 WHERE s.search MATCH :query AND r.seq <= a.upto AND r.turn BETWEEN a.turn_from AND a.turn_to AND r.body IS NOT NULL
 ORDER BY s.rowid"""
NOTES_SQL = """
SELECT d.span_from, d.span_to, d.seq, d.note
  FROM search AS s CROSS JOIN residues AS d ON d.seq = s.rowid CROSS JOIN ancestry AS a ON a.log = :log AND a.ancestor = d.log
 WHERE s.search MATCH :query AND d.seq <= a.upto AND d.note IS NOT NULL
 ORDER BY d.span_from, d.span_to DESC, d.seq DESC"""

Note = tuple[int, int, int, str]  # span_from, span_to, seq, note
_NOT_DAMAGE = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.InterruptError,
    apsw.ConnectionClosedError,
    apsw.FullError,
    apsw.IOError,
    apsw.NoMemError,
)


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Whatever FTS5, or what is left of its tables, answers to a question inside the block, as Damaged."""
    try:
        yield
    except _NOT_DAMAGE:
        raise
    except (apsw.Error, ValueError, TypeError, KeyError) as error:
        raise Damaged(str(error) or type(error).__name__) from error


def is_there(db: apsw.Connection) -> bool:
    """Whether the file has an index, or a part of one."""
    return db.execute(PRESENT_SQL).fetchone() is not None


class Index:
    """The index, so far as it goes: it answers for every record up to ``seq``."""

    def __init__(self, db: apsw.Connection, noted: Progress) -> None:
        self._db = db
        self._noted = noted
        self.seq = noted.seq

    def asked(self, query: Query) -> Answers:
        """What it answers to a query that requires something.

        Raises Damaged when a page that is read for the answer is not what was written.
        """
        with reading():
            narrowed = Rarity(self._db, self.seq).narrowed(query)
            pages.check(self._db, self._noted, trigrams_of(narrowed))
        return Answers(self._db, self.seq, narrowed)


class Answers:
    """The records up to ``seq`` that satisfy a query, and maybe some more: those that need not be left out."""

    def __init__(self, db: apsw.Connection, seq: int, query: Query) -> None:
        self._db = db
        self._query = query.to_fts5()
        self.seq = seq

    def turns(self, log: int) -> Iterator[Body]:
        """The bodies of a log's turn records, in order."""
        return self._rows(TURNS_SQL, log)

    def notes(self, log: int) -> Iterator[Note]:
        """The notes of a log's evictions, in index order."""
        return self._rows(NOTES_SQL, log)

    def _rows(self, sql: str, log: int) -> Iterator[Any]:
        with reading():
            yield from self._db.execute(sql, {"log": log, "query": self._query})


def opened(db: apsw.Connection) -> Index | None:
    """The index of the snapshot behind ``db``; None when there is none. Raises Damaged when it does not answer for the records."""
    with reading():
        there = {name for (name,) in db.execute(PRESENT_SQL)}
        if not there:
            return None
        if missing := [name for name in NAMES if name not in there]:
            raise Damaged(f"its table {missing[0]} is missing")
        if (version := db.execute(VERSION_SQL).fetchone()) != VERSION:
            raise Damaged(f"FTS5's settings say {version} for its version instead of {VERSION}")
        noted = pages.progress(db)
        row: Any = db.execute(DIGEST_SQL, (noted.head,)).fetchone()
        if row is None or row[0] != noted.digest:
            raise Damaged(f"it was made with another record {noted.head} than the one that is here")
        if redacted := db.execute(REDACTED_SQL, (noted.seq, noted.head)).fetchone():
            raise Damaged(f"record {redacted[0]} was redacted since it was made, by other hands than ours")
        return Index(db, noted)


def trigrams_of(query: Query) -> set[str]:
    """Every trigram a query names."""
    match query:
        case Trigram(text):
            return {text}
        case And(parts) | Or(parts):
            return set[str]().union(*map(trigrams_of, parts))
        case _:
            return set()
