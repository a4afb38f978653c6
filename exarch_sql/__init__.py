"""exarch_sql: one SQLite file as the whole memory of an LLM agent's lineage, append-only and provable.

The *records* are the truth: one INSERT is an append, and the file's own triggers admit it and fold it (``schema.sql``). Runs of the
context are *evicted* under a note and stand as one short residue; everything stays readable and searchable. Modules follow
the data: ``messages`` (what is said) -> ``store`` (one append) -> ``log`` (what may be done) -> ``reading`` (what comes back), with
``judge`` saying why not, ``fold`` and ``verify`` judging whole files on their own, and ``connection`` the one door to SQLite.
"""

from exarch_sql.answers import (
    Found,
    Head,
    Hit,
    Location,
    LogInfo,
    Material,
    Migrated,
    Pressure,
    Report,
    Row,
    Span,
    Survey,
    Turn,
)
from exarch_sql.archive import Archive
from exarch_sql.errors import BadFile, Busy, ExarchError, Refused
from exarch_sql.log import Log

__all__ = [
    "Archive",
    "BadFile",
    "Busy",
    "ExarchError",
    "Found",
    "Head",
    "Hit",
    "Location",
    "Log",
    "LogInfo",
    "Material",
    "Migrated",
    "Pressure",
    "Refused",
    "Report",
    "Row",
    "Span",
    "Survey",
    "Turn",
]
