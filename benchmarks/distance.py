"""A proxy for HTTP/1.1 that puts a distance between a client and a server: each request waits, and some are refused.

It is to cost as little as it can of the processors that it shares with both sides: answers go through as they come, and
nothing of them is looked at but the end of the head. ``tests/servers/fault_proxy.py`` does wrong in many ways, and
takes twice as long.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_EXPECT = re.compile(rb"\r\nexpect: *100-continue", re.IGNORECASE)
_MALFORMED = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_REFUSAL = b"HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\n\r\n"


class Distance:
    """Pass on requests to a port of this machine, in a thread of its own, until :meth:`close`.

    ``latency`` are the seconds that a request waits from when it has come in, and ``refuses`` says of each whether it
    is answered by 503 then. ``requests`` are the lines ``METHOD path`` of those that came in, ``nbytes`` the bytes of
    the bodies that were answered; both are for the caller to read and to clear.
    """

    def __init__(self, port: int, latency: float = 0.0, refuses: Callable[[], bool] = lambda: False) -> None:
        self.target, self.latency, self.refuses = port, latency, refuses
        self.requests: list[str] = []
        self.nbytes = 0
        self.connections: set[_Near] = set()
        self.loop = asyncio.new_event_loop()
        listening = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(listening,), daemon=True)
        self._thread.start()
        listening.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _run(self, listening: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(self.loop.create_server(lambda: _Near(self), "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        listening.set()
        self.loop.run_forever()
        server.close()
        for each in self.connections:
            each.transport.abort()
        self.loop.run_until_complete(asyncio.sleep(0))  # both sides are told of it then,
        self.loop.run_until_complete(asyncio.sleep(0))  # one after the other
        self.loop.close()


class _Near(asyncio.Protocol):
    """The side of the client: one connection."""

    transport: asyncio.Transport

    def __init__(self, distance: Distance) -> None:
        self.distance = distance
        self.far = _Far(self)
        self.came = bytearray()
        self.wanted: int | None = None
        """Bytes of the request that comes in, once its head has."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.distance.connections.add(self)
        self.far.connecting = self.distance.loop.create_task(self.far.connect())

    def data_received(self, data: bytes) -> None:
        self.came += data
        try:
            is_first = True
            while not self.transport.is_closing() and (request := self._next()) is not None:
                is_first = self._wait(request, may_refuse=is_first)
        except ValueError:
            self.came.clear()
            self.transport.write(_MALFORMED)
            self.transport.close()

    def _next(self) -> bytes | None:
        """Take the next request, if all of it has come. ``ValueError``: it is none."""
        if self.wanted is None:
            end = self.came.find(b"\r\n\r\n") + 4
            if end < 4:
                return None
            if expected := _EXPECT.search(self.came, 0, end):
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                del self.came[slice(*expected.span())]
                end -= len(expected[0])
            if _CHUNKED.search(self.came, 0, end):
                return self._join_chunks(end)
            length = _LENGTH.search(self.came, 0, end)
            self.wanted = end + (int(length[1]) if length else 0)
        if len(self.came) < self.wanted:
            return None
        request = bytes(self.came[: self.wanted])
        del self.came[: self.wanted]
        self.wanted = None
        return request

    def _join_chunks(self, end: int) -> bytes | None:
        """Make of a body in chunks one with a length: versitygw takes the last chunk for the next request."""
        begin, chunks = end, []
        while (line := self.came.find(b"\r\n", begin)) >= 0:
            size = int(self.came[begin:line].split(b";")[0], 16)
            if size < 0:
                raise ValueError(f"a chunk of {size} bytes")
            chunks.append(slice(line + 2, line + 2 + size))
            begin = line + 2 + size + 2
            if size == 0 and begin <= len(self.came):
                body = b"".join(self.came[each] for each in chunks)
                head = _CHUNKED.sub(b"\r\ncontent-length: %d" % len(body), self.came[:end])
                del self.came[:begin]
                return bytes(head) + body
        return None

    def _wait(self, request: bytes, *, may_refuse: bool) -> bool:
        """Have a request go on in time; gives whether it is refused, as none may be that came with one that is not."""
        method, path, _ = request[: request.index(b"\r\n")].decode("latin-1").split(" ", 2)
        self.distance.requests.append(f"{method} {path}")
        refused = may_refuse and self.distance.refuses()
        self.distance.loop.call_later(self.distance.latency, self._go, None if refused else request)
        return refused

    def _go(self, request: bytes | None) -> None:
        if request is None:
            self.transport.write(_REFUSAL)
        elif not self.transport.is_closing():
            self.far.ask(request)

    def pause_writing(self) -> None:
        self.far.flow(on=False)

    def resume_writing(self) -> None:
        self.far.flow(on=True)

    def connection_lost(self, error: Exception | None) -> None:
        self.distance.connections.discard(self)
        self.far.close()


class _Far(asyncio.Protocol):
    """The side of the server: one connection for each of the client's."""

    def __init__(self, near: _Near) -> None:
        self.near = near
        self.transport: asyncio.Transport | None = None
        self.waiting = b""
        """Requests, until there is a connection."""
        self.head: bytes | None = None
        """What has come of the head of an answer, until all of it has."""
        self.connecting: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        distance = self.near.distance
        try:
            await distance.loop.create_connection(lambda: self, "127.0.0.1", distance.target)
        except OSError:
            self.near.transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        if self.waiting:
            self.ask(self.waiting)

    def ask(self, request: bytes) -> None:
        if self.transport is None:
            self.waiting += request
        else:
            self.head = b""
            self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self.head is None:
            self.near.distance.nbytes += len(data)
        else:
            self.head += data
            end = self.head.find(b"\r\n\r\n")
            if end >= 0:
                self.near.distance.nbytes += len(self.head) - end - 4
                self.head = None
        self.near.transport.write(data)

    def flow(self, *, on: bool) -> None:
        if self.transport is not None and not self.transport.is_closing():
            (self.transport.resume_reading if on else self.transport.pause_reading)()

    def close(self) -> None:
        if self.connecting is not None:
            self.connecting.cancel()
        if self.transport is not None:
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.near.transport.close()
