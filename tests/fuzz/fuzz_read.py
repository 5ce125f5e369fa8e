"""Damage stored golden arrays at random and read them: only errors of zardine's own tree may come of it.

``python tests/fuzz/fuzz_read.py --seconds 60 [--seed N]``. Each round copies one array of ``tests/golden/data`` into
memory, damages its document or one of its objects, opens it and reads all of it, or some of it, or writes a part. A
round that ends in a foreign exception, or takes more than ten seconds, is printed with its number, and the run fails;
``--seed`` and ``--round`` repeat it. Rounds run in this process: a crash of an extension module ends it, and the round
under way can be read from the file that ``--trace`` names.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import zardine
from zardine.errors import CorruptionError, EncodeError, MetadataError, NodeNotFoundError, UnsupportedError

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
ALLOWED = (CorruptionError, MetadataError)
ALLOWED_WHEN_OPENING = (*ALLOWED, NodeNotFoundError, UnsupportedError)
ALLOWED_WHEN_WRITING = (*ALLOWED, EncodeError)
LARGEST = 2**22
"""Elements of what is read or of a chunk that is written; documents may claim more."""

Stored = dict[str, bytes]


def load() -> dict[str, Stored]:
    """All golden arrays, small enough to be held in memory."""
    cases = json.loads((GOLDEN / "manifest.json").read_text(encoding="utf-8"))
    arrays: dict[str, Stored] = {}
    for case in cases:
        folder = GOLDEN / "data" / case["path"]
        if case["kind"] != "array" or not folder.is_dir():
            continue
        files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
        if sum(file.stat().st_size for file in files) < 2**20:
            arrays[case["path"]] = {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
    return arrays


def damage(data: bytes, rng: np.random.Generator, others: list[bytes]) -> bytes:
    """``data`` with one to four faults of random kinds."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 5)) if rng.random() < 0.5 else 1):
        size = len(changed)
        if not size:
            return rng.bytes(int(rng.integers(0, 100)))
        at = int(rng.integers(size)) if rng.random() < 0.5 else size - 1 - int(rng.integers(min(size, 80)))
        length = int(rng.integers(1, 33))
        match int(rng.integers(11)):
            case 0 | 1 | 2:
                changed[at] ^= 1 << int(rng.integers(8))
            case 3:
                changed[at] = int(rng.choice([0, 1, 127, 128, 254, 255]))
            case 4:
                del changed[at:]
            case 5:
                del changed[at : at + length]
            case 6:
                changed[at:at] = rng.bytes(length)
            case 7:
                changed[at : at + length] = bytes(length)
            case 8:
                number = int(rng.choice([0, 1, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63]))
                width = int(rng.choice([2, 4, 8]))
                changed[at : at + width] = (number % 2 ** (8 * width)).to_bytes(width, "little")
            case 9:
                other = others[int(rng.integers(len(others)))]
                start = int(rng.integers(len(other) + 1))
                changed[at : at + length] = other[start : start + length]
            case 10:
                start = int(rng.integers(size))
                changed[at:at] = changed[start : start + 4 * length]
    return bytes(changed)


def one_round(arrays: dict[str, Stored], seed: int, number: int) -> str:
    """What came of a round; anything but the allowed errors goes through."""
    rng = np.random.default_rng((seed, number))
    names = sorted(arrays)
    stored = dict(arrays[names[int(rng.integers(len(names)))]])
    keys = [key for key in sorted(stored) if key != "zarr.json"]
    key = "zarr.json" if not keys or rng.random() < 0.15 else keys[int(rng.integers(len(keys)))]
    others = [*stored.values(), *arrays[names[int(rng.integers(len(names)))]].values()]
    stored[key] = damage(stored[key], rng, others)
    store = zardine.storage.MemoryStore(stored)
    try:
        array = zardine.open_array(store, mode="r+")
    except ALLOWED_WHEN_OPENING as error:
        return f"opening: {type(error).__name__}"
    region = tuple(
        slice(*sorted(rng.integers(0, length + 1, 2).tolist())) if rng.random() < 0.5 else slice(None)
        for length in array.shape
    )
    if size_of(array, region) > LARGEST:
        return "too large to read"
    try:
        found = array[region]
    except ALLOWED as error:
        if error_is_placed(error, key):
            return f"reading: {type(error).__name__}"
        raise
    if rng.random() < 0.3 and largest_chunk(array) <= LARGEST and key != "zarr.json":
        try:
            array[region] = found
            array.nchunks_initialized  # noqa: B018
        except ALLOWED_WHEN_WRITING as error:
            return f"writing: {type(error).__name__}"
        return "written"
    return "read"


def error_is_placed(error: Exception, key: str) -> bool:
    """Whether an error about stored bytes says which key they are under."""
    return not isinstance(error, CorruptionError) or error.key is not None


def size_of(array: Any, region: tuple[slice, ...]) -> int:
    size = max(array.dtype.itemsize // 16, 1)
    for part, length in zip(region, array.shape, strict=True):
        size *= len(range(*part.indices(length)))
    return size


def largest_chunk(array: Any) -> int:
    """Elements of the largest stored object."""
    size = max(array.dtype.itemsize // 16, 1)
    for axis in array._handle.layout.grids.storage:
        size *= max((run[0] for run in axis.runs), default=1)
    return size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=None, help="end after this many, however long they take")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--round", type=int, default=None, help="repeat this round alone")
    parser.add_argument("--trace", type=Path, default=None, help="write the number of each round to this file first")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seed = int(time.time()) if options.seed is None else options.seed
    arrays = load()
    if options.round is not None:
        print(one_round(arrays, seed, options.round))
        return 0
    effort = f"{options.seconds:g} s" if options.rounds is None else f"{options.rounds} rounds"
    print(f"fuzz: {len(arrays)} arrays, seed {seed}, {effort}", flush=True)
    outcomes: Counter[str] = Counter()
    failures: set[str] = set()
    end = time.monotonic() + options.seconds
    number = 0
    while time.monotonic() < end if options.rounds is None else number < options.rounds:
        if options.trace is not None:
            options.trace.write_text(f"--seed {seed} --round {number}\n")
        start = time.process_time()
        try:
            outcomes[one_round(arrays, seed, number)] += 1
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}: {str(error)[:150]}"
            outcomes["FOREIGN"] += 1
            if place not in failures and len(failures) < 20:
                failures.add(place)
                print(f"fuzz: --seed {seed} --round {number}: {place}", flush=True)
        if time.process_time() - start > 10:
            failures.add("slow")
            print(f"fuzz: --seed {seed} --round {number}: took {time.process_time() - start:.1f} s", flush=True)
        number += 1
    for outcome, count in sorted(outcomes.items()):
        print(f"  {count:8} {outcome}")
    print(f"fuzz: {number} rounds, {len(failures)} kinds of failure")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
