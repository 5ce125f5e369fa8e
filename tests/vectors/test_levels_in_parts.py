"""Levels that are written part by part: the same bytes as at once, in bounded memory, and all or nothing."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import laspy
import nibabel.streamlines as tracts
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nibabel.streamlines.tractogram import LazyTractogram, TractogramItem
from zarr_vectors.types.points import read_points as their_points
from zarr_vectors.types.polylines import read_polylines as their_lines
from zarr_vectors.validate import validate as their_validate

from effort import SOAK, examples
from vectors.geometry_samples import Killed, MortalStore, copy_of
from vectors.source_files import geff, meshes, swc
from zardine import vectors
from zardine.errors import DataError, NodeExistsError, ZardineError
from zardine.storage import MemoryStore, Store
from zardine.stores.local import many_files
from zardine.vectors.changing import large_stores
from zardine.vectors.content import parts
from zardine.vectors.content.parts import ABOVE, ENDS, OWNER
from zardine.vectors.content.run_content import depth_first, inverse
from zardine.vectors.exchange import file_parts, formats, streamlines
from zardine.vectors.exchange.formats import export_vectors, import_vectors
from zardine.vectors.graph import write_spooled_graph
from zardine.vectors.mesh import write_spooled_mesh
from zardine.vectors.skeleton import write_spooled_trees
from zardine.vectors.storing.spools import Buckets, Spool, SpooledBlobs

WIDE: dict[str, Any] = {"bounds": ([-900] * 3, [900] * 3)}


def in_parts(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let levels of more vertices than ``size`` be written so many at a time."""
    for module in (parts, file_parts, formats, streamlines):
        monkeypatch.setattr(module, "AT_ONCE", size)
    monkeypatch.setattr(large_stores, "WHOLE", size)


def stored(store: Store) -> dict[str, Any]:
    """All values; documents as what they say, whatever the order of members."""
    found = {key: bytes(store.get(key) or b"") for key in store.list()}
    return {key: json.loads(value) if key.endswith("zarr.json") else value for key, value in found.items()}


def check_same(write: Callable[[Store], None], size: int) -> None:
    whole, cut = MemoryStore(), MemoryStore()
    write(whole)
    with pytest.MonkeyPatch.context() as patch:
        in_parts(patch, size)
        write(cut)
    assert stored(cut) == stored(whole)
    assert vectors.validate(cut).findings == ()


SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=examples(6), deadline=None)
@given(SEEDS, st.integers(0, 90), st.integers(1, 40), st.sampled_from([None, 2, 8]), st.sampled_from([None, 10, 5]))
def test_points_in_parts_are_stored_as_at_once(seed: int, count: int, size: int, shard: Any, bins: Any) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(0, 20, (count, 3)).astype(rng.choice(["f4", "f8"]))
    columns = {"q": np.arange(count), "t": rng.choice(["a", "b"], count), "rgb": rng.integers(0, 9, (count, 3))}
    options = {"chunk_shape": 20, "shard_shape": shard, "bin_shape": bins, "vertex_attributes": columns}
    check_same(lambda store: vectors.write_points(store, points, **options, **WIDE), size)
    box: Any = {"bounds": ([-20] * 3, [20] * 3), "out_of_bounds": "ignore", "chunk_shape": 20, "compressor": "zstd"}
    check_same(lambda store: vectors.write_points(store, points, **box), size)


@settings(max_examples=examples(6), deadline=None)
@given(SEEDS, st.integers(0, 25), st.integers(1, 40), st.sampled_from([None, 2, 8]))
def test_lines_in_parts_are_stored_as_at_once(seed: int, count: int, size: int, shard: Any) -> None:
    """Long ones, which are in several parts, cross chunks and come back to them; short ones, and empty ones."""
    rng = np.random.default_rng(seed)
    lengths = rng.choice([0, 1, 2, 7, 30], count)
    lines = [rng.normal(0, 9, (length, 3)).cumsum(axis=0) for length in lengths]
    options: dict[str, Any] = {
        "vertex_attributes": {"q": np.arange(lengths.sum()), "t": rng.choice(["a", "b"], lengths.sum())},
        "object_ids": rng.permutation(count) * 3,
        "object_attributes": {"w": np.arange(count), "name": [f"line {number}" for number in range(count)]},
        "groups": [[0, 3]] if count > 1 else None,
    }
    check_same(lambda s: vectors.write_polylines(s, lines, chunk_shape=20, shard_shape=shard, **options, **WIDE), size)


@settings(max_examples=examples(6), deadline=None)
@given(SEEDS, st.integers(1, 12), st.integers(1, 60), st.sampled_from([None, 2, 8]), st.sampled_from([5, 20, 500]))
def test_trees_in_parts_are_stored_as_at_once(seed: int, count: int, size: int, shard: Any, chunk: float) -> None:
    """Trees of a few roots, which branch and come back to chunks; some are a single vertex."""
    rng = np.random.default_rng(seed)
    pieces = []
    for number in range(count):
        nodes = int(rng.choice([1, 2, 7, 40]))
        parents = np.array([max(-1, row - 1 - int(rng.exponential(1.5))) for row in range(nodes)])
        parents[0] = -1
        places = rng.normal(0, 9, (nodes, 3)).cumsum(axis=0)
        order = depth_first(parents, np.zeros(nodes, np.int64))
        moved = inverse(order)
        above = np.where(parents[order] >= 0, np.arange(nodes) - moved[parents[order]], 0)
        names = np.array([f"{number} {row}" for row in range(nodes)], object)
        pieces.append(
            file_parts.Piece(places, {ABOVE: above, "q": np.arange(nodes), "t": names}, {"": np.array([nodes])})
        )
    options: Any = {"chunk_shape": chunk, "shard_shape": shard, "object_attributes": {"w": list(range(count))}}

    def write(store: Store) -> None:
        made = [file_parts.Part.of(each, None, "a.las") for each in pieces]
        whole = file_parts.Whole(made.__getitem__)
        for each in made:
            whole.add(each)
        lengths = np.array([len(each.positions) for each in pieces])
        write_spooled_trees(store, whole, lengths, np.arange(count) * 5, {**WIDE, **options}, lambda share: None)

    check_same(write, size)
    plain = MemoryStore()
    write(plain)
    found = vectors.read_skeleton(plain)
    positions = np.concatenate([each.positions for each in pieces])
    above = np.concatenate([each.values[ABOVE] for each in pieces])
    edges = {(*positions[row], *positions[row - step]) for row, step in enumerate(above) if step}
    seen = np.flatnonzero(found.parents >= 0)
    assert {(*found.positions[row], *found.positions[found.parents[row]]) for row in seen} == edges


@settings(max_examples=examples(5), deadline=None)
@given(SEEDS, st.integers(1, 8), st.integers(1, 60), st.sampled_from([None, 2, 8]), st.sampled_from(["graph", "mesh"]))
def test_links_in_parts_are_stored_as_at_once(seed: int, count: int, size: int, shard: Any, kind: str) -> None:
    """Of objects whose vertices are in any order, and in several pieces, some of which have no links."""
    rng = np.random.default_rng(seed)
    pieces, width = [], 2 if kind == "graph" else 3
    for _ in range(count):
        nodes, links = int(rng.choice([1, 3, 40])), int(rng.choice([0, 1, 50]))
        values = {OWNER: rng.integers(-3, 4, nodes) * 7, "q": rng.random(nodes), "t": rng.choice(["a", "bc"], nodes)}
        of_links = {
            ENDS: rng.integers(0, nodes, (links, width)),
            "w": rng.integers(0, 9, (links, 2)),
            "t": np.zeros(links, "U1"),
        }
        of_links["t"][::2] = "x"
        pieces.append(file_parts.Piece(rng.normal(0, 30, (nodes, 3)).astype("f4"), values, {}, of_links))
    ids = np.unique(np.concatenate([each.values[OWNER] for each in pieces]))
    options: Any = {"chunk_shape": 20, "shard_shape": shard, "object_attributes": {"n": ids * 2}, "groups": [ids[:1]]}
    spooled, plain = (
        (write_spooled_graph, vectors.write_graph) if width == 2 else (write_spooled_mesh, vectors.write_mesh)
    )

    def write(store: Store) -> None:
        made = [file_parts.Part.of(each, None, "a.las") for each in pieces]
        whole = file_parts.Whole(made.__getitem__)
        for each in made:
            whole.add(each)
        spooled(store, whole, whole, {**WIDE, **options}, lambda share: None)  # type: ignore[operator]

    check_same(write, size)
    one, other = MemoryStore(), MemoryStore()
    write(one)
    starts = np.cumsum([0, *(len(each.positions) for each in pieces)])
    ends = np.concatenate([each.links[ENDS] + start for each, start in zip(pieces, starts, strict=False)])
    columns = {name: np.concatenate([each.values[name] for each in pieces]) for name in ("q", "t")}
    of_ends = {name: np.concatenate([each.links[name] for each in pieces]) for name in ("w", "t")}
    owners = np.concatenate([each.values[OWNER] for each in pieces])
    positions = np.concatenate([each.positions for each in pieces])
    given: Any = {"vertex_attributes": columns, "link_attributes": of_ends, "object_ids": owners, **WIDE, **options}
    plain(other, positions, ends, **given)
    assert stored(one) == stored(other)


def las(path: Path, count: int, *, at_once: int = 10**6, seed: int = 0) -> Path:
    """A file of points, made some at a time."""
    rng = np.random.default_rng(seed)
    header = laspy.LasHeader(point_format=3, version="1.4")
    header.scales = np.full(3, 0.001)
    with laspy.open(path, "w", header=header) as writer:
        for start in range(0, count, at_once):
            some = min(at_once, count - start)
            points = laspy.ScaleAwarePointRecord.zeros(some, header=header)
            for axis, extent in (("x", 1000), ("y", 1000), ("z", 50)):
                points[axis] = rng.uniform(0, extent, some)
            points["intensity"] = np.arange(start, start + some) % 60000
            writer.write_points(points)
    return path


def trk(path: Path, count: int, vertices: int = 60, seed: int = 0) -> Path:
    """A file of streamlines, made one at a time; TCK has no values of vertices and lines."""
    plain = path.suffix == ".tck"

    def lines() -> Iterator[TractogramItem]:
        rng = np.random.default_rng(seed)
        for number in range(count):
            line = (rng.uniform(-60, 60, 3) + rng.normal(0, 0.5, (vertices, 3)).cumsum(axis=0)).astype("f4")
            whole = {} if plain else {"number": np.array([number], "f4")}
            yield TractogramItem(line, whole, {} if plain else {"fa": np.full((vertices, 1), number, "f4")})

    made = LazyTractogram.from_data_func(lines)
    made.affine_to_rasmm = np.eye(4)
    tracts.save(made, str(path))
    return path


@pytest.mark.parametrize("ending", ["las", "laz"])
def test_a_scan_that_is_read_by_pieces(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, path, told = las(tmp_path / f"in.{ending}", 3000), str(tmp_path / "a.zv"), list[tuple[int, int]]()
    in_parts(monkeypatch, 400)
    import_vectors(
        source, path, chunk_shape=100, shard_shape=4, progress=lambda done, total: told.append((done, total))
    )
    whole, found = laspy.read(source), vectors.read_points(path)
    order, theirs = np.argsort(found.attributes["intensity"]), np.argsort(whole.intensity)
    assert np.array_equal(found.positions[order], np.asarray(whole.xyz)[theirs])
    assert np.array_equal(found.attributes["gps_time"][order], whole.gps_time[theirs])
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    assert len(told) > 10
    assert vectors.validate(path).findings == ()
    assert their_validate(path).ok
    assert their_points(path)["vertex_count"] == 3000
    with pytest.raises(NodeExistsError):
        import_vectors(source, path)


@pytest.mark.parametrize("ending", ["trk", "tck"])
def test_streamlines_that_are_read_by_pieces(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, path = trk(tmp_path / f"in.{ending}", 80), str(tmp_path / "a.zv")
    in_parts(monkeypatch, 700)
    import_vectors(source, path, chunk_shape=25, shard_shape=4)
    whole, found = tracts.load(str(source)).tractogram, vectors.read_polylines(path)
    assert len(found.lines) == 80
    assert all(np.array_equal(a, b) for a, b in zip(found.lines, whole.streamlines, strict=True))
    if ending == "trk":
        assert found.object_attributes["number"].tolist() == list(range(80))
        assert np.array_equal(found.attributes["fa"], np.repeat(np.arange(80), 60))
    assert vectors.validate(path).findings == ()
    assert their_validate(path).ok
    assert their_lines(path)["polyline_count"] == 80


def test_lines_of_trx_that_are_read_by_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 90, 60)
    lines = [rng.normal(0, 2, (length, 3)).cumsum(axis=0).astype("f4") for length in lengths]
    options: Any = {"vertex_attributes": {"q": np.arange(lengths.sum())}, "object_attributes": {"w": np.arange(60)}}
    vectors.write_polylines(
        str(tmp_path / "a.zv"), lines, chunk_shape=25, groups=[[3, 4]], group_attributes={"name": ["g"]}, **options
    )
    export_vectors(str(tmp_path / "a.zv"), tmp_path / "a.trx")
    in_parts(monkeypatch, 500)
    import_vectors(tmp_path / "a.trx", str(tmp_path / "b.zv"), chunk_shape=25)
    found = vectors.read_polylines(str(tmp_path / "b.zv"))
    assert all(np.array_equal(a, b) for a, b in zip(found.lines, lines, strict=True))
    assert found.attributes["q"].tolist() == list(range(lengths.sum()))
    assert found.object_attributes["w"].tolist() == list(range(60))
    assert [each.tolist() for each in vectors.read_groups(str(tmp_path / "b.zv")).members] == [[3, 4]]
    assert vectors.validate(str(tmp_path / "b.zv")).findings == ()


def test_attributes_that_are_given_beside_a_file(tmp_path: Path) -> None:
    scan = las(tmp_path / "in.las", 40)
    import_vectors(scan, str(tmp_path / "a.zv"), chunk_shape=100, object_ids=np.arange(40) % 7, dtype="f4")
    found = vectors.read_points(str(tmp_path / "a.zv"))
    assert found.positions.dtype == np.float32
    assert sorted(found.object_ids.tolist()) == sorted((np.arange(40) % 7).tolist())  # type: ignore[union-attr]
    lines = trk(tmp_path / "in.trk", 3, 5)
    import_vectors(lines, str(tmp_path / "b.zv"), chunk_shape=9, vertex_attributes={"v": np.arange(15)}, dtype="f8")
    made = vectors.read_polylines(str(tmp_path / "b.zv"))
    assert (made.positions.dtype, made.attributes["v"].tolist()) == (np.dtype("f8"), list(range(15)))
    with pytest.raises(TypeError, match="chunk_shpe"):
        import_vectors(lines, str(tmp_path / "c.zv"), chunk_shpe=9)  # type: ignore[call-arg]
    with pytest.raises(DataError, match="a line has 2 vertices, not 5"):
        import_vectors(lines, str(tmp_path / "c.zv"), geometry_type="line")


@pytest.mark.parametrize(
    ("make", "suffix", "most", "growth"),
    [
        (las, ".las", 40_000, 1.6),
        (trk, ".trk", 900, 3),
        (trk, ".tck", 900, 3),
        (swc, "", 120, 3.5),
        (geff, ".geff", 6000, 3.5),
        (meshes, "-ply", 150, 2),
    ],
)
def test_memory_does_not_grow_with_the_file(
    make: Callable[[Path, int], Path],
    suffix: str,
    most: int,
    growth: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 40,000 points, and a quarter of them, 4,096 are in memory at a time; and numbers of all lines.

    Of folders and graphs there are fewer. Of graphs there are numbers of all nodes.
    """
    in_parts(monkeypatch, 2**12 if make in (las, trk) else 2**10)
    monkeypatch.setattr(many_files, "_BYTES", 2**15)
    peaks = []
    gc.disable()  # as good as in a process with many objects, where it looks at all of them once in a long while
    try:
        for number in (80, most // 4, most):  # the first for what is kept for good
            source = make(tmp_path / f"{number}{suffix}", number)
            tracemalloc.start()
            try:
                import_vectors(source, str(tmp_path / f"{number}.zv"), chunk_shape=20 if make is trk else 100)
                peaks.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
    finally:
        gc.enable()
    assert peaks[2] < growth * peaks[1]


def test_a_writer_that_is_killed_leaves_the_old_store_or_the_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    in_parts(monkeypatch, 50)
    rng = np.random.default_rng(0)
    old, new = rng.uniform(0, 40, (60, 3)), rng.uniform(0, 60, (150, 3))
    before = MemoryStore()
    vectors.write_points(before, old, chunk_shape=20)
    for start, counts in ((MemoryStore(), {None, 150}), (before, {60, None, 150})):
        changes, seen = 0, set()
        while True:
            store = copy_of(start)
            try:
                vectors.write_points(MortalStore(store, changes), new, chunk_shape=30, overwrite=True)
                break
            except Killed:
                changes += 1 if SOAK else 3
            try:
                seen.add(len(vectors.read_points(store)))
            except ZardineError:
                seen.add(None)  # an error, and never less than all
            vectors.write_points(store, new[:7], chunk_shape=30, overwrite=True)
            assert len(vectors.read_points(store)) == 7
            assert vectors.validate(store).ok
        assert seen <= counts
        assert changes > 5


_KILLED = """
import os, signal, sys
from zardine.vectors.content import parts
from zardine.vectors.changing import large_stores
from zardine.vectors.exchange import formats
from zardine.vectors.exchange.formats import import_vectors
parts.AT_ONCE = large_stores.WHOLE = formats.AT_ONCE = 500
def die(done, total):
    if done >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
import_vectors(sys.argv[1], sys.argv[2], chunk_shape=100, progress=die)
"""


@pytest.mark.parametrize("done", [300, 1500])
def test_an_import_that_is_killed_leaves_nothing(done: int, tmp_path: Path) -> None:
    source, path, spools = las(tmp_path / "in.las", 5000), tmp_path / "a.zv", tmp_path / "spools"
    spools.mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", _KILLED, str(source), str(path), str(done)],
        env={**os.environ, "TMPDIR": str(spools)},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    assert list(spools.iterdir()) == []
    assert not path.exists()
    import_vectors(source, str(path), chunk_shape=100)
    assert len(vectors.read_points(str(path))) == 5000


def test_rows_come_back_from_their_buckets() -> None:
    for count in (3, 2**17):
        buckets, rng = Buckets(np.dtype([("a", "<i4"), ("b", "<f8", (2,))]), count), np.random.default_rng(0)
        rows = np.zeros(500, np.dtype([("a", "<i4"), ("b", "<f8", (2,))]))
        rows["a"], numbers = np.arange(500), rng.integers(0, 3, 500)
        for start in range(0, 500, 60):
            buckets.add(rows[start : start + 60], numbers[start : start + 60])
        for bucket in range(3):
            assert buckets.rows(bucket)["a"].tolist() == np.flatnonzero(numbers == bucket).tolist()
    blobs = SpooledBlobs(Spool())
    blobs.extend([b"ab", b"", b"c"])
    blobs.extend([b"def"])
    assert (blobs[0:4], blobs[1:3], blobs[3], blobs[4:], blobs[::2]) == (
        *([b"ab", b"", b"c", b"def"], [b"", b"c"], b"def", [], [b"ab", b"c"]),
    )


def test_pieces_that_do_not_go_together_are_refused() -> None:
    def part(positions: Any, **values: Any) -> file_parts.Part:
        return file_parts.Part.of(file_parts.Piece(np.asarray(positions, float), values), None, "a.las")

    first = part(np.zeros((2, 3)), a=np.array([1, 2]))
    whole = file_parts.Whole([first].__getitem__)
    whole.add(first)
    for wrong in (
        part(np.zeros((2, 2)), a=np.array([1, 2])),
        part(np.zeros((2, 3)), a=np.array([1.0, 2])),
        part(np.zeros((2, 3)), a=np.array(["1", "2"])),
        part(np.zeros((2, 3)), b=np.array([1, 2])),
    ):
        with pytest.raises(DataError):
            whole.add(wrong)
    assert whole.count == 2
    with pytest.raises(DataError):
        part(np.full((2, 3), np.nan))


_IMPORT = """
import sys
from zardine.vectors.exchange.formats import import_vectors
import_vectors(sys.argv[1], sys.argv[2], chunk_shape=float(sys.argv[3]), shard_shape=8)
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.parametrize(
    ("ending", "count", "chunk"), [("las", 300_000_000, 20), ("tck", 8_000_000, 10), ("trk", 8_000_000, 10)]
)
def test_files_of_10_gigabytes_in_one_gigabyte(ending: str, count: int, chunk: float, tmp_path: Path) -> None:
    """In a soak run; a five-thousandth of them otherwise."""
    count = count if SOAK else count // 5000
    source = las(tmp_path / "in.las", count) if ending == "las" else trk(tmp_path / f"in.{ending}", count, 100)
    assert source.stat().st_size > (9e9 if SOAK else 1e6)
    command = [sys.executable, "-c", _IMPORT, str(source), str(tmp_path / "a.zv"), str(chunk)]
    megabytes = int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert megabytes < (1000 if SOAK else 250)


def test_much_is_not_worked_out_where_something_is_stored_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    store, points = MemoryStore(), np.random.default_rng(3).random((500, 3))
    vectors.write_points(store, points, chunk_shape=0.5)
    in_parts(monkeypatch, 100)
    monkeypatch.setattr(large_stores, "prepare", lambda *_, **__: pytest.fail("the positions were gone through"))
    with pytest.raises(NodeExistsError, match="overwrite=True"):
        vectors.write_points(store, points, chunk_shape=0.5)
    with pytest.raises(NodeExistsError, match="overwrite=True"):
        vectors.write_polylines(store, [points], chunk_shape=0.5)
    with pytest.raises(NodeExistsError, match="overwrite=True"):
        vectors.write_graph(store, points, [[0, 1]], chunk_shape=0.5)
