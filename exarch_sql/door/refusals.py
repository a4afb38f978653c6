"""How the door refuses: one class for each moment a line can fail, and a caret under the place.

A refusal is raised with a reason and, where known, a span of the line. :meth:`DoorRefused.placed` adds the source, after
which the message shows the offending line, a caret, and the line that would work. What a refusal quotes is made printable,
so neither a note nor a line can send control sequences to a terminal.
"""

from __future__ import annotations

import unicodedata
from typing import Self

from exarch_sql.errors import Refused

Span = tuple[int, int]
EXCERPT_CHARS = 100  # of a long line, what is shown around the caret
CORRECTION_CHARS = 4000  # of a corrected line in the message; the attribute carries it whole


class DoorRefused(Refused):
    """A line the door would not answer.

    ``reason`` is the first line of the message; ``line`` and ``column`` count from 1, in characters, and are None where no
    place is known; ``correction`` is a whole line that would work, and ``advice`` says what it changes.
    """

    def __init__(self, reason: str, span: Span | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span
        self.source: str | None = None
        self.path: tuple[str | int, ...] = ()
        self.line: int | None = None
        self.column: int | None = None
        self.correction: str | None = None
        self.advice = ""

    def placed(self, source: str, span: Span | None = None) -> Self:
        """The refusal itself, at ``span`` of ``source`` unless it has a place already."""
        if self.source is None:
            self.source = source
            self.span = self.span if self.span is not None else span
            if self.span is not None:
                self.line, self.column = place(source, self.span[0])
        return self

    def corrected(self, line: str, advice: str) -> Self:
        """The refusal itself, with a line that would work and what that line changes."""
        self.correction, self.advice = line, advice[:1].upper() + advice[1:]
        return self

    def __str__(self) -> str:
        shown = [self.reason]
        if self.source is not None and self.span is not None:
            shown += [f"line {self.line}, column {self.column}:", *excerpt(self.source, self.span[0])]
        if self.correction is not None:
            lines = visible(self.correction[:CORRECTION_CHARS], keep="\n").split("\n")
            shown += [f"{self.advice}; write:" if self.advice else "write:", *("    " + line for line in lines)]
        return "\n".join(shown)


class Malformed(DoorRefused):
    """The source is not a sentence of the door, or names what does not exist. Nothing of it ran.

    ``incomplete`` tells a prompt that the source only stops too soon: another line may end it.
    """

    def __init__(self, reason: str, span: Span | None = None, *, incomplete: bool = False) -> None:
        super().__init__(reason, span)
        self.incomplete = incomplete


class Failed(DoorRefused):
    """A statement failed as it ran. Names bound before it stay bound."""


class Overrun(DoorRefused):
    """A bound was met: size of the input, nesting, steps, time, or what was built or printed."""


def place(source: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1."""
    before = source[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def excerpt(source: str, offset: int) -> list[str]:
    """The line around ``offset``, indented, cut to a window, and a line with a caret under the place."""
    start = source.rfind("\n", 0, offset) + 1
    end = source.find("\n", offset)
    end = len(source) if end < 0 else end
    left = max(start, offset - EXCERPT_CHARS * 3 // 5)
    right = min(end, left + EXCERPT_CHARS)
    head, tail = visible(source[left:offset]), visible(source[offset:right])
    before = "…" if left > start else ""
    after = "…" if right < end else ""
    indent = sum(_width(char) for char in before + head)
    return [f"    {before}{head}{tail}{after}", "    " + " " * indent + "^"]


def visible(text: str, keep: str = "") -> str:
    """``text`` with each character a terminal would obey, or not show, replaced by one that can be seen."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else _picture(char) for char in text)


def _picture(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def _width(char: str) -> int:
    """How many terminal cells a shown character takes."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
