"""Pieces of bytes of one buffer are what a list of them is."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from zardine.vectors.format.links import encode_link_cells, encode_links
from zardine.vectors.format.pieces import Pieces


def test_they_are_a_sequence_of_bytes() -> None:
    texts = [b"ab", b"", b"c", b"defg"]
    pieces = Pieces.of(texts)
    assert pieces == texts
    assert pieces != texts[1:]
    assert list(pieces) == texts
    assert (len(pieces), pieces[3], pieces[-1], pieces[1:3]) == (4, b"defg", b"defg", [b"", b"c"])
    assert pieces.filled.tolist() == [True, False, True, True]
    assert pieces.take(pieces.filled) == [b"ab", b"c", b"defg"]
    assert pieces.take(np.array([3, 0])) == [b"defg", b"ab"]
    assert Pieces.of(pieces) is pieces
    assert Pieces.between(memoryview(b"abcdef"), np.array([0, 2, 2, 6])) == [b"ab", b"", b"cdef"]
    assert Pieces.of([]) == []


def test_cells_of_links_are_those_that_are_encoded_one_by_one() -> None:
    rows = np.arange(14).reshape(7, 2).astype("<i8")
    for starts in ([0, 1, 3, 7], [0, 7]):
        for grouped in (True, False):
            wanted = [encode_links(rows[a:b], grouped=grouped) for a, b in pairwise(starts)]
            assert encode_link_cells(rows, np.array(starts), grouped=grouped) == wanted
    for grouped in (True, False):
        assert encode_link_cells(rows[:0], np.array([0]), grouped=grouped) == []
