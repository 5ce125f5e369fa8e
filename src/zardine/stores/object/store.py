"""Object stores (S3, Google Cloud Storage, Azure Blob Storage and what speaks like them) by way of obstore."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, ClassVar, Final, NoReturn
from urllib.parse import urlsplit

from zardine.buffers import BytesLike
from zardine.errors import ConditionFailedError, StoreError, UnsupportedError
from zardine.public_names import public
from zardine.shown_text import mask_error
from zardine.stores.attempts import LOOKS
from zardine.stores.base import (
    FAR,
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
from zardine.stores.locks import KeyedLock
from zardine.stores.object.buckets import BucketOptions
from zardine.stores.object.client import ObjectClient, concurrently
from zardine.stores.object.conditions import is_weak, knows_conditions, put_conditionally, version_of
from zardine.stores.object.errors import (
    GivenUp,
    has_no_length,
    has_no_ranges,
    is_missing,
    is_out_of_range,
    is_unsupported,
    region_of,
    translated,
)
from zardine.stores.object.kinds import BUCKETS, SCHEMES, bucket_of, endpoint_of, kind_of, origin_of
from zardine.stores.object_meter import RequestMeter

_NEAR: Final = ReadCost(latency=5e-5, bandwidth=1e9, requests=2)
_INSTEAD: Final = {
    "LocalStore": ": zardine.storage.LocalStore promises more",
    "HTTPStore": ": zardine.storage.HTTPStore.of makes a store of it",
}
_MOST_ERASED: Final = 1000
"""Keys of one call; what of that one request takes, the client knows."""


@public("zardine.storage")
class ObjectStore(Store):
    """Keys as objects of an obstore store: ``ObjectStore(obstore.store.S3Store("bucket", prefix="a.zarr"))``.

    URLs such as ``s3://bucket/a.zarr`` make one. The version of a value is its ETag, or Google's generation;
    the same bytes written again may have the same ETag. Conditional writes are conditional puts, so no update is lost
    between any number of machines. Where the service has none, only threads of this process exclude each other: the
    first such write of a document, or of a whole chunk or shard, warns, and to change a part of one is refused unless
    the setting ``allow_lost_updates`` allows it.

    obstore repeats requests that fail for a passing reason, waiting longer each time, and gives up as its
    ``retry_config`` says. It cannot be used in a process that was forked after its first use: that is an error here.
    """

    _kinds: ClassVar[tuple[str, ...]] = ("S3Store", "GCSStore", "AzureStore", "MemoryStore")

    def __init__(self, store: Any, *, read_only: bool = False, cost: ReadCost | None = None) -> None:
        super().__init__(read_only=read_only)
        kind = kind_of(store)
        if kind is None:
            raise TypeError(f"an ObjectStore is made of a store of the package obstore, not {type(store).__name__}")
        if kind not in self._kinds:
            raise TypeError(f"obstore's {kind} is not supported" + _INSTEAD.get(kind, ""))
        self._set_up(ObjectClient(store, kind), cost)

    def _set_up(self, client: ObjectClient, cost: ReadCost | None) -> None:
        self._client, self._kind = client, client.kind
        self._cost = cost or (_NEAR if self._kind == "MemoryStore" else FAR)
        self._is_measured = cost is None and self._kind != "MemoryStore"
        if self._is_measured:
            self._cost = replace(FAR, waiting=FAR.requests // 2)
        self._token = "version" if self._kind == "GCSStore" else "e_tag"  # what a conditional put there goes by
        self._bucket = (*origin_of(client.inner, self._kind), bucket_of(client.inner, self._kind))
        path = urlsplit(endpoint_of(client.inner, self._kind)).path.strip("/")
        self._bucket_name = "|".join((*self._bucket[:-1], path, self._bucket[-1]))
        self._warned = False

    @property
    def _inner(self) -> Any:
        return self._client.inner

    @property
    def store(self) -> Any:
        """An obstore store of the same place."""
        options, prefix = self._client.options, self._client.prefix
        return self._inner if options is None or not prefix else options.own_client(prefix)

    @property
    def origin(self) -> tuple[str, str, str]:
        """Where the buckets are: scheme, host of the service (empty for the cloud's own), and account."""
        return origin_of(self._inner, self._kind)

    @property
    def meter(self) -> RequestMeter:
        """How many requests this store, and those made of it, have sent."""
        return self._client.meter

    @property
    def cost(self) -> ReadCost:
        if self._is_measured:
            turns = self._client.turns
            self._cost = self._cost.as_measured(turns.limit, turns.spare)
        return self._cost

    # readable

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        check_key(key)
        wanted = tuple(ranges)
        if all(length == 0 and start >= 0 for start, length in wanted):
            found = self._head(key)
            return None if found is None else Reading((b"",) * len(wanted), *found)
        try:
            if len(wanted) == 1:
                return self._read_one(key, wanted[0])
            return self._read_many(key, wanted)
        except _BeyondError:
            return self._read_beyond(key, wanted)
        except _NoRangesError:
            return self._read_without_ranges(key, wanted)

    def read_up_to(self, key: str, most: int) -> Reading | None:
        check_key(key)
        return self._read_one(key, WHOLE, most)

    def _read_one(self, key: str, wanted: ByteRange, most: int | None = None) -> Reading | None:
        start, length = wanted
        options: dict[str, Any] = {}
        if start < 0:
            options["range"] = {"suffix": -start}
        elif length is not None:
            options["range"] = (start, start + length)
        elif start > 0:
            options["range"] = {"offset": start}
        try:
            meta, data = self._client.get(key, most, **options)
        except FileNotFoundError as error:
            self._missing(error, f"read key {key!r}")
            return None
        except Exception as error:
            if options and (has_no_ranges(error) or has_no_length(error)):
                raise _NoRangesError from None
            if options and (is_out_of_range(error) or is_unsupported(error)):  # Azure: no ranges counted from the end
                raise _BeyondError from None
            self._fail(error, f"read key {key!r}")
        if data is None:
            return Reading((), self._version_of(meta), meta["size"])
        first, stop = resolve_range(wanted, meta["size"])
        if len(data) != stop - first:
            raise StoreError(
                f"cannot read key {key!r} of {self}: {stop - first} bytes were announced, {len(data)} came"
            )
        return Reading((data,), self._version_of(meta), meta["size"])

    def _read_many(self, key: str, wanted: Sequence[ByteRange]) -> Reading | None:
        """A request for each range, all at once; if the value changed in between, again in one request."""
        readings = concurrently(lambda each: self._read_one(key, each), [each for each in wanted if each[1] != 0])
        if all(reading is None for reading in readings):
            return None
        found = [reading for reading in readings if reading is not None]
        if len(found) < len(readings) or len({(each.version, each.size) for each in found}) > 1:
            return cut(self._read_one(key, WHOLE), wanted)
        parts = iter(found)
        empty: BytesLike = b""
        return Reading(
            tuple(empty if each[1] == 0 else next(parts).parts[0] for each in wanted), found[0].version, found[0].size
        )

    def _read_beyond(self, key: str, wanted: Sequence[ByteRange]) -> Reading | None:
        """Ranges that the service refuses as they are: by offsets within the size of the value, which is asked for."""
        for _ in range(LOOKS):
            found = self._head(key)
            if found is None:
                return None
            version, size = found
            spans = [resolve_range(each, size) for each in wanted]
            inside = [(start, stop - start) for start, stop in spans if stop > start]
            if not inside:
                return Reading((b"",) * len(wanted), version, size)
            try:
                reading = self._read_one(key, inside[0]) if len(inside) == 1 else self._read_many(key, inside)
            except _BeyondError:
                continue
            if reading is None:
                return None
            if (reading.version, reading.size) == (version, size):
                parts = iter(reading.parts)
                return Reading(tuple(next(parts) if stop > start else b"" for start, stop in spans), version, size)
        return cut(self._read_one(key, WHOLE), wanted)

    def _read_without_ranges(self, key: str, wanted: Sequence[ByteRange]) -> Reading | None:
        """Ranges of a value of which the server gives only the whole (some do if it is empty)."""
        return cut(self._read_one(key, WHOLE), wanted)

    def _head(self, key: str) -> tuple[Version | None, int] | None:
        try:
            meta = self._client.head(key)
        except FileNotFoundError as error:
            self._missing(error, f"read key {key!r}")
            return None
        except Exception as error:
            self._fail(error, f"read key {key!r}")
        return self._version_of(meta), int(meta["size"])

    def _version_of(self, meta: Any) -> Version | None:
        return version_of(meta, self._token)

    # writeable

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        check_key(key)
        self._check_writable()
        data = flat_bytes(value)
        if self._kind == "MemoryStore" and not isinstance(data, bytes):
            data = bytes(data)  # it would keep the caller's buffer
        if condition is None:
            return self._put(key, data)
        if knows_conditions(self._bucket) is not False and not is_weak(condition.version):
            with contextlib.suppress(UnsupportedError):
                return self._put_conditionally(key, data, condition)
        self.accept_races(key, strict=condition.strict)
        with self.lock(key):
            found = self._head(key)
            if (None if found is None else found[0]) != condition.version:
                raise ConditionFailedError(f"key {key!r} of {self} changed since it was read; nothing was written")
            return self._put(key, data)

    def accept_races(self, key: str, *, strict: bool = False) -> None:
        """Warn once that there are no conditional writes. Refuse what is ``strict``."""
        lacks = "conditional writes" if knows_conditions(self._bucket) is False else "versions (no strong ETags)"
        if strict:
            raise UnsupportedError(
                f"{self} has no {lacks}, so that changing a part of key {key!r} could undo what another "
                "process or machine writes to it at the same time; nothing was written. Write whole shards or chunks, "
                "or, if nobody else writes to them meanwhile: zardine.config.set({'allow_lost_updates': True})"
            )
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{self} has no {lacks}: updates may be lost where several processes or machines write "
                "to the same chunk, shard or metadata document; the threads of this process exclude each other",
                stacklevel=3,
            )

    def _put(self, key: str, data: BytesLike) -> Version | None:
        try:
            return self._version_of(self._client.put(key, data))
        except Exception as error:
            self._fail(error, f"write key {key!r}", changes=True)

    def _put_conditionally(self, key: str, data: BytesLike, condition: Condition) -> Version | None:
        try:
            return put_conditionally(self._client, key, data, condition.version, self._token, self._bucket)
        except UnsupportedError:
            raise
        except Exception as error:
            self._fail(error, f"write key {key!r}", changes=True, conditional=True)

    def erase(self, key: str) -> None:
        self._check_writable("erase from")
        self._delete([check_key(key)], f"erase key {key!r}")

    def erase_values(self, keys: Iterable[str]) -> None:
        self._check_writable("erase from")
        names = [check_key(key) for key in keys]
        for start in range(0, len(names), _MOST_ERASED):
            self._delete(names[start : start + _MOST_ERASED], "erase keys")

    @property
    def erased_together(self) -> int:
        return self._client.erased_together

    def _delete(self, keys: list[str], what: str) -> None:
        try:
            self._client.delete(keys)
        except FileNotFoundError as error:
            if not is_missing(error):
                self._fail(error, what, changes=True)
            if len(keys) > 1:  # one that was missing stopped the rest
                for key in keys:
                    self._delete([key], what)
        except Exception as error:
            self._fail(error, what, changes=True)

    # listable

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        return (key for key, _ in self._listed(prefix))

    def list_versions(self, prefix: str) -> Iterator[tuple[str, Version | None]] | None:
        check_prefix(prefix)
        return ((key, self._version_of(meta) or meta["e_tag"]) for key, meta in self._listed(prefix))

    def _listed(self, prefix: str) -> Iterator[tuple[str, Any]]:
        """Keys, and what the service tells of their values, a page of it at a time; all these services sort them."""
        try:
            yield from self._client.listed(prefix[:-1] or None)
        except FileNotFoundError as error:
            self._missing(error, f"list what is below {prefix!r}")
        except Exception as error:
            self._fail(error, f"list what is below {prefix!r}")

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        check_prefix(prefix)
        try:
            keys, prefixes = self._client.directory(prefix[:-1] or None)
        except FileNotFoundError as error:
            self._missing(error, f"list what is below {prefix!r}")
            return [], []
        except Exception as error:
            self._fail(error, f"list what is below {prefix!r}")
        return sorted(keys), sorted(f"{each}/" for each in prefixes)

    def is_empty(self, prefix: str = "") -> bool:
        path = prefix.strip("/")
        return next(iter(self.list_prefix(f"{path}/" if path else "")), None) is None  # of the first page alone

    # the rest

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Excludes threads of this process that lock the same key of an equal store."""
        check_key(key)
        return KeyedLock((str(self), key))

    @property
    def unique_name(self) -> str:
        if self._kind not in BUCKETS:
            return super().unique_name  # where one in memory was that is gone, another may be
        prefix = self._client.prefix.strip("/")
        return f"{self._bucket_name}/{prefix}" if prefix else self._bucket_name  # so that a key has one name everywhere

    def __str__(self) -> str:
        inner, prefix = self._inner, self._client.prefix
        config = getattr(inner, "config", None) or {}
        if self._kind == "MemoryStore":
            return f"obstore-memory://{id(inner)}"
        scheme = SCHEMES[self._kind]
        bucket = config.get("bucket") or config.get("container_name")
        return f"{scheme}://{bucket}/{prefix}".rstrip("/")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ObjectStore)
            and self.read_only == other.read_only
            and self._client.prefix == other._client.prefix
            and (self._inner is other._inner or bool(self._inner == other._inner) or self._has_equal_store(other))
        )

    def _has_equal_store(self, other: ObjectStore) -> bool:
        """Whether obstore's stores are equal, of which one is of a whole bucket and the other of a path there."""
        differ = (self._client.options is None) != (other._client.options is None)
        return differ and bool(self.store == other.store)

    def __hash__(self) -> int:
        return hash((str(self), self.read_only))

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return type(self).__qualname__, str(self), self.origin, self.read_only

    def _missing(self, error: FileNotFoundError, what: str) -> None:
        if not is_missing(error):  # the bucket is
            self._fail(error, what)

    def _fail(self, error: Exception, what: str, *, changes: bool = False, conditional: bool = False) -> NoReturn:
        mask_error(error)
        if isinstance(error, StoreError):
            raise error
        cause = error.__cause__ if isinstance(error, GivenUp) else error
        how = {"changes": changes, "conditional": conditional}
        raise translated(error, what, str(self), self._kind, region=self._region, **how) from cause

    def _region(self) -> str:
        return region_of(self._inner.config) if self._kind == "S3Store" else ""


def store_in_bucket(options: BucketOptions, prefix: str) -> ObjectStore:
    """Return the store of a path in a bucket, which shares connections with others there."""
    made = object.__new__(ObjectStore)
    Store.__init__(made)
    made._set_up(ObjectClient.sharing(options, prefix), None)
    return made


class _NoRangesError(Exception):
    """The server answered with the whole value instead of a range."""


class _BeyondError(Exception):
    """A range that the service does not take."""


def cut(whole: Reading | None, wanted: Sequence[ByteRange]) -> Reading | None:
    """Ranges of a value that was read whole."""
    if whole is None:
        return None
    data = memoryview(whole.parts[0])
    spans = [resolve_range(each, whole.size) for each in wanted]
    return Reading(tuple(data[start:stop] for start, stop in spans), whole.version, whole.size)


__all__ = ["ObjectStore", "store_in_bucket"]
