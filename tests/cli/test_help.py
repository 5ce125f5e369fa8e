"""``docs/cli.md`` shows every command's help, and examples, as they are. ``python tests/cli/test_help.py`` rewrites it.

Its Python blocks run first, in an empty folder that is shown as ``/data``; then each line ``$ zardine …`` of a console
block, and what follows it is the output. New commands get a section at the end.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner

from zardine.cli.base import LazyGroup
from zardine.cli.commands import root

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(group: click.Group = root, path: str = "zardine") -> Iterator[tuple[str, click.Command]]:
    """Every command on every level, with the words that call it."""
    yield path, group
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def rewritten(page: str) -> str:
    """The page with every section that it lacks, and with the outputs of today."""
    for path, _ in commands():
        if f"$ {path} --help\n" not in page:
            page = f"{page.rstrip()}\n\n### {path}\n\n```console\n$ {path} --help\n```\n"
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        space: dict[str, Any] = {}
        for block in _PYTHON.findall(page):
            exec(compile(block, "<example>", "exec"), space)
        here = os.path.realpath(folder)
        return _CONSOLE.sub(lambda found: f"```console\n{_session(found[1]).replace(here, '/data')}```", page)


def _session(block: str) -> str:
    lines = []
    for line in block.splitlines():
        if line.startswith("$ "):
            program, *words = shlex.split(line[2:])
            assert program == "zardine", "only zardine is run: show other programs in a block of another kind"
            result = CliRunner(env={"COLUMNS": "80"}).invoke(root, words, prog_name="zardine")
            lines += [line, *result.output.rstrip("\n").split("\n")]
    return "\n".join(lines) + "\n"


def test_the_page_shows_what_the_commands_print() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert rewritten(page) == page, "run: python tests/cli/test_help.py"


def test_a_new_command_gets_a_section() -> None:
    assert "$ zardine tree --help\nUsage: zardine tree" in rewritten("# Command line\n")


def test_the_list_of_commands_says_what_their_help_says() -> None:
    for _, group in commands():
        if isinstance(group, LazyGroup):
            for name, lazy in group.lazy_commands.items():
                command = lazy.load()
                assert command.name == name
                assert lazy.line == command.get_short_help_str(limit=1000)
                assert len(lazy.line) < 66


def test_every_command_has_the_common_options() -> None:
    for path, command in commands():
        names = {name for parameter in command.params for name in parameter.opts}
        assert "--traceback" in names, path
        assert isinstance(command, click.Group) or "--json" in names, path
        assert "-h" in command.get_help_option_names(click.Context(command, **command.context_settings)), path
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{path} {parameter.name} has no help"
                assert parameter.help.endswith("."), f"{path} {parameter.name}"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
