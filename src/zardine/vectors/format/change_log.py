"""The log of a change: whole new cells, new rows of tables and new documents. Bytes to values and back; no I/O.

It is durable before the change is agreed on, and counts from that moment until the last of it is stored where it
belongs.

::

    8 bytes b"ZARDLOG1"   u32 length of the head
    head, JSON: the token, documents by path, and for each array how many cells or rows of it are here
    for each array of cells:  C x K x i64 chunks,  C x i64 bytes,  the cells one after the other
    for each table:           R x i64 rows,        R x i64 bytes,  the values one after the other
    u32 crc32c of all before
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.codecs.crc32c import crc32c
from zardine.errors import CorruptionError
from zardine.vectors.format.ragged import starts_of, unique_rows

_MAGIC = b"ZARDLOG1"
_LENGTH = struct.Struct("<I")
_COMPACT = json.JSONEncoder(separators=(",", ":"))


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """What becomes of some cells of an array, or of some rows of a table."""

    places: Ints
    """Distinct: chunks ``(C, K)``, or rows ``(R, 1)``."""
    values: Sequence[bytes]
    """What a cell holds then, ``b""`` for one that goes; the value of a row, as :func:`ChangeLog` says."""


class OtherLogError(CorruptionError):
    """A log is that of another change."""


@dataclass(frozen=True, slots=True, eq=False)
class ChangeLog:
    """All that a change puts in the place of something, by path below the level."""

    token: str
    documents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cells: Mapping[str, Changed] = field(default_factory=dict)
    rows: Mapping[str, Changed] = field(default_factory=dict)
    """Of tables of bytes these; of tables of text UTF-8; of others numbers, little endian."""


def encode_log(log: ChangeLog) -> bytes:
    """The bytes of a log."""
    shapes = [[[path, *each.places.shape] for path, each in table.items()] for table in (log.cells, log.rows)]
    parts: list[BytesLike] = [with_length(head_text(log.token, log.documents, *shapes))]
    for each in (*log.cells.values(), *log.rows.values()):
        count = len(each.values)
        parts += [each.places.astype("<i8", copy=False).tobytes(), struct.pack(f"<{count}q", *map(len, each.values))]
        parts += each.values
    body = b"".join(parts)
    return body + _LENGTH.pack(crc32c(body))


def head_text(
    token: str, documents: Mapping[str, Any], cells: Sequence[Sequence[Any]], rows: Sequence[Sequence[Any]]
) -> bytes:
    """The head of a log: of each array of cells, and of each table, its path and the shape of the places."""
    return _COMPACT.encode({"token": token, "documents": documents, "cells": cells, "rows": rows}).encode()


def with_length(head: bytes) -> bytes:
    """What a log begins with, up to the first array."""
    return b"".join((_MAGIC, _LENGTH.pack(len(head)), head))


def decode_log(data: BytesLike, token: str) -> ChangeLog:
    """The log in ``data``, which is that of ``token``. Raises :class:`~zardine.errors.CorruptionError`."""
    body = bytes(data)[: -_LENGTH.size]
    if len(data) < len(_MAGIC) + 2 * _LENGTH.size or not body.startswith(_MAGIC):
        raise CorruptionError(f"{len(data)} bytes that are no log of a change")
    if crc32c(body) != _LENGTH.unpack_from(data, len(body))[0]:
        raise CorruptionError("the log of a change is damaged: its checksum does not fit")
    at = len(_MAGIC) + _LENGTH.size
    (length,) = _LENGTH.unpack_from(body, len(_MAGIC))
    try:
        head = json.loads(body[at : at + length])
        found, documents = head["token"], dict(head["documents"])
        tables = [
            [(str(path), int(count), int(rank)) for path, count, rank in head[name]] for name in ("cells", "rows")
        ]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as fault:
        raise CorruptionError(f"the head of the log of a change is damaged: {fault}") from None
    if found != token:
        raise OtherLogError(f"a log of the change {found!r}, where that of {token!r} is expected")
    if not all(isinstance(each, Mapping) for each in documents.values()):
        raise CorruptionError("the log of a change has documents that are none")
    at += length
    changed: list[dict[str, Changed]] = [{}, {}]
    for kind, table in enumerate(tables):
        for path, count, rank in table:
            changed[kind][path], at = _changed(body, at, count, rank)
    if at != len(body):
        raise CorruptionError(f"{len(body) - at} bytes follow what the log of a change says it holds")
    return ChangeLog(token, documents, *changed)


def _changed(body: bytes, at: int, count: int, rank: int) -> tuple[Changed, int]:
    """What stands at ``at``, and where it ends."""
    if not (0 <= count <= len(body) and 1 <= rank <= len(body)) or at + 8 * count * (rank + 1) > len(body):
        raise CorruptionError(f"the log of a change has no room for {count} places of {rank} numbers")
    places = np.frombuffer(body, "<i8", count * rank, at).astype(np.int64).reshape(count, rank)
    sizes = np.frombuffer(body, "<i8", count, at + 8 * count * rank)
    at += 8 * count * (rank + 1)
    if count and (sizes.min() < 0 or sizes.max() > len(body) or at + int(sizes.sum()) > len(body)):
        raise CorruptionError("the log of a change is shorter than the values that it should hold")
    if len(unique_rows(places)[0]) != count:
        raise CorruptionError("the log of a change names a place twice")
    edges = (at + starts_of(sizes)).tolist()
    return Changed(places, [body[a:b] for a, b in pairwise(edges)]), edges[-1]
