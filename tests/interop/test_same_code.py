"""Code written for zarr-python, run with ``import zardine as zarr`` as well: the same results, unless listed."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr as zarr_python

import zardine


def plain(value: Any) -> Any:
    """A result as something to compare: arrays with dtype and shape, nodes by what they are."""
    if isinstance(value, (np.ndarray, np.generic)):
        return ("values", np.asarray(value).dtype.str, np.shape(value), np.asarray(value).tolist())
    if hasattr(value, "chunks") and hasattr(value, "store"):
        return ("array", value.shape, str(value.dtype), value.chunks, value.shards, plain(value[...]))
    if hasattr(value, "members"):
        return ("group", value.path, {name: plain(node) for name, node in value.members()})
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(each) for each in value)
    return value


def run(body: Any, module: Any, path: Path) -> list[Any]:
    found: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body(module, path, lambda *values: found.extend(plain(value) for value in values))
    return found


def quickstart(zarr: Any, path: Path, note: Any) -> None:
    z = zarr.create_array(store=path / "example-1.zarr", shape=(100, 100), chunks=(10, 10), dtype="f4")
    z[:, :] = np.arange(10000, dtype="f4").reshape(100, 100)
    note(
        z.shape, z.dtype, z.chunks, z.shards, z.nchunks, z.size, z.ndim, z.nbytes, z.fill_value, z.order, z.path, z.name
    )
    note(z[0, :], z[:, 0], z[5, 7], z[20:23, 30:33], z[...], z[-1], z[::7, 3:50:11])
    z2 = zarr.open(path / "example-1.zarr", mode="r")
    note(z2[3, 4], z2.read_only, z2.nchunks_initialized, z2.attrs.asdict())
    root = zarr.group(store=path / "group.zarr")
    root.attrs["description"] = "tin"
    foo = root.create_group(name="foo")
    bar = root.create_array(name="bar", shape=(100, 10), chunks=(10, 10), dtype="f4")
    spam = foo.create_array(name="spam", shape=(10,), dtype="i4")
    bar[:, :] = np.ones((100, 10))
    spam[:] = np.arange(10)
    note(root, sorted(root), len(root), "foo" in root, "foo/spam" in root, "eggs" in root, root["foo/spam"], root.attrs)
    note(root["foo"].name, root["foo"].basename, spam.path, spam.name, spam.basename)
    zarr.save(path / "saved.zarr", np.arange(5))
    note(zarr.load(path / "saved.zarr"))
    zarr.save_group(path / "several.zarr", x=np.arange(3), y=np.zeros((2, 2)))
    note(zarr.open_group(path / "several.zarr", mode="r")["y"])


def creation(zarr: Any, path: Path, note: Any) -> None:
    note(zarr.zeros((3, 4), chunks=(2, 2)), zarr.ones((3, 4), chunks=(2, 2), dtype="i2"), zarr.zeros(5, dtype="?"))
    note(zarr.full((2, 2), fill_value=7, dtype="u1"), zarr.empty((2,), dtype="f8").shape)
    a = zarr.array(np.arange(12).reshape(3, 4), chunks=(2, 3))
    note(a, zarr.zeros_like(a), zarr.ones_like(a), zarr.full_like(a, fill_value=3), zarr.empty_like(a).shape)
    b = zarr.create_array(store={}, data=np.arange(6.0), chunks=(4,))
    note(b, b.filters, b.nchunks)
    c = zarr.create_array(store={}, shape=(8, 8), shards=(4, 4), chunks=(2, 2), dtype="u2", fill_value=3)
    c[1:6, 2:7] = 5
    note(c, c.nchunks, c.cdata_shape, c.fill_value)
    d = zarr.from_array({}, data=c)
    note(d)
    e = zarr.create_array(store={}, shape=10, dtype="int64", chunks=3)
    note(e, e.nchunks)


def selections(zarr: Any, path: Path, note: Any) -> None:
    values = np.arange(15 * 20).reshape(15, 20)
    z = zarr.create_array(store=path / "z", data=values, chunks=(3, 4), shards=(6, 8))
    note(z.oindex[[0, 5, 5, 14], 2:9:3], z.oindex[np.arange(15) % 2 == 0, [1]], z.oindex[3, [1, 2]], z.oindex[..., [0]])
    note(z.vindex[[0, 1, 14], [5, 5, 0]], z.vindex[values % 7 == 0], z.vindex[[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
    note(z.blocks[0, 1], z.blocks[1:, :], z.get_block_selection((0, slice(0, 2))))
    note(z.get_basic_selection((slice(2, 5), 3)), z.get_orthogonal_selection(([1, 2], [3])))
    note(z.get_coordinate_selection(([1, 2], [3, 4])), z.get_mask_selection(values > 290))
    note(z[[1, 2], [3, 4]], z[values > 295], z[2, ...], z[..., 2], z[:, -3:], z[14:2:1], z[()])
    z.oindex[[0, 2], :] = -1
    z.vindex[[5, 6], [7, 8]] = [-2, -3]
    z.blocks[1, 1] = -4
    z.set_mask_selection(values == 299, -5)
    z.set_orthogonal_selection(([14], slice(0, 2)), [[-6, -7]])
    z[10:12, 3] = [-8, -9]
    z[3, :4] = 0
    note(z[...])
    for bad in ((15,), (0, 20), (-16,), (0, 0, 0)):
        try:
            note(z[bad])
        except IndexError:
            note("IndexError")


def types(zarr: Any, path: Path, note: Any) -> None:
    for dtype in ("?", "i1", "u8", "f2", "f8", "c8", "M8[ns]", "m8[s]", "U3", "S4"):
        values = np.zeros(5, dtype)
        values[1:3] = np.array([1, 0]).astype(dtype)
        z = zarr.create_array(store={}, data=values, chunks=(2,))
        note(z.dtype, z[...], z[1:2], z.fill_value if dtype[0] not in "Mm" else None)
    s = zarr.create_array(store={}, shape=(3,), dtype=str, chunks=(2,))
    s[:] = np.array(["a", "öäü", ""])
    note([str(each) for each in s[...]], s.shape)


def changing(zarr: Any, path: Path, note: Any) -> None:
    z = zarr.create_array(store=path / "r", shape=(10, 6), chunks=(4, 4), dtype="i4", fill_value=-1)
    z[:] = np.arange(60).reshape(10, 6)
    z.resize((14, 6))
    note(z.shape, z[9:], z.nchunks)
    note(z.append(np.ones((2, 6), "i4")), z.append(np.zeros((16, 1), "i4"), axis=1), z.shape, z[...])
    z.resize((3, 3))
    note(z[...], z.nchunks_initialized)
    z.attrs["a"] = 1
    z.attrs.update({"b": [1, 2], "c": {"d": None}})
    del z.attrs["a"]
    note(z.attrs.asdict(), dict(z.attrs), len(z.attrs), "b" in z.attrs, z.update_attributes({"e": 1}).attrs.asdict())
    z.attrs.put({"only": True})
    note(zarr.open_array(path / "r", mode="r").attrs.asdict())
    try:
        zarr.open_array(path / "r", mode="r")[0] = 1
    except ValueError:
        note("refused")


def groups(zarr: Any, path: Path, note: Any) -> None:
    root = zarr.open_group(path / "g", mode="w", attributes={"x": 1})
    a = root.require_group("a")
    note(root.require_group("a").path, a.name, root.store_path == root.store_path)
    root.create_array("a/b/c", shape=(2,), dtype="i4", fill_value=4)
    root["n"] = np.arange(4)
    note(root, [name for name, _ in root.groups()], [name for name, _ in root.arrays()])
    note([name for name, _ in root.members(max_depth=None)] and sorted(n for n, _ in root.members(max_depth=None)))
    note(sorted(root.array_keys()), sorted(root.group_keys()), root.nmembers(), root.nmembers(max_depth=None))
    note(root.get("nope", 5), root["a/b/c"][:], root["a"]["b"]["c"].fill_value)
    note(root.require_array("q", shape=(3,), dtype="f4"), root.require_array("q", shape=(3,), dtype="f4"))
    for name in ("missing", "a/missing"):
        try:
            root[name]
        except KeyError:
            note("KeyError")
    try:
        root.create_group("a")
    except ValueError as error:
        note(type(error).__mro__[-4:-1] and "taken")
    try:
        zarr.open_group(path / "nothing", mode="r")
    except FileNotFoundError:
        note("FileNotFoundError")
    try:
        zarr.create_array(path / "g", name="n", shape=(1,), dtype="i1")
    except ValueError:
        note("taken")
    del root["n"]
    note(sorted(root.keys()), zarr.open(path / "g", mode="r").attrs.asdict(), zarr.open(path / "g/q", mode="r").shape)
    zarr.consolidate_metadata(path / "g")
    note(sorted(zarr.open_consolidated(path / "g").keys()))


def codecs(zarr: Any, path: Path, note: Any) -> None:
    values = np.arange(100, dtype="i4").reshape(10, 10)
    for number, arguments in enumerate(
        (
            {"compressors": zarr.codecs.BloscCodec(cname="lz4", clevel=3, shuffle=zarr.codecs.BloscShuffle.bitshuffle)},
            {"compressors": [zarr.codecs.GzipCodec(level=1), zarr.codecs.Crc32cCodec()]},
            {"compressors": zarr.codecs.ZstdCodec(level=3)},
            {"filters": [zarr.codecs.TransposeCodec(order=(1, 0))], "compressors": None},
            {"serializer": zarr.codecs.BytesCodec(endian="big")},
            {"compressors": [{"name": "zstd", "configuration": {"level": 1, "checksum": True}}]},
            {"serializer": zarr.codecs.ShardingCodec(chunk_shape=(1, 5)), "compressors": None},
        )
    ):
        z = zarr.create_array(store=path / str(number), data=values, chunks=(5, 5), **arguments)
        note(z[...], z.chunks)
        again = zarr.open(path / str(number))
        note([type(codec).__name__ for codec in again.filters], type(again.serializer).__name__)


BODIES = {body.__name__: body for body in (quickstart, creation, selections, types, changing, groups, codecs)}


@pytest.mark.parametrize("name", BODIES)
def test_same_results(name: str, tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    ours = run(BODIES[name], zardine, tmp_path / "ours")
    theirs = run(BODIES[name], zarr_python, tmp_path / "theirs")
    assert len(ours) == len(theirs)
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        assert mine == other, number
