"""Values behind the URLs of a web server, to be read."""

from __future__ import annotations

import re
import time
import warnings
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NoReturn
from urllib.parse import SplitResult, quote, unquote, urlsplit

from zardine.buffers import BytesLike
from zardine.cache import Cache
from zardine.errors import StoreError, UnsupportedError
from zardine.limits import CHUNK, limit_of, too_large
from zardine.public_names import public
from zardine.shown_text import mask_error, without_secrets
from zardine.stores.base import WHOLE, ByteRange, Reading, Store, Version, check_prefix
from zardine.stores.extras import need
from zardine.stores.http.client import HTTPClient
from zardine.stores.http.encodings import asking_as_stored
from zardine.stores.locks import KeyedLock
from zardine.stores.object.buckets import BucketOptions
from zardine.stores.object.kinds import kind_of
from zardine.stores.object.options import object_options
from zardine.stores.object.runtime import RUNTIME
from zardine.stores.object.store import ObjectStore, cut

_KEPT: Final = 256 * 2**20
"""Bytes of whole values that are kept."""


@dataclass(frozen=True, slots=True)
class WholeValue:
    """A value as it was read, and when that was."""

    reading: Reading
    since: float = field(default_factory=time.monotonic)

    @property
    def age(self) -> float:
        """Seconds."""
        return time.monotonic() - self.since


_FRESH: Final = 60.0
"""Seconds for which a whole value is used again where the server cannot be asked whether it is still the same."""


@public("zardine.storage")
class HTTPStore(ObjectStore):
    """What lies below an ``http://`` or ``https://`` URL, by requests for whole values or ranges of them. Read-only.

    The URL is percent-encoded, as everywhere; ``http://user:password@host/`` sends them, and does not show them again.
    The version of a value is its ETag, or else the time of its last change and its size.

    A web server lists nothing (:class:`~zardine.errors.UnsupportedError`), so the members of a group are found only by
    consolidated metadata, or by their paths. From a server that does not give byte ranges, values are read whole, once
    each for a version: a warning says so. If such a server tells no versions either, or refuses HEAD, a value is read
    again after a minute.
    """

    _kinds: ClassVar[tuple[str, ...]] = ("HTTPStore",)

    def __init__(self, url: str, *, storage_options: Mapping[str, Any] | None = None, read_only: bool = True) -> None:
        shown = without_secrets(url).partition("?")[0].partition("#")[0]
        need("obstore.store", f"{shown!r}")
        parts = _parts_of(url)
        if parts is None:
            raise StoreError(f"{shown!r} is not a URL; write special characters of a user's name and password as %XX")
        try:
            user, password = unquote(parts.username or ""), unquote(parts.password or "")
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise StoreError(f"{shown!r} is not an http:// or https:// URL of a server")
            if parts.query or parts.fragment:
                raise StoreError(
                    f"{shown!r}: a store's URL cannot have a query ('?') or fragment ('#'): keys are put after it"
                )
            options = object_options("http", storage_options)
            options.client.setdefault("allow_http", parts.scheme == "http")
            headers = dict(options.client.get("default_headers") or {})
            if user and not any(name.lower() == "authorization" for name in headers):
                headers["Authorization"] = _basic(user, password)
            options.client["default_headers"] = asking_as_stored(headers)
            clean = parts._replace(netloc=parts.netloc.rpartition("@")[2], path=_encoded(parts.path.rstrip("/")))
            path = clean.path[1:]
            above = "" if _is_key(path) else clean.path  # what would not be itself as a key
            server = {"url": clean._replace(path=above).geturl()}
            shared = BucketOptions("HTTPStore", server, options.client, options.retry)
            with RUNTIME:
                self._open(HTTPClient.sharing(shared, "" if above else path))
        except ValueError as error:
            mask_error(error)
            raise StoreError(f"{shown!r} cannot be opened: {error}") from None

    @classmethod
    def of(cls, store: Any) -> HTTPStore:
        """What lies below the URL of an ``obstore.store.HTTPStore``."""
        if kind_of(store) != "HTTPStore":
            raise TypeError(f"an HTTPStore is made of a URL, or of obstore's HTTPStore, not {type(store).__name__}")
        self = object.__new__(cls)
        self._open(HTTPClient(store))
        return self

    def _open(self, client: HTTPClient) -> None:
        Store.__init__(self, read_only=True)
        self._set_up(client, None)
        self._http = client
        self._reads_whole = False
        self._whole: Cache[str, WholeValue] = Cache(_KEPT)

    def with_read_only(self, read_only: bool = False) -> HTTPStore:
        """Itself: there is no other kind."""
        return self

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        if self._reads_whole and any(each != (0, 0) for each in ranges):
            return self._read_without_ranges(key, ranges)
        return super().read(key, ranges)

    def read_up_to(self, key: str, most: int) -> Reading | None:
        if not self._reads_whole:
            return super().read_up_to(key, most)
        reading = self._read_without_ranges(key, (WHOLE,))
        return reading if reading is None or reading.size <= most else Reading((), reading.version, reading.size)

    def _read_without_ranges(self, key: str, wanted: Sequence[ByteRange]) -> Reading | None:
        if not self._reads_whole:
            self._reads_whole = True
            warnings.warn(
                f"the server of {self} does not give byte ranges: whole objects are read for parts of them",
                stacklevel=2,
            )
        with KeyedLock((id(self._whole), key)):  # the first of many threads reads it for all
            known = self._whole.get(key)
            if known is not None and self._is_current(key, known):
                return cut(known.reading, wanted)
            reading = self._read_one(key, WHOLE, limit_of(CHUNK))
            if reading is not None and not reading.parts:
                raise too_large(f"the object at key {key!r}, of which {self} gives no parts,", reading.size, CHUNK)
            if reading is not None:
                self._whole.put(key, WholeValue(reading), reading.size)
        return cut(reading, wanted)

    def _is_current(self, key: str, known: WholeValue) -> bool:
        if known.reading.version is None:
            return known.age < _FRESH
        try:
            meta = self._http.look(key)
        except FileNotFoundError:
            return False
        except Exception as error:
            self._fail(error, f"read key {key!r}")
        if meta is None:
            return known.age < _FRESH
        return self._version_of({"size": known.reading.size, **meta}) == known.reading.version

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

    def list_versions(self, prefix: str) -> None:
        return None

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        self._no_list(check_prefix(prefix))

    @property
    def supports_listing(self) -> bool:
        return False

    def _no_list(self, prefix: str) -> NoReturn:
        raise UnsupportedError(
            f"{self} cannot list what is below {prefix!r}: a web server does not tell. Give the path of an array or "
            "group, or have the one who wrote the data call consolidate_metadata, which lists the members of a group"
        )

    def __str__(self) -> str:
        return without_secrets(self._http.url)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HTTPStore) or self._http.url != other._http.url:
            return False
        return self._inner is other._inner or bool(self.store == other.store)

    __hash__ = ObjectStore.__hash__

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reads_whole": False, "_whole": Cache(_KEPT)}


_is_key: Final = re.compile(r"(?:(?!\.\.?(?:/|$))[A-Za-z0-9._~=+@-]+(?:/(?!$)|$))*").fullmatch
"""Whether a path of a URL is also the key of obstore's that leads there."""


def _parts_of(url: str) -> SplitResult | None:
    """The parts of a URL; ``None`` of what is none. Errors of the standard library quote parts of passwords."""
    try:
        parts = urlsplit(url)
        return parts if parts.port is None or parts.port > 0 else None
    except ValueError:
        return None


def _basic(user: str, password: str) -> str:
    """The value of a header ``Authorization`` for a user with a password."""
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


def _encoded(path: str) -> str:
    """The path of a URL with what may not be in one percent-encoded, and the rest as it is."""
    whole = re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", path)
    return quote(whole, safe="/%:@!$&'()*+,;=~")


__all__ = ["HTTPStore"]
