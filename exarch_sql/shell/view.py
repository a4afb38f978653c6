"""The log a door is opened on here: opened for reading, for writing only once a line edits, and moved to the past at will."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Literal, Self

from exarch_sql.cli import base
from exarch_sql.cli.printing import talk
from exarch_sql.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from exarch_sql import Archive, Found, Log, Material, Row, Survey


class LogView:
    """A log of an archive as a host of doors (`exarch_sql.door.Host`). Use it in a ``with`` block.

    With ``at`` set, what a past state can answer is answered as it stood after that record, and nothing is edited. Raises as
    opening an archive and finding a log in it do.
    """

    def __init__(self, path: str, name: str, *, write: bool = False) -> None:
        self.path = path
        self.at: int | None = None
        self._files = contextlib.ExitStack()
        self._archive = self._opened(write=write)
        self._writes = write
        try:
            self._log = self._archive.log(name)
        except BaseException:
            self._files.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def _opened(self, *, write: bool) -> Archive:
        return self._files.enter_context(base.opened(self.path, write=write))

    @property
    def name(self) -> str:
        """The log's name."""
        return self._log.name

    @property
    def number(self) -> int:
        """The log's number."""
        return self._log.number

    @property
    def log(self) -> Log:
        """The log itself."""
        return self._log

    def turn_to(self, name: str) -> None:
        """Show another log of the archive, as it stands now. Raises Refused, naming those there are."""
        self._log = self._archive.log(name)
        self.at = None

    def look_at(self, seq: int | None) -> Survey:
        """Show the log as it stood after record ``seq``, None for now; its survey then. Raises Refused for no moment of it."""
        survey = self._log.survey(at=seq)
        self.at = seq
        return survey

    # -- what a door asks ----------------------------------------------------------------------------------------------------

    @property
    def reach(self) -> int:
        """The newest turn id seen, now."""
        return self._log.reach

    @property
    def unclosed(self) -> int | None:
        """The turn being written, now."""
        return self._log.unclosed

    def survey(self) -> Survey:
        """The context, now or as it was."""
        return self._log.survey(at=self.at)

    def index(self) -> Sequence[Row]:
        """Every item, now or as it was."""
        return self._log.index(at=self.at)

    def under(self, from_: int, to: int) -> Sequence[Row]:
        """What departed under a residue, now or as it was."""
        return self._log.under(from_, to, at=self.at)

    def read(self, turns: Sequence[int]) -> Sequence[Material]:
        """Turns, whole: the past never changes them."""
        return self._log.read(turns)

    def grep(self, pattern: str, turns: Sequence[int] | None = None, *, seconds: float) -> Found:
        """Matching lines of all that is recorded now."""
        return self._log.grep(pattern, turns, seconds=seconds, tell=talk)

    def evict(self, from_: int, to: int, *, note: str) -> Survey:
        """Let a run go. Raises Refused where the view stands in the past, or the file cannot be written."""
        if self.at is not None:
            raise Refused(f"this is {self.name} as it stood after record {self.at}: nothing is evicted in the past; "
                          "`.at now` comes back to where it can be")  # fmt: skip
        return self._writing().evict(from_, to, note)

    def witness(self, kind: Literal["door"], body: dict[str, Any]) -> int:
        """Record what a door answered."""
        return self._writing().witness(kind, body)

    def _writing(self) -> Log:
        """The log on a connection that may write: opened when first needed, and the reading one closed only then."""
        if not self._writes:
            readers = self._files.pop_all()
            try:
                archive = self._opened(write=True)
            except BaseException:
                self._files = readers
                raise
            self._archive, self._writes = archive, True
            self._log = archive.log(self._log.number)
            readers.close()
        return self._log
