"""Claude Code sessions: a file's lines to steps, in one pass.

Memory is the responses that wait for results, nearly always one, with what came while they did, plus a few hundred
bytes for every line that has a uuid.

A file may grow and be imported again, so every decision rests on lines that are there, none on what the rest of the
file lacks: a copy cut after any line gives the beginning of what the whole file gives. What such a copy cannot decide
yet is counted as pending, and its words, which no turn holds yet, are kept in a note.

What the format leaves open, and what is done:

- One response is a run of lines of equal ``message.id`` in one thread; an id that comes back later opens another turn.
- A result line between two lines of a response does not close it. Nothing does but the next response, a person's
  words, an interrupt, a compaction or the end of the file; ``stop_reason`` is null too often to tell.
- Results are matched by call id and kept in order of arrival, one step a reply. Late ones go to the reply that called,
  past up to ``LATE_RESPONSES`` later responses; what was said meanwhile waits for them. A call is answered by a
  placeholder that says so once those have begun, or sooner: by an interrupt, by a prompt that goes back to before it,
  by a response to a person who spoke after it. A result that comes after that is an error record. At the end of the
  file an open call stays owed and what is behind it waits.
- Words of a person: after results and no interrupt, steering; otherwise a prompt. An interrupt itself is steering of
  the work it ends, and a user turn of its own where no work waited. Its text is never dropped, for the model reads it.
- Text queued while the agent worked: ``remove`` is where it was said; a line or an attachment that says the same
  before the next response, or an attachment just before, is its copy. A name of a command (``/mcp``, not ``/etc/hosts``)
  was no text. ``dequeue`` became a prompt with a line of its own; ``popAll`` gave it back to the editor.
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
- A line read before under the same uuid (a resumed session copies lines) is counted and left, if it says the same.
  If not, redaction has made ids equal: both are read, and nothing hangs on such an id.
- Two objects on a line are two lines. What does not parse is kept as an error record; a last line without a line feed
  that breaks off is left for the day the file has grown.

Keys, by which a step is known again: ``cc:session``; ``cc:said:<uuid>`` for prompts and steering; ``cc:reply:<message
id>``, and ``cc:results:`` and ``cc:usage:`` of the same id; ``cc:compaction:<uuid>``, ``cc:rewind:<uuid>``;
``cc:agent:<agent id>``; ``cc:waiting:<uuid>`` of words not yet placed; of other witness records ``cc:<kind>:<uuid, or
hash of the line>``. A uuid that other lines bear too has the hash of what this one says behind it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from exarch_sql.errors import Refused
from exarch_sql.importers.claude_lines import (
    Object,
    agent_started,
    at_ms,
    blocks_of,
    id_of,
    is_command,
    is_local,
    is_synthetic,
    kept,
    line_key,
    object_of,
    sense_of,
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


class _Seen(NamedTuple):
    """The first line of a uuid: its number, what it says as a hash, and the time it gives."""

    number: int
    sense: str
    time: str


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
        self._seen: dict[str, _Seen] = {}  # by uuid
        self._shared: dict[
            str, set[str]
        ] = {}  # uuid that lines of different sense bear to the names of all but the first
        self._bare: Counter[str] = Counter()  # lines without a uuid, by hash
        self._sides: dict[str, str] = {}  # uuid of a sidechain line without agentId to its thread
        self._settings: dict[str, Object] = {}
        self._queue: list[str] = []
        self._ties: set[str] = set()

    def steps(self) -> Iterator[Step]:
        """Every step of the file, threads as they come.

        Raises OSError when the file cannot be read, Refused when it has messages and none of its lines names a session.
        """
        with self.path.open("rb") as file:
            for number, line in enumerate(lines(file), 1):
                self.position = line.offset + len(line.raw) + line.ended
                self._line(number, line)
                yield from self._ready()
        if any(isinstance(found, dict) and "message" in found for _, found in self._held):
            raise Refused(
                f"{self.path} holds messages and names no session: a line of Claude Code has "
                '"sessionId"; give the file as the program wrote it'
            )
        self.pending += len(self._held)
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
        if isinstance(found, Damage):
            self.damaged += 1
        elif (named := self._named(found, number)) is not None:
            found = named
        else:
            self.copies += 1
            return
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

    def _named(self, line: Object, number: int) -> Object | None:
        """The line under a uuid of its own; None for a copy of one that was read.

        A line without a uuid goes by its hash. Where redaction made uuids equal, they tell nothing: a line is another
        one if it says something else or says it at another time.
        """
        uuid = id_of(line, "uuid")
        if not uuid:
            uuid = line_key(line)
            self._bare[uuid] += 1
            return line | {"uuid": uuid if self._bare[uuid] == 1 else f"{uuid}#{self._bare[uuid]}"}
        sense, time = sense_of(line), text_of(line, "timestamp")
        first = self._seen.get(uuid)
        if first is None:
            self._seen[uuid] = _Seen(number, sense, time)
            return line
        if sense == first.sense and (uuid not in self._shared or time == first.time):
            return None
        others, name = self._shared.setdefault(uuid, set()), f"{uuid}~{sense}{time}"
        if name in others:
            return None
        others.add(name)
        return line | {"uuid": name}

    def _number_of(self, uuid: str) -> int | None:
        """The number of the line of this uuid; None where it tells no line from another."""
        return self._seen[uuid].number if uuid in self._seen and uuid not in self._shared else None

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
            thread = self._threads[name] = Thread(name, self._steps)
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
        blocks, others = blocks_of(line), []
        for block in blocks:
            if block.get("type") == "tool_result":
                thread.result(block, at_ms(line), line)
            else:
                others.append(block)
        words = words_of(others)
        if is_local(words):
            thread.decide(shown=False)
            _witness(thread, "note", line)
        elif others and thread.was_removed(words.strip()):
            self.copies += 1
            thread.decide(shown=False)
            if others := _without_text(others):
                thread.say(self._said(line, others, "", number))
        elif others:
            whole = object_of(line, "message").get("content")
            said = self._said(line, whole if isinstance(whole, str) else others, words, number)
            if said.voice == "command":
                said.unsure, said.otherwise = True, _as_witness(thread.name, "note", line, said.words)
            thread.say(said)
        elif not blocks:
            _witness(thread, "meta", line)

    def _said(self, line: Object, content: str | list[Object], words: str, number: int) -> Said:
        return Said(
            voice=voice_of(line, words),
            message=one_message("user", content),
            words=words.strip(),
            key=line_key(line),
            at_ms=at_ms(line),
            line=number,
            after=self._number_of(id_of(line, "parentUuid")),
        )

    def _attachment(self, thread: Thread, line: Object, number: int) -> None:
        """A queued command is what the user typed, shown to the model here; all others are the program's own."""
        attachment = object_of(line, "attachment")
        prompt = attachment.get("prompt")
        blocks = blocks_of({"message": {"content": prompt}})
        if attachment.get("type") != "queued_command" or not blocks:
            _witness(thread, "meta", line)
            return
        content, words = prompt if isinstance(prompt, str) else blocks, words_of(blocks)
        if thread.was_removed(words.strip()):
            self.copies += 1
            content = blocks = _without_text(blocks)
        if blocks:
            said = self._said(line, content, words, number)
            said.after = None
            thread.attach(said)

    def _queue_operation(self, thread: Thread, line: Object, number: int) -> None:
        """What the queue did is a note; words that leave it for the running work are said to it."""
        operation, words = text_of(line, "operation"), text_of(line, "content")
        thread.place(_as_witness(thread.name, "note", line, words))
        if operation == "enqueue":
            self._queue.append(words)
        elif operation == "popAll":
            self._queue.clear()
        elif operation in ("dequeue", "remove"):
            words = words or (self._queue[0] if self._queue else "")
            if words in self._queue:
                self._queue.remove(words)
            if operation == "remove" and words.strip() and not is_command(words):
                said = self._said(line, words, words, number)
                said.after = None
                thread.remove(said)

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


def _without_text(blocks: list[Object]) -> list[Object]:
    return [block for block in blocks if block.get("type") != "text"]


def _as_witness(thread: str, kind: WitnessKind, line: Object, words: str = "") -> Witness:
    key, body = f"cc:{kind}:{line_key(line)}", kept(line, words)
    return Witness(thread=thread, key=key, at_ms=at_ms(line), kind=kind, body=body)


def _witness(thread: Thread, kind: WitnessKind, line: Object) -> None:
    thread.place(_as_witness(thread.name, kind, line))
