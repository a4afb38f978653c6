"""The one loader of the files that are data to us: ``schema.sql`` and ``grammar/`` at the top level, ``formats/`` in the package.

In a checkout or an editable install the former lie beside the package; a wheel carries them inside it, under ``_data``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_PLACES = (_PACKAGE / "_data", _PACKAGE.parent)


@cache
def text(name: str) -> str:
    """The text of a shipped file, such as ``schema.sql`` or ``grammar/door.lark``.

    Raises FileNotFoundError, naming every place looked at, when the installation is incomplete.
    """
    for place in _PLACES:
        path = place / name
        if path.is_file():
            return path.read_text(encoding="utf-8")
    looked = ", ".join(str(place / name) for place in _PLACES)
    raise FileNotFoundError(f"{name} is not part of this installation; looked at {looked}: install exarch_sql again")
