"""Steps into logs: every step recorded once, under its key, whatever was imported before.

A session goes to the log that holds it already, else to an empty trunk, else to a log of its own named by its session
id; an agent to ``agent-<id>``. Nothing recorded is touched. Where a file says something else than what was recorded:

- a reply that ended an earlier copy of the file and has since grown is withdrawn, if it is still the newest turn, and
  recorded whole under a variant of its key;
- a shorter copy of a recorded reply is no news;
- a session that goes on from an earlier turn than the log's newest (it was resumed twice, or the log went its own way)
  is another session: it goes to the next log of its name;
- any other difference keeps what was recorded and leaves an error record that names it.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from exarch_sql import messages
from exarch_sql.errors import Refused
from exarch_sql.importers import recorded
from exarch_sql.importers.claude_code import ClaudeCode
from exarch_sql.importers.detect import EMPTY, detect, refuse_others
from exarch_sql.importers.lines import KEPT_BYTES
from exarch_sql.importers.recorded import SESSION_KEY, VARIANT
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
    Witness,
    WitnessKind,
)

if TYPE_CHECKING:
    from exarch_sql.answers import Json, Message, Turn
    from exarch_sql.archive import Archive
    from exarch_sql.log import Log

CHUNK_BYTES = 4 * 1024 * 1024  # of the file, to one transaction
CHUNK_STEPS = 2000
CALLER_KEY = "cc:caller"
SAID = "cc:said:"  # prompts and steering alike
REFUSED = "cc:refused:"  # and the key of the step

Progress = Callable[[int, int], None]


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import found in a file, and what of it was new to the archive.

    The counts from ``prompts`` to ``witnesses`` are of the file's main thread; ``agents`` has those of its agents.
    ``prompts`` are what a person asked; ``others`` user turns that nobody typed (summaries, notices). ``damaged`` lines
    are kept as error records, ``copies`` were read before, ``skipped`` are the program's screen. ``pending`` waits for
    the file to grow, ``conflicts`` and ``refused`` steps are named by error records.
    """

    file: str
    format: str
    log: str | None = None
    session: str | None = None
    prompts: int = 0
    others: int = 0
    replies: int = 0
    calls: int = 0
    results: int = 0
    absent: int = 0
    steering: int = 0
    compactions: int = 0
    rewinds: int = 0
    usage: int = 0
    witnesses: int = 0
    damaged: int = 0
    copies: int = 0
    skipped: int = 0
    pending: int = 0
    conflicts: int = 0
    refused: int = 0
    new_records: int = 0
    already_there: int = 0
    agents: tuple[Imported, ...] = ()

    def to_dict(self) -> Json:
        """The fields under their names, hyphens for underscores."""
        found = {name.replace("_", "-"): getattr(self, name) for name in self.__struct_fields__}
        return found | {"agents": [agent.to_dict() for agent in self.agents]}


class _Elsewhere(Exception):
    """The log that a thread was given to has gone another way than the file."""

    def __init__(self, thread: str) -> None:
        super().__init__(thread)
        self.thread = thread


def import_file(
    archive: Archive, path: Path | str, *, log: Log | str | None = None, progress: Progress | None = None
) -> Imported:
    """Import one transcript; what it held and what was new.

    ``log`` (a log or its name) takes the file's session instead of the log it would go to. ``progress`` is called with
    the bytes read and the bytes there are. Raises Refused for a file of no known or no taken format, OSError for one
    that cannot be read; what was written until then stands, and importing again goes on from there.
    """
    path = Path(path)
    format_ = detect(path)
    refuse_others(format_, path)
    if format_ == EMPTY:
        return Imported(file=str(path), format=format_)
    given = archive.log(log) if isinstance(log, str) else log
    passed: Counter[str] = Counter()
    while True:
        reading = _Import(archive, ClaudeCode(path), given, passed)
        try:
            reading.run(progress)
        except _Elsewhere as elsewhere:
            passed[elsewhere.thread] += 1
            continue
        return reading.report(format_)


class _Import:
    """One reading of one file. ``passed`` counts, by thread, the logs found to have gone another way."""

    def __init__(self, archive: Archive, reader: ClaudeCode, given: Log | None, passed: Counter[str]) -> None:
        self._archive, self._reader, self._given, self._passed = archive, reader, given, passed
        self._writers: dict[str, _Writer] = {}

    def run(self, progress: Progress | None) -> None:
        """Write all steps, a transaction a chunk. A chunk ends only before a turn begins: none is ever half there."""
        total = self._reader.path.stat().st_size
        steps = self._reader.steps()
        ahead = next(steps, None)
        while ahead is not None:
            start, count = self._reader.position, 0
            with self._archive.batch():
                while ahead is not None:
                    count += 1
                    full = count > CHUNK_STEPS or self._reader.position - start > CHUNK_BYTES
                    if full and isinstance(ahead, Prompt | Reply):
                        break
                    self._step(ahead)
                    ahead = next(steps, None)
            if progress is not None:
                progress(self._reader.position, total)

    def _step(self, step: Step) -> None:
        if isinstance(step, Opening):
            self._writers[step.thread] = self._writer_for(step)
        writer = self._writers[step.thread]
        writer.write(step)
        if isinstance(step, Opening) and step.agent is not None:
            self._tell_caller(writer, step)
        if isinstance(step, Tie):
            self._tell_agent(writer, step)

    # -- which log

    def _writer_for(self, opening: Opening) -> _Writer:
        """A writer to the log that holds this thread, or to one that shall."""
        since = self._archive.head().seq
        if self._given is not None and opening.thread == self._reader.primary:
            self._refuse_other_session(self._given, opening)
            return _Writer(self._given, since, bound=True)
        holding = [name for name, agent in recorded.holders(self._archive, opening.session) if agent == opening.agent]
        passed = self._passed[opening.thread]
        if passed < len(holding):
            return _Writer(self._archive.log(holding[passed]), since)
        trunk = self._archive.trunk
        if opening.agent is None and trunk.reach == 0 and recorded.find(trunk, SESSION_KEY) is None:
            return _Writer(trunk, since)
        taken = recorded.names(self._archive)
        name = _log_name(opening.thread or opening.session)
        variants = itertools.chain((name,), (f"{name}-{number}" for number in itertools.count(2)))
        return _Writer(self._archive.new_log(next(variant for variant in variants if variant not in taken)), since)

    def _refuse_other_session(self, log: Log, opening: Opening) -> None:
        held = recorded.body(log, SESSION_KEY)
        if held and (held.get("session"), held.get("agent")) != (opening.session, opening.agent):
            raise Refused(
                f"log {log.name} holds session {held.get('session')} and {self._reader.path} is of session "
                f"{opening.session}: leave the log out to let the import find one, or name another"
            )

    # -- agents and the calls that started them

    def _tell_agent(self, caller: _Writer, tie: Tie) -> None:
        """The agent's own log, if it is there already, names its caller."""
        session = self._reader.session or ""
        for name, agent in recorded.holders(self._archive, session):
            if agent == tie.agent:
                caller.called(self._archive.log(name), caller.log, session, tie.call)

    def _tell_caller(self, agent: _Writer, opening: Opening) -> None:
        """The caller's log, if it is there already, knows the call."""
        for name, of in recorded.holders(self._archive, opening.session):
            call = recorded.body(self._archive.log(name), f"cc:agent:{opening.agent}").get("call")
            if call is not None and of != opening.agent:
                agent.called(agent.log, self._archive.log(name), opening.session, call)
                return

    # -- the report

    def report(self, format_: str) -> Imported:
        """Everything that was counted."""
        reader = self._reader
        threads = {thread: writer.counts() for thread, writer in self._writers.items()}
        own = threads.pop(reader.primary or "", {})
        file = str(reader.path)
        return Imported(
            file=file,
            format=format_,
            session=reader.session,
            damaged=reader.damaged,
            copies=reader.copies,
            skipped=reader.skipped,
            pending=reader.pending,
            agents=tuple(
                Imported(file=file, format=format_, session=reader.session, **counts) for counts in threads.values()
            ),
            **own,
        )


class _Writer:
    """One thread into one log. ``bound``: the log was asked for, and takes the thread wherever it has gone itself."""

    def __init__(self, log: Log, since: int, *, bound: bool = False) -> None:
        self.log = log
        self._bound = bound
        self._seq = since  # newest record known: an append that answers none newer found what it was to append
        self._count: dict[str, int] = {}
        self._variant = ""  # what the keys of the turn in hand have behind them
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
            case Witness():
                self._speak_of(step)

    # -- turns

    def _prompt(self, step: Prompt) -> None:
        self._add("prompts" if step.voice in ASKING else "others")
        self._opens(step.key)
        before = self._seq
        self._current = self._attempt(step.key, self._appending(self.log.prompt, step.message), (step.message,))
        self._summary_is_new = step.voice == "summary" and self._current is not None and self._seq > before

    def _reply(self, step: Reply) -> None:
        self._add("replies")
        self._add("calls", len(step.calls))
        self._opens(step.key)
        append = self._appending(self.log.assistant, step.message)
        known = None if self._grew else recorded.newest_of(self.log, step.key)
        if known is None or known.turn is None:
            self._current = self._attempt(step.key, append, (step.message,))
        else:
            try:
                self._current = self._took(append(step.key))
            except Refused as refusal:
                self._current = self._regrown(step, append, known.turn, refusal)
        if self._current is not None and not self._behind:
            self._turn[step.key] = self._current

    def _regrown(self, step: Reply, append: Callable[[str], Turn], known: int, refusal: Refused) -> int | None:
        """A reply recorded, as turn ``known``, with other parts: grown since, shorter than it was, or another one."""
        variant = f"{VARIANT}{len(step.message['parts'])}"
        if recorded.find(self.log, step.key + variant) is not None:
            with contextlib.suppress(Refused):
                turn = self._took(append(step.key + variant))
                self._variant = variant
                return turn
        self._touched = max(self._touched, known)
        old, new = recorded.turn_messages(self.log, known)[0]["parts"], step.message["parts"]
        if new == old[: len(new)]:
            self._behind = True
            self._add("already_there")
            return known
        stands = self.log.stands()
        if old != new[: len(old)] or known != stands.newest:
            return self._differs(step.key, (step.message,), refusal)
        if stands.owed:
            self.log.quiesce(at_ms=self._at_ms)
            self._add("new_records")
        self.log.rewind(known, key=f"{step.key}~{variant[1:]}", at_ms=self._at_ms)
        self._add("new_records")
        self._variant = variant
        return self._attempt(step.key + variant, append, (step.message,))

    def _extend(self, key: str, append: Callable[[str], Turn], said: tuple[Message, ...]) -> None:
        """Results or steering: for the turn in hand, which must be the log's newest, or they would join another."""
        key += self._variant
        if not self._grew and recorded.find(self.log, key) is None and self.log.stands().newest != self._current:
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
        if self._behind or (key.startswith(SAID) and known.kind in ("prompt", "steering")):
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
        self._variant, self._behind, self._turn = "", False, {}
        if self._grew or recorded.find(self.log, key) is not None or recorded.find(self.log, REFUSED + key) is not None:
            return
        if not self._bound and 0 < self._touched < self.log.stands().newest:
            raise _Elsewhere(self._thread)
        self._grew = True

    # -- edits

    def _rewind(self, step: Rewind) -> None:
        self._add("rewinds")
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
    """Messages that were not recorded, as an error record keeps them: whole when short, always by length and hash."""
    try:
        text = messages.dumps(list(said))
    except Refused as refusal:
        return {"sha256": hashlib.sha256(repr(said).encode("utf-8", "replace")).hexdigest(), "unsaid": str(refusal)}
    data = text.encode()
    body: Json = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return body | ({"messages": list(said)} if len(data) <= KEPT_BYTES else {"text": text[: KEPT_BYTES // 4]})


def _log_name(name: str) -> str:
    """A session or agent id as a log's name: printable, short enough, and no bare number."""
    plain = (
        "".join(letter if letter.isprintable() and letter.isascii() else "_" for letter in name).strip() or "session"
    )
    return f"log-{plain[:80]}" if plain.isdecimal() else plain[:80]
