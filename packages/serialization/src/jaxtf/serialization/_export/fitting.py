"""Checks that the sizes a module computes with are integers of 32 bits, for the shapes that it is called with.

JAX computes them in 32 bits unless it has types of 64, and those that do not fit would be others, in silence. What is
checked is computed in 64 bits. Where the sizes become known the checks are folded, as all arithmetic on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from jaxtf.serialization._export.dimensions import Range, RangeOperations, StablehloOperations
from jaxtf.shapepoly import Dimension, computed_parts, evaluate, symbolic_dim_bounds

__all__ = ["require_fitting"]

_LARGEST = 2**31 - 1
_LARGEST_OF_SUMMAND = 2**62 - 1  # of which sums of two have 64 bits
_REMEDY = "Possible remedy: compute it with floating-point numbers, or export in jax.enable_x64()."


def require_fitting(sizes: Iterable[Dimension], values: Mapping[str, ir.Value]) -> None:
    """Emits the checks of the sizes that may not fit, and of what is computed for them.

    Args:
      sizes: Those that the module computes with.
      values: The dimension variables, integers of 32 or 64 bits.
    """
    computed = dict.fromkeys(part for size in sizes for part in computed_parts(size))
    parts = [part for part in computed if _may_not_fit(part, values)]
    if not parts:
        return
    operations = _WideOperations()
    wide = {name: _Number(operations.widened(value), (0, _LARGEST)) for name, value in values.items()}
    for part in parts:
        operations.message = f"The size '{part}', which the program computes with, is not an integer of 32 bits"
        operations.require_at_most(evaluate(part, wide, operations), _LARGEST)


def _may_not_fit(part: Dimension, variables: Iterable[str]) -> bool:
    ranges: dict[str, Range] = dict.fromkeys(variables, (0, _LARGEST))
    least, most = evaluate(part, ranges, RangeOperations())
    if least >= -_LARGEST and most <= _LARGEST:
        return False
    least_value, most_value = symbolic_dim_bounds(part)
    return not (least_value >= -_LARGEST and most_value <= _LARGEST)


class _Number(NamedTuple):
    """An integer of 64 bits in the module.

    Attributes:
      value: The scalar.
      range: What it may be.
    """

    value: ir.Value
    range: Range


class _WideOperations:
    """Arithmetic in 64 bits, which checks what might not have as many."""

    def __init__(self) -> None:
        self._type = ir.RankedTensorType.get([], ir.IntegerType.get_signless(64))
        self._plain = StablehloOperations((), self._type)
        self._ranges = RangeOperations()
        self.message = ""

    def widened(self, value: ir.Value) -> ir.Value:
        """A scalar in 64 bits."""
        return value if value.type == self._type else stablehlo.convert(self._type, value)

    def require_at_most(self, number: _Number, limit: int) -> _Number:
        """Checks that neither the number nor its negative is larger."""
        least, most = number.range
        if most > limit:
            self._require(self._plain.constant(limit), number.value, number.value)
        if least < -limit:
            self._require(number.value, self._plain.constant(-limit), number.value)
        return _Number(number.value, (max(least, -limit), min(most, limit)))

    def _require(self, larger: ir.Value, smaller: ir.Value, shown: ir.Value) -> None:
        self._plain.require(">=", larger, smaller, [f"{self.message}: it is ", shown, f". {_REMEDY}"])

    def _absolute(self, value: ir.Value) -> ir.Value:
        return self._plain.maximum(value, self._plain.multiply(value, self._plain.constant(-1)))

    def constant(self, value: int) -> _Number:
        """The integer `value`."""
        return _Number(self._plain.constant(value), (value, value))

    def add(self, a: _Number, b: _Number) -> _Number:
        """The sum."""
        total = _Number(self._plain.add(a.value, b.value), self._ranges.add(a.range, b.range))
        return self.require_at_most(total, _LARGEST_OF_SUMMAND)

    def multiply(self, a: _Number, b: _Number) -> _Number:
        """The product."""
        found = self._ranges.multiply(a.range, b.range)
        if max(map(abs, found)) > _LARGEST_OF_SUMMAND:
            # Neither is 0 in what it is divided by; the quotient is what the other may be.
            one = self._plain.constant(1)
            size, other = (
                self._plain.maximum(x.value, self._plain.multiply(x.value, self._plain.constant(-1))) for x in (a, b)
            )
            most = self._plain.floordiv(self._plain.constant(_LARGEST_OF_SUMMAND), self._plain.maximum(size, one))
            self._require(most, other, other)
            found = max(found[0], -_LARGEST_OF_SUMMAND), min(found[1], _LARGEST_OF_SUMMAND)
        return _Number(self._plain.multiply(a.value, b.value), found)

    def floordiv(self, a: _Number, b: _Number) -> _Number:
        """The quotient, rounded towards minus infinity."""
        return _Number(self._plain.floordiv(a.value, b.value), self._ranges.floordiv(a.range, b.range))

    def mod(self, a: _Number, b: _Number) -> _Number:
        """The remainder, with the sign of the divisor."""
        return _Number(self._plain.mod(a.value, b.value), self._ranges.mod(a.range, b.range))

    def maximum(self, a: _Number, b: _Number) -> _Number:
        """The larger one."""
        return _Number(self._plain.maximum(a.value, b.value), self._ranges.maximum(a.range, b.range))

    def minimum(self, a: _Number, b: _Number) -> _Number:
        """The smaller one."""
        return _Number(self._plain.minimum(a.value, b.value), self._ranges.minimum(a.range, b.range))
