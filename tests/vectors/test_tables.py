"""Tables of points: CSV, Feather, and Parquet without geometries, in and out, and what is wrong with them."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from zardine import vectors
from zardine.errors import DataError, ZarrUserWarning
from zardine.jobs.plan import Plan
from zardine.storage import MemoryStore
from zardine.vectors import Points, export_vectors, import_vectors
from zardine.vectors.exchange.csv_tables import CsvTable
from zardine.vectors.exchange.import_work import PARTS

ENDINGS = ("csv", "tsv", "feather", "arrow", "parquet")


def imported(source: Path, **options: Any) -> tuple[Points, str]:
    """The points, in the order of the first coordinate, and what was told."""
    store = MemoryStore()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        import_vectors(source, store, **{"chunk_shape": 1e9, **options})
    return sorted_points(store), "\n".join(str(each.message) for each in told if each.category is ZarrUserWarning)


def sorted_points(store: Any) -> Points:
    found = vectors.read_points(store)
    order = np.argsort(found.positions[:, 0], kind="stable")
    return Points(found.positions[order], {name: each[order] for name, each in found.attributes.items()}, None)


def csv(folder: Path, text: str | bytes, name: str = "in.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def table(path: Path, **columns: Any) -> Path:
    made = pa.table(columns)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(made, path)
    else:
        pyarrow.feather.write_feather(made, path)
    return path


# times as coordinates

SECONDS = [1577934245.123456, 1609459200.0]
"""The times of the columns that follow, since 1970-01-01T00:00:00Z."""


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", ["plain", "zone", "days"])
def test_times_as_coordinates_are_seconds_with_their_unit(tmp_path: Path, ending: str, kind: str) -> None:
    texts = {
        "plain": ["2020-01-02T03:04:05.123456", None, "2021-01-01"],
        "zone": ["2020-01-02T04:04:05.123456+01:00", None, "2020-12-31 18:00:00-06:00"],
        "days": ["2020-01-02", None, "2021-01-01"],
    }[kind]
    wanted = [1577923200.0, SECONDS[1]] if kind == "days" else SECONDS
    source = tmp_path / f"in.{ending}"
    if ending in ("csv", "tsv"):
        rows = [f"{at}\t7\t{text or ''}" for at, text in enumerate(texts)]
        source.write_text("\n".join(["x\ty\tsampled", *rows, ""]))
    else:
        times = pd.to_datetime(texts, format="ISO8601", utc=kind == "zone")
        column = pa.array(times.date if kind == "days" else times, from_pandas=True)
        table(source, x=[0.0, 1.0, 2.0], y=[7.0] * 3, sampled=column)
    store = MemoryStore()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        import_vectors(source, store, x="x", y="y", time="sampled", chunk_shape=1e9, dtype="float64")
    assert sorted(vectors.read_points(store).positions.tolist()) == [[0, 7, wanted[0]], [2, 7, wanted[1]]]
    assert vectors.describe_store(store)["axes"][2] == {"type": "time", "name": "sampled", "unit": "second"}
    assert any("seconds since 1970-01-01T00:00:00Z" in str(each.message) for each in told)


def test_times_that_cannot_be_coordinates(tmp_path: Path) -> None:
    for second in ("02/03/2020", "5", "2021-01-01T00:00:00Z"):
        source = csv(tmp_path, f"x,y,t\n1,2,2020-01-01T00:00:00\n3,4,{second}\n")
        with pytest.raises(DataError, match="'2020-01-01T00:00:00' is no number; a column of dates has them like"):
            imported(source, x="x", y="y", time="t")
    lasting = table(tmp_path / "a.feather", x=[1.0], y=[2.0], t=pd.to_timedelta(["3s"]))
    with pytest.raises(DataError, match="coordinates are numbers or dates, and these are duration"):
        imported(lasting, x="x", y="y", time="t")
    folder = tmp_path / "several"
    folder.mkdir()
    csv(folder, "x,y,t\n1,2,2020-01-01\n", "a.csv")
    csv(folder, "x,y,t\n1,2,5\n", "b.csv")
    with pytest.raises(DataError, match="column 't': some are numbers, and others dates"):
        imported(folder, format="csv", x="x", y="y", time="t")


# which columns are coordinates


@pytest.mark.parametrize(
    ("names", "options", "wanted"),
    [
        ("x,y", {}, "x y"),
        ("n,Y,X", {}, "X Y"),
        ("x,y,z", {}, "x y z"),
        ("lat,lon,depth", {}, "lon lat"),
        ("lat,lon,depth", {"z": "depth"}, "lon lat depth"),
        ("Longitude,Latitude", {}, "Longitude Latitude"),
        ("decimalLatitude,decimalLongitude", {}, "decimalLongitude decimalLatitude"),
        ("frame,x [nm],y [nm],intensity [photon]", {}, "x [nm] y [nm]"),
        ("POSITION_X,POSITION_Y,POSITION_Z,POSITION_T", {}, "POSITION_X POSITION_Y POSITION_Z"),
        ("index,axis-0,axis-1,axis-2", {}, "axis-2 axis-1 axis-0"),
        ("a,b,c", {"x": "c", "y": "A"}, "c a"),
        ("x,y,z,t", {"time": "t"}, "x y z t"),
        ("lon,lat,t", {"time": "t"}, "lon lat t"),
        ("x,y,z", {"z": "x", "x": "y", "y": "z"}, "y z x"),
    ],
)
def test_columns_of_coordinates(tmp_path: Path, names: str, options: Any, wanted: str) -> None:
    count = names.count(",") + 1
    source, store = csv(tmp_path, f"{names}\n{','.join(map(str, range(count)))}\n"), MemoryStore()
    import_vectors(source, store, **options)
    made = vectors.open(store)
    found, columns = [each["name"] for each in made.axes], names.split(",")
    assert " ".join(found) == wanted
    assert made.read().positions.tolist() == [[columns.index(each) for each in found]]
    assert set(made.read().attributes) == set(columns) - set(found)


@pytest.mark.parametrize(
    ("names", "options", "told"),
    [
        ("a,b", {}, r"no columns are called as .* \(--x NAME --y NAME\) say which they are: .* 'a', 'b'"),
        ("x,y,lon,lat", {}, "several columns may be coordinates"),
        ("x,y,Y", {}, "several columns may be coordinates"),
        ("x,y", {"x": "lon", "y": "lat"}, "has no column 'lon': there are the columns 'x', 'y'"),
        ("a,b", {"x": "a"}, r"y= \(--y\) is needed"),
        ("a,b", {"x": "a", "y": "a"}, "one column: 'a', 'a'"),
        ("a,a,b", {"x": "a", "y": "b"}, "2 columns are called 'a'"),
        ("lon,lat", {"z": "z"}, "has no column 'z'"),
        ("x,y", {"time": "y"}, "one column"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_that_are_not_clear(tmp_path: Path, ending: str, names: str, options: Any, told: str) -> None:
    columns = names.split(",")
    source = tmp_path / f"in.{ending}"
    if ending == "csv":
        csv(tmp_path, f"{names}\n{','.join('1' for _ in columns)}\n")
    else:
        pyarrow.parquet.write_table(pa.Table.from_arrays([pa.array([1])] * len(columns), columns), source)
    with pytest.raises(DataError, match=told):
        import_vectors(source, tmp_path / "a.zv", **options)
    assert not (tmp_path / "a.zv").exists()


def test_options_of_tables_are_refused_by_other_formats(tmp_path: Path) -> None:
    for name, options in (("a.las", {"x": "x"}), ("a.feather", {"delimiter": ";"}), ("a.geojson", {"time": "t"})):
        with pytest.raises(TypeError, match=f"has no option {next(iter(options))!r}"):
            import_vectors(tmp_path / name, MemoryStore(), **options)  # type: ignore[arg-type]


# what CSV files look like


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("head", ["", "\ufeff", "# about\n#\n\n", "\n\n"])
def test_delimiters_ends_of_lines_and_heads(tmp_path: Path, delimiter: str, end: str, head: str) -> None:
    rows = [("x", "y", "name"), ("1", "2.5", '"a,;\t |b"'), ("", "", ""), ("3", "4e-1", '"say ""hi"""')]
    lines = [delimiter.join(row) if any(row) else "" for row in rows]
    source = csv(tmp_path, head.replace("\n", end) + end.join(lines) + end)
    found, _ = imported(source)
    assert found.positions.tolist() == [[1, 2.5], [3, 0.4]]
    assert found.attributes["name"].tolist() == ["a,;\t |b", 'say "hi"']
    assert imported(source, delimiter=delimiter)[0].positions.tolist() == found.positions.tolist()


def test_values_of_columns(tmp_path: Path) -> None:
    source = csv(
        tmp_path,
        "x,y,i,u,f,b,t,code,huge,mixed,none,gaps,flags,large,both\n"
        '1,1,-9007199254740993,18446744073709551615,0.1,true,"line\nbreak",007,99999999999999999999,1,,1,True,,0.5\n'
        "2,2,5,0,NaN,false,,010,1,a,,NA,,9007199254740993,9007199254740993\n"
        "3,3, 6 ,7,-inf,TRUE,NA,1,2,true,,3,False,1,1\n",
    )
    found, told = imported(source)
    values = {name: (each.dtype.kind, each.tolist()) for name, each in found.attributes.items()}
    assert values["i"] == ("i", [-9007199254740993, 5, 6])
    assert values["u"] == ("u", [2**64 - 1, 0, 7])
    assert np.array_equal(values["f"][1], [0.1, np.nan, -np.inf], equal_nan=True)
    assert values["b"] == ("b", [True, False, True])
    assert values["t"][1] == ["line\nbreak", None, "NA"]
    assert values["code"][1] == ["007", "010", "1"]
    assert values["huge"][1] == ["99999999999999999999", "1", "2"]
    assert values["mixed"][1] == ["1", "a", "true"]
    assert values["none"][1] == [None] * 3
    assert np.array_equal(values["gaps"][1], [1, np.nan, 3], equal_nan=True)
    assert np.array_equal(values["flags"][1], [1, np.nan, 0], equal_nan=True)
    assert values["large"][1] == [None, "9007199254740993", "1"]
    assert values["both"][1] == ["0.5", "9007199254740993", "1"]
    assert "integers are stored as float64, since values are missing, which are NaN: 'gaps'" in told
    assert "truth values are stored as 1.0 and 0.0, since values are missing, which are NaN: 'flags'" in told
    assert "'large' is stored as text" in told
    assert "'both' is stored as text" in told
    assert told.count("\n") == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds nothing: a line with the names of columns is needed"),
        ("\n\n", "holds nothing"),
        ("# x,y\n", "holds only comments"),
        ("1,2\n3,4\n", "has no names of columns: line 1 is '1,2'; put a line in front"),
        ("x,y\n1,2\n3\n", "line 3: 1 values, where 2 columns are named"),
        ('x,y,t\n1,2,"a\n\nb"\n\n3,4,5,6\n', "line 6: 4 values, where 3 columns are named"),
        ("# a\n\nx,y\r\n1,2\r\n3,4 N\r\n", "line 5, column 'y': '4 N' is no number"),
        ("x,y\n1,2\n1,1_000\n", "line 3, column 'y': '1_000' is no number"),
        ("x;y\n1,5;2,5\n", "line 2, column 'x': '1,5' is no number; decimals are divided by a point"),
        ("x,y\n1,2\n-inf,1\n", "line 3, column 'x': a coordinate is infinite"),
        ("x,y\n,2\n1,\nNaN,NA\n", "holds no positions: all 3 rows lack a coordinate"),
        ('x,y\n1,2\n"3,4\n5,6\n', "line 3: this row does not end: a quote is missing"),
        ("x,y,n\n1,2,ä\n1,2,".encode() + b"\xe4\n", "line 3: this is no UTF-8 text"),
        ("x,y\n1,2\n".encode("utf-16"), "is UTF-16: save it as UTF-8"),
        (b"x,\xe4y\n1,2\n", "line 1: this is no UTF-8 text"),
        ("x,y\n1,2\n1,\0\n", "line 3, column 'y'"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str | bytes, told: str) -> None:
    source = csv(tmp_path, text)
    for at_once in ({}, {"workers": 1}):
        with pytest.raises(DataError, match=told) as raised:
            import_vectors(source, tmp_path / "a.zv", **at_once)  # type: ignore[arg-type]
        assert str(source) in str(raised.value)
        assert not (tmp_path / "a.zv" / "zarr.json").exists()


@pytest.mark.parametrize("given", ["", "ab", '"', "\n", "é", 5])
def test_delimiters_that_are_none(tmp_path: Path, given: Any) -> None:
    with pytest.raises(DataError, match=r"delimiter= \(--delimiter\) is one character"):
        import_vectors(csv(tmp_path, "x,y\n1,2\n"), MemoryStore(), delimiter=given)


def test_rows_without_a_coordinate_are_told_with_their_place(tmp_path: Path) -> None:
    found, told = imported(csv(tmp_path, 'x,y,n\n1,2,"a\nb"\nNaN,3,c\n,,d\n4,5,e\n'))
    assert found.attributes["n"].tolist() == ["a\nb", "e"]
    assert "2 rows without a coordinate are left out, the first: " in told
    assert told.endswith("in.csv, line 4")
    source = table(tmp_path / "in.feather", x=[1.0, None, 2], y=[1.0, 2, float("nan")], n=[1, 2, 3])
    found, told = imported(source)
    assert found.attributes["n"].tolist() == [1]
    assert told.endswith("in.feather, row 1")


def test_a_comment_that_has_the_names(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "in.csv", [[1, 2, 3], [4, 5, 6]], header="made by numpy\nx y mass")
    found, told = imported(tmp_path / "in.csv")
    assert found.positions.tolist() == [[1, 2], [4, 5]]
    assert found.attributes["mass"].tolist() == [3, 6]
    assert "comments are left out: 'made by numpy'" in told


def test_names_that_are_there_twice_or_taken(tmp_path: Path) -> None:
    source = csv(tmp_path, ",x,y,a,a,zarr.json,__n,a/b,object_id\n0,1,2,3,4,5,6,7,8\n")
    found, told = imported(source)
    values = {name: each.tolist() for name, each in found.attributes.items()}
    wanted = {"_": [0], "a": [3], "a_": [4], "_zarr.json": [5], "_n": [6], "_a_b": [7], "object_id": [8]}
    assert values == wanted
    assert "a second column 'a' is the attribute 'a_'" in told
    for name in ("zarr.json", "__n", "a/b"):
        assert f"the attribute {name!r} is called" in told


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_table_without_rows(tmp_path: Path, ending: str) -> None:
    source, store = tmp_path / f"in.{ending}", MemoryStore()
    space = vectors.Space(axes=("lon", "lat"))
    vectors.create(store, "points", bounds=(0, 0, 9, 9), space=space, layout=vectors.Layout(chunk_shape=5))
    export_vectors(store, source, format="parquet-table" if ending == "parquet" else None)
    found, told = imported(source, bounds=(1, 1, 2, 2))
    assert found.positions.shape == (0, 2)
    assert told == ""
    assert "it holds nothing, and so will the store" in imported(source)[1]


def test_blocks_of_a_file_have_columns_of_one_type(tmp_path: Path) -> None:
    blocks = {
        "i": ["1", "2", ""],
        "u": ["5", "18446744073709551615", "7"],
        "f": ["1", "2.5", "3"],
        "t": ["1", "a", "true"],
        "e": ["", "", "x"],
        "b": ["true", "", "false"],
        "n": ["-1", "18446744073709551615", "1"],
        "l": ["0.5", "9007199254740993", "1"],
    }
    lines = [",".join(["x", "y", *blocks])]
    for at, block in enumerate(zip(*blocks.values(), strict=True)):
        lines += [",".join([f"{at}", f"{row}", *block]) for row in range(200)]
    source = csv(tmp_path, "\n".join(lines))
    made = CsvTable(source, {}, 60)
    assert made.count > 6
    whole, _ = imported(source)
    plan = vectors.plan_import(source, tmp_path / "a.zv", chunk_shape=1e9)
    _in_parts(plan, 60).save(tmp_path / "plan.json")
    in_parts = Plan.load(tmp_path / "plan.json")
    assert len(in_parts) == made.count
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        in_parts.run()
    found = sorted_points(tmp_path / "a.zv")
    for name, values in whole.attributes.items():
        assert values.dtype == found.attributes[name].dtype
        assert values.tolist() == found.attributes[name].tolist() or name in "ib"
    kinds = {name: each.dtype.kind for name, each in found.attributes.items()}
    assert kinds == {"i": "f", "u": "u", "f": "f", "t": "T", "e": "O", "b": "f", "n": "T", "l": "T"}
    assert set(found.attributes["n"].tolist()) == {"-1", "18446744073709551615", "1"}


def _in_parts(plan: Any, at_once: int) -> Any:
    work = plan.work
    parts = PARTS[work.format](work.source.given, work.options, at_once, None)
    more = {"count": parts.count, "memory": parts.memory, "outline": parts.outline}
    return Plan(replace(work, at_once=at_once, **more))


@pytest.mark.parametrize("at_once", [1, 2, 3, 50])
def test_blocks_end_where_rows_do(tmp_path: Path, at_once: int) -> None:
    texts = ['a"b', 'c"', '"', "d\n\n,e", "\r\n", "", "12°30'15\"", "é" * 40, ' "f"', "g"]
    rows = [(at, at + 0.5, text) for at, text in enumerate(itertools.chain(texts, reversed(texts)))]
    plain = [f"{x},{y},{text}" for x, y, text in rows if not set(text) & set(",\r\n") and text[:1] != '"' and text]
    quoted = [f'{x + 100},{y},"{text.replace(chr(34), chr(34) * 2)}"' for x, y, text in rows]
    for end in ("\n", "\r\n", "\r"):
        source = csv(tmp_path, end.join(["x,y,t", *plain, *quoted]))
        made = CsvTable(source, {}, at_once)
        found = [each for block in range(made.count) for each in made._columns(block)[2].to_pylist()]
        wanted = [line.split(",", 2)[2] for line in plain] + [text for _, _, text in rows]
        assert found == wanted
        assert sum(end - start for (_, start, _), (_, end, _) in itertools.pairwise(made.places)) == (
            source.stat().st_size - len("x,y,t" + end)
        )


# Feather and Parquet


@pytest.mark.parametrize("ending", ["feather", "arrow", "parquet"])
def test_columns_of_arrow(tmp_path: Path, ending: str) -> None:
    source = table(
        tmp_path / f"in.{ending}",
        x=pa.array([1, 2, 3], "f4"),
        y=pa.array([1, 2, 3], "f4"),
        small=pa.array([1, 2, 3], "u1"),
        gaps=pa.array([1, None, 3], "i2"),
        large=pa.array([None, 2**53 + 1, -1], "i8"),
        kind=pa.array(["a", None, "b"]).dictionary_encode(),
        price=pa.array([1, 2, None], pa.decimal128(10, 2)),
        day=pa.array(pd.to_datetime(["2020-01-02", "2020-01-02T03:04", None], format="ISO8601")),
        flags=pa.array([True, None, False]),
        parts=pa.array([[1], [2, 3], None]),
        none=pa.nulls(3),
    )
    found, told = imported(source)
    values = {name: each.tolist() for name, each in found.attributes.items()}
    assert found.positions.dtype == np.float32
    assert found.attributes["small"].dtype == np.uint8
    assert np.array_equal(values["gaps"], [1, np.nan, 3], equal_nan=True)
    assert values["large"] == [None, "9007199254740993", "-1"]
    assert values["kind"] == ["a", None, "b"]
    assert np.array_equal(values["price"], [1, 2, np.nan], equal_nan=True)
    assert values["day"] == ["2020-01-02T00:00:00", "2020-01-02T03:04:00", None]
    assert np.array_equal(values["flags"], [1, np.nan, 0], equal_nan=True)
    assert values["none"] == [None] * 3
    assert "parts" not in values
    for text in ("'gaps'", "'large' is stored as text", "'day'", "'flags'", "'parts' is left out"):
        assert text in told


@pytest.mark.parametrize("ending", ["feather", "parquet"])
def test_coordinates_of_arrow_that_are_no_numbers(tmp_path: Path, ending: str) -> None:
    for values in (["1.5"], [True], [[1.0]], pd.to_timedelta(["3s"])):
        source = table(tmp_path / f"in.{ending}", x=[1.0], y=pa.array(values))
        with pytest.raises(
            DataError, match=f"in.{ending}, column 'y': coordinates are numbers or dates, and these are"
        ):
            import_vectors(source, MemoryStore())
    source = table(tmp_path / f"in.{ending}", x=[1.0], y=[2**53 + 1])
    assert "coordinates of the column 'y' are rounded to float64" in imported(source)[1]


def test_geoparquet_goes_by_its_geometry_unless_columns_are_named(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame({"x": [7.0], "y": [8.0]}, geometry=geopandas.points_from_xy([1], [2]), crs=4326)
    frame.to_parquet(tmp_path / "a.parquet")
    found, told = imported(tmp_path / "a.parquet")
    assert found.positions.tolist() == [[1, 2]]
    assert set(found.attributes) == {"x", "y"}
    assert told == ""
    found, told = imported(tmp_path / "a.parquet", x="x", y="y")
    assert found.positions.tolist() == [[7, 8]]
    assert "'geometry' is left out" in told


@pytest.mark.parametrize("ending", ["feather", "arrow", "parquet"])
def test_files_that_are_cut_off_or_none(tmp_path: Path, ending: str) -> None:
    source = table(tmp_path / f"in.{ending}", x=np.arange(999.0), y=np.arange(999.0))
    data = source.read_bytes()
    for some in (b"", b"x,y\n1,2\n", data[:-9], data[: len(data) // 2], data[:100]):
        source.write_bytes(some)
        with pytest.raises(DataError, match=f"in.{ending} cannot be read"):
            import_vectors(source, MemoryStore())


def test_sizes_beyond_all_memory_and_text_that_is_none_are_damage(tmp_path: Path) -> None:
    source = table(tmp_path / "in.feather", x=np.zeros(999), y=np.zeros(999))
    data, length = source.read_bytes(), (8 * 999).to_bytes(8, "little")
    places = [
        at for at in range(len(data)) if data.startswith(length + b"\x04\x22\x4d\x18", at)
    ]  # before a frame of LZ4
    assert len(places) == 2
    source.write_bytes(data[: places[0]] + (2**60).to_bytes(8, "little") + data[places[0] + 8 :])
    with pytest.raises(DataError, match=r"in\.feather is damaged, or too large for this machine"):
        import_vectors(source, MemoryStore())
    for ending in ("feather", "parquet"):
        broken = pa.Array.from_buffers(
            pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], "i4")), pa.py_buffer(b"c\xff")]
        )
        source = table(tmp_path / f"in.{ending}", x=[1.0], y=[1.0], t=broken)
        with pytest.raises(DataError, match=f"in.{ending} cannot be read: .*UTF8"):
            import_vectors(source, MemoryStore())


def test_folders_of_tables_are_one(tmp_path: Path) -> None:
    for name, ending in (("a", "csv"), ("b", "parquet"), ("c", "feather")):
        folder = tmp_path / name
        folder.mkdir()
        for at, ids in enumerate(([1, 2], [3.5], [None])):
            frame = pd.DataFrame({"x": [at * 10.0 + row for row in range(len(ids))], "y": 0.0, "id": ids})
            path = folder / f"part-{at}.{ending}"
            getattr(frame, f"to_{ending}")(path, **({"index": False} if ending == "csv" else {}))
        found, _ = imported(folder)
        assert found.positions[:, 0].tolist() == [0, 1, 10, 20]
        assert np.array_equal(found.attributes["id"].astype("f8"), [1, 2, 3.5, np.nan], equal_nan=True)
    csv(tmp_path / "a", "x,y,n\n1,2,3\n", "part-3.csv")
    with pytest.raises(DataError, match=r"part-3\.csv has other columns than"):
        import_vectors(tmp_path / "a", MemoryStore())


# out, and in again

COLUMNS: dict[str, Any] = {
    "i": np.array([2**53 + 1, -(2**63), 0, 7, 2**63 - 1]),
    "u": np.array([2**64 - 1, 0, 1, 2, 3], "u8"),
    "f": np.array([1.0, np.nan, np.inf, 0.1, -1e300]),
    "whole": np.array([1.0, 2.0, -0.0, 1e22, 5e-324]),
    "g": np.array([0.1, 1 / 3, 2, 1e-30, np.nan], "f4"),
    "b": np.array([True, False, True, True, False]),
    "t": np.array(["a", None, "", '"x,\n;\t', "NA"], object),
    "space": np.array([" a", "b ", "#c", "\r", "d\0e"]),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("axes", [("x", "y"), ("lon", "lat"), ("x", "y", "z"), ("a", "b", "c", "d")])
def test_what_goes_out_comes_back(tmp_path: Path, ending: str, axes: tuple[str, ...]) -> None:
    made, target = MemoryStore(), tmp_path / f"a.{ending}"
    places = np.random.default_rng(1).normal(size=(5, len(axes)))
    vectors.write_points(made, places, vertex_attributes={k: v for k, v in COLUMNS.items() if k not in axes}, axes=axes)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        export_vectors(made, target, format="parquet-table" if ending == "parquet" else None)
    texts = [str(each.message) for each in told]
    named = dict(zip(("x", "y", "z", "time"), axes, strict=False)) if axes[0] == "a" else {}
    needed = [text for text in texts if "import it with x='a', y='b', z='c', time='d'" in text]
    assert bool(needed) == bool(named)
    assert len(texts) == len(needed)
    found, wanted = imported(target, **named)[0], sorted_points(made)
    assert found.positions.tolist() == wanted.positions.tolist()
    assert set(found.attributes) == set(wanted.attributes)
    for name, values in wanted.attributes.items():
        assert [repr(each) for each in values.tolist()] == [repr(each) for each in found.attributes[name].tolist()]
        assert ending in ("csv", "tsv") or found.attributes[name].dtype == values.dtype


def test_text_that_looks_like_numbers_is_told_of(tmp_path: Path) -> None:
    for values, is_told in ((["1", "2"], True), (["true", "false"], True), (["1", "a"], False), (["01", "2"], False)):
        store = MemoryStore()
        vectors.write_points(store, [[1, 2], [3, 4]], vertex_attributes={"n": values})
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            export_vectors(store, tmp_path / "a.csv", overwrite=True)
        assert any("'n' comes back as numbers or truth values" in str(each.message) for each in told) == is_told
        if not is_told:
            assert imported(tmp_path / "a.csv")[0].attributes["n"].tolist() == values


def test_other_programs_read_what_goes_out(tmp_path: Path) -> None:
    store = MemoryStore()
    vectors.write_points(
        store, [[1.5, 2], [3, 4]], vertex_attributes={"n": ["é,", "b"], "k": [1, 2]}, axes=("lon", "lat")
    )
    for name, read in (("a.csv", pd.read_csv), ("a.feather", pd.read_feather), ("a.parquet", pd.read_parquet)):
        export_vectors(store, tmp_path / name, format="parquet-table" if name == "a.parquet" else None)
        frame = read(tmp_path / name)
        assert list(frame.columns) == ["lon", "lat", "n", "k"] or sorted(frame.columns) == ["k", "lat", "lon", "n"]
        assert sorted(zip(frame.lon, frame.lat, frame.n, frame.k, strict=True)) == [(1.5, 2, "é,", 1), (3, 4, "b", 2)]


def test_lines_are_no_tables(tmp_path: Path) -> None:
    store = MemoryStore()
    vectors.write_polylines(store, [np.eye(3)])
    with pytest.raises(DataError, match="this format is for point_cloud"):
        export_vectors(store, tmp_path / "a.csv")
