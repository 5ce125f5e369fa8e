"""What every command is made of: groups that import a command when it is used, and one way out for every error."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from zardine.cli.errors import Settings, exit_code_of
from zardine.cli.options import add_traceback_option

_HELP_NAMES = {"help_option_names": ["--help", "-h"]}


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command that is not imported yet."""

    place: str
    """``module:name``."""
    line: str
    """What the list of commands says about it: the first sentence of its help."""

    def load(self) -> click.Command:
        """Import the command."""
        module, _, name = self.place.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


class Command(click.Command):
    """A command of zardine: ``-h`` and ``--traceback`` work."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"context_settings": _HELP_NAMES, **kwargs})
        add_traceback_option(self)


class LazyGroup(click.Group):
    """Commands by name, imported when they are run. As the outermost command it also handles every error.

    What a command returns is its exit code, ``None`` counting as 0.
    """

    def __init__(self, *args: Any, lazy_commands: Mapping[str, LazyCommand], **kwargs: Any) -> None:
        super().__init__(*args, **{"context_settings": _HELP_NAMES, **kwargs})
        self.lazy_commands = lazy_commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names, in the order of the table."""
        return list(self.lazy_commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, imported now."""
        lazy = self.lazy_commands.get(cmd_name)
        return None if lazy is None else lazy.load()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments begin with. Raises ``UsageError`` that names the nearest one."""
        name = args[0]
        if name not in self.lazy_commands and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            if name in ("create", "new", "init"):
                hint = "Arrays and groups are created in Python: zardine.create_array, zardine.create_group."
                raise click.UsageError(f"No such command {name!r}. {hint}", ctx)
            close = get_close_matches(name, self.lazy_commands, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(self.lazy_commands)}."
            raise click.UsageError(f"No such command {name!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.line) for name, lazy in self.lazy_commands.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and exit with its code."""
        name = prog_name or "zardine"
        if not standalone_mode or os.environ.get("_ZARDINE_COMPLETE"):
            return super().main(args, name, complete_var or "_ZARDINE_COMPLETE", standalone_mode, **extra)
        settings = Settings()

        def run() -> Any:
            words = list(sys.argv[1:] if args is None else args)
            settings.words = tuple(words)
            with self.make_context(name, words, obj=settings, **extra) as ctx:
                return self.invoke(ctx)

        sys.exit(exit_code_of(run, settings))
