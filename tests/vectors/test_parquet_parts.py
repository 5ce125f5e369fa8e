"""GeoParquet by its row groups: the same as where all of it is read at once, and what has to be read so."""

from __future__ import annotations

import json
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas
import pyarrow.parquet
import pytest
import shapely

from effort import SOAK
from zardine import vectors
from zardine.errors import DataError, UnsupportedError, ZarrUserWarning
from zardine.storage import MemoryStore, Store
from zardine.vectors.exchange.feature_parts import FeatureParts
from zardine.vectors.exchange.formats import import_vectors
from zardine.vectors.exchange.import_work import PARTS
from zardine.vectors.exchange.parquet_parts import ParquetParts, parquet_parts

COUNT = 50


def shapes_of(kind: str, rng: np.random.Generator) -> list[Any]:
    """Points or lines, some of them missing or empty."""
    rank = 3 if kind.endswith("Z") else 2
    if kind.startswith("Point"):
        found: list[Any] = [shapely.Point(each) for each in rng.uniform(0, 90, (COUNT, rank))]
    else:
        found = [shapely.LineString(rng.uniform(0, 90, (length, rank))) for length in rng.integers(2, 9, COUNT)]
    empty = shapely.from_wkt("POINT EMPTY" if kind.startswith("Point") else "LINESTRING EMPTY")
    found[7], found[30] = None, None if rank == 3 else empty  # which has two coordinates
    return found


def table(kind: str = "Point", crs: Any = None, **columns: Any) -> Any:
    rng = np.random.default_rng(0)
    given = {
        "n": np.arange(COUNT),
        "small": rng.integers(0, 9, COUNT).astype("u1"),
        "single": rng.uniform(0, 1, COUNT).astype("f4"),
        "some": np.where(np.arange(COUNT) % 5, 1.5, np.nan),
        "truth": rng.uniform(0, 1, COUNT) < 0.5,
        "a/b": np.arange(COUNT),
        **columns,
    }
    return geopandas.GeoDataFrame(given, geometry=shapes_of(kind, rng), crs=crs)


def stored(store: Store) -> dict[str, Any]:
    found = {key: bytes(store.get(key) or b"") for key in store.list()}
    return {key: json.loads(value) if key.endswith("zarr.json") else value for key, value in found.items()}


def both_ways(file: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Any, Any, int]:
    """What is stored, and warned of, by row groups and at once; how many row groups were read."""
    found, read, count = list[Any](), ParquetParts.read, list[int]()

    def counting(parts: ParquetParts, number: int) -> Any:
        count.append(number)
        return read(parts, number)

    monkeypatch.setattr(ParquetParts, "read", counting)
    for whole in (False, True):
        monkeypatch.setitem(PARTS, "parquet", FeatureParts if whole else parquet_parts)
        store = MemoryStore()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            import_vectors(file, store, **{"chunk_shape": 30, **options})
        assert vectors.validate(store).findings == ()
        found.append((stored(store), sorted(str(each.message) for each in told if each.category is ZarrUserWarning)))
    return found[0], found[1], len(count)


GEOMETRIES = ["Point", "Point Z", "LineString", "LineString Z"]
CASES = list(product(GEOMETRIES, [None, 25832, 4326]))


@pytest.mark.parametrize(("kind", "crs"), CASES if SOAK else CASES[::2])
def test_the_same_as_at_once(kind: str, crs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.parquet"
    table(kind, crs).to_parquet(file, row_group_size=16)
    parts, whole, count = both_ways(file, monkeypatch)
    assert parts == whole
    assert count == 4
    assert any("2 features without a geometry" in each for each in parts[1])
    other = tmp_path / "b.parquet"
    table(kind, crs).iloc[::2].to_parquet(other, row_group_size=16, index=True)  # an index without a name
    parts, whole, count = both_ways(other, monkeypatch, bounds=([0] * 3, [90] * 3) if "Z" in kind else None)
    assert parts == whole
    assert count == 2


BY_GROUPS: dict[str, Any] = {
    "text": table(t=[f"text {number}" for number in range(COUNT)]),
    "missing text": table(t=[None if number % 3 else f"text {number}" for number in range(COUNT)]),
    "no text": table(t=pandas.array([None] * COUNT, dtype="string")),
    "lines": table("LineString", t=pandas.Categorical([f"{number % 7}" for number in range(COUNT)])),
    "dates": table(t=pandas.date_range("2026-01-01", periods=COUNT)),
    "times": table(t=[None, *pandas.date_range("2026-01-01 11:00", periods=COUNT - 1, freq="7h", tz="Asia/Tokyo")]),
    "days": table(t=pandas.date_range("2026-01-01", periods=COUNT).date),
    "missing integers": table(t=pandas.array([None, *range(COUNT - 1)], dtype="Int64")),
    "missing truth": table(t=pandas.array([None, *[True] * (COUNT - 1)], dtype="boolean")),
}


@pytest.mark.parametrize("name", BY_GROUPS)
def test_text_and_missing_values_by_row_groups(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.parquet"
    BY_GROUPS[name].to_parquet(file, row_group_size=16)
    parts, whole, count = both_ways(file, monkeypatch)
    assert parts == whole
    assert count == 4


AT_ONCE: dict[str, Any] = {
    "large integers": table(t=pandas.array([None, 2**60, *range(COUNT - 2)], dtype="Int64")),
    "a named index": table(t=np.arange(COUNT)).set_index("t"),
    "two geometries": table(t=geopandas.points_from_xy(np.arange(COUNT), np.arange(COUNT))),
    "polygons": geopandas.GeoDataFrame({"n": [1]}, geometry=[shapely.box(0, 0, 5, 5)]),
    "several parts": geopandas.GeoDataFrame({"n": [1]}, geometry=[shapely.MultiPoint([(0, 0), (5, 5)])]),
    "half floats": table(t=np.arange(COUNT).astype("f2")),
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_is_read_at_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.parquet"
    AT_ONCE[name].to_parquet(file)
    parts, whole, count = both_ways(file, monkeypatch)
    assert parts == whole
    assert count == 0
    assert len(vectors.plan_import(file, str(tmp_path / "a.zv"))) == 1
    assert not (tmp_path / "a.zv").exists()


def with_metadata(file: Path, **column: Any) -> None:
    """Let the file say something else of its geometries."""
    read = pyarrow.parquet.read_table(file)
    about = json.loads(read.schema.metadata[b"geo"])
    about["columns"]["geometry"] |= column
    changed = {**read.schema.metadata, b"geo": json.dumps(about).encode()}
    pyarrow.parquet.write_table(read.replace_schema_metadata(changed), file)


def test_metadata_that_say_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.parquet"
    table("Point Z").to_parquet(file)
    for types in (["Point"], ["LineString Z"]):
        with_metadata(file, geometry_types=types)
        parts, whole, count = both_ways(file, monkeypatch)
        assert parts == whole
        assert count == 1
    for types in ([], ["Point Z", "Point"], "Point", None, [7]):
        with_metadata(file, geometry_types=types)
        with pytest.raises(UnsupportedError):
            ParquetParts(file, {}, 1)


def test_files_that_hold_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    geopandas.GeoDataFrame({"n": [1, 2]}, geometry=[None, shapely.from_wkt("POINT EMPTY")]).to_parquet(file)
    with pytest.raises(DataError, match="there is no feature with a geometry"):
        import_vectors(file, MemoryStore())
    table().iloc[:0].to_parquet(file)
    with pytest.raises(DataError, match="there is no feature with a geometry"):
        import_vectors(file, MemoryStore())
    file.write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(DataError, match="cannot be read"):
        import_vectors(file, MemoryStore())


def test_progress_and_options(tmp_path: Path) -> None:
    file, told = tmp_path / "a.parquet", list[tuple[int, int]]()
    table("Point").to_parquet(file, row_group_size=10)
    import_vectors(file, MemoryStore(), progress=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told[:6]] == [0, 200, 400, 600, 800, 1000]
    assert told[-1] == (2000, 2000)
    with pytest.raises(TypeError, match="geometry_type"):
        import_vectors(file, MemoryStore(), geometry_type="line")
