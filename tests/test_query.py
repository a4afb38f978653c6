"""Read-only SQL: every view answers, no escape works, time and memory are bounded, and refusals name what would work."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import threading
import time
from pathlib import Path

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exarch_sql import Archive, BadFile, Refused
from exarch_sql import query as querying
from exarch_sql.query import query

FOREVER = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
ESCAPES = Path(__file__).with_name("corpora") / "sql_escapes.txt"


def escapes() -> list[str]:
    """The corpus, a query each."""
    lines = ESCAPES.read_text(encoding="utf-8").splitlines()
    return [line.replace("\\n", "\n") for line in lines if line and not line.startswith("#")]


@pytest.fixture(scope="module")
def path(lawful_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lawful archive of one's own, alone in its folder."""
    return Path(shutil.copy(lawful_file, tmp_path_factory.mktemp("query") / "a.exarch"))


def objects(path: Path) -> list[str]:
    """Every table and view of the file."""
    with sqlite3.connect(path) as db:
        return [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")]


class TestReading:
    """What may be asked is answered, as SQLite answers it."""

    def test_every_table_and_view_answers_as_it_does_from_pythons_own_module(self, path: Path) -> None:
        """The limits and the authorizer stand in no lawful question's way, and change no answer."""
        for name in objects(path):
            with sqlite3.connect(path) as db:
                cursor = db.execute(f"SELECT * FROM {name}")  # the name is one of the schema's own
                want = cursor.fetchall()
            found = query(path, f"SELECT * FROM {name}")

            assert found.columns == tuple(column[0] for column in cursor.description)
            assert sorted(map(repr, found.rows)) == sorted(map(repr, want))
            assert not found.truncated

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT 1",
            "SELECT 1;",
            " ; \n SELECT 1 ; -- done",
            "SELECT 1 /* and nothing */ ; /* more */",
            "-- first\nSELECT 1",
            "VALUES (1)",
            "WITH c AS (SELECT 1 AS n) SELECT n FROM c",
            "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1) SELECT count(*) FROM c",
            "SELECT count(*) FROM json_each('[7]')",
            "SELECT count(*) FROM lineage WHERE uuid LIKE '%-%' AND uuid GLOB '*-*'",
            "SELECT count(*) FROM pragma_table_info('lineage') WHERE name = 'uuid'",
            "SELECT sum(x) OVER () FROM (SELECT 1 AS x)",
            "SELECT coalesce(NULL, abs(-1), round(0.5), upper('x'), date('now'))",
        ],
    )
    def test_reading_statements_of_every_form_run(self, path: Path, sql: str) -> None:
        """One statement, with comments and empty statements around it, is one statement."""
        assert query(path, sql).rows == ((1,),)

    @pytest.mark.parametrize(
        "sql",
        [
            "EXPLAIN SELECT * FROM turns",
            "EXPLAIN QUERY PLAN SELECT * FROM turns",
            "PRAGMA table_info(records)",
            "PRAGMA table_list",
            "SELECT sql FROM sqlite_schema",
            "SELECT * FROM pragma_function_list",
        ],
    )
    def test_plans_and_the_schema_may_be_looked_at(self, path: Path, sql: str) -> None:
        """An auditor without our documentation asks the file itself."""
        assert query(path, sql).rows

    def test_parameters_are_bound_by_place_or_name(self, path: Path) -> None:
        """Nothing a caller gives is pasted into SQL."""
        assert query(path, "SELECT ?, ?", params=(1, "x'; --")).rows == ((1, "x'; --"),)
        assert query(path, "SELECT :a", params={"a": b"\0"}).rows == ((b"\0",),)

    def test_a_writer_is_not_disturbed_and_its_work_is_seen(self, path: Path, tmp_path: Path) -> None:
        """A query is a connection of its own: it waits for nobody and sees what was committed."""
        with Archive.open(tmp_path / "live.exarch") as archive:
            with archive.batch():
                archive.trunk.prompt("in flight")

                assert query(archive.path, "SELECT count(*) FROM turns").rows == ((0,),)

            assert query(archive.path, "SELECT label FROM turns").rows == (("in flight",),)


class TestRefusing:
    """What is not a question is refused, and the file is as it was."""

    def test_the_corpus_of_escapes_is_large_and_without_repeats(self) -> None:
        """A corpus that shrank by accident would pass silently."""
        assert len(escapes()) == len(set(escapes())) >= 60

    @pytest.mark.parametrize("sql", escapes(), ids=lambda sql: sql[:40])
    def test_every_escape_is_refused_and_changes_nothing(
        self, path: Path, sql: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """No file is opened, made or changed, nothing runs on, and the refusal says something."""
        monkeypatch.chdir(tmp_path)
        before = path.read_bytes()
        started = time.monotonic()

        with pytest.raises(Refused) as refusal:
            query(path, sql, seconds=0.3)

        assert len(str(refusal.value)) > 20
        assert time.monotonic() - started < 10
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == []
        assert {file.name for file in path.parent.iterdir()} <= {"a.exarch", "a.exarch-wal", "a.exarch-shm"}

    @pytest.mark.parametrize(
        ("sql", "told"),
        [
            ("ATTACH 'x' AS y", "opens or closes another file"),
            ("DELETE FROM records", "the query writes (DELETE on records): records are added by"),
            ("PRAGMA user_version = 2", "PRAGMA user_version = 2: the pragmas it may read are"),
            ("PRAGMA integrity_check", "`exarch-sql verify` checks the file"),
            ("SELECT load_extension('x')", "load_extension(): only functions without side effects"),
            (
                "SELECT 1; SELECT 2 FROM\n turns",
                "more than one statement: run the next one by itself, SELECT 2 FROM turns",
            ),
            ("SELECT * FROM nope", "no such table: nope; there are "),
            ("SELECT 'x' REGEXP 'x'", "`exarch-sql grep` searches by regular expression"),
            ("SELECT ?", "parameters do not fit"),
            ("", "there is no statement in the query: try SELECT"),
            ("SELECT 1\0", "text without NUL"),
            ("SELECT '\ud800'", "half surrogates"),
            ("SELECT * FROM temp.sqlite_schema", "it may read the tables and views of the lineage"),
            ("SELECT CAST(x'ff' AS TEXT)", "not UTF-8: select hex(...)"),
        ],
    )
    def test_a_refusal_names_what_was_tried_and_what_would_work(self, path: Path, sql: str, told: str) -> None:
        """The three parts of every refusal: attempt, state, fix."""
        with pytest.raises(Refused) as refusal:
            query(path, sql)

        assert told in str(refusal.value)

    def test_a_syntax_error_is_pointed_at(self, path: Path) -> None:
        """The caret stands under the word, on its own line of the query, past characters of several bytes."""
        with pytest.raises(Refused) as refusal:
            query(path, "SELECT 'äöü', 1\nFROM turns WHER log = 1")

        *_, line, caret = str(refusal.value).splitlines()
        assert line[caret.index("^") :].startswith("log")

    def test_a_name_of_the_querys_own_may_be_anything(self, path: Path) -> None:
        """A common table named like something forbidden is the query's own, and harmless."""
        assert query(path, "WITH sqlite_dbpage (x) AS (SELECT 1) SELECT x FROM sqlite_dbpage").rows == ((1,),)

    def test_what_is_no_lineage_is_a_bad_file(self, tmp_path: Path) -> None:
        """The file is judged before anything in it is asked, and a missing one is not made."""
        foreign = tmp_path / "foreign.db"
        sqlite3.connect(foreign).execute("CREATE TABLE t (a)").connection.close()
        for file in (foreign, tmp_path / "missing", tmp_path):
            with pytest.raises(BadFile):
                query(file, "SELECT 1")
        assert not (tmp_path / "missing").exists()

    @pytest.mark.parametrize("limits", [{"seconds": 0}, {"rows": 0}, {"cell_bytes": 0}])
    def test_a_limit_of_nothing_is_refused(self, path: Path, limits: dict[str, int]) -> None:
        """Zero does not mean without limit."""
        with pytest.raises(Refused, match="some time, a row and a byte"):
            query(path, "SELECT 1", **limits)  # type: ignore[arg-type]


class TestLimits:
    """A query ends, whatever it is."""

    def test_rows_past_the_limit_are_left_out_and_said_to_be(self, path: Path) -> None:
        """Exactly as many rows as allowed is not too many."""
        sql = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 10) SELECT n FROM c"

        assert [len(query(path, sql, rows=limit).rows) for limit in (3, 10, 11)] == [3, 10, 10]
        assert [query(path, sql, rows=limit).truncated for limit in (3, 10, 11)] == [True, False, False]

    def test_rows_past_the_bytes_of_an_answer_are_left_out(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Many cells, each small enough, may not fill the memory together."""
        monkeypatch.setattr(querying, "RESULT_BYTES", 1000)

        found = query(path, "SELECT hex(zeroblob(150)) FROM records")

        assert (len(found.rows), found.truncated) == (3, True)

    def test_a_large_cell_is_refused_with_its_size_and_a_way_round(self, path: Path) -> None:
        """Counted in bytes of UTF-8, not in characters."""
        with pytest.raises(Refused, match="column x holds 2000 bytes, more than the 1500 allowed: select substr"):
            query(path, "SELECT replace(hex(zeroblob(500)), '0', 'ä') AS x", cell_bytes=1500)
        assert query(path, "SELECT replace(hex(zeroblob(500)), '0', 'ä') AS x", cell_bytes=2000).rows

    def test_time_is_held_to_about_what_was_allowed(self, path: Path) -> None:
        """The refusal names the limit."""
        started = time.monotonic()
        with pytest.raises(Refused, match=r"took more than 0\.2 s: narrow it"):
            query(path, FOREVER, seconds=0.2)
        assert time.monotonic() - started < 3

    def test_memory_is_held(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A sorter that grows is stopped by what SQLite holds, long before the time is up."""
        monkeypatch.setattr(querying, "MEMORY_BYTES", 32 << 20)
        sql = "SELECT hex(randomblob(50000)) AS x FROM records a, records b ORDER BY x"

        with pytest.raises(Refused, match="needs more than 32 MB: narrow it"):
            query(path, sql, seconds=30)

    def test_ctrl_c_comes_through_while_sqlite_runs(self, path: Path) -> None:
        """A pending signal is raised from between two steps, and the connection is closed after it."""
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            query(path, FOREVER, seconds=30)
        timer.join()
        assert time.monotonic() - started < 10

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT hex(zeroblob(500000)) LIKE '%0%0%0%0%0%0%0%0%0%1'",
            "SELECT hex(zeroblob(500000)) GLOB '*0*0*0*0*0*0*0*0*0*1'",
            "SELECT instr(hex(zeroblob(4000000)), hex(zeroblob(2000000)) || '1')",
            "SELECT length(replace(hex(zeroblob(4000000)), hex(zeroblob(2000000)) || '1', '')) = 0",
            "SELECT length(trim(hex(zeroblob(2000000)), 'abcdefghijklmnopqrstuvwxyz0'))",
        ],
    )
    def test_one_call_cannot_hold_the_clock(self, path: Path, sql: str) -> None:
        """Time is checked between steps, so no single function call may be quadratic: each of these took minutes or more."""
        started = time.monotonic()

        assert query(path, sql).rows == ((0,),)
        assert time.monotonic() - started < 3


text = st.text(st.sampled_from("aAbBzéÉ%_*?[]^-\\.+(){}|$0 \n\u212a"), max_size=12)


@pytest.fixture(scope="module")
def pair() -> tuple[apsw.Connection, apsw.Connection]:
    """Two connections: SQLite's own functions, and ours in their place."""
    own, ours = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    querying._Linear(ours).register()
    return own, ours


class TestLinearFunctions:
    """The functions that stand in for SQLite's own answer what those answer."""

    @staticmethod
    def agree(pair: tuple[apsw.Connection, apsw.Connection], sql: str, *values: object) -> None:
        """Ask both the same."""
        own, ours = (db.execute(sql, values).fetchall() for db in pair)
        assert ours == own

    @given(pattern=text, value=text)
    @example(pattern="K%", value="\u212a")
    @example(pattern="é", value="É")
    def test_like(self, pair: tuple[apsw.Connection, apsw.Connection], pattern: str, value: str) -> None:
        """Case-blind for ASCII alone: not for É, and no Kelvin sign for K."""
        self.agree(pair, "SELECT ? LIKE ?", value, pattern)

    @given(pattern=text, value=text, escape=st.sampled_from("\\%_a["))
    @example(pattern="a\\", value="a", escape="\\")
    def test_like_with_escape(
        self, pair: tuple[apsw.Connection, apsw.Connection], pattern: str, value: str, escape: str
    ) -> None:
        """An escaped sign is itself, and an escape at the end matches nothing."""
        self.agree(pair, "SELECT ? LIKE ? ESCAPE ?", value, pattern, escape)

    @given(pattern=text, value=text)
    @example(pattern="[]a]", value="]")
    @example(pattern="[^]a]", value="b")
    @example(pattern="[z-a]", value="z")
    @example(pattern="[^z-a]", value="m")
    @example(pattern="[a-]", value="-")
    @example(pattern="[a", value="a")
    @example(pattern="[]", value="")
    def test_glob(self, pair: tuple[apsw.Connection, apsw.Connection], pattern: str, value: str) -> None:
        """Sets, ranges, negation, brackets inside, and sets that never close."""
        self.agree(pair, "SELECT ? GLOB ?", value, pattern)

    @given(value=text, part=text, other=text)
    def test_instr_replace_and_trim(
        self, pair: tuple[apsw.Connection, apsw.Connection], value: str, part: str, other: str
    ) -> None:
        """Places are counted in characters, from one; nothing is found of nothing."""
        self.agree(pair, "SELECT instr(?1, ?2), replace(?1, ?2, ?3)", value, part, other)
        self.agree(pair, "SELECT trim(?1, ?2), ltrim(?1, ?2), rtrim(?1, ?2)", value, part)

    @pytest.mark.parametrize("other", [None, 7, -1.5, 1e20, b"ab", "ab", ""])
    @pytest.mark.parametrize("value", [None, 10, 1.5, 1e20, b"ab", b"", "ab", ""])
    def test_values_that_are_no_text(
        self, pair: tuple[apsw.Connection, apsw.Connection], value: object, other: object
    ) -> None:
        """Numbers are read as SQLite writes them, blobs as UTF-8, and null answers null."""
        self.agree(pair, "SELECT ?1 LIKE ?2, ?1 GLOB ?2, instr(?1, ?2), trim(?1, ?2)", value, other)
        self.agree(pair, "SELECT CAST(replace(?1, ?2, 'x') AS TEXT)", value, other)
