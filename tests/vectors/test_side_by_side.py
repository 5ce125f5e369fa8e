"""What is read of a store far away waits together; elsewhere each call waits until it is its turn."""

from __future__ import annotations

from threading import Barrier
from typing import Any

import numpy as np
import pytest

from engine.far_store import Far
from zardine import vectors
from zardine.engine.side_by_side import begun
from zardine.errors import StoreError
from zardine.storage import MemoryStore


class Meeting(Far):
    """Values of the fragment index and of an attribute are there for those alone who ask for both at the same time."""

    meeting: Barrier

    def read(self, key: str, *args: Any) -> Any:
        if key in ("0/vertex_fragments/c/0/0", "0/vertex_attributes/fa/c/0/0"):
            self.meeting.wait(60)
        return super().read(key, *args)


def test_calls_meet_where_the_store_is_far_away() -> None:
    meeting = Barrier(3)

    def call(number: int) -> int:
        meeting.wait(60)
        return number

    calls = [lambda number=number: call(number) for number in range(3)]
    assert [result() for result in begun(Far(MemoryStore()), calls)] == [0, 1, 2]


def test_calls_are_made_one_after_the_other_elsewhere() -> None:
    made: list[int] = []
    calls = [lambda number=number: made.append(number) for number in range(3)]
    results = begun(MemoryStore(), calls)
    assert made == []
    results[1]()
    assert made == [1]


@pytest.mark.parametrize("kind", [MemoryStore, lambda: Far(MemoryStore())], ids=["near", "far"])
def test_errors_come_through(kind: Any) -> None:
    def fail() -> None:
        raise StoreError("no answer")

    with pytest.raises(StoreError, match="no answer"):
        begun(kind(), [lambda: 1, fail])[1]()


def test_the_index_and_an_attribute_of_lines_are_asked_for_together() -> None:
    store = MemoryStore()
    lines = [np.array([[1.0, 1], [2, 2]]), np.array([[3.0, 3], [4, 4], [5, 5]])]
    values = {"fa": np.arange(5.0)}
    vectors.write_polylines(store, lines, chunk_shape=10, bounds=((0, 0), (9, 9)), vertex_attributes=values)
    far = Meeting(store)
    far.meeting = Barrier(2)
    found = vectors.read_polylines(far)
    assert found.positions.tolist() == np.concatenate(lines).tolist()
    assert found.attributes["fa"].tolist() == values["fa"].tolist()
