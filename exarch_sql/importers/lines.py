"""Bytes to objects, one line at a time, whatever the bytes are.

Transcripts are JSON Lines only in principle: lines are cut short, two objects share a line, text is cut in the middle
of a surrogate pair or of a UTF-8 sequence, comments stand before the first object. Every such line comes out as the
objects that are whole and a :class:`Damage` that keeps the rest. The memory used is that of the longest line, and a
line longer than ``LONGEST_LINE`` is not held but measured.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_LINE = 256 * 1024 * 1024
DEEPEST = 500  # levels of nesting taken; encoders fail within twice that, each at a depth of its own
KEPT_BYTES = 8 * 1024  # what a witness record keeps of one line
_STEP = 1024 * 1024
_UNREADABLE = (ValueError, RecursionError)  # json and msgspec derive their errors from ValueError


class Damage(msgspec.Struct, frozen=True):
    """What of a line could not be taken. ``length`` and ``sha256`` are of the whole line, ``text`` is its beginning."""

    what: str
    length: int
    sha256: str
    text: str

    def body(self) -> dict[str, Any]:
        """The body of the witness record."""
        return {"damage": self.what, "bytes": self.length, "sha256": self.sha256, "text": self.text}


class Line(msgspec.Struct, frozen=True):
    """One line without its line feed. ``ended``: whether it had one. ``oversize``: what stands for a line not held."""

    offset: int
    raw: bytes
    ended: bool
    oversize: Damage | None = None


class Parsed(msgspec.Struct, frozen=True):
    """The objects of a line that are whole, the damage, and whether the line breaks off before its end."""

    objects: tuple[dict[str, Any], ...]
    damage: Damage | None = None
    cut_short: bool = False


def lines(file: BinaryIO, longest: int = LONGEST_LINE) -> Iterator[Line]:
    """The lines of a file from where it stands; offsets count from there."""
    offset = 0
    while raw := file.readline(longest + 1):
        if len(raw) > longest and not raw.endswith(b"\n"):
            line = _measured(file, offset, raw)
            offset += line.oversize.length if line.oversize else 0
        else:
            ended = raw.endswith(b"\n")
            line = Line(offset, raw[:-1] if ended else raw, ended)
            offset += len(raw)
        yield line


def _measured(file: BinaryIO, offset: int, head: bytes) -> Line:
    """A line that is not held: read through to its end for its length and hash."""
    digest, length, chunk = hashlib.sha256(head), len(head), head
    while not chunk.endswith(b"\n") and (chunk := file.readline(_STEP)):
        digest.update(chunk)
        length += len(chunk)
    damage = Damage("a line too long to hold", length, digest.hexdigest(), _shown(head[:KEPT_BYTES]))
    return Line(offset, b"", ended=chunk.endswith(b"\n"), oversize=damage)


def parse(raw: bytes) -> Parsed:
    """The objects on a line. A blank line has none and no damage."""
    if not raw.strip(b" \t\r\n"):
        return Parsed(())
    try:
        value = msgspec.json.decode(raw)
    except _UNREADABLE:
        return _salvage(raw)
    if not isinstance(value, dict):
        return Parsed((), damage("no object", raw))
    if raw.count(b"[") + raw.count(b"{") > DEEPEST and _too_deep(value):
        return Parsed((), damage("nested too deep", raw))
    return Parsed((value,))


def damage(what: str, raw: bytes) -> Damage:
    """What a witness record keeps of a line."""
    return Damage(what, len(raw), hashlib.sha256(raw).hexdigest(), _shown(raw[:KEPT_BYTES]))


def _shown(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _salvage(raw: bytes) -> Parsed:
    """The slow way: every whole object from the left, exact where JSON is, and what is wrong with the rest."""
    try:
        text, what = raw.decode("utf-8-sig"), None
    except UnicodeDecodeError:
        text, what = raw.decode("utf-8-sig", "replace"), "invalid UTF-8"
    found: list[dict[str, Any]] = []
    cut_short = False
    at = _after_blanks(text, 0)
    while at < len(text) and not cut_short:
        try:
            value, end = _LENIENT.raw_decode(text, at)
        except _UNREADABLE:
            what, cut_short = what or ("a comment" if text.startswith("//", at) else "no JSON"), True
            continue
        if isinstance(value, dict) and not _too_deep(value):
            found.append(value)
        else:
            what = what or ("nested too deep" if isinstance(value, dict) else "no object")
        at = _after_blanks(text, end)
    if not found:
        what = what or "no JSON"
    return Parsed(tuple(found), damage(what, raw) if what else None, cut_short)


def _too_deep(value: Any) -> bool:
    """Whether a value nests deeper than ``DEEPEST`` levels."""
    level = [value]
    for _ in range(DEEPEST):
        inner = [item for outer in level for item in (outer.values() if isinstance(outer, dict) else outer)]
        level = [item for item in inner if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _finite(text: str) -> float | str:
    """A number beyond a double stays the text it was: JSON cannot write an infinity."""
    value = float(text)
    return value if math.isfinite(value) else text


_BLANKS = re.compile(r"[ \t\r\n]*")
_LENIENT = json.JSONDecoder(parse_float=_finite, parse_constant=str)
