"""The order in which reading gives vertices, in which positions and values for them are taken.

Of lines that is along each, line after line, as ``read_polylines`` gives them; of everything else as it is stored.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from zardine.buffers import Ints
from zardine.vectors.changing.levels import kind_of
from zardine.vectors.content.changes import LINES
from zardine.vectors.content.content import Content
from zardine.vectors.storing.store import Level


def reads_lines(level: Level) -> bool:
    """Whether reading gives whole lines; without an object index it gives points."""
    return kind_of(level) in LINES and level.node("object_index") is not None


def rows_as_read(level: Level, content: Content, objects: Ints | None = None) -> Ints:
    """The rows of ``content`` in the order in which reading the whole level, or some ``objects``, gives them.

    ``objects``: rows of those of the content, in the order of the object index; their cells are all loaded. A vertex
    that lines share is there for each.
    """
    if reads_lines(level):
        assert content.objects is not None
        lines = content.objects if objects is None else content.objects.take(objects)
        return replace(content, objects=lines).rows_of_objects()[1]
    seen = content.visible()
    return np.flatnonzero(seen if objects is None else seen & content.rows_in(objects))
