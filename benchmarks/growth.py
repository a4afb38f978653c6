"""Growth: survey, render, plan, evict, rewind, fork, append and open against recorded history, at an equal context.

Builds lineages of 1,000 turns and more, each with the same 200 turns in its context, and prints what each operation costs in each
and how it grew. ``python benchmarks/growth.py [--full] [--keep]``: to 200,000 turns, with --full to 1,000,000.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measuring import median_seconds, publish, scratch, shown, table

from exarch_sql import Archive

if TYPE_CHECKING:
    from collections.abc import Callable

RESIDENT = 200
SIZES = (1_000, 10_000, 100_000, 200_000)
FULL = (1_000, 10_000, 100_000, 1_000_000)
TEXT = "the parser read the range and gave it back without its last element; " * 4


def build(path: Path, turns: int) -> None:
    """A lineage of this many turns, evicted bit by bit as a harness would, with 200 left in the context."""
    with Archive.open(path, durability="off") as archive:
        log = archive.trunk
        for start in range(0, turns, 1000):
            with log.batch():
                for _ in range(min(1000, turns - start) // 2):
                    log.prompt(TEXT)
                    log.assistant(TEXT)
                log.force(through=log.reach - RESIDENT)


def timed_once(path: Path, work: Callable[[Archive], object], runs: int = 7) -> float:
    """The median time of an operation that changes the file, each run on a fresh copy."""
    timings = []
    for _ in range(runs):
        copy = path.with_suffix(".copy")
        shutil.copy(path, copy)
        with Archive.open(copy, durability="off") as archive:
            archive.trunk.survey()
            start = time.perf_counter()
            work(archive)
            timings.append(time.perf_counter() - start)
        copy.unlink()
    return sorted(timings)[len(timings) // 2]


def open_and_survey(path: Path) -> None:
    """What a command pays before it does anything else."""
    with Archive.open(path, readonly=True) as archive:
        archive.trunk.survey()


def measure(path: Path) -> dict[str, float]:
    """Seconds per operation on one lineage."""
    with Archive.open(path, durability="off") as archive:
        log = archive.trunk
        reach = log.reach
        costs = {
            "survey": median_seconds(log.survey, inner=5),
            "render": median_seconds(log.render, inner=3),
            "plan": median_seconds(log.plan, inner=5),
            "state": median_seconds(log.stands, inner=50),
            "read a turn": median_seconds(lambda: log.read([reach // 2]), inner=20),
        }
    first = reach - RESIDENT + 1
    costs["evict 2"] = timed_once(
        path, lambda a: a.trunk.evict(first + 10, first + 11, "two turns that said nothing new")
    )
    costs["evict 100"] = timed_once(path, lambda a: a.trunk.evict(first + 10, first + 109, "a hundred turns"))
    costs["rewind 2"] = timed_once(path, lambda a: a.trunk.rewind(reach - 1))
    costs["fork"] = timed_once(path, lambda a: a.trunk.fork("scout"))
    costs["append"] = timed_once(path, lambda a: [a.trunk.prompt(TEXT) for _ in range(100)]) / 100
    costs["open + survey"] = median_seconds(lambda: open_and_survey(path))
    return costs


def main() -> None:
    """Measure every size and print the growth."""
    sizes = FULL if "--full" in sys.argv else SIZES
    results: dict[int, dict[str, float]] = {}
    with scratch() as folder:
        for turns in sizes:
            path = Path(folder) / f"{turns}.exarch"
            build(path, turns)
            results[turns] = measure(path)
    rows: list[list[Any]] = []
    for operation in results[sizes[0]]:
        figures = [results[turns][operation] for turns in sizes]
        rows.append([operation, *map(shown, figures), f"{figures[-1] / figures[0]:.2f}"])
    headers = ["operation", *(f"{turns:,} turns" for turns in sizes), f"growth 1 : {sizes[-1] // sizes[0]}"]
    publish("growth", {"seconds": results}, f"{RESIDENT} turns resident at every size\n\n" + table(headers, rows))


if __name__ == "__main__":
    main()
