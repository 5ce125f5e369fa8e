"""The order of small numbers, which the kernel finds by counting."""

from __future__ import annotations

import numpy as np
import pytest

from zardine.kernel import KERNEL

pytest.importorskip("zardine._kernel")


def test_the_order_is_that_of_a_stable_sort() -> None:
    assert KERNEL is not None
    for count in (1, 5, 70_000):
        numbers = np.random.default_rng(count).integers(0, count, 20_000)
        order = np.frombuffer(KERNEL.stable_order(numbers, count), np.int64)
        assert np.array_equal(order, np.argsort(numbers, kind="stable"))
    assert KERNEL.stable_order(np.zeros(0, np.int64), 0) == b""


@pytest.mark.parametrize(
    ("numbers", "count"), [([0, 3], 3), ([0, -1], 3), ([0], 0), ([0], 2**40), ([0], 2**62), ([0.0], 1), ([[0]], 0)]
)
def test_others_are_refused(numbers: object, count: int) -> None:
    assert KERNEL is not None
    with pytest.raises(ValueError, match=r".+"):
        KERNEL.stable_order(np.array(numbers), count)
