"""JAX programs of random steps, for comparing the backends that run one.

A program takes `x`, of shape `(b, 3, 2)` for any batch size `b`, and `y`, of shape `(3, 2)`; each step makes one more
array of those that are there. It returns the last one, and a number that all of them enter, to be differentiated.

`programs()` is a strategy of hypothesis, which shrinks what fails to few steps; they are printed by name. Makers of
steps know the shapes that there are, with `BATCH` for the size that is symbolic, and draw what else they need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax

__all__ = ["ARGUMENT_SHAPES", "POLYMORPHIC_SHAPES", "Program", "arguments", "programs"]

BATCH = "b"
ARGUMENT_SHAPES = ((BATCH, 3, 2), (3, 2))
POLYMORPHIC_SHAPES = ["(b, 3, 2)", None]
RANK, SIZE = 4, 12  # of arrays, at most: programs grow otherwise

Shape = tuple[int | str, ...]
Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Step:
    """One operation on arrays that are there.

    Attributes:
      name: What it does, for messages.
      operands: Their places among the arrays.
      shape: Of the result.
      apply: What does it.
    """

    name: str
    operands: tuple[int, ...]
    shape: Shape
    apply: Callable[..., jax.Array] = field(repr=False)


@dataclass(frozen=True)
class Program:
    """A function of `x` and `y`.

    Attributes:
      steps: In order.
    """

    steps: tuple[Step, ...]

    def __call__(self, x: jax.Array, y: jax.Array, noise: jax.Array | None = None) -> list[jax.Array]:
        """The last array, and the sum of the means of all that were made.

        Args:
          x: The first argument.
          y: The second one.
          noise: How far from its value each array that is made may be, relative to its largest element; as it
            is, by default.
        """
        arrays = [jnp.asarray(x), jnp.asarray(y)]
        for step in self.steps:
            made = step.apply(*(arrays[place] for place in step.operands))
            if noise is not None:
                waves = jnp.sin(1.0 + 2.3 * len(arrays) + 1.7 * jnp.arange(made.size)).reshape(made.shape)
                made += lax.stop_gradient(noise * jnp.abs(made).max(initial=0) * waves)
            arrays.append(made)
        return [arrays[-1], sum(jnp.mean(array) for array in arrays[2:])]


def arguments(batch: int, seed: int) -> list[np.ndarray]:
    """Arguments for a batch size."""
    random = np.random.default_rng([seed, batch])
    return [
        random.standard_normal([batch if size == BATCH else size for size in shape]).astype(np.float32)
        for shape in ARGUMENT_SHAPES
    ]


@st.composite
def programs(draw: Draw) -> Program:
    """Programs of up to twelve steps; what fits nowhere is left out."""
    shapes: list[Shape] = list(ARGUMENT_SHAPES)
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, 12))):
        step = draw(st.sampled_from(MAKERS))(draw, shapes)
        if step is not None and len(step.shape) <= RANK and all(size == BATCH or size <= SIZE for size in step.shape):
            steps.append(step)
            shapes.append(step.shape)
    return Program(tuple(steps) or (Step("sin", (0,), shapes[0], jnp.sin),))


# --- what steps are made of ---

# Smooth or not, they are defined everywhere and do not grow.
ELEMENTWISE: dict[str, Callable[[Any], Any]] = {
    "sin": jnp.sin,
    "tanh": jnp.tanh,
    "negative": jnp.negative,
    "sigmoid": jax.nn.sigmoid,
    "relu": jax.nn.relu,
    "softplus": jax.nn.softplus,
    "gelu": lambda a: jax.nn.gelu(a, approximate=False),
    "erf": lax.erf,
    "exp of minus abs": lambda a: jnp.exp(-jnp.abs(a)),
    "sqrt": lambda a: jnp.sqrt(1 + a * a),
    "rsqrt": lambda a: lax.rsqrt(1 + a * a),
    "log1p of abs": lambda a: jnp.log1p(jnp.abs(a)),
    "inverse": lambda a: 1 / (2 + jnp.abs(a)),
    "maximum with -inf": lambda a: jnp.maximum(a, -jnp.inf),
    "clip": lambda a: jnp.clip(a, -0.3, 0.4),
    "by way of integers": lambda a: (a * 3).astype(jnp.int32).astype(jnp.float32) + a,
    "where above": lambda a: jnp.where(a > 0.1, a, 0.5),
    "checkpoint": jax.checkpoint(lambda a: jnp.sin(jnp.sin(a))),
    "function of its own": jax.jit(lambda a: jnp.cos(a) * a.ndim),
    "while loop": lambda a: lax.fori_loop(0, 3, lambda _, b: jnp.tanh(b) + 0.1, a),
    "cond": lambda a: lax.cond(a.mean() > 0, jnp.sin, lambda b: b * 0.5, a),
    "remainder": lambda a: jnp.remainder(a, 0.7),
    "round": lambda a: jnp.round(a * 2) + a,
    "sign": lambda a: jnp.sign(a) + a,
}

PAIRWISE: dict[str, Callable[[Any, Any], Any]] = {
    "add": jnp.add,
    "subtract": jnp.subtract,
    "multiply": jnp.multiply,
    "maximum": jnp.maximum,
    "minimum": jnp.minimum,
    "divide": lambda a, b: a / (2 + jnp.abs(b)),
    "arctan2": lambda a, b: jnp.arctan2(a, 2 + jnp.abs(b)),
    "power": lambda a, b: jnp.power(1.5 + jnp.abs(a), jnp.tanh(b)),
    "where": lambda a, b: jnp.where(jnp.logical_or(a > 0.1, b < -0.2), b * 2, a),
    "hypot": lambda a, b: jnp.hypot(a + 2, b),
    "masked": lambda a, b: a * (b > 0),
}

# Of an array and one of its axes; they keep the shape.
ALONG: dict[str, Callable[[Any, int], Any]] = {
    "softmax": lambda a, axis: jax.nn.softmax(a, axis=axis),
    "log_softmax": lambda a, axis: jax.nn.log_softmax(a, axis=axis),
    "standardize": lambda a, axis: (a - a.mean(axis, keepdims=True)) * lax.rsqrt(a.var(axis, keepdims=True) + 0.1),
    "cumsum": lambda a, axis: jnp.cumsum(a, axis=axis),
    "cummax": lambda a, axis: lax.cummax(a, axis=axis),
    "flip": jnp.flip,
    "sort": lambda a, axis: jnp.sort(a, axis=axis),
    "roll": lambda a, axis: jnp.roll(a, 1, axis),
    "scan": lambda a, axis: jnp.moveaxis(
        lax.scan(lambda c, e: (c * 0.5 + e, c), jnp.zeros_like(a.mean(axis)), jnp.moveaxis(a, axis, 0))[1], 0, axis
    ),
    "add to the first": lambda a, axis: jnp.moveaxis(jnp.moveaxis(a, axis, 0).at[0].add(1.5), 0, axis),
    "multiply the last": lambda a, axis: jnp.moveaxis(jnp.moveaxis(a, axis, 0).at[-1].multiply(0.5), 0, axis),
    "vmap": lambda a, axis: jax.vmap(lambda e: e * jnp.sum(e), axis, axis)(a),
}

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": jnp.sum,
    "mean": jnp.mean,
    "max": jnp.max,
    "min": jnp.min,
    "var": jnp.var,
    "logsumexp": jax.nn.logsumexp,
}


def _array(draw: Draw, shapes: Sequence[Shape], lowest_rank: int = 0) -> int | None:
    """The place of an array, mostly of the last one."""
    fitting = [place for place, shape in enumerate(shapes) if len(shape) >= lowest_rank]
    if not fitting:
        return None
    return fitting[-1] if draw(st.integers(0, 4)) < 3 else draw(st.sampled_from(fitting))


def _axis_where(draw: Draw, shape: Shape, fits: Callable[[Any], bool]) -> int | None:
    """An axis whose size is known and fits."""
    axes = [axis for axis, size in enumerate(shape) if size != BATCH and fits(size)]
    return draw(st.sampled_from(axes)) if axes else None


def _set(shape: Shape, axis: int, *sizes: int | str) -> Shape:
    """The shape with other sizes in place of one."""
    return (*shape[:axis], *sizes, *shape[axis + 1 :])


# --- makers of steps: from the shapes that there are to a step, None where none fits ---


def elementwise(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes)
    name = draw(st.sampled_from(list(ELEMENTWISE)))
    return Step(name, (place,), shapes[place], ELEMENTWISE[name])


def pairwise(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    first, second = _array(draw, shapes), draw(st.integers(0, len(shapes) - 1))
    name = draw(st.sampled_from(list(PAIRWISE)))
    rank = max(len(shapes[first]), len(shapes[second]))
    padded = [(*(1,) * (rank - len(shapes[place])), *shapes[place]) for place in (first, second)]
    shape = tuple(b if a == 1 else a for a, b in zip(*padded, strict=True))
    if any(size not in (1, wanted) for one in padded for size, wanted in zip(one, shape, strict=True)):
        return None
    return Step(name, (first, second), shape, PAIRWISE[name])


def along(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes, 1)
    name, axis = draw(st.sampled_from(list(ALONG))), draw(st.integers(0, len(shapes[place]) - 1))
    return Step(f"{name} along {axis}", (place,), shapes[place], lambda a: ALONG[name](a, axis))


def reduction(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes, 1)
    name, keeps, rank = draw(st.sampled_from(list(REDUCTIONS))), draw(st.booleans()), len(shapes[place])
    axes = tuple(sorted(draw(st.sets(st.integers(0, rank - 1), min_size=1))))
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(shapes[place]) if keeps or axis not in axes)
    return Step(
        f"{name} over {axes}, keepdims={keeps}",
        (place,),
        shape,
        lambda a: REDUCTIONS[name](a, axis=axes, keepdims=keeps),
    )


def argmax(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes, 1)
    axis = draw(st.integers(0, len(shapes[place]) - 1))
    shape = _set(shapes[place], axis)
    return Step(f"argmax along {axis}", (place,), shape, lambda a: jnp.argmax(a, axis=axis).astype(jnp.float32))


def merged(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    """Two axes made one; where one of them is the batch, made two again after a doubling."""
    place = _array(draw, shapes, 2)
    shape, axis = shapes[place], draw(st.integers(0, len(shapes[place]) - 2))
    pair = shape[axis : axis + 2]
    if pair.count(BATCH) == 2:
        return None
    if BATCH in pair:
        return Step(
            f"merge and part axes {axis}, {axis + 1}",
            (place,),
            shape,
            lambda a: (a.reshape(*a.shape[:axis], -1, *a.shape[axis + 2 :]) * 1.5).reshape(a.shape),
        )
    size = math.prod(pair)
    return Step(
        f"merge axes {axis}, {axis + 1}",
        (place,),
        (*shape[:axis], size, *shape[axis + 2 :]),
        lambda a: a.reshape(*a.shape[:axis], size, *a.shape[axis + 2 :]),
    )


def parted(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes, 1)
    shape = shapes[place]
    axis = _axis_where(draw, shape, lambda size: size % 2 == 0)
    if axis is None:
        return None
    half = shape[axis] // 2
    return Step(
        f"part axis {axis}",
        (place,),
        _set(shape, axis, 2, half),
        lambda a: a.reshape(*a.shape[:axis], 2, half, *a.shape[axis + 1 :]),
    )


def expanded(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes)
    axis = draw(st.integers(0, len(shapes[place])))
    shape = (*shapes[place][:axis], 1, *shapes[place][axis:])
    return Step(f"expand at {axis}", (place,), shape, lambda a: jnp.expand_dims(a, axis))


def squeezed(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes)
    axis = _axis_where(draw, shapes[place], lambda size: size == 1)
    if axis is None:
        return None
    return Step(f"squeeze {axis}", (place,), _set(shapes[place], axis), lambda a: jnp.squeeze(a, axis))


def transposed(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes, 2)
    order = tuple(draw(st.permutations(range(len(shapes[place])))))
    shape = tuple(shapes[place][axis] for axis in order)
    return Step(f"transpose to {order}", (place,), shape, lambda a: jnp.transpose(a, order))


def repeated(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes)
    return Step("broadcast", (place,), (2, *shapes[place]), lambda a: jnp.broadcast_to(a, (2, *a.shape)))


def sliced(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes, 1)
    axis = _axis_where(draw, shapes[place], lambda size: size > 1)
    if axis is None:
        return None
    shape = _set(shapes[place], axis, shapes[place][axis] - 1)
    return Step(f"slice along {axis}", (place,), shape, lambda a: lax.slice_in_dim(a, 1, a.shape[axis], axis=axis))


def concatenated(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes, 1)
    axis = _axis_where(draw, shapes[place], lambda size: size <= SIZE // 2)
    if axis is None:
        return None
    shape = _set(shapes[place], axis, 2 * shapes[place][axis])
    return Step(f"concatenate along {axis}", (place,), shape, lambda a: jnp.concatenate([a, a * 2], axis))


def padded(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes, 1)
    axis = _axis_where(draw, shapes[place], lambda size: size < SIZE)
    if axis is None:
        return None
    shape = _set(shapes[place], axis, shapes[place][axis] + 1)
    widths = [(1, 0) if one == axis else (0, 0) for one in range(len(shape))]
    mode = draw(st.sampled_from(["constant", "edge"]))
    return Step(f"pad along {axis}, {mode}", (place,), shape, lambda a: jnp.pad(a, widths, mode=mode))


def taken(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes, 1)
    axis = draw(st.integers(0, len(shapes[place]) - 1))
    indices = np.array(draw(st.lists(st.integers(-2, 3), min_size=1, max_size=3)), np.int32)
    # JAX itself takes a remainder by the size, as a constant.
    modes = ["clip", "fill"] if shapes[place][axis] == BATCH else ["clip", "fill", "wrap"]
    mode = draw(st.sampled_from(modes))
    return Step(
        f"take {indices.tolist()} along {axis}, {mode}",
        (place,),
        _set(shapes[place], axis, len(indices)),
        lambda a: jnp.nan_to_num(jnp.take(a, indices, axis=axis, mode=mode)),
    )


def one_hot(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes)
    shape = (*shapes[place], 2)
    return Step("one_hot", (place,), shape, lambda a: jax.nn.one_hot((a > 0).astype(jnp.int32), 2) * a[..., None])


def lower_triangle(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    place = _array(draw, shapes, 2)
    return Step("tril", (place,), shapes[place], jnp.tril)


def contracted(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    """A product over one axis of each of two arrays."""
    first, second = _array(draw, shapes, 1), draw(st.integers(0, len(shapes) - 1))
    one, other = shapes[first], shapes[second]
    pairs = [(i, j) for i, a in enumerate(one) for j, b in enumerate(other) if a == b]
    if not pairs:
        return None
    i, j = draw(st.sampled_from(pairs))
    shape = _set(one, i) + _set(other, j)
    return Step(f"tensordot over {i}, {j}", (first, second), shape, lambda a, b: jnp.tensordot(a, b, ((i,), (j,))))


def squared(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    """Matrices, each by its own transpose."""
    place = _array(draw, shapes, 2)
    shape = (*shapes[place][:-1], shapes[place][-2])
    return Step("product with its transpose", (place,), shape, lambda a: a @ jnp.swapaxes(a, -1, -2))


MAKERS = (
    elementwise,
    pairwise,
    along,
    reduction,
    argmax,
    merged,
    parted,
    expanded,
    squeezed,
    transposed,
    repeated,
    sliced,
    concatenated,
    padded,
    taken,
    one_hot,
    lower_triangle,
    contracted,
    squared,
)
