"""A lineage written and read by hand: nothing but hashlib, json and sqlite3, and not a line of the package.

Whoever can compute a SHA-256 can append a lawful record; this is that somebody, in one page, and a forger's tools beside it.
``Pen`` fills in what every record needs (seq, hashes, chain) and leaves every other column to the caller, right or wrong.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Row = dict[str, Any]
SCHEMA = (Path(__file__).resolve().parents[1] / "schema.sql").read_text(encoding="utf-8")

ABSENT = b"\xff\xff\xff\xff"
FOREVER = 2**63 - 1
MAKES_TURNS = ("prompt", "assistant", "tool_results", "steering")
WITNESSES = ("usage", "door", "note", "error", "meta")
CONFLICT_CLAUSES = (
    "INSERT",
    "INSERT OR ABORT",
    "INSERT OR IGNORE",
    "INSERT OR REPLACE",
    "REPLACE",
    "INSERT OR FAIL",
    "INSERT OR ROLLBACK",
)


# --- digests (L11) ----------------------------------------------------------------------------------------------------


def field(value: str | int | None) -> bytes:
    """A field as it is hashed: its length in four bytes, then its text; NULL is the length 2^32-1 alone."""
    if value is None:
        return ABSENT
    text = str(value).encode()
    return len(text).to_bytes(4, "big") + text


def genesis(uuid: str, created_ms: int, version: int) -> bytes:
    """What record 1 extends."""
    return sha256(b"exarch_sql/1/lineage\n" + field(uuid) + field(created_ms) + field(version)).digest()


def digest_of(row: Row, previous: bytes) -> bytes:
    """The digest of a record that extends ``previous``."""
    hashed = b"".join(field(row[name]) for name in ("seq", "log", "kind", "turn", "origin", "at_ms", "key"))
    return sha256(b"exarch_sql/1/record\n" + hashed + row["body_hash"] + previous).digest()


def text_hash(body: str) -> bytes:
    """The hash of a body."""
    return sha256(body.encode()).digest()


# --- bodies -----------------------------------------------------------------------------------------------------------


def compact(value: Any) -> str:
    """Compact JSON, as bodies are written."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def user(text: str) -> Row:
    """A user's message."""
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def reply(text: str, *call_ids: str) -> Row:
    """An assistant's message with the calls it makes."""
    calls = [{"type": "tool_call", "id": id_, "name": "ral", "arguments": {"cmd": "ls"}} for id_ in call_ids]
    return {"role": "assistant", "parts": [{"type": "text", "content": text}, *calls]}


def result(call_id: str, text: str = "ok") -> Row:
    """A tool's message that answers one call."""
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": text}]}


def weigh(*messages: Row) -> int:
    """Bytes of messages as compact JSON."""
    return sum(len(compact(message).encode()) for message in messages)


def residue_weight(from_: int, to: int, note: str | None) -> int:
    """Bytes of the message that stands for a residue; of a note that needs no escaping."""
    turns, has, it = (f"Turn {from_}", "has", "it") if from_ == to else (f"Turns {from_}–{to}", "have", "them")
    how = "in a forced eviction, without a note." if note is None else f'. Your note: "{note}"'
    sentence = f"[{turns} {has} left your context{' ' if note is None else ''}{how}"
    return weigh(user(f"{sentence}\n`exarch-transcript `read [turns: !{{range {from_} {to + 1}}}]` reads {it} back.]"))


# --- the pen ----------------------------------------------------------------------------------------------------------


class Pen:
    """Writes records through a bare connection. ``None`` for a quote means NULL; every keyword overrides a column.

    Each method of a kind answers the row it would write; ``write`` writes it, under any conflict clause.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.columns = columns_of(db, "records")

    def row(self, kind: str, log: int, said: Any, **columns: Any) -> Row:
        """The next record, with the given columns; everything hashed is hashed as it then stands."""
        seq, previous = self.db.execute("SELECT seq, digest FROM records ORDER BY seq DESC LIMIT 1").fetchone() or (
            0,
            genesis(*self.db.execute("SELECT uuid, created_ms, format FROM lineage").fetchone()),
        )
        row: Row = dict.fromkeys(self.columns)
        row |= {"seq": seq + 1, "log": log, "kind": kind, "at_ms": 1_700_000_000_000 + seq, "body": compact(said)}
        if kind in MAKES_TURNS:
            row["origin"] = "own"
        row |= columns
        row["body_hash"] = text_hash(row["body"])
        row["digest"] = digest_of(row, previous)
        return row

    def prompt(self, turn: int, text: str = "go on", *, log: int = 1, **columns: Any) -> Row:
        """A prompt."""
        return self.row(
            "prompt", log, [user(text)], **{"turn": turn, "label": text, "weight": weigh(user(text))} | columns
        )

    def assistant(self, turn: int, text: str = "done", *call_ids: str, log: int = 1, **columns: Any) -> Row:
        """A reply."""
        said = reply(text, *call_ids)
        calls = compact(list(call_ids)) if call_ids else None
        return self.row(
            "assistant", log, [said], **{"turn": turn, "label": text, "weight": weigh(said), "calls": calls} | columns
        )

    def tool_results(self, turn: int, *call_ids: str, log: int = 1, **columns: Any) -> Row:
        """Results."""
        said = [result(id_) for id_ in call_ids]
        return self.row(
            "tool_results",
            log,
            said,
            **{"turn": turn, "weight": weigh(*said), "calls": compact(list(call_ids))} | columns,
        )

    def steering(self, turn: int, text: str = "only the red ones", *, log: int = 1, **columns: Any) -> Row:
        """Steering."""
        return self.row("steering", log, [user(text)], **{"turn": turn, "weight": weigh(user(text))} | columns)

    def evicted(self, from_: int, to: int, note: str | None, *, reach: int, log: int = 1, **columns: Any) -> Row:
        """An eviction: the harness's where there is no note, else the model's."""
        author = "harness" if note is None else "model"
        body = {"from": from_, "to": to, "note": note, "by": author, "reach": reach}
        quotes = {"span_from": from_, "span_to": to, "note": note, "author": author, "reach": reach}
        return self.row("evicted", log, body, **quotes | {"weight": residue_weight(from_, to, note)} | columns)

    def rewound(self, anchor: int, *, reach: int, log: int = 1, **columns: Any) -> Row:
        """A rewind."""
        return self.row(
            "rewound", log, {"anchor": anchor, "reach": reach}, **{"anchor": anchor, "reach": reach} | columns
        )

    def cleared(self, *, reach: int, log: int = 1, **columns: Any) -> Row:
        """A clear."""
        return self.row("cleared", log, {"reach": reach}, **{"reach": reach} | columns)

    def opened(
        self,
        log: int,
        name: str,
        parent: int | None = None,
        *,
        reach: int = 0,
        owing: int | None = None,
        **columns: Any,
    ) -> Row:
        """A log's beginning."""
        body = {"name": name, "parent": parent, "reach": reach, "withdrawn": owing}
        return self.row(
            "opened", log, body, **{"label": name, "parent": parent, "reach": reach, "anchor": owing} | columns
        )

    def redacted(
        self, target: int, *, log: int = 1, blobs: Sequence[str] = (), left: str | None = None, **columns: Any
    ) -> Row:
        """A redaction: of a whole record, or of its first part, which leaves the body ``left``. Blanking is a second statement."""
        body = {
            "target": target,
            "part": 0 if left else None,
            "left": text_hash(left).hex() if left else None,
            "blobs": list(blobs),
        }
        return self.row("redacted", log, body | {"reason": "a secret"}, **{"target": target} | columns)

    def witness(self, kind: str = "note", *, log: int = 1, **columns: Any) -> Row:
        """A witness record."""
        return self.row(kind, log, {"text": "seen"}, **columns)

    def write(self, row: Row, clause: str = "INSERT") -> Row:
        """Write a record, and nothing else; the row."""
        insert(self.db, "records", row, clause)
        return row


def insert(db: sqlite3.Connection, table: str, row: Row, clause: str = "INSERT") -> None:
    """Insert a row of named values into a table or view."""
    marks = ", ".join("?" * len(row))
    db.execute(f"{clause} INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


def found_lineage(db: sqlite3.Connection, uuid: str = "00000000-0000-4000-8000-000000000000") -> Pen:
    """Lay the schema into an empty database and write what every lineage begins with."""
    db.executescript(SCHEMA)
    insert(db, "lineage", {"id": 1, "uuid": uuid, "created_ms": 1_700_000_000_000, "format": 1})
    pen = Pen(db)
    pen.write(pen.opened(1, "trunk"))
    return pen


# --- looking and copying ----------------------------------------------------------------------------------------------


def bare(data: bytes | None = None) -> sqlite3.Connection:
    """A connection of Python's own module to a copy in memory, in autocommit, as anybody would have it."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    if data is not None:
        db.deserialize(data)
    return db


def in_memory(data: bytes) -> bytes:
    """A file's bytes as a database in memory takes them: without the write-ahead log's mark in the header."""
    return data[:18] + b"\x01\x01" + data[20:]


def tables(db: sqlite3.Connection) -> list[str]:
    """Every table, in the order of the schema."""
    return [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid")]


def columns_of(db: sqlite3.Connection, table: str) -> list[str]:
    """The columns of a table or view, in order."""
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def unique_keys(db: sqlite3.Connection, table: str) -> list[tuple[tuple[str, ...], str]]:
    """Every unique key of a table: its columns, and the condition of a partial index (else nothing)."""
    keys = []
    for _, index, unique, _, partial in db.execute(f"PRAGMA index_list({table})").fetchall():
        if unique:
            names = tuple(row[2] for row in db.execute(f"PRAGMA index_info({index})"))
            sql = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (index,)).fetchone() if partial else None
            keys.append((names, f" WHERE {sql[0].partition(' WHERE ')[2]}" if sql else ""))
    primary = tuple(
        row[1] for row in sorted(db.execute(f"PRAGMA table_info({table})"), key=lambda row: row[5]) if row[5]
    )
    if primary and not any(names == primary for names, _ in keys):
        keys.append((primary, ""))  # a rowid's other name has no index of its own
    return keys


def rows(db: sqlite3.Connection, table: str) -> list[Row]:
    """Every row of a table, by column."""
    names = columns_of(db, table)
    return [dict(zip(names, row, strict=True)) for row in db.execute(f"SELECT {', '.join(names)} FROM {table}")]


def content(db: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """All that a database holds: its schema, and every row of every table."""
    schema = db.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    held = {name: db.execute(f"SELECT * FROM {name}").fetchall() for type_, name, _ in schema if type_ == "table"}
    return {"sqlite_schema": schema, **held}


@contextlib.contextmanager
def undone(db: sqlite3.Connection) -> Iterator[None]:
    """Whatever is written inside is taken back."""
    db.execute("SAVEPOINT undone")
    try:
        yield
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK TO undone")
            db.execute("RELEASE undone")


def blank(db: sqlite3.Connection, target: int, left: str | None = None) -> None:
    """Blank a record that a redaction has named, and the blobs that it named with it."""
    blanked = "UPDATE records SET body = ?, note = NULL, label = iif(label IS NULL, NULL, '') WHERE seq = ?"
    db.execute(blanked, (left, target))
    db.execute("UPDATE residues SET note = NULL WHERE seq = ? AND note IS NOT NULL", (target,))
    named = "SELECT value FROM records, json_each(body, '$.blobs') WHERE target = ?"
    for (name,) in db.execute(named, (target,)).fetchall():
        db.execute("UPDATE blobs SET data = NULL WHERE hash = ?", (bytes.fromhex(name),))


def holes(body: str) -> list[str]:
    """The blobs that a body names, by hash."""
    return re.findall(r'"\$blob":"([0-9a-f]{64})"', body)


def rechain(db: sqlite3.Connection) -> None:
    """Recompute every hash and digest, so that the chain holds again over whatever the records now say."""
    previous = genesis(*db.execute("SELECT uuid, created_ms, format FROM lineage").fetchone())
    for row in sorted(rows(db, "records"), key=lambda row: row["seq"]):
        if row["body"] is not None:
            row["body_hash"] = text_hash(row["body"])
        previous = digest_of(row, previous)
        db.execute(
            "UPDATE records SET body_hash = ?, digest = ? WHERE seq = ?", (row["body_hash"], previous, row["seq"])
        )


@contextlib.contextmanager
def without_triggers(db: sqlite3.Connection, *, restore: bool = True) -> Iterator[None]:
    """Every trigger dropped by force, then put back to the letter (unless asked not to)."""
    triggers = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid").fetchall()
    for name, _ in triggers:
        db.execute(f"DROP TRIGGER {name}")
    yield
    for _, sql in triggers if restore else ():
        db.execute(sql)


def raise_messages(sql: str) -> list[str]:
    """What a trigger says when it refuses; an expression that is no literal comes back as it stands."""
    return [said.strip() for said in re.findall(r"RAISE\(ABORT,\s*('(?:[^']|'')*'|[^)]*)\)", sql)]
