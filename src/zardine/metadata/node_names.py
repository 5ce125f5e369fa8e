"""Names and paths of nodes (core 3.1, "Node names"; v2, "Logical storage paths")."""

from __future__ import annotations

UNNAMED = frozenset({"__xarray_dataarray_variable__", "__values__"})
"""How xarray calls what has no name; it stores that so in v3, too, which keeps names with two underscores to
itself."""


_OLDER_DOCUMENTS = (".zarray", ".zgroup", ".zattrs", ".zmetadata")
_DOCUMENTS = {1: _OLDER_DOCUMENTS, 2: _OLDER_DOCUMENTS, 3: ("zarr.json",)}


def normalize_path(path: object, zarr_format: int | None = None) -> str:
    """Return a path of a user as a key prefix without the final ``/``: ``"a/b"`` for ``"/a//b/"``, ``""`` for the root.

    A backslash stands for ``/`` in Zarr v2 and v1; in v3, and without a version, it is a character as any other.

    Raises ``ValueError`` for names that nodes of that version of Zarr cannot have; without one, that none can have.
    """
    if path is None or path == "":
        return ""
    if isinstance(path, bytes):
        path = path.decode()
    text = str(path) if zarr_format in (None, 3) else str(path).replace("\\", "/")
    parts = [part for part in text.split("/") if part]
    for part in parts:
        reason = explain_bad_name(part, zarr_format)
        if reason is not None:
            raise ValueError(f"invalid node path {str(path)!r}: {reason}")
    return "/".join(parts)


def explain_bad_name(name: str, zarr_format: int | None = None) -> str | None:
    """Return why ``name`` cannot name a node of a version of Zarr, or of any; ``None`` if it can."""
    if not name:
        return "a name must not be empty"
    if "/" in name:
        return f"the name {name!r} contains '/'"
    if name in (".", "..") or (zarr_format == 3 and not name.strip(".")):
        return f"the name {name!r} consists of periods only"
    if zarr_format == 3 and name.startswith("__") and name not in UNNAMED:
        return f"the name {name!r} starts with the reserved prefix '__'"
    if name in _DOCUMENTS.get(zarr_format or 0, ()):
        return f"the name {name!r} is that of a metadata document"
    if "\0" in name:
        return f"the name {name!r} contains a NUL character"
    if not name.isascii() and any("\ud800" <= character <= "\udfff" for character in name):
        return f"the name {name!r} contains a lone surrogate, which UTF-8 cannot hold"
    return None


def is_key(path: str) -> bool:
    """Return whether a store can have anything at ``path``."""
    return "\0" not in path and not any(part in ("", ".", "..") for part in path.split("/"))


def can_be_named(name: str, zarr_format: int) -> bool:
    """Return whether a node of that version can be opened by ``name``, in which there is no ``/``."""
    return zarr_format == 3 or "\\" not in name


def join_path(parent: str, child: str) -> str:
    """Return the path of ``child`` (itself a normalized path) below ``parent``."""
    return f"{parent}/{child}" if parent and child else parent or child
