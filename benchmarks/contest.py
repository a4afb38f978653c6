"""The contestants: who they are, an environment for each that needs one, and asking them to work.

A peer from PyPI gets a virtual environment of its own under a cache folder (``EXARCH_BENCH_CACHE``, else
``~/.cache/exarch-bench``), made when it is first asked for; where that fails (no network), the run goes on without it and says so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from measuring import HERE

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

CACHE = Path(os.environ.get("EXARCH_BENCH_CACHE", "~/.cache/exarch-bench")).expanduser()


class Contender(NamedTuple):
    """A contestant: the name it is shown under, its script under ``peers``, a mode of it, and what it needs from PyPI."""

    name: str
    script: str
    mode: str
    needs: str | None  # a requirement; None where this package's own environment does
    does: str
    limit: int | None = None  # records it is given at most, where its time or file grows with their square


OURS = "exarch_sql"
BARE = "bare insert"
OURS_BATCHED = "exarch_sql, batched"
BARE_BATCHED = "bare insert, batched"

CONTENDERS = (
    Contender(
        OURS, "exarch.py", "", None, "encodes, hashes, chains; the file checks every law and keeps label, weight, index"
    ),
    Contender(BARE, "bare_apsw.py", "", None, "stores ready-made JSON text in one table; nothing else"),
    Contender(OURS_BATCHED, "exarch.py", "batch", None, "the same as exarch_sql, 50 records a transaction"),
    Contender(BARE_BATCHED, "bare_apsw.py", "batch", None, "the same as the bare insert, 50 records a transaction"),
    Contender(
        "JSONL",
        "jsonl.py",
        "",
        None,
        "encodes, writes a line, fsyncs it at FULL; no hash, no laws, no index; can tear a line",
    ),
    Contender(
        "openai-agents SQLiteSession",
        "openai_session.py",
        "",
        "openai-agents==0.24.0",
        "encodes, one row an item, index by session, time stamp; no hash, no chain, no protocol",
    ),
    Contender(
        "langgraph SqliteSaver, state",
        "langgraph_saver.py",
        "state",
        "langgraph-checkpoint-sqlite==3.1.2",
        "stores the whole list of messages again at every record, as a message graph does; no hash, no protocol",
        limit=500,
    ),
    Contender(
        "langgraph SqliteSaver, writes",
        "langgraph_saver.py",
        "writes",
        "langgraph-checkpoint-sqlite==3.1.2",
        "stores the new message alone as a pending write of one checkpoint, the least it can; no hash, no protocol",
    ),
    Contender(
        "llm LogStore",
        "llm_store.py",
        "",
        "llm==0.36",
        "encodes, hashes with the parent's hash, a row a message and a part, moves the thread's tip; no protocol",
    ),
)


class Missing(Exception):
    """A contestant cannot be had here."""


def environment(needs: str) -> Path:
    """The interpreter of the environment that holds this requirement, made if it is not there. Raises Missing."""
    folder = CACHE / needs.replace("==", "-")
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = folder / "installed"
    if not done.exists():
        print(f"making an environment for {needs} in {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "-qqq", "--disable-pip-version-check", needs]
        if subprocess.run(command, check=False).returncode:
            raise Missing(f"{needs} could not be installed from PyPI")
        done.touch()
    return python


class Running:
    """A contestant's process, as a block: asked for one thing at a time, silent otherwise."""

    def __init__(self, contender: Contender) -> None:
        python = environment(contender.needs) if contender.needs else sys.executable
        command = [str(python), str(HERE / "peers" / contender.script), *([contender.mode] if contender.mode else [])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, do: str, **particulars: Any) -> dict[str, Any]:
        """Ask for one thing; the answer. Raises Missing when the process is gone."""
        assert self._process.stdin  # noqa: S101
        assert self._process.stdout  # noqa: S101
        print(json.dumps({"do": do, **particulars}), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise Missing(f"the contestant ended with exit code {self._process.wait()} when asked to {do}")
        return json.loads(answer)  # type: ignore[no-any-return]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._process.communicate()


def present(*, peers: bool) -> tuple[list[Contender], dict[str, str]]:
    """The contestants that can be had, and why the others cannot. ``peers=False`` leaves out what comes from PyPI."""
    found, absent = [], {}
    for contender in CONTENDERS:
        if contender.needs:
            if not peers:
                absent[contender.name] = "left out of this run"
                continue
            try:
                environment(contender.needs)
            except (Missing, OSError) as error:
                absent[contender.name] = str(error)
                continue
        found.append(contender)
    return found, absent
