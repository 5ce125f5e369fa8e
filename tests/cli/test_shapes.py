"""Shapes are typed in the same ways in every command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import click
import laspy
import numpy as np
import pytest

import zardine
from effort import some
from zardine import vectors
from zardine.cli.base import LazyGroup
from zardine.cli.commands import root
from zardine.cli.options import ShapeType, parse_lengths, whole_number

SPELLINGS = ("4,2", "4x2", "4X2", "4×2", "4 2", " 4, 2 ", "4 x 2", "(4, 2)", "[4,2]", "(4, 2,)")


@pytest.fixture
def array(tmp_path: Path) -> str:
    zardine.create_array(tmp_path / "a.zarr", shape=(8, 8), chunks=(2, 2), dtype="i4")[...] = 7
    return str(tmp_path / "a.zarr")


@pytest.fixture
def points(tmp_path: Path) -> str:
    store = str(tmp_path / "p.zv")
    vectors.write_points(store, [[i, 20 * i] for i in range(8)], chunk_shape=(1, 1))
    return store


def converted(run: Any, path: str, *words: str) -> Any:
    result = run("convert", path, f"{path}.new", *words)
    assert (result.exit_code, result.stderr) == (0, ""), result.stderr
    return zardine.open_array(f"{path}.new")


def resharded(run: Any, path: str, *words: str) -> Any:
    result = run("reshard", path, *words)
    assert (result.exit_code, result.stderr) == (0, ""), result.stderr
    return zardine.open_array(path)


def advised(run: Any, *words: str) -> Any:
    result = run("advise", *words, "--json")
    assert (result.exit_code, result.stderr) == (0, ""), result.stderr
    return json.loads(result.stdout)


def packed(run: Any, path: str, *words: str) -> Any:
    assert run("vectors", words[0], path, *words[1:]).exit_code == 0
    return vectors.get_shard_info(path)["0/vertices"]["shard_shape"]


def imported(run: Any, path: str, *words: str) -> Any:
    file = Path(path).with_suffix(".geojson")
    line = {"type": "LineString", "coordinates": [[0, 0], [9, 9], [30, 5]]}
    file.write_text(json.dumps({"type": "Feature", "properties": {}, "geometry": line}))
    result = run("vectors", "import", file, f"{path}.new", *words)
    assert result.exit_code == 0, result.stderr
    return vectors.describe_store(f"{path}.new")


def of_three_axes(text: str) -> str:
    """The spelling of (4, 2) as one of (4, 2, 2)."""
    between = text[text.index("4") + 1 : text.index("2")]
    return text.replace("2", f"2{between}2")


def planned_import(run: Any, path: str, *words: str) -> Any:
    """Facts of a store whose import was planned in these words."""
    file, plan = Path(path).with_suffix(".las"), f"{path}.json"
    scan = laspy.LasData(laspy.LasHeader(point_format=3, version="1.2"))
    scan.xyz = np.array([[0, 0, 0], [9, 9, 9], [30, 5, 30]])
    scan.write(str(file))
    for command in (("plan", "import", file, f"{path}.new", *words, "--out", plan), ("run", plan)):
        result = run("jobs", *command)
        assert result.exit_code == 0, result.stderr
    return vectors.describe_store(f"{path}.new")


def rechunked(run: Any, path: str, *options: str) -> zardine.Array:
    result = run("rechunk", path, f"{path}.new", *options)
    assert result.exit_code == 0, result.stderr
    return zardine.open_array(f"{path}.new")


def planned(run: Any, what: str, path: str, *options: str) -> zardine.Array:
    """What a plan makes."""
    plan = f"{path}.json"
    places = (path, "--to", f"{path}.new") if what == "reshard" else (path, f"{path}.new")
    result = run("jobs", "plan", what, *places, *options, "--out", plan)
    assert result.exit_code == 0, result.stderr
    result = run("jobs", "run", plan)
    assert result.exit_code == 0, result.stderr
    return zardine.open_array(f"{path}.new")


USES: dict[str, Callable[[Any, str, str, str], Any]] = {
    "convert --chunks": lambda run, array, points, text: converted(run, array, "--chunks", text).chunks,
    "convert --shards": lambda run, array, points, text: converted(run, array, "--shards", text).shards,
    "reshard --chunks": lambda run, array, points, text: (
        resharded(run, array, "--shards", "none", "--chunks", text).chunks
    ),
    "reshard --shards": lambda run, array, points, text: resharded(run, array, "--shards", text).shards,
    "rechunk --chunks": lambda run, array, points, text: rechunked(run, array, "--chunks", text).chunks,
    "rechunk --shards": lambda run, array, points, text: (
        rechunked(run, array, "--chunks", "2,1", "--shards", text).shards
    ),
    "plan rechunk --chunks": lambda run, array, points, text: planned(run, "rechunk", array, "--chunks", text).chunks,
    "plan rechunk --shards": lambda run, array, points, text: (
        planned(run, "rechunk", array, "--chunks", "2,1", "--shards", text).shards
    ),
    "plan convert --chunks": lambda run, array, points, text: planned(run, "convert", array, "--chunks", text).chunks,
    "plan convert --shards": lambda run, array, points, text: planned(run, "convert", array, "--shards", text).shards,
    "plan reshard --chunks": lambda run, array, points, text: (
        planned(run, "reshard", array, "--shards", "none", "--chunks", text).chunks
    ),
    "plan reshard --shards": lambda run, array, points, text: planned(run, "reshard", array, "--shards", text).shards,
    "advise PLACE": lambda run, array, points, text: advised(run, text, "f4")["shape"],
    "advise --access": lambda run, array, points, text: (
        advised(run, array, "--access", f"box:{text}=2")["choices"][0]["reads"][0]["access"]
        .removeprefix("box:")
        .split(",")
    ),
    "vectors shard --shards": lambda run, array, points, text: packed(run, points, "shard", "--shards", text),
    "vectors reshard --shards": lambda run, array, points, text: packed(run, points, "reshard", "--shards", text),
    "vectors import --chunks": lambda run, array, points, text: imported(run, points, "--chunks", text)["chunk_shape"],
    "vectors import --shards": lambda run, array, points, text: imported(
        run, points, "--chunks", "1", "--shards", text
    )["levels"][0]["shard_shape"],
    "plan import --chunks": lambda run, array, points, text: planned_import(
        run, points, "--chunks", of_three_axes(text)
    )["chunk_shape"][:2],
    "plan import --shards": lambda run, array, points, text: planned_import(
        run, points, "--chunks", "1", "--shards", of_three_axes(text)
    )["levels"][0]["shard_shape"][:2],
}
"""What comes of a shape, for each command and parameter that takes one."""


@pytest.mark.parametrize(("use", "text"), list(some(product(USES, SPELLINGS), 6)))
def test_every_command_takes_every_spelling(use: str, text: str, run: Any, array: str, points: str) -> None:
    assert [int(each) for each in USES[use](run, array, points, text)] == [4, 2]


def shapes(group: click.Group = root, path: str = "") -> Iterator[tuple[str, click.Parameter]]:
    """Every parameter of every command, with the words that lead to it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, LazyGroup):
            yield from shapes(command, f"{name} ")
        else:
            for param in command.params:
                word = param.opts[0] if isinstance(param, click.Option) else param.make_metavar(context)
                yield f"{path}{name} {word}", param


def test_no_command_reads_shapes_in_a_way_of_its_own() -> None:
    typed = {name for name, param in shapes() if isinstance(param.type, ShapeType)}
    told = {name for name, param in shapes() if (param.metavar or "") in ("SHAPE", "SIZES", "CELLS")}
    assert told <= typed
    assert typed | {"advise PLACE", "advise --access"} == set(USES)


@pytest.mark.parametrize(
    "text", ["", "4,", "4,,2", "4x", "x", "4;2", "4.5", "1_000", "()", "(4, 2", "four", "4-2", "٤"]
)
def test_what_is_no_shape(text: str) -> None:
    assert parse_lengths(text, whole_number) is None


@pytest.mark.parametrize(
    "command", [("convert", "DST", "--chunks"), ("convert", "DST", "--shards"), ("reshard", "--shards")]
)
def test_wrong_shapes_are_told_with_an_example(run: Any, array: str, command: tuple[str, ...], tmp_path: Path) -> None:
    words = [str(tmp_path / "new") if each == "DST" else each for each in command[1:]]
    result = run(command[0], array, *words, "4,,2", columns=300)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'4,,2' is not lengths such as 100,100 or 100x100, nor 'auto'" in result.stderr


def test_a_single_number_counts_for_every_axis(run: Any, array: str) -> None:
    assert resharded(run, array, "--shards", "4").shards == (4, 4)
