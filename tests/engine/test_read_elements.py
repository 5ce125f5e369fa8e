"""Chunks of one byte string each, of which many are decoded together: the same values and errors as one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.engine import read_elements
from zardine.errors import ChecksumError, CorruptionError
from zardine.storage import LocalStore, MemoryStore, Store

SHAPE, SHARD = (9, 7), (4, 3)
CODECS: dict[str, list[Any]] = {
    "plain": [],
    "checksum": ["crc32c"],
    "two checksums": ["crc32c", "crc32c"],
    "zstd": ["zstd", "crc32c"],
}


def values() -> np.ndarray[Any, Any]:
    """Byte strings of 0 to 39 bytes, some missing."""
    rng = np.random.default_rng(0)
    found = np.empty(SHAPE, object)
    for place in np.ndindex(SHAPE):
        found[place] = rng.bytes(int(rng.integers(0, 40))) if rng.random() < 0.8 else b""
    found[:4, :3] = b""  # no object at all
    return found


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else LocalStore(tmp_path / "a.zarr")


def stored(store: Store, codecs: list[Any], shards: tuple[int, int] | None = SHARD) -> zardine.Array:
    array = zardine.create_array(
        store,
        shape=SHAPE,
        chunks=(1, 1),
        shards=shards,
        dtype="bytes",
        compressors=codecs,
        fill_value=b"",
        checksum=False,
    )
    array[...] = values()
    return array


@pytest.mark.parametrize("shards", [SHARD, None], ids=["sharded", "flat"])
@pytest.mark.parametrize("codecs", CODECS)
def test_all_selections(
    store: Store, codecs: str, shards: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    array, wanted = stored(store, CODECS[codecs], shards), values()
    assert read_elements.element_chain(array._handle.layout) is not None
    rng = np.random.default_rng(1)
    rows, columns = rng.integers(0, 9, 40), rng.integers(0, 7, 40)  # many of them twice
    once = np.stack(np.unravel_index(rng.permutation(63)[:30], SHAPE))
    for at_once, few in ((2**25, 8), (50, 0)):
        monkeypatch.setattr(read_elements, "_AT_ONCE", at_once)
        monkeypatch.setattr(read_elements, "_FEW", few)
        for selection in (..., np.s_[2:8, 1:], np.s_[::2, 1::3], np.s_[5], np.s_[8:9, 6:7], np.s_[3:3]):
            assert np.array_equal(np.asarray(array[selection]), wanted[selection])
        assert np.array_equal(array.vindex[tuple(once)], wanted[tuple(once)])
        assert np.array_equal(array.vindex[rows, columns], wanted[rows, columns])
        assert np.array_equal(array.oindex[[5, 1, 5], [6, 0]], wanted[np.ix_([5, 1, 5], [6, 0])])


@pytest.mark.parametrize("codecs", ["checksum", "zstd"])
def test_a_damaged_one_is_named(store: Store, codecs: str) -> None:
    array = stored(store, CODECS[codecs])
    data = bytearray(store.get("c/1/1") or b"")
    data[20] ^= 1
    store.set("c/1/1", bytes(data))
    with pytest.raises(ChecksumError) as caught:
        array[...]
    message = str(caught.value)
    assert "c/1/1" in message
    assert "chunk" in message
    assert np.array_equal(np.asarray(array[:4]), values()[:4])


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"\2\0\0\0\3\0\0\0abc", "2 elements, expected 1"),
        (b"\1\0\0\0\4\0\0\0abc", "1 bytes past the end"),
        (b"\1\0\0\0\2\0\0\0abc", "1 bytes follow the last element"),
        (b"\1\0\0", "3 bytes are too few"),
    ],
)
def test_a_wrong_frame_is_the_error_of_the_codec(store: Store, frame: bytes, reason: str) -> None:
    array = zardine.create_array(
        store, shape=(3,), chunks=(1,), dtype="bytes", compressors=[], fill_value=b"", checksum=False
    )
    array[...] = np.array([b"x", b"y", b"z"], object)
    store.set("c/1", frame)
    with pytest.raises(CorruptionError, match=reason):
        array[...]
    assert array[0:1].tolist() == [b"x"]


def test_missing_ones_can_be_refused(store: Store) -> None:
    stored(store, CODECS["checksum"])
    array = zardine.open_array(store, mode="r", config={"read_missing_chunks": False})
    with pytest.raises(zardine.errors.ChunkNotFoundError):
        array[...]


def test_points_take_the_places_of_damaged_chunks_of_one_element(tmp_path: Path) -> None:
    array = stored(LocalStore(tmp_path / "a.zarr"), CODECS["checksum"])
    place = next(map(tuple, np.argwhere(values() != b"")))
    (file,) = (tmp_path / "a.zarr/c" / "/".join(str(a // b) for a, b in zip(place, SHARD, strict=True)),)
    data = bytearray(file.read_bytes())
    at = bytes(data).index(values()[place])
    data[at] ^= 1
    file.write_bytes(data)
    with pytest.raises(ChecksumError):
        array.get_coordinate_selection(place)
    new = np.empty(1, object)
    new[0] = b"new"
    array.set_coordinate_selection(tuple(np.array([each]) for each in place), new)
    wanted = values()
    wanted[place] = b"new"
    assert np.array_equal(np.asarray(array[...]), wanted)
