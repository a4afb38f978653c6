"""The forms an answer takes: the door's literal, a table for eyes, JSON as one document, JSON a line each.

What is echoed is data beside a literal or a table; beside JSON it is talk, so that stdout holds documents only.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import msgspec

from exarch_sql import Found, Hit, Material, Row, Survey
from exarch_sql.cli import printing, tables
from exarch_sql.cli.printing import Column, Table
from exarch_sql.door import Failed
from exarch_sql.door.values import Map, Record, Value, Variant, key_literal, literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from exarch_sql.door import Answer, Door

Form = Literal["ral", "table", "json", "nl"]
FORMS: tuple[Form, ...] = get_args(Form)

T = TypeVar("T", bound=msgspec.Struct)

LAID_OUT_CHARS = 200_000  # of a literal: a longer one is printed on one line, for laying it out takes as long again
# the order of columns that eyes expect; what is not here follows by name
_ORDER = ("turn", "from", "to", "role", "kind", "line", "bytes", "location", "label", "text")


def run(door: Door, source: str, form: Form, write_literal: Callable[[Value, str], None] | None = None) -> None:
    """Run a source, and print what it said and its value, to stdout; what it said before it failed, too.

    ``write_literal`` is given a value and its literal, to print it its own way. Raises as the run does, and the door's refusals for
    a value that is too large to print, and for a block asked for in JSON.
    """
    try:
        answer = door.run(source)
    finally:
        said = sys.stderr if form in ("json", "nl") else sys.stdout
        if door.said and said is not None:
            said.write(printing.visible(door.said, keep="\n\t"))
    _show(answer, form, write_literal)


def _show(answer: Answer, form: Form, write_literal: Callable[[Value, str], None] | None) -> None:
    if not answer.shown:
        return
    if form == "json":
        printing.write_line(printing.json_text(answer.json))
    elif form == "nl":
        for line in answer.json if isinstance(answer.json, list) else [answer.json]:
            printing.write_line(printing.json_text(line))
    elif form == "table" and (document := _document(answer)) is not None:
        _show_table(document)
    elif write_literal is not None:
        write_literal(answer.value, answer.text)
    else:
        printing.write_line(printing.visible(answer.text, keep="\n\t"))


def _document(answer: Answer) -> list[Any] | dict[str, Any] | None:
    """The value in JSON where it has parts to set in a table."""
    try:
        document = answer.json
    except Failed:  # a block has no form in JSON
        return None
    return document if isinstance(document, list | dict) and document else None


# -- literals ------------------------------------------------------------------------------------------------------------------


def laid_out(value: Value, width: int, indent: int = 0) -> str:
    """The literal of a value, on several lines where one of ``width`` is not enough; it parses back to an equal value all the same.

    What holds no parts of its own, a row or a list of ids, stays on one line, whatever its length.
    """
    line = literal(value)
    if len(line) + indent <= width or _flat(value):
        return line
    pad = " " * (indent + 2)
    match value:
        case Variant(tag, payload) if payload is not None:
            return f"`{tag} {laid_out(payload, width, indent)}"
        case tuple():
            lead, parts = "[", [laid_out(each, width, indent + 2) for each in value]
        case Record(entries):
            lead, parts = "[", _entries(entries, width, indent)
        case Map(entries):
            lead, parts = "[:,", _entries(entries, width, indent)
        case _:  # a block
            return line
    return f"{lead}\n{pad}" + f",\n{pad}".join(parts) + f"\n{' ' * indent}]"


def _entries(entries: Mapping[str, Value], width: int, indent: int) -> list[str]:
    return [f"{key_literal(key)}: {laid_out(each, width, indent + 2)}" for key, each in entries.items()]


def _flat(value: Value) -> bool:
    return all(_is_part(each) for each in _parts(value))


def _is_part(value: Value) -> bool:
    """Whether a value is single, or a tag on what is flat."""
    if isinstance(value, Variant):
        return value.payload is None or _flat(value.payload)
    return not isinstance(value, tuple | Record | Map)


def _parts(value: Value) -> Iterable[Value]:
    match value:
        case tuple():
            return value
        case Record(entries) | Map(entries):
            return entries.values()
        case Variant(_, payload) if payload is not None:
            return (payload,)
    return ()


# -- tables ------------------------------------------------------------------------------------------------------------------


def _show_table(document: list[Any] | dict[str, Any]) -> None:
    """Print JSON with parts: the log's own answers as the command line prints them, anything else in columns by key."""
    try:
        turns = _turns(document)
        table = _known_table(document) if turns is None else None
    except (msgspec.ValidationError, AttributeError, KeyError, TypeError):  # it only looks like one
        turns = table = None
    if turns is None:
        printing.write_table(table or _table(document))
        return
    for text in tables.told(turns):
        printing.write_line(printing.visible(text, keep="\n\t"))


def _turns(document: list[Any] | dict[str, Any]) -> list[Material] | None:
    """What `read` answers, if it is that."""
    if isinstance(document, dict) or any(set(each) != {"turn", "role", "messages"} for each in document):
        return None
    turns = [msgspec.convert(each, Material) for each in document]
    for turn in turns:
        for message in turn.messages:
            msgspec.convert([message["role"], message["parts"]], tuple[str, list[dict[str, Any]]])
    return turns


def _known_table(document: list[Any] | dict[str, Any]) -> Table | None:
    """The table of a survey, of rows, or of hits; None for what is none of these."""
    match document:
        case {"rows": [*rows], "total-bytes": int(total)} if len(document) == 2:
            return tables.of_survey(Survey(tuple(map(_row, rows)), total))
        case {"hits": [*hits], "total": int(total)} if len(document) == 2:
            return tables.of_hits(Found(tuple(_answer(hit, Hit) for hit in hits), total))
        case [{"location": _}, *_]:
            return tables.of_rows(list(map(_row, document)))
    return None


def _row(document: dict[str, Any]) -> Row:
    place = document["location"]
    location = {"state": place} if isinstance(place, str) else {"state": "under", "span": _named(place["under"])}
    return _answer({**document, "location": location}, Row)


def _answer(document: dict[str, Any], kind: type[T]) -> T:
    """An answer out of its JSON. Raises one of several errors for what is not exactly one."""
    named = _named(document)
    if set(named) != set(kind.__struct_fields__):
        raise TypeError("other fields")
    return msgspec.convert(named, kind)


def _named(document: dict[str, Any]) -> dict[str, Any]:
    """JSON with the attribute's name for ``from``."""
    return {"from_" if key == "from" else key: part for key, part in document.items()}


def _table(document: list[Any] | dict[str, Any]) -> Table:
    """Any list or record in columns: records by key, lists by position, what is single in one."""
    if isinstance(document, dict):
        return Table([Column("key"), Column("value")], [(key, _cell(part)) for key, part in document.items()])
    if all(isinstance(each, dict) for each in document):
        keys = {key for each in document for key in each}
        names = [key for key in _ORDER if key in keys] + sorted(keys.difference(_ORDER))
        cells = [[each.get(name, "") for name in names] for each in document]
    elif all(isinstance(each, list) for each in document):
        names = [str(place) for place in range(max(map(len, document)))]
        cells = [each + [""] * (len(names) - len(each)) for each in document]
    else:
        names, cells = ["value"], [[each] for each in document]
    numbers = [all(_is_number(row[place]) for row in cells) for place in range(len(names))]
    columns = [Column(name, number) for name, number in zip(names, numbers, strict=True)]
    return Table(columns, [[_cell(cell) for cell in row] for row in cells])


def _is_number(part: object) -> bool:
    return isinstance(part, int | float) and not isinstance(part, bool)


def _cell(part: object) -> object:
    return part if isinstance(part, str) or _is_number(part) else printing.json_text(part)
