"""Writes the generated pages of docs/ from what they describe: the schema, the commands. ``make docs``; a test compares.

Each page is a function that returns its text, so that nothing is described in two places.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from exarch_sql import audits, resources

if TYPE_CHECKING:
    import click

DOCS = Path(__file__).parent
CREATED = re.compile(r"((?:--[^\n]*\n)+)CREATE (TABLE|VIEW) (\w+)(.*?)(?=\n\n|\Z)", re.S)


def schema_page() -> str:
    """docs/schema.md: every table and view with its columns, from the comments of schema.sql."""
    text = resources.text("schema.sql")
    db = apsw.Connection(":memory:")
    db.execute(text)
    parts = [
        "# The schema",
        "Generated from `schema.sql` by `make docs`. Tables of part 1 endure; those of part 2 follow from them and can be\n"
        "rebuilt; the views of part 3 are for people. All of it answers on SQLite 3.40, in any client.",
    ]
    sections = re.split(r"-{100,}\n-- (\d\. [^:\n]*): [^\n]*\n-{100,}\n", text)
    for title, body in zip(sections[1::2], sections[2::2], strict=True):
        parts.append(f"## {title}")
        for comment, kind, name, definition in CREATED.findall(body):
            about = " ".join(re.findall(r"-- ?(.*)", comment))
            parts.append(f"### {kind.lower()} `{name}`\n\n{about[0].upper()}{about[1:]}")
            parts.append(_columns(db, kind, name, definition))
        triggers = re.findall(
            r"CREATE TRIGGER (\w+) (BEFORE|AFTER|INSTEAD OF) (\w+) ON (\w+)(.*?)\nEND;|END;", body, re.S
        )
        if any(trigger[0] for trigger in triggers):
            parts.append(_refusals(body))
    return "\n\n".join(parts) + "\n"


def _columns(db: apsw.Connection, kind: str, name: str, definition: str) -> str:
    """The columns of a table or view as a Markdown table, with what their comments say."""
    rows = ["| column | type | |", "| --- | --- | --- |"]
    for column, type_, notnull in db.execute('SELECT name, type, "notnull" FROM pragma_table_xinfo(?)', (name,)):
        comment = r",? +-- ([^\n]*(?:\n {20,}-- [^\n]*)*)"
        found = re.search(rf"\bAS {column}{comment}", definition)
        found = found or re.search(rf"^  (?:\w\.)?{column}(?: +(?!AS )[A-Z][^\n-]*)?{comment}", definition, re.M)
        said = re.sub(r"\s*\n\s*-- ", " ", found[1]) if found else ""
        shown = "" if kind == "VIEW" else f"{type_} NOT NULL" if notnull else type_
        rows.append(f"| `{column}` | {shown} | {said.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def _refusals(body: str) -> str:
    """What the triggers refuse, by law, in their own words."""
    said = sorted(
        set(re.findall(r"RAISE\(ABORT, '(L\d+): ([^']*)'\)", body)), key=lambda law: (int(law[0][1:]), law[1])
    )
    rows = "\n".join(f"| {law} | {words} |" for law, words in said)
    return f"### What the triggers refuse\n\n| law | message |\n| --- | --- |\n{rows}"


def command_line_page() -> str:
    """docs/command-line.md: every command's help."""
    from exarch_sql.cli import app

    parts = ["# The command line", "Generated from `--help` by `make docs`.", _help(app, "exarch-sql", None)]
    with app.make_context("exarch-sql", [], resilient_parsing=True, terminal_width=100) as context:
        parts += [_help(app.get_command(context, name), name, context) for name in app.list_commands(context)]
    return "\n\n".join(parts) + "\n"


def _help(command: click.Command | None, name: str, parent: click.Context | None) -> str:
    if command is None:
        raise ValueError(f"no command {name}")
    with command.make_context(name, [], parent=parent, resilient_parsing=True, terminal_width=100) as context:
        title = context.command_path
        return f"## `{title}`\n\n```\n{command.get_help(context)}\n```"


def python_page() -> str:
    """docs/python.md: the public names, with their signatures and docstrings."""
    import exarch_sql

    parts = [
        "# The Python API",
        "Generated from the docstrings by `make docs`. Everything here is importable from `exarch_sql`. All that is refused on\n"
        "purpose derives from `ExarchError`; answers are frozen and have `to_dict()`, the JSON of the command line.",
    ]
    for title, names in PUBLIC.items():
        parts.append(f"## {title}")
        parts += [_class(getattr(exarch_sql, name)) for name in names]
    return "\n\n".join(parts) + "\n"


def _class(class_: type) -> str:
    """A class: what it is, its fields, its methods."""
    lines = [f"### `{class_.__name__}`", inspect.cleandoc(class_.__doc__ or "")]
    if fields := getattr(class_, "__struct_fields__", ()):
        lines.append("Fields: " + ", ".join(f"`{name}`" for name in fields) + ".")
    for name, member in vars(class_).items():
        if name.startswith("_") or not inspect.getdoc(member) or name == "to_dict":
            continue
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if isinstance(plain, property):
            head = name
        elif inspect.isfunction(plain):
            signature = str(inspect.signature(plain)).replace("self, ", "").replace("cls, ", "").replace("(self)", "()")
            head = f"{name}{signature}".replace("'", "")
        else:
            continue
        lines.append(f"**`{head}`**\n\n{inspect.getdoc(member)}")
    return "\n\n".join(lines)


PUBLIC = {
    "The archive": ["Archive"],
    "A log": ["Log"],
    "Answers": [
        "Turn",
        "Survey",
        "Row",
        "Location",
        "Span",
        "Material",
        "Found",
        "Hit",
        "Pressure",
        "LogInfo",
        "Head",
        "Report",
        "Migrated",
    ],
    "Errors": ["ExarchError", "Refused", "Busy", "BadFile"],
}
PAGES = {
    "schema.md": schema_page,
    "command-line.md": command_line_page,
    "cookbook.md": audits.cookbook,
    "python.md": python_page,
}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
