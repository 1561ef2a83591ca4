"""Arrays of NumPy that rules of differentiation hold: value and gradient are of the same numbers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.ode import odeint

from jaxtf.serialization import export
from jaxtf.serialization._export.held_by_rules import rules_hold_writable

GLOBALS = {}


def with_vjp(forward, backward):
    function = jax.custom_vjp(forward)
    function.defvjp(lambda x: (forward(x), x), backward)
    return lambda x: function(x).sum()


def with_jvp(w):
    function = jax.custom_jvp(lambda x: x * w)
    function.defjvp(lambda primals, tangents: (primals[0] * w, tangents[0] * w))
    return lambda x: function(x).sum()


def root(a):
    def solve(f, x):
        return jax.lax.fori_loop(0, 30, lambda _, y: y - f(y) / (2 * y), x)

    return lambda b: jax.lax.custom_root(lambda x: x * x - a * b, b, solve, lambda g, y: y / g(jnp.ones(3))).sum()


class Model:
    def __init__(self, w):
        self.parts = {"w": [w]}

    def forward(self, x):
        return x * self.parts["w"][0]

    def backward(self, _, g):
        return (g * self.parts["w"][0],)


def of_a_global(w):
    GLOBALS["w"] = w
    return with_vjp(lambda x: x * GLOBALS["w"], lambda _, g: (g * GLOBALS["w"],))


def of_a_method(w):
    model = Model(w)
    return with_vjp(model.forward, model.backward)


HOLDS = {
    "closure": lambda w: with_vjp(lambda x: x * w, lambda _, g: (g * w,)),
    "computed by NumPy": lambda w: with_vjp(lambda x: x * (w + 1), lambda _, g: (g * np.add(w, 1),)),
    "partial": lambda w: with_vjp(lambda x: x * w, functools.partial(lambda w, _, g: (g * w,), w)),
    "default": lambda w: with_vjp(lambda x: x * w, lambda _, g, w=w: (g * w,)),
    "method": of_a_method,
    "global": of_a_global,
    "custom_jvp": with_jvp,
    "custom_root": root,
    "odeint": lambda w: lambda x: odeint(lambda y, t: -y * w, x, jnp.linspace(0, 1, 3))[-1].sum(),
    "in a jit": lambda w: jax.jit(with_jvp(w)),
    "in a scan": lambda w: lambda x: jax.lax.scan(lambda c, _: (c * with_jvp(w)(x), None), 1.0, None, length=2)[0],
}


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "odeint" else n for n in HOLDS])
def test_value_and_gradient_are_of_the_same_numbers(name, shape):
    w = np.full(shape, 2, np.float32)
    function, x = HOLDS[name](w), jnp.array([1.0, 2.0, 3.0])
    expected = jax.value_and_grad(function)(x)
    exported = export(HOLDS[name](w))(jax.ShapeDtypeStruct((3,), jnp.float32))
    w[...] = 5
    found = jax.value_and_grad(exported.call)(x)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)


@pytest.mark.parametrize(
    "function", [jax.nn.relu, jax.nn.silu, jax.nn.gelu, jax.scipy.special.logsumexp, jnp.linalg.norm]
)
def test_rules_of_jax_hold_none(function):
    assert not rules_hold_writable(jax.make_jaxpr(function)(jnp.ones(3)))


def test_rules_that_hold_what_nobody_can_write_to():
    w = np.ones(3, np.float32)
    w.flags.writeable = False
    for name in ("closure", "partial", "method", "custom_jvp"):
        assert not rules_hold_writable(jax.make_jaxpr(HOLDS[name](w))(jnp.ones(3)))
