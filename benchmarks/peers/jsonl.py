"""A JSON line a message, appended to a text file: what most agents keep. At FULL an fsync after each line.

Does: the encoding. No hash, no laws, no index; a crash can leave half a line. There is no middle durability.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from serving import Contestant, compact, serve

if TYPE_CHECKING:
    from pathlib import Path

    from conversation import Message, Step


class JsonLines(Contestant):
    """An unbuffered file: each line is one write."""

    def open(self, folder: Path, durability: str) -> None:  # noqa: D102
        self.file = open(folder / "session.jsonl", "ab", buffering=0)  # noqa: SIM115  (close closes it)
        self.durable = durability == "full"

    def prepared(self, step: Step) -> Message:  # noqa: D102
        return step.message

    def append_all(self, records: list[Message]) -> None:  # noqa: D102
        for message in records:
            self.file.write(compact(message) + b"\n")
            if self.durable:
                os.fsync(self.file.fileno())

    def close(self) -> None:  # noqa: D102
        self.file.close()

    def read_back(self, folder: Path) -> int:  # noqa: D102
        with open(folder / "session.jsonl", "rb") as file:
            return len([json.loads(line) for line in file])


if __name__ == "__main__":
    serve(JsonLines)
