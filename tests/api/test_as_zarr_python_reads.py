"""What arrays give is what zarr-python gives: memory order, blocks, arrays as indices, odd documents, fill values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.storage import MemoryStore

DATA = np.arange(24).reshape(4, 6)


def is_f(array: Any) -> bool:
    return bool(array.flags.f_contiguous and not array.flags.c_contiguous)


@pytest.mark.parametrize("version", [2, 1])
def test_arrays_of_order_f_read_in_fortran_order(version: Any) -> None:
    array = zardine.create_array(None, data=DATA, chunks=(2, 3), order="F", zarr_format=version)
    assert (array.order, array.metadata.order) == ("F", "F")
    for found in (array[...], array[0:3], array[:, 1:5], array.oindex[[0, 2], :], array.blocks[0]):
        assert is_f(found)
    assert (array[...] == DATA).all()
    assert (array[::-1] == DATA[::-1]).all()
    plain = zardine.create_array(None, data=DATA, chunks=(2, 3), zarr_format=version)
    assert (plain.order, plain.metadata.order) == ("C", "C")
    assert plain[...].flags.c_contiguous
    again = zardine.open_array(array.store)
    assert is_f(again[...])
    assert is_f(array.with_config({"order": "C"})[...])
    assert not is_f(plain.with_config({"order": "F"})[...])


def test_the_setting_for_order_counts_for_new_arrays() -> None:
    with zardine.config.set({"array.order": "F"}):
        old = zardine.create_array(None, data=DATA, chunks=(2, 3), zarr_format=2)
        new = zardine.create_array(None, data=DATA, chunks=(2, 3))
    assert (old.order, old.metadata.order, new.order) == ("F", "F", "F")
    assert is_f(old[...])
    assert is_f(new[...])
    assert zardine.open_array(old.store).order == "F"


@pytest.mark.parametrize("shards", [None, 6])
def test_blocks_beyond_the_grid(shards: Any) -> None:
    array = zardine.create_array(None, data=np.arange(10), chunks=3, shards=shards)
    count = array.nshards
    for start in (count, count + 1, 9):
        with pytest.raises(zardine.errors.BoundsCheckError, match=f"index {start} is out of bounds"):
            array.blocks[start : start + 1]
        with pytest.raises(IndexError):
            array.blocks[start:] = 0
    assert array.blocks[0:99].tolist() == list(range(10))
    assert array.blocks[1:1].tolist() == []
    assert array.blocks[:].tolist() == list(range(10))
    assert zardine.zeros(0).blocks[:].tolist() == []
    with pytest.raises(IndexError):
        array.async_array.blocks.array._array.blocks[count:]


def test_arrays_as_indices() -> None:
    array = zardine.create_array(None, data=DATA, chunks=(2, 3), shards=(4, 6))
    line = zardine.create_array(None, data=np.arange(10), chunks=3)
    index = zardine.create_array(None, data=np.array([1, 3]), chunks=1)
    one = zardine.create_array(None, data=np.array(2))
    mask = zardine.create_array(None, data=np.arange(10) % 2 == 0, chunks=4)
    all_of_it = zardine.create_array(None, data=DATA % 5 == 0, chunks=(4, 2))
    assert line[index].tolist() == line.oindex[index].tolist() == line.vindex[index].tolist() == [1, 3]
    assert line.get_coordinate_selection(index).tolist() == [1, 3]
    assert line.get_orthogonal_selection((index,)).tolist() == [1, 3]
    assert line[mask].tolist() == line.vindex[mask].tolist() == line.oindex[mask].tolist() == [0, 2, 4, 6, 8]
    assert line.get_mask_selection(mask).tolist() == [0, 2, 4, 6, 8]
    assert (array[all_of_it] == DATA[DATA % 5 == 0]).all()
    assert (array.vindex[all_of_it] == DATA[DATA % 5 == 0]).all()
    assert (array.oindex[index, [0, 2]] == DATA[np.ix_([1, 3], [0, 2])]).all()
    assert (array[index, index] == DATA[[1, 3], [1, 3]]).all()
    assert (array[one] == DATA[2]).all()
    assert array[one, one] == DATA[2, 2]
    assert (array.get_basic_selection((one, slice(2))) == DATA[2, :2]).all()
    assert (array.blocks[zardine.create_array(None, data=np.array(0))] == DATA).all()
    line[index] = -1
    line.vindex[mask] = -2
    assert line[:].tolist() == [-2, -1, -2, -1, -2, 5, -2, 7, -2, 9]
    with pytest.raises(zardine.errors.BoundsCheckError):
        line[zardine.create_array(None, data=np.array([99]))]


def test_series_as_indices() -> None:
    pandas = pytest.importorskip("pandas")
    line = zardine.create_array(None, data=np.arange(10), chunks=3)
    assert line[pandas.Series([1, 3])].tolist() == [1, 3]
    assert line.oindex[pandas.Index([1, 3])].tolist() == [1, 3]
    assert line.vindex[pandas.Series(np.arange(10) > 7)].tolist() == [8, 9]


V2 = {
    "zarr_format": 2,
    "shape": [4, 3],
    "chunks": [2, 2],
    "dtype": "<i4",
    "fill_value": 7,
    "order": "C",
    "compressor": None,
    "filters": None,
}


@pytest.mark.parametrize("member", ["compressor", "filters"])
def test_documents_of_version_2_without_codecs(member: str, tmp_path: Path) -> None:
    for missing in ([member], ["compressor", "filters"]):
        document = {name: value for name, value in V2.items() if name not in missing}
        place = tmp_path / str(len(missing))
        place.mkdir()
        (place / ".zarray").write_text(json.dumps(document))
        (place / "0.0").write_bytes(np.arange(4, dtype="<i4").tobytes())
        array = zardine.open_array(place)
        assert array[...].tolist() == [[0, 1, 7], [2, 3, 7], [7] * 3, [7] * 3]
        assert array.compressor is None
        array[3, 2] = 1
        array.attrs["a"] = 1
        array.resize((5, 3))
        assert zardine.open_array(place)[3].tolist() == [7, 7, 1]


@pytest.mark.parametrize("length", [0, False])
def test_chunks_of_no_length_are_of_length_one(length: Any) -> None:
    store = MemoryStore()
    store.set(".zarray", json.dumps({**V2, "chunks": [length, 3]}).encode())
    array = zardine.open_array(store)
    assert array.chunks == (1, 3)
    array[2] = [1, 2, 3]
    assert sorted(store.list()) == [".zarray", "2.0"]
    assert zardine.open_array(store)[...].tolist() == [[7] * 3, [7] * 3, [1, 2, 3], [7] * 3]


@pytest.mark.parametrize("version", [2, 3])
def test_fill_values_of_raw_bytes_are_padded(version: Any) -> None:
    array = zardine.create_array(None, shape=3, dtype="|V10", fill_value=b"X", zarr_format=version)
    assert array[1].tobytes() == zardine.open_array(array.store)[1].tobytes() == b"X" + bytes(9)
    with pytest.raises(ValueError, match="expected 10 bytes, found 11"):
        zardine.create_array(None, shape=3, dtype="|V10", fill_value=bytes(11), zarr_format=version)


@pytest.mark.parametrize("before", [2, 3])
@pytest.mark.parametrize("after", [2, 3, None])
def test_arrays_like_others_in_any_version(before: Any, after: Any) -> None:
    like = zardine.create_array(None, data=DATA, chunks=(2, 3), zarr_format=before, fill_value=9)
    for made in (zardine.zeros_like(like, zarr_format=after), zardine.from_array(None, data=like, zarr_format=after)):
        assert (made.metadata.zarr_format, made.chunks, made.dtype) == (after or before, (2, 3), DATA.dtype)
    assert (zardine.from_array(None, data=like, zarr_format=after)[...] == DATA).all()
    assert zardine.from_array(None, data=like, zarr_format=after).fill_value == 9
    group = zardine.create_group(None, zarr_format=before)
    for make in (group.zeros_like, group.ones_like, group.empty_like):
        assert make(name=make.__name__, data=like).metadata.zarr_format == before
    assert group.full_like(name="full", data=DATA, fill_value=3).metadata.zarr_format == before
    sharded = zardine.create_array(None, data=DATA, chunks=(2, 3), shards=(4, 6), dimension_names=("y", "x"))
    assert zardine.from_array(None, data=sharded, zarr_format=2)[1, 2] == DATA[1, 2]


def test_nodes_of_their_awaitable_faces() -> None:
    group = zardine.create_group(None)
    array = group.create_array("a", data=DATA)
    assert zardine.Array(array.async_array) == array
    assert (zardine.Array(array.async_array)[...] == DATA).all()
    assert zardine.Group(group.async_group) == group
    with pytest.raises(TypeError, match="open_array"):
        zardine.Array(group.store)
    with pytest.raises(TypeError, match="open_group"):
        zardine.Group(group.store)


def test_buffers_of_zarr_python_as_out() -> None:
    class Buffer:
        def __init__(self) -> None:
            self.data = np.zeros((2, 6), DATA.dtype)

        def as_ndarray_like(self) -> Any:
            return self.data

    out: Any = Buffer()
    found = zardine.create_array(None, data=DATA, chunks=(2, 3)).get_basic_selection(slice(1, 3), out=out)
    assert found is out.data
    assert (out.data == DATA[1:3]).all()
