"""Every shape a harness may hold becomes the OpenTelemetry form, whole; what is no message is refused by place."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from exarch_sql.errors import Refused
from exarch_sql.providers import arguments_object, modality_of, render, results_to_otel, to_otel

SCHEMA = Draft202012Validator(
    json.loads((Path(__file__).parent / "corpora" / "otel_messages.schema.json").read_text(encoding="utf-8"))
)
SHARED = Path(__file__).resolve().parents[2] / "shared" / "spec" / "otel-gen-ai-input-messages.json"
PIXEL = "iVBORw0KGgo="


def read(message: Any, role: str) -> list[dict[str, Any]]:
    """``to_otel``, with the form checked and the input shown to be as it was."""
    before = deepcopy(message)
    out = to_otel(message, role)
    assert message == before
    SCHEMA.validate(out)
    return out


def parts(message: Any, role: str) -> list[dict[str, Any]]:
    """The parts of the one message it becomes."""
    (out,) = read(message, role)
    return out["parts"]


# -- text and OpenTelemetry -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["fix the parser", "", "a\ud83d b\0c"])
def test_text_is_one_text_part_whatever_is_in_it(text: str) -> None:
    """L: a lone surrogate or a NUL never makes an append fail."""
    assert read(text, "user") == [{"role": "user", "parts": [{"type": "text", "content": text}]}]


def test_a_message_of_the_form_is_answered_as_it_is_unknown_parts_and_keys_included() -> None:
    """The form allows further properties and part types: they are the caller's."""
    message = {
        "role": "assistant",
        "finish_reason": "stop",
        "parts": [
            {"type": "text", "content": "x", "mood": "fine"},
            {"type": "hologram", "depth": 3},
            {"type": "tool_call", "id": "c", "name": "f"},
        ],
    }
    assert read(message, "assistant")[0] is message


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"role": "user", "parts": "x"}, "parts: got text"),
        ({"role": "user", "parts": [{"text": "x"}]}, "parts[0].type: it is missing"),
        ({"role": "user", "parts": [{"type": "text", "text": "x"}]}, "parts[0].content: it is missing"),
        ({"role": "user", "parts": [], "content": "x"}, "beside a 'content'"),
        ({"role": "assistant", "parts": [{"type": "tool_call", "name": "f"}]}, "parts[0].id: it is missing"),
        (
            {"role": "assistant", "parts": [{"type": "tool_call", "id": None, "name": "f"}]},
            "parts[0].id: got null",
        ),
        (
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": 3}]},
            "parts[0].name: got a number",
        ),
        (
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "f"}] * 2},
            "two calls have the id 'c'",
        ),
        ({"role": "user", "parts": [{"type": "tool_call", "id": "c", "name": "f"}]}, "a tool call in a user message"),
        ({"role": "tool", "parts": [{"type": "tool_call_response", "id": "c"}]}, "parts[0].response: it is missing"),
        (
            {"role": "user", "parts": [{"type": "tool_call_response", "id": "c", "response": ""}]},
            "a tool result in a user message",
        ),
        ({"role": "user", "parts": [{"type": "blob", "modality": "image", "content": 1}]}, "parts[0].content: got a"),
    ],
)
def test_a_message_of_the_form_that_could_not_be_paired_or_read_is_refused(message: Any, place: str) -> None:
    """The refusal names the place, what stands there and what is wanted."""
    role = message["role"]
    with pytest.raises(Refused) as refused:
        to_otel(message, role)
    assert place in str(refused.value)


@pytest.mark.parametrize(
    "forged",
    [
        {
            "role": "tool",
            "provider": "anthropic",
            "parts": [{"type": "tool_call_response", "id": "c", "response": [1]}],
        },
        {
            "role": "user",
            "provider": "openai-responses",
            "parts": [{"type": "text", "content": "x", "openai": {"message": 3}}],
        },
        {
            "role": "assistant",
            "provider": "openai-chat",
            "parts": [{"type": "text", "content": "x", "openai": {"field": "function_call"}}],
        },
    ],
)
def test_a_message_that_claims_a_provider_it_does_not_fit_is_refused(forged: Any) -> None:
    """What cannot be sent back must not lie in wait in a file."""
    take = results_to_otel if forged["role"] == "tool" else to_otel
    arguments = ([forged],) if forged["role"] == "tool" else (forged, forged["role"])
    with pytest.raises(Refused, match="provider: the parts are not as"):
        take(*arguments)


def test_what_render_gives_as_otel_can_be_recorded_again() -> None:
    """An exported history is a history."""
    message = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s", "x": 1}]}
    exported = render(to_otel(message, "assistant"), "otel")
    assert read(exported[0], "assistant") == exported


# -- Anthropic --------------------------------------------------------------------------------------------------------


def test_an_anthropic_user_message_gives_a_tool_message_per_result_then_the_rest() -> None:
    """Results are the tool's voice; text beside them is the user's."""
    message = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "1", "is_error": True},
            {
                "type": "tool_result",
                "tool_use_id": "b",
                "content": [
                    {"type": "text", "text": "2"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                ],
            },
            {"type": "tool_result", "tool_use_id": "c"},
            {"type": "text", "text": "only the red ones"},
        ],
    }
    blob = {"type": "blob", "mime_type": "image/png", "modality": "image", "content": PIXEL}
    assert read(message, "user") == [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "a", "response": "1", "is_error": True}]},
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "b", "response": [{"type": "text", "content": "2"}, blob]}],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": None}]},
        {"role": "user", "blocks": True, "parts": [{"type": "text", "content": "only the red ones"}]},
    ]


def test_an_anthropic_response_keeps_its_thinking_its_calls_and_its_own_fields() -> None:
    """What belongs to the message as a whole stays on the message, and what belongs to a block on the part."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 4},
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "opaque"},
            {"type": "text", "text": "looking", "citations": [{"type": "char_location"}]},
            {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "x"}, "caller": {"type": "direct"}},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
        ],
    }
    (out,) = read(message, "assistant")
    assert out.pop("parts") == [
        {"type": "reasoning", "content": "hm", "signature": "sig"},
        {"type": "reasoning", "content": "", "data": "opaque", "anthropic": {"type": "redacted_thinking"}},
        {"type": "text", "content": "looking", "citations": [{"type": "char_location"}]},
        {"type": "tool_call", "id": "t", "name": "read", "arguments": {"path": "x"}, "caller": {"type": "direct"}},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
    ]
    message.pop("content")
    assert out == message | {"provider": "anthropic"}


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
            {"type": "uri", "modality": "image", "uri": "https://x/y.png"},
        ),
        (
            {"type": "document", "source": {"type": "file", "file_id": "file_1"}, "title": "T"},
            {"type": "file", "modality": "document", "file_id": "file_1", "title": "T"},
        ),
        (
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}},
            {"type": "blob", "mime_type": "application/pdf", "modality": "document", "content": "JVBERg=="},
        ),
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
        ),
        (
            {"type": "text", "text": "x", "content": "the part's own key", "anthropic": 1},
            {"type": "text", "content": "x", "anthropic": {"content": "the part's own key", "anthropic": 1}},
        ),
        (
            {"type": "blob", "content": "no part of the form's"},
            {"type": "anthropic.blob", "content": "no part of the form's", "anthropic": {"type": "blob"}},
        ),
    ],
)
def test_an_anthropic_block_becomes_the_part_the_form_has_for_it_or_stays_whole(block: Any, part: Any) -> None:
    """The convention of ``keeping``: further keys, then the provider's name for what would collide."""
    assert parts({"role": "user", "content": [block]}, "user") == [part]


def test_base64_deep_inside_a_block_kept_whole_is_a_blob_too() -> None:
    """Binary is never text, wherever a provider puts it."""
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}
    block = {"type": "web_fetch_tool_result", "tool_use_id": "s", "content": {"document": {"source": source}}}
    (part,) = parts({"role": "assistant", "content": [block]}, "assistant")
    blob = part["content"]["document"]["source"]["data"]
    assert (blob["type"], blob["mime_type"], blob["content"]) == ("blob", "application/pdf", "JVBERg==")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ([{"type": "text", "text": "x"}, 3], "content[1]: got a number"),
        ([{"type": "image"}], "content[0].source: got null"),
        ([{"type": "image", "source": {"type": "url"}}], "content[0].source.url: it is missing"),
        ([{"type": "image", "source": {"type": "base64", "data": PIXEL}}], "content[0].source.media_type"),
        ([{"type": "tool_use", "name": "f", "input": {}}], "content[0].id: it is missing"),
        ([{"type": "tool_use", "id": "", "name": "f", "input": {}}], "content[0].id: it is empty"),
        ([{"type": "tool_use", "id": "a", "name": None, "input": {}}], "content[0].name: got null"),
        ([{"type": "tool_use", "id": "a", "name": "f", "input": {}}] * 2, "two calls have the id 'a'"),
        ([{"type": "tool_result", "tool_use_id": "a", "content": "x"}], "content[0]: a tool result in an assistant"),
        ([{"type": "thinking", "signature": "s"}], "content[0].thinking: it is missing"),
    ],
)
def test_a_malformed_anthropic_message_is_refused_at_its_place(content: Any, place: str) -> None:
    """One refusal, with the path to what is wrong."""
    with pytest.raises(Refused) as refused:
        to_otel({"role": "assistant", "content": content}, "assistant")
    assert place in str(refused.value)


# -- OpenAI chat ------------------------------------------------------------------------------------------------------


def test_a_chat_reply_keeps_its_arguments_as_the_text_they_came_in() -> None:
    """Arguments come back byte for byte, so they are never parsed on the way in."""
    spelled = '{ "a" : 1.0,\n"a":2 }'
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": spelled}}
    (out,) = read({"role": "assistant", "content": None, "tool_calls": [call]}, "assistant")
    assert out == {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "f", "arguments": spelled}]}
    assert arguments_object(spelled) == {"a": 2}


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ({"role": "developer", "content": "x"}, [{"type": "text", "content": "x"}]),
        (
            {"role": "user", "content": "x", "name": "bob"},
            [{"type": "text", "content": "x"}],
        ),
        (
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}],
            },
            [{"type": "blob", "mime_type": "image/png", "modality": "image", "content": PIXEL}],
        ),
        (
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "https://x/y", "detail": "low"}}],
            },
            [{"type": "uri", "modality": "image", "uri": "https://x/y", "detail": "low"}],
        ),
        (
            {
                "role": "user",
                "content": [{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}],
            },
            [{"type": "blob", "mime_type": "audio/wav", "modality": "audio", "content": "UklGRg=="}],
        ),
        (
            {"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]},
            [{"type": "file", "modality": "document", "file_id": "file-1"}],
        ),
        (
            {"role": "assistant", "content": None, "refusal": "no"},
            [{"type": "text", "content": "no", "openai": {"field": "refusal"}}],
        ),
        (
            {"role": "assistant", "content": "x", "reasoning_content": "hm"},
            [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "x"}],
        ),
        (
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            [{"type": "tool_call", "id": "f", "name": "f", "arguments": "{}", "openai": {"field": "function_call"}}],
        ),
    ],
)
def test_a_chat_message_becomes_parts_in_one_order(message: Any, wanted: Any) -> None:
    """Reasoning, content, refusal, audio, calls."""
    assert parts(message, "assistant" if message["role"] == "assistant" else "user") == wanted


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f"}}]}, "tool_calls[0].id"),
        ({"role": "assistant", "tool_calls": [{"id": "a", "type": "telepathy"}]}, "tool_calls[0].type"),
        ({"role": "assistant", "tool_calls": [{"id": "a", "function": {}}]}, "tool_calls[0].function.name"),
        ({"role": "assistant", "refusal": None}, "content: it is missing"),
        ({"role": "user", "content": None}, "content: got null"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "content[0].image_url.url"),
        ({"choices": [{"message": {}}]}, "completion['choices'][0]['message']"),
    ],
)
def test_a_malformed_chat_message_is_refused_at_its_place(message: Any, place: str) -> None:
    """One refusal, with the path to what is wrong, or the line that would work."""
    with pytest.raises(Refused) as refused:
        to_otel(message, message.get("role", "assistant"))
    assert place in str(refused.value)


# -- OpenAI Responses -------------------------------------------------------------------------------------------------


def test_the_items_of_a_reply_become_one_assistant_message() -> None:
    """A turn is one model response, however many items it came in."""
    items = [
        {
            "type": "reasoning",
            "id": "rs",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "e",
        },
        {
            "type": "message",
            "id": "msg",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "looking", "annotations": []}],
        },
        {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "d", "name": "apply_patch", "input": "*** Begin"},
        {"type": "web_search_call", "status": "completed", "action": {"type": "search"}},
    ]
    (out,) = read(items, "assistant")
    assert out["provider"] == "openai-responses"
    text = {"type": "text", "content": "looking", "annotations": []}
    own = {"message": {"type": "message", "id": "msg", "status": "completed"}}
    assert out["parts"] == [
        {"type": "reasoning", "content": "hm", "id": "rs", "encrypted_content": "e"},
        text | {"openai": own},
        {"type": "tool_call", "id": "c", "name": "f", "arguments": "{}", "openai": {"id": "fc"}},
        {
            "type": "tool_call",
            "id": "d",
            "name": "apply_patch",
            "arguments": "*** Begin",
            "openai": {"type": "custom_tool_call"},
        },
        {"type": "web_search_call", "status": "completed", "action": {"type": "search"}},
    ]


def test_one_function_call_needs_no_mark_at_all() -> None:
    """The form alone brings it back."""
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    part = {"type": "tool_call", "id": "c", "name": "f", "arguments": "{}"}
    assert read(item, "assistant") == [{"role": "assistant", "parts": [part]}]


def test_a_generated_picture_is_a_blob() -> None:
    """Base64 of a hosted tool is binary like any other."""
    item = {"type": "image_generation_call", "id": "ig", "status": "completed", "result": PIXEL}
    (part,) = parts(item, "assistant")
    assert part["result"]["type"] == "blob"
    assert part["result"]["content"] == PIXEL


# -- telling them apart -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "role", "said"),
    [
        (None, "user", "got null"),
        (3, "user", "got a number"),
        ({}, "user", "got an empty object"),
        ({"content": "x"}, "user", "an object with the keys 'content'"),
        ({"role": "user"}, "user", "content: it is missing"),
        ({"type": "text", "text": "x"}, "user", "got a bare 'text' block"),
        ({"type": "hologram"}, "user", "type 'hologram' without a role"),
        ({"object": "response", "output": []}, "assistant", "response['output']"),
        ([], "assistant", "an empty list"),
        ([{"role": "user", "content": [{"type": "image"}]}], "user", "a list holds Responses items"),
        (
            {"role": "assistant", "content": [{"type": "tool_use"}], "tool_calls": []},
            "assistant",
            "tool_calls is openai-chat's, content[0] is anthropic's",
        ),
        ("x", "tool", "name its call"),
        ("x", "narrator", "the roles are"),
        ({"role": "user", "content": "x"}, "assistant", "log.prompt"),
        ({"role": "assistant", "content": "x"}, "user", "log.assistant"),
        ({"role": "tool", "tool_call_id": "a", "content": "x"}, "user", "log.tool_results"),
        ({"role": "user", "content": b"x"}, "user", "content: got a bytes"),
        ({"role": "user", "content": "x", "at": float("nan")}, "user", "at: nan is not JSON"),
        ({"role": "user", "content": "x", "meta": {1: 2}}, "user", "a key that is a number"),
    ],
)
def test_what_is_no_message_or_two_at_once_is_refused_in_words(message: Any, role: str, said: str) -> None:
    """Nothing is guessed, and no value is quoted: a refusal speaks of shapes."""
    with pytest.raises(Refused) as refused:
        to_otel(message, role)
    assert said in str(refused.value)


def test_nesting_without_end_is_refused_not_overflowed() -> None:
    """A depth nobody could read back is refused before anything recurses into it."""
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(Refused, match="nested more than 200 deep"):
        to_otel({"role": "user", "content": "x", "meta": deep}, "user")


# -- results ----------------------------------------------------------------------------------------------------------

RESPONSE = {"type": "tool_call_response", "id": "c", "response": "ok"}


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "c", "content": "ok"},
        {"type": "tool_result", "tool_use_id": "c", "content": "ok"},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
        {"role": "function", "name": "c", "content": "ok"},
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
        RESPONSE,
        {"role": "tool", "parts": [RESPONSE]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]},
    ],
)
def test_a_result_in_any_shape_is_the_same_tool_message(entry: Any) -> None:
    """One message a result; the shape leaves no trace where the form says it all."""
    before = deepcopy(entry)
    assert results_to_otel([entry]) == [{"role": "tool", "parts": [RESPONSE]}]
    assert entry == before


def test_a_results_own_fields_stay_on_the_part() -> None:
    """``is_error`` and ``name`` belong to the result."""
    (message,) = results_to_otel([{"id": "c", "content": "ok", "is_error": True, "name": "f", "ms": 3}])
    assert message["parts"] == [RESPONSE | {"is_error": True, "name": "f", "ms": 3}]


def test_a_tool_message_of_several_results_becomes_one_message_each() -> None:
    """A result is addressed by its call alone."""
    other = RESPONSE | {"id": "d"}
    out = results_to_otel([{"role": "tool", "parts": [RESPONSE, other], "trace": 1}])
    assert out == [{"role": "tool", "parts": [RESPONSE], "trace": 1}, {"role": "tool", "parts": [other], "trace": 1}]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
    ],
)
def test_blocks_in_a_plain_result_become_parts_whoever_they_are(block: Any) -> None:
    """A picture a tool returns is a blob in the provider's, or the Model Context Protocol's, own words."""
    (message,) = results_to_otel([{"id": "c", "content": [{"type": "text", "text": "see"}, block]}])
    text, picture = message["parts"][0]["response"]
    assert text == {"type": "text", "content": "see"}
    assert picture.items() >= {"type": "blob", "mime_type": "image/png", "modality": "image", "content": PIXEL}.items()


@pytest.mark.parametrize(
    "value", [None, 3, {"a": [1]}, [1, 2], [{"type": "row", "id": 1}], [{"type": ["a"]}], [], "a\ud83d\0"]
)
def test_a_value_of_the_tools_own_is_kept_as_it_is(value: Any) -> None:
    """A result may be any JSON."""
    assert results_to_otel([{"id": "c", "content": value}])[0]["parts"][0]["response"] == value


@pytest.mark.parametrize(
    ("results", "place"),
    [
        ({"c": "ok"}, "results: got an object"),
        ("ok", "results: got text"),
        ([3], "results[0]: got a number"),
        ([{"content": "x"}], "results[0]: got an object with the keys 'content'"),
        ([{"id": None, "content": "x"}], "results[0].id: got null"),
        ([{"id": "c"}], 'a result is {"id", "content", ...}'),
        ([{"id": "c", "content": "x", "response": "y"}], "results[0]"),
        ([RESPONSE, {"type": "tool_result", "content": "x"}], "results[1].tool_use_id: it is missing"),
        ([{"type": "tool_result", "tool_use_id": "c", "content": {}}], "results[0].content: got an empty object"),
        ([{"role": "assistant", "parts": []}], "results[0]: got a assistant message"),
        ([{"type": "function_call_output", "call_id": "c", "output": {"a": 1}}], "results[0].output"),
    ],
)
def test_a_result_that_names_no_call_or_is_none_is_refused_at_its_place(results: Any, place: str) -> None:
    """The refusal counts from nought and shows every shape taken."""
    with pytest.raises(Refused) as refused:
        results_to_otel(results)
    assert place in str(refused.value)


# -- small things -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mime_type", "modality"),
    [
        ("image/png", "image"),
        ("Audio/MPEG", "audio"),
        ("video/mp4; codecs=x", "video"),
        ("application/pdf", "document"),
        ("text/plain", "document"),
        ("imagery", "document"),
        ("", "document"),
        (None, "document"),
    ],
)
def test_a_modality_follows_the_media_types_first_half(mime_type: str | None, modality: str) -> None:
    """Anything that is no picture, sound or film is a document."""
    assert modality_of(mime_type) == modality


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        (None, {}),
        (" ", {}),
        ("[1]", {"input": "[1]"}),
        ('{"a": ', {"input": '{"a": '}),
        ('{"a": NaN}', {"input": '{"a": NaN}'}),
        (["x"], {"input": ["x"]}),
    ],
)
def test_arguments_are_an_object_and_what_is_none_is_put_in_one(arguments: Any, wanted: Any) -> None:
    """X2 of the door's digest sends ``{}``; here the model still sees what was called."""
    assert arguments_object(arguments) == wanted


@pytest.mark.skipif(not SHARED.exists(), reason="the shared copy of the schema is not here")
@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "parts": []}],
        [{"role": "user", "parts": [{"type": "text", "content": "x"}]}],
        [{"role": "user", "parts": [{"type": "anything"}]}],
        [{"role": "user", "parts": [{"type": "text", "content": 3}]}],
        [{"role": "user", "parts": [{"content": "x"}]}],
        [{"role": "user", "parts": [3]}],
        [{"role": 3, "parts": []}],
        [{"parts": []}],
        [{"role": "user"}],
        {"role": "user", "parts": []},
        [{"role": "tool", "parts": [RESPONSE]}],
        [{"role": "user", "parts": [{"type": None}]}],
    ],
)
def test_our_own_statement_of_the_schema_judges_as_the_shared_one(messages: Any) -> None:
    """Two statements of the same facts must not drift."""
    shared = Draft202012Validator(json.loads(SHARED.read_text(encoding="utf-8")))
    assert SCHEMA.is_valid(messages) == shared.is_valid(messages)
