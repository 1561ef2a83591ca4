"""Elementwise operations of operands that are broadcast, reduced with their dimensions kept, or equal everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from .case import COMPLEX, FLOATS, SIGNED, UNSIGNED, Argument, Case, Draw, Sizes, dtypes
from .elementwise import COMPLEX_BINARY, FLOAT_BINARY, FLOAT_MAX_ERROR_IN_EPS, INTEGER_BINARY

__all__ = ["broadcasts"]

# Of which an optimizer knows more than of others.
NUMBERS = (0, 1, 2, 3, -1, -2, 0.5, -0.5, 0.25)
MADE: dict[str, Callable[[Any, Any], Any]] = {
    "whole": lambda like, x: x,
    "row": lambda like, x: jnp.broadcast_to(x[0], like.shape),
    "column": lambda like, x: jnp.broadcast_to(x[..., :1], like.shape),
    "one": lambda like, x: jnp.broadcast_to(jnp.max(x), like.shape),
    "alternate": lambda like, x: jnp.broadcast_to(_alternate(x), like.shape),
    "kept": lambda like, x: jnp.max(x, 0, keepdims=True),
    "repeated": lambda like, x: jnp.repeat(x[:1], like.shape[0], 0),
}


def _alternate(x: Any) -> Any:
    return x[tuple(slice(1) if axis % 2 else slice(None) for axis in range(x.ndim))]


@st.composite
def broadcasts(draw: Draw) -> Case:
    """One operation of two operands, each an array, a part of one that is broadcast, or one number everywhere.

    The result has the sizes of both, whatever is made of the operands where they are smaller or constants.
    """
    sizes = Sizes(draw)
    # Not compiled, TensorFlow broadcasts at most five runs of dimensions that are alike; vectorized, they are one more.
    shape = sizes.shape(6, 7, 2, 1) if draw(st.integers(0, 3)) == 3 else sizes.shape(1, 3, 5, 1)
    table, kinds = draw(
        st.sampled_from(
            [*[(FLOAT_BINARY, (FLOATS,))] * 2, (COMPLEX_BINARY, (COMPLEX,)), (INTEGER_BINARY, (SIGNED, UNSIGNED))]
        )
    )
    is_power = draw(st.booleans())
    name = draw(st.sampled_from(["pow" if "pow" in table else "power"] if is_power else list(table)))
    dtype = draw(dtypes(*kinds))
    how = draw(st.sampled_from([*MADE])), draw(st.sampled_from([*MADE, *["number"] * len(MADE)]))
    how = how if is_power or draw(st.booleans()) else how[::-1]
    number = draw(st.sampled_from(NUMBERS))
    are_whole = draw(st.booleans())

    def operand(kind: str, like: Any, x: Any) -> Any:
        if kind != "number":
            return MADE[kind](like, x)
        value = jnp.asarray(np.asarray(number).astype(x.dtype))
        return jnp.full(like.shape if are_whole else like.shape[1:], value)

    def function(like: Any, *given: Any) -> Any:
        return table[name](*jnp.broadcast_arrays(*(operand(kind, like, x) for kind, x in zip(how, given, strict=True))))

    return Case(
        f"{name} of {how[0]} and {how[1]}" + f" {number}" * ("number" in how),
        function,
        (Argument(shape, dtype),) * 3,
        sizes.symbolic,
        max_error_in_eps=FLOAT_MAX_ERROR_IN_EPS,
        has_derivative=False,
        tags=frozenset({name, dtype, *how}),
    )
