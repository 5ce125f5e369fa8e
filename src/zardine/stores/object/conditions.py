"""Conditional puts: which services have them, and how a writer recognizes its own put when the answer is lost.

Every conditional put has a random *mark*. The object's metadata (``zardinewrite``) lists the marks of the last puts
that led to the value: a put adds its mark to those of the version that it replaces. When an answer is lost, or when a
repeated put meets the one before, the writer reads the list:

- If its own mark is there, the put was done, also if other writers have written since.
- Otherwise, if the last mark of the replaced version is there, the list is complete since then: the put was not done.
- If neither is there, another program has written the key, and the writer cannot know.
"""

from __future__ import annotations

import secrets
import time
from base64 import urlsafe_b64encode
from dataclasses import replace
from hashlib import sha256
from math import inf
from typing import Any, Final, TypeAlias

from zardine.buffers import BytesLike
from zardine.errors import UnsupportedError
from zardine.stores.attempts import attempts
from zardine.stores.base import Version
from zardine.stores.object.client import MARKS, ObjectClient
from zardine.stores.object.errors import GivenUp, is_lost, is_passing, is_uncertain, is_unsupported

Bucket: TypeAlias = tuple[str, str, str, str]
"""Scheme, host of the service (empty for the cloud's own), account, and name of the bucket or container."""

_MARK: Final = 8
"""Characters of a mark."""

_MOST_MARKS: Final = 64
"""Marks of one object: half a kilobyte, of the two that S3 allows."""

_found: dict[Bucket, bool] = {}


class MarkedVersion(str):
    """A version, and the ``marks`` of the last conditional puts that led to it. It equals the bare version."""

    __slots__ = ("marks",)

    marks: str

    def __new__(cls, version: str, marks: str = "") -> MarkedVersion:
        made = super().__new__(cls, version)
        made.marks = marks
        return made


def version_of(meta: Any, token: str) -> Version | None:
    """Return the version that a service tells as ``token`` (``"e_tag"`` or ``"version"``), with the value's marks."""
    version, marks = meta[token], meta.get(MARKS)
    return MarkedVersion(version, marks) if version and marks else version


def is_weak(version: Version | None) -> bool:
    """Return whether a version is a weak ETag, of which no condition is ever true (RFC 9110, section 13.1.1)."""
    return isinstance(version, str) and version.startswith("W/")


def knows_conditions(bucket: Bucket) -> bool | None:
    """Whether a bucket has conditional puts; ``None`` where nobody has tried yet. The clouds' own have them."""
    scheme, host, _, _ = bucket
    return _found.get(bucket, True if scheme != "s3" or not host else None)


def note_conditions(bucket: Bucket, known: bool) -> None:
    """Remember, for this process, whether a bucket has conditional puts."""
    _found[bucket] = known


def put_conditionally(
    client: ObjectClient, key: str, data: BytesLike, replaced: Version | None, token: str, bucket: Bucket
) -> Version | None:
    """Store a value if ``replaced`` is stored still (``None``: if the key is missing), and return the new version.

    A put whose answer is lost, or that meets a busy service, is made again. Raises
    :class:`~zardine.errors.UnsupportedError` if the service has no such puts; a request that obstore does not repeat
    finds out. Raises everything else as :class:`GivenUp`.
    """
    mode: Any = "create" if replaced is None else {token: str(replaced)}
    marks = _Marks(replaced) if client.keeps_attributes else None
    attributes = {} if marks is None else {MARKS: marks.text}
    clients = [client] * (1 if marks is None else int(client.patience.most))
    probe = client.without_repetitions() if knows_conditions(bucket) is None else None
    if probe is not None:
        clients.insert(0, probe)
    made, uncertain, error, begin = 0, False, None, time.monotonic()
    for each, last in zip(clients, attempts(replace(client.patience, most=len(clients), seconds=inf)), strict=True):
        try:
            meta = each.put(key, data, mode, attributes)
        except GivenUp as given_up:
            made, error = made + given_up.tries, given_up.__cause__ or given_up
        except Exception as raised:
            made, error = made + 1, raised
        else:
            note_conditions(bucket, True)
            version = version_of({**meta, **attributes}, token)
            if version is None and marks is not None:  # a service that tells ETags with values only
                version = marks.written(client, key, token)[1]
            return version
        if is_unsupported(error):
            note_conditions(bucket, False)
            raise UnsupportedError(str(error)) from None
        uncertain = uncertain or is_uncertain(error)
        lost, passing = is_lost(error, client.kind), is_passing(error)
        if marks is not None and (lost or (uncertain and (not passing or last))):
            is_done, version = marks.written(client, key, token)
            if is_done:
                return version
            uncertain = uncertain and not (lost and is_done is False)
        if not passing:
            break
    raise GivenUp(made, time.monotonic() - begin, is_uncertain=uncertain) from error


class _Marks:
    """The marks of a put that replaces a version."""

    def __init__(self, replaced: Version | None) -> None:
        before = getattr(replaced, "marks", "") or _encoded(sha256(str(replaced).encode()).digest())
        self._own = _encoded(secrets.token_bytes(6))
        self._last = before[-_MARK:]
        self.text = (before + self._own)[-_MARK * _MOST_MARKS :]

    def written(self, client: ObjectClient, key: str, token: str) -> tuple[bool | None, Version | None]:
        """Return whether the put was done, and its version; ``None`` if nothing that is stored tells.

        The version of a value that others have replaced since is one that no value has.
        """
        try:
            meta = client.head(key)
        except Exception:
            return None, None
        text = meta.get(MARKS) or ""
        marks = [text[start : start + _MARK] for start in range(0, len(text), _MARK)]
        if marks and marks[-1] == self._own:
            return True, version_of(meta, token)
        if self._own in marks:
            return True, MarkedVersion("1" if token == "version" else f'"replaced-{self._own}"', text)
        return False if self._last in marks else None, None


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data[: _MARK * 3 // 4]).decode()


__all__ = ["MarkedVersion", "is_weak", "knows_conditions", "put_conditionally", "version_of"]
