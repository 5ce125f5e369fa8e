"""What commands share that run plans of jobs: who runs them, and how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import click

from zardine.cli.errors import ArgumentError
from zardine.cli.progress import Advance, progress


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


def plan_progress(silent: bool, text: str = "Running jobs") -> AbstractContextManager[Advance]:
    """Show the bytes that are done, their rate and the time left; lines now and then where there is no terminal."""
    return progress(text, show=not silent, nbytes=True)
