"""Files with wrong bytes, read by zardine and by the library of their format.

``python -m sources.fuzz_files FORM SEED COUNT`` prints ``case SEED`` before each, and ``wrong SEED ...`` where zardine
raises what is no error of its own, or gives elements that are neither those of the file before it was damaged nor what
the library reads. With ``alone`` as a further word only the library reads: where it crashes or hangs by itself, there
is nothing that zardine could do.
"""

from __future__ import annotations

import random
import sys
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import scipy.io

import zardine
import zardine.sources
from sources.same_elements import equal
from zardine.errors import ZardineError

FORMS = ("latest", "earliest", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA")
"""Of HDF5 two, and of NetCDF 3 two."""
_MOST = 10**6
"""Elements of an array that are read: damage may say that there are more."""


def make(path: Path, form: str) -> None:
    """Write a small file with a bit of everything."""
    values = np.random.default_rng(0).integers(0, 99, (12, 10)).astype("<i4")
    if form.startswith("NETCDF3"):
        with netCDF4.Dataset(path, "w", format=form) as file:
            file.createDimension("time", None)
            file.createDimension("x", 10)
            file.title, file.numbers = "Example", np.arange(3, dtype="i4")
            for name, kind, names in [("a", "i4", ("time", "x")), ("b", "i2", ("time",)), ("x", "f8", ("x",))]:
                made = file.createVariable(name, kind, names)
                made.units = "K"
                made[:] = values if len(names) == 2 else values[: 12 if names == ("time",) else 10, 0]
        return
    layouts: dict[str, dict[str, Any]] = {
        "gzip": {"compression": "gzip"},
        "shuffled": {"compression": "gzip", "shuffle": True, "fletcher32": True},
        "plain": {},
        "lzf": {"compression": "lzf", "fletcher32": True},  # without, the library gives what happens to be in memory
        "growing": {"maxshape": (None, 10), "compression": "gzip"},
    }
    with h5py.File(path, "w", libver=form) as file:
        file.create_dataset("x", data=np.arange(10.0)).make_scale("x")
        for name, options in layouts.items():
            made = file.create_dataset(f"group/{name}", data=values, chunks=(5, 4), **options)
            made.dims[1].attach_scale(file["x"])
            made.attrs["units"], made.attrs["numbers"] = "K", np.arange(3)
        file.create_dataset("contiguous", data=values.astype(">f8"), fillvalue=3)
        file["text"] = np.array(["a", "bé"], object)


def damaged(whole: bytes, seed: int) -> bytes:
    """Return the bytes with some of them wrong, or cut off."""
    rng = random.Random(seed)
    data = bytearray(whole[: rng.randrange(8, len(whole))] if rng.random() < 0.1 else whole)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randrange(4, len(data))
        data[at] = rng.choice([rng.randrange(256), data[at] ^ (1 << rng.randrange(8)), 0, 255])
    return bytes(data)


def by_the_library(path: Path, form: str) -> dict[str, Any]:
    """Return what the library reads, by path; nothing of what it cannot read."""
    found: dict[str, Any] = {}
    with suppress(Exception):  # it raises anything
        if form == "NETCDF3_CLASSIC":
            with scipy.io.netcdf_file(path, mmap=False, maskandscale=False) as file:
                return {name: each.data for name, each in file.variables.items() if each.data.size < _MOST}
        if form.startswith("NETCDF3"):
            with netCDF4.Dataset(path) as file:
                file.set_auto_maskandscale(False)
                for name, variable in file.variables.items():
                    with suppress(Exception):
                        if variable.size < _MOST:
                            found[name] = np.asarray(variable[...])
            return found
        with h5py.File(path) as file:
            names: list[str] = []
            with suppress(Exception):
                file.visit(names.append)
            for name in names:
                with suppress(Exception):
                    each = file[name]
                    if isinstance(each, h5py.Dataset) and each.size is not None and each.size < _MOST:
                        found[name] = each.asstr()[()] if each.dtype.kind == "O" else each[()]
                    [dict(each.attrs)]
    return found


def by_us(path: Path) -> dict[str, Any]:
    """Return what zardine reads, by path; without what it refuses with an error of its own."""
    found: dict[str, Any] = {}
    try:
        group = zardine.sources.open(path)
        assert isinstance(group, zardine.Group)
        members = dict(group.members(max_depth=None))
    except ZardineError:
        return found
    for name, each in members.items():
        dict(each.attrs)
        if isinstance(each, zardine.Array) and each.size < _MOST:
            try:
                found[name] = each[...]
            except ZardineError:
                continue
    return found


def is_one_of(values: Any, known: Sequence[Any]) -> bool:
    """Whether each element is in one of the other arrays."""
    same = [each for each in known if values.shape == each.shape]
    if not same or any(equal(values, each) for each in same):
        return bool(same)
    with np.errstate(invalid="ignore"):
        return bool(np.any([np.isin(values == each, True) | (values != values) for each in same], axis=0).all())


def main() -> None:
    """Try files."""
    form, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        make(path, form)
        whole = path.read_bytes()
        intact = [] if form.startswith("NETCDF3") else [by_the_library(path, form)]  # that format has no checksums
        read = 0
        for seed in range(first, first + count):
            print("case", seed, flush=True)
            path.write_bytes(damaged(whole, seed))
            library = by_the_library(path, form)
            if "alone" in sys.argv:
                continue
            try:
                found = by_us(path)
            except Exception as error:
                print("wrong", seed, repr(error))
                continue
            read += len(found)
            for name, values in found.items():
                known = [each[name] for each in (library, *intact) if name in each]
                if known and not is_one_of(values, known):
                    print("wrong", seed, name, values.shape, known[0].shape, values.ravel()[:8], known[0].ravel()[:8])
        print("read", read)


if __name__ == "__main__":
    main()
