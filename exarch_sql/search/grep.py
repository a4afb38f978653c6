"""One search of a log: candidates from the index as far as it goes, a scan of the rest, hits in index order, the count of all.

A search reads in batches of about a megabyte and forgets each before the next, so memory is flat whatever the log's length.
"""

from __future__ import annotations

import heapq
import warnings
from functools import cached_property
from typing import TYPE_CHECKING

from exarch_sql.answers import Found
from exarch_sql.errors import Unfinished
from exarch_sql.patterns import Nothing, compile_pattern
from exarch_sql.search import build, index
from exarch_sql.search.budget import Budget, Spent
from exarch_sql.search.pages import Damaged
from exarch_sql.search.sieve import sieve
from exarch_sql.search.stretches import Stretches
from exarch_sql.search.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import apsw

    from exarch_sql.judge import State
    from exarch_sql.patterns import Query
    from exarch_sql.search.index import Answers, Note
    from exarch_sql.search.sieve import Sieve
    from exarch_sql.search.stretches import Body, Run
    from exarch_sql.store import Store

SECONDS = 30.0
BATCH_BYTES = 1 << 20
BATCH_RECORDS = 4096
SMALL_BYTES = 2 << 20  # are scanned before the grammar of patterns, which both filters need, is even loaded
TICK_ROWS = 256
_SHOWN = 60  # characters of a pattern quoted in a refusal

NOTES_SQL = """
SELECT d.span_from, d.span_to, d.seq, d.note
  FROM ancestry AS a JOIN residues AS d ON d.log = a.ancestor AND d.seq <= a.upto
 WHERE a.log = :log AND d.seq > :after AND d.note IS NOT NULL
 ORDER BY d.span_from, d.span_to DESC, d.seq DESC"""


class SearchWarning(UserWarning):
    """A search answered rightly, but more slowly than it should have: its index was damaged."""


def warn(text: str) -> None:
    """Tell of a damaged index where the caller gave no other way."""
    warnings.warn(text, SearchWarning, stacklevel=2)


class Search:
    """One pattern to be searched for, once: ``prepare`` before a snapshot is taken, ``run`` in it, ``mend`` after it."""

    def __init__(self, store: Store, pattern: str, seconds: float, tell: Callable[[str], None] | None) -> None:
        self._store = store
        self._budget = Budget(seconds)
        self._pattern = compile_pattern(pattern)
        self._tell = tell or warn
        self._tally: Tally | None = None
        self._damaged = False

    def prepare(self) -> None:
        """Let the index catch up, if that pays."""
        behind = build.behind(self._store)
        if behind and self._query.to_fts5() is not None:
            build.catch_up(self._store, behind, self._budget.left() / 2, self._tell)

    def run(self, db: apsw.Connection, state: State, turns: list[int] | None) -> Found:
        """The hits in the snapshot behind ``db``. Raises Refused when the time is up: an answer is complete or none."""
        stretches = Stretches(db, state, turns)
        try:
            if stretches.bytes_of(0, SMALL_BYTES) < SMALL_BYTES:
                return self._found(db, state.log, stretches, None, notes=turns is None)
            return self._filtered(db, state.log, stretches, notes=turns is None)
        except Spent:
            raise self._stopped(stretches.runs, notes=turns is None) from None

    def mend(self) -> None:
        """Drop an index that was found to be damaged, if that can be done without waiting."""
        if self._damaged:
            build.discard(self._store)

    def _filtered(self, db: apsw.Connection, log: int, stretches: Stretches, *, notes: bool) -> Found:
        """The hits by way of the index, if there is one that can be used."""
        if isinstance(self._query, Nothing):
            return Found((), 0)
        try:
            there = index.opened(db) if self._query.to_fts5() is not None else None
            if there is not None:
                return self._found(db, log, stretches, there.asked(self._query), notes=notes)
        except Damaged as damage:
            self._damaged = True
            self._tell(
                f"the search index is damaged ({damage}), so {self._store.path} was searched without it: the answer is right, "
                "only slower; reindex makes it anew"
            )
        return self._found(db, log, stretches, None, notes=notes)

    def _found(
        self, db: apsw.Connection, log: int, stretches: Stretches, answers: Answers | None, *, notes: bool
    ) -> Found:
        """The hits: candidates of the index as far as it goes, everything past it."""
        after = answers.seq if answers else 0
        self._tally = tally = Tally(db, log, self._pattern, self._budget)
        if notes:
            tally.take_notes(self._notes(db, log, answers))
        if answers:
            candidates = (row for row in answers.turns(log) if stretches.has(row[1]))
            self._take(tally, candidates, sieve(self._pattern.source))
        self._take(tally, stretches.bodies(after), self._sieve(stretches, after))
        return tally.found()

    def _take(self, tally: Tally, rows: Iterable[Body], sifter: Sieve | None) -> None:
        for batch in self._batches(rows):
            tally.take(sifter.sifted(batch) if sifter else batch, at=batch[0][1])

    @cached_property
    def _query(self) -> Query:
        return self._pattern.required()

    def _sieve(self, stretches: Stretches, after: int) -> Sieve | None:
        """The filter for the scan, where there is enough to scan."""
        return sieve(self._pattern.source) if stretches.bytes_of(after, SMALL_BYTES) >= SMALL_BYTES else None

    def _notes(self, db: apsw.Connection, log: int, answers: Answers | None) -> Iterable[Note]:
        """The notes that may match, in index order."""
        if answers is None:
            return db.execute(NOTES_SQL, {"log": log, "after": 0})
        past = db.execute(NOTES_SQL, {"log": log, "after": answers.seq})
        return heapq.merge(answers.notes(log), past, key=lambda note: (note[0], -note[1], -note[2]))

    def _batches(self, rows: Iterable[Body]) -> Iterator[list[Body]]:
        """The rows in batches of about a megabyte."""
        batch: list[Body] = []
        size = 0
        for count, row in enumerate(rows):
            if count % TICK_ROWS == 0:
                self._budget.tick()
            batch.append(row)
            size += len(row[2])
            if size >= BATCH_BYTES or len(batch) >= BATCH_RECORDS:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _stopped(self, runs: list[Run], *, notes: bool) -> Unfinished:
        """The refusal of a search that took too long: where it stopped, and the narrower ones that do it in parts."""
        source = self._pattern.source
        shown = repr(source if len(source) <= _SHOWN else source[:_SHOWN] + "...")
        took = f"the search for {shown} took more than {self._budget.seconds:g} s"
        common = "search for a text that the lines have in common"
        if self._tally is None or self._tally.at is None:
            where = "stopped before its first turn:"
            return Unfinished(f"{took} and {where} allow more seconds, or {common}", f"{where} {common}")
        at = self._tally.at
        before = [(first, min(last, at - 1)) for first, last in runs if first < at]
        past = [(max(first, at), last) for first, last in runs if last >= at]
        parts = [_range(*run) for run in (*before[:2], *past[:2])]
        cut = " and so on" if len(before) > 2 or len(past) > 2 else ""
        without = ", which leaves the notes out" if notes else ""
        where = (
            f"stopped in turn {at}, with {self._tally.total} hits by then: an answer is complete or none. Search in parts, "
            f"{' then '.join(parts)}{cut}{without}; or"
        )
        return Unfinished(f"{took} and {where} allow more seconds, or {common}", f"{where} {common}")


def _range(first: int, last: int) -> str:
    """A run of turns as the door takes it."""
    return f"turns: !{{range {first} {last + 1}}}"
