"""langgraph-checkpoint-sqlite: ``SqliteSaver``, in two modes.

``state``: one ``put`` a record, of the state a message graph has then: every message so far. That is what a graph over a list of
messages stores at each step (besides its ``put_writes``, left out here), so time and file grow with the square of the conversation.
``writes``: one ``put_writes`` a record, of the new message alone: the least that the saver can store.
Neither has a hash, a chain, a protocol or locations.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.sqlite import SqliteSaver
from serving import Contestant, serve

if TYPE_CHECKING:
    from pathlib import Path

    from conversation import Message, Step

CONFIG: Any = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}


class LangGraphSaver(Contestant):
    """One thread in one file; WAL is its own choice."""

    package = "langgraph-checkpoint-sqlite"

    def open(self, folder: Path, durability: str) -> None:  # noqa: D102
        self.db = sqlite3.connect(folder / "checkpoints.db", check_same_thread=False)
        self.saver = SqliteSaver(self.db)
        self.saver.setup()
        self.db.execute(f"PRAGMA synchronous = {durability}")
        self.messages: list[Message] = []
        self.config = CONFIG
        self.count = 0
        if self.mode == "writes":
            self._put()

    def _put(self) -> None:
        self.count += 1
        checkpoint = empty_checkpoint() | {
            "id": str(uuid6(clock_seq=self.count)),
            "ts": datetime.now(UTC).isoformat(),
            "channel_values": {"messages": self.messages},
            "channel_versions": {"messages": self.count},
        }
        metadata: Any = {"source": "loop", "step": self.count}
        self.config = self.saver.put(self.config, checkpoint, metadata, {"messages": self.count})  # type: ignore[arg-type]

    def prepared(self, step: Step) -> Message:  # noqa: D102
        return step.message

    def append_all(self, records: list[Message]) -> None:  # noqa: D102
        for message in records:
            if self.mode == "writes":
                self.count += 1
                self.saver.put_writes(self.config, [("messages", message)], f"{self.count:08}")
            else:
                self.messages.append(message)
                self._put()

    def close(self) -> None:  # noqa: D102
        self.db.close()

    def read_back(self, folder: Path) -> int:  # noqa: D102
        with SqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
            found = saver.get_tuple(CONFIG)
            assert found is not None  # noqa: S101
            return len(found.checkpoint["channel_values"]["messages"]) + len(found.pending_writes or ())


if __name__ == "__main__":
    serve(LangGraphSaver)
