"""Metadata documents: what is taken, what is refused and where, and what is written."""

import json
import math
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.errors import MetadataError, UnknownExtensionError
from zardine.metadata import ArrayMetadata, GroupMetadata
from zardine.metadata.v3 import parse_node, parse_node_json, serialize
from zardine.storage import MemoryStore

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def array_document(**changes: Any) -> dict[str, Any]:
    """A right document, with members changed; a value of ``...`` removes the member."""
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [8, 6],
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "NaN",
        "codecs": [LITTLE, {"name": "crc32c"}],
        "attributes": {"unit": "K"},
        "dimension_names": ["y", None],
    }
    return {name: value for name, value in {**document, **changes}.items() if value is not ...}


def group_document(**changes: Any) -> dict[str, Any]:
    return {"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}, **changes}


def open_document(document: Any) -> Any:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return zardine.open(MemoryStore({"zarr.json": data}), mode="r")


def places(document: Any) -> list[str]:
    """The places of all problems of a wrong document."""
    with pytest.raises(MetadataError) as error:
        open_document(document)
    assert all(problem.message for problem in error.value.problems)
    for problem in error.value.problems:
        assert str(problem) in str(error.value)
    return [problem.place for problem in error.value.problems]


def test_a_right_document() -> None:
    array = open_document(array_document())
    metadata = array.metadata
    assert isinstance(metadata, ArrayMetadata)
    assert (array.shape, array.dtype, array.chunks, array.shards) == ((8, 6), np.dtype("f4"), (4, 3), None)
    assert np.isnan(array.fill_value)
    assert array.attrs.asdict() == {"unit": "K"}
    assert array.dimension_names == ("y", None)
    assert metadata.storage_transformers == ()


def test_documents_are_written_canonically() -> None:
    short = array_document(
        data_type={"name": "float32"},
        chunk_key_encoding="default",
        codecs=[{"configuration": {"endian": "little"}, "name": "bytes"}, "crc32c"],
        dimension_names=None,
        attributes=...,
        storage_transformers=[],
    )
    written = parse_node_json(short, "subject").to_dict()
    assert written == {
        **array_document(dimension_names=..., attributes={}),
        "chunk_key_encoding": {"name": "default"},
    }
    assert list(written) == [
        *("zarr_format", "node_type", "shape", "data_type", "chunk_grid"),
        *("chunk_key_encoding", "fill_value", "codecs", "attributes"),
    ]
    once = serialize(parse_node_json(short, "subject"))
    assert serialize(parse_node(once)) == once
    assert once.startswith(b'{\n  "zarr_format": 3,\n  "node_type": "array",\n  "shape": [')


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"attributes": {"a": '\n  "shape": [\n    8,\n    6\n  ]', "b": {"shape": [8, 6]}, "é": [1.0, None]}},
        {"dimension_names": ["shape", None], "odd": {"must_understand": False, "shape": [8, 6]}},
    ],
)
def test_documents_of_other_shapes_and_attributes(changes: dict[str, Any]) -> None:
    def expected(metadata: ArrayMetadata) -> bytes:
        return json.dumps(metadata.to_dict(), indent=2, ensure_ascii=False).encode()

    metadata = parse_node_json(array_document(**changes), "subject")
    assert isinstance(metadata, ArrayMetadata)
    for shape in ((8, 6), (9, 6), (0, 2**40), (8, 6)):
        assert serialize(metadata.with_shape(shape)) == expected(metadata.with_shape(shape))
    attributes: dict[str, Any] = {"first": [1]}
    metadata = metadata.with_attributes(attributes)
    for change in ([1, 2], {"b": True}, True, 1, 1.0):
        assert serialize(metadata) == expected(metadata)
        attributes["first"] = change
        assert serialize(metadata) == expected(metadata)
    grid = {"name": "regular", "configuration": {"chunk_shape": []}}
    scalar = parse_node_json(array_document(**{**changes, "shape": [], "chunk_grid": grid, "dimension_names": ...}), "")
    assert serialize(scalar) == json.dumps(scalar.to_dict(), indent=2, ensure_ascii=False).encode()


def test_text_is_written_as_utf8() -> None:
    assert 'é\U0001f41f"'.encode() in serialize(GroupMetadata(attributes={"a": "é\U0001f41f"}))


def test_attributes_with_lone_surrogates_survive() -> None:
    store = MemoryStore({"zarr.json": b'{"zarr_format": 3, "node_type": "group", "attributes": {"a": "\\ud800"}}'})
    group = zardine.open_group(store)
    group.attrs["b"] = 1
    assert zardine.open_group(store).attrs.asdict() == {"a": "\ud800", "b": 1}


@pytest.mark.parametrize("member", ["shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"])
def test_required_members_of_arrays(member: str) -> None:
    assert places(array_document(**{member: ...})) == [member]


@pytest.mark.parametrize("member", ["attributes", "dimension_names", "storage_transformers"])
def test_optional_members_of_arrays(member: str) -> None:
    assert open_document(array_document(**{member: ...})).shape == (8, 6)


def test_required_members_of_every_node() -> None:
    assert places({}) == ["zarr_format", "node_type"]
    assert places(group_document(zarr_format=...) | {"zarr_format": None}) == ["zarr_format"]
    assert places(group_document(node_type="grp")) == ["node_type"]
    assert isinstance(open_document(group_document()), zardine.Group)


@pytest.mark.parametrize("version", [2, 4, "3", True, None, [3]])
def test_other_formats(version: Any) -> None:
    assert places(array_document(zarr_format=version)) == ["zarr_format"]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"shape": 8}, "shape"),
        ({"shape": "8"}, "shape"),
        ({"shape": [8, -6]}, "shape[1]"),
        ({"shape": [8.0, 6]}, "shape[0]"),
        ({"shape": [True, 6]}, "shape[0]"),
        ({"shape": [8, 2**63]}, "shape[1]"),
        ({"shape": [8, None]}, "shape[1]"),
        ({"data_type": "float33"}, "data_type"),
        ({"data_type": 4}, "data_type"),
        ({"data_type": {"name": "float32", "configuration": {"x": 1}}}, "data_type.configuration.x"),
        ({"data_type": {"name": "float32", "must_understand": False}}, "data_type.must_understand"),
        ({"data_type": {"configuration": {}}}, "data_type.name"),
        ({"fill_value": None}, "fill_value"),
        ({"fill_value": "nan"}, "fill_value"),
        ({"fill_value": True}, "fill_value"),
        ({"fill_value": "0x7fc0"}, "fill_value"),
        ({"chunk_grid": "regular"}, "chunk_grid.configuration.chunk_shape"),
        ({"chunk_grid": []}, "chunk_grid"),
        ({"chunk_grid": {"name": ""}}, "chunk_grid.name"),
        ({"chunk_grid": {"name": "regular", "configuration": []}}, "chunk_grid.configuration"),
        ({"chunk_grid": {"name": "regular", "extra": 1}}, "chunk_grid.extra"),
        ({"chunk_grid": {"name": "regular", "must_understand": False}}, "chunk_grid.must_understand"),
        ({"chunk_grid": {"name": "regular", "must_understand": 0}}, "chunk_grid.must_understand"),
        ({"chunk_grid": {"name": "hexagonal"}}, "chunk_grid.name"),
        ({"chunk_key_encoding": {"name": "default", "must_understand": False}}, "chunk_key_encoding.must_understand"),
        ({"chunk_key_encoding": {"name": "v1"}}, "chunk_key_encoding.name"),
        ({"chunk_key_encoding": {}}, "chunk_key_encoding.name"),
        ({"codecs": {}}, "codecs"),
        ({"codecs": []}, "codecs"),
        ({"codecs": ["crc32c"]}, "codecs"),
        ({"codecs": [LITTLE, LITTLE]}, "codecs"),
        ({"codecs": ["crc32c", LITTLE]}, "codecs"),
        ({"codecs": ["bytes"]}, "codecs[0]"),
        ({"codecs": [LITTLE, "gzip"]}, "codecs[1].configuration.level"),
        ({"codecs": [LITTLE, {"name": "gzip", "configuration": {"level": 11}}]}, "codecs[1].configuration.level"),
        (
            {"codecs": [{"name": "transpose", "configuration": {"order": [0, 0]}}, LITTLE]},
            "codecs[0].configuration.order",
        ),
        ({"codecs": [{"name": "transpose", "configuration": {"order": [0]}}, LITTLE]}, "codecs[0]"),
        ({"codecs": [LITTLE, "zip"]}, "codecs[1].name"),
        ({"codecs": [LITTLE, None]}, "codecs[1]"),
        ({"attributes": []}, "attributes"),
        ({"attributes": None}, "attributes"),
        ({"dimension_names": "yx"}, "dimension_names"),
        ({"dimension_names": ["y"]}, "dimension_names"),
        ({"dimension_names": ["y", 1]}, "dimension_names[1]"),
        ({"storage_transformers": {}}, "storage_transformers"),
        ({"storage_transformers": ["cache"]}, "storage_transformers[0]"),
        ({"storage_transformers": [{"name": "cache", "must_understand": True}]}, "storage_transformers[0]"),
        ({"extra": 1}, "extra"),
        ({"extra": {"must_understand": True}}, "extra"),
        ({"extra": {"must_understand": 0}}, "extra"),
        ({"extra": {"name": "x"}}, "extra"),
        ({"consolidated_metadata": {"must_understand": True}}, "consolidated_metadata"),
    ],
)
def test_wrong_members_of_arrays(changes: dict[str, Any], place: str) -> None:
    found = places(array_document(**changes))
    assert found == [place]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"attributes": 1}, "attributes"),
        ({"shape": [1]}, "shape"),
        ({"extra": None}, "extra"),
    ],
)
def test_wrong_members_of_groups(changes: dict[str, Any], place: str) -> None:
    assert places(group_document(**changes)) == [place]


@pytest.mark.parametrize(
    ("member", "place"),
    [
        (1, "consolidated_metadata"),
        ({"kind": "inline"}, "consolidated_metadata.metadata"),
        ({"kind": "other", "metadata": {}}, "consolidated_metadata.kind"),
        ({"kind": "inline", "metadata": {"a": 1}}, "consolidated_metadata.metadata.a"),
    ],
)
def test_wrong_consolidated_metadata_is_passed_over(member: Any, place: str) -> None:
    metadata = GroupMetadata.from_dict(group_document(consolidated_metadata=member))
    assert metadata.consolidated_metadata is None
    assert [problem.place for problem in metadata.consolidated_faults] == [place]


def test_all_problems_are_reported_at_once() -> None:
    sharding = {"chunk_shape": [2, -1], "codecs": [LITTLE, {"name": "gzip", "configuration": {"level": 99, "x": 1}}]}
    wrong = array_document(
        zarr_format=2,
        shape=[8, "6"],
        data_type={"name": "float32", "must_understand": False},
        chunk_grid=...,
        fill_value=...,
        attributes=3,
        dimension_names=[1, 2],
        storage_transformers=["x"],
        future=1,
    )
    assert places(wrong) == [
        *("zarr_format", "chunk_grid", "fill_value", "shape[1]", "data_type.must_understand"),
        *("storage_transformers[0]", "attributes", "dimension_names[0]", "dimension_names[1]", "future"),
    ]
    found = places(
        array_document(
            chunk_grid={"name": "regular", "configuration": {"chunk_shape": [4, 0]}},
            chunk_key_encoding={"name": "default", "configuration": {"separator": "_"}},
            codecs=[{"name": "sharding_indexed", "configuration": sharding}],
        )
    )
    place = "codecs[0].configuration"
    assert found == [
        "chunk_grid.configuration.chunk_shape[1]",
        "chunk_key_encoding.configuration.separator",
        f"{place}.chunk_shape[1]",
        f"{place}.codecs[1].configuration.x",
        f"{place}.codecs[1].configuration.level",
    ]


def test_unknown_extensions_have_an_error_of_their_own() -> None:
    for changes in (
        {"data_type": "float33"},
        {"codecs": [LITTLE, "zip"]},
        {"chunk_grid": {"name": "hexagonal"}},
        {"extra": {"name": "x"}},
    ):
        with pytest.raises(UnknownExtensionError):
            open_document(array_document(**changes))


def test_short_names_and_extension_objects_mean_the_same() -> None:
    short = array_document(data_type="int8", fill_value=0, codecs=["bytes", "crc32c"], chunk_key_encoding="v2")
    long = array_document(
        data_type={"name": "int8"},
        fill_value=0,
        codecs=[{"name": "bytes", "configuration": {}}, {"name": "crc32c", "must_understand": True}],
        chunk_key_encoding={"name": "v2"},
    )
    for document in (short, long):
        array = open_document(document)
        assert array.dtype == np.int8
        assert [codec.name for codec in array.codecs] == ["bytes", "crc32c"]


def test_ignorable_members_survive_changes_of_attributes_and_shape() -> None:
    ignorable = {"must_understand": False, "name": "stats", "configuration": {"max": 3}}
    transformer = {"name": "mirror", "configuration": {"to": "s3"}, "must_understand": False}
    document = array_document(extra=ignorable, storage_transformers=[transformer])
    store = MemoryStore({"zarr.json": json.dumps(document).encode()})
    array = zardine.open_array(store)
    array.attrs["more"] = 1
    array.resize((9, 6))
    array.append(np.ones((1, 6)))
    del array.attrs["unit"]
    stored = json.loads(bytes(store.get("zarr.json") or b""))
    assert stored["extra"] == ignorable
    assert stored["storage_transformers"] == [transformer]
    assert stored["attributes"] == {"more": 1}
    assert stored["shape"] == [10, 6]
    group_store = MemoryStore({"zarr.json": json.dumps(group_document(extra=ignorable)).encode()})
    zardine.open_group(group_store).attrs["b"] = 2
    stored = json.loads(bytes(group_store.get("zarr.json") or b""))
    assert stored == group_document(extra=ignorable, attributes={"a": 1, "b": 2})


def test_fill_values_keep_every_bit() -> None:
    for value, bits in (
        ("0x7fc00001", 0x7FC00001),
        ("0xffc00abc", 0xFFC00ABC),
        ("-Infinity", 0xFF800000),
        (-0.0, 2**31),
    ):
        array = open_document(array_document(fill_value=value))
        assert int(array[0, 0].view(np.uint32)) == bits
        assert array.metadata.to_dict()["fill_value"] == value
    largest = open_document(array_document(data_type="uint64", fill_value=2**64 - 1))
    assert int(largest[0, 0]) == 2**64 - 1
    assert places(array_document(data_type="uint64", fill_value=2**64)) == ["fill_value"]


# bytes that are hardly a document


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"x"',
        b"3",
        b"\xff\xfe{}",
        b'{"zarr_format": 3, "node_type": "\xff"}',
        b"\xef\xbb\xbf{}",
        b'{"zarr_format": 3, "node_type": "group"} x',
        b'{"zarr_format": 3, "zarr_format": 3, "node_type": "group"}',
        b'{"zarr_format": 3, "node_type": "group", "attributes": {"a": {"b": 1, "b": 2}}}',
        b'{"zarr_format": 3, "node_type": "group", "attributes": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
        b'{"zarr_format": 3, "node_type": "group", "attributes": {"a": ' + b"[" * 500 + b"]" * 500 + b"}}",
        b'{"zarr_format": 3, "node_type": "group", "attributes": {"a": ' + b"9" * 10_000 + b"}}",
    ],
    ids=range(15),
)
def test_what_is_no_document(data: bytes) -> None:
    with pytest.raises(MetadataError) as error:
        open_document(data)
    assert len(error.value.problems) == 1
    assert len(str(error.value)) < 1000


def test_repeated_members_are_named() -> None:
    with pytest.raises(MetadataError, match="repeated member 'a'"):
        open_document(b'{"zarr_format": 3, "node_type": "group", "attributes": {"a": 1, "b": 2, "a": 3}}')


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" + "0" * 400, "0.1e-999"])
@pytest.mark.parametrize("member", ["shape", "fill_value", "zarr_format"])
def test_huge_numbers(number: str, member: str) -> None:
    document = json.dumps(array_document(**{member: "HUGE"}))
    wanted = f"[{number}]" if member == "shape" else number
    data = document.replace('"HUGE"', wanted).encode()
    if member == "fill_value":
        assert open_document(data).fill_value == {"0.1e-999": 0, "-1e400": -math.inf}.get(number, math.inf)
        return
    with pytest.raises(MetadataError) as error:
        open_document(data)
    if "e-" not in number:
        assert f"found {number}"[:80] in str(error.value)
    assert {problem.place.split("[")[0] for problem in error.value.problems} <= {member, "dimension_names"}


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [2**62, 2**62], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2**60, 2**60]}}},
        {"shape": [2**62, 1], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1]}}},
        {
            "shape": [2**62, 6],
            "chunk_grid": {
                "name": "rectilinear",
                "configuration": {"kind": "inline", "chunk_shapes": [[[2**20, 2**42]], 6]},
            },
        },
        {
            "shape": [2**62, 2**62],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2**60, 2**60]}},
            "codecs": [
                {
                    "name": "sharding_indexed",
                    "configuration": {
                        "chunk_shape": [2**31, 2**32],
                        "codecs": [LITTLE],
                        "index_codecs": [LITTLE, "crc32c"],
                    },
                }
            ],
        },
    ],
    ids=["chunk", "many", "rectilinear", "shard"],
)
def test_claims_of_huge_arrays_cost_no_memory(changes: dict[str, Any]) -> None:
    import tracemalloc

    data = json.dumps(array_document(**changes)).encode()
    store = MemoryStore({"zarr.json": data})
    zardine.open_array(store)[0, 0]
    tracemalloc.start()
    array = zardine.open_array(store, mode="r")
    assert np.isnan(array[0, 0])
    assert np.isnan(array[-1, -1])
    assert array.nchunks > 2**40 or array.chunks[0] == 2**60
    assert len(repr(array)) < 500
    assert len(repr(array.info)) < 5000
    assert len(array._repr_html_()) < 20_000
    assert array.nchunks_initialized == 0
    # a chunk that cannot be what the document says is refused before memory is taken
    liar = MemoryStore({"zarr.json": data, "c/0/0": b"\0" * 64})
    with pytest.raises(zardine.errors.CorruptionError):
        zardine.open_array(liar, mode="r")[0, 0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_shards_with_more_inner_chunks_than_an_index_can_hold_are_refused() -> None:
    sharding = {"chunk_shape": [1, 1], "codecs": [LITTLE], "index_codecs": [LITTLE]}
    grid = {"name": "regular", "configuration": {"chunk_shape": [2**60, 2**60]}}
    codecs = [{"name": "sharding_indexed", "configuration": sharding}]
    found = places(array_document(shape=[2**62, 2**62], chunk_grid=grid, codecs=codecs))
    assert found == ["codecs[0].configuration.chunk_shape"]


@pytest.mark.parametrize(
    "changes",
    [
        {"data_type": "float33", "shape": [-1, 6]},
        {"data_type": "float33", "dimension_names": 5},
        {"extra": {"name": "x"}, "attributes": []},
        {"codecs": [LITTLE, "zip"], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 3]}}},
        {"codecs": [LITTLE, "zip", "zap"]},
    ],
)
def test_two_faults_of_which_one_is_an_extension(changes: dict[str, Any]) -> None:
    """Knowing the extension would not be enough to read such a document."""
    with pytest.raises(MetadataError) as error:
        open_document(array_document(**changes))
    assert type(error.value) is MetadataError
