"""Every test run begins by saying what it ran with; `--sample K/N` runs a part of the tests.

A test of many cases may be marked `sweep(N)`: of its cases one in N is run, chosen by name and always the same, at
least one; with `JAXTF_ALL_CASES=1`, all.

What hypothesis tries is always the same, and may take as long as the machine needs. `HYPOTHESIS_PROFILE=sweep` tries
many more examples than a routine run does: `SWEEP_EXAMPLES` for each property.
"""

import argparse
import importlib.metadata
import math
import os
import re
import zlib
from collections import defaultdict

from hypothesis import HealthCheck, settings

settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
settings.register_profile(
    "sweep",
    max_examples=int(os.environ.get("SWEEP_EXAMPLES", "25000")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser) -> None:
    """`--sample K/N`: a test's name alone decides which of N parts it is in, so that a part is always the same."""
    parser.addoption("--sample", type=part, default=(1, 1), metavar="K/N", help="run part K of N, chosen by name")


def part(text: str) -> tuple[int, int]:
    """The two numbers of "1/4"."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is no part of the tests; write K/N with K from 1 to N, such as 1/4")
    return int(found[1]), int(found[2])


def pytest_configure(config) -> None:
    """Declares the marker."""
    config.addinivalue_line("markers", "sweep(count): without JAXTF_ALL_CASES=1, one in so many of the cases is run")


def pytest_collection_modifyitems(config, items) -> None:
    """Leaves those that are in the part, and of sweeps those that are always run."""
    number, count = config.getoption("--sample")
    left = [item for item in items if zlib.crc32(item.nodeid.encode()) % count == number - 1]
    if os.environ.get("JAXTF_ALL_CASES") != "1":
        left = without_most_of_sweeps(left, items)
    if len(left) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(left)])
        items[:] = left


def without_most_of_sweeps(left: list, items: list) -> list:
    """Those of `left` that are no sweep's, or among the cases of one that are always run."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sweep"):
            cases[item.nodeid.partition("[")[0]].append(item)
    kept = set()
    for sweep in cases.values():
        one_in = sweep[0].get_closest_marker("sweep").args[0]
        # The name's last digits of the checksum decide in `--sample`; others do here, so that parts share the cases.
        ordered = sorted(sweep, key=lambda item: zlib.crc32(item.nodeid[::-1].encode()))
        kept.update(ordered[: math.ceil(len(ordered) / one_in)])
    return [item for item in left if item in kept or not item.get_closest_marker("sweep")]


def pytest_report_header() -> str:
    """The versions that decide what passes; a package that is not installed is left out."""
    found = []
    for name in ("jax", "jaxlib", "tensorflow", "numpy", "ml_dtypes", "islpy"):
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return "with: " + (", ".join(found) or "none of the frameworks")
