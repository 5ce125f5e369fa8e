"""Files that are cut off, damaged, hostile or of another kind: a clear error, and nothing outside of them is read."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

import zardine
import zardine.sources
from effort import some
from sources.same_elements import equal
from sources.sample_files import write_netcdf
from zardine.errors import ConversionError, CorruptionError, DataError, StoreError, UnsupportedError, ZardineError
from zardine.sources.netcdf3.header import read_header
from zardine.sources.stored_file import StoredFile
from zardine.stores.local.store import LocalStore

VALUES = np.random.default_rng(1).integers(0, 99, (40, 50)).astype("<i4")


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A file of HDF5 with one array in chunks."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=VALUES, chunks=(10, 10), compression="gzip")
    return tmp_path / "a.h5"


def read_all(path: Path) -> dict[str, Any]:
    group = zardine.sources.open(path)
    assert isinstance(group, zardine.Group)
    return {name: array[...] for name, array in group.members(max_depth=None) if isinstance(array, zardine.Array)}


def test_other_kinds(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        zardine.sources.open(tmp_path / "nothing.nc")
    (tmp_path / "text.nc").write_text("hello world")
    for call in (zardine.sources.open, lambda path: zardine.convert(path, tmp_path / "made")):
        with pytest.raises(UnsupportedError, match="neither HDF5 nor NetCDF: it begins with b'hello wo'"):
            call(tmp_path / "text.nc")
    (tmp_path / "empty.h5").touch()
    with pytest.raises(UnsupportedError, match="it is empty"):
        zardine.sources.open(tmp_path / "empty.h5")
    with pytest.raises(StoreError, match="is a directory, not a file"):
        zardine.sources.open(tmp_path)
    assert not (tmp_path / "made").exists()


def test_files_cut_off(plain: Path, tmp_path: Path) -> None:
    whole = plain.read_bytes()
    cut = tmp_path / "cut.h5"
    for size in some(range(8, len(whole), 97), 25):
        cut.write_bytes(whole[:size])
        with pytest.raises((DataError, UnsupportedError)):
            read_all(cut)


def test_netcdf3_cut_off(tmp_path: Path) -> None:
    whole = write_netcdf(tmp_path / "a.nc", "NETCDF3_CLASSIC").read_bytes()
    cut = tmp_path / "cut.nc"
    for size in some(range(4, len(whole) - 8, 31), 60):
        cut.write_bytes(whole[:size])
        with pytest.raises(CorruptionError, match=r"cut off|the header of NetCDF is wrong"):
            zardine.sources.open(cut)


def test_headers_of_netcdf3_with_wrong_bytes(tmp_path: Path) -> None:
    """Whatever is there, it is an error of ours or other values, soon and in little memory."""
    whole = bytearray(write_netcdf(tmp_path / "a.nc", "NETCDF3_64BIT_DATA").read_bytes())
    changed = tmp_path / "changed.nc"
    for at in some(range(4, 1500), 150):
        data = whole.copy()
        data[at] ^= 0xFF
        changed.write_bytes(data)
        with suppress(ZardineError):
            group = zardine.sources.open(changed)
            assert isinstance(group, zardine.Group)
            for _, array in group.arrays():
                array[(0,) * array.ndim if 0 not in array.shape else ...]


@pytest.mark.parametrize(
    ("lengths", "variables", "said"),
    [
        ((0, 0, 2), [], "2 dimensions are unlimited, 'x' and 'y' among them"),
        ((2, 2), [("a", (0, 7))], "its variable 'a' has dimension 7, and there are 2"),
        ((2, 0), [("a", (1,)), ("b", (0, 1))], "the unlimited dimension is not the first of its variable 'b'"),
        ((1,), [("a", (0,)), ("b", (0,)), ("a", (0,))], "two variables are called 'a'"),
    ],
)
def test_headers_of_netcdf3_that_contradict_themselves(
    lengths: tuple[int, ...], variables: list[tuple[str, tuple[int, ...]]], said: str, tmp_path: Path
) -> None:
    """Dimensions ``x``, ``y`` and ``z``, variables of bytes; what is wrong is named."""

    def listed(tag: int, entries: list[bytes]) -> bytes:
        return struct.pack(">II", tag, len(entries)) + b"".join(entries)

    def name(letter: str) -> bytes:
        return struct.pack(">I", 1) + letter.encode() + bytes(3)

    dimensions = [name(each) + struct.pack(">I", length) for each, length in zip("xyz", lengths, strict=False)]
    members = [
        name(each) + struct.pack(f">I{len(axes)}I", len(axes), *axes) + listed(0, []) + struct.pack(">III", 1, 4, 512)
        for each, axes in variables
    ]
    header = b"CDF\x01" + struct.pack(">I", 1) + listed(10, dimensions) + listed(0, []) + listed(11, members)
    (tmp_path / "a.nc").write_bytes(header.ljust(600, b"\0"))
    with pytest.raises(CorruptionError, match=said):
        zardine.sources.open(tmp_path / "a.nc")


def test_huge_sizes(tmp_path: Path) -> None:
    name = struct.pack(">I", 1) + b"x\0\0\0"
    header = b"CDF\x01" + struct.pack(">III", 0, 10, 1) + name + struct.pack(">I", 2**31 - 1)
    (tmp_path / "a.nc").write_bytes(header + struct.pack(">II", 0, 0) + struct.pack(">II", 11, 2**32 - 1))
    with pytest.raises(CorruptionError, match="it says that it has 4,294,967,295 variables"):
        zardine.sources.open(tmp_path / "a.nc")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", (2**40, 2**20), "f8", chunks=(2**12, 2**12))
    array = zardine.sources.open(tmp_path / "a.h5")["a"]
    assert array.shape == (2**40, 2**20)
    assert array.nchunks_initialized == 0
    assert array[5, 5] == 0.0


@pytest.mark.parametrize("options", [{"verify": True}, {"compressors": "zstd"}, {"chunks": (2, 2)}], ids=str)
def test_damaged_chunks(plain: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    """What decodes finds them. What copies says only in which array and chunk they are, when they are read."""
    with h5py.File(plain) as file:
        info = file["a"].id.get_chunk_info(0)
    data = bytearray(plain.read_bytes())
    data[info.byte_offset + 5] ^= 0xFF
    plain.write_bytes(data)
    with pytest.raises(DataError, match=r"array.*a.*chunk"):
        read_all(plain)
    with pytest.raises(DataError):
        zardine.convert(plain, tmp_path / "made", **options)
    with pytest.raises(zardine.errors.NodeNotFoundError, match="not finished"):
        zardine.open(tmp_path / "made", mode="r")
    with pytest.warns(zardine.errors.ZarrUserWarning, match=r"/a: its chunks are copied .* numcodecs.zlib"):
        copied = zardine.convert(plain, tmp_path / "copied")
    with pytest.raises(DataError, match=r"array.*a.*chunk"):
        copied["a"][...]


def test_chunks_of_the_wrong_length(tmp_path: Path) -> None:
    """HDF5 gives what happens to be in memory behind the bytes of such a chunk."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, options in {"spared": {"compression": "lzf", "shuffle": True}, "bare": {"fletcher32": True}}.items():
            found = file.create_dataset(name, (20, 10), "<i4", chunks=(10, 10), **options)
            found.id.write_direct_chunk((0, 0), VALUES[:10, :10].tobytes(), 0b11)
            found.id.write_direct_chunk((10, 0), b"too short", 0b11)
    group = zardine.sources.open(tmp_path / "a.h5")
    for name in ("spared", "bare"):
        assert equal(group[name][:10], VALUES[:10, :10])
        with pytest.raises(CorruptionError, match=r"the chunk at \(1, 0\) of the grid has 9 bytes .* should be 400"):
            group[name][10:]


def test_nothing_outside_is_read(tmp_path: Path) -> None:
    secret = np.full((4, 4), 42, "<i4")
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["a"] = secret
    (tmp_path / "raw").write_bytes(secret.tobytes())
    inner = tmp_path / "folder"
    inner.mkdir()
    with h5py.File(inner / "a.h5", "w") as file:
        file["link"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "/a")
        file["through"] = h5py.SoftLink("/link")
        file.create_dataset("raw", (4, 4), "<i4", external=[(str(tmp_path / "raw"), 0, 64)])
        layout = h5py.VirtualLayout((4, 4), "<i4")
        layout[...] = h5py.VirtualSource(tmp_path / "secret.h5", "a", (4, 4))
        file.create_virtual_dataset("virtual", layout)
        growing = h5py.VirtualLayout((4, 4), "<i4", maxshape=(None, 4))
        growing[: h5py.h5s.UNLIMITED] = h5py.VirtualSource(tmp_path / "secret.h5", "a", (4, 4), maxshape=(None, 4))[
            : h5py.h5s.UNLIMITED
        ]
        file.create_virtual_dataset("growing", growing)
        file["good"] = VALUES
    group = zardine.sources.open(inner / "a.h5")
    assert list(group.array_keys()) == ["good"]
    assert dict(group.store.left_out()).keys() == {"raw", "virtual", "growing"}
    with pytest.raises(ConversionError) as caught:
        zardine.convert(inner / "a.h5", tmp_path / "made")
    assert "/raw: its elements are in other files, which are never read" in str(caught.value)
    assert "leave_out=True (--leave-out) converts the rest" in str(caught.value)
    assert not (tmp_path / "made").exists()
    with pytest.warns(zardine.errors.ZarrUserWarning, match="/virtual is left out: it is made of other data sets"):
        made = zardine.convert(inner / "a.h5", tmp_path / "made", leave_out=True)
    assert isinstance(made, zardine.Group)
    assert list(made.array_keys()) == ["good"]


def test_groups_in_circles(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for i in range(40):  # 2^40 paths
            file.create_group(f"g{i}")
        for i in range(39):
            file[f"g{i}/left"] = file[f"g{i + 1}"]
            file[f"g{i}/right"] = file[f"g{i + 1}"]
        file["g39/round"] = file["/"]
        file["g39/a"] = VALUES
    group = zardine.sources.open(tmp_path / "a.h5")
    assert len(dict(group.members(max_depth=None))) == 41
    assert equal(group["g39/a"][...], VALUES)


def test_filters_that_nobody_has(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((10, 10))
        creation.set_filter(33333, h5py.h5z.FLAG_OPTIONAL, (1, 2))
        found = h5py.h5d.create(file.id, b"a", h5py.h5t.STD_I32LE, h5py.h5s.create_simple(VALUES.shape), creation)
        found.write_direct_chunk((0, 0), b"anything")
        file.create_dataset("sequences", (3,), h5py.vlen_dtype("i4"))
        file.create_dataset("references", (3,), h5py.ref_dtype)
        file["nothing"] = h5py.Empty("f4")
        file["long"] = np.zeros(3, np.longdouble)
        file.create_dataset("arrays", (3,), np.dtype(("i4", (2,))))
        file["__reserved"] = VALUES
        file["zarr.json"] = VALUES
    with pytest.raises(ConversionError) as caught:
        zardine.convert(tmp_path / "a.h5", tmp_path / "made")
    reasons = {problem.place: problem.message for problem in caught.value.problems}
    assert "it needs the filter 33333" in reasons["/a"]
    assert "sequences of any length" in reasons["/sequences"]
    assert "references to other objects" in reasons["/references"]
    assert "no elements" in reasons["/nothing"]
    assert "more digits" in reasons["/long"]
    assert "reserved prefix" in reasons["/__reserved"]
    assert "documents of Zarr" in reasons["/zarr.json"]


def test_text_that_is_none(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=np.array([b"good", b"\xff\xfe"], object), dtype=h5py.string_dtype("ascii"))
    array = zardine.sources.open(tmp_path / "a.h5")["a"]
    with pytest.raises(CorruptionError, match="holds text that is not UTF-8"):
        array[...]


def test_a_file_that_changes(plain: Path, tmp_path: Path) -> None:
    group = zardine.sources.open(plain)
    with h5py.File(plain, "r+") as file:
        file["a"][...] = 1
        file["more"] = VALUES
    with pytest.raises(StoreError, match="changed since it was opened: open it again"):
        group["a"][...]
    assert (zardine.sources.open(plain)["a"][...] == 1).all()
    plain.unlink()
    with pytest.raises(StoreError, match="is gone since it was opened"):
        group["a"][...]


def test_damaged_hdf5(tmp_path: Path) -> None:
    """Bytes of the metadata are wrong: an error of ours, or other values."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("g/a", data=VALUES, chunks=(10, 10), compression="gzip").attrs["units"] = "K"
    whole = bytearray((tmp_path / "a.h5").read_bytes())
    for at in some(range(8, len(whole), 7), 60):
        data = whole.copy()
        data[at] ^= 0xFF
        (tmp_path / "b.h5").write_bytes(data)
        with suppress(ZardineError):
            read_all(tmp_path / "b.h5")


def test_netcdf4_is_told_from_hdf5_only_by_what_is_in_it(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "without_ending", "w") as file:
        file.createDimension("x", 3)
        file.createVariable("a", "i4", ("x",))[:] = [1, 2, 3]
    made = zardine.convert(tmp_path / "without_ending", tmp_path / "made")
    assert isinstance(made, zardine.Group)
    assert made["a"].dimension_names == ("x",)


def test_text_and_names_that_are_not_utf8(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_group(b"\xff\xfe")
        file.create_dataset(b"d\xff", data=[1])
        file.id.links.create_soft(b"soft", b"/a\xff")
        group = file.create_group("g")
        group.attrs.create("text", b"caf\xe9", dtype=h5py.string_dtype("utf-8"))
        group.attrs["bytes"] = np.bytes_(b"caf\xe9")
        kind, space = h5py.h5t.py_create(np.dtype("i4")), h5py.h5s.create(h5py.h5s.SCALAR)
        h5py.h5a.create(group.id, b"n\xff", kind, space).write(np.array(3, "i4"))
    opened = zardine.sources.open(tmp_path / "a.h5")
    assert dict(opened["g"].attrs) == {"text": "café", "bytes": "café"}
    assert dict(opened.store.left_out()) == dict.fromkeys((r"\xff\xfe", r"d\xff"), "its name is not UTF-8")
    remarks = list(opened.store.remarks())
    assert ("", r"its member 'soft' is a link to /a\xff: left out") in remarks
    assert ("g", r"attribute n\xff: its name is not UTF-8; it is left out") in remarks
    assert ("g", "attribute text: its text is not UTF-8; it was read as Latin-1") in remarks
    with pytest.raises(ConversionError, match=r"/d\\xff: its name is not UTF-8"):
        zardine.convert(tmp_path / "a.h5", tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_variables_of_netcdf3_that_lie_in_each_other(tmp_path: Path) -> None:
    """The places that a header tells are in its own bytes, or in those of other variables."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_64BIT_DATA") as file:
        file.createDimension("time", None)
        file.createDimension("x", 6)
        for name, names in {"a": ("x",), "b": ("x",), "c": ("time", "x"), "d": ("time", "x")}.items():
            file.createVariable(name, "f4", names)[:] = np.ones((2, 6)[-len(names) :])
    whole = (tmp_path / "a.nc").read_bytes()
    header = read_header(StoredFile(LocalStore(tmp_path), "a.nc"))
    a, b, c, d = (each.begin for each in header.variables)
    wrong = {
        (a, 8): "variable 'a' begins at 8, and its header ends at",
        (b, a + 4): f"variable 'b' begins at {a + 4}, and its variable 'a' ends at {a + 24}",
        (c, b + 8): f"next record begins at {b + 8 + 48}",
        (d, c + 4): f"variable 'd' begins at {c + 4}",
        (d, d + 4): f"next record begins at {c + 48}, and its variable 'd' ends at",
    }
    for (old, new), message in wrong.items():
        place = whole.rindex(struct.pack(">Q", old), 0, a)
        changed = whole[:place] + struct.pack(">Q", new) + whole[place + 8 :] + bytes(99)
        (tmp_path / "b.nc").write_bytes(changed)
        with pytest.raises(CorruptionError, match=message.split(",")[0]):
            zardine.sources.open(tmp_path / "b.nc")
