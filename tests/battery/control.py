"""Control flow, transformations and structures over and with symbolic axes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from .entry import NEEDS_CONSTANT, NO_ASSOCIATIVE_SCAN, Entry, polymorphic, ramp, refused


class Pair(NamedTuple):
    """A structure with two leaves."""

    left: jax.Array
    right: jax.Array


@jax.custom_jvp
def softplus(x):
    """A function with its own forward derivative."""
    return jnp.logaddexp(x, 0.0)


@softplus.defjvp
def softplus_jvp(primals, tangents):
    return softplus(*primals), jax.nn.sigmoid(primals[0]) * tangents[0]


@jax.custom_vjp
def clipped(x):
    """A function with its own reverse derivative."""
    return jnp.sin(x)


clipped.defvjp(lambda x: (clipped(x), x), lambda x, ct: (jnp.clip(jnp.cos(x) * ct, -0.5, 0.5) / x.shape[0],))


def scanned(x):
    def step(carry, row):
        carry = jnp.tanh(carry + row)
        return carry, carry.sum()

    return lax.scan(step, jnp.zeros_like(x[0]), x)


def recurrent(x):
    """A gated recurrent network over a symbolic sequence."""
    w, u = ramp(3, 8, dtype=x.dtype), ramp(4, 8, dtype=x.dtype)

    def step(state, row):
        gate, candidate = jnp.split(row @ w + state @ u, 2, axis=-1)
        gate = jax.nn.sigmoid(gate)
        return gate * state + (1 - gate) * jnp.tanh(candidate), None

    return lax.scan(step, jnp.zeros((x.shape[0], 4), x.dtype), jnp.swapaxes(x, 0, 1))[0]


def collatz_like(x):
    """A while loop whose bound is a symbolic size."""
    return lax.while_loop(lambda s: s[0] < x.shape[0], lambda s: (s[0] + 1, s[1] * 0.5 + x), (0, x))[1]


@jax.jit
def times_size(x):
    return x * x.shape[0]


def block(x):
    return jnp.tanh(x @ ramp(4, 4, dtype=x.dtype)) + x


ENTRIES: dict[str, Entry] = {
    # loops
    "scan over a symbolic axis": polymorphic(scanned, "b, d"),
    "scan backwards": polymorphic(lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c), x[0], x, reverse=True), "b, d"),
    "scan of symbolic length without inputs": refused(
        NEEDS_CONSTANT,
        polymorphic(lambda x: lax.scan(lambda c, _: (c * 0.9, c.sum()), x, None, length=x.shape[0]), "b, 2"),
    ),
    "scan of known length with a symbolic carry": polymorphic(
        lambda x: lax.scan(lambda c, k: (c * k, c.sum()), x, jnp.arange(1.0, 4.0, dtype=x.dtype)), "b, d"
    ),
    "recurrent network": polymorphic(recurrent, "b, n, 3"),
    "map over a symbolic axis": polymorphic(lambda x: lax.map(lambda row: row * row.sum(), x), "b, d"),
    "fori_loop": polymorphic(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 0.5 + jnp.sin(x) * i, x), "b, 4"),
    "fori_loop to a symbolic size": polymorphic(
        lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i] * i, jnp.zeros(3, x.dtype)),
        "b, 3",
        differentiable=False,
    ),
    "while_loop to a symbolic size": polymorphic(collatz_like, "b, 2", differentiable=False),
    "cond": polymorphic(lambda x: lax.cond(x.sum() > 6, jnp.sin, jnp.cos, x), "b, 4"),
    "cond on a size": polymorphic(
        lambda x: lax.cond(jnp.array(x.shape[0]) > 2, lambda y: y * 2, lambda y: y - x.shape[0], x), "b, 4"
    ),
    "switch": polymorphic(
        lambda x, i: lax.switch(i[0] % 3, [jnp.sin, jnp.cos, lambda y: y * y.shape[0]], x),
        "b, d",
        "1",
        dtypes="float32 int32",
    ),
    "associative_scan": polymorphic(lambda x: lax.associative_scan(jnp.add, x, axis=1), "b, 5"),
    "associative_scan over a symbolic axis": refused(
        NO_ASSOCIATIVE_SCAN,
        polymorphic(lambda x: lax.associative_scan(jnp.multiply, x), "n, 2", constraints=("n <= 10",)),
    ),
    # vmap and jit
    "vmap over a symbolic axis": polymorphic(jax.vmap(lambda row: jnp.dot(row, row) + row.max()), "b, 4"),
    "vmap of vmap": polymorphic(jax.vmap(jax.vmap(jnp.vdot, (None, 0)), (0, None)), "b, 3", "d, 3"),
    "vmap of other axes": polymorphic(jax.vmap(lambda c: c / c.shape[0], in_axes=1, out_axes=1), "b, d"),
    "vmap of scan": polymorphic(jax.vmap(scanned), "b, d, 2"),
    "vmap of dynamic_slice": polymorphic(
        jax.vmap(lambda row, i: lax.dynamic_slice(row, (i,), (2,))),
        "b, n",
        "b",
        dtypes="float32 int32",
        constraints=("n >= 2",),
    ),
    "vmap of a gradient": polymorphic(jax.vmap(jax.grad(lambda r: (r**3).sum() * r.shape[0])), "b, d"),
    "vectorize": polymorphic(jnp.vectorize(lambda m, v: m @ v, signature="(i,j),(j)->(i)"), "b, 2, 3", "b, 3"),
    "nested jit": polymorphic(lambda x: jax.jit(lambda y: jax.jit(jnp.sin)(y) * y.shape[0])(x) + x, "b, d"),
    "jit called with two symbolic sizes": polymorphic(lambda x: times_size(x).sum() + times_size(x[1:]).sum(), "n, 2"),
    "checkpoint": polymorphic(jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)) * y.shape[0]), "b, d"),
    "custom_jvp": polymorphic(softplus, "b, d"),
    "custom_vjp": polymorphic(clipped, "b, d"),
    "vmap of custom_vjp": polymorphic(jax.vmap(clipped), "b, d"),
    "stop_gradient": polymorphic(lambda x: x * lax.stop_gradient(jnp.exp(x)), "b, d"),
    "optimization_barrier": polymorphic(lambda x: lax.optimization_barrier(x * 2), "b, d"),
    # derivatives inside of the function
    "gradient inside": polymorphic(jax.grad(lambda x: (jnp.sin(x) * x.shape[0]).sum()), "b, d"),
    "jvp inside": polymorphic(lambda x: jax.jvp(lambda y: y**3, (x,), (jnp.ones_like(x),)), "b, d"),
    "linearize inside": polymorphic(lambda x: jax.linearize(jnp.exp, x)[1](x), "b, d"),
    "jacobian of a row": polymorphic(jax.vmap(jax.jacrev(lambda r: r * r.sum())), "b, 3"),
    "jacobian in forward mode of a row": polymorphic(jax.vmap(jax.jacfwd(lambda r: jnp.sin(r) * r[0])), "b, 3"),
    "hessian of a row": polymorphic(jax.vmap(jax.hessian(lambda r: (r**3).sum())), "b, 2"),
    "gradient through scan": polymorphic(jax.grad(lambda x: scanned(x)[1].sum()), "b, d"),
    # structures
    "a named tuple": polymorphic(lambda x: Pair(x * 2, x.sum(0)), "b, d"),
    "a dictionary of lists": polymorphic(lambda x: {"a": [x, x[:1]], "b": (x.T, None)}, "b, d"),
    "scan with a named tuple": polymorphic(
        lambda x: lax.scan(lambda c, r: (Pair(c.left + r, c.right * 0.5 + r), None), Pair(x[0], x[0]), x)[0], "b, d"
    ),
    "tree map": polymorphic(lambda x, y: jax.tree.map(jnp.add, Pair(x, x * 2), Pair(y, y)), "b, d", "b, d"),
    # small networks
    "layers": polymorphic(lambda x: block(block(block(x))), "b, 4"),
    "optimizer step": polymorphic(
        lambda x, y: jax.tree.map(
            lambda p, g: p - 0.1 * g,
            ramp(3, dtype=x.dtype),
            jax.grad(lambda w: ((x @ w - y) ** 2).mean())(ramp(3, dtype=x.dtype)),
        ),
        "b, 3",
        "b",
    ),
}
