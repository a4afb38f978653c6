"""What makes the index trustworthy: a page of it is used only while it holds what was written.

FTS5 has no checksums, and a posting list that lost a record would lose a hit without a word. So each page of `search_data` is
summed when it is written, together with the row of `search_idx` that leads to it, and before FTS5 is asked which records to read,
every page it will read for that is summed again. What is relied on of FTS5's own format (version 4): the ids of pages, that the
pages of a segment are in the order of their terms, and that `search_idx` holds the first term of each page that a term starts on.
"""

from __future__ import annotations

import json
import struct
from hashlib import blake2b
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from exarch_sql.connection import one

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import apsw

SEGMENT_SHIFT = 37  # id of a page: segment << 37 | is it an index of a long list << 36 | its height << 31 | page number
LONG_LIST = 1 << 36
HEIGHT_SHIFT = 31
STRUCTURE = 10  # id of FTS5's list of segments
TERM_PREFIX = b"0"  # of every term of the main index

NEXT_PAGE_SQL = "SELECT id FROM search_data WHERE id >= ? ORDER BY id LIMIT 1"
LAST_LEAF_SQL = "SELECT id FROM search_data WHERE id < ? ORDER BY id DESC LIMIT 1"
BLOCKS_SQL = "SELECT id, block FROM search_data WHERE id >= ? AND id < ? ORDER BY id"
BLOCK_SQL = "SELECT block FROM search_data WHERE id = ?"
TERMS_SQL = "SELECT pgno >> 1, term, pgno FROM search_idx WHERE segid = ?"
FLOOR_SQL = "SELECT term, pgno FROM search_idx WHERE segid = ? AND term <= ? ORDER BY term DESC LIMIT 1"
CEILING_SQL = "SELECT term, pgno FROM search_idx WHERE segid = ? AND term > ? ORDER BY term LIMIT 1"
SUMS_SQL = "SELECT id, sum FROM search_pages WHERE id >= ? AND id < ? ORDER BY id"
ADD_SUM_SQL = "INSERT INTO search_pages (id, sum) VALUES (?, ?)"
DROP_SUMS_SQL = "DELETE FROM search_pages WHERE id >= ? AND id < ?"
HEAD_SQL = "SELECT seq, digest FROM records ORDER BY seq DESC LIMIT 1"
PROGRESS_SQL = "SELECT seq, head, digest, segments, sum FROM search_progress WHERE id = 1"
SET_PROGRESS_SQL = (
    "INSERT OR REPLACE INTO search_progress (id, seq, head, digest, segments, sum) VALUES (1, ?, ?, ?, ?, ?)"
)

Entry = tuple[bytes, int] | None  # a row of search_idx: term and pgno (page << 1 | has it an index of a long list)


class Damaged(Exception):
    """The index cannot be used, for the reason given. A signal within this package."""


class Progress(NamedTuple):
    """How far the index has come, and the segments it then had."""

    seq: int
    head: int  # the newest record then
    digest: bytes  # of that
    segments: tuple[tuple[int, int], ...]  # segid, last page


def merge_is_due(db: apsw.Connection, most: int) -> bool:
    """Whether FTS5 will merge segments when it writes one more, having been told to at ``most`` of one size."""
    numbers = _varints(_structure(db)[4:])
    levels, *_ = (next(numbers) for _ in range(3))
    _, segments = (next(numbers), next(numbers)) if levels else (0, 0)
    return segments + 1 >= most


def seal(db: apsw.Connection, seq: int, *, looked: bool) -> None:
    """After FTS5 has written all it had: sum what is new and note the progress, inside the same transaction.

    Segments are written once; when FTS5 merged some, ids may have been used again, so all are summed. ``looked`` says that every
    page was compared with its sum before: a merge copies what it reads, and a sum taken after it would vouch for damage. Raises
    Damaged when there was a merge all the same.
    """
    old = db.execute(PROGRESS_SQL).fetchone()
    had = {segid for segid, _ in json.loads(old[3])} if old else set()
    segments = _segments(db)
    now = {segid for segid, _ in segments}
    if not looked and (not had <= now or len(now - had) > 1):
        raise Damaged("FTS5 merged pages before they were looked at: its settings were altered")
    if not had <= now:
        db.execute("DELETE FROM search_pages")
        had = set()
    for segid in sorted(now - had):
        db.execute(DROP_SUMS_SQL, _span(segid))
        db.executemany(ADD_SUM_SQL, _sums_of(db, segid))
    text = json.dumps(segments, separators=(",", ":"))
    head, digest = one(db, HEAD_SQL)
    db.execute(SET_PROGRESS_SQL, (seq, head, digest, text, _progress_sum(seq, head, digest, text, _structure(db))))


def progress(db: apsw.Connection) -> Progress:
    """How far the index has come. Raises Damaged when that row, or FTS5's list of segments, is not what was written."""
    row: Any = db.execute(PROGRESS_SQL).fetchone()
    if row is None:
        raise Damaged("how far it has come is not noted")
    seq, head, digest, text, found = row
    if found != _progress_sum(seq, head, digest, text, _structure(db)):
        raise Damaged("how far it has come, or its list of segments, was altered")
    return Progress(seq, head, digest, tuple((segid, last) for segid, last in json.loads(text)))


def check(db: apsw.Connection, noted: Progress, trigrams: Iterable[str]) -> None:
    """Raise Damaged unless every page FTS5 reads for these trigrams, and its way there, is what was written."""
    checked: dict[int, Entry] = {}
    for trigram in trigrams:
        term = TERM_PREFIX + trigram.encode()
        for segid, last in noted.segments:
            _check_way(db, segid, last, term, checked)


def faults(db: apsw.Connection, noted: Progress) -> Iterator[str]:
    """Every segment with a page, or a way to a page, that is not what was written; the first such page of each."""
    for segid, last in noted.segments:
        base, end = _span(segid)
        leaf = 0
        for want, got in zip_longest(db.execute(SUMS_SQL, (base, end)), _sums_of(db, segid)):
            if want != got:
                yield f"page {min(pair[0] for pair in (want, got) if pair)} of segment {segid} is not what was written"
                break
            leaf = max(leaf, want[0] - base) if want[0] < base | LONG_LIST else leaf
        else:
            if leaf != last:
                yield f"segment {segid} ends at page {leaf} instead of {last}"
    if sorted(noted.segments) != _segments(db):
        yield "it holds pages of segments that it does not list"


# -- the pages of a segment ----------------------------------------------------------------------------------------------------


def _check_way(db: apsw.Connection, segid: int, last: int, term: bytes, checked: dict[int, Entry]) -> None:
    """The pages from the one a term may start on to the next that another term leads to."""
    base = segid << SEGMENT_SHIFT
    floor: Any = db.execute(FLOOR_SQL, (segid, term)).fetchone()
    ceiling: Any = db.execute(CEILING_SQL, (segid, term)).fetchone()
    entries: dict[int, Entry] = {}
    first = 1
    if floor:
        first = floor[1] >> 1
        entries[first] = floor
        if floor[1] & 1:
            _check_long_list(db, base, first, checked)
    if ceiling:
        last = ceiling[1] >> 1
        entries[last] = ceiling
    span = (base + first, base + last + 1)
    if all(id_ in checked and checked[id_] == entries.get(id_ - base) for id_ in range(*span)):
        return
    sums = dict(db.execute(SUMS_SQL, span))
    found = 0
    for id_, block in db.execute(BLOCKS_SQL, span):
        if sums.get(id_) != _page_sum(id_, block, entries.get(id_ - base)):
            raise Damaged(f"page {id_} is not what was written")
        checked[id_] = entries.get(id_ - base)
        found += 1
    if found != last - first + 1:
        raise Damaged(f"pages between {base + first} and {base + last} are missing")


def _check_long_list(db: apsw.Connection, base: int, page: int, checked: dict[int, Entry]) -> None:
    """The pages that tell where in a long list to go on."""
    for height in range(1 << (36 - HEIGHT_SHIFT)):
        id_ = base | LONG_LIST | height << HEIGHT_SHIFT | page
        if id_ in checked:
            return
        sums: Any = db.execute(SUMS_SQL, (id_, id_ + 1)).fetchone()
        block: Any = db.execute(BLOCK_SQL, (id_,)).fetchone()
        if sums is None and block is None and height:
            return
        if sums is None or block is None or sums[1] != _page_sum(id_, block[0], None):
            raise Damaged(f"page {id_} is not what was written")
        checked[id_] = None


def _segments(db: apsw.Connection) -> list[tuple[int, int]]:
    """The segments there are, with the number of their last page, by skipping from one to the next."""
    found = []
    low = 1 << SEGMENT_SHIFT
    while row := db.execute(NEXT_PAGE_SQL, (low,)).fetchone():
        segid = row[0] >> SEGMENT_SHIFT
        base, low = _span(segid)
        leaf: Any = db.execute(LAST_LEAF_SQL, (base | LONG_LIST,)).fetchone()
        found.append((segid, max(leaf[0] - base, 0)))
    return found


def _span(segid: int) -> tuple[int, int]:
    """The ids of a segment's pages: the first possible, and the first past them."""
    return segid << SEGMENT_SHIFT, (segid + 1) << SEGMENT_SHIFT


def _sums_of(db: apsw.Connection, segid: int) -> Iterator[tuple[int, int]]:
    """(id, sum) of every page of a segment, as it is now."""
    base, end = _span(segid)
    entries = {page: (term, pgno) for page, term, pgno in db.execute(TERMS_SQL, (segid,))}
    for id_, block in db.execute(BLOCKS_SQL, (base, end)):
        yield id_, _page_sum(id_, block, entries.get(id_ - base))


def _structure(db: apsw.Connection) -> bytes:
    row: Any = db.execute(BLOCK_SQL, (STRUCTURE,)).fetchone()
    if row is None or not isinstance(row[0], bytes):
        raise Damaged("FTS5's list of segments is missing")
    return row[0]


def _varints(data: bytes) -> Iterator[int]:
    """SQLite's variable-length integers: seven bits a byte, the highest first, the top bit of all but the last byte set."""
    value = 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            yield value
            value = 0


def _page_sum(id_: int, block: object, entry: Entry) -> int:
    """The sum of a page and of the row that leads to it."""
    term, pgno = entry or (b"", -1)
    if not isinstance(block, bytes) or not isinstance(term, bytes) or not isinstance(pgno, int):
        return 0  # no page that was written sums to this but by a chance of 1 in 2^64
    return _sum(struct.pack("<qqi", id_, pgno, len(term)), term, block)


def _progress_sum(seq: int, head: int, digest: bytes, segments: str, structure: bytes) -> int:
    return _sum(
        struct.pack("<qqi", seq, head, len(digest)),
        digest,
        struct.pack("<i", len(segments)),
        segments.encode(),
        structure,
    )


def _sum(*pieces: bytes) -> int:
    return int.from_bytes(blake2b(b"".join(pieces), digest_size=8).digest(), "big", signed=True)
