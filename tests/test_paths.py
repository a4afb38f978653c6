"""An archive is where it was opened, wherever the process goes afterwards, and by whatever name it was given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from exarch_sql import Archive, BadFile


@pytest.mark.parametrize(
    "name", ["a.exarch", "./a.exarch", "there/../a.exarch", "link.exarch", b"a.exarch", Path("a.exarch")]
)
def test_a_relative_path_is_fixed_at_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str | bytes | Path
) -> None:
    """After chdir everything still works on the same file, and nothing appears where the process went."""
    here, away = tmp_path / "here", tmp_path / "away"
    (here / "real").mkdir(parents=True)
    away.mkdir()
    (here / "real" / "deeper").mkdir()
    (here / "there").symlink_to(here / "real" / "deeper")  # so there/.. is real, and not here
    (here / "link.exarch").symlink_to(here / "real" / "b.exarch")
    Archive.open(here / "real" / "b.exarch").close()
    monkeypatch.chdir(here)
    with Archive.open(name) as archive:  # type: ignore[arg-type]  # bytes are taken too
        archive.trunk.prompt("before")
        os.chdir(away)
        archive.trunk.prompt("after")
        assert archive.path == os.path.join(here, os.fsdecode(name))
        assert archive.sql("SELECT count(*) FROM records WHERE turn IS NOT NULL").rows == ((2,),)
        assert archive.stats()["file-bytes"] > 0
        assert archive.verify().ok
        assert archive.trunk.grep("before").total == 1
        assert archive.reindex().records == 3
        assert archive.backup("copy.exarch").ok  # where the process is now, as with any path
        archive.redact(2, reason="all of it goes")
        with Archive.open(archive.path) as other:
            assert other.head() == archive.head()
    assert {path.name for path in away.iterdir()} == {"copy.exarch"}


def test_a_file_replaced_after_chdir_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of the file's identity looks where the file was opened."""
    monkeypatch.chdir(tmp_path)
    with Archive.open("a.exarch") as archive:
        os.chdir("/")
        archive.trunk.prompt("there")
        os.rename(tmp_path / "a.exarch", tmp_path / "b.exarch")
        with pytest.raises(BadFile, match="was replaced or removed"):
            archive.trunk.prompt("gone")
        os.rename(tmp_path / "b.exarch", tmp_path / "a.exarch")
        archive.trunk.prompt("back")


def test_a_folder_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path leads nowhere then."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(BadFile, match=r"a\.exarch cannot be opened: the folder this process works in is gone"):
        Archive.open("a.exarch")
