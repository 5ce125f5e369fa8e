"""Consolidated metadata, in the form that zarr-python gives it."""

import json
import warnings
from typing import Any

import pytest

import zardine
from zardine.errors import MetadataError, ZarrUserWarning
from zardine.storage import CountingStore, MemoryStore


def hierarchy() -> MemoryStore:
    store = MemoryStore()
    root = zardine.create_group(store, attributes={"root": True})
    root.create_array("x", shape=(4,), dtype="i2", attributes={"unit": "m"})
    inner = root.create_group("g/h")
    inner.create_array("y", shape=(2, 2), dtype="f4", chunks=(1, 1), shards=(2, 2))
    return store


def document(store: MemoryStore, key: str = "zarr.json") -> dict[str, Any]:
    return json.loads(bytes(store.get(key) or b""))


def test_written_as_zarr_python_writes_it() -> None:
    import zarr

    store = hierarchy()
    zardine.consolidate_metadata(store)
    ours = document(store)["consolidated_metadata"]
    values: dict[str, Any] = {
        key: zarr.core.buffer.cpu.Buffer.from_bytes(bytes(store.get(key) or b"")) for key in store.list()
    }
    other = zarr.storage.MemoryStore(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(other)
    theirs = json.loads(values["zarr.json"].to_bytes())["consolidated_metadata"]
    assert {name: value for name, value in ours.items() if name != "metadata"} == {
        "kind": "inline",
        "must_understand": False,
    }
    assert set(ours["metadata"]) == set(theirs["metadata"]) == {"x", "g", "g/h", "g/h/y"}
    assert ours["metadata"]["g"] == theirs["metadata"]["g"]
    for path in ("x", "g/h/y"):
        mine = ours["metadata"][path]
        assert mine == document(store, f"{path}/zarr.json")
        assert mine.keys() <= theirs["metadata"][path].keys()
        assert all(theirs["metadata"][path][name] == mine[name] for name in mine if name != "codecs")


def test_members_cost_no_request() -> None:
    store = CountingStore(hierarchy())
    zardine.consolidate_metadata(store)
    store.reset()
    group = zardine.open_consolidated(store)
    assert store.reset().requests == 1
    assert [path for path, _ in group.members(max_depth=None)] == ["g", "g/h", "g/h/y", "x"]
    assert group["g/h/y"].shape == (2, 2)
    assert group["g"]["h"]["y"].attrs.asdict() == {}
    assert list(group["g"]) == ["h"]
    assert "g/h" in group
    assert "z" not in group
    assert len(group) == 2
    assert store.counts.requests == 0


def test_groups_without_it() -> None:
    store = hierarchy()
    with pytest.raises(ValueError, match="not consolidated"):
        zardine.open_consolidated(store)
    with pytest.raises(ValueError, match="not consolidated"):
        zardine.open_group(store, use_consolidated=True)


def test_a_group_that_was_opened_past_it_stays_past_it() -> None:
    store = hierarchy()
    zardine.consolidate_metadata(store)
    group = zardine.open_group(store, use_consolidated=False)
    group.create_group("new")
    assert "new" in group
    group.attrs["changed"] = True
    assert "new" in group
    assert "new" not in zardine.open_group(store)
    assert document(store)["consolidated_metadata"]["metadata"].keys() == {"x", "g", "g/h", "g/h/y"}


def test_it_is_made_anew_from_the_nodes_not_from_older_copies() -> None:
    store = hierarchy()
    zardine.consolidate_metadata(store, path="g")
    zardine.consolidate_metadata(store)
    fresh = zardine.open_group(store, path="g", use_consolidated=False)
    fresh.create_array("new", shape=(1,), dtype="i1")
    group = zardine.consolidate_metadata(store)
    assert [path for path, _ in group.members(max_depth=None)] == ["g", "g/h", "g/h/y", "g/new", "x"]
    assert group["g/new"].shape == (1,)


def test_it_survives_changes_of_attributes() -> None:
    store = hierarchy()
    before = zardine.consolidate_metadata(store).metadata.to_dict()["consolidated_metadata"]
    zardine.open_group(store).attrs["more"] = 1
    assert document(store)["consolidated_metadata"] == before
    assert list(zardine.open_group(store)) == ["g", "x"]


def test_wrong_members_are_named() -> None:
    store = hierarchy()
    zardine.consolidate_metadata(store)
    wrong = document(store)
    del wrong["consolidated_metadata"]["metadata"]["x"]["shape"]
    store.set("zarr.json", json.dumps(wrong).encode())
    store.erase("x/zarr.json")
    with pytest.raises(MetadataError, match=r"/x is invalid\n  - shape: the member is missing"):
        zardine.open_group(store)["x"]


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_paths_with_slashes_at_their_ends(zarr_format: int) -> None:
    """Some programs write the paths of members as absolute ones."""
    store = MemoryStore()
    root = zardine.create_group(store, zarr_format=zarr_format)
    root.create_array("g/x", shape=(4,), dtype="i2", attributes={"unit": "m"})
    zardine.consolidate_metadata(store)
    key = "zarr.json" if zarr_format == 3 else ".zmetadata"
    changed = document(store, key)
    of = changed["consolidated_metadata"] if zarr_format == 3 else changed
    of["metadata"] = {
        f"/{path}/" if zarr_format == 3 else f"/{path}" if "/" in path else path: node
        for path, node in of["metadata"].items()
    }
    assert any(path.startswith("/") for path in of["metadata"])
    store.set(key, json.dumps(changed).encode())
    group = zardine.open_consolidated(store)
    assert [path for path, _ in group.members(max_depth=None)] == ["g", "g/x"]
    assert group["g/x"].shape == group["g"]["x"].shape == (4,)
    assert dict(group["/g/x/"].attrs) == {"unit": "m"}


@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("path", ["..", ".", "a/../x", "a//b", "a\0b", "g/."])
def test_paths_that_are_none(zarr_format: int, path: str) -> None:
    store = MemoryStore()
    zardine.create_group(store, zarr_format=zarr_format).create_array("x", shape=(4,), dtype="i2")
    zardine.consolidate_metadata(store)
    key = "zarr.json" if zarr_format == 3 else ".zmetadata"
    changed = document(store, key)
    nodes = (changed["consolidated_metadata"] if zarr_format == 3 else changed)["metadata"]
    own = "x" if zarr_format == 3 else "x/.zarray"
    nodes[path + own[1:]] = nodes[own]
    store.set(key, json.dumps(changed).encode())
    with pytest.warns(ZarrUserWarning, match="consolidated metadata of .* are broken"):
        assert list(zardine.open_group(store)) == ["x"]


@pytest.mark.parametrize("path", ["__x", "...", "g/__x"])
def test_names_that_are_reserved_are_not_listed(path: str) -> None:
    """As where the metadata is not consolidated: all that is listed can be opened."""
    store = hierarchy()
    zardine.consolidate_metadata(store)
    changed = document(store)
    nodes = changed["consolidated_metadata"]["metadata"]
    nodes[path] = nodes["x"]
    store.set("zarr.json", json.dumps(changed).encode())
    group = zardine.open_group(store)
    assert [name for name, _ in group.members(max_depth=None)] == ["g", "g/h", "g/h/y", "x"]
    assert path not in group
    group.attrs["k"] = 1
    assert path in document(store)["consolidated_metadata"]["metadata"]  # what others wrote stays


def test_a_member_is_an_object() -> None:
    store = hierarchy()
    zardine.consolidate_metadata(store)
    changed = document(store)
    changed["consolidated_metadata"]["metadata"]["x"] = 5
    store.set("zarr.json", json.dumps(changed).encode())
    with pytest.warns(ZarrUserWarning, match=r"metadata\.x"):
        assert zardine.open_group(store)["x"].shape == (4,)


BROKEN_V2: dict[str, Any] = {
    "no JSON": b"{",
    "empty": b"",
    "no text": b"\xff\xfe",
    "a list": [],
    "no metadata": {"zarr_consolidated_format": 1},
    "a list of metadata": {"zarr_consolidated_format": 1, "metadata": []},
    "another format": {"zarr_consolidated_format": 2, "metadata": {".zgroup": {"zarr_format": 2}}},
    "no group": {"zarr_consolidated_format": 1, "metadata": {"x/.zarray": {}}},
    "a number for a document": {"zarr_consolidated_format": 1, "metadata": {".zgroup": {}, "x/.zarray": 5}},
    "a key of periods": {"zarr_consolidated_format": 1, "metadata": {".zgroup": {}, "../x/.zarray": {}}},
    "below an array": {
        "zarr_consolidated_format": 1,
        "metadata": {".zgroup": {}, "x/.zarray": {"shape": []}, "x/y/.zarray": {"shape": []}},
    },
    "too deep": b'{"metadata":' + b"[" * 1000 + b"]" * 1000 + b"}",
}
BROKEN_V3: dict[str, Any] = {
    "a number": 5,
    "a list": [],
    "no metadata": {"kind": "inline", "must_understand": False},
    "a list of metadata": {"kind": "inline", "must_understand": False, "metadata": []},
    "another kind": {"kind": "elsewhere", "must_understand": False, "metadata": {}},
    "a number for a document": {"kind": "inline", "must_understand": False, "metadata": {"x": 5}},
    "a path of periods": {"kind": "inline", "must_understand": False, "metadata": {"../x": {}}},
}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("broken", [{}, {"shape": "x"}])
def test_a_broken_document_in_the_copy_does_not_close_its_node(version: int, broken: Any) -> None:
    store = MemoryStore()
    root = zardine.create_group(store, zarr_format=version)
    root.create_array("x", shape=(4,), dtype="i2", fill_value=7)
    zardine.consolidate_metadata(store)
    key, name = (".zmetadata", "x/.zarray") if version == 2 else ("zarr.json", "x")
    copy = json.loads(bytes(store.get(key) or b""))
    (copy if version == 2 else copy["consolidated_metadata"])["metadata"][name] = broken
    store.set(key, json.dumps(copy).encode())
    group = zardine.open_group(store)
    with pytest.warns(ZarrUserWarning, match="consolidated metadata of .* are broken"):
        assert group["x"][0] == 7
    with pytest.warns(ZarrUserWarning, match="consolidated metadata of .* are broken"):
        assert dict(group)["x"].shape == (4,)
    store.set("x/zarr.json" if version == 3 else "x/.zarray", b"{}")
    with pytest.raises(MetadataError, match=r"the consolidated document of .*/x is invalid"):
        group["x"]


@pytest.mark.parametrize(
    ("version", "broken"),
    [*((2, each) for each in BROKEN_V2.values()), *((3, each) for each in BROKEN_V3.values())],
    ids=[*(f"v2 {each}" for each in BROKEN_V2), *(f"v3 {each}" for each in BROKEN_V3)],
)
def test_a_broken_copy_does_not_close_the_group(version: int, broken: Any) -> None:
    """The documents of the nodes are read, one warning says so, ``verify`` reports a fault, and it is made anew."""
    store = MemoryStore()
    root = zardine.create_group(store, zarr_format=version, attributes={"a": 1})
    root.create_array("x", shape=(4,), dtype="i2", fill_value=7)
    root.create_group("g").create_array("y", shape=(2,), dtype="i2")
    zardine.consolidate_metadata(store)
    key = ".zmetadata" if version == 2 else "zarr.json"
    if version == 3:
        broken = {**document(store), "consolidated_metadata": broken}
    store.set(key, broken if isinstance(broken, bytes) else json.dumps(broken).encode())
    for use in (None, False):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            group = zardine.open_group(store, use_consolidated=use)
            assert group["x"][0] == 7
            assert group["g/y"].shape == (2,)
            assert sorted(group) == ["g", "x"]
            assert group.attrs["a"] == 1
        assert len(told) == (use is None), [str(each.message) for each in told]
    with pytest.raises(MetadataError, match=r"are broken: zardine\.consolidate_metadata makes them anew"):
        zardine.open_consolidated(store)
    report = zardine.verify(store)
    assert {(fault.kind, fault.key) for fault in report.faults} == {("consolidated", key)}
    group.attrs["b"] = 2
    if version == 2:
        assert bytes(store.get(key) or b"") == (broken if isinstance(broken, bytes) else json.dumps(broken).encode())
    else:
        assert "consolidated_metadata" not in document(store)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zardine.consolidate_metadata(store)
        again = zardine.open_consolidated(store)
    assert dict(again.attrs) == {"a": 1, "b": 2}
    assert [path for path, _ in again.members(max_depth=None)] == ["g", "g/y", "x"]
    assert zardine.verify(store).ok


@pytest.mark.parametrize("version", [2, 3])
def test_a_broken_copy_is_made_anew_by_convert(version: int) -> None:
    store = MemoryStore()
    zardine.create_group(store, zarr_format=version).create_array("x", shape=(4,), dtype="i2")
    zardine.consolidate_metadata(store)
    if version == 2:
        store.set(".zmetadata", b"{")
    else:
        store.set("zarr.json", json.dumps({**document(store), "consolidated_metadata": 5}).encode())
    for target in (2, 3):
        made = MemoryStore()
        zardine.convert(store, made, zarr_format=target)
        assert zardine.verify(made).ok
        assert list(zardine.open_consolidated(made)) == ["x"]


@pytest.mark.parametrize("place", ["copy", "document", "both", "neither"])
@pytest.mark.parametrize("version", [2, 3])
def test_a_consolidated_nan_is_that_of_the_document(version: int, place: str) -> None:
    """Bare words and the texts that zardine stores for them say the same, at any depth."""
    store = MemoryStore()
    root = zardine.create_group(store, zarr_format=version)
    for node in (root.create_array("x", shape=(4,), dtype="f4", fill_value=float("nan")), root.create_group("g")):
        node.attrs.update({"a": "NaN", "b": [1, {"c": ["-Infinity", "Infinity"]}]})
    zardine.consolidate_metadata(store)
    copy = ".zmetadata" if version == 2 else "zarr.json"
    keys = [key for key in store.list() if key != copy]
    for key in {"copy": [copy], "document": keys, "both": [copy, *keys], "neither": []}[place]:
        text = bytes(store.get(key) or b"")
        for word in (b"-Infinity", b"Infinity", b"NaN"):
            text = text.replace(b'"%b"' % word, word)
        if version == 3:
            text = text.replace(b'"fill_value": NaN', b'"fill_value": "NaN"')
        store.set(key, text)
    report = zardine.verify(store)
    assert report.faults == ()
    assert {note.kind for note in report.notes} <= {"nonstandard"}
    text = bytes(store.get(copy) or b"")
    for word in (b'"NaN"', b"NaN"):
        text = text.replace(word, b"0")
    store.set(copy, text)
    assert {fault.kind for fault in zardine.verify(store).faults} >= {"consolidated"}
