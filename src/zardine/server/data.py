"""The bytes of a store as they lie there: ``/data/NAME/<key>``."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from zardine.buffers import BytesLike
from zardine.cache import Cache
from zardine.errors import DataError, InvalidKeyError, StoreError
from zardine.server.access import Receive, Scope, Send
from zardine.server.conditions import Answer, answer
from zardine.server.served import Served, entity_tag
from zardine.server.threads import in_large_thread, in_thread

_PIECE = 2**20
"""Bytes of a value that are held at a time."""
_MOST_HASHED = 2**23
"""Bytes of a value that is read whole for its entity tag, where the store has no versions."""
_PATIENCE = 60.0
"""Seconds that a client may take to read one piece."""
_BYTES = "application/octet-stream"


class ValueChangedError(DataError):
    """A value was replaced while it was being sent."""


async def data(request: Request, served: Served, key: str) -> Response:
    """Answer a request for ``key``, relative to the node that is served."""
    if not await in_thread(served.is_ours, key):
        return await unknown(request, served, key, "no Zarr document or chunk is called so here")
    try:
        found = await in_thread(_look, served, key)
    except ValueChangedError:
        found = None
    except InvalidKeyError as error:  # such as a link that leads out: "not found" would be taken for fill values
        raise StoreError(str(error)) from error
    if found is None:
        return not_found("not stored; where a chunk is meant, its elements are fill values")
    return await send_value(request, found)


class Value(Protocol):
    """A value of ``size`` bytes that can be read in pieces, all of one version."""

    @property
    def size(self) -> int: ...
    @property
    def etag(self) -> str | None: ...
    @property
    def media_type(self) -> str: ...

    def read(self, start: int, length: int) -> BytesLike:
        """Return a piece. Raises :class:`ValueChangedError` where the value is another one by now."""

    @property
    def is_large(self) -> bool:
        """Whether reading a piece may take as much memory as many pieces."""

    def close(self) -> None:
        """Forget what is held of it."""


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A value of a store."""

    served: Served
    key: str
    version: str | None
    size: int
    etag: str | None
    media_type: str

    is_large: ClassVar[bool] = False

    def read(self, start: int, length: int) -> BytesLike:
        reading = self.served.store.read(self.served.key(self.key), ((start, length),))
        if (
            reading is None
            or reading.version != self.version
            or len(reading.parts[0]) != min(length, self.size - start)
        ):
            raise ValueChangedError(f"{self.key!r} was replaced while it was being sent")
        return reading.parts[0]

    def close(self) -> None:
        pass


class MadeValue:
    """A value that ``make`` returns. Its entity tag is made of its bytes.

    Of all large ones that are being sent, no more than :data:`_MOST_HELD` bytes are held: those that clients read last.
    The others are made again when their next piece is wanted, so slow clients cost time and no memory.
    """

    def __init__(self, make: Callable[[], bytes], media_type: str = _BYTES) -> None:
        self._make, self.media_type = make, media_type
        data = make()
        self.size, self._digest = len(data), hashlib.sha256(data).hexdigest()
        self.etag = f'"{self._digest[:32]}"'
        self._small = None if self.is_large else data
        if self.is_large:
            _HELD.put(self, data, self.size)

    @property
    def is_large(self) -> bool:
        return self.size > _PIECE

    def read(self, start: int, length: int) -> BytesLike:
        data = self._small if self._small is not None else _HELD.get(self)
        if data is None:
            data = self._make()
            if hashlib.sha256(data).hexdigest() != self._digest:
                raise ValueChangedError("the value was replaced while it was being sent")
            _HELD.put(self, data, self.size)
        return memoryview(data)[start : start + length]

    def close(self) -> None:
        _HELD.drop(self)


_MOST_HELD: Final = 2**27
_HELD: Final[Cache[MadeValue, bytes]] = Cache(_MOST_HELD)


async def send_value(request: Request, value: Value) -> Response:
    """Answer with a value, or the part of it that is asked for."""
    headers = dict(request.headers.items())
    found = answer(request.method, headers, value.size, value.etag)
    about = dict(found.headers)
    if value.etag is not None:
        about["etag"] = value.etag
    if found.status not in (200, 206) or request.method == "HEAD" or found.start == found.stop:
        value.close()
        return Response(status_code=found.status, headers=about, media_type=value.media_type)
    try:
        first = await _piece(value, found.start, found.stop)
    except ValueChangedError as error:
        value.close()
        return Response(str(error), 503, {"retry-after": "0"}, "text/plain")
    return _PatientResponse(value, _pieces(value, found, first), found.status, about)


async def _pieces(value: Value, found: Answer, first: bytes) -> AsyncIterator[bytes]:
    yield first
    for start in range(found.start + len(first), found.stop, _PIECE):
        yield await _piece(value, start, found.stop)


async def _piece(value: Value, start: int, stop: int) -> bytes:
    run = in_large_thread if value.is_large else in_thread
    return await run(lambda: bytes(value.read(start, min(_PIECE, stop - start))))


class _PatientResponse(StreamingResponse):
    """Pieces one after the other; a client that reads none for a minute is let go."""

    def __init__(self, value: Value, pieces: AsyncIterator[bytes], status: int, headers: dict[str, str]) -> None:
        super().__init__(pieces, status, headers, value.media_type)
        self._value = value

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def patient(message: object) -> None:
            await asyncio.wait_for(send(message), _PATIENCE)  # type: ignore[arg-type]

        try:
            await super().__call__(scope, receive, patient)
        finally:
            self._value.close()


def _look(served: Served, key: str) -> Value | None:
    store, name = served.store, served.key(key)
    reading = store.read(name, ((0, 0),))
    if reading is None:
        return None
    media_type = "application/json" if "." in key.rpartition("/")[2][:1] or key.endswith(".json") else _BYTES
    if reading.version is not None:
        return StoredValue(served, key, reading.version, reading.size, entity_tag(reading.version), media_type)
    if reading.size > _MOST_HASHED:
        return StoredValue(served, key, None, reading.size, None, media_type)

    def whole() -> bytes:
        found = store.read(name)
        if found is None:
            raise ValueChangedError(f"{key!r} was erased while it was being sent")
        return bytes(found.parts[0])

    return MadeValue(whole, media_type)


async def unknown(request: Request, served: Served, key: str, text: str) -> Response:
    """Answer that there is no such key; an error where "not found" would be taken for a chunk of fill values."""
    if not request.url.query and not await in_thread(served.is_misnamed, key):
        return not_found(text)
    reason = "no array is stored here, and names have '?', '#', '%' and line breaks percent-encoded"
    return Response(f"{text}: {reason}\n", 400, media_type="text/plain")


def not_found(text: str) -> Response:
    """Answer that nothing is there."""
    return Response(f"{text}\n", 404, media_type="text/plain")
