"""Staged calls: everywhere JAX stages, traced once per signature, with an effect only if there is one."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from jaxtf.calltf import call_tf


def counted(function):
    """The function, and the list of the signatures it was traced or called with."""
    calls = []

    def wrapper(*args):
        calls.append([(arg.shape, arg.dtype.name) for arg in args])
        return function(*args)

    return wrapper, calls


def step(x):
    return tf.sin(x) + x


def step_jax(x):
    return jnp.sin(x) + x


def in_scan(f, x):
    return lax.scan(lambda c, a: (f(c) + a, c), x, jnp.ones((4, *x.shape)))


def in_while(f, x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1])), (0, x))[1]


def in_fori(f, x):
    return lax.fori_loop(0, 3, lambda _, c: f(c), x)


def in_cond(f, x):
    return lax.cond(x[0] > 0, f, lambda x: -x, x)


def in_switch(f, x):
    return lax.switch(1, [lambda x: -x, f], x)


def in_map(f, x):
    return lax.map(f, x)


def in_nested_jits(f, x):
    return jax.jit(lambda x: jax.jit(f)(x) + f(x))(x)


def in_checkpoint(f, x):
    return jax.checkpoint(f)(x)


def in_custom_vjp(f, x):
    wrapped = jax.custom_vjp(f)
    wrapped.defvjp(lambda x: (f(x), x), lambda x, ct: (2 * ct,))
    return wrapped(x)


@pytest.mark.parametrize(
    "context",
    [in_scan, in_while, in_fori, in_cond, in_switch, in_map, in_nested_jits, in_checkpoint, in_custom_vjp],
)
@pytest.mark.parametrize("jit", [False, True], ids=["op by op", "jit"])
def test_a_call_gives_the_same_in_every_context(context, jit):
    x = jnp.array([0.3, -1.0, 2.0])
    call = call_tf(step)
    found = (jax.jit(lambda x: context(call, x)) if jit else lambda x: context(call, x))(x)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, context(step_jax, x))


def test_a_program_evaluated_equation_by_equation_gives_the_same():
    x = jnp.array([0.3, -1.0])
    program = jax.make_jaxpr(call_tf(step))(x)
    (found,) = jax.core.eval_jaxpr(program.jaxpr, [], x)
    np.testing.assert_allclose(found, step_jax(x), rtol=1e-6)


def test_a_function_is_traced_once_for_each_signature():
    function, calls = counted(step)
    call = call_tf(function)

    @jax.jit
    def program(x):
        return call(call(call(call(x)))) + lax.fori_loop(0, 3, lambda _, c: call(c), x)

    program(jnp.ones(3))
    jax.jit(call)(jnp.ones(3))
    assert calls == [[((3,), "float32")]]
    jax.jit(call)(jnp.ones(4))
    assert [shape for [(shape, _)] in calls] == [(3,), (4,)]


def test_a_staged_gradient_takes_two_traces():
    function, calls = counted(step)
    jax.jit(jax.value_and_grad(lambda x: call_tf(function)(x).sum()))(jnp.ones(3))
    assert len(calls) == 2


def test_an_eager_gradient_runs_the_function_once_with_values():
    function, calls = counted(lambda x: tf.constant(x.numpy()) * x)
    assert jax.grad(call_tf(function))(3.0) == 3.0
    assert len(calls) == 1


def test_threads_may_trace_the_same_function_at_once():
    call = call_tf(step)
    found = {}

    def work(size):
        found[size] = jax.jit(lambda x: call(x) + call(x[:2]).sum())(jnp.ones(size))

    threads = [threading.Thread(target=work, args=(size,)) for size in (3, 4, 5, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for size, result in found.items():
        np.testing.assert_allclose(result, step_jax(jnp.ones(size)) + step_jax(jnp.ones(2)).sum(), rtol=1e-6)
    assert len(found) == 4


@tf.function
def nested_random(x):
    return tf.cond(x > 0, lambda: tf.random.uniform([]), lambda: x)


@tf.function
def nested_pure(x):
    return tf.cond(x > 0, lambda: tf.while_loop(lambda y: y < 9, lambda y: (y * 2,), (x,))[0], lambda: x)


def asserting(x):
    tf.debugging.assert_greater(x, 0.0)
    return x


variable = tf.Variable(2.0)


@pytest.mark.parametrize(
    ("function", "effectful"),
    [
        (step, False),
        (nested_pure, False),
        (asserting, False),
        (lambda x: x * variable, False),
        (lambda x: x * tf.random.stateless_uniform([], [1, 2]), False),
        (lambda x: x * tf.random.uniform([]), True),
        (nested_random, True),
    ],
)
def test_a_call_has_an_effect_only_if_its_graph_is_stateful(function, effectful):
    assert bool(jax.make_jaxpr(call_tf(function))(1.0).effects) == effectful
    assert not jax.make_jaxpr(call_tf(function, has_side_effects=False))(1.0).effects


@pytest.mark.parametrize("has_side_effects", [False, True])
def test_an_unused_call_is_dropped_unless_it_has_an_effect(has_side_effects):
    call = call_tf(lambda x: x * tf.random.uniform([]), has_side_effects=has_side_effects)

    def program(x):
        call(x)
        call_tf(step)(x)
        return x

    text = jax.jit(program).lower(1.0).as_text()
    assert ("stablehlo.rng" in text) == has_side_effects
    assert "stablehlo.sine" not in text


@pytest.mark.parametrize("context", [in_scan, in_while, in_cond, in_checkpoint, in_custom_vjp, in_nested_jits])
def test_an_effect_may_be_in_every_context(context):
    jax.jit(lambda x: context(call_tf(lambda x: x * tf.random.uniform(x.shape)), x))(jnp.ones(3))


def test_every_run_of_a_program_draws_new_random_numbers():
    draw = jax.jit(call_tf(lambda: tf.random.uniform([4])))
    assert not np.array_equal(draw(), draw())


def test_a_staged_call_without_arguments_is_staged():
    function, calls = counted(lambda: tf.constant(1.0))
    program = jax.jit(lambda x: x + call_tf(function)())
    assert program(1.0) == 2.0
    assert "call_tf" in str(program.trace(1.0).jaxpr)
    assert calls == [[]]


def test_writing_to_a_variable_is_refused_when_staged():
    written = tf.Variable(1.0)

    def impure(x):
        written.assign(11.0)
        return x + written

    message = r"(?s)call_tf: impure modifies a tf.Variable \(by AssignVariableOp\).*return its new value as a result"
    with pytest.raises(ValueError, match=message):
        jax.jit(call_tf(impure))(2.0)
    assert written.numpy() == 1.0


def test_a_stateful_generator_is_refused_when_staged():
    generator = tf.random.Generator.from_seed(1)
    with pytest.raises(ValueError, match=r"modifies a tf.Variable \(by RngReadAndSkip\)"):
        jax.jit(call_tf(lambda: generator.normal([2])))()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[x[0] : 5],
        lambda x: tf.cond(x[0] >= 0, lambda: x, lambda: x[1:]),
        lambda x: tf.where(x > 0),
    ],
)
def test_a_dynamic_output_shape_works_eagerly_and_is_refused_when_staged(function):
    x = np.array([1, 2], dtype=np.int32)
    np.testing.assert_array_equal(call_tf(function)(x), function(tf.constant(x)))
    message = r"call_tf cannot call functions whose output has dynamic shape\. Found output shapes: \['\(None, ?1?\)'\]"
    with pytest.raises(ValueError, match=message) as raised:
        jax.jit(call_tf(function))(x)
    assert "Consider using the `output_shape_dtype` argument to call_tf" in str(raised.value)


def test_an_error_of_the_function_under_jit_says_that_it_was_traced():
    with pytest.raises(AttributeError) as raised:
        jax.jit(call_tf(lambda x: x.numpy()))(1.0)
    assert "call_tf traced <lambda> to a TensorFlow graph" in raised.value.__notes__[0]


STAGED = {
    "vmap": jax.vmap,
    "jit": jax.jit,
    "vmap of jit": lambda f: jax.vmap(jax.jit(f)),
    "forward": lambda f: jax.vmap(lambda x: jax.jvp(f, (x,), (x,))[0]),
}


@pytest.mark.parametrize("name", STAGED)
@pytest.mark.parametrize("kind", ["nan", "inf"])
def test_special_numbers_in_a_compiled_call_are_found_by_jax(name, kind):
    call = STAGED[name](call_tf(lambda x: 1 / x - 1 / x if kind == "nan" else 1 / x))
    with jax.debug_nans(True) if kind == "nan" else jax.debug_infs(True):
        np.testing.assert_array_equal(call(jnp.ones(3)), np.zeros(3) if kind == "nan" else np.ones(3))
        # Of what is jitted JAX runs the Python again to find the operation, and an eager call is not looked at.
        named = rf"\('jit', '{kind}'\)" if name == "jit" else rf"invalid value \({kind}\) encountered in call_tf of "
        with pytest.raises(FloatingPointError, match=named):
            call(jnp.zeros(3))
    assert not np.isfinite(call(jnp.zeros(3))).any()
