"""A NumPy array is what it was when the call was made: in derivatives and programs too, whatever its owner writes."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jaxtf.calltf import call_tf
from jaxtf.calltf._transfer import is_same, lasting

ONES = jnp.ones(3)
square = call_tf(lambda t: t * t)
product = call_tf(lambda t, u: t * t * u)

# From an array of fives, to what is evaluated once the array has other elements, and what that then is.
KEPT = {
    "linearize": (lambda a: jax.linearize(square, a)[1], lambda f: f(ONES), 10),
    "vjp": (lambda a: jax.vjp(square, a)[1], lambda f: f(ONES)[0], 10),
    "vjp, staged": (lambda a: jax.jit(jax.vjp(square, a)[1]), lambda f: f(ONES)[0], 10),
    "vjp, of a batch": (lambda a: jax.vmap(jax.vjp(square, a)[1]), lambda f: f(ONES[None])[0][0], 10),
    "vjp of a gradient": (
        lambda a: jax.vjp(jax.grad(lambda t: (square(t) * t).sum()), a)[1],
        lambda f: f(ONES)[0],
        30,
    ),
    "vjp of a batch": (lambda a: jax.vjp(jax.vmap(square), a)[1], lambda f: f(ONES)[0], 10),
    "linearize a batch": (lambda a: jax.linearize(jax.vmap(square), a)[1], lambda f: f(ONES), 10),
    "vjp, another argument": (lambda a: jax.vjp(lambda x: product(x, a), ONES)[1], lambda f: f(ONES)[0], 10),
    "linearize a tangent": (
        lambda a: jax.linearize(lambda x: jax.jvp(product, (x, a), (ONES, ONES))[1], ONES)[1],
        lambda f: f(ONES),
        12,
    ),
    "transpose": (lambda a: jax.linear_transpose(lambda x: product(a, x), ONES), lambda f: f(ONES)[0], 25),
    "a jaxpr": (
        lambda a: jax.make_jaxpr(lambda x: product(x, a))(ONES),
        lambda j: jax.core.eval_jaxpr(j.jaxpr, j.consts, ONES)[0],
        5,
    ),
    "a program": (lambda a: jax.jit(lambda x: product(x, a)).trace(ONES), lambda t: t.lower().compile()(ONES), 5),
    "linearize a program": (
        lambda a: jax.linearize(jax.jit(lambda x: product(x, a)), ONES)[1],
        lambda f: f(ONES),
        10,
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_has_the_elements_of_when_it_was_made(name):
    make, evaluate, expected = KEPT[name]
    array = np.full(3, 5, np.float32)
    made = make(array)
    array[:] = 1
    np.testing.assert_array_equal(evaluate(made), np.full(3, expected, np.float32))


def test_a_gradient_with_respect_to_a_numpy_array_runs_the_function_once():
    calls = []
    call = call_tf(lambda t, u: (calls.append(1), t * u)[1])
    other = np.full(3, 2, np.float32)
    _, pull_back = jax.vjp(lambda t: call(t, other), np.full(3, 5, np.float32))
    np.testing.assert_array_equal(pull_back(ONES)[0], other)
    assert calls == [1]


def test_a_function_that_writes_to_its_argument_is_differentiated_where_it_was_called():
    array = np.full(3, 5, np.float32)

    def function(t):
        array[:] = 1
        return t * t

    np.testing.assert_array_equal(jax.linearize(call_tf(function), array)[1](ONES), np.full(3, 10))


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.complex64, ml_dtypes.bfloat16, ml_dtypes.int4])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_a_copy_lasts_and_is_made_once(dtype, shape):
    array = np.ones((*shape[::-1],), dtype).T
    copy = lasting(array)
    assert (copy.dtype, copy.shape) == (array.dtype, shape)
    assert not np.shares_memory(copy, array)
    np.testing.assert_array_equal(copy, array)
    assert lasting(copy) is copy
    assert is_same(copy.view(), copy)
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        copy.flags.writeable = True


def test_other_arrays_are_kept_as_they_are():
    values = [ONES, np.float32(1)]
    assert all(lasting(value) is value for value in values)
    copy = lasting(np.arange(4))
    others = [copy[::-1], copy[:2], copy.view(np.uint64), lasting(np.arange(4))]
    assert not any(is_same(other, copy) for other in others)
    assert not is_same(np.arange(4), np.arange(4))
