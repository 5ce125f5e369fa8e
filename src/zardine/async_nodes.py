"""Awaitable faces of arrays and groups: each method runs its synchronous twin in a thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from zardine.arrays import Array
from zardine.engine.array_config import ArrayConfigLike
from zardine.groups import Group

T = TypeVar("T")


async def _in_thread(work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    import asyncio

    return await asyncio.to_thread(work, *args, **kwargs)


class _AsyncNode:
    """Properties are those of the synchronous node; the methods named in the subclass are awaitable."""

    _node: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._node, name)

    def __repr__(self) -> str:
        return f"<Async{repr(self._node)[1:]}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._node == other._node

    def __hash__(self) -> int:
        return hash(self._node)


class AsyncArray(_AsyncNode):
    """An :class:`~zardine.Array` for code that runs in an event loop."""

    def __init__(self, array: Array) -> None:
        self._node: Array = array

    @classmethod
    async def open(cls, store: Any, **kwargs: Any) -> AsyncArray:
        """Open a stored array."""
        return cls(await _in_thread(Array.open, store, **kwargs))

    async def getitem(self, selection: Any, *, prototype: object = None) -> Any:
        """What ``array[selection]`` gives."""
        return await _in_thread(self._node.__getitem__, selection)

    async def setitem(self, selection: Any, value: Any, prototype: object = None) -> None:
        """What ``array[selection] = value`` does."""
        await _in_thread(self._node.__setitem__, selection, value)

    def with_config(self, config: ArrayConfigLike) -> AsyncArray:
        """See :meth:`zardine.Array.with_config`."""
        return AsyncArray(self._node.with_config(config))

    async def get_basic_selection(self, selection: Any = ..., **kwargs: Any) -> Any:
        """See :meth:`zardine.Array.get_basic_selection`."""
        return await _in_thread(self._node.get_basic_selection, selection, **kwargs)

    async def get_block_selection(self, selection: Any, **kwargs: Any) -> Any:
        """See :meth:`zardine.Array.get_block_selection`."""
        return await _in_thread(self._node.get_block_selection, selection, **kwargs)

    async def get_orthogonal_selection(self, selection: Any, **kwargs: Any) -> Any:
        """See :meth:`zardine.Array.get_orthogonal_selection`."""
        return await _in_thread(self._node.get_orthogonal_selection, selection, **kwargs)

    async def get_coordinate_selection(self, selection: Any, **kwargs: Any) -> Any:
        """See :meth:`zardine.Array.get_coordinate_selection`."""
        return await _in_thread(self._node.get_coordinate_selection, selection, **kwargs)

    async def get_mask_selection(self, mask: Any, **kwargs: Any) -> Any:
        """See :meth:`zardine.Array.get_mask_selection`."""
        return await _in_thread(self._node.get_mask_selection, mask, **kwargs)

    async def resize(self, new_shape: Any, delete_outside_chunks: bool = True) -> None:
        """See :meth:`zardine.Array.resize`, whose ``erase`` is ``delete_outside_chunks``."""
        await _in_thread(self._node.resize, new_shape, erase=delete_outside_chunks)

    async def append(self, data: Any, axis: int = 0) -> tuple[int, ...]:
        """See :meth:`zardine.Array.append`."""
        return await _in_thread(self._node.append, data, axis)

    async def update_attributes(self, new_attributes: dict[str, Any]) -> AsyncArray:
        """See :meth:`zardine.Array.update_attributes`."""
        await _in_thread(self._node.update_attributes, new_attributes)
        return self

    async def nchunks_initialized(self) -> int:
        """See :attr:`zardine.Array.nchunks_initialized`."""
        return await _in_thread(lambda: self._node.nchunks_initialized)

    async def nbytes_stored(self) -> int:
        """See :meth:`zardine.Array.nbytes_stored`."""
        return await _in_thread(self._node.nbytes_stored)

    async def info_complete(self) -> Any:
        """See :meth:`zardine.Array.info_complete`."""
        return await _in_thread(self._node.info_complete)


class AsyncGroup(_AsyncNode):
    """A :class:`~zardine.Group` for code that runs in an event loop."""

    def __init__(self, group: Group) -> None:
        self._node: Group = group

    @classmethod
    async def open(cls, store: Any, **kwargs: Any) -> AsyncGroup:
        """Open a stored group."""
        return cls(await _in_thread(Group.open, store, **kwargs))

    async def getitem(self, path: str) -> AsyncArray | AsyncGroup:
        """What ``group[path]`` gives."""
        return as_async(await _in_thread(self._node.__getitem__, path))

    async def setitem(self, key: str, value: Any) -> None:
        """What ``group[key] = value`` does."""
        await _in_thread(self._node.__setitem__, key, value)

    async def delitem(self, key: str) -> None:
        """What ``del group[key]`` does."""
        await _in_thread(self._node.__delitem__, key)

    async def contains(self, member: str) -> bool:
        """What ``member in group`` tells."""
        return await _in_thread(self._node.__contains__, member)

    async def create_array(self, name: str, **kwargs: Any) -> AsyncArray:
        """See :meth:`zardine.Group.create_array`."""
        return AsyncArray(await _in_thread(self._node.create_array, name, **kwargs))

    async def create_group(self, name: str, **kwargs: Any) -> AsyncGroup:
        """See :meth:`zardine.Group.create_group`."""
        return AsyncGroup(await _in_thread(self._node.create_group, name, **kwargs))

    async def require_group(self, name: str, **kwargs: Any) -> AsyncGroup:
        """See :meth:`zardine.Group.require_group`."""
        return AsyncGroup(await _in_thread(self._node.require_group, name, **kwargs))

    async def update_attributes(self, new_attributes: dict[str, Any]) -> AsyncGroup:
        """See :meth:`zardine.Group.update_attributes`."""
        await _in_thread(self._node.update_attributes, new_attributes)
        return self

    async def get(self, key: str, default: Any = None) -> Any:
        """What ``group.get(key, default)`` gives."""
        node = await _in_thread(self._node.get, key, default)
        return as_async(node) if isinstance(node, (Array, Group)) else node

    async def get_array(self, path: str) -> AsyncArray:
        """See :meth:`zardine.Group.get_array`."""
        return AsyncArray(await _in_thread(self._node.get_array, path))

    async def get_group(self, path: str) -> AsyncGroup:
        """See :meth:`zardine.Group.get_group`."""
        return AsyncGroup(await _in_thread(self._node.get_group, path))

    async def require_array(self, name: str, *, shape: Any, **kwargs: Any) -> AsyncArray:
        """See :meth:`zardine.Group.require_array`."""
        return AsyncArray(await _in_thread(self._node.require_array, name, shape=shape, **kwargs))

    async def require_groups(self, *names: str) -> tuple[AsyncGroup, ...]:
        """See :meth:`zardine.Group.require_groups`."""
        return tuple(map(AsyncGroup, await _in_thread(self._node.require_groups, *names)))

    async def move(self, source: str, dest: str) -> None:
        """See :meth:`zardine.Group.move`."""
        await _in_thread(self._node.move, source, dest)

    async def info_complete(self) -> Any:
        """See :meth:`zardine.Group.info_complete`."""
        return await _in_thread(self._node.info_complete)

    async def nmembers(self, max_depth: int | None = 0) -> int:
        """See :meth:`zardine.Group.nmembers`."""
        return await _in_thread(self._node.nmembers, max_depth)

    async def members(
        self, max_depth: int | None = 0, *, use_consolidated_for_children: bool = True
    ) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
        """See :meth:`zardine.Group.members`."""
        found = await _in_thread(
            self._node.members, max_depth, use_consolidated_for_children=use_consolidated_for_children
        )
        for path, node in found:
            yield path, as_async(node)

    async def keys(self) -> AsyncIterator[str]:
        """Names of the members directly below, sorted."""
        async for name, _ in self.members():
            yield name

    async def arrays(self) -> AsyncIterator[tuple[str, AsyncArray]]:
        """Names and arrays directly below."""
        async for name, node in self.members():
            if isinstance(node, AsyncArray):
                yield name, node

    async def array_keys(self) -> AsyncIterator[str]:
        """Names of the arrays directly below."""
        async for name, _ in self.arrays():
            yield name

    async def array_values(self) -> AsyncIterator[AsyncArray]:
        """The arrays directly below."""
        async for _, array in self.arrays():
            yield array

    async def groups(self) -> AsyncIterator[tuple[str, AsyncGroup]]:
        """Names and groups directly below."""
        async for name, node in self.members():
            if isinstance(node, AsyncGroup):
                yield name, node

    async def group_keys(self) -> AsyncIterator[str]:
        """Names of the groups directly below."""
        async for name, _ in self.groups():
            yield name

    async def group_values(self) -> AsyncIterator[AsyncGroup]:
        """The groups directly below."""
        async for _, group in self.groups():
            yield group


def as_async(node: Array | Group) -> AsyncArray | AsyncGroup:
    """The awaitable face of a node."""
    return AsyncArray(node) if isinstance(node, Array) else AsyncGroup(node)
