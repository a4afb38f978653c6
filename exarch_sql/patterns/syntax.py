"""Reads a pattern RE2 has accepted, by ``grammar/pattern.lark``.

``interpret`` folds the pattern bottom-up into the values of an ``Algebra``, so that what a pattern *means* for some
purpose is written without knowing how it is spelled; ``tokens`` is for those who respell it. Neither recurses: a
pattern may nest as deep as RE2 lets it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from lark import Lark, Token, Transformer_NonRecursive, Tree
from lark.exceptions import LarkError

from exarch_sql.resources import text as resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

T = TypeVar("T")
_ESCAPES = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_SETS = {
    "\\d": "0123456789",
    "[:digit:]": "0123456789",
    "\\s": "\t\n\f\r ",
    "[:space:]": "\t\n\v\f\r ",
    "[:blank:]": "\t ",
}
_RANGE_LIMIT = 64  # code points; a class of more is read as any character


class Algebra(Protocol[T]):
    """What each construct of a pattern means, given what its parts mean."""

    def literal(self, char: str) -> T:
        """One character, under whatever flags stand there."""

    def choice(self, chars: frozenset[str]) -> T:
        """One character out of a few."""

    def unknown(self) -> T:
        """Text of any content and length."""

    def nowhere(self) -> T:
        """Nothing consumed: an assertion, or an empty pattern."""

    def sequence(self, parts: Sequence[T]) -> T:
        """One after the other."""

    def either(self, parts: Sequence[T]) -> T:
        """One of several."""

    def repeated(self, part: T, low: int, high: int | None) -> T:
        """From ``low`` to ``high`` times in a row; None is without end."""


@cache
def _parser() -> Lark:
    return Lark(resource("grammar/pattern.lark"), parser="lalr", lexer="contextual", maybe_placeholders=False)


def _tree(pattern: str) -> Tree[Token] | None:
    try:
        return _parser().parse(pattern)
    except LarkError:
        return None


def interpret(pattern: str, algebra: Algebra[T]) -> T:
    """The pattern's meaning in the algebra; ``unknown`` where the grammar cannot read what RE2 accepts."""
    tree = _tree(pattern)
    if tree is None:
        return algebra.unknown()
    result: T = _Interpreter(algebra).transform(tree)
    return result


class _Interpreter(Transformer_NonRecursive, Generic[T]):  # type: ignore[type-arg] # takes none at run time
    """Calls the algebra from the leaves up. A quotation is several values, of which an operator takes only the last."""

    def __init__(self, algebra: Algebra[T]) -> None:
        super().__init__()
        self._algebra = algebra

    def start(self, children: list[T]) -> T:
        return children[0]

    def alternation(self, children: list[Any]) -> T:
        return children[0] if len(children) == 1 else self._algebra.either(children)

    def concatenation(self, children: list[Any]) -> T:
        parts = [part for child in children if isinstance(child, tuple) for part in child]
        if not parts:
            return self._algebra.nowhere()
        return parts[0] if len(parts) == 1 else self._algebra.sequence(parts)

    def item(self, children: list[Any]) -> tuple[T, ...]:
        *before, last = self._atom(children[0])
        for operator in children[1:]:
            if operator.type == "REPEAT":
                last = self._algebra.repeated(last, *_bounds(operator))
        return (*before, last)

    def _atom(self, atom: Any) -> list[T]:
        if not isinstance(atom, Token):
            return [atom]
        if atom.type in {"CHAR", "CODE"}:
            return [self._algebra.literal(_char(atom))]
        if atom.type == "QUOTE":
            return [self._algebra.literal(char) for char in atom[2:].removesuffix("\\E")]
        if atom.type == "ASSERTION":
            return [self._algebra.nowhere()]
        return [self._algebra.choice(frozenset(_SETS[atom])) if atom in _SETS else self._algebra.unknown()]

    def group(self, children: list[Any]) -> T:
        inner: T = children[1]
        return inner

    def bracket(self, children: list[Token]) -> T:
        chars = None if children[0] == "[^" else _members(children[1:])
        return self._algebra.unknown() if chars is None else self._algebra.choice(chars)


def _bounds(operator: str) -> tuple[int, int | None]:
    """The least and the greatest count of a repetition operator; None is without end."""
    simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
    if operator[0] in simple:
        return simple[operator[0]]
    low, comma, high = operator.rstrip("?")[1:-1].partition(",")
    if not comma:
        return int(low), int(low)
    return int(low), int(high) if high else None


def _char(spelled: str) -> str:
    """The character an escape or a plain character stands for."""
    if spelled[0] != "\\" or len(spelled) == 1:
        return spelled
    body = spelled[1:]
    if body[0] == "x":
        return chr(int(body[1:].strip("{}"), 16))
    if body[0].isdigit():
        return chr(int(body, 8))
    return _ESCAPES.get(body, body)


def _members(tokens: Iterable[Token]) -> frozenset[str] | None:
    """The characters of a class that is not negated; None when they are many, or not known here."""
    chars: set[str] = set()
    for token in tokens:
        if token.type == "SET":
            if token not in _SETS:
                return None
            chars.update(_SETS[token])
        elif token.type in {"RANGE", "FIRST_RANGE"}:
            low, high = _ends(token)
            if high - low >= _RANGE_LIMIT:
                return None
            chars.update(map(chr, range(low, high + 1)))
        else:
            chars.add(_char(token))
    return frozenset(chars) if len(chars) <= _RANGE_LIMIT else None


def _ends(spelled: str) -> tuple[int, int]:
    """The code points of both ends of a class range; only the lower end may itself be a ``-``, escaped or not."""
    dash = spelled.index("-", 2 if spelled.startswith("\\-") else 1)
    return ord(_char(spelled[:dash])), ord(_char(spelled[dash + 1 :]))


def tokens(pattern: str) -> list[Token] | None:
    """The tokens outside classes, in the order they are written; None where the grammar cannot read the pattern."""
    tree = _tree(pattern)
    if tree is None:
        return None
    outside = (subtree for subtree in tree.iter_subtrees() if subtree.data != "bracket")
    found = (child for subtree in outside for child in subtree.children if isinstance(child, Token))
    return sorted(found, key=lambda token: token.start_pos or 0)
