"""Pieces of bytes of one buffer are what a list of them is."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from zardine.errors import ChunkDecodeError
from zardine.vectors.content.columns import columns_of
from zardine.vectors.content.content import Content, Objects
from zardine.vectors.content.plan import grid_of, plan_level
from zardine.vectors.content.run_content import polyline_content
from zardine.vectors.format.layouts import Layout
from zardine.vectors.format.links import encode_link_cells, encode_links, join_links
from zardine.vectors.format.pieces import Pieces, RunPieces


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


def test_cells_of_links_are_joined_as_their_rows_are() -> None:
    rows = np.arange(14).reshape(7, 2).astype("<i8")
    for grouped in (True, False):
        a, b, both = (encode_links(each, grouped=grouped) for each in (rows[:3], rows[3:], rows))
        assert join_links(a, b, 2, grouped=grouped) == both
        with pytest.raises(ChunkDecodeError, match="no rows"):
            join_links(a[:-1], b, 2, grouped=grouped)
    two = np.array([2, 0, 16], "<i8").tobytes() + rows[:3].tobytes()  # the second one begins at byte 16
    assert join_links(two, encode_links(rows[3:], grouped=True), 2, grouped=True) == encode_links(rows, grouped=True)


def test_pieces_of_several_runs_are_those_that_are_put_together() -> None:
    data = memoryview(bytes(range(100)))
    starts, lengths = np.array([50, 3, 4, 99, 0]), np.array([2, 1, 5, 1, 3])
    pieces = RunPieces(data, starts, lengths, np.array([0, 1, 4, 5]))
    texts = [bytes(data[50:52]), bytes([3, 4, 5, 6, 7, 8, 99]), bytes([0, 1, 2])]
    assert pieces == texts
    assert (len(pieces), pieces[1], pieces[-1], pieces[:2]) == (3, texts[1], texts[2], texts[:2])
    assert Pieces.of(pieces) == texts
    assert pieces.joined() is pieces.joined()
    assert [len(part) for part in pieces.parts[1:]] == [5, 5, 4]
    nothing = np.zeros(0, np.int64)
    assert list(RunPieces(memoryview(b""), nothing, nothing, np.zeros(1, np.int64))) == []


def test_pieces_behind_their_lengths_are_given_with_them() -> None:
    data = b"\2\0\0\0ab\0\0\0\0\1\0\0\0c"
    pieces = Pieces(data, np.array([4, 10, 14]), np.array([2, 0, 1]), framed=True)
    assert pieces == [b"ab", b"", b"c"]
    assert bytes(pieces.framed_part(0, 3) or b"") == data
    assert bytes(pieces.framed_part(1, 3) or b"") == data[6:]
    assert pieces.framed_part(2, 2) is None
    assert pieces.take(np.array([0, 2])).framed_part(0, 1) is None


def test_rows_are_stored_the_same_whoever_asks_for_them_meanwhile() -> None:
    walk = np.cumsum(np.random.default_rng(3).normal(0, 2, (3000, 3)), axis=0)
    columns = columns_of({"n": np.arange(3000), "two": np.arange(6000.0).reshape(3000, 2)}, 3000, "vertices")
    lengths, ids, none = np.full(60, 50), np.arange(60), np.zeros(0, np.int64)

    def content() -> Content:
        return polyline_content(walk, columns, lengths, (9.0, 9.0, 9.0), Objects(ids, none, none))

    grid = grid_of(content().keys, (walk.min(axis=0).tolist(), walk.max(axis=0).tolist()), (9.0,) * 3, Layout())
    asked = content()
    rows = asked.positions
    assert asked.given is None
    wanted = [list(node.cells) for node in plan_level(asked, grid, always_links=True)]
    late = content()
    found = []
    for node in plan_level(late, grid, always_links=True):
        found.append(list(node.cells))
        assert late.positions.tobytes() == rows.tobytes()
    assert found == wanted
    assert [list(node.cells) for node in plan_level(content(), grid, always_links=True)] == wanted
    assert asked.count == late.count == 3000
    with pytest.raises(AttributeError, match="colour"):
        _ = asked.colour
