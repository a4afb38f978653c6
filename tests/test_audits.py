"""The audits: each answers on the oldest SQLite an auditor has, says what is so, and stands in the cookbook."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from exarch_sql import Archive, Refused
from exarch_sql.audits import audit, audits, cookbook
from exarch_sql.query import query

if TYPE_CHECKING:
    from exarch_sql import Log

ROOT = Path(__file__).resolve().parents[1]
NAMES = [one.name for one in audits()]


def calling(call: str, tool: str) -> dict[str, Any]:
    """A reply that calls one tool."""
    part = {"type": "tool_call", "id": call, "name": tool, "arguments": {"path": "a.py"}}
    return {"role": "assistant", "parts": [part]}


def work(log: Log, call: str, tool: str, answer: str) -> None:
    """A prompt, a call, its result and a reply: two turns and their close."""
    log.prompt(f"prompt {call}")
    log.assistant(calling(call, tool))
    log.tool_results([{"id": call, "content": answer}])
    log.assistant(f"done {call}")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive in which every audit has something to find; turns come in threes: prompt, call, reply."""
    path = tmp_path_factory.mktemp("audits") / "a.exarch"
    with Archive.open(path, durability="off") as archive:
        log = archive.trunk
        work(log, "c1", "Read", "long " * 100)
        work(log, "c2", "Bash", "short")
        work(log, "c3", "Read", "long " * 100)
        log.usage(turn=2, model="m", input_tokens=100, cache_read_input_tokens=300, output_tokens=7)
        log.evict(1, 3, "first")
        log.evict(4, 4, "second")
        log.evict(1, 4, "over both")
        log.witness(
            "door", {"line": "`read [turns: [2, 9]]", "bytes": 900, "refused": False, "verb": "read", "turns": [2, 9]}
        )
        log.evict(5, 6, "never looked at again")
        log.prompt("and now?")
        log.steer("only the red ones")
        log.assistant(calling("c4", "Bash"))
        child = log.fork("child")
        child.prompt("in the child")
        child.assistant(calling("d1", "Bash"))
        log.tool_results([{"id": "c4", "content": "late"}])
        log.assistant("going")
        log.error("the network was away")
        log.rewind(10)
        log.note("secret remark")
        (seq,) = (row[0] for row in query(path, "SELECT max(seq) FROM records").rows)
        archive.redact(seq, reason="a secret")
    return path


def rows(path: Path, name: str) -> list[dict[str, Any]]:
    """An audit's answer as objects."""
    found = query(path, audit(name).sql, seconds=60)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


class TestTheShippedAudits:
    """What holds for all of them."""

    def test_there_are_about_a_dozen_each_with_all_its_parts(self) -> None:
        """A question in words, how to read the answer, and one statement that ends."""
        assert len(NAMES) == len(set(NAMES)) >= 12
        for one in audits():
            assert one.question.endswith("?")
            assert len(one.reading) > 60
            assert one.sql.startswith(("SELECT", "WITH"))
            assert one.sql.endswith(";")

    @pytest.mark.parametrize("name", NAMES)
    def test_each_answers_the_same_here_and_on_pythons_own_sqlite(self, path: Path, name: str) -> None:
        """Auditors have what their system has; the schema promises 3.40."""
        found = query(path, audit(name).sql, seconds=60)
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            cursor = db.execute(audit(name).sql)

            assert cursor.fetchall() == list(found.rows)
            assert tuple(column[0] for column in cursor.description) == found.columns
        assert found.rows, "the archive of this module has something for every audit"

    @pytest.mark.parametrize("name", NAMES)
    def test_each_answers_on_an_archive_of_every_state(self, lawful_file: Path, tmp_path: Path, name: str) -> None:
        """Forks of forks, owing logs, blobs and empty logs break none of them."""
        copy = shutil.copy(lawful_file, tmp_path / "copy.exarch")

        assert query(copy, audit(name).sql, seconds=60).columns

    @pytest.mark.skipif(shutil.which("sqlite3") is None, reason="no sqlite3 shell")
    def test_the_file_itself_runs_in_the_shell(self, path: Path) -> None:
        """`sqlite3 lineage.exarch < audits.sql` is what the cookbook tells an auditor to type."""
        sql = (ROOT / "exarch_sql" / "audits.sql").read_bytes()
        done = subprocess.run(["sqlite3", "-readonly", "-bail", str(path)], input=sql, capture_output=True, check=False)

        assert (done.returncode, done.stderr) == (0, b"")
        assert b"never looked at again" in done.stdout

    def test_an_unknown_audit_is_refused_with_the_nearest(self) -> None:
        """One that is nearly right is named."""
        with pytest.raises(Refused, match=r"no audit 'tool': did you mean tools\? the audits are biggest, "):
            audit("tool")


class TestTheCookbook:
    """The page is made from the file."""

    def test_it_is_up_to_date(self) -> None:
        """To make it again: ``python -m exarch_sql.audits > docs/cookbook.md``."""
        assert (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8") == cookbook()

    def test_the_line_it_names_makes_it_again(self) -> None:
        """The documented way to regenerate runs as it stands."""
        done = subprocess.run([sys.executable, "-m", "exarch_sql.audits"], capture_output=True, text=True, check=True)

        assert done.stdout == cookbook()

    def test_it_holds_every_audit(self) -> None:
        """Name, question and statement."""
        page = cookbook()
        for one in audits():
            assert f"## {one.name}\n\n**{one.question}**" in page
            assert one.sql in page


class TestWhatTheySay:
    """Answers that can be told from how the archive was written."""

    def test_biggest_is_the_frontier_by_weight(self, path: Path) -> None:
        """Shares are of the log's own context, and add up."""
        found = [row for row in rows(path, "biggest") if row["log"] == "trunk"]
        with Archive.open(path, readonly=True) as archive:
            survey = archive.trunk.survey()

        assert sorted(row["bytes"] for row in found) == sorted(row.bytes for row in survey.rows)
        assert found == sorted(found, key=lambda row: -row["bytes"])
        assert sum(row["share_percent"] for row in found) == pytest.approx(100, abs=0.5)

    @pytest.mark.parametrize("which", ["own", "lawful"])
    def test_context_is_the_survey_at_each_moment(
        self, path: Path, lawful_file: Path, tmp_path: Path, which: str
    ) -> None:
        """Worked out from lifetimes, it must equal the survey as of the record, in every log, whatever was inherited."""
        file = path if which == "own" else shutil.copy(lawful_file, tmp_path / "copy.exarch")
        found = rows(Path(file), "context")
        with Archive.open(file, readonly=True) as archive:
            for row in found:
                survey = archive.log(row["log"]).survey(at=row["at"])

                assert (row["items"], row["bytes"]) == (len(survey.rows), survey.total_bytes), row
        assert len({row["at"] for row in found}) > 5

    def test_evictions_are_counted_by_author(self, path: Path) -> None:
        """All four were the model's, and what they saved is the fall of the context."""
        (found,) = rows(path, "evictions")

        assert (found["log"], found["author"], found["evictions"], found["items"]) == (
            "trunk",
            "model",
            4,
            3 + 1 + 2 + 2,
        )

    def test_unread_are_the_evictions_nothing_came_back_from(self, path: Path) -> None:
        """Turn 2 was read after the first and the third, turn 9 was still there; nobody looked under 4 or 5-6."""
        assert [row["note"] for row in rows(path, "unread")] == ["second", "never looked at again"]

    def test_read_back_counts_what_had_departed(self, path: Path) -> None:
        """Of the two turns that the line brought, one was still in the context."""
        (found,) = rows(path, "read-back")

        assert (found["turns"], found["departed"], found["line"]) == (2, 1, "`read [turns: [2, 9]]")

    def test_notes_over_notes_are_both_shown(self, path: Path) -> None:
        """The wide one covers the two before it."""
        found = rows(path, "notes-over-notes")

        assert [(row["note"], row["covers_note"]) for row in found] == [("over both", "first"), ("over both", "second")]

    def test_tools_are_counted_with_their_results(self, path: Path) -> None:
        """The largest answerer first."""
        found = rows(path, "tools")

        assert [(row["name"], row["calls"], row["results"], row["bytes"]) for row in found] == [
            ("Read", 2, 2, 1000),
            ("Bash", 3, 2, 9),
        ]

    def test_owed_calls_are_those_without_results(self, tmp_path: Path, path: Path) -> None:
        """A log that waits for results shows its calls until they come."""
        assert [(row["log"], row["id"]) for row in rows(path, "owed")] == [("child", "d1")]
        with Archive.open(tmp_path / "owing.exarch") as archive:
            archive.trunk.prompt("go")
            archive.trunk.assistant(calling("x1", "Read"))

            assert [row["id"] for row in rows(tmp_path / "owing.exarch", "owed")] == ["x1"]

            archive.trunk.tool_results([{"id": "x1", "content": "y"}])

            assert rows(tmp_path / "owing.exarch", "owed") == []

    def test_duplicates_weigh_what_was_repeated(self, path: Path) -> None:
        """The same 500 bytes twice; a short answer is not worth a row."""
        (found,) = rows(path, "duplicates")

        assert (found["name"], found["times"], found["bytes"], found["repeated_bytes"]) == ("Read", 2, 500, 500)

    def test_tokens_stand_beside_bytes(self, path: Path) -> None:
        """Three quarters of the input came from the cache."""
        (found,) = rows(path, "tokens")

        assert (found["turn"], found["output_tokens"], found["cached_percent"]) == (2, 7, 75.0)
        assert found["bytes"] > 500

    def test_forks_show_what_they_inherited(self, path: Path) -> None:
        """The owing turn is inherited and withdrawn, so it is not in the fork's context."""
        (found,) = rows(path, "forks")

        assert (found["log"], found["parent"], found["inherited_to"], found["own_turns"]) == ("child", "trunk", 11, 2)

    def test_withdrawn_runs_name_their_edit(self, path: Path) -> None:
        """A fork with calls owing, then a rewind."""
        found = rows(path, "withdrawn")

        assert [(row["log"], row["kind"], row["span_from"], row["span_to"], row["turns"]) for row in found] == [
            ("child", "opened", 11, 11, 1),
            ("trunk", "rewound", 10, 12, 3),
        ]

    def test_steering_errors_and_redactions_are_listed(self, path: Path) -> None:
        """Who stepped in, what failed, what was blanked."""
        assert [row["text"] for row in rows(path, "steering")] == ["only the red ones"]
        assert ["network was away" in row["error"] for row in rows(path, "errors")] == [True]
        assert [(row["kind"], row["blank"], row["reason"]) for row in rows(path, "redactions")] == [
            ("note", 1, "a secret")
        ]
