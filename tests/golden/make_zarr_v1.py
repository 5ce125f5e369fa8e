"""Write the golden files of Zarr v1 with zarr-python 1.1, the last release that wrote that format.

Python 3.9 (newer ones lack what it imports) with a C compiler, in an environment of its own::

    pip install "setuptools<60" wheel cython==0.29.37 numpy==1.26.4 setuptools_scm==3.5.0
    pip install --no-build-isolation --no-binary zarr zarr==1.1.0
    python tests/golden/make_zarr_v1.py

That writes ``data/zarr-python-1.1.0/``, the expected elements and the entries of ``manifest_old.json``; the same on
every run. Then ``note_old_readers.py`` is to be run as it says.
"""

from __future__ import annotations

import itertools
import lzma
import math
import warnings
from typing import Any

import numpy as np
import zarr
from golden_files_old import OldManifest, native, same_elements, samples

warnings.simplefilter("ignore")
zarr.blosc.set_nthreads(1)

MANIFEST = OldManifest(f"zarr-python-{zarr.__version__}", "zarr-python", zarr.__version__)
SHAPE, CHUNKS = (7, 5), (4, 3)
C_DESPITE_F = (
    "order F with this compression: zarr-python 1 stored the bytes in C order all the same (with blosc it did not), "
    "so a reader that follows the specification gets others_read"
)


def open_array(name: str, mode: str = "r") -> Any:
    return zarr.Array(zarr.DirectoryStore(str(MANIFEST.path(name))), readonly=mode == "r")


def write(
    name: str,
    dtype: Any,
    shape: tuple[int, ...] = SHAPE,
    *,
    fill: Any = 0,
    regions: tuple[Any, ...] = (...,),
    undefined: tuple[Any, ...] = (),
    attributes: dict[str, Any] | None = None,
    about: str = "",
    chunks: tuple[int, ...] = CHUNKS,
    order: str = "C",
    **how: Any,
) -> None:
    """Create one array, write the sample values to ``regions`` and note the case; elsewhere the fill value stands."""
    MANIFEST.path(name).mkdir(parents=True)
    store = zarr.DirectoryStore(str(MANIFEST.path(name)))
    zarr.init_store(store, shape=shape, chunks=chunks, dtype=dtype, fill_value=fill, order=order, **how)
    array, values = open_array(name, "a"), samples(dtype, shape)
    noted = None if fill is None else np.array(fill, dtype).astype(native(dtype))
    expected = np.full_like(values, np.zeros((), native(dtype)) if fill is None else noted)
    for region in regions:
        array[region] = values[region]
        expected[region] = values[region]
    array.attrs.update(attributes or {})
    found = open_array(name)[...]
    found = found.astype(native(found.dtype))
    for place in undefined:
        box = tuple(slice(i * size, (i + 1) * size) for i, size in zip(place, chunks))  # noqa: B905
        found[box] = expected[box]
    assert same_elements(found, expected, ""), f"{name}: {found.tolist()} instead of {expected.tolist()}"
    if "snappy" in name:
        about = "few builds of blosc have snappy"
    more: dict[str, Any] = {"about": about, "attributes": attributes, "undefined_chunks": [list(p) for p in undefined]}
    more["optional"] = "snappy" if "snappy" in name else None
    if order == "F" and len(shape) > 1 and how.get("compression", "blosc") != "blosc":
        more |= {"disputed": C_DESPITE_F, "others_read": read_by_specification(expected, chunks, fill)}
    MANIFEST.array(name, "1", expected, str(values.dtype), noted, **more)


def read_by_specification(values: np.ndarray[Any, Any], chunks: tuple[int, ...], fill: Any) -> np.ndarray[Any, Any]:
    """What comes out when chunks that were stored in C order are taken to be in F order."""
    result = values.copy()
    for corner in itertools.product(*(range(0, n, size) for n, size in zip(values.shape, chunks))):  # noqa: B905
        box = tuple(slice(start, start + size) for start, size in zip(corner, chunks))  # noqa: B905
        stored = np.full(chunks, 0 if fill is None else fill, values.dtype)
        stored[tuple(slice(length) for length in values[box].shape)] = values[box]
        result[box] = stored.reshape(-1).reshape(chunks, order="F")[tuple(slice(n) for n in values[box].shape)]
    return result


def types() -> None:
    """Types in both byte orders with a fill value and without."""
    partly: dict[str, Any] = {"chunks": (2, 5), "regions": (np.s_[0:2], np.s_[4:8])}
    point = np.dtype([("x", "<i4"), ("y", ">f8")])
    for name, dtype, fill in [
        ("bool", "|b1", True),
        ("int16-big", ">i2", -5),
        ("int64", "<i8", -(2**63)),
        ("uint8", "|u1", 255),
        ("float16", "<f2", 0.5),
        ("float64-nan", "<f8", math.nan),
        ("float32-big-infinity", ">f4", -math.inf),
        ("complex64", "<c8", None),
        ("time-s", "<M8[s]", 0),
        ("span-ms-big", ">m8[ms]", None),
        ("s5", "|S5", None),
        ("u6", "<U6", "Zürich"),
        ("v3", "|V3", None),
        ("point", point, None),
    ]:
        about = "the fill value stands bare in the document, which is no JSON" if name in BARE else ""
        undefined = ((1, 0),) if fill is None else ()
        # Without a fill value zarr-python 1 stores random bytes beyond the edge: eight rows have none there.
        shape = (8, 5) if fill is None else SHAPE
        write(f"types/{name}", dtype, shape, fill=fill, undefined=undefined, compression="zlib", about=about, **partly)


BARE = ("float64-nan", "float32-big-infinity")


def compressions() -> None:
    """Every compression with its options, in both orders."""
    xz = {"format": lzma.FORMAT_XZ, "check": lzma.CHECK_CRC32, "preset": 1, "filters": None}
    raw = {"format": lzma.FORMAT_RAW, "filters": [{"id": lzma.FILTER_DELTA, "dist": 4}, {"id": lzma.FILTER_LZMA2}]}
    cases: dict[str, tuple[str, Any]] = {
        "default": ("default", None),
        "none": ("none", None),
        "zlib-1": ("zlib", 1),
        "zlib-9": ("gzip", 9),
        "bz2": ("bz2", 1),
        "lzma": ("lzma", None),
        "lzma-xz": ("lzma", xz),
        "lzma-raw": ("lzma", raw),
        "lzma-alone": ("lzma", {"format": lzma.FORMAT_ALONE}),
    }
    for cname, shuffle in itertools.product(("blosclz", "lz4", "lz4hc", "snappy", "zlib"), (0, 1, 2)):
        if zarr.blosc.compname_to_compcode(cname) >= 0:
            cases[f"blosc-{cname}-{shuffle}"] = ("blosc", {"cname": cname, "clevel": 5, "shuffle": shuffle})
    for name, (compression, options) in cases.items():
        about = "compression='gzip' is stored as zlib" if compression == "gzip" else ""
        grid: dict[str, Any] = {"shape": (16, 10), "chunks": (16, 10)} if compression == "blosc" else {}
        write(f"compressions/{name}", "<i4", compression=compression, compression_opts=options, about=about, **grid)
    for compression in ("blosc", "zlib", "bz2", "lzma", "none"):
        write(f"compressions/{compression}-F", "<i4", order="F", compression=compression, fill=-1)


def layouts() -> None:
    """Dimensions, missing chunks, attributes."""
    write("layout/1d", "<i2", (7,), chunks=(3,))
    write("layout/3d", ">i2", (5, 4, 3), chunks=(2, 3, 3))
    write("layout/3d-F", ">i2", (5, 4, 3), chunks=(2, 3, 3), order="F")
    write("layout/some-chunks", "<i2", chunks=(2, 2), fill=-1, regions=(np.s_[2:3, 1:4],))
    write("layout/nothing-written", "<i2", fill=42, regions=())
    write("layout/attributes", "<i2", attributes={"Größe": "2 µm 🐟", "nested": {"list": [1, 2.5, None]}})


if __name__ == "__main__":
    types()
    compressions()
    layouts()
    MANIFEST.save()
