"""h5py, and opening a file with it so that nothing outside of that file is ever read."""

from __future__ import annotations

from typing import Any

from zardine.errors import CorruptionError
from zardine.sources.stored_file import SeekableFile, StoredFile
from zardine.stores.extras import need


def h5py() -> Any:
    """Return the package h5py; :class:`~zardine.errors.UnsupportedError` with the command that installs it."""
    return need("h5py", "reading HDF5 and NetCDF 4")


def open_file(file: StoredFile) -> Any:
    """Return a file opened by h5py, through the store it is in.

    Whatever the file refers to is looked for by the same means, which know of one file only: links out of it, virtual
    data sets and raw data elsewhere lead nowhere.
    """
    library = h5py()
    seekable = SeekableFile(file)
    try:
        return library.File(seekable, "r")
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        raise damaged(file, seekable, error) from None


def damaged(file: StoredFile, seekable: SeekableFile | None, error: Exception) -> Exception:
    """Return what to raise where the library failed: why reading failed, if it did, else that the file is damaged."""
    if seekable is not None and seekable.failure is not None:
        return seekable.failure
    return CorruptionError(f"{file} cannot be read as HDF5, it is cut off or damaged: {error}")


__all__ = ["damaged", "h5py", "open_file"]
