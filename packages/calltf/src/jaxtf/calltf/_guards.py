"""What a program does about sizes that its operations do not take: it looks at them, and is refined nevertheless.

Where sizes become known, shape refinement stops at the first operation that does not fit, with no word of why, before
it comes to any assertion. So with requirements a program is made of three parts. Assertions, one for each requirement;
where one does not hold, dimension variables with other values, which fit, and arguments padded or cut to these sizes;
and results padded or cut to the sizes that the caller expects. Where all requirements hold, nothing is padded.

Source: StableHLO, `shape_assertion`, `dynamic_pad`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

from jaxtf.calltf._jax import (
    dimension_values,
    dimension_variable_values,
    is_symbolic,
    with_dimension_variables,
)
from jaxtf.calltf._scope import CallScope
from jaxtf.calltf._symbolic_values import Shape
from jaxtf.serialization.interop import shape_assertion

_DIRECTIONS = {">=": "GE", "==": "EQ"}


class Guards:
    """The requirements of a call, in the program being lowered.

    Args:
      ctx: Of the call.
      function: What is called, for messages.
      scope: Of its sizes.
      sizes: The symbolic sizes of its arguments, for messages.
      allowed: Values of the dimension variables that the requirements allow.

    Attributes:
      ctx: The context for the program within: its dimension variables have values that the requirements allow.
    """

    def __init__(
        self,
        ctx: mlir.LoweringRuleContext,
        function: Any,
        scope: CallScope,
        sizes: Sequence[Any],
        allowed: Mapping[str, int],
    ):
        self._outer = ctx
        self.ctx = ctx
        self._is_needed = bool(scope.requirements)
        if not self._is_needed:
            return
        found: list[str | ir.Value] = []
        for size, value in zip(sizes, self._scalars(ctx, sizes), strict=True):
            found += [f"{', ' if found else ''}{size} = ", value]
        hold = []
        for requirement in scope.requirements:
            left, right = self._scalars(ctx, (requirement.left, requirement.right))
            direction = stablehlo.ComparisonDirectionAttr.get(_DIRECTIONS[requirement.relation])
            signed = stablehlo.ComparisonTypeAttr.get("SIGNED")
            hold.append(stablehlo.compare(left, right, direction, compare_type=signed))
            remedy = (
                f"\n  remedy: call it with such sizes; to require them, add the constraint '{requirement.text}' when "
                "the function is exported"
            )
            text = f"call_tf: {function}, whose operation {requirement.operation}, needs {requirement.text}, and has "
            shape_assertion(hold[-1], [text, *found, remedy])
        holds = hold[0]
        for other in hold[1:]:
            holds = stablehlo.and_(holds, other)
        values = dimension_variable_values(ctx)
        inner = {
            name: stablehlo.select(holds, values[name], _constant(number, values[name].type))
            for name, number in allowed.items()
        }
        self.ctx = with_dimension_variables(ctx, inner)

    @staticmethod
    def _scalars(ctx: mlir.LoweringRuleContext, sizes: Sequence[Any]) -> list[ir.Value]:
        return [_int32(value) for value in dimension_values(ctx, sizes)]

    def enter(self, arrays: Sequence[ir.Value], given: Sequence[Shape], own: Sequence[Shape]) -> list[ir.Value]:
        """The arguments, of shapes that the caller gives, in the sizes of the program within."""
        if not self._is_needed:
            return list(arrays)
        shapes = zip(arrays, given, own, strict=True)
        return [_padded(array, (self._outer, before), (self.ctx, after)) for array, before, after in shapes]

    def leave(self, arrays: Sequence[ir.Value], own: Sequence[Shape], given: Sequence[Shape]) -> list[ir.Value]:
        """The results in the sizes that the caller expects."""
        if not self._is_needed:
            return list(arrays)
        shapes = zip(arrays, own, given, strict=True)
        return [_padded(array, (self.ctx, before), (self._outer, after)) for array, before, after in shapes]


_Sizes = tuple[mlir.LoweringRuleContext, Shape]


def _padded(array: ir.Value, before: _Sizes, after: _Sizes) -> ir.Value:
    """An array of some sizes, with zeros behind it or cut so that it has others."""
    (_, shape), (_, wanted) = before, after
    if not any(map(is_symbolic, (*shape, *wanted))):
        return array
    scalar, unknown = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32)), ir.ShapedType.get_dynamic_size()
    old, new = ([_int32(size) for size in dimension_values(*sizes)] for sizes in (before, after))
    one = ir.RankedTensorType.get([1], scalar.element_type)
    differences = [stablehlo.reshape(one, stablehlo.subtract(y, x)) for x, y in zip(old, new, strict=True)]
    none = mlir.ir_constant(np.zeros(len(shape), np.int32))
    element = ir.RankedTensorType(array.type).element_type
    result = ir.RankedTensorType.get([unknown if is_symbolic(size) else size for size in wanted], element)
    filler = stablehlo.convert(ir.RankedTensorType.get([], element), _constant(0, scalar))
    return stablehlo.dynamic_pad(result, array, filler, none, stablehlo.concatenate(differences, 0), none)


def _int32(value: int | ir.Value) -> ir.Value:
    """A size as a scalar."""
    type_ = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
    if isinstance(value, int):
        return _constant(value, type_)
    return value if value.type == type_ else stablehlo.convert(type_, value)


def _constant(number: int, type_: ir.Type) -> ir.Value:
    element = ir.IntegerAttr.get(ir.RankedTensorType(type_).element_type, number)
    return stablehlo.constant(ir.DenseElementsAttr.get_splat(type_, element))
