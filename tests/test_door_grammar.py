"""The door's language as text: what parses to which tree, what is refused where, and that a printed tree reads back equal."""

from __future__ import annotations

from typing import Any

import lark
import pytest
from door_host import MemoryLog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from regenerate_door_trees import ACCEPTED, REFUSED, load

from exarch_sql import resources
from exarch_sql.door import Door, DoorRefused, Malformed, Overrun, parser, printer, tree
from exarch_sql.door.lexer import RESERVED

# --- corpora ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", load(ACCEPTED), ids=lambda case: case["source"][:60])
def test_an_accepted_line_has_its_tree(case: dict[str, Any]) -> None:
    """The corpus is the language's definition by example; the script beside it rewrites the trees."""
    assert tree.outline(parser.parse(case["source"])) == case["tree"]


@pytest.mark.parametrize("case", load(ACCEPTED), ids=lambda case: case["source"][:60])
def test_an_accepted_line_printed_reads_back_as_the_same_tree(case: dict[str, Any]) -> None:
    """Blocks print by the printer, so it must lose nothing of any construct."""
    program = parser.parse(case["source"])

    assert parser.parse(printer.program(program)) == program


@pytest.mark.parametrize("case", load(REFUSED), ids=lambda case: case["source"][:60])
def test_a_refused_line_says_what_and_where(case: dict[str, Any]) -> None:
    """Class, position and message: a reader of the refusal finds the place without counting."""
    log = MemoryLog.of_length(60, unclosed=60)
    with pytest.raises(DoorRefused) as caught:
        Door(log).run(case["source"])

    error = caught.value
    assert (type(error).__name__, [error.line, error.column], error.reason) == (
        case["class"],
        case["at"],
        case["reason"],
    )
    assert log.writes == 0


@pytest.mark.parametrize("case", load(REFUSED), ids=lambda case: case["source"][:60])
def test_the_caret_stands_under_the_place(case: dict[str, Any]) -> None:
    """The message shows the line and a caret, in as many columns as the position says."""
    with pytest.raises(DoorRefused) as caught:
        Door(MemoryLog.of_length(60, unclosed=60)).run(case["source"])

    line, column = case["at"]
    shown = str(caught.value).split("\n")
    caret = next(index for index, text in enumerate(shown) if text.strip() == "^")
    assert len(shown[caret]) - 1 == 4 + column - 1
    assert shown[caret - 1][4:].rstrip() == case["source"].split("\n")[line - 1].replace("\u200b", "\ufffd").rstrip()


# --- places: spans, adjacency, the colon ------------------------------------------------------------------------------


def test_every_node_knows_its_place_and_places_are_no_part_of_equality() -> None:
    """Refusals point at nodes; tests compare trees of different spellings."""
    first, second = parser.parse("let x = [a: 1]"), parser.parse("let  x =  [ a:  1 ]")
    statement = first.statements[0]

    assert first == second
    assert isinstance(statement, tree.Let)
    assert statement.span == (0, 14)
    assert statement.value.span == (8, 14)
    assert second.statements[0].span == (0, 19)


@pytest.mark.parametrize("blank", [" ", "\t", "\n", "\r", " # so\n"])
def test_a_colon_before_a_blank_is_punctuation_and_any_other_is_part_of_a_word(blank: str) -> None:
    """`[from:1]` is a one-element list: the rule is the language's, so the refusals explain it."""
    assert parser.parse(f"[a:{blank}1]") == parser.parse("[a: 1]")
    assert parser.parse("[a:1]") == parser.parse("[ a:1 ]") != parser.parse("[a: 1]")


@pytest.mark.parametrize("after", ["]", ", b: 2]"])
def test_a_colon_before_a_bracket_or_a_comma_is_punctuation_too(after: str) -> None:
    """So a value is missing there, and `[:]` is the empty map."""
    with pytest.raises(Malformed, match="a value is missing before"):
        parser.parse(f"[a:{after}")
    assert parser.parse("[:]") == parser.parse("[: ]") == parser.parse("[:,]")


def test_a_bracket_indexes_only_when_nothing_stands_before_it() -> None:
    """`$x[k]` is one value and `$x [k]` are two."""
    assert parser.parse("f $x[k]") != parser.parse("f $x [k]")
    assert parser.parse("f 'a'[0]") != parser.parse("f 'a' [0]")
    assert parser.parse("f [1][0]") != parser.parse("f [1] [0]")


def test_a_newline_inside_square_brackets_is_a_blank_and_inside_braces_a_separator() -> None:
    """The innermost open bracket decides."""
    assert parser.parse("[1,\n{ a\nb },\n2]") == parser.parse("[1, { a; b }, 2]")
    with pytest.raises(Malformed, match="comma is missing"):
        parser.parse("[1\n2]")


def test_only_the_text_is_read_where_a_word_could_be_taken_for_a_number() -> None:
    """A numeral that no 64-bit Int or finite Float holds is a word, that is, text."""
    assert Door(MemoryLog.of_length(1)).run("[9223372036854775808, 1.0e999, 1e6, 0x10, 1_000]").value == (
        "9223372036854775808",
        "1.0e999",
        "1e6",
        "0x10",
        "1_000",
    )


def test_the_nesting_limit_is_64_whatever_nests() -> None:
    """Brackets, braces, splices, tags and forces all count, so that nothing after the lexer recurses without bound."""
    for opening, closing in [("[", "]"), ("{ ", " }"), ("!{", "}"), ("$[", "]"), ('"$[', ']"'), ("`a ", ""), ("!", "")]:
        core = "$x" if opening == "!" else "1"
        parser.parse(opening * 32 + core + closing * 32)
        with pytest.raises(Overrun, match="nests deeper than 64"):
            parser.parse(opening * 65 + core + closing * 65)


def test_the_grammar_has_no_ambiguity_but_the_one_it_names() -> None:
    """Every conflict of the tables is a tag taking the atom after it; anything else would be a mistake in the grammar."""
    reported: list[str] = []

    class Nothing(lark.lexer.Lexer):
        def __init__(self, _conf: Any) -> None:
            pass

        def lex(self, _data: Any) -> Any:
            return iter(())

    handler = lark.logger.handlers[0]
    emit, handler.emit = handler.emit, lambda record: reported.append(record.getMessage())  # type: ignore[method-assign]
    level = lark.logger.level
    lark.logger.setLevel("DEBUG")
    try:
        lark.Lark(resources.text(parser.GRAMMAR), parser="lalr", lexer=Nothing, debug=True)
    finally:
        handler.emit = emit  # type: ignore[method-assign]
        lark.logger.setLevel(level)

    conflicts = [text for text in reported if "conflict" in text or text.strip().startswith("*")]
    rules = {text.strip() for text in conflicts if text.strip().startswith("*")}
    assert conflicts
    assert rules == {"* <tagged : TAG>"}


TOO_SOON = ("[1,", "{ a", "'a", '"a', "let x =", "case $x", "#'a")
WRONG = ("[1}", "a | b", "let 5 = 1")
WHOLE = ("", "echo a")


@pytest.mark.parametrize(
    ("source", "incomplete"),
    [
        *((source, True) for source in TOO_SOON),
        *((source, False) for source in WRONG),
        *((source, None) for source in WHOLE),
    ],
)
def test_a_source_that_only_stops_too_soon_says_so(source: str, incomplete: bool | None) -> None:
    """A prompt asks for another line instead of refusing; None where the source is whole."""
    if incomplete is None:
        parser.parse(source)
    else:
        with pytest.raises(Malformed) as caught:
            parser.parse(source)
        assert caught.value.incomplete is incomplete


# --- sentences of the grammar itself ----------------------------------------------------------------------------------
# The tokens depend on their place, so each is written behind a mark of how it stands: apart from the last, or right after it.

APART, CLOSE = "\ue001", "\ue002"
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,4}", fullmatch=True, alphabet=st.characters(codec="ascii")).filter(
    lambda name: name not in RESERVED
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="'#\r\ue001\ue002"), max_size=6)
WRITTEN: dict[str, st.SearchStrategy[str]] = {
    "LET": st.just(APART + "let"),
    "RETURN": st.just(APART + "return"),
    "CASE": st.just(APART + "case"),
    "UNIT": st.just(APART + "()"),
    "BOOL": st.sampled_from([APART + "true", APART + "false"]),
    "INT": st.integers(-(2**63), 2**63 - 1).map(lambda number: f"{APART}{number}"),
    "FLOAT": st.sampled_from(["0.5", "-2.25", "1.5e3", "3."]).map(lambda number: APART + number),
    "TEXT": TEXTS.flatmap(
        lambda text: st.sampled_from([f"{APART}'{text}'", f"{APART}#'{text}'#", f"{APART}##'{text}'##"])
    ),
    "WORD": NAMES.map(lambda name: APART + name),
    "VARIABLE": NAMES.map(lambda name: f"{APART}${name}"),
    "TAG": NAMES.map(lambda name: f"{APART}`{name}"),
    "BANG": st.just(APART + "!" + CLOSE),
    "SPREAD": st.just(APART + "..." + CLOSE),
    "LBRACE": st.just(APART + "{" + APART),
    "RBRACE": st.just(APART + "}"),
    "LSQB": st.just(APART + "["),
    "RSQB": st.just("]"),
    "INDEX_OPEN": st.just(CLOSE + "["),
    "MAP_OPEN": st.just(APART + "[:" + APART),
    "EXPR_OPEN": st.just(APART + "$["),
    "DQ_OPEN": st.just(APART + '"' + CLOSE),
    "CHUNK": st.sampled_from([" words ", " \\n\\u{e9} ", " $5 - 3! ", " [0] "]).map(lambda text: CLOSE + text),
    "DQ_CLOSE": st.just(CLOSE + '"'),
    "COMPARE": st.sampled_from([APART + sign + APART for sign in ("==", "!=", "<", ">", "<=", ">=")]),
    "PLUS_MINUS": st.sampled_from([APART + "+" + APART, APART + "-" + APART]),
    "TIMES": st.sampled_from([APART + sign + APART for sign in "*/%"]),
    "NOT": st.just(APART + "not" + APART),
    "_OR": st.just(APART + "||" + APART),
    "_AND": st.just(APART + "&&" + APART),
    "_LPAR": st.just(APART + "("),
    "_RPAR": st.just(APART + ")"),
    "_SEP": st.sampled_from([APART + "; ", "\n", " # comment\n"]),
    "_EQ": st.just(APART + "=" + APART),
    "_BAR": st.just(APART + "|" + APART),
    "_COMMA": st.just("," + APART),
    "_COLON": st.just(":" + APART),
}


class Unlexed(lark.lexer.Lexer):
    """The grammar is only read here; hypothesis writes its tokens."""

    def __init__(self, _conf: Any) -> None:
        pass

    def lex(self, _data: Any) -> Any:
        """Nothing."""
        return iter(())


def written(sentence: str) -> str:
    """The marked tokens as text: a mark of closeness wins over the marks of apartness around it."""
    while APART + CLOSE in sentence or CLOSE + APART in sentence:
        sentence = sentence.replace(APART + CLOSE, CLOSE).replace(CLOSE + APART, CLOSE)
    return sentence.replace(CLOSE, "").replace(APART, " ").strip(" ")


GRAMMAR = lark.Lark(resources.text(parser.GRAMMAR), parser="lalr", lexer=Unlexed, start="start")
SENTENCES = from_lark(GRAMMAR, start="start", explicit=WRITTEN).map(written)
# What the grammar leaves to the builder: which elements go together, and which words are names.
BY_THE_BUILDER = (
    "a bare value among fields",
    "a record is updated from one",
    "given twice",
    "binds",
    "are called",
    "two arms",
    "has nothing before it",
    "never negative",
    "nests deeper",
    "a key with a splice",
    "a tag is never a key",
    "a bare word in $[...]",
    "$[...] holds",
    "must first close",
)


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(SENTENCES)
def test_a_sentence_of_the_grammar_parses_prints_and_parses_back_equal(sentence: str) -> None:
    """Grammar, lexer, builder and printer agree on the whole language, not on the lines somebody thought of."""
    refused = ""
    try:
        program = parser.parse(sentence)
    except (Malformed, Overrun) as error:
        refused = error.reason
    if refused:
        assert any(words in refused for words in BY_THE_BUILDER), (sentence, refused)
    else:
        assert parser.parse(printer.program(program)) == program


def test_most_sentences_of_the_grammar_are_not_left_to_the_builder() -> None:
    """The test above would pass if everything were refused: at least half of its sentences must parse."""
    parsed = []

    @settings(max_examples=60, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(SENTENCES)
    def count(sentence: str) -> None:
        try:
            parser.parse(sentence)
        except DoorRefused:
            parsed.append(0)
        else:
            parsed.append(1)

    count()
    assert sum(parsed) >= len(parsed) / 2
