"""What is said when something goes wrong, and the exit codes."""

from __future__ import annotations

import errno
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import zardine
import zardine.cli.paths
from zardine import vectors
from zardine.cli.errors import REPORT, Settings, arguments, exit_code_of
from zardine.errors import CorruptionError, ZarrUserWarning


@pytest.mark.parametrize("command", ["info", "tree"])
def test_paths_without_a_node(run: Any, tmp_path: Path, command: str) -> None:
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    for path, said in {
        tmp_path / "none": f"Error: '{tmp_path}/none' does not exist\n",
        tmp_path / "file.txt": f"Error: '{tmp_path}/file.txt' is a file: a store is a directory; give the path of "
        "a directory, or of a file that ends in .zip\n",
        tmp_path / "empty": f"Error: no array or group is stored at file://{tmp_path}/empty",
    }.items():
        for option in ([], ["--json"]):
            result = run(command, path, *option)
            assert (result.exit_code, result.stdout) == (1, "")
            assert result.stderr.startswith(said)


@pytest.mark.parametrize("words", [("verify",), ("compact",), ("repair",), ("reshard", "--shards", "auto")])
def test_tools_say_what_shows_other_files(run: Any, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "x.nc").write_bytes(b"CDF\x01")
    result = run(words[0], tmp_path / "x.nc", *words[1:])
    assert result.exit_code == 1
    assert "'zardine info' and 'zardine view' show a file as a group, and 'zardine convert' makes" in result.stderr


def test_paths_that_are_not_quite_right(run: Any, tmp_path: Path) -> None:
    group = zardine.create_group(tmp_path / "g.zarr")
    group.create_array("first", data=[[1, 2]])
    zardine.create_array(tmp_path / "a.zarr", data=[1, 2])
    place = str(tmp_path)
    for words, said in {
        ("info", f"{place}/g.zar"): f"'{place}/g.zar' does not exist; did you mean '{place}/g.zarr'?",
        ("verify", f"{place}/g.zarr/fisrt/"): f"does not exist; did you mean '{place}/g.zarr/first'?",
        ("info", f"{place}/nothing/like/it"): f"'{place}/nothing/like/it' does not exist\n",
        (
            "info",
            f"{place}/a.zarr/zarr.json",
        ): f"; it is a part of what is stored at '{place}/a.zarr'",
        ("info", f"{place}/g.zarr/first/c"): f"; it is a part of what is stored at '{place}/g.zarr/first'",
        ("reshard", f"{place}/g.zarr", "--shards", "4"): f"g.zarr; 'zardine tree {place}/g.zarr' shows its arrays\n",
        ("advise", f"{place}/g.zarr"): f"g.zarr; 'zardine tree {place}/g.zarr' shows its arrays\n",
        ("vectors", "info", f"{place}/a.zarr"): f"an array, not a group, is stored at file://{place}/a.zarr\n",
        ("convert", f"{place}/a.zarr", f"{place}/g.zarr"): "; --overwrite erases all of it\n",
        ("rechunk", f"{place}/a.zarr", f"{place}/g.zarr/first", "--chunks", "1"): "such as --target-path name within",
    }.items():
        result = run(*words)
        assert result.exit_code == 1, result.output
        assert said in result.stderr, result.stderr


def test_addresses_of_web_servers_where_nothing_is(run: Any, tmp_path: Path) -> None:
    zardine.create_array(tmp_path / "a.zarr", data=[1, 2])
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        assert run("info", f"{address}/a.zarr").exit_code == 0
        for command, path in (("info", "a.zarr/zarr.json"), ("tree", ""), ("verify", "nothing.zarr")):
            result = run(command, f"{address}/{path}")
            assert result.exit_code == 1
            assert "; a web server does not tell what it has: give the address of an array or group" in result.stderr
        server.shutdown()


def test_a_node_that_is_not_there(run: Any, hierarchy: Path) -> None:
    result = run("info", hierarchy, "--path", "raw/nothing")
    assert result.exit_code == 1
    assert "no array or group is stored at" in result.stderr
    assert "data.zarr/raw/nothing" in result.stderr


def test_a_broken_document(run: Any, broken: Path) -> None:
    result = run("info", broken / "incomplete")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: the document of file://{broken}/incomplete is invalid\n  - ")
    assert "\n  - codecs: the member is missing; it is required\n" in result.stderr


def test_commands_and_options_that_do_not_exist(run: Any) -> None:
    for words, said in {
        ("tre", "."): "Error: No such command 'tre'. Did you mean 'tree'?\n",
        ("frobnicate",): "Error: No such command 'frobnicate'. There are: info, tree",
        ("info", "--jsn", "."): "Did you mean",
        ("info",): "Error: Missing argument 'PATH'.",
        ("info", ".", "--storage-option", "x"): "'x' is not KEY=VALUE",
        ("tree", ".", "--level", "many"): "Error: Invalid value for '-L' / '--level'",
    }.items():
        result = run(*words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("Usage: zardine")
        assert said in result.stderr


def test_arguments_that_the_library_refuses(run: Any, sharded: Path) -> None:
    for words, said in {
        ("--zarr-format", 7): "Error: there is no Zarr format 7",
        ("--storage-option", "anon=true"): "Error: storage_options ('anon') have no meaning for ",
        ("--path", "../x"): "Error: invalid node path '../x'",
    }.items():
        result = run("info", sharded, *words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(said)


def test_storage_options_are_json_or_text(run: Any, sharded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def open_node(*args: Any, storage_options: dict[str, Any], **kwargs: Any) -> Any:
        given.update(storage_options)
        raise CorruptionError("enough")

    monkeypatch.setattr(zardine.cli.paths, "open_node", open_node)
    words = [word for text in ("a=1", "b=true", "c=x=y", "d=", 'e={"f": [1]}') for word in ("--storage-option", text)]
    assert run("info", sharded, *words).stderr == "Error: enough\n"
    assert given == {"a": 1, "b": True, "c": "x=y", "d": "", "e": {"f": [1]}}


def test_traceback(run: Any, tmp_path: Path) -> None:
    for words in (["--traceback", "info", tmp_path / "x"], ["info", tmp_path / "x", "--traceback"]):
        result = run(*words)
        assert result.exit_code == 1
        assert result.stderr.startswith("Traceback (most recent call last)")
        assert result.stderr.endswith(f"Error: '{tmp_path}/x' does not exist\n")


def ended(error: BaseException, capsys: pytest.CaptureFixture[str], **settings: bool) -> tuple[int, str]:
    def run() -> None:
        raise error

    code = exit_code_of(run, Settings(**settings))
    captured = capsys.readouterr()
    assert captured.out == ""
    return code, captured.err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (CorruptionError("damaged", key="c/0"), 1, "Error: damaged [key 'c/0']\n"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 1, "Error: /x: Permission denied\n"),
        (OSError(errno.EIO, "Input/output error"), 1, "Error: Input/output error\n"),
        (OSError("odd"), 1, "Error: odd\n"),
        (MemoryError(), 1, "Error: there is not enough memory\n"),
        (click.ClickException("no"), 1, "Error: no\n"),
        (click.UsageError("bad"), 2, "Error: bad\n"),
        (KeyboardInterrupt(), 130, "Interrupted\n"),
        (click.Abort(), 130, "Interrupted\n"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 141, ""),
        (CorruptionError("a [red]b[/] \x1b[31m"), 1, "Error: a [red]b[/] \\x1b[31m\n"),
        (
            ModuleNotFoundError("No module named 'h5py._x'", name="h5py._x"),
            1,
            "Error: this needs the package 'h5py', which is not installed: pip install h5py\n",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_how_errors_end(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert ended(error, capsys) == (code, said)


def test_a_bug_shows_its_traceback_and_asks_for_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    for error in (RuntimeError("odd"), ValueError("odd"), ModuleNotFoundError("odd", name="zardine.nothing")):
        code, said = ended(error, capsys)
        assert code == 70
        assert said.startswith("Traceback (most recent call last)")
        assert said.endswith(f"{REPORT}\n")


def test_mistakes_in_arguments_are_no_bugs(capsys: pytest.CaptureFixture[str]) -> None:
    for error, said in {
        ValueError("too large"): "too large",
        TypeError("not so"): "not so",
        KeyError("name"): "there is no 'name'",
    }.items():

        def run(error: Exception = error) -> None:
            with arguments():
                raise error

        assert exit_code_of(run, Settings()) == 2
        assert capsys.readouterr().err == f"Error: {said}\n"

    def damaged() -> None:
        with arguments():
            raise CorruptionError("damaged")  # a ValueError too

    assert exit_code_of(damaged, Settings()) == 1


def test_what_commands_return_is_the_exit_code() -> None:
    assert exit_code_of(lambda: None, Settings()) == 0
    assert exit_code_of(lambda: 1, Settings()) == 1
    assert exit_code_of(lambda: "text", Settings()) == 0


def test_warnings_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    import warnings

    def run() -> None:
        warnings.simplefilter("always")
        warnings.warn("two documents", ZarrUserWarning, stacklevel=1)

    assert exit_code_of(run, Settings()) == 0
    assert capsys.readouterr().err == "Warning: two documents\n"


def test_arguments_are_named_as_options(run: Any, tmp_path: Path) -> None:
    zardine.create_array(tmp_path / "old.zarr", data=[1, 2], zarr_format=2)
    vectors.write_points(tmp_path / "p.zv", np.repeat([[0.0], [50.0], [90.0]], 3, axis=1), chunk_shape=40)
    said = run("reshard", tmp_path / "old.zarr", "--shards", "2").stderr
    assert said == "Error: Zarr v2 has no shards: 'zardine convert' makes the array one of v3\n"
    assert ": --format names the format" in run("vectors", "export", tmp_path / "p.zv", tmp_path / "p.xyz").stderr
    array = zardine.create_array(tmp_path / "a.zarr", data=[1])
    said = run("vectors", "info", tmp_path / "a.zarr").stderr
    assert said == f"Error: an array, not a group, is stored at {array.store_path}\n"
    cell = next(each for each in (tmp_path / "p.zv/0/vertices/c").rglob("*") if each.is_file())
    cell.unlink()
    found = run("vectors", "validate", tmp_path / "p.zv")
    assert found.exit_code == 1
    assert "'zardine vectors repair --drop-lost' makes do with what is left" in found.stdout


def test_arrays_are_created_in_python(run: Any) -> None:
    result = run("create", "a.zarr")
    assert result.exit_code == 2
    assert "No such command 'create'. Arrays and groups are created in Python: zardine.create_array" in result.output


def test_a_folder_of_chunks_is_named_as_a_part_of_its_array(run: Any, tmp_path: Path) -> None:
    zardine.create_array(str(tmp_path / "a.zarr"), shape=(4, 4), chunks=(2, 2), dtype="i4")[...] = 1
    result = run("verify", tmp_path / "a.zarr" / "c" / "0")
    assert result.exit_code == 1
    assert f"it is a part of what is stored at '{tmp_path / 'a.zarr'}'" in result.output.replace("\n", " ")
