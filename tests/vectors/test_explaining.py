"""What reading takes is told before it is read: the same as the store counts when it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from effort import SOAK
from vectors.stores_of_all_kinds import WRITERS, store_of
from zardine import vectors
from zardine.errors import SelectionError
from zardine.storage import CountingStore, MemoryStore
from zardine.vectors import Polylines

QUERIES: dict[str, dict[str, Any]] = {
    "all": {},
    "box": {"bbox": [-10] * 3 + [25] * 3},
    "values": {"where": {"n": slice(5, 30)}, "attributes": ["kind"]},
    "objects by values": {"where": {"size": slice(2, 3)}},
    "chunks": {"chunks": [[0, 0, 0], [0, -1, 0], [9, 9, 9]], "attributes": None},
    "objects": {"object_ids": [12, 10]},
}


def agrees(store: Any, query: dict[str, Any]) -> vectors.Explanation:
    counting = CountingStore(store)
    kind = vectors.open(store).kind
    told = vectors.Selection(store, kind, **query).explain()
    vectors.Selection(counting, kind, **query).read()
    counts = counting.counts
    assert (told.requests, told.nbytes) == (counts.ranges + counts.lists, counts.bytes_read)
    return told


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_what_is_told_is_what_is_asked_of_the_store(kind: str, query: str) -> None:
    if kind == "points" and query.startswith("objects"):
        return
    layouts: list[dict[str, Any]] = [{"chunk_shape": 35}, {"shard_shape": 2, "compressor": "zstd", "chunk_shape": 30}]
    turn = (sorted(WRITERS).index(kind) + list(QUERIES).index(query)) % 2
    for layout in layouts if SOAK else [layouts[turn]]:
        told = agrees(store_of(kind, **layout), QUERIES[query])
        assert told.exact
        assert told.cells >= told.objects > 0
        assert told.arrays[0].name == "vertices"


def test_it_is_a_table() -> None:
    store = store_of("graph", shard_shape=4)
    lines = str(vectors.open(store).select().explain()).splitlines()
    assert lines[0].split() == ["cells", "objects", "requests", "bytes"]
    assert [line.split("  ")[0] for line in lines[1:]] == [
        "documents and tables",
        "vertices",
        "vertex_fragments",
        *(f"vertex_attributes/{name}" for name in ("kind", "n", "rgb")),
        *("links", "link_attributes/t", "link_attributes/w"),
        "in all",
    ]


def test_lines_that_run_far_may_take_less_than_is_told() -> None:
    line = np.zeros((400, 3))
    line[:, 0] = np.arange(400)
    store = MemoryStore()
    vectors.write(store, Polylines.from_lines([line, line + 5]), layout=vectors.Layout(chunk_shape=1))
    told = vectors.open(store).select(bbox=[0, 0, 0, 1, 1, 1]).explain()
    assert not told.exact
    assert "in all, at most" in str(told)
    assert told.arrays[0].cells == 400


def test_what_the_store_does_not_have() -> None:
    for query in ({"attributes": ["x"]}, {"object_ids": [99]}, {"level": 4}):
        with pytest.raises(SelectionError):
            vectors.open(store_of("graph")).select(**query).explain()  # type: ignore[arg-type]
