"""LocalStore when writers are killed, compete, or run out of space."""

from __future__ import annotations

import errno
import multiprocessing
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections import Counter

import pytest

from effort import SOAK
from zardine.errors import ConditionFailedError, StoreError
from zardine.storage import LocalStore
from zardine.stores.base import Condition
from zardine.testing.store import add

SIZE = 1 << 20

WRITER = """
import sys
from zardine.storage import LocalStore
store = LocalStore(sys.argv[1])
print("ready", flush=True)
number = 0
while True:
    number = (number + 1) % 256
    store.set("a/b/value", bytes([number]) * {size})
    store.set(f"n/{{number}}/value", b"x" * 1000)
    store.erase_prefix(f"n/{{(number + 128) % 256}}/")
"""


def test_killed_writers(tmp_path):
    store = LocalStore(tmp_path)
    store.set("a/b/value", bytes(SIZE))
    for attempt in range(0, 12, 1 if SOAK else 2):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER.format(size=SIZE), str(tmp_path)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.01 + attempt * 0.0037)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        value = store.get("a/b/value")
        assert value is not None
        assert len(value) == SIZE
        assert len(Counter(value)) == 1
        for key in store.list():
            assert key.endswith("value")
            assert key == "a/b/value" or store.get(key) == b"x" * 1000
        version = store.version("a/b/value")  # no lock is left held, by whatever it was that died
        store.set("a/b/value", bytes(SIZE), condition=Condition(version))
    count = len(list(store.leftovers(0)))
    assert count == len([name for _, _, names in os.walk(tmp_path) for name in names if name.endswith(".tmp")]) + len(
        [name for _, names, _ in os.walk(tmp_path) for name in names if name.endswith(".tmp")]
    )
    assert list(store.leftovers()) == []
    assert store.remove_leftovers() == 0
    assert store.remove_leftovers(older_than=0) == count
    assert list(store.leftovers(0)) == []
    assert store.get("a/b/value") == bytes(SIZE)


def test_leftovers(tmp_path):
    store = LocalStore(tmp_path)
    store.set("a/b", b"x")
    (tmp_path / "a" / ".zardine-1.tmp").write_bytes(b"half")
    (tmp_path / ".zardine-2.tmp" / "c").mkdir(parents=True)
    (tmp_path / ".zardine-2.tmp" / "c" / "file").write_bytes(b"erased")
    found = list(store.leftovers(older_than=0))
    assert found == [str(tmp_path / ".zardine-2.tmp"), str(tmp_path / "a" / ".zardine-1.tmp")]
    store.erase("a/b")
    assert list(store.list()) == []
    store.erase_prefix("a/")
    assert store.remove_leftovers(older_than=0) == 1
    assert os.listdir(tmp_path) == []


def creations(root, count, queue):
    store = LocalStore(root)
    won = 0
    for number in range(count):
        try:
            store.set(f"n/{number}", b"x", condition=Condition(None))
            won += 1
        except ConditionFailedError:
            pass
    queue.put(won)


def locked_increments(root, count):
    store = LocalStore(root)
    for _ in range(count):
        with store.lock("counter"):
            store.set("counter", str(int(bytes(store.get("counter"))) + 1).encode())


def run_all(context, target, *arguments):
    processes = [context.Process(target=target, args=arguments) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_conditional_increments_of_processes(tmp_path, method):
    run_all(multiprocessing.get_context(method), add, LocalStore(tmp_path), "deep/counter", 200)
    assert LocalStore(tmp_path).get("deep/counter") == b"00000800"
    assert os.listdir(tmp_path / "deep") == ["counter"]


def test_one_process_creates(tmp_path):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    run_all(context, creations, tmp_path, 300, queue)
    assert sum(queue.get() for _ in range(4)) == 300


def test_locks_of_processes(tmp_path):
    LocalStore(tmp_path).set("counter", b"0")
    run_all(multiprocessing.get_context("fork"), locked_increments, tmp_path, 200)
    assert LocalStore(tmp_path).get("counter") == b"800"


def test_what_fails_while_a_lock_is_held_is_not_said_to_be_the_lock(tmp_path):
    store = LocalStore(tmp_path)
    with pytest.raises(OSError, match="of who holds it") as caught, store.lock("k"):
        raise PermissionError(13, "of who holds it")
    assert type(caught.value) is PermissionError
    with store.lock("k"):
        pass


def test_a_lock_is_not_inherited(tmp_path):
    """A process forked inside of a lock neither keeps nor drops it."""
    store = LocalStore(tmp_path)
    store.set("k", b"x")
    read_end, write_end = os.pipe()
    with store.lock("k"):
        child = os.fork()
        if child == 0:
            os.close(write_end)
            os.read(read_end, 1)  # until the parent is done
            os._exit(0)
    os.close(read_end)
    store.set("k", b"y", condition=Condition(store.version("k")))
    os.close(write_end)
    os.waitpid(child, 0)
    with store.lock("k"):
        store.set("k", b"z")
        child = os.fork()
        if child == 0:
            store.lock("other").__enter__()
            os._exit(0)
        os.waitpid(child, 0)
        other = subprocess.run(
            [sys.executable, "-c", LOCKER, str(tmp_path)], capture_output=True, text=True, check=True
        )
        assert other.stdout == "held\n"  # the new file is locked as well, and the child did not unlock it


LOCKER = """
import fcntl, sys
try:
    fcntl.flock(open(sys.argv[1] + "/k"), fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("free")
except BlockingIOError:
    print("held")
"""


def check_failed_write(store, call, number):
    with pytest.raises(StoreError) as caught:
        call()
    assert caught.value.errno == number
    assert store.get("a/old") == b"old"
    assert list(store.list()) == ["a/old"]
    assert list(store.leftovers(0)) == []
    assert os.listdir(store.root) == ["a"]


def test_disk_full(tmp_path):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(tmp_path)], capture_output=True).returncode:
        pytest.skip("cannot mount")
    try:
        store = LocalStore(tmp_path)
        store.set("a/old", b"old")
        for key in ("a/old", "a/new", "new/dir/key"):
            check_failed_write(store, lambda key=key: store.set(key, bytes(2 << 20)), 28)
        check_failed_write(store, lambda: store.set_partial_values([("a/old", 2 << 20, b"x")]), 28)
        store.set("a/old", bytes(1 << 19))
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)  # files that were replaced are closed late


def test_file_too_large(tmp_path):
    store = LocalStore(tmp_path)
    store.set("a/old", b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        for key in ("a/old", "a/new", "new/dir/key"):
            check_failed_write(store, lambda key=key: store.set(key, bytes(2 << 20)), 27)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("name", ["fsync", "replace", "link", "write", "utime"])
def test_any_failing_call(tmp_path, monkeypatch, name):
    store = LocalStore(tmp_path, durable=True)
    store.set("a/old", b"old")

    def fail(*arguments, **keywords):
        raise OSError(5, "Input/output error")

    for key in ("a/old", "a/new"):
        if (name, key) in (("replace", "a/new"), ("link", "a/old")):
            continue
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(StoreError, match="Input/output error"):
                store.set(key, b"new value")
        if name != "fsync":  # the last fsync comes when the value is there already
            assert store.get("a/old") == b"old"
            assert list(store.list()) == ["a/old"]
        assert list(store.leftovers(0)) == []


def test_durable_syncs_files_and_directories(tmp_path, monkeypatch):
    synced = []
    real = os.fsync

    def fsync(file):
        synced.append(os.readlink(f"/proc/self/fd/{file}").removeprefix(str(tmp_path)))
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    store = LocalStore(tmp_path / "root", durable=True)
    store.set("a/b/c", b"x")
    assert ".tmp" in synced[0]  # the file first, then the directory that names it, and those above
    assert synced[1:5] == ["/root/a/b", "/root/a", "/root", ""]
    assert set(synced[5:]) <= {str(above) for above in tmp_path.parents}
    synced.clear()
    store.set("a/b/c", b"y")
    assert len(synced) == 2
    synced.clear()
    store.erase("a/b/c")
    assert synced == ["/root/a/b", "/root/a", "/root"]
    synced.clear()
    LocalStore(tmp_path / "other").set("a/b/c", b"x")
    assert synced == []
    store = LocalStore(tmp_path / "other", durable=True)
    store.set("a/b/d", b"x")  # in directories of which nobody has synced the names
    assert synced[1:] == ["/other/a/b", "/other/a", "/other", ""]
    synced.clear()
    store.set("a/b/d", b"y")
    assert synced[1:] == ["/other/a/b"]
    shutil.rmtree(tmp_path / "other")
    synced.clear()
    store.set("a/b/d", b"x")  # the new directories may have the inodes of the old ones
    assert synced[1:] == ["/other/a/b", "/other/a", "/other", ""]


def test_an_error_after_the_new_value_has_its_name_says_that_it_takes_effect(tmp_path, monkeypatch):
    store = LocalStore(tmp_path, durable=True)
    store.set("a", b"old")
    real = os.fsync

    def fsync(file):
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StoreError, match="cannot write key 'a'") as caught:
        store.set("a", b"new")
    assert "takes effect" in caught.value.__notes__[0]
    assert store.get("a") == b"new"


def test_value_cut_short_by_another_program(tmp_path, monkeypatch):
    store = LocalStore(tmp_path)
    store.set("k", bytes(1000))
    real = os.pread

    def pread(file, size, start):
        os.truncate(tmp_path / "k", 10)
        return real(file, size, start)

    monkeypatch.setattr(os, "pread", pread)
    with pytest.raises(StoreError, match="cut short"):
        store.get("k")


def test_partial_reads_and_writes_go_on(tmp_path, monkeypatch):
    read, write = os.pread, os.write
    monkeypatch.setattr(os, "pread", lambda file, size, start: read(file, min(size, 7), start))
    monkeypatch.setattr(os, "write", lambda file, data: write(file, memoryview(data)[:5]))
    store = LocalStore(tmp_path)
    value = bytes(range(100))
    store.set("k", value)
    assert store.get("k") == value
    assert store.get_partial_values([("k", (10, 50))]) == [value[10:60]]
