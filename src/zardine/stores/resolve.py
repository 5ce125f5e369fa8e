"""From whatever names a store to the store and a path in it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, MutableMapping
from functools import lru_cache
from inspect import iscoroutinefunction
from typing import Any, Final, Literal, TypeAlias

from zardine.errors import StoreError, UnsupportedError
from zardine.shown_text import without_secrets
from zardine.stores.base import Store
from zardine.stores.local.store import LocalStore, check_path
from zardine.stores.memory import ManagedMemoryStore, MemoryStore
from zardine.stores.path import StorePath, normalize_path
from zardine.stores.url_text import is_file_uri, path_of_uri

StoreLike: TypeAlias = Store | StorePath | str | os.PathLike[str] | MutableMapping[str, Any] | None
"""What may stand for a store; see :func:`resolve_store`. So may obstore's stores, fsspec's mappers and filesystems."""

Mode: TypeAlias = Literal["r", "r+", "a", "w", "w-"]


def resolve_store(
    store_like: StoreLike = None,
    *,
    path: str = "",
    mode: Mode | None = None,
    read_only: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> tuple[Store, str]:
    """The store that ``store_like`` names, and the path in it (without slashes at its ends).

    - a :class:`Store`, or a :class:`StorePath`: itself;
    - a path, a ``file:`` URI or a ``pathlib.Path``: a :class:`LocalStore`, or a
      :class:`ZipStore` if it ends in ``.zip`` and is no directory;
    - ``zip://path``: a :class:`ZipStore`; ``s3://``, ``gs://``, ``az://``, ``abfs://``: an :class:`ObjectStore`;
      ``http://``, ``https://``: an :class:`HTTPStore`; one of these that
      ends in ``.zip``: the archive there, read-only;
    - any other URL that fsspec knows, a chain of them (``simplecache::s3://bucket/key``), or a mapper of fsspec: an
      :class:`FsspecStore`;
    - a filesystem of fsspec: an :class:`FsspecStore` whose root ``path`` is; without one :class:`StoreError` unless it
      shall only be read;
    - a store of the package obstore: an :class:`ObjectStore`, :class:`HTTPStore` or :class:`LocalStore`;
    - any of these texts, ``::`` and a path: the node of that path in that store;
    - ``memory://``: a new store in memory; ``memory://name/path``: the one of that name in this process;
    - a mapping: a :class:`MemoryStore` over it;
    - ``None``: a new :class:`MemoryStore`.

    ``path`` leads further down. ``read_only``, or ``mode="r"``, gives a store that refuses writes; ``False`` does not
    open one that the caller made read-only. Nothing is created. ``storage_options`` are for stores behind URLs of other
    machines; ``TypeError`` where the store has no use for them. :class:`UnsupportedError` for unknown URL schemes, and
    for packages that are not installed.
    """
    if mode not in (None, "r", "r+", "a", "w", "w-"):
        meant = {"rw": "r+", "wr": "r+", "r+w": "r+", "x": "w-", "rb": "r", "r+b": "r+", "rb+": "r+", "wb": "w"}
        hint = f"; did you mean {meant[str(mode)]!r}?" if str(mode) in meant else ""
        raise ValueError(f"mode must be one of 'r', 'r+', 'a', 'w' and 'w-', not {mode!r}{hint}")
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise TypeError(f"storage_options is a mapping of names to values, not {type(storage_options).__name__}")
    if read_only is None:
        read_only = mode == "r"
    inner = ""
    if isinstance(store_like, str):  # the usual case first
        store, inner = _store_of_text(store_like, storage_options, mode)
        storage_options = None
    elif isinstance(store_like, Store):
        store = store_like
    elif isinstance(store_like, StorePath):
        store, inner = store_like.store, store_like.path
    elif store_like is None:
        store = MemoryStore()
    elif isinstance(store_like, os.PathLike):
        store = _directory(os.fspath(store_like), mode)
    elif iscoroutinefunction(getattr(store_like, "get", None)):
        kind = type(store_like)
        raise TypeError(
            f"{kind.__module__}.{kind.__qualname__} is a store with asynchronous methods: use the one of "
            "zardine.storage for the same place, or its path or URL; stores of other programs (Icechunk) are opened by "
            "zarr-python, for which zardine.zarr_python.enable() makes zardine read and write the chunks"
        )
    elif is_foreign(store_like):
        store, path = store_of_object(store_like, path, read_only=read_only)
    elif isinstance(store_like, MutableMapping):
        store = MemoryStore(store_like)
    else:
        raise TypeError(
            f"a store is a Store, a StorePath, a path, a URL, a mapping, a store of obstore, a mapper or filesystem of "
            f"fsspec, or None, not {type(store_like).__name__}"
        )
    if storage_options:
        _refuse_options(storage_options, store)
    if read_only and not store.read_only:
        store = store.with_read_only(True)
    return store, normalize_path(f"{inner}/{path}") if inner or path else ""


def _store_of_text(text: str, storage_options: Mapping[str, Any] | None, mode: Mode | None) -> tuple[Store, str]:
    inner = ""
    if "::" in text:
        chain = chain_and_node(text)
        if chain is not None:
            return chain_store(chain[0], storage_options), chain[1]
        text, _, inner = text.partition("::")
    scheme = "file" if is_file_uri(text) else _scheme_of(text)
    if scheme not in (None, "file", "memory", "zip"):
        return store_of_url(text, storage_options), inner
    path = inner
    if scheme == "memory":
        name, _, above = text.partition("://")[2].partition("/")
        store: Store = ManagedMemoryStore(name) if name else MemoryStore()
        path = f"{above}/{inner}"
    elif scheme == "zip":
        store = _zip(text.partition("://")[2], mode)
    else:
        store = _directory(path_of_uri(text) if scheme else text, mode)
    if storage_options:
        _refuse_options(storage_options, store)
    return store, path


def _scheme_of(text: str) -> str | None:
    if "://" not in text:
        return None
    return scheme_of(text)


def _directory(path: str, mode: Mode | None) -> Store:
    check_path(path)
    if path.lower().endswith(".zip") and not os.path.isdir(path):
        return _zip(path, mode)
    if not os.access(f"{path}/", os.F_OK) and os.path.isfile(path):  # the first call is the cheaper one
        folder, name = os.path.split(path)
        hint = _HINTS.get(os.path.splitext(path)[1].lower(), _OTHER_FILE)
        if name in _DOCUMENTS:
            hint = f"; it is the document of the array or group at {folder or '.'!r}: give that path"
        raise StoreError(f"{path!r} is a file: a store is a directory{hint}")
    return _known_directory(path) if os.path.isabs(path) else LocalStore(path)


FOREIGN_ENDINGS: Final = (
    ".nc",
    ".nc3",
    ".nc4",
    ".cdf",
    ".netcdf",
    ".h5",
    ".hdf5",
    ".hdf",
    ".he5",
    ".h5ad",
    ".mat",
    ".nxs",
    ".cxi",
)
"""How names of files of HDF5 and NetCDF end."""

_HINTS: Final = {
    ".json": "; a file of references (of kerchunk) is opened as 'reference://', with storage_options={'fo': its path}",
    **dict.fromkeys(
        FOREIGN_ENDINGS,
        "; of HDF5 and NetCDF, zardine.sources.open shows a file as a group, and zardine.convert makes Zarr of it",
    ),
}
"""What else a user may want with a file, by the end of its name."""

_OTHER_FILE: Final = "; give the path of a directory, or of a file that ends in .zip"

_DOCUMENTS: Final = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")

_known_directory: Final = lru_cache(maxsize=64)(LocalStore)
"""Stores of absolute paths, which programs open again and again: nothing in them changes but what they remember."""


def _zip(path: str, mode: Mode | None) -> Store:
    from zardine.stores.zip.store import ZipStore

    if mode in ("r", "r+"):
        return ZipStore(path)
    return ZipStore.to_write(path, anew=mode == "w")


def is_foreign(thing: object) -> bool:
    """Whether something is a store of obstore, or a mapper or filesystem of fsspec."""
    return not isinstance(thing, str) and any(
        isinstance(thing, getattr(module, name))
        for where, name in _FOREIGN
        if (module := sys.modules.get(where)) is not None and hasattr(module, name)
    )


_FOREIGN: Final = (
    ("fsspec.spec", "AbstractFileSystem"),
    ("fsspec.mapping", "FSMap"),
    ("obstore.store", "ObjectStoreMethods"),
)
"""Classes of other packages by their modules, which whoever has such an object has imported."""


def _refuse_options(storage_options: Mapping[str, Any], store: Store) -> None:
    names = ", ".join(map(repr, storage_options))
    raise TypeError(f"storage_options ({names}) have no meaning for {store}: they are for stores behind other URLs")


_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")  # two characters at least: c:// is a drive
_CHAINED: Final = re.compile(r"[a-z][a-z0-9+.\-]+$")
_ARCHIVES: Final = ("zip", "tar", "libarchive")
_ENDINGS: Final = (".zip", ".tar")
_OBJECT: Final = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss")


def scheme_of(text: str) -> str | None:
    """The scheme of a URL, in small letters; ``None`` for a path."""
    found = _SCHEME.match(text)
    return None if found is None else found[1].lower()


def chain_and_node(text: str) -> tuple[str, str] | None:
    """A chain of URLs as fsspec has them (``simplecache::s3://bucket/key``), and the path of a node after it.

    ``None`` for what is no chain, as ``URL::path``. The path of a node is what follows the last URL, but for a path
    that is itself the last link: what an archive in the chain lies in (``simplecache::zip://a.zarr::/data/a.zip``).
    """
    links = text.split("::")
    urls = [place for place, link in enumerate(links) if "://" in link]
    if urls in ([], [0]) and _is_archive_in(links[0], links[1] if len(links) > 1 else ""):
        file = links[1]  # fsspec takes a plain word for a scheme
        file = f"file://{os.path.abspath(file)}" if os.path.isfile(file) else file
        return f"{links[0]}::{file}", "::".join(links[2:])
    if not urls or urls[-1] == 0 or not all(map(_is_link, links[: urls[-1] + 1])):
        return None
    last = urls[-1]
    if last + 1 < len(links) and links[last].partition("://")[0] in _ARCHIVES:
        last += 1
    return "::".join(links[: last + 1]), "::".join(links[last + 1 :])


def _is_archive_in(link: str, file: str) -> bool:
    """Whether the first two links, of which the second is no URL, are a path in an archive and the archive's file.

    So fsspec writes ``zip://::data.zip``, ``zip::data.zip`` and ``zip://raw::data.zip``. The last two are also how we
    write nodes, of the directory ``zip`` and of the archive ``raw``: that is meant if there is such a thing, or if
    ``data.zip`` is neither a file nor the name of an archive.
    """
    kind, separator, inside = link.partition("://")
    if kind.lower() not in _ARCHIVES or not file:
        return False
    if separator and (kind.lower() != "zip" or not inside.strip("/")):
        return True
    if os.path.exists(inside if separator else link):
        return False
    return file.lower().endswith(_ENDINGS) or os.path.isfile(file)


def _is_link(link: str) -> bool:
    return _SCHEME.match(link) is not None or _CHAINED.match(link) is not None


def store_of_url(text: str, storage_options: Mapping[str, Any] | None) -> Store:
    """The store of a URL whose scheme is not ``file`` or ``memory``. :class:`UnsupportedError` if nothing knows it."""
    scheme = scheme_of(text)
    assert scheme is not None
    rest = text.partition("://")[2]
    if rest.rstrip("/").lower().endswith(".zip") and scheme in (*_OBJECT, "http", "https"):
        from zardine.stores.zip.store import ZipStore

        folder, _, name = rest.rstrip("/").rpartition("/")
        if scheme in ("http", "https"):
            from urllib.parse import unquote  # slow to import

            name = unquote(name)  # keys of object stores are written as they are
        return ZipStore.inside(store_of_url(f"{scheme}://{folder}", storage_options), name)
    if scheme in _OBJECT:
        from zardine.stores.object.urls import object_store_of_url

        return object_store_of_url(scheme, rest, storage_options)
    if scheme in ("http", "https"):
        from zardine.stores.http.store import HTTPStore

        return HTTPStore(text, storage_options=storage_options)
    return chain_store(text, storage_options)


def chain_store(text: str, storage_options: Mapping[str, Any] | None) -> Store:
    """The store of any URL that fsspec knows."""
    from zardine.stores.fsspec.store import FsspecStore, known_scheme

    if "::" not in text and not known_scheme(scheme_of(text) or ""):
        raise UnsupportedError(
            f"{without_secrets(text)!r}: there is no store for the URL scheme {scheme_of(text)!r}; known are file, "
            "memory, zip, http, https, s3, gs, az, abfs, and those of the package fsspec"
        )
    return FsspecStore.from_url(text, storage_options=storage_options)


def store_of_object(thing: Any, path: str = "", *, read_only: bool = False) -> tuple[Store, str]:
    """The store that ``thing`` is, and what is left of ``path``, which leads further down.

    A filesystem, of fsspec or of obstore, stands for all that it reaches: there ``path`` is the root of the store, as
    that filesystem reads it. Without one :class:`StoreError` is raised, but where the store shall only be read.
    """
    mapping = sys.modules.get("fsspec.mapping")
    if mapping is not None and isinstance(thing, mapping.FSMap):
        return _of_filesystem(thing.fs, str(thing.root), read_only), path
    filesystems = sys.modules.get("fsspec.spec")
    if filesystems is not None and isinstance(thing, filesystems.AbstractFileSystem):
        from zardine.stores.fsspec.filesystems import is_rooted, unwrapped

        inner, root = unwrapped(thing, "")
        if root or is_rooted(inner):
            return _of_filesystem(inner, root, read_only), path
        return _of_filesystem(inner, path, read_only), ""
    return _of_obstore(thing, path, read_only)


def _of_filesystem(fs: Any, path: str, read_only: bool) -> Store:
    from zardine.stores.fsspec.filesystems import names_of
    from zardine.stores.fsspec.store import FsspecStore

    store = FsspecStore(fs, path, read_only=read_only)
    if "file" not in names_of(store.fs):
        return store
    return LocalStore(store.path or "/", read_only=store.read_only)


def _of_obstore(thing: Any, path: str, read_only: bool) -> tuple[Store, str]:
    from zardine.stores.object.kinds import kind_of

    kind = kind_of(thing)
    if kind == "LocalStore":
        if thing.prefix is not None:
            return LocalStore(str(thing.prefix)), path
        if not path and not read_only:
            raise StoreError(
                "obstore's LocalStore() stands for all files of this machine: name a directory, as in "
                "open('/data/a.zarr')"
            )
        return LocalStore(f"/{path.strip('/')}", read_only=read_only), ""
    if kind == "HTTPStore":
        from zardine.stores.http.store import HTTPStore

        return HTTPStore.of(thing), path
    from zardine.stores.object.store import ObjectStore

    return ObjectStore(thing), path


__all__ = [
    "FOREIGN_ENDINGS",
    "Mode",
    "StoreLike",
    "chain_and_node",
    "chain_store",
    "is_foreign",
    "resolve_store",
    "scheme_of",
    "store_of_object",
    "store_of_url",
]
