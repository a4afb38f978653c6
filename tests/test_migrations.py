"""Versions: a file of an older format is brought up to date whole, or is left as it is; what nobody knows is refused.

There is one format so far, so two are made up here, as a release would make them: a tree of `schema.sql` and
`exarch_sql/formats/` in the place of the real one. Format 2 says one refusal otherwise and has a view more; format 3 has
a column more in `records`, another index, and a fold table written otherwise.

Faults of the disk hit sampled operations of a migration; ``EXARCH_FAULTS=all`` takes every one.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shlex
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import forge
import keep_format
import pytest
from click.testing import CliRunner
from conftest import fill
from faulty_vfs import Disk, Fault, running_on, tally
from test_processes import as_nobody, held_by_another, in_a_child, in_children, told

from exarch_sql import Archive, BadFile, Busy, ExarchError, Refused, connection, migrations, resources
from exarch_sql.cli import app

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from faulty_vfs import Kind

FAULTS = os.environ.get("EXARCH_FAULTS", "12")
NAME = "a.exarch"
SCHEMA_1 = forge.SCHEMA
SCHEMA_2 = (
    SCHEMA_1.replace("PRAGMA user_version = 1;", "PRAGMA user_version = 2;")
    .replace("'L1: a record is never deleted'", "'L1: a record stays for good'")
    .replace(
        "-- one row per redaction",
        "-- one row per log: its newest record.\nCREATE VIEW newest AS\nSELECT log, max(seq) AS seq FROM records GROUP BY log;\n\n"
        "-- one row per redaction",
    )
)
SCHEMA_3 = (
    SCHEMA_2.replace("PRAGMA user_version = 2;", "PRAGMA user_version = 3;")
    .replace(
        "  body_hash BLOB NOT NULL,",
        "  mood      TEXT,                -- nobody says yet\n  body_hash BLOB NOT NULL,",
        1,
    )
    .replace("ON records (log, kind, seq) WHERE turn IS NULL", "ON records (log, kind, seq, target) WHERE turn IS NULL")
    .replace("-- the log that sees", "-- the log that looks")
)
RECORDS_3 = re.search(r"^CREATE TABLE records \(.*?\n\) STRICT;\n", SCHEMA_3, re.MULTILINE | re.DOTALL)
assert RECORDS_3 is not None
COLUMNS = ", ".join(
    row[1] for row in sqlite3.connect(":memory:").executescript(SCHEMA_1).execute("PRAGMA table_info(records)")
)
ONE_TO_TWO = "-- nothing of part 1 changed\n"
TWO_TO_THREE = f"""
ALTER TABLE records RENAME TO was_records;
{RECORDS_3[0]}
INSERT INTO records ({COLUMNS}) SELECT {COLUMNS} FROM was_records ORDER BY seq;
DROP TABLE was_records;
"""
TREE = {
    "schema.sql": SCHEMA_3,
    "exarch_sql/formats/1.sql": SCHEMA_1,
    "exarch_sql/formats/2.sql": SCHEMA_2,
    "exarch_sql/formats/1-to-2.sql": ONE_TO_TWO,
    "exarch_sql/formats/2-to-3.sql": TWO_TO_THREE,
}


# --- releases to come -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def release(number: int, folder: Path, **other: str) -> Iterator[None]:
    """Inside the block the package is that of a later format, with its files, or ``other`` ones, in ``folder``."""
    texts = TREE | {"schema.sql": (SCHEMA_1, SCHEMA_2, SCHEMA_3)[number - 1]} | other
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resources, "_PLACES", (folder,))
        patch.setattr(connection, "FORMAT", number)
        _forget()
        try:
            yield
        finally:
            _forget()


def _forget() -> None:
    resources.text.cache_clear()
    connection._schemas.cache_clear()


@pytest.fixture
def third(tmp_path: Path) -> Iterator[None]:
    """The release of format 3."""
    with release(3, tmp_path / "tree"):
        yield


def of_format(number: int, path: Path, tree: Path) -> Path:
    """A file in which every kind of row occurs, written by the release of a format."""
    with release(number, tree), Archive.open(path, durability="off") as archive, archive.batch():
        fill(archive)
    return path


def rows(path: Path) -> dict[str, list[str]]:
    """Every row of every table, the schema's and the marks aside."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        held = forge.content(db)
    del held["sqlite_schema"]
    return {name: sorted(map(repr, found)) for name, found in held.items()}


def schema(path: Path) -> tuple[int, set[tuple[str, str, str]]]:
    """The format and every object: type, name, text."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        (number,) = db.execute("PRAGMA user_version").fetchone()
        return number, set(db.execute("SELECT type, name, sql FROM sqlite_schema"))


def held(folder: Path) -> dict[str, bytes]:
    """What every file of a folder holds."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def answers(path: Path) -> dict[str, Any]:
    """What a file answers, of each log."""
    with Archive.open(path) as archive:
        said: dict[str, Any] = json.loads(json.dumps(keep_format.answers(archive)))
    return said


@pytest.fixture
def old(tmp_path: Path, lawful_file: Path) -> Path:
    """A file of format 1, alone in its folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    return Path(shutil.copy(lawful_file, folder / NAME))


# --- the formats there are ----------------------------------------------------------------------------------------------------


def test_a_file_of_every_format_is_kept_and_every_step_is_there() -> None:
    """A format without a kept file is not tested against; one without its schema or step cannot be left."""
    kept = sorted(path.stem for path in keep_format.KEPT.glob("*.sql"))
    assert kept == [str(number) for number in range(1, connection.FORMAT + 1)]
    for number in range(1, connection.FORMAT):
        assert f"PRAGMA user_version = {number};" in resources.text(f"exarch_sql/formats/{number}.sql")
        assert resources.text(f"exarch_sql/formats/{number}-to-{number + 1}.sql")


@pytest.mark.parametrize("number", range(1, connection.FORMAT + 1))
def test_a_kept_file_opens_verifies_and_answers_as_it_always_did(number: int, tmp_path: Path) -> None:
    """Whoever edits `schema.sql` after a release, a comment even, or what is answered of an old record, fails here.

    Before the release, `python tests/keep_format.py --again` keeps the file anew.
    """
    path = tmp_path / NAME
    keep_format.load((keep_format.KEPT / f"{number}.sql").read_text(encoding="utf-8"), path)
    if number < connection.FORMAT:
        assert Archive.migrate(path).from_ == number
    with Archive.open(path) as archive:
        report = archive.verify()
        assert report.ok, report.first
        assert report.redacted
    assert answers(path) == json.loads((keep_format.KEPT / f"{number}.json").read_text(encoding="utf-8"))


def test_a_file_of_the_newest_format_is_left_as_it_is(old: Path) -> None:
    """Nothing to do is no error, and no copy is made, even while the file is in use."""
    before = held(old.parent)
    with Archive.open(old) as archive:
        assert Archive.migrate(old).to_dict() == {"path": str(old), "from": 1, "to": 1, "copy": None}
        archive.trunk.survey()
    assert held(old.parent) == before


# --- fresh and migrated -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2])
def test_a_migrated_file_has_the_schema_of_a_fresh_one_and_says_the_same(number: int, tmp_path: Path) -> None:
    """Triggers and views included, to the letter; records, digests and answers as they were; the copy is the file as it was."""
    path = of_format(number, tmp_path / NAME, tmp_path / "past")
    fresh = of_format(3, tmp_path / "fresh", tmp_path / "tree")
    with release(number, tmp_path / "past"):
        before, said = rows(path), answers(path)
        with Archive.open(path) as archive:
            head = archive.head()

    with release(3, tmp_path / "tree"):
        done = Archive.migrate(path)
        assert done.to_dict() == {"path": str(path), "from": number, "to": 3, "copy": f"{path}.format-{number}"}
        assert schema(path) == schema(fresh)
        assert answers(path) == said
        with Archive.open(path) as archive:
            assert archive.verify(against=head).ok
            assert archive.rebuild() == []
            archive.trunk.note("goes on")
            assert archive.verify(against=head).ok
        with contextlib.closing(sqlite3.connect(path)) as db:
            found = db.execute(f"SELECT {COLUMNS} FROM records WHERE seq <= ? ORDER BY seq", (head.seq,)).fetchall()
            assert db.execute("SELECT DISTINCT mood FROM records").fetchall() == [(None,)]
            with pytest.raises(sqlite3.IntegrityError, match="L1: a record stays for good"):
                db.execute("DELETE FROM records")
    assert sorted(map(repr, found)) == before.pop("records")
    after = rows(path)
    assert {name: after[name] for name in before} == before

    copy = Path(f"{path}.format-{number}")
    assert copy.stat().st_mode & 0o777 == 0o600
    with release(number, tmp_path / "past"):
        assert answers(copy) == said
        with Archive.open(copy) as archive:
            assert archive.verify(against=head).ok
    assert {entry.name for entry in tmp_path.iterdir() if entry.is_file()} == {NAME, "fresh", copy.name}


@pytest.mark.usefixtures("third")
def test_what_others_made_in_the_file_stays_and_the_search_index_goes(tmp_path: Path, lawful_file: Path) -> None:
    """An auditor's statistics and a replicator's tables are not ours to drop; the index is derived, and a search makes it anew."""
    path = Path(shutil.copy(lawful_file, tmp_path / NAME))
    with release(1, tmp_path / "past"), Archive.open(path) as archive:
        archive.reindex()
        hits = archive.trunk.grep("e")
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(
            "ANALYZE; CREATE TABLE _litestream_lock (id INTEGER);"
            "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER); INSERT INTO _litestream_seq VALUES (1, 7)"
        )
    _forget()

    Archive.migrate(path)

    names = {name for _, name, _ in schema(path)[1]}
    assert {"sqlite_stat1", "_litestream_seq", "_litestream_lock"} <= names
    assert "search" not in names
    assert rows(path)["_litestream_seq"] == ["(1, 7)"]
    with Archive.open(path) as archive:
        assert archive.trunk.grep("e") == hits
        archive.reindex()
        assert archive.trunk.grep("e") == hits
        assert archive.verify(index=True).ok


def test_a_fold_that_was_wrong_is_derived_again(old: Path, tmp_path: Path) -> None:
    """L14: the fold follows from the records, whatever stood there."""
    said = answers(old)
    with contextlib.closing(sqlite3.connect(old, isolation_level=None)) as db, forge.without_triggers(db):
        db.execute("DELETE FROM standing")
    with release(3, tmp_path / "tree"):
        Archive.migrate(old)
        assert answers(old) == said


# --- refusals before anything is done ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("third")
def test_an_older_file_is_refused_until_somebody_migrates_it(old: Path) -> None:
    """Never unasked: opened, read or judged, it is refused with got, want and the line that works; not a byte changes."""
    before = held(old.parent)
    for opening in (
        lambda: Archive.open(old),
        lambda: Archive.open(old, readonly=True),
        lambda: connection.open_unjudged(str(old)),
    ):
        with pytest.raises(
            BadFile, match=re.escape("has format 1 instead of 3: an older exarch_sql wrote it")
        ) as refused:
            opening()
        assert f"`exarch-sql migrate {shlex.quote(str(old))}`" in str(refused.value)
        assert held(old.parent) == before


@pytest.mark.parametrize("number", [4, 99, 0, -1])
def test_a_format_nobody_knows_is_refused_and_not_migrated(old: Path, number: int, tmp_path: Path) -> None:
    """Newer, or never written: got and want are said, by migrate too."""
    with contextlib.closing(sqlite3.connect(old)) as db:
        db.execute(f"PRAGMA user_version = {number}")
    before = held(old.parent)
    with release(3, tmp_path / "tree"):
        for opening in (lambda: Archive.open(old), lambda: Archive.migrate(old)):
            words = "a newer exarch_sql reads it" if number > 3 else "no release ever wrote that"
            with pytest.raises(BadFile, match=f"has format {number} instead of 3: {words}"):
                opening()
    assert held(old.parent) == before


def test_the_newest_page_of_the_log_says_the_format(old: Path, tmp_path: Path) -> None:
    """Killed right after the commit, a migration stands in the log alone: the file opens, and its release's forerunner refuses."""

    def killed() -> str:
        opening = migrations.open_file

        def opened(*args: Any, **options: Any) -> apsw.Connection:
            db = opening(*args, **options)
            db.set_wal_hook(lambda *_: os._exit(0))
            return db

        migrations.open_file = opened  # type: ignore[assignment]
        Archive.migrate(old)
        return "it was not killed"

    said = answers(old)
    with release(3, tmp_path / "tree"):
        assert in_a_child(killed) == ""
        shutil.copytree(old.parent, tmp_path / "copied")
        assert answers(old) == said
        assert Archive.migrate(old).copy is None
        assert old.read_bytes()[60:64] == (3).to_bytes(4, "big")
    copied = tmp_path / "copied" / NAME
    assert copied.read_bytes()[60:64] == (1).to_bytes(4, "big")
    with pytest.raises(BadFile, match="has format 3 instead of 1: a newer"):
        Archive.open(copied)


@pytest.mark.usefixtures("third")
def test_what_was_planted_in_an_older_file_is_not_run(old: Path) -> None:
    """Its schema is compared with that of its format before a step runs: a trigger of somebody else's ends it."""
    with contextlib.closing(sqlite3.connect(old)) as db:
        db.execute("CREATE TRIGGER planted AFTER INSERT ON blobs BEGIN SELECT 1; END")
    before = held(old.parent)
    with pytest.raises(BadFile, match="trigger planted is not ours"):
        Archive.migrate(old)
    assert held(old.parent) == before


@pytest.mark.usefixtures("third")
def test_a_copy_never_overwrites(old: Path) -> None:
    """The name may hold the only other copy there is; another can be asked for."""
    Path(f"{old}.format-1").write_bytes(b"mine")
    before = held(old.parent)
    with pytest.raises(Refused, match="a copy never overwrites"):
        Archive.migrate(old)
    assert held(old.parent) == before

    done = Archive.migrate(old, copy=old.with_name("before"))

    assert done.copy == str(old.with_name("before"))
    assert held(old.parent)[f"{NAME}.format-1"] == b"mine"


@pytest.mark.usefixtures("third")
@pytest.mark.parametrize("how", ["BEGIN IMMEDIATE", "SELECT 1 FROM records"], ids=["writing", "merely open"])
def test_a_file_that_is_open_elsewhere_is_busy(old: Path, how: str) -> None:
    """An older release in another process would go on in a format it does not know."""
    before = old.read_bytes()
    with held_by_another(old, how):
        with pytest.raises(Busy, match="needs it alone: nothing was done; close it there"):
            Archive.migrate(old, timeout=0.2)
        assert not Path(f"{old}.format-1").exists()
    assert old.read_bytes() == before
    assert Archive.migrate(old).to == 3


def test_a_live_handle_of_the_older_release_keeps_its_file(old: Path, tmp_path: Path) -> None:
    """In the same process too: it goes on as it was, and nothing is lost."""
    with Archive.open(old) as archive:
        archive.trunk.prompt("in the log")
        with release(3, tmp_path / "tree"), pytest.raises(Busy):
            Archive.migrate(old, timeout=0.2)
        assert archive.trunk.prompt("goes on").id
        assert archive.verify().ok


@pytest.mark.usefixtures("third")
def test_a_file_that_may_not_be_written_is_refused(lawful_file: Path) -> None:
    """Read-only for whoever asks."""
    folder = Path(tempfile.mkdtemp())  # pytest's own folders let nobody else in
    try:
        path = Path(shutil.copy(lawful_file, folder / NAME))
        path.chmod(0o444)
        folder.chmod(0o755)
        before = held(folder)
        assert "cannot be written here" in as_nobody(lambda: told(lambda: Archive.migrate(path)))
        assert held(folder) == before
    finally:
        shutil.rmtree(folder)


@pytest.mark.usefixtures("third")
def test_of_two_that_migrate_at_once_one_does_it(old: Path) -> None:
    """The others wait for it, and find nothing to do; there is one copy, and the file is lawful.

    Past fault: each kept a share of the file while it waited to have it alone, until all of them gave up.
    """
    said = in_children(*[lambda: told(lambda: Archive.migrate(old).copy)] * 4)
    done = f"done: {old}.format-1"
    assert said.count(done) == 1
    assert said.count("done: None") == len(said) - 1, said
    with Archive.open(old) as archive:
        assert archive.verify().ok
    assert set(held(old.parent)) == {NAME, f"{NAME}.format-1"}


# --- failures on the way ------------------------------------------------------------------------------------------------------

GONE_WRONG = {
    "a step that fails half-way": (
        {"exarch_sql/formats/2-to-3.sql": f"{TWO_TO_THREE}\nINSERT INTO nowhere VALUES (1);"},
        "no such table: nowhere",
    ),
    "a step that breaks a constraint": (
        {"exarch_sql/formats/1-to-2.sql": "UPDATE records SET seq = 1 WHERE seq = 2;"},
        "UNIQUE constraint failed",
    ),
    "a result that differs by one blank": (
        {"exarch_sql/formats/2-to-3.sql": TWO_TO_THREE.replace("mood      TEXT", "mood       TEXT")},
        "schema: table records: altered",
    ),
    "a table left behind": (
        {"exarch_sql/formats/1-to-2.sql": "CREATE TABLE scratch (a);"},
        "schema: table scratch: not ours",
    ),
    "a record lost": ({"exarch_sql/formats/1-to-2.sql": "DELETE FROM records WHERE seq = 3;"}, "sequence: record 4"),
    "a record changed": (
        {"exarch_sql/formats/1-to-2.sql": "UPDATE records SET at_ms = at_ms + 1 WHERE seq = 3;"},
        "chain: record 3",
    ),
    "a step that is missing": ({"exarch_sql/formats/1-to-2.sql": "SELECT gone FROM records;"}, "no such column: gone"),
}


@pytest.mark.parametrize("what", GONE_WRONG)
def test_a_migration_that_goes_wrong_changes_nothing(old: Path, tmp_path: Path, what: str) -> None:
    """Taken back whole: the refusal says what was wrong, that the file is as it was, and where the copy is."""
    other, words = GONE_WRONG[what]
    before, said = old.read_bytes(), answers(old)
    with release(3, tmp_path / "tree", **other):
        with pytest.raises(ExarchError, match=re.escape(words)) as refused:
            Archive.migrate(old)
        assert f"{old} is as it was, in format 1, and so is its copy {old}.format-1" in str(refused.value)
    assert held(old.parent).keys() == {NAME, f"{NAME}.format-1"}
    assert old.read_bytes() == before
    assert answers(old) == answers(Path(f"{old}.format-1")) == said


def test_a_file_that_was_unlawful_before_is_not_migrated(old: Path, tmp_path: Path) -> None:
    """A body altered, past its hash: verify finds it in the result, and the file is left for whoever looks into it."""
    with contextlib.closing(sqlite3.connect(old, isolation_level=None)) as db, forge.without_triggers(db):
        db.execute("UPDATE records SET body = replace(body, 'turned', 'burned') WHERE kind = 'assistant'")
    before = old.read_bytes()
    with (
        release(3, tmp_path / "tree"),
        pytest.raises(BadFile, match=r"it would not be lawful afterwards.*body: record"),
    ):
        Archive.migrate(old)
    assert old.read_bytes() == before


# --- failures of the disk -------------------------------------------------------------------------------------------------------


class Attempt:
    """One run of a migration on a disk with faults to come."""

    def __init__(self, folder: Path, lawful_file: Path, *faults: Fault) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self.path = Path(shutil.copy(lawful_file, folder / NAME))
        self.copy = Path(f"{self.path}.format-1")
        self.disk = Disk(folder, *faults)
        self.acknowledged = False
        with running_on(self.disk):
            try:
                Archive.migrate(self.path)
                self.acknowledged = not self.disk.off
            except ExarchError:
                pass
            except SystemError:  # the driver's own, of a backup on a VFS in Python that fails
                assert self.disk.faults

    def check(self, said: dict[str, Any], records: list[str], past: Path, tree: Path) -> None:
        """The file is whole, in one format or the other, and goes on; with the newer one there is a copy in the older."""
        with contextlib.closing(apsw.Connection(str(self.path))) as db:
            number = connection.format_of(db)
        assert number == 3 or (number == 1 and not self.acknowledged)
        assert number == 1 or self.copy.exists(), "migrated without a copy"
        if self.copy.exists():
            self.as_ever(self.copy, 1, said, records, past)
        self.as_ever(self.path, number, said, records, tree if number == 3 else past)
        with release(3, tree):
            assert Archive.migrate(self.path, copy=self.path.with_name("another")).to == 3
        self.as_ever(self.path, 3, said, records, tree)

    @staticmethod
    def as_ever(path: Path, number: int, said: dict[str, Any], records: list[str], tree: Path) -> None:
        """A file of that format, lawful, that answers as before."""
        with release(number, tree):
            assert answers(path) == said
            with Archive.open(path) as archive:
                report = archive.verify()
                assert report.ok, report.first
        with contextlib.closing(sqlite3.connect(path)) as db:
            assert sorted(map(repr, db.execute(f"SELECT {COLUMNS} FROM records"))) == records


@pytest.mark.parametrize("kind", ["power", "error", "torn", "full"])
def test_a_migration_survives_a_failure_at_any_operation(
    kind: Kind, lawful_file: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Power cut, failed or torn write, full disk: the file is the old one or the new one, whole, and then there is a copy."""
    said, records = answers(lawful_file), rows(lawful_file)["records"]
    past, tree, folder = tmp_path / "past", tmp_path / "tree", tmp_path / "disk"
    with release(3, tree):
        whole = Attempt(folder, lawful_file)
        assert whole.acknowledged
    numbers: Sequence[int] = range(1, whole.disk.operations + 1)
    if FAULTS != "all":
        numbers = sorted(random.Random(request.node.name).sample(numbers, int(FAULTS)))  # noqa: S311
    for at in numbers:
        with release(3, tree):
            attempt = Attempt(folder, lawful_file, Fault(at, kind))
        if kind == "power":
            attempt.disk.restart(seed=at)
        try:
            attempt.check(said, records, past, tree)
        except BaseException as error:
            error.add_note(f"{kind} at {attempt.disk.history[at - 1 : at]}")
            raise
    tally("power cuts" if kind == "power" else "operations failed", len(numbers))


# --- the command ------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("third")
def test_the_command_says_what_it_did(old: Path) -> None:
    """`exarch-sql migrate`: the facts, then that there is nothing to do."""
    run = CliRunner().invoke
    refused = run(app, ["survey", str(old)])
    assert refused.exit_code == 3
    assert f"exarch-sql migrate {shlex.quote(str(old))}" in refused.stderr
    done = run(app, ["migrate", str(old), "--json"])
    assert done.exit_code == 0, done.stderr
    facts = {"path": str(old), "from": 1, "to": 3, "copy": f"{old}.format-1"}
    assert json.loads(done.stdout) == facts
    again = run(app, ["migrate", str(old)])
    assert (again.exit_code, again.stdout) == (0, "")
    assert "has format 3 already, the newest there is: nothing was done" in again.stderr
    assert json.loads(run(app, ["migrate", str(old), "--nl"]).stdout) == facts | {"from": 3, "copy": None}
