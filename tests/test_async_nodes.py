"""The awaitable faces of arrays and groups."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.errors import ArrayNotFoundError, GroupNotFoundError, ReadOnlyError

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
        assert (await array.update_attributes({"a": 1})).attrs.asdict() == {"a": 1}
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
        assert (await group.update_attributes({"a": 1})).attrs.asdict() == {"a": 1}

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
