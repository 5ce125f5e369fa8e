"""Which objects of a new array are written, and in which portions: against NumPy, with random grids."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import zardine
from effort import examples
from zardine.indexing.boxes import ranges_of
from zardine.indexing.plan import plan_grid
from zardine.storage import MemoryStore, WrapperStore
from zardine.tools.converting.work import ArrayWork, blocks_of, gather_stored, steps_of
from zardine.tools.listing import GatheredCells


@st.composite
def layouts(draw: Any, shape: tuple[int, ...]) -> dict[str, Any]:
    """Chunks, and shards or none; or chunks of differing lengths."""
    if draw(st.integers(0, 4)) == 0:
        axes = []
        for length in shape:
            sizes = [draw(st.integers(1, 9))]
            while sum(sizes) < length:
                sizes.append(draw(st.integers(1, 9)))
            axes.append(tuple(sizes))
        return {"chunks": tuple(axes), "shards": None} if axes else {"chunks": (), "shards": None}
    chunks = tuple(draw(st.integers(1, 8)) for _ in shape)
    if not shape or draw(st.booleans()):
        return {"chunks": chunks, "shards": None}
    return {"chunks": chunks, "shards": tuple(size * draw(st.integers(1, 3)) for size in chunks)}


@st.composite
def arrays(draw: Any) -> tuple[zardine.Array, dict[str, Any]]:
    shape = tuple(draw(st.lists(st.integers(0, 17), max_size=3)))
    source = zardine.create_array(MemoryStore(), shape=shape, dtype="i2", compressors=None, **draw(layouts(shape)))
    for _ in range(draw(st.integers(0, 3))):
        box = tuple(slice(*sorted((draw(st.integers(0, n)), draw(st.integers(0, n))))) for n in shape)
        source[box] = draw(st.integers(0, 9))
    return source, draw(layouts(shape))


def touched(source: zardine.Array, target: zardine.Array) -> set[tuple[int, ...]]:
    """Objects of the target in which elements of stored objects of the source lie, by trying all."""
    mask = np.zeros(source.shape, bool)
    for coordinates in product(*(range(len(sizes)) for sizes in source.write_chunk_sizes)):
        if source.store.exists(source._handle.key(coordinates)):
            mask[region(source, coordinates)] = True
    grid = product(*(range(len(sizes)) for sizes in target.write_chunk_sizes))
    return {coordinates for coordinates in grid if mask[region(target, coordinates)].any()}


def plan_work(source: zardine.Array, target: zardine.Array) -> ArrayWork:
    """What is made of what is stored, straight."""
    old, new = source._handle, target._handle
    (work,) = steps_of(old, new, blocks_of(old, new), (source.store, ""))
    found = GatheredCells()
    gather_stored(found, 0, old, [work])
    return replace(work, cells=found.cells((0, 0)))


def region(array: zardine.Array, coordinates: tuple[int, ...]) -> tuple[slice, ...]:
    axes = zip(array._handle.layout.grids.storage, coordinates, strict=True)
    return tuple(slice(axis.start(i), min(axis.start(i) + axis.extent(i), axis.length)) for axis, i in axes)


@settings(max_examples=examples(40), deadline=None)
@given(arrays())
def test_every_object_that_holds_something_is_made_once(case: tuple[zardine.Array, dict[str, Any]]) -> None:
    source, layout = case
    target = zardine.create_array(MemoryStore(), shape=source.shape, dtype="i2", **layout)
    work = plan_work(source, target)
    made = []
    for portion in work.portions():
        box = tuple(slice(*each) for each in ranges_of(portion))
        objects = list(plan_grid(portion, work.target.layout.grids).object_coordinates())
        assert all(
            inner.start >= outer.start and inner.stop <= outer.stop
            for each in objects
            for inner, outer in zip(region(target, each), box, strict=True)
        )
        made += objects
    assert len(made) == len(set(made)) == work.count

    def block(coordinates: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(
            axis.find(own.start) for axis, own in zip(work.grid.axes, region(target, coordinates), strict=True)
        )

    assert set(map(block, made)) == set(map(block, touched(source, target)))
    assert set(made) >= touched(source, target)


@settings(max_examples=examples(25), deadline=None)
@given(arrays())
def test_converted_arrays_are_equal(case: tuple[zardine.Array, dict[str, Any]]) -> None:
    source, layout = case
    made = zardine.convert(source.store, MemoryStore(), compressors=None, verify=True, **layout)
    np.testing.assert_array_equal(made[...], source[...])
    assert made.nshards_initialized <= plan_work(source, made).count

    class Unlisted(WrapperStore):
        def list_dir(self, prefix: str) -> Any:
            raise zardine.errors.UnsupportedError("no lists")

        list_prefix = list_dir

    blind = zardine.convert(Unlisted(source.store), MemoryStore(), compressors=None, verify=True, **layout)
    np.testing.assert_array_equal(blind[...], source[...])
    assert blind.nshards_initialized == made.nshards_initialized


def test_arrays_of_astronomic_size() -> None:
    store = MemoryStore()
    source = zardine.create_array(store, shape=(2**62, 2**62), dtype="u1", chunks=(100, 100), zarr_format=2)
    source[2**61 : 2**61 + 3, 5] = [1, 2, 3]
    source[-1, -1] = 9
    made = zardine.convert(store, MemoryStore(), shards=(200, 200), verify=True)
    assert made[2**61 : 2**61 + 3, 5].tolist() == [1, 2, 3]
    assert made[-1, -1] == 9
    assert made.nshards_initialized == 2
