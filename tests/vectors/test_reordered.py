"""Vertices that came in another order than they are stored in: some at a time, and the same as all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vectors.source_files import precomputed
from vectors.test_import_plans import OPTIONS, in_parts, stored
from zardine import vectors
from zardine.storage import LocalStore, MemoryStore
from zardine.vectors.content.columns import columns_of
from zardine.vectors.content.parts import VerticesInMemory
from zardine.vectors.exchange import reordered
from zardine.vectors.exchange.formats import export_vectors, import_vectors, plan_import
from zardine.vectors.exchange.reordered import Reordered


def test_by_their_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    monkeypatch.setattr(reordered, "AT_ONCE", 50)
    ranks = rng.integers(0, 90, 1000)
    values = {"a": np.arange(1000), "b": rng.normal(0, 1, (1000, 2))}
    vertices = VerticesInMemory(rng.normal(0, 1, (1000, 3)), dict(columns_of(values, 1000, "rows")))
    counts = np.bincount(ranks, minlength=90)
    found = Reordered(vertices, lambda row, part: ranks[row : row + len(part["a"])], counts)
    order = np.argsort(ranks, kind="stable")
    blocks = list(found.blocks())
    assert len(blocks) > 15
    assert max(len(each) for _, _, each in blocks) <= 50 + counts.max()
    assert np.concatenate([each for _, _, each in blocks]).tolist() == ranks[order].tolist()
    parts = list(found.parts())
    assert np.array_equal(np.concatenate([each for each, _ in parts]), vertices.positions[order])
    for name, each in values.items():
        assert np.array_equal(np.concatenate([part[name] for _, part in parts]), each[order])
    assert list(Reordered(VerticesInMemory(np.zeros((0, 3)), {}), lambda *_: ranks[:0], ranks[:0]).parts()) == []


def labelled(folder: Path, kind: str) -> Path:
    rng, made = np.random.default_rng(0), MemoryStore()
    texts: dict[str, Any] = {"kind": ["soma", "spine", "axon"] * 300, "n": np.arange(900, dtype="i4")}
    if kind == "points with text":
        vectors.write_points(made, rng.uniform(0, 500, (900, 3)), chunk_shape=100, vertex_attributes=texts)
    else:
        vectors.write_lines(made, rng.uniform(0, 500, (900, 2, 3)), chunk_shape=100, object_attributes=texts)
    export_vectors(made, folder / "in.precomputed")
    return folder / "in.precomputed"


@pytest.mark.parametrize("kind", ["points with text", "lines with text", "related", "boxes", "skeletons in shards"])
def test_imports_of_small_blocks(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, path, whole = kind.partition(" ")[0], str(tmp_path / "a.zv"), MemoryStore()
    if "text" in kind:
        source = labelled(tmp_path, kind)
    else:
        source = precomputed(tmp_path / "in.precomputed", name, 300, sharded="in shards" in kind)
    import_vectors(source, whole, **OPTIONS)
    monkeypatch.setattr(reordered, "AT_ONCE", 40)
    in_parts(plan_import(source, path, **OPTIONS), 100).run()
    assert stored(LocalStore(path)) == stored(whole)
    if "text" in kind:
        found = vectors.read_points(path).attributes if name == "points" else vectors.read_objects(path).attributes
        assert sorted(found["kind"].tolist()) == sorted(["soma", "spine", "axon"] * 300)
