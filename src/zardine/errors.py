"""Every error that zardine raises on purpose, in one tree.

::

    ZardineError
    ├── MetadataError (ValueError)          a metadata document breaks the specification; lists every problem
    │   ├── UnknownExtensionError           ... because it needs an extension that is not installed
    │   └── DimensionNamesError (KeyError)  ... or does not name the dimensions, and xarray needs that
    ├── ConversionError (ValueError)        what cannot be converted, or was not converted right; lists every problem
    ├── PlanError (ValueError)              a plan of jobs that cannot be run, or not now; says why
    │   └── JobsFailedError                 some of its jobs failed; the first error is its cause
    ├── NodeNotFoundError (FileNotFoundError, KeyError, ValueError)
    │   ├── ArrayNotFoundError
    │   ├── GroupNotFoundError
    │   └── ChunkNotFoundError              a chunk is not stored, and the array was opened to refuse that
    ├── NodeExistsError (FileExistsError, ValueError)
    │   ├── ContainsArrayError
    │   │   └── ContainsArrayAndGroupError (ContainsGroupError)  documents of both are there
    │   └── ContainsGroupError
    ├── StoreError (OSError)
    │   ├── InvalidKeyError (ValueError)    a key that the store may not or cannot hold
    │   ├── ReadOnlyError (PermissionError, ValueError)  a write to something opened for reading
    │   ├── ConditionFailedError            a conditional write lost against another writer
    │   ├── ArrayChangedError               the array was changed since it was opened: open it again
    │   ├── CommittedError                  the change is committed and takes effect: do not repeat it
    │   └── UnfinishedError                 the group is just being written as a whole, or that was cut off
    ├── DataError (ValueError)              bytes or values that cannot be what the metadata says; has a place
    │   ├── EncodeError                     values that the codec chain cannot store
    │   ├── ChunkTooLargeError (MemoryError)  more bytes than memory, or a setting, allows
    │   └── CorruptionError                 stored bytes that are not what a correct writer leaves
    │       ├── ChecksumError
    │       ├── ShardIndexError
    │       └── ChunkDecodeError
    │           └── PickleCodecDisabledError  the chunk is a pickle, which is read after an opt-in only
    ├── SelectionError (IndexError)
    │   ├── BoundsCheckError                an index outside the array
    │   ├── NegativeStepError
    │   ├── ZeroStepError (ValueError)      a slice whose step is 0
    │   └── VindexInvalidSelectionError
    └── UnsupportedError (NotImplementedError)

:class:`TornShardWarning` (``RuntimeWarning``) is given where the last write of a shard was cut off and it is read as it
was before.

``BaseZarrError``, ``MetadataValidationError``, ``DataTypeValidationError``, ``NodeTypeValidationError``,
``UnknownCodecError`` and ``ArrayIndexError`` are the names that zarr-python has for what is above. Its warnings are
here too, for code that filters them; of these zardine gives ``ZarrUserWarning``, where a node is stored in two versions
of Zarr, and ``ZarrRuntimeWarning``, where an argument has no effect or a newer name.

Errors carry what they are about as attributes (``array``, ``key``, ``chunk``, ``codec``, ``byte_range``), and their
text names the same things, so that a person and a program can both act on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zardine.shown_text import printable, shown

__all__ = [
    "ArrayChangedError",
    "ArrayIndexError",
    "ArrayNotFoundError",
    "BaseZarrError",
    "BoundsCheckError",
    "ChecksumError",
    "ChunkDecodeError",
    "ChunkNotFoundError",
    "ChunkTooLargeError",
    "CommittedError",
    "ConditionFailedError",
    "ContainsArrayAndGroupError",
    "ContainsArrayError",
    "ContainsGroupError",
    "ConversionError",
    "CorruptionError",
    "DataError",
    "DataTypeValidationError",
    "DimensionNamesError",
    "EncodeError",
    "GroupNotFoundError",
    "InvalidKeyError",
    "JobsFailedError",
    "MetadataError",
    "MetadataValidationError",
    "NegativeStepError",
    "NodeExistsError",
    "NodeNotFoundError",
    "NodeTypeValidationError",
    "PickleCodecDisabledError",
    "PlanError",
    "Problem",
    "ReadOnlyError",
    "SelectionError",
    "ShardIndexError",
    "StoreError",
    "TornShardWarning",
    "UnfinishedError",
    "UnknownCodecError",
    "UnknownExtensionError",
    "UnstableSpecificationWarning",
    "UnsupportedError",
    "VindexInvalidSelectionError",
    "ZardineError",
    "ZarrDeprecationWarning",
    "ZarrFutureWarning",
    "ZarrRuntimeWarning",
    "ZarrUserWarning",
    "ZeroStepError",
]


class ZardineError(Exception):
    """The root of the tree. Secrets in its text are masked, and control characters are visible."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(shown(each) if isinstance(each, str) else each for each in args))

    def __str__(self) -> str:  # KeyError would show its argument quoted
        return str(self.args[0]) if self.args else ""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a metadata document: where it is, what was found, what the specification asks for."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{printable(self.place)}: {self.message}" if self.place else self.message


class MetadataError(ZardineError, ValueError):
    """A metadata document does not follow the specification. ``problems`` lists every fault found."""

    def __init__(self, subject: str, problems: Sequence[Problem] = ()) -> None:
        self.subject = subject
        self.problems = tuple(problems)
        lines = "".join(f"\n  - {problem}" for problem in self.problems)
        super().__init__(f"{subject}{lines}")


class UnknownExtensionError(MetadataError):
    """The document needs a data type, codec, grid or other extension that is not registered here."""


class DimensionNamesError(MetadataError, KeyError):
    """An array does not say how its dimensions are called, which xarray has to know."""


class ConversionError(ZardineError, ValueError):
    """What was to be converted has no form in the wanted version of Zarr, or came out with other elements.

    ``problems`` lists everything; the ``place`` of each is the path of a node.
    """

    def __init__(self, subject: str, problems: Sequence[Problem] = ()) -> None:
        self.subject = subject
        self.problems = tuple(problems)
        lines = "".join(f"\n  - {problem}" for problem in self.problems)
        super().__init__(f"{subject}{lines}")


class PlanError(ZardineError, ValueError):
    """A plan of jobs cannot be run, or not now: what it was made for has changed, or a stage is not its turn."""


class JobsFailedError(PlanError):
    """Some jobs of a plan failed, also when they were tried again. ``jobs`` are their numbers, counted from 0."""

    def __init__(self, message: str, jobs: Sequence[int] = ()) -> None:
        self.jobs = tuple(jobs)
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.jobs)


class NodeNotFoundError(ZardineError, FileNotFoundError, KeyError, ValueError):
    """Nothing of the wanted kind is stored at this path."""


class ArrayNotFoundError(NodeNotFoundError):
    """No array is stored at this path."""


class GroupNotFoundError(NodeNotFoundError):
    """No group is stored at this path."""


class ChunkNotFoundError(NodeNotFoundError):
    """A chunk is not stored, and the array was opened with ``read_missing_chunks`` false."""


class NodeExistsError(ZardineError, FileExistsError, ValueError):
    """The place for a new node is taken."""


class ContainsArrayError(NodeExistsError):
    """An array is stored where a new node should go."""


class ContainsGroupError(NodeExistsError):
    """A group is stored where a new node should go."""


class ContainsArrayAndGroupError(ContainsArrayError, ContainsGroupError):
    """A document of an array and one of a group are stored at this path."""


class StoreError(ZardineError, OSError):
    """A store could not do what was asked."""

    takes_effect: bool | None = False
    """Whether the change that failed takes effect all the same; see :class:`CommittedError`."""


class InvalidKeyError(StoreError, ValueError):
    """The key is malformed, or would leave the store's base."""


class ReadOnlyError(StoreError, PermissionError, ValueError):
    """The store or the node was opened for reading only."""


class ConditionFailedError(StoreError):
    """The stored value is no longer the one that the condition of a write names."""

    may_be_done: bool = False
    """Whether the write may have been carried out before another program wrote: an answer of the service was lost."""


class ArrayChangedError(StoreError):
    """An array was resharded, replaced, moved or erased since it was opened: open it again, or refresh the handle."""


class CommittedError(StoreError):
    """A change was committed, and an error came before it was completed: do not repeat the change.

    Readers see the change, and the next process that changes the store completes it. ``takes_effect`` is true, or
    ``None`` if the store could not tell whether the change was committed: then look at the store first.
    """

    takes_effect: bool | None = True


class UnfinishedError(StoreError):
    """A group is just being written as a whole, or its writer was killed: what is there is in part."""


class DataError(ZardineError, ValueError):
    """Values or stored bytes that do not fit the metadata.

    Code that knows only bytes raises it with a bare ``reason``; the engine adds the place with :meth:`at`.
    """

    def __init__(
        self,
        reason: str,
        *,
        array: str | None = None,
        key: str | None = None,
        chunk: tuple[int, ...] | None = None,
        codec: str | None = None,
        byte_range: tuple[int, int] | None = None,
    ) -> None:
        self.reason = shown(reason)
        self.array = array
        self.key = key
        self.chunk = chunk
        self.codec = codec
        self.byte_range = byte_range
        super().__init__(self.reason)

    def at(
        self,
        *,
        array: str | None = None,
        key: str | None = None,
        chunk: tuple[int, ...] | None = None,
        codec: str | None = None,
        byte_range: tuple[int, int] | None = None,
    ) -> DataError:
        """The same error with the place filled in where it was still unknown."""
        return type(self)(
            self.reason,
            array=self.array if self.array is not None else array,
            key=self.key if self.key is not None else key,
            chunk=self.chunk if self.chunk is not None else chunk,
            codec=self.codec if self.codec is not None else codec,
            byte_range=self.byte_range if self.byte_range is not None else byte_range,
        )

    def __str__(self) -> str:
        place = []
        if self.array is not None:
            place.append(f"array {self.array!r}" if self.array else "root array")
        if self.chunk is not None:
            place.append(f"chunk {self.chunk}")
        if self.key is not None:
            place.append(f"key {self.key!r}")
        if self.byte_range is not None:
            place.append(f"bytes {self.byte_range[0]} to {self.byte_range[0] + self.byte_range[1]} (exclusive)")
        if self.codec is not None:
            place.append(f"codec {self.codec!r}")
        return f"{self.reason} [{', '.join(place)}]" if place else self.reason

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.reason, self.array, self.key, self.chunk, self.codec, self.byte_range))


def _rebuild(
    kind: type[DataError],
    reason: str,
    array: str | None,
    key: str | None,
    chunk: tuple[int, ...] | None,
    codec: str | None,
    byte_range: tuple[int, int] | None,
) -> DataError:
    return kind(reason, array=array, key=key, chunk=chunk, codec=codec, byte_range=byte_range)


class EncodeError(DataError):
    """The values cannot be stored with this data type and these codecs."""


class ChunkTooLargeError(DataError, MemoryError):
    """A chunk, the index of a shard or a document takes more memory than there is, or than a setting allows.

    It may be sound: the text names the setting and says how many bytes it is.
    """


class CorruptionError(DataError):
    """Stored bytes are damaged, or were never a value of this array."""


class ChecksumError(CorruptionError):
    """A stored checksum does not match the bytes beside it."""


class ShardIndexError(CorruptionError):
    """A shard is too short for its index, or the index points outside the shard."""


class ChunkDecodeError(CorruptionError):
    """A codec refused the stored bytes of a chunk, or they gave the wrong number of bytes."""


class PickleCodecDisabledError(ChunkDecodeError):
    """The chunk is a pickle, which is read after an opt-in only."""


class SelectionError(ZardineError, IndexError):
    """A selection that has no meaning for this array."""


class NegativeStepError(SelectionError):
    """A negative step where only steps forward make sense."""


class ZeroStepError(SelectionError, ValueError):
    """A slice whose step is 0, which NumPy and zarr-python call a ``ValueError``."""


class BoundsCheckError(SelectionError):
    """An index lies outside the array."""


class VindexInvalidSelectionError(SelectionError):
    """``vindex`` takes integer arrays (one for each dimension) or one mask of the array's shape."""


class UnsupportedError(ZardineError, NotImplementedError):
    """The request is understood, and this version of zardine, or this store, cannot do it."""


# names of zarr-python

BaseZarrError = ZardineError
MetadataValidationError = MetadataError
NodeTypeValidationError = NodeExistsError
UnknownCodecError = UnknownExtensionError
ArrayIndexError = SelectionError
DataTypeValidationError = MetadataError


class TornShardWarning(RuntimeWarning):
    """The last write of a shard or of a zip archive was cut off, by a crash as a rule; it is read as it was before.

    Of shards a record says so, that the writer leaves while it edits the file. Without one, a wrong index is an error.
    """


class ZarrFutureWarning(FutureWarning):
    """Never given; see above."""


class UnstableSpecificationWarning(ZarrFutureWarning):
    """Never given; see above."""


class ZarrDeprecationWarning(DeprecationWarning):
    """Never given; see above."""


class ZarrUserWarning(UserWarning):
    """What was asked for is done, but may not be what was meant."""


class ZarrRuntimeWarning(RuntimeWarning):
    """An argument has no effect, or a newer name."""


def __dir__() -> list[str]:
    return __all__
