"""Some of xarray's own tests of its backend pass with zardine in its place; why others do not is documented."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import zardine

SUITE = Path(__file__).parent / "xarray_suite"
PAGE = Path(zardine.__file__).parents[2] / "docs" / "xarray.md"
FEW = "TestZarrDirectoryStore and (roundtrip_consolidated or orthogonal_indexing or vectorized_indexing or test_group)"


def test_every_reason_is_in_the_documentation() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    for listed in tomllib.loads((SUITE / "reasons.toml").read_text(encoding="utf-8")).values():
        for each in listed:
            assert all(re.compile(pattern) for pattern in each["patterns"])
            assert each["reason"] in text


def test_some_of_the_tests_of_xarray_pass() -> None:
    outcomes = runpy.run_path(str(SUITE / "__main__.py"))["run"](FEW, False)
    assert len(outcomes) >= 10
    assert {test: why for test, (outcome, why) in outcomes.items() if outcome != "passed"} == {}
