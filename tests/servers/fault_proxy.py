"""A proxy for HTTP/1.1 between client and server that can be slow, and that can do wrong.

``FaultProxy(port)`` runs in a thread of its own. Its attributes say what happens to the next requests:

- ``latency``: seconds added to each request, from when it has come in;
- ``faults``: a list of faults, one used up by each request (to ``matching`` paths and methods) until it is empty:
  ``"drop"`` (hang up before anything is forwarded), ``"drop_after"`` (forward, and hang up without an answer),
  ``"reset"`` and ``"reset_after"`` (the same by RST instead of FIN), a function (forward, call it, then reset), a
  status such as ``503`` (answered without forwarding), ``"503_after"`` (forward, then answer so), ``"truncate"`` (half
  of the body, then hang up), ``"stall"`` (half of the body, then nothing for ``stall`` seconds), ``"slow"`` (the body
  in ten pieces over ``stall`` seconds), bytes (the whole answer, head and body, without forwarding), ``None`` (nothing
  wrong);
- ``together``: requests wait for each other, that many at a time, before they are answered (1: they do not);
- ``rewrite``: gives the head of each forwarded answer as the client gets it, by method and the server's head;
- ``always``: gives the fault of each request for which ``faults`` has none, by method, path and headers (small names).

``requests`` are the lines ``METHOD path`` and ``headers`` the headers of those that came in, :meth:`rounds` how many of
them had to wait for each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable


class FaultProxy:
    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.target = (host, port)
        self.latency = 0.0
        self.stall = 5.0
        self.faults: list[object] = []
        self.matching: Callable[[str, str], bool] = lambda method, path: True
        self.always: Callable[[str, str, dict[str, str]], object] = lambda method, path, headers: None
        self.rewrite: Callable[[str, bytes], bytes] = lambda method, head: head
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.spans: list[tuple[float, float]] = []
        self.under_way = 0
        self.most_under_way = 0
        self.together = 1
        self._waiting: list[asyncio.Future[None]] = []
        started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        started.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def reset(self) -> None:
        self.latency, self.together, self.faults, self.requests, self.most_under_way = 0.0, 1, [], [], 0
        self.headers, self.spans = [], []
        self.matching = lambda method, path: True
        self.always = lambda method, path, headers: None
        self.rewrite = lambda method, head: head

    def rounds(self) -> int:
        """The longest chain of requests of which each came in after the answer to the one before."""
        count, end = 0, -1.0
        for start, stop in sorted(self.spans, key=lambda span: span[1]):
            if start >= end:
                count, end = count + 1, stop
        return count

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**20))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: list = []
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._one(reader, writer, upstream):
                pass
        for each in (writer, *upstream[1:]):
            each.close()

    async def _one(self, reader, writer, upstream) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        method, path, _ = head.split(b"\r\n")[0].decode().split(" ", 2)
        headers = _headers(head)
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            head = b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith(b"expect:"))
        body = await _body(reader, head)
        self.requests.append(f"{method} {path}")
        self.headers.append(headers)
        begin = self._loop.time()
        self.under_way += 1
        self.most_under_way = max(self.under_way, self.most_under_way)
        noted = False

        def note_end() -> None:
            """Before the answer goes: whoever has it finds the request among those that have ended."""
            nonlocal noted
            if not noted:
                noted = True
                self.under_way -= 1
                self.spans.append((begin, self._loop.time()))

        try:
            fault = self.faults.pop(0) if self.faults and self.matching(method, path) else None
            if fault is None:
                fault = self.always(method, path, headers)
            if self.together > 1:
                await self._others()
            if self.latency:
                await asyncio.sleep(self.latency)
            if fault in ("drop", "reset"):
                _close(writer, reset=fault == "reset")
                return False
            if isinstance(fault, (int, bytes)):
                empty = f"HTTP/1.1 {fault} Fault\r\ncontent-length: 0\r\n\r\n".encode()
                note_end()
                writer.write(fault if isinstance(fault, bytes) else empty)
                await writer.drain()
                return True
            if not upstream:
                upstream += await asyncio.open_connection(*self.target, limit=2**20)
            upstream[1].write(head + body)
            answer = await upstream[0].readuntil(b"\r\n\r\n")
            status = int(answer.split(b" ", 2)[1])
            empty = method == "HEAD" or status in (204, 304)
            content = b"" if empty else await _body(upstream[0], answer)
            if b"connection: close" in answer.lower():
                upstream[1].close()
                upstream.clear()
                answer = answer.replace(b"Connection: close\r\n", b"").replace(b"connection: close\r\n", b"")
            if callable(fault):
                await self._loop.run_in_executor(None, fault)
                fault = "reset_after"
            return await self._answer(writer, fault, self.rewrite(method, answer), content, note_end)
        finally:
            note_end()

    async def _others(self) -> None:
        mine = self._loop.create_future()
        self._waiting.append(mine)
        if len(self._waiting) == self.together:
            for each in self._waiting:
                each.set_result(None)
            self._waiting.clear()
        await mine

    async def _answer(self, writer, fault, answer: bytes, content: bytes, note_end: Callable[[], None]) -> bool:
        if fault in ("drop_after", "reset_after"):
            _close(writer, reset=fault == "reset_after")
            return False
        if fault == "503_after":
            note_end()
            writer.write(b"HTTP/1.1 503 Fault\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
            return True
        if fault not in ("truncate", "stall", "slow"):
            note_end()
        writer.write(answer)
        if fault in ("truncate", "stall"):
            writer.write(content[: len(content) // 2])
            await writer.drain()
            if fault == "stall":
                await asyncio.sleep(self.stall)
            return False
        if fault == "slow":
            step = max(1, -(-len(content) // 10))
            for start in range(0, len(content), step):
                writer.write(content[start : start + step])
                await writer.drain()
                await asyncio.sleep(self.stall / 10)
            return True
        writer.write(content)
        await writer.drain()
        return True


def _close(writer: asyncio.StreamWriter, *, reset: bool) -> None:
    """Close a connection, by RST with ``reset``."""
    if reset:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    writer.close()


def _headers(head: bytes) -> dict[str, str]:
    pairs = (line.decode("latin-1").partition(":") for line in head.split(b"\r\n")[1:] if line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    """The body that follows a head, as it comes, chunked ones with their framing."""
    headers = _headers(head)
    if headers.get("transfer-encoding", "").lower() == "chunked":
        whole = b""
        while True:
            line = await reader.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            whole += line + await reader.readexactly(size + 2)
            if size == 0:
                return whole
    return await reader.readexactly(int(headers.get("content-length", 0)))


def answer(status: int, body: bytes = b"", **headers: str) -> bytes:
    """A whole answer of HTTP; underscores in names of headers stand for hyphens."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join([f"HTTP/1.1 {status} Fault", f"content-length: {len(body)}", *lines, "", ""])
    return head.encode() + body


def refusal(status: int, code: str, message: str = "because", **headers: str) -> bytes:
    """An answer with an error as S3, Azure and Google write it."""
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return answer(status, body.encode(), content_type="application/xml", **headers)


__all__ = ["FaultProxy", "answer", "refusal"]
