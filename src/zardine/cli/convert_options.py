"""Options of ``zardine convert`` that say how arrays are to be stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click


def sizes_option(name: str, default: str, explained: str) -> Callable[[Any], Any]:
    """``--chunks 100,100`` and its like: lengths, or a word."""

    def parse(ctx: click.Context, param: click.Parameter, value: str) -> Any:
        if name == "shards" and value == "none":
            return None
        words = ("auto", "keep") if name == "chunks" else ("auto",)
        if value in words:
            return value
        try:
            sizes = tuple(int(part) for part in value.split(","))
        except ValueError:
            known = ", ".join(map(repr, words))
            raise click.BadParameter(f"{value!r} is not lengths such as 100,100, nor {known}", ctx, param) from None
        return sizes[0] if len(sizes) == 1 else sizes

    text = f"{explained}: lengths such as 100,100 for the arrays of two dimensions, or a word (usually '{default}')."
    return click.option(f"--{name}", default=default, metavar="SIZES", callback=parse, help=text)


def codecs_option(word: str, name: str) -> Callable[[Any], Any]:
    """``--compressor zstd`` and its like: a name, JSON, or ``keep``, ``auto`` or ``none``; may be repeated."""

    def parse(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Any:
        if len(values) == 1 and values[0] in ("keep", "auto", "none"):
            return None if values[0] == "none" else values[0]
        codecs = []
        for value in values:
            if value in ("keep", "auto", "none"):
                raise click.BadParameter(f"{value!r} stands alone", ctx, param)
            try:
                codecs.append(json.loads(value) if value.startswith("{") else value)
            except ValueError as error:
                raise click.BadParameter(f"{value!r} is neither a name nor JSON: {error}", ctx, param) from None
        return codecs or "auto"

    text = (
        f"A {word} of the new arrays: a codec's name or its JSON object; may be repeated. 'none' for none, 'keep' for "
        "all that SRC has."
    )
    return click.option(f"--{word}", name, multiple=True, metavar="CODEC", callback=parse, help=text)
