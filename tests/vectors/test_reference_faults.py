"""What the reference package gets wrong, right."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vectors.geometry_samples import document, rows, set_document
from zardine import vectors
from zardine.errors import CorruptionError

RNG = np.random.default_rng(0)


def test_a_box_over_points_of_objects_with_bins(golden: Path) -> None:
    """14 of 53 points."""
    path = str(golden / "ps.zv")
    whole = vectors.read_points(path).positions
    box = ([100, 100, 100], [350, 350, 350])
    inside = ((whole >= box[0]) & (whole <= box[1])).all(axis=1)
    assert rows(vectors.read_points(path, bbox=box).positions) == rows(whole[inside])
    assert inside.sum() > 50


@pytest.mark.parametrize("level", [1, 2])
def test_a_box_at_a_coarse_level_of_binned_points(golden: Path, level: int) -> None:
    """1 of 8 points."""
    path = str(golden / "ps.zv")
    whole = vectors.read_points(path, level=level).positions
    box = ([0, 0, 0], [420, 420, 420])
    inside = ((whole >= box[0]) & (whole <= box[1])).all(axis=1)
    assert rows(vectors.read_points(path, level=level, bbox=box).positions) == rows(whole[inside])
    assert inside.any()


def test_a_second_write_does_not_destroy_the_first(copy_of: Callable[[str], str]) -> None:
    path = copy_of("p1")
    before = vectors.read_points(path).positions
    vectors.append_points(path, [[500.0, 500, 500], [-500, 1, 1]])
    found = vectors.read_points(path)
    assert rows(found.positions) == rows(np.concatenate([before, [[500, 500, 500], [-500, 1, 1]]]))
    assert len(found.attributes["intensity"]) == len(found.attributes["rgb"]) == len(found)
    assert vectors.validate(path).ok


def test_attributes_that_no_longer_belong_to_their_rows_are_found_and_mended(copy_of: Callable[[str], str]) -> None:
    path = copy_of("p1")
    cell = Path(path) / "0/vertex_attributes/intensity/c/0/0/0"
    data = cell.read_bytes()
    cell.write_bytes((1).to_bytes(4, "little") + (16).to_bytes(4, "little") + data[8:24])
    with pytest.raises(CorruptionError, match="no longer belong together"):
        vectors.read_points(path)
    assert "attribute" in vectors.validate(path).codes
    assert any("filled up 1 missing rows" in each.message for each in vectors.repair(path).actions)
    found = vectors.read_points(path, chunks=[(0, 0, 0)]).attributes["intensity"]
    assert found[:4].tolist() == [0, 10, 20, 30]
    assert np.isnan(found[4])
    assert vectors.validate(path).ok


def test_what_a_killed_conversion_lost_is_found(copy_of: Callable[[str], str]) -> None:
    path = copy_of("st")
    report = vectors.validate(path)
    assert not report.ok
    assert any("lost" in str(each) for each in report.errors)
    vectors.repair(path, drop_lost=True)
    assert vectors.validate(path).ok
    assert len(vectors.read_points(path)) == 105


def test_an_array_that_a_killed_conversion_emptied_is_found(copy_of: Callable[[str], str]) -> None:
    import shutil

    path = copy_of("p1")
    for name in ("vertices", "vertex_fragments"):
        node = document(path, f"0/{name}")
        node["attributes"]["nonempty_chunks"] = []
        set_document(path, f"0/{name}", node)
        shutil.rmtree(f"{path}/0/{name}/c")
    assert "vertex-count" in {each.code for each in vectors.validate(path).errors}


def test_compression_survives_conversions(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_points(path, RNG.uniform(0, 9, (50, 3)), chunk_shape=3, compressor="zstd")
    vectors.shard_store(path, 2)
    vectors.unshard_store(path)
    assert {tuple(each["compressors"]) for each in vectors.get_shard_info(path).values()} == {("zstd", "crc32c")}
    assert document(path, "0")["attributes"]["zarr_vectors_level"]["fragments_tile"] is True


def test_floor_rounding_puts_no_point_beside_its_chunk(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    grid = np.arange(0, 3, 0.1)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    vectors.write_points(path, points, chunk_shape=0.3, bin_shape=0.1)
    for point in points[::7]:
        assert vectors.read_points(path, bbox=(point, point)).positions.tolist() == [point.tolist()]
    assert vectors.validate(path).findings == ()


def test_points_beside_their_chunk_are_found(copy_of: Callable[[str], str]) -> None:
    path = copy_of("d2")
    node = document(path)
    node["attributes"]["zarr_vectors"]["chunk_shape"] = [4.0, 4.0]
    set_document(path, "", node)
    assert "outside-chunk" in vectors.validate(path).codes


@pytest.mark.parametrize("partial", [False, True])
def test_lost_keys_are_found_by_looking_and_mended(copy_of: Callable[[str], str], partial: bool) -> None:
    path = copy_of("p1")
    for name in ("vertices", "vertex_fragments"):
        node = document(path, f"0/{name}")
        keys = node["attributes"].pop("nonempty_chunks")
        if partial:
            node["attributes"]["nonempty_chunks"] = keys[:1]
        set_document(path, f"0/{name}", node)
    assert len(vectors.read_points(path)) == 8
    assert len(vectors.read_points(path, bbox=([0] * 3, [900] * 3))) == 8
    assert vectors.validate(path).codes & {"manifest-missing", "manifest-incomplete"}
    assert vectors.repair(path).actions
    assert vectors.validate(path).ok
    assert vectors.repair(path).actions == ()


def _append(path: str, start: int) -> None:
    for number in range(4):
        vectors.append_points(path, [[start + number + 0.5, 0.5]])


def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_points(path, [[0.5, 0.5]], chunk_shape=1)
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append, args=(path, start)) for start in (100, 200, -300)]
    for each in writers:
        each.start()
    for each in writers:
        each.join(60)
    found = sorted(vectors.read_points(path).positions[:, 0].tolist())
    assert found == sorted([0.5, *(start + n + 0.5 for start in (100, 200, -300) for n in range(4))])
    assert vectors.validate(path).findings == ()


def test_level_fields_are_looked_for_where_they_are(copy_of: Callable[[str], str]) -> None:
    for name, value, code in (
        ("vertex_count", 99999, "vertex-count"),
        ("object_sparsity", 7.5, "level-document"),
        ("level", 3, "level-document"),
        ("arrays_present", ["nonsense"], "arrays-present"),
        ("chunk_shape", [150.0, 100.0, 100.0], "level-document"),
        ("fragments_tile", True, None),
    ):
        path = copy_of("p1")
        node = document(path, "0")
        node["attributes"]["zarr_vectors_level"][name] = value
        set_document(path, "0", node)
        codes = vectors.validate(path).codes
        assert code is None or code in codes, name
        import shutil

        shutil.rmtree(path)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("geometry_types", ["teapot"], "geometry"),
        ("bounds", [[0, 0, 0], [1, 1, 1]], "bounds"),
        ("bounds", [[9, 9, 9], [1, 1, 1]], "root-document"),
        ("chunk_shape", [100.0, 100.0, 0.0], "root-document"),
        ("base_bin_shape", [30.0, 30.0, 30.0], "root-document"),
        ("links_convention", "explicit", None),
        ("zv_version", "99.0.0", "version"),
    ],
)
def test_root_fields_are_checked(copy_of: Callable[[str], str], name: str, value: object, code: str | None) -> None:
    path = copy_of("p1")
    node = document(path)
    node["attributes"]["zarr_vectors"][name] = value
    set_document(path, "", node)
    assert code is None or code in vectors.validate(path).codes


def test_object_attributes_of_another_length_are_found(copy_of: Callable[[str], str]) -> None:
    path = copy_of("po")
    node = document(path, "0/object_attributes/w")
    node["shape"] = [5]
    set_document(path, "0/object_attributes/w", node)
    assert "object-attribute" in vectors.validate(path).codes


def test_infinite_positions_and_levels_that_grow_are_found(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_points(path, np.arange(30.0).reshape(10, 3), chunk_shape=10, checksum=False)
    vectors.build_pyramid(path, factors=[(2, 1)])
    assert vectors.validate(path).findings == ()
    cell = Path(path) / "0/vertices/c/0/0/0"
    data = bytearray(cell.read_bytes())
    data[8:16] = np.array(np.inf).tobytes()
    cell.write_bytes(data)
    assert "not-finite" in vectors.validate(path).codes
