"""A file imported as it grows gives what it gives imported whole, and not a word that a person typed is lost on the way.

Method: Hypothesis draws a session in which calls are left open, results come late or never, words are typed at any
moment, the queue is used in every way and ids are redacted. It is imported whole, and again in two to four growing
pieces cut between any two lines; both archives must then hold the same. Every typed text is looked for by itself.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.claude_code.session import Session, result, text
from hypothesis import given, settings
from hypothesis import strategies as st
from test_import_archive import records, without_spans
from test_import_fuzz import HEAD, Player

from exarch_sql import Archive
from exarch_sql.importers import import_file, recorded

if TYPE_CHECKING:
    from exarch_sql import Log

TURNS = ("prompt", "assistant", "tool_results", "steering", "evicted", "rewound")
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}

ACTS = (
    *("typed", "typed", "typed", "beside", "reply", "call", "call", "call", "more", "result", "result", "result"),
    *("late", "killed", "meta", "notice", "shelled", "interrupt", "synthetic", "queued", "queued", "attached"),
    *("popped", "dequeued", "path", "compaction", "asked", "ran", "shown", "system", "hook", "copy", "back", "side"),
    *("redacted", "nameless", "settings", "split", "split", "split"),
)


class Typist(Player):
    """A player whose every typed text is one of its own. ``said`` are those that the model is to be shown."""

    def __init__(self) -> None:
        super().__init__()
        self.typed_texts: list[str] = []
        self.said: list[str] = []

    def words(self, *, said: bool = True) -> str:
        """A text nobody typed before."""
        self.typed_texts.append(f"<{len(self.typed_texts)}>")
        self.said += self.typed_texts[-1:] if said else []
        return f"words {self.typed_texts[-1]}"

    def typed(self, number: int) -> None:
        """A line of a person, now and then with an image."""
        words = self.words()
        self.session.user([text(words), IMAGE] if number == 0 else words)

    def beside(self, number: int) -> None:
        """Text on the line of a result."""
        if self.owed:
            found = result(self.owed.pop(number % len(self.owed)))
            self.session.user([found, text(self.words())])

    def killed(self, number: int) -> None:
        """A response whose calls never get a result."""
        self.call(number)
        self.owed.clear()

    def copy(self, number: int) -> None:
        """Lines that have a uuid stand in the file twice."""
        lines = [line for line in self.session.lines if b'"uuid"' in line]
        self.session.lines += lines[number:][:3]

    def split(self, number: int) -> None:
        """A response with something else between its lines."""
        between = ("notice", "meta", "queued", "attached", "typed", "shown", "shelled", "path", "result", "system")
        (self.call if number % 3 == 1 else self.reply)(number)
        self.play((between[number], number))
        if number % 4:
            self.play((between[(number * 7 + 3) % 10], number))
        self.more(0)

    def back(self, number: int) -> None:
        """The user goes back to some line."""
        uuids = [f"u{n:04}" for n in range(1, len(self.session.lines) + 1)]
        self.session.user(self.words(), parent=uuids[number % len(uuids)] if uuids else None)

    def queued(self, number: int) -> None:
        """Words leave the queue for the work; some have an attachment or a line of their own, before or after."""
        words, session = self.words(), self.session
        attached: Any = words if number % 2 else [text(words), IMAGE]
        session.queue("enqueue", words)
        if number in (1, 2):
            session.line("attachment", attachment={"type": "queued_command", "prompt": attached})
        session.queue("remove", words if number % 3 else None)
        if number in (3, 4):
            session.line("attachment", attachment={"type": "queued_command", "prompt": attached})
        elif number in (5, 6):
            session.user(words if number == 5 else [text(words), IMAGE])

    def attached(self, number: int) -> None:
        """An attachment alone."""
        words = self.words()
        self.session.line("attachment", attachment={"type": "queued_command", "prompt": words, "n": number})

    def popped(self, number: int) -> None:
        """Words that were given back to the editor; long ones too."""
        self.session.queue("enqueue", "x" * (number * 2000) + self.words(said=False))
        self.session.queue("popAll")

    def dequeued(self, _number: int) -> None:
        """Words that waited for their own turn."""
        words = self.words()
        self.session.queue("enqueue", words)
        self.session.queue("dequeue")
        self.session.user(words)

    def path(self, _number: int) -> None:
        """Queued words that begin as a command does, and are none."""
        words = f"/etc/{self.words()}"
        self.session.queue("enqueue", words)
        self.session.queue("remove", words)

    def shelled(self, _number: int) -> None:
        """The user's own shell."""
        self.session.user(f"<bash-input>{self.words()}</bash-input>")
        self.session.user("<bash-stdout>out</bash-stdout>")

    def asked(self, _number: int) -> None:
        """A command, of which nothing more is heard."""
        self.session.command(f"review {self.words(said=False)}")

    def ran(self, number: int) -> None:
        """A command that ran beside the session; with long arguments too."""
        self.session.command("model " + "x" * (number * 2000) + self.words(said=False), "Set.")

    def shown(self, _number: int) -> None:
        """A command whose body the model was given."""
        self.session.command(f"review {self.words()}")
        self.session.line("system", subtype="turn_duration")
        self.session.user("Review everything.", isMeta=True)

    def redacted(self, number: int) -> None:
        """A line whose ids were made equal to others'."""
        uuid = self.session.user(self.words())
        self.session.lines[-1] = self.session.lines[-1].replace(f'"{uuid}"'.encode(), b'"REDACTED"')
        if number % 2:
            self.session.last = "REDACTED"

    def nameless(self, _number: int) -> None:
        """A line without a uuid."""
        self.session.bare("user", sessionId=self.session.session, message={"content": self.words()})

    def side(self, number: int) -> None:
        """A line of an agent in the caller's file."""
        before = self.session.last
        self.session.user(self.words(), isSidechain=True, agentId=f"a{number % 2}")
        self.session.last = before


def played() -> st.SearchStrategy[Typist]:
    """A session of up to thirty acts."""

    def play(acts: list[tuple[str, int]]) -> Typist:
        typist = Typist()
        for act in acts:
            typist.play(act)
        return typist

    return st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 9)), min_size=2, max_size=30).map(play)


@st.composite
def growing(draw: st.DrawFn) -> tuple[Typist, list[int]]:
    """A session and the numbers of lines at which it is cut, the last being all of them."""
    typist = draw(played())
    count = len(typist.session.lines)
    cuts = draw(st.lists(st.integers(1, max(1, count)), min_size=1, max_size=3, unique=True))
    return typist, [*sorted(cuts), count]


def data_of(session: Session, upto: int | None = None) -> bytes:
    """The file, which any beginning of is known for what it is."""
    return HEAD + session.bytes(upto)


def imported(place: Path, *pieces: bytes) -> Archive:
    """An archive into which a file was imported at each of these stages."""
    path = place / "s.jsonl"
    archive = Archive.open(place / f"{len(list(place.iterdir()))}.exarch", durability="normal")
    for piece in pieces:
        path.write_bytes(piece)
        import_file(archive, path)
    return archive


def inside_a_response(session: Session, cuts: list[int]) -> bool:
    """Whether a cut has lines of one response on both sides."""

    def responses(lines: list[bytes]) -> set[str]:
        found = (json.loads(line) for line in lines)
        return {line["message"]["id"] for line in found if line["type"] == "assistant"}

    return any(responses(session.lines[:cut]) & responses(session.lines[cut:]) for cut in cuts)


def made(log: Log) -> list[tuple[Any, ...]]:
    """All records that make or move turns: kind, turn, origin, key and body."""
    return [row for row in records(log) if row[0] in TURNS]


def standing(log: Log) -> list[Any]:
    """The messages of every turn that is not withdrawn, whether it is in the context or left it."""
    rows = [row for row in log.index() if row.kind != "residue" and row.location.state != "withdrawn"]
    return [recorded.turn_messages(log, row.from_) for row in rows]


def whole_and_grown_agree(typist: Typist, cuts: list[int]) -> None:
    """The test below; also of any session one wants to try."""
    with tempfile.TemporaryDirectory() as folder:
        pieces = [data_of(typist.session, cut) for cut in cuts]
        with imported(Path(folder), pieces[-1]) as whole, imported(Path(folder), *pieces) as grown:
            remedied = inside_a_response(typist.session, cuts)
            assert sorted(info.name for info in grown.logs()) == sorted(info.name for info in whole.logs())
            for info in whole.logs():
                one, other = whole.log(info.name), grown.log(info.name)
                if not remedied:
                    assert made(other) == made(one)
                assert [without_spans(message) for message in other.render()] == [
                    without_spans(message) for message in one.render()
                ]
                assert standing(other) == standing(one)
            head = grown.head()
            assert import_file(grown, Path(folder, "s.jsonl")).new_records == 0
            assert grown.head() == head
            report = grown.verify()
            assert report.ok, report.first


@settings(max_examples=60)
@given(growing())
def test_a_session_in_growing_pieces_is_the_session_whole(session: tuple[Typist, list[int]]) -> None:
    """Same contexts, same standing turns, same texts; and where no response was cut, the same records in the same order.

    An import that answered open calls at the end of a file refused their results, and the words after them, for ever.
    """
    whole_and_grown_agree(*session)


def everything(archive: Archive) -> tuple[str, str]:
    """The text of all turns of all logs, and that of all records."""
    turns, bodies = [], []
    for info in archive.logs():
        for kind, _, _, _, body in records(archive.log(info.name)):
            bodies.append(body)
            turns += [body] if kind in ("prompt", "steering") else []
    return "\n".join(turns), "\n".join(bodies)


@settings(max_examples=60)
@given(growing())
def test_every_typed_text_is_in_a_record_at_every_stage(session: tuple[Typist, list[int]]) -> None:
    """In a turn, or, while the model was not shown it as far as the file tells, in a witness record."""
    typist, cuts = session
    with tempfile.TemporaryDirectory() as folder:
        for cut in cuts:
            data = data_of(typist.session, cut)
            with imported(Path(folder), data) as archive:
                _, bodies = everything(archive)
                assert [words for words in typist.typed_texts if words.encode() in data and words not in bodies] == []


@settings(max_examples=60)
@given(growing())
def test_every_text_the_model_was_shown_is_in_a_turn_once_work_went_on(session: tuple[Typist, list[int]]) -> None:
    """After an interrupt nothing is waited for: all that was said stands in turns, each text as often as it was said."""
    typist, cuts = session
    typist.session.interrupt()
    with tempfile.TemporaryDirectory() as folder:
        pieces = [data_of(typist.session, cut) for cut in cuts]
        with imported(Path(folder), *pieces, data_of(typist.session)) as archive:
            turns, _ = everything(archive)
            assert [words for words in typist.said if words not in turns] == []
