"""What becomes of each feature in an import and in an export of each format: kept, told of, or refused.

The cases are the tables of the formats' modules, which make ``docs/vector-formats.md`` too: run as a program, this
writes the page anew.
"""

from __future__ import annotations

import datetime
import json
import re
import sqlite3
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import geopandas
import laspy
import nibabel.streamlines
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pyogrio
import pyproj
import pytest
import shapely
from trx import trx_file_memmap

import zardine
from zardine import vectors
from zardine.errors import DataError, ZarrUserWarning
from zardine.vectors.exchange.format_features import FEATURES, Fate, feature_tables
from zardine.vectors.exchange.formats import FORMATS, export_vectors, import_vectors

PAGE = Path(__file__).parents[2] / "docs/vector-formats.md"
PLACES = np.array([[0, 0, 0], [4, 0, 1], [5, 4, 2], [6, 4, 3]], "f4")
THIRDS = np.array([[1 / 3, 0, 0], [4 / 3, 0, 1 / 7], [5, 4, 2], [6, 4, 3e6 / 7]])
WKT = pyproj.CRS.from_epsg(25832).to_wkt()
TABLES = ("csv", "feather", "parquet-table")
NAMED: dict[str, Any] = {
    "four_axes": {"x": "x", "y": "y", "z": "z", "time": "w"},
    "axis_names": {"x": "a", "y": "b", "z": "c"},
}
"""What an import of a table is told of columns that are not called as usual."""
TOLD: dict[str, str] = {
    "two_axes": "2 axes",
    "four_axes": "4 axes",
    "measures": "vertex attributes cannot be kept: m",
    "axis_names": "names of axes cannot be kept",
    "units": "units of axes cannot be kept",
    "precision": "positions are rounded",
    "object_attributes": "object attributes|attributes of objects",
    "link_attributes": "link attributes",
    "ids": "'object_id'|id of the object|ids of objects|belong to",
    "groups": "groups cannot be kept",
    "normals": "'normal'|: normal",
    "uv": "'uv'|: uv",
    "colours": "'red'|: .*red",
    "crs": "reference system cannot be kept",
    "bounds": "bounds",
    "metadata": "attributes of the store cannot be kept: 'instrument'",
}
"""What an export says of a feature; of an attribute it says the name ``n``."""
VALUES: dict[str, Any] = {
    "integers": [2**60 + 1, -5, 7, 2**53 + 1],
    "floats": [1 / 3, -2e-30, 5e200, np.nan],
    "booleans": [True, False, False, True],
    "text": ["a", "ü", "", "long " * 20],
    "times": pd.to_datetime(["2020-01-02", None, "1969-07-20T20:17:40.25", "2038-01-19"], format="ISO8601"),
    "several_values": [[1.5, 2.5], [3, 4], [5, 6], [7, 8]],
    "missing_integers": pd.array([1, None, 3, 4], "Int64"),
    "missing_booleans": pd.array([True, None, False, True], "boolean"),
    "missing_text": np.array(["a", None, "c", "d"], object),
    "vertex_attributes": np.arange(4, dtype="f4"),
}
FILLS: dict[str, Any] = {"missing_integers": 0, "missing_booleans": False, "missing_text": ""}
READ: dict[str, Any] = {
    "times": ["2020-01-02T00:00:00", None, "1969-07-20T20:17:40.250000", "2038-01-19T00:00:00"],
    "missing_integers": [1, np.nan, 3, 4],
    "missing_booleans": [1, np.nan, 0, 1],
}
"""What an import makes of values that it tells of."""
NO_DATA = [1, -1, 3, 4]
"""Integers of LAS, of which one stands for none."""
SHADES = {name: np.array([1, 20, 255, at], "u1") for at, name in enumerate(("red", "green", "blue"))}


def cases(part: str) -> list[Any]:
    """The formats, features and fates of an import (``read``) or an export (``written``)."""
    every = ((name, feature, fate) for name, each in FORMATS.items() for feature, fate in each.fates.items())
    return [
        pytest.param(name, feature, getattr(fate, part), id=f"{name}-{feature}")
        for name, feature, fate in every
        if getattr(fate, part) != "none"
    ]


def recorded(call: Any, *arguments: Any, **options: Any) -> str:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call(*arguments, **options)
    texts = (str(each.message) for each in found if each.category is ZarrUserWarning)
    return "\n".join(text.partition(": ")[2] for text in texts)  # without the file, whose folder is called as the test


def kind_of(name: str) -> str:
    kinds = {"swc": "skeleton", "geff": "graph"} | dict.fromkeys(("trk", "tck", "trx"), "lines")
    return (kinds | dict.fromkeys(("ply", "obj", "stl"), "mesh")).get(name, "points")


def write(path: Path, kind: str, places: Any = PLACES, values: Any = None, **more: Any) -> None:
    """Write a store of four vertices."""
    options = {"vertex_attributes": values or {}, "chunk_shape": 1e7, **more}
    if kind == "lines":
        owners, of_lines = options.pop("object_ids", [0, 0, 1, 1]), options.pop("object_attributes", {})
        ids = list(dict.fromkeys(owners))
        vectors.write_polylines(
            path,
            [places[:2], places[2:]],
            object_ids=ids,
            object_attributes=of_lines,
            geometry_type="polyline",
            **options,
        )
    elif kind == "skeleton":
        vectors.write_skeleton(path, places, [-1, 0, -1, 2], **options)
    elif kind == "mesh":
        vectors.write_mesh(path, places, [[0, 1, 2], [0, 2, 3]], **options)
    elif kind == "graph":
        vectors.write_graph(path, places, [[0, 1], [2, 3]], **options)
    else:
        vectors.write_points(path, places, **options)


OF_SHP: dict[str, Any] = {
    "integers": [2**53 + 1, -5, 7, 10**17 - 1],
    "floats": [0.25, -2e-3, 5e5, np.nan],
    "text": ["a", "ü", "b", "long" * 20],
    "times": [datetime.date(2020, 1, 2), None, datetime.date(1969, 7, 20), datetime.date(2038, 1, 19)],
}
"""What a Shapefile holds of these."""


def write_feature(path: Path, name: str, feature: str) -> None:
    """Write a store with a feature."""
    kind = kind_of(name)
    flat = np.concatenate([PLACES, PLACES[:, :1]], axis=1)
    objects: dict[str, Any] = {"object_ids": [7, 7, 9, 9]}
    alone = {"object_ids": [7, 8, 9, 10]}
    lines = {"object_attributes": {"n": [1, 2]}}
    tables: dict[str, Callable[[], Any]] = {
        "two_axes": lambda: write(path, kind, PLACES[:, :2]),
        "four_axes": lambda: write(path, kind, flat),
        "measures": lambda: write(path, "lines", values={"m": [1.0, 2, 3, 4]}),
        "axis_names": lambda: write(path, kind, axes=["a", "b", "c"]),
        "units": lambda: write(path, kind, axes=[{"name": axis, "unit": "micrometer"} for axis in "xyz"]),
        "scales": lambda: write(path, kind, crs=SCALES[kind], axes=[{"name": axis, "unit": "pixel"} for axis in "xyz"]),
        "precision": lambda: write(path, kind, THIRDS),
        "object_attributes": lambda: write(path, kind, **(objects if kind != "lines" else {}), **lines),
        "link_attributes": lambda: write(path, kind, link_attributes={"n": [5, 6]}),
        "ids": lambda: write(path, kind, **objects),
        "groups": lambda: write(path, kind, **(objects if kind != "points" else alone), groups=[[7], [9]]),
        "normals": lambda: write(path, kind, values={"normal": PLACES / 8}),
        "uv": lambda: write(path, kind, values={"uv": PLACES[:, :2] / 8}),
        "colours": lambda: write(path, kind, values=SHADES),
        "crs": lambda: write(path, kind, crs={"wkt": WKT}),
        "bounds": lambda: write(path, kind, bounds=([-9, -9, -9], [99, 99, 99])),
        "metadata": lambda: (write(path, kind), zardine.open_group(path, mode="r+").attrs.update(instrument="A")),
    }
    if feature in tables:
        tables[feature]()
        return
    values = {"type": [1, 2, 3, 4]} if (name, feature) == ("swc", "vertex_attributes") else {"n": VALUES[feature]}
    if (name, feature) == ("shp", "integers"):
        values = {"n": OF_SHP["integers"]}
    write(path, kind, values=values)


SCALES = {
    "points": {"las": {"scales": [0.5, 0.25, 1], "offsets": [1, 2, 3], "gps_time_type": "STANDARD"}},
    "graph": {"geff": {"axes": [{"name": "x", "unit": "pixel", "scale": 2.5, "scaled_unit": "meter", "offset": 3}]}},
}


def in_order(found: Any, values: Any) -> list[Any]:
    """Values of vertices in the order of x."""
    taken = [values[row] for row in np.argsort(found.positions[:, 0])]
    return [each.tolist() if isinstance(each, np.ndarray | np.generic) else each for each in taken]


def same(found: Any, wanted: Any) -> bool:
    one, other = (np.asarray(each, object) for each in (found, wanted))
    if one.shape != other.shape:
        return False
    pairs = zip(one.reshape(-1).tolist(), other.reshape(-1).tolist(), strict=True)
    return all(a == b or (a != a and b != b) for a, b in pairs)


def is_kept(path: Path, source: Path, name: str, feature: str) -> bool:
    """Whether a store that has come back has a feature, as the one that was exported."""
    v, was = vectors.open(path), vectors.open(source)
    found = v.read()
    tables: dict[str, Callable[[], Any]] = {
        "two_axes": lambda: found.positions.shape == (4, 2),
        "four_axes": lambda: found.positions.shape == (4, 4),
        "axis_names": lambda: [each["name"] for each in v.axes] == ["a", "b", "c"],
        "units": lambda: {each["unit"] for each in v.axes} == {"micrometer"},
        "scales": lambda: all(v.crs[key].items() >= each.items() for key, each in was.crs.items()),
        "precision": lambda: same(sorted(found.positions.tolist()), sorted(THIRDS.tolist())),
        "ids": lambda: objects_of(v, found) == {7: [0, 4], 9: [5, 6]},
        "groups": lambda: sorted(map(len, vectors.read_groups(path).members)) == [1, 1],
        "normals": lambda: same(in_order(found, found.attributes["normal"]), (PLACES / 8).tolist()),
        "colours": lambda: all(
            same(in_order(found, found.attributes[each]), SHADES[each].tolist()) for each in ("red", "green", "blue")
        ),
        "crs": lambda: pyproj.CRS.from_wkt(v.crs["wkt"]) == pyproj.CRS.from_wkt(WKT),
        "link_attributes": lambda: (
            sorted((found.edge_attributes if name == "geff" else found.face_attributes)["n"]) == [5, 6]
        ),
        "object_attributes": lambda: object_values(v, found) == {1, 2},
    }
    if feature in tables:
        return bool(tables[feature]())
    if (name, feature) == ("swc", "vertex_attributes"):
        return same(in_order(found, found.attributes["type"]), [1, 2, 3, 4])
    if (name, feature) == ("precomputed", "several_values"):
        return same(in_order(found, found.attributes["n_0"]), [1.5, 3, 5, 7])
    before = was.read()
    return same(in_order(found, found.attributes["n"]), in_order(before, before.attributes["n"]))


def objects_of(v: Any, found: Any) -> dict[int, list[int]]:
    """The vertices of objects, by x."""
    attributes = {**found.attributes, **getattr(found, "object_attributes", {})}
    if hasattr(found, "starts"):
        ids = attributes.get("object_id", found.object_ids)
        owners = np.repeat(ids, np.diff(found.starts))
    else:
        owners = attributes.get("object_id", found.object_ids)
    x = found.positions[:, 0]
    return {int(each): sorted(x[owners == each].astype(int).tolist()) for each in np.unique(owners)}


def object_values(v: Any, found: Any) -> set[int]:
    tables = {**found.attributes, **getattr(found, "object_attributes", {}), **v.objects.attributes}
    return {int(each) for each in tables["n"]}


@pytest.mark.parametrize(("name", "feature", "verdict"), cases("written"))
def test_exports(tmp_path: Path, name: str, feature: str, verdict: str) -> None:
    source, target = tmp_path / "a.zv", tmp_path / f"a{FORMATS[name].endings[0]}"
    if feature == "object_attributes" and name in ("geojson", "gpkg", "shp", "parquet", "precomputed"):
        places = PLACES.reshape(2, 2, 3)
        vectors.write_lines(source, places, object_attributes={"n": [1, 2]}, chunk_shape=1e7)
    else:
        write_feature(source, name, feature)
    if verdict == "refused":
        with pytest.raises(DataError, match=TOLD[feature]):
            export_vectors(source, target, format=name)
        assert not target.exists()
        return
    text = recorded(export_vectors, source, target, format=name)
    if verdict == "told":
        pattern = TOLD.get(feature, "'n'|attributes cannot be kept: n|as numbers, 0 and 1: n")
        assert re.search(pattern, text), text
        return
    assert TOLD.get(feature, "'n'").split("|")[0] not in text
    more = NAMED.get(feature, {}) if name in TABLES else {}
    recorded(import_vectors, target, tmp_path / "b.zv", chunk_shape=1e7, format=name, **more)
    assert is_kept(tmp_path / "b.zv", source, name, feature), text


# imports: files that other programs, or their libraries, write


def columns_of(feature: str) -> dict[str, Any]:
    return {"n": VALUES[feature]} if feature in VALUES else {}


def streamlines(path: Path, feature: str) -> None:
    lines, more, header = [PLACES[:2], PLACES[2:]], {}, {}
    along = {"several_values": PLACES, "vertex_attributes": np.arange(4.0)[:, None], "normals": PLACES / 8}
    if feature in along:
        more = {"data_per_point": {"n": np.split(along[feature], 2)}}
    elif feature == "colours":
        more = {"data_per_point": {each: np.split(shade[:, None], 2) for each, shade in SHADES.items()}}
    elif feature == "object_attributes":
        more = {"data_per_streamline": {"n": [[1], [2]]}}
    elif feature == "metadata":
        header = {"step_size": "0.5", "method": "iFOD2"} if path.suffix == ".tck" else {"voxel_sizes": [2, 3, 4]}
        if path.suffix == ".trk":
            header |= {"voxel_to_rasmm": np.diag([2, 3, 4, 1]), "dimensions": [9, 9, 9], "voxel_order": "RAS"}
    elif feature == "comments":
        header = {"comments": "of subject 7"}
    tracts = nibabel.streamlines.Tractogram(lines, affine_to_rasmm=np.eye(4), **more)
    nibabel.streamlines.save(tracts, str(path), header=header or None)


def trx(path: Path, feature: str) -> None:
    file = trx_file_memmap.TrxFile(nb_vertices=4, nb_streamlines=2)
    sequence = nibabel.streamlines.ArraySequence

    def along(values: Any) -> Any:
        made = sequence()
        made._data = np.asarray(values).reshape(4, -1)
        made._offsets, made._lengths = np.array([0, 2], "u8"), np.array([2, 2], "u4")
        return made

    file.streamlines = along(THIRDS if feature == "precision" else PLACES)
    columns = {**columns_of(feature), "normals": {}}.get("n")
    columns = PLACES / 8 if feature == "normals" else columns
    if columns is not None and feature != "object_attributes":
        file.data_per_vertex = {"n": along(columns)}
    if feature == "colours":
        file.data_per_vertex = {each: along(shade) for each, shade in SHADES.items()}
    if feature == "object_attributes":
        file.data_per_streamline = {"n": np.array([[1], [2]])}
    if feature == "groups":
        file.groups = {"left": np.array([0], "u4"), "right": np.array([1], "u4")}
    if feature == "metadata":
        file.header["VOXEL_TO_RASMM"] = np.diag([2, 3, 4, 1]).astype("f4")
        file.header["DIMENSIONS"] = np.array([9, 9, 9], "u2")
    trx_file_memmap.save(file, str(path))
    file.close()


def swc(path: Path, feature: str) -> None:
    rows = THIRDS if feature == "precision" else PLACES
    head = {"scales": "# SCALE 2 2 2\n", "comments": "# ORIGINAL_SOURCE Golgi\n"}.get(feature, "")
    more = " 5" if feature == "metadata" else ""
    step = 10 if feature == "ids" else 1
    lines = [
        f"{at * step} {at} {x!r} {y!r} {z!r} 1 {at * step - step or -1}{more}"
        for at, (x, y, z) in enumerate(rows.tolist(), 1)
    ]
    path.write_text(head + "\n".join(lines) + "\n")


def ply(path: Path, feature: str) -> None:
    of_vertices: dict[str, Any] = {
        "normals": dict(zip(("nx", "ny", "nz"), (PLACES / 8).T.tolist(), strict=True)),
        "uv": dict(zip("st", (PLACES[:, :2] / 8).T.tolist(), strict=True)),
        "colours": SHADES,
        "floats": {"n": VALUES["floats"]},
        "vertex_attributes": {"n": VALUES["vertex_attributes"].tolist()},
    }.get(feature, {})
    kind = "uchar" if feature == "colours" else "double"
    places = THIRDS if feature == "precision" else PLACES
    head = ["ply", "format ascii 1.0", *(["comment TextureFile a.png"] if feature == "comments" else [])]
    head += ["element vertex 4", *(f"property double {axis}" for axis in "xyz")]
    head += [f"property {kind} {each}" for each in of_vertices]
    head += ["element face 2", "property list uchar int vertex_indices"]
    head += ["property int n"] if feature == "link_attributes" else []
    head += ["element edge 1", "property int vertex1"] if feature == "metadata" else []
    rows = [[*place, *values] for place, *values in zip(places.tolist(), *of_vertices.values(), strict=True)]
    faces = [[3, 0, 1, 2], [3, 0, 2, 3]]
    faces = [[*face, n] for face, n in zip(faces, (5, 6), strict=True)] if feature == "link_attributes" else faces
    body = [" ".join(map(str, row)) for row in [*rows, *faces, *([[1]] if feature == "metadata" else [])]]
    path.write_text("\n".join([*head, "end_header", *body]) + "\n")


def obj(path: Path, feature: str) -> None:
    places = (THIRDS if feature == "precision" else PLACES).tolist()
    shades = [f" {r / 255:.8f} {g / 255:.8f} {b / 255:.8f}" for r, g, b in zip(*SHADES.values(), strict=True)]
    lines = [
        f"v {x!r} {y!r} {z!r}" + (shades[at] if feature == "colours" else "") for at, (x, y, z) in enumerate(places)
    ]
    lines += {"comments": ["# Blender"], "metadata": ["usemtl red"]}.get(feature, [])
    values = {"normals": ("vn", PLACES / 8), "uv": ("vt", PLACES[:, :2] / 8)}.get(feature)
    if values is not None:
        lines += [" ".join([values[0], *map(repr, row)]) for row in values[1].tolist()]
    form = {"normals": "{0}//{0}", "uv": "{0}/{0}"}.get(feature, "{0}")
    lines += ["f " + " ".join(form.format(each) for each in face) for face in ((1, 2, 3), (1, 3, 4))]
    path.write_text("\n".join(lines) + "\n")


def stl(path: Path, feature: str) -> None:
    row = np.zeros(2, [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
    row["corners"] = PLACES[[[0, 1, 2], [0, 2, 3]]]
    row["more"] = [5, 6] if feature == "link_attributes" else 0
    head = (b"made by hand" if feature == "comments" else b"").ljust(80, b"\0")
    path.write_bytes(head + (2).to_bytes(4, "little") + row.tobytes())


def las(path: Path, feature: str) -> None:
    header = laspy.LasHeader(point_format=7, version="1.4")
    header.scales, header.offsets = [1e-8, 1e-8, 1e-3] if feature == "precision" else [0.25] * 3, [0.5, 0, 0]
    if feature == "crs":
        header.add_crs(pyproj.CRS.from_wkt(WKT))
    if feature == "metadata":
        header.system_identifier = "scanner 7"
    if feature == "comments":
        header.vlrs.append(laspy.VLR("me", 7, "what I saw", b"much"))
    values = PLACES / 8 if feature == "normals" else columns_of(feature).get("n")
    if values is not None and feature != "missing_integers":
        values = np.asarray(values)
        kind = f"{values.shape[1]}{values.dtype.str[1:]}" if values.ndim > 1 else values.dtype
        header.add_extra_dims([laspy.ExtraBytesParams("n", kind)])
    if feature == "missing_integers":
        values = np.array(NO_DATA, "i2")
        header.add_extra_dims([laspy.ExtraBytesParams("n", "i2", no_data=np.array([NO_DATA[1]]))])
    cloud = laspy.LasData(header)
    cloud.xyz = PLACES - [0.25, 0, 0]
    if values is not None:
        cloud["n"] = values
    for name, shade in SHADES.items() if feature == "colours" else ():
        cloud[name] = shade.astype("u2") * 257
    cloud.write(str(path))


def features(path: Path, feature: str) -> None:
    places = {"two_axes": PLACES[:, :2], "precision": THIRDS}.get(feature, PLACES)
    shapes: Any = shapely.points(places.astype("f8"))
    columns = columns_of(feature)
    columns = {name: list(each) if feature == "several_values" else each for name, each in columns.items()}
    if path.suffix == ".shp" and feature in OF_SHP:
        columns = {"n": OF_SHP[feature]}
    if feature == "measures":
        shapes = shapely.from_wkt([f"POINT ZM ({x} {y} {z} {x + 1})" for x, y, z in PLACES.tolist()])
    if (path.suffix, feature) == (".shp", "times"):
        shape = pa.field("g", pa.binary(), metadata={b"ARROW:extension:name": b"geoarrow.wkb"})
        days = pa.array(OF_SHP["times"], pa.date32())
        table = pa.table([pa.array(shapely.to_wkb(shapes)), days], pa.schema([shape, pa.field("n", pa.date32())]))
        pyogrio.write_arrow(table, str(path), geometry_name="g", geometry_type="Point Z", crs="EPSG:25832")
        return
    if path.suffix == ".geojson" and feature in ("measures", "metadata", "comments"):
        more = {"metadata": {"instrument": "A"}, "comments": {"description": "of subject 7"}}.get(feature, {})
        points = [
            {"type": "Point", "coordinates": [*place, *[5] * (feature == "measures")]} for place in PLACES.tolist()
        ]
        each = [{"type": "Feature", "properties": {}, "geometry": point} for point in points]
        path.write_text(json.dumps({"type": "FeatureCollection", **more, "features": each}))
        return
    if feature == "object_attributes":
        shapes, columns = shapely.linestrings(PLACES.reshape(2, 2, 3).astype("f8")), {"n": [1, 2]}
    frame = geopandas.GeoDataFrame(columns, geometry=shapes, crs=WKT)
    if path.suffix == ".parquet":
        frame.index = pd.Index([7, 9, 20, 21], name="fid") if feature == "ids" else frame.index
        frame.to_parquet(path)
        if feature == "metadata":
            add_metadata(path)
    elif feature == "measures":  # geopandas gives GDAL a form of WKB with measures that it does not read
        shape = pa.field("g", pa.binary(), metadata={b"ARROW:extension:name": b"geoarrow.wkb"})
        table = pa.table([pa.array(shapely.to_wkb(shapes, flavor="iso"))], pa.schema([shape]))
        pyogrio.write_arrow(table, str(path), geometry_name="g", geometry_type="Unknown", crs="EPSG:25832")
    elif feature == "ids":
        feats = (each | {"id": number} for each, number in zip(frame.iterfeatures(), (7, 9, 20, 21), strict=True))
        text = {"type": "FeatureCollection", "features": list(feats)}
        geojson = path.with_name("ids.geojson")
        geojson.write_text(json.dumps(text))
        if path.suffix == ".geojson":
            geojson.rename(path)
        else:
            frame.to_file(path, index=False)
            with sqlite3.connect(path) as base:
                for old, new in ((4, 21), (3, 20), (2, 9), (1, 7)):
                    base.execute("PRAGMA trusted_schema = 0")
                    _rename_fid(base, path.stem, old, new)
    elif (path.suffix, feature) == (".geojson", "precision"):  # GDAL writes 15 decimals
        path.write_text(frame.to_json())
    else:
        frame.to_file(path, **({"layer_options": {"DESCRIPTION": "of subject 7"}} if feature == "comments" else {}))
        if feature == "metadata":
            frame.to_file(path, layer="other", mode="a")


def add_metadata(path: Path) -> None:
    """Say more of a file of Arrow and of its last column."""
    library: Any = pa.parquet if path.suffix == ".parquet" else pa.feather
    found = library.read_table(path)
    last = found.schema.field(-1).with_metadata({"unit": "mV"})
    schema = found.schema.set(len(found.schema) - 1, last).with_metadata({**found.schema.metadata, b"made": b"by me"})
    found = pa.Table.from_arrays(found.columns, schema=schema)
    (library.write_table if path.suffix == ".parquet" else library.write_feather)(found, path)


def _rename_fid(base: Any, table: str, old: int, new: int) -> None:
    for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        base.execute(f'DROP TRIGGER "{name}"')
    base.execute(f'UPDATE "{table}" SET fid = ? WHERE fid = ?', (new, old))


def geff(path: Path, feature: str) -> None:
    root = zardine.open_group(str(path), mode="w", zarr_format=3)
    names = {"two_axes": "xy", "four_axes": "xyzt", "axis_names": "abc"}.get(feature, "xyz")
    rows = np.concatenate([THIRDS if feature == "precision" else PLACES, PLACES[:, :1]], axis=1)
    ids = [7, 9, 20, 21] if feature == "ids" else range(4)
    root.create_array("nodes/ids", data=np.array(ids, "u8"))
    root.create_array("edges/ids", data=np.array(ids, "u8").reshape(2, 2))
    for at, name in enumerate(names):
        root.create_array(f"nodes/props/{name}/values", data=rows[:, at].copy())
    if "n" in columns_of(feature):
        values = np.array(VALUES[feature], object)
        absent = np.asarray(pd.isna(values)) if feature.startswith("missing") else np.zeros(4, bool)
        plain = np.array([FILLS[feature] if no else each for each, no in zip(values.tolist(), absent, strict=True)])
        kind = {"text": np.str_, "vertex_attributes": "f4"}.get(feature)
        root.create_array("nodes/props/n/values", data=plain if kind is None else plain.astype(kind))
        if absent.any():
            root.create_array("nodes/props/n/missing", data=absent)
    if feature == "link_attributes":
        root.create_array("edges/props/n/values", data=np.array([5, 6]))
    axes: list[dict[str, Any]] = [{"name": name} for name in names]
    if feature in ("units", "scales"):
        axes = [{**each, "unit": "micrometer" if feature == "units" else "pixel"} for each in axes]
    if feature == "scales":
        axes[0] |= {"scale": 2.5, "scaled_unit": "meter", "offset": 3}
    about: dict[str, Any] = {"directed": False, "axes": axes}
    if feature == "metadata":
        about |= {"directed": True, "extra": {"by": "me"}}
    if feature == "comments":
        about["node_props_metadata"] = {"n": {"identifier": "n", "dtype": "int64", "description": "what"}}
    root.attrs["geff"] = about


def precomputed(path: Path, feature: str) -> None:
    made = path.with_name("made.zv")
    if feature == "object_attributes":
        vectors.write_lines(made, PLACES.reshape(2, 2, 3), object_attributes={"n": [1, 2]}, chunk_shape=1e7)
    else:
        write_feature(made, "precomputed", "vertex_attributes" if feature == "comments" else feature)
    recorded(export_vectors, made, path)
    info = json.loads((path / "info").read_text())
    if feature == "metadata":
        info["instrument"] = "A"
    if feature == "comments":
        info["properties"] = [{**each, "description": "of subject 7"} for each in info["properties"]]
    (path / "info").write_text(json.dumps(info))


def table(path: Path, feature: str) -> None:
    names = {"two_axes": "xy", "four_axes": "xyzw", "axis_names": "abc"}.get(feature, "xyz")
    places = THIRDS if feature == "precision" else np.concatenate([PLACES, PLACES[:, :1]], axis=1)
    columns = {name: places[:, at] for at, name in enumerate(names)}
    values = {name: list(each) if feature == "several_values" else each for name, each in columns_of(feature).items()}
    frame = pd.DataFrame({**columns, **values, **(SHADES if feature == "colours" else {})})
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    if path.suffix in (".parquet", ".feather"):
        if feature == "metadata":
            add_metadata(path)
    else:
        frame = frame.assign(n=READ["times"]) if feature == "times" else frame
        text = frame.to_csv(index=False)
        text = text.replace("2.0,\n", '2.0,""\n') if feature == "text" else text  # pandas has no quotes there
        path.write_text(("# of subject 7\n" if feature == "comments" else "") + text)


SOURCES: Mapping[str, Callable[[Path, str], None]] = {
    **dict.fromkeys(("trk", "tck"), streamlines),
    "trx": trx,
    "swc": swc,
    "ply": ply,
    "obj": obj,
    "stl": stl,
    "las": las,
    "laz": las,
    **dict.fromkeys(("geojson", "gpkg", "shp", "parquet"), features),
    **dict.fromkeys(TABLES, table),
    "geff": geff,
    "precomputed": precomputed,
}
SAYS: dict[str, str] = {
    "scales": "scale is not applied",
    "metadata": "left out",
    "comments": "left out",
    "ids": "left out",
    "measures": "coordinates beyond the third",
    "several_values": "'n'",
}
"""What an import says of a feature, where it does not name the attribute ``n``."""


def has(path: Path, name: str, feature: str) -> bool:
    """Whether a store has what the file of a feature has."""
    v = vectors.open(path)
    found = v.read()
    places = THIRDS if feature == "precision" else PLACES
    column = {**found.attributes, **getattr(found, "object_attributes", {})}.get
    tables: dict[str, Callable[[], Any]] = {
        "two_axes": lambda: found.positions.shape == (4, 2),
        "four_axes": lambda: found.positions.shape == (4, 4),
        "measures": lambda: in_order(found, column("m")) == (PLACES[:, 0] + 1).tolist(),
        "axis_names": lambda: "".join(each["name"] for each in v.axes) == "abc",
        "units": lambda: {each["unit"] for each in v.axes} == {"micrometer"},
        "scales": lambda: v.crs["las"]["scales"] == [0.25] * 3 if name in ("las", "laz") else v.crs["geff"]["axes"],
        "object_attributes": lambda: object_values(v, found) == {1, 2},
        "link_attributes": lambda: (
            [5, 6]
            in [
                sorted(each.tolist())
                for each in (getattr(found, "edge_attributes", None) or found.face_attributes).values()
            ]
        ),
        "ids": lambda: {7, 9} <= {*np.asarray(column("fid", column("node_id", found.object_ids))).tolist()},
        "groups": lambda: sorted(map(len, vectors.read_groups(path).members)) == [1, 1],
        "colours": lambda: (
            in_order(found, column("green"))
            == (SHADES["green"].astype(int) * (257 if name in ("las", "laz") else 1)).tolist()
        ),
        "normals": lambda: 0.625 in np.asarray(column("n", column("normal", column("nx")))),
        "uv": lambda: 0.625 in np.asarray(column("uv", column("s"))),
        "crs": lambda: pyproj.CRS.from_wkt(v.crs["wkt"]) == pyproj.CRS.from_wkt(WKT),
        "metadata": lambda: any(
            text in str(v.crs) for text in ("'voxel_sizes': [2.0, 3.0, 4.0]", "'extra': {'by': 'me'}")
        ),
        "comments": lambda: v.crs["geff"]["node_props_metadata"] == {"n": {"description": "what"}},
    }
    if feature == "precision":
        wanted = np.round(PLACES.astype("f8") - [0.25, 0, 0], 9) if name in ("las", "laz") else places
        return same(sorted(found.positions.tolist()), sorted(wanted.tolist()))
    if feature in tables:
        return bool(tables[feature]())
    wanted = {"swc": ("type", [1, 2, 3, 4])}.get(name, ("n", READ.get(feature, VALUES[feature])))
    if name in ("las", "laz") and feature == "missing_integers":
        wanted = ("n", NO_DATA)
    if name in ("trk",) and feature == "several_values":
        wanted = ("n", PLACES.tolist())
    if name == "shp":
        times = ["2020-01-02T00:00:00", None, "1969-07-20T00:00:00", "2038-01-19T00:00:00"]
        wanted = ("n", {**OF_SHP, "times": times}.get(feature, wanted[1]))
    values = column(wanted[0])
    return values is not None and same(in_order(found, values), list(np.asarray(wanted[1], object)))


@pytest.mark.parametrize(("name", "feature", "verdict"), cases("read"))
def test_imports(tmp_path: Path, name: str, feature: str, verdict: str) -> None:
    source, path = tmp_path / f"in{FORMATS[name].endings[0]}", tmp_path / "a.zv"
    SOURCES[name](source, feature)
    more = NAMED.get(feature, {}) if name in TABLES else {}
    text = recorded(import_vectors, source, path, chunk_shape=1e7, **more)
    if verdict == "told":
        assert text
        assert SAYS.get(feature, "'n'") in text
        assert feature not in READ or has(path, name, feature)
        return
    assert SAYS.get(feature, "'n'") not in text
    assert has(path, name, feature), vectors.open(path).read()


def test_all_features_of_all_formats_have_a_fate() -> None:
    for each in FORMATS.values():
        assert set(each.fates) == set(FEATURES)
        assert all(isinstance(fate, Fate) for fate in each.fates.values())
        assert len({fate.written for fate in each.fates.values()}) > 1


def rewritten(page: str) -> str:
    """The page with the tables of the formats."""
    return page[: page.index("## Import")] + feature_tables({name: each.fates for name, each in FORMATS.items()})


def test_the_page_has_the_tables() -> None:
    assert rewritten(PAGE.read_text(encoding="utf-8")) == PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
