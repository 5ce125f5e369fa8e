"""What is timed: each class prepares, does one repetition, and checks a result against the truth."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import data
import layouts
import numpy as np
from implementations.protocol import Implementation

FIRST = 20
"""Seed of all places that are drawn at random: the same for all implementations and rounds."""


@dataclass
class Setting:
    """Where one run takes place."""

    implementation: Implementation
    layout: layouts.Layout | None
    folder: Path
    """The stored arrays, only read."""
    scratch: Path
    """An empty folder."""
    writer: str
    """The name of the implementation."""

    @property
    def source(self) -> str:
        assert self.layout is not None
        return str(self.folder / self.layout.name)

    def truth(self) -> np.ndarray:
        assert self.layout is not None
        return data.truth(self.folder, self.layout.name)

    def read_back(self, path: Path) -> np.ndarray:
        """What a program that did not write the array finds there."""
        array = data.neutral_open(path, "zarr" if self.writer.startswith("tensorstore") else "tensorstore")
        return np.asarray(array[...])


class Operation:
    """One workload in one process."""

    most = 1_000_000
    """Repetitions that there can be."""
    warm_up = 1
    """Repetitions that do not count."""
    results_differ = False
    """Whether repetition n gives something else than repetition 0."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.use = setting.implementation

    def before(self, n: int) -> None:
        """What repetition ``n`` needs and is not timed."""

    def run(self, n: int) -> Any:
        raise NotImplementedError

    def wrong(self, n: int, result: Any) -> str | None:
        """What is wrong with the result of repetition ``n``."""
        raise NotImplementedError

    def close(self) -> None:
        """After the last repetition."""


class Read(Operation):
    """Read one box, or everything."""

    def __init__(self, setting: Setting, box: tuple[slice, ...] | None = None, strided: bool = False) -> None:
        super().__init__(setting)
        self.box, self.strided = box, strided
        self.array = self.use.open(setting.source)

    def run(self, n: int) -> np.ndarray:
        if self.box is None:
            return self.use.read_all(self.array, self.setting.layout.shape)
        read = self.use.read_strided if self.strided else self.use.read
        return read(self.array, self.box)

    def wrong(self, n: int, result: Any) -> str | None:
        return difference(result, self.setting.truth()[self.box or ...])


class OpenAndRead(Operation):
    """The first thing that happens after a start: open, then read. Once, without warming up."""

    most = 1
    warm_up = 0

    def __init__(self, setting: Setting, box: tuple[slice, ...] | None = None) -> None:
        super().__init__(setting)
        self.box = box or tuple(slice(0, extent) for extent in setting.layout.shape)

    def run(self, n: int) -> np.ndarray:
        return self.use.read(self.use.open(self.setting.source), self.box)

    def wrong(self, n: int, result: Any) -> str | None:
        return difference(result, self.setting.truth()[self.box])


class ReadChunk(Operation):
    """One inner chunk after the other, at random, none twice; or, of each, a box of ``part`` elements at random."""

    warm_up = 20
    results_differ = True

    def __init__(self, setting: Setting, part: tuple[int, ...] | None = None) -> None:
        super().__init__(setting)
        layout = setting.layout
        grid = [range(extent // size) for extent, size in zip(layout.shape, layout.chunk, strict=True)]
        places = list(product(*grid))
        rng = np.random.default_rng(FIRST)
        self.places = [list(places[i]) for i in rng.permutation(len(places))]
        self.boxes = [box_of(place, layout.chunk) for place in self.places]
        if part is not None:
            self.boxes = [box_in(box, part, rng) for box in self.boxes]
        self.most = len(self.places) - self.warm_up
        array = self.use.open(setting.source)
        self.read: Callable[..., np.ndarray] = self.use.chunk_reader(array)
        if part is not None:
            self.read = lambda box, place: self.use.read(array, box)

    def run(self, n: int) -> np.ndarray:
        return self.read(self.boxes[n], self.places[n])

    def wrong(self, n: int, result: Any) -> str | None:
        return difference(result, self.setting.truth()[self.boxes[n]])


class ReadPoints(Operation):
    """Single elements at random."""

    def __init__(self, setting: Setting, count: int = 2000) -> None:
        super().__init__(setting)
        rng = np.random.default_rng(FIRST)
        self.points = tuple(rng.integers(0, extent, count) for extent in setting.layout.shape)
        self.array = self.use.open(setting.source)

    def run(self, n: int) -> np.ndarray:
        return self.use.read_points(self.array, self.points)

    def wrong(self, n: int, result: Any) -> str | None:
        return difference(result, self.setting.truth()[self.points])


class WriteAll(Operation):
    """Write everything into an array that is new each time."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.values = np.array(setting.truth())
        self.box = tuple(slice(0, extent) for extent in setting.layout.shape)

    def before(self, n: int) -> None:
        self.place = self.setting.scratch / f"written-{n}"
        shutil.rmtree(self.setting.scratch / f"written-{n - 1}", ignore_errors=True)
        data.create(self.place, self.setting.layout)
        self.array = self.use.open(str(self.place), write=True)

    def run(self, n: int) -> None:
        self.use.write(self.array, self.box, self.values)

    def wrong(self, n: int, result: Any) -> str | None:
        return difference(self.setting.read_back(self.place), self.values)


class WriteShard(WriteAll):
    """The same of one large shard, whose peak of memory matters. Once, without warming up."""

    most = 1
    warm_up = 0


class Fill(WriteAll):
    """Write one shard inner chunk by inner chunk, in order. One repetition is one inner chunk."""

    warm_up = 0

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        chunk = setting.layout.chunk
        grid = [range(extent // size) for extent, size in zip(setting.layout.shape, chunk, strict=True)]
        self.boxes = [box_of(list(place), chunk) for place in product(*grid)]
        self.parts = [np.ascontiguousarray(self.values[box]) for box in self.boxes]
        self.most = len(self.parts)
        super().before(0)
        self.open_blocks = ExitStack()

    def before(self, n: int) -> None:
        if n == 0:
            self.collecting = self.open_blocks.enter_context(self.use.collected(self.array))

    def run(self, n: int) -> None:
        self.use.write(self.collecting, self.boxes[n], self.parts[n])
        if n == self.most - 1:
            self.open_blocks.close()  # what was collected is stored now, and that is timed

    def close(self) -> None:
        self.open_blocks.close()

    def wrong(self, n: int, result: Any) -> str | None:
        found = self.setting.read_back(self.place)
        for box in self.boxes[: n + 1]:
            if (problem := difference(found[box], self.values[box])) is not None:
                return problem
        return None


class Update(Operation):
    """Write one inner chunk of a full shard, another one each time."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        layout = setting.layout
        self.place = setting.scratch / "edited"
        shutil.copytree(setting.source, self.place)
        self.values = np.array(setting.truth())
        grid = [range(extent // size) for extent, size in zip(layout.shape, layout.chunk, strict=True)]
        places = np.random.default_rng(FIRST).permutation(list(product(*grid)))
        self.boxes = [box_of(place.tolist(), layout.chunk) for place in places]
        self.most = len(self.boxes) - self.warm_up
        self.array = self.use.open(str(self.place), write=True)

    def before(self, n: int) -> None:
        self.part = np.ascontiguousarray(self.values[self.boxes[n]][::-1])
        self.values[self.boxes[n]] = self.part

    def run(self, n: int) -> None:
        self.use.write(self.array, self.boxes[n], self.part)

    def wrong(self, n: int, result: Any) -> str | None:
        return difference(self.setting.read_back(self.place), self.values)


class Append(Operation):
    """Add one row to a table; one repetition is one row."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.place = setting.scratch / "rows"
        data.create(self.place, setting.layout)
        self.columns = np.arange(setting.layout.shape[1], dtype=setting.layout.dtype)[None]
        self.array = self.use.open(str(self.place), write=True)

    def before(self, n: int) -> None:
        self.row = self.columns + n

    def run(self, n: int) -> None:
        self.array = self.use.append(self.array, self.row)

    def wrong(self, n: int, result: Any) -> str | None:
        expected = self.columns + np.arange(n + 1, dtype=self.columns.dtype)[:, None]
        return difference(self.setting.read_back(self.place), expected)


class Open(Operation):
    """Open an array that was open before in this process."""

    def run(self, n: int) -> Any:
        return self.use.open(self.setting.source)

    def wrong(self, n: int, result: Any) -> str | None:
        expected = self.setting.layout.shape
        return None if tuple(result.shape) == expected else f"shape {result.shape} for {expected}"


class OpenNew(Operation):
    """Open an array that this process has never opened; no two have the same document."""

    most = 400
    warm_up = 20

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        document = json.loads((Path(setting.source) / "zarr.json").read_text())
        self.places = [setting.scratch / f"a{n}" for n in range(self.warm_up + self.most)]
        for n, place in enumerate(self.places):
            place.mkdir()
            own = {"shape": self._shape(n), "attributes": {"number": n, "name": f"array {n}"}}
            (place / "zarr.json").write_text(json.dumps(document | own))

    def _shape(self, n: int) -> list[int]:
        first, *others = self.setting.layout.shape
        return [first + n, *others]

    def run(self, n: int) -> Any:
        return self.use.open(str(self.places[n]))

    def wrong(self, n: int, result: Any) -> str | None:
        return None if list(result.shape) == self._shape(n) else f"shape {result.shape} for {self._shape(n)}"


class ListGroup(Operation):
    """The shapes of all arrays of a group."""

    def run(self, n: int) -> Any:
        return self.use.list_group(str(self.setting.folder / "group"))

    def wrong(self, n: int, result: Any) -> str | None:
        return None if len(result) == data.MEMBERS else f"{len(result)} arrays of {data.MEMBERS}"


def box_of(place: list[int], chunk: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(i * size, (i + 1) * size) for i, size in zip(place, chunk, strict=True))


def box_in(box: tuple[slice, ...], part: tuple[int, ...], rng: np.random.Generator) -> tuple[slice, ...]:
    """A box of ``part`` elements that lies in ``box``."""
    starts = [int(rng.integers(side.start, side.stop - count + 1)) for side, count in zip(box, part, strict=True)]
    return tuple(slice(start, start + count) for start, count in zip(starts, part, strict=True))


def difference(found: Any, expected: np.ndarray) -> str | None:
    """How an array differs from what is expected."""
    found = np.asarray(found)
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{found.dtype} {found.shape} for {expected.dtype} {expected.shape}"
    count = int(np.count_nonzero(found != expected))
    return f"{count} wrong elements" if count else None
