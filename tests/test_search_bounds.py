"""A search takes no more than its time, its memory and a Ctrl-C: an answer is complete or none."""

from __future__ import annotations

import itertools
import json
import math
import re
import subprocess
import sys
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from searching import by_definition
from test_patterns_bounds import hostile

from exarch_sql import Archive, Refused
from exarch_sql.search import budget, grep
from exarch_sql.search.budget import Spent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from exarch_sql import Log
    from exarch_sql.answers import Found


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """Forty turns, each with the needle, two notes of it, and one turn being written."""
    with Archive.open(tmp_path / "a.exarch", durability="off") as archive:
        log = archive.trunk
        for turn in range(20):
            log.prompt(f"needle {turn} " + "hay " * 30)
            log.assistant("another needle\nand one more needle")
        log.evict(2, 3, "needles lie here")
        log.evict(11, 30, "and needles here")
        log.prompt("being written")
        yield log


class Clock:
    """A clock that strikes after so many looks."""

    def __init__(self, looks: int, strikes: type[BaseException]) -> None:
        self.left, self.strikes = looks, strikes

    def tick(self) -> None:
        """One look."""
        self.left -= 1
        if self.left < 0:
            raise self.strikes


def test_past_its_time_it_says_where_it_stopped_and_how_to_search_in_parts(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whatever look the time is up, the parts it names are lawful searches that find together what it had to find."""
    monkeypatch.setattr(grep, "BATCH_BYTES", 300)
    everything = by_definition(log, "needle", list(range(1, 41)))
    stops = set()
    for looks in itertools.count():
        with monkeypatch.context() as patch:
            patch.setattr(budget.Budget, "tick", Clock(looks, Spent).tick)
            try:
                found = log.grep("needle")
            except Refused as refused:
                said = str(refused)
            else:
                break
        assert "the search for 'needle' took more than 30 s and stopped" in said
        assert "allow more seconds" in said
        stop = re.search(r"stopped in turn (\d+), with (\d+) hits", said)
        parts = [range(int(low), int(high)) for low, high in re.findall(r"turns: !\{range (\d+) (\d+)\}", said)]
        if stop is None:
            assert "before its first turn" in said
            continue
        stops.add(int(stop[1]))
        assert int(stop[1]) in parts[-1]
        assert [turn for part in parts for turn in part] == list(range(1, 41))
        assert sum(log.grep("needle", list(part)).total for part in parts) == everything["total"]
    assert len(stops) > 5
    assert found.total == everything["total"] + 2


def test_parts_step_around_the_turn_that_is_being_written(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a rewind withdrawn turns lie past it; it is in none of the parts, which would be refused for it."""
    log.assistant("done")
    log.prompt("reopened")
    log.assistant("needle")
    log.rewind(44)
    assert log.unclosed == 43
    monkeypatch.setattr(grep, "BATCH_BYTES", 300)
    monkeypatch.setattr(budget.Budget, "tick", Clock(12, Spent).tick)
    with pytest.raises(Refused) as refused:
        log.grep("needle")
    parts = [range(int(low), int(high)) for low, high in re.findall(r"!\{range (\d+) (\d+)\}", str(refused.value))]
    assert [turn for part in parts for turn in part] == [turn for turn in range(1, 45) if turn != 43]


@pytest.mark.parametrize("seconds", [0, -1, math.nan, True, "1", None])
def test_no_time_at_all_is_refused(log: Log, seconds: Any) -> None:
    """The caller's slip, by name."""
    with pytest.raises(Refused, match="seconds is a positive number"):
        log.grep("needle", seconds=seconds)


def test_a_search_that_takes_too_long_is_stopped_in_time(tmp_path: Path) -> None:
    """By the clock itself: a dense pattern over some megabytes."""
    with Archive.open(tmp_path / "a.exarch", durability="off") as archive:
        with archive.batch():
            for _ in range(4):
                archive.trunk.prompt("a b\n" * 500_000)
                archive.trunk.assistant("ok")
        started = time.monotonic()
        with pytest.raises(Refused, match=r"took more than 0\.3 s and stopped in turn"):
            archive.trunk.grep(".", seconds=0.3)
        assert time.monotonic() - started < 2
        assert archive.trunk.grep("ok").total == 4


def test_an_interrupt_at_any_look_leaves_the_connection_usable(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C arrives as KeyboardInterrupt; the snapshot ends, nothing is held, the next search and append work."""
    expected = log.grep("needle")
    for looks in range(0, 12, 3):
        with monkeypatch.context() as patch:
            patch.setattr(budget.Budget, "tick", Clock(looks, KeyboardInterrupt).tick)
            with pytest.raises(KeyboardInterrupt):
                log.grep("needle")
        assert not log._store.db.in_transaction
        assert log.grep("needle") == expected
    assert log.assistant("goes on").id == 42


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """Four times the text, the same peak, for a pattern in every line and for one in none."""
    peaks = []
    with Archive.open(tmp_path / "a.exarch", durability="off") as archive:
        for size in (4, 12):
            with archive.batch():
                for number in range(size):
                    archive.trunk.prompt("\n".join(f"line {place} of {number}" for place in range(50_000)))
                    archive.trunk.assistant("ok")
            for pattern in ("line 7 ", "nowhere"):
                with Archive.open(archive.path, readonly=True) as reader:
                    tracemalloc.start()
                    reader.trunk.grep(pattern)
                    peaks.append(tracemalloc.get_traced_memory()[1])
                    tracemalloc.stop()
    assert max(peaks[2:]) < 1.2 * max(peaks[:2])


# -- hostile patterns ----------------------------------------------------------------------------------------------------------


def test_hostile_patterns_are_answered_or_refused_in_time_through_the_api(log: Log) -> None:
    """None of them takes more than its budget, here of a second, and what is answered is what the definition says."""
    answered = 0
    for pattern in hostile():
        started = time.monotonic()
        try:
            found: Found | Refused = log.grep(pattern, seconds=1)
        except Refused as refused:
            found = refused
        assert time.monotonic() - started < 3
        if isinstance(found, Refused):
            assert len(str(found)) < 1000
        else:
            answered += 1
            assert found.to_dict() == by_definition(log, pattern)
    assert answered > 10


def test_hostile_patterns_are_answered_or_refused_through_the_command_line(log: Log) -> None:
    """One process runs them all: exit code 0 or 1, no traceback, in time."""
    code = """
import json, sys, time
from exarch_sql.cli import main
for pattern in json.load(sys.stdin):
    sys.argv = ["exarch-sql", "grep", "--json", "--seconds", "1", "--", sys.argv_path, pattern]
    started = time.monotonic()
    try:
        main()
    except SystemExit as left:
        print(json.dumps([left.code, time.monotonic() - started]), file=sys.stderr)
"""
    code = code.replace("sys.argv_path", repr(log._store.path))
    patterns = [pattern for pattern in hostile() if "\0" not in pattern and pattern.isprintable()]
    ran = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(patterns), capture_output=True, text=True, timeout=60, check=True
    )
    ends = [json.loads(line) for line in ran.stderr.splitlines() if line.startswith("[")]
    assert len(ends) == len(patterns)
    assert {code for code, _ in ends} == {0, 1}
    assert max(seconds for _, seconds in ends) < 3
    assert "Traceback" not in ran.stderr
    assert "a fault of exarch_sql" not in ran.stderr
