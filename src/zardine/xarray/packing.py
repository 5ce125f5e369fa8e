"""Numbers that are stored as integers, as they are or packed by scale and offset: whether those can be them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from xarray import Variable


def check_range(variable: Variable, name: Hashable) -> Variable:
    """Return the variable, if the integers that its encoding asks for reach as far as its values.

    xarray wraps those that lie outside round to others. Of Dask arrays they are found when they are computed. Raises
    ``ValueError``.
    """
    stored = variable.encoding.get("dtype")
    stored = None if stored is None else _integers(stored, variable.encoding.get("_Unsigned"))
    if stored is None or variable.dtype.kind not in "iuf":
        return variable
    scale, offset = variable.encoding.get("scale_factor"), variable.encoding.get("add_offset")
    if scale is None and offset is None and np.can_cast(variable.dtype, stored, "safe"):
        return variable
    options = {"scale": 1 if scale is None else scale, "offset": 0 if offset is None else offset}
    found = variable.copy(deep=False)
    if variable.chunks is None:
        _checked(variable.values, stored, name, **options)
        return variable
    found.data = found.data.map_blocks(
        _checked, stored, name, **options, dtype=variable.dtype, meta=np.empty((0,) * variable.ndim, variable.dtype)
    )
    return found


def _integers(dtype: Any, unsigned: Any) -> np.dtype[Any] | None:
    """Return the integers that are meant; ``None`` where none are."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        return None
    if found.kind not in "iu":
        return None
    kind = {"true": "u", "false": "i"}.get(str(unsigned), found.kind)
    return np.dtype(f"{kind}{found.itemsize}")


def _checked(values: Any, dtype: np.dtype[Any], name: Hashable, *, scale: Any, offset: Any) -> Any:
    least, most = (int(each) for each in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    given = np.asarray(values)
    if given.size == 0:
        return values
    if given.dtype.kind in "iu" and scale == 1 and offset == 0:
        wrong = given[(given < least) | (given > most)]
    else:
        with np.errstate(all="ignore"):
            packed = np.rint((given - offset) / scale)
        wrong = given[(packed < float(least)) | (packed >= float(most) + 1)]
    if wrong.size:
        how = "" if scale == 1 and offset == 0 else f", scale_factor={scale} and add_offset={offset}"
        ends = sorted((least * scale + offset, most * scale + offset))
        raise ValueError(
            f"variable {name!r} is to be stored as {dtype}{how}, which reaches from {ends[0]} to {ends[1]}, and has "
            f"{wrong.ravel()[0]}: choose another encoding (ds.drop_encoding() forgets that of the file it was read "
            "from), or clip the values"
        )
    return values
