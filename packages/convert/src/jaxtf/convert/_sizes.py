"""Sizes of results that follow from what TensorFlow knows of the arguments' sizes.

In a graph some sizes are known and some are not. A dimension variable is known when the sizes
that determine it are; so is, then, every expression of known variables. Sizes that break a
check make nothing known: the module refuses them when it runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Literal

from jaxtf.serialization import Exported
from jaxtf.shapepoly import evaluate, solve_dimension_variables

__all__ = ["result_shapes"]


class _Unknown(Enum):
    SIZE = "a size that is not known"


_Size = int | _Unknown


def result_shapes(exported: Exported, shapes: Sequence[Sequence[int | None]]) -> list[list[int | None]]:
    """The shape of each flat result for arguments of these shapes; None for what is not known."""
    specifications = [(f"argument {index}", aval.shape) for index, aval in enumerate(exported.in_avals)]
    sizes = _KnownSizes(shapes)
    values = solve_dimension_variables(specifications).run(sizes)
    results = [[evaluate(size, values, sizes) for size in aval.shape] for aval in exported.out_avals]
    return [
        [None if isinstance(size, _Unknown) or sizes.contradictory else size for size in shape] for shape in results
    ]


def _if_known(operation: Callable[[int, int], int]) -> Any:
    def apply(self: _KnownSizes, left: _Size, right: _Size) -> _Size:
        if isinstance(left, _Unknown) or isinstance(right, _Unknown):
            return _Unknown.SIZE
        try:
            return operation(left, right)
        except ZeroDivisionError:
            return _Unknown.SIZE  # from sizes that the module refuses when it runs

    return apply


class _KnownSizes:
    """Dimension arithmetic in which what depends on an unknown size is unknown.

    Attributes:
      contradictory: Whether known sizes break a check.
    """

    def __init__(self, shapes: Sequence[Sequence[int | None]]) -> None:
        self._shapes = shapes
        self.contradictory = False

    def constant(self, value: int) -> _Size:
        return value

    def dimension_size(self, argument: int, axis: int) -> _Size:
        size = self._shapes[argument][axis]
        return _Unknown.SIZE if size is None else size

    add = _if_known(operator.add)
    multiply = _if_known(operator.mul)
    floordiv = _if_known(operator.floordiv)
    mod = _if_known(operator.mod)
    maximum = _if_known(max)
    minimum = _if_known(min)

    def require(self, relation: Literal["==", ">="], left: _Size, right: _Size, message: Sequence[Any]) -> None:
        if not isinstance(left, _Unknown) and not isinstance(right, _Unknown):
            self.contradictory |= not (left == right if relation == "==" else left >= right)
