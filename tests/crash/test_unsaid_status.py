"""Where the system does not say what an open file is, as network file systems may, an append is still made once."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

import zardine
from crash.killing import Tracer, has_tracer, let_others_trace

pytestmark = pytest.mark.skipif(not has_tracer(), reason="there is no strace that may trace")


def append(path: Path, ready: int, go: int) -> None:
    """Append two rows, the second once that is asked for; by one thread, whose calls have the same numbers always."""
    let_others_trace()
    array = zardine.open_array(path, mode="r+")
    with zardine.config.set({"threads": 1}):
        array.append(np.full((1, 8), 2))
        os.write(ready, b"1")
        os.read(go, 1)
        array.append(np.full((1, 8), 3))


@pytest.mark.parametrize("at", range(1, 12))
def test_a_row_is_there_once(quick_path: Path, at: int) -> None:
    path = quick_path / "a.zarr"
    zardine.create_array(path, data=np.ones((6, 8), "i4"), chunks=(4, 4))
    (ready, says), (waits, go) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            append(path, says, waits)
        finally:
            os._exit(0)
    os.read(ready, 1)
    tracer = Tracer(child, ["-e", "trace=statx", "-e", f"inject=statx:error=EIO:when={at}"])
    os.write(go, b"1")
    end = time.monotonic() + 20
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        assert time.monotonic() < end
        time.sleep(0.001)
    tracer.wait()
    for each in (ready, says, waits, go):
        os.close(each)
    assert zardine.open_array(path)[:, 0].tolist() == [*[1] * 6, 2, 3]
    assert zardine.verify(path).faults == ()
