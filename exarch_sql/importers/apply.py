"""Steps into logs: which log a thread goes to, in what pieces it is written, and the report.

A session goes to the log that holds it already, else to an empty trunk, else to a log of its own named by its session
id; an agent to ``agent-<id>``. A session that goes on from an earlier turn than the log's newest (it was resumed
twice, or the log went its own way) is another session: it goes to the next log of its name. ``writer`` says how each
step is recorded once.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from exarch_sql.errors import Refused
from exarch_sql.importers import recorded
from exarch_sql.importers.claude_code import ClaudeCode
from exarch_sql.importers.detect import EMPTY, detect, refuse_others
from exarch_sql.importers.recorded import SESSION_KEY
from exarch_sql.importers.steps import Opening, Prompt, Reply, Step, Tie
from exarch_sql.importers.writer import Elsewhere, Writer

if TYPE_CHECKING:
    from exarch_sql.answers import Json
    from exarch_sql.archive import Archive
    from exarch_sql.log import Log

CHUNK_BYTES = 4 * 1024 * 1024  # of the file, to one transaction
CHUNK_STEPS = 2000

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
        except Elsewhere as elsewhere:
            passed[elsewhere.thread] += 1
            continue
        return reading.report(format_)


class _Import:
    """One reading of one file. ``passed`` counts, by thread, the logs found to have gone another way."""

    def __init__(self, archive: Archive, reader: ClaudeCode, given: Log | None, passed: Counter[str]) -> None:
        self._archive, self._reader, self._given, self._passed = archive, reader, given, passed
        self._writers: dict[str, Writer] = {}

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

    def _writer_for(self, opening: Opening) -> Writer:
        """A writer to the log that holds this thread, or to one that shall."""
        since = self._archive.head().seq
        if self._given is not None and opening.thread == self._reader.primary:
            self._refuse_other_session(self._given, opening)
            return Writer(self._given, since, bound=True)
        holding = [name for name, agent in recorded.holders(self._archive, opening.session) if agent == opening.agent]
        passed = self._passed[opening.thread]
        if passed < len(holding):
            return Writer(self._archive.log(holding[passed]), since)
        trunk = self._archive.trunk
        if opening.agent is None and trunk.reach == 0 and recorded.find(trunk, SESSION_KEY) is None:
            return Writer(trunk, since)
        taken = recorded.names(self._archive)
        name = _log_name(opening.thread or opening.session)
        variants = itertools.chain((name,), (f"{name}-{number}" for number in itertools.count(2)))
        return Writer(self._archive.new_log(next(variant for variant in variants if variant not in taken)), since)

    def _refuse_other_session(self, log: Log, opening: Opening) -> None:
        held = recorded.body(log, SESSION_KEY)
        if held and (held.get("session"), held.get("agent")) != (opening.session, opening.agent):
            raise Refused(
                f"log {log.name} holds session {held.get('session')} and {self._reader.path} is of session "
                f"{opening.session}: leave the log out to let the import find one, or name another"
            )

    # -- agents and the calls that started them

    def _tell_agent(self, caller: Writer, tie: Tie) -> None:
        """The agent's own log, if it is there already, names its caller."""
        session = self._reader.session or ""
        for name, agent in recorded.holders(self._archive, session):
            if agent == tie.agent:
                caller.called(self._archive.log(name), caller.log, session, tie.call)

    def _tell_caller(self, agent: Writer, opening: Opening) -> None:
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


def _log_name(name: str) -> str:
    """A session or agent id as a log's name: printable, short enough, and no bare number."""
    plain = (
        "".join(letter if letter.isprintable() and letter.isascii() else "_" for letter in name).strip() or "session"
    )
    return f"log-{plain[:80]}" if plain.isdecimal() else plain[:80]
