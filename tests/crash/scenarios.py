"""What the writers do that are killed, run out of space or lose power, and what may be stored when they stop.

A scenario is an array and some calls that change it, each with its model in NumPy: the stages. Between two stages every
shard (with ``in_place``, and without shards, every chunk) is at the one or the other.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import zardine
from zardine.engine.index_cache import INDEXES

Values = np.ndarray[Any, Any]
Box = tuple[slice, ...]
STRATEGIES = ("rewrite", "append", "in_place")
LOCATIONS = ("end", "start")


@dataclass(frozen=True)
class Step:
    """One call of a user, and what it means."""

    act: Callable[[zardine.Array], object]
    model: Callable[[Values], Values]
    attributes: dict[str, Any] = field(default_factory=dict)
    again: bool = True
    """Whether the call may be made a second time if it is not known how far the first came."""
    retry: Callable[[zardine.Array], object] | None = None
    """What makes good for a call that raised; by default, the same call."""


@dataclass(frozen=True)
class Scenario:
    """An array and what is done to it."""

    steps: tuple[Step, ...]
    start: Callable[[], Values]
    chunks: tuple[int, int] = (4, 4)
    shards: tuple[int, int] | None = (16, 16)
    zarr_format: int = 3
    strategies: tuple[str, ...] = STRATEGIES
    compressors: Any = None

    def prepare(self, path: Path, location: str) -> None:
        """Store the array as it is before the first step."""
        values = self.start()
        more: dict[str, Any] = {"checksum": True} if self.zarr_format == 3 else {}
        if self.shards is not None:
            more["shards"] = {"shape": self.shards, "index_location": location}
        array = zardine.create_array(
            path,
            shape=values.shape,
            dtype="u4",
            chunks=self.chunks,
            compressors=self.compressors,
            zarr_format=self.zarr_format,
            attributes={"before": 1},
            **more,
        )
        array[...] = values

    def stages(self) -> list[tuple[Values, dict[str, Any]]]:
        """Values and attributes before the first step, and after each."""
        values, attributes = self.start(), {"before": 1}
        found = [(values, attributes)]
        for step in self.steps:
            values, attributes = step.model(values), attributes | step.attributes
            found.append((values, attributes))
        return found

    def unit(self, strategy: str) -> tuple[int, int]:
        """The shape of what is at one stage as a whole."""
        return self.chunks if self.shards is None or strategy == "in_place" else self.shards


def put(rows: tuple[int, int], columns: tuple[int, int], value: Any) -> Step:
    """Write a value, or values, to a box."""
    box = (slice(*rows), slice(*columns))

    def act(array: zardine.Array) -> None:
        array[box] = value

    return Step(act, lambda values: written(values, box, value))


def written(values: Values, box: Box, value: Any) -> Values:
    values = values.copy()
    values[box] = value
    return values


def buffered(*boxes: tuple[tuple[int, int], tuple[int, int], int]) -> Step:
    """Write to several boxes and store all of it together."""

    def act(array: zardine.Array) -> None:
        with array.buffered():
            for rows, columns, value in boxes:
                array[slice(*rows), slice(*columns)] = value

    def model(values: Values) -> Values:
        for rows, columns, value in boxes:
            values = written(values, (slice(*rows), slice(*columns)), value)
        return values

    return Step(act, model, retry=lambda array: array.flush())


def in_parts(step: Step) -> Step:
    """The same, of shards so large that they are written while they are encoded."""

    def act(array: zardine.Array) -> None:
        with zardine.config.set({"window_bytes": 16}):
            step.act(array)

    return replace(step, act=act)


def append(rows: int, value: int) -> Step:
    """Append rows."""

    def block(values: Any) -> Values:
        return np.full((rows, *values.shape[1:]), value, "u4")

    return Step(
        lambda array: array.append(block(array)), lambda values: np.concatenate((values, block(values))), again=False
    )


def resize(*shape: int) -> Step:
    """Change the shape; what comes into it is the fill value."""

    def model(values: Values) -> Values:
        after = np.zeros(shape, "u4")
        kept = tuple(slice(min(sizes)) for sizes in zip(shape, values.shape, strict=True))
        after[kept] = values[kept]
        return after

    return Step(lambda array: array.resize(shape), model)


def attribute(**attributes: Any) -> Step:
    """Set attributes."""
    return Step(lambda array: array.attrs.update(attributes), lambda values: values, attributes)


def count(rows: int = 32, columns: int = 32) -> Values:
    """No two elements are the same, and none is the fill value."""
    return np.arange(1, rows * columns + 1, dtype="u4").reshape(rows, columns)


def only(*boxes: Box) -> Callable[[], Values]:
    """The same, with the fill value outside of the boxes."""

    def start() -> Values:
        values = np.zeros((32, 32), "u4")
        for box in boxes:
            values[box] = count()[box]
        return values

    return start


def noise(rows: int, columns: int) -> Values:
    """Values that do not compress."""
    return np.random.default_rng(0).integers(1, 2**32, (rows, columns), "u4")


SCENARIOS = {
    "update": Scenario((put((4, 8), (4, 8), 77), put((9, 15), (9, 15), 78)), count, shards=(32, 32)),
    "new": Scenario(
        (put((17, 23), (16, 20), 77), put((0, 16), (16, 32), 78), put((0, 16), (0, 16), 79)),
        only((slice(16), slice(16))),
    ),
    "in parts": Scenario(
        tuple(
            in_parts(put((16, 32), columns, value)) for columns, value in (((0, 16), 77), ((16, 32), 78), ((0, 16), 79))
        ),
        only((slice(16), slice(16))),
    ),
    "other lengths": Scenario(  # in one call some of the chunks get shorter and others longer
        (
            put((0, 8), (1, 8), np.concatenate((np.full((4, 7), 77, "u4"), noise(4, 7)))),
            put((9, 16), (0, 8), np.concatenate((noise(3, 8), np.full((4, 8), 78, "u4")))),
        ),
        lambda: np.concatenate((noise(4, 8), np.full((8, 8), 9, "u4"), noise(4, 8))),
        compressors="auto",
    ),
    "empty": Scenario(
        (put((0, 4), (0, 4), 0), put((3, 9), (4, 8), 0), put((16, 32), (16, 32), 0)),
        only((slice(4), slice(4)), (slice(4, 8), slice(4, 8)), (slice(16, 32), slice(32))),
    ),
    "buffered": Scenario(
        (
            buffered(((2, 6), (2, 6), 77), ((8, 12), (8, 12), 78), ((0, 16), (16, 32), 79), ((20, 24), (20, 22), 80)),
            buffered(((14, 18), (14, 18), 81)),
        ),
        only((slice(16), slice(32))),
    ),
    "append": Scenario((append(9, 77), append(9, 78)), lambda: count(18, 16)),
    "resize": Scenario((resize(36, 18), put((34, 36), (15, 18), 77), resize(10, 6)), lambda: count(30, 16)),
    "chunks": Scenario(
        (put((1, 6), (0, 4), 77), put((5, 7), (4, 8), 78), put((0, 4), (0, 4), 79), put((4, 8), (0, 8), 0)),
        lambda: np.pad(count(8, 4), ((0, 0), (0, 4))),
        shards=None,
        strategies=("rewrite",),
    ),
    "attributes": Scenario(
        (attribute(a=1), attribute(a=2, b=["long"] * 40)), lambda: count(8, 8), shards=(8, 8), strategies=("rewrite",)
    ),
    "attributes of Zarr v2": Scenario(
        (attribute(a=1), attribute(a=2, b=["long"] * 40)),
        lambda: count(8, 8),
        shards=None,
        zarr_format=2,
        strategies=("rewrite",),
    ),
}


def combinations(name: str) -> list[tuple[str, str, bool]]:
    """The strategies, places of the index and durabilities that a scenario is tried with."""
    scenario = SCENARIOS[name]
    if scenario.shards is None or scenario.strategies == ("rewrite",):
        return [("rewrite", "end", durable) for durable in (False, True)]
    return [
        (strategy, location, durable)
        for strategy in scenario.strategies
        for location in LOCATIONS
        for durable in (False, True)
        if name == "update" or durable == (location == "start")
    ]


@dataclass(frozen=True)
class Seen:
    """What a reader finds."""

    step: int
    """Steps that are wholly done."""
    begun: bool
    """Whether the next step is done in part."""
    torn: list[Box]
    """Chunks whose checksum is wrong."""
    warned: bool
    values: Values
    """As before the step where chunks are torn."""
    attributes: dict[str, Any]


class MixedError(AssertionError):
    """What is stored is neither before nor after a step."""


def look(path: Path, scenario: Scenario, strategy: str) -> Seen:
    """Read all, and say between which stages it is. Raises :class:`MixedError` where it is not between any."""
    INDEXES.clear()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        array = zardine.open_array(path, mode="r")
        values, torn = read_all(array, scenario.chunks)
    if any(each.category is not zardine.errors.TornShardWarning for each in warned):
        raise MixedError(f"warned: {[str(each.message) for each in warned]}")
    stages = scenario.stages()
    unit = scenario.unit(strategy)
    for step, (before, attributes) in enumerate(stages):
        if values.shape == before.shape and array.attrs.asdict() == attributes:
            after = stages[step + 1][0] if step + 1 < len(stages) else before
            if after.shape != before.shape:
                after = before  # a new shape and the values in it are there together
            done = cells_done(values, before, after, unit, torn)
            if done is not None:
                for box in torn:
                    values[box] = before[box]
                return Seen(step, done, torn, bool(warned), values, attributes)
    raise MixedError(f"neither old nor new: {values.shape} {array.attrs.asdict()} torn {torn} {values.tolist()}"[:600])


def read_all(array: zardine.Array, chunks: tuple[int, int]) -> tuple[Values, list[Box]]:
    """The values, and the chunks whose checksum is wrong; zeros stand there."""
    values, torn = np.zeros(array.shape, "u4"), []
    for box in boxes(array.shape, chunks):
        try:
            values[box] = array[box]
        except zardine.errors.ChecksumError:
            torn.append(box)
    try:
        if (array[...] != values).any():
            raise MixedError("chunk by chunk there is something else than in one piece")
    except zardine.errors.ChecksumError:
        if not torn:
            raise MixedError("a wrong checksum that no single chunk has") from None
    return values, torn


def boxes(shape: tuple[int, ...], unit: tuple[int, int]) -> list[Box]:
    """The cells of a grid."""
    return [
        (slice(row, min(row + unit[0], shape[0])), slice(column, min(column + unit[1], shape[1])))
        for row in range(0, shape[0], unit[0])
        for column in range(0, shape[1], unit[1])
    ]


def cells_done(values: Values, before: Values, after: Values, unit: tuple[int, int], torn: list[Box]) -> bool | None:
    """Whether some cells are as after; ``None`` if one is neither as before nor as after, or all are as after.

    A chunk that the end of the array cuts may be torn without a change: what is in it beyond the end may be written.
    """
    done, left = False, not (before != after).any()
    for box in boxes(values.shape, unit):
        changes = bool((before[box] != after[box]).any())
        if box in torn:
            if not changes and not is_cut(box, unit):
                return None
            done, left = done or changes, left or changes
        elif changes and (values[box] == after[box]).all():
            done = True
        elif (values[box] == before[box]).all():
            left = left or changes
        else:
            return None
    return done if left else None


def is_cut(box: Box, unit: tuple[int, int]) -> bool:
    """Whether a cell is smaller than others."""
    return any(part.stop - part.start < size for part, size in zip(box, unit, strict=True))
