"""``Array.buffered`` while the array changes its shape, its shards or its chunks: by this handle, or by others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zardine
from effort import examples
from zardine.engine import freshness
from zardine.errors import ArrayChangedError
from zardine.storage import LocalStore, MemoryStore, WrapperStore

SHAPE = (16, 16)


def made(store: Any = None, **more: Any) -> zardine.Array:
    how: dict[str, Any] = {"shape": SHAPE, "dtype": "i4", "chunks": (2, 2), "shards": (8, 8), **more}
    return zardine.create_array(MemoryStore() if store is None else store, **how)


def stored(array: zardine.Array) -> Any:
    return zardine.open_array(array.store, path=array.path)[...]


@pytest.mark.parametrize("shards", [(4, 16), (16, 4), (2, 2), (16, 16), None])
def test_what_waits_moves_to_other_shards(tmp_path: Path, shards: Any) -> None:
    array = made(tmp_path)
    array[...] = expected = np.arange(256, dtype="i4").reshape(SHAPE)
    with array.buffered():
        array[8:10, :2] = expected[8:10, :2] = -7
        array[3, 3] = expected[3, 3] = -8
        array[4:8] = expected[4:8] = -9
        zardine.reshard(tmp_path, shards=shards, grace=0)
        array.refresh()
        assert (array[...] == expected).all()
        array[9, 1] = expected[9, 1] = -10
        assert (array[...] == expected).all()
    assert (stored(array) == expected).all()


@pytest.mark.parametrize("sharded", [True, False])
def test_what_waits_moves_to_other_chunks(tmp_path: Path, sharded: bool) -> None:
    array = made(tmp_path, shape=(15, 13), fill_value=3)
    array[...] = expected = np.arange(15 * 13, dtype="i4").reshape(15, 13)
    with array.buffered():
        array[2:11, 1:12] = expected[2:11, 1:12] = -1
        array[14, 12] = expected[14, 12] = 3
        zardine.reshard(tmp_path, shards=(15, 6) if sharded else None, chunks=(5, 3), grace=0)
        array.refresh()
        assert (array[...] == expected).all()
    assert (stored(array) == expected).all()


def test_without_refresh_nothing_goes_to_the_wrong_place(tmp_path: Path) -> None:
    array = made(tmp_path)
    array[...] = expected = np.arange(256, dtype="i4").reshape(SHAPE)

    def fill() -> None:
        with array.buffered():
            array[8:10, :2] = -7
            zardine.reshard(tmp_path, shards=(4, 16), grace=0)

    with pytest.raises(ArrayChangedError, match="refresh"):
        fill()
    assert (stored(array) == expected).all()
    array.refresh()
    expected[8:10, :2] = -7
    assert (array[...] == expected).all()
    array.flush()
    assert (stored(array) == expected).all()


def test_what_waits_while_the_array_is_about_to_change() -> None:
    array = made()
    with array.buffered():
        array[0, 0] = 5
        document = bytes(array.store.get("zarr.json"))
        closing = f'{{"{freshness.CLOSING}": {{"must_understand": false}},'.encode()
        array.store.set("zarr.json", document.replace(b"{", closing, 1))
        with pytest.raises(ArrayChangedError, match=r"about to change.*waits still"):
            array.flush()
        array.store.set("zarr.json", document)
    assert stored(array)[0, 0] == 5


def test_an_array_of_another_type_in_its_place() -> None:
    array = made()
    with array.buffered() as waiting:
        array[0, 0] = 5
        other = made(array.store, dtype="f8", overwrite=True)
        with pytest.raises(ArrayChangedError, match="replaced"):
            array.refresh()
        with pytest.raises(ArrayChangedError, match="refresh"):
            array.flush()
        waiting.discard()
        assert array.refresh().dtype == "f8"
        array[1, 1] = 2.5
    assert stored(other)[:2, :2].tolist() == [[0, 0], [0, 2.5]]


def test_another_handle_shrinks_the_array() -> None:
    array = made()
    array[...] = 1
    other = zardine.open_array(array.store)
    with array.buffered():
        array[...] = 2
        array[:, 3] = 4
        other.resize((9, 7))
    assert (stored(array) == np.where(np.arange(7) == 3, 4, 2)).all()
    assert sorted(key for key in array.store.list() if key != "zarr.json") == ["c/0/0", "c/1/0"]
    other.resize(SHAPE)
    expected = np.zeros(SHAPE, "i4")
    expected[:9, :7] = 2
    expected[:9, 3] = 4
    assert (stored(array) == expected).all()


@pytest.mark.parametrize("refreshed", [True, False])
def test_what_was_cut_off_does_not_come_back(refreshed: bool) -> None:
    array = made()
    other = zardine.open_array(array.store)
    with array.buffered():
        array[...] = 2
        other.resize((9, 7))
        if refreshed:
            array.refresh()
            assert (array[...] == 2).all()
        else:
            array.flush()
        other.resize(SHAPE)
        array.refresh()
        assert array[...].sum() == 2 * 9 * 7
    assert stored(array).sum() == 2 * 9 * 7


@pytest.mark.parametrize("sharded", [True, False])
@pytest.mark.parametrize("refreshed", [True, False])
def test_what_another_handle_appends_to_a_held_chunk_stays(refreshed: bool, sharded: bool) -> None:
    array = made(shape=(7, 16), shards=(8, 8) if sharded else None)
    other = zardine.open_array(array.store)
    with array.buffered():
        array[...] = 1
        other.append(np.full((2, 16), 2))
        if refreshed:
            array.refresh()
            assert array[:, 0].tolist() == [1] * 7 + [2] * 2
    assert stored(array)[:, 15].tolist() == [1] * 7 + [2] * 2


def test_a_rectilinear_grid_that_grows_and_shrinks() -> None:
    array = zardine.create_array(MemoryStore(), shape=(8, 8), dtype="i4", chunks=[[3, 5], [6, 2]])
    other = zardine.open_array(array.store)
    with array.buffered():
        array[...] = 1
        other.append(np.full((7, 8), 2))
        array.refresh()
        array[10:12] = 3
        assert array[:, 7].tolist() == [1] * 8 + [2] * 2 + [3] * 2 + [2] * 3
        other.refresh()
        other.resize((11, 8))
        array.refresh()
        assert array[:, 7].tolist() == [1] * 8 + [2] * 2 + [3]
    assert stored(array)[:, 7].tolist() == [1] * 8 + [2] * 2 + [3]


class LookingStore(WrapperStore):
    """Looks at the array with each change of its document."""

    seen: list[list[int]]

    def set(self, key: str, value: Any, **more: Any) -> Any:
        result = super().set(key, value, **more)
        if key == "zarr.json" and hasattr(self, "seen"):
            self.seen.append(zardine.open_array(self.store)[:, 0].tolist())
        return result


def test_appending_stores_its_data_before_the_shape() -> None:
    store = LookingStore(MemoryStore())
    array = made(store, shape=(4, 16))
    store.seen = []
    with array.buffered():
        array[...] = 1
        array.append(np.full((3, 16), 2))
        assert store.seen == [[1] * 4 + [2] * 3]
        array[0] = 3
        array.append(np.full((1, 16), 4))
    assert stored(array)[:, 0].tolist() == [3, 1, 1, 1, 2, 2, 2, 4]


def test_what_was_appended_stays_when_the_rest_is_discarded() -> None:
    array = made(shape=(4, 16))

    def fail() -> None:
        with array.buffered(on_error="discard"):
            array.append(np.full((3, 16), 7))
            array[0] = 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert stored(array)[:, 0].tolist() == [0, 0, 0, 0, 7, 7, 7]


class LooseStore(WrapperStore):
    """Its locks keep nobody out, so that the shape is stored before what is appended."""

    lock_is_exclusive = False


def test_appending_without_exclusive_locks_stores_its_data_too() -> None:
    array = made(LooseStore(MemoryStore()), shape=(4, 16))
    with array.buffered(on_error="discard"):
        array[3] = 1
        array.append(np.full((3, 16), 2))
        assert stored(array)[:, 0].tolist() == [0, 0, 0, 1, 2, 2, 2]
        array[5] = 3
    assert stored(array)[:, 0].tolist() == [0, 0, 0, 1, 2, 3, 2]


def test_attributes_change_nothing_that_waits() -> None:
    array = made()
    with array.buffered():
        array[5, 5] = 1
        array.attrs["a"] = 2
        assert array[5, 5] == 1
    assert stored(array)[5, 5] == 1


def test_a_handle_with_another_configuration_shares_the_buffer(tmp_path: Path) -> None:
    array = made(tmp_path)
    with array.buffered() as waiting:
        twin = array.with_config({"write_strategy": "append"})
        twin[0, 0] = 1
        array[1, 1] = 2
        assert waiting.nbytes > 0
        assert twin[:2, :2].tolist() == array[:2, :2].tolist() == [[1, 0], [0, 2]]
        zardine.reshard(tmp_path, shards=(4, 16), grace=0)
        array.refresh()
        with pytest.raises(ArrayChangedError, match="refresh"):
            twin[0, 1]
        with pytest.raises(ArrayChangedError, match="refresh"):
            twin[0, 1] = 3
        twin.refresh()
        twin[0, 1] = 3
        assert array[0, :2].tolist() == [1, 3]
    twin[15, 15] = 4
    assert array[15, 15] == 4
    assert stored(array)[:2, :2].tolist() == [[1, 3], [0, 2]]


class Game:
    """Random changes of one array through two handles, beside NumPy."""

    def __init__(self, data: Any, path: Path) -> None:
        self.data, self.path = data, path
        self.sharded = data.draw(st.booleans())
        shape = (data.draw(st.integers(1, 12)), data.draw(st.integers(1, 9)))
        store = LocalStore(path) if data.draw(st.booleans()) else MemoryStore()
        self.array = made(store, shape=shape, shards=(4, 6) if self.sharded else None, chunks=(2, 3), fill_value=9)
        self.other = zardine.open_array(store)
        self.expected = np.full(shape, 9, "i4")
        self.value = 0

    def write(self) -> None:
        self.value += 1
        rows, columns = (slice(*sorted(self.data.draw(st.tuples(*[st.integers(0, n)] * 2)))) for n in self.array.shape)
        if self.data.draw(st.booleans()):
            self.array[rows, columns] = self.expected[rows, columns] = self.value
        else:
            values = np.full(self.expected[rows, columns].shape, self.value)
            self.array.set_orthogonal_selection((range(*rows.indices(99)), columns), values)
            self.expected[rows, columns] = self.value

    def resize(self) -> None:
        handle = self.data.draw(st.sampled_from([self.array, self.other]))
        shape = (self.data.draw(st.integers(0, 12)), self.data.draw(st.integers(0, 9)))
        handle.refresh()
        handle.resize(shape)
        kept = self.expected[: shape[0], : shape[1]]
        self.expected = np.full(shape, 9, "i4")
        self.expected[: kept.shape[0], : kept.shape[1]] = kept
        self.array.refresh()

    def append(self) -> None:
        self.value += 1
        handle = self.data.draw(st.sampled_from([self.array, self.other]))
        more = np.full((self.data.draw(st.integers(0, 3)), self.expected.shape[1]), self.value, "i4")
        handle.refresh()
        handle.append(more)
        self.expected = np.concatenate([self.expected, more])
        self.array.refresh()

    def reshard(self) -> None:
        if isinstance(self.array.store, MemoryStore) and min(self.expected.shape) > 0:
            shards = self.data.draw(st.sampled_from([(2, 3), (8, 3), (2, 9), None]))
            zardine.reshard(self.array.store, shards=shards, grace=0)
            self.array.refresh()
            self.other = zardine.open_array(self.array.store)

    def flush(self) -> None:
        self.array.flush()
        assert (stored(self.array) == self.expected).all()


@given(data=st.data(), limit=st.sampled_from([60, 10**6]))
@settings(max_examples=examples(80), deadline=None)
def test_any_changes_of_shape_and_shards(tmp_path_factory: Any, data: Any, limit: int) -> None:
    game = Game(data, tmp_path_factory.mktemp("game"))
    with game.array.buffered(limit=limit):
        for _ in range(data.draw(st.integers(1, 10))):
            step = data.draw(st.sampled_from([game.write] * 4 + [game.resize, game.append, game.reshard, game.flush]))
            step()
            assert (game.array[...] == game.expected).all()
    assert (stored(game.array) == game.expected).all()
    rows, columns = game.expected.shape
    game.array.resize((rows + 3, columns + 4))  # nothing was stored beyond the shape
    game.expected = np.pad(game.expected, [(0, 3), (0, 4)], constant_values=9)
    assert (stored(game.array) == game.expected).all()
