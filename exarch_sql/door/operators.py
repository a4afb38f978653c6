"""Expressions, inside ``$[...]``: 64-bit integers that refuse to overflow, finite floats, comparisons of like with like."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from exarch_sql.door import tree
from exarch_sql.door.limits import INT_MAX, INT_MIN
from exarch_sql.door.refusals import Failed
from exarch_sql.door.values import Value, equal, kind, shape

if TYPE_CHECKING:
    from collections.abc import Callable

Eval = "Callable[[tree.Operand], Value]"


def value(node: tree.Expression, evaluate: Callable[[tree.Operand], Value], step: Callable[[], None]) -> Value:
    """The value of an operator node; ``evaluate`` gives its operands'. Raises :class:`Failed`."""
    match node:
        case tree.Either(terms):
            return any(boolean(evaluate(term), "||", term) for term in terms)
        case tree.Both(terms):
            return all(boolean(evaluate(term), "&&", term) for term in terms)
        case tree.Compare(left, sign, right):
            try:
                return compare(evaluate(left), sign, evaluate(right), step)
            except Failed as error:
                error.span = error.span or node.span
                raise
        case tree.Sum(first, rest) | tree.Product(first, rest):
            total = evaluate(first)
            for sign, term in rest:
                total = _placed(total, sign, evaluate(term), node)
            return total
        case tree.Negate(operand):
            zero = evaluate(operand)
            return _placed(0.0 if isinstance(zero, float) else 0, "-", zero, node)
        case tree.Not(operand):
            return not boolean(evaluate(operand), "not", operand)


def boolean(operand: Value, sign: str, node: tree.Node) -> bool:
    """The operand, which must be a Bool."""
    if not isinstance(operand, bool):
        raise Failed(f"`{sign}` takes Bools, got {shape(operand)}", node.span)
    return operand


def same_type(left: Value, right: Value, what: str) -> None:
    """Refuse two values that could never be equal; ``what`` would compare them."""
    if kind(left) != kind(right):
        raise Failed(f"{what} compares two values of one type, got {shape(left)} and {shape(right)}")


def compare(left: Value, sign: str, right: Value, step: Callable[[], None]) -> bool:
    """Two values of one type; order only between two numbers or two strings."""
    same_type(left, right, f"`{sign}`")
    if sign in ("==", "!="):
        return equal(left, right, step) == (sign == "==")
    numbers = isinstance(left, int | float) and not isinstance(left, bool)
    if not (numbers or isinstance(left, str)):
        raise Failed(f"`{sign}` orders two numbers or two strings, got {shape(left)} and {shape(right)}")
    below, same = bool(left < right), bool(left == right)  # type: ignore[operator]  # both of one type that is ordered
    return {"<": below, "<=": below or same, ">": not (below or same), ">=": not below}[sign]


def _placed(left: Value, sign: str, right: Value, node: tree.Node) -> Value:
    try:
        return arithmetic(left, sign, right)
    except Failed as error:
        error.span = error.span or node.span
        raise


def arithmetic(left: Value, sign: str, right: Value) -> int | float:
    """``left sign right`` of two numbers of one type; Ints divide toward zero. Raises :class:`Failed` past the type's range."""
    if isinstance(left, bool) or isinstance(right, bool):
        raise Failed(f"`{sign}` takes two numbers of one type, got {shape(left)} and {shape(right)}")
    if isinstance(left, int) and isinstance(right, int):
        return in_range(_whole(left, sign, right), sign)
    if isinstance(left, float) and isinstance(right, float):
        return _real(left, sign, right)
    raise Failed(f"`{sign}` takes two numbers of one type, got {shape(left)} and {shape(right)}")


def in_range(result: int, sign: str) -> int:
    """The result, if 64 bits hold it."""
    if not INT_MIN <= result <= INT_MAX:
        raise Failed(f"`{sign}` passes what a 64-bit Int holds")
    return result


def _whole(left: int, sign: str, right: int) -> int:
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    if right == 0:
        raise Failed(f"`{sign}` by zero")
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return quotient if sign == "/" else left - quotient * right


def _real(left: float, sign: str, right: float) -> float:
    try:
        match sign:
            case "+":
                result = left + right
            case "-":
                result = left - right
            case "*":
                result = left * right
            case "/":
                result = left / right
            case _:
                result = math.fmod(left, right)
    except (ZeroDivisionError, ValueError):
        raise Failed(f"`{sign}` by zero") from None
    if not math.isfinite(result):
        raise Failed(f"`{sign}` passes what a Float holds")
    return result
