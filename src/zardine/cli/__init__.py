"""The command line: ``zardine COMMAND …``, on click and rich, which nothing else in the package imports.

A command is one file here, whose function is decorated with ``click.command(cls=Command)`` and the options of
:mod:`zardine.cli.options`, and one line in the table of :mod:`zardine.cli.commands`. The file imports NumPy and the
rest of zardine within its functions, so that ``zardine --help`` stays fast. A command

- takes shapes as :class:`~zardine.cli.options.ShapeType`, so that they are typed in one way everywhere;
- prints to stdout by :mod:`zardine.cli.output` only: with ``--json`` one JSON document and nothing else;
- raises what the library raises, and calls it ``with arguments():`` where what the user typed can be at fault
  (:mod:`zardine.cli.errors` prints the error and chooses the exit code);
- returns :data:`~zardine.cli.errors.FAULTS` where it worked, and found something wrong;
- shows what takes long by :mod:`zardine.cli.progress`.

``python tests/cli/test_help.py`` writes its help into ``docs/cli.md``.
"""


def main() -> None:
    """Run the command that ``sys.argv`` names, and leave Python with its exit code."""
    import sys

    try:
        from zardine.cli.commands import root
    except KeyboardInterrupt:
        sys.exit(130)
    root()
