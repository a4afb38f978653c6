"""The door on the command line: lines of the language as a script runs them, and the shell."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from exarch_sql.cli.base import TEXT, archive_argument, command, log_option, output_options
from exarch_sql.cli.printing import Output, on_terminal, talk
from exarch_sql.errors import Refused

if TYPE_CHECKING:
    from exarch_sql.shell.showing import Form


@command(
    "door",
    "exarch-sql door agent.exarch -e '`survey'",
    "exarch-sql door agent.exarch -e 'let found = `grep [pattern: '\"'error'\"']' -e '$found[total]'",
    "echo '`read [turns: [2]]' | exarch-sql door agent.exarch --json",
)
@archive_argument
@click.option(
    "-e",
    "lines",
    metavar="LINE",
    type=TEXT,
    multiple=True,
    help="Run this; may be given again. - is stdin, as is no -e.",
)
@click.option("--record", is_flag=True, help="Record each run, and the size of its answer, in the log.")
@log_option
@output_options
def door(archive: str, lines: tuple[str, ...], record: bool, log_name: str, out: Output) -> None:
    """Run lines of the door, the language of a model that looks after its own context.

    stdin is one run, each -e is one run, and names last from one to the next. A run prints its last value as a literal, with
    --json as one document, with --nl a line for each element; one that ends in `let` prints nothing. What is refused ends it: what
    was echoed by then is printed, and later runs are not begun. The archive is opened for writing only when a line evicts, or with
    --record.
    """
    from exarch_sql.door import Door  # noqa: PLC0415
    from exarch_sql.shell import showing, view  # noqa: PLC0415

    with view.LogView(archive, log_name, write=record) as log:
        opened = Door(log, record=record)
        for line in lines or ("-",):
            showing.run(opened, _typed() if line == "-" else line, _form(out))


def _typed() -> str:
    """All of stdin, as far as a door reads. Bytes that are not UTF-8 become half surrogates, which the door refuses by place."""
    from exarch_sql.door import Limits  # noqa: PLC0415

    if sys.stdin is None:
        return ""
    if on_terminal(sys.stdin):
        talk("one run, from the terminal; Ctrl-D ends it. `exarch-sql shell` has a prompt")
    most = Limits().source_bytes
    data = sys.stdin.buffer.read(most + 1)
    if len(data) > most:
        raise Refused(f"stdin holds more than {most} bytes, the most that a door reads at once: send it in parts")
    return data.decode("utf-8", "surrogateescape").rstrip("\r\n")


def _form(out: Output) -> Form:
    return "ral" if out.form == "eyes" else out.form


@command(
    "shell", "echo '.help' | exarch-sql shell agent.exarch", "echo '`survey' | exarch-sql shell agent.exarch --json"
)
@archive_argument
@log_option
@output_options
@click.pass_context
def shell(ctx: click.Context, archive: str, log_name: str, out: Output) -> None:
    """The door at a prompt: history, completion, colours, and commands that begin with a dot.

    Where stdin or stdout is no terminal, stdin is a script, each line as if it were typed; the exit code is then that of the
    first line that was refused. --json and --nl choose the first mode.
    """
    if on_terminal(sys.stdin) and on_terminal(sys.stdout):
        from exarch_sql.shell import prompt  # noqa: PLC0415

        ctx.exit(prompt.interact(archive, log_name, _form(out)))
    from exarch_sql.shell.core import Shell  # noqa: PLC0415

    with Shell(archive, log_name, form=_form(out)) as script:
        if sys.stdin is not None:
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
            script.feed_lines(sys.stdin)
    ctx.exit(script.code)
