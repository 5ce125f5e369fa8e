"""What documents of one form have in common is parsed twice at most; what differs is read as if nothing was known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.engine import layout as layouts
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.errors import MetadataError, ZardineError
from zardine.metadata import formats, forms, seen_documents, v2, v3
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata, parse_documents
from zardine.storage import MemoryStore


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    forget()
    yield
    forget()


def forget() -> None:
    caches = (forms._forms, forms._texts, forms._seen_once, seen_documents._seen, seen_documents._attributes)
    for cache in (*caches, layouts._layouts, layouts._forms, layouts._encodings):
        cache.clear()


V3: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [10, 20],
    "data_type": "uint16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0,
    "codecs": [
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [2, 2],
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
            },
        }
    ],
    "attributes": {"name": "first"},
    "dimension_names": ["y", "x"],
}
V2: dict[str, Any] = {
    "zarr_format": 2,
    "shape": [10, 20],
    "chunks": [4, 4],
    "dtype": "<u2",
    "compressor": {"id": "zlib", "level": 1},
    "fill_value": 0,
    "order": "C",
    "filters": None,
}


def text(document: Any) -> bytes:
    return json.dumps(document, indent=1).encode()


def parse_v3(data: bytes) -> NodeMetadata:
    return parse_documents("zarr.json", {"zarr.json": data}, "subject")


def parse_v2(data: bytes, attributes: bytes | None = None) -> NodeMetadata:
    return parse_documents(".zarray", {".zarray": data, ".zattrs": attributes}, "subject")


def make_known(parse: Callable[[bytes], NodeMetadata], document: dict[str, Any]) -> None:
    for length in (3, 5, 7):
        parse(text({**document, "shape": [length] * len(document["shape"])}))


def count(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[object]:
    calls: list[object] = []
    function = getattr(module, name)

    def counted(*args: Any, **more: Any) -> Any:
        calls.append(args)
        return function(*args, **more)

    monkeypatch.setattr(module, name, counted)
    return calls


@pytest.mark.parametrize(
    ("parse", "document", "module", "loader"), [(parse_v3, V3, v3, v3), (parse_v2, V2, v2, formats)], ids=["v3", "v2"]
)
def test_what_documents_have_in_common_is_parsed_twice(
    monkeypatch: pytest.MonkeyPatch,
    parse: Callable[[bytes], NodeMetadata],
    document: dict[str, Any],
    module: Any,
    loader: Any,
) -> None:
    parsed, loaded = count(monkeypatch, module, "_parse_array"), count(monkeypatch, loader, "load_object")
    found = [parse(text({**document, "shape": [length, 20]})) for length in range(1, 30)]
    assert [node.shape for node in found if isinstance(node, ArrayMetadata)] == [(n, 20) for n in range(1, 30)]
    assert (len(parsed), len(loaded)) == (2, 2)
    worked_out = count(monkeypatch, layouts, "_work_out")
    ready = [prepare_layout(node) for node in found if isinstance(node, ArrayMetadata)]
    assert len(worked_out) == 2
    assert [layout.grids.storage[0].length for layout in ready] == list(range(1, 30))


def test_arrays_of_consolidated_metadata_are_parsed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    group = zardine.create_group(store)
    for n in range(8):
        group.create_array(f"a{n}", shape=(n,), dtype="i2", chunks=(4,), attributes={"n": n})
    zardine.consolidate_metadata(store)
    forget()
    parsed = count(monkeypatch, v3, "_parse_array")
    found = dict(zardine.open_group(store).arrays())
    assert [(found[f"a{n}"].shape, found[f"a{n}"].attrs["n"]) for n in range(8)] == [((n,), n) for n in range(8)]
    assert len(parsed) == 2


def outcome(parse: Callable[[], NodeMetadata]) -> object:
    """What a node is, with its attributes and types, and its layout; or the error that says what is wrong."""
    try:
        node = parse()
        assert isinstance(node, ArrayMetadata)
        layout = prepare_layout(node)
    except ZardineError as error:
        return type(error), str(error)
    return repr(node), repr(node.to_dict()), facts(layout)


def facts(layout: ArrayLayout) -> object:
    blocks = layout.blocks
    return (
        *(layout.grid, layout.keys, layout.key_form, layout.codecs, layout.grids, layout.is_draft, layout.is_checked),
        *(layout.uniform_shard and layout.uniform_shard.grid, layout.object_shape, layout.metadata.shape),
        blocks and (blocks.shape, blocks.per_object, blocks.strides, blocks.dtype),
    )


def changed(**members: Any) -> bytes:
    return text({**V3, **members})


PLAIN = text(V3)
UNUSUAL: dict[str, bytes] = {
    "other lengths": changed(shape=[0, 2**40]),
    "largest length": changed(shape=[2**63 - 1, 1]),
    "too long": changed(shape=[2**63, 1]),
    "negative": changed(shape=[-1, 20]),
    "fraction": changed(shape=[1.0, 20]),
    "words": changed(shape=[True, 20]),
    "one more dimension": changed(shape=[10, 20, 30]),
    "one less": changed(shape=[10]),
    "none": changed(shape=[]),
    "no list": changed(shape={"0": 1}),
    "text": changed(shape="[10, 20]"),
    "no attributes": text({name: value for name, value in V3.items() if name != "attributes"}),
    "attributes that are no object": changed(attributes=[1]),
    "null": changed(attributes=None),
    "attributes with a shape": changed(attributes={"shape": [1, 2], "attributes": {"shape": [3]}}),
    "attributes in front": text(
        {"attributes": {"shape": [1, 2]}, **{k: v for k, v in V3.items() if k != "attributes"}}
    ),
    "numbers": changed(attributes={"a": 1e300, "b": -0.0, "c": 12345678901234567890123, "d": 0.1234567890123456789}),
    "repeated attribute": PLAIN.replace(b'"name": "first"', b'"name": 1, "name": 2'),
    "repeated in an attribute": PLAIN.replace(b'"name": "first"', b'"name": {"a": 1, "a": 2}'),
    "repeated shape": PLAIN.replace(b'"data_type"', b'"shape": [1, 1], "data_type"'),
    "repeated attributes": PLAIN.replace(b'"data_type"', b'"attributes": {}, "data_type"'),
    "no number": PLAIN.replace(b'"first"', b"NaN"),
    "beyond all numbers": PLAIN.replace(b'"first"', b"1e999"),
    "open string": PLAIN.replace(b'"first"', b'"first'),
    "control character": PLAIN.replace(b'"first"', b'"fi\nrst"'),
    "NUL": PLAIN.replace(b'"first"', b'"fi\0rst"'),
    "NUL for attributes": PLAIN.replace(b'{\n  "name": "first"\n }', b"\0"),
    "NUL for attributes in front": text({"attributes": 0, **V3} | {"attributes": "A"}).replace(b'"A"', b"\0"),
    "half a character": PLAIN.replace(b'"first"', b'"\\ud800"'),
    "no UTF-8": PLAIN.replace(b'"first"', b'"\xff"'),
    "byte order mark": b"\xef\xbb\xbf" + PLAIN,
    "other spaces": PLAIN.replace(b'"shape": [', b'"shape"\t:\r\n [ '),
    "space of Unicode": PLAIN.replace(b'"shape": ', '"shape":\u2003'.encode()),
    "comma too many": PLAIN.replace(b"20\n ]", b"20,\n ]", 1),
    "missing comma": PLAIN.replace(b"10,", b"10 ", 1),
    "something behind": PLAIN + b"{}",
    "cut": PLAIN[:-1],
    "deep": changed(attributes={"a": json.loads("[" * 199 + "]" * 199)}),
    "just not too deep": changed(attributes={"a": json.loads("[" * 197 + "]" * 197)}),
    "escaped name": PLAIN.replace(b'"shape"', b'"sh\\u0061pe"', 1),
    "escaped name and another": PLAIN.replace(b'"attributes"', b'"\\u0061ttributes"', 1),
    "name in a text": changed(attributes={"a": '"shape": [1, 1]', "b": '"attributes": {}'}),
    "fault elsewhere": changed(codecs=[], shape=[-1, 20]),
    "faults": changed(shape=[1, "a"], attributes=7, dimension_names=["y"]),
    "member that is not known": changed(more={"shape": [1, 2], "attributes": {}}),
    "member that may be ignored": changed(more={"must_understand": False, "shape": [1], "attributes": {"a": 1}}),
    "no chunks": changed(chunk_grid={"name": "regular", "configuration": {"chunk_shape": [0, 4]}}, shape=[0, 4]),
    "of another version": text({**V2, "attributes": {}}),
    "older": changed(zarr_format=2),
    "group": changed(node_type="group"),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_what_is_known_changes_nothing_of_what_is_read(name: str) -> None:
    """Whether the form of what is unusual, or that of the usual documents, or nothing, was known before."""
    data = UNUSUAL[name]
    fresh = outcome(lambda: parse_v3(data))
    forget()
    make_known(parse_v3, V3)
    make_known(parse_v3, {"attributes": {}, **V3})  # in front
    for length in range(4):  # a place that only seems to be that of the shape, or of attributes
        for part in (b"10", b"[1, 2]", b'"first"'):
            with_another = data.replace(
                part, part.replace(b"1", b"%d" % (length + 2)).replace(b"first", b"a%d" % length), 1
            )
            outcome(lambda with_another=with_another: parse_v3(with_another))
    seen_documents._seen.clear()
    layouts._layouts.clear()
    for _ in range(3):
        assert outcome(lambda: parse_v3(data)) == fresh
        seen_documents._seen.clear()


OF_V2: dict[str, dict[str, Any]] = {
    "other lengths": {**V2, "shape": [0, 2**40]},
    "chunks of nothing": {**V2, "chunks": [0, 4], "shape": [4, 4]},
    "no chunks": {**V2, "chunks": [0, False], "shape": [0, 4]},
    "negative": {**V2, "shape": [-1, 4]},
    "one less": {**V2, "shape": [4]},
    "attributes that belong elsewhere": {**V2, "attributes": {"a": 1}},
    "others": {**V2, "attributes": {"a": 2}},
    "v3": V3,
}


@pytest.mark.parametrize("name", OF_V2)
@pytest.mark.parametrize("attributes", [None, b"{}", b'{"a": [1]}', b"[]", b'{"a": 1, "a": 2}'])
def test_documents_of_v2_are_read_as_if_nothing_was_known(name: str, attributes: bytes | None) -> None:
    data = text(OF_V2[name])
    fresh = outcome(lambda: parse_v2(data, attributes))
    forget()
    make_known(parse_v2, V2)
    make_known(parse_v2, {**V2, "attributes": {"a": 3}})
    for _ in range(3):
        assert outcome(lambda: parse_v2(data, attributes)) == fresh
        seen_documents._seen.clear()


def test_a_document_of_one_version_is_none_of_another() -> None:
    make_known(parse_v2, V2)
    with pytest.raises(MetadataError, match="zarr_format"):
        parse_v3(text({**V2, "shape": [9, 9]}))
    make_known(parse_v3, V3)
    with pytest.raises(MetadataError, match="zarr_format"):
        parse_v2(text({**V3, "shape": [9, 9]}))


@pytest.mark.parametrize("fill", ["0.12345678901234567", "1.00000005960464485", "1e-46", "1e999", '"NaN"', "-0.0"])
def test_numbers_of_many_digits_are_read_as_ever(fill: str) -> None:
    template = changed(data_type="float32", fill_value="F").replace(b'"F"', fill.encode())
    documents = [template.replace(b"first", b"%d" % n).replace(b"10", b"%d" % (n + 1), 1) for n in range(4)]
    documents.append(template.replace(b'"first"', b"1e999"))
    fresh = []
    for data in documents:
        forget()
        fresh.append(outcome(lambda data=data: parse_v3(data)))
    forget()
    assert [outcome(lambda data=data: parse_v3(data)) for data in documents] == fresh


@pytest.mark.parametrize("shape", [(0, 0), (1, 20), (20, 1), (4, 4), (999, 0)])
@pytest.mark.parametrize(
    "members",
    [
        {},
        {"codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}, *V3["codecs"]]},
        {"codecs": [{"name": "bytes"}], "data_type": "uint8"},
        {"chunk_grid": {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[[4, 300]], 4]}}},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 4]}}},
    ],
)
def test_a_layout_by_form_is_that_which_is_worked_out(shape: tuple[int, ...], members: dict[str, Any]) -> None:
    data = changed(shape=list(shape), **members)
    fresh = outcome(lambda: parse_v3(data))
    forget()
    for other in ([10, 20], [0, 0], [0, 9]):
        for name in "ab":
            outcome(lambda name=name, other=other: parse_v3(changed(shape=other, attributes={"name": name}, **members)))
    assert outcome(lambda: parse_v3(data)) == fresh


def test_what_a_user_changes_reaches_no_other_array() -> None:
    own = json.loads(PLAIN)
    given = ArrayMetadata.from_dict(own)
    before = repr(given.to_dict())
    own["codecs"][0]["configuration"]["chunk_shape"][0] = 1
    document = given.to_dict()
    document["codecs"][0]["configuration"]["chunk_shape"][0] = 1
    document["chunk_grid"]["configuration"]["chunk_shape"][0] = 1
    document["attributes"]["more"] = 1
    assert repr(ArrayMetadata.from_dict(json.loads(PLAIN)).to_dict()) == before
    first, second = (parse_v3(PLAIN.replace(b"first", b"a%d" % n)) for n in range(2))
    assert isinstance(first.attributes, dict)
    first.attributes["b"] = 1
    assert dict(second.attributes) == {"name": "a1"}


def test_fill_values_of_structs_are_each_users_own() -> None:
    store = MemoryStore()
    for n in range(5):
        zardine.create_array(store, name=f"a{n}", shape=(n + 1,), dtype=[("x", "i4"), ("y", "f8")], chunks=(2,))
    arrays = [zardine.open_array(store, path=f"a{n}") for n in range(5)]
    arrays[3].fill_value["x"] = 7
    assert [array.fill_value["x"] for array in arrays] == [0] * 5
    assert zardine.open_array(store, path="a4")[0]["x"] == 0


def test_values_of_a_user_that_are_no_json_are_told_apart() -> None:
    def of(level: object) -> ArrayMetadata:
        return ArrayMetadata.from_dict({**V3, "codecs": [{"name": "x", "configuration": {"level": level}}]})

    for level in (np.int64(5), np.int64(5).tobytes(), np.float64(5), np.array(5), 5, 5.0, True, 1):
        for _ in range(2):
            found = of(level).codecs[0].configuration
            assert found is not None
            assert type(found["level"]) is type(level)
            assert found["level"] == level


def test_arrays_of_one_form_are_read_and_written_apart() -> None:
    store = MemoryStore()
    for n in range(6):
        store.set(f"a{n}/zarr.json", changed(shape=[n + 1, 20], attributes={"name": f"a{n}"}))
    for n in range(6):
        array = zardine.open_array(store, path=f"a{n}")
        array[...] = n
        array.attrs["n"] = n
        array.resize((n + 3, 20))
    for n in range(6):
        array = zardine.open_array(store, path=f"a{n}")
        assert array.shape == (n + 3, 20)
        assert array.attrs.asdict() == {"name": f"a{n}", "n": n}
        assert np.array_equal(array[...], np.repeat([n, 0], [n + 1, 2])[:, None] * np.ones((1, 20), int))


def test_what_is_remembered_is_bounded() -> None:
    for n in range(3000):
        parse_v3(changed(fill_value=n // 3, shape=[n, n]))
        parse_v3(changed(shape=[n, n], more={"must_understand": False, "a": "x" * 20_000}))
    parse_v3(changed(fill_value=7, shape=[1, 1], dimension_names=["a", "b"]))
    for cache in (forms._forms, forms._texts, forms._seen_once):
        assert 0 < cache.nbytes <= cache.limit <= 2 * 2**20
        assert sum(map(len, cache)) <= cache.nbytes
        assert max(map(len, cache)) < 20_000
