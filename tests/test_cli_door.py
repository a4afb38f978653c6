"""``exarch-sql door`` and ``exarch-sql shell`` as commands: what is printed where, when the file is opened for writing, codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest
from click.testing import CliRunner

from exarch_sql import Archive
from exarch_sql.cli import app, base, printing
from exarch_sql.door import Door
from exarch_sql.errors import Refused

if TYPE_CHECKING:
    from click.testing import Result

ROOT = Path(__file__).resolve().parents[1]
EVICT = "`evict [from: 14, to: 14, note: 'slower was fine']"
EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b1A\u202egnp.exe\u202c\u2028\u180e\U000e0041\x08\x7f"


@pytest.fixture
def archive(lawful_file: Path, tmp_path: Path) -> Path:
    """A lawful archive of one's own."""
    return Path(shutil.copy(lawful_file, tmp_path / "a.exarch"))


def run(*args: str | Path, stdin: str | bytes | None = None) -> Result:
    """Run a command line in this process."""
    return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin, catch_exceptions=False)


def door(archive: Path, *lines: str, options: tuple[str, ...] = ()) -> Result:
    """Run door lines, each a run of its own."""
    return run("door", archive, *options, *(part for line in lines for part in ("-e", line)))


def printed(archive: Path, *lines: str, options: tuple[str, ...] = ()) -> list[str]:
    """The lines that runs which must succeed print."""
    result = door(archive, *lines, options=options)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.splitlines()


def listed(name: str, archive: Path, *args: str) -> Any:
    """What a command of the command line prints, as JSON."""
    return json.loads(run(name, archive, *args, "--json").stdout)


def acting(text: str) -> list[str]:
    """What of a text a terminal would act on, line ends and tabs aside."""
    return [repr(letter) for letter in text if letter not in "\n\t" and printing._ACTING.match(letter)]


class TestRuns:
    """stdin is one run, each -e is one run, and all of them are one session of names."""

    def test_a_run_prints_its_last_value_as_a_literal_that_parses_back(self, archive: Path) -> None:
        """Each verb that reads, on an archive in which every kind of row occurs."""
        with Archive.open(archive, readonly=True) as file:
            opened = Door(file.trunk)
            for line in (
                "`survey",
                "`index",
                "`under [from: 1, to: 3]",
                "`read [turns: [1, 2]]",
                "`grep [pattern: 'the']",
            ):
                (literal,) = printed(archive, line)
                opened.run(f"let printed = {literal}")
                opened.run(f"let answered = {line}")

                assert opened.run("equal $printed $answered").value is True

    def test_json_is_a_document_a_run_by_the_written_contract(self, archive: Path) -> None:
        """What the commands of the same names print; here a record's keys are in order, as the language has them."""
        lines = ("`survey", "`index", "`under [from: 1, to: 3]", "`read [turns: [1, 2]]", "`grep [pattern: 'the']")
        commands = (["survey"], ["index"], ["under", "1", "3"], ["read", "1-2"], ["grep", "the"])
        documents = printed(archive, *lines, options=("--json",))

        assert len(documents) == len(lines)
        for document, (name, *rest) in zip(documents, commands, strict=True):
            assert json.loads(document) == listed(name, archive, *rest)

    def test_nl_is_a_line_for_each_element_and_one_for_what_is_no_list(self, archive: Path) -> None:
        """As the listings have it."""
        rows = [json.loads(line) for line in printed(archive, "`index", options=("--nl",))]
        assert rows == listed("index", archive)
        assert printed(archive, "[a: 1]", "[[1], 2]", "()", options=("--nl",)) == ['{"a": 1}', "[1]", "2", "null"]

    def test_names_last_and_a_run_that_ends_in_let_prints_nothing(self, archive: Path) -> None:
        """Three runs, one answer."""
        lines = ("let found = `grep [pattern: 'the']", "let total = $found[total]", "$[$total > 0]")

        assert printed(archive, *lines) == ["true"]
        assert printed(archive, "let x = 1", options=("--json",)) == []

    def test_stdin_is_one_run(self, archive: Path) -> None:
        """Several statements, one value; with CRLF, and with none at all; a dash among runs is stdin too."""
        result = run("door", archive, stdin="let a = 1\r\n$a\r\nlet b = [\n  $a,\n  2\n]\n$b\n")
        assert (result.exit_code, result.stdout, result.stderr) == (0, "[1, 2]\n", "")
        assert (run("door", archive, stdin="").exit_code, run("door", archive, stdin="").stdout) == (0, "")
        assert run("door", archive, "-e", "let a = 1", "-e", "-", "-e", "$a", stdin="$[$a + 1]").stdout == "2\n1\n"

    def test_what_is_echoed_is_data_beside_a_literal_and_talk_beside_json(self, archive: Path) -> None:
        """So that every line of stdout is a document when documents were asked for."""
        literal = door(archive, 'echo "a b"; 7')
        document = door(archive, 'echo "a b"; 7', options=("--json",))

        assert (literal.stdout, literal.stderr) == ("a b\n7\n", "")
        assert (document.stdout, document.stderr) == ("7\n", "a b\n")
        assert printed(archive, "echo hello") == ["hello"]

    def test_a_log_is_chosen_by_name(self, archive: Path) -> None:
        """A door sees that log's lineage."""
        (survey,) = printed(archive, "`survey", options=("--json", "--log", "child"))

        with Archive.open(archive, readonly=True) as file:
            assert json.loads(survey) == file.log("child").survey().to_dict()

    def test_record_writes_a_witness_of_every_run_and_only_then(self, archive: Path) -> None:
        """The line, the size of the answer, whether it was refused; the file stays lawful."""
        sql = "SELECT body FROM records WHERE kind = 'door' ORDER BY seq"
        before = len(Archive.open(archive, readonly=True).sql(sql).rows)
        printed(archive, "`survey")
        (literal,) = printed(archive, "`read [turns: [2]]", options=("--record",))
        assert door(archive, "`survey x", options=("--record",)).exit_code == 1

        with Archive.open(archive, readonly=True) as file:
            read, refused = [json.loads(str(body)) for (body,) in file.sql(sql).rows[before:]]
            assert file.verify().ok
        assert read == {
            "line": "`read [turns: [2]]", "bytes": len(literal.encode()), "refused": False, "verb": "read", "turns": [2],
        }  # fmt: skip
        assert (refused["line"], refused["refused"]) == ("`survey x", True)


class TestRefusals:
    """A refusal goes to stderr with its caret and the line that would work; exit 1; nothing after it is run."""

    def test_a_refusal_shows_the_place_and_the_line_that_was_meant(self, archive: Path) -> None:
        """All of it on stderr."""
        result = door(archive, "`evict [from:14, to: 14, note: 'x']")

        assert (result.exit_code, result.stdout) == (1, "")
        shown = result.stderr.splitlines()
        assert shown[0].startswith("exarch-sql: `from:14` is one word")
        assert shown[3].index("^") == shown[2].index("from:14")
        assert shown[-1] == "    `evict [from: 14, to: 14, note: 'x']"

    @pytest.mark.parametrize(
        ("option", "stdout", "stderr"), [(None, "a\nb\n", ""), ("--json", "", "a\nb\n"), ("--nl", "", "a\nb\n")]
    )
    def test_what_was_echoed_before_a_failure_is_printed_before_it(
        self, archive: Path, option: str | None, stdout: str, stderr: str
    ) -> None:
        """Where echoes go in that form; then the refusal. A line that never ran has said nothing, and repeats no earlier one."""
        failing = door(archive, "echo a; echo b; `read [turns: [9999]]", options=(option,) if option else ())
        assert (failing.exit_code, failing.stdout) == (1, stdout)
        assert failing.stderr.startswith(stderr + "exarch-sql: ")
        assert "9999" in failing.stderr

        unparsed = door(archive, "echo a", "echo b; (", options=(option,) if option else ())
        assert (unparsed.stdout + unparsed.stderr).count("a\n") == 1
        assert "b\n" not in unparsed.stdout

    def test_the_first_refusal_ends_it(self, archive: Path) -> None:
        """What was printed before it stays; the eviction after it is not made."""
        with Archive.open(archive, readonly=True) as file:
            before = file.head()
        result = door(archive, "7", "`survey x", EVICT)

        assert (result.exit_code, result.stdout) == (1, "7\n")
        with Archive.open(archive, readonly=True) as file:
            assert file.head() == before

    @pytest.mark.parametrize("form", ["--json", "--nl"])
    def test_a_block_has_no_json(self, archive: Path, form: str) -> None:
        """It prints as a literal, and is refused as a document."""
        assert printed(archive, "{ |x| $x }") == ["{ |x| $x }"]
        assert door(archive, "{ |x| $x }", options=(form,)).exit_code == 1

    def test_bytes_that_are_not_utf8_are_refused_by_place(self, archive: Path) -> None:
        """On stdin; as an argument they are a usage error, as everywhere."""
        result = run("door", archive, stdin=b"length '\xff'")

        assert result.exit_code == 1
        assert "line 1, column 9" in result.stderr
        assert acting(result.stderr) == []

    def test_more_than_a_door_reads_is_refused(self, archive: Path) -> None:
        """Without reading an endless stdin to its end."""
        with open("/dev/zero", "rb") as endless:
            done = subprocess.run(
                [sys.executable, "-m", "exarch_sql", "door", archive],
                stdin=endless,
                capture_output=True,
                check=False,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                timeout=60,
            )

        assert (done.returncode, done.stdout) == (1, b"")
        assert b"stdin holds more than 1048576 bytes" in done.stderr

    def test_what_stands_in_the_way_has_its_code(self, archive: Path, tmp_path: Path) -> None:
        """Usage 2, no archive 3, no such log 1."""
        foreign = tmp_path / "foreign"
        foreign.write_text("hello\n" * 40, encoding="utf-8")
        assert door(archive, "1", options=("--json", "--nl")).exit_code == 2
        assert door(archive, "1", options=("--frob",)).exit_code == 2
        for path in (tmp_path / "missing.exarch", foreign, tmp_path):
            for command in ("door", "shell"):
                result = run(command, path, stdin="`survey")
                assert (result.exit_code, result.stdout) == (3, "")
                assert str(path) in result.stderr
        assert "the logs are trunk" in door(archive, "1", options=("--log", "nope")).stderr
        assert run("shell", archive, "--log", "nope", stdin="1").exit_code == 1

    def test_a_held_file_is_busy_for_what_writes_and_open_for_what_reads(
        self, archive: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Exit 4 after the bounded wait."""
        opens = base.Archive.open
        monkeypatch.setattr(base.Archive, "open", lambda path, **how: opens(path, **how, timeout=0.05))
        other = apsw.Connection(str(archive))
        other.execute("BEGIN IMMEDIATE")

        assert door(archive, "`survey").exit_code == 0
        assert door(archive, EVICT).exit_code == 4
        other.close()


class TestOpening:
    """The file is opened for reading, and for writing only when a line evicts or runs are recorded."""

    @pytest.fixture
    def opened(self, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
        """Whether each opening of an archive was for reading only, in order."""
        how: list[bool] = []
        opens = base.Archive.open

        def spy(path: str, *, readonly: bool = False) -> Archive:
            how.append(readonly)
            return opens(path, readonly=readonly)

        monkeypatch.setattr(base.Archive, "open", spy)
        return how

    def test_reading_lines_leave_the_file_as_it_is(self, archive: Path, opened: list[bool]) -> None:
        """Byte for byte, and with the time it was changed."""
        before = archive.read_bytes(), archive.stat().st_mtime_ns
        printed(archive, "`survey", "`index", "`read [turns: [1]]", "`grep [pattern: 'the']")
        assert door(archive, "`evict [from: 3, to: 1, note: 'x']").exit_code == 1

        assert (archive.read_bytes(), archive.stat().st_mtime_ns) == before
        assert opened == [True, True]

    def test_an_eviction_opens_it_for_writing_once_and_names_stay(self, archive: Path, opened: list[bool]) -> None:
        """Before and after it in one session, and twice in it."""
        lines = ("let before = `survey", EVICT, "`evict [from: 12, to: 12, note: 'y']", "length $before[rows]")
        shown = printed(archive, *lines, options=("--json",))

        assert opened == [True, False]
        with Archive.open(archive, readonly=True) as file:
            assert json.loads(shown[1]) == file.trunk.survey().to_dict()
            assert json.loads(shown[2]) == len(file.trunk.survey(at=file.head().seq - 2).rows)
            assert file.verify().ok

    def test_recording_opens_it_for_writing_at_once(self, archive: Path, opened: list[bool]) -> None:
        """So that a run which cannot be recorded is not begun."""
        printed(archive, "`survey", options=("--record",))

        assert opened == [False]

    def test_an_archive_that_cannot_be_written_answers_what_reads(
        self, archive: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On media for reading only, say: the eviction alone is refused, and a shell goes on after it."""
        opens = base.Archive.open

        def spy(path: str, *, readonly: bool = False) -> Archive:
            if not readonly:
                raise Refused(f"{path} cannot be written here")
            return opens(path, readonly=True)

        monkeypatch.setattr(base.Archive, "open", spy)
        result = run("shell", archive, "--json", stdin=f"let s = `survey\n{EVICT}\nlength $s[rows]\n`survey\n")

        assert result.exit_code == 1
        assert "cannot be written here" in result.stderr
        assert len(result.stdout.splitlines()) == 2


class TestNothingRecordedActs:
    """Whatever was recorded, stdout and stderr hold nothing that a terminal would act on."""

    @pytest.mark.parametrize("form", [(), ("--json",), ("--nl",)], ids=["ral", "json", "nl"])
    def test_answers_echoes_and_refusals(self, tmp_path: Path, form: tuple[str, ...]) -> None:
        """A label, a text, a result, a note, each full of sequences; echoed, answered, quoted in a refusal."""
        path = tmp_path / "evil.exarch"
        with Archive.open(path) as archive:
            archive.trunk.prompt(f"{EVIL} prompt")
            archive.trunk.assistant(f"{EVIL}\nreply {EVIL}")
            archive.trunk.evict(1, 1, note=EVIL.replace("\u2028", ""))
        for line in (
            "`survey", "`index", "`read [turns: [1, 2]]", "`grep [pattern: 'reply|prompt']",
            "let t = `read [turns: [2]]; echo $t[0][messages][0][parts][0]", "let i = `index; echo $i[0][label]",
            f"echo '{EVIL}'", f"`read [turns: '{EVIL}']", f"nope{EVIL}", f"`grep [pattern: '({EVIL}']",
        ):  # fmt: skip
            result = run("door", path, *form, stdin=line)
            assert result.exit_code in (0, 1)
            assert result.stdout or result.stderr
            assert acting(result.stdout) == []
            assert acting(result.stderr) == []


class TestScripts:
    """``shell`` where no terminal is: stdin line by line, as if it were typed."""

    def test_the_exit_code_is_that_of_the_first_refusal_and_the_rest_is_run(self, archive: Path) -> None:
        """As other database shells have it."""
        result = run("shell", archive, stdin="1\n`survey x\n.frob\n2\n")

        assert (result.exit_code, result.stdout) == (1, "1\n2\n")
        assert "did you mean" in result.stderr or "lists the commands" in result.stderr
        assert run("shell", archive, stdin="1\n").exit_code == 0
        assert run("shell", archive, stdin="").exit_code == 0

    def test_the_form_may_be_chosen_at_the_start(self, archive: Path) -> None:
        """As for every other command."""
        assert json.loads(run("shell", archive, "--json", stdin="`survey\n").stdout) == listed("survey", archive)
        lines = run("shell", archive, "--nl", stdin="`index\n").stdout.splitlines()
        assert [json.loads(line) for line in lines] == listed("index", archive)

    def test_a_script_remembers_nothing_and_loads_no_prompt(self, archive: Path, tmp_path: Path) -> None:
        """History is of what is typed; prompt_toolkit costs a script nothing."""
        env = os.environ | {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path / "state")}
        program = (
            "import sys, atexit; atexit.register(lambda: print(*sys.modules)); from exarch_sql.cli import main; main()"
        )
        for command in ("door", "shell"):
            done = subprocess.run(
                [sys.executable, "-c", program, command, archive],
                input="`survey\n",
                capture_output=True,
                text=True,
                env=env,
                check=True,
            )
            loaded = set(done.stdout.split("\n")[-2].split())

            assert "exarch_sql.door.door" in loaded
            assert loaded.isdisjoint({"prompt_toolkit", "rich"})
        assert not (tmp_path / "state").exists()

    def test_bytes_that_are_not_utf8_are_refused_by_place_and_the_rest_is_run(self, archive: Path) -> None:
        """In a door line and in a command."""
        result = run("shell", archive, stdin=b"length '\xff'\n.log \xff\n7\n")

        assert (result.exit_code, result.stdout) == (1, "7\n")
        assert "column 9" in result.stderr
        assert "not UTF-8" in result.stderr


def test_the_documented_forms_are_the_ones_there_are(archive: Path) -> None:
    """Both commands take the options every command takes."""
    for command in ("door", "shell"):
        shown: Any = run(command, "--help").stdout
        assert "--json" in shown
        assert "--log" in shown
