"""The targets of speed and size, what was measured beside each, and what a missed one would take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import append
import grep
import growth
import size
import startup
import verify
from measuring import Result, shown, shown_bytes, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

READINGS = ("survey", "render", "plan", "state (alignment, owed calls)", "open + survey")
EVICTIONS = ("evict 2 items", "evict 80 items")
LITERAL = ("rare literal", "common literal", "class and alternation", "case-insensitive", "no match")
FLAT = 2.0  # memory is flat when ten times the work takes less than so many times as much ...
SMALL = 8_000_000  # ... or less than this at all
MB = 1e6


class Measured(NamedTuple):
    """A figure for eyes, and whether it meets the target; None where it could not be measured."""

    shown: str
    met: bool | None


class Target(NamedTuple):
    """One target: the benchmark that measures it, what, how much, how it is read off a result, what a miss would take."""

    benchmark: str
    what: str
    wanted: str
    read: Callable[[Result], Measured]
    needs: str


NOT_MEASURED = Measured("not measured", None)


def _ratio(durability: str, at_least: float) -> Callable[[Result], Measured]:
    def read(result: Result) -> Measured:
        found = append.ratio(result, durability)
        return Measured(f"{found:.2f} x", found >= at_least)

    return read


def _peers(result: Result) -> Measured:
    found = append.against_peers(result)
    if not found:
        return NOT_MEASURED
    told = [f"{name} {' / '.join(f'{ratio:.1f}' for ratio in ratios.values())} x" for name, ratios in found.items()]
    met = all(ratio >= 1 for ratios in found.values() for ratio in ratios.values())
    return Measured(f"{'; '.join(told)} ({' / '.join(append.DURABILITIES)})", met)


def _growth(names: tuple[str, ...], at_most: float) -> Callable[[Result], Measured]:
    def read(result: Result) -> Measured:
        worst = max(names, key=lambda name: growth.grown(result, name))
        found = growth.grown(result, worst)
        first, *_, last = result["turns"]
        return Measured(f"at most {found:.2f} x ({worst}), {first:,} to {last:,} turns", found <= at_most)

    return read


def _slowest(name: str, at_most: float) -> Callable[[Result], Measured]:
    def read(result: Result) -> Measured:
        found = max(result["seconds"][name])
        return Measured(f"at most {shown(found)}", found <= at_most)

    return read


def _literals(result: Result) -> Measured:
    found = {name: grep.faster_than_ripgrep(result, name) for name in LITERAL}
    ratios = {name: ratio for name, ratio in found.items() if ratio is not None}
    if not ratios:
        return NOT_MEASURED
    told = ", ".join(f"{name} {ratio:.2g} x" for name, ratio in ratios.items())
    return Measured(f"{told} at {_largest(result)}", len(ratios) == len(found) and min(ratios.values()) >= 10)


def _largest(result: Result) -> str:
    return shown_bytes(max(found["jsonl"] for found in result["sizes"].values()))


def _scan(result: Result) -> Measured:
    found = grep.bytes_a_second(result, "no literal")
    if found is None:
        return Measured(f"refused within its time budget at {_largest(result)}", met=False)
    return Measured(f"{shown_bytes(found)}/s at {_largest(result)}", found >= 1e9)


def _flat(smaller: float, larger: float) -> Measured:
    return Measured(f"{shown_bytes(smaller)}, then {shown_bytes(larger)}", larger <= max(FLAT * smaller, SMALL))


def _search_memory(result: Result) -> Measured:
    held = [max(found["held"].values()) for found in result["sizes"].values()]
    return _flat(held[0], held[-1])


def _verify_memory(result: Result) -> Measured:
    found = [_flat(*(sized["held"] for sized in result[shape])) for shape in ("small", "large")]
    return Measured("; ".join(each.shown for each in found), all(each.met for each in found))


def _small(result: Result) -> Measured:
    found = verify.records_a_second(result)
    return Measured(f"{found:,.0f} records/s", found >= 100_000)


def _large(result: Result) -> Measured:
    found = verify.bytes_a_second(result)
    return Measured(f"{shown_bytes(found)}/s", found >= 300 * MB)


def _size(key: str | None, at_most: float) -> Callable[[Result], Measured]:
    def read(result: Result) -> Measured:
        found = size.times_bodies(result, key)
        return Measured(f"{found:.3f} x", found <= at_most) if found else NOT_MEASURED

    return read


def _linear(result: Result) -> Measured:
    found = size.our_growth(result)
    return Measured(f"exponent {found:.3f}", abs(found - 1) <= size.LINEAR)


def _start(result: Result) -> Measured:
    name, found = startup.slowest(result)
    return Measured(f"at most {shown(found)} (`{name}`)", found <= 0.120)


TARGETS = (
    Target(
        "append", "append, 1 kB, one transaction each, at FULL", ">= 0.8 x the bare insert", _ratio("full", 0.8), ""
    ),
    Target("append", "the same, sync off", ">= 0.5 x the bare insert", _ratio("off", 0.5), ""),
    Target("append", "the same, against peers", "ahead of every peer", _peers, ""),
    Target("growth", "survey, render, plan, alignment, open", "growth <= 1.2 x", _growth(READINGS, 1.2), ""),
    Target("growth", "open + survey", "<= 15 ms", _slowest("open + survey", 0.015), ""),
    Target("growth", "evict", "cost of the items covered, nothing else", _growth(EVICTIONS, 1.2), ""),
    Target("growth", "fork", "<= 1 ms whatever the history", _slowest("fork", 0.001), ""),
    Target("grep", "grep, pattern with a literal", ">= 10 x ripgrep at 1 GB", _literals, ""),
    Target("grep", "grep, pattern without a literal", ">= 1 GB/s", _scan, ""),
    Target("grep", "grep, memory", "flat", _search_memory, ""),
    Target("verify", "verify, small records", ">= 100,000 records/s", _small, ""),
    Target("verify", "verify, large bodies", ">= 300 MB/s", _large, ""),
    Target("verify", "verify, memory", "flat", _verify_memory, ""),
    Target("size", "file, without the search index", "<= 1.15 x the bodies", _size(None, 1.15), ""),
    Target("size", "file, with the search index", "<= 1.5 x the bodies", _size("indexed", 1.5), ""),
    Target("size", "file, growth", "linear", _linear, ""),
    Target("startup", "start of a command that touches one row", "<= 120 ms", _start, ""),
)


def report(results: Mapping[str, Result]) -> str:
    """The table of targets, and what each miss would take. ``results`` are those kept, by benchmark."""
    rows, misses = [], []
    for target in TARGETS:
        measured = target.read(results[target.benchmark]) if target.benchmark in results else NOT_MEASURED
        verdict = {True: "met", False: "**missed**", None: "open"}[measured.met]
        rows.append([target.what, target.wanted, measured.shown, verdict])
        if measured.met is False:
            misses.append(f"- **{target.what}**: {target.needs}")
    found = table(["what", "target", "measured", ""], rows)
    return found + ("\n\n### What the misses would take\n\n" + "\n".join(misses) if misses else "")
