"""The runtime of obstore, which a forked process cannot use."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Final

from zardine.errors import StoreError


class Runtime:
    """``with RUNTIME:`` goes round every call of obstore; in a child that was forked after one it is an error.

    Without it such a child would wait for ever. A panic of obstore (no ``Exception``) becomes an error of ours.
    """

    def __init__(self) -> None:
        self._started = False
        self._lost = False

    def forked(self) -> None:
        """To be called in a forked child."""
        self._lost = self._lost or self._started

    def __enter__(self) -> None:
        if self._lost:
            raise StoreError(
                "this process was forked after an object store was used, and obstore does not work in it: start "
                "processes with multiprocessing's 'spawn' or 'forkserver', or use no object store before the fork"
            )
        self._started = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and kind.__name__ == "PanicException":
            raise StoreError(
                f"obstore broke down ({error}): are the URL and the endpoint in storage_options right?"
            ) from None


RUNTIME: Final = Runtime()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=RUNTIME.forked)


__all__ = ["RUNTIME"]
