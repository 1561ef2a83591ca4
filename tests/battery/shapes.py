"""Making and reshaping arrays: every size of a result is computed from symbolic sizes."""

import jax
import jax.numpy as jnp
import numpy as np

from .entry import NO_INDEX, Entry, polymorphic, ramp, refused

ENTRIES: dict[str, Entry] = {
    # ranges
    "arange": polymorphic(lambda x: x[:, 0] * jnp.arange(x.shape[0]), "b, 4"),
    "arange with start and stop": polymorphic(lambda x: jnp.arange(2, x.shape[0] + 2) + x[:, 0], "b, 4"),
    "arange with a step": polymorphic(lambda x: jnp.arange(0, 3 * x.shape[0], 3), "b, 4", differentiable=False),
    "arange with a step that does not divide": polymorphic(lambda x: jnp.arange(0, x.shape[0], 2) * x[0, 0], "b, 4"),
    "arange downwards": polymorphic(lambda x: jnp.arange(x.shape[0], 0, -1) * x[:, 0], "b, 4"),
    "arange of floats": polymorphic(lambda x: jnp.arange(x.shape[0], dtype=jnp.float32) * x[:, 1], "b, 4"),
    "linspace with symbolic num": polymorphic(
        lambda x: jnp.linspace(0.0, 1.0, x.shape[0]) * x[:, 0], "n, 4", constraints=("n >= 2",)
    ),
    "linspace between arrays": polymorphic(lambda x: jnp.linspace(x[0], x[-1], 5), "b, d"),
    "linspace without endpoint": polymorphic(
        lambda x: jnp.linspace(0.0, 2.0, 2 * x.shape[0], endpoint=False) + x.sum(), "b, 2"
    ),
    "logspace": refused(NO_INDEX, polymorphic(lambda x: jnp.logspace(0.0, 1.0, x.shape[0]) * x[:, 0], "n, 2")),
    "meshgrid": polymorphic(lambda x, y: jnp.meshgrid(x, y, indexing="ij"), "b", "d"),
    "indices": refused(NO_INDEX, polymorphic(lambda x: jnp.indices(x.shape).sum(0) * x, "b, d")),
    "iota of two dimensions": polymorphic(
        lambda x: x + jax.lax.broadcasted_iota(jnp.int32, (x.shape[0], 4), 0), "b, 4"
    ),
    # filled
    "zeros and ones": polymorphic(
        lambda x: jnp.zeros((x.shape[0], 2)) + jnp.ones((1, x.shape[1] * 2))[:, :2] * x[:, :1], "b, d"
    ),
    "full and full_like": polymorphic(
        lambda x: jnp.full((x.shape[0], 2), 3.5) * x[:, :1] + jnp.full_like(x, 2)[:, :1], "b, d"
    ),
    "eye": polymorphic(lambda x: jnp.eye(x.shape[0]) @ x, "b, 4"),
    "eye of a rectangle with an offset": polymorphic(lambda x: jnp.eye(x.shape[0], x.shape[1], k=1) * x, "b, d"),
    "tril and triu": polymorphic(lambda x: (jnp.tril(x), jnp.triu(x, k=1)), "b, d"),
    "tri": polymorphic(lambda x: jnp.tri(x.shape[0], x.shape[1]) * x, "b, d"),
    "diag of a vector": polymorphic(jnp.diag, "b"),
    "diag of a matrix": polymorphic(lambda x: jnp.diag(x @ x.T), "b, 4"),
    "diagonal and trace": polymorphic(lambda x: (jnp.diagonal(x), jnp.trace(x)), "b, b"),
    "vander": polymorphic(lambda x: jnp.vander(x, 4), "b"),
    "one_hot of symbolic classes": polymorphic(
        lambda x, i: x @ jax.nn.one_hot(i, x.shape[1]).T, "b, d", "n", dtypes="float32 int32"
    ),
    # reshaping
    "reshape to a vector": polymorphic(lambda x: x.reshape(-1) * 2, "b, 4"),
    "reshape with one size inferred": polymorphic(lambda x: x.reshape(x.shape[0], -1) ** 2, "b, 3, 2*d"),
    "reshape a pair out": polymorphic(lambda x: x.reshape(x.shape[0], -1, 2).sum(axis=2), "b, 2*d"),
    "reshape to halves": polymorphic(lambda x: x.reshape(2, x.shape[0] // 2, 3).sum(0), "2*d, 3"),
    "reshape where a constraint makes the size divide": polymorphic(
        lambda x: x.reshape(x.shape[0] // 4, 4).max(1), "n", constraints=("mod(n, 4) == 0",), n=(4, 8, 16)
    ),
    "ravel and restore": polymorphic(lambda x: jnp.ravel(x)[::-1].reshape(x.shape), "b, d, 2"),
    "expand_dims and squeeze": polymorphic(
        lambda x: jnp.squeeze(jnp.expand_dims(x, 1), 1) * x[:, None, :].sum(1), "b, d"
    ),
    "transpose": polymorphic(lambda x: x.T * 2, "b, d"),
    "swapaxes and moveaxis": polymorphic(lambda x: jnp.moveaxis(jnp.swapaxes(x, 0, 1), -1, 0), "b, d, 3"),
    "broadcast_to": polymorphic(lambda x: jnp.broadcast_to(x, (3, *x.shape)) * ramp(3, 1, 1), "b, d"),
    "broadcasting of two sizes": polymorphic(lambda x, y: x[:, None] * y[None, :] + x.shape[0], "b", "d"),
    "broadcast_arrays": polymorphic(lambda x, y: jnp.broadcast_arrays(x[:, None], y), "b", "d"),
    "atleast_3d": polymorphic(jnp.atleast_3d, "b, d"),
    # joining and splitting
    "concatenate with itself": polymorphic(lambda x: jnp.concatenate([x, x * 2, x[:1]]), "b, 4"),
    "concatenate of two sizes": polymorphic(lambda x, y: jnp.concatenate([x, y]), "b, 3", "d, 3"),
    "stack": polymorphic(lambda x, y: jnp.stack([x, y], axis=1), "b, d", "b, d"),
    "hstack, vstack and dstack": polymorphic(
        lambda x: (jnp.hstack([x, x]), jnp.vstack([x, x]), jnp.dstack([x, x])), "b, d"
    ),
    "column_stack and append": polymorphic(lambda x, y: (jnp.column_stack([x, y]), jnp.append(x, y)), "b", "b"),
    "split in equal parts": polymorphic(lambda x: jnp.split(x, 2, axis=1), "b, 2*d"),
    "split at places": polymorphic(lambda x: jnp.split(x, [1, x.shape[0] - 1]), "n, 2", constraints=("n >= 3",)),
    "array_split of a known axis": polymorphic(lambda x: jnp.array_split(x, 3, axis=1), "b, 8"),
    "block": polymorphic(lambda x: jnp.block([[x, x * 2], [x * 3, x * 4]]), "b, d"),
    "delete and insert": polymorphic(lambda x: (jnp.delete(x, 0, axis=1), jnp.insert(x, 1, 5.0, axis=1)), "b, 4"),
    # repetition and order
    "roll by a constant": polymorphic(lambda x: jnp.roll(x, 1, axis=0) - x, "b, 4"),
    "roll by a symbolic size": polymorphic(lambda x: jnp.roll(x, x.shape[1] // 2, axis=1), "b, d"),
    "roll of two axes": polymorphic(lambda x: jnp.roll(x, (1, 2), axis=(0, 1)), "b, d"),
    "flip": polymorphic(lambda x: (jnp.flip(x, 0), x[::-1, ::-1]), "b, d"),
    "rot90": polymorphic(jnp.rot90, "b, d"),
    "tile": polymorphic(lambda x: jnp.tile(x, (2, 3)), "b, d"),
    "tile by a symbolic number": polymorphic(lambda x: jnp.tile(ramp(3), x.shape[0]).reshape(x.shape) * x, "b, 3"),
    "repeat each": polymorphic(lambda x: jnp.repeat(x, 3, axis=0), "b, 2"),
    "repeat by numbers with the total given": polymorphic(
        lambda x: jnp.repeat(x, jnp.array([1, 2, 0, 1]), axis=1, total_repeat_length=4), "b, 4"
    ),
    # padding
    "pad with a constant": polymorphic(lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=7.0), "b, d"),
    "pad at the edge": polymorphic(lambda x: jnp.pad(x, ((1, 1), (2, 0)), mode="edge"), "b, d"),
    "pad by reflection": polymorphic(
        lambda x: jnp.pad(x, ((1, 1), (0, 0)), mode="reflect"), "n, 2", constraints=("n >= 2",)
    ),
    "pad by symmetry": polymorphic(
        lambda x: jnp.pad(x, ((1, 1), (0, 0)), mode="symmetric"), "n, 2", constraints=("n >= 2",)
    ),
    "pad around": polymorphic(lambda x: jnp.pad(x, ((1, 1), (0, 0)), mode="wrap"), "n, 2", constraints=("n >= 2",)),
    "pad with a ramp": polymorphic(lambda x: jnp.pad(x, ((2, 2), (0, 0)), mode="linear_ramp"), "n, 2"),
    "pad with the mean": polymorphic(lambda x: jnp.pad(x, ((1, 0), (0, 0)), mode="mean"), "n, 2"),
    "pad inside and cut": polymorphic(lambda x: jax.lax.pad(x, 0.0, ((1, -1, 1), (0, 0, 2))), "n, d"),
    "pad to a symbolic size": polymorphic(
        lambda x, y: jnp.pad(x, (0, y.shape[0] - x.shape[0])) + y,
        "b",
        "n",
        constraints=("n >= b",),
        b=(1, 3, 6),
    ),
    # sizes in arithmetic
    "a size times an array": polymorphic(lambda x: x.shape[0] * x + x.shape[1], "b, d"),
    "a size under division": polymorphic(lambda x: x.sum(0) / x.shape[0], "b, 3"),
    "an array of sizes": polymorphic(lambda x: jnp.array(x.shape), "b, 2*d", differentiable=False),
    "sizes with NumPy's numbers": polymorphic(
        lambda x: x * (x.shape[0] * np.float32(0.5)) + np.arange(3, dtype=np.float32) * x.shape[1], "b, 3"
    ),
    "quotient and remainder of a size": polymorphic(
        lambda x: jnp.zeros(x.shape[0] // 2 + 1) + jnp.array(x.shape[0] % 3) + x.sum(), "b, 2"
    ),
    "the larger of two sizes": polymorphic(
        lambda x, y: jnp.zeros(jax.core.max_dim(x.shape[0], y.shape[0])).at[: x.shape[0]].set(x), "b", "d"
    ),
    "the smaller of two sizes": polymorphic(
        lambda x, y: x[: jax.core.min_dim(x.shape[0], y.shape[0])].sum() * y, "b", "d"
    ),
    "a size cut at zero": polymorphic(lambda x: jnp.ones(jax.core.max_dim(x.shape[0] - 2, 0)).sum() + x, "b"),
    "the number of elements": polymorphic(lambda x: x.size * x / np.prod(x.shape), "b, d"),
    "a square root of a size": polymorphic(lambda x: x / jnp.sqrt(x.shape[1]), "b, d"),
}
