"""A disk that fails on purpose: a VFS over the real one which can fail, tear or drop any operation, misread, and lose power.

SQLite runs on it because it is registered as the default VFS, and the few calls that the product itself makes of ``os`` (open,
link, unlink, fsync) are counted and failed by the same rules; nothing in the product knows of it.

The real files always hold what programs see. What a power cut would leave is kept beside that, as POSIX promises it and no better:
of each file what was synced, and any subset, sector by sector, of what was written since; of the folder the names that were
synced, and any subset of those that came and went since. ``Disk.restart`` writes such a remainder over the real files.

What only looks (a read, a file's size, whether there is one, the opening of one that is there) is numbered apart, as a *look*, and
has faults of its own.

One thing differs from a disk under SQLite's own VFS: the driver raises what a VFS written in Python raised even where SQLite itself
went on (a checkpoint that fails after its commit, a failure while closing), or prints it where it cannot. So a step may fail here
that was done, and what the driver would print of it is left out.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import apsw

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["error", "full", "torn", "drop", "power"]
LookKind = Literal["unread", "short", "rot", "rotten"]
SECTOR_BYTES = 512
GARBAGE = b"\xa5"
SIDECAR_OF_MEMORY = (
    "-shm"  # mapped into memory, and made again by whoever comes first: no part of the file's durable state
)

_VFS_ERRORS = {
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "delete": apsw.SQLITE_IOERR_DELETE,
    "read": apsw.SQLITE_IOERR_READ,
    "size": apsw.SQLITE_IOERR_FSTAT,
    "access": apsw.SQLITE_IOERR_ACCESS,
}
REAL = apsw.vfs_names()[0]  # the default before any of ours
_numbers = itertools.count()


@dataclass(frozen=True)
class Fault:
    """What happens to operation number ``at``, counted from 1.

    ``error`` fails it; ``torn`` does half of a write and fails it; ``drop`` reports success and does nothing; ``full`` fails this
    and every later operation that needs space, until ``Disk.mend``; ``power`` fails it and all that follow.
    """

    at: int
    kind: Kind


@dataclass(frozen=True)
class Misread:
    """What happens to look number ``at``, counted from 1.

    ``unread`` fails it. Of a read, ``short`` brings half of what was asked for, ``rot`` one bit that is not what was written, and
    ``rotten`` that and, until it is written anew, the same wrong bit in every later read; other looks they leave alone.
    """

    at: int
    kind: LookKind


@dataclass
class Inode:
    """A file's durable content, and what was done to it since: (offset, bytes) written, or the size it was cut to."""

    synced: bytearray
    since: list[tuple[int, bytes] | int] = field(default_factory=list)
    rotten: dict[int, int] = field(default_factory=dict)  # place in the file: the bits that it is read with wrongly

    def sync(self) -> None:
        """Make all of it durable."""
        for change in self.since:
            if isinstance(change, int):
                del self.synced[change:]
            else:
                _put(self.synced, *change, b"\0")
        self.since.clear()

    def remainder(self, dice: random.Random) -> bytes:
        """What a power cut leaves: any subset of the sectors written, any of the cuts."""
        left = bytearray(self.synced)
        kept = dice.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        filler = dice.choice((b"\0", GARBAGE))
        for change in self.since:
            if isinstance(change, int):
                if dice.random() < kept:
                    del left[change:]
                continue
            for offset, sector in _sectors(*change):
                if dice.random() < kept:
                    torn = dice.random() < 0.05
                    _put(left, offset, sector[: len(sector) // 2] if torn else sector, filler)
        return bytes(left)


def _sectors(offset: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    """A write, in pieces that a disk writes whole."""
    start = 0
    while start < len(data):
        end = min(len(data), start + SECTOR_BYTES - (offset + start) % SECTOR_BYTES)
        yield offset + start, data[start:end]
        start = end


def _put(content: bytearray, offset: int, data: bytes, filler: bytes) -> None:
    """Write into a file's content; a gap before it holds whatever the disk held."""
    content.extend(filler * (offset - len(content)))
    content[offset : offset + len(data)] = data


class Disk:
    """The files of one folder, what is durable of them, and the faults that are to come."""

    def __init__(self, folder: Path, *faults: Fault | Misread) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.faults = {fault.at: fault.kind for fault in faults if isinstance(fault, Fault)}
        self.misreads = {fault.at: fault.kind for fault in faults if isinstance(fault, Misread)}
        self.full = self.off = False
        self.operations = self.looks = 0
        self.looked: list[str] = []
        self.history: list[str] = []
        self.names: dict[str, Inode] = {}  # as programs see them
        self.durable: dict[str, Inode] = {}
        self.since: list[
            tuple[str, Inode | None]
        ] = []  # names that came (with their file) and went since the folder was synced
        for path in self.folder.iterdir():
            if path.is_file() and not path.name.endswith(SIDECAR_OF_MEMORY):
                self.names[str(path)] = Inode(bytearray(path.read_bytes()))
        self.durable.update(self.names)

    def holds(self, path: str) -> bool:
        """Whether a path is one of ours to watch."""
        return os.path.dirname(path) == str(self.folder) and not path.endswith(SIDECAR_OF_MEMORY)

    # -- operations ------------------------------------------------------------------------------------------------------

    def step(self, what: str, path: str) -> Literal["do", "half", "skip"]:
        """Count an operation and say how much of it to do. Raises OSError where it is to fail and nothing of it is done."""
        if self.off:
            raise OSError(errno.EIO, "the power is off")
        self.operations += 1
        self.history.append(f"{self.operations} {what} {os.path.basename(path)}")
        kind = self.faults.get(self.operations)
        self.off = kind == "power"
        self.full = self.full or kind == "full"
        if self.full and what in ("write", "create", "link"):
            raise OSError(errno.ENOSPC, "the disk is full")
        if kind in (None, "full"):
            return "do"
        if kind == "drop":
            return "skip"
        if what == "write" and kind in ("torn", "power"):
            return "half"
        raise OSError(errno.EIO, "the power is off" if self.off else "the operation failed on purpose")

    def look(self, what: str, path: str) -> LookKind | None:
        """Count a look and say how it is to mislead. Raises OSError where it is to fail."""
        self.looks += 1
        self.looked.append(f"{self.looks} {what} {os.path.basename(path)}")
        kind = self.misreads.get(self.looks)
        if kind == "unread":
            raise OSError(errno.EIO, f"the {what} failed on purpose")
        return kind

    def mend(self) -> None:
        """Make room, and let nothing more fail or mislead."""
        self.faults.clear()
        self.misreads.clear()
        self.full = False
        for inode in self.names.values():
            inode.rotten.clear()

    def create(self, path: str) -> None:
        """A new, empty file has a name."""
        self.name(path, Inode(bytearray()))

    def name(self, path: str, inode: Inode | None) -> None:
        """A name came to lead to a file, or went."""
        self.since.append((path, inode))
        if inode is None:
            self.names.pop(path, None)
        else:
            self.names[path] = inode

    def sync_names(self) -> None:
        """Make the folder durable."""
        for path, inode in self.since:
            _lead(self.durable, path, inode)
        self.since.clear()

    # -- after the cut ---------------------------------------------------------------------------------------------------

    def restart(self, seed: int) -> None:
        """Write over the real files what the power cut left of them; every connection must be closed."""
        dice = random.Random(seed)  # noqa: S311
        left = dict(self.durable)
        kept = dice.choice((0.0, 0.5, 1.0))
        for path, inode in self.since:
            if dice.random() < kept:
                _lead(left, path, inode)
        for path in self.folder.iterdir():
            if path.is_file():
                path.unlink()
        written: dict[int, str] = {}
        for path, inode in left.items():
            if id(inode) in written:
                os.link(written[id(inode)], path)
            else:
                written[id(inode)] = path
                Path(path).write_bytes(inode.remainder(dice))


def _lead(names: dict[str, Inode], path: str, inode: Inode | None) -> None:
    if inode is None:
        names.pop(path, None)
    else:
        names[path] = inode


# --- under SQLite -----------------------------------------------------------------------------------------------------------


def _failed(what: str, error: OSError) -> apsw.Error:
    """The driver's error for a failed operation."""
    if error.errno == errno.ENOSPC:
        full = apsw.FullError(error.strerror)
        full.extendedresult = apsw.SQLITE_FULL
        return full
    if what in ("create", "open"):
        unopened = apsw.CantOpenError(error.strerror)
        unopened.extendedresult = apsw.SQLITE_CANTOPEN
        return unopened
    failed = apsw.IOError(error.strerror)
    failed.extendedresult = _VFS_ERRORS[what]
    return failed


class FaultyVFS(apsw.VFS):
    """SQLite's own VFS, with a disk in between."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        super().__init__(f"faulty-{next(_numbers)}", REAL, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        """Open a file; one that is new is an operation."""
        path = name if isinstance(name, str) else name.filename() if name else None
        if path is None or not self.disk.holds(path):
            return apsw.VFSFile(REAL, name, flags)
        new = bool(flags[0] & apsw.SQLITE_OPEN_CREATE) and path not in self.disk.names
        what = "create" if new else "open"
        try:
            if new:
                self.disk.step(what, path)
            else:
                self.disk.look(what, path)
        except OSError as error:
            raise _failed(what, error) from None
        return _FaultyFile(self.disk, path, name, flags, new=new)

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802
        """Whether there is such a file."""
        if self.disk.holds(pathname):
            try:
                self.disk.look("access", pathname)
            except OSError as error:
                raise _failed("access", error) from None
        return super().xAccess(pathname, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        """Delete a file, and with ``syncdir`` make that durable."""
        if not self.disk.holds(filename):
            super().xDelete(filename, syncdir)
            return
        try:
            if self.disk.step("delete", filename) == "skip":
                return
        except OSError as error:
            raise _failed("delete", error) from None
        super().xDelete(filename, False)
        self.disk.name(filename, None)
        if syncdir:
            self.disk.sync_names()


class _FaultyFile(apsw.VFSFile):
    """An open file of the disk."""

    def __init__(self, disk: Disk, path: str, name: Any, flags: list[int], *, new: bool) -> None:
        super().__init__(REAL, name, flags)
        self.disk, self.path = disk, path
        # SQLite's own VFS syncs the folder with the first sync of a journal or log that it made
        self.names_too = new and bool(flags[0] & (apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL))
        if new:
            disk.create(path)
        self.inode = disk.names[path]

    def _step(self, what: str) -> str:
        try:
            return self.disk.step(what, self.path)
        except OSError as error:
            raise _failed(what, error) from None

    def _look(self, what: str) -> str | None:
        try:
            return self.disk.look(what, self.path)
        except OSError as error:
            raise _failed(what, error) from None

    def xFileSize(self) -> int:  # noqa: N802
        """The bytes of the file."""
        self._look("size")
        return super().xFileSize()

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        """Read, what was written or, on purpose, something else."""
        how = self._look("read")
        data = super().xRead(amount, offset)
        if how == "short":
            return data[: len(data) // 2]
        if not data or (how is None and not self.inode.rotten):
            return data
        dice = random.Random(self.disk.looks)  # noqa: S311
        place, bit = offset + dice.randrange(len(data)), 1 << dice.randrange(8)
        wrong = dict(self.inode.rotten)
        if how:
            wrong[place] = wrong.get(place, 0) ^ bit
        if how == "rotten":
            self.inode.rotten = wrong
        read = bytearray(data)
        for at in wrong.keys() & range(offset, offset + len(data)):
            read[at - offset] ^= wrong[at]
        return bytes(read)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        """Write, for programs to see; durable only with the next sync."""
        how = self._step("write")
        done = {"do": bytes(data), "half": bytes(data[: len(data) // 2]), "skip": b""}[how]
        if done:
            super().xWrite(done, offset)
            for place in self.inode.rotten.keys() & range(offset, offset + len(done)):
                del self.inode.rotten[place]
            self.inode.since.append((offset, done))
        if how == "half":
            raise _failed("write", OSError(errno.EIO, "half of the write was done"))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        """Cut the file."""
        if self._step("truncate") == "do":
            super().xTruncate(newsize)
            self.inode.since.append(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Make the file durable, in the disk's books alone: the real one need not wait for its platters."""
        if self._step("sync") == "do":
            self.inode.sync()
            if self.names_too:
                self.disk.sync_names()
                self.names_too = False


# --- under the product's own calls ------------------------------------------------------------------------------------------


def _place(path: Any) -> str:
    """A name as SQLite's VFS spells it: absolute, in the folder's true place."""
    folder, name = os.path.split(os.path.abspath(os.fspath(path)))
    return os.path.join(os.path.realpath(folder), name)


class _Calls:
    """``os.open``, ``link``, ``unlink`` and ``fsync`` with the disk in between."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.real = {name: getattr(os, name) for name in ("open", "link", "unlink", "fsync")}

    def open(self, path: Any, flags: int, *rest: Any, **named: Any) -> int:
        name = _place(path)
        new = bool(flags & os.O_CREAT) and self.disk.holds(name) and name not in self.disk.names
        if new:
            self.disk.step("create", name)
        handle: int = self.real["open"](path, flags, *rest, **named)
        if new:
            self.disk.create(name)
        return handle

    def link(self, source: Any, target: Any, **named: Any) -> None:
        name = _place(target)
        if self.disk.holds(name) and not os.path.lexists(name) and self.disk.step("link", name) == "skip":
            return
        self.real["link"](source, target, **named)
        if self.disk.holds(name):
            self.disk.name(name, self.disk.names[_place(source)])

    def unlink(self, path: Any, **named: Any) -> None:
        name = _place(path)
        if self.disk.holds(name) and os.path.lexists(name) and self.disk.step("delete", name) == "skip":
            return
        self.real["unlink"](path, **named)
        if self.disk.holds(name):
            self.disk.name(name, None)

    def fsync(self, handle: int) -> None:
        status = os.fstat(handle)
        if os.path.samestat(status, os.stat(self.disk.folder)):
            if self.disk.step("sync", str(self.disk.folder)) == "do":
                self.disk.sync_names()
            return
        for name, inode in self.disk.names.items():
            if os.path.exists(name) and os.path.samestat(status, os.stat(name)):
                if self.disk.step("sync", name) == "do":
                    inode.sync()
                return
        self.real["fsync"](handle)


def tally(what: str, count: int) -> None:
    """Add to the figures of docs/durability.md, in the file that EXARCH_TALLY names, if it does: one line, a count and of what."""
    if name := os.environ.get("EXARCH_TALLY"):
        with open(name, "a", encoding="utf-8") as file:
            file.write(f"{count} {what}\n")


@contextlib.contextmanager
def running_on(disk: Disk) -> Iterator[Disk]:
    """Whatever opens files of the disk's folder inside the block runs on the disk. All of it must be closed at the end."""
    vfs, calls, unraisable = FaultyVFS(disk), _Calls(disk), sys.unraisablehook
    for name in calls.real:
        setattr(os, name, getattr(calls, name))
    sys.unraisablehook = lambda told: None if isinstance(told.exc_value, apsw.Error) else unraisable(told)
    try:
        yield disk
    finally:
        sys.unraisablehook = unraisable
        for name, real in calls.real.items():
            setattr(os, name, real)
        vfs.unregister()
