"""The reasons why tests of zarr-python's own suite fail here are told in the documentation."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import zardine

REASONS = Path(__file__).parent / "zarr_suite" / "reasons.toml"
PAGE = Path(zardine.__file__).parents[2] / "docs" / "from-zarr-python.md"


def test_every_reason_is_in_the_documentation_and_no_other() -> None:
    reasons = tomllib.loads(REASONS.read_text(encoding="utf-8"))
    told = {kind: {each["reason"] for each in listed} for kind, listed in reasons.items()}
    for listed in reasons.values():
        assert all(re.compile(pattern) for each in listed for pattern in each["patterns"])
    page = PAGE.read_text(encoding="utf-8")
    for kind, title in {"inside": "Not counted: the test", "on_purpose": "Fails on purpose:"}.items():
        _, _, table = page.partition(f"| {title} | |\n|---|---|\n")
        rows = re.findall(r"^\| (.*) \| [\d,]+ \|$", table.partition("\n\n")[0], re.MULTILINE)
        assert len(rows) == len(told[kind])
        assert {*rows} == told[kind]
