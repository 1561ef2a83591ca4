"""Random StableHLO modules of what JAX never writes give XLA's numbers in graph mode and lifted, or are refused.

A fixed few of each family are tried always; JAXTF_FULL=1 tries `RANDOM_PROGRAMS` of them, 312 if it is not set,
others each time (the session `random_programs`).
"""

import jax
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, note
from hypothesis import strategies as st
from jaxlib import xla_client

from jaxtf.convert import GraphModeUnsupported, convert_stablehlo
from jaxtf.serialization import LiftUnsupported, lift

from .drawing import drawn
from .families.opened import opened
from .families.trial import differs
from .texts import FAMILIES, modules

BACKENDS = {
    "eager": convert_stablehlo,
    "plain": lambda text: convert_stablehlo(text, enable_xla=False),
    "compiled": lambda text: tf.function(convert_stablehlo(text), autograph=False, jit_compile=True),
    "lift": lambda text: jax.jit(lift(text)),
}

pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu", reason="the numbers are those of XLA for the CPU")


def by_xla(module):
    """What XLA gives for the module that it is asked, by the client of jaxlib: JAX's functions take no text."""
    device, options = jax.devices()[0], xla_client.CompileOptions()
    program = device.client.compile_and_load(f"module {{{module.asked}}}", xla_client.DeviceList((device,)), options)
    results = program.execute_sharded([jax.device_put(array, device) for array in module.arguments])
    return [np.asarray(shards[0]) for shards in results.disassemble_into_single_device_arrays()]


def answer(module, backend, seed):
    """Whether a backend refuses a module, with sizes left open by a seed if there is one, or is right."""
    if backend == "lift" and not module.is_lifted:
        return "not tried"
    with jax.enable_x64(True):
        expected = by_xla(module)
        text = module.text if seed is None else opened(module.text, seed)
        note(f"{backend}:\n{text}\nof {module.arguments}")
        arguments = module.arguments if backend == "lift" else map(tf.constant, module.arguments)
        try:
            results = tf.nest.flatten(BACKENDS[backend](text)(*arguments))
        except (GraphModeUnsupported, LiftUnsupported):
            return "refused"
        found = [np.asarray(one.numpy() if isinstance(one, tf.Tensor) else one) for one in results]
    error = module.max_error_in_eps
    difference = differs(found, expected, error, 1 if error else 0)
    assert difference is None, difference
    return "right"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_module_gives_the_numbers_of_xla_or_is_refused(family):
    @given(modules(family), st.sampled_from(list(BACKENDS)), st.none() | st.integers(0, 99))
    @drawn(4, 12, len(FAMILIES))
    def runs(module, backend, seed):
        answer(module, backend, seed)

    runs()
