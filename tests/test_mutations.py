"""Random bytes changed in a lawful file: each change is found by opening or ``verify``, or no answer of the API is another.

Method: a copy of the lawful file gets one to eight bytes changed, somewhere; half of the time in what SQLite or the schema lives by
(the header, the heads of pages, the cells' first bytes). Opened, whatever is asked of it may raise nothing but our own errors. When
opening and verifying have nothing to say, everything that can be asked is asked, and must be answered as by the file unchanged.

``EXARCH_MUTATIONS`` (default 400) is the number of files. The seed of each is its number, so ``EXARCH_MUTATION=1234`` repeats one.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
from typing import TYPE_CHECKING, Any

import forge
import pytest
from faulty_vfs import tally
from test_processes import Child

from exarch_sql import Archive, ExarchError, verify
from exarch_sql.connection import open_unjudged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from exarch_sql import Head

COUNT = int(os.environ.get("EXARCH_MUTATIONS", "400"))
ONE = os.environ.get("EXARCH_MUTATION")
CHUNKS = 4
PAGE = 4096
SECONDS_A_FILE = 5.0


def mutated(data: bytes, seed: int) -> tuple[bytes, list[int]]:
    """The file with some bytes changed, and where."""
    dice = random.Random(seed)  # noqa: S311
    changed = bytearray(data)
    places = []
    for _ in range(dice.choice((1, 1, 1, 2, 8))):
        page = dice.randrange(len(data) // PAGE) * PAGE
        within = dice.choice((dice.randrange(PAGE), dice.randrange(PAGE), dice.randrange(16), dice.randrange(200)))
        at = dice.randrange(100) if dice.random() < 0.1 else page + within
        changed[at] = dice.choice((changed[at] ^ (1 << dice.randrange(8)), dice.randrange(256), 0, 255))
        places.append(at)
    return bytes(changed), places


QUESTIONS: dict[str, Callable[[Archive, Any], Any]] = {
    "survey": lambda archive, log: log.survey().to_dict(),
    "index": lambda archive, log: [row.to_dict() for row in log.index()],
    "state": lambda archive, log: (log.reach, log.state, log.owed, log.unclosed),
    "otel": lambda archive, log: log.render("otel"),
    "anthropic": lambda archive, log: log.render("anthropic"),
    "before": lambda archive, log: log.render(at=archive.head().seq - 1),
    "read": lambda archive, log: [material.to_dict() for material in log.read(closed(log))],
    "grep": lambda archive, log: log.grep("o").to_dict(),
    "plan": lambda archive, log: repr(log.plan()),
}
OF_THE_FILE: dict[str, Callable[[Archive], Any]] = {
    "logs": lambda archive: [log.to_dict() for log in archive.logs()],
    "head": lambda archive: archive.head().to_dict(),
    "residues": lambda archive: archive.sql("SELECT * FROM evictions ORDER BY seq").to_dict(),
    "witnesses": lambda archive: archive.sql("SELECT * FROM witnesses ORDER BY seq").to_dict(),
    "keys": lambda archive: archive.sql("SELECT seq, log, key, at_ms FROM records ORDER BY seq").to_dict(),
}


def closed(log: Any) -> list[int]:
    """The turns of a log that can be read."""
    return [row.from_ for row in log.index() if row.kind != "residue" and row.from_ != log.unclosed]


def answers(archive: Archive) -> dict[str, Any]:
    """Everything that is asked of a file, and what it answers; an error of ours is an answer too."""
    said: dict[str, Any] = {}

    def ask(question: str, answer: Callable[[], Any]) -> None:
        try:
            said[question] = json.dumps(answer(), default=repr)
        except ExarchError as error:
            said[question] = f"{type(error).__name__}: {error}".replace(archive.path, "")

    for question, of_file in OF_THE_FILE.items():
        ask(question, lambda of_file=of_file: of_file(archive))  # type: ignore[misc]
    for number in range(1, 7):
        for question, of_log in QUESTIONS.items():
            ask(
                f"{question} of log {number}", lambda of_log=of_log, number=number: of_log(archive, archive.log(number))
            )  # type: ignore[misc]
    return said


def fate(path: Path, head: Head, lawful: dict[str, Any]) -> str:
    """What becomes of a file: "refused", "found", "no matter", or what is wrong with us."""
    try:
        archive = Archive.open(path, timeout=1)
    except ExarchError:
        judged = _judged(path, head)
        return "refused" if judged != "lawful" else "refused, and judged to be lawful"
    with contextlib.suppress(ExarchError), archive:
        report = archive.verify(against=head)
        said = answers(archive)
        if not report.ok:
            return "found"
        if said == lawful:
            return "no matter"
        different = [question for question, answer in said.items() if answer != lawful[question]]
        return f"lawful, but it answers otherwise: {different[:4]}, {said[different[0]][:300]}"
    return "found"


def _judged(path: Path, head: Head) -> str:
    """What the judge says, who opens a file for nothing else."""
    try:
        db = open_unjudged(str(path))
    except ExarchError:
        return "refused"
    try:
        return "lawful" if verify.verify(db, against=head).ok else "found"
    finally:
        db.close()


def fates(seeds: list[int], data: bytes, folder: Path, head: Head, lawful: dict[str, Any]) -> Child:
    """The fates of many files, one JSON line each, from a process that may be stopped when it hangs."""
    path = folder / f"{seeds[0]}.exarch"

    def work() -> str:
        told = []
        for seed in seeds:
            changed, places = mutated(data, seed)
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            path.write_bytes(changed)
            try:
                end = fate(path, head, lawful)
            except BaseException as error:
                end = f"an error that is not ours: {error!r:.300}"
            told.append([seed, places, end])
        return json.dumps(told)

    return Child(work)


@pytest.mark.parametrize("indexed", [False, True], ids=["records alone", "with a search index"])
def test_a_changed_byte_is_found_or_changes_no_answer(lawful_file: Path, tmp_path: Path, indexed: bool) -> None:
    """L11, L14 and the defences of opening, at once: nothing is silently wrong, nothing hangs, nothing fails but in our words."""
    path = tmp_path / "lawful"
    path.write_bytes(lawful_file.read_bytes())
    with Archive.open(path) as archive:
        if indexed:
            archive.reindex()
        head, lawful = archive.head(), answers(archive)
    data = path.read_bytes()
    assert not [question for question, answer in lawful.items() if answer.startswith(("BadFile", "Busy"))]
    seeds = [int(ONE)] if ONE else list(range(indexed, COUNT, 2))
    chunks = [chunk for each in range(CHUNKS) if (chunk := seeds[each::CHUNKS])]
    counts: dict[str, int] = {}
    wrong = []
    for pair in range(0, len(chunks), 2):
        children = [fates(chunk, data, tmp_path, head, lawful) for chunk in chunks[pair : pair + 2]]
        for child, chunk in zip(children, chunks[pair : pair + 2], strict=True):
            for seed, places, end in json.loads(child.said(30 + SECONDS_A_FILE * len(chunk))):
                counts[end] = counts.get(end, 0) + 1
                if end not in ("refused", "found", "no matter"):
                    wrong.append(f"EXARCH_MUTATION={seed}, bytes {places}: {end}")
    for end in ("refused", "found", "no matter"):
        tally(f"files with bytes changed: {end}", counts.get(end, 0))
    assert not wrong, "\n".join([f"{len(wrong)} of {len(seeds)}", *wrong[:20]])
    if len(seeds) > 100:
        assert {"refused", "found", "no matter"} <= counts.keys()


def test_the_comparison_can_fail(lawful_file: Path, lawful: bytes, tmp_path: Path) -> None:
    """One word of a prompt changed, the chain made to fit and no head kept: the file is lawful, and the other answer is seen."""
    with Archive.open(lawful_file, readonly=True) as archive:
        head, said = archive.head(), answers(archive)
    path = tmp_path / "a"
    path.write_bytes(lawful_file.read_bytes())
    assert fate(path, head, said) == "no matter"

    db = forge.bare(lawful)
    with forge.without_triggers(db):
        db.execute(
            "UPDATE records SET body = replace(body, 'slower', 'faster'), label = 'faster' WHERE label = 'slower'"
        )
        forge.rechain(db)
    path = tmp_path / "b"
    path.write_bytes(db.serialize())
    assert fate(path, head, said) == "found"
    with Archive.open(path) as archive:
        assert fate(path, archive.head(), said).startswith("lawful, but it answers otherwise")
