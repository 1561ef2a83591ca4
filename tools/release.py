"""What must be true of a package before it is released, and where its releases are.

    python tools/release.py serialization          faults, one a line, or the tag to make
    python tools/release.py --tag serialization    makes the tag if it is not there, and says what to push
    python tools/release.py --newest serialization the newest tagged release, such as serialization-v0.2.0

A release is a commit with a tag `PACKAGE-vVERSION`. In it the package's changelog has a section for the version on top,
with its date, and nothing under Unreleased. Reads files and asks git; only `--tag` changes something.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

PACKAGES = ("shapepoly", "serialization", "convert", "calltf")
VERSION = r"(\d+)\.(\d+)\.(\d+)"


def version_of(root: Path, package: str) -> str:
    """The version that the package says it is."""
    return tomllib.loads((root / "packages" / package / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "version"
    ]


def faults_of_changelog(text: str, version: str) -> list[str]:
    """Everything that keeps a changelog from being that of a release."""
    sections = [
        (title.strip(), body.strip()) for title, body in re.findall(r"^## (.*?)$(.*?)(?=^## |\Z)", text, re.M | re.S)
    ]
    faults = []
    is_headed = bool(sections) and sections[0][0] == "Unreleased"
    if is_headed and sections.pop(0)[1]:
        faults.append(f"entries are under Unreleased: move them under '## {version} - YYYY-MM-DD'")
    titles = [title for title, _ in sections]
    if not titles or not re.fullmatch(re.escape(version) + r" - \d{4}-\d{2}-\d{2}", titles[0]):
        found = repr(titles[0]) if titles else "nothing"
        faults.append(f"the newest section must be '{version} - YYYY-MM-DD', found {found}")
    elif not sections[0][1]:
        faults.append(f"the section of {version} is empty: say what users will notice")
    elif re.search(r"^### (?!Added|Changed|Deprecated|Removed|Fixed|Security)", sections[0][1], re.M):
        faults.append(f"the section of {version} has a heading that Keep a Changelog does not know")
    numbers = [
        tuple(map(int, found)) for found in (re.findall(rf"^{VERSION}", title) for title in titles) for found in found
    ]
    if numbers != sorted(numbers, reverse=True) or len(set(numbers)) != len(numbers):
        faults.append("versions must fall from top to bottom, each once")
    return faults


def git(root: Path, *arguments: str) -> list[str]:
    """The lines that git prints."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def releases(root: Path, package: str) -> list[str]:
    """The tags of the package's releases, oldest first."""
    tags = git(root, "tag", "--list", f"{package}-v*")
    numbered = [
        (tuple(map(int, found.groups())), tag) for tag in tags if (found := re.fullmatch(rf"{package}-v{VERSION}", tag))
    ]
    return [tag for _, tag in sorted(numbered)]


def faults(root: Path, package: str) -> list[str]:
    """Everything that keeps the commit that is checked out from being a release of the package."""
    version = version_of(root, package)
    folder = root / "packages" / package
    found = [
        f"CHANGELOG.md: {fault}"
        for fault in faults_of_changelog((folder / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    ]
    if not re.fullmatch(VERSION, version):
        found.append(f"pyproject.toml: the version {version!r} is not of the form 1.2.3")
    if dirty := git(root, "status", "--porcelain", "--", f"packages/{package}"):
        found.append(f"{len(dirty)} files of the package are not committed, such as {dirty[0][3:]}")
    tag = f"{package}-v{version}"
    here = [name for name in git(root, "tag", "--points-at", "HEAD") if name.startswith(f"{package}-v")]
    if here and here != [tag]:
        found.append(f"this commit is tagged {', '.join(here)}, but the version is {version}: the tag must be {tag}")
    if not here and tag in releases(root, package):
        found.append(f"{tag} is another commit already: raise the version")
    if (older := releases(root, package)) and not here:
        newest = tuple(map(int, older[-1].rpartition("-v")[2].split(".")))
        if re.fullmatch(VERSION, version) and tuple(map(int, version.split("."))) < newest:
            found.append(f"the version {version} is older than the released {older[-1]}")
    return found


def make_tag(root: Path, package: str) -> str:
    """Makes the tag of the package's version at the commit that is checked out; says what to push."""
    tag = f"{package}-v{version_of(root, package)}"
    if tag not in git(root, "tag", "--points-at", "HEAD"):
        git(root, "tag", "--annotate", tag, "--message", f"jaxtf-{package} {tag.rpartition('-v')[2]}")
    return f"{tag} is this commit; to publish it: git push origin {tag}"


def main(arguments: list[str]) -> int:
    """Prints what was asked; 1 if there is a fault or no release."""
    root = Path(__file__).resolve().parent.parent
    option = arguments[0] if arguments[:1] in (["--newest"], ["--tag"]) else ""
    [package] = arguments[bool(option) :]
    if package not in PACKAGES:
        print(f"there is no package {package!r}; there are {', '.join(PACKAGES)}", file=sys.stderr)
        return 1
    if option == "--newest":
        tags = releases(root, package)
        print(tags[-1] if tags else f"no release of {package} is tagged", file=sys.stdout if tags else sys.stderr)
        return 0 if tags else 1
    found = faults(root, package)
    if option == "--tag" and not found:
        print(make_tag(root, package))
        return 0
    print("\n".join(f"{package}: {fault}" for fault in found) or f"tag: {package}-v{version_of(root, package)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
