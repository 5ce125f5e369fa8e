"""What data types with several fields share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy.typing as npt

from zardine.data_types.base import DataType


def repair_fields(array: npt.NDArray[Any], fields: Iterable[tuple[str, DataType]]) -> npt.NDArray[Any]:
    """``array`` with every named field repaired; ``array`` itself where no field changes."""
    result = array
    for name, data_type in fields:
        field = array[name]
        repaired = data_type.repair_bits(field)
        if repaired is not field:
            if result is array:
                result = array.copy()
            result[name] = repaired
    return result


def join_words(types: Iterable[DataType]) -> tuple[tuple[int, int], ...]:
    """The words of elements that follow each other, with neighbouring runs of one size put together."""
    runs: list[tuple[int, int]] = []
    for data_type in types:
        for size, count in data_type.words:
            if runs and runs[-1][0] == size:
                runs[-1] = (size, runs[-1][1] + count)
            else:
                runs.append((size, count))
    return tuple(runs)
