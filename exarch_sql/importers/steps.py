"""What a transcript of any format comes to: a stream of small neutral steps, read by one half, written by the other.

A step is one thing a log can record. ``thread`` names whose step it is: ``""`` the file's session, ``agent-<id>`` an
agent that ran inside it. ``key`` is stable under re-reading, so that a step is recorded once however often its file is
imported; ``at_ms`` is the time its first line claims. Messages are in OpenTelemetry form.

Per thread the steps come in the order a log admits them: an :class:`Opening` first, results after the reply that
called for them and before anything else, steering only onto work that waits for a reply. Reading a longer copy of a
file gives the same turns, edits and ties and then more; only a reply that ends a file, marked ``unfinished``, may be
longer there, and so move what a shorter copy had behind it. Words that end a file before they are placed are
:class:`Waiting`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from exarch_sql.answers import Message

Voice = Literal["user", "command", "shell", "meta", "notice", "summary", "interrupt"]
WitnessKind = Literal["usage", "note", "error", "meta"]

#: the voices in which a person asked for something; the other ones reach the model beside them
ASKING: tuple[Voice, ...] = ("user", "command")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The fields every step has. ``at_ms`` is Unix milliseconds, None where the lines give no time."""

    thread: str
    key: str
    at_ms: int | None = None


class Opening(Step, frozen=True, kw_only=True):
    """A thread begins: which session of which format it holds, and the agent it is, if it is one."""

    format: str
    session: str
    agent: str | None = None


class Prompt(Step, frozen=True, kw_only=True):
    """A user's turn. ``voice`` says who spoke: a person, a compaction's summary, a notice, ..."""

    message: Message
    voice: Voice


class Reply(Step, frozen=True, kw_only=True):
    """One whole response of a model. ``unfinished``: the file ends with it, and a longer file may add to it."""

    message: Message
    calls: tuple[str, ...]
    unfinished: bool = False


class Results(Step, frozen=True, kw_only=True):
    """The results of all calls of one reply, in order of arrival; ``absent`` lists those a placeholder answers."""

    messages: tuple[Message, ...]
    absent: tuple[str, ...] = ()


class Steer(Step, frozen=True, kw_only=True):
    """What a user said, or the harness told the model, in the middle of work."""

    message: Message
    voice: Voice


class Rewind(Step, frozen=True, kw_only=True):
    """The user went back: the turn that the step keyed ``anchor`` opened, and all after it, are withdrawn."""

    anchor: str


class Compaction(Step, frozen=True, kw_only=True):
    """Everything before the prompt just made left the context; ``trigger``, if known, is ``auto`` or ``manual``."""

    trigger: str | None = None


class Witness(Step, frozen=True, kw_only=True):
    """A record that changes no answer. ``of`` is the key of the reply it speaks of; its turn is added to the body."""

    kind: WitnessKind
    body: dict[str, Any]
    of: str | None = None


class Waiting(Step, frozen=True, kw_only=True):
    """Words that only a longer file can place: under the key ``said``, or ``note`` if the model was not shown them.

    Until one of these is recorded, a note keeps them, for the file may be the last there is.
    """

    voice: Voice
    words: str
    said: str
    note: str | None = None


class Tie(Step, frozen=True, kw_only=True):
    """Call ``call`` of this thread started agent ``agent``; its own log may come before this one, after it or never."""

    agent: str
    call: str
