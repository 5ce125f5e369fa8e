"""Files that are made in other threads while more is planned: in what order, and what an error does."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine.errors import StoreError
from zardine.kernel import KERNEL
from zardine.settings import config
from zardine.storage import LocalStore
from zardine.stores.local import files as local_files
from zardine.vectors.format.pieces import Pieces
from zardine.vectors.storing import cell_files
from zardine.vectors.storing.cell_files import CellFiles, NewCells, put_documents

pytest.importorskip("zardine._kernel")


def cells(name: str, *values: bytes) -> NewCells:
    return f"{name}/%d".encode(), np.arange(len(values))[:, None], Pieces.of(values).parts, 0, None


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_all_is_done_when_it_is_finished(threads: int, tmp_path: Path) -> None:
    done: list[int] = []
    with config.set({"threads": threads}), CellFiles(LocalStore(tmp_path), "level") as files:
        for number in range(20):
            files.add(cells(f"a{number}", *[b"x" * 2**19] * 3))
            files.call(lambda number=number: done.append(number))  # type: ignore[misc]
        files.finish()
        assert sorted(done) == list(range(20))
        assert all((tmp_path / "level" / f"a{n}" / "2").stat().st_size == 2**19 + 8 for n in range(20))


@pytest.mark.parametrize("threads", [1, 2])
def test_after_an_error_nothing_new_is_begun(threads: int, tmp_path: Path) -> None:
    begun, gate = [], threading.Event()

    def fail() -> None:
        gate.set()
        raise StoreError("no room")

    def write() -> None:
        with CellFiles(LocalStore(tmp_path), "") as files:
            files.call(fail)
            gate.wait(10)
            for _ in range(100):
                files.call(lambda: begun.append(1))
            files.finish()

    with config.set({"threads": threads}), pytest.raises(StoreError, match="no room"):
        write()
    assert len(begun) < 100


def test_what_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a file")
    with CellFiles(LocalStore(tmp_path), "") as files:
        files.add(cells("a", b"x"))
        with pytest.raises(StoreError, match=r"cannot write to .*a/0"):
            files.finish()


def test_documents_that_the_kernel_leaves_are_stored(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    documents = [(f"{folder}/{number}", b"{}") for folder in ("link", "plain") for number in range(40)]
    put_documents(LocalStore(tmp_path), documents)
    assert len(list((tmp_path / "real").iterdir())) == len(list((tmp_path / "plain").iterdir())) == 40


def test_who_has_nothing_left_takes_part_in_what_others_are_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One array is made by a thread of its own, which waits until another one asks for its crew."""
    helped, made = threading.Event(), local_files.make_cell_files

    class Crew:
        def __init__(self) -> None:
            self._own = KERNEL.Crew()

        def help(self) -> None:
            helped.set()
            self._own.help()

    def make(directory: int, arrays: Any, threads: int, crew: Any) -> Any:
        assert threads == 1
        assert helped.wait(10)
        return made(directory, arrays, threads, crew._own)

    class Kernel:
        def __getattr__(self, name: str) -> Any:
            return Crew if name == "Crew" else getattr(KERNEL, name)

    monkeypatch.setattr(cell_files, "KERNEL", Kernel())
    monkeypatch.setattr(local_files, "make_cell_files", make)
    with config.set({"threads": 2}), CellFiles(LocalStore(tmp_path), "level") as files:
        files.add(cells("a", *[b"x" * 2**18] * 40))
        files.finish()
    assert all((tmp_path / "level" / "a" / str(n)).stat().st_size == 2**18 + 8 for n in range(40))
