"""The one door to SQLite: how a lineage file is made, recognised and opened, and how the driver's errors become ours.

A file is recognised from its first bytes before SQLite reads it, then its schema is compared with ours before anything in it
runs. Nothing here opens a lineage file but SQLite itself: on POSIX, closing any other descriptor of a file drops every lock that
the process holds on it, and another process may then throw away a write-ahead log that is still being written.
Everything above this module speaks rows and our own errors only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import stat
import struct
import time
import uuid
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import apsw

from exarch_sql import resources
from exarch_sql.errors import BadFile, Busy, ExarchError, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

APPLICATION_ID = 0x65787371  # "exsq"
FORMAT = 1  # PRAGMA user_version
Durability = Literal["full", "normal", "off"]
SCHEMA_BYTES = 200_000  # of one statement of a schema; the longest of ours has a tenth of it
SCHEMA_SECONDS = 10.0  # to read a schema
LOG_BYTES = (
    16 * 1024 * 1024
)  # of the write-ahead log between its uses; it holds 4 MiB and one transaction when nobody reads for long
LOOK_SECONDS = 0.1  # between two looks at which file the write-ahead log is
SchemaRow = tuple[str, str, str]  # type, name, sql

_HEADER_BYTES = 100  # the SQLite database header
_ENCODING_AT, _USER_VERSION_AT, _APPLICATION_ID_AT = 56, 60, 68


def translation(error: apsw.Error, path: str) -> ExarchError | None:  # noqa: PLR0911 (a table)
    """Our error for one of the driver's; None for what can only be a mistake of ours."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return Busy(f"{path} is being written by another connection: nothing was written, try again")
        case apsw.NotADBError() | apsw.CorruptError() | apsw.IOError() | apsw.CantOpenError() | apsw.FormatError():
            return BadFile(f"{path} could not be read or written: {error}")
        case apsw.FullError():
            return ExarchError(f"{path} could not grow: {error}; nothing was written, free some space and try again")
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return Refused(
                f"{path} is open for reading only: nothing was written; open it without readonly, where the file, its folder, "
                "its -wal and its -shm may be written"
            )
        case apsw.ConstraintError():
            return Refused(f"the file refused: {error}")
        case apsw.AuthError():
            return BadFile(f"{path} has a schema that is not ours, and nothing in it was run: {error}")
        case apsw.SQLError():  # our own SQL, of a schema that was ours when the file was opened
            return BadFile(
                f"{path} no longer answers as a lineage: {error}; its schema was changed or read wrongly: run verify"
            )
        case apsw.TooBigError():
            return Refused(f"the text or blob is larger than SQLite holds in one value: {error}; nothing was written")
        case apsw.ConnectionClosedError():
            return ExarchError(f"{path} was closed: open the archive again")
        case _:
            return None


@contextlib.contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn what the driver raises inside the block into ours."""
    try:
        yield
    except apsw.Error as error:
        ours = translation(error, path)
        if ours is None:
            raise
        raise ours from error


def one(db: apsw.Connection, sql: str, bindings: Any = ()) -> tuple[Any, ...]:
    """The row of a query that always answers one. Raises BadFile when it does not: only a damaged file can make that so."""
    row: tuple[Any, ...] | None = db.execute(sql, bindings).fetchone()
    if row is None:
        raise BadFile("a row that every lineage file has is missing: run verify")
    return row


OPTIONAL_MARK = "--| "  # what part 4 of schema.sql, the search index, stands behind: it is not there from the start


def schema_text(format_: int) -> str:
    """``schema.sql`` as a format has it; of those before this one a copy is kept."""
    return resources.text("schema.sql" if format_ == FORMAT else f"exarch_sql/formats/{format_}.sql")


def expected_schema(format_: int | None = None) -> tuple[SchemaRow, ...]:
    """What ``sqlite_schema`` of a lawful file holds: (type, name, sql) of every object, in the order in which they are made.

    Of a format, by default this one, and read off its ``schema.sql``: SQLite keeps the text of each CREATE statement to the
    letter, so splitting the file into statements is enough.
    """
    return _schemas(format_ or FORMAT)[0]


def optional_schema(format_: int | None = None) -> tuple[SchemaRow, ...]:
    """What it may hold besides, in the order in which it is made: the search index."""
    return _schemas(format_ or FORMAT)[1]


@cache
def _schemas(format_: int) -> tuple[tuple[SchemaRow, ...], tuple[SchemaRow, ...]]:
    text = schema_text(format_)
    marked = re.findall(rf"^{re.escape(OPTIONAL_MARK.rstrip())} ?(.*\n?)", text, re.MULTILINE)
    return tuple(_created_by(text)), tuple(_created_by("".join(marked)))


# Plain tables that others may add, to the letter. SQLite makes some itself, for the table `search` and when somebody runs ANALYZE
# (3.40 and 3.54 spell them alike); Litestream (0.3 and 0.5) makes the last two in every file that it replicates.
_OF_OTHERS = {
    ("table", "sqlite_stat1"): "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    ("table", "sqlite_stat4"): "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
    ("table", "search_data"): "CREATE TABLE 'search_data'(id INTEGER PRIMARY KEY, block BLOB)",
    ("table", "search_idx"): "CREATE TABLE 'search_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID",
    ("table", "search_config"): "CREATE TABLE 'search_config'(k PRIMARY KEY, v) WITHOUT ROWID",
    ("table", "_litestream_seq"): "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)",
    ("table", "_litestream_lock"): "CREATE TABLE _litestream_lock (id INTEGER)",
}


def _created_by(text: str) -> Iterator[SchemaRow]:
    """Every object that a file of SQL statements makes."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if apsw.complete(statement):
            sql = re.sub(r"\A(\s*--[^\n]*\n|\s+)*", "", statement).rstrip()[:-1]
            if found := re.match(r"CREATE (?:UNIQUE |VIRTUAL )?(TABLE|INDEX|VIEW|TRIGGER) (\w+)", sql):
                yield found[1].lower(), found[2], sql
            statement = ""


# as bytes, for what stands there may be no text at all
CHECKPOINT_SQL = "PRAGMA wal_checkpoint(TRUNCATE)"  # folds the write-ahead log into the file and empties it
SCHEMA_SQL = """
SELECT CAST(type AS BLOB), CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_schema WHERE sql IS NOT NULL"""


def schema_of(db: apsw.Connection) -> frozenset[SchemaRow]:
    """(type, name, sql) of every object in the file, those SQLite made for itself aside."""
    rows = ([(field or b"").decode(errors="replace") for field in row] for row in db.execute(SCHEMA_SQL))
    return frozenset((type_, name, sql) for type_, name, sql in rows)


def schema_faults(found: frozenset[SchemaRow], format_: int | None = None) -> list[tuple[str, str]]:
    """What differs from the schema of a format, by default this one: (object, "missing" | "altered" | "not ours"), by name.

    The search index may be missing, in part or whole: what is left of it is the search's own affair.
    """
    want = {(kind, name): sql for kind, name, sql in expected_schema(format_)}
    known = want | _OF_OTHERS | {(kind, name): sql for kind, name, sql in optional_schema(format_)}
    got = {(kind, name): sql for kind, name, sql in found}
    faults = []
    for kind, name in sorted(want.keys() | got.keys()):
        if (kind, name) not in got:
            faults.append((f"{kind} {name}", "missing"))
        elif (kind, name) not in known:
            faults.append((f"{kind} {name}", "not ours"))
        elif got[kind, name] != known[kind, name]:
            faults.append((f"{kind} {name}", "altered"))
    return faults


def _check_place(path: str) -> None:
    """Refuse what SQLite must not even open: what is no file, and a file with a rollback journal beside it. Raises BadFile.

    A lineage is always in write-ahead mode, so a rollback journal is another program's, or another file's: SQLite would write it
    into this one before anybody could look.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        if os.path.islink(path):
            raise BadFile(f"{path} is a symbolic link to {os.readlink(path)}, which is not there") from error
        raise BadFile(f"{path} cannot be opened: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(status.st_mode):
        raise BadFile(f"{path} is not a file: it was left as it is")
    if _size(os.path.realpath(path) + "-journal"):
        raise BadFile(
            f"{path}-journal lies beside it, a rollback journal, which no lineage has: SQLite would write it into the file; move "
            "it away, or, if another program was interrupted while it changed this very file, open the file with that program once"
        )


def check_vacant(path: str) -> None:
    """Refuse a name for a new file where the log or journal of a lost one lies: SQLite would write it into the new one.

    Raises BadFile.
    """
    if "\0" in path:
        raise BadFile(f"{path!r} cannot be created: a name holds no NUL")
    for suffix in ("-wal", "-journal"):
        if _size(os.path.realpath(path) + suffix):
            raise BadFile(
                f"{path}{suffix} is left of a file that is gone from {path}, and would be written into a new one: move it away "
                "(it may hold the newest records of the lost file)"
            )


def _size(path: str) -> int:
    """A file's bytes; 0 where there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _check_header(header: bytes, path: str) -> None:
    """Refuse, before SQLite reads it, a file that is not a lineage. Raises BadFile with what was got and wanted."""
    if not header.startswith(b"SQLite format 3\0"):
        raise BadFile(f"{path} is not a lineage file: it does not begin as a SQLite database; it was left as it is")
    (application_id,) = struct.unpack_from(">I", header, _APPLICATION_ID_AT)
    if application_id != APPLICATION_ID:
        raise BadFile(
            f"{path} is another application's database: application_id {application_id:#x} instead of {APPLICATION_ID:#x};"
            " it was left as it is"
        )
    (encoding,) = struct.unpack_from(">I", header, _ENCODING_AT)
    if encoding != 1:  # the triggers count the bytes of a note in the encoding of the file
        raise BadFile(f"{path} holds its text in encoding {encoding} instead of 1, UTF-8: no release ever wrote that")


def _check_format(got: int, path: str, *, oldest: int) -> None:
    """Refuse a format that is not from ``oldest`` to ours. Raises BadFile with what was got and wanted, and what would work."""
    if oldest <= got <= FORMAT:
        return
    if got > FORMAT:
        fix = "a newer exarch_sql reads it"
    elif got > 0:
        fix = f"an older exarch_sql wrote it, and `exarch-sql migrate {shlex.quote(path)}` keeps a copy and brings it up to date"
    else:
        fix = "no release ever wrote that"
    raise BadFile(f"{path} has format {got} instead of {FORMAT}: {fix}; it was left as it is")


def _harden(db: apsw.Connection) -> None:
    """Distrust the file: nothing in its schema may call out, rewrite itself, or be read past a broken cell."""
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0)
    db.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    db.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    db.execute("PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY")


def _connect(path: str, *, readonly: bool, timeout: float, migrating: bool = False) -> apsw.Connection:
    """A hardened connection to an existing lineage file, nothing of which but its first page has been looked at.

    ``migrating`` takes a file of an older format too, and has it alone: it fails where another connection has the file open, and
    until it is closed none can open it. Until `_trust`, closing it leaves a write-ahead log where and as it is. Raises BadFile,
    or Refused for a file that cannot be written.
    """
    _check_place(path)
    real = os.path.realpath(path)  # never a name that SQLite gives a meaning of its own, such as :memory:
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE
    waiting = _size(real + "-wal") > 0
    if readonly and not waiting and os.statvfs(real).f_flag & os.ST_RDONLY:
        # nobody can write there, and SQLite could not make the sidecars that it takes to share the file
        real = f"file:{quote(real)}?immutable=1"
        flags |= apsw.SQLITE_OPEN_URI
    db = apsw.Connection(real, flags=flags)
    try:
        header = db.read("main", 0, 0, _HEADER_BYTES)[1]
        _check_header(header, path)
        (said,) = struct.unpack_from(">i", header, _USER_VERSION_AT)
        oldest = 1 if migrating else FORMAT
        if not waiting:  # a log may hold a newer page than the file
            _check_format(said, path, oldest=oldest)
        if not readonly and db.readonly("main"):
            raise Refused(f"{path} cannot be written here: open it for reading only, or have its permissions changed")
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, waiting)
        db.set_busy_timeout(int(timeout * 1000))
        _harden(db)
        if migrating and said != FORMAT:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
        # the first look through SQLite: from here on, no other connection can have the file alone
        _check_format(format_of(db), path, oldest=oldest)
    except BaseException:
        db.close()
        raise
    return db


def format_of(db: apsw.Connection) -> int:
    """The format that a file says it has, from the newest page."""
    (number,) = one(db, "PRAGMA user_version")
    return int(number)


def _trust(db: apsw.Connection, durability: Durability) -> None:
    """Make a judged connection one to write with."""
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    _write_ahead(db)
    # a log that grew while somebody read for long shrinks when it is begun again; user_version reads, and so opens the log
    db.execute(
        f"PRAGMA synchronous = {durability}; PRAGMA journal_size_limit = {LOG_BYTES}; PRAGMA user_version"
    ).fetchall()


def _write_ahead(db: apsw.Connection) -> None:
    """Put the file into write-ahead mode, if it is not. Raises BadFile where it stays in another: SQLite raises nothing then."""
    (mode,) = one(db, "PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise BadFile(
            f"{db.filename} stays in {mode} mode: another program has it open, or its folder cannot hold its log"
        )


@contextlib.contextmanager
def _opening(path: str) -> Iterator[None]:
    """What the driver raises while a file is opened, as ours; with a way out where the folder is what forbids it."""
    try:
        with translated(path):
            yield
    except (BadFile, Refused) as error:
        if isinstance(error.__cause__, apsw.CantOpenError | apsw.ReadOnlyError):
            raise BadFile(
                f"{path} cannot be opened where it is: SQLite shares a file through sidecars (its -wal and -shm), which cannot be "
                f"made there ({error.__cause__}); copy it, with its -wal if there is one, to a folder of yours and open the copy"
            ) from error.__cause__
        raise
    except OSError as error:
        raise BadFile(f"{path} cannot be opened: {error.strerror}") from error


def open_file(
    path: str, *, readonly: bool, durability: Durability, timeout: float, migrating: bool = False
) -> apsw.Connection:
    """A hardened connection to an existing lineage file, its schema compared with that of its format, which is ours.

    ``timeout`` bounds every wait for another connection, in seconds. ``migrating`` takes an older format too, and has such a file
    alone. Raises BadFile or Busy; Refused for a file that cannot be written.
    """
    with _opening(path):
        db = _connect(path, readonly=readonly, timeout=timeout, migrating=migrating)
        try:
            if faults := _looked_at(db, path):
                what, how = faults[0]
                raise BadFile(
                    f"{path} has a schema that is not ours: {what} is {how} ({len(faults)} such); verify lists them all"
                )
            if not readonly:
                _trust(db, durability)
                if durability == "full":
                    # the file may be another process's of a moment ago, and so may the log: their names must last too
                    sync_folder(Path(db.filename).parent)
        except BaseException:
            db.close()
            raise
    return db


def close_reader(db: apsw.Connection) -> None:
    """Close a read-only connection to a lineage, and take away the empty sidecars that it leaves if it was the last one.

    SQLite lets only a connection that may write do that, under a lock that no other connection's presence allows: so one is opened
    for a moment. A log that holds anything, such as that of a writer that was killed, is left to the next writer.
    """
    path = db.filename
    db.close()
    if _size(path + "-wal") or not os.path.exists(path + "-wal"):
        return
    with contextlib.suppress(apsw.Error, BadFile):
        _check_place(path)
        last = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            last.execute("PRAGMA user_version").fetchall()  # reads, and so opens the log: closing takes it away
        finally:
            last.close()


def open_unjudged(path: str) -> apsw.Connection:
    """A hardened read-only connection to a file whose schema may be anything: for ``verify``, which says what is wrong.

    Where tables or indexes are not ours, reading any of them could run what was planted there (a view in a table's place, an
    index on an expression, a check): then only the schema itself can be read, and all else fails as unauthorised.
    """
    with _opening(path):
        db = _connect(path, readonly=True, timeout=5.0)
        try:
            # without FTS5 nothing but plain tables is read, and integrity_check does not go over the whole search index
            db.drop_modules(["json_each", "json_tree"])
            if any(_runs_when_read(what, how) for what, how in _looked_at(db, path)):
                db.authorizer = _only_the_schema
        except BaseException:
            db.close()
            raise
    return db


def _looked_at(db: apsw.Connection, path: str) -> list[tuple[str, str]]:
    """The faults of a schema that may be anything, in bounded time. Raises BadFile past the bounds.

    SQLite reads its statistics with the schema, and a column of theirs may be a formula. So no value may be large, which bounds a
    step, and the steps have to end.
    """
    length = db.limit(apsw.SQLITE_LIMIT_LENGTH, SCHEMA_BYTES)
    end = time.monotonic() + SCHEMA_SECONDS
    db.set_progress_handler(lambda: time.monotonic() > end, 1000)
    try:
        return schema_faults(schema_of(db), format_of(db))
    except (apsw.TooBigError, apsw.InterruptError) as error:
        raise BadFile(f"{path} has a schema that is not ours, larger by far: {error}; it was left as it is") from error
    except apsw.SQLError as error:  # of a format number that SQLite does not know
        raise BadFile(f"{path} has a schema that cannot be read: {error}; it was left as it is") from error
    finally:
        db.set_progress_handler(None)
        db.limit(apsw.SQLITE_LIMIT_LENGTH, length)


def _runs_when_read(what: str, how: str) -> bool:
    """Whether a fault of the schema could make the judge's own reading run something of the file's."""
    kind, _, name = what.partition(" ")
    tables = {name for kind, name, _ in expected_schema() if kind == "table"}
    return how != "missing" and (kind in ("table", "index") or (kind == "view" and name in tables))


def _only_the_schema(action: int, one: str | None, *_: str | None) -> int:
    """An authorizer that admits reading the schema table, and opening a transaction to do it in."""
    reading = action == apsw.SQLITE_READ and one in ("sqlite_master", "sqlite_schema")
    admitted = reading or action in (apsw.SQLITE_SELECT, apsw.SQLITE_TRANSACTION)
    return apsw.SQLITE_OK if admitted else apsw.SQLITE_DENY


def create_file(path: str, found: Callable[[apsw.Connection, str, int], None], *, created_ms: int) -> None:
    """Make a lineage file whole or not at all: in a temporary file beside ``path``, then linked into place.

    ``found(db, uuid, created_ms)`` writes the first records. Where another process wins the race its file stays and ours goes.
    """
    folder = Path(path).absolute().parent
    temporary = str(folder / f".{Path(path).name}.{uuid.uuid4().hex}")
    if os.path.islink(path):
        raise BadFile(
            f"{path} is a symbolic link to {os.readlink(path)}, which is not there: make the file by its own name"
        )
    try:
        check_vacant(path)
    except BadFile:
        if os.path.exists(path):  # another process made it meanwhile, and the log is its own
            return
        raise
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with translated(path):
            db = apsw.Connection(temporary, flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                _write_ahead(db)
                db.execute("PRAGMA synchronous = FULL")
                db.execute("BEGIN IMMEDIATE")
                db.execute(schema_text(FORMAT))
                found(db, str(uuid.uuid4()), created_ms)
                db.execute("COMMIT")
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                db.close()
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
        sync_folder(folder)
    except OSError as error:
        raise BadFile(f"{path} cannot be created: {error.strerror}") from error
    finally:
        remove(temporary)


class Whereabouts:
    """Which files the names of a connection's database led to when it was opened. A database in memory has none.

    The write-ahead log is looked at ten times a second, and in between only for being there: Linux from 6.13 on keeps finer times
    of a file that was looked at, and each sync of the log then takes half as long again.
    """

    def __init__(self, db: apsw.Connection) -> None:
        self._file = db.filename
        self._log = self._file + "-wal"
        self._were = (_inode(self._file), _inode(self._log)) if self._file else None
        self._until = 0.0

    def hold(self) -> bool:
        """Whether the names lead there still, as far as one can tell within ``LOOK_SECONDS``."""
        if self._were is None:
            return True
        now = time.monotonic()
        if now < self._until:
            return _inode(self._file) == self._were[0] and os.access(self._log, os.F_OK)
        if (_inode(self._file), _inode(self._log)) != self._were:
            return False
        self._until = now + LOOK_SECONDS
        return True


def _inode(path: str) -> tuple[int, int] | None:
    """Device and inode of a file; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def remove(temporary: str) -> None:
    """Remove a temporary database and its sidecars, as far as they are there and can be."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(OSError):
            os.unlink(temporary + suffix)


def sync_folder(folder: Path) -> None:
    """Make new names in a folder durable, where permissions and the file system have a way to. Raises OSError when it fails."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)
