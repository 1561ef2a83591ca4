"""Loops that count are scans again, with the values of JAX and derivatives in reverse mode; all others are loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from jaxtf.serialization import export, lift

X = np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4)
C = np.array([0.5, -0.5, 0.25, 1.0], np.float32)


def step(c, x):
    return jnp.tanh(c + x), (c.sum(), jnp.outer(x, c))


LOOPS = {
    "scan": lambda c, xs: lax.scan(step, c, xs),
    "backwards": lambda c, xs: lax.scan(step, c, xs, reverse=True),
    "unrolled": lambda c, xs: lax.scan(step, c, xs, unroll=2),
    "several arrays": lambda c, xs: lax.scan(lambda c, x: (c * x[0] + x[1], c), c, (xs, jnp.cos(xs))),
    "no arrays": lambda c, xs: lax.scan(lambda c, _: (jnp.sin(c), c[0]), c, None, length=3),
    "no state": lambda c, xs: lax.map(lambda x: x * c, xs),
    "nested": lambda c, xs: lax.scan(lambda c, x: (lax.fori_loop(0, 3, lambda i, y: y * x + i, c), c), c, xs),
    "counted": lambda c, xs: lax.fori_loop(2, 7, lambda i, c: c * jnp.cos(c + i), c),
    "indexed": lambda c, xs: lax.fori_loop(0, 5, lambda i, c: c * xs[i] + xs[4 - i], c),
    "written": lambda c, xs: lax.fori_loop(0, 5, lambda i, ys: ys.at[i].set(xs[i] * c), jnp.zeros((5, 4))),
    "written twice": lambda c, xs: lax.fori_loop(0, 5, lambda i, ys: ys.at[i].set(c).at[0].add(c), jnp.zeros((5, 4))),
    "written and read": lambda c, xs: lax.fori_loop(1, 5, lambda i, ys: ys.at[i].set(ys[i - 1] * c), jnp.ones((5, 4))),
    "partly written": lambda c, xs: lax.fori_loop(0, 3, lambda i, ys: ys.at[i].set(c), jnp.ones((5, 4))),
    "checkpointed": lambda c, xs: lax.scan(jax.checkpoint(step), c, xs),
    "associative": lambda c, xs: lax.associative_scan(jnp.multiply, xs * c),
    "no rounds": lambda c, xs: lax.scan(step, c, xs[:0]),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _quick_compilation():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", LOOPS)
def test_values_and_derivatives_are_those_of_jax(name):
    function = LOOPS[name]
    lifted = export(function)(C, X).lift()

    def total(f):
        return lambda c, xs: sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(f(c, xs)))

    found, expected = (jax.tree.leaves(jax.jit(f)(C, X)) for f in (lifted, function))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert "while" not in str(jax.make_jaxpr(lifted)(C, X))
    found = jax.jit(jax.grad(total(lifted), argnums=(0, 1)))(C, X)
    expected = jax.jit(jax.grad(total(function), argnums=(0, 1)))(C, X)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)
    found, expected = (jax.jit(jax.jvp, static_argnums=0)(total(f), (C, X), (X[1], C * X)) for f in (lifted, function))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


def scans(function, *arguments):
    """The scans of what is lifted."""
    lifted = export(function)(*arguments).lift()
    jaxpr = jax.make_jaxpr(lifted)(*arguments).eqns[0].params["jaxpr"]
    return [equation for equation in jaxpr.eqns if equation.primitive.name == "scan"]


@pytest.mark.parametrize("name", ["scan", "backwards", "checkpointed"])
def test_rows_are_scanned_and_stacked_and_not_carried(name):
    [equation] = scans(LOOPS[name], C, X)
    assert equation.params["length"] == 5
    assert equation.params["reverse"] == (name == "backwards")
    body = equation.params["jaxpr"]
    carried = (
        [v.aval.shape for v in body.jaxpr.invars] if hasattr(body, "jaxpr") else [v.aval.shape for v in body.invars]
    )
    assert (5, 4) not in carried
    assert (5, 4, 4) not in carried


@pytest.mark.parametrize("name", ["written and read", "written twice", "partly written"])
def test_an_array_that_is_used_otherwise_is_carried(name):
    [equation] = scans(LOOPS[name], C, X)
    body = equation.params["jaxpr"]
    shapes = [v.aval.shape for v in getattr(body, "jaxpr", body).invars]
    assert (5, 4) in shapes


def text_of_rows(rows, reads):
    """A loop that adds up what a function reads of `x`, or writes rows that double into it, in that shape."""
    shape, sliced = "x".join(map(str, rows)), "1x2x3"
    types = f"(tensor<3x2x3xf32>, {'' if reads else f'tensor<{shape}xf32>, '}tensor<i32>)"
    read = f"""
      %d = stablehlo.dynamic_slice %x, %i, %z, %z, sizes = [1, 2, 3]
        : (tensor<3x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<{sliced}xf32>
      %r = stablehlo.reshape %d : (tensor<{sliced}xf32>) -> tensor<{shape}xf32>"""
    write = f"""
      %d = stablehlo.reshape %u : (tensor<{shape}xf32>) -> tensor<{sliced}xf32>
      %r = stablehlo.dynamic_update_slice %x, %d, %i, %z, %z
        : (tensor<3x2x3xf32>, tensor<{sliced}xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x2x3xf32>"""
    made = f"{shape if reads else '3x2x3'}xf32"
    return f"""
    func.func private @moved(%x: tensor<3x2x3xf32>{"" if reads else f", %u: tensor<{shape}xf32>"}, %i: tensor<i32>)
        -> tensor<{made}> {{
      %z = stablehlo.constant dense<0> : tensor<i32>{read if reads else write}
      return %r : tensor<{made}> }}
    func.func @main(%x: tensor<3x2x3xf32>, %u: tensor<{shape}xf32>) -> (tensor<3x2x3xf32>, tensor<{shape}xf32>) {{
      %i0 = stablehlo.constant dense<0> : tensor<i32>
      %l:3 = stablehlo.while(%i = %i0, %y = %x, %a = %u) : tensor<i32>, tensor<3x2x3xf32>, tensor<{shape}xf32> cond {{
        %n = stablehlo.constant dense<3> : tensor<i32>
        %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        %m = func.call @moved(%y{"" if reads else ", %a"}, %i) : {types} -> tensor<{made}>
        %b = stablehlo.add %a, {"%m" if reads else "%a"} : tensor<{shape}xf32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, {"%y" if reads else "%m"}, %b : tensor<i32>, tensor<3x2x3xf32>, tensor<{shape}xf32>
      }}
      return %l#1, %l#2 : tensor<3x2x3xf32>, tensor<{shape}xf32> }}"""


@pytest.mark.parametrize(
    "rows", [(6,), (3, 2), (2, 3), (1, 2, 3), (2, 1, 3), (2, 3, 1), (1, 6), (1, 1, 2, 3), (3, 1, 2)]
)
@pytest.mark.parametrize("reads", [True, False])
def test_rows_are_read_and_written_in_any_shape(reads, rows):
    x, u = np.arange(18, dtype=np.float32).reshape(3, 2, 3), np.arange(6, dtype=np.float32).reshape(rows)
    expected = (
        (x, u + x.sum(0).reshape(rows)) if reads else (np.stack([2**i * u.reshape(2, 3) for i in range(3)]), 8 * u)
    )
    lifted = lift(text_of_rows(rows, reads))
    for found, value in zip(lifted(x, u), expected, strict=True):
        np.testing.assert_array_equal(found, value)
    weights = [np.random.default_rng(0).integers(-9, 9, value.shape).astype(np.float32) for value in expected]
    moved, gave = jax.vjp(lifted, x, u)[1](tuple(weights))
    if reads:
        np.testing.assert_array_equal(moved, weights[0] + weights[1].reshape(2, 3))
    else:
        np.testing.assert_array_equal(moved, np.zeros_like(x))
        of_rows = sum(2**i * weights[0][i] for i in range(3))
        np.testing.assert_array_equal(gave, of_rows.reshape(rows) + 8 * weights[1])


def test_a_loop_of_an_unknown_number_of_rounds_is_one():
    def until(c, n):
        return lax.while_loop(
            lambda s: (s[0] < n) & (jnp.sum(s[1]) < 100), lambda s: (s[0] + 1, s[1] * 1.5 + 1), (0, c)
        )

    lifted = export(until)(C, np.int32(5)).lift()
    np.testing.assert_array_equal(lifted(C, np.int32(5))[1], jax.jit(until)(C, np.int32(5))[1])
    found = jax.jacfwd(lambda c: lifted(c, np.int32(5))[1])(C)
    np.testing.assert_allclose(found, jax.jacfwd(lambda c: until(c, np.int32(5))[1])(C), rtol=1e-6)
    batch = np.stack([C, C * 9])
    both = np.array([3, 5], np.int32)
    np.testing.assert_array_equal(jax.vmap(lifted)(batch, both)[1], jax.vmap(until)(batch, both)[1])
    with pytest.raises(ValueError, match=r"Reverse-mode differentiation does not work for lax.while_loop"):
        jax.grad(lambda c: lifted(c, np.int32(5))[1].sum())(C)


# A counter, a row that is read and one that is written, at an index that may be the counter, or near it.
LOOP = """func.func @main(%xs: tensor<4xi32>, %ys: tensor<4xi32>, %n: tensor<i32>)
    -> (tensor<i32>, tensor<4xi32>, tensor<i32>) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %start = stablehlo.constant dense<{start}> : tensor<i32>
  %r:4 = stablehlo.while(%i = %start, %c = %n, %a = %xs, %b = %ys)
    : tensor<i32>, tensor<i32>, tensor<4xi32>, tensor<4xi32>
  cond {{
    %limit = stablehlo.constant dense<{limit}> : tensor<i32>
    %goes = stablehlo.compare {direction}, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %goes : tensor<i1>
  }} do {{
    %down = stablehlo.subtract %three, %i : tensor<i32>
    %row = stablehlo.dynamic_slice %a, %{read}, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
    %s = stablehlo.reshape %row : (tensor<1xi32>) -> tensor<i32>
    %d = stablehlo.add %c, %s : tensor<i32>
    %u = stablehlo.reshape %{update} : (tensor<i32>) -> tensor<1xi32>
    %e = stablehlo.dynamic_update_slice %b, %u, %{write} : (tensor<4xi32>, tensor<1xi32>, tensor<i32>) -> tensor<4xi32>
    %step = stablehlo.constant dense<{step}> : tensor<i32>
    %j = stablehlo.add %i, %step : tensor<i32>
    stablehlo.return %j, %d, %a, %{kept} : tensor<i32>, tensor<i32>, tensor<4xi32>, tensor<4xi32>
  }}
  return %r#1, %r#3, %r#0 : tensor<i32>, tensor<4xi32>, tensor<i32>
}}"""


def played(loop, xs, ys, n):
    """The same in Python."""
    i, c, b = loop["start"], n, list(ys)
    while (i < loop["limit"]) if loop["direction"] == "LT" else (i <= loop["limit"]):
        places = {"i": i, "down": 3 - i, "zero": 0}
        s = xs[min(max(places[loop["read"]], 0), 3)]
        d = c + s
        written = list(b)
        written[min(max(places[loop["write"]], 0), 3)] = {"c": c, "d": d, "s": s}[loop["update"]]
        c, b, i = d, written if loop["kept"] == "e" else b, i + loop["step"]
    return c, b, i


PLACES = st.sampled_from(["i", "down", "zero"])
RANDOM_LOOPS = st.fixed_dictionaries({
    "start": st.integers(-1, 2),
    "limit": st.integers(-1, 6),
    "direction": st.sampled_from(["LT", "LE"]),
    "step": st.integers(1, 2),
    "read": PLACES,
    "write": PLACES,
    "update": st.sampled_from(["c", "d", "s"]),
    "kept": st.sampled_from(["e", "e", "b"]),
})  # fmt: skip


@given(RANDOM_LOOPS)
@settings(max_examples=25, deadline=None)
def test_any_loop_gives_what_python_gives(loop):
    xs, ys, n = [3, 1, 4, 1], [9, 8, 7, 6], 5
    found = lift(LOOP.format(**loop))(np.array(xs, np.int32), np.array(ys, np.int32), np.int32(n))
    for ours, theirs in zip(found, played(loop, xs, ys, n), strict=True):
        np.testing.assert_array_equal(ours, theirs)
