"""Sets of rows, a bit for each."""

from __future__ import annotations

import numpy as np

from zardine.vectors.reading.row_set import RowSetMaker


def test_rows_of_pieces_of_any_length() -> None:
    rng = np.random.default_rng(1)
    flags = rng.random(1000) < 0.3
    maker = RowSetMaker()
    for piece in np.split(flags, [0, 1, 3, 3, 64, 65, 127, 128, 500, 999]):
        maker.add(piece)
    rows = maker.rows()
    assert rows.has(np.arange(-1, 1000)).tolist() == [False, *flags.tolist()]
    inside = np.flatnonzero(flags)
    assert rows.numbers(inside).tolist() == list(range(len(inside)))
    assert rows.numbers(inside[::-1]).tolist() == list(range(len(inside)))[::-1]
    assert rows.has(inside.reshape(1, -1)).all()


def test_no_rows() -> None:
    rows = RowSetMaker().rows()
    assert rows.has(np.array([-1])).tolist() == [False]
    assert rows.numbers(np.zeros(0, np.int64)).tolist() == []
