"""``vlen-utf8``: strings of any length.

Specification: zarr-extensions "codecs/vlen-utf8".
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
from zardine.errors import ChunkDecodeError, EncodeError

_TYPES = ("string", "variable_length_utf8")


@dataclass(frozen=True, slots=True)
class VLenUTF8Codec(Configured, ArrayBytesCodec):
    """Each string as its length in bytes and its UTF-8 bytes. Encodes ``StringDType``, ``U`` and object arrays."""

    name: ClassVar[str] = "vlen-utf8"

    def check(self, spec: ChunkSpec) -> str | None:
        """Only data type ``string`` can be stored."""
        if spec.data_type.name not in _TYPES:
            return f'"vlen-utf8" stores data type string, not {spec.data_type.name}'
        return None

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """Varies."""
        return None

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> BytesLike:
        """The strings in C order; raises :class:`EncodeError` for what is no string, or no Unicode."""
        values = array.reshape(-1).tolist()
        try:
            return join_elements([str.encode(value) for value in values], codec=self.name)
        except UnicodeEncodeError as error:
            raise EncodeError(f"a string has no UTF-8 form: {error}", codec=self.name) from None
        except TypeError:
            wrong = next(value for value in values if not isinstance(value, str))
            raise EncodeError(f"expected strings, found {wrong!r}", codec=self.name) from None

    def decode(self, data: BytesLike, spec: ChunkSpec) -> npt.NDArray[Any]:
        """An array of ``spec.dtype`` (normally ``StringDType``)."""
        elements = split_elements(data, spec.size, codec=self.name)
        try:
            values = [element.decode() for element in elements]
        except UnicodeDecodeError as error:
            raise ChunkDecodeError(f"an element is not UTF-8: {error}", codec=self.name) from None
        dtype = spec.dtype if spec.dtype.kind in "TO" else np.dtypes.StringDType()
        return np.array(values, dtype).reshape(spec.shape)
