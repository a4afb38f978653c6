"""The verbs: what is asked of the log, what it answers as literals and as JSON, and what is recorded of it."""

from __future__ import annotations

import contextlib
import inspect
import json
from typing import Any

import pytest
from door_host import EVERY_PART, MemoryLog, said

from exarch_sql.answers import Span
from exarch_sql.door import Answer, Door, DoorRefused, Failed, Host, Limits, Overrun
from exarch_sql.door.names import distance, nearest
from exarch_sql.errors import Busy, Refused


def run(line: str, log: MemoryLog | None = None) -> Answer:
    """One line on a log of sixty turns."""
    return Door(log or MemoryLog.of_length(60)).run(line)


def test_survey_answers_the_rows_of_the_frontier_and_their_weight() -> None:
    """The shape of the design's section 7; a record prints its keys sorted."""
    log = MemoryLog.of_length(2)

    assert run("exarch-context `survey", log).text == (
        "[rows: [[bytes: 74, from: 1, kind: 'own', label: 'turn 1: widget 1', location: `resident, role: 'user', to: 1], "
        "[bytes: 74, from: 2, kind: 'own', label: 'turn 2: widget 2', location: `resident, role: 'assistant', to: 2]], "
        "total-bytes: 148]"
    )
    assert run("`survey", log).json == log.survey().to_dict()


def test_evict_answers_the_survey_after_acting() -> None:
    """One residue stands where the run was; both ends left."""
    log = MemoryLog.of_length(60)
    answer = run("exarch-context `evict [from: 41, to: 60, note: 'the lexer was fine']", log)

    assert log.residues == [(Span(41, 60), "the lexer was fine")]
    assert answer.json == log.survey().to_dict()
    assert answer.json["rows"][-1]["label"] == "the lexer was fine"


def test_index_and_under_answer_rows_and_locations_are_tags() -> None:
    """A departed item says under which span; in JSON, as the contract spells it."""
    log = MemoryLog.of_length(4)
    run("`evict [from: 2, to: 3, note: 'n']", log)

    assert run("map { |r| [$r[from], $r[to], $r[kind], $r[location]] } !{`index}", log).text == (
        "[[1, 1, 'own', `resident], [2, 3, 'residue', `resident], [2, 2, 'own', `under [from: 2, to: 3]], "
        "[3, 3, 'own', `under [from: 2, to: 3]], [4, 4, 'own', `resident]]"
    )
    assert run("exarch-transcript `under [from: 2, to: 3]", log).json == [row.to_dict() for row in log.under(2, 3)]
    assert run("`index", log).json[2]["location"] == {"under": {"from": 2, "to": 3}}


def test_read_answers_whole_turns_whose_parts_are_tags() -> None:
    """The six parts of the page; a signature alone has no part, a part nobody knows is custom."""
    parts = run("exarch-transcript `read [turns: [45]]").value
    assert isinstance(parts, tuple)

    assert run("let t = `read [turns: [45]]; $t[0][messages][0][parts]").text == (
        "[`text [content: 'two red widgets'], `reasoning [content: 'count them'], "
        "`program [keys: ['cmd', 'description'], source: 'ls widgets', tool: 'ral'], "
        "`program [keys: ['path', 'text'], source: 'a.txt\nred', tool: 'write'], "
        "`binary [bytes: 4, content-type: 'image/png', name: ''], "
        "`binary [bytes: 0, content-type: 'image/png', name: 'https://h/a.png'], `custom [model: '', provider: '']]"
    )
    assert (
        run("let t = `read [turns: [45]]; $t[0][messages][1]").text
        == "[parts: [`result [content: 'two red']], role: `tool]"
    )


def test_read_gives_the_recorded_messages_unchanged_in_json() -> None:
    """Ids, signatures and unknown parts are there, wherever in the answer the message stands."""
    log = MemoryLog.of_length(60)
    [turn] = run("`read [turns: [45]]", log).json

    assert turn["messages"] == log.turns[45]
    assert turn["messages"][0] == EVERY_PART
    assert run("let t = `read [turns: [45]]; [first: $t[0][messages][0]]", log).json == {"first": EVERY_PART}
    assert run("let t = `read [turns: [45]]; $t[0][messages][0][parts][1]", log).json == EVERY_PART["parts"][1]
    assert run("let t = `read [turns: [45]]; map { |m| $m[role] } $t[0][messages]", log).json == ["assistant", "tool"]


def test_read_takes_a_run_and_answers_each_turn_once_in_order() -> None:
    """The taught form of a run leaves its end out."""
    assert run("map { |t| $t[turn] } !{`read [turns: !{range 41 44}]}").text == "[41, 42, 43]"
    assert run("map { |t| $t[turn] } !{`read [turns: [3, 1, 3]]}").text == "[1, 3]"


@pytest.mark.parametrize("scope", ["", ", turns: `all", ", turns: !{range 1 61}"])
def test_grep_searches_everything_unless_turns_are_named(scope: str) -> None:
    """Absent, `all, and every turn are one search."""
    found = run(f"exarch-transcript `grep [pattern: 'FAILED'{scope}]").json

    assert (found["total"], len(found["hits"])) == (59, 59)
    assert found["hits"][0] == {"from": 1, "to": 1, "kind": "own", "role": "user", "line": 2, "text": "FAILED case 1"}


@pytest.mark.parametrize("scope", ["[2, 4]", "`only [2, 4]"])
def test_grep_searches_exactly_the_turns_named(scope: str) -> None:
    """A list, or the tag of the older form."""
    assert run(f"map {{ |h| $h[from] }} !{{`grep [pattern: 'FAILED', turns: {scope}]}}[hits]").text == "[2, 4]"


def test_a_family_may_be_left_out_and_a_tag_elsewhere_is_a_value() -> None:
    """Only at the head of a statement does a tag call a verb."""
    assert run("`survey").json == run("exarch-context `survey").json
    assert run("return `survey").text == "`survey"
    assert run("[`survey]").text == "[`survey]"
    assert run("let verb = return `index; length !{exarch-transcript $verb}").text == "60"


def test_a_payload_may_be_computed_and_is_judged_when_it_is_known() -> None:
    """The same decoding, the same words, at the statement's place."""
    log = MemoryLog.of_length(60)
    run('let [a, b] = [2, 3]; `evict [from: $a, to: $b, note: "turns $a to $b"]', log)
    assert log.residues == [(Span(2, 3), "turns 2 to 3")]
    with pytest.raises(
        Failed, match="`exarch-transcript `read`: `turns: element 1: expected a non-negative Int, got a Str"
    ):
        run("let ids = [1, 'x']; `read [turns: $ids]")
    with pytest.raises(Failed, match="from: 5 is past to: 2"):
        run("let a = 5; `evict [from: $a, to: 2, note: 'x']")


@pytest.mark.parametrize(
    "note", ["", "a" * 241, "é" * 121, "a\nb", "a\rb", "a\u2028b", "a\x85b", "a\x0bb", "a\x0cb", "a\ud800", "a\0"]
)
def test_an_unlawful_note_is_refused_before_the_log_is_asked(note: str) -> None:
    """L9: 1 to 240 bytes on one line, by any separator's count."""
    log = MemoryLog.of_length(3)
    door = Door(log)
    spelled = "".join(f"\\u{{{ord(char):x}}}" for char in note)
    with pytest.raises(DoorRefused, match="`exarch-context `evict`: `note: "):
        door.run(f'`evict [from: 1, to: 2, note: "{spelled}"]')
    with pytest.raises(DoorRefused, match="`note: "):
        door.run(f'let n = "{spelled}"; `evict [from: 1, to: 2, note: $n]')

    assert log.writes == 0


def test_a_note_of_240_bytes_is_taken_as_it_is() -> None:
    """The bound is in bytes, and inclusive."""
    log = MemoryLog.of_length(3)
    run(f"`evict [from: 1, to: 2, note: '{'é' * 120}']", log)

    assert log.residues[0][1] == "é" * 120


def test_a_refusal_of_the_log_is_passed_on_verbatim_and_shows_the_statement() -> None:
    """No prefix; its own words first, then the line."""
    with pytest.raises(Failed) as caught:
        run("let x = 1\nexarch-transcript `read [turns: [99]]")

    assert str(caught.value).split("\n") == [
        "turn 99 is not recorded: the latest is 60",
        "line 2, column 1:",
        "    exarch-transcript `read [turns: [99]]",
        "    ^",
    ]


def test_busy_and_damage_are_not_called_refusals_of_the_line() -> None:
    """They have their own exit codes, and trying the line again may be right."""

    class BusyLog(MemoryLog):
        def survey(self) -> Any:
            raise Busy("another writer holds the file")

    with pytest.raises(Busy):
        run("`survey", BusyLog([]))


def test_a_door_asks_nothing_of_a_log_but_what_its_host_names() -> None:
    """A door can evict and witness; no other write is within its reach."""
    asked: set[str] = set()

    class Watched(MemoryLog):
        def __getattribute__(self, name: str) -> Any:
            caller = inspect.currentframe()
            outer = caller.f_back if caller else None
            if outer is not None and "/door/" in outer.f_code.co_filename.replace("\\", "/"):
                asked.add(name)
            return super().__getattribute__(name)

    log = Watched(MemoryLog.of_length(9).turns.values())
    door = Door(log, record=True)
    for line in (
        "`survey",
        "`index",
        "`read [turns: [1]]",
        "`grep [pattern: 'x']",
        "`evict [from: 1, to: 2, note: 'x']",
        "`under [from: 1, to: 2]",
    ):
        door.run(line)
    with pytest.raises(Refused):
        door.run("`evict [from: 2, to: 3, note: 'x']")

    named = {name for name in vars(Host) if not name.startswith("_")}
    assert asked <= named
    assert named - asked == {"reach"} - asked


# --- records of what was answered -------------------------------------------------------------------------------------


def recorded(*lines: str, **limits: int) -> list[dict[str, Any]]:
    """The bodies of the door records that lines leave, refused or not."""
    log = MemoryLog.of_length(60)
    door = Door(log, record=True, limits=Limits(**limits))
    for line in lines:
        with contextlib.suppress(DoorRefused):
            door.run(line)
    assert {kind for kind, _ in log.witnessed} <= {"door"}
    return [body for _, body in log.witnessed]


def test_an_answered_line_is_recorded_with_its_size_and_the_turns_it_brought_back() -> None:
    """An auditor asks what was read back after it had been let go."""
    read, searched, surveyed = recorded(
        "`read [turns: [41, 40]]", "`grep [pattern: 'FAILED case 5$']", "let s = `survey"
    )

    assert read == {
        "line": "`read [turns: [41, 40]]",
        "bytes": len(run("`read [turns: [41, 40]]").text.encode()),
        "refused": False,
        "verb": "read",
        "turns": [40, 41],
    }
    assert (searched["verb"], searched["turns"]) == ("grep", [5])
    assert surveyed == {"line": "let s = `survey", "bytes": 0, "refused": False, "verb": "survey"}


def test_a_refused_line_is_recorded_as_refused_with_what_it_had_done() -> None:
    """A run that failed in its second statement has answered its first."""
    unread, half = recorded("`read [turns: 5]", "let t = `read [turns: [7]]; length 5")

    assert (unread["refused"], "verb" in unread) == (True, False)
    assert (half["refused"], half["verb"], half["turns"]) == (True, "read", [7])
    assert half["bytes"] > 0


def test_what_a_refused_line_had_said_counts_too() -> None:
    """It was printed."""
    quiet, loud = recorded("length 5", "echo 'twelve bytes'; length 5")

    assert loud["bytes"] >= quiet["bytes"] + len("twelve bytes\n")


def test_the_size_of_output_counts_and_a_very_long_line_is_clipped_in_the_record() -> None:
    """A record is not a way to fill the file."""
    said_, long = recorded("echo é", "echo " + "x" * 200_000)

    assert said_["bytes"] == 3
    assert len(long["line"]) == 100_000
    json.dumps(long)


def test_an_answer_too_long_to_print_is_refused_when_it_is_printed_not_undone() -> None:
    """The run was made, and is recorded as made; only its literal does not fit."""
    log = MemoryLog.of_length(60)
    door = Door(log, record=True, limits=Limits(output_bytes=1000))
    answer = door.run("`evict [from: 1, to: 2, note: 'x']")

    assert log.residues
    assert log.witnessed[0][1]["refused"] is False
    with pytest.raises(Overrun, match="more than 1000 bytes to print: bind it with let"):
        _ = answer.text
    assert door.run("length !{`index}").text == "61"


def test_without_being_asked_a_door_records_nothing() -> None:
    """Reading leaves the file as it was."""
    log = MemoryLog.of_length(3)
    run("`read [turns: [1]]", log)

    assert log.writes == 0


# --- suggestions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "edits"),
    [("", "", 0), ("form", "from", 1), ("turn", "turns", 1), ("ab", "ba", 1), ("abc", "xyz", 3), ("ca", "abc", 3)],
)
def test_the_distance_counts_a_swap_of_neighbours_as_one_edit(left: str, right: str, edits: int) -> None:
    """Optimal string alignment: no part is edited twice."""
    assert distance(left, right) == distance(right, left) == edits


def test_the_nearest_name_wins_then_the_first_in_the_alphabet() -> None:
    """So that one mistake has one suggestion."""
    assert nearest("turnss", ["turns", "turned"]) == "turns"
    assert nearest("nat", ["note", "not"], 2) == "not"
    assert nearest("bote", ["vote", "note"]) == "note"
    assert nearest("x", ["y"]) is None
    assert nearest("x" * 100, ["x" * 99]) is None


def test_what_a_tool_answered_in_parts_reads_as_their_text() -> None:
    """A result's content is text, whatever the provider's shape was."""
    result = {
        "type": "tool_call_response",
        "id": "c",
        "response": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    }
    log = MemoryLog([[said("user", "go")], [{"role": "tool", "parts": [result]}]])

    assert run("!{`read [turns: [2]]}[0][messages][0][parts]", log).text == "[`result [content: 'a\nb']]"
