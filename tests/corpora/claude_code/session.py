"""Sessions as Claude Code writes them, line by line: one content block a line, every line hanging on the one before.

Made by hand from the format's field list; no line of a real session is in here. ``Session`` is a list of lines that can
be cut anywhere (``session.bytes(upto=n)``), which is how a growing file is made.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Block = dict[str, Any]


def text(words: str) -> Block:
    """A text block."""
    return {"type": "text", "text": words}


def thinking(words: str, signature: str = "c2ln") -> Block:
    """A reasoning block with its signature."""
    return {"type": "thinking", "thinking": words, "signature": signature}


def call(call_id: str, name: str = "Bash", **arguments: Any) -> Block:
    """A tool call block."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {"command": "make test"}}


def result(call_id: str, content: Any = "ok", **extras: Any) -> Block:
    """A tool result block."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **extras}


def encoded(value: dict[str, Any]) -> bytes:
    """A line's bytes: UTF-8, with half surrogates as escapes, as JavaScript writes them."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


class Session:
    """A session being written. ``at`` is the clock in seconds; each line takes one."""

    def __init__(self, session: str = "5e55-0001", *, agent: str | None = None, prefix: str = "u") -> None:
        self.session, self.agent, self.prefix = session, agent, prefix
        self.lines: list[bytes] = []
        self.envelope: dict[str, Any] = {"cwd": "/home/dev/parser", "gitBranch": "main", "version": "2.1.40"}
        self.last: str | None = None
        self.at = 0

    def line(self, type_: str, *, parent: str | None = None, **fields: Any) -> str:
        """Any line with an envelope; its uuid."""
        self.at += 1
        uuid = f"{self.prefix}{len(self.lines) + 1:04}"
        value = {
            "parentUuid": parent if parent is not None else self.last,
            "isSidechain": self.agent is not None,
            "userType": "external",
            **self.envelope,
            "sessionId": self.session,
            **({"agentId": self.agent} if self.agent else {}),
            "type": type_,
            **fields,
            "uuid": uuid,
            "timestamp": f"2026-03-01T10:{self.at // 60:02}:{self.at % 60:02}.000Z",
        }
        self.lines.append(encoded(value))
        self.last = uuid
        return uuid

    def bare(self, type_: str, **fields: Any) -> None:
        """A line without an envelope: snapshots, queue operations, summaries, titles."""
        self.at += 1
        self.lines.append(json.dumps({"type": type_, **fields}).encode())

    def raw(self, data: bytes) -> None:
        """Bytes as they are, as one line."""
        self.lines.append(data)

    def user(self, content: str | list[Block], **fields: Any) -> str:
        """A user line: a prompt, results, or whatever its content says."""
        return self.line("user", message={"role": "user", "content": content}, **fields)

    def results(self, *blocks: Block, **fields: Any) -> None:
        """One line for each result, as the program writes them."""
        for block in blocks:
            self.user([block], toolUseResult={"stdout": "a richer copy"}, **fields)

    def reply(self, id_: str, *blocks: Block, model: str = "claude-opus-4-6", tokens: int = 10) -> None:
        """One response, one line a block, the token count rising as it streams."""
        for n, block in enumerate(blocks, 1):
            message = {
                "model": model,
                "id": id_,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": None,
                "usage": {"input_tokens": 100, "output_tokens": tokens * n},
            }
            self.line("assistant", message=message, requestId=f"req_{id_}")

    def synthetic(self, words: str = "No response requested.", *, error: bool = False) -> None:
        """A reply no model gave."""
        message = {"model": "<synthetic>", "id": f"syn{self.at}", "role": "assistant", "content": [text(words)]}
        self.line("assistant", message=message, isApiErrorMessage=error)

    def interrupt(self, words: str = "[Request interrupted by user]") -> None:
        """The line that says the user broke in."""
        self.user([text(words)])

    def command(self, name: str, output: str | None = None) -> None:
        """A command line, and, for a local one, what it printed."""
        self.user(f"<command-name>/{name}</command-name>\n<command-message>{name}</command-message>")
        if output is not None:
            self.user(f"<local-command-stdout>{output}</local-command-stdout>")

    def queue(self, operation: str, content: str | None = None) -> None:
        """What the input queue did while the agent worked."""
        stamp = f"2026-03-01T10:{self.at // 60:02}:{self.at % 60:02}.500Z"
        extra = {} if content is None else {"content": content}
        self.bare("queue-operation", operation=operation, timestamp=stamp, sessionId=self.session, **extra)

    def compaction(self, words: str = "This session is being continued from a previous conversation.") -> None:
        """A boundary, which hangs on nothing, and the summary line after it."""
        self.line(
            "system", parent="", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 155_000}
        )
        self.user(words, isCompactSummary=True, isVisibleInTranscriptOnly=True)

    def bytes(self, upto: int | None = None, *, ended: bool = True) -> bytes:
        """The file, or its first ``upto`` lines."""
        return b"\n".join(self.lines[:upto]) + (b"\n" if ended else b"")

    def write(self, path: Path, upto: int | None = None, *, ended: bool = True) -> Path:
        """Write the file, or its first ``upto`` lines."""
        path.write_bytes(self.bytes(upto, ended=ended))
        return path
