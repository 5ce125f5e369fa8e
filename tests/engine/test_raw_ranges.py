"""Of chunks far away that are stored as they lie in memory only the wanted part is fetched."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.engine.raw_ranges import raw_ranges
from zardine.engine.read_each import read_each
from zardine.errors import CorruptionError
from zardine.indexing.parse import parse_basic
from zardine.indexing.plan import make_plan
from zardine.kernel import KERNEL
from zardine.storage import CountingStore, MemoryStore, WrapperStore
from zardine.stores.base import ReadCost

SHAPE = (16, 64, 128)
VALUES = np.arange(np.prod(SHAPE), dtype="u2").reshape(SHAPE)
GAP = 4096


class Far(WrapperStore):
    """A store where 4096 bytes flow in the time of a request."""

    @property
    def cost(self) -> ReadCost:
        return ReadCost(latency=0.01, bandwidth=GAP / 0.01)

    @property
    def has_cheap_looks(self) -> bool:
        return False


def opened(**how: Any) -> tuple[CountingStore, zardine.Array]:
    inner = MemoryStore()
    made: dict[str, Any] = {"dtype": "<u2", "compressors": None, "checksum": False, "chunks": SHAPE, **how}
    zardine.create_array(inner, shape=(32, 64, 128), **made)[:16] = VALUES
    store = CountingStore(Far(inner))
    array = zardine.open_array(store, mode="r", zarr_format=3)
    store.reset()
    return store, array


SELECTIONS: dict[str, tuple[Any, int]] = {
    "a plane": ((3,), 64 * 128 * 2),
    "a row of planes": ((slice(3, 7),), 4 * 64 * 128 * 2),
    "every other plane": ((slice(3, 8, 2),), 3 * 64 * 128 * 2),
    "an element": ((5, 6, 7), 2),
    "a line": ((5, slice(None), 7), 63 * 256 + 2),
    "far lines": ((slice(0, 16), slice(2, 4), slice(5, 9)), 16 * (256 + 8)),
    "backwards": ((slice(7, 3, -1), 1), 4 * 256),
    "two planes": (([3, 9],), 7 * 64 * 128 * 2),
    "nearly all": ((slice(0, 16), slice(1, 64)), SHAPE[0] * SHAPE[1] * SHAPE[2] * 2),
}


@pytest.mark.parametrize("name", SELECTIONS)
@pytest.mark.parametrize("how", [{}, {"dtype": ">u2"}, {"dtype": "bool"}], ids=["little", "big", "bool"])
def test_only_what_is_wanted_is_fetched(name: str, how: dict[str, Any]) -> None:
    store, array = opened(**how)
    chosen, nbytes = SELECTIONS[name]
    values = VALUES.astype(how.get("dtype", "<u2"))
    expected = values[chosen] if name != "two planes" else values[[3, 9]]
    np.testing.assert_array_equal(array.oindex[chosen] if name == "two planes" else array[chosen], expected)
    counts = store.reset()
    assert counts.reads == 1
    if how.get("dtype") != "bool" and KERNEL is not None:
        if name == "every other plane":
            assert counts.bytes_read in (nbytes, 5 * 64 * 128 * 2)  # the box around them, or they alone
        else:
            assert counts.bytes_read == nbytes


def test_points_are_within_the_box_around_them() -> None:
    store, array = opened()
    assert array.vindex[[3, 4], [5, 6], [7, 8]].tolist() == VALUES[[3, 4], [5, 6], [7, 8]].tolist()
    if KERNEL is not None:
        assert store.reset().bytes_read < 3 * 16384


def test_another_order_of_axes() -> None:
    store, array = opened(filters=[zardine.codecs.TransposeCodec(order=(2, 0, 1))])
    assert (array[:16, :, 3] == VALUES[:, :, 3]).all()
    if KERNEL is not None:
        assert store.reset().bytes_read == 16 * 64 * 2


def test_what_is_compressed_or_has_a_checksum_is_fetched_whole() -> None:
    for how in ({"compressors": "auto"}, {"checksum": True}):
        store, array = opened(**how)
        whole = store.size("c/0/0/0")
        store.reset()
        assert (array[3] == VALUES[3]).all()
        assert store.reset().bytes_read == whole


@pytest.mark.parametrize("how", [{}, {"shards": (32, 64, 128)}], ids=["chunk", "shard"])
def test_what_is_kept_decoded_or_given_whole_is_whole(how: dict[str, Any]) -> None:
    _, array = opened(**how)
    handle = array._handle
    part = next(make_plan(parse_basic((3,), array.shape), handle.layout.grids).parts())
    (seen,) = read_each(handle, part)
    assert seen.values is not None
    assert (seen.values == VALUES).all()
    kept = array.with_config({"cache": "1 MiB"})
    for plane in (3, 9, 20):
        assert (kept[plane] == (VALUES[plane] if plane < 16 else 0)).all()


IN_SHARDS: dict[str, Any] = {"chunks": (8, 64, 128), "shards": (32, 64, 128)}
"""Four chunks, of which two are stored."""


@pytest.mark.parametrize("name", SELECTIONS)
@pytest.mark.parametrize("at_start", [False, True])
def test_only_what_is_wanted_is_fetched_of_inner_chunks(name: str, at_start: bool) -> None:
    place = "start" if at_start else "end"
    codec = zardine.codecs.ShardingCodec(
        chunk_shape=IN_SHARDS["chunks"], codecs=[zardine.codecs.BytesCodec()], index_location=place
    )
    store, array = opened(chunks=IN_SHARDS["shards"], serializer=codec)
    chosen, nbytes = SELECTIONS[name]
    reader = array.oindex if name == "two planes" else array
    expected = VALUES[[3, 9]] if name == "two planes" else VALUES[chosen]
    np.testing.assert_array_equal(reader[chosen], expected)
    cold = store.reset()
    np.testing.assert_array_equal(reader[chosen], expected)
    warm = store.reset()
    assert (cold.reads, warm.reads) == (2, 1)
    index = cold.bytes_read - warm.bytes_read
    assert index == 4 * 16 + 4
    if KERNEL is not None:
        assert warm.bytes_read == nbytes or name in ("two planes", "every other plane", "nearly all")
        assert warm.bytes_read <= max(nbytes, 5 * 64 * 128 * 2)


def test_inner_chunks_that_are_missing_damaged_or_replaced() -> None:
    store, array = opened(**IN_SHARDS)
    assert (array[14:18, 3] == np.concatenate([VALUES[14:16, 3], np.zeros((2, 128), "u2")])).all()
    writer = zardine.open_array(store.store.store, mode="r+")
    writer[8:16] = VALUES[:8]  # the index that is remembered is of another version now
    assert (array[14, 3] == VALUES[6, 3]).all()
    writer[:, :, :] = 0
    assert (array[14, 3] == 0).all()
    writer[...] = 1
    layout = array._handle.layout.shard((0, 0, 0))
    key = "c/0/0/0"
    whole = bytes(store.get(key))
    index = layout.decode_index(whole[-layout.index_size :])
    index.lengths[1] -= 2
    store.store.store.set(key, whole[: -layout.index_size] + bytes(layout.encode_index(index)))
    assert (array[0] == 1).all()
    with pytest.raises(CorruptionError, match=r"expected 131072.*131070|131070"):
        array[9]


def test_inner_chunks_with_checksums_are_fetched_whole() -> None:
    store, array = opened(**IN_SHARDS, checksum=True)
    assert (array[3] == VALUES[3]).all()
    assert store.reset().bytes_read > VALUES.nbytes / 2


def test_a_chunk_of_another_length_is_damaged_and_a_missing_one_is_empty() -> None:
    store, array = opened()
    assert (array[20] == 0).all()
    whole = bytes(store.get("c/0/0/0") or b"")
    for cut in (whole[:-2], whole[:100], b"", whole + b"12"):
        store.store.store.set("c/0/0/0", cut)
        with pytest.raises(CorruptionError, match="expected 262144"):
            array[3]


@pytest.mark.parametrize("gap", [0, 100, 4000, 10**9])
def test_ranges_hold_every_element_and_are_farther_apart_than_the_gap(gap: int) -> None:
    _, array = opened()
    chain = array._handle.layout.chain_of((0, 0, 0))
    random = np.random.default_rng(gap)
    for _ in range(50):
        low = [int(random.integers(0, length)) for length in SHAPE]
        high = [int(random.integers(a, length)) + 1 for a, length in zip(low, SHAPE, strict=True)]
        box = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        found = raw_ranges(chain, box, gap)
        if found is None:
            assert VALUES[box].nbytes >= VALUES.nbytes - gap or gap > 0
            continue
        held = np.zeros(VALUES.nbytes, bool)
        for start, size in found:
            held[start : start + size] = True
        assert held.reshape(*SHAPE, 2)[box].all()
        gaps = [b[0] - a[0] - a[1] for a, b in pairwise(found)]
        assert all(each > gap for each in gaps)
