"""The S3 server of what is measured far away: versitygw where the environment has it, or else moto.

[versitygw](https://github.com/versity/versitygw) is a server of S3 in Go, whose objects are files. It takes 0.1 to 0.3
ms of a processor for a request of 10 KB, answers many at the same time, and checks signatures and conditions. moto,
which the tests use, is in Python: it takes 2 to 3 ms, and answers one request after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import environment

KEY, SECRET, REGION = "test", "test", "us-east-1"
NAMES = (environment.GATEWAY, "moto")


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add the choice of a server to the options of a program."""
    parser.add_argument("--server", choices=NAMES, help="(versitygw, where `make bench` could build it, or else moto)")


class Moto:
    """The server of the tests."""

    about = "moto, which answers one request at a time, in Python"

    def __init__(self) -> None:
        sys.path.insert(0, str(environment.ROOT / "tests"))
        from servers import servers

        self.servers = servers
        self.url = servers.s3().url

    def new_bucket(self, *, public: bool = False) -> str:
        return self.servers.new_bucket(**({"x_amz_acl": "public-read"} if public else {}))

    def close(self) -> None:
        """Leave it to the end of the process."""


def parent_folder() -> str:
    """Where folders of servers are made: in memory, where there is such a folder."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir()


class Versitygw:
    """A process of versitygw over a new folder, in memory where there is one; buckets are folders in it."""

    about = f"versitygw {environment.GATEWAY_VERSION}, in Go, with its objects in memory"

    def __init__(self, program: Path) -> None:
        self.folder = tempfile.mkdtemp(prefix="zardine-far-", dir=parent_folder())
        self.process: subprocess.Popen[bytes] | None = None
        try:
            self._begin(program)
        except BaseException:
            self.close()
            raise

    def _begin(self, program: Path) -> None:
        root = Path(self.folder) / "buckets"
        root.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [str(program), "--port", f"127.0.0.1:{port}", "--keep-alive", "--quiet"]
        command += ["--access", KEY, "--secret", SECRET, "--region", REGION]
        # a buffer of this size is made for each range that is asked for: with the usual MB that takes 1 ms
        command += ["posix", "--io-buffer-size", str(2**16), *self._attributes(root), str(root)]
        self.root = root
        with open(Path(self.folder) / "output", "w") as output:
            self.process = subprocess.Popen(
                # in a session of its own, so that a signal to all of the benchmark leaves it to clear up
                [sys.executable, __file__, self.folder, *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        for _ in range(400):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.02)
        said = (Path(self.folder) / "output").read_text()[-1000:]
        raise RuntimeError(f"versitygw does not listen: {said}")

    def _attributes(self, root: Path) -> list[str]:
        """Where ETags are kept: beside the objects if the file system has no attributes of users."""
        try:
            os.setxattr(root, "user.probe", b"")
        except (AttributeError, OSError):
            beside = Path(self.folder) / "attributes"
            beside.mkdir()
            return ["--sidecar", str(beside)]
        os.removexattr(root, "user.probe")
        return []

    def new_bucket(self, *, public: bool = False) -> str:
        name = f"b{uuid.uuid4().hex[:20]}"
        (self.root / name).mkdir()
        if public:
            import boto3

            keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "region_name": REGION}
            allowed = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject"}
            policy = json.dumps({"Statement": [allowed | {"Resource": f"arn:aws:s3:::{name}/*"}]})
            boto3.client("s3", endpoint_url=self.url, **keys).put_bucket_policy(Bucket=name, Policy=policy)
        return name

    def close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def start(name: str | None = None) -> Any:
    """Start the server of this name, or the best that is here: ``url``, ``about``, ``new_bucket()``, ``close()``."""
    program = environment.gateway()
    if name is None:
        name = environment.GATEWAY if program else "moto"
        if program is None:
            print("versitygw is not here ('make bench' builds it, with go): moto is the server", file=sys.stderr)
    if name == "moto":
        return Moto()
    if program is None:
        raise SystemExit("versitygw is not here: 'make bench' builds it, with go")
    return Versitygw(program)


def keep(folder: str, command: list[str]) -> int:
    """Run a server until it ends, or our input does, as it does with whoever has started this, however that ended.

    Then the ``folder`` goes, too.
    """
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def end() -> None:
        os.read(0, 1)
        server.kill()  # asked to end it waits ten seconds for connections that are open; nothing is kept of it
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)

    ending = threading.Thread(target=end, daemon=True)
    ending.start()
    code = server.wait()
    ending.join(0.5 if code >= 0 else 10)
    return code


if __name__ == "__main__":
    os._exit(keep(sys.argv[1], sys.argv[2:]) & 0xFF)
