"""``zardine.xarray.open``: a data set by one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import xarray as xr

from zardine.nodes.group import Group
from zardine.stores.resolve import StoreLike
from zardine.xarray.engine import Options


def open(
    store: StoreLike | Group,
    *,
    chunks: Any = None,
    drop_variables: str | Iterable[str] | None = None,
    **options: Unpack[Options],
) -> xr.Dataset:
    """Open the group at ``store`` as a data set: ``xarray.open_dataset(store, engine="zardine", ...)``.

    ``chunks={}`` gives Dask arrays whose chunks are shards; without ``chunks`` what is selected is read when it is
    asked for. ``options`` are all others of :func:`xarray.open_dataset` and of the engine
    (:class:`zardine.xarray.engine.Opening`).
    """
    place: Any = store
    return xr.open_dataset(place, engine="zardine", chunks=chunks, drop_variables=drop_variables, **options)
