"""Anthropic's Messages: content blocks in two voices, and results at the head of the user message after their calls.

What a response carries beside ``role`` and ``content`` (``id``, ``model``, ``stop_reason``, ``usage``) is kept on the
message and not sent again: a request has no place for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exarch_sql.providers import shapes
from exarch_sql.providers.exchanges import Answer, Exchange, exchanges
from exarch_sql.providers.keeping import (
    ANTHROPIC,
    ATTACHMENT_TYPES,
    MESSAGE_KEYS,
    NO_CONTENT,
    Obj,
    are_parts,
    captions,
    decoded_text,
    further,
    hint,
    is_web,
    keep,
    opaque,
    said,
    unwrapped,
)
from exarch_sql.text import CallIds, arguments_object, compact, lawful_name

if TYPE_CHECKING:
    from collections.abc import Sequence

SPACE = "anthropic"
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
MAX_CACHE_MARKS = 4
_THINKING = ("thinking", "redacted_thinking")


# -- in ---------------------------------------------------------------------------------------------------------------


def read(message: Obj) -> list[Obj]:
    """The OpenTelemetry messages of one Anthropic message: one per tool result, then the rest."""
    role, content = message["role"], message.get("content")
    if role not in ("user", "assistant"):
        shapes.refuse("role", f"got {role!r}", 'an Anthropic message is of "user" or "assistant"')
    if isinstance(content, str):
        out = [{"role": role, "parts": [{"type": "text", "content": content}]}]
    elif isinstance(content, list):
        out = _read_blocks(role, content)
    else:
        shapes.refuse("content", f"got {shapes.kind_of(content)}", "text or a list of blocks is wanted there")
    last = keep(out[-1], message, ("role", "content"), SPACE, MESSAGE_KEYS)
    if message.keys() - {"role", "content"}:
        last["provider"] = ANTHROPIC
    return out


def _read_blocks(role: str, content: list[Any]) -> list[Obj]:
    results: list[Obj] = []
    parts: list[Obj] = []
    rest: list[Obj] = []
    for index, each in enumerate(content):
        path = f"content[{index}]"
        block = shapes.typed_at(each, path)
        if block["type"] == "tool_result":
            if role != "user":
                shapes.refuse(path, "a tool result in an assistant message", "results belong in user messages")
            results.append(read_result(block, path))
        else:
            rest.append(block)
            parts.append(read_block(block, role, path))
    if results and not rest:
        return results
    message: Obj = {"role": role, "parts": parts}
    if len(parts) == 1 and _is_plain(rest[0]):
        message["blocks"] = True
    shapes.check_calls(message, "content")
    return [*results, _marked(message, blocks_of(message) == rest)]


def _marked(message: Obj, exact: bool) -> Obj:
    """The message, named as Anthropic's where the neutral form alone would not bring it back. File ids are tied too."""
    if not exact or any(part["type"] == "file" for part in message["parts"]):
        message["provider"] = ANTHROPIC
    return message


def read_result(block: Obj, path: str) -> Obj:
    """The tool message of one ``tool_result`` block; a result without content answers null."""
    part: Obj = {"type": "tool_call_response", "id": shapes.id_at(block, "tool_use_id", path)}
    content = block.get("content")
    if isinstance(content, list):
        places = [(each, f"{path}.content[{index}]") for index, each in enumerate(content)]
        part["response"] = [read_block(shapes.typed_at(each, place), "user", place) for each, place in places]
    elif content is None or isinstance(content, str):
        part["response"] = content
    else:
        shapes.refuse(f"{path}.content", f"got {shapes.kind_of(content)}", "text or a list of blocks is wanted there")
    keep(part, block, ("type", "tool_use_id", "content"), SPACE)
    tied = isinstance(content, list) and any(inner["type"] == "file" for inner in part["response"])
    exact = _result_block(part, own=False) == block and not tied
    return _marked({"role": "tool", "parts": [part]}, exact)


def read_block(block: Obj, role: str, path: str) -> Obj:
    """The part of one content block; a block the form has no part for is kept whole."""
    kind = block["type"]
    if kind == "text":
        return keep({"type": "text", "content": shapes.text_at(block, "text", path)}, block, ("type", "text"), SPACE)
    if kind == "thinking":
        thinking = shapes.text_at(block, "thinking", path)
        return keep({"type": "reasoning", "content": thinking}, block, ("type", "thinking"), SPACE)
    if kind == "redacted_thinking":
        return keep(hint({"type": "reasoning", "content": ""}, SPACE, type=kind), block, ("type",), SPACE)
    if kind == "tool_use":
        if role != "assistant":
            shapes.refuse(path, "a tool call in a user message", "calls belong in assistant messages")
        call_id, name = shapes.id_at(block, "id", path), shapes.text_at(block, "name", path)
        part = {"type": "tool_call", "id": call_id, "name": name, "arguments": block.get("input")}
        return keep(part, block, ("type", "id", "name", "input"), SPACE)
    if kind in ("image", "document"):
        return _read_attachment(block, f"{path}.source")
    return opaque(block, SPACE)


def _read_attachment(block: Obj, path: str) -> Obj:
    source = shapes.typed_at(block.get("source"), path)
    modality = block["type"]
    part: Obj
    if source["type"] == "base64":
        media_type, data = shapes.text_at(source, "media_type", path), shapes.text_at(source, "data", path)
        part, spent = (
            {"type": "blob", "mime_type": media_type, "modality": modality, "content": data},
            "media_type data",
        )
    elif source["type"] == "url":
        part, spent = {"type": "uri", "modality": modality, "uri": shapes.text_at(source, "url", path)}, "url"
    elif source["type"] == "file":
        part, spent = (
            {"type": "file", "modality": modality, "file_id": shapes.text_at(source, "file_id", path)},
            "file_id",
        )
    else:
        return opaque(block, SPACE)
    rest = {key: value for key, value in source.items() if key not in ("type", *spent.split())}
    keep(part, block, ("type", "source"), SPACE)
    return hint(part, SPACE, source=rest) if rest else part


# -- out: one message -------------------------------------------------------------------------------------------------


def blocks_of(message: Obj) -> list[Obj]:
    """The content blocks of one message, before anything the API would refuse is put right.

    Its own messages come back as they were. Others send what Anthropic has a place for, and say the rest as text.
    """
    provider = message.get("provider")
    own = provider == ANTHROPIC
    shows = message["role"] != "assistant"
    blocks: list[Obj] = []
    if not own and isinstance(message.get("name"), str):
        blocks.append(_text(f"[{message['name']}]"))
    for part in message["parts"]:
        blocks += _blocks_of_part(part, own=own, shows=shows, ids=own or provider is None)
    return blocks


def _blocks_of_part(part: Obj, *, own: bool, shows: bool, ids: bool) -> list[Obj]:
    kind = part["type"]
    if kind == "text":
        return [_text(part["content"]) | further(part, SPACE, own=own, allowed=("cache_control", "citations"))]
    if kind == "tool_call":
        block = {"type": "tool_use", "id": part["id"], "name": part["name"]}
        block["input"] = part.get("arguments") if own else arguments_object(part.get("arguments"))
        return [block | further(part, SPACE, own=own, allowed=("cache_control",))]
    if kind == "tool_call_response":
        return [_result_block(part, own=own, ids=ids)]
    if kind == "reasoning":
        return _thinking(part, own=own, tied=not ids)
    if kind in ATTACHMENT_TYPES:
        return _attachment(part, own=own, shows=shows, ids=ids)
    return [unwrapped(part, SPACE)] if own else _texts(said(part))


def _thinking(part: Obj, *, own: bool, tied: bool) -> list[Obj]:
    """Another provider's reasoning is not sent, nor is one without the signature the API asks for."""
    fields = further(part, SPACE, own=own, allowed=("signature",))
    if own and fields.get("type") == "redacted_thinking":
        return [{"type": fields.pop("type")} | fields]
    if own or (not tied and isinstance(fields.get("signature"), str)):
        return [{"type": "thinking", "thinking": part["content"]} | fields]
    return []


def _attachment(part: Obj, *, own: bool, shows: bool, ids: bool) -> list[Obj]:
    if own:
        fields = further(part, SPACE, own=True)
        source = _source(part) | fields.pop("source", {})
        return [{"type": "image" if part["modality"] == "image" else "document", "source": source} | fields]
    kind, source = _taken(part, ids=ids) if shows else (None, {})
    if kind is None:
        return [*map(_text, captions(part)), *_texts(said(part))]
    allowed = ("cache_control", "title", "context", "citations") if kind == "document" else ("cache_control",)
    return [{"type": kind, "source": source} | further(part, SPACE, own=False, allowed=allowed)]


def _taken(part: Obj, *, ids: bool) -> tuple[str | None, Obj]:
    """The block type and source Anthropic takes an attachment in; no type when it takes it in none."""
    if part["type"] == "blob":
        mime = part.get("mime_type")
        if mime in IMAGE_TYPES or mime == "application/pdf":
            return ("image" if mime in IMAGE_TYPES else "document"), _source(part)
        text = decoded_text(part)
        return (None, {}) if text is None else ("document", {"type": "text", "media_type": "text/plain", "data": text})
    if part["modality"] in ("image", "document") and (is_web(part) or (part["type"] == "file" and ids)):
        return part["modality"], _source(part)
    return None, {}


def _source(part: Obj) -> Obj:
    if part["type"] == "blob":
        return {"type": "base64", "media_type": part.get("mime_type"), "data": part["content"]}
    if part["type"] == "uri":
        return {"type": "url", "url": part["uri"]}
    return {"type": "file", "file_id": part["file_id"]}


def _result_block(part: Obj, *, own: bool, ids: bool = True) -> Obj:
    block: Obj = {"type": "tool_result", "tool_use_id": part["id"]}
    response = part["response"]
    if isinstance(response, list) and (own or are_parts(response)):
        block["content"] = [
            inner for each in response for inner in _blocks_of_part(each, own=own, shows=True, ids=own or ids)
        ]
    elif response is not None:
        block["content"] = response if isinstance(response, str) else compact(response)
    fields = further(part, SPACE, own=own, allowed=("is_error", "cache_control"))
    if not own and not isinstance(fields.get("is_error", False), bool):
        del fields["is_error"]
    return block | fields


def _text(text: str) -> Obj:
    return {"type": "text", "text": text}


def _texts(text: str) -> list[Obj]:
    return [_text(text)] if text else []


def _is_plain(block: Obj) -> bool:
    return block.keys() == {"type", "text"} and block["type"] == "text"


# -- out: the array ---------------------------------------------------------------------------------------------------


def render(messages: Sequence[Obj]) -> list[Obj]:
    """The ``messages`` array. Raises Refused when calls and results do not pair (see ``exchanges``).

    - Two voices, strictly in turn: messages of one voice in a row become one. A system or developer message is said in
      the user's voice. The array may open with the assistant's, where the history does.
    - Results come first in the message after their calls, in call order.
    - Blank text blocks are left out. A message left with nothing, a reply that ends in thinking, and an error without
      words get the text ``(no content)``.
    - A call's input is an object (see ``arguments_object``); ids and names are brought within the API's alphabet, and
      an id used twice in the history is made unique, with its result's.
    - Only the newest four ``cache_control`` marks stay; a caller whose system prompt or tools bear marks must leave
      them room.
    """
    ids = CallIds(alphabet=True, unique=True)
    out = [turn for exchange in exchanges(messages) for turn in _turns(exchange, ids)]
    _spare_marks(out)
    return out


def _turns(exchange: Exchange, ids: CallIds) -> list[Obj]:
    replied: list[Obj] = []
    heard: list[Obj] = []
    for reply in exchange.replies:
        sent = {call: ids.take(call) for call in reply.calls}
        replied += [_called(block, sent) for block in _unblank(blocks_of(reply.message))]
        heard += [_answered(answer, sent) for answer in reply.in_call_order()]
    heard += _unblank([block for message in exchange.said for block in blocks_of(message)])
    turns: list[Obj] = []
    if exchange.replies:
        if not replied or replied[-1]["type"] in _THINKING:
            replied.append(_text(NO_CONTENT))
        turns.append({"role": "assistant", "content": _content(replied, [reply.message for reply in exchange.replies])})
    if heard or exchange.said:
        turns.append({"role": "user", "content": _content(heard or [_text(NO_CONTENT)], exchange.said)})
    return turns


def _content(blocks: list[Obj], messages: list[Obj]) -> str | list[Obj]:
    """Text alone, when one message holds nothing else and did not come as blocks."""
    if len(blocks) == len(messages) == 1 and _is_plain(blocks[0]) and not messages[0].get("blocks"):
        return str(blocks[0]["text"])
    return blocks


def _unblank(blocks: list[Obj]) -> list[Obj]:
    return [block for block in blocks if block["type"] != "text" or block["text"].strip()]


def _called(block: Obj, sent: dict[str, str]) -> Obj:
    if block["type"] != "tool_use":
        return block
    named = {"id": sent[block["id"]], "name": lawful_name(block["name"], 128)}
    return block | named | {"input": arguments_object(block["input"])}


def _answered(answer: Answer, sent: dict[str, str]) -> Obj:
    provider = answer.message.get("provider")
    block = _result_block(answer.part, own=provider == ANTHROPIC, ids=provider in (None, ANTHROPIC))
    block["tool_use_id"] = sent[block["tool_use_id"]]
    content = block.get("content")
    if isinstance(content, list):
        content = block["content"] = _unblank(content)
        if not content:
            del block["content"]
    if block.get("is_error") is True and (not content or (isinstance(content, str) and not content.strip())):
        block["content"] = NO_CONTENT
    return block


def _spare_marks(messages: list[Obj]) -> None:
    """Takes the older ``cache_control`` marks off blocks this module made: the API refuses a fifth."""
    left = MAX_CACHE_MARKS
    for message in reversed(messages):
        for block in reversed(message["content"] if isinstance(message["content"], list) else []):
            inner = block.get("content") if block["type"] == "tool_result" else None
            for marked in (block, *reversed(inner if isinstance(inner, list) else [])):
                if marked.get("cache_control") is None:
                    continue
                if left == 0:
                    del marked["cache_control"]
                left -= left > 0
