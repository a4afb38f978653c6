"""The bounds a run of the door keeps, and the meter that counts against them.

Every loop of the evaluator spends steps, every list and text it builds spends bytes, and both look at the clock, so that no
line a model can type takes unbounded time or memory. What a verb itself costs is the log's own affair, but for a search, which is
given the time that is left.
"""

from __future__ import annotations

import time

import msgspec

from exarch_sql.door.refusals import Overrun

NESTING = 64  # open brackets, and of a value: a law of the language, so not a setting
INT_MIN, INT_MAX = -(2**63), 2**63 - 1
ITEM_BYTES = 16  # what one element of a list is reckoned at
CLOCK_STEPS = 256  # steps between two looks at the clock


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one run; ``held_bytes`` bounds what the names of one door keep between runs."""

    source_bytes: int = 1_048_576
    tokens: int = 250_000
    steps: int = 1_000_000
    calls: int = 60
    seconds: float = 5.0
    list_items: int = 100_000
    made_bytes: int = 64 * 1_048_576
    output_bytes: int = 16 * 1_048_576
    held_bytes: int = 128 * 1_048_576


class Meter:
    """What one run has spent. Each method raises :class:`Overrun` when its bound is met."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.made = 0
        self._steps = 0
        self._look = CLOCK_STEPS
        self._deadline = time.monotonic() + limits.seconds

    def step(self, count: int = 1) -> None:
        """One unit of work."""
        self._steps += count
        if self._steps > self.limits.steps:
            raise Overrun(f"the line ran for more than {self.limits.steps} steps: narrow it, or do it in several lines")
        if self._steps >= self._look:
            self._look = self._steps + CLOCK_STEPS
            self.clock()

    def left(self) -> float:
        """Seconds left, more than none. Raises when there are none."""
        self.clock()
        return max(self._deadline - time.monotonic(), 0.001)

    def clock(self) -> None:
        """Look at the time."""
        if time.monotonic() > self._deadline:
            raise Overrun(f"the line ran for more than {self.limits.seconds:g} s: narrow it, or do it in several lines")

    def make(self, size_bytes: int) -> None:
        """Something of about this size was built."""
        self.made += size_bytes
        if self.made > self.limits.made_bytes:
            raise Overrun(
                f"the line built more than {self.limits.made_bytes} bytes of values: narrow it with take or filter"
            )

    def items(self, count: int, what: str = "the list") -> None:
        """A list of ``count`` elements is about to be built."""
        if count > self.limits.list_items:
            raise Overrun(f"{what} would hold {count} elements: a list here holds at most {self.limits.list_items}")
        self.make(ITEM_BYTES * count)
