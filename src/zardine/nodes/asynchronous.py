"""Awaitable faces of arrays and groups: each method runs its synchronous twin in a thread.

Whatever may look at a store is awaitable, or an asynchronous iterator; properties, and the few plain methods, tell what
is known already. Nothing here hands a call on that is not written out.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from types import GenericAlias, TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, Self, TypeVar, Unpack

import numpy.typing as npt

from zardine.creation.options import ShapeLike
from zardine.engine.array_config import ArrayConfigLike
from zardine.engine.handle import ArrayHandle
from zardine.indexing.selection import SelectionLike
from zardine.json_document import JSON
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.formats import NodeMetadata
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array, Fields
from zardine.nodes.array_base import ArrayFacts
from zardine.nodes.buffered import BufferedWrites
from zardine.nodes.display import ArrayInfo, TreeView
from zardine.nodes.group import Group
from zardine.nodes.options import (
    FilledOptions,
    GroupArrayOptions,
    GroupOptions,
    LikeInGroupOptions,
    OpenedArrayOptions,
    OpenedGroupOptions,
    RequireArrayOptions,
)
from zardine.public_names import public
from zardine.stores.base import Store
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
P = ParamSpec("P")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``work`` in a thread of the event loop."""
    import asyncio

    return await asyncio.to_thread(work, *args, **kwargs)


_cancelled: dict[Future[None], str] = {}
"""The ends of changes that go on in their threads though their tasks were cancelled, and their places."""

_guard = Lock()


def _forget_cancelled() -> None:
    """In a forked child: the threads of the parent are not there."""
    global _guard
    _guard = Lock()
    _cancelled.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_cancelled)


class StoredNode(Protocol):
    """A node in a store."""

    @property
    def store(self) -> Store: ...

    @property
    def path(self) -> str: ...


async def change_in_thread(node: StoredNode | None, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``work``, which changes what is stored at ``node`` or below, in a thread of the event loop.

    ``None``: the place is not known. A thread cannot be stopped: if the task is cancelled, a change that has begun goes
    on. So that it overwrites nothing later, the next change at, above or below its place waits until it has ended. A
    change that has not begun never does.
    """
    import asyncio
    from concurrent.futures import Future

    for each in _cancelled_at(node):
        await asyncio.shield(asyncio.wrap_future(each))  # holds no thread; without the shield this would cancel `each`
    begun = is_cancelled = False
    end: Future[None] = Future()

    def run() -> Any:
        nonlocal begun
        with _guard:
            if is_cancelled:
                return None
            begun = True
        try:
            return work(*args, **kwargs)
        finally:
            with _guard:
                end.set_result(None)
                _cancelled.pop(end, None)

    try:
        return await asyncio.to_thread(run)
    except BaseException:
        place = "" if node is None else _place_of(node)
        with _guard:
            is_cancelled = True
            if begun and not end.done():
                _cancelled[end] = place
        raise


def _cancelled_at(node: StoredNode | None) -> list[Future[None]]:
    """Return the ends of cancelled changes at, above and below ``node``."""
    if not _cancelled:
        return []
    place = "" if node is None else _place_of(node)
    with _guard:
        return [end for end, other in _cancelled.items() if _overlap(place, other)]


def _overlap(a: str, b: str) -> bool:
    """Return whether one of two places lies at or below the other, or one is not known."""
    return not a or not b or f"{a}/".startswith(f"{b}/") or f"{b}/".startswith(f"{a}/")


def _place_of(node: StoredNode) -> str:
    """Return a name of the place of a node, below that of each group above it."""
    store, path = node.store.beneath(node.path)
    return join_path(store.unique_name.rstrip("/"), path)


@public("zardine")
class AsyncArray(ArrayFacts):
    """An :class:`~zardine.Array` for code that runs in an event loop.

    What describes the array costs no I/O; what reads, writes or looks at what is stored is awaitable.
    """

    def __init__(self, array: Array) -> None:
        self._array = array

    def __class_getitem__(cls, item: object) -> GenericAlias:
        """Return the class with parameters, for annotations."""
        return GenericAlias(cls, item)

    @classmethod
    async def open(cls, store: StoreLike, **kwargs: Unpack[OpenedArrayOptions]) -> AsyncArray:
        """Open a stored array."""
        return cls(await in_thread(Array.open, store, **kwargs))

    @classmethod
    def from_dict(cls, store_path: StorePath, data: Mapping[str, Any]) -> AsyncArray:
        """Return an array with the metadata document ``data``, which is not stored."""
        return cls(Array.from_dict(store_path, data))

    @property
    def _handle(self) -> ArrayHandle:
        return self._array._handle

    @_handle.setter
    def _handle(self, handle: ArrayHandle) -> None:
        self._array._handle = handle

    async def _change(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await change_in_thread(self._array, work, *args, **kwargs)

    # free of I/O, as all that describes it

    @property
    def attrs(self) -> dict[str, JSON]:
        """A copy of the attributes; :meth:`update_attributes` changes them."""
        return dict(self.metadata.attributes)

    @property
    def info(self) -> ArrayInfo:
        """A readable description."""
        return self._array.info

    @property
    def oindex(self) -> AsyncOIndex:
        """Orthogonal selections: ``await array.oindex.getitem(selection)``."""
        return AsyncOIndex(self)

    @property
    def vindex(self) -> AsyncVIndex:
        """Points and masks: ``await array.vindex.getitem(selection)``."""
        return AsyncVIndex(self)

    @property
    def blocks(self) -> AsyncBlockIndex:
        """Whole stored objects: ``await array.blocks.getitem(selection)``."""
        return AsyncBlockIndex(self)

    def with_config(self, config: ArrayConfigLike) -> AsyncArray:
        """Return the same array, read and written in another way; see :meth:`zardine.Array.with_config`."""
        return AsyncArray(self._array.with_config(config))

    def buffered(
        self, limit: int | str = "256 MiB", *, on_error: Literal["keep", "discard"] = "keep"
    ) -> AsyncBufferedWrites:
        """Collect writes: ``async with array.buffered():``; see :meth:`zardine.Array.buffered`."""
        return AsyncBufferedWrites(self._array.buffered(limit, on_error=on_error), self._array)

    # reading

    async def getitem(self, selection: SelectionLike, *, prototype: object = None) -> Any:
        """Read what ``array[selection]`` gives."""
        return await in_thread(self._array.__getitem__, selection)

    async def get_basic_selection(
        self,
        selection: SelectionLike = ...,
        *,
        out: npt.NDArray[Any] | None = None,
        prototype: object = None,
        fields: Fields = None,
    ) -> Any:
        """See :meth:`zardine.Array.get_basic_selection`."""
        return await in_thread(self._array.get_basic_selection, selection, out=out, fields=fields)

    async def get_orthogonal_selection(
        self,
        selection: SelectionLike,
        *,
        out: npt.NDArray[Any] | None = None,
        fields: Fields = None,
        prototype: object = None,
    ) -> Any:
        """See :meth:`zardine.Array.get_orthogonal_selection`."""
        return await in_thread(self._array.get_orthogonal_selection, selection, out=out, fields=fields)

    async def get_coordinate_selection(
        self,
        selection: SelectionLike,
        *,
        out: npt.NDArray[Any] | None = None,
        fields: Fields = None,
        prototype: object = None,
    ) -> Any:
        """See :meth:`zardine.Array.get_coordinate_selection`."""
        return await in_thread(self._array.get_coordinate_selection, selection, out=out, fields=fields)

    async def get_mask_selection(
        self,
        mask: SelectionLike,
        *,
        out: npt.NDArray[Any] | None = None,
        fields: Fields = None,
        prototype: object = None,
    ) -> Any:
        """See :meth:`zardine.Array.get_mask_selection`."""
        return await in_thread(self._array.get_mask_selection, mask, out=out, fields=fields)

    async def get_block_selection(
        self,
        selection: SelectionLike,
        *,
        out: npt.NDArray[Any] | None = None,
        fields: Fields = None,
        prototype: object = None,
    ) -> Any:
        """See :meth:`zardine.Array.get_block_selection`."""
        return await in_thread(self._array.get_block_selection, selection, out=out, fields=fields)

    async def get_point_selection(self, selection: SelectionLike, *, fields: Fields = None) -> Any:
        """See :meth:`zardine.Array.get_point_selection`."""
        return await in_thread(self._array.get_point_selection, selection, fields=fields)

    # writing

    async def setitem(self, selection: SelectionLike, value: object, prototype: object = None) -> None:
        """Write as ``array[selection] = value`` does."""
        await self._change(self._array.__setitem__, selection, value)

    async def set_basic_selection(
        self, selection: SelectionLike, value: object, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """See :meth:`zardine.Array.set_basic_selection`."""
        await self._change(self._array.set_basic_selection, selection, value, fields=fields)

    async def set_orthogonal_selection(
        self, selection: SelectionLike, value: object, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """See :meth:`zardine.Array.set_orthogonal_selection`."""
        await self._change(self._array.set_orthogonal_selection, selection, value, fields=fields)

    async def set_coordinate_selection(
        self, selection: SelectionLike, value: object, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """See :meth:`zardine.Array.set_coordinate_selection`."""
        await self._change(self._array.set_coordinate_selection, selection, value, fields=fields)

    async def set_mask_selection(
        self, mask: SelectionLike, value: object, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """See :meth:`zardine.Array.set_mask_selection`."""
        await self._change(self._array.set_mask_selection, mask, value, fields=fields)

    async def set_block_selection(
        self, selection: SelectionLike, value: object, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """See :meth:`zardine.Array.set_block_selection`."""
        await self._change(self._array.set_block_selection, selection, value, fields=fields)

    async def set_point_selection(self, selection: SelectionLike, value: object, *, fields: Fields = None) -> None:
        """See :meth:`zardine.Array.set_point_selection`."""
        await self._change(self._array.set_point_selection, selection, value, fields=fields)

    async def flush(self) -> None:
        """See :meth:`zardine.Array.flush`."""
        await self._change(self._array.flush)

    # changing

    async def resize(self, new_shape: ShapeLike, delete_outside_chunks: bool = True) -> None:
        """See :meth:`zardine.Array.resize`, whose ``erase`` is ``delete_outside_chunks``."""
        await self._change(self._array.resize, new_shape, erase=delete_outside_chunks)

    async def append(self, data: npt.ArrayLike, axis: int = 0) -> tuple[int, ...]:
        """See :meth:`zardine.Array.append`."""
        return await self._change(self._array.append, data, axis)

    async def update_attributes(self, new_attributes: Mapping[str, Any]) -> AsyncArray:
        """See :meth:`zardine.Array.update_attributes`."""
        await self._change(self._array.update_attributes, new_attributes)
        return self

    async def refresh(self) -> AsyncArray:
        """See :meth:`zardine.Array.refresh`."""
        await in_thread(self._array.refresh)
        return self

    # what is stored

    async def nchunks_initialized(self) -> int:
        """See :attr:`zardine.Array.nchunks_initialized`."""
        return await in_thread(lambda: self._array.nchunks_initialized)

    async def nshards_initialized(self) -> int:
        """See :attr:`zardine.Array.nshards_initialized`."""
        return await in_thread(lambda: self._array.nshards_initialized)

    async def nbytes_stored(self) -> int:
        """See :meth:`zardine.Array.nbytes_stored`."""
        return await in_thread(self._array.nbytes_stored)

    async def info_complete(self) -> ArrayInfo:
        """See :meth:`zardine.Array.info_complete`."""
        return await in_thread(self._array.info_complete)

    def __repr__(self) -> str:
        return f"<Async{repr(self._array)[1:]}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsyncArray) and self._array == other._array

    def __hash__(self) -> int:
        return hash((AsyncArray, self._array))


@dataclass(frozen=True, slots=True)
class AsyncOIndex:
    """Awaitable :attr:`zardine.Array.oindex`."""

    array: AsyncArray

    async def getitem(self, selection: SelectionLike) -> Any:
        """Read what ``array.oindex[selection]`` gives."""
        return await in_thread(self.array._array.oindex.__getitem__, selection)

    async def setitem(self, selection: SelectionLike, value: object) -> None:
        """Write as ``array.oindex[selection] = value`` does."""
        await self.array._change(self.array._array.oindex.__setitem__, selection, value)


@dataclass(frozen=True, slots=True)
class AsyncVIndex:
    """Awaitable :attr:`zardine.Array.vindex`."""

    array: AsyncArray

    async def getitem(self, selection: SelectionLike) -> Any:
        """Read what ``array.vindex[selection]`` gives."""
        return await in_thread(self.array._array.vindex.__getitem__, selection)

    async def setitem(self, selection: SelectionLike, value: object) -> None:
        """Write as ``array.vindex[selection] = value`` does."""
        await self.array._change(self.array._array.vindex.__setitem__, selection, value)


@dataclass(frozen=True, slots=True)
class AsyncBlockIndex:
    """Awaitable :attr:`zardine.Array.blocks`."""

    array: AsyncArray

    async def getitem(self, selection: SelectionLike) -> Any:
        """Read what ``array.blocks[selection]`` gives."""
        return await in_thread(self.array._array.blocks.__getitem__, selection)

    async def setitem(self, selection: SelectionLike, value: object) -> None:
        """Write as ``array.blocks[selection] = value`` does."""
        await self.array._change(self.array._array.blocks.__setitem__, selection, value)


class AsyncBufferedWrites:
    """An asynchronous context within which writes wait in memory; see :meth:`zardine.Array.buffered`."""

    def __init__(self, writes: BufferedWrites, array: Array) -> None:
        self._writes = writes
        self._array = array

    async def _change(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await change_in_thread(self._array, work, *args, **kwargs)

    @property
    def nbytes(self) -> int:
        """Bytes that wait in memory."""
        return self._writes.nbytes

    async def flush(self) -> None:
        """Store all that waits. After an error, what could not be stored waits still."""
        await self._change(self._writes.flush)

    async def discard(self) -> None:
        """Forget all that waits."""
        await self._change(self._writes.discard)

    async def __aenter__(self) -> Self:
        await self._change(self._writes.__enter__)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._change(self._writes.__exit__, kind, error, trace)


@public("zardine")
class AsyncGroup:
    """A :class:`~zardine.Group` for code that runs in an event loop.

    Properties cost no I/O; everything else is awaitable or an asynchronous iterator.
    """

    def __init__(self, group: Group) -> None:
        self._group = group

    @classmethod
    async def open(
        cls, store: StoreLike, zarr_format: int | None = None, **kwargs: Unpack[OpenedGroupOptions]
    ) -> AsyncGroup:
        """Open a stored group."""
        return cls(await in_thread(Group.open, store, zarr_format, **kwargs))

    @classmethod
    async def from_store(cls, store: StoreLike, **kwargs: Unpack[GroupOptions]) -> AsyncGroup:
        """Create a group at ``store``; takes what :meth:`zardine.Group.from_store` takes."""
        return cls(await change_in_thread(None, Group.from_store, store, **kwargs))

    @classmethod
    def from_dict(cls, store_path: StorePath, data: Mapping[str, Any]) -> AsyncGroup:
        """Return a group with the metadata document ``data``, which is not stored."""
        return cls(Group(store_path.store, store_path.path, GroupMetadata.from_dict(data)))

    async def _change(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await change_in_thread(self._group, work, *args, **kwargs)

    # free of I/O

    @property
    def metadata(self) -> GroupMetadata:
        """The metadata document."""
        return self._group.metadata

    @property
    def attrs(self) -> dict[str, JSON]:
        """A copy of the attributes; :meth:`update_attributes` changes them."""
        return dict(self._group.metadata.attributes)

    @property
    def store(self) -> Store:
        """The store."""
        return self._group.store

    @property
    def path(self) -> str:
        """Path in the store, without slashes at its ends; empty for the root."""
        return self._group.path

    @property
    def name(self) -> str:
        """Path with a leading slash."""
        return self._group.name

    @property
    def basename(self) -> str:
        """Last part of the path; empty for the root."""
        return self._group.basename

    @property
    def store_path(self) -> StorePath:
        """Store and path together."""
        return self._group.store_path

    @property
    def read_only(self) -> bool:
        """Whether writing is refused."""
        return self._group.read_only

    @property
    def synchronizer(self) -> None:
        """``None``: writers need no helper to be safe."""
        return

    @property
    def info(self) -> ArrayInfo:
        """A readable description."""
        return self._group.info

    # members

    async def getitem(self, path: str) -> AsyncArray | AsyncGroup:
        """Return what ``group[path]`` gives."""
        return as_async(await in_thread(self._group.__getitem__, path))

    async def get(self, path: str, default: object = None) -> Any:
        """Return what ``group.get(path, default)`` gives."""
        node = await in_thread(self._group.get, path, default)
        return as_async(node) if isinstance(node, (Array, Group)) else node

    async def get_array(self, path: str) -> AsyncArray:
        """See :meth:`zardine.Group.get_array`."""
        return AsyncArray(await in_thread(self._group.get_array, path))

    async def get_group(self, path: str) -> AsyncGroup:
        """See :meth:`zardine.Group.get_group`."""
        return AsyncGroup(await in_thread(self._group.get_group, path))

    async def contains(self, member: str) -> bool:
        """Return whether ``member in group``."""
        return await in_thread(self._group.__contains__, member)

    async def nmembers(self, max_depth: int | None = 0) -> int:
        """See :meth:`zardine.Group.nmembers`."""
        return await in_thread(self._group.nmembers, max_depth)

    async def members(
        self, max_depth: int | None = 0, *, use_consolidated_for_children: bool = True
    ) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
        """See :meth:`zardine.Group.members`."""
        found = await in_thread(
            self._group.members, max_depth, use_consolidated_for_children=use_consolidated_for_children
        )
        for path, node in found:
            yield path, as_async(node)

    async def keys(self) -> AsyncIterator[str]:
        """Yield the names of the members directly below, sorted."""
        for name in await in_thread(lambda: list(self._group.keys())):
            yield name

    async def values(self) -> AsyncIterator[AsyncArray | AsyncGroup]:
        """Yield the members directly below."""
        async for _, node in self.members():
            yield node

    async def items(self) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
        """Yield the names and members directly below."""
        async for name, node in self.members():
            yield name, node

    async def arrays(self) -> AsyncIterator[tuple[str, AsyncArray]]:
        """Yield the names and arrays directly below."""
        async for name, node in self.members():
            if isinstance(node, AsyncArray):
                yield name, node

    async def array_keys(self) -> AsyncIterator[str]:
        """Yield the names of the arrays directly below."""
        async for name, _ in self.arrays():
            yield name

    async def array_values(self) -> AsyncIterator[AsyncArray]:
        """Yield the arrays directly below."""
        async for _, array in self.arrays():
            yield array

    async def groups(self) -> AsyncIterator[tuple[str, AsyncGroup]]:
        """Yield the names and groups directly below."""
        async for name, node in self.members():
            if isinstance(node, AsyncGroup):
                yield name, node

    async def group_keys(self) -> AsyncIterator[str]:
        """Yield the names of the groups directly below."""
        async for name, _ in self.groups():
            yield name

    async def group_values(self) -> AsyncIterator[AsyncGroup]:
        """Yield the groups directly below."""
        async for _, group in self.groups():
            yield group

    async def tree(
        self, expand: bool | None = None, level: int | None = None, *, max_nodes: int = 500, plain: bool = False
    ) -> TreeView:
        """Draw the hierarchy below; see :meth:`zardine.Group.tree`. What is given is drawn already."""
        return await in_thread(lambda: self._group.tree(expand, level, max_nodes=max_nodes, plain=plain).drawn())

    async def info_complete(self) -> ArrayInfo:
        """See :meth:`zardine.Group.info_complete`."""
        return await in_thread(self._group.info_complete)

    # changing

    async def setitem(self, key: str, value: npt.ArrayLike) -> None:
        """Store as ``group[key] = value`` does."""
        await self._change(self._group.__setitem__, key, value)

    async def delitem(self, key: str) -> None:
        """Erase as ``del group[key]`` does."""
        await self._change(self._group.__delitem__, key)

    async def create_array(self, name: str, **kwargs: Unpack[GroupArrayOptions]) -> AsyncArray:
        """See :meth:`zardine.Group.create_array`."""
        return AsyncArray(await self._change(self._group.create_array, name, **kwargs))

    create = create_array
    create_dataset = create_array

    async def require_array(self, name: str, *, shape: ShapeLike, **kwargs: Unpack[RequireArrayOptions]) -> AsyncArray:
        """See :meth:`zardine.Group.require_array`."""
        return AsyncArray(await self._change(self._group.require_array, name, shape=shape, **kwargs))

    require_dataset = require_array

    async def create_group(self, name: str, **kwargs: Unpack[GroupOptions]) -> AsyncGroup:
        """See :meth:`zardine.Group.create_group`."""
        return AsyncGroup(await self._change(self._group.create_group, name, **kwargs))

    async def require_group(self, name: str, overwrite: bool = False) -> AsyncGroup:
        """See :meth:`zardine.Group.require_group`."""
        return AsyncGroup(await self._change(self._group.require_group, name, overwrite))

    async def require_groups(self, *names: str) -> tuple[AsyncGroup, ...]:
        """See :meth:`zardine.Group.require_groups`."""
        return tuple(map(AsyncGroup, await self._change(self._group.require_groups, *names)))

    async def create_hierarchy(
        self, nodes: Mapping[str, NodeMetadata], *, overwrite: bool = False
    ) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
        """See :meth:`zardine.Group.create_hierarchy`."""
        for path, node in await self._change(lambda: list(self._group.create_hierarchy(nodes, overwrite=overwrite))):
            yield path, as_async(node)

    async def zeros(self, *, name: str, shape: ShapeLike, **kwargs: Unpack[FilledOptions]) -> AsyncArray:
        """See :meth:`zardine.Group.zeros`."""
        return AsyncArray(await self._change(self._group.zeros, name=name, shape=shape, **kwargs))

    async def ones(self, *, name: str, shape: ShapeLike, **kwargs: Unpack[FilledOptions]) -> AsyncArray:
        """See :meth:`zardine.Group.ones`."""
        return AsyncArray(await self._change(self._group.ones, name=name, shape=shape, **kwargs))

    async def empty(self, *, name: str, shape: ShapeLike, **kwargs: Unpack[FilledOptions]) -> AsyncArray:
        """See :meth:`zardine.Group.empty`."""
        return AsyncArray(await self._change(self._group.empty, name=name, shape=shape, **kwargs))

    async def full(
        self, *, name: str, shape: ShapeLike, fill_value: object, **kwargs: Unpack[FilledOptions]
    ) -> AsyncArray:
        """See :meth:`zardine.Group.full`."""
        return AsyncArray(await self._change(self._group.full, name=name, shape=shape, fill_value=fill_value, **kwargs))

    async def zeros_like(self, *, name: str, data: object, **kwargs: Unpack[LikeInGroupOptions]) -> AsyncArray:
        """See :meth:`zardine.Group.zeros_like`."""
        return AsyncArray(await self._change(self._group.zeros_like, name=name, data=as_sync(data), **kwargs))

    async def ones_like(self, *, name: str, data: object, **kwargs: Unpack[LikeInGroupOptions]) -> AsyncArray:
        """See :meth:`zardine.Group.ones_like`."""
        return AsyncArray(await self._change(self._group.ones_like, name=name, data=as_sync(data), **kwargs))

    async def empty_like(self, *, name: str, data: object, **kwargs: Unpack[LikeInGroupOptions]) -> AsyncArray:
        """See :meth:`zardine.Group.empty_like`."""
        return AsyncArray(await self._change(self._group.empty_like, name=name, data=as_sync(data), **kwargs))

    async def full_like(self, *, name: str, data: object, **kwargs: Unpack[LikeInGroupOptions]) -> AsyncArray:
        """See :meth:`zardine.Group.full_like`."""
        return AsyncArray(await self._change(self._group.full_like, name=name, data=as_sync(data), **kwargs))

    async def move(self, source: str, dest: str) -> None:
        """See :meth:`zardine.Group.move`."""
        await self._change(self._group.move, source, dest)

    async def update_attributes(self, new_attributes: Mapping[str, Any]) -> AsyncGroup:
        """See :meth:`zardine.Group.update_attributes`."""
        await self._change(self._group.update_attributes, new_attributes)
        return self

    def __repr__(self) -> str:
        return f"<Async{repr(self._group)[1:]}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsyncGroup) and self._group == other._group

    def __hash__(self) -> int:
        return hash((AsyncGroup, self._group))


def as_async(node: Array | Group) -> AsyncArray | AsyncGroup:
    """Return the awaitable face of a node."""
    return AsyncArray(node) if isinstance(node, Array) else AsyncGroup(node)


def as_sync(thing: object) -> Any:
    """Return the array or group of an awaitable face; anything else as it is."""
    if isinstance(thing, AsyncArray):
        return thing._array
    return thing._group if isinstance(thing, AsyncGroup) else thing


Array._async_face = AsyncArray
Group._async_face = AsyncGroup
