"""The one door to SQLite: how a lineage file is made, recognised and opened, and how the driver's errors become ours.

A file is recognised from its first bytes before SQLite is let near it, then its schema is compared with ours before anything in
it runs. Everything above this module speaks rows and our own errors only.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import uuid
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import apsw

from exarch_sql import resources
from exarch_sql.errors import BadFile, Busy, ExarchError, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

APPLICATION_ID = 0x65787371  # "exsq"
FORMAT = 1  # PRAGMA user_version
Durability = Literal["full", "normal", "off"]
SchemaRow = tuple[str, str, str]  # type, name, sql

_HEADER_BYTES = 100  # the SQLite database header
_USER_VERSION_AT, _APPLICATION_ID_AT = 60, 68


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
            return Refused(f"{path} is open for reading only: nothing was written; open it without readonly")
        case apsw.ConstraintError():
            return Refused(f"the file refused: {error}")
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


@cache
def expected_schema() -> frozenset[SchemaRow]:
    """What ``sqlite_schema`` of a lawful file holds, read off ``schema.sql``: (type, name, sql) of every object.

    SQLite keeps the text of each CREATE statement to the letter, so splitting the file into statements is enough.
    """
    rows: set[SchemaRow] = set()
    statement = ""
    for line in resources.text("schema.sql").splitlines(keepends=True):
        statement += line
        if apsw.complete(statement):
            text = re.sub(r"\A(\s*--[^\n]*\n|\s+)*", "", statement).rstrip()[:-1]
            if found := re.match(r"CREATE (?:UNIQUE )?(TABLE|INDEX|VIEW|TRIGGER) (\w+)", text):
                rows.add((found[1].lower(), found[2], text))
            statement = ""
    return frozenset(rows)


SCHEMA_SQL = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"


def schema_of(db: apsw.Connection) -> frozenset[SchemaRow]:
    """(type, name, sql) of every object in the file, those SQLite made for itself aside."""
    return frozenset(cast("Iterator[SchemaRow]", db.execute(SCHEMA_SQL)))


def schema_faults(found: frozenset[SchemaRow]) -> list[tuple[str, str]]:
    """What differs from the schema of this version: (object, "missing" | "altered" | "not ours"), by name."""
    want = {(kind, name): sql for kind, name, sql in expected_schema()}
    got = {(kind, name): sql for kind, name, sql in found}
    faults = []
    for kind, name in sorted(want.keys() | got.keys()):
        if (kind, name) not in got:
            faults.append((f"{kind} {name}", "missing"))
        elif (kind, name) not in want:
            faults.append((f"{kind} {name}", "not ours"))
        elif got[kind, name] != want[kind, name]:
            faults.append((f"{kind} {name}", "altered"))
    return faults


def check_header(path: str) -> None:
    """Refuse, before SQLite touches it, a file that is not a lineage of a version we know.

    Raises BadFile with what was got and wanted.
    """
    try:
        with open(path, "rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise BadFile(f"{path} cannot be opened: {error.strerror}") from error
    if len(header) < _HEADER_BYTES or not header.startswith(b"SQLite format 3\0"):
        raise BadFile(f"{path} is not a lineage file: it does not begin as a SQLite database; it was left as it is")
    (application_id,) = struct.unpack_from(">I", header, _APPLICATION_ID_AT)
    (version,) = struct.unpack_from(">I", header, _USER_VERSION_AT)
    if application_id != APPLICATION_ID:
        raise BadFile(
            f"{path} is another application's database: application_id {application_id:#x} instead of {APPLICATION_ID:#x};"
            " it was left as it is"
        )
    if version != FORMAT:
        fix = "a newer exarch_sql reads it" if version > FORMAT else "no release ever wrote that"
        raise BadFile(f"{path} has format {version} instead of {FORMAT}: {fix}; it was left as it is")


def _harden(db: apsw.Connection) -> None:
    """Distrust the file: nothing in its schema may call out, rewrite itself, or be read past a broken cell."""
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0)
    db.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    db.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    db.execute("PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY")


def open_file(path: str, *, readonly: bool, durability: Durability, timeout: float) -> apsw.Connection:
    """A hardened connection to an existing lineage file, its schema compared with ours.

    ``timeout`` bounds every wait for another connection, in seconds. Raises BadFile or Busy.
    """
    check_header(path)
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE
    with translated(path):
        db = apsw.Connection(path, flags=flags)
        try:
            db.set_busy_timeout(int(timeout * 1000))
            _harden(db)
            faults = schema_faults(schema_of(db))
            if not readonly:
                db.execute(f"PRAGMA synchronous = {durability}")
        except BaseException:
            db.close()
            raise
    if faults:
        db.close()
        what, how = faults[0]
        raise BadFile(
            f"{path} has a schema that is not ours: {what} is {how} ({len(faults)} such); verify lists them all"
        )
    return db


def open_unjudged(path: str) -> apsw.Connection:
    """A hardened read-only connection to a file whose schema may be anything: for ``verify``, which says what is wrong."""
    check_header(path)
    with translated(path):
        db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            db.set_busy_timeout(5000)
            _harden(db)
        except BaseException:
            db.close()
            raise
    return db


def create_file(path: str, found: Callable[[apsw.Connection, str, int], None], *, created_ms: int) -> None:
    """Make a lineage file whole or not at all: in a temporary file beside ``path``, then linked into place.

    ``found(db, uuid, created_ms)`` writes the first records. Where another process wins the race its file stays and ours goes.
    """
    folder = Path(path).absolute().parent
    temporary = str(folder / f".{Path(path).name}.{uuid.uuid4().hex}")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise BadFile(f"{path} cannot be created: {error.strerror}") from error
    try:
        with translated(path):
            db = apsw.Connection(temporary, flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
                with db:
                    db.execute(resources.text("schema.sql"))
                    found(db, str(uuid.uuid4()), created_ms)
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                db.close()
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
        _sync_folder(folder)
    finally:
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary + suffix)


def _sync_folder(folder: Path) -> None:
    """Make a new name in the folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
