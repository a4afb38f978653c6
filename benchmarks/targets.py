"""The targets of speed and size, what was measured beside each, and what a missed one would take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import append
import door
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


def _line(result: Result) -> Measured:
    line, found = door.dearest(result)
    return Measured(f"at most {shown(found)} (`` {line} ``)", found <= 0.001)


APPEND_AT_FULL = """with nothing else on the disk a sync takes 0.13 ms here. What an append takes on top is 20 us of
Python, 6 of SQL and law, and pages: 2.7 a commit where the bare insert writes 1.5, the rest of them the index of turns.
(Looking at the write-ahead log with stat before each append made its next sync dearer by 60 us, for Linux from 6.13 on
keeps finer time stamps for a file that was looked at; it is looked at ten times a second now. Without any look, and in
pages of 1,024 bytes, the same loop gained another 0.03 x.) On a slower or busier disk the sync hides all of this."""

APPEND_WITHOUT_SYNC = """of 35 to 40 us, 13 are SQLite's: 6 is what the bare insert takes in the same loop, 1 goes
to the further columns, 3 to the index of turns, 4 to the trigger that admits a record; the CHECKs are too cheap to
measure. Some 20 are Python's: JSON 4 to 6,
digests 2, looking at the file 2, the label 3, and the calls between. For 0.5 x the whole append would have to be 12 us, less
than SQLite's own part, trigger and index included: it is out of reach while the laws are checked by the file and
every record stands in the index. The peers' stores, which are Python too, are the comparison that holds."""

PEERS_AHEAD = """langgraph's pending writes do less: one row, without hash, chain or protocol, that no graph keeps
as its conversation (its checkpoints, *state*, are what it reads back). Sync aside, the remedies of the line before
bring an append about level with it."""

SMALL_VERIFIED = """a record costs 20 to 30 us of Python. Two fifths re-derive its quotes, half of which is spelling
its body again; the rest is its digest, its fold, looking up the fold's rows, and what the views answer for it.
Reading bodies as bytes and spelling with a fast encoder spare 5 us; records and views could be checked by two
processes, for one needs nothing of the other; beyond that, the loop would have to leave Python."""

LARGE_VERIFIED = """SHA-256 and parsing are 1.2 ms of a megabyte; the rest is spent on text as text. Reading the
body as bytes (0.1 ms instead of 0.4), finding backslash-u and holes with RE2 on bytes (0.1 ms each instead of 0.9
and 0.5), and comparing spellings by a fast encoder instead of `json` and two substitutions (0.4 ms instead of 10)
add up to about 2 ms, 500 MB/s: measured piece by piece, not yet done."""

VERIFY_MEMORY = """the ordered reading of `items` sorts a log's whole index, and `temp_store = MEMORY` keeps the
sorter in memory: 126 bytes a turn. Compared in stretches of ids it would be flat; a file for temporaries would do
as well."""

LITERALS = """ripgrep reads 2 to 14 GB/s from the page cache, so ten times faster means 7 to 40 ms at 1 GB. What the
index can tell is answered by it in 5 ms there, whether it is rare, in any case, or nowhere: it is asked for the rarest
trigram, and most of the time goes to finding, in each of some 30 segments, where trigrams' lists begin. A literal that
stands in every other record (`timeout`: 309,112 lines) leaves nothing to skip: every such record is read, decoded and
matched line by line, where ripgrep stops at a record's first match and decodes nothing. Of 2.7 s, a quarter each is
reading, parsing JSON, taking the texts out of it as bytes, and 2 us of Python a matching line; another order of
magnitude would take counting lines in the JSON as it lies, by code that is not Python. The class and alternation
consists of trigrams that stand in half of all records each; every sixth record, the long ones, has them all, and RE2
takes half of the time to tell which of these match. An index of longer pieces than trigrams would leave out more, and be larger."""

SCANNED = """RE2 alone takes 1.3 s for a gigabyte of this pattern, with what the filter cannot vouch for looked for in
the same pass, and ripgrep's engine about 2 s. Reading the bodies through SQLite and joining them is 0.7 s more. Two
threads of RE2 beside the reader were tried (the driver and RE2 both let go of the interpreter's lock): on two cores
they gained nothing that could be told from noise, and were left out; a machine of four might come to 1 GB/s by them."""

FILE_SIZE = """the bare table itself is 1.17 x: a page of 4,096 bytes holds one or two records of this size and
wastes what is left. Ours adds 155 bytes a record (two hashes, the quotes, the index of turns) and, in the page, the
same waste once more. Pages of 1,024 bytes gave 1.18 x with appends as fast, full scans a third slower, and files of small
records 15 % larger;
compression would do it, and the body would no longer be the text that was hashed."""

INDEXED_SIZE = """the index is 0.39 x the text, as it was expected to be (0.28 to 0.4); the rest is the file's own
waste, see the line above. With pages of 1,024 bytes both together come to about 1.57 x."""

GROWN = (
    "looking for the operation that reads recorded history: none did when this was written; see the table of growth."
)
STARTED = "fewer imports: Python itself takes 10 ms, msgspec 15, click 7, the package's own modules the rest."
LINES = (
    "a parser that is not written in Python: half of a line's time is its tree, the rest is the values of its answer."
)
MEMORY = (
    "finding what is collected before it is answered: 100 hits and one stretch of records are all a search should hold."
)

TARGETS = (
    Target(
        "append",
        "append, 1 kB, one transaction each, at FULL",
        ">= 0.8 x the bare insert",
        _ratio("full", 0.8),
        APPEND_AT_FULL,
    ),
    Target("append", "the same, sync off", ">= 0.5 x the bare insert", _ratio("off", 0.5), APPEND_WITHOUT_SYNC),
    Target("append", "the same, against peers", "ahead of every peer", _peers, PEERS_AHEAD),
    Target("growth", "survey, render, plan, alignment, open", "growth <= 1.2 x", _growth(READINGS, 1.2), GROWN),
    Target("growth", "open + survey", "<= 15 ms", _slowest("open + survey", 0.015), STARTED),
    Target("growth", "evict", "cost of the items covered, nothing else", _growth(EVICTIONS, 1.2), GROWN),
    Target("growth", "fork", "<= 1 ms whatever the history", _slowest("fork", 0.001), GROWN),
    Target("grep", "grep, pattern with a literal", ">= 10 x ripgrep at 1 GB", _literals, LITERALS),
    Target("grep", "grep, pattern without a literal", ">= 1 GB/s", _scan, SCANNED),
    Target("grep", "grep, memory", "flat", _search_memory, MEMORY),
    Target("verify", "verify, small records", ">= 100,000 records/s", _small, SMALL_VERIFIED),
    Target("verify", "verify, large bodies", ">= 300 MB/s", _large, LARGE_VERIFIED),
    Target("verify", "verify, memory", "flat", _verify_memory, VERIFY_MEMORY),
    Target("size", "file, without the search index", "<= 1.15 x the bodies", _size(None, 1.15), FILE_SIZE),
    Target("size", "file, with the search index", "<= 1.5 x the bodies", _size("indexed", 1.5), INDEXED_SIZE),
    Target("size", "file, growth", "linear", _linear, FILE_SIZE),
    Target("startup", "start of a command that touches one row", "<= 120 ms", _start, STARTED),
    Target("door", "a line of one verb, parsed and run", "<= 1 ms on top of the verb", _line, LINES),
)


def report(results: Mapping[str, Result]) -> str:
    """The table of targets, and what each miss would take. ``results`` are those kept, by benchmark."""
    rows, misses = [], []
    for target in TARGETS:
        measured = target.read(results[target.benchmark]) if target.benchmark in results else NOT_MEASURED
        verdict = {True: "met", False: "**missed**", None: "open"}[measured.met]
        rows.append([target.what, target.wanted, measured.shown, verdict])
        if measured.met is False:
            misses.append(f"- **{target.what}**: {' '.join(target.needs.split())}")
    found = table(["what", "target", "measured", ""], rows)
    return found + ("\n\n### What the misses would take\n\n" + "\n".join(misses) if misses else "")
