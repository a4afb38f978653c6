"""What the filter asks for: telling enough to leave most texts out, and spelled so that FTS5 reads it as meant."""

from __future__ import annotations

import sqlite3

import apsw
import pytest

from exarch_sql.patterns import ANYTHING, NOTHING, Or, Query, Trigram, compile_pattern, indexable
from exarch_sql.patterns.query import MAX_PER_LITERAL, MAX_TRIGRAMS, all_of, any_of, containing_one_of

TABLE = "CREATE VIRTUAL TABLE t USING fts5(x, content='', detail=none, tokenize='trigram case_sensitive 0')"


def needed(pattern: str) -> str | None:
    """The filter's expression."""
    return compile_pattern(pattern).required().to_fts5()


@pytest.mark.parametrize(
    ("pattern", "expression"),
    [
        ("hello", '("hel" AND "ell" AND "llo")'),
        ("HELLO", '("hel" AND "ell" AND "llo")'),
        ("(?i)Kelvin", '("kel" AND "elv" AND "lvi" AND "vin")'),
        ("foo.*bar", '("foo" AND "bar")'),
        ("foo|bar", '("bar" OR "foo")'),
        ("(?:foo)+", '"foo"'),
        ("(?:foo)?bar", '"bar"'),
        ("^(abc)$", '"abc"'),
        ("a[bc]d", '("abd" OR "acd")'),
        ("(?i)straße", '("str" AND "tra" AND "raß" AND "aße")'),
        ("日本語", '"日本語"'),
        (r"\x61\142\Qc.\E", '("abc" AND "bc.")'),
        ('say "x', '("say" AND "ay " AND "y """ AND " ""x")'),
        ("a\0b", '"a\ufffdb"'),
        ("(abc){2,}d", '("abc" AND "bca" AND "cab" AND "bcd")'),
        ("ab{3}", '("abb" AND "bbb")'),
        (r"foo\nbar", '""'),
        ("foo|", None),
        ("fo", None),
        (".*", None),
        ("", None),
        (r"\w+\d", None),
        ("ა" * 5, None),
    ],
)
def test_a_pattern_requires_the_trigrams_of_its_literals(pattern: str, expression: str | None) -> None:
    """One case each: joining, alternation, classes, repeats, anchors, groups, flags, folding, escapes, quoting."""
    assert needed(pattern) == expression


def test_alternation_and_class_stay_a_small_query() -> None:
    """A product of alternatives is asked for as two conditions, not as all its members."""
    query = compile_pattern("(foo|bar|qux)[0-9]+z").required()
    assert query.size == 3 + 30


def test_a_long_literal_asks_for_a_few_trigrams_spread_over_it() -> None:
    """Every trigram is one more list of rows to walk; neighbours tell little more."""
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 200)))
    query = compile_pattern(text).required()
    assert query.size == MAX_PER_LITERAL
    assert query.holds({text[place : place + 3] for place in range(198)})
    assert not query.holds({text[place : place + 3] for place in range(197)})


def test_queries_are_kept_to_their_bound_without_losing_a_text() -> None:
    """A conjunction drops parts, a disjunction that is too wide asks for nothing."""
    trigrams = [Trigram(f"{number:03}") for number in range(MAX_TRIGRAMS + 1)]
    wide = any_of(trigrams[:-1])
    assert any_of(trigrams) == ANYTHING
    assert all_of(trigrams).size == MAX_TRIGRAMS
    assert all_of([wide, trigrams[-1]]) == trigrams[-1]
    assert all_of([wide, ANYTHING]) == wide
    assert any_of([wide, NOTHING]) == wide
    assert all_of([wide, NOTHING]) == any_of([]) == NOTHING
    assert any_of([wide, ANYTHING]) == all_of([]) == ANYTHING
    assert containing_one_of(frozenset({"abc", "ab"})) == ANYTHING


@pytest.mark.parametrize("library", ["apsw", "sqlite3"])
def test_fts5_reads_an_expression_as_the_query_means(library: str) -> None:
    """Quotes, line ends, operators' names and characters beyond the BMP inside a trigram are just characters."""
    texts = ['a"b"c', "AND x", "and y", "a\nb\r\nc", "a\0b", "😀😁😂", "*()^:", "ÀÉÎ", "plain"]
    connection = apsw.Connection(":memory:") if library == "apsw" else sqlite3.connect(":memory:")
    connection.execute(TABLE)
    for place, text in enumerate(texts):
        connection.execute("INSERT INTO t(rowid, x) VALUES (?, ?)", (place, indexable(text)))

    def found(query: Query) -> set[int]:
        return {row[0] for row in connection.execute("SELECT rowid FROM t WHERE t MATCH ?", (query.to_fts5(),))}

    assert found(Trigram('a"b')) == {0}
    assert found(Trigram("and")) == {1, 2}
    assert found(Trigram("a\nb")) == {3}
    assert found(Trigram("a\ufffdb")) == {4}
    assert found(Trigram("😀😁😂")) == {5}
    assert found(Trigram("*()")) == {6}
    assert found(Trigram("àéî")) == {7}
    assert found(Or((Trigram("pla"), all_of([Trigram("and"), Trigram("zzz")])))) == {8}
    assert found(all_of([Trigram("and"), any_of([Trigram("nd "), Trigram("zzz")])])) == {1, 2}
    assert found(NOTHING) == set()
    connection.close()
