"""Changes of a package's public API since its newest release that its version does not announce.

    python tools/api_changes.py serialization      one a line; exits with 1 if there are any

What breaks callers (a name that is gone, a parameter or a default that is another) needs a new major version; before
1.0, a new minor one. Needs griffe. Reads files and asks git; changes nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

import griffe

sys.path.insert(0, str(Path(__file__).parent))

from release import git, releases, version_of


def announces(older: str, newer: str) -> bool:
    """Whether the newer version says that callers may break."""
    (old_major, old_minor), (major, minor) = (tuple(map(int, text.split(".")[:2])) for text in (older, newer))
    return major > old_major or (major == old_major == 0 and minor > old_minor)


def changes(root: Path, package: str, tag: str) -> list[str]:
    """What breaks callers, in the files of this folder, since a tag."""
    where = [f"packages/{package}/src"]
    older = griffe.load_git(f"jaxtf.{package}", ref=tag, repo=root, search_paths=where)
    newer = griffe.load(f"jaxtf.{package}", search_paths=[root / path for path in where])
    found = griffe.find_breaking_changes(older, newer)
    return [" ".join(filter(None, (f"{x.obj.path}: {x.kind.value}", x.details))) for x in found]


def faults(root: Path, package: str) -> list[str]:
    """What breaks callers and is not announced."""
    here = git(root, "tag", "--points-at", "HEAD")
    earlier = [tag for tag in releases(root, package) if tag not in here]
    if not earlier:
        return []
    released = earlier[-1].rpartition("-v")[2]
    version = version_of(root, package)
    if announces(released, version):
        return []
    broken = changes(root, package, earlier[-1])
    return [f"{change}; the version {version} after {released} promises that callers keep working" for change in broken]


if __name__ == "__main__":
    unannounced = faults(Path(__file__).resolve().parent.parent, sys.argv[1])
    print("\n".join(unannounced) or "the public API is as the version promises")
    sys.exit(bool(unannounced))
