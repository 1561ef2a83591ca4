"""Every test run begins by saying what it ran with.

`--cases sample` runs of each test with many cases a few, chosen by name and always the same: an eighth, at least
`LEAST`; of a test marked `sweep(N)` one in N. Of hypothesis' examples it runs fewer too. `--sample K/N` runs a part of
the tests, chosen by name.

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

LEAST = 4
ONE_IN = 8

settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("few", max_examples=20, deadline=None, derandomize=True)
settings.register_profile(
    "sweep",
    max_examples=int(os.environ.get("SWEEP_EXAMPLES", "25000")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser) -> None:
    """A test's name alone decides what it is part of, so that a part is always the same."""
    parser.addoption("--sample", type=part, default=(1, 1), metavar="K/N", help="run part K of N, chosen by name")
    parser.addoption("--cases", choices=("all", "sample"), default="all", help="of tests with many cases all or a few")


def part(text: str) -> tuple[int, int]:
    """The two numbers of "1/4"."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is no part of the tests; write K/N with K from 1 to N, such as 1/4")
    return int(found[1]), int(found[2])


def pytest_configure(config) -> None:
    """Declares the marker; with few cases, there are few examples too, but where a profile is asked for."""
    config.addinivalue_line("markers", "sweep(count): with `--cases sample`, one in so many of the cases is run")
    if config.getoption("--cases") == "sample" and "HYPOTHESIS_PROFILE" not in os.environ:
        settings.load_profile("few")


def pytest_collection_modifyitems(config, items) -> None:
    """Leaves those that are in the part, and of tests with many cases those that are in a sample."""
    number, count = config.getoption("--sample")
    left = [item for item in items if zlib.crc32(item.nodeid.encode()) % count == number - 1]
    if config.getoption("--cases") == "sample":
        few = few_cases(items)
        left = [item for item in left if item in few]
    if len(left) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(left)])
        items[:] = left


def few_cases(items: list) -> set:
    """Those that `--cases sample` runs."""
    tests = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    kept = set()
    for cases in tests.values():
        marker = cases[0].get_closest_marker("sweep")
        number = math.ceil(len(cases) / marker.args[0]) if marker else max(LEAST, math.ceil(len(cases) / ONE_IN))
        # The name's last digits of the checksum decide in `--sample`; others do here, so that parts share the cases.
        kept.update(sorted(cases, key=lambda item: zlib.crc32(item.nodeid[::-1].encode()))[:number])
    return kept


def pytest_report_header() -> str:
    """The versions that decide what passes; a package that is not installed is left out."""
    found = []
    for name in ("jax", "jaxlib", "tensorflow", "numpy", "ml_dtypes", "islpy"):
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return "with: " + (", ".join(found) or "none of the frameworks")
