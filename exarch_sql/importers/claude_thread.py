"""One thread of a Claude Code session: from its lines, in file order, to steps in the order a log admits them.

The program writes what it does as it does it: the blocks of one response on lines of their own, results between them
as tools finish, words of the user wherever they were typed. A log takes whole turns. So a thread gathers one response
with all that came while it was the newest (its *stretch*) and hands it on when something closes it: the next response,
a person's words, a compaction, the end of the file. A stretch whose calls are not all answered waits one response
longer, for results do come late; then whatever is missing is looked for further down the file, and a call that has no
result anywhere is answered by ``ABSENT``.

What was handed on at the end of a file is what a longer file hands on first: nothing is decided there that a later
line could decide otherwise, except where an ``unfinished`` response ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from exarch_sql import providers
from exarch_sql.errors import Refused
from exarch_sql.importers.claude_lines import Object, compact, id_of, kept, line_key, text_of
from exarch_sql.importers.steps import (
    ASKING,
    Compaction,
    Prompt,
    Reply,
    Results,
    Rewind,
    Steer,
    Step,
    Voice,
    Witness,
    WitnessKind,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from exarch_sql.answers import Message

ABSENT = "[EXARCH // No result: the transcript holds none for this call.]"


class Said(msgspec.Struct):
    """Words that reach the model, not yet placed.

    ``line`` is their line's number, ``after`` that of the line they answer. ``unsure`` marks words that a later line
    decides on: a ``command`` is the user's prompt only if the model is shown its text, a ``queued`` text is said here
    only if no line of its own says it. ``otherwise`` is what stands in place of a command that was none.
    """

    voice: Voice
    message: Message
    words: str
    key: str
    at_ms: int | None
    line: int
    after: int | None = None
    unsure: Literal["command", "queued"] | None = None
    otherwise: Witness | None = None


class _Mark(msgspec.Struct, frozen=True):
    """A place in a stretch: where the last result came in, or where the program gave up."""

    what: Literal["results", "stopped"]


_RESULTS = _Mark("results")
_STOPPED = _Mark("stopped")


_Items = list[Said | Step | _Mark]


class _Stretch:
    """A response, if there is one, and what followed it.

    ``calls`` maps each call's name to its id in the file: the same, but for an id the file uses twice in one response.
    """

    def __init__(self, response: str | None = None, name: str = "", at_ms: int | None = None, line: int = 0) -> None:
        self.response, self.name, self.at_ms, self.line = response, name, at_ms, line
        self.blocks: list[Object] = []
        self.calls: dict[str, str] = {}
        self.waiting: dict[str, list[str]] = {}  # id in the file to the names of its calls that have no result
        self.got: dict[str, Object] = {}
        self.got_at_ms: int | None = None
        self.usage: Object | None = None
        self.tail: _Items = []

    @property
    def owes(self) -> bool:
        """Whether a call has no result."""
        return bool(self.waiting)

    def add(self, blocks: list[Object]) -> None:
        """More blocks of the response. A call added after all results were in is waited for again."""
        for block in blocks:
            if block.get("type") != "tool_use":
                self.blocks.append(block)
                continue
            if self.calls and not self.owes:
                self.tail.remove(_RESULTS)
            call = id_of(block, "id") or self.name
            name, again = call, 1
            while name in self.calls:
                again += 1
                name = f"{call}#{again}"
            self.calls[name] = call
            self.waiting.setdefault(call, []).append(name)
            self.blocks.append({"input": {}, **block, "id": name, "name": text_of(block, "name") or "unnamed"})

    def take(self, call: str, block: Object, at_ms: int | None) -> bool:
        """A result for one of the waiting calls; False when none waits under that id."""
        names = self.waiting.get(call)
        if not names:
            return False
        self.got[names.pop(0)] = block
        if not names:
            del self.waiting[call]
        self.got_at_ms = at_ms if self.got_at_ms is None else self.got_at_ms
        return True

    def keep_calls(self, made: set[str]) -> None:
        """Forget calls the message does not make: a block no provider would have sent stands in it as text."""
        if self.calls.keys() <= made:
            return
        self.calls = {name: call for name, call in self.calls.items() if name in made}
        waiting = {call: [name for name in names if name in made] for call, names in self.waiting.items()}
        self.waiting = {call: names for call, names in waiting.items() if names}
        self.tail = [item for item in self.tail if item is not _RESULTS or self.calls]

    def in_order(self) -> tuple[_Items, list[Said]]:
        """The tail with words said before the results put after them, and the words that still wait for results."""
        if not self.calls:
            return self.tail, []
        cut = self.tail.index(_RESULTS) if _RESULTS in self.tail else len(self.tail)
        early: list[Said] = [item for item in self.tail[:cut] if isinstance(item, Said)]
        others: _Items = [item for item in self.tail[:cut] if not isinstance(item, Said)]
        return (others, early) if cut == len(self.tail) else ([*others, _RESULTS, *early, *self.tail[cut + 1 :]], [])


class Thread:
    """The state of one thread.

    ``steps`` is where finished steps go. ``look_ahead`` finds a call's result further down the file. ``pending`` counts
    what the end of the file left undecided; ``trigger`` is that of a compaction whose summary is still to come.
    """

    def __init__(self, name: str, steps: list[Step], look_ahead: Callable[[str], Object | None]) -> None:
        self.name = name
        self.steps = steps
        self.pending = 0
        self.trigger: str | None = None
        self._look_ahead = look_ahead
        self._now = _Stretch()
        self._before: _Stretch | None = None  # the response before, when it is still owed results
        self._later: list[Said] = []  # ... and what was said while it was
        self._responses: dict[str, int] = {}
        self._turns: list[tuple[int, str, bool]] = []  # line, key, whether a reply
        self._waits = False  # a reply is waited for: the newest turn may be steered
        self._in_work = False  # ... because results came in
        self._stopped = False  # ... but the work was broken off
        self._undecided = False  # whether a command waits for the line that decides on it
        self._early: set[str] = set()  # calls whose results were looked for ahead

    # -- what a line brings

    def response(self, response: str, blocks: list[Object], at_ms: int | None, line: int) -> None:
        """Blocks of a response: of the one being gathered, or, under another id, of the next."""
        self.decide(shown=True)
        if self._now.response != response:
            self._close(settled=False)
            run = self._responses[response] = self._responses.get(response, 0) + 1
            self._now = _Stretch(response, response + (f"#{run}" if run > 1 else ""), at_ms, line)
        self._now.add(blocks)

    def usage(self, usage: Object) -> None:
        """What the response being gathered has used so far; the last word counts."""
        self._now.usage = usage

    def result(self, block: Object, at_ms: int | None, line: Object) -> None:
        """The result of a call, of the response being gathered or of the one before."""
        call = id_of(block, "tool_use_id")
        for stretch in (self._before, self._now):
            if stretch is None or not stretch.take(call, block, at_ms):
                continue
            if not stretch.owes and stretch is self._before:
                self._settle(stretch)
            elif not stretch.owes:
                stretch.tail.append(_RESULTS)
            return
        if call not in self._early:
            key = f"cc:unawaited:{call}:{line_key(line)}"
            self.witness("error", {"unawaited-result": call} | kept(line), key, at_ms)

    def say(self, said: Said) -> None:
        """Words on a line of their own. Those of a person, a summary or an interrupt close what was before."""
        self.unsay(said.words)
        self.decide(shown=said.voice == "meta")
        self._undecided = said.unsure == "command"
        self._push(said)
        if said.voice in ("user", "interrupt", "summary"):
            self._close(settled=True)

    def queue(self, said: Said) -> None:
        """Words the program took into the running work; a line of their own may still say them."""
        self._push(said)

    def unsay(self, words: str) -> None:
        """Drop a queued text: a line of its own says it, or it was taken back."""
        for tail in (self._later, self._now.tail):
            for at, item in enumerate(tail):
                if isinstance(item, Said) and item.unsure == "queued" and item.words == words:
                    del tail[at]
                    self._drain()
                    return

    def witness(self, kind: WitnessKind, body: dict[str, Any], key: str, at_ms: int | None) -> None:
        """A record for eyes, in its place."""
        self._push(Witness(thread=self.name, key=key, at_ms=at_ms, kind=kind, body=body))

    def place(self, step: Step) -> None:
        """A step that needs no state, in its place."""
        self._push(step)

    def stop(self) -> None:
        """The program broke the work off: the next words of the user are a prompt."""
        self._push(_STOPPED)

    def finish(self) -> None:
        """The file ends. What it leaves open stays open, for it may grow."""
        if self._before is not None:
            self.pending += 1
        else:
            self._hand_on(self._now, ended=True)

    # -- closing a stretch

    def _push(self, item: Said | Step | _Mark) -> None:
        self._now.tail.append(item)
        self._drain()

    def _drain(self) -> None:
        """Without a response there is nothing to wait for but a word not yet decided."""
        if self._now.response is None:
            tail = self._now.tail
            sure = next((at for at, item in enumerate(tail) if _unsure(item)), len(tail))
            ready = tail[:sure]
            del tail[:sure]
            for item in ready:
                self._place(item)

    def decide(self, *, shown: bool) -> None:
        """A command's text was shown to the model, and it is a prompt; or it was not, and it is a note."""
        if self._undecided:
            self._undecided = False
            for at, item in enumerate(self._now.tail):
                if isinstance(item, Said) and item.unsure == "command":
                    item.unsure = None
                    if not shown and item.otherwise is not None:
                        self._now.tail[at] = item.otherwise
            self._drain()

    def _close(self, *, settled: bool) -> None:
        """Hand on what was gathered. ``settled``: no result is waited for any longer."""
        if self._before is not None:
            self._settle(self._before)
        self._hand_on(self._now)
        if settled and self._before is not None:
            self._settle(self._before)
        self._now = _Stretch()

    def _hand_on(self, stretch: _Stretch, *, ended: bool = False) -> None:
        if stretch.blocks:
            self._reply(stretch, ended)
        tail, later = stretch.in_order()
        for at, item in enumerate(tail):
            if ended and _unsure(item):
                self.pending += len(tail) - at
                break
            if item is _RESULTS:
                self._results(stretch, ())
            else:
                self._place(item)
        self._before, self._later = (stretch, later) if stretch.owes else (None, [])
        self.pending += len(later) if ended else 0

    def _settle(self, stretch: _Stretch) -> None:
        """Answer what is still missing: from further down the file, or by saying that there is nothing."""
        self._before = None
        absent = []
        for call in [name for name in stretch.calls if name not in stretch.got]:
            block = self._look_ahead(stretch.calls[call])
            if block is None:
                absent.append(call)
            else:
                self._early.add(stretch.calls[call])
            stretch.got[call] = block if block is not None else {"content": ABSENT}
        self._results(stretch, tuple(absent))
        self._stopped = self._stopped or bool(absent)
        later, self._later = self._later, []
        for said in later:
            self._place(said)

    # -- making steps

    def _reply(self, stretch: _Stretch, ended: bool) -> None:
        key, at_ms = f"cc:reply:{stretch.name}", stretch.at_ms
        message = one_message("assistant", stretch.blocks)
        stretch.keep_calls({part["id"] for part in message["parts"] if part["type"] == "tool_call"})
        self.steps.append(
            Reply(
                thread=self.name,
                key=key,
                at_ms=at_ms,
                message=message,
                calls=tuple(stretch.calls),
                unfinished=ended,
            )
        )
        if stretch.usage is not None:
            named = f"cc:usage:{stretch.name}"
            usage = Witness(thread=self.name, key=named, at_ms=at_ms, kind="usage", body=stretch.usage, of=key)
            self.steps.append(usage)
        self._turns.append((stretch.line, key, True))
        self._waits = self._in_work = self._stopped = False

    def _results(self, stretch: _Stretch, absent: tuple[str, ...]) -> None:
        results = [_result(call, block) for call, block in stretch.got.items() if call in stretch.calls]
        self.steps.append(
            Results(
                thread=self.name,
                key=f"cc:results:{stretch.name}",
                at_ms=stretch.got_at_ms,
                messages=tuple(results),
                absent=absent,
            )
        )
        self._waits = self._in_work = True

    def _place(self, item: Said | Step | _Mark) -> None:
        if isinstance(item, Said):
            self._speak(item)
        elif item is _STOPPED:
            self._stopped = True
        elif isinstance(item, Step):
            self.steps.append(item)

    def _speak(self, said: Said) -> None:
        """Steering joins work that waits for a reply; what was said at any other time is a prompt."""
        if said.voice in ASKING and said.after is not None:
            self._go_back(said.after, said.key)
        joins = self._waits and not self._stopped and (self._in_work or said.voice not in (*ASKING, "summary"))
        if said.voice == "summary":
            joins = False
        elif said.voice == "interrupt":
            joins, self._stopped = self._waits, True
        key = f"cc:said:{said.key}"  # one key, prompt or steering: a longer file may tell the one from the other
        place: dict[str, Any] = {"thread": self.name, "at_ms": said.at_ms}
        if joins:
            self.steps.append(Steer(key=key, message=said.message, voice=said.voice, **place))
            return
        self.steps.append(Prompt(key=key, message=said.message, voice=said.voice, **place))
        self._turns.append((said.line, key, False))
        self._waits, self._in_work, self._stopped = True, False, said.voice == "interrupt"
        if said.voice == "summary":
            self.steps.append(Compaction(key=f"cc:compaction:{said.key}", trigger=self.trigger, **place))
            self.trigger = None

    def _go_back(self, after: int, key: str) -> None:
        """A prompt that answers a line older than the newest reply: the user went back to before its prompt."""
        stay = len(self._turns)
        while stay and self._turns[stay - 1][0] > after:
            stay -= 1
        if any(reply for _, _, reply in self._turns[stay:]):
            self.steps.append(Rewind(thread=self.name, key=f"cc:rewind:{key}", anchor=self._turns[stay][1]))
            del self._turns[stay:]
            self._waits = self._in_work = self._stopped = False


def one_message(role: Literal["user", "assistant"], content: str | list[Object]) -> Message:
    """The one message in OpenTelemetry form that this content makes. A block that is none stands as its JSON."""
    try:
        return _converted(role, content)
    except Refused:
        if isinstance(content, str):
            raise
    as_text = [block if _is_block(role, block) else _as_text(block) for block in content]
    try:
        return _converted(role, as_text)
    except Refused:
        return _converted(role, [_as_text(content)])


def _converted(role: Literal["user", "assistant"], content: str | list[Object]) -> Message:
    messages: list[Message] = providers.to_otel({"role": role, "content": content}, role)
    return messages[0] | {"parts": [part for message in messages for part in message["parts"]]}


def _is_block(role: Literal["user", "assistant"], block: Object) -> bool:
    try:
        _converted(role, [block])
    except Refused:
        return False
    return True


def _as_text(value: Any) -> Object:
    return {"type": "text", "text": compact(value)}


def _unsure(item: Said | Step | _Mark) -> bool:
    return isinstance(item, Said) and item.unsure is not None


def _result(call: str, block: Object) -> Message:
    """The message of one result; content of no known shape stands as its JSON."""
    named = block | {"type": "tool_result", "tool_use_id": call}
    try:
        (message,) = providers.results_to_otel([named])
    except Refused:
        (message,) = providers.results_to_otel([{"id": call, "content": compact(block)}])
    return message
