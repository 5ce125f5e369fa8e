"""A server of this process: ``zardine.serve``."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from zardine.errors import UnsupportedError
from zardine.server.options import Options, origins

if TYPE_CHECKING:
    from zardine.server.access import App
    from zardine.server.served import NodeLike

_MOST_CONNECTIONS: Final = 1024
_MOST_OF_A_HEAD: Final = 2**16
"""Bytes of the line and the headers of a request."""
_HEAD_PATIENCE: Final = 15.0
"""Seconds that a client may take to send them."""


class Running:
    """What goes on until ``stop()``, or until the end of a ``with`` block."""

    def stop(self) -> None:
        """End it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Server(Running):
    """A running server; ``stop()``, or the end of a ``with`` block, ends it."""

    def __init__(self, served: Mapping[str, object], application: App, host: str, port: int, token: str | None) -> None:
        import uvicorn

        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise OSError(error.errno, f"port {port} of {host} cannot be used: {error.strerror}") from None
        self.host, self.port, self.token = host, int(self._socket.getsockname()[1]), token
        self.names = tuple(served)
        config = uvicorn.Config(
            application,
            http=_protocol(),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            log_level="critical",
            limit_concurrency=_MOST_CONNECTIONS,
            h11_max_incomplete_event_size=_MOST_OF_A_HEAD,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=2,
            server_header=False,
            proxy_headers=False,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="zardine.serve", daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            self._thread.join(0.005)

    def _run(self) -> None:
        asyncio.run(self._server._serve([self._socket]))  # without handlers of signals: it is not the main thread

    @property
    def address(self) -> str:
        """The scheme, host and port of all addresses, without a token."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{_shown(host)}:{self.port}"

    @property
    def url(self) -> str:
        """The address of the server's page, with its token: who has it can read."""
        return f"{self.address}/" + (f"{self.token}/" if self.token else "")

    @property
    def urls(self) -> dict[str, str]:
        """The addresses of the nodes by their names, for other programs: the bytes of their stores."""
        from urllib.parse import quote

        return {name: f"{self.url}data/{quote(name)}" for name in self.names}

    @property
    def is_running(self) -> bool:
        """Whether it answers."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End the server; answers that are under way get two seconds."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def wait(self) -> None:
        """Wait until the server ends."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def __repr__(self) -> str:
        return f"<zardine server at {self.url}{'' if self.is_running else ', stopped'}>"


class Serve:
    """Serve arrays and groups over HTTP: ``zardine.serve(node)`` starts a server, ``zardine.serve.app`` makes none."""

    def __call__(
        self,
        *nodes: NodeLike | Mapping[str, NodeLike],
        port: int = 0,
        host: str = "127.0.0.1",
        token: str | bool = True,
        cors: Iterable[str] = (),
        listing: bool = False,
        gzip: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Server:
        """Serve ``nodes`` (see :meth:`app`) read-only, from a thread of this process, until ``stop()``.

        ``port=0`` takes a free one. ``token=True`` makes a random one, which becomes part of every address, so that
        other users of this machine cannot read; a text is used as it is; ``False`` needs none. ``host`` is this
        machine alone by default; another one takes a token.

        Raises ``ValueError`` for a host that others reach without a token, ``OSError`` for a port that is taken.
        """
        options = Options(cors=origins(cors), listing=listing, gzip=gzip)
        return start(nodes, options, port=port, host=host, token=token, storage_options=storage_options)

    def app(
        self,
        *nodes: NodeLike | Mapping[str, NodeLike],
        token: str | None = None,
        hosts: Iterable[str] | None = None,
        cors: Iterable[str] = (),
        listing: bool = False,
        gzip: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> App:
        """Make an ASGI application that serves ``nodes``, to be mounted in another one, which guards it.

        ``nodes`` are opened arrays and groups, or what :func:`zardine.open` takes, or mappings of names to these.
        ``token``: the first part of every path, if one is needed; ``hosts``: what the header ``Host`` may name;
        ``cors``: origins of pages that may ask from elsewhere, or ``"*"``; ``listing``: whether keys can be listed, and
        the page of :func:`zardine.view` is there, at ``view/``;
        ``gzip``: whether the chunks of the plain form are compressed.
        """
        _need_starlette()
        from zardine.server.app import guarded, named
        from zardine.server.served import find_served

        names = None if hosts is None else frozenset(hosts)
        return guarded(find_served(named(nodes), storage_options), Options(token, names, origins(cors), listing, gzip))

    def __repr__(self) -> str:
        return "<function zardine.serve>"


serve: Final = Serve()


def start(
    nodes: Iterable[NodeLike | Mapping[str, NodeLike]],
    options: Options,
    *,
    port: int,
    host: str,
    token: str | bool,
    storage_options: Mapping[str, Any] | None,
) -> Server:
    """Start a server with ``options``, but for the token and the names of the host, which follow from the others."""
    _need_starlette()
    from zardine.server.access import LOOPBACK
    from zardine.server.app import guarded, named
    from zardine.server.served import find_served

    secret = secrets.token_urlsafe(18) if token is True else token or None
    if secret is not None and not (secret.isascii() and secret.replace("-", "").replace("_", "").isalnum()):
        raise ValueError(f"a token is made of letters, digits, '-' and '_', not {secret!r}")
    is_local = host.lower() in LOOPBACK
    if not is_local and secret is None:
        raise ValueError(f"{host} can be reached by other machines: serving there takes a token")
    served = find_served(named(nodes), storage_options)
    if not served:
        raise TypeError("give at least one array, group, path or store to serve")
    # elsewhere the token keeps others out, whatever name they use
    application = guarded(served, replace(options, token=secret, hosts=LOOPBACK if is_local else None))
    return Server(served, application, "127.0.0.1" if host.lower() == "localhost" else host, port, secret)


def _shown(host: str) -> str:
    """Return the name of a host for people: who listens everywhere is reached by the machine's name."""
    return socket.gethostname() if host in ("0.0.0.0", "[::]") else host


def _need_starlette() -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(f"serving needs the package {error.name}: pip install 'zardine[serve]'") from None


def _protocol() -> type[asyncio.Protocol]:
    """Return HTTP as uvicorn speaks it, but that requests of which only a part comes are given up after a while."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Protocol(H11Protocol):
        _giving_up: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)  # type: ignore[arg-type]
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._watch()

        def connection_lost(self, error: Exception | None) -> None:
            super().connection_lost(error)
            self._unwatch()

        def _watch(self) -> None:
            """Begin to count where a request is to come, or has come in part, and nothing else ends the waiting."""
            waiting = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
            if not waiting or self.timeout_keep_alive_task is not None:
                self._unwatch()
            elif self._giving_up is None:
                self._giving_up = self.loop.call_later(_HEAD_PATIENCE, self.transport.close)

        def _unwatch(self) -> None:
            if self._giving_up is not None:
                self._giving_up.cancel()
                self._giving_up = None

    return Protocol


__all__ = ["Running", "Serve", "Server", "serve", "start"]
