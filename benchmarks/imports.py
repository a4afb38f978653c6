"""Import: a session file of a coding agent into an empty archive, and again when nothing in it is new."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from conversation import session
from measuring import Result, Scale, in_child, peak_bytes, run, seconds_of, shown, shown_bytes, table

from exarch_sql import Archive
from exarch_sql.importers import import_file

if TYPE_CHECKING:
    from conversation import Message

MEGABYTES: dict[Scale, tuple[int, ...]] = {"tiny": (1,), "quick": (2, 10), "default": (5, 50), "full": (10, 100)}
RUNS = 3
SESSION_ID = str(UUID(int=1))


def _blocks(message: Message) -> list[dict[str, Any]]:
    """A message's parts as the blocks of a session file."""
    blocks: list[dict[str, Any]] = []
    for part in message["parts"]:
        match part["type"]:
            case "text":
                blocks.append({"type": "text", "text": part["content"]})
            case "tool_call":
                blocks.append({"type": "tool_use", "id": part["id"], "name": "Bash", "input": part["arguments"]})
            case _:
                blocks.append({"type": "tool_result", "tool_use_id": part["id"], "content": part["response"]})
    return blocks


def _line(index: int) -> str:
    """A line of a session file, in the envelope that the program puts around each."""
    step = session(index)
    said: dict[str, Any] = {"role": step.message["role"], "content": _blocks(step.message)}
    kind = "assistant" if step.kind == "assistant" else "user"
    if kind == "assistant":
        usage = {"input_tokens": 3, "cache_read_input_tokens": index * 40, "output_tokens": 200}
        said |= {"id": f"msg_{index:08}", "type": "message", "model": "made-up-model-1", "usage": usage}
    said["role"] = kind
    line = {
        "parentUuid": str(UUID(int=index + 999)) if index else None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/user/project",
        "sessionId": SESSION_ID,
        "version": "2.1.0",
        "gitBranch": "main",
        "type": kind,
        "message": said,
        "uuid": str(UUID(int=index + 1000)),
        "timestamp": f"2026-03-{index // 86400 % 28 + 1:02}T{index // 3600 % 24:02}:{index // 60 % 60:02}:{index % 60:02}.000Z",
    }
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"


def build(path: str, megabytes: int) -> dict[str, int]:
    """A session file of so many megabytes, closed by a reply; its bytes and lines."""
    size = index = 0
    with open(path, "w", encoding="utf-8") as file:
        while size < megabytes * 1_000_000 or index % 6:
            line = _line(index)
            file.write(line)
            size += len(line.encode())
            index += 1
    return {"bytes": size, "lines": index}


def imported(source: str, archive: str) -> dict[str, float]:
    """Import once: seconds, turns, records that were new, and the memory it took."""
    with Archive.open(archive) as lineage:
        before = peak_bytes()
        reports = []
        seconds = seconds_of(lambda: reports.append(import_file(lineage, source)))
        (told,) = reports
        assert not told.damaged and not told.conflicts and not told.refused, told  # noqa: S101, PT018
        return {
            "seconds": seconds,
            "turns": lineage.trunk.reach,
            "new": told.new_records,
            "held": peak_bytes() - before,
        }


def measure(folder: Path, scale: Scale) -> Result:
    """Every size, into a new archive and then once more; each run in a process of its own."""
    result: Result = {"sizes": []}
    for megabytes in MEGABYTES[scale]:
        source = str(folder / f"{megabytes}.jsonl")
        built, _ = in_child("imports", "build", path=source, megabytes=megabytes)
        first, again = [], []
        for number in range(RUNS):
            archive = str(folder / f"{megabytes}-{number}.exarch")
            first.append(in_child("imports", "imported", source=source, archive=archive)[0])
            again.append(in_child("imports", "imported", source=source, archive=archive)[0])
            assert first[-1]["new"] and not again[-1]["new"]  # noqa: S101, PT018
            Path(archive).unlink()
        result["sizes"].append(
            {
                **built,
                "turns": first[0]["turns"],
                "records": first[0]["new"],
                "seconds": statistics.median(found["seconds"] for found in first),
                "again": statistics.median(found["seconds"] for found in again),
                "held": statistics.median(found["held"] for found in first),
            }
        )
    return result


def report(result: Result) -> str:
    """One table."""
    rows = [
        [
            shown_bytes(found["bytes"]),
            f"{found['turns']:,}",
            f"{found['records']:,}",
            shown(found["seconds"]),
            f"{shown_bytes(found['bytes'] / found['seconds'])}/s",
            f"{found['turns'] / found['seconds']:,.0f}",
            f"{shown(found['again'])} ({shown_bytes(found['bytes'] / found['again'])}/s)",
            shown_bytes(found["held"]),
        ]
        for found in result["sizes"]
    ]
    headers = [
        "file",
        "turns",
        "records",
        "import",
        "",
        "turns/s",
        "again, nothing new",
        "memory on top of the open archive",
    ]
    return "Into a new archive at FULL, each run in a process of its own.\n\n" + table(headers, rows)


if __name__ == "__main__":
    run("imports", __doc__, measure, report)
