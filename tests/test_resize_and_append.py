"""Changing the shape of an array, and in which order that reaches the store."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.engine.kernel_writes import note_changed
from zardine.engine.write import write_plan
from zardine.errors import CorruptionError, ReadOnlyError, StoreError
from zardine.hierarchy.update import StoredNode
from zardine.kernel import KERNEL
from zardine.storage import Condition, CountingStore, LocalStore, MemoryStore, WrapperStore

LAYOUTS = pytest.mark.parametrize(
    "arguments",
    [
        {"chunks": (4, 4)},
        {"chunks": (2, 2), "shards": (4, 4)},
        {"chunks": (2, 2), "shards": (8, 8)},
        {"chunks": (1, 3), "shards": {"shape": (5, 6), "index_location": "start"}},
        {"chunks": [[3, 5], [6, 2]]},
        {"chunks": (1, 2), "shards": [[3, 5], [6, 2]]},
    ],
    ids=["chunks", "shards", "one shard", "index at start", "rectilinear", "rectilinear shards"],
)
VALUES = np.arange(1, 65, dtype="i4").reshape(8, 8)


def made(store: Any = None, **arguments: Any) -> zardine.Array:
    array = zardine.create_array(store, shape=(8, 8), dtype="i4", fill_value=-1, **arguments)
    array[...] = VALUES
    return array


@LAYOUTS
@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("small", [(3, 3), (4, 5), (1, 8), (8, 1), (0, 8), (0, 0), (7, 7), (2, 11)])
def test_what_was_cut_off_never_comes_back(arguments: Any, empty: bool, small: tuple[int, int]) -> None:
    array = made(**arguments, config={"write_empty_chunks": empty})
    array.resize(small)
    kept = VALUES[: small[0], : small[1]]
    want = np.full((8, 11), -1)
    want[: kept.shape[0], : kept.shape[1]] = kept
    assert (array[...] == want[: small[0], : small[1]]).all()
    assert array.nchunks_initialized <= array.nchunks
    array.resize((8, 11))
    assert (array[...] == want).all()
    assert (zardine.open_array(array.store)[...] == want).all()


@LAYOUTS
def test_what_was_cut_off_can_be_left_in_the_store(arguments: Any) -> None:
    array = made(**arguments)
    before = {key: array.store.get(key) for key in array.store.list() if key != "zarr.json"}
    array.resize((3, 3), erase=False)
    assert (array[...] == VALUES[:3, :3]).all()
    assert {key: array.store.get(key) for key in array.store.list() if key != "zarr.json"} == before
    array.resize((8, 8))
    assert (array[...] == VALUES).all()


@LAYOUTS
def test_growing_writes_no_data(arguments: Any) -> None:
    array = made(**arguments)
    before = {key: array.store.get(key) for key in array.store.list() if key != "zarr.json"}
    array.shape = (20, 9)
    assert {key: array.store.get(key) for key in array.store.list() if key != "zarr.json"} == before
    assert (array[:8, :8] == VALUES).all()
    assert (array[8:] == -1).all()
    assert (array[:, 8:] == -1).all()
    array[19, 8] = 5
    assert array[19, 8] == 5


@LAYOUTS
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_append(arguments: Any, axis: int) -> None:
    array = made(**arguments)
    want = VALUES
    for length in (1, 3, 0, 9):
        shape = tuple(length if i == axis % 2 else n for i, n in enumerate(want.shape))
        more = np.arange(1000, 1000 + np.prod(shape)).reshape(shape)
        want = np.concatenate([want, more], axis)
        assert array.append(more, axis=axis) == want.shape == array.shape
        assert (array[...] == want).all()
    assert (zardine.open_array(array.store)[...] == want).all()


@pytest.mark.parametrize(
    ("data", "axis"), [(np.zeros((1, 7)), 0), (np.zeros(8), 0), (np.zeros((8, 1)), 0), (np.zeros((1, 8)), 2), (5, 0)]
)
def test_data_that_cannot_be_appended(data: Any, axis: int) -> None:
    array = made(chunks=(4, 4))
    before = {key: array.store.get(key) for key in array.store.list()}
    with pytest.raises(ValueError, match="axis"):
        array.append(data, axis=axis)
    assert {key: array.store.get(key) for key in array.store.list()} == before


def test_nothing_can_be_appended_to_a_scalar() -> None:
    with pytest.raises(ValueError, match="axis 0 is out of bounds"):
        zardine.create_array(None, shape=(), dtype="i4").append([1])


def test_append_converts_as_assignment_does() -> None:
    array = zardine.create_array(None, data=np.array([1, 2], "i2"))
    array.append([3])
    array.append(np.array([4.9]))
    assert array[...].tolist() == [1, 2, 3, 4]
    with pytest.raises(OverflowError):
        array.append([10**6])
    assert array.shape == (4,)


def test_append_sees_what_others_appended() -> None:
    array = zardine.create_array(None, data=np.array([1]))
    zardine.open_array(array.store).append([2])
    assert array.append([3]) == (3,)
    assert array[...].tolist() == [1, 2, 3]


class RecordingStore(WrapperStore):
    """Remembers what was written and erased, in order."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.log: list[str] = []

    def set(self, key: str, value: Any, *, condition: Condition | None = None) -> Any:
        shape = json.loads(bytes(value))["shape"] if key == "zarr.json" else ""
        self.log.append(f"set {key} {shape}".strip())
        return super().set(key, value, condition=condition)

    def erase(self, key: str) -> None:
        self.log.append(f"erase {key}")
        super().erase(key)

    def erase_values(self, keys: Any) -> None:
        for key in keys:
            self.erase(key)


def test_what_an_append_has_stored_it_does_not_read_again() -> None:
    store = CountingStore(MemoryStore())
    array = zardine.create_array(store, shape=(0, 8), dtype="i4", chunks=(1, 8))
    array.append(VALUES[:1])
    store.reset()
    array.append(VALUES[1:2])
    assert store.reset().reads == 0  # neither the document that it replaces, which it has stored itself
    zardine.open_array(store, mode="r+").append(VALUES[2:3])
    store.reset()
    array.append(VALUES[3:4])
    assert store.reset().reads == 1  # what another handle has stored
    assert (zardine.open_array(store)[...] == VALUES[:4]).all()


def test_data_is_stored_before_the_shape_that_shows_it() -> None:
    store = RecordingStore(MemoryStore())
    array = zardine.create_array(store, shape=(4,), dtype="i4", chunks=(4,))
    array[...] = 1
    store.log.clear()
    array.append(np.ones(8))
    assert sorted(store.log[:-1]) == ["set c/1", "set c/2"]
    assert store.log[-1] == "set zarr.json [12]"


@pytest.mark.parametrize("failing", ["zarr.json", "c/3/1"])
def test_an_append_that_fails_leaves_nothing_to_appear_later(failing: str) -> None:
    class Full(WrapperStore):
        fails = False

        def set(self, key: str, value: Any, *, condition: Condition | None = None) -> Any:
            if self.fails and key == failing:
                raise StoreError("no room")
            return super().set(key, value, condition=condition)

    array = made(store := Full(MemoryStore()), chunks=(2, 2), shards=(4, 4))
    array.resize((6, 8))
    before = set(store.list())
    store.fails = True
    with pytest.raises(StoreError, match="no room"):
        array.append(VALUES)
    store.fails = False
    assert set(store.list()) == before
    assert array.shape == zardine.open_array(store).shape == (6, 8)
    array.resize((16, 8))
    assert (array[:6] == VALUES[:6]).all()
    assert (array[6:] == -1).all()


@pytest.mark.parametrize("shards", [None, (8, 4)])
def test_an_append_that_meets_a_damaged_chunk_is_taken_back_in_all_others(tmp_path: Path, shards: Any) -> None:
    array = zardine.create_array(tmp_path, data=VALUES[:5], chunks=(4, 4), shards=shards, compressors=None)
    name = tmp_path / ("c/1/0" if shards is None else "c/0/0")
    sound = name.read_bytes()
    place = sound.index(VALUES[4, :4].tobytes())
    name.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
    for _ in range(2):  # the first one reads the document, the second knows it
        with pytest.raises(CorruptionError):
            array.append(VALUES[5:7])
    name.write_bytes(sound)
    array.resize((8, 8))
    assert (array[:5] == VALUES[:5]).all()
    assert (array[5:] == 0).all()


def test_an_append_that_is_interrupted_once_its_shape_is_stored_has_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = made(LocalStore(tmp_path), chunks=(2, 8))
    array.resize((5, 8))
    array.append(VALUES[5:6])
    replaced_by = StoredNode.replaced_by

    def interrupted(self: Any, changed: Any) -> Any:
        replaced_by(self, changed)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(StoredNode, "replaced_by", interrupted)
        with pytest.raises(KeyboardInterrupt):
            array.append(VALUES)
    assert zardine.open_array(LocalStore(tmp_path)).shape == (14, 8)
    assert (zardine.open_array(LocalStore(tmp_path))[6:] == VALUES).all()
    array.append(VALUES)
    assert array.shape == (22, 8)
    assert (array[14:] == VALUES).all()


@pytest.mark.skipif(KERNEL is None, reason="what is written in Python is taken back, too")
def test_what_an_append_has_stored_in_part_when_it_is_interrupted_never_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    array = made(LocalStore(tmp_path), chunks=(4, 4))
    array.resize((5, 8))
    array.append(VALUES[5:6])

    def interrupted(handle: Any, key: str, done: Any) -> bool:
        assert (done is None) == (key == "c/1/1")
        if done is None:
            fcntl.flock(busy, fcntl.LOCK_UN)
            raise KeyboardInterrupt
        return note_changed(handle, key, done)

    with open(tmp_path / "c/1/1", "rb") as busy, monkeypatch.context() as patched:
        fcntl.flock(busy, fcntl.LOCK_EX)
        patched.setattr("zardine.engine.kernel_writes.note_changed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            array.append(VALUES[6:7])
    array.resize((8, 8))
    assert (array[:6] == VALUES[:6]).all()
    assert (array[6:] == -1).all()


def test_a_document_that_another_program_replaces_meanwhile_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = made(LocalStore(tmp_path), chunks=(2, 8))
    array.resize((5, 8))
    array.append(VALUES[5:6])
    calls = []

    def meanwhile(*given: Any, **named: Any) -> None:
        write_plan(*given, **named)
        calls.append(given)
        if len(calls) == 1:  # a program that takes no locks
            text = (tmp_path / "zarr.json").read_text().replace('"attributes": {}', '"attributes": {"a": 1}')
            (tmp_path / "new").write_text(text)
            (tmp_path / "new").replace(tmp_path / "zarr.json")

    monkeypatch.setattr("zardine.nodes.array.write_plan", meanwhile)
    for row, values in enumerate(VALUES[:3], 6):
        array.append(values[None])
        again = zardine.open_array(LocalStore(tmp_path))
        assert (array.shape, again.shape, dict(again.attrs)) == ((row + 1, 8), (row + 1, 8), {"a": 1})
    assert (again[6:] == VALUES[:3]).all()


def test_an_append_waits_for_who_has_the_document(tmp_path: Path) -> None:
    """And is seen by other handles, and other threads of the same one, with its length."""
    array = made(LocalStore(tmp_path), chunks=(2, 8))
    array.resize((5, 8))
    array.append(VALUES[5:6])
    with array.store.lock("zarr.json"):
        array.append(VALUES[:1])  # this thread does not wait for itself
        other = threading.Thread(target=array.append, args=(VALUES[1:2],))
        other.start()
        time.sleep(0.1)
        assert other.is_alive()
    other.join()
    assert array.shape == zardine.open_array(LocalStore(tmp_path)).shape == (8, 8)

    lengths: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            lengths.append(array.append(np.full((1, 8), number, "i4"))[0])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert array.shape == (208, 8)
    assert sorted(lengths) == list(range(9, 209))
    numbers, counts = np.unique(array[8:], return_counts=True)
    assert (numbers.tolist(), counts.tolist()) == ([0, 1, 2, 3], [400] * 4)


@pytest.mark.parametrize("waits", [False, True])
def test_what_other_threads_do_with_the_handle_meanwhile_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    """One has read the document long ago, and takes it over now; or one begins to collect writes."""
    array = made(LocalStore(tmp_path), chunks=(2, 8))
    array.resize((5, 8))
    long_ago = array.metadata
    array.append(VALUES[5:6])
    array.append(VALUES[6:7])
    buffered = array.buffered()

    def other_thread() -> None:
        if not waits:
            array._adopt(long_ago)
        elif buffered._buffer is None:
            buffered.__enter__()
            array[0] = 99

    def meanwhile(*given: Any, **named: Any) -> None:
        if named:  # not what the other thread writes
            thread = threading.Thread(target=other_thread)
            thread.start()
            thread.join()
        write_plan(*given, **named)

    monkeypatch.setattr("zardine.nodes.array.write_plan", meanwhile)
    assert array.append(VALUES[7:]) == (8, 8)
    assert (zardine.open_array(LocalStore(tmp_path))[...] == VALUES).all()
    if waits:
        assert (array[0] == 99).all()
        array[0] = 100
        buffered.__exit__(None, None, None)
        assert (zardine.open_array(LocalStore(tmp_path))[0] == 100).all()


def test_a_shape_that_hides_data_is_stored_before_the_data_goes() -> None:
    store = RecordingStore(MemoryStore())
    array = zardine.create_array(store, shape=(12,), dtype="i4", chunks=(4,))
    array[...] = 1
    store.log.clear()
    array.resize((3,))
    assert store.log[0] == "set zarr.json [3]"
    assert sorted(store.log[1:]) == ["erase c/1", "erase c/2", "set c/0"]


@pytest.mark.parametrize("shape", [3, (3,), (3, 3, 3), (-1, 3), (2**63, 1), (1.5, 2), ("3", 3), None])
def test_wrong_shapes_change_nothing(shape: Any) -> None:
    array = made(chunks=(4, 4))
    before = {key: array.store.get(key) for key in array.store.list()}
    with pytest.raises((TypeError, ValueError)):
        array.resize(shape)
    assert array.shape == (8, 8)
    assert {key: array.store.get(key) for key in array.store.list()} == before


def test_one_axis_may_be_given_as_a_number() -> None:
    array = zardine.create_array(None, data=np.arange(5))
    array.resize(3)
    array.resize(np.int64(4))
    assert array[...].tolist() == [0, 1, 2, 0]


def test_read_only_arrays_keep_their_shape() -> None:
    store = made(chunks=(4, 4)).store
    array = zardine.open_array(store, mode="r")
    for change in (lambda: array.resize((1, 1)), lambda: array.append(VALUES)):
        with pytest.raises(ReadOnlyError):
            change()
    assert array.shape == zardine.open_array(store).shape == (8, 8)


def test_resizing_keeps_everything_else() -> None:
    array = zardine.create_array(
        None,
        shape=(4, 4),
        dtype="f4",
        chunks=(2, 2),
        shards=(4, 4),
        fill_value=np.nan,
        dimension_names=["y", "x"],
        attributes={"a": 1},
        chunk_key_encoding=("v2", "."),
    )
    before = array.metadata.to_dict()
    array.resize((9, 2))
    assert array.metadata.to_dict() == {**before, "shape": [9, 2]}
    assert array.refresh().metadata.to_dict() == {**before, "shape": [9, 2]}


def test_another_opening_sees_the_new_shape_after_refresh() -> None:
    array = made(chunks=(2, 2), shards=(4, 4))
    other = zardine.open_array(array.store)
    array.resize((10, 10))
    assert other.shape == (8, 8)
    assert other.refresh().shape == (10, 10)
    assert (other[...] == array[...]).all()


@LAYOUTS
def test_the_same_shape_again_erases_what_was_left_beyond_it(arguments: Any) -> None:
    array = made(**arguments)
    array.resize((5, 4), erase=False)
    array.resize((5, 4))
    array.resize((8, 8))
    expected = np.full_like(VALUES, -1)
    expected[:5, :4] = VALUES[:5, :4]
    assert array[...].tolist() == expected.tolist()


def test_the_same_shape_again_writes_nothing_where_nothing_was_left() -> None:
    made(store := MemoryStore(), chunks=(2, 2), shards=(4, 4)).resize((5, 5))
    counting = CountingStore(store)
    array = zardine.open_array(counting, mode="r+")
    counting.reset()
    array.resize((5, 5))
    assert counting.counts.writes <= 1  # the document, perhaps


@pytest.mark.parametrize("shards", [None, 4, 8])
@pytest.mark.parametrize("grow", ["resize", "append", "another's append"])
def test_a_block_is_planned_anew_once_the_array_has_grown(shards: int | None, grow: str) -> None:
    """What covered the last chunk of the shorter array covers only a part of it now."""
    store = MemoryStore()
    array = zardine.create_array(store, shape=10, chunks=4 if shards != 8 else 2, shards=shards, dtype="i4")
    array[8:10] = 1
    assert array[8:10].tolist() == [1, 1]
    if grow == "resize":
        array.resize(11)
        array[10:11] = 5
    elif grow == "append":
        array.append([5])
    else:
        zardine.open_array(store).append([5])
        array.refresh()
    array[8:10] = 7
    assert array[8:].tolist() == [7, 7, 5]
    assert zardine.open_array(store)[8:].tolist() == [7, 7, 5]


@pytest.mark.parametrize("shards", [None, 4, 8])
@pytest.mark.parametrize("grow", ["resize", "append"])
def test_what_covered_a_damaged_chunk_before_the_array_grew_does_not_heal_it(shards: int | None, grow: str) -> None:
    """Else what was added in that chunk since would become fill values, without a word."""
    store = MemoryStore()
    array = zardine.create_array(store, shape=10, chunks=4, shards=shards, dtype="i4", compressors=None)
    array[8:10] = 1
    array[8:10] = 2
    if grow == "resize":
        array.resize(12)
        array[10:12] = 5
    else:
        array.append([5, 5])
    key = "c/1" if shards == 8 else "c/2"
    data = bytearray(store.get(key) or b"")
    place = data.index(np.array([5], "<i4").tobytes())
    data[place] ^= 1
    store.set(key, bytes(data))
    with pytest.raises(CorruptionError):
        array[8:10] = 7
    assert bytes(store.get(key) or b"") == bytes(data)
    array[8:12] = 7  # all that was there is replaced
    assert array[8:].tolist() == [7, 7, 7, 7]


@pytest.mark.parametrize("arguments", [{}, {"shards": (2, 300)}, {"zarr_format": 2}], ids=["chunks", "shards", "v2"])
def test_of_countless_chunks_at_an_end_those_that_are_stored_are_cut(arguments: Any) -> None:
    far = 2**40
    array = zardine.create_array(None, shape=(1000, far), chunks=(2, 3), dtype="u1", **arguments)
    array[999, far // 2], array[998, 5], array[0, far - 1], array[3, far - 2] = 7, 8, 9, 5
    array.resize((999, far))
    array.resize((1000, far))
    assert (array[999, far // 2], array[998, 5], array[0, far - 1]) == (0, 8, 9)
    array.resize((1000, far))
    assert (array[998, 5], array[0, far - 1]) == (8, 9)
    array.resize((1000, far - 1))
    array.resize((1000, far))
    assert (array[0, far - 1], array[3, far - 2], array[998, 5]) == (0, 5, 8)
    array.resize((1000, 10))
    array.resize((1000, far))
    assert (array[3, far - 2], array[998, 5]) == (0, 8)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_no_array_is_longer_than_its_document_may_say(zarr_format: Any) -> None:
    longest = 2**63 - 1
    array = zardine.create_array(None, shape=longest - 1, chunks=100, dtype="u1", zarr_format=zarr_format)
    assert array.append([7]) == (longest,)
    with pytest.raises(ValueError, match=r"2\^63"):
        array.append([8])
    array.resize(longest)
    assert zardine.open_array(array.store)[-2:].tolist() == [0, 7]
    array.resize(longest - 1)
    assert zardine.open_array(array.store)[-1:].tolist() == [0]
