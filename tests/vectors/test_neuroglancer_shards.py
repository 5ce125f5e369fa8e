"""Values of uint64 ids in shards: the same bytes for us and for tensorstore, and nothing read that is not there."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import cloudvolume.datasource.precomputed.sharding as by_cloud_volume
import numpy as np
import pytest
import tensorstore
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from zardine.errors import ChunkDecodeError, CorruptionError, DataError, ShardIndexError
from zardine.vectors.exchange.listing import Seen
from zardine.vectors.exchange.precomputed.annotations import Index
from zardine.vectors.exchange.precomputed.folder import Folder
from zardine.vectors.exchange.precomputed.portions import portions_of
from zardine.vectors.exchange.precomputed.sharding import TYPE, Sharding, murmurhash3_x86_128

RAW: dict[str, Any] = {"minishard_index_encoding": "raw", "data_encoding": "raw"}
KINDS = (
    Sharding(),
    Sharding(minishard_bits=3, shard_bits=2),
    Sharding(minishard_bits=2, shard_bits=5, hash="identity", preshift_bits=3, **RAW),
)
ROUND = pytest.mark.parametrize("sharding", KINDS, ids=("one", "hashed", "identity"))


def values_of(folder: Folder, index: Index, at_once: int = 2**26) -> dict[int, bytes]:
    """All values of an index, each of which is in one portion."""
    found = [pair for portion in portions_of(folder, index, at_once, Seen()) for pair in portion.values(folder)]
    values = {int(name): bytes(value) for name, value in found}
    assert len(values) == len(found)
    return values


def many() -> dict[int, bytes]:
    rng = np.random.default_rng(0)
    ids = np.unique(np.concatenate((rng.integers(0, 2**64, 100, np.uint64), np.arange(100, dtype=np.uint64))))
    return {number: rng.bytes(number % 40) for number in ids.tolist()}


def opened(path: Path, sharding: Sharding) -> Any:
    driver = {"driver": "neuroglancer_uint64_sharded", "base": f"file://{path}/", "metadata": sharding.document()}
    return tensorstore.KvStore.open(driver).result()


def write(path: Path, sharding: Sharding, values: dict[int, bytes]) -> None:
    ids = np.array(list(values), np.uint64)
    shards, _ = sharding.places(ids)
    for shard in np.unique(shards).tolist():
        given = [(number, values[number]) for number in ids[shards == shard].tolist()]
        (path / sharding.name(shard)).write_bytes(sharding.shard(given))


@pytest.mark.parametrize(
    ("told", "steps", "minishards"),
    [
        ("belongs into another place", [0], (0, 1)),
        ("an id is in this shard twice", [0, 2, -2], (0,)),
        ("values overlap", [0, *[2] * 40], (0,)),
    ],
)
def test_a_shard_that_names_values_again_and_again(
    tmp_path: Path, told: str, steps: list[int], minishards: tuple[int, ...]
) -> None:
    """Each id is there once, where it belongs: a small file does not make large values many times over."""
    value, sharding = bytes(1000), Sharding(minishard_bits=1, hash="identity", **RAW)
    count = len(steps)
    table = np.array([steps, [0, *[-1000] * (count - 1)], [1000] * count], "<i8").tobytes()
    entries = np.zeros((2, 2), "<u8")
    entries[list(minishards)] = 1000, 1000 + len(table)
    (tmp_path / sharding.name(0)).write_bytes(entries.tobytes() + value + table)
    with pytest.raises(CorruptionError, match=told):
        values_of(Folder.at(tmp_path), Index(".", sharding))


@ROUND
def test_tensorstore_reads_what_we_write(tmp_path: Path, sharding: Sharding) -> None:
    values = many()
    write(tmp_path, sharding, values)
    store = opened(tmp_path, sharding)
    assert {number: store[number.to_bytes(8, "big")] for number in values} == values
    assert store.read((12345).to_bytes(8, "big")).result().state == "missing"


@ROUND
def test_we_read_what_tensorstore_writes(tmp_path: Path, sharding: Sharding) -> None:
    values = many()
    with tensorstore.Transaction() as transaction:
        store = opened(tmp_path, sharding).with_transaction(transaction)
        for number, value in values.items():
            store[number.to_bytes(8, "big")] = value
    index = Index(".", sharding)
    folder = Folder.at(tmp_path)
    assert values_of(folder, index) == values
    for number in list(values)[::20]:
        value = folder.value(index, number, "")
        assert value is not None
        assert bytes(value) == values[number]
    assert folder.value(index, 12345, "") is None


def test_hashes_are_those_of_cloud_volume() -> None:
    spec = by_cloud_volume.ShardingSpecification.from_dict(Sharding().document())
    ids = np.array([0, 1, 2**32, 2**63, 2**64 - 1, 123456789], np.uint64)
    assert murmurhash3_x86_128(ids).tolist() == [int(spec.hashfn(np.uint64(each))) for each in ids.tolist()]


@given(st.dictionaries(st.integers(0, 2**64 - 1), st.binary(max_size=20), max_size=12), st.sampled_from(KINDS[:1]))
@settings(max_examples=examples(40), deadline=None)
def test_what_goes_in_comes_out(values: dict[int, bytes], sharding: Sharding) -> None:
    shard = sharding.shard(values.items())
    found = {}
    for start, length in sharding.index_ranges(shard[: sharding.index_size], len(shard)).tolist():
        if length:
            table = sharding.minishard(shard[start : start + length], len(shard))
            for number, first, count in zip(*(each.tolist() for each in table), strict=True):
                found[number] = bytes(sharding.value(shard[first : first + count]))
    assert found == values


def test_one_id_twice() -> None:
    with pytest.raises(DataError, match="once"):
        Sharding().shard([(1, b"a"), (1, b"b")])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"@type": "other"}, "no table with '@type'"),
        ({"hash": "md5"}, "hash is 'identity' or 'murmurhash3_x86_128', not 'md5'"),
        ({"minishard_bits": 60}, "of the first there are 32 at most"),
        ({"shard_bits": 64}, "of both 64"),
        ({"shard_bits": True}, "whole number from 0 to 64"),
        ({"preshift_bits": -1}, "whole number from 0 to 64"),
        ({"data_encoding": "zip"}, "data_encoding is"),
    ],
)
def test_documents_that_are_none(change: dict[str, Any], text: str) -> None:
    document = {**Sharding(minishard_bits=2).document(), **change}
    with pytest.raises(DataError, match=text):
        Sharding.parse(document, "info: sharding")
    assert Sharding.parse(None, "info") is None
    assert Sharding.parse(Sharding().document(), "info") == Sharding()
    assert TYPE == "neuroglancer_uint64_sharded_v1"


def test_indexes_that_lie() -> None:
    """Nothing is read, or room made for it, that is not in the shard."""
    sharding = Sharding(**RAW)
    for start, end in ((5, 4), (0, 10**15), (10**15, 10**15 + 1)):
        with pytest.raises(ShardIndexError, match="behind the shard index"):
            sharding.index_ranges(np.array([start, end], "<u8").tobytes(), 100)
    with pytest.raises(ShardIndexError, match="fewer than its index"):
        sharding.index_ranges(bytes(16), 10)
    with pytest.raises(ShardIndexError, match="no multiple of 24"):
        sharding.minishard(bytes(23), 100)
    for start, length in ((0, 10**15), (2**64 - 1, 2**64 - 1), (90, 1), (2**63, 2**63)):
        table = np.array([[7], [start], [length]], "<u8")
        with pytest.raises(ShardIndexError, match="the value of id 7"):
            sharding.minishard(table.tobytes(), 100)
    with pytest.raises(ChunkDecodeError):
        Sharding().minishard(b"no gzip", 100)
    with pytest.raises(CorruptionError):
        Sharding().value(gzip.compress(b"cut")[:-3])


def test_every_flipped_byte_is_an_error_or_harmless(tmp_path: Path) -> None:
    sharding = Sharding(minishard_bits=1)
    values = {number: bytes([number]) * number for number in range(12)}
    shard = bytearray(sharding.shard(values.items()))
    folder, index = Folder.at(tmp_path), Index(".", sharding)
    found_damage = 0
    for place in range(len(shard)):
        shard[place] ^= 0x55
        (tmp_path / sharding.name(0)).write_bytes(shard)
        shard[place] ^= 0x55
        try:
            found = values_of(folder, index)
        except CorruptionError as error:
            found_damage += f"{tmp_path}/{sharding.name(0)}" in str(error)
        else:
            assert all(found[number] == values[number] for number in found)
    assert found_damage > len(shard) / 2


def test_a_value_in_the_wrong_shard(tmp_path: Path) -> None:
    sharding = Sharding(shard_bits=4)
    (tmp_path / "f.shard").write_bytes(Sharding().shard([(1, b"a"), (2, b"b")]))
    with pytest.raises(CorruptionError, match="belongs into another"):
        values_of(Folder.at(tmp_path), Index(".", sharding))
