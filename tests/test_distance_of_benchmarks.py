"""The proxy of what is measured far away: everything goes through it unchanged, waits, and is counted."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = str(Path(__file__).parents[1] / "benchmarks")
sys.path.insert(0, BENCHMARKS)
try:
    import distance
    import environment
    import far_server
finally:
    sys.path.remove(BENCHMARKS)  # which has a module called vectors, as there is a package of tests

LARGE = bytes(range(256)) * 40_000
"""10 MB."""


class Echo(BaseHTTPRequestHandler):
    """Answers with the body that it gets; of ``/large`` with much, of ``/close`` by hanging up after the answer."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None: ...

    def handle_expect_100(self) -> bool:
        raise AssertionError("the proxy is to answer that")

    def _body(self) -> bytes:
        assert "transfer-encoding" not in self.headers
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def do_PUT(self) -> None:
        body = LARGE if self.path == "/large" else self._body()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        if self.path == "/close":
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT  # noqa: N815


@pytest.fixture
def proxy() -> Iterator[distance.Distance]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    proxy = distance.Distance(server.server_port)
    yield proxy
    proxy.close()
    server.shutdown()
    server.server_close()


@pytest.fixture
def client(proxy: distance.Distance) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    yield connection
    connection.close()


def asked(client: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str) -> Any:
    client.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = client.getresponse()
    return answer.status, answer.read()


def test_requests_and_answers_go_through_and_are_counted(proxy, client) -> None:
    assert asked(client, "PUT", "/a?b=c", LARGE) == (200, LARGE)
    assert asked(client, "GET", "/large") == (200, LARGE)
    assert asked(client, "HEAD", "/large") == (200, b"")
    assert asked(client, "GET", "/empty") == (200, b"")
    assert proxy.requests == ["PUT /a?b=c", "GET /large", "HEAD /large", "GET /empty"]
    assert proxy.nbytes == 2 * len(LARGE)


def test_bodies_in_chunks_are_passed_on_whole_with_their_length(proxy, client) -> None:
    pieces = [b"x" * 70_000, b"\r\n0\r\n\r\n", b"end"]
    assert asked(client, "PUT", "/a", iter(pieces)) == (200, b"".join(pieces))
    assert asked(client, "PUT", "/a", b"and on") == (200, b"and on")
    assert len(proxy.requests) == 2


def test_requests_that_come_byte_by_byte(proxy) -> None:
    for request in (
        b"PUT /a HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello",
        b"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", proxy.port), 10) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in request:
                connection.sendall(bytes([byte]))
                time.sleep(0.0005)
            answer = b""
            while not answer.endswith(b"hello"):
                part = connection.recv(1000)
                assert part, answer
                answer += part
    assert proxy.requests == ["PUT /a"] * 2
    assert proxy.nbytes == 10


def test_who_waits_to_be_told_to_go_on_is_told_at_once(proxy) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port), 10) as connection:
        connection.sendall(b"PUT /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert not proxy.requests
        connection.sendall(b"abc")
        answer = b""
        while not answer.endswith(b"abc"):
            part = connection.recv(1000)
            assert part, answer
            answer += part
    assert proxy.nbytes == 3


def test_requests_wait_at_the_same_time(proxy) -> None:
    proxy.latency = 300
    with contextlib.ExitStack() as stack:
        for number in range(10):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", proxy.port), 10))
            connection.sendall(b"GET /%d HTTP/1.1\r\n\r\n" % number)
        end = time.monotonic() + 60
        while len(proxy.requests) < 10:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert sorted(proxy.requests) == [f"GET /{number}" for number in range(10)]


def test_some_are_refused_after_they_have_waited(proxy, client) -> None:
    refused = iter([False, True, False])
    proxy.refuses = lambda: next(refused)
    proxy.latency = 0.1
    begin = time.perf_counter()
    assert [asked(client, "PUT", "/a", b"x")[0] for _ in range(3)] == [200, 503, 200]
    assert time.perf_counter() - begin >= 0.3
    assert len(proxy.requests) == 3
    assert proxy.nbytes == 2


def test_a_server_that_hangs_up_is_passed_on(proxy, client) -> None:
    assert asked(client, "PUT", "/close", b"x") == (200, b"x")
    assert asked(client, "PUT", "/a", b"y") == (200, b"y")  # by a new connection
    assert proxy.requests == ["PUT /close", "PUT /a"]


def test_a_server_that_is_not_there_ends_the_connection() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    proxy = distance.Distance(port)
    with socket.create_connection(("127.0.0.1", proxy.port), 10) as connection:
        connection.settimeout(10)
        connection.sendall(b"GET /a HTTP/1.1\r\n\r\n")
        assert connection.recv(1000) == b""
    proxy.close()


def test_requests_that_come_together_are_all_answered(proxy) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port), 10) as connection:
        asked = b"".join(b"PUT /%d HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n<%d" % (n, n) for n in range(5))
        connection.sendall(asked)
        answers = b""
        while answers.count(b"<") < 5:
            more = connection.recv(10_000)
            assert more
            answers += more
    assert [answers[at + 1 : at + 2] for at in range(len(answers)) if answers[at : at + 1] == b"<"] == [
        b"%d" % n for n in range(5)
    ]
    assert proxy.requests == [f"PUT /{n}" for n in range(5)]


def test_of_requests_that_come_together_none_is_refused_before_another_is_answered(proxy) -> None:
    refusals = iter([True, False, True])
    proxy.refuses = lambda: next(refusals)
    with socket.create_connection(("127.0.0.1", proxy.port), 10) as connection:
        connection.sendall(b"GET /a HTTP/1.1\r\n\r\n" * 3)
        answers = b""
        while answers.count(b"HTTP/1.1") < 3:
            more = connection.recv(10_000)
            assert more
            answers += more
    assert [line[9:12] for line in answers.split(b"\r\n") if line.startswith(b"HTTP/1.1")] == [b"503", b"200", b"200"]


CHUNKED = b"PUT /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("head", [b"GET", b"GET /a", CHUNKED + b"x\r\n", CHUNKED + b"-9\r\n"])
def test_what_is_no_request_is_answered_so(proxy, head: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port), 10) as connection:
        connection.sendall(head + b"\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 400 ")
        assert connection.recv(1000) == b""
    assert "Traceback" not in capfd.readouterr().err


LISTENING = """#!{python}
import socket, sys
host, port = sys.argv[sys.argv.index("--port") + 1].split(":")
with socket.create_server((host, int(port))) as server:
    while True:
        server.accept()
"""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL, None])
def test_the_server_ends_with_who_started_it_and_leaves_nothing(end: signal.Signals | None, tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_text(LISTENING.format(python=sys.executable))
    program.chmod(0o755)
    code = (
        "import far_server, pathlib, sys; server = far_server.Versitygw(pathlib.Path(sys.argv[1]));"
        "print(server.folder, server.url.rpartition(':')[2], flush=True); sys.stdin.read(); server.close()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(program)],
        cwd=Path(distance.__file__).parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        assert started.stdout is not None
        folder, port = started.stdout.readline().split()
        socket.create_connection(("127.0.0.1", int(port)), 10).close()
        assert Path(folder).is_dir()
        if end is None:
            started.communicate(timeout=60)
            assert started.returncode == 0
        else:
            started.send_signal(end)
    until = time.monotonic() + 20
    while Path(folder).exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not Path(folder).exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)), 10)


def test_a_server_that_does_not_start_leaves_nothing(tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_text(f"#!{sys.executable}\nraise SystemExit('it does not')")
    for mode, said in ((0o755, "it does not"), (0o644, "Permission")):
        program.chmod(mode)
        before = set(Path(far_server.parent_folder()).glob("zardine-far-*"))
        with pytest.raises(RuntimeError, match=said):
            far_server.Versitygw(program)
        assert set(Path(far_server.parent_folder()).glob("zardine-far-*")) <= before


def test_closing_ends_what_is_open(proxy) -> None:
    longer = distance.Distance(proxy.port)  # one after the other
    client = http.client.HTTPConnection("127.0.0.1", longer.port, timeout=10)
    assert asked(client, "PUT", "/a", b"x") == (200, b"x")
    longer.close()
    with contextlib.suppress(ConnectionResetError):
        assert client.sock.recv(1000) == b""
    client.close()


def test_without_its_program_the_server_is_moto_and_that_is_said(tmp_path: Path) -> None:
    pytest.importorskip("moto")
    code = (
        "import environment, far_server, pathlib, sys; environment.gateway = lambda: None;"
        "server = far_server.start(); print(server.about, server.new_bucket()); far_server.start('versitygw')"
    )
    benchmarks = Path(distance.__file__).parent
    done = subprocess.run([sys.executable, "-c", code], cwd=benchmarks, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("moto, which answers one request at a time, in Python b")
    first, second = done.stderr.splitlines()
    assert first.endswith("moto is the server")
    assert second.startswith("versitygw is not here")
    assert done.returncode == 1


@pytest.mark.parametrize(("total", "says"), [("h1:other", "another one"), ("", "no network")])
def test_a_server_of_another_sum_is_not_built(
    total: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    answer = f"""echo '{{"Sum": "{total}", "Dir": "."}}'""" if total else "echo no network >&2; exit 1"
    go.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{answer}\n')
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert says in environment._build_gateway(tmp_path)
    assert environment.gateway(tmp_path) is None
    (asked,) = (tmp_path / "asked").read_text().splitlines()
    assert asked.startswith("mod download -json github.com/versity/versitygw@")


def test_what_does_not_come_in_time_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\nexec sleep 60\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(environment, "_FETCHING", 0)
    assert "timed out" in environment._build_gateway(tmp_path)
