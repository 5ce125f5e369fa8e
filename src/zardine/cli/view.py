"""``zardine view``."""

from __future__ import annotations

from typing import Any

import click

from zardine.cli.base import Command
from zardine.cli.errors import FINE, arguments
from zardine.cli.options import StorePathType, json_option, quiet_option, storage_option
from zardine.cli.output import say
from zardine.cli.serve import cors_option, host_option, must_exist, no_token_option, port_option, print_way_here


@click.command(cls=Command)
@click.argument("paths", nargs=-1, required=True, type=StorePathType())
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@port_option()
@host_option()
@no_token_option()
@cors_option()
@storage_option()
@quiet_option()
@json_option()
def view(
    paths: tuple[str, ...],
    no_browser: bool,
    port: int,
    host: str,
    no_token: bool,
    cors: tuple[str, ...],
    storage_options: dict[str, Any],
    quiet: bool,
    as_json: bool,
) -> int:
    """Show what is at PATHS in a browser, until Ctrl-C.

    The page shows the hierarchy, pictures and exact values of arrays of any size, and where they are stored. Nothing is
    written. A random token is part of its address: who has the address can read.
    """
    import zardine
    from zardine.cli.signals import interruptible

    must_exist(paths, storage_options)
    with arguments():
        shown = zardine.view(
            *paths,
            port=port,
            host=host,
            token=not no_token,
            cors=cors,
            browser=not no_browser,
            storage_options=storage_options or None,
        )
    with shown, interruptible():
        try:
            if as_json:
                from zardine.cli.output import print_json

                print_json({"url": shown.url, "port": shown.server.port, "token": shown.server.token})
            elif not quiet:
                say(f"zardine {zardine.__version__} shows {', '.join(shown.server.names)}: {shown.url}")
                if shown.no_browser is not None:
                    say(f"No browser is opened, since {shown.no_browser}: open the address in one.")
                print_way_here(shown.server)
            shown.server.wait()
        except KeyboardInterrupt:
            pass
    return FINE
