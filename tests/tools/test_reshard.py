"""``zardine.reshard``: the same elements in other objects, in place and elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zardine
from crash.torn import put_state, torn
from tools.test_repair import VALUES, make, read_by_others
from zardine.errors import ArrayChangedError, CorruptionError, JobsFailedError, NodeExistsError, UnsupportedError

SHAPES = [((20, 20), None), ((4, 5), None), (None, None), ((20, 20), (5, 4)), (None, (7, 9)), ("auto", None)]


def in_place(path: Any, **request: Any) -> Any:
    return zardine.reshard(path, grace=0, **request)


def files(path: Path) -> set[str]:
    return {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize("location", ["end", "start"])
@pytest.mark.parametrize(("shards", "chunks"), SHAPES)
def test_there_and_back(tmp_path: Path, location: str, shards: Any, chunks: Any) -> None:
    path = tmp_path / "a.zarr"
    array = make(str(path), location, attributes={"units": "m"}, dimension_names=("y", "x"))
    array[4:8, 5:10] = -1
    expected = array[...]
    encoded = chunks is None
    before = files(path)
    done = in_place(str(path), shards=shards, chunks=chunks)
    assert done
    assert done.encoded is encoded
    now = zardine.open_array(str(path))
    assert now.metadata.chunk_key_encoding.name == "v2"
    if shards != "auto":
        assert (now.shards, now.chunks) == (shards, chunks or (2, 5))
    assert (dict(now.attrs), now.dimension_names) == ({"units": "m"}, ("y", "x"))
    for found in (now[...], *read_by_others(path)):
        np.testing.assert_array_equal(found, expected)
    assert zardine.verify(str(path)).faults == ()
    assert zardine.verify(str(path)).notes == ()
    assert in_place(str(path), shards=shards, chunks=chunks).objects == 0
    in_place(str(path), shards=(10, 10), chunks=(2, 5))
    now = zardine.open_array(str(path))
    assert now.metadata.chunk_key_encoding.name == "default"
    for found in (now[...], *read_by_others(path)):
        np.testing.assert_array_equal(found, expected)
    assert files(path) == before


def test_chunks_are_moved_undecoded() -> None:
    """Even one that is damaged, which stays so; the rest is as good as before."""
    store: dict[str, Any] = {}
    make(store)
    data = bytearray(store["c/0/0"])
    data[1] ^= 1
    store["c/0/0"] = bytes(data)
    assert in_place(store, shards=(20, 20)).encoded
    array = zardine.open_array(store)
    with pytest.raises(CorruptionError):
        array[0, 0]
    np.testing.assert_array_equal(array[2:], VALUES[2:])
    store["0/0"] = b"x"
    with pytest.raises(CorruptionError):
        in_place(store, shards=(10, 10))


def test_other_codecs(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    make(str(path))
    in_place(str(path), shards=(20, 20), compressors=[{"name": "gzip", "configuration": {"level": 1}}])
    array = zardine.open_array(str(path))
    assert [codec.name for codec in array.compressors] == ["gzip", "crc32c"]
    in_place(str(path), shards=None, codecs=["bytes"])
    array = zardine.open_array(str(path))
    assert (array.shards, array.compressors) == (None, ())
    for found in (array[...], *read_by_others(path)):
        np.testing.assert_array_equal(found, VALUES)
    with pytest.raises(ValueError, match="not both"):
        in_place(str(path), shards=None, codecs=["bytes"], compressors=None)


def test_many_kinds_of_arrays() -> None:
    transpose = zardine.codecs.TransposeCodec(order=(1, 0))
    sharding = zardine.codecs.ShardingCodec(chunk_shape=(5, 2), codecs=("bytes", "crc32c"))
    kinds: dict[str, dict[str, Any]] = {
        "transposed": {"filters": transpose, "serializer": sharding, "compressors": None, "chunks": (10, 10)},
        "rectilinear shards": {"chunks": (2, 5), "shards": ((4, 6, 10), (15, 5))},
        "rectilinear chunks": {"chunks": ((4, 6, 10), (15, 5))},
        "dots": {"chunks": (2, 5), "shards": (10, 10), "chunk_key_encoding": {"name": "default", "separator": "."}},
        "v2 dots": {"chunks": (2, 5), "chunk_key_encoding": {"name": "v2", "separator": "."}},
        "around": {
            "serializer": zardine.codecs.ShardingCodec(chunk_shape=(2, 5), codecs=("bytes", "crc32c")),
            "compressors": "crc32c",
            "chunks": (10, 10),
        },
    }
    for name, settings in kinds.items():
        store: dict[str, Any] = {}
        zardine.create_array(store, shape=(20, 20), dtype="i4", **settings)[...] = VALUES
        more = {"chunks": (5, 5)} if name == "rectilinear chunks" else {}
        in_place(store, shards=(20, 20), **more)
        np.testing.assert_array_equal(zardine.open_array(store)[...], VALUES, name)
        assert zardine.verify(store).faults == (), name
    text: dict[str, Any] = {}
    zardine.create_array(text, shape=6, dtype="string", chunks=1, shards=2)[...] = ["a", "", "ccc", "d", "é", ""]
    in_place(text, shards=6)
    assert zardine.open_array(text)[...].tolist() == ["a", "", "ccc", "d", "é", ""]
    scalar: dict[str, Any] = {}
    zardine.create_array(scalar, shape=(), dtype="i4", chunks=())[...] = 5
    in_place(scalar, shards=())
    assert zardine.open_array(scalar)[()] == 5


def test_to_a_new_place(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    make(str(path), attributes={"units": "m"})
    before = files(path)
    done = zardine.reshard(str(path), shards=(20, 20), target=str(tmp_path / "b.zarr"))
    assert done.objects == 1
    assert files(path) == before
    assert files(tmp_path / "b.zarr") == {"zarr.json", "c/0/0"}
    for found in read_by_others(tmp_path / "b.zarr"):
        np.testing.assert_array_equal(found, VALUES)
    with pytest.raises(NodeExistsError):
        zardine.reshard(str(path), shards=(20, 20), target=str(tmp_path / "b.zarr"))
    with pytest.raises(ValueError, match="itself"):
        zardine.reshard(str(path), shards=(20, 20), target=str(path))


def test_consolidated_metadata_above_is_kept_true(tmp_path: Path) -> None:
    root = tmp_path / "g.zarr"
    zardine.create_group(str(root)).create_group("inner")
    make(str(root / "inner/a"))
    zardine.consolidate_metadata(str(root))
    in_place(str(root / "inner/a"), shards=None)
    assert zardine.verify(str(root)).faults == ()
    np.testing.assert_array_equal(zardine.open_group(str(root), mode="r")["inner/a"][...], VALUES)


def test_who_opened_it_before_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    make(str(path))
    opened = [zardine.open_array(str(path)), zardine.open_array(str(path), config={"cache": 10**6})]
    zardine.reshard(str(path), shards=(20, 20))
    for array in opened:
        with pytest.raises(ArrayChangedError, match="open it again"):
            array[0, 0]
        with pytest.raises(ArrayChangedError, match="open it again"):
            array[0, 0] = 1
    np.testing.assert_array_equal(zardine.open_array(str(path))[...], VALUES)


def test_what_cannot_be(tmp_path: Path) -> None:
    store: dict[str, Any] = {}
    make(store)
    with pytest.raises(ValueError, match="evenly"):
        in_place(store, shards=(3, 3))
    with pytest.raises(ValueError, match="evenly"):
        in_place(store, shards=(10, 10), chunks=(3, 3))
    with pytest.raises(NodeExistsError, match=r"zardine\.repair moves them"):
        in_place({**store, "0/0": b""}, shards=(20, 20))
    old: dict[str, Any] = {}
    zardine.create_array(old, shape=4, chunks=2, dtype="i4", zarr_format=2)
    with pytest.raises(UnsupportedError, match="convert"):
        in_place(old, shards=(4,))


class InterruptedHereError(Exception):
    pass


class Failing(zardine.storage.WrapperStore):
    """Fails at one write or erasure."""

    left = 10**9

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise InterruptedHereError

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        self._count()
        return super().set(key, value, condition=condition)

    def erase(self, key: str) -> None:
        self._count()
        super().erase(key)

    def erase_values(self, keys: Any) -> None:
        for key in keys:
            self.erase(key)


def interrupted(request_: dict[str, Any]) -> Iterator[tuple[int, Failing, zardine.storage.MemoryStore]]:
    """Resharded up to each write in turn: its number, the store that failed there, and the one below it."""
    for number in range(200):
        inner = zardine.storage.MemoryStore()
        make(inner)
        store = Failing(inner)
        store.left = number
        try:
            in_place(store, **request_)
        except InterruptedHereError:
            yield number, store, inner
        else:
            break


@pytest.mark.parametrize(
    "request_", [{"shards": (20, 10)}, {"shards": None, "chunks": (10, 4)}], ids=["moved", "decoded"]
)
def test_interrupted_at_every_write(request_: dict[str, Any]) -> None:
    """The array reads right after each interruption; the same call finishes, another one is refused."""
    points = 0
    for number, store, inner in interrupted(request_):
        points += 1
        np.testing.assert_array_equal(zardine.open_array(inner)[...], VALUES)
        report = zardine.verify(inner)
        assert report.faults == ()
        unfinished = [note.kind for note in report.notes] == ["unfinished"]
        assert unfinished == (number > 0)
        switched = zardine.open_array(inner).metadata.chunk_key_encoding.name == "v2"
        if unfinished and not switched:
            with pytest.raises(NodeExistsError, match="another way"):
                in_place(inner, shards=(4, 20))
        if number % 3 == 1 and not switched:
            in_place(inner, restart=True, shards=(4, 20))
            assert zardine.open_array(inner).shards == (4, 20)
        else:
            store.left = 10**9
            in_place(store, **request_)
            assert zardine.open_array(inner).shards == request_["shards"]
        np.testing.assert_array_equal(zardine.open_array(inner)[...], VALUES)
        assert zardine.verify(inner).faults == zardine.verify(inner).notes == ()
    assert points > 10


@pytest.mark.parametrize("target", [None, "out"])
def test_a_plan_that_is_interrupted_at_every_write(target: str | None) -> None:
    """The same plan finishes, and leaves nothing that only it would know."""
    points = 0
    for number in range(200):
        inner = zardine.storage.MemoryStore()
        zardine.create_array(inner, name="src", data=VALUES, chunks=(10, 10))
        store = Failing(inner)
        there = {} if target is None else {"target": store, "target_path": target}
        plan = zardine.plan_reshard(store, path="src", shards=(20, 10), grace=0, **there)
        store.left = number
        try:
            plan.run()
            break
        except (InterruptedHereError, JobsFailedError):
            points += 1
        store.left = 10**9
        if target is not None and number % 3 == 0:  # in place others may be kept away
            zardine.open_array(inner, path="src", mode="r+").append(VALUES[:1])
        assert plan.run()
        array = zardine.open_array(inner, path=target or "src")
        assert array.shards == (20, 10)
        np.testing.assert_array_equal(array[: len(VALUES)], VALUES)
        assert not [key for key in inner.list_prefix("") if "__zardine" in key]
    assert points >= 8


def test_a_resumed_run_does_not_begin_anew(tmp_path: Path) -> None:
    inner = zardine.storage.MemoryStore()
    zardine.create_array(inner, shape=1000, chunks=1, shards=2, dtype="i4")[...] = np.arange(1000)
    store = Failing(inner)

    store.left = 60
    with pytest.raises(InterruptedHereError):
        in_place(store, shards=(10,))
    assert 20 < in_place(inner, shards=(10,)).objects < 80
    np.testing.assert_array_equal(zardine.open_array(inner)[...], np.arange(1000))


def test_changes_meanwhile_are_copied_too() -> None:
    """Writes, a resize and new attributes that come in while objects are copied."""
    inner = zardine.storage.MemoryStore()
    make(inner)

    class Meddling(zardine.storage.WrapperStore):
        step = 0

        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            result = super().set(key, value, condition=condition)
            self.step += 1
            if self.step == 3:
                other = zardine.open_array(inner)
                other[0, 0] = 1000
                other.attrs["new"] = 1
                other.append(np.full((5, 20), 7, "i4"))
            return result

    in_place(Meddling(inner), shards=(20, 10))
    expected = np.concatenate((VALUES, np.full((5, 20), 7, "i4")))
    expected[0, 0] = 1000
    array = zardine.open_array(inner)
    np.testing.assert_array_equal(array[...], expected)
    assert dict(array.attrs) == {"new": 1}
    assert zardine.verify(inner).faults == ()


def test_what_comes_too_late_is_kept_and_said() -> None:
    inner = zardine.storage.MemoryStore()
    make(inner)

    class Late(zardine.storage.WrapperStore):
        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            if key == "zarr.json" and b'"v2"' in bytes(value):
                inner.set("c/0/0", b"by a program that knows nothing of this")
            return super().set(key, value, condition=condition)

    done = in_place(Late(inner), shards=(20, 10))
    assert not done
    assert done.late == ("c/0/0",)
    assert inner.exists("c/0/0")
    np.testing.assert_array_equal(zardine.open_array(inner)[...], VALUES)


@pytest.mark.parametrize("shards", [(40,), None])
def test_objects_outside_of_the_shape_go(tmp_path: Path, shards: Any) -> None:
    path = tmp_path / "a.zarr"
    array = zardine.create_array(path, data=np.arange(100), chunks=(5,), shards=(10,))
    array.resize(35, erase=False)
    done = in_place(str(path), shards=shards)
    assert (done.late, done.outcome) == ((), "resharded")
    assert zardine.open_array(path)[...].tolist() == list(range(35))
    report = zardine.verify(str(path))
    assert (report.faults, report.notes) == ((), ())


@pytest.mark.parametrize("codecs", [{}, {"compressors": "gzip"}], ids=["encoded", "decoded"])
def test_a_shard_whose_last_write_was_cut_off_is_read_as_before(tmp_path: Path, codecs: Any) -> None:
    path = tmp_path / "a.zarr"
    array = zardine.create_array(path, data=np.arange(40), chunks=(5,), shards=(20,))
    appending = array.with_config({"write_strategy": "append", "most_unused": 1.0})
    put_state(torn(path, lambda: appending.__setitem__(0, 7), "c/0"), path)
    with pytest.warns(zardine.errors.TornShardWarning):
        in_place(str(path), shards=(40,), **codecs)
    assert zardine.open_array(path)[...].tolist() == list(range(40))
    assert zardine.verify(str(path)).faults == ()


def test_shards_of_too_many_chunks_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    zardine.create_array(path, data=np.arange(40), chunks=(5,))
    before = files(path)
    with pytest.raises(ValueError, match=r"would have 200,000,000 inner chunks, more than 67,108,864"):
        in_place(str(path), shards=(1_000_000_000,))
    assert files(path) == before


def test_a_failure_lets_others_write_again() -> None:
    """Here an old shard is damaged while nobody may write, which only the last look finds."""
    inner = zardine.storage.MemoryStore()
    make(inner)

    class Damaging(zardine.storage.WrapperStore):
        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            if b'"phase": "closing"' in bytes(value)[:40]:
                inner.set("c/0/0", b"damaged")
            return super().set(key, value, condition=condition)

    with pytest.raises(CorruptionError):
        in_place(Damaging(inner), shards=(20, 10))
    array = zardine.open_array(inner)
    array[10:, 10:] = 5
    array[:10, :10] = 4
    in_place(inner, shards=(20, 10))
    found = zardine.open_array(inner)[...]
    assert (found[10:, 10:] == 5).all()
    assert (found[:10, :10] == 4).all()


def test_command(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    make(str(path))
    result = run("reshard", path, "--shards", "20,20", "--grace", 0)
    assert result.stdout == "1 object written, of chunks as they were encoded\n"
    result = run("reshard", path, "--shards", "20,20", "--grace", 0)
    assert (result.stdout, result.exit_code) == ("nothing to do: the array is stored so already\n", 0)
    decoding = ("--shards", "none", "--chunks", "10,10", "--grace", 0)
    result = run("reshard", path, *decoding, "--json")
    facts = json.loads(result.stdout)
    assert (facts["objects"], facts["encoded"], facts["outcome"]) == (4, False, "resharded")
    result = run("reshard", path, *decoding)
    assert result.stdout == "nothing to do: the array is stored so already\n"
    assert json.loads(run("reshard", path, *decoding, "--json").stdout)["encoded"] is False
    assert run("reshard", path, "--shards", "20,20", "--chunks", "5,5", "--grace", 0).stdout == "1 object written\n"
    assert run("reshard", path, "--shards", "20,20", "--to", tmp_path / "b.zarr", "-q").stdout == ""
    np.testing.assert_array_equal(zardine.open_array(str(tmp_path / "b.zarr"))[...], VALUES)
    assert run("reshard", path, "--cancel").stdout == "nothing to take back: no resharding was begun\n"
    assert run("reshard", path, "--cancel", "--to", tmp_path / "c.zarr").stdout.startswith("nothing to take back")


def test_the_command_says_what_interrupted_runs_have_left(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    for outcome in ("finished", "taken back"):
        for number in range(100):
            zardine.storage.LocalStore(path).erase_prefix("")
            make(path)
            store = Failing(zardine.storage.LocalStore(path))
            store.left = number
            with pytest.raises(InterruptedHereError):
                in_place(store, shards=(20, 20))
            is_new = zardine.open_array(path).metadata.chunk_key_encoding.name == "v2"
            if is_new if outcome == "finished" else (path / "0/0").exists():
                break
        if outcome == "finished":
            result = run("reshard", path, "--cancel")
            assert result.exit_code == 1
            assert "too late to cancel" in result.stderr
            result = run("reshard", path, "--shards", "20,20", "--grace", 0)
            assert result.stdout == "an earlier run had written all objects; what it had left to do is done\n"
        else:
            result = run("reshard", path, "--shards", "10,20", "--grace", 0)
            assert result.exit_code == 1
            assert "--cancel" in result.stderr
            result = run("reshard", path, "--cancel")
            assert result.stdout == "taken back: all is as before\n"
        assert result.exit_code == 0
        np.testing.assert_array_equal(zardine.open_array(path)[...], VALUES)
        assert zardine.verify(path).notes == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Give --shards: a shape such as 512,512, or auto, or none."),
        (("--shards", "x"), "'x' is not lengths such as 100,100 or 100x100, nor 'auto', nor 'none'"),
        (("--shards", "20,20", "--chunks", "none"), "'none' is not lengths such as 100,100 or 100x100, nor 'auto'"),
        (("--shards", "20,20", "--chunks", ""), "'' is not lengths such as 100,100 or 100x100, nor 'auto'"),
        (("--shards", "20,20", "--codecs", "nonsense"), "--codecs is a list in JSON"),
        (("--shards", "20,20", "--codecs", '{"name": "bytes"}'), "--codecs is a list in JSON"),
        (
            ("--shards", "20,20", "--codecs", '["nothing"]'),
            'Error: --codecs: not a codec\n  - codec.name: unknown codec "nothing"',
        ),
        (("--shards", "20,20", "--codecs", "[7]"), "Error: --codecs: "),
        (
            ("--shards", "20,20", "--codecs", '["zstd"]'),
            "the array cannot be stored so\n  - codecs[0].configuration.codecs: exactly one array -> ",
        ),
        (("--shards", "20,20", "--grace", "nan"), "grace is a number of seconds, 0 or more, not nan"),
        (("--shards", "20,20", "--grace", "inf"), "grace is a number of seconds, 0 or more, not inf"),
        (("--shards", "20,20", "--grace", "-1"), "-1.0 is not in the range x>=0"),
        (("--shards", "3,3", "--chunks", "2,2"), "do not evenly divide"),
        (("--shards", "20,20,20"), "are for 3 dimensions, the array has 2"),
        (("--shards", "20,20", "--cancel"), "cancel takes back what was begun"),
        (("--restart", "--cancel"), "cancel takes back what was begun"),
    ],
)
def test_wrong_arguments_of_the_command(run: Any, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    path = tmp_path / "a.zarr"
    make(path)
    before = files(path)
    result = run("reshard", path, *words, columns=200)
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert said in result.stderr
    assert files(path) == before


def test_chunks_that_an_older_document_names_stay(tmp_path: Path) -> None:
    """Documents of two versions for the same chunks: the older one would name nothing afterwards."""
    path = tmp_path / "a.zarr"
    old = zarr.create_array(path, shape=(16, 16), chunks=(4, 4), dtype="i4", zarr_format=2)
    old[...] = 7
    zardine.convert(path, metadata_only=True)
    before = files(path)
    with pytest.raises(NodeExistsError, match="remove_old"):
        in_place(path, shards=(16, 16))
    assert files(path) == before
    assert (old[...] == 7).all()
    zardine.convert(path, metadata_only=True, remove_old=True)
    assert in_place(path, shards=(16, 16)).objects == 1
    assert (zardine.open_array(path)[...] == 7).all()
