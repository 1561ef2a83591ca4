"""Dimension arithmetic as StableHLO operations on scalars.

`StablehloOperations` is the table of operations with which `jaxtf.shapepoly` computes the
dimension variables of a module from the shapes of its arguments, and checks them: the sizes
are `get_dimension_size`, the checks `shape_assertion` custom calls. When the sizes become
known (in XlaCallModule or in JAX, before compilation) shape refinement folds all of it to
constants and reports a check that does not hold with its text.

Only operations that shape refinement folds are used.
Source: StableHLO, "Dynamism"; `StablehloRefineShapes` and the `shape_assertion` custom call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

__all__ = ["StablehloOperations", "shape_assertion"]


# StableHLO, `shape_assertion`: 33 operands, the truth value among them.
_MOST_VALUES = 32


class StablehloOperations:
    """Emits dimension arithmetic at the current insertion point.

    Args:
      arguments: The block's argument for each flat argument of the function, None if it is dropped.
      size_type: The scalar tensor type of dimension values, i32 or i64.
    """

    def __init__(self, arguments: Sequence[ir.Value | None], size_type: ir.Type) -> None:
        self._arguments = arguments
        self._type = size_type
        self._constants: dict[int, ir.Value] = {}
        self._sizes: dict[tuple[int, int], ir.Value] = {}

    def constant(self, value: int) -> ir.Value:
        """The integer `value`."""
        if value not in self._constants:
            element = ir.IntegerAttr.get(ir.RankedTensorType(self._type).element_type, value)
            self._constants[value] = stablehlo.constant(ir.DenseElementsAttr.get_splat(self._type, element))
        return self._constants[value]

    def dimension_size(self, argument: int, axis: int) -> ir.Value:
        """The size of axis `axis` of flat argument `argument`; a constant where its type says so."""
        if (argument, axis) not in self._sizes:
            array = self._arguments[argument]
            assert array is not None, "an argument that determines a size is kept"
            type_ = ir.RankedTensorType(array.type)
            if not type_.is_dynamic_dim(axis):
                return self.constant(type_.get_dim_size(axis))
            axis_attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)
            size = stablehlo.get_dimension_size(array, axis_attribute)
            self._sizes[argument, axis] = size if size.type == self._type else stablehlo.convert(self._type, size)
        return self._sizes[argument, axis]

    def add(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """The sum."""
        return stablehlo.add(left, right)

    def multiply(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """The product."""
        return stablehlo.multiply(left, right)

    def maximum(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """The greater of the two."""
        return stablehlo.maximum(left, right)

    def minimum(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """The smaller of the two."""
        return stablehlo.minimum(left, right)

    def floordiv(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """The quotient, rounded towards minus infinity as in Python."""
        quotient = stablehlo.divide(left, right)
        lower = stablehlo.add(quotient, self.constant(-1))
        return stablehlo.select(self._rounds_up(left, right), lower, quotient)

    def mod(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """The remainder, with the sign of the divisor as in Python."""
        remainder = stablehlo.remainder(left, right)
        return stablehlo.select(self._rounds_up(left, right), stablehlo.add(remainder, right), remainder)

    def _rounds_up(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """Whether StableHLO's quotient, rounded towards zero, lies above the exact one."""
        remainder = stablehlo.remainder(left, right)
        inexact = self._compare("NE", remainder, self.constant(0))
        signs_differ = self._compare("NE", stablehlo.sign(left), stablehlo.sign(right))
        return stablehlo.and_(inexact, signs_differ)

    def _compare(self, direction: str, left: ir.Value, right: ir.Value) -> ir.Value:
        return stablehlo.compare(
            left,
            right,
            stablehlo.ComparisonDirectionAttr.get(direction),
            compare_type=stablehlo.ComparisonTypeAttr.get("SIGNED"),
        )

    def require(
        self, relation: Literal["==", ">="], left: ir.Value, right: ir.Value, message: Sequence[str | ir.Value]
    ) -> None:
        """Checks `left relation right` when the sizes are known; `message` is what a failure says.

        A value fits itself: what the type of an argument says need not be checked. Of a message with more values than
        an assertion takes the first are given; those that the check is about come first.
        """
        if left == right:
            return
        holds = self._compare({"==": "EQ", ">=": "GE"}[relation], left, right)
        shape_assertion(holds, message)


Range = tuple[int, int]
"""The least and the greatest that a number may be."""


class RangeOperations:
    """What numbers may become where sizes have 31 bits.

    Attributes:
      are_small: Whether all of them have 32 bits.
    """

    def __init__(self) -> None:
        self.are_small = True

    def _noted(self, *bounds: int) -> Range:
        self.are_small &= min(bounds) >= -(2**31) and max(bounds) < 2**31
        return min(bounds), max(bounds)

    def constant(self, value: int) -> Range:
        """The integer `value`."""
        return self._noted(value)

    def dimension_size(self, argument: int, axis: int) -> Range:
        """The size of an axis of an argument."""
        return 0, 2**31 - 1

    def add(self, left: Range, right: Range) -> Range:
        """The sum."""
        return self._noted(left[0] + right[0], left[1] + right[1])

    def multiply(self, left: Range, right: Range) -> Range:
        """The product."""
        return self._noted(*(a * b for a in left for b in right))

    def maximum(self, left: Range, right: Range) -> Range:
        """The greater of the two."""
        return max(left[0], right[0]), max(left[1], right[1])

    def minimum(self, left: Range, right: Range) -> Range:
        """The smaller of the two."""
        return min(left[0], right[0]), min(left[1], right[1])

    def floordiv(self, left: Range, right: Range) -> Range:
        """The quotient."""
        divisors = [b for b in (*right, 1, -1) if b and right[0] <= b <= right[1]] or [1]
        return self._noted(*(a // b for a in left for b in divisors))

    def mod(self, left: Range, right: Range) -> Range:
        """The remainder, with the sign of the divisor."""
        return min(right[0] + 1, 0), max(right[1] - 1, 0)

    def require(self, relation: Literal["==", ">="], left: Range, right: Range, message: Sequence[str | Range]) -> None:
        """Nothing is required of what may be."""


def shape_assertion(holds: ir.Value, message: Sequence[str | ir.Value]) -> None:
    """Checks a condition on sizes when they are known; `message` is what a failure says, values among its text.

    Of a message with more values than an assertion takes the first are given.
    """
    values: list[ir.Value] = []
    text: list[str] = []
    for piece in message:
        if isinstance(piece, str):
            text.append(piece.replace("{", "{{").replace("}", "}}"))
            continue
        if piece not in values:
            if len(values) == _MOST_VALUES:
                text.append("...")
                continue
            values.append(piece)
        text.append(f"{{{values.index(piece)}}}")
    assertion = stablehlo.CustomCallOp(
        [],
        [holds, *values],
        call_target_name=ir.StringAttr.get("shape_assertion"),
        # Without it the call has no use and vanishes before it is checked.
        has_side_effect=ir.BoolAttr.get(True),
        api_version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 2),
    )
    assertion.attributes["error_message"] = ir.StringAttr.get("".join(text))
