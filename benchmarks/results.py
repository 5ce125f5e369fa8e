"""What the records of a run say: medians, ratios, verdicts. No text, no pictures."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from implementations import OURS, PEERS, VARIANTS
from tables import digits
from workloads import WORKLOADS, Workload

LIMIT = "limit"


@dataclass(frozen=True)
class Cell:
    """What one implementation did in one workload."""

    seconds: float | None = None
    """The median of the rounds."""
    rounds: tuple[float, ...] = ()
    """Seconds of each of them."""
    memory: int | None = None
    wrong: str | None = None
    why_not: str | None = None
    """Why there is no time."""


class Results:
    """The records of a run, and what follows from them."""

    def __init__(self, stored: dict[str, Any]) -> None:
        self.about: dict[str, Any] = stored["about"]
        self.builds: dict[str, str] = stored.get("builds", {})
        self.records: dict[str, dict[str, list[dict[str, Any]]]] = stored["records"]
        self.long: dict[str, str] = stored.get("long", {})
        """Tables of long works, by name."""

    @classmethod
    def load(cls, folder: Path) -> Results:
        return cls(json.loads((folder / "results.json").read_text()))

    @property
    def workloads(self) -> list[Workload]:
        """Those that were measured, in the order of the suite."""
        return [workload for name, workload in WORKLOADS.items() if name in self.records]

    def variants(self, *, compared: bool) -> list[str]:
        """The implementations that took part."""
        seen = {name for found in self.records.values() for name, records in found.items() if records}
        return [name for name, variant in VARIANTS.items() if name in seen and variant.compared == compared]

    def cell(self, workload: str, variant: str) -> Cell:
        """What was seen in the rounds: of memory the median."""
        records = self.records.get(workload, {}).get(variant, [])
        if not records:
            return Cell()
        for record in records:
            if "seconds" not in record:
                return Cell(why_not=record.get("error") or record.get("unsupported") or "not supported")
        memory = [record["memory"] for record in records if "memory" in record]
        seconds = tuple(record["seconds"] for record in records)
        return Cell(
            median(seconds),
            seconds,
            int(median(memory)) if memory else None,
            next((record["wrong"] for record in records if record.get("wrong")), None),
        )

    @property
    def older(self) -> list[str]:
        """The workloads that were measured with another build of zardine than the last one."""
        now = self.about.get("build")
        return [workload.name for workload in self.workloads if self.builds.get(workload.name) != now]

    def failed(self, workload: str, variant: str) -> list[str]:
        """What failed in a workload of many cases."""
        records = self.records.get(workload, {}).get(variant, [])
        return list(dict.fromkeys(each for record in records for each in record.get("failed", [])))

    def best_peer(self, workload: Workload) -> tuple[str, float] | None:
        """The fastest peer that gave the right result, and its seconds."""
        cells = {peer: self.cell(workload.name, peer) for peer in PEERS}
        times = {peer: cell.seconds for peer, cell in cells.items() if cell.seconds is not None and not cell.wrong}
        if not times:
            return None
        best = min(times, key=lambda peer: times[peer])
        return best, times[best]

    def ratio(self, workload: Workload) -> float | None:
        """The best peer's time over ours."""
        ours, best = self.cell(workload.name, OURS), self.best_peer(workload)
        return None if ours.seconds is None or best is None else best[1] / ours.seconds

    def verdict(self, workload: Workload) -> str:
        """``PASS`` or ``MISS`` where something is wanted."""
        if workload.wanted is None or self.cell(workload.name, OURS).seconds is None:
            return ""
        ratio = self.ratio(workload)
        if ratio is None:
            return "no peer"
        right = self.cell(workload.name, OURS).wrong is None
        return "PASS" if right and ratio >= workload.wanted else "MISS"

    def over_limit(self, workload: Workload, variant: str) -> float | None:
        """How many times the limit an implementation took."""
        limit, cell = self.cell(workload.name, LIMIT), self.cell(workload.name, variant)
        return None if limit.seconds is None or cell.seconds is None else cell.seconds / limit.seconds

    def reachable(self, workload: Workload) -> float | None:
        """The best peer's time over the limit, which whoever takes no time but that of the codec library has."""
        limit, best = self.cell(workload.name, LIMIT).seconds, self.best_peer(workload)
        return None if limit is None or best is None else best[1] / limit

    def varied(self) -> dict[str, float]:
        """For each of the varied cases, the best peer's time over ours."""
        cases: dict[str, dict[str, float]] = {}
        for variant in (OURS, *PEERS):
            found: dict[str, list[float]] = {}
            for record in self.records.get("variety", {}).get(variant, []):
                for case, seconds in record.get("cases", {}).items():
                    found.setdefault(case, []).append(seconds)
            for case, times in found.items():
                cases.setdefault(case, {})[variant] = median(times)
        return {
            case: min(seconds for name, seconds in times.items() if name != OURS) / times[OURS]
            for case, times in cases.items()
            if OURS in times and len(times) > 1
        }


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def milliseconds(seconds: float | None) -> str:
    """Three digits."""
    return "–" if seconds is None else digits(seconds * 1000)
