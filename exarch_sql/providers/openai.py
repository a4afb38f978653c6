"""What OpenAI's two APIs share: content blocks, and the words they have no field for.

Chat and Responses name the same blocks differently; ``"openai": {"type": ...}`` on a part keeps a name that the writer
would not choose by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from exarch_sql.providers import shapes
from exarch_sql.providers.keeping import PART_KEYS, Obj, data_uri, hint, keep, modality_of, opaque, split_data_uri
from exarch_sql.text import compact

SPACE = "openai"
FILE_KEYS = ("file_data", "file_url", "file_id")
ERROR_MARK = "[error] "
AUDIO_FORMATS = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_AUDIO_NAMES = {mime: name for name, mime in AUDIO_FORMATS.items()} | {"audio/x-wav": "wav", "audio/mp3": "mp3"}

Namer = Callable[[Obj], str]


def read_block(block: Obj, path: str, name_of: Namer, *, inside: bool = False) -> Obj:
    """The part of one content block. ``name_of`` says which block type the way back would choose for a part."""
    part = _read_known(block, path)
    if part is None:
        return opaque(block, SPACE, inside=inside)
    if name_of(part) != block["type"]:
        hint(part, SPACE, type=block["type"])
    return part


def _read_known(block: Obj, path: str) -> Obj | None:  # noqa: PLR0911 -- a case a line
    kind = block["type"]
    if kind in ("text", "input_text", "output_text"):
        return keep({"type": "text", "content": shapes.text_at(block, "text", path)}, block, ("type", "text"), SPACE)
    if kind == "refusal":
        text = shapes.text_at(block, "refusal", path)
        return keep({"type": "text", "content": text}, block, ("type", "refusal"), SPACE)
    if kind == "image_url":
        return _read_chat_image(block, path)
    if kind == "input_image" and isinstance(block.get("image_url"), str):
        return keep(from_uri(block["image_url"], "image"), block, ("type", "image_url"), SPACE)
    if kind == "input_audio":
        return _read_audio(block, path)
    if kind == "file":
        return _read_chat_file(block, path)
    if kind in ("input_image", "input_file"):
        return _read_file(block, block, "image" if kind == "input_image" else "document")
    return None


def _read_chat_image(block: Obj, path: str) -> Obj:
    image = block.get("image_url")
    if isinstance(image, str):
        return hint(keep(from_uri(image, "image"), block, ("type", "image_url"), SPACE), SPACE, bare=True)
    image = shapes.object_at(image, f"{path}.image_url")
    part = from_uri(shapes.text_at(image, "url", f"{path}.image_url"), "image")
    return _keep_nested(part, block, "image_url", ("url",), ("detail",))


def _read_audio(block: Obj, path: str) -> Obj:
    audio = shapes.object_at(block.get("input_audio"), f"{path}.input_audio")
    data = shapes.text_at(audio, "data", f"{path}.input_audio")
    name = shapes.text_at(audio, "format", f"{path}.input_audio")
    mime = AUDIO_FORMATS.get(name, f"audio/{name}")
    part: Obj = {"type": "blob", "mime_type": mime, "modality": "audio", "content": data}
    spent = ("data", "format") if audio_format(part) == name else ("data",)
    return _keep_nested(part, block, "input_audio", spent, ())


def _read_chat_file(block: Obj, path: str) -> Obj | None:
    file = shapes.object_at(block.get("file"), f"{path}.file")
    part = _read_file(file, {}, "document", ("file_data", "file_id"))
    if part is None:
        return None
    spent = ("file_id",) if part["type"] == "file" else ("file_data",)
    return _keep_nested(part, block, "file", spent, ("filename",))


def _read_file(fields: Obj, kept: Obj, modality: str, keys: tuple[str, ...] = FILE_KEYS) -> Obj | None:
    """A file by its bytes, address or id, whichever it has first; None when it has none of them."""
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str):
            part = (
                {"type": "file", "modality": modality, "file_id": value}
                if key == "file_id"
                else from_uri(value, modality)
                if key == "file_url" or split_data_uri(value)
                else {"type": "blob", "mime_type": None, "modality": modality, "content": value}
            )
            return keep(part, kept, ("type", key), SPACE)
    return None


def _keep_nested(part: Obj, block: Obj, key: str, spent: tuple[str, ...], lifted: tuple[str, ...]) -> Obj:
    """Keeps a block's nested fields: the ``lifted`` ones on the part itself, the others under their own object.

    The names of lifted ones are taken even when absent: the block's own field of such a name must not pass for one.
    """
    nested = block[key]
    rest = {name: value for name, value in nested.items() if name not in (*spent, *lifted)}
    part |= {name: nested[name] for name in lifted if name in nested}
    keep(part, block, ("type", key), SPACE, PART_KEYS[part["type"]].union(lifted))
    return hint(part, SPACE, **{key: rest}) if rest else part


def from_uri(uri: str, modality: str) -> Obj:
    """A blob for a base64 data URI, a uri part for any other. A document's modality follows its media type."""
    cut = split_data_uri(uri)
    if cut is None:
        return {"type": "uri", "modality": modality, "uri": uri}
    found = modality if modality != "document" else modality_of(cut[0])
    return {"type": "blob", "mime_type": cut[0], "modality": found, "content": cut[1]}


def uri_of(part: Obj) -> str:
    """The URI ``from_uri`` was given; bare base64 where there is no media type to name."""
    if part["type"] == "uri":
        return str(part["uri"])
    mime = part.get("mime_type")
    return part["content"] if mime is None else data_uri(mime, part["content"])


def audio_format(part: Obj) -> str:
    """OpenAI's name for an audio blob's format."""
    mime = (part.get("mime_type") or "").lower()
    return _AUDIO_NAMES.get(mime, mime.partition("/")[2])


def marked_error(part: Obj) -> str:
    """What to put before a result that failed: OpenAI's results have no ``is_error``, and the model must still know."""
    return ERROR_MARK if part.get("is_error") is True else ""


def result_text(response: Any) -> str:
    """A result as text: text as it is, nothing as nothing, any other value as compact JSON."""
    if response is None:
        return ""
    return response if isinstance(response, str) else compact(response)
