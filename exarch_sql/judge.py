"""The judge at the door: says, before the database does, why an operation may not be written, and what would work.

It reads where a log stands and raises `Refused`; it writes nothing and decides nothing the triggers would not. What it misses
they refuse, more tersely. Whether a whole file is lawful is `exarch_sql.verify`'s to say.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import msgspec

from exarch_sql.answers import Span
from exarch_sql.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

StateName = Literal["ready", "prompted", "owing", "answered"]

STATE_SQL = "SELECT log, name, base, reach, newest, state, owed FROM state WHERE log = ?"


class State(msgspec.Struct, frozen=True):
    """Where a log stands (ral-door section 4): ids as of now, and what the protocol waits for."""

    log: int
    name: str
    base: int  # the reach it inherited; its own turns are above
    reach: int  # newest turn id seen
    newest: int  # newest turn id not withdrawn; 0 for none
    state: StateName
    owed_json: str | None

    @property
    def owed(self) -> tuple[str, ...]:
        """The ids of the calls waiting for results."""
        return tuple(json.loads(self.owed_json)) if self.state == "owing" and self.owed_json else ()

    @property
    def unclosed(self) -> int | None:
        """The turn being written: the newest, whenever the log is not ready. No door reads it, no eviction takes it."""
        return None if self.state == "ready" else self.newest

    def __str__(self) -> str:
        count = len(self.owed)
        return {
            "ready": "ready for your next prompt",
            "prompted": "waiting for the model's reply",
            "owing": f"waiting for {count} tool result{'s' if count != 1 else ''}",
            "answered": "waiting for the model to read the tool results",
        }[self.state]


class Ground(msgspec.Struct, frozen=True):
    """A standing span of a log: a residue, or withdrawn turns."""

    span: Span
    withdrawn: bool


def prompt(state: State) -> None:
    """A prompt may come at any time but while results are owed (L4)."""
    if state.state == "owing":
        raise Refused(
            f"cannot accept a new user prompt while the log is {state}: answer "
            f"{_calls(state.owed)} with tool_results first, or quiesce() to say that no result came"
        )


def reply(state: State, *, imported: bool) -> None:
    """A reply follows a prompt or all results; an imported one may also stand where no prompt did (L4)."""
    if state.state == "owing":
        raise Refused(
            f"assistant message is not expected while the log is {state}: answer {_calls(state.owed)} with tool_results first"
        )
    if state.state == "ready" and not imported:
        raise Refused(f"assistant message is not expected while the log is {state}: append a prompt first")


def results(state: State, ids: list[str]) -> None:
    """Results answer every waiting call, once each, in any order (L4)."""
    if state.state != "owing":
        raise Refused(f"tool results are not expected while the log is {state}: no call is waiting")
    owed = state.owed
    for index, call in enumerate(ids):
        if call not in owed:
            raise Refused(f"unknown tool result id {call}: the calls waiting are {_calls(owed)}")
        if call in ids[:index]:
            raise Refused(f"duplicate tool result id {call}: one result for each of {_calls(owed)}")
    if len(ids) != len(owed):
        missing = _calls(call for call in owed if call not in ids)
        raise Refused(f"tool result count mismatch: expected {len(owed)}, got {len(ids)}; missing {missing}")


def steering(state: State) -> None:
    """Steering joins the turn in hand: one of this log itself, waiting for a reply (L4, L13)."""
    if state.state == "owing":
        raise Refused(f"tool results must be complete before accepting a steering prompt; the log is {state}")
    if state.state == "ready":
        raise Refused(f"cannot steer while the log is {state}: no work is in hand; append a prompt instead")
    if state.newest <= state.base:
        raise Refused(
            f"turn {state.newest} belongs to the log this one was forked from: steering cannot extend it; "
            "open a turn of your own with a prompt or a reply first"
        )


def recorded(state: State, turn: int) -> None:
    """A turn that is named must be recorded."""
    if not 1 <= turn <= state.reach:
        known = f"the latest is {state.reach}" if state.reach else "nothing has been recorded yet"
        raise Refused(f"turn {turn} is not recorded: {known}")


def eviction(state: State, span: Span, from_ground: Ground | None, to_ground: Ground | None) -> None:
    """A run starts where an item of the context starts and ends where one ends; the turn being written stays (L5).

    ``from_ground`` and ``to_ground`` are the standing grounds that hold the span's ends, if any.
    """
    if span.from_ > span.to:
        raise Refused(
            f"an eviction goes from the earlier turn to the later, both included: {span.from_} is after {span.to}; "
            f"name from: {span.to}, to: {span.from_}"
        )
    recorded(state, span.from_)
    recorded(state, span.to)
    for end, ground in ((span.from_, from_ground), (span.to, to_ground)):
        if ground and ground.withdrawn:
            raise Refused(
                f"turn {end} was withdrawn: an eviction runs between turns of your context; "
                f"{ground.span} {'is' if ground.span.from_ == ground.span.to else 'are'} no longer in it"
            )
    for ground in (from_ground, to_ground):
        if ground and not (span.from_ <= ground.span.from_ and ground.span.to <= span.to):
            whole = Span(min(span.from_, ground.span.from_), max(span.to, ground.span.to))
            both = f"; from: {whole.from_}, to: {whole.to} takes it with the rest" if whole != ground.span else ""
            raise Refused(
                f"{ground.span} stand together under one note: name from: {ground.span.from_}, "
                f"to: {ground.span.to} whole, or leave it{both}"
            )
    if state.unclosed is not None and span.from_ <= state.unclosed <= span.to:
        closed = f"; name to: {state.unclosed - 1} at the latest" if span.from_ < state.unclosed else ""
        raise Refused(f"turn {state.unclosed} is being written now: an eviction keeps the work in hand{closed}")


def forced(state: State) -> None:
    """The harness waits for owed results; only the model's own eviction runs inside a call."""
    if state.state == "owing":
        raise Refused(f"cannot evict while tool results are pending: the log is {state}")


def forced_span(span: Span, ground: Ground | None) -> None:
    """A forced eviction never replaces exactly one residue (L9). ``ground`` is the standing ground that holds the first turn."""
    if ground and ground.span == span:
        raise Refused(f"{span} already stand under one residue: rewriting a note without a note saves nothing")


def withdrawal(state: State, what: str) -> None:
    """A rewind or a clear waits for owed results (L10)."""
    if state.state == "owing":
        raise Refused(f"cannot {what} while the log is {state}: answer {_calls(state.owed)} first, or quiesce()")


def anchor(state: State, turn: int, ground: Ground | None) -> None:
    """An anchor starts an item of the context (L10). ``ground`` is the standing ground that holds it, if any."""
    recorded(state, turn)
    if ground and ground.withdrawn:
        raise Refused(f"turn {turn} was withdrawn: rewind to a turn that is still in the context")
    if ground and ground.span.from_ != turn:
        after = f" or turn {ground.span.to + 1}" if ground.span.to < state.newest else ""
        raise Refused(
            f"turn {turn} lies under the residue over {ground.span}: rewind to turn {ground.span.from_}{after}"
        )


def readable(state: State, turns: list[int]) -> None:
    """Every turn ever recorded can be read, but the one being written."""
    for turn in turns:
        recorded(state, turn)
        if turn == state.unclosed:
            raise Refused(f"turn {turn} is being written now: it is the one turn the transcript cannot read back yet")


def expected(state: State, expect: int | None) -> None:
    """An optimistic writer names the reach it believes in; another reach means somebody else wrote first."""
    if expect is not None and expect != state.reach:
        raise Refused(
            f"this writer expects the log {state.name} to reach turn {expect}, but it reaches {state.reach}: "
            f"somebody else wrote first; survey again and write with expect={state.reach}"
        )


def log_name(name: object) -> str:
    """A log's name: text of 1 to 100 bytes on one line, not a bare number (a number names a log by its order)."""
    if not isinstance(name, str) or not name or name != name.strip():
        raise Refused(f"a log needs a name without blanks around it, such as 'scout'; got {name!r}")
    if not name.isprintable() or len(name.encode()) > 100:
        raise Refused("a log's name is one printable line of at most 100 bytes: choose a shorter, plainer one")
    if name.isdecimal():
        raise Refused(f"a log's name may not be a bare number, which names a log by its order: call it log-{name}")
    return name


def _calls(ids: Iterable[str]) -> str:
    """Call ids as a short list."""
    names = list(ids)
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
