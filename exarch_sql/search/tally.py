"""The hits of one search as they come: the oldest are kept whole, all are counted.

Until the hits to report are found, matching lines are looked at one by one; from then on they are only counted. What is reported
was read from a body that is re-hashed first (L11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exarch_sql import reading, redaction
from exarch_sql.answers import Found, Hit, Span
from exarch_sql.connection import one
from exarch_sql.search.texts import passages

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import apsw

    from exarch_sql.patterns import Pattern
    from exarch_sql.search.budget import Budget
    from exarch_sql.search.index import Note
    from exarch_sql.search.stretches import Body
    from exarch_sql.search.texts import Passage

MAX_HITS = 100
TEXT_BYTES = 200

BODY_SQL = "SELECT CAST(body AS BLOB), body_hash FROM records WHERE seq = ?"
KIND_SQL = """
SELECT CASE WHEN a.ancestor = a.log THEN o.origin ELSE 'inherited' END
  FROM ancestry AS a JOIN records AS o ON o.log = a.ancestor AND o.turn = :turn AND o.kind IN ('prompt', 'assistant')
 WHERE a.log = :log AND :turn BETWEEN a.turn_from AND a.turn_to"""


class Tally:
    """What was found so far. Batches come in index order; ``at`` is the first turn of the newest one."""

    def __init__(self, db: apsw.Connection, log: int, pattern: Pattern, budget: Budget) -> None:
        self._db, self._log = db, log
        self._pattern, self._tick = pattern, budget.tick
        self._hits: list[Hit] = []
        # of those to report: the seq, the note, and the hit; the next one last
        self._notes: list[tuple[int, str, Hit]] = []
        self._checked: set[int] = set()
        self.total = 0
        self.at: int | None = None

    def take_notes(self, notes: Iterable[Note]) -> None:
        """The notes that may match, all of them, in index order; before any turn."""
        for from_, to, seq, note in notes:
            for number, line in self._pattern.matching_lines(note, self._tick):
                self.total += 1
                if len(self._notes) < MAX_HITS:
                    self._notes.append((seq, note, Hit(from_, to, "residue", "user", number, clipped(line))))
        self._notes.reverse()

    def take(self, batch: Sequence[Body], at: int) -> None:
        """The next records that may match; ``at`` is the turn in which the search now is."""
        self.at = at
        self._tick()
        found = [passage for seq, turn, body in batch for passage in passages(seq, turn, body)]
        if len(self._hits) >= MAX_HITS:
            self.total += self._pattern.count((passage.text for passage in found), self._tick)
            return
        for passage in self._pattern.sift(((passage, passage.text) for passage in found), self._tick):
            self._look(passage)

    def found(self) -> Found:
        """The answer, when all has been taken."""
        self._report_notes(None)
        return Found(tuple(self._hits), self.total)

    def _look(self, passage: Passage) -> None:
        """Report the matching lines of a passage, as far as there is room, and count them all."""
        seq, turn, role, text = passage
        if len(self._hits) < MAX_HITS:
            self._report_notes(turn)
        for number, line in self._pattern.matching_lines(text, self._tick):
            self.total += 1
            if len(self._hits) < MAX_HITS:
                self._check(seq)
                hit = Hit(turn, turn, self._kind(turn), role, number, clipped(line))
                self._hits.append(hit)

    def _report_notes(self, turn: int | None) -> None:
        """Report the notes that stand before a turn; all that are left without one."""
        while self._notes and len(self._hits) < MAX_HITS and (turn is None or self._notes[-1][2].from_ <= turn):
            seq, note, hit = self._notes.pop()
            reading.check_residue(self._db, seq, Span(hit.from_, hit.to), note)
            self._hits.append(hit)

    def _kind(self, turn: int) -> Any:
        return one(self._db, KIND_SQL, {"log": self._log, "turn": turn})[0]

    def _check(self, seq: int) -> None:
        """Raise BadFile unless a record's body is what was recorded, or what a redaction left of it."""
        if seq not in self._checked:
            body, hash_ = one(self._db, BODY_SQL, (seq,))
            redaction.check(self._db, seq, body.decode(errors="replace"), hash_)
            self._checked.add(seq)


def clipped(line: str) -> str:
    """A line's first 200 UTF-8 bytes, whole characters only."""
    if len(line) <= TEXT_BYTES // 4:
        return line
    return line.encode()[:TEXT_BYTES].decode(errors="ignore")
