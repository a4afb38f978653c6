"""llm: ``LogStore.append``, its store of message chains, each record inside one ``atomic`` block.

Does: a hash of each message with its parent's (a chain), de-duplication, a row a message and a row a part, the thread's tip. No
protocol, no locations; the thread's row is updated in place. The file is in WAL mode here; the package itself leaves SQLite's
rollback journal on, which syncs more often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlite_utils
from llm.logs import LogStore
from llm.parts import Message as Said
from llm.parts import Part, TextPart, ToolCallPart, ToolResultPart
from serving import Contestant, serve

if TYPE_CHECKING:
    from pathlib import Path

    from conversation import Message, Step

THREAD = "bench"


def _part(part: Message) -> Part:
    match part["type"]:
        case "text":
            return TextPart(text=part["content"])
        case "tool_call":
            return ToolCallPart(name=part["name"], arguments=part["arguments"], tool_call_id=part["id"])
        case _:
            return ToolResultPart(name="shell", output=part["response"], tool_call_id=part["id"])


class LlmStore(Contestant):
    """One thread in one file."""

    package = "llm"

    def open(self, folder: Path, durability: str) -> None:  # noqa: D102
        self.db = sqlite_utils.Database(folder / "logs.db")
        self.db.enable_wal()
        self.db.execute(f"PRAGMA synchronous = {durability}")
        self.store = LogStore(self.db)
        self.store.ensure_thread(THREAD)

    def prepared(self, step: Step) -> Said:  # noqa: D102
        return Said(role=step.message["role"], parts=[_part(part) for part in step.message["parts"]])

    def append_all(self, records: list[Said]) -> None:  # noqa: D102
        for message in records:
            with self.db.atomic():
                self.store.append(THREAD, [message])

    def close(self) -> None:  # noqa: D102
        self.db.close()

    def read_back(self, folder: Path) -> int:  # noqa: D102
        db = sqlite_utils.Database(folder / "logs.db")
        said = LogStore(db).thread_messages(THREAD)
        db.close()
        return len(said)


if __name__ == "__main__":
    serve(LlmStore)
