"""The shell itself: texts in, answers out, and what it remembers between them. It knows streams, and no terminal.

A text is a line for the door or, beginning with a dot and a letter, a command. What is refused is told on ``err`` and the shell
goes on; ``code`` is the exit code, that of the first refusal. Answers go to ``out``.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Self, TextIO

import click

from exarch_sql.cli import app, printing
from exarch_sql.door import Door
from exarch_sql.door.prelude import BUILTINS
from exarch_sql.errors import ExarchError, Refused
from exarch_sql.shell import showing
from exarch_sql.shell.commands import Commands
from exarch_sql.shell.texts import DOTTED, Texts
from exarch_sql.shell.view import LogView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from exarch_sql.door.values import Value
    from exarch_sql.shell.showing import Form

LEAVING = frozenset(("exit", "quit", "bye", "q", "help", "?"))  # what other shells take for .quit and .help


class Shell:
    """A shell on one log of an archive. Use it in a ``with`` block.

    ``write_literal`` is given a value and its literal where a terminal prints them its own way. Raises as opening the log does.
    """

    def __init__(
        self,
        path: str,
        log_name: str = "trunk",
        *,
        form: Form = "ral",
        out: TextIO | None = None,
        err: TextIO | None = None,
        write_literal: Callable[[Value, str], None] | None = None,
    ) -> None:
        self.form: Form = form
        self.done = False
        self.code = 0
        self.out = sys.stdout if out is None else out
        self.err = sys.stderr if err is None else err
        self.commands = Commands(self)
        self._write_literal = write_literal
        self.view = LogView(path, log_name)
        self.door = Door(self.view)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.view.__exit__(*error)

    # -- texts in ------------------------------------------------------------------------------------------------------------

    def feed(self, text: str) -> None:
        """Answer one text. What is refused is told; what is not of our making, an interruption too, is raised."""
        with redirect_stdout(self.out), redirect_stderr(self.err):
            try:
                self._answer(text)
            except click.UsageError as error:
                self._refuse(error.format_message(), error.exit_code)
            except ExarchError as error:
                self._refuse(str(error), error.exit_code)
                if text.strip() in LEAVING:
                    self.tell(".quit leaves, .help lists the commands")

    def _answer(self, text: str) -> None:
        if not DOTTED.match(text):
            showing.run(self.door, text, self.form, self._write_literal)
            return
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Refused("the line is not UTF-8 text") from error
        self.commands.run(text.strip())

    def feed_lines(self, lines: Iterable[str]) -> None:
        """Answer a script: each line by itself, or as many lines as make a whole text. Ends at the last line or at ``.quit``."""
        texts = Texts()
        for line in lines:
            text = texts.add(line)
            if text is not None:
                self.feed(text.removesuffix("\n"))
            if self.done:
                return
        if rest := texts.rest():
            self.feed(rest)

    # -- what commands do ----------------------------------------------------------------------------------------------------

    def open_log(self, name: str) -> None:
        """Go to another log: a door sees one log and keeps names of its own. Raises Refused, naming the logs there are."""
        self.view.turn_to(name)
        self.door = Door(self.view)

    def run_command(
        self, name: str, *args: str, options: Sequence[str] = (), forms: Sequence[Form] = ("json", "nl")
    ) -> None:
        """Run a command of the command line on this archive, in the form that answers have here if it is one of ``forms``."""
        command = app.get_command(click.Context(app), name)
        if command is None:
            raise LookupError(name)
        form = [f"--{self.form}"] if self.form in forms else []
        try:
            with command.make_context(name, [*form, *options, "--", self.view.path, *args]) as context:
                command.invoke(context)
        except click.exceptions.Exit as left:
            self.code = self.code or left.exit_code

    def known_names(self) -> frozenset[str]:
        """Every name a line may use here."""
        return frozenset([*BUILTINS, *self.door.names])

    def tell(self, text: str) -> None:
        """Say something about the work, to ``err``; its own lines are kept."""
        self.err.write(printing.visible(text, keep="\n") + "\n")
        self.err.flush()

    def _refuse(self, text: str, code: int) -> None:
        self.out.flush()
        self.tell(text)
        self.code = self.code or code
