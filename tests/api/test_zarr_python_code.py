"""What programs written for zarr-python do with arrays and groups, each with ``zarr`` standing for zardine."""

from __future__ import annotations

import asyncio
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine as zarr


def test_tutorial(tmp_path: Path) -> None:
    z = zarr.create_array(store=tmp_path / "example.zarr", shape=(100, 100), chunks=(10, 10), dtype="f4")
    z[:, :] = np.random.default_rng(0).random((100, 100))
    assert z[:, :].shape == (100, 100)
    root = zarr.group(store=tmp_path / "hierarchy.zarr", overwrite=True)
    foo = root.create_group(name="foo")
    bar = foo.create_array(
        name="bar",
        shape=(100, 10),
        chunks=(10, 10),
        dtype="f4",
        compressors=zarr.codecs.BloscCodec(cname="zstd", clevel=3, shuffle=zarr.codecs.BloscShuffle.shuffle),
    )
    bar[:] = np.arange(1000).reshape(100, 10)
    spam = foo.create_array(name="spam", shape=(10,), dtype="i4")
    spam[:] = np.arange(10)
    assert str(root.tree()) == "/\n└── foo\n    ├── bar (100, 10) float32\n    └── spam (10,) int32"
    assert [name for name, _ in root.members(max_depth=None)] == ["foo", "foo/bar", "foo/spam"]
    reopened = zarr.open(tmp_path / "hierarchy.zarr", mode="r")
    assert isinstance(reopened["foo/bar"], zarr.Array)
    assert reopened["foo"]["bar"][5, 5] == 55
    assert "Array" in repr(reopened["foo/bar"])
    assert "Group" in repr(reopened)


def test_array_like_an_ndarray() -> None:
    values = np.arange(24.0).reshape(4, 6)
    z = zarr.array(values, chunks=(3, 4))
    np.testing.assert_array_equal(np.asarray(z), values)
    np.testing.assert_array_equal(np.asarray(z, dtype="f4"), values.astype("f4"))
    np.testing.assert_array_equal(z.__array__("i4"), values.astype("i4"))
    np.testing.assert_array_equal(np.add(z, 1), values + 1)
    np.testing.assert_array_equal(np.concatenate([z, z]), np.concatenate([values, values]))
    np.testing.assert_array_equal(np.stack(list(z)), values)
    assert np.sum(z) == values.sum()
    assert [row.shape for row in z] == [(6,)] * 4
    assert (len(z), z.ndim, z.size, z.nbytes) == (4, 2, 24, 192)
    assert (float(zarr.array(2.5)), int(zarr.array([3])), bool(zarr.array([0]))) == (2.5, 3, False)
    assert np.arange(5)[zarr.array(2)] == 2
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(z, copy=False)
    with z as same:
        assert same is z


def test_attributes_are_a_mapping() -> None:
    z = zarr.zeros(3, attributes={"a": 1})
    z.attrs["b"] = [1, 2]
    z.attrs.update({"c": None}, d="x")
    assert z.attrs.asdict() == dict(z.attrs) == {"a": 1, "b": [1, 2], "c": None, "d": "x"}
    assert (len(z.attrs), list(z.attrs), "a" in z.attrs, z.attrs.get("no", 5)) == (4, ["a", "b", "c", "d"], True, 5)
    assert z.attrs == {"a": 1, "b": [1, 2], "c": None, "d": "x"}
    assert (z.attrs.pop("a"), z.attrs.setdefault("b", 0), z.attrs.setdefault("e", 0)) == (1, [1, 2], 0)
    del z.attrs["b"]
    z.attrs.put({"only": True})
    assert dict(zarr.open_array(z.store).attrs) == {"only": True}
    assert dict(z.update_attributes({"more": 1}).attrs) == {"only": True, "more": 1}
    z.attrs.clear()
    assert not z.attrs
    g = zarr.group(attributes={"a": 1})
    assert dict(g.update_attributes({"b": 2}).attrs) == dict(g.attrs) == {"a": 1, "b": 2}


def test_resizing(tmp_path: Path) -> None:
    z = zarr.create_array(tmp_path, shape=(4, 2), dtype="i4", chunks=(2, 2))
    z[:] = 1
    assert z.append([[2, 2]]) == (5, 2)
    assert z.append(np.full((5, 1), 3), axis=1) == (5, 3)
    z.resize((5, 2))
    z.shape = (6, 2)
    assert z[:].tolist() == [[1, 1]] * 4 + [[2, 2], [0, 0]]
    one = zarr.zeros(3)
    one.resize(5)
    one.shape = 4  # type: ignore[assignment]
    assert one.shape == zarr.open_array(one.store).shape == (4,)


def dask_blocks(z: zarr.Array, chunks: tuple[int, ...]) -> list[tuple[tuple[slice, ...], np.ndarray[Any, Any]]]:
    """What ``dask.array.from_array(z, chunks).compute()`` asks for, in threads, of a pickled twin."""
    twin = pickle.loads(pickle.dumps(z))
    slices = [
        [slice(i, min(i + step, length)) for i in range(0, length, step)]
        for step, length in zip(chunks, z.shape, strict=True)
    ]
    where = list(product(*slices))
    with ThreadPoolExecutor(4) as pool:
        return list(zip(where, pool.map(lambda index: np.asarray(twin[index]), where), strict=True))


def test_dask_from_array_and_store(tmp_path: Path) -> None:
    values = np.arange(60 * 50).reshape(60, 50)
    z = zarr.create_array(tmp_path / "in", data=values, chunks=(7, 9), shards=(21, 27))
    assert all(hasattr(z, name) for name in ("shape", "dtype", "ndim", "chunks", "__getitem__"))
    blocks = dask_blocks(z, z.shards or z.chunks)
    target = zarr.create_array(tmp_path / "out", shape=z.shape, dtype=z.dtype, chunks=(7, 9), shards=(21, 27))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda item: target.__setitem__(*item), blocks))
    np.testing.assert_array_equal(target[:], values)
    assert target.nchunks_initialized == target.nchunks


def test_unaligned_threads_lose_nothing(tmp_path: Path) -> None:
    z = zarr.create_array(tmp_path, shape=64, dtype="i4", chunks=4, shards=64)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: z.__setitem__(i, i + 1), range(64)))
    assert z[:].tolist() == list(range(1, 65))


def test_xarray_style(tmp_path: Path) -> None:
    """A data set: coordinates and variables with dimension names, opened consolidated, appended along time."""
    root = zarr.open_group(tmp_path, mode="w", zarr_format=3, attributes={"title": "t"})
    for name, dims, shape in (("time", ("time",), (2,)), ("t2m", ("time", "x"), (2, 3))):
        variable = root.create_array(
            name,
            shape=shape,
            dtype="f8",
            chunks=shape,
            fill_value=np.nan,
            dimension_names=dims,
            attributes={"units": "K"},
            overwrite=True,
            config={"write_empty_chunks": False},
        )
        variable[(slice(None),) * variable.ndim] = np.ones(shape)
    zarr.consolidate_metadata(root.store, path=root.path, zarr_format=3)
    opened = zarr.open_consolidated(tmp_path, mode="r", zarr_format=None)
    found = {name: (node.metadata.dimension_names, dict(node.attrs), node.fill_value) for name, node in opened.arrays()}
    assert found["t2m"][:2] == (("time", "x"), {"units": "K"})
    assert np.isnan(found["t2m"][2])
    with pytest.raises((ValueError, KeyError)):  # how xarray finds that nothing is consolidated
        zarr.open_consolidated(tmp_path / "t2m", mode="r")
    t2m = zarr.open_group(tmp_path, mode="a", use_consolidated=False)["t2m"]
    assert isinstance(t2m, zarr.Array)
    t2m.resize((4, 3))
    t2m[2:4, :] = 5.0
    assert t2m[3].tolist() == [5.0, 5.0, 5.0]
    lazy = t2m.oindex[np.array([0, 3]), slice(0, 2)]
    assert lazy.tolist() == [[1.0, 1.0], [5.0, 5.0]]
    t2m.oindex[np.array([0, 3]), 0] = [8.0, 9.0]
    assert t2m.vindex[np.array([0, 3]), np.array([0, 0])].tolist() == [8.0, 9.0]


def test_missing_nodes_are_caught_as_ever(tmp_path: Path) -> None:
    for error in (FileNotFoundError, ValueError, KeyError, zarr.errors.BaseZarrError, zarr.errors.GroupNotFoundError):
        with pytest.raises(error):
            zarr.open_group(tmp_path / "nothing", mode="r")
    with pytest.raises(zarr.errors.NodeTypeValidationError):
        zarr.open_array(zarr.group().store)
    group = zarr.group()
    assert group.get("nothing") is None
    assert "nothing" not in group
    assert group[""] == group


def test_settings_of_zarr_python() -> None:
    with zarr.config.set({"async.concurrency": 8, "array.order": "F", "threading.max_workers": 2}):
        assert zarr.config.get("async.concurrency") == 8
        assert zarr.config["threads"] == 2
        assert zarr.zeros((2, 2)).order == "F"
    with zarr.config.set({"array": {"write_empty_chunks": True}}):
        assert zarr.zeros(2).config.write_empty_chunks
    assert zarr.config.get("async.concurrency", 10) == 10
    assert zarr.config.get("default_zarr_format") == 3
    with pytest.raises(KeyError, match=r"did you mean 'array\.order'"):
        zarr.config.get("array.ordr")
    with warnings.catch_warnings():
        warnings.simplefilter("error", zarr.errors.UnstableSpecificationWarning)
        zarr.zeros(2, dtype="U3")


def test_codecs_by_their_classes() -> None:
    sharding = zarr.codecs.ShardingCodec(
        chunk_shape=(5,),
        codecs=[zarr.codecs.BytesCodec(endian="big"), zarr.codecs.GzipCodec(level=1)],
        index_location=zarr.codecs.ShardingCodecIndexLocation.start,
    )
    z = zarr.create(shape=(20,), dtype="u2", chunks=(10,), codecs=[sharding])
    z[:] = np.arange(20)
    assert (z.chunks, z.shards, z[7]) == ((5,), (10,), 7)
    assert zarr.registry.get_codec_class("gzip") is zarr.codecs.GzipCodec
    document = z.metadata.to_dict()["codecs"]
    assert document[0]["configuration"]["index_location"] == "start"  # type: ignore[index, call-overload]


def test_event_loop(tmp_path: Path) -> None:
    async def work() -> list[Any]:
        group = zarr.AsyncGroup(zarr.group(tmp_path))
        array = await group.create_array("a", shape=(4,), dtype="i4", chunks=(2,))
        await array.setitem(slice(0, 2), 7)
        await (await group.require_group("g")).create_array("b", shape=(1,), dtype="i4")
        found = [await array.getitem(slice(None)), array.shape, await array.nchunks_initialized()]
        found += [[name async for name in group.keys()], [name async for name, _ in group.groups()]]  # noqa: SIM118
        found += [[name async for name, _ in group.members(max_depth=None)], await group.nmembers()]
        found += [(await group.getitem("g/b")).shape, await group.get("nothing"), await group.contains("a")]
        await array.resize((2,))
        return [*found, (await zarr.AsyncArray.open(tmp_path / "a")).shape]

    values, *rest = asyncio.run(work())
    assert values.tolist() == [7, 7, 0, 0]
    assert rest == [(4,), 1, ["a", "g"], ["g"], ["a", "g", "g/b"], 2, (1,), None, True, (2,)]


def test_what_nodes_show() -> None:
    group = zarr.group()
    z = group.create_array("z", shape=(8, 8), dtype="i2", chunks=2, shards=4, dimension_names=("y", "x"))
    z[0, 0] = 1
    text = str(z.info_complete())
    for fact in ("(y: 8, x: 8)", "Shard shape", "(4, 4)", "(2, 2)", "4 of 4 inner chunks each", "1 of 16", "crc32c"):
        assert fact in text
    assert "<svg" in z._repr_html_()
    assert "<table" in z.info._repr_html_()
    assert "Group" in str(group.info)
    assert "z (8, 8) int16" in group._repr_html_()
    assert str(zarr.tree(group)) == "/\n└── z (8, 8) int16"
