"""The routes of the server, as an ASGI application."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from urllib.parse import quote, unquote_to_bytes

from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from zardine.errors import InvalidKeyError, UnsupportedError, ZardineError
from zardine.server.access import Access, App
from zardine.server.data import data, not_found
from zardine.server.options import Options
from zardine.server.plain_v3 import plain_v3
from zardine.server.precomputed import Precomputed
from zardine.server.served import NodeLike, Served
from zardine.server.threads import in_thread
from zardine.server.viewer.endpoints import view_routes
from zardine.shown_text import shown as shown_text

_ADDRESS = "this is the address of a store for programs that read Zarr: keys are listed with --list only"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"


def named(nodes: Iterable[NodeLike | Mapping[str, NodeLike]]) -> list[tuple[str | None, NodeLike]]:
    """Return nodes with their names, where they have been given some."""
    pairs: list[tuple[str | None, NodeLike]] = []
    for node in nodes:
        if isinstance(node, Mapping):
            pairs += node.items()
        else:
            pairs.append((None, node))
    return pairs


def guarded(served: Mapping[str, Served], options: Options) -> App:
    """Return the application that serves ``served``, behind what guards it."""

    shown = options.page or options.listing

    async def front(request: Request) -> Response:
        return HTMLResponse(_front(served, shown), headers={"content-security-policy": _POLICY})

    async def nodes(request: Request) -> Response:
        facts = [
            {"name": each.name, "data": f"data/{quote(each.name)}/", "v3": f"v3/{quote(each.name)}/"}
            for each in served.values()
        ]
        return JSONResponse({"nodes": facts})

    async def stored(request: Request) -> Response:
        found = served.get(request.path_params["name"])
        key = request.path_params["key"]
        if found is None:
            return not_found("nothing of this name is served")
        if key == "" or key.endswith("/"):
            return await _listing(found, key) if options.listing else not_found(_ADDRESS)
        return await data(request, found, key) if _is_text(request) else _not_text()

    async def made(request: Request) -> Response:
        found = served.get(request.path_params["name"])
        if found is None:
            return not_found("nothing of this name is served")
        key = request.path_params["key"]
        if not _is_text(request):
            return _not_text()
        return await plain_v3(request, found, key, options.gzip) if key else not_found(_ADDRESS)

    for_neuroglancer = Precomputed()

    async def precomputed(request: Request) -> Response:
        found = served.get(request.path_params["name"])
        if found is None:
            return not_found("nothing of this name is served")
        return await for_neuroglancer.answer(request, found, request.path_params["key"])

    routes = [
        Route("/", front),
        Route("/nodes.json", nodes),
        Route("/data/{name}/{key:key}", stored),
        Route("/v3/{name}/{key:key}", made),
        Route("/precomputed/{name}/{key:key}", precomputed),
        *(view_routes(served, options.cors) if shown else ()),
    ]
    inner = Starlette(routes=routes, exception_handlers={ZardineError: _refuse, MemoryError: _refuse, OSError: _refuse})
    return Access(inner, token=options.token, hosts=options.hosts, origins=options.cors, entrance=options.entrance)


class _KeyConvertor(PathConvertor):
    """A key may have line breaks in it, which a dot does not match."""

    regex = "(?s:.*)"


register_url_convertor("key", _KeyConvertor())


def _is_text(request: Request) -> bool:
    """Return whether the path is UTF-8. Servers decode it with U+FFFD in place of other bytes."""
    raw = request.scope.get("raw_path")
    if raw is None or "\ufffd" not in request.url.path:
        return True
    try:
        unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return False
    return True


def _not_text() -> Response:
    return Response("the path is not UTF-8, as keys are\n", 400, media_type="text/plain")


async def _refuse(request: Request, error: Exception) -> Response:
    """Answer that something stored cannot be read: never "not found", which clients take for fill values."""
    if isinstance(error, InvalidKeyError):
        return not_found(str(error))
    status = 501 if isinstance(error, UnsupportedError) else 500
    text = shown_text(f"{type(error).__name__}: {error}")
    return Response(f"{text}\n", status, media_type="text/plain")


async def _listing(served: Served, prefix: str) -> Response:
    names = await in_thread(lambda: list(served.listed(prefix)))
    if not names:
        return not_found("nothing is stored there")
    lines = "\n".join(f'<li><a href="{escape(quote(name))}">{escape(name)}</a></li>' for name in names)
    return _page(f"{served.name}/{prefix}", f"<ul>\n{lines}\n</ul>")


def _front(served: Mapping[str, Served], shown: bool) -> str:
    lines = "\n".join(
        f"<dt>{escape(name)}</dt><dd>as it is stored: <code>data/{escape(quote(name))}/</code>; as plain Zarr v3: "
        f"<code>v3/{escape(quote(name))}/</code></dd>"
        for name in served
    )
    look = ' <a href="view/">Look at it</a>.' if shown else ""
    return _text("zardine", f"<p>Zarr, read-only.{look}</p>\n<dl>\n{lines}\n</dl>")


def _page(title: str, body: str) -> Response:
    return HTMLResponse(_text(title, body), headers={"content-security-policy": _POLICY})


def _text(title: str, body: str) -> str:
    style = (
        "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}dd{margin:0 0 1rem}"
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">\n'
        f"<style>{style}</style></head>\n<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )
