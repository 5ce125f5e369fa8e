"""Exports where there is no room: an error that says of which file, and never a file that is cut off."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from crash.space import Space, full_disk, small_files
from zardine import vectors
from zardine.errors import DataError, StoreError

LINES = [np.random.default_rng(number).random((5, 3)) * 100 for number in range(120)]


@pytest.fixture
def space(tmp_path: Path) -> Iterator[Space]:
    with ExitStack() as stack:
        (tmp_path / "disk").mkdir()
        yield stack.enter_context(full_disk(tmp_path / "disk")) or stack.enter_context(small_files(tmp_path / "disk"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ending", ["shp", "geojson", "gpkg", "trk", "tck", "trx", "parquet"])
def test_every_amount_of_room(tmp_path: Path, space: Space, ending: str) -> None:
    vectors.write_polylines(tmp_path / "l.zv", LINES, chunk_shape=25, object_attributes={"w": np.arange(120.0)})
    folder = space.folder / "made"
    folder.mkdir()
    target, refused, done = folder / f"l.{ending}", 0, 0
    for room in range(0, 2**18, 2**14 if ending == "gpkg" else 2**12):
        space.leave(room)
        try:
            vectors.export_vectors(tmp_path / "l.zv", target, overwrite=True)
        except (StoreError, DataError) as error:
            failure = error
        else:
            done += 1
        finally:
            space.free()
        if not done:
            assert str(target) in str(failure)
            assert isinstance(failure, DataError) or failure.errno == space.errno
            assert list(folder.iterdir()) == []
            refused += 1
            continue
        vectors.import_vectors(target, tmp_path / "back.zv", chunk_shape=25, overwrite=True)
        assert len(vectors.open(tmp_path / "back.zv").objects) == 120
        break
    assert refused
    assert done


def test_no_room_for_temporary_files(tmp_path: Path) -> None:
    """It is not the target that is full, and nobody is killed by the system for memory that has no place on a disk."""
    program = """
import sys
import numpy as np
from zardine.errors import StoreError
from zardine.vectors.storing.spools import Spool, mapped

def put():
    spool = Spool()
    for _ in range(64):
        spool.put(bytes(2**16))

for use in (put, lambda: mapped((2**19,), "float64").fill(1)):
    try:
        use()
    except StoreError as error:
        print(error.errno, error)
"""
    with full_disk(tmp_path) as space:
        if space is None:
            pytest.skip("no file system can be mounted")
        done = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True
        )
    told = f"{errno.ENOSPC} a temporary file in {tmp_path} failed: {os.strerror(errno.ENOSPC)}; TMPDIR names"
    assert done.returncode == 0, done
    assert [line.startswith(told) for line in done.stdout.splitlines()] == [True, True], done.stdout


def test_a_new_store_that_could_not_be_written_leaves_no_folder(space: Space) -> None:
    points, target = np.random.default_rng(0).random((5000, 3)), space.folder / "p.zv"
    space.leave(2**14)
    with pytest.raises(StoreError):
        vectors.write_points(target, points, chunk_shape=1)
    space.free()
    assert not target.exists()
    vectors.write_points(target, points, chunk_shape=1)
    assert vectors.validate(target)
