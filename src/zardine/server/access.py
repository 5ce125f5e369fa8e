"""Whom the server lets in: a token in the path, names of hosts, origins of pages, methods (an ASGI wrapper)."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from typing import Any, Final, TypeAlias

from zardine.server.entrance import PREFIX, Entrance

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
"""Names of this machine that no other machine can be reached by."""

METHODS: Final = "GET, HEAD, OPTIONS"
_EXPOSED: Final = "Content-Range, ETag, Content-Length, Accept-Ranges"
_ASKED: Final = "Range, If-Range, If-Match, If-None-Match, Cache-Control"

_POLICY: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),  # the token is in the URL
    (b"cache-control", b"no-cache"),
)


class Access:
    """Let through to ``app`` what may come in.

    - ``token``: first part of every path; other paths are "not found". ``None``: none is needed.
    - ``hosts``: what the header ``Host`` may name, port aside, so that a foreign name that was made to point here
      (DNS rebinding) leads nowhere. ``None``: any.
    - ``origins``: pages that may ask from elsewhere, as browsers name them (``https://example.org``), or ``"*"``.
    - ``entrance``: accepts codes in place of the token, and leads to the page of ``zardine view``.
    """

    def __init__(
        self,
        app: App,
        *,
        token: str | None = None,
        hosts: Iterable[str] | None = None,
        origins: Collection[str] = (),
        entrance: Entrance | None = None,
    ) -> None:
        for origin in origins:
            scheme, found, host = origin.partition("://")
            if origin != "*" and not (
                scheme in ("http", "https") and found and host.strip("/") and "/" not in host[:-1]
            ):
                raise ValueError(
                    f"an origin is '*', or a scheme and a host such as https://example.org, not {origin!r}"
                )
        self._app = app
        self._token = None if token is None else token.encode()
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._entrance = entrance
        self._origins = frozenset(origin.rstrip("/").lower() if origin != "*" else origin for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        origin, host = headers.get("origin"), headers.get("host", "")
        allowed = origin is not None and ("*" in self._origins or origin.lower() in self._origins)
        more = list(_POLICY)
        if allowed:
            shown = "*" if "*" in self._origins else str(origin)
            more.append((b"access-control-allow-origin", shown.encode("latin-1")))
            more.append((b"access-control-expose-headers", _EXPOSED.encode()))
        elif not self._origins:
            more.append((b"cross-origin-resource-policy", b"same-origin"))
        if self._origins and "*" not in self._origins:
            more.append((b"vary", b"Origin"))

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await send(message)

        if self._hosts is not None and _name_of_host(host) not in self._hosts:
            await respond(answer, 421, f"this server is not called {_name_of_host(host) or 'nothing'!r}")
        elif self._token is not None and self._has_code(scope):
            page = f"../{self._token.decode()}/view/"
            await respond(answer, 303, "opened", {"location": page, "cache-control": "no-store"})
        elif not self._has_token(scope):
            await respond(
                answer,
                404,
                "not found: the address lacks its token, or has another; use all of the address that zardine printed",
            )
        elif origin is not None and not allowed and not _is_own(origin, host):
            await respond(answer, 403, f"pages of {origin} may not read this: --cors {origin} lets them")
        elif scope["method"] == "OPTIONS":
            await _preflight(answer, headers, allowed)
        elif scope["method"] not in ("GET", "HEAD"):
            await respond(answer, 405, "this server only reads", {"allow": METHODS})
        else:
            await self._app(scope, receive, answer)

    def _has_code(self, scope: Scope) -> bool:
        """Return whether the path is that of a code, which is not valid any more then."""
        _, path = _root_and_path(scope)
        if self._entrance is None or scope["method"] != "GET" or not path.startswith(PREFIX):
            return False
        return self._entrance.accepts(path, scope.get("client"), scope.get("server"))

    def _has_token(self, scope: Scope) -> bool:
        """Return whether the path begins with the token, which becomes part of the path's root."""
        if self._token is None:
            return True
        root, path = _root_and_path(scope)
        first = path.lstrip("/").partition("/")[0]
        if not secrets.compare_digest(first.encode("utf-8", "surrogateescape"), self._token):
            return False
        scope["root_path"] = f"{root}/{first}"
        scope["path"] = f"{root}{path}"
        return True


def _root_and_path(scope: Scope) -> tuple[str, str]:
    root = scope.get("root_path", "")
    return root, scope["path"][len(root) :] if scope["path"].startswith(root) else scope["path"]


async def respond(send: Send, status: int, text: str, headers: dict[str, str] | None = None) -> None:
    """Send a short text."""
    body = text.encode("utf-8", "replace") + b"\n"
    about = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(body)), **(headers or {})}
    start = {"type": "http.response.start", "status": status}
    await send({**start, "headers": [(name.encode(), value.encode("latin-1")) for name, value in about.items()]})
    await send({"type": "http.response.body", "body": body})


async def _preflight(send: Send, headers: dict[str, str], allowed: bool) -> None:
    about = {"allow": METHODS, "content-length": "0"}
    if allowed:
        about |= {
            "access-control-allow-methods": METHODS,
            "access-control-allow-headers": _ASKED,
            "access-control-max-age": "600",
        }
        if headers.get("access-control-request-private-network") == "true":
            about["access-control-allow-private-network"] = "true"
    start = {"type": "http.response.start", "status": 204}
    await send({**start, "headers": [(name.encode(), value.encode("latin-1")) for name, value in about.items()]})
    await send({"type": "http.response.body", "body": b""})


def _name_of_host(host: str) -> str:
    """Return the header ``Host`` without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _is_own(origin: str, host: str) -> bool:
    """Return whether a page of this server asks."""
    return origin.lower().partition("://")[2] == host.strip().lower() != ""
