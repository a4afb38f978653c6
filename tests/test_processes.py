"""Many processes and threads on one file, the sidecars it shares with them, and processes that lack room or permission.

Method: real processes, forked before anything is open in them, which say over a pipe what was acknowledged to them; what they were
told is then compared with what the file holds. ``EXARCH_SECONDS`` (default 2) is how long the sixteen writers write.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import forge
import pytest
from faulty_vfs import tally

from exarch_sql import Archive, BadFile, Busy, ExarchError, Head, Refused, query
from exarch_sql.connection import LOG_BYTES, LOOK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = float(os.environ.get("EXARCH_SECONDS", "2"))
NAME = "a.exarch"
ROOT = Path(__file__).resolve().parents[1]


# --- processes --------------------------------------------------------------------------------------------------------------


class Child:
    """A forked process at work, and what it will have said."""

    def __init__(self, work: Callable[[], str]) -> None:
        self.reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # of forking beside threads, which are the test runner's
            self.pid = os.fork()
        if self.pid == 0:
            os.close(self.reading)
            try:
                said = work()
            except BaseException as error:
                said = repr(error)
            os.write(writing, said.encode())
            os._exit(0)
        os.close(writing)

    def said(self, seconds: float = 300.0) -> str:
        """Wait for its end, which must come within so many seconds."""
        said, end = b"", time.monotonic() + seconds
        try:
            while select.select([self.reading], [], [], max(0.0, end - time.monotonic()))[0]:
                if not (more := os.read(self.reading, 65536)):
                    return said.decode()
                said += more
            os.kill(self.pid, signal.SIGKILL)
            raise TimeoutError(f"a process was still at work after {seconds} s")
        finally:
            os.close(self.reading)
            os.waitpid(self.pid, 0)


def in_a_child(work: Callable[[], str], seconds: float = 300.0) -> str:
    """What one forked process says; it leaves like any process that forgot to close."""
    return Child(work).said(seconds)


def in_children(*works: Callable[[], str]) -> list[str]:
    """What processes say that work at the same time."""
    return [child.said() for child in [Child(work) for work in works]]


def told(work: Callable[[], Any]) -> str:
    """What a call answers or raises, by class."""
    try:
        return f"done: {work()}"
    except ExarchError as error:
        return f"{type(error).__name__}: {error}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A lineage of one turn."""
    with Archive.open(tmp_path / NAME) as archive:
        archive.trunk.prompt("before")
    return tmp_path / NAME


def test_eight_processes_that_open_the_same_fresh_paths_at_once_all_see_one_lineage(tmp_path: Path) -> None:
    """Creation is atomic: one file wins each name, whole, and what any of the eight appended is in it."""
    paths = [tmp_path / f"{number}.exarch" for number in range(20)]
    start = time.time() + 0.3

    def work() -> str:
        lineages = []
        for number, path in enumerate(paths):
            time.sleep(max(0.0, start + number * 0.03 - time.time()))
            with Archive.open(path, timeout=30) as archive:
                archive.trunk.note("here")
                lineages.append(archive.head().lineage)
        return json.dumps(lineages)

    said = in_children(*[work] * 8)

    assert len(set(said)) == 1, said
    for path, lineage in zip(paths, json.loads(said[0]), strict=True):
        assert path.stat().st_mode & 0o777 == 0o600
        with Archive.open(path) as archive:
            report = archive.verify()
            assert report.ok
            assert (report.records, archive.head().lineage) == (1 + 8, lineage)
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    tally("processes that raced to create 20 files", 8)


def test_sixteen_writers_on_four_logs_lose_nothing_that_was_acknowledged(path: Path) -> None:
    """All that each was told is there, once; nothing else is; nobody was refused but for waiting too long."""
    names = ["trunk", "left", "right", "own"]
    with Archive.open(path) as archive:
        for name in names[1:3]:
            archive.trunk.fork(name)
        archive.new_log("own")
        before = archive.verify().records

    def writer(number: int) -> Callable[[], str]:
        def work() -> str:
            done, busy, longest, end = [], 0, 0.0, time.time() + SECONDS
            archive = Archive.open(path, timeout=20)
            log = archive.log(names[number % 4])
            while time.time() < end:
                key = f"{number}-{len(done) + busy}"
                began = time.monotonic()
                try:
                    if len(done) % 3:
                        log.prompt(f"prompt {key}", key=key)
                    else:
                        log.note(f"note {key}", key=key)
                    done.append(key)
                except Busy:
                    busy += 1
                longest = max(longest, time.monotonic() - began)
            archive.close()
            return json.dumps([done, busy, longest])

        return work

    answers = [json.loads(said) for said in in_children(*[writer(number) for number in range(16)])]

    acknowledged = {key for done, _, _ in answers for key in done}
    with Archive.open(path) as archive:
        found = [key for (key,) in archive.sql("SELECT key FROM records WHERE key IS NOT NULL", rows=10_000_000).rows]
        report = archive.verify()
    assert report.ok, report.first
    assert len(found) == len(set(found)) == report.records - before
    assert set(found) == acknowledged
    assert all(done for done, _, _ in answers), "a writer never got its turn"
    tally("writer processes at once", 16)
    tally("appends acknowledged to them, and found", len(acknowledged))
    tally("of their appends refused as Busy after 20 s", sum(busy for _, busy, _ in answers))
    tally("ms: the longest wait of one of them", int(1000 * max(longest for _, _, longest in answers)))


def test_of_two_writers_that_believe_in_the_same_reach_one_wins_and_the_other_is_told_the_tip(path: Path) -> None:
    """expect=: no prompt is ever written on a view that is out of date, and no race is won twice."""
    rounds = 60

    def work() -> str:
        won, lost = [], []
        archive = Archive.open(path, timeout=20)
        while (reach := archive.trunk.reach) < rounds:
            try:
                won.append(archive.trunk.prompt(f"{os.getpid()}", expect=reach).id)
            except Refused as refusal:
                lost.append(str(refusal))
        archive.close()
        return json.dumps([won, lost])

    (won, lost), (won_too, lost_too) = map(json.loads, in_children(work, work))

    assert sorted(won + won_too) == list(range(2, rounds + 1))
    for refusal in lost + lost_too:
        assert "reach" in refusal or "expected" in refusal
        assert any(word.strip(".,:;").isdecimal() for word in refusal.split())
    with Archive.open(path) as first, Archive.open(path) as second:
        reach = first.trunk.reach
        assert second.trunk.prompt("quicker", expect=reach).id == reach + 1
        with pytest.raises(Refused, match=str(reach + 1)):
            first.trunk.prompt("on an old view", expect=reach)


# --- threads ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False], ids=["one archive", "an archive each"])
def test_threads_of_a_pool_share_a_file(path: Path, shared: bool) -> None:
    """Twelve at once, on one handle or on their own: each append is there once, ids are dense, readers see whole turns."""
    archive = Archive.open(path, timeout=20)

    def work(number: int) -> list[int]:
        mine = archive if shared else Archive.open(path, timeout=20)
        ids = [mine.trunk.prompt(f"{number} {each}", key=f"{number}-{each}").id for each in range(10)]
        assert mine.trunk.survey().rows[-1].from_ >= ids[-1]
        with mine.batch():
            ids += [mine.trunk.prompt(f"{number} in a batch {each}").id for each in range(3)]
        assert ids[-1] == ids[-3] + 2, "another thread's append came into the batch"
        if not shared:
            mine.close()
        return ids

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        ids = [id_ for done in pool.map(work, range(12)) for id_ in done]

    assert sorted(ids) == list(range(2, 2 + 12 * 13))
    assert archive.trunk.reach == 1 + 12 * 13
    assert archive.verify().ok
    archive.close()


def test_asyncio_tasks_share_a_file_through_to_thread(path: Path) -> None:
    """What an agent's event loop does: appends in threads of the default pool, awaited together."""

    async def work(archive: Archive) -> list[int]:
        turns = await asyncio.gather(*(asyncio.to_thread(archive.trunk.prompt, f"task {each}") for each in range(40)))
        return [turn.id for turn in turns]

    with Archive.open(path) as archive:
        ids = asyncio.run(work(archive))
        assert sorted(ids) == list(range(2, 42))
        assert archive.verify().ok


# --- waiting ----------------------------------------------------------------------------------------------------------------


HOLDS = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute(sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def held_by_another(path: Path, sql: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Another process has the file locked."""
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDS, path, sql], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    try:
        yield
    finally:
        other.communicate("")


def test_waiting_for_another_writer_is_bounded_and_typed(path: Path) -> None:
    """Busy, within the timeout that was asked for; nothing was written, reading never waited, and asking again succeeds."""
    with Archive.open(path, timeout=0.4) as archive:
        acts = [
            lambda: archive.trunk.prompt("x"), lambda: archive.trunk.evict(1, 1, note="x"), lambda: archive.trunk.fork("x"),
            archive.rebuild, archive.batch().__enter__,
        ]  # fmt: skip
        archive.trunk.assistant("known", origin="import")
        with held_by_another(path):
            for act in acts:
                began = time.monotonic()
                with pytest.raises(Busy, match="try again"):
                    act()
                assert 0.3 < time.monotonic() - began < 3
            began = time.monotonic()
            assert archive.trunk.reach == 2
            assert archive.verify().ok
            with Archive.open(path, timeout=0.4) as other:
                assert other.trunk.survey() == archive.trunk.survey()
            assert time.monotonic() - began < 2
        assert archive.trunk.prompt("x").id == 3


def test_a_reader_open_for_long_blocks_no_writer_and_the_log_shrinks_when_it_leaves(path: Path) -> None:
    """A snapshot held through many appends: each append succeeds at once, the log grows by what is written, then is cut again."""
    log_file = Path(f"{path}-wal")
    with Archive.open(path, durability="normal", timeout=0.2) as archive, Archive.open(path, readonly=True) as reader:
        grown, big = [], "word " * 20_000
        with reader._store.reading() as db:
            seen = db.execute("SELECT max(seq) FROM records").fetchone()
            for number in range(240):
                archive.trunk.prompt(f"{number} {big}")
                grown.append(log_file.stat().st_size)
            assert db.execute("SELECT max(seq) FROM records").fetchone() == seen
            assert reader.trunk.reach == 1
        assert grown[-1] > LOG_BYTES
        assert grown[-1] < 240 * (len(big) + 40_000), "the log grew by more than what was written"
        assert reader.trunk.reach == 241
        for number in range(60):
            archive.trunk.prompt(f"{number} {big}")
        assert log_file.stat().st_size <= LOG_BYTES
        archive._store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert log_file.stat().st_size == 0
        assert archive.verify().ok


def test_the_log_stays_small_while_nobody_reads_for_long(path: Path) -> None:
    """Readers that come and go do not keep it from being begun again."""
    with Archive.open(path, durability="normal") as archive, Archive.open(path, readonly=True) as reader:
        sizes = []
        for number in range(300):
            archive.trunk.prompt(f"{number} " + "word " * 10_000)
            reader.trunk.survey()
            sizes.append(Path(f"{path}-wal").stat().st_size)
        assert max(sizes) < 6 * 1024 * 1024


def test_a_backup_ends_though_another_process_never_stops_writing(path: Path, tmp_path: Path) -> None:
    """The copy is of one moment; without a snapshot, each append elsewhere would make it begin again."""
    with Archive.open(path, durability="off") as archive, archive.batch():
        for number in range(150):
            archive.trunk.prompt(f"{number} " + "word " * 20_000)

    def work() -> str:
        archive, end = Archive.open(path, durability="off", timeout=20), time.time() + 1.5
        while time.time() < end:
            archive.trunk.prompt("on and on")
        archive.close()
        return "done"

    writer = Child(work)
    try:
        with Archive.open(path, timeout=20) as archive:
            time.sleep(0.2)
            before = archive.trunk.reach
            began = time.monotonic()
            assert archive.backup(tmp_path / "copy").ok
            took = time.monotonic() - began
            assert archive.trunk.reach > before
    finally:
        assert writer.said() == "done"
    assert took < 1.2, "the copy waited for the writer to stop"
    with Archive.open(tmp_path / "copy") as copy:
        assert copy.trunk.reach >= before


def test_a_copy_is_not_taken_inside_a_batch(path: Path, tmp_path: Path) -> None:
    """It would hold what may yet be taken back."""
    with Archive.open(path) as archive, archive.batch():
        archive.trunk.prompt("perhaps")
        with pytest.raises(Refused, match="leave the batch first"):
            archive.backup(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


# --- locks ------------------------------------------------------------------------------------------------------------------

SHARED_LOCK_AT, SHARED_LOCK_BYTES = 0x40000002, 510  # where SQLite locks a database that it has open

CLOSES = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("SELECT count(*) FROM records").fetchone()
db.close()
"""

USES: dict[str, Callable[[Archive, Path], Any]] = {
    "nothing": lambda archive, path: None,
    "another handle": lambda archive, path: Archive.open(path).close(),
    "a reading handle": lambda archive, path: Archive.open(path, readonly=True).close(),
    "a query": lambda archive, path: archive.sql("SELECT 1"),
    "stats": lambda archive, path: archive.stats(),
    "a backup": lambda archive, path: archive.backup(path.with_name("copy")),
    "a refused copy": lambda archive, path: told(lambda: archive.backup(path)),
    "verify": lambda archive, path: archive.verify(),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_nothing_this_process_does_drops_the_locks_it_holds(path: Path, use: str) -> None:
    """POSIX drops every lock of a process when it closes any descriptor of the file: so nothing but SQLite may open it.

    Past fault: the header was read with open(); another program's close then deleted the write-ahead log that this process went on
    writing to, and acknowledged appends were lost.
    """
    with Archive.open(path) as archive:
        archive.trunk.prompt("in the log")
        USES[use](archive, path)

        def work() -> str:
            with path.open("rb+") as file:
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, SHARED_LOCK_BYTES, SHARED_LOCK_AT)
                except OSError:
                    return "held"
            return "free"

        assert in_a_child(work) == "held"
        subprocess.run([sys.executable, "-c", CLOSES, path], check=True)
        acknowledged = archive.trunk.prompt("after the other closed")
        said = in_a_child(lambda: told(lambda: Archive.open(path, readonly=True).trunk.reach))
        assert said == f"done: {acknowledged.id}"


# --- what becomes of a file under a live handle -----------------------------------------------------------------------------


def replaced_by_a_copy(path: Path) -> None:
    """As an editor or a synchroniser does it: another file is renamed over it."""
    shutil.copy(path, path.with_name("other"))
    path.with_name("other").replace(path)


def replaced_by_another_lineage(path: Path) -> None:
    """A restored file."""
    with Archive.open(path.with_name("other")) as other:
        other.trunk.prompt("not the same")
    path.with_name("other").replace(path)


LOSSES: dict[str, Callable[[Path], Any]] = {
    "deleted": lambda path: path.unlink(),
    "moved away": lambda path: path.rename(path.with_name("elsewhere")),
    "replaced by a copy": replaced_by_a_copy,
    "replaced by another lineage": replaced_by_another_lineage,
    "its log deleted": lambda path: Path(f"{path}-wal").unlink(),
    "its log replaced": lambda path: replaced_by_a_copy(Path(f"{path}-wal")),
    "its folder moved": lambda path: path.parent.rename(path.parent.with_name("moved")),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_file_lost_under_a_live_handle_is_noticed_at_the_next_use(tmp_path: Path, loss: str) -> None:
    """Nothing is acknowledged that nobody would find; what the handle still sees can be saved."""
    folder = tmp_path / "home"
    folder.mkdir()
    path = folder / NAME
    archive = Archive.open(path)
    archive.trunk.prompt("before")
    archive.trunk.assistant("in the log")
    LOSSES[loss](path)
    if loss == "its log replaced":
        time.sleep(LOOK_SECONDS)  # which file the log is, is looked at no oftener

    uses = [
        lambda: archive.trunk.prompt("x"), lambda: archive.trunk.steer("x"), lambda: archive.trunk.evict(1, 1, note="x"),
        lambda: archive.trunk.note("x"), archive.verify, archive.trunk.survey, archive.head, archive.logs, archive.rebuild,
        lambda: archive.redact(2, reason="x"), lambda: archive.trunk.fork("x"),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(BadFile, match="replaced or removed while it was open"):
            use()

    rescued = tmp_path / "rescued"
    assert archive.backup(rescued).ok
    archive.close()
    with Archive.open(rescued) as copy:
        assert copy.trunk.reach == 2


def test_closing_a_lost_file_leaves_its_successor_alone(path: Path) -> None:
    """The handle of the replaced file must not delete, or fold in, the log of the file that now has the name."""
    old = Archive.open(path)
    old.trunk.prompt("of the old")
    replaced_by_another_lineage(path)
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink()
    new = Archive.open(path)
    new.trunk.prompt("of the new, in its log")
    old.close()
    head = new.head()
    assert in_a_child(lambda: told(lambda: Archive.open(path, readonly=True).head().seq)) == f"done: {head.seq}"
    new.close()
    with Archive.open(path) as archive:
        assert archive.verify(against=head).ok


# --- readers that leave -----------------------------------------------------------------------------------------------------


def test_a_reader_that_leaves_last_leaves_one_file_as_it_was(path: Path) -> None:
    """Its sidecars go, by handle, by `sql` and by `verify`; not a byte and no time of the file changes."""
    before, status = path.read_bytes(), path.stat()
    with Archive.open(path, readonly=True) as first:
        with Archive.open(path, readonly=True) as second:
            assert second.head() == first.head()
        assert Path(f"{path}-shm").exists()  # another still reads
    first.close()
    assert query.query(path, "SELECT 1").rows == ((1,),)
    subprocess.run([sys.executable, "-m", "exarch_sql", "verify", path], cwd=ROOT, capture_output=True, check=True)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    after = path.stat()
    assert (path.read_bytes(), after.st_ino, after.st_mtime_ns) == (before, status.st_ino, status.st_mtime_ns)


def test_a_reader_that_leaves_touches_no_log_that_holds_something(live: tuple[Path, Head]) -> None:
    """A writer was killed: what it left is the next writer's to fold in."""
    path, head = live
    log = Path(f"{path}-wal")
    before = path.read_bytes(), log.read_bytes()
    with Archive.open(path, readonly=True) as archive:
        assert archive.head() == head
    assert (path.read_bytes(), log.read_bytes()) == before


def test_a_reader_that_leaves_does_not_disturb_a_writer_that_stays(path: Path) -> None:
    """In this process and in another, before the writer's first append and after."""
    with Archive.open(path) as writer:
        for number in range(4):
            with Archive.open(path, readonly=True) as reader:
                assert reader.head() == writer.head()
            command = [sys.executable, "-m", "exarch_sql", "head", path]
            said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
            assert json.loads(said)["seq"] == writer.head().seq
            writer.trunk.prompt(f"{number}")
        assert writer.verify().ok


def seen_and_closed(path: Path) -> int:
    """Read and leave."""
    with Archive.open(path, readonly=True) as archive:
        return archive.head().seq


def test_readers_that_come_and_go_race_with_writers_that_do(path: Path) -> None:
    """Every opening, reading, appending and closing meets every other: no reader is refused, nothing acknowledged is lost.

    A writer may have to ask again: one that closes waits for readers, and another's append for it.
    """
    until = time.time() + SECONDS

    def read() -> str:
        seen = 0
        while time.time() < until:
            now = seen_and_closed(path)
            assert now >= seen, "a reader went back in time"
            seen = now
        return "read"

    def write(name: str) -> str:
        count = 0
        while time.time() < until:
            with contextlib.suppress(Busy), Archive.open(path, durability="normal") as archive:
                for _ in range(3):
                    archive.trunk.note("x", key=f"{name}{count}")
                    count += 1
        return f"{name} {count}"

    said = in_children(read, read, read, lambda: write("a"), lambda: write("b"))
    assert said[:3] == ["read"] * 3
    with Archive.open(path) as archive:
        assert archive.verify().ok
        keys = {key for (key,) in archive.sql("SELECT key FROM records WHERE key IS NOT NULL", rows=10**6).rows}
    for told_ in said[3:]:
        name, _, count = told_.partition(" ")
        assert count.isdecimal(), told_
        assert int(count) > 0
        assert {f"{name}{number}" for number in range(int(count))} <= keys
    assert [each.name for each in path.parent.iterdir()] == [path.name]


# --- sidecars ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def live(path: Path) -> tuple[Path, Head]:
    """A file whose newest records are in its log alone, and its head; the process that wrote it is gone."""
    with Archive.open(path) as archive:
        for number in range(40):
            archive.trunk.prompt(f"folded in {number} " * 30)
    archive = Archive.open(path)
    for number in range(10):
        archive.trunk.prompt(f"in the log {number} " * 30)
    head = archive.head()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{path}.left{suffix}")
    archive.close()
    for suffix in ("", "-wal"):
        shutil.move(f"{path}.left{suffix}", f"{path}{suffix}")
    return path, head


def test_a_main_file_copied_without_its_log_is_short_and_a_kept_head_tells(
    live: tuple[Path, Head], tmp_path: Path
) -> None:
    """SQLite cannot know what is missing: the copy is lawful, older, and says so only against a head."""
    path, head = live
    copy = tmp_path / "copy"
    shutil.copy(path, copy)
    with Archive.open(copy) as archive:
        assert archive.trunk.reach == 41
        assert archive.verify().ok
        report = archive.verify(against=head)
        assert report.first is not None
        assert report.first.kind == "head"
    with Archive.open(path) as archive:
        assert archive.trunk.reach == 51
        assert archive.verify(against=head).ok


@pytest.mark.parametrize("turns", [1, 10, 25, 39])
def test_a_log_left_beside_a_restored_copy_is_found_by_verify(
    live: tuple[Path, Head], tmp_path: Path, turns: int
) -> None:
    """The classic accident: an older copy put back over the file while its log still lies there. SQLite mixes the two.

    Where the log holds every page that differs, what comes out is the file that was replaced, whole: no fault, and no loss.
    """
    path, head = live
    older = tmp_path / "older"
    shutil.copy(path, tmp_path / "whole")
    with contextlib.closing(sqlite3.connect(tmp_path / "whole")) as whole:
        lineage = whole.execute("SELECT * FROM lineage").fetchall()
        records = whole.execute("SELECT * FROM records WHERE seq <= ? ORDER BY seq", (1 + turns,)).fetchall()
    with contextlib.closing(sqlite3.connect(older, isolation_level=None)) as db:
        db.executescript(forge.SCHEMA)
        db.executemany("INSERT INTO lineage VALUES (?, ?, ?, ?)", lineage)
        db.executemany(f"INSERT INTO records VALUES ({', '.join('?' * len(records[0]))})", records)
    with Archive.open(older) as archive:
        assert archive.verify().ok
        assert archive.trunk.reach == turns
    shutil.copy(older, path)
    try:
        with Archive.open(path) as archive:
            report = archive.verify()
    except ExarchError:
        return
    assert not report.ok or (report.head == head and turns > 25)


def test_a_log_left_beside_another_lineage_is_found_by_verify(live: tuple[Path, Head], tmp_path: Path) -> None:
    """The same with a file that was never the log's."""
    path, _ = live
    with Archive.open(tmp_path / "other") as archive:
        for number in range(200):
            archive.trunk.prompt(f"of another life {number} " * 30)
    shutil.copy(tmp_path / "other", path)
    try:
        with Archive.open(path) as archive:
            report = archive.verify()
    except ExarchError:
        return
    assert not report.ok


def test_a_log_left_of_a_lost_file_is_not_written_into_a_new_one(live: tuple[Path, Head], tmp_path: Path) -> None:
    """The name is free, its log is not: neither a new lineage nor a copy may be made there, and the log is kept."""
    path, _ = live
    path.unlink()
    left = Path(f"{path}-wal").read_bytes()
    with Archive.open(tmp_path / "other") as other:
        for make in (lambda: Archive.open(path), lambda: other.backup(path), lambda: other.extract(other.trunk, path)):
            with pytest.raises(BadFile, match="left of a file that is gone"):
                make()
    assert Path(f"{path}-wal").read_bytes() == left
    assert not path.exists()
    Path(f"{path}-wal").rename(tmp_path / "kept")
    Archive.open(path).close()


def test_a_file_put_into_another_journal_mode_is_taken_back(path: Path) -> None:
    """Another program may have changed it; readers would block the writer then."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    with Archive.open(path) as archive:
        archive.trunk.prompt("goes on")
        assert Path(f"{path}-wal").exists()
        assert archive.verify().ok


# --- forks ------------------------------------------------------------------------------------------------------------------


def test_a_process_forked_in_mid_write_leaves_the_file_to_its_parent(tmp_path: Path) -> None:
    """The child inherits an open transaction and is refused; whatever it does and however it ends, the parent's work stands."""
    with Archive.open(tmp_path / NAME) as archive:
        log = archive.trunk
        log.prompt("before")
        with archive.batch():
            log.assistant("in the batch")
            uses = [
                lambda: log.prompt("of the child"), log.survey, archive.verify, archive.logs, archive.rebuild,
                lambda: archive.backup(tmp_path / "copy"), log.batch().__enter__,
            ]  # fmt: skip
            for use in uses:
                assert "does not survive a fork" in in_a_child(lambda use=use: str(use()))  # type: ignore[misc]
            assert in_a_child(lambda: f"{archive.close()}") == "None"
            own = in_a_child(lambda: str(Archive.open(tmp_path / NAME, timeout=0.1).trunk.reach))
            assert own == "1"
            log.prompt("after the children")
        assert log.reach == 3
        assert archive.verify().ok
    with Archive.open(tmp_path / NAME) as archive:
        assert archive.trunk.reach == 3


# --- no room, no permission -------------------------------------------------------------------------------------------------


def test_a_file_that_may_not_grow_says_so_and_keeps_what_it_has(path: Path) -> None:
    """RLIMIT_FSIZE in a real process: an append that does not fit is told; what stood stands, and reads go on."""

    def work() -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, path.stat().st_size))
        archive = Archive.open(path)
        answers = [told(lambda: archive.trunk.prompt("more " * 4000)) for _ in range(50)]
        reach = archive.trunk.reach
        return json.dumps([answers, reach, told(archive.close)])

    answers, reach, _ = json.loads(in_a_child(work))
    done = [answer for answer in answers if answer.startswith("done")]
    assert 0 < len(done) < 50
    assert reach == 1 + len(done)
    assert all("BadFile: " in answer and "could not be" in answer for answer in answers if answer not in done)
    with Archive.open(path) as archive:
        assert archive.trunk.reach == reach
        assert archive.verify().ok


def as_nobody(work: Callable[[], str]) -> str:
    """Work in a child whom permissions bind: root is not."""

    def unprivileged() -> str:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        return work()

    return in_a_child(unprivileged)


@pytest.fixture
def protected(path: Path) -> Iterator[Path]:
    """A lineage in a folder where nobody may write, that anybody may reach."""
    folder = Path(tempfile.mkdtemp())  # pytest's own folders let nobody else in
    copy = folder / NAME
    shutil.copy(path, copy)
    copy.chmod(0o444)
    folder.chmod(0o555)
    yield copy
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_file_that_may_not_be_written_is_refused_at_once_and_not_touched(protected: Path) -> None:
    """Without permission: opening to write is refused with the way out; a folder that cannot take the sidecars is named as such."""
    before = protected.read_bytes()
    assert "Refused: " in (said := as_nobody(lambda: told(lambda: Archive.open(protected))))
    assert "cannot be written here: open it for reading only" in said
    assert "BadFile: " in (said := as_nobody(lambda: told(lambda: Archive.open(protected, readonly=True))))
    assert "copy it, with its -wal if there is one, to a folder of yours" in said
    assert "BadFile: " in as_nobody(lambda: told(lambda: Archive.open(protected.with_name("new"))))
    assert protected.read_bytes() == before
    assert [path.name for path in protected.parent.iterdir()] == [NAME]


def test_a_reader_joins_a_writer_whose_folder_it_may_not_write(protected: Path) -> None:
    """Another user's live file: the sidecars are there, so the reader needs no permission but to read them."""
    protected.chmod(0o644)
    with Archive.open(protected) as archive:
        archive.trunk.prompt("not folded in yet")
        for sidecar in ("-wal", "-shm"):
            Path(str(protected) + sidecar).chmod(0o644)
        reach = archive.trunk.reach
        assert as_nobody(lambda: told(lambda: Archive.open(protected, readonly=True).trunk.reach)) == f"done: {reach}"


MOUNTED = """
import sys
from exarch_sql import Archive, ExarchError
path = sys.argv[1]
for work in (lambda: Archive.open(path, readonly=True).verify().ok, lambda: Archive.open(path), lambda: Archive.open(path + "2")):
    try:
        print(work())
    except ExarchError as error:
        print(type(error).__name__, error)
"""


def test_a_file_on_a_read_only_medium_is_read_there(path: Path, tmp_path: Path) -> None:
    """A real mount without writing: reading needs no sidecars where nobody can write; everything else is refused."""
    medium = tmp_path / "medium"
    medium.mkdir()
    mount = f"mount -t tmpfs none {medium} && cp {path} {medium}/a && mount -o remount,ro {medium}"
    if (
        os.getuid() != 0
        or subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True, check=False).returncode
    ):
        pytest.skip("no permission to mount")
    script = f'{mount} && exec "$0" -c "$1" {medium}/a'
    ran = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, sys.executable, MOUNTED],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    read, written, made = ran.stdout.splitlines()
    assert read == "True"
    assert written.startswith("Refused")
    assert "cannot be written here: open it for reading only" in written
    assert made.startswith("BadFile")
    assert "Read-only file system" in made


def test_a_task_does_not_see_what_another_task_has_not_committed(path: Path) -> None:
    """Past fault: a head of records that were then taken back, which would accuse an honest file for ever."""

    async def both(archive: Archive) -> None:
        written, seen = asyncio.Event(), asyncio.Event()

        async def write() -> None:
            with archive.batch():
                archive.trunk.prompt("never committed")
                written.set()
                await seen.wait()
                raise RuntimeError

        async def look() -> None:
            await written.wait()
            for use in (archive.head, archive.trunk.survey, archive.verify):
                with pytest.raises(Busy, match="another task"):
                    use()
            seen.set()

        done = await asyncio.gather(write(), look(), return_exceptions=True)
        assert [type(each) for each in done] == [RuntimeError, type(None)]

    with Archive.open(path) as archive:
        head = archive.head()
        asyncio.run(both(archive))
        assert archive.head() == head
