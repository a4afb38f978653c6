"""What goes wrong, and what the shell is told of it: the one place where errors become exit codes."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from exarch_sql.cli import printing
from exarch_sql.errors import ExarchError

if TYPE_CHECKING:
    from collections.abc import Callable

UNLAWFUL = 3  # what `verify` answers when it finds a fault; BadFile's own code
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
UNREAD = 141  # 128 + SIGPIPE: whoever read the output went away
OURS = 70  # EX_SOFTWARE

CODES = {
    0: "done",
    1: "refused, or could not be written",
    2: "usage",
    3: "the file is foreign, damaged or unlawful",
    4: "busy: another process holds the file",
    OURS: "a fault of exarch_sql itself",
    INTERRUPTED: "interrupted",
    UNREAD: "nobody reads the output any more",
}
DEBUG = "EXARCH_SQL_DEBUG"  # set in the environment, a fault of ours shows its traceback


class NobodyReads(Exception):
    """Whoever read the output went away."""


def exit_with(run: Callable[[], object]) -> NoReturn:
    """Run a command line and leave with its code; what it raises is told in one message on stderr."""
    printing.prepare_streams()
    code = _code_of(run)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            code = code or _told(error)
            _abandon(stream)
    sys.exit(code)


def _code_of(run: Callable[[], object]) -> int:
    try:
        answer = run()
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(file=shown)
        printing.write_error(shown.getvalue())
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        printing.talk("interrupted")
        return INTERRUPTED
    except Exception as error:
        return _told(error)
    return answer if isinstance(answer, int) else 0


def _told(error: Exception) -> int:
    """Say what happened; the exit code."""
    match error:
        case ExarchError():
            printing.talk(str(error))
            return error.exit_code
        case BrokenPipeError() | NobodyReads():
            _abandon(sys.stdout)
            return UNREAD
        case OSError():
            where = f"{error.filename}: " if error.filename else "the output could not be written: "
            printing.talk(f"{where}{error.strerror or error}")
            return 1
    if os.environ.get(DEBUG):
        raise error
    printing.talk(
        f"a fault of exarch_sql itself, {type(error).__name__}: {error}. Nothing is left half-written; "
        f"please report it, with what {DEBUG}=1 in the environment shows"
    )
    return OURS


def _abandon(stream: object) -> None:
    """Point a stream that cannot be written at nothing, so that the interpreter's own last flush is silent."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[attr-defined]
