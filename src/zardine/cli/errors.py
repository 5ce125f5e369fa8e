"""How a command ends: the exit code, and what is said about an error."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EBADF
from typing import Any, Final

import click

from zardine.cli.wording import in_the_shell
from zardine.shown_text import shown

FINE: Final = 0
FAULTS: Final = 1
"""The command found faults, or failed because of what is stored or how the machine is."""
USAGE: Final = 2
"""The command line is wrong."""
BUG: Final = 70
"""zardine is wrong (``EX_SOFTWARE``)."""
INTERRUPTED: Final = 130
"""Ctrl-C (128 + ``SIGINT``)."""
PIPE_CLOSED: Final = 141
"""Whoever read the output has stopped (128 + ``SIGPIPE``, what the shell shows for programs that the signal ends)."""

REPORT: Final = "This is a bug in zardine. Please report it, with the command and the lines above."


@dataclass(slots=True)
class Settings:
    """What holds for a whole run of the command line."""

    traceback: bool = False
    """Whether errors are shown with the place where they arose."""
    words: tuple[str, ...] = ()
    """The command line, without the name of the program."""


class ArgumentError(click.ClickException):
    """An argument has a meaning that the library refuses."""

    exit_code = USAGE


@contextmanager
def arguments() -> Iterator[None]:
    """Take ``ValueError``, ``TypeError`` and ``KeyError`` that arise here for mistakes in the command's arguments.

    Errors of :mod:`zardine.errors`, and of the operating system, pass through.
    """
    from zardine.errors import ZardineError

    try:
        yield
    except (ZardineError, OSError):
        raise
    except (ValueError, TypeError, KeyError) as error:
        raise ArgumentError(error_text(error)) from error


def exit_code_of(run: Callable[[], Any], settings: Settings) -> int:
    """Do ``run``; on an error say so on stderr. Gives the exit code, which may be what ``run`` returns."""
    if sys.stdout is None:  # closed by whoever started this
        sys.stdout = _ClosedOutput()
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            try:
                result = run()
            except click.exceptions.Exit as exit:
                result = exit.exit_code
            sys.stdout.flush()
            code = result if isinstance(result, int) else FINE
        except (KeyboardInterrupt, click.Abort):
            with suppress(OSError):
                click.echo("Interrupted", err=True)
            code = INTERRUPTED
        except BrokenPipeError:
            code = PIPE_CLOSED
        except Exception as error:
            code = _told(error, settings)
    _empty_stdout()
    return code


def error_text(error: BaseException) -> str:
    """Return an error in words for a user; its lines stay lines, other characters that do not print are escaped."""
    if isinstance(error, click.ClickException):
        text = error.format_message()
    elif isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        text = f"this needs the package {package!r}, which is not installed: pip install {package}"
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    elif isinstance(error, KeyError) and type(error) is KeyError:
        text = f"there is no {error.args[0]!r}" if error.args else "there is no such thing"
    elif isinstance(error, MemoryError) and not str(error):
        text = "there is not enough memory"
    else:
        text = in_the_shell(str(error)) or type(error).__name__
    return shown(text)


def _show_warning(message: Warning | str, *place: Any, **options: Any) -> None:
    """Show a warning without the line of code that gave it, which says nothing to users."""
    click.echo(f"Warning: {shown(in_the_shell(str(message)))}", err=True)


def _told(error: Exception, settings: Settings) -> int:
    """Print an error as what it is: wrong usage, unusable data, or a bug; gives the exit code."""
    from zardine.errors import ZardineError

    missing = isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("zardine")
    expected = missing or isinstance(error, (click.ClickException, ZardineError, OSError, MemoryError))
    if settings.traceback or not expected:
        import traceback

        click.echo(shown("".join(traceback.format_exception(error))), err=True, nl=False)
    if not expected:
        click.echo(f"Error: {error_text(error)}\n{REPORT}", err=True)
        return BUG
    if isinstance(error, click.UsageError):
        vars(error)["message"] = shown(error.message)
        error.show()
        return error.exit_code
    print_error(error_text(error))
    return error.exit_code if isinstance(error, click.ClickException) else FAULTS


def print_error(text: str) -> None:
    """Print ``Error: …`` on stderr."""
    from zardine.cli.console import make_console

    console = make_console(stderr=True)
    console.print("Error:", style="bold red", end=" ")
    console.print(text, soft_wrap=True)


class _ClosedOutput(io.TextIOBase):
    """Standard output that was closed: what a command prints cannot be had, and that is an error."""

    def write(self, text: str) -> int:
        if text:
            raise OSError(EBADF, "standard output is closed")
        return 0

    def writable(self) -> bool:
        return True


def _empty_stdout() -> None:
    """Write what is left, or drop it where that fails, so that Python does not complain about it when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
