"""What door lines answer: application, scope, patterns, case, expressions, the prelude, and names that last."""

from __future__ import annotations

import pytest
from door_host import MemoryLog

from exarch_sql.door import Door, Failed, Malformed
from exarch_sql.door.prelude import BUILTINS


def text_of(*lines: str) -> str:
    """The printed answer of the last of ``lines``, run one after another in one door."""
    door = Door(MemoryLog.of_length(60))
    answer = [door.run(line) for line in lines][-1]
    return answer.text if answer.shown else answer.output


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        # the prelude
        ("range 41 44", "[41, 42, 43]"),
        ("range 3 3", "[]"),
        ("range 5 1", "[]"),
        ("map { |x| $[$x * 2] } [1, 2]", "[2, 4]"),
        ("map { |_| 'k' } []", "[]"),
        ("filter { |x| $[$x > 1] } [1, 2, 3]", "[2, 3]"),
        ("take 2 [1, 2, 3]", "[1, 2]"),
        ("take 0 [1]", "[]"),
        ("take -1 [1]", "[]"),
        ("take 9 [1]", "[1]"),
        ("drop 1 [1, 2, 3]", "[2, 3]"),
        ("drop -1 [1]", "[1]"),
        ("first { |x| $[$x > 1] } [1, 2, 3]", "2"),
        ("fold { |acc x| $[$acc - $x] } 10 [1, 2, 3]", "4"),
        ("length 'é😀'", "2"),
        ("length [1, 2]", "2"),
        ("length [:, a: 1]", "1"),
        ("equal [a: 1] [a: 1]", "true"),
        ("equal `a `b", "!{$equal `a `b}"),  # the tag takes the other as its payload
        ("keys [:, b: 1, a: 2]", "['a', 'b']"),
        ("has [:, b: 1] 'b'", "true"),
        ("is-empty ''", "true"),
        ("is-empty [1]", "false"),
        ("concat [[1], [], [2, 3]]", "[1, 2, 3]"),
        ("sum [1, 2, 3]", "6"),
        ("sum [0.5, 0.25]", "0.75"),
        ("sum []", "0"),
        ("lines \"a\\nb\\r\\n\"", "['a', 'b']"),
        ("re-match '^a.c$' 'abc'", "true"),
        ("re-match 'x' 'abc'", "false"),
        ("not !{equal 1 2}", "true"),
        ("str 'it'", "'it'"),
        ("str [1, 'a', `t ()]", "#'[1, 'a', `t ()]'#"),
        ("str 007", "'7'"),
        # expressions
        ("$[1 + 2 * 3]", "7"),
        ("$[(1 + 2) * 3]", "9"),
        ("$[7 / 2]", "3"),
        ("$[-7 / 2]", "-3"),
        ("$[-7 % 2]", "-1"),
        ("$[7.0 / 2.0]", "3.5"),
        ("$[2 - 3 - 4]", "-5"),
        ("$[1 < 2 && 2 <= 2 && 'a' < 'b']", "true"),
        ("$[false && !{length 5} == 1]", "false"),
        ("$[true || 1 == 1]", "true"),
        ("$[not true]", "false"),
        ("$[[1] == [1]]", "true"),
        ("$[`a == 1]", None),
        # strings
        ('"a $[1 + 1] $(BUILT) !{length [1, 2]}"', None),
        ("\"n: $[1 + 1], b: $[1 == 1], f: $[0.5 + 0.5], s: $['x']\"", "'n: 2, b: true, f: 1.0, s: x'"),
        # records, maps, lists
        ("[a: 1, b: [c: 2]][b][c]", "2"),
        ("[...[a: 1, b: 2], a: 9]", "[a: 9, b: 2]"),
        ("[:, ...[:, a: 1], b: 2]", "[:, a: 1, b: 2]"),
        ("[1, ...[2, 3]]", "[1, 2, 3]"),
        ("take ...[1, [8, 9]]", "[8]"),
        # blocks
        ("!{ 1; 2 }", "2"),
        ("!{ }", "()"),
        ("!{ let x = 1 }", "()"),
        ("{ |a b| [$a, $b] } 1 2", "[1, 2]"),
        ("{ |a| { |b| [$a, $b] } } 1 2", "[1, 2]"),
        ("{ |[k: v] [h, ...t]| [$v, $h, $t] } [k: 1, j: 2] [3, 4]", "[1, 3, [4]]"),
        ("!{range 1} 3", "[1, 2]"),
        ("$length 'abc'", "3"),
        ("map $length ['a', 'bc']", "[1, 2]"),
        ("return 5", "5"),
        ("return", "()"),
        ("return `under [from: 1, to: 2]", "`under [from: 1, to: 2]"),
    ],
)  # fmt: skip
def test_a_line_answers(line: str, printed: str | None) -> None:
    """Each function and construct by example; None where the line is refused."""
    if printed is None:
        with pytest.raises((Failed, Malformed)):
            text_of(line)
    else:
        assert text_of(line) == printed


@pytest.mark.parametrize(
    ("lines", "printed"),
    [
        (("let x = 5", "$x"), "5"),
        (("let x = 5; let y = $[$x + 1]", "$y"), "6"),
        (("let x = 1; let f = { return $x }; let x = 2; !$f",), "1"),
        (("let x = 1", "let f = { return $x }", "let x = 2", "f"), "1"),
        (("let f = { |a b| $[$a + $b] }", "f 1 2"), "3"),
        (("let add = { |a b| $[$a + $b] }; let inc = add 1", "map $inc [1, 2]"), "[2, 3]"),
        (("let d = { echo ran; 7 }", "d"), "7"),
        (("let d = { 7 }", "$d"), "{ 7 }"),
        (("let d = { 7 }", "!$d"), "7"),
        (("let x = 5", "x"), "5"),
        (("let x = 1; !{ let x = 2 }; $x",), "1"),
        (("let [a, [k: b], ...c] = [1, [k: 2, j: 0], 3, 4]", "[$a, $b, $c]"), "[1, 2, [3, 4]]"),
        (("let k = 'a'", "[[$k: 1], [:, a: 2][$k]]"), "[[:, a: 1], 2]"),
        (("let i = 1", "[5, 6][$i]"), "6"),
        (("let who = 'w'; let n = [a: [3]]", '"$who: $n[a][0], $(who)[0]!"'), "'w: 3, w[0]!'"),
        (("let length = 3", "$length"), "3"),
        (("for [1, 2] { |x| echo \"n $x\" }",), "n 1\nn 2\n"),
        (("each $echo ['a', 2]",), "a\n2\n"),
        (("echo a 'b c' 1 [x: `t]",), "a b c 1 [x: `t]\n"),
        (("let x = 1\n\n# done\n",), ""),
        (("",), ""),
    ],
)  # fmt: skip
def test_names_last_and_blocks_see_what_was_bound_when_they_were_made(lines: tuple[str, ...], printed: str) -> None:
    """One session of names; scope is lexical."""
    assert text_of(*lines) == printed


def test_a_block_may_call_itself_by_the_name_it_is_given() -> None:
    """Without `if`, a tag ends the recursion."""
    count = "let count = { |t| case $t [`more: { |n| $[1 + !{count $n}] }, `done: { |_| 0 }] }"

    assert text_of(count, "count !{`more `more `done}") == "2"


def test_a_case_opens_the_tag_it_is_given_and_names_one_it_has_no_arm_for() -> None:
    """Types would say it before the run; here it is said by the tag's name, at the place."""
    lines = ("let f = { |p| case $p [`text: { |t| $t[content] }, `none: { |u| $u }, `same: $str] }",)

    assert text_of(*lines, "f `text [content: 'x']") == "'x'"
    assert text_of(*lines, "f `none") == "()"
    assert text_of(*lines, "f `same 5") == "'5'"
    with pytest.raises(Failed, match="no arm for `other: its arms are `text, `none, `same"):
        text_of(*lines, "f `other 1")


def test_after_a_failure_earlier_bindings_stay_and_nothing_later_ran() -> None:
    """As in the language: resume from the statement that failed."""
    door = Door(MemoryLog.of_length(3))
    with pytest.raises(Failed) as caught:
        door.run("let a = 1\nlet b = length 5\nlet c = 3")

    assert (caught.value.line, door.names) == (2, ["a"])
    assert door.run("$a").text == "1"
    with pytest.raises(Malformed, match=r"`\$c` is not bound"):
        door.run("$c")


def test_a_line_that_does_not_check_runs_nothing() -> None:
    """Neither what stands before the mistake, nor the verb in it."""
    log = MemoryLog.of_length(60)
    door = Door(log)
    for mistake in ("]", "lenght $x", "`evict [form: 1]", "$nowhere", "{ |x| $y }", "`read [turns: $a, foo: 1]"):
        with pytest.raises(Malformed):
            door.run(f"let a = 1; `evict [from: 1, to: 2, note: 'x']; {mistake}")

    assert (log.writes, door.names) == (0, [])


def test_a_failure_inside_a_block_bound_earlier_shows_that_earlier_line() -> None:
    """The place of a failure is in the text the failing code was written in."""
    door = Door(MemoryLog.of_length(3))
    door.run("let bad = { |x| length $x }")
    with pytest.raises(Failed) as caught:
        door.run("map $bad [[1], 5]")

    assert "let bad = { |x| length $x }" in str(caught.value)
    assert caught.value.column == len("let bad = { |x| ") + 1


def test_a_run_that_ends_in_let_shows_nothing_and_echo_is_output() -> None:
    """A value and what was said are two channels."""
    door = Door(MemoryLog.of_length(3))

    assert (door.run("let x = 5").shown, door.run("let x = 5").text) == (False, "")
    said = door.run("echo hi; let y = 1")
    assert (said.output, said.shown) == ("hi\n", False)
    assert (door.run("echo hi").shown, door.run("()").text, door.run("echo hi; 5").text) == (False, "()", "5")


@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_every_function_is_explained(name: str) -> None:
    """`explain NAME` prints its teaching text, which starts with its name."""
    answer = Door(MemoryLog.of_length(3)).run(f"explain {name}")

    assert name in answer.output.split("\n")[0]
    assert not answer.shown


@pytest.mark.parametrize("name", sorted(set(BUILTINS) - {"exarch-context", "exarch-transcript"}))
def test_the_example_a_function_is_explained_by_runs(name: str) -> None:
    """A teaching text cannot drift from the language: what follows its last colon is a line, when it starts with the name."""
    example = BUILTINS[name].teaching.rsplit(": ", 1)[-1].rstrip(".")
    door = Door(MemoryLog.of_length(60))
    door.run(
        "let found = `grep [pattern: 'FAILED']; let h = $found[hits][0]; let rows = !{`survey}[rows]; let a = 1; let b = 2"
    )
    if example.startswith(f"{name} "):
        door.run(example.split(" is [")[0])
