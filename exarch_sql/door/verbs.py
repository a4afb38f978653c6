"""The verbs: what a payload must be, what is asked of the log, and what its answer is as values.

Records are closed: exact fields, each once. One function decodes a payload, before a run where it is written out and during it
where it is computed, so both refuse alike. A refusal of the log itself is passed on in its own words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from exarch_sql.door import patterns
from exarch_sql.door.material import row_value, survey_value, turn_value
from exarch_sql.door.names import NEAR, nearest
from exarch_sql.door.refusals import DoorRefused, Failed, Overrun
from exarch_sql.door.values import Record, Value, Variant, count, shape
from exarch_sql.errors import Refused, Unfinished
from exarch_sql.residue import check_note

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from exarch_sql.answers import Found, Material, Row, Survey
    from exarch_sql.door.limits import Meter

CONTEXT, TRANSCRIPT = "exarch-context", "exarch-transcript"
Path = tuple[str | int, ...]


class Host(Protocol):
    """What a door uses of a log; :class:`exarch_sql.log.Log` is one. Raises :class:`Refused` when a law or state says no."""

    @property
    def reach(self) -> int:
        """The newest turn id seen, 0 if none."""

    @property
    def unclosed(self) -> int | None:
        """The turn being written now."""

    def survey(self) -> Survey:
        """The frontier."""

    def index(self) -> Sequence[Row]:
        """Every item ever recorded."""

    def under(self, from_: int, to: int) -> Sequence[Row]:
        """What departed under the residue over this span."""

    def read(self, turns: Sequence[int]) -> Sequence[Material]:
        """Turns, whole."""

    def grep(self, pattern: str, turns: Sequence[int] | None = None, *, seconds: float) -> Found:
        """Matching lines, of all turns or of those named. Raises :class:`Unfinished` when it takes more than ``seconds``."""

    def evict(self, from_: int, to: int, *, note: str) -> Survey:
        """Let a run go; the survey after."""

    def witness(self, kind: Literal["door"], body: dict[str, Any]) -> int:
        """Record what was only seen; its place in the file."""


class Verb(msgspec.Struct, frozen=True):
    """A tag of a family: its fields in teaching order (None: it takes no payload), and those that may be left out."""

    family: str
    tag: str
    fields: Mapping[str, Callable[[Value, Path], Any]] | None
    ask: Callable[[Host, dict[str, Any], float], Value]  # within so many seconds, where it can tell
    optional: frozenset[str] = frozenset()


class Call(msgspec.Struct, frozen=True):
    """A verb with its decoded fields."""

    verb: Verb
    fields: dict[str, Any]

    def ask(self, host: Host, meter: Meter) -> Value:
        """The log's answer, within the time of the run. Its refusals arrive as :class:`Failed`, in their own words."""
        try:
            return self.verb.ask(host, self.fields, meter.left())
        except DoorRefused:
            raise
        except Unfinished as error:
            raise Overrun(f"the line ran for more than {meter.limits.seconds:g} s: its search {error.where}") from error
        except Refused as error:
            raise Failed(str(error)) from error


def decode(family: str, argument: Value) -> Call:
    """The call a tag asks for. Raises :class:`Failed` with the path of what is wrong."""
    offered = FAMILIES[family]
    if not isinstance(argument, Variant):
        raise Failed(f"`{family}` takes a tag naming what to do ({_listed(offered)}); got {shape(argument)}")
    verb = offered.get(argument.tag)
    if verb is None:
        raise Failed(f"unrecognised tag in `{family} `{argument.tag}`: `{family}` takes {_listed(offered)}")
    try:
        return Call(verb, _fields(verb, argument.payload))
    except Failed as error:
        raise _prefixed(verb, error) from None


def _listed(offered: Mapping[str, Verb]) -> str:
    tags = [f"`{tag}" for tag in offered]
    return f"{', '.join(tags[:-1])} or {tags[-1]}"


def _fields(verb: Verb, payload: Value | None) -> dict[str, Any]:
    if verb.fields is None:
        if payload is not None:
            raise Failed(f"takes no payload, got {shape(payload)}")
        return {}
    if payload is None:
        raise Failed(f"requires a payload: {spelled(verb)}")
    if not isinstance(payload, Record):
        raise Failed(f"expected a record, got {shape(payload)}: {spelled(verb)}")
    return read_fields(verb, payload.fields)


def check_written(verb: Verb, fields: Mapping[str, Value | None]) -> None:
    """Refuse what is wrong with a payload of which some values are not known yet (None)."""
    try:
        read_fields(verb, fields)
    except Failed as error:
        raise _prefixed(verb, error) from None


def read_fields(verb: Verb, fields: Mapping[str, Value | None]) -> dict[str, Any]:
    """The fields decoded, but those whose value is None. Raises :class:`Failed` with the path of what is wrong."""
    wanted = verb.fields or {}
    for key in fields:
        if key not in wanted:
            raise _at(Failed(_unknown(key, list(wanted))), (key,))
    for key in wanted:
        if key not in fields and key not in verb.optional:
            raise Failed(f"no `{key} field in a record of {count(len(fields), 'field')}")
    known = {key: fields[key] for key in wanted if key in fields}
    decoded = {key: wanted[key](value, (key,)) for key, value in known.items() if value is not None}
    if "from" in decoded and "to" in decoded and decoded["from"] > decoded["to"]:
        ends = f"from: {decoded['from']} is past to: {decoded['to']}"
        raise _at(Failed(f"{ends}: a span runs upward, both ends inclusive"), ("from",))
    return decoded


def _prefixed(verb: Verb, error: Failed) -> Failed:
    prefixed = Failed(f"`{verb.family} `{verb.tag}`: {error.reason}")
    prefixed.path = error.path
    return prefixed


def spelled(verb: Verb) -> str:
    """How the payload of a verb is written."""
    return {
        "evict": "[from: 41, to: 60, note: '...']",
        "under": "[from: 41, to: 60]",
        "read": "[turns: [41, 42]]",
        "grep": "[pattern: '...']",
    }[verb.tag]


def _unknown(key: str, known: Sequence[str]) -> str:
    near = nearest(key, known, NEAR)
    if near is not None:
        return f"unknown field `{key}`: did you mean `{near}`?"
    return f"unknown field `{key[:60]}`: expected {', '.join(f'`{each}`' for each in known)}"


def _at(error: Failed, path: Path) -> Failed:
    error.path = path
    return error


# --- fields ---------------------------------------------------------------------------------------------------------


def _where(path: Path) -> str:
    field, *inner = path
    return f"`{field}: " + "".join(f"element {each}: " for each in inner if isinstance(each, int))


def _turn(value: Value, path: Path) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _at(Failed(f"{_where(path)}expected a non-negative Int, got {shape(value)}"), path)
    if value < 0:
        raise _at(Failed(f"{_where(path)}expected a non-negative Int, got a negative one"), path)
    return value


def _turns(value: Value, path: Path) -> list[int]:
    if not isinstance(value, tuple):
        raise _at(Failed(f"{_where(path)}expected a list, got {shape(value)}"), path)
    return [_turn(element, (*path, index)) for index, element in enumerate(value)]


def _named_turns(value: Value, path: Path) -> list[int]:
    turns = _turns(value, path)
    if not turns:
        raise _at(Failed("`turns` names no turn: `!{range a b}` builds a run of ids"), path)
    return turns


def _scope(value: Value, path: Path) -> list[int] | None:
    where = _where(path)
    if isinstance(value, Variant):
        if value.tag == "all":
            if value.payload is not None:
                raise _at(Failed(f"{where}`all takes no payload, got {shape(value.payload)}"), path)
            return None
        if value.tag != "only":
            raise _at(Failed(f"{where}unknown tag `{value.tag}: expected `all, `only"), path)
        if value.payload is None:
            raise _at(Failed(f"{where}`only needs a payload"), path)
        value = value.payload
    elif not isinstance(value, tuple):
        raise _at(Failed(f"{where}expected a list of turns, or a tag (`all, `only), got {shape(value)}"), path)
    turns = _turns(value, path)
    if not turns:
        raise _at(Failed("`turns` names no turn: omit it to search the whole transcript"), path)
    return turns


def _note(value: Value, path: Path) -> str:
    if not isinstance(value, str):
        raise _at(Failed(f"{_where(path)}expected a Str, got {shape(value)}"), path)
    try:
        return check_note(value)
    except Refused as error:
        raise _at(Failed(str(error)), path) from None


def _pattern(value: Value, path: Path) -> str:
    if not isinstance(value, str):
        raise _at(Failed(f"{_where(path)}expected a Str, got {shape(value)}"), path)
    try:
        patterns.compiled(value)
    except Failed as error:
        raise _at(Failed(f"{_where(path)}{error.reason}"), path) from None
    return value


# --- asking ---------------------------------------------------------------------------------------------------------


def _survey(host: Host, _fields: dict[str, Any], _seconds: float) -> Value:
    return survey_value(host.survey())


def _evict(host: Host, fields: dict[str, Any], _seconds: float) -> Value:
    return survey_value(host.evict(fields["from"], fields["to"], note=fields["note"]))


def _index(host: Host, _fields: dict[str, Any], _seconds: float) -> Value:
    return tuple(row_value(row) for row in host.index())


def _under(host: Host, fields: dict[str, Any], _seconds: float) -> Value:
    return tuple(row_value(row) for row in host.under(fields["from"], fields["to"]))


def _read(host: Host, fields: dict[str, Any], _seconds: float) -> Value:
    return tuple(turn_value(turn) for turn in host.read(fields["turns"]))


def _grep(host: Host, fields: dict[str, Any], seconds: float) -> Value:
    found = host.grep(fields["pattern"], fields.get("turns"), seconds=seconds)
    hits = tuple(Record.of(hit.to_dict()) for hit in found.hits)
    return Record.of({"hits": hits, "total": found.total})


_SPAN: dict[str, Callable[[Value, Path], Any]] = {"from": _turn, "to": _turn}
VERBS = {
    verb.tag: verb
    for verb in (
        Verb(CONTEXT, "survey", None, _survey),
        Verb(CONTEXT, "evict", {**_SPAN, "note": _note}, _evict),
        Verb(TRANSCRIPT, "index", None, _index),
        Verb(TRANSCRIPT, "under", _SPAN, _under),
        Verb(TRANSCRIPT, "read", {"turns": _named_turns}, _read),
        Verb(TRANSCRIPT, "grep", {"pattern": _pattern, "turns": _scope}, _grep, frozenset({"turns"})),
    )
}
FAMILIES = {
    family: {tag: verb for tag, verb in VERBS.items() if verb.family == family} for family in (CONTEXT, TRANSCRIPT)
}


def brought_back(call: Call, answer: Value) -> list[int]:
    """The turns whose material an answer carries, for an auditor: those read, and those with hits."""
    if call.verb.tag == "read":
        return sorted(set(call.fields["turns"]))
    if call.verb.tag == "grep" and isinstance(answer, Record):
        hits = answer.fields["hits"]
        found = (
            {h.fields["from"] for h in hits if isinstance(h, Record) and h.fields["kind"] != "residue"}
            if isinstance(hits, tuple)
            else set()
        )
        return sorted(turn for turn in found if isinstance(turn, int))
    return []
