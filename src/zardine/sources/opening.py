"""``zardine.sources.open``: which format a file is of, and the store that shows it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from zardine.errors import InvalidKeyError, StoreError, UnsupportedError
from zardine.hierarchy.find import load_node
from zardine.metadata.documents import ArrayMetadata
from zardine.nodes.array import Array
from zardine.nodes.group import Group
from zardine.shown_text import shown as shown_text
from zardine.sources.foreign_store import ForeignFile, ForeignStore
from zardine.sources.netcdf3.header import SIGNATURES
from zardine.sources.netcdf3.nodes import read_netcdf3
from zardine.sources.stored_file import StoredFile
from zardine.stores.base import Store
from zardine.stores.local.store import LocalStore
from zardine.stores.resolve import FOREIGN_ENDINGS, scheme_of, store_of_url
from zardine.stores.url_text import is_file_uri, path_of_uri

_HDF5 = b"\x89HDF\r\n\x1a\n"


def open(  # as zardine.open
    path: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None
) -> Group | Array:
    """Open a file of HDF5 or NetCDF, read-only, as a group: what reads Zarr reads it, and nothing is written.

    ``path`` is a local path, or a URL of any store (``s3://``, ``https://``, ...), whose settings are
    ``storage_options``; of files elsewhere only what is needed is read. HDF5, which NetCDF 4 is, needs the package h5py
    (``pip install 'zardine[sources]'``).

    Raises ``FileNotFoundError`` where there is no file, :class:`~zardine.errors.UnsupportedError` for other formats,
    and :class:`~zardine.errors.CorruptionError` for a file that is cut off or damaged.
    """
    store = foreign_store(path, storage_options=storage_options)
    metadata = load_node(store, "")
    return Array(store, "", metadata) if isinstance(metadata, ArrayMetadata) else Group(store, "", metadata)


def foreign_store(path: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None) -> ForeignStore:
    """Return a file as a store. Raises as :func:`open`."""
    store, key = _place(os.fspath(path), storage_options)
    return shown(store, key)


def is_foreign_file(path: object) -> bool:
    """Whether ``path`` is a local file that begins as one of these formats or is called so, or a URL called so."""
    if not isinstance(path, (str, os.PathLike)):
        return False
    text = os.fspath(path)
    if not isinstance(text, str):
        return False
    if scheme_of(text) not in (None, "file") and not is_file_uri(text):
        return "::" not in text and text.partition("?")[0].lower().endswith(FOREIGN_ENDINGS)
    local = path_of_uri(text) if is_file_uri(text) else text
    try:
        if not os.path.isfile(local) or local.lower().endswith(".zip"):
            return False
        return local.lower().endswith(FOREIGN_ENDINGS) or _format_of(StoredFile(*_place(local, None))) is not None
    except (FileNotFoundError, InvalidKeyError):
        return False


def shown(store: Store, key: str) -> ForeignStore:
    """Return the file that is the value of ``key`` as a store."""
    file = StoredFile(store, key)
    return ForeignStore(file, _read(file), shown)


def _read(file: StoredFile) -> ForeignFile:
    found = _format_of(file)
    if found == "NetCDF 3":
        return read_netcdf3(file)
    if found == "HDF5":
        from zardine.sources.hdf5.nodes import read_hdf5

        return read_hdf5(file)
    begins = file.read_near(0, 8)
    raise UnsupportedError(
        f"{file} is neither HDF5 nor NetCDF: it {f'begins with {begins!r}' if begins else 'is empty'}; a store of Zarr "
        "is opened with zardine.open"
    )


def _format_of(file: StoredFile) -> str | None:
    """Return the name of the format. The header of HDF5 may come after that of another program: at 512, 1024, ..."""
    if file.read_near(0, 4) in SIGNATURES:
        return "NetCDF 3"
    at = 0
    while at + len(_HDF5) <= file.size:
        if file.read_near(at, len(_HDF5)) == _HDF5:
            return "HDF5"
        at = max(512, 2 * at)
    return None


def _place(path: str, storage_options: Mapping[str, Any] | None) -> tuple[Store, str]:
    if scheme_of(path) not in (None, "file") and not is_file_uri(path):
        folder, _, name = path.rstrip("/").rpartition("/")
        if folder.endswith(":/") or not name:
            raise StoreError(f"{path!r} names no file")
        return store_of_url(folder, storage_options).with_read_only(True), name
    if storage_options:
        raise TypeError("storage_options have no meaning for local files: they are for stores behind other URLs")
    local = os.path.realpath(path_of_uri(path) if is_file_uri(path) else path)
    if os.path.isdir(local):
        raise StoreError(f"{path!r} is a directory, not a file: a store of Zarr is opened with zardine.open")
    if not os.path.exists(local):
        raise FileNotFoundError(shown_text(f"{path!r} does not exist"))
    folder, name = os.path.split(local)
    return LocalStore(folder, read_only=True), name


__all__ = ["foreign_store", "is_foreign_file", "open"]
