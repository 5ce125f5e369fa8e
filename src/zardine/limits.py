"""How much memory stored bytes may ask for: the settings under ``limits.``, and the error where they ask for more.

A document, an index or a header may claim any size. Before anything is read, allocated or decompressed its size is
compared with what is possible at most: exactly known where a codec chain has a fixed size, a bound of the codec where
not, and a setting where nothing in the document tells (text, documents, unused space) or where the claim itself may be
a lie (:data:`CHUNK`).
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Final

from zardine.errors import ChunkTooLargeError, DataError
from zardine.settings import config, parse_bytes

CHUNK: Final = "limits.chunk_bytes"
"""Bytes of one chunk, encoded or decoded, of a shard's index, of anything that is read in one piece."""
TEXT: Final = "limits.text_bytes"
"""Decoded bytes of one chunk whose elements vary in length."""
UNUSED: Final = "limits.unused_bytes"
"""Bytes of one chunk that mean nothing: legal, and of any number, where a format allows them."""
DOCUMENT: Final = "limits.document_bytes"
"""Bytes of one metadata document."""


def limit_of(setting: str) -> int:
    """The bytes that a setting of this module allows now."""
    settings = config.snapshot
    if settings is not _seen[0]:
        given = {name: settings[name] for name in (CHUNK, TEXT, UNUSED, DOCUMENT)}
        sizes = {name: max(1, memory() // 2) if value is None else parse_bytes(value) for name, value in given.items()}
        _seen[:] = settings, sizes
        return sizes[setting]
    found: int = _seen[1][setting]
    return found


_seen: list[Any] = [None, {}]
"""The settings that were looked at last, and what they say in bytes."""


def check_size(what: str, nbytes: int, setting: str = CHUNK) -> None:
    """Raise :class:`~zardine.errors.ChunkTooLargeError` where ``what`` takes more bytes than ``setting`` allows."""
    limit = limit_of(setting)
    if nbytes > limit:
        raise too_large(what, nbytes, setting, limit)


def too_large(
    what: str, nbytes: int, setting: str, limit: int | None = None, *, at_least: bool = False
) -> ChunkTooLargeError:
    """The error for ``what``, which takes ``nbytes`` bytes (``at_least``: or more), where ``setting`` allows fewer."""
    allowed = limit_of(setting) if limit is None else limit
    enough = "..." if at_least else str(nbytes)
    return ChunkTooLargeError(
        f"{what} takes {'at least ' if at_least else ''}{nbytes} bytes, more than the {allowed} that the setting "
        f"{setting!r} allows; if you trust the data: zardine.config.set({{{setting!r}: {enough}}})"
    )


def no_memory(what: str, nbytes: int | None = None) -> ChunkTooLargeError:
    """The error for ``what`` where there is not enough memory, whatever the settings allow."""
    size = "" if nbytes is None else f" of {nbytes} bytes"
    return ChunkTooLargeError(f"{what}{size} does not fit into memory; the setting {CHUNK!r} can forbid such sizes")


@contextmanager
def within_memory(what: str, nbytes: int | None = None, **place: Any) -> Generator[None, None, None]:
    """Turn a bare ``MemoryError`` into :class:`~zardine.errors.ChunkTooLargeError` with its place."""
    try:
        yield
    except DataError:
        raise
    except MemoryError:
        raise no_memory(what, nbytes).at(**place) from None


def memory() -> int:
    """Bytes of memory that this process may have: of the machine, or less where it is confined to less."""
    confined = _machine_memory()
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft = resource.getrlimit(resource.RLIMIT_AS)[0]
        if soft != resource.RLIM_INFINITY:
            confined = min(confined, soft)
    return confined


@cache
def _machine_memory() -> int:
    sizes = [2**46]
    with suppress(AttributeError, OSError, ValueError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError), open(name) as file:
            sizes.append(int(file.read()))
    return min(size for size in sizes if size > 0)


__all__ = [
    "CHUNK",
    "DOCUMENT",
    "TEXT",
    "UNUSED",
    "check_size",
    "limit_of",
    "memory",
    "no_memory",
    "too_large",
    "within_memory",
]
