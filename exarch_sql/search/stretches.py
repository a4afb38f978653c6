"""Which records a search of a log covers: stretches of turns along its lineage, in index order.

A log sees of each ancestor a range of turns, up to the fork. Along a lineage turns and records rise together, so what an index
has reached is the beginning of that ground, and what it has not is the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from exarch_sql.connection import one

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import apsw

    from exarch_sql.judge import State

Run = tuple[int, int]  # turn ids, both ends included
Body = tuple[int, int, bytes]  # seq, turn, body

ANCESTRY_SQL = """
SELECT ancestor, turn_from, min(turn_to, :reach), upto FROM ancestry
 WHERE log = :log AND turn_from <= min(turn_to, :reach) ORDER BY turn_from"""
BODIES_SQL = """
SELECT seq, turn, CAST(body AS BLOB) FROM records
 WHERE log = ? AND turn BETWEEN ? AND ? AND seq > ? AND seq <= ? AND body IS NOT NULL ORDER BY turn, seq"""
WEIGHT_SQL = """
SELECT coalesce(sum(weight), 0) FROM records
 WHERE log = ? AND turn BETWEEN ? AND ? AND seq > ? AND seq <= ?"""
LAST_OF_TURN_SQL = """
SELECT turn, max(seq) FROM records
 WHERE log = :log AND turn = (SELECT min(turn) FROM records WHERE log = :log AND turn >= :turn)"""


class Stretch(NamedTuple):
    """Turns of one ancestor, as far as the log sees their records."""

    ancestor: int
    first: int
    last: int
    upto: int


class Stretches:
    """The turns to be searched: all that the log sees but the one being written, or exactly the named ones."""

    def __init__(self, db: apsw.Connection, state: State, turns: Sequence[int] | None) -> None:
        self._db = db
        self.runs = _all_but(state.unclosed, state.reach) if turns is None else _runs_of(turns)
        self._starts = [first for first, _ in self.runs]
        found = db.execute(ANCESTRY_SQL, {"log": state.log, "reach": state.reach})
        self._stretches = list(_crossed([Stretch(*row) for row in found], self.runs))

    def has(self, turn: int) -> bool:
        """Whether the turn is to be searched, given that the log sees it."""
        place = bisect_right(self._starts, turn) - 1
        return place >= 0 and turn <= self.runs[place][1]

    def bodies(self, after: int) -> Iterator[Body]:
        """The bodies of all records past ``after``, in index order; those blanked whole are left out."""
        for stretch in self._past(after):
            yield from self._db.execute(BODIES_SQL, (*stretch[:3], after, stretch.upto))

    def bytes_of(self, after: int, enough: int) -> int:
        """About how many bytes ``bodies`` would read; counting ends at ``enough``."""
        total: int = 0
        for stretch in self._past(after):
            for first in range(stretch.first, stretch.last + 1, 4096):
                last = min(first + 4095, stretch.last)
                total += one(self._db, WEIGHT_SQL, (stretch.ancestor, first, last, after, stretch.upto))[0]
                if total >= enough:
                    return total
        return total

    def _past(self, after: int) -> Iterator[Stretch]:
        """The stretches, without the turns whose records are all within ``after``."""
        for stretch in self._stretches:
            if stretch.upto > after:
                first = self._first_past(stretch, after) if after else stretch.first
                if first <= stretch.last:
                    yield stretch._replace(first=first)

    def _first_past(self, stretch: Stretch, after: int) -> int:
        """The first turn of a stretch with a record past ``after``, by halving: records rise with the turns."""
        low, high = stretch.first, stretch.last + 1
        while low < high:
            middle = (low + high) // 2
            turn, seq = one(self._db, LAST_OF_TURN_SQL, {"log": stretch.ancestor, "turn": middle})
            if turn is None or turn >= high or seq > after:
                high = middle
            else:
                low = turn + 1
        return low


def _all_but(unclosed: int | None, reach: int) -> list[Run]:
    """Every turn up to the reach; the one being written may have withdrawn ones after it."""
    runs = [(1, reach)] if unclosed is None else [(1, unclosed - 1), (unclosed + 1, reach)]
    return [run for run in runs if run[0] <= run[1]]


def _runs_of(turns: Sequence[int]) -> list[Run]:
    """Sorted turn ids as runs."""
    runs: list[Run] = []
    for turn in turns:
        if runs and turn == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], turn)
        else:
            runs.append((turn, turn))
    return runs


def _crossed(stretches: list[Stretch], runs: list[Run]) -> Iterator[Stretch]:
    """What lies in both; both are in order and disjoint."""
    places = iter(stretches)
    stretch = next(places, None)
    for first, last in runs:
        while stretch and stretch.last < first:
            stretch = next(places, None)
        while stretch and stretch.first <= last:
            yield stretch._replace(first=max(first, stretch.first), last=min(last, stretch.last))
            if stretch.last > last:
                break
            stretch = next(places, None)
