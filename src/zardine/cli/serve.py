"""``zardine serve``."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Callable
from typing import Any

import click

from zardine.cli.base import Command
from zardine.cli.errors import FINE, arguments
from zardine.cli.options import StorePathType, json_option, quiet_option, storage_option
from zardine.cli.output import say
from zardine.cli.paths import missing, open_node


def port_option() -> Callable[[Any], Any]:
    """Return the option for the port to listen at."""
    return click.option(
        "-p", "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Listen there (default: any)."
    )


def host_option() -> Callable[[Any], Any]:
    """Return the option for who is listened to."""
    return click.option("--host", default="127.0.0.1", metavar="NAME", help="Listen to other machines, too: 0.0.0.0.")


def no_token_option() -> Callable[[Any], Any]:
    """Return the option to do without a token."""
    return click.option("--no-token", is_flag=True, help="Let in everyone on this machine who knows the port.")


def cors_option() -> Callable[[Any], Any]:
    """Return the option for pages of other origins that may read."""
    return click.option(
        "--cors",
        multiple=True,
        metavar="ORIGIN",
        help="Let pages of ORIGIN (https://example.org, or *) read. May be repeated.",
    )


@click.command(cls=Command)
@click.argument("paths", nargs=-1, required=True, type=StorePathType())
@port_option()
@host_option()
@no_token_option()
@cors_option()
@click.option(
    "--list", "listing", is_flag=True, help="Let clients list what is stored, and look at it, as zardine view does."
)
@click.option("--gzip", is_flag=True, help="Compress the chunks below /v3, for slow connections.")
@storage_option()
@quiet_option()
@json_option()
def serve(
    paths: tuple[str, ...],
    port: int,
    host: str,
    no_token: bool,
    cors: tuple[str, ...],
    listing: bool,
    gzip: bool,
    storage_options: dict[str, Any],
    quiet: bool,
    as_json: bool,
) -> int:
    """Serve what is at PATHS over HTTP, read-only, until Ctrl-C.

    Other programs read the bytes as they are stored below /data/NAME, and any array as plain Zarr v3, made while they
    ask, below /v3/NAME; neuroglancer reads Zarr Vectors below /precomputed/NAME. A random token is part of every
    address: who has the address can read.
    """
    import zardine
    from zardine.cli.signals import interruptible

    nodes = must_exist(paths, storage_options)
    with arguments():
        server = zardine.serve(
            *paths,
            port=port,
            host=host,
            token=not no_token,
            cors=cors,
            listing=listing,
            gzip=gzip,
            storage_options=storage_options or None,
        )
    with server, interruptible():
        try:
            if as_json:
                from zardine.cli.output import print_json

                facts: dict[str, Any] = {"url": server.url, "port": server.port, "token": server.token}
                for name, kinds in _addresses(server, nodes).items():
                    for kind, url in kinds.items():
                        facts.setdefault(kind, {})[name] = url
                print_json(facts)
            elif not quiet:
                _print(server, nodes)
            server.wait()
        except KeyboardInterrupt:
            pass
    return FINE


def must_exist(paths: tuple[str, ...], storage_options: dict[str, Any]) -> list[Any]:
    """Return the nodes at the paths, and say so where nothing is at one of them."""
    nodes = []
    for path in paths:
        with missing(path):
            nodes.append(open_node(path, storage_options=storage_options))
    return nodes


def _addresses(server: Any, nodes: list[Any]) -> dict[str, dict[str, str]]:
    """Return the addresses of each node: below /data, /v3 and, if it holds vectors, /precomputed."""
    found = {}
    for (name, url), node in zip(server.urls.items(), nodes, strict=True):
        kinds = ("data", "v3", "precomputed") if "zarr_vectors" in node.attrs else ("data", "v3")
        path = url.removeprefix(f"{server.url}data/")
        found[name] = {kind: f"{server.url}{kind}/{path}" for kind in kinds}
    return found


def _print(server: Any, nodes: list[Any]) -> None:
    import zardine

    lines = [f"zardine {zardine.__version__} serves, read-only: {server.url}"]
    for name, urls in _addresses(server, nodes).items():
        lines += [f"  {name}", f"    as it is stored   {urls['data']}", f"    as plain Zarr v3  {urls['v3']}"]
        if "precomputed" in urls:
            lines.append(f"    for neuroglancer  precomputed://{urls['precomputed']}")
    say("\n".join(lines))
    print_way_here(server)


def print_way_here(server: Any) -> None:
    """Print how another machine reaches the server, and how to end it."""
    if server.host == "127.0.0.1":
        here = f"{getpass.getuser()}@{socket.gethostname()}"
        say(f"From another machine: ssh -L {server.port}:localhost:{server.port} {here}")
    say("Ctrl-C ends it.", flush=True)
