"""Reductions, of whole dimensions and of windows, cumulative ones, and the gradients of pools."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax

from .case import COMPLEX, FLOATS, LARGE, SIGNED, UNSIGNED, Argument, Case, Draw, Sizes, dtypes

__all__ = ["cumulative", "pool", "reduce", "reduce_window", "select_and_scatter"]

NUMBERS = (FLOATS, SIGNED, UNSIGNED)


def affine(f: Any, g: Any) -> Any:
    """The composition of `a * x + b` with another: associative, not commutative."""
    return f[0] * g[0], f[1] * g[0] + g[1]


def last(f: Any, g: Any) -> Any:
    """The later one of two pairs."""
    return g


def largest_with_companion(f: Any, g: Any) -> Any:
    """The pair whose first is larger, the earlier of two that tie."""
    keeps = f[0] >= g[0]
    return jnp.where(keeps, f[0], g[0]), jnp.where(keeps, f[1], g[1])


def magnitude_and_count(f: Any, g: Any) -> Any:
    """The larger magnitude, and a sum."""
    return jnp.maximum(abs(f[0]), abs(g[0])), f[1] + g[1]


ONE = {
    "add": (lax.add, 0),
    "mul": (lax.mul, 1),
    "max": (lax.max, None),
    "min": (lax.min, None),
    "and": (lax.bitwise_and, -1),
    "or": (lax.bitwise_or, 0),
    "xor": (lax.bitwise_xor, 0),
    "last": (lambda a, b: b, 0),
    "mixed": (lambda a, b: lax.max(a, b) + lax.min(a, b), 0),
    "from the next": (lambda a, b: b - a, 0),  # not associative: each element changes the sign of those before it
}
TWO = {
    "affine": (affine, (1, 0)),
    "largest": (largest_with_companion, (-5, 0)),
    "magnitude": (magnitude_and_count, (0, 0)),
    "last": (last, (0, 0)),
}
BITWISE = ("and", "or", "xor")
DIFFERENTIABLE = ("add", "mul", "max", "min")


def _initial(draw: Draw, kind: str, dtype: str, usual: Any) -> Any:
    """The neutral value, or another."""
    if usual is None:
        if dtype == "bool":
            usual = kind == "min"
        elif dtype in FLOATS:
            usual = -np.inf if kind == "max" else np.inf
        else:
            limits = np.iinfo(dtype)
            usual = limits.min if kind == "max" else limits.max
    other = draw(st.sampled_from([usual, usual, 1, 2]))
    if dtype.startswith("u") and isinstance(other, int) and other < 0:
        other = int(np.iinfo(dtype).max)
    return np.array(other).astype(jnp.dtype(dtype))


def _single(draw: Draw) -> tuple[str, str, Any, Any]:
    kind = draw(st.sampled_from([*ONE, "from the next", "from the next"]))
    if kind in BITWISE:
        dtype = draw(dtypes(SIGNED, UNSIGNED, ("bool",)))
    elif kind in ("max", "min"):
        dtype = draw(dtypes(*NUMBERS, ("bool",)))
    else:
        dtype = draw(dtypes(*NUMBERS, COMPLEX)) if kind in ("add", "mul") else draw(dtypes(*NUMBERS))
    region, usual = ONE[kind]
    if dtype == "bool" and kind in BITWISE:
        usual = kind == "and"
    return kind, dtype, region, _initial(draw, kind, dtype, usual)


def _names(values: Any) -> set[str]:
    """As tags: extremes are special too."""
    return {str(values), "special"} if values == "extremes" else {str(values)}


def _values(draw: Draw, kind: str, dtype: str) -> str | tuple[int, int]:
    if kind == "mul" and dtype in COMPLEX:
        return -1, 1  # products of hundreds of numbers overflow otherwise, in another order another part
    return (
        draw(st.sampled_from(["small", "ties", "special", "extremes"]))
        if kind in ("max", "min") and dtype in FLOATS
        else "small"
    )


@st.composite
def reduce(draw: Draw) -> Case:
    """`lax.reduce` by any region from any initial value, of one array or two, and the reductions of jax.numpy."""
    sizes = Sizes(draw)
    shape = sizes.shape(1, 4, 5)
    axes = tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1)))))
    reduced = sizes.counts(tuple(shape[axis] for axis in axes))
    form = draw(st.sampled_from(["one", "one", "two", "named", "named"]))
    if form == "named":
        names = ["argmax", "argmin", "argmax", "argmin", "any", "all", "prod", "mean", "logsumexp", "max", "sum"]
        name = draw(st.sampled_from(names))
        dtype = draw(dtypes(FLOATS, SIGNED, UNSIGNED))
        values = (
            draw(st.sampled_from(["extremes", "small", "ties", "special", "extremes"]))
            if name in ("argmax", "argmin", "max")
            else "small"
        )
        axis = draw(st.sampled_from(axes)) if axes and name.startswith("arg") else axes or None
        reduced = reduced if axes else sizes.counts(shape)
        keeps = draw(st.booleans())

        def named(x: Any) -> Any:
            function = jax.nn.logsumexp if name == "logsumexp" else getattr(jnp, name)
            wide = jnp.promote_types(x.dtype, "float32")
            return function(x.astype(wide) if name == "logsumexp" else x, axis=axis, keepdims=keeps)

        return Case(
            f"{name} over {axis} keepdims={keeps}",
            named,
            (Argument(shape, dtype, values),),
            sizes.symbolic,
            max_error_in_eps=16 if name == "logsumexp" and max(reduced) > 32 else 4,
            has_derivative=name in ("mean", "sum", "logsumexp"),
            tags=_by_count(reduced) | {name, *_names(values), dtype},
        )
    if form == "two":
        kind = draw(st.sampled_from(list(TWO)))
        region, usual = TWO[kind]
        initial = draw(st.sampled_from([usual, usual, (2, 1)]))
        pair = draw(dtypes(SIGNED, FLOATS)), draw(dtypes(SIGNED, FLOATS))
        if kind == "affine":
            pair = (pair[0],) * 2
        starts = [np.array(i).astype(jnp.dtype(d)) for i, d in zip(initial, pair, strict=True)]
        return Case(
            f"reduce two by {kind} from {initial} over {axes}",
            lambda x, y: lax.reduce((x, y), tuple(starts), region, axes),
            tuple(Argument(shape, dtype, "ties") for dtype in pair),
            sizes.symbolic,
            has_derivative=False,
            max_error_in_eps=4 if max(reduced) <= 32 else 32,  # a sum is rounded so often
            specification=partial(_in_row_major_order, region, starts, axes),
            tags=_by_count(reduced),
        )
    kind, dtype, region, initial = _single(draw)
    values = _values(draw, kind, dtype)
    return Case(
        f"reduce by {kind} from {initial} over {axes}",
        lambda x: lax.reduce(x, initial, region, axes),
        (Argument(shape, dtype, values),),
        sizes.symbolic,
        has_derivative=False,
        specification=partial(_in_row_major_order, lambda f, g: (region(f[0], g[0]),), (initial,), axes),
        tags=frozenset({kind, *_names(values), dtype}) | _by_count(reduced),
    )


def _by_count(counts: list[int]) -> frozenset[str]:
    """The tags of a reduction of so many elements."""
    most = max(counts)
    tags = {"one element": 1 in counts, "many elements": most > 32, "a thousand": most >= LARGE[-1]}
    return frozenset(tag for tag, applies in tags.items() if applies)


def _in_row_major_order(
    region: Any, starts: Sequence[Any], axes: tuple[int, ...], *arrays: np.ndarray
) -> list[np.ndarray]:
    """The elements of several arrays combined one after another, from the initial values on."""
    moved = [np.moveaxis(array, axes, range(len(axes))) for array in arrays]
    values = tuple(
        np.full(array.shape[len(axes) :], start, start.dtype) for array, start in zip(moved, starts, strict=True)
    )
    for place in np.ndindex(*moved[0].shape[: len(axes)]):
        values = region(values, tuple(np.asarray(array[place]) for array in moved))
    return [np.asarray(value) for value in values]


def _windows(draw: Draw, rank: int) -> dict[str, Any]:
    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.one_of(st.just(low), st.integers(low, high))) for _ in range(rank))

    padding: Any = [tuple(draw(st.integers(-1, 2)) for _ in range(2)) for _ in range(rank)]
    windows = {
        "window_dimensions": tuple(draw(st.integers(1, 3)) for _ in range(rank)),
        "window_strides": each(1, 3),
        "base_dilation": each(1, 2),
    }
    if all(set(sizes) == {1} for sizes in windows.values()) and max(map(max, padding)) <= 0:
        padding = "VALID"  # XLA ends the process of JAX where padding only takes away from windows of one element
    named = {"padding": draw(st.sampled_from([padding, "SAME", "VALID"])), "window_dilation": each(1, 2)}
    return windows | named


def _by_specification(region: Any, starts: Any, window: Any, *arrays: np.ndarray) -> list[np.ndarray]:
    """Each window of several arrays combined from the initial values, its elements in row-major order.

    Padding does not count. Source: StableHLO specification, `reduce_window`.
    """
    options = window(arrays[0])
    shape, lengths, strides = arrays[0].shape, options["window_dimensions"], options["window_strides"]
    spread = [max((n - 1) * step + 1, 0) for n, step in zip(shape, options["base_dilation"], strict=True)]
    reach = [(n - 1) * step + 1 for n, step in zip(lengths, options["window_dilation"], strict=True)]
    edges = options["padding"]
    if isinstance(edges, str):
        edges = lax.padtype_to_pads(shape, reach, strides, edges)  # as JAX has it: not of the dilated array
    counts = [
        max((n + sum(edge) - r) // stride + 1, 0)
        for n, edge, r, stride in zip(spread, edges, reach, strides, strict=True)
    ]
    made = [np.empty(counts, start.dtype) for start in starts]
    for place in np.ndindex(*counts):
        values = tuple(map(np.asarray, starts))  # of scalars NumPy warns where integers overflow
        for offset in np.ndindex(*lengths):
            steps = zip(place, strides, offset, options["window_dilation"], edges, strict=True)
            at = [p * stride + o * step - low for p, stride, o, step, (low, _) in steps]
            own = zip(at, spread, options["base_dilation"], strict=True)
            if all(0 <= i < n and i % step == 0 for i, n, step in own):
                index = tuple(i // step for i, step in zip(at, options["base_dilation"], strict=True))
                values = region(values, tuple(np.asarray(array[index]) for array in arrays))
        for result, value in zip(made, values, strict=True):
            result[place] = np.asarray(value)  # JAX's own, of bfloat16, NumPy does not take
    return made


@st.composite
def reduce_window(draw: Draw) -> Case:
    """`lax.reduce_window` by any region from any initial value, with any windows, also as large as a symbolic size."""
    sizes = Sizes(draw)
    shape = sizes.shape(1, 4, 5)
    options = _windows(draw, len(shape))
    if not draw(st.integers(0, 5)):  # so many elements that they are combined in a loop
        options["window_dimensions"] = tuple(draw(st.sampled_from([4, 7, 12])) for _ in shape[:2]) + (1,) * len(
            shape[2:]
        )
    whole = draw(st.integers(0, len(shape) - 1)) if not draw(st.integers(0, 4)) else None
    if whole is not None:
        edges = options["padding"]
        named = [(0, 0) if i == whole else edge for i, edge in enumerate(edges)] if isinstance(edges, list) else edges
        options |= {"padding": draw(st.sampled_from(["VALID", "SAME", named]))}

    def window(x: Any) -> dict[str, Any]:
        lengths = [x.shape[i] if i == whole else n for i, n in enumerate(options["window_dimensions"])]
        return options | {"window_dimensions": tuple(lengths)}

    if draw(st.booleans()):
        kind = draw(st.sampled_from(["affine", "largest", "largest", *TWO]))
        region, usual = TWO[kind]
        dtype = draw(dtypes(SIGNED, FLOATS))
        if draw(st.booleans()):  # in padded windows of these the order of XLA for CPU is its own
            options["padding"] = "VALID"
        starts = tuple(np.array(i).astype(jnp.dtype(dtype)) for i in usual)
        if not isinstance(options["padding"], str):  # XLA ends the process of JAX where it takes more than there is
            lengths = [(sizes.least(n) - 1) * step + 1 for n, step in zip(shape, options["base_dilation"], strict=True)]
            options["padding"] = [
                (low, max(high, -low - n)) for n, (low, high) in zip(lengths, options["padding"], strict=True)
            ]
        return Case(
            f"reduce_window of two by {kind} {options} whole {whole}",
            lambda x, y: lax.reduce_window((x, y), starts, region, **window(x)),
            tuple(Argument(shape, dtype, "ties") for _ in range(2)),
            sizes.symbolic,
            has_derivative=False,
            specification=partial(_by_specification, region, starts, window),
            tags=sizes.tags | {"window", kind, "" if options["padding"] == "VALID" else "padded"},
        )
    kind, dtype, region, initial = _single(draw)
    values = _values(draw, kind, dtype)
    if kind == "from the next" and draw(st.booleans()):
        options["padding"] = "VALID"
    is_plain = options["padding"] == "VALID" and kind in ("add", "max", "min")
    return Case(
        f"reduce_window by {kind} from {initial} {options} whole {whole}",
        lambda x: lax.reduce_window(x, initial, region, **window(x)),
        (Argument(shape, dtype, values),),
        sizes.symbolic,
        has_derivative=is_plain and values not in ("special", "extremes") and dtype in FLOATS,
        specification=partial(_by_specification, lambda f, g: (region(f[0], g[0]),), (initial,), window),
        tags=sizes.tags | {"window", kind, *_names(values), dtype, "" if options["padding"] == "VALID" else "padded"},
    )


EDGES = {
    "one before": lambda n: (1, 0),
    "its size before": lambda n: (n, 0),
    "its size after": lambda n: (0, n),
    "moved": lambda n: (n - 1, 1 - n),
    "all cut": lambda n: (1, -n),
}
"""Padding of a dimension by its size, which may be symbolic: windows may lie in it."""


@st.composite
def pool(draw: Draw) -> Case:
    """Pools as models have them, values with ties, NaN, signed zeros, and their derivatives; sums as integers too."""
    sizes = Sizes(draw)
    kind = draw(st.sampled_from(["max", "min", "add", "mean"]))
    largest = draw(st.sampled_from([3, 11])) if kind == "add" else 3
    high = draw(st.sampled_from([2, 6, 14] if largest > 3 else [2, 6]))  # often smaller than the windows
    height, width = (sizes.named(1, high) if draw(st.booleans()) else sizes.size(1, high) for _ in range(2))
    shape = (sizes.size(1, 3), height, width, draw(st.integers(1, 3)))
    lengths = (1, draw(st.integers(1, largest)), draw(st.integers(1, largest)), 1)
    strides = (1, draw(st.integers(1, 3)), draw(st.integers(1, 3)), 1)
    named = st.sampled_from(["SAME", "VALID"])
    padding = draw(named | st.tuples(st.sampled_from(list(EDGES)), st.sampled_from(list(EDGES))))
    dtype = draw(dtypes(FLOATS))
    values: Any = draw(st.sampled_from(["small", "ties", "special"])) if kind in ("max", "min") else "small"
    if kind == "add" and dtype in ("float32", "float64"):
        values = (-100, 100)
    region, initial = {
        "max": (lax.max, -jnp.inf),
        "min": (lax.min, jnp.inf),
        "add": (lax.add, 0.0),
        "mean": (lax.add, 0.0),
    }[kind]

    before = draw(st.sampled_from(["", "", "relu", "sum and relu", "relu, which is a result too"]))

    def edges(shape: Sequence[Any]) -> Any:
        if isinstance(padding, str):
            return padding
        return [(0, 0), *(EDGES[name](n) for name, n in zip(padding, shape[1:3], strict=True)), (0, 0)]

    def activated(x: Any) -> Any:
        x = x + x[:, :1, :1] if before == "sum and relu" else x
        return jax.nn.relu(x) if before else x

    def function(x: Any) -> Any:
        x = activated(x)
        pooled = lax.reduce_window(x, np.array(initial, x.dtype), region, lengths, strides, edges(x.shape))
        pooled = pooled / (lengths[1] * lengths[2]) if kind == "mean" else pooled
        if kind == "add" and dtype in ("float32", "float64"):
            return pooled, pooled.astype(jnp.int32), x
        return (pooled, x) if before.endswith("too") else pooled

    def window(x: np.ndarray) -> dict[str, Any]:
        ones = (1, 1, 1, 1)
        return {
            "window_dimensions": lengths,
            "window_strides": strides,
            "padding": edges(x.shape),
            "base_dilation": ones,
            "window_dilation": ones,
        }

    def by_specification(x: np.ndarray) -> list[np.ndarray]:
        x = np.asarray(activated(x))
        combine = partial(_by_specification, lambda f, g: (region(f[0], g[0]),), (np.array(initial, x.dtype),), window)
        return [*combine(x), x] if before.endswith("too") else combine(x)

    return Case(
        f"{kind} pool {lengths} {strides} {padding} {before}",
        function,
        (Argument(shape, dtype, values),),
        sizes.symbolic,
        has_derivative=values != "special",
        specification=by_specification if values == "special" else None,
        tags=sizes.tags | {"window", kind, str(values), dtype, "" if padding == "VALID" else "padded"},
    )


@st.composite
def select_and_scatter(draw: Draw) -> Case:
    """The gradient of a max pool over any dimensions, with ties."""
    sizes = Sizes(draw)
    shape = tuple(sizes.size(1, 5) for _ in range(draw(st.integers(1, 4))))
    lengths = tuple(draw(st.integers(1, 3)) for _ in shape)
    strides = tuple(draw(st.integers(1, 3)) for _ in shape)
    padding = draw(st.sampled_from(["SAME", "VALID"]))
    dtype = draw(dtypes(FLOATS))
    largest = draw(st.booleans())

    def function(x: Any) -> Any:
        region, initial = (lax.max, -jnp.inf) if largest else (lax.min, jnp.inf)

        def pooled(x: Any) -> Any:
            return lax.reduce_window(x, np.array(initial, x.dtype), region, lengths, strides, padding)

        value, pull = jax.vjp(pooled, x)
        return pull(jnp.where(jnp.isfinite(value), value + 1, 0).astype(x.dtype))

    return Case(
        f"gradient of a pool, largest {largest}, {lengths} {strides} {padding}",
        function,
        (Argument(shape, dtype, "ties"),),
        sizes.symbolic,
        has_derivative=False,
        tags=frozenset({"window", "gradient", dtype}),
    )


CUMULATIVE = {
    "cumsum": lax.cumsum,
    "cumprod": lax.cumprod,
    "cummax": lax.cummax,
    "cummin": lax.cummin,
    "cumlogsumexp": lax.cumlogsumexp,
    "associative_scan": lambda x, axis, reverse: lax.associative_scan(lax.add, x, axis=axis, reverse=reverse),
}


@st.composite
def cumulative(draw: Draw) -> Case:
    """Cumulative sums and their like, along any axis, forward and backward."""
    sizes = Sizes(draw)
    kind = draw(st.sampled_from(list(CUMULATIVE)))
    shape = sizes.shape(1, 3, 5)
    axis, reverse = draw(st.integers(0, len(shape) - 1)), draw(st.booleans())
    dtype = draw(dtypes(FLOATS, COMPLEX) if kind == "cumlogsumexp" else dtypes(*NUMBERS))
    if kind == "cumlogsumexp":
        dtype = draw(dtypes(FLOATS))
    special = kind in ("cummax", "cummin") and dtype in FLOATS and draw(st.booleans())
    # Products of many numbers and, in the narrow types, sums of many are rounded otherwise in another order.
    usual = (0 if dtype in UNSIGNED else -1, 1) if sizes.tags else "small"
    return Case(
        f"{kind} along {axis} reverse={reverse}",
        lambda x: CUMULATIVE[kind](x, axis=axis, reverse=reverse),
        (Argument(shape, dtype, "special" if special else usual),),
        sizes.symbolic,
        max_error_in_eps=16,
        has_derivative=not special and kind != "cumprod",
        tags=frozenset({kind, "special" if special else "small", dtype}),
    )
