"""What stands in the context: residues, pressure, plans, and the context as it stood at any past record."""

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_processes import in_a_child

from exarch_sql import Archive, Log, Refused, Span, Survey, planning, residue
from exarch_sql.answers import RESIDENT, Row


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """Ten turns."""
    with Archive.open(tmp_path / "a.exarch") as archive:
        for number in range(5):
            archive.trunk.prompt(f"prompt {number} " + "x" * 100)
            archive.trunk.assistant(f"reply {number} " + "y" * 100)
        yield archive.trunk


def test_a_residue_says_what_left_why_and_how_to_read_it() -> None:
    """One line of ral reads it back; the range's end is exclusive."""
    text = residue.text(Span(41, 60), "lexer was fine", "model")

    assert text == (
        '[Turns 41–60 have left your context. Your note: "lexer was fine"\n'
        "`exarch-transcript `read [turns: !{range 41 61}]` reads them back.]"
    )
    assert residue.text(Span(2, 2), None, "harness") == (
        "[Turn 2 has left your context in a forced eviction, without a note.\n"
        "`exarch-transcript `read [turns: !{range 2 3}]` reads it back.]"
    )


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=200))
def test_a_note_cannot_end_its_own_quotation(note: str) -> None:
    """L9: whatever it imitates, it stays inside its quotes, on its line, unable to move a terminal."""
    said = residue.quoted(note)

    inner = said[1:-1]
    assert said[0] == said[-1] == '"'
    assert '"' not in inner.replace("\\\\", "").replace('\\"', "")
    assert len(said.splitlines()) == 1
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char in "\u202e\u2066\u200b" for char in said)


@given(st.integers(1, 2**40), st.integers(0, 2**40), st.sampled_from(["model", "harness"]))
def test_the_fixed_text_of_a_residue_stays_below_400_bytes(from_: int, length: int, author: str) -> None:
    """A residue is a constant and its note, whatever it covers."""
    note = "n" if author == "model" else None

    assert len(residue.text(Span(from_, from_ + length), note, author).encode()) - 3 <= residue.MAX_TEXT_BYTES


def test_a_residue_is_the_same_whatever_it_covers(log: Log, tmp_path: Path) -> None:
    """A function of span, note and author: not of the turns that left, nor of residues among them, nor of the moment."""
    log.evict(3, 4, "under it")
    log.evict(2, 7, "what mattered", at_ms=5)
    with Archive.open(tmp_path / "b.exarch") as other:
        for _ in range(4):
            other.trunk.prompt("other words")
            other.trunk.assistant("")
        other.trunk.evict(2, 7, "what mattered")

        assert other.trunk.render()[1] == log.render()[1] == residue.message(Span(2, 7), "what mattered", "model")


def test_no_model_is_called_for_a_context() -> None:
    """Nothing leaves the process: a whole life of a log, with every network call, process and foreign file refused.

    And what stands in the context is what was said, or a residue's fixed words: nothing is summarised.
    """

    def work() -> str:
        called: list[str] = []

        def watch(event: str, _: object) -> None:
            if event.partition(".")[0] in ("socket", "subprocess", "urllib", "http", "ftplib", "smtplib", "webbrowser"):
                called.append(event)
            if event in ("os.exec", "os.fork", "os.posix_spawn", "os.system"):
                called.append(event)

        sys.addaudithook(watch)
        with tempfile.TemporaryDirectory() as folder, Archive.open(f"{folder}/a.exarch") as archive:
            log = archive.trunk
            for number in range(8):
                log.prompt(f"prompt {number}")
                log.assistant(f"reply {number}")
            log.evict(2, 3, "a note")
            log.weigh(used=190_000, window=200_000)
            log.force(keep=100)
            log.rewind(16)
            archive.trunk.fork("child").survey()
            log.grep("reply")
            archive.verify()
            said = [message["parts"][0]["content"] for message in log.render()]
        return json.dumps([called, said])

    called, said = json.loads(in_a_child(work))
    assert called == []
    forced = [text for text in said if text.startswith("[Turns 1–")]
    assert len(forced) == 1
    assert all(re.fullmatch(r"(prompt|reply) \d", text) for text in said if text not in forced)


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ("", "must not be empty"),
        ("x" * 241, "text is 241 bytes; the residue keeps one short line: 240 at most"),
        ("é" * 121, "text is 242 bytes"),
        ("two\nlines", "single line"),
        ("two\rlines", "single line"),
        ("two\u2028lines", "single line"),
        ("nul\0", "holds a NUL"),
        ("half \ud83d", "half a surrogate"),
        (None, "expected a Str"),
    ],
)
def test_a_note_that_is_not_one_short_line_is_refused(log: Log, note: str, said: str) -> None:
    """L9, in the digest's words."""
    with pytest.raises(Refused, match=said):
        log.evict(1, 2, note)

    assert log.evict(1, 2, "é" * 120).rows[0].label == "é" * 120


@pytest.mark.parametrize(
    ("window", "evict", "warn"),
    [(50_000, 33_616, 17_232), (100_000, 83_616, 67_232), (200_000, 170_000, 140_000), (1_000_000, 850_000, 700_000)],
)
def test_pressure_rises_where_the_digest_says(window: int, evict: int, warn: int) -> None:
    """Reserve is 15 per cent of the window, 16,384 tokens at least."""
    empty = Survey((), 0)

    levels = [planning.weigh(empty, used, window).level for used in (warn, warn + 1, evict, evict + 1)]

    assert levels == ["under", "warn", "warn", "over"]


def test_without_a_count_the_bytes_decide() -> None:
    """512,000 bytes evict, three quarters of that warn."""
    levels = [planning.weigh(Survey((), size), None, None).level for size in (383_999, 384_000, 511_999, 512_000)]

    assert levels == ["under", "warn", "warn", "over"]


def test_the_reminder_names_the_planned_span_and_the_line_that_makes_the_cut(log: Log) -> None:
    """So that a model that wants to keep what was asked can evict first, under its own note."""
    pressure = log.weigh(used=173_000, window=200_000)

    assert (pressure.level, pressure.span, pressure.due) == ("over", log.plan(), True)
    assert pressure.reminder.startswith(
        "[EXARCH_REMINDER // Do not mention to user.] Context pressure: 173000 of 200000 tokens."
    )
    assert f"`exarch-context `evict [from: 1, to: {pressure.span.to}, note: '...']`" in pressure.reminder
    assert pressure.reminder.endswith("[/EXARCH_REMINDER]")


def test_the_reminder_is_due_once_in_an_excursion(log: Log) -> None:
    """Told once; armed again by a reading below the line."""
    readings = [log.weigh(used=used, window=200_000) for used in (1, 150_000, 160_000, 173_000, 1, 150_000)]

    assert [reading.due for reading in readings] == [False, True, False, False, False, True]


def test_a_count_from_before_the_newest_edit_is_no_verdict(log: Log) -> None:
    """It neither warns, evicts nor arms again, until the next reply."""
    log.weigh(used=150_000, window=200_000)
    log.evict(1, 4, "done")

    stale = log.weigh(used=173_000, window=200_000)
    log.prompt("go on")
    log.assistant("going on")
    fresh = log.weigh(used=150_000, window=200_000)

    assert (stale.level, stale.due, fresh.level, fresh.due) == ("under", False, "warn", False)


def rows(*sizes: int, kinds: str = "") -> Survey:
    """A survey of items of these sizes; an R in ``kinds`` makes a residue."""
    kinds = kinds.ljust(len(sizes), "t")
    items = tuple(
        Row(n, n, "user", "residue" if kind == "R" else "own", "", size, RESIDENT)
        for n, (size, kind) in enumerate(zip(sizes, kinds, strict=True), 1)
    )
    return Survey(items, sum(sizes))


@pytest.mark.parametrize(
    ("survey", "keep", "span"),
    [
        (rows(), None, None),
        (rows(100), 0, None),
        (rows(10, 10, 10, 10), None, Span(1, 2)),
        (rows(10, 10, 10, 10), 40, None),
        (rows(10, 10, 10, 10), 30, Span(1, 1)),
        (rows(10, 10, 10, 100), 50, Span(1, 3)),
        (rows(10, 10, kinds="R"), 0, None),
        (rows(10, 10, 10, kinds="R"), 0, Span(1, 2)),
        (rows(10, 10, 10, kinds="RR"), 10, Span(1, 2)),
    ],
)
def test_a_plan_is_one_prefix_that_spares_the_newest_item(survey: Survey, keep: int | None, span: Span | None) -> None:
    """The newest is charged first and never taken; exactly one residue is no plan (L9)."""
    assert planning.plan(survey, keep) == span


def test_a_forced_eviction_may_take_the_live_prompt_and_leaves_one_residue(log: Log) -> None:
    """The harness knows no prompts, only items."""
    log.prompt("the task in hand")
    log.assistant({"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "t", "arguments": {}}]})
    log.tool_results([{"id": "c", "content": "r"}])

    survey = log.force(keep=0)

    assert [(row.from_, row.to, row.kind) for row in survey.rows] == [(1, 11, "residue"), (12, 12, "own")]
    with pytest.raises(Refused, match="nothing to evict"):
        log.force(keep=0)


def test_the_context_as_it_stood_at_every_record_is_what_was_seen_then(log: Log) -> None:
    """`at=seq` needs no snapshots: survey, index and render agree with what was answered at the time."""

    def seen() -> tuple[object, ...]:
        return log.survey(), log.index(), log.render()

    history = {}

    def keep() -> None:
        history[log._store.tip()[0]] = seen()

    keep()
    log.evict(3, 4, "a")
    keep()
    log.evict(1, 6, "b")
    keep()
    log.rewind(9)
    keep()
    log.prompt("again")
    keep()
    log.assistant("yes")
    log.evict(7, 12, "over a withdrawn run")
    keep()
    log.clear()
    keep()

    for at, (survey, index, rendered) in history.items():
        assert log.survey(at=at) == survey
        assert log.index(at=at) == index
        assert log.render(at=at) == rendered


@pytest.mark.parametrize("at", [0, -1, 10_000, "3", True])
def test_a_moment_that_never_was_is_refused(log: Log, at: int) -> None:
    """Named with the moments there are."""
    with pytest.raises(Refused, match="the newest record is 11"):
        log.survey(at=at)
