"""Filters and compressors of Zarr v2 that no v3 codec stands for: whatever numcodecs has, used as zarr-python 2 did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import ArrayBytesCodec, BytesBytesCodec, ChunkSpec, SizeLimit
from zardine.codecs.bounds import compressed_limit
from zardine.codecs.v2_steps import OBJECT_CODECS, Step, as_bytes, find_step, sizes_of
from zardine.data_types.v2_names import dtype_to_json
from zardine.errors import ChunkDecodeError, DataError, EncodeError
from zardine.json_document import JSON, Problems
from zardine.metadata.v2_codecs import COMPRESSOR, FILTERS
from zardine.metadata.v2_dtypes import parse_dtype


@dataclass(frozen=True, slots=True, eq=False)
class V2Filters(ArrayBytesCodec):
    """Elements of any stored dtype, in C or F order, through ``filters``, the configurations of numcodecs codecs."""

    dtype: np.dtype[Any]
    order: str
    filters: tuple[Mapping[str, JSON], ...]
    _steps: tuple[Step, ...] = field(repr=False, default=())

    name: ClassVar[str] = FILTERS
    pads: ClassVar[bool] = True

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> Self | None:
        """The codec of a translated v2 document."""
        options = configuration or {}
        dtype = parse_dtype(options.get("dtype"), "dtype", problems)
        filters = options.get("filters", ())
        steps = [find_step(each, f"filters[{i}]", problems) for i, each in enumerate(filters)]
        known = tuple(step for step in steps if step is not None)
        if dtype is None or len(known) < len(steps):
            return None
        return cls(dtype, str(options["order"]), tuple(filters), known)

    def configuration(self) -> dict[str, JSON]:
        """All of it."""
        filters = [dict(each) for each in self.filters]
        return {"dtype": dtype_to_json(self.dtype), "order": self.order, "filters": filters}

    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """The size of the elements without filters, else varies."""
        return spec.nbytes if not self.filters else None

    def encoded_limit(self, spec: ChunkSpec) -> int | None:
        """Unknown where the filters make objects into bytes, or are those of other packages."""
        last = self._sizes(spec)[-1]
        return None if len(last.settings) > 1 else last.nbytes

    def _sizes(self, spec: ChunkSpec) -> list[SizeLimit]:
        first = SizeLimit(0, False) if self._holds_objects() else SizeLimit(spec.size * self.dtype.itemsize, True)
        return sizes_of(self._steps, first, spec.size)

    def _holds_objects(self) -> bool:
        """Return whether the first filter takes objects, be it for text of a fixed length.

        zarr-python 3.0.0 to 3.0.10 put ``vlen-utf8`` and ``vlen-bytes`` before the dtypes ``U``, ``S`` and ``V``.
        """
        first = self._steps[0].identifier if self._steps else ""
        return self.dtype.kind == "O" or (self.dtype.kind in "USV" and first in OBJECT_CODECS)

    def encode(self, array: npt.NDArray[Any], spec: ChunkSpec) -> BytesLike:
        """What the filters make of the elements."""
        order: Any = self.order
        value: Any = np.array(array, self.dtype, order=order)  # a copy: some filters want to be able to write
        if self._holds_objects():
            value = value.astype(object)
        for step in self._steps:
            try:
                value = step.encode(value)
            except DataError as error:
                raise EncodeError(f"filter {step.identifier}: {error.reason}", codec=self.name) from None
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "O":
                raise EncodeError("the filters leave objects, which are no bytes", codec=self.name)
            return value.reshape(-1, order="A").tobytes()
        return bytes(value)

    def decode(self, data: BytesLike, spec: ChunkSpec) -> npt.NDArray[Any]:
        """What the filters restore; raises :class:`ChunkDecodeError` unless it is a chunk of ``spec``."""
        value: Any = bytes(data)
        sizes = self._sizes(spec)
        for number in reversed(range(len(self._steps))):
            step = self._steps[number]
            try:
                value = step.decode(value, sizes[number].now(), spec if number == 0 else None)
            except DataError as error:
                reason = error.reason if step.identifier == "pickle" else f"filter {step.identifier}: {error.reason}"
                raise type(error)(reason, codec=step.identifier) from None
        elements = self._elements(value, spec)
        if elements.size != spec.size:
            raise ChunkDecodeError(f"{elements.size} elements, expected {spec.size}", codec=self.name)
        order: Any = self.order
        shaped = (
            elements
            if elements.shape == spec.shape
            else elements.reshape(-1, order="A").reshape(spec.shape, order=order)
        )
        if spec.dtype.kind == "T":
            return _as_text(shaped, spec.dtype)
        return spec.data_type.repair_bits(shaped.astype(spec.dtype, copy=False))

    def _elements(self, value: Any, spec: ChunkSpec) -> npt.NDArray[Any]:
        if self._holds_objects():
            array = np.asarray(value) if isinstance(value, np.ndarray) else None
            if array is None or array.dtype.kind not in "OUS":
                raise ChunkDecodeError("the filters give no objects", codec=self.name)
            objects = array.astype(object, copy=False)
            return objects if self.dtype.kind == "O" else self._fixed_length(objects)
        raw = as_bytes(value)
        if len(raw) != spec.size * self.dtype.itemsize:
            reason = f"{len(raw)} bytes, expected {spec.size * self.dtype.itemsize}"
            raise ChunkDecodeError(reason, codec=self.name)
        return np.frombuffer(raw, self.dtype)

    def _fixed_length(self, objects: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Convert objects to text or bytes of a fixed length; raises :class:`ChunkDecodeError` if one is longer."""
        kind, width = (str, self.dtype.itemsize // 4) if self.dtype.kind == "U" else (bytes, self.dtype.itemsize)
        for item in objects.flat:
            if not isinstance(item, kind) or len(item) > width:
                shown = repr(item)[:80]
                raise ChunkDecodeError(f"{shown} is not a value of dtype {self.dtype.str}", codec=self.name)
        return objects.astype(self.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class V2Compressor(BytesBytesCodec):
    """Any codec of numcodecs from bytes to bytes."""

    options: Mapping[str, JSON]
    _step: Step = field(repr=False)

    name: ClassVar[str] = COMPRESSOR

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> Self | None:
        """The codec of a translated v2 document."""
        options = configuration or {}
        step = find_step(options, "compressor", problems)
        return None if step is None else cls(options, step)

    def configuration(self) -> dict[str, JSON]:
        """That of numcodecs, ``id`` included."""
        return dict(self.options)

    def encoded_size(self, nbytes: int) -> int | None:
        """Varies."""
        return None

    def encoded_limit(self, nbytes: int) -> int:
        """See :func:`~zardine.codecs.bounds.compressed_limit`; text, and what holds text, may take more."""
        return max(compressed_limit(nbytes), self._step.encoded(SizeLimit(nbytes, False), nbytes).nbytes)

    def encode(self, data: BytesLike) -> BytesLike:
        """What numcodecs makes of ``data``."""
        return as_bytes(self._step.encode(data))

    def decode(self, data: BytesLike, limit: SizeLimit) -> BytesLike:
        """What numcodecs restores, if it may be so long."""
        decoded = as_bytes(self._step.decode(bytes(data), limit, None))
        limit.enforce(len(decoded), self._step.identifier)
        return decoded


def _as_text(objects: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    values: Sequence[Any] = objects.reshape(-1).tolist()
    text = ["" if value is None else str(value) for value in values]
    return np.array(text, dtype=dtype).reshape(objects.shape)


__all__ = ["V2Compressor", "V2Filters"]
