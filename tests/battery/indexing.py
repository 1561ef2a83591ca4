"""Reading and writing parts of arrays, ordering and searching them."""

import jax
import jax.numpy as jnp

from .entry import NEEDS_CONSTANT, NO_INDEX, Entry, gradient_refused, polymorphic, refused

ENTRIES: dict[str, Entry] = {
    # slices
    "slice of a prefix": polymorphic(lambda x: x[:1] + x[:, :1], "b, d"),
    "slice without the ends": polymorphic(lambda x: x[1:-1], "n, 2"),
    "slice from a negative index": polymorphic(lambda x: x[-3:], "n, 2"),
    "slice to a symbolic size": polymorphic(lambda x: x[: x.shape[0] // 2], "n, 2"),
    "slice with a step": polymorphic(lambda x: x[::2], "n, 2"),
    "slice with a step and an offset": polymorphic(lambda x: x[1::3], "n, 2"),
    "slice backwards with a step": polymorphic(lambda x: x[::-2], "n, 2"),
    "slice of even and odd places": polymorphic(lambda x: x[:, ::2] * x[:, 1::2], "b, 2*d"),
    "slice beyond the end": polymorphic(lambda x: x[:, 2:7], "b, n"),
    "last row": polymorphic(lambda x: x[-1] * x[0], "b, d"),
    "two axes and a new one": polymorphic(lambda x: x[..., None, -1], "b, d, 2"),
    "differences of neighbours": polymorphic(
        lambda x: (jnp.diff(x, axis=0), jnp.gradient(x, axis=0)), "n, 2", constraints=("n >= 2",)
    ),
    "ediff1d and trapezoid": polymorphic(lambda x: (jnp.ediff1d(x), jnp.trapezoid(x)), "n"),
    # gathers
    "gather of rows by an array": polymorphic(lambda x: x[jnp.array([0, 0, -1])], "b, d"),
    "gather backwards": polymorphic(lambda x: x[jnp.arange(x.shape[0])[::-1], 1], "b, 4"),
    "gather by integer arguments": polymorphic(lambda x, i: x[i % x.shape[0]], "b, d", "n", dtypes="float32 int32"),
    "gather of pairs": polymorphic(lambda x, i: x[i % x.shape[0], i % x.shape[1]], "b, d", "n", dtypes="float32 int32"),
    "take along symbolic axis": polymorphic(
        lambda x, i: jnp.take(x, i, axis=1, mode="clip"), "b, d", "n", dtypes="float32 int32"
    ),
    "take with filling": polymorphic(
        lambda x, i: jnp.take(x, i, axis=0, mode="fill", fill_value=0.0), "b, 2", "n", dtypes="float32 int32"
    ),
    "take with wrapping": refused(
        NEEDS_CONSTANT,
        polymorphic(lambda x, i: jnp.take(x, i, axis=0, mode="wrap"), "b, 2", "n", dtypes="float32 int32"),
    ),
    "take_along_axis": polymorphic(lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1), "b, d"),
    "gather out of bounds": polymorphic(
        lambda x, i: x.at[i].get(mode="fill", fill_value=-1.0), "b, 2", "n", dtypes="float32 int32"
    ),
    "choose": refused(
        NO_INDEX,
        polymorphic(
            lambda i, x, y: jnp.choose(i % 2, [x, y], mode="clip"), "b, d", "b, d", "b, d", dtypes="int32 float32"
        ),
    ),
    "where": polymorphic(lambda c, x: jnp.where(c, x, -x), "b, d", "b, d", dtypes="bool float32"),
    "select": polymorphic(lambda x: jnp.select([x > 2, x > 1], [x, x * 2], 0.5), "b, d"),
    "clip": polymorphic(lambda x: jnp.clip(x, 1.0, 2.0), "b, d"),
    "compress and extract with size": polymorphic(
        lambda x: jnp.compress(x > 1.5, x, size=4, fill_value=0.0), "n", constraints=("n >= 4",)
    ),
    "boolean mask with a where": polymorphic(lambda x: jnp.sum(x, axis=0, where=x > 1.5), "b, d"),
    # scatters
    "scatter set": polymorphic(lambda x: x.at[0].set(5.0), "b, d"),
    "scatter add at symbolic places": polymorphic(
        lambda x: jnp.zeros(x.shape[0] + 1).at[jnp.arange(x.shape[0])].add(x[:, 0]), "b, 4"
    ),
    "scatter into slices": polymorphic(lambda x: x.at[:, ::2].multiply(3.0), "b, d"),
    "scatter max and min": polymorphic(
        lambda x, i: (x.at[i].max(1.2), x.at[i].min(1.7)), "b, 2", "n", dtypes="float32 int32", differentiable=False
    ),
    "scatter dropping what does not fit": polymorphic(
        lambda x, i, y: x.at[i].add(y, mode="drop"), "b", "n", "n", dtypes="float32 int32 float32"
    ),
    "scatter the last element": polymorphic(lambda x: x.at[-1].add(x.shape[0]), "b, d"),
    "segment_sum": polymorphic(
        lambda x, i: jax.ops.segment_sum(x, i, num_segments=4), "b, d", "b", dtypes="float32 int32"
    ),
    "segment_sum to symbolic segments": polymorphic(
        lambda x, i, y: jax.ops.segment_sum(x, i, num_segments=y.shape[0]) * y,
        "b",
        "b",
        "n",
        dtypes="float32 int32 float32",
    ),
    "segment_max": polymorphic(
        lambda x, i: jax.ops.segment_max(x, i, num_segments=3),
        "b, d",
        "b",
        dtypes="float32 int32",
        differentiable=False,
    ),
    "segment_prod of sorted segments": polymorphic(
        lambda x: jax.ops.segment_prod(
            x, jnp.arange(x.shape[0]) // 2, num_segments=x.shape[0] // 2 + 1, indices_are_sorted=True
        ),
        "b",
        differentiable=False,
    ),
    # dynamic slices
    "dynamic_slice of known size": polymorphic(
        lambda x, i: jax.lax.dynamic_slice(x, (i[0], 0), (2, x.shape[1])),
        "n, d",
        "1",
        dtypes="float32 int32",
        constraints=("n >= 2",),
    ),
    "dynamic_slice of symbolic size": polymorphic(
        lambda x, i: jax.lax.dynamic_slice_in_dim(x, i[0], x.shape[0] - 1, axis=0), "n, d", "1", dtypes="float32 int32"
    ),
    "dynamic_index_in_dim": polymorphic(
        lambda x: jax.lax.dynamic_index_in_dim(x, x.shape[0] - 1, axis=0, keepdims=False), "b, d"
    ),
    "dynamic_update_slice": polymorphic(
        lambda x, y: jax.lax.dynamic_update_slice(x, y, (1, 0)), "n, d", "2, d", constraints=("n >= 2",)
    ),
    "dynamic_update_slice at the middle": polymorphic(
        lambda x: jax.lax.dynamic_update_index_in_dim(x, x[0] * 2, x.shape[0] // 2, axis=0), "b, d"
    ),
    "slice_in_dim with a stride": polymorphic(
        lambda x: jax.lax.slice_in_dim(x, 1, x.shape[1], stride=2, axis=1), "b, n", constraints=("n >= 2",)
    ),
    "slice_in_dim that may be empty": gradient_refused(
        "Expected cotangent type float32[b,n]",
        polymorphic(lambda x: jax.lax.slice_in_dim(x, 1, x.shape[1], stride=2, axis=1), "b, n", n=(1, 2, 5)),
    ),
    # order
    "sort": polymorphic(lambda x: jnp.sort(x, axis=0), "b, 4"),
    "sort downwards": polymorphic(lambda x: jnp.sort(x, axis=-1, descending=True), "b, d"),
    "sort of integers": polymorphic(lambda x: jnp.sort(x, axis=0), "b, 4", dtypes="int32"),
    "argsort": polymorphic(lambda x: jnp.argsort(x, axis=0), "b, 4", differentiable=False),
    "sort of keys with values": polymorphic(lambda x, y: jax.lax.sort((x, y), num_keys=1), "b, d", "b, d"),
    "lexsort": polymorphic(lambda x, y: jnp.lexsort((x, y)), "n", "n", dtypes="int32"),
    "top_k": polymorphic(lambda x: jax.lax.top_k(x, 2), "b, 4"),
    "top_k of a symbolic axis": polymorphic(
        lambda x: jax.lax.top_k(x, 3)[0], "b, n", n=(4, 3, 6), constraints=("n >= 3",)
    ),
    "argmax and argmin": polymorphic(
        lambda x: (jnp.argmax(x, axis=0), jnp.argmin(x, axis=1, keepdims=True)), "b, d", differentiable=False
    ),
    "argmax of all": polymorphic(jnp.argmax, "b, d", differentiable=False),
    "partition": polymorphic(lambda x: jnp.partition(x, 2, axis=1), "b, 5", differentiable=False),
    "unravel_index": polymorphic(
        lambda x: jnp.unravel_index(jnp.argmax(x), (x.shape[0], 4)), "b, 4", differentiable=False
    ),
    # sets and counts
    "unique with size": polymorphic(lambda x: jnp.unique(x, size=5, fill_value=-1), "n", dtypes="int32"),
    "nonzero with size": polymorphic(lambda x: jnp.nonzero(x, size=4, fill_value=0), "n", dtypes="bool"),
    "argwhere with symbolic size": polymorphic(
        lambda x: jnp.argwhere(x > 3, size=x.shape[0], fill_value=-1), "n", dtypes="int32"
    ),
    "where with size": polymorphic(lambda x: jnp.where(x > 1.5, size=3, fill_value=0)[0], "n", differentiable=False),
    "bincount with length": polymorphic(
        lambda i, w: jnp.bincount(i, weights=w, length=12), "n", "n", dtypes="int32 float32"
    ),
    "bincount with symbolic length": polymorphic(
        lambda i, x: jnp.bincount(i, length=x.shape[0]) * x, "n", "m", dtypes="int32 float32"
    ),
    "histogram": polymorphic(lambda x: jnp.histogram(x, bins=4, range=(0.0, 3.0)), "b, d", differentiable=False),
    "digitize": polymorphic(lambda x: jnp.digitize(x, jnp.array([1.0, 1.5, 2.0])), "b, d", differentiable=False),
    "isin": polymorphic(jnp.isin, "b, d", "n", dtypes="int32"),
    "searchsorted in an array of known size": polymorphic(
        lambda x: jnp.searchsorted(jnp.array([0.7, 1.1, 1.9]), x), "b, d", differentiable=False
    ),
    "searchsorted by comparison": refused(
        NEEDS_CONSTANT,
        polymorphic(
            lambda a, x: jnp.searchsorted(jnp.sort(a), x, method="compare_all"), "n", "b", differentiable=False
        ),
    ),
    "searchsorted by sorting": refused(
        NEEDS_CONSTANT,
        polymorphic(lambda a, x: jnp.searchsorted(jnp.sort(a), x, method="sort"), "n", "b", differentiable=False),
    ),
    "interp": polymorphic(lambda x: jnp.interp(x, jnp.array([0.0, 1.0, 3.0]), jnp.array([1.0, 4.0, 2.0])), "b, d"),
}
