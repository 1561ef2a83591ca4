"""Every test run begins by saying what it ran with."""

import importlib.metadata


def pytest_report_header() -> str:
    """The versions that decide what passes; a package that is not installed is left out."""
    found = []
    for name in ("jax", "jaxlib", "tensorflow", "numpy", "ml_dtypes", "islpy"):
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return "with: " + (", ".join(found) or "none of the frameworks")
