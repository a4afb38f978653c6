"""What the archive answers: small frozen types, each with ``to_dict()`` giving the JSON of the written contract.

A *span* ``[from, to]`` has both ends inclusive. ``from`` is a Python keyword, so the attribute is ``from_``.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Json = dict[str, Any]
Message = dict[str, Any]
Role = Literal["user", "assistant"]
Kind = Literal["own", "import", "inherited", "residue"]


class Span(msgspec.Struct, frozen=True, order=True):
    """A run of turn ids, both ends inclusive, never inverted by construction of the laws."""

    from_: int
    to: int

    def __str__(self) -> str:
        return f"turn {self.from_}" if self.from_ == self.to else f"turns {self.from_}–{self.to}"

    def to_dict(self) -> Json:
        """``{"from", "to"}``."""
        return {"from": self.from_, "to": self.to}


class Location(msgspec.Struct, frozen=True):
    """Where an item is: ``resident``, ``withdrawn``, or ``under`` its holder's span (L7)."""

    state: Literal["resident", "under", "withdrawn"]
    span: Span | None = None

    def to_json(self) -> str | Json:
        """``"resident"``, ``"withdrawn"`` or ``{"under": {"from", "to"}}``."""
        return {"under": self.span.to_dict()} if self.span else self.state

    def __str__(self) -> str:
        return f"under {self.span}" if self.span else self.state


RESIDENT = Location("resident")
WITHDRAWN = Location("withdrawn")


class Row(msgspec.Struct, frozen=True):
    """One item, a turn or a residue, as a span. ``bytes`` is what it weighs in the context (see ``docs/file-format.md``)."""

    from_: int
    to: int
    role: Role
    kind: Kind
    label: str
    bytes: int
    location: Location

    @property
    def span(self) -> Span:
        """The item's span; a turn's ends are equal."""
        return Span(self.from_, self.to)

    def to_dict(self) -> Json:
        """``{"from", "to", "role", "kind", "label", "bytes", "location"}``."""
        return {
            "from": self.from_,
            "to": self.to,
            "role": self.role,
            "kind": self.kind,
            "label": self.label,
            "bytes": self.bytes,
            "location": self.location.to_json(),
        }


class Survey(msgspec.Struct, frozen=True):
    """The frontier's rows in id order, and their bytes together: what ``render`` sends."""

    rows: tuple[Row, ...]
    total_bytes: int

    def to_dict(self) -> Json:
        """``{"rows", "total-bytes"}``."""
        return {"rows": [row.to_dict() for row in self.rows], "total-bytes": self.total_bytes}


class Turn(msgspec.Struct, frozen=True):
    """A turn as the append that made or extended it left it. ``seq`` is that append's record."""

    id: int
    role: Role
    seq: int

    def to_dict(self) -> Json:
        """``{"id", "role", "seq"}``."""
        return {"id": self.id, "role": self.role, "seq": self.seq}


class Material(msgspec.Struct, frozen=True):
    """A turn's own recorded messages, whole and unclipped, in OpenTelemetry form."""

    turn: int
    role: Role
    messages: tuple[Message, ...]

    def to_dict(self) -> Json:
        """``{"turn", "role", "messages"}``."""
        return {"turn": self.turn, "role": self.role, "messages": list(self.messages)}


class Hit(msgspec.Struct, frozen=True):
    """One matching line: its item's span and kind, the message's role, the 1-based line within that message."""

    from_: int
    to: int
    kind: Kind
    role: str
    line: int
    text: str

    def to_dict(self) -> Json:
        """``{"from", "to", "kind", "role", "line", "text"}``."""
        return {
            "from": self.from_,
            "to": self.to,
            "kind": self.kind,
            "role": self.role,
            "line": self.line,
            "text": self.text,
        }


class Found(msgspec.Struct, frozen=True):
    """What ``grep`` found: at most the 100 oldest hits, and the count of all."""

    hits: tuple[Hit, ...]
    total: int

    def to_dict(self) -> Json:
        """``{"hits", "total"}``."""
        return {"hits": [hit.to_dict() for hit in self.hits], "total": self.total}


class Pressure(msgspec.Struct, frozen=True):
    """A weighing of the context: the level, the numbers behind it, the span a forced eviction would take, the reminder.

    ``due`` says to tell the model now: the first reading of an excursion above the line, until a reading below it.
    """

    level: Literal["under", "warn", "over"]
    used: int
    window: int | None
    unit: Literal["tokens", "bytes"]
    span: Span | None
    reminder: str | None
    due: bool = False

    def to_dict(self) -> Json:
        """``{"level", "used", "window", "unit", "span", "reminder", "due"}``; absent parts are null."""
        return {
            "level": self.level,
            "used": self.used,
            "window": self.window,
            "unit": self.unit,
            "span": self.span.to_dict() if self.span else None,
            "reminder": self.reminder,
            "due": self.due,
        }


class Head(msgspec.Struct, frozen=True):
    """What an auditor keeps elsewhere to prove later that nothing up to ``seq`` was altered or cut off."""

    lineage: str
    seq: int
    digest: str

    def to_dict(self) -> Json:
        """``{"lineage", "seq", "digest"}``; the digest in lower-case hexadecimal."""
        return {"lineage": self.lineage, "seq": self.seq, "digest": self.digest}


class LogInfo(msgspec.Struct, frozen=True):
    """One log of the lineage: its parent and the record that opened it, its reach, and its protocol state."""

    log: int
    name: str
    parent: str | None
    opened: int
    reach: int
    state: str
    items: int
    bytes: int

    def to_dict(self) -> Json:
        """``{"log", "name", "parent", "opened", "reach", "state", "items", "bytes"}``."""
        return msgspec.structs.asdict(self)


class Fault(msgspec.Struct, frozen=True):
    """One thing ``verify`` found wrong: its kind, where, and what was got and wanted."""

    kind: str
    where: str
    what: str

    def to_dict(self) -> Json:
        """``{"kind", "where", "what"}``."""
        return msgspec.structs.asdict(self)

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.what}"


class Report(msgspec.Struct, frozen=True):
    """What ``verify`` found. ``counts`` is faults by kind; ``faults`` holds the first of them, in the order met."""

    faults: tuple[Fault, ...]
    counts: dict[str, int]
    records: int
    blobs: int
    logs: int
    redacted: tuple[int, ...]
    head: Head | None

    @property
    def ok(self) -> bool:
        """Whether no fault was found."""
        return not self.counts

    @property
    def first(self) -> Fault | None:
        """The first fault met, in checking order; None when the file is lawful."""
        return self.faults[0] if self.faults else None

    def to_dict(self) -> Json:
        """``{"ok", "faults", "counts", "records", "blobs", "logs", "redacted", "head"}``."""
        return {
            "ok": self.ok,
            "faults": [fault.to_dict() for fault in self.faults],
            "counts": dict(self.counts),
            "records": self.records,
            "blobs": self.blobs,
            "logs": self.logs,
            "redacted": list(self.redacted),
            "head": self.head.to_dict() if self.head else None,
        }


class Migrated(msgspec.Struct, frozen=True):
    """What ``migrate`` did to the file at ``path``: the format it had, the one it has, where its copy is.

    Of a file that had this version's format already, both are the same, and there is no copy.
    """

    path: str
    from_: int
    to: int
    copy: str | None

    def to_dict(self) -> Json:
        """``{"path", "from", "to", "copy"}``; ``copy`` is null where nothing was done."""
        return {"path": self.path, "from": self.from_, "to": self.to, "copy": self.copy}
