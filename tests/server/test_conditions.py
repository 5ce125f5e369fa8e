"""Ranges and conditions of HTTP: a row for each sentence of RFC 9110 that matters."""

from __future__ import annotations

import pytest

from zardine.server.conditions import answer

TAG = '"abc"'

ROWS = [
    # what is asked: status, first and last byte (exclusive), Content-Range
    ({}, 200, 0, 10, None),
    ({"range": "bytes=0-0"}, 206, 0, 1, "bytes 0-0/10"),
    ({"range": "bytes=2-5"}, 206, 2, 6, "bytes 2-5/10"),
    ({"range": "bytes=2-"}, 206, 2, 10, "bytes 2-9/10"),
    ({"range": "bytes=9-100"}, 206, 9, 10, "bytes 9-9/10"),
    ({"range": "bytes=-3"}, 206, 7, 10, "bytes 7-9/10"),
    ({"range": "bytes=-99"}, 206, 0, 10, "bytes 0-9/10"),
    ({"range": "BYTES=1-1"}, 206, 1, 2, "bytes 1-1/10"),
    ({"range": "bytes= 1-1 "}, 206, 1, 2, "bytes 1-1/10"),
    ({"range": "bytes=10-"}, 416, 0, 0, "bytes */10"),
    ({"range": "bytes=10-12"}, 416, 0, 0, "bytes */10"),
    ({"range": "bytes=-0"}, 416, 0, 0, "bytes */10"),
    ({"range": "bytes=" + "9" * 5000 + "-"}, 416, 0, 0, "bytes */10"),
    ({"range": "bytes=0-" + "9" * 5000}, 206, 0, 10, "bytes 0-9/10"),
    # no range that is understood: the whole
    ({"range": "bytes=5-2"}, 200, 0, 10, None),
    ({"range": "bytes=0-1,3-4"}, 200, 0, 10, None),
    ({"range": "lines=0-1"}, 200, 0, 10, None),
    ({"range": "bytes=a-b"}, 200, 0, 10, None),
    ({"range": "bytes=-"}, 200, 0, 10, None),
    ({"range": "bytes=٣-٤"}, 200, 0, 10, None),
    ({"range": ""}, 200, 0, 10, None),
    # conditions
    ({"range": "bytes=0-1", "if-range": TAG}, 206, 0, 2, "bytes 0-1/10"),
    ({"range": "bytes=0-1", "if-range": '"other"'}, 200, 0, 10, None),
    ({"range": "bytes=0-1", "if-range": f"W/{TAG}"}, 200, 0, 10, None),
    ({"range": "bytes=0-1", "if-range": "Wed, 21 Oct 2026 07:28:00 GMT"}, 200, 0, 10, None),
    ({"if-none-match": TAG}, 304, 0, 0, None),
    ({"if-none-match": f'"x", W/{TAG}'}, 304, 0, 0, None),
    ({"if-none-match": "*"}, 304, 0, 0, None),
    ({"if-none-match": '"x"'}, 200, 0, 10, None),
    ({"if-none-match": TAG, "range": "bytes=0-1"}, 304, 0, 0, None),
    ({"if-match": '"x"'}, 412, 0, 0, None),
    ({"if-match": TAG}, 200, 0, 10, None),
    ({"if-match": f"W/{TAG}"}, 412, 0, 0, None),
    ({"if-match": "*", "range": "bytes=1-1"}, 206, 1, 2, "bytes 1-1/10"),
]


@pytest.mark.parametrize(("headers", "status", "start", "stop", "about"), ROWS)
def test_get(headers: dict[str, str], status: int, start: int, stop: int, about: str | None) -> None:
    found = answer("GET", headers, 10, TAG)
    assert (found.status, found.start, found.stop) == (status, start, stop)
    assert found.headers.get("content-range") == about
    if status in (200, 206):
        assert found.headers["content-length"] == str(stop - start)


@pytest.mark.parametrize("value", ["bytes=0-1", "bytes=99-"])
def test_head_ignores_ranges(value: str) -> None:
    found = answer("HEAD", {"range": value}, 10, TAG)
    assert (found.status, found.headers["content-length"]) == (200, "10")


def test_a_value_without_bytes() -> None:
    assert answer("GET", {"range": "bytes=0-"}, 0, TAG).status == 416
    assert answer("GET", {"range": "bytes=-5"}, 0, TAG).status == 200


def test_without_a_validator() -> None:
    assert answer("GET", {"if-none-match": TAG}, 10, None).status == 200
    assert answer("GET", {"if-match": TAG}, 10, None).status == 412
    assert answer("GET", {"range": "bytes=0-1", "if-range": TAG}, 10, None).status == 200
