"""What ``fold`` claims is true of the engines at hand, for every code point there is."""

from __future__ import annotations

import sqlite3
import unicodedata
from typing import TYPE_CHECKING, Any

import apsw
import pytest
import re2

from exarch_sql.patterns import indexable, searchable
from exarch_sql.patterns.folding import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CODE_POINTS = [chr(code) for code in range(0x110000)]
ENCODABLE = [char for char in CODE_POINTS if not 0xD800 <= ord(char) <= 0xDFFF]
CASED = [char for char in ENCODABLE if {char.lower(), char.upper(), char.title(), char.casefold()} != {char}]
SURE = [char for char in CODE_POINTS if fold(char) is not None]


def re2_of(pattern: str) -> Any:
    """The pattern as RE2 reads it."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern.encode(), options)


def ranges_of(chars: list[str]) -> str:
    """A class of exactly these characters, as ranges; they come in order."""
    ranges: list[list[int]] = []
    for code in map(ord, chars):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in ranges) + "]"


def test_fold_answers_the_same_for_all_that_re2_takes_for_one_another() -> None:
    """A required trigram is built without looking at (?i), so a letter's whole case family must share one image."""
    cased_text = "".join(CASED).encode()
    for char in CASED:
        if fold(char) is None:
            continue
        family = [found.group().decode() for found in re2_of(f"(?i)\\x{{{ord(char):x}}}").finditer(cased_text)]
        assert char in family
        assert {fold(other) for other in family} == {fold(char)}, family


def test_re2_takes_nothing_else_for_a_sure_caseless_character() -> None:
    """The families above are looked for among letters Python knows a partner of; RE2's newer tables may know more.

    (Two characters that are both assigned and caseless stay so: Unicode keeps the folding of what is assigned.)
    """
    sure = sorted(set(SURE) & set(ENCODABLE) - set(CASED))
    others = sorted(set(ENCODABLE) - set(sure))
    assert len(sure) > 270_000
    assert not re2_of("(?i)" + ranges_of(sure)).search("".join(others).encode())


def apsw_folds() -> Iterator[tuple[int, str]]:
    """The tokens of the SQLite the archive is written with."""
    connection = apsw.Connection(":memory:")
    yield from folds_of(connection.execute, connection.executemany)
    connection.close()


def python_folds() -> Iterator[tuple[int, str]]:
    """The tokens of Python's own SQLite, as old as the format allows where this was written."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    if not any(row[0] == "ENABLE_FTS5" for row in connection.execute("PRAGMA compile_options")):
        pytest.skip("Python's own SQLite has no FTS5")
    yield from folds_of(connection.execute, connection.executemany)
    connection.close()


def folds_of(execute: Callable[..., Any], executemany: Callable[..., Any]) -> Iterator[tuple[int, str]]:
    """What the tokenizer makes of three of each character: its code point, and the token."""
    execute("CREATE VIRTUAL TABLE t USING fts5(x, content='', detail=none, tokenize='trigram case_sensitive 0')")
    execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)")
    execute("BEGIN")
    executemany("INSERT INTO t(rowid, x) VALUES (?, ?)", ((ord(char), indexable(char * 3)) for char in SURE))
    execute("COMMIT")
    yield from execute("SELECT doc, term FROM v")


@pytest.mark.parametrize("folds", [apsw_folds, python_folds])
def test_fold_is_what_the_index_holds(folds: Callable[[], Iterator[tuple[int, str]]]) -> None:
    """A query asks for the folded trigram; an index that holds another one would lose the hit."""
    held = dict(folds())
    assert len(held) == len(SURE), "some character makes no token"
    assert not [hex(code) for code, token in held.items() if fold(chr(code)) != token[0]]


def test_fold_is_sure_of_nearly_all_assigned_characters() -> None:
    """Unsure is right but slow: it must stay the exception. Georgian, Cherokee and rare letters are what is left out."""
    assigned = [char for char in ENCODABLE if unicodedata.category(char) not in ("Cn", "Co")]
    unsure = [char for char in assigned if fold(char) is None]
    assert len(unsure) < 1600
    common = "".join(map(chr, range(0x180))) + "αβγΑΒΓςабвгдеёжзАБВГДЕЁЖЗ日本語한국어עברית😀"
    assert [char for char in common if fold(char) is None] == ["İ", "ŉ"]


def test_searchable_text_is_what_utf8_can_carry() -> None:
    """A lone surrogate a tool emitted is searched as U+FFFD, and indexed as it, next to NUL which FTS5 stops at."""
    assert searchable("a\ud800b\0") == "a\ufffdb\0"
    assert indexable("a\ud800b\0") == "a\ufffdb\ufffd"
    assert indexable("plain") == "plain"
