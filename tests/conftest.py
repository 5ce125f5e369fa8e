"""How hard hypothesis tries: as ``effort`` says, or as ``HYPOTHESIS_PROFILE`` names it; what the collector looks at."""

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import zardine.tools.reshard  # noqa: F401  while nobody has patched the times that it takes from the engine
from effort import SOAK, examples

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "default",
    deadline=None,
    database=None,
    derandomize=not SOAK,
    max_examples=examples(40),
    suppress_health_check=_SLOW,
    report_multiple_bugs=False,
    print_blob=SOAK,
)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # of a job in the background, and all processes that tests begin
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let the collector pass over the modules and tests, which stay: they are half a million objects."""
    gc.disable()
    yield
    gc.collect()
    gc.freeze()
    gc.enable()
