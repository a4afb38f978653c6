"""The tree of a door program: frozen nodes, their spans outside equality, so that tests compare trees directly.

A span is a pair of character offsets into the source, the second past the end. Nodes are in reading order: statements,
atoms, expressions, patterns. What the language has two spellings for (``$x`` and ``$(x)``, ``[k]`` and ``['k']``, a splice
``$[$x]`` and ``$x``) has one node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from exarch_sql.door.refusals import Span

NOWHERE: Span = (0, 0)


class Node(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Anything that stands at a place in the source. Two nodes are equal when all but their places are."""

    span: Span = NOWHERE

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.contents() == other.contents()

    def __hash__(self) -> int:
        return hash((type(self), *self.contents()))

    def contents(self) -> tuple[object, ...]:
        """What it is made of, in reading order, without its span."""
        return tuple(getattr(self, name) for name in self.__struct_fields__ if name != "span")


# --- statements -----------------------------------------------------------------------------------------------------


class Program(Node, frozen=True, eq=False):
    """Statements in order; the value is the last one's."""

    statements: tuple[Statement, ...]


class Let(Node, frozen=True, eq=False):
    """``let PATTERN = STAGE``."""

    pattern: Pattern
    value: Stage


class Command(Node, frozen=True, eq=False):
    """A head applied to arguments; with none, the head's own value."""

    head: Atom
    args: tuple[Atom | Spread, ...] = ()


class Return(Node, frozen=True, eq=False):
    """``return ATOM``: the atom's value, not an early exit."""

    value: Atom | None = None


class Case(Node, frozen=True, eq=False):
    """``case ATOM [ARM, ...]``."""

    subject: Atom
    arms: tuple[Arm, ...]


class Arm(Node, frozen=True, eq=False):
    """```` `tag: BODY ````; the body is a block or names a function, and is given the payload."""

    tag: str
    body: Atom


# --- atoms ----------------------------------------------------------------------------------------------------------


class UnitLiteral(Node, frozen=True, eq=False):
    """``()``."""


class Bool(Node, frozen=True, eq=False):
    """``true`` or ``false``."""

    value: bool


class Int(Node, frozen=True, eq=False):
    """A 64-bit integer."""

    value: int


class Float(Node, frozen=True, eq=False):
    """A finite number with a point."""

    value: float


class Text(Node, frozen=True, eq=False):
    """A string of any form that holds no splice."""

    value: str


class Word(Node, frozen=True, eq=False):
    """A bare word: a name at the head of a command, text elsewhere."""

    value: str


class Template(Node, frozen=True, eq=False):
    """A double-quoted string with splices: its texts and atoms in order."""

    parts: tuple[str | Operand, ...]


class Variable(Node, frozen=True, eq=False):
    """``$name``."""

    name: str


class Index(Node, frozen=True, eq=False):
    """``base[key]...``; a bare or quoted key is a Text, a position an Int, anything else is computed."""

    base: Atom
    keys: tuple[Atom, ...]


class Force(Node, frozen=True, eq=False):
    """``!block``."""

    body: Atom


class Tag(Node, frozen=True, eq=False):
    """```` `label ````, with the atom after it as payload."""

    label: str
    payload: Atom | None = None


class Block(Node, frozen=True, eq=False):
    """``{ |p q| statements }``."""

    params: tuple[Pattern, ...]
    body: tuple[Statement, ...]


class Spread(Node, frozen=True, eq=False):
    """``...atom``."""

    value: Atom


class ListOf(Node, frozen=True, eq=False):
    """``[a, ...b]``."""

    items: tuple[Atom | Spread, ...]


class Entry(Node, frozen=True, eq=False):
    """``key: value``; a bare or quoted key is a Text, ``$k`` a Variable."""

    key: Text | Variable
    value: Atom


class RecordOf(Node, frozen=True, eq=False):
    """``[a: 1]``, or ``[...base, a: 1]``: an update of fields the base has."""

    base: Atom | None
    entries: tuple[Entry, ...]


class MapOf(Node, frozen=True, eq=False):
    """``[:, a: 1]``, or any collection with a computed key."""

    entries: tuple[Entry | Spread, ...]


# --- expressions: inside $[...], one class a precedence level, flat -------------------------------------------------


class Either(Node, frozen=True, eq=False):
    """``a || b``."""

    terms: tuple[Operand, ...]


class Both(Node, frozen=True, eq=False):
    """``a && b``."""

    terms: tuple[Operand, ...]


class Compare(Node, frozen=True, eq=False):
    """``a < b``; comparisons do not chain."""

    left: Operand
    sign: str
    right: Operand


class Sum(Node, frozen=True, eq=False):
    """``first`` and then each ``(sign, term)``, from the left."""

    first: Operand
    rest: tuple[tuple[str, Operand], ...]


class Product(Node, frozen=True, eq=False):
    """``first`` and then each ``(sign, factor)``, from the left."""

    first: Operand
    rest: tuple[tuple[str, Operand], ...]


class Negate(Node, frozen=True, eq=False):
    """``-a``."""

    operand: Operand


class Not(Node, frozen=True, eq=False):
    """``not a``."""

    operand: Operand


# --- patterns -------------------------------------------------------------------------------------------------------


class Bind(Node, frozen=True, eq=False):
    """A name takes the value."""

    name: str


class Ignore(Node, frozen=True, eq=False):
    """``_``."""


class ListPattern(Node, frozen=True, eq=False):
    """``[a, b]`` wants exactly so many; ``[a, ...rest]`` at least."""

    items: tuple[Pattern, ...]
    rest: str | None = None


class RecordPattern(Node, frozen=True, eq=False):
    """``[key: pattern]``: the record may have more fields."""

    fields: tuple[tuple[str, Pattern], ...]


Pattern: TypeAlias = Bind | Ignore | ListPattern | RecordPattern
Stage: TypeAlias = Command | Return | Case
Statement: TypeAlias = Let | Stage
Expression: TypeAlias = Either | Both | Compare | Sum | Product | Negate | Not
Scalar: TypeAlias = UnitLiteral | Bool | Int | Float | Text | Word
Atom: TypeAlias = Scalar | Template | Variable | Index | Force | Tag | Block | ListOf | RecordOf | MapOf | Expression
Operand: TypeAlias = Atom


def outline(node: object) -> str:
    """A tree as one s-expression without spans: what the corpora hold and ``.explain`` shows."""
    if isinstance(node, Node):
        return f"({' '.join([type(node).__name__, *map(outline, node.contents())])})"
    if isinstance(node, tuple):
        return f"[{' '.join(outline(each) for each in node)}]"
    return repr(node)


def names_of(pattern: Pattern) -> list[str]:
    """The names a pattern binds, in order."""
    if isinstance(pattern, Bind):
        return [pattern.name]
    if isinstance(pattern, ListPattern):
        inner = [name for item in pattern.items for name in names_of(item)]
        return [*inner, pattern.rest] if pattern.rest else inner
    if isinstance(pattern, RecordPattern):
        return [name for _, item in pattern.fields for name in names_of(item)]
    return []
