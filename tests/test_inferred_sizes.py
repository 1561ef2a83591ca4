"""Grappler infers no size in graphs of converted functions that is another one, also of a branch that is not taken."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given
from hypothesis import strategies as st

from jaxtf.convert import GraphModeUnsupported, convert_stablehlo
from jaxtf.serialization import LapackNeeded, export

from .drawing import drawn
from .families import FAMILIES
from .families.inferred import wrong_sizes
from .families.opened import opened
from .families.trial import REFUSED

CHOSEN = ("dot_general", "gather", "layout", "pad", "reduce_window", "scatter", "sort")


def open_sizes(text):
    """For each argument whether each size is open."""
    types = re.search(r"@main\((.*?)\)\s*->", text, re.DOTALL).group(1)
    return [[size == "?" for size in type_.split("x")[:-1]] for type_ in re.findall(r"tensor<([^>]*)>", types)]


# A dtype of 64 bits that a program asks of JAX beside its arguments becomes one of 32, with a warning.
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype:UserWarning")
@pytest.mark.slow(1)
@pytest.mark.parametrize("family", CHOSEN)
def test_no_size_is_inferred_that_is_another_one(family):
    @given(st.data())
    @drawn(3, 100)
    def runs(data):
        case = data.draw(FAMILIES[family]())
        assume(not case.needs_x64)
        random = np.random.default_rng(data.draw(st.integers(0, 99)))
        arguments = [
            argument.array({n: values[0] for n, values in case.sizes.items()}, random) for argument in case.arguments
        ]
        assume(all(x.dtype.itemsize < 8 for x in arguments))

        def branched(is_taken, *args):
            zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(case.function, *args))
            return jax.lax.cond(is_taken, lambda: case.function(*args), lambda: zeros)

        try:
            exported = export(jax.jit(branched), expand_linear_algebra=True)(True, *arguments)
            assume(len(exported.module_kept_var_idx) == 1 + len(arguments))
            text = opened(exported, int(random.integers(1000)))
            converted = convert_stablehlo(text)
            types = [tf.TensorSpec([None] * np.ndim(x), x.dtype) for x in (np.bool_(True), *arguments)]
            concrete = tf.function(converted, types, autograph=False).get_concrete_function()
        except (*REFUSED, GraphModeUnsupported, LapackNeeded):
            assume(False)
        _, *are_open = open_sizes(text)
        others = [
            np.zeros([size + 3 * is_open for size, is_open in zip(x.shape, dimensions, strict=True)], x.dtype)
            for x, dimensions in zip(arguments, are_open, strict=True)
        ]
        assert not list(wrong_sizes(concrete, [[np.bool_(True), *arguments], [np.bool_(False), *others]]))

    runs()
