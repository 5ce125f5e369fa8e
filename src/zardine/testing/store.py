"""Every promise of :mod:`zardine.stores.base` as a test, for any store.

::

    class TestMyStore(StoreConformance):
        def make_store(self) -> Store:
            return MyStore(...)          # new, empty, writeable
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from zardine.errors import ConditionFailedError, InvalidKeyError, ReadOnlyError, StoreError
from zardine.stores.base import ByteRange, Condition, Store

BAD_KEYS = ("", "/", "a/", "/a", "a//b", ".", "..", "../a", "a/..", "a/./b", "a/../../b", "a\0b", "a/\ud800")
BAD_PREFIXES = ("a", "/", "a//", "../", "a/../", "./", "a/b")
UNICODE_KEYS = ("grüße/日本/zarr.json", "a b/c%20d", "emoji/🐟", "...", "a/....", "c.0.0", ".zattrs", "UPPER/lower")
VALUE = bytes(range(256))
RANGES: tuple[tuple[ByteRange, bytes], ...] = (
    ((0, None), VALUE),
    ((0, 0), b""),
    ((0, 1), VALUE[:1]),
    ((10, 20), VALUE[10:30]),
    ((10, None), VALUE[10:]),
    ((10, 0), b""),
    ((255, 1), VALUE[255:]),
    ((250, 100), VALUE[250:]),
    ((256, 1), b""),
    ((256, None), b""),
    ((1000, 5), b""),
    ((1000, None), b""),
    ((-1, None), VALUE[-1:]),
    ((-16, None), VALUE[-16:]),
    ((-256, None), VALUE),
    ((-1000, None), VALUE),
)


class StoreConformance:
    """Subclass it as a test class; override :meth:`make_store`, and what else does not fit."""

    versions = True
    """Whether the store has version tokens and conditional writes."""

    versions_of_content = False
    """Whether the version may be the same again when the same bytes are (as most ETags are digests)."""

    rounds = 50
    """How often each thread does its work in tests of threads; fewer for a store that answers slowly."""

    largest = (1 << 22) + 3
    """Bytes of the largest value that is tried."""

    def make_store(self) -> Store:
        """A new, empty, writeable store."""
        raise NotImplementedError

    def open_again(self, store: Store) -> Store:
        """Another store object over the same values, as another thread would open it; by default the same object."""
        return store

    # reading

    def test_missing_keys(self) -> None:
        store = self.make_store()
        store.set("a/b", b"x")
        for key in ("a", "b", "a/b/c", "a/c", "a/bb"):
            assert store.read(key) is None
            assert store.get(key) is None
            assert not store.exists(key)
            assert store.size(key) is None
            assert store.version(key) is None
            assert store.files is None or store.files.open(key) is None
            with suppress(*[StoreError] if key == "a" else ()):  # which may be a directory
                store.erase(key)
        assert store.get_partial_values([("b", (0, 1)), ("a/b", (0, 1))]) == [None, b"x"]

    @pytest.mark.parametrize(("byte_range", "expected"), RANGES)
    def test_ranges(self, byte_range: ByteRange, expected: bytes) -> None:
        store = self.make_store()
        store.set("k", VALUE)
        reading = store.read("k", (byte_range,))
        assert reading is not None
        assert bytes(reading.parts[0]) == expected
        assert reading.size == 256
        assert store.get_partial_values([("k", byte_range)]) == [expected]
        store.set("k", b"")
        reading = store.read("k", (byte_range,))
        assert reading is not None
        assert [bytes(part) for part in reading.parts] == [b""]
        assert reading.size == 0

    def test_small_values(self) -> None:
        """Many at once are what each is, or are left to be asked for."""
        store = self.make_store()
        sizes = {f"a/{number}": number for number in range(150)}
        for key, size in sizes.items():
            store.set(key, VALUE[:size])
        keys = [*sizes, "a/none", "none/1"]
        found = list(store.read_small(iter(keys), 100))
        assert len(found) == len(keys)
        for key, value in zip(keys, found, strict=True):
            assert value is None or bytes(value) == VALUE[: sizes[key]]
            assert value is None or len(value) <= 100
        assert list(store.read_small([], 100)) == []

    def test_a_value_that_is_too_long_is_not_given(self) -> None:
        store = self.make_store()
        assert store.read_up_to("k", 10) is None
        version = store.set("k", VALUE)
        for most in (256, 257, 10**12):
            reading = store.read_up_to("k", most)
            assert reading is not None
            assert [bytes(part) for part in reading.parts] == [VALUE]
            assert reading.size == 256
            assert reading.version == version or not self.versions
        for most in (255, 1, 0):
            reading = store.read_up_to("k", most)
            assert reading is not None
            assert (reading.parts, reading.size) == ((), 256)
            assert reading.version == version or not self.versions
        store.set("k", b"")
        reading = store.read_up_to("k", 0)
        assert reading is not None
        assert [bytes(part) for part in reading.parts] == [b""]

    def test_many_ranges_of_one_value(self) -> None:
        store = self.make_store()
        version = store.set("k", VALUE)
        reading = store.read("k", [byte_range for byte_range, _ in RANGES])
        assert reading is not None
        assert [bytes(part) for part in reading.parts] == [expected for _, expected in RANGES]
        assert reading.version == version
        assert reading.size == 256
        none = store.read("k", ())
        assert none is not None
        assert none.parts == ()
        store.set("l", b"other")
        mixed = store.get_partial_values([("l", (0, 2)), ("k", (1, 1)), ("m", (0, None)), ("l", (-2, None))])
        assert mixed == [b"ot", VALUE[1:2], None, b"er"]

    def test_parts_are_flat_bytes(self) -> None:
        store = self.make_store()
        store.set("k", VALUE)
        reading = store.read("k", ((0, None), (3, 4)))
        assert reading is not None
        for part in reading.parts:
            assert isinstance(part, bytes | bytearray | memoryview)
            view = memoryview(part)
            assert (view.format, view.ndim, view.c_contiguous) == ("B", 1, True)

    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_values_are_copied(self, kind: Callable[[bytes], Any]) -> None:
        store = self.make_store()
        mutable = bytearray(VALUE)
        store.set("k", kind(bytes(mutable)) if kind is not memoryview else memoryview(mutable))
        mutable[:] = bytes(256)
        assert store.get("k") == VALUE
        assert store.size("k") == 256

    def test_values_of_any_size(self) -> None:
        store = self.make_store()
        for size in (0, 1, 4095, 4096, 4097, 1 << 20, self.largest):
            value = random.Random(size).randbytes(size)
            store.set("big", value)
            assert store.get("big") == value
            assert store.size("big") == size

    def test_old_readings_stay(self) -> None:
        store = self.make_store()
        store.set("k", b"old")
        reading = store.read("k", ((0, None), (1, 2)))
        store.set("k", b"new")
        store.erase("k")
        assert reading is not None
        assert [bytes(part) for part in reading.parts] == [b"old", b"ld"]

    # versions and conditions

    def test_versions(self) -> None:
        if not self.versions:
            pytest.skip("no versions")
        store = self.make_store()
        seen = set()
        for value in (b"one", b"two", b"2" if self.versions_of_content else b"two", b"three", b""):
            version = store.set("k", value)
            assert version is not None
            assert version not in seen
            seen.add(version)
            store.set("other", value)
            assert store.get("k") == value
            reading = store.read("k", ((0, 1),))
            assert reading is not None
            assert reading.version == version
            assert store.version("k") == version
            assert self.open_again(store).version("k") == version
        store.erase("k")
        assert store.version("k") is None
        assert store.set("k", b"again" if self.versions_of_content else b"") not in seen

    def test_create_only_if_missing(self) -> None:
        if not self.versions:
            pytest.skip("no conditions")
        store = self.make_store()
        first = store.set("a/k", b"first", condition=Condition(None))
        assert first == store.version("a/k")
        with pytest.raises(ConditionFailedError):
            store.set("a/k", b"second", condition=Condition(None))
        assert store.get("a/k") == b"first"
        assert store.version("a/k") == first
        store.erase("a/k")
        store.set("a/k", b"third", condition=Condition(None))
        assert store.get("a/k") == b"third"

    def test_replace_only_if_unchanged(self) -> None:
        if not self.versions:
            pytest.skip("no conditions")
        store = self.make_store()
        first = store.set("k", b"1")
        second = store.set("k", b"2", condition=Condition(first))
        with pytest.raises(ConditionFailedError):
            store.set("k", b"3", condition=Condition(first))
        assert store.get("k") == b"2"
        assert store.version("k") == second
        store.set("k", b"22" if self.versions_of_content else b"2")  # the same bytes, written again
        with pytest.raises(ConditionFailedError):
            store.set("k", b"3", condition=Condition(second))
        store.erase("k")
        with pytest.raises(ConditionFailedError):
            store.set("k", b"3", condition=Condition(second))
        assert store.get("k") is None
        with pytest.raises(ConditionFailedError):
            store.set("dir/missing", b"3", condition=Condition("no such version"))
        assert list(store.list()) == []

    # writing

    @pytest.mark.parametrize("size", [0, 3, 1 << 18])
    def test_values_in_parts(self, size: int) -> None:
        store = self.make_store()
        value = random.Random(size).randbytes(size)
        with store.new_value("a/k") as new:
            for start in range(0, size, 1 + size // 3):
                part = bytearray(value[start : start + 1 + size // 3])
                new.write([part[:1], b"", memoryview(part)[1:]])
                part[:] = bytes(len(part))  # it was copied, or written
            assert new.size == size
            assert store.get("a/k") is None
            new.write([b"tail"])
            new.write_at(size, [b"END"])
            if size:
                new.write_at(0, [value[:1], b"x"])
            expected = (value[:1] + b"x" + value[2:] if size else b"") + b"ENDl"
            version = new.put()
        assert store.get("a/k") == expected
        if self.versions:
            assert version is not None
            assert version == store.version("a/k")

    def test_values_in_parts_that_are_given_up(self) -> None:
        store = self.make_store()
        store.set("k", b"old")
        for key in ("k", "a/b/new"):
            with store.new_value(key):
                pass  # nothing was written
            with store.new_value(key) as new:
                new.write([b"new"])
            with pytest.raises(TypeError), store.new_value(key) as new:
                new.write([b"new", None])  # type: ignore[list-item]
        assert list(store.list()) == ["k"]
        assert store.get("k") == b"old"
        assert store.list_dir("a/") == ([], [])

    def test_values_in_parts_with_a_condition(self) -> None:
        if not self.versions:
            pytest.skip("no conditions")
        store = self.make_store()
        with store.new_value("a/k") as new:
            new.write([b"first"])
            first = new.put(Condition(None))
        assert store.version("a/k") == first
        for condition in (Condition(None), Condition("no such version")):
            with store.new_value("a/k") as new:
                new.write([b"second"])
                with pytest.raises(ConditionFailedError):
                    new.put(condition)
        with store.new_value("a/k") as new, store.lock("a/k"):
            new.write([b"second"])
            second = new.put(Condition(first))
        assert store.get("a/k") == b"second"
        assert second != first
        assert list(store.list()) == ["a/k"]

    def test_set_partial_values(self) -> None:
        store = self.make_store()
        store.set("k", b"0123456789")
        store.set_partial_values([("k", 8, b"ABCD"), ("k", 0, b"x"), ("new", 3, b"y"), ("k", 2, b""), ("e", 0, b"")])
        assert store.get("k") == b"x1234567ABCD"
        assert store.get("new") == b"\0\0\0y"
        assert store.get("e") == b""
        store.set_partial_values([])
        for bad in ([("k", 0, b"abc"), ("k", 2, b"z")], [("k", -1, b"a")]):
            with pytest.raises(ValueError, match="overlapping or negative"):
                store.set_partial_values(bad)
        assert store.get("k") == b"x1234567ABCD"

    def test_erase(self) -> None:
        store = self.make_store()
        for key in ("a", "b/c", "b/d/e", "b/d/f"):
            store.set(key, b"x")
        store.erase("b/c")
        with suppress(StoreError):  # stores of files may say that it is a directory
            store.erase("b/d")
        store.erase("nothing")
        assert list(store.list()) == ["a", "b/d/e", "b/d/f"]
        store.erase_values(["a", "b/d/e", "nothing/here"])
        assert list(store.list()) == ["b/d/f"]
        store.erase("b/d/f")
        assert list(store.list()) == []
        assert store.list_dir("") == ([], [])
        store.set("b", b"where a prefix was")
        assert store.get("b") == b"where a prefix was"

    def test_versions_while_listing(self) -> None:
        store = self.make_store()
        store.set("a/b", b"one")
        store.set("a/c", b"one")
        before = store.list_versions("a/")
        if before is None:
            return
        known = dict(before)
        store.set("a/b", b"two")
        now = dict(store.list_versions("a/") or ())
        assert now["a/b"] != known["a/b"]
        assert now["a/c"] == known["a/c"]

    def test_erase_version(self) -> None:
        store = self.make_store()
        old = store.set("a/b", b"old")
        if self.versions:
            store.set("a/b", b"new")
            with pytest.raises(ConditionFailedError):
                store.erase_version("a/b", old)
            assert store.get("a/b") == b"new"
        store.erase_version("a/b", store.version("a/b"))
        assert not store.exists("a/b")

    def test_erase_prefix(self) -> None:
        store = self.make_store()
        keys = ["a.b", "a/b", "a/c/d", "a/c/e/f", "a0", "aa/b", "b/a/b"]
        for key in keys:
            store.set(key, b"x")
        store.erase_prefix("a/c/e/")
        store.erase_prefix("nothing/")
        assert list(store.list()) == [key for key in keys if key != "a/c/e/f"]
        store.erase_prefix("a/")
        assert list(store.list()) == ["a.b", "a0", "aa/b", "b/a/b"]
        store.set("a/b", b"again")
        store.erase_prefix("")
        assert list(store.list()) == []
        store.set("a/b", b"again")
        assert list(store.list()) == ["a/b"]

    # listing

    def test_listing(self) -> None:
        store = self.make_store()
        assert list(store.list()) == []
        assert store.list_dir("") == ([], [])
        assert store.list_dir("none/") == ([], [])
        keys = ["a-b", "a.b", "a/b", "a/b.c", "a/c", "a/d/e", "a/f/g", "a0", "e/f/g", "zarr.json"]
        for key in random.Random(0).sample(keys, len(keys)):
            store.set(key, b"x")
        assert list(store.list()) == keys
        assert list(store.list_prefix("")) == keys
        assert list(store.list_prefix("a/")) == ["a/b", "a/b.c", "a/c", "a/d/e", "a/f/g"]
        assert list(store.list_prefix("a/d/")) == ["a/d/e"]
        assert list(store.list_prefix("a/b/")) == []
        for prefix in ("", "a/", "none/"):
            versions = store.list_versions(prefix)
            if versions is not None:
                assert [key for key, _ in versions] == list(store.list_prefix(prefix))
        assert store.list_dir("") == (["a-b", "a.b", "a0", "zarr.json"], ["a/", "e/"])
        assert store.list_dir("a/") == (["a/b", "a/b.c", "a/c"], ["a/d/", "a/f/"])
        assert store.list_dir("a/b/") == ([], [])
        assert store.list_dir("e/") == ([], ["e/f/"])

    def test_what_lies_beside_the_values(self) -> None:
        """Of a store that nobody damaged nothing is told, by wrappers as little as by what they wrap."""
        store = self.make_store()
        store.set("a/k", b"x")
        assert list(store.faults()) == []
        assert list(store.left_out()) == list(store.left_out("a/")) == []
        for prefix in BAD_PREFIXES:
            with pytest.raises(InvalidKeyError):
                list(store.left_out(prefix))
        assert list(store.leftovers(0)) == []
        assert store.remove_leftovers(0) == 0
        with pytest.raises(ReadOnlyError):
            store.with_read_only(True).remove_leftovers(0)
        assert store.get("a/k") == b"x"
        assert store.origin == store.with_read_only(True).origin
        if store.meter is not None:
            before = store.meter.sent
            store.get("a/k")
            assert store.meter.sent > before

    def test_unicode_keys(self) -> None:
        store = self.make_store()
        for number, key in enumerate(UNICODE_KEYS):
            store.set(key, str(number).encode())
        assert list(store.list()) == sorted(UNICODE_KEYS)
        for number, key in enumerate(UNICODE_KEYS):
            assert store.get(key) == str(number).encode()
        store.erase_prefix("grüße/")
        assert not store.exists(UNICODE_KEYS[0])

    # refusals

    @pytest.mark.parametrize("key", BAD_KEYS)
    def test_bad_keys(self, key: str) -> None:
        store = self.make_store()
        calls: list[Callable[[], object]] = [
            lambda: store.read(key),
            lambda: store.get(key),
            lambda: store.get_partial_values([(key, (0, 1))]),
            lambda: store.exists(key),
            lambda: store.size(key),
            lambda: store.version(key),
            lambda: store.set(key, b""),
            lambda: store.set(key, b"", condition=Condition(None)),
            lambda: store.set_partial_values([(key, 0, b"x")]),
            lambda: store.erase(key),
            lambda: store.erase_values([key]),
            lambda: store.lock(key),
        ]
        for call in calls:
            with pytest.raises(InvalidKeyError):
                call()
        assert list(store.list()) == []

    @pytest.mark.parametrize("prefix", BAD_PREFIXES)
    def test_bad_prefixes(self, prefix: str) -> None:
        store = self.make_store()
        store.set("a/b/c", b"x")
        calls: list[Callable[[], object]] = [
            lambda: list(store.list_prefix(prefix)),
            lambda: store.list_dir(prefix),
            lambda: store.erase_prefix(prefix),
        ]
        for call in calls:
            with pytest.raises(InvalidKeyError):
                call()
        assert list(store.list()) == ["a/b/c"]

    def test_read_only(self) -> None:
        writeable = self.make_store()
        writeable.set("a/b", b"x")
        store = writeable.with_read_only(True)
        assert store.read_only
        assert not writeable.read_only
        calls: list[Callable[[], object]] = [
            lambda: store.set("a/b", b"y"),
            lambda: store.set("new", b"y", condition=Condition(None)),
            lambda: store.set_partial_values([("a/b", 0, b"y")]),
            lambda: store.set_partial_values([]),
            lambda: store.new_value("a/b"),
            lambda: store.erase("a/b"),
            lambda: store.erase("missing"),
            lambda: store.erase_values([]),
            lambda: store.erase_prefix("a/"),
            lambda: store.erase_prefix("missing/"),
        ]
        for call in calls:
            with pytest.raises(ReadOnlyError):
                call()
        assert store.get("a/b") == b"x"
        assert list(store.list()) == ["a/b"]
        writeable.set("a/b", b"y")
        assert store.get("a/b") == b"y"
        again = store.with_read_only(False)
        again.set("a/b", b"z")
        assert writeable.get("a/b") == b"z"

    def test_values_must_be_bytes(self) -> None:
        store = self.make_store()
        for value in ("text", 5, None, [1, 2]):
            with pytest.raises(TypeError):
                store.set("k", value)  # type: ignore[arg-type]
        assert list(store.list()) == []

    # threads

    def test_readers_see_no_mixtures(self) -> None:
        store = self.make_store()
        size = 1 << 20
        store.set("k", bytes(size))
        stop = threading.Event()

        def read() -> None:
            mine = self.open_again(store)
            while not stop.is_set():
                reading = mine.read("k", ((0, 1), (size // 2, 1000), (-1, None), (0, None)))
                assert reading is not None
                assert len(reading.parts[3]) == reading.size == size
                values = {value for part in reading.parts for value in bytes(part[::4093])}
                assert len(values) == 1

        def write() -> None:
            for number in range(self.rounds + 10):
                store.set("k", bytes([number]) * size)
            stop.set()

        run_threads([read] * 8 + [write], stop)

    def test_conditional_increments_lose_nothing(self) -> None:
        if not self.versions:
            pytest.skip("no conditions")
        store = self.make_store()

        def increment() -> None:
            mine = self.open_again(store)
            add(mine, "deep/er/counter", self.rounds)

        run_threads([increment] * 8)
        assert store.get("deep/er/counter") == f"{8 * self.rounds:08}".encode()

    def test_partial_writes_lose_nothing(self) -> None:
        if not self.versions:
            pytest.skip("no conditions")
        store = self.make_store()

        last = max(2, self.rounds * 2 // 5)

        def write(place: int) -> None:
            mine = self.open_again(store)
            for number in range(1, last + 1):
                mine.set_partial_values([("k", place * 2, bytes([number, number]))])

        run_threads([lambda place=place: write(place) for place in range(8)])  # type: ignore[misc]
        assert store.get("k") == bytes([last]) * 16

    def test_writers_and_erasers(self) -> None:
        store = self.make_store()

        def write(name: str) -> None:
            for number in range(2 * self.rounds):
                store.set(f"a/b/{name}/{number % 5}", name.encode() * 100)

        def erase() -> None:
            for number in range(2 * self.rounds):
                store.erase(f"a/b/x/{number % 5}")
                store.erase_prefix("a/b/")
                for key in store.list():
                    value = store.get(key)
                    assert value is None or bytes(value) == key[4:5].encode() * 100

        run_threads([lambda: write("x"), lambda: write("y"), erase, erase])
        store.erase_prefix("a/")
        assert list(store.list()) == []

    def test_locks(self) -> None:
        store = self.make_store()
        store.set("k", b"0")

        def increment() -> None:
            mine = self.open_again(store)
            for _ in range(self.rounds):
                with mine.lock("k"), mine.lock("k"):
                    value = mine.get("k")
                    assert value is not None
                    mine.set("k", str(int(bytes(value)) + 1).encode())

        run_threads([increment] * 4)
        assert store.get("k") == str(4 * self.rounds).encode()
        with store.lock("not/there/yet"):
            assert not store.exists("not/there/yet")
        assert list(store.list()) == ["k"]
        assert store.list_dir("") == (["k"], [])
        with store.lock("a/new"):
            store.set("a/new", b"1", condition=Condition(None) if self.versions else None)
            store.set("a/new", b"2")
        assert store.get("a/new") == b"2"

    def test_looks(self) -> None:
        """A value that was replaced or erased is never said to be unchanged."""
        store = self.make_store()
        version = store.set("a/k", b"one")
        reading = store.read("a/k")
        assert reading is not None
        assert not store.is_unchanged("a/k", None)
        assert not store.seems_missing("a/k")
        assert store.read_and_look("a/k", 3, "a/k") == (store.read_up_to("a/k", 3), False)
        assert store.read_and_look("a/k", 3, "a/none") == (store.read_up_to("a/k", 3), store.seems_missing("a/none"))
        assert store.read_and_look("a/none", 3, "a/other") == (None, False)
        if not self.versions:  # what it gives as a version may be that of another value
            return
        assert store.is_unchanged("a/k", reading.version)
        assert not store.is_unchanged("a/other", version or "1")
        store.set("a/k", b"two")
        assert not store.is_unchanged("a/k", reading.version)
        again = store.read("a/k")
        assert again is not None
        store.erase("a/k")
        assert not store.is_unchanged("a/k", again.version)

    def test_writers_are_waited_for(self) -> None:
        """Whoever waits for writers below a prefix goes on when those have ended that the store can know of."""
        store = self.make_store()
        store.set("a/k", b"one")
        inside, leave, waited = threading.Event(), threading.Event(), threading.Event()
        known: list[bool] = []

        def write() -> None:
            with self.open_again(store).writer("a/") as is_known:
                known.append(is_known)
                inside.set()
                assert leave.wait(30)

        def wait() -> None:
            assert inside.wait(30)
            assert store.wait_for_writers("b/") in (True, False)  # others do not matter
            known.append(store.wait_for_writers("a/"))
            waited.set()

        def look() -> None:
            assert inside.wait(30)
            if known[0]:
                assert not waited.wait(0.2)
            leave.set()

        run_threads([write, wait, look])
        assert not known[0] or known[1]
        with store.writer("a/") as first, store.writer("a/") as second:
            assert first == second
            assert not store.wait_for_writers("a/")  # not by one who is writing

    def test_writers_are_kept_out(self) -> None:
        """Where writers can be known, none comes in while another is without writers, and who is in is waited for."""
        store = self.make_store()
        store.set("a/k", b"one")
        with store.writer("a/") as is_known, store.writer("a/"):
            pass
        with store.without_writers("a/") as known, store.without_writers("b/"):
            assert known or not is_known
        turns: list[str] = []

        def write() -> None:
            with self.open_again(store).writer("a/"):
                turns.append("begun")
                time.sleep(0.01)
                turns.append("done")

        def keep() -> None:
            for _ in range(5):
                with store.without_writers("a/"):
                    turns.append("kept")
                    time.sleep(0.01)
                    turns.append("open")
                time.sleep(0.002)

        run_threads([keep, *[write] * 3, keep])
        assert len(turns) == 26
        if is_known:
            writers = 0
            for before, turn in zip(["open", *turns], turns, strict=False):
                writers += {"begun": 1, "done": -1}.get(turn, 0)
                assert turn != "kept" or not writers
                assert before != "kept" or turn == "open"


def add(store: Store, key: str, times: int = 1) -> None:
    """Increment an eight-digit number by conditional writes, each tried until nobody came in between."""
    while times:
        reading = store.read(key)
        number = 0 if reading is None else int(bytes(reading.parts[0]))
        condition = Condition(None if reading is None else reading.version)
        try:
            store.set(key, f"{number + 1:08}".encode(), condition=condition)
        except ConditionFailedError:
            continue
        times -= 1


def run_threads(calls: Sequence[Callable[[], object]], stop: threading.Event | None = None) -> None:
    """Run all calls at once, each in a thread; the first error of any of them is raised."""
    errors: list[BaseException] = []

    def run(call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)
            if stop is not None:
                stop.set()

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


__all__ = ["StoreConformance", "add", "run_threads"]
