"""Groups: making, moving, copying and erasing nodes."""

import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.errors import ContainsArrayError, ContainsGroupError, MetadataError, NodeNotFoundError, ReadOnlyError
from zardine.metadata import ArrayMetadata, GroupMetadata
from zardine.storage import LocalStore, MemoryStore, WrapperStore

DATA = np.arange(1, 13, dtype="i4").reshape(3, 4)


@pytest.fixture(params=["memory", "local"])
def store(request: Any, tmp_path: Path) -> Any:
    return MemoryStore() if request.param == "memory" else LocalStore(tmp_path)


@pytest.fixture
def root(store: Any) -> zardine.Group:
    group = zardine.create_group(store, attributes={"title": "root"})
    group.create_array("a", data=DATA, chunks=(2, 2), attributes={"unit": "m"})
    group.create_array("g/h/b", data=DATA, chunks=(1, 2), shards=(3, 4), compressors=None)
    return group


def paths(group: zardine.Group) -> list[str]:
    return [path for path, _ in group.members(max_depth=None)]


def array_metadata(**arguments: Any) -> ArrayMetadata:
    return zardine.create_array(None, **{"shape": (2,), "dtype": "i4", **arguments}).metadata


def test_members(root: zardine.Group) -> None:
    assert paths(root) == ["a", "g", "g/h", "g/h/b"]
    assert [path for path, _ in root.members()] == ["a", "g"]
    assert [path for path, _ in root.members(max_depth=1)] == ["a", "g", "g/h"]
    assert (len(root), root.nmembers(), root.nmembers(max_depth=None)) == (2, 2, 4)
    assert (list(root), list(root.array_keys()), list(root.group_keys())) == (["a", "g"], ["a"], ["g"])
    assert [array.path for array in root.array_values()] == ["a"]
    assert [group.path for group in root.group_values()] == ["g"]
    assert [name for name, _ in root.items()] == ["a", "g"]
    assert [type(node) for node in root.values()] == [zardine.Array, zardine.Group]
    for path in ("a", "/a", "g", "g/h", "g/h/b", "/g//h/b/"):
        assert path in root
        assert root[path].name == "/" + path.strip("/").replace("//", "/")
    for path in ("", "/"):
        assert path in root
        assert root[path] == root
    for path in ("b", "g/b", "a/x", "..", "g/../a", "__x"):
        assert path not in root
        assert root.get(path, 5) == 5
    with pytest.raises(KeyError):
        root["b"]
    with pytest.raises(ContainsGroupError):
        root.get_array("g")
    with pytest.raises(ContainsArrayError):
        root.get_group("a")


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("path", ["", "/", "//"])
def test_a_group_looks_for_itself_in_the_store(path: str, zarr_format: int) -> None:
    root = zardine.create_group({}, zarr_format=zarr_format, attributes={"kind": "table"})
    other = zardine.open_group(root.store)
    other.attrs["kind"] = "image"
    assert root[path].attrs["kind"] == "image"
    root.store.clear()
    assert path not in root
    assert root.get(path) is None
    with pytest.raises(KeyError):
        root[path]
    assert root.require_group(path).metadata.zarr_format == zarr_format
    assert dict(root[path].attrs) == {}
    root.create_array("a", shape=1, dtype="u1")
    assert list(root.require_group(path, overwrite=True)) == []
    zardine.create_array(root.store, shape=1, dtype="u1", overwrite=True)
    with pytest.raises(TypeError, match="an array"):
        root.require_group(path)


def test_erasing(root: zardine.Group) -> None:
    del root["g/h"]
    assert paths(root) == ["a", "g"]
    assert not [key for key in root.store.list() if key.startswith("g/h")]
    with pytest.raises(KeyError):
        del root["nothing"]
    del root["a"]
    assert paths(root) == ["g"]


def test_assigning(root: zardine.Group) -> None:
    root["new"] = [1, 2, 3]
    root["a"] = np.zeros(2)
    root["g/x/y"] = root["g/h/b"]
    assert root["new"][...].tolist() == [1, 2, 3]
    assert root["a"].shape == (2,)
    assert root["g/x/y"].shards == (3, 4)
    assert (root["g/x/y"][...] == DATA).all()


@pytest.mark.parametrize(
    "overwrite",
    [
        lambda root: root.__setitem__("a", root["a"]),
        lambda root: zardine.from_array(root.store, name="a", data=root["a"], overwrite=True),
        lambda root: zardine.create_array(root.store, name="g", data=root["g/h/b"], overwrite=True),
        lambda root: zardine.copy(root["a"], root, if_exists="replace"),
        lambda root: zardine.copy(root["g/h/b"], root, name="g", if_exists="replace"),
        lambda root: zardine.save_array(root.store, root["a"], path="a", overwrite=True),
        lambda root: zardine.save_group(root.store, path="g", x=root["g/h/b"]),
        lambda root: zardine.array(root["a"], store=root.store, path="a", overwrite=True, chunks=(1, 1)),
    ],
)
def test_an_array_is_not_replaced_by_a_copy_of_itself_that_would_be_empty(root: zardine.Group, overwrite: Any) -> None:
    with pytest.raises(ValueError, match="erased first"):
        overwrite(root)
    assert paths(root) == ["a", "g", "g/h", "g/h/b"]
    assert (root["a"][...] == DATA).all()
    assert (root["g/h/b"][...] == DATA).all()
    root["a"] = root["a"][...]
    assert (root["a"][...] == DATA).all()


def test_moving(root: zardine.Group) -> None:
    before = root["g/h/b"].metadata
    root.move("g", "k/l")
    assert paths(root) == ["a", "k", "k/l", "k/l/h", "k/l/h/b"]
    assert root["k/l/h/b"].metadata == before
    assert (root["k/l/h/b"][...] == DATA).all()
    assert not [key for key in root.store.list() if key.startswith("g")]
    root["k"].move("l/h/b", "c")
    assert (root["k/c"][...] == DATA).all()


@pytest.mark.parametrize(
    ("source", "dest", "error"),
    [
        ("a", "g", ContainsGroupError),
        ("g", "a", ContainsArrayError),
        ("g", "g", ValueError),
        ("g", "g/h/x", ValueError),
        ("g", "a/x", ContainsArrayError),
        ("nothing", "x", KeyError),
        ("a", "", ValueError),
    ],
)
def test_moves_that_are_refused_change_nothing(
    root: zardine.Group, source: str, dest: str, error: type[Exception]
) -> None:
    before = list(root.store.list())
    with pytest.raises(error):
        root.move(source, dest)
    assert list(root.store.list()) == before


def test_require(root: zardine.Group) -> None:
    assert root.require_group("g") == root["g"]
    assert root.require_group("new/inner").path == "new/inner"
    assert [group.path for group in root.require_groups("p", "g")] == ["p", "g"]
    with pytest.raises(TypeError, match="an array, not a group"):
        root.require_group("a")
    assert root.require_array("a", shape=(3, 4), dtype="i4") == root["a"]
    assert root.require_array("a", shape=(3, 4), dtype="i8") == root["a"]
    assert root.require_dataset("z", shape=5, dtype="f4").shape == (5,)
    for wrong in ({"shape": (3, 5)}, {"shape": (3, 4), "dtype": "i2"}, {"shape": (3, 4), "dtype": "i8", "exact": True}):
        with pytest.raises(TypeError):
            root.require_array("a", **wrong)
    with pytest.raises(TypeError, match="a group, not an array"):
        root.require_array("g", shape=(1,))


def test_create_hierarchy(store: Any) -> None:
    nodes = {"x/y/array": array_metadata(), "x/group": GroupMetadata(attributes={"a": 1}), "/z/": array_metadata()}
    made = dict(zardine.create_hierarchy(store=store, nodes=nodes))
    assert list(made) == ["", "x", "x/group", "x/y", "x/y/array", "z"]
    assert paths(zardine.open_group(store)) == ["x", "x/group", "x/y", "x/y/array", "z"]
    assert made["x/group"].attrs.asdict() == {"a": 1}
    with pytest.raises(ContainsArrayError):
        list(zardine.create_hierarchy(store=store, nodes={"z": array_metadata()}))


def test_create_hierarchy_over_what_is_there(store: Any) -> None:
    root = zardine.create_group(store, attributes={"kept": 1})
    root.create_array("g/old", data=DATA)
    root.create_array("g/other", data=DATA)
    for _ in range(2):
        nodes = {"g/old": array_metadata(shape=(5,))}
        assert "g/old" in dict(zardine.create_hierarchy(store=store, nodes=nodes, overwrite=True))
        assert paths(zardine.open_group(store)) == ["g", "g/old", "g/other"]
    assert zardine.open_group(store).attrs.asdict() == {"kept": 1}
    assert root["g/old"].shape == (5,)
    assert root["g/old"].nchunks_initialized == 0


def test_create_hierarchy_below_an_array_is_refused(root: zardine.Group) -> None:
    with pytest.raises(ValueError, match="which is to be an array"):
        list(zardine.create_hierarchy(store=None, nodes={"a": array_metadata(), "a/b": GroupMetadata()}))
    with pytest.raises(ContainsArrayError):
        list(root.create_hierarchy({"a/b": GroupMetadata()}))
    made = dict(root["g"].create_hierarchy({"n/m": array_metadata()}))
    assert "n/m" in made
    assert root["g/n/m"].shape == (2,)


def test_copy(root: zardine.Group) -> None:
    dest = zardine.create_group(None)
    lines: list[str] = []
    assert zardine.copy(root["a"], dest, log=lines.append) == (1, 0, DATA.nbytes)
    assert len(lines) == 1
    assert (dest["a"][...] == DATA).all()
    assert dest["a"].metadata == root["a"].metadata
    zardine.copy(root["a"], dest, name="other", chunks=(3, 4), without_attrs=True)
    assert dest["other"].chunks == (3, 4)
    assert dest["other"].attrs.asdict() == {}
    with pytest.raises(ContainsArrayError):
        zardine.copy(root["a"], dest)
    assert zardine.copy(root["a"], dest, if_exists="skip") == (0, 1, 0)
    dest["a"][0] = 100
    assert zardine.copy(root["a"], dest, if_exists="skip_initialized") == (0, 1, 0)
    with pytest.raises(TypeError, match="if_exists='replace' replaces"):
        zardine.copy(root["a"], dest, overwrite=True)
    zardine.copy(root["a"], dest, if_exists="replace")
    assert (dest["a"][...] == DATA).all()
    assert zardine.copy(root["g"], dest, name="dry", dry_run=True)[0] == 3
    assert "dry" not in dest
    assert zardine.copy(root["g"], dest)[0] == 3
    assert paths(dest["g"]) == ["h", "h/b"]
    assert dest["g/h/b"].metadata == root["g/h/b"].metadata
    assert zardine.copy(root["g"], dest, name="shallow", shallow=True)[0] == 1
    with pytest.raises(ValueError, match="if_exists"):
        zardine.copy(root["a"], dest, if_exists="maybe")


def test_a_group_is_not_copied_into_itself(root: zardine.Group) -> None:
    for source, dest in ((root, root["g"]), (root["g"], root["g/h"])):
        with pytest.raises(ValueError, match="into itself"):
            zardine.copy(source, dest, name="copy")
    assert paths(root) == ["a", "g", "g/h", "g/h/b"]


def test_copy_all(root: zardine.Group) -> None:
    dest = zardine.create_group(None)
    assert zardine.copy_all(root, dest)[0] == 4
    assert paths(dest) == paths(root)
    assert dest.attrs.asdict() == {"title": "root"}
    assert (dest["g/h/b"][...] == DATA).all()


def test_copy_store(root: zardine.Group) -> None:
    target = MemoryStore()
    count = len(list(root.store.list()))
    copied, skipped, nbytes = zardine.copy_store(root.store, target)
    assert (copied, skipped) == (count, 0)
    assert nbytes == sum(target.size(key) or 0 for key in target.list())
    assert {key: bytes(target.get(key) or b"") for key in target.list()} == {
        key: bytes(root.store.get(key) or b"") for key in root.store.list()
    }
    with pytest.raises(ContainsArrayError, match="nothing was copied"):
        zardine.copy_store(root.store, target)
    assert zardine.copy_store(root.store, target, if_exists="skip")[:2] == (0, count)
    only = MemoryStore()
    zardine.copy_store(root.store, only, source_path="g", dest_path="z", excludes="/c/", includes="c/0/0$")
    assert sorted(only.list()) == ["z/h/b/c/0/0", "z/h/b/zarr.json", "z/h/zarr.json", "z/zarr.json"]


def test_save_and_load(store: Any) -> None:
    zardine.save(store, DATA, extra=DATA * 2)
    loaded = zardine.load(store)
    assert set(loaded) == {"arr_0", "extra"}
    assert (loaded["extra"] == DATA * 2).all()
    zardine.save_array(store, DATA + 1, path="sub/one", chunks=(1, 4))
    assert (zardine.load(store, path="sub/one") == DATA + 1).all()
    assert (zardine.load(store)["sub"]["one"] == DATA + 1).all()
    with pytest.raises(NodeNotFoundError):
        zardine.load(store, path="nothing")
    with pytest.raises(TypeError):
        zardine.save_group(store, path="bad", x=5)
    with pytest.raises(ValueError, match="at least one"):
        zardine.save_group(store)
    assert "arr_0" in zardine.open_group(store)


def test_read_only_groups_refuse_every_change(root: zardine.Group) -> None:
    group = zardine.open_group(root.store, mode="r")
    before = {key: bytes(root.store.get(key) or b"") for key in root.store.list()}
    for change in (
        lambda: group.create_group("x"),
        lambda: group.create_array("x", shape=(1,), dtype="i4"),
        lambda: group.require_group("x"),
        lambda: group.__setitem__("x", [1]),
        lambda: group.__delitem__("a"),
        lambda: group.move("a", "b"),
        lambda: group.attrs.update(x=1),
        lambda: list(group.create_hierarchy({"x": GroupMetadata()})),
        lambda: group["a"].__setitem__(0, 1),
        lambda: group.zeros_like(name="x", data=DATA),
    ):
        with pytest.raises(ReadOnlyError):
            change()
    assert {key: bytes(root.store.get(key) or b"") for key in root.store.list()} == before


def test_names_that_cannot_be() -> None:
    group = zardine.create_group(None)
    for name in ("", ".", "..", "a/../b", "__reserved", "a/__b", "a\0b"):
        with pytest.raises(ValueError, match="name"):
            group.create_array(name, shape=(1,), dtype="i4")
    assert list(group) == []
    group.create_array("ünï/💧 .x", shape=(1,), dtype="i4")
    assert paths(group) == ["ünï", "ünï/💧 .x"]


def test_nodes_below_arrays_are_refused(root: zardine.Group) -> None:
    with pytest.raises(ContainsArrayError):
        root.create_array("a/b", shape=(1,), dtype="i4")
    with pytest.raises(ContainsArrayError):
        root.create_group("a/b")
    with pytest.raises(ContainsArrayError):
        root.create_group("a")
    with pytest.raises(ContainsGroupError):
        root.create_array("g", shape=(1,), dtype="i4")


def test_copies_keep_where_the_index_lies() -> None:
    array = zardine.create_array(None, data=DATA, chunks=(1, 2), shards={"shape": (3, 4), "index_location": "start"})
    for twin in (zardine.from_array(None, data=array), zardine.zeros_like(array), zardine.empty_like(array)):
        assert twin.codecs == array.codecs
        assert (twin.chunks, twin.shards) == (array.chunks, array.shards)


def test_rectilinear_arrays_are_copied_as_they_are() -> None:
    for arguments in ({"chunks": [[1, 2], [3, 1]]}, {"chunks": (1, 1), "shards": [[1, 2], [3, 1]]}):
        array = zardine.create_array(None, data=DATA, **arguments)
        twin = zardine.from_array(None, data=array)
        assert twin.metadata == array.metadata
        assert (twin[...] == DATA).all()


def test_members_are_those_that_are_stored_when_it_is_their_turn(tmp_path: Path) -> None:
    """Documents of a folder are read many at once; what the caller does in between counts all the same."""
    group = zardine.create_group(tmp_path)
    for number in range(150):
        group.create_array(f"{number:03}", shape=number + 1, dtype="i2", attributes={"number": number})
    group.create_group("older", zarr_format=2)
    group.create_array("older2", shape=3, dtype="i2", zarr_format=2)
    (tmp_path / "implied" / "inner").mkdir(parents=True)
    zardine.create_array(tmp_path / "implied/inner", shape=2, dtype="i2")
    (tmp_path / "no node").mkdir()
    long = group.create_array("long", shape=7, dtype="i2", attributes={"text": "x" * 100_000})
    names = [f"{number:03}" for number in range(150)]
    seen = {}
    for name, node in group.arrays():
        seen[name] = node
        if name == "100":
            del group["101"]
            group["120"].resize(1000)
        if name == "102":
            group["121"].attrs["new"] = True
            shutil.rmtree(tmp_path / "149")
            time.sleep(0.2)
    expected = [*names, "long", "older2"]
    assert list(seen) == [name for name in expected if name not in ("101", "149")]
    arrays = {name: seen[name] for name in names if name in seen}
    assert {name: array.shape for name, array in arrays.items()} == {
        name: (1000,) if name == "120" else (int(name) + 1,) for name in arrays
    }
    assert seen["121"].attrs.asdict() == {"number": 121, "new": True}
    assert seen["long"].attrs == long.attrs
    assert seen["older2"].metadata.zarr_format == 2
    (tmp_path / "050" / "zarr.json").write_text("{")
    walk = iter(group.arrays())
    assert [next(walk)[0] for _ in range(50)] == names[:50]
    with pytest.raises(MetadataError, match="050"):
        next(walk)


def test_a_broken_member_is_not_taken_for_a_missing_one(root: zardine.Group) -> None:
    root.store.set("a/zarr.json", b"{}")
    for look in (lambda: "a" in root, lambda: root.get("a"), lambda: root["a"], lambda: list(root.items())):
        with pytest.raises(zardine.errors.MetadataError):
            look()
    assert root["g/h/b"].shape == (3, 4)


def test_a_node_is_not_moved_to_where_it_is() -> None:
    group = zardine.create_group(MemoryStore())
    group.create_group("a/b")
    for source, dest in (("a", "a"), ("a", "a/b"), ("a", "a/c"), ("a/b", "a/b/c")):
        with pytest.raises(ValueError, match="the same place or below it"):
            group.move(source, dest)
    assert sorted(group.store.list()) == ["a/b/zarr.json", "a/zarr.json", "zarr.json"]


def test_what_is_moved_is_copied_once() -> None:
    copied: list[str] = []

    class NotedStore(WrapperStore):
        def set(self, key: str, value: Any, **kwargs: Any) -> Any:
            copied.append(key)
            return super().set(key, value, **kwargs)

    store = NotedStore(MemoryStore())
    group = zardine.create_group(store)
    group.create_array("a", data=np.arange(4), chunks=(2,))
    copied.clear()
    group.move("a", "b")
    assert sorted(key for key in copied if "/c/" in key) == ["b/c/0", "b/c/1"]
    np.testing.assert_array_equal(group["b"][...], np.arange(4))


def test_a_group_with_damaged_documents_is_erased() -> None:
    """Also where the document is that of a group ``0``, at which writers of a tree take turns."""
    store = MemoryStore()
    group = zardine.create_group(store)
    group.create_group("g/x/0")
    store.set("g/x/0/zarr.json", b"{")
    store.set("g/y/0/zarr.json", b'{"zarr_format": 3, "node_type": "array"}')
    del group["g"]
    assert list(store.list()) == ["zarr.json"]


def test_groups_above_what_is_moved_where_no_document_tells_their_version() -> None:
    store = MemoryStore()
    zardine.create_array(store, name="a", shape=(4,), dtype="i4")
    store.erase("zarr.json")
    zardine.open_group(store, mode="r+").move("a", "b/c")
    assert zardine.open_group(store)["b"].metadata.zarr_format == 3
    assert sorted(store.list()) == ["b/c/zarr.json", "b/zarr.json", "zarr.json"]
