"""Write small stores of every kind with the zardine that is installed, to be kept: later versions have to read them.

``cd tests && python -m vectors.make_released_stores`` adds ``vectors/data/zardine_X_Y_Z.tar.xz`` for the version X.Y.Z:
a folder for each store, and ``expected.json`` with what they hold. Run it once for each release; what is there already
stays, since its worth is that nobody writes it again. What was stored is compared with what zarr-vectors reads.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import zardine
from vectors.geometry_samples import Killed, MortalStore
from vectors.stores_of_all_kinds import COUNT, WRITERS, positions, read_all
from vectors.with_zarr_vectors import agree
from zardine import vectors
from zardine.storage import LocalStore, MemoryStore

DATA = Path(__file__).parent / "data"
_CHUNK = 40
"""Few chunks, of which each is some files."""
_SHARDED: dict[str, Any] = {"shard_shape": 2, "compressor": "zstd"}


def attributes(store: Any) -> None:
    """Points in bins, with attributes of every type that there is."""
    number = np.arange(COUNT)
    types = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
    values: dict[str, Any] = {np.dtype(each).name: number.astype(each) for each in types}
    values |= {"text": [f"ä{i % 5}" for i in number], "rgb": np.stack([number] * 3, axis=1).astype("u1")}
    vectors.write_points(store, positions(), vertex_attributes=values, chunk_shape=_CHUNK, bin_shape=5, shard_shape=4)


def levels(store: Any) -> None:
    """Points in float32, with a coarser level."""
    many = np.random.default_rng(8).uniform(-30, 30, (300, 3)).astype("f4")
    vectors.write_points(store, many, vertex_attributes={"n": np.arange(300)}, chunk_shape=_CHUNK, bin_shape=10)
    vectors.build_pyramid(store, factors=[(2, 1)])


def levels_of_lines(store: Any) -> None:
    """Lines, with a coarser level, in shards."""
    WRITERS["polylines"](store, chunk_shape=_CHUNK, **_SHARDED)
    vectors.build_pyramid(store, factors=[(2, 1)])


STORES: dict[str, tuple[str, Callable[[Any], object]]] = {
    **{f"{kind} flat": (kind, partial(write, chunk_shape=_CHUNK)) for kind, write in WRITERS.items()},
    **{f"{kind} sharded": (kind, partial(write, chunk_shape=_CHUNK, **_SHARDED)) for kind, write in WRITERS.items()},
    "attributes": ("points", attributes),
    "levels": ("points", levels),
    "levels of lines": ("polylines", levels_of_lines),
}
"""Of each store of which kind of :data:`WRITERS` it is, and what writes it."""


def held(store: Any, kind: str) -> list[Any]:
    """Return what the levels of a store hold, as JSON gives it back."""
    numbers = [each["level"] for each in vectors.describe_store(store)["levels"]]
    found = [read_all(store, kind, **({"level": level} if level else {})) for level in numbers]
    return list(json.loads(json.dumps(found)))


def change(store: Any) -> None:
    """Change some cells of a sharded store."""
    vectors.append_points(store, positions()[:5] + 0.25, vertex_attributes={"n": np.arange(5)})


def changing(store: Any) -> None:
    """Points, to be changed."""
    vectors.write_points(
        store, positions(), vertex_attributes={"n": np.arange(COUNT)}, chunk_shape=_CHUNK, shard_shape=2
    )


def killed(folder: Path) -> None:
    """Write a store whose last change counts, and was not carried out: its log has yet to be applied."""
    for changes in range(1000):
        memory = MemoryStore()
        changing(memory)
        with suppress(Killed):
            change(MortalStore(memory, changes))
        if len(vectors.read_points(memory)) > COUNT:
            break
    for key in memory.list():
        LocalStore(folder).set(key, memory.get(key) or b"")


def main() -> None:
    target = DATA / f"zardine_{zardine.__version__.replace('.', '_')}.tar.xz"
    if target.exists():
        sys.exit(f"{target} is there already")
    expected: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        for name, (kind, write) in STORES.items():
            folder = str(Path(place, name))
            write(folder)
            if kind != "graph":  # of texts of edges it reads the numbers
                agree(folder)
            expected[name] = {"kind": kind, "levels": held(folder, kind)}
        killed(Path(place, "killed"))
        expected["killed"] = {"kind": "points", "levels": held(str(Path(place, "killed")), "points")}
        Path(place, "expected.json").write_text(json.dumps(expected, allow_nan=False))
        with tarfile.open(target, "w:xz", preset=9) as file:
            for each in sorted(Path(place).rglob("*")):
                if each.is_file():
                    entry = tarfile.TarInfo(each.relative_to(place).as_posix())
                    entry.size = each.stat().st_size
                    with each.open("rb") as content:
                        file.addfile(entry, content)


if __name__ == "__main__":
    main()
