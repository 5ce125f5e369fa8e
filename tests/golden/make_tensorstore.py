"""Write the golden files of tensorstore: ``python tests/golden/make_tensorstore.py`` (needs tensorstore and ml_dtypes).

Writes ``data/tensorstore-<version>/``, the expected elements and the entries of the manifest; the same on every run.
"""

from __future__ import annotations

import shutil
from importlib.metadata import version
from typing import Any

import ml_dtypes
import numpy as np
import tensorstore
from golden_files import Manifest, fill_hex, sample

MANIFEST = Manifest(f"tensorstore-{version('tensorstore')}", "tensorstore", version("tensorstore"))
SMALL_FLOATS = (
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
)
Codec = dict[str, Any]


def codec(name: str, **configuration: Any) -> Codec:
    return {"name": name, "configuration": configuration} if configuration else {"name": name}


LITTLE, BIG, CRC32C = codec("bytes", endian="little"), codec("bytes", endian="big"), codec("crc32c")


def sharding(chunk_shape: tuple[int, ...], codecs: tuple[Codec, ...] = (LITTLE,), **more: Any) -> Codec:
    index = more.pop("index_codecs", (LITTLE, CRC32C))
    return codec(
        "sharding_indexed", chunk_shape=list(chunk_shape), codecs=list(codecs), index_codecs=list(index), **more
    )


def small_values(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Every bit pattern of a type of ml_dtypes, in turn."""
    kind = np.dtype(getattr(ml_dtypes, dtype))
    size = int(np.prod(shape))
    if dtype.startswith("int"):
        bits = int(dtype[3:])
        numbers = np.arange(size) % 2**bits - 2 ** (bits - 1)
        return numbers.astype("int8").astype(kind).reshape(shape)
    words = np.arange(size) * {"bfloat16": 1871, "float4_e2m1fn": 1}.get(dtype, 37)
    wide = words.astype(f"u{kind.itemsize}")
    return (wide % 16 if dtype == "float4_e2m1fn" else wide).view(kind).reshape(shape)


def write(
    name: str,
    dtype: str,
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    codecs: tuple[Codec, ...] = (),
    *,
    regions: tuple[Any, ...] = (...,),
    fill: Any = 0,
    notes: str = "",
    **more: Any,
) -> None:
    """Create one array, write the sample values to ``regions`` and note the case; elsewhere the fill value stands."""
    path = MANIFEST.path(name)
    small = hasattr(ml_dtypes, dtype)
    values = small_values(dtype, shape) if small else sample(dtype, shape)
    metadata = {
        "shape": list(shape),
        "data_type": dtype,
        "chunk_grid": codec("regular", chunk_shape=list(chunk)),
        "fill_value": fill,
    }
    if codecs:
        metadata["codecs"] = list(codecs)
    kvstore = {"driver": "file", "path": f"{path}/"}
    exact = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}.get(fill, fill) if isinstance(fill, str) else fill
    if isinstance(fill, list):
        exact = complex(*fill)
    expected = values.copy()
    expected[...] = np.asarray(exact).astype(values.dtype)
    noted = expected.reshape(-1)[:1].tobytes().hex() if values.size else fill_hex(exact, dtype)
    try:
        array = tensorstore.open(
            {"driver": "zarr3", "kvstore": kvstore, "metadata": metadata | more}, create=True, delete_existing=True
        ).result()
        for region in regions:
            if values.size:
                array[region].write(values[region]).result()
                expected[region] = values[region]
        back = tensorstore.open({"driver": "zarr3", "kvstore": kvstore}).result().read().result()
    except ValueError as error:
        print(f"  not supported by this release: {name}: {str(error)[:200]}")
        shutil.rmtree(path, ignore_errors=True)
        return
    assert back.dtype == expected.dtype, name
    if dtype in ("int2", "int4"):  # the unused bits of a byte may differ
        assert back.astype("int8").tolist() == expected.astype("int8").tolist(), name
    else:
        assert back.tobytes() == expected.tobytes(), name
    unread = ["ml_dtypes"] if small else []
    optional = "snappy" if "snappy" in name else None
    MANIFEST.array(name, expected, dtype, fill=noted, notes=notes, needs=unread, optional=optional)


def codecs() -> None:
    for label, chain in {
        "default": (),
        "little": (LITTLE,),
        "big": (BIG,),
        "transpose": (codec("transpose", order=[1, 0]), LITTLE),
        "transpose-named": (codec("transpose", order="F"), LITTLE),
        "gzip": (LITTLE, codec("gzip", level=6)),
        "zstd": (LITTLE, codec("zstd", level=3, checksum=False)),
        "zstd-checksum": (LITTLE, codec("zstd", level=1, checksum=True)),
        "crc32c": (LITTLE, CRC32C),
        "gzip-crc32c-big": (BIG, codec("gzip", level=1), CRC32C),
    }.items():
        write(f"codecs/{label}", "int32", (7, 5), (4, 5), chain)
    for cname in ("lz4", "lz4hc", "blosclz", "zstd", "zlib", "snappy"):
        for shuffle in ("noshuffle", "shuffle", "bitshuffle"):
            blosc = codec("blosc", cname=cname, clevel=5, shuffle=shuffle, typesize=4, blocksize=0)
            write(f"codecs/blosc-{cname}-{shuffle}", "int32", (16, 10), (16, 10), (LITTLE, blosc))


def shards() -> None:
    for location in ("start", "end"):
        for label, index in {"plain": (LITTLE,), "crc32c": (LITTLE, CRC32C), "big": (BIG, CRC32C)}.items():
            chain = sharding((2, 3), (LITTLE,), index_codecs=index, index_location=location)
            write(f"sharding/index-{location}-{label}", "int32", (7, 5), (8, 6), (chain,))
    for label, inner in {
        "gzip": (LITTLE, codec("gzip", level=5)),
        "zstd-crc32c": (LITTLE, codec("zstd", level=1, checksum=False), CRC32C),
        "blosc": (LITTLE, codec("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=4, blocksize=0)),
        "transpose-big": (codec("transpose", order=[1, 0]), BIG),
    }.items():
        write(f"sharding/inner-{label}", "int32", (7, 5), (8, 6), (sharding((2, 3), inner),))
    some = (np.s_[0:2, 0:3], np.s_[4:5, 4:5])
    write("sharding/some-empty-chunks", "int32", (7, 5), (8, 6), (sharding((2, 3)),), regions=some, fill=-7)
    write("sharding/nothing-written", "int32", (7, 5), (8, 6), (sharding((2, 3)),), regions=(), fill=42)
    for number, order in enumerate(([2, 0, 1], [1, 2, 0])):
        outside = codec("transpose", order=order)
        write(
            f"sharding/outer-transpose-{number}",
            "int16",
            (5, 4, 6),
            (4, 2, 6),
            (outside, sharding(tuple((2, 1, 3)[axis] for axis in order))),
            notes="the shape of an inner chunk is that of the transposed shard",
        )
    both = sharding((3, 1, 2), (codec("transpose", order=[1, 2, 0]), LITTLE))
    write("sharding/both-transposes", "int16", (5, 4, 6), (4, 2, 6), (codec("transpose", order=[2, 1, 0]), both))
    inner = sharding((2, 3), (LITTLE, codec("gzip", level=1)), index_location="start")
    write("sharding/nested", "int32", (13, 11), (12, 12), (sharding((4, 6), (inner,)),))
    write("sharding/nested-some-empty", "int32", (13, 11), (12, 12), (sharding((4, 6), (inner,)),), regions=some)
    innermost = sharding((1, 3), index_codecs=(BIG,))
    write("sharding/nested-twice", "int32", (9, 13), (8, 12), (sharding((4, 6), (sharding((2, 6), (innermost,)),)),))
    rewritten = tuple(np.s_[row : row + 1] for row in range(7))
    chain = sharding((2, 3), (LITTLE, codec("gzip", level=9)))
    write("sharding/written-row-by-row", "int32", (7, 5), (8, 6), (chain,), regions=rewritten)


def data_types() -> None:
    fills: dict[str, tuple[Any, ...]] = {"bool": (False, True)}
    for size in (8, 16, 32, 64):
        fills |= {f"int{size}": (-(2 ** (size - 1)),), f"uint{size}": (2**size - 1,)}
    for size in (16, 32, 64):
        fills[f"float{size}"] = (0.5, "NaN", "Infinity", "-Infinity")
    for size in (64, 128):
        fills[f"complex{size}"] = ([1.5, -2.0],)
    for dtype, values in fills.items():
        for number, fill in enumerate(values):
            single = dtype in ("bool", "int8", "uint8")
            chain = (sharding((2, 5), (codec("bytes") if single else BIG,)),)
            written = (np.s_[0:2], np.s_[4:7])
            write(f"types/{dtype}-fill-{number}", dtype, (7, 5), (8, 5), chain, regions=written, fill=fill)
    for dtype in (*SMALL_FLOATS, "int2", "int4"):
        # This release reads a float8_e8m0fnu fill value of 1.0 as 2**-64, so every element of that type is written.
        plain = LITTLE if dtype == "bfloat16" else codec("bytes")
        part = (...,) if dtype == "float8_e8m0fnu" else (np.s_[0:2], np.s_[4:7])
        write(f"types/{dtype}", dtype, (17, 16), (17, 16), (plain,), fill=1.0 if "float" in dtype else 1)
        fill: Any = 1.0 if "float" in dtype else -1
        write(f"types/{dtype}-sharded", dtype, (7, 5), (8, 5), (sharding((2, 5), (plain,)),), regions=part, fill=fill)
    write("types/bfloat16-big", "bfloat16", (7, 5), (4, 5), (BIG,), fill=0.0)


def shapes() -> None:
    write("shapes/scalar", "float64", (), (), fill=2.5)
    write("shapes/scalar-sharded", "int32", (), (), (sharding(()),))
    write("shapes/zero-length", "int16", (3, 0, 2), (2, 1, 2))
    write("shapes/chunk-larger-than-array", "int16", (3, 2), (10, 20))
    write("shapes/some-chunks", "int16", (7, 5), (2, 2), fill=-1, regions=(np.s_[2:3, 1:4],))
    for name in ("default", "v2"):
        for label, separator in {"slash": "/", "dot": "."}.items():
            keys = {"chunk_key_encoding": codec(name, separator=separator)}
            write(f"keys/{name}-{label}", "int16", (3, 5), (3, 3), **keys)
            write(f"keys/{name}-{label}-scalar", "int16", (), (), fill=3, **keys)
    write(
        "shapes/named",
        "int16",
        (7, 5),
        (7, 5),
        dimension_names=["Zeit ⏱", None],
        attributes={"Größe": "2 µm", "list": [1, 2.5, None, True]},
    )


if __name__ == "__main__":
    codecs()
    shards()
    data_types()
    shapes()
    MANIFEST.save()
