"""Read-only SQL on a lineage file: one statement, on a connection of its own, within bounds.

Three things hold it. The connection is opened for reading. An authorizer, asked while the statement is prepared, admits only what
reads: the file's own tables and views, JSON, SQLite's harmless functions and a few pragmas. Limits on time, memory, rows and cells
are checked as it runs. Time can be checked only between the steps of a statement, so the text functions whose single call may
take time quadratic in its arguments are replaced by ones that take linear time.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from exarch_sql import arguments
from exarch_sql.connection import close_reader, open_file, translated
from exarch_sql.errors import Refused
from exarch_sql.messages import MAX_BODY_BYTES, is_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from exarch_sql.answers import Json

Cell = None | int | float | str | bytes

SECONDS = 5.0
ROWS = 10_000
CELL_BYTES = 16 * 1024 * 1024
RESULT_BYTES = 64 * 1024 * 1024  # all cells together; rows past it are left out
MEMORY_BYTES = 1024 * 1024 * 1024  # what SQLite may take beyond what it held before the query
VALUE_BYTES = MAX_BODY_BYTES + 1024 * 1024  # the largest value a query may meet: a whole record
PATTERN_POINTS = 1000  # of LIKE and GLOB
CHECK_EVERY = 100  # steps of SQLite's machine; a step may make a value of VALUE_BYTES, so few

LIMITS = {
    apsw.SQLITE_LIMIT_LENGTH: VALUE_BYTES,
    apsw.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    apsw.SQLITE_LIMIT_COLUMN: 500,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 100,
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    apsw.SQLITE_LIMIT_VDBE_OP: 100_000,
    apsw.SQLITE_LIMIT_FUNCTION_ARG: 100,
    apsw.SQLITE_LIMIT_VARIABLE_NUMBER: 1000,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}
PRAGMAS_OF_A_NAME = frozenset(
    {"table_info", "table_xinfo", "index_list", "index_info", "index_xinfo", "foreign_key_list"}
)
PRAGMAS = PRAGMAS_OF_A_NAME | {
    "application_id", "compile_options", "encoding", "freelist_count", "function_list", "page_count",
    "page_size", "table_list", "user_version",
}  # fmt: skip
SCHEMA_TABLES = frozenset({"sqlite_schema", "sqlite_master"})
READING_MODULES = frozenset({"json_each", "json_tree"})
NOT_OURS = ("geopoly_", "fts5_")  # functions of table kinds that a lineage has none of

_OBJECTS_SQL = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%' ORDER BY type DESC, name"
# SQLite marks as innocuous what has no side effect and tells nothing but of its arguments
_FUNCTIONS_SQL = f"SELECT DISTINCT name FROM pragma_function_list WHERE flags & {apsw.SQLITE_INNOCUOUS}"
_BLANK = re.compile(r"(?:[\s;]|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))*", re.DOTALL)


class Result(msgspec.Struct, frozen=True):
    """What a query answered. ``truncated`` says that rows were left out, by count or by size."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    truncated: bool

    def to_dict(self) -> Json:
        """``{"columns", "rows", "truncated"}``; blobs stay bytes, for JSON has none."""
        return {"columns": list(self.columns), "rows": [list(row) for row in self.rows], "truncated": self.truncated}


def query(
    path: str | os.PathLike[str],
    sql: str,
    *,
    params: Sequence[Any] | Mapping[str, Any] = (),
    seconds: float = SECONDS,
    rows: int = ROWS,
    cell_bytes: int = CELL_BYTES,
) -> Result:
    """Run one reading statement on a lineage file and answer its rows.

    ``params`` are bound to ``?`` or ``:name``. ``rows`` past the limit are left out and said to be; a cell of more than
    ``cell_bytes``, or a query of more than ``seconds``, is refused. Raises Refused, naming what was tried and what would work;
    BadFile and Busy as opening does; KeyboardInterrupt while the statement runs.
    """
    if not is_text(sql):
        raise Refused("a query is text without NUL or half surrogates")
    seconds, rows = arguments.seconds(seconds, "seconds"), arguments.whole(rows, "rows")
    if seconds <= 0 or rows < 1 or cell_bytes < 1:
        raise Refused(
            f"a query needs some time, a row and a byte: got seconds={seconds}, rows={rows}, cell_bytes={cell_bytes}"
        )
    db = open_file(str(path), readonly=True, durability="full", timeout=5.0)
    try:
        with translated(str(path)):
            return _Query(db, sql, seconds, rows, cell_bytes).answer(params)
    finally:
        close_reader(db)


class _Query:
    """One statement on a connection that is hardened for it and closed after it."""

    def __init__(self, db: apsw.Connection, sql: str, seconds: float, rows: int, cell_bytes: int) -> None:
        self.db, self.sql = db, sql.lstrip("; \t\r\n")
        self.seconds, self.rows, self.cell_bytes = seconds, rows, cell_bytes
        self.deadline = time.monotonic() + seconds
        self.memory = apsw.memory_used() + MEMORY_BYTES
        self.refusal: str | None = None
        self.columns: tuple[str, ...] = ()
        self.statements = 0
        self.objects = tuple(name for (name,) in db.execute(_OBJECTS_SQL))
        self.functions = frozenset(name for (name,) in db.execute(_FUNCTIONS_SQL) if not name.startswith(NOT_OURS))
        self.tables = SCHEMA_TABLES | READING_MODULES | frozenset(self.objects)

    def answer(self, params: Sequence[Any] | Mapping[str, Any]) -> Result:
        """Prepare, bind, run and fetch, within the limits."""
        self._bound()
        cursor = self.db.cursor()
        cursor.exec_trace = self._starts
        try:
            cursor.execute(self.sql, params)
            return self._fetched(cursor)
        except (apsw.AuthError, apsw.InterruptError, apsw.NoMemError) as error:
            raise Refused(self.refusal or f"the query was stopped: {error}") from error
        except apsw.TooBigError as error:
            raise Refused(
                f"the query makes a value of more than {VALUE_BYTES} bytes, or is itself too long: {error}"
            ) from error
        except UnicodeDecodeError as error:
            raise Refused("a cell holds text that is not UTF-8: select hex(...) of it, or CAST(... AS BLOB)") from error
        except apsw.BindingsError as error:
            raise Refused(f"the parameters do not fit the query: {error}") from error
        except (apsw.SQLError, apsw.MismatchError, apsw.RangeError) as error:
            raise Refused(self.refusal or self._explained(error)) from error

    def _bound(self) -> None:
        """Put the limits, the linear functions and the authorizer on the connection, in this order."""
        for limit, value in LIMITS.items():
            self.db.limit(limit, value)
        self.db.config(apsw.SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0)
        self.db.execute("PRAGMA query_only = ON")
        _Linear(self.db).register()
        self.db.authorizer = self._admits
        self.db.set_progress_handler(self._goes_on, CHECK_EVERY)

    # -- while it is prepared ------------------------------------------------------------------------------------------------

    def _admits(self, action: int, one: str | None, two: str | None, schema: str | None, _inner: str | None) -> int:
        """Say whether a statement may do this. The first thing it may not do is what the refusal names."""
        refusal: str | None
        match action:
            case apsw.SQLITE_SELECT | apsw.SQLITE_RECURSIVE:
                refusal = None
            case apsw.SQLITE_READ:
                refusal = self._may_read(str(one), schema)
            case apsw.SQLITE_FUNCTION:
                known = str(two).lower() in self.functions
                refusal = (
                    None if known else f"the query calls {two}(): only functions without side effects may be called"
                )
            case apsw.SQLITE_PRAGMA:
                refusal = _may_ask(str(one).lower(), two)
            case _:
                refusal = _told(action, one)
        if refusal is None:
            return apsw.SQLITE_OK
        self.refusal = self.refusal or f"{refusal}; a query here only reads, and the file was left as it is"
        return apsw.SQLITE_DENY

    def _may_read(self, table: str, schema: str | None) -> str | None:
        if schema is None:
            return None  # a name that the query itself gave: WITH table AS (...)
        name = table.lower()
        if schema == "main" and (name in self.tables or name.removeprefix("pragma_") in PRAGMAS):
            return None
        return f"the query reads {table}: it may read the tables and views of the lineage ({', '.join(self.objects)}), and JSON"

    def _starts(self, cursor: apsw.Cursor, statement: str, _bindings: object) -> bool:
        """Called with each statement before it runs: there is one, it reads, and nothing but comments follows it."""
        self.statements += 1
        if self.statements > 1:
            return True  # the comments after it
        rest = self.sql[len(statement) :]
        if not _BLANK.fullmatch(rest):
            raise Refused(f"the query holds more than one statement: run the next one by itself, {_shown(rest)}")
        if not cursor.is_readonly:
            raise Refused("the statement writes: a query here only reads, and the file was left as it is")
        self.columns = tuple(column[0] for column in cursor.get_description())
        if not self.columns:
            raise Refused("there is no statement in the query: try SELECT * FROM turns LIMIT 10")
        return True

    # -- while it runs -------------------------------------------------------------------------------------------------------

    def _goes_on(self) -> bool:
        """Called every few steps: whether to stop. A pending Ctrl-C is raised from here by the interpreter."""
        if time.monotonic() > self.deadline:
            self.refusal = (
                f"the query took more than {self.seconds:g} s: narrow it (WHERE log = 1 AND turn < 100), or allow more"
            )
        elif apsw.memory_used() > self.memory:
            self.refusal = (
                f"the query needs more than {MEMORY_BYTES >> 20} MB: narrow it, or sort and group less at a time"
            )
        else:
            return False
        return True

    def _fetched(self, cursor: apsw.Cursor) -> Result:
        kept: list[tuple[Cell, ...]] = []
        size = 0
        for row in cursor:
            if len(kept) == self.rows:
                return Result(self.columns, tuple(kept), truncated=True)
            for name, cell in zip(self.columns, row, strict=True):
                weight = _weight(cell)
                if weight > self.cell_bytes:
                    raise Refused(
                        f"a cell of column {name} holds {weight} bytes, more than the {self.cell_bytes} allowed: "
                        "select substr(..., 1, 1000) of it, or allow more"
                    )
                size += weight
            if size > RESULT_BYTES:
                return Result(self.columns, tuple(kept), truncated=True)
            kept.append(row)
        return Result(self.columns, tuple(kept), truncated=False)

    # -- when it fails -------------------------------------------------------------------------------------------------------

    def _explained(self, error: apsw.Error) -> str:
        """What SQLite said, where in the query, and what might have been meant."""
        said = f"SQLite does not take the query: {error}"
        if str(error).startswith("no such table"):
            said += f"; there are {', '.join(self.objects)}"
        elif "REGEXP" in str(error).upper():
            said += "; `exarch-sql grep` searches by regular expression"
        return said + _caret(self.sql, getattr(error, "error_offset", -1))


def _may_ask(pragma: str, argument: str | None) -> str | None:
    if pragma in PRAGMAS and (argument is None or pragma in PRAGMAS_OF_A_NAME):
        return None
    tried = f"PRAGMA {pragma}" + (f" = {argument}" if argument is not None else "")
    if pragma in ("integrity_check", "quick_check", "foreign_key_check"):
        return f"the query runs {tried}: `exarch-sql verify` checks the file"
    return f"the query runs {tried}: the pragmas it may read are {', '.join(sorted(PRAGMAS))}"


def _told(action: int, what: str | None) -> str:
    """What the statement does, from the action that SQLite asked leave for."""
    name = str(apsw.mapping_authorizer_function[action]).removeprefix("SQLITE_").replace("_", " ")
    match action:
        case apsw.SQLITE_ATTACH | apsw.SQLITE_DETACH:
            return f"the query opens or closes another file ({name}): open that one with sqlite3"
        case apsw.SQLITE_TRANSACTION | apsw.SQLITE_SAVEPOINT:
            return f"the query steers a transaction ({name}): a query is one by itself"
        case _:
            on = f" on {what}" if what else ""
            return f"the query writes ({name}{on}): records are added by import, evict, force, rewind, clear and fork"


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"


def _caret(sql: str, offset: int | None) -> str:
    """The line of the query at a byte offset, with a caret under it; nothing when the offset is unknown."""
    if offset is None or offset < 0:
        return ""
    before = sql.encode()[:offset].decode(errors="ignore")
    start = before.rfind("\n") + 1
    line = sql[start:].partition("\n")[0]
    column = len(before) - start
    left = max(0, column - 60)
    return f"\n  {line[left : left + 100]}\n  {' ' * (column - left)}^"


def _weight(cell: Cell) -> int:
    """Bytes of a cell; exact for text that is long enough to matter."""
    if isinstance(cell, str):
        return len(cell) if len(cell) < 1000 or cell.isascii() else len(cell.encode())
    return len(cell) if isinstance(cell, bytes) else 8


# -- text functions in linear time ---------------------------------------------------------------------------------------------


class _Linear:
    """SQLite's own LIKE, GLOB, instr, replace and trim may take the product of their arguments' lengths, within one step.

    These answer the same for text, numbers and blobs of UTF-8, in time linear in the text.
    """

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self.blobs_match = bool(
            db.execute("SELECT x'61' LIKE 'a'").fetchall()[0][0]
        )  # a choice made when SQLite is built

    def register(self) -> None:
        """Put them in the place of the built-in ones, on this connection alone."""
        functions: list[tuple[str, int, Callable[..., Cell]]] = [
            ("like", 2, self._like),
            ("like", 3, self._like),
            ("glob", 2, self._glob),
            ("instr", 2, self._instr),
            ("replace", 3, self._replace),
            ("trim", 2, partial(self._trim, str.strip)),
            ("ltrim", 2, partial(self._trim, str.lstrip)),
            ("rtrim", 2, partial(self._trim, str.rstrip)),
            ("unhex", 2, self._unhex),
        ]
        for name, count, function in functions:
            self.db.create_scalar_function(name, function, count, deterministic=True, flags=apsw.SQLITE_INNOCUOUS)

    def _text(self, value: Cell) -> str:
        """A value as SQLite would read it as text."""
        if isinstance(value, str):
            return value
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        return str(self.db.execute("SELECT CAST(? AS TEXT)", (value,)).fetchall()[0][0])

    def _is_apart(self, *values: Cell) -> bool:
        """Whether a blob stands among values that are to be matched, where blobs match nothing."""
        return not self.blobs_match and any(isinstance(value, bytes) for value in values)

    def _like(self, pattern: Cell, value: Cell, escape: Cell = "") -> Cell:
        if self._is_apart(pattern, value):
            return False
        if pattern is None or value is None or escape is None:
            return None
        sign = self._text(escape)
        if escape != "" and len(sign) != 1:
            raise Refused("ESCAPE expression must be a single character")
        return _like(self._text(pattern), sign).fullmatch(self._text(value)) is not None

    def _glob(self, pattern: Cell, value: Cell) -> Cell:
        if self._is_apart(pattern, value):
            return False
        if pattern is None or value is None:
            return None
        return _glob(self._text(pattern)).fullmatch(self._text(value)) is not None

    def _instr(self, value: Cell, part: Cell) -> Cell:
        if value is None or part is None:
            return None
        if isinstance(value, bytes) and isinstance(part, bytes):
            return value.find(part) + 1
        return self._text(value).find(self._text(part)) + 1

    def _replace(self, value: Cell, old: Cell, new: Cell) -> Cell:
        if value is None or old is None or new is None:
            return None
        text, out, in_ = self._text(value), self._text(old), self._text(new)
        if not out:
            return text
        if len(text) + text.count(out) * max(0, len(in_) - len(out)) > VALUE_BYTES:
            raise apsw.TooBigError("string or blob too big")
        return text.replace(out, in_)

    def _trim(self, strip: Callable[[str, str], str], value: Cell, letters: Cell) -> Cell:
        if value is None or letters is None:
            return None
        text = self._text(letters)
        if len(text) > PATTERN_POINTS:
            raise Refused(f"trim takes at most {PATTERN_POINTS} letters to trim; got {len(text)}")
        return strip(self._text(value), text)

    @staticmethod
    def _unhex(_value: Cell, _ignored: Cell) -> Cell:
        raise Refused("unhex with letters to ignore is not offered here: take them out with replace() first")


def _checked(pattern: str) -> str:
    if len(pattern) > PATTERN_POINTS:
        raise Refused(f"LIKE and GLOB take patterns of at most {PATTERN_POINTS} characters; got {len(pattern)}")
    return pattern


def _compiled(expression: str) -> Any:
    import re2  # noqa: PLC0415  (only queries with a LIKE or GLOB load it)

    return re2.compile("(?s)" + expression)


@lru_cache(maxsize=64)
def _like(pattern: str, escape: str) -> Any:
    """A LIKE pattern for RE2: ``%`` any run, ``_`` any character, letters of ASCII in either case."""
    out = []
    letters = iter(_checked(pattern))
    for letter in letters:
        if escape and letter == escape:
            out.append(_either_case(next(letters, "")) or r"\z.")
        else:
            out.append({"%": ".*", "_": "."}.get(letter) or _either_case(letter))
    return _compiled("".join(out))


def _either_case(letter: str) -> str:
    return f"[{letter.lower()}{letter.upper()}]" if letter.isascii() and letter.isalpha() else re.escape(letter)


@lru_cache(maxsize=64)
def _glob(pattern: str) -> Any:
    """A GLOB pattern for RE2: ``*`` any run, ``?`` any character, ``[...]`` a set; case counts."""
    out, at = [], 0
    while at < len(_checked(pattern)):
        letter = pattern[at]
        at += 1
        if letter == "[":
            negated = pattern[at : at + 1] == "^"
            start = at + negated
            end = pattern.find("]", start + 1)
            if end < 0:
                return _compiled(r"\z.")  # an open set matches nothing
            out.append(_set(pattern[start:end], negated=negated))
            at = end + 1
        else:
            out.append({"*": ".*", "?": "."}.get(letter) or re.escape(letter))
    return _compiled("".join(out))


def _set(inside: str, *, negated: bool) -> str:
    """A set of characters and ranges ``a-z``. As in SQLite, the start of a range is in the set even when the range goes down."""
    ranges: list[str] = []
    at, start = 0, ""  # start: the letter that a dash would make a range from
    while at < len(inside):
        letter = inside[at]
        at += 1
        if letter == "-" and start and at < len(inside):
            if start <= inside[at]:
                ranges.append(_between(start, inside[at]))
            at, start = at + 1, ""
        else:
            ranges.append(_between(letter, letter))
            start = "" if at == 1 and letter == "]" else letter
    return f"[{'^' if negated else ''}{''.join(ranges)}]"


def _between(low: str, high: str) -> str:
    return rf"\x{{{ord(low):x}}}-\x{{{ord(high):x}}}"
