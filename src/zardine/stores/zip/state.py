"""What is in the file of a zip archive at one moment."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass

from zardine.errors import StoreError, TornShardWarning
from zardine.stores.zip.directory import ZipDirectory
from zardine.stores.zip.file import ArchiveBytes, FileBytes, identity_of
from zardine.stores.zip.lock import no_writer

_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class ZipState:
    """A file as it was found."""

    identity: tuple[int, ...]
    """Tells whether it is still so. Empty if there was no file."""
    directory: ZipDirectory | None
    """``None`` if there is no file, or if a process writes to it that has never finished anything yet."""
    is_settled: bool = True
    """Whether the archive is whole, or nobody was writing to it."""

    @property
    def torn(self) -> str:
        """What is wrong with the end of an archive that nobody writes to; empty if nothing is."""
        directory = self.directory
        return "" if directory is None or directory.is_whole or not self.is_settled else directory.torn


def state_of(path: str, name: str, known: ZipState | None = None, *, locked: bool = False) -> ZipState:
    """The archive at ``path`` now; ``known`` if that is still true. ``locked``: this process has the writer's lock.

    An archive that does not end with a directory is read as it was when one was written last. If nobody writes to it,
    so that this is what a killed writer or a cut has left, a warning says so. :class:`StoreError` if there is no
    directory at all, or a damaged one.
    """
    for left in range(_ATTEMPTS, -1, -1):
        try:
            if known is not None and known.is_settled and identity_of(os.stat(path)) == known.identity:
                return known
            data = FileBytes(path)
        except FileNotFoundError:
            return ZipState((), None)
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"cannot read {name}: {error.strerror}") from error
        if locked and not data.size:
            return ZipState(data.identity, ZipDirectory(data, name, None))  # new
        directory = ZipDirectory.of(data, name)
        if directory is not None and directory.is_whole:
            break
        if locked:
            directory = as_left(directory, data, name)
            break
        with no_writer(data.fd) as is_settled:
            if not is_settled:
                return ZipState(data.identity, directory, is_settled=False)
            if not left or _is_now(path, data):
                directory = as_left(directory, data, name)
                break
    return ZipState(data.identity, directory)


def as_left(directory: ZipDirectory | None, data: ArchiveBytes, name: str) -> ZipDirectory:
    """The directory of an archive to which nobody writes: a warning or an error if it is not whole."""
    if directory is None:
        where = f"its {data.size} bytes"
        if data.look_back < data.size:
            where = f"the last {data.look_back} of {where}"
        found = f"there is no directory of entries in {where}" if data.size else "it is empty"
        raise StoreError(
            f"{name} is not a zip archive, or not a whole one: {found}. If the program that began it was killed before "
            "it finished, or it was cut short when it was copied, nothing in it can be read: put a whole copy in its "
            "place, or remove it"
        )
    if not directory.is_whole:
        warnings.warn(
            f"{directory.torn}. It is read as it was before: what was written since, or lost by the cut, is missing. "
            "The next write to it, compact() or zardine.repair puts it in order",
            TornShardWarning,
            stacklevel=2,
        )
    return directory


def _is_now(path: str, data: FileBytes) -> bool:
    try:
        return identity_of(os.stat(path)) == data.identity
    except OSError:
        return False


__all__ = ["ZipState", "as_left", "state_of"]
