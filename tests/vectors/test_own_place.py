"""A store, and what is made of it or made into it: never in each other's place."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from zardine import vectors
from zardine.errors import NodeExistsError


def _graph(path: Path) -> None:
    positions = np.random.default_rng(0).uniform(0, 9, (50, 3)).astype("f4")
    vectors.write_graph(path, positions, [[i, i + 1] for i in range(49)], chunk_shape=5.0)


def _files(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


@pytest.mark.parametrize("format", ["geff", "precomputed"])
@pytest.mark.parametrize("target", ["a/p.zv", "a/p.zv/0", "a/p.zv/new", "a", "link"])
def test_a_store_is_not_replaced_by_its_export(
    format: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _graph(tmp_path / "a" / "p.zv")
    os.symlink("a/p.zv", tmp_path / "link")
    monkeypatch.chdir(tmp_path)
    before = _files(tmp_path)
    with pytest.raises(NodeExistsError, match="export to another place"):
        vectors.export_vectors("a/p.zv", target, format=format, overwrite=True)
    assert _files(tmp_path) == before


def test_files_do_not_go_into_the_store(tmp_path: Path) -> None:
    vectors.write_points(tmp_path / "p.zv", np.zeros((5, 3), "f4"))
    before = _files(tmp_path)
    with pytest.raises(NodeExistsError, match="inside of the other"):
        vectors.export_vectors(tmp_path / "p.zv", tmp_path / "p.zv" / "zarr.json", format="las", overwrite=True)
    with pytest.raises(NodeExistsError, match="inside of the other"):
        vectors.plan_export(tmp_path / "p.zv", f"{tmp_path}/p.zv/files/", format="las")
    assert _files(tmp_path) == before
    vectors.export_vectors(tmp_path / "p.zv", tmp_path / "....las")
    assert (tmp_path / "....las").exists()


def test_what_is_imported_is_not_replaced(tmp_path: Path) -> None:
    _graph(tmp_path / "p.zv")
    vectors.export_vectors(tmp_path / "p.zv", tmp_path / "in" / "g.geff")
    before = _files(tmp_path / "in")
    for target in ("in", "in/g.geff"):
        with pytest.raises(NodeExistsError, match="import to another place"):
            vectors.import_vectors(tmp_path / "in" / "g.geff", tmp_path / target, overwrite=True)
    vectors.write_points(tmp_path / "q.zv", np.zeros((5, 3), "f4"))
    vectors.export_vectors(tmp_path / "q.zv", tmp_path / "p.zv" / "q.las")
    with pytest.raises(NodeExistsError, match="import to another place"):
        vectors.plan_import(tmp_path / "p.zv" / "q.las", tmp_path / "p.zv", overwrite=True)
    assert (tmp_path / "p.zv" / "q.las").exists()
    assert _files(tmp_path / "in") == before


def test_an_export_that_lacks_a_library_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors.write_points(tmp_path / "p.zv", np.zeros((5, 3), "f4"))
    monkeypatch.setitem(sys.modules, "laspy", None)
    with pytest.raises(ImportError, match="pip install"):
        vectors.export_vectors(tmp_path / "p.zv", f"{tmp_path}/files/", format="las")
    assert _files(tmp_path / "files") == {}
