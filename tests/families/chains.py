"""Chains of operations that move, combine and change elements, as programs have them and optimizers rewrite them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from hypothesis import strategies as st
from jax import lax

from .case import Argument, Case, Draw, Sizes

__all__ = ["chained"]

Step = Callable[[Any, Any, int], Any]


def _axis(x: Any, k: int) -> int:
    return k % x.ndim if x.ndim else 0


def _matrix(x: Any) -> Any:
    return x if x.ndim > 1 else x.reshape(1, -1)


def _vector(x: Any) -> Any:
    return x if x.ndim else x.reshape(1)


def _permutation(x: Any, k: int) -> list[int]:
    axes = list(range(x.ndim))
    turned = axes[k % (x.ndim or 1) :] + axes[: k % (x.ndim or 1)]
    return turned if k < 4 else turned[::-1]


def _small(x: Any) -> Any:
    """Numbers small enough to stay exact in what follows."""
    return lax.rem(x, jnp.asarray(8, x.dtype))


def _from_second(x: Any, axis: int) -> Any:
    """The array without its first element along an axis.

    Of an array concatenated with an empty one nothing may be left: XLA, as JAX 0.10.2 and TensorFlow 2.21 have it, ends
    the process when it takes the two for one slice, which the barrier keeps it from.
    """
    return lax.slice_in_dim(lax.optimization_barrier(x), 1, None, axis=axis)


def _halves(x: Any, k: int, one: Callable[[Any], Any], other: Callable[[Any], Any]) -> Any:
    x = _vector(x)
    axis = _axis(x, k)
    start, rest = lax.slice_in_dim(x, 0, 1, axis=axis), _from_second(x, axis)
    return jnp.concatenate([one(start), other(rest)], axis)


# Each takes the array, the one before it, and a number.
MOVES: dict[str, Step] = {
    "transpose": lambda x, y, k: x.transpose(_permutation(x, k)),
    "turn and back": lambda x, y, k: (-x.transpose(_permutation(x, k))).transpose(
        [_permutation(x, k).index(axis) for axis in range(x.ndim)]
    ),
    "flatten": lambda x, y, k: x.reshape(-1),
    "merge": lambda x, y, k: x.reshape(*_matrix(x).shape[:-2], -1),
    "new axis": lambda x, y, k: jnp.expand_dims(x, k % (x.ndim + 1)) if x.ndim < 4 else x,
    "to pairs": lambda x, y, k: jnp.stack([x, x + 1], k % (x.ndim + 1)) if x.ndim < 4 else x,
    "unstack": lambda x, y, k: sum(_vector(x)[i] for i in range(2)),
    "broadcast": lambda x, y, k: jnp.broadcast_to(x, (2, *x.shape)) if x.ndim < 4 else x,
    "tile": lambda x, y, k: jnp.tile(_vector(x), (2, *(1,) * (x.ndim - 1))),
    "repeat": lambda x, y, k: jnp.repeat(_vector(x), 2, axis=_axis(x, k)),
    "concatenate": lambda x, y, k: jnp.concatenate([_vector(x), -_vector(x)], _axis(x, k)),
    "concatenate three": lambda x, y, k: jnp.concatenate([_vector(x)] * 3, _axis(x, k)),
    "same to both parts": lambda x, y, k: _halves(x, k, jnp.negative, jnp.negative),
    "absolute values of parts": lambda x, y, k: _halves(x, k, jnp.abs, lambda part: jnp.abs(-part)),
    "each part its own": lambda x, y, k: _halves(x, k, jnp.negative, jnp.abs),
    "reverse": lambda x, y, k: jnp.flip(_vector(x), _axis(x, k)),
    "from the second": lambda x, y, k: _from_second(_vector(x), _axis(x, k)),
    "every second": lambda x, y, k: lax.slice_in_dim(_vector(x), 0, None, 2, axis=_axis(x, k)),
    "roll": lambda x, y, k: jnp.roll(_vector(x), k, _axis(x, k)),
    "pad": lambda x, y, k: jnp.pad(_vector(x), 1, constant_values=k),
    "pad edge": lambda x, y, k: jnp.pad(_vector(x), 1, mode="edge"),
    "diagonal": lambda x, y, k: jnp.diagonal(_matrix(x), k - 2),
    "triangle": lambda x, y, k: jnp.tril(_matrix(x), k - 2),
    "rows": lambda x, y, k: jnp.take(_vector(x), jnp.array([0, k, 0]), axis=_axis(x, k), mode="clip"),
    "row": lambda x, y, k: _vector(x)[0],
    "last": lambda x, y, k: _vector(x)[..., -1],
    "set": lambda x, y, k: _vector(x).at[..., 0].set(jnp.asarray(k, x.dtype)),
    "add at": lambda x, y, k: _vector(x).at[jnp.array([0, 0])].add(jnp.asarray(1, x.dtype)),
}
COMBINES: dict[str, Step] = {
    "sum": lambda x, y, k: _small(jnp.sum(_vector(x), _axis(x, k), dtype=x.dtype)),
    "sum of all": lambda x, y, k: _small(jnp.sum(x, dtype=x.dtype)),
    "sum of two axes": lambda x, y, k: _small(jnp.sum(_matrix(x), (0, -1), dtype=x.dtype)),
    "sum kept": lambda x, y, k: _small(x - jnp.sum(_vector(x), _axis(x, k), keepdims=True, dtype=x.dtype)),
    "largest": lambda x, y, k: jnp.max(_vector(x), _axis(x, k), initial=-7 if x.dtype.kind == "f" else 0),
    "largest kept": lambda x, y, k: x * jnp.max(_vector(x), _axis(x, k), keepdims=True, initial=0),
    "least of negated": lambda x, y, k: jnp.min(-_vector(x), _axis(x, k), initial=0),
    "largest of floors": lambda x, y, k: jnp.max(jnp.floor_divide(_vector(x), 2), _axis(x, k), initial=0),
    "product": lambda x, y, k: _small(jnp.prod(_vector(x), _axis(x, k), dtype=x.dtype)),
    "place of the largest": lambda x, y, k: jnp.argmax(jnp.pad(_vector(x), 1), _axis(x, k)).astype(x.dtype),
    "any": lambda x, y, k: jnp.any(_vector(x) > k, _axis(x, k)).astype(x.dtype),
    "all": lambda x, y, k: jnp.all(_vector(x) <= k, _axis(x, k)).astype(x.dtype),
    "running sum": lambda x, y, k: _small(jnp.cumsum(_vector(x), _axis(x, k), dtype=x.dtype)),
    "running largest": lambda x, y, k: lax.cummax(_vector(x), _axis(x, k)),
    "sort": lambda x, y, k: jnp.sort(_vector(x), _axis(x, k)),
    "order": lambda x, y, k: jnp.argsort(_vector(x), _axis(x, k)).astype(x.dtype),
    "with its transpose": lambda x, y, k: _small(_matrix(x) @ jnp.swapaxes(_matrix(x), -1, -2)),
    "transpose with it": lambda x, y, k: _small(jnp.swapaxes(_matrix(x), -1, -2) @ _matrix(x)),
    "turned after": lambda x, y, k: _small(jnp.swapaxes(_matrix(x) @ jnp.swapaxes(_matrix(x), -1, -2), -1, -2)),
    "with itself": lambda x, y, k: _small(jnp.einsum("...i,...i->...", _vector(x), _vector(x))),
    "outer": lambda x, y, k: _small(x[..., None] * _vector(x)[..., None, :]) if x.ndim < 4 else x,
    "with constants": lambda x, y, k: _small(
        jnp.einsum("...i,j->...j", _vector(x), jnp.arange(3).astype(x.dtype)) if x.ndim < 4 else x
    ),
    "with the first row": lambda x, y, k: _small(_matrix(x) - _matrix(x)[..., :1, :]),
    "with what was before": lambda x, y, k: _small(x * y) if x.shape == y.shape else x,
    "in a loop": lambda x, y, k: _small(lax.fori_loop(0, k, lambda i, z: z + x * i.astype(x.dtype), x)),
    "in a scan": lambda x, y, k: lax.scan(lambda c, e: (_small(c + e), c - e), _vector(x)[0] * 0, _vector(x))[1],
    "in a branch": lambda x, y, k: lax.cond(jnp.sum(x) > k, lambda z: -z, lambda z: z + 1, x),
    "mapped": lambda x, y, k: jax.vmap(lambda row: jnp.sum(row, dtype=x.dtype) - row)(_vector(x)),
}
CHANGES: dict[str, Step] = {
    "negative": lambda x, y, k: -x,
    "absolute": lambda x, y, k: jnp.abs(x),
    "sign": lambda x, y, k: jnp.sign(x),
    "doubled": lambda x, y, k: _small(x * 2),
    "and one": lambda x, y, k: x + 1,
    "and one less two": lambda x, y, k: (x + 1) - 2,
    "square": lambda x, y, k: _small(x * x),
    "square of a difference": lambda x, y, k: _small((x - jnp.flip(x)) * (x - jnp.flip(x))),
    "from zero": lambda x, y, k: 0 - x,
    "not negative": lambda x, y, k: jnp.maximum(x, 0),
    "at most": lambda x, y, k: jnp.minimum(x, k),
    "clipped": lambda x, y, k: jnp.clip(x, 1, k),
    "by int32": lambda x, y, k: jnp.nan_to_num(x).astype("int32").astype(x.dtype),
    "by bfloat16": lambda x, y, k: _small(x).astype("bfloat16").astype(x.dtype),
    "by bool": lambda x, y, k: (x > 0).astype(x.dtype),
    "where": lambda x, y, k: jnp.where(x > k, x, -x),
    "where not": lambda x, y, k: jnp.where(~(x < k), x, 1),
    "even": lambda x, y, k: (jnp.floor_divide(x, 2) * 2 == x).astype(x.dtype),
    "one hot": lambda x, y, k: (
        jax.nn.one_hot(jnp.nan_to_num(x).astype("int32"), 3, dtype=x.dtype, axis=0) if x.ndim < 4 else x
    ),
}
STEPS = MOVES | COMBINES | CHANGES
EXTREMES = {
    *("largest", "largest kept", "least of negated", "largest of floors", "running largest"),
    *("not negative", "at most", "clipped"),
}


@st.composite
def chained(draw: Draw) -> Case:
    """Up to six steps, each of an array of any rank; numbers stay small, so that every result is exact."""
    sizes = Sizes(draw)
    shape = sizes.shape(0, 3, 4)
    groups = st.sampled_from([MOVES, MOVES, COMBINES, CHANGES])
    names = [draw(groups.flatmap(lambda group: st.sampled_from(list(group)))) for _ in range(draw(st.integers(1, 6)))]
    numbers = [draw(st.integers(0, 6)) for _ in names]
    dtype = draw(st.sampled_from(["float32", "float32", "float64", "int32", "int16", "uint8"]))
    values = draw(st.sampled_from(["small", "small", "small", "special"]))

    def function(x: Any) -> Any:
        before = x
        for name, number in zip(names, numbers, strict=True):
            before, x = x, STEPS[name](x, before, number).astype(dtype)
        return x

    return Case(
        f"chained {[*zip(names, numbers, strict=True)]} of {dtype}",
        function,
        (Argument(shape, dtype, values),),
        sizes.symbolic,
        has_derivative=dtype.startswith("float") and values == "small",
        tags=frozenset({values, "max" if EXTREMES & {*names} else "", *names}),
    )
