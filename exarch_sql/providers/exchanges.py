"""The order every API asks for: a reply, the results of its calls, then what others said.

An *exchange* is that run of messages. Results are matched with their calls by id, so they may have arrived in any
order; a call left unanswered is lawful only at the very end, where its results are still owed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from exarch_sql.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Obj = dict[str, Any]


class Answer(NamedTuple):
    """One result: its part and the message it lies in, and the call it answers, likewise."""

    message: Obj
    part: Obj
    call: Obj
    caller: Obj


class Reply(NamedTuple):
    """One assistant message, its calls by id in call order, and their results in the order they arrived."""

    message: Obj
    calls: dict[str, Obj]
    answers: list[Answer]

    def in_call_order(self) -> list[Answer]:
        """The results in the order of the calls."""
        order = list(self.calls)
        return sorted(self.answers, key=lambda answer: order.index(answer.part["id"]))


class Exchange(NamedTuple):
    """Replies in a row with all their results, then what anyone else said before the next reply."""

    replies: list[Reply]
    said: list[Obj]

    @property
    def waiting(self) -> list[str]:
        """Ids of calls that have no result."""
        return [
            call
            for reply in self.replies
            for call in reply.calls
            if all(answer.part["id"] != call for answer in reply.answers)
        ]


def exchanges(messages: Sequence[Obj]) -> Iterator[Exchange]:
    """The messages as exchanges, in order.

    Raises Refused for a result no call before it waits for, and for a call passed over by a later message.
    """
    current = Exchange([], [])
    for index, message in enumerate(messages):
        if message["role"] == "assistant":
            if current.said or any(reply.answers for reply in current.replies):
                yield _closed(current)
                current = Exchange([], [])
            current.replies.append(Reply(message, _calls(message), []))
        elif message["role"] == "tool":
            _answer(current, message, index)
        else:
            current.said.append(message)
    if current.said:
        _closed(current)
    yield current


def _calls(message: Obj) -> dict[str, Obj]:
    return {part["id"]: part for part in message["parts"] if part["type"] == "tool_call"}


def _answer(current: Exchange, message: Obj, index: int) -> None:
    other = []
    for part in message["parts"]:
        if part["type"] != "tool_call_response":
            other.append(part)
            continue
        reply = next((each for each in current.replies if part["id"] in _open(each)), None)
        if reply is None:
            raise Refused(
                f"cannot render: messages[{index}] answers call {part['id']!r}, which no assistant message before it "
                "is waiting for: give each result once, after the message that makes the call"
            )
        reply.answers.append(Answer(message, part, reply.calls[part["id"]], reply.message))
    if other:
        current.said.append({**message, "role": "user", "parts": other})


def _open(reply: Reply) -> set[str]:
    return set(reply.calls) - {answer.part["id"] for answer in reply.answers}


def _closed(exchange: Exchange) -> Exchange:
    if waiting := exchange.waiting:
        raise Refused(
            f"cannot render: call {waiting[0]!r} has no result, and the history goes on after it: "
            "answer every call before the next reply (calls may wait only at the very end)"
        )
    return exchange
