"""Lines to texts: a line is a text for the shell, unless the door's own lexer or parser says that more must follow."""

from __future__ import annotations

import re

from exarch_sql.door import DoorRefused, Limits, Malformed, parser
from exarch_sql.door.lexer import Lexer
from exarch_sql.door.limits import Meter

DOTTED = re.compile(r"\s*\.[A-Za-z]")  # a command; .5 is a number


def wants_more(text: str) -> bool:
    """Whether a text only stops too soon: another line may end it. A command never does."""
    return not DOTTED.match(text) and _open_end(text) is not None


def _open_end(text: str) -> str | None:
    """What a text leaves open: the bracket or quote, or an empty text for a value that is missing; None when it is whole."""
    try:
        for _ in Lexer(text, Meter(Limits())).tokens():
            pass
        parser.parse(text)
    except Malformed as error:
        return text[slice(*error.span)] if error.incomplete and error.span else None
    except DoorRefused:
        return None
    return None


def _stays_open(opened: str, line: str) -> bool:
    """Whether a line leaves open what was open before it, and nothing more: the rest of the text need not be read for that."""
    try:
        for _ in Lexer(f"{opened}\n{line}", Meter(Limits())).tokens():
            pass
    except Malformed as error:
        return error.incomplete and error.span is not None and error.span[0] == 0
    except DoorRefused:
        return False
    return False


class Texts:
    """Texts out of lines, each given with its end."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._size = 0
        self._open = ""  # what the lines so far leave open

    def add(self, line: str) -> str | None:
        """The text that a line makes whole, or that can no longer become one; None while more must follow."""
        self._lines.append(line)
        self._size += len(line)
        if self._open and self._size <= Limits().source_bytes and _stays_open(self._open, line):
            return None
        text = "".join(self._lines)
        left_open = None if DOTTED.match(text) or self._size > Limits().source_bytes else _open_end(text)
        if left_open is None:
            return self.rest()
        self._lines, self._open = [text], left_open
        return None

    def rest(self) -> str:
        """What was given and is no whole text yet; it is forgotten here."""
        text = "".join(self._lines)
        self._lines, self._size, self._open = [], 0, ""
        return text
