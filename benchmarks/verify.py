"""Verify: records a second where they are small, bytes of bodies a second where they are large, and memory as the file grows."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from conversation import SPOKEN, seeded, steps, text
from lineages import RESIDENT, append
from measuring import Result, Scale, in_child, peak_bytes, run, seconds_of, shown, shown_bytes, table

from exarch_sql import Archive

if TYPE_CHECKING:
    from pathlib import Path

SMALL_BYTES = 300
LARGE_BYTES = 1_000_000
EVICTED_EVERY = 1000  # records
SIZES: dict[Scale, dict[str, tuple[int, int]]] = {  # records, at the smaller and the larger size
    "tiny": {"small": (200, 400), "large": (2, 4)},
    "quick": {"small": (2_000, 10_000), "large": (10, 40)},
    "default": {"small": (10_000, 50_000), "large": (20, 100)},
    "full": {"small": (50_000, 500_000), "large": (100, 1_000)},
}
RUNS = 3


def build(path: str, shape: str, records: int) -> None:
    """A lineage of this many records, small ones (evicted bit by bit, as a harness would) or large ones."""
    with Archive.open(path) as archive, archive.batch():
        log = archive.trunk
        if shape == "small":
            for number, step in enumerate(steps("plain", 0, records, SMALL_BYTES), start=1):
                turn = append(log, step)
                if number % EVICTED_EVERY == 0:
                    log.force(through=turn.id - RESIDENT)
        for index in range(records if shape == "large" else 0):
            said = text(seeded(index), SPOKEN, LARGE_BYTES)
            log.assistant(said) if index % 2 else log.prompt(said)


def verified(path: str) -> dict[str, float]:
    """Verify once: seconds, and the memory it took on top of the open archive."""
    with Archive.open(path, readonly=True) as archive:
        before = peak_bytes()
        seconds = seconds_of(lambda: _lawful(archive))
        return {"seconds": seconds, "held": peak_bytes() - before}


def _lawful(archive: Archive) -> None:
    report = archive.verify()
    assert report.ok, report.faults  # noqa: S101


def measure(folder: Path, scale: Scale) -> Result:
    """Both shapes at both sizes, each run in a process of its own."""
    result: Result = {"small_bytes": SMALL_BYTES, "large_bytes": LARGE_BYTES}
    for shape, sizes in SIZES[scale].items():
        result[shape] = []
        for records in sizes:
            path = str(folder / f"{shape}-{records}.exarch")
            in_child("verify", "build", path=path, shape=shape, records=records)
            runs = [in_child("verify", "verified", path=path)[0] for _ in range(RUNS)]
            size = records * (SMALL_BYTES if shape == "small" else LARGE_BYTES)
            seconds = statistics.median(found["seconds"] for found in runs)
            held = statistics.median(found["held"] for found in runs)
            result[shape].append({"records": records, "bytes": size, "seconds": seconds, "held": held})
    return result


def records_a_second(result: Result) -> float:
    """Small records verified a second, at the larger size."""
    found = result["small"][-1]
    return float(found["records"] / found["seconds"])


def bytes_a_second(result: Result) -> float:
    """Bytes of large bodies verified a second, at the larger size."""
    found = result["large"][-1]
    return float(found["bytes"] / found["seconds"])


def report(result: Result) -> str:
    """One table."""
    rows = [
        [
            f"{found['records']:,} of {shown_bytes(result[f'{shape}_bytes'])}",
            shown(found["seconds"]),
            f"{found['records'] / found['seconds']:,.0f}",
            f"{shown_bytes(found['bytes'] / found['seconds'])}/s",
            shown_bytes(found["held"]),
        ]
        for shape in ("small", "large")
        for found in result[shape]
    ]
    headers = ["records", "verify", "records/s", "bodies", "memory on top of the open archive"]
    return "Whole files, each run in a process of its own.\n\n" + table(headers, rows)


if __name__ == "__main__":
    run("verify", __doc__, measure, report)
