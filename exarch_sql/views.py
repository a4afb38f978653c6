"""What the views ought to answer, recomputed by definition, for ``verify`` to compare.

Locations come from the holder's definition, not from stamps: sweep the items of a log in index order, and the innermost residue
still open is the holder. Goes turn by turn, and holds one log's context and the residues that lie open.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from exarch_sql.connection import one
from exarch_sql.messages import dumps

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

    from exarch_sql.fold import Fold, FoldedLog

Item = tuple[Any, ...]  # span_from, span_to, role, kind, label, bytes, seq

TURNS_SQL = """
SELECT r.turn, r.origin, r.label, r.weight, r.seq, r.kind
  FROM records AS r WHERE r.log = ? AND r.turn BETWEEN ? AND ? AND r.seq <= ? ORDER BY r.turn, r.seq"""
RESIDUES_SQL = """
SELECT d.span_from, d.span_to, 'user', 'residue', coalesce(d.note, ''), d.weight, d.seq
  FROM ancestry AS a JOIN residues AS d ON d.log = a.ancestor AND d.seq <= a.upto
 WHERE a.log = ? ORDER BY d.span_from, d.span_to DESC, d.seq DESC"""
RESIDUE_SQL = (
    "SELECT span_from, span_to, 'user', 'residue', coalesce(note, ''), weight, seq FROM residues WHERE seq = ?"
)
ITEM_COLUMNS = "span_from, span_to, role, kind, label, bytes, seq"
INDEX_ORDER = "ORDER BY span_from, span_to DESC, seq DESC"


def faults(db: apsw.Connection, fold: Fold) -> Iterator[tuple[str, str, str]]:
    """Every row of `state`, `frontier`, `frontier_at` (at the tip), `items` and `turns` that differs: (view, where, what).

    A fork's `items` are compared from its own turns on: those it inherited were compared where they were recorded, and what the
    fork did to them is in fold rows. So many forks of a long log cost their own turns, not the log's. The other views are
    projections of records and are held by their text.
    """
    (tip,) = one(db, "SELECT max(seq) FROM records")
    for log in fold.logs.values():
        where = f"of log {log.number}"
        yield from _differences("state", where, _state(db, log), [_stands(log)])
        items = list(_resident(db, log))
        frontier = db.execute(f"SELECT {ITEM_COLUMNS} FROM frontier WHERE log = ? ORDER BY span_from", (log.number,))
        yield from _differences("frontier", where, frontier, items)
        frontier = db.execute(
            f"SELECT {ITEM_COLUMNS} FROM frontier_at WHERE log = ? AND at = ? ORDER BY span_from", (log.number, tip)
        )
        yield from _differences("frontier_at", where, frontier, items)
        found = db.execute(
            f"SELECT {ITEM_COLUMNS}, location, under_from, under_to FROM items WHERE log = ? AND span_from > ? {INDEX_ORDER}",
            (log.number, log.base),
        )
        yield from _differences("items", where, found, _located(db, log, log.base + 1))
        own = db.execute(
            "SELECT turn, turn, role, origin, label, bytes, opened FROM turns WHERE log = ? ORDER BY turn",
            (log.number,),
        )
        yield from _differences("turns", where, own, _turns(db, log, log.base + 1))


def _differences(view: str, where: str, got: Any, want: Any) -> Iterator[tuple[str, str, str]]:
    """The rows that differ, as said of a view; stops after ten, for one slip shifts all that follow."""
    count = 0
    for answer, implied in zip_longest(got, want):
        if answer != implied:
            yield view, where, f"answers {answer}, the records imply {implied}"
            count += 1
            if count == 10:
                return


def _state(db: apsw.Connection, log: FoldedLog) -> Any:
    return db.execute("SELECT reach, newest, state, owed FROM state WHERE log = ?", (log.number,))


def _stands(log: FoldedLog) -> Item:
    return log.reach, log.newest, log.state, dumps(log.owed) if log.owed else None


def _turns(db: apsw.Connection, log: FoldedLog, first: int, last: int | None = None) -> Iterator[Item]:
    """The turns a log sees from one id to another (by default to its reach), in id order, as items."""
    last = log.reach if last is None else last
    for ancestor, upto, low, high in sorted(log.sees, key=lambda seen: seen[2]):
        turn: list[Any] | None = None
        rows = db.execute(TURNS_SQL, (ancestor, max(low, first), min(high, last), upto))
        for id_, origin, label, weight, seq, kind in rows:
            if kind in ("prompt", "assistant"):
                if turn:
                    yield tuple(turn)
                role = "user" if kind == "prompt" else "assistant"
                turn = [id_, id_, role, origin if ancestor == log.number else "inherited", label, weight, seq]
            elif turn:
                turn[5] = (turn[5] or 0) + (weight or 0)
        if turn:
            yield tuple(turn)


def _resident(db: apsw.Connection, log: FoldedLog) -> Iterator[Item]:
    """The items of a log's context, in id order: what stands, and the turns of the gaps between."""
    after = 0
    for ground in log.grounds:
        yield from _turns(db, log, after + 1, ground.from_ - 1)
        if ground.residue is not None:
            yield from db.execute(RESIDUE_SQL, (ground.residue,))
        after = ground.to
    yield from _turns(db, log, after + 1, log.reach)


def _located(db: apsw.Connection, log: FoldedLog, first: int) -> Iterator[Item]:
    """Every item from a turn on that a log saw, in index order, with its location by the definition of a holder (L7)."""
    open_: list[tuple[int, int]] = []  # residues around the current item, innermost last
    residues: Iterator[Any] = db.execute(RESIDUES_SQL, (log.number,))
    for item in _merged(_turns(db, log, first), residues):
        from_, to = item[0], item[1]
        while open_ and open_[-1][1] < from_:
            open_.pop()
        if from_ < first:
            pass
        elif log.withdrawn(from_):
            yield (*item, "withdrawn", None, None)
        elif open_:
            yield (*item, "under", *open_[-1])
        else:
            yield (*item, "resident", None, None)
        if item[3] == "residue":
            open_.append((from_, to))


def _merged(turns: Iterator[Item], residues: Iterator[Item]) -> Iterator[Item]:
    """Turns and residues in index order: a residue comes before the turn it starts at."""
    residue = next(residues, None)
    for turn in turns:
        while residue and residue[0] <= turn[0]:
            yield residue
            residue = next(residues, None)
        yield turn
    if residue:
        yield residue
        yield from residues
