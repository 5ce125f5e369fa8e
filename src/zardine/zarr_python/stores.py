"""From a store of zarr-python to the store of zardine for the same place.

Only exact classes are known: a subclass may do something else when it is read.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np

from zardine.buffers import BytesLike
from zardine.errors import UnsupportedError
from zardine.shown_text import one_line
from zardine.stores.base import Store
from zardine.stores.extras import need
from zardine.stores.local.store import LocalStore
from zardine.stores.memory import MemoryStore
from zardine.stores.object.options import object_options
from zardine.stores.object.urls import object_store_of_url
from zardine.stores.resolve import store_of_object
from zardine.stores.wrappers.prefix import PrefixStore
from zardine.stores.zip.store import ZipStore
from zardine.zarr_python.fallback import UnknownToZardineError

_ZARR: Final = "zarr.storage."


class ZarrMemoryStore(MemoryStore):
    """The mapping of a ``MemoryStore`` of zarr-python, whose values are buffers of zarr-python."""

    def _as_value(self, data: bytes) -> object:
        return need("zarr.core.buffer.cpu", "a store of zarr-python").Buffer.from_bytes(data)

    def _foreign_bytes(self, key: str, value: object) -> BytesLike:
        array = getattr(value, "_data", None)  # a view, where ``to_bytes`` makes a copy
        return super()._foreign_bytes(key, array if isinstance(array, np.ndarray) else value)


def store_of(store: Any) -> Store:
    """Return the store of zardine for the same place as a ``store`` of zarr-python; it is remembered as long as that.

    Raises :class:`UnknownToZardineError`, which says why there is none.
    """
    key = id(store)
    known = _known.get(key)
    if known is not None and known[0]() is store:
        found, root = known[1:]
        if found.read_only == bool(store.read_only) and root == getattr(store, "root", None):  # which move() changes
            return found
    found = _translated(store)
    if found.read_only != bool(store.read_only):
        found = found.with_read_only(bool(store.read_only))
    with suppress(TypeError):  # it cannot be referred to weakly
        _known[key] = weakref.ref(store, lambda _: _known.pop(key, None)), found, getattr(store, "root", None)
    return found


_known: dict[int, tuple[Callable[[], Any], Store, Any]] = {}
"""What stores of zarr-python were translated to, by their ids, and the root that they had then, if any."""


def _translated(store: Any) -> Store:
    kind = type(store)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if not name.startswith(_ZARR):
        raise UnknownToZardineError(f"its store, {name}, is none of zarr-python's own")
    translate = _KINDS.get(kind.__qualname__)
    if translate is None:
        raise UnknownToZardineError(f"its store is a {kind.__qualname__} of zarr-python, which zardine does not know")
    return translate(store)


def _local(store: Any) -> Store:
    return LocalStore(store.root)


def _memory(store: Any) -> Store:
    return ZarrMemoryStore(store._store_dict)


def _managed(store: Any) -> Store:
    found = ZarrMemoryStore(store._store_dict)
    return PrefixStore(found, store.path) if getattr(store, "path", "") else found


def _object(store: Any) -> Store:
    return _checked(store, store.store, "")


def _fsspec(store: Any) -> Store:
    fs = store.fs
    kind = f"{type(fs).__module__}.{type(fs).__qualname__}"
    if kind == "s3fs.core.S3FileSystem" and not fs.storage_args:
        found = _s3(fs._strip_protocol(store.path), fs.storage_options)
        if found is not None:
            return found
    return _checked(store, fs, store.path)


def _s3(path: str, given: Mapping[str, Any]) -> Store | None:
    """The bucket that an s3fs filesystem reads, with conditional writes, which s3fs has not got.

    ``None`` where what was ``given`` leaves open by whose keys, or where it is: s3fs may find these otherwise than we.
    """
    options = {name: value for name, value in given.items() if name not in ("asynchronous", "loop")}
    try:
        said = object_options("s3", options)
        keys = said.config.keys() | {own for name, own in _VARIABLES.items() if os.environ.get(name)}
        is_signed = "access_key_id" in keys or bool(said.config.get("skip_signature"))
        if said.profile or not is_signed or not keys & {"region", "endpoint"} or "?" in path:
            return None
        return object_store_of_url("s3", path, options)
    except (TypeError, ValueError, OSError, UnsupportedError):  # an option that we do not know; obstore is missing
        return None


_VARIABLES: Final = {
    "AWS_ACCESS_KEY_ID": "access_key_id",
    "AWS_DEFAULT_REGION": "region",
    "AWS_ENDPOINT_URL": "endpoint",
    "AWS_ENDPOINT_URL_S3": "endpoint",
}
"""Variables that s3fs reads as we do."""


def _checked(store: Any, thing: Any, path: str) -> Store:
    try:
        found, rest = store_of_object(thing, path)
    except (TypeError, ValueError, OSError) as error:
        raise UnknownToZardineError(f"its store, {one_line(store)}, cannot be used: {error}") from None
    return PrefixStore(found, rest) if rest else found


def _zip(store: Any) -> Store:
    if not store.read_only or getattr(store, "_zmode", "") != "r":
        raise UnknownToZardineError("its store is a ZipStore that zarr-python has open for writing")
    if store.path is None:
        raise UnknownToZardineError("its store is a ZipStore of an open file, not of a path")
    return ZipStore(store.path, mode="r")


def _wrapped(store: Any) -> Store:
    return store_of(store._store)


_KINDS: Final[dict[str, Callable[[Any], Store]]] = {
    "LocalStore": _local,
    "MemoryStore": _memory,
    "ManagedMemoryStore": _managed,
    "ObjectStore": _object,
    "FsspecStore": _fsspec,
    "ZipStore": _zip,
    "WrapperStore": _wrapped,
    "LoggingStore": _wrapped,
}

__all__ = ["ZarrMemoryStore", "store_of"]
