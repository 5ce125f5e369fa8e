"""The shard index and the layout of shards, without any store."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zardine.codecs.chain import CodecChain
from zardine.codecs.registry import parse_codec
from zardine.codecs.sharding_indexed import build_index_chain
from zardine.errors import ChecksumError, CorruptionError, MetadataError, ShardIndexError
from zardine.json_document import Problems
from zardine.metadata.v3 import parse_node_json
from zardine.sharding.index import (
    MISSING,
    ShardIndex,
    decode_index,
    decode_words,
    empty_index,
    encode_index,
    encode_words,
)
from zardine.sharding.layout import ShardLayout, c_strides

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
U64 = st.integers(0, 2**64 - 1)
EMPTY = 2**64 - 1


def chain_of(codecs: list[Any], grid: tuple[int, ...]) -> CodecChain:
    problems = Problems()
    parsed = [parse_codec(codec, "codecs", problems) for codec in codecs]
    chain = build_index_chain([codec for codec in parsed if codec is not None], grid, "index_codecs", problems)
    assert not problems, problems.found
    assert chain is not None
    return chain


def layout_of(grid: tuple[int, ...], *, at_start: bool = False, codecs: Any = (LITTLE, "crc32c")) -> ShardLayout:
    return ShardLayout(grid, c_strides(grid), chain_of(list(codecs), grid), at_start)


def index_of(*entries: tuple[int, int]) -> ShardIndex:
    table = np.array(entries, np.uint64).view(np.int64).reshape(-1, 2)
    return ShardIndex(table[:, 0].copy(), table[:, 1].copy())


@given(st.lists(st.tuples(U64, U64), min_size=6, max_size=6), st.sampled_from([LITTLE, BIG]), st.booleans())
def test_every_index_is_read_back(entries: list[tuple[int, int]], order: Any, checksum: bool) -> None:
    chain = chain_of([order, *(["crc32c"] if checksum else [])], (2, 3))
    index = index_of(*entries)
    data = encode_index(index, chain)
    assert len(data) == chain.encoded_size == 6 * 16 + 4 * checksum
    again = decode_index(data, chain)
    assert again.offsets.view(np.uint64).tolist() == [offset for offset, _ in entries]
    assert again.lengths.view(np.uint64).tolist() == [length for _, length in entries]


def test_bytes_of_an_index_are_offset_and_length_in_c_order() -> None:
    data = bytes(encode_index(index_of((1, 2), (3, 4)), chain_of([LITTLE], (2,))))
    assert data == b"".join(n.to_bytes(8, "little") for n in (1, 2, 3, 4))
    assert bytes(encode_index(empty_index(2), chain_of([BIG], (2,)))) == b"\xff" * 32
    assert index_of((EMPTY, EMPTY)).offsets.tolist() == index_of((EMPTY, EMPTY)).lengths.tolist() == [MISSING]


@given(st.lists(st.tuples(U64, U64), min_size=1, max_size=5), st.integers(0, 100), U64)
def test_entries_beyond_the_data_are_found_without_overflow(entries: Any, start: int, stop: int) -> None:
    want = [
        (offset, length) != (EMPTY, EMPTY) and (offset < start or offset + length > stop) for offset, length in entries
    ]
    assert index_of(*entries).beyond(start, stop).tolist() == want


@pytest.mark.parametrize(
    ("entry", "outside"),
    [
        ((0, 100), False),
        ((0, 101), True),
        ((100, 0), False),
        ((101, 0), True),
        ((2**64 - 1, 0), True),
        ((0, 2**64 - 1), True),
        ((2**64 - 1, 1), True),
        ((2**64 - 50, 100), True),  # the sum wraps around to 50
        ((50, 2**64 - 50), True),  # to 0
        ((2**63, 2**63), True),
        ((EMPTY, EMPTY), False),
    ],
)
def test_entries_near_two_to_the_64(entry: tuple[int, int], outside: bool) -> None:
    assert index_of(entry).beyond(0, 100).tolist() == [outside]
    assert index_of(entry).beyond(0, -5).tolist() == [entry != (EMPTY, EMPTY) and entry != (0, 0)]


def test_half_empty_entries_count_as_stored() -> None:
    index = index_of((EMPTY, 5), (5, EMPTY), (EMPTY, EMPTY), (0, 0))
    assert index.stored().tolist() == [True, True, False, True]


@pytest.mark.parametrize("wrong", [b"", b"\0" * 35, b"\0" * 37])
def test_an_index_of_another_size_is_refused(wrong: bytes) -> None:
    with pytest.raises(ShardIndexError, match="the shard index takes 36 bytes"):
        decode_index(wrong, chain_of([LITTLE, "crc32c"], (2,)))


def test_every_flipped_bit_of_a_checksummed_index_is_noticed() -> None:
    chain = chain_of([LITTLE, "crc32c"], (2,))
    data = bytes(encode_index(index_of((0, 7), (7, 9)), chain))
    for bit in range(8 * len(data)):
        wrong = bytearray(data)
        wrong[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ChecksumError):
            decode_index(bytes(wrong), chain)


@given(st.lists(st.one_of(st.none(), st.binary(max_size=9)), min_size=4, max_size=4), st.booleans())
def test_assembled_shards_hold_what_was_put_in(chunks: list[bytes | None], at_start: bool) -> None:
    layout = layout_of((2, 2), at_start=at_start)
    shard = layout.assemble(chunks)
    assert len(shard) == layout.index_size + sum(len(chunk) for chunk in chunks if chunk is not None)
    index = layout.index_of(shard)
    assert not index.beyond(*layout.data_bounds(len(shard))).any()
    found = [
        shard[offset : offset + length] if stored else None
        for offset, length, stored in zip(index.offsets.tolist(), index.lengths.tolist(), index.stored(), strict=True)
    ]
    assert found == chunks


def test_layout_numbers() -> None:
    end, start = layout_of((3, 4, 5)), layout_of((3, 4, 5), at_start=True)
    assert (end.count, end.strides, end.index_size) == (60, (20, 5, 1), 60 * 16 + 4)
    assert (end.index_range, start.index_range) == ((-964, None), (0, 964))
    assert (end.data_bounds(1000), start.data_bounds(1000)) == ((0, 36), (964, 1000))
    assert layout_of(()).count == 1
    for layout in (end, start):
        with pytest.raises(ShardIndexError, match="too few for its index"):
            layout.index_of(b"\0" * 963)


def sharded(configuration: dict[str, Any], shape: Any = (8, 8), chunk: Any = (8, 8)) -> dict[str, Any]:
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [{"name": "sharding_indexed", "configuration": configuration}],
    }


GOOD: dict[str, Any] = {"chunk_shape": [4, 2], "codecs": [LITTLE], "index_codecs": [LITTLE, "crc32c"]}


def open_document(document: dict[str, Any]) -> Any:
    import json

    import zardine

    return zardine.open_array({"zarr.json": json.dumps(document).encode()})


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"chunk_shape": None}, "codecs[0].configuration.chunk_shape"),
        ({"chunk_shape": [3, 2]}, "codecs[0].configuration.chunk_shape[0]"),
        ({"chunk_shape": [4, 16]}, "codecs[0].configuration.chunk_shape[1]"),
        ({"chunk_shape": [4]}, "codecs[0].configuration.chunk_shape"),
        ({"chunk_shape": [4, 0]}, "codecs[0].configuration.chunk_shape[1]"),
        ({"codecs": []}, "codecs[0].configuration.codecs"),
        ({"codecs": ["nonsense"]}, "codecs[0].configuration.codecs[0].name"),
        ({"codecs": [LITTLE, {"name": "zstd", "configuration": {}}]}, "codecs[0].configuration.codecs[1]"),
        ({"index_codecs": []}, "codecs[0].configuration.index_codecs"),
        (
            {"index_codecs": [LITTLE, {"name": "gzip", "configuration": {"level": 1}}]},
            "codecs[0].configuration.index_codecs",
        ),
        ({"index_codecs": ["bytes"]}, "codecs[0].configuration.index_codecs[0]"),
        ({"index_location": "middle"}, "codecs[0].configuration.index_location"),
        ({"extra": 1}, "codecs[0].configuration.extra"),
    ],
)
def test_wrong_sharding_configurations_are_refused_when_the_metadata_is_read(change: Any, place: str) -> None:
    assert open_document(sharded(GOOD)).chunks == (4, 2)
    with pytest.raises(MetadataError) as error:
        open_document(sharded({**GOOD, **change}))
    assert any(problem.place.startswith(place) for problem in error.value.problems), error.value.problems


@pytest.mark.parametrize("member", ["chunk_shape", "codecs"])
def test_required_members(member: str) -> None:
    with pytest.raises(MetadataError) as error:
        open_document(sharded({name: value for name, value in GOOD.items() if name != member}))
    assert [problem.place for problem in error.value.problems] == [f"codecs[0].configuration.{member}"]


def test_a_problem_inside_nested_sharding_has_its_place() -> None:
    inner = {"name": "sharding_indexed", "configuration": {**GOOD, "chunk_shape": [2, 3]}}
    with pytest.raises(MetadataError) as error:
        open_document(sharded({**GOOD, "chunk_shape": [4, 4], "codecs": [inner]}))
    assert [problem.place for problem in error.value.problems] == [
        "codecs[0].configuration.codecs[0].configuration.chunk_shape[1]"
    ]


def test_shards_of_a_rectilinear_grid_are_all_divided() -> None:
    document = sharded(GOOD, shape=(8, 8))
    document["chunk_grid"] = {
        "name": "rectilinear",
        "configuration": {"kind": "inline", "chunk_shapes": [[4, 4], [2, 3, 3]]},
    }
    with pytest.raises(MetadataError, match="do not evenly divide shards of length 3 on axis 1"):
        open_document(document)


def test_bytes_that_are_no_shard() -> None:
    import json

    import zardine

    store = {"zarr.json": json.dumps(sharded(GOOD)).encode(), "c/0/0": b"x" * 50}
    array = zardine.open_array(store)
    with pytest.raises(CorruptionError) as error:
        array[0, 0]
    assert (error.value.key, error.value.array) == ("c/0/0", "")
    assert parse_node_json(sharded(GOOD), "subject").shape == (8, 8)  # type: ignore[union-attr]


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("with_checksum", [True, False])
def test_an_index_that_is_kept_holds_nothing_else(count: int, with_checksum: bool) -> None:
    """Of a whole shard, say, at the end of which it was found."""
    index = ShardIndex(np.arange(count), np.full(count, 3))
    data = encode_words(index, with_checksum=with_checksum)
    shard = np.frombuffer(bytes(1000) + data, "u1")
    found = decode_words(memoryview(shard)[1000:])
    assert found is not None
    assert found.offsets.tolist() == index.offsets.tolist()
    for kept in (found.offsets, found.lengths):
        assert kept.base is None
        assert kept.flags.c_contiguous
