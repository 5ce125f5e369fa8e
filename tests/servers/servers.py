"""The servers that tests of stores talk to: started when first wanted, one of each for the process.

Each has ``url``, and ``log()``: the requests since the last call, as the server itself wrote them down.
Where a server is not installed the test is skipped; in continuous integration (``CI=true``) it fails.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import hashlib
import hmac
import importlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from email.utils import formatdate
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
AZURITE = HERE.parents[1] / ".venv" / "azurite" / "node_modules" / ".bin" / "azurite-blob"


def lacking(what: str) -> None:
    """Skip the test for want of a server; fail where everything is to be installed."""
    if os.environ.get("CI", "") not in ("", "0", "false"):
        pytest.fail(f"{what} is not installed, and in continuous integration it must be: see 'make servers'")
    pytest.skip(f"{what} is not installed: 'make servers' does that", allow_module_level=True)


def package(module: str):
    """An optional package that tests need; as :func:`lacking` where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return lacking(f"the package {module.partition('.')[0]} (of the dependency group 'test')")


class Server:
    """A process, its log file, and where it listens."""

    def __init__(self, process: subprocess.Popen, log: Path, url: str) -> None:
        self.process, self.url, self._log, self._read = process, url, log, 0

    def log(self) -> list[str]:
        time.sleep(0.02)  # a server may write its line after the client has its answer
        lines = self._log.read_text(errors="replace").splitlines()
        new, self._read = lines[self._read :], len(lines)
        return new


def _directory() -> Path:
    path = Path(tempfile.mkdtemp(prefix="zardine-servers-"))
    atexit.register(shutil.rmtree, path, True)
    return path


def _start(command: list[str], **options) -> subprocess.Popen:
    process = subprocess.Popen(command, **options)

    def stop(owner: int = os.getpid()) -> None:
        if os.getpid() == owner:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            if process.stdout is not None:
                process.stdout.close()

    atexit.register(stop)
    return process


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(port: int, process: subprocess.Popen) -> None:
    for _ in range(400):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        assert process.poll() is None, "the server ended at once"
        time.sleep(0.05)
    raise AssertionError("the server does not listen")


@cache
def s3(number: int = 0) -> Server:
    """moto's S3; another ``number`` is another server."""
    package("moto.server")
    log = _directory() / "log"
    process = _start([sys.executable, str(HERE / "s3_server.py"), str(log)], stdout=subprocess.PIPE, text=True)
    port = int(process.stdout.readline())
    return Server(process, log, f"http://127.0.0.1:{port}")


def s3_options(url: str | None = None, **more) -> dict:
    return {"endpoint_url": url or s3().url, "key": "test", "secret": "test", "region": "us-east-1", **more}


def new_bucket(server: Server | None = None, **headers: str) -> str:
    """A new bucket of :func:`s3`, made with these headers (``x_amz_acl``)."""
    server = server or s3()
    name = f"b{uuid.uuid4().hex[:20]}"
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    urllib.request.urlopen(urllib.request.Request(f"{server.url}/{name}", method="PUT", headers=named)).read()
    server.log()
    return name


AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # Azurite's own


@cache
def azure() -> Server:
    """Azurite's blob service."""
    program = os.environ.get("AZURITE") or (str(AZURITE) if AZURITE.exists() else shutil.which("azurite-blob"))
    if not program:
        lacking("Azurite (npm)")
    directory, port = _directory(), free_port()
    log = directory / "access"
    process = _start(
        [program, "--blobPort", str(port), "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"],
        stdout=log.open("w"),
        stderr=subprocess.STDOUT,
        cwd=directory,
    )
    _wait_for(port, process)
    return Server(process, log, f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}")


def azure_options(url: str | None = None, **more) -> dict:
    return {"account_name": AZURE_ACCOUNT, "account_key": AZURE_KEY, "endpoint": url or azure().url, **more}


def zarrita() -> tuple[str, Path]:
    """The program node, and the folder where zarrita.js is installed."""
    folder, node = AZURITE.parents[3] / "zarrita", shutil.which("node")
    if "ZARRITA" in os.environ:
        folder = Path(os.environ["ZARRITA"])
    if node is None or not (folder / "node_modules" / "zarrita").is_dir():
        lacking("zarrita.js (npm)")
    return str(node), folder


def azure_request(method: str, path: str, query: str, **headers: str) -> None:
    """Ask :func:`azure` for what stores do not; the ``query`` is one parameter, ``name=value``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named |= {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    canonical = "".join(f"{each}:{named[each]}\n" for each in sorted(named))
    resource = f"/{AZURE_ACCOUNT}/{AZURE_ACCOUNT}/{path}\n{query.replace('=', ':')}"
    text = method + "\n" * 12 + canonical + resource
    signature = base64.b64encode(hmac.digest(base64.b64decode(AZURE_KEY), text.encode(), hashlib.sha256)).decode()
    named |= {"Authorization": f"SharedKey {AZURE_ACCOUNT}:{signature}", "Content-Length": "0"}
    url = f"{azure().url}/{path}?{query}"
    urllib.request.urlopen(urllib.request.Request(url, method=method, headers=named)).read()


def new_container() -> str:
    """A new container of :func:`azure`."""
    name = f"c{uuid.uuid4().hex[:20]}"
    azure_request("PUT", name, "restype=container")
    azure().log()
    return name


_NGINX = """
daemon off;
worker_processes 1;
pid {directory}/pid;
error_log {directory}/error;
events {{ worker_connections 512; }}
http {{
  log_format short '$request_method $request_uri $http_range $status $body_bytes_sent';
  access_log {directory}/access short;
  client_body_temp_path {directory}/t1;
  proxy_temp_path {directory}/t2;
  fastcgi_temp_path {directory}/t3;
  uwsgi_temp_path {directory}/t4;
  scgi_temp_path {directory}/t5;
  default_type application/octet-stream;
  keepalive_requests 100000;
  server {{
    listen 127.0.0.1:{port};
    root {root};
    location /no-ranges/ {{ max_ranges 0; alias {root}/; }}
    location /nothing/ {{ max_ranges 0; etag off; add_header Last-Modified ""; alias {root}/; }}
    location /no-head/ {{ if ($request_method = HEAD) {{ return 405; }} alias {root}/; }}
    location /no-head-no-ranges/ {{ max_ranges 0; if ($request_method = HEAD) {{ return 405; }} alias {root}/; }}
    location /no-length/ {{ ssi on; ssi_types *; alias {root}/; }}
    location /no-length-but-etag/ {{ ssi on; ssi_types *; ssi_last_modified on; alias {root}/; }}
    location /private/ {{ auth_basic "private"; auth_basic_user_file {directory}/users; alias {root}/; }}
    location /away/ {{ rewrite ^/away/(.*)$ http://localhost:{port}/$1 redirect; }}
    location /page/ {{ default_type text/html; return 200 "<!DOCTYPE html><html><body>log in</body></html>"; }}
    location /gzip/ {{ gzip_static always; alias {root}/; }}
  }}
}}
"""


class Nginx(Server):
    """nginx serving :attr:`root`, and below some paths (see ``_NGINX``) the same, as servers do that know less.

    Below ``/private/`` it is for the user ``me`` with the password ``S3/cret@``.
    """

    root: Path


@cache
def nginx() -> Nginx:
    """nginx over a new directory."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        lacking("nginx (Debian's nginx-light)")
    directory, port = _directory(), free_port()
    root = directory / "root"
    root.mkdir()
    directory.chmod(0o755)
    (directory / "access").touch()
    (directory / "users").write_text("me:{PLAIN}S3/cret@\n")
    text = _NGINX.format(directory=directory, root=root, port=port)
    (directory / "conf").write_text(("user root;\n" if os.getuid() == 0 else "") + text)
    process = _start([program, "-c", str(directory / "conf"), "-p", str(directory)], stderr=subprocess.DEVNULL)
    _wait_for(port, process)
    server = Nginx(process, directory / "access", f"http://127.0.0.1:{port}")
    server.root = root
    return server


def chromium() -> str:
    """The program Chromium."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        lacking("Chromium (Debian's chromium)")
    return program


def axe() -> Path:
    """The script of axe-core, which finds faults of accessibility in a page."""
    script = Path(os.environ.get("AXE") or AZURITE.parents[3] / "axe") / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        lacking("axe-core (npm)")
    return script


def neuroglancer() -> Path:
    """The folder with the files of neuroglancer's page."""
    folder = Path(os.environ.get("NEUROGLANCER") or AZURITE.parents[3] / "neuroglancer") / "neuroglancer/static/client"
    if not (folder / "index.html").is_file():
        lacking("neuroglancer (its Python package has its page)")
    return folder
