"""What a model is taught: one text, under 3 KB, every line of it true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from door_host import MemoryLog

from exarch_sql.door import Answer, Door, DoorRefused
from exarch_sql.door.lexer import MISSING, SIGNS
from exarch_sql.door.prelude import BUILTINS
from exarch_sql.door.teaching import TEACHING, TEACHING_BYTES, code_lines, family
from exarch_sql.door.verbs import FAMILIES, VERBS

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "door.md").read_text(encoding="utf-8")
# The shape each taught line answers, in order; None where a run ends in let or says something.
SHAPES: list[Any] = [
    *("survey", "survey", "rows", "rows", "turns", "turns", "found", "found"),
    *(None, int, None, list, None, None, str, None),
]


def has_shape(document: Any, shape: Any) -> bool:
    """Whether an answer's JSON is what section 7 of the design says a line answers."""
    if shape == "survey":
        return set(document) == {"rows", "total-bytes"} and has_shape(document["rows"], "rows")
    if shape == "rows":
        return all({"from", "to", "role", "kind", "label", "bytes", "location"} == set(row) for row in document)
    if shape == "turns":
        return bool(document) and all({"turn", "role", "messages"} == set(turn) for turn in document)
    if shape == "found":
        fields = {"from", "to", "kind", "role", "line", "text"}
        return set(document) == {"hits", "total"} and all(fields == set(hit) for hit in document["hits"])
    return isinstance(document, shape)


def taught_answers(door: Door) -> list[Answer]:
    """Every taught line, in order, in one door."""
    return [door.run(line) for line in code_lines()]


def test_every_taught_line_runs_and_answers_its_shape() -> None:
    """In one door, in the order taught: names of one line are used in the next."""
    answers = taught_answers(Door(MemoryLog.of_length(60)))

    assert len(answers) == len(SHAPES)
    for answer, shape in zip(answers, SHAPES, strict=True):
        assert answer.shown == (shape is not None)
        assert shape is None or has_shape(answer.json, shape)
    assert answers[-1].output == "turn 40 has 1 parts\n"


def test_the_teaching_text_fits_a_system_prompt() -> None:
    """Under 3 KB."""
    assert len(TEACHING.encode()) < TEACHING_BYTES


def test_the_teaching_text_teaches_every_verb_and_field() -> None:
    """A verb or a field that is not taught is not used."""
    for tag, verb in VERBS.items():
        assert f"{verb.family} `{tag}" in TEACHING
        for field in verb.fields or {}:
            assert f"{field}: " in TEACHING


@pytest.mark.parametrize("name", FAMILIES)
def test_explaining_a_family_says_its_part_of_the_teaching_text(name: str) -> None:
    """One source: what `explain` prints is what the system prompt held."""
    door = Door(MemoryLog.of_length(3))

    assert door.run(f"explain {name}").output == family(name) + "\n"
    assert family(name) in TEACHING


def test_the_page_quotes_the_teaching_text_whole() -> None:
    """docs/door.md is not shipped; the package is the source and the page is held to it."""
    [quoted] = re.findall(r"<!-- teaching text: begin -->\n(.*?)<!-- teaching text: end -->", PAGE, re.DOTALL)

    assert quoted == TEACHING


def test_the_page_names_every_function_and_everything_the_door_has_not() -> None:
    """The reference cannot lag behind the language."""
    for name, builtin in BUILTINS.items():
        if name not in FAMILIES:
            assert f"| {builtin.teaching.split(':')[0].replace('|', chr(92) + '|')} |" in PAGE.replace("`", ""), name
    for word in (*MISSING, *SIGNS):
        assert f"`{word}`" in PAGE.replace("`\\|`", "`|`"), word


def examples() -> list[str]:
    """The reference's own lines of code."""
    return [
        line
        for block in re.findall(r"```ral\n(.*?)```", PAGE, re.DOTALL)
        for line in block.splitlines()
        if line.strip()
    ]


def test_every_example_of_the_page_answers_what_it_says() -> None:
    """A line, and after `# ->` what it prints; `# refused` where it is."""
    door = Door(MemoryLog.of_length(60))
    shown = 0
    for line in examples():
        source, _, expected = line.partition("  # -> ")
        if expected == "refused":
            with pytest.raises(DoorRefused):
                door.run(source)
            continue
        answer = door.run(source)
        if expected:
            shown += 1
            assert (answer.text or answer.output.rstrip("\n")) == expected, line
    assert shown > 20
