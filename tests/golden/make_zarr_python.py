"""Write the golden files of zarr-python: run with each release of it whose files are kept.

``python tests/golden/make_zarr_python.py`` writes ``data/zarr-python-<version>/``, the expected elements and the
entries of the manifest; everything it writes is the same on every run.
"""

from __future__ import annotations

import gzip
import json
import math
import shutil
import time
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import zarr
from golden_files import Manifest, fill_hex, sample
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    ShardingCodec,
    TransposeCodec,
    ZstdCodec,
)
from zarr.storage import LocalStore

warnings.simplefilter("ignore")
gzip.time = SimpleNamespace(**vars(time) | {"time": lambda: 1_700_000_000})  # gzip members hold the time of writing

VERSION = tuple(int(part) for part in zarr.__version__.split(".")[:2])
MANIFEST = Manifest(f"zarr-python-{zarr.__version__}", "zarr-python", zarr.__version__)
LITTLE, BIG = BytesCodec(endian="little"), BytesCodec(endian="big")
THOROUGH = VERSION >= (3, 2)
"""The newest release writes every combination, the older one each feature."""


def same(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    """Equal bit for bit, whatever the type."""
    if right.dtype.kind in "OT" or left.dtype.kind in "OT":
        return left.astype(object).tolist() == right.astype(object).tolist()
    return left.dtype == right.dtype and left.tobytes() == right.tobytes()


def write(
    name: str,
    dtype: Any,
    shape: tuple[int, ...],
    *,
    regions: tuple[Any, ...] = (...,),
    fill: Any = 0,
    values: np.ndarray[Any, Any] | None = None,
    notes: str = "",
    needs: tuple[str, ...] = (),
    **how: Any,
) -> None:
    """Create one array, write the sample values to ``regions`` and note the case; elsewhere the fill value stands."""
    path = MANIFEST.path(name)
    variable = dtype in ("string", "bytes")
    zarr_dtype: Any = (
        {"string": str, "bytes": zarr.dtype.VariableLengthBytes()}.get(dtype, dtype) if variable else dtype
    )
    values = sample(dtype, shape) if values is None else values
    expected = values.copy()
    expected[...] = fill
    how.setdefault("compressors", None)
    try:
        array = zarr.create_array(LocalStore(path), shape=shape, dtype=zarr_dtype, fill_value=fill, **how)
        for region in regions:
            if values.size or values.ndim == 0:
                array[region] = values[region]
                expected[region] = values[region]
    except Exception as error:
        print(f"  not supported by this release: {name}: {type(error).__name__}: {str(error)[:100]}")
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        right = same(np.asarray(zarr.open_array(LocalStore(path), mode="r")[...]), expected)
    except Exception:
        right = False
    if not right:
        print(f"  left out, this release does not read its own values back: {name}")
        shutil.rmtree(path)
        return
    text = str(dtype) if variable else str(np.dtype(dtype))
    if dtype == "string":
        noted: Any = fill
    elif dtype == "bytes":
        noted = list(fill)
    else:
        noted = fill_hex(fill, dtype)
    MANIFEST.array(name, expected, text, fill=noted, notes=notes, needs=list(needs))


def codecs() -> None:
    """Each core codec alone, on whole chunks with ragged edges."""
    grid: dict[str, Any] = {"chunks": (4, 5)}
    for dtype in ("int32", "float64"):
        write(f"codecs/bytes-little-{dtype}", dtype, (7, 5), serializer=LITTLE, **grid)
        write(f"codecs/bytes-big-{dtype}", dtype, (7, 5), serializer=BIG, **grid)
    write("codecs/transpose-10", "int16", (7, 5), filters=[TransposeCodec(order=(1, 0))], **grid)
    write("codecs/transpose-201", "int16", (5, 4, 6), chunks=(3, 4, 2), filters=[TransposeCodec(order=(2, 0, 1))])
    write(
        "codecs/transpose-twice",
        "int16",
        (5, 4, 6),
        chunks=(3, 4, 2),
        filters=[TransposeCodec(order=(2, 0, 1)), TransposeCodec(order=(0, 2, 1))],
    )
    for level in (0, 5, 9):
        write(f"codecs/gzip-{level}", "int32", (7, 5), compressors=[GzipCodec(level=level)], **grid)
    for level, checksum in ((0, False), (3, True), (-5, False), (19, True)):
        how = "with" if checksum else "without"
        write(
            f"codecs/zstd-{level}-{how}-checksum",
            "int32",
            (7, 5),
            compressors=[ZstdCodec(level=level, checksum=checksum)],
            **grid,
        )
    for cname in ("lz4", "lz4hc", "blosclz", "zstd", "zlib"):
        for shuffle in ("noshuffle", "shuffle", "bitshuffle"):
            write(
                f"codecs/blosc-{cname}-{shuffle}",
                "int32",
                (16, 10),
                chunks=(16, 10),
                compressors=[BloscCodec(cname=cname, clevel=5, shuffle=shuffle, typesize=4)],
            )
    write(
        "codecs/blosc-split-blocks",
        "uint16",
        (60, 50),
        chunks=(60, 50),
        compressors=[BloscCodec(cname="lz4", clevel=9, shuffle="shuffle", typesize=2, blocksize=1024)],
        notes="several blocks in one chunk",
    )
    write(
        "codecs/blosc-stored",
        "uint8",
        (7, 5),
        compressors=[BloscCodec(cname="zstd", clevel=0, shuffle="noshuffle", typesize=1)],
        notes="level 0 copies the bytes",
        **grid,
    )
    write("codecs/crc32c", "int32", (7, 5), compressors=[Crc32cCodec()], **grid)
    write("codecs/gzip-crc32c", "int32", (7, 5), compressors=[GzipCodec(level=1), Crc32cCodec()], **grid)
    write("codecs/crc32c-zstd", "int32", (7, 5), compressors=[Crc32cCodec(), ZstdCodec(level=1)], **grid)
    write(
        "codecs/everything",
        "float32",
        (5, 4, 6),
        chunks=(3, 4, 2),
        filters=[TransposeCodec(order=(1, 2, 0))],
        serializer=BIG,
        compressors=[BloscCodec(cname="lz4", typesize=4, shuffle="shuffle"), GzipCodec(level=2), Crc32cCodec()],
    )


def sharding() -> None:
    """Every option of sharding_indexed."""
    plain_index: tuple[Any, ...] = (LITTLE,)
    checked_index: tuple[Any, ...] = (LITTLE, Crc32cCodec())
    big_index: tuple[Any, ...] = (BIG, Crc32cCodec())

    def sharded(name: str, shape: tuple[int, ...] = (7, 5), dtype: str = "int32", **more: Any) -> None:
        shards = more.pop("shards", (8, 6))
        outer = {key: more.pop(key) for key in ("regions", "fill", "notes", "filters", "compressors") if key in more}
        codec: dict[str, Any] = {"chunk_shape": (2, 3), "codecs": checked_index, "index_codecs": checked_index} | more
        write(f"sharding/{name}", dtype, shape, chunks=shards, serializer=ShardingCodec(**codec), **outer)

    for location in ("start", "end"):
        for label, index in (("plain", plain_index), ("crc32c", checked_index), ("big", big_index)):
            sharded(f"index-{location}-{label}", index_location=location, index_codecs=index)
    sharded("big-endian-throughout", codecs=(BIG,), index_codecs=(BIG,))
    for label, chain in {
        "raw": (LITTLE,),
        "gzip": (LITTLE, GzipCodec(level=5)),
        "zstd": (LITTLE, ZstdCodec(level=3)),
        "blosc": (LITTLE, BloscCodec(cname="lz4", typesize=4, shuffle="bitshuffle")),
        "zstd-crc32c": (LITTLE, ZstdCodec(level=3), Crc32cCodec()),
        "transpose": (TransposeCodec(order=(1, 0)), LITTLE),
    }.items():
        sharded(f"inner-{label}", codecs=chain)
    sharded("one-inner-chunk", shards=(4, 6), chunk_shape=(4, 6))
    sharded("inner-chunks-of-one-element", shape=(3, 2), shards=(2, 2), chunk_shape=(1, 1))
    sharded("one-dimension", shape=(11,), shards=(6,), chunk_shape=(2,))
    sharded("four-dimensions", shape=(3, 2, 5, 3), shards=(2, 2, 4, 2), chunk_shape=(1, 2, 2, 1), dtype="uint8")
    sharded("shard-larger-than-array", shape=(3, 4), shards=(8, 12), chunk_shape=(2, 3))
    sharded("zero-length-axis", shape=(0, 5))
    sharded("some-empty-chunks", regions=(np.s_[0:2, 0:3], np.s_[4:5, 4:5]), fill=-7)
    sharded(
        "empty-shard", shards=(4, 6), regions=(np.s_[0:2],), fill=-7, notes="the second row of shards is not stored"
    )
    sharded("nothing-written", regions=(), fill=42)
    sharded(
        "outer-transpose",
        shape=(5, 4, 6),
        shards=(4, 4, 4),
        chunk_shape=(2, 4, 1),
        filters=[TransposeCodec(order=(2, 0, 1))],
        notes="the shape of an inner chunk is that of the transposed shard",
    )
    sharded(
        "outer-and-inner-transpose",
        shape=(5, 4, 6),
        shards=(4, 4, 4),
        chunk_shape=(1, 2, 4),
        codecs=(TransposeCodec(order=(1, 2, 0)), LITTLE, GzipCodec(level=1)),
        filters=[TransposeCodec(order=(2, 0, 1))],
    )
    sharded("gzip-after", compressors=[GzipCodec(level=5)], notes="no partial reads: the shard is compressed")
    sharded("crc32c-after", compressors=[Crc32cCodec()], notes="a checksum over the whole shard")
    for location in ("start", "end"):
        nested = ShardingCodec(chunk_shape=(2, 3), codecs=(LITTLE, ZstdCodec(level=1)), index_location=location)
        sharded(f"nested-{location}", shape=(13, 11), shards=(12, 12), chunk_shape=(4, 6), codecs=(nested,))
    innermost = ShardingCodec(chunk_shape=(1, 3), codecs=(LITTLE, Crc32cCodec()), index_codecs=plain_index)
    middle = ShardingCodec(chunk_shape=(2, 6), codecs=(innermost,), index_location="start", index_codecs=big_index)
    sharded("nested-twice", shape=(9, 13), shards=(8, 12), chunk_shape=(4, 6), codecs=(middle,))
    sharded(
        "nested-some-empty",
        shape=(13, 11),
        shards=(12, 12),
        chunk_shape=(4, 6),
        codecs=(ShardingCodec(chunk_shape=(2, 3), codecs=(LITTLE,)),),
        regions=(np.s_[0:2, 0:3], np.s_[9:12, 7:8]),
        fill=5,
    )
    if VERSION >= (3, 2):
        for order in ("lexicographic", "colexicographic", "unordered"):
            sharded(f"write-order-{order}", subchunk_write_order=order)


def data_types() -> None:
    """Every data type, in shards whose second inner chunk is empty."""
    cases: list[tuple[str, Any, list[Any]]] = [("bool", "bool", [False, True])]
    for size in (8, 16, 32, 64):
        for sign in ("int", "uint"):
            limits = np.iinfo(f"{sign}{size}")
            cases.append((f"{sign}{size}", f"{sign}{size}", [0, int(limits.max), int(limits.min)]))
    for size in (16, 32, 64):
        cases.append((f"float{size}", f"float{size}", [0.0, math.nan, math.inf, -math.inf, -0.0, 0.1]))
    for size in (64, 128):
        cases.append((f"complex{size}", f"complex{size}", [0, complex(1.5, -2), complex(math.nan, math.inf)]))
    cases += [
        ("string", "string", ["", "fehlt ∅"]),
        ("bytes", "bytes", [b"", b"\0\xff"]),
        ("U6", "<U6", ["", "Zürich"]),
        ("S5", "S5", [b"", b"ab\xff"]),
        ("V3", "V3", [b"\0\0\0", b"\1\2\3"]),
        ("datetime-s", "datetime64[s]", [np.datetime64("1970-01-01", "s"), np.datetime64("NaT", "s")]),
        ("datetime-10us", "datetime64[10us]", [np.datetime64(-3, "10us")]),
        ("datetime-generic", "datetime64", [np.datetime64("NaT")]),
        ("timedelta-ms", "timedelta64[ms]", [np.timedelta64(5, "ms"), np.timedelta64("NaT", "ms")]),
        ("timedelta-ns", "timedelta64[ns]", [np.timedelta64(0, "ns")]),
    ]
    for label, dtype, fills in cases:
        for number, fill in enumerate(fills if THOROUGH else fills[:1]):
            kind = np.dtype(object if dtype in ("string", "bytes") else dtype)
            exact = kind.type(fill) if kind.kind in "biufc" else np.void(fill) if kind.kind == "V" else fill
            write(
                f"types/{label}-fill-{number}",
                dtype,
                (7, 5),
                chunks=(2, 5),
                shards=(8, 5),
                regions=(np.s_[0:2], np.s_[4:7]),
                fill=exact,
            )
    for label, fields in {
        "struct": [("x", "<i4"), ("y", "<f8"), ("flag", "?")],
        "struct-nested": [("at", [("lat", "<f4"), ("lon", "<f4")]), ("n", "<u2")],
        "struct-of-times-and-text": [("when", "<M8[s]"), ("name", "<U3"), ("code", "S2")],
    }.items():
        kind = np.dtype(fields)
        write(f"types/{label}", kind, (7, 5), chunks=(4, 5), fill=np.zeros((), kind)[()])
        write(f"types/{label}-big", kind, (7, 5), chunks=(4, 5), fill=np.zeros((), kind)[()], serializer=BIG)
    for dtype in ("string", "bytes"):
        fill = "" if dtype == "string" else b""
        write(f"types/{dtype}-zstd", dtype, (7, 5), chunks=(4, 3), fill=fill, compressors=[ZstdCodec(level=1)])
    for dtype in ("datetime64[s]", "complex64", "<U6", "float16"):
        if not THOROUGH:
            continue
        write(
            f"types/{np.dtype(dtype).name.replace('[', '-').replace(']', '')}-big",
            dtype,
            (7, 5),
            chunks=(4, 3),
            fill=np.zeros((), dtype)[()],
            serializer=BIG,
        )


def shapes() -> None:
    """Shapes, grids, chunk keys, names and attributes."""
    write("shapes/scalar", "float64", (), chunks=(), fill=2.5)
    write("shapes/scalar-unwritten", "float64", (), chunks=(), fill=2.5, regions=())
    write("shapes/scalar-sharded", "int32", (), chunks=(), serializer=ShardingCodec(chunk_shape=(), codecs=(LITTLE,)))
    write("shapes/zero-length", "int16", (0,), chunks=(3,))
    write("shapes/zero-length-middle", "int16", (3, 0, 2), chunks=(2, 1, 2))
    write("shapes/chunk-larger-than-array", "int16", (3, 2), chunks=(10, 20))
    write("shapes/some-chunks", "int16", (7, 5), chunks=(2, 2), fill=-1, regions=(np.s_[2:3, 1:4],))
    encodings = {
        "default-slash": {"name": "default", "separator": "/"},
        "default-dot": {"name": "default", "separator": "."},
        "v2-dot": {"name": "v2", "separator": "."},
        "v2-slash": {"name": "v2", "separator": "/"},
    }
    for label, encoding in encodings.items() if THOROUGH else ():
        write(f"keys/{label}", "int16", (3, 5), chunks=(3, 3), chunk_key_encoding=encoding)
        write(f"keys/{label}-scalar", "int16", (), chunks=(), fill=3, chunk_key_encoding=encoding)
    write(
        "shapes/named",
        "int16",
        (7, 5),
        chunks=(4, 3),
        dimension_names=("Zeit ⏱", None),
        attributes={"Größe": "2 µm", "nested": {"list": [1, 2.5, None, True, "日本"]}, "large": 2**60, "tiny": 1e-300},
        notes="dimension names and attributes beyond ASCII",
    )
    if VERSION >= (3, 2):
        with zarr.config.set({"array.rectilinear_chunks": True}):
            for label, chunks in {
                "rectilinear": ((2, 4, 1), (3, 2)),
                "rectilinear-runs": ((1, 1, 1, 1, 3), (2, 2, 1)),
            }.items():
                write(f"shapes/{label}", "int32", (7, 5), chunks=chunks, compressors=[GzipCodec(level=1)])
            write("shapes/rectilinear-sharded", "int32", (8, 6), chunks=(2, 3), shards=((4, 2, 2), (3, 3)))
            write("shapes/rectilinear-empty", "int32", (7, 5), chunks=((2, 5), (5,)), fill=9, regions=(np.s_[:2],))


def extensions() -> None:
    """Codecs that are registered extensions or come from numcodecs."""
    if VERSION >= (3, 2):
        from zarr.codecs import CastValue, ScaleOffset

        halves = np.arange(35.0).reshape(7, 5) / 2
        scale = ScaleOffset(offset=5, scale=4)
        write("extensions/scale-offset", "float64", (7, 5), chunks=(4, 5), values=halves, filters=[scale])
        for target in ("int16", "uint8", "float32"):
            counting = np.arange(35, dtype="int32").reshape(7, 5)
            cast = CastValue(data_type=target)
            write(f"extensions/cast-{target}", "int32", (7, 5), chunks=(4, 5), values=counting, filters=[cast])
    from zarr.codecs import numcodecs as wrapped

    chains: dict[str, dict[str, Any]] = {
        "shuffle-lz4": {"compressors": [wrapped.Shuffle(elementsize=4), wrapped.LZ4(acceleration=1)]},
        "bz2": {"compressors": [wrapped.BZ2(level=5)]},
        "zlib-adler32": {"compressors": [wrapped.Zlib(level=5), wrapped.Adler32()]},
        "lzma": {"compressors": [wrapped.LZMA()]},
        "delta": {"filters": [wrapped.Delta(dtype="<i4")]},
        "fletcher32": {"compressors": [wrapped.Fletcher32()]},
    }
    for label, how in chains.items():
        write(f"extensions/numcodecs-{label}", "int32", (7, 5), chunks=(4, 5), **how)


def groups() -> None:
    """Groups with and without consolidated metadata."""
    for name in ("hierarchy", "hierarchy-consolidated"):
        path = MANIFEST.path(name)
        root = zarr.create_group(LocalStore(path), attributes={"title": "Bäume und Büchsen"})
        members = {"ocean": "group", "ocean/deep": "group", "empty": "group"}
        root.create_group("ocean", attributes={"depth": 4000}).create_group("deep")
        root.create_group("empty")
        for member, dtype in {"time": "int64", "ocean/temperature": "float32", "ocean/deep/name": "string"}.items():
            kind: Any = str if dtype == "string" else dtype
            array = root.create_array(member, shape=(6,), chunks=(2,), shards=(4,), dtype=kind, dimension_names=["n"])
            array[...] = sample(dtype, (6,))
            array.attrs["member"] = member
            members[member] = "array"
            fill = "" if dtype == "string" else fill_hex(0, dtype)
            MANIFEST.array(f"{name}/{member}", sample(dtype, (6,)), dtype, fill=fill)
        consolidated = name.endswith("consolidated")
        if consolidated:
            zarr.consolidate_metadata(LocalStore(path))
        attributes = json.loads((path / "zarr.json").read_text())["attributes"]
        MANIFEST.group(name, members, attributes=attributes, consolidated=consolidated)


if __name__ == "__main__":
    sharding()
    data_types()
    shapes()
    if THOROUGH:
        codecs()
        extensions()
    groups()
    MANIFEST.save()
