"""How a contestant is asked to work: one JSON command a line on stdin, one JSON answer a line on stdout.

``open`` a store at a durability, ``append`` records of the conversation (made beforehand, timed here), ``close``, ``read`` all of
it back from a closed store. Only the standard library and ``conversation``: contestants run in environments of their own.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

from conversation import compact, steps

if TYPE_CHECKING:
    from conversation import Step

__all__ = ["Contestant", "compact", "serve"]


class Contestant:
    """One way to keep a conversation. A subclass says how; ``folder`` is its own, empty at first."""

    package = ""  # whose version is told

    def __init__(self, mode: str) -> None:
        """``mode`` chooses between ways that one package offers; empty where there is one."""
        self.mode = mode

    def open(self, folder: Path, durability: str) -> None:
        """Open the store, or make it. ``durability`` is full, normal or off."""
        raise NotImplementedError

    def prepared(self, step: Step) -> Any:
        """A record in the shape the package takes; not timed."""
        raise NotImplementedError

    def append_all(self, records: list[Any]) -> None:
        """Append them, each durable before the next (a batch, where the mode says so). Timed."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the store."""
        raise NotImplementedError

    def read_back(self, folder: Path) -> int:
        """Open the closed store, read every message back as Python values, close it; how many. Timed."""
        raise NotImplementedError


def _open(contestant: Contestant, asked: dict[str, Any]) -> dict[str, Any]:
    folder = Path(asked["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    contestant.open(folder, asked["durability"])
    return {"seconds": time.perf_counter() - start}


def _append(contestant: Contestant, asked: dict[str, Any]) -> dict[str, Any]:
    records = [contestant.prepared(s) for s in steps(asked["shape"], asked["first"], asked["count"], asked["size"])]
    start = time.perf_counter()
    contestant.append_all(records)
    return {"seconds": time.perf_counter() - start}


def _close(contestant: Contestant, _: dict[str, Any]) -> dict[str, Any]:
    contestant.close()
    return {}


def _read(contestant: Contestant, asked: dict[str, Any]) -> dict[str, Any]:
    start = time.perf_counter()
    messages = contestant.read_back(Path(asked["folder"]))
    return {"seconds": time.perf_counter() - start, "messages": messages}


def _tell(contestant: Contestant, _: dict[str, Any]) -> dict[str, Any]:
    return {"version": metadata.version(contestant.package) if contestant.package else ""}


DOINGS = {"open": _open, "append": _append, "close": _close, "read": _read, "tell": _tell}


def serve(kind: type[Contestant]) -> None:
    """Do what stdin asks until it ends. The mode is the one argument, if any."""
    contestant = kind(sys.argv[1] if len(sys.argv) > 1 else "")
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(DOINGS[asked["do"]](contestant, asked)), flush=True)
