"""What objects are made of is kept for stores in local folders, as long as nobody writes the files that say it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine import vectors
from zardine.errors import CorruptionError
from zardine.storage import LocalStore
from zardine.stores.wrappers.counting import CountingStore
from zardine.vectors.reading import loading_objects

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
