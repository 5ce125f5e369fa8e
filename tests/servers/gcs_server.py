"""As much of Google Cloud Storage as conditional writes need: objects with generations. A stand-in, not the service."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


class GcsServer:
    """Objects by their paths, each with a generation; ``requests``: method, path and ``x-goog-if-generation-match``."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[int, bytes]] = {}
        self.requests: list[tuple[str, str, str | None]] = []
        self._lock = threading.Lock()
        self._generation = 1000
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def _answer(self, status, body=b"", **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), str(value))
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def _handle(self):
                path = unquote(self.path.partition("?")[0])
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                match = self.headers.get("x-goog-if-generation-match")
                with outer._lock:
                    outer.requests.append((self.command, path, match))
                    self._do(path, body, match, *outer.objects.get(path, (0, b"")))

            def _do(self, path, body, match, generation, value):
                if self.command == "PUT":
                    if match is not None and int(match) != generation:
                        self._answer(412)
                        return
                    outer._generation += 1
                    outer.objects[path] = outer._generation, body
                    self._answer(200, ETag=f'"{outer._generation}"', x_goog_generation=outer._generation)
                elif not generation:
                    self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
                elif self.command == "DELETE":
                    del outer.objects[path]
                    self._answer(204)
                else:
                    self._send(value, generation)

            def _send(self, value, generation):
                facts = {
                    "ETag": f'"{generation}"',
                    "x_goog_generation": generation,
                    "Last_Modified": "Wed, 21 Oct 2026 07:28:00 GMT",
                }
                wanted = self.headers.get("range")
                if wanted is None:
                    self._answer(200, value, **facts)
                    return
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                start = int(first) if first else max(0, len(value) - int(last))
                stop = min(len(value), int(last) + 1) if first and last else len(value)
                if start >= len(value):
                    self._answer(416)
                    return
                self._answer(206, value[start:stop], Content_Range=f"bytes {start}-{stop - 1}/{len(value)}", **facts)

            do_GET = do_HEAD = do_PUT = do_DELETE = _handle  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
