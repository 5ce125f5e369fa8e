"""The object to hold: facts, reading and changing, of every geometry."""

from __future__ import annotations

import numpy as np
import pytest

from vectors.stores_of_all_kinds import COUNT, WRITERS, store_of
from zardine import vectors
from zardine.errors import DataError, ReadOnlyError
from zardine.vectors import Polylines


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_every_geometry(kind: str) -> None:
    store = store_of(kind, shard_shape=2)
    held = vectors.open(store, mode="r+")
    assert len(held) == COUNT
    assert f"{COUNT} vertices" in repr(held)
    assert held.levels == [0]
    assert len(held.axes) == 3
    found = held.read(attributes=None, object_ids=[11] if kind != "points" else None)
    assert len(found.positions) == (COUNT if kind == "points" else COUNT // 4)
    more = held.read(attributes=None, bbox=[0, 0, 0, 30, 30, 30])
    if isinstance(more, Polylines):
        more = Polylines.from_lines(more.lines, object_ids=np.arange(100, 100 + len(more)))
    held.append(more)
    assert len(held) == COUNT + len(more.positions)
    assert held.delete(bbox=[-30] * 3 + [30] * 3) == len(more.positions) + COUNT
    assert held.validate().ok


def test_what_was_opened_to_be_read_is_not_changed() -> None:
    held = vectors.open(store_of("points"))
    with pytest.raises(ReadOnlyError, match="mode='r\\+'"):
        held.delete(bbox=[0, 0, 0, 1, 1, 1])
    with pytest.raises(DataError, match="mode is"):
        vectors.open(store_of("points"), mode="w")  # type: ignore[arg-type]
