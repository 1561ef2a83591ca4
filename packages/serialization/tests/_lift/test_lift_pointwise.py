"""Functions of each element that a module writes out with `select`: a derivative is that of the branch chosen."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from jax.scipy import special
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from jaxtf.serialization import export, lift
from jaxtf.shapepoly import symbolic_args_specs

SMALL = np.array([0.3, 1e-4, -1e-4, 1e-8, 1e-30, 0.0, 2.5, -2.5, 8.0, -8.0], np.float32)


def lifted(function, *args):
    return export(jax.jit(function))(*args).lift()


def slopes(function, x):
    """The derivative of a function of each element, in reverse mode."""
    return jax.grad(lambda x: jnp.sum(function(x)))(x)


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def pushed(function):
    """The derivative in forward mode."""
    return lambda x: jax.jvp(function, (x,), (jnp.ones_like(x),))[1]


@pytest.mark.slow(1)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "function", [gelu, lax.erfc, lax.erf_inv, lax.digamma, lax.bessel_i0e], ids=lambda f: f.__name__
)
def test_small_numbers_have_the_gradient_of_the_function(function, dtype):
    x = {"erf_inv": SMALL[:6], "digamma": np.abs(SMALL[:3]), "bessel_i0e": SMALL[[0, 1, 2, 6, 7]]}
    x = jnp.asarray(x.get(function.__name__, SMALL), dtype)
    expected = np.asarray(slopes(function, x), np.float32)
    tolerance = float(jnp.finfo(dtype).eps) * 64
    for derivative in (slopes, lambda f, x: pushed(f)(x)):
        found = np.asarray(derivative(lifted(function, x), x), np.float32)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
def test_derivatives_of_higher_order_are_those_of_the_function():
    found, expected = lifted(gelu, SMALL), gelu
    for _ in range(3):
        found, expected = functools.partial(slopes, found), functools.partial(slopes, expected)
        np.testing.assert_allclose(found(SMALL), expected(SMALL), rtol=1e-4, atol=1e-5)


def scanned(function):
    """A function of each element in the body of a loop, where JAX takes its derivative apart for reverse mode."""

    def looped(x):
        x, summed = lax.scan(lambda x, _: (0.9 * function(x), jnp.sum(function(x))), x, length=3)
        return jnp.sum(x) + jnp.sum(summed)

    return looped


def tangent_of_gradient(function):
    return lambda x: jax.jvp(jax.grad(function), (x,), (jnp.ones_like(x),))[1]


def gradient_of_gradient(function):
    return jax.grad(lambda x: jnp.sum(jax.grad(function)(x) ** 2))


def of_a_batch(function):
    return lambda x: jax.vmap(gradient_of_gradient(function))(jnp.stack([x, x / 2]))


def of_tanh(x):
    return lax.erf_inv(0.9 * lax.tanh(x))


def kept_out(function):
    return gradient_of_gradient(jax.checkpoint(function))


@pytest.mark.slow(6)
@pytest.mark.parametrize("derivative", [tangent_of_gradient, gradient_of_gradient, of_a_batch, kept_out])
@pytest.mark.parametrize("function", [gelu, lax.erfc, of_tanh])
@pytest.mark.parametrize("symbolic", [False, True])
def test_second_derivatives_of_loops_are_those_of_the_function(function, derivative, symbolic):
    x = np.array([-100, -12, -3, -0.5, 0.25, 2, 11, 90], np.float32)
    looped = scanned(function)
    exported = export(jax.jit(looped))(*symbolic_args_specs((x,), ("n",) if symbolic else None))
    with jax.enable_x64(True):
        expected = np.asarray(derivative(looped)(np.float64(x)))
    found = jax.jit(derivative(exported.lift()))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=2e-5 * np.max(np.abs(expected)))


@pytest.mark.slow(1)
@pytest.mark.parametrize("checked", [True, False])
def test_second_derivatives_of_loops_are_those_of_the_function_on_each_device(checked):
    x = np.array([-100, -12, -3, -0.5, 0.25, 2, 11, 90], np.float32)
    mesh = jax.make_mesh((2,), ("a",), axis_types=(AxisType.Auto,), devices=jax.devices()[:2])
    on_each = functools.partial(jax.shard_map, mesh=mesh, in_specs=P("a"), out_specs=P("a"), check_vma=checked)
    looped = scanned(of_tanh)

    def derivatives(function):
        whole = lambda x: jnp.sum(on_each(lambda x: function(x)[None])(x))  # noqa: E731
        return on_each(gradient_of_gradient(function)), gradient_of_gradient(whole)

    for found, expected in zip(derivatives(lifted(looped, x[:4])), derivatives(looped), strict=True):
        np.testing.assert_allclose(jax.jit(found)(x), jax.jit(expected)(x), rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_they_are_vectorized_scanned_and_exported_for_symbolic_sizes():
    def function(x):
        return lax.scan(lambda carry, row: (carry + gelu(row) @ row, gelu(carry * row)), jnp.float32(0.5), x)[1]

    x = np.stack([SMALL, SMALL[::-1], 2 * SMALL])
    exported = export(jax.jit(function))(*symbolic_args_specs((x,), ("(3, m)",)))
    again = export(exported.lift())(*symbolic_args_specs((x,), ("(3, k)",)))
    of_batch = np.stack([x, 2 * x])
    expected = jax.vmap(lambda x: slopes(function, x))(of_batch)
    for lifted_again in (exported.lift(), again.lift()):
        found = jax.vmap(lambda x, f=lifted_again: slopes(f, x))(of_batch)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_value_that_is_used_elsewhere_too_is_computed_for_that():
    def function(x):
        inner = 1 / x
        safe = jnp.where(x == 0, 0.0, inner * x)
        return safe + jnp.sum(inner) * 0 + jnp.maximum(inner, 3), inner

    x = np.float32([0.5, 2.0, 4.0])
    f = lifted(function, x)
    jax.tree.map(np.testing.assert_array_equal, f(x), jax.jit(function)(x))
    found, expected = (jax.vjp(g, x)[1]((jnp.ones(3), jnp.ones(3)))[0] for g in (f, function))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_choice_between_functions_of_two_arrays_is_left_as_it_is():
    def function(x, y):
        return jnp.where(x > y, x / y, x * y)

    x, y = np.float32([1, 2, 3]), np.float32([2, 1, 0.5])
    f = lifted(function, x, y)
    assert "custom_jvp" not in str(jax.make_jaxpr(f)(x, y))
    for found, expected in zip(*(jax.vjp(g, x, y)[1](jnp.ones(3)) for g in (f, function)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_module_of_another_producer_has_them_too():
    text = """
    func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<3xf32>
      %one = stablehlo.constant dense<1.0> : tensor<3xf32>
      %root = stablehlo.sqrt %x : tensor<3xf32>
      %is_positive = stablehlo.compare GT, %x, %zero : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
      %chosen = stablehlo.select %is_positive, %root, %one : tensor<3xi1>, tensor<3xf32>
      return %chosen : tensor<3xf32>
    }"""
    np.testing.assert_array_equal(slopes(lift(text), np.float32([0, 4, -1])), [0, 0.25, 0])


@pytest.mark.slow
def test_a_chain_of_a_thousand_operations_is_planned_in_no_time():
    def function(x):
        for _ in range(500):
            x = x * x + x  # each value is used three times
        return jnp.where(x > 1, 1 / x, x)

    x = np.float32([0.0, -1.0])  # where 1 / x is infinite, and not chosen
    np.testing.assert_array_equal(slopes(lifted(function, x), x), pushed(function)(x))


# Functions of one element, and choices between two of them.
STEPS = {
    "log": jnp.log,
    "sqrt": jnp.sqrt,
    "inverse": lambda x: 1 / x,
    "exp": jnp.exp,
    "power": lambda x: x**1.5,
    "square": lambda x: x * x,
    "less": lambda x: x - 0.75,
    "cosine": jnp.cos,
    "twice": lambda x: 2 * x,
}
CHOICES = {
    "positive": lambda x: x > 0,
    "small": lambda x: jnp.abs(x) < 0.5,
    "finite": jnp.isfinite,
    "a number": lambda x: lax.eq(x, x),
}
functions = st.recursive(
    st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=3).map(tuple),
    lambda inner: st.tuples(st.just("where"), st.sampled_from(list(CHOICES)), inner, inner),
    max_leaves=5,
)


def of_tree(tree, x):
    if tree[0] == "where":
        _, choice, left, right = tree
        return jnp.where(CHOICES[choice](x), of_tree(left, x), of_tree(right, x))
    for name in tree:
        x = STEPS[name](x)
    return x


@pytest.mark.slow
@given(tree=functions, after=st.sampled_from(list(STEPS)))
def test_both_modes_give_the_derivative_of_the_branch_that_is_chosen(tree, after):
    x = np.float32([0.0, 1e-30, 0.25, -0.25, 0.75, 1.5, -1.5, 90.0, -90.0, np.inf])

    def function(x):
        return of_tree(tree, STEPS[after](x)) * 3

    f = lifted(function, x)
    np.testing.assert_array_equal(f(x), jax.jit(function)(x))
    # In forward mode the function itself has it.
    expected = np.asarray(jax.jit(pushed(function))(x))
    for derivative in (slopes, lambda f, x: pushed(f)(x)):
        found = np.asarray(jax.jit(lambda x, d=derivative: d(f, x))(x))
        # Where the argument's own step or what follows is singular, zero times infinity remains.
        safe = np.isfinite(expected) & np.isfinite(np.asarray(pushed(STEPS[after])(x)))
        np.testing.assert_allclose(found[safe], expected[safe], rtol=1e-4, atol=1e-30)


LOGISTIC = {
    "sigmoid": jax.nn.sigmoid,
    "silu": jax.nn.silu,
    "logistic": lax.logistic,
    "of a product": lambda x: lax.logistic(2 * x) * jnp.tanh(x),
    "in a choice": lambda x: jnp.where(x > 0, lax.log1p(lax.abs(x)), lax.logistic(x)),
    "in a scan": lambda x: lax.scan(lambda c, row: (c + lax.logistic(row), lax.logistic(c * row)), 0 * x[0], x)[1],
    "glu": lambda x: jax.nn.glu(jnp.concatenate([x, x])),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", LOGISTIC)
def test_the_logistic_function_has_its_derivative_where_the_exponential_overflows(name, dtype):
    function, tolerance = LOGISTIC[name], float(jnp.finfo(dtype).eps) * 64
    x = jnp.asarray([-3e4, -1000, -100, -88.8, -88, -12, -11, -1, 0, 1, 12, 100, 1000, np.inf, -np.inf], dtype)
    x = x[:-2] if name != "logistic" else x
    found = lifted(function, x)
    np.testing.assert_array_equal(jax.jit(found)(x), jax.jit(function)(x))
    for _ in range(2):
        for derivative in (slopes, lambda f, x: pushed(f)(x)):
            ours, theirs = (np.asarray(derivative(f, x), np.float32) for f in (found, function))
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
        found, function = functools.partial(slopes, found), functools.partial(slopes, function)


def test_a_module_of_another_producer_has_it_too():
    text = """
    func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %c = stablehlo.constant dense<1.0> : tensor<4xf32>
      %0 = stablehlo.negate %x : tensor<4xf32>
      %1 = stablehlo.exponential %0 : tensor<4xf32>
      %2 = stablehlo.add %1, %c : tensor<4xf32>
      %3 = stablehlo.divide %c, %2 : tensor<4xf32>
      return %3, %1 : tensor<4xf32>, tensor<4xf32>
    }"""
    x = np.float32([-100, -1, 0, 100])
    np.testing.assert_array_equal(slopes(lambda x: lift(text)(x)[0], x), slopes(jax.nn.sigmoid, x))
    np.testing.assert_array_equal(lift(text)(x)[1], jnp.exp(-x))


def test_symbolic_sizes_keep_the_derivative_of_the_logistic_function():
    exported = export(jax.nn.silu)(*symbolic_args_specs((np.zeros((2, 3), np.float32),), ("(b, 3)",)))
    x = np.float32([[-100, -1, 0], [1, 100, -1000]])
    for function in (exported.lift(), export(exported.lift())(x).lift()):
        np.testing.assert_allclose(slopes(function, x), slopes(jax.nn.silu, x), rtol=1e-5, atol=1e-6)
    again = export(lambda x: slopes(exported.lift(), x))(*symbolic_args_specs((x,), ("(c, 3)",)))
    np.testing.assert_allclose(again.call(x), slopes(jax.nn.silu, x), rtol=1e-5, atol=1e-6)


# As in docs/lift.md: JAX's derivative at 0, and that of a lifted function.
AT_ZERO = {
    "relu": (jax.nn.relu, 0, 0.5),
    "relu6": (jax.nn.relu6, 0, 0.5),
    "softplus": (jax.nn.softplus, 0.5, 0),
    "log_sigmoid": (jax.nn.log_sigmoid, 0.5, 0),
    "logaddexp": (lambda x: jnp.logaddexp(x, 0.0), 0.5, 0),
    "xlogy": (lambda x: special.xlogy(x, 2.0), np.log(2), 0),
    "xlog1py": (lambda x: special.xlog1py(x, 1.0), np.log(2), 0),
    "entr": (special.entr, np.inf, 0),
    "bessel_i0e": (lax.bessel_i0e, 0, -1),
    "bessel_i1e": (lax.bessel_i1e, 0.5, 0),
}
WRITTEN_WITH_ABS = {"softplus", "log_sigmoid", "logaddexp", "bessel_i0e", "bessel_i1e"}


@pytest.mark.parametrize("name", AT_ZERO)
def test_derivatives_at_zero_are_those_that_the_guide_lists(name):
    function, of_jax, of_lifted = AT_ZERO[name]
    zero = np.float32(0)
    if name in WRITTEN_WITH_ABS and jax.grad(lax.abs)(zero) != 1:
        pytest.skip("this JAX has another derivative of abs at 0")
    found = lifted(function, zero)
    np.testing.assert_allclose(jax.grad(function)(zero), of_jax, rtol=1e-6)
    for derivative in (jax.grad(found), pushed(found)):
        np.testing.assert_allclose(derivative(zero), of_lifted, rtol=1e-6)
    near = np.float32(1e-3)
    np.testing.assert_allclose(jax.grad(found)(near), jax.grad(function)(near), rtol=1e-4)
