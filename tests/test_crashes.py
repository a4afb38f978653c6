"""After any crash, failed write, torn write, power cut or full disk: all that was acknowledged is there, and nothing half-done.

Method: a scenario is a few steps (append, edit, batch, backup, redact, ...). Run once without a fault, it yields what the file
holds after each step. Then it is run again with a fault at operation 1, 2, 3, ... of the disk (`faulty_vfs`), and what the file
holds afterwards must be one of those states, to the row: after the last step that was acknowledged, or after the one under way.

Operation numbers are sampled; ``EXARCH_FAULTS=all`` takes every one, ``EXARCH_FAULTS=50`` so many of each scenario and kind.
"""

from __future__ import annotations

import base64
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest
import test_stateful
from faulty_vfs import Disk, Fault, running_on, tally

from exarch_sql import Archive, ExarchError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from faulty_vfs import Kind, Misread

FAULTS = os.environ.get("EXARCH_FAULTS", "8")
NAME = "a.exarch"
AT = 1_700_000_000_000
SECRET = "hunter2-hunter2-hunter2"  # noqa: S105 (it is the point)
ROOT = Path(__file__).resolve().parents[1]

State = dict[str, list[Any]] | None  # None: there is no file


# --- scenarios --------------------------------------------------------------------------------------------------------------


class Session:
    """One run of a program: its archive, and what it was told is done."""

    def __init__(self, folder: Path, durability: Any) -> None:
        self.folder, self.path, self.durability = folder, folder / NAME, durability
        self.archive: Archive = None  # type: ignore[assignment]  # until opened
        self.beside: Archive | None = None
        self.acknowledged = 0
        self.said: list[tuple[str, Any]] = []  # what it was answered, where a scenario asks

    def open(self) -> None:
        """Open the file, or make it."""
        self.archive = Archive.open(self.path, durability=self.durability)

    def open_beside(self) -> None:
        """Let another handle come first: it makes the log that this one's appends go into."""
        self.beside = Archive.open(self.path, readonly=True)
        self.open()

    def leave(self) -> None:
        """End the program: whatever happens, nothing stays open."""
        for archive in (self.archive, self.beside):
            if archive is not None:
                with contextlib.suppress(ExarchError):
                    archive.close()
                with contextlib.suppress(apsw.Error):  # closed all the same: the driver tells what SQLite only notes
                    archive._store.db.close()


@dataclass(frozen=True)
class Scenario:
    """What a program does, step by step; each step can be asked for again when it failed."""

    steps: Sequence[Callable[[Session], Any]]
    opening: Callable[[Session], Any] = Session.open
    creates: bool = False  # whether opening makes the file, and so is a step of its own
    durability: str = "full"
    copies: dict[str, int] = field(
        default_factory=dict
    )  # names of the lawful files that it makes besides, and by which step


def begin(archive: Archive) -> None:
    """What every scenario but the creation starts from."""
    log = archive.trunk
    log.prompt(f"the password is {SECRET}", at_ms=AT)
    log.assistant("noted", at_ms=AT)
    for turn in range(2, 12):
        log.prompt(f"turn {turn} " * 40, at_ms=AT)
        log.assistant(f"reply {turn}", at_ms=AT)
    log.evict(3, 4, note="the first of them", at_ms=AT)
    side = log.fork("side", at_ms=AT)
    side.prompt("only here", at_ms=AT)


def append(number: int, size: int = 1) -> Callable[[Session], Any]:
    """A prompt that may be repeated."""
    return lambda run: run.archive.trunk.prompt(f"prompt {number} " * size, key=f"p{number}", at_ms=AT)


def picture(number: int) -> Callable[[Session], Any]:
    """A prompt with a blob of many pages."""
    content = base64.b64encode(bytes([number]) * 60_000).decode()
    part = {"type": "blob", "mime_type": "image/png", "modality": "image", "content": content}
    return lambda run: run.archive.trunk.prompt({"role": "user", "parts": [part]}, key=f"b{number}", at_ms=AT)


def batch(number: int, count: int) -> Callable[[Session], Any]:
    """Several appends, all or none."""

    def step(run: Session) -> None:
        with run.archive.batch():
            for each in range(count):
                run.archive.trunk.prompt(f"batch {number}", key=f"batch{number}-{each}", at_ms=AT)
            run.archive.log("side").note("of the batch", key=f"batch{number}", at_ms=AT)

    return step


def fork(name: str) -> Callable[[Session], Any]:
    """A fork, unless it is there."""
    return lambda run: run.archive.trunk.fork(name, at_ms=AT)


def redact(run: Session) -> None:
    """Blank the secret."""
    run.archive.redact(2, reason="a password")


def reindex(run: Session) -> None:
    """Bring the search index up to the newest record."""
    run.archive.reindex()


def backup(run: Session) -> None:
    """Copy the live archive."""
    run.archive.backup(run.folder / "copy.exarch")


def extract(run: Session) -> None:
    """Copy one log."""
    run.archive.extract(run.archive.log("side"), run.folder / "side.exarch")


def close_and_open(run: Session) -> None:
    """Fold the log into the file; go on."""
    run.archive.close()
    run.open()


SCENARIOS = {
    "creation": Scenario([append(1)], creates=True),
    "another's log": Scenario([append(1), append(2)], opening=Session.open_beside),
    "appends": Scenario([append(1), append(2), append(3, 900), append(4)]),
    "appends at normal": Scenario([append(number, 30) for number in range(8)], durability="normal"),
    "blobs": Scenario([picture(1), picture(2), append(1)]),
    "edits": Scenario(
        [
            lambda run: run.archive.trunk.evict(5, 8, note="two exchanges", key="e1", at_ms=AT),
            lambda run: run.archive.trunk.force(through=10, key="e2", at_ms=AT),
            fork("child"),
            lambda run: run.archive.trunk.rewind(15, key="e3", at_ms=AT),
            lambda run: run.archive.log("side").clear(key="e4", at_ms=AT),
        ]
    ),
    "batches": Scenario([batch(1, 5), append(1), batch(2, 20)]),
    "close": Scenario([append(1, 2000), close_and_open, append(2), close_and_open]),
    "backup": Scenario([append(1), backup, append(2), append(3)], copies={"copy.exarch": 2}),
    "extract": Scenario([append(1), extract, append(2), append(3)], copies={"side.exarch": 2}),
    "redaction": Scenario([append(1), redact, append(2)]),
    "rebuild": Scenario([append(1), lambda run: run.archive.rebuild(), append(2)]),
    "search index": Scenario([append(1, 400), reindex, append(2, 400), reindex, append(3)]),
}


# --- running one ------------------------------------------------------------------------------------------------------------


def begun_in(folder: Path) -> Path:
    """A file that scenarios may start from."""
    with Archive.open(folder / NAME, durability="off") as archive:
        begin(archive)
    return folder / NAME


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that scenarios start from."""
    return begun_in(tmp_path_factory.mktemp("begun"))


@dataclass
class Trial:
    """A scenario in a folder of its own, with a fault to come."""

    scenario: Scenario
    folder: Path
    begun: Path

    def session(self) -> Session:
        """A fresh folder and a program in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        if not self.scenario.creates:
            shutil.copy(self.begun, self.folder / NAME)
        return Session(self.folder, self.scenario.durability)

    def states(self) -> list[State]:
        """What the file holds before the first step, and after each, when nothing fails."""
        run = self.session()
        states = [None] if self.scenario.creates else []
        self.scenario.opening(run)
        states.append(content(run.path))
        for step in self.scenario.steps:
            step(run)
            states.append(content(run.path))
        run.leave()
        return states

    def play(self, *faults: Fault | Misread, again: bool = False) -> tuple[Session, Disk]:
        """The steps on a disk with these faults. They end at the first failure, or, ``again``, are asked for until they succeed."""
        run = self.session()
        disk = Disk(self.folder, *faults)
        opening = self.scenario.opening
        with running_on(disk):
            try:
                for step in (opening, *self.scenario.steps):
                    _attempt(step, run, disk, attempts=3 if again else 1)
                    if disk.off:
                        break
                    run.acknowledged += self.scenario.creates or step is not opening
            except ExarchError:
                assert not again, "a step kept failing although the disk works again"
            except SystemError:  # the driver's own, of a backup on a VFS in Python that fails
                assert disk.off
            finally:
                run.leave()
        return run, disk

    def operations(self) -> int:
        """How many operations of the disk a run without a fault takes."""
        return self.play()[1].operations


def _attempt(step: Callable[[Session], Any], run: Session, disk: Disk, *, attempts: int) -> None:
    """Do a step, and again when it failed: by then the disk works, and room was made on it."""
    for attempt in range(attempts):
        try:
            step(run)
            return
        except ExarchError:
            if disk.full:
                disk.mend()
            if attempt + 1 == attempts:
                raise


def content(path: Path) -> State:
    """All rows of all tables but what differs from run to run: clocks, the lineage's name and what it is hashed into."""
    if not path.exists():
        return None
    with contextlib.closing(apsw.Connection(str(path))) as db:
        # the search index is derived, and may be dropped at any time: verify judges it, where there is one
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'search%'"
        names = [name for (name,) in db.execute(tables)]
        held: dict[str, list[Any]] = {}
        for name in names:
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({name})")]
            kept = [column for column in columns if column not in ("uuid", "created_ms", "at_ms", "digest")]
            held[name] = sorted(map(repr, db.execute(f"SELECT {', '.join(kept)} FROM {name}")))
        return held


def sampled(operations: int, seed: str) -> list[int]:
    """The operation numbers to hit: all of them, or a few drawn from all over the run."""
    if FAULTS == "all" or int(FAULTS) >= operations:
        return list(range(1, operations + 1))
    return sorted(random.Random(seed).sample(range(1, operations + 1), int(FAULTS)))  # noqa: S311


def check_lawful(path: Path) -> None:
    """The file opens, nothing is wrong with it, and the work can go on."""
    with Archive.open(path) as archive:
        report = archive.verify(index=True)
        assert report.ok, report.first
        archive.trunk.note("goes on")
        report = archive.verify()
        assert report.ok, report.first


def check_after(trial: Trial, run: Session, states: list[State], *, least: int, most: int) -> None:
    """The file holds the state after one of these steps, whole; so does every copy; nothing else is wrong."""
    found = content(run.path)
    assert found in states[least : most + 1], "what the file holds is not what any step left"
    for name, step in trial.scenario.copies.items():
        copied = (run.folder / name).exists()
        assert copied or least < step, "a copy that was acknowledged is gone"
        if copied:
            check_lawful(run.folder / name)
    check_lawful(run.path)


@pytest.fixture
def trial(request: pytest.FixtureRequest, tmp_path: Path, begun: Path) -> Trial:
    """The scenario that the test is about."""
    return Trial(SCENARIOS[request.param], tmp_path / "disk", begun)


every_scenario = pytest.mark.parametrize("trial", SCENARIOS, indirect=True)


# --- the faults -------------------------------------------------------------------------------------------------------------


@every_scenario
def test_a_power_cut_at_any_operation_loses_nothing_acknowledged(trial: Trial, request: pytest.FixtureRequest) -> None:
    """Durability: with "full", what returned was synced. With "normal" the newest may go, whole and from the end."""
    states = trial.states()
    numbers = sampled(trial.operations(), request.node.name)
    for at in numbers:
        run, disk = trial.play(Fault(at, "power"))
        disk.restart(seed=at)
        least = run.acknowledged if trial.scenario.durability == "full" else 0
        most = min(run.acknowledged + 1, len(states) - 1)
        try:
            check_after(trial, run, states, least=least, most=most)
        except BaseException as error:
            error.add_note(f"power cut at {disk.history[-1]}, {run.acknowledged} steps acknowledged")
            raise
    tally("power cuts", len(numbers))


@every_scenario
@pytest.mark.parametrize("kind", ["error", "torn", "full"])
def test_a_failed_operation_leaves_the_state_before_it_and_the_work_goes_on(
    trial: Trial, kind: Kind, request: pytest.FixtureRequest
) -> None:
    """A write, sync, truncate or delete fails once, or the disk is full until room is made: told; asked again, done."""
    states = trial.states()
    numbers = sampled(trial.operations(), request.node.name)
    for at in numbers:
        run, disk = trial.play(Fault(at, kind), again=True)
        try:
            assert content(run.path) == states[-1]
            check_after(trial, run, states, least=len(states) - 1, most=len(states) - 1)
            left = {path.name for path in run.folder.iterdir()} - {NAME, *trial.scenario.copies}
            assert kind != "full" or not left  # another kind may hit the very call that tidies up
        except BaseException as error:
            error.add_note(f"{kind} at {[line for line in disk.history if line.startswith(f'{at} ')]}")
            raise
    tally("operations failed", len(numbers))


@pytest.mark.parametrize("trial", ["appends", "batches"], indirect=True)
def test_the_disk_would_lose_what_is_not_synced(trial: Trial) -> None:
    """The tests above can fail: with syncs turned off, a power cut does lose what was acknowledged, or leaves no lawful file."""
    careless = Trial(Scenario(trial.scenario.steps, durability="off"), trial.folder, trial.begun)
    states = careless.states()
    for at in range(careless.operations(), 1, -1):
        run, disk = careless.play(Fault(at, "power"))
        disk.restart(seed=at)
        try:
            check_after(careless, run, states, least=run.acknowledged, most=len(states) - 1)
        except (AssertionError, ExarchError, apsw.Error):
            return
    pytest.fail("nothing was lost although nothing was synced")


@pytest.mark.parametrize("trial", ["appends", "edits", "close"], indirect=True)
@pytest.mark.parametrize("then", ["goes on", "power cut"])
def test_a_disk_that_lies_is_found_out(trial: Trial, then: str, request: pytest.FixtureRequest) -> None:
    """A write or sync that is reported done and is not: everything is there, or opening or ``verify`` with a kept head says so."""
    states = trial.states()
    operations = trial.operations()
    numbers = sampled(operations, request.node.name)
    found = 0
    for at in numbers:
        cut = [Fault(random.Random(at).randint(at + 1, operations + 1), "power")] if then == "power cut" else []  # noqa: S311
        run, disk = trial.play(Fault(at, "drop"), *cut)
        if then == "power cut":
            disk.restart(seed=at)
        try:
            with Archive.open(run.path) as archive:
                held = archive.head().seq
                report = archive.verify()
        except ExarchError:
            found += 1
            continue
        kept = [len(state["records"]) for state in states if state]
        if not report.ok or held < kept[run.acknowledged]:  # which a head kept at the acknowledgement proves
            found += 1
            continue
        assert content(run.path) in states[run.acknowledged :], f"{disk.history[at - 1]} was dropped, and nothing tells"
    tally("writes and syncs dropped", len(numbers))
    tally("of them found out", found)


def test_what_was_redacted_stays_gone_after_a_power_cut(trial_of: Callable[[str], Trial]) -> None:
    """L12: once redact() returned, no power cut brings the text back into what the next program leaves on the disk."""
    trial = trial_of("redaction")
    _, whole = trial.play()
    acknowledged = 0
    for at in sampled(whole.operations, "redaction"):
        run, disk = trial.play(Fault(at, "power"))
        disk.restart(seed=at)
        with Archive.open(run.path) as archive:
            archive.trunk.note("the next program")
        if run.acknowledged >= 2:
            acknowledged += 1
            for path in run.folder.iterdir():
                assert SECRET.encode() not in path.read_bytes(), f"{path.name} after {disk.history[-1]}"
    assert acknowledged


def test_a_redaction_that_failed_half_way_can_be_finished(trial_of: Callable[[str], Trial]) -> None:
    """L12: the record is blanked, the rewriting of the file failed; asked again, the text goes from free space too."""
    trial = trial_of("redaction")
    lost = []
    for at in sampled(trial.play()[1].operations, "finishing a redaction"):
        run, disk = trial.play(Fault(at, "error"), again=True)
        if any(SECRET.encode() in path.read_bytes() for path in run.folder.iterdir()):
            lost.append(disk.history[at - 1])
    assert not lost


def test_closing_lets_go_of_the_file_though_its_log_cannot_be_folded_in(begun: Path, tmp_path: Path) -> None:
    """The records are safe in the write-ahead log; the handle must not stay open."""
    folder = tmp_path / "disk"
    folder.mkdir()
    shutil.copy(begun, folder / NAME)
    disk = Disk(folder)
    with running_on(disk):
        archive = Archive.open(folder / NAME)
        archive.trunk.prompt("in the log")
        disk.faults[disk.operations + 1] = "full"
        with contextlib.suppress(ExarchError):
            archive.close()
        disk.mend()
        try:
            with pytest.raises(ExarchError, match="was closed"):
                archive.trunk.prompt("after closing")
        finally:
            archive._store.db.close()
    check_lawful(folder / NAME)


@pytest.fixture
def trial_of(tmp_path: Path, begun: Path) -> Callable[[str], Trial]:
    """A scenario by its name."""
    return lambda name: Trial(SCENARIOS[name], tmp_path / "disk", begun)


# --- a batch that a failure took back ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [3, 8, 13])
def test_nothing_of_a_batch_stands_when_the_caller_swallows_a_failure_inside_it(
    at: int, begun: Path, tmp_path: Path
) -> None:
    """SQLite takes the whole transaction back when it cannot write; what is appended after that in the block must not stand."""
    folder = tmp_path / "disk"
    folder.mkdir()
    shutil.copy(begun, folder / NAME)
    refusals: list[str] = []
    disk = Disk(folder, Fault(at, "full"))

    def write(archive: Archive) -> None:
        with archive.batch():
            for number in range(6):
                try:
                    archive.trunk.prompt(f"{number} " * 9000)
                except ExarchError as error:
                    refusals.append(str(error))
                    disk.mend()

    with running_on(disk), Archive.open(folder / NAME) as archive:
        before = archive.trunk.reach
        archive._store.db.execute("PRAGMA cache_size = 2")  # so that pages are written in mid-transaction
        with pytest.raises(ExarchError, match="took all of it back"):
            write(archive)
        assert archive.trunk.reach == before
        assert archive.trunk.prompt("goes on").id == before + 1
    assert "the disk is full" in refusals[0]
    assert all("took all of it back" in refusal for refusal in refusals[1:])
    check_lawful(folder / NAME)


# --- processes that die -----------------------------------------------------------------------------------------------------

CHILD = """
import sys
from exarch_sql import Archive
path, number = sys.argv[1], int(sys.argv[2])
archive = Archive.open(path)
log = archive.trunk
while True:
    number += 1
    log.prompt(f"prompt {number} " * (number % 50), key=f"p{number}")
    print("p", number, flush=True)
    with archive.batch():
        for each in "abc":
            log.assistant(f"reply {number}{each}", origin="import", key=f"r{number}{each}")
    print("r", number, flush=True)
    if number % 3 == 0:
        log.force(through=log.survey().rows[2].to, key=f"e{number}")
        print("e", number, flush=True)
    if number % 7 == 0:
        archive._store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
"""
KEYS = {"p": ("p{}",), "r": ("r{}a", "r{}b", "r{}c"), "e": ("e{}",)}


def test_a_process_killed_at_any_moment_has_lost_nothing_it_acknowledged(tmp_path: Path) -> None:
    """Kill -9, again and again on the same file: every acknowledged record is there, batches are whole, work goes on."""
    kills = int(os.environ.get("EXARCH_KILLS", "20"))
    path, dice = tmp_path / NAME, random.Random(9)  # noqa: S311
    acknowledged: set[str] = set()
    number = 0
    for _ in range(kills):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, path, str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert child.stdout is not None
        lines = [child.stdout.readline()]
        time.sleep(dice.random() * 0.05)
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.read().splitlines()
        child.stdout.close()
        assert not child.stderr.read()  # type: ignore[union-attr]
        child.stderr.close()  # type: ignore[union-attr]
        assert child.wait() == -signal.SIGKILL
        for line in lines:
            kind, _, count = line.strip().partition(" ")
            if count.isdecimal():
                acknowledged |= {key.format(count) for key in KEYS[kind]}
                number = max(number, int(count))
        with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
            found = {key for (key,) in db.execute("SELECT key FROM records WHERE key IS NOT NULL")}
        assert acknowledged <= found
        batches = [key[:-1] for key in found if key.startswith("r")]
        assert all(batches.count(batch) == 3 for batch in batches)
        number = max([number, *(int(key.strip("prabce")) for key in found)])
        with Archive.open(path) as archive:
            assert archive.verify().ok
            archive.trunk.quiesce()
    tally("processes killed", kills)
    tally("appends acknowledged by them, and found", len(acknowledged))


# --- random histories -------------------------------------------------------------------------------------------------------


class Mortal(test_stateful.Twin):
    """The file and its model, on a disk that loses power; the model knows what was acknowledged."""

    def open(self) -> None:
        """Open both connections, every append synced."""
        self.archive, self.waiting = (Archive.open(self.path, durability="full") for _ in range(2))
        self.handles = {}

    def shut(self) -> None:
        """End the programs that had the file open."""
        for archive in (self.archive, self.waiting):
            with contextlib.suppress(ExarchError):
                archive.close()
            with contextlib.suppress(apsw.Error):
                archive._store.db.close()

    def live_and_die(self, dice: test_stateful.Seeded) -> None:
        """Do things until the power goes; then the file holds what was acknowledged, and at most what was under way."""
        disk = Disk(self.folder, Fault(1 + dice.below(120), "power"))
        acknowledged = self.model.seq
        with running_on(disk):
            try:
                self.open()
                while not disk.off:
                    acknowledged = self.model.seq
                    dice.pick(test_stateful.IN_A_HISTORY)(self, dice)
            except (ExarchError, AssertionError) as error:
                if not disk.off:
                    raise
                self.say(f"# the power went: {error}")
            self.shut()
        disk.restart(seed=dice.below(1 << 30))
        self.open()
        found = self.archive.head().seq
        assert found in (acknowledged, self.model.seq), (
            f"{found} records, {acknowledged} acknowledged, {self.model.seq} begun"
        )
        self.model.cut_back(found)
        self.keyed.clear()
        self.seen, self.touched = self.snapshot(), set()
        self.check()
        self.shut()


@pytest.mark.parametrize("seed", range(int(os.environ.get("EXARCH_LIVES", "24")) // 6))
def test_random_histories_survive_power_cuts(seed: int) -> None:
    """The stateful test's operations, lawful and unlawful, the power cut again and again: the model knows what must be there."""
    twin, dice = Mortal(), test_stateful.Seeded(seed)
    twin.shut()
    try:
        for _ in range(6):
            twin.live_and_die(dice)
    except Exception as error:
        error.add_note("\n".join(["the history:", *twin.script]))
        raise
    finally:
        twin.shut()
        shutil.rmtree(twin.folder)
    tally("power cuts in random histories", 6)
    tally("records they left", twin.model.seq)
