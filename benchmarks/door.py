"""The door: what a line costs on top of the verb that it asks for.

Verb and line take turns on one open archive. What is over is the door's own: the line read, its tree made and evaluated, fields
checked, the answer built as values. Writing the answer out as text comes on top, in proportion to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lineages import RESIDENT, write_sessions
from measuring import Result, Scale, interleaved, run, shown, table

from exarch_sql import Archive
from exarch_sql.door import Door

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from exarch_sql import Log

ROUNDS: dict[Scale, int] = {"tiny": 2, "quick": 20, "default": 200, "full": 1_000}
RECORDS = 600


def asked(log: Log) -> dict[str, Callable[[], Any]]:
    """The lines, each with the verb that it comes to. The eviction writes one note anew, so that it can be asked for ever."""
    residue = next(row for row in log.survey().rows if row.kind == "residue")
    first, last, newest = residue.from_, residue.to, log.reach - 1
    return {
        "exarch-context `survey": log.survey,
        f"exarch-context `evict [from: {first}, to: {last}, note: 'again']": lambda: log.evict(
            first, last, note="again"
        ),
        f"exarch-transcript `under [from: {first}, to: {last}]": lambda: log.under(first, last),
        f"exarch-transcript `read [turns: [{newest}]]": lambda: log.read([newest]),
        f"exarch-transcript `grep [pattern: 'timeout', turns: [{newest}]]": lambda: log.grep("timeout", turns=[newest]),
    }


def measure(folder: Path, scale: Scale) -> Result:
    """Each verb, its line, and its line written out, in turn."""
    path, count = folder / "lineage.exarch", 0

    def enough(*_: object) -> bool:
        nonlocal count
        count += 1
        return count >= RECORDS

    write_sessions(path, enough)
    found = []
    with Archive.open(path, durability="off") as archive:
        door = Door(archive.trunk)
        for line, verb in asked(archive.trunk).items():
            works = {
                "verb": verb,
                "run": lambda line=line: door.run(line),
                "written": lambda line=line: door.run(line).text,
            }
            found.append({"asks": line, **interleaved(works, rounds=ROUNDS[scale])})
    return {"lines": found}


def dearest(result: Result) -> tuple[str, float]:
    """The line that costs most on top of its verb, and how much."""
    most = max(result["lines"], key=lambda one: one["run"] - one["verb"])
    return most["asks"], most["run"] - most["verb"]


def report(result: Result) -> str:
    """One table."""
    rows = [
        [
            f"`` {one['asks']} ``",
            shown(one["verb"]),
            shown(one["run"] - one["verb"]),
            shown(one["written"] - one["run"]),
        ]
        for one in result["lines"]
    ]
    return f"With {RESIDENT} turns and one residue in the context; medians.\n\n" + table(
        ["line", "the verb alone", "parsing and running, on top", "writing the answer out"], rows
    )


if __name__ == "__main__":
    run("door", __doc__, measure, report)
