"""The rectilinear grid: chunk lengths told axis by axis (zarr-extensions, chunk-grids/rectilinear)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from zardine.chunk_grids.axis import Axis
from zardine.chunk_grids.base import ChunkGrid
from zardine.json_document import JSON, MISSING, Problems, check_members, is_integer, parse_integer

Runs: TypeAlias = tuple[tuple[int, int], ...]

_HIGHEST = 2**63 - 1


@dataclass(frozen=True)
class RectilinearGrid(ChunkGrid):
    """Chunk lengths of each axis: one number (all chunks alike) or runs of ``(length, how many)``."""

    chunk_shapes: tuple[int | Runs, ...]
    name = "rectilinear"

    @classmethod
    def from_lengths(cls, lengths: Sequence[int | Sequence[int]]) -> RectilinearGrid:
        """A grid from explicit chunk lengths, one sequence (or one number) for each axis."""
        return cls(tuple(each if isinstance(each, int) else _runs((size, 1) for size in each) for each in lengths))

    @classmethod
    def from_json(
        cls, configuration: Mapping[str, JSON] | None, shape: tuple[int, ...], place: str, problems: Problems
    ) -> RectilinearGrid | None:
        """The grid that a ``configuration`` object describes."""
        members = check_members(configuration, ("kind", "chunk_shapes"), place, problems)
        kind, value = members.get("kind", MISSING), members.get("chunk_shapes", MISSING)
        if kind != "inline":
            problems.expected(f"{place}.kind", '"inline"', kind)
        place = f"{place}.chunk_shapes"
        if not isinstance(value, (list, tuple)):
            problems.expected(place, "an array with chunk lengths for each dimension", value)
            return None
        if len(value) != len(shape):
            problems.add(place, f"expected {len(shape)} elements, one for each dimension, found {len(value)}")
            return None
        found = [
            _parse_axis(each, length, f"{place}[{i}]", problems)
            for i, (each, length) in enumerate(zip(value, shape, strict=True))
        ]
        axes = tuple(each for each in found if each is not None)
        return cls(axes) if len(axes) == len(shape) else None

    def configuration(self) -> dict[str, JSON]:
        """The ``configuration`` member, run-length encoded."""
        return {"kind": "inline", "chunk_shapes": [_axis_to_json(each) for each in self.chunk_shapes]}

    def axes(self, shape: tuple[int, ...]) -> tuple[Axis, ...]:
        """The grid over an array of ``shape``."""
        return tuple(
            Axis.regular(length, each) if isinstance(each, int) else Axis(length, each)
            for length, each in zip(shape, self.chunk_shapes, strict=True)
        )

    def resized(self, shape: tuple[int, ...]) -> RectilinearGrid:
        """Where an axis outgrows its chunks, chunks of the last length are added."""
        axes: list[int | Runs] = []
        for length, each in zip(shape, self.chunk_shapes, strict=True):
            if isinstance(each, int):
                axes.append(each)
                continue
            missing = length - sum(size * number for size, number in each)
            last = each[-1][0] if each else max(length, 1)
            axes.append(_runs((*each, (last, -(-missing // last)))) if missing > 0 else each)
        return RectilinearGrid(tuple(axes))

    def continues(self, other: ChunkGrid) -> bool:
        """Whether along each axis one has the chunks of the other, and perhaps more behind them."""
        if not isinstance(other, RectilinearGrid) or len(self.chunk_shapes) != len(other.chunk_shapes):
            return False
        pairs = zip(self.chunk_shapes, other.chunk_shapes, strict=True)
        return all(
            a == b if isinstance(a, int) or isinstance(b, int) else _begins(a, b) or _begins(b, a) for a, b in pairs
        )


def _begins(short: Runs, long: Runs) -> bool:
    """Whether ``long`` has all chunk lengths of ``short``, and perhaps more behind them."""
    if not 0 < len(short) <= len(long) or short[:-1] != long[: len(short) - 1]:
        return not short
    (size, number), (other, most) = short[-1], long[len(short) - 1]
    return size == other and number <= most


def _runs(pairs: Iterable[tuple[int, int]]) -> Runs:
    """Neighbouring runs of the same chunk length joined."""
    joined: list[tuple[int, int]] = []
    for size, number in pairs:
        if joined and joined[-1][0] == size:
            joined[-1] = (size, joined[-1][1] + number)
        else:
            joined.append((size, number))
    return tuple(joined)


def _parse_axis(value: JSON, length: int, place: str, problems: Problems) -> int | Runs | None:
    if is_integer(value):
        return parse_integer(value, place, problems, low=1, high=_HIGHEST)
    if not isinstance(value, (list, tuple)):
        problems.expected(place, "a chunk length or an array of chunk lengths", value)
        return None
    pairs = []
    good = True
    for i, each in enumerate(value):
        here = f"{place}[{i}]"
        pair = each if isinstance(each, (list, tuple)) else (each, 1)
        if len(pair) != 2:
            problems.expected(here, "a chunk length or a pair [length, how many]", each)
            good = False
            continue
        size = parse_integer(pair[0], here, problems, low=1, high=_HIGHEST)
        number = parse_integer(pair[1], here, problems, low=1, high=_HIGHEST)
        if size is None or number is None:
            good = False
            continue
        pairs.append((size, number))
    total = sum(size * number for size, number in pairs)
    if good and not length <= total <= _HIGHEST:
        problems.add(place, f"the chunk lengths add up to {total}, the array is {length} long on this axis")
        good = False
    return _runs(pairs) if good else None


def _axis_to_json(axis: int | Runs) -> JSON:
    if isinstance(axis, int):
        return axis
    return [size if number == 1 else [size, number] for size, number in axis]
