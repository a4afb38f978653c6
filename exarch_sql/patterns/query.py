"""Boolean queries over trigrams: what a text must contain before a pattern can match in it.

A query is a necessary condition, never a sufficient one: dropping a part of an ``And``, or widening the whole to
``ANYTHING``, keeps it true. The constructors ``all_of`` and ``any_of`` use that to stay small whatever they are given.
Trigrams are three folded code points (see ``folding``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

# An FTS5 expression of 256 trigrams is parsed in well under a millisecond; one of thousands costs more than it saves.
MAX_TRIGRAMS = 256
# Every further trigram of an And is one more list of rows to walk, and neighbours in a literal say much the same.
MAX_PER_LITERAL = 12


class Query:
    """A condition on the set of a text's folded trigrams; one of the six kinds below."""

    __slots__ = ()

    @property
    def size(self) -> int:
        """How many trigrams the query names."""
        match self:
            case And(parts) | Or(parts):
                return sum(part.size for part in parts)
            case _:
                return int(isinstance(self, Trigram))

    def holds(self, trigrams: AbstractSet[str]) -> bool:
        """Whether a text with exactly these folded trigrams satisfies the query."""
        match self:
            case Trigram(text):
                return text in trigrams
            case And(parts):
                return all(part.holds(trigrams) for part in parts)
            case Or(parts):
                return any(part.holds(trigrams) for part in parts)
            case _:
                return isinstance(self, Anything)

    def to_fts5(self) -> str | None:
        """The right side of ``MATCH`` for a trigram table, even of ``detail=none``; None when there is no filter."""
        match self:
            case Trigram(text):
                return '"' + text.replace('"', '""') + '"'
            case And(parts):
                return "(" + " AND ".join(filter(None, (part.to_fts5() for part in parts))) + ")"
            case Or(parts):
                return "(" + " OR ".join(filter(None, (part.to_fts5() for part in parts))) + ")"
            case _:
                return None if isinstance(self, Anything) else '""'


@dataclass(frozen=True, slots=True)
class Anything(Query):
    """Always true: no filter is known."""


@dataclass(frozen=True, slots=True)
class Nothing(Query):
    """Never true: no line can match, as when a pattern asks for a line feed."""


@dataclass(frozen=True, slots=True)
class Trigram(Query):
    """True of a text in which these three folded code points stand side by side."""

    text: str


@dataclass(frozen=True, slots=True)
class And(Query):
    """All parts hold. At least two parts, none an And, Anything or Nothing; made by ``all_of``."""

    parts: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class Or(Query):
    """Some part holds. At least two parts, none an Or, Anything or Nothing; made by ``any_of``."""

    parts: tuple[Query, ...]


ANYTHING = Anything()
NOTHING = Nothing()


def all_of(queries: Iterable[Query]) -> Query:
    """The conjunction, kept to ``MAX_TRIGRAMS`` by leaving out parts that do not fit; small parts are kept first."""
    parts: dict[Query, None] = {}
    for query in queries:
        if isinstance(query, Nothing):
            return NOTHING
        if not isinstance(query, Anything):
            parts.update(dict.fromkeys(query.parts if isinstance(query, And) else (query,)))
    kept: list[Query] = []
    room = MAX_TRIGRAMS
    for part in sorted(parts, key=lambda part: part.size):
        room -= part.size
        if room < 0:
            break
        kept.append(part)
    return _joined(kept, And, ANYTHING)


def any_of(queries: Iterable[Query]) -> Query:
    """The disjunction, or ``ANYTHING`` when it would name more than ``MAX_TRIGRAMS`` trigrams."""
    parts: dict[Query, None] = {}
    for query in queries:
        if isinstance(query, Anything):
            return ANYTHING
        if not isinstance(query, Nothing):
            parts.update(dict.fromkeys(query.parts if isinstance(query, Or) else (query,)))
    if sum(part.size for part in parts) > MAX_TRIGRAMS:
        return ANYTHING
    return _joined(list(parts), Or, NOTHING)


def _joined(parts: list[Query], join: type[And] | type[Or], none: Query) -> Query:
    if not parts:
        return none
    return parts[0] if len(parts) == 1 else join(tuple(parts))


def containing_one_of(texts: AbstractSet[str]) -> Query:
    """True of a text that contains one of these folded texts; those of fewer than three code points require nothing."""
    if any(len(text) < 3 for text in texts):
        return ANYTHING
    needs = [_spread(text) for text in sorted(texts)]
    if not needs:
        return NOTHING
    shared = set(needs[0]).intersection(*needs[1:])
    common = all_of(Trigram(trigram) for trigram in needs[0] if trigram in shared)
    rest = any_of(all_of(Trigram(trigram) for trigram in need if trigram not in shared) for need in needs)
    return all_of((common, rest))


def _spread(text: str) -> list[str]:
    """At most ``MAX_PER_LITERAL`` trigrams of the text, evenly placed, its first and last among them."""
    last = len(text) - 3
    if last < MAX_PER_LITERAL:
        places: Iterable[int] = range(last + 1)
    else:
        places = (round(step * last / (MAX_PER_LITERAL - 1)) for step in range(MAX_PER_LITERAL))
    return [text[place : place + 3] for place in places]
