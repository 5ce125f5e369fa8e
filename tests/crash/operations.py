"""Operations that store whole arrays and hierarchies, and what has to hold after one that failed.

``python operations.py FOLDER SEED ROUNDS`` interrupts each of them at random moments, as Ctrl-C does. It prints a line
for each broken promise, and ``done`` with the number of interrupts in the end.
"""

from __future__ import annotations

import concurrent.futures.thread
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import zardine
from zardine.engine.index_cache import INDEXES
from zardine.errors import ContainsArrayError, NodeNotFoundError, UnfinishedError, ZardineError
from zardine.storage import ZipStore
from zardine.stores.open_files import kept_files

DATA = np.random.default_rng(0).integers(1, 2**31 - 1, (8, 2048), "i4")  # which does not compress
CHUNKS = (1, 2048)
State = dict[str, Any]


@dataclass(frozen=True)
class Operation:
    """Something that is done in a folder, all of which can be tried again after a failure."""

    prepare: Callable[[Path], object]
    act: Callable[[Path], object]
    new: str | None = None
    """Where an array of the same layout can be created after a failure, below the folder."""
    is_resumed: bool = False
    """Whether the same call goes on with what a failed one has left, so that the place is not free."""
    in_parts: bool = False
    """Whether a failure may leave some objects old and some new, which hold the same values."""


def source(root: Path) -> zardine.Group:
    group = zardine.create_group(root / "a.zarr", attributes={"of": "source"})
    group.create_array("g/t", data=DATA, chunks=CHUNKS)
    group.create_array("g/u", data=DATA[:, ::-1].copy(), chunks=CHUNKS)
    return group


def sharded(root: Path) -> None:
    before = np.where(np.arange(8)[:, None] % 2, DATA, DATA - 1)
    zardine.create_array(root / "a.zarr", name="g/t", data=before, chunks=(1, 1024), shards=(4, 2048))
    array = zardine.open_array(root / "a.zarr", path="g/t", mode="r+", config={"write_strategy": "append"})
    array[::2, :1024] = DATA[::2, :1024]
    array[::2, 1024:] = DATA[::2, 1024:]  # in parts, so that shards have unused space


def in_zip(root: Path) -> None:
    with ZipStore(root / "b.zip", mode="a") as store:
        zardine.create_array(store, name="b", data=DATA, chunks=CHUNKS)


def group_of(root: Path, name: str = "a.zarr") -> zardine.Group:
    return zardine.open_group(root / name, mode="r+")


OPERATIONS: dict[str, Operation] = {
    "copy of an array": Operation(source, lambda root: zardine.copy(group_of(root)["g/t"], group_of(root), "v"), "v"),
    "copy of a group": Operation(source, lambda root: zardine.copy(group_of(root)["g"], group_of(root), "v"), "v/u"),
    "copy_all": Operation(
        lambda root: (source(root), zardine.create_group(root / "b.zarr")),
        lambda root: zardine.copy_all(group_of(root)["g"], group_of(root, "b.zarr")),
        "../b.zarr/u",
    ),
    "copy_store": Operation(source, lambda root: zardine.copy_store(root / "a.zarr", root / "a.zarr", "g", "v"), "v/u"),
    "save_array": Operation(
        source, lambda root: zardine.save_array(root / "a.zarr", DATA, path="v", chunks=CHUNKS), "v"
    ),
    "create_array": Operation(source, lambda root: group_of(root).create_array("v", data=DATA, chunks=CHUNKS), "v"),
    "move": Operation(source, lambda root: group_of(root).move("g", "v"), "v/u"),
    "convert": Operation(
        source, lambda root: zardine.convert(root / "a.zarr", root / "b.zarr", chunks=(2, 2048)), is_resumed=True
    ),
    "rechunk": Operation(
        source,
        lambda root: zardine.rechunk(root / "a.zarr/g/t", root / "a.zarr/v", chunks=(8, 256)),
        is_resumed=True,
    ),
    "reshard": Operation(sharded, lambda root: zardine.reshard(root / "a.zarr/g/t", shards=(8, 1024)), in_parts=True),
    "reshard elsewhere": Operation(
        sharded,
        lambda root: zardine.reshard(root / "a.zarr/g/t", target=root / "v.zarr", shards=(8, 1024)),
        is_resumed=True,
    ),
    "compact": Operation(sharded, lambda root: compacted(root), in_parts=True),
    "zip": Operation(lambda root: zardine.create_group(ZipStore(root / "b.zip", mode="w")).store.close(), in_zip),
    "zip, compact": Operation(in_zip, lambda root: zip_compacted(root), in_parts=True),
}


def compacted(root: Path) -> None:
    report = zardine.compact(root / "a.zarr")
    for fault in report.faults:
        raise zardine.errors.StoreError(str(fault))


def zip_compacted(root: Path) -> None:
    with ZipStore(root / "b.zip", mode="a") as store:
        store.compact()


def look(root: Path) -> State:
    """Return all values of all arrays that are found below a folder, by path."""
    INDEXES.clear()
    found: State = {}
    for place in sorted(root.iterdir()):
        if place.name not in ("a.zarr", "b.zarr", "v.zarr", "b.zip"):
            continue
        if place.name == "b.zip":
            with ZipStore(place, mode="r") as store, suppress(NodeNotFoundError):
                look_at(zardine.open(store, mode="r"), place.name, found)
            continue
        with suppress(NodeNotFoundError, UnfinishedError):
            look_at(zardine.open(place, mode="r"), place.name, found)
    return found


def look_at(node: Any, path: str, found: State) -> None:
    if isinstance(node, zardine.Array):
        found[path] = node[...].tobytes(), node.chunks, node.shards
        return
    found[path] = dict(node.attrs)
    for name, member in node.members():
        look_at(member, f"{path}/{name}", found)


def values_of(state: State) -> State:
    return {path: value[0] if isinstance(value, tuple) else value for path, value in state.items()}


def renew(start: Path, root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(start, root)
    INDEXES.clear()
    kept_files.clear()  # files that are open take room, also when they have no name any more


def says_that_it_takes_effect(error: BaseException) -> bool:
    return "takes effect" in f"{error} {getattr(error, '__notes__', '')}"


def judge(operation: Operation, root: Path, old: State, new: State, error: BaseException, *, retry: bool) -> str:
    """Return what is wrong after a failure, in words."""
    try:
        found = look(root)
        if says_that_it_takes_effect(error):
            return "" if {**found, **new} == found else "it does not take effect"
        same = values_of(found) == values_of(old) if operation.in_parts else found == old
        if not same and not (found == new and isinstance(error, KeyboardInterrupt)):
            return f"neither old nor new: {sorted(found)}"
        if found == new and not operation.in_parts:
            return ""
        if retry:
            operation.act(root)
            return "" if look(root) == new else "the same call stored something else then"
        if operation.new is not None:
            path = os.path.normpath(root / "a.zarr" / operation.new)
            with suppress(ContainsArrayError):
                if zardine.create_array(path, shape=DATA.shape, chunks=CHUNKS, dtype="i4")[...].any():
                    return "a new array shows chunks of the failed call"
            if zardine.create_array(path, shape=DATA.shape, chunks=CHUNKS, dtype="i4", overwrite=True)[...].any():
                return "a new array shows chunks of the failed call, with overwrite=True"
    except Exception as failure:
        return f"then {'the same call' if retry else 'looking'} raised {failure!r}"
    return ""


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Raise what Ctrl-C raises, but a moment later within the pools of Python, which may wait for ever after that."""
    if frame is not None and frame.f_code.co_filename in (threading.__file__, concurrent.futures.thread.__file__):
        signal.setitimer(signal.ITIMER_REAL, 1e-4)
        return
    raise KeyboardInterrupt


def interrupt(folder: Path, seed: int, rounds: int, names: Iterable[str]) -> int:
    """Interrupt operations at random moments, and print what is wrong. Return how many were interrupted."""
    chance, interrupts = random.Random(seed), 0
    signal.signal(signal.SIGALRM, _interrupted)
    for number, name in enumerate(names):
        operation = OPERATIONS[name]
        start, root = folder / f"start-{number}", folder / "root"
        start.mkdir()
        operation.prepare(start)
        renew(start, root)
        old = look(root)
        began = time.perf_counter()
        operation.act(root)
        duration = time.perf_counter() - began
        new = look(root)
        for attempt in range(rounds):
            renew(start, root)
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(0, duration) + 1e-6)
                operation.act(root)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt as error:
                interrupts += 1
                fault = judge(operation, root, old, new, error, retry=attempt % 2 == 0)
                if fault:
                    print(f"{name}: {fault}; raised {error!r} {getattr(error, '__notes__', '')}")
            except ZardineError as error:
                print(f"{name}: an error for an interrupt: {error!r}")
            except TypeError as error:  # NumPy raises that in the place of what came while it compared
                if "Cannot compare structured arrays" not in str(error):
                    raise
    return interrupts


if __name__ == "__main__":
    print("done", interrupt(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] or OPERATIONS))
