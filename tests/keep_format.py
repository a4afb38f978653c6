"""Keep a small lawful file of the present format as text, for the releases to come: ``python tests/keep_format.py``.

Run it once when a format is new. A file that is kept already is written anew only with ``--again``, which is right until the
format is released and never after: what releases wrote is out there.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conftest import fill

from exarch_sql import Archive, Refused
from exarch_sql.connection import FORMAT

if TYPE_CHECKING:
    from exarch_sql import Log

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "tests" / "corpora" / "formats"


def dump(path: Path) -> str:
    """A database as SQL, its marks in front: rows first, then indexes, triggers and views, so that nothing fires."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        marks = [
            f"PRAGMA {mark} = {db.execute(f'PRAGMA {mark}').fetchone()[0]};"
            for mark in ("application_id", "user_version")
        ]
        return "\n".join([*marks, *db.iterdump(), ""])


def load(text: str, path: Path) -> None:
    """The database of a dump, in write-ahead mode as every lineage is."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(text)
        db.execute("PRAGMA journal_mode = WAL")


def read(log: Log, turn: int) -> Any:
    """A turn's own messages, or why it cannot be read yet."""
    try:
        return [material.to_dict() for material in log.read([turn])]
    except Refused as error:
        return str(error)


def answers(archive: Archive) -> dict[str, Any]:
    """What a file answers, of each log, which no later release may answer otherwise."""
    logs = {info.name: archive.log(info.log) for info in archive.logs()}
    return {
        "head": archive.head().to_dict(),
        "logs": [info.to_dict() for info in archive.logs()],
        "survey": {name: log.survey().to_dict() for name, log in logs.items()},
        "index": {name: [row.to_dict() for row in log.index()] for name, log in logs.items()},
        "render": {name: log.render() for name, log in logs.items()},
        "read": {name: [read(log, turn) for turn in range(1, log.reach + 1)] for name, log in logs.items()},
        "grep": {name: log.grep("e").to_dict() for name, log in logs.items()},
    }


def keep() -> Path:
    """Write a file in which every kind of row occurs, and keep it with what it answers."""
    kept = KEPT / f"{FORMAT}.sql"
    if kept.exists() and "--again" not in sys.argv:
        raise SystemExit(f"{kept} is kept already: --again writes it anew, for a format that no release has written")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.exarch"
        with Archive.open(path) as archive, archive.batch():
            fill(archive)
        with Archive.open(path) as archive:
            archive.redact(3, reason="the picture goes")
            archive.redact(6, part=0, reason="a password")
            said = answers(archive)
        kept.parent.mkdir(exist_ok=True)
        kept.with_suffix(".json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
        kept.write_text(dump(path), encoding="utf-8")
    return kept


if __name__ == "__main__":
    print(keep())  # noqa: T201
