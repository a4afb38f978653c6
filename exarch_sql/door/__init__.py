"""The door: the small language in which a model surveys its context, lets runs of it go, and reads or searches what left.

A line is text; :mod:`lexer <exarch_sql.door.lexer>` and :mod:`parser <exarch_sql.door.parser>` make a tree of it,
:mod:`check <exarch_sql.door.check>` refuses what is wrong whatever the log holds, the evaluator walks it, and
:mod:`verbs <exarch_sql.door.verbs>` ask the log. A door sees one log's lineage and writes nothing but evictions and, when asked
to record, what it answered. Whatever is typed, what comes back is an :class:`Answer` or a
:class:`~exarch_sql.errors.Refused` with the place and, where it can be told, the line that was meant.
"""

from __future__ import annotations

from exarch_sql.door.door import Answer, Door
from exarch_sql.door.limits import Limits
from exarch_sql.door.refusals import DoorRefused, Failed, Malformed, Overrun
from exarch_sql.door.verbs import Host

__all__ = ["Answer", "Door", "DoorRefused", "Failed", "Host", "Limits", "Malformed", "Overrun"]
