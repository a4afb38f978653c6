"""The prompt at a real pseudo-terminal, and what it remembers between sessions."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import stat
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prompt_toolkit.history import InMemoryHistory

from exarch_sql import Archive
from exarch_sql.shell import history

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_SECONDS = 60.0  # for one thing to appear, on a machine that does much else
# takes the terminal as its own, as a login shell gives it to what it starts: then Ctrl-C reaches it as a signal
PROGRAM = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from exarch_sql.cli import main
sys.argv[1:] = ["shell", sys.argv[1]]
main()
"""
# what prompt_toolkit sends when a prompt is there, its terminal ready for keys, and when a line was taken from it
READY, TAKEN = "\x1b[?2004h", "\x1b[?2004l"
SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A program on a pseudo-terminal: keys in, and what it has shown since it was last looked at."""

    def __init__(self, *args: str | Path, state: Path) -> None:
        self._leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
        env |= {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "XDG_STATE_HOME": str(state)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *map(str, args)],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
            env=env | {"PYTHONPATH": str(ROOT)},
        )
        os.close(follower)
        self._shown = ""

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._leader, keys.encode())

    def enter(self, keys: str) -> str:
        """Type what ends a prompt; what is shown from then on until there is another."""
        self.press(keys)
        self.wait_for(TAKEN)
        return self.wait_for(READY)

    def sees(self, text: str, seconds: float = PATIENCE_SECONDS) -> str | None:
        """What is shown up to and with ``text``, as soon as it is shown; None when it is not within the time."""
        until = time.monotonic() + seconds
        while text not in self._shown:
            if not select.select([self._leader], [], [], max(0.0, until - time.monotonic()))[0]:
                return None
            self._read()
        seen, found, self._shown = self._shown.partition(text)
        return seen + found

    def wait_for(self, text: str) -> str:
        """The same, of what must appear."""
        seen = self.sees(text)
        assert seen is not None, f"{text!r} was not shown; there is {self._shown!r}"
        return seen

    def ends(self) -> tuple[str, int]:
        """The rest of what it shows, and its exit code."""
        with contextlib.suppress(OSError):  # the other end is closed
            while True:
                self._read()
        return self._shown, self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        """End it, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._leader)

    def _read(self) -> None:
        data = os.read(self._leader, 65536)
        if not data:
            raise OSError("the other end is closed")
        self._shown += data.decode(errors="replace")


@pytest.fixture
def archive(lawful_file: Path, tmp_path: Path) -> Path:
    """A lawful archive of one's own."""
    return Path(shutil.copy(lawful_file, tmp_path / "a.exarch"))


@pytest.fixture
def terminal(archive: Path, tmp_path: Path) -> Iterator[Terminal]:
    """A shell at a prompt."""
    made = Terminal(archive, state=tmp_path / "state")
    try:
        made.wait_for(READY)
        yield made
    finally:
        made.close()


class TestAtATerminal:
    """What a person does, from the first key to the last."""

    def test_a_line_is_completed_answered_in_colour_and_remembered(
        self, terminal: Terminal, archive: Path, tmp_path: Path
    ) -> None:
        """Tab completes a family, a tag, a field and an id; the answer is the survey; Ctrl-D leaves with 0."""
        terminal.press("exarch-con\t")
        terminal.wait_for("text")
        terminal.press("`sur\t")
        terminal.wait_for("vey")
        shown = terminal.enter("\r")

        assert "\x1b[0;35m`resident" in shown, "a tag is coloured"
        with Archive.open(archive, readonly=True) as file:
            survey = file.trunk.survey()
        plain = SEQUENCE.sub("", shown)
        for row in survey.rows:
            assert f"[bytes: {row.bytes}, from: {row.from_}, kind: '{row.kind}', label: '{row.label}'" in plain
        assert f"total-bytes: {survey.total_bytes}\n]" in plain

        terminal.press("\x04")
        rest, code = terminal.ends()
        assert (code, "Traceback" in rest) == (0, False)
        remembered = tmp_path / "state" / "exarch-sql" / "history"
        assert "+exarch-context `survey\n" in remembered.read_text(encoding="utf-8")
        assert stat.S_IMODE(remembered.stat().st_mode) == 0o600

    def test_ids_are_offered_with_their_labels(self, terminal: Terminal) -> None:
        """A menu under the line; a key more narrows it to the one that fits."""
        terminal.press("`evict [\t")
        terminal.wait_for("note:")
        terminal.press("from: \t")
        terminal.wait_for("over a withdrawn run")
        terminal.enter("\x03")

        assert "42" in terminal.enter("$[6 * 7]\r")

    def test_a_text_goes_on_over_lines_until_it_is_whole_or_a_blank_line_ends_it(self, terminal: Terminal) -> None:
        """Enter asks for more where there must be more."""
        terminal.press("$[6 *\r")
        terminal.wait_for("...")
        assert "42" in terminal.enter("7]\r")
        terminal.press("length [1,\r")
        terminal.wait_for("...")
        assert "unterminated" in terminal.enter("\r")

    def test_ctrl_c_clears_a_line_and_interrupts_one_that_runs(self, terminal: Terminal) -> None:
        """The shell and its names live on."""
        terminal.enter("let kept = 41\r")
        terminal.enter("`evict [from: 1\x03")
        terminal.press(".sql WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c\r")
        terminal.wait_for(TAKEN)
        said = None
        for _ in range(200):  # the first may come before the terminal makes a signal of it
            terminal.press("\x03")
            if (said := terminal.sees("interrupted", 0.25)) is not None:
                break
        assert said is not None
        terminal.press("$[$kept + 1]\r")
        terminal.wait_for("42")

    def test_what_cannot_be_remembered_is_said_once_and_the_prompt_works(self, archive: Path, tmp_path: Path) -> None:
        """A home that cannot be written is no reason to refuse."""
        (tmp_path / "file").write_text("no folder", encoding="utf-8")
        terminal = Terminal(archive, state=tmp_path / "file")
        try:
            terminal.wait_for("lines are not remembered")
            terminal.wait_for(READY)
            terminal.enter(".log child\r")
            terminal.wait_for("child>")
            terminal.enter(".at 40\r")
            terminal.wait_for("child at 40>")
            terminal.press(".quit\r")
            rest, code = terminal.ends()
        finally:
            terminal.close()

        assert code == 0
        assert "Traceback" not in rest


class TestHistory:
    """A private file in the user's state folder, of a bounded size."""

    @pytest.mark.parametrize(
        ("environment", "place"),
        [
            ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/exarch-sql/history"),
            ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/exarch-sql/history"),
            ({"XDG_STATE_HOME": "", "HOME": "/h"}, "/h/.local/state/exarch-sql/history"),
            ({"HOME": "/h"}, "/h/.local/state/exarch-sql/history"),
        ],
    )
    def test_it_lies_where_the_specification_says(self, environment: dict[str, str], place: str) -> None:
        """A relative path is to be ignored."""
        assert str(history.place(environment)) == place

    def test_lines_last_from_one_session_to_the_next_newest_first(self, tmp_path: Path) -> None:
        """Of several lines, and of any text; neither the file nor its folder is for others."""
        path = tmp_path / "new" / "exarch-sql" / "history"
        said: list[str] = []
        first = history.opened(path, said.append)
        for line in ("`survey", "let x = [\n  1\n]", "größe \x1b[31m"):
            first.append_string(line)
        first.append_string("half a \ud800 surrogate")
        again = history.opened(path, said.append)

        lines = [line for line in again.load_history_strings() if not line.startswith("half")]
        assert lines == ["größe \x1b[31m", "let x = [\n  1\n]", "`survey"]
        assert said == []
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    def test_a_file_that_others_could_read_is_made_private(self, tmp_path: Path) -> None:
        """Its lines stay."""
        path = tmp_path / "history"
        history.opened(path, lambda _: None).append_string("kept")
        path.chmod(0o666)
        again = history.opened(path, lambda _: None)

        assert list(again.load_history_strings()) == ["kept"]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_a_file_that_has_grown_keeps_its_newest_lines(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whole lines only."""
        monkeypatch.setattr(history, "KEPT_BYTES", 4000)
        path = tmp_path / "history"
        grown = history.opened(path, lambda _: None)
        for number in range(200):
            grown.append_string(f"echo {number}")
        kept = list(history.opened(path, lambda _: None).load_history_strings())

        assert path.stat().st_size <= 2000
        assert 10 < len(kept) < 100
        assert kept == [f"echo {number}" for number in range(199, 199 - len(kept), -1)]

    @pytest.mark.parametrize("kind", ["under a file", "a folder", "a pipe", "a link"])
    def test_what_is_no_file_of_ours_is_left_alone(self, tmp_path: Path, kind: str) -> None:
        """Lines then last as long as the process, and it is said why."""
        path, target = tmp_path / "history", tmp_path / "target"
        if kind == "under a file":
            target.write_text("x", encoding="utf-8")
            path = target / "history"
        elif kind == "a folder":
            path.mkdir()
        elif kind == "a pipe":
            os.mkfifo(path)
        else:
            target.write_text("x", encoding="utf-8")
            path.symlink_to(target)
        said: list[str] = []
        found = history.opened(path, said.append)
        found.append_string("`survey")

        assert isinstance(found, InMemoryHistory)
        assert len(said) == 1
        assert said[0].startswith(f"lines are not remembered: {path}: ")
        assert not target.exists() or target.read_text(encoding="utf-8") == "x"

    def test_a_file_that_becomes_unwritable_stops_nobody(self, tmp_path: Path) -> None:
        """The folder goes away under a running shell."""
        path = tmp_path / "state" / "history"
        found = history.opened(path, lambda _: None)
        shutil.rmtree(path.parent)
        found.append_string("`survey")

        assert found.get_strings() == ["`survey"]
