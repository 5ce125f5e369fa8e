"""Arrays as Python and NumPy see them: length, iteration, conversion, comparison, pickling."""

import copy
import pickle
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.storage import CountingStore, MemoryStore


def of(data: Any, **arguments: Any) -> zardine.Array:
    return zardine.create_array(None, data=np.asarray(data), **arguments)


def test_length() -> None:
    assert len(of(np.zeros((3, 2)))) == 3
    assert len(of(np.zeros((0, 2)))) == 0
    with pytest.raises(TypeError, match="unsized"):
        len(of(5))


@pytest.mark.parametrize(
    "arguments", [{"chunks": (3, 2)}, {"chunks": (1, 2), "shards": (3, 4)}, {"chunks": [[1, 6, 1], [4, 3]]}]
)
def test_iteration_gives_rows(arguments: dict[str, Any]) -> None:
    data = np.arange(56).reshape(8, 7)
    rows = list(of(data, **arguments))
    assert len(rows) == 8
    for row, want in zip(rows, data, strict=True):
        assert row.tolist() == want.tolist()
    assert [row.shape for row in of(np.zeros((0, 3)))] == []
    assert list(of([1, 2])) == [1, 2]
    with pytest.raises(TypeError, match="0-d"):
        iter(of(1)).__next__()


def test_iteration_reads_each_object_once() -> None:
    store = CountingStore(MemoryStore())
    array = zardine.create_array(store, data=np.arange(24).reshape(12, 2), chunks=(1, 1), shards=(4, 2))
    store.reset()
    assert sum(int(row.sum()) for row in array) == sum(range(24))
    assert store.counts.reads == 3


@pytest.mark.parametrize(
    ("data", "converted"),
    [
        (5, (5, 5.0, 5 + 0j, True, 5)),
        ([7], (7, 7.0, 7 + 0j, True, 7)),
        ([[0]], (0, 0.0, 0j, False, 0)),
        (True, (1, 1.0, 1 + 0j, True, None)),
        (2.5, (2, 2.5, 2.5 + 0j, True, None)),
    ],
)
def test_conversion_of_single_elements(data: Any, converted: tuple[Any, ...]) -> None:
    array = of(data)
    assert (int(array), float(array), complex(array), bool(array)) == converted[:4]
    if converted[4] is None:
        with pytest.raises(TypeError):
            index(array)
    else:
        assert index(array) == converted[4]


def test_more_than_one_element_is_not_a_number() -> None:
    array = of([1, 2])
    for convert in (int, float, complex, index):
        with pytest.raises(TypeError, match="length-1"):
            convert(array)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(array)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(of(np.zeros(0)))


def test_zero_dimensions() -> None:
    array = zardine.create_array(None, shape=(), dtype="f4", fill_value=3)
    assert (array.shape, array.ndim, array.size, array.nchunks, array.cdata_shape) == ((), 0, 1, 1, ())
    assert array[()] == array[...] == 3
    assert array.nchunks_initialized == 0
    array[()] = 4
    array[...] = array[...] + 1
    assert array[()] == 5
    assert array.nchunks_initialized == 1
    assert list(array.store.list()) == ["c", "zarr.json"]
    out = np.empty((), "f4")
    assert array.get_basic_selection((), out=out) is out
    assert out == 5
    array.resize(())
    assert array[()] == 5
    with pytest.raises(IndexError):
        array[0]
    with pytest.raises(IndexError):
        array[:]


@pytest.mark.parametrize("arguments", [{}, {"shards": ()}, {"compressors": None}])
@pytest.mark.parametrize("dtype", ["bytes", "string", "U3", "V2", [("a", "i4"), ("b", "S2")]])
def test_zero_dimensions_of_any_type(dtype: Any, arguments: dict[str, Any]) -> None:
    array = zardine.create_array(None, shape=(), dtype=dtype, chunks=(), **arguments)
    fill = array[()]
    assert type(fill) is type(array.fill_value)
    assert fill == array.fill_value
    value: Any = {"bytes": b"x\0", "string": "y\0"}.get(dtype if isinstance(dtype, str) else "")
    if value is None:
        value = np.frombuffer(b"\1\0\0\0" * 8, array.dtype, 1)[0]
    array[()] = value
    assert array[()] == value
    assert type(array[()]) is type(value)
    assert zardine.open_array(array.store)[...] == value


def test_text_keeps_nuls_at_its_end() -> None:
    for dtype, values in (("string", ["a\0", "\0", "", "b"]), ("bytes", [b"a\0", b"\0", b"", b"b"])):
        for fill in values:
            array = zardine.create_array(None, shape=(4,), dtype=dtype, chunks=(1,), fill_value=fill)
            array[...] = values
            assert array[...].tolist() == values
            array[0] = values[1]
            assert array[0] == values[1]
            assert array.nchunks_initialized == 4 - array[...].tolist().count(fill)


def test_numpy_takes_arrays() -> None:
    data = np.arange(6.0).reshape(2, 3)
    array = of(data)
    assert np.array_equal(np.asarray(array), data)
    assert np.asarray(array, dtype="i4").dtype == np.int32
    assert np.add(array, 1).tolist() == (data + 1).tolist()
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(array, copy=False)
    other = zardine.create_array(None, shape=(2, 3), dtype="f8")
    other[...] = array
    assert np.array_equal(other[...], data)


def test_overlapping_parts_of_one_array() -> None:
    array = of(np.arange(10), chunks=3)
    array[1:] = array[:-1]
    assert array[...].tolist() == [0, *range(9)]
    array[::-1] = array
    assert array[...].tolist() == [*reversed(range(9)), 0]


def test_equality_and_hash(tmp_path: Path) -> None:
    array = zardine.create_array(tmp_path / "a", data=np.arange(3))
    twin = zardine.open_array(tmp_path / "a")
    assert array == twin
    assert hash(array) == hash(twin)
    assert array != zardine.create_array(tmp_path / "b", data=np.arange(3))
    assert array != 5
    twin.attrs["x"] = 1
    assert array != twin
    assert array.refresh() == twin


def test_pickled_and_copied(tmp_path: Path) -> None:
    array = zardine.create_array(tmp_path, data=np.arange(3), config={"order": "F", "write_empty_chunks": True})
    for twin in (pickle.loads(pickle.dumps(array)), copy.copy(array), copy.deepcopy(array)):
        assert twin == array
        assert twin.config == array.config
        twin[0] = 7
        assert array[0] == 7
        array[0] = 0


def test_context_managers() -> None:
    with zardine.create_group(None) as group, group.create_array("a", data=np.arange(3)) as array:
        assert array[1] == 1


def test_sizes() -> None:
    array = zardine.create_array(None, shape=(9, 10), dtype="i2", chunks=(2, 3), shards=(4, 6))
    assert (array.size, array.nbytes, array.ndim) == (90, 180, 2)
    assert (array.cdata_shape, array.nchunks, array.nshards) == ((5, 4), 20, 6)
    assert array.read_chunk_sizes == ((2, 2, 2, 2, 1), (3, 3, 3, 1))
    assert array.write_chunk_sizes == ((4, 4, 1), (6, 4))
    assert array.nbytes_stored() == len(bytes(array.store.get("zarr.json") or b""))
    array[...] = 1
    assert array.nbytes_stored() == sum(array.store.size(key) or 0 for key in array.store.list())
    assert (array.nchunks_initialized, array.nshards_initialized) == (20, 6)


@pytest.mark.filterwarnings("ignore:the matrix")
def test_matrices_are_assigned_as_their_rows() -> None:
    array = zardine.zeros((2, 3), dtype="i4")
    array[1] = np.asmatrix([1, 2, 3])
    array[0, :2] = np.asmatrix([4, 5])
    assert array[...].tolist() == [[4, 5, 0], [1, 2, 3]]
