"""From a pattern to the trigrams every match of it must contain.

Each part of a pattern is summed up by what is known of the folded text it matches: either all the texts it can match,
while they are few (``exact``), or how that text starts and ends (two code points are enough, a trigram that crosses
into a neighbour reaches no further) and a query it satisfies. Parts are joined from the leaves up; where a set would
grow past its bound, what it says is moved into the query and the set is cut to its ends. This is how code search
engines do it, except that a character enters a set only by ``fold``, so that flags play no part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from exarch_sql.patterns import syntax
from exarch_sql.patterns.folding import fold
from exarch_sql.patterns.query import ANYTHING, Query, all_of, any_of, containing_one_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Texts = frozenset[str]

MAX_TEXTS = 24  # texts in one set
MAX_PAIRS = 48  # of an end and a start, at one seam
MAX_CODE_POINTS = 8192  # in all texts of one set
MAX_COPIES = 3  # of a repeated part; more would tell little more
_EMPTY: Texts = frozenset({""})


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the folded text a part of a pattern matches.

    ``starts`` and ``ends`` are the same set as ``exact`` where that is known; else of at most two code points each.
    """

    exact: Texts | None
    starts: Texts
    ends: Texts
    query: Query = ANYTHING


def required(pattern: str) -> Query:
    """What the text of every line in which RE2 finds the pattern satisfies; the pattern is one RE2 accepts."""
    return _opened(syntax.interpret(pattern, _Summing())).query


def _whole(texts: Texts) -> Facts:
    return Facts(texts, texts, texts)


_UNKNOWN = Facts(None, _EMPTY, _EMPTY)
_NOWHERE = _whole(_EMPTY)
_NEVER = _whole(frozenset())


class _Summing(syntax.Algebra[Facts]):
    """The algebra of facts."""

    def literal(self, char: str) -> Facts:
        return self.choice(frozenset({char}))

    def choice(self, chars: frozenset[str]) -> Facts:
        """No line holds a line feed, so a part that needs one never matches."""
        images = {fold(char) for char in chars if char != "\n"}
        known = frozenset(image for image in images if image is not None)
        if not images:
            return _NEVER
        return _whole(known) if len(known) == len(images) <= MAX_TEXTS else _UNKNOWN

    def unknown(self) -> Facts:
        return _UNKNOWN

    def nowhere(self) -> Facts:
        return _NOWHERE

    def sequence(self, parts: Sequence[Facts]) -> Facts:
        return reduce(_joined, parts)

    def either(self, parts: Sequence[Facts]) -> Facts:
        exact = frozenset[str]().union(*(part.exact or () for part in parts))
        if all(part.exact is not None for part in parts) and _fits(exact):
            return _whole(exact)
        opened = [_opened(part) for part in parts]
        return Facts(
            None,
            _starts([text for part in opened for text in part.starts]),
            _ends([text for part in opened for text in part.ends]),
            any_of(part.query for part in opened),
        )

    def repeated(self, part: Facts, low: int, high: int | None) -> Facts:
        if high == 0:
            return _NOWHERE
        if low == 0:
            return self.either((part, _NOWHERE)) if high == 1 else _UNKNOWN
        copies = self.sequence([part] * min(low, MAX_COPIES))
        return copies if low == high and low <= MAX_COPIES else _opened(copies)


def _joined(left: Facts, right: Facts) -> Facts:
    """One after the other: every pair of an end and a start, and the trigrams that lie across the seam."""
    if len(left.ends) * len(right.starts) > MAX_TEXTS:
        left, right = _opened(left), _opened(right)
    if len(left.ends) * len(right.starts) > MAX_PAIRS:
        return Facts(None, left.starts, right.ends, all_of((left.query, right.query)))
    across = frozenset(end + start for end in left.ends for start in right.starts)
    if left.exact is not None and right.exact is not None and _fits(across):
        return _whole(across)
    return Facts(
        None,
        left.starts if left.exact is None else _starts(across),
        right.ends if right.exact is None else _ends(across),
        all_of((left.query, right.query, containing_one_of(across))),
    )


def _fits(texts: Texts) -> bool:
    return len(texts) <= MAX_TEXTS and sum(map(len, texts)) <= MAX_CODE_POINTS


def _opened(facts: Facts) -> Facts:
    """The same part when its texts are no longer told apart: their trigrams become a query, their ends stay."""
    if facts.exact is None:
        return facts
    return Facts(None, _starts(facts.exact), _ends(facts.exact), containing_one_of(facts.exact))


def _starts(texts: Collection[str]) -> Texts:
    """How these texts start: two code points each, or fewer where that would be too many different ones."""
    for length in (2, 1):
        starts = {text[:length] for text in texts}
        # A start says nothing more where a shorter one is as possible.
        starts = {start for start in starts if not any(start[:shorter] in starts for shorter in range(len(start)))}
        if len(starts) <= MAX_TEXTS:
            return frozenset(starts)
    return _EMPTY


def _ends(texts: Collection[str]) -> Texts:
    """How these texts end, in the manner of ``_starts``."""
    return frozenset(end[::-1] for end in _starts([text[::-1] for text in texts]))
