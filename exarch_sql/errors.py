"""The one family of errors: classes by what the caller can do about them.

Every message says what was tried, the state that forbids it, and, where there is one, the line that would work.
"""

from __future__ import annotations


class ExarchError(Exception):
    """Base of all errors raised on purpose; ``exit_code`` is what the command line answers."""

    exit_code = 1


class Refused(ExarchError):
    """A law or a state said no. Nothing was written; the message names the fix."""


class Unfinished(Refused):
    """A search's time was up, and an answer is complete or none. ``where`` says how far it came, and how to ask for less."""

    def __init__(self, message: str, where: str) -> None:
        super().__init__(message)
        self.where = where


class Busy(ExarchError):
    """Another connection, thread or task held the file past the bounded wait. Trying the same again is safe."""

    exit_code = 4


class BadFile(ExarchError):
    """The file is foreign, damaged, unlawful or of a newer format. It was left as it is."""

    exit_code = 3
