"""What selections mean, and the words of the errors where they mean nothing."""

from typing import Any

import numpy as np
import pytest

import zardine
from zardine.chunk_grids.axis import Axis
from zardine.errors import BoundsCheckError, SelectionError, VindexInvalidSelectionError, ZeroStepError
from zardine.indexing.parse import (
    parse_any,
    parse_basic,
    parse_block,
    parse_coordinates,
    parse_mask,
    parse_orthogonal,
    parse_vindex,
)
from zardine.indexing.selection import AxisList, AxisSlice, GridSelection, PointSelection

SHAPE = (5, 6)


@pytest.mark.parametrize("selection", [5, -6, (0, 6), (0, -7), (slice(None), 6), (..., 6), np.int64(5), np.array(-6)])
def test_out_of_range_integers_raise_numpys_words(selection: Any) -> None:
    with pytest.raises(IndexError) as numpys:
        np.empty(SHAPE)[selection]
    with pytest.raises(BoundsCheckError) as ours:
        parse_any(selection, SHAPE)
    assert str(ours.value) == str(numpys.value)


@pytest.mark.parametrize("selection", [[0, 5], [-6], ([0], [6]), ([0, 1], [0, -7]), (np.array([9], np.uint8), [0])])
def test_out_of_range_lists_raise_numpys_words(selection: Any) -> None:
    with pytest.raises(IndexError) as numpys:
        np.empty(SHAPE)[selection]
    with pytest.raises(BoundsCheckError) as ours:
        parse_any(selection, SHAPE)
    assert str(ours.value) == str(numpys.value)


@pytest.mark.parametrize("selection", [(0, 0, 0), (..., 0, 0, 0), (slice(None),) * 3])
def test_too_many_indices_raise_numpys_words(selection: Any) -> None:
    with pytest.raises(IndexError) as numpys:
        np.empty(SHAPE)[selection]
    with pytest.raises(SelectionError) as ours:
        parse_any(selection, SHAPE)
    assert str(ours.value) == str(numpys.value)


def test_two_ellipses_raise_numpys_words() -> None:
    with pytest.raises(IndexError) as numpys:
        np.empty(SHAPE)[..., ...]
    with pytest.raises(SelectionError) as ours:
        parse_any((..., ...), SHAPE)
    assert str(ours.value) == str(numpys.value)


def test_a_mask_of_another_length_raises_numpys_words() -> None:
    wrong = np.ones(4, bool)
    with pytest.raises(IndexError) as numpys:
        np.empty(SHAPE)[:, wrong]
    for parse in (parse_any, parse_orthogonal):
        with pytest.raises(SelectionError) as ours:
            parse((slice(None), wrong), SHAPE)
        assert str(ours.value) == str(numpys.value)


def test_coordinates_that_do_not_broadcast_raise_an_index_error_like_numpys() -> None:
    with pytest.raises(IndexError, match="shape mismatch"):
        np.empty(SHAPE)[[0, 1], [0, 1, 2]]
    with pytest.raises(SelectionError, match=r"shape mismatch.*\(2,\) \(3,\)"):
        parse_any(([0, 1], [0, 1, 2]), SHAPE)


@pytest.mark.parametrize("item", [None, np.newaxis, (0, None), (None, 0, 0)])
def test_newaxis_says_what_to_do_instead(item: Any) -> None:
    for parse in (parse_any, parse_basic, parse_orthogonal):
        with pytest.raises(SelectionError, match=r"np\.newaxis.*index the result"):
            parse(item, SHAPE)


@pytest.mark.parametrize("item", [1.5, 1j, True, np.True_, object(), {1}, slice(0, 2, 0), slice(0.5, 2), slice("a")])
def test_nonsense_is_an_index_error(item: Any) -> None:
    for parse in (parse_any, parse_basic):
        with pytest.raises(SelectionError):
            parse(item, SHAPE)


def test_a_step_of_zero_is_what_other_programs_call_it() -> None:
    """A ``ValueError`` as in NumPy and zarr-python, for blocks an ``IndexError``: this is both."""
    axis = Axis.regular(5, 2)
    for parse in (parse_any, parse_basic, parse_orthogonal):
        for selection in (slice(None, None, 0), (slice(None), slice(1, 2, 0))):
            with pytest.raises(ZeroStepError, match="slice step cannot be zero") as caught:
                parse(selection, SHAPE)
            assert isinstance(caught.value, ValueError)
            assert isinstance(caught.value, SelectionError)
    with pytest.raises(ZeroStepError):
        parse_block(slice(None, None, 0), (axis,))
    with pytest.raises(SelectionError, match="must be integers"):
        parse_block(slice(None, None, 1.5), (axis,))


def test_what_belongs_to_other_kinds_of_selection_is_named() -> None:
    with pytest.raises(SelectionError, match=r"oindex.*vindex"):
        parse_basic(([0, 1], 0), SHAPE)
    with pytest.raises(SelectionError, match="ambiguous"):
        parse_any(([0, 1], [0, 1], slice(None)), (5, 5, 5))
    with pytest.raises(SelectionError, match=r"use \.vindex"):
        parse_orthogonal(np.ones(SHAPE, bool), SHAPE)
    with pytest.raises(SelectionError, match="step 1"):
        parse_block(slice(0, 2, 2), (Axis.regular(5, 2),))
    with pytest.raises(SelectionError, match="takes integers and slices"):
        parse_block([0, 1], (Axis.regular(5, 2),))
    with pytest.raises(BoundsCheckError, match="index 3 is out of bounds for axis 0 with size 3"):
        parse_block(3, (Axis.regular(5, 2),))
    for wrong in (slice(None), (slice(None), 0), 0, (0, 0, 0), ..., (0.5, 0), ("a", "b")):
        with pytest.raises(VindexInvalidSelectionError):
            parse_coordinates(wrong, SHAPE)
    with pytest.raises(VindexInvalidSelectionError, match="must be integers, and those of axis 1 are float64"):
        parse_coordinates((0, [0.5]), SHAPE)
    with pytest.raises(SelectionError, match=r"boolean array of shape \(5, 6\)"):
        parse_mask(np.ones((6, 5), bool), SHAPE)
    with pytest.raises(SelectionError, match=r"boolean array of shape \(5, 6\)"):
        parse_mask(np.ones(SHAPE, int), SHAPE)


def axes_of(selection: GridSelection) -> list[Any]:
    return [
        (axis.start, axis.step, axis.count) if isinstance(axis, AxisSlice) else axis.indices.tolist()
        for axis in selection.axes
    ]


@pytest.mark.parametrize(
    ("item", "axis", "flipped"),
    [
        (slice(None), (0, 1, 10), False),
        (slice(2, 9, 3), (2, 3, 3), False),
        (slice(9, 2, -3), (3, 3, 3), True),
        (slice(None, None, -1), (0, 1, 10), True),
        (slice(-100, 100), (0, 1, 10), False),
        (slice(8, 8, -1), (0, 1, 0), True),
        (slice(None, None, 10**30), (0, 1, 1), False),
        (slice(None, None, -(10**30)), (9, 1, 1), True),
    ],
)
def test_slices_become_ascending(item: slice, axis: tuple[int, int, int], flipped: bool) -> None:
    selection = parse_basic(item, (10,))
    assert axes_of(selection) == [axis]
    assert selection.flip == (flipped,)


def test_normalized_selections() -> None:
    selection = parse_any((..., -1), (3, 4, 5))
    assert axes_of(selection) == [(0, 1, 3), (0, 1, 4), (4, 1, 1)]
    assert selection.drop == (False, False, True)
    assert (selection.shape, selection.full_shape, selection.size) == ((3, 4), (3, 4, 1), 12)
    selection = parse_orthogonal(([-1, 0], [True, False, True, False]), (3, 4))
    assert axes_of(selection) == [[2, 0], [0, 2]]
    points = parse_any(([0, -1], 2), (3, 4))
    assert isinstance(points, PointSelection)
    assert [each.tolist() for each in points.coordinates] == [[0, 2], [2, 2]]
    mask = parse_vindex(np.eye(3, dtype=bool), (3, 3))
    assert [each.tolist() for each in mask.coordinates] == [[0, 1, 2], [0, 1, 2]]
    assert isinstance(parse_any([0, 1], (3, 4)).axes[0], AxisList)
    assert parse_block((slice(1, 3), -1), (Axis.regular(5, 2), Axis.regular(7, 3))).axes == (
        AxisSlice(2, 1, 3),
        AxisSlice(6, 1, 1),
    )


def test_a_tuple_in_the_brackets_is_a_list_as_in_numpy() -> None:
    array = zardine.create_array(None, data=np.arange(10))
    assert array[(3, 1, 1),].tolist() == np.arange(10)[(3, 1, 1),].tolist()


def test_masks_of_arrays_without_dimensions() -> None:
    array = zardine.create_array(None, shape=(), dtype="i4", fill_value=7)
    for mask in (np.array(True), np.array(False)):
        assert array.vindex[mask].tolist() == array[mask].tolist() == np.array(7)[mask].tolist()


def test_errors_of_selections_are_index_errors_and_nothing_is_written() -> None:
    array = zardine.create_array(None, shape=SHAPE, dtype="i4", chunks=(2, 2))
    for selection in (7, (0, 9), [9], np.ones(3, bool), (..., ...), "field", ["field"]):
        with pytest.raises(IndexError):
            array[selection]
        with pytest.raises(IndexError):
            array[selection] = 1
    assert array.nchunks_initialized == 0


@pytest.mark.parametrize(
    ("selection", "value"), [(slice(0, 3), [1, 2]), ((0, slice(None)), [[1] * 6] * 2), ([0, 1], [1, 2, 3])]
)
def test_values_that_do_not_broadcast(selection: Any, value: Any) -> None:
    array = zardine.create_array(None, shape=SHAPE, dtype="i4", chunks=(2, 2))
    with pytest.raises(ValueError, match=r"broadcast|sequence"):
        np.empty(SHAPE, "i4")[selection] = value
    with pytest.raises(ValueError, match="could not broadcast"):
        array[selection] = value
    assert array.nchunks_initialized == 0


def test_an_output_of_another_shape_is_refused() -> None:
    array = zardine.create_array(None, shape=SHAPE, dtype="i4")
    with pytest.raises(ValueError, match=r"out has shape \(6,\), the selection has shape \(5, 6\)"):
        array.get_basic_selection(..., out=np.empty(6, "i4"))
