"""The session that ``demo`` runs on: one transcript in the line shapes of Claude Code, made by hand for this package.

An agent fixes a made-up library, ``rangekit``, whose ranges lose their end when they go down. The session has what real
ones have: a long opening prompt, parallel calls answered out of order, a suspicion that leads nowhere, steering in the
middle of work, a refused call and an interrupt, a resume on the next day, and one damaged line. Tool outputs come from
running the library; nobody's words, code or names are in it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def session_path() -> Path:
    """The transcript, JSONL in UTF-8. Raises FileNotFoundError when the installation is incomplete."""
    path = Path(__file__).with_name("session.jsonl")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not part of this installation: install exarch_sql again")
    return path


def run(say: Callable[[str], object], folder: Path | None = None) -> None:
    """Tell the demo's story into ``say``, a line at a time; its archive is left in ``folder``, by default a new temporary one."""
    from exarch_sql.demo import story  # noqa: PLC0415  (the story needs the whole package; this module needs none of it)

    story.run(say, folder or Path(tempfile.mkdtemp(prefix="exarch-demo-")))
