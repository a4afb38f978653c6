"""What a log holds already, found by the key it was recorded under: how an import knows what it need not write.

Reads on the connection that is being written, so that what the open batch wrote is seen too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from exarch_sql import messages, reading, redaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from exarch_sql.answers import Json, Message
    from exarch_sql.archive import Archive
    from exarch_sql.log import Log

_COLUMNS = "SELECT seq, kind, turn FROM records WHERE log = ? AND "
BY_KEY_SQL = _COLUMNS + "key = ?"
NEWEST_VARIANT_SQL = _COLUMNS + "key >= ? AND key < ? ORDER BY seq DESC LIMIT 1"
BODY_SQL = "SELECT seq, body, body_hash FROM records WHERE log = ? AND key = ?"
NAMES_SQL = "SELECT name FROM logs ORDER BY log"
HOLDERS_SQL = """
SELECT l.name, r.body ->> 'agent' FROM logs AS l JOIN records AS r ON r.log = l.log AND r.key = ?
 WHERE r.body ->> 'session' = ? ORDER BY l.log"""
SAID_SQL = "SELECT kind, body_hash FROM records WHERE log = ? AND key = ?"
FOLLOWED_SQL = """
SELECT 1 FROM records
 WHERE log = ? AND turn > ? AND NOT (kind IN ('prompt', 'steering') AND key >= ? AND key < ?) LIMIT 1"""
SESSION_KEY = "cc:session"
SAID = "cc:said:"  # prompts and steering alike
VARIANT = "+"  # a key, this mark and a number: the same step, recorded again when it had grown


class Recorded(msgspec.Struct, frozen=True):
    """A record: its number, its kind, and the turn it opened or extended (None for edits and witnesses)."""

    seq: int
    kind: str
    turn: int | None


def names(archive: Archive) -> set[str]:
    """The names of the logs there are."""
    with archive._store.held() as db:
        return {name for (name,) in db.execute(NAMES_SQL)}


def holders(archive: Archive, session: str) -> list[tuple[str, str | None]]:
    """The logs that hold threads of a session, in the order of opening: name, and the agent it is, if it is one."""
    with archive._store.held() as db:
        return list(db.execute(HOLDERS_SQL, (SESSION_KEY, session)))


def find(log: Log, key: str) -> Recorded | None:
    """The record under this key in this log (not in its ancestors), or None."""
    with log._store.held() as db:
        row = db.execute(BY_KEY_SQL, (log.number, key)).fetchone()
    return Recorded(*row) if row else None


def newest_of(log: Log, key: str) -> Recorded | None:
    """The latest record of this step: under the key's newest variant, else under the key itself."""
    with log._store.held() as db:
        row = db.execute(NEWEST_VARIANT_SQL, (log.number, key + VARIANT, key + chr(ord(VARIANT) + 1))).fetchone()
    return Recorded(*row) if row else find(log, key)


def body(log: Log, key: str) -> Json:
    """The body of a witness record, re-hashed before it is read; empty where there is none or it was redacted."""
    store = log._store
    with store.held() as db:
        row = db.execute(BODY_SQL, (log.number, key)).fetchone()
        if row is None or row[1] is None:
            return {}
        redaction.check(db, *row)
        found = messages.loads(row[1])
    return found if isinstance(found, dict) else {}


def turn_messages(log: Log, turn: int) -> tuple[Message, ...]:
    """A turn's messages, even while it is being written, when ``Log.read`` would refuse it."""
    with log._store.reading() as db:
        return reading.material(log._store, db, log.number, turn).messages


def says(log: Log, key: str, said: Sequence[Message]) -> bool:
    """Whether these very messages are recorded under the key as something a user said, prompt or steering."""
    store = log._store
    with store.held() as db:
        row = db.execute(SAID_SQL, (log.number, key)).fetchone()
    if row is None or row[0] not in ("prompt", "steering"):
        return False
    return bool(row[1] == store.hash_of(messages.encode(list(said)).data))


def ends_with(log: Log, turn: int) -> bool:
    """Whether nothing but imported words follows this turn, in any turn of the log's own after it."""
    with log._store.held() as db:
        row = db.execute(FOLLOWED_SQL, (log.number, turn, SAID, SAID[:-1] + chr(ord(SAID[-1]) + 1))).fetchone()
    return row is None
