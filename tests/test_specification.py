"""Each operation of StableHLO gives the numbers of its specification: by `lift`, in graph mode and by XLA."""

import math

import jax
import numpy as np
import pytest
import tensorflow as tf
from jaxlib import xla_client
from jaxlib.mlir.dialects import chlo, stablehlo

from jaxtf.convert import GraphModeUnsupported, convert_stablehlo
from jaxtf.convert._graph.table import entries as graph_entries
from jaxtf.serialization import lift
from jaxtf.serialization._lift.table import entries as lift_entries

from .specification import CASES
from .specification.case import BACKENDS


def by_lift(case):
    """The results by `jax.lax`, compiled."""
    with jax.enable_x64(True):
        return jax.jit(lift(case.text))(*case.arguments)


def eager(case):
    """The results by TensorFlow, one operation after the other."""
    return convert_stablehlo(case.text)(*map(tf.constant, case.arguments))


def compiled(case):
    """The results by TensorFlow, compiled."""
    function = tf.function(convert_stablehlo(case.text), autograph=False, jit_compile=True)
    return function(*map(tf.constant, case.arguments))


def by_xla(case):
    """The results of the module itself."""
    [device, *_] = jax.devices()
    options = xla_client.CompileOptions()
    program = device.client.compile_and_load(f"module {{{case.text}}}", xla_client.DeviceList((device,)), options)
    with jax.enable_x64(True):
        arguments = [jax.device_put(argument, device) for argument in case.arguments]
    return [shards[0] for shards in program.execute_sharded(arguments).disassemble_into_single_device_arrays()]


# Other numbers; refused by ours, or by XLA.
DIFFERENT = (AssertionError, GraphModeUnsupported, jax.errors.JaxRuntimeError)
RUN = dict(zip(BACKENDS, (by_lift, eager, compiled, by_xla), strict=True))


def check(case, backend):
    found = [np.asarray(leaf) for leaf in jax.tree.leaves(RUN[backend](case))]
    assert len(found) == len(case.expected)
    for result, expected in zip(found, case.expected, strict=True):
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        if case.rtol:
            np.testing.assert_allclose(result, expected, case.rtol, atol=1e-6 * bool(case.rtol))
        else:
            np.testing.assert_array_equal(bits(result), bits(expected), f"{result} for {expected}")


def bits(array):
    """What tells equal numbers from others: 0 from -0., and not one NaN from another."""
    if array.dtype.kind == "c":
        return np.stack([bits(array.real), bits(array.imag)])
    if array.dtype.kind not in "fV":
        return array
    nan = np.isnan(array)
    return np.where(nan, -1, np.where(nan, np.zeros_like(array), array).view(f"i{array.dtype.itemsize}"))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_has_the_numbers_of_the_specification(case, backend):
    if backend not in case.differs:
        check(case, backend)
        return
    with pytest.raises(DIFFERENT):
        check(case, backend)


def test_every_operation_that_anything_evaluates_has_a_case():
    classes = [*vars(stablehlo).values(), *vars(chlo).values()]
    names = {found.OPERATION_NAME for found in classes if hasattr(found, "OPERATION_NAME")}
    refused = {name for name, entry in lift_entries().items() if entry.reason}
    refused &= {name for name, entry in graph_entries().items() if entry.reason}
    assert {case.operation for case in CASES} == names - refused


def test_every_case_has_its_operation():
    for case in CASES:
        assert case.operation in case.text or case.operation == "stablehlo.return"


@pytest.mark.parametrize(("wrong", "right"), [(0.0, -0.0), (1.0, math.nan), (1.0, 1 + 2**-23)])
def test_numbers_are_compared_bit_by_bit(wrong, right):
    assert (bits(np.float32([wrong])) != bits(np.float32([right]))).all()
    assert (bits(np.complex64([wrong * 1j])) != bits(np.complex64([right * 1j]))).any()
