"""Start-up: commands that touch one row, as whole processes, beside what Python itself and the SQLite driver take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lineages import write_sessions
from measuring import Result, Scale, interleaved, run, shown, table

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS: dict[Scale, int] = {"tiny": 1, "quick": 5, "default": 15, "full": 41}
RECORDS: dict[Scale, int] = {"tiny": 60, "quick": 600, "default": 6_000, "full": 60_000}
COMMANDS = ("--help", "survey", "read", "head")  # what the target of start-up is about
FLOORS = ("python -c pass", "python -c 'import apsw'")


def our_command() -> list[str]:
    """The installed command, or the package as a module where it is not installed."""
    script = Path(sys.executable).with_name("exarch-sql")
    return [str(script)] if script.exists() else [sys.executable, "-m", "exarch_sql"]


def measure(folder: Path, scale: Scale) -> Result:
    """The commands in turn, round by round."""
    path, count = folder / "lineage.exarch", 0

    def enough(*_: object) -> bool:
        nonlocal count
        count += 1
        return count >= RECORDS[scale]

    turns = write_sessions(path, enough)
    ours = our_command()
    commands = {
        FLOORS[0]: [sys.executable, "-c", "pass"],
        FLOORS[1]: [sys.executable, "-c", "import apsw"],
        "--help": [*ours, "--help"],
        "survey": [*ours, "survey", str(path), "--json"],
        "survey, a table": [*ours, "survey", str(path)],
        "read": [*ours, "read", str(path), str(turns // 2), "--json"],
        "head": [*ours, "head", str(path), "--json"],
        "grep": [*ours, "grep", str(path), "unobtainium", "--json"],
    }
    seconds = interleaved({name: running(command) for name, command in commands.items()}, rounds=ROUNDS[scale])
    return {"turns": turns, "seconds": seconds}


def running(command: list[str]) -> Callable[[], object]:
    """Running a command, its output thrown away."""
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def slowest(result: Result) -> tuple[str, float]:
    """The slowest of the commands that the target is about."""
    name = max(COMMANDS, key=lambda command: result["seconds"][command])
    return name, result["seconds"][name]


def report(result: Result) -> str:
    """One table."""
    floor = result["seconds"][FLOORS[0]]
    rows = [[f"`{name}`", shown(found), shown(max(0.0, found - floor))] for name, found in result["seconds"].items()]
    return f"On a lineage of {result['turns']:,} turns; medians of whole processes.\n\n" + table(
        ["command", "takes", "on top of Python"], rows
    )


if __name__ == "__main__":
    run("startup", __doc__, measure, report)
