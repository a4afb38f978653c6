"""The tables of answers: which columns eyes see of rows, hits, logs and messages. Spans are written as ``read`` takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exarch_sql.cli.printing import Column, Table
from exarch_sql.messages import dumps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from exarch_sql import Found, LogInfo, Material, Report, Row, Survey
    from exarch_sql.answers import Location, Message

    Json = Mapping[str, Any]


def span(from_: int, to: int) -> str:
    """``41`` or ``41-60``."""
    return str(from_) if from_ == to else f"{from_}-{to}"


def grouped(number: int) -> str:
    """A count or size for eyes: ``12,345``."""
    return f"{number:,}"


def of_survey(survey: Survey) -> Table:
    """What is resident, and its bytes together."""
    columns = [
        Column("turns", number=True),
        Column("role"),
        Column("kind"),
        Column("bytes", number=True),
        Column("label"),
    ]
    rows = [(span(row.from_, row.to), row.role, row.kind, grouped(row.bytes), row.label) for row in survey.rows]
    return Table(columns, rows, ("", "", "total", grouped(survey.total_bytes), "") if rows else ())


def of_rows(rows: Sequence[Row]) -> Table:
    """Items, each with its location."""
    columns = [
        Column("turns", number=True), Column("role"), Column("kind"), Column("bytes", number=True), Column("location"),
        Column("label"),
    ]  # fmt: skip
    return Table(
        columns,
        [
            (span(row.from_, row.to), row.role, row.kind, grouped(row.bytes), _location(row.location), row.label)
            for row in rows
        ],
    )


def _location(location: Location) -> str:
    return f"under {span(location.span.from_, location.span.to)}" if location.span else location.state


def of_hits(found: Found) -> Table:
    """Matching lines."""
    columns = [
        Column("turns", number=True),
        Column("kind"),
        Column("role"),
        Column("line", number=True),
        Column("text"),
    ]
    return Table(columns, [(span(hit.from_, hit.to), hit.kind, hit.role, hit.line, hit.text) for hit in found.hits])


def of_logs(logs: Sequence[LogInfo]) -> Table:
    """Every log and where it stands."""
    columns = [
        Column("log", number=True), Column("name"), Column("parent"), Column("opened", number=True),
        Column("reach", number=True), Column("state"), Column("items", number=True), Column("bytes", number=True),
    ]  # fmt: skip
    rows = [
        (one.log, one.name, one.parent, one.opened, one.reach, one.state, one.items, grouped(one.bytes)) for one in logs
    ]
    return Table(columns, rows)


def of_imports(reports: Sequence[Json]) -> Table:
    """What was found in each file, and what of it was new."""
    counts = ("prompts", "replies", "calls", "damaged", "new-records", "already-there")
    columns = [Column("file"), Column("log"), *(Column(name.replace("-", " "), number=True) for name in counts)]
    rows = []
    for report in reports:
        agents = report.get("agents") or []
        name = f"{report['log'] or ''}{f' and {len(agents)} of agents' if agents else ''}"
        rows.append((report["file"], name, *(report.get(count, 0) for count in counts)))
    return Table(columns, rows)


def of_faults(report: Report) -> Table:
    """What is wrong with a file, the first fault first."""
    return Table(
        [Column("kind"), Column("where"), Column("what")],
        [(fault.kind, fault.where, fault.what) for fault in report.faults],
    )


def of_facts(facts: Json) -> Table:
    """Names and numbers, one to a row; a group's members are named after it."""
    rows: list[tuple[str, object]] = []
    for name, value in facts.items():
        if isinstance(value, dict):
            rows += [(f"{name}: {member}", _number(part)) for member, part in value.items()]
        else:
            rows.append((name.replace("-", " "), _number(value)))
    return Table([Column("what"), Column("value", number=True)], rows)


def _number(value: object) -> object:
    return grouped(value) if isinstance(value, int) else value


# -- what was said -------------------------------------------------------------------------------------------------------------


def told(materials: Iterable[Material]) -> Iterator[str]:
    """Turns as text for eyes: a heading for each, then what was said in it, whole."""
    for material in materials:
        yield f"== turn {material.turn}, {material.role} =="
        yield from spoken(material.messages)


def spoken(messages: Iterable[Message]) -> Iterator[str]:
    """Messages as text for eyes: a heading for each part that says who speaks, or what it is."""
    for message in messages:
        for part in message["parts"]:
            heading, text = _part(message["role"], part)
            yield f"-- {heading} --"
            if text:
                yield text
        yield ""


def _part(role: str, part: Json) -> tuple[str, str]:
    kind = part.get("type")
    match kind:
        case "text":
            return role, str(part.get("content", ""))
        case "reasoning":
            return f"{role}, reasoning", str(part.get("content", ""))
        case "tool_call":
            return f"{role}, call {part.get('id')} of {part.get('name')}", _words(part.get("arguments"))
        case "tool_call_response":
            return f"result of {part.get('id')}", _words(part.get("response"))
        case "blob":
            size = len(str(part.get("content", ""))) * 3 // 4
            return f"{role}, {part.get('mime_type') or 'binary'} of about {grouped(size)} bytes", ""
    return f"{role}, {kind}", dumps({name: value for name, value in part.items() if name != "type"})


def _words(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else dumps(value)
