"""The laws hold on any connection: Python's own sqlite3 against a copy of a lawful file.

Method: every attack is made through a bare connection, with nothing of the package loaded into it, under the settings an attacker
would choose. The file must refuse, and hold exactly what it held. Tables, keys and columns are walked, not listed; spans, anchors
and fold rows are tried exhaustively, and what may enter is worked out from the laws, not from what entered.
"""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import forge
import pytest
from conftest import LOGS
from forge import CONFLICT_CLAUSES, bare, content, rows, undone

from exarch_sql import Archive, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SCHEMA_DB = bare()
SCHEMA_DB.executescript(forge.SCHEMA)
TABLES = forge.tables(SCHEMA_DB)
FOLD_TABLES = ("logs", "ancestry", "residues", "locations", "withdrawals", "standing")

# what an attacker sets first; the last three are the build's own defaults turned the other way
SETTINGS = {
    "as it comes": "",
    "recursive triggers off": "PRAGMA recursive_triggers = OFF",
    "recursive triggers on": "PRAGMA recursive_triggers = ON; PRAGMA foreign_keys = ON",
    "everything off": "PRAGMA recursive_triggers = OFF; PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON",
    "in a transaction": "PRAGMA recursive_triggers = OFF; PRAGMA ignore_check_constraints = ON; BEGIN",
}


@pytest.fixture(params=SETTINGS)
def attacked(request: pytest.FixtureRequest, db: sqlite3.Connection) -> sqlite3.Connection:
    """A copy of the lawful file under each of the settings."""
    db.executescript(SETTINGS[request.param])
    return db


class Siege:
    """Attacks on one database: each is refused in the name of a law, and changes nothing."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.before = content(db)
        self.faults: list[str] = []
        self.attacks = 0

    def try_(
        self,
        sql: str,
        values: tuple[Any, ...] = (),
        *,
        law: str | tuple[str, ...] = "L",
        silent: bool = False,
        name: str = "",
    ) -> None:
        """Make one attack. ``law`` is what the refusal begins with; ``silent``: it may also do nothing without a word."""
        self.attacks += 1
        said, name = None, name or f"{sql} {values}"
        count = self.db.total_changes
        self.db.execute("SAVEPOINT attack")
        try:
            self.db.execute(sql, values).fetchall()
        except sqlite3.IntegrityError as refusal:
            said = str(refusal)
        if said is None and not silent:
            self.faults.append(f"accepted: {name}")
        elif said is not None and not said.startswith(law):
            self.faults.append(f"refused for another reason ({said}): {name}")
        if (said is None or self.db.total_changes != count) and content(self.db) != self.before:
            self.faults.append(f"changed something: {name}")
        if self.db.in_transaction:  # OR ROLLBACK ends the transaction, savepoint and all
            self.db.execute("ROLLBACK TO attack")
            self.db.execute("RELEASE attack")

    def insert(self, table: str, row: forge.Row, clause: str = "INSERT", **options: Any) -> None:
        """Attack with one row."""
        marks = ", ".join("?" * len(row))
        shown = {name: value for name, value in row.items() if value is not None and not isinstance(value, bytes)}
        sql = f"{clause} INTO {table} ({', '.join(row)}) VALUES ({marks})"
        self.try_(sql, tuple(row.values()), name=f"{clause} INTO {table}: {shown}", **options)

    def ends(self, *, attacks_at_least: int = 1) -> None:
        """Nothing got through; not now, and not when a transaction that stood open is committed."""
        if self.db.in_transaction:
            self.db.execute("COMMIT")
        assert content(self.db) == self.before
        if self.faults:
            first = [fault[:200] for fault in self.faults[:6]]
            pytest.fail("\n".join([f"{len(self.faults)} faults in {self.attacks} attacks", *first]), pytrace=False)
        assert self.attacks >= attacks_at_least


def other_values(value: Any, also: list[Any]) -> list[Any]:
    """Plausible other values for a field: a neighbour of its own, and what other rows hold in that column."""
    match value:
        case int():
            near = [one for one in (value + 1, value - 1) if abs(one) < 2**63]
        case str():
            near = [value + "x"]
        case bytes():
            near = [bytes([value[0] ^ 1]) + value[1:]] if value else [b"x"]
        case _:
            near = []
    if value is not None:
        near.append(None)
    return near + [one for one in dict.fromkeys(also) if one != value][:2]


# --- what is recorded stays (L1) --------------------------------------------------------------------------------------


def test_the_lawful_file_has_rows_in_every_table(db: sqlite3.Connection) -> None:
    """An attack on an empty table proves nothing."""
    assert set(forge.tables(db)) == set(TABLES) > set(FOLD_TABLES)
    assert all(rows(db, table) for table in TABLES)
    assert {row["kind"] for row in rows(db, "records")} == {
        *forge.MAKES_TURNS, *forge.WITNESSES, "opened", "evicted", "rewound", "cleared"
    }  # fmt: skip
    states = dict(db.execute("SELECT name, state FROM state").fetchall())
    assert states == {
        "trunk": "ready", "child": "answered", "heir": "prompted", "grandchild": "prompted", "owing": "owing", "empty": "ready"
    }  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
def test_no_row_is_updated(attacked: sqlite3.Connection, table: str) -> None:
    """L1: UPDATE, under every conflict clause, of every column of every table, to its own value and to another."""
    siege = Siege(attacked)
    law = ("L1: ", "datatype mismatch")  # SQLite's own word where a rowid would become NULL
    for column in forge.columns_of(attacked, table):
        values = [row[column] for row in rows(attacked, table)]
        for verb in ("UPDATE", "UPDATE OR REPLACE", "UPDATE OR IGNORE", "UPDATE OR FAIL", "UPDATE OR ROLLBACK"):
            siege.try_(f"{verb} {table} SET {column} = {column}", law=law)
            siege.try_(f"{verb} {table} SET {column} = ?", (values[0],), law=law)
        for value in other_values(values[0], values):
            siege.try_(f"UPDATE {table} SET {column} = ? RETURNING *", (value,), law=law)
            siege.try_(f"UPDATE {table} SET {column} = ? FROM (SELECT 1)", (value,), law=law)
    siege.ends(attacks_at_least=25)


@pytest.mark.parametrize("table", TABLES)
def test_no_row_is_deleted(attacked: sqlite3.Connection, table: str) -> None:
    """L1, and L8 for ground: DELETE of all, of each row, with RETURNING and LIMIT."""
    siege = Siege(attacked)
    law = "L8: " if table == "standing" else "L1: "
    siege.try_(f"DELETE FROM {table}", law=law)
    siege.try_(f"DELETE FROM {table} RETURNING *", law=law)
    siege.try_(f"WITH gone AS (SELECT 1) DELETE FROM {table} WHERE EXISTS (SELECT * FROM gone)", law=law)
    (limited,) = attacked.execute("SELECT sqlite_compileoption_used('ENABLE_UPDATE_DELETE_LIMIT')").fetchone()
    if limited:
        siege.try_(f"DELETE FROM {table} LIMIT 1", law=law)
    for row in rows(attacked, table):
        test = " AND ".join(f"{column} IS ?" for column in row)
        siege.try_(f"DELETE FROM {table} WHERE {test}", tuple(row.values()), law=law)
    siege.ends(attacks_at_least=4)


@pytest.mark.parametrize("table", TABLES)
def test_no_row_is_replaced(attacked: sqlite3.Connection, table: str) -> None:
    """L1: on every unique key, a row that takes it, the rest the same or altered, under every conflict clause.

    INSERT OR REPLACE walks past UPDATE and DELETE triggers unless recursive triggers are on.
    """
    siege = Siege(attacked)
    for (key, _), row in itertools.product(forge.unique_keys(attacked, table), rows(attacked, table)[:5]):
        if any(row[name] is None for name in key):
            continue
        altered = {name: value if name in key else another(value) for name, value in row.items()}
        for one, clause in itertools.product((row, altered), CONFLICT_CLAUSES):
            siege.insert(table, one, clause)
        siege.insert(table, freed_of_other_keys(attacked, table, row, key), "INSERT OR REPLACE")
    siege.ends(attacks_at_least=14)


@pytest.mark.parametrize("table", TABLES)
def test_no_row_is_upserted(attacked: sqlite3.Connection, table: str) -> None:
    """L1: ON CONFLICT DO UPDATE and DO NOTHING on every unique key, with every column as the one to change."""
    siege = Siege(attacked)
    for (key, condition), row in itertools.product(forge.unique_keys(attacked, table), rows(attacked, table)[:1]):
        target = f"({', '.join(key)}){condition}"
        marks = ", ".join("?" * len(row))
        for column in row:
            for act in (f"DO UPDATE SET {column} = excluded.{column}", f"DO UPDATE SET {column} = NULL", "DO NOTHING"):
                sql = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) ON CONFLICT {target} {act}"
                siege.try_(sql, tuple(row.values()))
    siege.ends(attacks_at_least=9)


def another(value: Any) -> Any:
    """Another value of the same type."""
    return (other_values(value, []) or [1])[0]


def freed_of_other_keys(db: sqlite3.Connection, table: str, row: forge.Row, key: tuple[str, ...]) -> forge.Row:
    """The row with every unique key but this one made new: the next number, another name."""
    free = dict(row)
    for names, _ in forge.unique_keys(db, table):
        for name in set(names) - set(key):
            if isinstance(row[name], int):
                (free[name],) = db.execute(f"SELECT max({name}) + 1 FROM {table}").fetchone()
            elif isinstance(row[name], str):
                free[name] = row[name] + " again"
    return free


@pytest.mark.parametrize("clause", CONFLICT_CLAUSES)
def test_a_taken_key_is_refused_on_an_otherwise_lawful_record(attacked: sqlite3.Connection, clause: str) -> None:
    """L1: OR REPLACE with the next seq and a taken (log, key) would erase the record that took it first."""
    siege, pen = Siege(attacked), forge.Pen(attacked)
    for key in ("first", "rewrite"):
        siege.insert("records", pen.witness(key=key), clause, law="L1: this key")
        siege.insert("records", pen.prompt(17, key=key), clause, law="L1: this key")
        siege.insert("records", pen.evicted(12, 12, "n", reach=16, key=key), clause, law="L1: this key")
    siege.ends()


def test_the_same_key_is_free_in_another_log(pen: forge.Pen, judged: Callable[..., Any]) -> None:
    """A key is unique in its log, no further: the guard must not refuse what is lawful."""
    pen.write(pen.prompt(19, log=LOGS["child"], key="first"))
    assert judged(pen.db).ok


# --- records out of order, out of place, out of shape (L2, L3, L11, L13) -----------------------------------------------

Case = tuple[str, "Callable[[forge.Pen], forge.Row]"]  # what the refusal begins with, the record

ORDER: dict[str, Case] = {
    "seq taken": ("L2", lambda p: p.witness(seq=1)),
    "seq of the newest": ("L2", lambda p: p.witness(seq=49)),
    "seq with a gap": ("L2", lambda p: p.witness(seq=51)),
    "seq far away": ("L2", lambda p: p.witness(seq=2**63 - 1)),
    "seq zero": ("L2", lambda p: p.witness(seq=0)),
    "seq negative": ("L2", lambda p: p.witness(seq=-1)),
    "seq left to SQLite": ("L2", lambda p: p.witness() | {"seq": None}),
    "no body": ("L11", lambda p: p.witness() | {"body": None}),
    "log unknown": ("L13", lambda p: p.witness(log=7)),
    "log zero": ("L13", lambda p: p.prompt(1, log=0)),
    "log missing": ("L13", lambda p: p.witness() | {"log": None}),
    "turn id taken": ("L3", lambda p: p.prompt(16)),
    "turn id with a gap": ("L3", lambda p: p.prompt(18)),
    "turn id of a withdrawn turn": ("L3", lambda p: p.prompt(13)),
    "turn id missing": ("L3", lambda p: p.prompt(17) | {"turn": None}),
    "reply's id taken": ("L3", lambda p: p.assistant(18, log=LOGS["child"])),
    "turn id of the parent, in a fork": ("L3", lambda p: p.assistant(15, log=LOGS["heir"])),
    "turn id the parent went on to, in a fork": ("L3", lambda p: p.assistant(17, log=LOGS["heir"])),
}
STATES: dict[str, Case] = {
    "prompt while owing": ("L4", lambda p: p.prompt(3, log=LOGS["owing"])),
    "reply while owing": ("L4", lambda p: p.assistant(3, log=LOGS["owing"])),
    "imported reply while owing": ("L4", lambda p: p.assistant(3, log=LOGS["owing"], origin="import")),
    "steering while owing": ("L4", lambda p: p.steering(2, log=LOGS["owing"])),
    "reply when ready": ("L4", lambda p: p.assistant(17)),
    "reply in an empty log": ("L4", lambda p: p.assistant(1, log=LOGS["empty"])),
    "steering when ready": ("L4", lambda p: p.steering(16)),
    "steering in an empty log": ("L4", lambda p: p.steering(1, log=LOGS["empty"])),
    "steering on a turn of the parent": ("L13", lambda p: p.steering(14, log=LOGS["heir"])),
    "steering on a turn not the newest": ("L13", lambda p: p.steering(17, log=LOGS["child"])),
    "steering on the turn to come": ("L13", lambda p: p.steering(19, log=LOGS["child"])),
    "result nobody waits for": ("L4", lambda p: p.tool_results(16, "d1")),
    "result doubled afterwards": ("L4", lambda p: p.tool_results(18, "e1", log=LOGS["child"])),
    "result for an inherited call": ("L4", lambda p: p.tool_results(15, "d1", log=LOGS["heir"])),
    "one of two results": ("L4", lambda p: p.tool_results(2, "x1", log=LOGS["owing"])),
    "no result at all": ("L4", lambda p: p.tool_results(2, log=LOGS["owing"])),
    "one result twice": ("L4", lambda p: p.tool_results(2, "x1", "x1", log=LOGS["owing"])),
    "a result too many": ("L4", lambda p: p.tool_results(2, "x1", "x2", "x3", log=LOGS["owing"])),
    "a result for another call": ("L4", lambda p: p.tool_results(2, "x1", "d1", log=LOGS["owing"])),
    "results on another turn": ("L4", lambda p: p.tool_results(1, "x1", "x2", log=LOGS["owing"])),
    "results that are not in the body": (
        "L4",
        lambda p: p.tool_results(2, "x1", log=LOGS["owing"], calls='["x1","x2"]'),
    ),
    "results whose calls are missing": ("L4", lambda p: p.tool_results(2, "x1", "x2", log=LOGS["owing"], calls="[]")),
    "a forced eviction while owing": ("L4", lambda p: p.evicted(1, 1, None, reach=2, log=LOGS["owing"])),
    "a rewind while owing": ("L10", lambda p: p.rewound(1, reach=2, log=LOGS["owing"])),
    "a clear while owing": ("L10", lambda p: p.cleared(reach=2, log=LOGS["owing"])),
    "a call that is not in the body": ("L4", lambda p: p.assistant(19, log=LOGS["child"], calls='["y1"]')),
    "a call that only the body knows": (
        "L4",
        lambda p: p.assistant(19, "x", "y1", log=LOGS["child"]) | {"calls": None},
    ),
    "calls in another order": (
        "L4",
        lambda p: p.assistant(19, "x", "y1", "y2", log=LOGS["child"], calls='["y2","y1"]'),
    ),
    "one call id twice": ("L4", lambda p: p.assistant(19, "x", "y1", "y1", log=LOGS["child"])),
}


def evicted_with(note: str) -> Callable[[forge.Pen], forge.Row]:
    """A lawful eviction but for its note."""
    return lambda p: p.evicted(12, 14, note, reach=16)


EVICTIONS: dict[str, Case] = {
    "ends reversed": ("L5", lambda p: p.evicted(14, 12, "n", reach=16)),
    "from zero": ("L5", lambda p: p.evicted(0, 12, "n", reach=16)),
    "past the reach": ("L5", lambda p: p.evicted(12, 17, "n", reach=16)),
    "from inside a residue": ("L5", lambda p: p.evicted(7, 12, "n", reach=16)),
    "to inside a residue": ("L5", lambda p: p.evicted(1, 7, "n", reach=16)),
    "within a residue": ("L5", lambda p: p.evicted(2, 3, "n", reach=16)),
    "over the departed half of a residue": ("L5", lambda p: p.evicted(1, 3, "n", reach=16)),
    "from a withdrawn turn": ("L5", lambda p: p.evicted(13, 14, "n", reach=16)),
    "to a withdrawn turn": ("L5", lambda p: p.evicted(12, 13, "n", reach=16)),
    "a withdrawn turn alone": ("L5", lambda p: p.evicted(13, 13, "n", reach=16)),
    "the turn being written": ("L5", lambda p: p.evicted(18, 18, "n", reach=18, log=LOGS["child"])),
    "up to the turn being written": ("L5", lambda p: p.evicted(16, 18, "n", reach=18, log=LOGS["child"])),
    "the reply that owes": ("L5", lambda p: p.evicted(2, 2, "n", reach=2, log=LOGS["owing"])),
    "forced, the turn being written": ("L5", lambda p: p.evicted(16, 18, None, reach=18, log=LOGS["child"])),
    "in an empty log": ("L5", lambda p: p.evicted(1, 1, "n", reach=0, log=LOGS["empty"])),
    "what was cleared": ("L5", lambda p: p.evicted(1, 1, "n", reach=19, log=LOGS["grandchild"])),
    "reach not that of the log": ("L3", lambda p: p.evicted(12, 14, "n", reach=15)),
    "reach missing": ("L3", lambda p: p.evicted(12, 14, "n", reach=16) | {"reach": None}),
    "forced, over exactly one residue": ("L9", lambda p: p.evicted(6, 10, None, reach=16)),
    "forced, with a note": ("L9", lambda p: p.evicted(12, 14, "n", reach=16, author="harness")),
    "a model's, without a note": ("L9", lambda p: p.evicted(12, 14, None, reach=16, author="model")),
    "by somebody else": ("L9", lambda p: p.evicted(12, 14, None, reach=16, author="auditor")),
    "by nobody": ("L9", lambda p: p.evicted(12, 14, None, reach=16) | {"author": None}),
    "without a weight": ("L9", lambda p: p.evicted(12, 14, "n", reach=16) | {"weight": None}),
    "note of no byte": ("L9", evicted_with("")),
    "note of 241 bytes": ("L9", evicted_with("x" * 241)),
    "note of 242 bytes in 121 characters": ("L9", evicted_with("é" * 121)),
    **{
        f"note with U+{ord(char):04X}": ("L9", evicted_with(f"a{char}b"))
        for char in "\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029\0"
    },
    "note of a line break alone": ("L9", evicted_with("\n")),
    "note with a line break behind a NUL": ("L9", evicted_with("a\0b\n")),
    "span not that of the body": ("L5", lambda p: p.evicted(12, 14, "n", reach=16, body=forge.compact(
        {"from": 12, "to": 12, "note": "n", "by": "model", "reach": 16}))),
    "note not that of the body": ("L5", lambda p: p.evicted(12, 14, "n", reach=16, body=forge.compact(
        {"from": 12, "to": 14, "note": "m", "by": "model", "reach": 16}))),
    "author not that of the body": ("L5", lambda p: p.evicted(12, 14, "n", reach=16, body=forge.compact(
        {"from": 12, "to": 14, "note": "n", "by": "harness", "reach": 16}))),
    "reach not that of the body": ("L5", lambda p: p.evicted(12, 14, "n", reach=16, body=forge.compact(
        {"from": 12, "to": 14, "note": "n", "by": "model", "reach": 15}))),
    "a body that is no JSON": ("L5", lambda p: p.evicted(12, 14, "n", reach=16, body="12 to 14")),
    "a body that is a list": ("L5", lambda p: p.evicted(12, 14, "n", reach=16, body="[12,14]")),
}  # fmt: skip
WITHDRAWALS: dict[str, Case] = {
    "rewind into a residue": ("L10", lambda p: p.rewound(3, reach=16)),
    "rewind to the end of a residue": ("L10", lambda p: p.rewound(10, reach=16)),
    "rewind to a withdrawn turn": ("L10", lambda p: p.rewound(13, reach=16)),
    "rewind to a turn to come": ("L10", lambda p: p.rewound(17, reach=16)),
    "rewind to zero": ("L10", lambda p: p.rewound(0, reach=16)),
    "rewind in an empty log": ("L10", lambda p: p.rewound(1, reach=0, log=LOGS["empty"])),
    "rewind to the inherited turn that owed": ("L10", lambda p: p.rewound(15, reach=15, log=LOGS["heir"])),
    "rewind without an anchor": ("L10", lambda p: p.rewound(12, reach=16) | {"anchor": None}),
    "rewind with a reach that is not the log's": ("L3", lambda p: p.rewound(12, reach=15)),
    "rewind whose body has another anchor": ("L10", lambda p: p.rewound(12, reach=16, body='{"anchor":14,"reach":16}')),
    "rewind whose body has another reach": ("L10", lambda p: p.rewound(12, reach=16, body='{"anchor":12,"reach":15}')),
    "rewind whose body is no JSON": ("L10", lambda p: p.rewound(12, reach=16, body="12")),
    "clear with a reach that is not the log's": ("L3", lambda p: p.cleared(reach=15)),
    "clear without a reach": ("L3", lambda p: p.cleared(reach=16) | {"reach": None}),
    "clear whose body has another reach": ("L", lambda p: p.cleared(reach=16, body='{"reach":15}')),
    "clear whose body is no JSON": ("L", lambda p: p.cleared(reach=16, body="all of it")),
}
FORKS: dict[str, Case] = {
    "a log opened twice": ("L13", lambda p: p.opened(6, "again")),
    "a log's number with a gap": ("L13", lambda p: p.opened(8, "gap")),
    "a name that is taken": ("L13", lambda p: p.opened(7, "child")),
    "a name that is missing": ("L13", lambda p: p.opened(7, "x") | {"label": None}),
    "a fork of nothing": ("L13", lambda p: p.opened(7, "orphan", 9)),
    "a fork of itself": ("L13", lambda p: p.opened(7, "self", 7)),
    "a fork with less reach": ("L13", lambda p: p.opened(7, "short", 1, reach=15)),
    "a fork with more reach": ("L13", lambda p: p.opened(7, "long", 1, reach=17)),
    "a fork without reach": ("L13", lambda p: p.opened(7, "none", 1) | {"reach": None}),
    "a log of its own with reach": ("L13", lambda p: p.opened(7, "bold", reach=3)),
    "a fork that withdraws what owes nothing": ("L13", lambda p: p.opened(7, "f", 1, reach=16, owing=16)),
    "a fork that keeps the owing turn": ("L13", lambda p: p.opened(7, "f", 5, reach=2)),
    "a fork that withdraws another turn": ("L13", lambda p: p.opened(7, "f", 5, reach=2, owing=1)),
    "a log of its own that withdraws": ("L13", lambda p: p.opened(7, "f", owing=1)),
    "a fork whose body has another name": ("L", lambda p: p.opened(7, "f", 1, reach=16, label="g")),
    "a fork whose body has another parent": ("L", lambda p: p.opened(7, "f", 6, reach=16) | {"parent": 1}),
    "a fork whose body is no JSON": ("L", lambda p: p.opened(7, "f", 1, reach=16, body="fork")),
}
REDACTIONS: dict[str, Case] = {
    "of a record to come": ("L12", lambda p: p.redacted(50)),
    "of a record of another log": ("L12", lambda p: p.redacted(45)),
    "of a log's beginning": ("L12", lambda p: p.redacted(1)),
    "of nothing": ("L12", lambda p: p.redacted(3) | {"target": None}),
    "whose body has another target": ("L", lambda p: p.redacted(3, body='{"target":4}')),
    "whose body is no JSON": ("L", lambda p: p.redacted(3, body="3")),
}
UNLAWFUL = {
    f"{about}: {name}": case
    for about, cases in {
        "order": ORDER, "state": STATES, "eviction": EVICTIONS, "withdrawal": WITHDRAWALS, "fork": FORKS, "redaction": REDACTIONS
    }.items()
    for name, case in cases.items()
}  # fmt: skip


@pytest.mark.parametrize("name", UNLAWFUL)
def test_an_unlawful_record_is_refused(db: sqlite3.Connection, name: str) -> None:
    """L2-L5, L9, L10, L13: one record against a law, its hashes right, under every conflict clause, checks on and off."""
    law, forged = UNLAWFUL[name]
    siege, row = Siege(db), forged(forge.Pen(db))
    for clause, checks in itertools.product(CONFLICT_CLAUSES, ("OFF", "ON")):
        db.execute(f"PRAGMA ignore_check_constraints = {checks}")
        siege.insert("records", row, clause, law=law)
    siege.ends()


def test_an_unlawful_record_takes_its_whole_statement_with_it(db: sqlite3.Connection) -> None:
    """A lawful record written in one statement with an unlawful one does not stay, whatever the conflict clause."""
    siege, pen = Siege(db), forge.Pen(db)
    lawful = pen.prompt(17)
    unlawful = pen.prompt(17) | {"seq": lawful["seq"] + 1}  # the id that the first one takes
    marks = f"({', '.join('?' * len(lawful))})"
    for clause in CONFLICT_CLAUSES:
        sql = f"{clause} INTO records ({', '.join(lawful)}) VALUES {marks}, {marks}"
        siege.try_(sql, (*lawful.values(), *unlawful.values()), law="L3", name=clause)
    siege.ends()


SHAPES: dict[str, Callable[[forge.Pen], forge.Row]] = {
    "a kind there is not": lambda p: p.row("remembered", 1, {}),
    "no kind": lambda p: p.witness() | {"kind": None},
    "a prompt of no origin": lambda p: p.prompt(17) | {"origin": None},
    "a prompt of another origin": lambda p: p.prompt(17, origin="stolen"),
    "a prompt without a label": lambda p: p.prompt(17) | {"label": None},
    "a prompt without a weight": lambda p: p.prompt(17) | {"weight": None},
    "a prompt of negative weight": lambda p: p.prompt(17, weight=-1),
    "a prompt that makes calls": lambda p: p.prompt(17, calls='["y1"]'),
    "a prompt with a note": lambda p: p.prompt(17, note="n"),
    "a prompt with a reach": lambda p: p.prompt(17, reach=17),
    "a prompt with a target": lambda p: p.prompt(17, target=3),
    "a reply without a label": lambda p: p.assistant(19, log=LOGS["child"]) | {"label": None},
    "a witness with a turn": lambda p: p.witness(turn=17, origin="own"),
    "a witness with an origin": lambda p: p.witness(origin="own"),
    "a witness with a span": lambda p: p.witness(span_from=12, span_to=14, author="model"),
    "a witness with a reach": lambda p: p.witness(reach=16),
    "a witness with a weight": lambda p: p.witness(weight=5),
    "an eviction of negative weight": lambda p: p.evicted(12, 14, "n", reach=16, weight=-1),
    "an eviction with an anchor": lambda p: p.evicted(12, 14, "n", reach=16, anchor=12),
    "a rewind with a parent": lambda p: p.rewound(12, reach=16, parent=1),
    "a clear with an anchor": lambda p: p.cleared(reach=16, anchor=12),
    "a redaction with a label": lambda p: p.redacted(3, label="x"),
    "a short body hash": lambda p: p.witness() | {"body_hash": b"x" * 31},
    "a long digest": lambda p: p.witness() | {"digest": b"x" * 33},
    "a digest of text": lambda p: p.witness() | {"digest": "x" * 32},
    "a body that is a blob": lambda p: p.witness() | {"body": b"{}"},
    "a time that is text": lambda p: p.witness() | {"at_ms": "now"},
    "a time that is no whole number": lambda p: p.witness() | {"at_ms": 1.5},
    "no time": lambda p: p.witness() | {"at_ms": None},
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_record_out_of_shape_is_refused(db: sqlite3.Connection, name: str) -> None:
    """The columns a kind fills, and their types, are held by constraints; what enters with those off is for verify to find."""
    siege, row = Siege(db), SHAPES[name](forge.Pen(db))
    constraint = ("L", "CHECK constraint failed", "NOT NULL constraint failed", "cannot store")
    for clause in CONFLICT_CLAUSES:
        siege.insert("records", row, clause, law=constraint, silent=clause == "INSERT OR IGNORE")
    siege.ends()


# --- exhaustively: what may enter is what the laws say, and nothing else ------------------------------------------------


class Standing:
    """Where a log stands, as the lawful file's own views tell it, and what may be done there by the laws' definitions."""

    def __init__(self, db: sqlite3.Connection, log: int) -> None:
        self.log = log
        sql = "SELECT reach, newest, state, base, owed FROM state WHERE log = ?"
        self.reach, self.newest, self.state, self.base, owed = db.execute(sql, (log,)).fetchone()
        self.owed = sorted(forge.json.loads(owed)) if owed else []
        items = db.execute("SELECT span_from, span_to, kind FROM frontier WHERE log = ?", (log,)).fetchall()
        self.starts, self.ends = {item[0] for item in items}, {item[1] for item in items}
        self.residues = {item[:2] for item in items if item[2] == "residue"}

    def may_evict(self, from_: int, to: int, *, forced: bool) -> bool:
        """L5, and L4 and L9 for the harness."""
        aligned = from_ <= to and from_ in self.starts and to in self.ends
        writing = self.state != "ready" and from_ <= self.newest <= to
        return aligned and not writing and not (forced and (self.state == "owing" or (from_, to) in self.residues))

    def may_rewind(self, anchor: int) -> bool:
        """L10."""
        return self.state != "owing" and anchor in self.starts

    def may_append(self, kind: str, turn: int, origin: str) -> bool:
        """L3 and L4; and L13 for steering."""
        waiting = self.state in ("prompted", "answered")
        match kind:
            case "prompt":
                return turn == self.reach + 1 and self.state != "owing"
            case "assistant":
                return turn == self.reach + 1 and (waiting or (self.state == "ready" and origin == "import"))
            case "tool_results":
                return turn == self.newest and self.state == "owing"
            case _:
                return turn == self.newest > self.base and waiting


def admitted(db: sqlite3.Connection, pen: forge.Pen, row: forge.Row, judged: Callable[..., Any]) -> bool:
    """Whether a record enters. If it does, the file is lawful with it, and the record is taken back."""
    with undone(db):
        try:
            pen.write(row)
        except sqlite3.IntegrityError as refusal:
            if not str(refusal).startswith("L"):
                raise
            return False
        report = judged(db)
        assert report.ok, (row["kind"], row["log"], report.faults[:3])
        return True


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_exactly_the_aligned_runs_can_be_evicted(
    db: sqlite3.Connection, pen: forge.Pen, judged: Callable[..., Any], log: int
) -> None:
    """L5, L9: every pair of ends there is, by both authors, against the definition; what enters is folded as verify folds it."""
    stands = Standing(db, log)
    ids = range(-1, stands.reach + 3)
    got, want = set(), set()
    for from_, to, note in itertools.product(ids, ids, ("a note", None)):
        if admitted(db, pen, pen.evicted(from_, to, note, reach=stands.reach, log=log), judged):
            got.add((from_, to, note))
        if stands.may_evict(from_, to, forced=note is None):
            want.add((from_, to, note))
    assert got == want
    assert bool(want) == (log not in (LOGS["grandchild"], LOGS["empty"]))


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_exactly_the_item_starts_can_be_rewound_to(
    db: sqlite3.Connection, pen: forge.Pen, judged: Callable[..., Any], log: int
) -> None:
    """L10: every anchor there is, and a clear."""
    stands = Standing(db, log)
    anchors = range(-1, stands.reach + 3)
    got = {one for one in anchors if admitted(db, pen, pen.rewound(one, reach=stands.reach, log=log), judged)}
    assert got == {one for one in anchors if stands.may_rewind(one)}
    assert admitted(db, pen, pen.cleared(reach=stands.reach, log=log), judged) == (stands.state != "owing")


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_exactly_the_records_of_the_protocol_enter(
    db: sqlite3.Connection, pen: forge.Pen, judged: Callable[..., Any], log: int
) -> None:
    """L3, L4, L13: every kind that makes turns, on every turn id, own and imported, in each of the states."""
    stands = Standing(db, log)
    write = {"prompt": pen.prompt, "assistant": pen.assistant, "steering": pen.steering}
    for kind, turn, origin in itertools.product(forge.MAKES_TURNS, range(-1, stands.reach + 3), ("own", "import")):
        if kind == "tool_results":
            row = pen.tool_results(turn, *(stands.owed or ["c1"]), log=log, origin=origin)
        else:
            row = write[kind](turn, log=log, origin=origin)
        if turn < 1:
            row["turn"] = turn
        assert admitted(db, pen, row, judged) == stands.may_append(kind, turn, origin), (kind, turn, origin)


def test_exactly_one_fork_of_each_log_can_be_opened(
    db: sqlite3.Connection, pen: forge.Pen, judged: Callable[..., Any]
) -> None:
    """L13: every reach and every withdrawn turn that a fork might claim, of every parent and of none."""
    stands = {log: Standing(db, log) for log in LOGS.values()}
    got = set()
    for parent, reach, owing in itertools.product((None, *LOGS.values(), 7), range(21), (None, *range(1, 20))):
        if admitted(db, pen, pen.opened(7, "seven", parent, reach=reach, owing=owing), judged):
            got.add((parent, reach, owing))
    own = {(log, one.reach, one.newest if one.state == "owing" else None) for log, one in stands.items()}
    assert got == own | {(None, 0, None)}


# --- the fold is the triggers' alone (L7, L8, L10, L14) ------------------------------------------------------------------

NEWEST: dict[str, Callable[[forge.Pen], forge.Row]] = {
    "prompt": lambda p: p.prompt(17),
    "assistant": lambda p: p.assistant(19, "calling", "y1", "y2", log=LOGS["child"]),
    "import": lambda p: p.assistant(17, origin="import"),
    "tool_results": lambda p: p.tool_results(2, "x2", "x1", log=LOGS["owing"]),
    "steering": lambda p: p.steering(18, log=LOGS["child"]),
    "evicted": lambda p: p.evicted(12, 14, "n", reach=16),
    "evicted, a rewrite": lambda p: p.evicted(6, 10, "n", reach=16),
    "evicted, merging all": lambda p: p.evicted(1, 16, "n", reach=16),
    "evicted, forced": lambda p: p.evicted(1, 12, None, reach=16),
    "evicted, while owing": lambda p: p.evicted(1, 1, "n", reach=2, log=LOGS["owing"]),
    "evicted, inherited": lambda p: p.evicted(11, 12, "n", reach=18, log=LOGS["child"]),
    "rewound": lambda p: p.rewound(14, reach=16),
    "rewound to a residue": lambda p: p.rewound(6, reach=16),
    "rewound in a fork": lambda p: p.rewound(12, reach=15, log=LOGS["heir"]),
    "cleared": lambda p: p.cleared(reach=16),
    "cleared, nothing": lambda p: p.cleared(reach=0, log=LOGS["empty"]),
    "opened": lambda p: p.opened(7, "seven"),
    "opened, a fork": lambda p: p.opened(7, "seven", 2, reach=18),
    "opened, a fork of one that owes": lambda p: p.opened(7, "seven", 5, reach=2, owing=2),
    "opened, a fork with withdrawn ground": lambda p: p.opened(7, "seven", 3, reach=15),
    "redacted": lambda p: p.redacted(3),
    "witness": lambda p: p.witness("door"),
}


@pytest.fixture(params=NEWEST)
def newest(request: pytest.FixtureRequest, db: sqlite3.Connection, pen: forge.Pen) -> forge.Row:
    """The newest record, lawful, of each kind in turn; the checks are then switched off."""
    row = pen.write(NEWEST[request.param](pen))
    db.executescript(SETTINGS["everything off"])
    return row


@pytest.mark.parametrize("name", NEWEST)
def test_a_lawful_record_is_folded_under_every_conflict_clause(
    lawful: bytes, judged: Callable[..., Any], name: str
) -> None:
    """No clause lets a record in without its fold, checks on or off: what it leaves is what a plain INSERT leaves."""
    left = []
    for clause, checks in itertools.product(CONFLICT_CLAUSES, ("OFF", "ON")):
        db = bare(lawful)
        db.execute(f"PRAGMA ignore_check_constraints = {checks}")
        pen = forge.Pen(db)
        pen.write(NEWEST[name](pen), clause)
        left.append(content(db))
    assert all(one == left[0] for one in left)
    report = judged(db)
    assert report.ok, report.faults[:3]
    assert report.records == 50


def forged_fold_rows(db: sqlite3.Connection, newest: forge.Row) -> Iterator[tuple[str, tuple[int | None, ...]]]:
    """Every fold row of small numbers that claims to come of the newest record, and of one before it."""
    log, seq = newest["log"], newest["seq"]
    (reach,) = db.execute("SELECT reach FROM state WHERE log = ?", (log,)).fetchone()
    ids = range(reach + 2)
    residues = [None, 0, seq, *(row["seq"] for row in rows(db, "residues"))]
    for one, by, grounds in ((log, seq, residues), (log % 6 + 1, seq, (None, seq)), (log, seq - 1, (None, seq))):
        yield from (("standing", (one, to, by, *row)) for to, *row in itertools.product(ids, ids, grounds))
    holders = [one for one in residues if one]
    yield from (
        ("locations", (one, *row))
        for one in (log, log % 6 + 1)
        for row in itertools.product(ids, residues[1:], holders)
    )
    yield from (
        ("withdrawals", (one, *row))
        for one in (log, log % 6 + 1)
        for row in itertools.product(ids, ids, (seq, seq - 1))
    )
    ends = (1, reach, reach + 1, forge.FOREVER)
    for pair in itertools.product(range(1, 9), range(1, 9)):
        yield from (("ancestry", (*pair, *row)) for row in itertools.product((0, seq, forge.FOREVER), ends, ends))


def test_no_forged_fold_row_enters(db: sqlite3.Connection, newest: forge.Row) -> None:
    """L7, L8, L10, L14: a stamp, ground, a withdrawal, an ancestor: nothing is said in an edit's name but by the edit itself."""
    before = content(db)
    accepted = []
    for table, row in forged_fold_rows(db, newest):
        try:
            db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        except sqlite3.IntegrityError:
            continue
        accepted.append((table, row))
    assert accepted == []
    assert content(db) == before


def test_no_altered_copy_of_a_fold_row_enters(db: sqlite3.Connection, newest: forge.Row) -> None:
    """L14: a residue without its record, a log without its record, and every row there is with one field changed."""
    before = content(db)
    accepted = []
    for table in FOLD_TABLES:
        held = rows(db, table)
        for row, column in itertools.product(held, forge.columns_of(db, table)):
            also = [newest["seq"], newest["seq"] + 1, newest["log"]] if isinstance(row[column], int) else []
            for value in other_values(row[column], also + [one[column] for one in held]):
                for clause in ("INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE"):
                    try:
                        forge.insert(db, table, row | {column: value}, clause)
                    except sqlite3.IntegrityError:
                        continue
                    accepted.append((table, row, column, value, clause))
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(f"INSERT INTO {table} DEFAULT VALUES")
    assert accepted == []
    assert content(db) == before


def test_an_edit_is_folded_once(db: sqlite3.Connection, newest: forge.Row) -> None:
    """L14: what was folded is refused when folded again, whichever record is the newest; a clear of nothing does nothing."""
    siege = Siege(db)
    for edit in rows(db, "edits"):
        siege.insert("edits", edit, silent=edit["kind"] == "cleared" and edit["reach"] == 0)
    siege.ends(attacks_at_least=18)


def test_an_invented_edit_folds_nothing(db: sqlite3.Connection, newest: forge.Row) -> None:
    """L14: edits with one field changed, of every kind, in the name of the newest record, of an old one and of none."""
    siege = Siege(db)
    edits = [edit for edit in rows(db, "edits") if edit["seq"] == newest["seq"] or edit["log"] == newest["log"]][-2:]
    edits += [dict.fromkeys(forge.columns_of(db, "edits")) | {"seq": newest["seq"], "log": newest["log"], "reach": 16}]
    for edit in edits:
        for kind, seq in itertools.product(
            ("opened", "evicted", "rewound", "cleared"), (newest["seq"], newest["seq"] + 1)
        ):
            full = {
                "name": "new",
                "span_from": 12,
                "span_to": 14,
                "note": "n",
                "author": "model",
                "weight": 200,
                "anchor": 12,
            }
            siege.insert("edits", edit | {"kind": kind, "seq": seq}, silent=True)
            siege.insert("edits", edit | full | {"kind": kind, "seq": seq}, silent=True)
        for column in edit:
            for value in other_values(edit[column], [newest.get(column), 1, 3]):
                siege.insert("edits", edit | {column: value}, silent=True)
    siege.ends(attacks_at_least=40)


SHADOWED = ("records", "edits", "state", "lineage", *FOLD_TABLES)


@pytest.mark.parametrize("name", SHADOWED)
def test_a_temporary_table_of_the_same_name_catches_nothing(
    db: sqlite3.Connection, pen: forge.Pen, judged: Callable[..., Any], name: str
) -> None:
    """Triggers speak of the file's own tables: a writer's temporary one draws neither the fold nor the gate's questions."""
    db.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM main.{name} WHERE 0")
    lawful = NEWEST["evicted"](pen) if name not in ("records", "lineage") else None
    if lawful is None:
        with undone(db):
            db.execute(f"DROP TABLE temp.{name}")
            lawful = NEWEST["evicted"](pen)
    forge.insert(db, "main.records", lawful)
    assert db.execute(f"SELECT count(*) FROM temp.{name}").fetchone() == (0,)
    db.execute(f"DROP TABLE temp.{name}")
    assert judged(db).ok
    db.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM main.{name} WHERE 0")
    with pytest.raises(sqlite3.IntegrityError, match=r"^L2: "):
        forge.insert(db, "main.records", lawful)


# --- blanking is the one change (L12) -----------------------------------------------------------------------------------


def seq_of(db: sqlite3.Connection, kind: str, log: int = 1) -> int:
    """The first record of a kind in a log."""
    found: int = db.execute("SELECT min(seq) FROM records WHERE kind = ? AND log = ?", (kind, log)).fetchone()[0]
    return found


def test_a_blob_is_not_replaced_through_its_rowid(db: sqlite3.Connection) -> None:
    """L1: the rowid is a unique key too, though it has no name of its own."""
    siege = Siege(db)
    for clause in ("INSERT OR REPLACE", "REPLACE", "INSERT OR IGNORE", "INSERT"):
        sql = f"{clause} INTO blobs (rowid, hash, bytes, data) SELECT rowid, zeroblob(32), 1, x'00' FROM blobs"
        siege.try_(sql, (), law="L1: ")
    siege.ends()


@pytest.mark.parametrize("kind", ["prompt", "assistant", "tool_results", "evicted", "usage"])
def test_a_redaction_lets_a_body_be_blanked_and_nothing_else(
    db: sqlite3.Connection, pen: forge.Pen, judged: Callable[..., Any], kind: str
) -> None:
    """L12: while the redaction is the newest record its target's body, label and note may go; no field may become another."""
    target = seq_of(db, kind)
    (row,) = [one for one in rows(db, "records") if one["seq"] == target]
    pen.write(pen.redacted(target, blobs=forge.holes(row["body"])))
    siege = Siege(db)
    for column, value in row.items():
        for other in other_values(value, [one[column] for one in rows(db, "records")]):
            if (column, other) not in (("body", None), ("note", None), ("label", "")):
                law = ("L1: ", "datatype mismatch", "NOT NULL constraint", "CHECK constraint")
                siege.try_(f"UPDATE records SET {column} = ? WHERE seq = ?", (other, target), law=law)
                if column != "body":
                    sql = f"UPDATE records SET body = NULL, {column} = ? WHERE seq = ?"
                    siege.try_(sql, (other, target), law=law)
    siege.try_("UPDATE records SET body = NULL WHERE seq <> ?", (target,), law="L1: ")
    siege.try_("UPDATE records SET body = '{}' WHERE seq = ?", (target,), law="L1: ")
    siege.try_("DELETE FROM records WHERE seq = ?", (target,), law="L1: ")
    siege.ends()
    forge.blank(db, target)
    report = judged(db)
    assert report.ok, report.faults[:3]
    assert report.redacted == (target,)
    again = Siege(db)
    again.try_("UPDATE records SET body = ? WHERE seq = ?", (row["body"], target), law="L1: ")
    again.try_("UPDATE records SET body = NULL WHERE seq = ?", (target,), law="L1: ")
    again.ends()


def test_a_redaction_lets_go_of_its_own_target_alone_and_only_while_it_is_the_newest(
    db: sqlite3.Connection, pen: forge.Pen
) -> None:
    """L12: no other record, and nothing once another record is written."""
    first, second = seq_of(db, "usage"), seq_of(db, "error")
    blank = "UPDATE records SET body = NULL WHERE seq = ?"
    siege = Siege(db)
    siege.try_(blank, (first,), law="L1: ")
    siege.ends()
    pen.write(pen.redacted(first))
    siege = Siege(db)
    siege.try_(blank, (second,), law="L1: ")
    siege.try_("UPDATE residues SET note = NULL", law="L1: ")
    siege.try_("UPDATE blobs SET data = NULL", law="L1: ")
    siege.ends()
    pen.write(pen.witness())
    siege = Siege(db)
    siege.try_(blank, (first,), law="L1: ")
    siege.ends()


# --- and what is lawful is as easy to write ------------------------------------------------------------------------------


def write_by_hand(pen: forge.Pen) -> None:
    """A small life with every kind of record in it, written by nothing but the pen."""
    write = pen.write
    write(pen.prompt(1, "fix the parser", key="a"))
    write(pen.assistant(2, "looking", "c1", "c2"))
    write(pen.witness("door"))
    write(pen.evicted(1, 1, "asked to fix the parser", reach=2))
    write(pen.tool_results(2, "c2", "c1"))
    write(pen.steering(2, "only the lexer"))
    write(pen.assistant(3, "done"))
    write(pen.witness("usage", key="u"))
    write(pen.prompt(4, "and é?"))
    write(pen.assistant(5, "elsewhere", origin="import"))
    write(pen.evicted(1, 3, None, reach=5))
    write(pen.rewound(5, reach=5))
    write(pen.assistant(6, "again", "c3"))
    write(pen.opened(2, "scout", 1, reach=6, owing=6))
    write(pen.prompt(7, "scout ahead", log=2))
    write(pen.assistant(8, "nothing there", log=2))
    write(pen.evicted(1, 4, "merged in the fork", reach=8, log=2))
    write(pen.opened(3, "scout of scouts", 2, reach=8))
    write(pen.cleared(reach=8, log=3))
    write(pen.tool_results(6, "c3"))
    write(pen.redacted(3))
    for kind in ("note", "error", "meta"):
        write(pen.witness(kind))


def test_a_file_written_by_hand_is_lawful(tmp_path: Path) -> None:
    """Whoever can compute a SHA-256 can write a lawful file: the product opens it, finds no fault, and goes on in it."""
    path = tmp_path / "by-hand.exarch"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        pen = forge.found_lineage(db)
        db.execute("BEGIN")
        write_by_hand(pen)
        db.execute("COMMIT")
    with Archive.open(path) as archive:
        report = archive.verify()
        assert report.ok, report.faults[:3]
        assert (report.records, report.logs) == (25, 3)
        assert {log.name: log.state for log in archive.logs()} == {
            "trunk": "answered", "scout": "ready", "scout of scouts": "ready"
        }  # fmt: skip
        assert [(row.from_, row.to, row.kind) for row in archive.trunk.survey().rows] == [
            (1, 3, "residue"), (4, 4, "own"), (6, 6, "own")
        ]  # fmt: skip
        assert archive.rebuild() == []
        archive.trunk.assistant("the product takes over")
        assert archive.verify().ok


def test_hand_and_product_take_turns_in_one_file(tmp_path: Path) -> None:
    """A writer of another language may append between two appends of an open archive: the chain holds."""
    path = tmp_path / "both.exarch"
    with Archive.open(path) as archive, closing(sqlite3.connect(path, isolation_level=None)) as db:
        pen = forge.Pen(db)
        archive.trunk.prompt("one")
        pen.write(pen.assistant(2, "two"))
        archive.trunk.prompt("three")
        pen.write(pen.evicted(1, 2, "by hand", reach=3))
        assert [row.span for row in archive.trunk.survey().rows] == [Span(1, 2), Span(3, 3)]
        report = archive.verify()
        assert report.ok, report.faults[:3]
