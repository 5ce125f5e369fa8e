"""Any array that zardine can hold, and any selection of it, as hypothesis strategies; and how to compare bit by bit."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

import zardine
from zardine.data_types import data_type_for

RECORD = np.dtype([("x", "<i2"), ("y", "<f8"), ("name", "<U2"), ("raw", "V3")])
NESTED_RECORD = np.dtype([("a", "u1"), ("b", [("c", "<c8"), ("d", "?")])])

DTYPES: tuple[Any, ...] = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
    *("U3", "S3", "V5", "r24", "datetime64[ns]", "datetime64[10s]", "timedelta64[D]"),
    *(RECORD, NESTED_RECORD, "string", "bytes"),
)

NATIVE_DTYPES: tuple[Any, ...] = (
    *("bool", "int8", "uint8", "V1", "r8", "int16", "uint16", "float16", "r24", "V3", "S3", "V5"),
    *("int32", "uint32", "float32", "int64", "uint64", "float64", "complex64", "complex128", "U3", "r128", "V16"),
    *("datetime64[ns]", "datetime64[10s]", "timedelta64[D]", np.dtype([("x", "<i2"), ("y", "<f8"), ("z", "<c8")])),
)
"""What the native kernel can decode and encode, with the right codecs."""

TEXTS = ("", "a", "é", "\U0001f41f", "b\0", "\0", "longer text", "NaN")


def random_values(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Values whose bits are random, so that NaN payloads, -0.0, NaT and padding occur."""
    count = prod(shape)
    if dtype.kind == "T":
        return np.array([TEXTS[i] for i in rng.integers(len(TEXTS), size=count)], object).astype(dtype).reshape(shape)
    if dtype.kind == "O":
        values = np.empty(count, object)
        for i in range(count):
            values[i] = TEXTS[int(rng.integers(len(TEXTS)))].encode()
        return values.reshape(shape)
    if dtype.names is not None:
        values = np.empty(shape, dtype)
        for name in dtype.names:
            values[name] = random_values(dtype[name], shape, rng)
        return values
    if dtype.kind == "b":
        return rng.integers(0, 2, size=shape).astype(bool)
    if dtype.kind == "U":
        choices = np.array(["", "a", "é", "\U0001f41f", "ab\0c"], dtype)
        return np.asarray(choices[rng.integers(len(choices), size=shape)])
    return np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).reshape(shape).copy()


def same_bits(got: Any, want: Any) -> None:
    """Fail unless both are equal in shape, dtype and every bit."""
    if isinstance(got, (str, bytes)) and isinstance(want, (str, bytes)):
        assert (type(got), got) == (type(want), want)  # elements of variable length
        return
    if isinstance(want, np.ndarray) and want.shape == () and want.dtype.kind in "OTUS":
        got = np.array(got, want.dtype)  # a single element may come as itself
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    if got.dtype.names is not None:
        for name in got.dtype.names:  # not the gaps between fields
            same_bits(got[name], want[name])
    elif got.dtype.kind in "OT":
        assert got.tolist() == want.tolist()
    elif got.tobytes() != want.tobytes():
        np.testing.assert_array_equal(got, want)
        raise AssertionError(f"equal values, other bits:\n{got!r}\n{want!r}")


@dataclass
class Layout:
    """What :func:`zardine.create` needs for one array, apart from the store."""

    arguments: dict[str, Any]
    fill: Any
    """The fill value, or ``None`` for the default."""
    elements: np.ndarray[Any, Any]
    """One value for each element of the array."""

    def create(self, store: Any = None, **more: Any) -> zardine.Array:
        """The array, empty."""
        extra = {} if self.fill is None else {"fill_value": self.fill}
        return zardine.create(store=store, **self.arguments, **extra, **more)

    def model(self, array: zardine.Array) -> np.ndarray[Any, Any]:
        """A NumPy array of the fill value."""
        model = np.empty(array.shape, array.dtype)
        model[...] = array.metadata.fill
        return model


@st.composite
def inner_codecs(draw: st.DrawFn, dtype: np.dtype[Any], shape: tuple[int, ...]) -> list[dict[str, Any]]:
    """A codec chain for chunks of ``shape``, without sharding."""
    chain: list[dict[str, Any]] = draw(filters(dtype, len(shape)))
    encoded = chain[-1].get("encodes_to", dtype) if chain else dtype
    if draw(st.integers(0, 3)) == 0:
        chain.append({"name": "reshape", "configuration": {"shape": [prod(shape)]}})
    if encoded.kind == "T":
        chain.append({"name": "vlen-utf8"})
    elif encoded.kind == "O":
        chain.append({"name": "vlen-bytes"})
    elif encoded.kind == "b" and draw(st.booleans()):
        padding = draw(st.sampled_from(["none", "first_byte", "last_byte"]))
        chain.append({"name": "packbits", "configuration": {"padding_encoding": padding}})
    else:
        chain.append({"name": "bytes", "configuration": {"endian": draw(st.sampled_from(["little", "big"]))}})
    chain += draw(byte_codecs())
    return [{name: value for name, value in codec.items() if name != "encodes_to"} for codec in chain]


@st.composite
def native_codecs(draw: st.DrawFn, dtype: np.dtype[Any], ndim: int) -> list[dict[str, Any]]:
    """A codec chain that the native kernel can run: all that it knows, checksums inside and outside."""
    chain = draw(filters(dtype, ndim, casts=False))
    endian = "little" if dtype.names else draw(st.sampled_from(["little", "big"]))
    checksums = st.sampled_from([0, 0, 1, 2]).map(lambda count: [{"name": "crc32c"}] * count)
    compressor = draw(st.one_of(st.just([]), st.sampled_from(["gzip", "zstd"]).flatmap(_compressors), _bloscs()))
    chain = [*chain, {"name": "bytes", "configuration": {"endian": endian}}]
    chain += [*draw(checksums), *compressor, *draw(checksums)]
    return [{name: value for name, value in codec.items() if name != "encodes_to"} for codec in chain]


def _compressors(name: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    levels = st.integers(0, 9) if name == "gzip" else st.sampled_from([-7, 0, 1, 3, 12])
    more = {} if name == "gzip" else {"checksum": st.booleans()}
    return st.fixed_dictionaries({"level": levels, **more}).map(lambda each: [{"name": name, "configuration": each}])


def _bloscs() -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.fixed_dictionaries(
        {
            "cname": st.sampled_from(["lz4", "lz4hc", "blosclz", "zstd", "zlib", "snappy"]),
            "clevel": st.integers(0, 9),
            "shuffle": st.sampled_from(["noshuffle", "shuffle", "bitshuffle"]),
            "typesize": st.sampled_from([1, 2, 3, 4, 8, 16, 24, 255, 300]),
            "blocksize": st.sampled_from([0, 0, 0, 100, 512, 4096]),
        }
    ).map(lambda configuration: [{"name": "blosc", "configuration": configuration}])


@st.composite
def filters(draw: st.DrawFn, dtype: np.dtype[Any], ndim: int, casts: bool = True) -> list[dict[str, Any]]:
    """Up to two ``array -> array`` codecs that lose nothing: transposes, and (``casts``) one to a wider integer."""
    chain: list[dict[str, Any]] = []
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        wide = {"i": "int64", "u": "uint64"}.get(dtype.kind) if casts else None
        if wide is not None and draw(st.booleans()):
            codec = {"name": "cast_value", "configuration": {"data_type": wide}}
            chain.append({**codec, "encodes_to": np.dtype(wide)})
            dtype = np.dtype(wide)
        else:
            order = draw(st.permutations(range(ndim)))
            chain.append({"name": "transpose", "configuration": {"order": list(order)}, "encodes_to": dtype})
    return chain


@st.composite
def byte_codecs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Up to two ``bytes -> bytes`` codecs."""
    known: list[dict[str, Any]] = [
        {"name": "crc32c"},
        {"name": "gzip", "configuration": {"level": 1}},
        {"name": "zstd", "configuration": {"level": 1, "checksum": True}},
        {
            "name": "blosc",
            "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 2, "blocksize": 0},
        },
        {"name": "numcodecs.zlib", "configuration": {"level": 1}},
    ]
    return draw(st.lists(st.sampled_from(known), max_size=2))


def _forwards(sizes: tuple[int, ...], chain: list[dict[str, Any]]) -> tuple[int, ...]:
    """``sizes`` in the axis order that ``chain`` gives, from the order that it takes."""
    for codec in chain:
        if codec["name"] == "transpose":
            sizes = tuple(sizes[axis] for axis in codec["configuration"]["order"])
    return sizes


LARGE = (1, 300, 12, 4, 3, 2)
"""By number of dimensions: how many times larger large chunks are along each axis."""


@st.composite
def layouts(draw: st.DrawFn, dtypes: tuple[Any, ...] = DTYPES, max_ndim: int = 5, *, native: bool = False) -> Layout:
    """Any shape, data type, grid, chain of codecs, sharding and fill value.

    ``native``: only what the native kernel can run; chunks may be so large that it pays to compress them.
    """
    named = draw(st.sampled_from(dtypes))
    data_type = data_type_for(named)
    dtype = data_type.dtype
    ndim = draw(st.integers(0, max_ndim))
    large = draw(st.sampled_from([1, LARGE[ndim]])) if native else 1
    longest = large * (0, 20, 9, 6, 4, 3)[ndim]
    shape = tuple(draw(st.lists(st.integers(0, longest), min_size=ndim, max_size=ndim)))
    inner = tuple(draw(st.lists(st.integers(large, 3 * large), min_size=ndim, max_size=ndim)))
    depth = draw(st.sampled_from([0, 1, 1] if native else [0, 0, 1, 1, 1, 2]))
    sizes, chain = inner, None
    encoded = dtype
    outer_filters: list[dict[str, Any]] = []
    if depth:
        outer_filters = draw(filters(dtype, ndim, casts=not native))
        encoded = outer_filters[-1]["encodes_to"] if outer_filters else dtype
        sizes = _forwards(sizes, outer_filters)
    chain = draw(native_codecs(encoded, ndim) if native else inner_codecs(encoded, sizes))
    for _ in range(depth):
        index = [{"name": "bytes", "configuration": {"endian": draw(st.sampled_from(["little", "big"]))}}]
        if draw(st.booleans()):
            index.append({"name": "crc32c"})
        location = draw(st.sampled_from(["start", "end"]))
        configuration = {"chunk_shape": list(sizes), "codecs": chain, "index_codecs": index, "index_location": location}
        chain = [{"name": "sharding_indexed", "configuration": configuration}]
        times = tuple(draw(st.lists(st.integers(1, 3), min_size=ndim, max_size=ndim)))
        sizes = tuple(size * n for size, n in zip(sizes, times, strict=True))
        inner = tuple(size * n for size, n in zip(inner, _backwards(times, outer_filters), strict=True))
        if not native and draw(st.integers(0, 4)) == 0:
            chain += draw(byte_codecs())
    chain = [
        *({key: value for key, value in each.items() if key != "encodes_to"} for each in outer_filters),
        *chain,
    ]
    grid: Any = inner
    varied = not any(codec["name"] == "reshape" for codec in chain)  # a reshape fits chunks of one size only
    if ndim and varied and draw(st.integers(0, 3)) == 0:
        grid = [
            draw(st.one_of(st.just(size), _chunk_lengths(size, length)))
            for size, length in zip(inner, shape, strict=True)
        ]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    fill = None
    if draw(st.booleans()):
        fill = random_values(dtype, (1,), rng)[0]
    elements = random_values(dtype, shape, rng)
    if native and elements.size and draw(st.booleans()):  # what compresses: runs of few values
        runs = np.arange(elements.size) // int(rng.integers(1, 40)) % int(rng.integers(1, 6))
        elements = elements.reshape(-1)[runs % elements.size].reshape(shape)
    if draw(st.booleans()):
        elements[rng.random(shape) < 0.7] = data_type.default_fill() if fill is None else fill
    arguments = {
        "shape": shape,
        "dtype": named,
        "chunks": grid,
        "codecs": chain,
        "chunk_key_encoding": draw(
            st.sampled_from([None, ("default", "."), ("default", "/"), ("v2", "."), ("v2", "/")])
        ),
        "order": draw(st.sampled_from(["C", "F"])),
        "write_empty_chunks": draw(st.booleans()),
    }
    return Layout(arguments, fill, elements)


def _backwards(times: tuple[int, ...], chain: list[dict[str, Any]]) -> tuple[int, ...]:
    """The reverse of :func:`_forwards`."""
    for codec in reversed(chain):
        if codec["name"] == "transpose":
            back = np.argsort(codec["configuration"]["order"])
            times = tuple(times[axis] for axis in back)
    return times


@st.composite
def _chunk_lengths(draw: st.DrawFn, size: int, length: int) -> list[int]:
    """Multiples of ``size`` that add up to at least ``length``."""
    lengths = [size * n for n in draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))]
    while sum(lengths) < length:
        lengths.append(size)
    return lengths


# selections: each strategy gives what the user writes, and an index that means the same to NumPy


def slices(length: int) -> st.SearchStrategy[slice]:
    """Any slice but one of step 0, also far out of range."""
    bound = st.one_of(st.none(), st.integers(-length - 3, length + 3))
    step = st.sampled_from([None, 1, 1, 2, 3, 7, 10**18, 10**30, -1, -2, -3, -(10**18)])
    return st.builds(slice, bound, bound, step)


@st.composite
def basic(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Integers, slices, an ellipsis, fewer items than axes."""
    items = [
        draw(st.one_of(slices(n), st.integers(-n, n - 1)) if n else slices(n), label="item")
        for n in shape[: draw(st.integers(0, len(shape)))]
    ]
    if draw(st.booleans()):
        at = draw(st.integers(0, len(items)))
        tail = len(items) - at  # items after the ellipsis count from the end
        items = [
            *items[:at],
            ...,
            *(draw(slices(n)) for n in (shape[len(shape) - tail :] if tail else ())),
        ]
    index = tuple(items)
    if len(index) == 1 and draw(st.booleans()):
        return index[0], index[0]
    if not shape:  # with an empty tuple NumPy gives a scalar, and puts an array itself into an array of objects
        return index, ...
    return index, index


@st.composite
def orthogonal(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, tuple[Any, tuple[bool, ...]]]:
    """One integer, slice, list or mask for each axis; the index is (lists for ``np.ix_``, which axes vanish)."""
    items, lists, drop = [], [], []
    for n in shape:
        kinds = ["slice", "mask", "list", "int"] if n else ["slice", "mask", "empty"]
        kind = draw(st.sampled_from(kinds))
        item: Any
        if kind == "slice":
            item = draw(slices(n))
            chosen = np.arange(n)[item]
        elif kind == "mask":
            item = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
            chosen = np.flatnonzero(item)
        elif kind == "int":
            item = draw(st.integers(-n, n - 1))
            chosen = np.array([item % n])
        else:
            numbers = draw(st.lists(st.integers(-n, n - 1), max_size=6)) if n else []
            item = draw(st.sampled_from([list, np.array]))(numbers)
            chosen = np.array(numbers, int) % max(n, 1)
        items.append(item)
        lists.append(chosen)
        drop.append(kind == "int")
    return tuple(items), (tuple(lists), tuple(drop))


@st.composite
def coordinates(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Integer arrays that broadcast, with repeated and negative indices."""
    count = tuple(draw(st.lists(st.integers(0 if 0 in shape else 1, 4), max_size=2)))
    if 0 in shape:
        count = (0,)
    arrays = []
    for n in shape:
        mine = tuple(1 if each and draw(st.integers(0, 3)) == 0 else each for each in count)
        numbers = st.integers(-n, n - 1) if n else st.nothing()
        flat = draw(st.lists(numbers, min_size=prod(mine), max_size=prod(mine))) if prod(mine) else []
        arrays.append(np.array(flat, np.int64).reshape(mine))
    return tuple(arrays), tuple(arrays)


@st.composite
def masks(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """A boolean array of the shape of the array."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    mask = rng.random(shape) < draw(st.sampled_from([0.0, 0.2, 0.9, 1.0]))
    mask = np.asarray(mask, bool)
    return mask, mask


@st.composite
def blocks(draw: st.DrawFn, sizes: tuple[tuple[int, ...], ...]) -> tuple[Any, Any]:
    """Integers and slices over the grid of objects, whose lengths on each axis are ``sizes``."""
    items, index = [], []
    for lengths in sizes:
        count = len(lengths)
        ends = np.concatenate(([0], np.cumsum(lengths))).astype(int).tolist()
        if count and draw(st.booleans()):
            at = draw(st.integers(-count, count - 1))
            items.append(at)
            first, last = at % count, at % count + 1
        else:
            start = st.one_of(st.none(), st.integers(-count - 1, max(0, count - 1)))  # beyond the grid is an error
            item = slice(draw(start), draw(st.one_of(st.none(), st.integers(-count - 1, count + 1))))
            items.append(item)
            first, last, _ = item.indices(count)
            last = max(first, last)
        index.append(slice(ends[first], ends[last]))
    return tuple(items), tuple(index)


@st.composite
def values_for(draw: st.DrawFn, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Values that broadcast to ``shape``: all of them, one, or some axes of length 1 or missing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["full", "scalar", "some"]))
    if kind == "scalar":
        shape = ()
    elif kind == "some":
        shape = tuple(1 if draw(st.booleans()) else n for n in shape)[draw(st.integers(0, len(shape))) :]
    values = random_values(dtype, shape, rng)
    return values.copy(order=draw(st.sampled_from(["C", "F"])))
