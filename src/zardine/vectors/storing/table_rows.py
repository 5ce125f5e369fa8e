"""Rows of tables as bytes, and back: as logs of changes hold them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import CorruptionError
from zardine.nodes.array import Array


def row_bytes(values: npt.NDArray[Any]) -> list[bytes]:
    """Each row of ``values`` as bytes: text as UTF-8, numbers little endian, bytes as they are."""
    if values.dtype.kind == "T":
        return [str(each).encode() for each in values.tolist()]
    if values.dtype.kind == "O":
        return [bytes(each) for each in values.tolist()]
    plain = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return [row.tobytes() for row in plain]


def row_values(table: Array, rows: Sequence[bytes]) -> npt.NDArray[Any]:
    """The values of rows of ``table``. Raises :class:`~zardine.errors.CorruptionError` for bytes that are none."""
    if table.dtype.kind == "T":
        try:
            return np.array([row.decode() for row in rows] or [""], table.dtype)[: len(rows)]
        except UnicodeDecodeError as error:
            raise CorruptionError(f"the log of a change holds no text: {error}", array=table.path) from None
    if table.dtype.kind == "O":
        values = np.empty(len(rows), object)
        values[:] = rows
        return values
    dtype, shape = table.dtype.newbyteorder("<"), table.shape[1:]
    if any(len(row) != dtype.itemsize * prod(shape) for row in rows):
        raise CorruptionError(f"the log of a change holds no rows of {dtype} {shape}", array=table.path)
    return np.frombuffer(b"".join(rows), dtype).reshape(len(rows), *shape)
