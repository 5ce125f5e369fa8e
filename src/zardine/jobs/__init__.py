"""A long work as a plan of independent jobs, and who runs them.

The words, each a type of one module here:

- A :class:`~zardine.jobs.stages.Stage` cuts grids of elements into blocks; a **job** is one of them, by its number. It
  is stored as the grid: a plan of ten million jobs is as small as one of ten.
- A :class:`~zardine.jobs.work.Work` is what a tool supplies: its stages, and what a job does. Jobs of a stage write
  disjoint stored objects, may run again and at the same time, and erase nothing; those of a stage need all of the stage
  before. ``finish`` makes the result count by one write.
- :class:`~zardine.jobs.records.Records` say what is done: ranges of jobs, in one object of each worker.
- A :class:`~zardine.jobs.plan.Plan` is a work and its records, as users hold it: it is run, saved, asked and finished.
- :mod:`~zardine.jobs.running` hands the jobs of a stage to an executor, and tries again what failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zardine.public_names import Exports

if TYPE_CHECKING:
    from zardine.jobs.plan import Plan as Plan
    from zardine.jobs.plan import PlanStatus as PlanStatus
    from zardine.jobs.plan import StageStatus as StageStatus

_exports = Exports(__name__, {"plan": ("Plan", "PlanStatus", "StageStatus")})

__all__ = _exports.names
__dir__ = _exports.listed
__getattr__ = _exports.load
