"""Whatever is done to a file behind the triggers' back, ``verify`` finds it, names the place, and does not stumble.

Method: a copy of the lawful file is tampered with while no trigger and no check is on, and only the data differs afterwards (the
schema is tampered with in tests of its own). Rows, columns and schema objects are walked, so that what is added later is tampered
with too. Each field is changed once, in one of several ways that take turns; ``EXARCH_EVERY_CHANGE=1`` makes every change to
every field (a minute).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import shutil
import sqlite3
from typing import TYPE_CHECKING, Any

import apsw
import forge
import pytest
from conftest import LOGS
from forge import bare, rows

from exarch_sql import Archive, BadFile, Head, Refused, verify
from exarch_sql.connection import open_unjudged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from exarch_sql import Report

EVERY_CHANGE = "EXARCH_EVERY_CHANGE" in os.environ
SCHEMA_DB = bare()
SCHEMA_DB.executescript(forge.SCHEMA)
TABLES = forge.tables(SCHEMA_DB)
OBJECTS = [
    f"{type_} {name}" for type_, name in SCHEMA_DB.execute("SELECT type, name FROM sqlite_schema WHERE sql IS NOT NULL")
]


class Tampering:
    """A copy in memory on which no trigger fires. Each change is judged and taken back."""

    def __init__(self, data: bytes) -> None:
        self.db = apsw.Connection(":memory:")
        self.db.deserialize("main", data)
        self.db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)

    def rows(self, table: str) -> list[forge.Row]:
        """Every row of a table, by column."""
        return rows(self.db, table)  # type: ignore[arg-type]

    def report(self, *changes: tuple[str, tuple[Any, ...]], against: Head | None = None) -> Report | None:
        """What verify says after these statements; None when SQLite itself cannot hold what they say (a key twice, a NULL)."""
        self.db.execute("SAVEPOINT tampering; PRAGMA ignore_check_constraints = ON")
        try:
            for sql, values in changes:
                self.db.execute(sql, values)
            self.db.execute("PRAGMA ignore_check_constraints = OFF")
            return verify.verify(self.db, against=against)
        except (apsw.ConstraintError, apsw.MismatchError):
            return None
        finally:
            self.db.execute("PRAGMA ignore_check_constraints = OFF; ROLLBACK TO tampering; RELEASE tampering")

    def close(self) -> None:
        """Let go of the copy."""
        self.db.close()


@pytest.fixture
def tampering(lawful: bytes) -> Iterator[Tampering]:
    """A copy of the lawful file to tamper with."""
    copy = Tampering(lawful)
    yield copy
    copy.close()


@pytest.fixture
def head(lawful_file: Path) -> Head:
    """The lawful file's head, as an auditor would have kept it."""
    with Archive.open(lawful_file, readonly=True) as archive:
        return archive.head()


def change(table: str, row: forge.Row, **values: Any) -> tuple[str, tuple[Any, ...]]:
    """A statement that gives one row other values."""
    sets = ", ".join(f"{column} = ?" for column in values)
    test = " AND ".join(f"{column} IS ?" for column in row)
    return f"UPDATE {table} SET {sets} WHERE {test}", (*values.values(), *row.values())


def others(value: Any, held: list[Any], type_: str) -> list[Any]:
    """Plausible other values for a field: near its own, what other rows hold there, nothing."""
    found: list[Any] = []
    match value:
        case int():
            found = [value + 1 if value < forge.FOREVER else value - 1, value - 1, 0]
        case str():
            found = [value + "x", value[1:]]
        case bytes():
            found = [value[:-1] + bytes([value[-1] ^ 1])]
        case None:
            found = [{"INTEGER": 1, "TEXT": "x", "BLOB": b"x"}[type_]]
    found += [one for one in dict.fromkeys(held) if one is not None][:2]
    return [one for one in dict.fromkeys([*found, None]) if one != value]


def names(place: str, table: str, row: forge.Row, value: Any) -> bool:
    """Whether a fault's words name the row that was changed: its record, or its table, or its blob."""
    if table == "records":
        if row["body"] is None and "L4: " in place:
            return True  # the calls of a blank are contradicted by those who answer them
        return any(f"record {seq} " in place for seq in (row["seq"], value)) or table in place
    if table == "blobs":
        return row["hash"].hex() in place or table in place or "record 3 " in place  # which shows the picture
    return table in place or (table == "lineage" and "record 1" in place)


class Walk:
    """Field after field of a table given other values, each judged: what verify missed, put elsewhere, or stumbled over."""

    def __init__(self, tampering: Tampering, table: str) -> None:
        self.tampering, self.table = tampering, table
        self.types = {row[1]: row[2] for row in SCHEMA_DB.execute(f"PRAGMA table_info({table})")}
        self.held = tampering.rows(table)
        self.made = 0
        self.missed: list[str] = []
        self.astray: list[str] = []
        self.raised: list[str] = []

    def walk(self, chosen: list[forge.Row], unknowable: Callable[[str, Any, Any], bool] = lambda *_: False) -> None:
        """Change every field of the chosen rows. ``unknowable(column, was, value)`` excuses a change from being found."""
        for (i, row), (j, column) in itertools.product(enumerate(chosen), enumerate(self.types)):
            values = others(row[column], [one[column] for one in self.held], self.types[column])
            turn = (i + j) % len(values)
            # the first that SQLite can hold at all: a key stands once, and some columns are never NULL
            judged = (self.judge(row, column, value, unknowable) for value in values[turn:] + values[:turn])
            done = [one for one in judged if one] if EVERY_CHANGE else [next(filter(None, judged), False)]
            assert any(done), (column, row)
            self.made += len(done)

    def judge(self, row: forge.Row, column: str, value: Any, unknowable: Callable[[str, Any, Any], bool]) -> bool:
        """Make one change and note what verify made of it; whether SQLite can hold it."""
        shown = f"{self.table}.{column} {row[column]!r} -> {value!r} of {list(row.values())[:3]}"
        try:
            report = self.tampering.report(change(self.table, row, **{column: value}))
        except Exception as error:
            self.raised.append(f"{shown}: {error!r}")
            return True
        if report is None:
            return False
        if report.ok and not unknowable(column, row[column], value):
            self.missed.append(shown)
        elif not report.ok and not names(f"{report.faults[0].where} {report.faults[0].what}", self.table, row, value):
            self.astray.append(f"{shown}: {report.faults[0]}")
        return True

    def ends(self) -> None:
        """Nothing was missed, all was placed, and verify did not stumble."""
        kinds = {"verify stumbled over": self.raised, "verify missed": self.missed, "verify misplaced": self.astray}
        said = [
            "\n".join([f"{what} {len(found)} of {self.made} changes", *(one[:200] for one in found[:8])])
            for what, found in kinds.items()
            if found
        ]
        if said:
            pytest.fail("\n".join(said), pytrace=False)


@pytest.mark.parametrize("table", TABLES)
def test_a_change_of_any_single_field_is_found(tampering: Tampering, table: str) -> None:
    """L1, L11, L14: each column of each row of each table given another value; the first fault names the place."""
    walk = Walk(tampering, table)
    walk.walk(walk.held)
    walk.ends()
    assert walk.made >= len(walk.held) * len(walk.types)


# --- rows gone, rows too many, rows exchanged -------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_a_deleted_row_is_found(tampering: Tampering, head: Head, table: str) -> None:
    """Each row of each table taken out. The newest record alone may go unmissed, of which nothing was folded: a head tells."""
    unmissed = []
    for row in tampering.rows(table):
        test = " AND ".join(f"{column} IS ?" for column in row)
        gone = (f"DELETE FROM {table} WHERE {test}", tuple(row.values()))
        report = tampering.report(gone)
        assert report is not None
        if report.ok:
            unmissed.append(row["seq"])
        else:
            place = f"{report.faults[0].where} {report.faults[0].what} "
            following = f"record {row['seq'] + 1} " if table == "records" else table
            assert following in place or names(place, table, row, None), (row, report.faults[0])
        told = tampering.report(gone, against=head)
        assert told is not None
        assert not told.ok
    assert unmissed == ([head.seq] if table == "records" else [])


@pytest.mark.parametrize("table", TABLES)
def test_a_row_too_many_is_found(tampering: Tampering, table: str) -> None:
    """A copy of each row under a key of its own; a second lineage, a log nobody opened, a record nobody chained."""
    made = 0
    for row in tampering.rows(table):
        fresh = dict(row)
        for name in {name for key, _ in forge.unique_keys(tampering.db, table) for name in key}:  # type: ignore[arg-type]
            fresh[name] = new(row[name])
        marks = ", ".join("?" * len(fresh))
        report = tampering.report((f"INSERT INTO {table} VALUES ({marks})", tuple(fresh.values())))
        assert report is not None
        made += 1
        assert not report.ok, fresh
        assert names(f"{report.faults[0].where} {report.faults[0].what} ", table, fresh, None), report.faults[0]
    assert made == len(tampering.rows(table))


def new(value: Any) -> Any:
    """A value that no row has yet."""
    match value:
        case int():
            return value + 1000 if value < forge.FOREVER - 1000 else value
        case str():
            return value + " again"
        case bytes():
            return bytes(reversed(value))
        case _:
            return value


SWAPS = {
    "bodies": ("body",),
    "bodies and their hashes": ("body", "body_hash"),
    "bodies, hashes and digests": ("body", "body_hash", "digest"),
    "bodies and all that quotes them": ("body", "body_hash", "label", "weight", "calls"),
    "all but their places": (
        "log", "kind", "turn", "origin", "at_ms", "key", "label", "weight", "calls", "body_hash", "digest", "body"
    ),
    "digests": ("digest",),
}  # fmt: skip


@pytest.mark.parametrize("what", SWAPS)
def test_two_records_swapped_are_found(tampering: Tampering, what: str) -> None:
    """L11: neighbours that make turns, and the first with the last; the first fault names one of them, or a broken constraint."""
    held = [row for row in tampering.rows("records") if row["turn"] is not None]
    for one, other in [*itertools.pairwise(held), (held[0], held[-1])]:
        # by way of a free key, for a key may not stand twice even for a moment
        aside = change("records", one, key="aside")
        first = change("records", other, **{name: one[name] for name in SWAPS[what]})
        second = change(
            "records", one | {"key": "aside"}, **{"key": one["key"]} | {name: other[name] for name in SWAPS[what]}
        )
        report = tampering.report(aside, first, second)
        assert report is not None
        assert not report.ok, (one["seq"], other["seq"])
        assert report.faults[0].where in (f"record {one['seq']}", f"record {other['seq']}", "integrity_check")


# --- what only a kept head can tell ------------------------------------------------------------------------------------------


def life_until(data: bytes, seq: int) -> sqlite3.Connection:
    """The file as it was after one of its records: the same records written again, in order, through the same triggers."""
    old, new = bare(data), bare()
    new.executescript(forge.SCHEMA)
    for table in ("lineage", "blobs"):
        for row in rows(old, table):
            forge.insert(new, table, row)
    for row in rows(old, "records")[:seq]:
        forge.insert(new, "records", row)
    if seq < 3:  # the record that shows the picture
        with forge.without_triggers(new):
            new.execute("DELETE FROM blobs")
    return new


def test_a_tail_cut_off_with_its_fold_is_found_with_a_kept_head_alone(
    lawful: bytes, head: Head, judged: Callable[..., Any]
) -> None:
    """Every earlier state of a lawful file is a lawful file; a head kept at the end says that this one once went further."""
    heads = []
    for seq in range(1, head.seq):
        db = life_until(lawful, seq)
        report = judged(db)
        assert report.ok, (seq, report.faults[:3])
        heads.append(report.head)
        told = judged(db, against=head)
        assert [(fault.kind, fault.where) for fault in told.faults] == [("head", f"record {head.seq}")]
    assert all(judged(lawful, against=kept).ok for kept in heads)


def test_a_tail_cut_off_without_its_fold_is_found(tampering: Tampering, head: Head) -> None:
    """Records alone taken from the end: the fold speaks of what is gone, where there is any; a kept head always does."""
    for seq in range(2, head.seq + 1):
        cut = ("DELETE FROM records WHERE seq >= ?", (seq,))
        report, told = tampering.report(cut), tampering.report(cut, against=head)
        assert report is not None
        assert told is not None
        assert report.ok == (seq == head.seq)
        assert ("head", f"record {head.seq}") in [(fault.kind, fault.where) for fault in told.faults]


REWRITTEN = {
    "a prompt": (
        12,
        {"body": '[{"role":"user","parts":[{"type":"text","content":"keep it"}]}]', "label": "keep it", "weight": 61},
    ),
    "a witness": (21, {"body": '{"text":"nothing happened"}'}),
    "a time": (12, {"at_ms": 1}),
    "an idempotency key": (12, {"key": "mine"}),
    "an origin": (12, {"origin": "import"}),
}


@pytest.mark.parametrize("what", REWRITTEN)
def test_a_chain_rebuilt_over_an_altered_record_is_found_with_a_kept_head_alone(
    lawful: bytes, head: Head, judged: Callable[..., Any], what: str
) -> None:
    """Who recomputes every digest makes a lawful file of another past: an auditor's head is what contradicts it."""
    seq, values = REWRITTEN[what]
    db = bare(lawful)
    with forge.without_triggers(db):
        (row,) = [row for row in rows(db, "records") if row["seq"] == seq]
        sql, bound = change("records", row, **values)
        assert db.execute(sql, bound).rowcount == 1
        forge.rechain(db)
    report = judged(db)
    assert report.ok, report.faults[:3]
    assert report.head.digest != head.digest
    told = judged(db, against=head)
    assert [(fault.kind, fault.where) for fault in told.faults] == [("head", f"record {head.seq}")]
    before = judged(life_until(lawful, seq - 1)).head
    after = judged(life_until(lawful, seq)).head
    assert judged(db, against=before).ok
    assert not judged(db, against=after).ok


def test_a_note_rewritten_with_all_that_rests_on_it_is_found_with_a_kept_head_alone(
    lawful: bytes, head: Head, judged: Callable[..., Any]
) -> None:
    """The same of an eviction: body, quotes, residue and chain agree with each other, and not with the head."""
    db = bare(lawful)
    with forge.without_triggers(db):
        (row,) = [row for row in rows(db, "records") if row["note"] == "leaf"]
        sql, bound = change("records", row, note="loaf", body=row["body"].replace("leaf", "loaf"))
        db.execute(sql, bound)
        db.execute("UPDATE residues SET note = 'loaf' WHERE seq = ?", (row["seq"],))
        forge.rechain(db)
    assert judged(db).ok
    assert [fault.kind for fault in judged(db, against=head).faults] == ["head"]


def test_a_chain_recomputed_from_the_middle_alone_is_found(lawful: bytes, judged: Callable[..., Any]) -> None:
    """A body and its hash altered, the digest too: the successor still extends what was there before."""
    db = bare(lawful)
    with forge.without_triggers(db):
        db.execute("UPDATE records SET at_ms = 1 WHERE seq = 12")
        chained = bare(db.serialize())
        with forge.without_triggers(chained):
            forge.rechain(chained)
        (digest,) = chained.execute("SELECT digest FROM records WHERE seq = 12").fetchone()
        db.execute("UPDATE records SET digest = ? WHERE seq = 12", (digest,))
    report = judged(db)
    assert [(fault.kind, fault.where) for fault in report.faults] == [("chain", "record 13")]


def test_a_head_of_another_lineage_is_told(lawful: bytes, head: Head, judged: Callable[..., Any]) -> None:
    """A head proves something of its own lineage only."""
    other = Head("00000000-0000-4000-8000-000000000000", head.seq, head.digest)
    assert [(fault.kind, fault.where) for fault in judged(lawful, against=other).faults] == [("head", "lineage")]
    assert judged(lawful, against=head).ok


# --- blobs --------------------------------------------------------------------------------------------------------------------


BLOB_CHANGES = {
    "altered": "UPDATE blobs SET data = CAST('\x89PNG portrait' AS BLOB)",
    "of another length": "UPDATE blobs SET data = CAST(data || x'00' AS BLOB), bytes = bytes + 1",
    "removed": "DELETE FROM blobs",
    "blanked": "UPDATE blobs SET data = NULL",
    "emptied": "UPDATE blobs SET data = x'', bytes = 0",
    "under another hash": "UPDATE blobs SET hash = zeroblob(32)",
    "one too many": "INSERT INTO blobs VALUES (zeroblob(32), 1, x'00')",
}


@pytest.mark.parametrize("what", BLOB_CHANGES)
def test_a_blob_tampered_with_is_found(tampering: Tampering, what: str) -> None:
    """L11 holds of binary parts through the hash in the body; the blob is named by that hash."""
    (blob,) = tampering.rows("blobs")
    report = tampering.report((BLOB_CHANGES[what], ()))
    assert report is not None
    assert report.counts.get("blob")
    named = {fault.where for fault in report.faults if fault.kind == "blob"}
    assert f"blob {(bytes(32) if what == 'one too many' else blob['hash']).hex()}" in named


# --- records that enter through SQL and are not what they seem (the layer below: test_laws_from_a_bare_connection) --------------


def shaped(kind: str, said: Any, log: int, turn: int, **quotes: Any) -> Callable[[forge.Pen], forge.Row]:
    """A record of a kind with any body, its quotes as given."""
    return lambda pen: pen.row(kind, log, said, **{"turn": turn, "label": "", "weight": forge.weigh(*said)} | quotes)


CALL = {"type": "tool_call", "id": "y1", "name": "ral", "arguments": {}}
NAMELESS = {"type": "tool_call", "name": "ral", "arguments": {}}
CHILD = LOGS["child"]
UNSAID: dict[str, Callable[[forge.Pen], forge.Row]] = {
    "label not that of the body": lambda p: p.prompt(17, label="another"),
    "weight not that of the body": lambda p: p.prompt(17, weight=5),
    "a residue's weight": lambda p: p.evicted(12, 14, "n", reach=16, weight=5),
    "a prompt whose body is no JSON": lambda p: p.prompt(17, body="hello"),
    "a prompt whose body is no list": lambda p: p.prompt(17, body='{"role":"user","parts":[]}'),
    "a prompt of no message": shaped("prompt", [], 1, 17),
    "a prompt of something else": shaped("prompt", ["hello"], 1, 17),
    "a prompt without parts": shaped("prompt", [{"role": "user"}], 1, 17),
    "a prompt in the assistant's voice": shaped("prompt", [forge.reply("a")], 1, 17, label="a"),
    "a prompt that makes a call": shaped("prompt", [{"role": "user", "parts": [CALL]}], 1, 17),
    "a prompt that answers a call": shaped("prompt", [forge.result("y1")], 1, 17),
    "steering that makes a call": shaped("steering", [{"role": "user", "parts": [CALL]}], CHILD, 18, label=None),
    "a reply in the user's voice": shaped("assistant", [forge.user("a")], CHILD, 19, label="a"),
    "a reply of two messages": shaped("assistant", [forge.reply("a"), forge.reply("b")], CHILD, 19, label="a"),
    "a reply whose second message calls": shaped("assistant", [forge.reply("a"), forge.reply("b", "y1")], CHILD, 19, label="a"),
    "a call without an id": shaped("assistant", [{"role": "assistant", "parts": [NAMELESS]}], CHILD, 19, calls="[null]"),
    "a call with a number for an id": shaped(
        "assistant", [{"role": "assistant", "parts": [CALL | {"id": 7}]}], CHILD, 19, calls="[7]"
    ),
    "a reply that answers its own call": shaped(
        "assistant",
        [{"role": "assistant", "parts": [CALL, forge.result("y1")["parts"][0]]}], CHILD, 19, calls='["y1"]'
    ),
    "results in the user's voice": shaped(
        "tool_results",
        [{"role": "user", "parts": [forge.result(id_)["parts"][0] for id_ in ("x1", "x2")]}],
        LOGS["owing"], 2, label=None, calls='["x1","x2"]'
    ),
    "a body that nests too deep": lambda p: p.prompt(17, body='[{"role":"user","parts":' + "[" * 5000 + "]" * 5000 + "}]"),
    "a call with two ids": lambda p: p.assistant(19, log=CHILD, calls='["y1"]', label="", weight=84, body=(
        '[{"role":"assistant","parts":[{"type":"tool_call","id":"y1","id":"y2","name":"ral","arguments":{}}]}]')),
    "an eviction with two notes": lambda p: p.evicted(12, 14, "n", reach=16, body=(
        '{"from":12,"to":14,"note":"n","by":"model","reach":16,"note":"m"}')),
    "a body with space around it": lambda p: p.prompt(17, body=' [{"role":"user","parts":[]}]', label="", weight=26),
    "a blob that is not there": shaped("prompt", [{"role": "user", "parts": [
        {"type": "blob", "mime_type": "image/png", "modality": "image", "content": {"$blob": "00" * 32, "bytes": 5}}]}], 1, 17),
    "a blob whose name is none": shaped("prompt", [{"role": "user", "parts": [
        {"type": "blob", "mime_type": "image/png", "modality": "image", "content": {"$blob": "picture", "bytes": 5}}]}], 1, 17),
    "a blob whose name is a number": shaped("prompt", [{"role": "user", "parts": [
        {"type": "blob", "mime_type": "image/png", "modality": "image", "content": {"$blob": 7, "bytes": 5}}]}], 1, 17),
    "a witness whose body is no JSON": lambda p: p.witness(body="seen"),
    "a witness whose body is a list": lambda p: p.witness(body="[]"),
    "an eviction whose body says more": lambda p: p.evicted(12, 14, "n", reach=16, weight=None) | {"weight": 0},
    "a redaction whose blobs are a number": lambda p: p.redacted(9, body='{"target":9,"blobs":7}'),
    "a redaction whose blobs are lists": lambda p: p.redacted(9, body='{"target":9,"blobs":[["x"]]}'),
    "a redaction whose body is a list": lambda p: p.redacted(9, body='[9]'),
    "a hash of another body": lambda p: p.witness() | {"body_hash": forge.text_hash("{}")},
    "a digest of nothing": lambda p: p.witness() | {"digest": bytes(32)},
}  # fmt: skip


@pytest.mark.parametrize("name", UNSAID)
def test_a_record_that_is_not_what_its_kind_holds_is_found(
    lawful: bytes, judged: Callable[..., Any], name: str
) -> None:
    """SQL cannot weigh a body or compute its hash: where it lets such a record in, verify says which record it is."""
    db = bare(lawful)
    pen = forge.Pen(db)
    try:
        pen.write(UNSAID[name](pen))
    except (sqlite3.IntegrityError, sqlite3.OperationalError):
        return  # the file itself refused: better still
    report = judged(db)
    assert not report.ok
    assert "record 50" in f"{report.faults[0].where} {report.faults[0].what}", report.faults[0]


def test_a_record_that_only_a_check_kept_out_is_found(lawful: bytes, judged: Callable[..., Any]) -> None:
    """A writer may switch checks off; what enters out of shape is named."""
    odd: list[Callable[[forge.Pen], forge.Row]] = [
        lambda p: p.row("remembered", 1, {}),
        lambda p: p.prompt(17, note="n"),
        lambda p: p.prompt(17, reach=17),
        lambda p: p.prompt(17, calls='["y1"]'),
        lambda p: p.prompt(17) | {"weight": None},
        lambda p: p.prompt(17) | {"label": None},
        lambda p: p.prompt(17, origin="stolen"),
        lambda p: p.witness(turn=17, origin="own"),
        lambda p: p.witness(turn=16),
        lambda p: p.witness(reach=16),
        lambda p: p.witness() | {"digest": b"short"},
        lambda p: p.witness() | {"body_hash": b""},
        lambda p: p.evicted(12, 14, "n", reach=16, weight=-1),
    ]
    for forged in odd:
        db = bare(lawful)
        db.execute("PRAGMA ignore_check_constraints = ON")
        pen = forge.Pen(db)
        row = pen.write(forged(pen))
        report = judged(db)
        assert not report.ok, row
        assert report.faults[0].where in (f"record {row['seq']}", "integrity_check"), (row, report.faults)


def test_a_fold_row_held_back_is_found(lawful: bytes, judged: Callable[..., Any]) -> None:
    """A writer's own temporary trigger can swallow a fold row while its record enters: verify says what the file is short of."""
    for table in ("residues", "locations", "standing"):
        db = bare(lawful)
        db.execute(f"CREATE TEMP TRIGGER thief BEFORE INSERT ON main.{table} BEGIN SELECT RAISE(IGNORE); END")
        pen = forge.Pen(db)
        try:
            pen.write(pen.evicted(12, 14, "n", reach=16))
        except sqlite3.IntegrityError:
            continue  # another guard missed the row first
        report = judged(db)
        assert not report.ok
        assert table in report.faults[0].where


def test_what_a_connection_with_functions_of_its_own_wrote_is_found(lawful: bytes, judged: Callable[..., Any]) -> None:
    """What is not promised: a connection may put its own function in place of one that the triggers call. Verify calls none."""
    lies = {
        ("length", 1): (lambda value: min(len(value), 240), lambda p: p.evicted(12, 14, "n" * 300, reach=16), "L9"),
        ("glob", 2): (lambda pattern, text: 0, lambda p: p.evicted(12, 14, "two\nlines", reach=16), "L9"),
    }
    for (name, arguments), (lie, forged, said) in lies.items():
        honest, db = bare(lawful), bare(lawful)
        db.create_function(name, arguments, lie)
        pen = forge.Pen(db)
        row = forged(pen)
        with contextlib.suppress(sqlite3.IntegrityError):
            forge.Pen(honest).write(dict(row))
            pytest.fail(f"{name} is not what keeps this out")
        pen.write(row)
        report = judged(db)
        assert any(said in f"{fault.kind} {fault.what}" for fault in report.faults), (name, report.faults)


def test_an_altered_body_is_neither_read_nor_rendered(lawful_copy: Path) -> None:
    """L11: what is shown was re-hashed first, of a resident turn and one that left, now and in the past; or nothing is."""
    with contextlib.closing(sqlite3.connect(lawful_copy, isolation_level=None)) as db, forge.without_triggers(db):
        db.execute("UPDATE records SET body = replace(body, 'going', 'gonig') WHERE turn = 11 AND log = 1")
        (seq,) = db.execute("SELECT seq FROM records WHERE body LIKE '%gonig%'").fetchone()
    with Archive.open(lawful_copy) as archive:
        trunk, child = archive.trunk, archive.log("child")
        asked = [
            lambda: trunk.read([11]),
            lambda: child.read([11]),
            lambda: trunk.render(at=seq),
            child.render,
            lambda: child.render("anthropic"),
            lambda: trunk.grep("gonig"),
        ]
        for ask in asked:
            with pytest.raises(BadFile, match="run verify"):
                ask()
        assert trunk.read([12])


# --- redaction (L12) -------------------------------------------------------------------------------------------------------------


def redacted(data: bytes, *kinds: str) -> bytes:
    """The file with the trunk's first record of each kind blanked as the law allows."""
    db = bare(data)
    pen = forge.Pen(db)
    for kind in kinds:
        seq, body = db.execute(
            "SELECT seq, body FROM records WHERE kind = ? AND log = 1 ORDER BY seq", (kind,)
        ).fetchone()
        pen.write(pen.redacted(seq, blobs=forge.holes(body)))
        forge.blank(db, seq)
    return db.serialize()


REDACTED_KINDS = ("prompt", "assistant", "tool_results", "steering", "evicted", "rewound", "usage")


def test_a_redacted_file_is_lawful_and_says_what_is_redacted(lawful: bytes, judged: Callable[..., Any]) -> None:
    """L12: blanked records keep their places in chain and fold."""
    report = judged(redacted(lawful, *REDACTED_KINDS))
    assert report.ok, report.faults[:3]
    assert len(report.redacted) == len(REDACTED_KINDS)


def test_a_body_blanked_without_a_redaction_is_found(tampering: Tampering) -> None:
    """L12: only a recorded redaction explains a blank."""
    for row in tampering.rows("records"):
        report = tampering.report(("UPDATE records SET body = NULL WHERE seq = ?", (row["seq"],)))
        assert report is not None
        assert not report.ok
        assert report.faults[0].where == f"record {row['seq']}"


def test_a_redaction_explains_no_other_blank(lawful: bytes) -> None:
    """L12: nor a body in the blank's place, nor a blob that is gone."""
    copy = Tampering(redacted(lawful, "usage"))
    for seq in (1, 10, 50):
        report = copy.report(("UPDATE records SET body = NULL WHERE seq = ?", (seq,)))
        assert report is not None
        assert not report.ok, seq
    report = copy.report(("UPDATE records SET body = '{}' WHERE body IS NULL", ()))
    assert report is not None
    assert not report.ok
    for sql in (
        "DELETE FROM blobs",
        "UPDATE blobs SET data = NULL",
        "INSERT INTO blobs VALUES (zeroblob(32), 1, x'00')",
    ):
        report = copy.report((sql, ()))
        assert report is not None
        assert not report.ok, sql


def test_a_redaction_that_takes_a_blob_others_still_show_is_found(lawful: bytes, judged: Callable[..., Any]) -> None:
    """L12: a blob that a record still shows is kept by the file, and missed by the judge where it went all the same."""
    db = bare(lawful)
    pen = forge.Pen(db)
    (blob,) = rows(db, "blobs")
    pen.write(pen.redacted(9, blobs=[blob["hash"].hex()]))
    with pytest.raises(sqlite3.IntegrityError, match="L1: a blob"):
        forge.blank(db, 9)
    with forge.without_triggers(db):
        db.execute("UPDATE blobs SET data = NULL")
    report = judged(db)
    assert not report.ok
    assert report.faults[0].where == "record 3"


def test_what_is_left_of_a_redacted_record_is_what_the_redaction_says(
    lawful: bytes, judged: Callable[..., Any]
) -> None:
    """L12: a part may go and the rest stay; another rest is refused by the file, and found where it got in."""
    for left, kept, fault in (
        ("[redacted]", "[redacted]", None),
        ("[redacted]", "something else", "body"),
        ("something else", "something else", "law"),
    ):
        db = bare(lawful)
        pen = forge.Pen(db)
        body = forge.compact([forge.user(kept)])
        pen.write(pen.redacted(12, left=forge.compact([forge.user(left)])))
        if fault:
            with pytest.raises(sqlite3.IntegrityError, match="L1: "):
                forge.blank(db, 12, body)
        with forge.without_triggers(db) if fault else contextlib.nullcontext():
            forge.blank(db, 12, body)
        report = judged(db)
        assert report.ok == (fault is None), report.faults[:3]
        assert not fault or (report.faults[0].kind, report.faults[0].where) == (fault, "record 12")


def unknowable(column: str, was: Any, value: Any) -> bool:
    """What a blanked record's body alone could have contradicted, and no other row does: its weight, the order of its calls."""
    return column == "weight" or (column == "calls" and sorted(json.loads(was)) == sorted(json.loads(value)))


def test_a_change_to_a_blanked_record_is_found_unless_its_body_alone_could_tell(lawful: bytes) -> None:
    """L12: a blank has no label, no note and no other body; its chained columns and its fold are as firm as any record's."""
    walk = Walk(Tampering(redacted(lawful, *REDACTED_KINDS)), "records")
    walk.walk([row for row in walk.held if row["body"] is None], unknowable)
    walk.ends()
    assert walk.made >= len(REDACTED_KINDS) * len(walk.types)


# --- the schema -----------------------------------------------------------------------------------------------------------------


def rewritten(data: bytes, sql: str, values: tuple[Any, ...] = ()) -> bytes:
    """The file after a statement against its own schema table."""
    db = bare(data)
    db.execute("PRAGMA writable_schema = ON")
    db.execute(sql, values)
    return db.serialize()


@pytest.mark.parametrize("what", OBJECTS)
def test_a_missing_or_altered_object_is_named(lawful: bytes, judged: Callable[..., Any], what: str) -> None:
    """Each table, index, trigger and view: dropped by force, and altered by as little as a comment."""
    _, name = what.split()
    altered = rewritten(lawful, "UPDATE sqlite_schema SET sql = sql || ' /* so */' WHERE name = ?", (name,))
    report = judged(altered)
    assert ("schema", what, "altered") in [(fault.kind, fault.where, fault.what) for fault in report.faults]
    assert report.faults[0].where == what
    missing = rewritten(lawful, "DELETE FROM sqlite_schema WHERE name = ?", (name,))
    report = judged(missing)
    if what == "view edits" or what.startswith("table "):
        # what hangs on it no longer parses, and SQLite reads none of the file
        assert report.faults[0].kind in ("schema", "unreadable")
        assert name in f"{report.faults[0].where} {report.faults[0].what}"
    else:
        assert report.faults[0].kind == "schema"
        assert ("schema", what, "missing") in [(fault.kind, fault.where, fault.what) for fault in report.faults]


ADDED = {
    "trigger helper": "CREATE TRIGGER helper AFTER INSERT ON records BEGIN SELECT 1; END",
    "trigger looser": "CREATE TRIGGER looser BEFORE INSERT ON standing BEGIN SELECT RAISE(IGNORE); END",
    "view mine": "CREATE VIEW mine AS SELECT * FROM records",
    "index quicker": "CREATE INDEX quicker ON records (at_ms)",
    "table extra": "CREATE TABLE extra (x)",
    "table fts": "CREATE VIRTUAL TABLE fts USING fts5 (x)",
}


def test_the_statistics_an_auditor_gathers_are_no_fault(lawful: bytes, judged: Callable[..., Any]) -> None:
    """ANALYZE adds a table of SQLite's own; it tells the planner things and nobody else."""
    db = bare(lawful)
    db.execute("ANALYZE")

    report = judged(db)

    assert report.ok, report.first


@pytest.mark.parametrize("what", ADDED)
def test_an_extra_object_is_named(lawful: bytes, judged: Callable[..., Any], what: str) -> None:
    """What is not ours is named, though it harms nothing today."""
    db = bare(lawful)
    db.execute(ADDED[what])
    report = judged(db)
    assert ("schema", what, "not ours") in [(fault.kind, fault.where, fault.what) for fault in report.faults]
    assert report.faults[0].kind == "schema"


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE records ADD COLUMN extra TEXT",
        "ALTER TABLE blobs DROP COLUMN data",
        "ALTER TABLE residues RENAME TO residue",
        "ALTER TABLE records RENAME COLUMN at_ms TO time_ms",
        "DROP TABLE standing",
        "DROP TABLE records",
        "DROP TABLE lineage",
        "DROP VIEW state",
    ],
)
def test_a_table_made_otherwise_is_found(lawful: bytes, judged: Callable[..., Any], sql: str) -> None:
    """ALTER and DROP, with whatever they take along: verify reports, and raises nothing."""
    db = bare(lawful)
    with forge.without_triggers(db, restore=False):
        if sql.startswith("ALTER"):
            for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall():
                db.execute(f"DROP VIEW {name}")
            if "DROP COLUMN" in sql:
                db.execute("PRAGMA writable_schema = ON")
                sql = "UPDATE sqlite_schema SET sql = replace(sql, 'data  BLOB,', '') WHERE name = 'blobs'"
        db.execute(sql)
    report = judged(db)
    assert not report.ok
    assert report.faults[0].kind in ("schema", "unreadable")


def test_triggers_dropped_for_good_are_all_named_beside_what_was_done_meanwhile(
    lawful: bytes, judged: Callable[..., Any]
) -> None:
    """Not restored: each is missing, and the altered record is still found."""
    db = bare(lawful)
    with forge.without_triggers(db, restore=False):
        db.execute("UPDATE records SET label = 'x' WHERE seq = 12")
    report = judged(db)
    triggers = {what for what in OBJECTS if what.startswith("trigger ")}
    assert {fault.where for fault in report.faults if fault.what == "missing"} == triggers
    assert ("quote", "record 12") in [(fault.kind, fault.where) for fault in report.faults]


def test_triggers_dropped_and_put_back_leave_no_trace_but_the_data(lawful: bytes, judged: Callable[..., Any]) -> None:
    """The method of this file, done in full once: to the letter the schema is the same, and the change is what is found."""
    db = bare(lawful)
    with forge.without_triggers(db):
        pass
    assert judged(db).ok
    with forge.without_triggers(db):
        db.execute("UPDATE records SET label = 'x' WHERE seq = 12")
    assert [(fault.kind, fault.where) for fault in judged(db).faults] == [("quote", "record 12")]


# --- the file -------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def copied(lawful_file: Path, tmp_path: Path) -> Path:
    """The lawful file, copied."""
    path = tmp_path / "copy.exarch"
    shutil.copy(lawful_file, path)
    return path


@pytest.mark.parametrize(
    ("pragma", "words"),
    [
        ("application_id = 0", "application_id 0x0 instead of 0x65787371"),
        ("application_id = 1702392690", "application_id 0x65787372 instead of 0x65787371"),
        ("user_version = 0", "format 0 instead of 1"),
        ("user_version = 2", "format 2 instead of 1: a newer"),
        ("user_version = -1", "format"),
    ],
)
def test_a_foreign_mark_in_the_header_is_refused_with_got_and_want(copied: Path, pragma: str, words: str) -> None:
    """Design section 3: not ours, or newer: refused, and left untouched."""
    with sqlite3.connect(copied) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute(f"PRAGMA {pragma}")
    db.close()
    before = copied.read_bytes()
    for opening in (
        Archive.open,
        lambda path: Archive.open(path, readonly=True),
        lambda path: open_unjudged(str(path)),
    ):
        with pytest.raises(BadFile, match=words):
            opening(copied)
    assert copied.read_bytes() == before


def test_a_file_whose_schema_differs_opens_for_judgement_alone(copied: Path) -> None:
    """Archive.open names the object and refuses; an unjudged connection lets verify list them all."""
    with sqlite3.connect(copied) as db:
        db.execute("DROP TRIGGER records_are_kept")
        db.execute("CREATE VIEW mine AS SELECT 1")
    db.close()
    before = copied.read_bytes()
    with pytest.raises(BadFile, match="trigger records_are_kept is missing"):
        Archive.open(copied)
    unjudged = open_unjudged(str(copied))
    report = verify.verify(unjudged)
    unjudged.close()
    assert [(fault.where, fault.what) for fault in report.faults] == [
        ("trigger records_are_kept", "missing"), ("view mine", "not ours")
    ]  # fmt: skip
    assert copied.read_bytes() == before


def test_a_schema_that_does_not_parse_is_reported(lawful: bytes, judged: Callable[..., Any], copied: Path) -> None:
    """A hostile schema is a fault like another: verify says so, Archive.open refuses, neither raises what is not ours."""
    broken = "UPDATE sqlite_schema SET sql = 'CREATE VIEW frontier AS SELEKT' WHERE name = 'frontier'"
    assert not judged(rewritten(lawful, broken)).ok
    with sqlite3.connect(copied) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute(broken)
    db.close()
    with pytest.raises(BadFile):
        Archive.open(copied)


WRONG = {"INTEGER": ["five", b"5", 5.5], "TEXT": [b"\xff\xfe", 5, "\0"], "BLOB": ["text", 5]}


@pytest.mark.parametrize("table", TABLES)
def test_a_value_of_another_type_is_found(lawful: bytes, judged: Callable[..., Any], table: str) -> None:
    """With STRICT written out of the schema and in again, a column may hold anything: a fault, and no stumbling."""
    (strict,) = SCHEMA_DB.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    lax = strict.replace(") STRICT, WITHOUT ROWID", ") WITHOUT ROWID").replace(") STRICT", ")")
    update = "UPDATE sqlite_schema SET sql = ? WHERE name = ?"
    base = rewritten(lawful, update, (lax, table))
    missed = []
    for _, column, type_, *_ in SCHEMA_DB.execute(f"PRAGMA table_info({table})").fetchall():
        for value in WRONG[type_]:
            db = bare(base)
            with forge.without_triggers(db):
                db.execute("PRAGMA ignore_check_constraints = ON")
                bound = "CAST(? AS TEXT)" if type_ == "TEXT" and isinstance(value, bytes) else "?"
                key = "rowid" if table == "blobs" else next(iter(forge.unique_keys(db, table)[-1][0]))
                try:
                    db.execute(
                        f"UPDATE {table} SET {column} = {bound} WHERE {key} = (SELECT max({key}) FROM {table})",
                        (value,),
                    )
                except (sqlite3.IntegrityError, sqlite3.OperationalError):
                    continue  # a rowid holds nothing but a number
            data = rewritten(db.serialize(), update, (strict, table))
            try:
                if judged(data).ok:
                    missed.append(f"{column} = {value!r}: not found")
            except Exception as error:
                missed.append(f"{column} = {value!r}: {error!r}")
    assert not missed, "\n".join([f"{len(missed)} of another type", *missed])


def test_bytes_damaged_anywhere_are_found_or_are_of_no_matter(lawful: bytes, judged: Callable[..., Any]) -> None:
    """One to four bytes of the file overwritten, 150 times over: a fault, unless every row reads as it did."""
    chance = random.Random(1702392689)  # noqa: S311  (the same bytes every time)
    before = forge.content(bare(lawful))
    stumbled, missed, found = [], [], 0
    for _ in range(150):
        data = bytearray(lawful)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(100, len(data))] = chance.randrange(256)
        try:
            report = judged(bytes(data))
        except Exception as error:
            stumbled.append(repr(error))
            continue
        found += not report.ok
        if report.ok and forge.content(bare(bytes(data))) != before:
            missed.append(data)
    assert not stumbled, "\n".join([f"verify stumbled {len(stumbled)} times", *(one[:120] for one in stumbled[:5])])
    assert not missed
    assert found > 30


def test_a_file_cut_short_is_found(lawful: bytes, judged: Callable[..., Any]) -> None:
    """Whole pages gone from the end."""
    for pages in (1, 2, 5):
        assert not judged(lawful[: -4096 * pages]).ok


def test_a_head_of_the_wrong_kind_is_the_callers_mistake_not_the_files(lawful_file: Path) -> None:
    """Past fault: the report said that the file was unreadable."""
    with Archive.open(lawful_file, readonly=True) as archive, pytest.raises(Refused, match="against is a Head"):
        archive.verify(against=archive.head().to_dict())
