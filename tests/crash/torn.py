"""Every state that a writer may leave in a folder if it is killed at any call, and at any byte of one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import zardine
from crash.killing import watch_calls

State = dict[str, bytes]
"""Files by their path below the folder, those that are no keys too."""


def killed_states(root: Path, write: Callable[[], object]) -> list[State]:
    """What is below ``root`` before each call that ``write`` makes, and after each byte that it writes, in order.

    The last one is what is there when it is done.
    """
    states = [state_of(root)]

    def note(state: State) -> None:
        if state != states[-1]:
            states.append(state)

    def instead(name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        before = state_of(root)
        note(before)
        if name in ("write", "pwritev"):
            data = b"".join(map(bytes, args[1])) if name == "pwritev" else bytes(args[1])
            offset = args[2] if name == "pwritev" else os.lseek(args[0], 0, os.SEEK_CUR)
            path = os.path.relpath(os.readlink(f"/proc/self/fd/{args[0]}"), os.path.realpath(root))
            if path in before:
                for length in range(len(data)):
                    note({**before, path: _written(before[path], offset, data[:length])})
        return call(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch, zardine.config.set({"threads": 1}):
        watch_calls(instead, patch.setattr)
        write()
    note(state_of(root))
    return states


def torn(root: Path, write: Callable[[], object], file: str = "c/0/0") -> State:
    """One of them: the writer is killed when half of what it puts into ``file`` is there."""
    states = killed_states(root, write)
    sizes = sorted({len(state[file]) for state in states})
    middle = sizes[len(sizes) // 2]
    return next(state for state in states if len(state[file]) == middle)


def state_of(root: Path) -> State:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def put_state(state: State, root: Path, before: State | None = None) -> None:
    """Have these files below ``root``, and no others; ``before``: what is known to be there."""
    before = state_of(root) if before is None else before
    for path in before.keys() - state.keys():
        (root / path).unlink(missing_ok=True)
    for path, data in state.items():
        if before.get(path) != data:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)


def _written(data: bytes, offset: int, new: bytes) -> bytes:
    if not new:
        return data
    return data[:offset].ljust(offset, b"\0") + new + data[offset + len(new) :]


def bits(data: bytes) -> Iterator[bytes]:
    """``data`` with one bit changed, for every bit."""
    for at in range(len(data)):
        for bit in range(8):
            yield data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def cuts(data: bytes) -> Iterator[bytes]:
    """Every shorter beginning, and every shorter end, of ``data``."""
    yield from (data[:length] for length in range(len(data)))
    yield from (data[start:] for start in range(1, len(data)))
