"""What is read although the specification has it otherwise: ``verify`` names each such member in a note."""

import json

import pytest

import zardine
from zardine.errors import MetadataError, UnknownExtensionError
from zardine.storage import MemoryStore

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
ARRAY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4, 4],
    "data_type": "int16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 4]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 0,
    "codecs": [LITTLE],
}
HALVES = ARRAY | {"data_type": "float16"}
OLDER = {
    "zarr_format": 2,
    "shape": [4],
    "chunks": [2],
    "dtype": "<i2",
    "compressor": None,
    "filters": None,
    "fill_value": 0,
    "order": "C",
}
V1 = {
    "zarr_format": 1,
    "shape": [4],
    "chunks": [2],
    "dtype": "<i2",
    "compression": "none",
    "compression_opts": None,
    "fill_value": 0,
    "order": "C",
}


def stored(**documents):
    """A store of documents by key, with ``_`` for ``.`` and ``__`` for ``/``."""
    store = MemoryStore()
    for key, document in documents.items():
        store.set(key, document if isinstance(document, bytes) else json.dumps(document).encode())
    return store


def notes(store):
    report = zardine.verify(store)
    assert not report.faults, report.faults
    assert {note.kind for note in report.notes} <= {"nonstandard"}
    return [(note.key, note.message) for note in report.notes]


def regular(*lengths):
    return {"name": "regular", "configuration": {"chunk_shape": list(lengths)}}


def sharding(inner=(LITTLE,), **more):
    return {
        "name": "sharding_indexed",
        "configuration": {"chunk_shape": [2, 2], "codecs": list(inner), **more},
    }


def test_documents_that_follow_the_text_get_no_note():
    index = {"index_codecs": [LITTLE]}
    assert notes(stored(**{"zarr.json": ARRAY})) == []
    assert notes(stored(**{"zarr.json": ARRAY | {"codecs": [sharding(**index)]}})) == []
    assert notes(stored(**{".zarray": OLDER | {"dimension_separator": "/"}})) == []
    assert notes(stored(**{".zgroup": {"zarr_format": 2}})) == []
    assert notes(stored(meta=V1, attrs={})) == []


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (ARRAY | {"dimension_names": None}, "dimension_names: null"),
        (ARRAY | {"storage_transformers": None}, "storage_transformers: null"),
        (
            ARRAY | {"codecs": [{"name": "transpose", "configuration": {"order": "F"}}, LITTLE]},
            'codecs[0].configuration.order: "F" is a word of drafts',
        ),
        (
            ARRAY | {"codecs": [sharding([{"name": "transpose", "configuration": {"order": "C"}}, LITTLE])]},
            'codecs[0].configuration.codecs[0].configuration.order: "C" is a word of drafts',
        ),
        (
            ARRAY | {"codecs": [sharding()]},
            "codecs[0].configuration.index_codecs: the member is missing, so that this is read as the draft",
        ),
        (ARRAY | {"codecs": [{"name": "endian", "configuration": {"endian": "big"}}]}, "codecs[0].name: it is called"),
        (
            HALVES | {"codecs": [sharding([{"name": "packbits"}], index_codecs=[LITTLE])]},
            'codecs[0].configuration.codecs[0]: packbits: the specification of "packbits" does not name data type',
        ),
        (
            ARRAY | {"data_type": "bytes", "fill_value": [], "codecs": ["vlen-utf8"]},
            'codecs[0]: vlen-utf8: "vlen-utf8" stores data type string, not bytes',
        ),
        (
            HALVES | {"codecs": [{"name": "bitround", "configuration": {"keepbits": 11}}, LITTLE]},
            'codecs[0]: bitround: "bitround" cannot keep 11 bits',
        ),
    ],
)
def test_arrays_of_v3(document, place):
    found = notes(stored(**{"zarr.json": document}))
    shards = "codecs[0].configuration.index_codecs: the member is missing, so that this is read"
    assert [message for _, message in found if place in message], found
    assert all(message.endswith("; other programs may refuse it") for _, message in found)
    assert len([message for _, message in found if shards not in message or shards in place]) == 1


def test_words_that_are_no_json():
    text = json.dumps(ARRAY | {"attributes": {"a": [1, float("nan")], "b": {"c": float("-inf")}, "d": "NaN"}})
    assert [message.partition(";")[0] for _, message in notes(stored(**{"zarr.json": text.encode()}))] == [
        "attributes.a[1]: NaN is no JSON",
        "attributes.b.c: -Infinity is no JSON",
    ]
    found = notes(stored(**{".zarray": OLDER, ".zattrs": b'{"x": NaN}'}))
    assert [(key, message.partition(";")[0]) for key, message in found] == [(".zarray", ".zattrs: x: NaN is no JSON")]


def test_a_group_of_v3():
    group = {"zarr_format": 3, "node_type": "group", "consolidated_metadata": None}
    ((key, message),) = notes(stored(**{"zarr.json": group}))
    assert (key, message.partition(":")[0]) == ("zarr.json", "consolidated_metadata")


def test_v2():
    ((key, message),) = notes(stored(**{".zarray": OLDER | {"dimension_separator": None}}))
    assert (key, message.partition(":")[0]) == (".zarray", "dimension_separator")
    ((key, message),) = notes(stored(**{".zgroup": {"zarr_format": 2, "extra": 1}}))
    assert (key, message.partition(":")[0]) == (".zgroup", "extra")
    found = notes(stored(**{".zgroup": {"zarr_format": 2}, "ä/.zgroup": {"zarr_format": 2}, "ä/b/.zarray": OLDER}))
    assert [(key, message.partition(";")[0]) for key, message in found] == [
        ("ä/.zgroup", "path: the name 'ä' is not ASCII")
    ]
    assert notes(stored(**{"ä/zarr.json": ARRAY})) == []
    ((key, message),) = notes(stored(**{".zarray": OLDER | {"dtype": "<M8"}}))
    assert message.startswith('dtype: "<M8" has no unit of time')


def test_v1_without_attributes():
    ((key, message),) = notes(stored(meta=V1))
    assert (key, message.partition(";")[0]) == ("meta", "attrs: the document is missing")


@pytest.mark.parametrize("dtype", ["M8", "m8", "<M8", "datetime64"])
def test_times_without_unit_are_not_made(dtype):
    with pytest.raises(MetadataError, match="has no unit of time; it is required"):
        zardine.create_array(MemoryStore(), shape=2, dtype=dtype, zarr_format=2)


# members that say that they may be passed over


def kept(document):
    store = stored(**{"zarr.json": document})
    array = zardine.open_array(store, mode="r+")
    array[...] = 1
    array.attrs["a"] = 1
    array.resize((2, 4))
    assert zardine.open_array(store)[...].tolist() == [[1] * 4] * 2
    return json.loads(bytes(store.get("zarr.json")))


PASS = {"must_understand": False, "why": [1.5]}


def test_members_of_extensions_that_may_be_ignored_are_kept():
    document = ARRAY | {
        "data_type": {"name": "int16", "x": PASS},
        "chunk_grid": {**ARRAY["chunk_grid"], "x": PASS},
        "chunk_key_encoding": {"name": "default", "x": PASS},
        "codecs": [
            sharding(
                [{**LITTLE, "x": PASS}, {"name": "gzip", "configuration": {"level": 1, "more": PASS}}],
                index_codecs=[LITTLE],
            )
            | {"x": PASS}
        ],
    }
    found = kept(document)
    for member in ("data_type", "chunk_grid", "chunk_key_encoding", "codecs"):
        assert found[member] == document[member], member


@pytest.mark.parametrize("value", [1, None, {}, {"must_understand": True}, {"must_understand": 0}, "false"])
@pytest.mark.parametrize("member", ["data_type", "chunk_grid", "chunk_key_encoding", "codecs"])
def test_other_unknown_members_of_extensions_are_refused(member, value):
    given = {"data_type": {"name": "int16"}, "codecs": LITTLE}.get(member, ARRAY[member])
    wrong = {**given, "x": value}
    with pytest.raises((MetadataError, UnknownExtensionError), match=r"x: unknown member of an extension object"):
        zardine.open_array(stored(**{"zarr.json": ARRAY | {member: [wrong] if member == "codecs" else wrong}}))


@pytest.mark.parametrize("typesize", [0, -1, None, "x", 2**40, 1.5, [], True])
def test_blosc_without_shuffle_passes_over_the_size_of_elements(typesize):
    options = {"cname": "lz4", "clevel": 1, "shuffle": "noshuffle", "blocksize": 0, "typesize": typesize}
    codecs = [LITTLE, {"name": "blosc", "configuration": options}]
    assert kept(ARRAY | {"codecs": codecs})["codecs"] == codecs
    for shuffle in ("shuffle", "bitshuffle"):
        wrong = [LITTLE, {"name": "blosc", "configuration": options | {"shuffle": shuffle}}]
        with pytest.raises(MetadataError, match="typesize"):
            zardine.open_array(stored(**{"zarr.json": ARRAY | {"codecs": wrong}}))


# fill values of short floats, and words that are no JSON


def fill_of(name, text):
    document = json.dumps(ARRAY | {"data_type": name, "fill_value": "FILL"}).replace('"FILL"', text)
    return zardine.open_array(stored(**{"zarr.json": document.encode()}), mode="r+")


TIE = "1.000000059604644775390625"  # half-way between two numbers of 32 bits


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("float32", TIE, "0x3f800000"),
        ("float32", TIE + "0000000000000001", "0x3f800001"),
        ("float32", "-" + TIE + "0000000000000001", "0xbf800001"),
        ("float32", "1.000000178813934326171875", "0x3f800002"),
        ("float32", "1.00000017881393432617187499999999", "0x3f800001"),
        ("float16", "1.00048828125", "0x3c00"),
        ("float16", "1.0004882812500000000000000001", "0x3c01"),
        ("float16", "2.98023223876953125e-8", "0x0000"),
        ("float16", "2.980232238769531250000000001e-8", "0x0001"),
        ("float16", "65519.99999999999999999999999", "0x7bff"),
        ("float16", "65520", "0x7c00"),
        ("float16", "-65520.0", "0xfc00"),
        ("float32", "1e39", "0x7f800000"),
        ("float32", "-1e400", "0xff800000"),
        ("float32", "340282356779733661637539395458142568447.99", "0x7f7fffff"),
        ("float32", "340282356779733661637539395458142568448", "0x7f800000"),
        ("float64", "1e400", "0x7ff0000000000000"),
        ("float64", "1" + "0" * 400, "0x7ff0000000000000"),
        ("float64", "0.1", "0x3fb999999999999a"),
    ],
)
def test_fill_values_are_rounded_once_from_the_text(name, text, expected):
    array = fill_of(name, text)
    fill = array.metadata.fill
    word = fill.view(f"u{fill.dtype.itemsize}")[()]
    assert f"0x{word:0{2 * fill.dtype.itemsize}x}" == expected
    array.attrs["again"] = 1  # the document is written anew
    assert zardine.open_array(array.store).metadata.fill.tobytes() == fill.tobytes()


def test_fill_values_in_complex_numbers_and_v2():
    assert fill_of("complex64", f"[{TIE}00000000001, 1e39]").metadata.fill.tobytes().hex() == "0100803f0000807f"
    for text, expected in ((TIE + "0000000001", "0100803f"), (TIE[:-1] + "49999999", "0000803f")):
        document = json.dumps(OLDER | {"dtype": "<f4", "fill_value": "FILL"}).replace('"FILL"', text)
        store = stored(**{".zarray": document.encode()})
        array = zardine.open_array(store, mode="r+")
        assert array.metadata.fill.tobytes().hex() == expected
        array.resize(5)
        assert zardine.open_array(store).metadata.fill.tobytes().hex() == expected


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_bare_words_are_no_fill_values_of_v3(word):
    with pytest.raises(MetadataError, match=f"found {word}"):
        fill_of("float32", word)


def test_numbers_of_attributes_are_ordinary():
    text = json.dumps(ARRAY | {"attributes": {"a": "LONG", "b": ["LONG"], "c": "HUGE"}})
    text = text.replace('"LONG"', "0.12345678901234567890").replace('"HUGE"', "1e400")
    for key, data in (("zarr.json", text.encode()), (".zattrs", text.encode())):
        store = stored(**{key: data, **({".zarray": OLDER} if key == ".zattrs" else {})})
        attributes = zardine.open_array(store).attrs.asdict()
        attributes = attributes.get("attributes", attributes)
        assert {type(attributes["a"]), type(attributes["b"][0]), type(attributes["c"])} == {float}


@pytest.mark.parametrize("change", ["attributes", "shape", "group", "consolidated"])
def test_a_rewritten_document_has_no_words_that_are_no_json(change):
    odd = {"a": float("nan"), "b": [float("inf")], "c": {"d": float("-inf")}}
    group = {"zarr_format": 3, "node_type": "group", "attributes": odd}
    store = stored(
        **{"zarr.json": json.dumps(group).encode(), "x/zarr.json": json.dumps(ARRAY | {"attributes": odd}).encode()}
    )
    array = zardine.open_array(store, path="x", mode="r+")
    if change == "attributes":
        array.attrs["e"] = 1
    elif change == "shape":
        array.resize((2, 2))
    elif change == "group":
        zardine.open_group(store).attrs["e"] = 1
    else:
        zardine.consolidate_metadata(store)

    def fail(word):
        raise AssertionError(word)

    key = "zarr.json" if change in ("group", "consolidated") else "x/zarr.json"
    found = json.loads(bytes(store.get(key)), parse_constant=fail)
    assert found["attributes"] | {"e": 1} == {"a": "NaN", "b": ["Infinity"], "c": {"d": "-Infinity"}, "e": 1}
    if change == "consolidated":
        assert found["consolidated_metadata"]["metadata"]["x"]["attributes"]["a"] == "NaN"


def strict(data):
    """Parse a document as programs do that take no word but those of JSON."""

    def fail(word):
        raise AssertionError(word)

    return json.loads(bytes(data), parse_constant=fail)


ODD = {"a": float("nan"), "b": [float("inf")], "c": {"d": [{"e": float("-inf")}]}}
STRICT = {"a": "NaN", "b": ["Infinity"], "c": {"d": [{"e": "-Infinity"}]}}


@pytest.mark.parametrize("change", ["set", "delete", "put", "shape"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_change_beside_a_bare_word_stores_json(version, change):
    store = MemoryStore()
    zardine.create_array(store, shape=4, chunks=2, dtype="f8", zarr_format=version, attributes={"k": 1})
    first, key = {1: ("meta", "attrs"), 2: (".zarray", ".zattrs"), 3: ("zarr.json", "zarr.json")}[version]
    document = json.loads(bytes(store.get(key)))
    (document["attributes"] if version == 3 else document).update(ODD)
    store.set(key, json.dumps(document).encode())
    if version < 3:
        older = json.loads(bytes(store.get(first)))
        store.set(first, json.dumps(older | {"fill_value": float("nan")}).encode())
    array = zardine.open_array(store, mode="r+")
    expected = {"k": 1, **STRICT}
    if change == "set":
        array.attrs["n"] = 1
        expected["n"] = 1
    elif change == "delete":
        del array.attrs["k"]
        del expected["k"]
    elif change == "put":
        array.attrs.put({"only": 2})
        expected = {"only": 2}
    else:
        array.resize(6)
    assert dict(array.attrs) == dict(zardine.open_array(store).attrs) == expected
    assert {"attributes": expected}.items() <= (
        strict(store.get(key)) if version == 3 else {"attributes": strict(store.get(key))}
    ).items()
    if version < 3:
        assert strict(store.get(first))["fill_value"] == "NaN"
        assert zardine.open_array(store).fill_value != zardine.open_array(store).fill_value


@pytest.mark.parametrize("change", ["root", "below", "consolidate"])
def test_a_change_of_a_group_of_v2_beside_a_bare_word_stores_json(change):
    store = MemoryStore()
    group = zardine.create_group(store, zarr_format=2)
    group.create_array("x", shape=4, chunks=2, dtype="i2")
    group.create_group("g")
    for key in (".zattrs", "x/.zattrs", "g/.zattrs"):
        store.set(key, json.dumps(ODD).encode())
    if change == "consolidate":
        zardine.consolidate_metadata(store)
        documents = strict(store.get(".zmetadata"))["metadata"]
        assert documents[".zattrs"] == documents["x/.zattrs"] == documents["g/.zattrs"] == STRICT
        assert zardine.open_consolidated(store)["x"].attrs["a"] == "NaN"
        return
    (zardine.open_group(store) if change == "root" else zardine.open_group(store)["g"]).attrs["n"] = 1
    assert strict(store.get(".zattrs" if change == "root" else "g/.zattrs")) == STRICT | {"n": 1}


@pytest.mark.parametrize(
    ("fill", "text"), [(float("nan"), "NaN"), (float("inf"), "Infinity"), (float("-inf"), "-Infinity")]
)
@pytest.mark.parametrize("version", [1, 2])
def test_fill_values_that_are_no_numbers_are_texts(version, fill, text):
    store = MemoryStore()
    zardine.create_array(store, shape=4, chunks=2, dtype="f4", fill_value=fill, zarr_format=version)
    assert strict(store.get("meta" if version == 1 else ".zarray"))["fill_value"] == text
    assert str(zardine.open_array(store)[0]) == str(fill)
    bytes_of_it = MemoryStore()
    zardine.create_array(bytes_of_it, shape=4, chunks=2, dtype="S9", fill_value=text.encode(), zarr_format=version)
    assert zardine.open_array(bytes_of_it)[0] == text.encode()


CONSOLIDATED = {"kind": "inline", "must_understand": False, "metadata": {}}


@pytest.mark.parametrize(
    ("member", "place"),
    [
        (CONSOLIDATED, None),
        ({key: CONSOLIDATED[key] for key in ("must_understand", "metadata")}, "consolidated_metadata.kind"),
        ({key: CONSOLIDATED[key] for key in ("kind", "metadata")}, "consolidated_metadata.must_understand"),
        (CONSOLIDATED | {"must_understand": True}, "consolidated_metadata.must_understand"),
    ],
)
def test_consolidated_metadata_says_its_kind_and_that_it_may_be_ignored(member, place):
    store = stored(**{"zarr.json": {"zarr_format": 3, "node_type": "group", "consolidated_metadata": member}})
    assert [message.partition(": ")[0] for _, message in notes(store)] == ([] if place is None else [place])
    assert list(zardine.open_consolidated(store)) == []


@pytest.mark.parametrize(
    ("document", "places"),
    [
        (ARRAY | {"shape": [4, 0]}, []),
        (ARRAY | {"shape": [0, 4], "chunk_grid": regular(0, 4)}, ["chunk_grid.configuration.chunk_shape[0]"]),
        (
            ARRAY | {"shape": [0, 0], "chunk_grid": regular(0, 0)},
            ["chunk_grid.configuration.chunk_shape[0]", "chunk_grid.configuration.chunk_shape[1]"],
        ),
        (OLDER | {"chunks": [0]}, ["chunks[0]"]),
        (OLDER | {"chunks": [False]}, ["chunks[0]"]),
        (OLDER | {"shape": [0], "chunks": [0]}, ["chunks[0]"]),
        (V1 | {"shape": [0], "chunks": [0]}, ["chunks[0]"]),
    ],
)
def test_chunks_of_length_0_are_noted(document, places):
    key = {1: "meta", 2: ".zarray", 3: "zarr.json"}[document["zarr_format"]]
    store = stored(**{key: document}, **({"attrs": {}} if key == "meta" else {}))
    assert [message.partition(": ")[0] for _, message in notes(store)] == places
