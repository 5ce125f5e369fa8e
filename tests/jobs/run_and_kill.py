"""Run a saved plan in two processes, and kill one of them, or this one, when so many jobs are done.

``python -m jobs.run_and_kill PLAN MOMENTS LOG``: ``MOMENTS`` is JSON, a list of pairs (jobs done, ``worker`` or
``scheduler``). ``LOG`` gets a line of JSON for each kill, which tells a later run of the same command not to repeat it,
and one for the memory of the workers whenever a job is done.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from effort import SOAK
from jobs.processes import peak_memory, workers_of
from zardine.jobs import Plan


def main() -> None:
    """Run the plan."""
    plan, log = Plan.load(sys.argv[1]), Path(sys.argv[3])
    log.touch()
    moments = json.loads(sys.argv[2])[sum("killed" in line for line in log.read_text().splitlines()) :]

    def note(**what: Any) -> None:
        with log.open("a") as file:
            file.write(json.dumps(what) + "\n")

    def after_a_job(_done: int, _total: int) -> None:
        note(peak=max(map(peak_memory, workers_of(os.getpid())), default=0))
        if not moments or sum(each.done for each in plan.status().stages) < moments[0][0]:
            return
        time.sleep(random.random() * (0.05 if SOAK else 0.002))  # so that it is at any point of its next job
        who = moments[0][1]
        alive = [os.getpid()] if who == "scheduler" else workers_of(os.getpid())
        if not alive:  # the last kill ends them all: next time
            return
        if who == "scheduler":
            note(killed=who)
        with suppress(ProcessLookupError):
            os.kill(random.choice(alive), signal.SIGKILL)
            note(killed=who)
            moments.pop(0)

    plan.run(workers=2, progress=after_a_job)


if __name__ == "__main__":
    main()
