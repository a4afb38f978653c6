"""Of the trigrams a pattern requires the index is asked for a few: enough to leave out what can be, and no hit is lost by it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exarch_sql.connection import optional_schema
from exarch_sql.patterns import And, Or, Query, Trigram, compile_pattern
from exarch_sql.patterns.query import all_of, any_of
from exarch_sql.search.index import trigrams_of
from exarch_sql.search.rarity import FEW, Rarity

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDS = 2000
NAMES = [f"t{number}x" for number in range(8)]


@pytest.fixture(scope="module")
def db() -> Iterator[apsw.Connection]:
    """An index of texts in which "t0x" stands everywhere, "t1x" in every second, "t2x" in every fourth, and so on."""
    made = apsw.Connection(":memory:")
    made.execute(next(sql for _, name, sql in optional_schema() if name == "search"))
    with made:
        for seq in range(1, RECORDS + 1):
            said = " ".join(name for place, name in enumerate(NAMES) if seq % 2**place == 0)
            made.execute("INSERT INTO search (rowid, text) VALUES (?, ?)", (seq, f"{said} timeout"))
    yield made
    made.close()


def queries() -> st.SearchStrategy[Query]:
    """Conditions over a few trigrams, of any shape."""
    leaves = st.sampled_from(NAMES).map(Trigram)
    return st.recursive(
        leaves,
        lambda parts: st.lists(parts, min_size=1, max_size=4).flatmap(
            lambda some: st.sampled_from([all_of(some), any_of(some)])
        ),
    )


@given(queries())
def test_whatever_satisfies_a_query_satisfies_the_narrowed_one(db: apsw.Connection, query: Query) -> None:
    """Over every set of trigrams there is: or a record with a hit would be left out."""
    narrowed = Rarity(db, RECORDS).narrowed(query)
    assert trigrams_of(narrowed) <= trigrams_of(query)
    for size in range(len(NAMES) + 1):
        for trigrams in map(frozenset, itertools.combinations(NAMES, size)):
            assert narrowed.holds(trigrams) or not query.holds(trigrams)


def test_one_rare_trigram_is_asked_for_alone(db: apsw.Connection) -> None:
    """It leaves so few records that another list would cost more than they do."""
    query = all_of(map(Trigram, NAMES))
    assert RECORDS / 2**7 < FEW
    assert Rarity(db, RECORDS).narrowed(query) == Trigram("t7x")


def test_common_ones_are_added_until_few_records_are_to_be_expected(db: apsw.Connection) -> None:
    """The rarest first; those that stand in every record come last, and only where nothing else is left."""
    query = all_of(map(Trigram, ("t0x", "t1x", "t2x", "t3x", "t4x")))
    assert trigrams_of(Rarity(db, RECORDS).narrowed(query)) == {"t4x", "t3x"}
    query = compile_pattern("timeout").required()
    assert trigrams_of(Rarity(db, RECORDS).narrowed(query)) == trigrams_of(query)


def test_each_way_to_match_is_narrowed_by_itself(db: apsw.Connection) -> None:
    """An alternative is as rare as its rarest trigram."""
    common = all_of(map(Trigram, ("t0x", "t1x", "t2x")))
    rare = all_of(map(Trigram, ("t0x", "t7x")))
    narrowed = Rarity(db, RECORDS).narrowed(any_of((common, rare)))
    assert isinstance(narrowed, Or)
    assert Trigram("t7x") in narrowed.parts
    assert any(isinstance(part, And) for part in narrowed.parts)
