"""What may stand at the end of a text: read off the door's own tokens before it, so that completion and language agree.

A place is what the tokens leave open: the brackets, the verb whose record is being written and its field, the head of the
statement. From a place follow the offers: verbs and names, tags, fields, ids with their labels.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from exarch_sql.answers import RESIDENT, WITHDRAWN, Hit, Material, Row, Survey
from exarch_sql.cli.printing import visible
from exarch_sql.door import material, values
from exarch_sql.door.lexer import STARTS, Lexer, Token
from exarch_sql.door.limits import Limits, Meter
from exarch_sql.door.prelude import BUILTINS
from exarch_sql.door.refusals import DoorRefused
from exarch_sql.door.verbs import FAMILIES, VERBS, Verb

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from exarch_sql.shell.catalogue import Catalogue, Offer, Sort

COMPLETED_CHARS = 10_000  # a longer text gets no offers
ID_DIGITS = 19  # of a 64-bit turn id
_PARTIAL = re.compile(r"[`$]?[A-Za-z0-9_-]*\Z")
_KEYWORDS = ("let ", "case ", "return ")
_OPENERS = {
    "LBRACE": "block",
    "LSQB": "list",
    "MAP_OPEN": "list",
    "INDEX_OPEN": "index",
    "EXPR_OPEN": "expr",
    "_LPAR": "expr",
}
_CLOSERS = frozenset(("RBRACE", "RSQB", "_RPAR", "DQ_CLOSE"))


class Candidate(NamedTuple):
    """A text for the place of the last ``length`` characters before the cursor, and what it is."""

    text: str
    length: int
    about: str = ""


@dataclasses.dataclass
class Frame:
    """An open bracket: what it holds, and what the tokens in it have said so far."""

    kind: str  # block | list | index | expr | text
    verb: Verb | None = None  # whose record it is
    given: set[str] = dataclasses.field(default_factory=set)  # fields so far
    field: str = ""  # the one being given a value
    head: str = ""  # of the statement, in a block
    in_params: bool = False  # between the bars of a block
    of_case: bool = False  # the arms of a case


@dataclasses.dataclass
class Place:
    """Where the text ends: the open brackets, outermost first, and the last token before the word being written."""

    frames: list[Frame]
    last: Token | None
    names: list[str]  # bound in the text itself: by a let, or as a parameter

    @property
    def frame(self) -> Frame:
        """The innermost bracket."""
        return self.frames[-1]

    @property
    def starts(self) -> bool:
        """Whether a statement starts here."""
        return self.frame.kind == "block" and (self.last.kind if self.last else "") in STARTS


def complete(text: str, catalogue: Catalogue) -> list[Candidate]:
    """What may stand at the end of ``text``, in the order to offer it; nothing inside a string or a comment."""
    found = _PARTIAL.search(text)
    partial = found[0] if found else ""
    place = place_of(text[: len(text) - len(partial)])
    if place is None:
        return []
    return [
        Candidate(offer, len(partial), visible(about)[:60])
        for offer, about in _offers(place, partial, catalogue)
        if offer.startswith(partial) and offer != partial
    ]


# -- places --------------------------------------------------------------------------------------------------------------------


def place_of(text: str) -> Place | None:
    """The place at the end of ``text``; None where nothing can be offered."""
    if len(text) > COMPLETED_CHARS or _in_comment(text):
        return None
    frames, last = [Frame("block")], None
    names: list[str] = []
    try:
        for token in Lexer(text, Meter(Limits())).tokens():
            if token.kind == "WORD" and last is not None and (last.kind == "LET" or frames[-1].in_params):
                names.append(str(token.value))
            _read(frames, last, token)
            last = token
    except DoorRefused as error:
        unread = text[last.end if last else 0 :].strip(" \t\n")
        if unread and not (frames[-1].kind == "text" or error.span == (len(text), len(text))):
            return None  # a string still open, or what is no sentence
    return Place(frames, last, names)


def _in_comment(text: str) -> bool:
    """Whether the last line is a comment: then the lexer says the same with and without a letter more."""
    line = text[text.rfind("\n") + 1 :]
    mark = re.search(r"(?:^|[\s;])#(?!#*')", line)
    return mark is not None and not re.search(r"['\"]", line[: mark.start()])


def _read(frames: list[Frame], last: Token | None, token: Token) -> None:
    """Follow one token."""
    frame, before = frames[-1], last.kind if last else ""
    if token.kind in _OPENERS:
        verb = VERBS.get(str(last.value)) if last and before == "TAG" else None
        frames.append(Frame(_OPENERS[token.kind], verb=verb, of_case=frame.head == "case" and before != "CASE"))
    elif token.kind == "DQ_OPEN":
        frames.append(Frame("text"))
    elif token.kind in _CLOSERS and len(frames) > 1:
        frames.pop()
    elif token.kind == "_BAR":
        frame.in_params = not frame.in_params
    elif token.kind == "_COMMA":
        frame.field = ""
    elif token.kind == "_COLON" and last is not None:
        frame.field = str(last.value)
        frame.given.add(frame.field)
    elif frame.kind == "block" and before in STARTS:
        frame.head = f"`{token.value}" if token.kind == "TAG" else str(token.value)


# -- offers --------------------------------------------------------------------------------------------------------------------


def _offers(place: Place, partial: str, catalogue: Catalogue) -> Iterable[Offer]:
    frame = place.frame
    if partial.startswith("$"):
        return [(f"${name}", "") for name in dict.fromkeys([*reversed(place.names), *catalogue.names()])]
    if frame.kind == "text" or frame.in_params:
        return []
    if partial.startswith("`"):
        return _tags(place)
    if not partial or partial.isdecimal():
        ids = _ids(place, partial, catalogue)
        if ids or partial:
            return ids
    return _words(place, catalogue)


def _tags(place: Place) -> Iterable[Offer]:
    frame = place.frame
    if place.starts:
        return [_verb(verb) for verb in VERBS.values()]
    if frame.kind == "block" and frame.head in FAMILIES and _is_head(place):
        return [_verb(verb) for verb in FAMILIES[frame.head].values()]
    if frame.verb is not None and frame.field == "turns":
        return [("`all", "every turn, and the notes"), ("`only [", "these turns")]
    return [(f"`{tag}{': { |p| ' if frame.of_case else ''}", "") for tag in _answered().tags]


def _is_head(place: Place) -> bool:
    return place.last is not None and place.last.value == place.frame.head


def _verb(verb: Verb) -> Offer:
    fields = f"[{', '.join(verb.fields)}]" if verb.fields else ""
    return f"`{verb.tag}{' [' if fields else ''}", f"{verb.family} {fields}".rstrip()


def _words(place: Place, catalogue: Catalogue) -> Iterator[Offer]:
    frame = place.frame
    if frame.kind == "index":
        yield from ((name, "") for name in _answered().fields)
    elif frame.verb is not None and frame.verb.fields and not frame.field:
        yield from ((f"{name}: ", frame.verb.tag) for name in frame.verb.fields if name not in frame.given)
    elif place.starts:
        yield from ((f"{family} ", "verbs") for family in FAMILIES)
        yield from ((f"{name} ", "bound") for name in catalogue.names())
        yield from ((f"{name} ", b.teaching) for name, b in BUILTINS.items() if name not in FAMILIES)
        yield from ((word, "") for word in _KEYWORDS)
    elif frame.kind == "block" and frame.head in FAMILIES and _is_head(place):
        yield from map(_verb, FAMILIES[frame.head].values())
    elif frame.kind == "block" and frame.head == "explain":
        yield from ((name, "") for name in BUILTINS)


def _ids(place: Place, digits: str, catalogue: Catalogue) -> list[Offer]:
    """Ids where a turn is named: in a field of a verb's record, in a list or a range inside one, after ``range``."""
    if len(digits) > ID_DIGITS or not _value_may_start(place):
        return []
    sort: Sort = "turns"
    end: Literal["from", "to"] = "from"
    owner = next((frame for frame in reversed(place.frames) if frame.verb is not None), None)
    ranged = place.frame.head == "range"
    if owner is None or owner.verb is None:
        return catalogue.ids(sort, end, digits) if ranged else []
    if owner.field in ("from", "to") and owner is place.frame:
        sort = "context" if owner.verb.tag == "evict" else "residues"
        end = "from" if owner.field == "from" else "to"
    elif owner.field != "turns" or not (ranged or place.frame.kind == "list"):
        return []
    elif owner is place.frame:
        return []  # a list comes first
    return catalogue.ids(sort, end, digits)


def _value_may_start(place: Place) -> bool:
    return place.last is not None and (place.last.kind in ("_COLON", "_COMMA", "LSQB") or place.frame.head == "range")


# -- what answers hold ---------------------------------------------------------------------------------------------------------


class Answered(NamedTuple):
    """The fields and tags that the log's answers are made of."""

    fields: list[str]
    tags: list[str]


PART_TYPES = ("text", "reasoning", "tool_call", "tool_call_response", "blob", "custom")
ROLES = ("user", "assistant", "tool", "system")


@functools.cache
def _answered() -> Answered:
    """Read off one answer of each kind, so that it is what `exarch_sql.door.material` makes."""
    row = Row(1, 1, "user", "own", "", 0, RESIDENT)
    messages = tuple({"role": role, "parts": [{"type": kind} for kind in PART_TYPES]} for role in ROLES)
    samples: list[values.Value] = [
        material.survey_value(Survey((row,), 0)),
        material.row_value(Row(1, 1, "user", "own", "", 0, WITHDRAWN)),
        material.turn_value(Material(1, "user", messages)),
        values.Record.of({"hits": (values.Record.of(Hit(1, 1, "own", "user", 1, "").to_dict()),), "total": 1}),
        values.Variant("under", values.Record.of({"from": 1, "to": 1})),
    ]
    fields: set[str] = set()
    tags: set[str] = set()
    while samples:
        match samples.pop():
            case values.Record(inner):
                fields.update(inner)
                samples += inner.values()
            case values.Variant(tag, payload):
                tags.add(tag)
                samples += [] if payload is None else [payload]
            case tuple(items):
                samples += items
    return Answered(sorted(fields), sorted(tags))
