"""Tree to source: text that parses back to an equal tree. Blocks print by it, and tests hold the grammar to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exarch_sql.door import tree
from exarch_sql.door.lexer import NAME, RESERVED, WORD_IN_LIST, numeral
from exarch_sql.door.values import escaped, key_literal, number, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPERATORS = (tree.Either, tree.Both, tree.Compare, tree.Sum, tree.Product, tree.Negate, tree.Not)


def program(node: tree.Program) -> str:
    """A whole program, statements separated by ``; ``."""
    return _statements(node.statements)


def block(node: tree.Block) -> str:
    """``{ |p q| statements }``."""
    params = f"|{' '.join(pattern(param) for param in node.params)}| " if node.params else ""
    body = f"{params}{_statements(node.body)}"
    return f"{{ {body.rstrip()} }}" if body else "{ }"


def atom(node: tree.Atom) -> str:  # noqa: C901, PLR0911 - one return a kind of node
    """An atom where any atom may stand."""
    match node:
        case tree.UnitLiteral():
            return "()"
        case tree.Bool(value):
            return "true" if value else "false"
        case tree.Int(value) | tree.Float(value):
            return number(value)
        case tree.Text(value):
            return quoted(value)
        case tree.Word(value):
            return value
        case tree.Template(parts):
            return f'"{"".join(_splice(part) for part in parts)}"'
        case tree.Variable(name):
            return f"$({name})" if name.endswith("-") else f"${name}"
        case tree.Index(base, keys):
            return atom(base) + "".join(f"[{_key(key)}]" for key in keys)
        case tree.Force(body):
            return "!" + atom(body)
        case tree.Tag(label, payload):
            return f"`{label}" if payload is None else f"`{label} {atom(payload)}"
        case tree.Block():
            return block(node)
        case tree.ListOf() | tree.RecordOf() | tree.MapOf():
            return _collection(node)
    return f"$[{expression(node)}]"


def expression(node: tree.Operand) -> str:  # noqa: PLR0911 - one return a kind of node
    """The inside of ``$[...]``; an operator inside another always stands in round brackets."""
    match node:
        case tree.Either(terms):
            return " || ".join(_operand(term) for term in terms)
        case tree.Both(terms):
            return " && ".join(_operand(term) for term in terms)
        case tree.Compare(left, sign, right):
            return f"{_operand(left)} {sign} {_operand(right)}"
        case tree.Sum(first, rest) | tree.Product(first, rest):
            return _operand(first) + "".join(f" {sign} {_operand(term)}" for sign, term in rest)
        case tree.Negate(operand):
            return f"-({expression(operand)})"
        case tree.Not(operand):
            return f"not ({expression(operand)})"
    return atom(node)


def pattern(node: tree.Pattern) -> str:
    """A pattern of a let or a parameter."""
    match node:
        case tree.Bind(name):
            return name
        case tree.ListPattern(items, rest):
            parts = [pattern(item) for item in items] + ([f"...{rest}"] if rest else [])
            return f"[{', '.join(parts)}]"
        case tree.RecordPattern(fields):
            return f"[{', '.join(f'{key_literal(key)}: {pattern(item)}' for key, item in fields)}]"
    return "_"


def _statements(statements: Sequence[tree.Statement]) -> str:
    return "; ".join(_statement(statement) for statement in statements)


def _statement(node: tree.Statement) -> str:
    match node:
        case tree.Let(bound, value):
            return f"let {pattern(bound)} = {_statement(value)}"
        case tree.Return(value):
            return "return" if value is None else f"return {atom(value)}"
        case tree.Case(subject, arms):
            inner = ", ".join(f"`{arm.tag}: {atom(arm.body)}" for arm in arms)
            return f"case {atom(subject)} [{inner}]"
        case tree.Command(head, args):
            return " ".join([atom(head), *(_element(arg) for arg in args)])


def _element(node: tree.Atom | tree.Spread | tree.Entry) -> str:
    if isinstance(node, tree.Spread):
        return "..." + atom(node.value)
    if isinstance(node, tree.Entry):
        key = key_literal(node.key.value) if isinstance(node.key, tree.Text) else atom(node.key)
        return f"{key}: {atom(node.value)}"
    return atom(node)


def _collection(node: tree.ListOf | tree.RecordOf | tree.MapOf) -> str:
    if isinstance(node, tree.ListOf):
        return f"[{', '.join(_element(item) for item in node.items)}]"
    entries = [_element(entry) for entry in node.entries]
    if isinstance(node, tree.MapOf):
        return f"[{', '.join([':', *entries])}]"
    return f"[{', '.join(([f'...{atom(node.base)}'] if node.base is not None else []) + entries)}]"


def _key(node: tree.Atom) -> str:
    """An index key: a Text bare when that reads back as the same text."""
    if isinstance(node, tree.Text):
        bare = WORD_IN_LIST.fullmatch(node.value) and NAME.fullmatch(node.value) and numeral(node.value)[0] == "WORD"
        return node.value if bare and node.value not in RESERVED else quoted(node.value)
    return atom(node)


def _splice(part: str | tree.Operand) -> str:
    if isinstance(part, str):
        return escaped(part)
    return f"$({part.name})" if isinstance(part, tree.Variable) else f"$[{expression(part)}]"


def _operand(node: tree.Operand) -> str:
    return f"({expression(node)})" if isinstance(node, _OPERATORS) else atom(node)
