"""``zardine.reshard`` twice at once, killed, interrupted, taken back: nothing is lost, and nobody is kept out."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from effort import SOAK
from tools.test_repair import VALUES, make, read_by_others
from tools.test_reshard import Failing, InterruptedHereError, files, in_place, interrupted
from zardine.engine.freshness import CLOSING
from zardine.errors import ArrayChangedError, ArrayNotFoundError, NodeExistsError
from zardine.tools.resharding.in_place import InPlace

JOURNAL = "__zardine_reshard.json"


def start(path: Path, *words: object) -> subprocess.Popen[str]:
    """A command line in a process of its own."""
    command = [sys.executable, "-m", "zardine", "reshard", str(path), *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(phase: str, path: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if json.loads((path / JOURNAL).read_bytes())["phase"] == phase:
                return
        except FileNotFoundError:
            pass
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    pytest.fail(f"never {phase}")


def phase_of(path: Path) -> str | None:
    return json.loads((path / JOURNAL).read_bytes())["phase"] if (path / JOURNAL).exists() else None


@pytest.mark.parametrize(
    ("phase", "restart"),
    [("closing", True), ("closing", False), ("switched", False), *([("switched", True)] if SOAK else [])],
)
def test_a_second_one_that_waits_for_one_that_is_killed(tmp_path: Path, phase: str, restart: bool) -> None:
    path = tmp_path / "o.zarr"
    make(path)
    first = start(path, "--shards", "20,20", "--grace", 1)
    wait_for("closing", path, first)
    second = start(path, "--shards", "10,20", "--grace", 0, *(["--restart"] if restart else []))
    wait_for(phase, path, first)
    time.sleep(0.4)  # now the second waits for the lock
    assert second.poll() is None
    first.kill()
    first.communicate()
    out, err = second.communicate(timeout=60)
    if phase == "closing" and not restart:
        assert second.returncode == 1
        assert "being resharded in another way" in err
        assert zardine.open_array(path).shards == (10, 10)
        assert in_place(path, cancel=True).outcome == "cancelled"
    else:
        assert (second.returncode, out) == (0, "2 objects written, of chunks as they were encoded\n"), err
        assert zardine.open_array(path).shards == (10, 20)
    for found in (zardine.open_array(path)[...], *read_by_others(path)):
        np.testing.assert_array_equal(found, VALUES)
    assert zardine.verify(path).faults == zardine.verify(path).notes == ()


def test_a_second_one_that_waits_for_one_that_finishes(tmp_path: Path) -> None:
    """It does what it was asked for, from what it finds then: also if that is the shape of before."""
    path = tmp_path / "o.zarr"
    make(path)
    before = files(path)
    first = start(path, "--shards", "20,20", "--grace", 0.7)
    wait_for("closing", path, first)
    second = start(path, "--shards", "10,10", "--grace", 0)
    third = start(path, "--shards", "20,20", "--grace", 0)
    assert first.communicate(timeout=60) == ("1 object written, of chunks as they were encoded\n", "")
    outs = [process.communicate(timeout=60) for process in (second, third)]
    assert [second.returncode, third.returncode] == [0, 0], outs
    assert "4 objects written" in outs[0][0]
    np.testing.assert_array_equal(zardine.open_array(path)[...], VALUES)
    in_place(path, shards=(10, 10))
    np.testing.assert_array_equal(zardine.open_array(path)[...], VALUES)
    assert len(files(path)) == len(before)


@pytest.mark.parametrize("same", [True, False])
def test_two_at_the_same_instant(tmp_path: Path, same: bool) -> None:
    """Each of them does what it was asked for, or says that the other is at it; the array is never a mixture."""
    path = tmp_path / "o.zarr"
    make(path)
    shapes = ["20,10", "20,10"] if same else ["20,10", "10,20"]
    for number in range(10 if SOAK else 1 + same):
        both = [start(path, "--shards", shape, "--grace", 0) for shape in shapes]
        for process in both:
            _, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
        np.testing.assert_array_equal(zardine.open_array(path)[...], VALUES)
        assert zardine.open_array(path).shards in ((20, 10), (10, 20))
        assert zardine.verify(path).faults == zardine.verify(path).notes == ()
        if number % 2:
            in_place(path, shards=None)


def test_two_threads(tmp_path: Path) -> None:
    path = tmp_path / "o.zarr"
    make(path)
    errors: list[BaseException] = []

    def work(shape: tuple[int, int]) -> None:
        try:
            for _ in range(5):
                in_place(path, shards=shape)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(shape,)) for shape in ((20, 10), (10, 20), (20, 20))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    np.testing.assert_array_equal(zardine.open_array(path)[...], VALUES)
    assert zardine.verify(path).faults == zardine.verify(path).notes == ()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if SOAK else [])])
def test_interrupted_while_it_waits_for_others(tmp_path: Path, ending: int) -> None:
    """Everyone can write again at once; the same command goes on, or another takes it back."""
    path = tmp_path / "o.zarr"
    array = make(path)
    process = start(path, "--shards", "20,20", "--grace", 30)
    wait_for("closing", path, process)
    with pytest.raises(ArrayChangedError, match="cancel=True"):
        zardine.open_array(path)[0, 0] = 1
    process.send_signal(ending)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--cancel takes back what was begun.\n" in err
    assert "To go on: zardine reshard " in err
    assert err.endswith("\nInterrupted\n")
    assert phase_of(path) == "copying"
    again = zardine.open_array(path)
    again[0, 0] = 1000
    assert array[0, 0] == 1000
    if ending == signal.SIGINT:
        done = in_place(path, shards=(20, 20))
        assert done.objects == 1
        assert zardine.open_array(path)[0, 0] == 1000
    else:
        assert in_place(path, cancel=True).outcome == "cancelled"
        assert zardine.open_array(path).shards == (10, 10)
    assert zardine.verify(path).faults == zardine.verify(path).notes == ()


def test_interrupted_where_there_is_nothing_to_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an array in which nothing is stored."""
    path = tmp_path / "o.zarr"
    array = zardine.create_array(path, shape=(20, 20), chunks=(5, 5), shards=(10, 10), dtype="i4")
    document = (path / "zarr.json").read_bytes()

    def interrupt(*args: Any) -> Any:
        with pytest.raises(ArrayChangedError):
            zardine.open_array(path)[0, 0] = 1
        raise KeyboardInterrupt

    monkeypatch.setattr("zardine.tools.resharding.in_place.time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        in_place(path, shards=(20, 20))
    assert files(path) == {"zarr.json"}
    assert (path / "zarr.json").read_bytes() == document
    array[0, 0] = 1


def test_interrupted_before_anything_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "o.zarr"
    make(path)
    before = files(path)

    def interrupt(*args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("zardine.tools.copying.work.encoded_chunks", interrupt)
    with pytest.raises(KeyboardInterrupt):
        in_place(path, shards=(20, 20))
    assert files(path) == before
    with pytest.raises(KeyboardInterrupt):
        in_place(path, shards=(20, 20), target=tmp_path / "b.zarr")
    assert not (tmp_path / "b.zarr").exists() or files(tmp_path / "b.zarr") == set()


@pytest.mark.parametrize(
    "request_", [{"shards": (20, 10)}, {"shards": None, "chunks": (10, 4)}], ids=["moved", "decoded"]
)
def test_cancelled_after_every_write(request_: dict[str, Any]) -> None:
    """All is as before, as long as the document is; after that it is too late."""
    before = zardine.storage.MemoryStore()
    make(before)
    points = {"cancelled": 0, "nothing": 0, "late": 0}
    for _, _, inner in interrupted(request_):
        if zardine.open_array(inner).metadata.chunk_key_encoding.name == "v2":
            with pytest.raises(NodeExistsError, match="too late to cancel"):
                in_place(inner, cancel=True)
            points["late"] += 1
        else:
            points[in_place(inner, cancel=True).outcome] += 1
            assert {key: bytes(inner.get(key) or b"") for key in inner.list()} == {
                key: bytes(before.get(key) or b"") for key in before.list()
            }
        np.testing.assert_array_equal(zardine.open_array(inner)[...], VALUES)
    assert min(points.values()) > 0, points


def test_cancelling_that_is_cut_off_loses_nothing() -> None:
    """What a journal says is done, and was erased since, is made again."""
    for number in range(6):
        inner = zardine.storage.MemoryStore()
        make(inner)
        store = Failing(inner)
        store.left = 6
        with pytest.raises(InterruptedHereError):
            in_place(store, shards=(20, 10))
        assert inner.exists("0/0")
        store.left = number
        try:
            in_place(store, cancel=True)
        except InterruptedHereError:
            pass
        else:
            break
        in_place(inner, shards=(20, 10))
        np.testing.assert_array_equal(zardine.open_array(inner)[...], VALUES)
    assert number > 2


def test_what_a_killed_run_made_and_did_not_note_is_made_again(tmp_path: Path) -> None:
    """A chunk that was emptied in between does not come back."""
    path = tmp_path / "o.zarr"
    array = make(path)
    process = start(path, "--shards", "10,5", "--grace", 30)
    wait_for("closing", path, process)
    process.kill()
    process.communicate()
    journal = json.loads((path / JOURNAL).read_bytes())
    journal["phase"], journal["done"] = "copying", {}  # as if it had been killed before it noted anything
    (path / JOURNAL).write_text(json.dumps(journal))
    document = json.loads((path / "zarr.json").read_bytes())
    del document[CLOSING]
    (path / "zarr.json").write_text(json.dumps(document))
    array[:10, :10] = -1
    assert not (path / "c/0/0").exists()
    in_place(path, shards=(10, 5))
    expected = VALUES.copy()
    expected[:10, :10] = -1
    np.testing.assert_array_equal(zardine.open_array(path)[...], expected)
    assert not (path / "0/0").exists()


def test_a_resharding_of_an_array_that_grew_after_the_switch() -> None:
    """The document is not what the journal says, and names the new objects all the same: they are not erased."""
    tried = 0
    for number in range(100):
        store: dict[str, Any] = {}
        settings = {"shape": (20, 20), "chunks": (2, 5), "dtype": "i4"}
        zardine.create_array(store, shards=((10, 10), (10, 10)), **settings)[...] = VALUES
        failing = Failing(zardine.storage.MemoryStore(store))
        failing.left = number
        try:
            in_place(failing, shards=((4, 6, 10), (5, 15)))
        except InterruptedHereError:
            pass
        else:
            break
        if zardine.open_array(store).metadata.chunk_key_encoding.name == "default":
            continue
        tried += 1
        zardine.open_array(store).resize((30, 20))
        in_place(store, shards=(10, 10), restart=number % 2 == 0)
        array = zardine.open_array(store)
        np.testing.assert_array_equal(array[...], np.concatenate([VALUES, np.zeros((10, 20), "i4")]))
        assert array.shards == (10, 10)
    assert tried > 1


def test_wrong_requests_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "o.zarr"
    make(path)
    before = files(path)
    for grace in (float("nan"), float("inf"), -1):
        with pytest.raises(ValueError, match="grace is a number of seconds"):
            zardine.reshard(path, shards=(20, 20), grace=grace)
    with pytest.raises(TypeError, match="shards is missing"):
        zardine.reshard(path)
    for more in ({"shards": None}, {"chunks": (2, 2)}, {"restart": True}, {"codecs": ["bytes"]}, {"compressors": None}):
        with pytest.raises(ValueError, match="cancel takes back"):
            zardine.reshard(path, cancel=True, **more)
    with pytest.raises(ArrayNotFoundError):
        zardine.reshard(tmp_path / "nothere", cancel=True)
    assert zardine.reshard(path, cancel=True).outcome == "nothing"
    assert in_place(path, shards=(10, 10)).outcome == "unchanged"
    assert files(path) == before
    assert not (tmp_path / "nothere").exists()


WRITER = """
import sys, time
import numpy as np, zardine
from zardine.errors import ArrayChangedError
path, seconds = sys.argv[1], float(sys.argv[2])
zardine.config.set({"threads": 1})
array = zardine.open_array(path)
print("open", flush=True)
end = time.monotonic() + seconds
number = written = refused = last = 0
tried = []
while time.monotonic() < end:
    number += 1
    try:
        array[...] = np.random.default_rng(number).integers(1, 999, array.shape)
    except ArrayChangedError:
        refused += 1
        tried.append(number)
        time.sleep(0.2)
        array = zardine.open_array(path)
    else:
        written, last, tried = written + 1, number, []
print(written, refused, last, *tried)
"""


@pytest.mark.parametrize("shards", [(100, 500), (300, 1000)] if SOAK else [(300, 1000)])
def test_a_writer_that_takes_longer_than_the_grace(tmp_path: Path, shards: tuple[int, int]) -> None:
    """Each write of the whole array takes seconds. One that returned is there; others say that they were in vain."""
    path = tmp_path / "o.zarr"
    shape = (300, 1000)
    slow = {"name": "numcodecs.lzma", "configuration": {"preset": 9}}
    zardine.create_array(path, shape=shape, chunks=(50, 250), shards=shards, dtype="i4", compressors=slow)[...] = 1

    def values(number: int) -> np.ndarray[Any, Any]:
        return np.random.default_rng(number).integers(1, 999, shape).astype("i4")

    begin = time.monotonic()
    with zardine.config.set({"threads": 1}):
        zardine.open_array(path)[...] = values(0)
    once = time.monotonic() - begin
    command = [sys.executable, "-c", WRITER, str(path), str((8 if SOAK else 1) + 2 * once)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "open\n"
    time.sleep(once / 3)
    done = zardine.reshard(path, shards=(300, 250))
    written, refused, last, *tried = map(int, writer.communicate(timeout=300)[0].split())
    assert writer.returncode == 0
    assert written > 0
    found = zardine.open_array(path)[...]
    right = np.logical_or.reduce([found == values(number) for number in [last, *tried]])
    assert right.all(), (once, written, refused, last, tried)
    assert zardine.open_array(path).shards == (300, 250)
    assert done or refused  # what came too late is kept, and was refused


def test_after_a_kill_at_the_end_the_same_call_lets_others_write_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def killed(*_: Any) -> None:
        raise KilledError

    values = np.arange(400).reshape(20, 20)
    zardine.create_array(tmp_path / "a", data=values, chunks=(2, 2), shards=(4, 4))
    with monkeypatch.context() as patched:
        patched.setattr(InPlace, "reopen", lambda *_: None)
        patched.setattr(InPlace, "finish", killed)
        with pytest.raises(KilledError):
            zardine.reshard(tmp_path / "a", shards=(10, 10))
    with pytest.raises(ArrayChangedError, match="call it again"):
        zardine.open_array(tmp_path / "a", mode="r+")[0, 0] = 5
    told: list[int] = []

    def progress(done: int, total: int) -> None:
        if not told:
            zardine.open_array(tmp_path / "a", mode="r+")[0, 0] = 7
        told.append(done)

    assert zardine.reshard(tmp_path / "a", shards=(10, 10), progress=progress)
    values[0, 0] = 7
    found = zardine.open_array(tmp_path / "a")
    assert found.shards == (10, 10)
    np.testing.assert_array_equal(found[...], values)
