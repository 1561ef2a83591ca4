"""Checks that the sizes a module computes with have as many bits as JAX has for them, for the shapes of a call.

JAX computes numbers in 32 bits unless it has types of 64, and the shapes of what it makes always in 32. Those that do
not fit would be others, in silence. What is checked is computed in 64 bits. Where the sizes become known the checks
are folded, as all arithmetic on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from jaxtf.serialization._export.dimensions import Range, RangeOperations, StablehloOperations
from jaxtf.serialization._record.avals import DOES_NOT_FIT, LARGEST_SIZE
from jaxtf.shapepoly import Dimension, computed_parts, evaluate, is_symbolic_dim

__all__ = ["ComputedSizes", "Variable", "require_fitting"]

_BITS = 32
_LARGEST = 2 ** (_BITS - 1) - 1
_LARGEST_OF_SUMMAND = 2**62 - 1  # of which sums of two have 64 bits

_OF_NUMBERS = "compute it with floating-point numbers"
_OF_WIDTH = "export in jax.enable_x64()"
_OF_SHAPES = "an array of more axes, with smaller sizes"


class ComputedSizes(NamedTuple):
    """The symbolic sizes that a function computes with, each once.

    Attributes:
      numbers: Those that it makes numbers of, and numbers of turns of loops.
      shapes: Of arrays that it makes from nothing.
    """

    numbers: tuple[Any, ...] = ()
    shapes: tuple[Any, ...] = ()


class Variable(NamedTuple):
    """A dimension variable.

    Attributes:
      value: The scalar, of 32 bits, or of 64 if it may need them.
      range: What it may be.
    """

    value: ir.Value
    range: Range


def require_fitting(
    sizes: ComputedSizes,
    given: Iterable[Sequence[int | Dimension]],
    variables: Mapping[str, Variable],
    *,
    is_wide: bool,
) -> None:
    """Emits the checks of the sizes that may not fit, and of what is computed for them.

    Args:
      sizes: Those that the module computes with.
      given: The shapes of the arguments, whose sizes fit.
      variables: The dimension variables.
      is_wide: Whether JAX computes with integers of 64 bits.
    """
    most = {name: variable.range[1] for name, variable in variables.items()}
    largest = {name: size if size > _LARGEST else LARGEST_SIZE for name, size in most.items()}
    limits = _limits(sizes, largest, is_wide=is_wide)
    for size in filter(is_symbolic_dim, (size for shape in given for size in shape)):
        limits.pop(size, None)
    if not limits:
        return
    operations = _WideOperations()
    wide = {name: _Number(operations.widened(x.value), (0, largest[name])) for name, x in variables.items()}
    for part, limit in limits.items():
        names = sorted(part.expression.variables())
        shown = [x for name in names for x in (", " if name != names[0] else "", f"{name} = ", variables[name].value)]
        bits = limit.bit_length() + 1
        remedy = _OF_NUMBERS if is_wide else f"{_OF_NUMBERS}, or {_OF_WIDTH}"
        if part in sizes.shapes and bits == _BITS:
            remedy = _OF_SHAPES
        text = f"The size '{part}', {DOES_NOT_FIT} {bits} bits" + " for " * bool(names)
        operations.message = [text, *shown, f". Possible remedy: {remedy}."]
        operations.require_at_most(evaluate(part, wide, operations), limit)


def _limits(sizes: ComputedSizes, largest: Mapping[str, int], *, is_wide: bool) -> dict[Dimension, int]:
    """What each part of the sizes may be at most, where it may be more."""
    limits: dict[Dimension, int] = {}
    limit = _LARGEST_OF_SUMMAND if is_wide else _LARGEST
    for size in (*sizes.numbers, *sizes.shapes):
        parts = computed_parts(size, limit if is_wide else LARGEST_SIZE, largest=largest)
        limits |= dict.fromkeys(parts, limit)
    if is_wide:
        too_large = (size for size in sizes.shapes if size in computed_parts(size, LARGEST_SIZE, largest=largest))
        limits |= dict.fromkeys(too_large, _LARGEST)
    return limits


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
        self.message: Sequence[str | ir.Value] = ()

    def widened(self, value: ir.Value) -> ir.Value:
        """A scalar in 64 bits."""
        return value if value.type == self._type else stablehlo.convert(self._type, value)

    def require_at_most(self, number: _Number, limit: int) -> _Number:
        """Checks that the number is an integer of as many bits as the limit, the largest of these."""
        least, most = number.range
        smallest = -limit - 1
        if most > limit:
            self._plain.require(">=", self._plain.constant(limit), number.value, self.message)
        if least < smallest:
            self._plain.require(">=", number.value, self._plain.constant(smallest), self.message)
        return _Number(number.value, (max(least, smallest), min(most, limit)))

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
            one, limit = self._plain.constant(1), self._plain.constant(_LARGEST_OF_SUMMAND)
            size, other = self._absolute(a.value), self._absolute(b.value)
            most = self._plain.floordiv(limit, self._plain.maximum(size, one))
            self._plain.require(">=", most, other, self.message)
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
