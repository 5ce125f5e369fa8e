"""The command line as users meet it: processes, pipes, signals, environments."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import zardine
from zardine.kernel import describe_kernel

ZARDINE = [sys.executable, "-m", "zardine"]
PLAIN = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "COLUMNS", "NO_COLOR")}


def test_help_and_version(shell: Any) -> None:
    result = shell("--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("Usage: zardine [OPTIONS] COMMAND")
    first, _, kernel = shell("--version").stdout.partition(", ")
    assert first == f"zardine {zardine.__version__}"
    assert kernel == f"{describe_kernel()}\n"
    assert shell("info", "-h").stdout.startswith("Usage: zardine info")
    assert shell().returncode == 2


def test_help_imports_neither_numpy_nor_rich() -> None:
    code = """
import sys
from zardine.cli.commands import root
for words in (["--help"], ["--version"], ["info", "--help"], ["nonsense"]):
    try:
        root(words)
    except SystemExit:
        pass
print(sorted({"numpy", "rich", "zardine.nodes.array"} & set(sys.modules)), file=sys.stderr)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.stderr.endswith("[]\n"), result.stderr


def test_json_does_without_rich(sharded: Path) -> None:
    code = f"""
import sys
from zardine.cli.commands import root
for command in ("info", "tree"):
    try:
        root([command, {str(sharded)!r}, "--json"])
    except SystemExit:
        pass
sys.exit("rich" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60).returncode == 0


def test_the_script_is_the_module(shell: Any) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, name = project["scripts"]["zardine"].partition(":")
    assert callable(getattr(import_module(module), name))
    assert {"click", "rich"} <= {each.partition(">")[0] for each in project["dependencies"]}


def test_pipes_get_neither_colours_nor_line_breaks(shell: Any, sharded: Path, broken: Path) -> None:
    zardine.open_array(str(sharded)).attrs["long"] = "word " * 100
    for words in (["info", sharded, "--attributes"], ["tree", broken], ["info", sharded / "none"]):
        result = shell(*words)
        assert "\x1b" not in result.stdout + result.stderr
    assert "word " * 90 in shell("info", sharded, "--attributes").stdout
    assert "\x1b[" in shell("tree", broken, FORCE_COLOR="1").stdout
    assert max(map(len, shell("info", sharded, "--attributes", COLUMNS="60").stdout.splitlines())) <= 60


def test_colours_on_a_terminal(broken: Path) -> None:
    pty = pytest.importorskip("pty")

    def seen(**more: str) -> str:
        ours, theirs = pty.openpty()
        env = {**PLAIN, "TERM": "xterm", **more}
        process = subprocess.Popen([*ZARDINE, "tree", str(broken)], stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux: the other side is closed
                break
            if not part:
                break
            text += part
        os.close(ours)
        assert process.wait(60) == 1
        return text.decode()

    assert "\x1b[1;31mnonsense" in seen()
    assert "\x1b" not in seen(NO_COLOR="1")
    assert "\x1b" not in seen(NO_COLOR="1", FORCE_COLOR="1")
    assert "\x1b" in seen(NO_COLOR="")


def test_json_in_pipes(shell: Any, sharded: Path, hierarchy: Path) -> None:
    for words in (["info", sharded], ["tree", hierarchy, "--attributes"], ["info", hierarchy, "--complete"]):
        result = shell(*words, "--json", FORCE_COLOR="1")
        assert (result.returncode, result.stderr) == (0, "")
        assert json.loads(result.stdout)["path"] == "/"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_terminals_that_lack_characters(shell: Any, tmp_path: Path, encoding: str) -> None:
    name = "größe☂😀"
    zardine.create_group(str(tmp_path / "u.zarr")).create_array(name, shape=3, dtype="i4", attributes={"å": "🐟"})
    path = tmp_path / "u.zarr"
    for words in (["info", path, "--path", name], ["tree", path, "--attributes"])[: 2 if encoding == "ascii" else 1]:
        process = subprocess.run(
            [*ZARDINE, *map(str, words)], capture_output=True, env={**PLAIN, "PYTHONIOENCODING": encoding}, timeout=60
        )
        assert (process.returncode, process.stderr) == (0, b"")
    process = subprocess.run(
        [*ZARDINE, "tree", str(path), "--json"], capture_output=True, env={**PLAIN, "PYTHONIOENCODING": encoding}
    )
    assert json.loads(process.stdout.decode(encoding))["children"][0]["name"] == name


def test_ctrl_c() -> None:
    code = """
import sys, time, zardine.api.open
def wait(*args, **kwargs):
    print("ready", flush=True)
    time.sleep(60)
zardine.open = wait
sys.argv = ["zardine", "info", "."]
zardine.cli.main()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", "import zardine.cli\n" + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, "", "Interrupted")


@pytest.mark.parametrize("words", [["tree"], ["info"], ["tree", "--json"], ["info", "--json"], ["--help"]])
def test_a_pipe_that_nobody_reads(hierarchy: Path, words: list[str]) -> None:
    command = [*ZARDINE, *words] if words == ["--help"] else [*ZARDINE, *words, str(hierarchy)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 141
    process.stderr.close()


def test_head(hierarchy: Path) -> None:
    line = f"{shlex.join(ZARDINE)} tree {shlex.quote(str(hierarchy))} | head -1"
    result = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=PLAIN, timeout=60)
    assert (result.stdout, result.stderr) == (f"{hierarchy}\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [["tree"], ["info", "--json"], ["--help"]])
def test_a_full_disk(hierarchy: Path, words: list[str]) -> None:
    command = [*ZARDINE, *words] if words == ["--help"] else [*ZARDINE, *words, str(hierarchy)]
    with open("/dev/full", "w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (1, "Error: No space left on device\n")


@pytest.mark.parametrize("words", ["info", "info --json", "tree", "verify", "--version"])
def test_without_stdout(words: str, hierarchy: Path) -> None:
    place = "" if words == "--version" else shlex.quote(str(hierarchy))
    line = f"{shlex.join(ZARDINE)} {words} {place} >&-"
    result = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (1, "Error: standard output is closed\n")


def test_what_prints_nothing_needs_no_stdout(hierarchy: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    line = f"{shlex.join([*ZARDINE, 'convert', '--quiet', str(hierarchy), str(new)])} >&-"
    result = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    assert new.exists()


def test_a_directory_that_may_not_be_read(tmp_path: Path, hierarchy: Path) -> None:
    """Root may read everything: then the process becomes another user, once all modules are loaded."""
    code = """
import os, sys
from zardine.cli.commands import root
for path in sys.argv[1:]:
    try:
        root(["info", path])
    except SystemExit as end:
        code = end.code
    if os.geteuid() == 0:
        os.setuid(65534)
sys.exit(code)
"""
    hierarchy.chmod(0)
    try:
        command = [sys.executable, "-c", code, str(tmp_path / "none"), str(hierarchy)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    finally:
        hierarchy.chmod(0o755)
    assert (result.returncode, result.stdout) == (1, "")
    first, second = result.stderr.splitlines()
    assert first.endswith("does not exist")
    assert second.startswith("Error: ")
    assert second.endswith("Permission denied")
    assert str(hierarchy) in second
