"""Codecs before the sharding codec, moved to the inner chunks where that means the same."""

from typing import Any

import numpy as np
import pytest

import zardine
from zardine.codecs import BitRoundCodec, BytesCodec, CastValue, GzipCodec, ShardingCodec, TransposeCodec
from zardine.storage import CountingStore, MemoryStore

VALUES = np.arange(96, dtype="f8").reshape(8, 12)


def made(chunks: Any, *codecs: Any) -> tuple[CountingStore, zardine.Array]:
    store = CountingStore(MemoryStore())
    array = zardine.create((8, 12), store=store, dtype="f8", chunks=chunks, codecs=codecs)
    array[...] = VALUES
    opened = zardine.open_array(store)
    store.reset()
    return store, opened


@pytest.mark.parametrize("chunks", [(8, 12), (4, 6), [[4, 2, 2], [6, 6]]])
def test_the_shard_has_the_data_type_that_the_codecs_before_it_give(chunks: Any) -> None:
    """Elements of one byte need no byte order, those of the array do."""
    sharding = ShardingCodec(chunk_shape=(2, 3), codecs=(BytesCodec(endian=None),))
    _, array = made(chunks, CastValue(data_type="uint8"), sharding)
    assert array.chunks == (2, 3)
    array[3, 5] = 100
    array[7] = 0
    want = VALUES.copy()
    want[3, 5] = 100
    want[7] = 0
    assert (array[...] == want).all()


def test_transposes_turn_the_inner_chunks_and_the_index() -> None:
    sharding = ShardingCodec(chunk_shape=(3, 2), codecs=(BytesCodec(),))
    store, array = made((8, 12), TransposeCodec(order=(1, 0)), sharding)
    assert (array.chunks, array.shards) == ((2, 3), (8, 12))
    assert array[5, 7] == VALUES[5, 7]
    assert store.reset().reads == 2  # index and one inner chunk
    array[2:4, 3:6] = 0
    want = VALUES.copy()
    want[2:4, 3:6] = 0
    assert (array[...] == want).all()
    # the codec itself, run over whole shards, says the same
    whole = zardine.create(
        (8, 12),
        dtype="f8",
        chunks=(8, 12),
        codecs=[TransposeCodec(order=(1, 0)), ShardingCodec(chunk_shape=(3, 2), codecs=(BytesCodec(),)), "crc32c"],
    )
    whole[...] = want
    stored = bytes(whole.store.get("c/0/0") or b"")[:-4]
    twin = zardine.open_array({"zarr.json": array.store.get("zarr.json"), "c/0/0": stored})
    assert (twin[...] == want).all()


@pytest.mark.parametrize(
    ("codecs", "chunks"),
    [
        ((BitRoundCodec(keepbits=52), ShardingCodec(chunk_shape=(2, 3))), (2, 3)),
        ((ShardingCodec(chunk_shape=(2, 3)), GzipCodec(level=1)), (8, 12)),
        (({"name": "reshape", "configuration": {"shape": [96]}}, ShardingCodec(chunk_shape=(6,))), (8, 12)),
    ],
)
def test_inner_chunks_are_reached_only_where_that_is_possible(codecs: Any, chunks: Any) -> None:
    store, array = made((8, 12), *codecs)
    assert array.chunks == chunks
    assert (array.shards is None) == (chunks == (8, 12))
    assert array[5, 7] == VALUES[5, 7]
    assert store.reset().reads == (2 if array.shards else 1)
    array[0, 0] = 5
    assert array[0, 0] == 5
    assert (array[1:] == VALUES[1:]).all()
