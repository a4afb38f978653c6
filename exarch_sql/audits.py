"""The audits: what to ask of any lineage file first, kept as plain SQL in ``audits.sql`` beside this module.

    for audit in audits():
        print(audit.name, audit.question)

``python -m exarch_sql.audits > docs/cookbook.md`` writes the cookbook again after that file has changed.
"""

from __future__ import annotations

import difflib
import sys
from functools import cache
from pathlib import Path

import msgspec

from exarch_sql.errors import Refused

_FIELDS = ("audit", "question", "reading")
_COOKBOOK = """\
# Cookbook of audits

<!-- Made from exarch_sql/audits.sql by `python -m exarch_sql.audits > docs/cookbook.md`. Edit that file, not this one. -->

A lineage file answers these questions in plain SQL, without this package: {count} statements over its tables and views, for any
SQLite from 3.40 on. They only read. Three ways to ask:

```sh
exarch-sql audit lineage.exarch                   # the list
exarch-sql audit lineage.exarch biggest           # one of them; --json and --nl for programs
sqlite3 -readonly -box lineage.exarch < audits.sql  # all of them, with SQLite's own shell
```

The last takes `exarch_sql/audits.sql` from the source or the installed package; `exarch-sql audit lineage.exarch --json` prints
every statement too. For questions of your own, `exarch-sql sql lineage.exarch QUERY` runs one reading
statement within limits of time and memory.

{contents}
{recipes}"""
_RECIPE = """
## {name}

**{question}**

{reading}

```sql
{sql}
```
"""


class Audit(msgspec.Struct, frozen=True):
    """One audit: its name, the question in words, how to read the answer, and one SQL statement."""

    name: str
    question: str
    reading: str
    sql: str

    def to_dict(self) -> dict[str, str]:
        """``{"name", "question", "reading", "sql"}``."""
        return msgspec.structs.asdict(self)


@cache
def audits() -> tuple[Audit, ...]:
    """Every shipped audit, in the order to ask. Raises FileNotFoundError when the installation is incomplete."""
    path = Path(__file__).with_name("audits.sql")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not part of this installation: install exarch_sql again")
    _, *chunks = path.read_text(encoding="utf-8").split("\n-- audit: ")
    return tuple(_parsed("-- audit: " + chunk) for chunk in chunks)


def audit(name: str) -> Audit:
    """The audit of this name. Raises Refused, naming those there are."""
    known = {found.name: found for found in audits()}
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise Refused(f"there is no audit {name!r}: {meant}the audits are {', '.join(known)}; `all` runs them all")
    return known[name]


def cookbook() -> str:
    """The text of ``docs/cookbook.md``."""
    contents = "".join(f"- [{found.name}](#{found.name}): {found.question}\n" for found in audits())
    recipes = "".join(_RECIPE.format(**found.to_dict()) for found in audits())
    return _COOKBOOK.format(count=len(audits()), contents=contents, recipes=recipes)


def _parsed(chunk: str) -> Audit:
    """One audit of the file: comment lines ``-- field: text``, gone on with by ``--   text``, then the statement."""
    fields: dict[str, str] = {}
    lines = chunk.strip().splitlines()
    while lines and lines[0].startswith("-- "):
        line = lines.pop(0).removeprefix("-- ")
        if line.startswith("  "):
            fields[list(fields)[-1]] += " " + line.strip()
        else:
            name, _, text = line.partition(": ")
            fields[name] = text
    if tuple(fields) != _FIELDS:
        raise ValueError(f"audits.sql: an audit has the fields {', '.join(_FIELDS)}; got {', '.join(fields)}")
    return Audit(fields["audit"], fields["question"], fields["reading"], "\n".join(lines).rstrip())


if __name__ == "__main__":
    sys.stdout.write(cookbook())
