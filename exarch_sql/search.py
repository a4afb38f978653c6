"""Search: every line of a log's transcript that matches a pattern, exactly and completely, or a refusal.

Walks the turns a log sees in index order, message by message, line by line, and the model's notes before the turns they stand for.
Bodies behind reported hits are re-hashed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from exarch_sql import messages, reading
from exarch_sql.answers import Found, Hit
from exarch_sql.patterns import compile_pattern
from exarch_sql.providers import sanitise

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

    from exarch_sql.judge import State
    from exarch_sql.patterns import Pattern
    from exarch_sql.store import Store

MAX_HITS = 100
TEXT_BYTES = 200

TURNS_SQL = """
SELECT r.turn, CASE WHEN a.ancestor = a.log THEN o.origin ELSE 'inherited' END, r.seq, r.body, r.body_hash
  FROM ancestry AS a
  JOIN records AS r ON r.log = a.ancestor AND r.turn BETWEEN a.turn_from AND a.turn_to AND r.seq <= a.upto
  JOIN records AS o ON o.log = r.log AND o.turn = r.turn AND o.kind IN ('prompt', 'assistant')
 WHERE a.log = :log AND r.turn IS NOT :unclosed AND r.body IS NOT NULL
 ORDER BY a.turn_from, r.turn, r.seq"""
NOTES_SQL = """
SELECT d.span_from, d.span_to, d.note, d.seq, r.body, r.body_hash
  FROM ancestry AS a JOIN residues AS d ON d.log = a.ancestor AND d.seq <= a.upto JOIN records AS r ON r.seq = d.seq
 WHERE a.log = :log AND d.note IS NOT NULL
 ORDER BY d.span_from, d.span_to DESC, d.seq DESC"""


def grep(store: Store, db: apsw.Connection, state: State, pattern: str, turns: list[int] | None) -> Found:
    """Hits over the whole transcript but the turn being written, or over exactly the named turns (then without notes)."""
    compiled = compile_pattern(pattern)
    hits: list[Hit] = []
    total = 0
    for hit in _hits(store, db, state, compiled, None if turns is None else set(turns)):
        total += 1
        if len(hits) < MAX_HITS:
            hits.append(hit)
    return Found(tuple(hits), total)


def _hits(store: Store, db: apsw.Connection, state: State, pattern: Pattern, turns: set[int] | None) -> Iterator[Hit]:
    """Every hit, in index order: a residue's note before the turns it covers."""
    notes = _notes(store, db, state, pattern) if turns is None else iter(())
    note = next(notes, None)
    for turn, kind, seq, body, hash_ in db.execute(TURNS_SQL, {"log": state.log, "unclosed": state.unclosed}):
        if turns is not None and turn not in turns:
            continue
        while note and note.from_ <= turn:
            yield note
            note = next(notes, None)
        yield from _matches(store, db, pattern, turn, kind, seq, body, hash_)
    if note:
        yield note
        yield from notes


def _matches(
    store: Store, db: apsw.Connection, pattern: Pattern, turn: int, kind: str, seq: int, body: str, hash_: bytes
) -> Iterator[Hit]:
    """The hits in one record. Blobs stay where they are: they are never searched."""
    checked = False
    for message in messages.loads(body):
        text = sanitise(messages.searched_text(message))
        for number, line in pattern.matching_lines(text):
            if not checked:
                reading.check(store, db, seq, body, hash_)
                checked = True
            yield Hit(turn, turn, kind, message["role"], number, clipped(line))  # type: ignore[arg-type]


def _notes(store: Store, db: apsw.Connection, state: State, pattern: Pattern) -> Iterator[Hit]:
    for from_, to, note, seq, body, hash_ in db.execute(NOTES_SQL, {"log": state.log}):
        for number, line in pattern.matching_lines(note):
            reading.check(store, db, seq, body, hash_)
            yield Hit(from_, to, "residue", "user", number, clipped(line))


def clipped(line: str) -> str:
    """A line's first 200 UTF-8 bytes, whole characters only."""
    if len(line) <= TEXT_BYTES // 4:
        return line
    return line.encode()[:TEXT_BYTES].decode(errors="ignore")
