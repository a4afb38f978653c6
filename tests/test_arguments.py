"""Numbers and paths of the wrong kind are refused in words, and nothing is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from exarch_sql import Archive, Refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WRONG: dict[str, Callable[[Archive], Any]] = {
    "plan": lambda archive: archive.trunk.plan(keep="x"),
    "force": lambda archive: archive.trunk.force(keep="x"),
    "weigh": lambda archive: archive.trunk.weigh("x", 200_000),
    "weigh, window": lambda archive: archive.trunk.weigh(10, -1),
    "sql, seconds": lambda archive: archive.sql("SELECT 1", seconds=None),
    "sql, rows": lambda archive: archive.sql("SELECT 1", rows="x"),
    "redact": lambda archive: archive.redact("x", reason="y"),
    "redact, part": lambda archive: archive.redact(2, part="x", reason="y"),
    "backup": lambda archive: archive.backup(None),
    "backup, surrogate": lambda archive: archive.backup("\ud800"),
    "extract": lambda archive: archive.extract(archive.trunk, 7),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_argument_of_the_wrong_kind_is_refused_and_changes_nothing(lawful_copy: Path, what: str) -> None:
    """Past fault: a TypeError from far inside."""
    with Archive.open(lawful_copy) as archive:
        head = archive.head()
        with pytest.raises(Refused):
            WRONG[what](archive)
        assert archive.head() == head


@pytest.mark.parametrize("timeout", [-1, float("inf"), float("nan"), None, "5", 1e7, True])
def test_a_timeout_that_bounds_nothing_is_refused(tmp_path: Path, timeout: Any) -> None:
    """Past fault: -1 waited for another thread without end."""
    with pytest.raises(Refused, match="timeout is a number of seconds"):
        Archive.open(tmp_path / "a.exarch", timeout=timeout)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", [123, None, "\ud800"])
def test_what_is_no_path_is_refused(path: Any) -> None:
    """Past fault: a TypeError, or an encoding error."""
    with pytest.raises(Refused):
        Archive.open(path)
