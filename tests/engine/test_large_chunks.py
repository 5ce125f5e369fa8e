"""Chunks so large that threads share one of them: what is stored and read is what one thread stores and reads."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine

SHAPE = (96, 128, 300)


def blosc(cname: str, shuffle: str, clevel: int = 5) -> dict[str, Any]:
    configuration = {"cname": cname, "clevel": clevel, "shuffle": shuffle, "typesize": 4, "blocksize": 0}
    return {"name": "blosc", "configuration": configuration}


FORMS: dict[str, dict[str, Any]] = {
    "lz4": {"compressors": blosc("lz4", "shuffle")},
    "zstd": {"compressors": blosc("zstd", "bitshuffle", 3)},
    "blosclz": {"compressors": blosc("blosclz", "noshuffle")},
    "with a checksum": {"compressors": [blosc("lz4", "shuffle"), {"name": "crc32c"}]},
    "transposed": {
        "filters": [{"name": "transpose", "configuration": {"order": [2, 1, 0]}}],
        "compressors": blosc("lz4", "shuffle"),
    },
    "in a shard": {"compressors": blosc("lz4", "shuffle"), "shards": (96, 256, 300)},
    "two": {"compressors": blosc("lz4", "shuffle"), "chunks": (48, 128, 300)},
}


def values(form: str) -> Any:
    rng = np.random.default_rng(5)
    found = np.cumsum(rng.integers(-3, 4, int(np.prod(SHAPE))), dtype="i8").astype("i4").reshape(SHAPE)
    if form == "blosclz":
        found[50:] = rng.integers(-(2**31), 2**31, found[50:].shape)  # blocks that do not become smaller
    return found


def create(path: Path, form: str) -> zardine.Array:
    return zardine.create_array(path, shape=SHAPE, dtype="i4", **{"chunks": SHAPE, **FORMS[form]})


@pytest.mark.parametrize("form", FORMS)
def test_threads_make_of_them_what_one_makes(form: str, tmp_path: Path) -> None:
    d = values(form)
    for threads in (1, 2, 7):
        with zardine.config.set({"threads": threads}):
            create(tmp_path / str(threads), form)[...] = d
    files = [path.relative_to(tmp_path / "1") for path in (tmp_path / "1/c").rglob("*") if path.is_file()]
    assert files
    for file in files:
        stored = (tmp_path / "1" / file).read_bytes()
        assert (tmp_path / "2" / file).read_bytes() == (tmp_path / "7" / file).read_bytes() == stored
    for threads in (1, 2, 7):
        with zardine.config.set({"threads": threads}):
            a = zardine.open_array(tmp_path / "7")
            np.testing.assert_array_equal(a[...], d)
            for key in ((slice(None), 5, slice(None)), (slice(None), slice(None), 299), (slice(3, 90), slice(None), 7)):
                np.testing.assert_array_equal(a[key], d[key])
            out = np.zeros((SHAPE[0] * 2, *SHAPE[1:]), "i4")[::2]  # not in one piece
            a.get_basic_selection(..., out=out)
            np.testing.assert_array_equal(out, d)


@pytest.mark.parametrize("form", ["lz4", "zstd", "with a checksum"])
def test_damage_is_told_alike(form: str, tmp_path: Path) -> None:
    create(tmp_path / "a", form)[...] = values(form)
    path = tmp_path / "a/c/0/0/0"
    whole = path.read_bytes()
    for at in (2, 8, 16 + 4 * 3 + 3, len(whole) // 2):
        damaged = bytearray(whole)
        damaged[at] ^= 0x7F
        path.write_bytes(damaged)
        told = set()
        for threads in (1, 2, 7):
            with zardine.config.set({"threads": threads}):
                try:
                    told.add(zardine.open_array(tmp_path / "a")[...].tobytes())
                except zardine.errors.ZardineError as error:
                    told.add(str(error))
        assert len(told) == 1
