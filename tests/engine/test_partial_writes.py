"""What a write of part of a shard does to the rest of it, and what a failed write leaves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.codecs.registry import parse_codec
from zardine.codecs.sharding_indexed import build_index_chain
from zardine.errors import ConditionFailedError, CorruptionError, EncodeError, ShardIndexError, StoreError
from zardine.json_document import Problems
from zardine.sharding.layout import ShardLayout, c_strides
from zardine.storage import Condition, MemoryStore, WrapperStore
from zardine.stores.attempts import WRITES

VALUES = np.arange(1, 17, dtype="i4").reshape(4, 4)


def layout_of(array: zardine.Array) -> ShardLayout:
    sharding = array.metadata.to_dict()["codecs"][0]["configuration"]
    grid = tuple(a // b for a, b in zip(array.shards or (), array.chunks, strict=True))
    problems = Problems()
    codecs = [parse_codec(each, "", problems) for each in sharding["index_codecs"]]
    chain = build_index_chain([each for each in codecs if each], grid, "", problems)
    assert chain is not None
    return ShardLayout(grid, c_strides(grid), chain, sharding["index_location"] == "start")


def inner_chunks(array: zardine.Array, key: str = "c/0/0") -> list[bytes | None]:
    """The encoded inner chunks of a stored shard."""
    shard = bytes(array.store.get(key) or b"")
    index = layout_of(array).index_of(shard)
    return [
        shard[offset : offset + length] if stored else None
        for offset, length, stored in zip(index.offsets.tolist(), index.lengths.tolist(), index.stored(), strict=True)
    ]


def replace_chunk(array: zardine.Array, row: int, data: bytes | None, key: str = "c/0/0") -> None:
    chunks: list[Any] = list(inner_chunks(array, key))
    chunks[row] = data
    array.store.set(key, layout_of(array).assemble(chunks))


def made(**arguments: Any) -> zardine.Array:
    array = zardine.create_array(
        MemoryStore(), shape=(4, 4), dtype="i4", **{"chunks": (2, 2), "shards": (4, 4), **arguments}
    )
    array[...] = VALUES
    return array


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("region", [(slice(0, 2), slice(0, 2)), (0, 0), (slice(0, 1), slice(0, 2))])
def test_untouched_inner_chunks_are_carried_over_without_decoding(location: str, region: Any) -> None:
    array = made(shards={"shape": (4, 4), "index_location": location})
    damaged = b"these bytes are no chunk of any codec"
    replace_chunk(array, 3, damaged)
    before = inner_chunks(array)
    array[region] = 7
    after = inner_chunks(array)
    assert after[1:] == [*before[1:3], damaged]
    assert after[0] != before[0]
    assert (array[0:2, 2:4] == VALUES[0:2, 2:4]).all()
    with pytest.raises(CorruptionError) as error:
        array[3, 3]
    assert (error.value.chunk, error.value.key) == ((1, 1), "c/0/0")


def test_a_damaged_chunk_can_be_replaced_but_not_changed_in_part() -> None:
    array = made()
    replace_chunk(array, 3, b"damaged")
    before = array.store.get("c/0/0")
    with pytest.raises(CorruptionError):
        array[3, 3] = 1
    assert array.store.get("c/0/0") == before
    array[2:4, 2:4] = 5
    assert array[3, 3] == 5


def test_an_index_that_points_outside_is_not_written_over() -> None:
    array = made()
    layout = layout_of(array)
    shard = bytes(array.store.get("c/0/0") or b"")
    index = layout.index_of(shard)
    index.offsets[2] = 10**6
    from zardine.sharding.index import encode_index

    wrong = shard[: -layout.index_size] + bytes(encode_index(index, layout.index_chain))
    array.store.set("c/0/0", wrong)
    with pytest.raises(ShardIndexError, match=r"1000000.*outside"):
        array[0, 0] = 3
    with pytest.raises(ShardIndexError):
        array[0:2, 0:2] = 3
    assert array.store.get("c/0/0") == wrong
    with pytest.raises(ShardIndexError):  # one wrong entry makes the others doubtful
        array[0, 0]
    array[...] = VALUES  # all of it is new: nothing of the old shard is needed
    assert (array[...] == VALUES).all()


def test_shards_of_other_writers_are_read_and_changed() -> None:
    """Unused space, any order, shared ranges, and inner chunks of no length."""
    array = made(compressors=None, checksum=False)
    layout = layout_of(array)
    one = np.full((2, 2), 9, "<i4").tobytes()
    two = np.full((2, 2), 8, "<i4").tobytes()
    from zardine.sharding.index import encode_index

    index = layout.index_of(bytes(array.store.get("c/0/0") or b""))
    index.offsets[:] = [40, 3, 40, 40]
    index.lengths[:] = [16, 16, 16, 16]
    data = b"xyz" + two + bytes(21) + one + b"more unused space"
    array.store.set("c/0/0", data + bytes(encode_index(index, layout.index_chain)))
    want = np.full((4, 4), 9)
    want[0:2, 2:4] = 8
    assert (array[...] == want).all()
    assert array.vindex[[3, 0], [3, 3]].tolist() == [9, 8]
    array[3, 3] = 1
    want[3, 3] = 1
    assert (array[...] == want).all()


class FailingStore(WrapperStore):
    """A store whose writes fail while ``broken``; before that, ``at_read`` is called once on the next read."""

    broken = False
    at_read: Any = None

    def read(self, key: str, ranges: Any = ((0, None),)) -> Any:
        hook, self.at_read = self.at_read, None
        reading = super().read(key, ranges)
        if hook is not None:
            hook()
        return reading

    def set(self, key: str, value: Any, *, condition: Condition | None = None) -> Any:
        if self.broken:
            raise StoreError("the disk is full")
        return super().set(key, value, condition=condition)

    def erase(self, key: str) -> None:
        if self.broken:
            raise StoreError("the disk is full")
        super().erase(key)


def contents(store: Any) -> dict[str, bytes]:
    return {key: bytes(store.get(key)) for key in store.list()}


@pytest.mark.parametrize("arguments", [{}, {"shards": None}, {"shards": (2, 2)}])
def test_a_store_that_fails_in_set_leaves_what_was_there(arguments: dict[str, Any]) -> None:
    store = FailingStore(MemoryStore())
    array = zardine.create_array(
        store, name="a", shape=(4, 4), dtype="i4", **{"chunks": (2, 2), "shards": (4, 4), **arguments}
    )
    array[...] = VALUES
    before = contents(store)
    store.broken = True
    for change in (
        lambda: array.__setitem__(..., 0),
        lambda: array.__setitem__((0, 0), 5),
        lambda: array.__setitem__(..., VALUES + 1),
        lambda: array.append(VALUES),
        lambda: array.resize((9, 9)),
        lambda: array.attrs.update(a=1),
        lambda: zardine.create_array(store, name="b", shape=(1,), dtype="i4"),
    ):
        with pytest.raises(StoreError, match="disk is full"):
            change()
        assert contents(store) == before
        assert array.shape == (4, 4)
        assert array.attrs.asdict() == {}
        assert (array[...] == VALUES).all()
    store.broken = False
    array.append(VALUES)
    assert (array[...] == np.concatenate([VALUES, VALUES])).all()


@pytest.mark.parametrize("arguments", [{"shards": (4, 4)}, {"shards": None}])
def test_values_that_cannot_be_encoded_leave_what_was_there(arguments: dict[str, Any]) -> None:
    cast = {"name": "cast_value", "configuration": {"data_type": "int8"}}
    array = made(filters=[cast], **arguments)
    before = contents(array.store)
    for region in ((0, 0), (slice(0, 2), slice(0, 2))):
        with pytest.raises(EncodeError) as error:
            array[region] = 1000
        assert (error.value.key, error.value.chunk, error.value.codec) == ("c/0/0", (0, 0), "cast_value")
        assert contents(array.store) == before
    big = VALUES.copy()
    big[3, 3] = 1000
    with pytest.raises(EncodeError):
        array[...] = big
    assert bytes(array.store.get("c/0/0") or b"") == before["c/0/0"] or arguments["shards"] is None


def test_a_rewrite_between_index_and_chunk_is_noticed() -> None:
    store = FailingStore(MemoryStore())
    array = zardine.create_array(store, shape=(4, 4), dtype="i4", chunks=(2, 2), shards=(4, 4), compressors=None)
    array[...] = VALUES
    other = zardine.open_array(store.store)
    reader = zardine.open_array(store)

    def rewrite() -> None:
        other[0:2] = 0  # the chunks that stay move to the front
        other[2:4] = VALUES[2:4] * 10

    store.at_read = rewrite
    assert reader[3, 3] == 160
    assert reader[2, 0] == 90
    other[...] = VALUES  # and with a warm index
    assert reader[3, 3] == 16
    other[2:4, 2:4] = 0
    assert reader[3, 3] == 0
    other[...] = 0
    assert reader[3, 3] == 0
    assert reader[0, 0] == 0


def test_a_write_that_another_process_overtakes_is_done_again() -> None:
    store = FailingStore(MemoryStore())
    array = zardine.create_array(store, shape=(4, 4), dtype="i4", chunks=(2, 2), shards=(4, 4))
    array[...] = VALUES
    backing = store.store

    def foreign() -> None:  # what a writer does that takes no lock of ours
        data = bytes(backing.get("c/0/0") or b"")
        twin = zardine.open_array({**contents(backing), "c/0/0": data})
        twin[3, 3] = 100
        backing.set("c/0/0", twin.store.get("c/0/0") or b"")

    store.at_read = foreign
    array[0, 0] = 50
    assert (array[0, 0], array[3, 3]) == (50, 100)


def test_a_new_shard_that_another_process_made_first_is_kept() -> None:
    store = FailingStore(MemoryStore())
    array = zardine.create_array(store, shape=(4, 4), dtype="i4", chunks=(2, 2), shards=(4, 4))
    twin = zardine.create_array(MemoryStore(), shape=(4, 4), dtype="i4", chunks=(2, 2), shards=(4, 4))
    twin[3, 3] = 100
    store.at_read = lambda: store.store.set("c/0/0", twin.store.get("c/0/0") or b"")
    array[0, 0] = 50
    assert (array[0, 0], array[3, 3]) == (50, 100)


def test_conditions_that_never_hold_end_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn(WrapperStore):
        def set(self, key: str, value: Any, *, condition: Condition | None = None) -> Any:
            if key.endswith("zarr.json"):
                return super().set(key, value, condition=condition)
            raise ConditionFailedError("never")

    monkeypatch.setattr("zardine.stores.attempts.WRITES", replace(WRITES, seconds=0.2))
    array = zardine.create_array(Stubborn(MemoryStore()), shape=(4,), dtype="i4", chunks=(2,), shards=(4,))
    with pytest.raises(ConditionFailedError, match="never"):
        array[0] = 1


def test_a_shard_of_one_chunk_with_much_unused_space_is_changed() -> None:
    store = zardine.storage.MemoryStore()
    array = zardine.create_array(store, shape=(8,), chunks=(8,), shards=(8,), dtype="i4", compressors=None)
    array[...] = np.arange(8)
    shard = bytes(store.get("c/0"))
    store.set("c/0", shard[:-20] + b"x" * 4096 + shard[-20:])
    with zardine.config.set({"limits.unused_bytes": 16}):
        array = zardine.open_array(store, mode="r+")
        array[2] = 9
        assert array[...].tolist() == [0, 1, 9, 3, 4, 5, 6, 7]
