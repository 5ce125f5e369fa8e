"""What a writer says if a store fails after a change was committed.

Once the commit is stored, readers see the change, and any later writer can complete it. So a store that fails then is
no error but a warning. What remains an error, such as Ctrl-C, or an ``fsync`` that fails after the commit got its name,
says in words and by ``takes_effect`` that the change takes effect.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress

from zardine.contexts import sure_context
from zardine.errors import CommittedError, StoreError, ZarrUserWarning
from zardine.hierarchy.find import describe, find_node
from zardine.stores.base import Store
from zardine.user_warnings import warn_user
from zardine.vectors.storing.claims import LostClaimError
from zardine.vectors.storing.logs import revision_of

_COMPLETED_LATER = "the next change of the store, or repair(), completes it; do not repeat it"
_TAKES_EFFECT = "the change of {} is committed all the same: " + _COMPLETED_LATER
_MAY_TAKE_EFFECT = "the change of {} may be committed all the same: look at the store before you repeat it"


def complete_or_warn(store: Store, path: str, complete: Callable[[], None]) -> None:
    """Complete the change that the group at ``path`` commits; warn if the store fails, since a later writer does it."""
    try:
        complete()
    except LostClaimError:
        pass  # the writer that took the claim over completes the change
    except StoreError as error:
        what = f"the change of {describe(store, path)} is committed, but not completed: {error}"
        warn_user(f"{what}. Readers see the change; {_COMPLETED_LATER}", ZarrUserWarning)


def note_effect(error: BaseException, effect: bool | None) -> None:
    """Note on ``error`` whether the change that it ended is committed; ``None``: the store could not tell."""
    error.takes_effect = effect  # type: ignore[attr-defined]  # also on KeyboardInterrupt and others that are not ours


@sure_context
def telling_of_commits(store: Store, path: str, revision: int | None = None) -> Generator[None, None, None]:
    """A context for one change: an error in it says if the change is committed.

    ``path`` is that of the group whose document commits the change; ``revision`` that of the level there before.
    Raises :class:`~zardine.errors.CommittedError` for a :class:`~zardine.errors.StoreError`; other errors get a note.
    """
    try:
        yield
    except BaseException as error:
        effect = getattr(error, "takes_effect", False)
        if effect is False and revision is not None and store.lock_is_exclusive:
            with suppress(Exception):
                group = find_node(store, path, 3)
                effect = group is not None and revision_of(group.attributes) > revision
        if effect is False:
            raise
        note_effect(error, effect)
        told = (_MAY_TAKE_EFFECT if effect is None else _TAKES_EFFECT).format(describe(store, path))
        if isinstance(error, CommittedError) or not isinstance(error, StoreError):
            error.add_note(told)
            raise
        committed = CommittedError(f"{error}; {told}")
        committed.errno, committed.filename, committed.takes_effect = error.errno, error.filename, effect
        raise committed from error


__all__ = ["complete_or_warn", "note_effect", "telling_of_commits"]
