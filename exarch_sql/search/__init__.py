"""Search: every line of a log's transcript that matches a pattern, exactly and completely, or a refusal.

The records are the authority. Each candidate's text is matched by RE2, line by line, and what is reported is re-hashed. Two
filters spare work, and neither may lose a hit:

``index``    a trigram index in the file leaves out records that lack what the pattern requires. It is optional, built in bulk
             (``build``), is asked for the rarest of what the pattern requires (``rarity``), and answers only for pages that still
             hold what was written (``pages``); the rest is scanned.
``sieve``    the JSON of many records is searched at once, before any of it is decoded.

``grep`` joins them; ``stretches`` says which records a log sees; ``texts`` what is searched of a record; ``tally`` keeps the hits;
``budget`` bounds the time; ``checking`` is what verify asks.
"""

from exarch_sql.reading import EDIT_SQL
from exarch_sql.search.build import Indexed, catch_up, drop, drop_if_damaged, reindex
from exarch_sql.search.grep import NOTES_SQL, SECONDS, Search, SearchWarning
from exarch_sql.search.stretches import ANCESTRY_SQL, BODIES_SQL, WEIGHT_SQL
from exarch_sql.search.tally import BODY_SQL, KIND_SQL

# What a search runs where there is little to search: no index, no filter. In the order in which they run.
SCAN = {
    "stretches.ANCESTRY_SQL": ANCESTRY_SQL,
    "stretches.WEIGHT_SQL": WEIGHT_SQL,
    "grep.NOTES_SQL": NOTES_SQL,
    "stretches.BODIES_SQL": BODIES_SQL,
    "reading.EDIT_SQL": EDIT_SQL,
    "tally.BODY_SQL": BODY_SQL,
    "tally.KIND_SQL": KIND_SQL,
}

__all__ = ["SCAN", "SECONDS", "Indexed", "Search", "SearchWarning", "catch_up", "drop", "drop_if_damaged", "reindex"]
