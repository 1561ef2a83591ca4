"""`tools/run_tests.py` and the options of conftest.py: reports while tests run, one Ctrl-C, samples of many cases."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOL = ROOT / "tools" / "run_tests.py"

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

ENDLESS = """
import time
def test_first(): pass
def test_endless():
    while True: time.sleep(1)
"""
FATAL = """
import os
def test_fatal(): os.abort()
"""

CASES = """
import pytest
@pytest.mark.parametrize("i", range(40))
def test_many(i): pass
@pytest.mark.sweep(2)
@pytest.mark.parametrize("i", range(40))
def test_marked(i): pass
@pytest.mark.parametrize("i", range(7))
def test_some(i): pass
def test_one(): pass
@pytest.mark.slow
def test_slow(): pass
@pytest.mark.slow(1)
@pytest.mark.parametrize("i", range(40))
def test_partly(i): pass
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
    for file in ("a/test_mixed.py", "b/test_more.py"):
        assert output.index(f"FAILED {file}::test_it[2]") < output.index(f"{file}:7: AssertionError")
    assert len(re.findall(r"^=== (a|b 1/2|b 2/2): .*; exit code [01], \d+ s$", output, re.MULTILINE)) == 3
    assert output.splitlines()[-1].startswith("5 passed, 2 failed, 2 skipped: in a, b ")


def test_all_passed(tmp_path):
    running = start(tmp_path, folder(tmp_path / "a", first="def test_it(): pass"), "-k", "test_it")
    assert running.communicate(timeout=120)[0].splitlines()[-1] == "1 passed, 0 failed, 0 skipped"
    assert running.returncode == 0


def test_what_does_not_end_or_ends_the_process_is_named_with_where_it_was(tmp_path):
    words = [folder(tmp_path / "a", endless=ENDLESS), folder(tmp_path / "b", fatal=FATAL)]
    running = start(tmp_path, *words, "-o", "faulthandler_timeout=1")
    output = running.communicate(timeout=120)[0]
    assert running.returncode == 1
    named = {"Timeout a/test_endless.py::test_endless", "Fatal Python error b/test_fatal.py::test_fatal"}
    assert named <= set(output.splitlines())
    assert 'test_endless.py", line 5 in test_endless' in output
    assert output.splitlines()[-1].startswith("1 passed, 2 failed, 0 skipped: in ")


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), {"many": 40, "marked": 40, "some": 7, "one": 1, "slow": 1, "partly": 40}),
        (("--cases", "sample"), {"many": 5, "marked": 20, "some": 4, "one": 1, "partly": 1}),
        (("--cases", "slow"), {"slow": 1, "partly": 4}),
    ],
)
def test_of_many_cases_a_sample_is_run_always_the_same_and_parts_share_it(tmp_path, options, expected):
    folder(tmp_path / "a", cases=CASES)
    shutil.copy(ROOT / "conftest.py", tmp_path / "a")

    def run(*words):
        command = [sys.executable, "-m", "pytest", "-v", "a", *options, *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return re.findall(r"::(test_(\w+)\S*) PASSED", done.stdout)

    found = run()
    assert Counter(name for _, name in found) == expected
    assert run() == found
    assert sorted(run("--sample", "1/2") + run("--sample", "2/2")) == sorted(found)


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
        while sleepers() and time.monotonic() - began < 2:  # what is killed takes a moment to end
            time.sleep(0.05)
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
