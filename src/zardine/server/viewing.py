"""``zardine.view``: a server of this process, and the page that shows what it serves, in a browser or a notebook."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from zardine.server.options import Options, origins
from zardine.server.running import Server, start

if TYPE_CHECKING:
    from zardine.server.served import NodeLike

_HEIGHT: Final = 700
"""Pixels of the frame in a notebook."""
_IN_THE_TERMINAL: Final = {"www-browser", "links", "links2", "elinks", "lynx", "w3m"}
"""Browsers of text, which would take the terminal, and cannot show the page."""


class View:
    """A page that shows arrays and groups. In a notebook it is a frame; ``url`` is its address, ``stop()`` ends it.

    It is a context manager, too: the end of a ``with`` block ends its server.
    """

    def __init__(self, server: Server, height: int) -> None:
        self.server, self.height = server, height

    @property
    def url(self) -> str:
        """The address of the page, with its token: who has it can read."""
        return f"{self.server.url}view/"

    def stop(self) -> None:
        """End the server."""
        self.server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<zardine view at {self.url}{'' if self.server.is_running else ', stopped'}>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{escape(self.url)}" title="zardine" width="100%" height="{self.height}" '
            f'style="border:1px solid #999" allow="clipboard-write"></iframe>'
        )


def view(
    *nodes: NodeLike | Mapping[str, NodeLike],
    port: int = 0,
    host: str = "127.0.0.1",
    token: str | bool = True,
    height: int = _HEIGHT,
    browser: bool = False,
    cors: Iterable[str] = (),
    storage_options: Mapping[str, Any] | None = None,
) -> View:
    """Show arrays and groups in a page of a server of this process, until ``stop()``.

    ``nodes``, ``port``, ``host``, ``token`` and ``cors`` are those of :func:`zardine.serve`; nothing is ever written.
    In a notebook the result is a frame of ``height`` pixels. With ``browser`` the browser of this machine is opened, if
    it has one that shows more than text: in a session without a display it has none.

    Raises as :func:`zardine.serve`.
    """
    options = Options(cors=origins(cors), page=True)
    server = start(nodes, options, port=port, host=host, token=token, storage_options=storage_options)
    shown = View(server, height)
    if browser:
        _open_browser(shown.url)
    return shown


def _open_browser(url: str) -> None:
    import webbrowser

    try:
        found = webbrowser.get()
    except webbrowser.Error:
        return
    if os.path.basename(getattr(found, "name", "")) not in _IN_THE_TERMINAL:
        found.open(url)


__all__ = ["View", "view"]
