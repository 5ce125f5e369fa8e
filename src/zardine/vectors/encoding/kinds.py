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


IMPLICIT, BRANCHES, EXPLICIT = "implicit_sequential", "implicit_sequential_with_branches", "explicit"

KINDS = {
    kind.name: kind
    for kind in (
        Kind("point_cloud", (IMPLICIT, BRANCHES, EXPLICIT), False),
        Kind("line", (IMPLICIT,), False),
        Kind("polyline", (IMPLICIT,), False),
        Kind("streamline", (IMPLICIT,), False),
        Kind("skeleton", (BRANCHES, EXPLICIT), True),
        Kind("graph", (EXPLICIT,), True),
        Kind("mesh", (EXPLICIT,), True),
    )
}

CONVENTIONS = (EXPLICIT, IMPLICIT, BRANCHES)
