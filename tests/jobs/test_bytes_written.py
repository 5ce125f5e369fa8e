"""What plans forecast to write, of data that compress, of empty parts, and where the codecs change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest

import zardine
from servers.servers import new_bucket, s3_options
from zardine.jobs import Plan

SHAPE = (32, 128, 128)


def smooth() -> npt.NDArray[np.float32]:
    """Values that compress to a part of their size, unlike in planes and in cubes."""
    axes = np.meshgrid(*(np.arange(length) for length in SHAPE), indexing="ij", sparse=True)
    field = np.sin(axes[0] / 9) * 40 + np.cos(axes[1] / 30) * 10 + axes[2] // 16
    return np.asarray(np.round(field, 1), np.float32)


def every_second_plane() -> npt.NDArray[np.float32]:
    values = smooth()
    values[::2] = 0
    return values


def few_columns() -> npt.NDArray[np.float32]:
    values = np.zeros(SHAPE, np.float32)
    values[:, 3:8, 5:9] = smooth()[:, 3:8, 5:9]
    return values


def make(path: Any, values: npt.NDArray[Any], **options: Any) -> None:
    zardine.create_array(path, shape=values.shape, dtype=values.dtype, **options)[...] = values


def check(plan: Plan, folder: Path, *, of_objects: float = 0.0) -> None:
    objects, nbytes = plan.objects, plan.bytes_written
    assert plan.run()
    sizes = [path.stat().st_size for path in folder.rglob("c/*/*/*")]
    assert abs(objects - len(sizes)) <= of_objects * len(sizes)
    assert abs(nbytes - sum(sizes)) <= 0.25 * sum(sizes)


CONVERTED: dict[str, dict[str, Any]] = {
    "other codec": {"compressors": "gzip"},
    "to none": {"compressors": None},
    "into shards": {"shards": (16, 128, 128), "chunks": (4, 32, 32)},
    "carried over": {"shards": (16, 128, 128)},
}


@pytest.mark.parametrize("options", CONVERTED.values(), ids=CONVERTED)
@pytest.mark.parametrize("old", [None, "auto"])
def test_converting(options: dict[str, Any], old: Any, tmp_path: Path) -> None:
    make(tmp_path / "a.zarr", smooth(), chunks=(1, 128, 128), compressors=old)
    check(zardine.plan_convert(tmp_path / "a.zarr", tmp_path / "b.zarr", **options), tmp_path / "b.zarr")


RECHUNKED: dict[str, dict[str, Any]] = {
    "cubes": {"chunks": (32, 32, 32)},
    "columns": {"chunks": (32, 8, 8), "shards": (32, 64, 64)},
    "other codec": {"chunks": (8, 64, 64), "compressors": "gzip"},
}


@pytest.mark.parametrize("options", RECHUNKED.values(), ids=RECHUNKED)
@pytest.mark.parametrize("old", [None, "auto"])
def test_rechunking(options: dict[str, Any], old: Any, tmp_path: Path) -> None:
    make(tmp_path / "a.zarr", smooth(), chunks=(1, 128, 128), compressors=old)
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", max_memory="64 MiB", **options)
    check(plan, tmp_path / "b.zarr")
    assert ", encoded" in plan.sample


@pytest.mark.parametrize("shards", [(8, 64, 64), (32, 128, 128)])
def test_resharding(shards: tuple[int, ...], tmp_path: Path) -> None:
    make(tmp_path / "a.zarr", smooth(), chunks=(4, 32, 32), shards=(16, 64, 64))
    plan = zardine.plan_reshard(tmp_path / "a.zarr", target=tmp_path / "b.zarr", shards=shards)
    check(plan, tmp_path / "b.zarr")


@pytest.mark.parametrize(("values", "chunks"), [(every_second_plane, (1, 32, 128)), (few_columns, (32, 64, 64))])
def test_parts_that_are_empty_are_not_counted(
    values: Callable[[], npt.NDArray[np.float32]], chunks: tuple[int, ...], tmp_path: Path
) -> None:
    make(tmp_path / "a.zarr", values(), chunks=(1, 128, 128))
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=chunks, max_memory="64 MiB")
    check(plan, tmp_path / "b.zarr", of_objects=0.25)
    assert "are empty" in plan.sample


def test_foreign_files(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=smooth(), chunks=(4, 64, 64))
    check(zardine.plan_convert(tmp_path / "a.h5", tmp_path / "b.zarr"), tmp_path / "b.zarr")


@pytest.mark.parametrize("options", [{"compressors": "gzip"}, {"shards": (16, 128, 128)}], ids=["codec", "shards"])
def test_on_s3(options: dict[str, Any]) -> None:
    url, access = f"s3://{new_bucket()}", s3_options()
    make(f"{url}/a", smooth(), chunks=(1, 128, 128), storage_options=access)
    plan = zardine.plan_convert(f"{url}/a", f"{url}/b", storage_options=access, target_options=access, **options)
    nbytes = plan.bytes_written
    assert plan.run()
    stored = zardine.open_array(f"{url}/b", storage_options=access).nbytes_stored()
    assert abs(nbytes - stored) <= 0.25 * stored


def test_few_of_many_arrays_are_told(tmp_path: Path) -> None:
    group = zardine.create_group(tmp_path / "a.zarr")
    for number in range(5):
        group.create_array(f"x{number}", data=smooth()[:4, :8, :8], chunks=(2, 8, 8))
    plan = zardine.plan_convert(tmp_path / "a.zarr", tmp_path / "b.zarr", compressors="gzip")
    assert plan.sample.count(", encoded") == 3
    assert plan.sample.endswith("; and of 2 more arrays")
    assert plan.sample in repr(plan)


def test_chunks_that_the_end_of_the_array_cuts(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr", smooth()[:30, :100, :100] + 1, chunks=(1, 100, 100))
    plan = zardine.plan_rechunk(
        tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(8, 32, 32), compressors=None, max_memory="64 MiB"
    )
    nbytes = plan.bytes_written
    check(plan, tmp_path / "b.zarr")
    assert nbytes == sum(path.stat().st_size for path in (tmp_path / "b.zarr").rglob("c/*/*/*"))


def test_shards_of_which_a_half_is_empty(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr", every_second_plane(), chunks=(1, 128, 128))
    plan = zardine.plan_convert(
        tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(1, 64, 64), shards=(8, 128, 128), compressors="gzip"
    )
    check(plan, tmp_path / "b.zarr")
