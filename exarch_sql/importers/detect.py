"""Which program wrote a transcript, told by its content alone: names and labels of such files are often wrong.

The first line that holds a JSON object decides, or, for a file that is one JSON document, the keys it begins with.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exarch_sql.errors import Refused
from exarch_sql.importers.claude_code import FORMAT as CLAUDE_CODE
from exarch_sql.importers.lines import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TAKEN = (CLAUDE_CODE,)
EMPTY = "empty"
SNIFFED_BYTES = 4 * 1024 * 1024  # the first object of a transcript lies within this
_SNIFFED_LINES = 1000
_DOCUMENT_BYTES = 64 * 1024

_Object = dict[str, Any]
_KEY = re.compile(rb'"([A-Za-z_]\w*)"\s*:')
_CLAUDE_TYPES = frozenset(
    (
        "user",
        "assistant",
        "system",
        "summary",
        "progress",
        "attachment",
        "file-history-snapshot",
        "queue-operation",
        "custom-title",
        "ai-title",
        "agent-name",
        "pr-link",
        "last-prompt",
        "permission-mode",
    )
)
_CLAUDE_MARKS = ("sessionId", "uuid", "leafUuid", "messageId")


def _is_claude(line: _Object) -> bool:
    type_ = line.get("type")
    return (
        isinstance(type_, str)
        and type_ in _CLAUDE_TYPES
        and any(isinstance(line.get(mark), str) for mark in _CLAUDE_MARKS)
    )


def _has(*keys: str) -> Callable[[_Object], bool]:
    return lambda found: all(key in found for key in keys)


# Order matters where one form's keys are among another's.
_FORMS: tuple[tuple[str, Callable[[_Object], bool]], ...] = (
    (CLAUDE_CODE, _is_claude),
    (CLAUDE_CODE, _has("parentUuid", "sessionId", "uuid")),
    ("codex", lambda found: _has("timestamp", "type", "payload")(found) or "record_type" in found),
    ("exarch-record", _has("at_unix_ms", "record")),
    ("copilot-cli", _has("type", "data", "id", "parentId")),
    ("gemini-cli", _has("sessionId", "projectHash")),
    ("opencode", _has("info", "messages")),
    ("atif", _has("schema_version", "steps")),
    ("mini-swe-agent", _has("messages", "trajectory_format")),
    ("swe-agent", _has("trajectory", "environment")),
    ("swe-agent", _has("trajectory", "history")),
    ("openhands", _has("instance_id", "history")),
    ("openhands", _has("id", "source", "timestamp", "message")),
    ("pi", lambda found: found.get("type") == "session" and "cwd" in found),
    ("openai-chat", _has("role", "content")),
)


def detect(source: Path | str | bytes) -> str:
    """The format of a file, or of one that begins with these bytes; ``empty`` for one that holds nothing.

    Raises Refused when no known program wrote it, and OSError when it cannot be read.
    """
    head = source if isinstance(source, bytes) else _head(Path(source))
    if head.startswith(b"SQLite format 3\0"):
        raise Refused(f"{_name(source)} is an SQLite database, not a transcript: open it as an archive instead")
    if not head.strip():
        return EMPTY
    for found in _objects(head):
        for name, is_form in _FORMS:
            if is_form(found):
                return name
    raise Refused(f"{_name(source)} is no transcript of a known program: give a session file of {_listed()}")


def refuse_others(name: str, source: Path) -> None:
    """Raise Refused unless transcripts of this format can be imported."""
    if name not in TAKEN and name != EMPTY:
        raise Refused(f"{source} is a {name} transcript, and that format is not imported yet: give one of {_listed()}")


def _objects(head: bytes) -> Iterator[_Object]:
    """What can be told from: the whole objects of the first lines; failing those, the keys a document begins with."""
    for line in head.split(b"\n", _SNIFFED_LINES)[:_SNIFFED_LINES]:
        yield from parse(line).objects
    yield dict.fromkeys(key.decode() for key in _KEY.findall(head[:_DOCUMENT_BYTES]))


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(SNIFFED_BYTES)


def _name(source: Path | str | bytes) -> str:
    return "the input" if isinstance(source, bytes) else str(source)


def _listed() -> str:
    return " or ".join(TAKEN)
