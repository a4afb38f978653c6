"""Whatever is typed: an answer or a refusal, nothing written that was not asked for, within bounds of time and memory."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from door_host import MemoryLog
from hypothesis import example, given, settings
from hypothesis import strategies as st
from regenerate_door_trees import ACCEPTED, REFUSED, SLIPS, load

from exarch_sql.answers import Found
from exarch_sql.door import Answer, Door, Limits, Malformed, Overrun
from exarch_sql.door.teaching import code_lines
from exarch_sql.errors import Refused, Unfinished

if TYPE_CHECKING:
    from collections.abc import Sequence

LINES = [case["source"] for corpus in (ACCEPTED, REFUSED, SLIPS) for case in load(corpus)] + code_lines()
PIECES = st.sampled_from(
    [
        *"[](){}|!$`'\"#:;,.?&<>~^\\\n\r\t ",
        *(
            "`evict ",
            "`read ",
            "$[",
            "!{",
            "[:",
            "...",
            "let x = ",
            "case ",
            "return ",
            "41",
            "'a'",
            '"$x"',
            "$x",
            "$x[0]",
        ),
        *("[from: 1, to: 2, note: 'n']", "{ |x| $x }", "range 1 9", "\ud800", "\u200b", "“", "map "),
    ]
)
LIMITS = Limits(seconds=1.0, steps=100_000)
MEGABYTE = 1_048_576


def outcome(source: str, log: MemoryLog, limits: Limits = LIMITS) -> Answer | Refused:
    """What a run comes to, printing included. Anything raised but a refusal fails the test that asked."""
    try:
        answer = Door(log, limits=limits).run(source)
        assert isinstance(answer.text, str)
    except Refused as refused:
        str(refused).encode("utf-8")  # a refusal can always be sent
        return refused
    return answer


def unwritten(source: str) -> None:
    """Run on a log that refuses every write; nothing may be written, and evicting is the only thing that tries."""

    class ReadOnly(MemoryLog):
        def evict(self, from_: int, to: int, *, note: str) -> Any:
            raise Refused("the archive is open for reading only")

    log = ReadOnly(MemoryLog.of_length(6).turns.values())
    outcome(source, log)
    assert log.writes == 0


@settings(max_examples=400)
@given(st.text(st.characters(), max_size=60))
def test_any_text_is_answered_or_refused(source: str) -> None:
    """Random Unicode, lone surrogates and controls among it."""
    unwritten(source)


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_any_pieces_of_the_language_are_answered_or_refused(source: str) -> None:
    """Nearer to the grammar than random text, and as little of it lawful."""
    unwritten(source)


@settings(max_examples=400)
@given(st.sampled_from(LINES), st.data())
@example("`evict [from: 1, to: 2, note: 'x']", None)
def test_a_line_with_something_cut_doubled_swapped_or_put_in_is_answered_or_refused(
    line: str, data: st.DataObject | None
) -> None:
    """The slips nobody thought of."""
    if data is None:
        unwritten(line)
        return
    at = data.draw(st.integers(0, len(line)))
    to = data.draw(st.integers(at, min(len(line), at + 8)))
    mutated = data.draw(
        st.sampled_from(
            [
                line[:at] + line[to:],
                line[:to] + line[at:],
                line[:at] + line[at:to][::-1] + line[to:],
                line[:at] + data.draw(PIECES) + line[to:],
                line[:at],
                line[at:],
            ]
        )
    )
    unwritten(mutated)


def test_reading_lines_write_nothing() -> None:
    """Only `evict writes: every other taught line leaves the log as it was."""
    log = MemoryLog.of_length(60)
    door = Door(log)
    for line in code_lines():
        if "`evict" not in line and "`under" not in line:
            door.run(line)

    assert log.writes == 0


BOMBS = {
    "brackets": "[" * MEGABYTE,
    "braces": "{" * (MEGABYTE // 2),
    "forces": "!" * MEGABYTE,
    "tags": "`a " * (MEGABYTE // 3),
    "splices": '"$[' * (MEGABYTE // 3),
    "negations": "$[" + "-" * 100_000 + "1]",
    "nots": "$[" + "not " * 100_000 + "true]",
    "a flat list": "[" + "1," * 200_000 + "]",
    "a flat sum": "$[" + "1+" * 100_000 + "1]",
    "a flat index": "let x = 5; $x" + "[0]" * 100_000,
    "words": "echo " + "a " * (MEGABYTE // 2 - 3),
    "statements": "1;" * (MEGABYTE // 2),
    "separators": ";" * MEGABYTE,
    "lets": "let x = 1\n" * 50_000,
    "comments": "#\n" * (MEGABYTE // 2),
    "one word": "x" * MEGABYTE,
    "one string": "'" + "x" * (MEGABYTE - 2) + "'",
    "quotes": "'" * (MEGABYTE - 1),
    "double quotes": '"' * (MEGABYTE - 1),
    "hashes": "#" * MEGABYTE,
    "hashes and a quote": "#" * (MEGABYTE - 1) + "'",
    "many openings": "#'" * (MEGABYTE // 2),
    "backslashes": '"' + "\\" * (MEGABYTE - 1),
    "digits": "9" * 100_000,
    "a long float": "1." + "9" * 100_000,
    "curly quotes": "‘" * 20_000,
    "ticks": "```" * 6_000,
    "colons": "[" + "a:" * 9_000,
    "blanks and ticks": "`" + " " * 5_900 + "`survey`",
    "notes": "note: '" * 800,
    "curly notes": "note: “" * 800 + "]",
    "open braces": "{from: " * 800,
    "ids": "turns: " + "1, " * 1_900,
    "calls without end": "`evict (" * 700,
    "prose": "I'll say `survey and \"" * 270,
    "too large": "x" * (MEGABYTE + 1),
    "a long range": "range 0 1000000000",
    "the longest range": "range -9223372036854775808 9223372036854775807",
    "a loop over a range": "map { |x| map { |y| $[$x * $y] } !{range 0 100000} } !{range 0 100000}",
    "doubling text": "fold { |s _| \"$s$s\" } 'x' !{range 0 100}",
    "doubling lists": "fold { |s _| [$s, $s] } [] !{range 0 60}",
    "doubling and printing": "str !{fold { |s _| [$s, $s] } [] !{range 0 60}}",
    "doubling and comparing": "equal !{fold { |s _| [$s, $s] } [] !{range 0 60}} !{fold { |s _| [$s, $s] } [] !{range 0 60}}",
    "doubling flat": "fold { |s _| [...$s, ...$s] } [1] !{range 0 60}",
    "nesting values": "fold { |s _| [$s] } [] !{range 0 100000}",
    "nesting tags": "fold { |s _| `t $s } `t !{range 0 100000}",
    "nesting functions": "fold { |s _| equal $s } 1 !{range 0 50000}",
    "copying": "let xs = range 0 100000; map { |_| take 99999 $xs } $xs",
    "calling itself": "let f = { |x| f $x }; f 1",
    "growing calls": "let f = { |x| f [$x] }; f 1",
    "forcing itself": "let f = { !{f} }; f",
    "echoing": "each { |x| echo 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' } !{range 0 99999}",
    "a large pattern": f"`grep [pattern: '{'a' * 500_000}']",
    "a nested pattern": "`grep [pattern: '((((a{30}){30}){30}){30}){30}']",
    "a slow pattern": f"re-match '(a*)*(a*)*(a*)*$' '{'a' * 500_000}b'",
    "many groups": f"re-match '{'(' * 1900}a{')' * 1900}' 'a'",
    "sum past its type": "sum [9223372036854775807, 1]",
    "a float past its type": "$[1.0e308 * 10.0]",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_answered_or_refused_within_its_bounds(name: str) -> None:
    """Nesting, doubling, loops, recursion, patterns and megabytes: no crash, a second or so, tens of megabytes."""
    source = BOMBS[name]
    outcome("`survey", MemoryLog.of_length(6))  # the parser is built once for the process: not the bomb's doing
    began = time.monotonic()
    outcome(source, MemoryLog.of_length(6))
    assert time.monotonic() - began < 6 * LIMITS.seconds  # of which the clock allows one; the rest is a slow machine


@pytest.mark.parametrize(
    "name", ["doubling text", "doubling flat", "a long range", "copying", "nesting values", "a flat list", "brackets"]
)
def test_a_bomb_takes_memory_in_proportion_to_its_bound(name: str) -> None:
    """`made_bytes` is an estimate; what is really taken stays within a small factor of it."""
    limits = Limits(seconds=2.0, steps=100_000, made_bytes=8 * MEGABYTE)
    outcome("`survey", MemoryLog.of_length(6))
    tracemalloc.start()
    try:
        outcome(BOMBS[name], MemoryLog.of_length(6), limits)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 150 * MEGABYTE


class SlowToSearch(MemoryLog):
    """A log whose searches take all the time they are given, of a clock of its own."""

    def __init__(self, clock: list[float]) -> None:
        super().__init__([])
        self.clock = clock
        self.given: list[float] = []

    def grep(self, pattern: str, turns: Sequence[int] | None = None, *, seconds: float = 5.0) -> Found:
        """Searches for as long as it may, but for `quick`."""
        self.given.append(seconds)
        self.clock[0] += 3.0 if pattern == "quick" else seconds + 0.5
        if pattern == "quick":
            return Found((), 0)
        raise Unfinished("the search took too long", "stopped in turn 7, with 2 hits by then; or search for less")


def test_a_search_is_given_the_time_that_is_left_of_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run ends within its own seconds, and says which bound that was, and where its search stopped."""
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    log = SlowToSearch(clock)
    door = Door(log, limits=Limits(seconds=5.0))

    with pytest.raises(Overrun) as refused:
        door.run("`grep [pattern: 'quick']; `grep [pattern: 'slow']")

    assert log.given == [5.0, 2.0]
    said = "the line ran for more than 5 s: its search stopped in turn 7, with 2 hits by then; or search for less"
    assert refused.value.reason == said
    assert refused.value.column == 27
    log.given.clear()
    with pytest.raises(Overrun, match="ran for more than 5 s: narrow it"):
        door.run("`grep [pattern: 'quick']; `grep [pattern: 'quick']; `grep [pattern: 'quick']")
    assert log.given == [5.0, 2.0]


@pytest.mark.parametrize(
    ("limits", "line", "words"),
    [
        (Limits(source_bytes=10), "echo 'four words'", "at most 10 are read at once"),
        (Limits(tokens=3), "echo 1 2 3", "more than 3 words and signs"),
        (Limits(steps=50), "map { |x| $x } !{range 0 100}", "more than 50 steps"),
        (
            Limits(seconds=0.01, steps=10**9),
            "map { |x| map { |y| $y } !{range 0 999} } !{range 0 9999}",
            "more than 0.01 s",
        ),
        (Limits(list_items=10), "range 0 11", "range 0 11 would hold 11 elements: a list here holds at most 10"),
        (Limits(made_bytes=100), "let x = '0123456789'; \"$x$x$x$x$x$x$x$x$x$x$x\"", "built more than 100 bytes"),
        (Limits(output_bytes=10), "echo 'eleven chars'", "says more than 10 bytes"),
        (Limits(output_bytes=10), "'eleven chars'", "more than 10 bytes to print"),
        (Limits(calls=5), "let f = { |x| f $x }; f 1", "calls nest deeper than 5"),
        (Limits(), "[" * 65, "nests deeper than 64"),
    ],
)
def test_each_bound_is_refused_by_its_own_words(limits: Limits, line: str, words: str) -> None:
    """A limit says which it is, and how to stay under it."""
    refused = outcome(line, MemoryLog.of_length(3), limits)

    assert isinstance(refused, Overrun)
    assert words in refused.reason


def test_a_source_of_exactly_the_bound_is_read() -> None:
    """In bytes, not characters."""
    at_bound = "'" + "é" * ((MEGABYTE - 2) // 2) + "'"

    assert len(at_bound.encode()) == MEGABYTE
    assert isinstance(outcome(at_bound, MemoryLog([])), Answer)
    assert isinstance(outcome(at_bound + " ", MemoryLog([])), Overrun)


def test_names_hold_no_more_than_their_bound_however_many_runs_bind_them() -> None:
    """A session cannot fill memory a run at a time; binding a name anew frees what it held."""
    door = Door(MemoryLog([]), limits=Limits(held_bytes=MEGABYTE + 100_000))
    big = "fold { |s _| \"$s$s\" } 'x' !{range 0 19}"  # half a megabyte
    for _ in range(8):
        door.run(f"let a = {big}")
    door.run(f"let b = {big}")
    with pytest.raises(Overrun, match="the names of this door would hold more than"):
        door.run(f"let c = {big}; let d = {big}")
    assert door.names == ["a", "b"]
    door.run("let a = 1")
    door.run("let b = 1")
    door.run(f"let z = {big}")

    assert door.run("length $z").text == "524288"


def test_a_refusal_leaves_the_door_as_it_was() -> None:
    """After every bomb the same door answers."""
    log = MemoryLog.of_length(6)
    door = Door(log, limits=LIMITS)
    door.run("let x = 7")
    for name in ("brackets", "calling itself", "doubling text", "a long range", "quotes"):
        with pytest.raises(Refused):
            door.run(BOMBS[name])

    assert (door.run("$x").text, door.names, log.writes) == ("7", ["f", "x"], 0)  # f was bound before it was called


def frames_left() -> int:
    """How many more calls this thread may nest."""
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]
    return sys.getrecursionlimit() - depth


def test_a_door_deep_in_its_callers_stack_refuses_instead_of_failing() -> None:
    """Where the process's own recursion limit is nearer than the door's bounds, it is met as a bound too."""
    nested = "map { |x| " * 12 + "$x" + " } [1]" * 12
    lines = (nested, "[" * 60 + "]" * 60, "equal [[[[[1]]]]] [[[[[2]]]]]", "exarch-context evict [from:1]", "`survey")
    for line in lines:
        outcome(line, MemoryLog.of_length(6))  # what is loaded on first use is loaded
    seen = set()

    def sunk(left: int, line: str) -> None:
        if frames_left() > left:
            sunk(left, line)
        else:
            seen.add(type(outcome(line, MemoryLog.of_length(6))))

    for left in range(40, 400, 9):
        for line in lines:
            sunk(left, line)
    assert seen == {Answer, Overrun, Malformed}


def test_a_one_verb_line_costs_well_under_a_millisecond_over_the_verb() -> None:
    """Parsing, checking and running, measured as the best of several rounds."""

    class Instant(MemoryLog):
        answer = MemoryLog.of_length(6).survey()

        def survey(self) -> Any:
            return self.answer

        def evict(self, from_: int, to: int, *, note: str) -> Any:
            return self.answer

    for line in (
        "exarch-context `survey",
        "exarch-context `evict [from: 41, to: 60, note: 'lexer was fine; the bug is in range']",
    ):
        door = Door(Instant([]))
        door.run(line)
        rounds = []
        for _ in range(7):
            began = time.perf_counter()
            for _ in range(20):
                door.run(line)
            rounds.append((time.perf_counter() - began) / 20)
        assert min(rounds) < 0.001, (line, rounds)


def test_the_door_is_imported_without_the_parser_library_and_the_search_library() -> None:
    """A command that types no line pays for neither: both are loaded when first used."""
    program = "import sys, exarch_sql.door; print([name for name in ('lark', 're2') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
