"""Random damage to shards of every codec: ``verify`` finds what can be known, ``repair`` brings back what is whole."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import zardine
from corrupt.campaign import Counts, cases, has_checksum, read_each, run, specimens
from effort import SOAK, new_seed


@pytest.mark.parametrize("name", cases())
def test_verify_and_repair(name: str) -> None:
    counts = Counts()
    seed = new_seed(1)
    for kind, each in run(name, 3000 if SOAK else 6, seed).items():
        counts.add(each)
        assert each.older == 0 or kind not in ("flip", "flips"), seed
    assert counts.worse == 0, seed
    assert counts.found + counts.silent + counts.moved == counts.changing, seed
    assert counts.back == counts.known, seed  # every undamaged chunk of which it can be known where it is
    if has_checksum(name):
        assert counts.silent == counts.unmasked == 0, seed
        assert counts.found >= 0.999 * counts.changing, seed
        if "index without" not in name and "no shard" not in name:
            assert counts.known > 0 or not SOAK


def test_bytes_missing_in_front_of_an_edited_shard() -> None:
    """As many as seven chunks have, of which the index tells fewer, since there was unused space behind the last."""
    specimen = next(specimens("raw, crc32c, index at end, in_place"))
    store = specimen.store(specimen.data[924:])
    report = zardine.repair(store, path="a", keep_damaged=False)
    assert set(read_each(specimen, store)) <= {"right", "error"}
    assert report.left


@pytest.mark.parametrize("missing", [8, 24, 40, 56])
def test_parts_of_entries_missing_in_an_index(missing: int) -> None:
    """A length and the offset behind it then stand where an entry was: with chunks of one length they name the second.

    Without a chunk that is empty, which would be refused before.
    """
    specimen = list(specimens("transpose, crc32c, index at end"))[1]
    data, start = specimen.data, len(specimen.data) - 196
    places = range(start, len(data) - missing, 1 if SOAK else 6)
    for place in {*places, start + 34}:
        store = specimen.store(data[:place] + data[place + missing :])
        zardine.repair(store, path="a", keep_damaged=False)
        assert set(read_each(specimen, store)) <= {"right", "error"}, place


def index_damages(entries: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """Entries of an index swapped, shifted, repeated, lost, emptied: as wholes, which is the worst."""
    count = len(entries) // 16
    items = [entries[16 * i : 16 * i + 16] for i in range(count)]
    for _ in range(400 if SOAK else 6):
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
    "name",
    [
        *(f"{codec}, crc32c, index at {location}" for codec in ("raw", "zstd") for location in ("end", "start")),
        *(f"raw, crc32c, index at {where}" for where in ("end, append", "end, in_place", "start, in_place")),
    ],
)
@pytest.mark.parametrize("full", [True, False])
def test_whatever_happens_to_the_index_no_chunk_is_taken_for_another(name: str, full: bool) -> None:
    specimen = list(specimens(name))[full]
    array = zardine.open_array(specimen.store(), path="a", mode="r")
    layout = array._handle.layout.shard((0, 0))
    assert layout is not None
    start, size = layout.index_bytes(len(specimen.data))
    data, index = specimen.data, specimen.data[start : start + size]
    rng = np.random.default_rng(new_seed(3))
    outcomes: dict[str, int] = {}
    for entries in index_damages(index[:-4], rng):
        store = specimen.store(data[:start] + entries + index[-4:] + data[start + size :])
        zardine.repair(store, path="a", keep_damaged=False)
        for outcome in read_each(specimen, store):
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    edited = {"older"} if name.endswith(("append", "in_place")) else set()  # it may look like a write that was cut off
    assert outcomes.keys() <= {"right", "error"} | edited, outcomes
    assert not full or "append" in name or outcomes["right"] > 0
