"""Search: ``log.grep`` against ripgrep over the same text as JSONL, doing the same job: which turns, how many lines, the first 100.

The JSONL has a line a record: ``{"turn", "role", "text"}``. Ripgrep does the job in two ways, and the faster one is taken: it
prints the matching lines, and the turn ids are read off them; or it prints the turn ids alone, by a group before the pattern.
Either counts records where ``grep`` counts lines of text. The turns that both name are compared. Ours is a call on an open archive;
ripgrep is a process, and so is our command, which is listed too. Everything is in the page cache for all.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conversation import compact
from lineages import index_seconds, write_sessions
from measuring import Result, Scale, growth_exponent, in_child, peak_bytes, run, shown, shown_bytes, table

from exarch_sql import Archive, ExarchError, messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from conversation import Message

    from exarch_sql import Turn

MEGABYTES: dict[Scale, tuple[int, ...]] = {"tiny": (1,), "quick": (5,), "default": (10, 100), "full": (10, 100, 1000)}
RARE = "KILN_OVERRUN_7741"  # planted: in each of these shares of the text once
PLANTED = (0.1, 0.3, 0.5, 0.7, 0.9)
PATTERNS = {
    "rare literal": RARE,
    "common literal": "timeout",
    "class and alternation": r"(?:ERROR|WARNING) +(?:scheduler|lexer)\.[a-z]+_cursor",
    "case-insensitive": "(?i)kiln_overrun",
    "no literal": "[0-9]{5}[a-f][0-9]{5}[a-f]",
    "no match": "unobtainium valve",
}
KEPT = 100
RUNS, ENOUGH_SECONDS = 5, 6.0  # a search is timed so often, or until this much time went into it
TURN = r'^\{"turn":(?P<turn>[0-9]+),'
HOW_TO_GET = "ripgrep is not installed: `apt-get install ripgrep`, or `brew install ripgrep`"


def build(folder: str, megabytes: int) -> dict[str, int]:
    """A lineage, and a JSONL file of the same text, of so many megabytes; how many turns and bytes."""
    size, planted = 0, 0
    with open(Path(folder) / "text.jsonl", "wb") as file:

        def enough(turn: Turn, message: Message) -> bool:
            nonlocal size, planted
            said = {"turn": turn.id, "role": message["role"], "text": messages.searched_text(message)}
            size += file.write(compact(said) + b"\n")
            return size >= megabytes * 1_000_000

        def plant(message: Message) -> None:
            nonlocal planted
            if planted < len(PLANTED) and size >= PLANTED[planted] * megabytes * 1_000_000:
                message["parts"][0]["content"] += f"\nalarm: {RARE} reported by the furnace"
                planted += 1

        turns = write_sessions(Path(folder) / "lineage.exarch", enough, plant)
    return {"turns": turns, "jsonl": size, "file": (Path(folder) / "lineage.exarch").stat().st_size}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The median seconds of a search, and what it found; few runs of a slow one."""
    timings: list[float] = []
    while len(timings) < RUNS and sum(timings) < ENOUGH_SECONDS:
        start = time.perf_counter()
        found = work()
        timings.append(time.perf_counter() - start)
    return statistics.median(timings), found


def ours(path: str, *, readonly: bool) -> dict[str, Any]:
    """Every pattern on an open archive: seconds, total, the turns of the hits; or the refusal."""
    answers: dict[str, Any] = {}
    with Archive.open(path, readonly=readonly) as archive:
        log = archive.trunk
        for name, pattern in PATTERNS.items():
            try:
                seconds, found = timed(lambda pattern=pattern: log.grep(pattern))  # type: ignore[misc]
            except ExarchError as error:
                answers[name] = {"refused": str(error)}
            else:
                turns = list(dict.fromkeys(hit.from_ for hit in found.hits))
                answers[name] = {"seconds": seconds, "total": found.total, "turns": turns}
    return answers


def held_bytes(path: str, pattern: str) -> int:
    """How much memory one search takes on top of the open archive."""
    with Archive.open(path, readonly=True) as archive:
        archive.trunk.survey()
        before = peak_bytes()
        archive.trunk.grep(pattern)
        return peak_bytes() - before


def _lines(command: list[str]) -> tuple[list[bytes], int]:
    """The first lines a command prints, cut short, and how many there are."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None  # noqa: S101
        kept, count = [], 0
        for line in process.stdout:
            count += 1
            if count <= KEPT:
                kept.append(line[:200])
    return kept, count


def ripgrep(jsonl: str, pattern: str) -> dict[str, Any]:
    """One pattern by ripgrep: seconds of the faster of the two ways, records, the turns of the first 100; seconds to count only."""
    rg = ["rg", "--no-config", "--no-line-number"]
    flags, bare = ("(?i)", pattern[4:]) if pattern.startswith("(?i)") else ("", pattern)
    whole, (lines, count) = timed(lambda: _lines([*rg, pattern, jsonl]))
    by_group = [*rg, "--only-matching", "--replace", "$turn", f"{TURN}.*(?:{flags}{bare})", jsonl]
    ids, (numbers, _) = timed(lambda: _lines(by_group))
    counting, _ = timed(lambda: _lines([*rg, "--count", pattern, jsonl]))
    turns = [int(line[len('{"turn":') : line.index(b",")]) for line in lines]
    assert turns == [int(number) for number in numbers]  # noqa: S101
    return {
        "seconds": min(whole, ids),
        "count_only": counting,
        "total": count,
        "turns": list(dict.fromkeys(turns)),
    }


def command_seconds(path: str, pattern: str) -> float:
    """Our command as a whole process."""
    command = [sys.executable, "-m", "exarch_sql", "grep", path, pattern, "--json"]
    return timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))[0]


def agree(found: dict[str, Any], by_ripgrep: dict[str, Any]) -> None:
    """Both name the same turns, as far as the 100 kept hits of each go."""
    if "turns" in found:
        mine, theirs = found["turns"], by_ripgrep["turns"]
        shared = min(len(mine), len(theirs))
        assert mine[:shared] == theirs[:shared], "ripgrep and grep name different turns"  # noqa: S101
        assert (found["total"] == 0) == (by_ripgrep["total"] == 0)  # noqa: S101


def measure_size(folder: Path, megabytes: int) -> dict[str, Any]:
    """One size: without an index, the index built, with it, by ripgrep, by our command."""
    folder.mkdir()
    path, jsonl = str(folder / "lineage.exarch"), str(folder / "text.jsonl")
    built, _ = in_child("grep", "build", folder=str(folder), megabytes=megabytes)
    scanned, _ = in_child("grep", "ours", path=path, readonly=True)
    held = {"scan": in_child("grep", "held_bytes", path=path, pattern=PATTERNS["common literal"])[0]}
    seconds = index_seconds(Path(path))
    indexed: dict[str, Any] | None = None
    if seconds is not None:
        indexed, _ = in_child("grep", "ours", path=path, readonly=False)
        held["indexed"] = in_child("grep", "held_bytes", path=path, pattern=PATTERNS["common literal"])[0]
    by_ripgrep = None
    if shutil.which("rg"):
        by_ripgrep = {name: ripgrep(jsonl, pattern) for name, pattern in PATTERNS.items()}
        for found in (scanned, indexed or {}):
            for name in found:
                agree(found[name], by_ripgrep[name])
    result = {
        **built,
        "scan": scanned,
        "indexed": indexed,
        "index_seconds": seconds,
        "indexed_file": Path(path).stat().st_size,
        "held": held,
        "ripgrep": by_ripgrep,
        "command": command_seconds(path, RARE),
    }
    shutil.rmtree(folder)
    return result


def measure(folder: Path, scale: Scale) -> Result:
    """Every size."""
    if not shutil.which("rg"):
        print(HOW_TO_GET, file=sys.stderr)
    version = ""
    if shutil.which("rg"):
        version = subprocess.run(["rg", "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    sizes = {str(size): measure_size(folder / str(size), size) for size in MEGABYTES[scale]}
    return {"ripgrep_version": version, "patterns": PATTERNS, "sizes": sizes}


# -- for eyes ----------------------------------------------------------------------------------------------------------------


def best(found: dict[str, Any], name: str) -> float | None:
    """Our seconds for a pattern, with the index where there is one; None where the search was refused."""
    seconds = (found["indexed"] or found["scan"])[name].get("seconds")
    return float(seconds) if seconds is not None else None


def faster_than_ripgrep(result: Result, name: str) -> float | None:
    """Our speed at the largest size as a multiple of ripgrep's; None where either is missing."""
    found = result["sizes"][max(result["sizes"], key=int)]
    seconds = best(found, name)
    return found["ripgrep"][name]["seconds"] / seconds if found["ripgrep"] and seconds else None


def bytes_a_second(result: Result, name: str, state: str = "scan") -> float | None:
    """Bytes of text searched a second at the largest size."""
    found = result["sizes"][max(result["sizes"], key=int)]
    seconds = (found[state] or {}).get(name, {}).get("seconds")
    return found["jsonl"] / seconds if seconds else None


def _cell(answer: dict[str, Any] | None) -> str:
    if answer is None:
        return ""
    return "refused" if "refused" in answer else shown(answer["seconds"])


def _size_table(found: dict[str, Any]) -> str:
    rows = []
    for name, pattern in PATTERNS.items():
        scan, indexed, rg = found["scan"][name], (found["indexed"] or {}).get(name), (found["ripgrep"] or {}).get(name)
        seconds = best(found, name)
        rows.append(
            [
                name,
                f"`{pattern.replace('|', chr(92) + '|')}`",
                f"{scan.get('total', '?'):,}" if "total" in scan else "",
                _cell(indexed),
                _cell(scan),
                _cell(rg),
                shown(rg["count_only"]) if rg else "",
                f"{rg['seconds'] / seconds:.2f} x" if rg and seconds else "",
            ]
        )
    headers = ["pattern", "", "lines", "with index", "without", "ripgrep", "rg --count", "ours : ripgrep"]
    return table(headers, rows)


def report(result: Result) -> str:
    """A table a size; what the index took; memory."""
    texts = [
        f"Against {result['ripgrep_version']}." if result["ripgrep_version"] else f"{HOW_TO_GET}.",
        "*ours : ripgrep* is our speed as a multiple of ripgrep's, with the index where there is one; `rg --count` alone is less "
        "than the job.",
    ]
    sizes = result["sizes"]
    for found in sizes.values():
        texts.append(f"**{shown_bytes(found['jsonl'])} of JSONL, {found['turns']:,} turns**\n\n{_size_table(found)}")
        if found["index_seconds"] is None:
            index = "This version makes no search index."
        else:
            grown = found["indexed_file"] - found["file"]
            speed = shown_bytes(found["jsonl"] / found["index_seconds"])
            index = (
                f"The index took {shown(found['index_seconds'])} to build ({speed}/s) and {shown_bytes(grown)} "
                f"({grown / found['jsonl']:.2f} x the text)."
            )
        held = ", ".join(f"{shown_bytes(size)} ({state})" for state, size in found["held"].items())
        texts.append(
            f"{index} The rare literal as a whole command: {shown(found['command'])}. Memory on top of an open archive, the common "
            f"literal: {held}."
        )
    if len(sizes) > 1:
        texts.append(_growth(sizes))
    return "\n\n".join(texts)


def _growth(sizes: dict[str, Any]) -> str:
    """How the times grow with the text."""
    rows = []
    for name in PATTERNS:
        row = [name]
        for state in ("indexed", "scan", "ripgrep"):
            seconds = [((found[state] or {}).get(name) or {}).get("seconds") for found in sizes.values()]
            texts = [found["jsonl"] for found in sizes.values()]
            known = [float(each) for each in seconds if each]
            row.append(f"{growth_exponent(texts, known):.2f}" if len(known) == len(texts) else "")
        rows.append(row)
    return "Growth exponents (0 does not grow, 1 in proportion):\n\n" + table(
        ["pattern", "with index", "without", "ripgrep"], rows
    )


if __name__ == "__main__":
    run("grep", __doc__, measure, report)
