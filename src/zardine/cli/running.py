"""What commands share that run plans of jobs: who runs them, and how far they are."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import click

from zardine.cli.errors import ArgumentError, Settings
from zardine.cli.progress import Advance, progress
from zardine.shown_text import shown, without_secrets


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--workers`` and ``--dask``."""
    workers = click.option(
        "--workers", type=click.IntRange(min=1), metavar="N", help="Run the jobs in so many processes of this machine."
    )
    dask = click.option("--dask", metavar="ADDRESS", help="Run the jobs on the Dask cluster of this scheduler.")
    return workers(dask(command))


@contextmanager
def workers_of(dask: str | None) -> Iterator[Any]:
    """Give the client of a Dask cluster, or ``None``."""
    if dask is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise click.ClickException("--dask needs the package distributed: pip install 'zardine[dask]'") from None
    try:
        client = Client(dask, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ArgumentError(f"no Dask scheduler answers at {dask!r}: {error}") from None
    with client:
        yield client


@contextmanager
def resumable() -> Iterator[None]:
    """Print the command that goes on, where Ctrl-C ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        settings = click.get_current_context().find_object(Settings)
        with suppress(OSError):
            click.echo(f"What is done stays. {_how_to_go_on(settings.words if settings else ())}", err=True)
        raise


def _how_to_go_on(words: tuple[str, ...]) -> str:
    """Return the sentence that names the command; one with secrets is not written into the logs of batch systems."""
    same = [each for each in words if each not in ("--no-resume", "--restart")]
    if not words or any("-option" in each or without_secrets(each) != each for each in words):
        return "The same command goes on."
    return f"To go on: {shown(shlex.join(['zardine', *same]))}"


def plan_progress(silent: bool, text: str = "Running jobs") -> AbstractContextManager[Advance]:
    """Show the bytes that are done, their rate and the time left; lines now and then where there is no terminal."""
    return progress(text, show=not silent, nbytes=True)
