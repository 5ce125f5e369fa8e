"""``zardine.reshard`` to another place: nothing is erased there but what it has made, and what it finds is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from tools.test_repair import VALUES, make, read_by_others
from tools.test_reshard import Failing, InterruptedHereError, files
from zardine.errors import ContainsArrayError, NodeExistsError


def foreign(folder: Path) -> set[str]:
    """A folder with things of others; gives their names."""
    (folder / "thesis").mkdir(parents=True)
    (folder / "thesis/chapter.tex").write_text("years of work")
    (folder / "notes.txt").write_text("notes")
    make(folder / "other.zarr")
    return files(folder)


@pytest.mark.parametrize("more", [{}, {"restart": True}, {"cancel": True}])
def test_a_folder_that_holds_anything_is_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    source, folder = tmp_path / "a.zarr", tmp_path / "folder"
    make(source)
    before = foreign(folder)
    if more == {"cancel": True}:
        assert zardine.reshard(source, target=folder, cancel=True).outcome == "nothing"
    else:
        with pytest.raises(NodeExistsError, match=r"not empty: notes.txt is stored there\. .* nothing was written"):
            zardine.reshard(source, shards=(20, 20), target=folder, **more)
    assert files(folder) == before


@pytest.mark.parametrize("more", [{}, {"restart": True}, {"cancel": True}])
def test_what_others_put_there_meanwhile_stays(tmp_path: Path, more: dict[str, Any]) -> None:
    """At every point at which the first run may end."""
    source = tmp_path / "a.zarr"
    make(source)
    ended = 0
    for number in range(50):
        folder = tmp_path / f"folder {number}"
        store = Failing(zardine.storage.LocalStore(folder))
        store.left = number
        try:
            zardine.reshard(source, shards=(20, 10), target=store)
        except InterruptedHereError:
            pass
        else:
            break
        begun = files(folder) if folder.exists() else set()
        before = foreign(folder)
        request = {} if "cancel" in more else {"shards": (20, 10)}
        if more == {"cancel": True} and "zarr.json" not in begun:
            assert zardine.reshard(source, target=folder, **more).outcome in ("cancelled", "nothing")
            assert files(folder) == before - begun
        elif "zarr.json" not in begun:
            with pytest.raises(NodeExistsError, match=r"notes.txt is stored there"):
                zardine.reshard(source, target=folder, **request, **more)
            assert files(folder) == before
        else:
            ended += 1
            if more == {"cancel": True}:
                with pytest.raises(NodeExistsError, match="too late to cancel"):
                    zardine.reshard(source, target=folder, **more)
                continue
            assert zardine.reshard(source, target=folder, **request, **more).outcome == "finished"
            np.testing.assert_array_equal(zardine.open_array(folder)[...], VALUES)
        assert (folder / "thesis/chapter.tex").read_text() == "years of work"
    assert ended == 1
    assert number > 3


def test_interrupted_and_begun_anew(tmp_path: Path) -> None:
    """Another request needs ``restart``; another array does, too."""
    source, other, target = tmp_path / "a.zarr", tmp_path / "b.zarr", tmp_path / "c.zarr"
    make(source)
    make(other)[...] = VALUES[::-1]
    store = Failing(zardine.storage.LocalStore(target))
    store.left = 2
    with pytest.raises(InterruptedHereError):
        zardine.reshard(source, shards=(20, 10), target=store)
    for array, shards in ((source, (20, 20)), (other, (20, 10))):
        with pytest.raises(NodeExistsError, match="another way"):
            zardine.reshard(array, shards=shards, target=target)
    done = zardine.reshard(other, shards=(10, 20), target=target, restart=True)
    assert done.objects == 2
    assert files(target) == {"zarr.json", "c/0/0", "c/1/0"}
    for found in read_by_others(target):
        np.testing.assert_array_equal(found, VALUES[::-1])
    store = Failing(zardine.storage.LocalStore(tmp_path / "d.zarr"))
    store.left = 2
    with pytest.raises(InterruptedHereError):
        zardine.reshard(source, shards=(20, 10), target=store)
    assert zardine.reshard(source, target=tmp_path / "d.zarr", cancel=True).outcome == "cancelled"
    assert files(tmp_path / "d.zarr") == set()


def test_places_that_cannot_be(tmp_path: Path) -> None:
    source = tmp_path / "a.zarr"
    make(source)
    before = files(source)
    for target in (source, source / "b", tmp_path):
        with pytest.raises(ValueError, match="inside of the other"):
            zardine.reshard(source, shards=(20, 20), target=target)
    make(tmp_path / "other.zarr")
    with pytest.raises(ContainsArrayError, match="is an array"):
        zardine.reshard(source, shards=(20, 20), target=tmp_path / "other.zarr", target_path="x")
    assert files(source) == before
    group = zardine.create_group(tmp_path / "g.zarr")
    group.create_array("sister", shape=3, dtype="i4")[...] = 1
    zardine.reshard(source, shards=(20, 20), target=tmp_path / "g.zarr", target_path="deep/er")
    assert zardine.open_array(tmp_path / "g.zarr", path="deep/er").shards == (20, 20)
    assert zardine.open_array(tmp_path / "g.zarr", path="sister")[...].tolist() == [1, 1, 1]
    assert zardine.verify(tmp_path / "g.zarr")


def test_convert_erases_nothing_of_others_either(tmp_path: Path) -> None:
    source = tmp_path / "a.zarr"
    make(source)
    before = foreign(tmp_path / "folder")
    for more in ({}, {"resume": False}):
        with pytest.raises(NodeExistsError, match="not empty"):
            zardine.convert(source, tmp_path / "folder", **more)
    assert files(tmp_path / "folder") == before
    store = Failing(zardine.storage.LocalStore(tmp_path / "new"))
    store.left = 3
    with pytest.raises(InterruptedHereError):
        zardine.convert(source, store)
    before = foreign(tmp_path / "new")
    with pytest.raises(NodeExistsError):
        zardine.convert(source, tmp_path / "new", chunks=(4, 5))
    zardine.convert(source, tmp_path / "new")
    assert files(tmp_path / "new") >= {name for name in before if name.startswith(("thesis", "notes", "other"))}
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "new")[...], VALUES)


@pytest.mark.parametrize("shards", [None, (20, 20)])
@pytest.mark.parametrize("inside", [False, True])
def test_an_unfinished_target_is_a_note(tmp_path: Path, shards: Any, inside: bool) -> None:
    make(tmp_path / "a.zarr")
    folder = tmp_path / "g.zarr"
    zardine.create_group(folder)
    target = folder / "new" if inside else tmp_path / "b.zarr"
    store = Failing(zardine.storage.LocalStore(target))
    store.left = 3
    with pytest.raises(InterruptedHereError):
        zardine.reshard(tmp_path / "a.zarr", shards=shards, target=store)
    assert len(files(target)) > 1
    report = zardine.verify(folder if inside else target)
    assert report.faults == ()
    assert [note.kind for note in report.notes] == ["unfinished"]
    (target / "notes.txt").write_text("of somebody else")
    assert [fault.kind for fault in zardine.verify(target).faults] == ["stray"]
