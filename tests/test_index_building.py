"""The search index is built in bulk, when a search wants it and it pays, and is never waited for nor in the way."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
import searching
from searching import bare, check_all, drop_index, eager, grown, index_reached, index_some, settle

from exarch_sql import Archive, Busy, Refused
from exarch_sql.connection import optional_schema, schema_faults, schema_of
from exarch_sql.patterns import compile_pattern
from exarch_sql.search import build, pages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import apsw

FEW = ("FAILED", "parser range", "日本", "note", "nowhere to be found")
INDEX_TABLES = {"search", "search_data", "search_idx", "search_config", "search_pages", "search_progress"}


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """A lineage with forks and edits."""
    with Archive.open(tmp_path / "a.exarch", durability="off") as archive:
        grown(archive, random.Random(5), 100)  # noqa: S311
        drop_index(archive)
        yield archive


def tables(archive: Archive) -> set[str]:
    """The tables of the index that the file has."""
    return {name for _, name, _ in schema_of(archive._store.db)} & INDEX_TABLES


# -- when ----------------------------------------------------------------------------------------------------------------------


def test_neither_a_new_file_nor_an_append_nor_a_small_search_makes_an_index(archive: Archive) -> None:
    """It costs an append nothing, for it is not there; a few megabytes are scanned."""
    archive.trunk.grep("FAILED")
    archive.trunk.witness("note", {"x": 1})
    assert tables(archive) == set()


def test_a_search_that_it_pays_for_catches_up_and_the_next_one_goes_on(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounded work for each: here one step. After enough searches the index is whole, and searches leave it as it is."""
    eager(monkeypatch)
    monkeypatch.setattr(build, "LAZY_SECONDS", (1e-9, 1e-9))
    reached = []
    while not reached or reached[-1] < archive.head().seq:
        archive.trunk.grep("FAILED")
        reached.append(index_reached(archive))
        assert len(reached) < 1000
    assert reached == sorted(set(reached))
    assert len(reached) > 5
    assert tables(archive) == INDEX_TABLES
    before = archive._store.db.total_changes()
    archive.trunk.grep("parser")
    assert archive._store.db.total_changes() == before
    assert archive.verify(index=True).ok


def test_a_pattern_without_a_usable_literal_builds_nothing(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index would not help it."""
    eager(monkeypatch)
    archive.trunk.grep(r"\d\d|.")
    assert tables(archive) == set()


def test_a_file_open_for_reading_is_left_as_it_is(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """And searched all the same."""
    eager(monkeypatch)
    settle(archive)
    with Archive.open(archive.path, readonly=True) as reader:
        check_all(reader, FEW)
    assert tables(archive) == set()


def test_inside_a_batch_nothing_is_built(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is the caller's transaction; reindex says so."""
    eager(monkeypatch)
    with archive.batch():
        assert archive.trunk.grep("FAILED").total > 0
        with pytest.raises(Refused, match="leave the batch first"):
            archive.reindex()
    assert tables(archive) == set()


def test_a_busy_file_is_searched_without_waiting(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another connection holds the write lock: the search does without, at once; reindex is Busy past the timeout."""
    eager(monkeypatch)
    expected = searching.by_definition(archive.trunk, "FAILED")
    with Archive.open(archive.path, timeout=0.2) as other, archive._store.writing():
        done: list[object] = []

        def search() -> None:
            started = time.monotonic()
            done.append(other.trunk.grep("FAILED").to_dict())
            done.append(time.monotonic() - started)
            with pytest.raises(Busy):
                other.reindex()

        thread = threading.Thread(target=search)
        thread.start()
        thread.join()
        assert done[0] == expected
        assert float(str(done[1])) < 0.15
        assert other._store.db.execute("PRAGMA busy_timeout").fetchone() == (200,)


def test_other_writers_get_in_between_the_steps_of_a_reindex(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step is a transaction of its own, and what is appended meanwhile is indexed as well."""
    eager(monkeypatch)
    with Archive.open(archive.path) as other:
        seen = []

        def between(reached: int, head: int) -> None:
            seen.append((reached, head))
            if len(seen) <= 3:
                other.trunk.note(f"at {reached}")

        done = archive.reindex(between)
    assert done.seq == archive.head().seq
    assert done.anew
    assert len(seen) > 5
    assert seen[3][1] == seen[0][1] + 3
    assert archive.reindex().to_dict() == {"seq": done.seq, "records": 0, "anew": False, "why": None}


def test_segments_are_merged_and_summed_anew(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """FTS5 merges when there are as many as it was told; the sums follow, whichever ids it uses again."""
    eager(monkeypatch)
    monkeypatch.setitem(build.SETTINGS, "crisismerge", 4)
    monkeypatch.setattr(build, "STEP_BYTES", 100)
    most = 0
    while index_some(archive, 1) < archive.head().seq:
        with archive._store.reading() as db:
            noted = pages.progress(db)
            assert list(pages.faults(db, noted)) == []
            most = max(most, len(noted.segments))
    assert 4 <= most < 16
    check_all(archive, FEW)
    assert archive.verify(index=True).ok


# -- whatever happens meanwhile ------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """What is raised in the middle."""


@pytest.mark.parametrize(
    "statement", ["CREATE", "INSERT INTO search ", "INSERT INTO search_pages", "INSERT OR REPLACE"]
)
def test_a_step_that_fails_anywhere_leaves_the_index_as_it_was(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """All or nothing: at every statement of its kind that a step runs."""
    eager(monkeypatch)
    if statement != "CREATE":
        index_some(archive, 2)
    before = index_reached(archive)
    for place in range(12):
        left = [place]

        def trace(_cursor: apsw.Cursor, sql: str, _bound: object, left: list[int] = left) -> bool:
            if sql.lstrip().startswith(statement):
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
            return True

        archive._store.db.exec_trace = trace
        try:
            index_some(archive, 1)
        except Killed:
            archive._store.db.exec_trace = None
            assert index_reached(archive) == before
            check_all(archive, FEW[:2])
        else:
            break
        finally:
            archive._store.db.exec_trace = None
    assert place > 0
    archive.reindex()
    assert archive.verify(index=True).ok


def test_a_process_killed_while_it_builds_leaves_an_index_that_answers(archive: Archive, tmp_path: Path) -> None:
    """By SIGKILL, wherever it happens to be: hits are the same, and building goes on from there."""
    settle(archive)
    code = """
import sys
sys.path.insert(0, sys.argv[2])
from exarch_sql import Archive
from exarch_sql.search import build
build.STEP_BYTES = 200
with Archive.open(sys.argv[1], durability="normal") as archive:
    archive.reindex(lambda reached, head: print(reached, flush=True))
"""
    root = str(searching.__file__).rpartition("/tests/")[0]
    for lines in (1, 4, 9):
        path = tmp_path / f"{lines}.exarch"
        shutil.copy(archive.path, path)
        with subprocess.Popen([sys.executable, "-c", code, str(path), root], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            for _ in range(lines):
                reached = int(child.stdout.readline())
            child.kill()
        with Archive.open(path) as left:
            assert reached <= index_reached(left) <= left.head().seq  # the kill may come after the last step
            check_all(left, FEW)
            assert left.verify(index=True).ok
            assert not left.reindex().anew
            assert left.verify(index=True).ok


# -- the file ------------------------------------------------------------------------------------------------------------------


def test_the_schema_of_part_4_is_what_is_made_and_is_optional(archive: Archive) -> None:
    """Missing objects are no fault of the schema; altered ones, and others of such names, are."""
    archive.reindex()
    found = schema_of(archive._store.db)
    assert {name for _, name, _ in optional_schema()} == {"search", "search_pages", "search_progress"}
    assert set(optional_schema()) <= found
    assert schema_faults(found) == []
    for kind, name, sql in found:
        if name in INDEX_TABLES:
            assert schema_faults(found - {(kind, name, sql)}) == []
            altered = found - {(kind, name, sql)} | {(kind, name, sql + " ")}
            assert schema_faults(altered) == [(f"table {name}", "altered")]
    extra = ("trigger", "search_spy", "CREATE TRIGGER search_spy ...")
    assert schema_faults(found | {extra}) == [("trigger search_spy", "not ours")]


def test_an_older_sqlite_reads_the_index(archive: Archive) -> None:
    """Python's own module, from 3.40 on, finds the same records by MATCH, and a lawful file."""
    archive.new_log("all").prompt("FAILED Ключ 日本語 parser range")
    archive.reindex()
    settle(archive)
    with closing(sqlite3.connect(f"file:{archive.path}?mode=ro", uri=True)) as other:
        for table in INDEX_TABLES - {"search"}:
            assert other.execute(f"PRAGMA integrity_check({table})").fetchall() == [("ok",)]
        for pattern in ("FAILED", "(?i)ключ", "日本語", "parser range"):
            sql = "SELECT rowid FROM search WHERE search MATCH ? ORDER BY rowid"
            query = compile_pattern(pattern).required().to_fts5()
            found = other.execute(sql, (query,)).fetchall()
            assert found == list(archive._store.db.execute(sql, (query,)))
            assert found


def test_rebuild_backup_and_extract_take_an_index_along(archive: Archive, tmp_path: Path) -> None:
    """A copy of the whole keeps it; an extract, whose strangers are redacted, does not."""
    archive.new_log("stranger").prompt("not of the trunk")
    archive.reindex()
    assert archive.rebuild() == []
    archive.backup(tmp_path / "b.exarch")
    archive.extract(archive.trunk, tmp_path / "e.exarch")
    with Archive.open(tmp_path / "b.exarch") as copy:
        assert index_reached(copy) == archive.head().seq
        check_all(copy, FEW)
    with Archive.open(tmp_path / "e.exarch") as extract:
        assert tables(extract) == set()
        for pattern in FEW:
            assert extract.trunk.grep(pattern) == archive.trunk.grep(pattern)


def test_a_redaction_takes_the_index_out_before_the_file_is_rewritten(archive: Archive) -> None:
    """L12: which letters stood side by side in a secret would tell it."""
    secret = "zq7xv9k2"  # noqa: S105 (it is the point)
    turn = archive.new_log("secret").prompt(f"the password is {secret}")
    archive.reindex()
    settle(archive)
    with bare_bytes(archive) as data:
        assert b"zq7" in data.replace(secret.encode(), b"")
    archive.redact(turn.seq, reason="a password")
    assert tables(archive) == set()
    with bare_bytes(archive) as data:
        assert b"zq7" not in data
    archive.reindex()
    with bare_bytes(archive) as data:
        assert b"zq7" not in data
    assert archive.verify(index=True).ok


class bare_bytes:  # noqa: N801 - reads as the function it might be
    """Every byte the archive has on disk, as a block."""

    def __init__(self, archive: Archive) -> None:
        self.paths = [archive.path, archive.path + "-wal"]

    def __enter__(self) -> bytes:
        data = b""
        for path in self.paths:
            with open(path, "rb") as file:
                data += file.read()
        return data

    def __exit__(self, *_: object) -> None:
        pass


def test_a_redaction_by_other_hands_makes_the_index_unusable(archive: Archive, tmp_path: Path) -> None:
    """What a redacted part leaves is text of its own, which an index made before does not have."""
    log = archive.new_log("other")
    turn = log.prompt("a secret")
    log.assistant("ok")
    archive.reindex()
    without = tmp_path / "without.exarch"
    archive.backup(without)
    with Archive.open(without) as copy:
        rows = [list(copy._store.db.execute(f"SELECT * FROM {name}")) for name in ("search_pages", "search_progress")]
        shadows = {
            name: list(copy._store.db.execute(f"SELECT * FROM {name}")) for name in ("search_data", "search_idx")
        }
        copy.redact(turn.seq, reason="x", part=0)
        build.reindex(copy._store)
    with bare(without) as db, db:  # the index as it was before the redaction
        for name, kept in (("search_pages", rows[0]), ("search_progress", rows[1]), *shadows.items()):
            db.execute(f"DELETE FROM {name}")
            db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(kept[0]))})", kept)
    with Archive.open(without, readonly=True) as copy, pytest.MonkeyPatch.context() as patch:
        eager(patch)
        told: list[str] = []
        assert copy.log("other").grep("redacted", tell=told.append).total == 1
        assert len(told) == 1
        assert "was redacted since it was made" in told[0]
        assert "search: index: record" in str(copy.verify().first)


def test_redactions_made_before_an_index_are_no_obstacle_to_it(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A half built one has reached the redacted record, and not yet the record that says so."""
    eager(monkeypatch)
    turn = archive.new_log("other").prompt("a secret")
    for number in range(20):
        archive.trunk.note(f"number {number}")
    archive.redact(turn.seq, reason="x", part=0)
    monkeypatch.setattr(build, "STEP_BYTES", 1)
    while (reached := index_some(archive, 1)) < archive.head().seq:
        assert index_reached(archive) == reached
    assert reached > turn.seq + 20
    assert archive.verify(index=True).ok
