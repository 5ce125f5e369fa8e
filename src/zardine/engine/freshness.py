"""Generations: a handle reads and writes by the layout that its document had when it was opened, and by no other.

A *generation* of an array is its chunk grid, chunk key encoding, codecs, data type and fill value, and an id. The id is
a member of the document that only :func:`zardine.reshard` and ``overwrite=True`` write, so that a layout that comes
back to what it was is told from what it was; other programs pass over it. Documents without one are compared by layout.

Before a handle uses what it found, and before it writes, it looks whether the document is still of its generation:

- Where looking costs microseconds (local files, memory) at every operation. Writers are known to the store meanwhile
  (:meth:`Store.writer`), and who changes the document waits for them: nothing is ever written by an old layout.
- Elsewhere a look counts for :data:`LEASE` seconds when reading; writing looks before and after. Resharding gives
  others more than that time between two steps.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Final, NoReturn

from zardine.codecs.base import ArrayArrayCodec, Codec
from zardine.codecs.bytes_codec import BytesCodec
from zardine.codecs.sharding_indexed import ShardingCodec
from zardine.codecs.transpose import TransposeCodec
from zardine.engine.documents import read_document
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.errors import ArrayChangedError, ArrayNotFoundError, DataError, MetadataError
from zardine.json_document import JSON, Extension
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import document_names, parse_documents
from zardine.metadata.node_names import join_path
from zardine.stores.base import Version

if TYPE_CHECKING:
    from zardine.engine.handle import ArrayHandle

LEASE: Final = 2.0
"""Seconds for which a look at the document counts, where looking is a request."""

CLOSING: Final = "zardine_resharding"
"""Member of the document that is there while nobody may write, since the array is about to change."""

GENERATION: Final = "zardine_generation"
"""Member of the document that tells this generation from others of the same layout."""

_changes = count(1)
_changed = 0
"""How often this process has changed the generation of some array: older looks do not count."""


class Watch:
    """What is known of the document of a handle: when it was last seen to be of the handle's generation."""

    __slots__ = ("changed", "is_hearsay", "is_owned", "is_stored", "key", "seen", "shape", "version")

    def __init__(self, path: str, metadata: ArrayMetadata) -> None:
        self.key = join_path(path, document_names(metadata.zarr_format, "array")[0])
        self.version: Version | None = None
        self.is_stored = metadata.document is not None
        """Whether the document has been seen in the store; then it must not be gone."""
        self.is_hearsay = False
        """Whether only consolidated metadata told of the array so far; then it must be stored all the same."""
        self.is_owned = False
        """Whether somebody else looks after the documents, as vectors do: a look counts for a lease everywhere."""
        self.seen = -LEASE
        self.changed = -1
        self.shape: tuple[Version | None, tuple[int, ...]] = None, ()
        """A version of the document, and the shape that it gives the array."""
        if self.is_stored and not is_closing(metadata):
            self.note(None)

    def note(self, version: Version | None, when: float | None = None) -> None:
        """The document was just now (or ``when``) of this generation, and nobody was about to change it."""
        self.version, self.is_stored, self.changed = version, True, _changed
        self.seen = time.monotonic() if when is None else when

    @property
    def is_recent(self) -> bool:
        """Whether the last look counts still."""
        return time.monotonic() - self.seen < LEASE and self.changed == _changed


def note_change() -> None:
    """Say that this process has changed the generation of an array: its handles look again, on every store."""
    global _changed
    _changed = next(_changes)


def generation_of(metadata: ArrayMetadata) -> str | None:
    """The id of a document's generation, where it has one."""
    member = metadata.unknown.get(GENERATION)
    found = member.get("id") if isinstance(member, dict) else None
    return found if isinstance(found, str) else None


def with_generation(metadata: ArrayMetadata, *, new: bool) -> ArrayMetadata:
    """The document with a ``new`` id, or with none. Documents of Zarr v2 and v1 cannot have one."""
    if metadata.zarr_format != 3 or not (new or GENERATION in metadata.unknown):
        return metadata
    others: dict[str, JSON] = {name: each for name, each in metadata.unknown.items() if name != GENERATION}
    if new:
        others[GENERATION] = {"must_understand": False, "id": secrets.token_hex(16)}
    return replace(metadata, unknown=others)


def is_closing(metadata: ArrayMetadata) -> bool:
    """Whether a document says that its array is about to change."""
    return CLOSING in metadata.unknown


def note_fresh(handle: ArrayHandle, version: Version | None = None) -> None:
    """The document of ``handle`` has just been read, or stored as ``version``."""
    handle.watch.note(version)
    handle.watch.shape = version, handle.layout.metadata.shape


def moment() -> tuple[float, int]:
    """Return what to remember before a document is read, for :func:`note_seen`."""
    return time.monotonic(), _changed


def note_seen(handle: ArrayHandle, version: Version | None, current: ArrayMetadata, when: tuple[float, int]) -> None:
    """The document ``current``, of the generation of ``handle``, was read as ``version`` at that :func:`moment`."""
    watch = handle.watch
    watch.shape = version, current.shape
    if is_closing(current):
        watch.version, watch.seen, watch.is_stored = None, -LEASE, True
    else:
        watch.note(version, when[0])
        watch.changed = when[1]


def note_opened(handle: ArrayHandle, seen: Mapping[str, Version | None]) -> None:
    """Versions of documents, by name, that were ``seen`` when the document of ``handle`` was read."""
    if not is_closing(handle.layout.metadata):
        version = seen.get(handle.watch.key.rpartition("/")[2])
        handle.watch.version, handle.watch.shape = version, (version, handle.layout.metadata.shape)


def leave_to_owner(handle: ArrayHandle) -> None:
    """The document of ``handle`` has just been read by one who looks after it, so that it is looked at seldom."""
    handle.watch.note(None)
    handle.watch.is_owned = True


def check_fresh(handle: ArrayHandle, *, writing: bool = False, written: bool = False, surely: bool = False) -> None:
    """Raise :class:`~zardine.errors.ArrayChangedError` where the array is not of the generation of its handle.

    With ``writing`` also where it is about to be changed. ``written``: something has just been stored, and it may be
    lost if the array was changed meanwhile. ``surely``: look at the document, however short ago that was done.
    """
    if not handle.watched:
        return
    watch, store = handle.watch, handle.store
    if store.has_cheap_looks and not watch.is_owned:
        if watch.version is not None and store.is_unchanged(watch.key, watch.version):
            return
    elif watch.is_recent and not surely:
        return
    _look(handle, writing=writing, written=written)


def has_shape(handle: ArrayHandle) -> bool:
    """Whether the document says now that the array has the shape of its handle. Looks, and raises, as writing does."""
    watch, store, shape = handle.watch, handle.store, handle.layout.metadata.shape
    version, known = watch.shape
    if version is not None and store.has_cheap_looks and store.is_unchanged(watch.key, version):
        return known == shape
    return _look(handle, writing=True, written=False) == shape


class Writing:
    """A context in which chunks of an array may be written: the document is looked at before, and after.

    Raises as :func:`check_fresh`. The store knows of it meanwhile, if it can, so that nobody changes the layout. With
    ``looked``, the document was looked at just now: where that is a request, it is not done again.
    """

    __slots__ = ("_handle", "_known", "_looked", "_writer")

    def __init__(self, handle: ArrayHandle, *, looked: bool = False) -> None:
        self._handle = handle
        self._looked = looked

    def __enter__(self) -> None:
        handle = self._handle
        if not handle.watched:
            return
        store, path, watch = handle.store, handle.path, handle.watch
        surely = False
        if not (store.has_cheap_looks or watch.is_owned):
            just_now = time.monotonic() - watch.seen < store.cost.latency and watch.is_recent
            surely = not (just_now or self._looked)
        self._writer = store.writer(f"{path}/" if path else "")
        self._known = self._writer.__enter__()
        try:
            check_fresh(handle, writing=True, surely=surely)
        except BaseException:
            self._writer.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        handle = self._handle
        if not handle.watched:
            return
        try:
            if isinstance(error, DataError):
                check_fresh(handle, surely=True)  # perhaps it is no damage but another layout
            elif error is None and not self._known:  # else whoever changes the array waits for us
                check_fresh(handle, writing=True, written=True, surely=not handle.watch.is_owned)
        finally:
            self._writer.__exit__(None, None, None)


def refuse_closing(handle: ArrayHandle, current: ArrayMetadata, lost: str = "") -> None:
    """Raise :class:`~zardine.errors.ArrayChangedError` where the document ``current`` says that nobody may write."""
    if is_closing(current):
        _raise(
            handle,
            f"is being resharded and about to change{lost or ': nothing was written'}; open it again in a few seconds. "
            "If zardine.reshard was interrupted, call it again to finish, or with cancel=True",
        )


def is_same_generation(layout: ArrayLayout, current: ArrayMetadata) -> bool:
    """Whether what ``layout`` says of chunks holds for the document ``current``, which may have another shape."""
    metadata = layout.metadata
    new_id = generation_of(current)
    if new_id is not None and new_id != generation_of(metadata):
        return False
    if (metadata.zarr_format, metadata.ndim) != (current.zarr_format, current.ndim):
        return False
    if metadata.data_type != current.data_type or not _same_fill(metadata, current):
        return False
    if _layout_members(metadata) == _layout_members(current) or _as_text(metadata) == _as_text(current):
        return True
    now = prepare_layout(current)
    if layout.keys != now.keys or not layout.grid.continues(now.grid):
        return False
    return layout.codecs == now.codecs or (
        not metadata.data_type.needs_endian
        and _without_byte_order(layout.codecs) is not None
        and _without_byte_order(layout.codecs) == _without_byte_order(now.codecs)
    )


def _without_byte_order(codecs: tuple[Codec, ...]) -> tuple[Codec, ...] | None:
    """Return the codecs of elements of one byte, whose order means nothing; ``None`` where they become longer ones."""
    found: list[Codec] = []
    for codec in codecs:
        if isinstance(codec, ShardingCodec):
            inner = _without_byte_order(codec.codecs)
            if inner is None:
                return None
            codec = replace(codec, codecs=inner)
        elif isinstance(codec, BytesCodec):
            codec = replace(codec, endian=None)
        elif isinstance(codec, ArrayArrayCodec) and not isinstance(codec, TransposeCodec):
            return None
        found.append(codec)
    return tuple(found)


def _layout_members(metadata: ArrayMetadata) -> tuple[Extension, ...]:
    return metadata.chunk_grid, metadata.chunk_key_encoding, *metadata.codecs


def _as_text(metadata: ArrayMetadata) -> str:
    """Return the members as text: what was read has lists where what a user gave may have tuples."""
    return json.dumps([each.to_json() for each in _layout_members(metadata)], sort_keys=True)


def _same_fill(a: ArrayMetadata, b: ArrayMetadata) -> bool:
    if a.data_type.item_size is None:
        return bool(a.fill.item() == b.fill.item())
    return a.fill.tobytes() == b.fill.tobytes()


def _look(handle: ArrayHandle, *, writing: bool, written: bool) -> tuple[int, ...] | None:
    """The shape that the document gives the array; ``None`` where none was stored yet."""
    watch, metadata = handle.watch, handle.layout.metadata
    when = moment()
    reading = read_document(handle.store, watch.key)
    lost = ", and what was written just now may be lost" if written else ""
    if reading is None:
        if watch.is_stored:
            _raise(handle, f"is no longer stored: it was erased or moved since it was opened{lost}")
        if watch.is_hearsay:
            raise ArrayNotFoundError(
                f"no array is stored at {str(handle.store).rstrip('/')}/{handle.path} ({watch.key} is missing), though "
                "consolidated metadata tells of one: zardine.consolidate_metadata makes that true again"
            )
        return None
    data = bytes(reading.parts[0])
    current = metadata if data == metadata.document else _parse(handle, watch.key, data, lost)
    if current is not metadata and not is_same_generation(handle.layout, current):
        _raise(
            handle,
            f"was resharded or replaced since it was opened{lost}: open it again, or refresh() this handle (and if it "
            "was opened through consolidated metadata, consolidate that again first)",
        )
    note_seen(handle, reading.version, current, when)
    if writing:
        refuse_closing(handle, current, lost)
    return current.shape


def _parse(handle: ArrayHandle, key: str, data: bytes, lost: str) -> ArrayMetadata:
    name = key.rpartition("/")[2]
    try:
        current = parse_documents(name, {name: data}, "")
        if isinstance(current, ArrayMetadata):
            prepare_layout(current)
    except MetadataError as error:
        reasons = "; ".join(map(str, error.problems)) or str(error)
        _raise(handle, f"has another document than when it was opened{lost}, which cannot be used: {reasons}")
    if not isinstance(current, ArrayMetadata):
        _raise(handle, f"was replaced by a group since it was opened{lost}")
    return current


def _raise(handle: ArrayHandle, what: str) -> NoReturn:
    name = f"array {handle.path!r} of {handle.store}" if handle.path else f"the array at {handle.store}"
    raise ArrayChangedError(f"{name} {what}")


__all__ = [
    "CLOSING",
    "GENERATION",
    "LEASE",
    "Watch",
    "Writing",
    "check_fresh",
    "generation_of",
    "has_shape",
    "is_closing",
    "is_same_generation",
    "leave_to_owner",
    "moment",
    "note_change",
    "note_fresh",
    "note_opened",
    "note_seen",
    "refuse_closing",
    "with_generation",
]
