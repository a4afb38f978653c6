"""Verify: judge a whole file from its bytes, trusting none of its triggers (design section 9).

In order: the schema itself; SQLite's own checks; every record, by hash, chain, quotes and laws, while `exarch_sql.fold` works out
in Python what the file ought to hold; every fold row against that; every view against a recomputation; every blob. Memory holds
intervals per log and a bounded list of faults, whatever the size of the file.
"""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from exarch_sql import chain, messages, redaction, residue, views
from exarch_sql.answers import Fault, Head, Report, Span
from exarch_sql.connection import one, open_unjudged, schema_faults, schema_of
from exarch_sql.errors import ExarchError
from exarch_sql.fold import TABLES, TURN_KINDS, Fold, FoldedLog, Record, Row
from exarch_sql.search import checking
from exarch_sql.search import index as search_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import apsw

KEPT_FAULTS = 100  # the first of them; all are counted
PROGRESS_EVERY = 1000

RECORDS_SQL = """
SELECT seq, log, kind, turn, origin, label, weight, calls, span_from, span_to, note, author, anchor, parent, target, reach,
       body IS NULL, at_ms, key, body_hash, digest, body FROM records NOT INDEXED ORDER BY seq"""
LAST_SQL = """
SELECT kind, calls FROM records
 WHERE log = :log AND turn = :turn AND seq <= :upto AND seq < :seq ORDER BY seq DESC LIMIT 1"""
REDACTIONS_SQL = """
SELECT r.seq, r.target, r.body ->> 'part', r.body ->> 'left', r.body -> 'blobs',
       coalesce(t.seq < r.seq AND t.log = r.log AND t.kind NOT IN ('opened', 'redacted'), 0)
  FROM records AS r LEFT JOIN records AS t ON t.seq = r.target
 WHERE r.kind = 'redacted' AND json_valid(r.body) ORDER BY r.seq"""
VOICE_OF = {"assistant": "assistant", "tool_results": "tool"}  # prompts and steering: anybody else, as a rule the user
SPEAKER_OF = {"tool_call": "assistant", "tool_call_response": "tool"}
EDIT_BODIES = {
    "opened": {"name": "label", "parent": "parent", "reach": "reach", "withdrawn": "anchor"},
    "evicted": {"from": "span_from", "to": "span_to", "note": "note", "by": "author", "reach": "reach"},
    "rewound": {"anchor": "anchor", "reach": "reach"},
    "cleared": {"reach": "reach"},
    "redacted": {"target": "target"},
}
QUOTES = (
    "label",
    "weight",
    "calls",
    "span_from",
    "span_to",
    "note",
    "author",
    "anchor",
    "parent",
    "target",
    "reach",
)  # fmt: skip

_quoting = attrgetter(*QUOTES)


class Faults:
    """The faults found so far: all counted by kind, the first of them kept."""

    def __init__(self) -> None:
        self.kept: list[Fault] = []
        self.counts: Counter[str] = Counter()

    def add(self, kind: str, where: str, what: str) -> None:
        """Note one fault."""
        self.counts[kind] += 1
        if len(self.kept) < KEPT_FAULTS:
            self.kept.append(Fault(kind, where, what))


def verify(
    db: apsw.Connection,
    *,
    against: Head | None = None,
    progress: Callable[[int], None] | None = None,
    index: bool = False,
) -> Report:
    """Judge the file behind an open snapshot; what it finds wrong is in the report, never raised.

    ``against`` is a head kept elsewhere: the record it names must still be there with the digest it had. ``progress`` is called
    now and then with the number of records checked. ``index`` has the search index compared with the text, posting by posting;
    without it, only with the sums of its pages.
    """
    return _Judgement(db, against, progress, index=index).report()


class _Judgement:
    """One pass of judgement over a file."""

    def __init__(
        self, db: apsw.Connection, against: Head | None, progress: Callable[[int], None] | None, *, index: bool
    ) -> None:
        self.db, self.against, self.progress, self.index = db, against, progress, index
        self.faults = Faults()
        self.fold = Fold(self._last)
        self.records = self.blobs = self.seq = 0
        self.digest = b""
        self.redacted: set[int] = set()
        self.uuid = ""
        self.expected = Counter[str]()
        self.named: set[str] = set()
        self.blanked: set[str] = set()
        self.left: dict[int, str | None] = {}
        self.parts: dict[int, list[int]] = {}

    def report(self) -> Report:
        """Run every check that the state of the file allows."""
        try:
            for what, how in schema_faults(schema_of(self.db)):
                self.faults.add("schema", what, how)
            for check in (self._sqlite, self._lineage, self._records, self._head, self._rows, self._blobs, self._views):
                check()
            self._search()
        except Exception as error:  # whatever a damaged file makes the driver or Python raise, verify answers
            self.faults.add("unreadable", f"after record {self.seq}", str(error))
        head = Head(self.uuid, self.seq, self.digest.hex()) if self.records else None
        return Report(
            tuple(self.faults.kept),
            dict(self.faults.counts),
            self.records,
            self.blobs,
            len(self.fold.logs),
            tuple(sorted(self.redacted)),
            head,
        )

    # -- the file ------------------------------------------------------------------------------------------------------------

    def _sqlite(self) -> None:
        """SQLite's own look at pages, indexes and constraints.

        Without FTS5, which would go over its whole index at a tenth of the speed of the check by sums, and end this at its faults.
        """
        aside = open_unjudged(self.db.filename) if self.db.filename and search_index.is_there(self.db) else None
        try:
            for (said,) in (aside or self.db).execute("PRAGMA integrity_check(20)"):
                if said != "ok":
                    self.faults.add("sqlite", "integrity_check", said)
        finally:
            if aside is not None:
                aside.close()

    def _lineage(self) -> None:
        rows: list[Any] = self.db.execute("SELECT id, uuid, created_ms, format FROM lineage").fetchall()
        if len(rows) != 1 or rows[0][0] != 1 or rows[0][3] != chain.RULES:
            self.faults.add("lineage", "lineage", f"{rows} instead of one row with id 1 and format {chain.RULES}")
        uuid, created_ms, format_ = rows[0][1:] if rows else ("", 0, 0)
        self.uuid = uuid
        self.digest = chain.genesis(uuid, created_ms, format_)

    # -- records -------------------------------------------------------------------------------------------------------------

    def _records(self) -> None:
        self._redactions()
        kept = self.against
        for row in cast("Iterable[Any]", self.db.execute(RECORDS_SQL)):
            seq, (at_ms, key, hash_, digest, body) = row[0], row[17:]
            where = f"record {seq}"
            if seq != self.seq + 1:
                self.faults.add("sequence", where, f"follows record {self.seq}")
            self.seq = seq
            self.records += 1
            self._body(seq, body, hash_, where)
            want = chain.record_digest(seq, row[1], row[2], row[3], row[4], at_ms, key, hash_, self.digest)
            if want != digest:
                self.faults.add("chain", where, "its digest does not follow from its fields and its predecessor")
            self.digest = digest if isinstance(digest, bytes) else b""
            if kept and seq == kept.seq and digest.hex() != kept.digest.lower():
                self.faults.add("head", where, f"has the digest {digest.hex()}, the kept head has {kept.digest}")
            self._record(Record(*row[:17]), body, where)
            if self.progress and self.records % PROGRESS_EVERY == 0:
                self.progress(self.records)

    def _redactions(self) -> None:
        """What redactions say is left of their targets, and which blobs they blanked; their own bodies are checked in turn."""
        for seq, target, part, left, blobs, lawful in self.db.execute(REDACTIONS_SQL):
            if not lawful or (part is None) != (left is None):
                self.faults.add("law", f"record {seq}", f"L12: record {target} is none that it may blank, or not so")
                continue
            self.left[target] = left
            self.parts.setdefault(target, []).append(part)
            named = json.loads(blobs or "[]")
            if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
                self.faults.add("body", f"record {seq}", "its blobs are no list of hashes")
                continue
            self.blanked.update(named)

    def _body(self, seq: int, body: str | None, hash_: bytes, where: str) -> None:
        """The body has the hash recorded for it, or is what its newest redaction left."""
        left = self.left.get(seq, "")
        if seq in self.left:
            self.redacted.add(seq)
        if body is None:
            if left is not None:
                self.faults.add("body", where, "is blank, and no redaction says so")
        elif (got := sha256(body.encode())).digest() == hash_:
            self.redacted.discard(seq)  # recorded, and not yet done: all of it is here, and is judged as such
        elif got.hexdigest() != left:
            self.faults.add("body", where, "its body does not have the hash recorded for it")
        else:
            self._holes(seq, body, where)

    def _holes(self, seq: int, body: str, where: str) -> None:
        """Where parts were redacted there are holes of the stated shape, and nothing else that is new (L12)."""
        places = [part for message in messages.loads(body) for part in message["parts"]]
        for part in self.parts[seq]:
            if not 0 <= part < len(places) or not redaction.is_hole(places[part]):
                self.faults.add("law", where, f"L12: part {part} is redacted, and is no hole")

    def _record(self, record: Record, body: str | None, where: str) -> None:
        """Its quotes against its body, its laws, and the fold rows it implies."""
        if body is not None:
            try:
                self._quotes(record, body, where)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                self.faults.add("body", where, f"is not what a {record.kind} holds: {error!r}")
        elif record.note is not None or (record.label not in (None, "") and record.kind != "opened"):
            self.faults.add("quote", where, "is blank, and its label or note is not")
        try:
            broken, rows = self.fold.take(record)
        except (ValueError, TypeError, KeyError) as error:
            self.faults.add("law", where, f"cannot be folded: {error}")
            return
        for law in broken:
            self.faults.add("law", where, law)
        for row in rows:
            self._row(row, where)

    def _quotes(self, record: Record, body: str, where: str) -> None:
        try:
            said = messages.loads(body)
            quotes = quotes_of(record.kind, said, body)
        except (ExarchError, ValueError, TypeError, KeyError, AttributeError) as error:
            self.faults.add("body", where, f"is not what a {record.kind} holds: {error!r}")
            return
        if record.kind in TURN_KINDS:
            self.named.update(messages.holes(said) if messages.HOLE in body else ())
            if quotes["weight"] is None:
                quotes["weight"] = self._weight(body)
        have, ought = _quoting(record), tuple(map(quotes.get, QUOTES))
        if have == ought:
            return
        redacted = record.seq in self.redacted
        for name, got, want in zip(QUOTES, have, ought, strict=True):
            if redacted and name in ("label", "weight"):
                continue  # the label is blanked with what it quotes; the weight stays that of what was recorded
            if got != want:
                self.faults.add("quote", where, f"{name} is {got!r}, its body says {want!r}")

    def _weight(self, body: str) -> int | None:
        """What messages with blobs in them weigh."""
        try:
            return messages.weigh(messages.decode(body, self._blob))
        except ExarchError:
            return None

    def _blob(self, hash_: bytes) -> bytes:
        row = self.db.execute("SELECT data FROM blobs WHERE hash = ?", (hash_,)).fetchone()
        if row is None or row[0] is None:
            raise ExarchError(f"blob {hash_.hex()} is missing")
        return row[0]  # type: ignore[no-any-return]

    def _last(self, log: FoldedLog, turn: int) -> tuple[str, str | None]:
        """The kind and calls of a turn's last record that a log sees, as of the record being folded."""
        for ancestor, upto, low, high in log.sees:
            if low <= turn <= high:
                row = self.db.execute(
                    LAST_SQL, {"log": ancestor, "turn": turn, "upto": upto, "seq": self.seq + 1}
                ).fetchone()
                if row:
                    return row  # type: ignore[no-any-return]
        return "assistant", None

    def _head(self) -> None:
        kept = self.against
        if kept is None:
            return
        if kept.lineage != self.uuid:
            self.faults.add("head", "lineage", f"is {self.uuid}, the kept head is of {kept.lineage}")
        if not 1 <= kept.seq <= self.seq:
            self.faults.add("head", f"record {kept.seq}", f"is not there: the file ends at record {self.seq}")

    # -- fold rows -----------------------------------------------------------------------------------------------------------

    def _row(self, row: Row, where: str) -> None:
        """One fold row that ought to be there, looked up by all its values."""
        self.expected[row.table] += 1
        columns = TABLES[row.table]
        test = " AND ".join(f"{column} IS ?" for column in columns)
        if self.db.execute(f"SELECT 1 FROM {row.table} WHERE {test}", row.values).fetchone() is None:
            shown = ", ".join(f"{column} {value}" for column, value in zip(columns, row.values, strict=True))
            self.faults.add("fold", f"{row.table} of {where}", f"has no row with {shown}")

    def _rows(self) -> None:
        """No fold table holds a row too many; ground, which comes and goes, is compared as it stands."""
        for row in self.fold.standing():
            self._row(row, f"log {row.values[0]}")
        for table in TABLES:
            (count,) = one(self.db, f"SELECT count(*) FROM {table}")
            if count != self.expected[table]:
                self.faults.add("fold", table, f"holds {count} rows, the records imply {self.expected[table]}")

    def _blobs(self) -> None:
        for hash_, size, data in self.db.execute("SELECT hash, bytes, data FROM blobs"):
            self.blobs += 1
            where = f"blob {hash_.hex()}"
            name = hash_.hex()
            if name not in self.named and name not in self.blanked:
                self.faults.add("blob", where, "is named by no record")
            if data is None:
                if name in self.named or name not in self.blanked:
                    self.faults.add("blob", where, "is blank, and no redaction says so, or a body still names it")
            elif len(data) != size or sha256(data).digest() != hash_:
                self.faults.add("blob", where, "does not have its hash or its length")
            self.named.discard(name)
        for name in sorted(self.named):
            self.faults.add("blob", f"blob {name}", "is named by a record and missing")

    # -- views ---------------------------------------------------------------------------------------------------------------

    def _views(self) -> None:
        """What each view answers, against a recomputation by definition."""
        if "schema" in self.faults.counts or "fold" in self.faults.counts:
            return  # their answers rest on what was found wrong already
        for view, where, what in views.faults(self.db, self.fold):
            self.faults.add("view", f"{view} {where}", what)

    def _search(self) -> None:
        """The search index, where there is one: whether it holds what was written, or what the text says."""
        for what in checking.faults(self.db, exactly=self.index):
            self.faults.add("search", "index", f"{what}; reindex makes it anew")


def quotes_of(kind: str, said: Any, body: str) -> dict[str, Any]:
    """The quoting columns that a record of this kind and body ought to have; a ``weight`` of None is left to the caller.

    Raises ValueError and its like when the body does not have the shape of its kind.
    """
    if kind in TURN_KINDS:
        return _turn_quotes(kind, said, body)
    if not isinstance(said, dict):
        raise ValueError("not an object")
    if kind not in EDIT_BODIES:
        return {}
    quotes = {column: said.get(name) for name, column in EDIT_BODIES[kind].items()}
    if kind == "evicted":
        message = residue.message(Span(said["from"], said["to"]), said.get("note"), said["by"])
        quotes["weight"] = messages.weigh([message])
    return quotes


def _turn_quotes(kind: str, said: Any, body: str) -> dict[str, Any]:
    if not isinstance(said, list) or not said:
        raise ValueError("not a list of messages")
    if messages.dumps(said) != body:
        raise ValueError("not in the one spelling that compact JSON has here: a member twice, blanks, or other escapes")
    _voices(kind, said)
    weight = None if messages.HOLE in body else messages.weigh(said, body, len(body.encode()))
    quotes: dict[str, Any] = {"weight": weight}
    if kind in ("prompt", "assistant"):
        quotes["label"] = messages.label(said, of_reply=kind == "assistant")
    if kind in ("assistant", "tool_results"):
        type_ = "tool_call" if kind == "assistant" else "tool_call_response"
        calls = messages.call_ids(said, type_)
        quotes["calls"] = messages.dumps(calls) if calls else None
    return quotes


def _voices(kind: str, said: list[Any]) -> None:
    """Raise ValueError unless each message speaks as its record does (L4): only a reply calls, only a tool answers."""
    voice = VOICE_OF.get(kind, "user")
    if kind == "assistant" and len(said) != 1:
        raise ValueError("more than one message")
    for message in said:
        if message["role"] != voice and (voice != "user" or message["role"] in VOICE_OF.values()):
            raise ValueError(f"a message of {message['role']}")
        for part in message["parts"]:
            speaker = SPEAKER_OF.get(part["type"])
            if speaker and (speaker != voice or not isinstance(part["id"], str)):
                raise ValueError(f"a {part['type']} of {message['role']} with the id {part['id']!r}")
