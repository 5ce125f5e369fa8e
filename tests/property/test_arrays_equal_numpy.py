"""Any array, however it is stored, read and written by any selection, equals a NumPy array bit by bit."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    DTYPES,
    NESTED_RECORD,
    RECORD,
    Layout,
    basic,
    blocks,
    coordinates,
    layouts,
    masks,
    orthogonal,
    random_values,
    same_bits,
    values_for,
)

import zardine
from zardine.storage import MemoryStore


def started(layout: Layout, data: st.DataObject) -> tuple[zardine.Array, np.ndarray]:
    """The array and its model, empty or full."""
    array = layout.create()
    model = layout.model(array)
    same_bits(array[...], model)
    if data.draw(st.booleans(), label="filled"):
        array[...] = layout.elements
        model[...] = layout.elements
        same_bits(array[...], model)
    return array, model


def check_everything(array: zardine.Array, model: np.ndarray) -> None:
    same_bits(array[...], model)
    same_bits(zardine.Array.open(array.store_path)[...], model)
    assert 0 <= array.nchunks_initialized <= array.nchunks
    assert array.nshards_initialized <= array.nshards


def output_for(want: Any, order: str) -> np.ndarray:
    """An array to read into: dense, in Fortran order, or with gaps."""
    want = np.asarray(want)
    if order == "gaps" and want.ndim:
        wide = np.empty((*want.shape[:-1], 2 * want.shape[-1]), want.dtype)
        return wide[..., ::2]
    return np.empty(want.shape, want.dtype, order="F" if order == "F" else "C")


def view_of(model: np.ndarray, index: Any) -> np.ndarray:
    """What a basic index selects, as an array also where it is one element."""
    items = index if isinstance(index, tuple) else (index,)
    return model[items if ... in items else (*items, ...)]


OUTS = st.sampled_from([None, "C", "F", "gaps"])


@given(layouts(), st.data())
def test_basic_selections(layout: Layout, data: st.DataObject) -> None:
    array, model = started(layout, data)
    for _ in range(3):
        selection, index = data.draw(basic(model.shape), label="selection")
        want = model[index]
        same_bits(array[selection], want)
        same_bits(array.get_basic_selection(selection), want)
        order = data.draw(OUTS)
        if order is not None:
            out = output_for(want, order)
            assert array.get_basic_selection(selection, out=out) is out
            same_bits(out, want)
        value = data.draw(values_for(np.shape(want), model.dtype), label="value")
        view_of(model, index)[...] = value
        if data.draw(st.booleans()):
            array[selection] = value
        else:
            array.set_basic_selection(selection, value)
        same_bits(array[...], model)
    check_everything(array, model)


@given(layouts(max_ndim=4), st.data())
def test_orthogonal_selections(layout: Layout, data: st.DataObject) -> None:
    array, model = started(layout, data)
    for _ in range(2):
        selection, (lists, drop) = data.draw(orthogonal(model.shape), label="selection")
        index = np.ix_(*lists)
        shape = tuple(len(each) for each, gone in zip(lists, drop, strict=True) if not gone)
        want = model[(*index, ...)].reshape(shape)
        same_bits(array.oindex[selection], want)
        order = data.draw(OUTS)
        if order is not None:
            out = output_for(want, order)
            array.get_orthogonal_selection(selection, out=out)
            same_bits(out, want)
        value = data.draw(values_for(shape, model.dtype), label="value")
        full = np.broadcast_to(value, shape)
        model[(*index, ...)] = full.reshape(tuple(len(each) for each in lists))
        array.oindex[selection] = value
        same_bits(array[...], model)
    check_everything(array, model)


@given(layouts(), st.data())
def test_coordinates(layout: Layout, data: st.DataObject) -> None:
    array, model = started(layout, data)
    for _ in range(2):
        selection, index = data.draw(coordinates(model.shape), label="selection")
        want = model[index] if index else model
        same_bits(array.vindex[selection], want)
        same_bits(array.get_coordinate_selection(selection), want)
        order = data.draw(OUTS)
        if order is not None:
            out = output_for(want, order)
            array.get_coordinate_selection(selection, out=out)
            same_bits(out, want)
        value = data.draw(values_for(np.shape(want), model.dtype), label="value")
        for place, each in zip(  # one by one: of a repeated point, the last value stays
            zip(*(np.broadcast_to(a, np.shape(want)).ravel() for a in index), strict=True) if index else [...],
            np.broadcast_to(value, np.shape(want)).reshape(-1),
            strict=True,
        ):
            model[place] = each
        array.vindex[selection] = value
        same_bits(array[...], model)
    check_everything(array, model)


@given(layouts(), st.data())
def test_masks(layout: Layout, data: st.DataObject) -> None:
    array, model = started(layout, data)
    for _ in range(2):
        mask, _ = data.draw(masks(model.shape), label="mask")
        want = model[mask]
        same_bits(array[mask], want)
        same_bits(array.vindex[mask], want)
        out = output_for(want, data.draw(st.sampled_from(["C", "gaps"])))
        array.get_mask_selection(mask, out=out)
        same_bits(out, want)
        value = data.draw(values_for(want.shape, model.dtype), label="value")
        model[mask] = value
        array[mask] = value
        same_bits(array[...], model)
    check_everything(array, model)


@given(layouts(), st.data())
def test_blocks(layout: Layout, data: st.DataObject) -> None:
    array, model = started(layout, data)
    sizes = array.write_chunk_sizes
    assert tuple(sum(each) for each in sizes) == array.shape
    for _ in range(2):
        selection, index = data.draw(blocks(sizes), label="selection")
        want = model[(*index, ...)]
        same_bits(array.blocks[selection], want)
        value = data.draw(values_for(want.shape, model.dtype), label="value")
        model[(*index, ...)] = value
        array.blocks[selection] = value
        same_bits(array[...], model)
    check_everything(array, model)


@given(layouts((RECORD, NESTED_RECORD), max_ndim=3), st.data())
def test_fields(layout: Layout, data: st.DataObject) -> None:
    array, model = started(layout, data)
    names = list(model.dtype.names or ())
    for _ in range(2):
        selection, index = data.draw(basic(model.shape), label="selection")
        name = data.draw(st.sampled_from(names))
        items = selection if isinstance(selection, tuple) else (selection,)
        want = model[name][index]
        same_bits(array[name], model[name])
        same_bits(array[(name, *items)], want)
        same_bits(array.get_basic_selection(selection, fields=name), want)
        several = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        same_bits(array[several], model[several])
        value = data.draw(values_for(np.shape(want), model.dtype[name]), label="value")
        model[name][index] = value
        array[(name, *items)] = value
        same_bits(array[...], model)
    check_everything(array, model)


@given(layouts(max_ndim=4), st.data())
def test_square_brackets_take_lists_as_numpy_does(layout: Layout, data: st.DataObject) -> None:
    array, model = started(layout, data)
    shape = model.shape
    if not shape or 0 in shape:
        return
    axis = data.draw(st.integers(0, len(shape) - 1))
    n = shape[axis]
    chosen: Any = data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=4))
    if data.draw(st.booleans()):
        chosen = np.isin(np.arange(n), chosen)
    index = (*(slice(None),) * axis, chosen)
    same_bits(array[index], model[index])
    value = data.draw(values_for(model[index].shape, model.dtype))
    model[index] = value
    array[index] = value
    same_bits(array[...], model)
    points, _ = data.draw(coordinates(shape))
    same_bits(array[points], model[points])


@given(layouts(max_ndim=3), st.data())
def test_out_of_range_is_an_index_error_like_numpys(layout: Layout, data: st.DataObject) -> None:
    array = layout.create()
    model = layout.model(array)
    shape = model.shape
    if not shape:
        return
    axis = data.draw(st.integers(0, len(shape) - 1))
    n = shape[axis]
    wrong = data.draw(st.one_of(st.integers(n, n + 5), st.integers(-n - 5, -n - 1), st.sampled_from([2**62, -(2**62)])))
    index = (*(slice(None),) * axis, wrong)
    points = tuple(np.array([wrong if i == axis else 0]) for i in range(len(shape)))
    with pytest.raises(IndexError) as numpys:
        model[index]
    for attempt in (
        lambda: array[index],
        lambda: array.__setitem__(index, np.zeros((), model.dtype)),
        lambda: array.oindex[(*(slice(None),) * axis, [wrong])],
        lambda: array.get_basic_selection(index),
    ):
        with pytest.raises(IndexError) as ours:
            attempt()
        assert str(ours.value) == str(numpys.value)
    with pytest.raises(IndexError):
        model[points]
    with pytest.raises(IndexError):
        array.vindex[points]
    with pytest.raises(IndexError):
        array[(0,) * (len(shape) + 1)]
    with pytest.raises(IndexError):
        array.oindex[(*(slice(None),) * axis, np.ones(n + 1, bool))]
    same_bits(array[...], model)


@given(layouts(max_ndim=3), st.data())
def test_values_of_other_dtypes_are_converted_as_numpy_does(layout: Layout, data: st.DataObject) -> None:
    array, model = started(layout, data)
    if model.dtype.kind not in "biufc":
        return
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    value: Any = data.draw(st.sampled_from([True, 3, np.uint8(7), np.float32(2.5), np.array(5)]))
    if data.draw(st.booleans()):
        value = rng.integers(0, 100, model.shape).astype(data.draw(st.sampled_from(["i1", "u2", ">i4", "f4", ">f8"])))
    model[...] = value
    array[...] = value
    same_bits(array[...], model)


@pytest.mark.parametrize("named", DTYPES, ids=str)
def test_every_data_type_by_itself(named: Any) -> None:
    """So that none is missed where the random choice is thin."""
    rng = np.random.default_rng(1)
    store = MemoryStore()
    array = zardine.create_array(store, name="a", shape=(9, 7), dtype=named, chunks=(2, 3), shards=(4, 6))
    values = random_values(array.dtype, (9, 7), rng)
    array[...] = values
    array[3:8, ::-2] = values[3:8, ::-2]
    same_bits(zardine.open_array(store, path="a")[...], values)
    assert array.nchunks == prod(array.cdata_shape) == 15
