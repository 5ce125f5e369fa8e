"""Entries of a zip archive that the directory calls by another name than stands before them: one is damaged.

Names have no checksum. Each is there twice, so that a damaged one is found by comparing both; which of them is the
damaged one, nobody can tell.
"""

from __future__ import annotations

import struct
import zipfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from zardine.stores.base import is_key
from zardine.stores.zip.file import ArchiveBytes

_HEAD: Final = struct.Struct("<4s2xH18xH2x")
"""Of what stands before an entry: its mark, its flags, and the length of its name, which follows."""
_MARK: Final = b"PK\x03\x04"
_UTF8: Final = 0x800
"""The flag of an entry whose name is not in the old letters."""
_LONG: Final = 2**10
"""Bytes that a name may have that is not as long as the one in the directory."""
_MOST: Final = 1000
"""Entries that are kept apart. Where more have two names it is no damage: nothing is believed of such an archive."""


@dataclass(frozen=True, slots=True)
class Misnamed:
    """An entry with two names."""

    info: zipfile.ZipInfo
    own: str | None
    """The name before it; ``None`` where that is no key, or cannot be read."""

    @property
    def names(self) -> tuple[str, ...]:
        """The keys that it may be the value of."""
        own = () if self.own is None else (self.own,)
        return (*own, self.info.filename) if is_key(self.info.filename) else own

    def __str__(self) -> str:
        before = "that stands before it is no key" if self.own is None else f"before it is {self.own!r}"
        return f"the directory calls it {self.info.orig_filename!r}, and the name {before}"


class MisnamedEntries:
    """The entries with two names, and the keys that may be theirs: to read, and to list, such a key tells of that.

    A key is no longer in doubt when an entry of that name comes later in the directory, or it is written or erased.
    """

    def __init__(self, wrong: Sequence[Misnamed], infos: Sequence[zipfile.ZipInfo], refusal: str = "") -> None:
        self.refusal = refusal
        """Why nothing is believed of the archive; empty if there are not too many."""
        self._all: dict[int, Misnamed] = {}
        self._of: dict[str, dict[int, Misnamed]] = {}
        self._order: dict[int, int] = {}
        """Where each entry stands in the directory: the last one of a name counts."""
        self.hidden: set[str] = set()
        """Names in the directory that are no keys as far as is known, since their entries call themselves otherwise."""
        self.instead: dict[str, zipfile.ZipInfo | None] = {}
        """The entries that count for keys in the directory when these are kept apart, if there are any."""
        self._offsets: frozenset[int] = frozenset()
        if not wrong:
            return
        self._order = {info.header_offset: number for number, info in enumerate(infos)}
        self._offsets = frozenset(each.info.header_offset for each in wrong)
        last = {info.filename: info for info in infos if info.header_offset not in self._offsets}
        for each in wrong:
            if is_key(each.info.filename):
                self.instead[each.info.filename] = last.get(each.info.filename)
            number = self._order[each.info.header_offset]
            doubted = [name for name in each.names if name not in last or self._number(last[name]) < number]
            for name in doubted:
                self._of.setdefault(name, {})[each.info.header_offset] = each
            if doubted:
                self._all[each.info.header_offset] = each
            if each.own in doubted and each.info.filename not in last:
                self.hidden.add(each.info.filename)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Misnamed]:
        return iter(tuple(self._all.values()))

    def of(self, key: str) -> Misnamed | None:
        """One that may be the value of a key."""
        return next(iter(tuple(self._of.get(key, {}).values())), None)

    @property
    def keys(self) -> set[str]:
        """The keys in doubt that are to be listed."""
        return set(self._of) - self.hidden

    def has_two_names(self, info: zipfile.ZipInfo) -> bool:
        """Whether an entry is one of these, or was before what it may be of was written or erased."""
        return info.header_offset in self._offsets

    def settle(self, key: str) -> bool:
        """Doubt a key no longer: it was written or erased. Gives whether anything changed by that.

        What calls itself so, in whatever way the directory calls it, is replaced by that, and is no longer there.
        """
        settled = self._of.pop(key, None)
        self.hidden.discard(key)
        for offset, each in (settled or {}).items():
            if each.own in (key, None) or not any(offset in self._of.get(name, ()) for name in each.names):
                self._all.pop(offset, None)
                for name in each.names:
                    self._forget(name, offset)
        return settled is not None

    def _forget(self, name: str, offset: int) -> None:
        doubted = self._of.get(name, {})
        doubted.pop(offset, None)
        if not doubted:
            self._of.pop(name, None)
            self.hidden.discard(name)

    def in_order(self, infos: Sequence[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
        """These and others, in the order of the directory that they were read from; what was added since is last."""
        both = [*infos, *(each.info for each in self._all.values())]
        return sorted(both, key=lambda info: (self._number(info), info.header_offset)) if self._all else both

    def _number(self, info: zipfile.ZipInfo) -> int:
        return self._order.get(info.header_offset, len(self._order))


def compare_names(data: ArchiveBytes, infos: Sequence[zipfile.ZipInfo], stop: int, archive: str) -> MisnamedEntries:
    """Compare the names of all entries that lie at hand with those before them, at 2 µs, or a seek of the disk, each.

    ``stop`` is where the directory begins. They are refused where too many have two names.
    """
    wrong: list[Misnamed] = []
    starts: list[int] | None = None
    for info in infos:
        at = info.header_offset
        if not data.is_at_hand(at):
            continue
        name = stored_name(info)
        head = bytes(data.read(at, _HEAD.size + len(name)))
        if is_named(head, info, name):
            continue
        if starts is None:
            starts = sorted(each.header_offset for each in infos)
        behind = bisect_right(starts, at)
        own = _own_name(data, at, starts[behind] if behind < len(starts) else stop, len(name))
        if own is None and not is_key(info.filename):
            continue
        if len(wrong) == _MOST:
            refusal = (
                f"{archive}: more than {_MOST} entries have other names in the directory than before them, such as "
                f"{info.orig_filename!r}; it is damaged, or made to deceive: what its directory does not name "
                "may be there"
            )
            return MisnamedEntries((), (), refusal)
        wrong.append(Misnamed(info, own))
    return MisnamedEntries(wrong, infos)


def is_named(head: bytes, info: zipfile.ZipInfo, name: bytes) -> bool:
    """Whether what stands before an entry says the same name, in the same letters, as the directory does."""
    mark, flags, length = _HEAD.unpack_from(head)
    return (
        length == len(name)
        and head[_HEAD.size : _HEAD.size + length] == name
        and mark == _MARK
        and (name.isascii() or not (flags ^ info.flag_bits) & _UTF8)
    )


def _own_name(data: ArchiveBytes, start: int, stop: int, usual: int) -> str | None:
    """The name before an entry whose bytes end at ``stop`` at the latest; ``None`` if it is no key, or too long."""
    mark, flags, length = _HEAD.unpack(data.read(start, _HEAD.size))
    if mark != _MARK or length > max(usual, _LONG) or start + _HEAD.size + length > stop:
        return None
    try:
        name = bytes(data.read(start + _HEAD.size, length)).decode("utf-8" if flags & _UTF8 else "cp437")
    except UnicodeDecodeError:
        return None
    return name if is_key(name) else None


def stored_name(info: zipfile.ZipInfo) -> bytes:
    """The name of an entry as it stands in the directory."""
    return info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437", "replace")


def other_decoding(key: str) -> str:
    """What a key reads as where the flag that it is in UTF-8 is lost."""
    return key.encode("utf-8", "surrogatepass").decode("cp437")


def is_in_old_letters(info: zipfile.ZipInfo) -> bool:
    """Whether the directory does not say that a name is in UTF-8."""
    return not info.flag_bits & _UTF8


__all__ = [
    "Misnamed",
    "MisnamedEntries",
    "compare_names",
    "is_in_old_letters",
    "is_named",
    "other_decoding",
    "stored_name",
]
