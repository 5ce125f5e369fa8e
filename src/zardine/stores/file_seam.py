"""What a store offers whose values are files: to read one while it is open, to edit it, to replace many at a time.

:attr:`Store.files <zardine.stores.base.Store.files>` is ``None`` for all other stores. Who has no use for files reads
and sets values: that is always right, and only slower.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, NamedTuple

from zardine.buffers import BytesLike
from zardine.errors import ReadOnlyError, UnsupportedError
from zardine.stores.byte_ranges import Version
from zardine.stores.condition import Condition
from zardine.stores.open_files import EditableFile, KeptFile, OpenFile

if TYPE_CHECKING:
    from zardine._kernel import Crew, KnownFile, NewFiles
    from zardine.stores.base import Store


class FilePaths(NamedTuple):
    """Files that are values, for a caller that opens them by their paths."""

    below: bytes
    """Real path of a directory, with a slash at its end. A file that, once it is open, lies elsewhere is not to be read
    but left to :meth:`StoreFiles.open`.
    """
    paths: list[bytes]


class PathForm(NamedTuple):
    """The same by a form: what ``%`` makes of it, and of the grid coordinates of a chunk, is the path of its file."""

    below: bytes
    path: bytes


_NOT_MADE: Final = "this store has no files that are made in their place"


class StoreFiles(ABC):
    """The values of a store as files of this machine, by their keys.

    :meth:`open` and :meth:`edit` are needed. All else serves the kernel, which reads and writes many files in one call:
    its fallbacks say ``None``, and the general path does the work.
    """

    __slots__ = ()

    @property
    def can_read(self) -> bool:
        """Whether values may be read from open files; false for stores that want to see what is read."""
        return True

    @property
    def can_edit(self) -> bool:
        """Whether values may be changed in place."""
        return True

    @property
    def folder(self) -> str | None:
        """The folder in which every key is the path of a file; ``None`` if there is more to a value than its file."""
        return None

    @property
    def can_make(self) -> bool:
        """Whether :meth:`make` and its kin may be used: values need not be on the disk at once."""
        return False

    @abstractmethod
    def open(self, key: str) -> OpenFile | None:
        """Open the file of ``key`` for reading; return ``None`` if the key is missing."""

    @abstractmethod
    def edit(self, key: str) -> AbstractContextManager[EditableFile | None]:
        """A context that gives the file of ``key``, open to be changed in place, and keeps all other writers out.

        ``None`` if the key is missing, or its file must not be changed in place, since other names share it.
        """

    def keep_open(self, keys: Sequence[str], *, sparing: bool = False, look: bool = True) -> Sequence[KeptFile] | None:
        """Return files that the store keeps open for reads to come; the caller does not close them.

        ``None`` if a key is missing, or the store keeps no files. With ``sparing``, also if others would have to be
        closed for one that was not asked for lately. Without ``look``, one may have been replaced or edited since it
        was opened: for a caller that looks by what is ``known`` of it.
        """
        return None

    def identify(self, key: str, version: Version) -> KnownFile | None:
        """Return what tells the kernel whether ``key`` still has this version.

        ``None`` if :meth:`Store.is_unchanged` is to be asked.
        """
        return None

    def paths(self, keys: Sequence[str]) -> FilePaths | None:
        """Return where the files of ``keys`` are, whether or not they exist, to be opened as :meth:`open` does it.

        A path that means nothing is a key that is missing. ``None`` if there is more to opening them than that.
        """
        return None

    def path_form(self, form: str) -> PathForm | None:
        """As :meth:`paths`, of keys that ``%`` makes of ``form`` and the grid coordinates of a chunk."""
        return None

    def replace(
        self,
        keys: Sequence[str],
        *,
        conditions: Sequence[Condition | None] = (),
        changing: bool = False,
    ) -> AbstractContextManager[NewFiles | None]:
        """A context in which the kernel may put files in the place of the values of ``keys``, as ``set`` does it.

        Gives where, for each of them. ``conditions``: those of each, if there are any. With ``changing``, the values
        that are stored are read and locked before, as :meth:`edit` does it. ``None`` if there is more to writing them
        than that.
        """
        return nullcontext(None)

    # values that nobody reads yet: to be overridden by stores that say ``can_make``

    def make(self, values: Iterable[tuple[str, BytesLike]]) -> None:
        """Store values under keys under which nothing is stored: files are made in their place, and not synced.

        ``values`` are asked for as they are needed. After an error some files are there, and one in part.
        """
        raise UnsupportedError(_NOT_MADE)

    def make_parts(self, key: str, parts: Iterable[BytesLike]) -> None:
        """Store one value that comes in parts, as :meth:`make` does."""
        raise UnsupportedError(_NOT_MADE)

    def make_cells(self, path: str, arrays: Sequence[tuple[object, ...]], threads: int, crew: Crew) -> None:
        """Make files of cells of ``arrays`` below ``path``, as ``make_cell_files`` of the kernel takes them."""
        raise UnsupportedError(_NOT_MADE)

    def name_again(self, names: Iterable[tuple[str, str]]) -> None:
        """Give values a second key each, under which nothing is stored; a copy where files cannot have two names."""
        raise UnsupportedError(_NOT_MADE)

    def read_whole(self, keys: Sequence[str], most: int) -> Sequence[BytesLike | None]:
        """Return values of at most ``most`` bytes, read at once; ``None`` for those to be read in another way."""
        return [None] * len(keys)


def check_writable(place: object, read_only: bool, what: str = "write to") -> None:
    """Raise :class:`~zardine.errors.ReadOnlyError` for a store, or its files, that was opened read-only."""
    if read_only:
        raise ReadOnlyError(f"cannot {what} {place}: it was opened read-only")


def files_to_read(store: Store) -> StoreFiles | None:
    """Return the files of a store if its values may be read from them."""
    files = store.files
    return files if files is not None and files.can_read else None


def files_to_edit(store: Store) -> StoreFiles | None:
    """Return the files of a store if its values may be changed in place."""
    files = store.files
    return files if files is not None and files.can_edit else None


def local_folder(store: Store) -> str | None:
    """Return the folder of a store whose values are the files there, and nothing more."""
    files = store.files
    return None if files is None else files.folder


def files_to_make(store: Store) -> StoreFiles | None:
    """Return the files of a store if values that nobody reads yet may be made in their place."""
    files = store.files
    return files if files is not None and files.can_make else None


def replace_files(
    store: Store,
    keys: Sequence[str],
    *,
    conditions: Sequence[Condition | None] = (),
    changing: bool = False,
) -> AbstractContextManager[NewFiles | None]:
    """As :meth:`StoreFiles.replace`; gives ``None`` for a store without files too."""
    files = store.files
    if files is None:
        return nullcontext(None)
    return files.replace(keys, conditions=conditions, changing=changing)


__all__ = [
    "FilePaths",
    "PathForm",
    "StoreFiles",
    "check_writable",
    "files_to_edit",
    "files_to_make",
    "files_to_read",
    "local_folder",
    "replace_files",
]
