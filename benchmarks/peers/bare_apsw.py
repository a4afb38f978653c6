"""A bare insert: the same JSON text, ready made, into one table of two columns. Mode ``batch``: all asked for in one transaction.

Does: nothing but store it. No encoding, no hash, no chain, no laws, no ids of turns, no index.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import apsw
from serving import Contestant, compact, serve

if TYPE_CHECKING:
    from pathlib import Path

    from conversation import Step


class BareApsw(Contestant):
    """One STRICT table in WAL mode."""

    package = "apsw"

    def open(self, folder: Path, durability: str) -> None:  # noqa: D102
        self.db = apsw.Connection(str(folder / "bare.db"))
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute(f"PRAGMA synchronous = {durability}")
        self.db.execute("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT")

    def prepared(self, step: Step) -> str:  # noqa: D102
        return compact([step.message]).decode()

    def append_all(self, records: list[str]) -> None:  # noqa: D102
        execute = self.db.execute
        with self.db if self.mode == "batch" else contextlib.nullcontext():
            for body in records:
                execute("INSERT INTO messages (body) VALUES (?)", (body,))

    def close(self) -> None:  # noqa: D102
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.db.close()

    def read_back(self, folder: Path) -> int:  # noqa: D102
        db = apsw.Connection(str(folder / "bare.db"))
        said = []
        for (body,) in db.execute("SELECT body FROM messages ORDER BY id"):
            said += json.loads(body)
        db.close()
        return len(said)


if __name__ == "__main__":
    serve(BareApsw)
