"""Source to tree: the one module that knows Lark.

``grammar/door.lark`` is compiled once, on first use, and Lark is imported only then. The builder makes each node as its rule
is reduced; what a grammar of this kind cannot say (which brackets are a list, a record or a map; no key twice; a tag is never
a key) it says itself, at the place. Lark's errors become :class:`Malformed` with what was expected.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

from exarch_sql import resources
from exarch_sql.door import tree
from exarch_sql.door.lexer import KEYWORDS, NAME, RESERVED, Lexer, Token
from exarch_sql.door.limits import Limits, Meter
from exarch_sql.door.refusals import Malformed, Overrun, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GRAMMAR = "grammar/door.lark"
Children = list[Any]
KEYWORD_KINDS = frozenset(KEYWORDS.values())


def parse(source: str, meter: Meter | None = None) -> tree.Program:
    """The tree of ``source``. Raises :class:`Malformed` or :class:`Overrun`, placed in the source; nothing else."""
    meter = meter or Meter(Limits())
    try:
        _check_text(source, meter.limits)
        program: tree.Program = _machine()(Lexer(source, meter))
    except (Malformed, Overrun) as error:
        raise error.placed(source) from None
    return program


def _check_text(source: str, limits: Limits) -> None:
    size = len(source) if source.isascii() else len(source.encode("utf-8", "surrogatepass"))
    if size > limits.source_bytes:
        raise Overrun(f"the source is {size} bytes: at most {limits.source_bytes} are read at once")
    if not source.isascii():
        odd = next((at for at, char in enumerate(source) if "\ud800" <= char <= "\udfff"), None)
        if odd is not None:
            raise Malformed(
                f"the source is not Unicode text: a lone surrogate is written \\u{{{ord(source[odd]):x}}} in double quotes",
                (odd, odd + 1),
            )


@functools.cache
def _machine() -> Callable[[Lexer], tree.Program]:
    """The parser, as a function of a lexer."""
    import lark  # noqa: PLC0415  # compiling a grammar costs more than any command that needs none

    class Adapter(lark.lexer.Lexer):
        """Hands our tokens to Lark, whose own hold only the kind; the builder reads ours from ``value``."""

        def __init__(self, _conf: Any) -> None:
            pass

        def lex(self, lexer: Lexer) -> Iterator[lark.Token]:  # type: ignore[override]
            for token in lexer.tokens():
                held = lark.Token(token.kind, "")
                held.value = token
                yield held

    grammar = lark.Lark(
        resources.text(GRAMMAR), parser="lalr", lexer=Adapter, transformer=_Builder(), maybe_placeholders=False
    )

    def run(lexer: Lexer) -> tree.Program:
        try:
            return cast("tree.Program", grammar.parse(cast("str", lexer)))
        except lark.UnexpectedToken as error:
            if error.token.type == "$END":
                raise Malformed(_at_end(error.expected), lexer.last_span, incomplete=True) from None
            token: Token = error.token.value
            after_tag = token.kind == "_COLON" and lexer.before == "TAG"
            reason = TAG_AS_KEY if after_tag else _unexpected(token, error.expected)
            raise Malformed(reason, (token.start, token.end)) from None

    return run


TAG_AS_KEY = (
    "a tag is never a key, and a tag before `[` takes it as payload: a case is given a name, `case $t [...]`, "
    "and its arms are blocks or $names"
)

# --- what was expected ----------------------------------------------------------------------------------------------

_SPELLED = {"CHUNK": "text", "_SEP": "the end of the statement", "TAG": "a tag", "SPREAD": "`...`", "DQ_OPEN": 'a `"`'}
_ATOM_KINDS = "UNIT BOOL INT FLOAT TEXT WORD VARIABLE TAG BANG LBRACE LSQB MAP_OPEN EXPR_OPEN DQ_OPEN SPREAD"
_ATOMS = frozenset(_ATOM_KINDS.split())


def _unexpected(token: Token, expected: set[str]) -> str:  # noqa: PLR0911 - one return a mistake
    found = _SPELLED.get(token.kind, f"`{str(token.value)[:40]}`")
    if token.kind == "_COLON":
        return (
            "`:` stands between a key, which is a name or a string, and its value, inside [...]; quote it if it is text"
        )
    if token.kind in KEYWORD_KINDS:
        return f"{found} starts a statement, and can stand nowhere else"
    if token.kind in _ATOMS and "_COMMA" in expected:
        return f"a comma is missing before {found}: what stands in [...] is separated by commas"
    if expected == {"TAG"}:
        return "the arms of a case are written out, one for each tag: [`text: { |t| ... }, `result: { |r| ... }]"
    if "LBRACE" in expected and "INT" not in expected:
        return f"an arm of a case is a block or a $name, not {found}"
    if {"WORD", "LSQB"} <= expected and "INT" not in expected:
        return f"{found} is no name and no pattern"
    if "_EQ" in expected:
        return f"expected ` = ` with blanks around it, as in `let x = ...`, before {found}"
    if expected <= {"LSQB", "INDEX_OPEN"}:
        return f"expected the arms of the case, as in [`text: {{ |t| ... }}], before {found}"
    if "_COLON" in expected and "WORD" not in expected:
        return f"expected `:` and a blank before {found}"
    if token.kind in ("_COMMA", "RSQB", "RBRACE", "_SEP", "_RPAR", "_BAR", "DQ_CLOSE"):
        return f"a value is missing before {found}"
    return f"{found} cannot stand here"


def _at_end(expected: set[str]) -> str:
    if "_EQ" in expected:
        return "the source ends before ` = `: a let is written `let x = ...`"
    if expected <= {"LSQB", "INDEX_OPEN"}:
        return "the source ends before the arms of the case, as in [`text: { |t| ... }]"
    return "the source ends where a value must stand"


# --- the builder ----------------------------------------------------------------------------------------------------


def _token(child: Any) -> Token:
    return cast("Token", child.value)


def _start(child: Any) -> int:
    return child.span[0] if isinstance(child, tree.Node) else _token(child).start


def _end(child: Any) -> int:
    return child.span[1] if isinstance(child, tree.Node) else _token(child).end


def _span(children: Children) -> Span:
    return (_start(children[0]), _end(children[-1])) if children else tree.NOWHERE


class _Builder:
    """A method a rule of the grammar; each is given the children left after punctuation was dropped."""

    def start(self, children: Children) -> tree.Program:
        return cast("tree.Program", children[0])

    def program(self, children: Children) -> tree.Program:
        return tree.Program(tuple(children), span=_span(children))

    def let(self, children: Children) -> tree.Let:
        names = tree.names_of(children[1])
        for name in names:
            if names.count(name) > 1:
                raise Malformed(f"the pattern binds `{name}` twice", children[1].span)
        return tree.Let(children[1], children[2], span=_span(children))

    def command(self, children: Children) -> tree.Command:
        return tree.Command(children[0], tuple(children[1:]), span=_span(children))

    def case(self, children: Children) -> tree.Case:
        arms: list[tree.Arm] = children[3:-1]
        seen: set[str] = set()
        for arm in arms:
            if arm.tag in seen:
                raise Malformed(f"the case has two arms for `{arm.tag}", arm.span)
            seen.add(arm.tag)
        return tree.Case(children[1], tuple(arms), span=_span(children))

    def arm(self, children: Children) -> tree.Arm:
        return tree.Arm(str(_token(children[0]).value), children[1], span=_span(children))

    def tagged(self, children: Children) -> tree.Tag:
        label = str(_token(children[0]).value)
        return tree.Tag(label, children[1] if len(children) > 1 else None, span=_span(children))

    def index(self, children: Children) -> tree.Node:
        key = children[1]
        if isinstance(key, tree.Int) and key.value < 0:
            raise Malformed("a position counts from 0 and is never negative", key.span)
        return tree.Text(key.value, span=key.span) if isinstance(key, tree.Word) else key

    def index_of(self, children: Children) -> tree.Index:
        end = _end(children[-1]) + 1
        return tree.Index(children[0], tuple(children[1:]), span=(_start(children[0]), end))

    def block(self, children: Children) -> tree.Block:
        params: tuple[tree.Pattern, ...] = children[1] if len(children) == 4 else ()
        return tree.Block(params, children[-2].statements, span=_span(children))

    def params(self, children: Children) -> tuple[tree.Pattern, ...]:
        names = [name for pattern in children for name in tree.names_of(pattern)]
        for name in names:
            if names.count(name) > 1:
                raise Malformed(f"two parameters are called `{name}`", children[0].span)
        return tuple(children)

    def collection(self, children: Children) -> tree.ListOf | tree.RecordOf | tree.MapOf:
        elements, span = children[1:-1], _span(children)
        entries = [each for each in elements if isinstance(each, tree.Entry)]
        if not entries:
            return tree.ListOf(tuple(elements), span=span)
        if any(isinstance(entry.key, tree.Variable) for entry in entries):
            return _map(elements, span)
        base: tree.Atom | None = None
        if isinstance(elements[0], tree.Spread):
            base, elements = elements[0].value, elements[1:]
        for each in elements:
            if isinstance(each, tree.Spread):
                raise Malformed("a record is updated from one `...base`, and it stands first", each.span)
        _only_entries(elements)
        return tree.RecordOf(base, tuple(elements), span=span)

    def map(self, children: Children) -> tree.MapOf:
        return _map(children[1:-1], _span(children))

    def entry(self, children: Children) -> tree.Entry:
        key = children[0]
        if isinstance(key, tree.Word):
            if not NAME.fullmatch(key.value):
                raise Malformed(f"`{key.value[:40]}` is no key: a key is a name, or a string in quotes", key.span)
            key = tree.Text(key.value, span=key.span)
        _check_key(key)
        return tree.Entry(key, children[1], span=_span(children))

    def template(self, children: Children) -> tree.Template | tree.Text:
        parts = children[1:-1]
        if all(isinstance(part, str) for part in parts):
            return tree.Text("".join(parts), span=_span(children))
        return tree.Template(tuple(parts), span=_span(children))

    def chunk(self, children: Children) -> str:
        return str(_token(children[0]).value)

    def expression(self, children: Children) -> tree.Node:
        inner: tree.Node = children[1]
        return inner

    def either(self, children: Children) -> tree.Either:
        return tree.Either(tuple(children), span=_span(children))

    def both(self, children: Children) -> tree.Both:
        return tree.Both(tuple(children), span=_span(children))

    def comparison(self, children: Children) -> tree.Compare:
        return tree.Compare(children[0], str(_token(children[1]).value), children[2], span=_span(children))

    def sum(self, children: Children) -> tree.Sum:
        return tree.Sum(children[0], _signed(children), span=_span(children))

    def product(self, children: Children) -> tree.Product:
        return tree.Product(children[0], _signed(children), span=_span(children))

    def negate(self, children: Children) -> tree.Negate:
        if _token(children[0]).value == "+":
            raise Malformed("a `+` has nothing before it", _span(children))
        return tree.Negate(children[1], span=_span(children))

    def negation(self, children: Children) -> tree.Not:
        return tree.Not(children[1], span=_span(children))

    def binding(self, children: Children) -> tree.Bind | tree.Ignore:
        token = _token(children[0])
        word, span = str(token.value), (token.start, token.end)
        if word == "_":
            return tree.Ignore(span=span)
        _check_name(word, span)
        return tree.Bind(word, span=span)

    def list_pattern(self, children: Children) -> tree.ListPattern:
        inner = children[1:-1]
        rest = inner.pop() if inner and isinstance(inner[-1], str) else None
        return tree.ListPattern(tuple(inner), rest, span=_span(children))

    def rest(self, children: Children) -> str:
        token = _token(children[1])
        _check_name(str(token.value), (token.start, token.end))
        return str(token.value)

    def record_pattern(self, children: Children) -> tree.RecordPattern:
        return tree.RecordPattern(tuple(children[1:-1]), span=_span(children))

    def field(self, children: Children) -> tuple[str, tree.Pattern]:
        _check_key(children[0])
        return children[0].value, children[1]

    def unit(self, children: Children) -> tree.UnitLiteral:
        return tree.UnitLiteral(span=_span(children))

    def variable(self, children: Children) -> tree.Variable:
        return tree.Variable(str(_token(children[0]).value), span=_span(children))

    def return_(self, children: Children) -> tree.Return:
        return tree.Return(children[1] if len(children) > 1 else None, span=_span(children))

    def spread(self, children: Children) -> tree.Spread:
        return tree.Spread(children[1], span=_span(children))

    def force(self, children: Children) -> tree.Force:
        return tree.Force(children[1], span=_span(children))

    forced_place = force

    def __getattr__(self, rule: str) -> Callable[[Children], tree.Node]:
        """The scalars: one token, one node; and ``return``, which is no name in Python."""
        if rule == "return":
            return self.return_
        if rule not in _SCALARS:
            raise AttributeError(rule)
        make = _SCALARS[rule]
        return lambda children: make(_token(children[0]).value, span=_span(children))


_SCALARS: dict[str, Callable[..., tree.Node]] = {
    "bool": tree.Bool,
    "int": tree.Int,
    "float": tree.Float,
    "text": tree.Text,
    "word": tree.Word,
}


def _signed(children: Children) -> tuple[tuple[str, tree.Operand], ...]:
    return tuple((str(_token(sign).value), term) for sign, term in zip(children[1::2], children[2::2], strict=True))


def _map(elements: Children, span: Span) -> tree.MapOf:
    _only_entries([each for each in elements if not isinstance(each, tree.Spread)])
    return tree.MapOf(tuple(elements), span=span)


def _only_entries(elements: Children) -> None:
    seen: set[str] = set()
    for each in elements:
        if not isinstance(each, tree.Entry):
            raise Malformed(_bare_in_record(each), each.span)
        if isinstance(each.key, tree.Text):
            if each.key.value in seen:
                raise Malformed(f"field `{each.key.value}` given twice: which one did you mean?", each.key.span)
            seen.add(each.key.value)


def _bare_in_record(element: tree.Node) -> str:
    if isinstance(element, tree.Word) and ":" in element.value:
        return f"`{element.value[:40]}` is one word: a key's `:` needs a blank after it"
    return "a bare value among fields: every part of a record is `key: value`"


def _check_key(key: tree.Node) -> None:
    if isinstance(key, tree.Template):
        raise Malformed("a key with a splice in it: let gives it a name, and [$name: ...] makes a map", key.span)


def _check_name(word: str, span: Span) -> None:
    if word.endswith(",") and NAME.fullmatch(word[:-1]):
        raise Malformed(f"parameters are separated by blanks, not commas: `{word[:-1]}`", span)
    if not NAME.fullmatch(word) or word in RESERVED:
        raise Malformed(
            f"`{word[:40]}` cannot be a name: letters, digits, `_` and `-`, and no word of the language", span
        )
