"""Where logs of changes are stored, and which of them can no longer count.

A token is the number that a level has after the change, its revision, and what no other writer has. A log whose change
was not agreed on before the level came to that revision, never will be. Where locks are exclusive there is no other
writer: all logs of a level are stored at one place, so that what one that was killed has left goes with the next log,
without being looked for.

Far away, a log that is not long lies in the document that agrees on the change, so that nothing is to be stored before
that, and nothing removed after it.
"""

from __future__ import annotations

import binascii
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final

from zardine.errors import CorruptionError, DataError
from zardine.stores.base import Store
from zardine.vectors.format.change_log import ChangeLog, OtherLogError, decode_log
from zardine.vectors.storing.cells import child

LOG = "zardine_log"
"""Attribute of a level's group: the token of the log whose changes count already, or token and bytes of that."""

REVISION = "zardine_revision"
"""Attribute of a level's group: how often cells were changed; with it a level can be told from the one before."""

RECENT = "zardine_recent"
"""Attribute of a level's group, where locks do not keep others out: the tokens of the changes that were agreed on last.
Who does not get the answer to the write that agrees, and then finds that of another, sees there whether it was done."""

_RECENT: Final = 16
"""How many of them."""

_ALONE = "0" * 16
"""What makes a token of a writer who is the only one."""

_MOST_BESIDE: Final = 256 * 2**10
"""Bytes of a log that lies in the document: both are read and written a few times, by all who look at the level."""

_TOKEN = re.compile(r"([0-9]{1,18})-[0-9a-f]{16}")


def revision_of(attributes: Mapping[str, Any]) -> int:
    """The revision that the attributes of a level tell; 0 where they do not."""
    found = attributes.get(REVISION, 0)
    return found if type(found) is int and 0 <= found < 10**17 else 0


def new_token(store: Store, revision: int) -> str:
    """A token of a change that leads to this revision, made by who holds the lock."""
    return f"{revision}-{_ALONE if store.lock_is_exclusive else secrets.token_hex(8)}"


def write_log(store: Store, path: str, token: str, data: bytes) -> None:
    """Store the log of a change of the level at ``path``."""
    store.set(_key(path, token), data)


def log_in_document(token: str, data: bytes) -> Mapping[str, str] | None:
    """What a document says that has a log in itself; ``None`` for one that is too long for that."""
    return {"token": token, "base64": b64encode(data).decode()} if len(data) <= _MOST_BESIDE else None


def token_in(attributes: Mapping[str, Any]) -> Any:
    """The token of the log that the attributes of a level name, or have in them; ``None`` for none."""
    found = attributes.get(LOG)
    return found.get("token") if isinstance(found, Mapping) else found


def recent_with(attributes: Mapping[str, Any], token: str) -> list[str]:
    """What :data:`RECENT` is to say when the change of this token is agreed on."""
    return [*_recent_in(attributes)[1 - _RECENT :], token]


def is_recent(attributes: Mapping[str, Any], token: str) -> bool:
    """Whether the change of this token is among those that were agreed on last."""
    return token in _recent_in(attributes)


def _recent_in(attributes: Mapping[str, Any]) -> list[str]:
    found = attributes.get(RECENT)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list | tuple) else []


def read_log(store: Store, path: str, found: Any) -> ChangeLog | None:
    """The log that a document names, or has in it; ``None`` where it is not stored, or no longer.

    Raises :class:`~zardine.errors.CorruptionError` for a damaged one.
    """
    token = token_in({LOG: found})
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise CorruptionError(f"{LOG} is {token!r}, which no change is called", array=path)
    if isinstance(found, Mapping):
        try:
            held = b64decode(found["base64"], validate=True)
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise CorruptionError(f"{LOG} has no bytes of a log", array=path) from None
        try:
            return decode_log(held, token)
        except DataError as error:
            raise error.at(array=path) from None
    data = store.get(_key(path, token))
    if data is None:
        return None
    try:
        return decode_log(data, token)
    except OtherLogError as error:
        if token.endswith(_ALONE):
            return None
        raise error.at(key=_key(path, token)) from None
    except DataError as error:
        raise error.at(key=_key(path, token)) from None


def erase_log(store: Store, path: str, token: str) -> None:
    """Remove a log."""
    store.erase(_key(path, token))


def erase_dead_logs(store: Store, path: str, attributes: Mapping[str, Any]) -> None:
    """Remove the logs of changes that no level with these ``attributes`` can come to.

    Who holds the lock of a store where locks are exclusive is the only one who makes logs: then the one that the level
    names is all that there is.
    """
    prefix = _key(path, "")
    logs = [key for key in store.list_dir(f"{child(path, 'vertices')}/")[0] if key.startswith(prefix)]
    named, revision = _key(path, str(token_in(attributes))), revision_of(attributes)
    alone = store.lock_is_exclusive
    dead = [key for key in logs if key != named and _is_dead(key[len(prefix) :], revision, alone)]
    if dead:
        store.erase_values(dead)


def _is_dead(token: str, revision: int, alone: bool) -> bool:
    found = _TOKEN.fullmatch(token)
    return found is not None and (alone or 0 < int(found[1]) <= revision)


def log_key(path: str) -> str:
    """Where the log of a change lies of who is the only one."""
    return _key(path, _ALONE)


def _key(path: str, token: str) -> str:
    name = f"0-{_ALONE}" if token.endswith(_ALONE) else token
    return f"{child(path, 'vertices')}/{LOG}.{name}"
