"""How a block becomes an OpenTelemetry part and comes back: what the form has no place for is kept beside it.

The convention, for parts and messages alike:

- A provider field the form has no key for stays under its own name, as a further key.
- A field whose name the form already uses, or that the way back needs to know, goes under the provider's name
  (``"anthropic"`` or ``"openai"``).
- A block the form has no part for is kept whole, under its own type (``"<provider>.<type>"`` should the form use that
  type for something else). Base64 inside it is tucked into a blob, so that binary is never text.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from exarch_sql.text import compact

if TYPE_CHECKING:
    from collections.abc import Container

Obj = dict[str, Any]

ANTHROPIC, CHAT, RESPONSES = "anthropic", "openai-chat", "openai-responses"
SPACES = ("anthropic", "openai")

_ATTACHMENT_KEY = {"blob": "content", "uri": "uri", "file": "file_id"}
ATTACHMENT_TYPES = tuple(_ATTACHMENT_KEY)
PART_KEYS: dict[str, frozenset[str]] = {
    "text": frozenset({"type", "content"}),
    "tool_call": frozenset({"type", "id", "name", "arguments"}),
    "tool_call_response": frozenset({"type", "id", "response"}),
    "reasoning": frozenset({"type", "content"}),
    "blob": frozenset({"type", "mime_type", "modality", "content"}),
    "uri": frozenset({"type", "mime_type", "modality", "uri"}),
    "file": frozenset({"type", "mime_type", "modality", "file_id"}),
}
MESSAGE_KEYS = frozenset({"role", "parts", "provider", "blocks"})
_TYPE_ONLY = frozenset({"type"})

NO_CONTENT = "(no content)"


def modality_of(mime_type: str | None) -> str:
    """``"image"``, ``"audio"`` or ``"video"`` by the media type's own first half; anything else is a ``"document"``."""
    first = (mime_type or "").partition("/")[0].strip().lower()
    return first if first in ("image", "audio", "video") else "document"


def keep(target: Obj, source: Obj, spent: Container[str], space: str, taken: Container[str] | None = None) -> Obj:
    """``target`` with every field of ``source`` that is not in ``spent``, by the module's convention.

    ``taken`` is the form's own keys: a part's by its type, or ``MESSAGE_KEYS``.
    """
    taken = taken or PART_KEYS.get(target["type"], _TYPE_ONLY)
    for key, value in source.items():
        if key in spent:
            continue
        if key in target or key in taken or key in SPACES:
            target.setdefault(space, {})[key] = value
        else:
            target[key] = value
    return target


def hint(part: Obj, space: str, **fields: object) -> Obj:
    """``part`` with what the way back needs to know, under the provider's name."""
    part.setdefault(space, {}).update(fields)
    return part


def apart(part: Obj, space: str, taken: Container[str] | None = None) -> tuple[Obj, Obj]:
    """What a part or message holds beyond the form: its further keys, and what lies under the provider's name."""
    taken = taken or PART_KEYS.get(part["type"], _TYPE_ONLY)
    flat = {key: value for key, value in part.items() if key not in taken and key not in SPACES}
    spaced = part.get(space)
    return flat, dict(spaced) if isinstance(spaced, dict) else {}


def further(part: Obj, space: str, *, own: bool, allowed: Container[str] = ()) -> Obj:
    """The provider's fields of a part: all of them for its own messages, else the ``allowed`` further keys."""
    flat, spaced = apart(part, space)
    if own:
        return flat | spaced
    return {key: value for key, value in flat.items() if key in allowed}


# -- blocks kept whole ------------------------------------------------------------------------------------------------


def opaque(block: Obj, space: str, *, inside: bool = False) -> Obj:
    """A block the form has no part for, whole. ``inside`` marks a content block where whole items stand beside it."""
    tucked: Obj = tuck(block)
    if block["type"] not in PART_KEYS and not inside:
        return tucked
    part = keep({"type": f"{space}.{block['type']}"}, tucked, ("type",), space)
    return hint(part, space, type=block["type"], **({"inside": True} if inside else {}))


def unwrapped(part: Obj, space: str) -> Obj:
    """The block ``opaque`` was given."""
    spaced = part.get(space)
    if part["type"].startswith(f"{space}.") and isinstance(spaced, dict) and "type" in spaced:
        fields = further(part, space, own=True)
        fields.pop("inside", None)
        part = {"type": fields.pop("type"), **fields}
    return {key: untuck(value) for key, value in part.items()}


def tuck(value: Any) -> Any:
    """The same JSON value with base64 sources and data URIs in it as blobs, marked ``"tucked"`` for the way back."""
    if isinstance(value, str):
        cut = split_data_uri(value)
        return _tucked(*cut, "data-uri") if cut else value
    if isinstance(value, list):
        return [tuck(item) for item in value]
    if not isinstance(value, dict):
        return value
    out = {key: tuck(item) for key, item in value.items()}
    if value.get("type") == "base64" and isinstance(value.get("data"), str):
        media_type = value.get("media_type")
        out["data"] = _tucked(media_type if isinstance(media_type, str) else None, value["data"], "base64")
    return out


def _tucked(mime_type: str | None, content: str, how: str) -> Obj:
    return {
        "type": "blob",
        "mime_type": mime_type,
        "modality": modality_of(mime_type),
        "content": content,
        "tucked": how,
    }


def tucked_base64(content: str, mime_type: str) -> Obj:
    """Bare base64 as a blob that ``untuck`` turns back into the text it was."""
    return _tucked(mime_type, content, "base64")


def untuck(value: Any) -> Any:
    """The value ``tuck`` was given. Always a new object, all the way down."""
    if isinstance(value, list):
        return [untuck(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "blob" and value.get("tucked") == "data-uri":
        return data_uri(value["mime_type"], value["content"])
    if value.get("type") == "blob" and value.get("tucked") == "base64":
        return value["content"]
    return {key: untuck(item) for key, item in value.items()}


# -- binary -----------------------------------------------------------------------------------------------------------


def split_data_uri(uri: str) -> tuple[str, str] | None:
    """Media type and base64 text of a ``data:...;base64,...`` URI; None for any other text."""
    if not uri.startswith("data:"):
        return None
    head, comma, body = uri.partition(",")
    return (head[5:-7], body) if comma and head.endswith(";base64") and len(head) >= 12 else None


def data_uri(mime_type: str | None, content: str) -> str:
    """The URI ``split_data_uri`` takes apart."""
    return f"data:{mime_type or ''};base64,{content}"


def decoded_text(part: Obj) -> str | None:
    """The text of a blob of a ``text/*`` type; None for other blobs, or when it is not base64 of UTF-8."""
    if part["type"] != "blob" or not (part.get("mime_type") or "").startswith("text/"):
        return None
    try:
        return base64.b64decode(part["content"], validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def is_web(part: Obj) -> bool:
    """Whether a uri part names something an API can fetch."""
    return part["type"] == "uri" and str(part["uri"]).startswith(("http://", "https://"))


def are_parts(response: Any) -> bool:
    """Whether a result is a list of parts a model can be shown, not a JSON value of the tool's own."""
    return isinstance(response, list) and bool(response) and all(map(_is_showable, response))


def _is_showable(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    if part.get("type") == "text":
        return isinstance(part.get("content"), str)
    kind = part.get("type")
    held = _ATTACHMENT_KEY.get(kind) if isinstance(kind, str) else None
    return held is not None and isinstance(part.get("modality"), str) and isinstance(part.get(held), str)


# -- said as text, where an API has no other place for it -------------------------------------------------------------


def said(part: Obj) -> str:  # noqa: PLR0911 -- a case a line
    """A part as text, for an API that takes it in no other form there; empty when there is nothing a model ever saw.

    An attachment is named, not shown; a block of another provider is its JSON, without what only that provider can
    read.
    """
    kind = part["type"]
    if kind == "reasoning":
        return ""
    if kind == "text":
        return str(part["content"])
    if isinstance(part.get("transcript"), str):
        return str(part["transcript"])
    if kind == "blob":
        return f"[{_named(part)}, {_size(part['content'])} bytes: not carried into this request]"
    if kind == "uri":
        return f"[{_named(part)}: {part['uri']}]"
    if kind == "file":
        return f"[{_named(part)}, file id {part['file_id']}: not carried into this request]"
    if kind == "message" and not part.get("content"):
        return ""
    return compact(_lightened(part))


def captions(part: Obj) -> list[str]:
    """What a document is called and said to be, for an API whose documents carry no such words."""
    return [part[key] for key in ("title", "context") if isinstance(part.get(key), str) and part[key].strip()]


def _named(part: Obj) -> str:
    name = part.get("filename") or part.get("title")
    kind = part.get("mime_type") or part["modality"]
    return f"attachment {name}, {kind}" if isinstance(name, str) else f"attachment, {kind}"


def _size(content: str) -> int:
    return len(content) * 3 // 4 - content[-2:].count("=")


def _lightened(value: Any) -> Any:
    if isinstance(value, list):
        return [_lightened(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "blob" and isinstance(value.get("content"), str):
        return f"{_size(value['content'])} bytes"
    return {
        key: _lightened(item)
        for key, item in value.items()
        if not key.startswith("encrypted_") and key not in ("signature", *SPACES)
    }
