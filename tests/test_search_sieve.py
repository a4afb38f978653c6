"""The sieve looks for a pattern in the raw JSON of many records at once: it may let too much through, and never too little."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from searching import eager
from test_patterns_agreement import examples

from exarch_sql import Archive, messages
from exarch_sql.errors import Refused
from exarch_sql.patterns import compile_pattern
from exarch_sql.search import index
from exarch_sql.search import sieve as sieving
from exarch_sql.search.sieve import sieve
from exarch_sql.search.texts import Passage, passages

if TYPE_CHECKING:
    from pathlib import Path


def spellings(value: Any) -> dict[str, str]:
    """The ways in which a writer, ours or another, may spell the same JSON."""
    ours = messages.dumps(value)
    return {
        "ours": ours,
        "escaped": json.dumps(value),
        "spaced": json.dumps(value, indent=2, ensure_ascii=True),
        "slashed": ours.replace("/", "\\/"),
        "letters": ours.replace("a", "\\u0061") if '"a"' not in ours else ours,
    }


def bodies(text: str) -> list[bytes]:
    """Records that say the text: as text, as a call, as its result, of every shape, in every spelling."""
    call = {"type": "tool_call", "id": "c", "name": "sh"}
    result = {"type": "tool_call_response", "id": "c"}
    parts: list[dict[str, Any]] = [
        {"type": "text", "content": text},
        {"type": "reasoning", "content": text},
        {**call, "arguments": {"k": text, "more": [text]}},
        {**call, "arguments": json.dumps({"k": text})},
        {**call, "arguments": text},
        {**result, "response": text},
        {**result, "response": {"k": text, "n": 1e20}},
        {**result, "response": [text, {"type": "text", "text": text}]},
        {**result, "response": 41.0},
        {**result, "response": True},
    ]
    said = [{"role": "assistant", "parts": [part]} for part in parts]
    return [spelled.encode() for message in said for spelled in spellings([message]).values() if readable(spelled)]


def readable(spelled: str) -> bool:
    """Whether a spelling is JSON: escaping letters also meets those of `null` and the like."""
    try:
        json.loads(spelled)
        spelled.encode()
    except ValueError:
        return False
    return True


@given(examples(), st.integers(1, 5))
@settings(max_examples=100, suppress_health_check=list(HealthCheck))
def test_no_record_with_a_match_is_left_out(example: tuple[str, list[str]], size: int) -> None:
    """Made patterns over made texts, in batches of several sizes."""
    pattern, texts = example
    try:
        compiled = compile_pattern(pattern)
    except Refused:
        reject()
    filter_ = sieve(pattern)
    if filter_ is None:
        return
    batch = [(seq, seq, body) for seq, body in enumerate(body for text in texts for body in bodies(text))]
    for start in range(0, len(batch), size):
        part = batch[start : start + size]
        kept = filter_.sifted(part)
        assert set(kept) <= set(part)
        for record in part:
            if record not in kept:
                assert not any(compiled.matches(passage.text) for passage in passages(*record)), (pattern, record)


YES = ("FAILED", "fa.*led", r"\d{3}-\d{4}", "(?i)ключ|失败", "a/b", "[a-c]x+")
NO = (".", "", "^$", r"\w+", '"', "(?:abc)?", r"a|\t")


@pytest.mark.parametrize(("pattern", "filters"), [*((yes, True) for yes in YES), *((no, False) for no in NO)])
def test_it_filters_what_it_can_vouch_for_and_nothing_else(pattern: str, filters: bool) -> None:
    """A filter that always lets everything through would be right as well, and useless."""
    filter_ = sieve(pattern)
    assert (filter_ is not None) == filters
    if filter_ is not None:
        assert filter_.sifted([(1, 1, b'[{"role":"user","parts":[{"type":"text","content":"none of these"}]}]')]) == []


@pytest.mark.parametrize(
    ("response", "pattern"),
    [
        ('{"n":100e18}', r"1e\+20"),
        ('{ "n" : 1 }', '"n":1}'),
        ("1E2", r"^100\.0$"),
        (" true", "true"),
        ('{"a b":[]}', "a b.:"),
    ],
)
def test_a_result_that_is_no_text_is_searched_as_its_json_written_anew(response: str, pattern: str) -> None:
    """Numbers and blanks are then spelled otherwise than in the body, so the raw bytes say nothing."""
    body = f'[{{"role":"tool","parts":[{{"type":"tool_call_response","id":"c","response":{response}}}]}}]'.encode()
    (passage,) = passages(1, 1, body)
    assert compile_pattern(pattern).matches(passage.text)
    filter_ = sieve(pattern)
    assert filter_ is None or filter_.sifted([(1, 1, body)]) == [(1, 1, body)]


def test_it_gives_up_where_too_much_goes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filtering what is then kept costs time twice."""
    monkeypatch.setattr(sieving, "TRIAL_BYTES", 300)
    hay, needle = (1, 1, b"hay " * 10), (2, 2, b"needle " * 10)
    useful, useless = sieve("needle"), sieve("needle")
    assert useful is not None
    assert useless is not None
    for _ in range(10):
        assert useful.sifted([hay, hay, needle]) == [needle]
    for _ in range(10):
        useless.sifted([needle])
    assert useless.sifted([hay, needle]) == [hay, needle]


def test_what_the_index_names_is_sifted_before_it_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that have all trigrams and yet no match: or a search with an index may take longer than one without."""
    eager(monkeypatch)
    decoded: list[int] = []

    def counted(seq: int, turn: int, body: bytes) -> list[Passage]:
        decoded.append(turn)
        return passages(seq, turn, body)

    with Archive.open(tmp_path / "a.exarch", durability="off") as archive:
        for place in range(20):
            archive.trunk.prompt("needle" if place == 7 else "nee eed edl dle")
            archive.trunk.assistant("ok")
        archive.reindex()
        monkeypatch.setattr("exarch_sql.search.tally.passages", counted)
        found = archive.trunk.grep("needle")
        with archive._store.reading() as db:
            opened = index.opened(db)
            assert opened is not None
            named = list(opened.asked(compile_pattern("needle").required()).turns(archive.trunk.number))
    assert [hit.from_ for hit in found.hits] == decoded
    assert len(named) == 20
