"""``Array.buffered``: every kind of value, selection and layout, beside what NumPy does."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zardine
from effort import examples
from zardine.errors import ChunkNotFoundError, CorruptionError, UnsupportedError
from zardine.storage import CountingStore, LocalStore, MemoryStore


def random_values(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    numbers = rng.integers(0, 5, shape)
    if dtype == "string":
        return np.array(["", "a", "bc", "ä\0b", "x" * 50], np.dtypes.StringDType())[numbers]
    if dtype == "variable_length_bytes":
        return np.array([b"", b"a", b"b\0", b"\xff", b"x" * 50], object)[numbers]
    if dtype == "struct":
        values = np.zeros(shape, [("x", "<i2"), ("y", "<f8")])
        values["x"], values["y"] = numbers, rng.normal(size=shape)
        return values
    if dtype in ("M8[s]", "m8[ms]", "S3", "U2", "V3"):
        return (
            np.array([b"", b"a", b"bc", b"d", b"e"], "S3")[numbers].astype(dtype)
            if dtype in ("S3", "U2")
            else (numbers.astype("u1").repeat(3).view("V3").reshape(shape) if dtype == "V3" else numbers.astype(dtype))
        )
    return numbers.astype(dtype)


TYPES = [
    "?",
    "i1",
    ">u2",
    "f4",
    "c16",
    "string",
    "variable_length_bytes",
    "struct",
    "M8[s]",
    "m8[ms]",
    "S3",
    "U2",
    "V3",
]
LAYOUTS: list[dict[str, Any]] = [
    {"chunks": (3, 2)},
    {"chunks": (2, 3), "shards": (4, 6)},
    {"chunks": [[4, 6], [3, 5]]},
    {"chunks": (3, 2), "zarr_format": 2},
    {"chunks": (2, 3), "shards": (4, 6), "config": {"cache": "1 MiB"}},
]


def draw_selection(data: Any, shape: tuple[int, int]) -> tuple[str, Any]:
    kind = data.draw(st.sampled_from(["basic", "orthogonal", "points", "mask"]))
    lists = [data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=7)) for n in shape]
    if kind == "basic":
        ends = [(data.draw(st.integers(-n, n - 1)), data.draw(st.integers(1, 4))) for n in shape]
        return kind, tuple(slice(start, None, step * data.draw(st.sampled_from([1, -1]))) for start, step in ends)
    if kind == "orthogonal":
        return kind, tuple(np.array(each) for each in lists)
    if kind == "points":
        count = min(map(len, lists))
        return kind, tuple(np.array(each[:count]) for each in lists)
    return kind, np.array(data.draw(st.lists(st.booleans(), min_size=80, max_size=80))).reshape(shape)


@pytest.mark.parametrize("dtype", TYPES)
@given(data=st.data(), layout=st.sampled_from(LAYOUTS), limit=st.sampled_from([0, 100, 2000, 10**6]))
@settings(max_examples=examples(12), deadline=None)
def test_every_type_and_selection(data: Any, dtype: str, layout: Any, limit: int) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    shape = (10, 8)
    expected = random_values(dtype, shape, rng)
    if layout.get("zarr_format") == 2 and dtype in ("string", "variable_length_bytes"):
        layout = LAYOUTS[0]
    array = zardine.create_array(
        MemoryStore(), shape=shape, dtype=expected.dtype if dtype != "variable_length_bytes" else dtype, **layout
    )
    array[...] = expected
    with array.buffered(limit=limit):
        for _ in range(data.draw(st.integers(1, 6))):
            kind, selection = draw_selection(data, shape)
            picked = np.ix_(*selection) if kind == "orthogonal" else selection
            new = random_values(dtype, expected[picked].shape, rng)
            if kind in ("orthogonal", "points"):  # of an element named twice the last value stays
                new = new[(0,) * new.ndim]
            expected[picked] = new
            if kind == "orthogonal":
                array.oindex[selection] = new
            elif kind in ("points", "mask"):
                array.vindex[selection] = new
            else:
                array[selection] = new
            np.testing.assert_array_equal(array[...], expected)
            np.testing.assert_array_equal(array.oindex[[1, 9, 4], ::-3], expected[[1, 9, 4], ::-3])
            np.testing.assert_array_equal(array.vindex[[1, 9, 1], [7, 0, 7]], expected[[1, 9, 1], [7, 0, 7]])
            assert array[3, 4] == expected[3, 4]
    np.testing.assert_array_equal(zardine.open_array(array.store)[...], expected)


def test_fields_of_what_waits() -> None:
    array = zardine.create_array(MemoryStore(), shape=4, dtype=[("x", "i4"), ("y", "f8")], chunks=2, shards=4)
    with array.buffered():
        array[1] = (1, 2.0)
        assert array["x"].tolist() == [0, 1, 0, 0]
        array["y", 1:] = 5.0
        array[1:3] = array[1:3]
        assert array[...].tolist() == [(0, 0.0), (1, 5.0), (0, 5.0), (0, 5.0)]
    assert zardine.open_array(array.store)["x"].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("dtype", ["f8", "string", "struct"])
def test_no_dimensions(dtype: str) -> None:
    value = random_values(dtype, (1,), np.random.default_rng(3))[0]
    array = zardine.create_array(MemoryStore(), shape=(), dtype="string" if dtype == "string" else value.dtype)
    with array.buffered():
        array[()] = value
        assert array[()] == value
        array.vindex[()] = value
    assert zardine.open_array(array.store)[()] == value


def test_an_empty_array() -> None:
    array = zardine.create_array(MemoryStore(), shape=(0, 3), dtype="i4", chunks=(2, 2))
    with array.buffered():
        array[...] = 1
        assert array[...].shape == (0, 3)
    assert list(array.store.list()) == ["zarr.json"]


def test_objects_wait_as_they_were_when_they_were_written() -> None:
    from numcodecs import JSON

    array = zardine.create_array(
        MemoryStore(), shape=4, dtype=object, chunks=2, zarr_format=2, filters=[JSON()], compressors=None
    )
    value = {"a": [1]}
    with array.buffered():
        array[0] = value
        value["a"].append(2)
        got = array[0]
        got["a"].append(3)
        assert array[0] == {"a": [1]}
    assert zardine.open_array(array.store)[0] == {"a": [1]}


def test_the_memory_of_texts_counts() -> None:
    store = CountingStore(MemoryStore())
    array = zardine.create_array(store, shape=100, dtype="string", chunks=10)
    store.reset()
    with array.buffered(limit=100_000) as waiting:
        for i in range(100):
            array[i] = "x" * 10_000
            assert waiting.nbytes < 150_000
        assert store.counts.writes > 5


def test_one_write_of_more_than_the_limit_takes_no_memory() -> None:
    store = CountingStore(MemoryStore())
    array = zardine.create_array(store, shape=(64, 64), dtype="i4", chunks=(8, 8), shards=(32, 32))
    store.reset()
    with array.buffered(limit=1000) as waiting:
        array[0, 0] = 1
        assert (waiting.nbytes > 0, store.counts.writes) == (True, 0)
        array[1:] = 2
        assert (waiting.nbytes, store.counts.writes) == (0, 5)
        assert array[:2, 0].tolist() == [1, 2]


def test_a_chunk_filled_bit_by_bit_is_not_read() -> None:
    store = CountingStore(MemoryStore())
    array = zardine.create_array(store, shape=(8, 8), dtype="i4", chunks=(8, 8))
    array[...] = 5
    store.reset()
    with array.buffered():
        for i in range(8):
            array[i] = i
        assert array[...].sum() == 8 * 28
        array.store.set("c/0/0", b"damaged")
    assert zardine.open_array(store)[...].sum() == 8 * 28


def test_reading_does_without_chunks_that_wait_whole() -> None:
    array = zardine.create_array(
        MemoryStore(), shape=(5, 4), dtype="i4", chunks=(2, 2), shards=(4, 4), config={"read_missing_chunks": False}
    )
    with array.buffered():
        array[:2] = 1
        assert array[:2].tolist() == [[1] * 4] * 2
        array[4] = 2
        assert array[::4].tolist() == [[1] * 4, [2] * 4]
        assert array.vindex[[0, 4, 1], [3, 3, 0]].tolist() == [1, 2, 1]
        with pytest.raises(ChunkNotFoundError):
            array[2]
        array[2] = 3
        assert array[2].tolist() == [3] * 4
        with pytest.raises(ChunkNotFoundError):
            array[...]
        array[3] = 4
        assert array[:, 1].tolist() == [1, 1, 3, 4, 2]


def test_reading_does_without_damaged_chunks_that_wait_whole() -> None:
    array = zardine.create_array(MemoryStore(), shape=(6, 5), dtype="i4", chunks=(2, 2))
    array[...] = 1
    array.store.set("c/0/0", b"damaged")
    array.store.set("c/1/2", b"damaged")
    with array.buffered():
        array[:2] = 2
        array[2:4, 4] = 3
        expected = [[2] * 5] * 2 + [[1] * 4 + [3]] * 2 + [[1] * 5] * 2
        assert array[...].tolist() == expected
        assert array[::-1].tolist() == expected[::-1]
        array.store.set("c/2/2", b"damaged")
        with pytest.raises(CorruptionError):
            array[...]
        assert array[:4].tolist() == expected[:4]
        array[4:, 4] = 1
    assert zardine.open_array(array.store)[...].tolist() == expected


def test_copies_have_no_buffer(tmp_path: Any) -> None:
    array = zardine.create_array(LocalStore(tmp_path), shape=(4,), dtype="i4", chunks=(2,))
    with array.buffered():
        array[0] = 1
        copied = pickle.loads(pickle.dumps(array))
        assert copied[...].tolist() == [0, 0, 0, 0]
        copied[1] = 2
        assert array[...].tolist() == [1, 2, 0, 0]
        array.flush()
        assert copied[...].tolist() == [1, 2, 0, 0]


def test_a_block_may_be_entered_again() -> None:
    array = zardine.create_array(CountingStore(MemoryStore()), shape=(4,), dtype="i4", chunks=(2,))
    block = array.buffered()
    assert block.nbytes == 0
    for value in (1, 2):
        with block:
            array[...] = value
            assert block.nbytes == 16
            assert zardine.open_array(array.store)[0] == value - 1
    assert zardine.open_array(array.store)[0] == 2


def test_a_strategy_that_the_store_has_not_is_refused_before_anything_waits() -> None:
    array = zardine.create_array(
        MemoryStore(), shape=(4,), dtype="i4", chunks=(2,), shards=(4,), config={"write_strategy": "append"}
    )
    with pytest.raises(UnsupportedError), array.buffered():
        pass
    assert array._handle.buffer is None
