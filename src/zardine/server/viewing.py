"""``zardine.view``: a server of this process, and the page that shows what it serves, in a browser or a notebook."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from html import escape
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from zardine.server.entrance import Entrance
from zardine.server.options import Options, origins
from zardine.server.running import Running, Server, start

if TYPE_CHECKING:
    from zardine.server.served import NodeLike

_HEIGHT: Final = 700
"""Pixels of the frame in a notebook."""
_IN_THE_TERMINAL: Final = {"www-browser", "links", "links2", "elinks", "lynx", "w3m"}
"""Browsers of text, which would take the terminal, and cannot show the page."""
_NEED_A_DISPLAY: Final = {
    *("xdg-open", "x-www-browser", "sensible-browser", "gio", "gnome-open", "gvfs-open", "exo-open"),
    *("firefox", "chromium", "chromium-browser", "google-chrome", "chrome", "opera", "epiphany", "konqueror"),
}
"""Browsers, and programs that look for one themselves: without a display these take one of text."""


class View(Running):
    """A page that shows arrays and groups. In a notebook it is a frame; ``url`` is its address, ``stop()`` ends it.

    It is a context manager, too: the end of a ``with`` block ends its server.
    """

    def __init__(self, server: Server, height: int) -> None:
        self.server, self.height = server, height
        self.no_browser: str | None = None
        """Why no browser was opened, in words; ``None`` where one was, or none was asked for."""

    @property
    def url(self) -> str:
        """The address of the page, with its token: who has it can read."""
        return f"{self.server.url}view/"

    def stop(self) -> None:
        """End the server."""
        self.server.stop()

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
    it has one that shows more than text (``no_browser`` of the result says why it has none): in a session without a
    display only what ``BROWSER`` names is, which may be a helper of an editor.

    Raises as :func:`zardine.serve`.
    """
    entrance = Entrance()
    options = Options(cors=origins(cors), page=True, entrance=entrance)
    server = start(nodes, options, port=port, host=host, token=token, storage_options=storage_options)
    shown = View(server, height)
    if browser:
        # other users of the machine can read the command line of the browser
        shown.no_browser = _open_browser(shown.url if server.token is None else server.address + entrance.new_path())
    return shown


def _open_browser(url: str) -> str | None:
    """Open the browser of this machine, and do not wait for it; return why none is opened, or ``None``."""
    import webbrowser

    try:
        found = webbrowser.get()
    except webbrowser.Error:
        return "this session has no display" if not _has_display() else "there is none on this machine"
    name = os.path.basename(getattr(found, "name", ""))
    if name in _IN_THE_TERMINAL:
        return "this session has none but one of text, which cannot show the page"
    if not _has_display() and (name in _NEED_A_DISPLAY or isinstance(found, webbrowser.UnixBrowser)):
        return "this session has no display"
    Thread(target=found.open, args=(url,), name="zardine.view", daemon=True).start()
    return None


def _has_display() -> bool:
    return sys.platform in ("win32", "darwin") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))


__all__ = ["View", "view"]
