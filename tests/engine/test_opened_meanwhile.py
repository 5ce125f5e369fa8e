"""Handles that are opened while another thread erases the array and makes one like it in its place."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest

import zardine
from engine.far_store import FarStore
from zardine.engine import freshness
from zardine.errors import ArrayChangedError
from zardine.storage import MemoryStore, WrapperStore
from zardine.stores.base import FAR, ReadCost


class Overtaken(WrapperStore):
    """A store that lets something else happen once, in another thread: just before, or after, a document is read."""

    happens: Callable[[], None] | None = None
    key = ""
    first = True

    def read_up_to(self, key: str, most: int) -> Any:
        happens = self.happens if key == self.key else None
        if happens is None:
            return super().read_up_to(key, most)
        self.happens = None
        reading = None if self.first else super().read_up_to(key, most)
        thread = Thread(target=happens)
        thread.start()
        thread.join()
        return super().read_up_to(key, most) if self.first else reading


class OvertakenFarAway(Overtaken, FarStore):
    """The same far away."""

    @property
    def cost(self) -> ReadCost:
        return FAR


WAYS: dict[str, Callable[[Any], zardine.Array]] = {
    "open": lambda store: zardine.open(store, path="a", mode="r+"),
    "open_array": lambda store: zardine.open_array(store, path="a"),
    "a member": lambda store: zardine.open_group(store)["a"],
    "members": lambda store: dict(zardine.open_group(store).members(max_depth=None))["a"],
    "values": lambda store: next(zardine.open_group(store).array_values()),
}


@pytest.fixture(params=[Overtaken, OvertakenFarAway], ids=["near", "far"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Overtaken:
    monkeypatch.setattr(freshness, "GRACE", 0.01)
    made: Overtaken = request.param(MemoryStore())
    return made


def overtake(store: Overtaken, *, first: bool, zarr_format: int) -> None:
    group = zardine.create_group(store, zarr_format=zarr_format)
    group.create_array("a", data=np.full(8, 1), chunks=(4,))

    def make_again() -> None:
        del group["a"]
        group.create_array("a", data=np.full(8, 2), chunks=(4,))

    store.key = "a/zarr.json" if zarr_format == 3 else "a/.zarray"
    store.first, store.happens = first, make_again


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_of_the_new_array_when_its_document_was_read(store: Overtaken, zarr_format: int, way: str) -> None:
    overtake(store, first=True, zarr_format=zarr_format)
    array = WAYS[way](store)
    assert store.happens is None
    assert array[0] == 2
    array[0] = 3
    array.append([4])
    assert array[...].tolist() == [3, *[2] * 7, 4]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_of_the_old_array_when_its_document_was_read(store: Overtaken, zarr_format: int, way: str) -> None:
    overtake(store, first=False, zarr_format=zarr_format)
    array = WAYS[way](store)
    assert store.happens is None
    near_and_alike = zarr_format == 2 and way in ("members", "values") and not freshness.is_far(store)
    if near_and_alike:  # the handle was made after that, of a document that says the same
        assert array[0] == 2
        return
    for change in (lambda: array[0], lambda: array.append([4]), lambda: array.__setitem__(0, 3)):
        with pytest.raises(ArrayChangedError, match="open it again, or refresh"):
            change()
    with pytest.raises(ArrayChangedError):
        array.resize(4)
    with pytest.raises(ArrayChangedError):
        array.attrs["b"] = 1
    assert zardine.open_array(store, path="a")[...].tolist() == [2] * 8
    assert array.refresh()[0] == 2


def test_what_was_listed_a_while_ago_is_looked_at(store: Overtaken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "LEASE", 0.2)
    values, raw = np.arange(16).reshape(4, 4), {"compressors": None, "checksum": False}
    group = zardine.create_group(store)
    for name in "ab":
        group.create_array(name, data=values, chunks=(2, 4), **raw)
    arrays = group.array_values()
    assert next(arrays)[1, 1] == 5
    other = MemoryStore()  # as another program would, with chunks that are as long
    zardine.create_array(other, name="b", data=values, chunks=(4, 2), **raw)
    for key in list(other.list_prefix("b/")):
        store.store.set(key, other.get(key) or b"")
    time.sleep(0.25)
    if not freshness.is_far(store):  # documents are read one by one
        assert next(arrays)[1, 1] == 5
        return
    with pytest.raises(ArrayChangedError):
        next(arrays)[1, 1]
