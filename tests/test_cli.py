"""The command line: the JSON contract, the three forms of every listing, exit codes, help whose examples run."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import click
import pytest
from click.testing import CliRunner

from exarch_sql import Archive
from exarch_sql.audits import audits
from exarch_sql.cli import app, base
from exarch_sql.cli.app import PLACES
from exarch_sql.cli.base import Command
from exarch_sql.demo import session_path

if TYPE_CHECKING:
    from click.testing import Result

ROW = {"from", "to", "role", "kind", "label", "bytes", "location"}
HIT = {"from", "to", "kind", "role", "line", "text"}

# a listing of each kind on the lawful archive, and whether its document is the list of its lines
LISTINGS: dict[str, tuple[list[str], str | None]] = {
    "logs": (["logs", "A"], ""),
    "survey": (["survey", "A"], "rows"),
    "survey --at": (["survey", "A", "--at", "12"], "rows"),
    "survey --log": (["survey", "A", "--log", "child"], "rows"),
    "index": (["index", "A"], ""),
    "under": (["under", "A", "1", "3"], ""),
    "read": (["read", "A", "1-3", "5"], ""),
    "grep": (["grep", "A", "the"], "hits"),
    "render": (["render", "A"], ""),
    "stats": (["stats", "A"], None),
    "sql": (["sql", "A", "SELECT seq, kind FROM records"], ""),
    "audit": (["audit", "A"], ""),
    "audit NAME": (["audit", "A", "evictions"], ""),
    "audit all": (["audit", "A", "all"], ""),
    "evict": (["evict", "A", "14", "14", "--note", "gone"], "rows"),
    "force": (["force", "A", "--keep", "300"], "rows"),
    "rewind": (["rewind", "A", "14"], "rows"),
    "fork": (["fork", "A", "another"], "rows"),
}


pytestmark = pytest.mark.usefixtures("unbounded_memory")


@pytest.fixture
def archive(lawful_copy: Path) -> Path:
    """A lawful archive of one's own."""
    return lawful_copy


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder such as the examples speak of: an archive, its head, a session, and the script on the path."""
    folder = tmp_path_factory.mktemp("bench")
    script = folder / "exarch-sql"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m exarch_sql "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    shutil.copy(session_path(), folder / "session.jsonl")
    with Archive.open(folder / "agent.exarch") as archive:
        for number in range(5):
            archive.trunk.prompt(f"prompt {number}: run the parser")
            call = {"type": "tool_call", "id": f"c{number}", "name": "Bash", "arguments": {"command": "parse"}}
            archive.trunk.assistant({"role": "assistant", "parts": [call]})
            archive.trunk.tool_results([{"id": f"c{number}", "content": "it said: error"}])
            archive.trunk.assistant("the parser said: error" * 10)
        archive.trunk.evict(2, 3, "the first round")
        head = archive.head()
    (folder / "agent.head").write_text(json.dumps(head.to_dict()), encoding="utf-8")
    return folder


def run(*args: str | Path, stdin: str | None = None) -> Result:
    """Run a command line in this process."""
    return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin, catch_exceptions=False)


def answer(*args: str | Path, stdin: str | None = None) -> Any:
    """What a command that must succeed prints, as JSON."""
    result = run(*args, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def commands() -> list[tuple[str, click.Command]]:
    """Every registered command."""
    context = click.Context(app)
    found = [(name, app.get_command(context, name)) for name in PLACES]
    return [(name, command) for name, command in found if command is not None]


class TestTheContract:
    """The JSON of design section 12, field by field, equal to what the Python API answers."""

    def test_survey_index_under_and_logs_are_the_apis_own_answers(self, archive: Path) -> None:
        """One type gives both."""
        with Archive.open(archive, readonly=True) as file:
            log = file.trunk
            assert answer("survey", archive, "--json") == log.survey().to_dict()
            assert answer("survey", archive, "--at", "12", "--json") == log.survey(at=12).to_dict()
            assert answer("index", archive, "--json") == [row.to_dict() for row in log.index()]
            assert answer("index", archive, "--at", "20", "--json") == [row.to_dict() for row in log.index(at=20)]
            assert answer("under", archive, "1", "3", "--json") == [row.to_dict() for row in log.under(1, 3)]
            assert answer("logs", archive, "--json") == [one.to_dict() for one in file.logs()]
            assert answer("survey", archive, "--log", "2", "--json") == file.log("child").survey().to_dict()

    def test_rows_have_exactly_their_fields_and_locations_their_three_forms(self, archive: Path) -> None:
        """A location is a word, or the span it lies under."""
        rows = answer("index", archive, "--json")

        assert all(set(row) == ROW for row in rows)
        assert {"resident", "withdrawn"} <= {row["location"] for row in rows if isinstance(row["location"], str)}
        spans = [row["location"]["under"] for row in rows if isinstance(row["location"], dict)]
        assert spans
        assert all(set(span) == {"from", "to"} for span in spans)
        assert set(answer("survey", archive, "--json")) == {"rows", "total-bytes"}

    def test_read_and_grep_and_render_give_messages_and_hits(self, archive: Path) -> None:
        """OpenTelemetry messages, unclipped; hits with their total."""
        read = answer("read", archive, "1-2", "--json")
        assert [(turn["turn"], turn["role"]) for turn in read] == [(1, "user"), (2, "assistant")]
        assert all(set(turn) == {"turn", "role", "messages"} for turn in read)
        assert all({"role", "parts"} <= set(message) for turn in read for message in turn["messages"])

        found = answer("grep", archive, "the", "--json")
        assert set(found) == {"hits", "total"}
        assert found["total"] == len(found["hits"]) > 0
        assert all(set(hit) == HIT for hit in found["hits"])
        assert {hit["from"] for hit in answer("grep", archive, ".", "--turns", "1-2,5", "--json")["hits"]} <= {1, 2, 5}

        with Archive.open(archive, readonly=True) as file:
            assert answer("render", archive, "--json") == file.trunk.render()
            assert answer("render", archive, "--format", "anthropic") == file.trunk.render("anthropic")

    def test_head_is_one_line_that_verify_takes_from_a_file_stdin_or_inline(
        self, archive: Path, tmp_path: Path
    ) -> None:
        """What an auditor keeps is what an auditor gives back."""
        line = run("head", archive).stdout
        assert set(json.loads(line)) == {"lineage", "seq", "digest"}
        kept = tmp_path / "kept.head"
        kept.write_text(line, encoding="utf-8")
        run("evict", archive, "14", "14", "--note", "later")

        for against, stdin in ((kept, None), ("-", line), (line, None)):
            result = run("verify", archive, "--against", against, stdin=stdin)
            assert result.exit_code == 0
            assert "up to record" in result.stdout

    def test_verify_reports_in_full_with_json(self, archive: Path) -> None:
        """The report's own fields."""
        report = answer("verify", archive, "--json")

        assert report["ok"] is True
        assert set(report) == {"ok", "faults", "counts", "records", "blobs", "logs", "redacted", "head"}
        assert report["head"] == answer("head", archive)

    def test_sql_gives_objects_with_hexadecimal_blobs_and_names_of_their_own(self, archive: Path) -> None:
        """What JSON has no value for is text; no column is lost to another of its name."""
        sql = "SELECT 1 AS a, 2 AS a, 9e999 AS b, x'0aff' AS c, NULL AS d"

        assert answer("sql", archive, sql, "--json") == [{"a": 1, "a_2": 2, "b": "inf", "c": "0aff", "d": None}]

    def test_a_pipe_is_imported_whole(self, tmp_path: Path) -> None:
        """Past fault: looking at what kind of file it is ate the beginning of a pipe, and the rest was imported."""
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        feeder = threading.Thread(target=lambda: pipe.write_bytes(session_path().read_bytes()))
        feeder.start()
        (piped,) = answer("import", pipe, "--into", tmp_path / "a.exarch", "--json")
        feeder.join()
        (whole,) = answer("import", session_path(), "--into", tmp_path / "b.exarch", "--json")

        assert piped | {"file": "", "path": ""} == whole | {"file": "", "path": ""}

    def test_sql_reads_its_query_from_stdin(self, archive: Path) -> None:
        """A dash is stdin everywhere."""
        assert answer("sql", archive, "-", "--json", stdin="SELECT 7 AS n") == [{"n": 7}]

    def test_sql_says_when_rows_were_left_out(self, archive: Path) -> None:
        """On stderr: stdout is data."""
        result = run("sql", archive, "SELECT seq FROM records", "--rows", "3", "--nl")

        assert len(result.stdout.splitlines()) == 3
        assert "the first 3 rows; there are more" in result.stderr

    def test_every_audit_runs_by_name_and_all_of_them_together(self, archive: Path) -> None:
        """The list, one, and all agree on what there is."""
        names = [one["name"] for one in answer("audit", archive, "--json")]
        together = answer("audit", archive, "all", "--json")

        assert names == [one.name for one in audits()] == [one["name"] for one in together]
        for one in together:
            assert answer("audit", archive, one["name"], "--json") == one["rows"]


class TestListings:
    """Every listing has three forms, and they say the same."""

    @pytest.mark.parametrize("what", LISTINGS)
    def test_the_document_the_lines_and_the_table_agree(self, lawful_file: Path, tmp_path: Path, what: str) -> None:
        """Each on a fresh copy, for some of them edit."""
        args, inside = LISTINGS[what]
        results = []
        for form in ("--json", "--nl", None):
            copy = Path(shutil.copy(lawful_file, tmp_path / "copy.exarch"))
            line = [str(copy) if arg == "A" else arg for arg in args] + ([form] if form else [])
            results.append(run(*line))
            assert results[-1].exit_code == 0, results[-1].stderr
            for side in tmp_path.iterdir():
                side.unlink()
        document, lines, table = results

        whole = json.loads(document.stdout)
        parts = [json.loads(line) for line in lines.stdout.splitlines()]
        assert document.stdout.count("\n") == 1
        assert parts == ([whole] if inside is None else whole[inside] if inside else whole)
        assert table.stdout.strip()
        assert len(table.stdout.splitlines()) >= len(parts)

    def test_clear_prints_an_empty_survey_in_every_form(self, archive: Path) -> None:
        """No rows are no data, not an error."""
        assert answer("clear", archive, "--json") == {"rows": [], "total-bytes": 0}
        nothing = run("survey", archive)
        assert (nothing.exit_code, nothing.stdout) == (0, "")
        assert "nothing to show" in nothing.stderr
        assert run("survey", archive, "--nl").stdout == ""

    def test_a_table_off_a_terminal_is_plain_and_a_row_a_line(self, archive: Path) -> None:
        """For `grep` and `awk`: no boxes, no colour, no wrapping, no blanks at the end."""
        lines = run("index", archive).stdout.splitlines()

        assert len(lines) == 1 + len(answer("index", archive, "--json"))
        assert lines[0].split() == ["turns", "role", "kind", "bytes", "location", "label"]
        assert all(line == line.rstrip() for line in lines)
        assert all(line.isprintable() for line in lines)

    def test_a_survey_ends_in_its_total(self, archive: Path) -> None:
        """The sum that `render` sends."""
        total = answer("survey", archive, "--json")["total-bytes"]

        assert run("survey", archive).stdout.splitlines()[-1].split() == ["total", f"{total:,}"]

    def test_spans_are_written_as_read_takes_them(self, archive: Path) -> None:
        """What stands in the first column can be pasted."""
        for line in run("index", archive).stdout.splitlines()[1:]:
            assert run("read", archive, line.split()[0]).exit_code == 0

    def test_read_for_eyes_keeps_lines_and_names_calls_and_results(self, archive: Path) -> None:
        """Nothing clipped: every part has its heading."""
        text = run("read", archive, "1-2").stdout

        assert "== turn 1, user ==" in text
        assert "user, image/png of about" in text
        assert "assistant, reasoning" in text
        assert "call c1 of" in text
        assert "result of c2" in text

    def test_edits_tell_the_bytes_before_and_after_on_stderr(self, archive: Path) -> None:
        """The numbers of the survey before, and of the one that is printed."""
        before = answer("survey", archive, "--json")["total-bytes"]
        result = run("evict", archive, "14", "14", "--note", "-", "--json", stdin="from stdin\n")
        after = json.loads(result.stdout)

        assert result.stderr == f"exarch-sql: trunk: {before:,} bytes before, {after['total-bytes']:,} now\n"
        assert ("from stdin", 14) in [(row["label"], row["from"]) for row in after["rows"]]

    def test_more_hits_than_are_shown_are_counted(self, archive: Path) -> None:
        """The hundred oldest, and a word on stderr."""
        with Archive.open(archive) as file:
            log = file.log("empty")
            log.prompt("\n".join(["needle"] * 150))
            log.assistant("ok")
        result = run("grep", archive, "needle", "--log", "empty", "--nl")

        assert len(result.stdout.splitlines()) == 100
        assert "the 100 oldest of 150 hits" in result.stderr


class TestImport:
    """Transcripts in: once, again, from stdin, several, and what is none."""

    def test_importing_twice_adds_nothing(self, tmp_path: Path) -> None:
        """The second report says so."""
        first, again = (
            answer("import", session_path(), "--into", tmp_path / "new.exarch", "--json")[0] for _ in range(2)
        )

        assert first["new-records"] > 0
        assert again["new-records"] == 0
        assert first["file"] == str(session_path())

    def test_stdin_is_a_file_like_any_other(self, tmp_path: Path) -> None:
        """The same turns come of it."""
        text = session_path().read_text(encoding="utf-8")
        (report,) = answer("import", "-", "--into", tmp_path / "a.exarch", "--json", stdin=text)
        answer("import", session_path(), "--into", tmp_path / "b.exarch", "--json")

        assert report["file"] == "-"
        assert answer("survey", tmp_path / "a.exarch", "--json") == answer("survey", tmp_path / "b.exarch", "--json")

    def test_a_log_may_be_named(self, archive: Path) -> None:
        """The session goes there, and nowhere else."""
        (report,) = answer("import", session_path(), "--into", archive, "--log", "empty", "--json")

        assert report["log"] == "empty"
        assert run("import", session_path(), "--into", archive, "--log", "nope").exit_code == 1

    def test_what_is_no_transcript_is_named_and_the_rest_is_imported(self, tmp_path: Path) -> None:
        """One bad file of many is no reason to leave the others."""
        bad = tmp_path / "bad.txt"
        bad.write_text("hello\n", encoding="utf-8")
        result = run("import", bad, session_path(), "--into", tmp_path / "a.exarch", "--nl")

        assert result.exit_code == 1
        assert "bad.txt" in result.stderr
        assert "1 of 2 files were not imported" in result.stderr
        assert json.loads(result.stdout)["file"] == str(session_path())


def lines_of(*lines: str) -> list[list[str]]:
    """Command lines, split as a shell would."""
    return [shlex.split(line) for line in lines]


USAGE = lines_of(
    "frob", "surve A", "", "survey", "survey A extra", "survey A --frob", "survey A --json --nl", "index A --nl --json",
    "logs A --json --nl", "head A --json --nl", "verify A --json --nl", "evict A 1 2 --note x --json --nl",
    "survey A --at", "survey A --at x", "survey A --at 1.5", "under A 1", "under A 1 x", "under A one 2", "read A",
    "read A x", "read A 3-1", "read A 1-", "read A -- -1", "read A 1,,2", "read A 1-2-3", "read A ''", "read A 1e3", "read A ٣",
    "read A 99999999999999999999", "grep A", "grep A x --turns", "grep A x --turns y", "grep A x --turns 9-1",
    "render A --format xml", "evict A 1 2", "evict A 1 --note x", "evict A a 2 --note x", "evict A 1 2 3 --note x",
    "force A --keep -1", "force A --keep x", "rewind A", "rewind A x", "fork A", "sql A", "sql A x --rows 0",
    "sql A x --rows 99999999", "sql A x --seconds 0", "sql A x --seconds nan2", "verify A --against", "verify A --against nope",
    "verify A --against .", "verify A --against '{}'", "verify A --against '{'", "verify A --against '[]'",
    """verify A --against '{"lineage": "x", "seq": 0, "digest": "00"}'""",
    """verify A --against '{"lineage": "x", "seq": true, "digest": "00"}'""",
    """verify A --against '{"lineage": 1, "seq": 1, "digest": "00"}'""",
    """verify A --against '{"lineage": "x", "seq": 1, "digest": "zz"}'""",
    "import", "import S", "import --into A", "import nope --into A", "import . --into A", "import S --into", "demo extra",
)  # fmt: skip

REFUSED = lines_of(
    "survey A --log nope", "survey A --log 99", "survey A --at 0", "survey A --at -1", "survey A --at 99999",
    "survey A --at 9999999999999999999999", "index A --at 0", "render A --at 0", "under A 1 2", "under A 99 99",
    "under A 3 1", "under A -- -1 2", "under A 1 99999999999999999999", "read A 99", "read A 1-99", "read A 0",
    "read A 1-999999999999", "read A 1 --log nope", "grep A '('", "grep A '(?=x)'", "grep A '\\1'", "grep A x --turns 99",
    "grep A x --turns 1-999999999999", "evict A 2 1 --note x", "evict A 1 99 --note x", "evict A 2 3 --note x",
    "evict A 14 14 --note ''", "evict A 14 14 --note 'a\nb'", "evict A 99999999999999999999 1 --note x", "rewind A 99",
    "rewind A 2", "rewind A 0", "rewind A --log owing 1", "clear A --log owing", "force A --log owing", "force A --keep 999999",
    "fork A trunk", "fork A ''", "fork A ' x'", "fork A 7", "sql A 'DELETE FROM records'", "sql A ''", "sql A 'SELECT 1; SELECT 2'",
    "audit A nope", "audit A ALL", "import A --into A", "import S --into A --log nope",
)  # fmt: skip
REFUSED += [
    ["evict", "A", "14", "14", "--note", "x" * 241],
    ["fork", "A", "x\x1b[31m"],
    ["read", "A", "16", "--log", "owing"],
]

ON_A_FILE = lines_of(
    "logs A", "survey A", "index A", "under A 1 3", "read A 1", "grep A x", "render A", "evict A 1 1 --note x", "force A",
    "rewind A 1", "clear A", "fork A x", "sql A 'SELECT 1'", "audit A", "audit A tools", "audit A all", "verify A", "head A",
    "stats A", "rebuild A", "migrate A",
)  # fmt: skip


def filled(line: list[str], archive: Path) -> list[str]:
    """The line with the archive for ``A`` and a session for ``S``."""
    return [{"A": str(archive), "S": str(session_path())}.get(arg, arg) for arg in line]


class TestExitCodes:
    """0 done, 1 refused, 2 usage, 3 foreign or damaged, 4 busy; one message on stderr, nothing on stdout, no traceback."""

    @staticmethod
    def told(result: Result, code: int) -> str:
        """The one message of a command that failed."""
        assert result.exit_code == code, (result.exit_code, result.stderr, result.stdout)
        assert result.stdout == ""
        assert result.stderr.strip()
        assert "Traceback" not in result.stderr
        return result.stderr

    @pytest.mark.parametrize("line", USAGE, ids=shlex.join)
    def test_what_cannot_be_meant_is_a_usage_error(self, archive: Path, line: list[str]) -> None:
        """Found before the file is touched."""
        before = archive.read_bytes()
        self.told(run(*filled(line, archive)), 2)

        assert archive.read_bytes() == before

    @pytest.mark.parametrize("line", REFUSED, ids=lambda line: shlex.join(line)[:60])
    def test_what_the_archive_will_not_do_is_refused(self, archive: Path, line: list[str]) -> None:
        """And nothing is written."""
        with Archive.open(archive, readonly=True) as file:
            before = file.head()
        result = run(*filled(line, archive))

        assert self.told(result, 1).startswith("exarch-sql: ")
        with Archive.open(archive, readonly=True) as file:
            assert file.head() == before

    @pytest.mark.parametrize("line", ON_A_FILE, ids=shlex.join)
    def test_a_missing_file_is_no_archive_and_is_not_made(self, tmp_path: Path, line: list[str]) -> None:
        """Only import makes one: a typing error must not leave an empty archive behind."""
        self.told(run(*filled(line, tmp_path / "missing.exarch")), 3)

        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("line", ON_A_FILE, ids=shlex.join)
    @pytest.mark.parametrize("kind", ["folder", "text", "empty", "foreign", "newer"])
    def test_what_is_no_lineage_is_left_as_it_is(
        self, archive: Path, tmp_path: Path, kind: str, line: list[str]
    ) -> None:
        """A folder, a text, nothing, another program's database, a format to come."""
        path = tmp_path / "file"
        if kind == "folder":
            path.mkdir()
        elif kind == "foreign":
            sqlite3.connect(path).execute("CREATE TABLE t (a)").connection.close()
        elif kind == "newer":
            data = bytearray(archive.read_bytes())
            data[60:64] = (99).to_bytes(4, "big")
            path.write_bytes(data)
        else:
            path.write_text("hello\n" * 40 if kind == "text" else "", encoding="utf-8")
        before = path.read_bytes() if path.is_file() else b""

        assert str(path) in self.told(run(*filled(line, path)), 3)
        assert (path.read_bytes() if path.is_file() else b"") == before

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_a_file_that_may_not_be_read_is_named(self, archive: Path) -> None:
        """Permission denied is said, not shown."""
        archive.chmod(0)

        assert "Permission denied" in self.told(run("survey", archive), 3)

    def test_import_into_what_is_no_lineage(self, tmp_path: Path) -> None:
        """Nor is an archive made where no folder is."""
        foreign = tmp_path / "foreign"
        foreign.write_text("x" * 200, encoding="utf-8")
        for into in (foreign, tmp_path, tmp_path / "no" / "folder.exarch"):
            self.told(run("import", session_path(), "--into", into), 3)

    def test_an_altered_body_is_found_and_named(self, archive: Path) -> None:
        """By verify as a fault, by reading as a bad file, by a head kept elsewhere."""
        kept = run("head", archive).stdout
        with sqlite3.connect(archive) as db:
            triggers = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
            for name, _ in triggers:
                db.execute(f"DROP TRIGGER {name}")
            db.execute("UPDATE records SET body = replace(body, 'turned', 'burned') WHERE turn = 5")
            for _, sql in triggers:
                db.execute(sql)
        db.close()

        for form in ([], ["--json"], ["--nl"], ["--against", kept]):
            result = run("verify", archive, *form)
            assert result.exit_code == 3
            assert "body" in result.stdout
            assert "is not lawful" in result.stderr
        assert json.loads(run("verify", archive, "--json").stdout)["ok"] is False
        assert "run verify" in self.told(run("read", archive, "5"), 3)

    def test_a_schema_that_was_changed_is_refused_by_all_and_judged_by_verify(self, archive: Path) -> None:
        """The one command that opens what is not lawful says all that is wrong with it."""
        with sqlite3.connect(archive) as db:
            db.execute("DROP TRIGGER records_are_admitted")
            db.execute("CREATE VIEW planted AS SELECT 1")
        db.close()

        assert "schema" in self.told(run("survey", archive), 3)
        report = json.loads(run("verify", archive, "--json").stdout)
        assert {fault["where"] for fault in report["faults"]} >= {"trigger records_are_admitted", "view planted"}

    def test_a_head_of_another_past_is_a_fault(self, archive: Path) -> None:
        """Altered, cut off, or of another lineage."""
        kept = json.loads(run("head", archive).stdout)
        for change in ({"digest": "0" * 64}, {"seq": kept["seq"] + 1}, {"lineage": "another"}):
            assert run("verify", archive, "--against", json.dumps(kept | change)).exit_code == 3

    def test_a_fold_that_was_wrong_is_rebuilt_and_named(self, archive: Path) -> None:
        """A row taken from under the triggers comes back."""
        assert "not one row changed" in run("rebuild", archive).stderr
        with sqlite3.connect(archive) as db:
            (trigger,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'residues_are_not_deleted'").fetchone()
            db.execute("DROP TRIGGER residues_are_not_deleted")
            db.execute("DELETE FROM residues WHERE seq = (SELECT max(seq) FROM residues)")
            db.execute(trigger)
        db.close()

        assert run("verify", archive).exit_code == 3
        assert "residues" in run("rebuild", archive).stdout
        assert run("verify", archive).exit_code == 0
        assert answer("rebuild", archive, "--json") == {"changes": []}

    def test_a_file_that_is_held_is_busy(self, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """After the bounded wait; readers do not wait at all."""
        monkeypatch.setattr(base.Archive, "open", partial(Archive.open, timeout=0.05))
        other = apsw.Connection(
            str(archive)
        )  # of the same library: locks of another one in this process would not be seen
        other.execute("BEGIN IMMEDIATE")

        assert "try again" in self.told(run("clear", archive), 4)
        assert run("survey", archive).exit_code == 0
        other.close()

    def test_a_fault_of_ours_is_told_as_one(self, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not as a refusal, and with a traceback only on request."""
        monkeypatch.setattr(Archive, "logs", lambda _: {}["gone"])

        assert "a fault of exarch_sql itself, KeyError: 'gone'" in self.told(run("logs", archive), 70)
        monkeypatch.setenv("EXARCH_SQL_DEBUG", "1")
        with pytest.raises(KeyError):
            run("logs", archive)


class TestHelp:
    """Every command is documented, and what the help shows runs."""

    def test_the_group_lists_every_command_and_exit_code(self) -> None:
        """`--help` succeeds; no command at all is a usage error that shows the same."""
        text = run("--help").stdout
        for name, command in commands():
            assert f"  {name} " in text
            assert command.get_short_help_str(20)
        for code in (0, 1, 2, 3, 4, 70, 130, 141):
            assert f"\n  {code} " in text
        assert run("--version").stdout.startswith("exarch-sql")

    def test_a_near_miss_is_named(self) -> None:
        """A command that is nearly right."""
        assert "did you mean survey?" in run("survy").stderr

    @pytest.mark.parametrize("name", PLACES)
    def test_each_command_has_help_with_examples(self, name: str) -> None:
        """What it does, its options, and lines to try."""
        result = run(name, "--help")
        command = dict(commands())[name]

        assert result.exit_code == 0
        assert isinstance(command, Command)
        assert command.help
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.help
        assert command.examples
        for example in command.examples:
            assert f"exarch-sql {name}" in example
            assert example in result.stdout
        listing = {option for parameter in command.params for option in parameter.opts}
        assert name == "demo" or {"--json", "--nl"} <= listing

    @pytest.mark.parametrize(
        "example",
        [example for _, command in commands() if isinstance(command, Command) for example in command.examples],
    )
    def test_each_example_runs_as_it_stands(self, bench: Path, tmp_path: Path, example: str) -> None:
        """In a shell where it needs one, else in this process; each on a fresh copy."""
        shutil.copytree(bench, tmp_path, dirs_exist_ok=True)
        if any(sign in example for sign in "|<>") or "demo" in example:
            env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
            env["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
            done = subprocess.run(
                ["sh", "-c", example], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
            )
            assert (done.returncode, done.stderr) == (0, "")
            return
        here = Path.cwd()
        os.chdir(tmp_path)
        try:
            result = run(*shlex.split(example)[1:])
        finally:
            os.chdir(here)
        assert result.exit_code == 0, result.stderr
        nothing = ("nothing to show", "not one row changed", "nothing was done")
        assert result.stdout or any(words in result.stderr for words in nothing)
