"""The judge's own fold: what a file's records imply, worked out in Python without the triggers' help (L2-L10, L13, L14).

It takes records one at a time, in order, and keeps per log only intervals: the ground on which no turn of the context lies, the
runs withdrawn, the reach. For each record it says which laws the record breaks, and which fold rows ought to be there.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import msgspec

from exarch_sql.errors import Refused
from exarch_sql.residue import check_note

FOREVER = 2**63 - 1
# every fold table and its columns, in the order in which a `Row` gives its values
TABLES: dict[str, tuple[str, ...]] = {
    "logs": ("log", "name", "parent", "opened", "base"),
    "ancestry": ("log", "ancestor", "upto", "turn_from", "turn_to"),
    "residues": ("seq", "log", "span_from", "span_to", "note", "author", "weight"),
    "locations": ("log", "span_from", "residue", "holder"),
    "withdrawals": ("log", "span_from", "span_to", "seq"),
    "standing": ("log", "span_from", "span_to", "residue", "seq"),
}
TURN_KINDS = frozenset({"prompt", "assistant", "tool_results", "steering"})


class Record(msgspec.Struct, frozen=True):
    """A record without its hashes, as the fold takes it in. Fields as in ``schema.sql``."""

    seq: int
    log: int
    kind: str
    turn: int | None
    origin: str | None
    label: str | None
    weight: int | None
    calls: str | None
    span_from: int | None
    span_to: int | None
    note: str | None
    author: str | None
    anchor: int | None
    parent: int | None
    target: int | None
    reach: int | None
    blanked: bool = False


class Ground(msgspec.Struct):
    """A standing span: the residue (its seq) that stands there, or withdrawn ground (None), and the record that laid it."""

    from_: int
    to: int
    residue: int | None
    seq: int


class Row(msgspec.Struct, frozen=True):
    """A fold row that ought to be there: its table, and its values in column order."""

    table: str
    values: tuple[Any, ...]


class FoldedLog:
    """One log as folded so far."""

    def __init__(self, number: int, name: str, parent: FoldedLog | None, opened: int, base: int) -> None:
        self.number, self.name, self.opened, self.base = number, name, opened, base
        self.parent = parent.number if parent else None
        self.reach = base
        self.state = "ready"
        self.owed: list[str] = []
        self.grounds: list[Ground] = []
        self.runs: list[tuple[int, int]] = []  # withdrawn runs it sees: disjoint, in order
        self.sees: list[tuple[int, int, int, int]] = []  # ancestor, upto, first and last turn it owns
        if parent:
            self.sees = [(a, min(upto, opened), lo, min(hi, base)) for a, upto, lo, hi in parent.sees]
            self.grounds = [Ground(g.from_, g.to, g.residue, opened) for g in parent.grounds]
            self.runs = list(parent.runs)
        self.sees.append((number, FOREVER, base + 1, FOREVER))

    def ground(self, turn: int) -> Ground | None:
        """The standing ground that holds a turn, if any."""
        index = bisect_left(self.grounds, turn, key=lambda g: g.to)
        found = self.grounds[index] if index < len(self.grounds) else None
        return found if found and found.from_ <= turn else None

    @property
    def newest(self) -> int:
        """The newest turn that is not withdrawn; 0 for none."""
        last = self.grounds[-1] if self.grounds else None
        return last.from_ - 1 if last and last.residue is None and last.to == self.reach else self.reach

    def items(self, from_: int, to: int) -> list[tuple[int, int]]:
        """The context's items from one turn to another: (first turn, residue seq or 0 for a turn)."""
        found, turn = [], from_
        while turn <= to:
            ground = self.ground(turn)
            if ground is None:
                found.append((turn, 0))
            elif ground.residue is not None:
                found.append((ground.from_, ground.residue))
            turn = ground.to + 1 if ground else turn + 1
        return found

    def cover(self, from_: int, to: int, residue: int | None, seq: int) -> Ground:
        """Lay ground over everything between two turns."""
        laid = Ground(from_, to, residue, seq)
        first = bisect_left(self.grounds, from_, key=lambda g: g.to)
        past = bisect_left(self.grounds, to + 1, key=lambda g: g.from_)
        self.grounds[first:past] = [laid]
        return laid

    def withdraw(self, from_: int, to: int, seq: int) -> list[tuple[int, int]]:
        """Withdraw everything between two turns; the runs that were not withdrawn before."""
        fresh, start = [], from_
        for low, high in [run for run in self.runs if run[0] >= from_ and run[1] <= to] + [(to + 1, to + 1)]:
            if start < low:
                fresh.append((start, low - 1))
            start = high + 1
        self.runs = sorted(self.runs + fresh)
        before = self.ground(from_ - 1)
        self.cover(before.from_ if before and before.residue is None else from_, to, None, seq)
        return fresh

    def withdrawn(self, turn: int) -> bool:
        """Whether a turn was withdrawn in this log's sight."""
        index = bisect_left(self.runs, turn, key=lambda run: run[1])
        return index < len(self.runs) and self.runs[index][0] <= turn


LastRecord = Callable[[FoldedLog, int], tuple[str, str | None]]


class Fold:
    """All logs of a file, folded record by record. ``last`` looks up (kind, calls) of a turn's last record that a log sees."""

    def __init__(self, last: LastRecord) -> None:
        self.logs: dict[int, FoldedLog] = {}
        self._last = last
        self._names: set[str] = set()

    def take(self, record: Record) -> tuple[list[str], list[Row]]:
        """Fold one record: the laws it breaks, each said in a sentence, and the fold rows it ought to have made."""
        if record.kind == "opened":
            return self._open(record)
        log = self.logs.get(record.log)
        if log is None:
            return [f"L13: log {record.log} was never opened"], []
        if record.kind in TURN_KINDS:
            return self._turn(log, record), []
        if record.kind == "evicted":
            return self._evict(log, record)
        if record.kind in ("rewound", "cleared"):
            return self._withdraw(log, record)
        return [], []

    def _open(self, record: Record) -> tuple[list[str], list[Row]]:
        broken = []
        parent = self.logs.get(record.parent) if record.parent is not None else None
        if record.log != len(self.logs) + 1:
            broken.append(f"L13: log {record.log} is opened where {len(self.logs) + 1} is next")
        if record.label in self._names or record.label is None:
            broken.append(f"L13: the name {record.label!r} is taken or missing")
        if record.parent is not None and parent is None:
            broken.append(f"L13: the parent {record.parent} was never opened")
        base = parent.reach if parent else 0
        owing = parent.newest if parent and parent.state == "owing" else None
        if record.reach != base or record.anchor != owing:
            broken.append(
                f"L13: reach {record.reach} and withdrawn {record.anchor} at the fork, want {base} and {owing}"
            )
        log = FoldedLog(record.log, record.label or "", parent, record.seq, base)
        self.logs[record.log] = log
        self._names.add(log.name)
        rows = [Row("logs", (log.number, log.name, log.parent, log.opened, log.base))]
        rows += [Row("ancestry", (log.number, *seen)) for seen in log.sees]
        if owing is not None:
            rows += [
                Row("withdrawals", (log.number, *run, record.seq)) for run in log.withdraw(owing, owing, record.seq)
            ]
        self._settle(log)
        return broken, rows

    def _turn(self, log: FoldedLog, record: Record) -> list[str]:
        broken = []
        opens = record.kind in ("prompt", "assistant")
        want = log.reach + 1 if opens else log.newest
        if record.turn != want:
            broken.append(f"L3: turn {record.turn} where {want} is next")
        calls = json.loads(record.calls) if record.calls else []
        admitted = {
            "prompt": log.state != "owing",
            "assistant": log.state in ("prompted", "answered") or (log.state == "ready" and record.origin == "import"),
            "tool_results": log.state == "owing" and sorted(calls) == sorted(log.owed),
            "steering": log.state in ("prompted", "answered") and log.newest > log.base,
        }[record.kind]
        if not admitted:
            broken.append(
                f"L4: {record.kind} while the log is {log.state}" + (f", owing {log.owed}" if log.owed else "")
            )
        if len(set(calls)) != len(calls):
            broken.append(f"L4: a call id stands twice in {calls}")
        if opens:
            log.reach = record.turn if record.turn is not None else log.reach
        self._after(log, record.kind, record.calls)
        return broken

    @staticmethod
    def _after(log: FoldedLog, kind: str, calls: str | None) -> None:
        """The state that a newest turn's last record leaves."""
        owed = json.loads(calls) if calls and kind == "assistant" else []
        log.owed = owed
        log.state = {"prompt": "prompted", "steering": "prompted", "tool_results": "answered"}.get(
            kind, "owing" if owed else "ready"
        )

    def _settle(self, log: FoldedLog) -> None:
        """The state read off the newest turn that is not withdrawn: departed, or none, means ready."""
        turn = log.newest
        if turn == 0 or log.ground(turn) is not None:
            log.state, log.owed = "ready", []
        else:
            self._after(log, *self._last(log, turn))

    def _evict(self, log: FoldedLog, record: Record) -> tuple[list[str], list[Row]]:
        from_, to, seq = record.span_from, record.span_to, record.seq
        if from_ is None or to is None or not 1 <= from_ <= to <= log.reach:
            return [f"L5: the span {from_}..{to} is not within 1..{log.reach}"], []
        broken = []
        start, end = log.ground(from_), log.ground(to)
        if (start and (start.residue is None or start.from_ != from_)) or (
            end and (end.residue is None or end.to != to)
        ):
            broken.append(f"L5: the span {from_}..{to} is not made of whole items of the context")
        if log.state != "ready" and from_ <= log.newest <= to:
            broken.append(f"L5: turn {log.newest} is being written")
        if record.author == "harness":
            if log.state == "owing":
                broken.append("L4: a forced eviction while results are owed")
            if start and (start.from_, start.to) == (from_, to):
                broken.append("L9: a forced eviction replaces exactly one residue")
        broken += self._note(record)
        if record.reach != log.reach:
            broken.append(f"L3: reach {record.reach}, want {log.reach}")
        rows = [Row("residues", (seq, log.number, from_, to, record.note, record.author, record.weight))]
        rows += [Row("locations", (log.number, first, residue, seq)) for first, residue in log.items(from_, to)]
        log.cover(from_, to, seq, seq)
        self._settle(log)
        return broken, rows

    @staticmethod
    def _note(record: Record) -> list[str]:
        """L9: the model leaves one line, the harness nothing."""
        if record.author not in ("model", "harness"):
            return [f"L9: the author is {record.author!r}"]
        if record.author == "harness":
            return [] if record.note is None else ["L9: a forced eviction carries a note"]
        if record.blanked and record.note is None:
            return []
        try:
            check_note(record.note)
        except Refused as refusal:
            return [f"L9: {refusal}"]
        return []

    def _withdraw(self, log: FoldedLog, record: Record) -> tuple[list[str], list[Row]]:
        broken = []
        anchor = 1 if record.kind == "cleared" else record.anchor
        if log.state == "owing":
            broken.append(f"L10: {record.kind} while results are owed")
        if record.reach != log.reach:
            broken.append(f"L3: reach {record.reach}, want {log.reach}")
        if anchor is None or (record.kind == "rewound" and not 1 <= anchor <= log.reach):
            return [*broken, f"L10: the anchor {anchor} is not within 1..{log.reach}"], []
        ground = log.ground(anchor)
        if record.kind == "rewound" and ground and (ground.residue is None or ground.from_ != anchor):
            broken.append(f"L10: the anchor {anchor} does not start an item of the context")
        if log.reach == 0:
            return broken, []
        rows = [
            Row("withdrawals", (log.number, *run, record.seq)) for run in log.withdraw(anchor, log.reach, record.seq)
        ]
        self._settle(log)
        return broken, rows

    def standing(self) -> list[Row]:
        """The rows of ``standing`` that ought to be there now."""
        return [
            Row("standing", (log.number, g.from_, g.to, g.residue, g.seq))
            for log in self.logs.values()
            for g in log.grounds
        ]
