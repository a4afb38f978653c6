"""Strings and JSON text on the way to an API: what every one of them refuses, put right; everything else untouched."""

from __future__ import annotations

import itertools
import json
import re
import zlib
from typing import Any, TypeVar, cast

T = TypeVar("T")

REPLACEMENT = "\ufffd"
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")
_SUSPECT_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_UNLAWFUL = re.compile(r"[^a-zA-Z0-9_-]")


def sanitise(value: T) -> T:
    """The same JSON value with every surrogate code point and NUL replaced by U+FFFD, in keys too.

    Answers the very object it was given when there is nothing to replace, and shares every part it need not change.
    Keys that become equal are told apart by further U+FFFD, so that no value is lost.
    """
    return cast("T", _sanitise(value))


def _sanitise(value: Any) -> Any:
    if isinstance(value, str):
        return _sanitise_text(value)
    if isinstance(value, dict):
        return _sanitise_object(value)
    return _sanitise_list(value) if isinstance(value, list) else value


def _sanitise_list(value: list[Any]) -> list[Any]:
    clean: list[Any] | None = None
    for index, item in enumerate(value):
        new = _sanitise(item)
        if new is not item:
            clean = clean or list(value)
            clean[index] = new
    return clean or value


def _sanitise_text(text: str) -> str:
    if "\0" not in text:
        if text.isascii():
            return text
        try:
            text.encode()
        except UnicodeEncodeError:
            pass
        else:
            return text
    return _UNSENDABLE.sub(REPLACEMENT, text)


def _sanitise_object(value: dict[str, Any]) -> dict[str, Any]:
    changed: dict[str, tuple[str, Any]] = {}
    for key, item in value.items():
        new = _sanitise_text(key), _sanitise(item)
        if new[0] is not key or new[1] is not item:
            changed[key] = new
    if not changed:
        return value
    clean: dict[str, Any] = {}
    for old, item in value.items():
        key, new_item = changed.get(old, (old, item))
        while key in clean:
            key += REPLACEMENT
        clean[key] = new_item
    return clean


def compact(value: object) -> str:
    """A JSON value as compact, sendable JSON text."""
    return json.dumps(sanitise(value), ensure_ascii=False, separators=(",", ":"))


def parsed_object(text: str) -> dict[str, Any] | None:
    """The object a JSON text spells; None when it is not JSON, or is not an object."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def clean_escapes(text: str) -> str:
    r"""JSON text whose ``\u`` escapes spell no NUL and no lone surrogate; other bytes as they were.

    Text that is no JSON object is answered unchanged: its backslashes are not ours to read.
    """
    if not _SUSPECT_ESCAPE.search(text) or parsed_object(text) is None:
        return text
    return _ESCAPE.sub(lambda escape: r"\ufffd" if escape[1] else escape[0], text)


def arguments_object(arguments: object) -> dict[str, Any]:
    """A call's arguments as the object Anthropic's ``input`` must be.

    JSON text is parsed; nothing becomes ``{}``; whatever is not an object goes under the one key ``input``, so that
    the model still sees what was called.
    """
    if isinstance(arguments, dict):
        return arguments
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    found = parsed_object(arguments) if isinstance(arguments, str) else None
    return {"input": arguments} if found is None else found


def arguments_text(arguments: object) -> str:
    """A call's arguments as the JSON text OpenAI's ``arguments`` must be; text that spells an object stays as it is."""
    if isinstance(arguments, str) and parsed_object(arguments) is not None:
        return arguments
    return compact(arguments_object(arguments))


def lawful_name(name: str, limit: int) -> str:
    """A tool's name within ``[a-zA-Z0-9_-]{1,limit}``: other characters become ``_``."""
    return _UNLAWFUL.sub("_", name)[:limit] or "_"


class CallIds:
    """Call ids as an API takes them: within its alphabet and length, and each used once.

    An id that is lawful and new stays as it is. Another one gets its own lawful stem and a checksum of the original,
    so that the same history always renders to the same bytes.
    """

    def __init__(self, *, alphabet: bool, unique: bool, limit: int = 64) -> None:
        self._alphabet, self._unique, self._limit = alphabet, unique, limit
        self._used: set[str] = set()

    def take(self, call_id: str) -> str:
        """The id to send for one call; its results carry the same."""
        lawful = call_id
        if not self._fits(call_id):
            spellings = (self._spelled(call_id, again) for again in itertools.count())
            lawful = next(spelling for spelling in spellings if spelling not in self._used)
        self._used.add(lawful)
        return lawful

    def _fits(self, call_id: str) -> bool:
        if not 0 < len(call_id) <= self._limit or (self._unique and call_id in self._used):
            return False
        return not (self._alphabet and _UNLAWFUL.search(call_id))

    def _spelled(self, call_id: str, again: int) -> str:
        check = zlib.crc32(f"{again} {call_id}".encode("utf-8", "surrogatepass"))
        return f"{_UNLAWFUL.sub('_', call_id)[: self._limit - 9]}_{check:08x}"
