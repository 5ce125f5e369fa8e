"""Ids of a few objects that are to be changed: found without reading all, where they are numbers of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine import vectors
from zardine.vectors.reading.loading_objects import KnownIds

LINES = [np.array([[n, 1.0], [n + 1, 2.0]]) for n in range(40)]


def written(path: Path, **options: Any) -> str:
    values = {"w": np.zeros(80, "f4")}
    vectors.write_polylines(str(path), LINES, chunk_shape=10, vertex_attributes=values, **options)
    return str(path)


def never(*_: Any) -> Any:
    raise AssertionError("all ids are read")


def test_numbers_of_rows_are_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    vectors.append_polylines(path, LINES[:2], vertex_attributes={"w": np.zeros(4, "f4")})
    with monkeypatch.context() as patch:
        patch.setattr(KnownIds, "all", never)
        vectors.set_attribute(path, "w", [1, 2, 3, 4], object_ids=[41, 7])
    found = vectors.read_polylines(path)
    assert {number: found.attributes["w"][2 * number] for number in (41, 7)} == {7: 1, 41: 3}
    assert np.count_nonzero(found.attributes["w"]) == 4


@pytest.mark.parametrize("ids", [np.arange(40) + 1, np.arange(40)[::-1], np.arange(40) * 2])
def test_other_ids_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ids: Any) -> None:
    path = written(tmp_path, object_ids=ids)
    vectors.set_attribute(path, "w", [5, 5], object_ids=[12])
    (row,) = np.flatnonzero(ids == 12)
    assert np.flatnonzero(vectors.read_polylines(path).attributes["w"]).tolist() == [2 * row, 2 * row + 1]
    monkeypatch.setattr(KnownIds, "all", never)
    with pytest.raises(AssertionError, match="all ids"):
        vectors.set_attribute(path, "w", [5, 5], object_ids=[12])


def test_those_that_are_gone_are_not_there(tmp_path: Path) -> None:
    path = written(tmp_path)
    vectors.delete(path, object_ids=[3])
    for wrong in (3, 40, -1):
        with pytest.raises(Exception, match=str(wrong)):
            vectors.set_attribute(path, "w", [5, 5], object_ids=[wrong])
    vectors.set_attribute(path, "w", [5, 5], object_ids=[4])
    assert np.count_nonzero(vectors.read_polylines(path).attributes["w"]) == 2
