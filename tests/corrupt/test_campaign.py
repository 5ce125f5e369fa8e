"""Random damage to shards of every codec: ``verify`` finds what can be known, ``repair`` brings back what is whole."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import numpy as np
import pytest

import zardine
from corrupt.campaign import CHUNK, GRID, Counts, cases, filled, has_checksum, read_each, run
from corrupt.specimens import SOAK, make


@pytest.mark.parametrize("name", cases())
def test_verify_and_repair(name: str) -> None:
    counts = Counts()
    seed = secrets.randbits(32) if SOAK else 1
    for each in run(name, 3000 if SOAK else 40, seed).values():
        counts.add(each)
    assert counts.worse == 0, seed
    assert counts.found + counts.silent + counts.moved == counts.changing, seed
    if has_checksum(name):
        assert counts.silent == counts.unmasked == 0, seed
        assert counts.found >= 0.999 * counts.changing, seed
        if "index without" not in name:
            # all that is whole in a shard with an index, but where bytes are missing and lengths do not tell which
            assert counts.saved >= 0.9 * (counts.undamaged - counts.without_index) > 0, seed


def index_damages(entries: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """Entries of an index swapped, shifted, repeated, lost, emptied: as wholes, which is the worst."""
    count = len(entries) // 16
    items = [entries[16 * i : 16 * i + 16] for i in range(count)]
    for _ in range(400 if SOAK else 40):
        i, j, k = sorted(int(each) for each in rng.integers(0, count + 1, 3))
        parts = items[:i], items[i:j], items[j:k], items[k:]
        a, b, c, d = (b"".join(part) for part in parts)
        yield a + c + b + d
        yield a + c + d
        yield a + b + b + c + d
        yield a + bytes(len(b)) + c + d
        yield a + b"\xff" * len(b) + c + d
        yield a + b"".join(reversed(parts[1])) + c + d
        yield b + c + d + a
        yield (b + a + b + c + d)[: len(entries)]
        yield (a + b"\xff" * 16 + b + c + d)[: len(entries)]


@pytest.mark.parametrize(
    "name", ["raw, crc32c, index at end", "raw, crc32c, index at start", "zstd, crc32c, index at end"]
)
@pytest.mark.parametrize("full", [True, False])
def test_whatever_happens_to_the_index_no_chunk_is_taken_for_another(name: str, full: bool) -> None:
    specimen = make(cases()[name], grid=GRID, chunk=CHUNK)
    if full:
        specimen = filled(specimen)
    array = zardine.open_array(specimen.store(), path="a", mode="r")
    layout = array._source.layout.shard((0, 0))
    assert layout is not None
    start, size = layout.index_bytes(len(specimen.data))
    data, index = specimen.data, specimen.data[start : start + size]
    rng = np.random.default_rng(secrets.randbits(32) if SOAK else 3)
    outcomes: dict[str, int] = {}
    for entries in index_damages(index[:-4], rng):
        store = specimen.store(data[:start] + entries + index[-4:] + data[start + size :])
        zardine.repair(store, path="a", keep_damaged=False)
        for outcome in read_each(specimen, store):
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert outcomes.keys() <= {"right", "error"}, outcomes
    assert not full or outcomes["right"] > 0
