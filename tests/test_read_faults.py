"""When a disk cannot read, or reads wrongly: told or right, nothing lost, nothing half-done, and well again when the disk is.

Method: the scenarios of `test_crashes`, and some that mostly ask, with a misread at look 1, 2, 3, ... of the disk (`faulty_vfs`).
Two kinds of misread are two promises. A look that *fails*, SQLite notices: the call raises one of our errors, and asked for again
it is done. A read that brings *other bytes* than were written, SQLite may not notice, for its pages carry no sums: then what holds
is that no message, note or hit is answered other than it was recorded, and that ``verify`` finds what of it was written back.

Numbers are sampled as in `test_crashes`: ``EXARCH_FAULTS=all`` takes every one.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import forge
import pytest
from faulty_vfs import Misread, tally
from searching import eager
from test_crashes import AT, SCENARIOS, Scenario, Session, Trial, append, begun_in, check_after, content, sampled

from exarch_sql import Archive, BadFile, ExarchError, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from faulty_vfs import LookKind

# --- scenarios that ask -----------------------------------------------------------------------------------------------------

QUESTIONS: dict[str, Callable[[Archive], Any]] = {
    "head": lambda archive: archive.head().seq,
    "logs": lambda archive: archive.logs(),
    "survey": lambda archive: archive.trunk.survey().to_dict(),
    "survey at": lambda archive: archive.trunk.survey(at=20).to_dict(),
    "index": lambda archive: [row.to_dict() for row in archive.trunk.index()],
    "under": lambda archive: [row.to_dict() for row in archive.trunk.under(3, 4)],
    "render": lambda archive: archive.trunk.render(),
    "read": lambda archive: [turn.to_dict() for turn in archive.trunk.read([1, 3, 8])],
    "grep": lambda archive: archive.trunk.grep("reply|first", tell=lambda _: None).to_dict(),
    "sql": lambda archive: archive.sql("SELECT count(*), max(seq) FROM records").rows,
    "stats": lambda archive: archive.stats()["body-bytes"],
    "sightings": lambda archive: [found.to_dict() for found in archive.sightings("hunter2")],
}


def asking(name: str) -> Callable[[Session], Any]:
    """A step that asks, and notes the answer."""

    def step(run: Session) -> None:
        run.said.append((name, QUESTIONS[name](run.archive)))

    return step


def open_to_read(run: Session) -> None:
    """Open for reading only."""
    run.archive = Archive.open(run.path, readonly=True)


def another_writes(run: Session) -> None:
    """Let another handle write, so that this one must read anew."""
    run.beside = run.beside or Archive.open(run.path)
    run.beside.trunk.prompt("by another", key="another", at_ms=AT)


def verified(run: Session) -> None:
    """Judge the file; a fault that is found is told as an error, so that it may be asked again."""
    report = run.archive.verify(index=True)
    if not report.ok:
        raise BadFile(str(report.first))


QUESTIONING = [asking(name) for name in QUESTIONS]
ASKED = {
    "asking": Scenario([*QUESTIONING, another_writes, *QUESTIONING]),
    "asking to read only": Scenario(QUESTIONING, opening=open_to_read),
    "searching": Scenario([append(1, 100), asking("grep"), append(2, 100), asking("grep"), append(3), asking("grep")]),
    "verifying": Scenario([append(1, 100), lambda run: run.archive.reindex(), verified]),
}
ALL = SCENARIOS | ASKED


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that scenarios start from."""
    return begun_in(tmp_path_factory.mktemp("begun"))


@pytest.fixture
def trial(request: pytest.FixtureRequest, tmp_path: Path, begun: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """The scenario that the test is about; a few kilobytes are worth an index in it."""
    eager(monkeypatch)
    return Trial(ALL[request.param], tmp_path / "disk", begun)


every_scenario = pytest.mark.parametrize("trial", ALL, indirect=True)


@every_scenario
def test_a_look_that_fails_is_told_and_asked_again_is_done(trial: Trial, request: pytest.FixtureRequest) -> None:
    """A read, a size, an opening fails once: one of our errors, the handle goes on, and every answer and record is right."""
    states = trial.states()
    whole, disk = trial.play()
    numbers = sampled(disk.looks, request.node.name)
    for at in numbers:
        try:
            run, disk = trial.play(Misread(at, "unread"), again=True)
            assert run.said == whole.said
            check_after(trial, run, states, least=len(states) - 1, most=len(states) - 1)
        except BaseException as error:
            error.add_note(f"unread at look {at}: {disk.looked[at - 1]}")
            raise
    tally("looks failed", len(numbers))


# --- reads that bring other bytes -------------------------------------------------------------------------------------------


class Recorded(NamedTuple):
    """What was recorded in a lawful file: messages by turn, what residues say, and every line that can be a hit."""

    turns: dict[int, list[Any]]
    residues: list[Any]
    lines: set[str]

    def made_up(self, name: str, answer: Any) -> list[Any]:
        """What of an answer is no message, note or hit that was ever recorded."""
        if name == "render":
            known = [message for said in self.turns.values() for message in said] + self.residues
            return [message for message in answer if message not in known]
        if name == "read":
            return [said for turn in answer for said in turn["messages"] if said not in self.turns[turn["turn"]]]
        if name == "grep":
            return [hit for hit in answer["hits"] if hit["text"] not in self.lines]
        return []


def recorded(path: Path) -> Recorded:
    """Read all of it."""
    with Archive.open(path, readonly=True) as archive:
        log = archive.trunk
        turns: dict[int, list[Any]] = {}
        for turn, body in archive.sql("SELECT turn, body FROM records WHERE log = 1 AND turn IS NOT NULL").rows:
            turns.setdefault(turn, []).extend(json.loads(body or "[]"))
        residues = [message for message in log.render() if not any(message in said for said in turns.values())]
        said = [messages.searched_text(message) for each in turns.values() for message in each]
        notes = [row.label for row in log.index() if row.kind == "residue"]
        return Recorded(turns, residues, {line[:200] for text in said + notes for line in text.split("\n")})


def sound(path: Path) -> bool:
    """Whether the file opens and ``verify`` finds nothing, now that the disk reads well."""
    try:
        with Archive.open(path) as archive:
            return archive.verify(index=True).ok
    except ExarchError:
        return False


@every_scenario
@pytest.mark.parametrize("kind", ["short", "rot", "rotten"])
def test_a_read_of_other_bytes_makes_nothing_up_and_verify_finds_what_was_written_of_it(
    trial: Trial, kind: LookKind, request: pytest.FixtureRequest
) -> None:
    """L11: a message, note or hit is as recorded, or refused. Rows of the fold may be wrong: those answers are counted."""
    states = trial.states()
    whole, disk = trial.play()
    known = recorded(whole.path)
    numbers = [at for at in sampled(disk.looks, request.node.name) if " read " in disk.looked[at - 1]]
    wrong = found = 0
    for at in numbers:
        run, disk = trial.play(Misread(at, kind))
        try:
            for (name, answer), (_, right) in zip(run.said, whole.said, strict=False):
                assert not known.made_up(name, answer), name
                wrong += answer != right
            if sound(run.path):
                assert content(run.path) in states, "half of something stands, and nothing tells"
            else:
                found += 1
        except BaseException as error:
            error.add_note(f"{kind} at look {disk.looked[at - 1]}")
            raise
    tally("reads that brought other bytes", len(numbers))
    tally("answers from the fold that they made wrong", wrong)
    tally("files that they made wrong, found by verify", found)


@pytest.mark.parametrize("trial", ["asking to read only"], indirect=True)
def test_a_handle_that_noticed_a_misread_reads_anew(trial: Trial, request: pytest.FixtureRequest) -> None:
    """What was read wrongly once must not stay in the handle's memory: asked again, it answers."""
    _, disk = trial.play()
    for at in sampled(disk.looks, request.node.name):
        trial.play(Misread(at, "rot"), again=True)


# --- the same, once the wrong bytes lie in the file --------------------------------------------------------------------------


@contextlib.contextmanager
def tampered(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that no trigger holds back; they stand again afterwards."""
    with contextlib.closing(sqlite3.connect(path)) as db, forge.without_triggers(db):
        yield db
        db.commit()


def test_a_residue_whose_note_is_not_the_recorded_one_is_refused(lawful_copy: Path) -> None:
    """L11: the fold keeps notes for its readers; what is rendered or reported as a hit is compared with the record."""
    with tampered(lawful_copy) as db:
        db.execute("UPDATE residues SET note = 'over a withdr*wn run' WHERE note = 'over a withdrawn run'")
    with Archive.open(lawful_copy, readonly=True) as archive:
        for ask in (archive.trunk.render, lambda: archive.trunk.grep("withdr.wn")):
            with pytest.raises(BadFile, match="the residue over turns 6–10 is not the one that record"):
                ask()
        assert archive.trunk.grep("slow enough").total == 1


def test_an_altered_body_is_neither_looked_through_nor_cut(lawful_copy: Path) -> None:
    """L11, L12: what a redaction leaves is recorded as lawful, so it must have been recorded before."""
    with tampered(lawful_copy) as db:
        (seq,) = db.execute("SELECT seq FROM records WHERE body GLOB '*recorded elsewhere*'").fetchone()
        db.execute(
            "UPDATE records SET body = replace(body, 'recorded elsewhere', 'recorded elsewhat!') WHERE seq = ?", (seq,)
        )
    with Archive.open(lawful_copy) as archive:
        for ask in (lambda: archive.sightings("elsewhere"), lambda: archive.redact(seq, part=0, reason="x")):
            with pytest.raises(BadFile, match=f"record {seq} does not hash"):
                ask()


def test_a_schema_that_is_changed_under_an_open_handle_is_told_as_such(lawful_copy: Path) -> None:
    """Another program may drop a view at any time: one of our errors, not the driver's."""
    with Archive.open(lawful_copy, readonly=True) as archive:
        other = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('DROP VIEW frontier')"
        subprocess.run([sys.executable, "-c", other, lawful_copy], check=True)
        with pytest.raises(BadFile, match=r"no such table: frontier.*run verify"):
            archive.trunk.survey()
