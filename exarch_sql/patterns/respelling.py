r"""Respells a pattern so that a whole text can be searched at once, answering as a search of each line alone would.

To be compiled with RE2's ``never_nl``, which keeps a match from crossing a line feed. What is left is to make
``^ $ \A \z`` mean a line's ends, whatever flags are set; ``\b`` already takes a line feed for a text's end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lark import Token

# Most patterns have none of these and need not be read: \A, \z, a group with flags (it may switch m off), a quotation
# (it may be left open), and \C, one byte of any kind, which never_nl does not keep from taking a line feed.
_NEEDS_READING = re.compile(r"\\[AzCQ]|\(\?")
_FLAG_GROUP = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_ASSERTIONS = {r"\A": "(?m:^)", r"\z": "(?m:$)"}


def over_lines(pattern: str) -> str | None:
    r"""The pattern for a text of several lines; None where there is none, and lines must be taken one by one.

    A match runs on to its line's end, so that the next is most often found on another line. Not always: an empty match
    may follow at that end, and ``\B`` matches inside a character of several bytes, from where nothing can run on.
    """
    if not _NEEDS_READING.search(pattern):
        return f"(?m)(?:{pattern}).*"
    from exarch_sql.patterns.syntax import tokens  # noqa: PLC0415 - most searches do without the grammar

    found = tokens(pattern)
    if found is None or r"\C" in found:
        return None
    pieces = ["(?m)(?:"]
    done = 0
    for token in found:
        start = token.start_pos or 0
        pieces += (pattern[done:start], _respelled(token))
        done = start + len(token)
    return "".join((*pieces, pattern[done:], ").*"))


def _respelled(token: Token) -> str:
    if token.type in {"QUOTE", "NO_QUOTE"}:
        return token.removesuffix(r"\E") + r"\E"
    if token.type == "ASSERTION":
        return _ASSERTIONS.get(token, str(token))
    flags = _FLAG_GROUP.match(token) if token.type in {"OPEN", "FLAGS"} else None
    if flags is None:
        return str(token)
    off = (flags[2] or "").replace("m", "")
    return f"(?m{flags[1]}{'-' if off else ''}{off}{flags[3]}"
