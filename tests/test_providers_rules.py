"""What each API demands of an array, written down apart from the code that makes the arrays, and tested on bad ones.

``anthropic_faults``, ``chat_faults`` and ``responses_faults`` answer what an API would refuse, as short words. The other
provider tests use them as their judge; here each rule is shown to catch an array that breaks it and nothing else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

LAWFUL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ANTHROPIC_KEYS = {
    "text": {"type", "text", "cache_control", "citations"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "title", "context", "citations", "cache_control"},
}
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def strings(value: Any) -> Iterator[str]:
    """Every string of a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)


def unsendable(value: Any) -> list[str]:
    """Faults of the text itself."""
    return ["unsendable text" for text in strings(value) if re.search("[\x00\ud800-\udfff]", text)]


# -- Anthropic --------------------------------------------------------------------------------------------------------


def anthropic_faults(array: list[Any], *, known_blocks_only: bool = False) -> list[str]:
    """What the Messages API would refuse."""
    faults = unsendable(array)
    seen: set[str] = set()
    owed: list[str] = []
    for index, message in enumerate(array):
        if set(message) != {"role", "content"} or message["role"] not in ("user", "assistant"):
            faults.append("message keys")
            continue
        if index and array[index - 1]["role"] == message["role"]:
            faults.append("roles do not alternate")
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            faults.append("empty content")
        for block in blocks:
            faults += _block_faults(block, message["role"], known_blocks_only)
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        at_head = [block["type"] for block in blocks[: len(results)]] == ["tool_result"] * len(results)
        if results != owed or not at_head:
            faults.append("calls and results do not pair")
        owed = [block["id"] for block in blocks if block["type"] == "tool_use"]
        faults += ["id used twice" for call in owed if call in seen]
        seen.update(owed)
        if message["role"] == "assistant" and blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
            faults.append("ends in thinking")
    marks = sum(text == "cache_control" for text in strings([message["content"] for message in array]))
    return faults + (["too many cache marks"] if marks > 4 else [])


def _block_faults(block: dict[str, Any], role: str, known_only: bool) -> list[str]:
    kind = block["type"]
    faults = ["unknown block"] if known_only and kind not in ANTHROPIC_KEYS else []
    if kind in ANTHROPIC_KEYS and set(block) - ANTHROPIC_KEYS[kind] and known_only:
        faults.append("unknown field")
    if kind == "text" and not block["text"].strip():
        faults.append("blank text")
    if kind in ("image", "document", "tool_result") and role == "assistant":
        faults.append("not in this voice")
    if kind == "image" and block["source"]["type"] == "base64" and block["source"]["media_type"] not in IMAGE_TYPES:
        faults.append("image type")
    if kind == "tool_use":
        lawful = LAWFUL_ID.fullmatch(block["id"]) and re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", block["name"])
        faults += [] if lawful else ["unlawful id or name"]
        faults += [] if isinstance(block["input"], dict) else ["input is no object"]
        faults += [] if role == "assistant" else ["not in this voice"]
    if kind == "tool_result":
        content = block.get("content", "")
        if block.get("is_error") and not content:
            faults.append("error without words")
        if content == []:
            faults.append("empty content")
        for inner in content if isinstance(content, list) else []:
            faults += _block_faults(inner, role, known_only)
    return faults


GOOD_ANTHROPIC = [
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "", "signature": "s"},
            {"type": "tool_use", "id": "a", "name": "f", "input": {}},
            {"type": "tool_use", "id": "b", "name": "f", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "1"},
            {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "2"}]},
            {"type": "text", "text": "more"},
        ],
    },
]
CALL = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "1"}
MARK = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("array", "fault"),
    [
        ([{"role": "system", "content": "x"}], "message keys"),
        ([{"role": "user", "content": "x", "id": "1"}], "message keys"),
        ([{"role": "user", "content": "x"}, {"role": "user", "content": "y"}], "roles do not alternate"),
        ([{"role": "user", "content": []}], "empty content"),
        ([{"role": "user", "content": " "}], "blank text"),
        ([{"role": "assistant", "content": [CALL]}, {"role": "user", "content": "x"}], "calls and results do not pair"),
        ([{"role": "user", "content": [RESULT]}], "calls and results do not pair"),
        (
            [
                {"role": "assistant", "content": [CALL]},
                {"role": "user", "content": [{"type": "text", "text": "x"}, RESULT]},
            ],
            "calls and results do not pair",
        ),
        ([{"role": "assistant", "content": [CALL, CALL | {"id": "a.b"}]}], "unlawful id or name"),
        ([{"role": "assistant", "content": [CALL | {"input": "{}"}]}], "input is no object"),
        ([{"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}], "ends in thinking"),
        ([{"role": "user", "content": [MARK] * 5}], "too many cache marks"),
        ([{"role": "user", "content": "x\0"}], "unsendable text"),
    ],
)
def test_the_anthropic_judge_names_the_rule_an_array_breaks(array: list[Any], fault: str) -> None:
    """Each rule bites on its own."""
    assert anthropic_faults(array) == [fault]


def test_the_anthropic_judge_passes_a_lawful_array() -> None:
    """And none bites on what the API takes."""
    assert anthropic_faults(GOOD_ANTHROPIC, known_blocks_only=True) == []


# -- OpenAI chat ------------------------------------------------------------------------------------------------------

CHAT_KEYS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "audio", "function_call"},
    "tool": {"role", "content", "tool_call_id"},
    "function": {"role", "content", "name"},
}
CHAT_BLOCKS = {
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "system": ("text",),
    "developer": ("text",),
    "tool": ("text",),
}


def chat_faults(array: list[Any], *, known_fields_only: bool = False) -> list[str]:
    """What the Chat Completions API would refuse."""
    faults = unsendable(array)
    owed: set[str] = set()
    for message in array:
        role = message["role"]
        if role not in CHAT_KEYS or (known_fields_only and set(message) - CHAT_KEYS[role]):
            faults.append("message keys")
            continue
        if role == "tool":
            if message["tool_call_id"] not in owed:
                faults.append("result without a call")
            owed.discard(message["tool_call_id"])
        elif owed:
            faults.append("call without a result")
            owed = set()
        faults += _chat_content_faults(message)
        calls = message.get("tool_calls", [])
        if "tool_calls" in message and not calls:
            faults.append("empty tool_calls")
        for call in calls:
            body = call[call["type"]]
            said = body["arguments"] if call["type"] == "function" else body["input"]
            faults += [] if isinstance(said, str) and isinstance(body["name"], str) else ["call shape"]
        owed = owed | {call["id"] for call in calls}
    return faults


def _chat_content_faults(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    if content is None:
        bare = any(message.get(key) for key in ("tool_calls", "function_call", "refusal", "audio"))
        return [] if bare and message["role"] == "assistant" else ["null content"]
    if isinstance(content, str):
        return []
    if not content:
        return ["empty content"]
    allowed = CHAT_BLOCKS.get(message["role"], ("text",))
    return ["block type" for block in content if block["type"] not in allowed]


CHAT_CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT_REPLY = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}


@pytest.mark.parametrize(
    ("array", "fault"),
    [
        ([{"role": "narrator", "content": "x"}], "message keys"),
        ([{"role": "user", "content": "x", "id": "1"}], "message keys"),
        ([{"role": "tool", "tool_call_id": "a", "content": "x"}], "result without a call"),
        ([CHAT_REPLY, {"role": "user", "content": "x"}], "call without a result"),
        ([{"role": "user", "content": None}], "null content"),
        ([{"role": "assistant", "content": None}], "null content"),
        ([{"role": "user", "content": []}], "empty content"),
        ([{"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}], "block type"),
        ([{"role": "assistant", "content": "x", "tool_calls": []}], "empty tool_calls"),
        ([{"role": "assistant", "content": "\udc00"}], "unsendable text"),
    ],
)
def test_the_chat_judge_names_the_rule_an_array_breaks(array: list[Any], fault: str) -> None:
    """Each rule bites on its own."""
    assert chat_faults(array, known_fields_only=True) == [fault]


def test_the_chat_judge_passes_a_lawful_array() -> None:
    """And none bites on what the API takes."""
    array = [{"role": "user", "content": "x"}, CHAT_REPLY, {"role": "tool", "tool_call_id": "a", "content": "1"}]
    assert chat_faults(array, known_fields_only=True) == []


# -- OpenAI Responses -------------------------------------------------------------------------------------------------

OUTPUT_OF = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "computer_call": "computer_call_output",
    "tool_search_call": "tool_search_output",
}
RESPONSES_BLOCKS = {
    "assistant": ("output_text", "refusal"),
    "user": ("input_text", "input_image", "input_file"),
    "system": ("input_text",),
    "developer": ("input_text",),
}


def responses_faults(array: list[Any]) -> list[str]:
    """What the Responses API would refuse."""
    faults = unsendable(array)
    waiting: dict[str, str] = {}
    for item in array:
        kind = item.get("type", "message")
        if kind in OUTPUT_OF.values():
            if waiting.pop(item["call_id"], None) != kind:
                faults.append("output without its call")
        elif kind in OUTPUT_OF and isinstance(item.get("call_id"), str):
            waiting[item["call_id"]] = OUTPUT_OF[kind]
            faults += ["call id too long"] if len(item["call_id"]) > 64 else []
            faults += ["call shape"] if kind == "function_call" and not isinstance(item["arguments"], str) else []
        elif kind == "message":
            if waiting and item["role"] != "assistant":
                faults.append("call without an output")
            content = item["content"]
            allowed = RESPONSES_BLOCKS.get(item["role"], ())
            faults += ["block type" for block in content if isinstance(content, list) and block["type"] not in allowed]
    return faults


FUNCTION_CALL = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}


@pytest.mark.parametrize(
    ("array", "fault"),
    [
        ([{"type": "function_call_output", "call_id": "a", "output": ""}], "output without its call"),
        ([FUNCTION_CALL, {"type": "custom_tool_call_output", "call_id": "a", "output": ""}], "output without its call"),
        ([FUNCTION_CALL, {"role": "user", "content": "x"}], "call without an output"),
        ([FUNCTION_CALL | {"call_id": "a" * 65}], "call id too long"),
        ([FUNCTION_CALL | {"arguments": {}}], "call shape"),
        ([{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}], "block type"),
        ([{"role": "user", "content": "\0"}], "unsendable text"),
    ],
)
def test_the_responses_judge_names_the_rule_an_array_breaks(array: list[Any], fault: str) -> None:
    """Each rule bites on its own."""
    assert responses_faults(array) == [fault]


def test_the_responses_judge_passes_a_lawful_array() -> None:
    """And none bites on what the API takes."""
    output = {"type": "function_call_output", "call_id": "a", "output": "1"}
    assert responses_faults([{"role": "user", "content": "x"}, FUNCTION_CALL, output]) == []
