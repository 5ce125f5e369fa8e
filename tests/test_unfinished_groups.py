"""A group that is written as a whole: from the first request to the last, nobody opens it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import zardine
from zardine.cli.commands import root
from zardine.errors import UnfinishedError
from zardine.hierarchy.unfinished import begin_group, finish_group, mark_group
from zardine.metadata.documents import GroupMetadata
from zardine.storage import LocalStore, MemoryStore


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> zardine.abc.store.Store:
    return LocalStore(tmp_path / "s.zarr") if request.param == "local" else MemoryStore()


def make_old(store: zardine.abc.store.Store, version: int) -> None:
    old = zardine.create_group(store, zarr_format=version, attributes={"old": 1})
    old.create_array("gone", data=[1, 2, 3])
    old.create_group("below").create_array("gone", data=[1])
    old.create_array("kept", data=[1, 2, 3])


@pytest.mark.parametrize("before", [None, 2, 3])
@pytest.mark.parametrize("version", [2, 3])
def test_what_was_there_is_gone_and_nothing_is_opened(
    store: zardine.abc.store.Store, before: int | None, version: int
) -> None:
    if before is not None:
        make_old(store, before)
    metadata = GroupMetadata(attributes={"new": 2}, zarr_format=version)
    identity = begin_group(store, "", metadata, by="a test", kept=["kept"])
    for opening in (zardine.open, zardine.open_group, zardine.Group.open, zardine.load):
        with pytest.raises(UnfinishedError, match=r"being written by a test since .* mode='w'"):
            opening(store)
    with pytest.raises(UnfinishedError):
        zardine.open_group(store, mode="a")
    with pytest.raises(UnfinishedError):
        zardine.open_group(store, mode="r")
    with pytest.raises(UnfinishedError):
        zardine.convert(store, MemoryStore())
    assert any(each.kind == "unfinished" for each in zardine.verify(store).notes)
    zardine.create_array(store, name="x", data=[5], zarr_format=version)
    zardine.consolidate_metadata(store)
    with pytest.raises(UnfinishedError):
        zardine.open(store)
    finish_group(store, "", identity, version)
    group = zardine.open_group(store)
    assert group.metadata.zarr_format == version
    assert group.attrs == {"new": 2}
    assert [*group] == (["x"] if before is None else ["kept", "x"])
    assert zardine.open_group(store, use_consolidated=True)["x"][0] == 5
    assert not [each for each in zardine.verify(store).notes if each.kind == "unfinished"]


def test_a_group_below_one_with_consolidated_metadata(store: zardine.abc.store.Store) -> None:
    root = zardine.create_group(store)
    root.create_array("g/old", data=[1])
    root.create_array("h/other", data=[1])
    zardine.consolidate_metadata(store)
    identity = begin_group(store, "g", GroupMetadata(), by="a test")
    opened = zardine.open_group(store)
    for opening in (
        lambda: opened["g"],
        lambda: dict(opened.items()),
        lambda: dict(opened.groups()),
        lambda: list(opened.values()),
        lambda: opened.members(),
    ):
        with pytest.raises(UnfinishedError, match="/g"):
            opening()
    assert opened["h/other"][0] == 1
    assert "g/old" not in opened
    zardine.consolidate_metadata(store)
    with pytest.raises(UnfinishedError):
        zardine.open_group(store)["g"]
    finish_group(store, "g", identity)
    assert [*zardine.open_group(store)["g"]] == []


def test_of_two_writers_the_first_is_told(store: zardine.abc.store.Store) -> None:
    first = begin_group(store, "", GroupMetadata(), by="a test")
    second = begin_group(store, "", GroupMetadata(), by="a test")
    with pytest.raises(UnfinishedError, match="anew meanwhile"):
        finish_group(store, "", first)
    finish_group(store, "", second)
    zardine.open_group(store)
    for _ in range(2):
        mark_group(store, "", "the third", by="a test")
    with pytest.raises(UnfinishedError):
        zardine.open_group(store)
    finish_group(store, "", "the third")


def test_an_array_of_the_place_is_gone(store: zardine.abc.store.Store) -> None:
    array = zardine.create_array(store, data=[1, 2, 3])
    identity = begin_group(store, "", GroupMetadata(), by="a test")
    finish_group(store, "", identity)
    assert [*zardine.open_group(store)] == []
    with pytest.raises(zardine.errors.ArrayChangedError):
        array[0]


def test_the_command_line(tmp_path: Path) -> None:
    begin_group(LocalStore(tmp_path), "", GroupMetadata(), by="a test")
    for command in ("info", "tree"):
        result = CliRunner().invoke(root, [command, str(tmp_path)])
        assert result.exit_code != 0
        assert "mode='w'" in result.output
