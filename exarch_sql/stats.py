"""What a lineage holds, in numbers."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from exarch_sql.connection import one

if TYPE_CHECKING:
    import apsw

# Counted here: SQL's GROUP BY would sort the rows in memory. octet_length reads a body's length without the body.
SIZES_SQL = "SELECT kind, octet_length(body) FROM records"
BLOBS_SQL = "SELECT count(*), coalesce(sum(bytes), 0) FROM blobs"


def stats(db: apsw.Connection) -> dict[str, Any]:
    """Counts (records, by kind, logs, turns, residues, blobs) and bytes (of bodies, blobs, the file)."""
    kinds: Counter[str] = Counter()
    body_bytes = 0
    for kind, size in db.execute(SIZES_SQL):
        kinds[kind] += 1
        body_bytes += size or 0
    blobs, blob_bytes = one(db, BLOBS_SQL)
    parts = (db.filename, db.filename + "-wal")
    return {
        "records": kinds.total(),
        "kinds": dict(sorted(kinds.items())),
        "logs": one(db, "SELECT count(*) FROM logs")[0],
        "turns": kinds["prompt"] + kinds["assistant"],
        "residues": one(db, "SELECT count(*) FROM residues")[0],
        "blobs": blobs,
        "body-bytes": body_bytes,
        "blob-bytes": blob_bytes,
        "file-bytes": sum(os.path.getsize(name) for name in parts if os.path.exists(name)),
    }
