"""What is measured: every workload with its layout and, where there is one, the ratio that is wanted.

The ratio is the best peer's median time over zardine's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import TYPE_CHECKING

import layouts

if TYPE_CHECKING:
    from operations import Operation, Setting

SIZES = ("4k", "8k", "64k", "512k", "unsharded")
PLANES = {
    "plane-0": (slice(201, 202), slice(0, 384), slice(0, 384)),
    "plane-1": (slice(0, 384), slice(201, 202), slice(0, 384)),
    "plane-2": (slice(0, 384), slice(0, 384), slice(201, 202)),
}
LINES = {
    "line-0": (slice(0, 384), slice(201, 202), slice(77, 78)),
    "line-1": (slice(201, 202), slice(0, 384), slice(77, 78)),
    "line-2": (slice(201, 202), slice(77, 78), slice(0, 384)),
}
STRIDED = (slice(10, 370, 3), slice(20, 360, 2), slice(5, 381, 4))
PART = (8, 8, 8)
"""Elements of a part of a chunk of 32³."""
CORNER = (slice(192, 224), slice(0, 32), slice(64, 96))


@dataclass(frozen=True)
class Workload:
    """One line of the tables. ``name`` is ``kind/codec`` or ``kind/codec/size``."""

    name: str
    title: str
    layout: str
    wanted: float | None = None
    cold: bool = False
    """Whether the files leave the page cache before each run."""
    budget: float = 1.0
    """Seconds of repetitions in one process; there are at least three where that is possible."""
    rounds: int | None = None
    """Rounds at most, for what is slow by nature."""
    in_memory: bool = False
    """Whether what is written goes to a file system in memory."""

    @property
    def kind(self) -> str:
        return self.name.split("/")[0]

    @property
    def has_limit(self) -> bool:
        """Whether the codec library alone can be timed for it: see ``limits.py``."""
        kinds = ("read", "write", "write-memory", "import", "chunk", "part", "element", "points", *PLANES, *LINES)
        return self.kind in kinds and not self.name.endswith(("/4k", "/8k"))

    def source(self, *, checksum: bool) -> str:
        """The name of the layout that is used."""
        return f"{self.layout}+crc" if checksum and self.layout else self.layout


def _operations() -> dict[str, Callable[[Setting], Operation]]:
    import operations as op

    made: dict[str, Callable[[Setting], Operation]] = {
        "read": op.Read,
        "chunk": op.ReadChunk,
        "part": lambda setting: op.ReadChunk(setting, PART),
        "element": lambda setting: op.ReadChunk(setting, (1, 1, 1)),
        "strided": lambda setting: op.Read(setting, STRIDED, strided=True),
        "points": op.ReadPoints,
        "write": op.WriteAll,
        "write-memory": op.WriteAll,
        "write-shard": op.WriteShard,
        "fill": op.Fill,
        "update": op.Update,
        "append": op.Append,
        "open": op.Open,
        "open-new": op.OpenNew,
        "list": op.ListGroup,
        "cold-read": op.OpenAndRead,
        "cold-chunk": lambda setting: op.OpenAndRead(setting, CORNER),
    }
    for name, box in (PLANES | LINES).items():
        made[name] = lambda setting, box=box: op.Read(setting, box)
    return made


def operation(kind: str, setting: Setting) -> Operation:
    """The timed part of a workload, ready to run. ``import`` and ``variety`` have none: the worker does them itself."""
    return _operations()[kind](setting)


WANTED = {
    "read/lz4/8k": 1.6,
    "read/lz4/64k": 1.5,
    "read/zstd/64k": 1.2,
    "read/gzip/64k": 1.15,
    "read/lz4/512k": 1.2,
    "read/zstd/unsharded": 1.05,
    "read/raw/unsharded": 1.1,
    "chunk/lz4": 1.5,
    "chunk/zstd": 1.3,
    "part/lz4": 2.0,
    "part/zstd": 1.5,
    "part/raw": 1.5,
    "element/lz4": 2.0,
    "element/zstd": 1.5,
    "element/raw": 1.0,
    "plane-0/lz4": 1.5,
    "plane-1/lz4": 1.5,
    "plane-2/lz4": 1.5,
    "line-0/lz4": 1.0,
    "line-1/lz4": 1.0,
    "line-2/lz4": 1.5,
    "plane-0/zstd/unsharded": 1.5,
    "plane-0/raw/unsharded": 1.0,
    "line-2/raw/unsharded": 1.0,
    "strided/lz4": 1.2,
    "points/lz4": 1.2,
    "write/lz4/8k": 1.4,
    "write/lz4/64k": 1.2,
    "write/zstd/64k": 1.05,
    "write/raw/unsharded": 1.0,
    "write-memory/raw/unsharded": 1.0,
    "write-shard/lz4": 1.0,
    "update/lz4": 2.0,
    "append/lz4": 3.0,
    "open": 0.67,
    "open-new": 0.67,
    "list": 10.0,
    "import": 1.2,
}
for _codec, _size in (("lz4", "512k"), ("lz4", "4m"), ("raw", "4m")):
    WANTED |= {f"{kind}/{_codec}/{_size}": 1.5 for kind in (*PLANES, *LINES, "points")}
SIZE_LABELS = {
    "4k": "4 KB",
    "8k": "8 KB",
    "64k": "64 KB",
    "512k": "512 KB",
    "4m": "4 MB",
    "unsharded": "unsharded 1.7 MB",
}


def _all() -> list[Workload]:
    found: list[Workload] = []

    def add(name: str, title: str, layout: str = "", **more: object) -> None:
        found.append(Workload(name, title, layout, WANTED.get(name), **more))  # type: ignore[arg-type]

    for codec in layouts.CODECS:
        for size in SIZES:
            add(f"read/{codec}/{size}", f"read all, {SIZE_LABELS[size]}, {codec}", f"{codec}-{size}")
    for codec in layouts.CODECS:
        add(f"chunk/{codec}", f"one inner chunk at random, {codec}", f"{codec}-64k", budget=0.5)
        add(f"part/{codec}", f"8³ elements of an inner chunk at random, {codec}", f"{codec}-64k", budget=0.5)
        add(f"element/{codec}", f"one element at random, {codec}", f"{codec}-64k", budget=0.5)
        for axis in range(3):
            add(f"plane-{axis}/{codec}", f"plane across axis {axis}, {codec}", f"{codec}-64k", budget=0.5)
            add(f"line-{axis}/{codec}", f"line along axis {axis}, {codec}", f"{codec}-64k", budget=0.5)
        for name, says in (("plane-0", "plane across axis 0"), ("line-2", "line along axis 2")):
            title = f"{says}, {SIZE_LABELS['unsharded']}, {codec}"
            add(f"{name}/{codec}/unsharded", title, f"{codec}-unsharded", budget=0.5)
        add(f"strided/{codec}", f"strided box, {codec}", f"{codec}-64k")
        add(f"points/{codec}", f"2,000 random points, {codec}", f"{codec}-64k")
    for codec, size in (("lz4", "512k"), ("lz4", "4m"), ("raw", "4m")):
        for axis in range(3):
            title = f"plane across axis {axis}, {SIZE_LABELS[size]}, {codec}"
            add(f"plane-{axis}/{codec}/{size}", title, f"{codec}-{size}", budget=0.5)
        for axis in range(3):
            title = f"line along axis {axis}, {SIZE_LABELS[size]}, {codec}"
            add(f"line-{axis}/{codec}/{size}", title, f"{codec}-{size}", budget=0.5)
        add(f"points/{codec}/{size}", f"2,000 random points, {SIZE_LABELS[size]}, {codec}", f"{codec}-{size}")
    for codec in layouts.CODECS:
        for size in ("8k", "64k", "unsharded"):
            add(f"write/{codec}/{size}", f"write all, {SIZE_LABELS[size]}, {codec}", f"{codec}-{size}", budget=1.5)
    title = f"write all, {SIZE_LABELS['unsharded']}, raw, to a file system in memory"
    add("write-memory/raw/unsharded", title, "raw-unsharded", budget=1.5, in_memory=True)
    add("write-shard/lz4", "write one shard of 1 GiB, lz4", "large-lz4", budget=0, rounds=2)
    for codec in layouts.CODECS:
        add(f"fill/{codec}", f"fill a shard chunk by chunk, {codec}", f"fill-{codec}", budget=60, rounds=2)
        add(f"update/{codec}", f"update a chunk of a full shard, {codec}", f"edit-{codec}")
        add(f"append/{codec}", f"append a row, {codec}", f"rows-{codec}")
    for codec in layouts.CODECS:
        add(f"cold-read/{codec}", f"open and read all, 64 KB, {codec}, cold", f"{codec}-64k", cold=True)
        add(f"cold-chunk/{codec}", f"open and read one chunk, {codec}, cold", f"{codec}-64k", cold=True)
    add("open", "open an array that was open before", "zstd-64k", budget=0.5)
    add("open-new", "open an array for the first time", "zstd-64k", budget=0.5)
    add("list", "list a group of 300 arrays", "", budget=2)
    add("import", "import")
    add("variety", "25 arrays of all element sizes and dimensions", rounds=3)
    return found


WORKLOADS = {workload.name: workload for workload in _all()}


def chosen(patterns: list[str], *, quick: bool) -> list[Workload]:
    """The workloads that match one of the patterns, or all; ``quick`` shortens that."""
    if patterns:
        return [w for w in WORKLOADS.values() if any(fnmatch(w.name, pattern) for pattern in patterns)]
    short = ("update", "append", "variety")
    return [w for w in WORKLOADS.values() if not quick or w.wanted is not None or w.kind in short]
