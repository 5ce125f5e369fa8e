"""Whatever fsspec can reach, for places that no store of ours knows."""

from __future__ import annotations

import errno
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final, NoReturn
from urllib.parse import quote, unquote

from zardine.buffers import BytesLike
from zardine.errors import ConditionFailedError, StoreError, UnsupportedError
from zardine.public_names import public
from zardine.shown_text import mask_error, without_secrets
from zardine.stores.attempts import LOOKS
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
    resolve_range,
)
from zardine.stores.extras import need
from zardine.stores.fsspec.filesystems import (
    forget_listings,
    has_buckets,
    is_busy,
    is_inline,
    is_no_reference,
    is_reference,
    is_rooted,
    is_url,
    is_without_bucket,
    keeps_copies,
    missing_package,
    names_of,
    number_of,
    origin_of,
    place_of,
    shown,
    unwrapped,
    what_failed,
)
from zardine.stores.locks import KeyedLock
from zardine.stores.object.client import concurrently
from zardine.stores.pace import Turns, turns_of
from zardine.stores.this_process import Ticket, check_own, process_name

_REMOTE: Final = ReadCost(latency=0.05, bandwidth=5e7)
_NEAR: Final = ReadCost(latency=1e-4, bandwidth=1e9, requests=2)
_MEMORY: Final = "memory"
_LOCAL: Final = ("file", "local", _MEMORY, "zip", "tar")
_RENAMING: Final = ("file", "local", "sftp", "ssh")
_DIRECTORIES: Final = (*_RENAMING, _MEMORY, "smb", "hdfs", "ftp")
_TEMPORARY: Final = ".zardine-unfinished-"
_WRITES: Final = 100
"""How often a write is tried whose directory others erase meanwhile."""
_MISSING: Final = (FileNotFoundError, NotADirectoryError, IsADirectoryError, KeyError)
_TOKENS: Final = (
    "ETag",
    "etag",
    "e_tag",
    "sha",
    "mtime",
    "LastModified",
    "last_modified",
    "updated",
    "modified",
    "created",
)


@public("zardine.storage")
class FsspecStore(Store):
    """Keys as files below ``path`` of an fsspec filesystem: ``FsspecStore(fsspec.filesystem("sftp", ...), "/data")``.

    fsspec has no conditional writes and no reads of one version: versions are what its ``info`` tells (an ETag, or time
    and size), asked for before and after each read of ranges, and writes of several processes may undo each other; the
    first conditional write warns. Threads of this process exclude each other. For S3, Google Cloud Storage, Azure and
    HTTP the stores behind their URLs are faster and promise more. Over HTTP the ``path`` is a percent-encoded URL, and
    the store encodes the keys. A filesystem in memory cannot be pickled into another process, as
    :class:`~zardine.storage.MemoryStore` cannot. How many requests go at a time is measured for each bucket or server,
    together with those of the stores behind URLs.

    The filesystem's cache of listings (its ``dircache``) is switched off: it would hide what others write. One that
    keeps copies of files and does not ask whether they changed (``simplecache`` and its like) is only read from.
    Without a ``path`` the root of the filesystem is meant, all that it reaches: that has to be ``read_only``, else
    :class:`~zardine.errors.StoreError` is raised.
    """

    def __init__(self, fs: Any, path: str = "", *, read_only: bool = False) -> None:
        spec = need("fsspec.spec", "an fsspec filesystem")
        if not isinstance(fs, spec.AbstractFileSystem):
            raise TypeError(f"an FsspecStore is made of an fsspec filesystem, not {type(fs).__name__}")
        fs, path = unwrapped(fs, path)
        unnamed = not path and not is_rooted(fs)
        if unnamed and not read_only:
            raise StoreError(
                f"the filesystem {type(fs).__name__} stands for all that it reaches: name a directory of it, as in "
                "open(filesystem, path='bucket/data.zarr') or FsspecStore(filesystem, 'bucket/data.zarr')"
            )
        self._never_written = unnamed or keeps_copies(fs)
        super().__init__(read_only=read_only or self._never_written)
        forget_listings(fs)
        self._fs = fs
        self._path = str(fs._strip_protocol(path) if path else fs.root_marker).rstrip("/")
        self._has_urls = is_url(self._path)
        is_near = bool(set(names_of(fs)) & set(_LOCAL))
        self._cost = _NEAR if is_near else replace(_REMOTE, waiting=_REMOTE.requests // 2)
        self._place = None if is_near else place_of(fs, self._path)
        self._warned = False
        self._process = process_name()

    @classmethod
    def from_url(
        cls, url: str, *, storage_options: Mapping[str, Any] | None = None, read_only: bool = False
    ) -> FsspecStore:
        """The store of a URL, or of a chain of them; ``storage_options`` go to fsspec as they are."""
        printed = without_secrets(url)
        core = need("fsspec.core", f"{printed!r}")
        try:
            fs, path = core.url_to_fs(url, **(storage_options or {}))
        except Exception as error:
            mask_error(error)
            if isinstance(error, ImportError):
                raise UnsupportedError(missing_package(printed, error)) from None
            if isinstance(error, TypeError):
                raise TypeError(f"{printed!r} cannot be opened with these storage_options: {error}") from None
            kind = "" if isinstance(error, (OSError, ValueError)) and str(error) else f"{type(error).__name__}: "
            raise StoreError(f"{printed!r} cannot be opened: {kind}{error}") from None
        return cls(fs, path, read_only=read_only or not path)

    @classmethod
    def from_mapper(cls, mapper: Any) -> FsspecStore:
        """The store over the same files as ``fsspec.get_mapper(...)``."""
        return cls(mapper.fs, mapper.root)

    def with_read_only(self, read_only: bool = False) -> FsspecStore:
        return super().with_read_only(read_only or self._never_written)

    @property
    def fs(self) -> Any:
        """The fsspec filesystem."""
        return self._fs

    @property
    def path(self) -> str:
        """The directory that all keys lie below."""
        return self._path

    @property
    def origin(self) -> tuple[str, str, str] | None:
        """Where the buckets are, as :attr:`ObjectStore.origin` says it; ``None`` of what has none."""
        return origin_of(self._fs)

    # readable

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        name = self._name(check_key(key))
        try:
            for _ in range(LOOKS):
                info = self._info(name)
                if info is None:
                    return None
                version, size = _version(info), int(info["size"])
                spans = [resolve_range(each, size) for each in ranges]
                if any(span == (0, size) for span in spans):
                    # whole, so of one version: of this one, or a newer one
                    data = memoryview(self._ask(self._fs.cat_file, name, nbytes=size))
                    spans = [resolve_range(each, len(data)) for each in ranges]
                    return Reading(tuple(data[start:stop] for start, stop in spans), version, len(data))
                parts = self._parts_of(name, spans)
                whole = all(len(part) == stop - start for part, (start, stop) in zip(parts, spans, strict=True))
                if not any(stop > start for start, stop in spans):
                    return Reading(tuple(parts), version, size)
                after = self._info(name)
                if whole and after is not None and (_version(after), int(after["size"])) == (version, size):
                    return Reading(tuple(parts), version, size)
        except _MISSING as error:
            self._fail_without_bucket("read", key, error)
            return None
        except Exception as error:
            self._fail("read", key, error)
        raise StoreError(f"cannot read key {key!r} of {self}: it changed during each of {LOOKS} tries")

    def _parts_of(self, name: str, spans: Sequence[tuple[int, int]]) -> list[BytesLike]:
        """Return some bytes of a file; each part is a request, and elsewhere than here all go at the same time."""

        def part(span: tuple[int, int]) -> BytesLike:
            start, stop = span
            if stop == start:
                return b""
            found: BytesLike = self._ask(self._fs.cat_file, name, start=start, end=stop, nbytes=stop - start)
            return found

        return list(map(part, spans)) if self._place is None else concurrently(part, spans)

    def _ask(self, method: Callable[..., Any], *args: Any, nbytes: int | None = 0, **more: Any) -> Any:
        """Return what a method of the filesystem gives, which is a request: when its turn has come.

        ``FileNotFoundError`` is raised where a file is not there, and not for other failures that are called so.

        ``nbytes``: that are asked for, or sent; ``None``: as many as come. What is on this machine takes no turns.
        """
        if self._place is None:
            return method(*args, **more)
        with self._turns.turn(nbytes, is_busy) as turn:
            try:
                found = method(*args, **more)
            except FileNotFoundError as error:
                raise what_failed(error) from None
            if nbytes is None:
                turn.nbytes = len(found)
            if isinstance(found, bytes):
                turn.answered = len(found)
            return found

    def _info(self, name: str) -> Mapping[str, Any] | None:
        info = self._entry(name)
        if info is None or info.get("type") == "directory":
            return None
        if info.get("size") is None or is_inline(self._fs, name):
            data = self._ask(self._fs.cat_file, name, nbytes=None)
            return {**info, "size": len(data)}
        return info

    def _entry(self, name: str) -> Mapping[str, Any] | None:
        """Return what the filesystem says of a file or directory; ``None`` if there is none."""
        if is_no_reference(self._fs, name):
            return None
        try:
            info: Mapping[str, Any] = self._ask(self._fs.info, name)
        except _MISSING as error:
            if is_without_bucket(error):
                raise
            mask_error(error)
            if is_reference(self._fs, name):
                raise StoreError(f"{name!r} of {self} refers to a file that is missing: {error}") from error
            return None
        return info

    @property
    def cost(self) -> ReadCost:
        if self._place is not None:
            turns = self._turns
            self._cost = self._cost.as_measured(turns.limit, turns.spare)
        return self._cost

    @property
    def _turns(self) -> Turns:
        """Those of all who ask the same bucket or server."""
        return turns_of(self._place, _REMOTE.gap, may_be_small=names_of(self._fs)[0] in ("http", "https"))

    # writeable

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        name = self._name(check_key(key))
        self._check_writable()
        data = bytes(flat_bytes(value))
        with self.lock(key):
            try:
                if condition is not None:
                    self.accept_races(key)
                    info = self._info(name)
                    if (None if info is None else _version(info)) != condition.version:
                        raise ConditionFailedError(
                            f"key {key!r} of {self} changed since it was read; nothing was written"
                        )
                self._put(name, data)
                info = self._info(name)
                return None if info is None else _version(info)
            except ConditionFailedError:
                raise
            except Exception as error:
                self._fail("write", key, error)

    def _put(self, name: str, data: bytes) -> None:
        """Write a file, where the filesystem renames in one step by way of a temporary one."""
        parent = name.rpartition("/")[0]
        renames = set(names_of(self._fs)) & set(_RENAMING)
        place = f"{parent}/{_TEMPORARY}{uuid.uuid4().hex}" if renames else name
        for attempt in range(_WRITES):
            try:
                if parent and not has_buckets(self._fs):
                    self._ask(self._fs.makedirs, parent, exist_ok=True)
                self._ask(self._fs.pipe_file, place, data, nbytes=len(data))
                if renames:
                    if self._ask(self._fs.isdir, name):
                        self._ask(self._fs.rmdir, name)  # of a prefix that has no keys any more
                    self._ask(self._fs.mv, place, name)
            except (FileNotFoundError, FileExistsError):  # the directory was erased meanwhile
                if attempt + 1 == _WRITES or has_buckets(self._fs):
                    raise
            else:
                return

    def erase(self, key: str) -> None:
        name = self._name(check_key(key))
        self._check_writable("erase from")
        try:
            entry = self._entry(name)
            if entry is not None and entry.get("type") != "directory":
                self._ask(self._fs.rm_file, name)
                self._remove_empty(name)
            elif entry is not None and self._has_directories() and next(self.list_prefix(f"{key}/"), None) is not None:
                raise StoreError(f"cannot erase key {key!r} of {self}: it is a prefix of other keys (a directory)")
        except _MISSING as error:
            self._fail_without_bucket("erase", key, error)
        except Exception as error:
            self._fail("erase", key, error)

    def _has_directories(self) -> bool:
        """Return whether a directory is a thing of its own in the filesystem, which cannot be a value as well."""
        return bool(set(names_of(self._fs)) & set(_DIRECTORIES))

    def _remove_empty(self, name: str) -> None:
        """Remove directories that hold nothing any more, where the filesystem has such."""
        if not self._has_directories():
            return
        above = name.rpartition("/")[0]
        while len(above) > len(self._path):
            try:
                self._ask(self._fs.rmdir, above)
            except Exception:
                return
            above = above.rpartition("/")[0]

    def erase_values(self, keys: Iterable[str]) -> None:
        self._check_writable("erase from")
        for key in [check_key(key) for key in keys]:
            self.erase(key)

    # listable

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        """As in :class:`Store`; directories without files below them are left out."""
        check_prefix(prefix)
        keys, folders = self._entries(prefix)
        return keys, [folder for folder in folders if next(self.list_prefix(folder), None) is not None]

    def is_empty(self, prefix: str = "") -> bool:
        path = prefix.strip("/")
        return next(self.list_prefix(f"{path}/" if path else ""), None) is None  # the first file says so

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        keys, folders = self._entries(prefix)
        for each in sorted(keys + folders):
            if each.endswith("/"):
                yield from self.list_prefix(each)
            else:
                yield each

    def _entries(self, prefix: str) -> tuple[list[str], list[str]]:
        above = self._name(prefix[:-1]) if prefix else self._path
        try:
            self._fs.invalidate_cache()  # what it keeps without a dircache
            found = self._ask(self._fs.ls, above, detail=True)
        except _MISSING as error:
            self._fail_without_bucket("list", prefix, error)
            return [], []
        except Exception as error:
            self._fail("list", prefix, error)
        keys, folders = set(), set()
        for each in found:
            name = str(each["name"]).rstrip("/")
            if name.strip("/") == above.strip("/") or name == ".":  # as some archives call their root
                continue
            last = name.rpartition("/")[2]
            if self._has_urls:
                if "?" in last or "#" in last:  # the links that sort a page of files
                    continue
                last = unquote(last)
            key = prefix + last
            if _TEMPORARY in key:
                continue
            if each.get("type") == "directory":
                folders.add(f"{key}/")
            else:
                keys.add(key)
        return sorted(keys), sorted(folders)

    # the rest

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Excludes threads of this process that lock the same key of an equal store."""
        return KeyedLock((str(self), check_key(key)))

    def _name(self, key: str) -> str:
        if self._has_urls:
            key = quote(key, safe="/~")
        return f"{self._path}/{key}" if self._path else key

    def accept_races(self, key: str, *, strict: bool = False) -> None:
        """Warn once. These filesystems never have conditional writes, so that ``strict`` makes no difference."""
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{self} has no conditional writes: updates may be lost where several processes or machines write to "
                "the same chunk, shard or metadata document; the threads of this process exclude each other",
                stacklevel=3,
            )

    def _fail_without_bucket(self, what: str, key: str, error: Exception) -> None:
        nowhere = what == "write" and isinstance(error, FileNotFoundError) and has_buckets(self._fs)
        if nowhere or is_without_bucket(error):
            mask_error(error)
            raise StoreError(
                f"cannot {what} key {key!r} of {self}: there is no such bucket or container; create it first, or "
                "correct its name"
            ) from error

    def _fail(self, what: str, key: str, error: Exception) -> NoReturn:
        mask_error(error)
        if isinstance(error, StoreError):
            raise error
        self._fail_without_bucket(what, key, error)
        if isinstance(error, NotImplementedError):
            raise UnsupportedError(f"cannot {what} key {key!r} of {self}: this filesystem cannot do that") from error
        failure = StoreError(f"cannot {what} key {key!r} of {self}: {type(error).__name__}: {error}")
        if isinstance(error, PermissionError) and has_buckets(self._fs):
            failure.errno = errno.EACCES  # for all that is not there, too, without the right to list
        raise failure from error

    @property
    def unique_name(self) -> str:
        return f"{number_of(self._fs)} {shown(self._fs, self._path)}"  # what service it is may not be told by its text

    def __str__(self) -> str:
        return without_secrets(shown(self._fs, self._path))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FsspecStore) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((self._path, self.read_only))

    def _check_writable(self, what: str = "write to") -> None:
        super()._check_writable(what)
        if self._in_memory():
            check_own(self._process, self)

    def _in_memory(self) -> bool:
        return _MEMORY in names_of(self._fs)

    def __getstate__(self) -> dict[str, Any]:
        if not self._in_memory():
            return self.__dict__
        check_own(self._process, self)
        return {**self.__dict__, "_ticket": Ticket(f"what is stored at {self}")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.pop("_ticket", None)
        self.__dict__.update(state, _process=process_name())
        forget_listings(self._fs)  # it may have been made anew

    def _parts(self) -> tuple[object, ...]:
        return self._fs, self._path, self.read_only


def known_scheme(scheme: str) -> bool:
    """Whether fsspec has a filesystem for URLs of this scheme. :class:`UnsupportedError` if it is not installed."""
    registry = need("fsspec.registry", f"the URL scheme {scheme!r}")
    return scheme in registry.known_implementations or scheme in registry.registry


def _version(info: Mapping[str, Any]) -> Version | None:
    """A token out of what ``info`` tells; nothing where it tells no more than the size."""
    found = next((str(info[name]) for name in _TOKENS if info.get(name)), None)
    return None if found is None else f"{found}-{info['size']}"


__all__ = ["FsspecStore", "known_scheme"]
