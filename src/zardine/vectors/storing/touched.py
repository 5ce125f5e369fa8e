"""What of a level was changed since those above it were made, and how these were made: attributes of levels.

Both count only while all who changed the level since kept them up: they tell its revision
(:data:`~zardine.vectors.storing.logs.REVISION`) and how many vertices it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zardine.buffers import Ints
from zardine.vectors.format.cell_documents import key_texts, parse_keys
from zardine.vectors.format.ragged import unique_rows
from zardine.vectors.storing.logs import revision_of

NEWER = "zardine_newer"
"""Attribute of a level: what of it is newer than the levels above, which are older then: ``"values"`` of objects and
groups, of which those have copies, or ``"vertices"``."""

TOUCHED = "zardine_touched"
"""Attribute of a level that is newer than those above: which chunks are. Without it, any may be."""

MADE = "zardine_made"
"""Attribute of a level above 0: the options of the pyramid that it is part of, and of how many vertices it was made.

Of level 0: the options, for those who make the levels that are no more."""

_MOST = 2**12
"""Chunks that are named, before any counts as touched."""


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """What of a level is newer than what is above."""

    chunks: Ints
    """``(C, K)``: whose vertices or fragments are."""
    tables: bool
    """Whether rows of tables may be that stand for objects and groups which were there."""


def touched_in(attributes: Mapping[str, Any], rank: int, vertex_count: int) -> Touched | None:
    """What the ``attributes`` of a level of so many vertices tell; ``None``: nothing that can be relied on."""
    newer, told = attributes.get(NEWER), attributes.get(TOUCHED)
    if newer is None:
        return Touched(np.zeros((0, rank), np.int64), False)
    if not isinstance(told, Mapping) or told.get("revision") != revision_of(attributes):
        return None
    chunks = parse_keys(told.get("chunks"), rank)
    if chunks is None or told.get("vertex_count") != vertex_count or type(told.get("tables")) is not bool:
        return None
    return Touched(chunks, told["tables"])


def with_touched(
    attributes: Mapping[str, Any], before: Touched | None, chunks: Ints | None, vertex_count: int, *, tables: bool
) -> dict[str, Any]:
    """``attributes`` of a level of so many vertices with ``chunks`` newer too, beside those ``before``.

    ``None``: any may be.
    """
    kept = {name: value for name, value in attributes.items() if name != TOUCHED}
    if before is None or chunks is None:
        return kept
    both = unique_rows(np.concatenate([before.chunks, chunks]))[0]
    if len(both) > _MOST:
        return kept
    told = {"revision": revision_of(attributes), "vertex_count": vertex_count, "chunks": key_texts(both)}
    return {**kept, TOUCHED: {**told, "tables": before.tables or tables}}


def carried_on(attributes: Mapping[str, Any], revision: int) -> dict[str, Any]:
    """``attributes`` of a level that is at the next ``revision`` then, with what is told of this one."""
    told = attributes.get(TOUCHED)
    if not isinstance(told, Mapping) or told.get("revision") != revision - 1:
        return dict(attributes)
    return {**attributes, TOUCHED: {**told, "revision": revision}}


def without_age(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """``attributes`` of a level that those above are as new as."""
    return {name: value for name, value in attributes.items() if name not in (NEWER, TOUCHED)}


def without_all_links(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """``attributes`` of a level that has lost some of its links to the one below; what it was made of is not told."""
    made = attributes.get(MADE)
    return {**attributes, MADE: {**made, "of": None}} if isinstance(made, Mapping) else dict(attributes)


def lacks_links(attributes: Mapping[str, Any]) -> bool:
    """Whether a level tells that it has lost some of its links to the one below."""
    made = attributes.get(MADE)
    return isinstance(made, Mapping) and "of" in made and made["of"] is None


__all__ = [
    "MADE",
    "NEWER",
    "TOUCHED",
    "Touched",
    "carried_on",
    "lacks_links",
    "touched_in",
    "with_touched",
    "without_age",
    "without_all_links",
]
