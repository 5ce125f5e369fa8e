"""The table of formats in the documentation: each geometry that it names goes out and comes in again, others do not."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vectors.geometry_samples import rows
from zardine import vectors
from zardine.errors import DataError
from zardine.storage import MemoryStore
from zardine.vectors.exchange.formats import FORMATS, export_vectors, import_vectors

PAGE = Path(__file__).parents[2] / "docs/vectors.md"
PLACES = np.array([[0, 0, 0], [4, 0, 1], [4, 4, 2], [0, 4, 3]], "f4")
WRITERS: dict[str, Any] = {
    "points": lambda store: vectors.write_points(store, PLACES),
    "lines": lambda store: vectors.write_polylines(store, [PLACES], geometry_type="polyline"),
    "graphs": lambda store: vectors.write_graph(store, PLACES, [[0, 1], [1, 2], [2, 0], [2, 3]]),
    "skeletons": lambda store: vectors.write_skeleton(store, PLACES, [-1, 0, 1, 2]),
    "meshes": lambda store: vectors.write_mesh(store, PLACES, [[0, 1, 2], [0, 2, 3]]),
}
CALLED = {"geopackage": "gpkg", "shapefile": "shp"}
PLURALS = {"point_cloud": "points", "mesh": "meshes"}


def table() -> dict[str, tuple[set[str], str]]:
    """For each format which geometries the table says that it takes, and what it gives."""
    rows_of_it = PAGE.read_text(encoding="utf-8").partition(
        "| format | takes | gives | through |\n|---|---|---|---|\n"
    )[2]
    found = {}
    for line in rows_of_it.partition("\n\n")[0].splitlines():
        names, takes, gives, _ = (each.strip() for each in line.strip("|").split("|"))
        told = {each for each in WRITERS if re.search(rf"\b{each}\b", takes)}
        for name in re.sub(r"\(.*\)", "", names).lower().split(","):
            found[CALLED.get(name.strip(), name.strip())] = told, gives
    return found


def test_all_formats_are_in_the_table() -> None:
    assert set(table()) == set(FORMATS)
    assert all(takes and gives for takes, gives in table().values())


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_what_the_table_says_is_so(name: str, tmp_path: Path) -> None:
    takes, gives = table()[name]
    taken, told = set(), list[str]()
    for kind, write in WRITERS.items():
        store, back, target = MemoryStore(), MemoryStore(), tmp_path / f"{kind}{FORMATS[name].endings[0]}"
        write(store)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                export_vectors(store, target, format=name)
            except DataError as error:
                told.append(str(error))
                continue
            import_vectors(target, back, chunk_shape=9, format=name)
        taken.add(kind)
        found = vectors.open(back)
        assert re.search(rf"\b{PLURALS.get(found.kind, f'{found.kind}s')}\b", gives)
        assert np.allclose(sorted(set(rows(found.read().positions))), sorted(rows(PLACES)), atol=1e-6)
    assert taken == takes, told
    assert all("this format is for" in each for each in told)
