"""A plugin of pytest that runs xarray's own tests of its Zarr backend with zardine in its place, and notes outcomes.

The engine ``"zarr"`` is zardine's, and ``to_zarr`` of datasets, data arrays and trees is
:func:`zardine.xarray.to_zarr`, which stores chunks one by one (``shards=None``) where a test says nothing of shards,
since the tests look at chunks. Stores of zarr-python, which the tests make, become those of zardine over the same
bytes, and its asynchronous arrays, whose calls some tests count, are zardine's: each count is of what zardine does.

``XARRAY_SUITE_NOTES`` names the file to write: a line of JSON for each test. With ``XARRAY_SUITE_PLAIN=1`` nothing is
replaced: xarray is tested by itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
import zarr
from xarray.backends import refresh_engines
from xarray.backends.common import BACKEND_ENTRYPOINTS

PLAIN = bool(os.environ.get("XARRAY_SUITE_PLAIN"))
NOTES = Path(os.environ["XARRAY_SUITE_NOTES"])

THEIRS_ALONE = ("chunk_store", "synchronizer", "zarr_version")
"""Arguments of xarray's methods that only old programs give."""


def in_our_words(store: Any) -> Any:
    """Return what names the same place for zardine."""
    from zardine.zarr_python.stores import ZarrMemoryStore, store_of

    if isinstance(store, dict):
        return MAPPINGS.setdefault(id(store), ZarrMemoryStore(store))
    if isinstance(store, zarr.storage.ZipStore):
        return store.path
    if isinstance(store, zarr.storage.WrapperStore):
        return in_our_words(store._store)
    return store_of(store) if isinstance(store, zarr.abc.store.Store) else store


MAPPINGS: dict[int, Any] = {}
"""What stands for dictionaries, which zarr-python fills with its buffers, by their ids; it keeps them alive."""


def install() -> None:
    """Put zardine in the place of xarray's own backend."""
    from zardine.nodes import asynchronous
    from zardine.xarray import ZardineBackendEntrypoint, to_zarr

    class Engine(ZardineBackendEntrypoint):
        def guess_can_open(self, filename_or_obj: Any) -> bool:
            return str(filename_or_obj).endswith(".zarr") or super().guess_can_open(filename_or_obj)

        def open_dataset(self, filename_or_obj: Any, **options: Any) -> xr.Dataset:
            return super().open_dataset(in_our_words(filename_or_obj), **options)

        def open_groups_as_dict(self, filename_or_obj: Any, **options: Any) -> dict[str, xr.Dataset]:
            return super().open_groups_as_dict(in_our_words(filename_or_obj), **options)

    def write(data: Any, store: Any = None, **options: Any) -> Any:
        for name in THEIRS_ALONE:
            options.pop(name, None)
        if options.get("zarr_format") is None:
            options["zarr_format"] = zarr.config.get("default_zarr_format")
        if not (isinstance(data, xr.Dataset) and any("shards" in each.encoding for each in data.variables.values())):
            options.setdefault("shards", None)
        return to_zarr(data, in_our_words(store), **options)

    for module, name in (
        ("zarr", "AsyncArray"),
        ("zarr.core.indexing", "AsyncOIndex"),
        ("zarr.core.indexing", "AsyncVIndex"),
    ):
        setattr(import_module(module), name, getattr(asynchronous, name))
    BACKEND_ENTRYPOINTS["zarr"] = ("zarr", Engine)
    refresh_engines()
    for kind in (xr.Dataset, xr.DataArray, xr.DataTree):
        kind.to_zarr = with_places(write)  # type: ignore[assignment,method-assign]


def with_places(write: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method with the arguments that xarray's takes by their places."""

    def method(self: Any, store: Any = None, _: Any = None, mode: Any = None, *more: Any, **options: Any) -> Any:
        names = ("synchronizer", "group", "encoding")[: len(more)]
        given = {**({} if mode is None else {"mode": mode}), **dict(zip(names, more, strict=True))}
        return write(self, store, **given, **options)

    return method


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = (yield).get_result()
    if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        raised = call.excinfo
        why = "" if raised is None else f"{raised.typename}: {raised.value}"
        with NOTES.open("a", encoding="utf-8") as notes:
            notes.write(json.dumps({"test": item.nodeid.partition("::")[2], "outcome": outcome, "why": why}) + "\n")


if not PLAIN:
    install()
