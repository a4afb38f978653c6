"""What a connection is set to, read back from SQLite: each setting is a promise of docs/durability.md or docs/guarantees.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw
import pytest

from exarch_sql import Archive

if TYPE_CHECKING:
    from pathlib import Path

SYNCHRONOUS = {"full": 2, "normal": 1, "off": 0}
HARDENED: dict[str, Any] = {
    "foreign_keys": 1,
    "trusted_schema": 0,
    "cell_size_check": 1,
    "temp_store": 2,
    "journal_mode": "wal",
}
DISTRUST = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION: 0,
    apsw.SQLITE_DBCONFIG_DQS_DDL: 0,
    apsw.SQLITE_DBCONFIG_DQS_DML: 0,
    apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE: 0,
}


def settings(db: apsw.Connection) -> dict[str, Any]:
    """The hardening, as SQLite says it is."""
    return {name: db.pragma(name) for name in HARDENED}


@pytest.mark.parametrize("durability", SYNCHRONOUS)
def test_each_durability_is_what_sqlite_is_set_to(tmp_path: Path, durability: Any) -> None:
    """Of a file just made, of one opened again, and of one that had another handle's setting."""
    path = tmp_path / "a.exarch"
    for _ in range(2):
        with Archive.open(path, durability=durability, timeout=1.5) as archive:
            db = archive._store.db
            assert db.pragma("synchronous") == SYNCHRONOUS[durability]
            assert settings(db) == HARDENED
            assert db.pragma("busy_timeout") == 1500
            assert db.pragma("journal_size_limit") == 16 * 1024 * 1024
            with Archive.open(path) as beside:
                assert beside._store.db.pragma("synchronous") == SYNCHRONOUS["full"]
            assert db.pragma("synchronous") == SYNCHRONOUS[durability]


def test_full_is_the_default(tmp_path: Path) -> None:
    """And a reader waits, at most, five seconds too."""
    with Archive.open(tmp_path / "a.exarch") as archive, Archive.open(archive.path, readonly=True) as reader:
        assert archive._store.db.pragma("synchronous") == SYNCHRONOUS["full"]
        assert [each._store.db.pragma("busy_timeout") for each in (archive, reader)] == [5000, 5000]


@pytest.mark.parametrize("readonly", [False, True])
def test_every_handle_distrusts_its_file(lawful_copy: Path, readonly: bool) -> None:
    """Nothing in a schema may call out, rewrite itself, load code, or be read past a broken cell."""
    with Archive.open(lawful_copy, readonly=readonly) as archive:
        db = archive._store.db
        assert settings(db) == HARDENED
        assert {option: db.config(option, -1) for option in DISTRUST} == DISTRUST


def test_a_reader_cannot_write(lawful_copy: Path) -> None:
    """The handle is read-only to SQLite itself, whatever is asked of it."""
    with Archive.open(lawful_copy, readonly=True) as archive:
        db = archive._store.db
        assert db.readonly("main")
        with pytest.raises(apsw.ReadOnlyError):
            db.execute(
                "INSERT INTO records (seq, log, kind, at_ms, body_hash, digest) VALUES (99, 1, 'note', 0, x'', x'')"
            )
        with pytest.raises(apsw.ReadOnlyError):
            db.execute("PRAGMA user_version = 7")


def test_the_tables_check_themselves(lawful_copy: Path) -> None:
    """A defensive connection lets nobody write to the schema or to the search index's own tables by hand."""
    with Archive.open(lawful_copy) as archive:
        archive.reindex()
        db = archive._store.db
        db.execute("PRAGMA writable_schema = ON")
        for hand in ("UPDATE sqlite_schema SET sql = ''", "DELETE FROM search_data"):
            with pytest.raises(apsw.SQLError, match="may not be modified"):
                db.execute(hand)
