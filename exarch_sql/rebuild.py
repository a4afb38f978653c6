"""Rebuild (L14): drop the fold, derive it again from the records, and say what came out differently.

One transaction. The guards, which admit fold rows only while the newest record is folded, are taken off inside it and put back to
the letter; the edits are then replayed through the same triggers that folded them first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from exarch_sql.connection import one, schema_faults, schema_of
from exarch_sql.errors import BadFile
from exarch_sql.fold import TABLES

if TYPE_CHECKING:
    import apsw

REPLAY_SQL = "INSERT INTO edits SELECT * FROM edits ORDER BY seq"


def rebuild(db: apsw.Connection) -> list[str]:
    """Re-derive every fold table in an open write transaction; one line a table that changed. Raises BadFile if it cannot.

    A lawful file answers an empty list, and not one row of it changed.
    """
    guards = [(name, sql) for kind, name, sql in schema_of(db) if kind == "trigger" and guards_fold(sql)]
    for name, _ in guards:
        db.execute(f"DROP TRIGGER {name}")
    for table in TABLES:
        db.execute(f"CREATE TEMP TABLE was_{table} AS SELECT * FROM main.{table}")
        db.execute(f"DELETE FROM main.{table}")
    db.execute(REPLAY_SQL)
    for _, sql in guards:
        db.execute(sql)
    if schema_faults(schema_of(db)):
        raise BadFile("the schema is not ours: run verify; nothing was rebuilt")
    changes = []
    for table in TABLES:
        gone, come = (
            one(db, f"SELECT count(*) FROM (SELECT * FROM {these} EXCEPT SELECT * FROM {those})")[0]
            for these, those in ((f"temp.was_{table}", f"main.{table}"), (f"main.{table}", f"temp.was_{table}"))
        )
        if gone or come:
            changes.append(f"{table}: {gone} rows were wrong, {come} were missing")
        db.execute(f"DROP TABLE temp.was_{table}")
    return changes


def guards_fold(sql: str) -> bool:
    """Whether a trigger guards a fold table against hands other than the fold's."""
    return any(f" ON {table}" in sql.partition("\n")[0] for table in TABLES)
