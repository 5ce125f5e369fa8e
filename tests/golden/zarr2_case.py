"""How the cases of zarr-python 2.18 are written, checked and noted; see ``make_zarr_v2_by_zarr2.py``."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numcodecs.blosc
import numpy as np
import zarr
from golden_files_old import OldManifest, native, same_elements, samples

warnings.simplefilter("ignore")
gzip.time = SimpleNamespace(**vars(time) | {"time": lambda: 1_700_000_000})  # gzip members hold the time of writing
numcodecs.blosc.use_threads = False  # so that blocks are always written in the same order

MANIFEST = OldManifest(f"zarr-python-{zarr.__version__}", "zarr-python", zarr.__version__)
SHAPE, CHUNKS = (7, 5), (4, 3)
TOP_AND_BOTTOM = (np.s_[0:2], np.s_[4:7])
"""With chunks of two rows this leaves the second row of chunks unwritten."""
TEXTS = ["", "a", "Zürich", "日本語", "tin 🐟", "x" * 40]
POINT = [("x", "<i4"), ("y", ">f8")]


def exact_fill(fill: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The fill value as a 0-dimensional array in native byte order."""
    if dtype.kind == "V" and isinstance(fill, bytes):
        return np.frombuffer(fill, dtype).reshape(()).astype(native(dtype))
    if isinstance(fill, int) and fill == 0:  # any type accepts 0 for its zero
        return np.zeros((), native(dtype))
    return np.array(fill, dtype=dtype).astype(native(dtype))


def missing_chunks(path: Path, shape: tuple[int, ...], chunks: tuple[int, ...]) -> list[list[int]]:
    """Grid positions of chunks that are not stored."""
    separator = json.loads((path / ".zarray").read_text(encoding="utf-8")).get("dimension_separator", ".")
    counts = [math.ceil(length / size) if length else 0 for length, size in zip(shape, chunks)]  # noqa: B905
    places = itertools.product(*(range(count) for count in counts))
    return [list(place) for place in places if not (path / (separator.join(map(str, place)) or "0")).exists()]


def chunk_box(place: list[int], chunks: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(i * size, (i + 1) * size) for i, size in zip(place, chunks))  # noqa: B905


class Case:
    """One array being written: the array of zarr-python, and the elements it should hold."""

    def __init__(self, name: str, values: np.ndarray[Any, Any], stored: Any, *, fill: Any, kind: str, **how: Any):
        self.name, self.values, self.fill, self.kind = name, values, fill, kind
        how = {"compressor": None, "chunks": CHUNKS, "dtype": stored} | how
        store = how.pop("store", zarr.DirectoryStore(MANIFEST.path(name)))
        self.array = zarr.create(shape=values.shape, fill_value=fill, store=store, **how)
        self.expected = values.copy()
        empty = {"string": "", "bytes": b""}.get(kind)
        if kind in ("string", "bytes"):  # 0 and None as fill values stand for the empty text
            self.expected[...] = self.fill if isinstance(fill, (str, bytes)) else empty
            self.noted_fill: Any = None if fill is None else empty if fill == 0 else fill
        elif kind == "object":
            for place in np.ndindex(values.shape):
                self.expected[place] = fill
            self.noted_fill = fill
        else:
            self.noted_fill = None if fill is None else exact_fill(fill, np.dtype(stored).base)
            self.expected[...] = np.zeros((), values.dtype) if fill is None else self.noted_fill

    def write(self, region: Any) -> None:
        if self.values.size:
            self.array[region] = self.values[region]
            self.expected[region] = self.values[region]

    def read(self) -> np.ndarray[Any, Any]:
        """All elements as zarr-python reads them, in native byte order."""
        array = zarr.open_array(zarr.DirectoryStore(MANIFEST.path(self.name)), mode="r")
        found = np.asarray(array[...])
        return found if found.dtype == object else found.astype(native(found.dtype))

    def note(self, *, lossy: bool, disputed: str, unreadable: bool, **more: Any) -> None:
        """Check what zarr-python reads, and add the case to the manifest."""
        path, shape, chunks = MANIFEST.path(self.name), self.values.shape, self.array.chunks
        undefined = missing_chunks(path, shape, chunks) if self.fill is None else []
        if not unreadable:
            found = self.read()
            for place in undefined:
                found[chunk_box(place, chunks)] = self.expected[chunk_box(place, chunks)]
            if lossy:
                assert not same_elements(found, self.expected, self.kind), f"{self.name} is not lossy"
                self.expected = found
            right = same_elements(found, self.expected, self.kind)
            assert right == (not disputed), f"{self.name}: {found.tolist()} instead of {self.expected.tolist()}"
            if disputed:
                more |= {"disputed": disputed, "others_read": found}
        MANIFEST.array(self.name, "2", self.expected, self.kind, self.noted_fill, undefined_chunks=undefined, **more)


def write(
    name: str,
    dtype: Any,
    shape: tuple[int, ...] = SHAPE,
    *,
    values: np.ndarray[Any, Any] | None = None,
    regions: tuple[Any, ...] = (...,),
    fill: Any = 0,
    kind: str = "",
    about: str = "",
    needs: tuple[str, ...] = (),
    lossy: bool = False,
    disputed: str = "",
    unreadable: bool = False,
    **how: Any,
) -> None:
    """Create one array, write the sample values to ``regions`` and note the case; elsewhere the fill value stands.

    ``lossy``: expected is what zarr-python reads back, since a filter loses digits. ``disputed``: zarr-python reads
    something else than it was given. ``unreadable``: it reads nothing at all.
    """
    values = samples(dtype, shape) if values is None else values
    case = Case(name, values, dtype, fill=fill, kind=kind or str(values.dtype), **how)
    for region in regions:
        case.write(region)
    case.note(lossy=lossy, disputed=disputed, unreadable=unreadable, about=about, needs=list(needs))


def note_group(name: str, **more: Any) -> None:
    """Note a group that has been written, with all arrays in it."""
    store = zarr.DirectoryStore(MANIFEST.path(name))
    root = zarr.open_group(store, mode="r")
    members: dict[str, str] = {}
    found: dict[str, Any] = {}

    def visit(path: str, node: Any) -> None:
        members[path] = "array" if isinstance(node, zarr.Array) else "group"
        if node.attrs.asdict():
            found[path] = node.attrs.asdict()
        if isinstance(node, zarr.Array):
            values = node[...]
            values = values if values.dtype == object else values.astype(native(values.dtype))
            kind = "string" if values.dtype == object else str(values.dtype)
            fill = (
                node.fill_value
                if kind == "string" or node.fill_value is None
                else exact_fill(node.fill_value, node.dtype)
            )
            MANIFEST.array(f"{name}/{path}", "2", values, kind, fill, attributes=node.attrs.asdict())

    root.visititems(visit)
    consolidated = MANIFEST.path(f"{name}/.zmetadata").exists()
    MANIFEST.group(
        name,
        "2",
        members,
        attributes=root.attrs.asdict(),
        member_attributes=found,
        consolidated=consolidated,
        **more,
    )
