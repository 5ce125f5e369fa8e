"""TRK and TCK: what comes in, what goes out, and what is told of the rest."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import nibabel.streamlines as files
import numpy as np
import pytest

from zardine import vectors
from zardine.errors import DataError, ZarrUserWarning
from zardine.vectors.exchange.formats import export_vectors, import_vectors
from zardine.vectors.storing.store import VectorStore

LINES = [np.ones((2, 3), "f4"), np.full((3, 3), 2, "f4"), np.full((4, 3), 3, "f4")]
BOTH = pytest.mark.parametrize("suffix", ["trk", "tck"])
AFFINE = [[-2.0, 0, 0, 90], [0, 1.5, 0.25, -126], [0, -0.25, 3, -72], [0, 0, 0, 1]]
SPACE = {"voxel_to_rasmm": AFFINE, "dimensions": [91, 109, 61], "voxel_sizes": [2.0, 1.5, 3.0], "voxel_order": "LAS"}


def recorded(call: Any, *arguments: Any, **options: Any) -> str:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call(*arguments, **options)
    return "\n".join(str(each.message) for each in found if each.category is ZarrUserWarning)


def trk(path: Path, lines: Any = LINES, **header: Any) -> Path:
    files.save(files.Tractogram(lines, affine_to_rasmm=np.eye(4)), str(path), header=header or None)
    return path


def crs_of(path: Path) -> Any:
    return VectorStore.open(str(path)).root.block.get("crs")


def test_a_file_cut_between_streamlines(tmp_path: Path) -> None:
    source = trk(tmp_path / "in.trk")
    whole = source.read_bytes()
    source.write_bytes(whole[: -(4 + 4 * 12)])
    with pytest.raises(DataError, match=r"in\.trk is cut short: .* of 3 streamlines, and 2 are there"):
        import_vectors(source, str(tmp_path / "a.zv"))
    assert not (tmp_path / "a.zv").exists()
    unknown = bytearray(whole)
    unknown[988:992] = bytes(4)
    source.write_bytes(unknown)
    import_vectors(source, str(tmp_path / "a.zv"), chunk_shape=20)
    assert len(vectors.read_polylines(str(tmp_path / "a.zv"))) == 3


def test_a_file_with_a_line_without_vertices(tmp_path: Path) -> None:
    source = trk(tmp_path / "in.trk")
    content = bytearray(source.read_bytes()) + bytes(4)
    content[988:992] = (4).to_bytes(4, "little")
    source.write_bytes(content)
    assert "1 lines without vertices" in recorded(import_vectors, source, str(tmp_path / "a.zv"), chunk_shape=20)
    assert len(vectors.read_polylines(str(tmp_path / "a.zv"))) == 3


@BOTH
@pytest.mark.parametrize("where", [0, 1, 2])
def test_lines_without_vertices(tmp_path: Path, suffix: str, where: int) -> None:
    path, target = str(tmp_path / "a.zv"), tmp_path / f"a.{suffix}"
    lines = [*LINES[:where], np.zeros((0, 3), "f4"), *LINES[where:2]]
    kept = [number for number in range(3) if number != where]
    columns = {"object_attributes": {"q": [1, 2, 3]}, "vertex_attributes": {"v": np.arange(5.0)}}
    vectors.write_polylines(path, lines, chunk_shape=20, **columns)
    assert "1 lines without vertices are left out" in recorded(export_vectors, path, target)
    import_vectors(target, str(tmp_path / "b.zv"), chunk_shape=20)
    found = vectors.read_polylines(str(tmp_path / "b.zv"))
    assert [line.tolist() for line in found.lines] == [lines[number].tolist() for number in kept]
    if suffix == "trk":
        assert found.object_attributes["q"].tolist() == [number + 1 for number in kept]
        assert found.attributes["v"].tolist() == list(range(5))
        if kept != [0, 1]:
            assert found.object_attributes["object_id"].tolist() == kept


@BOTH
def test_only_lines_without_vertices(tmp_path: Path, suffix: str) -> None:
    path, target = str(tmp_path / "a.zv"), tmp_path / f"a.{suffix}"
    options: dict[str, Any] = {"bounds": ([0, 0, 0], [1, 1, 1]), "chunk_shape": 1}
    vectors.write_polylines(path, [np.zeros((0, 3))] * 2, object_attributes={"q": [1, 2]}, **options)
    assert "2 lines without vertices" in recorded(export_vectors, path, target)
    assert len(files.load(str(target)).streamlines) == 0


def test_the_space_of_the_image(tmp_path: Path) -> None:
    source = trk(tmp_path / "in.trk", **{**SPACE, "voxel_order": b"LAS"})
    import_vectors(source, str(tmp_path / "a.zv"), chunk_shape=20)
    assert crs_of(tmp_path / "a.zv") == {"trk": SPACE}
    assert recorded(export_vectors, str(tmp_path / "a.zv"), tmp_path / "b.trk") == ""
    first, second = files.load(str(source)), files.load(str(tmp_path / "b.trk"))
    for name in SPACE:
        assert np.array_equal(first.header[name], second.header[name])
    for one, two in zip(first.streamlines, second.streamlines, strict=True):
        assert np.allclose(one, two, rtol=0, atol=1e-4)
    assert "reference system cannot be kept" in recorded(export_vectors, str(tmp_path / "a.zv"), tmp_path / "b.tck")
    import_vectors(source, str(tmp_path / "c.zv"), chunk_shape=20, crs={"name": "mine"})
    assert crs_of(tmp_path / "c.zv") == {"name": "mine"}


@BOTH
def test_files_that_tell_of_no_image(tmp_path: Path, suffix: str) -> None:
    import_vectors(trk(tmp_path / f"in.{suffix}"), str(tmp_path / "a.zv"), chunk_shape=20)
    assert crs_of(tmp_path / "a.zv") is None


WRONG = {
    "voxel_to_rasmm": [None, 1, "x", [[1, 2]], np.zeros((4, 4)).tolist(), [[1e300] * 4] * 4, np.ones((4, 4)).tolist()],
    "dimensions": [None, [1, 2], [1, 2, 3.5], [1, 2, 2**40], [-1, 2, 3], [[1]] * 3],
    "voxel_sizes": [None, [1, 2], [0, 1, 1], [-1, 1, 1], [1e300, 1, 1], [1e-300, 1, 1], {}],
    "voxel_order": [None, 3, "", "RASRAS", "RRA", "XYZ", "Ré𝄞"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_space_that_is_none(tmp_path: Path, name: str, value: Any) -> None:
    path, target = str(tmp_path / "a.zv"), tmp_path / "a.trk"
    vectors.write_polylines(path, LINES, chunk_shape=20, crs={"trk": {**SPACE, name: value}})
    assert "reference system cannot be kept" in recorded(export_vectors, path, target)
    assert np.array_equal(files.load(str(target)).header["voxel_to_rasmm"], np.eye(4))


@pytest.mark.parametrize("crs", [{"trk": None}, {"trk": [1]}, {"wkt": "x"}, {"trk": {}}])
def test_a_reference_system_of_another_kind(tmp_path: Path, crs: Any) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_polylines(path, LINES, chunk_shape=20, crs=crs)
    assert "reference system cannot be kept" in recorded(export_vectors, path, tmp_path / "a.trk")


@BOTH
@pytest.mark.parametrize("value", [1e39, -1e300])
def test_positions_beyond_float32(tmp_path: Path, suffix: str, value: float) -> None:
    path, target = str(tmp_path / "a.zv"), tmp_path / f"a.{suffix}"
    vectors.write_polylines(path, [np.array([[0, 0, 0], [value, 1, 1]])], chunk_shape=abs(value))
    with pytest.raises(DataError, match=rf"a\.{suffix}: 1 positions are beyond float32"):
        export_vectors(path, target)
    assert not target.exists()


def test_positions_beyond_float32_in_the_space_of_the_file(tmp_path: Path) -> None:
    path, target = str(tmp_path / "a.zv"), tmp_path / "a.trk"
    small = {**SPACE, "voxel_to_rasmm": np.diag([1e-3, 1e-3, 1e-3, 1]).tolist(), "voxel_order": "RAS"}
    vectors.write_polylines(path, [np.array([[0, 0, 0], [1e37, 1, 1]])], chunk_shape=1e37, crs={"trk": small})
    with pytest.raises(DataError, match="beyond float32"):
        export_vectors(path, target)
    assert not target.exists()
