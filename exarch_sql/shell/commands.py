"""The lines that begin with a dot. A command is a method ``command_NAME``; its docstring is its help: usage, and what it does."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from exarch_sql.cli import tables
from exarch_sql.cli.printing import visible, write_line
from exarch_sql.door.names import nearest
from exarch_sql.errors import Refused
from exarch_sql.shell import showing

if TYPE_CHECKING:
    from collections.abc import Callable

    from exarch_sql import Survey
    from exarch_sql.shell.core import Shell

PREFIX = "command_"


class Commands:
    """The commands of one shell. Each is given the text after its name, without blanks around it."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    @classmethod
    def names(cls) -> list[str]:
        """Every command, as it is written after the dot."""
        return sorted(name.removeprefix(PREFIX) for name in dir(cls) if name.startswith(PREFIX))

    @classmethod
    def help_of(cls, name: str) -> tuple[str, str, str]:
        """A command's usage, what it does, and what more there is to say of it."""
        first, _, more = inspect.cleandoc(getattr(cls, PREFIX + name).__doc__).partition("\n")
        usage, _, does = first.partition(": ")
        return usage, does, " ".join(more.split())

    def run(self, line: str) -> None:
        """Run a line that begins with a dot. Raises Refused for one that is no command, naming the nearest."""
        name, *rest = line[1:].split(None, 1)
        command: Callable[[str], None] | None = getattr(self, PREFIX + name, None) if name.isidentifier() else None
        if command is None:
            raise self._unknown(name)
        command(rest[0].strip() if rest else "")

    def _unknown(self, name: str) -> Refused:
        begun = [each for each in self.names() if each.startswith(name)]
        near = begun[0] if len(begun) == 1 else nearest(name, self.names(), within=2)
        return Refused(f"there is no .{name[:60]}: {f'did you mean .{near}?' if near else '.help lists the commands'}")

    def command_help(self, argument: str) -> None:
        """.help [COMMAND]: say what the commands do."""
        name = argument.removeprefix(".")
        if not name:
            helps = [self.help_of(each) for each in self.names()]
            width = max(len(usage) for usage, _, _ in helps)
            for usage, does, _ in helps:
                write_line(f"{usage:<{width}}  {does}")
            write_line("")
            write_line(
                "Any other line is for the door: explain exarch-context and explain exarch-transcript say what it takes."
            )
        elif name in self.names():
            usage, does, more = self.help_of(name)
            write_line(f"{usage}: {does}")
            if more:
                write_line(more)
        else:
            raise self._unknown(name)

    def command_log(self, argument: str) -> None:
        """.log [NAME]: open a door on another log, where names start anew; without NAME list the logs."""
        if not argument:
            self._shell.run_command("logs")
            return
        self._shell.open_log(argument)
        self._say_where(self._shell.view.survey())

    def command_at(self, argument: str) -> None:
        """.at [SEQ|now]: stand where the log stood after record SEQ, or come back to now; without either say where it stands.

        In the past survey, index, under and .render answer as of then; read and grep answer of all that is recorded; evict is
        refused.
        """
        view = self._shell.view
        if not argument or argument == "now":
            self._say_where(view.look_at(None) if argument else view.survey())
            return
        if not (argument.isascii() and argument.isdecimal() and len(argument) <= 19):
            raise Refused(f".at takes the number of a record, or now; got {argument[:60]!r}")
        self._say_where(view.look_at(int(argument)))

    def _say_where(self, survey: Survey) -> None:
        view = self._shell.view
        moment = "now" if view.at is None else f"after record {view.at}"
        items = f"{len(survey.rows)} items of {tables.grouped(survey.total_bytes)} bytes"
        self._shell.tell(f"log {view.name} as it stands {moment}: {items}")

    def command_mode(self, argument: str) -> None:
        """.mode [ral|table|json|nl]: print answers as the door's literals, as tables, as one JSON document, as JSON a line each."""
        if argument and argument not in showing.FORMS:
            raise Refused(f"there is no mode {argument[:60]!r}: the modes are {', '.join(showing.FORMS)}")
        for form in showing.FORMS:
            if form == argument:
                self._shell.form = form
        if not argument:
            self._shell.tell(f"answers are printed as {self._shell.form}")

    def command_sql(self, argument: str) -> None:
        """.sql QUERY: run one reading SQL statement on the file's tables and views, as `exarch-sql sql` does."""
        self._shell.run_command("sql", argument if argument != "-" else "- ")

    def command_explain(self, argument: str) -> None:
        """.explain LINE: show the tree of a door line, and the SQL of the verbs it calls with its query plan; nothing is run."""
        if not argument:
            raise Refused(".explain takes a door line: .explain `survey")
        from exarch_sql.shell import explaining  # noqa: PLC0415  (it loads the search)

        names = self._shell.known_names()
        for line in explaining.explained(argument, self._shell.view, names):
            write_line(visible(line))

    def command_render(self, argument: str) -> None:
        """.render [FORMAT]: print the messages that the context is; with a FORMAT, as JSON that this API takes as it is.

        A FORMAT is otel, anthropic, openai-chat or openai-responses.
        """
        view = self._shell.view
        options = ["--log", str(view.number)]
        options += ["--at", str(view.at)] if view.at is not None else []
        options += ["--format", argument] if argument else []
        self._shell.run_command("render", options=options)

    def command_verify(self, argument: str) -> None:
        """.verify: judge the whole file from its bytes."""
        if argument:
            raise Refused(".verify takes nothing: `exarch-sql verify` takes --against")
        self._shell.run_command("verify", forms=["json"])  # a line each would say nothing of a lawful file

    def command_quit(self, argument: str) -> None:
        """.quit: leave; so does Ctrl-D."""
        self._shell.done = True
