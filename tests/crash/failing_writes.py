"""Run by a test, with calls that can be let fail: make each call of each kind of write fail, and look what is stored.

``python failing_writes.py FOLDER KIND ...``: prints a line for each broken promise, and ``done`` with the number of
failures in the end. After an error the old values are stored, or a note of the error says that the change takes effect;
chunk by chunk for writes of several objects. The error is one of the library's. The same write succeeds then, also in
another thread, so no lock is held.
"""

from __future__ import annotations

import ctypes
import errno
import shutil
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import zardine
from effort import some
from zardine.engine.index_cache import INDEXES
from zardine.errors import ZardineError
from zardine.jobs.plan import Plan
from zardine.storage import LocalStore, ZipStore

ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)
LOOKS = ("flock", "fstat", "stat")
"""Calls that need no room, so that they fail with EIO alone."""
CALLS: dict[str, int] = {
    "flock": 0,
    "fstat": 1,
    "stat": 3,
    "write": 4,
    "pwrite": 5,
    "ftruncate": 6,
    "rename": 7,
    "link": 8,
    "unlink": 9,
    "mkdir": 10,
    "fsync": 11,
    "copy_file_range": 13,
    "open": 14,
}
"""The numbers that ``failing_call.c`` has for calls."""
TIMEOUT = 20
"""Seconds after which a write that was made again hangs."""


@dataclass(frozen=True)
class Write:
    """A write, and how to look at what it changes."""

    prepare: Callable[[Path], object]
    act: Callable[[Path], object]
    look: Callable[[Path], list[Any]]
    """Return the parts that are old or new each for itself."""


NOISE = np.random.default_rng(0).integers(1, 2**31, (2, 64), dtype="i4")


def array_write(
    strategy: Any, *, durable: bool = False, location: Any = "end", shards: bool = True, compressors: Any = "auto"
) -> Write:
    """Return a write of parts of chunks, some of which get shorter and some longer."""

    def opened(root: Path) -> zardine.Array:
        store = LocalStore(root, durable=durable)
        config: Any = {"write_strategy": strategy} if shards else {}
        return zardine.open_array(store, path="a", mode="r+", config=config)

    def prepare(root: Path) -> None:
        layout: Any = {"shards": {"shape": (64,), "index_location": location}} if shards else {}
        values = NOISE[0] * (np.arange(64) // 16 % 2)
        zardine.create_array(
            root, name="a", data=values, chunks=(16,), checksum=True, compressors=compressors, **layout
        )

    def act(root: Path) -> None:
        opened(root)[8:60] = (NOISE[1] * (np.arange(64) // 16 % 2 == 0))[8:60]

    def look(root: Path) -> list[Any]:
        values = opened(root)[...].reshape(4, 16)
        return [values.tolist()] if shards else values.tolist()

    return Write(prepare, act, look)


def grown(strategy: Any) -> Write:
    """Return an append of rows."""

    def prepare(root: Path) -> None:
        zardine.create_array(root, name="a", data=NOISE[0][:40], chunks=(16,), shards=(64,), checksum=True)

    def act(root: Path) -> None:
        array = zardine.open_array(root, path="a", mode="r+", config={"write_strategy": strategy})
        if array.shape == (40,):
            array.append(NOISE[1][:20])

    return Write(prepare, act, lambda root: [zardine.open_array(root, path="a", mode="r")[...].tolist()])


def zip_look(root: Path) -> list[Any]:
    with ZipStore(root / "a.zip", mode="r") as store:
        return [store.get("k")]


def zip_put(root: Path, value: bytes) -> None:
    with ZipStore(root / "a.zip", mode="a") as store:
        store.set("k", value)


def plan_of(root: Path) -> Plan:
    return zardine.plan_convert(str(root / "a"), str(root / "b"), chunks=(8,))


def planned(root: Path) -> None:
    zardine.create_array(root, name="a", data=NOISE[0], chunks=(16,))


def group_look(root: Path) -> list[Any]:
    return [sorted(zardine.open_group(root, mode="r"))]


WRITES: dict[str, Write] = {
    **{strategy: array_write(strategy) for strategy in ("rewrite", "append", "in_place")},
    "append, index at the start": array_write("append", location="start"),
    "in_place, index at the start": array_write("in_place", location="start"),
    "in_place, lengths stay": array_write("in_place", compressors=None),
    "rewrite, durable": array_write("rewrite", durable=True),
    "append, durable": array_write("append", durable=True),
    "in_place, durable": array_write("in_place", durable=True),
    "in_place, durable, index at the start": array_write("in_place", durable=True, location="start"),
    "chunks": array_write("rewrite", shards=False),
    **{f"rows by {strategy}": grown(strategy) for strategy in ("rewrite", "append", "in_place")},
    "document": Write(
        lambda root: zardine.create_group(root, attributes={"a": 1}),
        lambda root: zardine.open_group(root, mode="r+").attrs.update(a=2),
        lambda root: [zardine.open_group(root, mode="r").attrs.asdict()],
    ),
    "group": Write(
        lambda root: zardine.create_group(root), lambda root: zardine.open_group(root).require_group("g"), group_look
    ),
    "zip": Write(lambda root: zip_put(root, b"old"), lambda root: zip_put(root, b"new"), zip_look),
    "plan": Write(
        planned,
        lambda root: plan_of(root).save(root / "plan.json"),
        lambda root: [Plan.load(root / "plan.json").id if (root / "plan.json").exists() else None],
    ),
}


def quiet(work: Callable[[], Any]) -> Any:
    INDEXES.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


def renew(start: Path, root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(start, root)
    INDEXES.clear()


def campaign(name: str, folder: Path) -> tuple[int, list[str]]:
    """Return how many calls failed, and what was wrong then."""
    fail_call = ctypes.CDLL(None).fail_call
    write = WRITES[name]
    start, root = folder / "start", folder / "root"
    write.prepare(start)
    renew(start, root)
    old = write.look(root)
    write.act(root)
    new = write.look(root)
    assert old != new
    failures, wrong = 0, []
    for call, kind in CALLS.items():
        for at in some(range(1, 400), 5):
            renew(start, root)
            error = None
            fail_call(kind, at, errno.EIO if call in LOOKS else ERRORS[at % len(ERRORS)])
            try:
                write.act(root)
            except BaseException as raised:
                error = raised
            if not fail_call(-1, 0, 0):
                break
            failures += 1
            fault = judge(write, root, old, new, error)
            if fault:
                wrong.append(f"{name}: {call} {at}: {fault}; raised: {describe(error)}")
    return failures, wrong


def describe(error: BaseException | None) -> str:
    if error is None:
        return "nothing"
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{error!r} in {Path(where.filename).name}:{where.lineno}"


def judge(write: Write, root: Path, old: list[Any], new: list[Any], error: BaseException | None) -> str:
    """Return what is wrong, in words."""
    if error is not None and not isinstance(error, ZardineError):
        return "no error of the library"
    found: list[Any] = []
    reader = threading.Thread(target=lambda: found.append(tried(lambda: write.look(root))), daemon=True)
    reader.start()
    reader.join(TIMEOUT)
    if not found:
        return "reading hangs"
    if isinstance(found[0], BaseException):
        return f"not readable: {found[0]!r}"
    parts = found[0]
    if error is None and parts != new:
        return "no error, and the new values are not stored"
    if len(parts) != len(old) or any(part not in (a, b) for part, a, b in zip(parts, old, new, strict=True)):
        return "neither old nor new"
    said = "takes effect" in " ".join(getattr(error, "__notes__", ())) + str(error)
    if error is not None and len(old) == 1 and parts == new and not said:
        return "an error, and the new values are stored"
    again: list[Any] = []
    writer = threading.Thread(target=lambda: again.append(tried(lambda: write.act(root))), daemon=True)
    writer.start()
    writer.join(TIMEOUT)
    if not again:
        return "writing again hangs"
    if isinstance(again[0], BaseException):
        return f"writing again: {again[0]!r}"
    return "" if quiet(lambda: write.look(root)) == new else "writing again stored something else"


def tried(work: Callable[[], Any]) -> Any:
    with suppress(SystemExit):
        try:
            return quiet(work)
        except BaseException as error:
            return error


def main(folder: Path, names: Iterable[str]) -> None:
    total = 0
    with zardine.config.set({"threads": 1}):
        for number, name in enumerate(names):
            (folder / str(number)).mkdir()
            failures, wrong = campaign(name, folder / str(number))
            total += failures
            print(*wrong, sep="\n", end="\n" if wrong else "")
    print("done", total)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or WRITES)
