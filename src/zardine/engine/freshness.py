"""Generations: a handle reads and writes by the layout that its document had when it was opened, and by no other.

A *generation* of an array is its chunk grid, chunk key encoding, codecs, data type and fill value, and an id. The id is
a member of the document that only :func:`zardine.reshard` writes, and who makes an array where this process has erased
another (``overwrite=True``, or erasing and creating; :mod:`zardine.engine.erased`), so that a layout that comes back to
what it was is told from what it was; other programs pass over it. Documents without one are compared by layout.

Before a handle uses what it found, and before it writes, it looks whether the document is still of its generation:

- Where looking costs microseconds (local files, memory) at every operation. Writers are known to the store meanwhile
  (:meth:`Store.writer`), and who changes the document waits for them: nothing is ever written by an old layout.
- Elsewhere a look is a request, and counts for :data:`LEASE` seconds. Who changes the document gives others more than
  that (:data:`GRACE`) between saying so and the change: resharding marks the document first, and who replaces, erases
  or moves an array takes the document away first (:func:`let_writers_end`).
- Writing there needs a look within a lease before each put: that of opening or creating the array, where it is known
  when the document was asked for, or stored (:func:`note_seen`), as it is not of handles out of pickles and of
  consolidated metadata. One that is due is under way beside what is read and encoded (:class:`Writing`). A second one,
  when all is written, is not needed as long as the first one counts: whatever was put till then was there before
  anybody changed the layout, who took it along, or erased it. What took longer looks again, and says what may be lost.
- Where such a request is fast (a file system by way of fsspec) nobody waits, and writing looks before and after.

Programs other than zardine give no time: what they do to an array may be noticed a lease later, by reads and by writes.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Final, NoReturn

from zardine.codecs.base import ArrayArrayCodec, Codec
from zardine.codecs.bytes_codec import BytesCodec
from zardine.codecs.sharding_indexed import ShardingCodec
from zardine.codecs.transpose import TransposeCodec
from zardine.contexts import SureExit
from zardine.engine.documents import read_document
from zardine.engine.erased import note_erased, when_erased
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.engine.workers import in_background
from zardine.errors import ArrayChangedError, ArrayNotFoundError, DataError, MetadataError
from zardine.json_document import JSON, Extension
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import document_names, parse_documents
from zardine.metadata.node_names import join_path
from zardine.stores.base import Store, Version

if TYPE_CHECKING:
    from zardine._kernel import KnownFile
    from zardine.engine.handle import ArrayHandle

LEASE: Final = 2.0
"""Seconds for which a look at the document counts, where looking is a request."""

GRACE: Final = LEASE + 0.5
"""Seconds that others get to notice what is about to happen, where nobody can tell who they are."""

CLOSING: Final = "zardine_resharding"
"""Member of the document that is there while nobody may write, since the array is about to change."""

GENERATION: Final = "zardine_generation"
"""Member of the document that tells this generation from others of the same layout."""

_changed = 0
"""How often this process has changed the generation of some array: older looks do not count."""

_counting = Lock()


class Watch:
    """What is known of the document of a handle: when it was last seen to be of the handle's generation."""

    __slots__ = (
        *("document", "is_hearsay", "is_owned", "is_stored", "key", "known", "shape", "version"),
        *("changed", "looked", "pending", "seen"),
    )

    def __init__(self, path: str, metadata: ArrayMetadata) -> None:
        self.key = join_path(path, document_names(metadata.zarr_format, "array")[0])
        self.version: Version | None = None
        self.known: tuple[Version | None, KnownFile | None] = None, None
        """A version of the document, and the file of it, where the kernel can look at that."""
        self.is_stored = metadata.document is not None
        """Whether the document has been seen in the store; then it must not be gone."""
        self.is_hearsay = False
        """Whether only consolidated metadata told of the array so far; then it must be stored all the same."""
        self.is_owned = False
        """Whether somebody else looks after the documents, as vectors do: a look counts for a lease everywhere."""
        self.seen = -inf
        self.looked = -inf
        """When the document was last asked for, or stored, by who made this handle or through it."""
        self.pending: _Look | None = None
        """A look that is under way, for which every put waits."""
        self.changed = _changed
        """How often this process had changed some array when the document was last seen, or this was made."""
        self.shape: tuple[Version | None, tuple[int, ...]] = None, ()
        """A version of the document, and the shape that it gives the array."""
        self.document: tuple[Version | None, bytes | None] = None, None
        """The same with its bytes, where they are known, and are all that is stored of the metadata."""
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

    def forget(self) -> None:
        """No earlier look counts any more."""
        self.version, self.seen, self.looked = None, -inf, -inf


def is_far(store: Store) -> bool:
    """Whether a look at a document is a request that takes so long that one of them serves all writes of a lease."""
    return not store.has_cheap_looks and store.cost.is_slow


def let_writers_end(store: Store, prefixes: Sequence[str]) -> None:
    """Wait, far away, until no writer below ``prefixes`` can go on that has not noticed that the documents are gone."""
    if not all(store.wait_for_writers(prefix) for prefix in prefixes):
        time.sleep(GRACE)


def note_removal(store: Store, prefix: str, places: Collection[str]) -> None:
    """Say that this process has taken away the documents of nodes: those at ``places``, at and below ``prefix``."""
    note_erased(store, prefix, places, note_change())


def note_change() -> int:
    """Say that this process has changed the generation of an array: its handles look again, on every store.

    Gives the number of the change.
    """
    global _changed
    with _counting:
        _changed += 1
        return _changed


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


def with_closing(metadata: ArrayMetadata, *, closing: bool) -> ArrayMetadata:
    """Return the document with the note that its array is about to change, so that nobody may write, or without it."""
    unknown: dict[str, JSON] = {name: each for name, each in metadata.unknown.items() if name != CLOSING}
    if closing:
        unknown[CLOSING] = {"must_understand": False}
    return replace(metadata, unknown=unknown)


def note_fresh(handle: ArrayHandle, version: Version | None) -> None:
    """The document of ``handle`` has just been stored as ``version``."""
    handle.watch.note(version)
    _remember(handle.watch, version, handle.layout.metadata)


def _remember(watch: Watch, version: Version | None, current: ArrayMetadata) -> None:
    watch.shape = version, current.shape
    watch.document = version, current.document


def moment() -> tuple[float, int]:
    """Return what to remember before a document is read, or stored, for :func:`note_seen`."""
    return time.monotonic(), _changed


def note_seen(handle: ArrayHandle, version: Version | None, current: ArrayMetadata, when: tuple[float, int]) -> None:
    """The document ``current``, of the generation of ``handle``, was read or stored at that :func:`moment`.

    ``version``: that of what is stored, if it is known.
    """
    watch = handle.watch
    _remember(watch, version, current)
    if is_closing(current):
        watch.forget()
        watch.is_stored = True
    else:
        watch.note(version, when[0])
        watch.looked, watch.changed = when


def note_opened(handle: ArrayHandle, version: Version | None, current: ArrayMetadata, when: tuple[float, int]) -> None:
    """As :func:`note_seen`, of a handle that was made of that document just now."""
    note_seen(handle, version, current, moment_since(handle.store, handle.path, handle.watch.key, version, when))


def moment_since(
    store: Store, path: str, key: str, version: Version | None, when: tuple[float, int]
) -> tuple[float, int]:
    """Return the moment before the document ``key`` of a node was stored, or read; a later one if it is there still.

    What this process has erased at this place since the first was another node then, whose document went before. Only
    where it has, the store is asked.
    """
    now = moment()
    if now[1] == when[1] or version is None or when_erased(store, path) <= when[1]:
        return when
    return (when[0], now[1]) if store.version(key) == version else when


def take_what_is_there(handle: ArrayHandle, when: tuple[float, int]) -> None:
    """The document was read again at that :func:`moment`, and is that of ``handle`` from now on, whatever was there."""
    if _is_another(handle):
        handle.watch.forget()
        handle.watch.changed = when[1]


def _is_another(handle: ArrayHandle) -> bool:
    """Whether this process has erased the array of ``handle`` since its document was last seen."""
    watch = handle.watch
    return (watch.is_stored or watch.is_hearsay) and when_erased(handle.store, handle.path) > watch.changed


def leave_to_owner(handle: ArrayHandle) -> None:
    """The document of ``handle`` has just been read by one who looks after it, so that it is looked at seldom."""
    handle.watch.note(None)
    handle.watch.is_owned = True


def check_fresh(handle: ArrayHandle, *, writing: bool = False, written: bool = False, surely: bool = False) -> None:
    """Raise :class:`~zardine.errors.ArrayChangedError` where the array is not of the generation of its handle.

    With ``writing`` also where it is about to be changed. ``written``: something has just been stored, and it may be
    lost if the array was changed meanwhile. ``surely``: look at the document, however short ago that was done.
    """
    if not handle.is_shared:
        return
    watch, store = handle.watch, handle.store
    pending = watch.pending
    if pending is not None and writing:
        pending.finish()
    if store.has_cheap_looks and not watch.is_owned:
        if watch.version is not None and store.is_unchanged(watch.key, watch.version):
            return
    elif watch.is_recent and not surely:
        return
    _look(handle, writing=writing, written=written)


def document_to_look_at(handle: ArrayHandle, *, look: bool) -> KnownFile | None:
    """Return the document, for who looks whether it is still that: the kernel.

    ``None`` where nobody has to; that was found out, and raised, as by :func:`check_fresh`. So is, with ``look``, what
    the document is now.
    """
    if look:
        check_fresh(handle)
    known = known_document(handle)
    if known is None and not look:
        check_fresh(handle)
    return known


def known_document(handle: ArrayHandle) -> KnownFile | None:
    """Return the document as it was when it was last looked at, for the kernel to look whether it is still that.

    ``None``: that takes more than a look at a file, or nobody has to.
    """
    watch, store = handle.watch, handle.store
    version = watch.version
    if not handle.is_shared or version is None or not store.has_cheap_looks or watch.is_owned:
        return None
    known = watch.known
    if known[0] != version:
        files = store.files
        known = watch.known = version, None if files is None else files.identify(watch.key, version)
    return known[1]


def check_before_put(handle: ArrayHandle) -> None:
    """Raise as :func:`check_fresh` for who is about to put something within :class:`Writing`: if that is due again.

    Where a look costs microseconds, that was done for all of the call, and who changes the layout waits for it.
    """
    if not handle.store.has_cheap_looks:
        check_fresh(handle, writing=True)


def has_shape(handle: ArrayHandle) -> bool:
    """Whether the document says now that the array has the shape of its handle. Looks, and raises, as writing does."""
    watch, store, shape = handle.watch, handle.store, handle.layout.metadata.shape
    version, known = watch.shape
    if version is not None and store.has_cheap_looks and store.is_unchanged(watch.key, version):
        return known == shape
    return _look(handle, writing=True, written=False) == shape


class _Look:
    """A look at the document of ``handle``, made by who needs it first, or by a thread that is free before that."""

    __slots__ = ("_error", "_handle", "_lock", "is_done")

    def __init__(self, handle: ArrayHandle) -> None:
        self._handle = handle
        self._lock = Lock()
        self.is_done = False
        self._error: BaseException | None = None

    def finish(self) -> None:
        """Return when it is made. Raises, each time, as :func:`check_fresh` for who is about to write."""
        with self._lock:
            if not self.is_done:
                self.is_done = True
                try:
                    _look(self._handle, writing=True, written=False)
                except BaseException as error:
                    self._error = error
                    self._handle.watch.forget()
        if self._error is not None:
            raise self._error

    def begin(self) -> None:
        """Let a thread that is free make it. Raises nothing."""
        with suppress(BaseException):
            self.finish()


class Writing(SureExit):
    """A context in which chunks of an array may be written: the document is looked at before, and after.

    Raises as :func:`check_fresh`. The store knows of it meanwhile, if it can, so that nobody changes the layout. With
    ``looked``, the document was looked at just now: where that is a request, it is not done again. With ``beside``, a
    look that is due goes on when the context is entered, and :func:`check_before_put` waits for it.
    """

    __slots__ = ("_beside", "_handle", "_known", "_looked", "_pending", "_writer")

    def __init__(self, handle: ArrayHandle, *, looked: bool = False, beside: bool = False) -> None:
        self._handle = handle
        self._looked = looked
        self._beside = beside
        self._pending: _Look | None = None

    def __enter__(self) -> None:
        handle = self._handle
        if not handle.is_shared:
            return
        path = handle.path
        due = self._is_due()
        self._writer = handle.store.writer(f"{path}/" if path else "")
        self._known = self._writer.__enter__()
        try:
            if due and self._beside and is_far(handle.store):
                pending = handle.watch.pending
                self._pending = pending if pending is not None and not pending.is_done else _Look(handle)
                handle.watch.pending = self._pending
                in_background(_Look.begin, self._pending)
            else:
                check_fresh(handle, writing=True, surely=due)
        except BaseException:
            self._writer.__exit__(None, None, None)
            raise

    def _exit(self, error: BaseException | None) -> None:
        handle = self._handle
        if not handle.is_shared:
            return
        try:
            if self._pending is not None:
                (self._pending.finish if error is None else self._pending.begin)()
            if isinstance(error, DataError):
                check_fresh(handle, surely=True)  # perhaps it is no damage but another layout
            elif error is None and not self._known:  # else whoever changes the array waits for us
                surely = not (handle.watch.is_owned or is_far(handle.store))
                check_fresh(handle, writing=True, written=True, surely=surely)
        finally:
            if handle.watch.pending is self._pending:
                handle.watch.pending = None
            self._writer.__exit__(None, None, None)

    def _is_due(self) -> bool:
        """Whether to look, though an earlier look may count still for who reads."""
        store, watch = self._handle.store, self._handle.watch
        if store.has_cheap_looks or watch.is_owned or self._looked:
            return False
        if not watch.is_recent:
            return True
        seen, counts = (watch.looked, LEASE) if is_far(store) else (watch.seen, store.cost.latency)
        return time.monotonic() - seen >= counts


def refuse_closing(handle: ArrayHandle, current: ArrayMetadata, lost: str = "") -> None:
    """Raise :class:`~zardine.errors.ArrayChangedError` where the document ``current`` says that nobody may write."""
    if is_closing(current):
        _raise(
            handle,
            f"is being resharded and about to change{lost or ': nothing was written'}; open it again in a few seconds. "
            "If zardine.reshard was interrupted, call it again to finish, or with cancel=True",
        )


def refuse_another(handle: ArrayHandle, current: ArrayMetadata, lost: str = "") -> None:
    """Raise :class:`~zardine.errors.ArrayChangedError` where the document ``current`` is of another generation."""
    if current is not handle.layout.metadata and not is_same_generation(handle.layout, current):
        _raise(
            handle,
            f"was resharded or replaced since it was opened{lost}: open it again, or refresh() this handle (and if it "
            "was opened through consolidated metadata, consolidate that again first)",
        )
    if _is_another(handle):
        _raise(
            handle,
            f"was erased since it was opened, and this is another{lost}: open it again, or refresh() this handle",
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
    current = metadata if data == metadata.first_document else _parse(handle, watch.key, data, lost)
    refuse_another(handle, current, lost)
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
    "GRACE",
    "LEASE",
    "Watch",
    "Writing",
    "check_before_put",
    "check_fresh",
    "generation_of",
    "has_shape",
    "is_closing",
    "is_far",
    "is_same_generation",
    "known_document",
    "leave_to_owner",
    "let_writers_end",
    "moment",
    "moment_since",
    "note_change",
    "note_fresh",
    "note_opened",
    "note_removal",
    "note_seen",
    "refuse_another",
    "refuse_closing",
    "take_what_is_there",
    "with_closing",
    "with_generation",
]
