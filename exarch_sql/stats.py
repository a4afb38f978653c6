"""What a lineage holds, in numbers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from exarch_sql.connection import one

if TYPE_CHECKING:
    import apsw

COUNTS_SQL = (
    "SELECT kind, count(*), coalesce(sum(length(CAST(body AS BLOB))), 0) FROM records GROUP BY kind ORDER BY kind"
)
BLOBS_SQL = "SELECT count(*), coalesce(sum(bytes), 0) FROM blobs"


def stats(db: apsw.Connection, path: str) -> dict[str, Any]:
    """Counts (records, by kind, logs, turns, residues, blobs) and bytes (of bodies, blobs, the file)."""
    kinds = {kind: (count, size) for kind, count, size in db.execute(COUNTS_SQL)}
    blobs, blob_bytes = one(db, BLOBS_SQL)
    sidecars = (path, path + "-wal")
    return {
        "records": sum(count for count, _ in kinds.values()),
        "kinds": {kind: count for kind, (count, _) in kinds.items()},
        "logs": one(db, "SELECT count(*) FROM logs")[0],
        "turns": sum(kinds.get(kind, (0, 0))[0] for kind in ("prompt", "assistant")),
        "residues": one(db, "SELECT count(*) FROM residues")[0],
        "blobs": blobs,
        "body-bytes": sum(size for _, size in kinds.values()),
        "blob-bytes": blob_bytes,
        "file-bytes": sum(os.path.getsize(name) for name in sidecars if os.path.exists(name)),
    }
