"""Tool results in any shape, one tool message each: what a harness has in hand when its tools have run."""

from __future__ import annotations

from typing import Any

from exarch_sql.providers import anthropic, chat, openai, responses, shapes
from exarch_sql.providers.keeping import ANTHROPIC, RESPONSES, Obj, keep

TAKEN = (
    'a result is {"id", "content", ...}, an Anthropic tool_result block, an OpenAI tool message, '
    "a Responses output item, or an OpenTelemetry tool_call_response part or tool message"
)

_ANTHROPIC_ONLY = ("search_result", "tool_reference")


def read_results(results: Any) -> list[Obj]:
    """One tool message per result, in the order given. Raises Refused, with the place, for anything else."""
    if not isinstance(results, list | tuple):
        shapes.refuse("results", f"got {shapes.kind_of(results)}", "a list of results is wanted")
    out: list[Obj] = []
    for index, entry in enumerate(results):
        path = f"results[{index}]"
        shapes.require_json(shapes.object_at(entry, path))
        out += _read_entry(entry, path)
    return out


def _read_entry(entry: Obj, path: str) -> list[Obj]:  # noqa: PLR0911 -- a shape a line
    kind, role = entry.get("type"), entry.get("role")
    if "parts" in entry:
        return _split(entry, path)
    if kind == "tool_call_response":
        message: Obj = {"role": "tool", "parts": [entry]}
        shapes.check_otel(message, path)
        return [message]
    if kind == "tool_result":
        return [anthropic.read_result(entry, path)]
    if role in ("tool", "function"):
        return [chat.read_result(entry, path)]
    if role == "user" and _is_all_results(entry.get("content")):
        return anthropic.read(entry)
    if isinstance(kind, str) and kind in responses.OUTPUTS:
        return [responses.read_result(entry, path)]
    if kind is not None or role is not None or "response" in entry or not {"id", "content"} <= entry.keys():
        shapes.refuse(path, f"got {shapes.kind_of(entry)}", TAKEN)
    return [_read_plain(entry, path)]


def _split(message: Obj, path: str) -> list[Obj]:
    """An OpenTelemetry tool message, as one message per result; unchanged when it holds one."""
    shapes.check_otel(message, path)
    others = [part["type"] for part in message["parts"] if part["type"] != "tool_call_response"]
    if message["role"] != "tool" or others or not message["parts"]:
        got = f"got a {message['role']} message" + (f" with a {others[0]!r} part" if others else "")
        shapes.refuse(path, got, 'a message of role "tool" with tool_call_response parts is wanted')
    if len(message["parts"]) == 1:
        return [message]
    return [message | {"parts": [part]} for part in message["parts"]]


def _is_all_results(content: Any) -> bool:
    return (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(block, dict) and block.get("type") == "tool_result" for block in content)
    )


def _read_plain(entry: Obj, path: str) -> Obj:
    part: Obj = {"type": "tool_call_response", "id": shapes.id_at(entry, "id", path)}
    message: Obj = {"role": "tool", "parts": [part]}
    content = entry["content"]
    if isinstance(content, list) and content and all(map(_is_block, content)):
        part["response"] = [_read_block(block, f"{path}.content[{index}]") for index, block in enumerate(content)]
        pairs = zip(content, part["response"], strict=True)
        tied = [block for block, inner in pairs if inner["type"] == "file" or inner["type"] in _ANTHROPIC_ONLY]
        if tied:
            message["provider"] = RESPONSES if tied[0]["type"].startswith("input_") else ANTHROPIC
    else:
        part["response"] = content
    part |= {key: value for key, value in entry.items() if key not in ("id", "content")}
    return message


def _is_block(block: Any) -> bool:
    """Whether an element of a plain result's list is a provider's (or the Model Context Protocol's) content block."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind in ("text", "input_text"):
        return isinstance(block.get("text"), str) and "content" not in block
    if kind in ("image", "document"):
        return isinstance(block.get("source"), dict) or _is_protocol_media(block)
    if kind == "audio":
        return _is_protocol_media(block)
    return kind in ("image_url", "input_image", "input_audio", "input_file", *_ANTHROPIC_ONLY)


def _is_protocol_media(block: Obj) -> bool:
    return isinstance(block.get("data"), str) and isinstance(block.get("mimeType"), str)


def _read_block(block: Obj, path: str) -> Obj:
    kind = block["type"]
    if _is_protocol_media(block):
        part: Obj = {"type": "blob", "mime_type": block["mimeType"], "modality": kind, "content": block["data"]}
        return keep(part, block, ("type", "data", "mimeType"), ANTHROPIC)
    if kind in ("text", "image", "document", *_ANTHROPIC_ONLY):
        return anthropic.read_block(block, "user", path)
    return openai.read_block(block, path, responses.user_name)
