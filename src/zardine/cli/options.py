"""Arguments and options that commands share, so that they are called and explained the same everywhere."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from zardine.cli.errors import Settings

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Decorator = Callable[[F], F]

_BETWEEN: Final = re.compile(r"\s*[,xX×]\s*|\s+")
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")


class StorePathType(click.types.StringParamType):
    """A directory or a URL; what is there is for the library to find out. Shells complete it like a file name."""

    name = "path"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        """Leave it to the shell."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


def parse_lengths(text: str, number: Callable[[str], T]) -> tuple[T, ...] | None:
    """Return the numbers of a shape as people write it: ``4,4,16``, ``4x4x16``, ``4 4 16``, ``(4, 4, 16)``.

    ``number`` makes one of its text, or raises ``ValueError``; then, and where there is none, ``None`` is returned.
    """
    text = text.strip()
    if text[:1] + text[-1:] in ("()", "[]"):
        text = text[1:-1].strip().removesuffix(",")
    try:
        return tuple(number(each) for each in _BETWEEN.split(text.strip()))
    except ValueError:
        return None


def whole_number(text: str) -> int:
    """Return the number that plain digits are. Raises ``ValueError`` for anything else that Python would take."""
    if _WHOLE.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


class ShapeType(click.types.StringParamType):
    """A shape (see :func:`parse_lengths`) as a tuple; a number, which counts for every axis; or one of ``words``.

    ``above``: the numbers have to be larger; ``number`` is ``float`` for sizes in units of positions.
    """

    name = "shape"

    def __init__(
        self,
        *words: str,
        above: int | None = None,
        number: Callable[[str], float] = whole_number,
        example: str = "100,100 or 100x100",
    ) -> None:
        self._words, self._above, self._number, self._example = words, above, number, example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the shape that was typed."""
        if not isinstance(value, str):
            return value
        if value.lower() in self._words:
            return value.lower()
        lengths = parse_lengths(value, self._number)
        if lengths is None or not all(self._is_allowed(each) for each in lengths):
            known = "".join(f", nor {each!r}" for each in self._words)
            limit = "" if self._above is None else f": numbers above {self._above}"
            self.fail(f"{value!r} is not lengths such as {self._example}{known}{limit}", param, ctx)
        return lengths[0] if len(lengths) == 1 else lengths

    def _is_allowed(self, number: float) -> bool:
        return self._above is None or self._above < number < math.inf


def decorated(command: Callable[..., Any], *options: Decorator[Any]) -> Callable[..., Any]:
    """Return a command with arguments and options, in this order."""
    for each in reversed(options):
        command = each(command)
    return command


def path_argument(name: str = "path") -> Decorator[Any]:
    """Return the argument PATH: the store. The parameter is called ``name``."""
    return click.argument(name, type=StorePathType())


def node_option() -> Decorator[Any]:
    """Return ``--path NODE``, as the parameter ``node``."""
    return click.option("--path", "node", metavar="NODE", help="The node inside of PATH, such as 'group/array'.")


def json_option() -> Decorator[Any]:
    """Return ``--json``, as the parameter ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def complete_option() -> Decorator[Any]:
    """Return ``--complete``, as the parameter ``complete``."""
    return click.option(
        "--complete", is_flag=True, help="Look at every stored object: how many there are, and their bytes."
    )


def quiet_option() -> Decorator[Any]:
    """Return ``--quiet``, as the parameter ``quiet``: no progress and no remarks, only errors."""
    return click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")


def storage_option(kind: str = "storage", store: str = "the store") -> Decorator[Any]:
    """Return ``--storage-option KEY=VALUE``, as the dictionary ``storage_options``; ``kind`` is for its first word."""
    return click.option(
        f"--{kind}-option",
        f"{kind}_options",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_parse_storage_options,
        help=f"A setting of {store} behind a URL; VALUE is JSON, or else text. May be repeated.",
    )


def zarr_format_option(explained: str = "Look for this version of Zarr only.") -> Decorator[Any]:
    """Return ``--zarr-format N``, as the parameter ``zarr_format``; the library says which versions there are."""
    return click.option("--zarr-format", type=int, metavar="N", help=explained)


def traceback_option(*, hidden: bool) -> Decorator[Any]:
    """Return ``--traceback``, which is kept in the settings of the run and is no parameter."""
    return click.option(
        "--traceback",
        is_flag=True,
        hidden=hidden,
        expose_value=False,
        is_eager=True,
        callback=_keep_traceback,
        help="Show where in the code an error arose.",
    )


def add_traceback_option(command: click.Command) -> None:
    """Let ``--traceback`` stand behind a command as well."""
    holder = traceback_option(hidden=True)(lambda: None)
    command.params += holder.__click_params__


def _keep_traceback(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Settings).traceback = True


def _parse_storage_options(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    options = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", ctx, param)
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return options
