"""The awaitable faces of arrays and groups."""

import asyncio
import inspect
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.errors import ArrayNotFoundError, GroupNotFoundError, ReadOnlyError
from zardine.storage import MemoryStore, StorePath

DATA = np.arange(12).reshape(3, 4)


def test_arrays() -> None:
    async def main() -> None:
        array = zardine.create_array(None, data=DATA, chunks=(1, 2), shards=(3, 4)).async_array
        assert isinstance(array, zardine.AsyncArray)
        assert (array.shape, array.dtype, array.chunks, array.shards) == ((3, 4), DATA.dtype, (1, 2), (3, 4))
        assert (await array.getitem((slice(1, 3), -1))).tolist() == DATA[1:3, -1].tolist()
        await array.setitem((0, slice(None)), 7)
        assert (await array.getitem(0)).tolist() == [7] * 4
        assert (await array.get_orthogonal_selection(([0, 2], [1]))).tolist() == [[7], [9]]
        assert (await array.get_coordinate_selection(([0, 2], [1, 1]))).tolist() == [7, 9]
        assert (await array.get_mask_selection(DATA > 9)).tolist() == [10, 11]
        assert await array.append([[1, 2, 3, 4]]) == (4, 4)
        await array.resize((2, 4))
        assert array.shape == (2, 4)
        assert (await array.update_attributes({"a": 1})).attrs == {"a": 1}
        assert await array.nchunks_initialized() == 4
        assert await array.nbytes_stored() > 100
        assert "Chunks stored" in repr(await array.info_complete())
        assert repr(array).startswith("<AsyncArray memory://")

    asyncio.run(main())


def test_groups() -> None:
    async def main() -> None:
        group = zardine.create_group(None).async_group
        assert isinstance(group, zardine.AsyncGroup)
        array = await group.create_array("g/a", data=DATA)
        assert isinstance(array, zardine.AsyncArray)
        assert isinstance(await group.create_group("h"), zardine.AsyncGroup)
        assert isinstance(await group.require_group("h"), zardine.AsyncGroup)
        await group.setitem("b", [1, 2])
        assert await group.contains("g/a")
        assert not await group.contains("x")
        found: Any = await group.getitem("g/a")
        assert found == array
        assert hash(found) == hash(array)
        assert [path async for path, _ in group.members(max_depth=None)] == ["b", "g", "g/a", "h"]
        assert await group.nmembers() == 3
        await group.delitem("b")
        with pytest.raises(KeyError):
            await group.getitem("b")
        assert (await group.update_attributes({"a": 1})).attrs == {"a": 1}

    asyncio.run(main())


def test_opening(tmp_path: Path) -> None:
    async def main() -> None:
        zardine.create_group(tmp_path).create_array("a", data=DATA)
        assert (await (await zardine.AsyncArray.open(tmp_path / "a")).getitem(...)).tolist() == DATA.tolist()
        assert await (await zardine.AsyncGroup.open(tmp_path)).nmembers() == 1
        with pytest.raises(ArrayNotFoundError):
            await zardine.AsyncArray.open(tmp_path / "nothing")
        with pytest.raises(GroupNotFoundError):
            await zardine.AsyncGroup.open(tmp_path / "nothing")
        frozen: Any = zardine.open_array(tmp_path / "a", mode="r").async_array
        with pytest.raises(ReadOnlyError):
            await frozen.setitem(0, 1)

    asyncio.run(main())


def test_many_at_once_and_the_loop_goes_on() -> None:
    async def main() -> None:
        array = zardine.create_array(None, shape=(64,), dtype="i4", chunks=(1,), shards=(16,)).async_array
        await asyncio.gather(*(array.setitem(i, i) for i in range(64)))
        assert (await array.getitem(...)).tolist() == list(range(64))
        found = await asyncio.gather(*(array.getitem(i) for i in range(64)))
        assert [int(each) for each in found] == list(range(64))

    asyncio.run(main())


FREE_OF_IO = {
    zardine.AsyncArray: {
        "attrs",
        "basename",
        "blocks",
        "buffered",
        "cdata_shape",
        "chunks",
        "codecs",
        "compressor",
        "compressors",
        "config",
        "dimension_names",
        "dtype",
        "fill_value",
        "filters",
        "from_dict",
        "info",
        "is_draft",
        "metadata",
        "name",
        "nbytes",
        "nchunks",
        "ndim",
        "nshards",
        "oindex",
        "order",
        "path",
        "read_chunk_sizes",
        "read_only",
        "serializer",
        "shape",
        "shards",
        "size",
        "store",
        "store_path",
        "vindex",
        "with_config",
        "write_chunk_sizes",
    },
    zardine.AsyncGroup: {
        "attrs",
        "basename",
        "from_dict",
        "info",
        "metadata",
        "name",
        "path",
        "read_only",
        "store",
        "store_path",
        "synchronizer",
    },
}
"""What may be asked for in an event loop without ``await``: it looks at no store."""

LEFT_OUT = {
    zardine.AsyncArray: {"async_array", "view"},
    zardine.AsyncGroup: {"async_group", "update_attributes_async", "view"},
}
TWINS = {zardine.AsyncArray: zardine.Array, zardine.AsyncGroup: zardine.Group}


@pytest.mark.parametrize("face", [zardine.AsyncArray, zardine.AsyncGroup])
def test_every_public_member_is_awaitable_or_free_of_io(face: type) -> None:
    members = {name for name in dir(face) if not name.startswith("_")}
    twins = {name for name in dir(TWINS[face]) if not name.startswith("_")}
    assert twins - members == LEFT_OUT[face]
    assert members - twins <= {"open", "from_dict", "getitem", "setitem", "delitem", "contains"}
    for name in members - FREE_OF_IO[face]:
        value = getattr(face, name)
        assert inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value), name
    assert members >= FREE_OF_IO[face]
    assert not hasattr(face, "__getattr__")


class Watched(MemoryStore):
    """Notes in which threads it was asked for anything."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def __getattribute__(self, name: str) -> Any:
        if name in {"read", "get", "set", "erase", "list_dir", "exists", "size", "version", "lock", "erase_prefix"}:
            object.__getattribute__(self, "threads").add(threading.get_ident())
        return object.__getattribute__(self, name)


def test_nothing_looks_at_the_store_in_the_thread_of_the_loop() -> None:
    """Every member is used; those that are free of I/O in the loop, the others awaited."""

    async def used(face: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
        value = getattr(face, name)(*args, **kwargs)
        return [each async for each in value] if inspect.isasyncgen(value) else await value

    async def main() -> None:
        store = Watched()
        group = await zardine.AsyncGroup.from_store(store, attributes={"a": 1})
        array = await group.create_array("a", data=DATA, chunks=(1, 2), shards=(3, 4), attributes={"x": 1})
        store.threads.clear()
        for face in (array, group):
            for name in FREE_OF_IO[type(face)] - {"from_dict", "with_config", "compressor"}:
                repr(getattr(face, name))
            face.from_dict(face.store_path, face.metadata.to_dict())
        repr((array, group, array == array, hash(array), array.with_config({"order": "F"})))
        assert not store.threads

        index, mask, points = ([0, 2], [1]), DATA > 5, ([0, 2], [1, 1])
        arguments: dict[Any, dict[str, tuple[Any, ...]]] = {
            array: {
                "getitem": (0,),
                "get_basic_selection": (0,),
                "get_orthogonal_selection": (index,),
                "get_coordinate_selection": (points,),
                "get_mask_selection": (mask,),
                "get_block_selection": ((0, 0),),
                "get_point_selection": (points,),
                "setitem": (0, 1),
                "set_basic_selection": (0, 1),
                "set_orthogonal_selection": (index, 1),
                "set_coordinate_selection": (points, 1),
                "set_mask_selection": (mask, 1),
                "set_block_selection": ((0, 0), 1),
                "set_point_selection": (points, 1),
                "append": ([[1, 2, 3, 4]],),
                "resize": ((2, 4),),
                "update_attributes": ({"a": 1},),
            },
            group: {
                "getitem": ("a",),
                "get": ("a",),
                "get_array": ("a",),
                "get_group": ("g",),
                "contains": ("a",),
                "create_group": ("g",),
                "require_group": ("g",),
                "require_groups": ("g", "h"),
                "setitem": ("s", [1, 2]),
                "delitem": ("s",),
                "create_hierarchy": ({"i": zardine.GroupMetadata()},),
                "update_attributes": ({"a": 1},),
                "move": ("i", "j"),
            },
        }
        first: dict[Any, list[str]] = {group: ["create_group", "setitem", "create_hierarchy"], array: []}
        named: dict[str, dict[str, Any]] = {
            **{name: {"shape": 3} for name in ("zeros", "ones", "empty")},
            "full": {"shape": 3, "fill_value": 1},
            **{f"{name}_like": {"data": array} for name in ("zeros", "ones", "empty")},
            "full_like": {"data": array, "fill_value": 2},
            **{name: {"shape": 3, "dtype": "i4"} for name in ("create", "create_array", "create_dataset")},
            **{name: {"shape": 3, "dtype": "i4"} for name in ("require_array", "require_dataset")},
        }
        for face in (array, group):
            names = {name for name in dir(face) if not name.startswith("_")} - FREE_OF_IO[type(face)]
            names -= {"open", "from_store"}
            last = {"delitem", "move", "append", "resize"} & names
            for name in [*first[face], *sorted(names - {*first[face]} - last), *sorted(last)]:
                if name in named:
                    await used(face, name, **named[name], name=f"new_{name}")
                else:
                    await used(face, name, *arguments[face].get(name, ()))
        for index_face, selection in (
            (array.oindex, ([0, 1], [1])),
            (array.vindex, ([0, 1], [1, 1])),
            (array.blocks, (0, 0)),
        ):
            await index_face.setitem(selection, 5)  # type: ignore[attr-defined]
            assert (await index_face.getitem(selection)).ravel()[0] == 5  # type: ignore[attr-defined]
        async with array.buffered() as waiting:
            await array.setitem(0, 9)
            assert waiting.nbytes
        assert (await (await zardine.AsyncArray.open(StorePath(store, "a"))).getitem(0)).tolist() == [9] * 4
        drawn = await group.tree()
        text = str(drawn)
        assert threading.get_ident() not in store.threads
        assert text == str(group._group.tree())

        other = zardine.open_group(store)["a"]
        store.threads.clear()
        await asyncio.to_thread(other.resize, (5, 4))  # type: ignore[union-attr]
        assert (await array.refresh()) is array
        assert array.shape == (5, 4)
        assert threading.get_ident() not in store.threads
        assert store.threads

    asyncio.run(main())


def test_unknown_names_are_refused() -> None:
    array = zardine.zeros(3).async_array
    group = zardine.group().async_group
    for face, name in ((array, "nothing"), (array, "__len__"), (group, "nothing"), (group, "async_group")):
        with pytest.raises(AttributeError):
            getattr(face, name)


def test_groups_complete_their_keys_in_ipython() -> None:
    group = zardine.group()
    group.create_array("b", shape=1, dtype="i4")
    group.create_group("a")
    assert group._ipython_key_completions_() == ["a", "b"]


class SlowStore(MemoryStore):
    """A store whose writes of one key wait until they may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = "nothing"
        self.begun, self.go_on = threading.Event(), threading.Event()

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        if key == self.slow and not self.begun.is_set():
            self.begun.set()
            assert self.go_on.wait(30)
        return super().set(key, value, condition=condition)


async def cancel(store: SlowStore, key: str, change: Any) -> None:
    """Cancel a change when it is about to write ``key``."""
    store.slow = key
    task = asyncio.ensure_future(change)
    while not store.begun.is_set():
        assert not task.done(), task
        await asyncio.sleep(0.001)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(task, 0.001)


CHANGES = {
    "setitem": ("a/c/0/0", lambda a, g, i: a.setitem((0, 0), i), lambda a: a[0, 0]),
    "of another handle": ("a/c/0/0", lambda a, g, i: other(a).setitem((0, 0), i), lambda a: a[0, 0]),
    "oindex": ("a/c/0/0", lambda a, g, i: a.oindex.setitem(([0], [0]), i), lambda a: a[0, 0]),
    "attributes": ("a/zarr.json", lambda a, g, i: a.update_attributes({"i": i}), lambda a: a.attrs["i"]),
    "attributes of the group": ("g/zarr.json", lambda a, g, i: g.update_attributes({"i": i}), None),
    "resize": ("a/zarr.json", lambda a, g, i: a.resize((4 + i, 4)), lambda a: a.shape[0] - 4),
    "save": (
        "b/c/0",
        lambda a, g, i: zardine.api.asynchronous.save_array(a.store, np.array([i]), path="b", overwrite=True),
        None,
    ),
}


def other(array: zardine.AsyncArray) -> zardine.AsyncArray:
    return zardine.open_array(array.store, path=array.path).async_array


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_waits_for_a_cancelled_one(name: str) -> None:
    """What a cancelled task goes on to write never takes the place of what a later one has written."""
    store = SlowStore()
    key, change, look = CHANGES[name]

    async def main() -> None:
        array = zardine.create_array(store, name="a", shape=(4, 4), chunks=(2, 2), dtype="i4").async_array
        group = zardine.create_group(store, path="g").async_group
        await cancel(store, key, change(array, group, 1))
        later = asyncio.ensure_future(change(array, group, 2))
        await asyncio.sleep(0.05)
        assert not later.done()
        assert (await array.getitem((3, 3))) == 0  # reading waits for nothing
        if name != "save":
            await asyncio.wait_for((await zardine.api.asynchronous.open_group(store, path="g")).contains("x"), 10)
        store.go_on.set()
        await later

    asyncio.run(main())
    if name == "save":
        assert zardine.load(store, path="b").tolist() == [2]
    elif look is None:
        assert zardine.open_group(store, path="g").attrs["i"] == 2
    else:
        assert look(zardine.open_array(store, path="a")) == 2


def test_changes_elsewhere_do_not_wait_for_a_cancelled_one() -> None:
    store = SlowStore()

    async def main() -> None:
        arrays = [
            zardine.create_array(store, name=name, shape=4, chunks=2, dtype="i4").async_array for name in ("a", "ab")
        ]
        await cancel(store, "a/c/0", arrays[0].setitem(0, 1))
        await asyncio.wait_for(arrays[1].setitem(0, 1), 10)
        above = asyncio.ensure_future(zardine.open_group(store).async_group.delitem("a"))
        waiting = [asyncio.ensure_future(arrays[0].setitem(0, 2)) for _ in range(50)]  # hold no threads
        await asyncio.wait_for(arrays[1].getitem(0), 10)
        for each in waiting:
            each.cancel()
        assert not above.done()
        store.go_on.set()
        await above

    asyncio.run(main())
    assert list(zardine.open_group(store)) == ["ab"]


def test_a_cancelled_change_that_has_not_begun_never_does() -> None:
    store = SlowStore()

    async def main() -> None:
        array = zardine.create_array(store, name="a", shape=4, chunks=2, dtype="i4").async_array
        await cancel(store, "a/c/0", array.setitem(0, 1))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(array.setitem(1, 5), 0.01)
        store.go_on.set()
        await array.setitem(2, 3)

    asyncio.run(main())
    assert zardine.open_array(store, path="a")[...].tolist() == [1, 0, 3, 0]
