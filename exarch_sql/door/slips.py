"""The likely slips of a model, and the line it meant.

A line that is refused is tried again with one repair after another, each a small rewriting that undoes one habit: a code
fence, typographic quotes, JSON for a record, a missing backtick, `from:41`, `41-60`. A repaired line is offered only if it
passes every check a line must pass before it runs; the refusal itself stays. Repairs of spelling work on the text; repairs of
a call that can be read work on its tree, and write the payload anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from exarch_sql.door import check, parser, slip_calls, slip_text
from exarch_sql.door.limits import Limits, Meter
from exarch_sql.door.refusals import DoorRefused

if TYPE_CHECKING:
    from collections.abc import Set

    from exarch_sql.door import tree
    from exarch_sql.door.verbs import Host

MAX_CHARS = 6_000  # a longer source is no slip of the pen, and some repairs take time in the square of it
ROUNDS = 16
LIMITS = Limits(seconds=0.5)


class Correction(NamedTuple):
    """A whole source that would pass, and what it changes."""

    line: str
    advice: str


def correct(source: str, names: Set[str]) -> Correction | None:
    """The source as it was meant, if it can be told; ``names`` are those bound already."""
    if len(source) > MAX_CHARS:
        return None
    try:
        return _correct(source, names)
    except RecursionError:  # a caller deep in its own stack gets the refusal without the correction
        return None


def _correct(source: str, names: Set[str]) -> Correction | None:
    text, advice, meter = source, "", Meter(LIMITS)
    for _ in range(ROUNDS):
        program = _parsed(text, meter)
        if program is not None and _sound(program, names):
            return Correction(text, advice) if text != source else None
        repaired = _repair(text, program)
        if repaired is None:
            return None
        text, said = repaired
        advice = advice or said
    return None


def _parsed(text: str, meter: Meter) -> tree.Program | None:
    try:
        meter.clock()
        return parser.parse(text, meter)
    except DoorRefused:
        return None


def _sound(program: tree.Program, names: Set[str]) -> bool:
    try:
        check.check(program, names)
    except DoorRefused:
        return False
    return True


def _repair(text: str, program: tree.Program | None) -> Correction | None:
    """The first repair that changes the text, and what it says."""
    if program is not None:
        repaired = slip_calls.repair(text, program)
        if repaired is not None and repaired[0] != text:
            return Correction(*repaired)
    for repair in slip_text.REPAIRS:
        line = repair(text)
        if line is not None and line != text:
            return Correction(line, (repair.__doc__ or "").strip().rstrip("."))
    return None


def realigned(source: str, program: tree.Program, host: Host) -> Correction | None:
    """For an eviction the log refused: the ends moved to those of the items they stand in, or the last closed before them."""
    return next(
        (
            Correction(line, "both ends are included, and each must be the end of an item of your context")
            for call in slip_calls.evictions(program)
            if (line := slip_calls.realign(source, call, host.survey().rows, host.unclosed)) is not None
        ),
        None,
    )
