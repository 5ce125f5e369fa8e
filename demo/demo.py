"""The main job on real data: a climate field from NetCDF becomes a sharded array, is read, edited and checked.

``make demo``, or ``python demo/demo.py [folder]``: writes ``demo.zarr``, ``demo-unsharded.zarr`` (the same chunks
without shards, for comparison) and ``demo.png`` into the folder, by default the current one. It replaces what an
earlier run left there and nothing else.

The data: annual mean air temperature over North America, 1860 to 2099, from two runs of the Met Office climate model,
one for the emission scenario A1B (fossil fuels stay important) and one for E1 (strong mitigation).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5netcdf
import iris_sample_data
import numpy as np
from picture import draw

import zardine
from zardine.codecs import BloscCodec
from zardine.storage import CountingStore, LocalStore

SCENARIOS = ("A1B", "E1")
DIMENSIONS = ("scenario", "time", "latitude", "longitude")
CHUNKS = (1, 12, 10, 13)
SHARDS = (1, 120, 40, 52)
MARK = "zardine demo"


@dataclass(frozen=True)
class Source:
    """The field and its coordinates as they stand in the NetCDF files."""

    files: tuple[Path, ...]
    temperature: np.ndarray[Any, Any]
    time: np.ndarray[Any, Any]
    latitude: np.ndarray[Any, Any]
    longitude: np.ndarray[Any, Any]
    attributes: dict[str, dict[str, Any]]

    @property
    def years(self) -> np.ndarray[Any, Any]:
        """Calendar years: time counts hours since 1970 in a calendar of 360 days."""
        return np.floor(1970 + self.time / (24 * 360)).astype(int)


def plain(value: Any) -> Any:
    """An attribute as JSON can hold it."""
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if isinstance(value, np.generic) else value


def load_source() -> Source:
    files = tuple(Path(iris_sample_data.path) / f"{name}_north_america.nc" for name in SCENARIOS)
    fields, variables, attributes = [], {}, {}
    for file in files:
        with h5netcdf.File(file, "r") as netcdf:
            fields.append(netcdf.variables["air_temperature"][...])
            for name in ("air_temperature", *DIMENSIONS[1:]):
                variable = netcdf.variables[name]
                variables[name] = variable[...]
                attributes[name] = {key: plain(value) for key, value in variable.attrs.items()}
    kept = ("standard_name", "units", "cell_methods", "source")
    attributes["air_temperature"] = {key: attributes["air_temperature"][key] for key in kept} | {"height": "1.5 m"}
    attributes["time"].pop("bounds", None)
    coordinates = {name: variables[name] for name in DIMENSIONS[1:]}
    return Source(files, np.stack(fields), **coordinates, attributes=attributes)


def is_ours(path: Path) -> bool:
    """Whether an earlier run of this script wrote ``path``."""
    if path.suffix == ".png":
        return MARK.encode() in path.read_bytes()[:2000]
    try:
        return bool(json.loads((path / "zarr.json").read_text())["attributes"]["made_by"] == MARK)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def make_room(*paths: Path) -> None:
    """Remove what an earlier run left; stop if anything else is in the way."""
    for path in paths:
        if path.exists() and not is_ours(path):
            sys.exit(f"demo: {path} exists and was not written by this demo; move it away or name another folder")
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def write(path: Path, source: Source, shards: tuple[int, ...] | None) -> float:
    """Write field and coordinates as a group; gives the seconds for the field."""
    root = zardine.create_group(
        LocalStore(path), attributes={"made_by": MARK, "title": "Air temperature, two scenarios"}
    )
    start = time.perf_counter()
    field = root.create_array(
        "air_temperature",
        shape=source.temperature.shape,
        dtype=source.temperature.dtype,
        chunks=CHUNKS,
        shards=shards,
        compressors=BloscCodec(cname="zstd", clevel=5, shuffle="bitshuffle"),
        fill_value=np.nan,
        dimension_names=DIMENSIONS,
        attributes=source.attributes["air_temperature"],
    )
    field[...] = source.temperature
    seconds = time.perf_counter() - start
    for name in DIMENSIONS[1:]:
        values = getattr(source, name)
        coordinate = root.create_array(
            name,
            shape=values.shape,
            chunks=values.shape,
            dtype=values.dtype,
            dimension_names=(name,),
            attributes=source.attributes[name],
        )
        coordinate[...] = values
    names = root.create_array("scenario", shape=(2,), chunks=(2,), dtype=str, dimension_names=("scenario",))
    names[...] = np.array(SCENARIOS, dtype=object)
    return seconds


def stored(path: Path) -> tuple[int, int]:
    """Objects and bytes of the field's chunks."""
    files = [file for file in (path / "air_temperature" / "c").rglob("*") if file.is_file()]
    return len(files), sum(file.stat().st_size for file in files)


@dataclass(frozen=True)
class Cost:
    requests: int
    nbytes: int
    seconds: float


def measured(path: Path, selection: tuple[Any, ...]) -> tuple[np.ndarray[Any, Any], Cost]:
    """Read a selection of a freshly opened array five times; counts of one read, median of the times."""
    times = []
    for _ in range(5):
        store = CountingStore(LocalStore(path))
        field = zardine.open_array(store, path="air_temperature", mode="r")
        reads, nbytes = store.counts.reads, store.counts.bytes_read
        start = time.perf_counter()
        values = field[selection]
        times.append(time.perf_counter() - start)
    cost = Cost(store.counts.reads - reads, store.counts.bytes_read - nbytes, statistics.median(times))
    return np.asarray(values), cost


def size(nbytes: float) -> str:
    for unit in ("B", "KB", "MB"):
        if nbytes < 999.5 or unit == "MB":
            break
        nbytes /= 1000
    return f"{nbytes:.0f} {unit}" if unit == "B" or nbytes >= 99.5 else f"{nbytes:.1f} {unit}"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def heading(text: str) -> None:
    print(f"\n{text}\n{'─' * len(text)}")


def aligned(rows: list[tuple[str, ...]], left: int = 1) -> None:
    """Print rows as a table: the first ``left`` columns flush left, the others flush right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [f"{x:<{w}}" if n < left else f"{x:>{w}}" for n, (x, w) in enumerate(zip(row, widths, strict=True))]
        print("  " + "   ".join(cells).rstrip())


def indented(text: Any) -> None:
    for line in str(text).rstrip().splitlines():
        print(f"  {line}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write, read and edit a climate field as a sharded array.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="where the output goes (default: here)")
    folder = parser.parse_args().folder.resolve()
    sharded, unsharded, png = folder / "demo.zarr", folder / "demo-unsharded.zarr", folder / "demo.png"
    begun = time.perf_counter()
    make_room(sharded, unsharded, png)

    source = load_source()
    truth = source.temperature
    years = source.years
    print(f"zardine {zardine.__version__}: a climate field in shards")
    heading("Source")
    extent = " × ".join(f"{name} {length}" for name, length in zip(DIMENSIONS, truth.shape, strict=True))
    indented(f"{' and '.join(file.name for file in source.files)}, annual means {years[0]} to {years[-1]}")
    indented(f"air_temperature [K]: {extent}, {truth.dtype}, {size(truth.nbytes)}")

    seconds = {sharded: write(sharded, source, SHARDS), unsharded: write(unsharded, source, None)}

    root = zardine.open_group(sharded, mode="r")
    heading("Written to demo.zarr")
    indented(root.tree())
    print()
    indented(root["air_temperature"].info)

    heading("Objects and bytes")
    rows: list[tuple[str, ...]] = [("", "objects", "bytes", "of memory", "time to write")]
    for label, path in (("with shards", sharded), ("the same chunks without", unsharded)):
        objects, nbytes = stored(path)
        rows.append((label, f"{objects:,}", size(nbytes), f"{nbytes / truth.nbytes:.0%}", milliseconds(seconds[path])))
    aligned(rows)

    row, column = (int(np.abs(axis - at).argmin()) for axis, at in ((source.latitude, 41.9), (source.longitude, 272.4)))
    year = int(np.flatnonzero(years == 2099)[0])
    reads: dict[str, tuple[Any, ...]] = {
        "point": (0, year, row, column),
        "series": (slice(None), slice(None), row, column),
        "plane": (0, year),
        "box": (0, slice(year - 49, year - 39), slice(20, 28), slice(18, 28)),
        "all": (...,),
    }
    meanings = {
        "point": "one year at one place",
        "series": "every year there, both scenarios",
        "plane": "the map of 2099",
        "box": "2050 to 2059, Great Lakes",
        "all": "the whole field",
    }
    heading("Reading it back")
    rows = [("", "", "", "with shards", "", "", "without", "", "")]
    rows += [("", "", "values", "requests", "bytes", "time", "requests", "bytes", "time")]
    answers = {}
    for label, selection in reads.items():
        answers[label], with_shards = measured(sharded, selection)
        others, without = measured(unsharded, selection)
        np.testing.assert_array_equal(answers[label], truth[selection])
        np.testing.assert_array_equal(others, truth[selection])
        costs = [(f"{c.requests:,}", size(c.nbytes), milliseconds(c.seconds)) for c in (with_shards, without)]
        rows.append((label, meanings[label], f"{answers[label].size:,}", *costs[0], *costs[1]))
    aligned(rows, left=2)
    indented("All equal to the source, element by element.")

    edit(sharded, truth)
    draw(png, source, answers["plane"], answers["series"], (row, column), SCENARIOS, MARK)
    heading("Picture")
    indented(f"{png.name}: the plane of 2099 and the series at {place(source, row, column)}")
    print(f"\nDone in {time.perf_counter() - begun:.1f} s. Output: {folder}")


def place(source: Source, row: int, column: int) -> str:
    return f"{source.latitude[row]:.2f}° N, {360 - source.longitude[column]:.2f}° W"


def edit(path: Path, truth: np.ndarray[Any, Any]) -> None:
    """Correct one region in place and compare everything with the source, edited alike."""
    region = (1, slice(140, 144), slice(20, 25), slice(26, 32))
    before = zardine.open_array(path, path="air_temperature", mode="r")[...]
    np.testing.assert_array_equal(before, truth)
    store = CountingStore(LocalStore(path))
    field = zardine.open_array(store, path="air_temperature", mode="r+")
    written = store.counts.bytes_written
    start = time.perf_counter()
    field[region] = truth[region] + np.float32(0.5)
    seconds = time.perf_counter() - start
    written = store.counts.bytes_written - written
    expected = truth.copy()
    expected[region] += np.float32(0.5)
    after = zardine.open_array(path, path="air_temperature", mode="r")[...]
    np.testing.assert_array_equal(after, expected)
    changed = int(np.count_nonzero(after != before))
    assert changed == expected[region].size
    heading("Editing one region")
    indented(f"E1, four years, a box of 5 × 6 places, + 0.5 K: {milliseconds(seconds)}, {size(written)} written")
    indented(f"{changed} of {after.size:,} values changed, as meant; all others are still equal to the source.")


if __name__ == "__main__":
    main()
