"""Beside a continuous replicator: nothing that was acknowledged before its last copy is lost, and neither hinders the other.

`tests/replicator.py` plays the replicator, in a process of its own, by the rules of docs/replication.md. Writers are processes too.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import replicator
from test_processes import in_a_child

from exarch_sql import Archive, BadFile, Busy, Head

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
NAME = "a.exarch"
SECRET = "hunter2-hunter2-hunter2"  # noqa: S105 (it is the point)

WRITER = """
import json, sys
from exarch_sql import Archive
path, heads = sys.argv[1:]
number = 0
while True:
    with Archive.open(path) as archive:  # closed and opened again and again: each close folds in what it can
        log = archive.trunk
        for _ in range(20):
            number += 1
            log.prompt(f"prompt {number} " * (number % 600), key=f"p{number}")
            with archive.batch():
                for each in "ab":
                    log.assistant(f"reply {number}{each}", origin="import", key=f"r{number}{each}")
            if number % 7 == 0:
                log.force(through=log.survey().rows[2].to)
            with open(heads, "a") as file:
                file.write(json.dumps(archive.head().to_dict()) + "\\n")
            print(number, flush=True)
"""


class Replica:
    """A replicator at work on a file."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.folder, self.heads = folder / "replica", folder / "heads"
        self.folder.mkdir()
        script = Path(__file__).with_name("replicator.py")
        self.process = subprocess.Popen(
            [sys.executable, script, path, self.folder, self.heads],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.told()

    def told(self) -> dict[str, Any]:
        """Its answer to the last order."""
        assert self.process.stdout is not None
        said: dict[str, Any] = json.loads(self.process.stdout.readline())
        return said

    def do(self, order: str) -> dict[str, Any]:
        """Have it sync or checkpoint."""
        assert self.process.stdin is not None
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        return self.told()

    def stop(self) -> None:
        """End it, if it is still there."""
        if self.process.returncode is None:
            self.process.communicate("stop\n")

    def restored(self, at: dict[str, Any], path: Path) -> Path:
        """The file as it was at one of its answers, put where it belongs with nothing beside it."""
        replicator.restore(self.folder / str(at["generation"]), at["size"], path)
        return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A lineage of one turn."""
    with Archive.open(tmp_path / NAME) as archive:
        archive.trunk.prompt(f"the password is {SECRET}")
    return tmp_path / NAME


@pytest.fixture
def replica(path: Path, tmp_path: Path) -> Iterator[Replica]:
    """A replicator that has the file."""
    replica = Replica(path, tmp_path)
    yield replica
    replica.stop()


@contextlib.contextmanager
def writing(path: Path, heads: Path) -> Iterator[subprocess.Popen[str]]:
    """A writer at work, killed at the end without a warning."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, path, heads], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert writer.stdout is not None
    try:
        assert writer.stdout.readline()
        yield writer
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.stdout.read()
        writer.stdout.close()
        writer.wait()


def check_restored(path: Path, head: dict[str, Any]) -> None:
    """Lawful, with all that the head says; a writer goes on in it."""
    with Archive.open(path) as archive:
        report = archive.verify(against=Head(**head))
        assert report.ok, report.first
        assert report.records >= head["seq"]
        archive.trunk.quiesce()
        archive.trunk.prompt("goes on")
        assert archive.verify(against=Head(**head)).ok


def test_all_that_was_acknowledged_before_a_copy_is_in_it(path: Path, replica: Replica, tmp_path: Path) -> None:
    """A writer that opens, appends, edits and closes without a pause, and dies: each copy proves the head kept before it.

    While the replicator reads, nobody else begins the log anew, so it need not copy the whole file over again. Only in the moment
    of its own checkpoint can a close come between, which costs it one such copy and nothing else.
    """
    copies = []
    with writing(path, replica.heads) as writer:
        assert writer.stdout is not None
        for number in range(24):
            for _ in range(5):
                writer.stdout.readline()
            copies.append(replica.do("checkpoint" if number % 6 == 5 else "sync"))
    copies.append(replica.do("sync"))

    assert copies[-1]["generation"] > 1
    assert [copy["lost"] for copy in copies[:6]] == [0] * 6
    assert copies[-1]["lost"] <= 4  # as many as there were checkpoints
    for number, copy in enumerate(copies):
        check_restored(replica.restored(copy, tmp_path / f"restored-{number}"), copy["head"])
    assert copies[-1]["head"] == json.loads(replica.heads.read_text().splitlines()[-1])
    with Archive.open(path) as archive:
        assert archive.verify(against=Head(**copies[-1]["head"])).ok


def test_closing_does_not_wait_for_a_replicator(path: Path, replica: Replica) -> None:
    """Past fault: each close waited for the replicator's read transaction to end, the whole timeout long."""

    def work() -> str:
        for number in range(3):
            archive = Archive.open(path, timeout=600)
            archive.trunk.note(f"{number}")
            archive.close()
        return "closed"

    assert in_a_child(work, 30) == "closed"
    assert replica.do("sync")["lost"] == 0


def test_a_file_restored_to_the_past_does_not_prove_a_later_head(path: Path, replica: Replica, tmp_path: Path) -> None:
    """What was appended since is missing, its keys are free again, and what is appended instead is another history."""
    early = replica.do("sync")
    with Archive.open(path) as archive:
        archive.trunk.assistant("done", key="k")
        late = archive.head()
    now = replica.do("sync")

    check_restored(replica.restored(now, tmp_path / "now"), late.to_dict())
    with Archive.open(replica.restored(early, tmp_path / "past")) as archive:
        (fault,) = archive.verify(against=late).faults
        assert (fault.kind, fault.what) == ("head", f"is not there: the file ends at record {late.seq - 1}")
        archive.trunk.assistant("done", key="k")
        (fault,) = archive.verify(against=late).faults
        assert fault.kind == "head"
        assert "the kept head has" in fault.what


def test_a_replica_keeps_what_is_redacted_and_keeps_a_redaction_from_ending(
    path: Path, replica: Replica, tmp_path: Path
) -> None:
    """L12: the text is blanked, but old pages go only when the replicator lets go; and its earlier copies are its own."""
    before = replica.do("sync")
    with Archive.open(path, timeout=0.2) as archive:
        with pytest.raises(Busy, match="redact the same record again"):
            archive.redact(2, reason="a password")
        replica.stop()
        archive.redact(2, reason="a password")
        assert archive.verify().redacted == (2,)
    assert SECRET.encode() not in path.read_bytes()
    assert SECRET.encode() in replica.restored(before, tmp_path / "past").read_bytes()


def test_the_tables_of_a_replicator_are_admitted_to_the_letter_alone(path: Path) -> None:
    """Plain tables can do nothing; anything on them, or written otherwise, is not ours."""
    made = "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER); CREATE TABLE _litestream_lock (id INTEGER);"
    for number, (sql, said) in enumerate(
        {
            made: None,
            "CREATE TABLE _litestream_lock (id INTEGER, x AS (abs(id)));": "table _litestream_lock is altered",
            f"{made} CREATE TRIGGER t AFTER INSERT ON _litestream_seq BEGIN SELECT 1; END;": "trigger t is not ours",
            "CREATE TABLE _litestream_more (id INTEGER);": "table _litestream_more is not ours",
        }.items()
    ):
        copy = Path(shutil.copy(path, path.with_name(f"{number}")))
        with contextlib.closing(sqlite3.connect(copy)) as db:
            db.executescript(sql)
        if said is None:
            with Archive.open(copy) as archive:
                assert archive.verify().ok
                assert archive.rebuild() == []
                assert archive.backup(path.with_name("copy")).ok
        else:
            with pytest.raises(BadFile, match=said):
                Archive.open(copy)
