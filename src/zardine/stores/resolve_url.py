"""Which store a URL means: other than a path, ``file:`` and ``memory:``, each needs what is imported only here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from zardine.errors import UnsupportedError
from zardine.stores.base import Store
from zardine.stores.local import LocalStore

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")  # two characters at least: c:// is a drive
_CHAINED: Final = re.compile(r"[a-z][a-z0-9+.\-]+$")
_OBJECT: Final = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss")


def scheme_of(text: str) -> str | None:
    """The scheme of a URL, in small letters; ``None`` for a path."""
    found = _SCHEME.match(text)
    return None if found is None else found[1].lower()


def is_chain(text: str) -> bool:
    """Whether ``text`` is a chain of URLs as fsspec has them (``simplecache::s3://bucket/key``).

    ``URL::path`` is not: there the last part is the path of a node.
    """
    first, _, rest = text.partition("::")
    return bool(rest) and (_SCHEME.match(rest.rpartition("::")[2]) is not None or _is_protocol(first, rest))


def _is_protocol(first: str, rest: str) -> bool:
    return bool(_CHAINED.match(first)) and "://" in rest


def store_of_url(text: str, storage_options: Mapping[str, Any] | None) -> Store:
    """The store of a URL whose scheme is not ``file`` or ``memory``. :class:`UnsupportedError` if nothing knows it."""
    scheme = scheme_of(text)
    assert scheme is not None
    rest = text.partition("://")[2]
    if rest.rstrip("/").lower().endswith(".zip") and scheme in (*_OBJECT, "http", "https"):
        from zardine.stores.zip_store import ZipStore

        folder, _, name = rest.rstrip("/").rpartition("/")
        return ZipStore.inside(store_of_url(f"{scheme}://{folder}", storage_options), name)
    if scheme in _OBJECT:
        from zardine.stores.object_urls import object_store_of_url

        return object_store_of_url(scheme, rest, storage_options)
    if scheme in ("http", "https"):
        from zardine.stores.http_store import HTTPStore

        return HTTPStore(text, storage_options=storage_options)
    return chain_store(text, storage_options)


def chain_store(text: str, storage_options: Mapping[str, Any] | None) -> Store:
    """The store of any URL that fsspec knows."""
    from zardine.stores.fsspec_store import FsspecStore, known_scheme

    if "::" not in text and not known_scheme(scheme_of(text) or ""):
        raise UnsupportedError(
            f"{text!r}: there is no store for the URL scheme {scheme_of(text)!r}; known are file, memory, zip, http, "
            "https, s3, gs, az, abfs, and those of the package fsspec"
        )
    return FsspecStore.from_url(text, storage_options=storage_options)


def store_of_object(thing: Any) -> Store | None:
    """The store of an object of another library: an obstore store, or an fsspec mapper; ``None`` for anything else."""
    module = type(thing).__module__
    if module.startswith("obstore"):
        if type(thing).__name__ == "LocalStore":
            return LocalStore(str(thing.prefix))
        from zardine.stores.object_store import ObjectStore

        return ObjectStore(thing)
    if module.startswith("fsspec"):
        from zardine.stores.fsspec_store import FsspecStore

        store = FsspecStore.from_mapper(thing)
        if "file" in store.fs.protocol:
            return LocalStore(store.path or "/")
        return store
    return None


__all__ = ["chain_store", "is_chain", "scheme_of", "store_of_object", "store_of_url"]
