"""Points that are added to a store again and again, while others change it, too."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine import vectors
from zardine.errors import DataError, NodeNotFoundError
from zardine.storage import LocalStore
from zardine.stores.local.beside import edit_record_name
from zardine.vectors.changing import levels

RNG = np.random.default_rng(5)
P = RNG.uniform(0, 100, (600, 2)).astype("f4")
MORE = RNG.uniform(20, 60, (50, 2)).astype("f4")
COLUMNS: dict[str, Any] = {"n": np.arange(600, dtype="u2"), "rgb": np.arange(1800).reshape(-1, 3).astype("u1")}
GIVEN: dict[str, Any] = {"n": np.arange(50, dtype="u2"), "rgb": np.ones((50, 3), "u1")}


def write(path: Path, **options: Any) -> str:
    options = {"chunk_shape": 10, "shard_shape": 4, "vertex_attributes": COLUMNS} | options
    vectors.write_points(str(path), P, **options)
    return str(path)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return write(tmp_path / "a.zv")


def append(path: Any, more: Any = MORE, given: Any = None) -> None:
    given = {name: values[: len(more)] for name, values in GIVEN.items()} if given is None else given
    vectors.append_points(path, more, vertex_attributes=given)


def files(path: str) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in Path(path).rglob("*") if each.is_file()}


def rows(path: str) -> list[tuple[float, ...]]:
    """Position and colour of all points, sorted."""
    found = vectors.read_points(path)
    return sorted(map(tuple, np.concatenate([found.positions, found.attributes["rgb"]], axis=1).tolist()))


Case = tuple[dict[str, Any], Any, dict[str, Any]]
CASES: dict[str, Case] = {
    "many cells": ({}, MORE, GIVEN),
    "one point": ({}, MORE[:1], {name: values[:1] for name, values in GIVEN.items()}),
    "no checksums": ({"checksum": False}, MORE, GIVEN),
    "wider": ({"dtype": "f8"}, MORE.astype("f8"), GIVEN),
    "bins": ({"bin_shape": 5}, MORE, GIVEN),
    "no shards": ({"shard_shape": None}, MORE, GIVEN),
    "compressed": ({"compressor": "zstd"}, MORE, GIVEN),
    "a new chunk": (
        {},
        np.concatenate([MORE, [[105.0, 5.0]]]),
        {n: np.concatenate([v, v[:1]]) for n, v in GIVEN.items()},
    ),
    "other numbers": ({}, MORE, GIVEN | {"n": GIVEN["n"].astype("f4")}),
    "a new attribute": ({}, MORE, GIVEN | {"m": np.arange(50)}),
}


@pytest.mark.parametrize(("options", "more", "given"), CASES.values(), ids=CASES)
def test_all_points_are_there(tmp_path: Path, options: dict[str, Any], more: Any, given: dict[str, Any]) -> None:
    path = write(tmp_path / "a", **options)
    for _ in range(2):
        append(path, more, given)
    there = np.concatenate([P, COLUMNS["rgb"]], axis=1)
    added = np.concatenate([np.asarray(more, options.get("dtype", "f4")), given["rgb"]], axis=1)
    assert rows(path) == sorted(map(tuple, np.concatenate([there, added, added]).tolist()))
    assert vectors.validate(path).ok


def _add_by_others(path: str) -> None:
    code = (
        "import sys\nfrom zardine import vectors\n"
        "vectors.append_points(sys.argv[1], [[25.0, 25.0]], vertex_attributes={'n': [7], 'rgb': [[1, 1, 1]]})"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True)


def _without_lists(path: str) -> None:
    document = Path(path, "0/vertices/zarr.json")
    document.write_text(document.read_text().replace("nonempty_chunks", "other_chunks"))


CHANGES: dict[str, Callable[[str], object]] = {
    "another process appends": _add_by_others,
    "a new attribute": lambda path: vectors.set_attribute(path, "m", np.zeros(650), new=True),
    "wider bounds": lambda path: append(path, [[150.0, 150.0]]),
    "a pyramid": lambda path: vectors.build_pyramid(path, factors=[(2, 1)]),
    "points go": lambda path: vectors.delete(path, bbox=([0, 0], [30, 30])),
    "consolidated": lambda path: zardine.consolidate_metadata(path),
    "a document that says less": _without_lists,
    "another store": lambda path: write(Path(path), chunk_shape=20, overwrite=True),
    "a file beside": lambda path: Path(path, "0/notes.txt").write_text("mine"),
    "an array that only a folder tells of": lambda path: shutil.copytree(
        Path(path, "0/vertex_attributes/n"), Path(path, "0/vertex_attributes/m")
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_others_do_meanwhile_is_seen(path: str, change: Callable[[str], object]) -> None:
    append(path)
    change(path)
    before, was_valid = len(vectors.read_points(path).positions), vectors.validate(path).ok
    append(path)
    assert len(vectors.read_points(path).positions) == before + 50
    assert vectors.validate(path).ok or not was_valid


def test_a_store_that_is_gone_is_missed(path: str) -> None:
    append(path)
    shutil.rmtree(path)
    with pytest.raises(NodeNotFoundError):
        append(path)
    assert not Path(path).exists()


def test_wrong_arguments_change_nothing(path: str) -> None:
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


def test_points_too_far_away_within_bounds_of_others_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a", chunk_shape=1e-4, vertex_attributes=None, dtype="f8", bounds=([0, 0], [100, 100]))
    document = Path(path, "zarr.json")
    told = json.loads(document.read_text())
    told["attributes"]["zarr_vectors"]["bounds"] = [[0, 0], [1e308, 1e308]]
    document.write_text(json.dumps(told))
    append(path, P[:1], {})
    for far in (1e40, 1e308):
        with pytest.raises(DataError, match="away from the origin"):
            append(path, [[1.0, far]], {})
    assert len(vectors.read_points(path).positions) == 601


@pytest.mark.parametrize("which", ["vertices", "vertex_attributes/n", "vertex_fragments"])
def test_an_edit_of_a_shard_that_was_cut_off_is_put_in_order(path: str, which: str) -> None:
    append(path)
    shard = Path(path, "0", which, "c/0/0")
    shard.with_name(edit_record_name(shard.name)).write_bytes(b"")
    for _ in range(2):
        append(path)
    assert len(vectors.read_points(path).positions) == 750
    assert vectors.validate(path).ok
    assert not [each for name in (".zardine*", "zardine_log*") for each in Path(path).rglob(name)]


def test_a_document_that_another_program_changes_is_not_overwritten(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    append(path)
    document = Path(path, "0/zarr.json")
    replace_nodes = levels.replace_nodes

    def meanwhile(*given: Any, **named: Any) -> None:
        monkeypatch.undo()
        text = json.loads(document.read_text())
        text["attributes"]["mine"] = 1
        document.write_text(json.dumps(text))
        replace_nodes(*given, **named)

    monkeypatch.setattr(levels, "replace_nodes", meanwhile)
    append(path)
    assert json.loads(document.read_text())["attributes"]["mine"] == 1
    assert len(vectors.read_points(path).positions) == 700
    assert not list(Path(path).rglob("zardine_log*"))


def test_shards_that_others_have_locked_are_waited_for(path: str) -> None:
    append(path)
    shard = next(each for each in Path(path, "0/vertices/c").rglob("*") if each.is_file())
    code = (
        "import fcntl, os, sys, time\nfile = os.open(sys.argv[1], os.O_RDONLY)\nfcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('locked', flush=True)\ntime.sleep(0.5)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(shard)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        append(path)
    assert len(vectors.read_points(path).positions) == 700
    assert vectors.validate(path).ok


def test_stores_that_promise_more(path: str) -> None:
    class Seeing(LocalStore):
        seen: list[str]

        def set(self, key: str, value: Any, **more: Any) -> Any:
            self.seen.append(key)
            return super().set(key, value, **more)

    for store in (LocalStore(path, durable=True), Seeing(path)):
        if isinstance(store, Seeing):
            store.seen = []
        append(store)
        append(store)
        if isinstance(store, Seeing):
            assert "0/zarr.json" in store.seen
    assert len(vectors.read_points(path).positions) == 800
    assert vectors.validate(path).ok
