"""Rewriting a zip archive without what was replaced or removed."""

from __future__ import annotations

import contextlib
import os
import stat

from zardine.errors import StoreError
from zardine.stores.base import WHOLE
from zardine.stores.zip.directory import ZipDirectory
from zardine.stores.zip.file import FileBytes
from zardine.stores.zip.leftovers import remove_leftovers
from zardine.stores.zip.lock import new_file
from zardine.stores.zip.state import ZipState
from zardine.stores.zip.writer import ZipWriter

_ABANDONED = 60.0
"""Seconds after which an unfinished file that nobody has locked is removed."""


def compacted(writer: ZipWriter, directory: ZipDirectory, name: str) -> ZipState:
    """Put an archive in its own place that has the same keys and nothing else; gives what is there then.

    ``writer`` keeps other processes from writing until it is closed. The new file is locked from the first, so that
    nobody writes to it before the old one is let go of. Raises ``OSError``, and :class:`StoreError` for damaged
    entries; then all is as before.
    """
    remove_leftovers(writer.path, _ABANDONED)
    file, temporary = new_file(writer.path)
    new = ZipWriter(writer.path, file)
    try:
        data = FileBytes(temporary)
        packed = ZipDirectory(data, name, None)
        packed.comment = directory.comment
        for key in directory.names():
            packed.add(new.append(key, directory.read(key, directory.entries[key], (WHOLE,)).parts[0]))
        with contextlib.suppress(OSError):
            os.fchmod(file, stat.S_IMODE(os.fstat(writer.file).st_mode))
        new.write_directory(packed)
        if not writer.is_current():
            raise StoreError(f"{name} was removed or replaced by another program while it was rewritten")
        os.replace(temporary, writer.path)
        data.size, data.identity = new.end, new.identity
        return ZipState(data.identity, packed)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        new.close()


__all__ = ["compacted"]
