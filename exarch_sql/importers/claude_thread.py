"""One thread of a Claude Code session: from its lines, in file order, to steps in the order a log admits them.

The program writes what it does as it does it: the blocks of one response on lines of their own, results between them
as tools finish, words of the user wherever they were typed. A log takes whole turns. So a thread gathers one response
with all that came while it was the newest (its *stretch*) and closes it when something else begins: the next response,
a person's words, a compaction. A closed stretch is handed on once all its calls have results, and the ones behind it
wait their turn. Results do come late, so it waits while up to ``LATE_RESPONSES`` more responses begin. Then a call
without a result is answered by ``ABSENT``; sooner, if the user broke the work off or went back to before it, or if a
person spoke after the call and a response to that began, for no model is asked anything while a call has no result.

Nothing is decided by what is *not* in the file, for the file may grow. At its end an oldest response still owed
results is recorded as owing, and what stands behind it waits; so reading a longer copy gives the same turns and then
more. The one exception is a response that ends the file ``unfinished`` and turns out to be longer.
"""

from __future__ import annotations

from collections import Counter
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
    Waiting,
    Witness,
    WitnessKind,
)

if TYPE_CHECKING:
    from exarch_sql.answers import Message

ABSENT = "[EXARCH // No result: the transcript holds none for this call.]"
LATE_RESPONSES = 8  # so many may begin before a result that one before them waits for
_CLOSING: tuple[Voice, ...] = ("user", "shell", "interrupt", "summary")


class Said(msgspec.Struct):
    """Words that reach the model, not yet placed.

    ``line`` is their line's number, ``after`` that of the line they answer. ``unsure`` marks a command: the user's
    prompt only if a later line shows that the model was given its text; ``otherwise`` stands in its place if not.
    """

    voice: Voice
    message: Message
    words: str
    key: str
    at_ms: int | None
    line: int
    after: int | None = None
    unsure: bool = False
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
        self.absent: tuple[str, ...] = ()
        self.usage: Object | None = None
        self.passed = False  # whether a person, or a compaction, has spoken since
        self.tail: _Items = []
        self._message: Message | None = None

    @property
    def owes(self) -> bool:
        """Whether a call has no result."""
        return bool(self.waiting)

    def add(self, blocks: list[Object]) -> None:
        """More blocks of the response. A call added after all results were in is waited for again."""
        for block in blocks:
            if block.get("type") == "tool_use":
                self._call(block)
            else:
                self.blocks.append(block)

    def _call(self, block: Object) -> None:
        """One more call. One without an id is answered at once: no result can name it."""
        call = id_of(block, "id")
        name, again = call or self.name, 1
        while name in self.calls:
            again += 1
            name = f"{call or self.name}#{again}"
        if call and _RESULTS in self.tail:
            self.tail.remove(_RESULTS)
        self.calls[name] = call
        self.blocks.append({"input": {}, **block, "id": name, "name": text_of(block, "name") or "unnamed"})
        self.waiting.setdefault(call, []).append(name)
        if not call:
            self._settle(call)

    def take(self, call: str, block: Object, at_ms: int | None) -> bool:
        """A result for one of the waiting calls; False when none waits under that id."""
        names = self.waiting.get(call)
        if not names:
            return False
        self.got[names.pop(0)] = block
        if not names:
            del self.waiting[call]
        self.got_at_ms = at_ms if self.got_at_ms is None else self.got_at_ms
        self._answered()
        return True

    def settle(self) -> None:
        """No result is waited for any longer: calls without one are answered by saying so."""
        for call in list(self.waiting):
            self._settle(call)

    def _settle(self, call: str) -> None:
        names = self.waiting.pop(call)
        self.absent += tuple(names)
        for name in names:
            self.got[name] = {"content": ABSENT}
        self._answered()

    def _answered(self) -> None:
        if self.calls and not self.owes and _RESULTS not in self.tail:
            self.tail.append(_RESULTS)

    def message(self) -> Message:
        """The whole response, once it is. Calls it does not make are forgotten: no provider would have sent such a block."""
        if self._message is not None:
            return self._message
        self._message = message = one_message("assistant", self.blocks)
        made = {part["id"] for part in message["parts"] if part["type"] == "tool_call"}
        if not self.calls.keys() <= made:
            self.calls = {name: call for name, call in self.calls.items() if name in made}
            waiting = {call: [name for name in names if name in made] for call, names in self.waiting.items()}
            self.waiting = {call: names for call, names in waiting.items() if names}
            self.absent = tuple(name for name in self.absent if name in made)
            self.tail = [item for item in self.tail if item is not _RESULTS or self.calls]
            self._answered()
        return message

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

    ``steps`` is where finished steps go. ``pending`` counts what the end of the file left undecided; ``trigger`` is
    that of a compaction whose summary is still to come.
    """

    def __init__(self, name: str, steps: list[Step]) -> None:
        self.name = name
        self.steps = steps
        self.pending = 0
        self.trigger: str | None = None
        self._open = [_Stretch()]  # not handed on yet, oldest first; the last one is being gathered
        self._responses: dict[str, int] = {}
        self._turns: list[tuple[int, str, bool]] = []  # line, key, whether a reply
        self._waits = False  # a reply is waited for: the newest turn may be steered
        self._in_work = False  # ... because results came in
        self._stopped = False  # ... but the work was broken off
        self._command: Said | None = None  # waits for the line that decides on it
        self._removed: Counter[str] = Counter()  # words said by leaving the queue, since the newest response began
        self._attached: Counter[str] = Counter()  # ... and by an attachment, which is the same words leaving the queue

    @property
    def _now(self) -> _Stretch:
        return self._open[-1]

    # -- what a line brings

    def response(self, response: str, blocks: list[Object], at_ms: int | None, line: int) -> None:
        """Blocks of a response: of the one being gathered, or, under another id, of the next."""
        if self._now.response != response:
            self.decide(shown=True)
            self._removed.clear()
            self._attached.clear()
            run = self._responses[response] = self._responses.get(response, 0) + 1
            self._begin(_Stretch(response, response + (f"#{run}" if run > 1 else ""), at_ms, line))
        self._now.add(blocks)

    def usage(self, usage: Object) -> None:
        """What the response being gathered has used so far; the last word counts."""
        self._now.usage = usage

    def result(self, block: Object, at_ms: int | None, line: Object) -> None:
        """The result of a call, of the oldest response that waits for it."""
        call = id_of(block, "tool_use_id")
        if any(stretch.take(call, block, at_ms) for stretch in self._open):
            self._drain()
        else:
            key = f"cc:unawaited:{call}:{line_key(line)}"
            self.witness("error", {"unawaited-result": call} | kept(line), key, at_ms)

    def say(self, said: Said) -> None:
        """Words on a line of their own. Those of a person, a summary or an interrupt close what was before."""
        self.decide(shown=said.voice == "meta")
        self._command = said if said.unsure else None
        if said.voice == "interrupt":
            self._settle(0)
        elif said.voice == "user":
            self._settle(said.after)
        self._push(said)
        if said.voice in _CLOSING:
            self._begin(_Stretch())

    def remove(self, said: Said) -> None:
        """Words that left the queue for the running work: said here, unless an attachment has said them already."""
        if not _took(self._attached, said.words):
            self._removed[said.words] += 1
            self._push(said)

    def attach(self, said: Said) -> None:
        """Words that left the queue, as the model was shown them."""
        self._attached[said.words] += 1
        self._push(said)

    def was_removed(self, words: str) -> bool:
        """Whether these words were said when they left the queue, so that their own line repeats them; asked once."""
        return _took(self._removed, words)

    def witness(self, kind: WitnessKind, body: dict[str, Any], key: str, at_ms: int | None) -> None:
        """A record for eyes, in its place."""
        self._push(Witness(thread=self.name, key=key, at_ms=at_ms, kind=kind, body=body))

    def place(self, step: Step) -> None:
        """A step that needs no state, in its place."""
        self._push(step)

    def stop(self) -> None:
        """The program broke the work off: the next words of the user are a prompt."""
        self._push(_STOPPED)

    def decide(self, *, shown: bool) -> None:
        """A command's text was shown to the model, and it is a prompt; or it was not, and it is a note."""
        command, self._command = self._command, None
        if command is None:
            return
        command.unsure = False
        if shown:
            self._settle(command.after)
            self._begin(_Stretch())
        elif command.otherwise is not None:
            tail = self._now.tail
            tail[next(at for at, item in enumerate(tail) if item is command)] = command.otherwise
        self._drain()

    def finish(self) -> None:
        """The file ends. What a longer one could decide otherwise waits for it; of words that wait, a note is kept."""
        head, *behind = self._open
        rest = self._hand_on(head, ended=not behind)
        for stretch in behind:
            self.pending += bool(stretch.blocks)
            rest += stretch.tail
        for item in rest:
            if isinstance(item, Step):
                self.steps.append(item)
            elif isinstance(item, Said):
                self.pending += 1
                if item.words:
                    self.steps.append(_waiting(self.name, item))

    # -- closing a stretch

    def _push(self, item: Said | Step | _Mark) -> None:
        self._now.tail.append(item)
        self._drain()

    def _begin(self, stretch: _Stretch) -> None:
        """Close what was gathered and gather anew: a response, or, with none, what a person's words begin."""
        if stretch.response is None:
            for earlier in self._open:
                earlier.passed = True
            if self._now.response is None:
                return
        if self._now.blocks:
            self._now.message()
        if self._now.response is None and not self._now.tail:
            self._open.pop()
        self._open.append(stretch)
        if stretch.response is not None:
            self._give_up(stretch.response)
        self._drain()

    def _give_up(self, response: str) -> None:
        """A response begins: results waited for too long, or asked past, are waited for no longer."""
        begun = [stretch for stretch in self._open if stretch.response is not None]
        for at, stretch in enumerate(begun, 1):
            if len(begun) - at > LATE_RESPONSES or (stretch.passed and stretch.response != response):
                stretch.settle()

    def _settle(self, after: int | None) -> None:
        """The work of responses that began after this line is over, whatever they still wait for."""
        for stretch in self._open:
            if after is not None and stretch.line > after:
                stretch.settle()

    def _drain(self) -> None:
        """Hand on what is closed and whole; without a response there is nothing to wait for but a command's fate."""
        while len(self._open) > 1 and not self._open[0].owes:
            self._hand_on(self._open.pop(0))
        if len(self._open) == 1 and self._now.response is None:
            tail = self._now.tail
            sure = next((at for at, item in enumerate(tail) if _unsure(item)), len(tail))
            ready = tail[:sure]
            del tail[:sure]
            for item in ready:
                self._place(item)

    def _hand_on(self, stretch: _Stretch, *, ended: bool = False) -> _Items:
        """A stretch's steps, in order; what of it has to wait."""
        if stretch.blocks:
            self._reply(stretch, ended)
        tail, later = stretch.in_order()
        for at, item in enumerate(tail):
            if _unsure(item):
                return [*tail[at:], *later]
            if item is _RESULTS:
                self._results(stretch)
            else:
                self._place(item)
        return list(later)

    # -- making steps

    def _reply(self, stretch: _Stretch, ended: bool) -> None:
        key, at_ms = f"cc:reply:{stretch.name}", stretch.at_ms
        message = stretch.message()
        calls = tuple(stretch.calls)
        self.steps.append(Reply(thread=self.name, key=key, at_ms=at_ms, message=message, calls=calls, unfinished=ended))
        if stretch.usage is not None:
            named = f"cc:usage:{stretch.name}"
            usage = Witness(thread=self.name, key=named, at_ms=at_ms, kind="usage", body=stretch.usage, of=key)
            self.steps.append(usage)
        self._turns.append((stretch.line, key, True))
        self._waits = self._in_work = self._stopped = False

    def _results(self, stretch: _Stretch) -> None:
        results = [_result(call, block) for call, block in stretch.got.items() if call in stretch.calls]
        self.steps.append(
            Results(
                thread=self.name,
                key=f"cc:results:{stretch.name}",
                at_ms=stretch.got_at_ms,
                messages=tuple(results),
                absent=stretch.absent,
            )
        )
        self._waits = self._in_work = True
        self._stopped = self._stopped or bool(stretch.absent)

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
    return isinstance(item, Said) and item.unsure


def _took(counted: Counter[str], words: str) -> bool:
    """Whether the words were counted; if so, once less from now on."""
    found = counted[words] > 0
    counted[words] -= found
    return found


def _waiting(thread: str, said: Said) -> Waiting:
    note = said.otherwise.key if said.otherwise is not None else None
    place: dict[str, Any] = {"thread": thread, "key": f"cc:waiting:{said.key}", "at_ms": said.at_ms}
    return Waiting(voice=said.voice, words=said.words, said=f"cc:said:{said.key}", note=note, **place)


def _result(call: str, block: Object) -> Message:
    """The message of one result; content of no known shape stands as its JSON."""
    named = block | {"type": "tool_result", "tool_use_id": call}
    try:
        (message,) = providers.results_to_otel([named])
    except Refused:
        (message,) = providers.results_to_otel([{"id": call, "content": compact(block)}])
    return message
