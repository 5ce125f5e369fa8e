"""What objects are made of is kept for stores in local folders, as long as nobody writes the files that say it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine import vectors
from zardine.errors import CorruptionError
from zardine.storage import LocalStore
from zardine.stores.wrappers.counting import CountingStore
from zardine.vectors.reading import kept_levels, kept_manifests, loading_objects

LINES = [np.array([[5.0, 5], [15, 5]]), np.array([[25.0, 5], [35, 5], [36, 6]]), np.array([[5.0, 25], [6, 26]])]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    vectors.write_polylines(str(tmp_path / "a.zv"), LINES, chunk_shape=10, bounds=((0, 0), (50, 50)))
    return tmp_path / "a.zv"


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many manifests were decoded, each time that some were."""
    counts: list[int] = []
    decode: Callable[..., Any] = loading_objects.decode_manifests

    def counted(blobs: list[bytes], rank: int) -> Any:
        counts.append(len(blobs))
        return decode(blobs, rank)

    monkeypatch.setattr(loading_objects, "decode_manifests", counted)
    return counts


def test_they_are_decoded_once(store: Path, decoded: list[int]) -> None:
    for _ in range(3):
        assert vectors.read_polylines(str(store), object_ids=[1]).positions.tolist() == LINES[1].tolist()
        assert vectors.read_polylines(str(store), bbox=((0, 0), (9, 9))).object_ids.tolist() == [0]
        assert len(vectors.read_polylines(LocalStore(store)).starts) == 4
    assert decoded == [3]


def test_they_are_decoded_again_when_their_file_was_written(store: Path, decoded: list[int]) -> None:
    vectors.read_polylines(str(store))
    (file,) = [path for path in (store / "0/object_index/manifests/c").rglob("*") if path.is_file()]
    os.utime(file, ns=(1, 1))
    vectors.read_polylines(str(store))
    vectors.read_polylines(str(store))
    assert decoded == [3, 3]


@pytest.mark.parametrize("what", ["manifests", "object_ids"])
def test_damage_that_comes_later_is_found(store: Path, what: str) -> None:
    vectors.read_polylines(str(store))
    (file,) = [path for path in (store / "0/object_index" / what / "c").rglob("*") if path.is_file()]
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(CorruptionError):
        vectors.read_polylines(str(store), object_ids=[1])


def test_a_store_in_the_place_of_another_is_seen(store: Path) -> None:
    assert vectors.read_polylines(str(store)).object_ids.tolist() == [0, 1, 2]
    options: Any = {"chunk_shape": 10, "bounds": ((0, 0), (50, 50)), "overwrite": True}
    vectors.write_polylines(str(store), LINES[::-1], object_ids=[7, 8, 9], **options)
    found = vectors.read_polylines(str(store), object_ids=[9])
    assert found.positions.tolist() == LINES[0].tolist()


def test_an_open_handle_sees_what_others_add(store: Path) -> None:
    opened = vectors.open(str(store))
    for count in (3, 4, 5):
        assert len(opened.read()) == count
        assert len(vectors.read_polylines(str(store))) == count
        vectors.append_polylines(str(store), [LINES[0]])


def test_what_is_given_out_can_be_changed(store: Path) -> None:
    for _ in range(2):
        found = vectors.read_polylines(str(store))
        assert found.object_ids.tolist() == [0, 1, 2]
        for array in (found.object_ids, found.starts, found.positions):
            array += 1


def test_other_stores_are_asked_each_time(store: Path, decoded: list[int]) -> None:
    for _ in range(2):
        vectors.read_polylines(CountingStore(LocalStore(store)))
    assert decoded == [3, 3]


@pytest.mark.parametrize("look", range(1, 18))
def test_a_commit_between_two_looks_leaves_nothing_old(
    look: int, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process commits while this one looks at versions: what it reads then is not filed under new ones."""
    other = tmp_path / "other.zv"
    shutil.copytree(store, other)
    vectors.append_polylines(str(other), [LINES[0] + 1, LINES[2] + 20])
    held = vectors.open(str(store))
    assert len(held.read()) == 3
    kept_manifests._kept.clear()
    looks = 0

    def noted(real: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            nonlocal looks
            looks += 1
            if looks == look:
                take_over(other, store)
            return real(*args)

        return run

    with monkeypatch.context() as patch:
        for name in ("version", "is_unchanged"):
            patch.setattr(LocalStore, name, noted(getattr(LocalStore, name)))
        assert len(held.read()) in (3, 5)
    if looks < look:
        take_over(other, store)
    wanted = vectors.read_polylines(CountingStore(LocalStore(other)))
    for found in (held.read(), vectors.read_polylines(str(store))):
        assert found.object_ids.tolist() == wanted.object_ids.tolist()
        assert found.positions.tolist() == wanted.positions.tolist()
    assert vectors.delete(str(store), bbox=((0, 0), (10, 10))) == vectors.delete(str(other), bbox=((0, 0), (10, 10)))
    assert vectors.validate(str(store)).ok
    kept_levels._kept.clear()


def take_over(other: Path, store: Path) -> None:
    """Put the files of one store in the places of those of another, documents last, as a writer does."""
    files = [path.relative_to(other) for path in other.rglob("*") if path.is_file()]
    for name in sorted(files, key=lambda name: (name.name == "zarr.json", -len(name.parts))):
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(other / name, store / f"{name}.new")
        os.replace(store / f"{name}.new", store / name)
    for path in [path for path in store.rglob("*") if path.is_file()]:
        if not (other / path.relative_to(store)).exists():
            path.unlink()
