"""Fresh processes that have not heard of zardine use its pipeline, by a variable or by one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NAME = "zardine.ZardineCodecPipeline"
_USE = """
import sys, warnings
warnings.simplefilter("error")
import zarr
{line}
assert "zardine" not in sys.modules
array = zarr.create_array(sys.argv[1], shape=(8, 8), shards=(8, 8), chunks=(2, 2), dtype="i4")
array[1:5] = 3
assert array[:].sum() == 3 * 4 * 8
print(type(array.async_array.codec_pipeline).__name__)
"""


def run(line: str, path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A program that writes an array after this ``line``, with these variables of the environment."""
    command = [sys.executable, "-c", _USE.format(line=line), str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **variables})


@pytest.mark.parametrize("how", ["variable", "line"])
def test_a_name_is_enough(how: str, tmp_path: Path) -> None:
    """The entry point of the package is how zarr-python finds what the name is of."""
    if how == "variable":
        done = run("", tmp_path, ZARR_CODEC_PIPELINE__PATH=NAME, ZARR_CODEC_PIPELINE__STRICT="True")
    else:
        done = run(f"zarr.config.set({{'codec_pipeline.path': '{NAME}', 'codec_pipeline.strict': True}})", tmp_path)
    assert (done.stdout, done.stderr) == ("ZardineCodecPipeline\n", "")


def test_without_it_zarr_python_is_left_alone(tmp_path: Path) -> None:
    """It imports all pipelines there are, and waits for no engine."""
    done = run("import atexit; atexit.register(lambda: print('zardine.engine' in sys.modules))", tmp_path)
    assert (done.stdout, done.stderr) == ("BatchedCodecPipeline\nFalse\n", "")


def test_what_zardine_does_not_know_is_an_error_where_the_variable_says_so(tmp_path: Path) -> None:
    own = "class Own(zarr.storage.LocalStore): pass\nsys.argv[1] = Own(sys.argv[1])"
    done = run(own, tmp_path, ZARR_CODEC_PIPELINE__PATH=NAME, ZARR_CODEC_PIPELINE__STRICT="True")
    assert "UnsupportedError: zardine's codec pipeline cannot read or write this array: its store" in done.stderr
