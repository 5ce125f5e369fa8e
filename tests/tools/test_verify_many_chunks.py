"""``verify`` of many small chunks: as quick as batches in the kernel, and the same reports as chunk by chunk."""

import sys
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.codecs import ShardingCodec
from zardine.storage import LocalStore, MemoryStore
from zardine.tools.checking import chunk as chunk_check
from zardine.tools.checking import stored_object as object_check

KINDS: dict[str, dict[str, Any]] = {
    "zstd": {},
    "no compression": {"compressors": None},
    "no checksum": {"checksum": False},
    "gzip": {"compressors": [{"name": "gzip", "configuration": {"level": 1}}]},
    "index at the start": {"shards": {"shape": (16, 16), "index_location": "start"}},
    "nested": {
        "chunks": (16, 16),
        "shards": None,
        "compressors": None,
        "serializer": ShardingCodec(chunk_shape=(8, 8), codecs=(ShardingCodec(chunk_shape=(2, 2)),)),
    },
    "around": {
        "chunks": (16, 16),
        "shards": None,
        "serializer": ShardingCodec(chunk_shape=(2, 2)),
        "filters": None,
        "compressors": [{"name": "gzip", "configuration": {"level": 1}}],
    },
}


def make(kind: str, store: Any, shape: tuple[int, int] = (30, 32)) -> zardine.Array:
    options = {"chunks": (2, 2), "shards": (16, 16), **KINDS[kind]}
    array = zardine.create_array(store, shape=shape, dtype="u2", **options)
    array[...] = np.random.default_rng(0).integers(0, 9, shape)
    return array


def chunk_by_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(pipeline: Any, chain: Any, sources: Any, places: Any, *, deep: bool) -> Any:
        return np.zeros(len(places), np.bool_)

    for module in (object_check, chunk_check):
        monkeypatch.setattr(module, "sound_chunks", none)


@pytest.mark.parametrize("kind", KINDS)
def test_reports_are_those_of_single_chunks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    stores = []
    for flips in (0, 1, 1, 1, 2, 5, 40):
        store = MemoryStore()
        make(kind, store)
        for key in [key for key in store.list() if "/c/" in f"/{key}"]:
            data = bytearray(store.get(key))
            for place in rng.integers(0, len(data), flips).tolist():
                data[place] ^= 1 << int(rng.integers(8))
            store.set(key, bytes(data))
        stores.append(store)
    for deep in (True, False):
        quick = [zardine.verify(store, deep=deep) for store in stores]
        with monkeypatch.context() as patched:
            chunk_by_chunk(patched)
            assert quick == [zardine.verify(store, deep=deep) for store in stores]
        assert quick[0].faults == ()
        assert not deep or any(report.faults for report in quick)


def test_a_chunk_of_the_wrong_length_without_a_checksum() -> None:
    """The kernel alone would not tell: one byte too few, or too many, in a chunk that has no checksum."""
    for change in (-1, 1):
        store = MemoryStore()
        array = zardine.create_array(
            store, shape=(4,), chunks=(2,), shards=(4,), dtype="u2", compressors=None, checksum=False
        )
        array[...] = [1, 2, 3, 4]
        shard = bytearray(store.get("c/0"))
        layout = array._handle.layout.shard((0,))
        index = layout.index_of(bytes(shard))
        index.lengths[0] = int(index.lengths[0]) + change
        for deep in (True, False):
            store.set("c/0", bytes(shard[: -layout.index_size]) + bytes(_index_bytes(index, layout)))
            found = [each for each in zardine.verify(store, deep=deep).faults if each.chunk == (0,)]
            assert [each.kind for each in found][:1] == ["chunk"], deep
            assert "4" in found[0].message


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("deep", [True, False])
@pytest.mark.parametrize("damaged", [[0], [0, 2]])
def test_objects_of_the_wrong_length_without_a_checksum(damaged: list[int], deep: bool, zarr_format: int) -> None:
    """Chunks that are objects by themselves."""
    store = MemoryStore()
    array = zardine.create_array(
        store, shape=(6,), chunks=(2,), dtype="u2", compressors=None, checksum=False, zarr_format=zarr_format
    )
    array[...] = [1, 2, 3, 4, 5, 6]
    for stored in (b"", b"123", b"12345"):
        for number in damaged:
            store.set(f"c/{number}" if zarr_format == 3 else f"{number}", stored)
        found = zardine.verify(store, deep=deep).faults
        assert [(each.kind, each.chunk) for each in found] == [("chunk", (number,)) for number in damaged]


def _index_bytes(index: Any, layout: Any) -> bytes:
    from zardine.sharding.index import encode_index

    return bytes(encode_index(index, layout.index_chain))


def test_values_beyond_the_shape_are_still_noted() -> None:
    for spoil in (False, True):
        store = MemoryStore()
        array = make("zstd", store, (32, 32))
        if not spoil:
            array[30:] = 0
        array.resize((30, 32), erase=False)
        assert [each.kind for each in zardine.verify(store).notes].count("beyond") == 2 * spoil


@pytest.mark.skipif(zardine.__kernel__ is None, reason="needs the kernel")
@pytest.mark.parametrize("kind", ["zstd", "no compression", "nested"])
@pytest.mark.parametrize("deep", [True, False])
def test_the_number_of_chunks_does_not_count(kind: str, deep: bool, tmp_path: Any) -> None:
    found = []
    shape = (64, 64) if kind == "nested" else (64, 60)
    for number, inner in enumerate((8, 1)):
        options = dict(KINDS[kind])
        if kind == "nested":
            inside = ShardingCodec(chunk_shape=(inner, inner))
            options["serializer"] = ShardingCodec(chunk_shape=(16, 16), codecs=(inside,))
        store = LocalStore(tmp_path / str(number))
        defaults = {"chunks": (inner, inner), "shards": (16, 16)}
        array = zardine.create_array(store, shape=shape, dtype="u2", **{**defaults, **options})
        array[...] = 1 + np.arange(shape[0] * shape[1]).reshape(shape)
        zardine.verify(store, deep=deep)
        count = 0

        def note(frame: Any, event: str, argument: Any) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        with zardine.config.set({"threads": 1}):
            sys.setprofile(note)
            try:
                assert zardine.verify(store, deep=deep)
            finally:
                sys.setprofile(None)
        found.append(count)
    assert found[1] < 1.3 * found[0] + 64 * 20
