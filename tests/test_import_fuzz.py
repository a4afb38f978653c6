"""Sessions nobody planned: any order of lines, any cut, any broken byte. Nothing crashes, no law breaks, nothing doubles.

Method: Hypothesis draws what happened in a session, in no sensible order; the file is cut twice and imported three
times. After that the archive verifies, importing again adds nothing, and every provider's array is lawful.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.claude_code.session import Session, call, encoded, result, text, thinking
from hypothesis import given, settings
from hypothesis import strategies as st
from test_import_corpus import check_anthropic, check_chat, check_responses

from exarch_sql import Archive
from exarch_sql.importers import import_file
from exarch_sql.importers.lines import parse

if TYPE_CHECKING:
    from collections.abc import Callable

Act = tuple[str, int]

HEAD = b'{"type":"system","sessionId":"5e55-0001","uuid":"u"}\n'  # so that any rest is known for what it is

ACTS = (
    *("user", "reply", "call", "call", "more", "result", "result", "result", "late", "meta", "notice", "shell"),
    *("interrupt", "synthetic", "enqueue", "remove", "dequeue", "popAll", "said", "compaction", "command", "local"),
    *("system", "hook", "copy", "back", "side", "damage", "settings"),
)


class Player:
    """Acts out what was drawn. ``owed`` are calls whose result no line has brought yet."""

    def __init__(self) -> None:
        self.session = Session()
        self.owed: list[str] = []
        self.responses = 0

    def play(self, act: Act) -> None:
        """Write the lines of one act."""
        name, number = act
        if hasattr(self, name):
            getattr(self, name)(number)
        else:
            self.line(name, number)

    def user(self, number: int) -> None:
        """A prompt, or steering."""
        self.session.user(f"ask {number % 3}")

    def reply(self, number: int) -> None:
        """An answer without calls."""
        self.responses += 1
        self.session.reply(f"m{self.responses}", thinking("hm"), text(f"answer {number}"))

    def call(self, number: int) -> None:
        """A response with one to three calls."""
        self.responses += 1
        calls = [f"c{self.responses}-{n}" for n in range(number % 3 + 1)]
        self.owed += calls
        self.session.reply(f"m{self.responses}", *[call(id_) for id_ in calls])

    def more(self, number: int) -> None:
        """Another block of the newest response, or of the one before."""
        self.session.reply(f"m{max(1, self.responses - number % 2)}", text("and"))

    def result(self, number: int) -> None:
        """A result, of any call that waits."""
        if self.owed:
            self.session.results(result(self.owed.pop(number % len(self.owed)), f"ok {number}"))

    def late(self, number: int) -> None:
        """A result nobody waits for, or a second one."""
        self.session.results(result(f"c{number % (self.responses + 1)}-0", "again"))

    def back(self, number: int) -> None:
        """The user goes back to some line."""
        uuids = [f"u{n:04}" for n in range(1, len(self.session.lines) + 1)]
        if uuids:
            self.session.user("the other way", parent=uuids[number % len(uuids)])

    def copy(self, number: int) -> None:
        """Lines stand in the file twice."""
        if self.session.lines:
            start = number % len(self.session.lines)
            self.session.lines += self.session.lines[start : start + 3]

    def damage(self, number: int) -> None:
        """A line that is broken in some way."""
        broken = (b"{", b"null", b'{"type":"user"}{"type":', b"\xff", b"// note", b"", b'{"a":"\\ud83d"}', b"}" * 9)
        self.session.raw(broken[number % len(broken)])

    def line(self, name: str, number: int) -> None:
        """Everything else: one line, of one kind each."""
        session = self.session
        lines: dict[str, Callable[[], object]] = {
            "meta": lambda: session.user("A skill's body.", isMeta=True),
            "notice": lambda: session.user(f"<task-notification>{number}</task-notification>"),
            "shell": lambda: session.user("<bash-input>ls</bash-input>"),
            "interrupt": session.interrupt,
            "synthetic": lambda: session.synthetic(error=bool(number % 2)),
            "enqueue": lambda: session.queue("enqueue", f"ask {number % 3}"),
            "remove": lambda: session.queue("remove"),
            "dequeue": lambda: session.queue("dequeue"),
            "popAll": lambda: session.queue("popAll"),
            "said": lambda: session.line("attachment", attachment={"type": "queued_command", "prompt": "ask 1"}),
            "compaction": session.compaction,
            "command": lambda: session.command("review"),
            "local": lambda: session.command("model", "Set."),
            "system": lambda: session.line("system", subtype="turn_duration", durationMs=number),
            "hook": lambda: session.line("progress", data={"type": "hook_progress"}),
            "side": lambda: session.user("side work", isSidechain=True, agentId=f"a{number % 2}"),
            "settings": lambda: session.envelope.update(gitBranch=f"b{number % 2}"),
        }
        lines[name]()


def sessions() -> st.SearchStrategy[Session]:
    """A session of up to thirty acts."""

    def played(acts: list[Act]) -> Session:
        player = Player()
        for act in acts:
            player.play(act)
        return player.session

    return st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 9)), min_size=1, max_size=30).map(played)


@settings(max_examples=40)
@given(sessions(), st.floats(0, 1), st.floats(0, 1))
def test_any_session_cut_anywhere_imports_lawfully_and_once(session: Session, first: float, second: float) -> None:
    """Three copies of one growing file."""
    data = session.bytes()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "s.jsonl")
        with Archive.open(Path(place, "a.exarch"), durability="normal") as archive:
            for part in sorted((first, second)):
                path.write_bytes(HEAD + data[: int(len(data) * part)])
                import_file(archive, path)
            path.write_bytes(HEAD + data)
            import_file(archive, path)
            head = archive.head()
            again = import_file(archive, path)
            assert again.new_records == 0
            assert archive.head() == head
            check(archive)


@settings(max_examples=40)
@given(sessions(), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=5))
def test_any_broken_bytes_are_survived(session: Session, breaks: list[tuple[float, int]]) -> None:
    """Bytes overwritten anywhere: whatever the lines become, the archive stays lawful."""
    data = bytearray(session.bytes())
    for where, byte in breaks:
        data[int((len(data) - 1) * where)] = byte
    import_twice(HEAD + data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "user", "tool_result", "c1-0", "\ud83d", "u0001"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "id", "text", "tool_use_id", "input", "content"]), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=40)
@given(sessions(), st.lists(st.tuples(st.integers(0, 999), st.integers(0, 99), JSON), min_size=1, max_size=4))
def test_any_field_of_any_line_may_be_of_any_shape(session: Session, changes: list[tuple[int, int, object]]) -> None:
    """Fields are replaced, those of the message and of its blocks too: what comes of it is lawful, and never a crash."""
    rows = [line for line in session.lines if line.startswith(b"{") and line.endswith(b"}") and b"\xff" not in line]
    objects = [parse(line).objects[0] for line in rows if parse(line).objects]
    for where, which, value in changes if objects else ():
        line = objects[where % len(objects)]
        message = line.get("message")
        holders = [line, *([message] if isinstance(message, dict) else [])]
        content = message.get("content") if isinstance(message, dict) else None
        holders += [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        holder = holders[which % len(holders)]
        if holder:
            holder[sorted(holder)[which % len(holder)]] = value
    import_twice(HEAD + b"".join(encoded(line) + b"\n" for line in objects))


def import_twice(data: bytes) -> None:
    """A file of these bytes imports lawfully, and a second time adds nothing."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "s.jsonl")
        path.write_bytes(data)
        with Archive.open(Path(place, "a.exarch"), durability="normal") as archive:
            import_file(archive, path)
            head = archive.head()
            assert import_file(archive, path).new_records == 0
            assert archive.head() == head
            check(archive)


def check(archive: Archive) -> None:
    """The file verifies, and every log renders for every provider, but for calls still owed at the end."""
    report = archive.verify()
    assert report.ok, report.first
    for info in archive.logs():
        log = archive.log(info.name)
        log.quiesce()
        check_anthropic(log.render("anthropic"))
        check_chat(log.render("openai-chat"))
        check_responses(log.render("openai-responses"))
