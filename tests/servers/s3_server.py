"""The S3 server of moto as a program: ``python s3_server.py LOGFILE`` prints its port, and logs every request.

A line of the log: method, path, range, status, bytes of the answer's body, condition.
"""

from __future__ import annotations

import sys
import threading

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


def main() -> None:
    inner = DomainDispatcherApplication(create_backend_app)
    log = open(sys.argv[1], "a", buffering=1)  # noqa: SIM115 - as long as the program
    one_at_a_time = threading.Lock()  # S3 checks a condition and writes in one step; moto's threads would not

    def application(environ, start_response):
        answer = {}

        def start(status, headers, exc_info=None):
            answer["status"] = status.split()[0]
            return start_response(status, headers, exc_info)

        with one_at_a_time:
            body = b"".join(inner(environ, start))
        path = environ["PATH_INFO"] + (f"?{environ['QUERY_STRING']}" if environ["QUERY_STRING"] else "")
        method, wanted = environ["REQUEST_METHOD"], environ.get("HTTP_RANGE", "-")
        sent = 0 if method == "HEAD" else len(body)
        condition = next((name for name in ("IF_MATCH", "IF_NONE_MATCH") if f"HTTP_{name}" in environ), "-")
        log.write(f"{method} {path.replace(' ', '%20')} {wanted} {answer['status']} {sent} {condition}\n")
        return [body]

    class Handler(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_request(self, *args):
            pass

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
