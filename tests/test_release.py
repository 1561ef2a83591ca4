"""What `tools/release.py` lets pass, in repositories made for the purpose."""

import runpy
import subprocess
from pathlib import Path

import pytest

RELEASE = runpy.run_path(str(Path(__file__).parent.parent / "tools" / "release.py"))
GOOD = """# Changelog

## Unreleased

## 0.2.0 - 2026-11-21

### Added

- Much.

## 0.1.0 - 2026-10-01

### Added

- All.
"""


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    """A repository with one package, `serialization`, at 0.2.0."""
    package = tmp_path / "packages" / "serialization"
    package.mkdir(parents=True)
    (package / "pyproject.toml").write_text('[project]\nname = "jaxtf-serialization"\nversion = "0.2.0"\n')
    (package / "CHANGELOG.md").write_text(GOOD)
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def commit(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "all")


def faults(repository):
    return RELEASE["faults"](repository, "serialization")


def test_a_release_with_its_section_and_its_tag_passes(repository):
    assert faults(repository) == []
    git(repository, "tag", "serialization-v0.2.0")
    assert faults(repository) == []
    assert RELEASE["releases"](repository, "serialization") == ["serialization-v0.2.0"]


@pytest.mark.parametrize(
    ("changelog", "expected"),
    [
        (GOOD.replace("## 0.2.0", "- New.\n\n## 0.2.0"), "entries are under Unreleased: move them under '## 0.2.0 -"),
        (
            GOOD.replace("## 0.2.0 - 2026-11-21", "## 0.2.0"),
            "the newest section must be '0.2.0 - YYYY-MM-DD', found '0.2.0'",
        ),
        ("# Changelog\n\n## Unreleased\n", "the newest section must be '0.2.0 - YYYY-MM-DD', found nothing"),
        (GOOD.replace("### Added\n\n- Much.\n", ""), "the section of 0.2.0 is empty: say what users will notice"),
        (
            GOOD.replace("### Added\n\n- Much", "### News\n\n- Much"),
            "has a heading that Keep a Changelog does not know",
        ),
        (GOOD.replace("## 0.1.0", "## 0.3.0"), "versions must fall from top to bottom, each once"),
    ],
)
def test_a_changelog_that_is_not_of_the_release_is_a_fault(repository, changelog, expected):
    (repository / "packages" / "serialization" / "CHANGELOG.md").write_text(changelog)
    commit(repository)
    [fault] = faults(repository)
    assert expected in fault


def test_work_that_is_not_committed_is_a_fault(repository):
    (repository / "packages" / "serialization" / "new.py").write_text("")
    assert faults(repository) == ["1 files of the package are not committed, such as packages/serialization/new.py"]


def test_a_version_that_was_released_from_another_commit_is_a_fault(repository):
    git(repository, "tag", "serialization-v0.2.0")
    commit(repository)
    assert faults(repository) == ["serialization-v0.2.0 is another commit already: raise the version"]


def test_a_tag_of_another_version_is_a_fault(repository):
    git(repository, "tag", "serialization-v0.3.0")
    assert faults(repository) == [
        "this commit is tagged serialization-v0.3.0, but the version is 0.2.0: the tag must be serialization-v0.2.0"
    ]


def test_a_version_older_than_a_released_one_is_a_fault(repository):
    git(repository, "tag", "serialization-v0.10.0")
    git(repository, "tag", "serialization-v0.9.0")
    git(repository, "tag", "shapepoly-v1.0.0")
    commit(repository)
    assert faults(repository) == ["the version 0.2.0 is older than the released serialization-v0.10.0"]


def test_a_tag_is_made_once_and_at_the_commit(repository):
    git(repository, "config", "user.name", "a")
    git(repository, "config", "user.email", "a@b")
    message = "serialization-v0.2.0 is this commit; to publish it: git push origin serialization-v0.2.0"
    assert RELEASE["make_tag"](repository, "serialization") == message
    assert RELEASE["git"](repository, "tag", "--points-at", "HEAD") == ["serialization-v0.2.0"]
    assert RELEASE["make_tag"](repository, "serialization") == message
