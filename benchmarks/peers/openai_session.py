"""openai-agents: ``SQLiteSession.add_items``, one item a call and a transaction, as its runner does after each turn.

Does: JSON, a row a message, an index by session, a time stamp of the session. No hash, no chain, no protocol, no locations.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from agents.memory.sqlite_session import SQLiteSession
from serving import Contestant, serve

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from conversation import Step


class Session(SQLiteSession):
    """The session as it is, its connections told how durable to be."""

    durability = "full"

    @staticmethod
    def _configure_connection(conn: sqlite3.Connection) -> None:
        SQLiteSession._configure_connection(conn)
        conn.execute(f"PRAGMA synchronous = {Session.durability}")


class OpenAISession(Contestant):
    """One session in one file; WAL is its own choice."""

    package = "openai-agents"

    def open(self, folder: Path, durability: str) -> None:  # noqa: D102
        Session.durability = durability
        self.session = Session("bench", folder / "session.db")

    def prepared(self, step: Step) -> list[dict[str, Any]]:  # noqa: D102
        items: list[dict[str, Any]] = []
        for part in step.message["parts"]:
            match part["type"]:
                case "text":
                    items.append({"role": step.message["role"], "content": part["content"]})
                case "tool_call":
                    items.append(
                        {
                            "type": "function_call",
                            "call_id": part["id"],
                            "name": part["name"],
                            "arguments": json.dumps(part["arguments"]),
                        }
                    )
                case _:
                    items.append({"type": "function_call_output", "call_id": part["id"], "output": part["response"]})
        return items

    def append_all(self, records: list[list[dict[str, Any]]]) -> None:  # noqa: D102
        async def add() -> None:
            for items in records:
                await self.session.add_items(items)  # type: ignore[arg-type]

        asyncio.run(add())

    def close(self) -> None:  # noqa: D102
        self.session.close()

    def read_back(self, folder: Path) -> int:  # noqa: D102
        session = Session("bench", folder / "session.db")
        items = asyncio.run(session.get_items())
        session.close()
        return len(items)


if __name__ == "__main__":
    serve(OpenAISession)
