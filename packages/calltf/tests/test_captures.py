"""A program has one value of each variable that it captures: in its value, its derivatives and its batches."""

import gc
import re
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.calltf import CaptureWarning, UnsupportedError, call_tf
from jaxtf.calltf._captures import Captures

pytestmark = pytest.mark.filterwarnings("ignore:call_tf works best")

X = np.float32(2)


@pytest.fixture
def variable():
    return tf.Variable(3.0)


def squares(variable):
    return call_tf(lambda x: x * x * variable)


def jitted(f):
    """A program that was traced, and run, before the variable was assigned to."""
    program = jax.jit(f)
    program(X)
    return program


# From a function to how a program of it is made, and to what it then computes of its value and its derivative.
PROGRAMS = {
    "vjp of a pullback under jit": lambda f: (jax.vjp(jax.jit(f), X), lambda of: (of[0], of[1](X / X)[0])),
    "vjp of what was run": lambda f: (jax.vjp(jitted(f), X), lambda of: (of[0], of[1](X / X)[0])),
    "value and gradient of what was run": lambda f: (jitted(f), lambda of: jax.value_and_grad(of)(X)),
    "gradient of what was run": lambda f: (jitted(f), lambda of: (of(X), jax.grad(of)(X))),
    "forward mode of what was run": lambda f: (jitted(f), lambda of: jax.jvp(of, (X,), (X / X,))),
    "linearize": lambda f: (jax.linearize(jax.jit(f), X), lambda of: (of[0], of[1](X / X))),
    "linearize, transposed": lambda f: (
        jax.linearize(jax.jit(f), X),
        lambda of: (of[0], jax.linear_transpose(of[1], X)(X)[0] / X),
    ),
    "traced, then lowered": lambda f: (
        jax.jit(jax.value_and_grad(f)).trace(X),
        lambda of: of.lower().compile()(X),
    ),
    "a jaxpr": lambda f: (
        jax.make_jaxpr(jax.value_and_grad(f))(X),
        lambda of: jax.core.eval_jaxpr(of.jaxpr, of.consts, X),
    ),
    "differentiated jaxpr": lambda f: (
        jax.make_jaxpr(f)(X),
        lambda of: jax.value_and_grad(lambda x: jax.core.eval_jaxpr(of.jaxpr, of.consts, x)[0])(X),
    ),
    "checkpoint": lambda f: (jax.vjp(jax.checkpoint(f), X), lambda of: (of[0], of[1](X / X)[0])),
    "a batch": lambda f: (
        jax.vjp(jax.vmap(f), jnp.stack([X, X])),
        lambda of: (of[0][0], of[1](jnp.ones(2, np.float32))[0][0]),
    ),
    "a batch, in forward mode": lambda f: (
        jax.linearize(jax.vmap(f), jnp.stack([X, X])),
        lambda of: (of[0][0], of[1](jnp.ones(2, np.float32))[0]),
    ),
    "a batch of what was run": lambda f: (
        jitted(f),
        lambda of: tuple(column[0] for column in jax.vmap(jax.value_and_grad(of))(jnp.stack([X, X]))),
    ),
    "scan": lambda f: (
        jax.vjp(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, length=1)[0], X),
        lambda of: (of[0], of[1](X / X)[0]),
    ),
    "cond": lambda f: (
        jax.vjp(lambda x: jax.lax.cond(x > 0, f, lambda x: x, x), X),
        lambda of: (of[0], of[1](X / X)[0]),
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_value_and_derivative_have_the_same_value_of_a_variable(variable, program):
    made, evaluated = PROGRAMS[program](squares(variable))
    variable.assign(7.0)
    assert [float(x) for x in evaluated(made)] == [12.0, 12.0]


def test_second_derivatives_have_it_too(variable):
    program = jitted(squares(variable))
    variable.assign(7.0)
    assert jax.grad(jax.grad(program))(X) == 6.0
    assert jax.hessian(program)(X) == 6.0


def test_a_call_that_is_traced_later_has_the_value_of_then(variable):
    call = squares(variable)

    def program(x):
        first = call(x)
        variable.assign(7.0)
        return first, call(x)

    assert jax.jit(program)(X) == (12.0, 28.0)
    assert jax.vjp(jax.jit(call), X)[1](X / X) == (28.0,)


def test_what_updates_a_variable_in_place_leaves_it(variable):
    rows = tf.Variable([[3.0], [5.0]])
    program = jitted(call_tf(lambda x: x * x * rows[0, 0] * variable / variable))
    rows.assign_add([[1.0], [1.0]])
    rows.scatter_nd_update([[0]], [[9.0]])
    tf.keras.optimizers.SGD(0.5).apply([tf.ones_like(variable)], [variable])
    assert jax.value_and_grad(program)(X) == (12.0, 12.0)


def test_eager_calls_read_variables_whenever_they_run(variable):
    call = squares(variable)
    assert call(X) == 12.0
    variable.assign(7.0)
    assert (call(X), jax.grad(call)(X), jax.vmap(call)(X[None])) == (28.0, 28.0, 28.0)


@pytest.mark.filterwarnings("error")
def test_eager_calls_do_not_warn(variable):
    call = squares(variable)
    call(X)
    jax.vmap(jax.value_and_grad(call))(X[None])


STAGED = {
    "jit": lambda f: jax.jit(lambda x: f(x) + 0),
    "checkpoint": jax.checkpoint,
    "cond": lambda f: lambda x: jax.lax.cond(True, f, lambda x: x, x),
}


@pytest.mark.parametrize("stage", STAGED)
def test_every_program_that_is_made_warns(variable, stage):
    call = squares(variable)
    for _ in range(2):
        with pytest.warns(CaptureWarning, match="become constants of the program"):
            STAGED[stage](call)(X)


def test_a_program_is_traced_once(variable):
    traces = []
    program = jax.jit(call_tf(lambda x: traces.append(None) or x * variable))
    for _ in range(3):
        program(X)
    assert len(traces) == 1
    assert program._cache_size() == 1


def alive():
    gc.collect()
    return sum(isinstance(found, Captures) for found in gc.get_objects())


def test_values_go_with_the_program(variable):
    call = squares(variable)
    before = alive()
    program = jitted(call)
    jax.grad(program)(X)
    for _ in range(5):
        variable.assign_add(1.0)
        jax.vmap(call)(X[None])
        jax.vmap(jax.grad(call))(X[None])
        STAGED["jit"](call)(X)
    assert alive() == before + 1
    del program, call  # JAX keeps the traces of a function as long as it lives
    assert alive() == before


def test_the_function_goes_with_its_values(variable):
    call = squares(variable)
    alive = weakref.ref(call)
    jax.jit(jax.value_and_grad(call))(X)
    del call
    gc.collect()
    assert alive() is None


def test_a_tensor_of_a_graph_that_is_being_built_is_refused():
    @tf.function(autograph=False)
    def outer(t):
        return tf.convert_to_tensor(np.asarray(jax.jit(call_tf(lambda x: x * t))(X)))

    with pytest.raises(UnsupportedError) as refused:
        outer(tf.constant(3.0))
    assert str(refused.value) == (
        "call_tf: <lambda> captures tf.Tensor float32[] of a TensorFlow graph that is being built around it (of a "
        "tf.function), and a program of JAX has no values of that\n"
        "  remedy: pass it as an argument"
    )


def anew(f):
    """A program of a function that JAX has not traced before."""
    return jax.jit(lambda x: +f(x))


# From a function of a variable of open shape, to what is made while it has three elements, and what that computes once
# it has two: of a scalar, x * sum(variable), where the sum was 6 and is 30.
OPEN_PROGRAMS = {
    "jit": (lambda f: anew(f)(X), lambda f, _: anew(f)(X), 60),
    "vmap": (lambda f: jax.vmap(f)(X[None]), lambda f, _: jax.vmap(f)(X[None])[0], 60),
    "gradient": (lambda f: jax.grad(jax.jit(f))(X), lambda f, _: jax.grad(anew(f))(X), 30),
    "gradient of a batch": (
        lambda f: jax.vmap(jax.grad(f))(X[None]),
        lambda f, _: jax.vmap(jax.grad(f))(X[None])[0],
        30,
    ),
    "a jaxpr": (
        lambda f: jax.make_jaxpr(jax.value_and_grad(f))(X),
        lambda _, made: jax.core.eval_jaxpr(made.jaxpr, made.consts, X)[0],
        12,
    ),
    "traced, then lowered": (lambda f: jax.jit(f).trace(X), lambda _, made: made.lower().compile()(X), 12),
}


@pytest.mark.parametrize("name", OPEN_PROGRAMS)
def test_a_variable_of_open_shape_may_get_another_one_after_a_trace(name):
    make, evaluate, expected = OPEN_PROGRAMS[name]
    variable = tf.Variable([1.0, 2.0, 3.0], shape=tf.TensorShape([None]))
    f = call_tf(lambda x: x * tf.reduce_sum(variable))
    made = make(f)
    variable.assign([10.0, 20.0])
    np.testing.assert_array_equal(evaluate(f, made), np.float32(expected))


def test_results_have_the_shape_that_a_variable_has():
    variable = tf.Variable([1.0, 2.0, 3.0], shape=tf.TensorShape([None]))
    f = call_tf(lambda x: x * variable)
    jaxpr = jax.make_jaxpr(f)(X)
    for values in ([1.0, 2.0, 3.0], [10.0, 20.0], [1.0, 2.0, 3.0], []):
        variable.assign(values)
        np.testing.assert_array_equal(anew(f)(X), X * np.float32(values))
        np.testing.assert_array_equal(jax.vmap(f)(X[None]), [X * np.float32(values)])
        np.testing.assert_array_equal(jax.jacrev(anew(f))(X), np.float32(values))
        [earlier] = jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, X)
        np.testing.assert_array_equal(earlier, [2, 4, 6])


def test_a_derivative_that_is_traced_after_a_variable_got_another_shape_is_refused():
    variable = tf.Variable([1.0, 2.0, 3.0], shape=tf.TensorShape([None]))
    _, pull_back = jax.vjp(jax.jit(call_tf(lambda x: x * x * variable)), X)
    variable.assign([10.0, 20.0])
    with pytest.raises(UnsupportedError) as refused:
        pull_back(jnp.ones(3))
    assert str(refused.value) == (
        "call_tf: vjp_<lambda> captures tf.Variable Variable:0 float32[None], which had shape [3] when the program was "
        "traced, and had shape [2] when its derivative or batch was\n"
        "  remedy: pass the value as an argument, or trace again what is differentiated"
    )


@pytest.mark.parametrize("call", [jax.jit, jax.vmap], ids=["jit", "vmap"])
def test_what_is_captured_at_each_call_is_refused(call):
    def function(x):
        graph = tf.compat.v1.get_default_graph()
        return x * graph.capture_call_time_value(lambda: tf.constant(2.0), tf.TensorSpec([]))

    with pytest.raises(UnsupportedError, match="captures by capture_call_time_value what TensorFlow asks for at each"):
        call(call_tf(function))(jnp.ones(3))


@pytest.mark.parametrize("function", [tf.identity, tf.sign], ids=["as it is", "written again"])
def test_variables_become_constants_in_the_order_in_which_they_are_read(function):
    variables = [tf.Variable(float(place), name=f"v{place}") for place in range(20)]
    with pytest.warns(CaptureWarning) as warned:
        jax.jit(call_tf(lambda x: function(x) + sum(v * x for v in variables))).lower(1.0)
    assert re.findall(r"v(\d+):0", str(warned[0].message)) == list(map(str, range(20)))
