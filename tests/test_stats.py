"""What ``stats`` counts, and what it costs."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

import apsw

from exarch_sql import Archive

if TYPE_CHECKING:
    from pathlib import Path

KINDS_SQL = "SELECT kind, count(*) FROM records GROUP BY kind ORDER BY kind"


def test_the_numbers_are_those_of_the_tables(lawful_copy: Path) -> None:
    """Counted by another SQLite; the file by its folder, through a symbolic link too."""
    link = lawful_copy.with_name("link.exarch")
    link.symlink_to(lawful_copy)
    with Archive.open(link) as archive:
        archive.redact(2, reason="a body that is gone counts nothing")
        archive.trunk.note("é", at_ms=1)
        said = archive.stats()
        files = (lawful_copy, lawful_copy.with_name(lawful_copy.name + "-wal"))
        assert said["file-bytes"] == sum(file.stat().st_size for file in files)
    with contextlib.closing(sqlite3.connect(lawful_copy)) as db:
        kinds = dict(db.execute(KINDS_SQL).fetchall())
        bodies = [body for (body,) in db.execute("SELECT body FROM records WHERE body IS NOT NULL")]
        (turns,) = db.execute("SELECT count(*) FROM turns").fetchone()
        (residues,) = db.execute("SELECT count(*) FROM residues").fetchone()
    assert (said["kinds"], list(said["kinds"])) == (kinds, sorted(kinds))
    assert said["records"] == sum(kinds.values())
    assert said["body-bytes"] == sum(len(body.encode()) for body in bodies)
    assert (said["turns"], said["residues"], said["logs"]) == (turns, residues, 6)


def test_no_body_is_loaded_to_be_measured(tmp_path: Path) -> None:
    """Memory is flat: of 30 MB of bodies, none is held while their lengths are summed."""
    path = tmp_path / "a.exarch"
    with Archive.open(path, durability="off") as archive, archive.batch():
        for _ in range(100):
            archive.trunk.prompt("x" * 300_000)
    with Archive.open(path, readonly=True) as archive:
        archive.trunk.survey()
        before = apsw.memory_used()
        apsw.memory_high_water(True)
        assert archive.stats()["body-bytes"] > 30_000_000
        assert apsw.memory_high_water() - before < 3_000_000
