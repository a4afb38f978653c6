"""Arrays the APIs accept as they are: each rule of each API, and what is said where an API has no place for it.

The judges are those of ``test_providers_rules``. Most tests send one history to an API it did not come from.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from test_providers_rules import anthropic_faults, chat_faults, responses_faults

from exarch_sql.errors import Refused
from exarch_sql.providers import FORMATS, Format, render, results_to_otel, sanitise, to_otel

PIXEL = "iVBORw0KGgo="
PROMPT = {"role": "user", "parts": [{"type": "text", "content": "go"}]}
PICTURE = {"type": "blob", "mime_type": "image/png", "modality": "image", "content": PIXEL}


def text(content: str, **more: Any) -> dict[str, Any]:
    """A text part."""
    return {"type": "text", "content": content, **more}


def call(call_id: str, name: str = "f", **more: Any) -> dict[str, Any]:
    """A tool call part."""
    return {"type": "tool_call", "id": call_id, "name": name, **more}


def reply(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An assistant message."""
    return {"role": "assistant", "parts": list(parts), **more}


def user(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A user message."""
    return {"role": "user", "parts": list(parts), **more}


def result(call_id: str, response: Any = "ok", **more: Any) -> dict[str, Any]:
    """A tool message of one result."""
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": response, **more}]}


def sent(messages: list[dict[str, Any]], format: Format) -> list[dict[str, Any]]:  # noqa: A002
    """``render``, judged, and shown to leave what it was given alone."""
    before = deepcopy(messages)
    out = render(messages, format)
    assert messages == before
    judges: dict[str, Any] = {
        "otel": lambda array: [],
        "anthropic": lambda array: anthropic_faults(array, known_blocks_only=True),
        "openai-chat": lambda array: chat_faults(array, known_fields_only=True),
        "openai-responses": responses_faults,
    }
    assert judges[format](out) == []
    return out


# -- Anthropic --------------------------------------------------------------------------------------------------------


def test_anthropic_gets_results_in_call_order_at_the_head_then_what_was_said() -> None:
    """The API wants every result at the start of the very next user message."""
    messages = [PROMPT, reply(call("a"), call("b")), result("b", "2"), result("a", "1"), user(text("stop"))]
    assert sent(messages, "anthropic")[-1] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "1"},
            {"type": "tool_result", "tool_use_id": "b", "content": "2"},
            {"type": "text", "text": "stop"},
        ],
    }


def test_anthropic_gets_one_message_for_a_run_of_one_voice() -> None:
    """A residue before a prompt, or system words between, are one user message; replies in a row are one too."""
    system = {"role": "system", "parts": [text("be brief")]}
    messages = [system, PROMPT, user(text("now")), reply(text("a")), reply(text("b"))]
    blocks = [{"type": "text", "text": each} for each in ("be brief", "go", "now")]
    assert sent(messages, "anthropic") == [
        {"role": "user", "content": blocks},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    ]


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ([], "(no content)"),
        ([text("")], "(no content)"),
        ([text(" \n")], "(no content)"),
        ([{"type": "reasoning", "content": "hm"}], "(no content)"),
        ([text(""), text("x")], "x"),
        (
            [{"type": "reasoning", "content": "hm", "signature": "s"}],
            [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "(no content)"}],
        ),
        ([text("\n\n"), call("a")], [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]),
    ],
)
def test_anthropic_gets_no_blank_text_and_a_placeholder_only_where_a_reply_has_nothing(
    parts: list[Any], wanted: Any
) -> None:
    """X7: reasoning alone does not count. Blank blocks, which the API itself returns, are refused when sent back."""
    array = sent([PROMPT, reply(*parts)], "anthropic")
    assert array[-1] == {"role": "assistant", "content": wanted}


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        (None, {}),
        ("", {}),
        ("*** Begin Patch", {"input": "*** Begin Patch"}),
        ('{"a": "\\ud83d", "\\u0000": 1}', {"a": "\ufffd", "\ufffd": 1}),
    ],
)
def test_anthropic_gets_an_object_for_every_input(arguments: Any, wanted: Any) -> None:
    """X2, and nothing unsendable even where it was spelled as an escape."""
    array = sent([PROMPT, reply(call("a", arguments=arguments))], "anthropic")
    assert array[-1]["content"][0]["input"] == wanted


def test_anthropic_gets_ids_and_names_it_takes_each_id_once_with_its_result() -> None:
    """Ids of other providers bear dots and colons, and some servers count from nought in every reply."""
    turn = [reply(call("call:0", "functions.bash")), result("call:0")]
    array = sent([PROMPT, *turn, *turn, reply(call("ok_1")), result("ok_1")], "anthropic")
    ids = [message["content"][0]["id"] for message in array[1::2]]
    assert len(set(ids)) == 3
    assert ids[-1] == "ok_1"
    assert array[1]["content"][0]["name"] == "functions_bash"
    assert [message["content"][0]["tool_use_id"] for message in array[2::2]] == ids
    assert render([PROMPT, *turn], "anthropic") == array[:3]  # what comes later changes no id already sent


def test_anthropic_gets_only_the_newest_four_cache_marks() -> None:
    """A harness that marks its newest block each time would soon send more than the API takes."""
    turns = [user(text(str(n), cache_control={"type": "ephemeral"})) for n in range(6)]
    (message,) = sent(turns, "anthropic")
    marked = [block["text"] for block in message["content"] if "cache_control" in block]
    assert marked == ["2", "3", "4", "5"]


def test_anthropic_gets_words_with_every_error() -> None:
    """The API refuses an error whose content is empty."""
    array = sent([PROMPT, reply(call("a")), result("a", "", is_error=True)], "anthropic")
    assert array[-1]["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": "(no content)",
        "is_error": True,
    }


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (PICTURE, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}),
        (
            {"type": "blob", "mime_type": "application/pdf", "modality": "document", "content": "JVBERg=="},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}},
        ),
        (
            {"type": "blob", "mime_type": "text/csv", "modality": "document", "content": "YSxi"},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}},
        ),
        (
            {"type": "uri", "modality": "document", "uri": "https://x/y.pdf"},
            {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}},
        ),
        (
            {"type": "file", "modality": "image", "file_id": "file_1"},
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        ),
        (
            {"type": "blob", "mime_type": "audio/wav", "modality": "audio", "content": "UklGRg=="},
            {"type": "text", "text": "[attachment, audio/wav, 4 bytes: not carried into this request]"},
        ),
        (
            {"type": "uri", "modality": "image", "uri": "gs://bucket/x.png"},
            {"type": "text", "text": "[attachment, image: gs://bucket/x.png]"},
        ),
        ({"type": "hologram", "depth": 3}, {"type": "text", "text": '{"type":"hologram","depth":3}'}),
    ],
)
def test_anthropic_gets_each_attachment_as_what_it_takes_or_named_in_words(part: Any, block: Any) -> None:
    """Nothing a model was shown vanishes without a word."""
    assert sent([user(text("see"), part)], "anthropic")[0]["content"][1] == block


def test_an_id_used_again_in_a_later_reply_is_made_unique_with_its_result() -> None:
    """The first use stays as it is, so that the history before it renders to the same bytes."""
    turn = [reply(call("call_0")), result("call_0")]
    array = sent([PROMPT, *turn, *turn], "anthropic")
    assert array[1]["content"][0]["id"] == "call_0"
    assert array[3]["content"][0]["id"] == array[4]["content"][0]["tool_use_id"] != "call_0"


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses"])
def test_openai_gets_no_files_of_anthropic(format: Format) -> None:  # noqa: A002
    """In a prompt or in a result: the id is named, not sent."""
    block = {"type": "document", "source": {"type": "file", "file_id": "file_011"}}
    shown = {"type": "tool_result", "tool_use_id": "a", "content": [block]}
    messages = [*to_otel({"role": "user", "content": [block]}, "user"), reply(call("a"))]
    array = sent([*messages, *results_to_otel([shown])], format)
    assert json.dumps(array).count("file id file_011: not carried") == 2
    assert '"file_id"' not in json.dumps(array)


def test_anthropic_gets_no_files_of_another_provider() -> None:
    """A file id means nothing elsewhere: it is named, not sent."""
    messages = to_otel({"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}, "user")
    (message,) = sent(messages, "anthropic")
    assert message["content"] == "[attachment, document, file id file-1: not carried into this request]"
    assert sent(messages, "openai-responses")[0]["content"] == [{"type": "input_file", "file_id": "file-1"}]


# -- OpenAI chat ------------------------------------------------------------------------------------------------------


def test_chat_gets_results_right_after_their_calls_in_the_order_they_arrived() -> None:
    """The API pairs them by id; what was said in the meantime comes after."""
    messages = [PROMPT, reply(text("on it"), call("a", arguments={"p": 1}), call("b")), result("b"), result("a")]
    array = sent([*messages, user(text("stop"))], "openai-chat")
    assert array[1] == {
        "role": "assistant",
        "content": "on it",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"p":1}'}},
            {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        ],
    }
    assert [each.get("tool_call_id") for each in array[2:]] == ["b", "a", None]


@pytest.mark.parametrize(
    ("message", "content"),
    [
        (reply(call("a")), None),
        (reply(), ""),
        (reply({"type": "reasoning", "content": "hm"}), ""),
        (reply(text("a"), text("b")), [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        (user(), ""),
        (user(text("a"), blocks=True), [{"type": "text", "text": "a"}]),
    ],
)
def test_chat_gets_null_only_beside_calls(message: Any, content: Any) -> None:
    """A string otherwise, a list where there is more than one block or where it came as one."""
    assert sent([message], "openai-chat")[0]["content"] == content


def test_chat_shows_a_results_picture_in_a_user_message_behind_the_results() -> None:
    """Chat's results hold text alone; the model must still see what the tool showed."""
    messages = [PROMPT, reply(call("a"), call("b")), result("a", [text("see"), PICTURE]), result("b")]
    array = sent(messages, "openai-chat")
    assert [each["role"] for each in array] == ["user", "assistant", "tool", "tool", "user"]
    assert array[2]["content"][0] == {"type": "text", "text": "see"}
    assert array[4]["content"][1] == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    assert "a" in array[4]["content"][0]["text"]


@pytest.mark.parametrize(("format", "key"), [("openai-chat", "content"), ("openai-responses", "output")])
def test_openai_is_told_of_a_failure_in_words(format: Format, key: str) -> None:  # noqa: A002
    """Its results have no ``is_error``, and the model saw one."""
    array = sent([PROMPT, reply(call("a")), result("a", "exit 1", is_error=True)], format)
    assert array[-1][key] == "[error] exit 1"


@pytest.mark.parametrize("value", [{"rows": [1]}, [1, 2], 3, [{"type": "row"}], [{"type": []}]])
def test_a_value_of_the_tools_own_is_sent_as_json(value: Any) -> None:
    """Compact JSON text, in every format."""
    messages = [PROMPT, reply(call("a")), result("a", value)]
    wanted = json.dumps(value, separators=(",", ":"))
    assert sent(messages, "anthropic")[-1]["content"][0]["content"] == wanted
    assert sent(messages, "openai-chat")[-1]["content"] == wanted
    assert sent(messages, "openai-responses")[-1]["output"] == wanted


def test_the_older_function_calls_come_back_as_they_came_and_pair_elsewhere() -> None:
    """Its call has no id; the function's name is what a result says, so it is the id."""
    made = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    answered = {"role": "function", "name": "f", "content": "ok"}
    messages = [PROMPT, *to_otel(made, "assistant"), *results_to_otel([answered])]
    assert sent(messages, "openai-chat")[1:] == [made, answered]
    plainly = [*messages[:2], *results_to_otel([{"id": "f", "content": "ok"}])]
    assert sent(plainly, "openai-chat")[1:] == [made, answered]
    assert sent(messages, "anthropic")[1]["content"][0]["id"] == "f"


@pytest.mark.parametrize("key", ["tool_calls", "function_call", "refusal", "audio"])
def test_a_dumped_chat_reply_with_its_nulls_is_taken_and_sent(key: str) -> None:
    """Client libraries dump every field; a null list of calls is what the API refuses."""
    (message,) = to_otel({"role": "assistant", "content": "x", key: None}, "assistant")
    array = sent([message], "openai-chat")
    assert array[0].items() >= {"role": "assistant", "content": "x"}.items()
    assert key != "tool_calls" or key not in array[0]


def test_chat_audio_is_sent_by_its_id_and_said_elsewhere() -> None:
    """A request takes the id alone; another model gets the words that were spoken."""
    audio = {"id": "au", "data": "UklGRg==", "expires_at": 3, "transcript": "hello"}
    messages = to_otel({"role": "assistant", "content": None, "audio": audio}, "assistant")
    assert sent([PROMPT, *messages], "openai-chat")[1]["audio"] == {"id": "au"}
    assert sent([PROMPT, *messages], "anthropic")[1]["content"] == "hello"


def test_a_participants_name_is_said_where_it_has_no_field() -> None:
    """Chat's ``name`` tells speakers apart, so it is something the model saw."""
    messages = to_otel({"role": "user", "content": "hi", "name": "bob"}, "user")
    assert sent(messages, "openai-chat") == [{"role": "user", "content": "hi", "name": "bob"}]
    assert [block["text"] for block in sent(messages, "anthropic")[0]["content"]] == ["[bob]", "hi"]


# -- OpenAI Responses -------------------------------------------------------------------------------------------------


def test_responses_gets_items_in_order_with_outputs_of_their_calls_type() -> None:
    """A plain result of a custom call must still come back as that call's output."""
    items = [
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "x"},
    ]
    messages = [PROMPT, *to_otel(items, "assistant"), result("b", "2"), result("a", "1")]
    assert sent(messages, "openai-responses") == [
        {"role": "user", "content": "go"},
        *items,
        {"type": "custom_tool_call_output", "call_id": "b", "output": "2"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
    ]


def test_responses_gets_text_calls_and_pictures_of_another_provider() -> None:
    """The assistant's words are plain messages, which every server of this API takes."""
    messages = [user(text("see"), PICTURE), reply(text("on it"), call("a", arguments={"p": 1})), result("a", [PICTURE])]
    shown = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
    assert sent(messages, "openai-responses") == [
        {"role": "user", "content": [{"type": "input_text", "text": "see"}, shown]},
        {"role": "assistant", "content": "on it"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"p":1}'},
        {"type": "function_call_output", "call_id": "a", "output": [shown]},
    ]


def test_responses_gets_no_call_id_longer_than_it_takes() -> None:
    """64 characters; the result's id is cut alike."""
    long = "call_" + "x" * 90
    array = sent([PROMPT, reply(call(long)), result(long)], "openai-responses")
    assert array[1]["call_id"] == array[2]["call_id"]
    assert len(array[1]["call_id"]) <= 64


def test_responses_gets_nothing_for_a_reply_with_nothing() -> None:
    """No item is owed for it."""
    assert sent([PROMPT, reply(), PROMPT], "openai-responses") == [{"role": "user", "content": "go"}] * 2


# -- every format -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_no_format_lets_a_lone_surrogate_or_a_nul_through(format: Format) -> None:  # noqa: A002
    """Wherever it stands: text, keys, arguments, results. The judges look for the characters themselves."""
    bad = "a\ud83d\0b"
    messages = [user(text(bad)), reply(call("c", arguments={bad: [bad]})), result("c", {bad: bad})]
    out = json.dumps(sent([*messages, reply(call("d", arguments={})), result("d", bad)], format), ensure_ascii=False)
    assert out.count("a\ufffd\ufffdb") == 6
    out.encode()


@pytest.mark.parametrize("format", ["anthropic", "openai-chat", "openai-responses"])
def test_no_format_lets_arguments_spell_one_either(format: Format) -> None:  # noqa: A002
    """An escape in JSON text becomes the character once the text is parsed. A pair of halves is a character."""
    spelled = '{"x": "\\ud83d\\u0000", "y": "\\ud83d\\ude00", "z": "\\\\ud83d"}'
    (block,) = _calls(sent([PROMPT, reply(call("c", arguments=spelled))], format))
    arguments = block if isinstance(block, dict) else json.loads(block)
    assert arguments == {"x": "\ufffd\ufffd", "y": "\U0001f600", "z": "\\ud83d"}


def _calls(array: list[dict[str, Any]]) -> list[Any]:
    """The arguments of every call in an array, as sent."""
    found: list[Any] = []
    for message in array:
        found += [block["input"] for block in message.get("content") or [] if "input" in block]
        found += [each["function"]["arguments"] for each in message.get("tool_calls", [])]
        found += [message["arguments"]] if message.get("type") == "function_call" else []
    return found


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses"])
def test_text_that_is_no_json_keeps_its_backslashes(format: Format) -> None:  # noqa: A002
    """A patch may hold the six characters of an escape; they are its own."""
    items = {
        "openai-chat": {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "patch", "input": "+\\u0000"}}],
        },
        "openai-responses": {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "+\\u0000"},
    }
    assert sent([PROMPT, *to_otel(items[format], "assistant")], format)[1] == items[format]


@pytest.mark.parametrize("format", ["anthropic", "openai-chat", "openai-responses"])
def test_reasoning_of_another_provider_is_left_out_whole(format: Format) -> None:  # noqa: A002
    """It is no other model's to be shown as its own; nothing else of the reply goes with it."""
    origins = {
        "anthropic": {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "HM", "signature": "SIG"}, {"type": "text", "text": "x"}],
        },
        "openai-chat": {"role": "assistant", "content": "x", "reasoning_content": "HM"},
        "openai-responses": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "HM"}], "encrypted_content": "SIG"},
            {"role": "assistant", "content": "x"},
        ],
    }
    for origin, message in origins.items():
        out = json.dumps(render([PROMPT, *to_otel(message, "assistant")], format))
        assert ("HM" in out) == (origin == format)
        assert '"x"' in out


@pytest.mark.parametrize("format", ["anthropic", "openai-chat", "openai-responses"])
def test_calls_still_waiting_at_the_end_are_rendered_as_they_are(format: Format) -> None:  # noqa: A002
    """Whether to send them is the caller's decision."""
    array = sent([PROMPT, reply(call("a"), call("b"))], format)
    assert len(_calls(array)) == 2


@pytest.mark.parametrize("format", ["anthropic", "openai-chat", "openai-responses"])
@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([PROMPT, reply(call("a")), PROMPT], "call 'a' has no result"),
        ([PROMPT, reply(call("a"), call("b")), result("a"), reply(text("x"))], "call 'b' has no result"),
        ([PROMPT, result("a")], "messages[1] answers call 'a'"),
        ([PROMPT, reply(call("a")), result("a"), result("a")], "messages[3] answers call 'a'"),
        ([{"role": "user"}], "messages[0].parts: got null"),
        (["x"], "messages[0]: got text"),
    ],
)
def test_a_history_whose_calls_and_results_do_not_pair_is_refused(
    messages: Any,
    said: str,
    format: Format,  # noqa: A002
) -> None:
    """L4 keeps a log from ever holding one; a list made by hand is told where it breaks."""
    with pytest.raises(Refused) as refused:
        render(messages, format)
    assert said in str(refused.value)


@pytest.mark.parametrize("format", ["anthropic", "openai-chat", "openai-responses"])
def test_what_was_said_while_a_call_waited_is_put_after_its_result(format: Format) -> None:  # noqa: A002
    """The APIs want the results first; nothing is lost by the order."""
    messages = [PROMPT, reply(call("a")), user(text("stop")), result("a")]
    assert "stop" in json.dumps(sent(messages, format)[-1])


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    """The refusal lists them."""
    with pytest.raises(Refused, match="otel, anthropic, openai-chat, openai-responses"):
        render([], "gemini")  # type: ignore[arg-type]


def test_an_empty_history_is_an_empty_array() -> None:
    """Nothing is invented."""
    assert [render([], each) for each in FORMATS] == [[], [], [], []]


# -- sanitise ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        ("a\0b", "a\ufffdb"),
        ("\ud83d", "\ufffd"),
        (["x", {"\0": "\udfff"}], ["x", {"\ufffd": "\ufffd"}]),
        ({"a\0": 1, "a\ufffd": 2}, {"a\ufffd": 1, "a\ufffd\ufffd": 2}),
    ],
)
def test_sanitise_replaces_what_no_api_takes_and_loses_no_value(value: Any, clean: Any) -> None:
    """One U+FFFD for each; keys that become equal are told apart."""
    before = deepcopy(value)
    assert sanitise(value) == clean
    assert value == before


@pytest.mark.parametrize("value", ["", "plain", "é😀", 3, None, True, [], {}, {"a": ["é", {"b": None}]}])
def test_sanitise_answers_the_very_object_when_there_is_nothing_to_replace(value: Any) -> None:
    """So a clean history costs no copy."""
    assert sanitise(value) is value


def test_sanitise_shares_what_it_need_not_change() -> None:
    """Only the path to what was replaced is new."""
    clean = {"deep": ["x"]}
    out = sanitise([clean, "\0"])
    assert out[0] is clean
