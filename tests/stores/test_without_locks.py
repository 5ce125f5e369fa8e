"""File systems without ``flock``, or with a poorer one: nothing is lost there unless the user was told so."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import zardine

HERE = Path(__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None or sys.platform != "linux", reason="needs a C compiler and LD_PRELOAD")

REFUSALS = [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("library") / "no_locks.so"
    assert COMPILER is not None
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", made, HERE / "no_locks.c", "-ldl"], check=True)
    return made


def started(library: Path, *what: object, poor: str, refused: int, kernel: bool = True) -> subprocess.Popen[str]:
    """Start a program of :mod:`stores.without_locks` where locks are ``refused`` with this error number."""
    given = {"LD_PRELOAD": str(library), "POOR": poor, "REFUSED": str(refused), "ZARDINE_KERNEL": "01"[kernel]}
    command = [sys.executable, "-m", "stores.without_locks", *map(str, what)]
    environment = {**os.environ, **given, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, text=True, stdin=pipe, stdout=pipe, stderr=pipe)


def run(library: Path, *what: object, poor: str = "all", refused: int = errno.ENOSYS, kernel: bool = True) -> None:
    program = started(library, *what, poor=poor, refused=refused, kernel=kernel)
    said = program.communicate(timeout=120)
    assert program.returncode == 0, said


@pytest.mark.parametrize(("refused", "kernel"), [*((each, True) for each in REFUSALS), (errno.ENOLCK, False)])
def test_parts_are_refused_and_whole_objects_are_written(
    library: Path, tmp_path: Path, refused: int, kernel: bool
) -> None:
    run(library, "refuse", tmp_path / "a.zarr", refused=refused, kernel=kernel)


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("what", ["archives", "vectors"])
def test_archives_and_vectors(library: Path, tmp_path: Path, what: str, kernel: bool) -> None:
    run(library, what, tmp_path / "a", kernel=kernel)


@pytest.mark.parametrize("kernel", [True, False])
def test_threads_of_the_one_writer_lose_nothing(library: Path, tmp_path: Path, kernel: bool) -> None:
    run(library, "threads", tmp_path / "a.zarr", kernel=kernel)


@pytest.mark.parametrize(
    ("poor", "refused", "is_stored"),
    [
        ("all", errno.ENOSYS, False),
        ("flock", errno.ENOSYS, True),
        ("flock", errno.ENOLCK, True),
        ("read-only", errno.EBADF, True),
        ("directories", errno.EBADF, True),
    ],
)
def test_what_a_process_was_told_is_stored_stays(
    library: Path, tmp_path: Path, poor: str, refused: int, is_stored: bool
) -> None:
    path = tmp_path / "a.zarr"
    zardine.create_array(path, shape=(256,), chunks=(64,), shards=(256,), dtype="i4")
    writers = [started(library, "one_of_several", path, i, poor=poor, refused=refused) for i in range(4)]
    for each in writers:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    said = [each.communicate(timeout=120) for each in writers]
    assert not [each.returncode for each in writers if each.returncode], said
    last = [int(out.split()[-1]) if out.split() else 0 for out, _ in said]
    assert zardine.open_array(path)[::64].tolist() == last
    if is_stored:
        assert last == [60] * 4
    else:
        assert sum(len(out.split()) for out, _ in said) == 1  # who made the shard
