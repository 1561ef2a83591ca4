"""Looks into the wheels and source distributions of a folder: what each must hold, and what it must not.

    python tools/check_wheels.py dist

Exit status 1, with one line per fault, when something is wrong.
"""

import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

PACKAGES = ("shapepoly", "serialization", "convert", "calltf")


def faults_of_wheel(path: Path, package: str) -> list[str]:
    """Everything wrong with a wheel."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        [metadata_name] = [name for name in names if name.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(wheel.read(metadata_name).decode())
    faults = []
    if "jaxtf/__init__.py" in names:
        faults.append("jaxtf/__init__.py takes the namespace that belongs to all four packages")
    for needed in (f"jaxtf/{package}/__init__.py", f"jaxtf/{package}/py.typed"):
        if needed not in names:
            faults.append(f"{needed} is missing")
    if not any(name.endswith("/licenses/LICENSE") for name in names):
        faults.append("LICENSE is missing")
    foreign = [n for n in names if not n.startswith(f"jaxtf/{package}/") and ".dist-info/" not in n]
    faults += [f"{name} does not belong here" for name in foreign]
    faults += [f"{name} is a leftover" for name in names if "__pycache__" in name or name.endswith(".pyc")]
    if metadata["License-Expression"] != "Apache-2.0":
        faults.append(f"its license is {metadata['License-Expression']!r}, not Apache-2.0")
    if not metadata.get_payload().strip():
        faults.append("its README is empty")
    return faults


def faults_of_source(path: Path, package: str) -> list[str]:
    """Everything missing from a source distribution; the tests and the changelog travel with it."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", f"src/jaxtf/{package}/py.typed")
    faults = [f"{name} is missing" for name in needed if name not in names]
    if not any(name.startswith("tests/test_") for name in names):
        faults.append("its tests are missing")
    return faults


def main(folder: Path) -> int:
    """Prints the faults; the exit status."""
    faults = []
    for package in PACKAGES:
        for pattern, look in (("*-py3-none-any.whl", faults_of_wheel), ("*.tar.gz", faults_of_source)):
            found = sorted(folder.glob(f"jaxtf_{package}-{pattern}"))
            if len(found) != 1:
                faults.append(f"{folder}: {len(found)} files match jaxtf_{package}-{pattern}, not 1")
            faults += [f"{path.name}: {fault}" for path in found for fault in look(path, package)]
    print("\n".join(faults) or f"{folder}: {2 * len(PACKAGES)} distributions are as they should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
