"""Pressure and planning: when a context is too full, and which prefix the harness would take (ral-door section 6).

Pure functions of a survey and numbers; they write nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from exarch_sql import arguments
from exarch_sql.answers import Pressure, Span
from exarch_sql.errors import Refused

if TYPE_CHECKING:
    from exarch_sql.answers import Survey

RESERVE_PERCENT = 15
RESERVE_TOKENS = 16_384  # at least
EVICT_BYTES = 512_000  # with the window unknown
WARN_BYTES = 384_000


def reserve(window: int) -> int:
    """Tokens kept free in a window."""
    return max(window * RESERVE_PERCENT // 100, RESERVE_TOKENS)


def plan(survey: Survey, keep: int | None = None) -> Span | None:
    """The one prefix span a forced eviction would take to keep about ``keep`` bytes (half of the total by default).

    Walks back from the newest item, which is never taken but is charged; the first item that does not fit ends the span. None
    when everything fits, or when the span would be exactly one residue (L9). Raises Refused for a negative ``keep``.
    """
    rows = survey.rows
    if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 0):
        raise Refused(f"keep is a number of bytes, not {keep!r}: 0 keeps the newest item alone")
    if not rows:
        return None
    budget = survey.total_bytes // 2 if keep is None else keep
    spent = rows[-1].bytes
    for index in range(len(rows) - 2, -1, -1):
        spent += rows[index].bytes
        if spent > budget:
            if index == 0 and rows[0].kind == "residue":
                return None
            return Span(rows[0].from_, rows[index].to)
    return None


def weigh(survey: Survey, used: int | None, window: int | None, *, stale: bool = False) -> Pressure:
    """Whether the context presses: ``used`` of ``window`` tokens, or its bytes where either is unknown.

    ``stale`` says that the count was taken before the newest edit: it is no verdict, and the bytes decide nothing either.
    """
    if used is None or window is None:
        unit, used, limit = "bytes", survey.total_bytes, None
        over, warn = used >= EVICT_BYTES, used >= WARN_BYTES
        measure = f"{used // 1000} KB"
    else:
        used, window = arguments.whole(used, "used"), arguments.whole(window, "window")
        unit, limit = "tokens", window
        over, warn = used + reserve(window) > window, used + 2 * reserve(window) > window
        measure = f"{used} of {window} tokens"
        if stale:
            over = warn = False
    if not warn:
        return Pressure("under", used, limit, unit, None, None)  # type: ignore[arg-type]
    span = plan(survey)
    return Pressure("over" if over else "warn", used, limit, unit, span, reminder(measure, span))  # type: ignore[arg-type]


def reminder(measure: str, span: Span | None) -> str:
    """What the model is told under pressure: what leaves next, that it stays readable, and how to make the cut its own."""
    said = f"Context pressure: {measure}."
    if span is not None:
        leaves, stays = ("leaves", "stays") if span.from_ == span.to else ("leave", "stay")
        said += (
            f" {str(span).capitalize()} {leaves} your context at the next boundary, without a note, and {stays} readable with"
            f" `exarch-transcript `read [turns: !{{range {span.from_} {span.to + 1}}}]`. To make the cut yourself and keep a note:"
            f" `exarch-context `evict [from: {span.from_}, to: {span.to}, note: '...']`."
        )
    return f"[EXARCH_REMINDER // Do not mention to user.] {said} [/EXARCH_REMINDER]"
