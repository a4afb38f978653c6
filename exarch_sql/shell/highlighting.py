"""What each stretch of a door text is, from the door's own lexer: for colours, in what is typed and in what is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from exarch_sql.door.lexer import KEYWORDS, STARTS, Lexer
from exarch_sql.door.limits import Limits, Meter
from exarch_sql.door.refusals import DoorRefused, Malformed

if TYPE_CHECKING:
    from collections.abc import Iterator

Role = Literal["", "keyword", "command", "name", "tag", "field", "text", "number", "comment", "error"]
Fragment = tuple[Role, str]

HIGHLIGHTED_CHARS = 100_000  # a longer text is left plain: it would be read anew at each key

_ROLES: dict[str, Role] = {
    **dict.fromkeys(KEYWORDS.values(), "keyword"),
    **dict.fromkeys(("INT", "FLOAT", "BOOL", "UNIT"), "number"),
    **dict.fromkeys(("TEXT", "CHUNK", "DQ_OPEN", "DQ_CLOSE"), "text"),
    "VARIABLE": "name",
    "TAG": "tag",
    "NOT": "keyword",
}


def fragments(text: str) -> list[Fragment]:
    """The text in stretches, each with its role; together they are the text.

    From where it cannot be read on it is an error, unless more text may mend it.
    """
    if len(text) > HIGHLIGHTED_CHARS:
        return [("", text)]
    found: list[Fragment] = []
    at = 0
    for start, end, role in _spans(text):
        if start > at:
            found += _between(text[at:start])
        found.append((role, text[start:end]))
        at = end
    return found + _between(text[at:]) if at < len(text) else found


def _spans(text: str) -> Iterator[tuple[int, int, Role]]:
    """Where tokens are, and what; a word before a colon is a field, one that begins a statement a command."""
    held: tuple[int, int, Role] | None = None  # a word, until it is seen what follows
    before = ""
    in_params = False  # between the bars of a block, where words are names
    try:
        for token in Lexer(text, Meter(Limits())).tokens():
            if held is not None:
                yield (*held[:2], "field") if token.kind == "_COLON" else held
                held = None
            if token.kind == "WORD":
                held = (token.start, token.end, "command" if before in STARTS and not in_params else "")
            elif token.kind in _ROLES:
                yield token.start, token.end, _ROLES[token.kind]
            in_params = before == "LBRACE" if token.kind == "_BAR" else in_params
            before = token.kind
    except DoorRefused as error:
        if held is not None:
            yield held
        yield from _rest(text, error)
    else:
        if held is not None:
            yield held


def _rest(text: str, error: DoorRefused) -> Iterator[tuple[int, int, Role]]:
    """What stands from the place of a refusal on: a string that is still open, or what cannot be read."""
    if error.span is None:
        return
    start = error.span[0]
    if not (isinstance(error, Malformed) and error.incomplete):
        yield start, len(text), "error"
    elif text[start] in "'#":  # a raw string: its token never came
        yield start, len(text), "text"


def _between(text: str) -> list[Fragment]:
    """What stands between two tokens: blanks, comments and signs."""
    mark = text.find("#")
    if mark < 0:
        return [("", text)]
    end = text.find("\n", mark)
    if end < 0:
        return [("", text[:mark]), ("comment", text[mark:])]
    return [("", text[:mark]), ("comment", text[mark:end]), *_between(text[end:])]
