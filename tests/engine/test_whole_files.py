"""Chunks in files of their own that the kernel opens and reads, many in one call: as if each were read by itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.errors import ArrayChangedError, ChunkNotFoundError, CorruptionError, InvalidKeyError
from zardine.kernel import KERNEL
from zardine.storage import WrapperStore
from zardine.stores import late_closing
from zardine.stores.local.files import LocalFiles
from zardine.stores.local.store import LocalStore
from zardine.stores.open_files import OpenFile
from zardine.stores.wrappers.wrapper import WrappedFiles

pytestmark = [
    pytest.mark.skipif(KERNEL is None, reason="without the kernel every file is opened by itself"),
    pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="files do not tell where they are"),
]

SHAPE = (45, 52)
VALUES = np.arange(1, 45 * 52 + 1, dtype="i4").reshape(SHAPE)
LAYOUTS: dict[str, dict[str, Any]] = {
    "zstd": {"chunks": (3, 5)},
    "raw": {"chunks": (3, 5), "compressors": None},
    "without checksums": {"chunks": (4, 52), "compressors": None, "filters": None, "checksum": False},
    "big endian": {"chunks": (3, 5), "compressors": None, "dtype": ">i4"},
    "v2": {"chunks": (3, 5), "zarr_format": 2},
}
SELECTIONS: tuple[Any, ...] = (
    np.s_[...],
    np.s_[1:-1, 1:-1],
    np.s_[::-7, 3],
    (slice(None), [50, 1, 1, 20]),
)


def create(path: Path, **options: Any) -> zardine.Array:
    options = {"shape": SHAPE, "dtype": "i4", "fill_value": -1, "chunks": (3, 5), **options}
    if options.pop("checksum", True) is False:
        options["compressors"] = ()
    array = zardine.create_array(path, **options)
    array[...] = VALUES
    return zardine.open_array(path, mode="r")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of chunks whose files were opened one by one."""
    keys: list[str] = []
    first = LocalFiles.open

    def open_file(self: LocalFiles, key: str) -> OpenFile | None:
        if key[-1].isdigit():
            keys.append(key)
        return first(self, key)

    monkeypatch.setattr(LocalFiles, "open", open_file)
    return keys


def descriptors() -> int:
    late_closing._closer.finish()  # of files that were replaced before
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_selections_give_what_is_stored(layout: str, tmp_path: Path, opened: list[str]) -> None:
    a = create(tmp_path / "a", **LAYOUTS[layout])
    opened.clear()
    before = descriptors()
    for selection in SELECTIONS:
        np.testing.assert_array_equal(a.oindex[selection], VALUES[selection])
    rng = np.random.default_rng(0)
    points = tuple(rng.integers(0, extent, 60) for extent in SHAPE)
    np.testing.assert_array_equal(a.vindex[points], VALUES[points])
    assert (opened, descriptors()) == ([], before)


def test_chunks_that_are_missing_are_full_of_the_fill_value_or_an_error(tmp_path: Path, opened: list[str]) -> None:
    a = create(tmp_path / "a")
    opened.clear()
    for name in ("0/3", "7/7"):
        (tmp_path / "a" / "c" / name).unlink()
    expected = VALUES.copy()
    expected[:3, 15:20] = expected[21:24, 35:40] = -1
    np.testing.assert_array_equal(a[...], expected)
    np.testing.assert_array_equal(a.vindex[[0, 22, 44], [16, 36, 51]], [-1, -1, VALUES[44, 51]])
    assert opened == []
    strict = zardine.open_array(tmp_path / "a", mode="r", config={"read_missing_chunks": False})
    with pytest.raises(ChunkNotFoundError, match=r"chunk \(0, 3\)"):
        strict[...]
    np.testing.assert_array_equal(strict[24:], VALUES[24:])


@pytest.mark.parametrize("damage", ["short", "long", "empty", "other bytes"])
def test_damage_is_told_as_it_is_of_one_chunk(damage: str, tmp_path: Path) -> None:
    a = create(tmp_path / "a")
    chunk = tmp_path / "a" / "c" / "4" / "6"
    data = chunk.read_bytes()
    chunk.write_bytes({"short": data[:-3], "long": data * 1000, "empty": b"", "other bytes": bytes(len(data))}[damage])
    before = descriptors()
    for read in (lambda: a[...], lambda: a.vindex[[0, 13], [0, 31]]):
        with pytest.raises(CorruptionError, match=r"c/4/6") as error:
            read()
        assert error.value.chunk == (4, 6)
    assert descriptors() == before
    np.testing.assert_array_equal(a[15:], VALUES[15:])


def test_links_are_followed_inside_and_refused_outside(tmp_path: Path, opened: list[str]) -> None:
    a = create(tmp_path / "a")
    opened.clear()
    folder = tmp_path / "a" / "c" / "4"
    (folder / "6").rename(folder / "other")
    (folder / "6").symlink_to(folder / "other")
    np.testing.assert_array_equal(a[...], VALUES)
    assert opened == []
    (folder / "other").rename(tmp_path / "outside")
    (folder / "6").unlink()
    (folder / "6").symlink_to(tmp_path / "outside")
    with pytest.raises(InvalidKeyError, match="out of the store's base"):
        a[...]
    (folder / "6").unlink()
    (folder / "6").mkdir()  # of keys below it, of which there are none
    assert (a[12:15, 30:35] == -1).all()
    os.mkfifo(tmp_path / "fifo")
    (folder / "6").rmdir()
    (tmp_path / "fifo").rename(folder / "6")
    assert (a[...][12:15, 30:35] == -1).all()


def test_a_base_that_is_a_link_and_moves_is_followed(tmp_path: Path) -> None:
    create(tmp_path / "one")
    (tmp_path / "link").symlink_to("one")
    a = zardine.open_array(tmp_path / "link", mode="r")
    np.testing.assert_array_equal(a[...], VALUES)
    (tmp_path / "one").rename(tmp_path / "two")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("two")
    np.testing.assert_array_equal(a[...], VALUES)


@pytest.mark.parametrize(("named", "selection"), [("paths", np.s_[::2]), ("path_form", np.s_[...])])
def test_files_of_another_generation_are_not_taken(
    named: str, selection: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = create(tmp_path / "a")
    np.testing.assert_array_equal(a[selection], VALUES[selection])
    first = getattr(LocalFiles, named)

    def replaced(self: LocalFiles, what: Any) -> Any:
        files = first(self, what)
        document = (tmp_path / "a" / "zarr.json").read_text()
        (tmp_path / "a" / "zarr.json").write_text(document.replace("zstd", "gzip"))
        return files

    monkeypatch.setattr(LocalFiles, named, replaced)
    with pytest.raises(ArrayChangedError):
        a[selection]


def test_stores_that_want_to_see_what_is_opened_do(tmp_path: Path) -> None:
    create(tmp_path / "a")
    seen: list[str] = []

    class Opened(LocalFiles):
        def open(self, key: str) -> OpenFile | None:
            seen.append(key)
            return super().open(key)

    class Wrapped(WrappedFiles):
        def open(self, key: str) -> OpenFile | None:
            seen.append(key)
            return super().open(key)

    class Local(LocalStore):
        files_class = Opened

    class Wrapper(WrapperStore):
        files_class = Wrapped

    for store in (Local(tmp_path / "a"), Wrapper(LocalStore(tmp_path / "a"))):
        np.testing.assert_array_equal(zardine.open_array(store, mode="r")[...], VALUES)
        assert len({key for key in seen if key.startswith("c/")}) == 15 * 11
        seen.clear()


def test_a_wrapper_passes_files_on(tmp_path: Path, opened: list[str]) -> None:
    create(tmp_path / "a")
    opened.clear()
    array = zardine.open_array(WrapperStore(LocalStore(tmp_path / "a")), mode="r")
    np.testing.assert_array_equal(array[...], VALUES)
    assert opened == []


def test_hostile_arguments_of_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345678")
    below = os.fsencode(os.path.realpath(tmp_path)) + b"/"
    path = os.fsencode(tmp_path / "x")
    pipeline = KERNEL.Pipeline(item_size=1, word_size=1, swap=False, is_bool=False, order=(0,), steps=[], fill=b"\0")
    axes = [("s", *(np.array(each, np.int64) for each in ([8, 8], [0, 0], [8, 8], [0, 8])), 1)]

    def decode(files: Any, most: int = 8, numbers: tuple[int, int] = (0, 1)) -> tuple[list[int], bytes]:
        out = np.full(16, 255, np.uint8).view("V1")
        jobs = np.array([[numbers[0], 0, most, 0], [numbers[1], 0, most, 1]], np.int64)
        return [job for job, _ in pipeline.decode(files, jobs, axes, out, 2)], out.tobytes()

    files = KERNEL.StoredFiles(below, [path, path + b"-none"], missing=True)
    assert decode(files) == ([], b"12345678" + bytes(8))
    assert decode(files, numbers=(0, 0)) == ([], b"12345678" * 2)
    assert decode(files, most=7)[0] == [0]
    assert decode(KERNEL.StoredFiles(below, [path, path + b"-none"], missing=False))[0] == [1]
    assert decode(KERNEL.StoredFiles(b"/elsewhere/", [path] * 2, missing=True))[0] == [0, 1]
    assert decode(KERNEL.StoredFiles(below, [os.fsencode(tmp_path), b""], missing=False))[0] == [0, 1]
    with pytest.raises(ValueError, match="source"):
        decode(files, numbers=(0, 2))
    for paths in ([b"a\0"], ["text"], [3]):
        with pytest.raises(ValueError, match="path"):
            KERNEL.StoredFiles(below, paths, missing=True)
    with pytest.raises(TypeError):
        KERNEL.StoredFiles(below, 3, missing=True)
