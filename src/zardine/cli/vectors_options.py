"""What the commands of ``zardine vectors`` share: numbers that are checked at once, and the place of the store."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from zardine.stores.resolve import Mode, StoreLike


def parse_cells(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Cells of a shard as a callback takes them, whole numbers from 1 on: ``8``, ``4,4,16``."""
    if value is None:
        return None
    try:
        numbers = tuple(int(part) for part in value.replace("x", ",").split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        text = f"{value!r} is no number of cells such as 8, and no shape such as 4,4,16: whole numbers from 1 on"
        raise click.BadParameter(text, ctx, param)
    return numbers[0] if len(numbers) == 1 else numbers


def parse_sizes(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Sizes of a chunk as a callback takes them, in the units of the positions, above 0: ``50``, ``50,50,12.5``."""
    if value is None:
        return None
    try:
        numbers = tuple(float(part) for part in value.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(math.isfinite(each) and each > 0 for each in numbers):
        text = f"{value!r} is no size such as 50, and no sizes such as 50,50,12.5: numbers above 0"
        raise click.BadParameter(text, ctx, param)
    return numbers[0] if len(numbers) == 1 else numbers


class FactorType(click.FloatRange):
    """A finite number from 1 on."""

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number.", param, ctx)
        return number


def place(path: str, storage_options: dict[str, Any], mode: Mode = "r") -> StoreLike:
    """What stands for the store at ``path`` in calls of the library: ``path`` itself where there are no options."""
    if not storage_options:
        return path
    from zardine.hierarchy.place import find_place
    from zardine.stores.path import StorePath

    return StorePath(*find_place(path, mode=mode, storage_options=storage_options))


def counted(number: int, one: str, many: str | None = None) -> str:
    """``1 vertex``, ``2 vertices``, ``1,000 cells``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
