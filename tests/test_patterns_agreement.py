"""Made patterns over made texts: the fast search, the filter and the index never lose a line that RE2 matches.

The oracle is RE2 itself, asked once for each line alone. A pattern is made together with a text it probably matches, so
that examples have something to lose; letters in texts are swapped for their case partners, whatever the flags.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import apsw
import pytest
import re2
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from exarch_sql.errors import Refused
from exarch_sql.patterns import Pattern, compile_pattern, indexable, searchable
from exarch_sql.patterns.folding import fold
from exarch_sql.patterns.syntax import tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Case pairs that change length, letters of three cases or none, partners the index does not know, CJK, marks, controls.
LETTERS = "aAbBkK\u212asSſiIıİßẞéÉ\u0301\u0345µμΜςσΣтТᲄдДაᲐǅǆĸŉﬅﬆΐ\u1fd3ꙋꙊᲈɜꞫ日本語가😀𐐀𐐨Ꭰꭰ"
MARKS = "0129_ -.,:;!\"'#/[](){}^$|*+?\\\t\r\x0b\0\x7f\u2028\u0085\ufffd\ufffe\ud800\udfff"
CHARS = LETTERS + MARKS
CLASSES = (r"\d", r"\s", r"\w", r"\D", r"\S", r"\W", r"\pL", r"\p{Greek}", r"\PN", r"\p{^Lu}", r"\p{Any}")
NAMED = ("[:alpha:]", "[:^alpha:]", "[:digit:]", "[:space:]", "[:word:]", "[:upper:]")
SPECIAL = set("\\.+*?()|[]{}^$")

Made = tuple[str, str]  # a pattern, and a text it probably matches


def spelled(char: str) -> st.SearchStrategy[str]:
    """The ways to write one character outside a class."""
    code = ord(char)
    ways = [f"\\x{{{code:x}}}"]
    if 0xD800 <= code <= 0xDFFF or char not in SPECIAL:
        ways.append(char)
    if char in SPECIAL:
        ways.append("\\" + char)
    if code < 0x100:
        ways.append(f"\\x{code:02x}")
    if code < 0o400:
        ways.append(f"\\{code:03o}")
    return st.sampled_from(ways)


@st.composite
def characters(draw: st.DrawFn) -> Made:
    """One character, in some spelling."""
    char = draw(st.sampled_from(CHARS))
    return draw(spelled(char)), char


@st.composite
def words(draw: st.DrawFn) -> Made:
    """A few letters, enough for a trigram."""
    text = draw(st.text("abkKsStiAB тд日本", min_size=2, max_size=6))
    return text, text


@st.composite
def quotations(draw: st.DrawFn) -> Made:
    r"""``\Q...\E``, its end left in."""
    text = draw(st.text("ab.*\\Q[]", max_size=4))
    assume("\\E" not in text and not text.endswith("\\"))
    return "\\Q" + text + "\\E", text


@st.composite
def brackets(draw: st.DrawFn) -> Made:
    """A class, with all that is odd about brackets and hyphens."""
    members: list[str] = []
    chars = draw(st.lists(st.sampled_from(CHARS.replace("\\", "").replace("[", "")), min_size=1, max_size=4))
    for char in chars:
        kind = draw(st.sampled_from(["plain", "hex", "range", "up", "set", "named"]))
        code = f"\\x{{{ord(char):x}}}"
        if kind == "range":
            members.append(f"{code}-\\x{{{ord(char) + draw(st.integers(0, 70)):x}}}")
        elif kind == "up":
            members.append(char + "-" + chr(ord(char) + 1) if char not in "]\ud800\udfff^-" else code)
        elif kind == "set":
            members.append(draw(st.sampled_from(CLASSES)))
        elif kind == "named":
            members.append(draw(st.sampled_from(NAMED)))
        else:
            members.append(char if kind == "plain" and char not in "]^" else code)
    negation = draw(st.sampled_from(["", "", "^"]))
    first = draw(st.sampled_from(["", "", "]", "-", "]-a"]))
    last = draw(st.sampled_from(["", "", "-"]))
    return f"[{negation}{first}{''.join(members)}{last}]", draw(st.sampled_from([*chars, "a", "]", "-"]))


NOTHING_CONSUMED = (
    "^",
    "$",
    r"\A",
    r"\z",
    r"\b",
    r"\B",
    "(?i)",
    "(?-i)",
    "(?s)",
    "(?m)",
    "(?-m)",
    "(?U)",
    "(?i-sm)",
    r"\Q\E",
)


def atoms() -> st.SearchStrategy[Made]:
    """What has no parts."""
    return st.one_of(
        characters(),
        words(),
        words(),
        words(),
        quotations(),
        brackets(),
        st.sampled_from(
            [(".", "x"), (".", "日"), (r"\d", "7"), (r"\s", "\t"), (r"\w", "k"), (r"\pL", "д"), (r"\W", "-")]
        ),
        st.sampled_from(
            [(r"\n", ""), (r"\C", "a"), ("\n", ""), ("{", "{"), ("]", "]"), ("a{01}", "a{01}"), ("b{,2}", "b{,2}")]
        ),
        st.sampled_from([(zero, "") for zero in NOTHING_CONSUMED]),
    )


@st.composite
def repeats(draw: st.DrawFn, inner: st.SearchStrategy[Made]) -> Made:
    """A part under a repetition operator."""
    pattern, text = draw(inner)
    low, high = draw(st.sampled_from([(0, 0), (0, 1), (0, 3), (1, 1), (1, 3), (2, 2), (2, 5), (3, 3), (4, 4), (5, 7)]))
    operator = draw(
        st.sampled_from(
            ["*", "+", "?", "*?", "+?", "??", f"{{{low},{high}}}", f"{{{low}}}", f"{{{low},}}", f"{{{low},{high}}}?"]
        )
    )
    between = draw(st.sampled_from(["", "", "", "(?i)", r"\Q\E"]))  # leaves no trace: the operator reaches past it
    times = draw(st.integers(0, 3))
    return pattern + between + operator, text * times if operator[0] in "*+?" else text * max(low, min(times, high))


@st.composite
def sequences(draw: st.DrawFn, inner: st.SearchStrategy[Made]) -> Made:
    """Parts one after the other."""
    parts = draw(st.lists(inner, min_size=2, max_size=4))
    return "".join(pattern for pattern, _ in parts), "".join(text for _, text in parts)


@st.composite
def alternations(draw: st.DrawFn, inner: st.SearchStrategy[Made]) -> Made:
    """One of several parts."""
    parts = draw(st.lists(inner, min_size=2, max_size=4))
    return "|".join(pattern for pattern, _ in parts), draw(st.sampled_from([text for _, text in parts] + [""]))


@st.composite
def groups(draw: st.DrawFn, inner: st.SearchStrategy[Made]) -> Made:
    """A part in a group, with flags or a name."""
    pattern, text = draw(inner)
    opener = draw(st.sampled_from(["(", "(?:", "(?i:", "(?-m:", "(?s-i:", "(?P<n>", "(?<n>"]))
    return f"{opener}{pattern})", text


def made_patterns() -> st.SearchStrategy[Made]:
    """Patterns of up to a dozen atoms."""
    return st.recursive(
        atoms(),
        lambda inner: st.one_of(repeats(inner), sequences(inner), sequences(inner), alternations(inner), groups(inner)),
        max_leaves=12,
    )


@st.composite
def plain_parts(draw: st.DrawFn) -> Made:
    """A part out of few letters whose match is surely known: where trigrams are joined, cut and counted."""
    letters = st.sampled_from("abckтაß")
    one, two, three = draw(letters), draw(letters), draw(letters)
    low = draw(st.integers(0, 4))
    high = low + draw(st.integers(0, 2))
    times = draw(st.integers(low, high))
    unit = draw(st.sampled_from([one, one + two, one + two + three]))
    kind = draw(
        st.sampled_from(["letter", "word", "class", "outside", "range", "counted", "open", "either", "maybe", "any"])
    )
    made = {
        "letter": (one, one),
        "word": (one + two + three, one + two + three),
        "class": (f"[{one}{two}]", draw(st.sampled_from([one, two]))),
        "outside": (f"[^{one}{two}]", draw(st.sampled_from([char for char in "abcde" if char not in (one, two)]))),
        "range": ("[a-c]", draw(st.sampled_from("abc"))),
        "counted": (f"(?:{unit}){{{low},{high}}}", unit * times),
        "open": (f"(?:{unit}){{{low},}}", unit * draw(st.integers(low, low + 3))),
        "either": (f"(?:{one}{two}|{three})", draw(st.sampled_from([one + two, three]))),
        "maybe": (f"{one}?", draw(st.sampled_from([one, ""]))),
        "any": (".", three),
    }
    return made[kind]


@st.composite
def plain_patterns(draw: st.DrawFn) -> Made:
    """Several plain parts in a row."""
    parts = draw(st.lists(plain_parts(), min_size=3, max_size=6))
    return "".join(pattern for pattern, _ in parts), "".join(text for _, text in parts)


def partner(char: str) -> str:
    """Another letter of the same case family, where Python knows one."""
    swaps = {"k": "\u212a", "s": "ſ", "т": "ᲄ", "д": "ᲁ", "ა": "Ა", "ß": "ẞ", "ﬅ": "ﬆ"}
    return swaps.get(char) or (char.swapcase() if len(char.swapcase()) == 1 else char)


@st.composite
def examples(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A pattern and some texts, the pattern's own probable match spread among their lines."""
    pattern, sample = draw(st.one_of(made_patterns(), plain_patterns()))
    left_open, last = draw(st.sampled_from([("", "")] * 6 + [("\\Q", ""), ("\\Qa*\\", "a*\\")]))
    pattern, sample = draw(st.sampled_from(["", "(?i)"])) + pattern + left_open, sample + last
    filling = st.text(st.sampled_from(CHARS + "ab  "), max_size=5)
    texts = []
    for _ in range(draw(st.integers(1, 3))):
        lines = []
        for _ in range(draw(st.integers(0, 3))):
            swapped = "".join(partner(char) if draw(st.booleans()) else char for char in sample[:24]) + sample[24:]
            core = draw(st.sampled_from([sample, swapped, swapped, ""]))
            edge = st.one_of(st.just(""), filling)
            lines.append(draw(edge) + core + draw(edge))
        ends = st.sampled_from(["\n", "\r\n", "\n\n"])
        texts.append("".join(line + draw(ends) for line in lines) + draw(st.sampled_from(["", "", "a", "\r", sample])))
    return pattern, texts


def lines_of(text: str) -> list[str]:
    """The lines of a text, written out plainly: split at LF, one CR before it dropped, no empty line at the end."""
    pieces = text.split("\n")
    last = pieces.pop()
    return [piece.removesuffix("\r") for piece in pieces] + ([last] if last else [])


def naive(pattern: str, text: str) -> list[tuple[int, str]]:
    """RE2's own answer, one line at a time."""
    options = re2.Options()
    options.log_errors = False
    compiled = re2.compile(searchable(pattern).encode(), options)
    numbered = enumerate(map(searchable, lines_of(text)), 1)
    return [(number, line) for number, line in numbered if compiled.search(line.encode())]


def compiled_or_skipped(pattern: str) -> Pattern:
    """The pattern compiled; an example RE2 refuses is no example."""
    try:
        return compile_pattern(pattern)
    except Refused:
        reject()


def trigrams(text: str) -> set[str]:
    """The index's tokens for a text, by the folding this package promises; where it is unsure, the character itself."""
    folded = "".join(fold(char) or char for char in indexable(text))
    return {folded[place : place + 3] for place in range(len(folded) - 2)}


TABLE = """
CREATE VIRTUAL TABLE texts USING fts5(
  text, content = '', detail = none, columnsize = 0, tokenize = 'trigram case_sensitive 0'
)
"""


def through(execute: Callable[..., Iterator[tuple[int]]]) -> Callable[[list[str], str], set[int]]:
    """A search of the texts through one connection's FTS5: the places of those it returns for an expression."""
    execute(TABLE)

    def found(texts: list[str], expression: str) -> set[int]:
        execute("INSERT INTO texts(texts) VALUES ('delete-all')")
        for place, text in enumerate(texts):
            execute("INSERT INTO texts(rowid, text) VALUES (?, ?)", (place, indexable(text)))
        return {row[0] for row in execute("SELECT rowid FROM texts WHERE texts MATCH ?", (expression,))}

    return found


def has_fts5() -> bool:
    """Whether Python's own SQLite has FTS5."""
    with sqlite3.connect(":memory:") as connection:
        return any(row[0] == "ENABLE_FTS5" for row in connection.execute("PRAGMA compile_options"))


@pytest.fixture(scope="module")
def indexes() -> Iterator[list[Callable[[list[str], str], set[int]]]]:
    """The FTS5 of apsw's SQLite, and of Python's own where it has one."""
    connection = apsw.Connection(":memory:")
    made = [through(connection.execute)]
    other = sqlite3.connect(":memory:", isolation_level=None)
    if has_fts5():
        made.append(through(other.execute))
    yield made
    connection.close()
    other.close()


MANY = settings(max_examples=400, suppress_health_check=list(HealthCheck))


@given(examples())
@MANY
def test_matching_lines_are_those_of_a_search_of_each_line_alone(example: tuple[str, list[str]]) -> None:
    """Searching a whole text at once answers exactly what RE2 answers for its lines one by one."""
    pattern, texts = example
    compiled = compiled_or_skipped(pattern)
    expected = [naive(pattern, text) for text in texts]
    assert [list(compiled.matching_lines(text)) for text in texts] == expected
    assert [compiled.count([text]) for text in texts] == [len(lines) for lines in expected]
    assert compiled.count(texts) == sum(map(len, expected))
    assert [compiled.matches(text) for text in texts] == [bool(lines) for lines in expected]
    assert list(compiled.sift(enumerate(texts))) == [place for place, lines in enumerate(expected) if lines]


@given(examples())
@MANY
def test_every_text_with_a_matching_line_satisfies_the_required_query(
    indexes: list[Callable[[list[str], str], set[int]]], example: tuple[str, list[str]]
) -> None:
    """No filter may lose a hit: by the query's own meaning, and through each FTS5 at hand."""
    pattern, texts = example
    compiled = compiled_or_skipped(pattern)
    matching = {place for place, text in enumerate(texts) if naive(pattern, text)}
    query = compiled.required()
    for place in matching:
        assert query.holds(trigrams(texts[place])), (pattern, texts[place], query)
        for line in naive(pattern, texts[place]):
            assert query.holds(trigrams(line[1])), (pattern, line, query)
    expression = query.to_fts5()
    if expression is not None and matching:
        for found in indexes:
            assert matching <= found(texts, expression), (pattern, texts, expression)


@given(examples())
@MANY
def test_the_grammar_reads_what_re2_accepts(example: tuple[str, list[str]]) -> None:
    """A pattern the grammar cannot read is searched without a filter, which is right but slow; none of these is."""
    pattern = searchable(example[0])
    compiled_or_skipped(pattern)
    assert tokens(pattern) is not None
