"""Shared fixtures: one small lawful archive in which every kind of row occurs, and copies of it to attack.

Its logs stand in every state, and are named for it:

``trunk``       ready at turn 16. Residues nested, rewritten, merged, forced, one over a withdrawn run; withdrawn ground between
                resident turns; steering, an import, a blob, idempotency keys, every kind of witness.
``child``       forked from the trunk while that owed results, so turn 15 stands withdrawn in it; has evicted what it inherited;
                answered: its newest turn waits for a reply.
``grandchild``  forked from the child, cleared, and started again; prompted.
``heir``        a fork that has done nothing: prompted by a turn of its parent.
``owing``       a log of its own whose reply waits for the results of calls x1 and x2.
``empty``       a log of its own without a turn, cleared all the same; ready.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import forge
import pytest
from hypothesis import settings

from exarch_sql import Archive, verify

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator

    from exarch_sql import Head, Log, Report

# `make test` plays the same examples every time, so that a failure is the change's doing; `make fuzz` throws new dice
settings.register_profile("same", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("new", deadline=None, print_blob=True)
settings.load_profile("same")

LOGS = {"trunk": 1, "child": 2, "heir": 3, "grandchild": 4, "owing": 5, "empty": 6}

PICTURE = {
    "role": "user",
    "parts": [
        {"type": "text", "content": "what is wrong in this picture?"},
        {
            "type": "blob",
            "mime_type": "image/png",
            "modality": "image",
            "content": base64.b64encode(b"\x89PNG picture").decode(),
        },
    ],
}


def calling(text: str, *call_ids: str) -> forge.Row:
    """A reply that thinks, speaks and calls."""
    said = forge.reply(text, *call_ids)
    said["parts"].insert(0, {"type": "reasoning", "content": "let me see", "signature": "c2ln"})
    return said


def exchange(log: Log, ask: str, answer: str) -> None:
    """A prompt and its reply."""
    log.prompt(ask)
    log.assistant(answer)


def write_trunk(trunk: Log) -> None:
    """Turns 1 to 14 and what became of them."""
    trunk.meta({"model": "m-1"})
    trunk.prompt(PICTURE, key="first")
    trunk.assistant(calling("looking", "c1", "c2"))
    trunk.witness("door", {"line": "exarch-context `survey", "bytes": 120})
    trunk.tool_results([{"id": "c2", "content": "b.py"}, {"id": "c1", "content": "a.py"}])
    trunk.steer("only the red ones")
    trunk.assistant("the red one is upside down")
    trunk.usage(turn=3, input_tokens=900, output_tokens=40, model="m-1")
    exchange(trunk, "turn it", "turned")
    trunk.prompt("and the rest?")
    trunk.assistant("recorded elsewhere", origin="import")
    exchange(trunk, "a detour", "no use")
    trunk.evict(2, 2, note="leaf")
    trunk.evict(1, 3, note="nests")
    trunk.evict(1, 3, note="rewrites", key="rewrite")
    trunk.evict(5, 5, note="another leaf")
    trunk.force(through=5)
    trunk.error("the network was away")
    trunk.rewind(8)
    exchange(trunk, "back on the road", "going")
    trunk.evict(6, 10, note="over a withdrawn run")
    exchange(trunk, "faster", "too fast")
    trunk.rewind(13)
    trunk.prompt("slower")


def write_forks(archive: Archive, trunk: Log) -> None:
    """Turn 15 owes a result when the forks are made; then every log goes its own way."""
    trunk.assistant(calling("trying", "d1"))
    child = trunk.fork("child")
    trunk.fork("heir")
    trunk.evict(11, 11, note="inside the call")
    trunk.tool_results([{"id": "d1", "content": "half speed"}])
    trunk.assistant("slow enough")
    child.assistant("the child goes on")
    child.evict(12, 12, note="inherited, evicted here")
    child.prompt("what now?")
    child.assistant(calling("asking", "e1"))
    grandchild = child.fork("grandchild")
    child.tool_results([{"id": "e1", "content": "yes"}])
    grandchild.clear()
    grandchild.prompt("from nothing")
    owing = archive.new_log("owing")
    owing.prompt("do it")
    owing.assistant(calling("doing it", "x1", "x2"))
    owing.note("two calls are out")
    archive.new_log("empty").clear()


def fill(archive: Archive) -> None:
    """Write every kind of row, and logs in every state."""
    write_trunk(archive.trunk)
    write_forks(archive, archive.trunk)


@pytest.fixture(scope="session")
def lawful_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lawful archive as a file, closed. Read it, copy it, never write to it."""
    path = tmp_path_factory.mktemp("lawful") / "lawful.exarch"
    with Archive.open(path, durability="off") as archive, archive.batch():
        fill(archive)
    return path


@pytest.fixture
def lawful_copy(lawful_file: Path, tmp_path: Path) -> Path:
    """The archive, for a test that changes it."""
    return Path(shutil.copy(lawful_file, tmp_path / "a.exarch"))


@pytest.fixture
def unbounded_memory() -> Iterator[None]:
    """The command `sql` bounds SQLite's memory for its whole process, which in a test is that of all tests."""
    yield
    apsw.hard_heap_limit(0)


@pytest.fixture(scope="session")
def lawful(lawful_file: Path) -> bytes:
    """The lawful archive as the bytes of a database in memory: ``forge.bare(lawful)`` is a copy of one's own."""
    return forge.in_memory(lawful_file.read_bytes())


@pytest.fixture
def db(lawful: bytes) -> Iterator[sqlite3.Connection]:
    """A copy of the lawful archive behind a bare connection of Python's own module."""
    copy = forge.bare(lawful)
    yield copy
    copy.close()


@pytest.fixture
def pen(db: sqlite3.Connection) -> forge.Pen:
    """A pen on that copy."""
    return forge.Pen(db)


@pytest.fixture(scope="session")
def judged() -> Callable[..., Report]:
    """Have a database (its bytes, or a bare connection to it) judged by ``verify``: ``judged(db, against=head)`` is the report."""

    def judge(source: bytes | sqlite3.Connection, against: Head | None = None) -> Report:
        data = source if isinstance(source, bytes) else source.serialize()
        with contextlib.closing(apsw.Connection(":memory:")) as copy:
            copy.deserialize("main", data)
            return verify.verify(copy, against=against)

    return judge
