"""Measure zarr-python with zardine's codec pipeline beside its own two and that of zarrs, in turns, and print a table.

::

    python benchmarks/zarr_python.py [--rounds 3] [--megabytes 32] [--folder /dev/shm]

Needs zarr; zarrs is measured where it is installed. Each figure is the shortest of all rounds, in milliseconds; the
last column is the shortest of the others divided by zardine's. ``in_place`` and ``append`` are values of zardine's
setting ``array.write_strategy``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import zarr
from zarr.codecs import ZstdCodec

import zardine
import zardine.zarr_python.pipeline  # which registers itself

PIPELINES = {
    "default": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "fused": "zarr.core.codec_pipeline.FusedCodecPipeline",
    "zarrs": "zarrs.ZarrsCodecPipeline",
    "zardine": "zardine.ZardineCodecPipeline",
}
STRATEGIES = ("rewrite", "append", "in_place")
BULK = ("write all, sharded", "write all, chunks", "read all, sharded", "read all, chunks")


def operations(sharded: zarr.Array, chunked: zarr.Array, data: Any) -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    n = data.shape[0]
    chunk = sharded.chunks[0]
    one = (slice(chunk, 2 * chunk), slice(chunk, 2 * chunk))
    part = (slice(n // 9, n // 2), slice(n // 3, n // 4 * 3))
    points = np.random.default_rng(1).integers(0, n, (2, 500))
    return {
        "write all, sharded": lambda: sharded.__setitem__(slice(None), data),
        "write all, chunks": lambda: chunked.__setitem__(slice(None), data),
        "read all, sharded": lambda: sharded[:],
        "read all, chunks": lambda: chunked[:],
        "read a region, sharded": lambda: sharded[part],
        "read a region, chunks": lambda: chunked[part],
        "read a row, sharded": lambda: sharded[n // 3],
        "read an inner chunk": lambda: sharded[one],
        "read 500 points, sharded": lambda: sharded.vindex[points[0], points[1]],
        **{f"update an inner chunk ({each})": lambda: sharded.__setitem__(one, data[one]) for each in STRATEGIES},
    }


def main() -> None:
    """Measure, and print a table of Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=32)
    parser.add_argument("--folder")
    given = parser.parse_args()
    names = dict(PIPELINES)
    try:
        import zarrs  # noqa: F401
    except ImportError:
        names.pop("zarrs")
    if not hasattr(zarr.core.codec_pipeline, "FusedCodecPipeline"):
        names.pop("fused")
    warnings.simplefilter("ignore")
    n = int((given.megabytes * 2**20 / 2) ** 0.5) // 1024 * 1024
    noise = np.random.default_rng(0).integers(0, 64, (n, n), "i2")
    data = np.cumsum(noise, axis=0, dtype="i2")
    times: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        arrays = {}
        for name, path in names.items():
            zarr.config.set({"codec_pipeline.path": path})
            options: dict[str, Any] = {"shape": data.shape, "dtype": "i2", "compressors": ZstdCodec(level=1)}
            arrays[name] = (
                zarr.create_array(folder, name=f"{name}-s", chunks=(128, 128), shards=(n, n), **options),
                zarr.create_array(folder, name=f"{name}-c", chunks=(256, 256), **options),
            )
        for _ in range(given.rounds):
            for what in operations(*arrays["zardine"], data):
                for name, pair in arrays.items():
                    work = operations(*pair, data)[what]
                    strategy = next((each for each in STRATEGIES if each in what), "rewrite")
                    for _ in range(1 if what in BULK else 3):
                        zardine.config.set({"array.write_strategy": strategy})
                        start = time.perf_counter()
                        work()
                        took = 1000 * (time.perf_counter() - start)
                        times.setdefault(what, {})[name] = min(took, times.get(what, {}).get(name, took))
        size = prod(sharded_shape(arrays["zardine"][0]))
    print(f"zarr-python {zarr.__version__}; {n} × {n} of int16, {size} inner chunks in one shard; milliseconds\n")
    print(f"| | {' | '.join(names)} | best other / zardine |\n|---|{'---|' * len(names)}---|")
    ratios = {}
    for what, each in times.items():
        ratios[what] = min(took for name, took in each.items() if name != "zardine") / each["zardine"]
        print(f"| {what} | {' | '.join(f'{each[name]:.2f}' for name in names)} | {ratios[what]:.2f} |")
    rest = [ratio for what, ratio in ratios.items() if not what.startswith("update")]
    print(f"| geometric mean of reads and writes | {'| ' * len(names)} {prod(rest) ** (1 / len(rest)):.2f} |")


def sharded_shape(array: zarr.Array) -> tuple[int, ...]:
    """How many inner chunks one shard has along each axis."""
    assert array.shards is not None
    return tuple(shard // chunk for shard, chunk in zip(array.shards, array.chunks, strict=True))


if __name__ == "__main__":
    main()
