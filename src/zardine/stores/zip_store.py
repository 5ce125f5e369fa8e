"""Values as the entries of a zip archive ("Zip store" of zarr-python; no specification of its own)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NoReturn, Self

from zardine.buffers import BytesLike
from zardine.errors import ConditionFailedError, StoreError, UnsupportedError
from zardine.stores.base import (
    WHOLE,
    ByteRange,
    Condition,
    ReadCost,
    Reading,
    Store,
    Version,
    check_key,
    check_prefix,
    flat_bytes,
)
from zardine.stores.keyed_lock import KeyedLock
from zardine.stores.sorted_names import directly_below, names_below
from zardine.stores.zip_archive import ZipArchive, shared_archive
from zardine.stores.zip_directory import ZipDirectory
from zardine.stores.zip_file import ValueBytes

_COST: Final = ReadCost(latency=2e-5, bandwidth=2e9, requests=1)


class ZipStore(Store):
    """Keys as entries of the archive at ``path``, which need not exist yet.

    Entries are stored, not compressed (Zarr's chunks are already), so that shards are read by ranges; compressed ones
    that others wrote are read whole. New entries are added at the end: one that is replaced or erased is not seen any
    more, and takes room until :meth:`compact`. The archive is one for other programs after :meth:`flush` or
    :meth:`close`, which also happens when the store is no longer used, or when the program ends. A writer that is
    killed before leaves what was flushed last.

    Any number of threads may read and write; conditional writes hold between them. One process at a time may write
    (others get :class:`~zardine.errors.StoreError`); what it flushes others see when they open the archive again.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        super().__init__(read_only=read_only)
        self._path = os.path.abspath(os.fspath(path))
        if os.path.isdir(self._path):
            raise StoreError(f"{self._path!r} is a directory, not a zip archive")
        self._archive: ZipArchive | None = shared_archive(self._path)
        self._remote: tuple[Store, str] | None = None
        self._directory: ZipDirectory | None = None

    @classmethod
    def inside(cls, store: Store, key: str) -> ZipStore:
        """The archive that is the value of ``key``, read by ranges; read-only. It is read as it is now."""
        self = object.__new__(cls)
        Store.__init__(self, read_only=True)
        try:
            data = ValueBytes(store, key)
        except FileNotFoundError:
            raise StoreError(f"there is no zip archive {key!r} in {store}") from None
        self._path, self._archive, self._remote = "", None, (store, key)
        self._directory = ZipDirectory(data, str(self))
        return self

    @property
    def path(self) -> str:
        """The path of the archive, absolute; empty if it is not in a local file."""
        return self._path

    def with_read_only(self, read_only: bool = False) -> Self:
        if self._archive is None:
            return self
        return super().with_read_only(read_only)

    # readable

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        directory = self._found()
        info = None if directory is None else directory.entries.get(check_key(key))
        if directory is None or info is None:
            check_key(key)
            return None
        return directory.read(key, info, ranges)

    @property
    def cost(self) -> ReadCost:
        return _COST if self._remote is None else self._remote[0].cost

    # writeable

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        check_key(key)
        self._check_writable()
        data = flat_bytes(value)
        archive = self._local()
        with archive.lock:
            if condition is not None and self.version(key) != condition.version:
                raise ConditionFailedError(f"key {key!r} of {self} changed since it was read; nothing was written")
            info = archive.add(key, data)
            assert archive.directory is not None
            return archive.directory.version(info)

    def erase(self, key: str) -> None:
        self.erase_values((key,))

    def erase_values(self, keys: Iterable[str]) -> None:
        self._check_writable("erase from")
        self._local().remove([check_key(key) for key in keys])

    def erase_prefix(self, prefix: str) -> None:
        check_prefix(prefix)
        self._check_writable("erase from")
        archive = self._local()
        with archive.lock:
            archive.remove(list(names_below(archive.names(), prefix)))

    def flush(self) -> None:
        """Write the directory of the archive, so that other programs can read what was written so far."""
        if self._archive is not None:
            self._archive.flush()

    def compact(self) -> int:
        """Rewrite the archive without what was replaced or erased; gives the bytes saved."""
        self._check_writable("compact")
        return self._local().compact()

    def close(self) -> None:
        """:meth:`flush`, and let go of the file. A store that is used again opens it anew."""
        if self._archive is not None:
            self._archive.close()

    # listable

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        return iter(tuple(names_below(self._names(), prefix)))

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        check_prefix(prefix)
        return directly_below(self._names(), prefix)

    # the rest

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Excludes threads that lock the same key of any store over this archive."""
        return KeyedLock((str(self), check_key(key)))

    def _found(self) -> ZipDirectory | None:
        archive = self._archive
        if archive is None:
            return self._directory
        if archive.closed:
            archive.load()
        return archive.directory

    def _names(self) -> list[str]:
        directory = self._found()
        if self._archive is not None:
            return self._archive.names()
        return sorted(directory.entries) if directory is not None else []

    def _local(self) -> ZipArchive:
        if self._archive is None:
            self._refuse()
        return self._archive

    def _refuse(self) -> NoReturn:
        raise UnsupportedError(f"{self} is within another store: it can be read, not written")

    def __str__(self) -> str:
        return f"zip://{self._path}" if self._remote is None else f"{self._remote[0]}/{self._remote[1]}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZipStore) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return self._path, self._remote, self.read_only

    def __reduce__(self) -> tuple[Any, ...]:
        if self._remote is not None:
            return ZipStore.inside, self._remote
        self.flush()
        return _rebuild, (type(self), self._path, self._read_only)


def _rebuild(kind: type[ZipStore], path: str, read_only: bool) -> ZipStore:
    return kind(path, read_only=read_only)


__all__ = ["ZipStore"]
