"""The slips a model is likely to make: each is refused, and the refusal offers the line that was meant."""

from __future__ import annotations

from typing import Any

import pytest
from door_host import MemoryLog
from regenerate_door_trees import SLIPS, load

from exarch_sql.door import Door, DoorRefused
from exarch_sql.door.slip_calls import PLACEHOLDER
from exarch_sql.door.values import equal

EVICT = "exarch-context `evict [from: 41, to: 60, note: 'done']"
LONG = "word " * 60


def refusal(line: str, log: MemoryLog | None = None) -> DoorRefused:
    """What the door says to a slip; it must have written nothing."""
    log = log or MemoryLog.of_length(60)
    before = log.writes
    with pytest.raises(DoorRefused) as caught:
        Door(log).run(line)
    assert log.writes == before
    return caught.value


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        # how a record is spelled
        ("exarch-context `evict [from:41, to:60, note:'done']", EVICT),
        ("exarch-context `evict [from=41, to=60, note='done']", EVICT),
        ('exarch-context `evict ["from":41, "to":60, "note":"done"]', EVICT),
        ("exarch-context `evict [from: 41 to: 60 note: 'done']", EVICT),
        ("exarch-context `evict [from: 41, to: 60, note: 'done'", EVICT),
        ("exarch-context `evict from: 41, to: 60, note: 'done'", EVICT),
        ("exarch-context evict --from 41 --to 60 --note 'done'", EVICT),
        ("evict(from=41, to=60, note='done')", EVICT),
        ('exarch-context `evict {"from": 41, "to": 60, "note": "done"}', EVICT),
        ("exarch-context `evict {'from': 41, 'to': 60, 'note': 'done'}", EVICT),
        ('{"evict": {"from": 41, "to": 60, "note": "done"}}', EVICT),
        # ids
        ("exarch-context `evict [from: '41', to: \"60\", note: 'done']", EVICT),
        ("exarch-context `evict [from: turn 41, to: turn 60, note: 'done']", EVICT),
        ("exarch-context `evict [from: 41-60, note: 'done']", EVICT),
        ("exarch-context `evict [41–60, note: 'done']", EVICT),
        ("exarch-context `evict [from: 60, to: 41, note: 'done']", EVICT),
        ("exarch-context `evict [from: 41, to: 61, note: 'done']", EVICT),
        ("exarch-context `evict [start: 41, end: 60, note: 'done']", EVICT),
        ("exarch-context `evict [form: 41, to: 60, note: 'done']", EVICT),
        ("exarch-context `evict [turns: 41-60, note: 'done']", EVICT),
        ("exarch-context `evict [turns: !{range 41 61}, note: 'done']", EVICT),
        ("exarch-context `evict [turns: [41, 42], note: 'done']", "`evict [from: 41, to: 42, note: 'done']"),
        ("exarch-context `evict [turns: [41], note: `some 'done']", "`evict [from: 41, to: 41, note: 'done']"),
        (
            "`evict [turns: [1, 2, 5], note: 'done']",
            "`evict [from: 1, to: 2, note: 'done']; `evict [from: 5, to: 5, note: 'done']",
        ),
        ("exarch-transcript `read [turns: [41-43]]", "`read [turns: [41, 42, 43]]"),
        ("exarch-transcript `read [turns: 41..43]", "`read [turns: [41, 42, 43]]"),
        ("exarch-transcript `read [turns: [range 41 44]]", "`read [turns: [41, 42, 43]]"),
        ("exarch-transcript `read [turns: range(41, 44)]", "`read [turns: [41, 42, 43]]"),
        ('exarch-transcript `read [turns: ["40"]]', "`read [turns: [40]]"),
        ("exarch-transcript `read [turns: 40, 41]", "`read [turns: [40, 41]]"),
        ("exarch-transcript `read 40", "`read [turns: [40]]"),
        ("exarch-transcript `read [40, 41]", "`read [turns: [40, 41]]"),
        ("exarch-transcript `read [turn: 40]", "`read [turns: [40]]"),
        ("exarch-transcript `grep 'FAILED'", "`grep [pattern: 'FAILED']"),
        ("exarch-transcript `grep [pattern: 'FAILED', turns: all]", "`grep [pattern: 'FAILED', turns: `all]"),
        # tags and families
        ("exarch-context evict [from: 41, to: 60, note: 'done']", EVICT),
        ("exarch-context 'survey'", "`survey"),
        ("survey", "`survey"),
        ("`survey`", "`survey"),
        ("\\`survey", "`survey"),
        ("`survay", "`survey"),
        ("exarch-context `servey", "`survey"),
        ("transcript `index", "`index"),
        ("exarch_context `survey", "`survey"),
        ("exarch-context `index", "`index"),
        # quotes
        ("exarch-context `evict [from: 41, to: 60, note: ‘done’]", EVICT),
        ("exarch-context `evict [from: 41, to: 60, note: “done”]", EVICT),
        ("exarch-context `evict [from: 41, to: 60, note: ‘it’s done’]", "`evict [from: 41, to: 60, note: 'it’s done']"),
        ("exarch-context `evict [from: 41, to: 60, note: 'it's done']", "`evict [from: 41, to: 60, note: #'it's done'#]"),
        ('`evict [from: 41, to: 60, note: "say "hi" now"]', "`evict [from: 41, to: 60, note: 'say \"hi\" now']"),
        ('`evict [from: 41, to: 60, note: "he said \'it"s\'"]', "`evict [from: 41, to: 60, note: #'he said 'it\"s''#]"),
        ('`evict [from: 41, to: 60, note: "set $HOME"]', "`evict [from: 41, to: 60, note: 'set $HOME']"),
        ("`evict [from: 41, to: 60, note: lexer was fine]", "`evict [from: 41, to: 60, note: 'lexer was fine']"),
        ('`grep [pattern: "\\d+ FAILED"]', "`grep [pattern: '\\d+ FAILED']"),
        # notes
        ("`evict [from: 41, to: 60, note: 'two\nlines']", "`evict [from: 41, to: 60, note: 'two lines']"),
        ('`evict [from: 41, to: 60, note: "a\\n\\n- b"]', "`evict [from: 41, to: 60, note: 'a - b']"),
        (f"`evict [from: 41, to: 60, note: '{LONG}']", f"`evict [from: 41, to: 60, note: '{LONG[:239]}']"),
        ("`evict [from: 41, to: 60]", f"`evict [from: 41, to: 60, note: {PLACEHOLDER}]"),
        ("`evict [from: 41, to: 60, note: '']", f"`evict [from: 41, to: 60, note: {PLACEHOLDER}]"),
        ("`evict 41-60", f"`evict [from: 41, to: 60, note: {PLACEHOLDER}]"),
        # patterns
        ("`grep [pattern: '(?<=FAI)LED']", "`grep [pattern: 'FAILED']"),
        ("`grep [pattern: 'FAI(?=LED)']", "`grep [pattern: 'FAILED']"),
        (
            "`grep [pattern: 'case(?! 1)']",
            "filter { |h| not !{re-match 'case 1' $h[text]} } !{`grep [pattern: 'case']}[hits]",
        ),
        # what stands around a line
        (f"```ral\n{EVICT}\n```", EVICT),
        (f"Here it is:\n```\n{EVICT}\n```\nThat's it.", EVICT),
        (f"`{EVICT}`", EVICT),
        (f"$ {EVICT}", EVICT),
        (f"{EVICT}.", EVICT),
        ("exarch-context `survey.", "`survey"),
        (f"I'll let it go now:\n\n{EVICT}\n\nIt's done.", EVICT),
        (f"Sure! {EVICT}", EVICT),
        (f"{EVICT} # and\nThen I will go on", EVICT),
        # several at once
        ("```\nexarch-context evict [from:41, to:60, note:“done”]\n```", EVICT),
        ("let s = exarch-context survey; length $s[rows]", "let s = `survey; length $s[rows]"),
    ],
)  # fmt: skip
def test_a_slip_is_refused_with_the_line_that_was_meant(slip: str, meant: str) -> None:
    """The offered line runs, and does and answers what the intended one does."""
    offered = refusal(slip).correction
    assert offered is not None
    ours, theirs = MemoryLog.of_length(60), MemoryLog.of_length(60)

    assert equal(Door(ours).run(offered).value, Door(theirs).run(meant).value), offered
    assert ours.residues == theirs.residues


@pytest.mark.parametrize("case", load(SLIPS), ids=lambda case: case["source"][:60])
def test_a_slip_has_its_refusal_and_correction(case: dict[str, Any]) -> None:
    """The corpus keeps the texts; the script beside it rewrites them."""
    error = refusal(case["source"])

    assert (error.reason, error.advice, error.correction) == (case["reason"], case["advice"], case["correction"])
    assert str(error).endswith("\n".join("    " + line for line in case["correction"].split("\n")))
    log = MemoryLog.of_length(60)
    if "`under" in case["correction"]:
        Door(log).run(EVICT)  # it asks for what departed there
    Door(log).run(case["correction"])


def test_an_eviction_that_enters_a_residue_is_offered_whole() -> None:
    """The alignment rule's text, and the line with the ends moved to those of the items they stand in."""
    log = MemoryLog.of_length(60)
    Door(log).run("`evict [from: 41, to: 50, note: 'a']")
    error = refusal("`evict [from: 45, to: 55, note: 'b']", log)

    assert error.reason == "turns 41–50 stand together under one note: name from: 41, to: 50 whole, or leave it"
    assert error.correction == "`evict [from: 41, to: 55, note: 'b']"
    Door(log).run(error.correction)
    assert len(log.residues) == 2


def test_an_eviction_up_to_the_turn_being_written_is_offered_up_to_the_one_before() -> None:
    """Ends are inclusive, and the work in hand stays."""
    log = MemoryLog.of_length(60, unclosed=60)
    error = refusal("`evict [from: 41, to: 60, note: 'b']", log)

    assert error.correction == "`evict [from: 41, to: 59, note: 'b']"
    Door(log).run(error.correction)


def test_no_line_is_offered_again_when_part_of_it_has_acted() -> None:
    """Running it again would evict what has left."""
    log = MemoryLog.of_length(60)
    with pytest.raises(DoorRefused) as caught:
        Door(log).run("`evict [from: 10, to: 20, note: 'a']; `evict [from: 15, to: 61, note: 'b']")

    assert len(log.residues) == 1
    assert caught.value.correction is None


@pytest.mark.parametrize(
    "line",
    [
        "the quick brown fox",
        "`evict [from: $nope, to: 60, note: 'x']",
        "`evict [from: 41, to: 60, note: 'a' + 'b']",
        "[1, 2)",
        "x" * 30_000 + " ]",
    ],
)
def test_where_nothing_can_be_told_nothing_is_offered(line: str) -> None:
    """A wrong guess is worse than none."""
    assert refusal(line).correction is None


@pytest.mark.parametrize(
    "line",
    [
        EVICT,
        '`evict [from: 41, to: 60, note: "it\'s done"]',
        "`evict [from: 41, to: 60, note: 'see from:41, to:60 “so” ```x``` {\"from\": 1}.']",
        "`grep [pattern: 'from:41 to=60 \"evict\" (?:a|b).']",
        "let from = 5; [from: $from]",
        "[from:41]",
        "echo 'survey `survey` evict 41-60'",
    ],
)
def test_a_lawful_line_is_never_taken_for_a_slip(line: str) -> None:
    """What looks like one inside a string is text."""
    Door(MemoryLog.of_length(60)).run(line)


def test_text_inside_a_string_survives_a_repair_outside_it() -> None:
    """Only code is mended."""
    note = 'see [from:41, to:60]; evict 41-60. `survey` {"a": 1}'
    offered = refusal(f"exarch-context evict [from:41, to:60, note:'{note}']").correction
    assert offered is not None
    log = MemoryLog.of_length(60)
    Door(log).run(offered)

    assert log.residues[0][1] == note
