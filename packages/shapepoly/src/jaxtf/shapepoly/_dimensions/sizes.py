"""Questions about an entry of a shape: an integer or a symbolic dimension."""

from collections.abc import Mapping
from operator import index
from typing import TypeGuard, TypeVar

from jaxtf.shapepoly._decide.intervals import Bound
from jaxtf.shapepoly._dimensions.dimension import Dimension
from jaxtf.shapepoly._expressions.evaluation import Arithmetic, SizeOperations, evaluate_expression

V = TypeVar("V")

DimSize = int | Dimension
"""An entry of a shape."""


def is_symbolic_dim(p: object) -> TypeGuard[Dimension]:
    """Returns whether an object is a symbolic dimension of this package.

    >>> from jaxtf.shapepoly import symbolic_shape
    >>> [is_symbolic_dim(d) for d in symbolic_shape("b, 3")]
    [True, False]
    """
    return isinstance(p, Dimension)


def symbolic_dim_bounds(dimension: DimSize) -> tuple[Bound, Bound]:
    """Returns the smallest and the largest value that a dimension can take, possibly infinite.

    Both are attained where the expression and the constraints are linear, with `floordiv` and `mod` by
    integers, `max` and `min`; with products of variables they enclose the values.

    >>> from jaxtf.shapepoly import symbolic_shape
    >>> a, b = symbolic_shape("a, b", constraints=["a >= b", "b >= 3", "a <= 10"])
    >>> symbolic_dim_bounds(2 * a - b)
    (3, 17)

    Raises:
      TypeError: `dimension` is neither an integer nor a symbolic dimension.
    """
    if isinstance(dimension, Dimension):
        lower, upper = dimension.scope.algebra.decider.bounds(dimension.expression)
        return lower, upper
    value = index(dimension)
    return value, value


def max_dim(d1: DimSize, d2: DimSize) -> DimSize:
    """Returns the larger of two dimensions, as a dimension where that is not known.

    Unlike Python's `max` it needs no decision: `max_dim(a, b)` prints as `max(a, b)`.
    """
    if isinstance(d1, Dimension):
        larger: DimSize = d1.max(d2)
    elif isinstance(d2, Dimension):
        larger = d2.rmax(d1)
    else:
        larger = max(index(d1), index(d2))
    return larger


def min_dim(d1: DimSize, d2: DimSize) -> DimSize:
    """Returns the smaller of two dimensions, as a dimension where that is not known."""
    if isinstance(d1, Dimension):
        smaller: DimSize = d1.min(d2)
    elif isinstance(d2, Dimension):
        smaller = d2.rmin(d1)
    else:
        smaller = min(index(d1), index(d2))
    return smaller


def evaluate(dimension: int | Dimension, values: Mapping[str, V], operations: Arithmetic[V]) -> V:
    """Returns the value of a dimension, given the values of dimension variables.

    >>> from jaxtf.shapepoly import IntegerOperations, symbolic_shape
    >>> (size,) = symbolic_shape("2*a + floordiv(b, 3)")
    >>> evaluate(size, {"a": 5, "b": 7}, IntegerOperations())
    12

    Args:
      dimension: An integer or a symbolic dimension.
      values: The value of each variable by name; others are ignored. For `IntegerOperations` and
        `SymbolicOperations`, integers of any type.
      operations: How to compute with the values.

    Raises:
      KeyError: A variable of the dimension has no value.
    """
    if isinstance(dimension, Dimension):
        value = evaluate_expression(dimension.expression, values, operations)
        return operations.size(value) if isinstance(operations, SizeOperations) else value
    return operations.constant(index(dimension))
