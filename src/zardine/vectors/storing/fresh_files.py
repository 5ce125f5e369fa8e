"""Many small files of an array that no reader knows of yet.

A store replaces each value at one moment, under a lock, so that readers and other writers are never led astray. Cells
that no document names cannot be read by anybody, and what a killed writer leaves of them is erased before the next one
begins: there plain files do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from zardine.buffers import BytesLike
from zardine.errors import StoreError
from zardine.stores.base import Store
from zardine.stores.local.store import LocalStore


def can_write_files(store: Store) -> bool:
    """Whether values of ``store`` are plain files in a local directory, and need not be on the disk at once."""
    return type(store) is LocalStore and not store.durable and not store.read_only


def write_files(store: Store, values: Iterable[tuple[str, BytesLike]]) -> None:
    """Write values under keys that nothing is stored under. Raises :class:`~zardine.errors.StoreError`."""
    assert isinstance(store, LocalStore)
    try:
        _write(store, values)
    except OSError as error:
        raise StoreError(f"cannot write to {store}: {error}") from error


def _write(store: LocalStore, values: Iterable[tuple[str, BytesLike]]) -> None:
    root = str(store.root)
    made: set[str] = set()
    for key, value in values:
        path = f"{root}/{key}"
        folder = path.rpartition("/")[0]
        if folder not in made:
            os.makedirs(folder, exist_ok=True)
            made.add(folder)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            rest = memoryview(value)
            while len(rest):
                rest = rest[os.write(file, rest) :]
        finally:
            os.close(file)
