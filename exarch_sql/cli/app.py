"""The commands by name, and where each is written. Only the one that is called is imported."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

from exarch_sql.cli import failures

if TYPE_CHECKING:
    from collections.abc import Sequence

# section of the help -> command -> module of this package and name in it. A new command is registered here.
SECTIONS: dict[str, dict[str, str]] = {
    "Fill": {"demo": "filling.demo", "import": "filling.import_"},
    "Read": {
        "logs": "reading.logs",
        "survey": "reading.survey",
        "index": "reading.index",
        "under": "reading.under",
        "read": "reading.read",
        "grep": "reading.grep",
        "render": "reading.render",
    },
    "Edit": {
        "evict": "edits.evict",
        "force": "edits.force",
        "rewind": "edits.rewind",
        "clear": "edits.clear",
        "fork": "edits.fork",
    },
    "Talk": {"door": "talking.door", "shell": "talking.shell"},
    "Ask": {"sql": "asking.sql", "audit": "asking.audit"},
    "Keep": {
        "verify": "keeping.verify",
        "head": "keeping.head",
        "stats": "keeping.stats",
        "rebuild": "keeping.rebuild",
        "reindex": "keeping.reindex",
        "migrate": "copies.migrate",
        "backup": "copies.backup",
        "extract": "copies.extract",
        "redact": "copies.redact",
    },
}
PLACES = {name: place for section in SECTIONS.values() for name, place in section.items()}

HELP = """The whole memory of an LLM agent in one SQLite file: read it, let runs of it go under a note, prove it whole.

Every listing prints a table; --json prints one document, --nl a line each. Data goes to stdout, talk to stderr.
"""


class App(click.Group):
    """The group of all commands, in sections, each loaded when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, by section."""
        return list(PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and take it from there."""
        if cmd_name not in PLACES:
            return None
        module, _, attribute = PLACES[cmd_name].partition(".")
        command = getattr(import_module(f"exarch_sql.cli.{module}"), attribute)
        assert isinstance(command, click.Command)  # noqa: S101
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; where there is none of that name, name the nearest."""
        if args and args[0] not in PLACES and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], PLACES, 1)
            meant = f"did you mean {near[0]}?" if near else "exarch-sql --help lists them"
            raise click.UsageError(f"there is no command {args[0]!r}: {meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the commands by section, and what the exit codes mean."""
        for title, names in SECTIONS.items():
            with formatter.section(title):
                commands = ((name, self.get_command(ctx, name)) for name in names)
                formatter.write_dl([(name, command.get_short_help_str(150)) for name, command in commands if command])
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in failures.CODES.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. A reader that went away is told apart here, for click itself answers 1 to it."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise failures.NobodyReads from error

    def main(  # type: ignore[override]  # always ends in SystemExit, whatever the mode
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **_: Any
    ) -> NoReturn:
        """Run a command line and exit with its code; no error leaves as a traceback."""
        failures.exit_with(lambda: super(App, self).main(args, prog_name or "exarch-sql", standalone_mode=False))


app = App(
    "exarch-sql",
    help=HELP,
    params=[],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    no_args_is_help=True,
)
click.version_option(package_name="exarch_sql", prog_name="exarch-sql")(app)


def main() -> NoReturn:
    """Run the command line of this process: the ``exarch-sql`` script."""
    app.main()
