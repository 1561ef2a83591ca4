"""The page that `tools/version_matrix.py` writes: which combinations it has, and how it marks pre-releases."""

import importlib.util
import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def matrix():
    spec = importlib.util.spec_from_file_location("version_matrix", ROOT / "tools" / "version_matrix.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(matrix, pythons):
    """Results of all combinations: one that failed, one that cannot be installed, the others work."""
    axes = (pythons, matrix.JAX, (*matrix.TENSORFLOW, *matrix.PRE_RELEASES))
    found = {
        " ".join(combination): {"tensorflow": "2.99.0-dev1", "numpy": "2.9", "failed": [], "date": "2026-11-23"}
        for combination in itertools.product(*axes)
    }
    found["3.12 0.11.2 nightly"]["failed"] = ["network, eager"]
    found["3.12 0.11.2 2.20.0"]["date"] = "2026-11-21"
    found["3.11 0.11.2 2.21.0"] = {"unresolved": "the Python is too old", "date": "2026-11-23"}
    return found


def test_pre_releases_have_a_table_of_their_own_and_are_marked(matrix):
    page = matrix.page(results(matrix, matrix.PYTHONS), matrix.PYTHONS)
    released, coming = page.split("## Pre-releases of TensorFlow")
    assert "pre-release" not in released
    for version in matrix.PRE_RELEASES:
        assert f"TensorFlow {version} (pre-release)" in coming
    assert "| 3.12 | 0.11.2 | works, NumPy 2.9 | **fails** [2](#notes) |" in coming
    assert "works with 2.99.0-dev1, NumPy 2.9" in coming
    assert re.search(r"^1\. JAX 0\.11\.2 is not for Python 3\.11\.\n2\. network, eager\.$", coming, re.MULTILINE)
    assert "from 21 November 2026 to 23 November 2026" in released
    assert f"{3 * len(matrix.JAX) * len(matrix.TENSORFLOW)} combinations: 26 work, 1 cannot be installed." in released


def test_a_python_that_is_not_there_is_named_as_untried_and_has_no_row(matrix):
    [python] = matrix.NEXT_PYTHONS
    without = matrix.page(results(matrix, matrix.PYTHONS), matrix.PYTHONS)
    assert f"Python {python} is not on the machine that made this page, and untried." in without
    assert f"| {python} |" not in without
    every = (*matrix.PYTHONS, python)
    assert f"| {python} | 0.12.0.1 | works" in matrix.page(results(matrix, every), every)


def test_the_versions_of_the_page_are_those_of_the_tables(matrix):
    """So that the page is made again when the tool tries other versions."""
    page = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    for version in (*matrix.TENSORFLOW, *matrix.PRE_RELEASES):
        assert f"TensorFlow {version}" in page
    for python, jax in itertools.product(matrix.PYTHONS, matrix.JAX):
        assert f"| {python} | {jax} |" in page
