"""Redaction (L12): blank what should never have been recorded, by a record that says so.

The body goes, or one part of it; its hash, its length, its place in the chain and what the protocol needs (who called what, who
answered) stay, so `verify` still passes and lists what was blanked. Readers get a marked hole of the same shape. The text leaves
the file's free pages and its write-ahead log too: the file is rewritten.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from exarch_sql import messages
from exarch_sql.connection import CHECKPOINT_SQL, one
from exarch_sql.errors import BadFile, Busy, Refused

if TYPE_CHECKING:
    from exarch_sql.answers import Message
    from exarch_sql.store import Store

HOLE = "[redacted]"

TARGET_SQL = "SELECT log, kind, turn, body, body_hash FROM records WHERE seq = ?"
BODIES_SQL = """
SELECT seq, log, kind, turn, body, body_hash FROM records
 WHERE kind NOT IN ('opened', 'redacted') AND body IS NOT NULL ORDER BY seq"""
BLANK_SQL = """
UPDATE records SET body = :left, note = NULL, label = CASE WHEN label IS NULL THEN NULL ELSE '' END WHERE seq = :seq"""
BLANK_NOTE_SQL = "UPDATE residues SET note = NULL WHERE seq = ? AND note IS NOT NULL"
BLANK_BLOB_SQL = "UPDATE blobs SET data = NULL WHERE hash = ? AND data IS NOT NULL"
NAMED_ELSEWHERE_SQL = "SELECT 1 FROM records WHERE turn IS NOT NULL AND seq <> :seq AND instr(body, :hash) > 0 LIMIT 1"
AGAIN_SQL = "SELECT seq, json_array_length(body, '$.blobs') FROM records WHERE target = ? ORDER BY seq DESC LIMIT 1"
LEFT_SQL = "SELECT body ->> 'left' FROM records WHERE target = ? ORDER BY seq DESC LIMIT 1"


class Redacted(msgspec.Struct, frozen=True):
    """What a redaction did: its record, its target, the blobs it blanked."""

    seq: int
    target: int
    part: int | None
    blobs: int

    def to_dict(self) -> dict[str, Any]:
        """``{"seq", "target", "part", "blobs"}``."""
        return msgspec.structs.asdict(self)


def redact(store: Store, db: apsw.Connection, target: int, part: int | None, reason: str) -> Redacted:
    """Blank a record, or its part number ``part`` (from 0, over all its messages), inside an open write transaction."""
    from exarch_sql import search  # noqa: PLC0415  (every reader imports this module, few redact)

    row = db.execute(TARGET_SQL, (target,)).fetchone() if 0 < target < 2**63 else None
    if row is None:
        (newest,) = one(db, "SELECT max(seq) FROM records")
        raise Refused(f"record {target} is not recorded: the latest is {newest}")
    log, kind, turn, body, hash_ = row
    if kind in ("opened", "redacted"):
        raise Refused(f"record {target} is of kind {kind}, which says what the file is and holds no text to blank")
    if body is None:
        return _again(db, target)
    if not messages.is_text(reason):
        raise Refused("a redaction's reason is text without NUL or half surrogates")
    if part is not None and turn is None:
        raise Refused(f"record {target} is of kind {kind} and has no parts: redact it whole, without a part")
    check(db, target, body, hash_)  # or what is left of an altered body would be recorded as what was said
    left, removed = (None, messages.loads(body)) if part is None else _without_part(target, body, part)
    blobs = [name for name in dict.fromkeys(messages.holes(removed)) if not _named_elsewhere(db, target, name, left)]
    particulars = {
        "target": target,
        "part": part,
        "left": sha256(left.encode()).hexdigest() if left is not None else None,
        "blobs": blobs,
        "reason": reason,
    }
    seq = store.append_other(log, "redacted", particulars, target=target)
    search.drop(db)  # it tells which letters stood side by side in what is blanked; a later search makes it anew
    db.execute(BLANK_SQL, {"seq": target, "left": left})
    db.execute(BLANK_NOTE_SQL, (target,))
    for name in blobs:
        db.execute(BLANK_BLOB_SQL, (bytes.fromhex(name),))
    return Redacted(seq, target, part, len(blobs))


class Sighting(msgspec.Struct, frozen=True):
    """A place where a pattern was found: a record, the part of it (None for a record without parts), the lines that match."""

    seq: int
    log: int
    kind: str
    turn: int | None
    part: int | None
    lines: int

    def to_dict(self) -> dict[str, Any]:
        """``{"seq", "log", "kind", "turn", "part", "lines"}``; the text itself is not repeated."""
        return msgspec.structs.asdict(self)


def find(db: apsw.Connection, pattern: str) -> list[Sighting]:
    """Where a pattern stands in the file: in every log, every kind of record, provider fields and call arguments included."""
    from exarch_sql.patterns import compile_pattern  # noqa: PLC0415  (only those who look load RE2)

    compiled = compile_pattern(pattern)
    found = []
    for seq, log, kind, turn, body, hash_ in db.execute(BODIES_SQL):
        check(db, seq, body, hash_)
        said = messages.loads(body)
        whole = turn is None or not isinstance(said, list)
        parts = [(None, said)] if whole else enumerate(part for message in said for part in message["parts"])
        for number, part in parts:
            texts = (
                [messages.dumps(part)]
                if number is None
                else [messages.searched_text({"parts": [part]}), messages.dumps(part)]
            )
            if lines := next((count for text in texts if (count := compiled.count(text))), 0):
                found.append(Sighting(seq, log, kind, turn, number, lines))
    return found


def _without_part(target: int, body: str, part: int) -> tuple[str, Any]:
    """The body with a hole where the part was, and the part."""
    said = messages.loads(body)
    places = [(message, index) for message in said for index in range(len(message["parts"]))]
    if not 0 <= part < len(places):
        raise Refused(f"record {target} has parts 0 to {len(places) - 1}: there is no part {part}")
    message, index = places[part]
    removed = message["parts"][index]
    message["parts"][index] = _hole(removed)
    return messages.dumps(said), removed


def _hole(part: Message) -> Message:
    """What stands where a part was: of the same shape as far as the protocol needs it."""
    match part.get("type"):
        case "tool_call":
            return {"type": "tool_call", "id": part["id"], "name": part["name"], "arguments": {"redacted": HOLE}}
        case "tool_call_response":
            return {"type": "tool_call_response", "id": part["id"], "response": HOLE}
        case _:
            return {"type": "text", "content": HOLE}


def is_hole(part: Message) -> bool:
    """Whether a part is what a redaction of it would leave."""
    return part == _hole(part)


def hole(kind: str, calls: str | None) -> list[Message]:
    """The messages that stand where a turn's record was blanked whole."""
    ids = json.loads(calls) if calls else []
    if kind == "tool_results":
        return [{"role": "tool", "parts": [_hole({"type": "tool_call_response", "id": call})]} for call in ids]
    parts = [_hole({"type": "text"}), *(_hole({"type": "tool_call", "id": call, "name": "redacted"}) for call in ids)]
    return [{"role": "assistant" if kind == "assistant" else "user", "parts": parts}]


def check(db: apsw.Connection, seq: int, body: str, hash_: bytes) -> None:
    """Raise BadFile, before anything is parsed, when a body is not what was recorded, nor what a redaction left of it (L11)."""
    if not isinstance(body, str) or (sha256(body.encode()).digest() != hash_ and not leaves(db, seq, body)):
        raise BadFile(f"record {seq} does not hash to the digest recorded for it: its body was altered; run verify")


def leaves(db: apsw.Connection, target: int, body: str) -> bool:
    """Whether the newest redaction of a record states that exactly this body is left of it."""
    row = db.execute(LEFT_SQL, (target,)).fetchone()
    return row is not None and row[0] == sha256(body.encode()).hexdigest()


def _again(db: apsw.Connection, target: int) -> Redacted:
    """The redaction that blanked a record whole: asked for again, it is answered again."""
    seq, blobs = one(db, AGAIN_SQL, (target,))
    return Redacted(seq, target, None, blobs)


def _named_elsewhere(db: apsw.Connection, target: int, name: str, left: str | None) -> bool:
    """Whether another record, or what is left of this one, still needs the blob."""
    if left is not None and name in left:
        return True
    return db.execute(NAMED_ELSEWHERE_SQL, {"seq": target, "hash": name}).fetchone() is not None


def scrub(db: apsw.Connection) -> None:
    """Rewrite the file so that nothing blanked is left in free space or in the write-ahead log. Raises Busy while others read.

    Pages hold remnants of rows that once were moved, so blanking in place is not enough.
    """
    busy = 0
    try:
        db.execute("VACUUM")
        busy, *_ = one(db, CHECKPOINT_SQL)
    except (apsw.BusyError, apsw.LockedError):
        busy = 1
    if busy:
        raise Busy(
            "the redaction is recorded and its target blanked, but another connection keeps old pages of the file: "
            "close that one and redact the same record again, which records nothing more and takes the old pages away"
        )
