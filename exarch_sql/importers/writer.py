"""A thread's steps into one log: every step recorded once, under its key, whatever was imported before.

Nothing recorded is touched. Where a file says something else than what was recorded:

- a reply that ended an earlier copy of the file and has since grown is withdrawn, with the notices that followed it,
  if nothing else did; all are recorded again under a variant of their keys;
- a shorter copy of a recorded reply is no news;
- any other difference keeps what was recorded and leaves an error record that names it.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

from exarch_sql import messages
from exarch_sql.errors import Refused
from exarch_sql.importers import recorded
from exarch_sql.importers.lines import KEPT_BYTES
from exarch_sql.importers.recorded import VARIANT
from exarch_sql.importers.steps import (
    ASKING,
    Compaction,
    Opening,
    Prompt,
    Reply,
    Results,
    Rewind,
    Steer,
    Step,
    Tie,
    Waiting,
    Witness,
    WitnessKind,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from exarch_sql.answers import Json, Message, Turn
    from exarch_sql.log import Log

CALLER_KEY = "cc:caller"
REFUSED = "cc:refused:"  # and the key of the step


class Elsewhere(Exception):
    """The log that a thread was given to has gone another way than the file."""

    def __init__(self, thread: str) -> None:
        super().__init__(thread)
        self.thread = thread


class Writer:
    """One thread into one log. ``bound``: the log was asked for, and takes the thread wherever it has gone itself."""

    def __init__(self, log: Log, since: int, *, bound: bool = False) -> None:
        self.log = log
        self._bound = bound
        self._seq = since  # newest record known: an append that answers none newer found what it was to append
        self._count: dict[str, int] = {}
        self._variant = ""  # what the newest reply's key has behind it, if it was recorded again
        self._since = 0  # ... and the record number before which stands what was recorded behind its earlier self
        self._touched = 0  # newest turn id that this file has brought up
        self._grew = False  # whether the file has added a turn
        self._behind = False  # whether the reply in hand is recorded longer than the file has it
        self._summary_is_new = False
        self._at_ms: int | None = None  # of the newest step that had a time
        self._thread = ""
        self._current: int | None = None  # turn id of the turn in hand, if it is recorded
        self._turn: dict[str, int] = {}  # the reply in hand: key to turn id

    def counts(self) -> Json:
        """The fields of the report that are this thread's."""
        return {"log": self.log.name, **self._count}

    def write(self, step: Step) -> None:
        """Record a step, or find it recorded."""
        self._at_ms = step.at_ms if step.at_ms is not None else self._at_ms
        self._thread = step.thread
        match step:
            case Opening():
                body = {"format": step.format, "session": step.session, "agent": step.agent}
                self._witness("meta", body, step.key)
            case Prompt():
                self._prompt(step)
            case Reply():
                self._reply(step)
            case Results():
                self._add("results", len(step.messages) - len(step.absent))
                self._add("absent", len(step.absent))
                self._extend(step.key, self._appending(self.log.tool_results, list(step.messages)), step.messages)
            case Steer():
                self._add("steering")
                self._extend(step.key, self._appending(self.log.steer, step.message), (step.message,))
            case Rewind():
                self._rewind(step)
            case Compaction():
                self._compaction(step)
            case Tie():
                body = {"line": "agent", "agent": step.agent, "call": step.call, "log": f"agent-{step.agent}"}
                self._witness("meta", body, step.key)
            case Waiting():
                self._keep(step)
            case Witness():
                self._speak_of(step)

    # -- turns

    def _prompt(self, step: Prompt) -> None:
        self._add("prompts" if step.voice in ASKING else "others")
        key = self._named(step.key)
        self._opens(key)
        before = self._seq
        self._current = self._attempt(key, self._appending(self.log.prompt, step.message), (step.message,))
        self._summary_is_new = step.voice == "summary" and self._current is not None and self._seq > before

    def _reply(self, step: Reply) -> None:
        self._add("replies")
        self._add("calls", len(step.calls))
        self._variant = ""
        self._opens(step.key)
        append = self._appending(self.log.assistant, step.message)
        known = None if self._grew else recorded.newest_of(self.log, step.key)
        if known is None or known.turn is None:
            self._current = self._attempt(step.key, append, (step.message,))
        else:
            try:
                self._current = self._took(append(step.key))
                self._behind = known.turn != self._current
            except Refused as refusal:
                self._current = self._regrown(step, append, known.turn, refusal)
        if self._current is not None and not self._behind:
            self._turn[step.key] = self._current

    def _regrown(self, step: Reply, append: Callable[[str], Turn], known: int, refusal: Refused) -> int | None:
        """A reply recorded, as turn ``known``, with other parts: grown since, shorter than it was, or another one."""
        variant = f"{VARIANT}{len(step.message['parts'])}"
        again = recorded.find(self.log, step.key + variant)
        if again is not None:
            with contextlib.suppress(Refused):
                turn = self._took(append(step.key + variant))
                self._variant, self._since, self._behind = variant, again.seq, known != turn
                return turn
        self._touched = max(self._touched, known)
        old, new = recorded.turn_messages(self.log, known)[0]["parts"], step.message["parts"]
        if new == old[: len(new)]:
            self._behind = True
            self._add("already_there")
            return known
        if old != new[: len(old)] or not recorded.ends_with(self.log, known):
            return self._differs(step.key, (step.message,), refusal)
        try:
            self._withdraw(known, f"{step.key}~{variant[1:]}")
        except Refused:  # the turn left the context under a note: it is not the import's to take back
            return self._differs(step.key, (step.message,), refusal)
        self._variant, self._since = variant, self._seq + 1
        return self._attempt(step.key + variant, append, (step.message,))

    def _withdraw(self, turn: int, key: str) -> None:
        if self.log.stands().owed:
            self.log.quiesce(at_ms=self._at_ms)
            self._add("new_records")
        self.log.rewind(turn, key=key, at_ms=self._at_ms)
        self._add("new_records")

    def _named(self, key: str) -> str:
        """The key a step goes by: what was withdrawn with a reply that had grown is recorded again, like the reply."""
        known = recorded.find(self.log, key) if self._variant else None
        return key + self._variant if known is not None and known.seq < self._since else key

    def _extend(self, key: str, append: Callable[[str], Turn], said: tuple[Message, ...]) -> None:
        """Results or steering: for the turn in hand, which must be the log's newest, or they would join another."""
        key = self._named(key)
        new = not self._grew and recorded.find(self.log, key) is None
        if new and self._behind:
            self._add("already_there")
        elif new and self.log.stands().newest != self._current:
            self._differs(key, said, Refused(f"turn {self._current}, which this extends, is not the newest any more"))
        else:
            self._attempt(key, append, said)

    def _attempt(self, key: str, append: Callable[[str], Turn], said: tuple[Message, ...]) -> int | None:
        """Append, or find appended; the turn. What was refused once is not tried again: its place has passed."""
        if not self._grew and recorded.find(self.log, REFUSED + key) is not None:
            return self._differs(key, said, Refused("refused before"))
        try:
            return self._took(append(key))
        except Refused as refusal:
            return self._differs(key, said, refusal)

    def _took(self, turn: Turn) -> int:
        """Count an append that went well; its turn."""
        self._touched = max(self._touched, turn.id)
        self._count_record(turn.seq)
        return turn.id

    def _differs(self, key: str, said: tuple[Message, ...], refusal: Refused) -> int | None:
        """What was refused, as an error record: for what was recorded under its key, which stays, or by a law."""
        known = recorded.find(self.log, key)
        if known is None:
            self._add("refused")
            if recorded.find(self.log, REFUSED + key) is None:
                body = _offered(said) | {"refused": key, "why": str(refusal)}
                self._witness("error", body, REFUSED + key, counted=False)
            return None
        self._touched = max(self._touched, known.turn or 0)
        if self._behind or recorded.says(self.log, key, said):
            self._add("already_there")
            return known.turn
        self._add("conflicts")
        body = _offered(said) | {"conflict": key, "record": known.seq}
        self._witness("error", body, f"cc:conflict:{body['sha256'][:32]}", counted=False)
        return known.turn

    def _appending(self, append: Callable[..., Turn], said: object) -> Callable[[str], Turn]:
        return lambda key: append(said, origin="import", key=key, at_ms=self._at_ms)

    def _opens(self, key: str) -> None:
        """Before a turn: the file's first new one must follow the log's newest, if any of the log is the file's."""
        self._behind, self._turn = False, {}
        if self._grew or recorded.find(self.log, key) is not None or recorded.find(self.log, REFUSED + key) is not None:
            return
        if not self._bound and 0 < self._touched < self.log.stands().newest:
            raise Elsewhere(self._thread)
        self._grew = True

    # -- edits

    def _rewind(self, step: Rewind) -> None:
        self._add("rewinds")
        self._variant = ""
        self._opens(step.key)
        if recorded.find(self.log, step.key) is not None:
            self._add("already_there")
            return
        if recorded.find(self.log, REFUSED + step.key) is not None:
            self._add("refused")
            return
        anchor = recorded.newest_of(self.log, step.anchor)
        try:
            if anchor is None or anchor.turn is None or anchor.kind not in ("prompt", "assistant"):
                raise Refused(f"the turn to go back to was not recorded under {step.anchor}")
            self.log.rewind(anchor.turn, key=step.key, at_ms=self._at_ms)
        except Refused as refusal:
            self._differs(step.key, (), refusal)
        else:
            self._add("new_records")

    def _compaction(self, step: Compaction) -> None:
        """Let everything before the summary go. Only when the summary was just made: later, it is the past."""
        self._add("compactions")
        if not self._summary_is_new:
            self._add("already_there", int(recorded.find(self.log, step.key) is not None))
            return
        before = self.log.survey().rows[:-1]
        if not before or (len(before) == 1 and before[0].kind == "residue"):
            return
        try:
            self.log.force(through=before[-1].to, key=step.key, at_ms=self._at_ms)
        except Refused as refusal:
            self._differs(step.key, (), refusal)
        else:
            self._add("new_records")

    # -- witnesses

    def called(self, agent: Log, caller: Log, session: str, call: str) -> None:
        """Record in an agent's log which call of which log started it, once."""
        if recorded.find(agent, CALLER_KEY) is None:
            body = {"line": "caller", "session": session, "log": caller.name, "call": call}
            agent.witness("meta", body, key=CALLER_KEY, at_ms=self._at_ms)
            self._add("new_records")

    def _keep(self, step: Waiting) -> None:
        """Words no turn holds yet, unless a longer copy of the file was here and placed them."""
        placed = [key for key in (step.said, step.note) if key is not None and recorded.find(self.log, key) is not None]
        if not placed:
            body = {"line": "waiting", "said": step.said, "voice": step.voice, "words": step.words}
            self._witness("note", body, step.key)

    def _speak_of(self, step: Witness) -> None:
        if step.kind != "usage":
            self._witness(step.kind, step.body, step.key)
            return
        self._add("usage")
        turn = self._turn.get(step.of or "")
        if turn is not None:
            self._witness("usage", {"turn": turn, **step.body}, step.key + self._variant, counted=False)

    def _witness(self, kind: WitnessKind, body: Json, key: str, *, counted: bool = True) -> None:
        """Record what was only seen. One that says otherwise than the one recorded is counted, and left."""
        self._add("witnesses", int(counted))
        try:
            self._count_record(self.log.witness(kind, body, key=key, at_ms=self._at_ms))
        except Refused as refusal:
            if recorded.find(self.log, key) is not None:
                self._add("conflicts", int(not self._behind))
                return
            self._add("refused")
            self.log.witness("error", {"refused": key, "why": str(refusal)}, key=REFUSED + key)

    def _count_record(self, seq: int) -> None:
        self._add("new_records" if seq > self._seq else "already_there")
        self._seq = max(self._seq, seq)

    def _add(self, name: str, count: int = 1) -> None:
        self._count[name] = self._count.get(name, 0) + count


def _offered(said: tuple[Message, ...]) -> Json:
    """Messages that were not recorded, as an error record keeps them: what a user said whole, others when short."""
    try:
        text = messages.dumps(list(said))
    except Refused as refusal:
        return {"sha256": hashlib.sha256(repr(said).encode("utf-8", "replace")).hexdigest(), "unsaid": str(refusal)}
    data = text.encode()
    body: Json = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    if len(data) <= KEPT_BYTES:
        return body | {"messages": list(said)}
    parts = [part for message in said if message["role"] == "user" for part in message["parts"]]
    words = [part["content"] for part in parts if part["type"] == "text"]
    return body | {"text": text[: KEPT_BYTES // 4]} | ({"words": words} if words else {})
