"""``where`` knows attributes of objects: readers, batches, counts and ``delete`` mean the same objects."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import SOAK, examples, some
from vectors.geometry_samples import rows
from vectors.stores_of_all_kinds import COUNT, WRITERS, store_of
from zardine import vectors
from zardine.errors import SelectionError

KINDS = sorted(set(WRITERS) - {"points"})
CONDITIONS: list[tuple[dict[str, Any], set[int]]] = [
    ({"size": 2.0}, {11}),
    ({"size": [1.5, 4]}, {10, 13}),
    ({"size": slice(2, 3)}, {11, 12}),
    ({"size": lambda values: values > 2.5}, {12, 13}),
    ({"name": "c"}, {12}),
    ({"name": ["a", "d"], "size": slice(None, 2)}, {10}),
    ({"name": "nobody"}, set()),
]


def owners(found: Any) -> np.ndarray[Any, Any]:
    lines = hasattr(found, "starts")
    return np.repeat(found.object_ids, np.diff(found.starts)) if lines else found.object_ids


@pytest.mark.parametrize("kind", KINDS)
def test_objects_are_chosen_by_their_attributes(kind: str) -> None:
    v = vectors.open(store_of(kind, chunk_shape=40, shard_shape=2), mode="r+")
    v.build_pyramid()
    whole = v.read()
    for number, (where, ids) in enumerate(CONDITIONS):
        if not SOAK and (number + KINDS.index(kind)) % 3:
            continue
        for level in (0, 1):
            found = v.read(where=where, level=level)
            assert set(owners(found).tolist()) == ids
            assert v.select(where=where, level=level).count() == len(found.positions)
        found = v.read(where=where)
        assert sorted(found.attributes["n"]) == sorted(whole.attributes["n"][np.isin(owners(whole), list(ids))])
        parts = list(v.select(where=where).batches(7))
        own = [n for each in parts for n in each.attributes["n"][: getattr(each, "own", None)].tolist()]
        assert own == found.attributes["n"].tolist()
        assert set(owners(v.read(where=where, object_ids=[11, 12])).tolist()) == ids & {11, 12}
        assert set(owners(v.read(where=where, group_ids=[0])).tolist()) == ids & {10, 12}
        box = v.read(where=where, bbox=(-30, -30, -30, 0, 30, 30))
        assert set(owners(box).tolist()) <= ids
        assert set(v.read(where=where, attributes=["rgb"]).attributes) == {"rgb"}
        v.select(where=where).explain()
    both = v.read(where={"name": "b", "n": slice(0, 5)})
    assert set(owners(both).tolist()) <= {11}
    if kind != "polylines":  # of which lines come whole
        assert (both.attributes["n"] <= 5).all()
    with pytest.raises(
        SelectionError, match=r"no vertex attribute 'nmae', and no object attribute.*kind, n, rgb.*name"
    ):
        v.read(where={"nmae": "a"})
    with pytest.raises(SelectionError, match="no object with the id 99"):
        v.read(where={"name": "a"}, object_ids=[99])


@pytest.mark.parametrize(("case", "kind"), list(some(product(range(len(CONDITIONS)), KINDS), 3)))
def test_objects_are_deleted_by_their_attributes(case: int, kind: str) -> None:
    v = vectors.open(store_of(kind), mode="r+")
    before = v.read()
    where, ids = CONDITIONS[case]
    gone = np.isin(owners(before), list(ids))
    assert v.delete(where=where) == gone.sum() == len(ids) * COUNT // 4
    after = v.read()
    assert rows(after.attributes["n"]) == rows(before.attributes["n"][~gone])
    assert set(v.objects.ids.tolist()) == {10, 11, 12, 13} - ids
    assert [each for each in v.validate().findings if each.kind != "values-absent"] == []
    with pytest.raises(SelectionError, match="and no object attribute"):
        v.delete(where={"nobody": 1})


def test_an_attribute_of_vertices_counts_before_one_of_objects_that_is_called_so() -> None:
    v = vectors.open(store_of("graph"), mode="r+")
    v.set_attribute("n", [100, 101, 102, 103], kind="object")
    assert v.read(where={"n": 3}).attributes["n"].tolist() == [3]
    assert len(v.read(where={"n": 101})) == 0


@settings(max_examples=examples(8), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS), st.booleans())
def test_any_conditions_together(seed: int, kind: str, removed: bool) -> None:
    rng = np.random.default_rng(seed)
    v = vectors.open(store_of(kind, chunk_shape=float(rng.uniform(9, 70))), mode="r+")
    if removed:
        v.delete(object_ids=[11])
    sizes = dict(zip(v.objects.ids.tolist(), v.objects.attributes["size"].tolist(), strict=True))
    low, high = np.sort(rng.uniform(1, 4.5, 2)).tolist()
    most = int(rng.integers(0, COUNT))
    whole = v.read()
    hit = np.array([low <= sizes[each] <= high for each in owners(whole).tolist()], np.bool_)
    hit &= whole.attributes["n"] <= most
    if kind == "polylines":
        kept = np.isin(owners(whole), owners(whole)[hit])
    else:
        kept = hit
    where = {"n": slice(None, most), "size": slice(low, high)}
    assert rows(v.read(where=where).attributes["n"]) == rows(whole.attributes["n"][kept])
    assert v.delete(where=where) == hit.sum()
    assert rows(v.read().attributes["n"]) == rows(whole.attributes["n"][~hit])
    assert [each for each in v.validate().findings if each.kind != "values-absent"] == []
