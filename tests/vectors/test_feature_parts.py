"""Features that are read some at a time: the same as at once, whatever only a part of them shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas
import pytest
import shapely

from vectors.test_import_plans import OPTIONS, at_once, in_parts, stored, told
from zardine import vectors
from zardine.errors import DataError, PlanError
from zardine.jobs import Plan
from zardine.storage import LocalStore, MemoryStore
from zardine.vectors.exchange.feature_parts import FeatureParts
from zardine.vectors.exchange.formats import import_vectors, plan_import

COUNT, BIG = 200, 720575940621039145
SLICED = pytest.mark.parametrize("ending", ["gpkg", "shp"])


def shapes(kind: str) -> list[Any]:
    rng = np.random.default_rng(1)
    points = rng.uniform(0, 900, (COUNT, 4, 2))
    if kind == "points":
        return [None if number == 150 else shapely.Point(each[0]) for number, each in enumerate(points)]
    if kind == "lines":
        lines: list[Any] = [shapely.LineString(each) for each in points]
        lines[180] = shapely.MultiLineString([points[180], points[181]])
        return lines
    polygons: list[Any] = [shapely.box(x, y, x + 5, y + 5) for x, y in points[:, 0]]
    polygons[199] = polygons[199].difference(polygons[199].centroid.buffer(1))
    return polygons


def columns(ending: str) -> dict[str, Any]:
    """Those of which a part does not tell what all of it is."""
    n = np.arange(COUNT)
    found: dict[str, Any] = {
        "n": n,
        "late": pandas.array([None if each == 170 else int(each) for each in n], "Int64"),
        "large": pandas.array([BIG + int(each) for each in n], "Int64"),
        "f": np.where(n > 190, np.nan, n / 7),
        "text": [None if each < 120 else f"text {each % 5}" for each in n],
        "day": [pandas.Timestamp(2020, 1, 1 + each % 28) if each > 100 else pandas.NaT for each in n],
    }
    if ending == "gpkg":  # a Shapefile has no integers that are missing beside large ones, and no truth values
        found["root"] = pandas.array([None if each == 199 else BIG + int(each) for each in n], "Int64")
        found["far"] = pandas.array([BIG if each == 9 else None if each == 100 else int(each) for each in n], "Int64")
        found["ok"] = pandas.array([None if each == 140 else bool(each % 2) for each in n], "boolean")
        found["sure"] = n % 3 == 0
        found["none"] = pandas.array([None] * COUNT, "Int64")
    return found


def made(path: Path, kind: str) -> Path:
    geopandas.GeoDataFrame(columns(path.suffix[1:]), geometry=shapes(kind), crs=25832).to_file(path)
    return path


def sliced(source: Path, path: Path) -> Plan:
    plan = in_parts(plan_import(source, str(path), **OPTIONS), source.stat().st_size // (24 * 9))
    assert len(plan) > 5
    return plan


@SLICED
@pytest.mark.parametrize("kind", ["points", "lines", "polygons"])
def test_the_same_as_at_once(ending: str, kind: str, tmp_path: Path) -> None:
    source, path = made(tmp_path / f"in.{ending}", kind), tmp_path / "a.zv"
    plan = sliced(source, path)
    plan.save(tmp_path / "plan.json")
    plan = Plan.load(tmp_path / "plan.json")
    plan.run_part(part=(2, 2))
    text = told(plan.run)
    assert stored(LocalStore(str(path))) == at_once(source)
    whole = told(lambda: import_vectors(source, MemoryStore(), **OPTIONS))
    assert sorted(text.split("\n")) == sorted(whole.split("\n"))
    assert ("features without a geometry" in text) == (kind == "points")
    assert ("stored as their outlines" in text) == (kind == "polygons")
    if ending == "gpkg":
        assert "'root' is stored as text" in text
        assert "'far' is stored as text" in text
        assert "'large'" not in text
    found: Any = vectors.read_points(str(path)).attributes if kind == "points" else None
    found = vectors.read_objects(str(path)).attributes if found is None else found
    assert ("feature" in found) == (kind != "points")
    assert sorted(found["large"].tolist())[-1] == BIG + COUNT - 1


def test_only_some_are_in_memory(tmp_path: Path) -> None:
    source = made(tmp_path / "in.gpkg", "points")
    whole, parts = FeatureParts(source, {}, 2**19), FeatureParts(source, {}, source.stat().st_size // (24 * 9))
    assert (whole.count, whole.outline) == (1, None)
    assert parts.count >= 9
    assert parts.memory < whole.memory
    assert max(len(parts.read(number).positions) for number in range(parts.count)) <= -(-COUNT // 9) + 1
    assert FeatureParts(made(tmp_path / "in.geojson", "points"), {}, 10).count == 1


def test_features_that_do_not_go_together(tmp_path: Path) -> None:
    """Also where they are in different parts: told before any is stored."""
    mixed = [*shapes("points")[:100], *shapes("lines")[:100]]
    source = tmp_path / "in.gpkg"
    geopandas.GeoDataFrame({"n": range(COUNT)}, geometry=mixed).to_file(source)
    with pytest.raises(DataError, match="holds LineString, Point: a store holds points, or lines"):
        sliced(source, tmp_path / "a.zv")
    deep = [shapely.Point(number, 1, 2) if number > 150 else shapely.Point(number, 1) for number in range(COUNT)]
    geopandas.GeoDataFrame({"n": range(COUNT)}, geometry=deep).to_file(source)
    with pytest.raises(DataError, match="of two and of three coordinates"):
        sliced(source, tmp_path / "a.zv")
    assert not (tmp_path / "a.zv").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"columns": {"n": "O"}},
        {"columns": {"n": "nonsense"}},
        {"columns": None},
        {"kinds": ["Curve"]},
        {"kinds": None},
        {"several": 1},
        {"missing": "x"},
        {"depths": [2]},
    ],
)
def test_plans_that_do_not_fit(change: dict[str, Any], tmp_path: Path) -> None:
    source = made(tmp_path / "in.gpkg", "points")
    outline = FeatureParts(source, {}, source.stat().st_size // (24 * 9)).outline
    with pytest.raises(PlanError, match="plan the import anew"):
        FeatureParts(source, {}, 10, {**outline, **change})
