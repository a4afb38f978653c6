"""What stands in the context where a run left: one user-voice message, a pure function of the residue's record.

The sentence, the note quoted so that it cannot pass for anything else, and the line that reads the run back. Nothing of what
lies under it is ever repeated, so its size is a constant and the note (L9).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from exarch_sql.errors import Refused

if TYPE_CHECKING:
    from exarch_sql.answers import Message, Span

NOTE_BYTES = 240
MAX_TEXT_BYTES = 400  # of everything but the quoted note
LINE_BREAKS = "\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"

# Characters a terminal or a reader may act on or not show: a fixed list, so that a residue's bytes never depend on the Unicode
# version of the Python that renders it. Not the list of `unseen`, which may grow: what a residue weighs is recorded.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)


def quoted(text: str) -> str:
    r"""The text in double quotes: quotes and backslashes behind a backslash, unseen characters as ``\u{...}``."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _UNSEEN.sub(lambda unseen: f"\\u{{{ord(unseen[0]):x}}}", escaped) + '"'


def check_note(note: object) -> str:
    """The note itself, when it is a lawful one (L9). Raises Refused, naming what is wrong and what a note is."""
    if not isinstance(note, str):
        raise Refused("`note: expected a Str: one line saying what your future self needs to know")
    if not note:
        raise Refused("`note: text must not be empty: say the one thing your future self needs to know")
    try:
        size = len(note.encode())
    except UnicodeEncodeError:
        raise Refused("`note: text holds half a surrogate pair, which is no character: leave it out") from None
    if size > NOTE_BYTES:
        raise Refused(
            f"`note: text is {size} bytes; the residue keeps one short line: {NOTE_BYTES} at most. "
            "What is the one thing your future self needs to know?"
        )
    if any(break_ in note for break_ in LINE_BREAKS):
        raise Refused("`note: text must be a single line: put it on one line, and leave the rest to the transcript")
    if "\0" in note:
        raise Refused("`note: text holds a NUL: leave it out")
    return note


def text(span: Span, note: str | None, author: str, *, redacted: bool = False) -> str:
    """The residue as the model reads it."""
    subject = str(span)
    verb = "has" if span.from_ == span.to else "have"
    it = "it" if span.from_ == span.to else "them"
    if author == "harness":
        sentence = f"[{subject.capitalize()} {verb} left your context in a forced eviction, without a note."
    elif redacted:
        sentence = f"[{subject.capitalize()} {verb} left your context. Your note was redacted."
    else:
        sentence = f"[{subject.capitalize()} {verb} left your context. Your note: {quoted(note or '')}"
    return f"{sentence}\n`exarch-transcript `read [turns: !{{range {span.from_} {span.to + 1}}}]` reads {it} back.]"


def message(span: Span, note: str | None, author: str, *, redacted: bool = False) -> Message:
    """The residue as one OpenTelemetry message in the user's voice."""
    content = text(span, note, author, redacted=redacted)
    return {"role": "user", "parts": [{"type": "text", "content": content}]}
