"""Values behind the URLs of a web server, to be read."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Final, NoReturn
from urllib.parse import quote, unquote, urlsplit

from zardine.buffers import BytesLike
from zardine.errors import StoreError, UnsupportedError
from zardine.stores.base import WHOLE, ByteRange, Reading, Version, check_prefix
from zardine.stores.extras import need
from zardine.stores.object_options import object_options
from zardine.stores.object_runtime import RUNTIME
from zardine.stores.object_store import ObjectStore, cut

_KEPT: Final = 256 * 2**20
"""Bytes of values that are kept where a server gives only whole ones."""


class HTTPStore(ObjectStore):
    """What lies below an ``http://`` or ``https://`` URL, by requests for whole values or ranges of them. Read-only.

    The version of a value is its ETag, or else the time of its last change and its size.

    A web server lists nothing (:class:`~zardine.errors.UnsupportedError`), so the members of a group are found only by
    consolidated metadata, or by their paths. From a server that does not give byte ranges, values are read whole, once
    each for a version: a warning says so.
    """

    def __init__(self, url: str, *, storage_options: Mapping[str, Any] | None = None, read_only: bool = True) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise StoreError(f"{url!r} is not an http:// or https:// URL of a server")
        if parts.query or parts.fragment:
            raise StoreError(
                f"{url!r}: a store's URL cannot have a query ('?') or fragment ('#'): keys are put after it"
            )
        modules = need("obstore.store", f"{url!r}")
        options = object_options("http", storage_options)
        options.client.setdefault("allow_http", parts.scheme == "http")
        clean = parts._replace(path=quote(unquote(parts.path).rstrip("/"))).geturl()
        with RUNTIME:
            inner = modules.HTTPStore.from_url(clean, client_options=options.client, retry_config=options.retry)
        super().__init__(inner, read_only=True)
        self._whole = _WholeValues()

    def with_read_only(self, read_only: bool = False) -> HTTPStore:
        """Itself: there is no other kind."""
        return self

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        if self._whole.needed and any(each != (0, 0) for each in ranges):
            return self._read_without_ranges(key, ranges)
        return super().read(key, ranges)

    def _read_without_ranges(self, key: str, wanted: Sequence[ByteRange]) -> Reading | None:
        if not self._whole.needed:
            self._whole.needed = True
            warnings.warn(
                f"the server of {self} does not give byte ranges: whole objects are read for parts of them",
                stacklevel=2,
            )
        known = self._whole.get(key)
        if known is not None and known.version is not None and self.version(key) == known.version:
            return cut(known, wanted)
        reading = self._read_one(key, WHOLE)
        if reading is not None and reading.version is not None:
            self._whole.put(key, reading)
        return cut(reading, wanted)

    def _version_of(self, meta: Any) -> Version | None:
        version: Version | None = meta["e_tag"]
        if version is None and meta["last_modified"].year > 1971:
            version = f"{meta['last_modified'].isoformat()}-{meta['size']}"
        return version

    def set(self, key: str, value: BytesLike, **_: Any) -> NoReturn:
        super().set(key, value)
        raise AssertionError("a store that is read-only")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        self._no_list(check_prefix(prefix))

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        self._no_list(check_prefix(prefix))

    def _no_list(self, prefix: str) -> NoReturn:
        raise UnsupportedError(
            f"{self} cannot list what is below {prefix!r}: a web server does not tell. Give the path of an array or "
            "group, or have the one who wrote the data call consolidate_metadata, which lists the members of a group"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_whole": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._whole = _WholeValues()


class _WholeValues:
    """Values of a server that gives only whole ones; those read longest ago go first."""

    def __init__(self) -> None:
        self.needed = False
        self._lock = Lock()
        self._values: OrderedDict[str, Reading] = OrderedDict()
        self._size = 0

    def get(self, key: str) -> Reading | None:
        with self._lock:
            return self._values.get(key)

    def put(self, key: str, reading: Reading) -> None:
        with self._lock:
            self._drop(key)
            if reading.size <= _KEPT:
                self._values[key] = reading
                self._size += reading.size
            while self._size > _KEPT:
                self._drop(next(iter(self._values)))

    def _drop(self, key: str) -> None:
        old = self._values.pop(key, None)
        self._size -= 0 if old is None else old.size


__all__ = ["HTTPStore"]
