"""The demo session: one transcript whose shape is that of real ones, and whose facts hang together."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from functools import cache
from itertools import groupby, pairwise
from typing import Any

import pytest

from exarch_sql import demo
from exarch_sql.demo import session_path

Line = dict[str, Any]
Block = dict[str, Any]

DAMAGED_LINE = 320  # counted from 1: an assistant line and a summary with no newline between them
TREE = "/home/user/rangekit/"
INTERRUPT = "[Request interrupted by user for tool use]"


# -- reading ---------------------------------------------------------------------------------------------------


@cache
def raw_lines() -> tuple[str, ...]:
    """The lines of the file as they stand, damaged one included."""
    text = session_path().read_text(encoding="utf-8")
    assert text.endswith("\n")
    return tuple(text[:-1].split("\n"))


def objects_of(raw: str) -> list[Line]:
    """Every JSON object of a line, glued or not. A torn one raises."""
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(raw):
        value, at = decoder.raw_decode(raw, at)
        found.append(value)
    return found


@cache
def session() -> tuple[Line, ...]:
    """Every object of the file in order, the two of the damaged line apart."""
    return tuple(line for raw in raw_lines() for line in objects_of(raw))


def blocks(line: Line, kind: str | None = None) -> list[Block]:
    """The content blocks of a line, a plain string as one text block; none for a line without a message."""
    content = line.get("message", {}).get("content", [])
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return [block for block in content if kind in (None, block["type"])]


def is_answer(line: Line) -> bool:
    """Whether a model wrote the line."""
    return bool(line["type"] == "assistant" and line["message"]["model"] != "<synthetic>")


def is_prompt(line: Line) -> bool:
    """Whether a person wrote the line: no result, no interrupt, no command of the terminal."""
    content = line.get("message", {}).get("content")
    return line["type"] == "user" and isinstance(content, str) and not content.startswith("<")


def prompts() -> list[str]:
    """The prompts in order."""
    return [line["message"]["content"] for line in session() if is_prompt(line)]


@cache
def response_of() -> dict[str, int]:
    """The number of the response, from 1, by message id."""
    ids = dict.fromkeys(line["message"]["id"] for line in session() if is_answer(line))
    return {message: number for number, message in enumerate(ids, start=1)}


@cache
def calls() -> dict[str, tuple[int, Block]]:
    """By call id: the number of the response that called, and the call."""
    return {
        block["id"]: (response_of()[line["message"]["id"]], block)
        for line in session()
        if is_answer(line)
        for block in blocks(line, "tool_use")
    }


@cache
def results() -> tuple[Block, ...]:
    """Every tool_result in the order of the file."""
    return tuple(block for line in session() for block in blocks(line, "tool_result"))


def outputs(number: int) -> list[str]:
    """What came back for a response, in the order it came back."""
    return [result["content"] for result in results() if calls()[result["tool_use_id"]][0] == number]


def first_response_with(text: str) -> int:
    """The number of the first response whose results hold the text."""
    return min(calls()[result["tool_use_id"]][0] for result in results() if text in result["content"])


def strings(value: object) -> list[str]:
    """Every string within a JSON value, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.items() for part in item for text in strings(part)]
    return [text for item in value for text in strings(item)] if isinstance(value, list) else []


# -- the lines ---------------------------------------------------------------------------------------------------


def test_every_line_parses_but_the_stated_one() -> None:
    """A demo file with accidental damage would show luck, not a reader that survives damage."""
    broken = []
    for number, raw in enumerate(raw_lines(), start=1):
        try:
            assert isinstance(json.loads(raw), dict)
        except json.JSONDecodeError:
            broken.append(number)
    assert broken == [DAMAGED_LINE]


def test_the_damaged_line_holds_two_whole_objects() -> None:
    """The damage found in real files: two objects and no newline between them; both can be saved."""
    first, second = objects_of(raw_lines()[DAMAGED_LINE - 1])
    assert (first["type"], second["type"]) == ("assistant", "summary")
    assert second["leafUuid"] == first["uuid"]
    assert first["message"]["content"][0]["text"].startswith("The docs are done")


def test_the_line_types_are_those_of_real_files() -> None:
    """An importer shown only user and assistant lines would have nothing to tell apart."""
    counts = Counter(line["type"] for line in session())
    assert set(counts) == {
        "assistant", "user", "progress", "system", "file-history-snapshot", "queue-operation", "summary",
    }  # fmt: skip
    assert counts["progress"] >= 10
    assert counts["file-history-snapshot"] >= 10


def test_ids_chain() -> None:
    """Each line with an id hangs on an earlier one; one root, so a reader of the graph is not led astray."""
    seen: set[str] = set()
    roots = 0
    for line in session():
        if "uuid" not in line:
            continue
        assert line["uuid"] not in seen
        roots += line["parentUuid"] is None
        assert line["parentUuid"] is None or line["parentUuid"] in seen
        seen.add(line["uuid"])
    assert roots == 1


def test_a_prompt_hangs_on_the_line_that_came_before_it() -> None:
    """No rewind is hidden in the file: a prompt with another parent would be a branch."""
    with_id = [line for line in session() if "uuid" in line]
    pairs = [(before, line) for before, line in pairwise(with_id) if is_prompt(line)]
    assert len(pairs) == len(prompts())
    assert all(line["parentUuid"] == before["uuid"] for before, line in pairs)


def test_the_envelope_is_one_session_on_one_branch() -> None:
    """One version, one directory, one branch, one model: nothing for an importer to split on."""
    with_id = [line for line in session() if "uuid" in line]
    assert {line["cwd"] for line in with_id} == {TREE.rstrip("/")}
    assert {line["gitBranch"] for line in with_id} == {"fix/negative-step"}
    assert len({(line["sessionId"], line["version"]) for line in with_id}) == 1
    models = {line["message"]["model"] for line in session() if line["type"] == "assistant"}
    assert models == {"made-up-model-1", "<synthetic>"}


def test_time_never_runs_back() -> None:
    """Order comes from the file, and the claims about time agree with it."""
    stamps = [line["timestamp"] for line in session() if "timestamp" in line]
    assert stamps == sorted(stamps)
    assert {stamp[:10] for stamp in stamps} == {"2026-03-03", "2026-03-04"}


# -- responses ---------------------------------------------------------------------------------------------------


def test_a_response_is_a_run_of_lines_with_one_block_each() -> None:
    """A message id never comes back after another one: grouping consecutive equal ids is safe."""
    answers = [line for line in session() if is_answer(line)]
    assert all(len(blocks(line)) == 1 for line in answers)
    runs = [key for key, _ in groupby((line["message"]["id"], line["requestId"]) for line in answers)]
    assert len(runs) == len(set(runs)) == len({request for _, request in runs}) == len(response_of()) == 93


def test_thinking_is_signed_with_what_says_that_it_is_made_up() -> None:
    """Signatures look like signatures and can be taken for nobody's."""
    thoughts = [block for line in session() for block in blocks(line, "thinking")]
    assert len(thoughts) >= 30
    assert [block["thinking"] for block in thoughts].count("") == 1
    assert all(b"made-up signature" in base64.b64decode(block["signature"], validate=True) for block in thoughts)


def test_usage_grows_with_the_context() -> None:
    """Each request reads from the cache what the one before had sent; the last line of a response is final."""
    sent_before = 0
    for _, run in groupby((line for line in session() if is_answer(line)), key=lambda line: line["message"]["id"]):
        first, *_, last = [*run] * 2
        usage = last["message"]["usage"]
        assert usage["output_tokens"] >= first["message"]["usage"]["output_tokens"]
        assert usage["cache_read_input_tokens"] in (0, sent_before)
        sent = sum(usage[f"{name}input_tokens"] for name in ("", "cache_read_", "cache_creation_"))
        assert sent >= sent_before
        sent_before = usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"] + usage["input_tokens"]
    assert 60_000 < sent_before < 100_000


def test_every_call_is_answered_once_and_after_it_was_made() -> None:
    """No dangling call, no stray result: the archive's own law about owed results has nothing to mend here."""
    made: set[str] = set()
    answered: list[str] = []
    for line in session():
        made.update(block["id"] for block in blocks(line, "tool_use"))
        for block in blocks(line, "tool_result"):
            assert block["tool_use_id"] in made
            answered.append(block["tool_use_id"])
        if is_answer(line):
            number = response_of()[line["message"]["id"]]
            assert all(call in answered for call in made if calls()[call][0] < number)
    assert len(answered) == len(set(answered)) == len(made) == len(calls())


def test_a_result_hangs_on_the_line_that_called() -> None:
    """The graph says of each result which call it answers, and says the same as the ids."""
    caller = {block["id"]: line["uuid"] for line in session() for block in blocks(line, "tool_use")}
    for line in session():
        for block in blocks(line, "tool_result"):
            assert line["parentUuid"] == line["sourceToolAssistantUUID"] == caller[block["tool_use_id"]]


def test_parallel_calls_are_answered_out_of_order() -> None:
    """2 to 4 calls in one response, and results that do not come in the order of the calls."""
    order = {call: place for place, call in enumerate(calls())}
    by_response: dict[int, list[int]] = {}
    for result in results():
        by_response.setdefault(calls()[result["tool_use_id"]][0], []).append(order[result["tool_use_id"]])
    parallel = [places for places in by_response.values() if len(places) > 1]
    assert {len(places) for places in parallel} == {2, 3, 4}
    assert sum(places != sorted(places) for places in parallel) >= 20


def test_a_result_stands_between_two_lines_of_its_message() -> None:
    """Tools start while the response still streams: a result line does not end a response."""
    main = [line for line in session() if line["type"] in ("assistant", "user")]
    inside = [
        after["message"]["id"]
        for before, result, after in zip(main, main[1:], main[2:], strict=False)
        if blocks(result, "tool_result") and is_answer(before) and is_answer(after)
        if before["message"]["id"] == after["message"]["id"]
    ]
    assert len(inside) == 3


# -- people ------------------------------------------------------------------------------------------------------


def test_the_opening_prompt_is_long() -> None:
    """A pasted issue with a traceback and acceptance criteria, about 3 KB."""
    opening = prompts()[0]
    assert 2_700 <= len(opening.encode()) <= 3_500
    assert "Traceback (most recent call last):" in opening
    assert all(f"\n{number}. " in opening for number in range(1, 7))


def test_there_are_six_prompts() -> None:
    """Each begins where the work before it had ended, by an answer without calls or by an interrupt."""
    assert len(prompts()) == 6
    main = [line for line in session() if line["type"] in ("assistant", "user")]
    for before, line in pairwise(main):
        if is_prompt(line):
            assert blocks(before, "text"), "a prompt after results would be steering"


def test_steering_stands_in_the_middle_of_work() -> None:
    """Typed while calls were running, taken in by the loop once they were answered, and written nowhere else."""
    lines = session()
    removed = [at for at, line in enumerate(lines) if line.get("operation") == "remove"]
    texts = [line["content"] for line in lines if line.get("operation") == "enqueue"]
    assert [text[:24] for text in texts[:2]] == ["only touch the parser. e", "and keep the wording of "]
    assert len(removed) == 2
    for at, text in zip(removed, texts, strict=False):
        main = [line for line in lines[at:] if line["type"] in ("assistant", "user")]
        assert is_answer(main[0]), "the next thing is the agent's, not a prompt"
        before = [line for line in lines[:at] if line["type"] in ("assistant", "user")]
        assert blocks(before[-1], "tool_result")
        assert sum(text in found for line in lines for found in strings(line)) == 1


def test_what_was_queued_and_taken_from_the_queue_is_the_next_prompt() -> None:
    """The other fate of queued text: with the work done it opens a turn of its own."""
    operations = [line for line in session() if line["type"] == "queue-operation"]
    assert " ".join(line["operation"] for line in operations) == "enqueue remove enqueue remove enqueue dequeue"
    assert operations[4]["content"] == prompts()[3]


def test_an_interrupt_follows_a_refused_call_and_a_prompt_follows_it() -> None:
    """The refused call is answered like any other, so the turn is whole; what comes next is a new prompt."""
    main = [line for line in session() if line["type"] in ("assistant", "user")]
    (at,) = [at for at, line in enumerate(main) if [block.get("text") for block in blocks(line)] == [INTERRUPT]]
    (refused,) = blocks(main[at - 1], "tool_result")
    assert refused["is_error"]
    assert "retab" in calls()[refused["tool_use_id"]][1]["input"]["command"]
    assert main[at + 1]["message"]["content"] == prompts()[2]


def test_the_synthetic_line_comes_from_no_model() -> None:
    """Resuming wrote it: no request, no tokens, no turn of the agent's."""
    (line,) = [line for line in session() if line["type"] == "assistant" and not is_answer(line)]
    assert "requestId" not in line
    assert set(line["message"]["usage"].values()) == {0}
    assert blocks(line)[0]["text"] == "No response requested."


# -- the story ---------------------------------------------------------------------------------------------------


def test_failed_first_appears_where_the_new_tests_are_run() -> None:
    """A search for FAILED leads to the beginning of the story."""
    assert first_response_with("FAILED") == 8
    assert "FAILED tests/test_range.py::test_negative_step - assert [5, 3] == [5, 3, 1]" in outputs(8)[0]
    assert outputs(8)[0].count("\nFAILED ") == 5


def test_the_failing_tests_pass_after_the_fix() -> None:
    """The same command fails before the fix and passes after it; the suite grows with the tests that were added."""
    run = "python -m pytest -q --tb=no tests/test_range.py"
    runs = [number for number, block in calls().values() if block["input"].get("command") == run]
    assert [re.findall(r"\d+ (?:failed|passed)", outputs(number)[0]) for number in runs] == [
        ["5 failed", "4 passed"], ["9 passed"], ["13 failed", "14 passed"],
    ]  # fmt: skip
    totals = re.findall(r"^(\d+) passed in", "\n".join(result["content"] for result in results()), re.MULTILINE)
    assert [total for total in dict.fromkeys(totals) if int(total) > 300] == ["391", "400", "418", "439"]


def test_the_detour_leads_nowhere_and_is_worth_evicting() -> None:
    """Responses 12 to 35 touch the lexer only, change nothing that stays, and weigh a third of the session or more."""
    detour = range(12, 36)
    edits = [block for number, block in calls().values() if number in detour and block["name"] in ("Edit", "Write")]
    touched = {block["input"]["file_path"] for block in edits}
    assert touched == {TREE + "rangekit/lexer.py"}
    assert outputs(35)[0] == "?? tests/test_range.py", "all that is left is the new test file"
    weight = Counter({number: sum(len(text.encode()) for text in outputs(number)) for number in response_of().values()})
    assert 3 * sum(weight[number] for number in detour) > weight.total()


def test_one_output_is_very_long() -> None:
    """A verbose test run of 20 to 40 KB, in the detour."""
    longest = max(results(), key=lambda result: len(result["content"]))
    assert 20_000 <= len(longest["content"].encode()) <= 40_000
    assert calls()[longest["tool_use_id"]][0] == 21


def restored(command: str) -> list[str]:
    """The files that a shell command takes back to what was committed."""
    return [TREE + path for path in re.findall(r"git checkout -q -- (\S+)", command)]


def test_a_file_read_shows_what_the_edits_before_it_left() -> None:
    """Every read, edit and search line of a file agrees with the one text that its reads and edits make."""
    committed: dict[str, list[str]] = {}
    files: dict[str, list[str]] = {}
    compared = 0
    given = {result["tool_use_id"]: result["content"] for result in results()}
    for call, (_, block) in calls().items():
        arguments = block["input"]
        path = arguments.get("file_path", "")
        for restored_path in restored(arguments.get("command", "")):
            files[restored_path] = committed[restored_path]
        if block["name"] == "Write":
            files[path] = arguments["content"].splitlines()
        if block["name"] == "Read" and "limit" not in arguments and path not in files:
            files[path] = committed[path] = re.sub(r"^ *\d+→", "", given[call], flags=re.MULTILINE).split("\n")
        if block["name"] == "Edit":
            text = "\n".join(files[path]) + "\n"
            assert text.count(arguments["old_string"]) == 1
            files[path] = text.replace(arguments["old_string"], arguments["new_string"]).splitlines()
        for name, number, content in shown_lines(block["name"], path, given[call]):
            if name in files:
                assert files[name][number - 1] == content
                compared += 1
    assert compared > 1_500


def shown_lines(tool: str, path: str, content: str) -> list[tuple[str, int, str]]:
    """The (path, line number, text) that an answer of Read, Edit or Grep shows."""
    if tool in ("Read", "Edit"):
        return [(path, int(number), text) for number, text in re.findall(r"^ *(\d+)→(.*)$", content, re.MULTILINE)]
    if tool == "Grep":
        found = re.findall(r"^(\S+\.py)([:-])(\d+)\2(.*)$", content, re.MULTILINE)
        return [(TREE + name, int(number), text) for name, _, number, text in found]
    return []


# -- what must not be in it --------------------------------------------------------------------------------------


def test_the_sizes_are_what_the_demo_needs() -> None:
    """Big enough to save bytes worth speaking of, small enough to ship."""
    assert 300_000 <= session_path().stat().st_size <= 600_000


def test_there_are_no_addresses() -> None:
    """No e-mail address: none of a person, none made up."""
    address = re.compile(r"[A-Za-z0-9][\w.+-]*@[\w-]+\.[a-z]{2,}")
    assert address.search("someone@example.org")
    assert [found for line in session() for text in strings(line) for found in address.findall(text)] == []


def test_the_only_home_is_that_of_user() -> None:
    """Paths betray machines and people: only /home/user and /tmp appear."""
    roots = re.compile(r"(?<![\w.~/])/(?:home/\w+|Users|root|work|mnt|private|var|opt|srv)\b")
    found = {root for line in session() for text in strings(line) for root in roots.findall(text)}
    assert found == {"/home/user"}


def test_no_line_holds_what_the_archive_would_have_to_escape() -> None:
    """No NUL, no lone surrogate, no terminal escapes: the demo is about evictions, not about odd bytes."""
    odd = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff]")
    assert not any(odd.search(text) for line in session() for text in strings(line))


def test_a_missing_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel built without its data says so instead of failing later with a line about nothing."""
    monkeypatch.setattr(demo, "__file__", "/nowhere/demo/__init__.py")
    with pytest.raises(FileNotFoundError, match=r"^/nowhere/demo/session\.jsonl is not part of this installation"):
        session_path()
