"""The worked example of docs/file-format.md, computed again with nothing but hashlib."""

import json
import re
from hashlib import sha256
from pathlib import Path

from exarch_sql import Archive, chain

PAGE = (Path(__file__).parents[1] / "docs" / "file-format.md").read_text(encoding="utf-8")


def field(value: str | int | None) -> bytes:
    """A field as the page says, not as the code does."""
    if value is None:
        return b"\xff\xff\xff\xff"
    data = str(value).encode("utf-8")
    return bytes([len(data) >> 24, len(data) >> 16 & 255, len(data) >> 8 & 255, len(data) & 255]) + data


def digest(previous: bytes, body: str, *fields: str | int | None) -> bytes:
    """A record's digest as the page says."""
    hashed = b"".join(map(field, fields))
    return sha256(b"exarch_sql/1/record\n" + hashed + sha256(body.encode()).digest() + previous).digest()


def test_the_worked_example_holds_for_a_reader_with_only_a_hash_function() -> None:
    """L11: another language can check a file from the page alone."""
    example = PAGE.split("<!-- worked example")[1].split("<!-- end -->")[0]
    stated = re.findall(r"(?:genesis|body_hash|digest) +([0-9a-f]{64})", example)
    bodies = re.findall(r"body +([\[{].*)", example)
    uuid = "00000000-0000-4000-8000-000000000001"
    genesis = sha256(b"exarch_sql/1/lineage\n" + field(uuid) + field(1700000000000) + field(1)).digest()
    first = digest(genesis, bodies[0], 1, 1, "opened", None, None, 1700000000000, None)
    second = digest(first, bodies[1], 2, 1, "prompt", 1, "own", 1700000000001, "greeting")

    hashes = [sha256(body.encode()).hexdigest() for body in bodies]
    assert [genesis.hex(), hashes[0], first.hex(), hashes[1], second.hex()] == stated


def test_the_code_computes_what_the_page_says(tmp_path: Path) -> None:
    """One real file, walked with the page's rules only."""
    with Archive.open(tmp_path / "a.exarch") as archive:
        archive.trunk.prompt("héllo", key="k")
        archive.trunk.assistant("hi")
        archive.trunk.evict(1, 2, "greetings")
        with archive._store.reading() as db:
            lineage = db.execute("SELECT uuid, created_ms, format FROM lineage").fetchone()
            previous = chain.genesis(*lineage)
            rows = db.execute(
                "SELECT body, seq, log, kind, turn, origin, at_ms, key, digest FROM records ORDER BY seq"
            ).fetchall()

    assert len(rows) == 4
    for body, *fields, stated in rows:
        previous = digest(previous, body, *fields)
        assert previous == stated
        assert json.loads(body) is not None
