"""JAX functions of every family, exported with symbolic shapes, give JAX's numbers and gradients at all sizes.

The table is `tests/battery`; how both sides are compared is in `tests/battery/trial.py`. TensorFlow has no part
in it. Of the three sizes of an entry one is run with the gradient and two without. With `JAXTF_FULL=1` all are run with
and without, all with 64-bit numbers too, and programs are compiled with all of LLVM's optimizations, as users compile
them; this costs time, and does not change what is exported.
"""

import functools
import os
import re
import zlib

import jax
import pytest

from jaxtf.serialization import export
from jaxtf.shapepoly import symbolic_args_specs

from .battery import BATTERY
from .battery.entry import RUNS
from .battery.trial import Exporter, assert_gradients, assert_values

FULL = os.environ.get("JAXTF_FULL") == "1"
OURS = Exporter(export, symbolic_args_specs)

WORKING = [name for name, entry in BATTERY.items() if entry.refusal is None]
DIFFERENTIABLE = [name for name, entry in BATTERY.items() if entry.differentiable]
REFUSED = [name for name, entry in BATTERY.items() if entry.refusal is not None]
WITHOUT_GRADIENT = [name for name, entry in BATTERY.items() if entry.gradient_refusal is not None]

REFUSALS = (NotImplementedError, TypeError, ValueError, jax.errors.InconclusiveDimensionOperation)
"""What JAX raises where it refuses; anything else would be an accident."""


@pytest.fixture(scope="module", autouse=True)
def _quick_compilation():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", not FULL)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@functools.cache
def exported(name):
    """The exported function of an entry; its VJP is kept with it."""
    return OURS.exported(BATTERY[name])


def one_of_three(name):
    """A run that depends on the name alone, so that all three are used, and always the same one for an entry."""
    return zlib.crc32(name.encode()) % RUNS


def runs_with_gradient(name):
    """The runs in which the gradient is compared, and the results with it: compiling is what costs time here."""
    if not BATTERY[name].differentiable:
        return set()
    return set(range(RUNS)) if FULL else {one_of_three(name)}


@pytest.mark.slow(22)
@pytest.mark.parametrize("name", WORKING)
def test_an_exported_function_gives_what_jax_gives(name):
    for run in range(RUNS) if FULL else sorted({*range(RUNS)} - runs_with_gradient(name)):
        assert_values(exported(name), BATTERY[name], run)


@pytest.mark.slow(30)
@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_it_gives_the_same_and_the_same_gradient_under_reverse_mode(name):
    for run in sorted(runs_with_gradient(name)):
        assert_gradients(exported(name), BATTERY[name], run)


@pytest.mark.parametrize("name", DIFFERENTIABLE[:: 1 if FULL else 12])
def test_the_same_holds_with_64_bit_numbers(name):
    run = one_of_three(name)
    with jax.enable_x64(True):
        wide = OURS.exported(BATTERY[name], wide=True)
        assert_values(wide, BATTERY[name], run, wide=True)
        assert_gradients(wide, BATTERY[name], run, wide=True)


@pytest.mark.parametrize("name", REFUSED)
def test_what_jax_does_not_trace_with_symbolic_sizes_is_refused_in_its_words(name):
    with pytest.raises(REFUSALS, match=re.escape(BATTERY[name].refusal)):
        OURS.exported(BATTERY[name])


@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
def test_a_gradient_that_jax_does_not_trace_is_refused_in_its_words(name):
    with pytest.raises(REFUSALS, match=re.escape(BATTERY[name].gradient_refusal)):
        exported(name).vjp()


def test_the_battery_is_as_large_as_promised():
    assert len(WORKING) >= 115
    assert len(DIFFERENTIABLE) >= 115
