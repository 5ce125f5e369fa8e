"""Zip archives that several processes write, compact, remove and replace; processes that fork, and such that die."""

from __future__ import annotations

import gc
import os
import pickle
import random
import re
import resource
import signal
import subprocess
import sys
import time
import warnings
import zipfile

import pytest

import zardine
from stores.zip_programs import killed_at_each_call, program
from zardine.errors import ConditionFailedError, StoreError, TornShardWarning
from zardine.storage import ZipStore
from zardine.stores.base import Condition
from zardine.stores.zip import archive as zip_archive

_WRITES = """
import sys, time
from zardine.errors import StoreError
from zardine.storage import ZipStore
print(flush=True)
for number in range(int(sys.argv[2])):
    try:
        with ZipStore(sys.argv[1]) as store:
            store.set(f"other/{number}", b"x" * 10)
        print(number, flush=True)
    except StoreError as error:
        assert "another process writes" in str(error), error
    time.sleep(0.001)
"""


def test_compacting_beside_a_process_that_writes_loses_nothing(tmp_path):
    path = tmp_path / "a.zip"
    with ZipStore(path) as store:
        for number in range(30):
            store.set(f"k{number % 15}", bytes([number]) * 300_000)
    command = [sys.executable, "-c", _WRITES, str(path), "150"]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == "\n"
    saved, refused = [], set()
    while writer.poll() is None:
        try:
            saved.append(ZipStore(path).compact())
        except StoreError as error:
            refused.add(str(error).partition(" zip:")[0])
        time.sleep(0.02)
    assert refused <= {"another process writes to"}
    written = {f"other/{line.strip()}" for line in writer.stdout}
    writer.stdout.close()
    assert writer.returncode == 0
    store = ZipStore(path)
    assert written <= set(store.list_prefix("other/"))
    assert len(written) > 5
    assert len(saved) > 2
    assert sum(saved) > 4_000_000
    for number in range(15):
        assert store.get(f"k{number}") == bytes([number + 15]) * 300_000
    assert os.listdir(tmp_path) == ["a.zip"]


def test_a_condition_is_compared_with_what_another_process_wrote(tmp_path):
    path = tmp_path / "a.zip"
    store = ZipStore(path)
    store.set("k", b"1")
    store.flush()
    old = store.read("k")
    with program(path) as other:
        other.tell("k=2", "close")
        with pytest.raises(ConditionFailedError):
            store.set("k", b"3", condition=Condition(old.version))
        assert store.get("k") == b"2"
        other.tell("more=4", "close")  # a condition that fails keeps nobody from writing
        with pytest.raises(ConditionFailedError):
            store.set("more", b"5", condition=Condition(None))
        other.tell("last=6", "close")
        store.erase("last")
        store.close()
    assert {key: store.get(key) for key in store.list()} == {"k": b"2", "more": b"4"}


def test_nothing_is_made_by_what_writes_nothing(tmp_path):
    path = tmp_path / "folder" / "a.zip"
    store = ZipStore(path)
    store.erase("k")
    store.erase_prefix("")
    assert store.compact() == 0
    with pytest.raises(ConditionFailedError):
        store.set("k", b"x", condition=Condition("1"))
    store.close()
    assert not path.exists()


_COUNTS = """
import sys
from zardine.errors import ConditionFailedError, StoreError
from zardine.storage import ZipStore
from zardine.stores.base import Condition
store = ZipStore(sys.argv[1])
done = 0
while done < 30:
    try:
        old = store.read("count")
        store.set("count", str(int(old.parts[0]) + 1).encode(), condition=Condition(old.version))
        store.flush()
        done += 1
    except ConditionFailedError:
        pass
    except StoreError as error:
        assert "another process writes" in str(error), error
"""


def test_processes_that_count_lose_nothing(tmp_path):
    path = tmp_path / "a.zip"
    with ZipStore(path) as store:
        store.set("count", b"0")
    counters = [subprocess.Popen([sys.executable, "-c", _COUNTS, str(path)]) for _ in range(3)]
    assert [each.wait() for each in counters] == [0, 0, 0]
    assert ZipStore(path).get("count") == b"90"


def create(path):
    return zardine.create_array(path, shape=(4,), chunks=(2,), dtype="i4")


def test_an_archive_that_is_removed_while_it_is_written(tmp_path):
    path = tmp_path / "a.zip"
    first = create(path)
    first[:] = 1
    path.unlink()
    second = create(path)
    assert second[...].tolist() == [0, 0, 0, 0]
    with pytest.raises(StoreError, match=r"removed or replaced by another program .* is lost"):
        first[:] = 2
    first[:] = 3  # now it is the array that is there
    assert second[...].tolist() == [3, 3, 3, 3]
    first.store.close()
    assert zardine.open_array(path, mode="r")[...].tolist() == [3, 3, 3, 3]
    second[:] = 4
    path.unlink()
    with pytest.raises(StoreError, match="removed or replaced by another program"):
        second.store.close()
    second.store.close()
    assert not path.exists()


def test_an_archive_that_is_replaced_while_it_is_written(tmp_path):
    path, other = tmp_path / "a.zip", tmp_path / "b.zip"
    with ZipStore(other) as store:
        store.set("x", b"of the other")
    store = ZipStore(path)
    store.set("k", b"lost")
    os.replace(other, path)
    assert store.get("k") == b"lost"
    reader = ZipStore(path)
    assert list(reader.list()) == ["x"]
    for lose in (store.flush, store.compact, lambda: store.erase("k")):
        with pytest.raises(StoreError, match="removed or replaced by another program"):
            lose()
        assert list(store.list()) == ["x"]
        assert zipfile.ZipFile(path).namelist() == ["x"]
        with ZipStore(other) as again:
            again.set("x", b"of the other")
        store.set("k", b"lost")
        os.replace(other, path)
    with pytest.raises(StoreError, match="removed or replaced by another program"):
        store.close()


def test_an_archive_that_is_removed_while_it_is_opened(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    store = ZipStore(path)
    store.set("old", b"1")
    store.close()
    real, removals = zip_archive.state_of, []

    def late(*args, locked=False):
        if locked and len(removals) < 2:
            removals.append(os.unlink(path))
        return real(*args, locked=locked)

    monkeypatch.setattr(zip_archive, "state_of", late)
    store.set("new", b"2")
    store.close()
    assert len(removals) == 2
    assert zipfile.ZipFile(path).namelist() == ["new"]


def names_beside(path):
    return sorted(each.name for each in path.parent.iterdir() if each != path)


@pytest.mark.parametrize("part", [0, 0.5, 1])
def test_killed_at_each_call_of_a_flush(tmp_path, part):
    base = tmp_path / "base.zip"
    with ZipStore(base) as store:
        store.set("a", b"old")
        store.set("b", b"kept")
    work = "store = ZipStore(path); store.set('a', b'new' * 50); store.set('c', b'more'); store.flush()"
    *killed, done = killed_at_each_call(base, tmp_path / "killed", part, work)
    assert len(killed) >= 7
    old, new = {"a": b"old", "b": b"kept"}, {"a": b"new" * 50, "b": b"kept", "c": b"more"}
    seen = []
    for path in (*killed, done):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            store = ZipStore(path)
            found = {key: store.get(key) for key in store.list()}
        assert found in (old, new)
        whole = True
        try:
            zipfile.ZipFile(path).testzip()
        except zipfile.BadZipFile:
            whole = False
        assert bool(caught) == bool(list(store.faults()))
        assert whole or caught
        seen.append((found == new, bool(caught)))
        with store:
            store.set("next", b"writer")
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            assert {key: archive.read(key) for key in archive.namelist()} == {**found, "next": b"writer"}
    assert seen == sorted(seen, key=lambda each: each[0])  # from one moment on the new one
    assert {(False, False), (False, True), (True, False)} == set(seen)


def test_killed_at_each_call_of_the_first_flush(tmp_path):
    work = "store = ZipStore(path); store.set('a', b'1'); store.flush()"
    *killed, done = killed_at_each_call(None, tmp_path / "killed", 0.5, work)
    assert list(ZipStore(done).list()) == ["a"]
    unfinished = 0
    for path in killed:
        if path.exists() and not zipfile.is_zipfile(path):
            with pytest.raises(StoreError, match="killed before it finished"):
                ZipStore(path)
            path.unlink()
            unfinished += 1
        store = ZipStore(path)
        assert list(store.list()) in ([], ["a"])
        store.set("b", b"2")
        count = len(names_beside(path))
        assert store.remove_leftovers(0) == count
        assert not names_beside(path)
        store.close()
        assert zipfile.ZipFile(path).testzip() is None
    assert unfinished > 2


@pytest.mark.parametrize("part", [0, 0.5])
def test_killed_at_each_call_of_a_compaction(tmp_path, part):
    base = tmp_path / "base.zip"
    values = {"a": b"new" * 100, "b": b"kept"}
    with ZipStore(base) as store:
        for key, value in (("a", b"old" * 100), ("ghost", b"x"), *values.items()):
            store.set(key, value)
        store.erase("ghost")
    work = "ZipStore(path).compact()"
    *killed, done = killed_at_each_call(base, tmp_path / "killed", part, work)
    assert done.stat().st_size < base.stat().st_size - 300
    beside = 0
    for path in killed:
        store = ZipStore(path)
        assert list(store.faults()) == []
        assert {key: store.get(key) for key in store.list()} == values
        assert zipfile.ZipFile(path).testzip() is None
        assert sorted(store.leftovers(0)) == [str(path.parent / each) for each in names_beside(path)]
        assert list(store.leftovers()) == []  # so young that where there are no locks it may be written
        for each in names_beside(path):
            assert re.fullmatch(r"a\.zip\.[0-9a-f]{16}\.part", each)
            beside += 1
        store.compact()
        assert {key: store.get(key) for key in store.list()} == values
        count = len(names_beside(path))
        assert store.remove_leftovers(0) == count
        assert not names_beside(path)
        assert path.stat().st_size == done.stat().st_size
    assert beside > 2


def test_what_is_left_of_others_is_neither_read_nor_removed(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    store = ZipStore(path)
    store.set("k", b"1")
    store.set("k", b"2")
    foreign = [f"a.zip.{os.getpid()}.compact", "a.zip.part", "a.zip.0123.part", "b.zip.0123456789abcdef.part"]
    for each in foreign:
        with zipfile.ZipFile(tmp_path / each, "w") as archive:
            archive.writestr("ghost", b"boo")
            archive.writestr("k", b"0")
    (tmp_path / "a.zip.0123456789abcdef.part").write_bytes(b"half")
    monkeypatch.setattr("zardine.stores.zip.archive._ABANDONED", 0)
    store.compact()
    assert {key: store.get(key) for key in store.list()} == {"k": b"2"}
    assert sorted(os.listdir(tmp_path)) == sorted(["a.zip", *foreign])


_BUSY = """
import random, sys
from zardine.storage import ZipStore
store = ZipStore(sys.argv[1])
number = int(bytes(store.get("number")))
print(flush=True)
while True:
    number += 1
    for key in range(5):
        store.set(f"k{key}", str(number).encode() * random.randrange(1, 3000))
    store.set("number", str(number).encode())
    store.flush()
    print(number, flush=True)
    if number % 3 == 0:
        store.compact()
"""


def test_killed_at_any_time(tmp_path):
    path = tmp_path / "a.zip"
    with ZipStore(path) as store:
        store.set("number", b"0")
        for key in range(5):
            store.set(f"k{key}", b"0")
    chance = random.Random(5)
    for _ in range(8):
        busy = subprocess.Popen([sys.executable, "-c", _BUSY, str(path)], stdout=subprocess.PIPE, text=True)
        assert busy.stdout.readline() == "\n"
        time.sleep(chance.uniform(0, 0.06))
        busy.send_signal(signal.SIGKILL)
        busy.wait()
        told = [int(line) for line in busy.stdout.read().split()]
        busy.stdout.close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TornShardWarning)
            store = ZipStore(path)
        number = int(bytes(store.get("number")))
        assert number >= max(told, default=0)
        for key in range(5):
            value = bytes(store.get(f"k{key}"))
            assert value == str(number).encode() * (len(value) // len(str(number)))
        del store


def in_child(work):
    """Exit status of a forked process that does ``work``."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def test_a_forked_process_reads_what_was_written_and_spoils_nothing(tmp_path):
    path = tmp_path / "a.zip"
    store = ZipStore(path)
    store.set("k", b"not flushed")

    def work():
        assert store.get("k") == b"not flushed"
        with pytest.raises(StoreError, match="another process writes"):
            store.set("child", b"x")
        store.flush()
        assert store.get("k") == b"not flushed"
        store.close()
        with pytest.raises(StoreError, match="another process writes"):
            ZipStore(path).compact()

    assert in_child(work) == 0
    store.set("more", b"y")
    store.close()
    assert sorted(zipfile.ZipFile(path).namelist()) == ["k", "more"]
    assert in_child(lambda: (store.set("child", b"x"), store.close())) == 0
    assert ZipStore(path).get("child") == b"x"


def test_a_forked_process_that_lives_on_keeps_nobody_from_writing(tmp_path):
    path = tmp_path / "a.zip"
    store = ZipStore(path)
    store.set("k", b"1")
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    store.close()
    with program(path) as other:
        other.tell("other=2", "close")
    os.close(read)
    os.close(write)
    assert os.waitpid(child, 0)[1] == 0
    assert sorted(ZipStore(path).list()) == ["k", "other"]


def test_a_fork_while_another_thread_writes(tmp_path):
    path = tmp_path / "a.zip"
    store = ZipStore(path)
    store.set("k", b"1")
    archive = store._archive()
    with archive.lock:  # as if another thread had it
        assert in_child(lambda: (signal.alarm(20), list(store.list()), ZipStore(path).get("k"))) == 0


def test_a_pickled_store_finds_what_was_written(tmp_path):
    path = tmp_path / "a.zip"
    store = ZipStore(path)
    store.set("k", b"1")
    text = pickle.dumps(store.with_read_only(True))
    code = "import pickle, sys; s = pickle.loads(bytes.fromhex(sys.argv[1])); print(s.read_only, bytes(s.get('k')))"
    run = subprocess.run([sys.executable, "-c", code, text.hex()], capture_output=True, text=True, check=True)
    assert run.stdout == "True b'1'\n"
    store.set("k", b"2")
    assert pickle.loads(text).get("k") == b"2"


def limited(size):
    """Files of this process may have ``size`` bytes, as on a disk that is full."""
    sys.dont_write_bytecode = True  # Python would keep the half of a compiled module that fits
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def test_what_does_not_fit_changes_nothing(tmp_path):
    """In a process of its own: the limit cannot be undone for sure."""
    path = tmp_path / "a.zip"
    with ZipStore(path) as store:
        store.set("k", b"old" * 100)
        store.set("l", b"other")

    def work():
        store = ZipStore(path)
        limited(2000)
        store.set("new", b"n" * 500)
        for _ in range(2):
            with pytest.raises(StoreError, match="cannot write key 'k' of"):
                store.set("k", b"x" * 5000)
            assert store.get("k") == b"old" * 100
        store.set("fits", b"f" * 200)
        store.flush()
        store.set("last", b"z" * (2000 - path.stat().st_size - 50))
        with pytest.raises(StoreError, match="cannot write the directory of"):
            store.close()
        assert store.get("last") is not None
        with pytest.raises(StoreError, match="cannot write the directory of"):
            store.compact()
        limited(100_000)
        store.close()  # now it can be
        limited(100)
        with pytest.raises(StoreError, match="cannot rewrite"):
            store.compact()
        with pytest.raises(StoreError, match="cannot write key 'k'"):
            ZipStore(tmp_path / "new.zip").set("k", b"x" * 200)
        del store
        limited(path.stat().st_size + 200)
        dropped = ZipStore(path)
        dropped.set("dropped", b"x" * 100)
        gc.collect()  # errors above know the store that raised them
        with pytest.warns(RuntimeWarning, match=r"what was written to .* is lost"):
            del dropped
        limited(100_000)
        with pytest.warns(TornShardWarning):
            again = ZipStore(path)
        again.set("l", b"nobody keeps us from writing")
        again.close()

    del store
    assert in_child(work) == 0
    assert os.listdir(tmp_path) == ["a.zip"]
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == ["fits", "k", "l", "last", "new"]
        assert archive.read("k") == b"old" * 100


def test_two_stores_on_one_file_by_other_names(tmp_path):
    path, link, hard = tmp_path / "a.zip", tmp_path / "link.zip", tmp_path / "hard.zip"
    link.symlink_to(path)
    one, two = ZipStore(link), ZipStore(path)
    one.set("k", b"1")
    assert two.get("k") == b"1"
    two.close()
    os.link(path, hard)
    one.set("l", b"2")
    with pytest.raises(StoreError, match="another process writes"):
        ZipStore(hard).set("m", b"3")
    one.close()
    with ZipStore(hard) as store:
        store.set("m", b"3")
    assert sorted(ZipStore(path).list()) == ["k", "l", "m"]
    assert link.is_symlink()
    one.compact()
    assert link.is_symlink()
    assert sorted(ZipStore(link).list()) == ["k", "l", "m"]


def test_the_mode_of_the_file_stays(tmp_path):
    path = tmp_path / "a.zip"
    store = ZipStore(path)
    store.set("k", b"1")
    store.flush()
    path.chmod(0o640)
    store.compact()
    assert path.stat().st_mode & 0o777 == 0o640
