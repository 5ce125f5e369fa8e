"""JSON of any value, text that is safe to print, and the progress bar."""

from __future__ import annotations

import io
import json
import queue
import re
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from zardine.cli import progress
from zardine.cli.output import cut, json_text, jsonable, print_facts, print_json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (np.bool_(True), True),
        (np.int64(2**62), 2**62),
        (2**70, 2**70),
        (np.float32(0.5), 0.5),
        (float("nan"), "NaN"),
        (np.float64("inf"), "Infinity"),
        (np.float32("-inf"), "-Infinity"),
        (complex(1, float("nan")), [1.0, "NaN"]),
        (np.complex64(2j), [0.0, 2.0]),
        (np.datetime64("2020-01-01T00", "s"), "2020-01-01T00:00:00"),
        (np.array(["2020-01-01"], "M8[D]"), "['2020-01-01']"),
        (np.array([[1, 2], [3, 4]], "u1"), [[1, 2], [3, 4]]),
        (np.array([1.5, np.nan]), [1.5, "NaN"]),
        (np.array((1, 2.5), [("a", "i4"), ("b", "f8")])[()], [1, 2.5]),
        (np.dtype("f4"), "float32"),
        ({"a": (1, {2})}, {"a": [1, [2]]}),
        ({1: np.int8(1)}, {"1": 1}),
        ("ä\udcff", "ä\\udcff"),
        (np.str_("x"), "x"),
    ],
    ids=repr,
)
def test_jsonable(value: object, expected: object) -> None:
    found = jsonable(value)
    assert found == expected
    assert json.loads(json.dumps(found, allow_nan=False)) == expected


def test_scalars_of_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert jsonable(ml_dtypes.bfloat16(1.5)) in (1.5, "1.5")


def test_print_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [1, float("nan")], "b": "é", "c": {}, "long": [list(range(50)), {"d": list(range(40))}]})
    text = capsys.readouterr().out
    assert text.startswith('{\n  "a": [1, "NaN"],\n  "b": "é",\n  "c": {},\n  "long": [\n    [\n      0,\n')
    assert text.endswith("        39\n      ]\n    }\n  ]\n}\n")
    assert json.loads(text)["long"][1] == {"d": list(range(40))}


def test_json_without_characters_that_do_not_print(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a\x9b1m\u202e": ["\x1b[0m", "größe", "\x7f", "\U000e0001"]}
    print_json(value)
    printed = capsys.readouterr().out
    assert json.loads(printed) == value
    assert all(character == "\n" or character.isprintable() for character in printed)
    assert json_text({"a": "\x9b"}) == '{"a": "\\x9b"}'
    assert cut("12345", 5) == "12345"
    assert cut("123456", 5) == "1234…"


def test_print_facts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    print_facts([("A", "[bold]:smile:"), ("Longer", ["one", "  two", "three four five six seven"]), ("Empty", "")])
    assert capsys.readouterr().out.splitlines() == [
        "A       [bold]:smile:",
        "Longer  one",
        "          two",
        "        three four five six",
        "        seven",
        "Empty",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watched(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make stderr a terminal; no fixture, since pytest sets stderr anew before the test itself."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_PATIENCE", 0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("TTY_INTERACTIVE", raising=False)
    return stream


def wait_for_the_bar(advance: progress.Advance) -> None:
    advance._watch.join(30)
    assert advance._bar is not None


def test_progress_is_seen_before_anything_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch)
    with progress.progress("Working") as advance:
        wait_for_the_bar(advance)
    assert "Working" in terminal.getvalue()


def test_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch)
    with progress.progress("Working") as advance:
        wait_for_the_bar(advance)
        advance(total=7, text="[red]Working")
        advance(2)
        advance.report(5, 8)
        advance.report(4, 8)  # from a thread that is late
    assert "[red]Working" in terminal.getvalue()
    assert "5/8" in terminal.getvalue()
    assert "4/8" not in terminal.getvalue()


def test_progress_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch)

    def work() -> None:
        with progress.progress("Working") as advance:
            wait_for_the_bar(advance)
            advance()
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        work()
    assert terminal.getvalue().count("\x1b[?25l") == 1 == terminal.getvalue().count("\x1b[?25h")  # the cursor is back


def test_progress_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch)
    with progress.progress("Working", show=False) as advance:
        advance()
        advance.report(1, 2)
    monkeypatch.setattr(progress, "_PATIENCE", 1000)
    with progress.progress("Working") as advance:
        advance()
    assert terminal.getvalue() == ""
    plain = io.StringIO()
    monkeypatch.setattr(sys, "stderr", plain)
    monkeypatch.setattr(progress, "_PATIENCE", 0)
    with progress.progress("Working") as advance:
        advance()
    assert plain.getvalue() == ""


def test_without_a_terminal_a_line_tells_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing is reported; and how fast it is does not count what an earlier run has done."""
    lines: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(progress, "_INTERVAL", 0.01)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: False, flush=lambda: None, write=lines.put))

    def until(pattern: str) -> str:
        while not re.fullmatch(pattern, line := lines.get(timeout=30)):
            assert re.fullmatch(r"Working: .*|\n", line)
        return line

    with progress.progress("Working", nbytes=True) as advance:
        until(r"Working: 0 s so far")
        advance.report(5_000_000_000, 6_000_000_000)
        until(r"Working: 5,000 of 6,000 MB, 0 MB/s")
        advance._begin -= 10
        advance.report(5_500_000_000, 6_000_000_000)
        until(r"Working: 5,500 of 6,000 MB, (50|49) MB/s, 1\d s left")
    with progress.progress("Working", nbytes=True, show=False):
        time.sleep(0.05)
    while not lines.empty():
        assert lines.get().startswith(("Working: 5,500", "\n"))


def test_a_bar_of_what_goes_on_does_not_count_what_was_done_before(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch)
    with progress.progress("Working", nbytes=True) as advance:
        wait_for_the_bar(advance)
        advance.report(5_000_000_000, 6_000_000_000)
        advance._begin -= 10
        advance.report(5_500_000_000, 6_000_000_000)
        advance.report(5_500_000_001, 6_000_000_000)  # in the same instant
        assert advance._bar is not None
        advance._bar.refresh()
    shown = re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", terminal.getvalue()).rpartition("Working")[2]
    assert re.search(r"5\.5/6\.0 GB (50\.0|49\.\d) MB/s 0:00:\d\d 0:00:1[01]", shown)
