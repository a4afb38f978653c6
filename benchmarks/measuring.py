"""What every benchmark needs: timing that survives a noisy machine, facts of the machine, tables, a place for results.

Absolute times are of the machine they were taken on; ratios within one run are what is quoted. Contestants take turns, round by
round, and medians are compared, so that a busy machine slows all of them alike.

Every benchmark takes ``--tiny`` (does it run at all: for the tests), ``--quick`` (seconds), nothing (a minute or so) or ``--full``
(as long as it takes), and ``--keep``, which keeps the result as data under ``benchmarks/results``; ``render.py`` makes
``docs/benchmarks.md`` of what is kept.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import apsw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

HERE = Path(__file__).parent
RESULTS = HERE / "results"
FSYNCS = 50  # timed to say what one costs here

Scale = Literal["tiny", "quick", "default", "full"]
Result = dict[str, Any]


class Asked(NamedTuple):
    """What the command line asked for."""

    scale: Scale
    keep: bool


def asked(doc: str | None) -> Asked:
    """The command line every benchmark takes. ``doc`` is the benchmark's own docstring."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    scales = parser.add_mutually_exclusive_group()
    for scale, what in (("tiny", "does it run at all"), ("quick", "seconds"), ("full", "as long as it takes")):
        scales.add_argument(f"--{scale}", dest="scale", action="store_const", const=scale, help=what)
    parser.add_argument("--keep", action="store_true", help="keep the result under benchmarks/results")
    found = parser.parse_args()
    return Asked(found.scale or "default", found.keep)


# -- timing ------------------------------------------------------------------------------------------------------------------


def seconds_of(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


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


def interleaved(works: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, float]:
    """The median seconds of each work, all of them run in turn, round by round; one more round goes first to warm up."""
    timings: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            taken = seconds_of(work)
            if number:
                timings[name].append(taken)
    return {name: statistics.median(found) for name, found in timings.items()}


def growth_exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The exponent e of the power law ``value ~ size^e`` that fits best: 0 does not grow, 1 grows in proportion."""
    return statistics.linear_regression([math.log(size) for size in sizes], [math.log(value) for value in values]).slope


# -- in a process of its own -------------------------------------------------------------------------------------------------


def in_child(module: str, function: str, **arguments: Any) -> tuple[Any, int]:
    """Call a benchmark module's function in a new process; what it answers (JSON), and the process's peak memory in bytes."""
    command = [sys.executable, str(HERE / "measuring.py"), module, function, json.dumps(arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["answer"], answer["peak"]


def peak_bytes() -> int:
    """The most memory this process ever held.

    Linux counts in ``getrusage`` what the parent held when it started this process; ``VmHWM`` is this program's alone.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        status = ""
    if found := re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE):
        return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, others kilobytes


def _be_a_child() -> None:
    module, function, arguments = sys.argv[1:]
    answer = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    print(json.dumps({"answer": answer, "peak": peak_bytes()}))


# -- the machine -------------------------------------------------------------------------------------------------------------


def machine(folder: Path) -> Result:
    """What the figures were taken on; ``folder`` is where the files lay."""
    load, *_ = os.getloadavg()
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "machine": platform.machine(),
        "system": platform.system(),
        "filesystem": _filesystem(folder),
        "fsync_seconds": _fsync_seconds(folder),
        "load": round(load, 1),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _filesystem(folder: Path) -> str:
    """The kind of file system a folder lies on; empty where the system does not say."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return ""
    inside = [(len(point), kind) for point, kind in mounts if folder.resolve().is_relative_to(point)]
    return max(inside, default=(0, ""))[1]


def _fsync_seconds(folder: Path) -> float:
    """The median time to make one more kilobyte of a file durable: the floor under every append at FULL."""
    with tempfile.NamedTemporaryFile(dir=folder, buffering=0) as file:

        def durable() -> None:
            file.write(b"x" * 1024)
            os.fsync(file.fileno())

        return statistics.median(seconds_of(durable) for _ in range(FSYNCS))


def machine_line(facts: Result) -> str:
    """The machine in one line for eyes."""
    return (
        f"{facts['processor'] or facts['machine']}, {facts['cores']} cores, {shown_bytes(facts['memory_bytes'])} of memory, "
        f"{facts['system']}, {facts['filesystem'] or 'unknown file system'}, fsync {shown(facts['fsync_seconds'])}; "
        f"Python {facts['python']}, SQLite {facts['sqlite']}; load average {facts['load']} at the start"
    )


# -- for eyes ----------------------------------------------------------------------------------------------------------------


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


def shown_bytes(count: float) -> str:
    """A number of bytes for eyes, in powers of ten."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}" if count < 999.5 * size else f"{count / size:.0f} {unit}"
    return f"{count:.0f} B"


# -- results -----------------------------------------------------------------------------------------------------------------


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for the run, gone afterwards."""
    return tempfile.TemporaryDirectory(prefix="exarch-bench-")


def run(name: str, doc: str | None, measure: Callable[[Path, Scale], Result], report: Callable[[Result], str]) -> None:
    """Run one benchmark: measure in a scratch folder, print the report and the machine, keep the result if asked to.

    ``measure(folder, scale)`` answers a result that is JSON; ``report(result)`` puts it into Markdown.
    """
    wanted = asked(doc)
    with scratch() as folder:
        facts = machine(Path(folder))
        result = measure(Path(folder), wanted.scale)
    print(report(result))
    print(f"\n{machine_line(facts)}")
    if wanted.keep:
        RESULTS.mkdir(exist_ok=True)
        kept = {"machine": facts, "scale": wanted.scale, "taken": time.strftime("%Y-%m-%d"), "result": result}
        (RESULTS / f"{name}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _be_a_child()
