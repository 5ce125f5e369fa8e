"""Other programs: a process with zarr-python and tensorstore that reads and writes arrays when asked.

``python -m crash.foreign ADDRESS`` serves requests, which are dictionaries, at a socket of that name.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]


def environment() -> dict[str, str]:
    """Variables with which a new process finds the modules of this folder."""
    tests = str(Path(__file__).parents[1])
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [tests, os.environ.get("PYTHONPATH")]))}


class Foreign:
    """Asks the process at ``address``."""

    def __init__(self, address: str) -> None:
        self.address = address

    def read(self, path: Path) -> dict[str, Any]:
        """What zarr-python and tensorstore find: values and attributes, or the text of an error."""
        return self._ask(do="read", path=str(path))

    def write(self, path: Path, box: tuple[slice, ...], value: int) -> None:
        """Let zarr-python write a value."""
        self._ask(do="write", path=str(path), box=box, value=value)

    def set_attribute(self, path: Path, name: str, value: Any) -> None:
        """Let zarr-python set an attribute."""
        self._ask(do="attribute", path=str(path), name=name, value=value)

    def check(self, path: Path, values: Values, attributes: dict[str, Any]) -> None:
        """That both find these."""
        for program, found in self.read(path).items():
            assert not isinstance(found, str), f"{program}: {found}"
            seen, its_attributes = found
            assert seen.shape == values.shape, f"{program}: shape {seen.shape}, not {values.shape}"
            assert (seen == values).all(), f"{program}: {np.argwhere(seen != values)[:5].tolist()} differ"
            assert its_attributes in (None, attributes), f"{program}: {its_attributes}"

    def _ask(self, **request: Any) -> Any:
        with Client(self.address, "AF_UNIX") as connection:
            connection.send(request)
            answer = connection.recv()
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return answer


@contextmanager
def foreign_programs(folder: Path) -> Iterator[Foreign]:
    """The process, for as long as the context lasts."""
    address = str(folder / "foreign")
    command = [sys.executable, "-m", "crash.foreign", address]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment())
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield Foreign(address)
    finally:
        process.kill()
        process.wait()


def serve(address: str) -> None:
    import tensorstore
    import zarr

    def with_tensorstore(path: str) -> tuple[Values, None]:
        driver = "zarr3" if Path(path, "zarr.json").exists() else "zarr"
        opened = tensorstore.open({"driver": driver, "kvstore": {"driver": "file", "path": path}}).result()
        return np.asarray(opened.read().result()), None

    def with_zarr(path: str) -> tuple[Values, dict[str, Any]]:
        array = zarr.open_array(path, mode="r")
        return np.asarray(array[...]), dict(array.attrs)

    def attempt(read: Any, path: str) -> Any:
        try:
            return read(path)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def answer(request: dict[str, Any]) -> Any:
        path = request["path"]
        if request["do"] == "read":
            return {"zarr-python": attempt(with_zarr, path), "tensorstore": attempt(with_tensorstore, path)}
        array = zarr.open_array(path, mode="r+")
        if request["do"] == "write":
            array[request["box"]] = request["value"]
        else:
            array.attrs[request["name"]] = request["value"]
        return None

    with Listener(address, "AF_UNIX") as listener:
        print("ready", flush=True)
        while True:
            with listener.accept() as connection:
                try:
                    connection.send(answer(connection.recv()))
                except Exception as error:
                    connection.send(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    serve(sys.argv[1])
