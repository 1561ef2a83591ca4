"""Runs pytest on several folders, each in a process of its own, two at a time; prints each one's output when it ends.

    python tools/run_tests.py packages/shapepoly/tests packages/convert/tests tests [--sample 1/4]

One process per folder: what a conftest sets in JAX or TensorFlow stays with its own package. Exits with 1 if one of
them failed, after all of them ran.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile

AT_A_TIME = 2


def run(folder: str, *options: str) -> tuple[str, int]:
    """Runs the tests of a folder and prints what they said; returns the folder and the exit code."""
    start = time.monotonic()
    command = [sys.executable, "-m", "pytest", "--color=no", folder, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    said = f"=== pytest {folder}: exit code {done.returncode}, {time.monotonic() - start:.0f} s"
    print(f"{done.stdout}{said}\n", flush=True)
    return folder, done.returncode


def main(words: list[str]) -> int:
    """Runs the tests of all folders; what comes after them are options of pytest."""
    folders = list(takewhile(lambda word: not word.startswith("-"), words))
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        done = pool.map(lambda folder: run(folder, *words[len(folders) :]), folders)
        failed = [folder for folder, code in done if code]
    if failed:
        print(f"tests failed in {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
