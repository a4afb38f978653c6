"""What is searched of a record: the text of each of its messages, or the note it left."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

from exarch_sql import messages
from exarch_sql.errors import BadFile
from exarch_sql.text import REPLACEMENT

_decode = msgspec.json.Decoder().decode


class Passage(NamedTuple):
    """One message of a record, as it is searched."""

    seq: int
    turn: int
    role: str
    text: str


def passages(seq: int, turn: int, body: bytes) -> list[Passage]:
    """The messages of a record that have text. Blobs stay where they are: they are never searched.

    A NUL stands as U+FFFD; a lone surrogate becomes one where the text becomes bytes (``patterns``).

    Raises BadFile when the body holds no messages.
    """
    try:
        found = []
        for message in _loads(body):
            text = messages.searched_text(message)
            if text:
                found.append(Passage(seq, turn, message["role"], text.replace("\0", REPLACEMENT)))
        return found
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BadFile(f"record {seq} holds no messages that could be searched ({error!r}): run verify") from error


def indexed_text(seq: int, body: bytes, note: str | None) -> str:
    """What the index is built from: a turn's messages one after the other, or an eviction's note."""
    return note if note is not None else "\n".join(passage.text for passage in passages(seq, 0, body))


def _loads(body: bytes) -> Any:
    """The value of a body. The fast reader does not take lone surrogates, the slower one does."""
    try:
        return _decode(body)
    except msgspec.DecodeError:
        return json.loads(body)
