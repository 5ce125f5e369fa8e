"""Folders of neuroglancer, and graphs, behind URLs: imported by the same plans as those on this machine."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import pytest
from click.testing import CliRunner

import zardine
from effort import SOAK
from servers import servers
from vectors.source_files import geff, precomputed
from vectors.test_import_plans import ENVIRON, OPTIONS, at_once, in_parts, parts_of, stored, told
from zardine import vectors
from zardine.cli.commands import root
from zardine.errors import ArrayChangedError, PlanError, UnsupportedError, ZarrUserWarning
from zardine.jobs import Plan
from zardine.storage import LocalStore, MemoryStore, StorePath
from zardine.stores.resolve import resolve_store
from zardine.vectors.exchange import formats
from zardine.vectors.exchange.formats import import_vectors, plan_import


class Far(NamedTuple):
    """A folder that is behind a URL."""

    url: str
    options: dict[str, Any] | None
    change: Callable[[str, bytes], object]
    """Replaces a value."""


def made(kind: str, folder: Path, count: int = 30) -> Path:
    name, _, packed = kind.partition(" ")
    if name == "geff":
        return geff(folder / "in.geff", 600)
    return precomputed(folder / "in.precomputed", name, 9 if name == "meshes" else count, sharded=packed == "in shards")


def on_the_web(source: Path) -> Far:
    server = servers.nginx()
    name = f"{uuid4().hex}{source.suffix}"
    shutil.copytree(source, server.root / name)
    return Far(f"{server.url}/{name}", None, lambda key, value: (server.root / name / key).write_bytes(value))


def in_a_bucket(source: Path) -> Far:
    url, options = f"s3://{servers.new_bucket()}/{source.name}", servers.s3_options()
    store, _ = resolve_store(url, storage_options=options)
    for each in source.rglob("*"):
        if each.is_file():
            store.set(str(each.relative_to(source)), each.read_bytes())
    return Far(url, options, store.set)


PLACES = pytest.mark.parametrize("place", [on_the_web, in_a_bucket])


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        *((on_the_web, kind) for kind in ("boxes", "related in shards")),
        *((on_the_web, "meshes"), (in_a_bucket, "meshes"), (in_a_bucket, "geff"), (in_a_bucket, "points in shards")),
        (in_a_bucket, "related"),
        *((on_the_web, kind) for kind in ("related", "skeletons", "loops in shards") if SOAK),
        *((in_a_bucket, kind) for kind in ("skeletons in shards",) if SOAK),
    ],
)
def test_the_store_is_that_of_a_folder_here(place: Any, kind: str, tmp_path: Path) -> None:
    source, path = made(kind, tmp_path), str(tmp_path / "a.zv")
    far = place(source)
    plan = plan_import(far.url, path, storage_options=far.options, **OPTIONS)
    plan = in_parts(plan, 20 if kind.startswith(("related", "boxes")) else 100)
    if "in shards" in kind:
        assert len(plan) > 1
    plan.save(tmp_path / "plan.json")
    text = (tmp_path / "plan.json").read_text()
    assert "secret" not in text
    plan = Plan.load(tmp_path / "plan.json", storage_options=far.options)
    plan.run(finish=False)
    assert not Path(path, "zarr.json").exists()
    assert plan.run().state == "finished"
    assert stored(LocalStore(path)) == at_once(source)
    assert vectors.validate(path).findings == ()
    assert not list(Path(path).rglob("*__zardine*"))


def test_a_graph_on_the_web(tmp_path: Path) -> None:
    """Its members are known by consolidated metadata; of chunks nothing is noticed."""
    source, path = made("geff", tmp_path), str(tmp_path / "a.zv")
    zardine.consolidate_metadata(str(source))
    far = on_the_web(source)
    plan = in_parts(plan_import(far.url, path, **OPTIONS), 100)
    assert len(plan) > 4
    plan.run(finish=False)
    root = json.loads((source / "zarr.json").read_text())
    root["attributes"]["geff"]["extra"] = {"a": 1}
    changed = json.dumps(root).encode()
    far.change("zarr.json", changed)
    with pytest.raises(PlanError, match="has changed since"):
        plan.run()
    far.change("zarr.json", (source / "zarr.json").read_bytes())
    plan.run()
    assert stored(LocalStore(path)) == at_once(source)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let folders of any size be imported by plans of small parts."""
    monkeypatch.setattr(formats, "AT_ONCE", 100)
    monkeypatch.setattr(formats, "WHOLE", 0)


KILLING = """
import os, signal, sys
from zardine.vectors.exchange import formats
from zardine.vectors.exchange.precomputed.reading import SkeletonParts
formats.AT_ONCE, formats.WHOLE = 100, 0
read = SkeletonParts.read
def mortal(parts, number):
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return read(parts, number)
SkeletonParts.read = mortal
options = None if sys.argv[3] == "null" else __import__("json").loads(sys.argv[3])
formats.import_vectors(sys.argv[1], sys.argv[2], storage_options=options, chunk_shape=100, shard_shape=4,
                       compressor="zstd")
"""


def killed(far: Far, path: str) -> None:
    """An import in another process, which is killed as it begins to read part 3."""
    command = [sys.executable, "-c", KILLING, far.url, path, json.dumps(far.options)]
    ended = subprocess.run(command, env=ENVIRON, check=False, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


@PLACES
@pytest.mark.usefixtures("small")
def test_the_same_call_goes_on_where_one_was_killed(place: Any, tmp_path: Path) -> None:
    source, path = made("skeletons in shards", tmp_path), str(tmp_path / "a.zv")
    far = place(source)
    killed(far, path)
    before = parts_of(Path(path))
    assert len(before) == 3
    import_vectors(far.url, path, storage_options=far.options, workers=2 if place is on_the_web else None, **OPTIONS)
    found = stored(LocalStore(path))
    formats.WHOLE = 2**22
    assert found == at_once(source)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("place", "what"),
    [
        *((on_the_web, "info"), (on_the_web, "1.shard")),
        *((in_a_bucket, "segment_properties/info"), (in_a_bucket, "1.shard")),
    ],
)
def test_a_folder_that_has_changed(what: str, place: Any, tmp_path: Path) -> None:
    """The plan is refused, and the next import says why it begins anew."""
    source, path = made("skeletons in shards", tmp_path), str(tmp_path / "a.zv")
    far = place(source)
    plan = plan_import(far.url, path, storage_options=far.options, **OPTIONS)
    plan.run(finish=False)
    old = (source / what).read_bytes()
    new = old + bytes(8) if what == "1.shard" else old.replace(b"}", b', "more": 1}', 1)
    far.change(what, new)
    with pytest.raises(PlanError, match="has changed since its import was planned: plan it anew"):
        plan.run()
    with pytest.warns(ZarrUserWarning, match="is discarded: the folder has changed since"):
        import_vectors(far.url, path, storage_options=far.options, **OPTIONS)
    found = stored(LocalStore(path))
    formats.WHOLE = 2**22
    assert found == at_once(source)


@pytest.mark.parametrize("kind", ["skeletons", "meshes"])
def test_values_of_a_bucket_that_have_changed(kind: str, tmp_path: Path) -> None:
    source, path = made(kind, tmp_path), str(tmp_path / "a.zv")
    far = in_a_bucket(source)
    plan = plan_import(far.url, path, storage_options=far.options, **OPTIONS)
    plan.run(finish=False)
    name = next(each.name for each in source.iterdir() if each.name[0].isdecimal() and ":0:" in f"{each.name}:0:")
    far.change(name, (source / name).read_bytes() + b" ")
    with pytest.raises(PlanError, match="has changed since"):
        plan.run()
    resolve_store(far.url, storage_options=far.options)[0].erase("info")
    with pytest.raises(PlanError, match=r"cannot be read any more .*no document called info"):
        plan.run()
    plan.cancel()
    assert not [each for each in Path(path).rglob("*") if each.is_file()]


@PLACES
def test_a_shard_that_changes_while_it_is_read(place: Any, tmp_path: Path) -> None:
    """No job reads a shard that is not as it was when the folder was looked at."""
    source, path = made("skeletons in shards", tmp_path), str(tmp_path / "a.zv")
    far = place(source)
    plan = in_parts(plan_import(far.url, path, storage_options=far.options, **OPTIONS), 100)
    plan.begin()
    plan.job(0)()  # this process has looked at what there is
    far.change("1.shard", (source / "1.shard").read_bytes() + bytes(8))
    with pytest.raises(ArrayChangedError, match=r"1\.shard of .* was changed while it was imported: import it again"):
        plan.job(len(plan) - 1)()


def test_properties_beside_the_folder(tmp_path: Path) -> None:
    """A document of which the folder's own tells is as much a part of the source as the folder."""
    source, store = made("skeletons", tmp_path), MemoryStore()
    for each in source.rglob("*"):
        if each.is_file():
            store.set(f"trees/{each.relative_to(source)}", each.read_bytes())
    about = bytes(store.get("trees/segment_properties/info") or b"")
    store.erase("trees/segment_properties/info")
    store.set("names/info", about)
    info = json.loads(bytes(store.get("trees/info") or b""))
    store.set("trees/info", json.dumps({**info, "segment_properties": "../names"}).encode())
    plan = plan_import(StorePath(store, "trees"), str(tmp_path / "a.zv"), **OPTIONS)
    plan.run(finish=False)
    store.set("names/info", about.replace(b'"size"', b'"Size"'))
    with pytest.raises(PlanError, match="trees has changed since"):
        plan.finish()
    store.set("names/info", about)
    plan.finish()
    assert stored(LocalStore(str(tmp_path / "a.zv"))) == at_once(source)
    store.erase("names/info")
    assert told(lambda: import_vectors(StorePath(store, "trees"), MemoryStore(), chunk_shape=100)).count("\n") == 0


def test_commands(tmp_path: Path) -> None:
    source = made("points in shards", tmp_path)
    far, plan, path = in_a_bucket(source), tmp_path / "plan.json", tmp_path / "a.zv"
    options = [f"{key}={value}" for key, value in (far.options or {}).items()]
    given = [word for each in options for word in ("--source-option", each)]

    def call(*words: str) -> str:
        ended = CliRunner().invoke(root, words)
        assert ended.exit_code == 0, ended.output
        return ended.output

    made_plan = call("jobs", "plan", "import", far.url, str(path), "--chunks", "100", *given, "--out", str(plan))
    assert made_plan.startswith("import s3://")
    call("jobs", "run", str(plan), *(word for each in options for word in ("--storage-option", each)))
    call("jobs", "finish", str(plan), *(word for each in options for word in ("--storage-option", each)))
    again = str(tmp_path / "b.zv")
    call("vectors", "import", far.url, again, "--chunks", "100", "--workers", "2", *given)
    assert stored(LocalStore(str(path))) == stored(LocalStore(again))


def test_what_cannot_be_listed_and_is_named_nowhere(tmp_path: Path) -> None:
    source = made("skeletons", tmp_path)
    info = json.loads((source / "info").read_text())
    del info["segment_properties"]
    (source / "info").write_text(json.dumps(info))
    with pytest.raises(UnsupportedError, match="cannot list"):
        import_vectors(on_the_web(source).url, str(tmp_path / "a.zv"))
    far = on_the_web(made("points", tmp_path / "other"))
    info = json.loads((tmp_path / "other/in.precomputed/info").read_text())
    huge = [{**info["spatial"][0], "grid_shape": [2**40] * 3}]
    far.change("info", json.dumps({**info, "spatial": huge}).encode())
    with pytest.raises(UnsupportedError, match="cells, more than the 1048576 that are asked for one by one"):
        import_vectors(far.url, str(tmp_path / "a.zv"))


def test_lines_in_many_cells_on_the_web(tmp_path: Path) -> None:
    """With relations: each is read once for each portion of cells that it is in, and stored once."""
    rng, path = np.random.default_rng(0), str(tmp_path / "a.zv")
    lines = rng.uniform(0, 500, (2500, 2, 3)).astype("f4")
    groups: Any = {"groups": [[1, 5, 7], [7]], "group_attributes": {"relationship": ["a", "a"], "segment": [3, 4]}}
    vectors.write_lines(path, lines, chunk_shape=100, object_ids=np.arange(2500), **groups)
    formats.export_vectors(path, tmp_path / "out.precomputed", sharded=False)
    far = on_the_web(tmp_path / "out.precomputed")
    again = str(tmp_path / "b.zv")
    plan = plan_import(far.url, again, **OPTIONS)
    work: Any = plan.work
    assert len(plan) > 1
    assert sum(len(work._parts.read(number).positions) for number in range(len(plan))) >= 2500
    plan.run()
    assert stored(LocalStore(again)) == at_once(tmp_path / "out.precomputed")
