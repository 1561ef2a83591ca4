"""Sums of many 16-bit floats, whose errors tell what they are summed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax

from .case import Argument, Case, Draw, Sizes

__all__ = ["sums"]

LETTERS = "DHW"
KINDS = ("reduce", "mean", "window", "pool", "dot", "batched dot", "convolution", "convolution", "convolution")


@st.composite
def sums(draw: Draw) -> Case:
    """Hundreds of positive terms of bfloat16 or float16, summed in float32 by XLA: the result is rounded once.

    Then two results differ by one in the last place at most; a sum in 16 bits is off by several. Those of windows XLA
    for CPU rounds more than once: they are compared with sums in float64, twice rounded at most.
    """
    sizes = Sizes(draw)
    kind = draw(st.sampled_from(KINDS))
    function, shapes, label, *reference = MAKERS.get(kind, _reduction)(draw, sizes, kind)
    dtype = draw(st.sampled_from(["bfloat16", "float16", "float16"]))
    return Case(
        f"{label} of {dtype}",
        function,
        tuple(Argument(shape, dtype, "terms") for shape in shapes),
        sizes.symbolic,
        max_error_in_eps=2 if reference else 1.1,
        has_derivative=not reference,
        reference=reference[0] if reference else None,
    )


Made = (
    tuple[Callable[..., Any], tuple[tuple[Any, ...], ...], str]
    | tuple[Callable[..., Any], tuple[tuple[Any, ...], ...], str, Callable[..., Any]]
)


def _reduction(draw: Draw, sizes: Sizes, kind: str) -> Made:
    axis = draw(st.integers(0, 2))
    shape = [sizes.size(1, 4) for _ in range(3)]
    shape[axis] = draw(st.sampled_from([100, 513, 1000]))
    reducer = {"reduce": jnp.sum, "mean": jnp.mean}[kind]
    return lambda x: reducer(x, axis), (tuple(shape),), f"{kind} over {axis} of {shape}"


def _window(draw: Draw, sizes: Sizes, kind: str) -> Made:
    rank = 2 if kind == "window" else 4
    axes = draw(st.sampled_from([(0, 1), (1,)])) if kind == "window" else (1, 2)
    window, strides, shape = ([1] * rank for _ in range(3))
    for axis in axes:
        window[axis], strides[axis] = draw(st.integers(10, 16)), draw(st.sampled_from([1, 1, 5]))
        shape[axis] = window[axis] + draw(st.integers(0, 6))
    edges = [tuple(draw(st.integers(0, 5)) for _ in range(2)) if i in axes else (0, 0) for i in range(rank)]
    full: list[Any] = [size if i in axes else sizes.size(1, 3) for i, size in enumerate(shape)]

    def function(x: Any) -> Any:
        return lax.reduce_window(x, x.dtype.type(0), lax.add, tuple(window), tuple(strides), edges)

    def reference(x: np.ndarray) -> np.ndarray:
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x.astype(np.float64), edges), window)
        moved = windows[tuple(slice(None, None, stride) for stride in strides)]
        return moved.sum(tuple(range(rank, 2 * rank))).astype(x.dtype)

    return function, (tuple(full),), f"window {window} strides {strides} padding {edges} of {full}", reference


def _dot(draw: Draw, sizes: Sizes, kind: str) -> Made:
    batch = (sizes.size(1, 3),) if kind == "batched dot" else ()
    left, right = (tuple(sizes.size(1, 4) for _ in range(draw(st.integers(0, 1)))) for _ in range(2))
    terms = draw(st.sampled_from([101, 512, 1000]))
    first = draw(st.booleans())
    shapes = (*batch, *left, terms), ((*batch, terms, *right) if first else (*batch, *right, terms))
    at = len(batch)
    numbers = ((at + len(left),), (at if first else at + len(right),)), (tuple(range(at)),) * 2
    return lambda x, y: lax.dot_general(x, y, numbers), shapes, f"{kind} {shapes}"


def _convolution(draw: Draw, sizes: Sizes, kind: str) -> Made:
    rank = draw(st.integers(1, 3))
    across = {1: (40, 80), 2: (7, 10), 3: (4, 6)}[rank]
    kernel = [draw(st.integers(*across)) for _ in range(rank)]
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    inputs, outputs = draw(st.sampled_from([1, 1, 4])), draw(st.integers(1, 2))
    dilation, apart = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 2)]))
    stride = 1 if dilation > 1 else draw(st.sampled_from([1, 1, 2]))
    spatial = [-(-((size - 1) * apart + 1 + draw(st.integers(0, 4))) // dilation) for size in kernel]
    edge = draw(st.integers(0, 3))
    letters = LETTERS[-rank:]
    layout = f"N{letters}C", f"{letters}IO", f"N{letters}C"

    def function(x: Any, k: Any) -> Any:
        strides, lhs_dilation, rhs_dilation = ((n,) * rank for n in (stride, dilation, apart))
        padding = [(edge, edge)] * rank
        return lax.conv_general_dilated(x, k, strides, padding, lhs_dilation, rhs_dilation, layout, groups)

    shapes = (sizes.size(1, 2), *spatial, inputs * groups), (*kernel, inputs, outputs * groups)
    label = f"convolution {shapes}, strides {stride}, dilations {dilation}, {apart}, padding {edge}, groups {groups}"
    return function, shapes, label


MAKERS: dict[str, Callable[[Draw, Sizes, str], Made]] = {
    "window": _window,
    "pool": _window,
    "dot": _dot,
    "batched dot": _dot,
    "convolution": _convolution,
}
