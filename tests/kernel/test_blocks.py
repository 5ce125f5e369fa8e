"""What the kernel says of a selection, and of where its block is, against the same in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zardine.indexing.parse
from zardine.engine.layout import Blocks
from zardine.indexing.block import Block
from zardine.indexing.parse import parse_block_of_elements

from .cases import NUMBERS

_kernel = pytest.importorskip("zardine._kernel")


class Number:
    """What slices take as an integer."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class Unruly:
    """Something that is no integer, and says so in its own words."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error

    def __index__(self) -> int:
        raise self.error("no")


def answer(call: Any) -> Any:
    """What a call gives, or the class of what it raises."""
    try:
        return call()
    except Exception as error:
        return type(error)


def any_item(rng: np.random.Generator, length: int) -> Any:
    """Something between brackets, most often a slice or an integer that makes sense."""
    ends = [int(each) for each in rng.integers(-length - 2, length + 3, 2)]
    others: list[Any] = [
        None,
        0,
        -1,
        length,
        -length,
        2**70,
        -(2**70),
        Number(1),
        np.int64(2),
        True,
        1.5,
        Unruly(KeyError),
    ]
    kind = rng.integers(10)
    if kind < 3:
        return slice(*sorted(ends))
    if kind < 5:
        return ends[0]
    if kind < 9:
        start, stop, step = (others[i] for i in rng.integers(len(others), size=3))
        return slice(start, stop, [None, 1, Number(1), 2, 0, -1, step][int(rng.integers(7))])
    return [..., None, np.array(1), [1], np.int64(1), True, Number(1), 2**70, "a", Unruly(ValueError)][
        int(rng.integers(10))
    ]


def selections(seed: int, count: int) -> list[tuple[Any, tuple[int, ...]]]:
    """Selections, and shapes of arrays."""
    rng = np.random.default_rng(seed)
    found: list[tuple[Any, tuple[int, ...]]] = [((), ()), (..., ()), (0, ()), ((0,), (2**70,))]
    for _ in range(count):
        shape = tuple(int(each) for each in rng.choice([0, 1, 2, 7, 100, 2**62, 2**63 - 1], rng.integers(5)))
        items = [any_item(rng, min(length, 100)) for length in shape]
        if rng.random() < 0.1:
            items = [*items, 0]
        if rng.random() < 0.3 and items:
            low, high = sorted(int(each) for each in rng.integers(len(items) + 1, size=2))
            items = [*items[:low], *([...] if rng.random() < 0.7 else []), *items[high:]]
        found.append((items[0] if len(items) == 1 and rng.random() < 0.5 else tuple(items), shape))
    return found


def test_the_same_blocks_are_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    meant = 0
    for selection, shape in selections(1, 2000):
        theirs = answer(lambda: parse_block_of_elements(selection, shape))  # noqa: B023
        with monkeypatch.context() as patch:
            patch.setattr(zardine.indexing.parse, "KERNEL", None)
            ours = answer(lambda: parse_block_of_elements(selection, shape))  # noqa: B023
        if theirs is None and any(length > 2**63 - 1 for length in shape):
            continue  # left to the slow way
        assert theirs == ours, (selection, shape)
        assert type(theirs) is type(ours)
        meant += isinstance(ours, Block)
    assert meant > 300


def test_blocks_lie_at_the_same_places() -> None:
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(1000):
        ndim = int(rng.integers(5))
        shape, per_object, starts, counts = (
            tuple(int(each) for each in rng.integers(1, high, ndim)) for high in (9, 4, 100, 4)
        )
        if rng.random() < 0.1 and ndim:
            starts = (*starts[1:], 2**62 + int(rng.integers(100)))
        strides = tuple(int(np.prod(per_object[axis + 1 :])) for axis in range(ndim))
        others: Any = None, np.dtype("u1"), np.dtype("V1")
        block = Block(starts, counts, None)
        theirs = Blocks(shape, per_object, strides, *others, _kernel.UniformGrid(shape, per_object, strides)).locate(
            block
        )
        assert theirs == Blocks(shape, per_object, strides, *others, None).locate(block)
        found += theirs is not None
    assert 200 < found < 900


def test_numbers_of_any_size_are_refused_or_placed() -> None:
    rng = np.random.default_rng(3)
    refused = 0
    for _ in range(3000):
        ndim = int(rng.integers(1, 4))
        arguments = [tuple(int(each) for each in rng.choice([1, 2, 5, *NUMBERS], ndim)) for _ in range(5)]
        if rng.random() < 0.1:
            arguments[int(rng.integers(5))] += (1,)
        try:
            place = _kernel.UniformGrid(*arguments[2:]).locate(*arguments[:2])
        except (ValueError, OverflowError):
            refused += 1
            continue
        if place is None:
            continue
        starts, counts, shape, per_object, strides = arguments
        objects, row, first = place
        for axis in range(ndim):
            chunk, begin = divmod(starts[axis], shape[axis])
            assert (objects[axis], first[axis]) == (chunk // per_object[axis], begin)
            assert begin + counts[axis] <= shape[axis]
        assert row == sum(
            start // size % ratio * stride
            for start, size, ratio, stride in zip(starts, shape, per_object, strides, strict=True)
        )
    assert refused > 100


@pytest.mark.parametrize("arguments", [(), ((0,),), (0, (1,)), ((0,), [1]), ((0,), ("a",))])
def test_arguments_of_other_kinds_are_refused(arguments: Any) -> None:
    if len(arguments) == 2 and arguments[1] == ("a",):
        assert _kernel.block_of_elements(*arguments) is None
    elif len(arguments) == 2 and isinstance(arguments[1], tuple):
        assert _kernel.block_of_elements(*arguments) == ((0,), (1,), (0,))
    else:
        with pytest.raises(TypeError):
            _kernel.block_of_elements(*arguments)
