"""Reading a log back: rows, turns and the context, from the views and the bodies behind them.

Takes an open snapshot and answers; writes nothing. A body is re-hashed before it is parsed (L11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exarch_sql import messages, redaction, residue
from exarch_sql.answers import RESIDENT, WITHDRAWN, Location, Material, Row, Span, Survey
from exarch_sql.connection import one
from exarch_sql.errors import BadFile, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw

    from exarch_sql.answers import Message
    from exarch_sql.store import Store

SURVEY_SQL = "SELECT span_from, span_to, role, kind, label, bytes FROM frontier WHERE log = ? ORDER BY span_from"
SURVEY_AT_SQL = (
    "SELECT span_from, span_to, role, kind, label, bytes FROM frontier_at WHERE log = ? AND at = ? ORDER BY span_from"
)
_INDEX_SQL = """
SELECT i.span_from, i.span_to, i.role, i.kind, i.label, i.bytes, i.withdrawn, h.span_from, h.span_to
  FROM items_at AS i LEFT JOIN residues AS h ON h.seq = i.holder
 WHERE i.log = :log AND i.at = :at {narrow}
 ORDER BY i.span_from, i.span_to DESC, i.seq DESC"""
INDEX_SQL = _INDEX_SQL.format(narrow="")
WITHIN_SQL = _INDEX_SQL.format(  # each end bounds a look-up of its own
    narrow="AND i.span_from BETWEEN :first AND :last AND i.span_to BETWEEN :first AND :last"
)
RESIDUES_SQL = """
SELECT DISTINCT span_from, span_to FROM residues_at WHERE log = :log AND at = :at
 ORDER BY abs(span_from - :first), abs(span_to - :last) LIMIT 3"""
_CONTEXT_SQL = """
SELECT f.span_from, f.span_to, f.kind, d.seq, d.note, d.author, r.seq, r.kind, r.calls, r.body, r.body_hash
  FROM {frontier} AS f
  LEFT JOIN residues AS d ON f.kind = 'residue' AND d.seq = f.seq
  LEFT JOIN ancestry AS a ON f.kind <> 'residue' AND a.log = f.log AND f.span_from BETWEEN a.turn_from AND a.turn_to
  LEFT JOIN records AS r ON r.log = a.ancestor AND r.turn = f.span_from AND r.seq <= {upto}
 WHERE f.log = :log {narrow}
 ORDER BY f.span_from, r.seq"""
CONTEXT_SQL = _CONTEXT_SQL.format(frontier="frontier", upto="a.upto", narrow="")
CONTEXT_AT_SQL = _CONTEXT_SQL.format(frontier="frontier_at", upto="min(a.upto, :at)", narrow="AND f.at = :at")
MATERIAL_SQL = """
SELECT r.seq, r.kind, r.calls, r.body, r.body_hash
  FROM ancestry AS a JOIN records AS r ON r.log = a.ancestor AND r.turn = :turn AND r.seq <= a.upto
 WHERE a.log = :log AND :turn BETWEEN a.turn_from AND a.turn_to
 ORDER BY r.seq"""
EDIT_SQL = "SELECT body, body_hash FROM records WHERE seq = ?"
MOMENT_SQL = "SELECT l.opened, (SELECT max(seq) FROM records) FROM logs AS l WHERE l.log = ?"


def moment(db: apsw.Connection, log: int, at: int | None) -> int | None:
    """The moment asked for, when it is one of this log's; None for now. Raises Refused otherwise."""
    if at is None:
        return None
    opened, newest = one(db, MOMENT_SQL, (log,))
    if isinstance(at, bool) or not isinstance(at, int) or not opened <= at <= newest:
        raise Refused(
            f"at={at!r} is no moment of this log: it was opened by record {opened}, and the newest record is {newest}"
        )
    return at


def survey(db: apsw.Connection, log: int, at: int | None = None) -> Survey:
    """The frontier's rows and their bytes together."""
    found: Iterable[Any] = db.execute(SURVEY_SQL, (log,)) if at is None else db.execute(SURVEY_AT_SQL, (log, at))
    rows = tuple(Row(from_, to, role, kind, label, size, RESIDENT) for from_, to, role, kind, label, size in found)
    return Survey(rows, sum(row.bytes for row in rows))


def index(db: apsw.Connection, log: int, at: int | None = None, within: Span | None = None) -> list[Row]:
    """Every item the log ever saw, in index order, each with its location; or those that lie ``within`` a span."""
    asked = {"log": log, "at": _as_of(db, at)}
    found = db.execute(WITHIN_SQL, asked | _ends(within)) if within else db.execute(INDEX_SQL, asked)
    return [
        Row(from_, to, role, kind, label, size, _location(withdrawn, under_from, under_to))
        for from_, to, role, kind, label, size, withdrawn, under_from, under_to in found
    ]


def under(db: apsw.Connection, log: int, span: Span, at: int | None = None) -> list[Row]:
    """What departed under the residue over exactly this span. Raises Refused, naming the nearest, where there is none."""
    rows = index(db, log, at, within=span)
    if not any(row.kind == "residue" and row.span == span for row in rows):
        asked = {"log": log, "at": _as_of(db, at), **_ends(span)}
        known = [str(Span(*found)) for found in db.execute(RESIDUES_SQL, asked)]
        near = f"the nearest are over {', '.join(known)}" if known else "nothing has been evicted yet"
        raise Refused(f"no residue stands or lies at {span}: {near}")
    return [row for row in rows if row.location == Location("under", span)]


def _ends(span: Span) -> dict[str, int]:
    """A span as bindings."""
    return {"first": span.from_, "last": span.to}


def _as_of(db: apsw.Connection, at: int | None) -> int:
    """The moment, which is the newest record where none was asked for."""
    seq: int = one(db, "SELECT max(seq) FROM records")[0] if at is None else at
    return seq


def _location(withdrawn: int, under_from: int | None, under_to: int | None) -> Location:
    if withdrawn:
        return WITHDRAWN
    return RESIDENT if under_from is None or under_to is None else Location("under", Span(under_from, under_to))


def context(store: Store, db: apsw.Connection, log: int, at: int | None = None) -> list[Message]:
    """The messages of the frontier, in order, as recorded; a residue is its own message."""
    said: list[Message] = []
    found = db.execute(CONTEXT_SQL, {"log": log}) if at is None else db.execute(CONTEXT_AT_SQL, {"log": log, "at": at})
    for from_, to, kind, evicted, note, author, *record in found:
        if kind == "residue":
            span = Span(from_, to)
            check_residue(db, evicted, span, note)
            said.append(residue.message(span, note, author, redacted=author == "model" and note is None))
        else:
            said += _said(store, db, *record)
    return said


def _said(
    store: Store, db: apsw.Connection, seq: int, kind: str, calls: str | None, body: str | None, hash_: bytes
) -> list[Message]:
    """The messages of a record, checked first (L11); a marked hole where it was redacted (L12)."""
    if body is None:
        return redaction.hole(kind, calls)
    redaction.check(db, seq, body, hash_)
    return messages.decode(body, store.blob)


def check_residue(db: apsw.Connection, seq: int, span: Span, note: str | None) -> None:
    """Raise BadFile unless a residue, of which the fold tells, is the one of the eviction's own body (L11)."""
    body, hash_ = one(db, EDIT_SQL, (seq,))
    if body is None:  # redacted
        return
    redaction.check(db, seq, body, hash_)
    said = messages.loads(body)
    if (span.from_, span.to, note) != (said["from"], said["to"], said.get("note")):
        raise BadFile(f"the residue over {span} is not the one that record {seq} left: run verify, then rebuild")


def material(store: Store, db: apsw.Connection, log: int, turn: int) -> Material:
    """A turn's own messages, whole."""
    said: list[Message] = []
    role = "assistant"
    for record in db.execute(MATERIAL_SQL, {"log": log, "turn": turn}):
        if record[1] == "prompt":
            role = "user"
        said += _said(store, db, *record)
    return Material(turn, role, tuple(said))  # type: ignore[arg-type]
