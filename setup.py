"""The native kernel, which is optional: without cargo the package installs and works all the same, slower."""

from setuptools import setup
from setuptools_rust import Binding, RustExtension

setup(
    rust_extensions=[
        RustExtension(
            "zardine._kernel",
            path="rust/Cargo.toml",
            binding=Binding.PyO3,
            features=["python"],
            py_limited_api=True,
            debug=False,
            optional=True,
            cargo_manifest_args=["--locked"],
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
