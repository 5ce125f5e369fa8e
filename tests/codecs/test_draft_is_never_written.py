"""The dialect of the sharding draft of 2023 is read, and written by no door, at no depth."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import zarr

import zardine
from zardine.codecs import BytesCodec, GzipCodec, ShardingCodec
from zardine.codecs.base import ChunkSpec
from zardine.codecs.chain import build_chain
from zardine.data_types import data_type_for
from zardine.json_document import Problems
from zardine.storage import MemoryStore

DATA = np.arange(64, dtype="u2").reshape(8, 8)
ENDIAN = {"name": "endian", "configuration": {"endian": "little"}}


def shards(shape: list[int], codecs: list[Any]) -> dict[str, Any]:
    return {"name": "sharding_indexed", "configuration": {"chunk_shape": shape, "codecs": codecs}}


FORMS: dict[str, list[Any]] = {
    "plain": [shards([4, 4], [ENDIAN])],
    "nested": [shards([4, 4], [shards([2, 2], [ENDIAN])])],
    "thrice": [shards([4, 4], [shards([2, 2], [shards([1, 2], [])])])],
    "transposed": [{"name": "transpose", "configuration": {"order": [1, 0]}}, shards([4, 4], [ENDIAN])],
    "compressed": [shards([4, 4], [ENDIAN]), {"name": "gzip", "configuration": {"level": 1}}],
}


def draft_array(codecs: list[Any]) -> zardine.Array:
    """An array in the form of the draft, in bytes that the codec itself makes."""
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [8, 8],
        "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 8]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 9,
        "codecs": codecs,
    }
    store = MemoryStore({"zarr.json": json.dumps(document).encode()})
    spec = ChunkSpec((8, 8), data_type_for("uint16"), np.array(9, "u2"))
    chain = build_chain(zardine.open_array(store).codecs, spec, "codecs", Problems())
    assert chain is not None
    store.set("c/0/0", chain.encode(DATA))
    array = zardine.open_array(store)
    assert array.is_draft
    np.testing.assert_array_equal(array[...], DATA)
    return array


def sharding_codecs(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value.get("name") == "sharding_indexed":
            yield value["configuration"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from sharding_codecs(each)


def by_reshard(source: zardine.Array, **how: Any) -> zardine.Array:
    copy = MemoryStore({key: bytes(source.store.get(key) or b"") for key in source.store.list()})
    zardine.reshard(copy, **how)
    return zardine.open_array(copy)


def group_with(make: Callable[[zardine.Group], object]) -> zardine.Array:
    group = zardine.create_group(None)
    make(group)
    return group.get_array("x")


def converted(source: zardine.Array, **how: Any) -> Any:
    return zardine.convert(source.store, MemoryStore(), **how)


def filled(array: zardine.Array) -> zardine.Array:
    array[...] = DATA
    return array


DOORS: dict[str, Callable[[zardine.Array], zardine.Array]] = {
    "from_array": lambda source: zardine.from_array(None, data=source),
    "array": lambda source: zardine.array(source),
    "zeros_like": lambda source: filled(zardine.zeros_like(source)),
    "create_array, serializer": lambda source: filled(
        zardine.create_array(None, shape=(8, 8), dtype="u2", chunks=(8, 8), compressors=None, serializer=one(source))
    ),
    "create, codecs": lambda source: filled(
        zardine.create((8, 8), dtype="u2", chunks=(8, 8), codecs=source.codecs, fill_value=9)
    ),
    "create, codecs in JSON": lambda source: filled(
        zardine.create((8, 8), dtype="u2", chunks=(8, 8), codecs=[codec.to_json() for codec in source.codecs])
    ),
    "create_hierarchy": lambda source: filled(
        dict(zardine.create_hierarchy(store=None, nodes={"x": source.metadata}))["x"]  # type: ignore[arg-type]
    ),
    "group.create_hierarchy": lambda source: filled(
        group_with(lambda group: list(group.create_hierarchy({"x": source.metadata})))
    ),
    "group[...]": lambda source: group_with(lambda group: group.__setitem__("x", source)),
    "group.create_array": lambda source: filled(
        group_with(
            lambda group: group.create_array(
                "x", shape=(8, 8), dtype="u2", chunks=(8, 8), serializer=one(source), compressors=None
            )
        )
    ),
    "copy": lambda source: group_with(lambda group: zardine.copy(source, group, name="x")),
    "from_dict": lambda source: filled(
        dict(
            zardine.create_hierarchy(
                store=None,
                nodes={"x": zardine.Array.from_dict(source.store_path, source.metadata.to_dict()).metadata},
            )
        )["x"]  # type: ignore[arg-type]
    ),
    "reshard": lambda source: by_reshard(source, shards=(8, 8)),
    "reshard to other chunks": lambda source: by_reshard(source, shards=(8, 8), chunks=(8, 4)),
    "reshard without shards": lambda source: by_reshard(source, shards=None),
    "convert": converted,
    "convert, codecs": lambda source: converted(source, codecs=list(source.codecs), chunks=(8, 8)),
    "convert, serializer": lambda source: converted(source, serializer=one(source), chunks=(8, 8), shards=None),
}


def one(source: zardine.Array) -> ShardingCodec:
    return next(codec for codec in source.codecs if isinstance(codec, ShardingCodec))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("door", DOORS)
def test_no_door_writes_it(door: str, form: str) -> None:
    source = draft_array(FORMS[form])
    made = DOORS[door](source)
    documents = [
        json.loads(bytes(made.store.get(key) or b"")) for key in made.store.list() if key.endswith("zarr.json")
    ]
    assert documents
    for configuration in sharding_codecs(documents):
        assert set(configuration) == {"chunk_shape", "codecs", "index_codecs", "index_location"}
        assert configuration["index_codecs"][-1]["name"] == "crc32c"
    again = zardine.open_array(made.store, path=made.path)
    assert not again.is_draft
    np.testing.assert_array_equal(again[...], DATA)
    again[0, 0] = 1
    assert zardine.open_array(made.store, path=made.path)[0, 0] == 1


def test_zarr_python_reads_what_was_made_of_it(tmp_path: Any) -> None:
    zardine.from_array(tmp_path, data=draft_array(FORMS["nested"]))
    np.testing.assert_array_equal(zarr.open_array(tmp_path, mode="r")[...], DATA)


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("inner", [True, False])
def test_one_within_another(outer: bool, inner: bool) -> None:
    """Also where only one of two has the form of the draft."""
    within = ShardingCodec(chunk_shape=(2, 2), codecs=(BytesCodec(), GzipCodec(level=1)), draft=inner)
    codec = ShardingCodec(chunk_shape=(4, 4), codecs=(within,), draft=outer)
    store = MemoryStore()
    array = zardine.create_array(store, data=DATA, chunks=(8, 8), serializer=codec, compressors=None)
    found = list(sharding_codecs(json.loads(bytes(store.get("zarr.json") or b""))))
    assert len(found) == 2
    assert all("index_codecs" in each for each in found)
    assert not array.read_only
    np.testing.assert_array_equal(zardine.open_array(store)[...], DATA)
