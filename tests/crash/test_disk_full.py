"""No space left: a clear error, the old contents, and once there is room again the same call succeeds."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from crash.foreign import Foreign
from crash.scenarios import SCENARIOS, look
from crash.space import Space, full_disk, small_files
from effort import some
from zardine.engine.index_cache import INDEXES

CASES = [
    (kind, name, strategy)
    for kind in ("disk", "file size")
    for name, scenario in SCENARIOS.items()
    for strategy in scenario.strategies
]
FREE = {("update", "in_place"), ("empty", "append"), ("empty", "in_place")}
"""Where an edit in its place, a removal, or what is left in the last page of a file may do without room."""


@pytest.fixture
def space(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Space]:
    """A disk that can be filled where we may mount one, else files that cannot grow; and these in any case."""
    with ExitStack() as stack:
        found = stack.enter_context(full_disk(tmp_path)) if request.param == "disk" else None
        if found is None:
            found = stack.enter_context(small_files(tmp_path))
        print("out of space by", type(found).__name__)
        yield found


@pytest.mark.parametrize(("space", "name", "strategy"), CASES, indirect=["space"])
def test_every_amount_of_room(name: str, strategy: str, space: Space, foreign: Foreign) -> None:
    scenario = SCENARIOS[name]
    start, target = space.folder / "start.zarr", space.folder / "target.zarr"
    scenario.prepare(start, "start" if strategy == "in_place" else "end")
    stages = scenario.stages()
    refused = 0
    for number, step in enumerate(scenario.steps):
        for room in some(range(0, 2**16, space.step), 3):
            renew(start, target)
            array = zardine.open_array(target, mode="r+", config={"write_strategy": strategy})
            for before in scenario.steps[:number]:
                before.act(array)
            if (name, strategy) == ("update", "append"):  # so that the last page of the file is nearly full
                for _ in range(2):
                    array[4:8, 4:8] = array[4:8, 4:8]
            space.leave(room)
            try:
                step.act(array)
                break
            except zardine.errors.StoreError as error:
                failure = error
            finally:
                space.free()
            refused += 1
            check_error(failure, target, space)
            seen = look(target, scenario, strategy)
            assert seen.step == number or (name == "resize" and not seen.begun), f"{room} bytes: {seen}"
            assert not seen.torn
            assert not seen.warned
            assert [path for path in target.rglob("*") if path.name.endswith(".tmp")] == []
            if (name, strategy) == ("append", "rewrite"):  # the others need room to take back what they wrote
                copy = space.folder / "copy.zarr"
                renew(target, copy)
                check_grown(copy, *stages[number])
            (step.act if step.retry is None else step.retry)(array)
            check_now(target, *stages[number + 1])
            check_grown(target, *stages[number + 1])
        else:
            pytest.fail(f"step {number} was never done")
        check_now(target, *stages[number + 1])
    print(f"{name}, {strategy}: refused {refused} times")
    assert refused or (name, strategy) in FREE
    foreign.check(target, *stages[-1])


def renew(start: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(start, target)
    INDEXES.clear()


def check_error(error: zardine.errors.StoreError, target: Path, space: Space) -> None:
    """That it says where and why."""
    assert error.errno == space.errno, error
    assert error.filename is not None
    key = str(Path(error.filename).relative_to(target))
    assert repr(key) in str(error), error


def check_now(target: Path, values: np.ndarray[Any, Any], attributes: dict[str, Any]) -> None:
    INDEXES.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        array = zardine.open_array(target, mode="r")
        np.testing.assert_array_equal(array[...], values)
        assert array.attrs.asdict() == attributes


def check_grown(target: Path, values: np.ndarray[Any, Any], attributes: dict[str, Any]) -> None:
    """That nothing lies beyond the shape."""
    array = zardine.open_array(target, mode="r+")
    array.resize(tuple(length + 8 for length in values.shape))
    check_now(target, np.pad(values, (0, 8)), attributes)
