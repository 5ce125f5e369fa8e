"""The geometries of the format, and what each says about links."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A geometry: its name in documents, and how its vertices are connected."""

    name: str
    conventions: tuple[str, ...]
    """``links_convention`` of stores that hold it; the first is what is written."""
    links: bool
    """Whether every store of it has explicit links."""
    reader: str
    """The function that reads it."""


IMPLICIT, BRANCHES, EXPLICIT = "implicit_sequential", "implicit_sequential_with_branches", "explicit"

KINDS = {
    kind.name: kind
    for kind in (
        Kind("point_cloud", (IMPLICIT, BRANCHES, EXPLICIT), False, "read_points"),
        Kind("line", (IMPLICIT,), False, "read_lines"),
        Kind("polyline", (IMPLICIT,), False, "read_polylines"),
        Kind("streamline", (IMPLICIT,), False, "read_polylines"),
        Kind("skeleton", (BRANCHES, EXPLICIT), True, "read_skeleton"),
        Kind("graph", (EXPLICIT,), True, "read_graph"),
        Kind("mesh", (EXPLICIT,), True, "read_mesh"),
    )
}

CONVENTIONS = (EXPLICIT, IMPLICIT, BRANCHES)
