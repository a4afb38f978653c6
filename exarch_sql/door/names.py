"""The nearest known name to one that is not known, for ``did you mean``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

NEAR = 2  # edits between a field and what was meant by it


def distance(left: str, right: str) -> int:
    """Damerau-Levenshtein distance with adjacent transpositions: insertions, deletions, replacements and swaps."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        last, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]


def nearest(name: str, known: Iterable[str], within: int | None = None) -> str | None:
    """The known name nearest to ``name``, then the first in the alphabet; None when none is ``within`` so many edits.

    By default a name of five letters may differ by two, of three by one, and a shorter one is not guessed at.
    """
    if len(name) > 64:
        return None
    allowed = within if within is not None else min(NEAR, (len(name) - 1) // 2)
    near = [(distance(name, each), each) for each in known if abs(len(each) - len(name)) <= allowed]
    best = min(near, default=(allowed + 1, ""))
    return best[1] if best[0] <= allowed else None
