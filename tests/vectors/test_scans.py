"""LAS and LAZ: what comes in, what goes out, and what is told of the rest."""

from __future__ import annotations

import struct
import sys
import warnings
from errno import EINVAL, ENOSPC
from pathlib import Path
from typing import Any

import laspy
import numpy as np
import pytest
from laspy.header import GpsTimeType

from vectors.geometry_samples import rows
from zardine import vectors
from zardine.errors import DataError, ZarrUserWarning
from zardine.vectors.exchange.formats import export_vectors, import_vectors
from zardine.vectors.exchange.losses import reading
from zardine.vectors.storing.store import VectorStore

pyproj = pytest.importorskip("pyproj")

POINTS = np.array([[0, 0, 0], [9, 0, 0], [9, 9, 0], [0, 9, 0], [4, 4, 0.5]])


def store(folder: Path, points: Any = POINTS, **options: Any) -> str:
    path = str(folder / "a.zv")
    vectors.write_points(path, points, chunk_shape=20, **options)
    return path


def recorded(call: Any, *arguments: Any, **options: Any) -> str:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call(*arguments, **options)
    return "\n".join(str(each.message) for each in found if each.category is ZarrUserWarning)


def there_and_back(path: str, folder: Path, suffix: str = "las") -> tuple[Any, str]:
    text = recorded(export_vectors, path, folder / f"out.{suffix}")
    import_vectors(folder / f"out.{suffix}", str(folder / "b.zv"), chunk_shape=20)
    return vectors.read_points(str(folder / "b.zv")), text


def las(path: Path, count: int = 50, **header: Any) -> Path:
    made = laspy.LasData(laspy.LasHeader(**({"point_format": 3, "version": "1.2"} | header)))
    made.xyz = np.random.default_rng(0).integers(0, 900, (count, 3)) / 100
    made.write(str(path))
    return path


TAKEN = ("X", "Y", "Z", "x", "y", "z", "xyz", "bit_fields", "raw_classification", "flag_byte", "return_num")
PARTS = ("points", "header", "vlrs", "evlrs", "point_format", "write", "array", "scales", "offsets")
OTHERS = ("wave_packet_desc_index",)


@pytest.mark.parametrize("name", [*TAKEN, *PARTS, *OTHERS])
def test_names_that_are_taken(tmp_path: Path, name: str) -> None:
    path = store(tmp_path, vertex_attributes={name: np.arange(5), "good": np.arange(5)})
    found, text = there_and_back(path, tmp_path)
    assert f"attributes cannot be kept: {name!r}: coordinates, or other parts" in text
    assert rows(found.positions, found.attributes["good"]) == rows(POINTS, np.arange(5))
    assert name not in found.attributes


@pytest.mark.parametrize("version", ["1.2", "1.4"])
def test_a_file_cut_between_points(tmp_path: Path, version: str) -> None:
    source = las(tmp_path / "in.las", version=version)
    whole = source.read_bytes()
    size = laspy.PointFormat(3).size
    for left in (len(whole) - 10 * size, len(whole) - 11 * size + 3, len(whole) - 50 * size):
        source.write_bytes(whole[:left])
        with pytest.raises(DataError, match=r"in\.las is cut short: .* of 50 points, and (40|39|0) are there"):
            import_vectors(source, str(tmp_path / "a.zv"))
    assert not (tmp_path / "a.zv").exists()


def test_a_header_that_tells_of_more_points_than_memory(tmp_path: Path) -> None:
    source = las(tmp_path / "in.las", version="1.4")
    content = bytearray(source.read_bytes())
    content[247:255] = (2**60).to_bytes(8, "little")
    source.write_bytes(content)
    with pytest.raises(DataError, match="50 are there"):
        import_vectors(source, str(tmp_path / "a.zv"))


def claim(content: bytearray, form: str, at: int, *numbers: int) -> None:
    struct.pack_into(form, content, at, *numbers)


@pytest.mark.parametrize("count", [0, 50])
@pytest.mark.parametrize("suffix", ["las", "laz"])
def test_a_header_that_tells_of_more_records_than_bytes(tmp_path: Path, suffix: str, count: int) -> None:
    source = las(tmp_path / f"in.{suffix}", count, version="1.4")
    whole = source.read_bytes()
    for place, told in ((100, "in front of byte"), (243, "records from byte"), (96, "points begin at byte")):
        content = bytearray(whole)
        claim(content, "<I", place, 2**32 - 1)
        source.write_bytes(content)
        with pytest.raises(DataError, match=rf"in\.{suffix} is cut short, or damaged: .*{told}"):
            import_vectors(source, str(tmp_path / "a.zv"))
    content = bytearray(whole) + bytes(60)
    claim(content, "<QI", 235, len(whole), 1)
    claim(content, "<Q", len(whole) + 20, 2**62)  # bytes of the only record
    source.write_bytes(content)
    with pytest.raises(DataError, match="record 0 behind the points ends"):
        import_vectors(source, str(tmp_path / "a.zv"))
    assert not (tmp_path / "a.zv").exists()


@pytest.mark.parametrize("version", ["1.2", "1.4"])
def test_a_table_of_chunks_that_are_not_there(tmp_path: Path, version: str) -> None:
    source = las(tmp_path / "in.laz", version=version)
    whole = source.read_bytes()
    with laspy.open(source) as opened:
        begin = opened.header.offset_to_point_data
    (at,) = struct.unpack_from("<q", whole, begin)
    lies: tuple[tuple[str, int, int, str], ...] = (
        ("<I", at + 4, 2**31, "points are in 2147483648 chunks"),
        ("<I", at + 4, 0, "of 50 points, and its chunks have 0"),
        ("<q", begin, len(whole), "a table of its points begins"),
        ("<q", begin, begin + 8, "chunks"),
        ("<q", begin, -1, "a table of its points begins"),
        ("<I", at + 8, 2**32 - 1, "its chunks of points have .* bytes"),
        ("<H", whole.index(b"laszip encoded") - 2 + 54 + 36, 7, "points have .* bytes, and .* where they are packed"),
    )
    for form, place, value, told in lies:
        content = bytearray(whole)
        claim(content, form, place, value)
        source.write_bytes(content)
        with pytest.raises(DataError, match=rf"in\.laz .*{told}"):
            import_vectors(source, str(tmp_path / "a.zv"))
    content = bytearray(whole) + struct.pack("<q", at)
    claim(content, "<q", begin, -1)  # where the table is stands at the end
    source.write_bytes(content)
    import_vectors(source, str(tmp_path / "a.zv"), chunk_shape=20)
    source.write_bytes(whole)
    import_vectors(source, str(tmp_path / "b.zv"), chunk_shape=20)
    first, second = (vectors.read_points(str(tmp_path / name)).positions for name in ("a.zv", "b.zv"))
    assert rows(first) == rows(second)


def test_what_libraries_raise_of_a_file_names_it() -> None:
    class PanicException(BaseException):
        """As libraries in Rust raise it."""

    for error in (PanicException("capacity overflow"), OSError("no footer"), OSError(EINVAL, "Invalid argument")):
        with pytest.raises(DataError, match=r"a\.laz cannot be read: "), reading("a.laz"):
            raise error
    for other in (KeyboardInterrupt(), OSError(ENOSPC, "No space left on device"), MemoryError()):
        with pytest.raises(type(other)) as found, reading("a.laz"):
            raise other
        assert found.value is other


def test_a_file_without_points(tmp_path: Path) -> None:
    source = las(tmp_path / "in.las", 0)
    with pytest.warns(ZarrUserWarning, match=r"in\.las: it holds nothing.*bounds="):
        import_vectors(source, str(tmp_path / "b.zv"))
    assert vectors.open(str(tmp_path / "b.zv")).bounds == [[0, 0, 0], [1, 1, 1]]
    import_vectors(source, str(tmp_path / "a.zv"), bounds=([0, 0, 0], [1, 1, 1]), chunk_shape=1)
    assert len(vectors.read_points(str(tmp_path / "a.zv")).positions) == 0


STEPS: list[tuple[list[float], list[float]]] = [
    ([0.001] * 3, [207000, 7691000, 0]),
    ([0.00025, 0.01, 1 / 3], [0.1234567, -7, 1e6]),
    ([1e-7, 1e-7, 0.001], [10.123456789, 59.5, 0]),
    ([1, 2, 0.125], [0, 0, 0]),
]


@pytest.mark.parametrize(("scales", "offsets"), STEPS)
@pytest.mark.parametrize("suffix", ["las", "laz"])
def test_steps_come_back(tmp_path: Path, suffix: str, scales: list[float], offsets: list[float]) -> None:
    header = laspy.LasHeader(point_format=6, version="1.4")
    header.scales, header.offsets = scales, offsets
    header.global_encoding.gps_time_type = GpsTimeType.STANDARD
    cloud = laspy.LasData(header)
    cloud.X, cloud.Y, cloud.Z = np.random.default_rng(3).integers(-(10**6), 10**6, (3, 500))
    cloud.write(tmp_path / f"in.{suffix}")
    import_vectors(tmp_path / f"in.{suffix}", tmp_path / "a.zv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export_vectors(tmp_path / "a.zv", tmp_path / f"out.{suffix}")
        export_vectors(tmp_path / "a.zv", f"{tmp_path / 'folder'}/", format=suffix)
    for file in (tmp_path / f"out.{suffix}", tmp_path / "folder" / f"part-00000.{suffix}"):
        again = laspy.read(file)
        assert again.header.scales.tolist() == pytest.approx(scales, rel=0)
        assert again.header.offsets.tolist() == offsets
        assert again.header.global_encoding.gps_time_type == GpsTimeType.STANDARD
        assert rows(np.stack([again.X, again.Y, again.Z], 1)) == rows(np.stack([cloud.X, cloud.Y, cloud.Z], 1))
    vectors.append_points(tmp_path / "a.zv", vectors.read_points(tmp_path / "a.zv").positions[:1] + 1e-5)
    export_vectors(tmp_path / "a.zv", tmp_path / f"fine.{suffix}")
    positions = vectors.read_points(tmp_path / "a.zv").positions
    fine = laspy.read(tmp_path / f"fine.{suffix}")
    moved = np.abs(np.sort(np.array(fine.xyz), axis=0) - np.sort(positions, axis=0)).max(axis=0)
    assert (moved <= 0.51 * fine.header.scales + 1e-9).all()
    assert fine.header.scales[2] < scales[2]


@pytest.mark.parametrize(
    "told", [None, 7, {}, {"scales": [0, 1, 1]}, {"scales": [1, 1e-99, 1], "offsets": [0, 0, 0]}, {"scales": "x"}]
)
def test_steps_that_are_none(tmp_path: Path, told: Any) -> None:
    told = told if not isinstance(told, dict) else {"scales": [1, -1, 1], "offsets": [0, 0, 0], **told}
    found, text = there_and_back(store(tmp_path, crs={"las": told} if told != {} else {"las": {}}), tmp_path)
    assert text == ""
    assert rows(found.positions) == rows(POINTS)


def test_steps_of_a_scan_are_no_reference_system(tmp_path: Path) -> None:
    import_vectors(las(tmp_path / "in.las", 5), tmp_path / "a.zv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export_vectors(tmp_path / "a.zv", tmp_path / "a.parquet")
        export_vectors(tmp_path / "a.zv", tmp_path / "a.ply")
        vectors.read_points(tmp_path / "a.zv").to_geopandas()


def crs_of(path: Path) -> Any:
    return VectorStore.open(str(path)).root.block.get("crs")


SYSTEMS = {
    "epsg": (pyproj.CRS.from_epsg(25832), "1.2"),
    "degrees": (pyproj.CRS.from_epsg(4326), "1.2"),
    "own": (pyproj.CRS.from_proj4("+proj=tmerc +lat_0=1 +lon_0=7 +x_0=11 +ellps=GRS80 +units=m"), "1.4"),
    "heights": (pyproj.CRS.from_user_input("EPSG:25832+5783"), "1.4"),
    "ellipsoid": (pyproj.CRS.from_epsg(4979), "1.4"),
}


@pytest.mark.parametrize("suffix", ["las", "laz"])
@pytest.mark.parametrize("name", list(SYSTEMS))
def test_reference_systems(tmp_path: Path, name: str, suffix: str) -> None:
    crs, version = SYSTEMS[name]
    path = store(tmp_path, crs={"wkt": crs.to_wkt()}, vertex_attributes={"intensity": np.arange(5)})
    found, text = there_and_back(path, tmp_path, suffix)
    assert text == ""
    assert rows(found.positions, found.attributes["intensity"]) == rows(POINTS, np.arange(5))
    with laspy.open(tmp_path / f"out.{suffix}") as opened:
        assert opened.header.parse_crs() == crs
        assert str(opened.header.version) == version
    import_vectors(tmp_path / f"out.{suffix}", str(tmp_path / "c.zv"), chunk_shape=20, crs={"name": "mine"})
    assert {name: each for name, each in crs_of(tmp_path / "c.zv").items() if name != "las"} == {"name": "mine"}
    assert pyproj.CRS.from_wkt(crs_of(tmp_path / "b.zv")["wkt"]) == crs


@pytest.mark.parametrize("crs", [{"wkt": "PROJCS[nonsense"}, {"epsg": 4326}, {"wkt": 7}, {"trk": {}}])
def test_a_reference_system_that_is_none(tmp_path: Path, crs: Any) -> None:
    found, text = there_and_back(store(tmp_path, crs=crs), tmp_path)
    assert "reference system cannot be kept" in text
    assert rows(found.positions) == rows(POINTS)


def test_a_reference_system_without_pyproj(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store(tmp_path, crs={"wkt": SYSTEMS["epsg"][0].to_wkt()})
    export_vectors(path, tmp_path / "a.las")
    monkeypatch.setitem(sys.modules, "pyproj", None)
    text = recorded(import_vectors, tmp_path / "a.las", str(tmp_path / "b.zv"))
    assert "reference system is left out" in text
    assert "pip install pyproj" in text
    assert "pip install pyproj" in recorded(export_vectors, path, tmp_path / "c.las")


def test_a_damaged_reference_system(tmp_path: Path) -> None:
    header = laspy.LasHeader(point_format=6, version="1.4")
    header.vlrs.append(laspy.vlrs.known.WktCoordinateSystemVlr("PROJCS[nonsense"))
    made = laspy.LasData(header)
    made.xyz = POINTS
    made.write(str(tmp_path / "in.las"))
    assert "reference system is left out" in recorded(import_vectors, tmp_path / "in.las", str(tmp_path / "a.zv"))
    options = {"crs": None, "overwrite": True}
    assert recorded(import_vectors, tmp_path / "in.las", str(tmp_path / "a.zv"), **options) == ""


def test_records_beside_the_points(tmp_path: Path) -> None:
    header = laspy.LasHeader(point_format=9, version="1.4")
    header.vlrs.extend([laspy.VLR("somebody", number, "", b"abc") for number in (1, 2)])
    header.add_crs(SYSTEMS["epsg"][0])
    header.add_extra_dim(laspy.ExtraBytesParams("extra", "f4"))
    header.evlrs = laspy.vlrs.vlrlist.VLRList([laspy.VLR("somebody", 3, "", b"abc")])
    made = laspy.LasData(header)
    made.xyz = POINTS
    made.write(str(tmp_path / "in.las"))
    text = recorded(import_vectors, tmp_path / "in.las", str(tmp_path / "a.zv"))
    assert "in.las: 3 records beside the points (VLRs and EVLRs) and waveforms are left out" in text
    assert text.count("\n") == 0


@pytest.mark.parametrize("offset", [0.0, 9.0])
def test_points_close_to_each_other(tmp_path: Path, offset: float) -> None:
    points = offset + np.random.default_rng(0).uniform(0, 1e-6, (100, 3))
    path = str(tmp_path / "a.zv")
    vectors.write_points(path, points, chunk_shape=1)
    export_vectors(path, tmp_path / "a.las")
    found = laspy.read(tmp_path / "a.las").xyz
    assert len(np.unique(found, axis=0)) == 100
    assert np.allclose(np.sort(found, axis=0), np.sort(points, axis=0), rtol=0, atol=2e-15)


def test_degrees_are_not_rounded_to_decimetres(tmp_path: Path) -> None:
    points = np.random.default_rng(0).uniform((7, 51, 0), (7.5, 51.5, 90), (500, 3))
    found, text = there_and_back(store(tmp_path, points), tmp_path)
    assert np.abs(np.sort(found.positions, axis=0) - np.sort(points, axis=0))[:, :2].max() < 1e-9
    assert "positions are rounded to steps of 1e-09, 1e-09, 1e-07" in text


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_positions_that_are_kept_are_not_warned_of(tmp_path: Path, dtype: str) -> None:
    points = np.random.default_rng(0).integers((0, 0, 5), (90000, 90000, 6), (500, 3)) / 100 + (637000, 0, 0)
    path = str(tmp_path / "a.zv")
    vectors.write_points(path, points.astype(dtype), chunk_shape=900)
    assert recorded(export_vectors, path, tmp_path / "a.las") == ""


MODERN = {
    "classification": [1, 40, 255, 2, 3],
    "scan_angle": [-15000, 0, 15000, 1, 2],
    "overlap": [0, 1, 0, 1, 1],
    "scanner_channel": [3, 2, 1, 0, 0],
    "return_number": [9, 15, 1, 2, 3],
    "nir": [1, 2, 3, 4, 65535],
}


@pytest.mark.parametrize("name", list(MODERN))
def test_values_that_need_newer_points(tmp_path: Path, name: str) -> None:
    given = {name: MODERN[name], "red": np.arange(5), "gps_time": np.arange(5) / 8, "scan_angle_rank": np.arange(5)}
    found, text = there_and_back(store(tmp_path, vertex_attributes=given), tmp_path)
    assert text == ""
    file = laspy.read(tmp_path / "out.las")
    assert (str(file.header.version), file.point_format.id) == ("1.4", 8 if name == "nir" else 7)
    assert name in file.point_format.standard_dimension_names
    assert rows(found.positions, *(found.attributes[each] for each in given)) == rows(POINTS, *given.values())


@pytest.mark.parametrize("values", [[1, 2, 300, 3, 4], [1, 2, 31, 3, 4], [0.5, 1, 2, 3, 4]])
def test_values_that_need_no_newer_points(tmp_path: Path, values: Any) -> None:
    _, text = there_and_back(store(tmp_path, vertex_attributes={"classification": values}), tmp_path)
    assert ("'classification' cannot be kept" in text) == (31 not in values)
    file = laspy.read(tmp_path / "out.las")
    assert (str(file.header.version), file.point_format.id) == ("1.2", 0)


def test_attributes_of_several_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given = {
        f"{kind}{size}_{width}": rng.integers(0, 90, (5, width)).astype(f"{kind}{size}")
        for kind, sizes in {"f": (4, 8), "u": (1, 2, 4, 8), "i": (1, 2, 4, 8)}.items()
        for size in sizes
        for width in (2, 3)
    }
    path = store(tmp_path, vertex_attributes={**given, "one": np.ones((5, 1)), "four": np.ones((5, 4))})
    found, text = there_and_back(path, tmp_path)
    assert "'four' cannot be kept: it has 4 values for each row" in text
    assert text.count("\n") == 0
    assert "four" not in found.attributes
    assert found.attributes["one"].tolist() == [1] * 5
    for name, values in given.items():
        assert found.attributes[name].dtype == values.dtype
        assert rows(found.positions, found.attributes[name]) == rows(POINTS, values)


@pytest.mark.parametrize("suffix", ["las", "laz"])
@pytest.mark.parametrize(
    ("names", "point_format"),
    [
        ([], 0),
        (["intensity", "quality"], 0),
        (["gps_time"], 1),
        (["red", "green", "blue"], 2),
        (["red", "gps_time"], 3),
        (["nir"], 8),
    ],
)
def test_dimensions_that_were_not_filled_do_not_come_back(
    tmp_path: Path, suffix: str, names: list[str], point_format: int
) -> None:
    path = store(tmp_path, vertex_attributes={name: np.arange(5, dtype=np.uint16) for name in names})
    found, text = there_and_back(path, tmp_path, suffix)
    assert text == ""
    assert sorted(found.attributes) == sorted(names)
    for name in names:
        assert rows(found.positions, found.attributes[name]) == rows(POINTS, np.arange(5))
    assert laspy.read(tmp_path / f"out.{suffix}").point_format.id == point_format


def test_a_field_of_zeros_that_was_filled_comes_back(tmp_path: Path) -> None:
    found, _ = there_and_back(store(tmp_path, vertex_attributes={"intensity": np.zeros(5, np.uint16)}), tmp_path)
    assert found.attributes["intensity"].tolist() == [0] * 5


def test_dimensions_that_another_program_filled_later_come_back(tmp_path: Path) -> None:
    export_vectors(store(tmp_path), tmp_path / "a.las")
    made = laspy.read(tmp_path / "a.las")
    made.classification[2] = 6
    made.write(str(tmp_path / "a.las"))
    import_vectors(tmp_path / "a.las", str(tmp_path / "b.zv"), chunk_shape=20)
    found = vectors.read_points(str(tmp_path / "b.zv"))
    assert {name: sorted(each.tolist()) for name, each in found.attributes.items()} == {
        "classification": [0, 0, 0, 0, 6]
    }


def test_folders_have_no_dimensions_that_were_not_filled(tmp_path: Path) -> None:
    path = store(tmp_path, vertex_attributes={"intensity": np.arange(5, dtype=np.uint16)})
    (tmp_path / "files").mkdir()
    export_vectors(path, tmp_path / "files", format="las", vertices_per_file=2)
    import_vectors(tmp_path / "files", str(tmp_path / "b.zv"), chunk_shape=20)
    assert sorted(vectors.read_points(str(tmp_path / "b.zv")).attributes) == ["intensity"]
