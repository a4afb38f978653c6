"""Messages at rest: how a turn's messages become the exact text of a body and come back, what they weigh, how they are labelled.

A turn record's body is a JSON array of OpenTelemetry GenAI messages, compact, keys in the order given. Two things are stored
otherwise than said: a lone surrogate or a NUL stands as its JSON escape and comes back as the same Python string, and the base64
of a ``blob`` part moves to the ``blobs`` table, leaving ``{"$blob": SHA-256, "bytes": n}`` in its place.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import apsw.unicode
import msgspec

from exarch_sql.errors import BadFile, Refused
from exarch_sql.text import arguments_object, sanitise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from exarch_sql.answers import Message

LABEL_POINTS = 50  # code points of a label, at most
MAX_BODY_BYTES = 256 * 1024 * 1024
MAX_DEPTH = 200  # nesting of a body; SQLite's own JSON reader stops at 1,000
HOLE = "$blob"

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE = re.compile("[\ud800-\udfff]")
_decode = msgspec.json.Decoder().decode
_plain = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _made_once() -> Callable[[Any], str]:
    """The encoder of `_plain`, which `JSONEncoder.encode` would make anew on each call (a third of its time on 1 KB)."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # a Python without the accelerator
        return _plain.encode
    quote = json.encoder.encode_basestring
    chunks = make(None, _plain.default, quote, None, ":", ",", False, False, False)
    return lambda value: quote(value) if isinstance(value, str) else "".join(chunks(value, 0))


_dump = _made_once()


class Encoded(msgspec.Struct, frozen=True):
    """Messages as stored: what will come back, the body's text and UTF-8 bytes, the weight, the blobs that moved out."""

    said: Sequence[Message]
    body: str
    data: bytes
    weight: int
    blobs: tuple[bytes, ...] = ()


def _spelled(value: Any) -> tuple[str, bool]:
    """Compact JSON text that UTF-8 can hold, and whether halves of a surrogate pair in it were joined."""
    try:
        text = _dump(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(
            f"the message is not JSON: {error}; give text, numbers, true, false, null, lists and objects"
        ) from error
    try:
        text.encode()  # far faster than looking: only half a surrogate pair makes it fail
    except UnicodeEncodeError:
        pass
    else:
        return text, False
    text, joined = _PAIR.subn(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _LONE.sub(lambda lone: f"\\u{ord(lone[0]):04x}", text), joined > 0


def dumps(value: Any) -> str:
    """Compact JSON text that UTF-8 can hold: lone surrogates as escapes, a split pair as the character it spells."""
    return _spelled(value)[0]


def loads(text: str) -> Any:
    """The value of a body's text. Falls back on the slower reader for what the fast one will not take (lone surrogates)."""
    try:
        return _decode(text)
    except msgspec.DecodeError:
        return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def encode(messages: Sequence[Message]) -> Encoded:
    """The body that holds these messages. Raises Refused for what is not JSON, too deep or too large."""
    body, joined = _spelled(messages)
    data = body.encode()
    if len(data) > MAX_BODY_BYTES:
        raise Refused(
            f"the messages are {len(data)} bytes; one record holds at most {MAX_BODY_BYTES}: split them over several turns"
        )
    if len(body) > 2 * MAX_DEPTH and body.count("[") + body.count("{") > MAX_DEPTH and _depth(messages) > MAX_DEPTH:
        raise Refused(f"the messages nest deeper than {MAX_DEPTH} levels: send the inner part as text")
    if joined:
        messages = loads(body)  # two halves that spell a character are that character from here on
    weight = weigh(messages, body, len(data))
    if '"blob"' not in body:
        return Encoded(messages, body, data, weight)
    blobs: dict[str, bytes] = {}
    lean = _without_blobs(messages, blobs)
    if not blobs:
        return Encoded(messages, body, data, weight)
    body = dumps(lean)
    return Encoded(messages, body, body.encode(), weight, tuple(blobs.values()))


def weigh(messages: Sequence[Message], body: str | None = None, size: int | None = None) -> int:
    """UTF-8 bytes of each message as compact JSON, summed, with blobs in place and as a provider would be sent it.

    ``body`` and its ``size`` spare the encoding where the messages were encoded already.
    """
    if body is None:
        body = dumps(messages)
    if "\\" in body and "\\u" in body:  # one character is found far faster than two
        body = dumps(sanitise(messages))
        size = None
    return (len(body.encode()) if size is None else size) - len(messages) - 1  # without the brackets and the commas


def decode(body: str, blob: Callable[[bytes], bytes]) -> list[Message]:
    """The messages of a body; ``blob(hash)`` gives the raw bytes behind a hole. Raises BadFile when the body holds none."""
    messages = loads(body)
    if not isinstance(messages, list):
        raise BadFile("a turn's body is not a list of messages: run verify")
    return _with_blobs(messages, blob) if f'"{HOLE}"' in body else messages


def holes(messages: Any) -> Iterator[str]:
    """The hashes (hexadecimal) of the blobs that a stored body names, in order."""
    if isinstance(messages, list):
        for item in messages:
            yield from holes(item)
    elif isinstance(messages, dict):
        content = messages.get("content")
        if messages.get("type") == "blob" and isinstance(content, dict) and HOLE in content:
            yield content[HOLE]
        for value in messages.values():
            yield from holes(value)


def is_text(value: object) -> bool:
    """Whether the value is text that a column can hold: UTF-8, without NUL."""
    return isinstance(value, str) and "\0" not in value and (value.isascii() or not _LONE.search(value))


def _depth(value: Any) -> int:
    """How deep lists and objects nest."""
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            inner
            for item in level
            if isinstance(item, (list, tuple, dict))
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return depth - 1


def _without_blobs(value: Any, blobs: dict[str, bytes]) -> Any:
    """The value with every blob part's base64 replaced by its hole; the raw bytes go to ``blobs`` by hash.

    Base64 that is not in its one canonical spelling stays where it is: it must come back byte for byte.
    """
    if isinstance(value, (list, tuple)):
        return [_without_blobs(item, blobs) for item in value]
    if not isinstance(value, dict):
        return value
    content = value.get("content")
    if value.get("type") == "blob" and isinstance(content, dict) and HOLE in content:
        raise Refused(f'the content of a blob part is base64 text, not an object with "{HOLE}"')
    lean = {key: _without_blobs(item, blobs) for key, item in value.items()}
    if value.get("type") == "blob" and isinstance(content, str):
        try:
            raw = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            return lean
        if base64.b64encode(raw).decode() == content:
            name = sha256(raw).hexdigest()
            blobs[name] = raw
            lean["content"] = {HOLE: name, "bytes": len(raw)}
    return lean


def _with_blobs(value: Any, blob: Callable[[bytes], bytes]) -> Any:
    """The stored value with every hole filled again."""
    if isinstance(value, list):
        return [_with_blobs(item, blob) for item in value]
    if not isinstance(value, dict):
        return value
    content = value.get("content")
    if value.get("type") == "blob" and isinstance(content, dict) and HOLE in content:
        return {**value, "content": base64.b64encode(blob(bytes.fromhex(content[HOLE]))).decode()}
    return {key: _with_blobs(item, blob) for key, item in value.items()}


def lines(text: str) -> list[str]:
    """The lines of a text: cut at LF, one CR before it dropped, no empty line after a final LF."""
    parts = text.split("\n")
    if parts[-1] == "":
        parts.pop()
    return [part.removesuffix("\r") for part in parts]


def label(messages: Sequence[Message], *, of_reply: bool) -> str:
    """A turn's label: the first line of its first text, at most 50 code points, no grapheme cut in two.

    A reply whose first line is empty is labelled by its first call's ``description`` argument, if it has one.
    """
    for message in messages:
        parts = message["parts"]
        text = next((part["content"] for part in parts if part.get("type") == "text"), "")
        if first := first_line(text):
            return first
        if of_reply:
            call: Message = next((part for part in parts if part.get("type") == "tool_call"), {})
            description = arguments_object(call.get("arguments")).get("description")
            return first_line(description) if isinstance(description, str) else ""
    return ""


def first_line(text: Any) -> str:
    """The first line of a text, sanitised and cut to the length of a label."""
    if not isinstance(text, str) or not text:
        return ""
    head = sanitise(text[: 8 * LABEL_POINTS].splitlines()[0])
    if len(head) <= LABEL_POINTS:
        return head
    if head.isascii():
        return head[:LABEL_POINTS]
    end = 0
    while (following := apsw.unicode.grapheme_next_break(head, end)) <= LABEL_POINTS:
        end = following
    return head[:end]


def call_ids(messages: Sequence[Message], type_: str) -> list[str]:
    """The ids of the parts of this type (``tool_call`` or ``tool_call_response``), in order."""
    return [part["id"] for message in messages for part in message["parts"] if part.get("type") == type_]


def program_source(call: Message) -> str:
    """What a tool call runs or writes, as text: ``cmd`` of a ``ral`` call, else every text among its arguments, one a line."""
    arguments = arguments_object(call.get("arguments"))
    if call.get("name") == "ral" and isinstance(arguments.get("cmd"), str):
        return str(arguments["cmd"])
    return "\n".join(_texts(arguments))


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def response_text(response: Any) -> str:
    """What a tool answered, as text: itself, or the texts of its parts one a line, or its JSON."""
    if isinstance(response, str):
        return response
    if isinstance(response, list):
        texts = [
            part if isinstance(part, str) else part.get("content", part.get("text"))
            for part in response
            if isinstance(part, (str, dict))
        ]
        return "\n".join(text for text in texts if isinstance(text, str))
    return "" if response is None else dumps(response)


def searched_text(message: Message) -> str:
    """The text of a message that ``grep`` searches: its texts, reasoning, results and programs, empties dropped, by LF."""
    texts = []
    for part in message["parts"]:
        match part.get("type"):
            case "text" | "reasoning":
                text = part.get("content")
            case "tool_call_response":
                text = response_text(part.get("response"))
            case "tool_call":
                text = program_source(part)
            case _:
                text = None
        if isinstance(text, str) and text:
            texts.append(text)
    return "\n".join(texts)
