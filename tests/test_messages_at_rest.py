"""What is said comes back as it was said, or is refused by a stated limit; nothing in between."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exarch_sql import Archive, Refused, messages


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """An empty archive."""
    with Archive.open(tmp_path / "a.exarch") as archive:
        yield archive


def sized(rendered: list[dict[str, Any]]) -> int:
    """The weight of messages by its definition, as any client would compute it."""
    return sum(len(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()) for message in rendered)


ODD_TEXTS = [
    "",
    "\0",
    "a\0b",
    "\ud83d",
    "cut in mid-pair \ud83d",
    "\ude00 back",
    "\U0001f600",
    "\x1b[31m",
    "\u2028",
    "e\u0301" * 60,
    "\\u0000",
]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_text_comes_back_as_the_same_string_and_never_reaches_a_request(archive: Archive, text: str) -> None:
    """Half surrogates and NULs occur in real tool output; they must not make an append fail."""
    log = archive.trunk
    log.prompt(text)
    log.assistant(
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "t", "arguments": {text: text}}]}
    )
    log.tool_results([{"id": "c", "content": text}])
    log.assistant("done")

    said = log.read([1, 2])

    assert said[0].messages[0]["parts"][0]["content"] == text
    assert said[1].messages[0]["parts"][0]["arguments"] == {text: text}
    assert said[1].messages[1]["parts"][0]["response"] == text
    rendered = log.render()
    sent = json.dumps(rendered, ensure_ascii=False).encode()
    assert b"\\u0000" not in sent or text == "\\u0000"
    assert log.survey().total_bytes == sized(rendered)
    assert archive.verify().ok


def test_two_halves_that_spell_a_character_are_that_character(archive: Archive) -> None:
    """The one string that JSON cannot tell from another."""
    archive.trunk.prompt("\ud83d\ude00")

    assert archive.trunk.survey().rows[0].label == "\U0001f600"
    assert archive.trunk.survey().total_bytes == sized(archive.trunk.render())
    assert archive.verify().ok
    assert archive.trunk.render()[0]["parts"][0]["content"] == "\U0001f600"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(), x, max_size=3),
        max_leaves=8,
    )
)
def test_any_json_in_an_unknown_part_survives_the_body(value: Any) -> None:
    """Unknown part types and provider fields are kept unchanged."""
    said = [{"role": "user", "parts": [{"type": "x-unknown", "payload": value}], "x": [value]}]

    encoded = messages.encode(said)

    assert messages.decode(encoded.body, lambda _: b"") == said
    assert encoded.weight == messages.weigh(said)


def test_numbers_keep_all_their_digits(archive: Archive) -> None:
    """64-bit ids, and larger ones, in arguments."""
    numbers = {"id": 2**63 - 1, "u64": 2**64 - 1, "big": 10**40, "neg": -(2**63), "float": 0.1, "e": 1e300}
    log = archive.trunk
    log.prompt("go")
    log.assistant({"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "t", "arguments": numbers}]})
    log.quiesce()
    log.assistant("done")

    assert log.read([2])[0].messages[0]["parts"][0]["arguments"] == numbers


def test_a_body_of_64_mb_is_stored_and_given_back(archive: Archive) -> None:
    """A stated size that must work."""
    text = "0123456789abcdef" * (4 * 1024 * 1024)
    archive.trunk.prompt(text)
    archive.trunk.assistant("long")

    assert archive.trunk.read([1])[0].messages[0]["parts"][0]["content"] == text
    assert archive.trunk.survey().total_bytes == sized(archive.trunk.render())
    assert archive.verify().ok


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"role": "user", "parts": [{"type": "x", "v": float("nan")}]}, "not JSON"),
        ({"role": "user", "parts": [{"type": "x", "v": b"raw"}]}, "plain JSON values"),
        (
            {"role": "user", "parts": [{"type": "blob", "modality": "image", "content": {"$blob": "00"}}]},
            "text is wanted there",
        ),
    ],
)
def test_what_is_not_json_is_refused_and_nothing_is_written(archive: Archive, message: Any, said: str) -> None:
    """NaN and raw bytes have no JSON; a hole is ours to make."""
    with pytest.raises(Refused, match=said):
        archive.trunk.prompt(message)

    assert archive.trunk.reach == 0


def test_a_body_past_the_limit_is_refused_by_the_limit(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stated limit is 256 MiB; here a smaller one stands for it. At the limit a body is taken, a byte more is not."""
    assert messages.MAX_BODY_BYTES == 256 << 20
    monkeypatch.setattr(messages, "MAX_BODY_BYTES", 1000)
    frame = len(messages.dumps([{"role": "user", "parts": [{"type": "text", "content": ""}]}]).encode())
    archive.trunk.prompt("é" * ((1000 - frame) // 2) + "x" * ((1000 - frame) % 2))
    before = archive.head()

    for act in (lambda: archive.trunk.prompt("x" * (1001 - frame)), lambda: archive.trunk.note("x" * 1000)):
        with pytest.raises(Refused, match="holds at most 1000"):
            act()
    assert archive.head() == before


def test_nesting_past_the_limit_is_refused_by_the_limit(archive: Archive) -> None:
    """SQLite's JSON reader has a depth of its own; ours is stated and lower."""
    deep: Any = "x"
    for _ in range(messages.MAX_DEPTH + 1):
        deep = [deep]

    with pytest.raises(Refused, match=f"more than {messages.MAX_DEPTH} deep"):
        archive.trunk.prompt({"role": "user", "parts": [{"type": "x", "v": deep}]})


def blob(content: str) -> dict[str, Any]:
    """A prompt with a picture."""
    part = {"type": "blob", "mime_type": "image/png", "modality": "image", "content": content, "detail": "high"}
    return {"role": "user", "parts": [part]}


def test_binary_content_is_stored_once_and_comes_back_byte_for_byte(archive: Archive) -> None:
    """By SHA-256, as raw bytes."""
    picture = base64.b64encode(bytes(range(256)) * 64).decode()
    for _ in range(3):
        archive.trunk.prompt(blob(picture))

    assert archive.trunk.render()[2] == blob(picture)
    assert archive.stats()["blobs"] == 1
    assert archive.stats()["body-bytes"] < len(picture)
    assert archive.trunk.survey().total_bytes == sized(archive.trunk.render())


@pytest.mark.parametrize("content", ["QUJ", "QUJD\n", "QUI_", "QUJ=", "", "not base64!", "QR=="])
def test_base64_in_another_spelling_stays_as_it_is(archive: Archive, content: str) -> None:
    """It has to come back byte for byte, and decoding would lose the spelling."""
    archive.trunk.prompt(blob(content))

    assert archive.trunk.render()[0] == blob(content)
    assert archive.verify().ok


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("one\ntwo", "one"),
        ("", ""),
        ("\nsecond", ""),
        ("x" * 80, "x" * 50),
        ("e\u0301" * 40, "e\u0301" * 25),
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467" * 20, "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 10),
        ("a\u2028b", "a"),
        ("\ud83d x", "\ufffd x"),
    ],
)
def test_a_label_is_the_first_line_up_to_50_code_points_and_cuts_no_grapheme(text: str, label: str) -> None:
    """A family of five code points stands whole or not at all."""
    assert messages.label([{"role": "user", "parts": [{"type": "text", "content": text}]}], of_reply=False) == label


def test_a_reply_without_words_is_labelled_by_its_first_calls_description() -> None:
    """Prose wins when there is any; neither gives an empty label."""
    call = {"type": "tool_call", "id": "c", "name": "ral", "arguments": {"cmd": "ls", "description": "list files\nall"}}

    assert messages.label([{"role": "assistant", "parts": [call]}], of_reply=True) == "list files"
    assert (
        messages.label([{"role": "assistant", "parts": [{"type": "text", "content": "hi"}, call]}], of_reply=True)
        == "hi"
    )
    assert messages.label([{"role": "assistant", "parts": [{**call, "arguments": {}}]}], of_reply=True) == ""
