"""Lineages to measure on: built from the made-up conversation, evicted bit by bit as a harness would, and their search index."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from conversation import session

from exarch_sql import Archive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conversation import Message, Step

    from exarch_sql import Log, Turn

SESSION = 6  # records to a session of the conversation
BATCH = 600  # records to a transaction
RESIDENT = 200  # turns that stay in the context
NOWHERE = "unobtainium valve"  # stands in no text


def append(log: Log, step: Step) -> Turn:
    """One record of a conversation."""
    if step.kind == "tool_results":
        return log.tool_results(step.message["parts"])
    return log.prompt(step.message) if step.kind == "prompt" else log.assistant(step.message)


def write_sessions(
    path: Path, enough: Callable[[Turn, Message], bool], change: Callable[[Message], None] = lambda _: None
) -> int:
    """A lineage of whole sessions, until one record of which ``enough(turn, message)``; its number of turns.

    ``change`` may alter a prompt's message before it is recorded.
    """
    index, done = 0, False
    with Archive.open(path) as archive:
        log = archive.trunk
        while not done:
            with log.batch():
                for _ in range(BATCH // SESSION):
                    for _ in range(SESSION):
                        step = session(index)
                        if step.kind == "prompt":
                            change(step.message)
                        turn = append(log, step)
                        done |= enough(turn, step.message)
                        index += 1
                    if done:
                        break
                if turn.id > RESIDENT:
                    log.force(through=turn.id - RESIDENT)
        return log.reach


def index_seconds(path: Path) -> float | None:
    """Bring the search index of a lineage up to date; how long it took, or None where this version makes none."""
    before = path.stat().st_size
    with Archive.open(path, timeout=60) as archive:
        start = time.perf_counter()
        if hasattr(archive, "reindex"):
            archive.reindex()
        else:
            archive.trunk.grep(NOWHERE)
        taken = time.perf_counter() - start
    return taken if path.stat().st_size > before else None
