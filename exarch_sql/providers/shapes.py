"""Telling the shapes apart, and what any of them must hold: whatever passes here can be recorded and rendered.

Nothing is guessed. A message with marks of two providers, or of none, is refused by name.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

from exarch_sql.errors import Refused
from exarch_sql.providers.keeping import ANTHROPIC, CHAT, PART_KEYS, RESPONSES, Obj

OTEL, COMMON = "otel", "common"

TAKEN = (
    'text; an OpenTelemetry message {"role", "parts"}; an Anthropic or OpenAI chat message {"role", "content"}; '
    'an OpenAI Responses item {"type", ...} or a list of them'
)
ROLES = ("user", "assistant", "tool", "system", "developer")
MAX_DEPTH = 200

_CHAT_KEYS = ("tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content", "audio", "annotations")
_ANTHROPIC_KEYS = ("stop_reason", "stop_sequence", "container", "context_management")
_CHAT_BLOCKS = ("image_url", "file", "video_url")
_ANTHROPIC_BLOCKS = (
    *("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "search_result"),
    *("server_tool_use", "mcp_tool_use", "container_upload", "tool_reference"),
)
_RESPONSES_BLOCKS = ("input_text", "output_text", "input_image", "input_file", "summary_text", "reasoning_text")
_RESPONSES_ITEMS = ("message", "reasoning", "compaction", "item_reference", "additional_tools", "program")
_RESPONSES_ENDINGS = ("_call", "_output", "_list_tools", "_approval_request", "_approval_response")


def refuse(where: str, got: str, fix: str) -> NoReturn:
    """Refuses a message by the place in it, what stands there, and what would be taken."""
    raise Refused(f"cannot take this message: {where}: {got}; {fix}")


def kind_of(value: object) -> str:
    """What a JSON value is, in words for a refusal; never the value itself."""
    if isinstance(value, dict):
        return f"an object with the keys {', '.join(map(repr, list(value)[:8]))}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    return "text" if isinstance(value, str) else f"a {type(value).__name__}"


def text_at(obj: Obj, key: str, path: str) -> str:
    """The text under a key. Raises Refused when it is missing or no text."""
    value = obj.get(key)
    if not isinstance(value, str):
        got = f"got {kind_of(value)}" if key in obj else "it is missing"
        refuse(f"{path}.{key}".lstrip("."), got, "text is wanted there")
    return value


def id_at(obj: Obj, key: str, path: str) -> str:
    """The id of a call under a key. Raises Refused when there is none: a result could not name the call."""
    value = obj.get(key)
    if not isinstance(value, str) or not value:
        got = "it is empty" if value == "" else f"got {kind_of(value)}" if key in obj else "it is missing"
        refuse(f"{path}.{key}".lstrip("."), got, "a call needs an id, for a result to name it")
    return value


def object_at(value: object, path: str) -> Obj:
    """The value, when it is an object."""
    if not isinstance(value, dict):
        refuse(path, f"got {kind_of(value)}", "an object is wanted there")
    return value


def typed_at(value: object, path: str) -> Obj:
    """The value, when it is an object whose ``type`` is text."""
    obj = object_at(value, path)
    text_at(obj, "type", path)
    return obj


# -- JSON -------------------------------------------------------------------------------------------------------------


def require_json(value: object) -> None:
    """Refuses by place what JSON cannot hold (bytes, NaN, keys that are no text), and past 200 deep."""
    if fault := _fault(value, 0):
        place, _, what = fault.partition(": ")
        refuse(place.lstrip(".") or "message", what, "give plain JSON values (an SDK object has model_dump())")


def _fault(value: object, depth: int) -> str | None:
    if value is None or isinstance(value, (str, int)):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f": {value} is not JSON"
    if depth >= MAX_DEPTH:
        return f": nested more than {MAX_DEPTH} deep"
    if isinstance(value, dict):
        return _fault_in(value.items(), depth, dotted=True)
    if isinstance(value, list):
        return _fault_in(enumerate(value), depth, dotted=False)
    return f": got a {type(value).__name__}"


def _fault_in(pairs: Any, depth: int, *, dotted: bool) -> str | None:
    for key, item in pairs:
        if dotted and not isinstance(key, str):
            return f": got a key that is {kind_of(key)}"
        if fault := _fault(item, depth + 1):
            return f".{key}{fault}" if dotted else f"[{key}]{fault}"
    return None


# -- OpenTelemetry ----------------------------------------------------------------------------------------------------


def check_otel(message: Obj, path: str = "") -> None:
    """Raises Refused unless the message is of the OpenTelemetry form and its calls and results can be paired."""
    role = text_at(message, "role", path)
    parts = message.get("parts")
    where = f"{path}.parts".lstrip(".")
    if not isinstance(parts, list):
        refuse(where, f"got {kind_of(parts)}", "a list of parts is wanted there")
    if "content" in message:
        refuse(where, "it stands beside a 'content'", 'give either {"role", "parts"} or a provider\'s message')
    for index, part in enumerate(parts):
        _check_part(typed_at(part, f"{where}[{index}]"), role, f"{where}[{index}]")
    check_calls(message, where)


_TEXTS_OF = {
    "text": ("content",),
    "reasoning": ("content",),
    "blob": ("modality", "content"),
    "uri": ("modality", "uri"),
    "file": ("modality", "file_id"),
    "tool_call": ("name",),
}


def _check_part(part: Obj, role: str, path: str) -> None:
    kind = part["type"]
    for key in _TEXTS_OF.get(kind, ()):
        text_at(part, key, path)
    if kind in ("blob", "uri", "file") and not isinstance(part.get("mime_type"), str | None):
        refuse(f"{path}.mime_type", f"got {kind_of(part['mime_type'])}", "text or null is wanted there")
    if kind == "tool_call":
        id_at(part, "id", path)
        if role != "assistant":
            refuse(path, f"a tool call in a {role} message", "calls belong in assistant messages")
    if kind == "tool_call_response":
        id_at(part, "id", path)
        if "response" not in part:
            refuse(f"{path}.response", "it is missing", 'give the result\'s value, "" if there is none')
        if role != "tool":
            refuse(path, f"a tool result in a {role} message", 'results belong in messages of role "tool"')


def check_calls(message: Obj, where: str = "") -> None:
    """Raises Refused when two calls of one message have the same id."""
    seen: set[str] = set()
    for part in message["parts"]:
        if part["type"] == "tool_call":
            if part["id"] in seen:
                refuse(where or "message", f"two calls have the id {part['id']!r}", "every call needs an id of its own")
            seen.add(part["id"])


# -- which shape it is ------------------------------------------------------------------------------------------------


def shape_of(message: Obj, path: str = "", *, among_items: bool = False) -> str:
    """``"otel"``, a provider's format, or ``"common"`` when it reads the same to Anthropic and to OpenAI chat.

    Among the items of a list, a message without marks is an item like the others. Blocks of a kind, or with fields,
    that no provider is known by are Anthropic's in a user's or assistant's message.

    Raises Refused when it is none of them, or bears the marks of two.
    """
    place = path or "message"
    if "parts" in message:
        return OTEL
    if "choices" in message:
        refuse(place, "got a whole chat completion", "give its message: completion['choices'][0]['message']")
    if "output" in message and "object" in message:
        refuse(place, "got a whole Responses object", "give its items: response['output']")
    kind = text_at(message, "type", path) if "type" in message else None
    if kind is not None and "role" not in message:
        return _item_shape(kind, place)
    if not isinstance(message.get("role"), str):
        refuse(place, f"got {kind_of(message)}", f"a message is one of: {TAKEN}")
    marks = _marks(message)
    if len(marks) > 1:
        (one, first), (two, second) = list(marks.items())[:2]
        refuse(place, f"{first} is {one}'s, {second} is {two}'s", "give one provider's message, whole")
    if not marks and among_items:
        return RESPONSES
    return next(iter(marks), None) or _unmarked(message, place)


def _item_shape(kind: str, place: str) -> str:
    if kind in _RESPONSES_ITEMS or kind.endswith(_RESPONSES_ENDINGS):
        return RESPONSES
    if kind in (*PART_KEYS, *_ANTHROPIC_BLOCKS, *_CHAT_BLOCKS, *_RESPONSES_BLOCKS, "refusal", "input_audio"):
        refuse(place, f"got a bare {kind!r} block", 'wrap it: {"role": ..., "content": [block]}')
    refuse(place, f"got an object of type {kind!r} without a role", f"a message is one of: {TAKEN}")


def _marks(message: Obj) -> dict[str, str]:
    """Providers whose marks the message bears, each with the first mark met, as a path."""
    marks: dict[str, str] = {}
    for key in message:
        if key in _CHAT_KEYS:
            marks.setdefault(CHAT, key)
        elif key in _ANTHROPIC_KEYS:
            marks.setdefault(ANTHROPIC, key)
    content = message.get("content")
    for index, block in enumerate(content if isinstance(content, list) else []):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in _ANTHROPIC_BLOCKS or (isinstance(kind, str) and kind.endswith("_tool_result")):
            marks.setdefault(ANTHROPIC, f"content[{index}]")
        elif kind in _CHAT_BLOCKS:
            marks.setdefault(CHAT, f"content[{index}]")
        elif kind in _RESPONSES_BLOCKS:
            marks.setdefault(RESPONSES, f"content[{index}]")
    return marks or _faint_marks(message)


def _faint_marks(message: Obj) -> dict[str, str]:
    """What tells the shape of a message that bears no provider's own mark: only a whole message has these."""
    content = message.get("content")
    kinds = [block.get("type") for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    typed = message.get("type") == "message"
    if message.keys() & {"model", "usage"} and (typed or isinstance(content, list)):
        return {ANTHROPIC: "model"}
    if typed:
        return {ANTHROPIC if "text" in kinds else RESPONSES: "type"}  # Responses says input_text or output_text
    return {}


def _unmarked(message: Obj, place: str) -> str:
    """A message no mark decides: the blocks, the role and the further keys do."""
    content = message.get("content")
    if content is None and "content" in message:
        return CHAT
    if not isinstance(content, (str, list)):
        got = f"got {kind_of(content)}" if "content" in message else "it is missing"
        refuse(f"{place}.content".removeprefix("message."), got, "text or a list of blocks is wanted there")
    if message["role"] in ("tool", "function") or len(message) > 2:
        return CHAT
    plain = True
    for block in content if isinstance(content, list) else []:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in ("refusal", "input_audio"):
            return CHAT
        plain = plain and kind == "text" and block.keys() == {"type", "text"}
    if plain:
        return COMMON
    voiced = message["role"] in ("user", "assistant")
    return ANTHROPIC if voiced else CHAT  # of the two, only Anthropic's blocks have fields and kinds still to come
