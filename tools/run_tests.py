"""Runs pytest on several folders, two processes at a time, and reports while they run.

    python tools/run_tests.py packages/shapepoly/tests packages/convert/tests=3 tests [--sample 1/4]

A folder is run by a process of its own, or by as many as the number after it says, each with a part of its files: what
a conftest sets in JAX or TensorFlow stays with its own package. Failures are named when they happen, with a count of
what has run every few seconds; what pytest has to say of them follows when the process ends. A test that takes longer
than `SECONDS_OF_A_TEST` ends its process, with where it was. Exits with 1 if a test failed, after all of them ran. One
Ctrl-C ends all processes at once.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import IO

AT_A_TIME = 2
SECONDS_BETWEEN_COUNTS = 15.0
SECONDS_OF_A_TEST = 900  # the slowest take one or two minutes
LIMIT = ("-o", f"faulthandler_timeout={SECONDS_OF_A_TEST}", "-o", "faulthandler_exit_on_timeout=true")

# A line of `pytest -v`: packages/convert/tests/test_modes.py::test_it[eager] PASSED      [ 10%]
OUTCOME = re.compile(r"(?P<test>\S+::.*?) (?P<outcome>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b.*?(\[ *\d+%\])?$")
# Where a test takes too long, or ends the process: packages/convert/tests/test_modes.py::test_it Timeout (0:15:00)!
END = re.compile(r"(?P<test>\S+::.*?) ?(?P<outcome>Timeout|Fatal Python error)\b.*$")
BAD = ("FAILED", "ERROR", "Timeout", "Fatal Python error")


@dataclass
class Process:
    """One run of pytest.

    Attributes:
      label: For people.
      paths: What it runs.
      outcomes: How many tests ended how, so far.
      lines: What it has printed, but for the lines of single tests.
    """

    label: str
    paths: Sequence[str]
    outcomes: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)
    code: int | None = None
    seconds: float = 0.0
    _running: subprocess.Popen[str] | None = None

    def run(self, options: Sequence[str], reports: queue.Queue[Process | tuple[Process, str]]) -> None:
        """Runs it to its end; reports each bad test, and itself when it has ended."""
        start = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-v", "--color=no", *LIMIT, *self.paths, *options]
        # A session of its own: Ctrl-C reaches this program only, which ends the others with all that they started.
        self._running = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        assert self._running.stdout is not None
        self._read(self._running.stdout, reports)
        self.code = self._running.wait()
        self.seconds = time.monotonic() - start
        reports.put(self)

    def _read(self, output: IO[str], reports: queue.Queue[Process | tuple[Process, str]]) -> None:
        for line in output:
            found = OUTCOME.match(line)
            if not found:
                self.lines.append(line)
                found = END.match(line)
            if not found:
                continue
            self.outcomes[found["outcome"]] += 1
            if found["outcome"] in BAD:
                reports.put((self, f"{found['outcome']} {found['test']}"))

    def kill(self) -> None:
        """Ends it, with all that it has started."""
        if self._running is not None and self._running.poll() is None:
            os.killpg(self._running.pid, signal.SIGKILL)

    @property
    def has_failed(self) -> bool:
        """Whether a test failed; a part without tests is not a failure (pytest's exit code 5)."""
        return self.code not in (0, 5)


def parts(folder: str, count: int) -> list[Process]:
    """A folder's files dealt out to so many processes, the largest first."""
    if count == 1:
        return [Process(folder, [folder])]
    files = sorted(Path(folder).rglob("test_*.py"), key=lambda path: (-path.stat().st_size, path))
    dealt = [[str(path) for path in files[part::count]] for part in range(count)]
    return [Process(f"{folder} {part}/{count}", paths) for part, paths in enumerate(dealt, 1)]


def run_all(processes: Sequence[Process], options: Sequence[str]) -> None:
    """Runs them, `AT_A_TIME` at once, and prints how it goes."""
    reports: queue.Queue[Process | tuple[Process, str]] = queue.Queue()
    waiting, running, done = list(processes), [], []
    start = last_count = time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < AT_A_TIME:
                process = waiting.pop(0)
                running.append(process)
                threading.Thread(target=process.run, args=(options, reports), daemon=True).start()
            try:
                report = reports.get(timeout=0.2)
            except queue.Empty:
                report = None
            if isinstance(report, Process):
                running.remove(report)
                done.append(report)
                print_end(report)
            elif report is not None:
                print(report[1], flush=True)
            if time.monotonic() - last_count > SECONDS_BETWEEN_COUNTS:
                last_count = time.monotonic()
                labels = ", ".join(process.label for process in running)
                print(f"[{last_count - start:4.0f} s] {counts([*done, *running])}; running: {labels}", flush=True)
    finally:
        for process in running:
            process.kill()


def print_end(process: Process) -> None:
    """What pytest says of failures and warnings, and of the whole."""
    text = "".join(process.lines)
    first = min((at for at in map(text.find, ("= ERRORS =", "= FAILURES =")) if at >= 0), default=-1)
    if process.has_failed:
        print(text[max(text.rfind("\n", 0, first), 0) :] if first >= 0 else text)
    closing = process.lines[-1].strip("= \n") if process.lines else "nothing printed"
    print(f"=== {process.label}: {closing}; exit code {process.code}, {process.seconds:.0f} s", flush=True)


def counts(processes: Sequence[Process]) -> str:
    """How many tests ended how."""
    total = sum((process.outcomes for process in processes), Counter())
    failed = sum(total[outcome] for outcome in BAD)
    skipped = total["SKIPPED"]
    return f"{sum(total.values()) - failed - skipped} passed, {failed} failed, {skipped} skipped"


def interrupted(*_: object) -> None:
    """Ends by the exception of Ctrl-C, whatever signal it was."""
    raise KeyboardInterrupt


def main(words: list[str]) -> int:
    """Runs the tests of all folders; what comes after them are options of pytest."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
    folders = list(takewhile(lambda word: not word.startswith("-"), words))
    processes = []
    for folder in folders:
        path, _, count = folder.partition("=")
        processes += parts(path, int(count or 1))
    try:
        run_all(processes, words[len(folders) :])
    except KeyboardInterrupt:
        print(f"interrupted: {counts(processes)}", flush=True)
        return 130
    failed = [process.label for process in processes if process.has_failed]
    print(f"{counts(processes)}" if not failed else f"{counts(processes)}: in {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
