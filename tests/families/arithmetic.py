"""Sums, products and quotients of each other, of numbers of any size, in the order that is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax

from .case import Argument, Case, Draw, Sizes

__all__ = ["arithmetic"]

Apply = Callable[..., Any]
"""The result of the operation of a name."""
Node = Callable[[Sequence[Any], Apply], Any]
"""What comes out of a tree for arrays."""

BINARY: dict[str, Apply] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}
UNARY: dict[str, Apply] = {"negative": lambda a: -a, "1 /": lambda a: 1 / a}
IN_JAX = (
    BINARY
    | UNARY
    | {
        "floor": jnp.floor,
        "sqrt": jnp.sqrt,
        "to -1": lambda a: lax.integer_pow(a, -1),
        # What graph mode does not compute when it plans; TensorFlow does when it optimizes the graph.
        "computed": lambda a: jnp.max(jnp.stack([a, a]), 0),
    }
)
IN_NUMPY = BINARY | UNARY | {"floor": np.floor, "sqrt": np.sqrt, "to -1": lambda a: 1 / a, "computed": lambda a: a}
# Large and small, and sums of them: 12582912 + x is the nearest integer to x, more, in float32.
VALUES = (1e30, -1e30, 1e8, 1.0, -1.0, 1e-8, 1e-30, 3e38, 0.3, 2.0, 3.0, 49.0, 12582912.0, -12582912.0, 0.0, np.inf)
# A quotient by a constant may be a product with its reciprocal, which of these is exact.
DIVISORS = (0.5, 1.0, 2.0, 4.0, 2.0**-20, 2.0**100, -1.0)


def _in_numpy(name: str, *operands: Any) -> Any:
    """By NumPy, each operation by itself; what is subnormal is 0, as for XLA and TensorFlow."""
    with np.errstate(all="ignore"):
        result = np.asarray(IN_NUMPY[name](*operands))
    return np.where(np.abs(result) < np.finfo(result.dtype).tiny, np.copysign(np.zeros_like(result), result), result)


@st.composite
def arithmetic(draw: Draw) -> Case:
    """Up to five operations, each rounded by itself: of arrays, rows, scalars and constants. NumPy has the numbers.

    XLA computes some otherwise: it takes a quotient by a row for a product with its reciprocals.
    """
    sizes = Sizes(draw)
    dtype = draw(st.sampled_from(["float32", "float32", "float64"]))
    row = sizes.size(1, 9)
    shapes = ((sizes.size(1, 3), row), (row,), ())
    arguments: list[Argument] = []
    written: list[str] = []

    def argument() -> Node:
        index = len(arguments)
        arguments.append(Argument(draw(st.sampled_from([*shapes, shapes[0]])), dtype, VALUES))
        return lambda given, apply: given[index]

    def constant(values: tuple[float, ...]) -> Node:
        count = row if isinstance(row, int) and draw(st.booleans()) else None
        if count is None:
            value = np.array(draw(st.sampled_from(values)), dtype)
        else:
            value = np.array([draw(st.sampled_from(values)) for _ in range(count)], dtype)
        is_computed = not draw(st.integers(0, 3))
        written.append(f"{'computed ' if is_computed else ''}constant {value.tolist()}")
        return lambda given, apply: apply("computed", value) if is_computed else value

    def by_number(operand: Node) -> Node:
        name = draw(st.sampled_from(["*", "*", "/"]))
        number = constant(DIVISORS if name == "/" else VALUES)
        return lambda given, apply: apply(name, operand(given, apply), number(given, apply))

    def tree(operations: int) -> Node:
        if not operations:
            return argument()
        if not draw(st.integers(0, 7)):
            return _several(draw, arguments, written)
        if not draw(st.integers(0, 4)):
            names = [*UNARY, "floor", "sqrt", "to -1", "by its size", "by numbers", *["with itself"] * 3]
            unary = draw(st.sampled_from(names))
            operand = tree(operations - 1)
            written.append(unary)
            if unary == "by numbers":
                return by_number(by_number(operand))
            if unary == "with itself":
                both = _with_itself(draw(st.sampled_from(["*", "*", "*", "+", "-", "/"])), operand)
                return by_number(both) if draw(st.booleans()) else both
            if unary == "by its size":
                return lambda given, apply: _by_its_size(operand(given, apply), apply)
            return lambda given, apply: apply(unary, operand(given, apply))
        name = draw(st.sampled_from(list(BINARY)))
        place = draw(st.sampled_from(["left", "right", None, None, None, None]))  # of a constant
        before = draw(st.integers(0, operations - 1))
        left, right = (
            constant(DIVISORS if (name, side) == ("/", "right") else VALUES)
            if side == place
            else tree(operations - 1 if place else before if side == "left" else operations - 1 - before)
            for side in ("left", "right")
        )
        written.append(name)
        return lambda given, apply: apply(name, left(given, apply), right(given, apply))

    arguments.append(Argument(shapes[0], dtype, VALUES))
    root, last = tree(draw(st.integers(1, 4))), draw(st.sampled_from(list(BINARY)))
    written.append(last)

    def computed(apply: Apply) -> Callable[..., Any]:
        return lambda *given: apply(last, given[0], root(given, apply))

    return Case(
        f"arithmetic {written}",
        computed(lambda name, *operands: IN_JAX[name](*operands)),
        tuple(arguments),
        sizes.symbolic,
        max_error_in_eps=0,
        has_derivative=False,
        reference=computed(_in_numpy),
        tags=frozenset({dtype, *written}),
    )


def _with_itself(name: str, operand: Node) -> Node:
    def both(given: Sequence[Any], apply: Apply) -> Any:
        x = operand(given, apply)
        return apply(name, x, x)

    return both


def _by_its_size(x: Any, apply: Apply) -> Any:
    return apply("/", x, apply("sqrt", apply("*", x, x)))


def _several(draw: Draw, arguments: list[Argument], written: list[str]) -> Node:
    """A sum of arrays of the shape of the first argument, of which it adds some; some are in it more than once."""
    whole = [i for i, given in enumerate(arguments) if given.shape == arguments[0].shape]
    count = draw(st.integers(0, 4))
    whole += range(len(arguments), len(arguments) + count)
    arguments += [arguments[0]] * count
    terms = draw(st.lists(st.sampled_from(whole), min_size=3, max_size=10))
    sides = draw(st.lists(st.booleans(), min_size=len(terms), max_size=len(terms)))
    written.append(f"sum of {terms}")

    def total(given: Sequence[Any], apply: Apply) -> Any:
        result = given[terms[0]]
        for term, is_left in zip(terms[1:], sides[1:], strict=True):
            result = apply("+", given[term], result) if is_left else apply("+", result, given[term])
        return result

    return total
