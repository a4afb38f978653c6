"""A lineage in plain Python: slow, short, and right by being the laws written down.

Nothing is kept but the list of records. What a log can see is a list too: its ancestors' records up to the fork, then
its own. Every answer (location, frontier, index, state, plan) is computed from that list by the definition of the word,
so a reader can hold this file against the laws L2-L10 and L13 line by line. No step is shared with the product: the
product stamps what an edit covers, the model asks for the smallest later residue that covers an item.

An operation either appends one record and answers it, or raises :class:`Refusal` with the reason and leaves the lineage
as it was. Under a key that was used before it answers the first record.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Message = dict[str, Any]
Span = tuple[int, int]

RESIDENT = "resident"
WITHDRAWN = "withdrawn"
PLACEHOLDER = "[EXARCH // No result: the deliberation ended before this call ran.]"
LABEL_SCALARS = 50
NOTE_BYTES = 240


class Refusal(Exception):
    """The model's no. ``reason`` is one word of the laws, so that a test can say which law spoke."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def refuse_if(condition: bool, reason: str) -> None:
    """Raise :class:`Refusal` when the condition holds."""
    if condition:
        raise Refusal(reason)


# --- messages, in the OpenTelemetry form ------------------------------------------------------------------------------


def user(text: str) -> Message:
    """A user's message of one text part."""
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def call(call_id: str, **arguments: Any) -> Message:
    """A tool call part."""
    return {"type": "tool_call", "id": call_id, "name": "ral", "arguments": arguments}


def reply(text: str | None, *calls: Message) -> Message:
    """An assistant's message: a text part when there is text, then its calls."""
    parts = [] if text is None else [{"type": "text", "content": text}]
    return {"role": "assistant", "parts": [*parts, *calls]}


def result(call_id: str, content: str) -> Message:
    """A tool's message answering one call."""
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": content}]}


def calls_of(message: Message) -> tuple[str, ...]:
    """The ids of the calls a message makes, in order."""
    return tuple(part["id"] for part in message["parts"] if part["type"] == "tool_call")


def weigh(message: Message) -> int:
    """Bytes of the message's compact JSON in UTF-8."""
    return len(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode())


def sendable(value: Any) -> Any:
    """The value with U+FFFD for each NUL and lone surrogate, which no provider takes."""
    if isinstance(value, str):
        return re.sub("[\x00\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, dict):
        return {key: sendable(inner) for key, inner in value.items()}
    return [sendable(inner) for inner in value] if isinstance(value, list | tuple) else value


def opening(text: str) -> str:
    """The first line, cut to 50 code points, a combining mark never parted from its base."""
    line = text.splitlines()[0] if text else ""
    end = LABEL_SCALARS
    while 0 < end < len(line) and unicodedata.combining(line[end]):
        end -= 1
    return line[:end]


def label_of(message: Message) -> str:
    """First line of the first text; for a reply that has none, of the first call's ``description``."""
    texts = [part["content"] for part in message["parts"] if part["type"] == "text"]
    calls = [part["arguments"] for part in message["parts"] if part["type"] == "tool_call"]
    label = opening(texts[0]) if texts else ""
    if not label and calls and isinstance(calls[0].get("description"), str):
        label = opening(calls[0]["description"])
    return label


# --- what is recorded -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """One appended row. The fields that say nothing about its kind are None.

    ``turn`` is the turn it opens or extends. ``anchor`` is where a withdrawal starts: a rewind's turn, 0 for a clear,
    and for a fork made while its parent owed results, the turn that owed them: it cannot stand in the child unanswered.
    """

    seq: int
    log: str
    kind: str
    turn: int | None = None
    origin: str = "own"
    messages: tuple[Message, ...] = ()
    span: Span | None = None
    note: str | None = None
    anchor: int | None = None
    parent: str | None = None
    key: str | None = None

    @property
    def opens_turn(self) -> bool:
        """Whether a turn begins with this record."""
        return self.kind in ("prompt", "assistant")

    @property
    def body(self) -> tuple[Any, ...]:
        """What two records under one key must have in common."""
        return (self.kind, self.messages, self.span, self.note, self.anchor, self.parent)


@dataclass(frozen=True)
class Item:
    """A turn or a residue, by its span. ``seq`` is the record that made it; ``messages`` are as recorded."""

    span: Span
    seq: int
    role: str
    kind: str
    label: str
    messages: tuple[Message, ...]

    @property
    def is_residue(self) -> bool:
        """Whether an eviction left it."""
        return self.kind == "residue"

    @cached_property
    def sent(self) -> list[Message]:
        """Its messages as they stand in the context."""
        return [sendable(message) for message in self.messages]

    @property
    def bytes(self) -> int:
        """The bytes it weighs in the context."""
        return sum(weigh(message) for message in self.sent)


@dataclass(frozen=True)
class Row:
    """An item as ``survey`` and ``index`` show it. ``location`` is ``resident``, ``withdrawn`` or the holder's span."""

    span: Span
    role: str
    kind: str
    label: str
    bytes: int
    location: str | Span


def covers(outer: Span, inner: Span) -> bool:
    """Whether one span contains another, equal spans included."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


@dataclass(frozen=True)
class View:
    """What one log can see: the records of its line, oldest first, and everything that follows from them."""

    log: str
    records: tuple[Record, ...]
    residue_message: Callable[[Span, str | None], Message] = field(repr=False)

    # -- items

    @cached_property
    def turns(self) -> list[Item]:
        """Every turn recorded, in id order, each with all the messages this log can see of it."""
        extensions: dict[int | None, list[Message]] = {}
        for record in self.records:
            extensions.setdefault(record.turn, []).extend(record.messages)
        return [
            Item(
                span=(record.turn, record.turn),
                seq=record.seq,
                role="user" if record.kind == "prompt" else "assistant",
                kind="inherited" if record.log != self.log else record.origin,
                label=sendable(label_of(record.messages[0])),
                messages=tuple(extensions[record.turn]),
            )
            for record in self.records
            if record.opens_turn and record.turn is not None
        ]

    @cached_property
    def residues(self) -> list[Item]:
        """Every residue recorded, oldest first."""
        return [
            Item(r.span, r.seq, "user", "residue", r.note or "", (self.residue_message(r.span, r.note),))
            for r in self.records
            if r.kind == "evicted" and r.span is not None
        ]

    @cached_property
    def items(self) -> list[Item]:
        """Every item ever recorded, in index order: by ``from``, the wider first, the later recorded first."""
        return sorted(self.turns + self.residues, key=lambda item: (item.span[0], -item.span[1], -item.seq))

    # -- where they are

    @cached_property
    def withdrawn(self) -> set[int]:
        """The ``seq`` of every item that stood at or past the anchor of a later rewind, clear or fork."""
        return {
            item.seq
            for record in self.records
            if record.anchor is not None
            for item in self.turns + self.residues
            if item.seq < record.seq and item.span[0] >= record.anchor
        }

    @cached_property
    def holders(self) -> dict[int, Span]:
        """By ``seq``: the smallest span among the later residues that cover the item, for the items that have one."""
        found: dict[int, Span] = {}
        for residue in sorted(self.residues, key=lambda r: r.span[1] - r.span[0], reverse=True):
            for item in self.items:
                if item.seq < residue.seq and covers(residue.span, item.span):
                    found[item.seq] = residue.span
        return found

    def location(self, item: Item) -> str | Span:
        """Withdrawal first, then the holder, else resident."""
        return WITHDRAWN if item.seq in self.withdrawn else self.holders.get(item.seq, RESIDENT)

    @cached_property
    def frontier(self) -> list[Item]:
        """The resident items in id order."""
        return [item for item in self.items if self.location(item) == RESIDENT]

    # -- the protocol state

    @property
    def reach(self) -> int:
        """The newest turn id this log has seen; 0 when it has seen none."""
        return max((item.span[0] for item in self.turns), default=0)

    @cached_property
    def newest(self) -> Item | None:
        """The newest turn that is not withdrawn."""
        standing = [item for item in self.turns if item.seq not in self.withdrawn]
        return standing[-1] if standing else None

    @cached_property
    def last(self) -> Record | None:
        """The newest turn's last record; None when there is no such turn or it has departed."""
        if self.newest is None or self.location(self.newest) != RESIDENT:
            return None
        return [record for record in self.records if record.turn == self.newest.span[0]][-1]

    @property
    def state(self) -> str:
        """``ready``, ``prompted``, ``owing`` or ``answered``."""
        if self.last is None:
            return "ready"
        if self.last.kind == "assistant":
            return "owing" if calls_of(self.last.messages[0]) else "ready"
        return "answered" if self.last.kind == "tool_results" else "prompted"

    @property
    def owed(self) -> tuple[str, ...]:
        """The ids of the calls still waiting for their results."""
        return calls_of(self.last.messages[0]) if self.last and self.last.kind == "assistant" else ()

    @property
    def unclosed(self) -> int | None:
        """The turn that may not be evicted yet: the newest, whenever the state is not ready."""
        return None if self.state == "ready" or self.newest is None else self.newest.span[0]

    # -- answers

    def row(self, item: Item) -> Row:
        """The item as a row."""
        return Row(item.span, item.role, item.kind, item.label, item.bytes, self.location(item))

    def survey(self) -> list[Row]:
        """The frontier's rows."""
        return [self.row(item) for item in self.frontier]

    def index(self) -> list[Row]:
        """Every item's row."""
        return [self.row(item) for item in self.items]

    def under(self, span: Span) -> list[Row]:
        """The rows of what lies under a residue at that span; there must be one, standing or not."""
        refuse_if(span not in [residue.span for residue in self.residues], "no-residue")
        return [row for row in self.index() if row.location == span]

    def render(self) -> list[Message]:
        """The context: the frontier's messages in order."""
        return [message for item in self.frontier for message in item.sent]

    def total_bytes(self) -> int:
        """What the context weighs."""
        return sum(item.bytes for item in self.frontier)

    def plan(self, keep: int | None = None) -> Span | None:
        """The prefix a forced eviction would take to leave about ``keep`` bytes; None when there is nothing to take."""
        items = self.frontier
        budget = self.total_bytes() // 2 if keep is None else keep
        spent = items[-1].bytes if items else 0
        for position in range(len(items) - 2, -1, -1):
            spent += items[position].bytes
            if spent > budget:
                prefix = items[: position + 1]
                return None if is_one_residue(prefix) else (prefix[0].span[0], prefix[-1].span[1])
        return None


def is_one_residue(items: Sequence[Item]) -> bool:
    """Whether a run is a lone residue: the harness has no note to put in the place of its note."""
    return len(items) == 1 and items[0].is_residue


# --- the lineage ------------------------------------------------------------------------------------------------------


class Lineage:
    """Logs by name, and their records in one sequence from 1. The first record opens the trunk."""

    def __init__(self, residue_message: Callable[[Span, str | None], Message], trunk: str = "trunk") -> None:
        self.records: list[Record] = []
        self._residue_message = residue_message
        self._views: dict[str, View] = {}
        self.new_log(trunk)

    # -- looking

    @property
    def seq(self) -> int:
        """The newest record's number."""
        return len(self.records)

    @property
    def logs(self) -> list[str]:
        """The names of the logs, in the order they were opened."""
        return [record.log for record in self.records if record.kind == "opened"]

    def opened(self, log: str) -> Record:
        """The record a log begins with."""
        found = [record for record in self.records if record.kind == "opened" and record.log == log]
        refuse_if(not found, "unknown-log")
        return found[0]

    def visible(self, log: str, at: int) -> list[Record]:
        """The ancestors' records up to the fork, then the log's own, none newer than ``at`` (L13)."""
        opened = self.opened(log)
        refuse_if(at < opened.seq, "at")
        inherited = self.visible(opened.parent, opened.seq - 1) if opened.parent is not None else []
        return inherited + [record for record in self.records[:at] if record.log == log]

    def view(self, log: str, at: int | None = None) -> View:
        """The log as it stood when record ``at`` was the newest; now, without it."""
        if at is not None:
            return View(log, tuple(self.visible(log, at)), self._residue_message)
        records = tuple(self.visible(log, self.seq))
        if log not in self._views or self._views[log].records != records:  # same records, same answers
            self._views[log] = View(log, records, self._residue_message)
        return self._views[log]

    # -- turns

    def prompt(self, log: str, message: Message, *, origin: str = "own", key: str | None = None) -> Record:
        """Open a user turn."""
        draft = {"kind": "prompt", "origin": origin, "messages": (message,), "key": key}
        if first := self._first(log, draft):
            return first
        view = self.view(log)
        refuse_if(view.state == "owing", "state")
        return self._append(log, turn=view.reach + 1, **draft)

    def assistant(self, log: str, message: Message, *, origin: str = "own", key: str | None = None) -> Record:
        """Open an assistant turn; an imported one may stand where no prompt did."""
        draft = {"kind": "assistant", "origin": origin, "messages": (message,), "key": key}
        if first := self._first(log, draft):
            return first
        view = self.view(log)
        lawful = ("prompted", "answered", "ready") if origin == "import" else ("prompted", "answered")
        refuse_if(view.state not in lawful, "state")
        return self._append(log, turn=view.reach + 1, **draft)

    def tool_results(
        self, log: str, results: Sequence[tuple[str, str]], *, origin: str = "own", key: str | None = None
    ) -> Record:
        """Answer the waiting calls: every one of them, once each, in any order."""
        messages = tuple(result(call_id, content) for call_id, content in results)
        draft = {"kind": "tool_results", "origin": origin, "messages": messages, "key": key}
        if first := self._first(log, draft):
            return first
        view = self.view(log)
        refuse_if(view.state != "owing", "state")
        refuse_if(sorted(call_id for call_id, _ in results) != sorted(view.owed), "results")
        return self._append(log, turn=view.unclosed, **draft)

    def steer(self, log: str, message: Message, *, origin: str = "own", key: str | None = None) -> Record:
        """Extend the newest turn, which must be this log's own."""
        draft = {"kind": "steering", "origin": origin, "messages": (message,), "key": key}
        if first := self._first(log, draft):
            return first
        view = self.view(log)
        refuse_if(view.state not in ("prompted", "answered"), "state")
        refuse_if(view.newest is not None and view.newest.kind == "inherited", "foreign-turn")
        return self._append(log, turn=view.unclosed, **draft)

    def quiesce(self, log: str) -> Record | None:
        """Answer what is owed with the placeholder; nothing when nothing is."""
        owed = self.view(log).owed
        return self.tool_results(log, [(call_id, PLACEHOLDER) for call_id in owed]) if owed else None

    # -- edits

    def evict(self, log: str, from_: int, to: int, note: str, *, key: str | None = None) -> Record:
        """The model's eviction of ``[from_, to]`` under a note."""
        draft = {"kind": "evicted", "span": (from_, to), "note": note, "key": key}
        if first := self._first(log, draft):
            return first
        size = len(note.encode("utf-8", "replace"))
        refuse_if(not 1 <= size <= NOTE_BYTES or note.splitlines() != [note], "note")
        self._aligned(log, (from_, to))
        return self._append(log, **draft)

    def _aligned(self, log: str, span: Span) -> list[Item]:
        """The frontier items a run takes, or the law that forbids it (L5)."""
        view = self.view(log)
        refuse_if(span[0] > span[1], "inverted")
        known = {item.span[0]: item for item in view.turns}
        for end in span:
            refuse_if(end not in known, "not-recorded")
            refuse_if(view.location(known[end]) == WITHDRAWN, "withdrawn")
        starts = {item.span[0] for item in view.frontier}
        ends = {item.span[1] for item in view.frontier}
        refuse_if(span[0] not in starts or span[1] not in ends, "misaligned")
        refuse_if(view.unclosed is not None and span[0] <= view.unclosed <= span[1], "unclosed")
        return [item for item in view.frontier if covers(span, item.span)]

    def force(self, log: str, keep: int | None = None, *, through: int | None = None) -> Record:
        """The harness's eviction of one prefix, without a note: the planned one, or the one ending at ``through``."""
        view = self.view(log)
        refuse_if(view.state == "owing", "owing")
        if through is None:
            span = view.plan(keep)
            refuse_if(span is None, "no-plan")
        else:
            refuse_if(not view.frontier, "not-recorded")
            span = (view.frontier[0].span[0], through)
            refuse_if(is_one_residue(self._aligned(log, span)), "one-residue")
        return self._append(log, kind="evicted", span=span)

    def rewind(self, log: str, anchor: int, *, key: str | None = None) -> Record:
        """Withdraw every item that starts at or past the anchor, which must start a frontier item (L10)."""
        draft = {"kind": "rewound", "anchor": anchor, "key": key}
        if first := self._first(log, draft):
            return first
        view = self.view(log)
        refuse_if(view.state == "owing", "owing")
        refuse_if(anchor not in {item.span[0] for item in view.frontier}, "anchor")
        return self._append(log, **draft)

    def clear(self, log: str) -> Record:
        """Withdraw every item."""
        refuse_if(self.view(log).state == "owing", "owing")
        return self._append(log, kind="cleared", anchor=0)

    # -- logs, and what is folded by nothing

    def new_log(self, name: str) -> Record:
        """Open a log that inherits nothing."""
        refuse_if(name in self.logs, "name-taken")
        return self._append(name, kind="opened")

    def fork(self, log: str, name: str) -> Record:
        """Open a log that sees what this one has recorded so far."""
        view = self.view(log)
        refuse_if(name in self.logs, "name-taken")
        return self._append(name, kind="opened", parent=log, anchor=view.unclosed if view.owed else None)

    def witness(self, log: str) -> Record:
        """A record that changes no answer."""
        return self._append(log, kind="witness")

    # -- keeping the list

    def _append(self, log: str, **fields: Any) -> Record:
        record = Record(seq=self.seq + 1, log=log, **fields)
        self.records.append(record)
        return record

    def _first(self, log: str, draft: dict[str, Any]) -> Record | None:
        """The log's record under the draft's key, if there is one; it must say the same as the draft."""
        self.opened(log)
        key = draft["key"]
        first = [record for record in self.records if record.log == log and key is not None and record.key == key]
        refuse_if(bool(first) and first[0].body != Record(seq=0, log=log, **draft).body, "key")
        return first[0] if first else None

    def cut_back(self, seq: int) -> None:
        """Forget the records past ``seq``: what a transaction that was rolled back leaves."""
        del self.records[seq:]
