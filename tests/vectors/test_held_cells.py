"""Cells that are held from before they are read until they are changed, and what an earlier change has left known."""

from __future__ import annotations

import json
import os
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
from zardine.codecs.crc32c import Crc32cCodec
from zardine.errors import DataError, NodeNotFoundError
from zardine.kernel import KERNEL
from zardine.storage import LocalStore
from zardine.stores.local.beside import edit_record_name
from zardine.vectors import points
from zardine.vectors.changing import kept_changes, one_writer, points_again
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.held_cells import AlikeShards, HeldChange

pytestmark = pytest.mark.skipif(KERNEL is None, reason="without the kernel no cells are held")

RNG = np.random.default_rng(5)
P = RNG.uniform(0, 100, (600, 2)).astype("f4")
MORE = RNG.uniform(20, 60, (50, 2)).astype("f4")
N = np.arange(600, dtype="u2")
LOCK: Any = ({}, {}, 0)


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "a.zv")
    vectors.write_points(path, P, chunk_shape=10, shard_shape=4, vertex_attributes={"n": N})
    return path


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether what an earlier change has left was used, each time."""
    told: list[bool] = []

    def noted(*args: Any) -> Any:
        told.append(False)
        found = kept_changes.level_again(*args)
        told[-1] = found is not None
        return found

    def at_once(*args: Any) -> bool:
        done = points_again.add_again(*args)
        told.extend([True] if done else [])
        return done

    monkeypatch.setattr(one_writer, "level_again", noted)
    monkeypatch.setattr(points, "add_again", at_once)
    return told


def append(path: Any, more: Any = MORE, **columns: Any) -> None:
    vectors.append_points(path, more, vertex_attributes={"n": np.arange(len(more), dtype="u2"), **columns})


def files(path: str) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in Path(path).rglob("*") if each.is_file()}


def in_another_process(path: str, what: str) -> None:
    code = f"import sys, numpy as np\nfrom zardine import vectors\npath = sys.argv[1]\n{what}"
    environment = os.environ | {"PYTHONPATH": str(Path(zardine.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code, path], check=True, env=environment)


def test_a_change_goes_on_from_the_one_before(path: str, tmp_path: Path, again: list[bool]) -> None:
    other = str(tmp_path / "other.zv")
    shutil.copytree(path, other)
    for number in range(6):
        append(path, MORE[number : number + 20])
        in_another_process(
            other,
            f"more = np.random.default_rng(5); more.uniform(0, 100, (600, 2)); "
            f"more = more.uniform(20, 60, (50, 2)).astype('f4')[{number}:{number + 20}]\n"
            "vectors.append_points(path, more, vertex_attributes={'n': np.arange(20, dtype='u2')})",
        )
    assert again == [True] * 5
    assert files(path) == files(other)
    assert vectors.validate(path).ok
    assert len(vectors.read_points(path).positions) == 720


def _add_by_others(path: str) -> None:
    in_another_process(path, "vectors.append_points(path, [[25.0, 25.0]], vertex_attributes={'n': [7]})")


def _without_lists(path: str) -> None:
    document = Path(path, "0/vertices/zarr.json")
    document.write_text(document.read_text().replace("nonempty_chunks", "other_chunks"))


CHANGES: dict[str, Callable[[str], object]] = {
    "nothing": lambda path: None,
    "another process appends": _add_by_others,
    "a new attribute": lambda path: vectors.set_attribute(path, "m", np.zeros(650), new=True),
    "wider bounds": lambda path: append(path, [[150.0, 150.0]]),
    "a pyramid": lambda path: vectors.build_pyramid(path, factors=[(2, 1)]),
    "points go": lambda path: vectors.delete(path, bbox=([0, 0], [30, 30])),
    "consolidated": lambda path: zardine.consolidate_metadata(path),
    "a document that says less": _without_lists,
    "another store": lambda path: vectors.write_points(
        path, P[:50], chunk_shape=20, vertex_attributes={"n": N[:50]}, overwrite=True
    ),
    "a file beside": lambda path: Path(path, "0/notes.txt").write_text("mine"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_others_do_meanwhile_is_seen(
    path: str, tmp_path: Path, change: Callable[[str], object], again: list[bool]
) -> None:
    other = str(tmp_path / "other.zv")
    append(path)
    shutil.copytree(path, other)
    for where in (path, other):
        change(where)
        kept_changes._kept.clear() if where == other else None
        append(where)
    ours, theirs = files(path), files(other)
    if again[-1:] == [True]:
        assert ours == theirs
    assert ours.keys() == theirs.keys()
    a, b = vectors.read_points(path), vectors.read_points(other)
    assert a.attributes.keys() == b.attributes.keys()
    for one, another in [
        (a.positions, b.positions),
        *((a.attributes[name], b.attributes[name]) for name in b.attributes),
    ]:
        np.testing.assert_array_equal(one, another)
    assert vectors.validate(path).ok == vectors.validate(other).ok


def test_an_array_that_only_a_folder_tells_of_is_seen(path: str, again: list[bool]) -> None:
    append(path)
    shutil.copytree(Path(path, "0/vertex_attributes/n"), Path(path, "0/vertex_attributes/m"))  # by another program
    append(path)
    assert again == [False]
    assert len(vectors.read_points(path).attributes["m"]) == 700


def test_a_store_that_is_gone_is_missed(path: str) -> None:
    append(path)
    shutil.rmtree(path)
    with pytest.raises(NodeNotFoundError):
        append(path)
    assert not Path(path).exists()


def test_wrong_arguments_change_nothing(path: str) -> None:
    append(path)
    before = files(path)
    for more in ([[1.0, np.nan]], [[1.0, 2.0, 3.0]], [1.0]):
        with pytest.raises(DataError):
            append(path, more)
    assert files(path) == before


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Let something be done when cells are held, before they are changed; not by one call."""
    monkeypatch.setattr(points, "add_again", lambda *_: False)

    def use(act: Callable[[], object]) -> None:
        real = HeldChange.change

        def change(held: HeldChange, *args: Any) -> Any:
            monkeypatch.undo()
            act()
            return real(held, *args)

        monkeypatch.setattr(HeldChange, "change", change)

    return use


@pytest.mark.parametrize("which", ["vertices", "vertex_attributes/n", "vertex_fragments"])
def test_a_shard_that_is_left_is_changed_by_others(path: str, meanwhile: Any, which: str) -> None:
    """An edit that was cut off is put in order before, so the kernel leaves a file that has a record."""
    append(path)
    shard = Path(path, "0", which, "c/0/0")
    meanwhile(lambda: shard.with_name(edit_record_name(shard.name)).write_bytes(b""))
    append(path)
    assert len(vectors.read_points(path).positions) == 700
    append(path)
    assert len(vectors.read_points(path).positions) == 750
    assert vectors.validate(path).ok
    assert not [each for name in (".zardine*", "zardine_log*") for each in Path(path).rglob(name)]


def test_a_document_that_another_program_changes_is_not_overwritten(path: str, meanwhile: Any) -> None:
    append(path)
    document = Path(path, "0/zarr.json")

    def change() -> None:
        text = json.loads(document.read_text())
        text["attributes"]["mine"] = 1
        document.write_text(json.dumps(text))

    meanwhile(change)
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
        append(path, P[:200])
    assert len(vectors.read_points(path).positions) == 850
    assert vectors.validate(path).ok


def test_stores_that_promise_more_are_changed_as_before(path: str) -> None:
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


def alike(path: str) -> AlikeShards:
    found = [CellArray.open(LocalStore(path), f"0/{name}") for name in ("vertices", "vertex_attributes/n")]
    made = AlikeShards.of("0", [each.array for each in found if each is not None])
    assert made is not None
    return made


def test_cells_come_in_the_order_in_which_they_were_asked_for(path: str) -> None:
    cells = np.array([[9, 9], [0, 0], [5, 1], [0, 9]])
    shards = alike(path)
    with shards.hold(cells) as held:  # type: ignore[union-attr]
        found = [CellArray.open(LocalStore(path), f"0/{name}") for name in ("vertices", "vertex_attributes/n")]
        for number, array in enumerate(found):
            assert array is not None
            assert held.cells(number) == array.read(cells)
        assert shards.hold(cells) is None  # they are locked
    with shards.hold(cells[:1]) as one:  # type: ignore[union-attr]
        assert [one.cells(number) for number in range(2)] == [each.read(cells[:1]) for each in found if each]


def test_damage_is_not_read(path: str) -> None:
    shard = next(each for each in Path(path, "0/vertices/c").rglob("*") if each.is_file())
    data = bytearray(shard.read_bytes())
    data[8] ^= 1
    shard.write_bytes(data)
    every = np.stack(np.meshgrid(np.arange(10), np.arange(10)), axis=-1).reshape(-1, 2)
    assert alike(path).hold(every) is None


def test_arrays_of_other_forms_are_not_held_together(path: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other.zv")
    vectors.write_points(other, P, chunk_shape=10, shard_shape=4, compressor="zstd")
    array = CellArray.open(LocalStore(other), "0/vertices")
    assert array is not None
    assert AlikeShards.of("0", [array.array]) is None
    vectors.write_points(other, P, chunk_shape=10, codec_config=[Crc32cCodec()], overwrite=True)
    array = CellArray.open(LocalStore(other), "0/vertices")
    assert array is not None
    assert AlikeShards.of("0", [array.array]) is None  # no shards


def test_the_kernel_refuses_what_was_not_held(path: str) -> None:
    assert KERNEL is not None
    shards = alike(path)
    held = shards.hold(np.array([[0, 0]]))
    assert held is not None
    kernel = held._held
    assert kernel is not None
    with held, pytest.raises(ValueError, match="other files or cells"):
        kernel.change([b""], (b"log", b"a", b"b"), "version", LOCK, 0.5, True)
    with pytest.raises(ValueError, match="let go"):
        kernel.change([b"", b""], (b"log", b"a", b"b"), "version", LOCK, 0.5, True)
    assert not list(Path(path).rglob("zardine_log*"))
    again = shards.hold(np.array([[0, 0]]))
    assert again is not None
    with again:
        assert again._held is not None
        done = again._held.change([b"", b""], (b"log", b"a", b"b"), "no version", LOCK, 0.5, True)
        assert done == (None, False, [])
    assert Path(path, "0/vertices/zardine_log.0-0000000000000000").read_bytes() == b"log"
    append(path)  # whose log takes its place
    assert not list(Path(path).rglob("zardine_log*"))
