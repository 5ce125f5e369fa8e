"""LocalStore: nothing leads out of the base directory, odd files are no values, errors are clear."""

from __future__ import annotations

import ctypes
import os
import pickle
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import zardine
from zardine.errors import ConditionFailedError, ConversionError, InvalidKeyError, StoreError
from zardine.kernel import KERNEL
from zardine.storage import LocalStore
from zardine.stores.base import Condition
from zardine.stores.local.base_directory import BaseDirectory


@pytest.fixture
def outside(tmp_path):
    directory = tmp_path / "outside"
    (directory / "sub").mkdir(parents=True)
    (directory / "secret").write_bytes(b"secret")
    (directory / "sub" / "secret").write_bytes(b"secret")
    return directory


@pytest.fixture
def store(tmp_path, outside):
    store = LocalStore(tmp_path / "root")
    store.set("in/file", b"inside")
    return store


def tree(directory):
    return sorted(
        (os.path.join(above, name), os.lstat(os.path.join(above, name)).st_mtime_ns)
        for above, directories, files in os.walk(directory)
        for name in directories + files
    )


def everything(store, key):
    return [
        lambda: store.read(key),
        lambda: store.exists(key),
        lambda: store.version(key),
        lambda: store.files.open(key),
        lambda: store.set(key, b"x", condition=Condition(None)),
        lambda: store.set_partial_values([(key, 0, b"x")]),
    ]


def test_links_to_directories_outside(store, outside):
    for target in (str(outside), "../outside", "in/../../outside"):
        before = tree(outside)
        os.symlink(target, store.root / "out")
        for key in ("out/secret", "out/sub/secret"):
            for call in everything(store, key):
                with pytest.raises(InvalidKeyError, match="out of the store's base"):
                    call()
        for key in ("out/secret", "out/new", "out/sub/new", "out/newdir/new"):
            with pytest.raises(InvalidKeyError):
                store.set(key, b"x")
        for call in (
            lambda: store.erase("out/secret"),
            lambda: store.erase_prefix("out/sub/"),
            lambda: store.list_dir("out/"),
            lambda: list(store.list_prefix("out/sub/")),
            lambda: store.lock("out/new/key").__enter__(),
        ):
            with pytest.raises(InvalidKeyError):
                call()
        assert list(store.list()) == ["in/file"]
        assert store.list_dir("") == ([], ["in/"])
        assert tree(outside) == before
        store.erase_prefix("out/")  # the link itself lies inside
        assert tree(outside) == before
        assert not os.path.lexists(store.root / "out")


def test_links_to_files_outside(store, outside):
    os.symlink(outside / "secret", store.root / "in" / "link")
    for call in everything(store, "in/link"):
        with pytest.raises(InvalidKeyError):
            call()
    assert list(store.list()) == ["in/file"]
    store.set("in/link", b"mine")
    assert not (store.root / "in" / "link").is_symlink()
    assert (outside / "secret").read_bytes() == b"secret"
    assert store.get("in/link") == b"mine"
    os.symlink(outside / "secret", store.root / "in" / "other")
    store.erase("in/other")
    store.erase_prefix("")
    assert (outside / "secret").read_bytes() == b"secret"


def test_links_out_in_an_erased_tree(store, outside):
    os.symlink(outside, store.root / "in" / "d")
    os.symlink(outside / "secret", store.root / "in" / "f")
    before = tree(outside)
    store.erase_prefix("in/")
    assert tree(outside) == before
    assert os.listdir(store.root) == []


def test_dangling_links(store, outside):
    os.symlink(outside / "new", store.root / "in" / "dangling")
    os.symlink(outside / "newdir", store.root / "dangling")
    os.symlink("loop", store.root / "loop")
    for read in (store.get, store.version, lambda key: store.read_up_to(key, 5)):
        with pytest.raises(StoreError, match=r"cannot read key 'in/dangling' of .*: it is a link that leads nowhere"):
            read("in/dangling")
    nowhere = r"cannot read key 'dangling/{}' of .*: '.*/dangling' is a link that leads nowhere"
    for name in ("x", "x/y"):
        with pytest.raises(StoreError, match=nowhere.format(name)):
            store.get(f"dangling/{name}")
    assert list(store.list()) == ["in/file"]
    for key in ("dangling/x", "dangling/x/y", "loop/x"):
        with pytest.raises(StoreError) as error:
            store.set(key, b"x")
        assert ("leads nowhere" in str(error.value)) == key.startswith("dangling")
    with pytest.raises(StoreError):
        store.get("loop/x")
    with pytest.raises(StoreError):
        store.set("in/dangling", b"mine", condition=Condition(None))
    store.set("in/dangling", b"mine")
    assert store.get("in/dangling") == b"mine"
    assert sorted(os.listdir(outside)) == ["secret", "sub"]


def test_what_seems_missing(store, outside):
    """A look that costs nothing never says of what can be read, or would be refused, that it is not there."""
    os.symlink(outside / "secret", store.root / "out")
    os.symlink("nowhere", store.root / "dangling")
    keys = ("in/file", "in/none", "none/file", "none", "out", "dangling")
    assert [store.seems_missing(key) for key in keys] == [False, True, True, True, False, True]
    assert store.seems_missing()
    assert store.seems_missing(*keys[1:4])
    assert not store.seems_missing(*keys[:4])
    with pytest.raises(InvalidKeyError):
        store.exists("out")
    with pytest.raises(InvalidKeyError):
        store.seems_missing("../outside/secret")


@pytest.mark.parametrize("folder", ["", "in/"])
def test_what_lies_beside_a_value_is_looked_at_with_it(store, outside, folder):
    """It says what reading and looking say one after the other; of a link out nobody says that it is missing."""
    os.symlink("nowhere", store.root / folder / "dangling")
    os.symlink(outside / "secret", store.root / folder / "out")
    store.set(f"{folder}value", b"value")
    for names in ((), ("none",), ("none", "dangling"), ("none", "out"), ("value",), ("none", "value"), ("none/x",)):
        keys = [folder + name for name in names]
        for most in (5, 4):
            found = store.read_and_look(f"{folder}value", most, *keys)
            assert found == (store.read_up_to(f"{folder}value", most), store.seems_missing(*keys))
        assert store.read_and_look(f"{folder}none", 5, *keys) == (None, False)
    with pytest.raises(InvalidKeyError):
        store.read_and_look(f"{folder}out", 9, f"{folder}none")
    with pytest.raises(InvalidKeyError):
        store.read_and_look(f"{folder}value", 9, "../outside/secret")


def test_a_subclass_sees_what_is_read_and_looked_at_together(store):
    seen = []

    class Seeing(LocalStore):
        def read_up_to(self, key, most):
            seen.append(key)
            return super().read_up_to(key, most)

        def seems_missing(self, *keys):
            seen.append(keys)
            return super().seems_missing(*keys)

    seeing = Seeing(store.root)
    reading, is_alone = seeing.read_and_look("in/file", 9, "in/a", "in/b")
    assert bytes(reading.parts[0]) == b"inside"
    assert is_alone
    assert seen == ["in/file", ("in/a", "in/b")]


def test_small_files_read_at_once_lie_in_the_store(store, outside):
    """Links that stay inside are followed; whatever is no usual file is left to who says what it is."""
    os.symlink("file", store.root / "in" / "link")
    os.symlink(outside / "secret", store.root / "in" / "out")
    os.symlink(outside, store.root / "folder")
    os.symlink("circle", store.root / "in" / "circle")
    os.mkfifo(store.root / "in" / "fifo")
    keys = ["in/file", "in/link", "in/out", "folder/secret", "in/circle", "in/fifo", "in", "in/none", "in/file/x"]
    found = [value and bytes(value) for value in store.read_small(keys, 6)]
    assert found == [*([b"inside"] * 2 if KERNEL is not None else [None] * 2), *[None] * 7]
    assert list(store.read_small(["in/file", "in/link"], 5)) == [None, None]
    assert list(store.read_small(["in/file", "../outside/secret"], 6))[1] is None
    assert list(LocalStore(store.root / "none").read_small(keys, 6)) == [None] * 9


def test_small_files_that_change_before_their_turn_are_read_again(store):
    keys = [f"s/{number}" for number in range(200)]
    for key in keys:
        store.set(key, b"old")
    other = LocalStore(store.root)
    for change, expected in (
        (lambda: other.set(keys[180], b"new"), b"new"),
        (lambda: store.erase(keys[180]), None),
        (lambda: store.set(keys[180], b"again"), b"again"),
        (lambda: store.erase_prefix("s/"), None),
    ):
        values = store.read_small(keys, 9)
        for _ in range(150):
            next(values)
        change()
        rest = list(values)
        assert len(rest) == 50
        found = rest[30] if KERNEL is not None else store.get(keys[180])
        assert (found and bytes(found)) == expected


def test_small_files_read_a_moment_ago_are_read_again(store):
    keys = [f"s/{number}" for number in range(200)]
    for key in keys:
        store.set(key, b"old")
    values = store.read_small(keys, 9)
    for _ in range(150):
        next(values)
    Path(store.root, keys[180]).write_bytes(b"new")  # by another program
    time.sleep(0.2)
    assert list(values)[30] in (b"new", None)


def test_a_subclass_sees_small_values_that_are_read(store):
    class Seeing(LocalStore):
        def read(self, key, ranges=((0, None),)):
            return super().read(key, ranges)

    assert list(Seeing(store.root).read_small(["in/file"], 9)) == [None]


def test_files_directly_in_the_root_are_not_asked_where_they_lie(store, outside, monkeypatch):
    """Only a link leads out, and such a file is opened as none."""
    store.set("file", b"inside")
    os.symlink("in/file", store.root / "link")
    os.symlink(outside / "secret", store.root / "out")
    asked = []
    real = os.readlink
    monkeypatch.setattr(os, "readlink", lambda path, **options: asked.append(path) or real(path, **options))
    assert store.get("file") == b"inside"
    assert asked == []
    assert store.get("link") == b"inside"
    with pytest.raises(InvalidKeyError):
        store.get("out")


@pytest.mark.parametrize("folder", ["", "g/"])
def test_files_read_at_once_are_those_that_are_read_by_parts(store, outside, folder):
    """Documents are read by one call of the kernel: of what is no usual file it says what any other reading says."""
    place = Path(store.root, folder)
    place.mkdir(exist_ok=True)
    (place / "value").write_bytes(b"value")
    (place / "empty").write_bytes(b"")
    (place / "link").symlink_to("value")
    (place / "nowhere").symlink_to("none")
    (place / "circle").symlink_to("circle")
    (place / "out").symlink_to(outside)
    (place / "folder").mkdir()
    os.mkfifo(place / "fifo")
    os.utime(place / "empty", ns=(2**62, 2**62))

    def what(key, most):
        try:
            by_parts, at_once = store.read(key), store.read_up_to(key, most)
        except StoreError as error:
            for read in (store.read, lambda key: store.read_up_to(key, most)):
                with pytest.raises(type(error)):
                    read(key)
            return type(error)
        if by_parts is None:
            assert at_once is None
            return None
        assert (at_once.version, at_once.size) == (by_parts.version, by_parts.size)
        return b"".join(map(bytes, at_once.parts)), len(at_once.parts)

    names = ["value", "empty", "link", "nowhere", "circle", "out", "out/secret", "folder", "fifo", "none", "value/x"]
    found = {name: what(f"{folder}{name}", 5) for name in names}
    assert found == {
        "value": (b"value", 1),
        "empty": (b"", 1),
        "link": (b"value", 1),
        **dict.fromkeys(["folder", "fifo", "none", "value/x"]),
        **dict.fromkeys(["nowhere", "circle"], StoreError),
        "out": InvalidKeyError,
        "out/secret": InvalidKeyError,
    }
    assert [what(f"{folder}{name}", 4) for name in ("value", "link", "empty")] == [(b"", 0), (b"", 0), (b"", 1)]


def test_links_inside_are_followed(store):
    root = store.root
    os.symlink("in", root / "relative")
    os.symlink(root / "in", root / "absolute")
    os.symlink("file", root / "in" / "same")
    for key in ("relative/file", "absolute/file", "in/same", "relative/same"):
        assert store.get(key) == b"inside"
    assert list(store.list()) == [
        *("absolute/file", "absolute/same", "in/file", "in/same", "relative/file", "relative/same")
    ]
    version = store.version("absolute/file")
    store.set("absolute/file", b"new", condition=Condition(version))
    with pytest.raises(ConditionFailedError):
        store.set("in/file", b"newer", condition=Condition(version))
    assert store.get("in/file") == b"new"
    store.set("absolute/deep/er", b"x")
    assert store.get("in/deep/er") == b"x"
    store.erase("absolute/deep/er")
    assert sorted(os.listdir(root / "in")) == ["file", "same"]
    store.set("in/same", b"own")  # replaces the link
    assert store.get("in/file") == b"new"
    store.erase_prefix("absolute/")
    assert store.get("in/file") == b"new"


def test_links_back_up_do_not_make_listings_endless(store):
    os.symlink("..", store.root / "in" / "up")
    os.symlink(".", store.root / "in" / "self")
    store.set("b/x", b"x")
    os.symlink("../b", store.root / "in" / "b")
    os.symlink("../in", store.root / "b" / "in")
    assert list(store.list()) == ["b/in/file", "b/x", "in/b/x", "in/file"]


def test_root_may_be_a_link_and_may_move(tmp_path, store, outside):
    link = tmp_path / "link"
    link.symlink_to(store.root)
    linked = LocalStore(link)
    assert linked.get("in/file") == b"inside"
    second = LocalStore(tmp_path / "second")
    second.set("in/file", b"second")
    link.unlink()
    link.symlink_to(second.root)
    assert linked.get("in/file") == b"second"
    os.symlink(store.root / "in", second.root / "out")
    with pytest.raises(InvalidKeyError):
        linked.get("out/file")


def test_exchanging_a_directory_for_a_link_never_leaks(store, outside):
    """One thread swaps a directory and a link to the outside; whatever is read or written stays inside."""
    exchange = getattr(ctypes.CDLL(None), "renameat2", None)
    if exchange is None:
        pytest.skip("no renameat2")
    root = store.root
    (root / "d").mkdir()
    (root / "d" / "secret").write_bytes(b"inside")
    os.symlink(outside, root / "l")
    before = tree(outside)
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            assert exchange(-100, os.fsencode(root / "d"), -100, os.fsencode(root / "l"), 2) == 0

    thread = threading.Thread(target=swap)
    thread.start()
    refused = 0
    try:
        for number in range(3000):
            try:
                assert store.get("d/secret") in (None, b"inside")
            except InvalidKeyError:
                refused += 1
            if number % 10 == 0:
                try:
                    store.set("d/new", b"x")
                    store.erase("d/new")
                    store.list_dir("d/")
                    store.set("d/e/f", b"x")
                    store.erase_prefix("d/e/")
                except StoreError:
                    refused += 1
    finally:
        stop.set()
        thread.join()
    assert tree(outside) == before
    assert refused


@pytest.mark.parametrize("key", [".zardine-x.tmp", "a/.zardine-0123.tmp", ".zardine-.tmp/a", "a/.zardine-b.tmp/c"])
def test_temporary_names_are_no_keys(store, key):
    path = store.root / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")
    for call in [*everything(store, key), lambda: store.erase(key), lambda: store.lock(key)]:
        with pytest.raises(InvalidKeyError, match="kept for unfinished writes"):
            call()
    for call in (lambda: store.list_dir(key + "/"), lambda: store.erase_prefix(key + "/")):
        with pytest.raises(InvalidKeyError):
            call()
    assert list(store.list()) == ["in/file"]
    assert store.list_dir("")[0] == []
    near = (".zardine", ".zardine-x", "zardine-x.tmp", ".zardine-/x.tmp")
    for name in near:
        store.set(name, b"x")
    assert set(near) < set(store.list())


def test_files_that_are_no_values(store):
    root = store.root
    os.mkfifo(root / "fifo")
    (root / "empty").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        directory = os.open(root, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{directory}/socket")
        os.close(directory)
        assert store.get("fifo") is None
        assert store.get("socket") is None
        assert store.get("empty") is None
        assert list(store.list()) == ["in/file"]
        assert store.list_dir("") == ([], ["empty/", "in/"])


def test_clear_errors(store):
    with pytest.raises(StoreError, match=r"'in'.*prefix of other keys"):
        store.set("in", b"x")
    with pytest.raises(StoreError, match="prefix of other keys"):
        store.set("in", b"x", condition=Condition(None))
    with pytest.raises(StoreError, match="is a key itself"):
        store.set("in/file/below/it", b"x")
    for name in ("x" * 256, "ü" * 128, "d/" + "x" * 300, "/".join("x" * 200 for _ in range(30))):
        with pytest.raises(StoreError, match="cannot have files of that name"):
            store.set(name, b"x")
        assert not name.startswith("d/") or store.get(name) is None
    with pytest.raises(InvalidKeyError):
        store.get("x" * 256)
    store.set("x" * 255, b"longest")
    assert store.get("x" * 255) == b"longest"
    deep = "/".join("d" * 1500)
    store.set(deep, b"deep")
    assert store.get(deep) == b"deep"
    store.erase(deep)
    assert sorted(os.listdir(store.root)) == ["in", "x" * 255]
    assert os.listdir(store.root / "in") == ["file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_permissions():
    """In a child process that is not root: refusals are StoreErrors with a number, and nothing is left."""
    with tempfile.TemporaryDirectory() as public:  # pytest's own is for root alone
        os.chmod(public, 0o755)
        check_permissions(LocalStore(f"{public}/root"))


def check_permissions(store):
    root = store.root
    store.set("a/b", b"x")
    os.chmod(root / "a" / "b", 0o600)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setuid(65534)
            for call in (
                lambda: store.get("a/b"),
                lambda: store.set("a/b", b"y"),
                lambda: store.set("c", b"y"),
                lambda: store.set("d/e", b"y"),
                lambda: store.erase("a/b"),
                lambda: store.erase_prefix("a/"),
            ):
                with pytest.raises(StoreError, match="Permission denied") as caught:
                    call()
                assert caught.value.errno == 13
            assert list(store.list()) == ["a/b"]
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.get("a/b") == b"x"
    assert list(store.leftovers(0)) == []


def test_mode_of_a_replaced_file_stays(store):
    path = store.root / "in" / "file"
    os.chmod(path, 0o640)
    store.set("in/file", b"new")
    assert os.stat(path).st_mode & 0o777 == 0o640


def test_hard_links_are_cut_not_written_through(store, tmp_path):
    os.link(store.root / "in" / "file", tmp_path / "snapshot")
    store.set("in/file", b"new")
    assert (tmp_path / "snapshot").read_bytes() == b"inside"
    store.set("a", b"x")
    os.link(store.root / "a", store.root / "b")
    with store.lock("a"):  # the same file, held by us under another name
        store.set("b", b"y")
    assert (store.get("a"), store.get("b")) == (b"x", b"y")


@pytest.mark.parametrize(
    "value",
    [
        bytearray(b"\1\0\2\0"),
        memoryview(b"\1\0\2\0"),
        memoryview(b"x\1y\0z\2a\0b")[1::2],
        np.array([1, 2], "<u2"),
        np.array([[1], [2]], "<u2"),
        np.array([1, 9, 2], "<u2")[::2],
        np.array([256, 512], ">u2"),
        np.array([[1, 0], [2, 0]], "u1", order="C").T.copy().T,
    ],
)
def test_values_of_many_types(store, value):
    store.set("v", value)
    assert store.get("v") == b"\1\0\2\0" if not isinstance(value, np.ndarray) or value.dtype != ">u2" else True
    assert store.size("v") == memoryview(value).nbytes
    store.set("v", np.zeros((0, 3)))
    assert store.get("v") == b""


def test_identity(store, tmp_path):
    same = LocalStore(str(tmp_path / "x" / ".." / "root"))
    assert same.root != store.root  # what a link before ".." means is not for us to say
    assert LocalStore(f"{store.root}/") == store
    assert hash(LocalStore(str(store))) == hash(store)
    assert store != store.with_read_only(True)
    copy = pickle.loads(pickle.dumps(store.with_read_only(True)))
    assert copy == store.with_read_only(True)
    assert copy.get("in/file") == b"inside"
    assert repr(store) == f"LocalStore('file://{store.root}')"
    with store.files.open("in/file") as file:
        assert (file.size, file.version) == (6, store.version("in/file"))
        assert (file.read((0, None)), file.read((-3, None)), file.read((1, 2))) == (b"inside", b"ide", b"ns")
    assert store.files.open("in") is None


def test_reading_creates_nothing(tmp_path):
    store = LocalStore(tmp_path / "none")
    assert store.get("a") is None
    assert list(store.list()) == []
    store.erase("a/b")
    store.erase_prefix("a/")
    store.erase_prefix("")
    with pytest.raises(ConditionFailedError):
        store.set("a/b", b"", condition=Condition("1-2-3-4"))
    assert not (tmp_path / "none").exists()


def test_a_relative_root_does_not_move(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = LocalStore("here")
    store.set("a", b"x")
    monkeypatch.chdir("/")
    assert store.get("a") == b"x"
    assert LocalStore("~").root == LocalStore("/~").root


def test_undecodable_file_names_are_not_listed(store):
    with open(os.fsencode(store.root) + b"/bad\xff", "wb"):
        pass
    os.mkdir(os.fsencode(store.root) + b"/bad\xfe")
    assert list(store.list()) == ["in/file"]
    store.erase_prefix("")
    assert os.listdir(store.root) == []


def test_writing_where_something_lies_that_is_no_file(store):
    os.mkfifo(store.root / "fifo")
    for condition in (None, Condition(None)):
        with pytest.raises(StoreError, match=r"'fifo'.*neither a file nor a directory") as error:
            store.set("fifo", b"x", condition=condition)
        assert not isinstance(error.value, ConditionFailedError)
    with store.lock("fifo"):
        store.erase("fifo")
    store.set("fifo", b"x")


def test_links_in_a_circle(store):
    os.symlink("circle", store.root / "circle")
    assert list(store.list()) == ["in/file"]
    with pytest.raises(StoreError, match="cannot read key 'circle'"):
        store.get("circle")
    with store.lock("circle"), store.files.edit("circle") as file:
        assert file is None
    store.set("circle", b"x")
    assert store.get("circle") == b"x"
    os.unlink(store.root / "circle")
    os.symlink("circle", store.root / "circle")
    store.erase("circle")
    assert not os.path.lexists(store.root / "circle")


def test_what_is_left_out_of_listings(store, outside):
    os.mkfifo(store.root / "fifo")
    os.symlink("circle", store.root / "circle")
    os.symlink(outside, store.root / "in/out")
    os.symlink("..", store.root / "in/up")
    os.symlink("file", store.root / "in/fine")
    (store.root / "in/empty").mkdir()
    assert sorted(name for name, _ in store.left_out()) == ["circle", "fifo", "in/empty", "in/out", "in/up"]
    assert sorted(name for name, _ in store.left_out("in/")) == ["in/empty", "in/out", "in/up"]
    assert list(store.left_out("missing/")) == []


@pytest.mark.parametrize("target", ["gone", "../../secret", "../../folder"])
@pytest.mark.parametrize("shards", [None, 50])
def test_chunks_behind_links_are_never_fill_values(tmp_path, target, shards):
    """Data that were not fetched, or lie on another disk, are an error of all that reads, copies and converts them."""
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    array = zardine.create_array(tmp_path / "a", data=np.arange(1, 101), chunks=10, shards=shards)
    array.resize(200)
    os.remove(tmp_path / "a/c/1")
    os.symlink(target, tmp_path / "a/c/1")
    row = slice(50, 51) if shards else slice(10, 11)
    whole = zardine.open_array(tmp_path / "a", mode="r")
    with pytest.raises(StoreError):
        whole[row]
    with pytest.raises(StoreError):
        whole[...]
    with pytest.raises(StoreError):
        array[row] = 5
    for number, keep in enumerate(({}, {"shards": None})):
        with pytest.raises(ConversionError, match=r"/c/1: .*(leads nowhere|out of the store)"):
            zardine.convert(tmp_path / "a", tmp_path / f"b{number}", **keep)
    with pytest.raises(StoreError):
        zardine.copy_store(LocalStore(tmp_path / "a"), zardine.storage.MemoryStore())
    (fault,) = zardine.verify(tmp_path / "a").faults
    assert (fault.kind, fault.key) == ("store", "c/1")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_name_that_is_no_text_is_told(store):
    """No key leads to it: an array called so would be missing in listings, copies and conversions without a word."""
    os.mkdir(os.fsencode(store.root) + b"/in/\xff")
    (what,) = [what for name, what in store.left_out() if name == "in/\udcff"]
    assert "not UTF-8" in what
    found = zardine.create_group(store, path="g", overwrite=True)
    os.mkdir(os.fsencode(store.root) + b"/g/\xff")
    (fault,) = zardine.verify(store, path="g").faults
    assert (fault.kind, fault.key) == ("stray", "g/\udcff")
    with pytest.raises(ValueError, match="lone surrogate"):
        found["\udcff"]


def test_a_value_takes_the_place_of_an_empty_directory(store):
    root = store.root
    for condition in (None, Condition(None)):
        (root / "empty/of/all").mkdir(parents=True)
        (root / "empty/too").mkdir()
        version = store.set("empty", b"x", condition=condition)
        assert (store.get("empty"), store.version("empty")) == (b"x", version)
        store.erase("empty")
    (root / "full/of/all").mkdir(parents=True)
    (root / "full/file").write_bytes(b"y")
    os.symlink(root / "full/of/all", root / "link")
    for key in ("full", "link"):
        with pytest.raises(StoreError, match="prefix of other keys"):
            store.set(key, b"x")
    assert (root / "full/of/all").is_dir()
    assert store.get("full/file") == b"y"


def test_links_to_a_neighbour_whose_name_begins_like_that_of_the_store(tmp_path, store):
    neighbour = tmp_path / "root-secret"
    neighbour.mkdir()
    (neighbour / "secret").write_bytes(b"secret")
    os.symlink("../root-secret", store.root / "link")
    os.symlink("../../root-secret/secret", store.root / "in" / "link")
    for key in ("link/secret", "in/link"):
        for call in everything(store, key):
            with pytest.raises(InvalidKeyError, match="out of the store's base"):
                call()
    with pytest.raises(InvalidKeyError):
        store.list_dir("link/")
    with pytest.raises(InvalidKeyError):
        store.set("link/new", b"x")
    assert list(store.list()) == ["in/file"]
    assert os.listdir(neighbour) == ["secret"]


@pytest.mark.parametrize("strategy", ["append", "in_place"])
@pytest.mark.parametrize("where", ["outside", "inside"])
def test_a_shard_that_is_a_link_is_not_changed_through_it(tmp_path, strategy, where):
    values = np.arange(64, dtype="u1")
    config = {"write_strategy": strategy, "most_unused": 1}
    array = zardine.create_array(tmp_path / "a", shape=64, chunks=8, shards=32, dtype="u1", config=config)
    array[...] = values
    shard = tmp_path / "a" / "c" / "0"
    target = (tmp_path if where == "outside" else tmp_path / "a") / "elsewhere"
    shard.rename(target)
    shard.symlink_to(target)
    before = target.read_bytes()
    values[3:6] = 99
    if where == "outside":
        with pytest.raises(InvalidKeyError, match="out of the store's base"):
            array[3:6] = 99
        assert shard.is_symlink()
    else:
        array[3:6] = 99
        assert not shard.is_symlink()
        np.testing.assert_array_equal(array[...], values)
    assert target.read_bytes() == before


@pytest.mark.parametrize("shards", [None, (10, 5)])
def test_a_folder_of_chunks_that_is_not_there(tmp_path, shards):
    """Chunks on a disk that is not mounted are no fill values, however they are read."""
    array = zardine.create_array(tmp_path / "a", shape=(200, 5), chunks=(5, 5), shards=shards, dtype="int32")
    array[...] = 1
    (tmp_path / "a" / "c").rename(tmp_path / "moved")
    (tmp_path / "a" / "c").symlink_to("/nowhere")
    for selection in ((3, 2), (slice(3), slice(None)), slice(3, 33), slice(None), [1, 50, 199]):
        with pytest.raises(StoreError, match=r"'.*/a/c' is a link that leads nowhere"):
            array[selection]
    assert [(fault.key, fault.kind) for fault in zardine.verify(tmp_path / "a").faults][:1] == [("c", "store")]
    with pytest.raises(StoreError, match="leads nowhere"):
        array[...] = 2
    (tmp_path / "a" / "c").unlink()
    (tmp_path / "moved").rename(tmp_path / "a" / "c")
    assert int(array[...].sum()) == 1000


def test_a_store_behind_a_link_to_nowhere(tmp_path):
    """As where the disk of all of it is not mounted."""
    (tmp_path / "disk").symlink_to("/nowhere/at/all")
    for path in (tmp_path / "disk", tmp_path / "disk" / "a.zarr"):
        for use in (zardine.open, lambda path: zardine.create_array(path, shape=(2,), dtype="u1")):
            with pytest.raises(StoreError, match=r"disk'.* is a link that leads nowhere"):
                use(path)


def test_a_node_that_is_a_link_to_nowhere(tmp_path):
    group = zardine.create_group(tmp_path / "g")
    (tmp_path / "g" / "x").symlink_to("/nowhere")
    for use in (lambda: group["x"], lambda: group.create_group("x"), lambda: "x" in group):
        with pytest.raises(StoreError, match=r"'.*/g/x' is a link that leads nowhere"):
            use()


def test_a_file_that_is_moved_away_while_it_is_opened(tmp_path, store, monkeypatch):
    """The store's own folder goes, as when an array is erased, between opening a file and the look where that lies."""
    look = BaseDirectory.check_inside

    def moved(self, file, path):
        if (tmp_path / "root").exists():
            os.rename(tmp_path / "root", tmp_path / ".zardine-1.tmp")
        look(self, file, path)

    monkeypatch.setattr(BaseDirectory, "check_inside", moved)
    monkeypatch.setattr("zardine.stores.local.files._open", lambda path, key: (os.open(path, os.O_RDONLY), False))
    assert store.read("in/file") is None
    assert not store.exists("in/file")
    os.rename(tmp_path / ".zardine-1.tmp", tmp_path / "root")
    assert store.list_dir("in/") == ([], [])
    os.symlink(tmp_path / ".zardine-1.tmp" / "in", tmp_path / "root")
    monkeypatch.setattr(BaseDirectory, "check_inside", look)
    assert store.get("file") == b"inside"  # the store itself may be a link


def test_empty_directories_that_are_exchanged_for_a_link_are_not_removed_behind_it(tmp_path, store, monkeypatch):
    (tmp_path / "root" / "key" / "b" / "c").mkdir(parents=True)
    (tmp_path / "elsewhere" / "c").mkdir(parents=True)
    scandir, looked = os.scandir, []

    def exchanging(where):
        looked.append(where)
        if len(looked) == 3:
            (tmp_path / "root" / "key" / "b").rename(tmp_path / "moved")
            (tmp_path / "root" / "key" / "b").symlink_to(tmp_path / "elsewhere")
        return scandir(where)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", exchanging)
        with pytest.raises(StoreError):
            store.set("key", b"value")
    assert len(looked) >= 3
    assert (tmp_path / "elsewhere" / "c").is_dir()
    (tmp_path / "root" / "key" / "b").unlink()
    store.set("key", b"value")
    assert store.get("key") == b"value"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is forked")
def test_a_process_forked_while_a_directory_is_removed_keeps_no_writer_out(store, monkeypatch):
    rmdir, ends, children = os.rmdir, os.pipe(), []

    def forking(name, **place):
        child = os.fork()
        if not child:
            os.close(ends[1])
            os.read(ends[0], 1)
            os._exit(0)
        children.append(child)
        return rmdir(name, **place)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", forking)
        store.set("in/other", b"value")
        store.erase("in/other")  # the directory holds something else, so it stays
    try:
        entered = []

        def write():
            with store.writer("in/"):
                entered.append(True)

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        thread.join(20)
        assert entered
        assert children
    finally:
        os.close(ends[1])
        for child in children:
            os.waitpid(child, 0)
        os.close(ends[0])
