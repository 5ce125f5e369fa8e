"""Run by a test, with calls that can be let fail: say which writes end wrongly where a file system answers late or not.

Each write starts from a copy of the same stores. One call of it fails; then the write must have raised an error of the
library, and the old value is there, or it must have succeeded, and the new one is.
"""

from __future__ import annotations

import ctypes
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import zardine
from zardine import vectors
from zardine.errors import ZardineError
from zardine.storage import LocalStore, ZipStore
from zardine.stores.base import Condition
from zardine.stores.open_files import kept_files

KINDS = {"close": 4, "rename": 5, "link": 6, "unlink": 7, "mkdir": 8, "pread": 9, "too many open files": 10}
REFUSES = {"close", "too many open files"}
"""Kinds after which an error is right, too."""
MOST = 40
POINTS = np.random.default_rng(0).uniform(0, 9, (20, 3)).astype("f4")


class Write(NamedTuple):
    """One change of one value, and what tells the old value from the new one."""

    act: Callable[[Path], object]
    state: Callable[[Path], object]
    needs: tuple[str, ...]
    """What lies in the store before."""


def values(name: str) -> Callable[[Path], object]:
    return lambda root: zardine.open_array(root / name)[...].tolist()


def file(name: str) -> Callable[[Path], object]:
    return lambda root: LocalStore(root).get(name)


def part(name: str, **how: Any) -> Write:
    def act(root: Path) -> None:
        zardine.open_array(root / name, mode="r+", config=how)[2:4] = 7

    return Write(act, values(name), (name,))


def whole(name: str, durable: bool = False) -> Write:
    def act(root: Path) -> None:
        zardine.open_array(LocalStore(root, durable=durable), path=name, mode="r+")[0:8] = 7

    return Write(act, values(name), (name,))


def in_pieces(root: Path) -> None:
    with LocalStore(root).new_value("f") as value:
        value.write([b"one", b"two"])
        value.put()


def zipped(root: Path) -> None:
    with ZipStore(root / "z.zip") as store:
        store.set("a", b"new")


def zip_value(root: Path) -> object:
    with ZipStore(root / "z.zip", mode="r") as store:
        return store.get("a")


def compacted(root: Path) -> None:
    with ZipStore(root / "z.zip") as store:
        store.compact()


def exported(root: Path) -> None:
    vectors.export_vectors(root / "p.zv", root / "p.ply", overwrite=True)


def planned(root: Path) -> None:
    zardine.plan_verify(root / "shards", records=root / "records").save(root / "plan.json")


def counted(root: Path) -> object:
    return len(vectors.read_points(root / "p.zv"))


WRITES = {
    "rewrite of a part": part("shards", write_strategy="rewrite"),
    "append to a shard": part("shards", write_strategy="append"),
    "write in place": part("shards", write_strategy="in_place"),
    "append to a shard with its index in front": part("front", write_strategy="append"),
    "part of a chunk": part("chunks"),
    "whole shard": whole("shards"),
    "whole shard, durable": whole("shards", durable=True),
    "whole chunk": whole("large chunks"),
    "new shard": whole("empty"),
    "attributes": Write(
        lambda root: zardine.open_array(root / "shards", mode="r+").attrs.update(a=1),
        lambda root: dict(zardine.open_array(root / "shards").attrs),
        ("shards",),
    ),
    "append to an array": Write(
        lambda root: zardine.open_array(root / "chunks", mode="r+").append(np.full(2, 8, "i4")),
        values("chunks"),
        ("chunks",),
    ),
    "value": Write(lambda root: LocalStore(root).set("f", b"new"), file("f"), ("f",)),
    "new value below new prefixes": Write(lambda root: LocalStore(root).set("n/e/w", b"new"), file("n/e/w"), ()),
    "value that must be missing": Write(
        lambda root: LocalStore(root).set("g", b"new", condition=Condition(None)), file("g"), ()
    ),
    "durable value": Write(lambda root: LocalStore(root, durable=True).set("f", b"new"), file("f"), ("f",)),
    "value in pieces": Write(in_pieces, file("f"), ("f",)),
    "erased value": Write(lambda root: LocalStore(root).erase("d/f"), file("d/f"), ("d",)),
    "erased prefix": Write(
        lambda root: LocalStore(root).erase_prefix("shards/"), file("shards/zarr.json"), ("shards",)
    ),
    "value of an archive": Write(zipped, zip_value, ("z.zip",)),
    "archive": Write(compacted, zip_value, ("z.zip",)),
    "points": Write(
        lambda root: vectors.open(root / "p.zv", mode="r+").append(vectors.Points(POINTS[:5])), counted, ("p.zv",)
    ),
    "new points": Write(
        lambda root: vectors.write_points(root / "q.zv", POINTS, chunk_shape=5, bounds=(0, 0, 0, 10, 10, 10)),
        lambda root: (root / "q.zv/zarr.json").exists() and len(vectors.read_points(root / "q.zv")),
        (),
    ),
    "exported file": Write(exported, lambda root: (root / "p.ply").read_bytes()[-20:], ("p.zv", "p.ply")),
    "plan": Write(planned, lambda root: (root / "plan.json").read_text()[:12] and "plan", ("plan.json", "shards")),
}


def make(root: Path) -> None:
    """Store what all writes change."""
    data = np.arange(16, dtype="i4")
    zardine.create_array(root, name="shards", data=data, chunks=(4,), shards=(8,))
    zardine.create_array(root, name="front", data=data, chunks=(4,), shards={"shape": (8,), "index_location": "start"})
    zardine.create_array(root, name="chunks", data=data[:4], chunks=(2,))[...] = 1
    zardine.create_array(root, name="large chunks", data=data, chunks=(8,))
    zardine.create_array(root, name="empty", shape=(16,), dtype="i4", chunks=(4,), shards=(8,))
    LocalStore(root).set("f", b"old")
    LocalStore(root).set("d/f", b"old")
    with ZipStore(root / "z.zip") as store:
        store.set("a", b"older")
        store.set("a", b"old")
    vectors.write_points(root / "p.zv", POINTS, chunk_shape=5, bounds=(0, 0, 0, 10, 10, 10))
    vectors.export_vectors(root / "p.zv", root / "p.ply", overwrite=True)
    planned(root)


def copy(template: Path, root: Path, names: tuple[str, ...]) -> None:
    root.mkdir()
    for name in names:
        if (template / name).is_dir():
            shutil.copytree(template / name, root / name)
        else:
            shutil.copy(template / name, root / name)


def looked_at(write: Write, root: Path) -> object:
    try:
        return write.state(root)
    except Exception as error:
        return error


def main(place: Path) -> None:
    library = ctypes.CDLL(None)
    template, root = place / "template", place / "root"
    template.mkdir(parents=True)
    make(template)
    tried = 0
    with zardine.config.set({"threads": 1}):
        for name, write in WRITES.items():
            copy(template, root, write.needs)
            old = write.state(root)
            write.act(root)
            new = write.state(root)
            for kind, number in [*KINDS.items(), ("link without renameat2", 6)]:
                library.know_noreplace(kind != "link without renameat2")
                for at in range(1, MOST):
                    shutil.rmtree(root)
                    copy(template, root, write.needs)
                    if at > 1:
                        kept_files.clear()
                    error: BaseException | None = None
                    library.fail_call(number, at)
                    try:
                        write.act(root)
                    except BaseException as raised:
                        error = raised
                    failed = library.fail_call(-1, 0)
                    if not failed:
                        break
                    tried += 1
                    now = looked_at(write, root)
                    where = f"{name}: {kind} {at}:"
                    if error is not None and not isinstance(error, ZardineError):
                        frame = traceback.extract_tb(error.__traceback__)[-1]
                        print(f"{where} {error!r} in {Path(frame.filename).name}:{frame.lineno}")
                    elif error is not None and kind not in REFUSES:
                        print(f"{where} it was done, and raised {error!r}")
                    elif error is not None and now not in (old, new):
                        print(f"{where} {error!r}, and {now!r} is stored")
                    elif error is None and now != new:
                        print(f"{where} no error, and {now!r} is stored")
                    elif error is None and kind == "close" and old != new and name != "points":  # committed: it warns
                        print(f"{where} no error")
                    left = [each for each in root.rglob(".zardine-*") if ".zv" not in str(each)]
                    if left and error is None and name != "exported file":
                        print(f"{where} {left} is left")
                library.know_noreplace(1)
            shutil.rmtree(root)
    print(tried > 100 or f"only {tried} calls failed")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
