"""What a prompt can offer of an archive: its logs, and the ids in reach with their labels, at a cost that no archive raises.

Each question is one read-only query with a limit on rows and on time; one that would take longer offers nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

from exarch_sql import query
from exarch_sql.errors import ExarchError

if TYPE_CHECKING:
    from exarch_sql.shell.view import LogView

Sort = Literal[
    "context", "residues", "turns"
]  # items of the context; residues standing or lying; turns, wherever they are
Offer = tuple[str, str]  # what to write, and what it is

OFFERS = 50
SECONDS = 0.3

# {end} is the end of an item that was asked for: span_from or span_to
_CONTEXT_SQL = """
SELECT {end}, label FROM frontier WHERE log = :log AND {end} BETWEEN :low AND :high ORDER BY {end} LIMIT :rows"""
_RESIDUES_SQL = """
SELECT d.{end}, d.note
  FROM ancestry AS a JOIN residues AS d ON d.log = a.ancestor AND d.seq <= min(a.upto, coalesce(:at, a.upto))
 WHERE a.log = :log AND d.{end} BETWEEN :low AND :high ORDER BY d.{end}, d.seq DESC LIMIT :rows"""
_TURNS_SQL = """
SELECT r.turn, r.label
  FROM ancestry AS a
  JOIN records AS r ON r.log = a.ancestor AND r.turn BETWEEN max(a.turn_from, :low) AND min(a.turn_to, :high)
   AND r.seq <= min(a.upto, coalesce(:at, a.upto)) AND r.kind IN ('prompt', 'assistant')
 WHERE a.log = :log ORDER BY r.turn LIMIT :rows"""
_LOGS_SQL = "SELECT name, CASE WHEN parent IS NULL THEN '' ELSE 'a fork' END FROM logs ORDER BY log LIMIT :rows"
_SORTS: dict[Sort, str] = {"context": _CONTEXT_SQL, "residues": _RESIDUES_SQL, "turns": _TURNS_SQL}


class Catalogue(Protocol):
    """Where completions come from."""

    def names(self) -> list[str]:
        """The names bound so far."""

    def logs(self) -> list[Offer]:
        """The logs of the archive."""

    def ids(self, sort: Sort, end: Literal["from", "to"], digits: str) -> list[Offer]:
        """Ids that begin with ``digits``, with their labels; of an item, its first or its last turn."""


class ArchiveCatalogue:
    """The logs and ids of an archive, as a view shows it."""

    def __init__(self, view: LogView) -> None:
        self._view = view

    def logs(self) -> list[Offer]:
        """The first logs, in the order of opening."""
        return [(str(name), str(about)) for name, about in self._rows(_LOGS_SQL, {})]

    def ids(self, sort: Sort, end: Literal["from", "to"], digits: str) -> list[Offer]:
        """The lowest ids of a sort that begin with ``digits``."""
        found: dict[str, str] = {}
        try:
            reach = self._view.reach
        except ExarchError:
            return []
        sql = _SORTS[sort].format(end=f"span_{end}")
        known = {"log": self._view.number, "at": self._view.at}
        for low, high in _ranges(digits, reach):
            bounds = {**known, "low": low, "high": high}
            for turn, label in self._rows(sql, bounds, OFFERS - len(found)):
                found.setdefault(str(turn), str(label or ""))
            if len(found) >= OFFERS:
                break
        return list(found.items())

    def _rows(self, sql: str, bounds: dict[str, Any], rows: int = OFFERS) -> tuple[tuple[query.Cell, ...], ...]:
        try:
            return query.query(self._view.path, sql, params={**bounds, "rows": rows}, seconds=SECONDS).rows
        except ExarchError:  # busy, gone, or too large to look through in the time: nothing to offer
            return ()


def _ranges(digits: str, reach: int) -> list[tuple[int, int]]:
    """The runs of ids up to ``reach`` whose decimals begin with ``digits``, lowest first."""
    if not digits:
        return [(1, reach)]
    first, ranges, size = int(digits), [], 1
    while first and first * size <= reach:
        ranges.append((first * size, min(reach, (first + 1) * size - 1)))
        size *= 10
    return ranges
