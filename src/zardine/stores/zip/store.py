"""Values as the entries of a zip archive ("Zip store" of zarr-python; no specification of its own)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import IO, Any, Literal, Self, TypeAlias

from zardine.buffers import BytesLike
from zardine.errors import NodeExistsError, ReadOnlyError, StoreError, UnsupportedError
from zardine.public_names import public
from zardine.stores.base import (
    FAR,
    NEAR,
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
from zardine.stores.local.store import LocalStore
from zardine.stores.locks import KeyedLock
from zardine.stores.sorted_names import directly_below, names_below
from zardine.stores.zip.archive import ArchiveUse, Replaced, ZipArchive, as_left
from zardine.stores.zip.directory import ZipDirectory
from zardine.stores.zip.file import ArchiveBytes, ObjectBytes, ValueBytes
from zardine.stores.zip.lock import leftovers, remove_leftovers

ZipMode: TypeAlias = Literal["r", "a", "w", "x"]


@public("zardine.storage")
class ZipStore(Store):
    """Keys as entries of the archive at ``path``, which need not exist yet.

    Entries are stored, not compressed (Zarr's chunks are already), so that shards are read by ranges; compressed ones
    that others wrote are read whole. New entries are added at the end: one that is replaced or erased is not seen any
    more, and takes room until :meth:`compact`. The archive is one for other programs after :meth:`flush` or
    :meth:`close`, which also happens when the store is no longer used, or when the program ends.

    A writer that is killed before leaves what was flushed last: an archive that does not end with a directory is read
    as it was when one was written last, with a :class:`~zardine.errors.TornShardWarning`. One without any directory is
    :class:`~zardine.errors.StoreError`.

    ``mode`` is that of zarr-python: ``"r"`` an archive that is there, read-only; ``"w"`` a new one in the place of what
    is there; ``"x"`` a new one where nothing is; ``"a"``, or none, the one that is there or a new one.

    Any number of threads may read and write, compact and close; conditional writes hold between them, and between
    processes. One process at a time may write (others get :class:`~zardine.errors.StoreError`); what it flushes others
    see when they open the archive again. In a forked process, what the other one had not flushed can be read.

    A binary file that is open, local or of fsspec or obstore, can take the place of ``path``: the archive in it is
    read, as it is now, by one thread at a time. Such a store is read-only, cannot be sent to other processes, and
    leaves the file open.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | IO[bytes],
        *,
        mode: ZipMode | None = None,
        read_only: bool | None = None,
    ) -> None:
        if mode not in (None, "r", "a", "w", "x"):
            raise ValueError(f"mode must be one of 'r', 'a', 'w' and 'x', not {mode!r}")
        if hasattr(path, "seek") and not isinstance(path, (str, os.PathLike)):
            if mode not in (None, "r") or read_only is False:
                raise UnsupportedError(
                    f"archives are written to local files only, by their path; from {path!r} one can be read"
                )
            super().__init__(read_only=True)
            self._read_in(path, ObjectBytes(path))
            return
        super().__init__(read_only=mode == "r" if read_only is None else read_only)
        self._open(path, "all files" if mode == "w" else "nothing")
        if mode == "r" and not os.path.exists(self._path):
            raise StoreError(f"there is no zip archive {self._path!r}")
        if mode == "x" and os.path.exists(self._path):
            raise NodeExistsError(f"{self._path!r} is there already: mode='w' replaces it")
        if mode == "w":
            self.erase_prefix("")

    @classmethod
    def to_write(cls, path: str, *, anew: bool) -> Self:
        """Return the archive at ``path``, where an empty file is as good as none; ``anew``: so is any other file.

        Nothing is changed before all of the archive is erased, or it is written to.
        """
        self = object.__new__(cls)
        Store.__init__(self)
        self._open(path, "all files" if anew else "empty files")
        return self

    def _open(self, path: str | os.PathLike[str], replaces: Replaced) -> None:
        self._path = os.path.abspath(os.fspath(path))
        if os.path.isdir(self._path):
            raise StoreError(f"{self._path!r} is a directory, not a zip archive")
        self._use: ArchiveUse | None = ArchiveUse(os.path.realpath(self._path), replaces)
        self._remote: tuple[Store, str] | IO[bytes] | None = None
        self._directory: ZipDirectory | None = None

    def _read_in(self, where: tuple[Store, str] | IO[bytes], data: ArchiveBytes) -> None:
        """Read the directory of an archive that is no local file, as it is now."""
        self._path, self._use, self._remote = "", None, where
        self._directory = as_left(ZipDirectory.of(data, str(self)), data, str(self))

    @classmethod
    def inside(cls, store: Store, key: str) -> ZipStore:
        """The archive that is the value of ``key``, read by ranges; read-only. It is read as it is now."""
        self = object.__new__(cls)
        Store.__init__(self, read_only=True)
        try:
            data = ValueBytes(store, key)
        except FileNotFoundError:
            raise StoreError(
                f"there is no zip archive {key!r} in {store}; one that is there can be read, but archives are only "
                "written to local files"
            ) from None
        self._read_in((store, key), data)
        return self

    @property
    def path(self) -> str:
        """The path of the archive, absolute; empty if it is not in a local file."""
        return self._path

    def with_read_only(self, read_only: bool = False) -> Self:
        if self._use is None:
            return self
        return super().with_read_only(read_only)

    # readable

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        check_key(key)
        directory = self._now()
        info = None if directory is None else directory.find(key)
        return None if directory is None or info is None else directory.read(key, info, ranges)

    def read_up_to(self, key: str, most: int) -> Reading | None:
        check_key(key)
        directory = self._now()
        info = None if directory is None else directory.find(key)
        if directory is None or info is None:
            return None
        if info.file_size > most:
            return Reading((), directory.version(info), info.file_size)
        return directory.read(key, info, (WHOLE,))

    @property
    def cost(self) -> ReadCost:
        if self._remote is None:
            return NEAR
        return self._remote[0].cost if isinstance(self._remote, tuple) else replace(FAR, requests=1)

    # writeable

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        check_key(key)
        self._check_writable()
        return self._archive().add(key, flat_bytes(value), condition)

    def erase(self, key: str) -> None:
        self.erase_values((key,))

    def erase_values(self, keys: Iterable[str]) -> None:
        self._check_writable("erase from")
        wanted = [check_key(key) for key in keys]
        self._archive().remove(lambda directory: [key for key in wanted if directory.may_hold(key)])

    def erase_prefix(self, prefix: str) -> None:
        check_prefix(prefix)
        self._check_writable("erase from")
        if not prefix:
            self._archive().discard()
        self._archive().remove(lambda directory: list(names_below(directory.names(), prefix)))

    def flush(self) -> None:
        """Write the directory of the archive, so that other programs can read what was written so far.

        Raises :class:`~zardine.errors.StoreError`. If the disk was full while the directory was written, it can be
        tried again. If the file system refuses bytes that it took before (the quota of a network file system), or
        another program removed or replaced the file, what was written since the last flush is lost.
        """
        if self._use is not None:
            self._archive().flush()

    def compact(self) -> int:
        """Rewrite the archive without what was replaced or erased; gives the bytes saved.

        The new file takes the place of the old one at once. What threads and processes are reading remains readable;
        no other process can write meanwhile.
        """
        self._check_writable("compact")
        return self._archive().compact()

    def close(self) -> None:
        """:meth:`flush`, and let go of the file. A store that is used again opens it anew."""
        if self._use is not None:
            self._archive().close()

    # listable

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        return iter(tuple(names_below(self._names(), prefix)))

    def list_versions(self, prefix: str) -> Iterator[tuple[str, Version | None]]:
        check_prefix(prefix)
        directory = self._now()
        if directory is None:
            return iter(())
        return iter(
            [
                (key, directory.version(directory.entries[key]) if key in directory.entries else None)
                for key in names_below(directory.names(), prefix)
            ]
        )

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        check_prefix(prefix)
        return directly_below(self._names(), prefix)

    # the rest

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Excludes threads that lock the same key of any store over this archive."""
        return KeyedLock((str(self) if self._use is None else self._use.archive.path, check_key(key)))

    def faults(self) -> Iterator[str]:
        """What is wrong with the archive itself, and with names in it, if anything, for :func:`zardine.verify`."""
        yield from self._torn()
        directory = self._now()
        if directory is not None:
            yield from directory.faults()

    def _torn(self) -> Iterator[str]:
        if self._use is not None:
            torn = self._archive().torn()
        else:
            torn = "" if self._directory is None or self._directory.is_whole else self._directory.torn
        if torn:
            yield torn

    def beneath(self, path: str) -> tuple[Store, str]:
        if self._remote is None:
            return LocalStore(self.path).beneath(path)
        if not isinstance(self._remote, tuple):
            return self, path
        store, key = self._remote
        return store.beneath(f"{key}/{path}".rstrip("/"))

    def leftovers(self, older_than: float = 3600.0) -> Iterator[str]:
        """What writers that were killed have left: unfinished files beside the archive, and an end without directory.

        Files count if they did not change in the last ``older_than`` seconds.
        """
        yield from self._torn()
        if self._use is not None:
            yield from leftovers(self._use.archive.path, older_than)

    def remove_leftovers(self, older_than: float = 3600.0) -> int:
        """Put the :meth:`leftovers` in order; gives their number."""
        self._check_writable("clean up")
        archive = self._archive()
        return archive.mend() + remove_leftovers(archive.path, older_than)

    def _archive(self) -> ZipArchive:
        """That of the path as it is now: another one than before if the file was replaced while it was written to."""
        assert self._use is not None  # else we are read-only
        if not self._use.is_current():
            self._use = ArchiveUse(self._use.archive.path)
        return self._use.archive

    def _now(self) -> ZipDirectory | None:
        return self._directory if self._use is None else self._archive().now()

    def _names(self) -> list[str]:
        if self._use is not None:
            return self._archive().names()
        return [] if self._directory is None else self._directory.names()

    def _check_writable(self, what: str = "write to") -> None:
        if self._remote is not None:
            raise ReadOnlyError(f"cannot {what} {self}: archives are written to local files only, and read elsewhere")
        super()._check_writable(what)

    def __str__(self) -> str:
        if self._remote is None:
            return f"zip://{self._path}"
        if not isinstance(self._remote, tuple):
            return f"zip://{self._remote!r}"
        return f"{str(self._remote[0]).rstrip('/')}/{self._remote[1]}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZipStore) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return self._path, self._remote, self.read_only

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._remote, tuple):
            return ZipStore.inside, self._remote
        if self._remote is not None:
            raise TypeError(f"{self!r} cannot be sent to other processes: its file is open in this one")
        self.flush()
        return _rebuild, (type(self), self._path, self._read_only)


def _rebuild(kind: type[ZipStore], path: str, read_only: bool) -> ZipStore:
    return kind(path, read_only=read_only)


__all__ = ["ZipStore"]
