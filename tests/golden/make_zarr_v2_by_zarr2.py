"""Write the golden files of Zarr v2 with zarr-python 2.18, the last line of releases made for that format.

Python 3.11, which zarr 2.18.7 asks for, in an environment of its own::

    pip install zarr==2.18.7 numcodecs==0.15.1 numpy==1.26.4 msgpack==1.2.4 crc32c==2.9.post0 zfpy==1.0.1 pcodec==1.1.0
    python tests/golden/make_zarr_v2_by_zarr2.py

That writes ``data/zarr-python-2.18.7/``, the expected elements and the entries of ``manifest_old.json``; the same on
every run. Then ``note_old_readers.py`` is to be run as it says.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numcodecs
import numpy as np
import zarr
import zarr2_layouts
from golden_files_old import objects, same_elements, samples
from numcodecs import JSON, LZ4, LZMA, Blosc, Delta, FixedScaleOffset, GZip, MsgPack, Shuffle, Zlib, Zstd
from zarr2_case import CHUNKS, MANIFEST, POINT, SHAPE, TEXTS, TOP_AND_BOTTOM, write

CONTENTS = [b"", b"a", b"\0\xff\0", bytes(range(20))]
ANYTHING = [None, True, 7, -2.5, "Zürich", [1, [2, "x"]], {"a": {"b": None}}]
ELEMENTS_IN_C_ORDER = (
    "json2 and msgpack2 hold the elements in C order with the shape of the chunk; zarr-python 2.18 takes them as if "
    "they were in F order and reads others_read"
)


def numbers() -> None:
    """Every number type in both byte orders, several fill values, with a row of chunks missing."""
    plain: list[tuple[str, list[Any]]] = [("|b1", [False, True])]
    for size in (1, 2, 4, 8):
        for sign, order in itertools.product("iu", "<>" if size > 1 else "|"):
            limits = np.iinfo(f"{sign}{size}")
            plain.append((f"{order}{sign}{size}", [int(limits.max), int(limits.min) or 1]))
    for size, order in itertools.product((2, 4, 8), "<>"):
        fills = [math.nan, math.inf] if order == "<" else [-math.inf, 0.1]
        plain.append((f"{order}f{size}", fills))
    for size, order in itertools.product((8, 16), "<>"):
        fills = [complex(1.5, -2), complex(math.nan, -math.inf)] if order == "<" else [complex(math.inf, -0.5)]
        plain.append((f"{order}c{size}", fills))
    compressors = itertools.cycle([None, Blosc(cname="lz4", clevel=5), Zlib(level=1), Zstd(level=1)])
    for dtype, fills in plain:
        for number, fill in enumerate(fills):
            write(
                f"types/{label(dtype)}-fill-{number}",
                dtype,
                chunks=(2, 5),
                regions=TOP_AND_BOTTOM,
                fill=fill,
                order="CF"[number],
                compressor=next(compressors),
            )


def label(dtype: str) -> str:
    """A data type in a file name."""
    return dtype[1:].lower() + {"<": "-little", ">": "-big", "|": ""}[dtype[0]]


def times() -> None:
    """Dates and time spans in every unit and in multiples of units; NaT and other fill values."""
    nat = np.datetime64("NaT")
    for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "10us", "25s"):
        for sign, order in (("M", "<"), ("m", ">")):
            dtype = f"{order}{sign}8[{unit}]"
            one = np.array(3, dtype="i8").view(f"{sign}8[{unit}]")[()]
            name = f"types/{'time' if sign == 'M' else 'span'}-{unit}-{'little' if order == '<' else 'big'}"
            name = name.replace("-M-", "-month-").replace("-m-", "-minute-")
            write(name, dtype, chunks=(2, 5), regions=TOP_AND_BOTTOM, fill=nat if unit == "ns" else one)
    write("types/time-s-big-fill-nat", ">M8[s]", chunks=(2, 5), regions=TOP_AND_BOTTOM, fill="NaT", order="F")
    write("types/span-s-little-fill-nat", "<m8[s]", chunks=(2, 5), regions=TOP_AND_BOTTOM, fill=np.timedelta64("NaT"))
    write("types/time-ms-fill-zero", "<M8[ms]", chunks=(2, 5), regions=TOP_AND_BOTTOM, compressor=Zlib(level=1))
    write("types/time-ms-fill-null", "<M8[ms]", chunks=(2, 5), regions=TOP_AND_BOTTOM, fill=None)


def texts_and_raw_bytes() -> None:
    """Fixed-length text and bytes."""
    partly: dict[str, Any] = {"chunks": (2, 5), "regions": TOP_AND_BOTTOM}
    for number, (dtype, fill) in enumerate(
        [
            ("|S1", 0),
            ("|S5", b"ab\xff"),
            ("|S12", b"fill \0 inside"[:12]),
            ("|S5", None),
            ("<U1", "ß"),
            ("<U6", "Zürich"),
            (">U6", "日本"),
            ("<U6", 0),
            (">U6", ""),
            ("<U6", None),
            ("|V1", b"\xfe"),
            ("|V3", b"\1\2\3"),
            ("|V3", 0),
            ("|V3", None),
            ("|V16", bytes(range(16))),
        ]
    ):
        name = f"types/{label(dtype)}-{'null' if fill is None else number}"
        about = "the base64 text holds 3 bytes, not 5: zarr-python drops zeros at the end" if fill == b"ab\xff" else ""
        write(name, dtype, fill=fill, order="CF"[number % 2], about=about, **partly)
    write("types/s5-zstd", "|S5", compressor=Zstd(level=1))
    write("types/u6-big-blosc", ">U6", compressor=Blosc(cname="lz4hc"))
    write(
        "types/u6-fill-too-long",
        "<U6",
        fill="0123456789",
        about="the fill value of the document is longer than the type and is cut when it is used",
        **partly,
    )


STRUCTURES: dict[str, Any] = {
    "point": POINT,
    "colour": [("r", "|u1"), ("g", "|u1"), ("b", "|u1")],
    "one-field": [("only", ">i2")],
    "sub-arrays": [("x", "<f4"), ("y", "<f4"), ("z", "<f4", (2, 2)), ("w", ">u2", 3)],
    "nested": [("foo", "<f4"), ("bar", [("baz", ">f4"), ("qux", "<i4")])],
    "nested-sub-arrays": [("id", "|u1"), ("corners", [("x", ">i2"), ("label", "|S2", (2,))], (2,))],
    "all-kinds": [
        ("flag", "|b1"),
        ("z", "<c8"),
        ("when", ">M8[10us]"),
        ("for", "<m8[D]"),
        ("code", "|S3"),
        ("name", ">U4"),
        ("raw", "|V3"),
        ("half", "<f2"),
    ],
    "field-names": [("größe", "<i4"), ("with space", "|u1"), ("a.b/c", "|i1")],
}


def structures() -> None:
    """Structured types: fill value null, zero and another, both orders of the chunk."""
    for name, fields in STRUCTURES.items():
        dtype = np.dtype(fields)
        filled = samples(dtype, (7,))[5]
        write(f"structures/{name}", dtype, chunks=(2, 5), regions=TOP_AND_BOTTOM, fill=None)
        write(
            f"structures/{name}-filled",
            dtype,
            chunks=(2, 5),
            regions=TOP_AND_BOTTOM,
            fill=filled.astype(dtype),
            order="F",
            compressor=Zlib(level=1),
        )
    write("structures/point-fill-zero", np.dtype(POINT), chunks=(2, 5), regions=TOP_AND_BOTTOM)
    write("structures/point-fill-tuple", np.dtype(POINT), chunks=(2, 5), regions=TOP_AND_BOTTOM, fill=(-3, 1.5))
    write(
        "structures/point-blosc", np.dtype(POINT), compressor=Blosc(cname="zstd", shuffle=Blosc.BITSHUFFLE), fill=None
    )
    write("structures/point-shuffle-filter", np.dtype(POINT), filters=[Shuffle(elementsize=12)], fill=None)
    write("structures/point-scalar", np.dtype(POINT), (), chunks=(), fill=None)
    padding()
    name, values = "structures/whole-array-of-sub-arrays", samples("<i4", (7, 2))
    store = zarr.DirectoryStore(MANIFEST.path(name))
    array = zarr.create(shape=7, dtype="(2,)i4", chunks=3, fill_value=-1, compressor=None, store=store)
    array[...] = values
    assert same_elements(array[...], values, "int32")
    about = "a sub-array as the type of the whole array becomes a dimension"
    MANIFEST.array(name, "2", values, "int32", np.array(-1, "i4"), about=about)


def padding() -> None:
    """An aligned NumPy type: its padding becomes a field of the document with an empty name."""
    name, fields = "structures/padding", [("n", "|u1"), ("", "|V7"), ("x", "<f8")]
    values = samples(np.dtype(fields), SHAPE)
    store = zarr.DirectoryStore(MANIFEST.path(name))
    aligned = np.dtype([("n", "|u1"), ("x", "<f8")], align=True)
    zarr.create(shape=SHAPE, chunks=CHUNKS, dtype=aligned, fill_value=None, compressor=None, store=store)
    array = zarr.open_array(store, mode="r+")
    array[...] = values
    assert same_elements(array[...], values, "padding")
    about = 'made with an aligned NumPy type: the padding is a field with the name "", which NumPy calls f1'
    MANIFEST.array(name, "2", values, str(values.dtype), None, about=about)


def compressors() -> None:
    """Every compressor of numcodecs, and every option of blosc."""
    for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for how, shuffle in {"auto": -1, "none": 0, "byte": 1, "bit": 2}.items():
            blosc = Blosc(cname=cname, clevel=5, shuffle=shuffle)
            write(f"compressors/blosc-{cname}-{how}", "<i4", (16, 10), chunks=(16, 10), compressor=blosc)
    write("compressors/blosc-auto-one-byte", "|u1", (16, 10), chunks=(16, 10), compressor=Blosc(shuffle=-1))
    write("compressors/blosc-auto-eight-bytes", ">f8", (9, 10), chunks=(9, 10), compressor=Blosc(shuffle=-1))
    write("compressors/blosc-level-0", "<i4", compressor=Blosc(clevel=0))
    write("compressors/blosc-level-9", "<i4", compressor=Blosc(cname="zstd", clevel=9), order="F")
    write("compressors/blosc-blocks", "<u2", (40, 25), chunks=(40, 25), compressor=Blosc(blocksize=512))
    others: dict[str, Any] = {
        "none": None,
        "zlib-0": Zlib(level=0),
        "zlib-1": Zlib(level=1),
        "zlib-9": Zlib(level=9),
        "gzip-1": GZip(level=1),
        "gzip-9": GZip(level=9),
        "bz2-1": numcodecs.BZ2(level=1),
        "bz2-9": numcodecs.BZ2(level=9),
        "lzma": LZMA(),
        "lzma-preset": LZMA(preset=1, check=4),
        "lzma-alone": LZMA(format=2),
        "lzma-raw": LZMA(format=3, filters=[{"id": 3, "dist": 4}, {"id": 0x21, "preset": 1}]),
        "lzma-delta": LZMA(filters=[{"id": 3, "dist": 4}, {"id": 0x21, "preset": 1}]),
        "lz4": LZ4(),
        "lz4-fast": LZ4(acceleration=10),
        "zstd-0": Zstd(),
        "zstd-19": Zstd(level=19),
        "zstd-checksum": Zstd(level=1, checksum=True),
        "zstd-minus-5": Zstd(level=-5),
        "shuffle": Shuffle(elementsize=4),
        "delta": Delta(dtype="<i4"),
        "base64": numcodecs.Base64(),
        "adler32": numcodecs.Adler32(),
        "crc32": numcodecs.CRC32(),
        "crc32c": numcodecs.checksum32.CRC32C(),
        "fletcher32": numcodecs.Fletcher32(),
        "jenkins": numcodecs.JenkinsLookup3(initval=7, prefix=b"ab"),
    }
    needs = {"crc32c": ("crc32c",)}
    for number, (name, compressor) in enumerate(others.items()):
        about = {
            "shuffle": "not a compressor, but it may stand in that member",
            "lzma-delta": "numcodecs encodes xz with filters but refuses to decode it; xz itself says which filters",
        }.get(name, "")
        if name == "jenkins":  # a prefix is bytes, which the document cannot hold
            compressor = numcodecs.JenkinsLookup3(initval=7)
        order = "CF"[number % 2]
        write(
            f"compressors/{name}",
            "<i4",
            compressor=compressor,
            order=order,
            about=about,
            needs=needs.get(name, ()),
            unreadable=name == "lzma-delta",
        )
    write("compressors/packbits", "|b1", compressor=numcodecs.PackBits())
    write("compressors/pcodec", "<i4", compressor=numcodecs.pcodec.PCodec(), needs=("pcodec",))
    exact = numcodecs.zfpy.ZFPY()  # the default mode loses nothing
    values = samples("<i4", SHAPE).astype("f8")
    write("compressors/zfpy", "<f8", values=values, compressor=exact, needs=("zfpy",), fill=1.0)


def filters() -> None:
    """Every filter of numcodecs, alone and stacked, in both orders, with and without a compressor."""
    ramp = (np.arange(35).reshape(SHAPE) * 3 - 20).astype("i4")
    reals = np.linspace(-4, 9, 35).reshape(SHAPE).astype("f8")
    words = np.array([["", "red", "größer"][i % 3] for i in range(35)], dtype="<U6").reshape(SHAPE)
    chains: dict[str, tuple[Any, str, list[Any], bool]] = {
        "delta": (ramp, "<i4", [Delta("<i4")], False),
        "delta-smaller": (ramp, "<i4", [Delta("<i4", astype="i1")], False),
        "delta-big": (ramp, ">i4", [Delta(">i4", astype=">i2")], False),
        "delta-float": (ramp.astype("f8"), "<f8", [Delta("<f8", astype="<f4")], False),
        "scale-offset": (reals, "<f8", [FixedScaleOffset(offset=-4, scale=10, dtype="<f8", astype="|u1")], True),
        "scale-offset-big": (reals, ">f8", [FixedScaleOffset(offset=-4, scale=100, dtype=">f8", astype=">u2")], True),
        "scale-offset-exact": (ramp, "<i4", [FixedScaleOffset(offset=-20, scale=1, dtype="<i4", astype="u1")], False),
        "quantize": (reals, "<f8", [numcodecs.Quantize(digits=1, dtype="<f8")], True),
        "quantize-smaller": (reals, "<f8", [numcodecs.Quantize(digits=2, dtype="<f8", astype="<f4")], True),
        "astype": (ramp, "<i4", [numcodecs.AsType(encode_dtype="<i2", decode_dtype="<i4")], False),
        "astype-big": (ramp, ">i4", [numcodecs.AsType(encode_dtype="<i8", decode_dtype=">i4")], False),
        "packbits": (ramp % 2 == 0, "|b1", [numcodecs.PackBits()], False),
        "bitround": (reals, "<f8", [numcodecs.BitRound(keepbits=8)], True),
        "bitround-single": (reals.astype("f4"), "<f4", [numcodecs.BitRound(keepbits=4)], True),
        "shuffle": (ramp, "<i4", [Shuffle(elementsize=4)], False),
        "categorize": (words, "<U6", [numcodecs.Categorize(["red", "größer"], dtype="<U6")], False),
        "categorize-big": (words, ">U6", [numcodecs.Categorize(["größer", "red"], dtype=">U6", astype=">u2")], False),
        "adler32": (ramp, "<i4", [numcodecs.Adler32()], False),
        "crc32": (ramp, "<i4", [numcodecs.CRC32()], False),
        "crc32-at-end": (ramp, "<i4", [numcodecs.CRC32(location="end")], False),
        "crc32c": (ramp, "<i4", [numcodecs.checksum32.CRC32C()], False),
        "crc32c-at-start": (ramp, "<i4", [numcodecs.checksum32.CRC32C(location="start")], False),
        "fletcher32": (ramp, "<i4", [numcodecs.Fletcher32()], False),
        "jenkins": (ramp, "<i4", [numcodecs.JenkinsLookup3()], False),
        "base64": (ramp, "<i4", [numcodecs.Base64()], False),
        "zlib": (ramp, "<i4", [Zlib(level=1)], False),
        "delta-shuffle": (ramp, "<i4", [Delta("<i4"), Shuffle(elementsize=4)], False),
        "delta-crc32": (ramp, ">i4", [Delta(">i4", astype=">i2"), numcodecs.CRC32()], False),
        "scale-offset-delta": (
            reals,
            "<f8",
            [FixedScaleOffset(offset=-4, scale=10, dtype="<f8", astype="<i2"), Delta("<i2", astype="|i1")],
            True,
        ),
        "quantize-bitround": (reals, "<f8", [numcodecs.Quantize(2, "<f8"), numcodecs.BitRound(keepbits=12)], True),
        "astype-delta-fletcher32": (
            ramp,
            "<i4",
            [numcodecs.AsType("<i2", "<i4"), Delta("<i2"), numcodecs.Fletcher32()],
            False,
        ),
        "packbits-crc32-zlib": (ramp % 3 == 0, "|b1", [numcodecs.PackBits(), numcodecs.CRC32(), Zlib(level=1)], False),
    }
    for number, (name, (values, dtype, chain, lossy)) in enumerate(chains.items()):
        fill = "" if dtype.endswith("U6") else False if dtype == "|b1" else values.reshape(-1)[3]
        needs = ("crc32c",) if "crc32c" in name else ()
        for order in "CF":
            compressor = [None, Zlib(level=1), Blosc(cname="lz4")][(number + (order == "F")) % 3]
            write(
                f"filters/{name}-{order}",
                dtype,
                values=values,
                filters=chain,
                order=order,
                compressor=compressor,
                fill=fill,
                lossy=lossy,
                needs=needs,
            )


def texts_and_contents() -> None:
    """``|O`` with vlen-utf8, vlen-bytes and categorize."""
    texts, contents = objects(TEXTS, (7,)), objects(CONTENTS, (7,))
    square = objects(TEXTS, SHAPE)
    utf8, raw = numcodecs.VLenUTF8(), numcodecs.VLenBytes()
    string: dict[str, Any] = {"dtype": object, "kind": "string", "object_codec": utf8, "fill": ""}
    octets: dict[str, Any] = {"dtype": object, "kind": "bytes", "object_codec": raw, "fill": None}
    for name, compressor in {"none": None, "blosc": Blosc(), "zstd": Zstd(level=1), "lz4": LZ4()}.items():
        write(f"objects/utf8-{name}", values=texts, chunks=(3,), compressor=compressor, **string)
        write(f"objects/bytes-{name}", values=contents, chunks=(3,), compressor=compressor, **octets)
    write("objects/utf8-2d", values=square, compressor=Zlib(level=1), **string)
    write("objects/utf8-2d-F", values=square, order="F", **string)
    write("objects/bytes-2d-F", values=objects(CONTENTS, SHAPE), order="F", **octets)
    write("objects/utf8-missing", values=texts, chunks=(2,), regions=(np.s_[0:3],), **string | {"fill": "fehlt ∅"})
    write("objects/utf8-missing-null", values=texts, chunks=(2,), regions=(np.s_[0:3],), **string | {"fill": None})
    write("objects/bytes-missing-null", values=contents, chunks=(2,), regions=(np.s_[0:3],), **octets)
    write("objects/utf8-scalar", values=objects(TEXTS[2:], ()), chunks=(), **string)
    write("objects/utf8-zero-length", values=objects(TEXTS, (0, 3)), chunks=(2, 3), **string)
    write("objects/utf8-crc32", values=texts, chunks=(3,), filters=[numcodecs.CRC32()], **string)
    write("objects/utf8-zlib-filter", values=texts, chunks=(3,), filters=[Zlib(level=1)], compressor=Blosc(), **string)
    about = "dtype=str: the fill value is the number 0, stored chunks have empty texts in its place"
    write(
        "objects/utf8-fill-number",
        values=objects(TEXTS, (6,)),
        chunks=(3,),
        regions=(np.s_[0:3], np.s_[3:5]),
        about=about,
        **string | {"fill": 0, "dtype": str},
    )
    write(
        "objects/bytes-fill-number", values=contents, chunks=(3,), about=about, **octets | {"fill": 0, "dtype": bytes}
    )
    disputed = "zarr-python reads the number 0 in chunks that are not stored, and the empty text in those that are"
    write(
        "objects/utf8-fill-number-missing",
        values=texts,
        chunks=(2,),
        regions=(np.s_[0:3],),
        disputed=disputed,
        **string | {"fill": 0},
    )
    colours = objects(["red", "größer", ""], (7,))
    categorize = numcodecs.Categorize(["red", "größer"], dtype=object)
    write("objects/categorize", object, values=colours, kind="string", object_codec=categorize, chunks=(3,), fill="")


def any_objects() -> None:
    """``|O`` with vlen-array, json2, msgpack2 and pickle."""
    for inner in ("<i4", ">i2", "<f8", "|u1"):
        arrays = [samples(inner, (length,)) for length in (3, 0, 1, 5)]
        write(
            f"objects/array-{label(inner)}",
            object,
            values=objects(arrays, (7,)),
            kind="object",
            object_codec=numcodecs.VLenArray(inner),
            chunks=(3,),
            fill=None,
            compressor=Zlib(level=1),
        )
    codecs = {"json": JSON(), "msgpack": MsgPack(), "pickle": numcodecs.Pickle(), "pickle-4": numcodecs.Pickle(4)}
    for name, codec in codecs.items():
        needs = ("msgpack",) if "msgpack" in name else ()
        common: dict[str, Any] = {"kind": "object", "object_codec": codec, "needs": needs}
        write(f"objects/{name}-text", object, values=objects(TEXTS, (7,)), chunks=(3,), fill="", **common)
        write(
            f"objects/{name}-anything",
            object,
            values=objects(ANYTHING, (9,)),
            chunks=(4,),
            fill=None,
            compressor=Zlib(level=1),
            **common,
        )
        write(f"objects/{name}-2d", object, values=objects(ANYTHING[:5], SHAPE), fill="-", **common)
        write(
            f"objects/{name}-missing",
            object,
            values=objects([1, "x"], (7,)),
            chunks=(2,),
            regions=(np.s_[0:3],),
            fill=42,
            **common,
        )
        disputed = "" if "pickle" in name else ELEMENTS_IN_C_ORDER
        write(
            f"objects/{name}-2d-F",
            object,
            values=objects([1, 2, 3, "x", "y", None, [4]], SHAPE),
            fill=0,
            order="F",
            disputed=disputed,
            **common,
        )
    write(
        "objects/msgpack-bytes",
        object,
        values=objects([b"ab", {"k": b"\xff"}], (3,)),
        chunks=(2,),
        fill=None,
        kind="object",
        object_codec=MsgPack(),
        needs=("msgpack",),
    )


if __name__ == "__main__":
    numbers()
    times()
    texts_and_raw_bytes()
    structures()
    compressors()
    filters()
    texts_and_contents()
    any_objects()
    zarr2_layouts.layouts()
    zarr2_layouts.resized()
    zarr2_layouts.attributes()
    zarr2_layouts.hierarchies()
    MANIFEST.save()
