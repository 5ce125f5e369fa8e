"""The codec pipeline that zarr-python uses in place of its own.

zarr-python imports this module wherever zardine is installed, used or not: the engine comes with the first batch.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from zardine.public_names import public
from zardine.stores.extras import need
from zardine.zarr_python.fallback import UnknownToZardineError, own_pipeline, report_fallback

if TYPE_CHECKING:
    from zardine.engine.handle import ArrayHandle
    from zardine.engine.layout import ArrayLayout
    from zardine.zarr_python.selections import Item

_codec: Any = need("zarr.abc.codec", "zardine's codec pipeline")
_registry: Any = need("zarr.registry", "zardine's codec pipeline")

_PRESENT = {"status": "present"}
_MISSING = {"status": "missing"}


@public("zardine")
class ZardineCodecPipeline(_codec.CodecPipeline):  # type: ignore[misc]
    """Reads and writes the chunks of one array of zarr-python by zardine's engine.

    Users name it, ``zarr.config.set({"codec_pipeline.path": "zardine.ZardineCodecPipeline"})``; zarr-python makes one
    for each array that it opens. What zardine does not know (a store, a codec, a data type) goes through zarr-python's
    own pipeline, with one warning that says why.
    """

    def __init__(self, metadata: Any, store: Any) -> None:
        self.metadata = metadata
        self.store = store
        self._layout: ArrayLayout | None = None
        self._refused: str | None = None
        self._handles: dict[str, tuple[Any, ArrayHandle]] = {}
        self._last: tuple[str | None, int, str] = None, 0, ""
        self._own: Any = None

    @classmethod
    def from_array_metadata_and_store(cls, array_metadata: Any, store: Any) -> Self:
        """Return the pipeline of an array with this metadata in ``store``."""
        return cls(array_metadata, store)

    @classmethod
    def from_codecs(cls, codecs: Iterable[Any]) -> Any:
        """Return zarr-python's own pipeline: of codecs alone, without an array, nothing can be read."""
        return own_pipeline().from_codecs(codecs)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.metadata, self.store)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (self.metadata, self.store) == (other.metadata, other.store)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.metadata!r}, {self.store!r})"

    @property
    def own(self) -> Any:
        """zarr-python's own pipeline of the same array."""
        if self._own is None:
            self._own = own_pipeline(self.metadata)
        return self._own

    def evolve_from_array_spec(self, array_spec: Any) -> Self:
        """Return itself: what the codecs need to know is in the metadata."""
        return self

    @property
    def supports_partial_decode(self) -> bool:
        """Whether parts of an object can be read."""
        return bool(self.own.supports_partial_decode)

    @property
    def supports_partial_encode(self) -> bool:
        """Whether parts of an object can be written."""
        return bool(self.own.supports_partial_encode)

    def validate(self, *, shape: tuple[int, ...], dtype: Any, chunk_grid: Any) -> None:
        """Raise ``ValueError`` where the codecs do not fit such an array."""
        self.own.validate(shape=shape, dtype=dtype, chunk_grid=chunk_grid)

    def compute_encoded_size(self, byte_length: int, array_spec: Any) -> int:
        """Return the bytes that so many become; ``NotImplementedError`` where that varies."""
        return int(self.own.compute_encoded_size(byte_length, array_spec))

    async def decode(self, chunk_bytes_and_specs: Iterable[tuple[Any, Any]]) -> Iterable[Any]:
        """Return the chunks that these bytes are, as zarr-python decodes them."""
        found: Iterable[Any] = await self.own.decode(chunk_bytes_and_specs)
        return found

    async def encode(self, chunk_arrays_and_specs: Iterable[tuple[Any, Any]]) -> Iterable[Any]:
        """Return the bytes of these chunks, as zarr-python encodes them."""
        found: Iterable[Any] = await self.own.encode(chunk_arrays_and_specs)
        return found

    async def read(self, batch_info: Iterable[Item], out: Any, drop_axes: tuple[int, ...] = ()) -> Any:
        """Fill ``out`` with parts of stored objects.

        Gives for each of them whether it is stored, where the array is configured with ``read_missing_chunks=False``;
        else all count as present.
        """
        items = list(batch_info)
        if not items:
            return ()
        array = out.as_ndarray_like()
        handle = self._handle(items, array)
        if handle is None:
            return await self.own.read(items, out, drop_axes)
        from zardine.zarr_python.transfer import read_at_once, read_items

        coordinates = self._coordinates(handle, items)
        if drop_axes or not read_at_once(handle, items, coordinates, array):
            await _in_thread(read_items, handle, items, coordinates, array, drop_axes)
        if getattr(items[0][1].config, "read_missing_chunks", True):
            return (_PRESENT,) * len(items)
        return await _in_thread(_statuses, handle, [item[0].path for item in items])

    async def write(self, batch_info: Iterable[Item], value: Any, drop_axes: tuple[int, ...] = ()) -> None:
        """Store ``value`` in parts of objects, of which everything else stays."""
        items = list(batch_info)
        if not items:
            return
        array = value.as_ndarray_like()
        handle = self._handle(items, array)
        if handle is None:
            await self.own.write(items, value, drop_axes)
            return
        from zardine.nodes.asynchronous import change_in_thread
        from zardine.zarr_python.transfer import write_items

        coordinates = self._coordinates(handle, items)
        await change_in_thread(handle, write_items, handle, items, coordinates, array, drop_axes)

    def _handle(self, items: Sequence[Item], array: Any) -> ArrayHandle | None:
        """The handle of the array that a batch is for; ``None``, after a warning: zardine cannot do it."""
        from zardine.zarr_python.handles import configured, is_same_type

        try:
            if self._refused is not None:
                raise UnknownToZardineError(self._refused)
            handle = self._found(items[0][0])
        except UnknownToZardineError as reason:
            self._refused = str(reason)
            report_fallback(self, str(reason))
            return None
        if not isinstance(array, np.ndarray):
            kind = type(array)
            report_fallback(
                self, f"its values are wanted as {kind.__module__}.{kind.__qualname__}, not as NumPy arrays"
            )
            return None
        if not is_same_type(handle.layout.metadata.dtype, array.dtype):
            report_fallback(self, f"its values are wanted as {array.dtype}")
            return None
        return configured(handle, items[0][1].config)

    def _found(self, place: Any) -> ArrayHandle:
        from zardine.zarr_python.handles import handle_of, layout_of
        from zardine.zarr_python.stores import store_of

        if self._layout is None:
            self._layout = layout_of(self.metadata)
        layout = self._layout
        path = self._path_of(layout, place.path)
        known, store = self._handles.get(path), store_of(place.store)
        if known is not None and known[0] is place.store and known[1].store is store:
            return known[1]
        handle = handle_of(store, path, layout)
        self._handles[path] = place.store, handle
        return handle

    def _path_of(self, layout: ArrayLayout, key: str) -> str:
        start, slashes, path = self._last  # of the batch before
        if start is None or not key.startswith(start) or key.count("/") != slashes:
            path = _path_of(layout, key)
            start = f"{path}/" if path else ""
            self._last = start, key.count("/"), path
        return path

    def _coordinates(self, handle: ArrayHandle, items: Sequence[Item]) -> list[tuple[str, ...]]:
        """The grid coordinates of the objects of a batch, as their keys have them."""
        start, separator, skipped = _form(handle)
        return [tuple(item[0].path[start:].split(separator)[skipped:]) for item in items]


def _form(handle: ArrayHandle) -> tuple[int, str, int]:
    """Where the name of an object begins in its key, what separates its parts, and how many precede the coordinates."""
    keys: Any = handle.layout.keys
    start = len(handle.path) + 1 if handle.path else 0
    return start, keys.separator, 1 if keys.name == "default" else 0 if handle.layout.metadata.ndim else 1


def _path_of(layout: ArrayLayout, key: str) -> str:
    """The path of the array of which ``key`` is an object."""
    form = layout.key_form
    if form is None:
        raise UnknownToZardineError(f"its chunk key encoding {layout.keys.name!r} is none that zardine reads backwards")
    parts = form.count("/") + 1
    path = "/".join(key.split("/")[:-parts])
    name = key[len(path) + 1 :] if path else key
    if layout.keys.decode(name, layout.metadata.ndim) is None:
        raise UnknownToZardineError(f"{key!r} is not the key of a chunk")
    return path


def _statuses(handle: ArrayHandle, keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(_PRESENT if handle.store.exists(key) else _MISSING for key in keys)


async def _in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    """Run ``work`` in a thread of the event loop; cancelling does not stop it half-way."""
    return await asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, work, *arguments)


_registry.register_pipeline(ZardineCodecPipeline)

__all__ = ["ZardineCodecPipeline"]
