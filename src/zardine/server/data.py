"""The bytes of a store as they lie there: ``/data/NAME/<key>``."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from zardine.buffers import BytesLike
from zardine.errors import DataError
from zardine.server.access import Receive, Scope, Send
from zardine.server.conditions import Answer, answer
from zardine.server.served import Served, entity_tag
from zardine.server.threads import in_thread
from zardine.stores.base import Reading

_PIECE = 2**20
"""Bytes of a value that are held at a time."""
_MOST_HASHED = 2**23
"""Bytes of a value that is read whole for its entity tag, where the store has no versions."""
_PATIENCE = 60.0
"""Seconds that a client may take to read one piece."""


class ValueChangedError(DataError):
    """A value was replaced while it was being sent."""


async def data(request: Request, served: Served, key: str) -> Response:
    """Answer a request for ``key``, relative to the node that is served."""
    if not await in_thread(served.is_ours, key):
        return not_found("no Zarr document or chunk is called so here")
    found = await in_thread(_look, served, key)
    if found is None:
        return not_found("not stored; where a chunk is meant, its elements are fill values")
    return await send_value(request, found)


@dataclass(frozen=True, slots=True)
class Value:
    """A value of ``size`` bytes that can be read in pieces, all of one version."""

    served: Served
    key: str
    version: str | None
    size: int
    etag: str | None
    media_type: str
    held: BytesLike | None = None
    """All of it, where it has been read already."""

    def read(self, start: int, length: int) -> BytesLike:
        """Return a piece. Raises :class:`ValueChangedError` where the value is another one by now."""
        if self.held is not None:
            return memoryview(self.held)[start : start + length]
        reading = self.served.store.read(self.served.key(self.key), ((start, length),))
        if (
            reading is None
            or reading.version != self.version
            or len(reading.parts[0]) != min(length, self.size - start)
        ):
            raise ValueChangedError(f"{self.key!r} was replaced while it was being sent")
        return reading.parts[0]


async def send_value(request: Request, value: Value) -> Response:
    """Answer with a value, or the part of it that is asked for."""
    headers = dict(request.headers.items())
    found = answer(request.method, headers, value.size, value.etag)
    about = dict(found.headers)
    if value.etag is not None:
        about["etag"] = value.etag
    if found.status not in (200, 206) or request.method == "HEAD" or found.start == found.stop:
        return Response(status_code=found.status, headers=about, media_type=value.media_type)
    try:
        first = await in_thread(value.read, found.start, min(_PIECE, found.stop - found.start))
    except ValueChangedError as error:
        return Response(str(error), 503, {"retry-after": "0"}, "text/plain")
    return _PatientResponse(_pieces(value, found, first), found.status, about, value.media_type)


async def _pieces(value: Value, found: Answer, first: BytesLike) -> AsyncIterator[bytes]:
    yield bytes(first)
    for start in range(found.start + len(first), found.stop, _PIECE):
        yield bytes(await in_thread(value.read, start, min(_PIECE, found.stop - start)))


class _PatientResponse(StreamingResponse):
    """Pieces one after the other; a client that reads none for a minute is let go."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def patient(message: object) -> None:
            await asyncio.wait_for(send(message), _PATIENCE)  # type: ignore[arg-type]

        await super().__call__(scope, receive, patient)


def _look(served: Served, key: str) -> Value | None:
    store, name = served.store, served.key(key)
    reading = store.read(name, ((0, 0),))
    if reading is None:
        return None
    media_type = "application/json" if "." in key.rpartition("/")[2][:1] or key.endswith(".json") else _BYTES
    if reading.version is not None:
        return Value(served, key, reading.version, reading.size, entity_tag(reading.version), media_type)
    if reading.size > _MOST_HASHED:
        return Value(served, key, None, reading.size, None, media_type)
    whole: Reading | None = store.read(name)
    return None if whole is None else held_value(served, key, whole.parts[0], media_type)


_BYTES = "application/octet-stream"


def held_value(served: Served, key: str, value: BytesLike, media_type: str = _BYTES) -> Value:
    """Return a value that is in memory; its entity tag is made of its bytes."""
    etag = f'"{hashlib.sha256(value).hexdigest()[:32]}"'
    return Value(served, key, None, len(value), etag, media_type, value)


def not_found(text: str) -> Response:
    """Answer that nothing is there."""
    return Response(f"{text}\n", 404, media_type="text/plain")
