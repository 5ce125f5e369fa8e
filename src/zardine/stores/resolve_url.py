"""Which store a URL means: other than a path, ``file:`` and ``memory:``, each needs what is imported only here."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from zardine.errors import UnsupportedError
from zardine.stores.base import Store
from zardine.stores.url_text import without_password

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
            f"{without_password(text)!r}: there is no store for the URL scheme {scheme_of(text)!r}; known are file, "
            "memory, zip, http, https, s3, gs, az, abfs, and those of the package fsspec"
        )
    return FsspecStore.from_url(text, storage_options=storage_options)


__all__ = ["chain_and_node", "chain_store", "scheme_of", "store_of_url"]
