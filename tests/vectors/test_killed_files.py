"""Writers of local files, where many small ones are written without a store's care, killed before each of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import SOAK
from vectors.geometry_samples import Killed, rows
from zardine import vectors
from zardine.buffers import BytesLike
from zardine.storage import LocalStore
from zardine.stores.local import files as local_files
from zardine.stores.local import many_files
from zardine.stores.local.base_directory import BaseDirectory
from zardine.stores.local.many_files import make_files
from zardine.stores.open_files import EditableFile
from zardine.vectors.storing import cell_bytes, node_writing

P = np.random.default_rng(5).uniform(0, 100, (20, 2))


@contextmanager
def mortal_files(monkeypatch: pytest.MonkeyPatch, changes: int) -> Iterator[None]:
    """So many changes of files are done, the last of them in part, and then none ever again."""
    left = [changes]

    def live() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed

    def guarded(change: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **more: Any) -> Any:
            live()
            return change(*args, **more)

        return run

    class Files:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def link(self, *args: Any, **more: Any) -> None:
            live()
            real.link(*args, **more)

    def make(base: BaseDirectory, values: Iterable[tuple[str, BytesLike]]) -> None:
        for key, value in values:
            if left[0] == 0:
                make_files(base, [(key, memoryview(value)[: len(value) // 2])])
            live()
            make_files(base, [(key, value)])

    real = many_files.os
    with monkeypatch.context() as patch:
        patch.setattr(many_files, "os", Files())
        patch.setattr(local_files, "make_files", make)
        for module in (cell_bytes, node_writing):
            patch.setattr(module, "can_make_cells", lambda store: False)  # but one file after the other
        for name in ("set", "erase", "erase_prefix"):
            patch.setattr(LocalStore, name, guarded(getattr(LocalStore, name)))
        patch.setattr(EditableFile, "replace", guarded(EditableFile.replace))
        yield


EDITS: dict[str, Callable[[str], object]] = {
    "shards": lambda path: vectors.shard_store(path, 2),
    "cells": lambda path: vectors.unshard_store(path),
    "attribute": lambda path: vectors.set_attribute(path, "q", np.arange(20)),
    "points": lambda path: vectors.append_points(path, P[:3] + 90, vertex_attributes={"n": [1, 2, 3]}),
    "levels": lambda path: vectors.build_pyramid(path),
}


def told(path: str) -> Any:
    found = vectors.read_points(path)
    return {name: rows(found.positions, each) for name, each in found.attributes.items()}


@pytest.mark.parametrize("name", EDITS)
def test_killed_anywhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, after = str(tmp_path / "whole.zv"), str(tmp_path / "after.zv")
    shards = 2 if name == "cells" else None
    for path in (whole, after):
        vectors.write_points(path, P, chunk_shape=50, vertex_attributes={"n": np.arange(20)}, shard_shape=shards)
    EDITS[name](after)
    states = [told(whole), told(after)]
    changes, done = 0, False
    while not done:
        path = str(tmp_path / "copy.zv")
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(whole, path)
        with mortal_files(monkeypatch, changes):
            try:
                EDITS[name](path)
                done = True
            except Killed:
                pass
        state = told(path)
        assert state in states
        vectors.describe_store(path)
        if changes % 2:
            vectors.repair(path)
            assert told(path) == state
        elif state == states[0] or name not in ("points",):
            EDITS[name](path)
            assert told(path) == states[1]
        assert vectors.validate(path).ok
        changes += 1 if SOAK else 5
