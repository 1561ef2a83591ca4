"""Which JAX works with which TensorFlow on which Python: `tests/version_probe.py` in each; writes docs/versions.md.

    python tools/version_matrix.py FOLDER [3.12 0.11.2 2.20.0 nightly ...]

Wheels of the tree are built once, so that what is edited meanwhile changes nothing; each combination is installed in
an environment of its own, probed, and removed. Words choose Pythons and releases: the others of that kind are left out
of the run and keep the results of the one before, which are in FOLDER/results.json. The page is written when every
combination has a result. A probe that crashes, prints nothing or takes too long fails its own combination, with its
last words as the reason.

TensorFlow's pre-releases have a table of their own on the page: the newest release candidate, by its version, and
`nightly`, the newest nightly build that the package index has. A Python that TensorFlow has only pre-releases for is
tried where it is on the machine.

Needs `uv` on PATH. Exit status 1 if a combination fails.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
NEXT_PYTHONS = ("3.14",)  # left out where it is not on the machine
JAX = ("0.10.2", "0.11.2", "0.12.0.1")
TENSORFLOW = ("2.19.1", "2.20.0", "2.21.0")
PRE_RELEASES = {"2.22.0rc0": "tensorflow==2.22.0rc0", "nightly": "tf-nightly"}  # how the page calls it -> requirement
NEEDS = {"shapepoly": "[jax]", "serialization": "[jax]", "convert": "[jax]", "calltf": ""}  # with what extra
LONGEST = 1200  # seconds a probe may take: about one minute on two idle cores
PAGE = ROOT / "docs" / "versions.md"

# Beside `tf-nightly`, which is another distribution of the same module, no `tensorflow` is to be installed.
WITHOUT_TENSORFLOW = "tensorflow ; python_version < '3'\n"

# Why a combination cannot be installed, in the order in which the resolver's words are searched for it.
REASONS = {
    r"(tensorflow==|tf-nightly)\S+ has no wheels with a matching Python": (
        "TensorFlow {tensorflow} has no wheel for Python {python}"
    ),
    r"tensorflow==\S+.*numpy": "TensorFlow {tensorflow} takes no NumPy that JAX {jax} takes",
    r"Python": "JAX {jax} is not for Python {python}",
}


def main(folder: Path, words: list[str]) -> int:
    """Probes the combinations that the words choose, and writes the page; the exit status."""
    known = (*PYTHONS, *NEXT_PYTHONS, *JAX, *TENSORFLOW, *PRE_RELEASES)
    unknown = set(words) - set(known)
    if unknown:
        sys.exit(f"not among {', '.join(known)}: {', '.join(sorted(unknown))}")
    pythons = (*PYTHONS, *filter(is_there, NEXT_PYTHONS))
    for python in chosen((*PYTHONS, *NEXT_PYTHONS), words):
        if not is_there(python) and (python in PYTHONS or python in words):
            sys.exit(f"Python {python} is not on this machine (with pyenv: PYENV_VERSION names those to be found)")
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / "results.json"
    results = json.loads(record.read_text()) if words and record.exists() else {}
    wheels = built(folder / "wheels")
    failed = 0
    axes = (pythons, JAX, (*TENSORFLOW, *PRE_RELEASES))
    for combination in itertools.product(*(chosen(axis, words) for axis in axes)):
        start = time.monotonic()
        result = probed(combination, folder / "environment", wheels) | {
            "date": time.strftime("%Y-%m-%d", time.gmtime())
        }
        results[" ".join(combination)] = result
        record.write_text(json.dumps(results, indent=1))
        failed += bool(result.get("failed"))
        outcome = "; ".join(result["failed"]) or "all works" if "failed" in result else reason(result, combination)
        print(f"Python {' + '.join(combination)}: {outcome} ({time.monotonic() - start:.0f} s)", flush=True)
    if all(" ".join(combination) in results for combination in itertools.product(*axes)):
        PAGE.write_text(page(results, pythons), encoding="utf-8")
    return 1 if failed else 0


def is_there(python: str) -> bool:
    """Whether an interpreter is on this machine."""
    search = subprocess.run(["uv", "python", "find", "--quiet", python], check=False, capture_output=True)
    return search.returncode == 0


def chosen(axis: tuple[str, ...], words: list[str]) -> tuple[str, ...]:
    """What of an axis the words name; all of it if they name nothing of it."""
    return tuple(value for value in axis if value in words) or axis


def built(folder: Path) -> list[str]:
    """Requirements for the wheels of the four packages, which are built into the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    found = []
    for package, extra in NEEDS.items():
        subprocess.run(
            ["uv", "build", "--quiet", "--wheel", "--out-dir", folder, ROOT / "packages" / package], check=True
        )
        [wheel] = folder.glob(f"jaxtf_{package}-*.whl")
        found.append(f"jaxtf-{package}{extra} @ {wheel.as_uri()}")
    return found


def probed(combination: tuple[str, str, str], home: Path, wheels: list[str]) -> dict:
    """What became of a combination: `unresolved`, why it cannot be installed, or `failed`, what does not work."""
    python, jax, tensorflow = combination
    subprocess.run(["uv", "venv", "--quiet", "--clear", "--python", python, home], check=True)
    try:
        interpreter = home / "bin" / "python"
        requirement = PRE_RELEASES.get(tensorflow, f"tensorflow=={tensorflow}")
        needs = [f"jax=={jax}", f"jaxlib=={jax}", requirement, *wheels]
        # Nothing of these is compiled on the way: what has no wheel for this Python is not for it.
        options = ["--quiet", "--no-build", "--python", interpreter]
        if not requirement.startswith("tensorflow"):
            overrides = home / "overrides.txt"
            overrides.write_text(WITHOUT_TENSORFLOW)
            options += ["--overrides", overrides]
        step = subprocess.run(["uv", "pip", "install", *options, *needs], check=False, capture_output=True, text=True)
        if step.returncode != 0:
            message = " ".join(step.stderr.split())
            if "No solution found" in message:
                return {"unresolved": message}
            return {"failed": [f"not installed: {message[-300:]}"]}
        return run(interpreter, home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def reason(result: dict, combination: tuple[str, str, str]) -> str:
    """Why a combination cannot be installed, in one clause."""
    message = result["unresolved"]
    python, jax, tensorflow = combination
    for pattern, words in REASONS.items():
        if re.search(pattern, message):
            return words.format(python=python, jax=jax, tensorflow=tensorflow)
    return message[:200]


def run(interpreter: Path, home: Path) -> dict:
    """What the probe says, or how it ended."""
    command = [interpreter, ROOT / "tests" / "version_probe.py"]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=LONGEST, cwd=home, env=environment()
        )
    except subprocess.TimeoutExpired:
        return {"failed": [f"the probe took more than {LONGEST} s"]}
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"python"')]
    if lines:
        return json.loads(lines[-1])
    ended = f"exit status {done.returncode}"
    if done.returncode < 0:
        ended = signal.Signals(-done.returncode).name
    last = (done.stderr.strip() or "no message").splitlines()[-1]
    return {"failed": [f"the probe ended with {ended}: {last[:300]}"]}


def environment() -> dict[str, str]:
    """The variables of the probe: a CPU, nothing on the import path but what is installed, modules compiled once."""
    left_out = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return kept | {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}


def page(results: dict[str, dict], pythons: tuple[str, ...]) -> str:
    """The page, with the Pythons that were tried."""
    notes: list[str] = []

    def note(text: str) -> str:
        if text not in notes:
            notes.append(text)
        return f"[{notes.index(text) + 1}](#notes)"

    def cell(*combination: str) -> str:
        result = results[" ".join(combination)]
        if "unresolved" in result:
            return f"- {note(reason(result, combination))}"
        if result["failed"]:
            return f"**fails** {note('; '.join(result['failed']))}"
        nightly = f" with {result['tensorflow']}" if combination[-1] == "nightly" else ""
        return f"works{nightly}, NumPy {result['numpy']}"

    def table(versions: Iterable[str], heading: str) -> list[str]:
        headings = [heading.format(version) for version in versions]
        rows = [f"| Python | JAX | {' | '.join(headings)} |", "| --- | --- |" + " --- |" * len(headings)]
        for python, jax in itertools.product(pythons, JAX):
            cells = [cell(python, jax, version) for version in versions]
            rows.append(f"| {python} | {jax} | {' | '.join(cells)} |")
        return rows

    def counted(versions: Iterable[str]) -> str:
        shown = [results[" ".join(combination)] for combination in itertools.product(pythons, JAX, versions)]
        outcomes = [
            "cannot be installed" if "unresolved" in one else "fail" if one["failed"] else "work" for one in shown
        ]
        kinds = ("work", "fail", "cannot be installed")
        counts = ", ".join(f"{outcomes.count(kind)} {kind}" for kind in kinds if kind in outcomes)
        return f"{len(outcomes)} combinations: {counts}."

    untried = [python for python in NEXT_PYTHONS if python not in pythons]
    absent = (
        f"Python {' and '.join(untried)} is not on the machine that made this page, and untried." if untried else ""
    )
    released, pre_releases = table(TENSORFLOW, "TensorFlow {}"), table(PRE_RELEASES, "TensorFlow {} (pre-release)")
    dates = sorted({one["date"] for one in results.values()})
    return "\n".join(
        [
            "# Versions that work together",
            "",
            f"Made {spelled(dates)} by `python3 run.py versions`; do not edit. {counted(TENSORFLOW)}",
            "",
            "Each is installed in an environment of its own, from wheels of the tree, on Linux x86-64 with two cores "
            "and no accelerator,",
            "and runs `tests/version_probe.py`: four functions with a symbolic size in every way that "
            "[`jaxtf-verify`](verify.md) knows",
            "(artifact, eager, graph, compiled, SavedModel, graph mode), at three sizes each, values and gradients; "
            "and a TensorFlow function",
            "in JAX: eager, under `jit`, both derivatives, `vmap`.",
            "",
            *released,
            "",
            "## Pre-releases of TensorFlow",
            "",
            "What is coming: the newest release candidate, and the newest nightly build of the package index. "
            f"{counted(PRE_RELEASES)}",
            *filter(None, [absent]),
            "",
            *pre_releases,
            "",
            "## Notes",
            "",
            *(f"{number}. {text}." for number, text in enumerate(notes, 1)),
            "",
        ]
    )


def spelled(dates: list[str]) -> str:
    """The day or the days of a run, as `on 1 November 2026`."""
    first, last = (time.strftime("%-d %B %Y", time.strptime(date, "%Y-%m-%d")) for date in (dates[0], dates[-1]))
    return f"on {first}" if first == last else f"from {first} to {last}"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
