"""The functions a door line can use besides the verbs. Data comes last, so that a function and its setting make a function.

Each is given as a Python function whose docstring is its teaching text: the line ``explain NAME`` prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from exarch_sql.door import operators, patterns, teaching
from exarch_sql.door.functions import Builtin, as_function
from exarch_sql.door.names import nearest
from exarch_sql.door.refusals import Failed
from exarch_sql.door.values import UNIT, Map, Record, Value, equal, shape, spoken
from exarch_sql.door.verbs import CONTEXT, TRANSCRIPT
from exarch_sql.messages import lines as lines_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from exarch_sql.door.evaluator import Evaluator

BUILTINS: dict[str, Builtin] = {}
T = TypeVar("T")
Call = "Callable[[Evaluator, tuple[Value, ...]], Value]"


def _builtin(
    name: str, arity: int, *, variadic: bool = False
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Put a function into the prelude; it is given the evaluator and then its arguments."""

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        text = " ".join((function.__doc__ or "").replace("``", "").split())
        BUILTINS[name] = Builtin(name, arity, lambda run, args: function(run, *args), text, variadic)
        return function

    return register


def _want(value: Value, types: type[T], what: str, who: str) -> T:
    if not isinstance(value, types) or (types is int and isinstance(value, bool)):
        raise Failed(f"{who}: expected {what}, got {shape(value)}")
    return value


def _list(value: Value, who: str) -> tuple[Value, ...]:
    items: tuple[Value, ...] = _want(value, tuple, "a list", who)
    return items


def _function(value: Value, who: str) -> Any:
    function = as_function(value)
    if function is None:
        hint = f": write ${value} for the function of that name" if isinstance(value, str) and value in BUILTINS else ""
        raise Failed(f"{who}: expected a block, got {shape(value)}{hint}")
    return function


def _holds(run: Evaluator, predicate: Value, item: Value, who: str) -> bool:
    verdict = run.apply(predicate, (item,))
    return _want(verdict, bool, "a Bool from its block", who)


@_builtin("range", 2)
def _range(run: Evaluator, start: Value, end: Value) -> Value:
    """``range a b``: the Ints from a up to b, b left out: range 41 44 is [41, 42, 43]."""
    low, high = _want(start, int, "an Int", "range"), _want(end, int, "an Int", "range")
    run.meter.items(max(0, high - low), f"range {low} {high}")
    return tuple(range(low, high))


@_builtin("map", 2)
def _map(run: Evaluator, function: Value, items: Value) -> Value:
    """``map f xs``: f of each element, in order: map { |h| $h[text] } $found[hits]."""
    _function(function, "map")
    elements = _list(items, "map")
    run.meter.items(len(elements))
    return tuple([run.apply(function, (item,)) for item in elements])


@_builtin("filter", 2)
def _filter(run: Evaluator, predicate: Value, items: Value) -> Value:
    """``filter p xs``: the elements for which p answers true: filter { |h| equal $h[role] 'assistant' } $found[hits]."""
    _function(predicate, "filter")
    kept = [item for item in _list(items, "filter") if _holds(run, predicate, item, "filter")]
    run.meter.items(len(kept))
    return tuple(kept)


@_builtin("take", 2)
def _take(run: Evaluator, number: Value, items: Value) -> Value:
    """``take n xs``: the first n elements, or all there are: take 5 $rows."""
    kept = _list(items, "take")[: max(0, _want(number, int, "an Int", "take"))]
    run.meter.items(len(kept))
    return kept


@_builtin("drop", 2)
def _drop(run: Evaluator, number: Value, items: Value) -> Value:
    """``drop n xs``: what is left without the first n elements: drop 5 $rows."""
    kept = _list(items, "drop")[max(0, _want(number, int, "an Int", "drop")) :]
    run.meter.items(len(kept))
    return kept


@_builtin("first", 2)
def _first(run: Evaluator, predicate: Value, items: Value) -> Value:
    """``first p xs``: the first element for which p answers true; it fails when there is none."""
    _function(predicate, "first")
    for item in _list(items, "first"):
        if _holds(run, predicate, item, "first"):
            return item
    raise Failed("first: no element fits: filter answers [] then")


@_builtin("fold", 3)
def _fold(run: Evaluator, function: Value, start: Value, items: Value) -> Value:
    """``fold f start xs``: f of the result so far and each element: fold { |n r| $[$n + $r[bytes]] } 0 $rows."""
    _function(function, "fold")
    result = start
    for item in _list(items, "fold"):
        result = run.apply(function, (result, item))
    return result


@_builtin("each", 2)
def _each(run: Evaluator, function: Value, items: Value) -> Value:
    """``each f xs``: apply f to each element for what it says; answers ()."""
    _function(function, "each")
    for item in _list(items, "each"):
        run.apply(function, (item,))
    return UNIT


@_builtin("for", 2)
def _for(run: Evaluator, items: Value, function: Value) -> Value:
    """``for xs f``: each, with the list first: for $rows { |r| echo $r[label] }."""
    return _each(run, function, items)


@_builtin("length", 1)
def _length(_run: Evaluator, value: Value) -> Value:
    """``length x``: the elements of a list, the keys of a map, the characters of a Str."""
    if isinstance(value, Map):
        return len(value.entries)
    if isinstance(value, str | tuple):
        return len(value)
    raise Failed(f"length: expected a list, a map or a Str, got {shape(value)}")


@_builtin("equal", 2)
def _equal(run: Evaluator, left: Value, right: Value) -> Value:
    """``equal a b``: whether two values of one type are the same, all the way down."""
    operators.same_type(left, right, "equal")
    return equal(left, right, run.meter.step)


@_builtin("str", 1)
def _str(run: Evaluator, value: Value) -> Value:
    """``str x``: any value as text, a Str without its quotes."""
    text = spoken(value, run.meter.limits.output_bytes, run.meter.step)
    run.meter.make(len(text))
    return text


@_builtin("keys", 1)
def _keys(run: Evaluator, value: Value) -> Value:
    """``keys m``: the keys of a map or record, sorted."""
    entries = value.fields if isinstance(value, Record) else _want(value, Map, "a map", "keys").entries
    run.meter.items(len(entries))
    return tuple(entries)


@_builtin("has", 2)
def _has(_run: Evaluator, value: Value, key: Value) -> Value:
    """``has m key``: whether a map or record holds the key."""
    entries = value.fields if isinstance(value, Record) else _want(value, Map, "a map", "has").entries
    return _want(key, str, "a Str", "has") in entries


@_builtin("is-empty", 1)
def _is_empty(run: Evaluator, value: Value) -> Value:
    """``is-empty x``: whether a list, map or Str holds nothing."""
    return _length(run, value) == 0


@_builtin("concat", 1)
def _concat(run: Evaluator, lists: Value) -> Value:
    """``concat xss``: the elements of a list's lists, in one list."""
    inner = [_list(each, "concat") for each in _list(lists, "concat")]
    run.meter.items(sum(map(len, inner)))
    return tuple(element for each in inner for element in each)


@_builtin("sum", 1)
def _sum(run: Evaluator, numbers: Value) -> Value:
    """``sum xs``: the numbers added up, 0 when there are none: sum !{map { |r| $r[bytes] } $rows}."""
    total: Value = 0
    for index, each in enumerate(_list(numbers, "sum")):
        run.meter.step()
        total = operators.arithmetic(total, "+", each) if index else _number(each)
    return total


def _number(value: Value) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Failed(f"sum: expected numbers, got {shape(value)}")
    return value


@_builtin("lines", 1)
def _lines(run: Evaluator, text: Value) -> Value:
    """``lines s``: the lines of a Str, as grep counts them."""
    parts = lines_of(_want(text, str, "a Str", "lines"))
    run.meter.items(len(parts))
    run.meter.make(len(text) if isinstance(text, str) else 0)
    return tuple(parts)


@_builtin("re-match", 2)
def _re_match(run: Evaluator, pattern: Value, text: Value) -> Value:
    """``re-match pattern s``: whether an RE2 pattern matches a line of a Str, as grep does: re-match #'^src/'# $h[text]."""
    try:
        search = patterns.compiled(_want(pattern, str, "a Str", "re-match"))
    except Failed as error:
        raise Failed(f"re-match: {error.reason}") from None
    return search.matches(_want(text, str, "a Str", "re-match"), run.meter.clock)


@_builtin("not", 1)
def _not(_run: Evaluator, value: Value) -> Value:
    """``not b``: true for false, false for true: not !{equal $a $b}."""
    return not _want(value, bool, "a Bool", "not")


@_builtin("echo", 1, variadic=True)
def _echo(run: Evaluator, *values: Value) -> Value:
    """``echo a b``: says its arguments as text on a line of the output; answers ()."""
    limit = run.meter.limits.output_bytes
    run.say(" ".join(spoken(value, limit, run.meter.step) for value in values) + "\n")
    return UNIT


@_builtin("explain", 1, variadic=True)
def _explain(run: Evaluator, *names: Value) -> Value:
    """``explain NAME``: says what a function or a family of verbs does; explain alone says the names."""
    if not names:
        run.say("explain NAME, for: " + ", ".join(sorted(BUILTINS)) + "\n")
    for value in names:
        name = _want(value, str, "a name", "explain")
        known = BUILTINS.get(name)
        if known is None:
            near = nearest(name, BUILTINS)
            raise Failed(
                f"nothing called `{name[:60]}` to explain"
                + (f": did you mean `{near}`?" if near else ": explain alone says the names")
            )
        run.say(known.teaching + "\n")
    return UNIT


def _family(name: str) -> None:
    BUILTINS[name] = Builtin(name, 1, lambda run, args: run.ask(name, args[0]), teaching.family(name))


_family(CONTEXT)
_family(TRANSCRIPT)
