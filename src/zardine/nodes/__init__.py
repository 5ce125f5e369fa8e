"""Arrays and groups as users hold them, how they show themselves, and how they are made.

Importing any module of this package gives arrays and groups their awaitable faces, see :mod:`.asynchronous`.
"""

from zardine.nodes.asynchronous import AsyncArray, AsyncGroup

__all__ = ["AsyncArray", "AsyncGroup"]
