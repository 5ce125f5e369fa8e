"""Files of HDF5 against what h5py reads of them: as they lie, and converted in several ways."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray

import zardine
import zardine.sources
from effort import SOAK
from sources.same_elements import equal
from sources.sample_files import LAYOUTS, write_hdf5
from zardine.errors import ZarrUserWarning
from zardine.sources.arrays import ORIGIN
from zardine.sources.hdf5.chunks import StoredChunks

KEEP: dict[str, Any] = {"filters": "keep", "compressors": "keep"}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hdf5(tmp_path_factory.mktemp("hdf5") / "sample.h5")


def datasets(path: Path) -> dict[str, Any]:
    """Return what h5py reads, by path; read before anything of ours runs, as h5py locks all threads in a visit."""
    found: dict[str, Any] = {}

    def note(name: str, each: Any) -> None:
        if isinstance(each, h5py.Dataset):
            found[name] = each.asstr()[()] if each.dtype.kind == "O" else each[()]

    with h5py.File(path) as file:
        file.visititems(note)
    return found


def check(group: zardine.Group, expected: dict[str, Any]) -> None:
    assert {path for path, node in group.members(max_depth=None) if isinstance(node, zardine.Array)} >= set(expected)
    for path, values in expected.items():
        array = group[path]
        assert isinstance(array, zardine.Array)
        assert equal(array[...], values), path


def test_every_element(sample: Path) -> None:
    expected = datasets(sample)
    assert len(expected) > 180
    check(zardine.sources.open(sample), expected)


@pytest.mark.parametrize(
    "options", [{}, KEEP | {"serializer": "keep"}, *([KEEP, {"chunks": "auto"}] if SOAK else [])], ids=str
)
def test_every_element_converted(sample: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zardine.errors.ZarrUserWarning)
        made = zardine.convert(sample, tmp_path / "made", verify=True, **options)
    assert isinstance(made, zardine.Group)
    check(made, datasets(sample))
    assert not zardine.verify(tmp_path / "made").faults
    assert dict(made["attributes"].attrs) == dict(zardine.sources.open(sample)["attributes"].attrs)


def test_attributes(sample: Path) -> None:
    found = dict(zardine.sources.open(sample)["attributes"].attrs)
    assert found == {
        "int": -3,
        "float": float(np.float32(0.1)),
        "numbers": [0, 1, 2, 3],
        "table": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]],
        "text": "Grüße",
        "bytes": "plain",
        "texts": ["a", "bé"],
        "flags": [True, False],
        "nothing": [],
        "no_text": "",
        "record": {"a": 1, "b": 2.5},
        "not_finite": [1.0, "Infinity", "NaN"],
        "complex": [1.0, 2.0],
        "reference": "/kinds/scalar",
        "huge": 2**64 - 1,
        "enum": 1,
        "sequences": [[0, 1], [0, 1, 2]],
    }


def test_what_is_said_before_anything_is_written(sample: Path, tmp_path: Path) -> None:
    with pytest.warns(zardine.errors.ZarrUserWarning) as caught:
        zardine.convert(sample, tmp_path / "made")
    text = str(caught[0].message)
    for part in (
        "/attributes: attribute reference: references to objects became their paths",
        "/links: its member 'out' is a link to /secret of the file 'elsewhere.h5': left out",
        "/links: its member 'round' is another name of the group /: left out",
    ):
        assert part in text


def test_metadata(sample: Path, tmp_path: Path) -> None:
    group = zardine.sources.open(sample)
    growing = group["layouts/growing/i4"]
    assert growing.chunks == (3, 4)
    assert growing.metadata.unknown[ORIGIN]["unlimited_dimensions"] == [growing.dimension_names[0]]
    assert [codec.name for codec in growing.compressors] == ["numcodecs.shuffle", "numcodecs.zlib"]
    assert group["kinds/never"].fill_value == np.float32(2.5)
    assert group["kinds/never_chunked"].nchunks_initialized == 0
    assert group["kinds/in_part"].nchunks_initialized == 1
    assert group["kinds/colour"].metadata.unknown[ORIGIN]["enumeration"] == {"RED": 0, "GREEN": 1, "BLUE": 2}
    assert group["kinds/times"].dtype == np.dtype("M8[ns]")
    assert list(group.store.left_out()) == []
    assert group.store.read_only
    with pytest.raises(zardine.errors.ReadOnlyError, match="is a file of HDF5"):
        group.store.set("a", b"")
    again = pickle.loads(pickle.dumps(group))
    assert again.store == group.store
    assert equal(again["kinds/in_part"][...], group["kinds/in_part"][...])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zardine.errors.ZarrUserWarning)
        made = zardine.convert(sample, tmp_path / "made")
    assert made["kinds/in_part"].nshards_initialized == 1
    assert made["kinds/colour"].metadata.unknown == group["kinds/colour"].metadata.unknown


def test_chunks_are_read_without_the_library(sample: Path) -> None:
    """Of each layout that zardine has codecs for, chunks are ranges of the file."""
    store = zardine.sources.open(sample).store
    for layout in ("chunked", "deflate", "shuffled", "growing"):
        for name in ("i4", "f8big", "c16", "b1", "V10", "S5"):
            chunks = store._shown.nodes[f"layouts/{layout}/{name}"].chunks  # type: ignore[attr-defined]
            assert isinstance(chunks, StoredChunks)
            found = chunks.find((0, 0))
            assert type(found).__name__ == "Span", (layout, name)


@pytest.mark.parametrize("layout", ["deflate", "shuffled"])
def test_chunks_are_copied_as_they_are(sample: Path, tmp_path: Path, layout: str) -> None:
    source = zardine.sources.open(sample)[f"layouts/{layout}/i4"]
    made = zardine.convert(source, tmp_path / "made", shards=None, **KEEP)
    names = [codec.name for codec in source.compressors]
    assert [codec.name for codec in made.compressors] == [*names, "crc32c"]
    for i in range(3):
        for j in range(3):
            before = source.store.get(f"layouts/{layout}/i4/c/{i}/{j}")
            after = (tmp_path / "made" / "c" / str(i) / str(j)).read_bytes()
            assert after[:-4] == bytes(before)
    assert equal(made[...], source[...])


def test_a_header_of_another_program_before_it(tmp_path: Path) -> None:
    values = np.arange(600, dtype="<i4").reshape(20, 30)
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=1024) as file:
        file.create_dataset("a", data=values, chunks=(7, 11), compression="gzip", shuffle=True)
        file["b"] = values
    with open(tmp_path / "a.h5", "r+b") as raw:
        raw.write(b"something else")
    group = zardine.sources.open(tmp_path / "a.h5")
    assert equal(group["a"][...], values)
    assert equal(group["b"][...], values)
    assert equal(zardine.convert(tmp_path / "a.h5", tmp_path / "made", **KEEP)["a"][...], values)


def test_a_data_set_that_became_smaller(tmp_path: Path) -> None:
    values = np.arange(600, dtype="<i4").reshape(20, 30)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, chunks=(7, 11), maxshape=(None, None))
        file["a"].resize((9, 12))
        wanted = file["a"][()]
    made = zardine.convert(tmp_path / "a.h5", tmp_path / "made", verify=True)
    assert equal(made["a"][...], wanted)


def test_partial_chunks_without_filters(tmp_path: Path) -> None:
    """A chunk at the end as long as its elements may lack its filters: then the library reads it."""
    values = np.random.default_rng(0).integers(0, 256, (10, 10), np.uint8)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, chunks=(4, 4), shuffle=True, fletcher32=True, dtype="u1")
        file.create_dataset("b", data=values.astype("<u2"), chunks=(4, 4), shuffle=True)
    group = zardine.sources.open(tmp_path / "a.h5")
    assert equal(group["a"][...], values)
    assert equal(group["b"][...], values.astype("<u2"))


def test_names_of_dimensions(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(4.0)
        file["x"].make_scale("the x")
        file["a"] = np.zeros((4, 3))
        file["a"].dims[0].attach_scale(file["x"])
        file["square"] = np.zeros((5, 5))
        file["other"] = np.zeros((5,))
    group = zardine.sources.open(tmp_path / "a.h5")
    names = {name: array.dimension_names for name, array in group.arrays()}
    assert names["x"] == ("x",)
    assert names["a"][0] == "x"
    assert len(set(names["square"])) == 2
    assert names["other"][0] in names["square"]
    assert dict(group["x"].attrs) == {}


def test_layouts_are_all_there(sample: Path) -> None:
    assert set(zardine.sources.open(sample)["layouts"].group_keys()) == set(LAYOUTS)


def test_text_that_is_not_utf8_is_listed_before_anything_is_written(tmp_path: Path) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "made"
    with h5py.File(source, "w") as file:
        file["good"] = ["a", "bé"]
        for path, chunks in (("bad", None), ("inner/bad", (2,))):
            file.create_dataset(path, (5,), h5py.string_dtype("utf-8"), chunks=chunks)[3] = b"\xff\xfe"
    with pytest.raises(zardine.errors.ConversionError, match="nothing was converted: 2 of the 5 nodes") as caught:
        zardine.convert(source, target)
    assert [each.place for each in caught.value.problems] == ["/bad", "/inner/bad"]
    assert "text that is not UTF-8" in str(caught.value)
    assert "leave_out=True" in str(caught.value)
    assert not target.exists()
    with pytest.warns(zardine.errors.ZarrUserWarning, match="/inner/bad is left out: .*text that is not UTF-8"):
        made = zardine.convert(source, target, leave_out=True, verify=True)
    assert {path for path, _ in made.members(max_depth=None)} == {"good", "inner"}
    assert list(made["good"][...]) == ["a", "bé"]
    with pytest.raises(zardine.errors.ConversionError, match="nothing was converted: it cannot be expressed"):
        zardine.convert(source, tmp_path / "one", source_path="bad", leave_out=True)


def test_opaque_elements_in_shards_are_told(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["opaque"] = np.frombuffer(b"abcdeabcdeabcde", "V5")
    with pytest.warns(zardine.errors.ZarrUserWarning, match="/opaque: its elements are bytes in shards"):
        zardine.convert(tmp_path / "a.h5", tmp_path / "made")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zardine.convert(tmp_path / "a.h5", tmp_path / "bare", shards=None)
    found = xarray.open_zarr(tmp_path / "bare", chunks=None)["opaque"]
    assert equal(found.values, np.frombuffer(b"abcdeabcdeabcde", "V5"))


def test_names_that_only_hdf5_has_are_told(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["t"], file["u"] = np.arange(3), np.arange(4)
        file["u"].make_scale("u")
        file["t"].make_scale("hours")
        file["v"] = np.zeros((3, 4))
        file["v"].dims[0].attach_scale(file["t"])
        file["v"].dims[0].label = "when"
        file["v"].dims[1].attach_scale(file["u"])
        file["v"].dims[1].label = ""
        file["v"].attrs.create("kind", 1, dtype=h5py.enum_dtype({"NO": 0, "YES": 1}))
        file["v"].attrs["none"] = h5py.Empty("f4")
    with pytest.warns(ZarrUserWarning) as told:
        zardine.convert(tmp_path / "in.h5", tmp_path / "out.zarr")
    text = "\n".join(str(each.message) for each in told)
    for each in (
        "/t: left out: the name of the dimension scale, hours",
        "/v: left out: the labels of dimensions, when",
        "/v: attribute kind: an enumeration became integers, without the names NO, YES",
        "/v: attribute none: it has no value (null), and became an empty one",
    ):
        assert each in text
    assert "/u:" not in text
