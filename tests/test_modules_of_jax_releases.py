"""Modules that JAX keeps of its releases since 2023: graph mode and `lift` give the recorded numbers, or refuse.

For every platform: what a device's own operation computes, `lift` computes with JAX's.
"""

import importlib
import pkgutil

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax._src.internal_test_util import export_back_compat_test_data as recorded

from jaxtf.convert import GraphModeUnsupported, convert_stablehlo
from jaxtf.serialization import LiftUnsupported, lift

SEVERAL_RIGHT = ("eig", "schur", "pivots", "variadic")
"""In names of those whose numbers say nothing: signs of vectors, rows past the end, an initial value added often."""
DEVICES = ("cuda_svd", "cuda_tridiagonal", "rocm_tridiagonal", "shardy_sharding_ops", "tpu_Sharding")
"""What `lift` refuses: results laid out as no operation of JAX has them, and meshes of devices."""
RUNS = {"graph": lambda module: tf.function(convert_stablehlo(module), autograph=False), "lift": lift}


def datasets(name, value):
    """Those that a dictionary of JAX holds, by name."""
    if "mlir_module_serialized" in value:
        yield name, value
    elif isinstance(value, dict):
        for part, inner in value.items():
            yield from datasets(f"{name} {part}", inner)


def files():
    for file in pkgutil.iter_modules(recorded.__path__):
        if not file.ispkg:
            content = vars(importlib.import_module(f"{recorded.__name__}.{file.name}"))
            yield file.name, {name[5:]: value for name, value in content.items() if name.startswith("data_")}


EVERY = (found for name, content in files() for found in datasets(name, content))
DATA = {name: data for name, data in EVERY if not any(word in name for word in SEVERAL_RIGHT)}


@pytest.mark.slow(6)
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", DATA)
def test_a_module_of_an_earlier_jax_gives_the_recorded_numbers(name, run):
    data = DATA[name]
    with jax.enable_x64(True):
        try:
            results = RUNS[run](data["mlir_module_serialized"])(*map(np.asarray, data["inputs"]))
        except GraphModeUnsupported:
            assert run == "graph"
            assert "stablehlo.custom_call" in data["mlir_module_text"] or name.startswith(DEVICES)
            return
        except LiftUnsupported:
            assert name.startswith(DEVICES) or "hipsolver" in name
            return
    for result, expected in zip(jax.tree.leaves(results), data["expected_outputs"], strict=True):
        eps = 0 if expected.dtype.kind in "iub" else float(np.finfo(expected.dtype).eps)
        largest = float(np.max(np.abs(expected), initial=0))
        np.testing.assert_allclose(np.asarray(result), expected, rtol=0, atol=64 * eps * largest)


def test_graph_mode_takes_them():
    """At least those without an operation of a library or of a device."""
    taken = ("annotate_data_placement", "stablehlo_dynamic_top_k", "tpu_ApproxTopK", "tpu_Qr", "tpu_stablehlo")
    names = [name for name in DATA if name.startswith(taken)]
    assert len(names) >= 10
    for name in names:
        convert_stablehlo(DATA[name]["mlir_module_serialized"])
