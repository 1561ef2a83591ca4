"""How many operations a test draws: a fixed sample, or in the session `random_operations` others each time."""

import os

from hypothesis import HealthCheck, settings

__all__ = ["FULL", "sampled"]

FULL = os.environ.get("JAXTF_FULL") == "1"
EACH = int(os.environ.get("RANDOM_PROGRAMS", "30"))


def sampled(count, *, is_fixed=not FULL):
    """The settings of a test of so many drawn operations; `RANDOM_PROGRAMS` of them where they are not fixed."""
    return settings(
        max_examples=count if is_fixed else EACH,
        deadline=None,
        derandomize=is_fixed,
        backend="hypothesis" if is_fixed else "hypothesis-urandom",
        suppress_health_check=list(HealthCheck),
        print_blob=True,
        database=None,
    )
