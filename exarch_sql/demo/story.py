"""``demo``: the main job end to end on the bundled session, narrated, with the numbers it saved.

Import, survey, let six runs go under notes, search and read what left, audit it with plain ``sqlite3``, try to alter it, prove it
whole. The model's lines run through the door; every number printed is computed here and now from the file.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING

from exarch_sql import Archive
from exarch_sql.demo import session_path
from exarch_sql.door import Door
from exarch_sql.importers import import_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from exarch_sql.log import Log

    Say = Callable[[str], object]

LINES = Path(__file__).with_name("evictions.ral")
PATTERN = "^FAILED tests/test_range.py::test_negative_step "
AUDIT_SQL = "SELECT span_from, span_to, items, bytes_saved, substr(note, 1, 40) FROM evictions ORDER BY seq"
SHOWN = 64  # characters of a door line that are shown


def run(say: Say, folder: str | Path) -> None:
    """Tell the story into ``say``, a line at a time, leaving ``demo.exarch`` in ``folder``."""
    started = time.perf_counter()
    path = Path(folder) / "demo.exarch"
    with Archive.open(path) as archive:
        _import(say, archive)
        _evict(say, archive.trunk)
        _read_back(say, archive.trunk)
    _audit(say, path)
    _prove(say, path)
    say(f"Done in {time.perf_counter() - started:.1f} s. The file is {path}")
    say(f"Try: exarch-sql survey {path}")


def _import(say: Say, archive: Archive) -> None:
    """A coding agent's transcript becomes turns."""
    source = session_path()
    first, again = (import_file(archive, source).to_dict() for _ in range(2))
    say(f"1. Import {source.name}, {source.stat().st_size:,} bytes: an agent mends a small library over two days.")
    say(
        f"   {first['prompts']} prompts, {first['replies']} replies, {first['calls']} tool calls and their results, "
        f"{first['steering']} lines of steering."
    )
    say(f"   {first['new-records']} records; importing it again adds {again['new-records']}.\n")


def _evict(say: Say, log: Log) -> None:
    """Runs of the context leave under notes, in the words the model would type."""
    door, before = Door(log), log.survey()
    say(f"2. Survey: {len(before.rows)} items, {before.total_bytes:,} bytes. At the door, the model lets six runs go:")
    for line in LINES.read_text(encoding="utf-8").splitlines():
        door.run(line)
        say(f"   {line[:SHOWN]}...']  -> {log.survey().total_bytes:>7,} bytes")
    after = log.survey()
    left = sum(row.bytes for row in log.under(13, 36))
    say(f"   What stands where turns 13 to 36 were, which weighed {left:,} bytes:")
    residue = next(
        text for message in log.render() if "Turns 13–36" in (text := message["parts"][0].get("content", ""))
    )
    for line in residue.splitlines():
        say(f"     {line}")
    share = after.total_bytes / before.total_bytes
    say(
        f"   {before.total_bytes:,} bytes of context are {after.total_bytes:,} now ({share:.0%}), in {len(after.rows)} items."
    )
    say("   No model was called, nothing was summarised, nothing is lost.\n")


def _read_back(say: Say, log: Log) -> None:
    """What left is searched and read, exactly as it was."""
    found = log.grep(PATTERN)
    say(f"3. `grep [pattern: '{PATTERN}']")
    say(f"   {found.total} hits, in turns {', '.join(str(hit.from_) for hit in found.hits)}; the first:")
    say(f"     {found.hits[0].text}")
    (turn,) = log.read([41])
    say(f"   `read [turns: [41]]: {len(turn.messages)} messages, the last said by the user in the middle of the work:")
    say(f"     {turn.messages[-1]['parts'][0]['content']}")
    past = log.survey(at=200)
    say(f"   The context as it stood after record 200: {len(past.rows)} items, {past.total_bytes:,} bytes.\n")


def _audit(say: Say, path: Path) -> None:
    """The file answers Python's own sqlite3, without any of this package's code."""
    say(f"4. Audit with plain SQLite {sqlite3.sqlite_version}: {AUDIT_SQL}")
    db = sqlite3.connect(path)  # the archive is closed: two SQLite libraries in one process undo each other's locks
    for from_, to, items, saved, note in db.execute(AUDIT_SQL):
        say(f"   {from_:>4} {to:>3} {items:>4} items {saved:>7,} bytes saved  {note}...")
    db.close()
    say("")


def _prove(say: Say, path: Path) -> None:
    """The file refuses to be altered, and where it is forced, verify names the place."""
    say("5. Alter a word that was recorded. By SQL, from any connection:")
    db = sqlite3.connect(path)
    try:
        db.execute("UPDATE records SET body = replace(body, 'FAILED', 'passed')")
    except sqlite3.DatabaseError as error:
        say(f"     {error}")
    db.close()
    say("   In the bytes of a copy:")
    say(f"     {_overwritten(path, path.with_name('altered.exarch'))}")
    with Archive.open(path) as archive:
        head = archive.head()
        archive.trunk.prompt("anything more?")
        report = archive.verify(against=head)
    say(f"   And of the file itself: {report.records} records, {'no fault' if report.ok else report.first};")
    say(f"   a head kept at record {head.seq} still holds.\n")


def _overwritten(path: Path, copy: Path) -> str:
    """What verify says of a copy in which one word was overwritten."""
    shutil.copy(path, copy)
    data = bytearray(copy.read_bytes())
    at = data.index(b"FAILED tests/test_range.py::test_negative_step")
    data[at : at + 6] = b"passed"
    copy.write_bytes(data)
    with Archive.open(copy, readonly=True) as altered:
        report = altered.verify()
    copy.unlink()
    return str(report.first)
