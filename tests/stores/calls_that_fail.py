"""Run by a test, with calls that can be let fail: say which works end with what is no error of the library."""

from __future__ import annotations

import ctypes
import errno
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import zardine
from zardine.errors import ZardineError
from zardine.storage import LocalStore

CALLS = ["flock", "fstat", "statvfs", "stat"]


def entered(context: Any) -> None:
    with context:
        pass


def written(array: zardine.Array) -> None:
    array[0:3] = 7


def appended(array: zardine.Array) -> None:
    array.append(np.full(4, 8, "i4"))


def works(root: Path) -> dict[str, Callable[[], object]]:
    def array(**how: Any) -> zardine.Array:
        return zardine.open_array(LocalStore(root), path="a", mode="r+", config=how)

    return {
        "lock": lambda: entered(LocalStore(root).lock("a/zarr.json")),
        "writer": lambda: entered(LocalStore(root).writer("a/")),
        "without writers": lambda: entered(LocalStore(root).without_writers("a/")),
        "wait": lambda: LocalStore(root).wait_for_writers("a/"),
        "read": lambda: array()[...],
        "read a little": lambda: array()[1:2],
        "write": lambda: written(array()),
        "write in place": lambda: written(array(write_strategy="in_place")),
        "append to the shard": lambda: written(array(write_strategy="append")),
        "append": lambda: appended(array()),
        "resize": lambda: array().resize((16,)),
        "attributes": lambda: array().attrs.update(a=1),
        "erase": lambda: LocalStore(root).erase("b"),
        "replace": lambda: zardine.create_array(root, name="c", data=[1], overwrite=True),
        "verify": lambda: zardine.verify(root),
    }


def main(root: Path) -> None:
    fail_call = ctypes.CDLL(None).fail_call
    with zardine.config.set({"threads": 1}):
        for name in works(root):
            for kind, call in enumerate(CALLS):
                for at in range(1, 60):
                    with suppress(Exception):
                        zardine.create_array(
                            root, name="a", data=np.arange(16, dtype="i4"), chunks=(4,), shards=(8,), overwrite=True
                        )
                        LocalStore(root).set("b", b"1")
                    fail_call(kind, at, errno.EIO)
                    try:
                        works(root)[name]()
                    except ZardineError:
                        pass
                    except BaseException as error:
                        where = traceback.extract_tb(error.__traceback__)[-1]
                        print(f"{name}: {call} {at}: {error!r} in {Path(where.filename).name}:{where.lineno}")
                    if not fail_call(-1, 0, 0):
                        break


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    print("done")
