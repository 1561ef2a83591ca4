"""A composite of the user is its decomposition, whatever its name; one that StableHLO wrote for CHLO is not."""

import jax
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import convert
from jaxtf.serialization import export

X = np.linspace(0.25, 0.75, 5, dtype=np.float32)
NAMES = [
    *("stablehlo.tanh", "stablehlo.add", "func.call", "jaxtf.softmax", "jaxtf.eigh", "chlo.erf", "chlo.tan"),
    *("chlo.square", "chlo.lgamma", "chlo.asin", "chlo.acosh", "chlo.sinh", "chlo.digamma", "chlo.top_k"),
]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_a_composite_with_the_name_of_an_operation_is_its_decomposition(name, version):
    def program(x):
        return jax.lax.composite(lambda x: x * 2 + 1, name=name, version=version)(x)

    np.testing.assert_allclose(convert(program, native_serialization=False)(X), X * 2 + 1)
    np.testing.assert_allclose(export(program)(X).lift()(X), X * 2 + 1)


def test_the_composites_of_stablehlo_are_operations():
    converted = tf.function(convert(jax.lax.erf, native_serialization=False), autograph=False)
    graph = converted.get_concrete_function(tf.TensorSpec([5])).graph.as_graph_def()
    inner = [node.op for function in graph.library.function for node in function.node_def]
    assert "Erf" in {node.op for node in graph.node} | set(inner)
    values, indices = convert(lambda x: jax.lax.top_k(x, 2), native_serialization=False)(X)
    np.testing.assert_array_equal(values, X[:-3:-1])
    np.testing.assert_array_equal(indices, [4, 3])
