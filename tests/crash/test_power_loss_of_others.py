"""Documents, groups, moves, vectors and zip archives: what has returned survives the loss of power.

Also in directories that a writer without ``durable`` has made just before. The model of the disk is :mod:`crash.disk`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from crash.disk import Disk, Recorder, store_tree
from effort import SOAK
from zardine import vectors
from zardine.engine.index_cache import INDEXES
from zardine.storage import LocalStore, MemoryStore, ZipStore


def durable(root: Path) -> LocalStore:
    return LocalStore(root, durable=True)


def zip_written(root: Path) -> None:
    with ZipStore(root / "new/a.zip", mode="w") as store:
        store.set("k", b"1")


def zip_look(root: Path) -> Any:
    with ZipStore(root / "new/a.zip", mode="r") as store:
        return store.get("k")


def in_directories_of_another(root: Path) -> None:
    LocalStore(root).set("a/b/theirs", b"0")
    durable(root).set("a/b/ours", b"1")


def edit_of_a_file_of_another(root: Path, strategy: Any) -> None:
    made = MemoryStore()
    zardine.create_array(made, name="b", data=np.arange(64), chunks=(8,), shards=(32,), compressors=None)
    for key in made.list():
        store = durable(root) if key.endswith(".json") else LocalStore(root)
        store.set(key, made.get(key) or b"")
    array = zardine.open_array(durable(root), path="b", mode="r+", config={"write_strategy": strategy})
    array[0:8] = 1


def edited(root: Path) -> Any:
    return zardine.open_array(root, path="b", mode="r")[0:8].tolist()


def moved(root: Path) -> None:
    zardine.open_group(durable(root), mode="r+").move("g", "h")


KINDS: dict[str, tuple[Callable[[Path], object], Callable[[Path], Any]]] = {
    "document": (
        lambda root: zardine.open_group(durable(root), mode="r+").attrs.update(a=2),
        lambda root: zardine.open_group(root, mode="r").attrs.asdict(),
    ),
    "group": (
        lambda root: zardine.open_group(durable(root), mode="r+").create_group("new/below"),
        lambda root: sorted(zardine.open_group(root, mode="r")["new"]),
    ),
    "move": (moved, lambda root: (sorted(zardine.open_group(root, mode="r")), sorted(zardine.open_group(root)["h"]))),
    "erase": (
        lambda root: zardine.open_group(durable(root), mode="r+").__delitem__("g"),
        lambda root: sorted(zardine.open_group(root, mode="r")),
    ),
    "consolidated": (
        lambda root: zardine.consolidate_metadata(durable(root)),
        lambda root: zardine.open_group(root, mode="r").metadata.consolidated_metadata is not None,
    ),
    "vectors": (
        lambda root: vectors.write_points(durable(root / "v"), np.arange(60.0).reshape(20, 3), chunk_shape=100),
        lambda root: len(vectors.read_points(str(root / "v"))),
    ),
    "zip": (zip_written, zip_look),
    "directories of another": (in_directories_of_another, lambda root: LocalStore(root).get("a/b/ours")),
    **{
        f"file of another, {strategy}": (
            lambda root, strategy=strategy: edit_of_a_file_of_another(root, strategy),
            edited,
        )
        for strategy in ("rewrite", "append", "in_place")
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_returned_is_there(kind: str, quick_path: Path) -> None:
    act, look = KINDS[kind]
    root, left = quick_path / "root", quick_path / "left"
    zardine.create_group(root, attributes={"a": 1}).create_group("g").create_group("inside")
    disk = Disk(root, subsets=20 if SOAK else 2)
    with pytest.MonkeyPatch.context() as patch, zardine.config.set({"threads": 1}):
        Recorder(disk, lambda name: None, patch.setattr)
        act(root)
    INDEXES.clear()
    expected = look(root)
    trees = {tuple(sorted(tree.items())) for tree in disk.after_loss()}
    for tree in trees:
        shutil.rmtree(left, ignore_errors=True)
        store_tree(dict(tree), left)
        INDEXES.clear()
        assert look(left) == expected
