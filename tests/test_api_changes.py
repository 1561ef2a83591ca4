"""Which changes of a public API a version must announce, in repositories made for the purpose."""

import runpy
from pathlib import Path

import pytest

from .test_release import GOOD, commit, git

API = runpy.run_path(str(Path(__file__).parent.parent / "tools" / "api_changes.py"))
PUBLIC = '"""A package."""\n\nfrom jaxtf.serialization._inner import export\n\n__all__ = ["export"]\n'
INNER = "def export(function, *, platforms=None):\n    return function\n"


def write(folder, *, version, public=PUBLIC, inner=INNER):
    package = folder / "packages" / "serialization"
    source = package / "src" / "jaxtf" / "serialization"
    source.mkdir(parents=True, exist_ok=True)
    (source / "__init__.py").write_text(public)
    (source / "_inner.py").write_text(inner)
    (package / "pyproject.toml").write_text(f'[project]\nname = "jaxtf-serialization"\nversion = "{version}"\n')
    (package / "CHANGELOG.md").write_text(GOOD)


@pytest.fixture
def repository(tmp_path):
    """A repository with a release 1.2.0 of one package."""
    git(tmp_path, "init", "-q")
    write(tmp_path, version="1.2.0")
    commit(tmp_path)
    git(tmp_path, "tag", "serialization-v1.2.0")
    return tmp_path


def test_a_first_release_and_an_unchanged_one_have_no_faults(repository):
    assert API["faults"](repository, "serialization") == []
    write(repository, version="1.2.1")
    commit(repository)
    assert API["faults"](repository, "serialization") == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"public": '"""A package."""\n'}, "jaxtf.serialization.export: Public object was removed"),
        ({"inner": INNER.replace("platforms=None", "platforms")}, "export: Parameter is now required"),
        ({"inner": INNER.replace("platforms", "devices")}, "export: Parameter was removed"),
    ],
)
def test_what_breaks_callers_needs_a_major_version(repository, change, expected):
    write(repository, version="1.3.0", **change)
    commit(repository)
    found = API["faults"](repository, "serialization")
    assert any(expected in fault and "the version 1.3.0 after 1.2.0 promises" in fault for fault in found), found
    write(repository, version="2.0.0", **change)
    assert API["faults"](repository, "serialization") == []


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [("0.1.0", "0.1.1", False), ("0.1.4", "0.2.0", True), ("0.9.0", "1.0.0", True), ("1.2.0", "1.10.0", False)],
)
def test_before_one_a_minor_version_announces(older, newer, expected):
    assert API["announces"](older, newer) == expected
