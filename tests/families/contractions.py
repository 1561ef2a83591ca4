"""Products summed over dimensions, and convolutions, with any dimension numbers."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from hypothesis import strategies as st
from jax import lax

from .case import COMPLEX, FLOATS, SIGNED, UNSIGNED, Argument, Case, Draw, Sizes, dtypes

__all__ = ["convolution", "dot_general"]


@st.composite
def dot_general(draw: Draw) -> Case:
    """`dot_general` with any number of batching, contracting and free dimensions, none of each included."""
    sizes = Sizes(draw)
    batch, contracted, left, right = (
        [sizes.size(0 if rare else 1, 4) for _ in range(draw(st.integers(0, 2)))]
        for rare in draw(st.lists(st.sampled_from([0, 0, 0, 1]), min_size=4, max_size=4))
    )
    sides, numbers = [], []
    for free in (left, right):
        dims = [*(("b", i) for i in range(len(batch))), *(("c", i) for i in range(len(contracted)))]
        dims += [("f", i) for i in range(len(free))]
        order = draw(st.permutations(dims))
        parts = {"b": batch, "c": contracted, "f": free}
        sides.append(tuple(parts[kind][i] for kind, i in order))
        numbers.append(
            (
                tuple(order.index(("c", i)) for i in range(len(contracted))),
                tuple(order.index(("b", i)) for i in range(len(batch))),
            )
        )
    dtype = draw(dtypes(FLOATS, SIGNED, UNSIGNED, COMPLEX))
    preferred = draw(st.sampled_from([None, None, "float32"])) if dtype in ("bfloat16", "float16") else None
    (left_contracted, left_batch), (right_contracted, right_batch) = numbers
    dimension_numbers = ((left_contracted, right_contracted), (left_batch, right_batch))

    def function(a: Any, b: Any) -> Any:
        return lax.dot_general(a, b, dimension_numbers, preferred_element_type=preferred)

    return Case(
        f"dot_general {dimension_numbers}, {preferred}",
        function,
        tuple(Argument(shape, dtype) for shape in sides),
        sizes.symbolic,
    )


@st.composite
def convolution(draw: Draw) -> Case:
    """`conv_general_dilated` with any layout, strides, dilations, groups and padding, also negative."""
    sizes = Sizes(draw)
    rank = draw(st.sampled_from([1, 2, 2, 2, 3]))
    spatial = [sizes.size(0 if not draw(st.integers(0, 9)) else 1, 5) for _ in range(rank)]
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.one_of(st.just(max(low, 1)), st.integers(low, high))) for _ in range(rank))

    feature_groups, batch_groups = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2)]))
    inputs, outputs = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    batch = sizes.size(1, 3) if batch_groups == 1 else batch_groups * draw(st.integers(1, 2))
    strides, dilation, kernel_dilation = each(1, 3), each(1, 2), each(1, 2)
    if draw(st.booleans()):
        padding: Any = [tuple(draw(st.integers(-1, 2)) for _ in range(2)) for _ in range(rank)]
    else:
        padding = draw(st.sampled_from(["SAME", "VALID", "SAME_LOWER"]))
    letters = "HWD"[:rank]
    lhs, out = ("".join(draw(st.permutations("NC" + letters))) for _ in range(2))
    rhs = "".join(draw(st.permutations("OI" + letters)))
    groups = feature_groups * batch_groups

    def arranged(layout: str, values: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(values[letter] for letter in layout)

    operand = arranged(lhs, {"N": batch, "C": inputs * feature_groups, **dict(zip(letters, spatial, strict=True))})
    weights = arranged(rhs, {"I": inputs, "O": outputs * groups, **dict(zip(letters, kernel, strict=True))})
    dtype = draw(dtypes(FLOATS, FLOATS, SIGNED, UNSIGNED, COMPLEX))
    reversal = draw(st.sampled_from([None, None, (True,) * rank])) if isinstance(padding, list) else None

    def function(x: Any, k: Any) -> Any:
        if reversal:
            k = jnp.flip(k, [rhs.index(letter) for letter in letters])
        return lax.conv_general_dilated(
            x,
            k,
            strides,
            padding,
            dilation,
            kernel_dilation,
            (lhs, rhs, out),
            feature_groups,
            batch_groups,
        )

    return Case(
        f"convolution {lhs},{rhs},{out} strides {strides} padding {padding} dilations {dilation}, {kernel_dilation} "
        f"groups {feature_groups}, {batch_groups}",
        function,
        (Argument(operand, dtype), Argument(weights, dtype)),
        sizes.symbolic,
    )
