"""The product against the plain model: the same operations, the same refusals, the same answers.

Two drivers share one set of operations, lawful and unlawful. ``TestRuleMachine`` lets hypothesis choose them and shrink
what fails; ``test_long_random_histories_agree`` plays long histories from fixed seeds, with no library in between.
After every step of the first, and every few of the second, each log of the file is compared with the model in full and
``verify`` must find nothing. At the end of each history a rebuild and a reopening must change nothing.

``EXARCH_STEPS`` (default 800: half a minute of one core) is the number of operations the rule machine aims at; the long
histories play five times as many. Both grow in number, not in length: ``EXARCH_STEPS=20000 pytest tests/test_stateful.py``
plays 120,000 operations in about a quarter of an hour.

A disagreement prints the whole history as Python calls, newest last.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import model
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from model import Lineage, Message, Record, Refusal, Row, View, call, reply, user

from exarch_sql import Archive, Log, Refused, answers, residue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Operation = Callable[["Twin", "Dice"], None]

STEPS = int(os.environ.get("EXARCH_STEPS", "800"))
STEPS_A_HISTORY = 40
STEPS_BETWEEN_CHECKS = 25
LOGS_AT_MOST = 7
STEPS_A_LONG_HISTORY = 500
SEEDS = range(max(1, STEPS * 5 // STEPS_A_LONG_HISTORY))
TRUNK = "trunk"


def residue_message(span: tuple[int, int], note: str | None) -> Message:
    """A residue as the product renders it: the one thing the model takes on trust, for its weight."""
    return residue.message(answers.Span(*span), note, "harness" if note is None else "model")


class Undone(Exception):
    """Ends a batch that shall leave no trace."""


# --- where choices come from ------------------------------------------------------------------------------------------


class Dice:
    """A source of choices; both drivers choose through it."""

    def below(self, count: int) -> int:
        """An integer from 0 up to, not including, ``count``."""
        raise NotImplementedError

    def pick(self, options: Sequence[Any]) -> Any:
        """One of the options."""
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """True in so many cases of a hundred."""
        return self.below(100) >= 100 - percent  # so that shrinking towards 0 leaves the rare thing out


class Seeded(Dice):
    """Choices that a seed repeats."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 -- repeatable, not secret

    def below(self, count: int) -> int:
        """See :class:`Dice`."""
        return self.random.randrange(count)


class Drawn(Dice):
    """Choices drawn by hypothesis, which shrinks them."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    def below(self, count: int) -> int:
        """See :class:`Dice`."""
        return int(self.data.draw(st.integers(0, count - 1)))


# --- the pair ---------------------------------------------------------------------------------------------------------


class Twin:
    """A file opened by two connections, and the model of it; every operation is tried on both.

    One connection has the floor at a time. Each keeps its ``Log`` objects, so what they remember of a log grows stale
    whenever the other one writes, and whenever a transaction is rolled back.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="exarch-twin-"))
        self.path = self.folder / "twin.exarch"
        self.open()
        self.model = Lineage(residue_message)
        self.script: list[str] = []
        self.met: set[tuple[str, str]] = set()
        self.keyed: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = []
        self.touched: set[str] = set()
        self.seen = self.snapshot()

    def open(self) -> None:
        """Open both connections; the first has the floor. Nothing here cuts the power, so no append waits for a sync."""
        self.archive, self.waiting = (Archive.open(self.path, durability="normal") for _ in range(2))
        self.handles: dict[tuple[int, str], Log] = {}

    def close(self) -> None:
        """Close both connections and remove the file."""
        self.archive.close()
        self.waiting.close()
        shutil.rmtree(self.folder)

    def reopen(self) -> None:
        """Close the file and open it again."""
        self.say("archive.close(); other.close(); archive, other = Archive.open(path), Archive.open(path)")
        self.archive.close()
        self.waiting.close()
        self.open()

    def change_hands(self) -> None:
        """Let the other connection go on."""
        self.say("archive, other = other, archive")
        self.archive, self.waiting = self.waiting, self.archive

    def log(self, name: str) -> Log:
        """The log as the connection that has the floor came to know it."""
        place = (id(self.archive), name)
        if place not in self.handles:
            self.handles[place] = self.archive.log(name)
        return self.handles[place]

    def say(self, line: str) -> None:
        """Keep a line of the history for the report of a failure."""
        self.script.append(line)

    def view(self, log: str) -> View:
        """The model's view of a log."""
        return self.model.view(log)

    def attempt(self, name: str, log: str | None, *args: Any, **options: Any) -> None:
        """Try one operation of a log, or of the archive, on both; they must agree on whether it is refused."""
        if log and options.get("key"):
            self.keyed.append((name, log, args, options))
        said = ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in options.items())])
        self.say(f"archive.log({log!r}).{name}({said})" if log else f"archive.{name}({said})")
        before = self.model.seq
        refusal = refused = answer = record = None
        named = [log] if log else []
        try:
            record = getattr(self.model, name)(*named, *[for_model(name, arg) for arg in args], **options)
        except Refusal as error:
            refusal = error
        try:
            answer = getattr(self.log(log) if log else self.archive, name)(*args, **options)
        except Refused as error:
            refused = error
        self.met.add((name, refusal.reason if refusal else "admitted"))
        assert bool(refusal) == bool(refused), f"the model's refusal: {refusal}; the product's: {refused}"
        if not refused:
            self.check_answer(answer, record)
        if self.model.seq > before:
            self.touched.add(self.model.records[-1].log)
        assert self.archive.head().seq == self.model.seq

    def check_answer(self, answer: Any, record: Record | None) -> None:
        """An append answers its turn, an edit the survey after acting, a new log itself; a quiesce of nothing None."""
        if record is None:
            assert answer is None
        elif record.kind == "opened":
            assert (answer.name, answer.reach) == (record.log, self.view(record.log).reach)
        elif record.kind in ("evicted", "rewound", "cleared"):
            assert rows(answer.rows) == self.view(record.log).survey()
        else:
            assert (answer.id, answer.seq) == (record.turn, record.seq)
            assert [answer.role] == [turn.role for turn in self.view(record.log).turns if turn.span[0] == record.turn]

    @contextmanager
    def batch(self) -> Iterator[None]:
        """One transaction on both sides; :class:`Undone` inside it leaves both as they were."""
        mark, touched = self.model.seq, set(self.touched)
        self.say("with archive.batch():")
        try:
            with self.archive.batch():
                yield
        except Undone:
            self.say("raise Undone  # the transaction above is rolled back")
            self.model.cut_back(mark)
            self.touched = touched
            self.handles = {place: log for place, log in self.handles.items() if place[1] in self.model.logs}

    # -- comparing

    def check(self) -> None:
        """Everything that must hold after any operation."""
        self.check_answers()
        self.check_isolation()
        self.check_past()
        self.check_lawful()

    def check_answers(self) -> None:
        """Each log answers as the model does."""
        for info in self.archive.logs():
            view, opened = self.view(info.name), self.model.opened(info.name)
            assert (info.parent, info.opened, info.reach, info.state) == (
                opened.parent,
                opened.seq,
                view.reach,
                view.state,
            )
            assert (info.items, info.bytes) == (len(view.frontier), view.total_bytes())
        assert [info.name for info in self.archive.logs()] == self.model.logs
        for name in self.model.logs:
            agree(self.log(name), self.view(name), Seeded(self.model.seq))

    def check_isolation(self) -> None:
        """A log that no operation named since the last look shows exactly what it showed then (L13)."""
        now = self.snapshot()
        for name, then in self.seen.items():
            assert name in self.touched or now[name] == then, f"{name} changed, though no operation named it"
        self.seen, self.touched = now, set()

    def check_past(self) -> None:
        """At a record drawn from the past, one log stands as the model's prefix does."""
        dice = Seeded(self.model.seq)
        name = dice.pick(self.model.logs)
        opened = self.model.opened(name).seq
        at = opened + dice.below(self.model.seq - opened + 1)
        log, then = self.log(name), self.model.view(name, at)
        survey = log.survey(at=at)
        assert (rows(survey.rows), survey.total_bytes) == (then.survey(), then.total_bytes()), f"at={at}"
        assert rows(log.index(at=at)) == then.index(), f"at={at}"
        assert log.render(at=at) == then.render(), f"at={at}"
        for left in [dice.pick(then.residues)] if then.residues else []:
            assert rows(log.under(left.span[0], left.span[1], at=at)) == then.under(left.span), f"at={at}"
        for never in (opened - 1, self.model.seq + 1):
            with pytest.raises(Refused):
                log.survey(at=never)

    def check_lawful(self) -> None:
        """``verify`` re-derives every fold row and finds nothing."""
        report = self.archive.verify()
        assert report.ok, report.first

    def check_end(self) -> None:
        """The fold is a function of the records (L14), and a file that is opened again is the same file."""
        self.check()
        before = self.snapshot()
        stored = self.stored()
        self.archive.rebuild()
        assert self.stored() == stored
        self.reopen()
        assert (self.snapshot(), self.stored()) == (before, stored)
        self.check()

    def snapshot(self) -> dict[str, Any]:
        """What each log of the archive shows."""
        logs = [self.log(info.name) for info in self.archive.logs()]
        return {log.name: (log.survey(), log.index(), log.state, log.reach, log.owed) for log in logs}

    def stored(self) -> dict[str, list[str]]:
        """Every row of every table, read by Python's own SQLite, sorted."""
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as connection:
            names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            return {name: sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"'))) for (name,) in names}


def for_model(name: str, argument: Any) -> Any:
    """An argument as the model takes it: messages in full, results as pairs."""
    if name in ("prompt", "steer") and isinstance(argument, str):
        return user(argument)
    if name == "assistant" and isinstance(argument, str):
        return reply(argument)
    if name == "tool_results":
        return [(one["id"], one["content"]) for one in argument]
    return argument


def rows(answered: Sequence[answers.Row]) -> list[Row]:
    """The product's rows in the model's form."""
    return [
        Row(
            span=(row.from_, row.to),
            role=row.role,
            kind=row.kind,
            label=row.label,
            bytes=row.bytes,
            location=(row.location.span.from_, row.location.span.to) if row.location.span else row.location.state,
        )
        for row in answered
    ]


def agree(log: Any, view: View, dice: Dice) -> None:
    """One log answers as its view: state, survey, index, context, plans, and a few spans and turns drawn from it."""
    assert (log.state, log.owed, log.unclosed, log.reach) == (view.state, view.owed, view.unclosed, view.reach)
    survey = log.survey()
    assert (rows(survey.rows), survey.total_bytes) == (view.survey(), view.total_bytes())
    assert rows(log.index()) == view.index()
    assert log.render() == view.render()
    for keep in (None, 0, a_budget(view, dice)):
        planned = log.plan(keep)
        assert (planned and (planned.from_, planned.to)) == view.plan(keep), f"keep={keep}"
    for left in [dice.pick(view.residues) for _ in range(2) if view.residues]:
        assert rows(log.under(*left.span)) == view.under(left.span)
    for item in [dice.pick(view.items)] if view.items else []:
        if item.span not in [left.span for left in view.residues]:
            with pytest.raises(Refused):
                log.under(*item.span)
    for turn in [dice.pick(view.turns) for _ in range(3) if view.turns]:
        if turn.span[0] != view.unclosed:
            (material,) = log.read([turn.span[0]])
            assert (material.role, material.messages) == (turn.role, turn.messages)
    if view.unclosed:
        with pytest.raises(Refused):
            log.read([view.unclosed])


# --- the operations ---------------------------------------------------------------------------------------------------

TEXTS = (
    "go on",
    "",
    "fix the parser\nand nothing else",
    "\nafter an empty line",
    "half \ud800 a pair, a NUL \x00, and two\r\nlines",
    "naïve café, “quoted” — 数え切れない",
    'a "quoted" \\ backslash\tand a tab',
    "x" * 49 + "e\u0301" + "y" * 9,
    "word " * 60,
    "long line " * 400,
)
NOTES = ("the lexer was fine", "é" * 120, 'said "no" \\', "n" * 240, "]\t[EXARCH // not the harness]")
BAD_NOTES = ("", "n" * 241, "é" * 121, "two\nlines", "two\rlines", "two\u2028lines", "two\x85lines")
CALLS = ("c1", "c2", "c3", "call_éé")
DESCRIPTIONS = (None, "list files", "list\nfiles", 7)


def a_log(twin: Twin, dice: Dice) -> str:
    """One of the logs."""
    return str(dice.pick(twin.model.logs))


def a_turn(twin: Twin, log: str, dice: Dice) -> int:
    """An id around those recorded, the impossible ones at both ends included."""
    return int(dice.pick((-1, 2**63, 2**70))) if dice.chance(3) else dice.below(twin.view(log).reach + 3)


def a_budget(view: View, dice: Dice) -> int:
    """Bytes to keep: what some of the newest items weigh, to the byte, or one less, where a plan tips over."""
    weights = [item.bytes for item in view.frontier]
    return max(0, sum(weights[dice.below(len(weights) + 1) :]) - dice.below(2))


def origin(dice: Dice) -> dict[str, str]:
    """Mostly nothing, at times an import."""
    return {"origin": "import"} if dice.chance(15) else {}


def key(dice: Dice) -> dict[str, str]:
    """Mostly nothing, at times one of few keys, so that keys are met again."""
    return {"key": dice.pick(("k1", "k2", "k3", "k4"))} if dice.chance(8) else {}


def a_reply(dice: Dice, most_calls: int = 3) -> Any:
    """A reply of text, of calls, or of both."""
    names = list(CALLS)
    calls = []
    for _ in range(dice.below(most_calls + 1)):
        described = dice.pick(DESCRIPTIONS)
        about = {} if described is None else {"description": described}
        calls.append(call(names.pop(dice.below(len(names))), cmd=dice.pick(TEXTS), **about))
    text = dice.pick([text for text in TEXTS if text.strip()])
    if calls:
        return reply(dice.pick((text, None)), *calls)
    return dice.pick((text, reply(text)))


def say_prompt(twin: Twin, dice: Dice) -> None:
    """A prompt, in any state."""
    text = dice.pick(TEXTS)
    twin.attempt("prompt", a_log(twin, dice), dice.pick((text, user(text))), **origin(dice), **key(dice))


def say_reply(twin: Twin, dice: Dice) -> None:
    """A reply, in any state."""
    twin.attempt("assistant", a_log(twin, dice), a_reply(dice), **origin(dice), **key(dice))


def say_steer(twin: Twin, dice: Dice) -> None:
    """Steering, in any state."""
    twin.attempt("steer", a_log(twin, dice), dice.pick(TEXTS), **key(dice))


def say_results(twin: Twin, dice: Dice) -> None:
    """Results of calls that may or may not be waiting, complete, short, repeated or strange."""
    log = a_log(twin, dice)
    ids = list(twin.view(log).owed) or [dice.pick(CALLS)]
    if dice.chance(30):
        ids = dice.pick((ids[1:], [*ids, ids[0]], [*ids, "unknown"], ids[:-1], [dice.pick(CALLS)]))
    results = [{"id": ids.pop(dice.below(len(ids))), "content": dice.pick(TEXTS)} for _ in range(len(ids))]
    twin.attempt("tool_results", log, results, **key(dice))


def advance(twin: Twin, dice: Dice) -> None:
    """One step a harness would take from the state the log is in."""
    log = a_log(twin, dice)
    state = twin.view(log).state
    if state == "owing":
        ids = list(twin.view(log).owed)
        results = [{"id": ids.pop(dice.below(len(ids))), "content": dice.pick(TEXTS)} for _ in range(len(ids))]
        twin.attempt("tool_results", log, results)
    elif state == "ready" or dice.chance(10):
        twin.attempt("prompt", log, dice.pick(TEXTS), **origin(dice))
    elif dice.chance(15):
        twin.attempt("steer", log, dice.pick(TEXTS))
    else:
        twin.attempt("assistant", log, a_reply(dice), **origin(dice))


def evict_aligned(twin: Twin, dice: Dice) -> None:
    """A run of frontier items: one, several, a lone residue (a rewrite) or residues and turns (a merge)."""
    log = a_log(twin, dice)
    view = twin.view(log)
    in_hand = 1 if view.unclosed and dice.chance(85) else 0
    frontier = view.frontier[: len(view.frontier) - in_hand]
    if not frontier:
        return
    first = dice.below(len(frontier))
    last = first + dice.below(min(len(frontier) - first, 1 + dice.pick((0, 2, 6, 1000))))
    residues = [item for item in frontier if item.is_residue]
    start, end = frontier[first].span[0], frontier[last].span[1]
    if residues and dice.chance(25):
        start, end = dice.pick(residues).span
    twin.attempt("evict", log, start, end, note=dice.pick(NOTES), **key(dice))


def evict_anywhere(twin: Twin, dice: Dice) -> None:
    """Ends drawn from all ids and all items, departed and withdrawn ones too: mostly misaligned."""
    log = a_log(twin, dice)
    view = twin.view(log)
    standing = [item for item in view.items if item.seq not in view.withdrawn]
    ends = [a_turn(twin, log, dice), a_turn(twin, log, dice)]
    if standing and dice.chance(70):
        ends = [dice.pick(standing).span[0], dice.pick(standing).span[1]]
    if dice.chance(80):
        ends.sort()
    twin.attempt("evict", log, *ends, note=dice.pick(NOTES))


def evict_badly(twin: Twin, dice: Dice) -> None:
    """A note that is none, or too long, or not one line."""
    log = a_log(twin, dice)
    twin.attempt("evict", log, 1, max(1, twin.view(log).reach), note=dice.pick(BAD_NOTES))


def force(twin: Twin, dice: Dice) -> None:
    """A planned prefix for one of several budgets, or a prefix through some item or some id."""
    log = a_log(twin, dice)
    view = twin.view(log)
    if dice.chance(40):
        ends = [item.span[1] for item in view.frontier] or [1]
        twin.attempt("force", log, through=dice.pick(ends) if dice.chance(70) else a_turn(twin, log, dice))
    else:
        total = view.total_bytes()
        twin.attempt("force", log, keep=dice.pick((None, 0, total // 4, total * 3 // 4, a_budget(view, dice))))


def rewind(twin: Twin, dice: Dice) -> None:
    """To an item's start, mostly a late one, or to any id."""
    log = a_log(twin, dice)
    starts = [item.span[0] for item in twin.view(log).frontier][-6:]
    anchor = dice.pick(starts) if starts and dice.chance(60) else a_turn(twin, log, dice)
    twin.attempt("rewind", log, anchor, **key(dice))


def say_again(twin: Twin, dice: Dice) -> None:
    """An operation under a key once more, to the letter, whatever has happened since."""
    if twin.keyed:
        name, log, args, options = dice.pick(twin.keyed)
        if log in twin.model.logs:
            twin.attempt(name, log, *args, **options)


def clear(twin: Twin, dice: Dice) -> None:
    """Withdraw everything; rarely, or no context would ever grow."""
    if dice.chance(25):
        twin.attempt("clear", a_log(twin, dice))


def fork(twin: Twin, dice: Dice) -> None:
    """A child of any log, in any state, or a log with no parent; at times under a name that is taken."""
    full = len(twin.model.logs) >= LOGS_AT_MOST
    name = a_log(twin, dice) if full or dice.chance(15) else f"log-{len(twin.model.logs)}"
    if dice.chance(10):
        twin.attempt("new_log", None, name)
    else:
        twin.attempt("fork", a_log(twin, dice), name)


def quiesce(twin: Twin, dice: Dice) -> None:
    """Answer what is owed."""
    twin.attempt("quiesce", a_log(twin, dice))


def witness(twin: Twin, dice: Dice) -> None:
    """A record that folds into nothing."""
    log = a_log(twin, dice)
    twin.say(f"archive.log({log!r}).witness('note', {{'text': 'seen'}})")
    assert twin.log(log).witness("note", {"text": "seen"}) == twin.model.witness(log).seq


def write_stale(twin: Twin, dice: Dice) -> None:
    """A writer that believes in another reach is refused whatever it writes."""
    log = twin.log(a_log(twin, dice))
    with pytest.raises(Refused):
        log.prompt("from a second writer", expect=log.reach + 1)
    assert twin.archive.head().seq == twin.model.seq


def change_hands(twin: Twin, dice: Dice) -> None:
    """The other connection writes from here on."""
    del dice
    twin.change_hands()


def reopen(twin: Twin, dice: Dice) -> None:
    """Close and open the file."""
    del dice
    twin.reopen()


def batch(twin: Twin, dice: Dice) -> None:
    """Several operations in one transaction, refused ones among them; in half of the cases it is rolled back."""
    undo = dice.chance(50)
    with twin.batch():
        for _ in range(1 + dice.below(5)):
            dice.pick(IN_A_BATCH)(twin, dice)
            agree(twin.log(TRUNK), twin.view(TRUNK), dice)
        if undo:
            raise Undone


OFTEN: tuple[Operation, ...] = (advance,) * 10 + (evict_aligned,) * 4
AT_TIMES: tuple[Operation, ...] = (
    say_prompt,
    say_reply,
    say_steer,
    say_results,
    evict_anywhere,
    force,
    rewind,
    witness,
)
SELDOM: tuple[Operation, ...] = (evict_badly, clear, fork, quiesce, write_stale, say_again)
IN_A_BATCH = OFTEN + AT_TIMES + SELDOM
IN_A_HISTORY = OFTEN * 4 + AT_TIMES * 4 + SELDOM * 2 + (evict_anywhere, say_again, change_hands, batch) * 4 + (reopen,)


OUTCOMES = {
    "prompt": "state key",
    "assistant": "state key",
    "tool_results": "state results",
    "steer": "state foreign-turn key",
    "quiesce": "",
    "evict": "inverted not-recorded withdrawn misaligned unclosed note key",
    "force": "owing no-plan one-residue misaligned unclosed",
    "rewind": "owing anchor",
    "clear": "owing",
    "fork": "name-taken",
    "new_log": "name-taken",
}


# --- the drivers ------------------------------------------------------------------------------------------------------


class RuleMachine(RuleBasedStateMachine):
    """The operations as rules, and what must hold after each as invariants."""

    def __init__(self) -> None:
        super().__init__()
        self.twin = Twin()
        self.sound = True

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Show the calls made inside in hypothesis's report, and remember a failure, so that the end is not judged."""
        shown = len(self.twin.script)
        try:
            yield
        except BaseException:
            self.sound = False
            raise
        finally:
            for line in self.twin.script[shown:]:
                hypothesis.note(line)

    def play(self, operation: Operation, data: st.DataObject) -> None:
        """Run one operation."""
        with self.watched():
            operation(self.twin, Drawn(data))

    @rule(data=st.data(), operation=st.sampled_from(OFTEN))
    def work(self, data: st.DataObject, operation: Operation) -> None:
        """What a session does all day: turns and evictions of them."""
        self.play(operation, data)

    @rule(data=st.data(), operation=st.sampled_from(AT_TIMES))
    def interfere(self, data: st.DataObject, operation: Operation) -> None:
        """Records out of turn, and the edits that undo or overrule."""
        self.play(operation, data)

    @rule(data=st.data(), operation=st.sampled_from(SELDOM))
    def surprise(self, data: st.DataObject, operation: Operation) -> None:
        """Forks, clears, and writers that are wrong."""
        self.play(operation, data)

    @rule(data=st.data())
    def transact(self, data: st.DataObject) -> None:
        """Several operations in one transaction."""
        self.play(batch, data)

    @rule(data=st.data())
    def change_hands(self, data: st.DataObject) -> None:
        """Another connection takes over."""
        self.play(change_hands, data)

    @rule(data=st.data())
    def reopen(self, data: st.DataObject) -> None:
        """The file closed and opened again."""
        self.play(reopen, data)

    @invariant()
    def every_log_answers_as_the_model_does(self) -> None:
        """State, survey, index, locations, context, plans."""
        with self.watched():
            self.twin.check_answers()

    @invariant()
    def a_log_no_operation_named_has_not_changed(self) -> None:
        """L13, told apart from the model's word for it."""
        with self.watched():
            self.twin.check_isolation()

    @invariant()
    def the_past_stands(self) -> None:
        """``at=`` some earlier record."""
        with self.watched():
            self.twin.check_past()

    @invariant()
    def the_file_is_lawful(self) -> None:
        """``verify``."""
        with self.watched():
            self.twin.check_lawful()

    def teardown(self) -> None:
        """Rebuild, reopen, and let the file go."""
        try:
            if self.sound:
                self.twin.check_end()
        finally:
            self.twin.close()


TestRuleMachine = RuleMachine.TestCase
TestRuleMachine.settings = settings(
    max_examples=max(1, STEPS // STEPS_A_HISTORY),
    stateful_step_count=STEPS_A_HISTORY,
    suppress_health_check=list(HealthCheck),
)


def play_history(seed: int, steps: int) -> set[tuple[str, str]]:
    """A seeded history, compared every few steps: the outcomes it met. A failure carries the calls that led to it."""
    twin, dice = Twin(), Seeded(seed)
    try:
        for step in range(steps):
            dice.pick(IN_A_HISTORY)(twin, dice)
            if step % STEPS_BETWEEN_CHECKS == 0:
                twin.check()
        twin.check_end()
        return twin.met
    except Exception as error:
        error.add_note("\n".join(["the history:", *twin.script]))
        raise
    finally:
        twin.close()


def play_histories(*, seeds: int, steps: int) -> set[tuple[str, str]]:
    """Several seeded histories, and the outcomes they met together."""
    return set().union(*(play_history(seed, steps) for seed in range(seeds)))


@cache
def long_history(seed: int) -> set[tuple[str, str]]:
    """One of the long histories, played once however many tests ask for it."""
    return play_history(seed, STEPS_A_LONG_HISTORY)


@pytest.mark.parametrize("seed", SEEDS)
def test_long_random_histories_agree(seed: int) -> None:
    """Thousands of operations on trees of logs, a quarter of them unlawful, without a disagreement."""
    assert ("prompt", "admitted") in long_history(seed)


@pytest.mark.skipif(STEPS < 800, reason="short histories do not meet everything")
def test_the_long_histories_meet_every_law() -> None:
    """Agreement says nothing about what never happened: each operation was admitted, and refused for each reason."""
    met = set().union(*map(long_history, SEEDS))
    wanted = {(name, reason) for name, reasons in OUTCOMES.items() for reason in ("admitted", *reasons.split())}
    assert not wanted - met


@pytest.mark.parametrize(
    ("owner", "name", "bent"),
    [
        (model, "NOTE_BYTES", 239),
        (model, "LABEL_SCALARS", 49),
        (model, "is_one_residue", lambda items: False),
        (View, "unclosed", None),
        (View, "reach", property(lambda view: len(view.frontier))),
        (View, "withdrawn", frozenset()),
        (
            View,
            "holders",
            property(lambda view: {i.seq: r.span for r in view.residues for i in view.turns if i.seq < r.seq}),
        ),
    ],
    ids=["notes", "labels", "lone residues", "the unclosed turn", "reach", "withdrawal", "holders"],
)
def test_a_law_bent_in_the_model_is_noticed(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, bent: Any) -> None:
    """The comparison can fail: with one law changed in the model, a short history disagrees."""
    monkeypatch.setattr(owner, name, bent)
    with pytest.raises(AssertionError):
        play_histories(seeds=5, steps=200)
