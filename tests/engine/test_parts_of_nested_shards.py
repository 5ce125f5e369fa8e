"""Of shards in shards, only the inner chunks that a selection touches are decoded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.codecs import BytesCodec, Crc32cCodec, ShardingCodec, ZstdCodec
from zardine.codecs.chain import box_around
from zardine.errors import CorruptionError

SHAPE, SHARD, MIDDLE, INNER = (24, 32, 16), (24, 16, 16), (12, 16, 8), (4, 8, 8)
VALUES = np.arange(np.prod(SHAPE), dtype="i4").reshape(SHAPE)
SELECTIONS: list[Any] = [
    np.s_[5],
    np.s_[:, 9, :],
    np.s_[3, 4, 5],
    np.s_[2:23:7, ::5, 15],
    np.s_[::-3, 1:30, 7:9],
    np.s_[0:0, :, :],
    np.s_[...],
]


def made(path: Path) -> zardine.Array:
    checked = [BytesCodec(), ZstdCodec(), Crc32cCodec()]
    index = [BytesCodec(), Crc32cCodec()]
    shards = ShardingCodec(chunk_shape=INNER, codecs=checked, index_codecs=index)
    outer = ShardingCodec(chunk_shape=MIDDLE, codecs=[shards], index_codecs=index)
    array = zardine.create_array(
        path, shape=SHAPE, chunks=SHARD, dtype="i4", serializer=outer, compressors=None, fill_value=-1
    )
    array[...] = VALUES
    return zardine.open_array(path, mode="r+")


def test_selections(tmp_path: Path) -> None:
    array, expected = made(tmp_path / "a"), VALUES.copy()
    array[8:12, 8:16] = expected[8:12, 8:16] = -1  # inner chunks that are not stored
    for each in (array, zardine.open_array(tmp_path / "a", mode="r")):
        for selection in SELECTIONS:
            assert np.array_equal(each[selection], expected[selection])
        rows, columns = [20, 3, 3], [31, 0]
        assert np.array_equal(each.oindex[rows, columns, 2:9], expected[np.ix_(rows, columns, range(2, 9))])
        points = np.random.default_rng(0).integers(0, SHAPE, (40, 3)).T
        assert np.array_equal(each.vindex[tuple(points)], expected[tuple(points)])


def test_other_inner_chunks_are_not_looked_at(tmp_path: Path) -> None:
    array = made(tmp_path)
    place = tmp_path / "c" / "0" / "0" / "0"
    data = bytearray(place.read_bytes())
    data[10] ^= 1  # in the first inner chunk
    place.write_bytes(data)
    with pytest.raises(CorruptionError):
        array[0, 0, 0]
    with pytest.raises(CorruptionError):
        array[...]
    assert array[4, 0, 0] == VALUES[4, 0, 0]
    assert np.array_equal(array[:12, 8:16, :8], VALUES[:12, 8:16, :8])


@pytest.mark.parametrize(
    ("part", "box"),
    [
        ((slice(2, 9, 3), slice(None, None, -1), 4), ((2, 9), (0, 10), (4, 5))),
        ((slice(9, 2, -3), slice(0, 0), np.array([7, 3])), ((3, 10), (0, 10), (3, 8))),
        (np.ix_([5, 2], [1], [9, 8]), ((2, 6), (1, 2), (8, 10))),
        ((...,), ((0, 10),) * 3),
    ],
)
def test_boxes_around_parts(part: tuple[Any, ...], box: Any) -> None:
    assert box_around(part, (10, 10, 10)) == box
