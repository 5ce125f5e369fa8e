"""Names and paths of nodes (core 3.1, "Node names")."""

from __future__ import annotations


def normalize_path(path: object) -> str:
    """A user's path as the key prefix of a node without its final ``/``: ``"/a//b/"`` gives ``"a/b"``, the root ``""``.

    Raises ``ValueError`` for names that are only periods or start with ``__``.
    """
    if path is None:
        return ""
    if isinstance(path, bytes):
        path = path.decode()
    parts = [part for part in str(path).replace("\\", "/").split("/") if part]
    for part in parts:
        reason = explain_bad_name(part)
        if reason is not None:
            raise ValueError(f"invalid node path {str(path)!r}: {reason}")
    return "/".join(parts)


def explain_bad_name(name: str) -> str | None:
    """Why ``name`` cannot name a node, or ``None`` if it can."""
    if not name:
        return "a name must not be empty"
    if "/" in name:
        return f"the name {name!r} contains '/'"
    if not name.strip("."):
        return f"the name {name!r} consists of periods only"
    if name.startswith("__"):
        return f"the name {name!r} starts with the reserved prefix '__'"
    if "\0" in name:
        return f"the name {name!r} contains a NUL character"
    return None


def join_path(parent: str, child: str) -> str:
    """The path of ``child`` (itself a normalized path) below ``parent``."""
    return f"{parent}/{child}" if parent and child else parent or child
