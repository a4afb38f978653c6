"""A log in memory, small and lawful, for what a door asks: turns of text, residues, and the laws an eviction must keep.

It shares no code with the product's log but the answer types, the residue's rendering and the refusals' class; it refuses in
the words of the pages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from exarch_sql.answers import RESIDENT, Found, Hit, Location, Material, Row, Span, Survey
from exarch_sql.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence


def said(role: str, text: str) -> dict[str, Any]:
    """A message of one text part."""
    return {"role": role, "parts": [{"type": "text", "content": text}]}


class MemoryLog:
    """Turns ``1..n`` of the given messages, user and assistant by the first message's role. ``writes`` counts every write."""

    def __init__(self, turns: Sequence[Sequence[dict[str, Any]]], unclosed: int | None = None) -> None:
        self.turns = {number: list(messages) for number, messages in enumerate(turns, 1)}
        self.residues: list[tuple[Span, str]] = []
        self.witnessed: list[tuple[str, dict[str, Any]]] = []
        self.unclosed = unclosed
        self.writes = 0

    @classmethod
    def of_length(cls, length: int, *, unclosed: int | None = None) -> MemoryLog:
        """A log of ``length`` turns, prompts and replies in turn; turn 45's reply has every kind of part."""
        turns = [
            [said("user" if n % 2 else "assistant", f"turn {n}: widget {n}\nFAILED case {n}")]
            for n in range(1, length + 1)
        ]
        if length >= 45:
            turns[44] = [
                EVERY_PART,
                {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "two red"}]},
            ]
        return cls(turns, unclosed)

    @property
    def reach(self) -> int:
        """The newest turn id."""
        return len(self.turns)

    def _holder(self, item: Span, after: int) -> Span | None:
        covering = [span for span, _ in self.residues[after:] if span.from_ <= item.from_ and item.to <= span.to]
        return min(covering, key=lambda span: span.to - span.from_, default=None)

    def _rows(self) -> list[Row]:
        rows = []
        for number, messages in self.turns.items():
            held = self._holder(Span(number, number), 0)
            role = "user" if messages[0]["role"] == "user" else "assistant"
            label = str(messages[0]["parts"][0].get("content", "")).split("\n")[0][:50]
            where = Location("under", held) if held else RESIDENT
            rows.append((0, Row(number, number, role, "own", label, 74, where)))
        for order, (span, note) in enumerate(self.residues, 1):
            held = self._holder(span, order)
            rows.append(
                (
                    order,
                    Row(
                        span.from_, span.to, "user", "residue", note, 200, Location("under", held) if held else RESIDENT
                    ),
                )
            )
        rows.sort(key=lambda pair: (pair[1].from_, -pair[1].to, -pair[0]))
        return [row for _, row in rows]

    def survey(self) -> Survey:
        """The frontier."""
        rows = tuple(row for row in self._rows() if row.location == RESIDENT)
        return Survey(rows, sum(row.bytes for row in rows))

    def index(self) -> list[Row]:
        """Every item: by from, wider first, later first."""
        return self._rows()

    def under(self, from_: int, to: int) -> list[Row]:
        """What departed under the residue over this span."""
        span = Span(from_, to)
        if span not in [each for each, _ in self.residues]:
            raise Refused(f"no residue stands or lies over {span}")
        return [row for row in self._rows() if row.location.span == span]

    def _recorded(self, turn: int) -> None:
        if turn not in self.turns:
            raise Refused(f"turn {turn} is not recorded: the latest is {self.reach}")

    def read(self, turns: Sequence[int]) -> list[Material]:
        """Turns, whole, ascending, repeats removed."""
        for turn in turns:
            self._recorded(turn)
            if turn == self.unclosed:
                raise Refused(
                    f"turn {turn} is being written now: it is the one turn the transcript cannot read back yet"
                )
        return [
            Material(turn, "user" if self.turns[turn][0]["role"] == "user" else "assistant", tuple(self.turns[turn]))
            for turn in sorted(set(turns))
        ]

    def grep(self, pattern: str, turns: Sequence[int] | None = None, *, seconds: float = 5.0) -> Found:
        """Matching lines of the messages."""
        for turn in turns or []:
            self._recorded(turn)
        hits = []
        for number, messages in self.turns.items():
            if number == self.unclosed or (turns is not None and number not in turns):
                continue
            for message in messages:
                text = "\n".join(str(part.get("content", "")) for part in message["parts"])
                for line, content in enumerate(text.split("\n"), 1):
                    if re.search(pattern, content):
                        hits.append(Hit(number, number, "own", message["role"], line, content))
        return Found(tuple(hits[:100]), len(hits))

    def evict(self, from_: int, to: int, *, note: str) -> Survey:
        """Let a run go, if it is aligned and closed."""
        for end in (from_, to):
            self._recorded(end)
        for row in self.survey().rows:
            if row.from_ < from_ <= row.to or row.from_ <= to < row.to:
                raise Refused(
                    f"{row.span} stand together under one note: name from: {row.from_}, to: {row.to} whole, or leave it"
                )
        if self.unclosed is not None and from_ <= self.unclosed <= to:
            raise Refused(f"turn {self.unclosed} is being written now: an eviction keeps the work in hand")
        self.residues.append((Span(from_, to), note))
        self.writes += 1
        return self.survey()

    def witness(self, kind: str, body: dict[str, Any]) -> int:
        """Keep what was only seen."""
        self.witnessed.append((kind, body))
        self.writes += 1
        return self.writes


EVERY_PART: dict[str, Any] = {
    "role": "assistant",
    "parts": [
        {"type": "text", "content": "two red widgets"},
        {"type": "reasoning", "content": "count them", "signature": "c2ln"},
        {"type": "tool_call", "id": "c1", "name": "ral", "arguments": {"cmd": "ls widgets", "description": "list"}},
        {"type": "tool_call", "id": "c2", "name": "write", "arguments": {"path": "a.txt", "text": "red"}},
        {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "AAECAw=="},
        {"type": "uri", "mime_type": "image/png", "modality": "image", "uri": "https://h/a.png"},
        {"type": "thought_signature", "content": "c2ln"},
        {"type": "citation", "source": "page 3"},
    ],
}
