"""Every store and wrapper of ours against the shipped suite."""

from __future__ import annotations

import pytest

from zardine.storage import CountingStore, LocalStore, ManagedMemoryStore, MemoryStore, PrefixStore, WrapperStore
from zardine.stores.base import ByteRange, Condition, Reading, Store
from zardine.testing.store import StoreConformance


class InDirectory(StoreConformance):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path):
        self.root = tmp_path / "root"


class TestMemoryStore(StoreConformance):
    def make_store(self):
        return MemoryStore()


class TestManagedMemoryStore(StoreConformance):
    def make_store(self):
        return ManagedMemoryStore()

    def open_again(self, store):
        return ManagedMemoryStore(store.name)


class TestDictBacked(StoreConformance):
    def make_store(self):
        self.values = {}
        return MemoryStore(self.values)

    def open_again(self, store):
        return MemoryStore(self.values)


class TestLocalStore(InDirectory):
    def make_store(self):
        return LocalStore(self.root)

    def open_again(self, store):
        return LocalStore(store.root)


class TestLocalStoreThroughLinks(InDirectory):
    """The root is a link, the other store sees the same directory from further up."""

    def make_store(self):
        (self.root / "up" / "real").mkdir(parents=True)
        (self.root / "link").symlink_to("up/real")
        return LocalStore(self.root / "link")

    def open_again(self, store):
        return PrefixStore(LocalStore(self.root / "up"), "real")


class TestDurableLocalStore(InDirectory):
    def make_store(self):
        return LocalStore(self.root, durable=True)


class TestLocalStoreOverLocks(InDirectory):
    """Systems without locks of files: threads still exclude each other."""

    @pytest.fixture(autouse=True)
    def _no_locks(self, monkeypatch):
        from zardine.stores import locks

        monkeypatch.setattr(locks, "HAS_LOCKS", False)

    def make_store(self):
        return LocalStore(self.root)


class TestLocalStoreWithoutHardLinks(InDirectory):
    @pytest.fixture(autouse=True)
    def _no_link(self, monkeypatch):
        def link(*args, **keywords):
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr("os.link", link)

    def make_store(self):
        return LocalStore(self.root)


class TestPrefixStore(StoreConformance):
    def make_store(self):
        inner = MemoryStore()
        inner.set("p", b"outside")
        inner.set("p/q", b"outside")
        inner.set("p/qq/a", b"outside")
        return PrefixStore(inner, "/p//q/")


class TestPrefixOfLocal(InDirectory):
    def make_store(self):
        return PrefixStore(PrefixStore(LocalStore(self.root), "a"), "b")


class TestCountingStore(StoreConformance):
    def make_store(self):
        return CountingStore(MemoryStore())


class TestWrapperStore(StoreConformance):
    def make_store(self):
        return WrapperStore(MemoryStore())


class Smallest(Store):
    """Only what must be there: the fallbacks have to do the rest."""

    def __init__(self):
        super().__init__()
        self.inner = MemoryStore()

    def read(self, key: str, ranges: tuple[ByteRange, ...] = ((0, None),)) -> Reading | None:
        return self.inner.read(key, ranges)

    def set(self, key: str, value, *, condition: Condition | None = None):
        self._check_writable()
        return self.inner.set(key, value, condition=condition)

    def erase(self, key):
        self._check_writable()
        self.inner.erase(key)

    def list_dir(self, prefix):
        return self.inner.list_dir(prefix)


class TestFallbacks(StoreConformance):
    def make_store(self):
        return Smallest()


class Unversioned(Smallest):
    def read(self, key, ranges=((0, None),)):
        reading = self.inner.read(key, ranges)
        return reading and Reading(reading.parts, None, reading.size)

    def set(self, key, value, *, condition=None):
        super().set(key, value, condition=condition)


class TestUnversioned(StoreConformance):
    versions = False

    def make_store(self):
        return Unversioned()

    def test_many_ranges_of_one_value(self):
        store = self.make_store()
        store.set("k", b"abc")
        assert store.read("k", ((0, 1), (-1, None))).parts == (b"a", b"c")
