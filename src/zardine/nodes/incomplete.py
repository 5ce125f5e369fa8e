"""Arrays that were made for values which then could not be stored: they are taken away again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from zardine.engine.stored import stored_objects_within
from zardine.errors import ArrayChangedError, ConditionFailedError
from zardine.hierarchy.create import erase_documents
from zardine.hierarchy.find import describe
from zardine.nodes.array import Array


@contextmanager
def erased_if_incomplete(array: Array, *, replaced: bool) -> Iterator[None]:
    """Erase the new ``array`` if its values cannot be stored in this context, and say in the error what is there then.

    Only its own keys are erased: documents, if they are as they were made, and chunks within its shape. ``replaced``:
    what was at this place before was erased for it.
    """
    try:
        yield
    except BaseException as error:
        place = describe(array.store, array.path)
        try:
            erase_new_array(array)
        except (ArrayChangedError, ConditionFailedError):
            error.add_note(f"the array at {place} has been changed by others meanwhile; it may hold a part of the data")
        except BaseException as another:  # it must not hide why the values could not be stored
            reason = str(another) or type(another).__name__
            note = f"the array at {place} holds a part of the data: it could not be erased again ({reason})"
            error.add_note(note)
            if not isinstance(another, Exception):  # Ctrl-C is never kept back
                another.add_note(note)
                raise
        else:
            before = "; overwrite=True had erased what was there before" if replaced else ""
            error.add_note(f"the array at {place} was erased again, since not all of its data was stored{before}")
        raise


def erase_new_array(array: Array) -> None:
    """Erase an array that was just created.

    Raises :class:`~zardine.errors.ConditionFailedError` or :class:`~zardine.errors.ArrayChangedError` if others have
    changed it.
    """
    handle = array._handle
    metadata, version = handle.layout.metadata, handle.watch.version
    erase_documents(
        *(handle.store, handle.path, metadata, version), lambda: [key for key, _ in stored_objects_within(handle)]
    )
