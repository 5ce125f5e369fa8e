"""Elements of any length, each as its length and its bytes: one layout under several names.

``vlen-utf8`` stores strings and ``vlen-bytes`` byte strings (zarr-extensions "codecs"). The program zarrs has the
same layout for both under ``zarrs.vlen_v2`` and ``vlen-array``, and takes each of the names for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import ArrayBytesCodec, ChunkSpec
from zardine.codecs.configured import Configured
from zardine.codecs.vlen.layout import AT_ONCE, join_elements, replace_elements, split_at_once, split_elements
from zardine.errors import ChunkDecodeError, EncodeError

TEXT_TYPES = ("string", "variable_length_utf8")
BYTES_TYPES = ("bytes", "variable_length_bytes", "binary")


@dataclass(frozen=True, slots=True)
class VLenElements(Configured, ArrayBytesCodec):
    """Stores strings as UTF-8, and byte strings; the data type tells which. Subclasses give it a name."""

    MEANT_FOR: ClassVar[tuple[str, ...]] = (*TEXT_TYPES, *BYTES_TYPES)
    """The data types that the codec's own text names."""

    def check(self, spec: ChunkSpec) -> str | None:
        """Only strings and byte strings of any length can be stored."""
        if spec.data_type.name not in (*TEXT_TYPES, *BYTES_TYPES):
            return f'"{self.name}" stores data type {self.MEANT_FOR[0]}, not {spec.data_type.name}'
        return None

    def remark(self, spec: ChunkSpec) -> str | None:
        """The other of the two types is stored so by zarrs only."""
        if spec.data_type.name not in self.MEANT_FOR:
            return f'"{self.name}" stores data type {self.MEANT_FOR[0]}, not {spec.data_type.name}'
        return None

    counts_first: ClassVar[bool] = True

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """Varies."""
        return None

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> BytesLike:
        """The elements in C order; raises :class:`EncodeError` for what is not of the data type."""
        return join_elements(elements_to_bytes(array, spec, codec=self.name), array.size, codec=self.name)

    def decode(self, data: BytesLike, spec: ChunkSpec) -> npt.NDArray[Any]:
        """An array of ``spec.dtype``: normally ``StringDType``, or objects."""
        found = split_at_once(data, spec) if spec.data_type.name in BYTES_TYPES else None
        if found is not None:
            array = np.empty(spec.size, object)
            array[:] = found
            return array.reshape(spec.shape)
        return elements_from_bytes(split_elements(data, spec, codec=self.name), spec, codec=self.name)

    def replaced(self, data: BytesLike, spec: ChunkSpec, start: int, array: npt.NDArray[Any]) -> BytesLike | None:
        """What holds the elements of ``array`` from number ``start`` on, and else what ``data`` hold."""
        if array.size > AT_ONCE:
            return None
        return replace_elements(
            data, spec.size, start, next(elements_to_bytes(array, spec, codec=self.name), list[bytes]())
        )


class VLenV2Codec(VLenElements):
    """As zarrs names it; it has no further parameters."""

    name: ClassVar[str] = "zarrs.vlen_v2"


class VLenArrayCodec(VLenElements):
    """As zarrs names it where arrays of Zarr v2 had a codec of that name."""

    name: ClassVar[str] = "vlen-array"


def elements_to_bytes(array: npt.NDArray[Any], spec: ChunkSpec, *, codec: str) -> Iterator[list[bytes]]:
    """The stored bytes of each element in C order, some at a time."""
    flat = array.reshape(-1)
    for start in range(0, flat.size, AT_ONCE):
        values = flat[start : start + AT_ONCE].tolist()
        if spec.data_type.name in BYTES_TYPES:
            yield values if set(map(type, values)) <= {bytes} else [_plain(value, codec) for value in values]
            continue
        try:
            encoded = [str.encode(value) for value in values]
        except UnicodeEncodeError as error:
            raise EncodeError(f"a string has no UTF-8 form: {error}", codec=codec) from None
        except TypeError:
            wrong = next(value for value in values if not isinstance(value, str))
            raise EncodeError(f"expected strings, found {wrong!r}", codec=codec) from None
        yield encoded


def elements_from_bytes(elements: Iterator[bytes], spec: ChunkSpec, *, codec: str) -> npt.NDArray[Any]:
    """The chunk of ``spec`` that these stored bytes of its elements make."""
    is_bytes = spec.data_type.name in BYTES_TYPES
    dtype = spec.dtype if is_bytes or spec.dtype.kind in "TO" else np.dtypes.StringDType()
    array = np.empty(spec.size, object if is_bytes else dtype)
    try:
        for start in range(0, spec.size, AT_ONCE):
            some = islice(elements, AT_ONCE)
            array[start : start + AT_ONCE] = list(some) if is_bytes else [element.decode() for element in some]
        next(elements, None)  # looks at the end of the data
    except UnicodeDecodeError as error:
        raise ChunkDecodeError(f"an element is not UTF-8: {error}", codec=codec) from None
    return array.reshape(spec.shape)


def _plain(value: Any, codec: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise EncodeError(f"expected bytes, found {value!r}", codec=codec)
