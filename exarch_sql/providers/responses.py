"""OpenAI's Responses: a flat list of items, where messages, calls, outputs and reasoning stand side by side.

The items of one reply become one assistant message. A content part that opens a message item carries that item's own
fields under ``"openai": {"message": ...}``, so that the items come back one by one.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from exarch_sql.providers import openai, shapes
from exarch_sql.providers.exchanges import Answer, exchanges
from exarch_sql.providers.keeping import (
    ATTACHMENT_TYPES,
    CHAT,
    RESPONSES,
    Obj,
    apart,
    are_parts,
    captions,
    decoded_text,
    hint,
    is_web,
    keep,
    opaque,
    said,
    tuck,
    tucked_base64,
    untuck,
    unwrapped,
)
from exarch_sql.providers.openai import SPACE
from exarch_sql.text import CallIds, arguments_text, clean_escapes, lawful_name

if TYPE_CHECKING:
    from collections.abc import Sequence

# Items the caller runs, so that an output is owed: where each says what is asked, and where its output answers.
CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "computer_call": "action",
    "apply_patch_call": "operation",
    "tool_search_call": "arguments",
}
OUTPUTS = {f"{kind}_output": "output" for kind in CALLS} | {"tool_search_output": "tools"}
_SPOKEN_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_PICTURE_CALL = "image_generation_call"


# -- in ---------------------------------------------------------------------------------------------------------------


def read(items: Sequence[Obj], place: str) -> list[Obj]:
    """The OpenTelemetry messages of items: one for each run of a reply's items, one per output, one per other message.

    ``place`` is where an item stands, with ``{}`` for its index.
    """
    out: list[Obj] = []
    for voice, run in groupby(enumerate(items), lambda pair: voice_of(pair[1])):
        numbered = [(item, place.format(index)) for index, item in run]
        if voice == "tool":
            out += [read_result(item, path) for item, path in numbered]
        elif voice == "assistant":
            out.append(_read_run(voice, numbered))
        else:
            out += [_read_run(voice, [pair]) for pair in numbered]
    return out


def voice_of(item: Obj) -> str:
    """Whose message an item belongs to: its role's, the tool's for an output of the caller's, else the assistant's."""
    kind = item.get("type", "message")
    if kind == "message" or "role" in item:
        return str(item.get("role", "assistant"))
    if kind in OUTPUTS and isinstance(item.get("call_id"), str):
        return "tool"
    return "user" if kind == "mcp_approval_response" else "assistant"


def _read_run(role: str, numbered: list[tuple[Obj, str]]) -> Obj:
    """One message of a run of items. Hints for the way back stay off where the neutral form brings them back alone."""
    plain: Obj = {"role": role, "parts": [part for item, path in numbered for part in _read_item(item, path)]}
    shapes.check_calls(plain)
    tied = any(part["type"] == "file" for part in plain["parts"])
    if not tied and items_of(plain) == [item for item, _ in numbered]:
        return plain
    parts = [part for item, path in numbered for part in _read_item(item, path, hinted=True)]
    return {"role": role, "provider": RESPONSES, "parts": parts}


def _read_item(item: Obj, path: str, *, hinted: bool = False) -> list[Obj]:
    kind = item.get("type", "message")
    if kind == "message" or "role" in item:
        return _read_message(item, path, hinted=hinted)
    if kind in CALLS and isinstance(item.get("call_id"), str):
        return [_read_call(item, path)]
    if kind == "reasoning":
        return [_read_reasoning(item)]
    if kind == _PICTURE_CALL and isinstance(item.get("result"), str):
        form = item.get("output_format")
        picture = tucked_base64(item["result"], f"image/{form if isinstance(form, str) else 'png'}")
        return [opaque(item | {"result": picture}, SPACE)]
    return [opaque(item, SPACE)]


def _read_message(item: Obj, path: str, *, hinted: bool) -> list[Obj]:
    role, content = shapes.text_at(item, "role", path), item.get("content")
    where = f"{path}.content".lstrip(".")
    fields = {key: value for key, value in item.items() if key not in ("role", "content")}
    if isinstance(content, str):
        part: Obj = {"type": "text", "content": content}
        return [hint(part, SPACE, message=fields, string=True)] if hinted else [part]
    if not isinstance(content, list):
        shapes.refuse(where, f"got {shapes.kind_of(content)}", "text or a list of content parts is wanted there")
    if not content:
        return [opaque({"type": "message"} | item, SPACE)]
    name_of = _assistant_name if role == "assistant" else user_name
    places = [(each, f"{where}[{index}]") for index, each in enumerate(content)]
    parts = [openai.read_block(shapes.typed_at(each, place), place, name_of, inside=True) for each, place in places]
    if hinted:
        hint(parts[0], SPACE, message=fields)
    return parts


def _read_call(item: Obj, path: str) -> Obj:
    kind = item["type"]
    name = (
        shapes.text_at(item, "name", path) if "name" in item or kind in ("function_call", "custom_tool_call") else None
    )
    part: Obj = {"type": "tool_call", "id": shapes.id_at(item, "call_id", path), "name": name or kind[:-5]}
    spent = {"type", "call_id"} | ({"name"} if name else set())
    if CALLS[kind] in item:
        spent.add(CALLS[kind])
        part["arguments"] = item[CALLS[kind]]
    keep(part, item, spent, SPACE)
    return part if kind == "function_call" else hint(part, SPACE, type=kind)


def _read_reasoning(item: Obj) -> Obj:
    """Reasoning by its summary, or its own text where there is no summary. A summary of one text is not kept twice."""
    summary = [each.get("text") for each in _objects(item.get("summary"))]
    texts = [text for text in summary or [each.get("text") for each in _objects(item.get("content"))] if text]
    part: Obj = {"type": "reasoning", "content": "\n\n".join(map(str, texts))}
    once = item.get("summary") == [{"type": "summary_text", "text": part["content"]}]
    keep(part, item, ("type", "summary") if once else ("type",), SPACE)
    return part if once or "summary" in item else hint(part, SPACE, lacks=["summary"])


def _objects(value: Any) -> list[Obj]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def read_result(item: Obj, path: str) -> Obj:
    """The tool message of one output item."""
    kind = item["type"]
    part: Obj = {"type": "tool_call_response", "id": shapes.id_at(item, "call_id", path)}
    output = item.get(OUTPUTS[kind])
    where = f"{path}.{OUTPUTS[kind]}".lstrip(".")
    if kind not in _SPOKEN_OUTPUTS:
        part["response"] = tuck(output)
    elif isinstance(output, list):
        places = [(each, f"{where}[{index}]") for index, each in enumerate(output)]
        part["response"] = [openai.read_block(shapes.typed_at(each, at), at, user_name) for each, at in places]
    elif isinstance(output, str):
        part["response"] = output
    else:
        shapes.refuse(where, f"got {shapes.kind_of(output)}", "text or a list of content parts is wanted there")
    keep(part, item, ("type", "call_id", OUTPUTS[kind]), SPACE)
    tied = are_parts(part["response"]) and any(each["type"] == "file" for each in part["response"])
    out: Obj = {"role": "tool", "parts": [part]}
    if tied or _output_of(part, own=False, kind="function_call_output") != item:
        hint(part, SPACE, type=kind)
        out["provider"] = RESPONSES
    return out


# -- out: one message -------------------------------------------------------------------------------------------------


def user_name(part: Obj) -> str:
    """The block type a part is written as in anyone's voice but the assistant's, when nothing says otherwise."""
    if part["type"] == "text":
        return "input_text"
    if part["modality"] == "image":
        return "input_image"
    return "input_audio" if part["type"] == "blob" and part["modality"] == "audio" else "input_file"


def _assistant_name(part: Obj) -> str:
    return "output_text" if part["type"] == "text" else user_name(part)


def items_of(message: Obj) -> list[Obj]:
    """The items of one message, before anything the API would refuse is put right."""
    own = message.get("provider") == RESPONSES
    return _own_items(message) if own else _foreign_items(message)


def _own_items(message: Obj) -> list[Obj]:
    items: list[Obj] = []
    blocks: list[Obj] | None = None  # of the message item that the next content part still belongs to
    for part in message["parts"]:
        spaced = apart(part, SPACE)[1]
        if part["type"] == "text" or part["type"] in ATTACHMENT_TYPES or spaced.get("inside"):
            if blocks is None or "message" in spaced:
                blocks = []
                content = part["content"] if spaced.get("string") else blocks
                items.append(
                    {"role": message["role"], "content": content, **spaced.get("message", {"type": "message"})}
                )
            blocks.append(_own_block(part, message["role"]))
        else:
            blocks = None
            items.append(_own_item(part))
    return items


def _own_item(part: Obj) -> Obj:
    if part["type"] == "tool_call":
        return _own_call(part)
    return _own_reasoning(part) if part["type"] == "reasoning" else unwrapped(part, SPACE)


def _own_block(part: Obj, role: str) -> Obj:
    flat, spaced = apart(part, SPACE)
    for key in ("message", "string"):
        spaced.pop(key, None)
    if spaced.get("inside"):
        return unwrapped({**part, SPACE: spaced}, SPACE)
    kind = spaced.pop("type", None) or (_assistant_name if role == "assistant" else user_name)(part)
    return {"type": kind, **_block_fields(part, kind, flat, spaced), **flat, **spaced}


def _block_fields(part: Obj, kind: str, flat: Obj, spaced: Obj) -> Obj:  # noqa: PLR0911 -- a case a line
    """The field that holds a part's matter, by the block type it is written as; takes its hints out of the rest."""
    if part["type"] == "text":
        return {"refusal" if kind == "refusal" else "text": part["content"]}
    if kind == "input_audio":
        nested = {"data": part["content"], "format": openai.audio_format(part)}
        return {kind: nested | spaced.pop(kind, {})}
    if kind == "image_url":
        url = openai.uri_of(part)
        if spaced.pop("bare", False):
            return {kind: url}
        detail = {"detail": flat.pop("detail")} if "detail" in flat else {}
        return {kind: {"url": url, **detail, **spaced.pop(kind, {})}}
    if kind == "file":
        nested = {"file_id": part["file_id"]} if part["type"] == "file" else {"file_data": openai.uri_of(part)}
        filename = {"filename": flat.pop("filename")} if "filename" in flat else {}
        return {kind: nested | filename | spaced.pop(kind, {})}
    if part["type"] == "file":
        return {"file_id": part["file_id"]}
    if kind == "input_image":
        return {"image_url": openai.uri_of(part)}
    return {"file_url" if part["type"] == "uri" else "file_data": openai.uri_of(part)}


def _own_call(part: Obj) -> Obj:
    flat, spaced = apart(part, SPACE)
    kind = spaced.pop("type", "function_call")
    item = {"type": kind, "call_id": part["id"]}
    if "name" not in spaced and (kind in ("function_call", "custom_tool_call") or part["name"] != kind[:-5]):
        item["name"] = part["name"]
    if "arguments" in part:
        item[CALLS.get(kind, "arguments")] = part["arguments"]
    return item | flat | spaced


def _own_reasoning(part: Obj) -> Obj:
    flat, spaced = apart(part, SPACE)
    lacks = spaced.pop("lacks", ())
    item: Obj = {"type": "reasoning"}
    if "summary" not in flat and "summary" not in lacks:
        item["summary"] = [{"type": "summary_text", "text": part["content"]}]
    return item | flat | spaced


def _foreign_items(message: Obj) -> list[Obj]:
    """Another's message: the assistant's words one item each, as plain text; anyone else's in one message."""
    provider, role = message.get("provider"), message["role"]
    role = role if role in ("user", "assistant", "system", "developer") else "user"
    shows, ids = role == "user", provider in (None, CHAT)
    items: list[Obj] = []
    blocks: list[Obj] = []
    if isinstance(message.get("name"), str):
        blocks.append(_text(f"[{message['name']}]"))
    for part in message["parts"]:
        if part["type"] == "tool_call":
            items += [*_spoken(role, blocks), _foreign_call(part)]
            blocks = []
        else:
            blocks += _foreign_blocks(part, shows=shows, ids=ids)
    return [*items, *_spoken(role, blocks)]


def _spoken(role: str, blocks: list[Obj]) -> list[Obj]:
    if role == "assistant":
        return [{"role": role, "content": block["text"]} for block in blocks]
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return [{"role": role, "content": blocks[0]["text"]}]
    return [{"role": role, "content": blocks}] if blocks else []


def _foreign_call(part: Obj) -> Obj:
    name = lawful_name(part["name"], 128)
    return {
        "type": "function_call",
        "call_id": part["id"],
        "name": name,
        "arguments": arguments_text(part.get("arguments")),
    }


def _foreign_blocks(part: Obj, *, shows: bool, ids: bool) -> list[Obj]:
    if part["type"] == "text":
        return [_text(part["content"])]
    if part["type"] in ATTACHMENT_TYPES:
        block = _shown(part, ids=ids) if shows else None
        return [*map(_text, captions(part)), *([block] if block else _texts(said(part)))]
    return _texts(said(part))


def _shown(part: Obj, *, ids: bool) -> Obj | None:
    """The block Responses shows an attachment of another origin in; None when it has none."""
    text = decoded_text(part)
    if text is not None:
        return _text(text)
    kind = user_name(part)
    if kind == "input_image" and (part["type"] == "blob" or is_web(part) or (part["type"] == "file" and ids)):
        detail = {"detail": part["detail"]} if isinstance(part.get("detail"), str) else {}
        return {"type": kind, **_block_fields(part, kind, {}, {}), **detail}
    if kind != "input_file":
        return None
    if part["type"] == "blob" and part.get("mime_type") == "application/pdf":
        name = part.get("filename") or part.get("title") or "document.pdf"
        return {"type": kind, "filename": name, "file_data": openai.uri_of(part)}
    if part["modality"] == "document" and (is_web(part) or (part["type"] == "file" and ids)):
        return {"type": kind, **_block_fields(part, kind, {}, {})}
    return None


def _output_of(part: Obj, *, own: bool, kind: str, ids: bool = True) -> Obj:
    """One output item, of the type its call asks for."""
    response = part["response"]
    key = OUTPUTS[kind]
    item = {"type": kind, "call_id": part["id"]}
    if own:
        flat, spaced = apart(part, SPACE)
        spaced.pop("type", None)
        spoken = kind in _SPOKEN_OUTPUTS and isinstance(response, list)
        item[key] = [_own_result_block(each) for each in response] if spoken else untuck(response)
        return item | flat | spaced
    mark = openai.marked_error(part)
    if not are_parts(response):
        bare = kind not in _SPOKEN_OUTPUTS and not isinstance(response, str | None)
        return item | {key: response if bare else mark + openai.result_text(response)}
    blocks = [block for each in response for block in _foreign_blocks(each, shows=True, ids=ids)]
    return item | {key: [*_texts(mark.rstrip()), *blocks]}


def _own_result_block(part: Obj) -> Obj:
    known = part["type"] == "text" or part["type"] in ATTACHMENT_TYPES
    return _own_block(part, "user") if known else unwrapped(part, SPACE)


def _text(text: str) -> Obj:
    return {"type": "input_text", "text": text}


def _texts(text: str) -> list[Obj]:
    return [_text(text)] if text else []


# -- out: the array ---------------------------------------------------------------------------------------------------


def render(messages: Sequence[Obj]) -> list[Obj]:
    """The ``input`` array. Raises Refused when calls and results do not pair (see ``exchanges``).

    - Items stand in their order; each output follows the reply with its call, paired by ``call_id``, and is of the type
      that call asks for.
    - A reply with nothing in it sends no item: the API asks for none.
    - ``arguments`` is JSON text: the very text that came in, where it came from here. Call ids longer than the API's 64
      characters are shortened, with their results'.
    """
    ids = CallIds(alphabet=False, unique=False)
    out: list[Obj] = []
    for exchange in exchanges(messages):
        for reply in exchange.replies:
            sent = {call: ids.take(call) for call in reply.calls}
            out += [_sendable(item, sent) for item in items_of(reply.message)]
            out += [_sendable(_output_for(answer), sent) for answer in reply.answers]
        out += [item for message in exchange.said for item in items_of(message)]
    return out


def _output_for(answer: Answer) -> Obj:
    provider = answer.message.get("provider")
    called = (
        apart(answer.call, SPACE)[1].get("type", "function_call") if answer.caller.get("provider") == RESPONSES else ""
    )
    kind = "tool_search_output" if called == "tool_search_call" else f"{called or 'function_call'}_output"
    own = provider == RESPONSES and apart(answer.part, SPACE)[1].get("type", kind) == kind
    return _output_of(answer.part, own=own, kind=kind, ids=provider in (None, CHAT, RESPONSES))


def _sendable(item: Obj, sent: dict[str, str]) -> Obj:
    """The item with what the API would refuse put right; it is this module's own to change."""
    call_id = item.get("call_id")
    if isinstance(call_id, str) and call_id in sent:
        item["call_id"] = sent[call_id]
    if item.get("type") == "function_call":
        arguments = item.get("arguments")
        item["arguments"] = clean_escapes(arguments) if isinstance(arguments, str) else arguments_text(arguments)
    return item
