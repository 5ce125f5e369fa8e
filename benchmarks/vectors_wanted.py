"""What is wanted of zardine.vectors in figures, each beside its limit: ``python benchmarks/vectors_wanted.py changes``.

``changes``: lines are added to a million, levels and attributes of one object change. ``pyramid``: four levels of 20
million points. ``import``: LAZ and TRK, of two sizes, so that what grows with the file is seen; ``--times 100`` makes
them of the scale of 10 GB. ``shards``: 67 x 67 x 67 cells are put into shards and out of them, and checked.
``handle``: boxes of a store of a million chunks that is held open.

All is in a file system in memory. Calls whose memory is told have a process of their own; *memory* is the most resident
memory during the call beyond what was held before. Bytes written are those that the process gave to the system
(``/proc/self/io``). Tables have the median of the rounds, least and most, and say by that
whether what is wanted is kept: ``PASS`` or ``MISS``. What is written, or read, once is less than 1.5 times what is
stored: there are documents, and near cells are read together; twice would be 2 times and more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from tables import digits, shown, spread, table
from worker import peak, reset_peak

from zardine import vectors
from zardine.storage import CountingStore, LocalStore, MemoryStore

Floats = np.ndarray[Any, Any]
Found = dict[str, tuple[float, str, float | None]]
"""What was measured: a figure, its unit, and the most that is wanted of it."""

LINES, APPENDS, LEVELLED, POINTS, SIDE = 1_000_000, 1_000, 100_000, 20_000_000, 67
REPEATS = 20
"""Of what is counted, or takes little."""
HELD = 100
"""Chunks along each axis of the store that is held open."""
OF_A_FILE = {"LAZ": 2_000_000, "TRK": 4_000_000}
"""Vertices of the smaller of two files; the larger one has ``--times`` as many."""
MEMORY = 1e9
"""Bytes that what is large may take."""


def taken(action: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a call, and the most memory beyond what was held."""
    before = reset_peak()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start, max(0, peak() - before)


def alone(name: str, *args: Any, **options: Any) -> tuple[float, float, int]:
    """Call a function of vectors in a process of its own; return seconds, memory, and the bytes that it has written."""
    with ProcessPoolExecutor(1, get_context("spawn")) as executor:
        return executor.submit(_call, name, args, options).result()


def _call(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[float, float, int]:
    warnings.simplefilter("ignore")
    before = _written()
    seconds, memory = taken(lambda: getattr(vectors, name)(*args, **options))
    return seconds, memory, _written() - before


def _written() -> int:
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["wchar"])


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def lines(count: int, seed: int) -> list[Floats]:
    """Random walks of five vertices that begin anywhere in 10 x 10 x 10 cells of 100."""
    random = np.random.default_rng(seed)
    starts = random.uniform(0, 1000, (count, 1, 3))
    return list((starts + np.cumsum(random.normal(0, 2, (count, 5, 3)), axis=1)).astype("f4"))


def grid_of(side: int) -> Floats:
    """The middle of each of side x side x side cells of 10."""
    return np.stack(np.meshgrid(*[np.arange(side) * 10.0 + 5] * 3, indexing="ij"), axis=-1).reshape(-1, 3)


LAYOUT: dict[str, Any] = {"chunk_shape": 100, "bin_shape": 25, "shard_shape": 8, "bounds": ([-100] * 3, [1100] * 3)}


# what is measured


class Unlocked(MemoryStore):
    """A store whose locks keep nobody out, as those of buckets."""

    @property
    def lock_is_exclusive(self) -> bool:
        return False


def changes(folder: Path, times: int) -> Iterator[Found]:
    """Ten lines to a million, a thousand times; one object's values; levels of 100,000 lines."""
    path = str(folder / "million.zv")
    vectors.write_polylines(path, lines(LINES, 0), vertex_attributes={"w": np.zeros(5 * LINES, "f4")}, **LAYOUT)
    requests, seconds = firsts(path)
    yield {"ten lines added to a million, the first of a process, requests": (requests, "", None)}
    yield {"ten lines added to a million, the first of a process, processors": (seconds, "s", None)}
    yield {"ten lines added to a million, requests": (requests_of(LocalStore(path)), "", 60)}
    seconds = [append(path, 100 + number) for number in range(APPENDS)]
    first, last = median(seconds[:100]), median(seconds[-100:])
    yield {
        "ten lines added to a million": (first, "s", 0.1),
        f"the last 100 of {APPENDS:,} times, over the first 100": (last / first, "×", 1.25),
    }
    some = [
        taken(lambda: vectors.set_attribute(path, "w", np.full(5, 2.0), object_ids=[number]))[0]  # noqa: B023
        for number in range(LINES // 2, LINES // 2 + REPEATS)
    ]
    yield {"a vertex attribute of one line of a million": (median(some), "s", 0.05)}
    bucket, values = Unlocked(), {"w": np.zeros(5 * LEVELLED, "f4")}
    vectors.write_polylines(bucket, lines(LEVELLED, 0), vertex_attributes=values, **LAYOUT)
    requests, _ = firsts({key: bytes(bucket.get(key) or b"") for key in bucket.list()})
    yield {"ten lines added where locks keep nobody out, the first of a process, requests": (requests, "", 60)}
    yield {"ten lines added where locks keep nobody out, requests": (requests_of(bucket), "", 60)}
    path = str(folder / "levels.zv")
    values = {"length": np.arange(LEVELLED, dtype="f4")}
    vectors.write_polylines(path, lines(LEVELLED, 0), object_attributes=values, **LAYOUT)
    name = f"three levels of {LEVELLED:,} lines"
    yield {f"{name}, processors": (spent(lambda: vectors.build_pyramid(path, factors=[(2, 1)] * 3)), "s", None)}
    updates = []
    for number in range(min(5, REPEATS)):
        new = {"length": np.ones(10, "f4")}
        vectors.append_polylines(path, lines(10, number + 1), object_attributes=new)
        updates.append(spent(lambda: vectors.build_pyramid(path)))
    yield {f"{name} after ten were added, processors": (median(updates), "s", None)}


def append(target: Any, seed: int) -> float:
    """Add ten lines and return the seconds."""
    more, new = lines(10, seed), {"w": np.ones(50, "f4")}
    return taken(lambda: vectors.append_polylines(target, more, vertex_attributes=new))[0]


def requests_of(store: Any) -> float:
    """Requests of adding ten lines: the median of some."""
    requests = []
    for number in range(REPEATS):
        counting = CountingStore(store)
        append(counting, number + 1)
        requests.append(counting.counts.requests)
    return median(requests)


def firsts(where: str | dict[str, bytes]) -> tuple[float, float]:
    """Requests, and seconds of processors with what is imported for it, of the first ten lines of a process: medians.

    ``where``: a path, or what a bucket holds. A local folder opens the file of a shard once, for its index and for its
    cells; here these are two requests, since what is read of open files cannot be counted.
    """
    found = []
    for number in range(REPEATS):
        with ProcessPoolExecutor(1, get_context("spawn")) as executor:
            found.append(executor.submit(_first, where, number + 1).result())
    return median(each for each, _ in found), median(each for _, each in found)


def _first(where: str | dict[str, bytes], seed: int) -> tuple[int, float]:
    store: Any = LocalStore(where) if isinstance(where, str) else Unlocked()
    for key, value in where.items() if isinstance(where, dict) else ():
        store.set(key, value)
    counting = CountingStore(store)
    seconds = spent(lambda: append(counting, seed))
    return counting.counts.requests, seconds


def spent(action: Callable[[], object]) -> float:
    """Seconds of all processors."""
    start = time.process_time()
    action()
    return time.process_time() - start


def pyramid(folder: Path, times: int) -> Iterator[Found]:
    """Four levels above 20 million points."""
    path, random = str(folder / "points.zv"), np.random.default_rng(0)
    vectors.write_points(
        path,
        random.uniform(0, 2000, (POINTS, 3)).astype("f4"),
        chunk_shape=100,
        bin_shape=10,
        shard_shape=8,
        vertex_attributes={"intensity": random.integers(0, 4096, POINTS).astype("u2")},
    )
    seconds, memory, _ = alone("build_pyramid", path, factors=[(2, 1)] * 4)
    name = f"a pyramid of four levels of {POINTS:,} points"
    yield {name: (seconds, "s", 40), f"{name}, memory": (memory, "B", MEMORY)}


def imports(folder: Path, times: int) -> Iterator[Found]:
    """Files of two sizes; who holds more of the larger one than fits is seen by that."""
    for format, make in (("LAZ", make_laz), ("TRK", make_trk)):
        for factor in (1, times):
            count = OF_A_FILE[format] * factor
            source, path = folder / f"file.{format.lower()}", folder / "store.zv"
            make(source, count)
            options: dict[str, Any] = {"chunk_shape": 100, "shard_shape": 8, "compressor": "zstd", "overwrite": True}
            seconds, memory, _ = alone("import_vectors", source, path, **options)
            name = f"import of {format}, {source.stat().st_size / 1e6:,.0f} MB with {count:,} vertices"
            source.unlink()
            yield {name: (seconds, "s", None), f"{name}, memory": (memory, "B", MEMORY)}


def make_laz(place: Path, count: int) -> None:
    """Write points along the lines of a scan, a million at a time."""
    import laspy

    header = laspy.LasHeader(point_format=3, version="1.4")
    header.scales = np.full(3, 1e-3)
    random = np.random.default_rng(0)
    with laspy.open(str(place), mode="w", header=header) as file:
        for start in range(0, count, 10**6):
            rows = np.arange(start, min(count, start + 10**6))
            record = laspy.ScaleAwarePointRecord.zeros(len(rows), header=header)
            record.x, record.y = rows % 1000, rows // 1000 * 1000 / max(1, count // 1000)
            record.z = 100 + 20 * np.sin(rows / 1e5) + random.normal(0, 1, len(rows))
            record.intensity, record.classification = random.integers(0, 4096, len(rows)), rows // 7919 % 12
            file.write_points(record)


def make_trk(place: Path, count: int) -> None:
    """Write lines of 100 vertices one after the other."""
    from nibabel.streamlines import LazyTractogram, TrkFile

    def walks() -> Iterator[Floats]:
        random = np.random.default_rng(0)
        for _ in range(0, count, 100_000):
            steps = np.cumsum(random.normal(0, 1, (1000, 100, 3)), axis=1)
            yield from (random.uniform(0, 1000, (1000, 1, 3)) + steps).astype("f4")

    TrkFile(LazyTractogram(walks, affine_to_rasmm=np.eye(4))).save(str(place))


def shards(folder: Path, times: int) -> Iterator[Found]:
    """Two arrays of 67 x 67 x 67 cells, ten points in each, change their form. Documents are among what is written."""
    path, random = folder / "cells.zv", np.random.default_rng(0)
    places = np.repeat(grid_of(SIDE), 10, axis=0)
    places += random.uniform(-4, 4, places.shape)
    vectors.write_points(str(path), places.astype("f4"), chunk_shape=10, shard_shape=8)
    cells = f"{SIDE} x {SIDE} x {SIDE} cells"
    for name, function, options, limit in (
        ("out of shards", "unshard_store", {}, 15),
        ("into shards", "shard_store", {"shard_shape": 8}, 10),
    ):
        seconds, memory, written = alone(function, str(path), **options)
        share, name = written / size_of(path), f"{cells} {name}"
        yield {name: (seconds, "s", limit), f"{name}, memory": (memory, "B", MEMORY)}
        yield {f"{name}, bytes written, times what is stored": (share, "×", 1.5)}
    store = ReadSizes(LocalStore(str(path)))
    vectors.validate(store)
    seconds, memory, _ = alone("validate", str(path))
    positions = store.nbytes("0/vertices/c/") / size_of(path / "0/vertices/c")
    yield {f"{cells} validated": (seconds, "s", None), f"{cells} validated, memory": (memory, "B", MEMORY)}
    yield {f"{cells} validated, bytes of positions read, times what is stored": (positions, "×", 1.5)}


class ReadSizes(CountingStore):
    """A store that knows how many bytes were read of values whose keys begin alike."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self._sizes: dict[str, int] = {}

    def _count(self, keys: Any = (), **numbers: int) -> None:
        super()._count(keys, **numbers)
        for key in keys:
            self._sizes[key] = self._sizes.get(key, 0) + numbers.get("bytes_read", 0)

    def nbytes(self, *prefixes: str) -> int:
        return sum(size for key, size in self._sizes.items() if key.startswith(prefixes))


def handle(folder: Path, times: int) -> Iterator[Found]:
    """Boxes of one cell in a store of a million, asked of a store that is held open."""
    path = folder / "chunks.zv"
    vectors.write_points(str(path), grid_of(HELD).astype("f4"), chunk_shape=10, shard_shape=16)
    yield from one_box(path)
    store = ReadSizes(LocalStore(str(path)))
    held = vectors.open(store)
    found = []
    for number in range(20):
        before = store.nbytes(*DOCUMENTS)
        seconds, _ = taken(lambda: held.read(bbox=box(number)))  # noqa: B023
        found.append((seconds, store.nbytes(*DOCUMENTS) - before))
    yield {"the first box of a store that is held open": (found[0][0], "s", None)}
    yield {"the next ones": (median(each for each, _ in found[1:]), "s", None)}
    yield {"the next ones, bytes of documents read": (max(each for _, each in found[1:]), "B", 0)}


def one_box(path: Path) -> Iterator[Found]:
    """A box by itself."""
    store = ReadSizes(LocalStore(str(path)))
    seconds, _ = taken(lambda: vectors.read_points(store, bbox=box(0)))
    name = f"a box of a cell of {HELD**3:,}, by itself"
    yield {name: (seconds, "s", None), f"{name}, bytes of documents read": (store.nbytes(*DOCUMENTS), "B", None)}


def box(number: int) -> list[list[float]]:
    low = 10.0 * (number % HELD)
    return [[low + 1] * 3, [low + 9] * 3]


DOCUMENTS = ("zarr.json", "0/zarr.json", "0/vertices/zarr.json", "0/vertex_fragments/zarr.json")

CASES: dict[str, tuple[str, Callable[[Path, int], Iterator[Found]]]] = {
    "changes": ("Changes", changes),
    "pyramid": ("A large pyramid", pyramid),
    "import": ("Large files", imports),
    "shards": ("In and out of shards", shards),
    "handle": ("A store that is held open", handle),
}


# the table


def said(values: list[float], unit: str) -> str:
    if unit == "s":
        return spread(values)
    if unit == "B":
        return spread([each / 1e6 for each in values], lambda value: f"{digits(value)} MB")
    return spread(values, lambda value: f"{digits(value)} {unit}".strip())


def wanted(most: float | None, unit: str) -> str:
    if most is None:
        return ""
    return f"≤ {shown(most) if unit == 's' else said([most], unit)}"


def verdict(values: list[float], most: float | None) -> str:
    return "" if most is None else "PASS" if median(values) <= most else "MISS"


def main() -> None:
    """Measure, and print a section of Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=list(CASES))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--times", type=int, default=4, help="how many times as large the larger file is")
    parser.add_argument("--folder", default="/dev/shm" if Path("/dev/shm").is_dir() else None)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        warnings.simplefilter("ignore")
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            for found in CASES[options.what][1](Path(name), options.times):
                print(json.dumps(found), flush=True)
        return
    told: dict[str, tuple[list[float], str, float | None]] = {}
    for _ in range(options.rounds):
        more = [] if options.folder is None else ["--folder", options.folder]
        command = [sys.executable, __file__, options.what, "--work", "--times", str(options.times), *more]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        for line in done.stdout.splitlines():
            for name, (value, unit, most) in json.loads(line).items():
                told.setdefault(name, ([], unit, most))[0].append(value)
    rows = [
        [name, said(values, unit), wanted(most, unit), verdict(values, most)]
        for name, (values, unit, most) in told.items()
    ]
    print(f"### {CASES[options.what][0]}\n")
    print(table(["operation", "zardine", "wanted", ""], rows))


if __name__ == "__main__":
    main()
