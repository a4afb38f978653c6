"""Tree to value: a walk over checked statements, metered, with no state but the scope it leaves behind.

Names are looked up lexically; a let makes a new scope over the old, so a block sees what was bound when it was made, and
itself. The first failure ends the run; what was bound before it stays. A failure is placed at the innermost statement, in the
source that statement was written in, which for a block bound in an earlier run is not this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from exarch_sql.door import operators, tree, verbs
from exarch_sql.door.functions import Builtin, Closure, Partial, Scope, as_function
from exarch_sql.door.names import nearest
from exarch_sql.door.refusals import DoorRefused, Failed, Overrun
from exarch_sql.door.values import UNIT, Map, Record, Unit, Value, Variant, count, kind, shape, spoken

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from exarch_sql.door.limits import Meter


class Evaluator:
    """One run. ``scope`` is what it has bound so far; each verb call goes to ``called`` with its answer, in order."""

    def __init__(
        self, host: verbs.Host, meter: Meter, scope: Scope, source: str, called: list[tuple[verbs.Call, Value]]
    ) -> None:
        self.meter = meter
        self.scope = scope
        self.called = called
        self.output: list[str] = []
        self._host = host
        self._source = source
        self._calls = 0
        self._output_left = meter.limits.output_bytes

    def run(self, program: tree.Program) -> tuple[Value, bool]:
        """The last statement's value, and whether there is one to show: a let has none, nor has an empty program."""
        value: Value = UNIT
        for statement in program.statements:
            value, self.scope = self._statement(statement, self.scope)
        last = program.statements[-1] if program.statements else None
        return value, last is not None and not isinstance(last, tree.Let)

    def say(self, line: str) -> None:
        """Add to the output. Raises :class:`Overrun` past its bound."""
        self._output_left -= len(line.encode("utf-8", "surrogatepass"))
        if self._output_left < 0:
            raise Overrun(f"the line says more than {self.meter.limits.output_bytes} bytes: echo less")
        self.output.append(line)

    def ask(self, family: str, argument: Value) -> Value:
        """A verb's answer."""
        call = verbs.decode(family, argument)
        answer = call.ask(self._host, self.meter)
        self.called.append((call, answer))
        return answer

    # --- statements -------------------------------------------------------------------------------------------------

    def _statement(self, node: tree.Statement, scope: Scope) -> tuple[Value, Scope]:
        if not isinstance(node, tree.Let):
            return self._stage(node, scope), scope
        value = self._stage(node.value, scope)
        try:
            bound = bind(node.pattern, value)
        except Failed as error:
            raise error.placed(self._source, node.span) from None
        inner = Scope(bound, scope)
        if isinstance(value, Closure) and _is_block(node.value):
            value.scope = inner  # a block may call itself by the name it is given
        return UNIT, inner

    def _stage(self, node: tree.Stage, scope: Scope) -> Value:
        self.meter.step()
        if isinstance(node, tree.Command):
            return self._placed(node, lambda: self._command(node, scope))
        if isinstance(node, tree.Case):
            return self._placed(node, lambda: self._case(node, scope))
        returned = node.value
        return UNIT if returned is None else self._placed(node, lambda: self.atom(returned, scope))

    def _placed(self, node: tree.Node, act: Callable[[], Value]) -> Value:
        try:
            return act()
        except DoorRefused as error:
            raise error.placed(self._source, node.span) from error.__cause__

    def _command(self, node: tree.Command, scope: Scope) -> Value:
        head = node.head
        if isinstance(head, tree.Tag) and head.label in verbs.VERBS:
            if node.args:
                raise Failed(f"`{head.label} takes one record and nothing after it", node.args[0].span)
            return self.ask(verbs.VERBS[head.label].family, self.atom(head, scope))
        if isinstance(head, tree.Word):
            function = scope.find(head.value)
            if function is None:
                raise Failed(f"`{head.value[:60]}` is not a name the door knows", head.span)
            args = self._arguments(node.args, scope)
            return self.apply(function, args) if args else self._named(function)
        if not node.args:
            return self.atom(head, scope)
        return self.apply(self.atom(head, scope), self._arguments(node.args, scope))

    def _named(self, value: Value) -> Value:
        """What a name alone at the head answers: a block that waits for nothing runs, and so does what takes any number."""
        function = as_function(value)
        if (isinstance(function, Closure) and function.arity == 0) or (
            isinstance(function, Builtin) and function.variadic
        ):
            return self._invoke(function, ())
        return value

    def _arguments(self, nodes: Sequence[tree.Atom | tree.Spread], scope: Scope) -> tuple[Value, ...]:
        args: list[Value] = []
        for node in nodes:
            if isinstance(node, tree.Spread):
                args += self._spread_list(node, scope)
            else:
                args.append(self.atom(node, scope))
        return tuple(args)

    def _case(self, node: tree.Case, scope: Scope) -> Value:
        subject = self.atom(node.subject, scope)
        if not isinstance(subject, Variant):
            raise Failed(f"case chooses by a tag, got {shape(subject)}", node.subject.span)
        for arm in node.arms:
            if arm.tag == subject.tag:
                payload = UNIT if subject.payload is None else subject.payload
                return self.apply(self.atom(arm.body, scope), (payload,))
        named = ", ".join(f"`{arm.tag}" for arm in node.arms)
        raise Failed(f"the case has no arm for `{subject.tag}: its arms are {named}", node.subject.span)

    # --- application ------------------------------------------------------------------------------------------------

    def apply(self, value: Value, args: tuple[Value, ...]) -> Value:
        """``value`` applied: too few arguments wait, more than it takes apply to its result."""
        while args:
            function = as_function(value)
            if function is None:
                raise Failed(f"{shape(value)} is not a function, and was given {count(len(args), 'argument')}")
            if isinstance(function, Builtin) and function.variadic:
                return self._invoke(function, args)
            wanted = function.arity
            if len(args) < wanted:
                return self._waiting(function, args)
            value, args = self._invoke(function, args[:wanted]), args[wanted:]
        return value

    def force(self, value: Value) -> Value:
        """``!value``: a block's own value."""
        function = as_function(value)
        if function is None:
            raise Failed(f"`!` forces a block, got {shape(value)}: to negate a Bool use `not`")
        return self._invoke(function, ()) if isinstance(function, Closure) and not function.arity else value

    def _waiting(self, function: Closure | Builtin | Partial, args: tuple[Value, ...]) -> Partial:
        if isinstance(function, Partial):
            return Partial(function.function, function.args + args)
        return Partial(function, args)

    def _invoke(self, function: Closure | Builtin | Partial, args: tuple[Value, ...]) -> Value:
        self.meter.step()
        if self._calls >= self.meter.limits.calls:
            raise Overrun(f"calls nest deeper than {self.meter.limits.calls}")
        self._calls += 1
        try:
            if isinstance(function, Partial):
                args = function.args + args
            called = function.function if isinstance(function, Partial) else function
            return called.call(self, args) if isinstance(called, Builtin) else self._call_block(called, args)
        finally:
            self._calls -= 1

    def _call_block(self, closure: Closure, args: tuple[Value, ...]) -> Value:
        bound: dict[str, Value] = {}
        for pattern, given in zip(closure.code.params, args, strict=True):
            bound |= bind(pattern, given)
        scope = Scope(bound, closure.scope) if bound else closure.scope
        outer, self._source = self._source, closure.source
        try:
            value: Value = UNIT
            for statement in closure.code.body:
                value, scope = self._statement(statement, scope)
            return value
        finally:
            self._source = outer

    # --- atoms ------------------------------------------------------------------------------------------------------

    def atom(self, node: tree.Atom, scope: Scope) -> Value:  # noqa: C901, PLR0911 - one return a kind of node
        """The value of an atom or an expression."""
        self.meter.step()
        match node:
            case tree.Int(value) | tree.Float(value) | tree.Text(value) | tree.Word(value) | tree.Bool(value):
                return value
            case tree.UnitLiteral():
                return UNIT
            case tree.Variable(name):
                return self._variable(node, name, scope)
            case tree.Index(base, keys):
                return self._index(self.atom(base, scope), keys, scope)
            case tree.Tag(label, payload):
                return Variant(label, None if payload is None else self.atom(payload, scope))
            case tree.Force(tree.Block(params=()) as block):
                return self._invoke(Closure(block, scope, self._source), ())
            case tree.Force(body):
                return self.force(self.atom(body, scope))
            case tree.Block():
                return Closure(node, scope, self._source)
            case tree.Template(parts):
                return self._template(parts, scope)
            case tree.ListOf(items):
                return self._list(items, scope)
            case tree.RecordOf(old, fields):
                return self._record(old, fields, scope)
            case tree.MapOf(entries):
                return self._map(entries, scope)
        return operators.value(node, lambda operand: self.atom(operand, scope), self.meter.step)

    def _variable(self, node: tree.Variable, name: str, scope: Scope) -> Value:
        value = scope.find(name)
        if value is None:
            raise Failed(f"`${name}` is not bound", node.span)
        return value

    def _index(self, value: Value, keys: Sequence[tree.Atom], scope: Scope) -> Value:
        for node in keys:
            key = node.value if isinstance(node, tree.Text) else self.atom(node, scope)
            try:
                value = pick(value, key)
            except Failed as error:
                error.span = error.span or node.span
                raise
        return value

    def _template(self, parts: Sequence[str | tree.Operand], scope: Scope) -> str:
        pieces: list[str] = []
        for part in parts:
            if isinstance(part, str):
                pieces.append(part)
                continue
            value = self.atom(part, scope)
            if not isinstance(value, bool | int | float | str):
                raise Failed(
                    f"a splice takes a Bool, Int, Float or Str, got {shape(value)}: use str for the others", part.span
                )
            pieces.append(spoken(value))
            self.meter.make(len(pieces[-1]))
        return "".join(pieces)

    def _list(self, items: Sequence[tree.Atom | tree.Spread], scope: Scope) -> tuple[Value, ...]:
        built: list[Value] = []
        for item in items:
            if isinstance(item, tree.Spread):
                built += self._spread_list(item, scope)
            else:
                built.append(self.atom(item, scope))
        self.meter.items(len(built))
        return tuple(built)

    def _spread_list(self, node: tree.Spread, scope: Scope) -> tuple[Value, ...]:
        value = self.atom(node.value, scope)
        if not isinstance(value, tuple):
            raise Failed(f"`...` lays out a list, got {shape(value)}", node.span)
        self.meter.items(len(value))
        return value

    def _record(self, base: tree.Atom | None, entries: Sequence[tree.Entry], scope: Scope) -> Record:
        fields = {_key(entry): self.atom(entry.value, scope) for entry in entries}
        self.meter.items(len(fields))
        if base is None:
            return Record.of(fields)
        old = self.atom(base, scope)
        if not isinstance(old, Record):
            raise Failed(f"`...` before fields updates a record, got {shape(old)}", base.span)
        for entry in entries:
            if _key(entry) not in old.fields:
                raise Failed(f"the record has no field `{_key(entry)[:60]}` to update", entry.span)
        self.meter.items(len(old.fields))
        return Record.of({**old.fields, **fields})

    def _map(self, entries: Sequence[tree.Entry | tree.Spread], scope: Scope) -> Map:
        built: dict[str, Value] = {}
        for entry in entries:
            if isinstance(entry, tree.Spread):
                other = self.atom(entry.value, scope)
                if not isinstance(other, Map):
                    raise Failed(f"`...` in a map lays out a map, got {shape(other)}", entry.span)
                built |= other.entries
                continue
            key = self.atom(entry.key, scope)
            if not isinstance(key, str):
                raise Failed(f"a key is a Str, got {shape(key)}", entry.key.span)
            built[key] = self.atom(entry.value, scope)
        self.meter.items(len(built))
        return Map.of(built)


def _is_block(stage: tree.Stage) -> bool:
    return isinstance(stage, tree.Command) and isinstance(stage.head, tree.Block) and not stage.args


def _key(entry: tree.Entry) -> str:
    """A record's key: the parser makes a record only of keys that are text."""
    return entry.key.value if isinstance(entry.key, tree.Text) else entry.key.name


def bind(pattern: tree.Pattern, value: Value) -> dict[str, Value]:
    """The names a pattern gives to parts of ``value``, all or none. Raises :class:`Failed` where it does not fit."""
    match pattern:
        case tree.Bind(name):
            return {name: value}
        case tree.ListPattern(items, rest):
            if not isinstance(value, tuple):
                raise Failed(f"the pattern wants a list, got {shape(value)}")
            if len(value) < len(items) or (rest is None and len(value) > len(items)):
                least = "at least " if rest is not None else ""
                raise Failed(f"the pattern wants {least}{count(len(items), 'element')}, got {shape(value)}")
            bound = {
                name: part for item, each in zip(items, value, strict=False) for name, part in bind(item, each).items()
            }
            return bound | ({rest: value[len(items) :]} if rest is not None else {})
        case tree.RecordPattern(fields):
            return {name: part for key, item in fields for name, part in bind(item, pick(value, key)).items()}
    return {}


def pick(value: Value, key: Value) -> Value:
    """``value[key]``: a field, an entry, or the element at a position from 0. Raises :class:`Failed` where there is none."""
    if isinstance(value, tuple):
        if isinstance(key, bool) or not isinstance(key, int):
            raise Failed(f"a list is read by position from 0, as in $rows[0]; got {shape(key)}")
        if not 0 <= key < len(value):
            raise Failed(f"position {key} is outside {shape(value)}, counted from 0")
        return value[key]
    if isinstance(value, Record | Map):
        return _named(value, key)
    if isinstance(value, Variant):
        raise Failed(f"{shape(value)} has no fields: a `case` opens a tag")
    raise Failed(f"{kind(value)} has no parts to index" if not isinstance(value, Unit) else "() has no parts to index")


def _named(value: Record | Map, key: Value) -> Value:
    entries: Mapping[str, Value] = value.fields if isinstance(value, Record) else value.entries
    if not isinstance(key, str):
        raise Failed(f"{shape(value)} is read by a name, got {shape(key)}")
    if key not in entries:
        if isinstance(value, Map):
            raise Failed(f"the key is not in {shape(value)}")
        near = nearest(key, entries)
        hint = f"did you mean `{near}`?" if near else f"it has {', '.join(f'`{each}`' for each in list(entries)[:12])}"
        raise Failed(f"no field `{key[:60]}` in {shape(value)}: {hint}")
    return entries[key]
