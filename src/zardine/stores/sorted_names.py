"""Looking below a prefix in a sorted list of keys."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def names_below(names: Sequence[str], prefix: str) -> Sequence[str]:
    """Those of the sorted ``names`` that start with ``prefix``, which is empty or ends with a slash."""
    if not prefix:
        return names
    return names[bisect_left(names, prefix) : bisect_left(names, prefix[:-1] + "0")]  # "0" follows "/"


def directly_below(names: Sequence[str], prefix: str) -> tuple[list[str], list[str]]:
    """``(keys, prefixes)`` directly below ``prefix``, as :meth:`Store.list_dir` has them."""
    keys: list[str] = []
    prefixes: list[str] = []
    at = bisect_left(names, prefix)
    while at < len(names) and names[at].startswith(prefix):
        end = names[at].find("/", len(prefix))
        if end < 0:
            keys.append(names[at])
            at += 1
        else:
            below = names[at][: end + 1]
            prefixes.append(below)
            at = bisect_left(names, below[:-1] + "0", at)  # past all keys below it
    return keys, prefixes


__all__ = ["directly_below", "names_below"]
