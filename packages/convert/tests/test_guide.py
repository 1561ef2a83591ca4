"""The examples of the jax2tf guide (2025) that apply to native mode, by section, with their values.

| section of the guide | tests here | elsewhere |
| --- | --- | --- |
| Usage: basic functions | `test_basic_functions` | `test_convert.py` |
| Usage: saved model | `test_saved_model...` | `test_save_model.py` |
| Saved model with parameters | `test_parameters_...` | `test_save_model.py` |
| Saved model and differentiation | `test_a_saved_model_is_differentiated...` | `test_save_model.py` |
| Saved model for non-differentiable functions | | `test_save_model.py` |
| Shape-polymorphic conversion, Computing with dimension variables | `test_polymorphic_...` | `test_convert.py` |
| Errors in presence of shape polymorphism | `test_incompatible_...` | `test_convert.py` |
| Different 64-bit precision | `test_64_bit...` | `test_convert.py` |
| Nested Python data structures | `test_custom_pytrees...` | `test_save_model.py` |
| Integer or unused arguments | `test_float0...`, `test_unused...` | `test_gradient.py` |
| tf.Module magic conversion | `test_module_...` | `test_convert.py` |
| Only first-order gradients | lifted by `save_model` | `test_save_model.py` |
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import convert

WITH_GRADIENTS = tf.saved_model.SaveOptions(experimental_custom_gradients=True)


def f_jax(x):
    return jnp.sin(jnp.cos(x))


def saved_and_loaded(module, folder, options=WITH_GRADIENTS):
    tf.saved_model.save(module, str(folder), options=options)
    return tf.saved_model.load(str(folder))


def test_basic_functions_run_eagerly_and_in_graphs():
    x = np.random.default_rng(0).random((2, 3))
    f_tf = convert(f_jax)
    for function in (f_tf, tf.function(f_tf, autograph=False)):
        np.testing.assert_allclose(function(x), f_jax(x), rtol=1e-6)


def test_saved_model_of_a_function_of_scalars(tmp_path):
    my_model = tf.Module()
    my_model.f = tf.function(convert(f_jax), autograph=False, input_signature=[tf.TensorSpec([], tf.float32)])
    restored = saved_and_loaded(my_model, tmp_path)
    np.testing.assert_allclose(restored.f(0.5), f_jax(0.5), rtol=1e-6)


def test_saved_model_of_several_signatures_by_warming_up(tmp_path):
    my_model = tf.Module()
    my_model.f = tf.function(convert(f_jax), autograph=False)
    my_model.f(tf.ones([1, 28, 28]))
    my_model.f(tf.ones([16, 28, 28]))
    restored = saved_and_loaded(my_model, tmp_path)
    for size in (1, 16):
        np.testing.assert_allclose(restored.f(tf.ones([size, 28, 28])), f_jax(np.ones([size, 28, 28])), rtol=1e-6)
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        restored.f(tf.ones([2, 28, 28]))


def test_parameters_are_saved_as_variables_and_trained_further(tmp_path):
    def model_jax(params, inputs):
        return params[0] + params[1] * inputs

    params_vars = tf.nest.map_structure(tf.Variable, (np.float32(1), np.float32(2)))
    my_model = tf.Module()
    my_model._variables = tf.nest.flatten(params_vars)
    my_model.f = tf.function(lambda inputs: convert(model_jax)(params_vars, inputs), jit_compile=True, autograph=False)
    assert float(my_model.f(tf.constant(3.0))) == 7
    restored = saved_and_loaded(my_model, tmp_path)
    with tf.GradientTape() as tape:
        y = restored.f(tf.constant(3.0))
    assert [float(g) for g in tape.gradient(y, restored._variables)] == [1, 3]
    restored._variables[1].assign(5.0)
    assert float(restored.f(tf.constant(3.0))) == 16


def test_a_saved_model_is_differentiated_as_jax_does(tmp_path):
    @jax.custom_jvp
    def f(x):
        return x * x

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 100))
    my_model = tf.Module()
    my_model.f = tf.function(convert(f), autograph=False, input_signature=[tf.TensorSpec([], tf.float32)])
    restored = saved_and_loaded(my_model, tmp_path)
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = restored.f(x)
    assert (float(y), float(tape.gradient(y, x))) == (9, 100)


def test_polymorphic_graphs_serve_any_batch_size():
    f_tf = tf.function(convert(f_jax, polymorphic_shapes=["(b, 28, 28)"]), autograph=False)
    concrete = f_tf.get_concrete_function(tf.TensorSpec([None, 28, 28], tf.float32))
    for size in (1, 7):
        x = np.full((size, 28, 28), 0.5, np.float32)
        np.testing.assert_allclose(concrete(tf.constant(x)), f_jax(x), rtol=1e-6)


def test_polymorphic_square_images_are_required_to_be_square():
    f_tf = tf.function(convert(f_jax, polymorphic_shapes=["(b, d, d)"]), autograph=False)
    concrete = f_tf.get_concrete_function(tf.TensorSpec([None, None, None], tf.float32))
    assert concrete(tf.ones((2, 3, 3))).shape == (2, 3, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Found inconsistency"):
        concrete(tf.ones((2, 3, 4)))


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x: jnp.reshape(x, (x.shape[0] * x.shape[1],)), ["(b, 4)"]),
        (lambda x: jnp.sum(x, axis=0) / x.shape[0], ["(v, _)"]),
        (
            lambda x: (x + x.shape[0] + jnp.sin(x.shape[0]), 5.0 + x.shape[0], x.shape[0] - np.ones((5,), np.int32)),
            ["b, _"],
        ),
        (lambda x: jnp.array(x.shape), ["(a, b)"]),
    ],
    ids=["reshape", "average", "arithmetic", "explicit"],
)
def test_polymorphic_sizes_enter_computations(function, shapes):
    x = np.ones((3, 4), np.float32)
    found = convert(function, polymorphic_shapes=shapes)(x)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, jax.tree.map(np.asarray, function(x)))


def test_incompatible_polymorphic_shapes_are_refused_although_the_arguments_fit():
    four_ones = np.ones((4,))
    with pytest.raises(TypeError, match=r"add got incompatible shapes for broadcasting: \(v,\), \(4,\)"):
        convert(lambda x, y: x + y, polymorphic_shapes=["(v,)", "(4,)"])(four_ones, four_ones)


@pytest.mark.parametrize("x64", [False, True])
def test_64_bit_values_are_computed_as_jax_does(x64):
    with jax.enable_x64(x64):
        wide = tf.float64 if x64 else tf.float32
        assert convert(jnp.sin)(3.14).dtype == wide
        assert convert(jnp.sin)(np.float64(3.14)).dtype == wide
        graph = tf.function(convert(jnp.sin), autograph=False)
        assert graph(tf.Variable(3.14, dtype=tf.float64)).dtype == wide
        assert tf.function(convert(jnp.sin), autograph=False)(tf.Variable(3.14)).dtype == tf.float32


class CustomPair:
    def __init__(self, a, b):
        self.a = a
        self.b = b


jax.tree_util.register_pytree_node(
    CustomPair, lambda pair: ((pair.a, pair.b), None), lambda _, leaves: CustomPair(*leaves)
)


def of_pair(pair):
    return 2.0 * pair.a + 3.0 * pair.b


def test_custom_pytrees_are_arguments_in_eager_mode_and_graphs():
    f_tf = convert(of_pair)
    pair = CustomPair(4.0, 5.0)
    assert float(f_tf(pair)) == 23
    assert float(tf.function(f_tf, autograph=False, jit_compile=True)(pair)) == 23


def test_custom_pytrees_are_saved_and_differentiated_behind_a_wrapper(tmp_path):
    f_tf = convert(of_pair)

    def f_tf_wrapped(a, b):
        return f_tf(CustomPair(a, b))

    my_model = tf.Module()
    my_model.f = tf.function(f_tf_wrapped, autograph=False, input_signature=[tf.TensorSpec([], tf.float32)] * 2)
    restored = saved_and_loaded(my_model, tmp_path)
    assert float(restored.f(4.0, 5.0)) == 23
    for function in (f_tf_wrapped, restored.f):
        xs = [tf.Variable(4.0), tf.Variable(5.0)]
        with tf.GradientTape() as tape:
            result = function(*xs)
        assert [float(g) for g in tape.gradient(result, xs)] == [2, 3]


def test_float0_results_are_zeros():
    found = convert(jax.grad(lambda x: x * 2.0, allow_int=True))(np.int16(2))
    assert found.shape == ()
    assert not found.numpy()


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: tf.function(f, autograph=False)], ids=["eager", "graph"])
def test_unused_and_integer_arguments_have_the_gradients_that_the_guide_says(wrap):
    def fn(x0, x1, x2, x3):
        return x0 * 0.0 + x2 * 2.0

    xs = [tf.Variable(x) for x in [10.0, 11.0, 12.0, 13]]
    with tf.GradientTape(persistent=True) as tape:
        native, result = fn(*xs), wrap(convert(fn, with_gradient=True))(*xs)
    zero = tf.UnconnectedGradients.ZERO

    def values(gradients):
        return [None if g is None else float(g) for g in gradients]

    assert values(tape.gradient(native, xs)) == [0, None, 2, None]
    assert values(tape.gradient(native, xs, unconnected_gradients=zero)) == [0, 0, 2, 0]
    assert values(tape.gradient(result, xs)) == [0, 0, 2, None]
    assert values(tape.gradient(result, xs, unconnected_gradients=zero)) == [0, 0, 2, 0]


def test_module_attributes_are_arguments_without_the_workaround():
    data = {"a": [np.float32(1), (np.float32(2), np.float32(3))]}
    module = tf.Module()
    module.input_data = data

    def total(data):
        return data["a"][0] + data["a"][1][0] * data["a"][1][1]

    assert float(convert(total)(module.input_data)) == 7
    flat, tree = jax.tree_util.tree_flatten({"a": [np.float32(1), (np.float32(2), np.float32(3))]})
    module.flattened = {"flat": flat, "tree_def": tree}
    restored = jax.tree_util.tree_unflatten(module.flattened["tree_def"], module.flattened["flat"])
    assert float(convert(total)(restored)) == 7
