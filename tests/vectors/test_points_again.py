"""Points that are added by one call, where an earlier change has left what it needs: the same store as in steps."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine import vectors
from zardine.errors import DataError
from zardine.kernel import KERNEL
from zardine.storage import LocalStore
from zardine.stores.path import StorePath
from zardine.vectors import points
from zardine.vectors.changing import kept_changes, points_again
from zardine.vectors.changing.kept_changes import level_again
from zardine.vectors.format.change_log import decode_log
from zardine.vectors.storing import transactions

pytestmark = pytest.mark.skipif(KERNEL is None, reason="without the kernel all is done in steps")

RNG = np.random.default_rng(8)
P = RNG.uniform(0, 100, (900, 2)).astype("f4")
COLUMNS: dict[str, Any] = {"n": np.arange(900, dtype="u2"), "rgb": np.arange(2700).reshape(-1, 3).astype("u1")}
MORE = RNG.uniform(20, 60, (50, 2)).astype("f4")
GIVEN: dict[str, Any] = {"n": np.arange(50, dtype="u2"), "rgb": np.zeros((50, 3), "u1")}
ONE = RNG.uniform(52, 58, (50, 2)).astype("f4")
LOG = "0/vertices/zardine_log.0-0000000000000000"


def write(path: Path, **options: Any) -> str:
    options = {"chunk_shape": 10, "shard_shape": 4, "vertex_attributes": COLUMNS} | options
    vectors.write_points(str(path), P, **options)
    return str(path)


def files(path: str) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in Path(path).rglob("*") if each.is_file()}


def append(path: Any, more: Any = MORE, given: Any = None) -> None:
    vectors.append_points(path, more, vertex_attributes=GIVEN if given is None else given)


def append_in_steps(path: str) -> None:
    points._append_points(path, MORE, GIVEN, None, None, None)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each addition was made by one call."""
    told: list[bool] = []

    def noted(*args: Any) -> bool:
        told.append(points_again.add_again(*args))
        return told[-1]

    monkeypatch.setattr(points, "add_again", noted)
    return told


Case = tuple[dict[str, Any], Any, Any]
USUAL: dict[str, Case] = {
    "many cells": ({}, MORE, GIVEN),
    "one cell": ({}, ONE, GIVEN),
    "one point": ({}, MORE[:1], {name: values[:1] for name, values in GIVEN.items()}),
    "no attributes": ({"vertex_attributes": None}, MORE, {}),
    "nothing given": ({"vertex_attributes": None}, MORE, None),
    "no checksums": ({"checksum": False}, MORE, GIVEN),
    "wider": ({"dtype": "f8"}, MORE.astype("f8"), GIVEN),
    "every other one": (
        {},
        np.repeat(MORE, 2, axis=0)[::2],
        {name: np.repeat(values, 2, axis=0)[::2] for name, values in GIVEN.items()},
    ),
    "lists": ({"vertex_attributes": {"n": np.arange(900)}}, MORE.tolist(), {"n": list(range(50))}),
    "doubles": ({}, MORE.astype("f8"), GIVEN),
    "another order of attributes": ({}, MORE, dict(reversed(GIVEN.items()))),
}
UNUSUAL: dict[str, Case] = {
    "bins": ({"bin_shape": 5}, MORE, GIVEN),
    "no shards": ({"shard_shape": None}, MORE, GIVEN),
    "compressed": ({"compressor": "zstd"}, MORE, GIVEN),
    "an attribute left out": ({}, MORE, {"n": GIVEN["n"]}),
    "other numbers": ({}, MORE, GIVEN | {"n": GIVEN["n"].astype("u1")}),
    "no points": ({}, MORE[:0], {name: values[:0] for name, values in GIVEN.items()}),
}


@pytest.mark.parametrize(("options", "more", "given"), (USUAL | UNUSUAL).values(), ids=USUAL | UNUSUAL)
def test_the_store_is_the_same(
    tmp_path: Path,
    options: dict[str, Any],
    more: Any,
    given: Any,
    told: list[bool],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = write(tmp_path / "a", **options)
    other = str(shutil.copytree(path, tmp_path / "b"))
    for _ in range(4):
        vectors.append_points(path, more, vertex_attributes=given)
    assert told == [False, *[request.node.callspec.id in USUAL] * 3]
    monkeypatch.setattr(points, "add_again", lambda *_: False)
    for _ in range(4):
        vectors.append_points(other, more, vertex_attributes=given)
    ours, theirs = files(path), files(other)
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] != theirs[name]] == []
    assert vectors.validate(path).ok
    assert len(vectors.read_points(path).positions) == 900 + 4 * len(more)


CHANGES: dict[str, Callable[[str], object]] = {
    "wider bounds": lambda path: append(
        path, [[150.0, 150.0]], {"n": np.zeros(1, "u2"), "rgb": np.zeros((1, 3), "u1")}
    ),
    "a new cell": lambda path: vectors.delete(path, bbox=([0, 0], [30, 30])),
    "a pyramid": lambda path: vectors.build_pyramid(path, factors=[(2, 1)]),
    "attributes of all": lambda path: zardine.open_group(path).attrs.update({"mine": 1}),
    "attributes of the level": lambda path: zardine.open_group(path)["0"].attrs.update({"mine": 1}),
    "a document of an array": lambda path: zardine.open_array(path, path="0/vertices").attrs.update({"mine": 1}),
    "a file beside": lambda path: Path(path, "0/notes.txt").write_text("mine"),
    "another attribute": lambda path: shutil.copytree(
        Path(path, "0/vertex_attributes/n"), Path(path, "0/vertex_attributes/m")
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_others_do_meanwhile_is_seen(tmp_path: Path, change: Callable[[str], object], told: list[bool]) -> None:
    path = write(tmp_path / "a")
    append(path)
    append(path)
    other = str(shutil.copytree(path, tmp_path / "b"))
    for where in (path, other):
        change(where)
    told.clear()
    append(path)
    assert told == [False]
    kept_changes._kept.clear()
    append(other)
    ours, theirs = (vectors.read_points(each) for each in (path, other))
    assert ours.attributes.keys() == theirs.attributes.keys()
    np.testing.assert_array_equal(ours.positions, theirs.positions)
    assert vectors.validate(path).ok == vectors.validate(other).ok


def test_a_store_that_took_the_place_of_another_gets_the_points(tmp_path: Path, told: list[bool]) -> None:
    path, other = write(tmp_path / "a"), write(tmp_path / "b")
    append(path)
    append(path)
    shutil.rmtree(path)
    shutil.copytree(other, path)
    append(path)
    assert told == [False, True, False]
    assert len(vectors.read_points(path).positions) == 950


def test_folders_that_are_gone_are_not_made(tmp_path: Path) -> None:
    path = write(tmp_path / "a")
    append(path)
    append(path)
    shutil.rmtree(Path(path, "0"))
    before = Path(path).stat().st_mtime_ns
    assert not points_again.add_again(path, MORE, GIVEN)
    assert Path(path).stat().st_mtime_ns == before


def test_changes_in_steps_and_by_one_call_take_turns(tmp_path: Path, told: list[bool]) -> None:
    path = write(tmp_path / "a")
    for _ in range(3):
        append(path)
        append(path)
        append(path)
        append_in_steps(path)
    assert told == [False, *[True] * 8]
    assert len(vectors.read_points(path).positions) == 900 + 12 * 50
    assert vectors.validate(path).ok


def test_what_is_known_goes_on(tmp_path: Path, told: list[bool]) -> None:
    path = write(tmp_path / "a")
    append(path)
    append(path)
    store = LocalStore(path)
    level = level_again(store, "")
    assert told == [False, True]
    assert level is not None
    assert level.document.vertex_count == 1000
    assert level.is_unchanged()
    assert level.group is not None
    assert dict(level.group.attributes) == dict(zardine.open_group(path, path="0").attrs)


def test_a_path_that_is_no_text(tmp_path: Path, told: list[bool]) -> None:
    path = Path(write(tmp_path / "a"))
    for each in (path, path, str(path), path, f"{path}/"):
        append(each)
    assert told == [False, True, True, True, True]
    assert not points_again.add_again(os.fsencode(path), MORE, GIVEN)
    assert len(vectors.read_points(path).positions) == 900 + 5 * 50


def test_a_place_in_a_store(tmp_path: Path, told: list[bool]) -> None:
    store = LocalStore(tmp_path)
    vectors.write_points(StorePath(store, "in/here"), P, chunk_shape=10, shard_shape=4)
    for _ in range(3):
        vectors.append_points(StorePath(store, "in/here"), ONE)
    assert told == [False, True, True]
    for again in (LocalStore(tmp_path, read_only=True), LocalStore(tmp_path, durable=True)):
        assert not points_again.add_again(StorePath(again, "in/here"), ONE, None)
    vectors.append_points(StorePath(LocalStore(tmp_path, durable=True), "in/here"), ONE)
    assert told[-1] is False
    assert len(vectors.read_points(tmp_path / "in/here").positions) == 900 + 4 * 50


@pytest.mark.parametrize("which", ["0/zarr.json", "0/vertices/c/1/1", LOG])
def test_who_has_a_file_locked_is_waited_for(tmp_path: Path, told: list[bool], which: str) -> None:
    """One thread may hold a lock of a document more than once."""
    path = write(tmp_path / "a")
    append(path)
    append(path)
    if which == LOG:
        Path(path, LOG).write_bytes(b"of a writer who died")
        append(path)
    else:
        store, before = LocalStore(path), files(path)
        with store.lock(which):
            assert not points_again.add_again(path, MORE, GIVEN)
            assert files(path) == before
            if which == "0/zarr.json":
                append(path)
        append(path)
    assert vectors.validate(path).ok
    assert not Path(path, LOG).exists()


def test_a_shard_that_is_not_the_usual_case_is_changed_afterwards(
    tmp_path: Path, told: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change is agreed on then. A shard is not made anew that begins as none of ours does."""
    path = write(tmp_path / "a", shard_shape=16)
    shard, carried = Path(path, "0/vertices/c/0/0"), 0
    first = RNG.uniform(1, 9, (50, 2)).astype("f4")
    append(path, first)
    append(path, first)
    data = bytearray(shard.read_bytes())
    data[:4] = b"mine"  # of a chunk that is not used any more
    shard.write_bytes(data)
    logs = []
    real = transactions.apply_log

    def noted(store: Any, where: str, log: Any, *more: Any) -> None:
        nonlocal carried
        carried += 1
        logs.append(decode_log(Path(path, LOG).read_bytes(), log.token))
        real(store, where, log, *more)

    monkeypatch.setattr(transactions, "apply_log", noted)
    told.clear()
    while not carried:
        append(path, first)
        assert len(told) < 200
    assert told[-1] is True
    assert list(logs[0].cells) == ["vertices", "vertex_attributes/n", "vertex_attributes/rgb", "vertex_fragments"]
    assert logs[0].cells["vertices"].places.tolist() == [[0, 0]]
    assert len(vectors.read_points(path).positions) == 1000 + 50 * len(told)
    append(path, first)
    append(path, first)
    assert len(vectors.read_points(path).positions) == 1100 + 50 * len(told) - 100
    assert vectors.validate(path).ok
    assert not [each for name in (".zardine*", "zardine_log*") for each in Path(path).rglob(name)]


def test_points_that_cannot_be_stored_are_refused_as_before(tmp_path: Path) -> None:
    path = write(tmp_path / "a")
    append(path)
    append(path)
    before = files(path)
    wrong: list[tuple[Any, Any]] = [
        (np.full((50, 2), np.nan, "f4"), GIVEN),
        (np.full((50, 2), np.inf, "f4"), GIVEN),
        (MORE[:, :1].copy(), GIVEN),
        (MORE.ravel(), GIVEN),
        (MORE, GIVEN | {"n": GIVEN["n"][:3]}),
        (np.ma.masked_equal(MORE, MORE[0, 0]), GIVEN),
        (MORE, [1]),
    ]
    for more, given in wrong:
        with pytest.raises(DataError):
            append(path, more, given)
    assert files(path) == before


@pytest.mark.parametrize("number", [points_again._TOKEN, points_again._COUNT])
def test_an_attribute_whose_name_is_a_number_that_stands_for_others(
    tmp_path: Path, told: list[bool], number: int
) -> None:
    name = f"of {number}"
    path = write(tmp_path / "a", vertex_attributes={name: np.arange(900)})
    for _ in range(3):
        append(path, ONE, {name: np.arange(50)})
    assert told == [False, *[number == points_again._COUNT] * 2]  # a log tells names and tokens
    assert len(vectors.read_points(path).positions) == 1050
    assert vectors.validate(path).ok


def test_points_too_far_away_within_bounds_of_others_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a", chunk_shape=1e-4, vertex_attributes=None, dtype="f8", bounds=([0, 0], [100, 100]))
    document = Path(path, "zarr.json")
    told = json.loads(document.read_text())
    told["attributes"]["zarr_vectors"]["bounds"] = [[0, 0], [1e308, 1e308]]
    document.write_text(json.dumps(told))
    append(path, P[:1], {})
    assert points_again.add_again(path, P[:1], None)
    for far in (1e40, 1e308):
        with pytest.raises(DataError, match="away from the origin"):
            append(path, [[1.0, far]], {})
    assert len(vectors.read_points(path).positions) == 902


def test_a_name_of_a_path_that_means_another_place_now(
    tmp_path: Path, told: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "a")
        append(str(tmp_path / name / "a"))
    for name in ("one", "two"):
        monkeypatch.chdir(tmp_path / name)
        append("a")
        append("a")
        assert len(vectors.read_points(tmp_path / name / "a").positions) == 1050
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "one/a")
    append(str(link))
    append(str(link))
    link.unlink()
    link.symlink_to(tmp_path / "two/a")
    append(str(link))
    assert [len(vectors.read_points(tmp_path / name / "a").positions) for name in ("one", "two")] == [1150, 1100]


def test_the_kernel_refuses_rows_that_are_not_those_of_cells(tmp_path: Path) -> None:
    path = write(tmp_path / "a")
    append(path)
    append(path)
    known = kept_changes.known_of(LocalStore(path), "")
    assert known is not None
    growing = known.forms["points_again"].growing
    columns = [ONE, GIVEN["n"], GIVEN["rgb"]]
    usual: dict[str, Any] = {
        "keys": ["0/zarr.json", LOG, *(f"0/{name}/c/1/1" for name in ("vertices", "x", "y", "z"))],
        "shards": ([0, 1], [5]),
        "edges": [(0, 50)],
        "places": bytes(16),
        "columns": columns,
        "contents": (b"", b"", b""),
        "version": "1-2-3-4",
        "number": 7,
    }
    assert growing.add_rows(**usual) is None  # of another version
    for wrong in [
        {"shards": ([0, 2], [5])},
        {"shards": ([], [5])},
        {"shards": ([0, 1], [99])},
        {"shards": ([0, 1], [5, 6])},
        {"shards": ([0, 0], [])},
        {"edges": [(0, 51)]},
        {"edges": [(50, 0)]},
        {"edges": []},
        {"columns": columns[:2]},
        {"columns": [ONE[:3], *columns[1:]]},
        {"keys": []},
    ]:
        with pytest.raises(ValueError, match=r"rows|bounds|document"):
            growing.add_rows(**usual | wrong)
