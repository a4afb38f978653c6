r"""A pattern compiled by RE2, applied to one line at a time and yet run over whole texts.

Lines are what is left when a text is split at each LF, one CR before it dropped, with no empty line after the last LF.
A text is searched in one go by a respelling of the pattern (``respelling.over_lines``) that matches exactly where the
pattern matches in some line alone, so that most of a search is one call into RE2 a megabyte.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import re2

from exarch_sql.errors import Refused
from exarch_sql.patterns import refusing
from exarch_sql.patterns.folding import searchable, utf8
from exarch_sql.patterns.respelling import over_lines

if TYPE_CHECKING:
    from exarch_sql.patterns.query import Query

K = TypeVar("K")
Tick = Callable[[], object]

MAX_PATTERN_BYTES = 4096
MAX_MEMORY_BYTES = 8 << 20  # for RE2's program and the automata it builds as it goes
MAX_INSTRUCTIONS = 10_000
# RE2's slowest matcher was measured at about 5 ns an instruction and byte; a call is cut to this long, if lines allow.
_CALL_NS = 50_000_000
_STEP_NS = 5
_CALL_BYTES = (4 << 10, 1 << 20)


def compile_pattern(pattern: str) -> Pattern:
    """The pattern, ready to search; the empty one is allowed and matches every line.

    Raises Refused for what RE2 refuses, for more than ``MAX_PATTERN_BYTES`` of UTF-8, and for a program of more than
    ``MAX_INSTRUCTIONS``. A lone surrogate stands for U+FFFD, as it does in the texts.
    """
    if not isinstance(pattern, str):
        raise Refused(f"a pattern is text, got {type(pattern).__name__}: write it in quotes, as 'FAILED'")
    pattern = searchable(pattern)
    size = len(pattern.encode())
    if size > MAX_PATTERN_BYTES:
        raise refusing.too_long(size, MAX_PATTERN_BYTES)
    return Pattern(pattern)


class Pattern:
    """One RE2 pattern. Safe to use from several threads; RE2 lets go of the interpreter while it searches.

    ``tick``, where taken, is called again and again while a text is searched, and gives the search up by raising an
    exception. It is called about every 50 ms at worst, unless a single line takes longer.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._line = _compiled(source, source)
        spelled = over_lines(source)
        self._text: Any = None if spelled is None else _compiled(spelled, source, over_lines=True)
        slowest = self._line.programsize * _STEP_NS
        low, high = _CALL_BYTES
        self._call_bytes = max(low, min(high, _CALL_NS // slowest))

    def __repr__(self) -> str:
        return f"Pattern({self.source!r})"

    def required(self) -> Query:
        """What the trigrams of every text with a matching line satisfy, in an index of ``indexable`` texts."""
        return self._required

    @cached_property
    def _required(self) -> Query:
        from exarch_sql.patterns.required import required  # noqa: PLC0415 - reading the grammar takes longer than a small search

        return required(self.source)

    def matches(self, text: str, tick: Tick | None = None) -> bool:
        """Whether some line of the text matches."""
        return next(self._hits(_lines(text), 0, tick), None) is not None

    def count(self, texts: Iterable[str], tick: Tick | None = None) -> int:
        """How many lines of the texts match, in all."""
        batches = self._batches((None, text) for text in texts)
        return sum(1 for batch in batches for _ in self._hits(batch.data(), 0, tick))

    def matching_lines(self, text: str, tick: Tick | None = None) -> Iterator[tuple[int, str]]:
        """Each matching line with its number from 1, in order; lone surrogates in it stand as U+FFFD."""
        data = _lines(text) or b""
        number, counted = 1, 0
        for place, end in self._hits(data if text else None, 0, tick):
            number += data.count(b"\n", counted, place)
            counted = place
            yield number, data[data.rfind(b"\n", 0, place) + 1 : end].decode()

    def sift(self, texts: Iterable[tuple[K, str]], tick: Tick | None = None) -> Iterator[K]:
        """The keys of the texts that have a matching line, in order.

        Small texts are searched many at a time: two to three times as fast for messages of some hundred bytes.
        """
        for batch in self._batches(texts):
            yield from self._sifted(batch, tick)

    def _batches(self, texts: Iterable[tuple[K, str]]) -> Iterator[_Batch[K]]:
        """The texts that have lines, joined as far as one call into RE2 goes."""
        batch = _Batch[K]()
        for key, text in texts:
            batch.add(key, _lines(text))
            if batch.size >= self._call_bytes:
                yield batch
                batch = _Batch[K]()
        if batch.keys:
            yield batch

    def _sifted(self, batch: _Batch[K], tick: Tick | None) -> Iterator[K]:
        data = batch.data()
        position = 0
        while position < batch.size:
            hit = next(self._hits(data, position, tick), None)
            if hit is None:
                return
            place = bisect_right(batch.starts, hit[0]) - 1
            yield batch.keys[place]
            position = batch.starts[place] + len(batch.pieces[place]) + 1

    def _hits(self, data: bytes | None, position: int, tick: Tick | None) -> Iterator[tuple[int, int]]:
        """For each matching line from ``position``, a line's start, on: where it first matches, and where it ends."""
        hits = self._in_one_line if self._text is None else self._in_lines
        while data is not None and position <= len(data):
            if tick is not None:
                tick()
            end = self._call_end(data, position)
            yield from hits(data, position, end)
            position = end + 1

    def _call_end(self, data: bytes, position: int) -> int:
        """Where the lines end that are searched between two ticks: as many as fit, but at least one."""
        if len(data) - position <= self._call_bytes and self._text is not None:
            return len(data)
        end = -1 if self._text is None else data.rfind(b"\n", position, position + self._call_bytes)
        if end < 0:
            end = data.find(b"\n", position)
        return len(data) if end < 0 else end

    def _in_lines(self, data: bytes, position: int, end: int) -> Iterator[tuple[int, int]]:
        line_end = -1
        for found in self._text.finditer(data, position, end):
            place = found.start()
            if place <= line_end:  # another match on the same line (see over_lines)
                continue
            line_end = data.find(b"\n", place, end)
            if line_end < 0:
                line_end = end
            yield place, line_end

    def _in_one_line(self, data: bytes, position: int, end: int) -> Iterator[tuple[int, int]]:
        if self._line.search(data[position:end]) is not None:
            yield position, end


class _Batch(Generic[K]):
    """Texts to be searched together: their lines, and where each text's start when they are joined by a LF."""

    def __init__(self) -> None:
        self.keys: list[K] = []
        self.pieces: list[bytes] = []
        self.starts: list[int] = []
        self.size = 0  # bytes, a joining LF for each text included

    def add(self, key: K, lines: bytes | None) -> None:
        if lines is None:
            return
        self.keys.append(key)
        self.pieces.append(lines)
        self.starts.append(self.size)
        self.size += len(lines) + 1

    def data(self) -> bytes:
        return b"\n".join(self.pieces)


def _lines(text: str) -> bytes | None:
    """The text's lines, joined by LF, as UTF-8; None when it has none (one empty line is ``b""``)."""
    if not text:
        return None
    data = utf8(text)
    if b"\r" in data:  # one byte is looked for ten times faster than two
        data = data.replace(b"\r\n", b"\n")
    return data.removesuffix(b"\n")


def _compiled(spelled: str, pattern: str, *, over_lines: bool = False) -> Any:
    """RE2's object for the spelling; Refused, quoting the pattern as it was given, where RE2 refuses."""
    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.log_errors = False
    options.never_capture = over_lines  # finding groups takes a slower matcher; without them RE2 also checks less
    options.never_nl = over_lines
    try:
        compiled = re2.compile(spelled.encode(), options)
    except re2.error as error:
        words = error.args[0]
        raise refusing.refusal(
            pattern, words.decode(errors="replace") if isinstance(words, bytes) else str(words)
        ) from None
    finally:
        re2.purge()  # its cache would keep the memory of the last 128 patterns; ours are searched with once
    if compiled.programsize > MAX_INSTRUCTIONS:
        raise refusing.too_complex(pattern, compiled.programsize, MAX_INSTRUCTIONS)
    return compiled
