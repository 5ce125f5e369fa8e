"""``Array.buffered``: writes that wait in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zardine
from effort import examples
from zardine.errors import ReadOnlyError, StoreError
from zardine.storage import CountingStore, LocalStore, MemoryStore


def made(store: Any = None, **more: Any) -> zardine.Array:
    how: dict[str, Any] = {"shape": (16, 16), "dtype": "i4", "chunks": (2, 2), "shards": (8, 8), **more}
    return zardine.create_array(MemoryStore() if store is None else store, **how)


def test_each_shard_is_written_once() -> None:
    store = CountingStore(MemoryStore())
    array = made(store)
    store.reset()
    expected = np.arange(256, dtype="i4").reshape(16, 16) + 1
    with array.buffered():
        for row in range(0, 16, 2):
            for column in range(0, 16, 2):
                array[row : row + 2, column : column + 2] = expected[row : row + 2, column : column + 2]
        assert store.counts.writes == 0
        assert (array[...] == expected).all()
    assert store.counts.writes == 4
    assert (zardine.open_array(store)[...] == expected).all()


@given(data=st.data(), sharded=st.booleans(), limit=st.sampled_from([0, 100, 10**6]), local=st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_reads_inside_see_what_waits(tmp_path_factory: Any, data: Any, sharded: bool, limit: int, local: bool) -> None:
    store = LocalStore(tmp_path_factory.mktemp("buffered")) if local else MemoryStore()
    array = made(store, shape=(11, 9), shards=(4, 4) if sharded else None, overwrite=True)
    expected = np.zeros((11, 9), "i4")
    twin = zardine.open_array(store)
    with array.buffered(limit=limit) as waiting:
        for value in range(1, data.draw(st.integers(1, 8)) + 1):
            rows = slice(*sorted((data.draw(st.integers(0, 11)), data.draw(st.integers(0, 11)))))
            columns = slice(*sorted((data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9)))))
            kind = data.draw(st.sampled_from(["box", "points", "zero", "other"]))
            if kind == "points":
                points = (np.array([0, 3, 10, 3]), np.array([8, 3, 0, 4]))
                array.vindex[points] = value
                expected[points] = value
            elif kind == "other":  # another writer, of an element that no waiting write touches again
                twin[10, 8] = value
                if waiting.nbytes == 0 or not _waits(array, (10, 8)):
                    expected[10, 8] = value
                continue
            else:
                array[rows, columns] = 0 if kind == "zero" else value
                expected[rows, columns] = 0 if kind == "zero" else value
            assert (array[...] == expected).all()
            assert (array[2:9:3, ::-2] == expected[2:9:3, ::-2]).all()
    assert (zardine.open_array(store)[...] == expected).all()


def _waits(array: zardine.Array, element: tuple[int, int]) -> bool:
    buffer = array._handle.buffer
    assert buffer is not None
    chunk = (element[0] // 2, element[1] // 2)
    for held in buffer.objects.values():
        for each in held.values():
            if each.chunk == chunk:
                inner = (element[0] % 2, element[1] % 2)
                return each.mask is None or bool(each.mask[inner])
    return False


def test_the_limit() -> None:
    store = CountingStore(MemoryStore())
    array = made(store, shards=(2, 2))
    store.reset()
    with array.buffered(limit=3 * 16) as waiting:
        for column in range(0, 8, 2):
            array[:2, column : column + 2] = 1
        assert waiting.nbytes == 0
        assert store.counts.writes == 4
        array[2:4, :2] = 1
        assert (waiting.nbytes, store.counts.writes) == (16, 4)
        waiting.flush()
        assert (waiting.nbytes, store.counts.writes) == (0, 5)


@pytest.mark.parametrize("on_error", ["keep", "discard"])
def test_an_exception(on_error: Any) -> None:
    array = made()

    def fail() -> None:
        with array.buffered(on_error=on_error):
            array[0, 0] = 5
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert zardine.open_array(array.store)[0, 0] == (5 if on_error == "keep" else 0)
    array[1, 1] = 6
    assert zardine.open_array(array.store)[1, 1] == 6


def test_what_could_not_be_stored_waits_still(monkeypatch: pytest.MonkeyPatch) -> None:
    array = made()
    real = MemoryStore.set

    def refuse(self: Any, key: str, value: Any, **more: Any) -> Any:
        if key == "c/1/1":
            raise StoreError("the disk is full")
        return real(self, key, value, **more)

    def fill() -> None:
        with array.buffered():
            array[...] = 7
            monkeypatch.setattr(MemoryStore, "set", refuse)

    with pytest.raises(StoreError, match="full"):
        fill()
    assert (array[...] == 7).all()
    assert zardine.open_array(array.store)[15, 15] == 0
    monkeypatch.undo()
    array.flush()
    assert (zardine.open_array(array.store)[...] == 7).all()


def test_growing_inside() -> None:
    array = made(shape=(4, 16))
    with array.buffered():
        array[...] = 1
        array.append(np.full((3, 16), 2))
        array[5] = 3
        array.resize((6, 16))
    assert array[:, 0].tolist() == [1, 1, 1, 1, 2, 3]
    assert zardine.open_array(array.store)[:, 15].tolist() == [1, 1, 1, 1, 2, 3]


def test_mistakes() -> None:
    array = made()
    with pytest.raises(ValueError, match="on_error"):
        array.buffered(on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not a number of bytes"):
        array.buffered("many")
    with array.buffered(), pytest.raises(ValueError, match="do not nest"), array.buffered():
        pass
    read_only = zardine.open_array(array.store, mode="r")
    with pytest.raises(ReadOnlyError), read_only.buffered():
        pass


def test_text_and_structs() -> None:
    texts = zardine.create_array(MemoryStore(), shape=6, dtype="string", chunks=2, shards=4)
    with texts.buffered():
        texts[1:4] = ["a", "bc", "d"]
        assert texts[...].tolist() == ["", "a", "bc", "d", "", ""]
    assert zardine.open_array(texts.store)[...].tolist() == ["", "a", "bc", "d", "", ""]
    structs = zardine.create_array(MemoryStore(), shape=3, dtype=[("x", "i4"), ("y", "f8")], chunks=2)
    with structs.buffered():
        structs[0] = (1, 2.0)
        structs["y"] = 5.0
        assert structs[...].tolist() == [(1, 5.0), (0, 5.0), (0, 5.0)]
    assert zardine.open_array(structs.store)[...].tolist() == [(1, 5.0), (0, 5.0), (0, 5.0)]
