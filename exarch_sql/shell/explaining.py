"""What a line means: its tree, the verbs it calls, and the SQL those run, with the plan SQLite makes of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from exarch_sql import judge, log, query, reading, search, store
from exarch_sql.door import check, parser, tree
from exarch_sql.door.refusals import DoorRefused
from exarch_sql.door.verbs import FAMILIES, VERBS, Verb

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from exarch_sql.shell.view import LogView


class Statement(NamedTuple):
    """One SQL statement, under the name it has in the code."""

    name: str
    sql: str


_STATE = Statement("judge.STATE_SQL", judge.STATE_SQL)
_SURVEY = Statement("reading.SURVEY_SQL", reading.SURVEY_SQL)
_SURVEY_AT = Statement("reading.SURVEY_AT_SQL", reading.SURVEY_AT_SQL)

# What each verb runs; a test holds it to what is traced. In the past, _SURVEY_AT runs in the place of _SURVEY; where there is much
# to search, grep asks its index as well, on a plan of its own.
RUNS: dict[str, tuple[Statement, ...]] = {
    "survey": (_SURVEY,),
    "evict": (
        _STATE,
        Statement("log.GROUND_SQL", log.GROUND_SQL),
        Statement("store.APPEND_OTHER_SQL", store.APPEND_OTHER_SQL),
        _SURVEY,
    ),
    "index": (Statement("reading.INDEX_SQL", reading.INDEX_SQL),),
    "under": (Statement("reading.WITHIN_SQL", reading.WITHIN_SQL),),
    "read": (
        _STATE,
        Statement("reading.MATERIAL_SQL", reading.MATERIAL_SQL),
        Statement("store.BLOB_SQL", store.BLOB_SQL),
    ),
    "grep": (_STATE, *(Statement(f"search.{name}", sql) for name, sql in search.SCAN.items())),
}


def explained(line: str, view: LogView, names: Set[str]) -> Iterator[str]:
    """The explanation of a line, in lines of text. Raises as running it would before anything runs; nothing does."""
    program = parser.parse(line)
    try:
        check.check(program, names)
    except DoorRefused as error:
        raise error.placed(line) from None
    yield from drawn(program)
    calls = list(dict.fromkeys(verb.tag for verb in calls_of(program)))
    if not calls:
        yield "no verb is written out in it: it asks the log nothing that can be told beforehand"
    for tag in calls:
        for statement in RUNS[tag]:
            shown = _SURVEY_AT if statement is _SURVEY and view.at is not None else statement
            yield from _told(tag, shown, view)


# -- the tree ------------------------------------------------------------------------------------------------------------------


def drawn(node: object, indent: str = "") -> Iterator[str]:
    """A tree, a node a line, indented under what holds it."""
    if isinstance(node, tree.Node):
        plain = [repr(part) for part in node.contents() if not isinstance(part, tree.Node | tuple) and part is not None]
        yield " ".join([f"{indent}{type(node).__name__}", *plain])
        for part in node.contents():
            if isinstance(part, tree.Node | tuple):
                yield from drawn(part, indent + "  ")
    elif isinstance(node, tuple):
        for part in node:
            yield from drawn(part, indent)
    elif node is not None:
        yield f"{indent}{node!r}"


def calls_of(node: object) -> Iterator[Verb]:
    """The verbs that a tree writes out, in reading order."""
    if isinstance(node, tree.Command):
        head, args = node.head, node.args
        if isinstance(head, tree.Word) and head.value in FAMILIES and args and isinstance(args[0], tree.Tag):
            yield from filter(None, [FAMILIES[head.value].get(args[0].label)])
        elif isinstance(head, tree.Tag) and head.label in VERBS:
            yield VERBS[head.label]
    for part in node.contents() if isinstance(node, tree.Node) else node if isinstance(node, tuple) else ():
        yield from calls_of(part)


# -- the SQL -------------------------------------------------------------------------------------------------------------------


def _told(tag: str, statement: Statement, view: LogView) -> Iterator[str]:
    yield ""
    yield f"`{tag} runs {statement.name}"
    yield from (f"  {line}" for line in statement.sql.strip("\n").split("\n"))
    if not statement.sql.lstrip().startswith(("SELECT", "WITH")):
        yield "it writes: its guards and what it changes are the triggers of schema.sql"
        return
    yield "its plan"
    found = query.query(view.path, f"EXPLAIN QUERY PLAN {statement.sql}", params=_bound(statement.sql, view))
    depth: dict[query.Cell, int] = {0: 0}
    for id_, parent, _, detail in found.rows:
        depth[id_] = depth.get(parent, 0) + 1
        yield f"{'  ' * depth[id_]}{detail!s}"


def _bound(sql: str, view: LogView) -> dict[str, Any] | list[Any]:
    """Something for each parameter: a plan is the same whatever they are."""
    names = re.findall(r":(\w+)", sql)
    return {**dict.fromkeys(names), "log": view.number} if names else [view.number] * sql.count("?")
