"""Work on stores far away: how many requests and bytes zardine and its peers need for it, and how long it takes.

    python benchmarks/far.py                              # requests and bytes, as in docs/stores.md
    python benchmarks/far.py --latency 0.03 --rounds 3    # and times: each request waits so long
    python benchmarks/far.py --latency 0.1 --errors 0.01  # of which one of hundred is answered by 503
    python benchmarks/far.py --over http                  # by plain HTTP, where there is nothing to write

Prints two tables in Markdown: of each step and program the requests, the bytes of the answers, and the median time of
the rounds with least and most and the time of processors; and the peak memory of each step beyond what was held before
it. No step takes less than a request waits; the fastest peer's time over zardine's is the last column.

The server is versitygw (``far_server.py``), on the same processors. Where that could not be built, or with ``--server
moto``, it is moto, which answers one request at a time, in Python: requests cost more than their latency then, the same
for all. Between it and the implementations is a proxy, which waits, fails and counts (``distance.py``). Every round has
processes of its own, starts with another program, and no step finds what another one has read: each has an array of its
own. moto runs with the packages of this interpreter (``make test`` installs them), the implementations in
``.bench-venv``, which ``make bench`` makes. zardine is that of this checkout, or the one installed where all runs in
``.bench-venv``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import far_server
from distance import Distance
from tables import megabytes, shown, spread, table
from worker import peak, reset_peak

ROOT = Path(__file__).resolve().parent.parent
OWN = "" if "bench-venv" in sys.prefix else str(ROOT / "src")
"""Where zardine is, unless it is installed."""

STEPS = {
    "known": "open an array, format known",
    "unknown": "open an array, format not known",
    "many": "open a consolidated hierarchy of 300 arrays, list them",
    "cold": "one inner chunk, cold",
    "warm": "another one of the same shard",
    "kept": "the same one again, where chunks are kept",
    "shard": "a whole shard",
    "line": "a line through 12 shards",
    "plane": "a plane through 24 shards",
    "points": "one inner chunk of each of 48 shards",
    "all": "all of 48 shards",
    "raw": "a plane of a raw chunk of 8 MB",
    "box": "a box of 240 inner chunks in 10 shards of 2 MB",
    "strided": "every 24th plane of the same",
    "scattered": "100 elements of the same, here and there",
    "write": "write one inner chunk, the first since opening",
    "write again": "write another one of the same shard",
    "write all": "write 64 shards",
    "put": "write a chunk without a shard, the first since opening",
    "put again": "write another chunk without a shard",
    "put part": "write a part of a chunk without a shard",
    "put all": "write 64 chunks without shards",
    "late": "write one inner chunk, more than two seconds after opening",
    "append": "append rows, which are 4 shards",
    "create": "create an array",
    "member": "create an array in an open group",
    "members": "open a hierarchy of 300 arrays without consolidated metadata, list them",
    "copy": "copy an array of 48 shards",
    "delete": "erase an array of 4 shards in an open group",
}
READS = ("known", "unknown", "many", "cold", "warm", "kept", "shard", "line", "plane", "points", "all", "raw")
READS += ("box", "strided", "scattered")
KINDS = ("zardine", "zarr-python", "zarr-python, fsspec", "zarrs", "tensorstore")
SHAPE, SHARD, CHUNK = (384, 128, 128), (32, 64, 64), (16, 16, 16)
"""12 x 2 x 2 shards of 256 KiB, of 32 inner chunks of 8 KiB."""
WRITTEN = (128, 256, 256)
"""4 x 4 x 4 shards."""
RAW = (64, 256, 256)
"""One chunk."""
LARGE, LARGE_SHARD, LARGE_CHUNK = (640, 128, 128), (64, 128, 128), (16, 32, 32)
"""10 shards of 2 MiB, of 64 inner chunks of 32 KiB."""
FLAT = (64, 64, 64)
"""64 chunks."""
LATE = 2.1
"""Seconds."""
ARRAYS = ("a", "line", "plane", "points", "all", "kept", "append", "late", "copy")
OTHERS = ("box", "strided", "scattered", "raw", "write all", "put", "put all")
KEPT = 100_000_000
"""Bytes of chunks that are kept."""


class Zardine:
    def __init__(self, url: str, bucket: str, over: str) -> None:
        import zardine

        self.zarr = zardine
        self.root = f"s3://{bucket}" if over == "s3" else f"{url}/{bucket}"
        options = {"endpoint_url": url, "key": "test", "secret": "test", "region": "us-east-1"}
        self.more = {"storage_options": options} if over == "s3" else {}
        self.mode = "r+" if over == "s3" else "r"

    def place(self, name: str):
        return f"{self.root}/{name}.zarr"

    def known(self, name: str = "a"):
        return self.zarr.open_array(self.place(name), mode=self.mode, zarr_format=3, **self.more)

    def unknown(self):
        self.zarr.open_array(self.place("a"), mode=self.mode, **self.more)

    def many(self):
        group = self.zarr.open_group(self.place("many"), mode="r", **self.more)
        assert len(list(group.arrays())) == 300

    def keeping(self, name: str):
        """An array that keeps the chunks that it has read, and asks whether they are still the same."""
        return self.known(name).with_config({"cache": KEPT})

    def read(self, array, *selection):
        return array[selection]

    def elements(self, array, places):
        return array.vindex[places]

    def write(self, array, value, *selection):
        array[selection] = value

    def append(self, array, values):
        array.append(values)

    def group(self):
        return self.zarr.open_group(self.place("hierarchy"), mode=self.mode, **self.more)

    def create(self, name: str):
        how = {"shape": SHAPE, "shards": SHARD, "chunks": CHUNK, "dtype": "u2", "compressors": None}
        return self.zarr.create_array(self.place(name), **how, **self.more)

    def member(self, group, name: str):
        shape = (SHARD[0], *SHAPE[1:])
        return group.create_array(name, shape=shape, shards=SHARD, chunks=CHUNK, dtype="u2", compressors=None)

    def members(self):
        group = self.zarr.open_group(self.place("hierarchy"), mode="r", **self.more)
        assert len([name for name, _ in group.arrays() if name.startswith("a")]) == 300

    def copy(self, array, name: str):
        self.zarr.from_array(self.place(name), data=array, **self.more)

    def delete(self, group, name: str):
        del group[name]


class ZarrPython(Zardine):
    def __init__(self, url: str, bucket: str, over: str) -> None:
        import obstore.store as stores
        import zarr

        self.zarr, self.more, self.mode = zarr, {}, "r+" if over == "s3" else "r"
        client = {"client_options": {"allow_http": True}}

        def place(name):
            if over == "http":
                return zarr.storage.ObjectStore(
                    stores.HTTPStore(f"{url}/{bucket}/{name}.zarr", **client), read_only=True
                )
            options = {"endpoint": url, "access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}
            return zarr.storage.ObjectStore(stores.S3Store(bucket, prefix=f"{name}.zarr", **client, **options))

        self.place = place

    keeping = None


class ZarrPythonFsspec(Zardine):
    keeping = None

    def __init__(self, url: str, bucket: str, over: str) -> None:
        super().__init__(url, bucket, over)
        import zarr

        options = {"endpoint_url": url, "key": "test", "secret": "test", "client_kwargs": {"region_name": "us-east-1"}}
        self.zarr, self.more = zarr, {"storage_options": options} if over == "s3" else {}


class Zarrs(ZarrPython):
    def __init__(self, url: str, bucket: str, over: str) -> None:
        import zarrs  # noqa: F401

        super().__init__(url, bucket, over)
        self.zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})


class Tensorstore:
    many = group = members = None

    def __init__(self, url: str, bucket: str, over: str) -> None:
        import tensorstore as ts

        os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test")
        s3 = {"driver": "s3", "bucket": bucket, "endpoint": url, "aws_region": "us-east-1"}
        http = {"driver": "http", "base_url": f"{url}/{bucket}/"}
        self.ts, self.over, self.kvstore = ts, over, s3 if over == "s3" else http
        self.context = ts.Context({"cache_pool": {"total_bytes_limit": KEPT}})

    def spec(self, name: str, driver: str):
        path = {"path": f"{name}.zarr/"}
        if self.over == "http":
            path = {"base_url": f"{self.kvstore['base_url']}{name}.zarr/"}
        return {"driver": driver, "kvstore": {**self.kvstore, **path}}

    def known(self, name: str = "a"):
        return self.ts.open(self.spec(name, "zarr3"), open=True, context=self.context).result()

    def keeping(self, name: str):
        return self.known(name)

    def unknown(self):
        self.ts.open(self.spec("a", "auto"), open=True, context=self.ts.Context()).result()

    def read(self, array, *selection):
        return array[selection].read().result()

    def elements(self, array, places):
        return array.vindex[places].read().result()

    def write(self, array, value, *selection):
        array[selection].write(value).result()

    def append(self, array, values):
        begin = array.shape[0]
        grown = array.resize(exclusive_max=(begin + len(values), *array.shape[1:]), expand_only=True).result()
        grown[begin:].write(values).result()

    def create(self, name: str):
        crc, plain = {"name": "crc32c"}, {"name": "bytes", "configuration": {"endian": "little"}}
        shard = {"chunk_shape": CHUNK, "codecs": [plain], "index_codecs": [plain, crc]}
        metadata = {
            "shape": SHAPE,
            "data_type": "uint16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": SHARD}},
            "codecs": [{"name": "sharding_indexed", "configuration": shard}],
        }
        spec = {**self.spec(name, "zarr3"), "metadata": metadata}
        return self.ts.open(spec, create=True, context=self.context).result()

    def copy(self, array, name: str):
        self.create(name).write(array).result()

    def delete(self, _, name: str):
        place = self.spec(f"hierarchy.zarr/{name}", "zarr3")["kvstore"]
        self.ts.KvStore.open(place, context=self.context).result().delete_range(self.ts.KvStore.KeyRange()).result()


CLASSES = dict(zip(KINDS, (Zardine, ZarrPython, ZarrPythonFsspec, Zarrs, Tensorstore), strict=True))


def work(kind: str, url: str, bucket: str, over: str, wanted: list[str]) -> None:
    """One implementation, step by step: each is told of on a line, and the next begins when a line comes in."""
    import numpy as np

    use = CLASSES[kind](url, bucket, over)
    first = [slice(0, length) for length in CHUNK]
    second = [slice(length, 2 * length) for length in CHUNK]
    ones, rows = np.ones(WRITTEN, "u2"), np.ones((SHARD[0], *SHAPE[1:]), "u2")
    chosen = np.random.default_rng(1)
    places = tuple(chosen.integers(0, length, 100) for length in LARGE)
    arrays, own = {}, f"{os.getpid()}-{time.time_ns()}"

    def opens():
        arrays["a"] = use.known()

    steps = {
        "known": opens,
        "unknown": use.unknown,
        "many": use.many,
        "cold": lambda: use.read(arrays["a"], *first),
        "warm": lambda: use.read(arrays["a"], *second),
        "kept": use.keeping and (lambda: use.read(arrays["kept"], *first)),
        "shard": lambda: use.read(arrays["a"], *(slice(0, 32), slice(64, 128), slice(0, 64))),
        "line": lambda: use.read(arrays["line"], slice(None), 5, 7),
        "plane": lambda: use.read(arrays["plane"], slice(None), slice(None), 7),
        "points": lambda: use.read(arrays["points"], *(slice(3, None, length) for length in SHARD)),
        "all": lambda: use.read(arrays["all"], ...),
        "raw": lambda: use.read(arrays["raw"], 7),
        "box": lambda: use.read(arrays["box"], slice(None), slice(0, 96), slice(32, 96)),
        "strided": lambda: use.read(arrays["strided"], slice(5, None, 24)),
        "scattered": lambda: use.elements(arrays["scattered"], places),
        "write": lambda: use.write(arrays["a"], 7, *first),
        "write again": lambda: use.write(arrays["a"], 7, *second),
        "write all": lambda: use.write(arrays["write all"], ones, ...),
        "put": lambda: use.write(arrays["put"], 7, *first),
        "put again": lambda: use.write(arrays["put"], 7, *second),
        "put part": lambda: use.write(arrays["put"], 7, 0, 0, 0),
        "put all": lambda: use.write(arrays["put all"], ones[tuple(map(slice, FLAT))], ...),
        "late": lambda: use.write(arrays["late"], 7, *first),
        "append": lambda: use.append(arrays["append"], rows),
        "create": lambda: use.create(own),
        "member": use.group and (lambda: use.member(arrays["member"], own)),
        "members": use.members,
        "copy": lambda: use.copy(arrays["copy"], f"{own}-copy"),
        "delete": lambda: use.delete(arrays["delete"], f"{own}-gone"),
    }
    wanted = [name for name in wanted if over == "s3" or name in READS]
    steps = {name: step for name, step in steps.items() if name == "known" or name in wanted}

    def next_step(text: str) -> None:
        print(text, flush=True)
        sys.stdin.readline()

    def get_ready(name: str) -> None:
        """What is not measured of a step: opening an array, or reading what is to be kept."""
        if name == "kept":
            arrays[name] = use.keeping(name)
            use.read(arrays[name], *first)
        elif name in ("member", "delete"):
            arrays[name] = use.group and use.group()
            if name == "delete":
                gone = f"{own}-gone"
                made = use.member(arrays[name], gone) if use.group else use.create(f"hierarchy.zarr/{gone}")
                use.write(made, 1, slice(0, SHARD[0]))
        elif name == "write":
            arrays["a"] = use.known()
        elif name in (*ARRAYS, *OTHERS):
            arrays[name] = use.known(name.replace(" ", "-"))
            if name == "late":
                time.sleep(LATE)
        else:
            return
        next_step("ready")

    use.read(use.known("kept"), *second)  # what is loaded with the first use is no matter of distance
    next_step("ready")
    for name, step in steps.items():
        error, took = "has none" if step is None else None, (0.0, 0.0, 0)
        try:
            if step is not None:
                get_ready(name)
                before, begin, spent = reset_peak(), time.perf_counter(), time.process_time()
                step()
                took = time.perf_counter() - begin, time.process_time() - spent, max(0, peak() - before)
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"[:200]
        next_step(json.dumps([name, *took, error]))


def prepare(url: str, bucket: str) -> None:
    """Store what the steps work on."""
    import numpy as np

    import zardine

    options = {"storage_options": {"endpoint_url": url, "key": "test", "secret": "test", "region": "us-east-1"}}
    values = np.random.default_rng(0).integers(1, 1000, SHAPE, "u2")

    def make(name: str, **how) -> None:
        zardine.create_array(f"s3://{bucket}/{name}.zarr", **{"compressors": None, **how}, **options)

    small = {"chunks": CHUNK, "shards": SHARD}
    for name in ARRAYS:
        make(name, data=values, **small)
    make("write-all", shape=WRITTEN, dtype="u2", **small)
    large = np.random.default_rng(0).integers(1, 1000, LARGE, "u2")
    for name in ("box", "strided", "scattered"):
        make(name, data=large, chunks=LARGE_CHUNK, shards=LARGE_SHARD)
    raw = np.arange(np.prod(RAW), dtype="u2").reshape(RAW)
    make("raw", data=raw, chunks=RAW, checksum=False)
    for name in ("put", "put-all"):
        make(name, data=values[tuple(map(slice, FLAT))], chunks=CHUNK, checksum=False)
    for name in ("many", "hierarchy"):
        group = zardine.open_group(f"s3://{bucket}/{name}.zarr", mode="w", **options)
        for number in range(300):
            group.create_array(f"a{number}", shape=(4,), chunks=(2,), dtype="f4")
    zardine.consolidate_metadata(f"s3://{bucket}/many.zarr", **options)


class Step:
    """What one step took in each round."""

    def __init__(self) -> None:
        self.requests: list[int] = []
        self.nbytes: list[int] = []
        self.lists = 0
        self.seconds: list[float] = []
        self.spent: list[float] = []
        """Seconds of processors: those of the server are not among them."""
        self.memory = 0
        """The most bytes of memory during the step, beyond what was held before."""

    def text(self, *, times: bool) -> str:
        least, most = min(self.requests), max(self.requests)
        count = f"{least}" if least == most else f"{least} – {most}"
        text = f"{count}{f' ({self.lists} of them lists)' if self.lists else ''}, {_bytes(max(self.nbytes))}"
        return f"{text}, {spread(self.seconds)}, processors {shown(median(self.spent))}" if times else text


def measure(
    kind: str, server: str, bucket: str, options: argparse.Namespace, number: int, found: dict[str, Step]
) -> None:
    """One round of one implementation."""
    chance = random.Random(number)
    port = int(server.rpartition(":")[2])
    proxy = Distance(port, options.latency, lambda: chance.random() < options.errors)
    command = [options.python, __file__, "--work", kind, proxy.url, bucket, options.over, "--steps", *options.steps]
    environment = os.environ | ({"PYTHONPATH": OWN} if OWN else {})
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            requests, nbytes = list(proxy.requests), proxy.nbytes
            proxy.requests.clear()
            proxy.nbytes = 0
            if line.startswith("["):
                name, seconds, spent, memory, error = json.loads(line)
                if not error:
                    step = found.setdefault(name, Step())
                    step.requests.append(len(requests))
                    step.seconds.append(seconds)
                    step.spent.append(spent)
                    step.memory = max(step.memory, memory)
                    step.lists = sum("list-type" in each for each in requests)
                    step.nbytes.append(nbytes)
                elif error != "has none":
                    print(f"{kind}, {name}: {error}", file=sys.stderr)
            process.stdin.write("\n")
            process.stdin.flush()
    proxy.close()


def _bytes(size: int) -> str:
    for unit, factor in (("MB", 10**6), ("KB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=str(ROOT / ".bench-venv" / "bin" / "python"))
    parser.add_argument("--latency", type=float, default=0.0, help="seconds that each request waits")
    parser.add_argument("--errors", type=float, default=0.0, help="share of requests that are answered by 503")
    parser.add_argument("--over", choices=("s3", "http"), default="s3")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", action="append", choices=KINDS)
    parser.add_argument("--steps", nargs="*", choices=[*STEPS], default=[*STEPS])
    far_server.add_option(parser)
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(*options.work, options.steps)
        return
    columns: dict[str, dict[str, Step]] = {kind: {} for kind in options.only or KINDS}
    server = far_server.start(options.server)
    try:
        bucket = server.new_bucket(public=options.over == "http")
        prepare(server.url, bucket)
        kinds = list(columns)
        for number in range(options.rounds):
            shift = number % len(kinds)
            for kind in kinds[shift:] + kinds[:shift]:
                measure(kind, server.url, bucket, options, number, columns[kind])
    finally:
        server.close()
    print(about(options, server.about) + "\n")
    print(report(columns, times=bool(options.latency)))
    print(memory(columns), end="")


def about(options: argparse.Namespace, server: str) -> str:
    """Say what the tables are of, as a heading and a sentence."""
    where = "S3" if options.over == "s3" else "HTTP"
    waits = f", {options.latency * 1e3:g} ms a request" if options.latency else ""
    fails = f", of which {options.errors:.0%} are answered by an error" if options.errors else ""
    rounds = f"Median of {options.rounds} rounds (least – most). " if options.latency and options.rounds > 1 else ""
    least = f" No step can take less than {options.latency * 1e3:g} ms." if options.latency else ""
    return f"### {where}{waits}{fails}\n\n{rounds}The server is {server}, on the same processors.{least}"


def report(columns: dict[str, dict[str, Step]], *, times: bool) -> str:
    """What each step took of requests, bytes and time, and the best of the others over zardine."""
    compared = times and "zardine" in columns and len(columns) > 1
    rows = []
    for name, says in STEPS.items():
        seen = {kind: found[name] for kind, found in columns.items() if name in found}
        if not seen:
            continue
        texts = [seen[kind].text(times=times) if kind in seen else "–" for kind in columns]
        if compared:
            middles = {kind: median(step.seconds) for kind, step in seen.items()}
            ours = middles.pop("zardine", None)
            texts.append(f"{min(middles.values()) / ours:.2f} ×" if ours and middles else "–")
        rows.append([says, *texts])
    what = "requests, bytes of the answers" + (", time" if times else "")
    return table([what, *columns, *(["best peer / zardine"] if compared else [])], rows)


def memory(columns: dict[str, dict[str, Step]]) -> str:
    """The most memory of each step."""
    rows = []
    for name, says in STEPS.items():
        seen = [found[name].memory if name in found else None for found in columns.values()]
        if any(each is not None for each in seen):
            rows.append([says, *map(megabytes, seen)])
    return table(["peak memory, MB", *columns], rows)


if __name__ == "__main__":
    main()
