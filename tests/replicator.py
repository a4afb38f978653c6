"""A continuous replicator in small, as a process: ``python tests/replicator.py FILE FOLDER HEADS``. Reads orders from stdin.

It does to a file what Litestream does: two plain tables of its own in it, one long read transaction so that nobody else begins
the log anew, and copies of the log's frames as they come. ``sync`` copies what is new; ``checkpoint`` gives the read transaction
up for a moment and has the log folded in; ``stop`` ends it. Each is answered with one line of JSON: the newest head that was
acknowledged in HEADS before the copy began, where the copy is, and how often the log was begun anew behind its back.

FOLDER then holds numbered generations, each a copy of the main file and the frames to be laid over it. `restore` does that.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import sys
from pathlib import Path
from typing import Any

WAL_HEADER, FRAME_HEADER = 32, 24


def restore(generation: Path, size: int | None, path: Path) -> None:
    """Lay the frames of a generation, the first ``size`` bytes of them or all, over its copy of the main file."""
    pages = bytearray((generation / "main").read_bytes())
    log = (generation / "frames").read_bytes()[:size]
    page_size = struct.unpack_from(">H", pages, 16)[0]
    step = FRAME_HEADER + page_size
    for start in range(0, len(log), step):
        number, pages_after = struct.unpack_from(">II", log, start)
        end = number * page_size
        pages.extend(bytes(max(0, end - len(pages))))
        pages[end - page_size : end] = log[start + FRAME_HEADER : start + step]
        if pages_after:
            pages.extend(bytes(max(0, pages_after * page_size - len(pages))))
            del pages[pages_after * page_size :]
    path.write_bytes(pages)


class Replicator:
    """The copies made so far, and the two connections: one holds the read transaction, the other writes."""

    def __init__(self, file: str, folder: Path, heads: Path) -> None:
        self.wal, self.folder, self.heads = Path(file + "-wal"), folder, heads
        self.writer, self.reader = (sqlite3.connect(file, isolation_level=None, timeout=5) for _ in range(2))
        # kept open: closing a descriptor of the main file would drop the locks of this process
        self.main = open(file, "rb")  # noqa: SIM115
        for db in (self.writer, self.reader):
            db.execute("PRAGMA journal_mode = wal")
            db.execute("PRAGMA wal_autocheckpoint = 0")
        self.writer.execute("CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)")
        self.writer.execute("CREATE TABLE IF NOT EXISTS _litestream_lock (id INTEGER)")
        (self.page_size,) = self.writer.execute("PRAGMA page_size").fetchone()
        self.generation, self.lost = 0, -1
        self.salts, self.at = b"", 0
        self.touch()
        self.hold()

    def touch(self) -> None:
        """Write something, so that the log is not empty, and a reader reads from it."""
        self.writer.execute("INSERT INTO _litestream_seq VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET seq = seq + 1")

    def hold(self) -> None:
        """Begin the long read transaction."""
        self.reader.execute("BEGIN")
        self.reader.execute("SELECT count(*) FROM _litestream_seq").fetchone()

    def sync(self) -> dict[str, Any]:
        """Copy what the log holds more than was copied; everything, where the log was begun anew."""
        lines = self.heads.read_text(encoding="utf-8").splitlines() if self.heads.exists() else []
        self.writer.execute("BEGIN IMMEDIATE")
        try:
            with self.wal.open("rb") as wal:
                header = wal.read(WAL_HEADER)
                if header[16:24] != self.salts:
                    self.lost += 1
                    self.begin(header[16:24])
                wal.seek(self.at)
                new = self.committed(wal.read())
        finally:
            self.writer.execute("ROLLBACK")
        with (self.folder / str(self.generation) / "frames").open("ab") as frames:
            frames.write(new)
            size = frames.tell()
        self.at += len(new)
        return {
            "head": json.loads(lines[-1]) if lines else None,
            "generation": self.generation,
            "size": size,
            "lost": self.lost,
        }

    def begin(self, salts: bytes) -> None:
        """A new generation: the main file as it is, under the log from its beginning."""
        self.generation += 1
        self.salts, self.at = salts, WAL_HEADER
        place = self.folder / str(self.generation)
        place.mkdir()
        self.main.seek(0)
        (place / "main").write_bytes(self.main.read())
        (place / "frames").touch()

    def committed(self, log: bytes) -> bytes:
        """The frames of this log, up to the last that ends a transaction."""
        end, step = 0, FRAME_HEADER + self.page_size
        for start in range(0, len(log) - step + 1, step):
            if log[start + 8 : start + 16] != self.salts:
                break
            if struct.unpack_from(">I", log, start + 4)[0]:
                end = start + step
        return log[:end]

    def checkpoint(self) -> dict[str, Any]:
        """Copy, have the log folded in, go on. What it begins anew itself is not lost."""
        done = self.sync()
        self.reader.execute("COMMIT")
        self.reader.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        self.touch()
        self.hold()
        with self.wal.open("rb") as wal:
            self.lost -= wal.read(WAL_HEADER)[16:24] != self.salts
        return done


def main() -> None:
    """Obey."""
    file, folder, heads = sys.argv[1:]
    replicator = Replicator(file, Path(folder), Path(heads))
    orders = {"sync": replicator.sync, "checkpoint": replicator.checkpoint}
    print(json.dumps({"pid": os.getpid()}), flush=True)  # noqa: T201
    for line in sys.stdin:
        if line.strip() == "stop":
            break
        print(json.dumps(orders[line.strip()]()), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
