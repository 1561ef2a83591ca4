"""TensorFlow fuses other operations where it uses oneDNN: on processors with AVX-512, or where it is told to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize("program", ["graph_with_onednn.py", "graph_left_out.py"])
def test_what_is_fused_for_onednn_has_the_values_of_jax(program):
    environment = os.environ | {"TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, FOLDER / program], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stdout + done.stderr
