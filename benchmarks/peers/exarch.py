"""exarch_sql itself: one record a transaction, or (mode ``batch``) all that is asked for in one.

Does: everything. Canonical JSON, hash, chain, protocol and all laws checked by the file, label and weight kept beside the body.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from serving import Contestant, serve

from exarch_sql import Archive

if TYPE_CHECKING:
    from pathlib import Path

    from conversation import Message, Step


class Exarch(Contestant):
    """A lineage file with one log."""

    package = "exarch_sql"

    def open(self, folder: Path, durability: str) -> None:  # noqa: D102  (the base says it)
        self.archive = Archive.open(folder / "lineage.exarch", durability=durability)  # type: ignore[arg-type]

    def prepared(self, step: Step) -> tuple[str, str | Message | list[Message]]:  # noqa: D102
        parts = step.message["parts"]
        if step.kind == "tool_results":
            return step.kind, parts
        return step.kind, parts[0]["content"] if len(parts) == 1 else step.message

    def append_all(self, records: list[tuple[str, str | Message | list[Message]]]) -> None:  # noqa: D102
        log = self.archive.trunk
        ways = {"prompt": log.prompt, "assistant": log.assistant, "tool_results": log.tool_results}
        with log.batch() if self.mode == "batch" else contextlib.nullcontext():
            for kind, said in records:
                ways[kind](said)  # type: ignore[operator]

    def close(self) -> None:  # noqa: D102
        self.archive.close()

    def read_back(self, folder: Path) -> int:  # noqa: D102
        with Archive.open(folder / "lineage.exarch") as archive:
            return len(archive.trunk.render())


if __name__ == "__main__":
    serve(Exarch)
