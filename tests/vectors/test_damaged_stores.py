"""Documents and cells of every kind of store, damaged in every way: ``validate`` never raises, readers our errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import SOAK, new_seed, some
from vectors.geometry_samples import copy_of, values
from vectors.stores_of_all_kinds import WRITERS, at_once, positions, read_all, store_of
from zardine import vectors
from zardine.errors import CorruptionError, DataError, ZardineError
from zardine.storage import MemoryStore

LAYOUTS: dict[str, dict[str, Any]] = {
    "flat": {},
    "sharded": {"shard_shape": 2, "compressor": "zstd"},
    "flat, with checksums": {"checksum": True},
    "sharded, with checksums": {"shard_shape": 2, "compressor": "zstd", "checksum": True},
}
CASES = list(some(product(WRITERS, LAYOUTS), 4))
SOME = 100 if SOAK else 8
OTHERS: tuple[Any, ...] = (None, 0, -1, 1.5, "", "x", [], [0], [""], {}, {"a": 1}, True, 2**70)


Case = tuple[str, Callable[[], MemoryStore]]
"""What is wrong, and the copy in which it is."""


def damaged(store: MemoryStore, seed: int) -> Iterator[Case]:
    """Copies of a store, each with one thing wrong."""
    rng = np.random.default_rng(seed)
    for key in sorted(store.list()):
        data = bytes(store.get(key) or b"")
        if key.endswith("zarr.json"):
            for place, changed in _documents(json.loads(data), rng):
                yield f"{key}: {place}", partial(_with, store, key, json.dumps(changed).encode())
            continue
        flipped = bytearray(data)
        flipped[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        cut = data[: rng.integers(len(data))]
        for what, value in (("erased", None), ("flipped", bytes(flipped)), ("cut", cut), ("emptied", b"")):
            yield f"{key}: {what}", partial(_with, store, key, value)


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


@pytest.mark.parametrize(("kind", "layout"), CASES)
def test_validate_never_raises_and_finds_what_changes_the_answer(
    kind: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(monkeypatch)
    store = store_of(kind, **LAYOUTS[layout])
    whole = read_all(store, kind)
    assert vectors.validate(store).findings == ()
    seed = new_seed(1)
    cases = list(damaged(store, seed))
    chosen = np.random.default_rng(seed).permutation(len(cases))[:SOME]
    for number in sorted(chosen.tolist()):
        what, copy = cases[number]
        bad = copy()
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
        answer = _answer(bad, kind, told)
        if answer is None:
            assert report.errors, f"{told}: readers refuse it, and validate finds nothing"
        elif answer != whole and not _is_another_value(what, layout):
            assert report.findings, f"{told}: another answer, and validate finds nothing"


@pytest.mark.parametrize(("kind", "layout"), CASES)
def test_repair_hides_no_loss(kind: str, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It raises for documents only and breaks nothing; what it mends is as it was, or a line says what it filled up."""
    at_once(monkeypatch)
    store = store_of(kind, **LAYOUTS[layout])
    whole = read_all(store, kind)
    seed = new_seed(1)
    cases = list(damaged(store, seed))
    for number in np.random.default_rng(seed).permutation(len(cases))[: SOME // 3].tolist():
        what, copy = cases[number]
        bad = copy()
        told = f"{kind}, {layout}, seed {seed}: {what}"
        before = _answer(bad, kind, told)
        try:
            actions = vectors.repair(bad).actions
        except ZardineError as fault:
            if "zarr.json" not in what:
                raise AssertionError(f"{told}: repair raised") from fault
            actions = ()
        after = _answer(bad, kind, told)
        assert before != whole or after == whole, f"{told}: {actions}"
        if before is None and after is not None and after != whole:
            assert any("filled up" in each.message for each in actions), f"{told}: {actions}"
        assert after is not None or not vectors.validate(bad).ok, f"{told}: {actions}"


def _answer(store: MemoryStore, kind: str, told: str) -> dict[str, list[Any]] | None:
    """What readers give; ``None`` where they refuse."""
    try:
        return read_all(store, kind)
    except ZardineError:
        return None
    except Exception as fault:
        raise AssertionError(f"{told}: a reader raised") from fault


def _is_another_value(what: str, layout: str) -> bool:
    """Whether a document or cell of another, equally good value may have come out: no checksum is in documents."""
    return ("flipped" in what and "checksum" not in LAYOUTS[layout]) or (
        "'categories', " in what and what.endswith("changed")
    )


def _put(store: MemoryStore, node: str, place: tuple[Any, ...], value: Any) -> None:
    key = f"{node}/zarr.json" if node else "zarr.json"
    store.set(key, json.dumps(_changed(json.loads(bytes(store.get(key) or b"")), place, value)).encode())


@pytest.mark.parametrize("value", [[], {}, 3, None, [3], "x"])
def test_levels_are_made_where_the_old_list_of_them_is_damaged(value: Any) -> None:
    store = store_of("skeleton")
    _put(store, "", ("attributes", "multiscales", 0, "datasets", 0, "path"), value)
    assert vectors.build_pyramid(store) == [1]
    _put(store, "", ("attributes", "multiscales", 0, "datasets"), value)
    assert vectors.build_pyramid(store) == [1]
    assert vectors.validate(store).findings == ()


@pytest.mark.parametrize("value", [1e-308, None, "x", {}, [1], ["a"]])
def test_cells_are_counted_where_the_list_of_them_is_damaged(value: Any) -> None:
    store = store_of("points")
    before = vectors.get_shard_info(store)["0/vertices"]
    _put(store, "0/vertices", ("attributes", "nonempty_chunks"), value)
    assert vectors.get_shard_info(store)["0/vertices"] == before


@pytest.mark.parametrize("names", [[], ["cx"], ["cx", "cy", "cz", "r", "s"]])
def test_coefficients_that_their_type_does_not_name_are_told(names: list[str]) -> None:
    store = store_of("points")
    _put(store, "parametric", ("attributes", "parametric_types", "2", "coefficients"), names)
    with pytest.raises(CorruptionError, match=f"a sphere has {len(names)} coefficients"):
        vectors.read_parametric_objects(store)
    assert vectors.validate(store).errors


def test_a_coordinate_that_is_damaged_stops_a_pyramid() -> None:
    store = store_of("points_of_objects")
    key = next(key for key in sorted(store.list()) if key.startswith("0/vertices/c/"))
    data = bytearray(store.get(key) or b"")
    data[8:16] = np.array(np.nan).tobytes()
    store.set(key, bytes(data))
    with pytest.raises(DataError, match="NaN"):
        vectors.build_pyramid(store)


@pytest.mark.parametrize("member", ["dtype", "row_shape"])
def test_values_of_which_no_document_says_what_they_are(member: str) -> None:
    store = store_of("graph")
    for node in ("0/vertex_attributes/n", "0/link_attributes/w/0/0.0.0"):
        bad = copy_of(store)
        _put(bad, node, ("attributes", member), _DROP)
        with pytest.raises(CorruptionError, match=f"{member} is missing"):
            vectors.read_graph(bad)
        assert "array-document" in vectors.validate(bad).codes


@pytest.mark.parametrize("value", [[], [0], 0, {}, None])
@pytest.mark.parametrize("node", ["0/vertices", "0/vertex_attributes/rgb", "1/vertices", "1/links/-1/0.0.0"])
def test_vertices_move_where_a_list_of_chunks_holds_something_else(node: str, value: Any) -> None:
    store = store_of("points")
    vectors.build_pyramid(store, factors=[(1, 1)])
    wanted = vectors.read_points(store).positions + np.array([0, 0, 40])
    _put(store, node, ("attributes", "nonempty_chunks", 0), value)
    vectors.move_vertices(store, wanted)
    assert sorted(vectors.read_points(store).positions.tolist()) == sorted(wanted.tolist())
    assert not any(each.place.startswith("0/") for each in vectors.validate(store).faults)


def test_values_of_links_that_are_lost_do_not_stop_repair() -> None:
    store = store_of("graph")
    node = next(key for key in sorted(store.list()) if key.startswith("0/links/0/+") and key.endswith("zarr.json"))
    store.erase(node)
    for dry_run in (True, False):
        assert vectors.repair(store, dry_run=dry_run).actions == ()
    assert vectors.validate(store).errors


@pytest.mark.parametrize(
    ("kind", "node"),
    [
        ("graph", "0/link_fragments"),
        ("mesh", "0/link_fragments"),
        ("graph", "0/object_attributes/size"),
        ("polylines", "0/object_attributes/name"),
    ],
)
@pytest.mark.parametrize("change", ["move", "delete"])
def test_changes_that_damage_stops_are_not_agreed_on(kind: str, node: str, change: str) -> None:
    store = store_of(kind, shard_shape=2, compressor="zstd")
    rows = len(vectors.read_points(store))
    for key in sorted(store.list()):
        if key.startswith(f"{node}/c/"):
            data = bytes(store.get(key) or b"")
            store.set(key, data[: min(100, len(data) // 2)])
    before = values(store)
    try:
        if change == "move":
            vectors.move_vertices(store, positions()[:rows] + 2)
        else:
            vectors.delete(store, object_ids=[10])
    except CorruptionError:
        assert values(store) == before
    vectors.repair(store)
    assert "zardine_log" not in json.loads(bytes(store.get("0/zarr.json") or b""))["attributes"]


def test_a_shard_without_a_cell_that_is_changed_stops_an_append_if_it_is_damaged() -> None:
    store = MemoryStore()
    vectors.write_points(store, [[1, 1, 1], [75, 1, 1]], chunk_shape=20, shard_shape=2, checksum=False)
    for key in sorted(store.list()):
        if key.startswith("0/vertex_fragments/c/"):
            store.set(key, bytes(store.get(key) or b"")[:100])
    before = values(store)
    with pytest.raises(CorruptionError, match="too few for its index"):
        vectors.append_points(store, [[21, 1, 1]])
    assert values(store) == before


def test_a_shard_that_is_damaged_since_it_was_read_stops_an_append(tmp_path: Path) -> None:
    """What a process knows of a shard in a local folder does not stand for what is stored now."""
    path = str(tmp_path / "a.zv")
    vectors.write_points(path, [[1, 1, 1], [75, 1, 1]], chunk_shape=20, shard_shape=2)
    vectors.append_points(path, [[2, 1, 1]])
    for file in sorted((tmp_path / "a.zv/0/vertex_fragments/c").rglob("*")):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:20])
    before = (tmp_path / "a.zv/0/zarr.json").read_bytes()
    with pytest.raises(CorruptionError, match="too few for its index"):
        vectors.append_points(path, [[21, 1, 1]])
    assert (tmp_path / "a.zv/0/zarr.json").read_bytes() == before


@pytest.mark.parametrize("name", ["1" * 5000, "f4,,", ","])
def test_types_that_numpy_reads_as_numbers_of_python(name: str) -> None:
    store = store_of("graph")
    _put(store, "0/vertex_attributes/n", ("attributes", "dtype"), name)
    with pytest.raises(CorruptionError):
        vectors.read_graph(store)
    assert vectors.validate(store).errors
