"""The native kernel, which is optional: without cargo the package installs and works all the same, slower.

A wheel without the kernel is tagged as what it is, pure Python. What an earlier build has left in the folder is removed
first, so that an old kernel, or a module that is gone, is never installed again.
"""

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build
from setuptools.command.editable_wheel import editable_wheel
from setuptools_rust import Binding, RustExtension

WITHOUT = (
    "zardine is built without its native kernel: {reason}. Small chunks are several times slower; "
    "install Rust (https://rustup.rs), then zardine anew."
)
NOT_FOUND = "cargo was not found"
NOT_COMPILED = "it could not be compiled (pip install -v shows why)"


def tell():
    """Say what is missing on stderr, and on the terminal, since pip shows nothing of what a build prints."""
    text = WITHOUT.format(reason=NOT_FOUND if cargo is None else NOT_COMPILED)
    print(text, file=sys.stderr)
    with suppress(OSError), open("/dev/tty", "w") as terminal:
        terminal.write(f"\n{text}\n")


def built_in(folder):
    """The kernels in a folder."""
    return [path for path in folder.glob("_kernel*") if path.suffix in (".so", ".pyd")]


class CleanBuild(build):
    """Builds into an empty folder."""

    def run(self):
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class CleanEditable(editable_wheel):
    """Puts a new kernel beside the sources, or none."""

    def run(self):
        for old in built_in(Path("src/zardine")):
            old.unlink()
        super().run()
        if not built_in(Path("src/zardine")):
            tell()


class HonestWheel(bdist_wheel):
    """Tagged by what was built."""

    def run(self):
        self.run_command("build")
        if not built_in(Path(self.get_finalized_command("build").build_lib, "zardine")):
            tell()
            self.root_is_pure, self.py_limited_api = True, False
            self.distribution.rust_extensions = []
            self.distribution.has_ext_modules = lambda: False
        super().run()


kernel = RustExtension(
    "zardine._kernel",
    path="rust/Cargo.toml",
    binding=Binding.PyO3,
    features=["python"],
    py_limited_api=True,
    debug=False,
    optional=True,
    cargo_manifest_args=["--locked"],
)
cargo = shutil.which(os.environ.get("CARGO", "cargo"))

setup(
    rust_extensions=[] if cargo is None else [kernel],
    options={} if cargo is None else {"bdist_wheel": {"py_limited_api": "cp311"}},
    cmdclass={"build": CleanBuild, "editable_wheel": CleanEditable, "bdist_wheel": HonestWheel},
)
