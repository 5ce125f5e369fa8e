"""What it costs to begin: importing, opening an array, listing a group; beside zarr-python and tensorstore.

``make bench`` or ``python benchmarks/bench_startup.py``. Peers that are not installed are left out. Every number is a
median; each program is measured in processes of its own. The stored array and group are written here as plain JSON,
so all read the same files.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

IMPORT_RUNS = 15
MEMBERS = 300

IMPORT = """
import time
start = time.perf_counter()
import {module}
print(time.perf_counter() - start)
"""

TIMED = """
import statistics, sys, time
path = sys.argv[1]
{setup}
times = []
for _ in range({repeats}):
    start = time.perf_counter()
    result = {statement}
    times.append(time.perf_counter() - start)
    {check}
print(statistics.median(times))
"""

TENSORSTORE = """
import tensorstore
spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path + "/"}, "recheck_cached_metadata": "open"}
"""

OPEN = {
    "zardine": ("import zardine", 'zardine.open_array(path, mode="r")'),
    "zarr": ("import zarr", 'zarr.open_array(path, mode="r")'),
    "tensorstore": (TENSORSTORE, "tensorstore.open(spec, open=True, read=True).result()"),
}
LIST = {
    "zardine": ("import zardine", 'list(zardine.open_group(path, mode="r").arrays())'),
    "zarr": ("import zarr", 'list(zarr.open_group(path, mode="r").arrays())'),
}
BYTE_CODE: dict[str, str] = {}
"""The environment variable that sends byte code to a folder of this run."""
PACKAGES = {"zardine": "zardine", "zarr": "zarr", "tensorstore": "tensorstore"}


def run(code: str, *arguments: str) -> float:
    """Seconds that a fresh interpreter prints last. All programs run from byte code, as installed programs do."""
    command = [sys.executable, "-c", code, *arguments]
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=settings | BYTE_CODE).stdout
    return float(output.split()[-1])


def import_times(modules: list[str]) -> dict[str, float]:
    """Median seconds to import each module, rounds interleaved so that a slow moment hits all alike."""
    times: dict[str, list[float]] = {module: [] for module in modules}
    for module in modules:
        run(IMPORT.format(module=module))  # writes byte code, warms the file cache
    for _ in range(IMPORT_RUNS):
        for module in modules:
            times[module].append(run(IMPORT.format(module=module)))
    return {module: statistics.median(found) for module, found in times.items()}


def timed(
    table: dict[str, tuple[str, str]], names: list[str], path: Path, repeats: int, check: str
) -> dict[str, float]:
    """Median over three processes of each program's median."""
    found: dict[str, list[float]] = {name: [] for name in names if name in table}
    for _ in range(3):
        for name, results in found.items():
            setup, statement = table[name]
            code = TIMED.format(setup=setup, statement=statement, repeats=repeats, check=check)
            results.append(run(code, str(path)))
    return {name: statistics.median(results) for name, results in found.items()}


def write_samples(folder: Path) -> tuple[Path, Path]:
    """One sharded array, and a group of 300 such arrays without consolidated metadata."""
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    crc32c = {"name": "crc32c"}
    sharding = {
        "chunk_shape": [32, 32],
        "codecs": [little, {"name": "zstd", "configuration": {"level": 3, "checksum": False}}, crc32c],
        "index_codecs": [little, crc32c],
        "index_location": "end",
    }
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4096, 4096],
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1024, 1024]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "NaN",
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
        "attributes": {"units": "K", "standard_name": "air_temperature"},
        "dimension_names": ["latitude", "longitude"],
    }
    group = folder / "group"
    for path in (folder / "array", *(group / f"array_{number:03}" for number in range(MEMBERS))):
        path.mkdir(parents=True)
        (path / "zarr.json").write_text(json.dumps(document))
    (group / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}))
    return folder / "array", group


def row(task: str, unit: float, times: dict[str, float], target: float, names: list[str]) -> bool:
    """Print one line; whether the target (in the same unit) is met."""
    ours = times["zardine"] / unit
    cells = []
    for name in names:
        if name not in times:
            cells.append(f"{'–':>10}{'':>9}")
        elif name == "zardine":
            cells.append(f"{ours:>10.3g}")
        else:
            ratio = f"{times[name] / times['zardine']:.1f} ×"
            cells.append(f"{times[name] / unit:>10.3g}{ratio:>9}")
    met = ours <= target
    print(f"{task:<34}{''.join(cells)}{f'≤ {target:g}':>10}  {'PASS' if met else 'MISS'}")
    return met


def main() -> int:
    names = [name for name in PACKAGES if find_spec(name) is not None]
    labels = []
    for name in names:
        try:
            labels.append(f"{name} {version(PACKAGES[name])}")
        except PackageNotFoundError:
            labels.append(name)
    print(", ".join(labels) + f", Python {sys.version.split()[0]}; medians in milliseconds; × is times zardine's\n")
    head = "".join(f"{name:>10}" if name == "zardine" else f"{name:>10}{'':>9}" for name in names)
    print(f"{'':<34}{head}{'target':>10}")
    millisecond = 1e-3
    with tempfile.TemporaryDirectory() as folder:
        BYTE_CODE["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "byte-code")
        imports = import_times(["numpy", *names])
        above = {name: max(0.0, imports[name] - imports["numpy"]) for name in names}
        array, group = write_samples(Path(folder))
        opening = timed(OPEN, names, array, 300, "assert tuple(result.shape) == (4096, 4096)")
        listing = timed(LIST, names, group, 7, f"assert len(result) == {MEMBERS}")
    met = [
        row("import, above numpy's", millisecond, above, 60, names),
        row("open an array on a local store", millisecond, opening, 0.3, names),
        row(f"list a group of {MEMBERS} arrays", millisecond, listing, 30, names),
    ]
    print(f"\nimport numpy alone: {imports['numpy'] * 1000:.0f} ms")
    print("every target is met" if all(met) else "a target is missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
