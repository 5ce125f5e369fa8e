"""Damaged ``zarr.json`` documents: they open where the damage is harmless, or give a MetadataError; nothing else."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import pytest

import zardine
from corrupt.specimens import CRC, LITTLE, TRANSPOSE, ZSTD, blosc, byte_changes, cut_ends, scrambled, sharding
from effort import SOAK, some
from zardine.codecs import sharding_indexed
from zardine.codecs.chain import build_chain
from zardine.errors import MetadataError, NodeNotFoundError, UnsupportedError, ZardineError

ARRAY: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4, 6],
    "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": "NaN",
    "codecs": [TRANSPOSE, sharding((3, 2), [LITTLE, blosc("zstd"), CRC], "start")],
    "attributes": {"title": "tin", "nested": {"list": [1, None, "x"]}},
    "dimension_names": ["y", None],
    "note": {"must_understand": False, "text": "may be ignored"},
}
STRUCT = ARRAY | {
    "data_type": {
        "name": "struct",
        "configuration": {
            "fields": [
                {"name": "a", "data_type": "int16"},
                {
                    "name": "t",
                    "data_type": {"name": "numpy.datetime64", "configuration": {"unit": "ns", "scale_factor": 1}},
                },
                {"name": "s", "data_type": {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}},
            ]
        },
    },
    "fill_value": {"a": -1, "t": "NaT", "s": "x"},
    "codecs": [sharding((1, 2), [LITTLE, ZSTD, CRC])],
}
RECTILINEAR = ARRAY | {
    "chunk_grid": {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[[2, 2]], [2, 4]]}},
    "codecs": [LITTLE, {"name": "gzip", "configuration": {"level": 1}}],
    "data_type": "int64",
    "fill_value": -(2**63),
}
GROUP: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "group",
    "attributes": {"a": 1},
    "consolidated_metadata": {
        "kind": "inline",
        "must_understand": False,
        "metadata": {"g": {"zarr_format": 3, "node_type": "group"}, "g/x": ARRAY},
    },
}
DOCUMENTS = {"array": ARRAY, "struct": STRUCT, "rectilinear": RECTILINEAR, "group": GROUP}

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 255, 2**31, 2**53 + 1, 2**62, 2**63, 2**64, 10**30, 0.5, 1.0, -0.0, 1e300,
    "", "a", "NaN", "0x7fc00001", "0xzz", "-Infinity", "🐟" * 50, "\x00", "../..", [], [0], [1, 2], [[1, 2]], [None],
    ["x"] * 3, {}, {"name": "x"}, {"name": "bytes"}, {"configuration": {}}, {"name": []}, {"must_understand": False},
    {"name": "x", "must_understand": False}, "bytes", "crc32c", "regular", "sharding_indexed", "uint8", "string", "r24",
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all members and elements of a document."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(value[key], (*path, key))


def parent(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        document = document[key]
    return document


def mutations(document: dict[str, Any], rng: random.Random, count: int) -> Iterator[bytes]:
    """The document with members removed, replaced, renamed, doubled, or moved elsewhere."""
    every = list(places(document))
    for path in every:
        changed = copy.deepcopy(document)
        del parent(changed, path)[path[-1]]
        yield json.dumps(changed).encode()
    for _ in range(count):
        changed = copy.deepcopy(document)
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            path = rng.choice(list(places(changed)) or [("x",)])
            inside, key = parent(changed, path), path[-1]
            action = rng.randrange(6)
            try:
                if action <= 2:
                    inside[key] = copy.deepcopy(rng.choice(VALUES))
                elif action == 3:
                    other = rng.choice(every)
                    inside[key] = copy.deepcopy(parent(document, other)[other[-1]])
                elif isinstance(inside, list):
                    inside.insert(key, copy.deepcopy(inside[key]))
                elif action == 4:
                    inside[rng.choice(("x", "name", "NAME", "", "é", "configuration"))] = inside.pop(key)
                else:
                    inside["x"] = {"must_understand": rng.choice((True, False, None))}
            except (KeyError, IndexError):
                continue
        yield json.dumps(changed).encode()


def use(document: bytes) -> str:
    """Open, describe, read and write what the document says; gives what happened."""
    store = zardine.storage.MemoryStore({"zarr.json": document})
    try:
        node = zardine.open(store, mode="r+")
    except MetadataError as error:
        return "refused" if error.problems and str(error) else "refused without reason"
    str(node.info)
    repr(node)
    if isinstance(node, zardine.Group):
        if "consolidated_metadata" in json.loads(document) and node.metadata.consolidated_metadata is None:
            return "refused"
        try:
            for _, member in node.members(max_depth=None):
                repr(member)
            return "group"
        except MetadataError:
            return "refused member"
    if node.size > 2**16:
        return "large"
    try:
        again = zardine.open(zardine.storage.MemoryStore({"zarr.json": json.dumps(node.metadata.to_dict()).encode()}))
        assert again.metadata == node.metadata
        found = node[...]
        assert found.shape == node.shape
        if prod(max((size for size, _ in axis.runs), default=1) for axis in node._handle.layout.grids.storage) <= 2**16:
            node[...] = found
            assert node[...].tolist() == found.tolist() or found.tobytes() == node[...].tobytes()
    except ZardineError as error:
        return type(error).__name__
    return "works"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_random_changes(name):
    outcomes: dict[str, int] = {}
    for number, document in enumerate(mutations(DOCUMENTS[name], random.Random(9), 30000 if SOAK else 400)):
        try:
            outcome = use(document)
        except Exception as error:
            raise AssertionError(f"mutation {number}: {document.decode()}") from error
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert outcomes["refused"] > 60
    assert outcomes.keys() <= {
        "refused",
        "works",
        "large",
        "group",
        "refused member",
        "EncodeError",
        "UnsupportedError",
    }


@pytest.mark.parametrize("name", DOCUMENTS)
def test_damaged_bytes(name):
    document = json.dumps(DOCUMENTS[name], separators=(",", ":")).encode()
    scrambles = scrambled(document, np.random.default_rng(11), 2000 if SOAK else 40)
    for damaged in (*some(byte_changes(document), 40), *some(cut_ends(document), 4), *scrambles):
        try:
            use(damaged)
        except Exception as error:
            raise AssertionError(damaged) from error


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"3",
        b'"zarr"',
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b'{"zarr_format": 3, "node_type": "array"}',
        b'{"zarr_format": 2}',
        b'{"zarr_format": 3.0, "node_type": "group"}',
        b'{"zarr_format": true, "node_type": "group"}',
        b'{"zarr_format": 3, "node_type": "group", "node_type": "group"}',
        b'{"zarr_format": 3, "node_type": "group", "attributes": {"x": NaN, "x": 1}}',
        b'{"a":' * 100_000,
        b"[" * 100_000,
        b'{"zarr_format": 3, "node_type": "group", "attributes": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"zarr_format": ' + b"9" * 5000 + b', "node_type": "group"}',
        b'{"zarr_format": 3, "node_type": "group", "attributes": {"n": ' + b"9" * 5000 + b"}}",
        b'{"zarr_format": 3, "node_type": "\\ud800"}',
    ],
    ids=lambda document: document[:40].decode("latin-1"),
)
def test_not_a_document(document):
    store = zardine.storage.MemoryStore({"zarr.json": document, "g/zarr.json": document})
    for opening in (zardine.open, zardine.open_array, zardine.open_group):
        with pytest.raises((MetadataError, NodeNotFoundError, UnsupportedError)) as caught:
            opening(store, mode="r")
        assert len(str(caught.value)) < 2000


def test_every_problem_is_told_at_once_with_its_place():
    document = copy.deepcopy(ARRAY)
    document["shape"][1] = -6
    document["chunk_grid"]["configuration"]["chunk_shape"] = "4"
    document["fill_value"] = "nan"
    document["codecs"][1]["configuration"]["codecs"][1]["configuration"]["clevel"] = 10
    document["extra"] = 1
    with pytest.raises(MetadataError) as caught:
        zardine.open_array(zardine.storage.MemoryStore({"zarr.json": json.dumps(document).encode()}), mode="r")
    found = {problem.place for problem in caught.value.problems}
    assert found >= {"shape[1]", "fill_value", "extra"}


def test_shards_in_shards_are_prepared_once_at_each_depth(monkeypatch):
    """A small document nests them sixty deep; to prepare each depth twice for the one around takes for ever."""
    codecs = [LITTLE, CRC]
    for _ in range(60):
        codecs = [sharding((4, 6), codecs)]
    calls = []

    def counted(*arguments):
        calls.append(1)
        assert len(calls) < 1000
        return build_chain(*arguments)

    monkeypatch.setattr(sharding_indexed, "build_chain", counted)
    array = zardine.open(zardine.storage.MemoryStore({"zarr.json": json.dumps(ARRAY | {"codecs": codecs}).encode()}))
    assert np.isnan(array[...]).all()
    array[0, 0] = 1
    assert array[0, 0] == 1
