"""How Zarr v2 and v1 name NumPy's types: the member ``dtype`` of their documents ("Data type encoding")."""

from __future__ import annotations

from typing import Any

import numpy as np

from zardine.json_document import JSON

OBJECT = "|O"


def dtype_to_json(dtype: np.dtype[Any]) -> JSON:
    """Return the member ``dtype`` of stored elements of that type."""
    if dtype.kind == "O":
        return OBJECT
    if dtype.fields is None or dtype.names is None:
        return dtype.str if has_name(dtype) else dtype.name  # as tensorstore calls those of ml_dtypes
    fields: list[JSON] = []
    for name in dtype.names:
        each = dtype.fields[name][0]
        if each.subdtype is None:
            fields.append([name, dtype_to_json(each)])
        else:
            base, shape = each.subdtype
            fields.append([name, dtype_to_json(base), list(shape)])
    return fields


def has_name(dtype: np.dtype[Any]) -> bool:
    """Whether Zarr v2 can name it: a type of NumPy's own, or of fields that are."""
    if dtype.fields is not None:
        return all(has_name(field[0]) for field in dtype.fields.values())
    return dtype.base.type.__module__.partition(".")[0] in ("numpy", "builtins")


__all__ = ["OBJECT", "dtype_to_json", "has_name"]
