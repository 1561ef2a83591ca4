"""Every test run begins by saying what it ran with; `--one-in N` runs a sample of the tests."""

import importlib.metadata
import zlib


def pytest_addoption(parser) -> None:
    """`--one-in N`: a test is in the sample or not by its name alone, so that the sample is always the same."""
    parser.addoption("--one-in", type=int, default=1, metavar="N", help="run one test in N, chosen by name")


def pytest_collection_modifyitems(config, items) -> None:
    """Leaves those that are in the sample."""
    count = config.getoption("--one-in")
    left = [item for item in items if zlib.crc32(item.nodeid.encode()) % count == 0]
    if len(left) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(left)])
        items[:] = left


def pytest_report_header() -> str:
    """The versions that decide what passes; a package that is not installed is left out."""
    found = []
    for name in ("jax", "jaxlib", "tensorflow", "numpy", "ml_dtypes", "islpy"):
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return "with: " + (", ".join(found) or "none of the frameworks")
