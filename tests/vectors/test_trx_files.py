"""TRX: what comes in, what goes out, and what is told of the rest."""

from __future__ import annotations

import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import nibabel.streamlines
import numpy as np
import pytest
from trx import trx_file_memmap as trx

from zardine import vectors
from zardine.errors import DataError, ZarrUserWarning
from zardine.vectors.exchange.formats import export_vectors, import_vectors

LINES = [np.ones((2, 3), "f4"), np.full((3, 3), 2, "f4"), np.full((4, 3), 3, "f4")]
AFFINE = [[-2.0, 0, 0, 90], [0, 1.5, 0, -126], [0, 0, 3, -72], [0, 0, 0, 1]]
SPACE: Any = {
    "trk": {"voxel_to_rasmm": AFFINE, "dimensions": [91, 109, 61], "voxel_sizes": [2, 1.5, 3], "voxel_order": "LAS"}
}


def recorded(call: Any, *arguments: Any, **options: Any) -> str:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call(*arguments, **options)
    return "\n".join(str(each.message) for each in found if each.category is ZarrUserWarning)


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "a.zv")
    vectors.write_polylines(
        path,
        LINES,
        chunk_shape=20,
        object_ids=[7, 3, 5],
        vertex_attributes={"fa": np.arange(9) / 8, "v": np.arange(18.0).reshape(9, 2), "ok": np.arange(9) > 4},
        object_attributes={"n": np.array([2, 3, 4]), "text": ["a", "b", "c"], "a.b": [1, 2, 3]},
        groups=[[5, 7], [3]],
        group_attributes={"name": ["left", "right"], "w": [1, 2]},
        crs=SPACE,
    )
    return path


def test_out_as_its_own_program_reads_it(store: str, tmp_path: Path) -> None:
    file = tmp_path / "out.trx"
    text = recorded(export_vectors, store, file)
    for part in ("'text' cannot be kept", "'a.b': names have no dots", "0 and 1: 'ok'", "'w': of groups the names"):
        assert part in text
    loaded = trx.load(str(file))
    try:
        assert [np.array(each).tolist() for each in loaded.streamlines] == [each.tolist() for each in LINES]
        assert loaded.data_per_vertex["fa"]._data.reshape(-1).tolist() == (np.arange(9) / 8).tolist()
        assert loaded.data_per_vertex["v"]._data.tolist() == np.arange(18.0).reshape(9, 2).tolist()
        assert loaded.data_per_streamline["n"].reshape(-1).tolist() == [2, 3, 4]
        assert loaded.data_per_streamline["object_id"].reshape(-1).tolist() == [7, 3, 5]
        assert {name: sorted(each.tolist()) for name, each in loaded.groups.items()} == {"left": [0, 2], "right": [1]}
        assert np.array_equal(loaded.header["VOXEL_TO_RASMM"], AFFINE)
        assert np.array_equal(loaded.header["DIMENSIONS"], [91, 109, 61])
    finally:
        loaded.close()


def test_there_and_back_and_to_trk(store: str, tmp_path: Path) -> None:
    file, again = tmp_path / "out.trx", str(tmp_path / "b.zv")
    recorded(export_vectors, store, file)
    assert recorded(import_vectors, file, again, chunk_shape=20) == ""
    old, new = vectors.read_polylines(store), vectors.read_polylines(again)
    assert (new.positions == old.positions).all()
    assert (new.starts == old.starts).all()
    assert new.object_attributes["object_id"].tolist() == old.object_ids.tolist()
    assert (new.attributes["fa"] == old.attributes["fa"]).all()
    groups = dict(zip(vectors.read_groups(again).attributes["name"], vectors.read_groups(again).members, strict=True))
    assert {name: each.tolist() for name, each in groups.items()} == {"left": [0, 2], "right": [1]}
    assert vectors.open(again).crs == SPACE
    export_vectors(again, tmp_path / "out.tck")
    assert len(nibabel.streamlines.load(tmp_path / "out.tck").streamlines) == 3


def test_files_that_are_none(store: str, tmp_path: Path) -> None:
    file, target = tmp_path / "out.trx", str(tmp_path / "b.zv")
    recorded(export_vectors, store, file)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"out\.trx cannot be read"):
        import_vectors(file, target)
    file.write_bytes(whole)
    with zipfile.ZipFile(file) as archive:
        parts = {each: archive.read(each) for each in archive.namelist()}
    (name,) = (each for each in parts if "offsets" in each)
    for bad in (b"\xff" * 8 + parts[name][8:], parts[name][:8] + b"\xff\xff\xff\x7f" + bytes(4) + parts[name][16:]):
        with zipfile.ZipFile(file, "w") as archive:
            for each, value in {**parts, name: bad}.items():
                archive.writestr(each, value)
        with pytest.raises(DataError, match=r"out\.trx"):
            import_vectors(file, target)
    assert not Path(target).exists()


def test_what_it_does_not_hold(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_polylines(path, [np.ones((2, 2))], chunk_shape=2, groups=[[0]])
    with pytest.raises(DataError, match="the store has 2 axes"):
        export_vectors(path, tmp_path / "out.trx")
    vectors.write_points(path, np.eye(3), chunk_shape=2, overwrite=True)
    with pytest.raises(DataError, match="holds a point_cloud"):
        export_vectors(path, tmp_path / "out.trx")


def test_values_of_vertices_and_streamlines_of_one_name(tmp_path: Path) -> None:
    lines = [np.arange(9.0).reshape(3, 3), np.ones((2, 3))]
    given = {"vertex_attributes": {"q": np.arange(5.0)}, "object_attributes": {"q": [7.5, 8.5]}}
    vectors.write_polylines(tmp_path / "a.zv", lines, chunk_shape=50, **given)
    vectors.export_vectors(tmp_path / "a.zv", tmp_path / "a.trx")
    vectors.import_vectors(tmp_path / "a.trx", tmp_path / "b.zv", chunk_shape=50)
    found = vectors.read_polylines(tmp_path / "b.zv")
    assert (found.attributes["q"].tolist(), found.object_attributes["q"].tolist()) == ([0, 1, 2, 3, 4], [7.5, 8.5])


def test_fields_of_the_header_that_are_left_out(store: str, tmp_path: Path) -> None:
    recorded(export_vectors, store, tmp_path / "a.trx")
    with zipfile.ZipFile(tmp_path / "a.trx") as whole, zipfile.ZipFile(tmp_path / "b.trx", "w") as more:
        for name in whole.namelist():
            data = whole.read(name)
            more.writestr(name, json.dumps({**json.loads(data), "NOTE": "by me"}) if name == "header.json" else data)
    assert "no place for it: 'NOTE'" in recorded(import_vectors, tmp_path / "b.trx", tmp_path / "b.zv")
    assert "NOTE" not in recorded(import_vectors, tmp_path / "a.trx", tmp_path / "a2.zv")
