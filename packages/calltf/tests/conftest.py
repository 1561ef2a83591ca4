"""Warnings are errors (repository settings); 64-bit types are chosen by the test; promotion is strict."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # no start-up chatter of TensorFlow's C++ code
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")  # these tests are of the CPU

import jax
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request):
    """The test runs with JAX's 64-bit types off and on."""
    with jax.enable_x64(request.param):
        yield request.param
