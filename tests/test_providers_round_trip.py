"""A history in a provider's own shape comes back from its own format as it went in, and whole from another's.

Goal: no field, byte or order is lost on the way through the form. Method: generated histories that each API would
take (strategies below), sent through ``to_otel`` / ``results_to_otel`` and ``render``; JSON in between, as in a file.
"""

from __future__ import annotations

import base64
import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from test_providers_rules import OUTPUT_OF, anthropic_faults, chat_faults, responses_faults, strings

from exarch_sql.errors import Refused
from exarch_sql.providers import FORMATS, Format, render, results_to_otel, to_otel

SCHEMA = Draft202012Validator(
    json.loads((Path(__file__).parent / "corpora" / "otel_messages.schema.json").read_text(encoding="utf-8"))
)
FORM_TYPES = ("text", "tool_call", "tool_call_response", "reasoning", "blob", "uri", "file")
SLOW = settings(max_examples=100)


# -- strategies -------------------------------------------------------------------------------------------------------

anything = st.text(st.characters(exclude_categories=()), max_size=12)  # surrogates and NUL too
visible = anything.map(lambda text: f"w{text}")
clean = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)
word = st.from_regex(r"[a-zA-Z0-9_-]{1,12}", fullmatch=True)
own_key = st.sampled_from(
    [
        "x_new",
        "content",
        "parts",
        "provider",
        "blocks",
        "modality",
        "anthropic",
        "openai",
        "field",
        "detail",
        "filename",
    ]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | clean,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(clean, inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(clean, values, max_size=3)
b64 = st.binary(max_size=9).map(lambda raw: base64.b64encode(raw).decode()) | st.just("bm90IFtSRURBQ1RFRF0 broken")
url = st.just("https://example.org/a.png") | clean.map(lambda text: f"https://example.org/{text}")
spelled = (
    objects.map(json.dumps)
    | objects.map(lambda value: json.dumps(value, indent=1, ensure_ascii=False))
    | st.sampled_from(["", " ", "{}", '{ "a":1,"a":2}', '{"cut": ', "[1]", "null", '{"n": 1e400}'])
)


def shaped(required: dict[str, Any], optional: dict[str, Any] | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with these keys; a plain value stands for itself."""
    as_strategy = {
        key: each if isinstance(each, st.SearchStrategy) else st.just(each) for key, each in required.items()
    }
    return st.fixed_dictionaries(as_strategy, optional=optional or {})


@st.composite
def extended(draw: st.DrawFn, blocks: st.SearchStrategy[dict[str, Any]], keys: Any = own_key) -> dict[str, Any]:
    """A block, now and then with a field its API may have tomorrow, or one named as the form's own are."""
    block = draw(blocks)
    if draw(st.integers(0, 4)) == 0:
        block.setdefault(draw(keys), draw(objects | clean))
    return block


def unknown(*known: str) -> st.SearchStrategy[dict[str, Any]]:
    """Blocks of a type no one knows yet, or of one the form uses for something else."""
    free = [kind for kind in (*FORM_TYPES, "hologram") if kind not in known]
    return st.builds(lambda kind, rest: {**rest, "type": kind}, st.sampled_from(free), st.dictionaries(word, values))


cache = {"cache_control": st.just({"type": "ephemeral"})}
a_source = st.one_of(
    shaped({"type": "base64", "media_type": st.sampled_from(["image/png", "image/webp"]), "data": b64}),
    shaped({"type": "url", "url": url}),
    shaped({"type": "file", "file_id": word}, {"x": objects}),
)
a_text = shaped({"type": "text", "text": visible}, {"citations": st.none() | st.lists(objects, max_size=1)})
a_shown = st.one_of(
    extended(a_text),
    extended(shaped({"type": "image", "source": a_source})),
    extended(
        shaped(
            {
                "type": "document",
                "source": a_source | shaped({"type": "text", "media_type": "text/plain", "data": clean}),
            },
            {"title": clean | st.none(), "context": clean, "citations": st.just({"enabled": True})},
        )
    ),
    unknown("text", "image", "document", "file"),
    shaped({"type": "search_result", "source": url, "title": clean, "content": st.lists(a_text, max_size=2)}),
)
a_said = st.one_of(
    extended(a_text),
    extended(shaped({"type": "thinking", "thinking": anything, "signature": word})),
    shaped({"type": "redacted_thinking", "data": b64}),
    shaped({"type": "server_tool_use", "id": word, "name": "web_search", "input": objects}),
    shaped({"type": "web_fetch_tool_result", "tool_use_id": word, "content": shaped({"source": a_source})}),
    unknown("text", "thinking", "file"),
)
a_response = {
    "id": word,
    "type": st.just("message"),
    "stop_reason": st.sampled_from(["end_turn", "tool_use", None]),
    "usage": st.just({"input_tokens": 1}),
    "container": st.none(),
}


def _calls(draw: st.DrawFn, used: set[str]) -> list[str]:
    """Ids for the calls of one reply, none used before."""
    ids = draw(st.lists(word.filter(lambda each: each not in used), max_size=3, unique=True))
    used.update(ids)
    return ids


@st.composite
def anthropic_histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Messages the Messages API takes, the assistant's with or without the fields of a whole response."""
    history: list[dict[str, Any]] = [
        {"role": "user", "content": draw(visible | st.lists(a_shown, min_size=1, max_size=3))}
    ]
    used: set[str] = set()
    for _ in range(draw(st.integers(0, 3))):
        ids = _calls(draw, used)
        shape = shaped({"type": "tool_use", "name": word, "input": objects}, {"caller": objects})
        calls = [{**draw(shape), "id": each} for each in ids]
        said = draw(st.lists(a_said, max_size=2))
        if not said or said[-1]["type"] in ("thinking", "redacted_thinking"):
            said.append(draw(a_text))
        content = said + calls if ids else draw(st.just(said) | visible)
        extras = draw(st.just({}) | shaped({"model": word}, a_response)) if isinstance(content, list) else {}
        history.append({"role": "assistant", "content": content, **extras})
        results = [draw(extended(_a_result(each), own_key.filter(lambda key: key != "content"))) for each in ids]
        rest = draw(st.lists(a_shown, min_size=0 if ids else 1, max_size=2))
        history.append({"role": "user", "content": results + rest if ids else draw(st.just(rest) | visible)})
    return history


def _a_result(call: str) -> st.SearchStrategy[dict[str, Any]]:
    inner = st.lists(a_shown, min_size=1, max_size=2)
    return shaped(
        {"type": "tool_result", "tool_use_id": call}, {"content": visible | inner, "is_error": st.just(False)} | cache
    )


c_data = st.sampled_from(["image/png", "image/svg+xml;x=1", "application/pdf", ""]).flatmap(
    lambda mime: b64.map(lambda body: f"data:{mime};base64,{body}")
)
c_text = shaped({"type": "text", "text": anything})
c_audio = shaped({"data": b64, "format": st.sampled_from(["wav", "mp3", "flac", "mpeg"])}, {"x": clean})
c_file = shaped({"file_id": word}) | shaped({"file_data": c_data | b64}, {"filename": clean, "x": objects})
c_shown = st.one_of(
    c_text,
    extended(shaped({"type": "image_url", "image_url": shaped({"url": c_data | url}, {"detail": word, "x": clean})})),
    extended(shaped({"type": "input_audio", "input_audio": c_audio})),
    extended(shaped({"type": "file", "file": c_file})),
    shaped({"type": "image_url", "image_url": url}),
    shaped({"type": "video_url", "video_url": shaped({"url": c_data})}),
)
c_reply_fields = {
    "name": word,
    "refusal": st.none() | visible,
    "annotations": st.lists(objects, max_size=1),
    "reasoning_content": st.none() | anything,
    "function_call": st.none(),
    "x_new": objects,
}


@st.composite
def chat_histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Messages the Chat Completions API takes, results in any order."""
    history: list[dict[str, Any]] = []
    if draw(st.booleans()):
        history.append({"role": draw(st.sampled_from(["system", "developer"])), "content": draw(anything)})
    used: set[str] = set()
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            content = draw(anything | st.lists(c_shown, min_size=1, max_size=3))
            history.append(draw(shaped({"role": "user", "content": st.just(content)}, {"name": word})))
            continue
        ids = _calls(draw, used)
        message = {"role": "assistant", **draw(st.fixed_dictionaries({}, optional=c_reply_fields))}
        if not ids or draw(st.booleans()):
            blocks = extended(c_text) if len(message) > 1 else c_text  # else they would be read as Anthropic's
            message["content"] = draw(anything | st.lists(blocks, min_size=1, max_size=2))
        elif draw(st.booleans()):
            message["content"] = None
        if ids:
            message["tool_calls"] = [draw(_c_call(each)) for each in ids]
        history.append(message)
        for each in draw(st.permutations(ids)):
            content = anything | st.lists(c_text, min_size=1, max_size=2)
            shape = {"role": "tool", "tool_call_id": each, "content": content}
            history.append(draw(shaped(shape, {"name": word, "x_new": objects})))
    return history


def _c_call(call: str) -> st.SearchStrategy[dict[str, Any]]:
    function = shaped({"name": visible, "arguments": spelled}, {"x": clean})
    custom = shaped({"name": word, "input": anything})
    return st.one_of(
        shaped({"id": call, "type": "function", "function": function}, {"index": st.integers(), "x": objects}),
        shaped({"id": call, "type": "custom", "custom": custom}),
    )


r_shown = st.one_of(
    extended(shaped({"type": "input_text", "text": anything})),
    extended(shaped({"type": "input_image", "image_url": c_data | url}, {"detail": word, "file_id": st.none()})),
    shaped({"type": "input_image", "file_id": word}, {"detail": word}),
    extended(shaped({"type": "input_file", "file_data": c_data | b64}, {"filename": clean})),
    shaped({"type": "input_file", "file_url": url}),
    shaped({"type": "input_file", "file_id": word}),
    unknown("text", "file"),
)
r_words = st.one_of(
    extended(shaped({"type": "output_text", "text": anything}, {"annotations": st.lists(objects, max_size=1)})),
    shaped({"type": "refusal", "refusal": anything}),
)
r_thought = shaped(
    {"type": "reasoning"},
    {
        "id": word,
        "summary": st.lists(shaped({"type": "summary_text", "text": anything}), max_size=2),
        "content": st.none() | st.lists(shaped({"type": "reasoning_text", "text": anything}), max_size=2),
        "encrypted_content": b64,
        "status": st.none(),
    },
)
r_item = {"id": word, "status": st.just("completed"), "phase": word}
r_reply_item = st.one_of(
    r_thought,
    shaped({"type": "message", "role": "assistant", "content": st.lists(r_words, max_size=3)}, r_item),
    shaped({"role": "assistant", "content": anything}),
    shaped({"type": "message", "role": "assistant", "content": anything}, r_item),
    shaped({"type": "web_search_call", "action": objects}, r_item),
    shaped({"type": "image_generation_call", "result": b64 | st.none()}, {"output_format": st.just("webp")}),
    shaped({"type": "tool_search_call", "call_id": st.none(), "arguments": objects}),
    shaped({"type": "compaction", "encrypted_content": b64}),
)


def _r_call(call: str) -> st.SearchStrategy[dict[str, Any]]:
    at = {"call_id": call}
    return st.one_of(
        shaped({"type": "function_call", "name": visible, "arguments": spelled, **at}, {**r_item, "namespace": word}),
        shaped({"type": "custom_tool_call", "name": word, "input": anything, **at}, r_item),
        shaped({"type": "local_shell_call", "action": objects, **at}, r_item),
        shaped({"type": "computer_call", "action": objects, "pending_safety_checks": st.just([]), **at}, r_item),
        shaped({"type": "tool_search_call", "arguments": objects, "execution": "client", **at}),
    )


def _r_output(item: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    at = {"call_id": item["call_id"]}
    kind = item["type"]
    if kind == "tool_search_call":
        return shaped({"type": "tool_search_output", "tools": st.lists(objects, max_size=1), **at}, r_item)
    if kind == "computer_call":
        picture = shaped({"type": "computer_screenshot", "image_url": c_data})
        return shaped({"type": "computer_call_output", "output": picture, **at}, r_item)
    shown = anything if kind == "local_shell_call" else anything | st.lists(r_shown, min_size=1, max_size=2)
    return shaped({"type": f"{kind}_output", "output": shown, **at}, r_item)


@st.composite
def responses_histories(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Items the Responses API takes, in groups: another's message, the items of one reply, or its outputs."""
    groups: list[list[dict[str, Any]]] = []
    used: set[str] = set()
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            content = draw(anything | st.lists(r_shown, min_size=1, max_size=3))
            shape = {"role": st.sampled_from(["user", "developer"]), "content": st.just(content)}
            typed = shaped(shape | {"type": "message"}, r_item)
            known = isinstance(content, str) or any(block["type"].startswith("input_") for block in content)
            groups.append([draw(shaped(shape) | typed if known else typed)])
            continue
        calls = [draw(_r_call(each)) for each in _calls(draw, used)]
        said = draw(st.lists(r_reply_item, min_size=0 if calls else 1, max_size=3))
        groups.append(said + calls)
        if calls:
            groups.append([draw(_r_output(each)) for each in draw(st.permutations(calls))])
    return groups


# -- helpers ----------------------------------------------------------------------------------------------------------


def sendable(value: Any) -> Any:
    """The test's own statement of what no format lets through."""
    return json.loads(re.sub("[\ud800-\udfff\0]", "\ufffd", json.dumps(_spelled_out(value), ensure_ascii=False)))


def _spelled_out(value: Any) -> Any:
    """NUL as U+FFFD already, since JSON would write it as an escape."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list):
        return [_spelled_out(item) for item in value]
    return {key: _spelled_out(item) for key, item in value.items()} if isinstance(value, dict) else value


def recorded(history: list[Any]) -> list[dict[str, Any]]:
    """The history in the form, through JSON text and back, each message by the door a harness would use."""
    before = deepcopy(history)
    out: list[dict[str, Any]] = []
    for each in history:
        if isinstance(each, list) and all("output" in item["type"] for item in each if "role" not in item):
            out += results_to_otel(each) if "role" not in each[0] else _read(each)
        elif isinstance(each, dict) and each["role"] == "tool":
            out += results_to_otel([each])
        else:
            out += _read(each)
    assert history == before
    stored: list[dict[str, Any]] = json.loads(json.dumps(out))
    assert stored == out
    SCHEMA.validate(out)
    return stored


def _read(message: Any) -> list[dict[str, Any]]:
    first = message[0] if isinstance(message, list) else message
    return to_otel(message, "assistant" if first.get("role", "assistant") == "assistant" else "user")


def _marks_within_four(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The history with its fifth and later cache marks taken off, so that the API would take it."""
    left = 4
    for message in history:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if "cache_control" in block:
                if left <= 0:
                    del block["cache_control"]
                left -= 1
    return history


# -- the claims -------------------------------------------------------------------------------------------------------


@SLOW
@given(anthropic_histories())
def test_an_anthropic_history_comes_back_from_its_own_format_as_it_went_in(history: list[dict[str, Any]]) -> None:
    """Fields, order, strings and lists; of a whole response, what a request has a place for."""
    history = _marks_within_four(history)
    array = render(recorded(history), "anthropic")
    assert array == sendable([{key: message[key] for key in ("role", "content")} for message in history])
    assert anthropic_faults(array) == []


@SLOW
@given(chat_histories())
@example([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a:b"}, "detail": {}}]}])
@example([{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}, "filename": "beside, not within"}]}])
def test_a_chat_history_comes_back_from_its_own_format_as_it_went_in(history: list[dict[str, Any]]) -> None:
    """Nulls, absent content, extra fields, and arguments to the byte."""
    array = render(recorded(history), "openai-chat")
    assert array == sendable(history)
    assert not set(chat_faults(array)) - {"block type"}  # video and the like are for servers other than OpenAI's


@SLOW
@given(responses_histories())
def test_a_responses_history_comes_back_from_its_own_format_as_it_went_in(groups: list[list[dict[str, Any]]]) -> None:
    """Item by item, however a reply's items were divided into messages."""
    array = render(recorded(groups), "openai-responses")
    assert array == sendable([item for group in groups for item in group])
    assert not set(responses_faults(array)) - {"block type"}


@SLOW
@given(responses_histories())
def test_an_item_alone_comes_back_as_it_does_among_others(groups: list[list[dict[str, Any]]]) -> None:
    """A harness may record a reply item by item where it makes one call."""
    for item in (item for group in groups for item in group):
        if "_output" not in item.get("type", ""):
            role = "assistant" if item.get("role", "assistant") == "assistant" else "user"
            assert render(to_otel(item, role), "openai-responses") == [sendable(item)]


any_history = st.one_of(
    st.tuples(st.just("anthropic"), anthropic_histories()),
    st.tuples(st.just("openai-chat"), chat_histories()),
    st.tuples(st.just("openai-responses"), responses_histories()),
)


@SLOW
@given(any_history, st.sampled_from(["anthropic", "openai-chat", "openai-responses"]))
def test_a_history_is_lawful_in_every_other_format_and_its_words_and_calls_are_all_there(
    origin: tuple[str, list[Any]],
    format: Format,  # noqa: A002
) -> None:
    """Nothing a model saw is dropped without a word, and no field of one API is sent to another."""
    came_from, history = origin
    array = render(recorded(history), format)
    foreign = came_from != format
    faults = {
        "anthropic": lambda: anthropic_faults(array, known_blocks_only=foreign),
        "openai-chat": lambda: chat_faults(array, known_fields_only=foreign),
        "openai-responses": lambda: responses_faults(array),
    }[format]()
    assert not set(faults) - (set() if foreign else {"block type"})  # what its own API may have tomorrow
    sent = "\n".join(strings(array))
    for shown in sendable(_words(history)):
        assert not shown.strip() or shown in sent
    assert _call_count(array) == _call_count(history)


def _call_count(value: Any) -> int:
    """How many calls the caller runs stand in a history of any shape."""
    if isinstance(value, list):
        return sum(map(_call_count, value))
    content = value.get("content")
    blocks = content if isinstance(content, list) else []
    is_item = value.get("type") in OUTPUT_OF and isinstance(value.get("call_id"), str)
    return is_item + len(value.get("tool_calls", ())) + sum(block["type"] == "tool_use" for block in blocks)


def _words(history: list[Any]) -> list[str]:
    """The text every model must see: of messages, and of results that are text."""
    found: list[str] = []
    for each in (item for part in history for item in (part if isinstance(part, list) else [part])):
        content = each.get("content") if "role" in each else None
        found += [content] if isinstance(content, str) else []
        for block in content if isinstance(content, list) else []:
            found += [block[key] for key in ("text", "refusal") if block["type"] in _TEXT_TYPES and key in block]
            if block["type"] == "tool_result" and isinstance(block.get("content"), str):
                found.append(block["content"])
        if isinstance(each.get("output"), str):
            found.append(each["output"])
        if isinstance(each.get("refusal"), str):
            found.append(each["refusal"])
    return found


_TEXT_TYPES = ("text", "input_text", "output_text", "refusal")


@SLOW
@given(st.lists(values, max_size=3), st.sampled_from(["user", "assistant", "tool"]))
def test_any_json_is_taken_or_refused_and_never_breaks(junk: list[Any], role: str) -> None:
    """Bad input is one refusal; no other error leaves the module."""
    for value in (
        *junk,
        junk,
        {"role": role, "content": junk},
        {"role": role, "parts": junk},
        {"role": role, **_named(junk)},
    ):
        for take in (lambda value=value: to_otel(value, role), lambda value=value: results_to_otel([value])):
            SCHEMA.validate(_unless_refused(take, "cannot take this message"))


def _named(junk: list[Any]) -> dict[str, Any]:
    keys = ("content", "tool_calls", "function_call", "type", "audio", "reasoning_content")
    return dict(zip(keys, junk, strict=False))


broken = st.sampled_from(
    [
        ("type", 3),
        ("text", None),
        ("source", "x"),
        ("content", 3),
        ("id", None),
        ("function", []),
        ("image_url", 1),
        ("file", None),
        ("call_id", 7),
        ("input_audio", []),
        ("name", {}),
    ]
)


@SLOW
@given(anthropic_histories() | chat_histories() | responses_histories(), broken, st.randoms(use_true_random=False))
def test_a_message_with_one_field_spoilt_is_taken_or_refused_and_renders_if_taken(
    history: list[Any], spoilt: tuple[str, Any], random: Any
) -> None:
    """What is taken can be rendered in every format: no trap waits in a file."""
    key, value = spoilt
    for message in deepcopy(history):
        holders = [each for each in _objects(message) if key in each]
        if not holders:
            continue
        random.choice(holders)[key] = value
        try:
            out = _read(message)
        except Refused:
            continue
        for each in FORMATS:
            _unless_refused(lambda out=out, each=each: render(out, each), "cannot render")


def _unless_refused(take: Any, opening: str) -> list[Any]:
    """What it answers; nothing when it refuses in the words that are its own."""
    try:
        return list(take())
    except Refused as refused:
        if not str(refused).startswith(opening):
            raise
        return []


def _objects(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [found for item in value for found in _objects(item)]
    if isinstance(value, dict):
        return [value, *(found for item in value.values() for found in _objects(item))]
    return []


# -- the shared corpus ------------------------------------------------------------------------------------------------

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"


@pytest.mark.skipif(not CORPUS.exists(), reason="the shared corpus is not here")
def test_every_message_of_the_claude_code_corpus_comes_back() -> None:
    """Block shapes as they really are. Results and the text beside them are put back in their order of recording."""
    count = 0
    for path in sorted((CORPUS / "claude-code").glob("*.jsonl")):
        for message in _found(path, lambda line: line.get("message")):
            content = message.get("content")
            if isinstance(content, list) and all(block["type"] != "tool_result" for block in content):
                array = render(to_otel(message, message["role"]), "anthropic")
                kept = [block for block in content if block["type"] != "text" or block["text"].strip()]
                sent = array[0]["content"]
                assert sent[: len(kept)] == kept
                assert sent[len(kept) :] in ([], [{"type": "text", "text": "(no content)"}])
                count += 1
    assert count > 400


@pytest.mark.skipif(not CORPUS.exists(), reason="the shared corpus is not here")
def test_every_item_of_the_codex_corpus_comes_back() -> None:
    """Items without ids, custom calls, hosted calls, client-run tool search."""
    count = 0
    for path in sorted((CORPUS / "codex").glob("*.jsonl")):
        for item in _found(path, lambda line: line["payload"] if line.get("type") == "response_item" else None):
            count += 1
            if item["type"].endswith("_output"):
                call = {"type": item["type"].replace("_output", ""), "call_id": item["call_id"], "name": "f"}
                call |= {"type": "tool_search_call"} if call["type"] == "tool_search" else {}
                call |= {"arguments": "{}"} if call["type"] == "function_call" else {"input": "x"}
                history = [*to_otel(call, "assistant"), *results_to_otel([item])]
                assert render(history, "openai-responses") == [call, item]
            else:
                role = "assistant" if item.get("role", "assistant") == "assistant" else "user"
                assert render(to_otel(item, role), "openai-responses") == [item]
    assert count > 700


def _found(path: Path, pick: Any) -> list[dict[str, Any]]:
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            picked = pick(json.loads(line))
        except json.JSONDecodeError:
            continue
        if picked:
            found.append(picked)
    return found
