"""What callers hand over, checked before anything is done: a number of the wrong kind is refused in words, not by a TypeError."""

from __future__ import annotations

import os

from exarch_sql.errors import Refused

LONGEST = 1_000_000.0  # seconds that a wait or a search may be given; SQLite counts milliseconds in 31 bits


def whole(value: object, name: str) -> int:
    """A whole number that is not negative. Raises Refused."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Refused(f"{name} is a whole number, 0 or more; got {value!r}")
    return value


def seconds(value: object, name: str) -> float:
    """A number of seconds from 0 to a million. Raises Refused."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST:
        raise Refused(f"{name} is a number of seconds, from 0 to {LONGEST:,.0f}; got {value!r}")
    return float(value)


def path(value: object) -> str:
    """A path as text. Raises Refused for what is none, or none that the system can write."""
    if not isinstance(value, str | bytes | os.PathLike):
        raise Refused(f"a path is text or a Path; got {value!r}")
    name = os.fsdecode(value)
    try:
        os.fsencode(name)
    except UnicodeEncodeError as error:
        raise Refused(f"{name!a} is no path: it holds half surrogates") from error
    return name
