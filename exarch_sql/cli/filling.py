"""What fills an archive: transcripts of other programs, and the demo that shows the whole on one of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exarch_sql import Archive
from exarch_sql.cli import printing, tables
from exarch_sql.cli.base import TEXT, command, output_options
from exarch_sql.cli.printing import Output, talk
from exarch_sql.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator


@command("demo", "exarch-sql demo")
def demo() -> None:
    """Show the main job end to end on a bundled session, with the numbers it saved."""
    from exarch_sql import demo as story  # noqa: PLC0415

    story.run(lambda text: printing.write_line(printing.visible(text, keep="\n")))


@command(
    "import",
    "exarch-sql import session.jsonl --into agent.exarch",
    "exarch-sql import - --into agent.exarch --json < session.jsonl",
)
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
)
@click.option(
    "--into", "archive", metavar="ARCHIVE", type=TEXT, required=True, help="The archive; made where there is none."
)
@click.option(
    "--log", "log_name", metavar="NAME", type=TEXT, help="The log that takes the session.  [default: its own]"
)
@output_options
@click.pass_context
def import_(ctx: click.Context, files: tuple[str, ...], archive: str, log_name: str | None, out: Output) -> None:
    """Add transcripts of agents. A file that has grown adds only what is new; - is stdin."""
    from exarch_sql.importers import detect  # noqa: PLC0415

    reports: list[dict[str, Any]] = []
    refused = 0
    new = not os.path.exists(archive)
    with contextlib.ExitStack() as stack:
        file, log = None, None  # opened with the first file that is a transcript: a refused import makes no archive
        for name in files:
            try:
                with _on_disk(name) as path:
                    if file is None:
                        if new:
                            detect(path)
                        file = stack.enter_context(Archive.open(archive))
                        log = None if log_name is None else file.log(log_name)
                    reports.append(_imported(file, name, path, log))
            except Refused as error:
                refused += 1
                talk(f"stdin: {error}" if name == "-" else str(error))
            except OSError as error:
                refused += 1
                talk(f"{name}: {error.strerror or error}")
    if reports or out.form != "eyes":
        out.listing(reports, reports, lambda: tables.of_imports(reports))
    if refused:
        talk(f"{refused} of {len(files)} files were not imported")
        ctx.exit(Refused.exit_code)


def _imported(archive: Archive, name: str, path: Path, log: Any) -> dict[str, Any]:
    """One file into an archive; what was found in it."""
    from exarch_sql.importers import import_file  # noqa: PLC0415

    with printing.progress(Path(name).name, "bytes") as tick:
        report: dict[str, Any] = import_file(archive, path, log=log, progress=tick).to_dict()
    return report | {"file": name}


@contextlib.contextmanager
def _on_disk(name: str) -> Iterator[Path]:
    """The file itself; of stdin or another pipe a copy, for an importer reads its file more than once."""
    if name != "-" and Path(name).is_file():
        yield Path(name)
        return
    if name == "-" and sys.stdin is None:
        raise Refused("stdin is closed: name a file, or send one in with < FILE")
    with tempfile.TemporaryDirectory(prefix="exarch-") as folder:
        copy = Path(folder) / "stdin.jsonl"
        with (
            contextlib.nullcontext(sys.stdin.buffer) if name == "-" else open(name, "rb") as pipe,
            copy.open("wb") as file,
        ):
            shutil.copyfileobj(pipe, file)
        yield copy
