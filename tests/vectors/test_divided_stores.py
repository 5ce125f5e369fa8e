"""Stores that zarr-vectors divided by the values of an attribute: all questions are answered, no edit is begun."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine import vectors
from zardine.errors import DataError
from zardine.tools.report import Repairs

pytest.importorskip("zarr_vectors")

P = np.random.default_rng(0).uniform(0, 100, (120, 3)).astype("f4")
GENE = np.array([f"g{i % 3}" for i in range(120)])
NUMBER = np.arange(120)
BOX = ([10, 10, 10], [60, 60, 60])


@pytest.fixture(params=[None, 2])
def store(request: Any, tmp_path: Path) -> str:
    from zarr_vectors.types.points import write_points

    path = str(tmp_path / "divided.zv")
    write_points(
        path,
        P,
        chunk_shape=(50.0, 50.0, 50.0),
        chunk_by_attribute="gene",
        vertex_attributes={"gene": GENE, "n": NUMBER},
        shard_shape=request.param,
    )
    return path


def files(path: str) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in Path(path).rglob("*") if each.is_file()}


def _in_chunks() -> Any:
    return ((GENE == "g1") & (P < 50).all(axis=1)) | ((GENE == "g2") & (P >= 50).all(axis=1))


def check_answers(path: str) -> None:
    inside = ((P >= 10) & (P <= 60)).all(axis=1)
    questions: list[tuple[dict[str, Any], Any]] = [
        ({}, NUMBER >= 0),
        ({"bbox": BOX}, inside),
        ({"where": {"gene": ["g0", "g2"]}}, GENE != "g1"),
        (
            {"bbox": BOX, "where": {"gene": "g1", "n": slice(5, 80)}},
            inside & (GENE == "g1") & (abs(NUMBER - 42.5) < 38),
        ),
        ({"chunks": [(1, 0, 0, 0), (2, 1, 1, 1)]}, _in_chunks()),
        ({"bbox": BOX, "attributes": ["n", "gene"]}, inside),
    ]
    for query, wanted in questions:
        found = vectors.read_points(path, **query)
        number = found.attributes["n"]
        assert sorted(number.tolist()) == NUMBER[wanted].tolist(), query
        assert found.attributes["gene"].tolist() == GENE[number].tolist()
        assert np.array_equal(found.positions, P[number])
    assert vectors.validate(path).findings == ()


def test_questions_and_conversions(store: str) -> None:
    check_answers(store)
    for shape in (3, None, (2, 1, 2)):
        vectors.reshard(store, shape)
        check_answers(store)


EDITS: dict[str, Callable[[str], Any]] = {
    "append": lambda path: vectors.append_points(path, P, object_ids=NUMBER + 500),
    "delete": lambda path: vectors.delete(path, bbox=BOX),
    "move": lambda path: vectors.move_vertices(path, [0], [[1, 1, 1]]),
    "set": lambda path: vectors.set_attribute(path, "n", NUMBER),
    "pyramid": lambda path: vectors.build_pyramid(path),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edits_are_refused_before_anything_is_changed(store: str, edit: str) -> None:
    before = files(store)
    with pytest.raises(DataError, match="divided by an attribute"):
        EDITS[edit](store)
    assert files(store) == before
    assert vectors.repair(store) == Repairs((), (), dry_run=False)
    assert files(store) == before
