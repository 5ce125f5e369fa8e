"""TRK and TCK: what comes in, what goes out, and what is told of the rest."""

from __future__ import annotations

import gzip
import os
import warnings
from pathlib import Path
from typing import Any

import nibabel.streamlines as files
import numpy as np
import pytest

from zardine import vectors
from zardine.errors import DataError, ZarrUserWarning
from zardine.vectors.exchange import streamlines
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


@pytest.mark.parametrize("window", [4, 7, 64, 200, 2**18])
def test_where_lines_of_trk_files_begin_is_read_a_little_at_a_time(
    tmp_path: Path, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = [3, 40, 1, 1, 2, 90, 5, 1]
    source = trk(tmp_path / "in.trk", [np.zeros((length, 3), "f4") for length in lengths])
    monkeypatch.setattr(streamlines, "_WINDOW", window)
    parts = streamlines.TrkParts(source, {}, 10)
    rows = np.cumsum([0, *lengths]).tolist()
    begins = [1000 + 4 * line + 12 * vertices for line, vertices in enumerate(rows)]
    cuts = [0, 1, 2, 5, 6, 8]
    assert parts.outline == [[begins[line], line, rows[line]] for line in cuts]


def test_a_file_that_becomes_shorter_while_it_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = trk(tmp_path / "in.trk")
    size = source.stat().st_size
    with source.open("r+b") as file:
        file.truncate(1030)
    told = list(source.stat())
    told[6] = size
    monkeypatch.setattr(streamlines.os, "fstat", lambda number: os.stat_result(told))
    monkeypatch.setattr(streamlines, "_WINDOW", 16)
    with pytest.raises(DataError, match=r"in\.trk is cut short: .* of 3 streamlines, and 1 are there"):
        streamlines.TrkParts(source, {}, 10)


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


def tck(path: Path, lines: Any, head: str = "count: 3\ndatatype: Float32LE\n", end: bool = True, at: int = 80) -> Path:
    """A TCK file made by hand: lines begin at byte ``at``, as its header says."""
    kind = ">f4" if "BE" in head else "<f4"
    text = f"mrtrix tracks\n{head}file: . {at}\nEND\n".encode()
    body = b"".join(np.concatenate([line, np.full((1, 3), np.nan)]).astype(kind).tobytes() for line in lines)
    path.write_bytes(text.ljust(at) + body + (np.full(3, np.inf, kind).tobytes() if end else b""))
    return path


@pytest.mark.parametrize("seed", range(6))
def test_parts_of_tck_files_are_whole_lines(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    lines = [rng.normal(0, 9, (length, 3)).astype("f4") for length in rng.choice([0, 1, 2, 5, 9, 40], 30)]
    source = tck(tmp_path / "in.tck", lines, "datatype: Float32BE\n" if seed % 2 else "")
    full = [line for line in lines if len(line)]
    for at_once, block in ((1, 7), (5, 3), (16, 2**19), (1000, 11)):
        monkeypatch.setattr(streamlines, "AT_ONCE", block)
        parts = streamlines.TckParts(source, {}, at_once)
        pieces = [parts.read(number) for number in range(parts.count)]
        assert parts.vertices == sum(map(len, lines))
        assert np.array_equal(np.concatenate([each.positions for each in pieces]), np.concatenate(full))
        lengths = [each.of_lines[""].tolist() for each in pieces]
        assert [each for part in lengths for each in part] == [len(line) for line in full]
        assert all(sum(each) <= at_once or len(each) == 1 for each in lengths)
        assert all(map(len, lengths))


@BOTH
def test_files_that_are_compressed(tmp_path: Path, suffix: str) -> None:
    source = trk(tmp_path / f"in.{suffix}")
    packed = tmp_path / f"in.{suffix}.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    import_vectors(packed, str(tmp_path / "a.zv"), chunk_shape=20, format=suffix)
    vectors.plan_import(packed, tmp_path / "b.zv", chunk_shape=20, format=suffix).run()
    for path in ("a.zv", "b.zv"):
        found = vectors.read_polylines(str(tmp_path / path))
        assert [line.tolist() for line in found.lines] == [line.tolist() for line in LINES]
    packed.write_bytes(packed.read_bytes()[:-30])
    with pytest.raises(DataError, match=rf"in\.{suffix}\.gz cannot be read"):
        import_vectors(packed, str(tmp_path / "c.zv"), format=suffix)


WRONG_TCK: dict[str, tuple[Any, str]] = {
    "no end": (lambda path: tck(path, LINES, end=False), r"cut short: it ends at byte 224 without the mark"),
    "in a vertex": (lambda path: path.write_bytes(tck(path, LINES).read_bytes()[:-5]), "cut short"),
    "in a line": (lambda path: tck(path, [*LINES[:2], LINES[2][:-1]], end=False), "cut short"),
    "a line without an end": (
        lambda path: path.write_bytes(tck(path, LINES).read_bytes()[:-24] + np.full(3, np.inf, "f4").tobytes()),
        r"the vertices from byte 164 on are of a line that does not end",
    ),
    "far": (
        lambda path: tck(path, LINES).write_bytes(path.read_bytes().replace(b"80\n", b"99999999\n")),
        "begin at byte",
    ),
    "before": (
        lambda path: tck(path, LINES).write_bytes(path.read_bytes().replace(b". 80", b". -8")),
        "begin at byte -8",
    ),
    "no number": (
        lambda path: tck(path, LINES).write_bytes(path.read_bytes().replace(b". 80", b". no")),
        "cannot be read",
    ),
    "float64": (lambda path: tck(path, LINES, "datatype: Float64LE\n"), "cannot be read"),
    "another": (lambda path: path.write_bytes(b"nonsense" * 99), "is no TCK file"),
    "no header's end": (lambda path: path.write_bytes(b"mrtrix tracks\n" + b"a: b\n" * 2**18), "no line END"),
    "nothing": (lambda path: path.write_bytes(b""), "it is empty"),
    "not finite": (lambda path: tck(path, [[[0, 1, np.inf]]]), "finite"),
}


@pytest.mark.parametrize("what", WRONG_TCK)
def test_tck_files_that_are_damaged(tmp_path: Path, what: str) -> None:
    make, told = WRONG_TCK[what]
    make(tmp_path / "in.tck")
    with pytest.raises(DataError, match=told):
        import_vectors(tmp_path / "in.tck", str(tmp_path / "a.zv"), chunk_shape=20)
    assert not (tmp_path / "a.zv").exists()


def test_lines_without_vertices_in_tck_files_of_other_programs(tmp_path: Path) -> None:
    """nibabel writes none."""
    source = tck(tmp_path / "a.tck", [LINES[0], LINES[0][:0], LINES[1]])
    assert "1 lines without vertices are left out" in recorded(import_vectors, source, tmp_path / "a.zv")
    assert len(vectors.read_polylines(tmp_path / "a.zv")) == 2
