"""Every test run begins by saying what it ran with.

`--cases sample` runs of each test with many cases a few, chosen by name and always the same: an eighth, at least
`LEAST`; of a test marked `sweep(N)` one in N. Of a test marked `slow(N)` it runs N of those, none without a number:
`--cases slow` runs the others. Of hypothesis' examples both run fewer. `--sample K/N` runs a part of the tests, chosen
by name.

`run_without_jax` runs a program in a process that cannot import JAX.

What hypothesis tries is always the same, and may take as long as the machine needs. `HYPOTHESIS_PROFILE=sweep` tries
many more examples than a routine run does: `SWEEP_EXAMPLES` for each property, each drawn anew.
"""

import argparse
import importlib.metadata
import json
import math
import os
import re
import subprocess
import sys
import zlib
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

LEAST = 4
ONE_IN = 8

settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("few", max_examples=20, deadline=None, derandomize=True)
settings.register_profile(
    "sweep",
    max_examples=int(os.environ.get("SWEEP_EXAMPLES", "25000")),
    deadline=None,
    backend="hypothesis-urandom",  # by itself Hypothesis varies examples that it has drawn, half of them
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser) -> None:
    """A test's name alone decides what it is part of, so that a part is always the same."""
    parser.addoption("--sample", type=part, default=(1, 1), metavar="K/N", help="run part K of N, chosen by name")
    choices = ("all", "sample", "slow")
    parser.addoption("--cases", choices=choices, default="all", help="of many cases all or a few, or the slow of these")


def part(text: str) -> tuple[int, int]:
    """The two numbers of "1/4"."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part of the tests; write K/N, 1 <= K <= N, such as 1/4")
    return int(found[1]), int(found[2])


def pytest_configure(config) -> None:
    """Declares the markers; with few cases, there are few examples too, but where a profile is asked for."""
    config.addinivalue_line("markers", "sweep(count): with `--cases sample`, one in so many of the cases is run")
    config.addinivalue_line("markers", "slow(count=0): with `--cases sample`, of its sample so many cases are run")
    if config.getoption("--cases") != "all" and "HYPOTHESIS_PROFILE" not in os.environ:
        settings.load_profile("few")


def pytest_collection_modifyitems(config, items) -> None:
    """Leaves those that are in the part, and of tests with many cases those that are in a sample."""
    number, count = config.getoption("--sample")
    left = [item for item in items if zlib.crc32(item.nodeid.encode()) % count == number - 1]
    if config.getoption("--cases") != "all":
        few = few_cases(items, slow=config.getoption("--cases") == "slow")
        left = [item for item in left if item in few]
    if len(left) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(left)])
        items[:] = left


def few_cases(items: list, *, slow: bool) -> set:
    """Those that `--cases sample` runs, or `--cases slow`."""
    tests = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    kept = set()
    for cases in tests.values():
        one_in, takes_long = (cases[0].get_closest_marker(name) for name in ("sweep", "slow"))
        number = math.ceil(len(cases) / one_in.args[0]) if one_in else max(LEAST, math.ceil(len(cases) / ONE_IN))
        # The name's last digits of the checksum decide in `--sample`; others do here, so that parts share the cases.
        few = sorted(cases, key=lambda item: zlib.crc32(item.nodeid[::-1].encode()))[:number]
        now = number if takes_long is None else next(iter(takes_long.args), 0)
        kept.update(few[now:] if slow else few[:now])
    return kept


def pytest_report_header() -> str:
    """The versions that decide what passes; a package that is not installed is left out."""
    found = []
    for name in ("jax", "jaxlib", "tensorflow", "numpy", "ml_dtypes", "islpy"):
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return "with: " + (", ".join(found) or "none of the frameworks")


class WithoutJax:
    """Programs in processes that have TensorFlow and cannot import JAX: `tools/fresh_process.py` forks them.

    Args:
      folder: For what they print.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: subprocess.Popen | None = None

    def __call__(self, *arguments: object, cwd: object = ".", timeout: float = 300.0) -> subprocess.CompletedProcess:
        """Runs `python ARGUMENTS`, as `subprocess.run` with `capture_output=True, text=True`.

        Raises:
          subprocess.TimeoutExpired: It takes longer than `timeout` seconds.
        """
        if self._server is None:
            command = [sys.executable, str(Path(__file__).parent / "tools" / "fresh_process.py")]
            environment = {"TF_CPP_MIN_LOG_LEVEL": "2"} | os.environ
            pipe = subprocess.PIPE
            self._server = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)
        names = [self._folder / "stdout", self._folder / "stderr"]
        for name in names:
            name.write_text("")
        words = [str(argument) for argument in arguments]
        request = {"arguments": words, "folder": os.path.abspath(cwd), "timeout": timeout}
        request |= {"stdout": str(names[0]), "stderr": str(names[1])}
        print(json.dumps(request), file=self._server.stdin, flush=True)
        answer = self._server.stdout.readline()
        printed = [name.read_text(errors="replace") for name in names]
        assert answer, f"the process that forks others has ended: {self._server.wait()}"
        code = json.loads(answer)["returncode"]
        if code is None:
            raise subprocess.TimeoutExpired(words, timeout, *printed)
        return subprocess.CompletedProcess(words, code, *printed)

    def stop(self) -> None:
        """Ends the process that waits."""
        if self._server is not None:
            self._server.communicate()


@pytest.fixture(scope="session")
def run_without_jax(tmp_path_factory):
    """Runs a program where JAX cannot be imported: `("-c", program)`, or a file, and words for it."""
    programs = WithoutJax(tmp_path_factory.mktemp("without_jax"))
    yield programs
    programs.stop()
