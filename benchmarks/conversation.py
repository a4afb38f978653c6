"""A conversation to measure with: what an agent's sessions are made of, made up, the same on every run and every machine.

Text is prose, code, logs, diffs, listings and some Chinese, Japanese and Korean, line by line from a seeded generator; no line is
a copy of another by construction. Record ``index`` depends on its index alone, so any contestant can make any stretch of it.
Standard library only: contestants run it in environments of their own.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Makers = Sequence[Callable[[Random], str]]

Message = dict[str, Any]


def _words(text: str) -> list[str]:
    return text.split()


WORDS = _words("""
the a of to in and is it that for on with as was by this be at from are not but have which or if will each when into after
parser lexer range bound cursor index table record digest chain frontier residue scheduler worker queue timeout retry cache
header footer buffer socket thread process handle signal branch commit merge release changelog fixture assertion coverage
empty missing stale broken correct wrong slower faster larger smaller next previous inclusive exclusive nested disjoint
returns raises reads writes drops keeps counts skips folds splits joins opens closes waits expects refuses allows holds
element number string column row page block byte line token node tree leaf root span note turn reply prompt result
because although instead therefore already still never always only once twice again maybe probably clearly exactly
user agent model server client library module function argument option default value error warning message test suite
""")
NAMES = _words("""
parser lexer scheduler worker range_index turn_store record_log chain_head residue_map frontier cursor page_cache retry_queue
session_pool token_stream node_visitor tree_printer span_walker note_writer digest_check importer exporter planner evaluator
config settings metrics tracer dispatcher handler registry resolver adapter encoder decoder formatter validator builder
""")
VERBS = _words(
    "read write open close find make take drop keep split join fold count check parse print merge plan load send"
)
TYPES = ["int", "str", "bytes", "bool", "list[int]", "dict[str, int]", "Iterator[str]", "Node | None", "Span", "Path"]
LEVELS = ["DEBUG", "DEBUG", "INFO", "INFO", "INFO", "INFO", "WARNING", "ERROR"]
EAST = _words("""
解析器在范围的末尾丢掉了最后一个元素 这个测试在昨天还是通过的 请先读取日志再决定下一步 缓存没有失效所以结果是旧的
索引需要重新建立 这里的边界应该是闭区间 テストは失敗しましたが原因はまだ分かりません 範囲の終わりは含まれるはずです
設定ファイルを読み直してください 差分を確認してから結合します 記録は追記のみで書き換えません エラーの行番号がずれています
파서가 마지막 원소를 버립니다 로그를 먼저 읽어 주세요 캐시를 비우고 다시 실행했습니다 경계값 시험을 추가했습니다
""")


class Step(NamedTuple):
    """One record of a conversation: its kind (prompt, assistant, tool_results) and its message in OpenTelemetry form."""

    kind: str
    message: Message


def seeded(index: int) -> Random:
    """The generator behind record ``index``."""
    return Random(index)  # noqa: S311  (nothing here is secret)


def _prose(rng: Random) -> str:
    return " ".join(rng.choices(WORDS, k=8 + int(rng.random() * 12))).capitalize() + "."


def _log(rng: Random) -> str:
    number = rng.getrandbits(48)
    verb, word = rng.choice(VERBS), rng.choice(WORDS)
    return (
        f"2026-03-{number % 28 + 1:02}T{number % 24:02}:{number % 60:02}:{number % 59:02}.{number % 997:03}Z "
        f"{rng.choice(LEVELS):<7} {rng.choice(NAMES)}.{verb}_{rng.choice(NAMES)} "
        f"{word}={number % 8191} id={number:012x} took {number % 977} ms"
    )


def _code(rng: Random) -> str:
    a, b, c = rng.choices(NAMES, k=3)
    verb, number = rng.choice(VERBS), rng.getrandbits(10)
    match number % 6:
        case 0:
            return f"    def {verb}_{a}(self, {b}: {rng.choice(TYPES)}, limit: int = {number}) -> {rng.choice(TYPES)}:"
        case 1:
            return f"        return self.{a}.{verb}({b}[{number}], {c}={rng.getrandbits(16)})"
        case 2:
            return f"        if {a} is None or len({b}.{c}) > {rng.getrandbits(14)}:"
        case 3:
            return f'            raise ValueError(f"{a} of {{{b}!r}} does not {verb}: {rng.choice(WORDS)} {number}")'
        case 4:
            return f"        for {c} in {verb}_{a}({b}, start={number}):"
        case _:
            return f"        # {' '.join(rng.choices(WORDS, k=9))}"


def _diff(rng: Random) -> str:
    return rng.choice("+- ") + _code(rng)


def _listing(rng: Random) -> str:
    a, b = rng.choices(NAMES, k=2)
    size = rng.getrandbits(17)
    name = f"src/{a}/{rng.choice(VERBS)}_{b}.py"
    return f"-rw-r--r-- 1 user user {size:>7} Mar {size % 28 + 1:>2} {size % 24:02}:{size % 60:02} {name}"


def _east(rng: Random) -> str:
    return "，".join(rng.choices(EAST, k=3)) + f"（{rng.getrandbits(20)}）。"


SPOKEN: Makers = [_prose] * 9 + [_code] * 3 + [_east]
PRINTED: Makers = [_log] * 6 + [_code] * 5 + [_diff] * 2 + [_listing] * 2 + [_prose] * 2 + [_east]


def text(rng: Random, makers: Makers, size: int) -> str:
    """Lines by LF, of about ``size`` UTF-8 bytes and at least one; one maker goes on for a few lines, as in life."""
    lines: list[str] = []
    left = size
    while left > 0:
        make = rng.choice(makers)
        for _ in range(1 + int(rng.random() * 8)):
            line = make(rng)
            lines.append(line)
            left -= len(line) + 1 if line.isascii() else len(line.encode()) + 1
            if left <= 0:
                break
    return "\n".join(lines)


def plain(index: int, size: int) -> Step:
    """A conversation of prompts and replies, each one text whose record's JSON is of ``size`` bytes, cut to the byte."""
    kind, role = (("prompt", "user"), ("assistant", "assistant"))[index % 2]
    said: Message = {"role": role, "parts": [{"type": "text", "content": ""}]}
    room = size - len(compact([said]))
    line = text(seeded(index), SPOKEN, room)
    while len(compact([line])) - 4 > room:  # quotes and brackets aside
        line = line[: -max(1, (len(compact([line])) - 4 - room) // 4)]
    line += "." * (room - len(compact([line])) + 4)
    said["parts"][0]["content"] = line
    return Step(kind, said)


def session(index: int) -> Step:
    """A session with tools: prompt, reply that calls, results, reply that calls, results, closing reply; then the next prompt."""
    rng = seeded(index)
    size = int(rng.lognormvariate(0, 0.8) * 600) + 40
    place = index % 6
    if place == 0:
        return Step("prompt", {"role": "user", "parts": [{"type": "text", "content": text(rng, SPOKEN, size)}]})
    if place in (2, 4):
        result = {"type": "tool_call_response", "id": f"call_{index - 1}", "response": text(rng, PRINTED, size * 6)}
        return Step("tool_results", {"role": "tool", "parts": [result]})
    parts: list[Message] = [{"type": "text", "content": text(rng, SPOKEN, size)}]
    if place != 5:
        arguments = {"command": f"{rng.choice(VERBS)} src/{rng.choice(NAMES)}.py", "description": _prose(rng)}
        parts.append({"type": "tool_call", "id": f"call_{index}", "name": "shell", "arguments": arguments})
    return Step("assistant", {"role": "assistant", "parts": parts})


def whole_session(count: int) -> int:
    """``count`` records, rounded up so that the last session is closed."""
    return -(-count // 6) * 6


def steps(shape: str, first: int, count: int, size: int) -> Iterator[Step]:
    """Records ``first`` and on of a conversation: of shape ``plain``, each of ``size`` bytes, or ``session``."""
    for index in range(first, first + count):
        yield plain(index, size) if shape == "plain" else session(index)


def compact(value: Any) -> bytes:
    """Compact JSON in UTF-8: what a body is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
