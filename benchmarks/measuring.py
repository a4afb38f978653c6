"""What every benchmark needs: timing that survives a noisy machine, facts of the machine, tables, a place for results.

Absolute times are of the machine they were taken on; ratios within one run are what is quoted.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

RESULTS = Path(__file__).parent / "results"


def median_seconds(work: Callable[[], object], *, runs: int = 9, inner: int = 1) -> float:
    """The median of several timings of ``work``, each of ``inner`` calls, per call; one more run goes first to warm up."""
    work()
    timings = []
    for _ in range(runs):
        start = time.perf_counter()
        for _ in range(inner):
            work()
        timings.append((time.perf_counter() - start) / inner)
    return statistics.median(timings)


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    return {
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "system": platform.system(),
    }


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as a Markdown table."""
    lines = ["| " + " | ".join(headers) + " |", "| " + " | ".join("---" for _ in headers) + " |"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def shown(seconds: float) -> str:
    """A duration for eyes."""
    return (
        f"{seconds * 1e6:.0f} us"
        if seconds < 1e-3
        else f"{seconds * 1e3:.2f} ms"
        if seconds < 1
        else f"{seconds:.2f} s"
    )


def publish(name: str, result: dict[str, Any], text: str) -> None:
    """Print a result, and keep it as data under benchmarks/results when asked to (``--keep``)."""
    print(text)
    if "--keep" in sys.argv:
        RESULTS.mkdir(exist_ok=True)
        kept = json.dumps({"machine": machine(), **result}, indent=1) + "\n"
        (RESULTS / f"{name}.json").write_text(kept, encoding="utf-8")


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for the run, gone afterwards."""
    return tempfile.TemporaryDirectory(prefix="exarch-bench-")
