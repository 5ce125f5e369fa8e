"""What a change of zardine costs: the same reads and writes with two source trees, in turns, in one run.

    python benchmarks/compare.py BASE_SRC NEW_SRC --rounds 12
    python benchmarks/compare.py BASE_SRC NEW_SRC --only 'append*' --only 'memory*' --folder /dev/shm

A source tree is a folder that holds ``zardine`` with its kernel. Each round runs every tree once, each time in a
process of its own and beginning with another one. A row shows the least time of each tree over all rounds, in
microseconds: what a busy machine adds is left out that way, if there are enough rounds. On one that is always busy
``--cpu`` counts the time of processors only, of all threads, which leaves out waiting for the disk, too. Exits with 1
where a row is slower by more than ``--most`` per cent.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

SECONDS = 0.15
"""For which one row is repeated in one process."""

Step = Callable[[], Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", type=Path, metavar="BASE_SRC")
    parser.add_argument("new", type=Path, metavar="NEW_SRC")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--folder", action="append", default=[], help="where arrays are stored; may be given again")
    parser.add_argument("--most", type=float, default=5.0, metavar="PERCENT")
    parser.add_argument("--cpu", action="store_true", help="time of processors rather than of clocks")
    args = parser.parse_args()
    trees = [args.base.resolve(), args.new.resolve()]
    asked = {"folders": args.folder or [tempfile.gettempdir()], "only": args.only, "cpu": args.cpu}
    least: list[dict[str, float]] = [{}, {}]
    for number in range(args.rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            for name, seconds in _run(trees[which], asked).items():
                least[which][name] = min(seconds, least[which].get(name, seconds))
    slower = False
    width = max(map(len, least[0]), default=0)
    print(f"{'':{width}}  {'before':>10}  {'after':>10}  change")
    for name, before in least[0].items():
        after = least[1][name]
        change = 100 * (after / before - 1)
        slower |= change > args.most
        mark = "  SLOWER" if change > args.most else ""
        print(f"{name:{width}}  {before * 1e6:10.1f}  {after * 1e6:10.1f}  {change:+5.1f} %{mark}")
    return int(slower)


def _run(tree: Path, asked: dict[str, Any]) -> dict[str, float]:
    command = [sys.executable, "-P", __file__, "--measure", json.dumps(asked)]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(request: str) -> None:
    """Print the least seconds of each row, as the process of one tree."""
    asked = json.loads(request)
    clock = time.process_time if asked["cpu"] else time.perf_counter

    def wanted(name: str) -> bool:
        return not asked["only"] or any(fnmatch(name, pattern) for pattern in asked["only"])

    found = {}
    for folder in asked["folders"]:
        root = Path(tempfile.mkdtemp(prefix="zardine-compare-", dir=folder))
        try:
            for name, make in _local_rows().items():
                if wanted(name):
                    found[f"{name} ({folder})"] = _least(make(str(root / name.replace(" ", "-"))), clock)
        finally:
            shutil.rmtree(root)
    found.update({name: _least(make(), clock) for name, make in _memory_rows().items() if wanted(name)})
    print(json.dumps(found))


def _least(step: Step, clock: Callable[[], float]) -> float:
    for _ in range(3):
        step()
    least, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = clock()
        step()
        least = min(least, clock() - start)
    return least


def _local_rows() -> dict[str, Callable[[str], Step]]:
    rows: dict[str, Callable[[str], Step]] = {
        "read one block": lambda path: _reading(_array(path)),
        "open, read one block": _open_and_read,
        "read all, sharded": lambda path: _all(_array(path), write=False),
        "read all, unsharded": lambda path: _all(_array(path, shards=None), write=False),
        "write all, sharded": lambda path: _all(_array(path), write=True),
        "write all, unsharded": lambda path: _all(_array(path, shards=None), write=True),
        "write one chunk, unsharded": lambda path: _writing(_array(path, shards=None)),
        "write a part of a chunk, unsharded": lambda path: _writing(_array(path, shards=None), part=True),
        "read one block, zip": _zip,
        "set an attribute": _attribute,
        "resize": _resize,
    }
    for strategy in ("append", "in_place", "rewrite"):
        for side, size in ((1408, 4), (3200, 20)):

            def make(path: str, strategy: str = strategy, shape: tuple[int, int] = (side, side)) -> Step:
                return _writing(_array(path, shape, shape, {"write_strategy": strategy, "most_unused": 1.0}))

            rows[f"{strategy} one chunk, shard of {size} MB"] = make
    return rows


def _memory_rows() -> dict[str, Callable[[], Step]]:
    return {
        "memory, read one block": lambda: _reading(_array(_memory())),
        "memory, read one block, unsharded": lambda: _reading(_array(_memory(), shards=None)),
        "memory, write one chunk": lambda: _writing(_array(_memory())),
        "memory, write one chunk, unsharded": lambda: _writing(_array(_memory(), shards=None)),
    }


def _memory() -> Any:
    from zardine.storage import MemoryStore

    return MemoryStore()


def _array(
    where: Any,
    shape: tuple[int, int] = (2048, 2048),
    shards: tuple[int, int] | None = (1024, 1024),
    config: dict[str, Any] | None = None,
) -> Any:
    """Noise as uint16, in chunks of 64 x 128 (16 KB)."""
    import numpy as np

    import zardine

    array = zardine.create_array(
        where, shape=shape, chunks=(64, 128), shards=shards, dtype="u2", compressors=None, config=config
    )
    array[...] = np.random.default_rng(0).integers(1, 1000, shape, dtype="u2")
    return array


def _reading(array: Any) -> Step:
    number = 0

    def step() -> None:
        nonlocal number
        number += 1
        row, column = 64 * (number % 16), 128 * (number // 16 % 8)
        array[row : row + 64, column : column + 128]

    return step


def _writing(array: Any, *, part: bool = False) -> Step:
    import numpy as np

    values = np.random.default_rng(1).integers(1, 1000, (64, 127 if part else 128), dtype="u2")
    number = 0

    def step() -> None:
        nonlocal number
        number += 1
        row, column = 64 * (number % 16), 128 * (number // 16 % 8)
        array[row : row + 64, column : column + values.shape[1]] = values

    return step


def _open_and_read(path: str) -> Step:
    import zardine

    _array(path)
    return lambda: zardine.open_array(path, mode="r")[:64, :128]


def _all(array: Any, *, write: bool) -> Step:
    values = array[...]
    return lambda: array.__setitem__(..., values) if write else array[...]


def _zip(path: str) -> Step:
    import zardine
    from zardine.storage import ZipStore

    with ZipStore(f"{path}.zip") as store:
        _array(store)
    return _reading(zardine.open_array(ZipStore(f"{path}.zip", read_only=True), mode="r"))


def _attribute(path: str) -> Step:
    array, number = _array(path), 0

    def step() -> None:
        nonlocal number
        number += 1
        array.attrs["number"] = number

    return step


def _resize(path: str) -> Step:
    array = _array(path)
    shapes = [array.shape, (array.shape[0] + 1024, array.shape[1])]

    def step() -> None:
        array.resize(shapes[array.shape == shapes[0]])

    return step


if __name__ == "__main__":
    sys.exit(measure(sys.argv[2]) if sys.argv[1:2] == ["--measure"] else main())
