"""Claude Code sessions: a file's lines to steps, in one pass.

A second pass is made, once, only when a response has ended and a call before it still has no result: then the results
further down are listed by place. Memory is one response with what came while it was the newest, plus about a hundred
bytes for every line that has a uuid.

What the format leaves open, and what is done:

- One response is a run of lines of equal ``message.id`` in one thread; an id that comes back later opens another turn.
- A result line between two lines of a response does not close it. Nothing does but the next response, a person's
  words, an interrupt, a compaction or the end of the file; ``stop_reason`` is null too often to tell.
- Results are matched by call id and kept in order of arrival, one step a reply. Late ones, even past later responses,
  go to the reply that called. A call whose result is nowhere is answered by a placeholder that says so, once the next
  response has ended or a person has spoken; at the end of the file it stays owed.
- Words of a person: after results and no interrupt, steering; otherwise a prompt. An interrupt itself is steering of
  the work it ends, and a user turn of its own where no work waited. Its text is never dropped, for the model reads it.
- Text queued while the agent worked: ``remove`` is where it was said, unless a line or an attachment says it before
  the next response; ``dequeue`` became a prompt with a line of its own; ``popAll`` gave it back to the editor.
- Other text the model reads (``isMeta`` lines such as skill bodies and stop-hook feedback, notices of background
  agents, the user's own shell) joins the turn being worked on, or opens a user turn where none is; not counted as a
  prompt. The caveat before a local command is a note.
- A command line (``/name``) is a prompt if the model was shown its text, by the line's own reply or by an ``isMeta``
  body after it; otherwise, as with ``/exit``, it and its output are notes.
- ``<synthetic>`` replies and API errors are witness records: no model answered. What follows one is a prompt.
- A compaction's summary is a prompt, and everything before it then leaves by one forced eviction. A micro-compaction,
  which hid only tool output, is a witness record.
- A prompt that hangs on a line older than the newest reply is the user going back: a rewind to what came after it.
- Usage is one record a response, from its last line, with model, request and stop reason; never summed over lines.
- An empty thinking block with a signature is kept as it is: a provider wants it back.
- A turn's time is its first line's. Working directory, branch, version and model are one record whenever one changes.
- Lines of an agent (``isSidechain``) are a thread of their own; the copies in ``agent_progress`` only tell which call
  started it. Ticking copies of output (``bash_progress`` and the like) are counted and left.
- ``toolUseResult`` is not archived: it doubles the size with what the model never saw. Attachments the program adds
  (reminders, skill lists) are witness records; ``queued_command`` is the user's text.
- A line read before under the same uuid (a resumed session copies lines) is counted and left.
- Two objects on a line are two lines. What does not parse is kept as an error record; a last line without a line feed
  that breaks off is left for the day the file has grown.

Keys, by which a step is known again: ``cc:session``; ``cc:said:<uuid>`` for prompts and steering; ``cc:reply:<message
id>``, and ``cc:results:`` and ``cc:usage:`` of the same id; ``cc:compaction:<uuid>``, ``cc:rewind:<uuid>``;
``cc:agent:<agent id>``; of other witness records ``cc:<kind>:<uuid, or hash of the line>``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from exarch_sql.importers.claude_lines import (
    Object,
    agent_started,
    at_ms,
    blocks_of,
    id_of,
    is_local,
    is_synthetic,
    kept,
    line_key,
    object_of,
    settings_of,
    text_of,
    voice_of,
    words_of,
)
from exarch_sql.importers.claude_thread import Said, Thread, one_message
from exarch_sql.importers.lines import Damage, Line, lines, parse
from exarch_sql.importers.steps import Opening, Step, Tie, Witness, WitnessKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMAT = "claude-code"


class ClaudeCode:
    """One file, to be read once: iterate :meth:`steps`, then the counters are final.

    ``session`` and ``primary`` (the thread the file is about) are None until the first line that names a session;
    ``position`` is how far reading has come, in bytes. ``damaged``, ``copies`` and ``skipped`` count lines,
    ``pending`` what may still be decided by a longer file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.session: str | None = None
        self.primary: str | None = None
        self.position = self.damaged = self.copies = self.skipped = self.pending = 0
        self._steps: list[Step] = []
        self._threads: dict[str, Thread] = {}
        self._held: list[tuple[int, Object | Damage]] = []  # lines before the first that names a session
        self._seen: dict[str, int] = {}  # uuid to line number
        self._sides: dict[str, str] = {}  # uuid of a sidechain line without agentId to its thread
        self._settings: dict[str, Object] = {}
        self._queue: list[str] = []
        self._ties: set[str] = set()
        self._late: dict[str, int] | None = None  # call id to the offset of a result not yet reached

    def steps(self) -> Iterator[Step]:
        """Every step of the file, threads as they come. Raises OSError when the file cannot be read."""
        with self.path.open("rb") as file:
            for number, line in enumerate(lines(file), 1):
                self.position = line.offset + len(line.raw) + line.ended
                self._line(number, line)
                yield from self._ready()
        for thread in self._threads.values():
            thread.finish()
            self.pending += thread.pending
        yield from self._ready()

    def _ready(self) -> list[Step]:
        ready = self._steps[:]
        self._steps.clear()
        return ready

    # -- lines to threads

    def _line(self, number: int, line: Line) -> None:
        if line.oversize is not None:
            self.position = line.offset + line.oversize.length
            self._take(number, line.oversize)
            return
        parsed = parse(line.raw)
        for found in parsed.objects:
            self._take(number, found)
        if parsed.damage is not None and parsed.cut_short and not line.ended:
            self.pending += 1
        elif parsed.damage is not None:
            self._take(number, parsed.damage)

    def _take(self, number: int, found: Object | Damage) -> None:
        """Hand a line to its thread, once it is known whose file this is."""
        self.damaged += isinstance(found, Damage)
        if self.session is None:
            self.session = (id_of(found, "sessionId") or None) if isinstance(found, dict) else None
            if self.session is None or isinstance(found, Damage):
                self._held.append((number, found))
                return
            self.primary = self._thread_of(found)
            for early in self._held:
                self._place(*early)
            self._held.clear()
        self._place(number, found)

    def _place(self, number: int, found: Object | Damage) -> None:
        if isinstance(found, Damage):
            self._thread(self.primary or "").witness("error", found.body(), f"cc:damage:{found.sha256[:32]}", None)
            return
        uuid = id_of(found, "uuid")
        if uuid:
            if uuid in self._seen:
                self.copies += 1
                return
            self._seen[uuid] = number
        thread = self._thread(self._thread_of(found))
        self._note_settings(thread, found)
        match text_of(found, "type"):
            case "assistant":
                self._assistant(thread, found, number)
            case "user":
                self._user(thread, found, number)
            case "queue-operation":
                self._queue_operation(thread, found, number)
            case "attachment":
                self._attachment(thread, found, number)
            case "progress":
                self._progress(thread, found)
            case "system":
                self._system(thread, found)
            case _:
                _witness(thread, "meta", found)

    def _thread_of(self, line: Object) -> str:
        """The thread's name; a line that does not say belongs to the one the file is about."""
        if not line.get("isSidechain"):
            return "" if "isSidechain" in line or self.primary is None else self.primary
        uuid, agent = id_of(line, "uuid"), id_of(line, "agentId")
        if not agent:
            agent = self._sides.setdefault(uuid, self._sides.get(id_of(line, "parentUuid"), uuid))
        return f"agent-{agent}"

    def _thread(self, name: str) -> Thread:
        if name not in self._threads:
            thread = self._threads[name] = Thread(name, self._steps, self._look_ahead)
            agent = name.removeprefix("agent-") if name else None
            opening = Opening(thread=name, key="cc:session", format=FORMAT, session=self.session or "", agent=agent)
            self._steps.append(opening)
            return thread
        return self._threads[name]

    # -- lines by type

    def _assistant(self, thread: Thread, line: Object, number: int) -> None:
        message = object_of(line, "message")
        if is_synthetic(line):
            _witness(thread, "error" if line.get("isApiErrorMessage") else "note", line)
            thread.stop()
            return
        thread.response(id_of(message, "id") or line_key(line), blocks_of(line), at_ms(line), number)
        if usage := object_of(message, "usage"):
            body = {"model": message.get("model"), "message": message.get("id"), "request": line.get("requestId")}
            thread.usage(body | {"stop_reason": message.get("stop_reason")} | usage)

    def _user(self, thread: Thread, line: Object, number: int) -> None:
        self._tie(thread, line)
        others = []
        for block in blocks_of(line):
            if block.get("type") == "tool_result":
                thread.result(block, at_ms(line), line)
            else:
                others.append(block)
        words = words_of(others)
        if is_local(words):
            thread.decide(shown=False)
            _witness(thread, "note", line)
        elif others:
            whole = object_of(line, "message").get("content")
            thread.say(self._said(line, whole if isinstance(whole, str) else others, words, number))
        elif not object_of(line, "message").get("content"):
            _witness(thread, "meta", line)

    def _said(self, line: Object, content: str | list[Object], words: str, number: int) -> Said:
        voice = voice_of(line, words)
        return Said(
            voice=voice,
            message=one_message("user", content),
            words=words.strip(),
            key=line_key(line),
            at_ms=at_ms(line),
            line=number,
            after=self._seen.get(id_of(line, "parentUuid")),
            unsure="command" if voice == "command" else None,
            otherwise=_as_witness(self._thread_of(line), "note", line) if voice == "command" else None,
        )

    def _attachment(self, thread: Thread, line: Object, number: int) -> None:
        """A queued command is what the user typed, shown to the model here; all others are the program's own."""
        attachment = object_of(line, "attachment")
        words = text_of(attachment, "prompt")
        if attachment.get("type") == "queued_command" and words:
            thread.unsay(words.strip())
            thread.queue(self._said(line, words, words, number))
        else:
            _witness(thread, "meta", line)

    def _queue_operation(self, thread: Thread, line: Object, number: int) -> None:
        _witness(thread, "note", line)
        operation, words = text_of(line, "operation"), text_of(line, "content")
        if operation == "enqueue":
            self._queue.append(words)
        elif operation == "popAll":
            self._queue.clear()
        elif operation in ("dequeue", "remove"):
            words = words or (self._queue[0] if self._queue else "")
            if words in self._queue:
                self._queue.remove(words)
            if operation == "remove" and words.strip() and not words.startswith("/"):
                said = self._said(line, words, words, number)
                said.unsure = "queued"
                thread.queue(said)

    def _progress(self, thread: Thread, line: Object) -> None:
        self._tie(thread, line)
        if object_of(line, "data").get("type") == "hook_progress":
            _witness(thread, "meta", line)
        else:
            self.skipped += 1

    def _system(self, thread: Thread, line: Object) -> None:
        subtype = text_of(line, "subtype")
        if subtype == "compact_boundary":
            thread.trigger = text_of(object_of(line, "compactMetadata"), "trigger") or None
        kind: WitnessKind = "error" if subtype == "api_error" else "note" if subtype == "local_command" else "meta"
        _witness(thread, kind, line)

    def _tie(self, thread: Thread, line: Object) -> None:
        started = agent_started(line)
        if started is not None and started[0] not in self._ties:
            agent, call = started
            self._ties.add(agent)
            thread.place(Tie(thread=thread.name, key=f"cc:agent:{agent}", at_ms=at_ms(line), agent=agent, call=call))

    def _note_settings(self, thread: Thread, line: Object) -> None:
        found, known = settings_of(line), self._settings.get(thread.name, {})
        if not found.items() <= known.items():
            settings = self._settings[thread.name] = known | found
            thread.witness("meta", {"line": "settings"} | settings, f"cc:settings:{line_key(line)}", at_ms(line))

    # -- results further down

    def _look_ahead(self, call: str) -> Object | None:
        """The result of a call on a line not yet reached."""
        if self._late is None:
            self._late = self._list_results()
        offset = self._late.get(call, -1)
        if offset < self.position:
            return None
        with self.path.open("rb") as file:
            file.seek(offset)
            return next((block for block in _results_on(file.readline()) if id_of(block, "tool_use_id") == call), None)

    def _list_results(self) -> dict[str, int]:
        """Every result past the line just read, by call id."""
        found: dict[str, int] = {}
        with self.path.open("rb") as file:
            start = self.position
            file.seek(start)
            for line in lines(file):
                if b"tool_result" in line.raw:
                    for block in _results_on(line.raw):
                        found.setdefault(id_of(block, "tool_use_id"), start + line.offset)
        return found


def _results_on(raw: bytes) -> list[Object]:
    return [
        block
        for found in parse(raw).objects
        if found.get("type") == "user"
        for block in blocks_of(found)
        if block.get("type") == "tool_result"
    ]


def _as_witness(thread: str, kind: WitnessKind, line: Object) -> Witness:
    return Witness(thread=thread, key=f"cc:{kind}:{line_key(line)}", at_ms=at_ms(line), kind=kind, body=kept(line))


def _witness(thread: Thread, kind: WitnessKind, line: Object) -> None:
    thread.place(_as_witness(thread.name, kind, line))
