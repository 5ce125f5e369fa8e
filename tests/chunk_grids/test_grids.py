"""The regular and the rectilinear grid, from and to JSON, and how they grow."""

from typing import Any

import numpy as np
import pytest

import zardine
from zardine.chunk_grids import RectilinearGrid, RegularGrid, parse_chunk_grid, register_chunk_grid
from zardine.chunk_grids.registry import CHUNK_GRIDS
from zardine.json_document import Extension, Problems


def parse(name: str, configuration: Any, shape: tuple[int, ...]) -> tuple[Any, list[str]]:
    problems = Problems()
    grid = parse_chunk_grid(Extension(name, configuration), shape, problems)
    return grid, [str(problem) for problem in problems.found]


def rectilinear(shapes: Any, shape: tuple[int, ...]) -> tuple[Any, list[str]]:
    return parse("rectilinear", {"kind": "inline", "chunk_shapes": shapes}, shape)


def test_regular() -> None:
    grid, problems = parse("regular", {"chunk_shape": [3, 10]}, (7, 10))
    assert problems == []
    assert grid == RegularGrid((3, 10))
    assert [axis.lengths() for axis in grid.axes((7, 10))] == [(3, 3, 1), (10,)]
    assert grid.to_extension().to_json() == {"name": "regular", "configuration": {"chunk_shape": [3, 10]}}
    assert parse("regular", {"chunk_shape": []}, ())[0].axes(()) == ()


def test_regular_chunks_of_length_zero_belong_to_empty_axes() -> None:
    grid, problems = parse("regular", {"chunk_shape": [0, 2]}, (0, 4))
    assert problems == []
    assert [axis.count for axis in grid.axes((0, 4))] == [0, 2]
    assert grid.resized((3, 4)).axes((3, 4))[0].count == 3
    assert parse("regular", {"chunk_shape": [0]}, (1,))[1] == [
        "chunk_grid.configuration.chunk_shape[0]: chunks of length 0 cannot hold an axis of length 1"
    ]


@pytest.mark.parametrize(
    ("configuration", "place"),
    [
        (None, "chunk_grid.configuration.chunk_shape"),
        ({}, "chunk_grid.configuration.chunk_shape"),
        ({"chunk_shape": 3}, "chunk_grid.configuration.chunk_shape"),
        ({"chunk_shape": [3]}, "chunk_grid.configuration.chunk_shape"),
        ({"chunk_shape": [3, 2.0]}, "chunk_grid.configuration.chunk_shape[1]"),
        ({"chunk_shape": [True, 2]}, "chunk_grid.configuration.chunk_shape[0]"),
        ({"chunk_shape": [-1, 2]}, "chunk_grid.configuration.chunk_shape[0]"),
        ({"chunk_shape": [1, 2**63]}, "chunk_grid.configuration.chunk_shape[1]"),
        ({"chunk_shape": [1, 2], "more": 1}, "chunk_grid.configuration.more"),
    ],
)
def test_wrong_regular_grids(configuration: Any, place: str) -> None:
    _, problems = parse("regular", configuration, (4, 4))
    assert len(problems) == 1
    assert problems[0].startswith(place + ": ")


def test_rectilinear() -> None:
    grid, problems = rectilinear([4, [1, [2, 3], 1], [[5, 2]]], (9, 8, 10))
    assert problems == []
    assert [axis.lengths() for axis in grid.axes((9, 8, 10))] == [(4, 4, 1), (1, 2, 2, 2, 1), (5, 5)]
    assert grid.configuration() == {"kind": "inline", "chunk_shapes": [4, [1, [2, 3], 1], [[5, 2]]]}
    assert RectilinearGrid.from_lengths([[1, 2, 2, 3]]) == RectilinearGrid((((1, 1), (2, 2), (3, 1)),))


def test_rectilinear_lengths_may_reach_beyond_the_array_but_not_fall_short() -> None:
    grid, problems = rectilinear([[3, 3, 3]], (4,))
    assert problems == []
    assert grid.axes((4,))[0].lengths() == (3, 1)
    _, problems = rectilinear([[3, 3]], (7,))
    assert problems == [
        "chunk_grid.configuration.chunk_shapes[0]: the chunk lengths add up to 6, the array is 7 long on this axis"
    ]


@pytest.mark.parametrize(
    ("shapes", "places"),
    [
        ("x", ["chunk_shapes"]),
        ([[3, 3]], ["chunk_shapes"]),
        ([0, 4], ["chunk_shapes[0]"]),
        ([[4, 0], "x"], ["chunk_shapes[0][1]", "chunk_shapes[1]"]),
        ([[[2, 2, 2]], [[4, 0]]], ["chunk_shapes[0][0]", "chunk_shapes[1][0]"]),
        ([[2**62, 2**62], [4]], ["chunk_shapes[0]"]),
        ([[[2**62, 2**62]], [4]], ["chunk_shapes[0]"]),
        ([4.0, True], ["chunk_shapes[0]", "chunk_shapes[1]"]),
    ],
)
def test_wrong_rectilinear_grids(shapes: Any, places: list[str]) -> None:
    _, problems = rectilinear(shapes, (4, 4))
    assert [problem.split(": ")[0] for problem in problems] == [f"chunk_grid.configuration.{each}" for each in places]


def test_rectilinear_needs_its_kind() -> None:
    _, problems = parse("rectilinear", {"chunk_shapes": [[4]]}, (4,))
    assert problems == ['chunk_grid.configuration.kind: the member is missing; expected "inline"']


def test_growing_adds_chunks_of_the_last_length() -> None:
    grid = RectilinearGrid.from_lengths([[3, 2], 4, [5]])
    grown = grid.resized((10, 9, 5))
    assert [axis.lengths() for axis in grown.axes((10, 9, 5))] == [(3, 2, 2, 2, 1), (4, 4, 1), (5,)]
    assert grid.resized((1, 1, 1)) == grid


def test_an_empty_rectilinear_axis_can_grow() -> None:
    store: dict[str, bytes] = {}
    array = zardine.create(
        (0, 3),
        store=store,
        dtype="i2",
        chunks=[[], [2, 1]],
        codecs=[{"name": "bytes", "configuration": {"endian": "big"}}],
    )
    assert array.shape == (0, 3)
    assert array.nchunks == 0
    array.append(np.arange(6).reshape(2, 3))
    assert zardine.open_array(store)[...].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_an_unknown_grid_names_its_neighbours() -> None:
    grid, problems = parse("regulr", {}, ())
    assert grid is None
    assert problems == ['chunk_grid.name: unknown chunk grid "regulr"; did you mean "regular"?']


def test_a_registered_grid_is_used() -> None:
    class Halves(RegularGrid):
        name = "halves"

        @classmethod
        def from_json(cls, configuration: Any, shape: Any, place: str, problems: Problems) -> "Halves":
            return cls(tuple(max(1, -(-n // 2)) for n in shape))

        def configuration(self) -> dict[str, Any]:
            return {}

    before = set(CHUNK_GRIDS)
    register_chunk_grid("halves", Halves)
    assert set(CHUNK_GRIDS) - before == {"halves"}
    grid, problems = parse("halves", {}, (5,))
    assert problems == []
    assert grid.axes((5,))[0].lengths() == (3, 2)
