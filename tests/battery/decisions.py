"""Sizes whose relation has to be proved: what JAX asks while it traces needs more than one step of reasoning.

`dynamic_slice` asks whether the slice fits, an addition whether sizes are equal, an export how the sizes of the
arguments determine the variables.
"""

import jax
import jax.numpy as jnp
from jax import lax

from .entry import Entry, polymorphic


def first(x, size):
    """The first elements, of a size that JAX has to know is not larger than the array's."""
    return lax.dynamic_slice_in_dim(x, 0, size)


ENTRIES: dict[str, Entry] = {
    "a sum of sizes is two at least": polymorphic(
        lambda x, y, z: first(x, 2) * y.sum() * z.sum(), "n", "b", "d", constraints=("n >= b + d",), n=(4, 5, 13)
    ),
    "proportional sizes": polymorphic(
        lambda x, y: (first(x, 3), first(y, 2)), "n", "m", constraints=("2*n == 3*m",), n=(3, 6, 9), m=(2, 4, 6)
    ),
    "a chain of halves": polymorphic(
        lambda x, y, z: first(x, 4) * y.sum() * z.sum(),
        "n",
        "m",
        "k",
        constraints=("n >= 2*m", "m >= 2*k"),
        n=(4, 8, 14),
        m=(2, 4, 7),
        k=(1, 2, 3),
    ),
    "a chain of differences": polymorphic(
        lambda x, y, z: first(x, 7) * y.sum() * z.sum(),
        "n",
        "m",
        "k",
        constraints=("n - m >= 3", "m - k >= 3"),
        n=(7, 8, 14),
        m=(4, 5, 9),
        k=(1, 2, 3),
    ),
    "a sum within a limit": polymorphic(
        lambda x, y, z: first(jnp.arange(4.0), x.shape[0]) * x * y.sum() * z.sum(),
        "b",
        "d",
        "k",
        constraints=("b + d + k <= 6",),
        b=(1, 2, 4),
        d=(2, 3, 1),
        k=(1, 1, 1),
    ),
    "a size that four divides": polymorphic(lambda x: first(x, 4), "n", constraints=("mod(n, 4) == 0",), n=(4, 8, 16)),
    "a remainder is no larger than the size": polymorphic(lambda x: first(x, x.shape[0] % 4).sum() + x, "n"),
    "a quotient is no larger than the size": polymorphic(
        lambda x, y: first(x, x.shape[0] // y.shape[0]).sum() * y, "n", "k"
    ),
    "rounding up gives one at least": polymorphic(
        lambda x, y: first(jnp.arange((x.shape[0] + y.shape[0] - 1) // y.shape[0]) * y[0], 1) + x, "n", "k"
    ),
    "a quotient of a larger size is one at least": polymorphic(
        lambda x, y: first(jnp.arange(x.shape[0] // y.shape[0]) + x[0], 1) * y, "n", "k", constraints=("n >= k",)
    ),
    "twice the larger size holds both": polymorphic(
        lambda x, y: (
            first(jnp.ones(2 * jax.core.max_dim(x.shape[0], y.shape[0])), x.shape[0] + y.shape[0])
            * jnp.concatenate([x, y])
        ),
        "n",
        "m",
    ),
    "a product is no smaller than a factor": polymorphic(lambda x: first(x.reshape(-1), x.shape[0]), "b, d"),
    "a square is no smaller than the size": polymorphic(lambda x: first(jnp.outer(x, x).reshape(-1), x.shape[0]), "b"),
    "two inequalities make sizes equal": polymorphic(
        lambda x, y: x + y, "n", "m", constraints=("n >= m", "m >= n"), n=(1, 4, 6), m=(1, 4, 6)
    ),
    "an equality of a quotient": polymorphic(
        lambda x, y: x + y[: y.shape[0] // 2], "n", "m", constraints=("floordiv(m, 2) == n",), n=(1, 3, 4), m=(3, 6, 9)
    ),
    "an equality of sums": polymorphic(
        lambda x, y, z: jnp.concatenate([x, y]) * z,
        "n",
        "m",
        "b",
        constraints=("b == n + m",),
        n=(1, 3, 4),
        m=(3, 2, 5),
        b=(4, 5, 9),
    ),
    "variables known by sum and difference": polymorphic(
        lambda x: x.sum(0) * x.sum(1).mean() * x.shape[0],
        "n + m, n - m",
        constraints=("n >= m",),
        n=(4, 5, 3),
        m=(1, 2, 2),
    ),
    "variables known by three sums": polymorphic(
        lambda x, y: x.sum() * y, "n + m, m + k", "n + k", n=(1, 2, 3), m=(2, 1, 4), k=(1, 3, 2)
    ),
    "halves put together again": polymorphic(
        lambda x: jnp.concatenate([x[: x.shape[0] // 2], x[x.shape[0] // 2 :]]) + x, "n"
    ),
    "blocks and what is left": polymorphic(
        lambda x: jnp.concatenate([x[: 4 * (x.shape[0] // 4)], x[: x.shape[0] % 4]]) * x, "n"
    ),
    "patches of an image": polymorphic(
        lambda x: x.reshape(x.shape[0] // 2, 2, x.shape[1] // 2, 2).transpose(0, 2, 1, 3).reshape(-1, 4),
        "h, w",
        constraints=("mod(h, 2) == 0", "mod(w, 2) == 0"),
        h=(2, 4, 6),
        w=(4, 2, 8),
    ),
    "windows with overlap": polymorphic(
        lambda x: x[: 2 * ((x.shape[0] - 3) // 2) + 1 : 2] + x[2::2][: (x.shape[0] - 3) // 2 + 1],
        "n",
        constraints=("n >= 3",),
        n=(3, 6, 9),
    ),
}
