"""Files of HDF5 and NetCDF with as many options as there are, made by h5py and netCDF4."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np

RNG = np.random.default_rng(5)

DTYPES = [
    *("i1", "u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8"),
    *("<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c8", "<c16", "?", "S5", "V7"),
    np.dtype([("a", "<i2"), ("b", "<f8")]),
    np.dtype([("a", ">i4"), ("b", "S3"), ("c", np.dtype([("x", "<u1"), ("y", "<f4")]))]),
    np.dtype({"names": ["a", "b"], "formats": ["<i1", "<f8"], "offsets": [0, 8], "itemsize": 24}),
]

LAYOUTS: dict[str, dict[str, Any]] = {
    "contiguous": {},
    "chunked": {"chunks": (3, 4)},
    "deflate": {"chunks": (3, 4), "compression": "gzip", "compression_opts": 4},
    "shuffled": {"chunks": (3, 4), "compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"chunks": (3, 4), "compression": "lzf", "shuffle": True},
    "growing": {"chunks": (3, 4), "maxshape": (None, 11), "compression": "gzip", "shuffle": True},
}


COMPRESSIONS = ("zlib", "zstd", "bzip2", "szip", "blosc_lz", "blosc_lz4", "blosc_lz4hc", "blosc_zlib", "blosc_zstd")
"""Compressors of the library netCDF, which brings their filters along."""


def values_of(dtype: np.dtype[Any], shape: tuple[int, ...] = (7, 9)) -> Any:
    """Return elements of any bits, but for booleans, and for NaN, of which there is one."""
    if dtype.kind == "b":
        return RNG.integers(0, 2, shape).astype(bool)
    if dtype.kind == "S":
        return RNG.integers(97, 122, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]
    if dtype.names is not None:
        found = np.zeros(shape, dtype)
        for name in dtype.names:
            found[name] = values_of(dtype[name], shape)
        return found
    if dtype.kind in "fc":
        found = RNG.normal(size=shape).astype(dtype)
        found.reshape(-1)[:1] = np.nan
        return found
    return np.frombuffer(RNG.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


def name_of(dtype: np.dtype[Any]) -> str:
    """Return a name for a data set."""
    return f"{dtype.kind}{dtype.itemsize}{'big' if dtype.byteorder == '>' else ''}"


def write_hdf5(path: Path) -> Path:
    """Write a file with every data type in every layout, and other kinds of elements, attributes and links."""
    with h5py.File(path, "w") as file:
        for layout, options in LAYOUTS.items():
            group = file.create_group(f"layouts/{layout}")
            for kind in DTYPES:
                dtype = np.dtype(kind)
                group.create_dataset(name_of(dtype), data=values_of(dtype), **options)
        group = file.create_group("kinds")
        group["scalar"] = 3.5
        group["empty"] = np.zeros((0, 4), "i4")
        group.create_dataset("never", (5, 6), "f4", fillvalue=np.float32(2.5))
        group.create_dataset("never_chunked", (50, 6), ">i4", chunks=(10, 6), fillvalue=-7)
        group.create_dataset("in_part", (50, 6), "<i4", chunks=(10, 6), fillvalue=-7)[12:15] = 1
        space = h5py.h5s.create_simple((4, 5))
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(group.id, b"compact", h5py.h5t.STD_I16BE, space, creation).write(
            h5py.h5s.ALL, h5py.h5s.ALL, np.arange(20, dtype=">i2").reshape(4, 5)
        )
        group["text"] = np.array([["one", "zwölf", ""], ["a" * 300, "日本", "x"]], object)
        group.create_dataset(
            "text_chunked", data=["a", "bé", "c"] * 7, chunks=(4,), maxshape=(None,), compression="gzip"
        )
        group.create_dataset("text_plain", data=["a", "bé", "c"] * 7, chunks=(4,))
        group.create_dataset("text_fixed", data=np.array(["ab", "c"], "S6"))
        group.create_dataset("utf8_fixed", (2,), h5py.string_dtype("utf-8", 6))[:] = np.array(
            [b"ab", "é".encode()], "S6"
        ).astype(h5py.string_dtype("utf-8", 6))
        group.create_dataset(
            "colour", data=[0, 2, 1, 7], dtype=h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 2}, "<u2")
        )
        group.create_dataset("scaled", data=np.arange(99).reshape(9, 11), chunks=(4, 4), scaleoffset=0)
        group["times"] = (
            np.arange("2020-01-01", "2020-01-09", dtype="M8[D]").astype("M8[ns]").astype(h5py.opaque_dtype("M8[ns]"))
        )
        write_with_filters_left_out(group)
        attributes = file.create_group("attributes").attrs
        attributes["int"] = np.int16(-3)
        attributes["float"] = np.float32(0.1)
        attributes["numbers"] = np.arange(4, dtype=">i4")
        attributes["table"] = np.arange(6.0).reshape(2, 3)
        attributes["text"] = "Grüße"
        attributes["bytes"] = np.bytes_(b"plain")
        attributes["texts"] = np.array(["a", "bé"], object)
        attributes["flags"] = np.array([True, False])
        attributes["nothing"] = h5py.Empty("f4")
        attributes["no_text"] = h5py.Empty(h5py.string_dtype())
        attributes["record"] = np.array((1, 2.5), [("a", "i4"), ("b", "f8")])
        attributes["not_finite"] = np.array([1.0, np.inf, np.nan])
        attributes["complex"] = 1 + 2j
        attributes["reference"] = file["kinds/scalar"].ref
        attributes["huge"] = np.uint64(2**64 - 1)
        attributes.create("enum", 1, dtype=h5py.enum_dtype({"NO": 0, "YES": 1}, "i1"))
        attributes.create("sequences", np.array([np.arange(2), np.arange(3)], object), dtype=h5py.vlen_dtype("i4"))
        file["links/same"] = file["kinds/scalar"]
        file["links/soft"] = h5py.SoftLink("/kinds/scalar")
        file["links/out"] = h5py.ExternalLink("elsewhere.h5", "/secret")
        file["links/round"] = file["/"]
        file["links/type"] = np.dtype("i4")
    return path


def write_with_filters_left_out(group: Any) -> None:
    """Write chunks of which HDF5 says that one filter, or both, were left out."""
    values = np.arange(120, dtype="<i4").reshape(10, 12)
    found = group.create_dataset(
        "skipped_filters", values.shape, "<i4", chunks=(5, 4), compression="gzip", shuffle=True
    )
    for row in range(2):
        for column in range(3):
            part = np.ascontiguousarray(values[row * 5 : row * 5 + 5, column * 4 : column * 4 + 4])
            mask = (row + column) % 4  # which of the two filters this chunk was spared
            data = part.tobytes() if mask & 1 else part.view("u1").reshape(-1, 4).T.tobytes()
            found.id.write_direct_chunk((row * 5, column * 4), data if mask & 2 else zlib.compress(data), mask)


def write_netcdf(path: Path, form: str = "NETCDF4") -> Path:
    """Write a file with what the conventions CF know, in one of the formats of the library netCDF."""
    new = form == "NETCDF4"
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.title, file.history = "Example", "gemacht für Proben"
        file.numbers, file.one = np.array([1, 2, 3], "i4"), np.float64(0.25)
        file.createDimension("time", None)
        for name, length in (("lat", 6), ("lon", 8), ("letters", 5), ("station", 3)):
            file.createDimension(name, length)
        extra: dict[str, Any] = {"zlib": True, "shuffle": True, "fletcher32": True} if new else {}
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar = "hours since 2000-01-01", "standard"
        time[:] = np.arange(10) * 6.0
        lat = file.createVariable("lat", "f4", ("lat",))
        lat.units, lat[:] = "degrees_north", np.linspace(-50, 50, 6)
        packed = file.createVariable("packed", "i2", ("time", "lat", "lon"), fill_value=-999, **extra)
        packed.scale_factor, packed.add_offset, packed.units = 0.01, 273.15, "K"
        packed.set_auto_maskandscale(False)
        packed[:] = RNG.integers(-500, 500, (10, 6, 8))
        packed[3, 2] = -999
        masked = file.createVariable("masked", "f4", ("time", "lat"), fill_value=np.float32(1e20), **extra)
        masked.missing_value = np.float32(1e20)
        masked.valid_range = np.array([-5, 5], "f4")
        masked[:4] = RNG.normal(size=(4, 6))
        nan = file.createVariable("nan", "f8", ("lat",), fill_value=np.nan)
        nan[2:] = 1.5
        unsigned = file.createVariable("unsigned", "i1", ("lat", "lon"), fill_value=-1)
        unsigned.setncattr("_Unsigned", "true")
        unsigned.set_auto_maskandscale(False)
        unsigned[:] = RNG.integers(-128, 127, (6, 8))
        names = file.createVariable("names", "S1", ("station", "letters"))
        names.setncattr("_Encoding", "utf-8")
        names[:] = np.array(["Ulm", "Köln", "Bonn"])
        marked = file.createVariable("marked_letters", "S1", ("station", "letters"), fill_value=b"z")
        marked[:] = np.array([list("abcde"), list("zzzzz"), list("ab  z")], "S1")
        whole = file.createVariable("scaled_by_integers", "i2", ("lat",))
        whole.set_auto_maskandscale(False)
        whole.scale_factor, whole.add_offset, whole[:] = np.int16(2), np.int16(1), np.arange(6)
        single = file.createVariable("scaled_by_singles", "i2", ("lat",))
        single.set_auto_maskandscale(False)
        single.scale_factor, single[:] = np.float32(0.1), np.arange(6)
        odd = file.createVariable("odd_attributes", "f4", ("lat",))
        odd.missing_value, odd.valid_range = np.float32(np.nan), np.array([-np.inf, np.inf], "f4")
        odd.flag_values, odd.flag_meanings, odd.bits = np.array([1, 2], "i1"), "one two", np.int16(-3)
        odd.empty_text, odd.half, odd.table = "", np.float32(0.1), np.array([1.5, 0.1], "f8")
        odd[:4] = [1, np.nan, 3, 4]
        crs = file.createVariable("crs", "i4", ())
        crs.grid_mapping_name = "latitude_longitude"
        file.createVariable("never", "f4", ("lat", "lon"))
        if new:
            text = file.createVariable("text", str, ("station",))
            text[:] = np.array(["eins", "zwölf", ""], object)
            text.texts, text.long = ["ein", "zwölf"], np.int64(2**60)
            text.unsigned, text.large = np.array([1, 255], "u1"), np.uint64(2**64 - 1)
            file.createVariable("marked_text", str, ("station",), fill_value="zz")[:2] = np.array(["a", "zz"], object)
            for kind in ("i1", "u1", "u2", "u4", "i8", "u8"):
                each = file.createVariable(f"of_{kind}", kind, ("lat", "lon"), endian="big", chunksizes=(4, 3))
                each[:] = RNG.integers(0, 100, (6, 8))
            colours = file.createEnumType("u1", "colours", {"red": 0, "blue": 4})
            file.createVariable("colour", colours, ("station",), fill_value=0)[:] = [0, 4, 4]
            inner = file.createGroup("model/run")
            inner.note = "deep"
            inner.createDimension("level", 4)
            inner.createVariable("pressure", "f4", ("level", "lon"), zlib=True)[:] = RNG.normal(size=(4, 8))
            inner.createVariable("lat", "i4", ("level",))[:] = 7  # the name of a dimension that it has not
            clash = file.createVariable("lon", "f4", ("lat", "station"))
            clash[:] = RNG.normal(size=(6, 3))
            file.createDimension("row", 60)
            file.createDimension("column", 50)
            for number, name in enumerate(COMPRESSIONS):
                options = {"blosc_shuffle": number % 3} if name.startswith("blosc") else {}
                made = file.createVariable(
                    name, "f4", ("row", "column"), compression=name, chunksizes=(40, 30), **options
                )
                made[:] = np.arange(3000).reshape(60, 50) // 7 + number
    return path


def write_records(path: Path) -> Path:
    """Write a file with records in a group of their own, and another group."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("station", 3)
        pairs = file.createCompoundType(np.dtype([("a", "i4"), ("b", "f8")]), "pairs")
        group = file.createGroup("records")
        group.createVariable("record", pairs, ("station",))[:] = np.array([(1, 2.5), (3, -1), (0, 0)], pairs.dtype)
        file.createGroup("others").createVariable("beside", "i4", ("station",))[:] = [1, 2, 3]
    return path
