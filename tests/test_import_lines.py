"""Bytes become objects or kept damage, whatever they are; a transcript is known by its content."""

from __future__ import annotations

import hashlib
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exarch_sql.errors import Refused
from exarch_sql.importers.detect import EMPTY, detect
from exarch_sql.importers.lines import KEPT_BYTES, lines, parse

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("abc", max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("abc", max_size=5), inner, max_size=2),
    max_leaves=4,
)
WHOLE = b'{"type":"user","uuid":"u1","n":18446744073709551615}'


def test_a_whole_object_is_taken_as_it_is() -> None:
    """64-bit ids and big numbers stay exact."""
    parsed = parse(WHOLE)
    assert parsed.objects == ({"type": "user", "uuid": "u1", "n": 18446744073709551615},)
    assert parsed.damage is None


def test_two_objects_on_a_line_are_two_objects() -> None:
    """A writer that lost a line feed (13 lines of 12 real snapshots) costs neither half."""
    parsed = parse(WHOLE + b'{"type":"summary"}')
    assert [found["type"] for found in parsed.objects] == ["user", "summary"]
    assert parsed.damage is None


def test_the_whole_half_of_a_broken_line_is_taken_and_the_line_is_kept() -> None:
    """The object before the break is no less whole for what follows it."""
    raw = WHOLE + b'{"type":"sum'
    parsed = parse(raw)
    assert [found["type"] for found in parsed.objects] == ["user"]
    assert parsed.cut_short
    assert parsed.damage is not None
    assert (parsed.damage.length, parsed.damage.sha256) == (len(raw), hashlib.sha256(raw).hexdigest())


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b'{"retryInMs":[REDACTED_PHONE]312349}', "no JSON"),
        (b'}},{"type":"user"}', "no JSON"),
        (b"// a comment before the first object", "a comment"),
        (b"null", "no object"),
        (b"[1, 2]", "no object"),
        (b"\xff\xfe\x00", "invalid UTF-8"),
        (b"\x00\x00\x00", "no JSON"),
        (b'{"a":' * 100_000, "no JSON"),
        (b'{"a":' + b"[" * 600 + b"]" * 600 + b"}", "nested too deep"),
        (b"1" * 5000, "no JSON"),
    ],
)
def test_what_is_no_object_is_kept_with_its_length_and_hash(raw: bytes, what: str) -> None:
    """Nothing a redactor, a crash or a stray writer leaves raises anything, and nothing is dropped unseen."""
    parsed = parse(raw)
    assert parsed.objects == ()
    assert parsed.damage is not None
    assert parsed.damage.what == what
    assert parsed.damage.sha256 == hashlib.sha256(raw).hexdigest()
    assert len(parsed.damage.text) <= KEPT_BYTES


def test_invalid_utf8_inside_an_object_is_taken_with_its_marks_and_the_line_is_kept() -> None:
    """The object is worth having; that it was repaired is on record."""
    parsed = parse(b'{"type":"user","text":"caf\xe9"}')
    assert parsed.objects == ({"type": "user", "text": "caf�"},)
    assert parsed.damage is not None
    assert parsed.damage.what == "invalid UTF-8"
    assert not parsed.cut_short


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a":"\\ud83d"}', "\ud83d"),
        (b'{"a":"x\\u0000y"}', "x\0y"),
        (b'{"a":1e400}', "1e400"),
        (b'{"a":NaN}', "NaN"),
        (b'\xef\xbb\xbf{"a":1}', 1),
    ],
)
def test_what_other_readers_choke_on_is_read(raw: bytes, value: object) -> None:
    """Half surrogates and NULs come back as they were said; a number JSON cannot write stays its text."""
    parsed = parse(raw)
    assert parsed.objects == ({"a": value},)
    assert parsed.damage is None


@given(st.binary(max_size=200))
def test_no_bytes_raise_and_all_are_accounted_for(raw: bytes) -> None:
    """Either a line is blank, or it gives objects, or it gives damage."""
    parsed = parse(raw)
    assert parsed.objects or parsed.damage or not raw.strip(b" \t\r\n")


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3), min_size=1, max_size=4))
def test_objects_glued_together_come_apart(values: list[dict[str, str]]) -> None:
    """However many there are and whatever their strings hold."""
    raw = b"".join(json.dumps(value).encode() for value in values)
    assert list(parse(raw).objects) == values


def test_lines_know_their_offset_and_whether_they_ended() -> None:
    """A late result is found again by its offset; a line without a line feed may still grow."""
    found = list(lines(io.BytesIO(b"ab\n\ncd")))
    assert [(line.offset, line.raw, line.ended) for line in found] == [
        (0, b"ab", True),
        (3, b"", True),
        (4, b"cd", False),
    ]


@pytest.mark.parametrize("length", [65, 3 * 1024 * 1024])
def test_a_line_too_long_to_hold_is_measured_and_the_next_one_is_read(length: int) -> None:
    """Memory is bounded by the limit, not by what a broken writer left."""
    raw = b"x" * length + b"\n"
    first, second = lines(io.BytesIO(raw + WHOLE), longest=64)
    assert first.oversize is not None
    assert (first.oversize.length, first.oversize.sha256) == (len(raw), hashlib.sha256(raw).hexdigest())
    assert (second.offset, second.raw) == (len(raw), WHOLE)


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b'{"parentUuid":null,"type":"user","uuid":"u1","sessionId":"s"}\n', "claude-code"),
        (b'// shared\n\n{"type":"summary","summary":"x","leafUuid":"u"}\n', "claude-code"),
        (b'{"type":"file-history-snapshot","messageId":"m"}\n', "claude-code"),
        (b'{"timestamp":"t","type":"session_meta","payload":{}}\n', "codex"),
        (b'{"record_type":"state"}\n', "codex"),
        (b'{"at_unix_ms":1,"record":{"Display":{}}}\n', "exarch-record"),
        (b'{\n  "info": {"id": 1},\n  "messages": [\n', "opencode"),
        (b'{"sessionId":"s","projectHash":"h","messages":[]}', "gemini-cli"),
        (b'{"role":"user","content":"hi"}\n', "openai-chat"),
        (b" \n\n", EMPTY),
        (b"", EMPTY),
    ],
)
def test_a_format_is_told_by_content(head: bytes, name: str) -> None:
    """Real files come under wrong names and with wrong labels."""
    assert detect(head) == name


def test_a_first_line_longer_than_what_is_looked_at_is_still_told() -> None:
    """Lines of 1.4 MB were seen; a pasted image makes them longer."""
    head = b'{"parentUuid":null,"sessionId":"s","type":"user","uuid":"u","message":{"content":"' + b"x" * 5_000_000
    assert detect(head[: 4 * 1024 * 1024]) == "claude-code"


@pytest.mark.parametrize("head", [b"SQLite format 3\0...", b"# aider chat started at", b'{"a":1}\n'])
def test_what_no_known_program_wrote_is_refused_with_what_is_taken(head: bytes) -> None:
    """The refusal names what would work."""
    with pytest.raises(Refused, match=r"claude-code|open it as an archive"):
        detect(head)


@given(st.dictionaries(st.sampled_from(["type", "sessionId", "uuid", "parentUuid", "messages", "info"]), JSON))
def test_any_object_is_told_or_refused(line: dict[str, object]) -> None:
    """A list in place of a type raised a TypeError."""
    try:
        name = detect(json.dumps(line).encode())
    except Refused as refusal:
        assert "claude-code" in str(refusal)  # noqa: PT017  (either way is right; only a bare error is not)
    else:
        assert name


@pytest.mark.parametrize("type_", [["user"], {"a": 1}, None, 7, True])
def test_a_first_line_of_an_odd_type_is_refused_once_and_clearly(type_: object) -> None:
    """Nothing of it says which program wrote it."""
    with pytest.raises(Refused, match="no transcript of a known program"):
        detect(json.dumps({"type": type_, "sessionId": "s"}).encode())
