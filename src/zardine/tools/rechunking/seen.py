"""A store that notes the version of every value that is read through it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from zardine.stores.base import WHOLE, ByteRange, OpenFile, Reading, Store, Version
from zardine.stores.wrappers.wrapper import WrapperStore


class NotingStore(WrapperStore):
    """Another store, read-only; :attr:`versions` are those that were read last, by key, ``None`` for missing keys."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, read_only=True)
        self.versions: dict[str, Version | None] = {}

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        reading = super().read(key, ranges)
        self.versions[key] = None if reading is None else reading.version
        return reading

    def open_file(self, key: str) -> OpenFile | None:
        file = super().open_file(key)
        self.versions[key] = None if file is None else file.version
        return file

    def version(self, key: str) -> Version | None:
        version = super().version(key)
        self.versions[key] = version
        return version


def digest(versions: Iterable[tuple[str, Version | None]]) -> str:
    """Return 16 characters that are others if any of these keys has another version."""
    made = hashlib.blake2b(digest_size=8)
    for key, version in sorted(versions, key=lambda pair: pair[0]):
        made.update(f"{key}\0{version!r}\n".encode("utf-8", "surrogatepass"))
    return made.hexdigest()


__all__ = ["NotingStore", "digest"]
