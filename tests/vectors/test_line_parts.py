"""What is stored of lines beside their vertices is the same, whether the kernel works it out at once or not."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from zardine.vectors.content import line_parts
from zardine.vectors.content.columns import columns_of
from zardine.vectors.content.content import Content, Groups, Objects
from zardine.vectors.content.plan import Node, grid_of, plan_level
from zardine.vectors.content.run_content import polyline_content
from zardine.vectors.format.layouts import Layout

kernel = pytest.importorskip("zardine._kernel")

RANDOM = np.random.default_rng(11)


def told(node: Node) -> dict[str, Any]:
    parts = {each.name: getattr(node, each.name) for each in fields(node)}
    for name in ("cells", "rows"):
        parts[name] = None if parts[name] is None else list(parts[name])
    for name in ("chunks", "values"):
        parts[name] = None if parts[name] is None else parts[name].tolist()
    return parts


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("step", [0.0, 2.0])
@pytest.mark.parametrize("always", [True, False])
def test_lines_are_planned_as_without_the_kernel(
    rank: int, step: float, always: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = RANDOM.integers(0, 12, 400)
    lengths[[0, 7, 8, -1]] = 0
    count = int(lengths.sum())
    positions = np.cumsum(RANDOM.normal(0, step, (count, rank)), axis=0)
    columns = columns_of({"n": np.arange(count)}, count, "vertices")
    none, ids = np.zeros(0, np.int64), RANDOM.permutation(1000)[:400]
    of_lines = columns_of({"a": np.arange(400.0)}, 400, "lines")
    groups = Groups((ids[:3], ids[5:9]))

    def content() -> Content:
        objects = Objects(ids, none, none, of_lines)
        return polyline_content(positions, columns, lengths, (5.0,) * rank, objects, None, groups)

    corners = (positions.min(axis=0).tolist(), positions.max(axis=0).tolist())
    grid = grid_of(content().keys, corners, (5.0,) * rank, Layout())
    lines = content().lines
    assert lines is not None
    parts = lines.parts()
    assert parts is not None
    assert (sum(len(each.given) for each in parts.placed) > 0) == (step > 0)
    found = [told(node) for node in plan_level(content(), grid, always_links=always)]
    with monkeypatch.context() as patch:
        patch.setattr(line_parts, "KERNEL", None)
        wanted = [told(node) for node in plan_level(content(), grid, always_links=always)]
    assert found == wanted
    assert any(node["path"].startswith("links/0/") for node in found) == (always or step > 0)


def test_lines_that_do_not_fit_together_are_left() -> None:
    good = [np.array(each) for each in ([0, 2], [0, 1], [0, 5], [[4, 5], [4, 6]])]
    starts, manifests, placed = kernel.line_parts(*good)
    assert np.frombuffer(starts, np.int64).tolist() == [0, 2]
    assert (len(manifests), len(placed)) == (8 + 2 * 25, 7)
    for number, wrong in [(0, [0, 0]), (0, [1, 2]), (0, [0]), (1, [0, 2]), (1, [-1, 0]), (2, [0, 1, 5]), (2, [1, 5])]:
        given = list(good)
        given[number] = np.array(wrong)
        assert kernel.line_parts(*given) is None
    many_axes = [np.zeros((0, count), np.int64) for count in (0, 17, 2**40)]  # of so many no memory is asked for
    for number, wrong in [
        (2, np.zeros(0, np.int64)),
        (3, np.zeros(4, np.int64)),
        (0, np.zeros(2)),
        *((3, keys) for keys in many_axes),
    ]:
        given = list(good)
        given[number] = wrong
        with pytest.raises(ValueError, match=r"too many bytes|rows of integers|int64|axes"):
            kernel.line_parts(*given)
