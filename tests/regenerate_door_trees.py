"""Write the door's corpora anew from their lines: the tree of each accepted line, the refusal of each refused one.

Run it after a change of the grammar or of a message, and read the diff: ``python tests/regenerate_door_trees.py``. To add a
case, add an object with its ``"source"`` alone. Lines that change sides stop the script.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from exarch_sql.door import Door, DoorRefused, parser, tree

sys.path.insert(0, str(Path(__file__).parent))
from door_host import MemoryLog

CORPORA = Path(__file__).parent / "corpora" / "door"
ACCEPTED, REFUSED, SLIPS = (CORPORA / name for name in ("accepted.json", "refused.json", "slips.json"))


def accepted(source: str) -> dict[str, Any]:
    """What the corpus holds of a line that parses."""
    return {"source": source, "tree": tree.outline(parser.parse(source))}


def refused(source: str) -> dict[str, Any]:
    """What the corpus holds of a line the door refuses on a log of sixty turns, the last still being written."""
    log = MemoryLog.of_length(60, unclosed=60)
    try:
        Door(log).run(source)
    except DoorRefused as error:
        where = [error.line, error.column]
        return {"source": source, "class": type(error).__name__, "at": where, "reason": error.reason}
    raise SystemExit(f"not refused: {source!r}")


def corrected(source: str) -> dict[str, Any]:
    """What the corpus holds of a slip: what the refusal says and the line it offers."""
    try:
        Door(MemoryLog.of_length(60)).run(source)
    except DoorRefused as error:
        return {"source": source, "reason": error.reason, "advice": error.advice, "correction": error.correction}
    raise SystemExit(f"not refused: {source!r}")


def load(path: Path) -> list[dict[str, Any]]:
    """The cases of a corpus."""
    cases: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return cases


def main() -> None:
    """Rewrite the three files."""
    makers = {ACCEPTED: accepted, REFUSED: refused, SLIPS: corrected}
    written = {path: [make(case["source"]) for case in load(path)] for path, make in makers.items()}
    for path, cases in written.items():  # only once every case is known to stand on its side
        path.write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
