"""Documents and cells of every kind of store, damaged in every way: ``validate`` never raises, readers our errors."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from vectors.geometry_samples import copy_of
from vectors.stores_of_all_kinds import WRITERS, read_all, store_of
from zardine import vectors
from zardine.errors import ZardineError
from zardine.storage import MemoryStore

LAYOUTS = {"flat": {}, "sharded": {"shard_shape": 2, "compressor": "zstd"}}
SOME = int(os.environ.get("ZARDINE_FUZZ", "20"))
OTHERS: tuple[Any, ...] = (None, 0, -1, 1.5, "", "x", [], [0], [""], {}, {"a": 1}, True, 2**70)


def damaged(store: MemoryStore, seed: int) -> Iterator[tuple[str, MemoryStore]]:
    """Copies of a store, each with one thing wrong."""
    rng = np.random.default_rng(seed)
    for key in sorted(store.list()):
        data = bytes(store.get(key) or b"")
        if key.endswith("zarr.json"):
            for place, changed in _documents(json.loads(data), rng):
                yield f"{key}: {place}", _with(store, key, json.dumps(changed).encode())
            continue
        flipped = bytearray(data)
        flipped[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        cut = data[: rng.integers(len(data))]
        for what, value in (("erased", None), ("flipped", bytes(flipped)), ("cut", cut), ("emptied", b"")):
            yield f"{key}: {what}", _with(store, key, value)


def _with(store: MemoryStore, key: str, value: bytes | None) -> MemoryStore:
    other = copy_of(store)
    if value is None:
        other.erase(key)
    else:
        other.set(key, value)
    return other


def _documents(document: Any, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    for place in list(_places(document)):
        yield f"{place} dropped", _changed(document, place, _DROP)
        yield f"{place} changed", _changed(document, place, OTHERS[rng.integers(len(OTHERS))])


_DROP = object()


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _places(each, (*path, key))
    elif isinstance(value, list):
        for number, each in enumerate(value[:2]):
            yield from _places(each, (*path, number))


def _changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(document))
    inner = copy
    for step in path[:-1]:
        inner = inner[step]
    if value is _DROP:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return copy


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", WRITERS)
def test_validate_never_raises_and_finds_what_changes_the_answer(
    kind: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zardine.vectors.steady_cells.WAITS", (0.0,))
    store = store_of(kind, **LAYOUTS[layout])
    whole = read_all(store, kind)
    assert vectors.validate(store).findings == ()
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    cases = list(damaged(store, seed))
    chosen = np.random.default_rng(seed).permutation(len(cases))[:SOME]
    for number in sorted(chosen.tolist()):
        what, bad = cases[number]
        told = f"{kind}, {layout}, seed {seed}: {what}"
        try:
            report = vectors.validate(bad)
        except ZardineError as fault:
            if not what.startswith("zarr.json"):
                raise AssertionError(f"{told}: validate raised") from fault
            continue
        except Exception as fault:
            raise AssertionError(f"{told}: validate raised") from fault
        assert not any("cannot be read: " in each.message for each in report.findings), (told, report.errors)
        try:
            answer = read_all(bad, kind)
        except ZardineError:
            assert report.errors, f"{told}: readers refuse it, and validate finds nothing"
            continue
        except Exception as fault:
            raise AssertionError(f"{told}: a reader raised") from fault
        if answer != whole and not _is_another_value(what, layout):
            assert report.findings, f"{told}: another answer, and validate finds nothing"


def _is_another_value(what: str, layout: str) -> bool:
    """Whether a document or cell of another, equally good value may have come out."""
    return "flipped" in what
