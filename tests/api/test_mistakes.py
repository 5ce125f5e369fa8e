"""What users do wrong, and what they are told: the table ``mistakes.txt``.

A line at the margin is a statement, run with the names that :func:`names` gives. The lines below it are the error: its
class, a colon, and its text, in which ``{d}`` stands for the test's folder and ``…`` for anything (where Python or
NumPy words it). A statement may have a preparation before ``;;``. No mistake may change what is stored.
"""

from __future__ import annotations

import builtins
import os
import re
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import zardine
from zardine import codecs, errors

_TABLE = Path(__file__).with_name("mistakes.txt")


def table() -> dict[str, str]:
    found: dict[str, str] = {}
    statement = ""
    for line in _TABLE.read_text().splitlines():
        if line.startswith("    "):
            found[statement] = f"{found[statement]}\n{line[4:]}".lstrip("\n")
        elif line and not line.startswith("#"):
            statement = line
            assert statement not in found, f"twice in the table: {statement}"
            found[statement] = ""
    return found


def names(folder: str) -> dict[str, Any]:
    """An array, a sharded one, a group and more, freshly stored; some of them also opened for reading only."""
    group = zardine.create_group(f"{folder}/g")
    group.create_array("x", shape=4, dtype="i4")
    group.create_group("sub")
    array = zardine.create_array(f"{folder}/a", data=np.arange(12).reshape(3, 4), chunks=(2, 2))
    return {
        "zarr": zardine,
        "np": np,
        "numcodecs": numcodecs,
        "codecs": codecs,
        "os": os,
        "d": folder,
        "a": array,
        "g": group,
        "structs": zardine.create_array(f"{folder}/structs", shape=3, dtype=[("p", "i4"), ("q", "f8")]),
        "texts": zardine.create_array(f"{folder}/texts", shape=3, dtype="string"),
        "binaries": zardine.create_array(f"{folder}/binaries", shape=3, dtype="bytes"),
        "read_only": zardine.open_array(f"{folder}/a", mode="r"),
        "read_only_group": zardine.open_group(f"{folder}/g", mode="r"),
        "locked": zardine.storage.LocalStore(f"{folder}/g", read_only=True),
        "document": lambda text: document(f"{folder}/j", "zarr.json", text),
        "v2": lambda name: document(f"{folder}/v2", name, "{}"),
        "file": lambda name: document(folder, name, "x"),
    }


def document(folder: str, name: str, text: str) -> None:
    os.makedirs(folder, exist_ok=True)
    Path(folder, name).write_text(text)


def stored(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], dict[str, bytes]]:
    """One folder for all statements without preparation, since none of them may change it."""
    folder = tmp_path_factory.mktemp("mistakes")
    return folder, names(str(folder)), stored(folder)


@pytest.mark.parametrize("statement", table())
def test_mistake(statement: str, shared: Any, request: pytest.FixtureRequest) -> None:
    *preparations, mistake = statement.split(";;")
    folder, space, before = shared
    if preparations:
        folder = request.getfixturevalue("tmp_path")
        space = names(str(folder))
        for preparation in preparations:
            exec(preparation.strip(), space)
        before = stored(folder)
    kind, _, text = table()[statement].partition(": ")
    expected = getattr(errors, kind, None) or getattr(builtins, kind)
    with pytest.raises(expected) as caught:
        exec(mistake.strip(), dict(space))
    assert type(caught.value) is expected
    pattern = ".*".join(map(re.escape, text.replace("{d}", str(folder)).split("…")))
    assert re.fullmatch(pattern, str(caught.value), re.DOTALL), f"the text is now:\n{caught.value}"
    assert stored(folder) == before, "a mistake changed what is stored"


def test_there_are_many() -> None:
    assert len(table()) >= 250
