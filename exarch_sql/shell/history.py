"""The lines a prompt remembers: a file in the user's state folder that nobody else can read, or memory where there can be none."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KEPT_BYTES = 1_000_000  # of the file: when it is larger, the newest half of this is kept
_ENTRY = b"\n# "  # what prompt_toolkit begins an entry with


def place(environment: Mapping[str, str]) -> Path:
    """Where it lies by the XDG base directory specification, which takes absolute paths only."""
    state = environment.get("XDG_STATE_HOME", "")
    folder = Path(state) if os.path.isabs(state) else Path(environment.get("HOME") or Path.home()) / ".local" / "state"
    return folder / "exarch-sql" / "history"


def opened(path: Path, talk: Callable[[str], None]) -> History:
    """The history at a path, made or made private first; one in memory, and a word about it, where that cannot be."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _prepare(path)
    except OSError as error:
        talk(f"lines are not remembered: {path}: {error.strerror or error}")
        return InMemoryHistory()
    return PrivateHistory(str(path))


class PrivateHistory(FileHistory):
    """A history whose file may become unwritable while it is used: then new lines last as long as the process."""

    def store_string(self, string: str) -> None:
        """Add a line to the file, if it can be."""
        with contextlib.suppress(OSError, UnicodeError):
            super().store_string(string)


def _prepare(path: Path) -> None:
    """Make the file, or make it private and not too long. Raises OSError where it is not an ordinary file of ours."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "r+b") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise OSError("not an ordinary file")
        if stat.S_IMODE(about.st_mode) != 0o600:
            os.fchmod(handle, 0o600)
        if about.st_size > KEPT_BYTES:
            file.seek(-KEPT_BYTES // 2, os.SEEK_END)
            tail = file.read()
            start = tail.find(_ENTRY)
            file.seek(0)
            file.write(tail[start:] if start >= 0 else b"")
            file.truncate()
