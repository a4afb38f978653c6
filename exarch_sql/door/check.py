"""What can be refused before anything runs: unknown names, and verbs whose written-out payload is wrong.

The language is checked whole before its first statement, so a line with a mistake in its second half does nothing of its first.
What a payload computes (``!{range a b}``, ``$x``) is decoded when it is known, by the same function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from exarch_sql.door import tree, verbs
from exarch_sql.door.names import nearest
from exarch_sql.door.refusals import Failed, Malformed, Span
from exarch_sql.door.values import UNIT, Record, Value, Variant

if TYPE_CHECKING:
    from collections.abc import Set

# Names a shell would run: refused as what they are, not as a misspelling.
_PROGRAMS = """
ls cat cd rg sed awk find git python python3 bash sh curl rm mv cp mkdir touch head tail wc sort uniq make npm cargo
pytest date env source sudo chmod tee xargs which
"""
PROCESSES = frozenset(_PROGRAMS.split())
ABSENT = {
    "spawn": "the door has no `spawn`: a line is answered before the next is read",
    "defer": "the door has no `defer`: a line is answered before the next is read",
    "attempt": "the door has no `attempt`: a refusal answers the line and changes nothing",
    "retry": "the door has no `retry`: send the line again",
    "fail": "the door has no `fail`: answer a value instead",
    "exit": "the door has no `exit`: it has nothing to leave",
}
FILES = "the door runs no processes and reaches no files: exarch-transcript `grep and `read search and read what was recorded"


def check(program: tree.Program, names: Set[str]) -> None:
    """Refuse, as :class:`Malformed`, what is wrong whatever the log holds. ``names`` are those bound already."""
    _statements(program.statements, set(names), outermost=True)


def _statements(statements: tuple[tree.Statement, ...], names: set[str], *, outermost: bool = False) -> None:
    for statement in statements:
        if not isinstance(statement, tree.Let):
            _stage(statement, names, outermost=outermost)
            continue
        bound = tree.names_of(statement.pattern)
        _stage(statement.value, names | set(bound) if _is_block(statement.value) else names)
        names |= set(bound)


def _is_block(stage: tree.Stage) -> bool:
    return isinstance(stage, tree.Command) and isinstance(stage.head, tree.Block) and not stage.args


def _stage(stage: tree.Stage, names: set[str], *, outermost: bool = False) -> None:
    if isinstance(stage, tree.Command):
        _command(stage, names, outermost=outermost)
        return
    _inside(stage, names)


def _inside(node: object, names: set[str]) -> None:
    """Check everything under a node."""
    if isinstance(node, tree.Variable):
        if node.name not in names:
            raise Malformed(_unbound(node.name, names), node.span)
    elif isinstance(node, tree.Block):
        inner = {name for param in node.params for name in tree.names_of(param)}
        _statements(node.body, names | inner)
    elif isinstance(node, tree.Command | tree.Let):
        _statements((node,), set(names))
    elif isinstance(node, tree.Node):
        _inside(node.contents(), names)
    elif isinstance(node, tuple):
        for each in node:
            _inside(each, names)


def _unbound(name: str, names: set[str]) -> str:
    near = nearest(name, names)
    hint = f": did you mean `${near}`?" if near else ": `let` binds a name; a `$` that is text stands in '...'"
    return f"`${name[:60]}` is not bound{hint}"


def _command(node: tree.Command, names: set[str], *, outermost: bool) -> None:
    head = node.head
    if isinstance(head, tree.Word) and head.value not in names:
        raise Malformed(_unknown(head.value, names), head.span)
    if outermost and isinstance(head, tree.Tag) and head.label not in verbs.VERBS:
        near = nearest(head.label, verbs.VERBS)
        if near is not None:
            raise Malformed(f"`{head.label} is no verb: did you mean `{near}`?", head.span)
    _verb(node)
    if not isinstance(head, tree.Word):
        _inside(head, names)
    for arg in node.args:
        _inside(arg, names)


def _unknown(word: str, names: set[str]) -> str:
    if word in ABSENT:
        return ABSENT[word]
    if word in verbs.VERBS:
        return f"a tag has a backtick before it: `{word}"
    if word in PROCESSES or "/" in word:
        return FILES
    near = nearest(word, names)
    if near is not None:
        return f"`{word}` is not a name the door knows: did you mean `{near}`?"
    return f"`{word[:60]}` is not a name the door knows: text stands in quotes, `explain` alone says the names"


# --- verbs ----------------------------------------------------------------------------------------------------------


def asked(node: tree.Command) -> tuple[str, tree.Atom] | None:
    """The family and the tag a command asks, if it is a call of a verb."""
    head = node.head
    if isinstance(head, tree.Tag):
        return (verbs.VERBS[head.label].family, head) if head.label in verbs.VERBS else None
    if (
        isinstance(head, tree.Word)
        and head.value in verbs.FAMILIES
        and node.args
        and not isinstance(node.args[0], tree.Spread)
    ):
        return head.value, node.args[0]
    return None


def _verb(node: tree.Command) -> None:
    call = asked(node)
    if call is None:
        return
    family, argument = call
    further = node.args if isinstance(node.head, tree.Tag) else node.args[1:]
    if further:
        raise Malformed(f"`{family}` takes one tag with its record, and nothing after it", further[0].span)
    try:
        decode_written(family, argument)
    except Failed as error:
        raise Malformed(error.reason, span_at(argument, error.path)) from None


def decode_written(family: str, argument: tree.Atom) -> None:
    """Decode a call as far as it is written out. Raises :class:`Failed` for what is wrong with that much."""
    value = constant(argument)
    if value is not None:
        verbs.decode(family, value)
    elif isinstance(argument, tree.Tag):
        verb = verbs.FAMILIES[family].get(argument.label)
        if verb is None or verb.fields is None:
            verbs.decode(family, Variant(argument.label, UNIT))  # refused, whatever the payload is
        elif isinstance(argument.payload, tree.RecordOf) and argument.payload.base is None:
            entries = argument.payload.entries
            known = {entry.key.value: constant(entry.value) for entry in entries if isinstance(entry.key, tree.Text)}
            verbs.check_written(verb, known)


def constant(node: tree.Atom) -> Value | None:  # noqa: PLR0911 - one return a kind of node
    """The value of an atom that computes nothing, else None."""
    match node:
        case tree.Int(value) | tree.Float(value) | tree.Text(value) | tree.Word(value) | tree.Bool(value):
            return value
        case tree.UnitLiteral():
            return UNIT
        case tree.Tag(label, payload):
            if payload is None:
                return Variant(label)
            inner = constant(payload)
            return None if inner is None else Variant(label, inner)
        case tree.ListOf(items):
            elements = [None if isinstance(item, tree.Spread) else constant(item) for item in items]
            return None if None in elements else tuple(each for each in elements if each is not None)
        case tree.RecordOf(None, entries):
            values = [constant(entry.value) for entry in entries]
            if any(value is None for value in values):
                return None
            keys = [entry.key.value for entry in entries if isinstance(entry.key, tree.Text)]
            return Record.of({key: value for key, value in zip(keys, values, strict=True) if value is not None})
    return None


def span_at(argument: tree.Atom, path: tuple[str | int, ...]) -> Span:
    """Where in a written payload the part at ``path`` stands: a field's key or value, an element; else the payload."""
    node: tree.Atom = argument.payload if isinstance(argument, tree.Tag) and argument.payload is not None else argument
    for index, step in enumerate(path):
        if isinstance(node, tree.Tag) and node.payload is not None:
            node = node.payload
        if isinstance(node, tree.RecordOf):
            entry = next((e for e in node.entries if isinstance(e.key, tree.Text) and e.key.value == step), None)
            if entry is None:
                break
            known = isinstance(argument, tree.Tag) and argument.label in verbs.VERBS
            wanted = verbs.VERBS[argument.label].fields if known and isinstance(argument, tree.Tag) else None
            if index == 0 and wanted is not None and step not in wanted:
                return entry.key.span
            node = entry.value
        elif isinstance(node, tree.ListOf) and isinstance(step, int) and step < len(node.items):
            item = node.items[step]
            if isinstance(item, tree.Spread):
                break
            node = item
        else:
            break
    return node.span
