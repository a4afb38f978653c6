"""The command line at a real terminal, pipe and signal: nothing recorded acts on it, nothing ends in a traceback."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from exarch_sql import Archive
from exarch_sql.cli import app, printing
from exarch_sql.demo import session_path

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # what rich itself adds on a terminal
EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b1A\u202egnp.exe\u202c\u2028\U000e0041\x08\x7f"
FORGERY = "fine\r\nexarch-sql: lawful: 99 records"
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONUTF8")
} | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
COMMAND = [sys.executable, "-m", "exarch_sql"]


def evil_archive(path: Path) -> Path:
    """An archive whose every text tries to act on a terminal."""
    with Archive.open(path) as archive:
        log = archive.trunk
        log.prompt(f"{EVIL}{FORGERY} prompt")
        call = {"type": "tool_call", "id": f"c{EVIL}", "name": f"Read{EVIL}", "arguments": {"path": f"{EVIL}a"}}
        log.assistant({"role": "assistant", "parts": [{"type": "text", "content": f"{EVIL} reply"}, call]})
        log.tool_results([{"id": f"c{EVIL}", "content": f"{EVIL}\n{FORGERY} result" + " word" * 60}])
        log.assistant(f"{EVIL}done")
        log.prompt("second")
        log.assistant("reply \x1b[5m blinking")
        note = "".join(letter for letter in EVIL if letter not in "\u2028") + " note"
        log.evict(1, 3, note)
        log.error(f"{EVIL} error")
        log.usage(turn=2, model=f"m{EVIL}", input_tokens=1, output_tokens=1)
    return path


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That archive, for reading."""
    return evil_archive(tmp_path_factory.mktemp("evil") / "a.exarch")


def acting(text: str) -> list[str]:
    """What of a text a terminal would act on, line ends and tabs aside."""
    return [repr(letter) for letter in text if letter not in "\n\t" and printing._ACTING.match(letter)]


def on_terminal(args: Sequence[str | Path], *, both: bool = False, columns: int = 100) -> tuple[str, str, int]:
    """Run with stdout (and, with ``both``, stderr) on a pseudo-terminal: what it showed, stderr otherwise, the exit code."""
    leader, follower = pty.openpty()
    env = ENVIRONMENT | {"COLUMNS": str(columns)}
    process = subprocess.Popen(
        [*COMMAND, *map(str, args)],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower if both else subprocess.PIPE,
        env=env,
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        shown += data
    os.close(leader)
    _, errors = process.communicate(timeout=60)
    return shown.decode().replace("\r\n", "\n"), (errors or b"").decode(), process.returncode


def piped(*args: str | Path | bytes, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run with pipes."""
    line = [arg if isinstance(arg, bytes) else str(arg) for arg in (*COMMAND, *args)]
    return subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, env=env or ENVIRONMENT, check=False)


LISTINGS: list[list[str]] = [
    ["logs"], ["survey"], ["survey", "--at", "5"], ["index"], ["under", "1", "3"], ["read", "1-5"], ["grep", "reply|result|note"],
    ["render"], ["render", "--format", "openai-chat"], ["sql", "SELECT * FROM records"], ["sql", "SELECT * FROM parts"],
    ["sql", "SELECT 1 AS \"a\x1b[31m\""], ["audit", "all"], ["audit", "biggest"], ["stats"], ["verify"], ["head"],
]  # fmt: skip


class TestNothingRecordedActs:
    """Escape sequences, other controls, bidi, separators and tags come out as text, in every form of every listing."""

    def test_every_acting_character_of_unicode_is_covered(self) -> None:
        """All controls, surrogates, separators and formats, but for the joiners and the number signs that are seen."""
        seen = {0x200C, 0x200D, *range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD}
        for code in range(sys.maxunicode + 1):
            letter = chr(code)
            if unicodedata.category(letter) in ("Cc", "Cs", "Cf", "Zl", "Zp") and code not in seen:
                assert printing.visible(letter) != letter, hex(code)
                assert json.loads(printing.json_text(letter)) == letter
                assert not acting(printing.json_text(letter))
        assert printing.visible("naïve 漢字 👩‍💻 a\\b") == "naïve 漢字 👩‍💻 a\\b"

    @pytest.mark.parametrize("form", [[], ["--json"], ["--nl"]], ids=["eyes", "json", "nl"])
    @pytest.mark.parametrize("listing", LISTINGS, ids=" ".join)
    def test_in_a_pipe(self, evil: Path, listing: list[str], form: list[str]) -> None:
        """Piped output ends up on a terminal too."""
        name, *rest = listing
        result = CliRunner().invoke(app, [name, str(evil), *rest, *form])

        assert result.exit_code == 0, result.stderr
        assert result.stdout or (name, form) == ("verify", ["--nl"])
        assert acting(result.stdout) == []
        assert acting(result.stderr) == []
        assert "\nexarch-sql: lawful: 99" not in result.stdout or name in ("read", "render")

    @pytest.mark.parametrize(
        "listing", [["survey"], ["index"], ["grep", "reply|result|note"], ["read", "1-5"], ["audit", "all"]]
    )
    def test_on_a_terminal(self, evil: Path, listing: list[str]) -> None:
        """What rich adds are colours, nothing else; the text shows what was there."""
        name, *rest = listing
        shown, _, code = on_terminal([name, evil, *rest])

        assert code == 0
        assert acting(COLOUR.sub("", shown)) == []
        assert r"\x1b]0;owned\x07" in re.sub(r"\s+", "", COLOUR.sub("", shown))

    def test_edits_show_nothing_either(self, tmp_path: Path) -> None:
        """The survey after acting, and the talk beside it."""
        path = evil_archive(tmp_path / "a.exarch")
        for args in (["evict", "4", "4", "--note", "x\x1b[31m\u202ey"], ["rewind", "4"], ["clear"]):
            name, *rest = args
            result = CliRunner().invoke(app, [name, str(path), *rest])
            assert result.exit_code == 0
            assert acting(result.stdout + result.stderr) == []

    @pytest.mark.parametrize(
        "args",
        [
            ["survey", f"/nowhere/{EVIL}"],
            ["survey", "A", "--log", EVIL],
            ["grep", "A", f"({EVIL}"],
            ["sql", "A", f"SELECT {EVIL}"],
            ["audit", "A", EVIL],
            ["fork", "A", EVIL],
            ["evict", "A", "1", "1", "--note", FORGERY],
            ["import", "F", "--into", "A"],
            ["read", "A", EVIL],
            ["under", "A", EVIL, "1"],
            ["render", "A", "--format", EVIL],
            ["verify", "A", "--against", EVIL],
            [EVIL],
            ["survey", "A", f"--{EVIL}"],
        ],
    )
    def test_errors_quote_without_acting(self, evil: Path, tmp_path: Path, args: list[str]) -> None:
        """An argument may come from a recorded text, and a file's name from anywhere."""
        strange = tmp_path / "x\x1b[31m\n\u202ey"
        strange.write_text("{}\n", encoding="utf-8")
        result = CliRunner().invoke(app, [{"A": str(evil), "F": str(strange)}.get(arg, arg) for arg in args])

        assert result.exit_code in (1, 2, 3)
        assert acting(result.stderr) == []


class TestStreams:
    """What a shell may do with the streams."""

    def test_a_pipe_gets_utf8_without_colour_whatever_the_locale(self, tmp_path: Path) -> None:
        """Neither the locale nor a wish for colour changes data."""
        with Archive.open(tmp_path / "a.exarch") as archive:
            archive.trunk.prompt("größe 漢字 👩‍💻")
        for extra in (
            {"LC_ALL": "C"},
            {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0"},
            {"PYTHONIOENCODING": "latin-1"},
            {"FORCE_COLOR": "1"},
        ):
            done = piped("survey", tmp_path / "a.exarch", env=ENVIRONMENT | extra)

            assert (done.returncode, done.stderr) == (0, b"")
            assert "größe 漢字 👩‍💻" in done.stdout.decode("utf-8")
            assert b"\x1b" not in done.stdout

    def test_a_reader_that_goes_away_ends_it_in_silence(self, evil: Path) -> None:
        """As `head` does: no traceback, no word, the code of SIGPIPE."""
        sql = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 9999) SELECT n, hex(zeroblob(50)) AS x FROM c"
        process = subprocess.Popen(
            [*COMMAND, "sql", str(evil), sql, "--nl"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
        )
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr is not None
        errors = process.stderr.read()
        process.stderr.close()

        assert (process.wait(30), errors) == (141, b"")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
    def test_output_that_cannot_be_written_is_said(self, evil: Path) -> None:
        """A full disk is not success."""
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(
                [*COMMAND, "head", str(evil)], stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT, check=False
            )

        assert done.returncode == 1
        assert done.stderr == b"exarch-sql: the output could not be written: No space left on device\n"

    def test_closed_streams_are_no_fault(self, evil: Path) -> None:
        """Started by something that gives it none."""
        for redirect in (">&-", "2>&-", ">&- 2>&- <&-"):
            line = f"'{sys.executable}' -m exarch_sql survey '{evil}' {redirect}"
            done = subprocess.run(["sh", "-c", line], capture_output=True, env=ENVIRONMENT, check=False)
            assert (done.returncode, done.stderr) == (0, b"")

    @pytest.mark.parametrize(
        ("args", "code"),
        [
            ([b"survey", b"\xff\xfe.exarch"], 2),
            ([b"survey", b"A", b"--log", b"\xff"], 2),
            ([b"grep", b"A", b"\xff"], 2),
            ([b"evict", b"A", b"4", b"4", b"--note", b"\xff"], 2),
            ([b"sql", b"A", b"SELECT '\xff'"], 2),
            ([b"fork", b"A", b"\xff"], 2),
            ([b"audit", b"A", b"\xff"], 2),
            ([b"read", b"A", b"\xff"], 2),
            ([b"under", b"A", b"\xff", b"1"], 2),
            ([b"verify", b"A", b"--against", b"\xff"], 2),
            ([b"import", b"\xff", b"--into", b"A"], 2),
            ([b"\xff"], 2),
        ],
    )
    def test_arguments_that_are_not_utf8_are_usage_errors(self, evil: Path, args: list[bytes], code: int) -> None:
        """Whatever bytes a shell passes."""
        done = piped(*(os.fsencode(evil) if arg == b"A" else arg for arg in args))

        assert done.returncode == code
        assert b"Traceback" not in done.stderr
        assert done.stderr.decode("utf-8")

    def test_a_transcript_whose_name_is_not_utf8_is_imported(self, tmp_path: Path) -> None:
        """Its name is the file system's affair; the report spells it out."""
        name = os.fsencode(tmp_path) + b"/\xff.jsonl"
        Path(os.fsdecode(name)).write_bytes(session_path().read_bytes())
        for form in ("--json", "--nl"):
            done = piped("import", name, "--into", tmp_path / "a.exarch", form)
            assert (done.returncode, done.stderr) == (0, b"")
            assert b"\\udcff.jsonl" in done.stdout


class TestSignals:
    """Ctrl-C ends a command with 130 and one word."""

    def test_while_sqlite_runs(self, evil: Path) -> None:
        """In the middle of one long statement."""
        sql = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
        program = (
            "import sys; from exarch_sql.cli import main; sys.stderr.write('ready\\n'); sys.stderr.flush(); "
            f"sys.argv[1:] = ['sql', {str(evil)!r}, {sql!r}, '--seconds', '60']; main()"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
        )
        assert process.stderr is not None
        assert process.stderr.readline() == b"ready\n"
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)

        assert process.returncode == 130
        assert out == b""
        assert errors.split(b"\n")[-2] == b"exarch-sql: interrupted"
        assert b"Traceback" not in errors


class TestTerminal:
    """What eyes get that a pipe does not."""

    def test_tables_fit_the_width_and_keep_all_text(self, evil: Path) -> None:
        """A long cell is folded, not cut."""
        shown, _, _ = on_terminal(["grep", evil, "result"], columns=60)
        lines = COLOUR.sub("", shown).splitlines()

        assert max(map(len, lines)) <= 60
        assert len(lines) > 6
        folded = "".join(line.split("│")[-1].strip() for line in lines)
        assert folded.replace(" ", "").count("word") > 10

    def test_a_long_table_is_set_plain(self, evil: Path) -> None:
        """Drawing costs a millisecond a row, so past a thousand rows there is no drawing, but all the rows."""
        sql = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 3000) SELECT n FROM c"
        shown, _, _ = on_terminal(["sql", evil, sql])

        assert len(shown.splitlines()) == 3001

    def test_progress_is_shown_on_a_terminal_only(self, evil: Path, tmp_path: Path) -> None:
        """On stderr, and gone when done."""
        for args in (["verify", evil], ["import", session_path(), "--into", tmp_path / "a.exarch"]):
            shown, _, code = on_terminal(args, both=True)
            assert code == 0
            assert "\x1b[?25l" in shown, "rich hides the cursor while it draws"
            _, errors, code = on_terminal(args)
            assert (code, errors) == (0, "")


class TestStartUp:
    """A command loads what it needs and no more."""

    HEAVY = (
        "rich",
        "lark",
        "re2",
        "prompt_toolkit",
        "exarch_sql.importers",
        "exarch_sql.door",
        "exarch_sql.verify",
        "exarch_sql.search",
    )

    @pytest.mark.parametrize(
        "args",
        [
            ["head", "A"],
            ["survey", "A"],
            ["survey", "A", "--json"],
            ["read", "A", "2"],
            ["logs", "A"],
            ["sql", "A", "SELECT 1"],
            ["--help"],
        ],
    )
    def test_nothing_heavy_is_imported(self, evil: Path, args: list[str]) -> None:
        """The budget of 120 ms for a command that touches one row is lost one convenient import at a time."""
        program = (
            "import sys, atexit; atexit.register(lambda: sys.stderr.write(' '.join(sys.modules))); "
            "from exarch_sql.cli import main; main()"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, *(str(evil) if arg == "A" else arg for arg in args)],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            check=False,
        )
        loaded = set(done.stderr.split())

        assert done.returncode == 0
        assert "exarch_sql.cli.app" in loaded
        assert loaded.isdisjoint(self.HEAVY)
