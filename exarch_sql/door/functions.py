"""What can be applied: a block with the names it closed over, a builtin, and either with some of its arguments given."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from exarch_sql.door import printer, tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from exarch_sql.door.evaluator import Evaluator
    from exarch_sql.door.values import Value

Pieces: TypeAlias = "tuple[tuple[str, Value | None], ...]"
FLAT_AT = 16  # scopes in a row before they are laid into one


class Scope:
    """Names to values; a let makes a new scope over the old, so a block keeps the names it was made under."""

    __slots__ = ("_depth", "_names", "_outer")

    def __init__(self, names: Mapping[str, Value], outer: Scope | None = None) -> None:
        self._depth: int = outer._depth + 1 if outer is not None else 0
        if outer is not None and self._depth > FLAT_AT:
            names, outer, self._depth = {**outer.flat(), **names}, None, 0
        self._names = names
        self._outer = outer

    def find(self, name: str) -> Value | None:
        """The value of a name, or None: no value of the language is None."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope._names:
                return scope._names[name]
            scope = scope._outer
        return None

    def flat(self) -> dict[str, Value]:
        """Every visible name."""
        outer = self._outer.flat() if self._outer is not None else {}
        return {**outer, **self._names}


class Closure(msgspec.Struct, eq=False):
    """A block as a value; ``source`` is the text its spans point into."""

    code: tree.Block
    scope: Scope
    source: str

    @property
    def arity(self) -> int:
        """How many parameters it names."""
        return len(self.code.params)

    def pieces(self) -> Pieces:
        """Its text, without what it closed over."""
        return ((printer.block(self.code), None),)


class Builtin(msgspec.Struct, frozen=True, eq=False):
    """A function of the prelude or a family of verbs. ``variadic`` ones take any number of arguments at once."""

    name: str
    arity: int
    call: Callable[[Evaluator, tuple[Value, ...]], Value]
    teaching: str
    variadic: bool = False

    def pieces(self) -> Pieces:
        """``$name``."""
        return ((f"${self.name}", None),)


class Partial(msgspec.Struct, frozen=True, eq=False):
    """A function that still wants arguments."""

    function: Closure | Builtin
    args: tuple[Value, ...]

    @property
    def arity(self) -> int:
        """How many are still wanted."""
        return self.function.arity - len(self.args)

    def pieces(self) -> Pieces:
        """The application that makes it again."""
        [(head, _)] = self.function.pieces()
        return ((f"!{{{head}", None), *((" ", arg) for arg in self.args), ("}", None))


FUNCTIONS = (Closure, Builtin, Partial)


def as_function(value: Value) -> Closure | Builtin | Partial | None:
    """The value as a function, or None."""
    return value if isinstance(value, FUNCTIONS) else None
