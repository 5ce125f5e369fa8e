"""Conditional puts: which services have them, and telling a race that was lost from an answer that was."""

from __future__ import annotations

import uuid
from dataclasses import replace
from math import inf
from typing import Any, Final, TypeAlias

from zardine.buffers import BytesLike
from zardine.errors import UnsupportedError
from zardine.stores.attempts import attempts
from zardine.stores.object.client import ObjectClient
from zardine.stores.object.errors import GivenUp, is_cut_short, is_lost, is_passing, is_repeated, is_unsupported

Bucket: TypeAlias = tuple[str, str, str, str]
"""Scheme, host of the service (empty for the cloud's own), account, and name of the bucket or container."""

_WRITE_ID: Final = "zardinewrite"
"""Metadata of an object: which write made it, so that a write whose answer got lost can be told from another's."""

_found: dict[Bucket, bool] = {}


def knows_conditions(bucket: Bucket) -> bool | None:
    """Whether a bucket has conditional puts; ``None`` where nobody has tried yet. The clouds' own have them."""
    scheme, host, _, _ = bucket
    return _found.get(bucket, True if scheme != "s3" or not host else None)


def note_conditions(bucket: Bucket, known: bool) -> None:
    """Remember, for this process, whether a bucket has conditional puts."""
    _found[bucket] = known


def put_conditionally(client: ObjectClient, key: str, data: BytesLike, mode: Any, bucket: Bucket) -> Any:
    """Store a value on the condition that ``mode`` says, once; gives what the service tells of it.

    A put whose answer got lost is made again, and fails against itself if it had succeeded: then the mark in the
    object's metadata is ours, which is success. :class:`UnsupportedError` if the service has no such puts; it is asked
    by a request that obstore does not repeat. All else is raised as :class:`GivenUp`.
    """
    attributes = {_WRITE_ID: uuid.uuid4().hex} if client.keeps_attributes else {}
    clients = [client] * (int(client.patience.most) if attributes else 1)
    probe = client.without_repetitions() if knows_conditions(bucket) is None else None
    if probe is not None:
        clients.insert(0, probe)
    made, error = 0, None
    for each, _ in zip(clients, attempts(replace(client.patience, most=len(clients), seconds=inf)), strict=True):
        try:
            result = each.put(key, data, mode, attributes)
        except GivenUp as given_up:
            made, error = made + given_up.tries, given_up.__cause__ or given_up
        except Exception as raised:
            made, error = made + 1, raised
        else:
            note_conditions(bucket, True)
            return result
        if is_unsupported(error):
            note_conditions(bucket, False)
            raise UnsupportedError(str(error)) from None
        lost = is_lost(error, client.kind)
        if attributes and (lost or is_cut_short(error)):
            written = _written(client, key, attributes)
            if written is not None:
                return written
        if not (is_passing(error) or (each is probe and is_repeated(error))):
            break
    raise GivenUp(made) from error


def _written(client: ObjectClient, key: str, attributes: dict[str, str]) -> Any:
    """What the service tells of the value, if a put with these ``attributes`` made it; else ``None``."""
    try:
        meta, found = client.attributes(key)
    except Exception:
        return None
    return meta if found.get(_WRITE_ID) in attributes.values() else None


__all__ = ["knows_conditions", "put_conditionally"]
