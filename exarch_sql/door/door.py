"""One door on one log: names that last from run to run, each run whole or refused, and a record of it when asked for."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from exarch_sql.door import check, parser
from exarch_sql.door.evaluator import Evaluator
from exarch_sql.door.functions import Scope
from exarch_sql.door.limits import Limits, Meter
from exarch_sql.door.prelude import BUILTINS
from exarch_sql.door.refusals import DoorRefused, Failed, Malformed, Overrun
from exarch_sql.door.values import UNIT, Unit, Value, literal, reckoned, to_json
from exarch_sql.door.verbs import brought_back

if TYPE_CHECKING:
    from collections.abc import Callable, Set

    from exarch_sql.door import tree
    from exarch_sql.door.values import Step
    from exarch_sql.door.verbs import Call, Host

T = TypeVar("T")
LINE_CHARS = 100_000  # of a line, what a door record keeps


class Answer:
    """What a run answers: the last statement's ``value``, what it said as ``output``, and whether the value is shown.

    A run that ends in ``let``, that is empty, or that said something and answers ``()`` shows no value.
    """

    def __init__(self, value: Value, output: str, *, shown: bool, limits: Limits) -> None:
        self.value = value
        self.output = output
        self.shown = shown
        self._limits = limits

    @cached_property
    def text(self) -> str:
        """The value as a literal that parses back to an equal value; empty when none is shown.

        Raises :class:`Overrun` when it would pass the output bound, or take longer than a run may.
        """
        return self._written(literal) if self.shown else ""

    @cached_property
    def json(self) -> Any:
        """The value in the JSON of the written contract; None when none is shown. Raises as ``text``, and for a block."""
        return self._written(to_json) if self.shown else None

    def _written(self, write: Callable[[Value, int, Step], T]) -> T:
        """The value written within the clock of a run, but not its steps: an answer may have more parts than those."""
        meter = Meter(msgspec.structs.replace(self._limits, steps=sys.maxsize))
        try:
            return write(self.value, self._limits.output_bytes, meter.step)
        except RecursionError:
            raise Overrun("the answer nests deeper than this process can follow") from None


class Door:
    """The language, opened on one log.

    ``log`` is anything with the methods of :class:`Host`. With ``record`` each run is written to the log as a ``door`` witness
    record: the line, the bytes of what it printed, whether it was refused, and where they help, the verbs it called and the
    turns whose material it brought back.
    """

    def __init__(self, log: Host, record: bool = False, limits: Limits | None = None) -> None:
        self.log = log
        self.record = record
        self.limits = limits or Limits()
        self.said = ""  # what the latest run has echoed, answered or refused
        self._scope = Scope(BUILTINS)
        self._held = 0

    @property
    def names(self) -> list[str]:
        """The names bound by runs of this door, sorted."""
        own = self._scope.flat()
        return sorted(name for name, value in own.items() if BUILTINS.get(name) is not value)

    def run(self, source: str) -> Answer:
        """Run a source of one or more statements.

        Raises :class:`Refused`: as :class:`Malformed` when nothing ran, as :class:`Failed` when a statement failed (names
        bound before it stay), as :class:`Overrun` at a bound. ``Busy`` and ``BadFile`` of the log pass through. What was echoed
        before that is in ``said``.
        """
        source = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        called: list[tuple[Call, Value]] = []
        self.said = ""
        try:
            answer = self._answer(source, called)
        except DoorRefused as error:
            self._witness(source, len((self.said + str(error)).encode("utf-8", "replace")), called, refused=True)
            raise
        if self.record:
            self._witness(source, self._printed_bytes(answer), called, refused=False)
        return answer

    def _answer(self, source: str, called: list[tuple[Call, Value]]) -> Answer:
        meter = Meter(self.limits)
        names = self._scope.flat().keys()
        try:
            program = parser.parse(source, meter)
            check.check(program, names)
        except Malformed as error:
            raise _corrected(error.placed(source), names) from None
        except RecursionError:
            raise Overrun("the source nests deeper than this process can follow").placed(source) from None
        run = Evaluator(self.log, meter, self._scope, source, called)
        try:
            value, shown = run.run(program)
        except Failed as error:
            raise self._realigned(error, source, program, called) from None
        except RecursionError:
            raise Overrun("the line calls deeper than this process can follow").placed(source) from None
        finally:
            self.said = "".join(run.output)
            if run.scope is not self._scope:
                self._keep(run.scope, meter.made, called)
        shown = shown and not (self.said and isinstance(value, Unit))
        return Answer(value if shown else UNIT, self.said, shown=shown, limits=self.limits)

    def _keep(self, scope: Scope, made_bytes: int, called: list[tuple[Call, Value]]) -> None:
        """Keep the names a run has bound, so long as what they hold stays within its bound."""
        names = scope.flat()
        seen: set[int] = set()
        self._held += made_bytes + sum(reckoned(answer, seen) for _, answer in called)
        if self._held > self.limits.held_bytes:  # an upper bound, as names are bound anew; now measure
            seen = set()
            self._held = sum(reckoned(value, seen) for value in names.values())
            if self._held > self.limits.held_bytes:
                raise Overrun(
                    f"the names of this door would hold more than {self.limits.held_bytes} bytes: "
                    "this run's were not kept; bind a smaller part, or let an old name be ()"
                )
        self._scope = Scope(names)

    def _realigned(
        self, error: Failed, source: str, program: tree.Program, called: list[tuple[Call, Value]]
    ) -> DoorRefused:
        """The failure, with the eviction's ends mended where the log refused them."""
        if error.__cause__ is None or error.source is not source:
            return error
        if any(call.verb.tag == "evict" for call, _ in called):
            return error  # an eviction of this line went through: offering the line again would name what has left
        from exarch_sql.door import slips  # noqa: PLC0415  # loaded when a line first goes wrong

        correction = slips.realigned(source, program, self.log)
        return error if correction is None else error.corrected(*correction)

    def _printed_bytes(self, answer: Answer) -> int:
        try:
            return len(answer.text.encode()) + len(answer.output.encode("utf-8", "replace"))
        except Overrun:
            return self.limits.output_bytes  # the run is done: that its answer is too long to print is said on printing

    def _witness(self, source: str, size_bytes: int, called: list[tuple[Call, Value]], *, refused: bool) -> None:
        if not self.record:
            return
        body: dict[str, Any] = {"line": source[:LINE_CHARS], "bytes": size_bytes, "refused": refused}
        if called:
            body["verb"] = "+".join(dict.fromkeys(call.verb.tag for call, _ in called))
            turns = {turn for call, answer in called for turn in brought_back(call, answer)}
            if turns:
                body["turns"] = sorted(turns)
        self.log.witness("door", body)


def _corrected(error: Malformed, names: Set[str]) -> Malformed:
    """The refusal of a source, with the line that was meant if that can be told."""
    from exarch_sql.door import slips  # noqa: PLC0415  # loaded when a line first goes wrong

    correction = slips.correct(error.source or "", names)
    return error if correction is None else error.corrected(*correction)
