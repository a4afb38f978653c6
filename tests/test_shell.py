"""The shell on plain streams: answers on one, refusals on the other, the dot commands, the past, and the forms of an answer."""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from exarch_sql import Archive
from exarch_sql.cli import app, printing
from exarch_sql.door import Door
from exarch_sql.door.verbs import VERBS
from exarch_sql.errors import Refused
from exarch_sql.shell import explaining, showing
from exarch_sql.shell.commands import PREFIX, Commands
from exarch_sql.shell.core import Shell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b1A\u202egnp.exe\u202c\u180e\U000e0041\x08\x7f"


pytestmark = pytest.mark.usefixtures("unbounded_memory")


@pytest.fixture
def archive(lawful_copy: Path) -> Path:
    """A lawful archive of one's own."""
    return lawful_copy


class Sitting:
    """A shell with streams of its own; what it wrote since last asked."""

    def __init__(self, path: Path, log: str = "trunk") -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        self.shell = Shell(str(path), log, out=self.out, err=self.err)

    def say(self, *texts: str) -> tuple[str, str]:
        """Feed texts; what came out, and what was told."""
        for text in texts:
            self.shell.feed(text)
        written = self.out.getvalue(), self.err.getvalue()
        for stream in (self.out, self.err):
            stream.seek(0)
            stream.truncate()
        return written

    def answer(self, *texts: str) -> str:
        """What came out of texts that must be answered."""
        out, told = self.say(*texts)
        assert told == ""
        return out

    def document(self, text: str) -> Any:
        """An answer in JSON."""
        form, self.shell.form = self.shell.form, "json"
        try:
            return json.loads(self.answer(text))
        finally:
            self.shell.form = form


@pytest.fixture
def sitting(archive: Path) -> Iterator[Sitting]:
    """A shell on the lawful archive."""
    made = Sitting(archive)
    with made.shell:
        yield made


def command_line(*args: str | Path) -> str:
    """What a command of the command line prints."""
    result = CliRunner().invoke(app, [str(arg) for arg in args], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def acting(text: str) -> list[str]:
    """What of a text a terminal would act on, line ends and tabs aside."""
    return [repr(letter) for letter in text if letter not in "\n\t" and printing._ACTING.match(letter)]


class TestStreams:
    """Answers go to ``out``, refusals to ``err``; the process's own streams are left alone."""

    @pytest.mark.parametrize(
        ("text", "answer"),
        [("$[1 + 2]", "3\n"), ("echo a b", "a b\n"), ("let x = 1", ""), ("", ""), ("# said", ""), (".5", "0.5\n")],
    )
    def test_a_line_is_answered_on_out(
        self, sitting: Sitting, capsys: pytest.CaptureFixture[str], text: str, answer: str
    ) -> None:
        """And nowhere else; .5 is a number and no command."""
        assert sitting.say(text) == (answer, "")
        assert capsys.readouterr() == ("", "")
        assert sitting.shell.code == 0

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("`survey x", "^"),
            ("`evict [from:1, to: 2, note: 'x']", "    `evict [from: 1, to: 2, note: 'x']"),
            ("let x = [", "unterminated `[…]`"),
            ("`read [turns: [99]]", "99"),
            (".frob", "there is no .frob: .help lists the commands"),
            (".hlep", "did you mean .help?"),
            (".ver", "did you mean .verify?"),
            (".log nope", "the logs are trunk"),
            (".at 9999", "no moment of this log"),
            (".at x", ".at takes the number of a record"),
            (".at 99999999999999999999", ".at takes the number of a record"),
            (".mode xml", "the modes are ral, table, json, nl"),
            (".sql DELETE FROM records", "the query writes"),
            (".sql", "there is no statement in the query"),
            (".sql -", "SQLite does not take the query"),
            (".render xml", "'xml' is not one of"),
            (".verify now", ".verify takes nothing"),
            (".explain", ".explain takes a door line"),
            (".explain `survey [", "unterminated"),
            (".explain $nope", "nope"),
            (".help frob", "there is no .frob"),
        ],
    )
    def test_a_refusal_is_told_on_err_and_nothing_is_written(self, sitting: Sitting, text: str, said: str) -> None:
        """The shell goes on, and its code is that of the first refusal."""
        before = sitting.shell.view.log.survey()
        out, told = sitting.say(text)

        assert out == ""
        assert said in told
        assert "Traceback" not in told
        assert sitting.shell.code in (1, 2)
        assert sitting.answer("7") == "7\n"
        assert sitting.shell.view.log.survey() == before

    @pytest.mark.parametrize("text", ["exit", "quit", "help"])
    def test_what_other_shells_take_is_pointed_to_a_command(self, sitting: Sitting, text: str) -> None:
        """They are no names of the door; once one is bound it is."""
        assert sitting.say(text)[1].endswith(".quit leaves, .help lists the commands\n")
        assert sitting.answer(f"let {text} = 1", f"${text}") == "1\n"

    def test_an_interrupted_line_is_raised_and_the_shell_lives_on(
        self, sitting: Sitting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whoever reads the keys decides what it means; names of earlier lines stay."""
        sitting.answer("let x = 5")

        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(sitting.shell.view, "survey", interrupted)
            with pytest.raises(KeyboardInterrupt):
                sitting.say("`survey")

        assert sitting.answer("$x") == "5\n"


class TestScripts:
    """Lines of a script: each by itself, or as many as make a whole text."""

    def test_a_text_goes_on_until_it_is_whole(self, sitting: Sitting) -> None:
        """Brackets, strings, a let, a case; a command is always whole."""
        lines = "let x = [\n  1,\n\n  2\n]\n$x\n.mode json\n'two\nlines'\nlet y =\n  3\n.mode ral\n$y\n"
        sitting.shell.feed_lines(io.StringIO(lines))

        assert sitting.say() == ('[1, 2]\n"two\\nlines"\n3\n', "")

    def test_what_is_not_whole_at_the_end_is_refused(self, sitting: Sitting) -> None:
        """With the place it begins at."""
        sitting.shell.feed_lines(io.StringIO("1\nlet x = [\n 2"))
        out, told = sitting.say()

        assert out == "1\n"
        assert "line 1, column 9" in told
        assert sitting.shell.code == 1

    def test_quit_ends_it(self, sitting: Sitting) -> None:
        """Nothing after it is read."""
        lines = iter(["1\n", ".quit\n", "2\n"])
        sitting.shell.feed_lines(lines)

        assert sitting.say() == ("1\n", "")
        assert list(lines) == ["2\n"]

    def test_a_text_without_an_end_is_bounded(self, sitting: Sitting) -> None:
        """By what a door reads at once."""
        lines = ["'" + "x" * 600_000 + "\n", "x" * 600_000 + "\n", "7\n"]
        sitting.shell.feed_lines(lines)
        out, told = sitting.say()

        assert out == "7\n"
        assert "1048576" in told


class TestCommands:
    """A command is a method, and its docstring is its help."""

    def test_every_command_has_help(self, sitting: Sitting) -> None:
        """Usage that begins with its name, what it does in a sentence; none is missing from the list."""
        listed = sitting.answer(".help")
        for name in Commands.names():
            method = getattr(Commands, PREFIX + name)
            assert method.__doc__, name
            usage, does, _ = Commands.help_of(name)
            assert re.fullmatch(rf"\.{name}( \S+)*", usage), name
            assert does.endswith("."), name
            assert f"{usage} " in listed
            assert does in listed
            assert sitting.answer(f".help {name}").startswith(f"{usage}: {does}")
        assert sitting.answer(".help .at") == sitting.answer(".help at")
        assert {"help", "log", "at", "sql", "explain", "mode", "verify", "render", "quit"} == set(Commands.names())

    def test_log_opens_a_door_on_another_log(self, sitting: Sitting, archive: Path) -> None:
        """By name or number; names are a door's own; without a name the logs are listed."""
        sitting.answer("let mine = 1")
        assert "log child as it stands now" in sitting.say(".log child")[1]
        with Archive.open(archive, readonly=True) as file:
            assert sitting.document("`survey") == file.log("child").survey().to_dict()
        assert "mine" in sitting.say("$mine")[1]
        assert "log owing as it stands now" in sitting.say(".log 5")[1]
        assert sitting.answer(".log") == command_line("logs", archive)
        assert sitting.document(".log") == json.loads(command_line("logs", archive, "--json"))

    def test_sql_is_the_command_of_that_name(self, sitting: Sitting, archive: Path) -> None:
        """In every form; several lines are one statement."""
        query = "SELECT seq, kind\n  FROM records -- all of them\n LIMIT 3"

        assert sitting.answer(f".sql {query}") == command_line("sql", archive, query)
        assert sitting.document(f".sql {query}") == json.loads(command_line("sql", archive, query, "--json"))
        assert sitting.answer(".sql -- none\nSELECT 1 AS a").split() == ["a", "1"]

    def test_render_is_the_context(self, sitting: Sitting, archive: Path) -> None:
        """For eyes, or in a form that an API takes; of the log the shell is on."""
        assert sitting.answer(".render") == command_line("render", archive)
        assert sitting.answer(".render anthropic") == command_line("render", archive, "--format", "anthropic")
        sitting.say(".log child")
        assert sitting.document(".render") == json.loads(command_line("render", archive, "--log", "child", "--json"))

    def test_verify_judges_the_file(self, sitting: Sitting, archive: Path) -> None:
        """Lawful; and with the fault and its code when a body is altered under the shell."""
        assert sitting.answer(".verify") == command_line("verify", archive)
        with sqlite3.connect(archive) as db:
            triggers = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
            for name, _ in triggers:
                db.execute(f"DROP TRIGGER {name}")
            db.execute("UPDATE records SET body = replace(body, 'turned', 'burned') WHERE turn = 5")
            for _, sql in triggers:
                db.execute(sql)
        db.close()
        out, told = sitting.say(".verify")

        assert "body" in out
        assert "is not lawful" in told
        assert sitting.shell.code == 3

    def test_mode_says_and_sets_the_form(self, sitting: Sitting) -> None:
        """Each changes what the next answer looks like."""
        shown = {"table": "value\n1\n[2]\n", "json": "[1, [2]]\n", "nl": "1\n[2]\n", "ral": "[1, [2]]\n"}
        assert sitting.say(".mode")[1] == "answers are printed as ral\n"
        assert set(shown) == set(showing.FORMS)
        for form, answer in shown.items():
            assert sitting.answer(f".mode {form}") == ""
            assert sitting.say(".mode")[1] == f"answers are printed as {form}\n"
            assert sitting.answer("[1, [2]]") == answer


class TestThePast:
    """``.at SEQ``: the log as it stood after a record."""

    def test_every_moment_answers_as_of_then(self, sitting: Sitting, archive: Path) -> None:
        """Survey, index, under and .render, at each record of the trunk."""
        with Archive.open(archive, readonly=True) as file:
            log = file.trunk
            for seq in range(2, file.head().seq + 1, 5):
                assert f"after record {seq}: {len(log.survey(at=seq).rows)} items" in sitting.say(f".at {seq}")[1]
                assert sitting.document("`survey") == log.survey(at=seq).to_dict()
                rows = log.index(at=seq)
                assert sitting.document("`index") == [row.to_dict() for row in rows]
                assert sitting.document(".render") == log.render(at=seq)
                for row in rows:
                    if row.kind == "residue":
                        under = log.under(row.from_, row.to, at=seq)
                        line = f"`under [from: {row.from_}, to: {row.to}]"
                        assert sitting.document(line) == [one.to_dict() for one in under]

    def test_nothing_is_evicted_in_the_past(self, sitting: Sitting, archive: Path) -> None:
        """The file is not even opened for writing; now it is again."""
        line = "`evict [from: 14, to: 14, note: 'x']"
        before = archive.read_bytes()
        sitting.say(".at 12")
        assert "nothing is evicted in the past; `.at now` comes back" in sitting.say(line)[1]
        assert archive.read_bytes() == before

        assert "as it stands now" in sitting.say(".at now")[1]
        assert sitting.document(line)["rows"] == sitting.document("`survey")["rows"]

    def test_names_last_and_another_log_is_as_it_is_now(self, sitting: Sitting) -> None:
        """What was bound in the past can be compared with now."""
        sitting.say(".at 12", "let then = `survey", ".at now", "let now = `survey")
        assert sitting.answer("equal $then $now") == "false\n"
        sitting.say(".at 12", ".log child")
        assert "as it stands now" in sitting.say(".at")[1]
        assert sitting.say(".at 2")[1].startswith("at=2 is no moment of this log")


# what every use of the file runs: opening and ending a transaction, finding the newest record
OPENING = ("BEGIN", "COMMIT", "SELECT seq, digest FROM records ORDER BY", "SELECT max(seq) FROM records")


class TestExplaining:
    """``.explain``: the tree, and the SQL of the verbs it calls with its plan; nothing is run."""

    LINES = {  # noqa: RUF012
        "survey": "`survey",
        "evict": "exarch-context `evict [from: 14, to: 14, note: 'x']",
        "index": "exarch-transcript `index",
        "under": "`under [from: 1, to: 3]",
        "read": "`read [turns: [1, 2]]",
        "grep": "`grep [pattern: 'the']",
    }

    def test_what_it_names_is_what_a_verb_runs(self, archive: Path) -> None:
        """Traced on a connection: each statement of the map is run, and none besides but those that all share."""
        for tag, line in self.LINES.items():
            with Archive.open(archive) as file:
                log = file.trunk
                seen: list[str] = []
                file._store.db.exec_trace = lambda _cursor, sql, _bound, seen=seen: seen.append(sql.strip()) is None
                Door(log).run(line)
                file._store.db.exec_trace = None
            ran = {sql for sql in seen if not sql.startswith(OPENING)}

            assert ran == {statement.sql.strip() for statement in explaining.RUNS[tag]}, tag
        assert set(self.LINES) == set(explaining.RUNS) == set(VERBS)

    @pytest.mark.parametrize("tag", LINES)
    def test_each_verb_is_explained_by_its_sql_and_a_plan(self, sitting: Sitting, archive: Path, tag: str) -> None:
        """The tree first; the file is as it was."""
        before = archive.read_bytes()
        shown = sitting.answer(f".explain {self.LINES[tag]}")

        assert shown.startswith("Program\n  Command\n")
        assert f"Tag '{tag}'" in shown
        for statement in explaining.RUNS[tag]:
            assert f"`{tag} runs {statement.name}\n" in shown
        assert "its plan\n" in shown
        assert re.search(r"^ +SEARCH ", shown, re.M)
        assert ("it writes" in shown) == (tag == "evict")
        assert archive.read_bytes() == before

    def test_verbs_are_found_wherever_they_are_written(self, sitting: Sitting) -> None:
        """In a let, a block, a splice, an argument; once each; a tag that is only a value calls nothing."""
        line = 'let x = map { |t| `read [turns: [$t]] } !{range 1 3}; "!{exarch-context `survey}"; `survey; equal `index `index'
        runs = re.findall(r"^`(\w+) runs", sitting.answer(f".explain {line}"), re.M)

        assert list(dict.fromkeys(runs)) == ["read", "survey"]
        assert "asks the log nothing" in sitting.answer(".explain $[1 + 2]")

    def test_the_past_has_a_statement_of_its_own(self, sitting: Sitting) -> None:
        """What runs there is what is shown."""
        sitting.say(".at 12")

        assert "reading.SURVEY_AT_SQL" in sitting.answer(".explain `survey")

    def test_names_of_the_door_are_known(self, sitting: Sitting) -> None:
        """A line is checked as it would be before it runs."""
        sitting.answer("let x = 1")

        assert "Variable 'x'" in sitting.answer(".explain $x")


class TestForms:
    """An answer as literal, table, document and lines."""

    TABLES = (
        ("`survey", ("survey",)),
        ("`index", ("index",)),
        ("`under [from: 1, to: 3]", ("under", "1", "3")),
        ("`read [turns: [1, 2]]", ("read", "1-2")),
        ("`grep [pattern: 'the']", ("grep", "the")),
    )

    @pytest.mark.parametrize(("line", "command"), TABLES, ids=[line for line, _ in TABLES])
    def test_the_logs_answers_are_the_tables_of_the_command_line(
        self, sitting: Sitting, archive: Path, line: str, command: tuple[str, ...]
    ) -> None:
        """Row for row."""
        name, *rest = command
        sitting.shell.form = "table"

        assert sitting.answer(line) == command_line(name, archive, *rest)

    @pytest.mark.parametrize(
        ("line", "table"),
        [
            (
                "[[bytes: 1, zeta: 2, to: 30], [to: 4, bytes: 5, alpha: 6]]",
                "to  bytes  alpha  zeta\n30      1         2\n 4      5  6\n",
            ),
            ("[[1, 'a'], [2]]", "0  1\n1  a\n2\n"),
            ("[1, 'a', [b: ()]]", 'value\n1\na\n{"b": null}\n'),
            ("[a: 1, b: [2]]", "key  value\na    1\nb    [2]\n"),
            ("[[a: 1], [b: true]]", "a  b\n1\n   true\n"),
            ("[rows: [], total-bytes: 'x']", "key          value\nrows         []\ntotal-bytes  x\n"),
            ("[[turn: 1, role: 'user', messages: [7]]]", "turn  role  messages\n   1  user  [7]\n"),
            ("[[location: `x]]", "location\nx\n"),
            ("[hits: [7], total: 1]", "key    value\nhits   [7]\ntotal  1\n"),
            ("7", "7\n"),
            ("'a'", "'a'\n"),
            ("[]", "[]\n"),
            ("{ |x| $x }", "{ |x| $x }\n"),
        ],
    )
    def test_anything_else_has_columns_where_it_has_parts(self, sitting: Sitting, line: str, table: str) -> None:
        """Records by key, lists by position; what only looks like an answer of the log is set like anything."""
        sitting.shell.form = "table"
        assert sitting.answer(line) == table

    @pytest.mark.parametrize("width", [1, 40, 100])
    def test_a_literal_laid_out_on_lines_parses_back_to_an_equal_value(self, archive: Path, width: int) -> None:
        """Of every verb, of maps, tags and blocks inside one another."""
        with Archive.open(archive, readonly=True) as file:
            door = Door(file.trunk)
            for line in (
                "`survey", "`index", "`read [turns: [1, 2, 3]]", "`grep [pattern: '.']", "[[[[1, 2], [3]]]]", "[]", "()",
                "[:, 'a b': [:], c: [x: [y: [1]]]]", "`some `other [a: [[b: `x]]]", "[a: [[{ |x| [$x] }]], b: 'two\nlines']",
            ):  # fmt: skip
                value = door.run(line).value
                door.run(f"let laid = {showing.laid_out(value, width)}")
                door.run(f"let there = {line}")

                assert door.run("str $laid").value == door.run("str $there").value

    def test_a_row_stays_on_one_line(self, archive: Path) -> None:
        """However long: eyes read a row at a time."""
        with Archive.open(archive, readonly=True) as file:
            survey = file.trunk.survey()
            shown = showing.laid_out(Door(file.trunk).run("`survey").value, 40).splitlines()

        assert len(shown) == 5 + len(survey.rows)


class TestNothingRecordedActs:
    """Escape sequences and other controls in what was recorded come out as text, whatever is asked, in every form."""

    @pytest.fixture
    def evil(self, tmp_path: Path) -> Path:
        """An archive whose every text tries to act on a terminal."""
        path = tmp_path / "evil.exarch"
        with Archive.open(path) as archive:
            archive.trunk.prompt(f"{EVIL} prompt\u2028{EVIL}")
            call = {"type": "tool_call", "id": f"c{EVIL}", "name": f"Read{EVIL}", "arguments": {"path": EVIL}}
            archive.trunk.assistant({"role": "assistant", "parts": [{"type": "text", "content": EVIL}, call]})
            archive.trunk.tool_results([{"id": f"c{EVIL}", "content": f"{EVIL}\nresult"}])
            archive.trunk.assistant(EVIL)
            archive.trunk.evict(1, 1, note=EVIL)
        return path

    @pytest.mark.parametrize("form", showing.FORMS)
    def test_every_line_and_command(self, evil: Path, form: showing.Form) -> None:
        """Answers, echoes, refusals that quote, a name, an argument."""
        made = Sitting(evil)
        made.shell.form = form
        with made.shell:
            for line in (
                "`survey", "`index", "`under [from: 1, to: 1]", "`read [turns: [1, 2, 3]]", "`grep [pattern: 'prompt|result']",
                "let r = `index; echo $r[0][label]; $r[0][label]", "let t = `read [turns: [2]]; $t[0][messages][0][parts]",
                "map { |r| $r[label] } !{let r = `index; return $r}", f"echo '{EVIL}'", f"nope{EVIL}", f".frob{EVIL}",
                f".x{EVIL}", f".log {EVIL}", f".at {EVIL}", f".mode {EVIL}", f".sql SELECT '{EVIL}' AS a", f".sql {EVIL}",
                ".sql SELECT label FROM frontier", f".explain '{EVIL}'", f".explain {EVIL}", f".render {EVIL}", ".render",
                ".render openai-chat", ".log", f".help {EVIL}", ".verify",
            ):  # fmt: skip
                out, told = made.say(line)
                assert out or told, line
                assert acting(out) == [], line
                assert acting(told) == [], line


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc")
def test_a_shell_refuses_what_opening_refuses(tmp_path: Path, archive: Path) -> None:
    """In the words of the command line, and it leaves nothing open."""
    with pytest.raises(Refused, match="there is no log 'nope'"):
        Shell(str(archive), "nope")
    with pytest.raises(Exception, match="does not exist: exarch-sql import"):
        Shell(str(tmp_path / "missing"))

    held = [os.readlink(f"/proc/self/fd/{handle}") for handle in os.listdir("/proc/self/fd") if _is_open(handle)]
    assert not [path for path in held if path.startswith(str(archive))]


def _is_open(handle: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{handle}")


def test_streams_of_the_process_are_the_default(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As they are when the shell is made."""
    with Shell(str(archive)) as shell:
        say: Callable[[str], None] = shell.feed
        say("7")
        say(".frob")

    assert capsys.readouterr() == ("7\n", "there is no .frob: .help lists the commands\n")
