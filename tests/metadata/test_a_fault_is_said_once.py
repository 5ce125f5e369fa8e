"""One wrong member of a document is one problem, at its place, with what is really there."""

import json

import pytest

import zardine
from zardine.errors import MetadataError, ZardineError
from zardine.storage import MemoryStore

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BLOSC = {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "blocksize": 0}
SHARDS = {
    "chunk_shape": [2, 2],
    "codecs": [LITTLE, {"name": "blosc", "configuration": BLOSC | {"typesize": 2}}, {"name": "crc32c"}],
    "index_codecs": [LITTLE, {"name": "crc32c"}],
    "index_location": "end",
}
ARRAY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4, 4],
    "data_type": "int16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0,
    "codecs": [
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        {"name": "sharding_indexed", "configuration": SHARDS},
        {"name": "gzip", "configuration": {"level": 1}},
    ],
    "attributes": {},
    "dimension_names": ["x", "y"],
}
TIME = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}
FIELDS = [{"name": "a", "data_type": "int16"}, {"name": "b", "data_type": TIME}]
RUNS = {"kind": "inline", "chunk_shapes": [[4], [[2, 2]]]}
OLDER = {"shape": [4], "chunks": [2], "dtype": "<i2", "fill_value": 0, "order": "C"}
DOCUMENTS = {
    "v3": ("zarr.json", ARRAY),
    "rectilinear": (
        "zarr.json",
        ARRAY | {"chunk_grid": {"name": "rectilinear", "configuration": RUNS}, "codecs": [LITTLE]},
    ),
    "struct": (
        "zarr.json",
        ARRAY
        | {
            "data_type": {"name": "struct", "configuration": {"fields": FIELDS}},
            "fill_value": {"a": 0, "b": 0},
            "codecs": [LITTLE],
        },
    ),
    "group": (
        "zarr.json",
        {
            "zarr_format": 3,
            "node_type": "group",
            "attributes": {},
            "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": {}},
        },
    ),
    "v2": (
        ".zarray",
        OLDER
        | {
            "zarr_format": 2,
            "compressor": {"id": "blosc"} | BLOSC | {"shuffle": 1},
            "filters": [{"id": "delta", "dtype": "<i2"}],
            "dimension_separator": ".",
        },
    ),
    "v1": (
        "meta",
        OLDER
        | {"zarr_format": 1, "compression": "blosc", "compression_opts": {"cname": "lz4", "clevel": 1, "shuffle": 1}},
    ),
    "consolidated": (".zmetadata", {"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}}}),
}
REMOVED = object()
VALUES = [REMOVED, None, "1e400", 0, -1, "x", [], {}, True, 1.5]


def places(value, place=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in items:
        yield (*place, name)
        yield from places(each, (*place, name))


def changed(document, place, value):
    copied = json.loads(json.dumps(document))
    inner = copied
    for name in place[:-1]:
        inner = inner[name]
    if value is REMOVED:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return json.dumps(copied).replace('"1e400"', "1e400").encode()


def problems_of(key, data):
    store = MemoryStore()
    if key == ".zmetadata":
        store.set(".zgroup", b'{"zarr_format": 2}')
    store.set(key, data)
    try:
        if key == ".zmetadata":  # which is passed over, unless it is wanted
            zardine.open_consolidated(store, mode="r")
        else:
            zardine.open(store, mode="r")
    except MetadataError as error:
        return [str(problem) for problem in error.problems]
    except ZardineError:
        pass
    return []


def inner_members(document, place):
    for name in place:
        document = document[name]
    return len(document) if isinstance(document, dict) else 0


@pytest.mark.parametrize("value", VALUES, ids=lambda value: "removed" if value is REMOVED else repr(value))
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_wrong_member_is_one_problem(name, value):
    key, document = DOCUMENTS[name]
    refused = 0
    for place in places(document):
        found = problems_of(key, changed(document, place, value))
        refused += bool(found)
        where = (name, place, found)
        several = inner_members(document, place) > 1 or place[-1] == "name"  # an object without its members
        several |= value == {} and isinstance(place[-1], int)
        assert len(found) <= 1 or several, where
        if value is REMOVED:
            assert not any("found null" in each for each in found), where
        if value == "1e400":
            assert not any("inf" in each.lower().replace("info", "") for each in found if "1e400" not in each), where
    assert refused > 0 or (name == "consolidated" and value is REMOVED) or name == "group"


def test_a_chunk_length_of_nought_is_said_to_be_nought():
    data = changed(ARRAY, ("chunk_grid", "configuration", "chunk_shape", 0), 0)
    assert problems_of("zarr.json", data) == [
        "chunk_grid.configuration.chunk_shape[0]: chunks of length 0 cannot hold an axis of length 4"
    ]
    _, older = DOCUMENTS["v2"]
    assert problems_of(".zarray", changed(older, ("chunks", 0), 0)) == []  # zarr-python reads it as 1


def test_what_is_there_is_shown():
    _, older = DOCUMENTS["v2"]
    (found,) = problems_of(".zarray", changed(older, ("filters", 0, "dtype"), "1e400"))
    assert '{"dtype": 1e400}' in found
    assert problems_of("zarr.json", changed(ARRAY, ("shape", 1), "1e400")) == [
        "shape[1]: expected an integer from 0 to 9223372036854775807, found 1e400"
    ]
    assert problems_of("zarr.json", changed(ARRAY, ("node_type",), REMOVED)) == [
        'node_type: the member is missing; expected "array" or "group"'
    ]
