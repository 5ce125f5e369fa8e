"""What a request asks of one value: ranges and conditions of HTTP (RFC 9110, sections 13 and 14), as plain values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from zardine.stores.byte_ranges import resolve_range

_RANGE = re.compile(r"\s*bytes\s*=\s*(?:([0-9]+)\s*-\s*([0-9]*)|-\s*([0-9]+))\s*", re.ASCII | re.IGNORECASE)
_MOST_DIGITS = 18
"""Digits of a position that is not beyond every value."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The status of an answer, its headers about the part, and the bytes ``start`` to ``stop`` (exclusive) to send."""

    status: int
    headers: Mapping[str, str]
    start: int = 0
    stop: int = 0


def answer(method: str, headers: Mapping[str, str], size: int, etag: str | None) -> Answer:
    """Return what to answer to GET or HEAD of a value of ``size`` bytes. Names in ``headers`` are in lower case.

    A single range of bytes is honoured; other units, several ranges and what is no range get the whole value. HEAD
    ignores ranges. ``etag`` is a strong validator in its quotes, or ``None`` where there is none.
    """
    whole = Answer(200, {"accept-ranges": "bytes", "content-length": str(size)}, 0, size)
    if "if-match" in headers and not _matches(headers["if-match"], etag, weak=False):
        return Answer(412, {})
    if "if-none-match" in headers and _matches(headers["if-none-match"], etag, weak=True):
        return Answer(304, {"accept-ranges": "bytes"})
    if method == "HEAD" or "range" not in headers:
        return whole
    if "if-range" in headers and (etag is None or headers["if-range"].strip() != etag):
        return whole  # also for a date, since no dates are given
    found = _RANGE.fullmatch(headers["range"])
    if found is None:
        return whole
    first, last, suffix = found.groups()
    if suffix is not None:
        if _number(suffix) == 0:
            return _beyond(size)
        if size == 0:
            return whole
        start, stop = resolve_range((-_number(suffix), None), size)
    else:
        if last and _number(last) < _number(first):
            return whole
        if _number(first) >= size:
            return _beyond(size)
        start, stop = _number(first), min(size, _number(last) + 1) if last else size
    about = {
        "accept-ranges": "bytes",
        "content-length": str(stop - start),
        "content-range": f"bytes {start}-{stop - 1}/{size}",
    }
    return Answer(206, about, start, stop)


def _beyond(size: int) -> Answer:
    return Answer(416, {"accept-ranges": "bytes", "content-range": f"bytes */{size}"})


def _number(digits: str) -> int:
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS


def _matches(listed: str, etag: str | None, *, weak: bool) -> bool:
    """Return whether a list of entity tags names ``etag``; ``*`` names every value that is there."""
    if listed.strip() == "*":
        return True
    tags = re.findall(r'(W/)?("[^"]*")', listed)
    return any(tag == etag and (weak or not prefix) for prefix, tag in tags)
