"""Repairs of a line's spelling: each gives the line without one habit, or None where it does not show.

A repair's docstring is what the refusal says about the line it offers. Strings are masked, so that nothing inside a note or a
pattern is taken for code.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from exarch_sql.door.values import key_literal, number, quoted
from exarch_sql.door.verbs import FAMILIES, VERBS

if TYPE_CHECKING:
    from collections.abc import Callable

_VERB = "|".join(VERBS)
_FIELD = "from|to|note|turns|pattern"
_STRING = re.compile(r"""(\#+)'.*?'\1|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_MASK = "\ue000"
_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[ \t]*[\w-]*[ \t]*$", re.MULTILINE)
_FENCE_INLINE = re.compile(
    rf"\A\s*(`{{1,3}})(?:ral|text)?[ \t]*((?:exarch-(?:context|transcript)\s+)?`(?:{_VERB})\b.*?)\s*\1\s*\Z", re.DOTALL
)
_FENCE_FAMILY = re.compile(r"\A\s*(`{1,3})(exarch-(?:context|transcript)\s.*?)\s*\1\s*\Z", re.DOTALL)
_PROMPT = re.compile(r"^[ \t]*(?:\$|>+|ral>|exarch>|%)[ \t]+", re.MULTILINE)
_SINGLE_CURLY = re.compile(r"[‘‚‛]([^\n]*?)[’‘'](?=\s*(?:[,\]]|$))", re.MULTILINE)
_DOUBLE_CURLY = re.compile(r"[“„‟«”]([^\n]*?)[”“»\"](?=\s*(?:[,\]]|$))", re.MULTILINE)
_BRACE_KEY = re.compile(rf"\{{\s*(['\"]?)(?:{_FIELD}|{_VERB}|turn|start|end)\1\s*:")
_CALLED = re.compile(
    rf"(?P<family>\bexarch[-_. ](?:context|transcript)[-_. ]+)?`?\b(?P<verb>{_VERB})\s*\((?P<inner>.*)\)\s*\Z",
    re.DOTALL,
)
_LET = r"let\s+[A-Za-z_][\w-]*\s*=\s*"
_BARE_TAG = re.compile(
    rf"(?:^|(?<=[;{{|]))(?P<lead>\s*(?:{_LET})?(?:exarch-(?:context|transcript)\s+)?)"
    rf"(?:--?|:|['\"])?(?P<verb>{_VERB})['\"`]?(?=[\s\[(;}}]|\Z)",
    re.MULTILINE,
)
_CLOSED_TAG = re.compile(rf"`({_VERB})`")
_ESCAPED_TAG = re.compile(rf"\\`(?=(?:{_VERB})\b)")
_BARE_RUN = re.compile(
    r"(`(?:evict|under))\s+\[?\s*(?:turns?\s+)?([0-9]+)\s*(?:-|–|—|\.\.+|\bto\b)\s*([0-9]+)\s*(?P<more>,|\])?"
)
_TURN_WORD = re.compile(r"\b(from|to):\s+turns?\s+(?=[0-9])")
_RANGE_CALL = re.compile(r"\bturns:\s*[\[(]?\s*range\s*\(?\s*([0-9]+)\s*[,\s]\s*([0-9]+)\s*\)?[\])]?(?=\s*[,\]])")
_OPEN_IDS = re.compile(r"\bturns:\s*([0-9]+(?:\s*,\s*[0-9]+)+)")
_ADDED = re.compile(r"['\"]\s*[+&]\s*['\"]")
_OLD_FAMILY = re.compile(rf"(?<![\w-])(?:exarch[_ .])?(context|transcript)(?=[ .]+`?(?:{_VERB})\b)")
_FAMILY_TAG = re.compile(rf"exarch-(context|transcript)(\s+`)({_VERB})\b")
_TIGHT_KEY = re.compile(rf"(?<=[\[,\s])(['\"]?)({_FIELD}|turn)\1\s*(?::=|=>|[:=])\s*(?=\S)")
_TIGHT_ARM = re.compile(r"(`[A-Za-z_][\w-]*):(?=\S)")
_QUOTED_VALUE = re.compile(
    rf"\b(note|pattern)(\s*:\s*)(['\"])(.*?)\3(?=\s*(?:,\s*(?:{_FIELD})\s*:|\]\s*(?:[;)\n}}]|\Z)))", re.DOTALL
)
_UNQUOTED_VALUE = re.compile(
    rf"\b(note|pattern):\s+(?![\s'\"#$!\[`“‘{_MASK}])([^\n]*?)\s*(?=,\s*(?:{_FIELD})\s*:|\]\s*(?:;|\n|\Z))"
)
_MISSING_COMMA = re.compile(rf"(?<=[^\s,\[])\s+(?=(?:{_FIELD}): )")
_NO_BRACKETS = re.compile(rf"(`(?:{_VERB}))\s+((?:{_FIELD}): [^\n]*?)\s*(?=\n|\Z)")
_FLAG = re.compile(rf"\s+--?({_FIELD})(?:\s+|=)")
_TRAILING = re.compile(r"[.,;:。]+\s*\Z")
_CALL = re.compile(
    rf"(?:let[ \t]+[A-Za-z_][\w-]*[ \t]*=[ \t]*)?(?:exarch-(?:context|transcript)[ \t]+)?`(?:{_VERB})\b(?:[ \t]*\[[^\n]*\])?"
)
_CODE = re.compile(r"[${}\[\]=;]|->")  # no prose has these


def masked(text: str) -> str:
    """``text``, of the same length, its strings filled with a character no code holds."""
    return _STRING.sub(lambda match: _MASK * len(match[0]), text)


def _substitute(pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str], text: str) -> str:
    """Replace the matches in ``text`` that lie in code; ``replace`` is given a match in the masked text."""
    pieces, at = [], 0
    for match in pattern.finditer(masked(text)):
        pieces += [text[at : match.start()], replace(match)]
        at = match.end()
    return "".join([*pieces, text[at:]])


def code_fence(text: str) -> str | None:
    """A line stands by itself, without a code fence or the prose around it."""
    fences = list(_FENCE_LINE.finditer(text))
    if fences:
        end = fences[1].start() if len(fences) > 1 else len(text)
        return text[fences[0].end() : end].strip("\n")
    inline = _FENCE_INLINE.match(text) or _FENCE_FAMILY.match(text)
    return inline[2] if inline else None


def prompt_mark(text: str) -> str | None:
    """The line starts with its first word, without a prompt mark."""
    return _PROMPT.sub("", text)


def curly_quotes(text: str) -> str | None:
    """Strings stand in straight quotes, as in 'so'."""
    if not any(quote in masked(text) for quote in "‘’‚‛“”„‟«»"):
        return None
    for pattern in (_DOUBLE_CURLY, _SINGLE_CURLY):
        text = pattern.sub(lambda match: quoted(match[1]), text)
    return text


def json_object(text: str) -> str | None:
    """A record stands in square brackets, its keys bare: [from: 41, to: 60]."""
    opening = _BRACE_KEY.search(text)
    if opening is None:
        return None
    start = opening.start()
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        inner = text[start + 1 :]
        close = masked(inner).rfind("}")
        return None if close < 0 else f"{text[:start]}[{inner[:close]}]{inner[close + 1 :]}"
    [(verb, payload), *more] = value.items()
    if verb in VERBS and isinstance(payload, dict) and not more:
        return f"{text[:start]}`{verb} {_from_json(payload)}{text[end:]}"
    return text[:start] + _from_json(value) + text[end:]


def _from_json(value: Any) -> str:
    if isinstance(value, dict):
        return f"[{', '.join(f'{key_literal(key)}: {_from_json(each)}' for key, each in value.items())}]"
    if isinstance(value, list):
        return f"[{', '.join(map(_from_json, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(value)
    return "()" if value is None else quoted(str(value))


def called(text: str) -> str | None:
    """A verb takes a record in square brackets, not arguments in round ones."""
    match = _CALLED.search(text)
    if match is None:
        return None
    inner = match["inner"].strip()
    payload = inner if inner.startswith(("[", "{")) or not inner else f"[{inner}]"
    return f"{text[: match.start()]}`{match['verb']} {payload}".rstrip()


def tag_spelling(text: str) -> str | None:
    """A tag has one backtick, before it: `evict."""
    line = _substitute(_ESCAPED_TAG, lambda _match: "`", text)
    line = _substitute(_CLOSED_TAG, lambda match: f"`{match[1]}", line)
    code = masked(line)

    def tagged(match: re.Match[str]) -> str:
        at = match.start("verb")  # in a string only if the string is the tag itself
        inside = code[at] == _MASK and (line[at - 1] not in "'\"" or code[max(at - 2, 0)] == _MASK)
        return match[0] if inside else f"{match['lead']}`{match['verb']}"

    return _BARE_TAG.sub(tagged, line)


def family_name(text: str) -> str | None:
    """The families are called exarch-context and exarch-transcript."""
    return _substitute(_OLD_FAMILY, lambda match: f"exarch-{match[1]}", text)


def bare_run(text: str) -> str | None:
    """A run is named by its two ends, both included: from: 41, to: 60."""

    def named(match: re.Match[str]) -> str:
        closing = ", " if match["more"] == "," else "]"
        return f"{match[1]} [from: {match[2]}, to: {match[3]}{closing}"

    return _substitute(_BARE_RUN, named, text)


def ids(text: str) -> str | None:
    """Ids are bare numbers; a run of them is !{range a b}, b left out."""
    line = _substitute(_TURN_WORD, lambda match: f"{match[1]}: ", text)
    line = _substitute(_RANGE_CALL, lambda match: f"turns: !{{range {match[1]} {match[2]}}}", line)
    return _substitute(_OPEN_IDS, lambda match: f"turns: [{match[1]}]", line)


def family_of_tag(text: str) -> str | None:
    """The verbs survey and evict are of exarch-context; index, under, read and grep of exarch-transcript."""

    def right(match: re.Match[str]) -> str:
        family = next(name for name, offered in FAMILIES.items() if match[3] in offered)
        return f"{family}{match[2]}{match[3]}"

    return _substitute(_FAMILY_TAG, right, text)


def flags(text: str) -> str | None:
    """Fields stand in a record, as key: value."""
    if not _FLAG.search(masked(text)):
        return None
    line = _substitute(_FLAG, lambda match: f", {match[1]}: ", text)
    return line.replace(", ", " ", 1)


def blank_after_colon(text: str) -> str | None:
    """A `:` needs a blank after it, or it is part of the word."""
    line = re.sub(rf"(?<=[\[,\s])(['\"])({_FIELD})\1\s*[:=]\s*", r"\2: ", text)
    line = _substitute(_TIGHT_KEY, lambda match: f"{match[2]}: ", line)
    return _substitute(_TIGHT_ARM, lambda match: f"{match[1]}: ", line)


def quotes_inside(text: str) -> str | None:
    """A string with a quote, a backslash or a $ in it stands in #'...'#, where nothing is special."""

    def raw(match: re.Match[str]) -> str:
        if _ADDED.search(match[4]):
            return match[0]
        body = match[4].replace('\\"', '"').replace("\\'", "'")
        return f"{match[1]}{match[2]}{quoted(body)}"

    return _QUOTED_VALUE.sub(raw, text)


def unquoted_text(text: str) -> str | None:
    """Text stands in quotes: '...'."""
    return _substitute(
        _UNQUOTED_VALUE, lambda match: f"{match[1]}: {quoted(text[match.start(2) : match.end(2)])}", text
    )


def commas(text: str) -> str | None:
    """Fields are separated by commas."""
    return _substitute(_MISSING_COMMA, lambda _match: ", ", text)


def square_brackets(text: str) -> str | None:
    """A record stands in square brackets."""
    return _substitute(_NO_BRACKETS, lambda match: f"{match[1]} [{text[match.start(2) : match.end(2)]}]", text)


def closing_bracket(text: str) -> str | None:
    """A record ends with its square bracket."""
    code = masked(text)
    return text + "]" if code.count("[") == code.count("]") + 1 else None


def trailing_mark(text: str) -> str | None:
    """The line ends with its last word, without a full stop."""
    return _TRAILING.sub("", text)


def prose(text: str) -> str | None:
    """A line stands by itself, without prose before or after it."""
    first = _CALL.search(text)
    if first is None:
        return None
    rest = text[first.start() :]
    code = masked(rest)
    around = text[: first.start()] + _CALL.sub(" ", code)
    if _CODE.search(around):  # other statements are no prose, and not ours to drop
        return None
    return "\n".join(rest[match.start() : match.end()].strip() for match in _CALL.finditer(code)) or None


# In the order they are tried: what wraps a line, then how its tag, its record and its strings are spelled, then what is left.
REPAIRS: tuple[Callable[[str], str | None], ...] = (
    code_fence,
    prompt_mark,
    curly_quotes,
    json_object,
    family_name,
    tag_spelling,
    called,
    family_of_tag,
    bare_run,
    flags,
    blank_after_colon,
    ids,
    quotes_inside,
    square_brackets,
    unquoted_text,
    commas,
    closing_bracket,
    trailing_mark,
    prose,
)
