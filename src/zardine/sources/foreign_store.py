"""A file of another format as a store of Zarr: documents made of what it says, chunks that lie in it as they are.

That is the whole contract between formats and the rest of zardine: whatever reads Zarr reads a :class:`ForeignStore`.
Chunks whose bytes are in the file as a codec chain of ours leaves them are ranges of it; all others are made when they
are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeAlias

from zardine.buffers import BytesLike
from zardine.chunk_keys.encodings import DefaultChunkKeyEncoding
from zardine.errors import ReadOnlyError
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import NodeMetadata, to_documents
from zardine.metadata.node_names import join_path
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.sources.stored_file import StoredFile
from zardine.stores.base import WHOLE, ByteRange, ReadCost, Reading, Store, Version, check_key, check_prefix
from zardine.stores.byte_ranges import resolve_range
from zardine.stores.sorted_names import directly_below

Coordinates: TypeAlias = tuple[int, ...]

_KEYS = DefaultChunkKeyEncoding()


@dataclass(frozen=True, slots=True)
class Span:
    """A chunk that lies in the file as its array's codecs leave it."""

    offset: int
    length: int


class Chunks(Protocol):
    """Where the chunks of an array are. Any number of threads may ask."""

    def stored(self) -> Iterator[Coordinates]:
        """Yield grid coordinates of the chunks that are there, in any order."""

    def find(self, coordinates: Coordinates) -> Span | BytesLike | None:
        """Return where a chunk is, or the chunk itself, encoded; ``None`` if it is not there."""


@dataclass(frozen=True, slots=True, eq=False)
class ForeignNode:
    """A group, or an array with its chunks."""

    metadata: NodeMetadata
    chunks: Chunks | None = None
    remarks: tuple[str, ...] = ()
    """What Zarr cannot say in the same words."""


@dataclass(frozen=True, slots=True, eq=False)
class ForeignFile:
    """All that is shown of a file."""

    format: str
    """Its name, for people."""
    nodes: Mapping[str, ForeignNode]
    """By their paths; the root, whose path is empty, is among them."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Paths of what Zarr has no form for, and why."""


class ForeignStore(Store):
    """The nodes of a file, read-only. ``reopen`` gives the same file anew, where the store comes to another process."""

    def __init__(self, file: StoredFile, shown: ForeignFile, reopen: Callable[[Store, str], ForeignStore]) -> None:
        super().__init__(read_only=True)
        self._file = file
        self._shown = shown
        self._reopen = reopen
        self._documents = {
            join_path(path, DOCUMENT_NAME): to_documents(node.metadata)[DOCUMENT_NAME] or b""
            for path, node in shown.nodes.items()
        }
        self._names = sorted(self._documents)
        self._arrays = {path: node for path, node in shown.nodes.items() if isinstance(node.metadata, ArrayMetadata)}

    def __reduce__(self) -> tuple[Any, ...]:
        return self._reopen, (self._file.store, self._file.key)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ForeignStore):
            return NotImplemented
        return self._file.key == other._file.key and self._file.store == other._file.store

    def __hash__(self) -> int:
        return hash((type(self), self._file.key))

    def __str__(self) -> str:
        return str(self._file)

    def __repr__(self) -> str:
        return f"<{self._shown.format} {self}>"

    def with_read_only(self, read_only: bool = False) -> ForeignStore:
        """Return itself: such files are only read."""
        return self

    @property
    def is_foreign(self) -> bool:
        """``True``."""
        return True

    @property
    def cost(self) -> ReadCost:
        """That of the store in which the file is."""
        return self._file.store.cost

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        """Return parts of a document or chunk. The version is that of the file."""
        check_key(key)
        found: Span | BytesLike | None = self._documents.get(key)
        if found is None:
            found = self._chunk(key)
        if found is None:
            return None
        size = found.length if isinstance(found, Span) else len(found)
        bounds = [resolve_range(each, size) for each in ranges]
        if isinstance(found, Span):
            self._file.check(found.offset, found.length)
            parts = self._file.read([(found.offset + start, stop - start) for start, stop in bounds])
        else:
            parts = [memoryview(found)[start:stop] for start, stop in bounds]
        return Reading(tuple(parts), self.file_version, size)

    @property
    def file_version(self) -> Version | None:
        """The version of the file, which is that of all its values."""
        return self._file.version

    def left_out(self, prefix: str = "") -> Iterator[tuple[str, str]]:
        """Give what of the file is not shown."""
        check_prefix(prefix)
        return iter([each for each in self._shown.left_out if each[0].startswith(prefix)])

    def remarks(self, prefix: str = "") -> Iterator[tuple[str, str]]:
        """Give what of the file is shown in other words."""
        check_prefix(prefix)
        for path, node in self._shown.nodes.items():
            if f"{path}/".startswith(prefix) or not prefix:
                for remark in node.remarks:
                    yield path, remark

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        """Return keys and prefixes directly below ``prefix``."""
        check_prefix(prefix)
        array = self._array_of(prefix)
        if array is None:
            return directly_below(self._names_with_chunks(prefix), prefix)
        return directly_below(sorted(self._keys_of(array)), prefix)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield all keys below ``prefix``, sorted."""
        check_prefix(prefix)
        array = self._array_of(prefix)
        if array is not None:
            yield from sorted(each for each in self._keys_of(array) if each.startswith(prefix))
            return
        yield from super().list_prefix(prefix)

    def set(self, key: str, value: BytesLike, **_: Any) -> NoReturn:
        """Refuse: such files are only read."""
        raise ReadOnlyError(f"{self} is a file of {self._shown.format}, which zardine only reads")

    def erase(self, key: str) -> NoReturn:
        """Refuse: such files are only read."""
        raise ReadOnlyError(f"{self} is a file of {self._shown.format}, which zardine only reads")

    def _chunk(self, key: str) -> Span | BytesLike | None:
        parts = key.split("/")
        for number in reversed(range(len(parts))):
            node = self._arrays.get("/".join(parts[:number])) if parts[number] == "c" else None
            if node is not None and node.chunks is not None:
                assert isinstance(node.metadata, ArrayMetadata)
                coordinates = _KEYS.decode("/".join(parts[number:]), node.metadata.ndim)
                return None if coordinates is None else node.chunks.find(coordinates)
        return None

    def _array_of(self, prefix: str) -> str | None:
        """Return the path of the array that a prefix is, or lies in."""
        path = prefix.rstrip("/")
        while path and path not in self._shown.nodes:
            path = path.rpartition("/")[0]
        return path if path in self._arrays else None

    def _keys_of(self, path: str) -> Iterator[str]:
        chunks = self._arrays[path].chunks
        yield join_path(path, DOCUMENT_NAME)
        if chunks is not None:
            for coordinates in chunks.stored():
                yield join_path(path, _KEYS.encode(coordinates))

    def _names_with_chunks(self, prefix: str) -> Sequence[str]:
        if prefix or "" not in self._arrays:
            return self._names
        return sorted(self._keys_of(""))


__all__ = ["Chunks", "Coordinates", "ForeignFile", "ForeignNode", "ForeignStore", "Span"]
