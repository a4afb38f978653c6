"""Growth: survey, render, plan, evict, rewind, fork, append and open against recorded history, at an equal context.

Builds lineages of 1,000 turns and more, each with the same 200 turns in its context, and prints what each operation costs in each,
how it grew from the smallest to the largest, and the exponent of the power law that fits.
"""

from __future__ import annotations

import shutil
import statistics
from typing import TYPE_CHECKING, Any

from lineages import RESIDENT
from measuring import Result, Scale, growth_exponent, interleaved, run, seconds_of, shown, table

from exarch_sql import Archive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIZES: dict[Scale, tuple[int, ...]] = {
    "tiny": (400, 800),
    "quick": (1_000, 10_000),
    "default": (1_000, 10_000, 100_000),
    "full": (1_000, 10_000, 100_000, 1_000_000),
}
ROUNDS: dict[Scale, int] = {"tiny": 2, "quick": 5, "default": 9, "full": 15}
EDIT_ROUNDS: dict[Scale, int] = {"tiny": 1, "quick": 3, "default": 5, "full": 5}  # each on a copy of the whole file
TEXT = "the parser read the range and gave it back without its last element; " * 4
MIDDLE = 10  # items of the context before the ones that are evicted
APPENDS = 100  # timed together
FIRST = ", first of a connection"


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


def timed_twice(
    paths: dict[int, Path], prepare: Callable[[Archive], Callable[[], object]], rounds: int
) -> tuple[dict[int, float], dict[int, float]]:
    """The median time of an operation that changes the file, by size: the first of its connection, and the next.

    Each run is on a fresh copy, the sizes in turn. The first pays for SQLite's reading of the schema and of the triggers.
    """
    timings: list[dict[int, list[float]]] = [{turns: [] for turns in paths} for _ in ("first", "next")]
    for _ in range(rounds):
        for turns, path in paths.items():
            copy = path.with_suffix(".copy")
            shutil.copy(path, copy)
            with Archive.open(copy, durability="off") as archive:
                archive.trunk.survey()
                for found in timings:
                    found[turns].append(seconds_of(prepare(archive)))
            copy.unlink()
    first, following = ({turns: statistics.median(each) for turns, each in found.items()} for found in timings)
    return first, following


def open_and_survey(path: Path) -> None:
    """What a command pays before it does anything else."""
    with Archive.open(path, readonly=True) as archive:
        archive.trunk.survey()


def read_costs(paths: dict[int, Path], rounds: int) -> dict[str, dict[int, float]]:
    """Seconds of what changes nothing, by operation and size; all sizes open at once and asked in turn."""
    archives = {turns: Archive.open(path, durability="off") for turns, path in paths.items()}
    logs = {turns: archive.trunk for turns, archive in archives.items()}
    works: dict[str, Callable[[int], object]] = {
        "survey": lambda turns: logs[turns].survey(),
        "render": lambda turns: logs[turns].render(),
        "plan": lambda turns: logs[turns].plan(),
        "state (alignment, owed calls)": lambda turns: [logs[turns].stands() for _ in range(20)],
        "read a turn": lambda turns: [logs[turns].read([turns // 2]) for _ in range(10)],
        "open + survey": lambda turns: open_and_survey(paths[turns]),
    }
    times = {"state (alignment, owed calls)": 20, "read a turn": 10}
    costs = {}
    for name, work in works.items():
        asked = {str(turns): lambda work=work, turns=turns: work(turns) for turns in paths}
        found = interleaved(asked, rounds=rounds)
        costs[name] = {turns: found[str(turns)] / times.get(name, 1) for turns in paths}
    for archive in archives.values():
        archive.close()
    return costs


def evicting(items: int) -> Callable[[Archive], Callable[[], object]]:
    """Evict so many turns, from early in the context; called again, those after them."""

    def prepare(archive: Archive) -> Callable[[], object]:
        log = archive.trunk
        first = next(row.from_ for row in log.survey().rows[MIDDLE:] if row.kind != "residue")
        return lambda: log.evict(first, first + items - 1, "nothing new was said here")

    return prepare


def rewinding(archive: Archive) -> Callable[[], object]:
    """Withdraw the newest two turns."""
    log = archive.trunk
    anchor = log.survey().rows[-2].from_
    return lambda: log.rewind(anchor)


def forking(archive: Archive) -> Callable[[], object]:
    """A fork under a name of its own."""
    log, name = archive.trunk, f"scout-{archive.head().seq}"
    return lambda: log.fork(name)


def appending(archive: Archive) -> Callable[[], object]:
    """A hundred prompts, each its own transaction."""
    log = archive.trunk
    return lambda: [log.prompt(TEXT) for _ in range(APPENDS)]


EDITS: dict[str, Callable[[Archive], Callable[[], object]]] = {  # what to do beforehand; what that answers is timed
    "evict 2 items": evicting(2),
    "evict 80 items": evicting(80),
    "rewind 2 turns": rewinding,
    "fork": forking,
    "append": appending,
}


def measure(folder: Path, scale: Scale) -> Result:
    """Every operation at every size."""
    paths = {turns: folder / f"{turns}.exarch" for turns in SIZES[scale]}
    for turns, path in paths.items():
        build(path, turns)
    costs = read_costs(paths, ROUNDS[scale])
    for name, prepare in EDITS.items():
        first, following = timed_twice(paths, prepare, EDIT_ROUNDS[scale])
        count = APPENDS if name == "append" else 1
        costs[name] = {turns: seconds / count for turns, seconds in following.items()}
        costs[f"{name}{FIRST}"] = {turns: seconds / count for turns, seconds in first.items()}
    return {
        "resident": RESIDENT,
        "turns": list(paths),
        "seconds": {name: [found[turns] for turns in paths] for name, found in costs.items()},
    }


def grown(result: Result, name: str) -> float:
    """The cost at the largest size over the cost at the smallest."""
    seconds = result["seconds"][name]
    return float(seconds[-1] / seconds[0])


def report(result: Result) -> str:
    """One table."""
    sizes = result["turns"]
    rows: list[list[Any]] = [
        [name, *map(shown, seconds), f"{grown(result, name):.2f}", f"{growth_exponent(sizes, seconds):+.3f}"]
        for name, seconds in result["seconds"].items()
    ]
    headers = ["operation", *(f"{turns:,} turns" for turns in sizes), "last : first", "exponent"]
    return (
        f"{result['resident']} turns resident at every size; what changes the file runs on a fresh copy. An exponent of 0 does not "
        "grow with the recorded history, 1 in proportion.\n\n" + table(headers, rows)
    )


if __name__ == "__main__":
    run("growth", __doc__, measure, report)
