"""Writes whose answers are lost, on S3: each takes effect once, also if other writers come in between."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import zardine
from effort import SOAK, new_seed
from servers import servers
from servers.fault_proxy import FaultProxy
from zardine.errors import ConditionFailedError, StoreError
from zardine.storage import Condition, ObjectStore
from zardine.stores.object.urls import object_store_of_url

QUICK = {
    "max_retries": 3,
    "backoff": {"init_backoff": timedelta(milliseconds=1), "max_backoff": timedelta(milliseconds=5), "base": 2},
}
LOST = ["drop_after", "reset_after", "503_after"]


class Place:
    """A folder in a new bucket, as one writer sees it through the proxy, and as others see it.

    The others open it from its root, so that no lock of this process keeps them apart.
    """

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy, self.bucket = proxy, servers.new_bucket()

    @property
    def mine(self) -> dict[str, Any]:
        return {
            "store": f"s3://{self.bucket}/a",
            "storage_options": servers.s3_options(self.proxy.url, **QUICK),
        }

    @property
    def others(self) -> dict[str, Any]:
        return {"store": f"s3://{self.bucket}", "path": "a", "storage_options": servers.s3_options()}

    def lose(self, key: str, fault: object) -> None:
        """Let the next put of ``key`` be done, and its answer be lost in the way of ``fault``."""
        self.proxy.matching = lambda method, path: method == "PUT" and path.partition("?")[0].endswith(f"/{key}")
        self.proxy.faults = [fault]


@pytest.fixture
def place(s3_proxy: FaultProxy) -> Iterator[Place]:
    s3_proxy.reset()
    yield Place(s3_proxy)
    assert s3_proxy.faults == []
    s3_proxy.reset()


def new_array(place: Place, shape: tuple[int, ...] = (0,), **more: Any) -> zardine.Array:
    return zardine.create_array(**place.mine, shape=shape, chunks=(2,), dtype="i4", fill_value=-1, **more)


def others_append(place: Place, blocks: int) -> Callable[[], None]:
    def append() -> None:
        array = zardine.open_array(**place.others, mode="r+")
        for number in range(blocks):
            array.append(np.array([100 + number] * 2, "i4"))

    return append


@pytest.mark.parametrize("fault", LOST)
def test_an_append_is_done_once(place: Place, fault: str) -> None:
    array = new_array(place)
    for number in range(3):
        place.lose("zarr.json", fault)
        array.append(np.array([number] * 2, "i4"))
    assert zardine.open_array(**place.others)[...].tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("others", [1, 3, 20])
def test_an_append_is_done_once_if_others_append_in_between(place: Place, others: int) -> None:
    array = new_array(place)
    place.lose("zarr.json", others_append(place, others))
    assert array.append(np.array([7, 7], "i4")) == (2,)
    array.append(np.array([8, 8], "i4"))
    expected = [7, 7, *(100 + n for n in range(others) for _ in range(2)), 8, 8]
    assert zardine.open_array(**place.others)[...].tolist() == expected


def test_an_append_that_nobody_can_tell_says_so(place: Place) -> None:
    """Another program, which keeps no marks, has written the document in between."""
    array = new_array(place)

    def overwrite() -> None:
        store = object_store_of_url("s3", f"{place.bucket}/a", servers.s3_options())
        store.set("zarr.json", bytes(store.get("zarr.json") or b"") + b"\n")

    place.lose("zarr.json", overwrite)
    with pytest.raises(ConditionFailedError, match="may have been carried out"):
        array.append(np.array([7, 7], "i4"))
    assert zardine.open_array(**place.others).shape == (2,)
    # if no answer was lost, there is no doubt
    array.refresh()
    other = zardine.open_array(**place.others, mode="r+")
    other.attrs["x"] = 1
    overwrite()
    assert array.append(np.array([8, 8], "i4")) == (4,)


def test_attributes_that_others_changed_later_stay(place: Place) -> None:
    array = new_array(place)

    def change() -> None:
        other = zardine.open_array(**place.others, mode="r+")
        assert other.attrs["x"] == "mine"
        other.attrs["x"] = "theirs"

    place.lose("zarr.json", change)
    array.attrs["x"] = "mine"
    assert dict(zardine.open_array(**place.others).attrs) == {"x": "theirs"}
    array.attrs["y"] = 1
    assert dict(zardine.open_array(**place.others).attrs) == {"x": "theirs", "y": 1}


@pytest.mark.parametrize("shards", [None, (8,)])
def test_values_that_others_changed_later_stay(place: Place, shards: tuple[int] | None) -> None:
    array = new_array(place, (8,), shards=shards)
    array[...] = 0
    key = "c/0"

    def change() -> None:
        other = zardine.open_array(**place.others, mode="r+")
        assert other[0] == 1
        other[0] = 2

    place.lose(key, change)
    array[0] = 1
    assert zardine.open_array(**place.others)[:2].tolist() == [2, 0]
    array[1] = 3
    assert zardine.open_array(**place.others)[:2].tolist() == [2, 3]


def test_a_resize_does_not_undo_a_later_append(place: Place) -> None:
    array = new_array(place, (8,))
    place.lose("zarr.json", others_append(place, 1))
    array.resize((4,))
    assert zardine.open_array(**place.others).shape == (6,)


@pytest.mark.parametrize("fault", LOST)
def test_what_is_created_is_not_in_its_own_way(place: Place, fault: str) -> None:
    place.lose("zarr.json", fault)
    new_array(place, (4,))
    with pytest.raises(zardine.errors.ContainsArrayError):
        new_array(place, (4,))
    options = place.mine["storage_options"]
    place.lose("g/zarr.json", fault)
    zardine.create_group(f"s3://{place.bucket}/g", storage_options=options)


def test_what_is_created_and_changed_by_others_is_created(place: Place) -> None:
    def change() -> None:
        zardine.open_array(**place.others, mode="r+").attrs["x"] = 1

    place.lose("zarr.json", change)
    array = new_array(place, (4,))
    array.attrs["y"] = 2
    assert dict(zardine.open_array(**place.others).attrs) == {"x": 1, "y": 2}


@pytest.mark.parametrize("fault", ["drop_after", "reset_after", "reset", "drop", 503, "503_after"])
def test_erasing_goes_on(place: Place, fault: object) -> None:
    array = new_array(place, (8,))
    array[...] = 1
    place.proxy.matching = lambda method, path: method == "POST"
    place.proxy.faults = [fault]
    array.store.erase_prefix("c/")
    assert list(array.store.list_prefix("c/")) == []


def test_the_version_of_a_value_that_others_replaced_is_of_no_value(place: Place) -> None:
    mine = object_store_of_url("s3", f"{place.bucket}/a", place.mine["storage_options"])
    theirs = object_store_of_url("s3", f"{place.bucket}/a", servers.s3_options())
    place.lose("k", lambda: theirs.set("k", b"theirs", condition=Condition(theirs.version("k"))))
    version = mine.set("k", b"mine", condition=Condition(None))
    with pytest.raises(ConditionFailedError) as caught:
        mine.set("k", b"again", condition=Condition(version))
    assert not caught.value.may_be_done
    assert mine.get("k") == b"theirs"


def test_marks_do_not_grow_for_ever(place: Place) -> None:
    store = object_store_of_url("s3", f"{place.bucket}/a", servers.s3_options())
    version = None
    for number in range(100):
        version = store.set("k", b"%d" % number, condition=Condition(version))
    assert store.read("k").version == version
    assert 100 < len(version.marks) < 1000


# histories


def history(seed: int, writers: int = 3, blocks: int = 6) -> None:
    """Writers append, write parts and set attributes at the same time; a third of the puts lose their answers."""
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    rng = random.Random(seed)
    bucket = servers.new_bucket()
    options = servers.s3_options(proxy.url, **{**QUICK, "max_retries": 8})
    near = servers.s3_options()
    zardine.create_array(
        f"s3://{bucket}/x/y/a", shape=(0,), chunks=(2,), shards=(8,), dtype="i4", fill_value=-1, storage_options=near
    )
    zardine.create_array(
        f"s3://{bucket}/x/y/b", shape=(writers,), chunks=(1,), shards=(writers,), dtype="i4", storage_options=near
    )
    proxy.always = lambda method, path, headers: (
        rng.choice(["drop_after", "reset_after", "503_after", "reset", 503]) if rng.random() < 0.3 else None
    )
    done: list[int] = []
    errors: list[BaseException] = []

    def write(me: int) -> None:
        root, path = [("", "x/y/"), ("/x", "y/"), ("/x/y", "")][me % 3]  # no lock of this process is between them
        try:
            a = zardine.open_array(f"s3://{bucket}{root}", path=f"{path}a", mode="r+", storage_options=options)
            b = zardine.open_array(f"s3://{bucket}{root}", path=f"{path}b", mode="r+", storage_options=options)
            for number in range(blocks):
                value = 100 * me + number
                a.append(np.full(2, value, "i4"))
                done.append(value)
                b[me] = number
                b.attrs[str(me)] = number
                assert b[me] == number
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(me,)) for me in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    proxy.close()
    if errors:
        raise errors[0]
    found = zardine.open_array(f"s3://{bucket}/x/y/a", storage_options=near)[...].tolist()
    assert sorted(found) == sorted(2 * done), (seed, found)
    b = zardine.open_array(f"s3://{bucket}/x/y/b", storage_options=near)
    assert b[...].tolist() == [blocks - 1] * writers, seed
    assert dict(b.attrs) == {str(me): blocks - 1 for me in range(writers)}, seed


@pytest.mark.parametrize("number", range(50 if SOAK else 2))
def test_histories_of_several_writers(number: int) -> None:
    history(new_seed(number))


# what errors say


@pytest.mark.parametrize("conditional", [False, True])
def test_an_error_says_whether_the_write_may_be_done(place: Place, conditional: bool) -> None:
    store = object_store_of_url("s3", f"{place.bucket}/a", place.mine["storage_options"])
    condition = Condition(None) if conditional else None
    for fault in (503, "reset"):
        place.proxy.always = lambda method, path, headers, fault=fault: fault
        for what in (lambda: store.set("k", b"x", condition=condition), lambda: store.erase("k")):
            with pytest.raises(StoreError, match=r"'k' of s3://.*in \d+ tries within [\d.]+ s") as caught:
                what()
            assert "may have been carried out" in str(caught.value)
        with pytest.raises(StoreError, match=r"'k' of s3://.*in \d+ tries within [\d.]+ s") as caught:
            store.get("k")
        assert "carried out" not in str(caught.value)
    place.proxy.always = lambda *_: None
    assert store.set("k", b"x", condition=condition) is not None


def test_a_server_that_is_not_there_was_not_asked() -> None:
    url = f"http://127.0.0.1:{servers.free_port()}"
    store = object_store_of_url("s3", "bucket/a", servers.s3_options(url, **QUICK))
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        store.set("k", b"x", condition=Condition(None))
    assert "carried out" not in str(caught.value)


def busy(proxy: FaultProxy, status: int, times: int) -> None:
    proxy.matching = lambda method, path: True
    proxy.faults = [status] * times


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_service_that_is_busy_is_asked_again(place: Place, status: int) -> None:
    """As often as one that hangs up, which is more often than obstore asks by itself."""
    store = object_store_of_url("s3", f"{place.bucket}/a", place.mine["storage_options"])
    store.set("l/k", b"x")

    def check(call: Callable[[ObjectStore], object], expected: object) -> None:
        busy(place.proxy, status, 6)
        assert call(store) == expected

    check(lambda store: store.get("l/k"), b"x")
    check(lambda store: [bytes(each) for each in store.read("l/k", ((0, 1), (-1, None))).parts], [b"x", b"x"])
    check(lambda store: store.exists("l/k"), True)
    check(lambda store: list(store.list_prefix("l/")), ["l/k"])
    check(lambda store: store.list_dir("l/"), (["l/k"], []))
    check(lambda store: store.set("l/m", b"y") is not None, True)
    check(lambda store: store.set("l/n", b"z", condition=Condition(None)) is not None, True)
    check(lambda store: store.erase("l/k"), None)
    check(lambda store: store.erase_values(["l/m", "l/n"]), None)
    assert list(store.list_prefix("l/")) == []


# what does not end


@pytest.mark.parametrize(("status", "code"), [(412, "PreconditionFailed"), (409, "OperationAborted")])
def test_a_service_that_refuses_to_create_is_quoted(place: Place, status: int, code: str) -> None:
    from servers.fault_proxy import refusal

    place.proxy.always = lambda method, path, headers: refusal(status, code) if method == "PUT" else None
    options = {"storage_options": servers.s3_options(place.proxy.url, max_retries=0)}
    for overwrite in (False, True):
        with pytest.raises(StoreError, match=rf"nothing is stored at .*refuses.*{code} \(status {status}\)") as caught:
            zardine.create_array(f"s3://{place.bucket}/n/a", shape=(1,), dtype="i4", overwrite=overwrite, **options)
        assert "overwrite" not in str(caught.value)


def test_an_append_that_fails_gives_its_place_back(place: Place) -> None:
    array = new_array(place)
    array.append(np.array([1, 1], "i4"))
    place.proxy.always = lambda method, path, headers: 400 if method == "PUT" and "/c/" in path else None
    with pytest.raises(StoreError) as caught:
        array.append(np.array([2, 2], "i4"))
    assert not hasattr(caught.value, "__notes__")
    assert zardine.open_array(**place.others)[...].tolist() == [1, 1]
    # not if others have appended since
    place.proxy.always = lambda *_: None
    place.proxy.matching = lambda method, path: method == "PUT" and "/c/1" in path

    theirs = others_append(place, 1)
    refused = []

    def fail(method: str, path: str, headers: dict[str, str]) -> object:
        if method == "PUT" and path.partition("?")[0].endswith("/c/1"):
            if not refused:
                refused.append(path)
                thread = threading.Thread(target=theirs)
                thread.start()
                thread.join()
            return 400
        return None

    place.proxy.always = fail
    with pytest.raises(StoreError) as caught:
        array.append(np.array([2, 2], "i4"))
    assert "has grown from (2,) to (4,) all the same" in caught.value.__notes__[0]
    assert zardine.open_array(**place.others)[...].tolist() == [1, 1, -1, -1, 100, 100]
