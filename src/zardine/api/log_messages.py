"""What zarr-python has for messages that packages log; here they come from codecs and stores of other packages."""

from __future__ import annotations

import logging
from functools import cache

_LOGGER = logging.getLogger("zardine")


@cache
def _handler() -> logging.Handler:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
    _LOGGER.addHandler(handler)
    return handler


def set_log_level(level: str) -> None:
    """Show messages of the logger ``zardine`` from ``level`` on, such as ``"DEBUG"``, on standard error.

    zardine itself logs nothing: it warns, and raises errors. Raises ``ValueError`` for a level that is none.
    """
    _LOGGER.setLevel(level)
    _handler().setLevel(level)


def set_format(log_format: str) -> None:
    """Write messages of the logger ``zardine`` in this form, in the words of ``logging.Formatter``."""
    _handler().setFormatter(logging.Formatter(fmt=log_format))


__all__ = ["set_format", "set_log_level"]
