"""The native kernel and the Python codecs, on the same arrays in the same process: the same bits, the same errors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from strategies import (
    NATIVE_DTYPES,
    Layout,
    basic,
    blocks,
    coordinates,
    layouts,
    masks,
    orthogonal,
    same_bits,
    values_for,
)

import zardine
from fuzz.fuzz_read import damage
from kernel.cases import decode_chunk
from zardine.errors import CorruptionError
from zardine.storage import LocalStore, MemoryStore, Store

pytestmark = pytest.mark.skipif(zardine.__kernel__ is None, reason="the kernel is not in use")

Read = Callable[[zardine.Array], Any]

NATIVE = layouts(NATIVE_DTYPES, native=True)


def without_kernel(array: zardine.Array) -> zardine.Array:
    """The same stored array; every chunk goes through the Python codecs."""
    source = array._handle
    return array._with_handle(source.with_layout(replace(source.layout, pipeline=None)))


@contextmanager
def new_store(in_memory: bool) -> Iterator[Store]:
    """A store in memory, or in a directory, where the kernel reads the files itself."""
    if in_memory:
        yield MemoryStore()
        return
    with tempfile.TemporaryDirectory() as folder:
        yield LocalStore(folder)


def started(layout: Layout, store: Store) -> zardine.Array:
    """The array with all its elements, written by the kernel."""
    array = layout.create(store)
    assert (array._handle.layout.pipeline is not None) == (array.ndim > 0)
    array[...] = layout.elements
    return array


@st.composite
def reads(draw: st.DrawFn, array: zardine.Array) -> Read:
    """Any way to select and read a part."""
    shape = array.shape
    kinds = ["basic", "block", "orthogonal", "points", "mask", "objects"]
    kind = draw(st.sampled_from(kinds))
    event(kind)
    if kind == "basic":
        selection, _ = draw(basic(shape))
        return lambda each: each[selection]
    if kind == "block":  # within one chunk: read without a plan where the store has files
        parts = draw(block(array))
        return lambda each: each[parts]
    if kind == "orthogonal":
        selection, _ = draw(orthogonal(shape))
        return lambda each: each.oindex[selection]
    if kind == "points":
        selection, _ = draw(coordinates(shape))
        return lambda each: each.vindex[selection]
    if kind == "mask":
        selection, _ = draw(masks(shape))
        return lambda each: each.get_mask_selection(selection)
    selection, _ = draw(blocks(array.write_chunk_sizes))
    return lambda each: each.blocks[selection]


@st.composite
def block(draw: st.DrawFn, array: zardine.Array) -> tuple[slice, ...]:
    """A box that lies in one chunk, if there is one."""
    parts = []
    for sizes, length in zip(array.read_chunk_sizes, array.shape, strict=True):
        number = draw(st.integers(0, max(0, len(sizes) - 1)))
        low = sum(sizes[:number])
        high = min(length, sum(sizes[: number + 1]))
        start = draw(st.integers(low, max(low, high - 1)))
        parts.append(slice(start, draw(st.integers(min(start + 1, high), high))))
    return tuple(parts)


def outcome(read: Read, array: zardine.Array) -> Any:
    """What is read; of an error its class, its place and its reason."""
    try:
        return read(array)
    except CorruptionError as error:
        event(type(error).__name__)
        place = (error.array, error.key, error.chunk, error.codec)
        if error.chunk is None:  # the index: its byte range is told only where the whole shard is read
            return (type(error), *place, error.reason)
        return (type(error), *place, error.byte_range, str(error))


@given(NATIVE, st.booleans(), st.data())
def test_reading(layout: Layout, in_memory: bool, data: st.DataObject) -> None:
    with new_store(in_memory) as store:
        native = started(layout, store)
        plain = without_kernel(native)
        same_bits(native[...], layout.elements)
        same_bits(plain[...], layout.elements)
        for _ in range(4):
            read = data.draw(reads(native))
            same_bits(read(native), read(plain))


@given(NATIVE, st.data())
def test_writing(layout: Layout, data: st.DataObject) -> None:
    """Each writes for itself; then each reads what the other wrote."""
    with zardine.config.set({"threads": data.draw(st.sampled_from([1, 3]))}):
        native = layout.create(MemoryStore())
        plain = without_kernel(layout.create(MemoryStore()))
        if data.draw(st.booleans(), label="filled"):
            native[...] = layout.elements
            plain[...] = layout.elements
        for _ in range(3):
            write = data.draw(writes(native.shape, native.dtype))
            write(native)
            write(plain)
            same_stored(native, plain)


@st.composite
def writes(draw: st.DrawFn, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[zardine.Array], None]:
    """Any way to select and write a part."""
    model = np.empty(shape, bool)
    kind = draw(st.sampled_from(["basic", "orthogonal", "mask"]))
    if kind == "orthogonal":
        selection, (lists, drop) = draw(orthogonal(shape))
        unique = [len(np.unique(each)) == len(each) for each in lists]
        if all(unique):  # which of two values for one place stays is not told
            part = tuple(len(each) for each, gone in zip(lists, drop, strict=True) if not gone)
            value = draw(values_for(part, dtype))
            return lambda array: array.oindex.__setitem__(selection, value)
    if kind == "mask":
        selection, _ = draw(masks(shape))
        value = draw(values_for((int(selection.sum()),), dtype))
        return lambda array: array.set_mask_selection(selection, value)
    selection, index = draw(basic(shape))
    value = draw(values_for(np.shape(model[index]), dtype))
    return lambda array: array.set_basic_selection(selection, value)


def same_stored(native: zardine.Array, plain: zardine.Array) -> None:
    """The same objects, whose chunks hold the same, also beyond the array; and so it is read by both."""
    assert sorted(native.store.list_prefix("")) == sorted(plain.store.list_prefix(""))
    for position in product(*(range(len(sizes)) for sizes in native.write_chunk_sizes)):
        if native.store.exists(native._handle.key(position)):
            for mine, other in zip(stored_chunks(native, position), stored_chunks(plain, position), strict=True):
                assert (mine is None) == (other is None)
                if mine is not None:
                    same_bits(mine, other)
    same_bits(native[...], plain[...])
    same_bits(zardine.Array.open(plain.store_path)[...], without_kernel(native)[...])


def stored_chunks(array: zardine.Array, position: tuple[int, ...]) -> Iterator[np.ndarray | None]:
    """The chunks of an object, decoded by the Python codecs; ``None`` for those that are not stored."""
    layout = array._handle.layout
    shard, data = layout.shard(position), content(array.store, array._handle.key(position))
    if shard is None:
        shape = tuple(axis.extent(i) for axis, i in zip(layout.grids.storage, position, strict=True))
        yield layout.chain(shape).decode(data)
        return
    assert layout.sharding is not None
    index = shard.index_of(data)
    for start, length, stored in zip(index.offsets.tolist(), index.lengths.tolist(), index.stored(), strict=True):
        chain = layout.chain(layout.sharding.chunk_shape)
        yield chain.decode(data[start : start + length]) if stored else None


def content(store: Store, key: str) -> bytes:
    """What is stored under ``key``."""
    reading = store.read(key)
    assert reading is not None
    return bytes(reading.parts[0])


@given(NATIVE, st.data())
def test_blocks_of_one_chunk(layout: Layout, data: st.DataObject) -> None:
    """``decode_box``, ``decode`` and the codec chain."""
    described = layout.create(MemoryStore())._handle.layout
    sizes = data.draw(st.sampled_from(sorted(described._chains)))
    chain, pipeline = described.chain(sizes), described.pipeline
    if pipeline is None:
        assert sizes == ()
        return
    chunk = np.resize(layout.elements, sizes) if layout.elements.size else np.zeros(sizes, chain.spec.dtype)
    chunk = chunk.astype(chain.spec.dtype, copy=False)
    encoded = bytes(chain.encode(chunk))
    if data.draw(st.booleans(), label="damaged"):
        at = data.draw(st.integers(0, max(0, len(encoded) - 1)))
        encoded = encoded[:at] + bytes(each ^ 16 for each in encoded[at : at + 1]) + encoded[at + 1 :]
    try:
        expected = chain.decode(encoded)
    except CorruptionError:
        expected = None
    first = tuple(data.draw(st.integers(0, n - 1)) for n in sizes)
    counts = tuple(data.draw(st.integers(1, n - start)) for n, start in zip(sizes, first, strict=True))
    out, again = (np.empty(counts, chain.spec.dtype) for _ in range(2))
    raw, raw_again = (each.view(f"V{each.dtype.itemsize}") for each in (out, again))
    offset = data.draw(st.integers(0, 10))
    axes = [
        ("s", *(np.array([each], np.int64) for each in (n, start, count, 0)), 1)
        for n, start, count in zip(sizes, first, counts, strict=True)
    ]
    with tempfile.TemporaryFile() as file:
        file.write(bytes(offset) + encoded + b"more")
        file.flush()
        reason = decode_chunk(pipeline, file.fileno(), offset, len(encoded), sizes, first, raw)
        jobs = np.array([[0, offset, len(encoded), *[0] * len(sizes)]], np.int64)
        failures = pipeline.decode([file.fileno()], jobs, axes, raw_again, 2)
    assert failures == ([] if reason is None else [(0, reason)])
    if expected is None and reason is None:
        assert not described.is_checked
        assert counts != sizes  # what is damaged was not decoded
    else:
        assert (reason is None) == (expected is not None)
    if expected is not None:
        part = expected[tuple(slice(start, start + count) for start, count in zip(first, counts, strict=True))]
        same_bits(out, part)
        same_bits(again, part)


@given(NATIVE, st.booleans(), st.integers(0, 2**32 - 1), st.data())
def test_damage(layout: Layout, in_memory: bool, seed: int, data: st.DataObject) -> None:
    """Both refuse damaged bytes for the same reason, said of the same place, or both give the same elements.

    But for chunks without a checksum, of which the kernel decodes a part where only that is read.
    """
    with new_store(in_memory) as store, zardine.config.set({"threads": 1}):  # several find errors in any order
        written = started(layout, store)
        keys = sorted(set(store.list_prefix("")) - {"zarr.json"})
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        stored = content(store, key)
        store.set(key, damage(stored, np.random.default_rng(seed), [stored]))
        whole = lambda each: each[...]  # noqa: E731
        for read in (whole, data.draw(reads(written)), data.draw(reads(written))):
            native = zardine.Array.open(written.store_path)  # with nothing in caches
            found, expected = outcome(read, native), outcome(read, without_kernel(native))
            if isinstance(expected, tuple):
                if read is whole or native._handle.layout.is_checked or isinstance(found, tuple):
                    assert found == expected
            else:
                same_bits(found, expected)
