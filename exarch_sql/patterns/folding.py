"""Which characters the two engines certainly agree on, and what the index makes of them.

The search index is FTS5's ``trigram`` tokenizer with ``case_sensitive 0``: each code point is replaced by its simple
case folding, from a table older than RE2's, and three neighbours make a token. RE2's ``(?i)`` uses Unicode's simple
folding too, from a newer table (so ``k`` also matches U+212A and ``s`` U+017F). ``fold`` answers only where all of
these agree: every code point RE2 could match for a letter, with or without ``(?i)``, then has one and the same image in
the index, so that flags need not be looked at to know a required trigram. ``tests/test_patterns_folding.py`` checks
that over every code point, against RE2 and the SQLite libraries at hand.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Letters of Unicode 9 that fold to old Cyrillic ones. FTS5 does not know them; the index holds the old letter instead,
# or every common letter they fold to would be uncertain.
_LATE_CYRILLIC = {0x1C80 + place: letter for place, letter in enumerate("вдосттъѣꙋ")}

# FTS5 of SQLite 3.40 stops at a NUL, and that of 3.54 skips it; both read U+FFFE and U+FFFF as U+FFFD.
_REPLACED = "\ufffd"
_SHARP_S = "ßẞ"  # the one pair whose full case folding is longer than its simple one, and that all tables have
_UNINDEXABLE = re.compile("[\x00\ud800-\udfff\ufffe\uffff\u1c80-\u1c88]")
_SURROGATES = re.compile("[\ud800-\udfff]")


def searchable(text: str) -> str:
    """The text as a search sees it: lone surrogates, which UTF-8 cannot carry, stand as U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub(_REPLACED, text)


def utf8(text: str) -> bytes:
    """The bytes of ``searchable(text)``."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return searchable(text).encode()


def indexable(text: str) -> str:
    """The text to hand the FTS5 tokenizer: what its versions read differently, or RE2 alone folds, is replaced.

    An index built from anything else is not covered by what ``Pattern.required`` promises.
    """
    if text.isascii() and "\0" not in text:
        return text
    return _UNINDEXABLE.sub(_image, text)


def _image(found: re.Match[str]) -> str:
    return _LATE_CYRILLIC.get(ord(found.group()), _REPLACED)


@lru_cache(maxsize=4096)
def fold(char: str) -> str | None:
    """The code point the index holds for ``char`` and all RE2 takes for it under ``(?i)``; None where unsure."""
    char = _UNINDEXABLE.sub(_image, char)
    if char in _SHARP_S:
        return "ß"
    folded = char.casefold()
    if len(folded) != 1 or unicodedata.category(char) == "Cn":
        return None
    partners = {char, folded, char.lower(), char.upper(), char.title()}
    if len(partners) > 1 and any(_newer_than_the_index(partner) for partner in partners if len(partner) == 1):
        return None
    return folded


def _newer_than_the_index(char: str) -> bool:
    """Whether the index's folding table may lack the letter: pairs of Unicode 3.2 are in every table there is."""
    return unicodedata.ucd_3_2_0.category(char) == "Cn"
