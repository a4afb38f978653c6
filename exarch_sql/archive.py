"""The archive: one lineage file, its logs, and what keeps it.

with Archive.open("agent.exarch") as archive:
    log = archive.trunk
    log.prompt("fix the parser")
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Self

import apsw

from exarch_sql import arguments, chain, judge, messages
from exarch_sql.answers import Head, LogInfo, Report
from exarch_sql.connection import CHECKPOINT_SQL, Durability, close_reader, create_file, open_file
from exarch_sql.errors import BadFile, Refused
from exarch_sql.log import Log, open_log
from exarch_sql.store import Store, now_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from exarch_sql.answers import Migrated
    from exarch_sql.query import Result
    from exarch_sql.redaction import Redacted, Sighting
    from exarch_sql.search import Indexed

TRUNK = "trunk"

LOG_SQL = "SELECT log, name FROM logs WHERE name = :name OR log = :number ORDER BY name = :name DESC LIMIT 1"
LOGS_SQL = """
SELECT s.log, s.name, p.name, s.opened, s.reach, s.state,
       (SELECT count(*) FROM frontier AS f WHERE f.log = s.log),
       (SELECT coalesce(sum(bytes), 0) FROM frontier AS f WHERE f.log = s.log)
  FROM state AS s LEFT JOIN logs AS p ON p.log = s.parent ORDER BY s.log"""


class Archive:
    """An open lineage file. Use it in a ``with`` block, or call ``close``; afterwards the lineage is one file."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        readonly: bool = False,
        durability: Durability = "full",
        timeout: float = 5.0,
    ) -> Archive:
        """Open a lineage file, or make one where none is (unless ``readonly``).

        ``durability``: "full" syncs every append; "normal" may lose the last appends, whole, when power fails. ``timeout`` bounds
        every wait for another connection, in seconds. Raises BadFile for what is not a lineage, Busy past the timeout.
        """
        if durability not in ("full", "normal", "off"):
            raise Refused(f"durability is 'full' or 'normal', not {durability!r}")
        name, timeout = arguments.path(path), arguments.seconds(timeout, "timeout")
        if not name or "\0" in name or name == ":memory:" or name.startswith("file:"):
            raise Refused(f"{name!r} is no path of a file: an archive lives in one, such as 'agent.exarch'")
        absolute = _absolute(name)
        if not os.path.exists(name):
            if readonly:
                raise BadFile(
                    f"{name} does not exist: a file opened for reading must be there; leave readonly out to make it"
                )
            create_file(name, _found, created_ms=now_ms())
        db = open_file(name, readonly=readonly, durability=durability, timeout=timeout)
        return cls(Store(db, absolute, readonly=readonly, timeout=timeout))

    @property
    def path(self) -> str:
        """Where the file lies: the name it was opened by, made absolute then; symbolic links in it are kept."""
        return self._store.path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Fold the write-ahead log into the file and let go of it. Closing twice is harmless.

        While another connection reads or writes, the log is left to that one: nothing is waited for. Where the log cannot be
        folded in, its error is raised with the file closed all the same: nothing is lost, and the next connection folds it.
        """
        store = self._store
        if store.inherited():
            return
        with store.held() as db:
            if store.readonly:
                with contextlib.suppress(apsw.ConnectionClosedError):
                    close_reader(db)
                return
            try:
                with contextlib.suppress(apsw.BusyError, apsw.LockedError, apsw.ConnectionClosedError):
                    db.set_busy_timeout(0)  # a replicator reads all the time, and each close would wait it out
                    db.execute(CHECKPOINT_SQL)
            finally:
                db.close()

    # -- logs ----------------------------------------------------------------------------------------------------------------

    @property
    def trunk(self) -> Log:
        """The log the lineage began with."""
        return Log(self._store, 1, TRUNK)

    def log(self, name: str | int) -> Log:
        """A log by its name or number. Raises Refused, naming those there are."""
        if (
            isinstance(name, bool)
            or not isinstance(name, (str, int))
            or (isinstance(name, str) and not messages.is_text(name))
        ):
            raise Refused(f"a log is named by its name or its number, not by {name!r}")
        number = name if isinstance(name, int) else int(name[:19]) if name.isdecimal() else -1
        number = number if 0 < number < 2**63 else -1
        with self._store.held() as db:
            row = db.execute(LOG_SQL, {"name": name if isinstance(name, str) else None, "number": number}).fetchone()
            if row is None:
                names = [known for (known,) in db.execute("SELECT name FROM logs ORDER BY log LIMIT 6")]
                more = ", ..." if len(names) == 6 else ""
                raise Refused(f"there is no log {name!r}: the logs are {', '.join(map(str, names[:5]))}{more}")
        return Log(self._store, *row)

    def new_log(self, name: str, *, at_ms: int | None = None) -> Log:
        """A log of its own, which inherits nothing: for a session that is no fork of another."""
        judge.log_name(name)
        with self._store.writing() as db:
            return Log(self._store, open_log(self._store, db, name, parent=None, at_ms=at_ms), name)

    def logs(self) -> list[LogInfo]:
        """Every log, in the order of opening."""
        with self._store.reading() as db:
            return [LogInfo(*row) for row in db.execute(LOGS_SQL)]

    @contextlib.contextmanager
    def batch(self) -> Iterator[Archive]:
        """One transaction for all that is written inside, to any log: all of it or, when the block raises, nothing."""
        with self._store.writing():
            yield self

    # -- keeping -------------------------------------------------------------------------------------------------------------

    def head(self) -> Head:
        """What to keep elsewhere in order to prove later that nothing before it was altered or cut off."""
        with self._store.reading():
            seq, digest = self._store.tip()
            return Head(self._store.lineage()[0], seq, digest.hex())

    def verify(
        self, against: Head | None = None, progress: Callable[[int], None] | None = None, *, index: bool = False
    ) -> Report:
        """Judge the whole file from its bytes; see `exarch_sql.verify`. ``progress`` is called with the records checked so far.

        ``index`` compares the search index with the text as well, posting by posting, in about the time it takes to build it.
        """
        if against is not None and not isinstance(against, Head):
            raise Refused(f"against is a Head, as head() gives it: Head(lineage, seq, digest); got {against!r}")
        from exarch_sql import verify  # noqa: PLC0415  (only those who verify load the judge)

        with self._store.reading() as db:
            return verify.verify(db, against=against, progress=progress, index=index)

    def rebuild(self) -> list[str]:
        """Drop the fold and derive it again from the records; the differences found, table by table (none in a lawful file)."""
        from exarch_sql import rebuild  # noqa: PLC0415

        with self._store.writing() as db:
            return rebuild.rebuild(db)

    def reindex(self, progress: Callable[[int, int], None] | None = None) -> Indexed:
        """Bring the search index up to the newest record, or make it anew where it is damaged; see docs/search.md.

        ``progress`` is called with the records indexed and the records there are. Raises Busy past the timeout; what was built
        until then stays.
        """
        from exarch_sql import search  # noqa: PLC0415

        return search.reindex(self._store, progress)

    def redact(self, seq: int, *, reason: str, part: int | None = None) -> Redacted:
        """Blank record ``seq``, or one part of it, for good, by a record that says so; see `exarch_sql.redaction`.

        The file is rewritten, so that the text is gone from free space and the write-ahead log as well. Raises Busy, with the text
        blanked but the log not yet emptied, while another connection is reading.
        """
        part = None if part is None else arguments.whole(part, "part")
        (done,) = self._blanked([(arguments.whole(seq, "seq"), part)], reason)
        return done

    def sightings(self, pattern: str) -> list[Sighting]:
        """Where an RE2 pattern stands, in every log and every kind of record: what ``redact`` would have to blank."""
        from exarch_sql import redaction  # noqa: PLC0415

        with self._store.reading() as db:
            return redaction.find(db, pattern)

    def redact_matching(self, pattern: str, *, reason: str) -> list[Redacted]:
        """Blank every part, or record without parts, in which an RE2 pattern is found."""
        return self._blanked([(found.seq, found.part) for found in self.sightings(pattern)], reason)

    def _blanked(self, places: list[tuple[int, int | None]], reason: str) -> list[Redacted]:
        from exarch_sql import redaction  # noqa: PLC0415

        with self._store.held() as db:
            if db.in_transaction:
                raise Refused(
                    "a redaction rewrites the file, which cannot be done inside a batch: leave the batch first"
                )
        with self._store.writing() as db:
            done = [redaction.redact(self._store, db, seq, part, reason) for seq, part in places]
        with self._store.held() as db:
            redaction.scrub(db)
        return done

    def backup(self, path: str | os.PathLike[str]) -> Report:
        """Copy the live archive into one self-contained, verified file at ``path``, where nothing may be yet."""
        from exarch_sql import keeping  # noqa: PLC0415

        with self._store.held() as db:
            return keeping.backup(db, arguments.path(path))

    def extract(self, log: Log, path: str | os.PathLike[str]) -> Report:
        """Copy one log and its ancestors to ``path``; what other logs said is redacted there, and the chain stays provable."""
        from exarch_sql import keeping  # noqa: PLC0415

        with self._store.held() as db:
            return keeping.extract(db, log.number, arguments.path(path))

    @staticmethod
    def migrate(
        path: str | os.PathLike[str], *, copy: str | os.PathLike[str] | None = None, timeout: float = 5.0
    ) -> Migrated:
        """Bring a closed file of an older format up to this version's, in place, with a copy of it kept first.

        The copy, at ``copy`` or else beside it as ``NAME.format-N``, is the file as it was; nothing may be there yet. A file of
        this version's format is left as it is. Raises BadFile where the result would not be lawful: nothing is changed then.
        Busy while another connection has the file open.
        """
        from exarch_sql import migrations  # noqa: PLC0415

        return migrations.migrate(arguments.path(path), None if copy is None else arguments.path(copy), timeout)

    def sql(self, query: str, *, seconds: float = 5.0, rows: int = 10_000) -> Result:
        """Run one read-only statement, within limits of time and rows, on a connection of its own; see `exarch_sql.query`."""
        from exarch_sql import query as querying  # noqa: PLC0415

        return querying.query(self.path, query, seconds=seconds, rows=rows)

    def stats(self) -> dict[str, Any]:
        """Sizes: records by kind, turns, residues, blobs, bytes of bodies, of the file."""
        from exarch_sql import stats  # noqa: PLC0415

        with self._store.reading() as db:
            return stats.stats(db)


def _absolute(name: str) -> str:
    """A path that means the same wherever the process goes. Nothing in it is resolved: through a link, ``..`` leads elsewhere."""
    try:
        return name if os.path.isabs(name) else os.path.join(os.getcwd(), name)
    except OSError as error:
        raise BadFile(
            f"{name} cannot be opened: the folder this process works in is gone ({error.strerror})"
        ) from error


def _found(db: apsw.Connection, uuid: str, created_ms: int) -> None:
    """Write what every lineage begins with: its own row, and the opening of the trunk."""
    db.execute(
        "INSERT INTO lineage (id, uuid, created_ms, format) VALUES (1, ?, ?, ?)", (uuid, created_ms, chain.RULES)
    )
    open_log(Store(db, "", readonly=False), db, TRUNK, parent=None, at_ms=created_ms)
