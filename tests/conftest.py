"""The tests across packages run on one backend, which `JAXTF_TEST_PLATFORM` names (see `tests_cuda` in noxfile.py)."""

import os

import pytest

PLATFORM = os.environ.get("JAXTF_TEST_PLATFORM", "cpu")


def pytest_sessionstart():
    """Stops at once when the backend asked for is not the one JAX uses: passing on another one proves nothing."""
    if "JAXTF_TEST_PLATFORM" not in os.environ:
        return
    import jax

    try:
        found = {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend())
    except RuntimeError as error:
        found = f"none ({error})"
    if found != PLATFORM:
        pytest.exit(f"these tests are to run on {PLATFORM}, but JAX's default backend is {found}", returncode=3)


@pytest.fixture
def platform() -> str:
    """The lowering platform that these tests run on: "cpu", "cuda" or "tpu"."""
    return PLATFORM
