"""Shape-polymorphic JAX programs that every consumer must run, with their arguments at several sizes.

Two families of symbolic shapes: a free batch size, and sizes that are related (`2*d`, `b` twice).
Each program names its polymorphic shapes and makes float32 arguments for given sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class Program:
    """One JAX function with symbolic shapes.

    Attributes:
      function: Takes arrays, returns a pytree of arrays.
      shapes: The shape text of each argument, as for `polymorphic_shapes`.
      sizes: Values of the dimension variables to run at.
    """

    function: Callable[..., Any]
    shapes: tuple[str, ...]
    sizes: tuple[Mapping[str, int], ...]

    def arguments(self, sizes: Mapping[str, int]) -> list[np.ndarray]:
        """Arguments of these sizes: smooth, away from the points where functions are not differentiable."""
        made = []
        for position, text in enumerate(self.shapes):
            shape = eval(text, {}, dict(sizes))
            count = int(np.prod(shape))
            made.append((np.cos(np.arange(count) * 0.7 + position) + 1.5).reshape(shape).astype(np.float32))
        return made

    def specs(self, unknown: Any = None) -> list[Sequence[Any]]:
        """The shape of each argument with `unknown` for the sizes that are open."""
        one, two = ([eval(text, {}, dict(sizes)) for text in self.shapes] for sizes in self.sizes[:2])
        return [
            [a if a == b else unknown for a, b in zip(left, right, strict=True)]
            for left, right in zip(one, two, strict=True)
        ]


BATCH = ({"b": 1}, {"b": 3}, {"b": 8})
RELATED = ({"b": 1, "d": 2}, {"b": 4, "d": 1}, {"b": 3, "d": 5})


def mlp(x):
    w1 = jnp.cos(jnp.arange(32.0)).reshape(4, 8)
    w2 = jnp.sin(jnp.arange(24.0)).reshape(8, 3)
    return jax.nn.softmax(jax.nn.gelu(x @ w1) @ w2)


def convolution(x):
    kernel = jnp.sin(jnp.arange(18.0)).reshape(3, 3, 1, 2)
    y = jax.lax.conv_general_dilated(x[..., None], kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.relu(y).reshape(x.shape[0], -1)


def attention(x):
    q, k, v = jnp.split(x @ jnp.cos(jnp.arange(48.0)).reshape(4, 12), 3, axis=-1)
    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k) / jnp.sqrt(x.shape[1]))
    return jnp.einsum("bqk,bkd->bqd", weights, v)


def scanned(x):
    def step(carry, row):
        carry = jnp.tanh(carry + row)
        return carry, carry.sum()

    return jax.lax.scan(step, jnp.zeros_like(x[0]), x)


def looped(x):
    return jax.lax.fori_loop(0, 3, lambda i, carry: carry * 0.5 + jnp.sin(x) * i, x)


PROGRAMS = {
    "elementwise": Program(lambda x: jnp.sin(x) * jnp.exp(-x), ("(b, 4)",), BATCH),
    "mlp": Program(mlp, ("(b, 4)",), BATCH),
    "convolution": Program(convolution, ("(b, 8, 8)",), BATCH),
    "mean": Program(lambda x: {"mean": x.mean(axis=0), "size": jnp.array(x.shape[0])}, ("(b, 3)",), BATCH),
    "flatten": Program(lambda x: x.reshape(-1) * x.shape[0], ("(b, 4)",), BATCH),
    "concatenate": Program(lambda x: jnp.concatenate([x, x[:1]]), ("(b, 4)",), BATCH),
    "cumsum": Program(lambda x: jnp.cumsum(x, axis=0), ("(b, 4)",), BATCH),
    "sort": Program(lambda x: jnp.sort(x, axis=0), ("(b, 4)",), BATCH),
    "top_k": Program(lambda x: jax.lax.top_k(x, 2)[0], ("(b, 4)",), BATCH),
    "gather": Program(lambda x: x[jnp.arange(x.shape[0])[::-1], 1], ("(b, 4)",), BATCH),
    "scatter": Program(lambda x: jnp.zeros(x.shape[0] + 1).at[jnp.arange(x.shape[0])].add(x[:, 0]), ("(b, 4)",), BATCH),
    "scan": Program(scanned, ("(b, 4)",), BATCH),
    "loop": Program(looped, ("(b, 4)",), BATCH),
    "condition": Program(lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), ("(b, 4)",), BATCH),
    "vmap": Program(jax.vmap(lambda row: jnp.dot(row, row) + row.max()), ("(b, 4)",), BATCH),
    "erf and sinh": Program(lambda x: jax.lax.erf(x) + jnp.sinh(x) + jnp.arccosh(x + 1), ("(b, 4)",), BATCH),
    "random": Program(lambda x: x + jax.random.normal(jax.random.key(0), x.shape), ("(b, 4)",), BATCH),
    "attention": Program(attention, ("(b, d, 4)",), RELATED),
    "halves": Program(lambda x: x.reshape(x.shape[0], -1, 2).sum(axis=2), ("(b, 2*d)",), RELATED),
    "outer": Program(lambda x, y: x @ y.T, ("(b, 2*d)", "(2*d + 1, 2*d)"), RELATED),
    "windows": Program(lambda x: x[:, ::2] + x[:, 1::2], ("(b, 2*d)",), RELATED),
    "two arguments": Program(lambda x, y: x * y[:, None] + y.shape[0], ("(b, d)", "(b,)"), RELATED),
    "transposed pad": Program(lambda x: jnp.pad(x, ((1, 0), (0, 2))).T, ("(b, 2*d)",), RELATED),
}
