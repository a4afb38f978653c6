"""Whatever is done to the search index, a search answers the same: more slowly, with a word about it, and never wrongly."""

from __future__ import annotations

import random
import shutil
import struct
from typing import TYPE_CHECKING, Any

import apsw
import pytest
from click.testing import CliRunner
from searching import PATTERNS, bare, by_definition, drop_index, eager, index_reached, index_some

from exarch_sql import Archive
from exarch_sql.cli.app import app
from exarch_sql.search import SearchWarning, build

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from exarch_sql import Report

ASKED = ("needle", "(?i)NEEDLE", "word 7", "word [34]7", "common", "日本語")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive whose index has two segments and, the pages being small, a thousand of them, with indexes of long lists."""
    path = tmp_path_factory.mktemp("whole") / "a.exarch"
    dice = random.Random(1)  # noqa: S311
    with Archive.open(path, durability="off") as archive, pytest.MonkeyPatch.context() as patch:
        log = archive.trunk
        with archive.batch():
            for turn in range(500):
                words = " ".join(f"word {dice.randrange(100)}" for _ in range(3))
                east = " 日本語" if turn % 50 == 3 else ""
                log.prompt(f"{words} common{east}{' needle' if turn % 47 == 5 else ''}")
                log.assistant("".join(dice.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=24)))
        log.evict(1, 40, "a needle in a note")
        patch.setattr(build, "STEP_BYTES", 12_000)
        patch.setitem(build.SETTINGS, "pgsz", 32)
        assert index_some(archive, 2) < archive.head().seq
        long_lists = archive._store.db.execute("SELECT count(*) FROM search_data WHERE id & (1 << 36)").fetchall()
        assert long_lists > [(5,)]
    return path


@pytest.fixture(scope="module")
def answers(whole: Path) -> dict[str, Any]:
    """What is to be answered."""
    with Archive.open(whole, readonly=True) as archive:
        return {pattern: by_definition(archive.trunk, pattern) for pattern in ASKED}


@pytest.fixture
def damaged(whole: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return shutil.copy(whole, tmp_path / "damaged.exarch")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    eager(monkeypatch)
    monkeypatch.setattr("exarch_sql.search.grep.BATCH_BYTES", 1 << 20)


def asked(path: Path, answers: dict[str, Any], patterns: tuple[str, ...] = ASKED) -> list[str]:
    """Search a damaged file for reading; what was said of the damage. Each answer must be right."""
    told: list[str] = []
    with Archive.open(path, readonly=True) as archive:
        for pattern in patterns:
            assert archive.trunk.grep(pattern, tell=told.append).to_dict() == answers[pattern], pattern
    return told


def test_the_undamaged_index_is_used(whole: Path, answers: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the rest of this file would prove nothing: with FTS5 answering nothing at all, hits are lost."""
    assert asked(whole, answers) == []
    monkeypatch.setattr("exarch_sql.search.index.pages.check", lambda *_: None)
    monkeypatch.setattr("exarch_sql.search.index.TURNS_SQL", "SELECT 1, 1, x'' WHERE :query IS NULL AND :log IS NULL")
    with pytest.raises(AssertionError):
        asked(whole, answers)


# -- pages ---------------------------------------------------------------------------------------------------------------------


def changed(block: bytes, dice: random.Random) -> bytes:
    """A block with some of it changed."""
    place = dice.randrange(len(block))
    kind = dice.randrange(5)
    if kind == 0:
        return block[:place] + bytes([block[place] ^ 1 << dice.randrange(8)]) + block[place + 1 :]
    if kind == 1:
        return block[:place] + dice.randbytes(4) + block[place + 4 :]
    if kind == 2:
        return block[:place]
    if kind == 3:
        return bytes(len(block))
    return block[:place] + b"\x01" + block[place:]


@pytest.mark.parametrize("seed", range(3))
def test_changed_pages_never_change_an_answer(whole: Path, tmp_path: Path, answers: dict[str, Any], seed: int) -> None:
    """Bits, bytes, lengths and whole pages, of leaves, of lists of segments, of indexes of long lists; many at random.

    Those that a search would have read are told of. What a plain FTS5 would answer is looked at too, to see that the damage
    is of the kind that loses hits without an error.
    """
    dice = random.Random(seed)  # noqa: S311
    noticed = 0
    for number in range(8):
        path = shutil.copy(whole, tmp_path / f"{number}.exarch")
        with bare(path) as db, db:
            ids = [id_ for (id_,) in db.execute("SELECT id FROM search_data")]
            chosen = ids if number % 3 == 0 else dice.sample(ids, min(len(ids), 12))
            for id_ in chosen:
                ((block,),) = db.execute("SELECT block FROM search_data WHERE id = ?", (id_,)).fetchall()
                db.execute("UPDATE search_data SET block = ? WHERE id = ?", (changed(block, dice), id_))
        noticed += bool(asked(path, answers))
    assert noticed >= 4


def test_every_page_by_itself(whole: Path, damaged: Path, answers: dict[str, Any]) -> None:
    """One changed byte in each page in turn, through one connection: the answer is right, and verify names the page."""
    dice = random.Random(9)  # noqa: S311
    with bare(damaged) as db:
        ids = [id_ for (id_,) in db.execute("SELECT id FROM search_data WHERE id > 10")]
        for id_ in dice.sample(ids, 15):
            ((block,),) = db.execute("SELECT block FROM search_data WHERE id = ?", (id_,)).fetchall()
            place = dice.randrange(len(block))
            wrong = block[:place] + bytes([block[place] ^ 0x10]) + block[place + 1 :]
            db.execute("UPDATE search_data SET block = ? WHERE id = ?", (wrong, id_))
            asked(damaged, answers, ASKED[:1] + ASKED[4:])
            with Archive.open(damaged, readonly=True) as archive:
                assert f"page {id_} of segment" in str(searched_faults(archive.verify()))
            db.execute("UPDATE search_data SET block = ? WHERE id = ?", (block, id_))
    assert asked(damaged, answers) == []


def searched_faults(report: Report) -> list[str]:
    """What verify says of the index."""
    return [fault.what for fault in report.faults if fault.kind == "search"]


DAMAGES: dict[str, Callable[[apsw.Connection], object]] = {
    "no pages": lambda db: db.execute("DELETE FROM search_data WHERE id > 10"),
    "no list of segments": lambda db: db.execute("DELETE FROM search_data WHERE id = 10"),
    "an empty list of segments": lambda db: db.execute(
        "UPDATE search_data SET block = ? WHERE id = 10", (struct.pack(">I", 9) + b"\0\0\0",)
    ),
    "no data at all": lambda db: db.execute("DELETE FROM search_data"),
    "no ways": lambda db: db.execute("DELETE FROM search_idx"),
    "half the ways": lambda db: db.execute("DELETE FROM search_idx WHERE (pgno >> 1) % 2 = 0"),
    "other ways": lambda db: db.execute("UPDATE search_idx SET pgno = pgno + 2 WHERE pgno > 3"),
    "unmarked long lists": lambda db: db.execute("UPDATE search_idx SET pgno = pgno & ~1"),
    "no indexes of long lists": lambda db: db.execute("DELETE FROM search_data WHERE id & (1 << 36)"),
    "ways of text": lambda db: db.execute("UPDATE OR IGNORE search_idx SET term = CAST(term AS TEXT), pgno = 'x'"),
    "swapped pages": lambda db: db.execute(
        "UPDATE search_data SET block = (SELECT block FROM search_data AS o WHERE o.id > search_data.id ORDER BY o.id LIMIT 1) "
        "WHERE id > 10 AND id < (SELECT max(id) FROM search_data)"
    ),
    "no settings": lambda db: db.execute("DELETE FROM search_config"),
    "another version": lambda db: db.execute("UPDATE search_config SET v = 77 WHERE k = 'version'"),
    "blocks of text": lambda db: db.execute("UPDATE search_data SET block = 'x'"),
    "null blocks": lambda db: db.execute("UPDATE search_data SET block = NULL"),
    "no sums": lambda db: db.execute("DELETE FROM search_pages"),
    "no sums and no pages": lambda db: db.execute("DELETE FROM search_pages; DELETE FROM search_data WHERE id > 10"),
    "other sums": lambda db: db.execute("UPDATE search_pages SET sum = sum + 1"),
    "no progress": lambda db: db.execute("DELETE FROM search_progress"),
    "progress too far": lambda db: db.execute("UPDATE search_progress SET seq = seq + 100"),
    "progress past the end": lambda db: db.execute("UPDATE search_progress SET seq = 1000000"),
    "progress too short": lambda db: db.execute("UPDATE search_progress SET seq = seq - 1"),
    "another head": lambda db: db.execute("UPDATE search_progress SET head = head - 1"),
    "another record's digest": lambda db: db.execute("UPDATE search_progress SET digest = zeroblob(32)"),
    "fewer segments": lambda db: db.execute("UPDATE search_progress SET segments = '[]'"),
    "no JSON of segments": lambda db: db.execute("UPDATE search_progress SET segments = '['"),
    "no table of progress": lambda db: db.execute("DROP TABLE search_progress"),
    "no table of sums": lambda db: db.execute("DROP TABLE search_pages"),
    "no table of pages": lambda db: db.execute("DROP TABLE search_data"),
    "no table of ways": lambda db: db.execute("DROP TABLE search_idx"),
    "no table of settings": lambda db: db.execute("DROP TABLE search_config"),
    "no tables of FTS5": lambda db: db.execute(
        "DROP TABLE search_data; DROP TABLE search_idx; DROP TABLE search_config"
    ),
    "no virtual table": lambda db: db.execute(
        "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'search'; PRAGMA writable_schema = OFF"
    ),
    "nothing but a page": lambda db: db.execute("DROP TABLE search_pages; DROP TABLE search_progress"),
    "another record": lambda db: db.execute(
        "INSERT INTO search (search, rank) VALUES ('hashsize', 1); INSERT INTO search (rowid, text) VALUES (3, 'extra')"
    ),
    "one record less": lambda db: db.execute(
        "INSERT INTO search (search, rowid, text) SELECT 'delete', seq, body ->> '$[0].parts[0].content' FROM records "
        "WHERE kind = 'prompt' AND instr(body, 'needle') LIMIT 1"
    ),
    "merged by other hands": lambda db: db.execute("INSERT INTO search (search) VALUES ('optimize')"),
    "emptied by other hands": lambda db: db.execute("INSERT INTO search (search) VALUES ('delete-all')"),
}


FORGED = (
    "another record",
    "one record less",
    "merged by other hands",
    "no settings",
    "another version",
    "no data at all",
)


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_told_of_and_mended(damaged: Path, answers: dict[str, Any], name: str) -> None:
    """Read: right answers, and a word. Verify: a fault of the index. Written to: dropped, made anew, whole again."""
    with bare(damaged) as db:
        DAMAGES[name](db)
    told = asked(damaged, answers)
    assert told
    assert all("reindex makes it anew" in said and str(damaged) in said for said in told)
    with Archive.open(damaged) as archive:
        report = archive.verify()
        assert set(report.counts) == {"search"}
        assert all("reindex makes it anew" in fault for fault in searched_faults(report))
        told.clear()
        for pattern in ASKED:
            assert archive.trunk.grep(pattern, tell=told.append).to_dict() == answers[pattern]
        assert len(told) == 1
        done = archive.reindex()
        assert done.seq == archive.head().seq
        assert archive.verify(index=name in FORGED).ok
    assert asked(damaged, answers, ASKED[:1]) == []


@pytest.mark.parametrize("name", [name for name in DAMAGES if " table" in name or name in FORGED])
def test_a_damaged_index_can_always_be_dropped(damaged: Path, name: str) -> None:
    """A redaction must get rid of it, in whatever state it is; a backup leaves it out; reindex says what was wrong."""
    with bare(damaged) as db:
        DAMAGES[name](db)
    with Archive.open(damaged) as archive:
        assert archive.backup(damaged.with_name("copy.exarch")).ok
        done = archive.reindex()
        assert done.anew
        assert done.why
        assert index_reached(archive) == done.seq
    shutil.copy(damaged.with_name("copy.exarch"), damaged)
    with bare(damaged) as db:
        assert not list(db.execute("SELECT name FROM sqlite_schema WHERE name GLOB 'search*'"))


def lose_a_posting(db: apsw.Connection) -> None:
    """Change one byte so that FTS5 answers for another record than it did, and says nothing of it."""
    sql = "SELECT rowid FROM search WHERE search MATCH ?"
    whole = list(db.execute(sql, ("com",)))
    for id_, block in db.execute("SELECT id, block FROM search_data WHERE id > 10 AND NOT id & (1 << 36)").fetchall():
        place = len(block) // 2
        if 1 < block[place] < 100:
            db.execute(
                "UPDATE search_data SET block = ? WHERE id = ?", (block[:place] + b"\x01" + block[place + 1 :], id_)
            )
            try:
                db.execute("INSERT INTO search (search) VALUES ('integrity-check')")
                if list(db.execute(sql, ("com",))) != whole:
                    return
            except apsw.CorruptError:
                pass
            db.execute("UPDATE search_data SET block = ? WHERE id = ?", (block, id_))
    pytest.fail("no such byte was found")


def test_a_merge_never_vouches_for_pages_that_were_damaged_before(
    damaged: Path, answers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """FTS5 copies what it reads: summed after that, a lost posting would be lost for good and without a word.

    Once where the merge was to be expected, and once where somebody changed FTS5's settings.
    """
    with bare(damaged) as db, db:
        lose_a_posting(db)
        db.execute("INSERT OR REPLACE INTO search_config (k, v) VALUES ('crisismerge', 3)")
    for most in (3, 32):
        monkeypatch.setitem(build.SETTINGS, "crisismerge", most)
        path = shutil.copy(damaged, damaged.with_name(f"{most}.exarch"))
        with Archive.open(path) as archive:
            with pytest.raises(
                build.Damaged, match="is not what was written" if most == 3 else "its settings were altered"
            ):
                index_some(archive, 1)
            with pytest.warns(SearchWarning, match="was damaged"):
                archive.trunk.grep("nowhere to be found")
            for pattern in ASKED:
                assert archive.trunk.grep(pattern).to_dict() == answers[pattern]
            archive.reindex()
            assert archive.verify(index=True).ok


def test_an_index_forged_with_care_is_found_by_the_exact_check(damaged: Path, answers: dict[str, Any]) -> None:
    """Whoever can write the file can sum what they wrote: only a comparison with the text finds that."""
    with bare(damaged) as db, db:
        DAMAGES["one record less"](db)
        db.execute(build.FLUSH_SQL)
        ((seq,),) = db.execute("SELECT seq FROM search_progress").fetchall()
        db.execute("DELETE FROM search_pages; DELETE FROM search_progress")
        build.pages.seal(db, seq, looked=True)
    with Archive.open(damaged, readonly=True) as archive:
        assert archive.verify().ok
        assert archive.trunk.grep("needle").total < answers["needle"]["total"]
        (fault,) = searched_faults(archive.verify(index=True))
        assert "does not say what the text says" in fault
    with Archive.open(damaged) as archive:
        drop_index(archive)
        assert archive.trunk.grep("needle").to_dict() == answers["needle"]


def test_the_command_line_tells_of_damage_on_stderr_and_mends_it(damaged: Path, answers: dict[str, Any]) -> None:
    """Data on stdout as always; verify answers 3; reindex says what it found."""
    with bare(damaged) as db:
        DAMAGES["no sums"](db)
    ran = CliRunner().invoke(app, ["grep", str(damaged), "needle", "--nl"])
    assert ran.exit_code == 0
    assert len(ran.stdout.splitlines()) == answers["needle"]["total"]
    assert "the search index is damaged" in ran.stderr
    ran = CliRunner().invoke(app, ["verify", str(damaged)])
    assert ran.exit_code == 3
    assert "reindex makes it anew" in ran.stdout
    ran = CliRunner().invoke(app, ["reindex", str(damaged), "--json"])
    assert ran.exit_code == 0
    assert "could not be used" in ran.stderr
    assert '"anew":true' in ran.stdout.replace(" ", "")
    ran = CliRunner().invoke(app, ["verify", str(damaged), "--index"])
    assert ran.exit_code == 0
    ran = CliRunner().invoke(app, ["reindex", str(damaged)])
    assert ran.stdout.startswith("brought up to date: 0 records added")


def test_patterns_of_every_kind_on_the_whole_index(whole: Path) -> None:
    """The fixture itself, undamaged, against the definition."""
    with Archive.open(whole, readonly=True) as archive:
        for pattern in PATTERNS:
            assert archive.trunk.grep(pattern).to_dict() == by_definition(archive.trunk, pattern), pattern
