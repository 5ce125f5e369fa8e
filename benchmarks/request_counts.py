"""How many requests and bytes zardine and its peers need for the same work on the same S3 server (moto).

    python benchmarks/request_counts.py            # prints the table of docs/stores.md

Counted in the server's own log. The server runs in this interpreter's environment (``make test`` makes one), the
implementations in ``.bench-venv``, which ``make bench`` makes. With ``--latency 0.05`` a proxy adds that to each
request, and times are told.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

STEPS = (
    ("known", "open an array, format known"),
    ("unknown", "open an array, format not known"),
    ("many", "open a consolidated hierarchy of 300 arrays, list them"),
    ("cold", "one inner chunk, cold"),
    ("warm", "another one of the same shard"),
    ("shard", "a whole shard"),
    ("plane", "one inner chunk of each of 64 shards"),
    ("write", "write one inner chunk, the first since opening"),
    ("write again", "write another one of the same shard"),
)
KINDS = ("zardine", "zarr-python", "zarrs", "tensorstore")
SHARD, CHUNK = 32, 4


class Zardine:
    def __init__(self, url: str, bucket: str) -> None:
        import zardine

        self.zarr, self.root = zardine, f"s3://{bucket}"
        self.more = {"storage_options": {"endpoint_url": url, "key": "t", "secret": "t", "region": "us-east-1"}}

    def known(self):
        self.array = self.zarr.open_array(f"{self.root}/a.zarr", mode="r+", zarr_format=3, **self.more)

    def unknown(self):
        self.zarr.open_array(f"{self.root}/a.zarr", mode="r+", **self.more)

    def many(self):
        group = self.zarr.open_group(f"{self.root}/many.zarr", mode="r", **self.more)
        assert len(list(group.arrays())) == 300

    def read(self, *selection):
        return self.array[selection]

    def write(self, value, *selection):
        self.array[selection] = value


class ZarrPython(Zardine):
    def __init__(self, url: str, bucket: str) -> None:
        import zarr
        from obstore.store import S3Store

        def store(path):
            options = {"endpoint": url, "access_key_id": "t", "secret_access_key": "t", "region": "us-east-1"}
            return zarr.storage.ObjectStore(
                S3Store(bucket, prefix=path, client_options={"allow_http": True}, **options)
            )

        self.zarr, self.store = zarr, store

    def known(self):
        self.array = self.zarr.open_array(self.store("a.zarr"), mode="r+", zarr_format=3)

    def unknown(self):
        self.zarr.open_array(self.store("a.zarr"), mode="r+")

    def many(self):
        assert len(list(self.zarr.open_group(self.store("many.zarr"), mode="r").arrays())) == 300


class Zarrs(ZarrPython):
    def __init__(self, url: str, bucket: str) -> None:
        import zarrs  # noqa: F401

        super().__init__(url, bucket)
        self.zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})


class Tensorstore:
    def __init__(self, url: str, bucket: str) -> None:
        import tensorstore as ts

        os.environ.update(AWS_ACCESS_KEY_ID="t", AWS_SECRET_ACCESS_KEY="t")
        kvstore = {"driver": "s3", "bucket": bucket, "endpoint": url, "aws_region": "us-east-1", "path": "a.zarr/"}
        self.ts, self.spec = ts, {"driver": "zarr3", "kvstore": kvstore}
        self.context = ts.Context({"cache_pool": {"total_bytes_limit": 100_000_000}})

    def known(self):
        self.array = self.ts.open(self.spec, open=True, context=self.context).result()

    def unknown(self):
        self.ts.open({**self.spec, "driver": "auto"}, open=True, context=self.ts.Context()).result()

    def read(self, *selection):
        return self.array[selection].read().result()

    def write(self, value, *selection):
        self.array[selection].write(value).result()


def work(kind: str, url: str, bucket: str) -> None:
    """One implementation, step by step: each is told of on a line, and the next begins when a line comes in."""
    implementation = {"zardine": Zardine, "zarr-python": ZarrPython, "zarrs": Zarrs, "tensorstore": Tensorstore}[kind](
        url, bucket
    )
    size = 8 * SHARD
    steps = {
        "known": implementation.known,
        "unknown": implementation.unknown,
        "many": getattr(implementation, "many", None),
        "cold": lambda: implementation.read(slice(0, CHUNK), slice(0, CHUNK)),
        "warm": lambda: implementation.read(slice(CHUNK, 2 * CHUNK), slice(8, 8 + CHUNK)),
        "shard": lambda: implementation.read(slice(SHARD, 2 * SHARD), slice(0, SHARD)),
        "plane": lambda: implementation.read(slice(1, size, SHARD), slice(5, size, SHARD)),
        "write": lambda: implementation.write(7, slice(64, 64 + CHUNK), slice(64, 64 + CHUNK)),
        "write again": lambda: implementation.write(7, slice(68, 68 + CHUNK), slice(64, 64 + CHUNK)),
    }
    for name, step in steps.items():
        if name == "plane":
            implementation.known()
            print("ready", flush=True)
            sys.stdin.readline()
        begin, error = time.perf_counter(), None
        try:
            if step is None:
                error = "has none"
            else:
                step()
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"[:200]
        print(json.dumps([name, time.perf_counter() - begin, error]), flush=True)
        sys.stdin.readline()


def prepare(bucket: str) -> None:
    import numpy as np

    import zardine
    from servers import servers

    options = {"storage_options": servers.s3_options()}
    size = 8 * SHARD
    array = zardine.create_array(
        f"s3://{bucket}/a.zarr", shape=(size, size), chunks=(CHUNK, CHUNK), shards=(SHARD, SHARD), dtype="i4",
        compressors=None, **options,
    )  # fmt: skip
    array[...] = np.random.default_rng(0).integers(1, 1000, (size, size), "i4")
    group = zardine.open_group(f"s3://{bucket}/many.zarr", mode="w", **options)
    for number in range(300):
        group.create_array(f"a{number}", shape=(4,), chunks=(2,), dtype="f4")
    zardine.consolidate_metadata(group.store)


def measure(kind: str, python: str, bucket: str, latency: float) -> dict[str, str]:
    from servers import servers
    from servers.fault_proxy import FaultProxy

    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    proxy.latency = latency
    command = [python, __file__, "--work", kind, proxy.url if latency else servers.s3().url, bucket]
    found: dict[str, str] = {}
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        servers.s3().log()
        for line in process.stdout:
            log = servers.s3().log()
            if line.startswith("["):
                name, seconds, error = json.loads(line)
                lists = sum("list-type" in each for each in log)
                sizes = sum(int(each.split()[4]) for each in log)
                text = f"{len(log)}" + (f" ({lists} of them lists)" if lists else "") + f", {_bytes(sizes)}"
                if latency:
                    text += f", {seconds * 1e3:.0f} ms"
                found[name] = "–" if error else text
                if error and error != "has none":
                    print(f"{kind}, {name}: {error}", file=sys.stderr)
            process.stdin.write("\n")
            process.stdin.flush()
    proxy.close()
    return found


def _bytes(size: int) -> str:
    return f"{size / 1000:.1f} KB" if size >= 1000 else f"{size} B"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=str(ROOT / ".bench-venv" / "bin" / "python"))
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--only", action="append", choices=KINDS)
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(*arguments.work)
        return
    from servers import servers

    columns = {}
    for kind in arguments.only or KINDS:
        bucket = servers.new_bucket()
        prepare(bucket)
        columns[kind] = measure(kind, arguments.python, bucket, arguments.latency)
    print(f"| requests, bytes of the answers | {' | '.join(columns)} |")
    print(f"|---|{'---|' * len(columns)}")
    for name, says in STEPS:
        print(f"| {says} | {' | '.join(columns[kind].get(name, '–') for kind in columns)} |")


if __name__ == "__main__":
    main()
