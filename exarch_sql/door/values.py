"""The values of the door, how one prints, and what it is in JSON.

Unit is :data:`UNIT`; Bool, Int (64-bit), Float (finite) and Str are Python's own; a list is a tuple. Records and maps hold
their keys sorted. A value prints as a literal that parses back to an equal value; a block prints as its text, without what it
closed over. A value made from an answer of the log may carry the JSON the written contract has for it (``json``), so that
``read`` gives the recorded messages unchanged there while the literal shows their parts as tags.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from exarch_sql.door.limits import NESTING
from exarch_sql.door.refusals import Failed, Overrun
from exarch_sql.unseen import UNSEEN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Unit:
    """The value ``()``."""


UNIT = Unit()


@dataclass(frozen=True, slots=True)
class Record:
    """Named fields, in key order."""

    fields: Mapping[str, Value]
    json: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, fields: Mapping[str, Value], json: Any = None) -> Record:
        """A record of ``fields`` in any order."""
        return cls(dict(sorted(fields.items())), json)


@dataclass(frozen=True, slots=True)
class Map:
    """Keys that are data, in key order."""

    entries: Mapping[str, Value]

    @classmethod
    def of(cls, entries: Mapping[str, Value]) -> Map:
        """A map of ``entries`` in any order."""
        return cls(dict(sorted(entries.items())))


@dataclass(frozen=True, slots=True)
class Variant:
    """A tag, with a payload or bare."""

    tag: str
    payload: Value | None = None
    json: Any = field(default=None, compare=False, repr=False)


class Function(Protocol):
    """What can be applied: a block, a builtin, or either with some arguments given."""

    @property
    def arity(self) -> int:
        """How many arguments are still wanted; 0 for a block that only waits to be forced."""

    def pieces(self) -> tuple[tuple[str, Value | None], ...]:
        """The text that evaluates to this function again: each piece a text, and a value whose literal follows it."""


Value: TypeAlias = "Unit | bool | int | float | str | tuple[Value, ...] | Record | Map | Variant | Function"

Step: TypeAlias = "Callable[[], None]"  # one unit of a run's work

QUOTE_RUN = re.compile(r"'(#*)")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
UNSAFE = re.compile(f"(?![\t\n])[{UNSEEN}]")  # what only an escape can carry


def kind(value: Value) -> str:  # noqa: PLR0911 - one return a type
    """The type's name with its article, as refusals spell it: ``an Int``."""
    match value:
        case Unit():
            return "()"
        case bool():
            return "a Bool"
        case int():
            return "an Int"
        case float():
            return "a Float"
        case str():
            return "a Str"
        case tuple():
            return "a list"
        case Record():
            return "a record"
        case Map():
            return "a map"
        case Variant():
            return "a tag"
    return "a block"


def shape(value: Value) -> str:
    """What a value is, without quoting it: ``a list of 3 elements``, ```` `x` carrying an Int ````."""
    match value:
        case tuple():
            return f"a list of {count(len(value), 'element')}"
        case Record():
            return f"a record of {count(len(value.fields), 'field')}"
        case Map():
            return f"a map of {count(len(value.entries), 'key')}"
        case Variant(tag, None):
            return f"the bare tag `{tag}`"
        case Variant(tag, payload) if payload is not None:
            # one level only: a chain of tags could be as long as a line
            return f"`{tag}` carrying {kind(payload) if isinstance(payload, Variant) else shape(payload)}"
    return kind(value)


def count(number: int, noun: str) -> str:
    """``1 field``, ``2 fields``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def equal(  # noqa: PLR0911 - one return a type
    left: Value, right: Value, step: Step | None = None, depth: int = 0
) -> bool:
    """Whether two values are the same in type and content; blocks are equal when they are one block or read alike.

    ``step`` is called for each pair compared, so that values built by doubling cannot make it endless.
    """
    if step is not None:
        step()
    if left is right:
        return True
    if isinstance(left, bool | int | float | str | Unit):
        return type(left) is type(right) and left == right
    _descend(left, depth)
    if isinstance(left, tuple):
        return (
            isinstance(right, tuple)
            and len(left) == len(right)
            and all(equal(a, b, step, depth + 1) for a, b in zip(left, right, strict=True))
        )
    if isinstance(left, Record | Map):
        if type(left) is not type(right):
            return False
        ours, theirs = _entries_of(left), _entries_of(right)
        return ours.keys() == theirs.keys() and all(
            equal(value, theirs[key], step, depth + 1) for key, value in ours.items()
        )
    if isinstance(left, Variant):
        if not isinstance(right, Variant) or left.tag != right.tag:
            return False
        if left.payload is None or right.payload is None:
            return left.payload is right.payload
        return equal(left.payload, right.payload, step, depth + 1)
    if isinstance(right, bool | int | float | str | Unit | tuple | Record | Map | Variant):
        return False
    return _same_pieces(left, right, step, depth)


def _same_pieces(left: Function, right: Function, step: Step | None, depth: int) -> bool:
    ours, theirs = left.pieces(), right.pieces()
    if len(ours) != len(theirs):
        return False
    for (text, value), (other_text, other_value) in zip(ours, theirs, strict=True):
        if text != other_text or (value is None) != (other_value is None):
            return False
        if value is not None and other_value is not None and not equal(value, other_value, step, depth + 1):
            return False
    return True


def _entries_of(value: Record | Map | Value) -> Mapping[str, Value]:
    return value.fields if isinstance(value, Record) else value.entries if isinstance(value, Map) else {}


def _descend(value: Value, depth: int) -> None:
    """Refuse a value that would print deeper than the parser reads."""
    if depth >= NESTING and not isinstance(value, bool | int | float | str | Unit):
        raise Overrun(f"the value nests deeper than {NESTING}")


# --- printing -------------------------------------------------------------------------------------------------------


def number(value: float) -> str:
    """The one spelling of an Int or a finite Float; a Float keeps its point."""
    text = repr(value)
    if isinstance(value, float) and "." not in text:
        mantissa, mark, exponent = text.partition("e")
        return f"{mantissa}.0{mark}{exponent}"
    return text


def quoted(text: str) -> str:
    """A string literal for ``text``: raw where it can be, with escapes where it holds what cannot be seen."""
    if UNSAFE.search(text):
        return f'"{escaped(text)}"'
    if "'" not in text:
        return f"'{text}'"
    hashes = "#" * (1 + max(len(run) for run in QUOTE_RUN.findall(text)))
    return f"{hashes}'{text}'{hashes}"


def escaped(text: str) -> str:
    """``text`` as the inside of a double-quoted literal."""
    spelled = re.sub(r'[\\"$!]', r"\\\g<0>", text)
    return UNSAFE.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", spelled)


class _Print:
    """Pieces of a literal, counted as they come."""

    def __init__(self, limit_bytes: int | None, step: Step | None) -> None:
        self.pieces: list[str] = []
        self._step = step
        self._left = limit_bytes if limit_bytes is not None else -1
        self._limit = limit_bytes

    def add(self, piece: str) -> None:
        """Append, or raise :class:`Overrun` past the limit."""
        self.pieces.append(piece)
        if self._limit is not None:
            self._left -= len(piece) if piece.isascii() else len(piece.encode())
            if self._left < 0:
                raise Overrun(
                    f"the answer takes more than {self._limit} bytes to print: "
                    "bind it with let, then narrow it with take, filter or $x[key]"
                )

    def value(self, value: Value, depth: int) -> None:
        """Append the literal of ``value``."""
        if self._step is not None:
            self._step()
        if isinstance(value, str):
            self.add(quoted(value))
        elif isinstance(value, bool):
            self.add("true" if value else "false")
        elif isinstance(value, int | float):
            self.add(number(value))
        elif isinstance(value, Unit):
            self.add("()")
        elif isinstance(value, tuple | Record | Map | Variant):
            _descend(value, depth)
            self._nested(value, depth + 1)
        else:
            _descend(value, depth)
            for text, inner in value.pieces():
                self.add(text)
                if inner is not None:
                    self.value(inner, depth + 1)

    def _nested(self, value: tuple[Value, ...] | Record | Map | Variant, depth: int) -> None:
        if isinstance(value, Variant):
            self.add(f"`{value.tag}")
            if value.payload is not None:
                self.add(" ")
                self.value(value.payload, depth)
            return
        self.add("[:" if isinstance(value, Map) else "[")
        lead = ", " if isinstance(value, Map) else ""
        entries = [("", element) for element in value] if isinstance(value, tuple) else _entries_of(value).items()
        for key, element in entries:
            self.add(lead if isinstance(value, tuple) else f"{lead}{key_literal(key)}: ")
            self.value(element, depth)
            lead = ", "
        self.add("]")


def literal(value: Value, limit_bytes: int | None = None, step: Step | None = None) -> str:
    """The literal of ``value``. Raises :class:`Overrun` past ``limit_bytes``, or the nesting the parser takes.

    ``step`` is called for each value in it: what holds one value many times over is small, and its literal is not.
    """
    out = _Print(limit_bytes, step)
    out.value(value, 0)
    return "".join(out.pieces)


def key_literal(key: str) -> str:
    """A key as it stands before its colon: bare when it is a name, and not one of the two words that are Bools."""
    return key if NAME.fullmatch(key) and key not in ("true", "false") else quoted(key)


def spoken(value: Value, limit_bytes: int | None = None, step: Step | None = None) -> str:
    """A value as text, for ``str``, ``echo`` and splices: a Str as it is, anything else as its literal."""
    return value if isinstance(value, str) else literal(value, limit_bytes, step)


# --- JSON -----------------------------------------------------------------------------------------------------------


def to_json(value: Value, limit_bytes: int, step: Step | None = None) -> Any:
    """The value in JSON: a record or map is an object, a bare tag its name, a carrying tag ``{tag: payload}``, ``()`` null.

    Raises :class:`Overrun` past ``limit_bytes`` of content, :class:`Failed` for a block, which has no form in JSON.
    """

    def spend(size_bytes: int) -> None:
        nonlocal limit_bytes
        limit_bytes -= size_bytes
        if limit_bytes < 0:
            raise Overrun("the answer is too large for one JSON document: narrow it with take, filter or $x[key]")
        if step is not None:
            step()

    return _json(value, 0, spend)


def _json(value: Value, depth: int, spend: Callable[[int], None]) -> Any:  # noqa: PLR0911 - one return a type
    _descend(value, depth)
    spend(8 + (len(value) if isinstance(value, str) else 0))
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Unit):
        return None
    if isinstance(value, tuple):
        return [_json(element, depth + 1, spend) for element in value]
    if isinstance(value, Map):
        return {key: _json(entry, depth + 1, spend) for key, entry in value.entries.items()}
    if isinstance(value, Record):
        if value.json is not None:
            return value.json
        return {key: _json(entry, depth + 1, spend) for key, entry in value.fields.items()}
    if isinstance(value, Variant):
        if value.json is not None:
            return value.json
        return value.tag if value.payload is None else {value.tag: _json(value.payload, depth + 1, spend)}
    raise Failed("a block has no form in JSON: answer data, or print the literal")


def reckoned(value: Value, seen: set[int], depth: int = 0) -> int:
    """About how many bytes a value keeps alive, counting what is shared once."""
    if id(value) in seen or depth > 4 * NESTING:
        return 0
    if isinstance(value, str):
        return len(value)
    if isinstance(value, tuple):
        seen.add(id(value))
        return sum(16 + reckoned(element, seen, depth + 1) for element in value)
    if isinstance(value, Record | Map):
        seen.add(id(value))
        entries = value.fields if isinstance(value, Record) else value.entries
        return sum(32 + len(key) + reckoned(entry, seen, depth + 1) for key, entry in entries.items())
    if isinstance(value, Variant) and value.payload is not None:
        return 32 + reckoned(value.payload, seen, depth + 1)
    return 16
