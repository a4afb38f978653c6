r"""A filter for scans: one RE2 search over the JSON of many records, before any of it is decoded.

Most characters stand in JSON as themselves, so a pattern whose match may contain only such, with gaps for the rest, can be looked
for in the raw bytes. What it cannot vouch for goes through: a record with an escape that may spell any character, or with a tool's
result that is no text. A record that is left out holds no match; one that goes through is decoded and matched as always.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import re2

from exarch_sql.patterns import syntax

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from exarch_sql.search.stretches import Body

GAP = ".*"  # any text, within one record: records are joined by LF, and JSON escapes those within
MEMORY_BYTES = 8 << 20
# \u and \/ may spell any character. The text of a result that is an object, a number or a word is its JSON, written anew.
UNVOUCHED = (rb"\\[u/]", rb'"response"\s*:\s*[^"\[\s]')
WORTH = 0.5  # of the bytes; where more than this goes through, filtering costs more than it saves
TRIAL_BYTES = 8 << 20
# RE2 looks for a pattern that begins with a literal many times faster than for others, of which one takes as long as all in one.
_NO_LITERAL = frozenset("([.")
_SPECIAL = frozenset("\\.+*?()|[]{}^$")


class Sieve:
    """The filter for one pattern. It stops filtering by itself when too much goes through."""

    def __init__(self, searches: Sequence[Any]) -> None:
        self._searches = [compiled.search for compiled in searches]
        self._seen = self._passed = 0

    def sifted(self, batch: Sequence[Body]) -> Sequence[Body]:
        """The records of a batch that may hold a match, in order."""
        if self._seen > TRIAL_BYTES and self._passed > self._seen * WORTH:
            return batch
        data = b"\n".join(body for _, _, body in batch)
        starts = _starts(batch)
        kept = sorted({place for search in self._searches for place in _touched(search, data, starts)})
        self._seen += len(data)
        self._passed += sum(len(batch[place][2]) for place in kept)
        return [batch[place] for place in kept]


def sieve(pattern: str) -> Sieve | None:
    """The filter for a pattern RE2 accepts; None when there is none, as where a match may be of any text or of none."""
    raw = syntax.interpret(pattern, _Raw())
    if raw is None:
        return None
    folded = "(?i)" if "(?" in pattern else ""  # flags are not told apart: whoever may have set i, has
    wanted = (folded + raw).encode()
    try:
        compiled = _compiled(wanted)
        if compiled.search(b"") is not None:
            return None
        if not folded and raw[0] not in _NO_LITERAL:
            return Sieve([compiled, *map(_compiled, UNVOUCHED)])
        return Sieve([_compiled(b"|".join((wanted, *UNVOUCHED)))])
    except re2.error:
        return None


def _starts(batch: Sequence[Body]) -> list[int]:
    starts = []
    place = 0
    for _, _, body in batch:
        starts.append(place)
        place += len(body) + 1
    return starts


def _touched(search: Any, data: bytes, starts: list[int]) -> Iterator[int]:
    """The places of the records in which the search finds something."""
    position = 0
    while found := search(data, position):
        place = bisect_right(starts, found.start()) - 1
        yield place
        if place + 1 == len(starts):
            return
        position = starts[place + 1]


def _compiled(pattern: bytes) -> Any:
    options = re2.Options()
    options.max_mem = MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True
    options.never_nl = True
    return re2.compile(pattern, options)


class _Raw(syntax.Algebra["str | None"]):
    """The algebra of raw patterns: a pattern that is found in the JSON wherever the part matches; None for any text."""

    def literal(self, char: str) -> str | None:
        if not _plain(char):
            return None
        return "\\" + char if char in _SPECIAL else char

    def choice(self, chars: frozenset[str]) -> str | None:
        """A line holds no line feed, so a class may as well be without it."""
        wanted = sorted(chars - {"\n"})
        if not wanted or not all(map(_plain, wanted)):
            return None
        return "[" + "".join(f"\\x{{{ord(char):x}}}" for char in wanted) + "]"

    def unknown(self) -> str | None:
        return None

    def nowhere(self) -> str | None:
        return ""

    def sequence(self, parts: Sequence[str | None]) -> str | None:
        if all(part is None for part in parts):
            return None
        return "".join(GAP if part is None else part for part in parts)

    def either(self, parts: Sequence[str | None]) -> str | None:
        known = [part for part in parts if part is not None]
        return f"(?:{'|'.join(known)})" if len(known) == len(parts) else None

    def repeated(self, part: str | None, low: int, high: int | None) -> str | None:
        if part is None:
            return None
        return f"(?:{part}){{{low},{'' if high is None else high}}}"


def _plain(char: str) -> bool:
    r"""Whether JSON writes the character as itself, unless by \u or \/; U+FFFD also stands for what cannot be written."""
    return char >= " " and char not in '"\\\ufffd' and not "\ud800" <= char <= "\udfff"
