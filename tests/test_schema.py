"""The schema as a text: commented throughout, read alike by every SQLite from 3.40 on, and its fold rebuildable.

Method: ``sqlite_schema`` is walked, so that a table, column, view or trigger added later is held to the same. What the triggers
*do* is for ``test_laws_from_a_bare_connection.py``.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import apsw
import forge
import pytest
from conftest import LOGS

from exarch_sql import Archive, BadFile, connection
from exarch_sql.fold import TABLES as FOLD_TABLES

if TYPE_CHECKING:
    from pathlib import Path


DB = forge.bare()
DB.executescript(forge.SCHEMA)
SQL: dict[str, dict[str, str]] = {"table": {}, "index": {}, "view": {}, "trigger": {}}
for _type, _name, _sql in DB.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall():
    SQL[_type][_name] = _sql

# what the SQLite of 3.40.0 has when it is built with nothing asked for: of the functions on sqlite.org's pages of core, aggregate,
# window and JSON functions, those that a schema might want
PLAIN_FUNCTIONS = frozenset(
    re.findall(
        r"\w+",
        """abs avg cast char coalesce count dense_rank first_value format glob group_concat hex ifnull iif instr json json_array
        json_array_length json_each json_extract json_group_array json_group_object json_object json_quote json_remove
        json_tree json_type
        json_valid lag last_value lead length like lower ltrim max min nth_value nullif printf quote rank replace round
        row_number rtrim sign substr substring sum total trim typeof unicode upper zeroblob raise""",
    )
)
# words that stand before a bracket and are no function
GRAMMAR = frozenset(
    re.findall(
        r"\w+",
        """and as by case check conflict else exists from group having in insert into is join key limit not on or order over
        partition select set then unique update using values when where with constraint between item""",
    )
)
LAWS_IN_TRIGGERS = ("L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8", "L9", "L10", "L13", "L14")


def bare_sql(sql: str) -> str:
    """SQL without its comments and literals."""
    return re.sub(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", " ", sql, flags=re.DOTALL)


def comment_before(type_: str, name: str) -> str:
    """The comment right above an object in schema.sql."""
    found = re.search(rf"((?:^--[^\n]*\n)+)CREATE {type_.upper()} {name}\b", forge.SCHEMA, flags=re.MULTILINE)
    return found[1] if found else ""


# --- comments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*SQL["table"], *SQL["view"]])
def test_what_a_row_is_stands_above_each_table_and_view(name: str) -> None:
    """Design section 3: each opens with what one of its rows is."""
    type_ = "table" if name in SQL["table"] else "view"
    assert comment_before(type_, name).startswith("-- one row per ")


@pytest.mark.parametrize("name", SQL["table"])
def test_each_column_of_a_table_has_a_comment(name: str) -> None:
    """Design section 3: unit, NULL meaning and allowed values, on the line of the column."""
    for column in forge.columns_of(DB, name):
        assert re.search(rf"^  {column}\b[^\n]*-- \S", SQL["table"][name], flags=re.MULTILINE), column


@pytest.mark.parametrize("name", SQL["view"])
def test_each_column_of_a_view_has_a_comment(name: str) -> None:
    """The views are for people, who read what a column means in the schema itself."""
    for column in forge.columns_of(DB, name):
        assert re.search(rf"\b{column}\b[^\n]*-- \S", SQL["view"][name]), column


# --- tables and guards --------------------------------------------------------------------------------------------------


def test_every_table_is_strict_and_none_counts_by_itself() -> None:
    """Design section 3: STRICT, no AUTOINCREMENT; and SQLite keeps no table of its own."""
    listed = DB.execute("SELECT name, type, strict FROM pragma_table_list WHERE schema = 'main'").fetchall()
    tables = {
        name: strict for name, type_, strict in listed if type_ == "table" and not name.startswith("sqlite_schema")
    }
    assert tables == dict.fromkeys(SQL["table"], 1)
    assert "AUTOINCREMENT" not in bare_sql(forge.SCHEMA).upper()


@pytest.mark.parametrize("table", SQL["table"])
def test_every_table_has_a_guard_on_every_way_in(table: str) -> None:
    """L1: INSERT, UPDATE and DELETE each meet a trigger before anything happens."""
    guards = [sql.partition("\n")[0] for sql in SQL["trigger"].values()]
    for act in ("INSERT", "UPDATE", "DELETE"):
        assert any(re.search(rf" BEFORE {act} ON {table}\b", guard) for guard in guards), act


def test_every_refusal_is_a_literal_that_begins_with_a_law() -> None:
    """SQLite before 3.47 takes literals only; the law comes first, then what is so, in words."""
    said = [message for sql in SQL["trigger"].values() for message in forge.raise_messages(sql)]
    assert len(said) == sum(bare_sql(sql).count("RAISE") for sql in SQL["trigger"].values()) > 40
    odd = [message for message in said if not re.fullmatch(r"'L(1[0-4]?|[2-9]): [a-z][^'%]{8,}[^.]'", message)]
    assert odd == []
    assert "RAISE(FAIL" not in forge.SCHEMA
    assert "RAISE(IGNORE" not in forge.SCHEMA
    assert "RAISE(ROLLBACK" not in forge.SCHEMA


@pytest.mark.parametrize("law", LAWS_IN_TRIGGERS)
def test_a_trigger_names_each_law_that_the_database_holds(law: str) -> None:
    """Design section 2: laws are numbered in code as in the docs; L11 and L12 rest on hashes, which SQL cannot compute."""
    assert [name for name, sql in SQL["trigger"].items() if re.search(rf"\b{law}\b", sql)]


# --- plain SQLite ---------------------------------------------------------------------------------------------------------


def test_nothing_calls_a_function_that_plain_sqlite_lacks() -> None:
    """Design section 3: no view or trigger may call a function that we register, or that a build may leave out."""
    here = {row[0] for row in DB.execute("SELECT name FROM pragma_function_list WHERE builtin")}
    for group in ("view", "trigger", "table", "index"):
        for name, sql in SQL[group].items():
            called = {word.lower() for word in re.findall(r"\b(\w+)\s*\(", bare_sql(sql))}
            called -= GRAMMAR | {*SQL["table"], *SQL["view"]} | {name for name in called if name.startswith("records_")}
            assert called <= PLAIN_FUNCTIONS, (name, called - PLAIN_FUNCTIONS)
            assert called - {"cast", "raise", "json_each", "json_tree"} <= here, name


def test_the_schema_is_what_either_sqlite_stores() -> None:
    """`expected_schema` reads schema.sql without SQLite; both SQLites keep exactly that, and the marks of the header."""
    with closing(apsw.Connection(":memory:")) as db:
        db.execute(forge.SCHEMA)
        ours = connection.schema_of(db)
        marks = db.execute("PRAGMA application_id").fetchone() + db.execute("PRAGMA user_version").fetchone()
    stored = frozenset(tuple(field.decode() for field in row) for row in DB.execute(connection.SCHEMA_SQL))
    assert set(connection.expected_schema()) == ours == stored
    assert marks == (connection.APPLICATION_ID, connection.FORMAT)
    assert DB.execute("PRAGMA application_id").fetchone() + DB.execute("PRAGMA user_version").fetchone() == marks


@pytest.mark.parametrize("view", SQL["view"])
def test_a_view_answers_alike_in_both_sqlites(lawful: bytes, view: str) -> None:
    """The file is written by one SQLite and read by whatever an auditor has: same columns, same rows, and some."""
    assert sqlite3.sqlite_version_info >= (3, 40)
    with closing(forge.bare(lawful)) as theirs, closing(apsw.Connection(":memory:")) as ours:
        ours.deserialize("main", lawful)
        query = f"SELECT * FROM {view}"
        assert forge.columns_of(theirs, view) == [row[1] for row in ours.execute(f"PRAGMA table_info({view})")]
        found = sorted(ours.execute(query).fetchall(), key=repr)
        assert sorted(theirs.execute(query).fetchall(), key=repr) == found
    assert found or view == "redactions"


def test_nothing_in_the_schema_needs_a_trusting_connection(lawful: bytes) -> None:
    """With trusted_schema off and double quotes for names alone, as we open files, every view answers and a record enters."""
    with closing(apsw.Connection(":memory:")) as db:
        db.deserialize("main", lawful)
        db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        db.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
        db.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        for view in SQL["view"]:
            db.execute(f"SELECT * FROM {view}").fetchall()
        row = forge.Pen(forge.bare(lawful)).assistant(19, "calling", "y1", log=LOGS["child"])
        db.execute(f"INSERT INTO records ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
    assert '"' not in "".join(bare_sql(sql) for group in SQL.values() for sql in group.values())


@pytest.mark.skipif(sqlite3.sqlite_version_info[:2] != (3, 40), reason="later versions answer with distrust too")
def test_an_old_sqlite_with_distrust_on_refuses_appends_and_seven_views(lawful: bytes) -> None:
    """What is not promised: 3.40 takes its own JSON functions for unsafe. The default is to trust, and nothing is written."""
    with closing(forge.bare(lawful)) as db:
        before = forge.content(db)
        db.execute("PRAGMA trusted_schema = OFF")
        said = []
        for view in SQL["view"]:
            try:
                db.execute(f"SELECT * FROM {view}").fetchall()
            except sqlite3.OperationalError as error:
                said.append(str(error))
        assert [text[:13] for text in said] == ["unsafe use of"] * 7
        pen = forge.Pen(db)
        for row in (pen.witness(), pen.assistant(19, "calling", "y1", log=LOGS["child"])):
            with pytest.raises(sqlite3.OperationalError, match="unsafe use of"):
                pen.write(row)
        assert forge.content(db) == before


# --- the fold is a function of the records (L14) ---------------------------------------------------------------------------


@pytest.fixture
def copied(lawful_file: Path, tmp_path: Path) -> Path:
    """The lawful file, copied."""
    path = tmp_path / "copy.exarch"
    shutil.copy(lawful_file, path)
    return path


def content_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All that a file holds, rows in order of their keys."""
    with closing(sqlite3.connect(path)) as db:
        held = forge.content(db)
    return {table: sorted(found, key=repr) for table, found in held.items()}


def damage(path: Path, *statements: str) -> None:
    """Do something to the fold with the triggers out of the way, and put them back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN")
        with forge.without_triggers(db):
            for sql in statements:
                assert db.execute(sql).rowcount > 0, sql
        db.execute("COMMIT")


def test_the_fold_tables_are_all_that_is_no_record() -> None:
    """What `rebuild` drops, and what endures, together are all tables there are."""
    assert {*FOLD_TABLES, "lineage", "records", "blobs"} == set(SQL["table"])


def test_rebuilding_a_lawful_file_changes_not_one_row(copied: Path) -> None:
    """L14: dropped and derived again, the fold is the same; twice."""
    before = content_of(copied)
    with Archive.open(copied) as archive:
        head = archive.head()
        assert archive.rebuild() == []
        assert archive.rebuild() == []
        assert archive.verify(against=head).ok
    assert content_of(copied) == before


def test_an_auditors_integrity_check_says_ok_in_both_libraries(copied: Path) -> None:
    """SQLite 3.40 told of a NULL that was none, in a table without rowid whose key is not its first columns. Every kind of row."""
    with Archive.open(copied) as archive:
        (evicted,) = archive.sql("SELECT min(seq) FROM records WHERE note IS NOT NULL").rows[0]
        (picture,) = archive.sql("SELECT min(seq) FROM records WHERE instr(body, '$blob')").rows[0]
        archive.redact(evicted, reason="whole")
        archive.redact(picture, part=1, reason="a part, and its blob")
        archive.reindex()
    for check in ("integrity_check", "quick_check"):
        with closing(sqlite3.connect(copied)) as auditor:
            assert auditor.execute(f"PRAGMA {check}").fetchall() == [("ok",)]
        with closing(apsw.Connection(str(copied))) as bundled:
            assert bundled.execute(f"PRAGMA {check}").fetchall() == [("ok",)]


DAMAGES = {
    "every row gone": {table: f"DELETE FROM {table}" for table in FOLD_TABLES},
    "one row gone": {table: f"DELETE FROM {table} WHERE log = (SELECT max(log) FROM {table})" for table in FOLD_TABLES},
    "a row altered": {
        "logs": "UPDATE logs SET base = base + 1 WHERE log = 2",
        "ancestry": "UPDATE ancestry SET upto = upto - 1 WHERE log = 2 AND ancestor = 1",
        "residues": "UPDATE residues SET note = 'another' WHERE note = 'leaf'",
        "locations": "UPDATE locations SET holder = holder + 1 WHERE span_from = 2 AND residue = 0",
        "withdrawals": "UPDATE withdrawals SET span_to = span_to + 1 WHERE log = 4",
        "standing": "UPDATE standing SET residue = NULL WHERE log = 1",
    },
    "a row too many": {
        "logs": "INSERT INTO logs VALUES (7, 'seven', NULL, 1, 0)",
        "ancestry": "INSERT INTO ancestry VALUES (6, 1, 9, 1, 3)",
        "residues": "INSERT INTO residues VALUES (1, 1, 12, 14, 'n', 'model', 200)",
        "locations": "INSERT INTO locations VALUES (1, 16, 0, 25)",
        "withdrawals": "INSERT INTO withdrawals VALUES (1, 16, 16, 28)",
        "standing": "INSERT INTO standing VALUES (1, 16, 28, 16, NULL)",
    },
}


@pytest.mark.parametrize("table", FOLD_TABLES)
@pytest.mark.parametrize("what", DAMAGES)
def test_rebuilding_repairs_a_damaged_fold(copied: Path, table: str, what: str) -> None:
    """L14: the table is named, the rows are as they were, and verify, which found the damage, finds none."""
    before = content_of(copied)
    damage(copied, DAMAGES[what][table])
    with Archive.open(copied) as archive:
        assert not archive.verify().ok
        (said,) = archive.rebuild()
        assert said.startswith(f"{table}: ")
        assert archive.verify().ok
        assert archive.rebuild() == []
    assert content_of(copied) == before


def test_rebuilding_repairs_a_fold_that_is_gone_altogether(copied: Path) -> None:
    """Records alone are enough."""
    before = content_of(copied)
    damage(copied, *(f"DELETE FROM {table}" for table in FOLD_TABLES))
    with Archive.open(copied) as archive:
        assert [said.partition(":")[0] for said in archive.rebuild()] == list(FOLD_TABLES)
        assert archive.verify().ok
    assert content_of(copied) == before


def test_rebuilding_refuses_a_schema_that_changed_under_it(copied: Path) -> None:
    """Nothing is rebuilt through triggers that are not ours: the file stays as it was."""
    with Archive.open(copied) as archive:
        with closing(sqlite3.connect(copied, isolation_level=None)) as db:
            db.execute("DROP TRIGGER edits_evict")
        before = content_of(copied)
        with pytest.raises(BadFile):
            archive.rebuild()
    assert content_of(copied) == before
