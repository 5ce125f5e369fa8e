"""Write the golden files of Zarr v2 that zarr-python 3 makes: a smaller choice than that of zarr-python 2.18.

Python 3.12 or newer in an environment of its own::

    pip install zarr==3.4.2 numcodecs==0.17.1 numpy==2.5.5 crc32c==2.9.post0 msgpack==1.2.4 pcodec==1.1.0
    python tests/golden/make_zarr_v2_by_zarr3.py

That writes ``data/zarr-python-3.4.2-v2/``, the expected elements and the entries of ``manifest_old.json``; the same on
every run. Then ``note_old_readers.py`` is to be run as it says.
"""

from __future__ import annotations

import gzip
import itertools
import math
import time
import warnings
from types import SimpleNamespace
from typing import Any

import numcodecs
import numpy as np
import zarr
from golden_files_old import OldManifest, native, objects, same_elements, samples
from numcodecs import LZ4, LZMA, Blosc, Delta, GZip, Shuffle, Zlib, Zstd
from zarr.storage import LocalStore

warnings.simplefilter("ignore")
gzip.time = SimpleNamespace(**vars(time) | {"time": lambda: 1_700_000_000})  # gzip members hold the time of writing

MANIFEST = OldManifest(f"zarr-python-{zarr.__version__}-v2", "zarr-python", zarr.__version__)
TEXTS = ["", "a", "Zürich", "日本語", "tin 🐟", "x" * 40]
CONTENTS = [b"", b"a", b"\0\xff\0", bytes(range(20))]
SHAPE, CHUNKS = (7, 5), (4, 3)
PARTLY: dict[str, Any] = {"chunks": (2, 5), "regions": (np.s_[0:2], np.s_[4:7])}
"""The second row of chunks stays unwritten."""


def write(
    name: str,
    dtype: Any,
    shape: tuple[int, ...] = SHAPE,
    *,
    kind: str = "",
    values: np.ndarray[Any, Any] | None = None,
    regions: tuple[Any, ...] = (...,),
    fill: Any = 0,
    about: str = "",
    needs: tuple[str, ...] = (),
    undefined: tuple[Any, ...] = (),
    **how: Any,
) -> None:
    """Create one array, write the sample values to ``regions`` and note the case; elsewhere the fill value stands."""
    values = samples(dtype, shape) if values is None else values
    store = LocalStore(MANIFEST.path(name))
    how = {"chunks": CHUNKS, "compressors": None, "filters": None, "fill_value": fill} | how
    array = zarr.create_array(store, zarr_format=2, shape=shape, dtype=dtype, **how)
    if kind:
        noted: Any = fill
        expected = objects([fill], shape)
    else:
        noted = None if fill is None else np.array(fill, native(dtype))
        expected = np.full_like(values, np.zeros((), native(dtype)) if fill is None else noted)
    for region in regions:
        array[region] = values[region]
        expected[region] = values[region]
    found = np.asarray(zarr.open_array(store, mode="r")[...])
    found = found.astype(object) if kind else found.astype(native(found.dtype))
    kind = kind or str(values.dtype)
    assert same_elements(found, expected, kind), f"{name}: {found.tolist()} instead of {expected.tolist()}"
    noted_more = {"about": about, "needs": list(needs), "undefined_chunks": [list(place) for place in undefined]}
    attributes = how.get("attributes", {})
    MANIFEST.array(name, "2", expected, kind, noted, attributes=attributes, **noted_more)


def types() -> None:
    """One array of each kind of type, with a row of chunks missing."""
    point = np.dtype([("x", "<i4"), ("y", ">f8")])
    nested = np.dtype([("foo", "<f4"), ("bar", [("baz", ">f4"), ("qux", "<i4")])])
    cases: list[tuple[str, Any, Any]] = [
        ("bool", "|b1", True),
        ("int8", "|i1", -128),
        ("int64-big", ">i8", -(2**63)),
        ("uint64", "<u8", 2**64 - 1),
        ("float16-infinity", "<f2", math.inf),
        ("float32-big", ">f4", -0.0),
        ("float64-nan", "<f8", math.nan),
        ("float64-null", "<f8", None),
        ("complex64-big", ">c8", complex(1.5, -2)),
        ("complex128", "<c16", complex(math.nan, -math.inf)),
        ("time-ns-nat", "<M8[ns]", np.datetime64("NaT")),
        ("time-10us-big", ">M8[10us]", np.datetime64(3, "10us")),
        ("time-generic", "<M8", np.datetime64("NaT")),
        ("span-D", "<m8[D]", np.timedelta64(-5, "D")),
        ("span-generic", "<m8", np.timedelta64("NaT")),
        ("s5", "|S5", b"ab\xff"),
        ("u6", "<U6", "Zürich"),
        ("u6-big", ">U6", ""),
        ("v3", "|V3", np.void(b"\1\2\3")),
        ("point", point, np.array((-3, 1.5), point)[()]),
        ("point-null", point, None),
        ("nested", nested, np.zeros((), nested)[()]),
    ]
    about = {"time-generic": "no unit", "span-generic": "no unit"}
    for number, (name, dtype, fill) in enumerate(cases):
        compressor = [None, Zlib(level=1), Blosc(cname="lz4"), Zstd(level=1)][number % 4]
        undefined = ((1, 0),) if fill is None else ()
        more: dict[str, Any] = {"about": about.get(name, ""), "undefined": undefined, "order": "CF"[number % 2]}
        write(f"types/{name}", dtype, fill=fill, compressors=compressor, **more, **PARTLY)


def codecs() -> None:
    """Compressors and filters."""
    compressors: dict[str, Any] = {
        "default": "auto",
        "blosc": Blosc(),
        "blosc-auto-shuffle": Blosc(cname="zstd", shuffle=-1),
        "gzip": GZip(level=5),
        "bz2": numcodecs.BZ2(level=1),
        "lzma": LZMA(preset=1),
        "lz4": LZ4(),
        "zstd-checksum": Zstd(level=1, checksum=True),
        "crc32c": numcodecs.crc32c.CRC32C() if hasattr(numcodecs, "crc32c") else numcodecs.checksum32.CRC32C(),
    }
    for number, (name, compressor) in enumerate(compressors.items()):
        needs = ("crc32c",) if name == "crc32c" else ()
        write(f"codecs/{name}", "<i4", compressors=compressor, order="CF"[number % 2], needs=needs)
    ramp = (np.arange(35).reshape(SHAPE) * 3 - 20).astype("i4")
    for order in "CF":
        delta, shuffle = Delta("<i4", astype="<i2"), Shuffle(elementsize=2)
        write(f"codecs/delta-shuffle-{order}", "<i4", values=ramp, filters=[delta, shuffle], order=order)
        write(f"codecs/packbits-{order}", "|b1", filters=[numcodecs.PackBits()], compressors=Zlib(), order=order)


def variable_length() -> None:
    """Texts and bytes of any length."""
    auto: dict[str, Any] = {"filters": "auto", "chunks": (3,), "shape": (7,), "regions": (np.s_[0:3],)}
    about = "the fill value of vlen-bytes is base64 in the document, which zarr-python 2.18 does not do"
    texts, contents, octets = objects(TEXTS, (7,)), objects(CONTENTS, (7,)), zarr.dtype.VariableLengthBytes()
    write("objects/utf8", str, kind="string", values=texts, fill="fehlt ∅", **auto)
    write("objects/utf8-zstd", str, kind="string", values=texts, fill="", compressors=Zstd(level=1), **auto)
    write("objects/bytes", octets, kind="bytes", values=contents, fill=b"\xff\0", about=about, **auto)


def layouts() -> None:
    """Dimensions, separators, scalars, attributes."""
    for order, separator in itertools.product("CF", "./"):
        keys = {"name": "v2", "separator": separator}
        name = f"layout/3d-{order}-{'slash' if separator == '/' else 'dot'}"
        write(name, ">i2", (5, 4, 3), chunks=(2, 3, 3), order=order, chunk_key_encoding=keys)
    about = "unlike zarr-python 2.18 this release compresses 0-dimensional arrays"
    write("layout/scalar-compressed", "<f8", (), chunks=(), fill=2.5, compressors=Zlib(level=1), about=about)
    write("layout/zero-length", "<i2", (3, 0, 2), chunks=(2, 1, 2), regions=())
    write("layout/some-chunks", "<i2", chunks=(2, 2), fill=-1, regions=(np.s_[2:3, 1:4],))
    zeros = np.zeros(SHAPE, "i2")
    write("layout/chunks-of-fill-value", "<i2", values=zeros, about="chunks that equal the fill value are not stored")
    write("layout/attributes", "<i2", attributes={"Größe": "2 µm 🐟", "nested": {"list": [1, 2.5, None]}})


def hierarchy() -> None:
    """A consolidated tree."""
    path = MANIFEST.path("hierarchy/consolidated")
    root = zarr.create_group(LocalStore(path), zarr_format=2, attributes={"title": "Wurzel 🌳"})
    root.create_group("a/b", attributes={"level": 2})
    members = {"a": "group", "a/b": "group"}
    member_attributes: dict[str, Any] = {"a/b": {"level": 2}}
    for member, dtype in {"x": "<i4", "a/b/y": ">f8"}.items():
        attributes = {"member": member}
        array = root.create_array(member, shape=(3, 4), chunks=(2, 2), dtype=dtype, attributes=attributes)
        array[...] = values = samples(dtype, (3, 4))
        name = f"hierarchy/consolidated/{member}"
        MANIFEST.array(name, "2", values, str(values.dtype), np.zeros((), values.dtype), attributes=attributes)
        members[member], member_attributes[member] = "array", attributes
    zarr.consolidate_metadata(root.store)
    noted: dict[str, Any] = {"attributes": {"title": "Wurzel 🌳"}, "member_attributes": member_attributes}
    MANIFEST.group("hierarchy/consolidated", "2", members, consolidated=True, **noted)


if __name__ == "__main__":
    types()
    codecs()
    variable_length()
    layouts()
    hierarchy()
    MANIFEST.save()
