"""Makes the stored arrays: a volume as a microscope gives it, written by tensorstore, a neutral hand.

``python data.py FOLDER NAME ...`` makes what is missing of the named layouts; ``volume``, ``group`` and ``variety``
name the volume itself, the group of 300 arrays and the 25 varied arrays. Everything is the same on every run.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import layouts
import numpy as np

MEMBERS = 300
"""Arrays in the group that is listed."""
CELL = 32
"""Distance of the points between which the signal is interpolated, in elements."""


def volume(folder: Path) -> np.ndarray:
    """The volume, made if it is missing, mapped into memory."""
    path = folder / "volume.npy"
    if not path.exists():
        np.save(path.with_suffix(".part.npy"), make_volume(layouts.SIDE))
        path.with_suffix(".part.npy").rename(path)
    return np.load(path, mmap_mode="r")


def make_volume(side: int) -> np.ndarray:
    """A smooth signal above a background, with the noise of counting and of the camera, as uint16."""
    rng = np.random.default_rng(20)
    signal = rng.random((side // CELL + 2,) * 3, dtype=np.float32)
    for axis in (2, 1, 0):
        position = np.linspace(0, side / CELL, side, dtype=np.float32)
        below = position.astype(int)
        weight = (position - below).reshape([side if axis == k else 1 for k in range(3)])
        signal = np.take(signal, below, axis) * (1 - weight) + np.take(signal, below + 1, axis) * weight
    found = np.empty((side,) * 3, np.uint16)
    for k, plane in enumerate(signal):
        mean = 200 + 4000 * np.maximum(plane - 0.4, 0) ** 1.5
        noise = rng.standard_normal(mean.shape, dtype=np.float32)
        found[k] = np.clip(mean + noise * (2 + 1.2 * np.sqrt(mean)), 0, 65535)
    return found


def varied(layout: layouts.Layout) -> np.ndarray:
    """Values for one of the varied arrays: a slope with a little noise."""
    rng = np.random.default_rng(sum(layout.shape))
    count = int(np.prod(layout.shape))
    values = np.linspace(0, 100, count) + rng.integers(0, 8, count)
    return values.astype(layout.dtype).reshape(layout.shape)


def truth(folder: Path, name: str) -> np.ndarray:
    """What the array of that layout holds."""
    layout = layouts.named(name)
    if layout in layouts.variety():
        return varied(layout)
    if max(layout.shape) > layouts.SIDE:  # the same part of the volume again and again
        return np.tile(volume(folder)[:256, :256, :256], [extent // 256 for extent in layout.shape])
    return volume(folder)[tuple(slice(0, extent) for extent in layout.shape)]


def make(folder: Path, name: str) -> None:
    """Make one layout, the group or the volume, if it is missing."""
    if name == "volume":
        volume(folder)
    elif name == "variety":
        for layout in layouts.variety():
            make(folder, layout.name)
    elif not (folder / name).exists():
        part = folder / f"{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        if name == "group":
            _write_group(part)
        else:
            layout = layouts.named(name)
            create(part, layout)
            if all(layout.shape):
                _write(part, truth(folder, name))
        os.sync()
        part.rename(folder / name)


def create(path: Path, layout: layouts.Layout) -> None:
    """An array that holds nothing yet: its document alone."""
    path.mkdir(parents=True)
    (path / "zarr.json").write_text(json.dumps(layout.document()))


def neutral_open(path: Path, writer: str = "tensorstore"):
    """The array, opened by tensorstore or, for files that tensorstore wrote, by zarr-python."""
    if writer == "zarr":
        import zarr

        return zarr.open_array(str(path), mode="r")
    import tensorstore

    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
    return tensorstore.open(spec, open=True).result()


def _write(path: Path, values: np.ndarray) -> None:
    neutral_open(path).write(np.ascontiguousarray(values)).result()


def _write_group(path: Path) -> None:
    path.mkdir(parents=True)
    (path / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}))
    for number in range(MEMBERS):
        create(path / f"array_{number:03}", layouts.volume("64k", "zstd"))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    for each in sys.argv[2:]:
        make(place, each)
