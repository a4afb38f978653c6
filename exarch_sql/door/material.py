"""What the log answers, as values: rows, surveys, and turns whose message parts are tags.

A part is one of six: ```` `text `program `result `reasoning `binary `custom ````. A message value carries the recorded message
as its JSON, so that ``--json`` gives it unchanged. A part that is a provider's signature alone has no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exarch_sql.door.values import Record, Value, Variant
from exarch_sql.messages import program_source, response_text

if TYPE_CHECKING:
    from exarch_sql.answers import Material, Message, Row, Survey

RESIDENT, WITHDRAWN = Variant("resident"), Variant("withdrawn")
SIGNATURES = frozenset({"thought_signature"})


def row_value(row: Row) -> Record:
    """``[from, to, role, kind, label, bytes, location]``."""
    span = row.location.span
    if span is not None:
        location = Variant("under", Record({"from": span.from_, "to": span.to}))
    else:
        location = RESIDENT if row.location.state == "resident" else WITHDRAWN
    return Record(
        {
            "bytes": row.bytes,
            "from": row.from_,
            "kind": row.kind,
            "label": row.label,
            "location": location,
            "role": row.role,
            "to": row.to,
        }
    )


def survey_value(survey: Survey) -> Record:
    """``[rows: [Row], total-bytes: Int]``."""
    return Record({"rows": tuple(row_value(row) for row in survey.rows), "total-bytes": survey.total_bytes})


def turn_value(turn: Material) -> Record:
    """``[turn, role, messages: [Message]]``."""
    messages = tuple(message_value(message) for message in turn.messages)
    return Record({"messages": messages, "role": turn.role, "turn": turn.turn})


def message_value(message: Message) -> Record:
    """```` [role: `user, parts: [Part]] ````."""
    parts = tuple(value for part in message["parts"] if (value := part_value(part)) is not None)
    return Record({"parts": parts, "role": Variant(str(message["role"]))}, json=message)


def part_value(part: Message) -> Variant | None:
    """One part as a tag, or None for a signature."""
    kind = part.get("type")
    if kind in SIGNATURES:
        return None
    tag, fields = _tagged(kind, part)
    return Variant(tag, Record.of(fields), json=part)


def _tagged(kind: Any, part: Message) -> tuple[str, dict[str, Value]]:
    match kind:
        case "text" | "reasoning":
            return kind, {"content": _text(part.get("content"))}
        case "tool_call":
            arguments = part.get("arguments")
            keys = tuple(map(str, arguments)) if isinstance(arguments, dict) else ()
            return "program", {"tool": _text(part.get("name")), "source": program_source(part), "keys": keys}
        case "tool_call_response":
            return "result", {"content": response_text(part.get("response"))}
        case "blob" | "file" | "uri":
            return "binary", {
                "content-type": _text(part.get("mime_type")),
                "name": _text(part.get("name") or part.get("file_id") or part.get("uri")),
                "bytes": _decoded_bytes(part.get("content")),
            }
    return "custom", {"provider": _text(part.get("provider")), "model": _text(part.get("model"))}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _decoded_bytes(content: Any) -> int:
    """How many bytes base64 text stands for; 0 where the content lies elsewhere."""
    if not isinstance(content, str):
        return 0
    return len(content.rstrip("=")) * 3 // 4
