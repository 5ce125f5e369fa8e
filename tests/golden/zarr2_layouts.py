"""Layouts, attributes and hierarchies that zarr-python 2.18 writes; run by ``make_zarr_v2_by_zarr2.py``."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import zarr
from golden_files_old import objects, same_elements, samples
from numcodecs import Blosc, Zlib
from zarr2_case import CHUNKS, MANIFEST, POINT, SHAPE, TEXTS, note_group, write


def layouts() -> None:
    """Dimensions, order, separators, missing chunks, resizing."""
    shapes = {0: (), 1: (7,), 2: SHAPE, 3: (5, 4, 3), 4: (3, 4, 2, 5)}
    grids = {0: (), 1: (3,), 2: CHUNKS, 3: (2, 3, 3), 4: (2, 3, 1, 5)}
    for number, (ndim, order, separator) in enumerate(itertools.product(shapes, "CF", (None, ".", "/"))):
        words = {None: "absent", ".": "dot", "/": "slash"}
        compressor = [None, Zlib(level=1)][number % 2]
        write(
            f"layout/{ndim}d-{order}-{words[separator]}",
            "<>"[number % 2] + "i2",
            shapes[ndim],
            chunks=grids[ndim],
            order=order,
            dimension_separator=separator,
            compressor=compressor,
        )
    about = "a 0-dimensional array never has a compressor"
    write("layout/scalar-compressor", "<f8", (), chunks=(), fill=2.5, compressor=Zlib(level=1), about=about)
    write("layout/scalar-unwritten", "<f8", (), chunks=(), fill=2.5, regions=())
    write("layout/scalar-unwritten-null", "<f8", (), chunks=(), fill=None, regions=())
    write("layout/zero-length", "<i2", (0,), chunks=(3,))
    write("layout/zero-length-middle", "<i2", (3, 0, 2), chunks=(2, 1, 2))
    about = "chunks=-1 on an axis of length zero: zarr-python 2.18 creates the array and then cannot read it"
    write("layout/zero-length-chunk", "<i2", (0,), chunks=-1, unreadable=True, about=about)
    write("layout/zero-length-chunk-2d", "<i2", (3, 0), chunks=False, unreadable=True, about=about)
    write("layout/chunk-larger-than-array", "<i2", (3, 2), chunks=(10, 20))
    write("layout/one-chunk", "<i2", chunks=False)
    write("layout/chunks-chosen", "<i2", chunks=True)
    write("layout/many-chunks", "|u1", (13,), chunks=(1,), about="keys with two digits")
    write("layout/many-chunks-slash", "|u1", (2, 12), chunks=(1, 1), dimension_separator="/")
    write("layout/nothing-written", "<i2", fill=42, regions=())
    write("layout/nothing-written-null", "<i2", fill=None, regions=())
    some = (np.s_[2:3, 1:4],)
    for order in "CF":
        write(f"layout/some-chunks-{order}", "<i2", chunks=(2, 2), fill=-1, regions=some, order=order)
        write(f"layout/some-chunks-null-{order}", "<i2", chunks=(2, 2), fill=None, regions=some, order=order)
    for kept in (True, False):
        values = np.where(np.arange(35).reshape(SHAPE) < 20, -1, 5).astype("i2")
        name = f"layout/chunks-of-fill-value-{'written' if kept else 'left-out'}"
        write(name, "<i2", values=values, chunks=(2, 5), fill=-1, write_empty_chunks=kept)
    nans = np.full(SHAPE, np.nan)
    write("layout/chunks-of-nan-left-out", "<f8", values=nans, fill=math.nan, write_empty_chunks=False)
    write("layout/row-by-row", "<i4", regions=tuple(np.s_[row] for row in range(7)), compressor=Blosc())
    write(
        "layout/nested-directory-store",
        "<i4",
        store=zarr.NestedDirectoryStore(MANIFEST.path("layout/nested-directory-store")),
    )


def resized() -> None:
    """Arrays that were longer or shorter once."""
    values = samples("<i2", SHAPE)
    for name, steps, about in (
        ("grown", [(3, 5), (7, 5)], ""),
        ("shrunk", [(12, 9), (7, 5)], "chunks at the edge still hold the elements that lay beyond it"),
        ("shrunk-and-grown", [(7, 5), (5, 5), (7, 5)], "elements beyond the former edge are as they were"),
    ):
        path = MANIFEST.path(f"layout/{name}")
        array = zarr.create(
            shape=steps[0], chunks=CHUNKS, dtype="<i2", fill_value=-1, store=zarr.DirectoryStore(path), compressor=None
        )
        array[...] = 77
        for step in steps[1:]:
            array.resize(step)
        array[:3] = values[:3]
        expected = zarr.open_array(zarr.DirectoryStore(path), mode="r")[...]
        MANIFEST.array(f"layout/{name}", "2", expected, "int16", np.array(-1, "i2"), about=about)
    path = MANIFEST.path("layout/appended")
    array = zarr.create(
        shape=(3, 5), chunks=CHUNKS, dtype="<i2", store=zarr.DirectoryStore(path), compressor=Zlib(level=1)
    )
    array[...] = values[:3]
    array.append(values[3:])
    assert same_elements(array[...], values, "int16")
    MANIFEST.array("layout/appended", "2", values, "int16", np.array(0, "i2"))


def attributes() -> None:
    """Attributes of arrays."""
    given: dict[str, dict[str, Any]] = {
        "plain": {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]},
        "unicode": {"Größe": "2 µm 🐟", "日本": {"nested": {"list": [1, 2.5, None, True, []]}}, "": "empty name"},
        "numbers": {"large": 2**70, "tiny": 1e-300, "negative zero": -0.0, "whole": 3.0},
        "not-finite": {"missing": math.nan, "limits": [-math.inf, math.inf]},
        "none": {},
    }
    for name, content in given.items():
        path = MANIFEST.path(f"attributes/{name}")
        array = zarr.create(shape=(2, 3), chunks=(2, 3), dtype="|u1", store=zarr.DirectoryStore(path), compressor=None)
        array[...] = values = samples("u1", (2, 3))
        array.attrs.put(content)
        about = "NaN and Infinity stand bare in .zattrs, which is no JSON" if name == "not-finite" else ""
        MANIFEST.array(f"attributes/{name}", "2", values, "uint8", np.array(0, "u1"), attributes=content, about=about)


def hierarchies() -> None:
    """Groups in groups, consolidated and not; the conventions of xarray and of OME-NGFF."""
    for consolidated in (False, True):
        name = f"hierarchy/{'consolidated' if consolidated else 'nested'}"
        store = zarr.DirectoryStore(MANIFEST.path(name))
        root = zarr.group(store)
        root.attrs.put({"title": "Wurzel 🌳", "level": 0})
        inner = root.create_group("a/b")
        inner.attrs["level"] = 2
        root.create_group("empty")
        tree = {"x": "<i4", "a/y": ">f8", "a/b/z": "|u1", "a/b/U": "<U6", "a/b/point": np.dtype(POINT)}
        for path, dtype in tree.items():
            array = root.create_dataset(path, shape=(3, 4), chunks=(2, 2), dtype=dtype, fill_value=None)
            array[...] = samples(dtype, (3, 4))
            if path != "x":
                array.attrs["member"] = path
        array = root.create_dataset("a/texts", shape=(3,), chunks=(2,), dtype=str, fill_value="")
        array[...] = objects(TEXTS[1:], (3,))
        if consolidated:
            zarr.consolidate_metadata(store)
        note_group(name)
    empty = zarr.group(zarr.DirectoryStore(MANIFEST.path("hierarchy/empty")))
    assert not list(empty)
    note_group("hierarchy/empty")
    zarr.create(
        shape=(2,),
        dtype="<i2",
        chunks=(2,),
        compressor=None,
        path="a/b/c",
        store=zarr.DirectoryStore(MANIFEST.path("hierarchy/ancestors")),
    )[...] = 5
    note_group("hierarchy/ancestors", about="only the array was created; the groups above it came with it")
    not_finite = zarr.group(zarr.DirectoryStore(MANIFEST.path("hierarchy/not-finite")))
    not_finite.attrs["x"] = math.nan
    not_finite.create_dataset("y", data=np.array([1.5, np.nan]), chunks=2, fill_value=math.nan, compressor=None)
    zarr.consolidate_metadata(not_finite.store)
    note_group("hierarchy/not-finite", about="NaN stands bare in .zattrs and .zmetadata, and as text in a fill value")
    xarray_like()
    image()


def xarray_like() -> None:
    """A data set as xarray stores it: the names of dimensions are an attribute."""
    store = zarr.DirectoryStore(MANIFEST.path("hierarchy/xarray"))
    root = zarr.group(store)
    root.attrs.put({"title": "two days", "Conventions": "CF-1.8", "coordinates": "spatial_ref"})
    compressor = Blosc(cname="lz4", clevel=5, shuffle=1, blocksize=0)

    def variable(name: str, values: Any, dims: list[str], fill: Any = None, **attrs: Any) -> None:
        array = np.asarray(values)
        chunks = array.shape if array.ndim < 3 else (1, *array.shape[1:])
        stored = root.create_dataset(
            name, shape=array.shape, chunks=chunks, dtype=array.dtype, fill_value=fill, compressor=compressor
        )
        stored[...] = array
        stored.attrs.put(attrs | {"_ARRAY_DIMENSIONS": dims})

    variable("time", np.array([0, 24], "<i8"), ["time"], units="hours since 2000-01-01", calendar="standard")
    variable("lat", np.linspace(50, 52, 3), ["lat"], math.nan, units="degrees_north")
    variable("lon", np.linspace(8, 11, 4).astype("f4"), ["lon"], math.nan, units="degrees_east")
    variable("name", np.array(["Zürich", "Bern", "Genf"], "<U6"), ["lat"])
    variable("spatial_ref", np.array(0, "<i8"), [], crs_wkt="GEOGCS[…]")
    packed = (np.arange(24).reshape(2, 3, 4) * 11).astype("<i2")
    variable(
        "t2m",
        packed,
        ["time", "lat", "lon"],
        -32767,
        scale_factor=0.01,
        add_offset=273.15,
        coordinates="lat lon time",
        units="K",
    )
    zarr.consolidate_metadata(store)
    note_group("hierarchy/xarray", about="_ARRAY_DIMENSIONS names the dimensions")


def image() -> None:
    """A multi-scale image with labels as OME-NGFF 0.4 stores it: chunk keys with slashes."""
    store = zarr.NestedDirectoryStore(MANIFEST.path("hierarchy/ome-ngff"))
    root = zarr.group(store)
    axes = [
        {"name": "c", "type": "channel"},
        {"name": "y", "type": "space", "unit": "micrometer"},
        {"name": "x", "type": "space", "unit": "micrometer"},
    ]

    def levels(group: Any, dtype: str, channels: int) -> list[Any]:
        datasets = []
        for level in range(2):
            size = 8 >> level
            array = group.create_dataset(
                str(level),
                shape=(channels, size, size),
                chunks=(1, 4, 4),
                dtype=dtype,
                dimension_separator="/",
                compressor=Blosc(),
                fill_value=0,
            )
            array[...] = samples(dtype, array.shape)
            scale = [{"type": "scale", "scale": [1.0, 0.5 * 2**level, 0.5 * 2**level]}]
            datasets.append({"path": str(level), "coordinateTransformations": scale})
        return datasets

    scales = {"version": "0.4", "name": "image", "axes": axes, "datasets": levels(root, "<u2", 2)}
    root.attrs.put(
        {"multiscales": [scales], "omero": {"channels": [{"color": "FF0000", "window": {"min": 0, "max": 255}}]}}
    )
    labels = root.create_group("labels")
    labels.attrs["labels"] = ["cells"]
    cells = labels.create_group("cells")
    scales = {"version": "0.4", "name": "cells", "axes": axes, "datasets": levels(cells, "|u1", 1)}
    cells.attrs.put({"image-label": {"version": "0.4", "source": {"image": "../../"}}, "multiscales": [scales]})
    note_group("hierarchy/ome-ngff")
