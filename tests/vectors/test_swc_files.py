"""SWC files that are damaged, or hold more than a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from zardine import vectors
from zardine.errors import DataError, ZarrUserWarning
from zardine.vectors import Skeleton
from zardine.vectors.exchange.formats import export_vectors, import_vectors

SAMPLES = "1 1 0 0 0 5 -1\n2 3 1 0 0 1 1\n5 3 9 0 0 1 2\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SAMPLES + "2 3 1 0 0 1 1\n", r"a\.swc, line 4: the number 2 is that of line 2 too"),
        (SAMPLES + "# far\n7 3 1 0 0 1 4\n", r"a\.swc, line 5: the parent of number 7, 4, is not in the file"),
        ("# nothing\n", r"a\.swc holds no samples"),
        ("", r"a\.swc holds no samples"),
        (SAMPLES[:-5], r"a\.swc, line 3"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "a.swc").write_text(text)
    with pytest.raises(DataError, match=told):
        import_vectors(tmp_path / "a.swc", str(tmp_path / "a.zv"))
    assert not (tmp_path / "a.zv").exists()


@pytest.mark.parametrize(
    ("text", "parents"),
    [
        ("1 1 0 0 0 5 0\n2 3 1 0 0 1 1\n3 3 2 0 0 1 0\n", {1: 0, 2: None, 0: None}),
        ("0 1 0 0 0 5 -1\n1 3 1 0 0 1 0\n2 3 2 0 0 1 1\n", {0: None, 1: 0, 2: 1}),
        ("0 1 0 0 0 5 0\n1 3 1 0 0 1 0\n2 3 2 0 0 1 -2\n", {0: None, 1: 0, 2: None}),
    ],
)
def test_roots_with_the_parent_0(tmp_path: Path, text: str, parents: dict[int, int | None]) -> None:
    (tmp_path / "a.swc").write_text(text)
    import_vectors(tmp_path / "a.swc", str(tmp_path / "a.zv"), chunk_shape=5)
    read = vectors.read_skeleton(str(tmp_path / "a.zv"))
    x = [int(each) for each in read.positions[:, 0]]
    assert {x[row]: x[parent] if parent >= 0 else None for row, parent in enumerate(read.parents)} == parents
    assert len(Skeleton.from_swc(tmp_path / "a.swc").parents) == 3


def test_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a.swc").write_text(SAMPLES, encoding="utf-8-sig")
    import_vectors(tmp_path / "a.swc", str(tmp_path / "a.zv"), chunk_shape=5)
    assert len(vectors.read_skeleton(str(tmp_path / "a.zv")).positions) == 3


def test_more_columns_and_a_scale(tmp_path: Path) -> None:
    (tmp_path / "a.swc").write_text("# SCALE 2 2 2\n" + SAMPLES.replace("\n", " 8 9\n"))
    with pytest.warns(ZarrUserWarning) as recorded:
        import_vectors(tmp_path / "a.swc", str(tmp_path / "a.zv"), chunk_shape=5)
    text = "\n".join(str(each.message) for each in recorded)
    assert "columns after the seventh are left out, in 3 lines" in text
    assert "scale is not applied: 2 2 2" in text


@pytest.mark.parametrize("suffix", ["swc", "ply"])
def test_the_id_of_a_single_object(tmp_path: Path, suffix: str) -> None:
    path, points = str(tmp_path / "a.zv"), np.eye(3)
    if suffix == "swc":
        vectors.write_skeleton(path, points, [-1, 0, 1], chunk_shape=5, object_ids=[77] * 3)
    else:
        vectors.write_mesh(path, points, [[0, 1, 2]], chunk_shape=5, object_ids=[77] * 3)
    with pytest.warns(ZarrUserWarning, match="the id of the object, 77, cannot be kept"):
        export_vectors(path, tmp_path / f"a.{suffix}")


def test_values_that_are_given_are_as_vertices_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.swc").write_text("4 0 4 0 0 1 3\n3 0 3 0 0 1 1\n2 0 2 0 0 1 1\n1 0 1 0 0 1 -1\n")
    for more in (
        {"vertex_attributes": {"n": [4, 3, 2, 1]}},
        {"object_ids": [7] * 4, "object_attributes": {"w": [5]}},
        {},
    ):
        path = str(tmp_path / f"{len(more)}{'n' if 'vertex_attributes' in more else ''}.zv")
        import_vectors(tmp_path / "a.swc", path, chunk_shape=9, **more)  # type: ignore[arg-type]
        found = vectors.read_skeleton(path)
        above = {4: 3, 3: 1, 2: 1}
        x = found.positions[:, 0]
        assert {int(x[row]): int(x[parent]) for row, parent in enumerate(found.parents) if parent >= 0} == above
        if "vertex_attributes" in more:
            assert found.attributes["n"].tolist() == x.tolist()


def test_types_and_radii_that_a_store_does_not_have_are_told(tmp_path: Path) -> None:
    places, path = [[0, 0, 0], [1, 0, 0]], str(tmp_path / "a.zv")
    vectors.write_skeleton(path, places, [-1, 0], vertex_attributes={"type": [1, 3]}, chunk_shape=5)
    with pytest.warns(ZarrUserWarning, match="no attribute 'radius': it is written as 1") as told:
        export_vectors(path, tmp_path / "a.swc")
    assert len(told) == 1
    vectors.write_skeleton(path, places, [-1, 0], vertex_attributes={"type": [1, 2**31]}, chunk_shape=5, overwrite=True)
    with pytest.raises(DataError, match="whole numbers of up to 32 bits"):
        export_vectors(path, tmp_path / "b.swc")
