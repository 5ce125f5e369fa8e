"""What the texts of the sharding codec say of documents and of empty inner chunks: 1.0, and the draft of March 2023."""

import json
import struct

import numpy as np
import pytest

import zardine
from zardine.codecs import ShardingCodec, TransposeCodec
from zardine.errors import MetadataError, ShardIndexError
from zardine.storage import MemoryStore

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
CRC32C = {"name": "crc32c"}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
EMPTY = 2**64 - 1


def sharding(chunk_shape, codecs=(LITTLE,), *, draft=False):
    configuration = {"chunk_shape": list(chunk_shape), "codecs": list(codecs)}
    index = {} if draft else {"index_codecs": [LITTLE, CRC32C]}
    return {"name": "sharding_indexed", "configuration": configuration | index}


def document(codecs, *, shape=(8,), chunk=(8,), dtype="int16", fill=0, grid=None):
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": dtype,
        "chunk_grid": grid or {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": fill,
        "codecs": list(codecs),
    }


def opened(codecs, *, store=None, config=None, **how):
    store = MemoryStore() if store is None else store
    store.set("zarr.json", json.dumps(document(codecs, **how)).encode())
    return zardine.open_array(store, mode="r+", config=config)


# one form at all depths


@pytest.mark.parametrize("before", [[], [{"name": "transpose", "configuration": {"order": [0]}}]])
@pytest.mark.parametrize("after", [[], [GZIP]])
def test_the_two_forms_do_not_mix(before, after):
    for outer, place in (
        (
            True,
            "configuration.index_codecs: the member is missing; it is required, since the codec inside of it has it",
        ),
        (False, f"codecs[{len(before)}].configuration.index_codecs: the member is missing; it is required, since the "),
    ):
        inner = [*before, sharding((2,), draft=not outer), *after]
        with pytest.raises(MetadataError) as error:
            opened([sharding((4,), inner, draft=outer)])
        assert place in str(error.value)
        assert len(error.value.problems) == 1
        deep = sharding((4,), [sharding((4,), inner, draft=outer)], draft=outer)
        with pytest.raises(MetadataError, match="since the codec"):
            opened([deep])
    opened([sharding((4,), [*before, sharding((2,)), *after])])


def test_the_draft_in_the_draft_is_read():
    a = opened([sharding((4,), [sharding((2,), draft=True)], draft=True)])
    inner = struct.pack("<2h", 1, 2) + struct.pack("<4Q", 0, 4, EMPTY, EMPTY)
    a.store.set("c/0", inner + struct.pack("<4Q", EMPTY, EMPTY, 0, len(inner)))
    assert a[...].tolist() == [0, 0, 0, 0, 1, 2, 0, 0]


@pytest.mark.parametrize("kind", ["memory", "local"])
@pytest.mark.parametrize("after", [[], [GZIP]])
def test_errors_of_an_index_of_the_draft_say_how_it_was_read(tmp_path, kind, after):
    import gzip

    where = "read as the draft of March 2023 has it"
    store = MemoryStore() if kind == "memory" else zardine.storage.LocalStore(tmp_path)
    for draft in (True, False):
        a = opened([sharding((4,), draft=draft), *after], store=store)
        size = a.dtype.itemsize * 8
        index = struct.pack("<4Q", 0, 8, 9999, 8)
        if not draft:
            import google_crc32c

            index += struct.pack("<I", google_crc32c.value(index))
        for value, text in ((b"short", "too few for its index"), (bytes(size) + index, "outside")):
            store.set("c/0", gzip.compress(value) if after else value)
            with pytest.raises(ShardIndexError, match=text) as error:
                zardine.open_array(store)[...]
            assert (where in str(error.value)) is draft
            if not after:
                faults = zardine.verify(store).faults
                assert [where in fault.message for fault in faults] == [draft] * len(faults)
                assert faults


def test_the_draft_is_for_regular_grids():
    grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[4, 4]]}}
    assert opened([sharding((2,))], grid=grid)[...].tolist() == [0] * 8
    for codecs in ([sharding((2,), draft=True)], [sharding((2,), draft=True), GZIP]):
        with pytest.raises(MetadataError, match="which has none, is for regular chunk grids only"):
            opened(codecs, grid=grid)


@pytest.mark.parametrize("length", [2.0, "2", True, None, np.float64(2), 2.5])
def test_lengths_that_are_no_integers_are_refused(length):
    for shape in ((length,), (2, length), [length]):
        with pytest.raises(MetadataError, match=r"chunk_shape\[\d\]: expected an integer from 1 to"):
            ShardingCodec(chunk_shape=shape)
    assert ShardingCodec(chunk_shape=(np.int16(2), 3)).chunk_shape == (2, 3)
    assert ShardingCodec(chunk_shape=4).chunk_shape == ShardingCodec(chunk_shape=np.int64(4)).chunk_shape == (4,)
    with pytest.raises(MetadataError, match="expected an integer"):
        ShardingCodec(chunk_shape=2.5)


def test_any_amount_of_unused_space_behind_a_compressor():
    import gzip

    a = opened([sharding((4,)), GZIP])
    a[...] = np.arange(8)
    shard = gzip.decompress(bytes(a.store.get("c/0")))
    data, index = shard[:16], shard[16:-4]
    assert struct.unpack("<4Q", index) == (0, 8, 8, 8)
    room = 2**22
    moved = struct.pack("<4Q", room, 8, room + 8, 8)
    import google_crc32c

    whole = bytes(room) + data + moved + struct.pack("<I", google_crc32c.value(moved))
    a.store.set("c/0", gzip.compress(whole))
    assert a[...].tolist() == list(range(8))
    a[0] = 9
    assert zardine.open_array(a.store)[...].tolist() == [9, *range(1, 8)]


# empty inner chunks


def stored_inner(value):
    """Which of the four chunks at the innermost level of two levels of shards are stored."""
    found = []
    outer = struct.unpack("<4Q", value[-36:-4])
    for offset, length in (outer[:2], outer[2:]):
        if offset == EMPTY:
            found += [False, False]
            continue
        inner = value[offset : offset + length]
        found += [entry != EMPTY for entry in struct.unpack("<4Q", inner[-36:-4])[::2]]
    return found


@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("form", ["nested", "nested-behind", "behind", "transposed"])
def test_write_empty_chunks_reaches_all_depths(form, keep, buffered):
    import gzip

    nested = sharding((4,), [sharding((2,))])
    codecs = {
        "nested": [nested],
        "nested-behind": [nested, GZIP],
        "behind": [sharding((2,)), GZIP],
        "transposed": [{"name": "transpose", "configuration": {"order": [0]}}, nested],
    }[form]
    a = opened(codecs, config={"write_empty_chunks": keep})
    values = np.array([0, 0, 1, 0, 0, 0, 0, 0])
    if buffered:
        with a.buffered():
            a[:4] = values[:4]
            a[4:] = values[4:]
    else:
        a[...] = values
    assert a[...].tolist() == values.tolist()
    value = bytes(a.store.get("c/0"))
    value = gzip.decompress(value) if codecs[-1] is GZIP else value
    if form == "behind":
        index = struct.unpack("<8Q", value[-68:-4])
        assert [entry != EMPTY for entry in index[::2]] == [keep, True, keep, keep]
    else:
        assert stored_inner(value) == [keep, True, keep, keep]


LOSSY = {
    "bitround": {"name": "bitround", "configuration": {"keepbits": 2}},
    "fixedscaleoffset": {
        "name": "numcodecs.fixedscaleoffset",
        "configuration": {"offset": 0, "scale": 2, "dtype": "<f4", "astype": "<i2"},
    },
    "quantize": {"name": "numcodecs.quantize", "configuration": {"digits": 0, "dtype": "<f4"}},
}


@pytest.mark.parametrize("cache", [0, 2**20])
@pytest.mark.parametrize("name", LOSSY)
def test_empty_chunks_read_the_same_on_both_ways(name, cache):
    fill = 0.7
    found = []
    for after in ([], [GZIP], [sharding((4,), [LITTLE])]):
        first = [] if after and after[0]["name"] == "sharding_indexed" else [sharding((2,))]
        a = opened([LOSSY[name], *first, *after], dtype="float32", fill=fill, shape=(16,), config={"cache": cache})
        a[:2] = 3
        found.append((a[2:8].tolist(), a[8:].tolist()))
        assert a[...][:2].tolist() == [3, 3]
        assert a[...][2:].tolist() == [*found[-1][0], *found[-1][1]]
        a[2] = fill  # what is written next to them reads as they do
        assert set(a[2:8].tolist()) == set(found[-1][0])
    assert found[0] == found[1]
    assert found[0][1] == [np.float32(fill)] * 8, "a shard that is not stored is the fill value itself"
    assert found[0][0] == [np.float32(fill)] * 6, "nor is an inner chunk that is not stored"


def test_transposed_shards_have_the_fill_value_itself():
    a = zardine.create_array(
        MemoryStore(),
        shape=(4, 6),
        chunks=(4, 6),
        dtype="f4",
        fill_value=0.7,
        filters=[TransposeCodec(order=(1, 0))],
        serializer=ShardingCodec(chunk_shape=(3, 2)),
        compressors=None,
    )
    a[0, 0] = 1
    assert a[3, 5] == np.float32(0.7)
