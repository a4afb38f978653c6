"""An import writes each step once: again adds nothing, grown adds what is new, and nothing recorded is contradicted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from corpora.claude_code.session import Session, call, result, text, thinking
from test_import_reading import eventful

from exarch_sql import Archive, Refused
from exarch_sql.importers import Imported, apply, import_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from exarch_sql import Log

RECORDS_SQL = "SELECT kind, turn, origin, key, body FROM records WHERE log = ? AND kind <> 'opened' ORDER BY seq"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """An empty archive, verified after the test: no import may leave it unlawful."""
    with Archive.open(tmp_path / "a.exarch", durability="normal") as made:
        yield made
        report = made.verify()
        assert report.ok, report.first


def records(log: Log) -> list[tuple[Any, ...]]:
    """All that a log's records say, without their times."""
    with log._store.held() as db:
        return list(db.execute(RECORDS_SQL, (log.number,)))


def of_kind(log: Log, *kinds: str) -> list[Any]:
    """The bodies of a log's records of these kinds."""
    return [json.loads(body) for kind, _, _, _, body in records(log) if kind in kinds]


def alone(session: Session, tmp_path: Path, upto: int | None = None) -> list[tuple[Any, ...]]:
    """The records of a session imported into an archive of its own."""
    path = session.write(tmp_path / "alone.jsonl", upto)
    with Archive.open(tmp_path / f"alone-{upto}.exarch", durability="normal") as other:
        import_file(other, path)
        return records(other.trunk)


def contexts(log: Log) -> list[Any]:
    """What the log renders, residues by their text."""
    return log.render()


class TestOnce:
    """The same file again."""

    def test_twice_adds_nothing(self, archive: Archive, tmp_path: Path) -> None:
        """Every step has a key that does not depend on when it was read."""
        path = eventful().write(tmp_path / "s.jsonl")
        first = import_file(archive, path)
        head = archive.head()
        second = import_file(archive, path)
        assert archive.head() == head
        assert first.already_there == 0
        assert (second.new_records, second.already_there) == (0, first.new_records)

    def test_the_report_counts_the_session(self, archive: Archive, tmp_path: Path) -> None:
        """The counts are of what the file holds, new or not."""
        path = eventful().write(tmp_path / "s.jsonl")
        import_file(archive, path)
        report = import_file(archive, path)
        assert isinstance(report, Imported)
        counted = (report.prompts, report.replies, report.calls, report.results, report.compactions, report.usage)
        assert counted == (4, 7, 6, 6, 1, 7)
        assert report.to_dict()["already-there"] == report.already_there
        assert (report.log, report.session) == ("trunk", "5e55-0001")

    def test_usage_names_the_turn_it_is_of(self, archive: Archive, tmp_path: Path) -> None:
        """An auditor joins cost to turns without parsing keys."""
        import_file(archive, eventful().write(tmp_path / "s.jsonl"))
        replies = [turn for kind, turn, *_ in records(archive.trunk) if kind == "assistant"]
        assert [body["turn"] for body in of_kind(archive.trunk, "usage")] == replies

    def test_everything_that_makes_a_turn_is_an_import(self, archive: Archive, tmp_path: Path) -> None:
        """It was recorded elsewhere first."""
        import_file(archive, eventful().write(tmp_path / "s.jsonl"))
        assert {origin for kind, _, origin, _, _ in records(archive.trunk) if origin} == {"import"}
        assert all(key for _, _, _, key, _ in records(archive.trunk))

    def test_a_step_interrupted_anywhere_is_taken_up_again(
        self, archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A crash in the middle of an import costs the chunk it was in, and the next import makes up for it."""
        session = eventful()
        path = session.write(tmp_path / "s.jsonl")
        monkeypatch.setattr(apply, "CHUNK_STEPS", 3)
        for crash in range(5, 45, 4):
            steps = 0
            real = apply._Import._step

            def failing(self: Any, step: Any, real: Any = real, crash: int = crash) -> None:
                nonlocal steps
                steps += 1
                if steps == crash:
                    raise OSError("the disk went away")
                real(self, step)

            with monkeypatch.context() as patch:
                patch.setattr(apply._Import, "_step", failing)
                with pytest.raises(OSError, match="went away"):
                    import_file(archive, path)
        import_file(archive, path)
        assert records(archive.trunk) == alone(session, tmp_path)


class TestGrowth:
    """A file that has grown."""

    def test_grown_line_by_line_equals_alone(self, archive: Archive, tmp_path: Path) -> None:
        """Imported after every line, the context is that of the whole file; the records too, but for withdrawn starts."""
        session = eventful()
        for upto in range(1, len(session.lines) + 1):
            import_file(archive, session.write(tmp_path / "s.jsonl", upto))
        with Archive.open(tmp_path / "other.exarch", durability="normal") as other:
            import_file(other, session.write(tmp_path / "s.jsonl"))
            shown = [without_spans(message) for message in other.trunk.render()]
            assert [without_spans(message) for message in archive.trunk.render()] == shown

    def test_from_any_whole_response_on_the_records_are_the_same(self, tmp_path: Path) -> None:
        """Where no response was cut, growing leaves no trace in what makes turns: same kinds, turns, keys and bodies.

        Records for eyes are the same too, but for the note of words that had to wait; their order may differ.
        """
        session = eventful()
        whole = alone(session, tmp_path)
        same = 0
        for upto in range(1, len(session.lines)):
            with Archive.open(tmp_path / f"grown-{upto}.exarch", durability="normal") as grown:
                import_file(grown, session.write(tmp_path / "s.jsonl", upto))
                report = import_file(grown, session.write(tmp_path / "s.jsonl"))
                found = [record for record in records(grown.trunk) if not str(record[3]).startswith("cc:waiting:")]
                assert report.conflicts == report.refused == 0
            if not any(kind == "rewound" for kind, *_ in found):
                turns = [[record for record in one if record[2]] for one in (found, whole)]
                assert turns[0] == turns[1], upto
                assert sorted(found, key=str) == sorted(whole, key=str), upto
                same += 1
        assert same >= len(session.lines) - 5

    def test_a_response_cut_at_the_end_is_withdrawn_and_recorded_whole(self, archive: Archive, tmp_path: Path) -> None:
        """Its first part was recorded as all there was; the turn that stands is the whole one, and both stay readable."""
        session = Session()
        session.user("fix the parser")
        session.reply("m1", thinking("hm"), call("c1"), call("c2"))
        session.results(result("c2"), result("c1"))
        import_file(archive, session.write(tmp_path / "s.jsonl", 3))
        assert archive.trunk.owed == ("c1",)
        report = import_file(archive, session.write(tmp_path / "s.jsonl"))
        assert report.conflicts == 0
        rendered = archive.trunk.render()
        assert [part["id"] for part in rendered[1]["parts"] if part["type"] == "tool_call"] == ["c1", "c2"]
        assert len(rendered) == 4
        assert [row.location.state for row in archive.trunk.index()] == ["resident", "withdrawn", "resident"]
        head = archive.head()
        assert import_file(archive, session.write(tmp_path / "s.jsonl")).new_records == 0
        assert archive.head() == head

    def test_words_typed_while_a_call_is_open_are_kept_beside_until_the_file_places_them(
        self, archive: Archive, tmp_path: Path
    ) -> None:
        """The call stays owed, the words are in a note; when its result comes, both go where the whole file has them."""
        session = Session()
        session.user("fix the parser")
        session.reply("m1", call("c1"))
        session.user("wait, look at the lexer")
        report = import_file(archive, session.write(tmp_path / "s.jsonl"))
        assert (report.pending, archive.trunk.owed) == (1, ("c1",))
        assert [body["words"] for body in of_kind(archive.trunk, "note")] == ["wait, look at the lexer"]
        session.results(result("c1", "the real result"))
        session.user("and also at the docs")
        session.reply("m2", text("done"))
        report = import_file(archive, session.write(tmp_path / "s.jsonl"))
        assert (report.pending, report.absent, report.refused, report.conflicts) == (0, 0, 0, 0)
        turns = [record for record in records(archive.trunk) if record[2]]
        assert turns == [record for record in alone(session, tmp_path) if record[2]]
        said = json.dumps(archive.trunk.render())
        places = [said.index(words) for words in ("the real result", "look at the lexer", "at the docs", "done")]
        assert places == sorted(places)

    def test_a_notice_behind_a_response_that_goes_on_stands_behind_the_whole_of_it(
        self, archive: Archive, tmp_path: Path
    ) -> None:
        """It was recorded as a turn of its own; withdrawn with the reply it follows, it is recorded again like it.

        Twice, for a response may grow at every import; and an import of the same again finds the newest of each.
        """
        session = Session()
        session.user("fix the parser")
        session.reply("m1", text("one"))
        session.user("<task-notification>noted</task-notification>")
        for block in (text("two"), call("c1"), call("c2")):
            import_file(archive, session.write(tmp_path / "s.jsonl"))
            session.reply("m1", block)
        session.results(result("c2"), result("c1"))
        session.reply("m2", text("done"))
        path = session.write(tmp_path / "s.jsonl")
        report = import_file(archive, path)
        assert (report.conflicts, report.refused) == (0, 0)
        with Archive.open(tmp_path / "other.exarch", durability="normal") as other:
            import_file(other, path)
            assert archive.trunk.render() == other.trunk.render()
        head = archive.head()
        assert import_file(archive, path).new_records == 0
        assert archive.head() == head

    def test_a_response_that_grew_under_a_note_stays_as_it_was_recorded(self, archive: Archive, tmp_path: Path) -> None:
        """What a model let go of is not taken back: the rest is an error record."""
        session = Session()
        session.user("fix the parser")
        session.reply("m1", text("one"))
        import_file(archive, session.write(tmp_path / "s.jsonl"))
        archive.trunk.evict(1, 2, "parser fixed")
        session.reply("m1", text("two"))
        report = import_file(archive, session.write(tmp_path / "s.jsonl"))
        assert report.conflicts == 1
        assert "two" in json.dumps(of_kind(archive.trunk, "error"))
        assert [row.label for row in archive.trunk.survey().rows] == ["parser fixed"]

    def test_a_line_that_says_something_else_in_a_later_copy_is_an_error_record(
        self, archive: Archive, tmp_path: Path
    ) -> None:
        """It was taken for the same because of its uuid, and its text for nothing; a long one is kept whole too."""
        session = Session()
        session.user("fix the parser")
        session.reply("m1", text("done"))
        import_file(archive, session.write(tmp_path / "s.jsonl"))
        session.lines[0] = session.lines[0].replace(b"fix the parser", b"fix the lexer " + b"x" * 20_000 + b" please")
        path = session.write(tmp_path / "s.jsonl")
        report = import_file(archive, path)
        assert report.conflicts == 1
        assert "x please" in json.dumps(of_kind(archive.trunk, "error"))
        head = archive.head()
        import_file(archive, path)
        assert archive.head() == head

    @pytest.mark.parametrize("upto", range(1, 37))
    def test_an_older_copy_adds_nothing(self, archive: Archive, tmp_path: Path, upto: int) -> None:
        """Snapshots come in any order; a shorter one knows nothing new."""
        session = eventful()
        import_file(archive, session.write(tmp_path / "s.jsonl"))
        head = archive.head()
        report = import_file(archive, session.write(tmp_path / "s.jsonl", upto))
        assert (report.new_records, report.conflicts, report.refused) == (0, 0, 0)
        assert archive.head() == head

    def test_a_result_that_comes_after_its_placeholder_is_an_error_record(
        self, archive: Archive, tmp_path: Path
    ) -> None:
        """What was recorded stays; what the file says now is kept beside it, once."""
        session = Session()
        session.user("fix the parser")
        session.reply("m1", call("c1"))
        session.user("never mind")
        session.reply("m2", text("fine"))
        import_file(archive, session.write(tmp_path / "s.jsonl"))
        session.results(result("c1", "late but here"))
        path = session.write(tmp_path / "s.jsonl")
        report = import_file(archive, path)
        assert (report.conflicts, report.refused, report.absent) == (0, 0, 1)
        assert "late but here" in json.dumps(of_kind(archive.trunk, "error"))
        assert "late but here" not in json.dumps(archive.trunk.render())
        assert import_file(archive, path).new_records == 0

    def test_words_that_a_longer_file_places_otherwise_are_not_said_twice(
        self, archive: Archive, tmp_path: Path
    ) -> None:
        """A prompt turns out to have been steering, once a late result is there: it stays where it was recorded.

        Found by random sessions: the steering was refused at first, and joined the newest turn on the next import.
        """
        session = Session()
        session.reply("m1", call("c1"))
        session.user("only the red ones")
        session.reply("m2", text("and"))
        import_file(archive, session.write(tmp_path / "s.jsonl"))
        session.results(result("c1"))
        session.compaction()
        path = session.write(tmp_path / "s.jsonl")
        import_file(archive, path)
        head = archive.head()
        import_file(archive, path)
        assert archive.head() == head
        said = [body for kind, _, _, _, body in records(archive.trunk) if kind in ("prompt", "steering")]
        assert sum("only the red ones" in body for body in said) == 1

    def test_a_line_that_was_cut_is_read_when_it_is_whole(self, archive: Archive, tmp_path: Path) -> None:
        """The part of a line that was there first leaves no error behind."""
        session = eventful()
        data = session.bytes()
        path = tmp_path / "s.jsonl"
        path.write_bytes(data[: len(session.bytes(12)) - 40])
        report = import_file(archive, path)
        assert (report.damaged, report.pending >= 1) == (0, True)
        path.write_bytes(data)
        import_file(archive, path)
        assert records(archive.trunk) == alone(session, tmp_path)


def without_spans(message: dict[str, Any]) -> str:
    """A message's JSON; a residue's without the ids, which withdrawn turns shift."""
    said = json.dumps(message)
    return "a residue" if "have left your context" in said or "has left your context" in said else said


class TestCompaction:
    """The summary is recorded, then everything before it leaves by one forced eviction."""

    def test_what_was_before_the_summary_leaves(self, archive: Archive, tmp_path: Path) -> None:
        """One residue, then the summary, then the work that went on."""
        session = Session()
        session.user("fix the parser")
        session.reply("m1", call("c1"))
        session.results(result("c1"))
        session.compaction("summary so far")
        session.reply("m2", text("on"))
        import_file(archive, session.write(tmp_path / "s.jsonl"))
        rows = archive.trunk.survey().rows
        assert [(row.from_, row.to, row.kind) for row in rows] == [
            (1, 2, "residue"),
            (3, 3, "import"),
            (4, 4, "import"),
        ]
        (evicted,) = of_kind(archive.trunk, "evicted")
        assert (evicted["by"], evicted["note"]) == ("harness", None)

    def test_a_second_compaction_covers_the_first(self, archive: Archive, tmp_path: Path) -> None:
        """A forced eviction leaves exactly one residue."""
        session = Session()
        session.user("fix the parser")
        for number in (1, 2, 3):
            session.reply(f"m{number}", text("on"))
            session.compaction(f"summary {number}")
        import_file(archive, session.write(tmp_path / "s.jsonl"))
        rows = archive.trunk.survey().rows
        assert [(row.from_, row.to, row.kind) for row in rows] == [(1, 6, "residue"), (7, 7, "import")]

    def test_a_summary_with_nothing_before_it_evicts_nothing(self, archive: Archive, tmp_path: Path) -> None:
        """A window of a session may begin with one."""
        session = Session()
        session.compaction("summary")
        session.reply("m1", text("on"))
        report = import_file(archive, session.write(tmp_path / "s.jsonl"))
        assert report.compactions == 1
        assert of_kind(archive.trunk, "evicted") == []

    def test_a_lone_residue_is_not_replaced(self, archive: Archive, tmp_path: Path) -> None:
        """L9: rewriting a note without a note saves nothing; the model's note stays."""
        session = Session()
        session.user("fix the parser")
        session.reply("m1", text("done"))
        import_file(archive, session.write(tmp_path / "s.jsonl"))
        archive.trunk.evict(1, 2, "parser fixed")
        session.compaction("summary")
        report = import_file(archive, session.write(tmp_path / "s.jsonl"))
        assert report.refused == 0
        assert [row.label for row in archive.trunk.survey().rows] == ["parser fixed", "summary"]

    def test_importing_again_does_not_compact_what_came_after(self, archive: Archive, tmp_path: Path) -> None:
        """A compaction is of its moment: replayed later it would take the work since."""
        path = eventful().write(tmp_path / "s.jsonl")
        import_file(archive, path)
        before = archive.trunk.survey()
        import_file(archive, path)
        assert archive.trunk.survey() == before


class TestWhichLog:
    """Sessions, agents, copies."""

    def test_the_second_session_gets_a_log_of_its_own_and_finds_it_again(
        self, archive: Archive, tmp_path: Path
    ) -> None:
        """Two sessions never share a context."""
        for id_ in ("5e55-0001", "5e55-0002", "5e55-0001", "5e55-0002"):
            session = Session(id_)
            session.user(f"prompt of {id_}")
            import_file(archive, session.write(tmp_path / "s.jsonl"))
        assert [info.name for info in archive.logs()] == ["trunk", "5e55-0002"]
        assert [info.reach for info in archive.logs()] == [1, 1]

    def test_a_trunk_in_use_is_left_alone(self, archive: Archive, tmp_path: Path) -> None:
        """It is somebody's memory already."""
        archive.trunk.prompt("mine")
        assert import_file(archive, eventful().write(tmp_path / "s.jsonl")).log == "5e55-0001"
        assert archive.trunk.reach == 1

    def test_a_named_log_takes_the_session_and_refuses_another(self, archive: Archive, tmp_path: Path) -> None:
        """Asked for by name, a log in use takes it too; a log that holds another session does not."""
        archive.trunk.prompt("mine")
        path = eventful().write(tmp_path / "s.jsonl")
        assert import_file(archive, path, log="trunk").log == "trunk"
        assert import_file(archive, path, log=archive.trunk).new_records == 0
        other = Session("5e55-0002")
        other.user("hello")
        with pytest.raises(Refused, match="holds session 5e55-0001"):
            import_file(archive, other.write(tmp_path / "o.jsonl"), log="trunk")

    @pytest.mark.parametrize("id_", ["12345", "with\nbreak", "s" * 300, "half \ud83d"])
    def test_any_session_id_makes_a_log(self, archive: Archive, tmp_path: Path, id_: str) -> None:
        """A log's name has rules that ids need not know."""
        archive.trunk.prompt("mine")
        session = Session(id_)
        session.user("hello")
        path = session.write(tmp_path / "s.jsonl")
        first, second = import_file(archive, path), import_file(archive, path)
        assert first.log == second.log
        assert second.new_records == 0

    @pytest.mark.parametrize("order", ["agent first", "caller first"])
    def test_an_agent_is_tied_to_its_call_in_either_order(self, archive: Archive, tmp_path: Path, order: str) -> None:
        """Each log names the other's, whichever file came first."""
        caller = Session("5e55-0001")
        caller.user("review everything")
        caller.reply("m1", call("c1", "Task"))
        caller.user([result("c1", "reviewed")], toolUseResult={"agentId": "a1b2c3d", "status": "completed"})
        caller.reply("m2", text("all reviewed"))
        agent = Session("5e55-0001", agent="a1b2c3d", prefix="a")
        agent.user("review the lexer")
        agent.reply("s1", text("reviewed"))
        paths = [agent.write(tmp_path / "agent.jsonl"), caller.write(tmp_path / "caller.jsonl")]
        for path in paths if order == "agent first" else reversed(paths):
            import_file(archive, path)
        mine = archive.log("agent-a1b2c3d")
        assert {"line": "caller", "session": "5e55-0001", "log": "trunk", "call": "c1"} in of_kind(mine, "meta")
        ties = [body for body in of_kind(archive.trunk, "meta") if body.get("line") == "agent"]
        assert ties == [{"line": "agent", "agent": "a1b2c3d", "call": "c1", "log": "agent-a1b2c3d"}]
        assert (archive.trunk.reach, mine.reach) == (3, 2)
        head = archive.head()
        for path in paths:
            assert import_file(archive, path).new_records == 0
        assert archive.head() == head

    def test_inline_agents_are_reported_and_logged_apart(self, archive: Archive, tmp_path: Path) -> None:
        """Older files hold the agent's lines in the caller's file."""
        session = Session()
        session.user("review everything")
        session.reply("m1", call("c1", "Task"))
        main = session.last
        root = session.user("side work", isSidechain=True)
        session.last = main
        session.results(result("c1"))
        report = import_file(archive, session.write(tmp_path / "s.jsonl"))
        assert [agent.log for agent in report.agents] == [f"agent-{root}"]
        assert (report.prompts, report.agents[0].prompts) == (1, 1)

    def test_a_resumed_copy_that_goes_on_adds_its_new_lines(self, archive: Archive, tmp_path: Path) -> None:
        """The new file begins with the old one's lines under their uuids: not a turn is doubled."""
        session = eventful()
        import_file(archive, session.write(tmp_path / "old.jsonl"))
        before = archive.trunk.reach
        session.session = "5e55-0002"
        session.reply("m9", text("you are welcome"))
        report = import_file(archive, session.write(tmp_path / "new.jsonl"))
        assert report.log == "trunk"
        assert archive.trunk.reach == before + 1

    def test_a_session_resumed_twice_is_two_logs(self, archive: Archive, tmp_path: Path) -> None:
        """Both copies share a beginning; what each did after it never mixes."""
        paths = []
        for way in ("left", "right"):
            session = Session("5e55-0001")
            session.user("fix the parser")
            session.reply("m1", text("done"))
            session.prefix = way
            session.user(f"now go {way}")
            session.reply(f"{way}1", text(f"went {way}"))
            paths.append(session.write(tmp_path / f"{way}.jsonl"))
        assert [import_file(archive, path).log for path in paths] == ["trunk", "5e55-0001"]
        assert [archive.log(name).reach for name in ("trunk", "5e55-0001")] == [4, 4]
        assert "right" not in json.dumps(archive.trunk.render())
        assert [import_file(archive, path).new_records for path in paths] == [0, 0]

    def test_a_log_that_went_on_by_itself_is_not_mixed_with_a_grown_file(
        self, archive: Archive, tmp_path: Path
    ) -> None:
        """A harness took the imported session over; the program went on elsewhere."""
        session = Session()
        session.user("fix the parser")
        session.reply("m1", text("done"))
        import_file(archive, session.write(tmp_path / "s.jsonl"))
        archive.trunk.prompt("mine now")
        session.user("and the docs")
        report = import_file(archive, session.write(tmp_path / "s.jsonl"))
        assert report.log == "5e55-0001"
        assert archive.trunk.reach == 3
        assert archive.log("5e55-0001").reach == 3

    def test_a_rewind_withdraws_what_the_user_went_back_over(self, archive: Archive, tmp_path: Path) -> None:
        """What was undone stays readable, and out of the context."""
        session = Session()
        session.user("fix the parser")
        session.reply("m1", text("one"))
        back_to = session.last
        session.user("wrong turn")
        session.reply("m2", text("two"))
        session.user("right turn", parent=back_to)
        path = session.write(tmp_path / "s.jsonl")
        report = import_file(archive, path)
        assert report.rewinds == 1
        assert [row.label for row in archive.trunk.survey().rows] == ["fix the parser", "one", "right turn"]
        assert import_file(archive, path).new_records == 0


class TestWhatCannotBeRecorded:
    """Never a crash."""

    def test_what_the_archive_will_not_hold_is_named_and_the_rest_goes_on(
        self, archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A reply past the size of a body: error records for it and its results, and the session around them."""
        monkeypatch.setattr("exarch_sql.messages.MAX_BODY_BYTES", 5000)
        session = Session()
        session.user("fix the parser")
        session.reply("m1", text("x" * 10_000), call("c1"))
        session.results(result("c1"))
        session.user("go on")
        session.reply("m2", text("done"))
        path = session.write(tmp_path / "s.jsonl")
        report = import_file(archive, path)
        assert report.refused == 2
        refused = [body["refused"] for body in of_kind(archive.trunk, "error")]
        assert refused == ["cc:reply:m1", "cc:results:m1"]
        labels = [row.label for row in archive.trunk.survey().rows]
        assert labels == ["fix the parser", "done"]
        head = archive.head()
        assert import_file(archive, path).new_records == 0
        assert archive.head() == head

    def test_a_call_nested_too_deep_for_any_provider_stands_as_text(self, archive: Archive, tmp_path: Path) -> None:
        """Kept to the last bracket, and no crash."""
        deep: Any = "x"
        for _ in range(300):
            deep = [deep]
        session = Session()
        session.user("fix the parser")
        session.reply("m1", call("c1", deep=deep))
        session.results(result("c1"))
        session.user("go on")
        report = import_file(archive, session.write(tmp_path / "s.jsonl"))
        assert (report.refused, report.replies, report.prompts) == (0, 1, 2)
        assert "[" * 300 in json.dumps(archive.trunk.render())

    def test_half_surrogates_nul_and_broken_utf8_come_back_as_they_were(self, archive: Archive, tmp_path: Path) -> None:
        """The recorded string is the one the file spelled."""
        session = Session()
        session.user("fix the parser")
        session.reply("m1", call("c1"))
        session.results(result("c1", "cut \ud83d and \0"))
        session.reply("m2", text("done"))
        session.raw(session.lines[0].replace(b"fix the parser", b"caf\xe9").replace(b'"u0001"', b'"u0009"'))
        report = import_file(archive, session.write(tmp_path / "s.jsonl"))
        assert report.damaged == 1
        (reply,), prompt = archive.trunk.read([2]), archive.trunk.survey().rows[-1]
        assert reply.messages[1]["parts"][0]["response"] == "cut \ud83d and \0"
        assert prompt.label == "caf\ufffd"

    def test_an_image_comes_back_byte_for_byte(self, archive: Archive, tmp_path: Path) -> None:
        """Binary goes to blobs, once, and is never text."""
        source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
        session = Session()
        session.user([text("look"), {"type": "image", "source": source}])
        session.reply("m1", text("seen"))
        import_file(archive, session.write(tmp_path / "s.jsonl"))
        (message, _) = archive.trunk.render("anthropic")
        assert message["content"][1]["source"] == source

    def test_other_formats_are_refused_by_name(self, archive: Archive, tmp_path: Path) -> None:
        """What is taken is said too, and nothing is recorded."""
        path = tmp_path / "session.jsonl"
        path.write_bytes(b'{"timestamp":"t","type":"session_meta","payload":{"id":"x"}}\n')
        head = archive.head()
        with pytest.raises(Refused, match=r"codex transcript.*not imported yet: give one of claude-code"):
            import_file(archive, path)
        assert archive.head() == head

    def test_an_empty_file_is_nothing(self, archive: Archive, tmp_path: Path) -> None:
        """Counted as what it is."""
        path = tmp_path / "empty.jsonl"
        path.write_bytes(b"")
        head = archive.head()
        assert import_file(archive, path).format == "empty"
        assert archive.head() == head

    def test_progress_is_told_in_bytes(self, archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Rising to the size of the file."""
        monkeypatch.setattr(apply, "CHUNK_STEPS", 5)
        path = eventful().write(tmp_path / "s.jsonl")
        seen: list[tuple[int, int]] = []
        import_file(archive, path, progress=lambda done, total: seen.append((done, total)))
        size = path.stat().st_size
        assert len(seen) > 3
        assert seen == sorted(seen)
        assert seen[-1] == (size, size)
