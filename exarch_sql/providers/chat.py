"""OpenAI's chat messages: text in one field, calls in another, and each result a message of its own.

The fields of an assistant message become parts in one order (reasoning, content, refusal, audio, calls), since chat
itself gives them none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exarch_sql.providers import openai, shapes
from exarch_sql.providers.exchanges import Answer, exchanges
from exarch_sql.providers.keeping import (
    ATTACHMENT_TYPES,
    CHAT,
    MESSAGE_KEYS,
    RESPONSES,
    Obj,
    apart,
    are_parts,
    captions,
    decoded_text,
    hint,
    is_web,
    keep,
    said,
    unwrapped,
)
from exarch_sql.providers.openai import SPACE
from exarch_sql.text import arguments_text, clean_escapes, lawful_name

if TYPE_CHECKING:
    from collections.abc import Sequence

ROLES = ("system", "developer", "user", "assistant")


# -- in ---------------------------------------------------------------------------------------------------------------


def read(message: Obj) -> list[Obj]:
    """The one OpenTelemetry message of a chat message."""
    if message["role"] in ("tool", "function"):
        return [read_result(message, "")]
    spent = {"role"}
    parts = [*_read_reasoning(message, spent), *_read_content(message, spent), *_read_fields(message, spent)]
    if not spent - {"role"} and not isinstance(message.get("audio"), dict):
        shapes.refuse("content", "it is missing", "give its text, or its tool_calls")
    out: Obj = {"role": message["role"], "parts": parts}
    content = message.get("content")
    if isinstance(content, list) and (not content or (len(content) == 1 and content[0].keys() == {"type", "text"})):
        out["blocks"] = True
    keep(out, message, spent, SPACE, MESSAGE_KEYS)
    if "content" not in message:
        hint(out, SPACE, lacks=["content"])
    shapes.check_calls(out)
    if message_of(out) != message or any(part["type"] == "file" for part in parts):
        out["provider"] = CHAT
    return [out]


def _read_reasoning(message: Obj, spent: set[str]) -> list[Obj]:
    if not isinstance(message.get("reasoning_content"), str):
        return []
    spent.add("reasoning_content")
    return [{"type": "reasoning", "content": message["reasoning_content"]}]


def _read_content(message: Obj, spent: set[str]) -> list[Obj]:
    if "content" not in message:
        return []
    spent.add("content")
    content = message["content"]
    if content is None and message["role"] == "assistant":
        return []
    return _content_parts(content, "content")


def _content_parts(content: Any, path: str) -> list[Obj]:
    if isinstance(content, str):
        return [{"type": "text", "content": content}]
    if not isinstance(content, list):
        shapes.refuse(path, f"got {shapes.kind_of(content)}", "text or a list of content parts is wanted there")
    places = [(each, f"{path}[{index}]") for index, each in enumerate(content)]
    return [openai.read_block(shapes.typed_at(each, place), place, name_of) for each, place in places]


def _read_fields(message: Obj, spent: set[str]) -> list[Obj]:
    parts: list[Obj] = []
    if isinstance(message.get("refusal"), str):
        spent.add("refusal")
        parts.append(hint({"type": "text", "content": message["refusal"]}, SPACE, field="refusal"))
    audio = message.get("audio")
    if isinstance(audio, dict) and isinstance(audio.get("data"), str):
        spent.add("audio")
        part = {"type": "blob", "mime_type": None, "modality": "audio", "content": audio["data"]}
        parts.append(hint(keep(part, audio, ("data",), SPACE), SPACE, field="audio"))
    if message.get("function_call") is not None:
        spent.add("function_call")
        call = shapes.object_at(message["function_call"], "function_call")
        name = shapes.id_at(call, "name", "function_call")
        part = {"type": "tool_call", "id": name, "name": name, "arguments": call.get("arguments")}
        parts.append(hint(keep(part, call, ("name", "arguments"), SPACE), SPACE, field="function_call"))
    calls = message.get("tool_calls")
    if calls:
        spent.add("tool_calls")
        if not isinstance(calls, list):
            shapes.refuse("tool_calls", f"got {shapes.kind_of(calls)}", "a list of calls is wanted there")
        parts += [_read_call(call, f"tool_calls[{index}]") for index, call in enumerate(calls)]
    return parts


def _read_call(call: Any, path: str) -> Obj:
    entry = shapes.object_at(call, path)
    kind = entry.get("type", "function")
    if kind not in ("function", "custom"):
        shapes.refuse(f"{path}.type", f"got {kind!r}", '"function" or "custom" is wanted there')
    body = shapes.object_at(entry.get(kind), f"{path}.{kind}")
    said_at = "arguments" if kind == "function" else "input"
    part = {
        "type": "tool_call",
        "id": shapes.id_at(entry, "id", path),
        "name": shapes.text_at(body, "name", f"{path}.{kind}"),
        "arguments": body.get(said_at),
    }
    keep(part, entry, ("id", "type", kind), SPACE)
    rest = {key: value for key, value in body.items() if key not in ("name", said_at)}
    if kind == "custom":
        hint(part, SPACE, type=kind)
    return hint(part, SPACE, **{kind: rest}) if rest else part


def read_result(message: Obj, path: str) -> Obj:
    """The tool message of a chat message of role ``tool``, or of the older role ``function`` (its name is the id)."""
    key = "tool_call_id" if message["role"] == "tool" else "name"
    part: Obj = {"type": "tool_call_response", "id": shapes.id_at(message, key, path)}
    content = message.get("content")
    is_list = isinstance(content, list)
    part["response"] = _content_parts(content, f"{path}.content".lstrip(".")) if is_list else content
    if not is_list and not isinstance(content, str | None):
        shapes.refuse(f"{path}.content".lstrip("."), f"got {shapes.kind_of(content)}", "text or a list is wanted there")
    keep(part, message, ("role", key, "content"), SPACE)
    out: Obj = {"role": "tool", "parts": [part]}
    if _result_of(part, own=False, legacy=key == "name")[0] != message:
        out["provider"] = CHAT
    return out


# -- out: one message -------------------------------------------------------------------------------------------------


def name_of(part: Obj) -> str:
    """The chat block type a part is written as, when nothing says otherwise."""
    if part["type"] == "text":
        return "text"
    if part["modality"] == "image" and part["type"] != "file":
        return "image_url"
    return "input_audio" if part["type"] == "blob" and part["modality"] == "audio" else "file"


def message_of(message: Obj) -> Obj:
    """The chat message of one message, before anything the API would refuse is put right."""
    own = message.get("provider") == CHAT
    flat, spaced = apart(message, SPACE, MESSAGE_KEYS)
    role = message["role"] if own or message["role"] in ROLES else "user"
    out: Obj = {"role": role}
    blocks: list[Obj] = []
    calls: list[Obj] = []
    for part in message["parts"]:
        if own and _field(part):
            out[_field(part)] = _field_of(part)
        elif part["type"] == "tool_call":
            calls.append(_call_of(part, own=own))
        elif part["type"] == "reasoning":
            out |= {"reasoning_content": part["content"]} if own else {}
        else:
            blocks += _blocks_of(part, own=own, provider=message.get("provider"), shows=role == "user")
    lacks = spaced.pop("lacks", ())
    if not (own and "content" in lacks):
        listed = message.get("blocks") is True and message.get("provider") in (None, CHAT)
        out["content"] = _content(blocks, listed=listed)
    if calls:
        out["tool_calls"] = calls
    if own:
        return out | flat | spaced
    return out | (
        {"name": flat["name"]} if message.get("provider") is None and isinstance(flat.get("name"), str) else {}
    )


def _content(blocks: list[Obj], *, listed: bool) -> str | list[Obj] | None:
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} and not listed:
        return str(blocks[0]["text"])
    return blocks if blocks or listed else None


def _field(part: Obj) -> str:
    spaced = part.get(SPACE)
    return str(spaced.get("field", "")) if isinstance(spaced, dict) else ""


def _field_of(part: Obj) -> Any:
    """The value of a message field that was read as a part."""
    flat, spaced = apart(part, SPACE)
    field = spaced.pop("field")
    if field == "refusal":
        return part["content"]
    if field == "function_call":
        return {"name": part["name"], "arguments": part.get("arguments"), **flat, **spaced}
    return {"data": part["content"], **flat, **spaced}


def _call_of(part: Obj, *, own: bool) -> Obj:
    if not own:
        function = {"name": lawful_name(part["name"], 64), "arguments": arguments_text(part.get("arguments"))}
        return {"id": part["id"], "type": "function", "function": function}
    flat, spaced = apart(part, SPACE)
    kind = spaced.pop("type", "function")
    said_at = "arguments" if kind == "function" else "input"
    body = {"name": part["name"], said_at: part.get("arguments"), **spaced.pop(kind, {})}
    return {"id": part["id"], "type": kind, kind: body, **flat, **spaced}


def _blocks_of(part: Obj, *, own: bool, provider: str | None, shows: bool) -> list[Obj]:
    if own:
        return [_own_block(part)]
    if part["type"] == "text":
        return [_text(part["content"])]
    if part["type"] in ATTACHMENT_TYPES:
        block = _shown(part, ids=provider in (None, RESPONSES)) if shows else None
        return [*map(_text, captions(part)), *([block] if block else _texts(said(part)))]
    return _texts(said(part))


def _own_block(part: Obj) -> Obj:
    if part["type"] != "text" and part["type"] not in ATTACHMENT_TYPES:
        return unwrapped(part, SPACE)
    flat, spaced = apart(part, SPACE)
    kind = spaced.pop("type", None) or name_of(part)
    if part["type"] == "text":
        return {"type": kind, ("refusal" if kind == "refusal" else "text"): part["content"], **flat, **spaced}
    if kind == "image_url":
        if spaced.pop("bare", False):
            return {"type": kind, kind: openai.uri_of(part), **flat, **spaced}
        nested = {"url": openai.uri_of(part), **_lifted(flat, "detail")}
    elif kind == "input_audio":
        nested = {"data": part["content"], "format": openai.audio_format(part)}
    elif part["type"] == "file":
        nested = {"file_id": part["file_id"], **_lifted(flat, "filename")}
    else:
        nested = {"file_data": openai.uri_of(part), **_lifted(flat, "filename")}
    return {"type": kind, kind: nested | spaced.pop(kind, {}), **flat, **spaced}


def _lifted(flat: Obj, key: str) -> Obj:
    return {key: flat.pop(key)} if key in flat else {}


def _shown(part: Obj, *, ids: bool) -> Obj | None:
    """The block chat shows an attachment of another origin in, in a user message; None when it has none."""
    text = decoded_text(part)
    if text is not None:
        return _text(text)
    if part["type"] == "file":
        fits = ids and part["modality"] == "document"
        return {"type": "file", "file": {"file_id": part["file_id"]}} if fits else None
    kind = name_of(part)
    if kind == "image_url" and (part["type"] == "blob" or is_web(part)):
        detail = {"detail": part["detail"]} if isinstance(part.get("detail"), str) else {}
        return {"type": kind, kind: {"url": openai.uri_of(part), **detail}}
    if kind == "input_audio" and openai.audio_format(part) in openai.AUDIO_FORMATS:
        return {"type": kind, kind: {"data": part["content"], "format": openai.audio_format(part)}}
    if part["type"] == "blob" and part.get("mime_type") == "application/pdf":
        name = part.get("filename") or part.get("title") or "document.pdf"
        return {"type": "file", "file": {"filename": name, "file_data": openai.uri_of(part)}}
    return None


def _result_of(part: Obj, *, own: bool, legacy: bool, ids: bool = True) -> tuple[Obj, list[Obj]]:
    """A result's message, and what it shows that only a user message may: chat's results hold text alone."""
    out: Obj = {"role": "function", "name": part["id"]} if legacy else {"role": "tool", "tool_call_id": part["id"]}
    response = part["response"]
    if own:
        flat, spaced = apart(part, SPACE)
        out["content"] = [_own_block(each) for each in response] if isinstance(response, list) else response
        return out | flat | spaced, []
    mark = openai.marked_error(part)
    if not are_parts(response):
        return out | {"content": mark + openai.result_text(response)}, []
    blocks = [_text(mark.rstrip())] if mark else []
    carried: list[Obj] = []
    for each in response:
        block = None if each["type"] == "text" else _shown(each, ids=ids)
        blocks += map(_text, captions(each) if each["type"] != "text" else ())
        if block is None or block["type"] == "text":
            blocks.append(block or _text(said(each)))
        else:
            blocks.append(_text("[attachment: shown in the next user message]"))
            carried += [_text(f"[attachment of the result of call {part['id']}]"), block]
    return out | {"content": blocks}, carried


def _text(text: str) -> Obj:
    return {"type": "text", "text": text}


def _texts(text: str) -> list[Obj]:
    return [_text(text)] if text else []


# -- out: the array ---------------------------------------------------------------------------------------------------


def render(messages: Sequence[Obj]) -> list[Obj]:
    """The ``messages`` array. Raises Refused when calls and results do not pair (see ``exchanges``).

    - Results follow the message that made the calls, in the order they arrived; pictures and files in them follow in
      one user message, as chat's results hold text alone.
    - ``content`` is null only beside calls, a refusal or audio; a message with nothing says the empty text.
    - ``arguments`` is JSON text: the very text that came in, where it came from here. A role chat does not know is the
      user's.
    - ``tool_calls`` that are null or empty are left out, and audio is sent as its id alone: a request takes no more.
    """
    out: list[Obj] = []
    for exchange in exchanges(messages):
        for reply in exchange.replies:
            out.append(_sendable(message_of(reply.message)))
            carried: list[Obj] = []
            for answer in reply.answers:
                result, shown = _result_for(answer)
                out.append(result)
                carried += shown
            if carried:
                out.append({"role": "user", "content": carried})
        out += [_sendable(message_of(message)) for message in exchange.said]
    return out


def _result_for(answer: Answer) -> tuple[Obj, list[Obj]]:
    provider = answer.message.get("provider")
    legacy = answer.caller.get("provider") == CHAT and _field(answer.call) == "function_call"
    ids = provider in (None, RESPONSES)
    result, shown = _result_of(answer.part, own=provider == CHAT, legacy=legacy, ids=ids)
    if not result.get("content"):
        result["content"] = ""
    return result, shown


def _sendable(message: Obj) -> Obj:
    """The message with what the API would refuse put right; it is this module's own to change."""
    if not message.get("tool_calls"):
        message.pop("tool_calls", None)
    for call in message.get("tool_calls", ()):
        if call["type"] == "function":
            call["function"]["arguments"] = _sendable_arguments(call["function"]["arguments"])
    if isinstance(message.get("function_call"), dict):
        message["function_call"]["arguments"] = _sendable_arguments(message["function_call"]["arguments"])
    audio = message.get("audio")
    if isinstance(audio, dict) and "id" in audio:
        message["audio"] = {"id": audio["id"]}
    may_be_null = any(message.get(key) for key in ("tool_calls", "function_call", "refusal", "audio"))
    if not message.get("content") and message.get("content") != "" and not (may_be_null and "content" not in message):
        message["content"] = None if may_be_null else ""
    return message


def _sendable_arguments(arguments: object) -> str:
    return clean_escapes(arguments) if isinstance(arguments, str) else arguments_text(arguments)
