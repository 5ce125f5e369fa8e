"""Damage of many kinds to stored objects of every codec: what ``verify`` finds, and what ``repair`` brings back.

``python tests/corrupt/campaign.py`` writes the table into ``docs/tools.md`` (``--count``: damages for each kind of
object). The true data is known: a damage *changes data* if any inner chunk then reads as anything else, or not at all.
What ``repair`` has to bring back is worked out here from what the damage did, and not from what ``repair`` says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import zardine
from corrupt.specimens import CHAINS, CRC, LITTLE, Specimen, edited, make, sharding
from zardine.errors import CorruptionError

GRID = (3, 4)
CHUNK = (8, 8)
PAGE = 64
"""Bytes of a page: small, as the shards are."""


def without_checksum(codecs: list[Any]) -> list[Any]:
    return [codec for codec in codecs if codec != CRC]


def shard_cases() -> dict[str, list[Any]]:
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


def cases() -> dict[str, list[Any]]:
    """All codecs by name: those of shards as they are written, of shards that were edited, and of chunks alone."""
    found = shard_cases()
    for strategy in ("append", "in_place"):
        for name in ("raw", "zstd"):
            for location in ("end", "start"):
                found[f"{name}, crc32c, index at {location}, {strategy}"] = [sharding(CHUNK, CHAINS[name], location)]
    found["raw, no checksum, index at end, append"] = [sharding(CHUNK, [LITTLE])]
    for name, codecs in CHAINS.items():
        found[f"no shard: {name}, crc32c"] = codecs
    found["no shard: raw, no checksum"] = [LITTLE]
    found["no shard: zstd, no checksum"] = without_checksum(CHAINS["zstd"])
    return found


def specimens(name: str) -> Iterator[Specimen]:
    """What is damaged: an object with an empty inner chunk, and one without."""
    specimen = make(cases()[name], grid=GRID, chunk=CHUNK)
    for each in (specimen, filled(specimen)):
        if name.startswith("no shard"):
            yield replace(each, regions=((slice(None),) * 2,))
        elif name.endswith(("append", "in_place")):
            yield edited(each, name.rpartition(", ")[2])
        else:
            yield each


@dataclass(frozen=True)
class Damage:
    """What an object is after it was damaged."""

    kind: str
    data: bytes
    cut: tuple[int, int] | None = None
    """Offset and length of the bytes that are missing."""

    def keeps(self, data: bytes, offset: int, length: int) -> bool:
        """Whether these bytes of the object are still in it: at their place, or before it by what is missing."""
        if self.cut is None:
            return self.data[offset : offset + length] == data[offset : offset + length]
        start, missing = self.cut
        return offset + length <= start or offset >= start + missing


def damages(specimen: Specimen, rng: np.random.Generator, count: int) -> Iterator[Damage]:
    """Many, of every kind in turn."""
    data = specimen.data
    size = len(data)
    for number in range(count):
        at, other = (int(each) for each in rng.integers(0, size, 2))
        length = int(rng.integers(1, PAGE))
        match number % 5:
            case 0:
                yield Damage("flip", data[:at] + bytes([data[at] ^ 1 << int(rng.integers(8))]) + data[at + 1 :])
            case 1:
                changed = bytearray(data)
                for place in rng.integers(0, size, 3).tolist():
                    changed[place] ^= 1 << int(rng.integers(8))
                yield Damage("flips", bytes(changed))
            case 2:
                start, missing = _cut(specimen, rng, at, length)
                yield Damage("cut", data[:start] + data[start + missing :], (start, missing))
            case 3:
                page = at // PAGE * PAGE
                yield Damage("zero page", data[:page] + bytes(min(PAGE, size - page)) + data[page + PAGE :])
            case 4:
                low, high = sorted((at, other))
                length = max(1, min(length, high - low, size - high))
                one, two = data[low : low + length], data[high : high + length]
                yield Damage("swap", data[:low] + two + data[low + length : high] + one + data[high + length :])


def _cut(specimen: Specimen, rng: np.random.Generator, at: int, length: int) -> tuple[int, int]:
    """Offset and length of what is cut out: at the end, at the front, in the middle; also whole chunks."""
    size = len(specimen.data)
    stored = [each for each in chunk_ranges(specimen) if each is not None]
    offset, chunk = stored[int(rng.integers(len(stored)))]
    cuts = [(at, size - at), (0, at), (at, min(length, size - at)), (size - chunk, chunk), (0, chunk)]
    if not index_at_start(specimen):  # there, what is missing is taken to be missing at the end
        cuts.append((offset, chunk))
    return cuts[int(rng.integers(len(cuts)))]


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
    """Inner chunks that are not empty and could not be read before ``repair``."""
    undamaged: int = 0
    """Of these, those whose encoded bytes are still in the object."""
    known: int = 0
    """Of these, those of which it can be known where they are: ``repair`` has to bring them back."""
    back: int = 0
    """Of these, those that read right after ``repair``."""
    more: int = 0
    """Other lost ones that read right after ``repair``."""
    older: int = 0
    """Lost ones that read after ``repair`` as they were before the last write, of which the end is missing."""
    unmasked: int = 0
    """Lost ones that read wrong after ``repair``: without a checksum, and damaged themselves."""
    worse: int = 0
    """Inner chunks that could be read before ``repair``, and read otherwise after it."""

    def add(self, other: Counts) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def read_each(specimen: Specimen, store: Any) -> list[str]:
    """For each inner chunk: right, error, older, moved or wrong."""
    outcomes = []
    array = zardine.open_array(store, path="a", mode="r")
    for region in specimen.regions:
        try:
            outcomes.append(specimen.judge(array[region], region))
        except CorruptionError:
            outcomes.append("error")
    return outcomes


def try_one(specimen: Specimen, damage: Damage, *, checked: bool) -> Counts:
    """Damage, verify, repair, and compare with the truth."""
    counts = Counts(damages=1)
    store = specimen.store(damage.data)
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
    after = read_each(specimen, store)
    ranges = chunk_ranges(specimen)
    index = index_survives(specimen, damage)
    for old, new, own in zip(before, after, ranges, strict=True):
        if old != "error":
            counts.worse += new != old
            continue
        counts.older += new == "older"
        counts.unmasked += new in ("wrong", "moved")
        if own is not None:
            whole = damage.keeps(specimen.data, *own)
            known = whole and index and not is_unclear(own, ranges, specimen, damage, checked=checked)
            counts.lost += 1
            counts.undamaged += whole
            counts.known += known
            counts.back += known and new == "right"
            counts.more += not known and new == "right"
    again = zardine.verify(store, path="a")
    assert bool(again) == bool(repaired), (again.faults, repaired.left)
    return counts


def is_unclear(
    own: tuple[int, int],
    ranges: list[tuple[int, int] | None],
    specimen: Specimen,
    damage: Damage,
    *,
    checked: bool,
) -> bool:
    """Whether nobody can know where a chunk is though its index does: bytes are missing.

    There has to be a checksum, and bytes that are missing elsewhere than at the end have to show in the size, and must
    not be as many as lie between two chunks of the same length, or between a chunk and space where old ones may be. In
    a shard with unused space chunks of one length must not be several.
    """
    if damage.cut is None:
        return False
    layout = layout_of(specimen)
    if not checked or layout is None or not layout.index_chain.compressors:
        return True
    start, missing = damage.cut
    if layout.index_at_start and start + missing == len(specimen.data):
        return False
    stored = [each for each in ranges if each is not None]
    low, high = layout.data_bounds(len(specimen.data))
    if max(map(sum, stored)) < high:
        return True
    lengths = [length for _, length in stored]
    if not layout.index_at_start and sum(lengths) < high - low and lengths.count(own[1]) > 1:
        return True  # there is unused space, so there may have been some before the index, too
    for offset in (own[0] - missing, own[0] + missing):
        if not low <= offset <= high - own[1]:
            continue
        over = [each for each in stored if each[0] < offset + own[1] and sum(each) > offset]
        if not over or (offset, own[1]) in over:
            return True
    return False


def index_survives(specimen: Specimen, damage: Damage) -> bool:
    """Whether the index is undamaged, or its checksum tells which byte is damaged and how."""
    layout = layout_of(specimen)
    if layout is None:
        return True
    start, size = layout.index_bytes(len(specimen.data))
    if damage.cut is not None:
        first, missing = damage.cut
        return start + size <= first if layout.index_at_start else first + missing <= start
    pairs = zip(specimen.data[start : start + size], damage.data[start : start + size], strict=True)
    return sum(one != other for one, other in pairs) <= (len(layout.index_chain.compressors) > 0)


def layout_of(specimen: Specimen) -> Any:
    """How the shard is laid out; ``None`` if it is a chunk."""
    array = zardine.open_array(specimen.store(), path="a", mode="r")
    return array._handle.layout.shard((0, 0))


def index_at_start(specimen: Specimen) -> bool:
    layout = layout_of(specimen)
    return layout is not None and bool(layout.index_at_start)


def chunk_ranges(specimen: Specimen) -> list[tuple[int, int] | None]:
    """Offset and length of each inner chunk; ``None`` for the empty ones."""
    layout = layout_of(specimen)
    if layout is None:
        return [(0, len(specimen.data))]
    index = layout.index_of(specimen.data)
    rows = zip(index.stored().tolist(), index.offsets.tolist(), index.lengths.tolist(), strict=True)
    return [(offset, length) if there else None for there, offset, length in rows]


def run(name: str, count: int, seed: int = 0) -> dict[str, Counts]:
    """Counts for each kind of damage."""
    rng = np.random.default_rng([seed, *name.encode()])
    found: dict[str, Counts] = {}
    for specimen in specimens(name):
        for damage in damages(specimen, rng, count // 2):
            if damage.data != specimen.data:
                counts = try_one(specimen, damage, checked=has_checksum(name))
                found.setdefault(damage.kind, Counts()).add(counts)
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
_COLUMNS = {
    "damages": "damages",
    "change data": "changing",
    "found": "found",
    "silent": "silent",
    "moved": "moved",
    "lost": "lost",
    "whole": "undamaged",
    "known": "known",
    "back": "back",
    "more": "more",
    "older": "older",
    "unmasked": "unmasked",
}


def table(count: int, seed: int = 0) -> str:
    """What came of ``count`` damages of each kind of object, in lines of Markdown."""
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
    head = f"| {{}} | {' | '.join(_COLUMNS)} |\n|---|{'--:|' * len(_COLUMNS)}\n"
    lines = [head.format("codecs"), *(_row(name, counts) for name, counts in by_codec.items()), _row("**all**", total)]
    kinds = [head.format("damage, with checksums"), *(_row(name, counts) for name, counts in by_kind.items())]
    return "".join(lines) + "\n" + "".join(kinds)


def _row(name: str, counts: Counts) -> str:
    return f"| {name} | {' | '.join(f'{getattr(counts, column):,}' for column in _COLUMNS.values())} |\n"


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
