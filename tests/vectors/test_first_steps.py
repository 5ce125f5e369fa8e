"""What users get wrong at first, and what comes naturally: it works, or an error says what to do."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from vectors.stores_of_all_kinds import WRITERS, store_of
from zardine import vectors
from zardine.errors import DataError, NodeExistsError, SelectionError
from zardine.storage import MemoryStore, StorePath
from zardine.vectors import Graph, Layout, Points, Polylines, Space

LINES = [np.arange(12.0).reshape(4, 3), np.ones((2, 3))]


def test_lines_whose_ids_nobody_chose_get_new_ones() -> None:
    store = MemoryStore()
    v = vectors.create(store, "streamlines", bounds=(0, 0, 0, 50, 50, 50), layout=Layout(chunk_shape=10))
    for _ in range(3):
        v.append(Polylines.from_lines(LINES, object_attributes={"n": [1, 2]}))
    assert v.objects.ids.tolist() == [0, 1, 2, 3, 4, 5]
    v.append(Polylines.from_lines(LINES[:1], object_ids=[40]))
    v.append(Polylines.from_lines(LINES).checked())
    assert v.objects.ids.tolist() == [0, 1, 2, 3, 4, 5, 40, 41, 42]
    for given in (Polylines.from_lines(LINES, object_ids=[0, 1]), v.read(object_ids=[0])):
        with pytest.raises(DataError, match="object_ids: 0 is there already"):
            v.append(given)
    v.append(replace(Polylines.from_lines(LINES), object_ids=np.array([70, 71])))
    assert v.objects.ids[-2:].tolist() == [70, 71]
    assert v.validate().ok
    assert "ids_are_given" not in repr(Polylines.from_lines(LINES))


@pytest.mark.parametrize("kind", sorted(set(WRITERS) - {"points_of_objects"}))
def test_names_that_are_those_of_others_misspelled(kind: str) -> None:
    v = vectors.open(store_of(kind), mode="r+")
    v.set_attribute("radius", np.arange(40.0))
    for wrong in ("raduis", "Radius", "radus", "ra_dius"):
        with pytest.raises(DataError, match=f"no vertex attribute '{wrong}'; did you mean 'radius'.*new=True"):
            v.set_attribute(wrong, np.zeros(40))
    v.set_attribute("raduis", np.zeros(40), new=True)
    assert {"raduis", "radius"} <= set(v.attributes["vertex"])
    v.set_attribute("raduis", np.ones(40))
    v.set_attribute("band_1", np.zeros(40))
    v.set_attribute("band_2", np.zeros(40))
    if kind == "polylines":
        with pytest.raises(DataError, match="no object attribute 'naem'; did you mean 'name'"):
            v.append(Polylines.from_lines(LINES, object_attributes={"naem": ["e", "f"]}))
        v.append(Polylines.from_lines(LINES, object_attributes={"names": ["e", "f"], "name": ["g", "h"]}))
    if kind == "graph":
        v.set_attribute("weight", np.arange(len(v.read().edges)), kind="link")
        wrong = Graph(np.ones((2, 3)), np.array([[0, 1]]), {}, {"wieght": np.array([1])})
        with pytest.raises(DataError, match="no link attribute 'wieght'; did you mean 'weight'"):
            v.append(wrong)
    if kind == "points":
        with pytest.raises(DataError, match="did you mean 'radius'"):
            v.append(Points(np.ones((1, 3)), {"Radius": np.ones(1), "raduis": np.ones(1)}))


def test_questions_that_there_are_not() -> None:
    v = vectors.open(store_of("polylines"))
    for ask in (v.read, v.select):
        with pytest.raises(TypeError, match=r"'foo'; there are level, bbox, object_ids, .*attributes$"):
            ask(foo=1)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="did you mean 'object_ids'"):
            ask(object_id=[1])  # type: ignore[call-arg]
    with pytest.raises(SelectionError, match="does not fit in 64 bits with a sign"):
        v.read(object_ids=[2**63])
    with pytest.raises(SelectionError):
        v.objects[2**64]
    with pytest.raises(DataError, match="object_ids"):
        vectors.write_points(MemoryStore(), [[0, 0]], object_ids=[2**63])


def test_a_store_is_opened_by_whatever_leads_to_it(tmp_path: Path) -> None:
    vectors.write_points(str(tmp_path / "deep" / "a.zv"), np.eye(3))
    root = zardine.open_group(tmp_path / "deep", mode="r+")
    for place in (root["a.zv"], tmp_path / "deep" / "a.zv", str(tmp_path / "deep" / "a.zv"), root["a.zv"].store_path):
        with vectors.open(place, mode="r+") as v:  # type: ignore[arg-type]
            assert len(v) == 3
            assert len(v.read().positions) == 3
    assert isinstance(v.path, StorePath | str | Path)
    v.append([[0, 0, 0]])
    assert len(v.read().positions) == 4


def test_what_is_taken_says_what_can_be_done() -> None:
    store = store_of("points")
    writers: list[Any] = [
        lambda: vectors.write_points(store, np.eye(3)),
        lambda: vectors.write(store, Points(np.eye(3))),
        lambda: vectors.create(store, "points", bounds=(0, 0, 1, 1), layout=Layout(chunk_shape=1)),
    ]
    for write in writers:
        with pytest.raises(NodeExistsError, match=r"overwrite=True replaces it$") as error:
            write()
        assert "mode=" not in str(error.value)


def test_layouts_and_spaces_are_checked_when_they_are_made() -> None:
    for wrong in (
        {"chunk_shape": -1},
        {"chunk_shape": float("nan")},
        {"chunk_shape": (1, 2, 3, 4, 5)},
        {"chunk_shape": "10"},
        {"chunk_shape": 10, "bin_shape": 3},
        {"bin_shape": 3},
        {"shard_shape": 0},
        {"shard_shape": (2, 2), "chunk_shape": (1, 1, 1)},
        {"compressor": "no such codec"},
        {"compressor": "zstd", "codec_config": [{"name": "zstd"}]},
        {"checksum": "yes"},
    ):
        with pytest.raises(DataError):
            Layout(**wrong)
    for wrong in (
        {"bounds": ((0, 0), (1, -1))},
        {"bounds": (0, 0, float("inf"), 1)},
        {"bounds": 3},
        {"bounds": (0, 0, 1, 1), "axes": ["x", "y", "z"]},
        {"axes": ["x", "x"]},
        {"axes": [1, 2]},
        {"out_of_bounds": "drop"},
        {"crs": "EPSG:4326"},
    ):
        with pytest.raises(DataError):
            Space(**wrong)
    vectors.write(MemoryStore(), Points(np.eye(2)), layout=Layout(chunk_shape=5, shard_shape=2), space=Space(axes="yx"))
    config = {"codecs": [{"name": "zstd"}], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}}}
    vectors.write(MemoryStore(), Points(np.eye(2)), layout=Layout(chunk_shape=(5, 5), codec_config=config))
    vectors.write(MemoryStore(), Points(np.eye(2)), layout=Layout(codec_config=config))


def test_the_reference_system_goes_along() -> None:
    pytest.importorskip("geopandas")
    store, copy = MemoryStore(), MemoryStore()
    for value in (Points(np.eye(3)), Polylines.from_lines(LINES)):
        vectors.write(store, value, space=Space(crs={"epsg": 3857}), overwrite=True)
        found: Any = vectors.open(store).read()
        assert found.to_geopandas().crs.to_epsg() == 3857
        assert found.to_geopandas(4326).crs.to_epsg() == 4326
        assert found.to_geopandas({"epsg": 25833}).crs.to_epsg() == 25833
        vectors.write(copy, found, overwrite=True)
        assert vectors.open(copy).crs == {"epsg": 3857}
        part: Any = next(vectors.open(store).select().batches(10))
        assert part.crs == {"epsg": 3857}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Points(np.eye(3)).to_geopandas().crs is None


def test_one_axis_cannot_be_drawn() -> None:
    with pytest.raises(DataError, match="plots have 2 or 3"):
        Points(np.arange(4.0).reshape(4, 1)).plot()


def test_what_a_wrong_argument_is_answered() -> None:
    store, places = MemoryStore(), np.arange(12.0).reshape(4, 3)
    vectors.write_points(store, places, chunk_shape=20)
    with pytest.raises(SelectionError, match=r"holds a point_cloud: see read_points$"):
        vectors.read_polylines(store)
    with pytest.raises(SelectionError, match=r"groups\[name\]"):
        vectors.read_points(store, group_ids=["left"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"it is part of layout=Layout\(chunk_shape=...\)"):
        vectors.create(MemoryStore(), "points", bounds=(0, 0, 0, 9, 9, 9), chunk_shape=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"it is part of space=Space\(bounds=...\)"):
        vectors.write(MemoryStore(), Points(places), bounds=(0, 0, 0, 9, 9, 9))  # type: ignore[call-arg]
    with pytest.raises(DataError, match=r"layout is a Layout, Layout\(...\), not dict"):
        vectors.write(MemoryStore(), Points(places), layout={"chunk_shape": 5})  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"space is a Space, Space\(...\), not tuple"):
        vectors.create(MemoryStore(), "points", layout=Layout(chunk_shape=5), space=(0, 1))  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"faces: no array of values: rows of different lengths$"):
        vectors.write_mesh(MemoryStore(), places, [[0, 1, 2], [0, 1, 2, 3]])  # type: ignore[list-item]
    with pytest.raises(DataError, match="give text without '/'"):
        vectors.write_points(MemoryStore(), places, vertex_attributes={"a/b": [1, 2, 3, 4]})
    with pytest.raises(DataError, match="not str: import_vectors"):
        Polylines.from_tractogram("tracts.trk")
