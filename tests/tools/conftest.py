"""The command line within this process, as ``tests/cli`` has it."""

from cli.conftest import run

__all__ = ["run"]
