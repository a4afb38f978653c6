"""File size: the same sessions, tool calls and all, kept by every contestant; against the bytes of the bodies, and as they grow.

The size is that of everything a contestant leaves in its folder after it closed. That ours grows in proportion is asserted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contest import OURS, Contender, Running, present
from conversation import compact, session
from lineages import index_seconds
from measuring import Result, Scale, growth_exponent, run, shown_bytes, table

from exarch_sql import Archive

if TYPE_CHECKING:
    from pathlib import Path

SIZES: dict[Scale, tuple[int, ...]] = {  # records, in whole sessions of 6
    "tiny": (60, 120, 240),
    "quick": (300, 600, 1_200),
    "default": (600, 2_400, 9_600),
    "full": (600, 2_400, 9_600, 38_400),
}
LINEAR = 0.05  # how far from 1 the growth exponent of our file may be, its fixed part taken off
BATCHED = ("exarch_sql, batched", "bare insert, batched")  # the same files as one by one


def kept_bytes(contender: Contender, folder: Path, records: int) -> int:
    """What a contestant's files hold together after it took these records and closed."""
    with Running(contender) as contestant:
        contestant.ask("open", folder=str(folder), durability="off")
        for first in range(0, records, 600):
            count = min(600, records - first)
            contestant.ask("append", shape="session", first=first, count=count, size=0)
        contestant.ask("close")
    return sum(file.stat().st_size for file in folder.iterdir())


def body_bytes(records: int) -> int:
    """The bytes of the bodies: each record's messages as compact JSON."""
    return sum(len(compact([session(index).message])) for index in range(records))


def measure(folder: Path, scale: Scale) -> Result:
    """Every contestant at every size within its limit; ours with its search index as well, where it makes one."""
    contenders, absent = present(peers=scale != "tiny")
    sizes = SIZES[scale]
    found: dict[str, list[int | None]] = {}
    for number, contender in enumerate(contenders):
        if contender.name in BATCHED:
            continue
        found[contender.name] = [
            None
            if contender.limit and records > 2 * contender.limit
            else kept_bytes(contender, folder / f"{number}-{records}", records)
            for records in sizes
        ]
    ours = next(number for number, contender in enumerate(contenders) if contender.name == OURS)
    lineages = [folder / f"{ours}-{records}" / "lineage.exarch" for records in sizes]
    with_index = [path.stat().st_size if index_seconds(path) is not None else None for path in lineages]
    Archive.open(folder / "empty.exarch").close()
    result = {
        "records": sizes,
        "bodies": [body_bytes(records) for records in sizes],
        "empty": (folder / "empty.exarch").stat().st_size,
        "files": found,
        "indexed": with_index,
        "absent": absent,
    }
    exponent = our_growth(result)
    assert abs(exponent - 1) <= LINEAR, f"the file grows with the power {exponent:.3f} of its bodies, not in proportion"  # noqa: S101
    return result


def our_growth(result: Result) -> float:
    """The growth exponent of our file over its bodies, without what an empty file weighs."""
    return growth_exponent(result["bodies"], [size - result["empty"] for size in result["files"][OURS]])


def times_bodies(result: Result, key: str | None = None) -> float | None:
    """Our file at the largest size over the bytes of the bodies; ``key="indexed"`` for the one with the search index."""
    size = result["indexed"][-1] if key else result["files"][OURS][-1]
    return size / result["bodies"][-1] if size else None


def report(result: Result) -> str:
    """The table: bytes over bytes of bodies."""
    bodies = result["bodies"]
    rows = [["bodies alone", *(shown_bytes(size) for size in bodies)]]
    named = dict(result["files"]) | {f"{OURS}, with its search index": result["indexed"]}
    for name, sizes in named.items():
        if any(sizes):
            rows.append(
                [
                    name,
                    *(f"{size / body:.3f} x" if size else "" for size, body in zip(sizes, bodies, strict=True)),
                ]
            )
    headers = ["kept by", *(f"{records:,} records" for records in result["records"])]
    texts = [
        "Bytes of everything left in the folder, as a multiple of the bytes of the bodies (the messages as compact JSON). An empty "
        f"lineage file, all its tables, triggers and views, is {shown_bytes(result['empty'])}.",
        table(headers, rows),
        f"Growth exponent of our file without that fixed part: {our_growth(result):.3f} (1 is linear; asserted within {LINEAR}).",
        "What each contestant keeps is said under *append*.",
    ]
    texts += [f"{name}: not measured, {why}." for name, why in result["absent"].items()]
    return "\n\n".join(texts)


if __name__ == "__main__":
    run("size", __doc__, measure, report)
