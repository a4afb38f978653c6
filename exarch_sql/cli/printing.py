"""How answers leave: JSON for programs, tables for eyes, talk on stderr; nothing that was recorded acts on a terminal.

``Output`` is what a listing prints through: one document, a line each, or a table. A table is drawn by rich on a terminal,
and set in plain aligned columns, each row on one line, anywhere else.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from exarch_sql.unseen import UNSEEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.console import Console

Form = Literal["eyes", "json", "nl"]

DRAWN_ROWS = 1000  # past these, rich is too slow to draw (a millisecond a row), and nobody looks row by row
CELL_POINTS = 300  # of a cell in a table; JSON has the whole

_ACTING = re.compile(f"[{UNSEEN}]")
_ACTING_IN_JSON = re.compile(f"(?![\n ])[{UNSEEN}]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Column(NamedTuple):
    """A column of a table; numbers stand on the right."""

    name: str
    number: bool = False


class Table(NamedTuple):
    """Rows for eyes: cells are text, numbers, blobs or None. The footer, if any, is one more row below."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[object]]
    footer: Sequence[object] = ()


class Output:
    """Where a listing goes, in the form that was asked for."""

    def __init__(self, form: Form) -> None:
        self.form = form

    def listing(self, document: object, lines: Iterable[object], table: Callable[[], Table]) -> None:
        """Print an answer: the whole as one document, or its parts a line each, or as a table."""
        if self.form == "json":
            write_line(json_text(document))
        elif self.form == "nl":
            for line in lines:
                write_line(json_text(line))
        else:
            write_table(table())

    def prose(self, document: object, lines: Iterable[object], prose: Callable[[], Iterable[str]]) -> None:
        """Print an answer that is read, not looked up: for eyes, text whose own lines are kept."""
        if self.form == "eyes":
            for text in prose():
                write_line(visible(text, keep="\n\t"))
        else:
            self.listing(document, lines, lambda: Table((), ()))


# -- text ----------------------------------------------------------------------------------------------------------------------


def visible(text: str, keep: str = "") -> str:
    r"""The text with everything a terminal would act on, or would not show, spelled out: ``\x1b``, ``\u202e``, ``\n``."""
    if text.isascii() and text.isprintable():
        return text
    return _ACTING.sub(lambda found: found[0] if found[0] in keep else _spelled(found[0]), text)


def _spelled(letter: str) -> str:
    code = ord(letter)
    return _SHORT.get(letter) or (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )


def json_text(value: object) -> str:
    """Compact JSON of anything with a ``to_dict``. Half surrogates, bidi and other controls are escapes, so it may be shown."""
    text = _JSON.encode(value)
    return (
        text
        if text.isascii() and text.isprintable()
        else _ACTING_IN_JSON.sub(lambda found: _json_escape(ord(found[0])), text)
    )


def _json_escape(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 | code >> 10:04x}\\u{0xDC00 | code & 0x3FF:04x}"


def _plain(value: Any) -> Any:
    """What JSON can hold of an answer: our answers by their contract, bytes in hexadecimal."""
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return list(value)


_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)


def cell_text(value: object) -> str:
    """A cell for eyes: one line, blobs in hexadecimal, the long cut short."""
    if value is None:
        return ""
    text = value.hex() if isinstance(value, bytes) else str(value)
    if len(text) > CELL_POINTS:
        text = text[: CELL_POINTS - 1] + "…"
    return visible(text)


# -- streams -------------------------------------------------------------------------------------------------------------------


def prepare_streams() -> None:
    """Make both streams able to take any text: UTF-8 in pipes and files, escapes where a terminal's own encoding falls short."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def write_line(text: str) -> None:
    """One line of data."""
    if sys.stdout is not None:
        sys.stdout.write(text + "\n")


def talk(text: str) -> None:
    """One message about the work, to stderr; its own lines are kept."""
    write_error(f"exarch-sql: {text}\n")


def write_error(text: str) -> None:
    """Text to stderr, if there is one, after the data so far: what an argument or a record brought into it does not act."""
    if sys.stdout is not None:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(visible(text, keep="\n"))
            sys.stderr.flush()


def on_terminal(stream: Any) -> bool:
    """Whether eyes are at the other end of a stream."""
    return stream is not None and stream.isatty()


def console(*, error: bool = False) -> Console:
    """A rich console that adds nothing of its own: no markup, no highlighting, no emoji, colour on terminals only."""
    from rich.console import Console  # noqa: PLC0415

    stream = sys.stderr if error else sys.stdout
    return Console(file=stream, force_terminal=on_terminal(stream), markup=False, highlight=False, emoji=False)


# -- tables --------------------------------------------------------------------------------------------------------------------


def write_table(table: Table) -> None:
    """Draw a table for eyes, or set it in plain columns where none look."""
    if not table.rows:
        talk("nothing to show")
    elif on_terminal(sys.stdout) and len(table.rows) <= DRAWN_ROWS:
        _draw(table)
    else:
        for line in _aligned(table):
            write_line(line)


def _cells(table: Table) -> list[list[str]]:
    rows = [*table.rows, table.footer] if table.footer else table.rows
    return [[cell_text(cell) for cell in row] for row in rows]


def _draw(table: Table) -> None:
    from rich import box  # noqa: PLC0415
    from rich.table import Table as Drawing  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    cells = _cells(table)
    footer = cells.pop() if table.footer else []
    drawing = Drawing(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=bool(footer))
    for place, column in enumerate(table.columns):
        drawing.add_column(
            Text(visible(column.name)),
            Text(footer[place]) if footer else "",
            justify="right" if column.number else "left",
            overflow="fold",
        )
    for row in cells:
        drawing.add_row(*map(Text, row))
    console().print(drawing)


def _aligned(table: Table) -> Iterator[str]:
    """The table in columns as wide as their widest cell, two blanks apart."""
    cells = [[visible(column.name) for column in table.columns], *_cells(table)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = [
            " " * (width - _width(cell)) + cell if column.number else cell + " " * (width - _width(cell))
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        ]
        yield "  ".join(padded).rstrip()


def _width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415

    return cell_len(text)


# -- progress ------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def progress(what: str, unit: Literal["records", "bytes"]) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr, told how much is done of how much; None where no eyes are on stderr."""
    if not on_terminal(sys.stderr):
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415
    from rich.progress import TimeRemainingColumn as Remaining  # noqa: PLC0415

    count = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), count, Remaining())
    with Progress(*columns, console=console(error=True), transient=True) as bar:
        task = bar.add_task(visible(what), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
