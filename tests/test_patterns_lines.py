"""A pattern is applied to one line at a time, as RE2 reads it, however the text is searched."""

from __future__ import annotations

import random
import re

import pytest

from exarch_sql.patterns import compile_pattern
from exarch_sql.patterns import compiled as compiled_module

LINES = "alpha\nBeta 1\n\nαβγ Δ\r\nkelvin \u212a\nend\r"


def lines(pattern: str, text: str) -> list[tuple[int, str]]:
    """The matching lines with their numbers."""
    return list(compile_pattern(pattern).matching_lines(text))


@pytest.mark.parametrize(
    ("pattern", "numbers"),
    [
        ("^$", [3]),
        ("a$", [1]),
        ("Δ$", [4]),
        (r"\AB", [2]),
        (r"\Aalpha\z", [1]),
        ("(?-m)^Beta", [2]),
        ("(?-m:1$)", [2]),
        ("(?m)^k", [5]),
        ("(?s)a.B", []),
        ("(?i)K$", [5]),
        ("(?i)^BETA", [2]),
        ("[^x]$", [1, 2, 4, 5, 6]),
        (r"\s", [2, 4, 5, 6]),
        (r"a\s", [2]),
        (r"\bend\b", [6]),
        (r"\D\z", [1, 4, 5, 6]),
        (r"\n", []),
        (r"\QBeta", [2]),
        (r"e\Q", [2, 5, 6]),
        (r"a\nB", []),
        ("", [1, 2, 3, 4, 5, 6]),
        ("x*", [1, 2, 3, 4, 5, 6]),
        (r"\C\C\C\C\C\C\C", [4, 5]),
        (r"(?i:beta)|(?-i)ALPHA", [2]),
    ],
)
def test_anchors_flags_and_classes_see_a_line_as_a_whole_text(pattern: str, numbers: list[int]) -> None:
    """Neither a line's neighbours nor its ending are there to be matched."""
    assert [number for number, _ in lines(pattern, LINES)] == numbers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\n", [""]),
        ("\n\n", ["", ""]),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\r\n", ["a"]),
        ("a\r\r\n", ["a\r"]),
        ("a\r", ["a\r"]),
        ("\r\n", [""]),
        ("a\u2028b\x0bc\x85d\x1ee", ["a\u2028b\x0bc\x85d\x1ee"]),
        ("a\0b\nc", ["a\0b", "c"]),
    ],
)
def test_lines_end_at_lf_with_one_cr_dropped_and_no_empty_line_after_the_last(text: str, expected: list[str]) -> None:
    """The rule of the searches this one answers like; other line separators are ordinary characters."""
    assert [line for _, line in lines("", text)] == expected


@pytest.mark.parametrize("pattern", [r"\B", r"AkAA|\B", "x*", "$", r"\b|$"])
def test_a_line_is_found_once_however_often_it_matches(pattern: str) -> None:
    r"""RE2 lets ``\B`` match between the bytes of one character, and an empty match at the end where another stopped."""
    text = "A\u212aAA 日本 é\n日\n\u212a\u212a \u212a"
    assert lines(pattern, text) == [(number, line) for number, line in enumerate(text.split("\n"), 1)]


def test_a_lone_surrogate_stands_as_u_fffd_in_texts_and_patterns() -> None:
    """UTF-8 cannot carry it; what a tool emitted is still found, by what it is shown as or by any other lone surrogate."""
    assert lines("x.z", "x\ud800z") == [(1, "x\ufffdz")]
    assert lines("x\udc00z", "x\ud800z") == [(1, "x\ufffdz")]
    assert lines("\ufffd", "a\n\ud83d\n") == [(2, "\ufffd")]


@pytest.mark.parametrize(
    "pattern", ["needle", r"^needle\b", "(?i)NEEDLE", r"needle\z|\Aneedle", r"n\Cedle", "[m-o]e+dle"]
)
@pytest.mark.parametrize("call_bytes", [1, 100, 1 << 10, 1 << 20])
def test_a_text_longer_than_one_call_is_searched_across_all_its_calls(
    pattern: str, call_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text is handed to RE2 in pieces that end with a line; a line on either side of a cut is found once."""
    monkeypatch.setattr(compiled_module, "_CALL_BYTES", (1, call_bytes))
    size = max(1000, call_bytes)
    pick = random.Random(size)  # noqa: S311 - the same lines each time
    pieces = ["needle" if pick.random() < 0.001 else "hay" * pick.randrange(20) for _ in range(size // 20)]
    text = "\n".join(["needle", *pieces, "x" * size, "needle " + "y" * size, *pieces, "needle"])
    expected = [number for number, line in enumerate(text.split("\n"), 1) if line.startswith("needle")]
    ticks: list[None] = []
    compiled = compile_pattern(pattern)
    assert [number for number, _ in compiled.matching_lines(text, lambda: ticks.append(None))] == expected
    assert compiled.count([text]) == len(expected)
    assert len(ticks) > 2


def test_a_tick_that_raises_gives_up_the_search() -> None:
    """How a time budget and Ctrl-C end a search between two calls into RE2."""

    class GivenUpError(Exception):
        pass

    def give_up() -> None:
        raise GivenUpError

    compiled = compile_pattern("x")
    with pytest.raises(GivenUpError):
        compiled.count(["a\nb"], give_up)
    with pytest.raises(GivenUpError):
        compiled.matches("a\nb", give_up)
    with pytest.raises(GivenUpError):
        list(compiled.sift([("key", "a")], give_up))


@pytest.mark.parametrize("pattern", ["^$", "b$", "", r"\Ab", r"b\C", "z"])
def test_sifting_many_texts_finds_those_that_match_alone(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts searched together are neither joined nor told apart wrongly, wherever a batch ends."""
    texts = ["", "a\n", "\n", "b\nb\n", "cb", "b\r\n", "a\n\n", "", "bx", "z" * 50, "\r"] * 3
    monkeypatch.setattr(compiled_module, "_CALL_BYTES", (1, 16))
    compiled = compile_pattern(pattern)
    alone = [place for place, text in enumerate(texts) if compiled.matches(text)]
    assert list(compiled.sift(enumerate(texts))) == alone
    assert alone == [place for place, text in enumerate(texts) if lines(pattern, text)]


def test_long_texts_are_searched_by_far_fewer_calls_than_lines() -> None:
    """What makes a pattern without a literal fast: a megabyte a call, not a line a call."""
    text = "some words of a line\n" * 200_000
    ticks: list[None] = []
    assert compile_pattern(r"[a-z]+\d{3}").count([text], lambda: ticks.append(None)) == 0
    assert len(ticks) <= 6
    assert re.search(r"[a-z]+\d{3}", text) is None
