"""Features in GeoJSON, GeoPackage, Shapefile and Parquet: integers, names, systems of coordinates, targets."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from vectors.test_import_plans import in_parts
from zardine import vectors
from zardine.errors import DataError, ZarrUserWarning
from zardine.vectors.exchange.formats import export_vectors, import_vectors

BIG = 720575940621039145
POINTS = np.array([[0, 0], [1, 1], [2, 2.0]])
SUFFIXES = pytest.mark.parametrize("suffix", ["geojson", "gpkg", "shp", "parquet"])


def table(**columns: Any) -> Any:
    geopandas = pytest.importorskip("geopandas")
    rows = len(next(iter(columns.values())))
    return geopandas.GeoDataFrame(columns, geometry=geopandas.points_from_xy(*POINTS[:rows].T))


def attribute(path: Path, name: str) -> list[Any]:
    found = vectors.read_points(str(path))
    values: list[Any] = found.attributes[name][np.argsort(found.positions[:, 0])].tolist()
    return values


def exported(folder: Path, suffix: str, **attributes: Any) -> str:
    """The warnings of an export to ``a.suffix``, and of an import of it as ``b.zv``."""
    vectors.write_points(str(folder / "a.zv"), POINTS, chunk_shape=5, vertex_attributes=attributes)
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        export_vectors(str(folder / "a.zv"), folder / f"a.{suffix}", overwrite=True)
        import_vectors(folder / f"a.{suffix}", str(folder / "b.zv"), chunk_shape=5)
    return "\n".join(str(each.message) for each in recorded)


@pytest.mark.parametrize("parts", [1, 3])
def test_an_attribute_that_is_called_as_geometries_are(tmp_path: Path, parts: int) -> None:
    source = tmp_path / ("a.geojson" if parts == 1 else "a.shp")
    table(one=[1.5, 2, 3], twotwotw=[4.5, 5, 6]).to_file(source)
    named = source if parts == 1 else source.with_suffix(".dbf")
    named.write_bytes(named.read_bytes().replace(b"twotwotw", b"geometry"))
    plan = vectors.plan_import(source, str(tmp_path / "a.zv"), chunk_shape=5)
    plan = in_parts(plan, 1) if parts > 1 else plan
    with pytest.warns(ZarrUserWarning, match="cannot be kept: 'geometry': geometries are called so"):
        assert str(plan.run()) == f"finished: read {parts} of {parts} jobs"
    assert vectors.open(str(tmp_path / "a.zv")).attributes == {"vertex": ["one"]}


def test_integers_that_are_read_as_floats_are_told(tmp_path: Path) -> None:
    below = -1132347474580681553
    text = exported(tmp_path, "geojson", low=[below, 2, 3], far=[1e300, 2.0**60, -1e25])
    assert "whole numbers above 2**53 are rounded in ['low']" in text
    assert attribute(tmp_path / "b.zv", "low") == [float(below), 2, 3]
    assert attribute(tmp_path / "b.zv", "far") == [1e300, 2.0**60, -1e25]


def test_columns_of_one_name(tmp_path: Path) -> None:
    table(one=[1.5, 2, 3], two=[4.5, 5, 6]).to_file(tmp_path / "a.shp")
    fields = tmp_path / "a.dbf"
    fields.write_bytes(fields.read_bytes().replace(b"two", b"one"))
    with pytest.raises(DataError, match=r"a\.shp has several columns called 'one'"):
        import_vectors(tmp_path / "a.shp", str(tmp_path / "a.zv"), chunk_shape=5)
    assert not (tmp_path / "a.zv").exists()


def test_large_integers_beside_missing_values_in_parquet(tmp_path: Path) -> None:
    import pandas

    made = table(root_id=pandas.array([BIG, None, 2], "Int64"), few=pandas.array([1, None, 2], "Int64"))
    made.to_parquet(tmp_path / "a.parquet")
    with pytest.warns(ZarrUserWarning, match="'root_id' is stored as text"):
        import_vectors(tmp_path / "a.parquet", str(tmp_path / "a.zv"), chunk_shape=5)
    assert attribute(tmp_path / "a.zv", "root_id") == [str(BIG), None, "2"]
    assert np.array_equal(attribute(tmp_path / "a.zv", "few"), [1, np.nan, 2], equal_nan=True)


def test_large_integers_in_parquet_of_another_program(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    frame = table(few=[1, 2, 3])
    frame.to_parquet(tmp_path / "plain.parquet")
    made = parquet.read_table(tmp_path / "plain.parquet")
    geo = {b"geo": made.schema.metadata[b"geo"]}
    made = made.append_column("root_id", pyarrow.array([BIG, None, 2], pyarrow.int64())).replace_schema_metadata(geo)
    parquet.write_table(made, tmp_path / "a.parquet")
    with pytest.warns(ZarrUserWarning, match="'root_id' is stored as text"):
        import_vectors(tmp_path / "a.parquet", str(tmp_path / "a.zv"), chunk_shape=5)
    assert attribute(tmp_path / "a.zv", "root_id") == [str(BIG), None, "2"]


@pytest.mark.parametrize("suffix", ["geojson", "gpkg"])
def test_large_integers_beside_missing_values(tmp_path: Path, suffix: str) -> None:
    import pandas

    source = tmp_path / f"a.{suffix}"
    table(root_id=pandas.array([BIG, None, 2], "Int64"), far=[1e300, np.nan, 0.5]).to_file(source)
    with pytest.warns(ZarrUserWarning, match="'root_id' is stored as text"):
        import_vectors(source, str(tmp_path / "a.zv"), chunk_shape=5)
    assert attribute(tmp_path / "a.zv", "root_id") == [str(BIG), None, "2"]
    assert np.array_equal(attribute(tmp_path / "a.zv", "far"), [1e300, np.nan, 0.5], equal_nan=True)


@SUFFIXES
def test_attributes_whose_names_are_taken(tmp_path: Path, suffix: str) -> None:
    told = exported(tmp_path, suffix, geometry=[4, 5, 6], v=[[1, 2], [3, 4], [5, 6]], v_0=[7, 8, 9])
    assert "'geometry' is called 'geometry_'" in told
    assert "the attribute 'v' of several values becomes columns: 'v_0' to 'v_1'" in told
    assert "'v_0' is called 'v_0_'" in told
    wanted = {"geometry_": [4, 5, 6], "v_0_": [1, 3, 5], "v_1": [2, 4, 6], "v_0": [7, 8, 9]}
    assert {name: attribute(tmp_path / "b.zv", name) for name in wanted} == wanted


def test_names_that_a_geopackage_has(tmp_path: Path) -> None:
    told = exported(tmp_path, "gpkg", fid=["a", "b", "c"], geom=[1, 2, 3], A=[4, 5, 6], a=[7, 8, 9])
    assert "'fid' is called 'fid_'" in told
    wanted = {"fid_": ["a", "b", "c"], "geom_": [1, 2, 3], "A": [4, 5, 6], "a_": [7, 8, 9]}
    assert {name: attribute(tmp_path / "b.zv", name) for name in wanted} == wanted


def test_the_index_of_a_parquet_file(tmp_path: Path) -> None:
    table(key=["a", "b", "c"], w=[1, 2, 3]).set_index("key").to_parquet(tmp_path / "a.parquet")
    import_vectors(tmp_path / "a.parquet", str(tmp_path / "a.zv"), chunk_shape=5)
    assert attribute(tmp_path / "a.zv", "key") == ["a", "b", "c"]


@SUFFIXES
def test_large_unsigned_integers(tmp_path: Path, suffix: str) -> None:
    values = [2**64 - 5, 2**63, 1]
    told = exported(tmp_path, suffix, i=np.array(values, "u8"))
    if suffix == "parquet":
        assert told == ""
        assert attribute(tmp_path / "b.zv", "i") == values
    else:
        assert "'i' is written as text" in told
        assert attribute(tmp_path / "b.zv", "i") == list(map(str, values))


def test_numbers_that_a_shapefile_changes(tmp_path: Path) -> None:
    assert "values of the attribute 'f' are changed" in exported(
        tmp_path, "shp", f=[1e-30, 0.5, 0.0], g=[0.1, 2.0, 0.0]
    )
    assert attribute(tmp_path / "b.zv", "g") == [0.1, 2, 0]


@SUFFIXES
def test_large_integers_come_back(tmp_path: Path, suffix: str) -> None:
    for values in ([BIG, 2**53 + 1, -5], [2**63 - 1, -(2**63), 0]):
        exported(tmp_path, suffix, i=np.array(values))
        assert list(map(int, attribute(tmp_path / "b.zv", "i"))) == values
        for name in ("a.zv", "b.zv"):
            (tmp_path / name).rename(tmp_path / f"{name}.{abs(values[0])}")


@pytest.mark.parametrize(
    ("crs", "kept"), [({"epsg": 4326}, True), ({"wkt": "x"}, False), ({"name": "x"}, False), ({"epsg": -1}, False)]
)
def test_systems_of_coordinates(tmp_path: Path, crs: Any, kept: bool) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_points(path, POINTS, chunk_shape=5, crs=crs)
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        export_vectors(path, tmp_path / "a.gpkg")
    assert [each.category for each in recorded] == [] if kept else [ZarrUserWarning]
    geopandas = pytest.importorskip("geopandas")
    found = geopandas.read_file(tmp_path / "a.gpkg").crs
    assert found == "EPSG:4326" if kept else (recorded and "crs cannot be kept" in str(recorded[0].message))


@SUFFIXES
def test_of_a_store_without_crs_geojson_alone_tells(tmp_path: Path, suffix: str) -> None:
    told = exported(tmp_path, suffix, w=[1, 2, 3])
    assert re.fullmatch(r".*/a\.geojson: it will be read as .* of WGS 84: .*" if suffix == "geojson" else "", told)


@SUFFIXES
def test_targets_that_cannot_be_written(tmp_path: Path, suffix: str) -> None:
    vectors.write_points(str(tmp_path / "a.zv"), POINTS, chunk_shape=5)
    with pytest.raises((DataError, OSError), match=rf"a\.{suffix}"):
        export_vectors(str(tmp_path / "a.zv"), tmp_path / "none" / f"a.{suffix}")


@pytest.mark.filterwarnings("ignore")
def test_features_without_positions(tmp_path: Path) -> None:
    nowhere = {"type": "Feature", "properties": {"a": 1}, "geometry": None}
    for features in ([], [nowhere]):
        (tmp_path / "a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        with pytest.raises(DataError, match=r"a\.geojson"):
            import_vectors(tmp_path / "a.geojson", str(tmp_path / "a.zv"))
        assert not (tmp_path / "a.zv").exists()


@pytest.mark.parametrize("suffix", ["geojson", "gpkg", "shp", "parquet"])
def test_texts_with_a_nul(suffix: str, tmp_path: Path) -> None:
    """GDAL ends a text there: that is told, and only of columns with such."""
    texts = {"cut": np.array(["a", "x\0y"]), "whole": np.array(["a", "xy"])}
    vectors.write_points(tmp_path / "a.zv", np.eye(3)[:2], chunk_shape=1, vertex_attributes=texts)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        export_vectors(str(tmp_path / "a.zv"), tmp_path / f"a.{suffix}")
    cut = [str(each.message) for each in told if "NUL" in str(each.message)]
    assert len(cut) == (suffix != "parquet"), cut
    assert not cut or "'cut'" in cut[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ending", ["shp", "shx", "dbf"])
def test_shapefiles_without_their_end(ending: str, tmp_path: Path) -> None:
    """GDAL makes features without a geometry, or without attributes, of what is left."""
    lines = [np.array([[0.0, 0], [1, 1]]), np.array([[0.0, 2], [5, 1], [3, 3]])]
    vectors.write_polylines(tmp_path / "a.zv", lines, chunk_shape=3, object_attributes={"v": np.array([1, 2])})
    export_vectors(str(tmp_path / "a.zv"), tmp_path / "a.shp")
    place = tmp_path / f"a.{ending}"
    whole = place.read_bytes()
    for length in (0, 30, 60, 99, 100, len(whole) // 2, len(whole) - 2):
        place.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"a\.shp cannot be read"):
            import_vectors(tmp_path / "a.shp", tmp_path / "b.zv", chunk_shape=3)
        assert not (tmp_path / "b.zv").exists()
    place.write_bytes(whole)
    import_vectors(tmp_path / "a.shp", tmp_path / "b.zv", chunk_shape=3)
    assert vectors.open(tmp_path / "b.zv").read().object_attributes["v"].tolist() == [1, 2]


geopandas: Any = pytest.importorskip("geopandas")
pyogrio: Any = pytest.importorskip("pyogrio")
shapely: Any = pytest.importorskip("shapely")

MEASURED = {
    "points": ["POINT M (1 2 7)", "POINT M (2 2 8)", "POINT M (3 2 9)"],
    "points with heights": ["POINT ZM (1 2 3 7)", "POINT ZM (2 2 3 8)", "POINT ZM (3 2 3 9)"],
    "lines": ["LINESTRING M (0 0 7, 1 1 8)", "LINESTRING M (0 2 9, 1 5 10)"],
    "lines with heights": ["LINESTRING ZM (0 0 1 7, 1 1 2 8)", "LINESTRING ZM (0 2 1 9, 1 5 2 10)"],
    "polygons": ["POLYGON M ((0 0 7, 4 0 8, 4 4 9, 0 0 10))"],
    "several lines": ["MULTILINESTRING ZM ((0 0 1 7, 1 1 1 8), (5 5 1 9, 6 6 1 10))"],
    "some of them": ["POINT M (1 2 7)", "POINT (2 2)", "POINT M (3 2 9)"],
    "not the first": ["POINT (1 2)", "POINT M (2 2 8)", "POINT M (3 2 9)"],
}


def with_measures(path: Path, wkts: list[str], rows: int) -> Path:
    shapes = shapely.from_wkt(wkts)
    frame = geopandas.GeoDataFrame({"i": range(len(wkts))}, geometry=shapes, crs="EPSG:25830")
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=rows)
        return path
    shape = pa.field("g", pa.binary(), metadata={b"ARROW:extension:name": b"geoarrow.wkb"})
    columns = [pa.array(shapely.to_wkb(shapes, flavor="iso")), pa.array(frame["i"])]
    table = pa.table(columns, pa.schema([shape, pa.field("i", pa.int64())]))
    pyogrio.write_arrow(table, str(path), geometry_name="g", geometry_type="Unknown", crs="EPSG:25830")
    return path


@pytest.mark.parametrize("rows", [1, 2, 100])
@pytest.mark.parametrize("suffix", ["parquet", "gpkg", "shp"])
@pytest.mark.parametrize("name", MEASURED)
def test_measures(tmp_path: Path, name: str, suffix: str, rows: int) -> None:
    if suffix == "shp" and (name in ("some of them", "not the first") or rows > 1):
        return  # a Shapefile has geometries of one kind
    source = with_measures(tmp_path / f"in.{suffix}", MEASURED[name], rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZarrUserWarning)
        import_vectors(source, tmp_path / "a.zv", chunk_shape=100.0)
        import_vectors(source, tmp_path / "b.zv", chunk_shape=100.0, workers=1)
    shapes = shapely.from_wkt(MEASURED[name])
    wanted = shapely.get_coordinates(shapes, include_z=bool(shapely.has_z(shapes).any()), include_m=True)
    for path in ("a.zv", "b.zv"):
        found = vectors.open(tmp_path / path).read()
        assert rows_of(found.positions, found.attributes["m"]) == rows_of(wanted[:, :-1], wanted[:, -1])


def rows_of(positions: Any, values: Any) -> list[list[float]]:
    pairs = zip(positions.tolist(), values.tolist(), strict=True)
    return sorted([*place, -1 if value != value else value] for place, value in pairs)


def test_measures_beside_an_attribute_of_their_name(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame({"m": [5]}, geometry=shapely.from_wkt(["POINT M (1 2 7)"]))
    frame.to_parquet(tmp_path / "in.parquet")
    import_vectors(tmp_path / "in.parquet", tmp_path / "a.zv", chunk_shape=100.0)
    found = vectors.read_points(tmp_path / "a.zv").attributes
    assert {name: each.tolist() for name, each in found.items()} == {"m": [5], "m_": [7]}


def test_layers_that_are_not_read_are_told(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame({"i": [5]}, geometry=shapely.from_wkt(["POINT (1 2)"]))
    for layer in ("trees", "roads", "rivers"):
        frame.to_file(tmp_path / "in.gpkg", layer=layer)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        import_vectors(tmp_path / "in.gpkg", tmp_path / "a.zv", chunk_shape=100.0)
    (text,) = [str(each.message) for each in told]
    assert text.endswith("of its layers 'trees' is read; left out: 'roads', 'rivers'")


@pytest.mark.parametrize("parts", [1, 3])
def test_long_integers_of_a_shapefile(tmp_path: Path, parts: int) -> None:
    """GDAL reads columns of more than 18 digits as float64."""
    values = [2**62 + 1, -(2**53) - 1, 2**53 + 1]
    table(n=values).to_file(tmp_path / "a.shp")
    plan = vectors.plan_import(tmp_path / "a.shp", tmp_path / "a.zv", chunk_shape=5)
    (plan if parts == 1 else in_parts(plan, 1)).run()
    assert attribute(tmp_path / "a.zv", "n") == values


@pytest.mark.parametrize(("ids", "fids"), [([100, 101], [100, 101]), ([7], [7]), ([0, 1], None), ([1, 2], None)])
def test_ids_of_features_in_a_row(tmp_path: Path, ids: list[int], fids: list[int] | None) -> None:
    each = [json.loads(table(n=[1] * len(ids)).to_json())["features"][row] | {"id": id} for row, id in enumerate(ids)]
    (tmp_path / "a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": each}))
    import_vectors(tmp_path / "a.geojson", tmp_path / "a.zv", chunk_shape=5)
    found = vectors.read_points(tmp_path / "a.zv").attributes
    assert ("fid" in found) == (fids is not None)
    assert fids is None or attribute(tmp_path / "a.zv", "fid") == fids


def test_members_of_features_that_are_not_kept_are_told(tmp_path: Path) -> None:
    point = {"type": "Point", "coordinates": [1, 2], "accuracy": 5}
    one = {"type": "Feature", "id": "a", "geometry": point, "properties": {"id": 3}, "style": {}}
    document = {"type": "FeatureCollection", "name": "n", "bbox": [0, 0, 9, 9], "licence": "CC0", "features": [one]}
    (tmp_path / "a.geojson").write_text(json.dumps(document))
    with pytest.warns(ZarrUserWarning, match="no place for it: 'licence', 'style', ids of .* 'id' too, 'accuracy'$"):
        import_vectors(tmp_path / "a.geojson", tmp_path / "a.zv", chunk_shape=5)


@pytest.mark.parametrize("named", [False, True])
def test_metadata_of_geometries_in_parquet_are_told(tmp_path: Path, named: bool) -> None:
    """By parts, and of a file that is one part as its index has a name."""
    frame = table(n=[1, 2]).set_crs(4326)
    frame.index.name = "name" if named else None
    frame.to_parquet(tmp_path / "a.parquet")
    found = pa.parquet.read_table(tmp_path / "a.parquet")
    told = json.loads(found.schema.metadata[b"geo"])
    told["columns"]["geometry"] |= {"epoch": 2021.5}
    more = {**found.schema.metadata, b"geo": json.dumps(told).encode(), b"licence": b"CC0"}
    pa.parquet.write_table(found.replace_schema_metadata(more), tmp_path / "a.parquet")
    with pytest.warns(ZarrUserWarning, match="no place for it: 'epoch' of 'geometry', 'licence'$"):
        import_vectors(tmp_path / "a.parquet", tmp_path / "a.zv", chunk_shape=5)
