"""Derivatives of calls in both modes; JAX's own derivatives of the function decide."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import ShapeDtypeStruct, lax

from jaxtf.serialization import VjpUnavailable, export
from jaxtf.serialization._record.exported import Exported
from jaxtf.shapepoly import symbolic_shape

F32 = jnp.float32
X = np.linspace(0.1, 1, 4, dtype=F32)
COUNTS = np.arange(4, dtype=np.int32)


def assert_close(found, expected):
    jax.tree.map(
        lambda a, b: (
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
            if a.dtype != jax.dtypes.float0
            else a.shape == b.shape and b.dtype == jax.dtypes.float0
        ),
        found,
        expected,
    )


def mixed(x, i, unused):
    """Float and integer arguments and results, one argument and no result unused."""
    return jnp.sin(x) * i.astype(x.dtype) + jnp.cumsum(x) ** 2, i + 1


@pytest.fixture(scope="module", params=["b", "4"])
def exported(request):
    shape = symbolic_shape(request.param)
    return export(mixed)(ShapeDtypeStruct(shape, F32), ShapeDtypeStruct(shape, jnp.int32), ShapeDtypeStruct((), F32))


DERIVATIVES = {
    "jvp": lambda f: jax.jvp(f, (X,), (X + 1,)),
    "jvp under jit": lambda f: jax.jit(lambda x: jax.jvp(f, (x,), (x + 1,)))(X),
    "vjp": lambda f: jax.vjp(f, X)[1](X),
    "linearize": lambda f: jax.linearize(f, X)[1](X),
    "jvp of linearize": lambda f: jax.jvp(jax.linearize(f, X)[1], (X,), (X + 2,)),
    "transpose of linearize": lambda f: jax.linear_transpose(jax.linearize(f, X)[1], X)(X),
    "jacfwd": lambda f: jax.jacfwd(f)(X),
    "jacrev": lambda f: jax.jacrev(f)(X),
    "jacfwd of jacrev": lambda f: jax.hessian(f)(X),
    "jacrev of jacfwd": lambda f: jax.jacrev(jax.jacfwd(f))(X),
    "jacfwd of jacfwd": lambda f: jax.jacfwd(jax.jacfwd(f))(X),
    "jacrev of jacrev": lambda f: jax.jacrev(jax.jacrev(f))(X),
    "jvp of grad": lambda f: jax.jvp(jax.grad(lambda x: f(x).sum()), (X,), (X,)),
    "grad of jvp": lambda f: jax.grad(lambda x: jax.jvp(f, (x,), (x,))[1].sum())(X),
    "grad of scan": lambda f: jax.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, length=3)[0].sum())(X),
    "jvp of scan": lambda f: jax.jvp(lambda x: lax.scan(lambda c, _: (f(c), None), x, length=2)[0], (X,), (X,)),
    "jvp of while": lambda f: jax.jvp(lambda x: lax.fori_loop(0, COUNTS[2], lambda _, c: f(c), x), (X,), (X,)),
    "grad of cond": lambda f: jax.grad(lambda x: lax.cond(x[0] > -1, f, lambda x: x, x).sum())(X),
    "jvp of cond": lambda f: jax.jvp(lambda x: lax.cond(x[0] > -1, f, lambda x: x, x), (X,), (X,)),
    "grad of checkpoint": lambda f: jax.grad(lambda x: jnp.sin(jax.checkpoint(f)(jnp.sin(x))).sum())(X),
    "jvp of checkpoint": lambda f: jax.jvp(lambda x: jnp.sin(jax.checkpoint(f)(jnp.sin(x))), (X,), (X,)),
}


@pytest.mark.parametrize("derivative", DERIVATIVES.values(), ids=DERIVATIVES)
def test_derivatives_are_those_of_jax(exported, derivative):
    assert_close(derivative(lambda x: exported.call(x, COUNTS, 1.0)[0]), derivative(lambda x: mixed(x, COUNTS, 1.0)[0]))


def test_tangents_of_integers_are_float0_in_and_out(exported):
    given = (X, np.zeros(4, jax.dtypes.float0), F32(1))
    found = jax.jvp(exported.call, (X, COUNTS, F32(1)), given)
    assert_close(found, jax.jvp(mixed, (X, COUNTS, F32(1)), given))
    assert found[1][1].dtype == jax.dtypes.float0


def test_a_function_of_integers_alone_has_no_derivative_to_ask_for(monkeypatch):
    exported = export(lambda i: i + 1)(ShapeDtypeStruct((4,), np.int32))
    monkeypatch.setattr(Exported, "vjp", None)
    assert jax.jvp(exported.call, (COUNTS,), (np.zeros(4, jax.dtypes.float0),))[1].dtype == jax.dtypes.float0


def vjps_made(monkeypatch):
    """The records whose VJP is asked for, in a list that grows."""
    asked, vjp = [], Exported.vjp

    def spy(self):
        asked.append(self.fun_name)
        return vjp(self)

    monkeypatch.setattr(Exported, "vjp", spy)
    return asked


@pytest.mark.parametrize(
    ("derivative", "orders"),
    [("vjp", 1), ("grad of scan", 1), ("grad of checkpoint", 1), ("jvp", 2), ("jacfwd of jacrev", 3),
     ("jvp of linearize", 2), ("jacrev of jacfwd", 3), ("jacfwd of jacfwd", 4)],
)  # fmt: skip
def test_what_an_artifact_must_hold_for_each_derivative(monkeypatch, derivative, orders):
    exported = export(lambda x: jnp.sin(x) * x)(ShapeDtypeStruct((4,), F32))
    asked = vjps_made(monkeypatch)
    DERIVATIVES[derivative](exported.call)
    assert max(name.count("_vjp") for name in asked) + 1 == orders


def limited(exported, orders):
    """The record as read from an artifact with this many orders of VJP."""
    fields = {name: getattr(exported, name) for name in exported.__dataclass_fields__}
    vjp = limited(exported.vjp(), orders - 1) if orders else None
    return Exported(**{**fields, "_make_vjp": (lambda: vjp) if orders else None})


@pytest.mark.parametrize("orders", range(4))
def test_a_derivative_that_needs_more_orders_than_there_are_says_how_many(orders):
    exported = limited(export(lambda x: jnp.sin(x) * x)(ShapeDtypeStruct((4,), F32)), orders)
    for derivative, needed, mode in [("vjp", 1, "reverse mode"), ("jvp", 2, "forward mode"),
                                     ("jacfwd of jacrev", 3, "forward mode"), ("jacrev of jacfwd", 3, "")]:  # fmt: skip
        if orders >= needed:
            DERIVATIVES[derivative](exported.call)
            continue
        with pytest.raises(VjpUnavailable) as caught:
            DERIVATIVES[derivative](exported.call)
        # JAX appends its note on frames.
        text = str(caught.value)
        assert mode in text
        match = re.search(r"of '<lambda>' needs its VJP of order (\d), and the record carries order (\d)", text)
        assert int(match[2]) == orders
        assert int(match[1]) <= needed
        assert f"available, with serialize(vjp_order={match[1]})" in text


def test_custom_derivatives_of_the_function_count_in_both_modes():
    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, cotangent: (100 * x * cotangent,))
    call = export(f)(ShapeDtypeStruct((), F32)).call
    assert jax.grad(call)(F32(2)) == 200
    assert jax.jvp(call, (F32(2),), (F32(3),))[1] == 600
    assert jax.jacfwd(jax.grad(call))(F32(2)) == 100


def complex_functions():
    return {
        "holomorphic": lambda z: jnp.sin(z) * z,
        "conjugate": lambda z: jnp.conj(z) * (1 + 2j) + z**2,
        "to real": lambda z: jnp.abs(z) ** 2 + jnp.real(z) * jnp.imag(z),
        "from real": lambda x: jnp.exp(1j * jnp.real(x)),
    }


@pytest.mark.parametrize("name", complex_functions())
def test_complex_derivatives_follow_the_conventions_of_jax(name):
    f = complex_functions()[name]
    z = np.array([1 + 2j, -0.5 + 0.25j], np.complex64)
    call = export(f)(ShapeDtypeStruct((2,), np.complex64)).call
    tangent = np.array([0.5 - 1j, 2 + 3j], np.complex64)
    assert_close(jax.jvp(call, (z,), (tangent,)), jax.jvp(f, (z,), (tangent,)))
    cotangent = jnp.ones_like(f(z)) * 2
    assert_close(jax.vjp(call, z)[1](cotangent), jax.vjp(f, z)[1](cotangent))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, jnp.bfloat16, np.float16])
def test_derivatives_have_the_dtype_of_the_value_with_x64_on(dtype):
    with jax.enable_x64(True):
        f = lambda x: jnp.sin(x) * x  # noqa: E731
        call = export(f)(ShapeDtypeStruct((4,), dtype)).call
        x = jnp.asarray(X, dtype)
        assert jax.jvp(call, (x,), (x,))[1].dtype == jax.grad(lambda x: call(x).sum())(x).dtype == dtype
        np.testing.assert_allclose(
            np.float32(jax.jvp(call, (x,), (x,))[1]), np.float32(jax.jvp(f, (x,), (x,))[1]), rtol=0.02
        )


def own_sizes(x):
    return jnp.sin(x) * x.shape[0] + x.sum()


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    "outer",
    [
        lambda f, x: jax.jvp(f, (x,), (x,)),
        lambda f, x: jax.grad(lambda x: f(x).sum())(x),
        lambda f, x: jax.jvp(jax.grad(lambda x: (f(x) ** 2).sum()), (x,), (x,))[1],
        lambda f, x: jax.linearize(f, x)[1](x),
    ],
    ids=["jvp", "grad", "jvp of grad", "linearize"],
)
def test_derivatives_are_used_in_other_exports_whose_derivatives_export_too(outer):
    inner = export(own_sizes)(ShapeDtypeStruct(symbolic_shape("b, 2"), F32))
    exported = export(functools.partial(outer, inner.call))(ShapeDtypeStruct(symbolic_shape("2*n, 2"), F32))
    x = np.linspace(0, 1, 8, dtype=F32).reshape(4, 2)
    expected = functools.partial(outer, own_sizes)
    assert_close(exported.call(x), expected(x))
    assert_close(jax.vjp(exported.call, x)[1](expected(x)), jax.vjp(expected, x)[1](expected(x)))
    assert_close(jax.jvp(exported.call, (x,), (x,)), jax.jvp(expected, (x,), (x,)))


def test_the_transpose_of_a_linear_function_is_its_vjp():
    def linear(x, y):
        return 3 * x + 2 * y

    call = export(linear)(ShapeDtypeStruct((4,), F32), ShapeDtypeStruct((4,), F32)).call
    assert_close(jax.linear_transpose(lambda x: call(x, 0 * X), X)(X), (3 * X,))
    assert_close(jax.linear_transpose(call, X, X)(X), (3 * X, 2 * X))


def test_forward_mode_of_a_function_with_a_reference_inside_is_right_or_refused_and_lifted():
    def squared(x):
        reference = jax.new_ref(x)
        reference[...] = reference[...] * 2
        return reference[...] ** 2

    exported = export(squared)(ShapeDtypeStruct(X.shape, F32))
    np.testing.assert_allclose(jax.grad(lambda x: exported.call(x).sum())(X), 8 * X, rtol=1e-6)
    try:
        assert_close(jax.jvp(exported.call, (X,), (X,)), (4 * X**2, 8 * X**2))
    except VjpUnavailable:
        pass  # this JAX does not transpose references
    else:
        return
    message = (
        r"which has a reference \(jax.new_ref\).*\n  made at: .*test_forward_mode.py.*\n  remedy: exported.lift\(\)"
    )
    for ask in (lambda: jax.jvp(exported.call, (X,), (X,)), lambda: exported.serialize(vjp_order=2)):
        with pytest.raises(VjpUnavailable, match=message):
            ask()
    assert_close(jax.jvp(exported.lift(), (X,), (X,)), (4 * X**2, 8 * X**2))
