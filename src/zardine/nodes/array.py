"""The array: what users hold, index, change and ask about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from math import prod
from operator import index as as_index
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

import numpy as np
import numpy.typing as npt

from zardine.creation.attribute_conventions import MISSING, warn_of_missing_value
from zardine.creation.options import ShapeLike
from zardine.creation.v3 import parse_shape
from zardine.data_types.numpy_types import AnyObject
from zardine.engine.array_config import ArrayConfig, ArrayConfigLike, parse_array_config, parse_bytes
from zardine.engine.freshness import (
    Writing,
    check_fresh,
    is_far,
    is_same_generation,
    moment,
    note_fresh,
    note_seen,
    refuse_another,
    refuse_closing,
    take_what_is_there,
)
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import prepare_layout
from zardine.engine.opened import opened_before, remember_opened
from zardine.engine.read_block import read_block
from zardine.engine.stored import data_version
from zardine.engine.write import check_strategy, write_plan
from zardine.engine.write_buffer import WriteBuffer
from zardine.errors import (
    ChunkTooLargeError,
    ConditionFailedError,
    MetadataError,
    ReadOnlyError,
    SelectionError,
    ZardineError,
)
from zardine.hierarchy.consolidated import Consolidated
from zardine.hierarchy.find import describe, document_key, load_array
from zardine.hierarchy.place import find_place, same_place
from zardine.hierarchy.update import StoredNode, stored_node, updated_node
from zardine.indexing.parse import (
    parse_any,
    parse_basic,
    parse_block,
    parse_block_of_elements,
    parse_coordinates,
    parse_mask,
    parse_orthogonal,
    parse_vindex,
)
from zardine.indexing.plan import make_plan
from zardine.indexing.selection import GridSelection, Selection, SelectionLike
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.v2 import in_words_of_the_document
from zardine.nodes.argument_hints import no_attribute
from zardine.nodes.array_base import StoredFacts
from zardine.nodes.assign import broadcast_values, cast_values, check_output
from zardine.nodes.attributes import Attributes, AttributesChange
from zardine.nodes.buffered import (
    BufferedWrites,
    flush_buffer,
    is_buffered,
    move_buffer,
    read_buffered,
    write_buffered,
)
from zardine.nodes.display import ArrayInfo, array_html, describe_array
from zardine.nodes.resizing import clear_beyond, erase_beyond, grown_by, plan_block, take_back, with_shape
from zardine.nodes.selectors import BlockIndex, OIndex, VIndex, split_fields
from zardine.public_names import public
from zardine.shown_text import printable
from zardine.stores.attempts import attempts
from zardine.stores.base import Store
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike

if TYPE_CHECKING:
    from zardine.nodes.asynchronous import AsyncArray
    from zardine.server.viewing import View

Fields = str | list[str] | None


@public("zardine")
class Array(StoredFacts):
    """An N-dimensional array in a store, read and written in parts.

    Square brackets take what NumPy takes on one array, as far as it names stored elements: integers, slices with any
    step, ``...``, one list or mask among them, one list for each axis (points), a mask of the array's shape, and the
    names of struct fields. Reading gives NumPy arrays, or a scalar where every axis is indexed by an integer.

    Elements that were never written read as the fill value. Writes are stored when the call returns. Threads and
    processes may write different inner chunks of one shard at the same time.
    """

    _entry: tuple[Consolidated, str] | None = None
    """The consolidated metadata that this array came out of, and its path there."""
    _async_face: ClassVar[type[AsyncArray]]
    """What gives this array awaitable methods, which registers itself here: it builds on this class."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, is_array=True)

    @overload
    def __init__(self, store: AsyncArray, /) -> None: ...

    @overload
    def __init__(self, store: Store, path: str, metadata: ArrayMetadata, config: ArrayConfig | None = None) -> None: ...

    def __init__(
        self,
        store: Store | AsyncArray,
        path: str | None = None,
        metadata: ArrayMetadata | None = None,
        config: ArrayConfig | None = None,
    ) -> None:
        if not isinstance(store, Store):
            self._handle, self._entry = store._array._handle, store._array._entry
            return
        if path is None or metadata is None:
            raise TypeError("an Array is made by zardine.open_array and zardine.create_array, or of an AsyncArray")
        try:
            layout = prepare_layout(metadata)
        except MetadataError as error:
            problems = error.problems
            if metadata.older is not None:
                problems = tuple(in_words_of_the_document(metadata, list(problems)))
            raise type(error)(f"the document of {describe(store, path)} is invalid", problems) from None
        self._handle = ArrayHandle(store, path, layout, config or ArrayConfig.from_settings())

    @classmethod
    def open(cls, store: StoreLike, zarr_format: int | None = None, *, config: ArrayConfigLike = None) -> Array:
        """Open the array that is stored at ``store``. Raises :class:`~zardine.errors.ArrayNotFoundError`."""
        found, path = find_place(store)
        when = moment()
        array = cls(found, path, load_array(found, path, zarr_format), parse_array_config(config))
        note_seen(array._handle, None, array.metadata, when)
        return array

    @classmethod
    def from_dict(cls, store_path: StorePath, data: Mapping[str, Any]) -> Array:
        """Return an array with the metadata document ``data``, which is not stored."""
        return cls(store_path.store, store_path.path, ArrayMetadata.from_dict(data))

    @property
    def attrs(self) -> Attributes:
        """User attributes; changes are stored at once."""
        return Attributes(lambda: self.metadata.attributes, self._change_attributes)

    def with_config(self, config: ArrayConfigLike) -> Array:
        """Return the same array, read and written in another way (see :class:`zardine.ArrayConfig`)."""
        changed = config if isinstance(config, ArrayConfig) else self.config.changed(config or {})
        return self._with_handle(self._handle.with_config(changed))

    @property
    def info(self) -> ArrayInfo:
        """A readable description that costs no I/O."""
        return describe_array(self)

    def info_complete(self) -> ArrayInfo:
        """Return a readable description with what is stored; looks at every stored object."""
        return describe_array(self, complete=True)

    @property
    def async_array(self) -> AsyncArray:
        """The same array with awaitable methods."""
        return self._async_face(self)

    @property
    def _async_array(self) -> AsyncArray:  # xarray takes this way
        return self.async_array

    def __class_getitem__(cls, item: object) -> GenericAlias:
        """Return the class with parameters, for annotations."""
        return GenericAlias(cls, item)

    # reading

    def __getitem__(self, selection: SelectionLike) -> Any:
        handle = self._handle
        block = parse_block_of_elements(selection, handle.layout.metadata.shape) if handle.buffer is None else None
        found = None if block is None else read_block(handle, block)
        if found is not None:
            return found
        fields, selection = split_fields(selection)
        return self._get(parse_any(selection, self.shape), None, fields)

    def get_basic_selection(
        self,
        selection: SelectionLike = ...,
        *,
        out: npt.NDArray[Any] | None = None,
        prototype: object = None,
        fields: Fields = None,
    ) -> Any:
        """Return the elements at integers and slices.

        ``out`` has the shape of the result and is filled and returned.
        """
        return self._get(parse_basic(selection, self.shape), out, fields)

    def get_orthogonal_selection(
        self,
        selection: SelectionLike,
        *,
        out: npt.NDArray[Any] | None = None,
        fields: Fields = None,
        prototype: object = None,
    ) -> Any:
        """Return the elements at all combinations of integers, slices, lists and masks, one for each axis."""
        return self._get(parse_orthogonal(selection, self.shape), out, fields)

    def get_coordinate_selection(
        self,
        selection: SelectionLike,
        *,
        out: npt.NDArray[Any] | None = None,
        fields: Fields = None,
        prototype: object = None,
    ) -> Any:
        """Return the elements at points: an integer array for each axis.

        The result has the shape of the coordinates.
        """
        return self._get(parse_coordinates(selection, self.shape), out, fields)

    def get_mask_selection(
        self,
        mask: SelectionLike,
        *,
        out: npt.NDArray[Any] | None = None,
        fields: Fields = None,
        prototype: object = None,
    ) -> Any:
        """Return the elements where ``mask`` (of the array's shape) is true, in C order."""
        return self._get(parse_mask(mask, self.shape), out, fields)

    def get_block_selection(
        self,
        selection: SelectionLike,
        *,
        out: npt.NDArray[Any] | None = None,
        fields: Fields = None,
        prototype: object = None,
    ) -> Any:
        """Return whole stored objects (shards, or chunks) by their grid coordinates."""
        return self._get(parse_block(selection, self._handle.layout.grids.storage), out, fields)

    def get_point_selection(self, selection: SelectionLike, *, fields: Fields = None) -> Any:
        """Return the elements at what :attr:`vindex` takes: points or a mask."""
        return self._get(parse_vindex(selection, self.shape), None, fields)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an array in a store cannot be had without a copy; use copy=None or copy=True")
        array = np.asarray(self[...])
        return array if dtype is None else array.astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        step = self._handle.layout.grids.storage[0]
        for chunk in range(step.count):
            start = step.start(chunk)
            yield from self[start : min(start + step.extent(chunk), self.shape[0])]

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                f"the truth value of an array of {self.size} elements is ambiguous; read it and ask any() or all(), "
                "or compare with None"
            )
        return bool(self._scalar())

    def __int__(self) -> int:
        return int(self._scalar())

    def __float__(self) -> float:
        return float(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        return as_index(self._scalar())

    @property
    def oindex(self) -> OIndex:
        """Square brackets for orthogonal selections."""
        return OIndex(self)

    @property
    def vindex(self) -> VIndex:
        """Square brackets for points and masks."""
        return VIndex(self)

    @property
    def blocks(self) -> BlockIndex:
        """Square brackets that count whole stored objects (shards, or chunks)."""
        return BlockIndex(self)

    # writing

    def __setitem__(self, selection: SelectionLike, value: object) -> None:
        handle = self._handle
        layout = handle.layout
        chunks, shape = layout.blocks, layout.metadata.shape
        block = None if chunks is None or handle.buffer is not None else parse_block_of_elements(selection, shape)
        if chunks is not None and block is not None:
            self._check_writable()
            values = broadcast_values(
                self._cast(value, chunks.dtype), block.counts if block.dropped is None else block.shape
            ).reshape(block.counts)
            write_plan(handle, plan_block(handle, block), values)
            return
        fields, selection = split_fields(selection)
        self._set(parse_any(selection, self.shape), value, fields)

    def set_basic_selection(
        self, selection: SelectionLike, value: object, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """Write ``value`` (broadcast) to integers and slices."""
        self._set(parse_basic(selection, self.shape), value, fields)

    def set_orthogonal_selection(
        self, selection: SelectionLike, value: object, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """Write ``value`` to all combinations of integers, slices, lists and masks, one for each axis."""
        self._set(parse_orthogonal(selection, self.shape), value, fields)

    def set_coordinate_selection(
        self, selection: SelectionLike, value: object, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """Write ``value`` to points; of a point that is named twice, the last value stays."""
        self._set(parse_coordinates(selection, self.shape), value, fields)

    def set_mask_selection(
        self, mask: SelectionLike, value: object, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """Write ``value`` where ``mask`` is true."""
        self._set(parse_mask(mask, self.shape), value, fields)

    def set_block_selection(
        self, selection: SelectionLike, value: object, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """Write whole stored objects (shards, or chunks)."""
        self._set(parse_block(selection, self._handle.layout.grids.storage), value, fields)

    def set_point_selection(self, selection: SelectionLike, value: object, *, fields: Fields = None) -> None:
        """Write ``value`` to what :attr:`vindex` takes: points or a mask."""
        self._set(parse_vindex(selection, self.shape), value, fields)

    def buffered(
        self, limit: int | str = "256 MiB", *, on_error: Literal["keep", "discard"] = "keep"
    ) -> BufferedWrites:
        """Collect writes in memory and store each touched shard once: ``with array.buffered():``.

        They are stored when the block ends, when more than ``limit`` bytes of chunks wait, and on :meth:`flush`. Reads
        through this array see what waits; other programs do not. When the block ends by an exception, what waits is
        stored (``on_error="keep"``) or forgotten (``"discard"``). Forked children collect nothing and store what they
        write. :meth:`append` is not collected: it stores what waits, then its data, at once.

        If storing fails, the error is raised and what could not be stored waits still: :meth:`flush` tries again, as
        any later write does before it stores anything itself. Raises :class:`~zardine.errors.ArrayChangedError` if the
        array was resharded meanwhile: after :meth:`refresh` what waits is stored where it belongs now.
        """
        return BufferedWrites(self, parse_bytes(limit), on_error)

    def flush(self) -> None:
        """Store what waits in :meth:`buffered`; nothing happens where nothing waits."""
        flush_buffer(self._handle)

    # changing

    def resize(self, new_shape: ShapeLike, *, erase: bool = True) -> None:
        """Change the shape; the number of axes stays.

        Growing shows the fill value in the new region. Shrinking erases what falls outside: stored objects wholly
        beyond the new shape, and values beyond it in objects that it cuts, so that growing again never brings them
        back. ``erase=False`` leaves both in the store, where they come back if the array grows again, unless a write
        has replaced all that such an object holds of the array. If erasing fails half-way the shape is changed already:
        the same call again erases the rest.

        On stores whose locks exclude all writers (local files, memory) nothing is lost that is appended meanwhile; on
        others a block that another process appends while the array shrinks may be erased.
        """
        shape = parse_shape(new_shape)
        if len(shape) != self.ndim:
            raise ValueError(f"the new shape {shape} has {len(shape)} lengths, the array has {self.ndim} dimensions")
        self._reshape(lambda _: shape, erase=erase)

    def append(self, data: npt.ArrayLike, axis: int = 0) -> tuple[int, ...]:
        """Add ``data`` at the end of ``axis``; its other lengths are those of the array. Gives the new shape.

        Any number of writers may append at the same time: all blocks are there in the end, in some order. On stores
        whose locks exclude all writers (local files, memory) the data is stored before the new shape, so that no reader
        sees elements that are not there yet, and removed again if an error follows; on others the place is reserved
        first, and reads as fill value meanwhile.

        Every call stores its data at once, also within :meth:`buffered`, and stores before it all that waits there. So
        a row each takes as long as without that block: append many rows by one call, or :meth:`resize` the array first
        and assign the rows within :meth:`buffered`.
        """
        values = cast_values(data, self.dtype)
        values = broadcast_values(values, values.shape)
        self._check_writable()
        check_strategy(self._handle)
        self.flush()
        exclusive = self.store.lock_is_exclusive
        waits = Writing(self._handle) if exclusive else nullcontext()
        with waits, self.store.lock(document_key(self.path, self.metadata)):
            for last in attempts():
                when = moment()
                stored, before = self._stored(surely=last.number > 1)
                refuse_closing(before, stored.metadata)
                old = before.layout.metadata.shape
                handle, block = grown_by(before, stored.metadata, values.shape, axis)
                grown = handle.layout.metadata
                direct = handle if handle.buffer is None else replace(handle, buffer=None)
                try:
                    if exclusive:
                        write_plan(direct, plan_block(direct, block), values, growing=True)
                    node, version = stored.replaced_by(grown)
                except ConditionFailedError as error:
                    if last or error.may_be_done:  # repeated, it could append a second time
                        raise
                    continue
                except BaseException:
                    if exclusive:
                        self._take_back(handle)
                    raise
                self._use(handle)
                if exclusive and version is not None:
                    note_fresh(handle, version)
                elif version is not None and is_far(self.store):
                    note_seen(handle, version, node, when)
                self._keep_entry()
                if not exclusive:
                    try:
                        write_plan(direct, plan_block(direct, block), values)
                    except BaseException as error:
                        self._give_back(grown.shape, old, error)
                        raise
                return grown.shape
        raise AssertionError("unreachable")

    def _give_back(self, grown: tuple[int, ...], old: tuple[int, ...], error: BaseException) -> None:
        """Undo the growth from ``old`` to ``grown`` after an ``error``; where that cannot be done, note it there."""
        with suppress(ZardineError):
            before, after = self._reshape(lambda shape: old if shape == grown else None, erase=True)
            if before != after:
                return
        error.add_note(
            f"the array has grown from {old} to {grown} all the same: the new elements are stored in part, and read as "
            "the fill value elsewhere; write them to their place, do not append them again"
        )

    def _take_back(self, grown: ArrayHandle) -> None:
        """Remove what was stored for a longer array, and is beyond the end that the document says.

        What cannot be told, or taken, is left.
        """
        with suppress(ZardineError), self.store.lock(document_key(self.path, grown.layout.metadata)):
            now = stored_node(self.store, self.path, grown.layout.metadata).metadata
            if now.shape != grown.layout.metadata.shape and is_same_generation(grown.layout, now):
                take_back(grown, grown.with_shape(now))

    def update_attributes(self, new_attributes: Mapping[str, Any]) -> Array:
        """Set several attributes in one write; gives this array."""
        self.attrs.update(new_attributes)
        return self

    def _reshape(
        self, change: Callable[[tuple[int, ...]], tuple[int, ...] | None], *, erase: bool
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Give the array the shape that ``change`` makes of the one it has now; gives both.

        Any number of writers may do so at the same time: each sees the shape that another has left. Where ``change``
        gives ``None``, nothing happens. ``erase`` as in :meth:`resize`.
        """
        self._check_writable()
        check_strategy(self._handle)
        self.flush()
        with Writing(self._handle), self.store.lock(document_key(self.path, self.metadata)):  # so nobody appends
            for last in attempts():
                stored, before = self._stored()
                refuse_closing(before, stored.metadata)
                old = before.layout.metadata.shape
                new = change(old)
                if new is None:
                    return old, old
                try:
                    self._adopt(stored.replace_by(with_shape(stored.metadata, before.layout.grid, new)))
                    break
                except ConditionFailedError as error:
                    if last or error.may_be_done:  # repeated, it could cut what another program has appended
                        raise
            self._keep_entry()
            if erase:
                clear_beyond(before, self.shape)
                erase_beyond(self._handle, before)
        return old, self.shape

    def refresh(self) -> Array:
        """Read the metadata document again, to see what others changed; gives this array."""
        when = moment()
        self._adopt(load_array(self.store, self.path, self.metadata.zarr_format))
        take_what_is_there(self._handle, when)
        return self

    # the rest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: every write is stored when its call returns."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Array)
            and self.path == other.path
            and same_place(self.store, other.store)
            and self.metadata == other.metadata
        )

    def __hash__(self) -> int:
        return hash((Array, self.path))

    def __repr__(self) -> str:
        return f"<Array {printable(describe(self.store, self.path))} shape={self.shape} dtype={self.dtype}>"

    def view(self, *, height: int = 700, port: int = 0) -> View:
        """Show this array in a page: in a notebook a frame of ``height`` pixels. See :func:`zardine.view`."""
        import zardine

        return zardine.view(self, height=height, port=port)

    def _repr_html_(self) -> str:
        return array_html(self)

    def __getstate__(self) -> dict[str, Any]:
        watch = self._handle.watch
        state = {
            "store": self.store,
            "path": self.path,
            "metadata": self.metadata.to_dict(),
            "config": self.config,
            "watch": (watch.is_stored, watch.is_hearsay),
        }
        if self._entry is not None:  # not with all that is said of others, which may be much
            consolidated, path = self._entry
            state["entry"] = (consolidated.path, consolidated.zarr_format, path)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        facts = (state["path"], state["config"], state["watch"], repr(state["metadata"]))
        known = opened_before(state["store"], facts)
        if known is None:
            twin = Array.from_dict(StorePath(state["store"], state["path"]), state["metadata"])
            known = twin._handle.with_config(state["config"])
            known.watch.is_stored, known.watch.is_hearsay = state["watch"]
            remember_opened(known, facts)
        self._handle = known
        if "entry" in state:
            above, zarr_format, path = state["entry"]
            self._entry = Consolidated(state["store"], above, zarr_format, {}), path

    def __dask_tokenize__(self) -> tuple[object, ...]:
        """Name the array and what is stored of it now, for Dask: as long as neither changes, it is the same name.

        What is stored is known by the versions of all its objects, where listing tells them: on local files, in memory,
        in zip archives and on object stores. Elsewhere (HTTP, fsspec) only the metadata document counts. Of an array
        with more than 10,000 objects not all are listed, and it has another name each time.
        """
        from dask.base import normalize_token

        parts = (self.store, self.path, self.metadata.to_dict(), self.config, data_version(self._handle))
        return type(self).__qualname__, *map(normalize_token, parts)

    def _get(self, selection: Selection, out: npt.NDArray[Any] | None, fields: Fields) -> Any:
        if fields is not None:
            self._check_fields(fields)
        if out is not None:
            if not isinstance(out, np.ndarray) and hasattr(out, "as_ndarray_like"):  # a buffer of zarr-python
                out = out.as_ndarray_like()
            check_output(out, selection.shape)
        shape = selection.shape
        direct = out is not None and fields is None and out.dtype == self.dtype
        handle = self._handle
        target = out if direct and out is not None else self._new_result(shape)
        grids = handle.layout.grids
        if isinstance(selection, GridSelection):
            full = selection.full_view(target)
            read_buffered(handle, make_plan(selection, grids), full)
        else:
            flat = target.reshape(-1)
            read_buffered(handle, make_plan(selection, grids), flat)
            if not np.shares_memory(flat, target) and flat.size:
                target[...] = flat.reshape(selection.shape)
        result = target if fields is None else target[fields]
        if out is not None:
            if not direct:
                out[...] = result
            return out
        return result[()] if shape == () else result

    def _new_result(self, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Memory for what is read; a document may claim any shape."""
        try:
            return np.empty(shape, self.dtype, order=self._handle.order)
        except (MemoryError, ValueError):  # NumPy says of more than 2^63 bytes that the value is wrong
            size = prod(shape) * self.dtype.itemsize
            raise ChunkTooLargeError(
                f"the result, {size} bytes of shape {shape}, does not fit into memory: read it in parts"
            ).at(array=self.path) from None

    def _set(self, selection: Selection, value: Any, fields: Fields) -> None:
        self._check_writable()
        dtype = self.dtype
        if fields is not None:
            self._check_fields(fields)
            dtype = np.empty(0, dtype)[fields].dtype
        values = broadcast_values(self._cast(value, dtype), selection.shape)
        handle = self._handle
        if is_buffered(handle):
            check_fresh(handle, writing=True)
        plan = make_plan(selection, handle.layout.grids)
        full = selection.full_view(values) if isinstance(selection, GridSelection) else values.reshape(-1)
        if fields is not None:
            self.flush()
        if fields is not None or not write_buffered(handle, plan, full):
            write_plan(handle, plan, full, fields)

    def _cast(self, value: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return ``value`` as elements of the array: of ``dtype``, or objects as the user gave them.

        Of these an object array is taken as it is, anything else as one object for all elements.
        """
        data_type = self._handle.layout.metadata.data_type
        if not isinstance(data_type, AnyObject):
            return cast_values(value, dtype)
        return value if isinstance(value, np.ndarray) and value.dtype.kind == "O" else data_type.cast_fill(value)

    def _scalar(self) -> Any:
        if self.size != 1:
            raise TypeError("only length-1 arrays can be converted to Python scalars")
        return self[(0,) * self.ndim]

    def _check_fields(self, fields: str | list[str]) -> None:
        names = self.dtype.names
        if names is None:
            raise SelectionError(f"{fields!r} is no index: only structs have fields, and the dtype is {self.dtype}")
        for name in [fields] if isinstance(fields, str) else fields:
            if name not in names:
                raise SelectionError(f"no field {name!r}; the fields are {', '.join(map(repr, names))}")

    def _check_writable(self) -> None:
        if self._handle.store.read_only:
            raise ReadOnlyError(f"cannot write to {describe(self.store, self.path)}: it was opened read-only")
        if self._handle.layout.is_draft:
            raise ReadOnlyError(
                f"cannot write to {describe(self.store, self.path)}: it is stored in the sharding codec's draft "
                "of 2023, which is only read; zardine.convert makes an array of it that can be written"
            )

    def _start_buffer(self, limit: int) -> WriteBuffer:
        self._check_writable()
        check_strategy(self._handle)
        if self._handle.buffer is not None and self._handle.buffer.ended:
            self.flush()  # what could not be stored when an earlier block ended
        if is_buffered(self._handle):
            raise ValueError("writes to this array are collected already: buffered() blocks do not nest")
        buffer = WriteBuffer(limit, self._handle.layout)
        self._handle = replace(self._handle, buffer=buffer)
        return buffer

    def _end_buffer(self, buffer: WriteBuffer) -> None:
        if self._handle.buffer is buffer:
            self._handle = replace(self._handle, buffer=None)

    def _with_handle(self, handle: ArrayHandle) -> Array:
        twin = object.__new__(type(self))
        twin._handle = handle
        twin._entry = self._entry
        return twin

    def _adopt(self, metadata: ArrayMetadata) -> ArrayHandle:
        """Take over what the document says; gives the handle that does."""
        before = self._handle
        old = before.layout.metadata
        if metadata is old or (metadata.document is not None and metadata.document == old.document):
            return before
        if _is_same_but_for_shape(before, metadata):
            handle = before.with_shape(metadata)
        elif metadata.to_dict() != old.to_dict():
            handle = before.with_layout(Array(self.store, self.path, metadata)._handle.layout)
        else:
            return before
        move_buffer(handle)
        self._use(handle)
        return handle

    def _use(self, handle: ArrayHandle) -> None:
        """Use a handle that was made of this array's, with the buffer that another thread may have begun since."""
        buffer = self._handle.buffer
        self._handle = handle if handle.buffer is buffer else replace(handle, buffer=buffer)

    def _stored(self, *, surely: bool = True) -> tuple[StoredNode[ArrayMetadata], ArrayHandle]:
        """Take over what is stored now; gives that, and the handle of it. ``surely`` as for :func:`stored_node`.

        Raises :class:`~zardine.errors.ArrayChangedError` where that is of another generation.
        """
        known = self._handle.watch.document
        metadata = self.metadata
        surely = surely or known[1] != metadata.document
        stored = stored_node(self.store, self.path, metadata, known, surely=surely)
        if self._handle.is_shared:
            refuse_another(self._handle, stored.metadata)
        return stored, self._adopt(stored.metadata)

    def _change_attributes(self, change: AttributesChange) -> None:
        self._check_writable()
        before, handle = self.metadata.attributes.get(MISSING), self._handle

        def changed(old: ArrayMetadata) -> ArrayMetadata:
            if handle.is_shared:
                refuse_another(handle, old)
            return old.with_attributes(change(old.attributes))

        known, when = self._handle.watch.document, moment()
        node, version = updated_node(
            self.store,
            self.path,
            self.metadata,
            changed,
            known if known[1] == self.metadata.document else (None, None),
        )
        self._adopt(node)
        if version is not None and is_far(self.store):
            note_seen(self._handle, version, node, when)
        self._keep_entry()
        if self.metadata.older is None and self.metadata.attributes.get(MISSING) != before:
            warn_of_missing_value(self.metadata.attributes, self.dtype, stacklevel=4)

    def _came_out_of(self, consolidated: Consolidated, path: str, *, hearsay: bool) -> None:
        """Note the consolidated metadata that is to be kept true, and whether nothing else tells of this array yet."""
        self._entry = consolidated, path
        self._handle.watch.is_hearsay = hearsay

    def _keep_entry(self) -> None:
        """Make consolidated metadata say what the document says, if the array came out of it."""
        if self._entry is not None:
            consolidated, path = self._entry
            consolidated.keep_true([path])


def _is_same_but_for_shape(handle: ArrayHandle, metadata: ArrayMetadata) -> bool:
    """Return whether one layout serves both documents, which may differ in shape, attributes and names."""
    with suppress(MetadataError):  # which is raised once the layout is made
        return is_same_generation(handle.layout, metadata) and metadata.older == handle.layout.metadata.older
    return False
