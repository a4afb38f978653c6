"""Says no to a pattern: what RE2 answered, and the line that would work."""

from __future__ import annotations

import re

from exarch_sql.errors import Refused

_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_SHOWN = 120  # characters of a pattern quoted in a refusal

_LOOK_AROUND = {
    "(?=": "look-ahead",
    "(?!": "negative look-ahead",
    "(?<=": "look-behind",
    "(?<!": "negative look-behind",
}
_LOOK_AROUND_FIX = (
    "a hit is a whole line, so write what stands on both sides as one pattern (for 'a(?=b)': 'ab'); "
    "to leave lines out, search for the ones wanted and filter the hits"
)
_BACK_REFERENCE_FIX = "write the repeated text out, or search for one side and filter the hits"

# What RE2 says, up to the piece of the pattern it quotes -> the fix. Looked up in order, by how the message starts.
_FIXES = (
    ("missing )", "close the group, or write '\\(' for the character itself"),
    ("unexpected )", "open the group, or write '\\)' for the character itself"),
    ("missing ]", "close the class, or write '\\[' for the character itself"),
    ("no argument for repetition operator", "put before it what it repeats, or a backslash"),
    ("bad repetition operator", "use one operator, or a group, '(?:a+)?'; possessive ones are not needed"),
    ("invalid repetition size", "repeat at most 1000 times in all, the smaller count first"),
    ("trailing \\", "write '\\\\' for a backslash"),
    ("invalid escape sequence: \\Z", "the end of the line is '$' or '\\z'"),
    ("invalid escape sequence: \\u", "a code point is written '\\x{1F600}'"),
    ("invalid escape sequence: \\U", "a code point is written '\\x{1F600}'"),
    ("invalid escape sequence", "write '\\\\' for a backslash; classes are \\d \\s \\w \\pL, assertions \\b \\B ^ $"),
    ("invalid character class range: [:", "the names are alnum alpha digit lower punct space upper word xdigit"),
    ("invalid character class range: \\", "a property has a capital letter: '\\pL', '\\p{Lu}', '\\p{Greek}'"),
    ("invalid character class range", "put the smaller end first, and a '-' meant as itself last: '[az-]'"),
    ("invalid named capture group", "a group is named once, by letters, digits and '_'; '(?:...)' needs no name"),
    ("invalid perl operator: (?>", "write '(?:...)': nothing backtracks, so there is nothing to cut"),
    ("invalid perl operator: (?#", "leave the comment out"),
    ("invalid perl operator", "groups are '(...)' and '(?:...)', flags '(?i)' '(?m)' '(?s)' '(?U)'"),
    ("pattern too large", "repeat less, or use a smaller class, as '\\w' for '\\pL'"),
)  # fmt: skip


def literally(text: str) -> str:
    """The pattern that finds this text and nothing else."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def refusal(pattern: str, words: str) -> Refused:
    """The refusal of a pattern RE2 does not take, in RE2's own words."""
    return Refused(f"pattern {_quoted(pattern)}: {_cut(words)}: {_fix(pattern, words)}")


def too_long(size: int, limit: int) -> Refused:
    """The refusal of a pattern of too many bytes of UTF-8."""
    return Refused(
        f"the pattern is {size:,} bytes, and {limit:,} is the most a search takes: search for a telling part of it"
    )


def too_complex(pattern: str, size: int, limit: int) -> Refused:
    """The refusal of a pattern whose program could take minutes over one long line."""
    return Refused(
        f"pattern {_quoted(pattern)}: it compiles to {size:,} instructions, and {limit:,} is the most a search takes: "
        "repeat less, or use a smaller class, as '\\w' for '\\pL'"
    )


def _quoted(pattern: str) -> str:
    return repr(_cut(pattern))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _fix(pattern: str, words: str) -> str:
    for opener, name in sorted(_LOOK_AROUND.items(), key=lambda item: -len(item[0])):
        if words.endswith(opener):
            return f"there is no look-around, and {opener!r} is {name}: {_LOOK_AROUND_FIX}"
    if re.search(r"escape sequence: \\[1-9kg]|operator: \(\?P$", words):
        return f"there are no back-references: {_BACK_REFERENCE_FIX}"
    for start, fix in _FIXES:
        if words.startswith(start):
            return fix + _as_text(pattern)
    return "the syntax is RE2's" + _as_text(pattern)


def _as_text(pattern: str) -> str:
    """The pattern that searches for the very text that was given, when it is short enough to be shown."""
    escaped = literally(pattern)
    return f"; as plain text it is {escaped}" if len(escaped) <= _SHOWN and escaped.isprintable() else ""
