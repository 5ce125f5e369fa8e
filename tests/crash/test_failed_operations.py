"""Operations on whole arrays and hierarchies on a full disk, and with Ctrl-C."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.operations import OPERATIONS, judge, look, renew
from crash.space import FullDisk, full_disk
from effort import SOAK, new_seed, some
from zardine.errors import ZardineError


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FullDisk]:
    with full_disk(tmp_path) as found:
        if found is None:
            pytest.skip("no file system may be mounted")
        yield found


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_amount_of_room(name: str, disk: FullDisk) -> None:
    """After an error the old state holds, the same call works, and nothing of the failed one is seen later."""
    operation = OPERATIONS[name]
    start, root = disk.folder / "start", disk.folder / "root"
    start.mkdir()
    operation.prepare(start)
    renew(start, root)
    old = look(root)
    operation.act(root)
    new = look(root)
    failed, wrong = 0, []
    for number, room in enumerate(some(range(0, 2**19, disk.step), 3)):
        renew(start, root)
        disk.leave(room)
        error: ZardineError | None = None
        try:
            operation.act(root)
        except ZardineError as raised:
            error = raised
        disk.free()
        if error is None:
            assert look(root) == new
            break
        failed += 1
        fault = judge(operation, root, old, new, error, retry=number % 2 == 0)
        wrong += [f"{room} bytes: {fault}; raised {error!r}"] * bool(fault)
    assert wrong == []
    assert failed > 0 or name == "move"  # which needs no room


def test_ctrl_c(tmp_path: Path) -> None:
    rounds = 200 if SOAK else 6
    command = [sys.executable, "-W", "ignore", Path(__file__).with_name("operations.py"), tmp_path]
    done = subprocess.run(
        [*command, str(new_seed(1)), str(rounds)], capture_output=True, text=True, timeout=1800, check=False
    )
    *wrong, last = done.stdout.splitlines() or [""]
    assert done.returncode == 0, done.stderr
    interrupts = int(last.removeprefix("done "))
    assert interrupts > len(OPERATIONS)
    assert len(wrong) <= 1 + interrupts // 50, wrong  # some come between two lines of Python
