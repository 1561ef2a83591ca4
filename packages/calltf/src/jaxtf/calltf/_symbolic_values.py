"""What is known of a tensor while a trace is interpreted with symbolic sizes: its shape, maybe its elements.

The elements of a small integer tensor may be known: integers and symbolic sizes, in an object array. `Dimensions`
computes with them and decides what holds for all sizes that the constraints allow; what is not decided is `None`.

Knows symbolic sizes by duck typing, jaxtf's or JAX's; nothing of operations.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jax.errors import InconclusiveDimensionOperation

from jaxtf.calltf._jax import is_symbolic

Shape = tuple[Any, ...]
Known = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ListOf:
    """What is known of a list of tensors.

    Attributes:
      count: How many it can hold.
      element: The shape of each; None before the first is written.
      known: The elements of each, where they are known and the same in all.
      is_new: Whether nothing was written yet.
    """

    count: Any
    element: Shape | None
    known: Known | None = None
    is_new: bool = True

    def written(self, item: Value) -> ListOf:
        """The list after an item is written to it."""
        known = item.known if self.is_new or same_known(self.known, item.known) else None
        return replace(self, element=item.shape, known=known, is_new=False)


@dataclass(frozen=True)
class Value:
    """One tensor of the trace.

    Attributes:
      tensor: The tensor in the graph being written, whose sizes are those of a sample.
      shape: Its shape, symbolic.
      known: Its elements, where they are known.
      items: For a list of tensors, what is known of them.
      unknown: The operation that gave its shape, where that is not known; the tensor is of no use then.
    """

    tensor: Any
    shape: Shape
    known: Known | None = None
    items: ListOf | None = None
    unknown: str | None = None

    @property
    def is_constant(self) -> bool:
        """Whether its elements are known, and are numbers."""
        return self.known is not None and not any(map(is_symbolic, self.known.flat))

    @property
    def is_static(self) -> bool:
        """Whether its shape is constant."""
        return not any(map(is_symbolic, self.shape)) and self.items is None


def array_of(elements: Iterable[Any], shape: Sequence[int]) -> Known:
    """An array of integers and sizes."""
    array = np.empty(tuple(shape), object)
    array[...] = np.nan  # each is replaced
    for index, element in zip(np.ndindex(*shape), elements, strict=True):
        array[index] = element
    return array


def same_known(x: Known | None, y: Known | None) -> bool:
    """Whether the elements of two tensors are known and equal for all sizes."""
    if x is None or y is None or x.shape != y.shape:
        return False
    return all(same(a, b) for a, b in zip(x.flat, y.flat, strict=True))


def same(x: Any, y: Any) -> bool:
    """Whether two sizes are known to be equal for all sizes."""
    return x is y or decided(operator.eq, x, y) is True


def same_shape(x: Shape, y: Shape) -> bool:
    """Whether two shapes are known to be equal for all sizes."""
    return len(x) == len(y) and all(map(same, x, y))


def decided(comparison: Callable[[Any, Any], Any], x: Any, y: Any) -> bool | None:
    """What a comparison gives for all sizes; None if it is not the same for all, or not known."""
    if not (is_symbolic(x) or is_symbolic(y)):
        return bool(comparison(x, y))
    try:
        if comparison is operator.eq or comparison is operator.ne:
            # `==` of symbolic sizes decides whether they are always equal; never, only the order can tell.
            if bool(x - y == 0):
                return comparison is operator.eq
            if decided(operator.gt, x, y) or decided(operator.lt, x, y):
                return comparison is operator.ne
            return None
        order = {operator.lt: (y, x, 1), operator.le: (y, x, 0), operator.gt: (x, y, 1), operator.ge: (x, y, 0)}
        larger, smaller, least = order[comparison]
        difference = larger - smaller
        return bool(difference >= least)
    except InconclusiveDimensionOperation:
        return None


def larger(x: Any, y: Any) -> Any:
    """The larger of two sizes."""
    order = _order(x, y)
    return order[1] if order else x.max(y) if is_symbolic(x) else y.rmax(x)


def smaller(x: Any, y: Any) -> Any:
    """The smaller of two sizes."""
    order = _order(x, y)
    return order[0] if order else x.min(y) if is_symbolic(x) else y.rmin(x)


def _order(x: Any, y: Any) -> tuple[Any, Any] | None:
    """Two sizes, the smaller first; None if that is not known for all sizes."""
    if decided(operator.ge, x, y):
        return y, x
    return (x, y) if decided(operator.ge, y, x) else None


def is_positive(x: Any) -> Any:
    """Whether a number is: True or False, or where it depends on sizes 1 or 0."""
    holds = decided(operator.gt, x, 0)
    return smaller(larger(x, 0), 1) if holds is None else holds


def selected(condition: Any, x: Any, y: Any) -> Any:
    """One of two numbers, by a condition; None if it depends on sizes, and the numbers do not differ by a constant."""
    if not is_symbolic(condition):
        return x if condition else y
    return None if is_symbolic(x - y) else y + condition * (x - y)


def product(sizes: Iterable[Any]) -> Any:
    """The product of sizes."""
    total: Any = 1
    for size in sizes:
        total = size * total
    return total
