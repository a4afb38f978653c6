"""How long a search may take: looked at every few milliseconds, so that a search ends with an answer or a refusal in time."""

from __future__ import annotations

import time

from exarch_sql.errors import Refused


class Spent(Exception):
    """The time is up. A signal within this package."""


class Budget:
    """A deadline. ``tick`` is called again and again by whatever takes time."""

    def __init__(self, seconds: float) -> None:
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds > 0:
            raise Refused(f"a search needs some time: seconds is a positive number, got {seconds!r}")
        self.seconds = seconds
        self._deadline = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds left; negative when they are spent."""
        return self._deadline - time.monotonic()

    def tick(self) -> None:
        """Raise Spent past the deadline."""
        if time.monotonic() > self._deadline:
            raise Spent
