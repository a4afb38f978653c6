"""Which few of the trigrams that a query names are worth asking the index for.

What a text must contain is said by many trigrams, and the rarest of them leaves out most records by itself. Every further one is a
list that has to be checked and walked in each segment, so the rarest are asked for first, and only as many as still leave something
out. A part that is left out makes the query wider, never wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exarch_sql.patterns import And, Or, Query, Trigram
from exarch_sql.patterns.query import all_of, any_of

if TYPE_CHECKING:
    import apsw

FEW = 64  # records are read in the time that one more list takes
PROBE_SQL = f"SELECT rowid FROM search WHERE search MATCH ? LIMIT {FEW}"


class Rarity:
    """Estimates, for an index of so many records, from the beginning of a trigram's list: how soon it comes to ``FEW`` records.

    The pages that are read for it are not compared with their sums: nothing but speed depends on it.
    """

    def __init__(self, db: apsw.Connection, records: int) -> None:
        self._db, self._records = db, records
        self._known: dict[str, float] = {}

    def narrowed(self, query: Query) -> Query:
        """The query without the parts that would hardly leave out another record."""
        match query:
            case And(parts):
                kept: list[Query] = []
                expected: float = self._records
                for part in sorted(parts, key=self._share):
                    kept.append(self.narrowed(part))
                    expected *= self._share(part)
                    if expected <= FEW:
                        break
                return all_of(kept)
            case Or(parts):
                return any_of(map(self.narrowed, parts))
            case _:
                return query

    def _share(self, query: Query) -> float:
        """About which share of the records satisfies a query, of several parts that all must hold the rarest's."""
        match query:
            case Trigram(text):
                if text not in self._known:
                    self._known[text] = self._probed(query)
                return self._known[text]
            case And(parts):
                return min(map(self._share, parts))
            case Or(parts):
                return min(1.0, sum(map(self._share, parts)))
            case _:
                return 1.0

    def _probed(self, trigram: Trigram) -> float:
        rows: Any = self._db.execute(PROBE_SQL, (trigram.to_fts5(),)).fetchall()
        among: int = self._records if len(rows) < FEW else rows[-1][0]
        return len(rows) / max(among, 1)
