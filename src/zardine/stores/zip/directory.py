"""The directory of a zip archive, read by the module ``zipfile`` and not trusted."""

from __future__ import annotations

import contextlib
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from zardine.buffers import BytesLike
from zardine.errors import StoreError
from zardine.stores.base import ByteRange, Reading, is_key, resolve_range
from zardine.stores.zip.file import ArchiveBytes, AsFile, FileBytes
from zardine.stores.zip.misnamed import (
    MisnamedEntries,
    compare_names,
    is_in_old_letters,
    is_named,
    other_decoding,
    stored_name,
)
from zardine.stores.zip.records import END, DirectoryEnd, earlier_ends, end_of_archive

_LOCAL: Final = struct.Struct("<4s5H3I2H")
_RATIO: Final = 1100
"""Deflate makes bytes at most 1032 times fewer."""
_NO_SUM: Final = 0x8
"""The flag of an entry whose own header was written before its checksum was known."""

_MOST_ENDS: Final = 100
"""Records that look like the end of a directory and are looked into, each of which may claim to be of a large one."""
_MOST_LOOKED_INTO: Final = 4
"""Times the size of the archive that these directories have in all: they may claim the same bytes, to waste time."""

_MOST_TOLD: Final = 100
"""Names that are no keys that :meth:`ZipDirectory.faults` tells of, each."""

MOST_INFLATED: Final = 2**30
"""Bytes that a compressed entry may have when it is read."""


class _DamagedError(StoreError):
    """What is told of is no directory, or not of this archive."""


class ZipDirectory:
    """The entries of an archive, and their values, with the bytes that they are read from.

    Names that are no keys (absolute ones, such with ``..``, directories) are as if they were not there. Of several
    entries of one name the last one counts. Names have no checksum, but each stands before its entry, too: what is read
    is compared with that. So are all names, once, before a key is said to be missing, keys are listed, or anything is
    changed, so that a chunk whose name is damaged is not taken for one that was never stored; elsewhere than in a local
    file, those that lie at hand. :class:`StoreError` for archives that are damaged or made to deceive.

    Who reads takes one of these and gets all from it: it stays right whatever becomes of the file's name. The process
    that writes to the archive adds to ``entries``, and removes from them, but what was once written is never changed.
    """

    def __init__(self, data: ArchiveBytes, name: str, end: DirectoryEnd | None) -> None:
        self._data, self._name = data, name
        self.stop = 0 if end is None else end.stop
        """Bytes of the archive when this was written."""
        self.comment = b""
        self.entries: dict[str, zipfile.ZipInfo] = {}
        self.others: tuple[zipfile.ZipInfo, ...] = ()
        """Entries whose names are no keys."""
        self._infos: Sequence[zipfile.ZipInfo] = ()
        self._first = 0 if end is None else end.start
        self._compared: dict[str, MisnamedEntries] = {}
        self._starts: dict[int, int] = {}
        self._names: list[str] | None = None
        if end is not None:
            infos = self._parse(end)
            self._check(infos, end.start)
            self.entries.update((info.filename, info) for info in infos if is_key(info.filename))
            self.others = tuple(info for info in infos if not is_key(info.filename))
            self._infos = infos
            if not isinstance(data, FileBytes):
                self._compared["names"] = compare_names(data, infos, end.start, name)

    @classmethod
    def of(cls, data: ArchiveBytes, name: str) -> ZipDirectory | None:
        """The last directory that is whole, see :attr:`is_whole`; ``None`` if there is none at all."""
        end = end_of_archive(data)
        if end is not None:
            try:
                return cls(data, name, end)
            except _DamagedError as error:
                raise StoreError(str(error)) from None  # the name that users know
        looked_into = 0
        for end in islice(earlier_ends(data), _MOST_ENDS):
            looked_into += end.record - end.start
            if looked_into > _MOST_LOOKED_INTO * data.size:
                break
            with contextlib.suppress(_DamagedError):
                return cls(data, name, end)
        return None

    @property
    def data(self) -> ArchiveBytes:
        """The bytes of the archive."""
        return self._data

    @property
    def is_whole(self) -> bool:
        """Whether the archive ends with this directory, and not with what a write that was cut off has left."""
        return self.stop == self._data.size

    @property
    def torn(self) -> str:
        """What is wrong with an archive that is not whole."""
        return (
            f"{self._name} is cut short or was not finished: no directory tells of its last "
            f"{self._data.size - self.stop} bytes, {self.stop} to {self._data.size}"
        )

    def names(self) -> list[str]:
        """All keys, sorted, also such as entries with two names may be of. Nobody may write meanwhile."""
        if self._names is None:
            misnamed = self.misnamed()
            self._names = sorted((set(self.entries) - misnamed.hidden) | misnamed.keys if misnamed else self.entries)
        return self._names

    def misnamed(self) -> MisnamedEntries:
        """The entries with two names. :class:`StoreError` where there are too many."""
        found = self._compared.get("names")
        if found is None:
            # several readers may do it at the same time: one result is kept
            found = self._compared.setdefault("names", compare_names(self._data, self._infos, self._first, self._name))
        if found.refusal:
            raise StoreError(found.refusal)
        return found

    def set_apart(self) -> None:
        """Take the entries with two names out of :attr:`entries` and :attr:`others`; before anything is changed."""
        misnamed = self.misnamed()
        for key, info in misnamed.instead.items():
            if info is not None:
                self.entries[key] = info
            else:
                self.entries.pop(key, None)
        misnamed.instead.clear()  # to be done once
        self.others = tuple(info for info in self.others if not misnamed.has_two_names(info))

    def written(self) -> list[zipfile.ZipInfo]:
        """All entries, as they are to stand in a new directory, once those with two names are :meth:`set_apart`."""
        return self.misnamed().in_order((*self.entries.values(), *self.others))

    def add(self, info: zipfile.ZipInfo) -> None:
        """Say that an entry was written; one of the same name is no longer there."""
        if info.filename not in self.entries:
            self._names = None
        self.entries[info.filename] = info
        if self.misnamed().settle(info.filename):
            self._names = None

    def remove(self, key: str) -> None:
        """Leave an entry out."""
        was_there = self.entries.pop(key, None) is not None
        if self.misnamed().settle(key) or was_there:
            self._names = None

    def _parse(self, end: DirectoryEnd) -> list[zipfile.ZipInfo]:
        length = end.stop - end.record - END.size
        self.comment = bytes(self._data.read(end.stop - length, length)) if length else b""
        try:
            with zipfile.ZipFile(AsFile(self._data, end.record + END.size)) as archive:
                infos, start = archive.filelist, archive.start_dir
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OverflowError) as error:
            raise _DamagedError(f"{self._name} is not a zip archive, or is damaged: {error}") from None
        if start != end.start or (len(infos) - end.count) % 2**16:
            raise _DamagedError(f"{self._name} is damaged: its directory is not the one that its end tells of")
        return infos

    def _check(self, infos: Sequence[zipfile.ZipInfo], end: int) -> None:
        """That each entry has bytes of its own before the directory: else a small archive could hold a huge one."""
        stop = 0
        for info in sorted(infos, key=lambda info: info.header_offset):
            if info.header_offset < stop:
                raise _DamagedError(
                    f"{self._name}: entries overlap ({info.filename!r}); it is made to deceive, or damaged"
                )
            stop = info.header_offset + _LOCAL.size + len(stored_name(info)) + info.compress_size
        if stop > end:
            raise _DamagedError(f"{self._name}: an entry reaches beyond the entries; it is damaged")

    def find(self, key: str) -> zipfile.ZipInfo | None:
        """Return the entry of a key; ``None`` where there is none. :class:`StoreError` where its name is damaged."""
        info, misnamed = self.entries.get(key), self._compared.get("names")
        if info is None:
            misnamed = self.misnamed()
            self._check_letters(key)
        each = None if misnamed is None else misnamed.of(key)
        if each is not None:
            raise self._damaged(key, str(each))
        return self.entries.get(key) if info is None else info  # it may be written at this moment

    def may_hold(self, key: str) -> bool:
        """Whether there is an entry of a key, or one with two names that may be of it."""
        return key in self.entries or self.misnamed().of(key) is not None

    def _check_letters(self, key: str) -> None:
        """That a name is not there in other letters, of an entry that was not compared with what stands before it."""
        if not key.isascii():
            info = self.entries.get(other_decoding(key))
            if info is not None and is_in_old_letters(info) and not self._data.is_at_hand(info.header_offset):
                raise self._damaged(key, f"the directory calls it {info.filename!r}, in other letters")

    def faults(self) -> Iterator[str]:
        """What is wrong with the names of entries, and what is not read since its name is no key."""
        try:
            misnamed = self.misnamed()
        except StoreError as error:
            yield str(error)
            return
        for each in misnamed:
            keys = " and ".join(map(repr, each.names))
            yield (
                f"{self._name}: the name of the entry at byte {each.info.header_offset} is damaged: {each}. To read "
                f"{keys} is an error where nothing else is of that name; write what it is of anew, or erase it"
            )
        others = [info for info in self.others if not (misnamed.has_two_names(info) or _is_folder(info))]
        for info in others[:_MOST_TOLD]:
            yield (
                f"{self._name}: the entry {info.orig_filename!r} at byte {info.header_offset} is not read, since its "
                "name is no key"
            )
        if len(others) > _MOST_TOLD:
            yield f"{self._name}: so are {len(others) - _MOST_TOLD} more"

    def version(self, info: zipfile.ZipInfo) -> str:
        """Of an entry: where it lies, and what is in it."""
        return f"{info.header_offset:x}-{info.CRC:x}-{info.file_size:x}"

    def read(self, key: str, info: zipfile.ZipInfo, ranges: Sequence[ByteRange]) -> Reading:
        """Ranges of an entry. What is read whole is checked against its checksum."""
        size = info.file_size
        spans = [resolve_range(each, size) for each in ranges]
        whole = any((start, stop) == (0, size) for start, stop in spans)
        parts: list[BytesLike]
        if not whole and (info.compress_type == zipfile.ZIP_STORED or not any(stop > start for start, stop in spans)):
            parts = [self._stored(key, info, start, stop) if stop > start else b"" for start, stop in spans]
        else:
            data = memoryview(self._whole(key, info))
            parts = [data[start:stop] for start, stop in spans]
        return Reading(tuple(parts), self.version(info), size)

    def _whole(self, key: str, info: zipfile.ZipInfo) -> BytesLike:
        if info.compress_type == zipfile.ZIP_STORED:
            data = self._stored(key, info, 0, info.file_size)
        else:
            data = self._inflated(key, info)
        if zlib.crc32(data) != info.CRC:
            raise self._damaged(key, "its checksum does not match")
        return data

    def _inflated(self, key: str, info: zipfile.ZipInfo) -> bytes:
        if info.file_size > min(MOST_INFLATED, info.compress_size * _RATIO + 64):
            raise self._damaged(key, f"it says that {info.compress_size} bytes inflate to {info.file_size}")
        if info.compress_type != zipfile.ZIP_DEFLATED:
            raise StoreError(
                f"key {key!r} of {self._name} is compressed in a way (method {info.compress_type}) that is not "
                "supported: entries should be stored"
            )
        start = self._start(key, info)
        decoder = zlib.decompressobj(-15)
        try:
            data = decoder.decompress(self._data.read(start, info.compress_size), info.file_size + 1)
        except zlib.error as error:
            raise self._damaged(key, str(error)) from None
        if len(data) != info.file_size:
            raise self._damaged(key, "it inflates to another length than it says")
        return data

    def _stored(self, key: str, info: zipfile.ZipInfo, start: int, stop: int) -> BytesLike:
        if info.compress_size != info.file_size:
            raise self._damaged(key, "its sizes differ, though it is not compressed")
        part = self._data.read(self._start(key, info) + start, stop - start)
        if not self._data.is_untouched():
            self._read_header(key, info)  # something was written: at the end, or over what was read
        return part

    def _start(self, key: str, info: zipfile.ZipInfo) -> int:
        """Where the bytes of an entry begin."""
        known = self._starts.get(info.header_offset)
        if known is None:
            known = self._starts[info.header_offset] = self._read_header(key, info)
        return known

    def _read_header(self, key: str, info: zipfile.ZipInfo) -> int:
        """Where an entry's own header ends, which must say the same as the directory."""
        if info.flag_bits & 1:
            raise StoreError(f"key {key!r} of {self._name} is encrypted, which is not supported")
        name = stored_name(info)
        head = bytes(
            self._data.read(info.header_offset, min(_LOCAL.size + len(name), self._data.size - info.header_offset))
        )
        if len(head) < _LOCAL.size:
            raise self._damaged(key, "its header is cut short")
        fields = _LOCAL.unpack_from(head)
        start: int = info.header_offset + _LOCAL.size + fields[9] + fields[10]
        if (
            fields[3] != info.compress_type
            or not (info.flag_bits & _NO_SUM or fields[6] == info.CRC)
            or not is_named(head, info, name)
        ):
            raise self._damaged(key, "its header is not the one that the directory tells of")
        if start + info.compress_size > self._data.size:
            raise self._damaged(key, "it reaches beyond the archive")
        return start

    def _damaged(self, key: str, reason: str) -> StoreError:
        return StoreError(f"key {key!r} of {self._name} is damaged: {reason}")


def _is_folder(info: zipfile.ZipInfo) -> bool:
    """Whether it is an entry without bytes that other programs write for a folder."""
    return info.orig_filename.endswith("/") and not info.file_size


__all__ = ["ZipDirectory"]
