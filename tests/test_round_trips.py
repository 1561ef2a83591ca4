"""Programs that cross the border more than once: JAX to TensorFlow to JAX, and the other way."""

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import call_tf
from jaxtf.convert import convert
from jaxtf.serialization import export
from jaxtf.shapepoly import symbolic_shape

X = np.linspace(0.1, 1, 6, dtype=np.float32).reshape(3, 2)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: f,
        lambda f: tf.function(f, autograph=False),
        lambda f: tf.function(f, autograph=False, jit_compile=True),
    ],
    ids=["eager", "graph", "compiled"],
)
def test_a_jax_function_that_calls_tensorflow_is_converted_with_its_gradient(wrap):
    f = convert(lambda x: jnp.sin(call_tf(lambda y: tf.math.cos(y) * 2)(x)).sum())
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        y = wrap(f)(x)
    np.testing.assert_allclose(y, np.sin(np.cos(X) * 2).sum(), rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(y, x), np.cos(np.cos(X) * 2) * -2 * np.sin(X), rtol=1e-5)


def test_a_stateless_tensorflow_function_leaves_no_effect_in_an_export():
    exported = export(call_tf(lambda x: tf.linalg.matmul(x, x, transpose_b=True)))(X)
    assert exported.ordered_effects == exported.unordered_effects == ()
    assert "custom_call" not in exported.mlir_module()
    np.testing.assert_allclose(exported.call(X), X @ X.T, rtol=1e-6)


@pytest.mark.parametrize("shapes", [None, ["(b, _)"]], ids=["static", "polymorphic"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_converted_function_is_called_from_jax_with_its_gradient(shapes, wrap):
    f = call_tf(convert(lambda x: jnp.sin(x) * x.shape[0], polymorphic_shapes=shapes))
    np.testing.assert_allclose(wrap(f)(X), np.sin(X) * 3, rtol=1e-6)
    found = wrap(jax.grad(lambda x: f(x).sum()))(X)
    np.testing.assert_allclose(found, np.cos(X) * 3, rtol=1e-6)


def test_a_saved_model_goes_back_to_jax_with_its_custom_gradient(tmp_path):
    @jax.custom_vjp
    def f(x):
        return x * x

    f.defvjp(lambda x: (f(x), x), lambda x, cotangent: (cotangent * x * 3.0,))
    module = tf.Module()
    module.f = tf.function(
        convert(f, polymorphic_shapes=["(b, _)"]),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 2], tf.float32)],
    )
    tf.saved_model.save(module, str(tmp_path), options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))
    # The graph is for any batch size: what it returns for this one must be declared.
    result = jax.ShapeDtypeStruct(X.shape, X.dtype)
    restored = call_tf(tf.saved_model.load(str(tmp_path)).f, output_shape_dtype=result)
    np.testing.assert_allclose(jax.jit(restored)(X), X * X, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: restored(x).sum())(X), 3 * X, rtol=1e-6)


def test_jax_reads_the_module_that_tensorflow_runs():
    """The portable artifact of an export, run by jax.export's own reader of modules."""
    spec = jax.ShapeDtypeStruct(symbolic_shape("b, 2"), jnp.float32)
    ours = export(lambda x: jnp.cumsum(x, axis=0))(spec)
    theirs = jax.export.export(jax.jit(lambda x: jnp.cumsum(x, axis=0)))(
        jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, 2"), jnp.float32)
    )
    fields = {name: getattr(theirs, name) for name in theirs.__dataclass_fields__}
    adopted = type(theirs)(**fields | {"mlir_module_serialized": ours.mlir_module_serialized, "_get_vjp": None})
    np.testing.assert_allclose(adopted.call(X), np.cumsum(X, axis=0), rtol=1e-6)
