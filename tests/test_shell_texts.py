"""Lines to texts: when a text is whole is what the door says of it, and long ones are not read over and over."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exarch_sql.door import Limits, Malformed, parser
from exarch_sql.shell import texts
from exarch_sql.shell.texts import Texts, wants_more


def made(*lines: str) -> list[str]:
    """The texts that lines make, and what is left at the end."""
    making = Texts()
    found = [text for line in lines if (text := making.add(line)) is not None]
    rest = making.rest()
    return [*found, rest] if rest else found


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("`evict [from: 1,", True),
        ("let x =", True),
        ("case $x", True),
        ("{ |x|", True),
        ("'open", True),
        ('"open', True),
        ("#'it's'", True),
        ("`survey", False),
        ("", False),
        ("`survey |", False),
        ("]", False),
        ("[" * 80, False),
        (".sql SELECT '", False),
        (".5 [", True),
        ("[.5,", True),
    ],
)
def test_a_text_and_whether_it_goes_on(text: str, more: bool) -> None:
    """What is wrong anyway is not waited for, nor is a command."""
    assert wants_more(text) is more
    if more:
        with pytest.raises(Malformed) as refused:
            parser.parse(text)
        assert refused.value.incomplete


PIECES = st.sampled_from(
    ["[", "]", "{", "}", "{ |x|", "'", '"', "#'", "'#", "!{", "$[", "(", ")", "[:", ",", "a: ", "let x =", "1", "$x", "`t", "# c",
     "|", ";", "case $x", "a", ".5", ".x"]
)  # fmt: skip
LINES = st.lists(st.lists(PIECES, max_size=5).map(lambda pieces: " ".join(pieces) + "\n"), max_size=8)


@given(LINES)
@example(["[\n", "1\n", "2, [3]\n", "]\n", "7\n"])
@example(["'\n", "[\n", "'\n"])
@example(['"\n', "!{ [\n", "] }\n", '"\n'])
def test_a_text_is_the_first_run_of_lines_that_does_not_go_on(lines: list[str]) -> None:
    """The short cut for long texts may only put off what is refused anyway."""
    plain: list[str] = []
    text = ""
    for line in lines:
        text += line
        if not wants_more(text):
            plain.append(text)
            text = ""
    expected = [*plain, text] if text else plain
    found = made(*lines)

    assert "".join(found) == "".join(lines)
    for text, short in zip(expected, found, strict=False):
        if text == short:
            continue
        assert short.startswith(text), "no text ends earlier"
        with pytest.raises(Malformed) as refused:
            parser.parse(text)
        assert not refused.value.incomplete, "only what is refused is told later"
        break


def test_a_long_list_a_row_a_line_takes_time_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line is read once, not all lines before it again: 400 rows took half a minute so."""
    read = 0
    lexer = texts.Lexer

    class Counting(lexer):  # type: ignore[valid-type,misc]
        def __init__(self, text: str, meter: object) -> None:
            nonlocal read
            read += len(text)
            super().__init__(text, meter)

    monkeypatch.setattr(texts, "Lexer", Counting)
    rows = [f"  [bytes: {number}, kind: 'own', location: `under [from: 1, to: 2]],\n" for number in range(2000)]
    start = time.monotonic()
    (text,) = made("let rows = [\n", *rows, "]\n")

    assert text.count("\n") == 2002
    assert read < 4 * len(text)
    assert time.monotonic() - start < 30


def test_a_text_without_an_end_is_given_up_where_a_door_reads_no_further() -> None:
    """Then it is refused by its size, and the next line is a text again."""
    line = "x" * 99 + "\n"
    (first, *rest) = made("'\n", *[line] * (Limits().source_bytes // 100 + 1), "7\n")

    assert len(first) > Limits().source_bytes
    assert rest == ["7\n"]
