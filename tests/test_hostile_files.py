"""Files that are not what they seem: opening gives one clear refusal, in bounded time, and leaves every byte as it was.

Method: each file is opened in a process of its own, to write, to read and to be judged; what it says is compared with what was to
be said, and the folder with what it held. What was planted is made so that running it would never end.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
import stat
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import forge
import pytest
from faulty_vfs import tally
from test_processes import in_a_child

from exarch_sql import Archive, BadFile, ExarchError, Refused, verify
from exarch_sql.connection import APPLICATION_ID, open_unjudged

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 20.0
PAGE = 4096
NEVER_ENDS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
ENDLESS = "instr(zeroblob(20000000), CAST(zeroblob(20000) || x'01' AS BLOB))"  # minutes for one call, which nothing interrupts
ENDLESS_QUOTED = ENDLESS.replace("'", "''")


# --- judging ----------------------------------------------------------------------------------------------------------------


def said_of(path: Path, modes: str = "write read judge") -> dict[str, str]:
    """What opening a file says, by mode: the error and its class, or "opens", or what verify finds; within bounded time."""

    def judge() -> str:
        db = open_unjudged(str(path))
        try:
            report = verify.verify(db)
        finally:
            db.close()
        return f"finds {report.first}" if report.first else "lawful"

    def opening(**options: Any) -> Callable[[], str]:
        def work() -> str:
            with Archive.open(path, timeout=1, **options) as archive:
                archive.trunk.survey()
            return "opens"

        return work

    works = {"write": opening(), "read": opening(readonly=True), "judge": judge}

    def work() -> str:
        said = {}
        for mode in modes.split():
            try:
                said[mode] = works[mode]()
            except ExarchError as error:
                said[mode] = f"{type(error).__name__}: {error}"
        return json.dumps(said)

    answer = in_a_child(work, SECONDS)
    assert answer.startswith("{"), f"an error that is not ours: {answer}"
    said: dict[str, str] = json.loads(answer)
    return said


def held(folder: Path) -> dict[str, str]:
    """Every file of a folder that holds anything, and a hash of what; the shared-memory index is no content."""
    return {
        path.name: sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.is_file() and path.stat().st_size and not path.name.endswith("-shm")
    }


def check_refused(path: Path, *words: str, modes: str = "write read judge") -> None:
    """Each way of opening refuses with one BadFile that names the file and says this, and nothing in the folder has changed."""
    before = held(path.parent)
    for mode, said in said_of(path, modes).items():
        assert said.startswith("BadFile: "), f"{mode}: {said}"
        assert str(path) in said
        assert "\n" not in said
        for word in words:
            assert word in said, f"{mode}: {said}"
    assert held(path.parent) == before


def check_found(path: Path, *words: str) -> None:
    """It cannot be worked with, and judged it is told what is wrong; nothing in the folder has changed."""
    before = held(path.parent)
    said = said_of(path)
    for mode in ("write", "read"):
        assert said[mode].startswith("BadFile: "), f"{mode}: {said[mode]}"
    assert said["judge"].startswith(("finds ", "BadFile: ")), said["judge"]
    for word in words:
        assert word in said["write"], said["write"]
        assert word in said["judge"], said["judge"]
    assert held(path.parent) == before


@pytest.fixture
def path(lawful_file: Path, tmp_path: Path) -> Path:
    """A copy of the lawful file to spoil."""
    copy = tmp_path / "a.exarch"
    shutil.copy(lawful_file, copy)
    return copy


def spoil(path: Path, *statements: str) -> None:
    """Run statements on a file, its schema table open for writing, and leave it in one piece."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            db.execute(statement)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


# --- what is no lineage -----------------------------------------------------------------------------------------------------


def a_text(path: Path) -> None:
    """Somebody's notes."""
    path.write_text("SQLite format 3, it said" * 50)


def an_empty_file(path: Path) -> None:
    """As `touch` leaves it."""
    path.write_bytes(b"")


def a_directory(path: Path) -> None:
    """A folder of that name."""
    path.unlink()
    path.mkdir()


def a_fifo(path: Path) -> None:
    """Opening one waits for a writer, for ever."""
    path.unlink()
    os.mkfifo(path)


def a_socket_name(path: Path) -> None:
    """A device's node stands for all that is no file."""
    path.unlink()
    path.symlink_to("/dev/zero")


def another_application(path: Path) -> None:
    """A database of something else."""
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(
            "CREATE TABLE records (seq INTEGER PRIMARY KEY, body TEXT); INSERT INTO records VALUES (1, 'x')"
        )


def a_newer_version(path: Path) -> None:
    """Of a release to come."""
    spoil(path, "PRAGMA user_version = 2")


def an_older_version(path: Path) -> None:
    """There is none."""
    spoil(path, "PRAGMA user_version = 0")


def utf_16(path: Path) -> None:
    """Our marks and schema in another text encoding, in which a note's bytes count twice."""
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA encoding = 'UTF-16le'")
        db.executescript(forge.SCHEMA)


def an_unknown_schema_format(path: Path) -> None:
    """A number in the header that no SQLite knows; past fault: the driver's own error came out."""
    data = bytearray(path.read_bytes())
    data[47] = 9
    path.write_bytes(data)


def marks_alone(path: Path) -> None:
    """The right application_id and version over a table of something else."""
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1; CREATE TABLE t (x)")


def a_header_alone(path: Path) -> None:
    """A hundred bytes that look right."""
    path.write_bytes(path.read_bytes()[:100])


def dangling(path: Path) -> None:
    """A link to what is not there."""
    path.unlink()
    path.symlink_to(path.with_name("gone"))


def a_circle(path: Path) -> None:
    """A link to itself."""
    path.unlink()
    path.symlink_to(path)


NO_LINEAGES: dict[Callable[[Path], None], str] = {
    a_text: "does not begin as a SQLite database",
    an_empty_file: "does not begin as a SQLite database",
    a_directory: "is not a file",
    a_fifo: "is not a file",
    a_socket_name: "is not a file",
    another_application: "another application's database: application_id 0x0 instead of 0x65787371",
    a_newer_version: "has format 2 instead of 1: a newer exarch_sql reads it",
    an_older_version: "has format 0 instead of 1",
    utf_16: "encoding 2 instead of 1",
    an_unknown_schema_format: "a schema that cannot be read: unsupported file format",
    marks_alone: "schema that is not ours",
    a_header_alone: "",
    dangling: "is a symbolic link to",
    a_circle: "symbolic link",
}


@pytest.mark.parametrize("make", NO_LINEAGES, ids=lambda make: make.__name__)
def test_what_is_no_lineage_is_refused_and_left_as_it_is(path: Path, make: Callable[[Path], None]) -> None:
    """One BadFile: what, where, and the got and want where there is one."""
    make(path)
    modes = "read judge" if make in (dangling, a_circle) else "write read judge"
    if make is marks_alone:
        check_found(path)
    else:
        check_refused(path, *([NO_LINEAGES[make]] if modes == "write read judge" else []), modes=modes)
    if modes != "write read judge":
        check_refused(path, NO_LINEAGES[make], modes="write judge")
    tally("hostile files opened", 1)


def test_a_file_cut_short_at_any_length_is_refused_or_found(path: Path) -> None:
    """Truncated: at every length to the first page's end that matters, and at and around each page's end."""
    data = path.read_bytes()
    pages = range(0, len(data), PAGE)
    lengths = {
        *range(0, 130, 7),
        511,
        512,
        2048,
        *pages,
        *(page + 1 for page in pages),
        *(page + PAGE - 1 for page in pages),
    }
    lengths -= {len(data)}
    for length in sorted(lengths):
        path.write_bytes(data[:length])
        said = said_of(path, "judge write")
        assert said["judge"].startswith(("BadFile: ", "finds ")), f"{length} of {len(data)} bytes: {said}"
        assert said["write"].startswith(("BadFile: ", "opens")), f"{length} of {len(data)} bytes: {said}"
        assert path.read_bytes() == data[:length]
        tally("hostile files opened", 1)


def test_a_page_of_zeros_or_noise_is_refused_or_found(path: Path) -> None:
    """Each page of the file in turn: free pages aside, no page can be lost without a word."""
    data = path.read_bytes()
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA freelist_count").fetchone() == (0,)
    for number, at in enumerate(range(0, len(data), PAGE)):
        for page in (bytes(PAGE), random.Random(number).randbytes(PAGE)):  # noqa: S311
            path.write_bytes(spoiled := data[:at] + page + data[at + PAGE :])
            said = said_of(path, "judge write")
            assert said["judge"].startswith(("BadFile: ", "finds ")), f"page {number}: {said}"
            assert path.read_bytes() == spoiled, f"page {number}"
            tally("hostile files opened", 1)


# --- what was planted -------------------------------------------------------------------------------------------------------

MANY = 3000
PLANTS: dict[str, tuple[str, ...]] = {
    "a trigger on records": (f"CREATE TRIGGER planted AFTER INSERT ON records BEGIN {NEVER_ENDS}; END",),
    "a trigger on a view": (f"CREATE TRIGGER planted INSTEAD OF DELETE ON frontier BEGIN {NEVER_ENDS}; END",),
    "a view": (f"CREATE VIEW planted AS {NEVER_ENDS}",),
    "a view of ours that never ends": (
        f"UPDATE sqlite_schema SET sql = 'CREATE VIEW frontier AS {NEVER_ENDS}' WHERE name = 'frontier'",
    ),
    "a guard that guards nothing": (
        "UPDATE sqlite_schema SET sql = replace(sql, 'RAISE(ABORT', 'coalesce(NULL') WHERE name = 'records_are_not_deleted'",
    ),
    "a table that became a view": (
        "DELETE FROM sqlite_schema WHERE tbl_name = 'lineage'",
        "INSERT INTO sqlite_schema VALUES ('view', 'lineage', 'lineage', 0, 'CREATE VIEW lineage (id, uuid, created_ms, format) AS "
        f"SELECT 1, 1, 1, 1 FROM ({NEVER_ENDS})')",
    ),
    "records became a view": (
        "DELETE FROM sqlite_schema WHERE tbl_name = 'records' AND type IN ('table', 'index')",
        f"INSERT INTO sqlite_schema VALUES ('view', 'records', 'records', 0, 'CREATE VIEW records AS {NEVER_ENDS}')",
    ),
    "a column that is computed when read": (
        f"UPDATE sqlite_schema SET sql = replace(sql, 'label     TEXT,', 'label TEXT AS ({ENDLESS_QUOTED}),') "
        "WHERE name = 'records'",
    ),
    "an index on an expression": (
        "CREATE INDEX planted ON records (abs(seq))",
        f"UPDATE sqlite_schema SET sql = replace(sql, 'abs(seq)', '{ENDLESS_QUOTED}') WHERE name = 'planted'",
    ),
    "a partial index": (
        "CREATE INDEX planted ON records (seq) WHERE abs(seq)",
        f"UPDATE sqlite_schema SET sql = replace(sql, 'abs(seq)', '{ENDLESS_QUOTED}') WHERE name = 'planted'",
    ),
    "a check": (
        "UPDATE sqlite_schema SET sql = replace(sql, 'CONSTRAINT whole_digests CHECK (', "
        f"'CONSTRAINT whole_digests CHECK ({ENDLESS_QUOTED} IS NOT 5 AND ') WHERE name = 'records'",
    ),
    "a table of its own": ("CREATE TABLE planted (x CHECK (length(hex(zeroblob(x)))))", "INSERT INTO planted VALUES (1)"),
    "a search table": ("CREATE VIRTUAL TABLE planted USING fts5 (x)",),
    "statistics that are computed when read": (
        "CREATE TABLE planted (tbl, idx, other, stat AS (abs(other)))",
        "INSERT INTO planted VALUES ('records', 'records_by_key', 1)",
        "UPDATE sqlite_schema SET name = 'sqlite_stat1', tbl_name = 'sqlite_stat1', "
        f"sql = replace(replace(sql, 'planted', 'sqlite_stat1'), 'abs(other)', '{ENDLESS_QUOTED}') WHERE name = 'planted'",
    ),
    "a view that reads itself": (
        "UPDATE sqlite_schema SET sql = 'CREATE VIEW items AS SELECT * FROM items' WHERE name = 'items'",
    ),
    "a statement of a megabyte": (f"CREATE VIEW planted AS SELECT '{'x' * 1_000_000}'",),
    "a name of a hundred thousand": (f"CREATE VIEW \"{'x' * 100_000}\" AS SELECT 1",),
    "a name of two lines": ('CREATE VIEW "two\nlines" AS SELECT 1',),
    "a row without a name": ("INSERT INTO sqlite_schema VALUES ('view', NULL, NULL, 0, 'CREATE VIEW x AS SELECT 1')",),
    "a row of another type": ("INSERT INTO sqlite_schema VALUES (5, 'x', 'x', 0, 'CREATE VIEW x AS SELECT 1')",),
    "text that is no text": ("UPDATE sqlite_schema SET sql = CAST(x'ff' AS TEXT) || sql WHERE name = 'witnesses'",),
    "an unknown module": (
        "INSERT INTO sqlite_schema VALUES ('table', 'p', 'p', 0, 'CREATE VIRTUAL TABLE p USING no_such_module (x)')",
    ),
    "nothing that parses": ("UPDATE sqlite_schema SET sql = 'CREATE VIEW items AS SELEKT' WHERE name = 'items'",),
    "two tables in one tree": (
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'records') WHERE name = 'blobs'",
    ),
    "a tree past the end": ("UPDATE sqlite_schema SET rootpage = 4000000000 WHERE name = 'records'",),
    "a table without a tree": ("UPDATE sqlite_schema SET rootpage = 0 WHERE name = 'records'",),
}  # fmt: skip
ONLY_VERIFY_FINDS = {"two tables in one tree", "a tree past the end", "a table without a tree"}


@pytest.mark.parametrize("plant", PLANTS)
def test_nothing_planted_is_run(path: Path, plant: str) -> None:
    """The schema is compared before anything in it runs, and the judge reads nothing that could run something of the file's."""
    spoil(path, *PLANTS[plant])
    if plant in ONLY_VERIFY_FINDS:
        before = held(path.parent)
        said = said_of(path, "judge read")
        assert said["judge"].startswith(("finds ", "BadFile: ")), said
        assert held(path.parent) == before
    else:
        check_found(path)
    tally("hostile files opened", 1)


def test_a_schema_of_thousands_of_objects_is_refused_in_bounded_time(path: Path) -> None:
    """One sentence about the first of them, and how many there are."""
    spoil(
        path, "BEGIN", *(f"CREATE VIEW planted_{each} AS SELECT {each} FROM records" for each in range(MANY)), "COMMIT"
    )
    began = time.monotonic()
    check_refused(path, f"({MANY} such)", modes="write read")
    assert time.monotonic() - began < SECONDS / 2
    assert said_of(path, "judge")["judge"].startswith("finds schema")


# --- sidecars ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def with_log(path: Path) -> Path:
    """The file with records that are in its log alone."""
    archive = Archive.open(path)
    for number in range(5):
        archive.log("empty").prompt(f"in the log {number}")
    kept = {suffix: Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-wal")}
    archive.close()
    for suffix, data in kept.items():
        Path(f"{path}{suffix}").write_bytes(data)
    return path


def test_a_refused_file_keeps_its_log(with_log: Path) -> None:
    """Past fault: closing the refused connection folded the log into the file and deleted it."""
    main, log = with_log.read_bytes(), Path(f"{with_log}-wal").read_bytes()
    with contextlib.closing(apsw.Connection(str(with_log))) as db:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.execute("CREATE VIEW planted AS SELECT 1")
    assert with_log.read_bytes() == main
    assert Path(f"{with_log}-wal").read_bytes() != log
    check_found(with_log, "view planted", "not ours")


NOISE = random.Random(1).randbytes(50_000)  # noqa: S311


@pytest.mark.parametrize("garbage", [b"x", b"\x37\x7f\x06\x82" * 2000, bytes(100_000), NOISE])
def test_a_log_of_garbage_is_no_log(path: Path, lawful_file: Path, garbage: bytes) -> None:
    """What has no valid checksum was never committed: the file is what it was."""
    Path(f"{path}-wal").write_bytes(garbage)
    Path(f"{path}-shm").write_bytes(garbage)
    assert said_of(path) == {"write": "opens", "read": "opens", "judge": "lawful"}
    with Archive.open(path) as archive, Archive.open(lawful_file, readonly=True) as original:
        assert archive.head() == original.head()


def test_a_log_cut_or_spoiled_is_a_shorter_one_and_a_kept_head_tells(with_log: Path) -> None:
    """Whole transactions are missing from the end, never part of one; only a head kept elsewhere can tell that they were."""
    main, log = with_log.read_bytes(), Path(f"{with_log}-wal").read_bytes()
    with Archive.open(with_log) as archive:
        head, reach = archive.head(), archive.log("empty").reach
    dice = random.Random(7)  # noqa: S311
    shorter = 0
    for _ in range(25):
        cut = dice.randrange(len(log))
        spoiled = log[:cut] if dice.random() < 0.5 else log[:cut] + bytes([log[cut] ^ 0x55]) + log[cut + 1 :]
        with_log.write_bytes(main)
        Path(f"{with_log}-wal").write_bytes(spoiled)
        with Archive.open(with_log) as archive:
            assert archive.verify().ok
            there = archive.log("empty").reach
            assert reach - 5 <= there <= reach
            assert archive.verify(against=head).ok == (there == reach)
            shorter += there < reach
    assert shorter


def test_a_rollback_journal_beside_it_is_refused_before_sqlite_plays_it_back(path: Path) -> None:
    """No lineage has one; it would be written into the file before anybody could look. Nothing is touched."""
    other = path.with_name("other")
    with contextlib.closing(sqlite3.connect(other, isolation_level=None)) as db:
        db.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(30000))")
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN")
        db.execute("UPDATE t SET x = randomblob(30000)")
        db.execute("CREATE TABLE u (x)")
        journal = Path(f"{other}-journal").read_bytes()
    Path(f"{path}-journal").write_bytes(journal)
    check_refused(path, "a rollback journal, which no lineage has")
    Path(f"{path}-journal").write_bytes(b"")
    assert said_of(path)["judge"] == "lawful"


def test_a_log_that_is_no_file_is_told(path: Path) -> None:
    """A folder where the log should be."""
    Path(f"{path}-wal").mkdir()
    check_refused(path)


def test_an_index_of_the_log_that_cannot_be_made_leaves_the_file_readable_alone(path: Path) -> None:
    """A folder where the shared-memory index should be: SQLite reads without one, and writing is refused in so many words."""
    Path(f"{path}-shm").mkdir()
    assert said_of(path, "read judge") == {"read": "opens", "judge": "lawful"}
    archive = Archive.open(path)
    with pytest.raises(Refused, match="its -shm may be written"):
        archive.log("empty").prompt("x")
    archive._store.db.close()


# --- names ------------------------------------------------------------------------------------------------------------------


def test_a_symbolic_link_is_followed_to_one_file_with_one_log(path: Path) -> None:
    """Two names, one file: SQLite keeps the sidecars beside the file itself, so both see every append at once."""
    elsewhere = path.parent / "elsewhere"
    elsewhere.mkdir()
    link = elsewhere / "link"
    link.symlink_to(path)
    with Archive.open(path) as archive, Archive.open(link) as same:
        turn = archive.log("empty").prompt("by one name")
        assert same.log("empty").reach == turn.id
        assert same.log("empty").prompt("by the other").id == turn.id + 1
        assert archive.verify().ok
        assert [entry.name for entry in elsewhere.iterdir()] == ["link"]


def test_a_dangling_link_is_not_made_into_a_file(tmp_path: Path) -> None:
    """What it points to may be a medium that is not mounted, or an attacker's choice of place."""
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadFile, match="is a symbolic link to"):
        Archive.open(link)
    assert [entry.name for entry in tmp_path.iterdir()] == ["link"]


@pytest.mark.parametrize("name", ["./:memory:", "./file:x?mode=memory", "a b%20c?d#e", "é\n\t'\"`$", "-wal", "x" * 200])
def test_a_name_is_only_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """SQLite gives some names a meaning of its own; here each is a file of that name."""
    monkeypatch.chdir(tmp_path)
    with Archive.open(name) as archive:
        archive.trunk.prompt("kept")
    assert [entry.name for entry in tmp_path.iterdir()] == [Path(name).name]
    with Archive.open(name, readonly=True) as archive:
        assert archive.trunk.reach == 1
        assert archive.sql("SELECT max(turn) FROM records").rows == ((1,),)


@pytest.mark.parametrize("name", ["", ":memory:", "file:x", "a\0b", "no/such/folder/a", "x" * 300, "x/" * 3000 + "x"])
def test_a_name_that_cannot_be_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """In our words, not the system's."""
    monkeypatch.chdir(tmp_path)
    for options in ({}, {"readonly": True}):
        with pytest.raises((BadFile, Refused)):
            Archive.open(name, **options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_new_file_is_its_owners_alone_whatever_the_umask_and_the_folder(tmp_path: Path) -> None:
    """A world-writable folder is used as it is told; the file in it is 0600, and so are its sidecars."""
    tmp_path.chmod(0o777)
    before = os.umask(0)
    try:
        with Archive.open(tmp_path / "a") as archive:
            archive.trunk.prompt("mine")
            archive.backup(tmp_path / "copy")
            modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(["a", "a-wal", "a-shm", "copy"], 0o600)


# --- odd, but lawful --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [512, 1024, 65536])
def test_a_file_of_another_page_size_is_a_lineage_like_another(path: Path, lawful_file: Path, size: int) -> None:
    """Rewritten by another tool: taken back into write-ahead mode, whole, and written to."""
    path.unlink()
    with contextlib.closing(sqlite3.connect(lawful_file)) as db:
        db.execute(f"PRAGMA page_size = {size}")
        db.execute("VACUUM INTO ?", (str(path),))
    with Archive.open(path) as archive, Archive.open(lawful_file, readonly=True) as original:
        assert archive.sql("PRAGMA page_size").rows == ((size,),)
        assert archive.head() == original.head()
        archive.log("empty").prompt("goes on")
        assert archive.verify().ok


def test_oversized_names_and_labels_are_judged_in_bounded_time(path: Path) -> None:
    """Written by a hand of its own: a log's name, a label and a key of ten megabytes."""
    huge = "x" * 10_000_000
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        pen = forge.Pen(db)
        pen.write(pen.opened(7, huge))
        pen.write(pen.prompt(1, huge, log=7, label=huge, key=huge))
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def work() -> str:
        with Archive.open(path) as archive:
            names = [log.name for log in archive.logs()]
            return f"{len(names[-1])} {len(archive.log(7).survey().rows)} {len(str(archive.verify().first))}"

    name, rows, fault = in_a_child(work, SECONDS).split()
    assert (name, rows) == (str(len(huge)), "1")
    assert int(fault) > 0
