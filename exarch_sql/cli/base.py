"""What commands are made of: a command with runnable examples, the ARCHIVE argument, the shared options, opening a file."""

from __future__ import annotations

import contextlib
import functools
import os
from typing import TYPE_CHECKING, Any

import click

from exarch_sql import Archive
from exarch_sql.cli.printing import Output
from exarch_sql.errors import BadFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from exarch_sql import Log


class Command(click.Command):
    """A command whose help ends in examples that run as they stand (a test runs them)."""

    def __init__(self, name: str, *, examples: tuple[str, ...] = (), **kwargs: Any) -> None:
        # its own, not only the group's: click keeps a command's first help option, and the shell calls it without a group
        super().__init__(name, context_settings={"help_option_names": ["-h", "--help"]}, **kwargs)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the examples, a line each, never wrapped."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def command(name: str, *examples: str) -> Callable[[Callable[..., Any]], Command]:
    """A command of the group; its docstring is its help, ``examples`` are lines for a shell."""
    return click.command(name, cls=Command, examples=examples)


# -- parameters ----------------------------------------------------------------------------------------------------------------


class Text(click.ParamType):  # type: ignore[type-arg]  # generic only in later releases of click
    """Text that a lineage can hold: an argument whose bytes are not UTF-8 is a usage error, not a crash further in."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Pass text through; fail for half surrogates, which are how Python shows undecodable bytes."""
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail(f"{text!a} is not UTF-8 text", param, ctx)
        if "\0" in text:
            self.fail(f"{text!a} holds a NUL", param, ctx)
        return text


class Turns(click.ParamType):  # type: ignore[type-arg]  # generic only in later releases of click
    """Turn ids as eyes write them: ``41``, ``41-60``, ``3,7-9``. A value is a list of runs (first, last)."""

    name = "turns"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[tuple[int, int]]:
        """Read runs of ids, both ends included; fail for anything else, showing what would do."""
        if isinstance(value, list):
            return value
        return [self._run(text.strip(), param, ctx) for text in str(value).split(",")]

    def _run(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        first, dash, last = text.replace("–", "-").partition("-")
        ends = (first, last) if dash else (first, first)
        if not all(end.isascii() and end.isdecimal() and len(end) <= 19 for end in ends):
            self.fail(f"{text!a} names no turns: write 41, a run 41-60, or several 3,7-9", param, ctx)
        start, end = map(int, ends)
        if start > end:
            self.fail(f"{text} goes down: write {end}-{start}", param, ctx)
        return start, end


TEXT = Text()
TURNS = Turns()

archive_argument = click.argument("archive", type=TEXT)
log_option = click.option(
    "--log",
    "log_name",
    metavar="NAME",
    type=TEXT,
    default="trunk",
    help="The log, by name or number.  [default: trunk]",
)
at_option = click.option("--at", metavar="SEQ", type=int, help="As it stood after this record.")


def output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--json`` and ``--nl``, and hand it the `Output` they ask for as ``out``."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @click.option("--nl", "as_lines", is_flag=True, help="Print JSON, a line each.")
    @functools.wraps(function)
    def wrapper(*args: Any, as_json: bool, as_lines: bool, **kwargs: Any) -> Any:
        if as_json and as_lines:
            raise click.UsageError("--json prints one document and --nl a line each: choose one of them")
        return function(*args, out=Output("json" if as_json else "nl" if as_lines else "eyes"), **kwargs)

    return wrapper


def turn_ids(runs: list[tuple[int, int]], reach: int) -> list[int]:
    """The ids in runs. Past ``reach`` only a run's end is named: the log refuses it, in its own words."""
    ids: list[int] = []
    for first, last in runs:
        ids += range(first, min(last, reach) + 1)
        ids += [last] if last > reach else []
    return ids


# -- files ---------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def opened(path: str, *, write: bool = False) -> Iterator[Archive]:
    """An archive that is there, for reading or for edits. Raises BadFile where there is none: only ``import`` makes one."""
    if not os.path.exists(path):
        raise BadFile(f"{path} does not exist: exarch-sql import FILE... --into {path} makes it")
    with Archive.open(path, readonly=not write) as archive:
        yield archive


@contextlib.contextmanager
def opened_log(path: str, name: str, *, write: bool = False) -> Iterator[Log]:
    """A log of an archive that is there."""
    with opened(path, write=write) as archive:
        yield archive.log(name)
