"""h5py, and opening a file with it so that nothing outside of that file is ever read."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from zardine.errors import CorruptionError, DataError, ZardineError
from zardine.sources.stored_file import ReadFailedError, SeekableFile, StoredFile
from zardine.stores.extras import need

FAILURES: Final = (OSError, RuntimeError, ValueError, KeyError, TypeError, NotImplementedError)
"""What h5py makes of the errors of HDF5, by their kinds. That the file could not be read is none of them."""


def h5py() -> Any:
    """Return the package h5py; :class:`~zardine.errors.UnsupportedError` with the command that installs it."""
    return need("h5py", "reading HDF5 and NetCDF 4")


def open_file(file: StoredFile) -> Any:
    """Return a file opened by h5py, through the store it is in. To be called within :func:`reading`.

    Whatever the file refers to is looked for by the same means, which know of one file only: links out of it, virtual
    data sets and raw data elsewhere lead nowhere.
    """
    return h5py().File(SeekableFile(file), "r")


def has_filter(number: int) -> bool:
    """Return whether the HDF5 library here has a filter, by itself or from the package hdf5plugin."""
    library = h5py()
    if not library.h5z.filter_avail(number):
        with suppress(ImportError):
            importlib.import_module("hdf5plugin")
    return bool(library.h5z.filter_avail(number))


@contextmanager
def reading(what: str, error_class: type[DataError] = CorruptionError) -> Iterator[None]:
    """Turn what h5py raises into an error of ours that begins with ``what``.

    Where the store failed, that is raised: the file may be sound, and trying again may help.
    """
    try:
        yield
    except ReadFailedError as error:
        raise error.reason from None
    except ZardineError:
        raise
    except FAILURES as error:
        raise error_class(f"{what}: {error}") from None


__all__ = ["FAILURES", "h5py", "has_filter", "open_file", "reading"]
