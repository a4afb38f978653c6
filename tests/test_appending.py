"""Appending: idempotent by key, safe against a second writer, whole or not at all."""

import asyncio
import enum
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exarch_sql import Archive, Busy, ExarchError, Log, Refused
from exarch_sql.log import NO_RESULT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the archive lies."""
    return tmp_path / "a.exarch"


@pytest.fixture
def log(path: Path) -> Iterator[Log]:
    """The trunk of a fresh archive."""
    with Archive.open(path) as archive:
        yield archive.trunk


def calling(*ids: str) -> dict[str, object]:
    """A reply that calls a tool for each id."""
    return {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": call, "name": "sh", "arguments": {}} for call in ids],
    }


def test_the_same_key_and_body_answers_the_first_record(log: Log) -> None:
    """A harness may repeat what it is not sure was written."""
    first = log.prompt("fix it", key="p1")
    log.assistant("done", key="a1")

    assert log.prompt("fix it", key="p1") == first
    assert log.assistant("done", key="a1").id == 2
    assert log.reach == 2
    assert log.witness("meta", {"v": 1}, key="m") == log.witness("meta", {"v": 1}, key="m")


def test_the_same_key_with_another_body_or_kind_is_refused(log: Log) -> None:
    """L1: what is recorded is never replaced."""
    log.prompt("fix it", key="p1")

    for again in (
        lambda: log.prompt("fix that", key="p1"),
        lambda: log.steer("fix it", key="p1"),
        lambda: log.note("x", key="p1"),
    ):
        with pytest.raises(Refused, match="key p1 already names record 2"):
            again()


def test_edits_are_idempotent_by_key_too(log: Log) -> None:
    """The survey after acting is answered again, and nothing is recorded twice."""
    for _ in range(3):
        log.prompt("x")
        log.assistant("y")
    evicted = log.evict(1, 2, "gone", key="e")
    forced = log.force(keep=0, key="f")
    rewound = log.rewind(6, key="r")

    assert evicted.rows[0].label == "gone"
    assert log.evict(1, 2, "gone", key="e") == rewound
    assert log.force(keep=0, key="f") == log.rewind(6, key="r") == rewound
    assert forced != rewound
    with pytest.raises(Refused, match="already names record"):
        log.evict(1, 2, "other", key="e")


def test_a_second_writer_that_believes_in_an_older_reach_is_told_the_tip(path: Path, log: Log) -> None:
    """`expect`: one wins, the other is named."""
    log.prompt("one", expect=0)
    with Archive.open(path) as other:
        other.trunk.assistant("two", expect=1)

        with pytest.raises(Refused, match="expects the log trunk to reach turn 1, but it reaches 2"):
            log.prompt("three", expect=1)
        assert log.prompt("three", expect=2).id == 3


def test_writers_on_one_file_interleave_without_loss(path: Path, log: Log) -> None:
    """A remembered tip that somebody else moved is looked up again."""
    with Archive.open(path) as other:
        for number in range(5):
            assert log.prompt(f"p{number}").id == 2 * number + 1
            assert other.trunk.assistant(f"a{number}").id == 2 * number + 2
        assert other.verify().ok


def test_threads_may_share_an_archive(path: Path) -> None:
    """Each of eight threads has a log of its own; nothing is lost."""
    with Archive.open(path, durability="normal") as archive:
        logs = [archive.new_log(f"agent-{number}") for number in range(8)]

        def work(log: Log) -> None:
            for number in range(50):
                log.prompt(f"{log.name} {number}")

        threads = [threading.Thread(target=work, args=(log,)) for log in logs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [log.reach for log in logs] == [50] * 8
        assert archive.verify().ok


def test_a_batch_is_written_whole_or_not_at_all(log: Log) -> None:
    """One transaction; the exception comes through."""
    with log.batch():
        log.prompt("kept")
        log.assistant("kept too")

    def broken_off() -> None:
        with log.batch():
            log.prompt("lost")
            log.evict(1, 2, "lost")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken_off()

    assert log.reach == 2
    assert log.survey().rows[0].kind == "own"
    assert log.prompt("next").id == 3


def test_a_refusal_inside_a_batch_leaves_the_rest_of_it(log: Log) -> None:
    """The refused append is undone alone."""
    with log.batch():
        log.prompt("one")
        with pytest.raises(Refused):
            log.tool_results([{"id": "c", "content": "x"}])
        log.assistant("two")

    assert log.reach == 2


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda log: log.prompt("x"), "waiting for 2 tool results: answer c1, c2 with tool_results first"),
        (lambda log: log.assistant("x"), "assistant message is not expected while the log is waiting for 2 tool results"),
        (lambda log: log.steer("x"), "tool results must be complete before accepting a steering prompt"),
        (lambda log: log.tool_results([{"id": "c1", "content": ""}]), "count mismatch: expected 2, got 1; missing c2"),
        (lambda log: log.tool_results([{"id": "zz", "content": ""}, {"id": "c1", "content": ""}]), "unknown tool result id zz"),
        (lambda log: log.tool_results([{"id": "c1", "content": ""}] * 2), "duplicate tool result id c1"),
        (lambda log: log.rewind(1), "cannot rewind while the log is waiting for 2 tool results"),
        (lambda log: log.clear(), "cannot clear while"),
        (lambda log: log.force(keep=0), "cannot evict while tool results are pending"),
        (lambda log: log.evict(1, 2, "x"), "turn 2 is being written now: an eviction keeps the work in hand; name to: 1"),
        (lambda log: log.read([2]), "turn 2 is being written now: it is the one turn the transcript cannot read back yet"),
        (lambda log: log.read([9]), "turn 9 is not recorded: the latest is 2"),
    ],
)  # fmt: skip
def test_while_results_are_owed_each_refusal_names_the_state_and_the_way_out(
    log: Log, act: Callable[[Log], object], said: str
) -> None:
    """L4: nothing can split a call from its results."""
    log.prompt("go")
    log.assistant(calling("c1", "c2"))

    with pytest.raises(Refused, match=said):
        act(log)

    assert log.owed == ("c1", "c2")


def test_the_models_own_eviction_runs_inside_its_call(log: Log) -> None:
    """An eviction is made by a tool call, so it lands between the call and its result."""
    log.prompt("go")
    log.assistant("looked")
    log.prompt("more")
    log.assistant(calling("c1"))

    assert log.evict(1, 2, "looked already").rows[0].label == "looked already"
    assert log.tool_results([{"id": "c1", "content": "evicted"}]).id == 4


def test_quiesce_answers_what_is_owed_and_nothing_else(log: Log) -> None:
    """With the stated placeholder, one for each call."""
    assert log.quiesce() is None
    log.prompt("go")
    log.assistant(calling("c1", "c2"))

    assert log.quiesce().id == 2

    results = log.render()[2:]
    assert [message["parts"][0]["response"] for message in results] == [NO_RESULT, NO_RESULT]
    assert log.state == "answered"


def test_a_connection_does_not_survive_a_fork_of_the_process(log: Log) -> None:
    """Detected, and refused by name."""
    log.prompt("parent")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            log.prompt("child")
            said = b"written"
        except Refused as refusal:
            said = str(refusal).encode()
        os.write(writing, said)
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    said = os.read(reading, 1000).decode()
    os.close(reading)

    assert "does not survive a fork" in said
    assert log.reach == 1


def test_waiting_for_another_writer_is_bounded_and_typed(path: Path, log: Log) -> None:
    """`Busy`, after the timeout, with nothing written."""
    with log.batch(), Archive.open(path, timeout=0.05) as other:
        with pytest.raises(Busy, match="nothing was written, try again"):
            other.trunk.prompt("me too")
        log.prompt("mine")

    assert log.reach == 1


def test_a_thread_that_waits_for_another_ones_batch_is_told_so_in_time(path: Path) -> None:
    """Past fault: it waited for ever, and so did whoever waited for it inside the batch."""
    with Archive.open(path, timeout=0.1) as archive:
        said: list[str] = []

        def write() -> None:
            try:
                archive.trunk.prompt("from a thread")
            except Busy as busy:
                said.append(str(busy))

        with archive.batch():
            thread = threading.Thread(target=write)
            thread.start()
            thread.join()

        assert "another thread" in said[0]
        assert archive.trunk.reach == 0


def test_a_task_does_not_write_into_the_batch_of_another(path: Path) -> None:
    """Past fault: one task's append was taken back with the batch of another that failed."""
    with Archive.open(path) as archive:

        async def batching(inside: asyncio.Event, leave: asyncio.Event) -> None:
            with archive.batch():
                archive.trunk.prompt("one")
                inside.set()
                await leave.wait()

        async def main() -> None:
            inside, leave = asyncio.Event(), asyncio.Event()
            task = asyncio.create_task(batching(inside, leave))
            await inside.wait()
            for write in (
                lambda: archive.trunk.assistant("two"),
                lambda: archive.trunk.note("two"),
                lambda: archive.trunk.fork("x"),
            ):
                with pytest.raises(Busy, match="another task"):
                    write()
            leave.set()
            await task
            archive.trunk.assistant("two")

        asyncio.run(main())

        assert archive.trunk.reach == 2
        assert archive.verify().ok


def test_a_log_whose_opening_was_taken_back_writes_nowhere(path: Path) -> None:
    """Past fault: the number went to the next fork, and the old handle wrote into that agent's log."""
    with Archive.open(path) as archive:
        lost: list[Log] = []

        def broken_off() -> None:
            with archive.batch():
                lost.append(archive.trunk.fork("scout"))
                raise RuntimeError

        with pytest.raises(RuntimeError):
            broken_off()
        critic = archive.trunk.fork("critic")

        for write in (lost[0].prompt, lost[0].note):
            with pytest.raises(Refused, match="the log scout is not recorded"):
                write("hello")
        assert critic.reach == 0

        critic.prompt("in use, and remembered")
        with pytest.raises(Refused, match="the log scout is not recorded"):
            lost[0].assistant("hello")
        assert critic.reach == 1


def test_a_key_may_be_text_of_its_own_kind(path: Path) -> None:
    """Past fault: a member of a StrEnum was a TypeError out of the digest."""

    class Step(enum.StrEnum):
        FIRST = "first"

    with Archive.open(path) as archive:
        turn = archive.trunk.prompt("x", key=Step.FIRST)
        assert archive.trunk.prompt("x", key="first") == turn
        assert archive.verify().ok


def test_a_clock_that_runs_backwards_orders_nothing(log: Log, path: Path) -> None:
    """L2: times are claims. Records, turns, the context and its past stand in the order in which they were written."""
    for number, at_ms in enumerate([9_000, 5_000, -1, 7_000, 2**63 - 1, 0]):
        log.prompt(f"prompt {number}", at_ms=at_ms)

    with Archive.open(path, readonly=True) as archive:
        assert [message["parts"][0]["content"][-1] for message in archive.trunk.render()] == list("012345")
        assert [row.from_ for row in archive.trunk.index()] == [1, 2, 3, 4, 5, 6]
        assert [row.label[-1] for row in archive.trunk.survey(at=4).rows] == list("012")
        assert [hit.text[-1] for hit in archive.trunk.grep("prompt [0-4]").hits] == list("01234")
        assert archive.verify().ok


@pytest.mark.parametrize("at_ms", [5.0, True, "01", 2**63])
def test_a_time_that_would_be_stored_otherwise_than_hashed_is_refused(log: Log, at_ms: int) -> None:
    """Past fault: 5.0 was stored as 5, and the chain was broken for good."""
    for write in (
        lambda: log.prompt("x", at_ms=at_ms),
        lambda: log.note("x", at_ms=at_ms),
        lambda: log.fork("f", at_ms=at_ms),
    ):
        with pytest.raises(Refused, match="whole Unix milliseconds"):
            write()

    assert log.reach == 0


@pytest.mark.parametrize("body", [[1], "text", None])
def test_a_witness_that_is_no_object_is_refused(log: Log, body: dict[str, object]) -> None:
    """Past fault: verify called the file unlawful for ever after."""
    with pytest.raises(Refused, match="is an object"):
        log.meta(body)


def test_a_closed_or_readonly_archive_says_so(path: Path, log: Log) -> None:
    """No traceback of the driver's."""
    log.prompt("x")
    with Archive.open(path, readonly=True) as reader:
        with pytest.raises(Refused, match="open for reading only"):
            reader.trunk.prompt("y")
        assert reader.trunk.survey().rows[0].label == "x"
    with pytest.raises(ExarchError, match="was closed"):
        reader.trunk.survey()
    reader.close()


def test_names_and_ids_that_cannot_be_are_refused(path: Path, log: Log) -> None:
    """Bad input gets one clear refusal."""
    with Archive.open(path) as archive:
        for name in ("", "7", " x", "a\nb", "x" * 101):
            with pytest.raises(Refused, match="name"):
                log.fork(name)
        log.fork("scout")
        with pytest.raises(Refused, match="already there, number 2"):
            log.fork("scout")
        with pytest.raises(Refused, match="the logs are trunk, scout"):
            archive.log("scuot")
        for turn in (-1, 2**63, True, "1", None):
            with pytest.raises(Refused, match="expected a non-negative Int"):
                log.read([turn])
