"""Damage of many kinds to stored shards of every codec: what ``verify`` finds, and what ``repair`` brings back.

``python tests/corrupt/campaign.py`` writes the table into ``docs/tools.md`` (``--count``: damages for each kind of
shard). The true data is known: a damage *changes data* if any inner chunk then reads as anything else, or not at all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import zardine
from corrupt.specimens import CHAINS, CRC, LITTLE, Specimen, make, sharding
from zardine.errors import CorruptionError

GRID = (3, 4)
CHUNK = (8, 8)
PAGE = 64
"""Bytes of a page: small, as the shards are."""


def without_checksum(codecs: list[Any]) -> list[Any]:
    return [codec for codec in codecs if codec != CRC]


def cases() -> dict[str, list[Any]]:
    """Codecs of shards by name: every chain with and without its checksum, the index at either end."""
    found = {}
    for name, codecs in CHAINS.items():
        for location in ("end", "start"):
            found[f"{name}, crc32c, index at {location}"] = [sharding(CHUNK, codecs, location)]
            if name != "crc-inside":
                plain = without_checksum(codecs)
                found[f"{name}, no checksum, index at {location}"] = [sharding(CHUNK, plain, location)]
    found["raw, crc32c, index without checksum"] = [sharding(CHUNK, [LITTLE, CRC], "end", [LITTLE])]
    found["raw, no checksum at all"] = [sharding(CHUNK, [LITTLE], "end", [LITTLE])]
    found["shards in shards, crc32c"] = [sharding(CHUNK, [sharding((4, 8), [LITTLE, CRC])])]
    return found


def damages(data: bytes, rng: np.random.Generator, count: int) -> Iterator[tuple[str, bytes]]:
    """Kind of damage, and the damaged bytes."""
    size = len(data)
    for number in range(count):
        at, other = (int(each) for each in rng.integers(0, size, 2))
        length = int(rng.integers(1, PAGE))
        match number % 5:
            case 0:
                yield "flip", data[:at] + bytes([data[at] ^ 1 << int(rng.integers(8))]) + data[at + 1 :]
            case 1:
                changed = bytearray(data)
                for place in rng.integers(0, size, 3).tolist():
                    changed[place] ^= 1 << int(rng.integers(8))
                yield "flips", bytes(changed)
            case 2:
                yield "cut", (data[:at], data[at:], data[:at] + data[at + length :])[int(rng.integers(3))]
            case 3:
                page = at // PAGE * PAGE
                yield "zero page", data[:page] + bytes(min(PAGE, size - page)) + data[page + PAGE :]
            case 4:
                low, high = sorted((at, other))
                length = max(1, min(length, high - low, size - high))
                one, two = data[low : low + length], data[high : high + length]
                yield "swap", data[:low] + two + data[low + length : high] + one + data[high + length :]


@dataclass
class Counts:
    """What came of the damages."""

    damages: int = 0
    changing: int = 0
    """Damages after which some inner chunk cannot be read, or reads wrong."""
    found: int = 0
    """Of these, those that ``verify`` reports."""
    silent: int = 0
    """Of these, those that nobody can know: no checksum, and the bytes decode to other values."""
    moved: int = 0
    """Of these, those where every inner chunk reads as a sound one of the same shard: another one."""
    lost: int = 0
    """Inner chunks that could not be read before ``repair``."""
    undamaged: int = 0
    """Of these, those whose encoded bytes are still somewhere in the shard."""
    without_index: int = 0
    """Of these, those of which no index says any more where they are."""
    saved: int = 0
    """Of the lost ones, those that read right after ``repair``."""
    unmasked: int = 0
    """Lost ones that read wrong after ``repair``: without a checksum, and damaged themselves."""
    worse: int = 0
    """Inner chunks that could be read before ``repair``, and read otherwise after it."""

    def add(self, other: Counts) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def read_each(specimen: Specimen, store: Any) -> list[str]:
    """For each inner chunk: right, error, moved or wrong."""
    outcomes = []
    array = zardine.open_array(store, path="a", mode="r")
    for region in specimen.regions:
        try:
            outcomes.append(specimen.judge(array[region], region))
        except CorruptionError:
            outcomes.append("error")
    return outcomes


def try_one(specimen: Specimen, damaged: bytes) -> Counts:
    """Damage, verify, repair, and compare with the truth."""
    counts = Counts(damages=1)
    store = specimen.store(damaged)
    before = read_each(specimen, store)
    report = zardine.verify(store, path="a")
    if any(outcome != "right" for outcome in before):
        counts.changing = 1
        counts.found = int(not report)
        if report:  # no fault is known
            assert "error" not in before
            counts.silent = int("wrong" in before)
            counts.moved = int("wrong" not in before)
    repaired = zardine.repair(store, path="a", keep_damaged=False)
    index_is_lost = any("its index is lost" in left.message for left in repaired.left)
    unplaced = {left.chunk for left in repaired.left if "does not say where it is" in left.message}
    after = read_each(specimen, store)
    rows = zip(np.ndindex(GRID), before, after, encoded_chunks(specimen), strict=True)
    for chunk, old, new, encoded in rows:
        if old != "error":
            counts.worse += new != old
            continue
        whole = encoded is None or encoded in damaged
        counts.lost += 1
        counts.undamaged += whole
        counts.without_index += whole and (index_is_lost or chunk in unplaced)
        counts.saved += new == "right"
        counts.unmasked += new in ("wrong", "moved")
    again = zardine.verify(store, path="a")
    assert bool(again) == bool(repaired), (again.faults, repaired.left)
    return counts


def encoded_chunks(specimen: Specimen) -> list[bytes | None]:
    """The undamaged bytes of each inner chunk; ``None`` for the empty ones."""
    array = zardine.open_array(specimen.store(), path="a", mode="r")
    layout = array._source.layout.shard((0, 0))
    assert layout is not None
    index = layout.index_of(specimen.data)
    return [
        specimen.data[offset : offset + length] if there else None
        for there, offset, length in zip(
            index.stored().tolist(), index.offsets.tolist(), index.lengths.tolist(), strict=True
        )
    ]


def run(name: str, count: int, seed: int = 0) -> dict[str, Counts]:
    """Counts for each kind of damage."""
    rng = np.random.default_rng([seed, *name.encode()])
    found: dict[str, Counts] = {}
    for is_full in (False, True):
        specimen = make(cases()[name], grid=GRID, chunk=CHUNK)
        if is_full:
            specimen = filled(specimen)
        for kind, damaged in damages(specimen.data, rng, count // 2):
            if damaged != specimen.data:
                found.setdefault(kind, Counts()).add(try_one(specimen, damaged))
    return found


def filled(specimen: Specimen) -> Specimen:
    """The same without an empty inner chunk."""
    store = specimen.store()
    values = specimen.values.copy()
    values[specimen.regions[-2]] = specimen.values[specimen.regions[-1]] + 1
    zardine.open_array(store, path="a")[...] = values
    data = store.get(f"a/{specimen.key}")
    assert data is not None
    return Specimen(specimen.document, values, specimen.key, bytes(data), specimen.regions)


def has_checksum(name: str) -> bool:
    return "no checksum" not in name


PAGE_FILE = Path(__file__).parents[2] / "docs" / "tools.md"
_START, _END = "<!-- campaign: written by tests/corrupt/campaign.py -->\n", "<!-- end of campaign -->"


def table(count: int, seed: int = 0) -> str:
    """What came of ``count`` damages of each kind of shard, in lines of Markdown."""
    by_codec: dict[str, Counts] = {}
    by_kind: dict[str, Counts] = {}
    for name in cases():
        for kind, counts in run(name, count, seed).items():
            by_codec.setdefault(name, Counts()).add(counts)
            if has_checksum(name):
                by_kind.setdefault(kind, Counts()).add(counts)
        print(name, by_codec[name], flush=True)
    total = Counts()
    for counts in by_codec.values():
        total.add(counts)
    columns = "damages", "change data", "found", "silent", "moved", "lost", "whole", "index lost", "saved", "unmasked"
    head = f"| {{}} | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}\n"
    lines = [head.format("codecs"), *(_row(name, counts) for name, counts in by_codec.items()), _row("**all**", total)]
    kinds = [head.format("damage, with checksums"), *(_row(name, counts) for name, counts in by_kind.items())]
    return "".join(lines) + "\n" + "".join(kinds)


def _row(name: str, c: Counts) -> str:
    numbers = (c.damages, c.changing, c.found, c.silent, c.moved, c.lost, c.undamaged, c.without_index, c.saved)
    return f"| {name} | {' | '.join(f'{number:,}' for number in (*numbers, c.unmasked))} |\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    text = PAGE_FILE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_START)
    _, _, after = rest.partition(_END)
    PAGE_FILE.write_text(before + _START + table(options.count, options.seed) + _END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
