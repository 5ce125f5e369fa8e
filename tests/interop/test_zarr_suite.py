"""The reasons why tests of zarr-python's own suite fail here are told in the documentation."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import zardine

SUITE = Path(__file__).parent / "zarr_suite"
PAGE = Path(zardine.__file__).parents[2] / "docs" / "from-zarr-python.md"


def test_every_reason_is_in_the_documentation() -> None:
    spec = importlib.util.spec_from_file_location("reasons", SUITE / "reasons.py")
    assert spec is not None
    assert spec.loader is not None
    reasons = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reasons)
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for text, patterns in {**reasons.INSIDE, **reasons.ON_PURPOSE}.items():
        assert text in page, text
        assert all(re.compile(pattern) for pattern in patterns)
