"""What every implementation can be asked to do. What it cannot do it leaves as it is here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

Box = tuple[slice, ...]
"""Slices with start and stop, step 1 unless said otherwise; no axis is dropped."""


class UnsupportedError(Exception):
    """The implementation has no way to do this."""


class Implementation(ABC):
    """One implementation in one process. ``array`` is whatever ``open`` returned."""

    packages: tuple[str, ...] = ()
    """Packages whose versions the report names."""
    imports: str = ""
    """The statements whose time is the time to import it."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    @abstractmethod
    def open(self, path: str, *, write: bool = False) -> Any:
        """Open the array in this folder."""

    @abstractmethod
    def read(self, array: Any, box: Box) -> np.ndarray:
        """The elements of a box."""

    @abstractmethod
    def write(self, array: Any, box: Box, values: np.ndarray) -> None:
        """Write a box; on return the bytes are with the operating system."""

    @abstractmethod
    def append(self, array: Any, values: np.ndarray) -> Any:
        """Add rows after the last one; the array to go on with."""

    def read_all(self, array: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Everything."""
        return self.read(array, tuple(slice(0, extent) for extent in shape))

    def chunk_reader(self, array: Any) -> Any:
        """A function from a box that is one inner chunk, and the chunk's place in the grid, to its elements."""
        return lambda box, place: self.read(array, box)

    def read_strided(self, array: Any, box: Box) -> np.ndarray:
        """The elements of a box with steps."""
        return self.read(array, box)

    def read_points(self, array: Any, points: tuple[np.ndarray, ...]) -> np.ndarray:
        """Single elements, by one array of coordinates for each axis."""
        raise UnsupportedError("has no selection of points")

    def list_group(self, path: str) -> list[tuple[int, ...]]:
        """The shapes of all arrays in a group."""
        raise UnsupportedError("has no groups")

    @contextmanager
    def collected(self, array: Any) -> Iterator[Any]:
        """The array to use for many small writes; they are stored when this ends at the latest."""
        yield array
