"""``vlen-bytes``: byte strings of any length.

Specification: zarr-extensions "codecs/vlen-bytes".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import ArrayBytesCodec, ChunkSpec
from zardine.codecs.configured import Configured
from zardine.codecs.vlen_layout import join_elements, split_elements
from zardine.errors import EncodeError

_TYPES = ("bytes", "variable_length_bytes")


@dataclass(frozen=True, slots=True)
class VLenBytesCodec(Configured, ArrayBytesCodec):
    """Each element as its length and its bytes. Encodes object arrays of bytes-like values."""

    name: ClassVar[str] = "vlen-bytes"

    def check(self, spec: ChunkSpec) -> str | None:
        """Only the variable-length data type ``bytes`` can be stored."""
        if spec.data_type.name not in _TYPES:
            return f'"vlen-bytes" stores data type bytes, not {spec.data_type.name}'
        return None

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """Varies."""
        return None

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> BytesLike:
        """The elements in C order; raises :class:`EncodeError` for what is not bytes."""
        return join_elements([self._plain(value) for value in array.reshape(-1).tolist()], codec=self.name)

    def decode(self, data: BytesLike, spec: ChunkSpec) -> npt.NDArray[Any]:
        """An object array of ``bytes``."""
        array = np.empty(spec.size, object)
        array[:] = split_elements(data, spec.size, codec=self.name)
        return array.reshape(spec.shape)

    def _plain(self, value: Any) -> bytes:
        if isinstance(value, bytes):
            return value
        if isinstance(value, (bytearray, memoryview)):
            return bytes(value)
        raise EncodeError(f"expected bytes, found {value!r}", codec=self.name)
