"""A Claude Code file becomes the steps a log admits: responses, results, steering, compactions, each in its place.

``told`` writes a thread's steps as words: ``prompt``, ``reply(c1,c2)``, ``results(c1,c2)``, ``steer``, ``compaction``,
``rewind``; witness records are left out unless asked for.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from corpora.claude_code.session import Session, call, result, text, thinking

from exarch_sql.errors import Refused
from exarch_sql.importers.claude_code import ClaudeCode
from exarch_sql.importers.claude_thread import ABSENT, LATE_RESPONSES
from exarch_sql.importers.steps import Compaction, Prompt, Reply, Results, Rewind, Steer, Step, Tie, Waiting, Witness

if TYPE_CHECKING:
    import io
    from pathlib import Path


def read(session: Session, tmp_path: Path, upto: int | None = None) -> list[Step]:
    """The steps of a session, or of its first lines."""
    return list(ClaudeCode(session.write(tmp_path / "session.jsonl", upto)).steps())


def answered(message: dict[str, Any]) -> list[str]:
    """The call ids a tool message answers."""
    return [part["id"] for part in message["parts"] if part["type"] == "tool_call_response"]


def words(step: Prompt | Steer | Reply) -> str:
    """The text of a step's message."""
    return " ".join(part["content"] for part in step.message["parts"] if part["type"] == "text")


def told(steps: list[Step], thread: str = "") -> list[str]:
    """A thread's steps as words."""
    found = []
    for step in steps:
        if step.thread != thread:
            continue
        match step:
            case Prompt():
                found.append(f"prompt {words(step)}" if step.voice == "user" else f"prompt/{step.voice} {words(step)}")
            case Steer():
                found.append(f"steer {words(step)}" if step.voice == "user" else f"steer/{step.voice} {words(step)}")
            case Reply():
                found.append(f"reply({','.join(step.calls)})")
            case Results():
                found.append(f"results({','.join(id_ for message in step.messages for id_ in answered(message))})")
            case Compaction() | Rewind():
                found.append(type(step).__name__.lower())
    return found


def witnesses(steps: list[Step], kind: str) -> list[dict[str, Any]]:
    """The bodies of the witness records of a kind."""
    return [step.body for step in steps if isinstance(step, Witness) and step.kind == kind]


@pytest.fixture
def session() -> Session:
    """A session whose user has asked for something."""
    made = Session()
    made.user("fix the parser")
    return made


class TestResponses:
    """One response over many lines."""

    def test_lines_of_one_message_id_are_one_reply(self, session: Session, tmp_path: Path) -> None:
        """84 % of real responses are split, one block a line."""
        session.reply("m1", thinking("look first"), text("I will look."), call("c1"))
        session.results(result("c1"))
        session.reply("m2", text("done"))
        steps = read(session, tmp_path)
        assert told(steps) == ["prompt fix the parser", "reply(c1)", "results(c1)", "reply()"]
        first = next(step for step in steps if isinstance(step, Reply))
        assert [part["type"] for part in first.message["parts"]] == ["reasoning", "text", "tool_call"]

    def test_a_result_between_two_lines_of_a_message_does_not_close_it(self, session: Session, tmp_path: Path) -> None:
        """Tools start while the response still streams (824 responses of one corpus)."""
        session.reply("m1", call("c1"))
        session.results(result("c1"))
        session.reply("m1", call("c2"))
        session.results(result("c2"))
        session.reply("m2", text("done"))
        assert told(read(session, tmp_path)) == ["prompt fix the parser", "reply(c1,c2)", "results(c1,c2)", "reply()"]

    def test_results_keep_their_order_of_arrival_in_one_step(self, session: Session, tmp_path: Path) -> None:
        """Real results come out of call order in a third of the files."""
        session.reply("m1", call("c1"), call("c2"), call("c3"))
        session.results(result("c3"), result("c1"), result("c2"))
        assert told(read(session, tmp_path))[-1] == "results(c3,c1,c2)"

    def test_usage_is_the_last_line_s_once_a_response(self, session: Session, tmp_path: Path) -> None:
        """It is repeated on every line and grows while streaming: summing would count it many times."""
        session.reply("m1", thinking("a"), text("b"), text("c"), tokens=7)
        usage = witnesses(read(session, tmp_path), "usage")
        assert [body["output_tokens"] for body in usage] == [21]
        assert usage[0]["model"] == "claude-opus-4-6"

    def test_an_id_that_comes_back_is_another_turn(self, session: Session, tmp_path: Path) -> None:
        """A response is a run of lines; what stands between closed it."""
        session.reply("m1", text("one"))
        session.reply("m2", text("two"))
        session.reply("m1", text("three"))
        replies = [step for step in read(session, tmp_path) if isinstance(step, Reply)]
        assert [words(reply) for reply in replies] == ["one", "two", "three"]
        assert len({reply.key for reply in replies}) == 3

    def test_a_call_id_used_twice_in_a_response_gets_two_results(self, session: Session, tmp_path: Path) -> None:
        """Redaction makes ids equal; a log answers each call once, so the second is told apart by a number."""
        session.reply("m1", call("REDACTED"), call("REDACTED"))
        session.results(result("REDACTED", "first"), result("REDACTED", "second"))
        assert told(read(session, tmp_path))[1:] == [
            "reply(REDACTED,REDACTED#2)",
            "results(REDACTED,REDACTED#2)",
        ]

    def test_synthetic_replies_are_witnesses_and_end_the_work(self, session: Session, tmp_path: Path) -> None:
        """No model said them; what the user says next is a prompt, not steering."""
        session.reply("m1", call("c1"))
        session.results(result("c1"))
        session.synthetic("API Error: 529", error=True)
        session.user("try again")
        steps = read(session, tmp_path)
        assert told(steps)[-1] == "prompt try again"
        assert len(witnesses(steps, "error")) == 1

    def test_a_response_that_ends_the_file_is_marked_unfinished(self, session: Session, tmp_path: Path) -> None:
        """A longer copy of the file may add to it, and to no other."""
        session.reply("m1", text("one"))
        session.reply("m2", text("two"))
        replies = [step for step in read(session, tmp_path) if isinstance(step, Reply)]
        assert [reply.unfinished for reply in replies] == [False, True]


class TestLateAndMissingResults:
    """Results after the next response began, or never."""

    def test_a_result_after_the_next_response_began_belongs_to_its_call(self, session: Session, tmp_path: Path) -> None:
        """87 of 22,091 real responses began before all results of the last were in."""
        session.reply("m1", call("c1"), call("c2"))
        session.results(result("c1"))
        session.reply("m2", text("meanwhile"))
        session.results(result("c2"))
        session.reply("m3", text("done"))
        assert told(read(session, tmp_path))[1:] == ["reply(c1,c2)", "results(c1,c2)", "reply()", "reply()"]

    def test_a_result_far_down_the_file_still_belongs_to_its_call(self, session: Session, tmp_path: Path) -> None:
        """So many responses may begin before it; words said meanwhile wait for it, and it is recorded once."""
        session.reply("m0", call("c1"), call("c2"))
        session.results(result("c1"))
        session.user("<task-notification>noted</task-notification>")
        for n in range(1, LATE_RESPONSES + 1):
            session.reply(f"m{n}", text("meanwhile"))
        session.results(result("c2", "late but here"))
        steps = read(session, tmp_path)
        assert told(steps)[1:4] == [
            "reply(c1,c2)",
            "results(c1,c2)",
            "steer/notice <task-notification>noted</task-notification>",
        ]
        assert told(steps)[4:] == ["reply()"] * LATE_RESPONSES
        assert "late but here" in json.dumps([s.messages for s in steps if isinstance(s, Results)])
        assert witnesses(steps, "error") == []

    @pytest.mark.parametrize("way", ["too many responses", "words and a response to them"])
    def test_a_call_without_a_result_is_answered_by_a_stated_placeholder(
        self, session: Session, tmp_path: Path, way: str
    ) -> None:
        """A turn is whole (L4): a killed session's call gets a result that says there is none; one that comes is kept."""
        session.reply("m0", call("c1"), call("c2"))
        session.results(result("c1"))
        if way == "too many responses":
            for n in range(1, LATE_RESPONSES + 2):
                session.reply(f"m{n}", text("on"))
        else:
            session.user("start over")
            session.reply("m1", text("done"))
        session.results(result("c2", "much too late"))
        steps = read(session, tmp_path)
        assert told(steps)[1:3] == ["reply(c1,c2)", "results(c1,c2)"]
        if way != "too many responses":
            assert told(steps)[3:] == ["prompt start over", "reply()"]
        results = next(step for step in steps if isinstance(step, Results))
        assert results.absent == ("c2",)
        assert ABSENT in json.dumps(results.messages[-1])
        assert [body["unawaited-result"] for body in witnesses(steps, "error")] == ["c2"]
        assert "much too late" in json.dumps(witnesses(steps, "error"))

    def test_words_typed_while_a_call_is_open_wait_for_its_result(self, session: Session, tmp_path: Path) -> None:
        """Answered by a placeholder there, the call's real result and the words after it were refused, and lost."""
        session.reply("m1", call("c1"))
        session.user("wait, look at the lexer")
        first = read(session, tmp_path)
        assert told(first)[1:] == ["reply(c1)"]
        (waiting,) = [step for step in first if isinstance(step, Waiting)]
        assert (waiting.words, waiting.voice) == ("wait, look at the lexer", "user")
        session.results(result("c1"))
        session.user("and also at the docs")
        session.reply("m2", text("done"))
        steps = read(session, tmp_path)
        assert told(steps)[1:] == [
            "reply(c1)", "results(c1)", "steer wait, look at the lexer", "steer and also at the docs", "reply()",
        ]  # fmt: skip
        assert [step for step in steps if isinstance(step, Waiting)] == []

    def test_words_typed_while_a_response_streams_do_not_cost_its_results(
        self, session: Session, tmp_path: Path
    ) -> None:
        """The response goes on under the same id: it was not begun by the words."""
        session.reply("m1", call("c1"))
        session.user("wait")
        session.reply("m1", call("c2"))
        session.results(result("c1"), result("c2"))
        assert told(read(session, tmp_path))[1:] == [
            "reply(c1)", "results(c1)", "steer wait", "reply(c2)", "results(c2)",
        ]  # fmt: skip

    def test_going_back_to_before_a_call_ends_the_wait(self, session: Session, tmp_path: Path) -> None:
        """A killed session is resumed from before the call that hung; nothing will answer it."""
        back_to = session.last
        session.reply("m1", call("c1"))
        session.user("try another way", parent=back_to)
        steps = read(session, tmp_path)
        assert told(steps)[1:] == ["reply(c1)", "results(c1)", "rewind", "prompt try another way"]

    def test_a_call_without_an_id_is_not_waited_for(self, session: Session, tmp_path: Path) -> None:
        """No result can name it."""
        session.reply("m1", call("c1") | {"id": None}, call("c2"))
        session.results(result("c2"))
        session.reply("m2", text("done"))
        steps = read(session, tmp_path)
        assert told(steps)[1:] == ["reply(m1,c2)", "results(m1,c2)", "reply()"]

    def test_at_the_end_of_the_file_calls_stay_owed(self, session: Session, tmp_path: Path) -> None:
        """The file may grow: answering now would contradict what comes."""
        session.reply("m1", call("c1"), call("c2"))
        session.results(result("c1"))
        assert told(read(session, tmp_path))[1:] == ["reply(c1,c2)"]

    def test_an_open_response_behind_an_owed_result_waits(self, session: Session, tmp_path: Path) -> None:
        """The result may still come before the response ends."""
        session.reply("m1", call("c1"))
        session.reply("m2", text("meanwhile"))
        reader = ClaudeCode(session.write(tmp_path / "s.jsonl"))
        assert told(list(reader.steps()))[1:] == ["reply(c1)"]
        assert reader.pending == 1

    def test_a_result_no_call_waits_for_is_an_error_record(self, session: Session, tmp_path: Path) -> None:
        """A window of a session begins with results of calls that are not in it."""
        session.results(result("c0", "of a call cut off"))
        steps = read(session, tmp_path)
        assert told(steps) == ["prompt fix the parser"]
        assert [body["unawaited-result"] for body in witnesses(steps, "error")] == ["c0"]


class TestWhatTheUserSaid:
    """Prompts, steering, interrupts, the queue."""

    def test_text_after_all_results_is_steering(self, session: Session, tmp_path: Path) -> None:
        """The loop would have gone on: the words joined it."""
        session.reply("m1", call("c1"))
        session.results(result("c1"))
        session.user("only the red ones")
        session.reply("m2", text("done"))
        assert told(read(session, tmp_path))[1:] == ["reply(c1)", "results(c1)", "steer only the red ones", "reply()"]

    def test_text_after_an_interrupt_is_a_prompt_and_the_interrupt_steers_what_it_ended(
        self, session: Session, tmp_path: Path
    ) -> None:
        """The interrupt belongs to the turn before it; the model reads it there."""
        session.reply("m1", call("c1"))
        session.results(result("c1", "The user doesn't want to proceed", is_error=True))
        session.interrupt("[Request interrupted by user for tool use]")
        session.user("do the docs instead")
        assert told(read(session, tmp_path))[2:] == [
            "results(c1)",
            "steer/interrupt [Request interrupted by user for tool use]",
            "prompt do the docs instead",
        ]

    def test_an_interrupt_with_no_work_waiting_is_a_user_turn(self, session: Session, tmp_path: Path) -> None:
        """After a finished answer nothing can be steered (L4)."""
        session.reply("m1", text("a long answer"))
        session.interrupt()
        session.user("never mind")
        assert told(read(session, tmp_path))[2:] == [
            "prompt/interrupt [Request interrupted by user]",
            "prompt never mind",
        ]

    def test_an_interrupt_answers_calls_that_never_ran(self, session: Session, tmp_path: Path) -> None:
        """Killed in the middle of a call: placeholder, then the interrupt."""
        session.reply("m1", call("c1"))
        session.interrupt()
        session.user("go on")
        assert told(read(session, tmp_path))[1:] == [
            "reply(c1)",
            "results(c1)",
            "steer/interrupt [Request interrupted by user]",
            "prompt go on",
        ]

    def test_a_second_prompt_before_any_reply_is_a_prompt(self, session: Session, tmp_path: Path) -> None:
        """The first is abandoned, whole."""
        session.user("or rather the lexer")
        assert told(read(session, tmp_path)) == ["prompt fix the parser", "prompt or rather the lexer"]

    def test_text_beside_a_result_follows_it(self, session: Session, tmp_path: Path) -> None:
        """29 real result lines hold text too."""
        session.reply("m1", call("c1"))
        session.user([result("c1"), text("and be quick")])
        assert told(read(session, tmp_path))[1:] == ["reply(c1)", "results(c1)", "steer and be quick"]

    def test_a_removed_queue_entry_is_steering_where_it_was_removed(self, session: Session, tmp_path: Path) -> None:
        """58 of 91 such texts stand nowhere else in their file."""
        session.reply("m1", call("c1"))
        session.queue("enqueue", "only the red ones")
        session.queue("remove")
        session.results(result("c1"))
        session.reply("m2", text("done"))
        assert told(read(session, tmp_path))[1:] == ["reply(c1)", "results(c1)", "steer only the red ones", "reply()"]

    @pytest.mark.parametrize("way", ["line", "attachment"])
    def test_a_removed_text_with_a_line_of_its_own_is_said_once(
        self, session: Session, tmp_path: Path, way: str
    ) -> None:
        """Later versions write what they took from the queue."""
        session.reply("m1", call("c1"))
        session.queue("enqueue", "only the red ones")
        session.queue("remove", "only the red ones")
        session.results(result("c1"))
        if way == "line":
            session.user("only the red ones")
        else:
            session.line("attachment", attachment={"type": "queued_command", "prompt": "only the red ones"})
        session.reply("m2", text("done"))
        assert told(read(session, tmp_path))[1:] == ["reply(c1)", "results(c1)", "steer only the red ones", "reply()"]

    def test_dequeued_text_is_its_own_line_s_and_popped_text_nobody_s(self, session: Session, tmp_path: Path) -> None:
        """``dequeue`` became a prompt line; ``popAll`` went back to the editor."""
        session.reply("m1", text("one"))
        session.queue("enqueue", "next")
        session.queue("dequeue")
        session.user("next")
        session.queue("enqueue", "never sent")
        session.queue("popAll")
        session.reply("m2", text("two"))
        steps = read(session, tmp_path)
        assert told(steps)[1:] == ["reply()", "prompt next", "reply()"]
        assert len(witnesses(steps, "note")) == 4

    @pytest.mark.parametrize("words", ["/mcp", "/model haiku", "/project:review", " /mcp__git__log x"])
    def test_a_queued_command_of_the_program_is_not_steering(
        self, session: Session, tmp_path: Path, words: str
    ) -> None:
        """``/mcp`` runs beside the session; if the model is shown a command, a line of its own says so."""
        session.reply("m1", call("c1"))
        session.queue("enqueue", words)
        session.queue("remove")
        session.results(result("c1"))
        steps = read(session, tmp_path)
        assert told(steps)[1:] == ["reply(c1)", "results(c1)"]
        assert words in json.dumps(witnesses(steps, "note"))

    @pytest.mark.parametrize("words", ["/etc/hosts is wrong", "/ is full", "/path.py fails", "//comment"])
    def test_queued_words_that_only_begin_like_a_command_are_steering(
        self, session: Session, tmp_path: Path, words: str
    ) -> None:
        """They were taken for commands and reached no turn."""
        session.reply("m1", call("c1"))
        session.queue("enqueue", words)
        session.queue("remove", words)
        session.results(result("c1"))
        assert told(read(session, tmp_path))[1:] == ["reply(c1)", "results(c1)", f"steer {words}"]

    @pytest.mark.parametrize("then", ["nothing", "line", "attachment", "attachment before"])
    def test_a_removed_text_at_the_end_of_the_file_is_said_and_a_longer_file_does_not_say_it_again(
        self, session: Session, tmp_path: Path, then: str
    ) -> None:
        """The file may be the last there is. Whatever says the words again before the next response is their copy."""
        session.reply("m1", call("c1"))
        session.results(result("c1"))
        session.queue("enqueue", "only the red ones")
        attachment = {"type": "queued_command", "prompt": "only the red ones"}
        if then == "attachment before":
            session.line("attachment", attachment=attachment)
        session.queue("remove")
        if then == "line":
            session.user("only the red ones")
        elif then == "attachment":
            session.line("attachment", attachment=attachment)
        reader = ClaudeCode(session.write(tmp_path / "s.jsonl"))
        assert told(list(reader.steps()))[1:] == ["reply(c1)", "results(c1)", "steer only the red ones"]
        assert (reader.pending, reader.copies) == (0, int(then in ("line", "attachment")))

    def test_an_image_beside_removed_words_is_not_lost_with_their_copy(self, session: Session, tmp_path: Path) -> None:
        """The queue names the words alone; the line that repeats them has the image."""
        session.reply("m1", call("c1"))
        session.results(result("c1"))
        session.queue("enqueue", "like this")
        session.queue("remove")
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
        session.user([text("like this"), image])
        steers = [step for step in read(session, tmp_path) if isinstance(step, Steer)]
        assert [[part["type"] for part in step.message["parts"]] for step in steers] == [["text"], ["blob"]]

    def test_a_queued_text_of_several_blocks_is_said(self, session: Session, tmp_path: Path) -> None:
        """An attachment's prompt is text, or blocks like a message's."""
        session.reply("m1", call("c1"))
        session.results(result("c1"))
        blocks = [text("like"), text("this")]
        session.line("attachment", attachment={"type": "queued_command", "prompt": blocks})
        assert told(read(session, tmp_path))[-1] == "steer like this"

    def test_a_local_command_is_a_note(self, session: Session, tmp_path: Path) -> None:
        """``/exit`` and what it printed never reached the model."""
        session.reply("m1", text("done"))
        session.user("<local-command-caveat>Caveat: ...</local-command-caveat>", isMeta=True)
        session.command("exit", "Goodbye!")
        steps = read(session, tmp_path)
        assert told(steps) == ["prompt fix the parser", "reply()"]
        assert len(witnesses(steps, "note")) == 3

    def test_a_command_the_model_was_shown_is_a_prompt(self, session: Session, tmp_path: Path) -> None:
        """Its body comes as a meta line; both are the user's turn."""
        session.reply("m1", text("done"))
        session.command("review")
        session.user("Review the diff, file by file.", isMeta=True)
        session.reply("m2", text("reviewed"))
        assert told(read(session, tmp_path))[2:] == [
            "prompt/command <command-name>/review</command-name>\n<command-message>review</command-message>",
            "steer/meta Review the diff, file by file.",
            "reply()",
        ]

    def test_a_skill_body_between_results_waits_for_them(self, session: Session, tmp_path: Path) -> None:
        """A meta line may stand between two results of one reply; it cannot split the turn."""
        session.reply("m1", call("c1"), call("c2"))
        session.results(result("c1"))
        session.user("Skill body", isMeta=True)
        session.results(result("c2"))
        session.reply("m2", text("done"))
        assert told(read(session, tmp_path))[1:] == [
            "reply(c1,c2)",
            "results(c1,c2)",
            "steer/meta Skill body",
            "reply()",
        ]

    def test_a_notice_after_a_finished_answer_opens_a_turn_that_is_no_prompt(
        self, session: Session, tmp_path: Path
    ) -> None:
        """The model answered it, but nobody typed it."""
        session.reply("m1", text("started"))
        session.user("<task-notification>agent done</task-notification>")
        session.reply("m2", text("noted"))
        assert told(read(session, tmp_path))[2:] == [
            "prompt/notice <task-notification>agent done</task-notification>",
            "reply()",
        ]

    def test_a_prompt_that_hangs_on_an_older_line_is_a_rewind(self, session: Session, tmp_path: Path) -> None:
        """Double Esc: what the user went back over is withdrawn, from the prompt that was undone."""
        anchor = session.last
        session.reply("m1", text("one"))
        back_to = session.last
        session.user("wrong turn")
        session.reply("m2", text("two"))
        session.user("right turn", parent=back_to)
        steps = read(session, tmp_path)
        assert told(steps) == [
            "prompt fix the parser", "reply()", "prompt wrong turn", "reply()", "rewind", "prompt right turn",
        ]  # fmt: skip
        wrong = next(step for step in steps if isinstance(step, Prompt) and words(step) == "wrong turn")
        assert next(step for step in steps if isinstance(step, Rewind)).anchor == wrong.key
        assert anchor is not None


class TestCompaction:
    """The summary is a prompt, and what was before it leaves."""

    def test_a_summary_in_the_middle_of_work(self, session: Session, tmp_path: Path) -> None:
        """60 of 82 real ones stand after a tool result, and no prompt follows."""
        session.reply("m1", call("c1"))
        session.results(result("c1"))
        session.compaction("summary so far")
        session.reply("m2", text("\n\n"), call("c2"))
        session.results(result("c2"))
        steps = read(session, tmp_path)
        assert told(steps)[1:] == [
            "reply(c1)", "results(c1)", "prompt/summary summary so far", "compaction", "reply(c2)", "results(c2)",
        ]  # fmt: skip
        assert [step.trigger for step in steps if isinstance(step, Compaction)] == ["auto"]

    def test_a_call_open_at_a_compaction_is_answered_first(self, session: Session, tmp_path: Path) -> None:
        """An eviction waits until nothing is owed (11 of 82)."""
        session.reply("m1", call("c1"))
        session.compaction("summary so far")
        session.reply("m2", text("on"))
        assert told(read(session, tmp_path))[1:] == [
            "reply(c1)", "results(c1)", "prompt/summary summary so far", "compaction", "reply()",
        ]  # fmt: skip


class TestAgents:
    """Agents are threads of their own."""

    def test_an_agent_s_file_is_one_thread(self, tmp_path: Path) -> None:
        """All its lines are sidechain lines of the parent's session."""
        agent = Session(agent="a1b2c3d")
        agent.user("review the lexer")
        agent.reply("m1", text("reviewed"))
        reader = ClaudeCode(agent.write(tmp_path / "agent.jsonl"))
        steps = list(reader.steps())
        assert reader.primary == "agent-a1b2c3d"
        assert told(steps, "agent-a1b2c3d") == ["prompt review the lexer", "reply()"]
        assert told(steps) == []

    def test_inline_sidechain_lines_do_not_split_a_response(self, session: Session, tmp_path: Path) -> None:
        """They are set aside before responses are grouped; without agentId they hang together by parent."""
        session.reply("m1", call("c1", "Task"))
        main = session.last
        root = session.user("side work", isSidechain=True)
        session.reply("s1", call("k1"))
        session.lines[-1] = session.lines[-1].replace(b'"isSidechain": false', b'"isSidechain": true')
        session.user([result("k1")], isSidechain=True)
        session.last = main
        session.reply("m1", call("c2"))
        session.results(result("c1"), result("c2"))
        steps = read(session, tmp_path)
        assert told(steps)[1:] == ["reply(c1,c2)", "results(c1,c2)"]
        assert told(steps, f"agent-{root}") == ["prompt side work", "reply(k1)", "results(k1)"]

    def test_a_progress_copy_is_not_imported_and_ties_agent_to_call(self, session: Session, tmp_path: Path) -> None:
        """Each repeats a whole message of the agent, whose own file has it."""
        session.reply("m1", call("c1", "Task"))
        for words_ in ("first", "second"):
            data = {"type": "agent_progress", "agentId": "a1b2c3d", "message": {"role": "user", "content": words_}}
            session.line("progress", data=data, parentToolUseID="c1", toolUseID="x")
        session.user([result("c1")], toolUseResult={"agentId": "a1b2c3d"})
        reader = ClaudeCode(session.write(tmp_path / "s.jsonl"))
        ties = [step for step in reader.steps() if isinstance(step, Tie)]
        assert [(tie.agent, tie.call) for tie in ties] == [("a1b2c3d", "c1")]
        assert reader.skipped == 2


class TestDamage:
    """What is broken is counted and kept; the rest is read."""

    def test_glued_broken_and_foreign_lines(self, session: Session, tmp_path: Path) -> None:
        """Every line before, between and after is taken."""
        session.lines.insert(0, b"// shared by someone")
        session.reply("m1", text("one"))
        session.lines[-1] += b'{"type":"summary","summary":"s","leafUuid":"x"}'
        session.raw(b'{"retryInMs":[REDACTED_PHONE]312349}')
        session.raw(b"null")
        session.raw(b"")
        session.user("go on")
        reader = ClaudeCode(session.write(tmp_path / "s.jsonl"))
        steps = list(reader.steps())
        assert told(steps) == ["prompt fix the parser", "reply()", "prompt go on"]
        assert reader.damaged == 3
        assert [body["damage"] for body in witnesses(steps, "error")] == ["a comment", "no JSON", "no object"]

    def test_a_last_line_cut_short_waits_for_the_rest(self, session: Session, tmp_path: Path) -> None:
        """Its writer may be at it; the same line with a line feed is damage."""
        session.raw(b'{"type":"user","uuid":"u9","mess')
        reader = ClaudeCode(session.write(tmp_path / "s.jsonl", ended=False))
        list(reader.steps())
        assert (reader.damaged, reader.pending) == (0, 1)
        reader = ClaudeCode(session.write(tmp_path / "s.jsonl"))
        list(reader.steps())
        assert (reader.damaged, reader.pending) == (1, 0)

    def test_a_whole_last_line_without_a_line_feed_is_taken(self, session: Session, tmp_path: Path) -> None:
        """425 of 552 real files end so."""
        reader = ClaudeCode(session.write(tmp_path / "s.jsonl", ended=False))
        assert told(list(reader.steps())) == ["prompt fix the parser"]

    def test_lines_of_the_wrong_shape_raise_nothing(self, session: Session, tmp_path: Path) -> None:
        """Fields that are missing, null or of another type; the session around them is read."""
        for fields in (
            {"message": None},
            {"message": {"content": None}},
            {"message": {"content": [None, 7, {"type": None}]}},
            {"message": "text"},
            {"message": {"content": [{"type": "tool_result"}]}},
        ):
            session.line("user", **fields)
            session.line("assistant", **fields)
        session.bare("unheard-of", anything=[1])
        session.line("system", subtype=None, timestamp_=3)
        session.line("attachment", attachment=[])
        session.line("progress", data=None)
        session.queue("remove")
        session.bare("queue-operation", operation=None, content=7)
        session.user("still here")
        assert told(read(session, tmp_path))[-1] == "prompt still here"

    @pytest.mark.parametrize("broken", [{"input": "no object"}, {"name": None}, {"input": [1]}, {"id": 7}])
    def test_a_call_of_the_wrong_shape_costs_at_most_itself(
        self, session: Session, tmp_path: Path, broken: dict[str, Any]
    ) -> None:
        """It is kept, as a call or as text; the call beside it has its result, and the session goes on."""
        session.reply("m1", call("c1") | broken, call("c2"))
        session.results(result("c1"), result("c2"))
        session.reply("m2", text("done"))
        session.user("go on")
        told_ = told(read(session, tmp_path))
        assert len(told_) == 5
        assert told_[3:] == ["reply()", "prompt go on"]
        assert "c2" in told_[1]
        assert "c2" in told_[2]

    def test_a_response_of_nothing_but_a_broken_call_owes_nothing(self, session: Session, tmp_path: Path) -> None:
        """What stands as text waits for no result."""
        session.reply("m1", {"type": "tool_use", "id": "c1", "name": "Bash", "input": {}, "cache_control": 7})
        session.results(result("c1"))
        session.user("go on")
        assert told(read(session, tmp_path))[-1].endswith("go on")

    def test_half_surrogates_and_nul_come_through(self, session: Session, tmp_path: Path) -> None:
        """Tools cut emoji in half; such strings are what the model saw."""
        session.raw(session.lines.pop().replace(b"fix the parser", b"\\ud83d and \\u0000"))
        assert told(read(session, tmp_path)) == ["prompt \ud83d and \0"]

    def test_a_line_copied_under_its_uuid_is_read_once(self, session: Session, tmp_path: Path) -> None:
        """A resumed session begins with the lines of the one before."""
        session.reply("m1", call("c1"))
        session.results(result("c1"))
        session.lines += session.lines[:]
        session.reply("m2", text("done"))
        reader = ClaudeCode(session.write(tmp_path / "s.jsonl"))
        assert told(list(reader.steps()))[1:] == ["reply(c1)", "results(c1)", "reply()"]
        assert reader.copies == 3

    def test_lines_that_redaction_gave_one_uuid_are_all_read(self, session: Session, tmp_path: Path) -> None:
        """Ids made equal tell nothing, so what a line says and when decides; a copy, in all equal, is still one.

        Nor is such an id a place to go back to: every prompt seemed to hang on the first line.
        """
        for words_ in ("first", "second", "yes", "yes"):
            session.user(words_)
            session.reply(f"m{len(session.lines)}", text("ok"))
        ids = re.compile(rb'"(uuid|parentUuid)": "u\d+"')
        session.lines = [ids.sub(rb'"\1": "REDACTED"', line) for line in session.lines]
        session.lines += session.lines[3:6]
        reader = ClaudeCode(session.write(tmp_path / "s.jsonl"))
        steps = list(reader.steps())
        prompts = ["fix the parser", "first", "second", "yes", "yes"]
        assert [step for step in told(steps) if step != "reply()"] == [f"prompt {words_}" for words_ in prompts]
        assert reader.copies == 3
        assert len({step.key for step in steps if isinstance(step, Prompt)}) == 5

    def test_equal_lines_without_a_uuid_are_each_read(self, session: Session, tmp_path: Path) -> None:
        """Two entries can leave the queue in one moment."""
        session.reply("m1", call("c1"))
        session.results(result("c1"))
        for words_ in ("one", "two"):
            session.queue("enqueue", words_)
        session.queue("remove")
        session.lines.append(session.lines[-1])
        assert told(read(session, tmp_path))[-2:] == ["steer one", "steer two"]

    @pytest.mark.parametrize("content", [{"text": "hello there"}, 7, True, [["hello", "there"]]])
    def test_content_of_no_known_shape_is_kept_as_text(self, session: Session, tmp_path: Path, content: object) -> None:
        """An object in place of text was dropped without a trace."""
        session.line("user", message={"role": "user", "content": content})
        expected = content[0] if isinstance(content, list) else content
        assert told(read(session, tmp_path))[-1] == "prompt " + json.dumps(expected, separators=(",", ":"))

    def test_messages_of_no_session_are_refused(self, tmp_path: Path) -> None:
        """They were read and recorded nowhere. A file whose first lines name none may still grow, and counts them."""
        path = tmp_path / "s.jsonl"
        path.write_bytes(b'{"type":"summary","summary":"x","leafUuid":"u"}\n')
        reader = ClaudeCode(path)
        assert (list(reader.steps()), reader.pending) == ([], 1)
        path.write_bytes(b'{"type":"user","uuid":"u","message":{"content":"hello"}}\n')
        with pytest.raises(Refused, match="names no session"):
            list(ClaudeCode(path).steps())


class TestGrowth:
    """A longer copy of a file says the same first."""

    def test_every_cut_of_a_session_is_the_beginning_of_the_whole(self, tmp_path: Path) -> None:
        """Cut between any two lines, what makes and moves turns is that of the whole, but for the unfinished response.

        Records for eyes are the same too, but those behind words that wait come before them.
        """
        session = eventful()
        whole = [finished(step) for step in read(session, tmp_path)]
        turns = [step for step in whole if not isinstance(step, Witness)]
        for upto in range(1, len(session.lines)):
            steps = [finished(step) for step in read(session, tmp_path, upto) if not isinstance(step, Waiting)]
            part = [step for step in steps if not isinstance(step, Witness)]
            grown = [n for n, (a, b) in enumerate(zip(part, turns, strict=False)) if a != b and isinstance(a, Reply)]
            sure = grown[0] if grown else len(part)
            assert part[:sure] == turns[:sure], upto
            if grown:
                assert part[sure].key == turns[sure].key
                assert part[sure].message["parts"] == turns[sure].message["parts"][: len(part[sure].message["parts"])]
            seen = [step for step in steps if isinstance(step, Witness) and step.kind != "usage"]
            assert [step for step in seen if step not in whole] == [], upto

    def test_a_cut_inside_a_line_says_what_the_lines_before_say(self, tmp_path: Path) -> None:
        """A snapshot is taken at any byte."""
        session = eventful()
        data = session.bytes()
        for upto in range(1, len(session.lines) + 1):
            before = read(session, tmp_path, upto - 1) if upto > 1 else []
            end = len(session.bytes(upto)) - 2
            (tmp_path / "cut.jsonl").write_bytes(data[:end])
            assert list(ClaudeCode(tmp_path / "cut.jsonl").steps()) == before


def finished(step: Step) -> Step:
    """The step without the mark that it ended its file."""
    return msgspec.structs.replace(step, unfinished=False) if isinstance(step, Reply) else step


def eventful() -> Session:
    """A session with everything in it that is decided by a later line."""
    made = Session()
    made.bare("file-history-snapshot", messageId="m0", snapshot={})
    made.user("fix the parser")
    made.reply("m1", thinking("hm"), call("c1"), call("c2"))
    made.results(result("c2"))
    made.line("system", subtype="api_error", error="overloaded")
    made.results(result("c1"))
    made.queue("enqueue", "only the red ones")
    made.queue("remove")
    made.line("progress", data={"type": "hook_progress", "hookEvent": "Stop"})
    made.envelope["gitBranch"] = "fix"
    made.reply("m2", call("c3"), model="claude-haiku-4-5")
    made.user("Skill body", isMeta=True)
    made.results(result("c3"))
    made.queue("enqueue", "and the docs")
    made.queue("remove")
    made.line("system", subtype="turn_duration", durationMs=5)
    made.user("and the docs")
    made.reply("m3", text("done"))
    made.line("system", subtype="stop_hook_summary", hookCount=1)
    made.command("model", "Set model to haiku")
    made.command("review")
    made.line("system", subtype="turn_duration", durationMs=6)
    made.user("Review everything.", isMeta=True)
    made.reply("m4", call("c4"))
    made.results(result("c4"))
    made.interrupt()
    made.user("go on then")
    made.reply("m5", call("c5"))
    made.results(result("c5"))
    made.compaction()
    made.reply("m6", call("c6"))
    made.reply("m7", text("all done"))
    made.results(result("c6"))
    made.user("thanks")
    return made


def test_a_file_is_read_in_one_pass_with_little_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No second pass where no result is late: the file is opened once."""
    opened: list[io.BufferedReader] = []
    path = eventful().write(tmp_path / "s.jsonl")
    real = type(path).open

    def counting(self: Path, *args: Any, **kwargs: Any) -> Any:
        opened.append(real(self, *args, **kwargs))
        return opened[-1]

    quiet = Session()
    quiet.user("fix the parser")
    for n in range(50):
        quiet.reply(f"m{n}", call(f"c{n}"))
        quiet.results(result(f"c{n}"))
    quiet.write(path)
    monkeypatch.setattr(type(path), "open", counting)
    assert len(told(list(ClaudeCode(path).steps()))) == 101
    assert len(opened) == 1
