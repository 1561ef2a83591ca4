"""Graph mode gives JAX's values and dtypes whatever TensorFlow's NumPy behavior makes of Python numbers.

The behavior is a setting of the process, which is not undone: each case is a process of its own.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import jaxtf.convert

PROGRAM = """
import sys
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax
from jaxtf.convert import convert

enable = tf.experimental.numpy.experimental_enable_numpy_behavior
enable(prefer_float32=sys.argv[2] == "1", dtype_conversion_mode=sys.argv[1])
many = np.array([[7, 4294967295], [0, 3], [5, 1]], np.uint32)
few = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
in_order = lambda x: lax.reduce(x, x.dtype.type(1), lambda a, b: a * b + b, (1,))
windows = lambda x: lax.reduce_window(x, x.dtype.type(1), lambda a, b: a * b + a, (2, 1), (1, 1), "VALID")
narrow = lambda x: ((x * 5).astype(jnp.uint8), x.astype(jnp.bfloat16), (x * 9e9).astype(jnp.int32))
PROGRAMS = {
    "cumulative sum": (lambda x: jnp.cumsum(x, 0), few, True),
    "cumulative minimum": (lambda x: lax.cummin(x, 0), many, False),
    "windows": (windows, few, False),
    "a region, combined in a loop": (in_order, few, False),
    "a sort of unsigned integers": (lambda x: (jnp.sort(x, 0), -jnp.sort(-x, 0)), many, True),
    "places of a sort": (lambda x: jnp.argsort(x, 0), many, True),
    "the greatest": (lambda x: lax.top_k(x, 1), few, True),
    "quotients by 0": (lambda x: (lax.div(x, x[::-1] * 0), lax.rem(x, x[::-1])), many, True),
    "bits": (lambda x: (x << 1, x >> 31, ~x, lax.population_count(x), lax.clz(x)), many, True),
    "powers": (lambda x: (x ** 3, jnp.cbrt(few), jnp.power(few, 2.0)), many, True),
    "conversions": (narrow, few, True),
    "random numbers": (lambda x: x + jax.random.uniform(jax.random.key(0), x.shape), few, True),
    "sizes": (lambda x: (x * x.shape[0], jnp.arange(2 * x.shape[0] + 1), jnp.sum(x) / x.shape[0]), few, True),
    "loops": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(2)), few, True),
    "householder": (lambda x: lax.linalg.householder_product(x, jnp.ones(2) / 8), few, False),
}
for name, (function, x, is_symbolic) in PROGRAMS.items():
    expected = jax.tree.leaves(jax.jit(function)(x))
    shapes = {"polymorphic_shapes": ["(b, _)"]} if is_symbolic else {}
    converted = convert(function, native_serialization=False, **shapes)
    spec = tf.TensorSpec([None if is_symbolic else len(x), 2], x.dtype)
    results = jax.tree.leaves(tf.function(converted, input_signature=[spec], autograph=False)(tf.constant(x)))
    for result, one in zip(results, expected, strict=True):
        assert result.dtype.as_numpy_dtype == one.dtype, (name, result.dtype, one.dtype)
        assert isinstance(result, tf.Tensor), (name, type(result))
        values = [np.asarray(value).astype(np.float64) for value in (result, one)]
        np.testing.assert_allclose(*values, rtol=1e-6, err_msg=name)
print("right")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "prefers_float32"), [("legacy", "0"), ("safe", "0"), ("all", "1")])
def test_values_and_dtypes_are_those_of_jax(mode, prefers_float32):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM, mode, prefers_float32]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.stdout.endswith("right\n"), done.stderr


SOURCES = sorted((Path(jaxtf.convert.__file__).parent / "_graph").rglob("*.py"))


def untyped(source):
    """The calls of `tf.constant` in a text whose argument is not an array by its looks."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    for call in calls:
        is_number = isinstance(call.args[0], ast.Constant | ast.List | ast.BinOp) if call.args else False
        if ast.unparse(call.func) == "tf.constant" and (is_number or len(call.args) + len(call.keywords) > 1):
            yield ast.unparse(call)


def test_graph_mode_makes_no_tensor_of_a_python_number_but_by_typed():
    found = {f"{path.name}: {call}" for path in SOURCES for call in untyped(path.read_text())}
    assert found == {
        "function.py: tf.constant(self._platform(), tf.int32)"
    }  # an index of platforms, not of the program


def test_the_search_finds_what_it_looks_for():
    assert list(untyped("tf.constant(1); tf.constant(n - 1); tf.constant(n, tf.int32); tf.constant(array)")) == [
        "tf.constant(1)",
        "tf.constant(n - 1)",
        "tf.constant(n, tf.int32)",
    ]
