"""Hostile artifacts through every reader: an error of ours for each, no result, and no process that dies.

The corpus is made by `hostile.py`. A sample runs always, the same each time; JAXTF_FULL=1 runs all of it.
"""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from . import hostile

FULL = os.environ.get("JAXTF_FULL") == "1"
STEP = 1 if FULL else 23
READERS = Path(__file__).parent / "hostile_readers.py"
REFUSALS = {
    "in_jax": {"ArtifactError"},
    "native": {"ArtifactError"},
    "graph": {"ArtifactError"},
    "stablehlo": {"ArtifactError", "NotImplementedError"},  # it reads no VJP
    "check": {"SystemExit"},
    "upgrade": {"SystemExit"},
}


def outcomes(reader, artifacts, folder):
    """What became of each artifact, by name; the process must live to the end."""
    (folder / "artifacts").write_bytes(pickle.dumps(artifacts))
    done = subprocess.run(
        [sys.executable, str(READERS), reader, str(folder / "artifacts")], capture_output=True, text=True, check=False
    )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{reader} died at {lines[-1:]}, with {done.returncode}: {done.stderr[-2000:]}"
    return {name: tuple(outcome) for name, *outcome in lines}


@pytest.fixture(scope="module")
def artifacts():
    whole = list(hostile.corpus())
    assert len(whole) >= 500
    assert len(dict(whole)) == len(whole), "two cases of one name"
    by_hand = [case for case in whole if case[0].startswith("sine with ") and "module of" not in case[0]]
    return whole if FULL else list(dict([*whole[::STEP], *by_hand[::5]]).items())


@pytest.mark.slow(1)
@pytest.mark.parametrize("reader", REFUSALS)
def test_every_hostile_artifact_is_refused(reader, artifacts, tmp_path):
    found = outcomes(reader, artifacts, tmp_path)
    assert len(found) == len(artifacts)
    assert {name: outcome for name, outcome in found.items() if outcome[0] not in REFUSALS[reader]} == {}


@pytest.mark.slow(1)
@pytest.mark.parametrize("reader", [name for name in REFUSALS if name != "stablehlo"])
def test_what_they_are_made_of_is_not(reader, tmp_path):
    found = outcomes(reader, list(hostile.sound().items()), tmp_path)
    assert {name: outcome for name, outcome in found.items() if outcome != ("RAN",)} == {}
