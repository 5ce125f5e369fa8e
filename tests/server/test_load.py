"""Five hundred clients at a time, slow and broken ones among them: nothing is lost, and memory stays bounded."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import zardine
from effort import SOAK

CLIENTS = 500
SECONDS = 60 if SOAK else 2
MOST_MEMORY = 300 * 2**20
"""Bytes that the server may grow by under load: 16 reads at a time, of pieces of a megabyte."""

SERVING = """
import sys, zardine
with zardine.serve(sys.argv[1], token=False) as server:
    print(server.port, flush=True)
    sys.stdin.read()
"""


def memory_of(process: int) -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def get(port: int, path: str, headers: str = "") -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n".encode())
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
        return int(head.split()[1]), body
    finally:
        writer.close()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_five_hundred_at_a_time(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 1000, (512, 512), "i4")
    root = zardine.create_group(tmp_path / "g")
    root.create_array("a", shape=values.shape, chunks=(64, 64), shards=(256, 256), dtype="i4", compressors=None)
    root["a"][...] = values
    root.create_array("b", shape=(64,), chunks=(64,), dtype="i4")[...] = 1
    stored = tmp_path / "g" / "b" / "c" / "0"
    stored.write_bytes(stored.read_bytes()[:-1] + b"\0")
    shard = (tmp_path / "g" / "a" / "c" / "1" / "0").read_bytes()
    process = subprocess.Popen(
        [sys.executable, "-c", SERVING, str(tmp_path / "g")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        port = int(process.stdout.readline())
        before = memory_of(process.pid)
        answers: Counter[str] = Counter()
        most = 0

        async def client(number: int, end: float) -> None:
            nonlocal most
            draw = random.Random(number)
            while time.monotonic() < end:
                kind = draw.choice(["shard", "range", "chunk", "document", "none", "bad", "leaves", "slow"])
                if kind == "shard":
                    assert await get(port, "/data/g/a/c/1/0") == (200, shard)
                elif kind == "range":
                    start = draw.randrange(len(shard) - 100)
                    found = await get(port, "/data/g/a/c/1/0", f"Range: bytes={start}-{start + 99}\r\n")
                    assert found == (206, shard[start : start + 100])
                elif kind == "chunk":
                    i, j = draw.randrange(8), draw.randrange(8)
                    status, body = await get(port, f"/v3/g/a/c/{i}/{j}")
                    wanted = values[64 * i : 64 * i + 64, 64 * j : 64 * j + 64]
                    assert (status, body) == (200, wanted.tobytes())
                elif kind == "document":
                    assert (await get(port, "/data/g/a/zarr.json"))[0] == 200
                elif kind == "none":
                    assert (await get(port, "/data/g/a/c/9/9/9"))[0] == 404
                elif kind == "bad":
                    assert (await get(port, "/v3/g/b/c/0"))[0] == 500
                else:  # a request of which half comes; one whose answer is not read
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.write(b"GET /data/g/a/c/1/0 HTTP/1.1\r\nHost: localhost\r\n")
                    if kind == "slow":
                        writer.write(b"\r\n")
                        await writer.drain()
                        await asyncio.sleep(draw.random())
                        assert await reader.read(1) == b"H"
                    writer.transport.abort()
                answers[kind] += 1
                most = max(most, memory_of(process.pid))

        async def party() -> None:
            end = time.monotonic() + SECONDS
            await asyncio.gather(*(client(number, end) for number in range(CLIENTS)))
            assert await get(port, "/data/g/a/c/1/0") == (200, shard)  # and it still answers

        asyncio.run(party())
        assert process.poll() is None
        assert len(answers) == 8, answers
        assert sum(answers.values()) >= CLIENTS
        assert most - before < MOST_MEMORY
        print(f"{sum(answers.values())} answers; {before / 2**20:.0f} to {most / 2**20:.0f} MiB")
    finally:
        process.stdin.close()
        process.wait(20)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_forty_that_read_large_chunks_slowly(tmp_path: Path) -> None:
    """Chunks of 64 MB that are made for clients that do not read them: few are in memory at a time."""
    chunk = 2**23
    array = zardine.create_array(tmp_path / "a", shape=(4 * chunk,), chunks=(chunk,), dtype="f8")
    array[...] = np.tile(np.arange(chunk, dtype="f8"), 4)
    process = subprocess.Popen(
        [sys.executable, "-c", SERVING, str(tmp_path / "a")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    clients = []
    try:
        port = int(process.stdout.readline())
        before = most = memory_of(process.pid)
        for number in range(40):
            client = socket.create_connection(("127.0.0.1", port))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(f"GET /v3/a/c/{number % 4} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            clients.append(client)
        for _ in range(60):
            time.sleep(0.1)
            most = max(most, memory_of(process.pid))
        assert most - before < 700 * 2**20, f"{(most - before) // 2**20} MiB more, for 40 chunks of 64 MiB"
        assert asyncio.run(get(port, "/v3/a/zarr.json"))[0] == 200
    finally:
        for client in clients:
            client.close()
        process.stdin.close()
        process.wait(20)
