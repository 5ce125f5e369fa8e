"""How long xarray takes with zardine, and with zarr-python: to open a store of 500 variables, to read, and to write.

    python benchmarks/xarray_doors.py

``engine="zardine"`` and ``zardine.xarray.to_zarr`` beside ``engine="zarr"`` and ``Dataset.to_zarr``, in turns in one
process: on the local disk (folder of temporary files), and on an S3 server (moto) whose answers take 30 ms each, with
its requests (zarr-python's through obstore). Printed is the shortest of several times, as a table of Markdown. Needs
the environment of ``make test``.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import zardine

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

VARIABLES, ROUNDS, FAR_ROUNDS = 500, 5, 2
LATENCY = 0.03
ENGINES = ("zarr", "zardine")
CHUNKS, SHARDS = {"y": 20, "x": 20}, {"y": 100, "x": 100}


Place = Callable[[str, str], tuple[Any, dict[str, Any]]]
"""What an engine takes for a store of some name, and further arguments."""


def steps(place: Place) -> dict[str, Callable[[str, Any], Any]]:
    """What is measured: functions of the engine, and of the data set that it opened."""
    rng = np.random.default_rng(1)
    new = xr.Dataset({f"w{n}": (("y", "x"), rng.random((400, 400))) for n in range(3)})

    def write(engine: str, _: Any) -> None:
        target, options = place(engine, "new.zarr")
        if engine == "zardine":
            zardine.xarray.to_zarr(new, target, mode="w", chunks=CHUNKS, shards=SHARDS, **options)
        else:
            inner, outer = tuple(CHUNKS.values()), tuple(SHARDS.values())
            encoding = {name: {"chunks": inner, "shards": outer} for name in new}
            new.to_zarr(target, mode="w", encoding=encoding, **options)

    def open_many(engine: str, _: Any) -> xr.Dataset:
        target, options = place(engine, "many.zarr")
        return xr.open_dataset(target, engine=engine, **options)

    return {
        f"open a store of {VARIABLES} variables": open_many,
        "a point": lambda _, data: data.v7[50, 50].load(),
        "a region of 60 × 60": lambda _, data: data.v8[10:70, 10:70].load(),
        "write 3 variables of 400 × 400": write,
    }


def measure(
    rounds: int, todo: dict[str, Callable[[str, Any], Any]], counted: Callable[[], int] = lambda: 0
) -> dict[tuple[str, str], tuple[float, int]]:
    """The shortest time of each step with each engine, and the requests of the last round."""
    found: dict[tuple[str, str], tuple[float, int]] = {}
    for _ in range(rounds):
        for engine in ENGINES:
            data = None
            for name, step in todo.items():
                counted()
                begin = time.perf_counter()
                result = step(engine, data)
                took = time.perf_counter() - begin
                data = result if name.startswith("open") else data
                print(f"{engine}, {name}: {took:.3f} s", file=sys.stderr, flush=True)
                found[name, engine] = min(took, found.get((name, engine), (took, 0))[0]), counted()
    return found


def near(folder: str) -> dict[tuple[str, str], tuple[float, int]]:
    zardine.xarray.to_zarr(many(), f"{folder}/many.zarr", chunks=CHUNKS, shards=SHARDS)
    return measure(ROUNDS, steps(lambda engine, name: (f"{folder}/{name}", {})))


def far() -> dict[tuple[str, str], tuple[float, int]]:
    import zarr
    from obstore.store import S3Store

    from servers import servers
    from servers.fault_proxy import FaultProxy

    bucket = servers.new_bucket()
    place = f"s3://{bucket}/many.zarr"
    zardine.xarray.to_zarr(many(), place, chunks=CHUNKS, shards=SHARDS, storage_options=servers.s3_options())
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    proxy.latency = LATENCY

    def place_of(engine: str, name: str) -> tuple[Any, dict[str, Any]]:
        if engine == "zardine":
            return f"s3://{bucket}/{name}", {"storage_options": servers.s3_options(proxy.url)}
        access = {"access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}
        store = S3Store(bucket, prefix=name, endpoint=proxy.url, client_options={"allow_http": True}, **access)
        return zarr.storage.ObjectStore(store), {}

    try:
        return measure(FAR_ROUNDS, steps(place_of), lambda: len(servers.s3().log()))
    finally:
        proxy.close()


def many() -> xr.Dataset:
    values = np.random.default_rng(0).random((100, 100))
    return xr.Dataset({f"v{n}": (("y", "x"), values) for n in range(VARIABLES)}, coords={"x": np.arange(100)})


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"xarray {version('xarray')}, zarr-python {version('zarr')}")
    with tempfile.TemporaryDirectory() as folder:
        local = near(folder)
    remote = far()
    print('| | local, `"zarr"` | local, `"zardine"` | 30 ms, `"zarr"` | 30 ms, `"zardine"` |\n|---|---|---|---|---|')
    for name, _ in local:
        if (name, "zarr") in local and _ == "zarr":
            cells = [f"{local[name, engine][0] * 1e3:.1f} ms" for engine in ENGINES]
            for engine in ENGINES:
                took, requests = remote[name, engine]
                cells.append(f"{took * 1e3:.0f} ms, {requests} requests")
            print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
