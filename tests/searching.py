"""What the tests of search share: lineages made from a seed, an oracle that searches them by definition, and index stages.

The oracle reads `records` with SQL of its own, splits lines by itself and asks RE2 about each line alone; only what of a message is
searched (``messages.searched_text``) is taken from the product.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import apsw
import re2

from exarch_sql import Archive, Refused, messages
from exarch_sql.patterns import searchable
from exarch_sql.search import build, drop, grep, index, sieve

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import pytest

    from exarch_sql import Log

WORDS = (
    "parser", "range", "FAILED", "tests/test_range.py", "error:", "x=41", "Ключ", "ключ", "日本語", "été", "ÉTÉ", "straße",
    "token\tend",
    "ᲁомик",
    "a", "b", "the", "--", '"q"', "\\n", "C:\\d",
)  # fmt: skip
PATTERNS = (
    "FAILED", "(?i)failed", "parser range", "par[sz]er", "tests/.*py", r"x=\d+", "ключ", "(?i)ключ", "(?i)домик", "日本", "(?i)ét",
    "^the",
    "end$", r"\bparser\b", "FAILED|error:", ".", "", "nowhere to be found", r"token\tend", '"q"', r"C:\\d", r"\s--\s",
    "(FAILED.*){2}", "stra(ß|ss)e", "redacted", "note", "[^a-z ]{4}", r"\n", "ranger?",
)  # fmt: skip

ANCESTRY_SQL = "SELECT ancestor, upto, turn_from, turn_to FROM ancestry WHERE log = ? ORDER BY turn_from"
RECORDS_SQL = """
SELECT seq, turn, body, (SELECT o.origin FROM records AS o WHERE o.log = r.log AND o.turn = r.turn ORDER BY o.seq LIMIT 1)
  FROM records AS r WHERE log = ? AND seq <= ? AND turn BETWEEN ? AND ? ORDER BY turn, seq"""
NOTES_SQL = "SELECT span_from, span_to, seq, note FROM residues WHERE log = ? AND seq <= ? AND note IS NOT NULL"


def lines_of(text: str) -> list[str]:
    """The lines of a text, written out plainly: split at LF, one CR before it dropped, no empty line at the end."""
    *whole, last = text.split("\n")
    return [line.removesuffix("\r") for line in whole] + ([last] if last else [])


def spoken(char: str) -> str:
    """A character as it is shown: NUL and half surrogates, which nobody can print, as U+FFFD."""
    return "\ufffd" if char == "\0" or "\ud800" <= char <= "\udfff" else char


def by_definition(log: Log, pattern: str, turns: list[int] | None = None) -> dict[str, Any]:
    """What grep must answer, as JSON, found without any filter: every line of every record, one by one."""
    options = re2.Options()
    options.log_errors = False
    compiled = re2.compile(searchable(pattern).encode(), options)
    found: list[tuple[tuple[int, ...], dict[str, Any]]] = []

    def look(order: tuple[int, ...], text: str, hit: dict[str, Any]) -> None:
        for number, line in enumerate(lines_of("".join(map(spoken, text))), 1):
            if compiled.search(line.encode()):
                cut = line.encode()[:200].decode(errors="ignore")
                found.append(((*order, number), {**hit, "line": number, "text": cut}))

    with log._store.reading() as db:
        unclosed = log.stands().unclosed
        for ancestor, upto, first, last in db.execute(ANCESTRY_SQL, (log.number,)).fetchall():
            for seq, turn, body, origin in db.execute(RECORDS_SQL, (ancestor, upto, first, last)):
                wanted = turn != unclosed if turns is None else turn in turns
                for place, message in enumerate(json.loads(body) if body and wanted else []):
                    kind = origin if ancestor == log.number else "inherited"
                    hit = {"from": turn, "to": turn, "kind": kind, "role": message["role"]}
                    look((turn, 1, seq, place), messages.searched_text(message), hit)
            for from_, to, seq, note in db.execute(NOTES_SQL, (ancestor, upto)) if turns is None else ():
                look((from_, 0, -to, -seq), note, {"from": from_, "to": to, "kind": "residue", "role": "user"})
    hits = [hit for _, hit in sorted(found, key=lambda pair: pair[0])]
    return {"hits": hits[:100], "total": len(hits)}


# -- lineages ------------------------------------------------------------------------------------------------------------------


def text(dice: random.Random) -> str:
    """A few lines of words."""
    lines = (" ".join(dice.choices(WORDS, k=dice.randint(0, 6))) for _ in range(dice.randint(0, 5)))
    return dice.choice(["\n", "\n", "\r\n"]).join(lines) + dice.choice(["", "", "\n", "\r", "\0", "\ud83d"])


def reply(dice: random.Random, calls: list[str]) -> dict[str, Any]:
    """A reply that thinks, speaks and calls."""
    parts: list[dict[str, Any]] = [{"type": "text", "content": text(dice)}]
    if dice.random() < 0.3:
        parts.insert(0, {"type": "reasoning", "content": text(dice), "signature": "FAILED"})
    for call in calls:
        given: Any = {"cmd": text(dice), "n": 41, "more": [text(dice), {"path": "tests/x.py"}]}
        arguments = dice.choice([given, json.dumps(given), json.dumps(given, ensure_ascii=False), text(dice)])
        parts.append({"type": "tool_call", "id": call, "name": dice.choice(["ral", "sh"]), "arguments": arguments})
    return {"role": "assistant", "parts": parts}


def response(dice: random.Random) -> Any:
    """What a tool answered: text, parts, an object."""
    return dice.choice(
        [text(dice), text(dice), [{"type": "text", "text": text(dice)}], {"x": 41, "out": text(dice), "e": 1e20}]
    )


def step(archive: Archive, log: Log, dice: random.Random) -> None:
    """One operation on a log, whatever its state allows."""
    state = log.state
    if dice.random() < 0.04 and log.reach > 0 and len(archive.logs()) < 6:  # in any state, also with calls out
        log.fork(f"fork-{len(archive.logs())}")
    if state == "owing":
        log.tool_results([{"id": call, "content": response(dice)} for call in log.owed])
    elif state != "ready":
        chance = dice.random()
        if chance < 0.15 and log.stands().newest > log.stands().base:
            log.steer(text(dice))
        else:
            calls = [f"c{dice.randrange(10**9)}" for _ in range(dice.randint(1, 2))] if chance < 0.6 else []
            log.assistant(reply(dice, calls), origin=dice.choice(["own", "own", "import"]))
    elif dice.random() < 0.7 or log.reach < 4:
        log.prompt(text(dice), origin=dice.choice(["own", "own", "import"]))
    else:
        edit(archive, log, dice)


def edit(archive: Archive, log: Log, dice: random.Random) -> None:
    """An eviction, a rewind, a fork, a clear or a redaction."""
    kind = dice.choice(["evict", "evict", "evict", "force", "rewind", "fork", "clear", "redact"])
    turn = dice.randint(1, log.reach)
    with contextlib.suppress(Refused):
        if kind == "evict":
            log.evict(turn, min(log.reach, turn + dice.randint(0, 6)), "note " + " ".join(dice.choices(WORDS[:9], k=4)))
        elif kind == "force":
            log.force(through=turn)
        elif kind == "rewind" and dice.random() < 0.4:
            log.rewind(turn)
        elif kind == "fork" and len(archive.logs()) < 6:
            log.fork(f"fork-{len(archive.logs())}")
        elif kind == "clear" and dice.random() < 0.1:
            log.clear()
        elif kind == "redact" and dice.random() < 0.2:
            archive.redact(dice.randint(2, archive.head().seq), reason="x", part=dice.choice([None, 0]))


def grown(archive: Archive, dice: random.Random, steps: int) -> None:
    """An archive grown by so many operations, on all its logs."""
    for _ in range(steps):
        step(archive, archive.log(dice.choice(archive.logs()).log), dice)


# -- the index, at every stage -------------------------------------------------------------------------------------------------


def eager(patch: pytest.MonkeyPatch) -> None:
    """Let a few kilobytes be worth every filter, and cut them into many steps and batches."""
    patch.setattr(grep, "SMALL_BYTES", 1)
    patch.setattr(grep, "BATCH_BYTES", 300)
    patch.setattr(sieve, "TRIAL_BYTES", 2000)
    patch.setattr(build, "ENOUGH_BYTES", 1)
    patch.setattr(build, "STEP_BYTES", 500)


def index_some(archive: Archive, steps: int) -> int:
    """So many transactions of building; the seq reached."""
    reached = 0
    for _ in range(steps):
        with archive._store.writing() as db:
            reached, _ = build._extended(db, build._prepared(db), None)
    return reached


def index_reached(archive: Archive) -> int:
    """How far the index has come; -1 when there is none."""
    with archive._store.reading() as db:
        found = index.opened(db)
        return -1 if found is None else found.seq


def drop_index(archive: Archive) -> None:
    """Take it out."""
    with archive._store.writing() as db:
        drop(db)


def settle(archive: Archive) -> None:
    """Fold the write-ahead log into the file."""
    archive._store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextlib.contextmanager
def bare(path: Path) -> Iterator[apsw.Connection]:
    """A connection without our hardening, to damage an index with."""
    db = apsw.Connection(str(path))
    try:
        yield db
    finally:
        db.close()


def check_all(archive: Archive, patterns: Sequence[str] = PATTERNS, tell: Callable[[str], None] | None = None) -> None:
    """Every pattern on every log answers what the oracle does; ``tell`` takes what is said of damage, which else is an error."""
    for info in archive.logs():
        log = archive.log(info.log)
        for pattern in patterns:
            assert log.grep(pattern, tell=tell).to_dict() == by_definition(log, pattern), (info.name, pattern)
