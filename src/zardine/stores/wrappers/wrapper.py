"""Stores made of another store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import GenericAlias
from typing import TYPE_CHECKING, ClassVar, Self

from zardine.buffers import BytesLike
from zardine.public_names import public
from zardine.stores.base import (
    WHOLE,
    ByteRange,
    Condition,
    EditableFile,
    NewValue,
    OpenFile,
    ReadCost,
    Reading,
    Store,
    Version,
    check_key,
    check_prefix,
)
from zardine.stores.file_seam import FilePaths, PathForm, StoreFiles
from zardine.stores.object_meter import RequestMeter
from zardine.stores.open_files import KeptFile

if TYPE_CHECKING:
    from zardine._kernel import KnownFile


class WrappedFiles(StoreFiles):
    """The files of the store within a wrapper, under the keys of the wrapper.

    Files are put in the place of values by the wrapper's ``set`` alone. A subclass that opens files in another way sees
    all that are opened.
    """

    __slots__ = ("_inner", "_store")

    def __init__(self, store: WrapperStore, inner: StoreFiles) -> None:
        self._store = store
        self._inner = inner

    @property
    def can_read(self) -> bool:
        return self._inner.can_read

    @property
    def can_edit(self) -> bool:
        return self._inner.can_edit

    def open(self, key: str) -> OpenFile | None:
        return self._inner.open(self._store._key(key))

    def edit(self, key: str) -> AbstractContextManager[EditableFile | None]:
        inner = self._store._key(key)
        self._store._check_writable()
        return self._inner.edit(inner)

    def keep_open(self, keys: Sequence[str], *, sparing: bool = False, look: bool = True) -> Sequence[KeptFile] | None:
        if type(self).open is not WrappedFiles.open:
            return None
        return self._inner.keep_open([self._store._key(key) for key in keys], sparing=sparing, look=look)

    def identify(self, key: str, version: Version) -> KnownFile | None:
        if type(self._store).is_unchanged is not WrapperStore.is_unchanged:
            return None
        return self._inner.identify(self._store._key(key), version)

    def paths(self, keys: Sequence[str]) -> FilePaths | None:
        if type(self).open is not WrappedFiles.open:
            return None
        return self._inner.paths([self._store._key(key) for key in keys])

    def path_form(self, form: str) -> PathForm | None:
        if type(self).open is not WrappedFiles.open:
            return None
        inner = self._store._key(form)
        if not inner.endswith(form) or "%" in inner[: -len(form)]:
            return None
        return self._inner.path_form(inner)


@public("zardine.storage")
class WrapperStore(Store):
    """Passes every call on to another store: the base of wrappers, which override what they change.

    A wrapper that only renames overrides :meth:`_inward` and :meth:`_outward`, which are given keys and prefixes that
    are well formed. Itself, this class is the other store made read-only, or the same.
    """

    files_class: ClassVar[type[WrappedFiles]] = WrappedFiles
    """What :attr:`files` is made of, for wrappers that want to see what is opened or edited."""

    def __class_getitem__(cls, store_class: object) -> GenericAlias:
        """Return the class itself for ``WrapperStore[SomeStore]``, which programs for zarr-python derive from."""
        return GenericAlias(cls, store_class)

    def __init__(self, store: Store, *, read_only: bool = False) -> None:
        super().__init__(read_only=read_only)
        self._store = store

    @property
    def store(self) -> Store:
        """The store that does the work."""
        return self._store

    @property
    def read_only(self) -> bool:
        return self._read_only or self._store.read_only

    def with_read_only(self, read_only: bool = False) -> Self:
        twin = super().with_read_only(read_only)
        twin._store = self._store.with_read_only(read_only)
        return twin

    def _inward(self, name: str) -> str:
        """The inner store's name of a key or prefix."""
        return name

    def _outward(self, name: str) -> str:
        """Our name of a key or prefix of the inner store; the reverse of :meth:`_inward`."""
        return name

    def _key(self, key: str) -> str:
        return self._inward(check_key(key))

    def _prefix(self, prefix: str) -> str:
        return self._inward(check_prefix(prefix))

    # readable

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        return self._store.read(self._key(key), ranges)

    def read_up_to(self, key: str, most: int) -> Reading | None:
        if type(self).read is not WrapperStore.read:  # a subclass wants to see what is read
            return super().read_up_to(key, most)
        return self._store.read_up_to(self._key(key), most)

    def read_small(self, keys: Iterable[str], most: int) -> Iterator[BytesLike | None]:
        kind = type(self)
        if kind.read is not WrapperStore.read or kind.read_up_to is not WrapperStore.read_up_to:
            return super().read_small(keys, most)
        return self._store.read_small(map(self._key, keys), most)

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange]]) -> list[BytesLike | None]:
        return self._store.get_partial_values([(self._key(key), wanted) for key, wanted in key_ranges])

    def exists(self, key: str) -> bool:
        return self._store.exists(self._key(key))

    def size(self, key: str) -> int | None:
        return self._store.size(self._key(key))

    def version(self, key: str) -> Version | None:
        return self._store.version(self._key(key))

    def is_unchanged(self, key: str, version: Version | None) -> bool:
        return self._store.is_unchanged(self._key(key), version)

    def version_of_names(self, prefix: str) -> Version | None:
        return self._store.version_of_names(self._prefix(prefix))

    @property
    def has_cheap_looks(self) -> bool:
        return self._store.has_cheap_looks

    # writeable

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        inner = self._key(key)
        self._check_writable()
        return self._store.set(inner, value, condition=condition)

    def accept_races(self, key: str, *, strict: bool = False) -> None:
        self._store.accept_races(self._key(key), strict=strict)

    def new_value(self, key: str) -> AbstractContextManager[NewValue]:
        inner = self._key(key)
        self._check_writable()
        if type(self).set is not WrapperStore.set:  # a subclass wants to see what is set
            return super().new_value(key)
        return self._store.new_value(inner)

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, BytesLike]]) -> None:
        self._check_writable()
        self._store.set_partial_values([(self._key(key), start, value) for key, start, value in key_start_values])

    def erase(self, key: str) -> None:
        inner = self._key(key)
        self._check_writable("erase from")
        self._store.erase(inner)

    def erase_version(self, key: str, version: Version | None) -> None:
        inner = self._key(key)
        self._check_writable("erase from")
        self._store.erase_version(inner, version)

    def erase_values(self, keys: Iterable[str]) -> None:
        self._check_writable("erase from")
        self._store.erase_values([self._key(key) for key in keys])

    def erase_prefix(self, prefix: str) -> None:
        inner = self._prefix(prefix)
        self._check_writable("erase from")
        self._store.erase_prefix(inner)

    # listable

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return map(self._outward, self._store.list_prefix(self._prefix(prefix)))

    def list_versions(self, prefix: str) -> Iterator[tuple[str, Version | None]] | None:
        found = self._store.list_versions(self._prefix(prefix))
        return None if found is None else ((self._outward(key), version) for key, version in found)

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        keys, prefixes = self._store.list_dir(self._prefix(prefix))
        return list(map(self._outward, keys)), list(map(self._outward, prefixes))

    @property
    def supports_listing(self) -> bool:
        return self._store.supports_listing

    # the rest

    def lock(self, key: str) -> AbstractContextManager[object]:
        return self._store.lock(self._key(key))

    def writer(self, prefix: str) -> AbstractContextManager[bool]:
        return self._store.writer(self._prefix(prefix))

    def wait_for_writers(self, prefix: str) -> bool:
        return self._store.wait_for_writers(self._prefix(prefix))

    def without_writers(self, prefix: str) -> AbstractContextManager[bool]:
        if type(self).wait_for_writers is not WrapperStore.wait_for_writers:  # a subclass knows of other writers
            return Store.without_writers(self, prefix)
        return self._store.without_writers(self._prefix(prefix))

    @property
    def cost(self) -> ReadCost:
        return self._store.cost

    @property
    def erased_together(self) -> int:
        return self._store.erased_together

    @property
    def files(self) -> WrappedFiles | None:
        files = self._store.files
        return None if files is None else self.files_class(self, files)

    @property
    def lock_is_exclusive(self) -> bool:
        return self._store.lock_is_exclusive

    def is_locked(self, key: str) -> bool:
        return self._store.is_locked(self._key(key))

    @property
    def origin(self) -> tuple[str, str, str] | None:
        return self._store.origin

    def beneath(self, path: str) -> tuple[Store, str]:
        return self._store.beneath(self._inward(path).strip("/"))

    @property
    def meter(self) -> RequestMeter | None:
        return self._store.meter

    def faults(self) -> Iterator[str]:
        return self._store.faults()

    @property
    def is_foreign(self) -> bool:
        return self._store.is_foreign

    def remarks(self, prefix: str = "") -> Iterator[tuple[str, str]]:
        return ((self._outward(name), what) for name, what in self._store.remarks(self._prefix(prefix)))

    def left_out(self, prefix: str = "") -> Iterator[tuple[str, str]]:
        return ((self._outward(name), what) for name, what in self._store.left_out(self._prefix(prefix)))

    def leftovers(self, older_than: float = 3600.0) -> Iterator[str]:
        return self._store.leftovers(older_than)

    def remove_leftovers(self, older_than: float = 3600.0) -> int:
        self._check_writable("clean up")
        return self._store.remove_leftovers(older_than)

    def close(self) -> None:
        self._store.close()

    def __str__(self) -> str:
        return str(self._store)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        """What equal wrappers have equal."""
        return self._store, self.read_only


__all__ = ["WrappedFiles", "WrapperStore"]
