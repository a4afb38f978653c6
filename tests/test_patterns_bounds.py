"""No pattern costs much: each is refused in RE2's words with a line that would work, or runs within stated bounds."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from pathlib import Path

import apsw
import pytest

from exarch_sql.errors import Refused
from exarch_sql.patterns import MAX_PATTERN_BYTES, Pattern, compile_pattern
from exarch_sql.patterns.query import MAX_TRIGRAMS

CORPUS = Path(__file__).parent / "corpora" / "patterns_hostile.txt"
TABLE = "CREATE VIRTUAL TABLE t USING fts5(x, content='', detail=none, tokenize='trigram case_sensitive 0')"


def hostile() -> list[str]:
    """The corpus: each line a count, and a piece of a pattern as a JSON string."""
    lines = CORPUS.read_text(encoding="utf-8").splitlines()
    pieces = [line.split(" ", 1) for line in lines if line and not line.startswith("#")]
    return [json.loads(piece) * int(count) for count, piece in pieces]


def compiled_or_refused(pattern: str) -> Pattern | Refused:
    """What comes of a pattern: nothing else may."""
    try:
        return compile_pattern(pattern)
    except Refused as refused:
        return refused


@pytest.mark.parametrize("pattern", [pytest.param(pattern, id=str(place)) for place, pattern in enumerate(hostile())])
def test_a_hostile_pattern_is_refused_or_runs_within_bounds(pattern: str) -> None:
    """Seconds of processor time, ten times what was measured: compiled, filtered, accepted by both FTS5, and run."""
    pick = random.Random(7)  # noqa: S311 - the same text each time
    text = "\n".join("".join(pick.choices("xyab 日é\0\ufffd", k=1000)) for _ in range(20))
    started = time.process_time()
    compiled = compiled_or_refused(pattern)
    assert time.process_time() - started < 2
    if isinstance(compiled, Refused):
        assert len(str(compiled)) < 600
        return
    query = compiled.required()
    assert query.size <= MAX_TRIGRAMS
    assert time.process_time() - started < 2
    expression = query.to_fts5()
    if expression is not None:
        assert "\0" not in expression
        for connection in (apsw.Connection(":memory:"), sqlite3.connect(":memory:")):
            connection.execute(TABLE)
            assert not list(connection.execute("SELECT rowid FROM t WHERE t MATCH ?", (expression,)))
            connection.close()
    compiled.count(text)
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(?=x)", "look-ahead"),
        ("a(?!b)", "negative look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "negative look-behind"),
        (r"(a)\1", "back-references"),
        (r"(?P<n>a)(?P=n)", "back-references"),
        (r"(?<n>a)\k<n>", "back-references"),
    ],
)
def test_look_around_and_back_references_are_refused_by_name_with_the_alternative(pattern: str, words: str) -> None:
    """The two a model is most likely to try, and which no linear-time engine has."""
    with pytest.raises(Refused, match=words) as refused:
        compile_pattern(pattern)
    assert "filter the hits" in str(refused.value)
    assert repr(pattern) in str(refused.value)


@pytest.mark.parametrize(
    ("pattern", "words", "fix"),
    [
        ("f(x", "missing ): f(x", r"as plain text it is f\(x"),
        ("f)", "unexpected ): f)", r"as plain text it is f\)"),
        ("a[0", "missing ]: [0", r"as plain text it is a\[0"),
        ("*.py", "no argument for repetition operator: *", r"as plain text it is \*\.py"),
        ("a++", "bad repetition operator: ++", "possessive"),
        ("a{1001}", "invalid repetition size: {1001}", "1000"),
        ("C:\\", "trailing \\", r"as plain text it is C:\\"),
        (r"end\Z", r"invalid escape sequence: \Z", r"'\z'"),
        (r"\u00e9", r"invalid escape sequence: \u", r"\x{1F600}"),
        (r"\p{greek}", r"invalid character class range: \p{greek}", r"\p{Greek}"),
        ("[z-a]", "invalid character class range: z-a", "smaller end first"),
        ("[[:letter:]]", "invalid character class range: [:letter:]", "alpha"),
        ("(?x)a", "invalid perl operator: (?x", "(?i)"),
        (r"\pL{300}", "instructions", r"\w"),
        ("a" * (MAX_PATTERN_BYTES + 1), "4,097 bytes", "4,096"),
    ],
)
def test_what_re2_refuses_is_refused_in_its_words_with_a_line_that_would_work(
    pattern: str, words: str, fix: str
) -> None:
    """A refusal names what was tried, what forbids it, and the fix."""
    with pytest.raises(Refused) as refused:
        compile_pattern(pattern)
    assert words in str(refused.value)
    assert fix in str(refused.value)


def test_every_fix_that_is_offered_as_plain_text_compiles_and_finds_it() -> None:
    """The line that would work does."""
    for pattern in ("f(x", "a[0", "*.py", "C:\\", "x{{2}}++", "(?=a)|^$"):
        with pytest.raises(Refused) as refused:
            compile_pattern(pattern)
        _, offered, plain = str(refused.value).partition("as plain text it is ")
        assert not offered or compile_pattern(plain).matches(f"<{pattern}>")


def test_a_pattern_that_is_not_text_is_refused() -> None:
    """No traceback for a caller's slip."""
    with pytest.raises(Refused, match="a pattern is text, got int"):
        compile_pattern(5)  # type: ignore[arg-type]


def test_a_pattern_of_exactly_the_largest_size_is_taken() -> None:
    """The bound is in bytes of UTF-8, and inclusive."""
    assert compile_pattern("é" * (MAX_PATTERN_BYTES // 2)).required().size > 0
