"""Search patterns as the door takes them: compiled by the library's own search, loaded when first needed, refused as a line is."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from exarch_sql.door.refusals import Failed
from exarch_sql.errors import Refused

if TYPE_CHECKING:
    from exarch_sql.patterns import Pattern


@functools.lru_cache(maxsize=64)
def compiled(pattern: str) -> Pattern:
    """The pattern, ready to search. Raises :class:`Failed`, naming what RE2 has not and what to do instead."""
    from exarch_sql.patterns import compile_pattern  # noqa: PLC0415  # a door that never searches need not load RE2

    try:
        return compile_pattern(pattern)
    except Refused as error:
        raise Failed(str(error).removeprefix("pattern ")) from None
