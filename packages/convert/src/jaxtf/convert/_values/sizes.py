"""Sizes of results, and sizes that do not fit, from what TensorFlow knows of the arguments' sizes.

In a graph some sizes are known and some are not. A dimension variable is known when the sizes
that determine it are; so is, then, every expression of known variables. Known sizes that break
a check of the module are refused at once, in the words in which the module would.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Literal

from jaxtf.serialization import DisabledSafetyCheck, Exported
from jaxtf.shapepoly import ShapeMismatch, evaluate

__all__ = ["result_shapes"]


class _Unknown(Enum):
    SIZE = "?"

    def __str__(self) -> str:
        return self.value


_Size = int | _Unknown


def result_shapes(exported: Exported, shapes: Sequence[Sequence[int | None]]) -> list[list[int | None]]:
    """The shape of each flat result for arguments of these shapes; None for what is not known.

    Raises:
      ShapeMismatch: Known sizes break a check of the module, and shape assertions are not disabled.
    """
    sizes = _KnownSizes(shapes)
    values = exported.solution.run(sizes)
    if sizes.mismatch is not None:
        if DisabledSafetyCheck.shape_assertions() not in exported.disabled_safety_checks:
            raise ShapeMismatch(sizes.mismatch)
        return [[size if isinstance(size, int) else None for size in aval.shape] for aval in exported.out_avals]
    results = [[evaluate(size, values, sizes) for size in aval.shape] for aval in exported.out_avals]
    return [[None if isinstance(size, _Unknown) else size for size in shape] for shape in results]


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
      mismatch: What the first check says that known sizes break; None if there is none.
    """

    def __init__(self, shapes: Sequence[Sequence[int | None]]) -> None:
        self._shapes = shapes
        self.mismatch: str | None = None

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
        if self.mismatch is not None or isinstance(left, _Unknown) or isinstance(right, _Unknown):
            return
        if not (left == right if relation == "==" else left >= right):
            self.mismatch = "".join(map(str, message))
