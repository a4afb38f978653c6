"""What ``grep`` searches with: RE2 patterns applied to lines, and the trigrams they require of a text.

A pattern has two readings. ``Pattern.matching_lines`` is the authority: RE2 over the lines of a text, exact.
``Pattern.required`` is a filter for an index: a boolean query over trigrams that every text with a matching line
satisfies, so that an index can leave out most texts unread. An index must be built from ``indexable`` texts, by FTS5's
``trigram`` tokenizer with ``case_sensitive 0``.
"""

from exarch_sql.patterns.compiled import MAX_PATTERN_BYTES, Pattern, compile_pattern
from exarch_sql.patterns.folding import indexable, searchable
from exarch_sql.patterns.query import ANYTHING, NOTHING, And, Anything, Nothing, Or, Query, Trigram

__all__ = [
    "ANYTHING",
    "MAX_PATTERN_BYTES",
    "NOTHING",
    "And",
    "Anything",
    "Nothing",
    "Or",
    "Pattern",
    "Query",
    "Trigram",
    "compile_pattern",
    "indexable",
    "searchable",
]
