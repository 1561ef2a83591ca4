"""Regions of scalars that are applied to arrays, to all of their elements at once.

That is what a region of scalars computes as long as everything in it is a scalar. What makes an array of an element, or
runs as often as an element says, would do so to the array of all of them.
"""

from __future__ import annotations

from jaxtf.convert._graph.errors import unsupported
from jaxtf.serialization.interop import Operation, TensorType

__all__ = ["check_elementwise"]

_REASON = "it is in a region that is applied to many elements at once, and {} of one of them"
# Their regions are evaluated, all of them, and their results chosen from.
_CHOICES = ("stablehlo.if", "stablehlo.case")


def check_elementwise(operation: Operation) -> None:
    """Refuses an operation that is not the same for an array, element by element, as for a scalar.

    Raises:
      GraphModeUnsupported: It takes or gives an array, or has a region that is not one of a choice.
    """
    for value in (*operation.operands, *operation.results):
        if isinstance(value.type, TensorType) and value.type.rank:
            raise unsupported(operation, _REASON.format("makes an array"))
    if operation.regions and operation.name not in _CHOICES:
        raise unsupported(operation, _REASON.format("depends on the value"))
