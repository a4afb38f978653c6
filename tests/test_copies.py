"""Backup and extract: one self-contained, verified file, or nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from exarch_sql import Archive, Refused


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """A trunk and two forks, one of the other."""
    with Archive.open(tmp_path / "a.exarch") as archive:
        trunk = archive.trunk
        trunk.prompt("shared by all")
        trunk.assistant("yes")
        scout = trunk.fork("scout")
        trunk.prompt("only on the trunk")
        trunk.assistant("trunk reply")
        scout.prompt("only for the scout")
        scout.assistant("scout reply")
        deep = scout.fork("deep")
        deep.prompt("deeper")
        scout.evict(1, 2, "scout has read this")
        yield archive


def test_a_backup_of_a_live_archive_is_the_same_lineage_in_one_file(archive: Archive, tmp_path: Path) -> None:
    """Taken while the write-ahead log holds the newest records."""
    copy = tmp_path / "copy.exarch"

    report = archive.backup(copy)

    assert report.ok
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(("copy", ".copy"))) == [
        "copy.exarch"
    ]
    assert copy.stat().st_mode & 0o777 == 0o600
    with Archive.open(copy) as other:
        assert other.head() == archive.head()
        assert [log.to_dict() for log in other.logs()] == [log.to_dict() for log in archive.logs()]
        assert other.trunk.prompt("goes on").id == 5


def test_an_extract_holds_one_lineage_and_proves_the_whole_chain(archive: Archive, tmp_path: Path) -> None:
    """What other logs said is blank in the copy, and a head kept of the original still holds."""
    head = archive.head()
    path = tmp_path / "scout.exarch"

    archive.extract(archive.log("scout"), path)

    with Archive.open(path) as copy:
        scout = copy.log("scout")
        assert scout.survey() == archive.log("scout").survey()
        assert scout.index() == archive.log("scout").index()
        assert copy.verify(against=head).ok
    data = path.read_bytes()
    assert b"only for the scout" in data
    assert b"only on the trunk" not in data
    assert b"trunk reply" not in data
    assert b"deeper" not in data


def test_an_extract_keeps_names_keys_and_call_ids(archive: Archive, tmp_path: Path) -> None:
    """What is not promised: of the other logs it blanks what was said, and the rest of their records stands."""
    call = {"type": "tool_call", "id": "call-of-the-trunk", "name": "sh", "arguments": {"cmd": "said by the trunk"}}
    archive.trunk.assistant({"role": "assistant", "parts": [call]}, origin="import", key="key-of-the-trunk")
    path = tmp_path / "scout.exarch"

    archive.extract(archive.log("scout"), path)

    data = path.read_bytes()
    assert all(word in data for word in (b"deep", b"key-of-the-trunk", b"call-of-the-trunk"))
    assert b"said by the trunk" not in data


def test_a_copy_never_overwrites(archive: Archive, tmp_path: Path) -> None:
    """The name may hold the only other copy there is."""
    taken = tmp_path / "taken"
    taken.write_bytes(b"mine")

    for copying in (lambda: archive.backup(taken), lambda: archive.extract(archive.trunk, taken)):
        with pytest.raises(Refused, match="a copy never overwrites"):
            copying()

    assert taken.read_bytes() == b"mine"
