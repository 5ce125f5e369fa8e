"""Filters of HDF5: chunks are copied as they lie where zardine has the codecs; else HDF5 decodes them, as is told."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
import pytest
import zarr

import zardine
import zardine.sources
from sources.same_elements import equal
from zardine.sources.arrays import undone_filters

VALUES = np.random.default_rng(0).integers(0, 50, (40, 50)).astype("<i4")

COPIED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "none": ({}, []),
    "gzip": ({"compression": "gzip"}, ["numcodecs.zlib"]),
    "shuffle": ({"shuffle": True}, ["numcodecs.shuffle"]),
    "shuffle, gzip": ({"compression": "gzip", "shuffle": True}, ["numcodecs.shuffle", "numcodecs.zlib"]),
    "fletcher32": ({"fletcher32": True}, ["numcodecs.fletcher32"]),
    "gzip, fletcher32": ({"compression": "gzip", "fletcher32": True}, ["numcodecs.zlib", "numcodecs.fletcher32"]),
    "bzip2": (dict(hdf5plugin.BZip2()), ["numcodecs.bz2"]),
    "zstd": (dict(hdf5plugin.Zstd(clevel=9)), ["zstd"]),
    "zstd, fast": (dict(hdf5plugin.Zstd(clevel=-5)), ["zstd"]),
    "shuffle, zstd": ({"shuffle": True, **hdf5plugin.Zstd()}, ["numcodecs.shuffle", "zstd"]),
    **{
        f"blosc, {cname}, {shuffle}": (dict(hdf5plugin.Blosc(cname=cname, shuffle=shuffle)), ["blosc"])
        for cname, shuffle in [("blosclz", 1), ("lz4", 1), ("zstd", 2), ("lz4hc", 2), ("zlib", 1)]
    },
}
"""How data sets are stored, and the codecs that stand for that."""

UNCOMPRESSED = ("none", "shuffle", "fletcher32")
"""Those of them that are compressed by default."""

DECODED: dict[str, tuple[dict[str, Any], str]] = {
    "lzf": ({"compression": "lzf"}, "32000 (lzf)"),
    "shuffle, lzf": ({"compression": "lzf", "shuffle": True}, "2 (shuffle), 32000 (lzf)"),
    "szip": ({"compression": "szip"}, "4 (szip)"),
    "scaleoffset": ({"scaleoffset": 0}, "6 (scaleoffset)"),
    "lz4": (dict(hdf5plugin.LZ4()), "32004 (lz4)"),
    "bitshuffle": (dict(hdf5plugin.Bitshuffle(cname="none")), "32008 (bitshuffle)"),
    "bitshuffle lz4": (dict(hdf5plugin.Bitshuffle()), "32008 (bitshuffle)"),
    "bitshuffle zstd": (dict(hdf5plugin.Bitshuffle(cname="zstd")), "32008 (bitshuffle)"),
    "blosc2": (dict(hdf5plugin.Blosc2()), "32026 (blosc2)"),
    "nbit": ({}, "5 (nbit)"),
}
"""How data sets are stored, and what is told of it."""


ENVIRON = {name: value for name, value in os.environ.items() if name != "HDF5_PLUGIN_PATH"}
"""Of processes that find no plugins but those that they import: netCDF4 tells its own ones to all that it begins."""
ENVIRON["PYTHONPATH"] = os.pathsep.join(sys.path)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One data set for each, written by a process that knows only the plugins of hdf5plugin."""
    path = tmp_path_factory.mktemp("filters") / "a.h5"
    code = "import sys; from sources.test_hdf5_filters import write; write(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=ENVIRON)
    return path


def write(path: str) -> None:
    """Write the data sets."""
    with h5py.File(path, "w") as file:
        for name, (options, _) in {**COPIED, **DECODED}.items():
            if name != "nbit":
                file.create_dataset(name, data=VALUES, chunks=(10, 15), **options)
        kind = h5py.h5t.STD_I32LE.copy()
        kind.set_precision(20)
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((10, 15))
        creation.set_filter(h5py.h5z.FILTER_NBIT, 0, ())
        found = h5py.h5d.create(file.id, b"nbit", kind, h5py.h5s.create_simple(VALUES.shape), creation)
        found.write(h5py.h5s.ALL, h5py.h5s.ALL, VALUES)


def stored_chunks(path: Path, name: str) -> dict[tuple[int, ...], bytes]:
    """Return the chunks of a data set as they lie in the file, by grid coordinates."""
    chunks = {}
    with h5py.File(path) as file:
        found = file[name]
        for number in range(found.id.get_num_chunks()):
            info = found.id.get_chunk_info(number)
            assert info.filter_mask == 0
            place = tuple(i // size for i, size in zip(info.chunk_offset, found.chunks, strict=True))
            chunks[place] = found.id.read_direct_chunk(info.chunk_offset)[1]
    return chunks


@pytest.mark.parametrize("name", COPIED)
def test_copied(file: Path, tmp_path: Path, name: str) -> None:
    source = zardine.sources.open(file)[name]
    assert [codec.name for codec in source.compressors] == COPIED[name][1]
    assert undone_filters(source.metadata) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = zardine.convert(source, tmp_path / "made", shards=None, filters="keep", compressors="keep")
    assert [codec.name for codec in made.compressors] == [*COPIED[name][1], "crc32c"]
    expected = stored_chunks(file, name)
    assert len(expected) == 16
    for place, data in expected.items():
        assert (tmp_path / "made" / "c" / "/".join(map(str, place))).read_bytes()[:-4] == data
    assert equal(source[...], VALUES)
    assert equal(made[...], VALUES)


@pytest.mark.parametrize("name", COPIED)
def test_copied_by_default(file: Path, tmp_path: Path, name: str) -> None:
    """Compressed chunks are those of the file, in shards and alone; codecs that not all programs have are told."""
    compressed = name not in UNCOMPRESSED
    codecs = [*COPIED[name][1], "crc32c"] if compressed else ["zstd", "crc32c"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        zardine.convert(zardine.sources.open(file)[name], tmp_path / "shards")
        made = zardine.convert(zardine.sources.open(file)[name], tmp_path / "made", shards=None, verify=True)
    for each in (made, zardine.open_array(tmp_path / "shards")):
        assert [codec.name for codec in each.compressors] == codecs
        assert equal(each[...], VALUES)
    named = [each for each in codecs if each.startswith("numcodecs.")]
    assert len(caught) == (2 if named else 0)
    assert all(f"with the codecs {', '.join(named)}: zarr-python" in str(each.message) for each in caught)
    if compressed:
        shard = (tmp_path / "shards" / "c" / "0" / "0").read_bytes()
        for place, data in stored_chunks(file, name).items():
            assert (tmp_path / "made" / "c" / "/".join(map(str, place))).read_bytes()[:-4] == data
            assert data in shard


@pytest.mark.parametrize(
    ("options", "codecs"),
    [
        ({"compressors": "zstd"}, ["zstd", "crc32c"]),
        ({"compressors": ["gzip"]}, ["gzip", "crc32c"]),
        ({"chunks": (2, 4)}, ["zstd", "crc32c"]),
        ({"chunks": "auto"}, ["zstd", "crc32c"]),
    ],
    ids=str,
)
def test_stored_anew(file: Path, tmp_path: Path, options: dict[str, Any], codecs: list[str]) -> None:
    """Where another compressor or other chunks are asked for, nothing is left of the codecs of the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = zardine.convert(zardine.sources.open(file)["shuffle, gzip"], tmp_path / "made", **options)
    assert [codec.name for codec in made.compressors] == codecs
    assert equal(made[...], VALUES)


def test_large_chunks_are_copied(tmp_path: Path) -> None:
    """Those of 8 MB are cut where nothing is to be copied."""
    values = np.arange(2**20, dtype="f8").reshape(1024, 1024)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, chunks=values.shape, compression="gzip")
        file.create_dataset("b", data=values, chunks=values.shape)
    with pytest.warns(zardine.errors.ZarrUserWarning, match=r"/a: its chunks are copied"):
        made = zardine.convert(tmp_path / "a.h5", tmp_path / "made")
    assert [made[name].chunks for name in "ab"] == [(1024, 1024), (256, 512)]
    (data,) = stored_chunks(tmp_path / "a.h5", "a").values()
    assert data in (tmp_path / "made" / "a" / "c" / "0" / "0").read_bytes()
    assert all(equal(made[name][...], values) for name in "ab")


def test_readers_of_copied_chunks(file: Path, tmp_path: Path) -> None:
    """zarr-python reads what is copied by default."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, name in enumerate(each for each in COPIED if each not in UNCOMPRESSED):
            zardine.convert(zardine.sources.open(file)[name], tmp_path / str(number))
            assert equal(zarr.open_array(tmp_path / str(number), mode="r")[...], VALUES), name


@pytest.mark.parametrize("name", DECODED)
def test_decoded(file: Path, tmp_path: Path, name: str) -> None:
    """It is told before anything is written, and stored as compressed as by default, not as it lies in memory."""
    source = zardine.sources.open(file)[name]
    assert ", ".join(undone_filters(source.metadata)) == DECODED[name][1]
    with pytest.warns(zardine.errors.ZarrUserWarning) as caught:
        made = zardine.convert(source, tmp_path / "made", filters="keep", compressors="keep", verify=True)
    (told,) = caught
    assert f"its filters cannot stay, as no codec stands for all of them ({DECODED[name][1]})" in str(told.message)
    assert [codec.name for codec in made.compressors] == ["zstd", "crc32c"]
    assert undone_filters(made.metadata) == undone_filters(source.metadata)
    assert equal(source[...], VALUES)
    assert equal(made[...], VALUES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert equal(zardine.convert(source, tmp_path / "by_default")[...], VALUES)


def test_without_the_plugins(file: Path, tmp_path: Path) -> None:
    """What zardine has codecs for is read by it; the rest is named before anything is written, with what brings it."""
    code = """
import sys, zardine
sys.modules["hdf5plugin"] = None
try:
    zardine.convert(sys.argv[1], sys.argv[2])
except zardine.errors.ConversionError as error:
    print(*(f"{problem.place} {problem.message}" for problem in error.problems), sep="\\n")
print(sorted(name for name, _ in zardine.sources.open(sys.argv[1]).arrays()))
"""
    command = [sys.executable, "-c", code, str(file), str(tmp_path / "made")]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRON)
    *told, names = run.stdout.splitlines()
    lost = ["bitshuffle", "bitshuffle lz4", "bitshuffle zstd", "blosc2", "lz4"]
    assert [line.partition(" it needs")[0][1:] for line in told] == lost
    assert all("pip install hdf5plugin" in line for line in told)
    assert names == str(sorted({*COPIED, *DECODED} - set(lost)))
    assert not (tmp_path / "made").exists()
    command = [sys.executable, "-m", "zardine", "convert", str(file), str(tmp_path / "made"), "--quiet"]
    subprocess.run(command, check=True, env=ENVIRON)  # it is found where it is installed
    assert equal(zardine.open_array(tmp_path / "made" / "blosc2")[...], VALUES)


@pytest.mark.parametrize("kind", ["<i2", "<f8", ">f4"])
@pytest.mark.parametrize("deflate", [False, True])
def test_shuffled_behind_a_checksum(tmp_path: Path, kind: str, deflate: bool) -> None:
    """As NetCDF puts them in order: where these are no whole elements HDF5 shuffles all but the last bytes."""
    values = VALUES.astype(kind)
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_chunk((10, 15))
    creation.set_fletcher32()
    creation.set_shuffle()
    if deflate:
        creation.set_deflate(1)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        data_type = h5py.h5t.py_create(values.dtype)
        found = h5py.h5d.create(file.id, b"a", data_type, h5py.h5s.create_simple(values.shape), creation)
        found.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
    np.testing.assert_array_equal(zardine.sources.open(tmp_path / "a.h5")["a"][...], values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(zardine.convert(tmp_path / "a.h5", tmp_path / "a.zarr")["a"][...], values)
