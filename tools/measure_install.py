"""Writes docs/install_size.md: what each package, alone with its needs, takes on disk and at import.

    python tools/measure_install.py 'shapepoly=/tmp/a/bin/python' 'shapepoly[jax]=/tmp/b/bin/python' ...

Each argument is what was installed in a clean environment, and the environment's interpreter. Sizes are those of the
files in site-packages, without bytecode. Import times are CPU times of fresh processes, medians of `RUNS` after one
that writes the bytecode: other programs on the machine change them little, which is not so of wall time. What is ours
of it is summed up from `python -X importtime`, which tells the time of each module without those it imports.
"""

from __future__ import annotations

import os
import re
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "install_size.md"
RUNS = 7
FRAMEWORKS = ("jax", "tensorflow")
# What somebody who installed it imports first: the modules behind a name are loaded when it is asked for.
FIRST = {
    "shapepoly": "symbolic_shape",
    "shapepoly[jax]": "symbolic_shape",
    "serialization": "describe",
    "serialization[jax]": "export",
    "convert": "convert_exported",
    "convert[graph]": "convert_exported",
    "convert[jax]": "convert",
    "calltf": "call_tf",
}
# A line of `-X importtime`: microseconds of the module itself, of all it imported, and its name.
LINE = re.compile(r"import time: +(\d+) \| +\d+ \| +(\S+)")


@dataclass(frozen=True)
class Started:
    """A process: CPU seconds, of which how many in modules of ours, and the frameworks that it loaded."""

    seconds: float
    ours: float
    loaded: tuple[str, ...]


@dataclass(frozen=True)
class Installed:
    """An environment: its distributions with their bytes and versions."""

    sizes: dict[str, int]
    versions: dict[str, str]

    @property
    def ours(self) -> int:
        """Bytes of the packages of this project."""
        return sum(size for name, size in self.sizes.items() if name.startswith("jaxtf-"))

    @property
    def total(self) -> int:
        """Bytes of everything."""
        return sum(self.sizes.values())

    def largest(self, count: int) -> list[tuple[str, int]]:
        """The largest distributions of others."""
        others = [(name, size) for name, size in self.sizes.items() if not name.startswith("jaxtf-")]
        return sorted(others, key=lambda item: -item[1])[:count]


def installed(python: str) -> Installed:
    """What an environment holds."""
    [packages] = Path(python).parent.parent.glob("lib/python*/site-packages")
    sizes, versions = {}, {}
    for distribution in distributions(path=[str(packages)]):
        files = [Path(distribution.locate_file(file)) for file in distribution.files or ()]
        name = distribution.metadata["Name"].lower().replace("_", "-")
        sizes[name] = sum(file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file())
        versions[name] = distribution.version
    return Installed(sizes, versions)


def started(python: str, program: str) -> Started:
    """CPU seconds, the median over fresh processes; what is ours of them, the least, because it is wall time."""
    output = run(python, program + "; import sys; print('LOADED', *sys.modules)").stdout
    modules = output.partition("LOADED")[2].split()
    seconds, ours = [], []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(python, program)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        lines = LINE.findall(run(python, program, "-X", "importtime").stderr)
        ours.append(sum(int(own) for own, name in lines if name.startswith("jaxtf")) / 1e6)
    loaded = tuple(name for name in (*FRAMEWORKS, "numpy", "islpy") if name in modules)
    return Started(statistics.median(seconds), min(ours), loaded)


def run(python: str, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs a program away from the tree, with bytecode, on one thread."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [python, *options, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd="/", env=kept)


def page(environments: dict[str, Installed], imports: dict[str, Started], bare: dict[str, Started]) -> str:
    """The page."""
    everything = {name: version for one in environments.values() for name, version in one.versions.items()}
    named = ("jax", "jaxlib", "tensorflow", "numpy", "islpy")
    start = bare["pass"].seconds
    lines = [
        "# What it takes to install and to import",
        "",
        f"Made on {time.strftime('%-d %B %Y', time.gmtime())} by `python3 run.py sizes`; do not edit. "
        f"Python {sys.version.partition(' ')[0]}, "
        + ", ".join(f"{name} {everything[name]}" for name in named if name in everything)
        + ", Linux x86-64, two cores.",
        "",
        "Each package is installed from its wheel in a clean environment, alone with what it declares.",
        "",
        "| `pip install` | distributions | MB | ours, MB | largest of the others, MB |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, one in environments.items():
        largest = ", ".join(f"{other} {megabytes(size)}" for other, size in one.largest(3))
        lines.append(
            f"| `jaxtf-{name}` | {len(one.sizes)} | {megabytes(one.total)} | {megabytes(one.ours)} | {largest} |"
        )
    lines += [
        "",
        "MB are millions of bytes in site-packages, without bytecode.",
        "",
        f"Importing, in seconds of CPU time of a fresh process beyond Python's own start ({start:.3f} s); medians of "
        f"{RUNS}. The column",
        f"*ours* is what the modules of these packages take themselves, without what they import: the least of {RUNS}.",
        "",
        "| installed | imported | CPU s | ours, s | loads |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, one in imports.items():
        package = name.partition("[")[0]
        lines.append(
            f"| `jaxtf-{name}` | `jaxtf.{package}.{FIRST[name]}` | {one.seconds - start:.2f} | {one.ours:.3f} | "
            f"{', '.join(one.loaded) or 'neither framework nor NumPy'} |"
        )
    for framework in FRAMEWORKS:
        one = bare[f"import {framework}"]
        lines.append(f"| for comparison | `{framework}` | {one.seconds - start:.2f} | | {', '.join(one.loaded)} |")
    lines += ["", "TensorFlow imports JAX where it finds it (`tensorflow/lite/python/util.py`)."]
    return "\n".join(lines) + "\n"


def megabytes(size: int) -> str:
    """Bytes in millions, with as many digits as tell something."""
    return f"{size / 1e6:,.0f}" if size >= 10e6 else f"{size / 1e6:.1f}"


def main(arguments: list[str]) -> int:
    """Measures the environments and writes the page."""
    pythons = dict(argument.split("=", 1) for argument in arguments)
    environments = {name: installed(python) for name, python in pythons.items()}
    imports = {}
    for name, python in pythons.items():
        imports[name] = started(python, f"from jaxtf.{name.partition('[')[0]} import {FIRST[name]}")
        print(f"{name}: {environments[name].total / 1e6:.1f} MB, {imports[name]}", flush=True)
    both = next(python for name, python in pythons.items() if set(FRAMEWORKS) <= environments[name].versions.keys())
    bare = {program: started(both, program) for program in ("pass", *(f"import {name}" for name in FRAMEWORKS))}
    PAGE.write_text(page(environments, imports, bare), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
