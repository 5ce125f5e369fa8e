"""Let a browser in that is started with an address on its command line, which every user of the machine can read.

The address holds a code instead of the token. The server exchanges it for the address with the token: once, within a
minute, and on Linux only for a program of its own user.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import time
from pathlib import Path
from threading import Lock
from typing import Final

PREFIX: Final = "/open/"
"""The path of a code begins so."""

_SECONDS: Final = 60.0
"""How long a code is valid: browsers may take a while to start."""


class Entrance:
    """Makes codes, and accepts each of them once."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._codes: dict[str, float] = {}
        """Valid codes, and when each ends."""

    def new_path(self) -> str:
        """Return a path with a new code."""
        code = secrets.token_urlsafe(18)
        with self._guard:
            self._codes[code] = time.monotonic() + _SECONDS
        return f"{PREFIX}{code}"

    def accepts(self, path: str, client: tuple[str, int] | None, server: tuple[str, int | None] | None) -> bool:
        """Return whether ``path`` has a valid code, which ends it, and the connection is one of this user."""
        code = path.removeprefix(PREFIX)
        with self._guard:
            if self._codes.get(code, 0.0) < time.monotonic():
                return False
            if not _is_own(client, server):
                return False  # the code stays valid for the browser
            del self._codes[code]
            return True


def _is_own(client: tuple[str, int] | None, server: tuple[str, int | None] | None) -> bool:
    """Return whether this user, or root, holds the client's end; true if the system has no list of connections."""
    tables = [each for each in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")) if each.exists()]
    if not tables:
        return True
    if client is None or server is None or server[1] is None:
        return False
    ends = [f"{_in_hex(client[0])}:{client[1]:04X}", f"{_in_hex(server[0])}:{server[1]:04X}"]
    for table in tables:
        for line in table.read_text().splitlines()[1:]:
            words = line.split()
            if words[1:3] == ends:
                return int(words[7]) in (os.getuid(), 0)
    return False


def _in_hex(host: str) -> str:
    """Return an address as Linux writes it in its list of connections: in words of four bytes."""
    host = host.removeprefix("::ffff:")
    packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    words = [packed[at : at + 4] for at in range(0, len(packed), 4)]
    return "".join(f"{int.from_bytes(each, sys.byteorder):08X}" for each in words)
