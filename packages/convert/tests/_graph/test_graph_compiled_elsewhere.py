"""What is traced to be compiled has the values of JAX where TensorFlow computes it without compiling.

So do a session that loads a SavedModel, as TensorFlow Serving does, a frozen graph and `tf.vectorized_map`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from jaxtf.convert import convert

NUMBERS = np.float32([1, -1, 4, 2])
TINY = np.float32([1e-9, -1e-12, 3e-8, 0.5])
LARGE, SMALL = np.float32(1e30), np.float32(1e-30)
MATRICES = np.float32(np.random.default_rng(0).standard_normal((2, 2, 3, 3)))


@jax.jit
def root_of_minus(x):
    """So large that it is a function of the graph, which is put where it is called later."""
    for _ in range(12):
        x = jnp.where(x > 1e9, jnp.sin(x), x) - 0.01 * jnp.cos(x) * jnp.tanh(x)
    return -x


PROGRAMS = {
    "larger of multiples": (lambda x: jnp.maximum(jnp.sin(x), 5 * jnp.sin(x)), (NUMBERS,)),
    "larger of x and none of it": (lambda x: jnp.maximum(x * 0.0, x), (NUMBERS,)),
    "relu of a sum with NaN": (lambda x: jax.nn.relu(x[:, None] @ x[None] + x), (np.float32([np.nan, 1, -2]),)),
    "greatest of negatives": (lambda x: jnp.max(-x), (np.int32([-(2**31), 5]),)),
    "least of negatives of none": (lambda x: jnp.min(-x, initial=7), (np.int32([-(2**31), 5]),)),
    "greatest of a function of NaN": (lambda x: jnp.max(jnp.sqrt(x)), (np.float32([-1, 4]),)),
    "greatest place of a function": (lambda x: jnp.argmax(jnp.sqrt(x)), (np.float32([4, -1, 9]),)),
    "square of a difference": (lambda x: (x - 3) * (x - 3), (np.uint8([1, 5, 9]),)),
    "negative of unsigned": (lambda x: jnp.uint32(0) - x, (np.uint32([1, 5]),)),
    "terms": (lambda x: (x + 1e8) + (-1e8), (NUMBERS,)),
    "difference from a constant": (lambda x: 1e-8 - (1 - x), (np.float32([1, 0.5, 1e-9]),)),
    "terms of an argument": (lambda x, y: (x + y) + -y, (NUMBERS, np.float32([1e8] * 4))),
    "several terms": (
        lambda *terms: sum(terms[1:], terms[0]),
        tuple(np.full(9, x, np.float32) for x in (1e30, 1, -1e30, 3)),
    ),
    "factors": (lambda x: (x * LARGE) * SMALL, (np.float32([1e10, 1, 2]),)),
    "factors that are arguments": (lambda x, y, z: (x * y) * z, (np.float32([1e10, 1, 2]), LARGE, SMALL)),
    "quotients": (lambda x: ((x / 3) / 3, 1 / x, x / jnp.float32([3, 7, 9, 1])), (NUMBERS,)),
    "quotient by a root": (lambda x: x / jnp.sqrt(x * x), (np.float32([3, 7.7, 1e-3, 0.3]),)),
    "complex terms": (lambda x: x + x, (np.complex64([complex(np.inf, 1), complex(-0.0, -0.0)]),)),
    "complex power": (lambda x: x ** np.complex64(0.5), (np.complex64([1 + 2j, -3 + 0.5j]),)),
    "logarithm of a sum": (lambda x: jnp.log(1 + x), (TINY,)),
    "logarithm of a softmax": (lambda x: jnp.log(jax.nn.softmax(x)), (np.float32([0, 200]),)),
    "exponential less one": (lambda x: jnp.exp(x) - 1, (TINY,)),
    "by functions": (lambda x: jnp.maximum(root_of_minus(x), 3 * root_of_minus(x)), (NUMBERS,)),
    "exponential less one, by functions": (lambda x: jnp.exp(root_of_minus(x)) - 1, (TINY,)),
    "not less": (lambda x: ~(x < 1), (np.float32([1, np.nan, 0]),)),
    "scale before a product": (lambda x: (x * SMALL) @ (x * LARGE) + 1.0, (MATRICES * LARGE / 10,)),
    "in a loop": (lambda x: lax.fori_loop(0, 3, lambda _, y: jnp.maximum(y, 2 * y) - (jnp.exp(y) - 1), x), (TINY,)),
    "in a branch": (lambda x: lax.cond(x[0] > 0, lambda y: jnp.log(1 + y), lambda y: y, x), (TINY,)),
    "gradient": (jax.grad(lambda x: jnp.maximum(jnp.sin(x), 5 * jnp.sin(x)).sum()), (NUMBERS,)),
}


def functions_of(programs):
    """Each traced to be compiled, for its arguments, as a concrete function with its arguments."""
    found = {}
    for name, (function, arguments) in programs.items():
        converted = convert(function, native_serialization=False, with_gradient=False)
        compiled = tf.function(converted, autograph=False, jit_compile=True)
        found[name] = compiled, [tf.constant(x) for x in arguments]
    return found


def by_session(functions, folder):
    module, signatures = tf.Module(), {}
    for i, (compiled, arguments) in enumerate(functions.values()):

        def named(*given, compiled=compiled):
            return {f"y{j}": result for j, result in enumerate(tf.nest.flatten(compiled(*given)))}

        specifications = [tf.TensorSpec(x.shape, x.dtype, f"x{j}") for j, x in enumerate(arguments)]
        signatures[f"f{i}"] = tf.function(named, autograph=False).get_concrete_function(*specifications)
    module.held = [compiled for compiled, _ in functions.values()]
    tf.saved_model.save(module, str(folder), signatures=signatures)
    results = {}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(folder)).signature_def
        for i, (name, (_, arguments)) in enumerate(functions.items()):
            definition = loaded[f"f{i}"]
            fed = {definition.inputs[f"x{j}"].name: x.numpy() for j, x in enumerate(arguments)}
            fetched = [definition.outputs[f"y{j}"].name for j in range(len(definition.outputs))]
            results[name] = session.run(fetched, fed)
    return results


def frozen(functions, _):
    results = {}
    for name, (compiled, arguments) in functions.items():
        concrete = convert_variables_to_constants_v2(compiled.get_concrete_function(*arguments))
        results[name] = concrete(*arguments)
    return results


def vectorized(functions, _):
    results = {}
    for name, (compiled, arguments) in functions.items():
        twice = [tf.stack([x, x]) for x in arguments]
        of_all = tf.vectorized_map(lambda given, compiled=compiled: compiled(*given), twice)
        results[name] = [result[1] for result in tf.nest.flatten(of_all)]
    return results


def is_near(results, expected):
    pairs = zip(results, expected, strict=True)
    return all(
        np.allclose(x, y, rtol=1e-5, atol=0, equal_nan=True) for x, y in (map(np.asarray, pair) for pair in pairs)
    )


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    "way", [frozen, *(pytest.param(way, marks=pytest.mark.slow) for way in (by_session, vectorized))]
)
def test_what_is_traced_to_be_compiled_is_right_where_grappler_sees_it(way, tmp_path):
    functions = functions_of(PROGRAMS)
    results, wrong = way(functions, tmp_path), {}
    for name, (function, arguments) in PROGRAMS.items():
        with jax.disable_jit():  # each operation by itself: XLA has an order of its own
            expected = jax.tree.leaves(function(*map(jnp.asarray, arguments)))
        compiled, given = functions[name]
        # A session compiles what Grappler has rewritten, and XLA loses some NaN (TensorFlow 2.21).
        by_xla = tf.nest.flatten(compiled(*given)) if way is by_session else expected
        if not is_near(results[name], expected) and not is_near(results[name], by_xla):
            wrong[name] = results[name], expected
    assert not wrong
