"""Search answers what its definition says, whatever filter it went through: lineages, forks and edits made from seeds.

The oracle is in ``searching``: every line of every record a log sees, asked of RE2 one by one.
"""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest
import searching
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from searching import by_definition, check_all, drop_index, eager, grown, index_some
from test_patterns_agreement import examples

from exarch_sql import Archive, BadFile, Refused
from exarch_sql.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from exarch_sql import Log

SEEDS = range(4)


@pytest.mark.parametrize("seed", SEEDS)
def test_hits_are_the_same_with_the_index_absent_partial_behind_whole_or_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Forks, rewinds, evictions and redactions come between the stages; every log is searched at each of them."""
    eager(monkeypatch)
    dice = random.Random(seed)  # noqa: S311

    def some() -> list[str]:
        return dice.sample(searching.PATTERNS, 10)

    with Archive.open(tmp_path / "a.exarch", durability="off") as archive:
        grown(archive, dice, 70)
        with Archive.open(archive.path, readonly=True) as reader:
            check_all(reader, some())  # absent
        index_some(archive, 2)
        with Archive.open(archive.path, readonly=True) as reader:
            check_all(reader, some())  # half built
        archive.reindex()
        assert searching.index_reached(archive) == archive.head().seq
        check_all(archive, some())  # whole
        grown(archive, dice, 40)
        with Archive.open(archive.path, readonly=True) as reader:
            check_all(reader, some())  # behind, or gone with a redaction
        check_all(archive, some())  # catching up as it goes
        assert archive.verify(index=True).ok
        drop_index(archive)
        with Archive.open(archive.path, readonly=True) as reader:
            check_all(reader, some())


@pytest.mark.parametrize("seed", SEEDS)
def test_named_turns_are_searched_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Any set of recorded turns but the one being written, by scan and by index; notes are not among them."""
    dice = random.Random(seed + 100)  # noqa: S311
    with Archive.open(tmp_path / "a.exarch", durability="off") as archive:
        grown(archive, dice, 90)
        for _ in range(2):
            for info in archive.logs():
                log = archive.log(info.log)
                known = [turn for turn in range(1, log.reach + 1) if turn != log.unclosed]
                for pattern in dice.sample(searching.PATTERNS, 8) if known else ():
                    turns = sorted(dice.sample(known, dice.randint(1, len(known))))
                    assert log.grep(pattern, turns).to_dict() == by_definition(log, pattern, turns), (pattern, turns)
            eager(monkeypatch)
            archive.reindex()


# -- made patterns -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """One archive for all examples: each makes a log of its own in it."""
    with Archive.open(tmp_path_factory.mktemp("shared") / "a.exarch", durability="off") as archive:
        yield archive


def told(log: Log, texts: list[str], dice: random.Random) -> None:
    """Texts as messages of every kind."""
    for text in texts:
        log.prompt(text, origin="own")
        call = {"type": "tool_call", "id": "c", "name": "sh", "arguments": {"cmd": text, "why": [text]}}
        log.assistant({"role": "assistant", "parts": [{"type": "text", "content": text}, call]})
        log.tool_results([{"id": "c", "content": dice.choice([text, {"out": text}, [{"type": "text", "text": text}]])}])
        log.assistant(text)


@given(examples(), st.randoms(use_true_random=False))
@settings(max_examples=80, suppress_health_check=list(HealthCheck))
def test_made_patterns_find_the_same_lines_by_scan_by_sieve_and_by_index(
    shared: Archive, example: tuple[str, list[str]], dice: random.Random
) -> None:
    """The patterns of the pattern tests, over their texts as messages; part of the log is indexed, part is not."""
    pattern, texts = example
    try:
        compile_pattern(pattern)
    except Refused:
        reject()
    parent = shared.new_log(f"log {shared.head().seq}")
    with pytest.MonkeyPatch.context() as patch:
        told(parent, texts, dice)
        expected = by_definition(parent, pattern)
        assert parent.grep(pattern).to_dict() == expected  # too little for any filter
        eager(patch)
        patch.setattr("exarch_sql.search.build.ENOUGH_BYTES", 1 << 40)  # not by itself
        assert parent.grep(pattern).to_dict() == expected  # by the sieve, and by an index that has not come so far
        patch.setattr("exarch_sql.search.build.STEP_BYTES", 1 << 20)
        index_some(shared, 1)
        assert parent.grep(pattern).to_dict() == expected  # by the index
        child = parent.fork(f"fork {shared.head().seq}")
        told(child, texts[:1], dice)
        assert child.grep(pattern).to_dict() == by_definition(child, pattern)  # by both


# -- what a hit is -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """An empty log."""
    with Archive.open(tmp_path / "a.exarch", durability="off") as archive:
        yield archive.trunk


def test_the_hundred_oldest_are_kept_and_all_are_counted(log: Log) -> None:
    """A note stands before the turns it covers, also among the oldest."""
    for turn in range(60):
        log.prompt("needle\nhay\nneedle")
        log.assistant(f"needle {turn}")
    log.evict(31, 34, "a needle in a note")
    found = log.grep("needle")
    assert found.to_dict() == by_definition(log, "needle")
    assert found.total == 181
    assert [hit.kind for hit in found.hits].count("residue") == 1
    assert len(found.hits) == 100


def test_notes_that_start_alike_are_in_index_order_wherever_they_come_from(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wider first, then the later; some of them from the index, some past it."""
    for _ in range(6):
        log.prompt("hay")
        log.assistant("hay")
    log.evict(3, 4, "needle, the first")
    log.evict(3, 6, "needle, wider")
    eager(monkeypatch)
    archive = Archive(log._store)
    archive.reindex()
    monkeypatch.setattr("exarch_sql.search.build.ENOUGH_BYTES", 1 << 40)
    log.evict(3, 6, "needle, rewritten")
    log.evict(3, 8, "needle, widest")
    found = log.grep("needle")
    assert [hit.text.partition(", ")[2] for hit in found.hits] == ["widest", "rewritten", "wider", "the first"]
    assert found.to_dict() == by_definition(log, "needle")


def test_a_text_is_cut_at_200_bytes_between_characters(log: Log) -> None:
    """No character is halved, and the line is found by what lies past the cut."""
    log.prompt("日" * 100 + "needle")
    log.assistant("ok")
    (hit,) = log.grep("needle").hits
    assert hit.text == "日" * 66


def test_the_turn_being_written_is_left_out_and_refused_by_name(log: Log) -> None:
    """A search for all of it does not stumble over the one turn that cannot be read yet."""
    log.prompt("needle")
    assert log.grep("needle").total == 0
    with pytest.raises(Refused, match="turn 1 is being written now"):
        log.grep("needle", [1])


def test_a_body_that_was_altered_is_never_reported(log: Log, tmp_path: Path) -> None:
    """L11: what is shown is what was recorded, or the search fails by name."""
    log.prompt("needle")
    log.assistant("ok")
    path = tmp_path / "altered.exarch"
    log._store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(log._store.path, path)
    data = path.read_bytes()
    assert data.count(b'"needle"') == 1
    path.write_bytes(data.replace(b'"needle"', b'"noodle"'))
    with Archive.open(path, readonly=True) as archive, pytest.raises(BadFile, match="does not hash"):
        archive.trunk.grep("noodle")
