"""The chain (L11): how a record's digest is computed. ``docs/file-format.md`` says the same in words, with a worked example.

A digest is SHA-256 over a domain tag, then each field behind its length, then the hash of the body, then the predecessor's
digest. Fields that quote the body stay out: the body answers for them through its own hash, and a redaction may blank them.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

RULES = 1  # the version of these rules, `lineage.format`: it is hashed, so a lineage keeps it for good, whatever its file becomes
RECORD_TAG = b"exarch_sql/1/record\n"
LINEAGE_TAG = b"exarch_sql/1/lineage\n"
_ABSENT = b"\xff\xff\xff\xff"


def _field(value: str | int | None) -> bytes:
    """A field as hashed: 4 bytes big-endian length, then UTF-8; an integer as decimal text; NULL as the length 2^32-1 alone."""
    if value is None:
        return _ABSENT
    if type(value) is not str and type(value) is not int:
        raise TypeError(
            f"a field is text, a whole number or None, not {value!r}: another would be stored otherwise than hashed"
        )
    data = b"%d" % value if type(value) is int else str(value).encode()
    return _LENGTHS[len(data)] + data if len(data) < 64 else len(data).to_bytes(4, "big") + data


_LENGTHS = [length.to_bytes(4, "big") for length in range(64)]
_known = lru_cache(maxsize=512)(_field)  # fields that few values fill


def genesis(uuid: str, created_ms: int, format_: int) -> bytes:
    """What stands in for the predecessor's digest in record 1: it binds the chain to this lineage."""
    return sha256(LINEAGE_TAG + _field(uuid) + _field(created_ms) + _field(format_)).digest()


def record_digest(
    seq: int,
    log: int,
    kind: str,
    turn: int | None,
    origin: str | None,
    at_ms: int,
    key: str | None,
    hash_: bytes,
    previous: bytes,
) -> bytes:
    """The digest of one record: 32 bytes."""
    head = RECORD_TAG + _field(seq) + _known(log) + _known(kind)
    tail = _field(turn) + _known(origin) + _field(at_ms) + (_ABSENT if key is None else _field(key))
    return sha256(head + tail + hash_ + previous).digest()
