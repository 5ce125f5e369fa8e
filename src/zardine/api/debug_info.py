"""``print_debug_info``: what to put into a bug report."""

from __future__ import annotations


def print_debug_info() -> None:
    """Print the versions of everything that matters here."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    def found(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "not installed"

    from zardine.kernel import __kernel__, describe_kernel

    print(f"platform: {platform.platform()}")
    print(f"python: {platform.python_version()}")
    print(f"kernel: {__kernel__ or 'not in use; ' + describe_kernel()}")
    for name in ("zardine", "numpy", "numcodecs", "google-crc32c", "zstandard", "ml_dtypes"):
        print(f"{name}: {found(name)}")
