"""Appending: one connection, its lock and transactions, and the tip of the chain that the next record extends.

An append is one INSERT whose triggers admit and fold it. The tip is kept between appends; if another connection wrote meanwhile,
the sequence number no longer fits, the file refuses, and the append is done again on what stands there now.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from contextvars import ContextVar
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import msgspec

from exarch_sql import chain, messages
from exarch_sql.connection import Whereabouts, translation
from exarch_sql.errors import BadFile, Busy, ExarchError, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from exarch_sql.answers import Role
    from exarch_sql.messages import Encoded

APPEND_TURN_SQL = """
INSERT INTO records (seq, log, kind, turn, origin, at_ms, key, label, weight, calls, body_hash, digest, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""

APPEND_OTHER_SQL = """
INSERT INTO records (seq, log, kind, at_ms, key, label, weight, span_from, span_to, note, author, anchor, parent, target, reach,
                     body_hash, digest, body)
VALUES (:seq, :log, :kind, :at_ms, :key, :label, :weight, :span_from, :span_to, :note, :author, :anchor, :parent, :target, :reach,
        :body_hash, :digest, :body)"""

TIP_SQL = "SELECT seq, digest FROM records ORDER BY seq DESC LIMIT 1"
LINEAGE_SQL = "SELECT uuid, created_ms, format FROM lineage"
BLOB_SQL = "SELECT data FROM blobs WHERE hash = ?"
ADD_BLOB_SQL = """
INSERT INTO blobs (hash, bytes, data)
SELECT :hash, :bytes, :data WHERE NOT EXISTS (SELECT 1 FROM blobs WHERE hash = :hash)"""
REFILL_BLOB_SQL = "UPDATE blobs SET data = :data WHERE hash = :hash AND data IS NULL"  # redacted, and now said again
_QUOTES = ("label", "weight", "span_from", "span_to", "note", "author", "anchor", "parent", "target", "reach")


# the batches that the running task is inside of: threads are kept apart by the lock, tasks of one thread only by this
_BATCHES: ContextVar[tuple[object, ...]] = ContextVar("batches", default=())


class Newest(msgspec.Struct, frozen=True):
    """A log's newest turn where it is also its reach: all that an append must know of a log beforehand."""

    turn: int
    role: Role


class Draft(NamedTuple):
    """A record that makes a turn, as far as it is known before the file is looked at."""

    log: int
    kind: str
    encoded: Encoded
    origin: str
    at_ms: int | None
    key: str | None
    label: str | None  # None for what extends a turn
    calls: list[str] | None


def now_ms() -> int:
    """Unix milliseconds, for ``at_ms``."""
    return time.time_ns() // 1_000_000


class Held:
    """The use of a store's connection by one thread, as a block. Made once and entered often: an append enters it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.RLock()

    def __enter__(self) -> apsw.Connection:
        store = self._store
        if store.inherited():
            raise Refused(
                f"{store.path} was opened by another process than this, {os.getpid()}: a connection does not survive a fork; "
                "open the archive again here"
            )
        if not self._lock.acquire(timeout=store.timeout):
            raise Busy(f"{store.path} is in use by another thread, in a batch perhaps: nothing was done, try again")
        return store.db

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._lock.release()
        ours = self._ours(error)
        if isinstance(ours or error, BadFile):
            with contextlib.suppress(apsw.Error):
                self._store.db.release_memory()  # its pages may have been read wrongly, once: read them anew
        if ours:
            raise ours from error

    def _ours(self, error: BaseException | None) -> ExarchError | None:
        """Our error for one that is not ours; None for others."""
        if isinstance(error, apsw.Error):
            return translation(error, self._store.path)
        if isinstance(error, UnicodeDecodeError):
            return BadFile(f"{self._store.path} holds text that is not UTF-8: run verify, which names the record")
        return None


class Store:
    """A lineage file open for records. Threads may share it: every use holds the lock."""

    def __init__(self, db: apsw.Connection, path: str, *, readonly: bool, timeout: float = 5.0) -> None:
        self.db = db
        self.path = path
        self.readonly = readonly
        self.timeout = timeout  # seconds that one thread waits for another
        self._held = Held(self)
        self._pid = os.getpid()
        self._whereabouts = Whereabouts(db)
        self._batch: object | None = None  # of the transaction that is open
        self._tip: tuple[int, bytes] | None = None
        self._newest: dict[int, tuple[str, Newest]] = {}

    # -- holding and transacting ---------------------------------------------------------------------------------------------

    def inherited(self) -> bool:
        """Whether this process got the connection through a fork, and so must not touch it."""
        return os.getpid() != self._pid

    def held(self) -> Held:
        """The connection, for one thread at a time; driver errors come out as ours."""
        return self._held

    def _check_whereabouts(self) -> None:
        """Raise BadFile where the file's names lead elsewhere than when it was opened: SQLite would write what nobody finds."""
        if not self._whereabouts.hold():
            raise BadFile(
                f"{self.path}, or its write-ahead log, was replaced or removed while it was open: nothing was written; "
                "backup() still copies what is in this handle; then close it, open the file again and verify it"
            )

    @contextlib.contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """One snapshot for all that is read inside."""
        with self.held() as db:
            if db.in_transaction:
                self._check_batch(db)  # what another task has not committed may never be
                yield db
                return
            self._check_whereabouts()
            db.execute("BEGIN")
            try:
                yield db
            finally:
                if db.in_transaction:
                    db.execute("COMMIT")

    @contextlib.contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """All or nothing: an immediate transaction, or a savepoint inside one that is open."""
        with self.held() as db:
            if self._batch or db.in_transaction:
                self._check_batch(db)
                with self._saved(db):
                    yield db
                return
            self._check_whereabouts()
            db.execute("BEGIN IMMEDIATE")
            self.forget()
            self._batch = object()
            entered = _BATCHES.set((*_BATCHES.get(), self._batch))
            try:
                yield db
                self._check_batch(db)
                db.execute("COMMIT")
            except BaseException:
                self.forget()
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            finally:
                self._batch = None
                with contextlib.suppress(ValueError):  # a generator may be closed in another context than it began in
                    _BATCHES.reset(entered)

    @contextlib.contextmanager
    def _saved(self, db: apsw.Connection) -> Iterator[None]:
        """A savepoint inside the transaction."""
        db.execute("SAVEPOINT op")
        try:
            yield
            self._check_batch(db)
            db.execute("RELEASE op")
        except BaseException:
            self.forget()
            if db.in_transaction:
                db.execute("ROLLBACK TO op; RELEASE op")
            raise

    def _check_batch(self, db: apsw.Connection) -> None:
        """Raise where the open transaction is another task's, or where SQLite took it back, as it does when it cannot write."""
        if self._batch and self._batch not in _BATCHES.get():
            raise Busy(
                f"{self.path}: another task of this thread has a batch open, which would take this along or back: "
                "nothing was written; try again when that batch is done, and do not wait for other tasks inside one"
            )
        if not db.in_transaction:
            raise ExarchError(
                f"{self.path}: a failure inside this batch took all of it back: nothing of it was written, and nothing more can be "
                "written in it; leave it and begin again"
            )

    def forget(self) -> None:
        """Drop what is remembered of the file; the next append looks again."""
        self._tip = None
        self._newest.clear()

    # -- appending -----------------------------------------------------------------------------------------------------------

    def newest(self, log: int, name: str) -> Newest | None:
        """The log's newest turn as remembered, if it is. Another log may have the number of one that was taken back."""
        whose, newest = self._newest.get(log, ("", None))
        return newest if whose == name else None

    def remember(self, log: int, name: str, newest: Newest) -> None:
        """Note the log's newest turn for the next append."""
        self._newest[log] = name, newest

    def append_turn(self, draft: Draft, turn: int) -> int:
        """Append a record that makes a turn; its seq. Raises apsw.ConstraintError where the file refuses."""
        log, kind, encoded, origin, at_ms, key, label, calls = draft
        if self._batch:
            self._check_batch(self.db)
        else:
            self._check_whereabouts()
        seq, previous = self._tip or self._look()
        seq += 1
        if at_ms is None:
            at_ms = now_ms()
        hash_ = self.hash_of(encoded.data)
        digest = chain.record_digest(seq, log, kind, turn, origin, at_ms, key, hash_, previous)
        quoted = messages.dumps(calls) if calls else None
        for blob in encoded.blobs:
            stored = {"hash": self.hash_of(blob), "bytes": len(blob), "data": blob}
            self.db.execute(ADD_BLOB_SQL, stored)
            self.db.execute(REFILL_BLOB_SQL, stored)
        self.db.execute(
            APPEND_TURN_SQL,
            (seq, log, kind, turn, origin, at_ms, key, label, encoded.weight, quoted, hash_, digest, encoded.body),
        )
        self._tip = seq, digest
        return seq

    def append_other(
        self,
        log: int,
        kind: str,
        body: dict[str, Any],
        *,
        at_ms: int | None = None,
        key: str | None = None,
        **quotes: Any,
    ) -> int:
        """Append an edit or a witness; its seq. ``quotes`` are the columns that quote the body."""
        seq, previous = self._tip or self._look()
        seq += 1
        when = now_ms() if at_ms is None else at_ms
        text = messages.dumps(body)
        data = text.encode()
        if len(data) > messages.MAX_BODY_BYTES:
            raise Refused(f"a {kind} record holds at most {messages.MAX_BODY_BYTES} bytes; got {len(data)}")
        hash_ = self.hash_of(data)
        digest = chain.record_digest(seq, log, kind, None, None, when, key, hash_, previous)
        row: dict[str, Any] = dict.fromkeys(_QUOTES)
        row |= quotes
        row |= {"seq": seq, "log": log, "kind": kind, "at_ms": when, "key": key}
        row |= {"body_hash": hash_, "digest": digest, "body": text}
        self.db.execute(APPEND_OTHER_SQL, row)
        self._tip = seq, digest
        if "reach" in quotes:  # an edit: the newest turn may be another now
            self._newest.pop(log, None)
        return seq

    def _look(self) -> tuple[int, bytes]:
        """Look up the tip, and remember it."""
        self._tip = self.tip()
        return self._tip

    def tip(self) -> tuple[int, bytes]:
        """The newest record's seq and digest; (0, genesis) before the first."""
        row: Any = self.db.execute(TIP_SQL).fetchone()
        if row is None:
            return 0, chain.genesis(*self.lineage())
        seq, digest = row
        if not isinstance(digest, bytes):  # what SQLite reads off a damaged page has any type
            raise BadFile(f"{self.path} holds no digest for record {seq}: run verify")
        return seq, digest

    def lineage(self) -> tuple[str, int, int]:
        """The lineage's uuid, creation time and format."""
        row = self.db.execute(LINEAGE_SQL).fetchone()
        if row is None:
            raise BadFile(f"{self.path} holds no lineage: run verify")
        return row  # type: ignore[no-any-return]

    # -- reading bodies ------------------------------------------------------------------------------------------------------

    @staticmethod
    def hash_of(data: bytes) -> bytes:
        """SHA-256 of a body's UTF-8 bytes."""
        return sha256(data).digest()

    def blob(self, hash_: bytes) -> bytes:
        """The raw bytes of a blob, re-hashed. Raises BadFile when it is missing or altered."""
        row = self.db.execute(BLOB_SQL, (hash_,)).fetchone()
        data = row[0] if row else None
        if data is None or sha256(data).digest() != hash_:
            raise BadFile(f"blob {hash_.hex()} is {'altered' if data is not None else 'missing'}: run verify")
        return data  # type: ignore[no-any-return]
