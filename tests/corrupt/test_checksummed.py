"""Checksummed chunks, alone and in shards: whatever happens to the bytes, reading gives an error or the right data."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pytest

from corrupt.specimens import (
    GRID,
    LARGE_GRID,
    Outcomes,
    Specimen,
    byte_changes,
    cut_ends,
    cut_fronts,
    longer_ends,
    longer_fronts,
    make,
    read_damaged,
    scrambled,
    sharded,
    whole,
)
from effort import SOAK, some

CASES = {**{f"chunk-{name}": codecs for name, codecs in whole().items()}, **sharded()}
MOVABLE = {name for name, codecs in CASES.items() if '"index_location": "end"' in json.dumps(codecs)} - {"crc-around"}
"""Shards whose data can be shifted against their index by bytes lost or added in front: see the test below."""


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def specimen(case: str) -> Specimen:
    grid = (1, 2) if case.startswith("nested") else GRID
    specimen = make(CASES[case], grid=grid)
    assert read_damaged(specimen, specimen.data) == {"right": 1 + len(specimen.regions)}
    return specimen


def damage_all(specimen: Specimen, damaged: Iterable[bytes], *never: str) -> Outcomes:
    outcomes = Outcomes()
    for data in damaged:
        read_damaged(specimen, data, outcomes)
        assert not outcomes.keys() & {*never, "wrong"}, data.hex()
    return outcomes


def test_every_changed_byte(specimen):
    outcomes = damage_all(specimen, some(byte_changes(specimen.data), 19), "moved")
    assert sum(outcomes.values()) > len(specimen.data) // 2
    assert outcomes["ChecksumError"] > 0


@pytest.mark.parametrize("name", ["raw-end", "raw-start", "zstd-start", "transpose-before"])
def test_some_changed_bytes_of_a_larger_shard(name):
    specimen = make(CASES[name], grid=LARGE_GRID)
    damage_all(specimen, some(byte_changes(specimen.data), 40), "moved")


def test_every_truncation(specimen):
    damage_all(specimen, some(cut_ends(specimen.data), 4), "moved")


def test_bytes_added_at_the_end(specimen):
    damage_all(specimen, longer_ends(specimen.data), "moved")


def test_bytes_lost_in_front(specimen):
    """Some inner chunk then seems to lie outside of the shard, which makes all of them doubtful."""
    damage_all(specimen, some(cut_fronts(specimen.data), 4), "moved")


def test_bytes_added_in_front(specimen, case):
    """With the index at the end, a shift by exactly one chunk puts each chunk where the next one was expected.

    A checksum says that the bytes of a chunk are whole, not which chunk they are; the format has no more to offer.
    """
    damage_all(specimen, longer_fronts(specimen.data), *(() if case in MOVABLE else ("moved",)))


def test_pieces_in_the_wrong_place(specimen):
    """Blocks swapped, repeated, left out or zeroed, as file systems and copying programs do."""
    damage_all(specimen, scrambled(specimen.data, np.random.default_rng(5), 3000 if SOAK else 30))
