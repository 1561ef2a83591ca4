"""Reverse-mode derivatives: TensorFlow's, for the arguments and results that have any."""

import contextlib
import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax._src.config import config_states
from jax.extend.core import Primitive

from jaxtf.calltf import ResultError, _jax, call_tf
from jaxtf.calltf._configuration import _configuration
from jaxtf.calltf._primitive import call_tf_evaluated_p, call_tf_linear_p

STAGES = pytest.mark.parametrize("stage", [lambda f: f, jax.jit], ids=["eager", "jit"])


def function_tf(x):
    return tf.sin(x) * x


def function_jax(x):
    return jnp.sin(x) * x


def compositions(f):
    return {
        "grad": jax.grad(lambda x: f(x).sum()),
        "grad of jit": jax.grad(lambda x: jax.jit(f)(x).sum()),
        "grad of scan": jax.grad(lambda x: lax.scan(lambda c, _: (f(c), c), x, None, length=3)[0].sum()),
        "grad of cond": jax.grad(lambda x: lax.cond(x[0] > 0, f, lambda x: x, x).sum()),
        "grad of checkpoint": jax.grad(lambda x: jax.checkpoint(lambda x: jnp.cos(f(x)))(x).sum()),
        "grad of map": jax.grad(lambda x: lax.map(f, x).sum()),
        "grad of grad": jax.grad(lambda x: jax.grad(lambda x: f(x).sum())(x).sum()),
        "third": jax.grad(lambda x: jax.grad(lambda x: jax.grad(lambda x: f(x).sum())(x).sum())(x).sum()),
        "vjp": lambda x: jax.vjp(f, x)[1](jnp.array([1.0, 2.0, 3.0]))[0],
        "grad through jnp": jax.grad(lambda x: jnp.tanh(f(jnp.exp(x))).sum()),
    }


@STAGES
@pytest.mark.parametrize("name", compositions(function_jax))
def test_derivatives_compose_with_those_of_jax(name, stage):
    x = jnp.array([0.3, -1.0, 2.0])
    found = stage(compositions(call_tf(function_tf))[name])(x)
    np.testing.assert_allclose(found, compositions(function_jax)[name](x), rtol=2e-5, atol=1e-6)


@STAGES
def test_a_pytree_has_a_pytree_of_gradients(stage):
    def loss(params, x, tanh):
        return ((tanh(x @ params["w"] + params["b"][0]) - 1) ** 2).sum()

    params = {"w": jnp.ones((3, 2)) / 5, "b": (jnp.zeros(2),)}
    x = jnp.arange(12.0).reshape(4, 3)
    call = call_tf(lambda params, x: tf.reduce_sum((tf.tanh(x @ params["w"] + params["b"][0]) - 1) ** 2))
    found = stage(jax.grad(call, argnums=(0, 1)))(params, x)
    expected = jax.grad(loss, argnums=(0, 1))(params, x, jnp.tanh)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), found, expected)


@STAGES
def test_integer_and_unused_arguments_have_the_gradients_jax_gives_them(stage):
    def function(x0, i0, x1, i1, b):
        return x0 * 2.0

    args = (jnp.ones(2), jnp.arange(3), jnp.ones(()), jnp.int32(5), jnp.array(True))
    call = call_tf(function)
    found = stage(jax.grad(lambda *args: call(*args).sum(), argnums=range(5), allow_int=True))(*args)
    expected = jax.grad(lambda *args: function(*args).sum(), argnums=range(5), allow_int=True)(*args)
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype  # float0 for integers and booleans
        assert x.shape == y.shape
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[2], expected[2])


@STAGES
def test_integer_and_differentiable_results_go_together(stage):
    call = call_tf(lambda x: (tf.argmax(x), tf.reduce_max(x), x > 0))

    def loss(x):
        index, largest, positive = call(x)
        return largest * 3 + jnp.where(positive, x, 0).sum(), index

    found, index = stage(jax.grad(loss, has_aux=True))(jnp.array([1.0, 5.0, -2.0]))
    np.testing.assert_array_equal(found, [1.0, 4.0, 0.0])
    assert index == 1


@STAGES
def test_only_the_results_in_use_are_differentiated(stage):
    @tf.custom_gradient
    def without_gradient(x):
        def gradient(_):
            raise AssertionError("nobody asked for it")

        return tf.identity(x), gradient

    call = call_tf(lambda x: (x * 5, without_gradient(x), x * x))
    assert stage(jax.grad(lambda x: call(x)[2]))(3.0) == 6.0


@STAGES
def test_custom_gradients_of_tensorflow_are_respected(stage):
    @tf.custom_gradient
    def reversed_gradient(x):
        return tf.identity(x), lambda upstream: -7.0 * upstream

    assert stage(jax.grad(call_tf(lambda x: reversed_gradient(x) * 2.0)))(3.0) == -14.0


@STAGES
def test_custom_gradients_of_jax_around_a_call_are_respected(stage):
    wrapped = jax.custom_vjp(call_tf(tf.sin))
    wrapped.defvjp(lambda x: (wrapped(x), None), lambda _, ct: (ct * 5,))
    assert stage(jax.grad(wrapped))(3.0) == 5.0
    rule = jax.custom_jvp(lambda x: x)
    rule.defjvp(lambda primals, tangents: (call_tf(tf.sin)(*primals), tangents[0] * call_tf(tf.cos)(*primals)))
    np.testing.assert_allclose(stage(jax.grad(rule))(3.0), np.cos(3.0), rtol=1e-6)


@STAGES
@pytest.mark.parametrize("loss", [lambda y: jnp.real(y).sum(), lambda y: jnp.abs(y).sum(), lambda y: jnp.imag(y).sum()])
def test_complex_gradients_are_those_of_jax(loss, stage):
    z = jnp.array([1 + 2j, 0.5 - 1j])
    call = call_tf(lambda z: tf.sin(z) * z * z)
    found = stage(jax.grad(lambda z: loss(call(z))))(z)
    expected = jax.grad(lambda z: loss(jnp.sin(z) * z * z))(z)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@STAGES
def test_a_complex_result_of_a_real_argument_has_a_real_gradient(stage):
    call = call_tf(lambda x: tf.complex(x, x * x) * (2 + 1j))
    found = stage(jax.grad(lambda x: jnp.abs(call(x))))(1.5)
    expected = jax.grad(lambda x: jnp.abs(lax.complex(x, x * x) * (2 + 1j)))(1.5)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@STAGES
def test_a_sparse_gradient_is_dense_in_jax(stage):
    call = call_tf(lambda table: tf.gather(table, [2, 0, 2]))
    found = stage(jax.grad(lambda table: call(table).sum()))(jnp.ones((4, 2)))
    np.testing.assert_array_equal(found, [[1, 1], [0, 0], [2, 2], [0, 0]])


@STAGES
def test_the_gradient_passes_results_of_64_bits_that_became_32(stage):
    call = call_tf(lambda x: tf.cast(x, tf.float64) ** 2)
    found = stage(jax.grad(call))(3.0)
    assert (found, found.dtype) == (6.0, np.float32)


@STAGES
def test_variables_in_the_function_are_constants_of_the_gradient(stage):
    variable = tf.Variable(3.0)
    with pytest.warns(UserWarning, match="does not capture") if stage is jax.jit else contextlib.nullcontext():
        assert stage(jax.grad(call_tf(lambda x: x * x * variable)))(2.0) == 12.0


def test_an_eager_gradient_is_that_of_the_path_taken():
    def function(x):
        return x * 2 if x.numpy() > 0 else x * 5

    gradient = jax.grad(call_tf(function))
    assert (gradient(1.0), gradient(-1.0)) == (2.0, 5.0)


def test_a_shape_that_depends_on_values_has_an_eager_gradient():
    call = call_tf(lambda x: tf.boolean_mask(x, x > 0) ** 2)
    np.testing.assert_array_equal(jax.grad(lambda x: call(x).sum())(jnp.array([-1.0, 2.0, 3.0])), [0.0, 4.0, 6.0])


def test_a_function_pulled_back_under_jit_was_evaluated_eagerly():
    result, pull_back = jax.vjp(call_tf(function_tf), jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(result, function_jax(jnp.array([1.0, 2.0])), rtol=1e-6)
    found = jax.jit(pull_back)(jnp.array([1.0, 3.0]))
    expected = jax.vjp(function_jax, jnp.array([1.0, 2.0]))[1](jnp.array([1.0, 3.0]))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@STAGES
def test_a_gradient_under_a_tape_of_tensorflow_is_not_disturbed(stage):
    with tf.GradientTape() as tape:
        x = tf.constant(3.0)
        tape.watch(x)
        y = x * float(stage(jax.grad(call_tf(lambda x: x * x)))(2.0))
    assert tape.gradient(y, x) == 4.0


@STAGES
def test_gradients_are_right_while_a_tensorflow_graph_is_built(stage):
    gradient = stage(jax.grad(call_tf(function_tf)))

    @tf.function(autograph=False)  # AutoGraph would translate all of JAX
    def outer():
        return tf.constant(np.asarray(gradient(2.0)))

    np.testing.assert_allclose(outer(), jax.grad(function_jax)(2.0), rtol=1e-6)


OTHER_RESULTS = {
    "another shape": (lambda x: x[1:], "result[0] was float32[3], and is float32[2] now"),
    "another dtype": (lambda x: tf.cast(x, tf.float16), "result[0] was float32[3], and is float16[3] now"),
    "no result": (lambda x: (), "result[0] was float32[3], and is missing now"),
}


@pytest.mark.parametrize("name", OTHER_RESULTS)
def test_other_results_when_it_is_called_again_are_refused(name):
    other, text = OTHER_RESULTS[name]
    calls = []

    def fickle(x):
        calls.append(x)
        return other(x) if len(calls) > 1 else tf.sin(x)

    with pytest.raises(ResultError) as refused:
        jax.jvp(call_tf(fickle), (jnp.ones(3),), (jnp.ones(3),))
    assert str(refused.value) == (
        f"call_tf: fickle returned different results when called again for its derivative: {text}\n"
        "  remedy: let the function return the same number of results, of the same shapes and dtypes, whenever it is "
        "called with arguments of the same shapes and dtypes"
    )


def test_an_eager_gradient_is_that_of_the_value_that_was_returned():
    """Random numbers are drawn once, side effects happen once, and variables are read once."""
    factor, calls = tf.Variable(2.0), []

    def function(x):
        calls.append(x.numpy())
        return x * factor * tf.random.uniform([])

    value, pull_back = jax.vjp(call_tf(function), 3.0)
    factor.assign(100.0)
    [gradient] = pull_back(jnp.float32(1))
    np.testing.assert_allclose(gradient, value / 3, rtol=1e-6)
    [again] = pull_back(jnp.float32(2))
    np.testing.assert_allclose(again, 2 * value / 3, rtol=1e-6)
    assert calls == [3.0]


def test_what_pulls_back_at_other_values_runs_the_function_there():
    """`jax.vjp` returns a pytree whose leaves are values."""
    _, pull_back = jax.vjp(call_tf(lambda x: x * x), jnp.float32(3))
    assert pull_back(jnp.float32(1)) == (6.0,)
    elsewhere = jax.tree.map(lambda leaf: leaf + 1, pull_back)
    assert elsewhere(jnp.float32(1)) == (8.0,)


DERIVATIVES = {
    "vjp": jax.vjp,
    "vjp of jit": lambda f, x: jax.vjp(jax.jit(f), x),
    "vjp of vmap": lambda f, x: jax.vjp(jax.vmap(f), x),
    "linearize": jax.linearize,
    "linearize jit": lambda f, x: jax.linearize(jax.jit(f), x),
}


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize(("inside", "outside"), [(True, False), (False, True)])
def test_a_derivative_is_taken_under_the_configuration_of_the_call(name, inside, outside):
    def in_tensorflow(x):
        return tf.cast(x, tf.float64) ** 2 * (2.0 if jax.config.jax_threefry_partitionable else 1.0)

    def in_jax(x):
        dtype = jnp.float64 if jax.config.jax_enable_x64 else jnp.float32
        return x.astype(dtype) ** 2 * (2.0 if jax.config.jax_threefry_partitionable else 1.0)

    def applied(f):
        with jax.enable_x64(inside), jax.threefry_partitionable(inside):
            y, derivative = DERIVATIVES[name](f, jnp.arange(3, dtype=jnp.float32))
            operand = y if name.startswith("vjp") else jnp.arange(3, dtype=jnp.float32)
        with jax.enable_x64(outside), jax.threefry_partitionable(outside):
            once, back = jax.vjp(derivative, operand)
            return [once, jax.jit(derivative)(operand), back(once)]

    found, expected = applied(call_tf(in_tensorflow)), applied(in_jax)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)


def other_value(setting):
    """Another value than a setting of JAX has; None if there is none to be drawn from its name and value."""
    if setting.name.startswith("jax_transfer_guard"):
        return "disallow"
    if setting.name == "jax_default_prng_impl":
        return "rbg"
    return not setting.value if isinstance(setting.value, bool) else None


def settings_of_jax():
    return {name: setting.value for name, setting in config_states.items()}


# Without those by which nothing runs, or runs otherwise than this test has it.
NOT_TRIED = ("jax_no_execution", "jax_no_tracing", "jax_disable_jit")


@pytest.mark.parametrize(
    "name", [name for name, each in config_states.items() if other_value(each) is not None and name not in NOT_TRIED]
)
def test_a_derivative_is_taken_under_the_settings_of_its_call_not_of_an_earlier_one(name):
    """A first call, with a setting that it had alone, decides nothing of a later one."""
    _configuration.cache_clear()
    setting = config_states[name]
    with setting(other_value(setting)):
        jax.make_jaxpr(call_tf(tf.sin))(np.ones(3, np.float32))
    expected, found = settings_of_jax(), []

    def function(x):
        found.append(settings_of_jax())
        return x**2

    _, pull_back = jax.vjp(call_tf(function), jnp.ones(3))
    with jax.numpy_dtype_promotion("strict"):  # tracing depends on it: the settings of the call are made again
        jax.make_jaxpr(pull_back)(jnp.ones(3))
    assert found[1:]
    assert all(each == expected for each in found)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, jax.vmap])
def test_a_derivative_has_the_random_keys_of_its_call(transform):
    def function(x):
        with jax.ensure_compile_time_eval():
            return x * float(jax.random.normal(jax.random.key(0)))

    expected = {name: float(jax.random.normal(jax.random.key(0, impl=name))) for name in ("threefry2x32", "rbg")}
    _configuration.cache_clear()
    for inside, outside in (("threefry2x32", "rbg"), ("rbg", "threefry2x32")):
        with jax.default_prng_impl(inside):
            y, pull_back = jax.vjp(transform(call_tf(function)), jnp.ones(3))
        with jax.default_prng_impl(outside):
            np.testing.assert_allclose(y, np.full(3, expected[inside]), rtol=1e-6)
            np.testing.assert_allclose(jax.jit(pull_back)(jnp.ones(3))[0], np.full(3, expected[inside]), rtol=1e-6)


def test_a_derivative_is_guarded_where_it_runs():
    """What guards transfers and looks for NaN is of the program that runs, not of the call that it belongs to."""
    _configuration.cache_clear()
    for guarded in (jax.transfer_guard("disallow"), jax.debug_nans(True), jax.debug_infs(True)):
        with guarded:
            jax.make_jaxpr(call_tf(tf.sin))(np.ones(3, np.float32))
    np.testing.assert_array_equal(jax.grad(lambda x: call_tf(tf.math.square)(x).sum())(jnp.ones(3)), [2, 2, 2])
    _, push_forward = jax.linearize(call_tf(tf.math.sqrt), -jnp.ones(3))
    with jax.enable_x64(True):
        assert np.isnan(jax.vmap(push_forward)(jnp.eye(3, dtype=jnp.float32))).any()


def test_a_program_is_evaluated_under_the_configuration_of_its_calls():
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(call_tf(lambda x: tf.cast(x, tf.float64) / 3))(np.ones(3, np.float32))
    run = jax.extend.core.jaxpr_as_fun(jaxpr)
    for rows in (0, 2):
        x = np.ones((rows, 3), np.float32)
        for found in (jax.vmap(run)(x), jax.jit(jax.vmap(run))(x), jax.vmap(lambda x: jax.jvp(run, (x,), (x,))[1])(x)):
            assert found[0].dtype == np.float64
            np.testing.assert_array_equal(found[0], x.astype(np.float64) / 3)


def test_what_pulls_back_can_be_staged_batched_and_differentiated():
    _, pull_back = jax.vjp(call_tf(lambda x: x**3), 3.0)
    assert jax.jit(lambda pull_back, c: pull_back(c))(pull_back, jnp.float32(1)) == (27.0,)
    np.testing.assert_allclose(jax.vmap(pull_back)(jnp.array([1.0, 2.0]))[0], [27.0, 54.0])
    assert jax.grad(lambda c: pull_back(c)[0])(1.0) == 27.0
    assert jax.grad(jax.grad(call_tf(lambda x: x**3)))(3.0) == 18.0


RULES = {
    call_tf_evaluated_p: _jax._ad.primitive_linearizations,
    call_tf_linear_p: _jax._partial_eval.custom_staging_rules,
}


@pytest.fixture(params=["with rules of ours", "without"])
def rules(request, monkeypatch):
    """JAX has rules for our primitives that it can do without."""
    for primitive, table in RULES.items():
        assert primitive in table, "this JAX has another form of them: gradients are right, and slow"
        if request.param == "without":
            monkeypatch.delitem(table, primitive)


@pytest.mark.parametrize("name", compositions(function_jax))
def test_eager_derivatives_are_the_same_without_rules_of_linearization(name, rules):
    x = jnp.array([0.3, -1.0, 2.0])
    found = compositions(call_tf(function_tf))[name](x)
    np.testing.assert_allclose(found, compositions(function_jax)[name](x), rtol=2e-5, atol=1e-6)


def test_a_derivative_for_some_arguments_and_results_is_the_same_without_rules_of_linearization(rules):
    call = call_tf(lambda x, i, y: (tf.cast(x, tf.int32), x * y, i, y * 2))
    args = (jnp.array([1.5, 2.5]), jnp.array([1, 2]), jnp.array([3.0, 4.0]))
    results, push_forward = jax.linearize(lambda y: call(*args[:2], y), args[2])
    pushed = push_forward(jnp.array([1.0, 10.0]))
    np.testing.assert_array_equal(results[1], [4.5, 10.0])
    assert [tangent.dtype for tangent in pushed] == [jax.dtypes.float0, np.float32, jax.dtypes.float0, np.float32]
    np.testing.assert_array_equal(pushed[1], [1.5, 25.0])
    np.testing.assert_array_equal(pushed[3], [2.0, 20.0])
    _, pull_back = jax.vjp(lambda i: call(args[0], i, args[2]), args[1])
    cotangents = [np.zeros(2, jax.dtypes.float0), jnp.ones(2), np.zeros(2, jax.dtypes.float0), jnp.ones(2)]
    assert pull_back(tuple(cotangents))[0].dtype == jax.dtypes.float0


def test_a_gradient_keeps_nothing_of_the_call_alive(rules):
    """The tape holds all intermediate results: JAX's caches must not hold the tape."""
    seen = []

    def function(x):
        y = tf.sin(x)
        seen.append(weakref.ref(y))
        return tf.reduce_sum(y * y)

    call = call_tf(function)
    _, pull_back = jax.vjp(call, jnp.ones(3))
    assert seen[0]() is not None  # y, for the gradient of y * y
    pull_back(jnp.float32(1))
    del pull_back
    jax.grad(call)(jnp.ones(3))
    gc.collect()
    assert [y() for y in seen] == [None, None]


@pytest.mark.parametrize(
    "answer",
    [
        lambda *_: ([0.0], [True], (), None, None, lambda residuals, *tangents: tangents),
        lambda *_: ([0.0], [True], (), lambda tangents, residuals: tangents),
        lambda *_: (0.0, (), lambda residuals, *tangents: tangents),
    ],
)
def test_a_rule_is_not_given_to_a_jax_that_wants_another_form(answer, monkeypatch):
    monkeypatch.setattr(_jax._ad, "fallback_linearize_rule", answer)
    primitive = Primitive("with_no_rule")
    _jax.register_linearization(primitive, lambda *_, **__: ([], [], lambda tangents: []))
    assert primitive not in _jax._ad.primitive_linearizations


def test_a_primitive_is_not_staged_by_ours_where_jax_stages_in_another_way(monkeypatch):
    monkeypatch.setattr(_jax._StagingTrace, "emit_eqn", lambda self, equation: equation)
    primitive = Primitive("with_no_rule")
    _jax.register_staging_without_cache(primitive)
    assert primitive not in _jax._partial_eval.custom_staging_rules


OTHER_GRADIENTS = {
    "float64[3]": lambda upstream: tf.cast(upstream, tf.float64),
    "bfloat16[3]": lambda upstream: tf.cast(upstream, tf.bfloat16),
    "int32[3]": lambda upstream: tf.cast(upstream, tf.int32),
    "complex64[3]": lambda upstream: tf.cast(upstream, tf.complex64),
    "float32[]": lambda upstream: upstream[0],
    "float32[2]": lambda upstream: upstream[:2],
}


@pytest.mark.parametrize("found", OTHER_GRADIENTS)
@pytest.mark.parametrize("kind", ["grad", "jit of grad", "vmap of grad", "jvp", "jit of jvp"])
def test_a_custom_gradient_that_is_not_like_its_argument_is_refused(found, kind):
    @tf.custom_gradient
    def halved(x):
        return x * 0.5, OTHER_GRADIENTS[found]

    call = call_tf(lambda i, x: halved(x))
    x = np.float32([0.5, 1, -1])
    gradient = jax.grad(lambda x: call(1, x).sum())
    forward = lambda x: jax.jvp(lambda x: call(1, x), (x,), (x,))  # noqa: E731
    derivative = {
        "grad": gradient,
        "jit of grad": jax.jit(gradient),
        "vmap of grad": lambda x: jax.vmap(gradient)(x[None]),
        "jvp": forward,
        "jit of jvp": jax.jit(forward),
    }[kind]
    with pytest.raises(ResultError) as refused:
        derivative(x)
    assert str(refused.value) == (
        f"call_tf: the gradient of <lambda> with respect to its argument 1, which is float32[3], is {found}\n"
        "  remedy: let the tf.custom_gradient in it return gradients of the shapes and dtypes of its arguments"
    )
