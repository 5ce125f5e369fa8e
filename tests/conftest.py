"""How hard the randomised tests try: ``HYPOTHESIS_PROFILE=soak`` (or ``ZARDINE_SOAK=1``, as ``make soak`` sets it)."""

import os

from hypothesis import HealthCheck, settings

import zardine.tools.reshard  # noqa: F401  while nobody has patched the times that it takes from the engine

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "default", deadline=None, database=None, max_examples=100, suppress_health_check=_SLOW, report_multiple_bugs=False
)
settings.register_profile("soak", settings.get_profile("default"), max_examples=2000, print_blob=True)
_SOAK = os.environ.get("ZARDINE_SOAK", "") not in ("", "0")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "soak" if _SOAK else "default"))
