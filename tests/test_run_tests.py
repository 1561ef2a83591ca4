"""`tools/run_tests.py`: what it reports while tests run, and that one Ctrl-C ends them."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

TOOL = Path(__file__).resolve().parents[1] / "tools" / "run_tests.py"

MIXED = """
import pytest
@pytest.mark.parametrize("i", range(4))
def test_it(i):
    if i == 3:
        pytest.skip("not today")
    assert i != 2, "two is wrong"
"""
SLOW = """
import subprocess
def test_slow():
    subprocess.run(["sleep", "97.5"])
"""


def folder(path, **files):
    path.mkdir()
    (path / "pytest.ini").write_text("[pytest]\n")
    for name, text in files.items():
        (path / f"test_{name}.py").write_text(text)
    return path.name


def start(cwd, *words):
    return subprocess.Popen(
        [sys.executable, str(TOOL), *words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def test_failures_are_named_when_they_happen_and_explained_at_the_end(tmp_path):
    words = [
        folder(tmp_path / "a", mixed=MIXED),
        folder(tmp_path / "b", first="def test_it(): pass", more=MIXED) + "=2",
    ]
    running = start(tmp_path, *words)
    output = running.communicate(timeout=120)[0]
    assert running.returncode == 1
    assert output.index("FAILED a/test_mixed.py::test_it[2]") < output.index("two is wrong")
    assert len(re.findall(r"^=== (a|b 1/2|b 2/2): .*; exit code [01], \d+ s$", output, re.MULTILINE)) == 3
    assert output.splitlines()[-1].startswith("5 passed, 2 failed, 2 skipped: in a, b ")


def test_all_passed(tmp_path):
    running = start(tmp_path, folder(tmp_path / "a", first="def test_it(): pass"), "-k", "test_it")
    assert running.communicate(timeout=120)[0].splitlines()[-1] == "1 passed, 0 failed, 0 skipped"
    assert running.returncode == 0


def test_one_interrupt_ends_all_processes(tmp_path):
    running = start(tmp_path, folder(tmp_path / "a", slow=SLOW), folder(tmp_path / "b", slow=SLOW))
    try:
        while len(sleepers()) < 2:
            assert running.poll() is None
            time.sleep(0.1)
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        output = running.communicate(timeout=10)[0]
        assert time.monotonic() - began < 2
        assert (running.returncode, output) == (130, "interrupted: 0 passed, 0 failed, 0 skipped\n")
        assert not sleepers()
    finally:
        running.kill()


def sleepers():
    """The processes of `SLOW` that run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == b"sleep\x0097.5\x00":
                found.append(path)
        except OSError:  # it has ended meanwhile
            continue
    return found
