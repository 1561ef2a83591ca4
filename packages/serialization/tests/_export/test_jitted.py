"""Callables of every kind are exported, and each with the arrays that it holds."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtf.serialization import export
from jaxtf.serialization.interop import as_jitted, static_parameters

X = np.arange(3, dtype=np.float32)
SPEC = jax.ShapeDtypeStruct((3,), jnp.float32)


class Unhashable:
    """As Equinox's modules are: a value, with arrays in it."""

    __hash__ = None

    def __init__(self, factor=2.0):
        self.weights = jnp.full((3,), factor)

    def __eq__(self, other):
        return isinstance(other, Unhashable)

    def __call__(self, x):
        return x * self.weights

    def method(self, x):
        return x + self.weights


class EqualToAll(Unhashable):
    """As a module that compares without its arrays, and has a name."""

    __name__ = "module"

    def __hash__(self):
        return 1


class Refusing(Unhashable):
    """As Flax's modules are while they hold variables."""

    def __hash__(self):
        raise TypeError("cannot be hashed while it holds variables")


class Instance:
    def __call__(self, x):
        return x * 5


class Jitted:
    @functools.partial(jax.jit, static_argnums=(0, 2))
    def scaled(self, x, times):
        assert isinstance(times, int), times
        return x * times


@functools.partial(jax.jit, static_argnums=(0, 2))
def signed(sign, x, times):
    assert (type(sign), type(times)) == (bool, int)
    return x * times if sign else -x * times


CALLABLES = {
    "unhashable": Unhashable(),
    "hash that raises": Refusing(),
    "equal to all": EqualToAll(),
    "method of an unhashable": Unhashable().method,
    "its __call__": Unhashable().__call__,
    "instance": Instance(),
    "partial of an unhashable": functools.partial(Unhashable()),
    "partial of a function": functools.partial(jnp.add, 3.0),
    "partial of jit, by position": functools.partial(signed, False, times=3),
    "partial of jit, by name": functools.partial(jax.jit(lambda x, n: x * n, static_argnames="n"), n=3),
    "partial of a method of jit": functools.partial(Jitted().scaled, times=3),
    "jax.tree_util.Partial": jax.tree_util.Partial(jnp.add, 3.0),
    "jitted partial": jax.jit(functools.partial(jnp.add, 3.0)),
    "custom_jvp": jax.nn.relu,
    "ufunc": jnp.negative,
    "built-in": abs,
}


@pytest.mark.parametrize("fun", CALLABLES.values(), ids=CALLABLES)
def test_a_callable_is_exported(fun):
    np.testing.assert_array_equal(export(fun)(SPEC).call(X), fun(X))


@pytest.mark.parametrize("kind", [Unhashable, EqualToAll])
def test_callables_that_are_equal_keep_their_own_arrays(kind):
    first, second = kind(2.0), kind(7.0)
    assert first == second
    for fun in (first, second):
        np.testing.assert_array_equal(export(fun)(SPEC).call(X), fun(X))


@pytest.mark.parametrize(
    ("fun", "args", "kwargs"),
    [
        (Jitted().scaled, (X, 3), {}),
        (Jitted().scaled, (X,), {"times": 3}),
        (functools.partial(Jitted().scaled), (X, 3), {}),
        (functools.partial(signed, False), (X, 3), {}),
        (functools.partial(signed, False, times=2), (X,), {"times": 3}),
        (functools.partial(functools.partial(signed, False), X), (3,), {}),
    ],
)
def test_what_is_static_stays_so_where_other_arguments_are_fixed(fun, args, kwargs):
    exported = export(fun)(*args, **kwargs)
    np.testing.assert_array_equal(exported.call(*(a for a in args if a is X)), fun(*args, **kwargs))


def test_static_parameters_are_those_of_a_call():
    assert static_parameters(signed) == ((0, 2), ("sign", "times"))
    assert static_parameters(functools.partial(signed, True)) == ((1,), ("times",))
    assert static_parameters(functools.partial(signed, True, X)) == ((0,), ("times",))
    assert static_parameters(functools.partial(signed, True, X, 2)) == ((), ())
    assert static_parameters(functools.partial(signed, times=2)) == ((0,), ("sign", "times"))
    assert static_parameters(Jitted().scaled) == ((1,), ("times",))
    assert static_parameters(jnp.sin) == static_parameters(functools.partial(max, 3)) == ((), ())


def test_a_position_from_the_end_stays_one():
    last = jax.jit(lambda *args: args[0] * args[-1], static_argnums=-1)
    assert static_parameters(functools.partial(last, X)) == ((-1,), ())
    np.testing.assert_array_equal(export(functools.partial(last, X))(X, 3).call(X), X * 3)


def test_an_instance_is_named_for_its_class():
    assert export(Unhashable())(SPEC).fun_name == "Unhashable"
    assert export(Instance())(SPEC).fun_name == "Instance"
    assert export(jnp.sin)(SPEC).fun_name == "sin"


def test_an_instance_is_traced_with_the_names_of_its_parameters():
    traced = as_jitted(Unhashable()).trace(SPEC)
    assert traced.jaxpr.jaxpr.debug_info.arg_names == ("x",)


def test_the_result_of_jit_is_left_as_it_is():
    jitted = jax.jit(jnp.sin)
    assert as_jitted(jitted) is jitted


def noisy(x):
    return x + jax.random.normal(jax.random.key(3), x.shape)


class Noisy:
    def method(self, x):
        return noisy(x)

    __call__ = method


SETTINGS = [
    lambda: jax.default_prng_impl("threefry2x32"),
    lambda: jax.default_prng_impl("rbg"),
    lambda: jax.default_prng_impl("unsafe_rbg"),
    lambda: jax.default_prng_impl("rbg"),
]
CALLABLES = [noisy, Noisy(), Noisy().method, functools.partial(noisy), lambda x: noisy(x * 1)]


@pytest.mark.parametrize("function", CALLABLES, ids=["function", "object", "method", "partial", "lambda"])
def test_each_export_makes_random_keys_as_jax_is_set_then(function):
    x, spec = np.ones(3, np.float32), jax.ShapeDtypeStruct((3,), np.float32)
    made = []
    for setting in SETTINGS:
        with setting():
            made.append((function(x), export(function)(spec)))
    for expected, exported in made:
        np.testing.assert_allclose(exported.call(x), expected, rtol=1e-6)
        np.testing.assert_array_equal(exported.vjp().call(x, x)[0], x)
