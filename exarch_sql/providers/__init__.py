"""Messages between the providers' shapes and the OpenTelemetry GenAI form, both ways, without loss.

``to_otel`` and ``results_to_otel`` take what a harness has in hand; ``render`` gives arrays the APIs accept as they
are. What one provider knows and the form does not is kept beside the form (see ``keeping``), and two keys on a
message say how to bring it back:

- ``"provider"``: ``"anthropic"``, ``"openai-chat"`` or ``"openai-responses"``: the further keys here are that API's,
  and go back to it unchanged. It is left off where the form alone brings the very same message back.
- ``"blocks": true``: the content was a list, though one text would do as a string.

Binary is always ``{"type": "blob", "mime_type", "modality", "content": base64}``, at whatever depth. Everything is a
pure function; nothing given is changed, though answers may share its objects.
"""

from __future__ import annotations

from typing import Any, Literal

from exarch_sql.errors import Refused
from exarch_sql.providers import anthropic, chat, responses, shapes
from exarch_sql.providers.keeping import ANTHROPIC, CHAT, RESPONSES, Obj, modality_of
from exarch_sql.providers.results import read_results
from exarch_sql.text import arguments_object, sanitise

__all__ = ["FORMATS", "Format", "arguments_object", "modality_of", "render", "results_to_otel", "sanitise", "to_otel"]

Format = Literal["otel", "anthropic", "openai-chat", "openai-responses"]
FORMATS: tuple[Format, ...] = ("otel", "anthropic", "openai-chat", "openai-responses")

_WRITERS = {ANTHROPIC: anthropic.render, CHAT: chat.render, RESPONSES: responses.render}
_GIVEN_TO = {"assistant": "log.assistant(...)", "tool": "log.tool_results([...])"}


def to_otel(message: Any, role: str) -> list[Obj]:
    """A message in any shape taken, as OpenTelemetry messages.

    ``message`` is text; an OpenTelemetry message (checked, then answered unchanged); an Anthropic message or whole
    response; an OpenAI chat message; a Responses item, or a list of them. ``role`` says whose message it is to be:
    user, assistant, tool, system or developer.

    Nearly always one message. An Anthropic user message with tool results gives one tool message per result and one
    user message for the rest; a list of Responses items gives one assistant message per reply.

    Raises Refused for another shape, the marks of two providers, a call without an id or two with the same, a message
    in another's voice; with the place, what stands there and what is taken.
    """
    if role not in shapes.ROLES:
        raise Refused(f"cannot take a message in the role {role!r}: the roles are {', '.join(shapes.ROLES)}")
    if isinstance(message, str):
        if role == "tool":
            shapes.refuse("message", "got text for a tool's result", 'name its call: {"id": ..., "content": text}')
        return [{"role": role, "parts": [{"type": "text", "content": message}]}]
    shapes.require_json(message)
    if isinstance(message, list):
        out = _read_items(message)
        _require_voice(out, role)
        return out
    if not isinstance(message, dict):
        shapes.refuse("message", f"got {shapes.kind_of(message)}", f"a message is one of: {shapes.TAKEN}")
    shape = shapes.shape_of(message)
    out = _read(message, shape)
    mixed = shape == ANTHROPIC and role not in _GIVEN_TO  # a user message of theirs may hold results
    _require_voice([each for each in out if not (mixed and each["role"] == "tool")], role)
    return out


def _read(message: Obj, shape: str) -> list[Obj]:
    if shape == shapes.OTEL:
        shapes.check_otel(message)
        _check_marks(message)
        return [message]
    if shape == ANTHROPIC:
        return anthropic.read(message)
    if shape == RESPONSES:
        return responses.read([message], "")
    return chat.read(message)


def _read_items(items: list[Any]) -> list[Obj]:
    if not items:
        shapes.refuse("message", "got an empty list", f"a message is one of: {shapes.TAKEN}")
    for index, item in enumerate(items):
        shape = shapes.shape_of(shapes.object_at(item, f"[{index}]"), f"[{index}]", among_items=True)
        if shape != RESPONSES:
            shapes.refuse(
                f"[{index}]", f"got a message of shape {shape}", "a list holds Responses items; give others alone"
            )
    return responses.read(items, "[{}]")


def _require_voice(messages: list[Obj], role: str) -> None:
    """Raises Refused unless each message may stand in the voice asked for."""
    wanted = role if role in _GIVEN_TO else "user"
    for message in messages:
        voice = message["role"] if message["role"] in _GIVEN_TO else "user"
        if voice != wanted:
            given_to = _GIVEN_TO.get(voice, "log.prompt(...)")
            shapes.refuse("role", f"got a {message['role']} message for a {role} one", f"give it to {given_to}")


def results_to_otel(results: Any) -> list[Obj]:
    """Tool results in any shape taken, as one tool message each, in order.

    ``results`` is a list of ``{"id", "content", ...}``, Anthropic ``tool_result`` blocks, OpenAI tool messages,
    Responses output items, OpenTelemetry ``tool_call_response`` parts or tool messages.

    Each is ``{"role": "tool", "parts": [{"type": "tool_call_response", "id", "response", ...}]}``; ``is_error``,
    ``name`` and the like stay as further keys of the part. Content blocks in ``content`` become parts in ``response``.

    Raises Refused for another shape, and for a result that names no call.
    """
    out = read_results(results)
    if any("parts" in entry for entry in results):
        for message in out:
            _check_marks(message)
    return out


def _check_marks(message: Obj) -> None:
    """Raises Refused when a message of the form claims a provider whose marks it does not bear as we write them.

    It is rendered once to see: what cannot be sent back must not lie in wait in a file.
    """
    provider = message.get("provider")
    if not isinstance(provider, str) or provider not in _WRITERS:
        return
    answered = [part["id"] for part in message["parts"] if part["type"] == "tool_call_response"]
    calls = [{"type": "tool_call", "id": each, "name": "any"} for each in answered]
    try:
        _WRITERS[provider]([*([{"role": "assistant", "parts": calls}] if calls else []), message])
    except (AttributeError, KeyError, TypeError, ValueError):
        fix = "leave the key out, or give the provider's own message"
        shapes.refuse("provider", f"the parts are not as {provider!r} parts are kept", fix)


def render(messages: list[Obj], format: Format) -> list[Obj]:  # noqa: A002 -- the word the contract uses
    """The messages as an array the API takes.

    A message from the same API comes back as it came in, but for what that API itself would refuse (listed in each
    module's ``render``). From another one everything a model saw is sent, as text where there is no other place for
    it; its reasoning alone is left out, since no other model may be shown it as its own.

    Surrogates and NUL are U+FFFD in every format. Calls at the end of the list that still wait for results are
    rendered as they are: whether to send them is the caller's decision.

    Raises Refused for an unknown format, a message not of the form, or calls and results that do not pair.
    """
    if format not in FORMATS:
        raise Refused(f"cannot render as {format!r}: the formats are {', '.join(FORMATS)}")
    if format == "otel":
        return list(sanitise(messages))
    for index, message in enumerate(messages):
        shapes.check_otel(shapes.object_at(message, f"messages[{index}]"), f"messages[{index}]")
    return sanitise(_WRITERS[format](messages))
