"""How many random programs a test draws: a fixed sample, or, with JAXTF_FULL=1, others each time."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

__all__ = ["FULL", "drawn"]

FULL = os.environ.get("JAXTF_FULL") == "1"


def drawn(always: int, otherwise: int, parts: int = 1) -> settings:
    """The settings of a test.

    Args:
      always: How many are drawn for the fixed sample.
      otherwise: How many if `RANDOM_PROGRAMS` is not set; each anew. Hypothesis alone varies programs that it has
        drawn: of 500, half differ in operations.
      parts: How many tests share `RANDOM_PROGRAMS`.
    """
    count = max(1, int(os.environ.get("RANDOM_PROGRAMS", str(otherwise * parts))) // parts)
    return settings(
        max_examples=count if FULL else always,
        deadline=None,
        derandomize=not FULL,
        backend="hypothesis-urandom" if FULL else "hypothesis",
        suppress_health_check=list(HealthCheck),
        print_blob=True,
        database=None,
    )
