"""Values of expressions: on Python integers, or through a caller's table of operations.

`evaluate` walks an expression once and asks the table for each constant and operation, so the same
walk computes Python integers, JAX values, or operations of a StableHLO module. Knows nothing of
scopes or JAX.
"""

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Generic, Literal, Protocol, TypeVar

from jaxtf.shapepoly._errors import ShapeMismatch
from jaxtf.shapepoly._expressions.expression import (
    FLOORDIV,
    ONE,
    ZERO,
    Atom,
    Expression,
    Monomial,
    Operation,
    Variable,
)

V = TypeVar("V")

# Divisors up to which a remainder times 8 is a number of 32 bits; of a sum, divided by its number of terms.
_MOST_DIVISOR = 2**28 - 1


class Arithmetic(Protocol[V]):
    """Integer operations on values of some kind."""

    def constant(self, value: int) -> V:
        """Returns the value of an integer."""

    def add(self, a: V, b: V) -> V:
        """Returns a + b."""

    def multiply(self, a: V, b: V) -> V:
        """Returns a * b."""

    def floordiv(self, a: V, b: V) -> V:
        """Returns a // b, rounding towards minus infinity."""

    def mod(self, a: V, b: V) -> V:
        """Returns a % b, with the sign of b."""

    def maximum(self, a: V, b: V) -> V:
        """Returns the larger one."""

    def minimum(self, a: V, b: V) -> V:
        """Returns the smaller one."""


class Operations(Arithmetic[V], Protocol[V]):
    """What `Solution.run` needs besides arithmetic: sizes of actual arguments, and checks."""

    def dimension_size(self, argument: int, axis: int) -> V:
        """Returns the size of an axis of a flat argument."""

    def require(self, relation: Literal["==", ">="], left: V, right: V, message: Sequence[str | V]) -> None:
        """Checks `left relation right`, or arranges that it is checked when the program runs.

        Args:
          relation: The relation that must hold.
          left: Its left side.
          right: Its right side.
          message: The error message in pieces: text, and values to be shown in it.
        """


class SizeOperations(Generic[V]):
    """Operations on sizes, which take integers of any type, such as NumPy's, as Python's, which do not wrap."""

    def size(self, value: V) -> V:
        """Returns a size with any integer as one of Python."""
        raise NotImplementedError


class IntegerOperations(SizeOperations[int]):
    """Operations on Python integers: the sizes are known, and a failed check raises at once.

    Args:
      shapes: The shapes of the flat arguments.
    """

    def __init__(self, shapes: Sequence[Sequence[int]] = ()) -> None:
        self._shapes = shapes

    def size(self, value: int) -> int:
        """Returns the integer as one of Python."""
        return operator.index(value)

    def constant(self, value: int) -> int:
        """Returns the integer itself."""
        return operator.index(value)

    def dimension_size(self, argument: int, axis: int) -> int:
        """Returns the size of an axis of a flat argument.

        Raises:
          ShapeMismatch: The argument has no such axis.
        """
        shape = self._shapes[argument]
        if axis >= len(shape):
            raise ShapeMismatch(
                f"Input shapes do not match the polymorphic shapes specification. "
                f"Flat argument {argument} has shape {tuple(shape)}, of rank {len(shape)}; "
                f"its specification has a dimension {axis}."
            )
        return operator.index(shape[axis])

    def add(self, a: int, b: int) -> int:
        """Returns a + b."""
        return operator.index(a) + operator.index(b)

    def multiply(self, a: int, b: int) -> int:
        """Returns a * b."""
        return operator.index(a) * operator.index(b)

    def floordiv(self, a: int, b: int) -> int:
        """Returns a // b."""
        return operator.index(a) // operator.index(b)

    def mod(self, a: int, b: int) -> int:
        """Returns a % b."""
        return operator.index(a) % operator.index(b)

    def maximum(self, a: int, b: int) -> int:
        """Returns the larger one."""
        return max(operator.index(a), operator.index(b))

    def minimum(self, a: int, b: int) -> int:
        """Returns the smaller one."""
        return min(operator.index(a), operator.index(b))

    def require(self, relation: Literal["==", ">="], left: int, right: int, message: Sequence[str | int]) -> None:
        """Raises `ShapeMismatch` with the rendered message if the relation does not hold."""
        holds = left == right if relation == "==" else left >= right
        if not holds:
            raise ShapeMismatch("".join(map(str, message)))


def evaluate_expression(expression: Expression, values: Mapping[str, V], operations: Arithmetic[V]) -> V:
    """Returns the value of an expression, given the values of its variables.

    Raises:
      KeyError: A variable of the expression has no value.
    """
    total: V | None = None
    for monomial, coefficient in expression.sorted_terms():
        term = _evaluate_term(monomial, coefficient, values, operations)
        total = term if total is None else operations.add(total, term)
    return operations.constant(0) if total is None else total


def _evaluate_term(monomial: Monomial, coefficient: int, values: Mapping[str, V], operations: Arithmetic[V]) -> V:
    """Returns the value of a term."""
    product: V | None = None if coefficient == 1 and monomial else operations.constant(coefficient)
    for atom, exponent in monomial:
        value = _evaluate_atom(atom, values, operations)
        for _ in range(exponent):
            product = value if product is None else operations.multiply(product, value)
    assert product is not None, "a term has a coefficient or an atom"
    return product


def _evaluate_atom(atom: Atom, values: Mapping[str, V], operations: Arithmetic[V]) -> V:
    """Returns the value of an atom."""
    if isinstance(atom, Variable):
        return values[atom.name]
    if atom.name == FLOORDIV:
        return _evaluate_floordiv(atom.operands[0], atom.operands[1], values, operations)
    first = evaluate_expression(atom.operands[0], values, operations)
    for operand in atom.operands[1:]:
        first = operations.maximum(first, evaluate_expression(operand, values, operations))
    return operations.maximum(first, operations.constant(0))


def _evaluate_floordiv(
    dividend: Expression, divisor: Expression, values: Mapping[str, V], operations: Arithmetic[V]
) -> V:
    """Returns the value of a quotient.

    The numbers of a module have 32 bits, which the dividend leaves where the quotient does not: a normal form has
    `32767*b // 32768` for `b + -b // 32768`. So coefficients of more than half the divisor are taken as negative ones,
    and a term with a coefficient is divided before it is multiplied: `k*t // n` is `k*(t // n) + k*(t % n) // n`. So is
    one of several terms, of which the sum may have more bits than each.
    """
    by = divisor.as_integer
    if not by:
        return operations.floordiv(
            evaluate_expression(dividend, values, operations), evaluate_expression(divisor, values, operations)
        )
    if by < 0:
        dividend, by = -dividend, -by
    if by * len(dividend.terms) > _MOST_DIVISOR:
        return _divided_in_steps(dividend, by, values, operations)
    whole = Expression({monomial: 1 for monomial, c in dividend.terms.items() if monomial and 2 * c > by})
    near = dividend - whole.scaled(by)
    is_one = sum(monomial != ONE for monomial in near.terms) == 1
    plain = Expression({monomial: c for monomial, c in near.terms.items() if not monomial or (is_one and abs(c) == 1)})
    quotients, remainders = [evaluate_expression(whole, values, operations)] if whole != ZERO else [], []
    for monomial, coefficient in (near - plain).sorted_terms():
        value = _evaluate_term(monomial, 1, values, operations)
        quotient, remainder = _divided_term(coefficient, value, by, operations)
        quotients.append(quotient)
        remainders.append(remainder)
    if plain != ZERO:
        remainders.append(evaluate_expression(plain, values, operations))
    quotients.append(operations.floordiv(functools.reduce(operations.add, remainders), operations.constant(by)))
    return functools.reduce(operations.add, quotients)


def _divided_term(coefficient: int, value: V, by: int, operations: Arithmetic[V]) -> tuple[V, V]:
    """Returns quotient and remainder of `coefficient * value` by an integer, in steps that 32 bits hold.

    The coefficient is taken digit by digit: its base is such that a remainder times it is a number of 32 bits.
    """

    def times(factor: int, factored: V) -> V:
        return factored if factor == 1 else operations.multiply(operations.constant(factor), factored)

    def divided(dividend: V) -> tuple[V, V]:
        quotient = operations.floordiv(dividend, operations.constant(by))
        return quotient, operations.add(dividend, times(-by, quotient))

    base = 4 * _MOST_DIVISOR // by
    digits = [abs(coefficient)]
    while digits[0] >= base:
        digits[:1] = divmod(digits[0], base)
    whole, part = divided(value)
    quotient, remainder = divided(times(digits[0], part)) if digits[0] > 1 else (operations.constant(0), part)
    for digit in digits[1:]:
        carried, remainder = divided(operations.add(times(base, remainder), times(digit, part)))
        quotient = operations.add(times(base, quotient), carried)
    sign = 1 if coefficient > 0 else -1
    return operations.add(times(coefficient, whole), times(sign, quotient)), times(sign, remainder)


def _divided_in_steps(dividend: Expression, by: int, values: Mapping[str, V], operations: Arithmetic[V]) -> V:
    """Returns the quotient by any positive integer of 32 bits, in steps that 32 bits hold.

    Only remainders are added up, and multiplied by doubling them, a binary digit after the other.
    """
    remainders = _Remainders(by, operations)
    total, left = operations.constant(0), operations.constant(0)
    for monomial, coefficient in dividend.sorted_terms():
        if monomial:
            value = _evaluate_term(monomial, 1, values, operations)
            quotient, part = remainders.multiplied(coefficient, value)
        else:
            quotient, part = map(operations.constant, divmod(coefficient, by))
        carry, left = remainders.added(left, part)
        total = operations.add(operations.add(total, quotient), carry)
    return total


class _Remainders(Generic[V]):
    """Arithmetic with remainders by an integer, each of at least 0 and less than it.

    Args:
      by: A positive integer of 32 bits.
      operations: Those on values.
    """

    def __init__(self, by: int, operations: Arithmetic[V]) -> None:
        self._by = by
        self._operations = operations

    def divided(self, value: V) -> tuple[V, V]:
        """Quotient and remainder of a value."""
        quotient = self._operations.floordiv(value, self._operations.constant(self._by))
        return quotient, self._operations.add(value, self._times(-self._by, quotient))

    def added(self, first: V, second: V) -> tuple[V, V]:
        """Quotient and remainder of the sum of two remainders; the divisor is taken off before it grows."""
        add, constant = self._operations.add, self._operations.constant
        carry, remainder = self.divided(add(add(first, constant(-self._by)), second))
        return add(carry, constant(1)), remainder

    def multiplied(self, factor: int, value: V) -> tuple[V, V]:
        """Quotient and remainder of `factor * value`."""
        add = self._operations.add
        whole, factor = divmod(factor, self._by)
        if 2 * factor > self._by:
            whole, factor = whole + 1, factor - self._by
        quotient, part = self.divided(value)
        total = add(self._times(whole, value), self._times(factor, quotient))
        if factor == 0:
            return total, self._operations.constant(0)
        if factor < 0:
            quotient, part = self.divided(self._times(-1, part))
            total = add(total, self._times(-factor, quotient))
        quotient, remainder = self._operations.constant(0), part
        for digit in bin(abs(factor))[3:]:
            carry, remainder = self.added(remainder, remainder)
            quotient = add(self._times(2, quotient), carry)
            if digit == "1":
                carry, remainder = self.added(remainder, part)
                quotient = add(quotient, carry)
        return add(total, quotient), remainder

    def _times(self, factor: int, value: V) -> V:
        return self._operations.multiply(self._operations.constant(factor), value)


def evaluate_integer(expression: Expression, sizes: Mapping[str, int]) -> int:
    """Returns the value of an expression for given sizes; the fast path for Python integers.

    Raises:
      KeyError: A variable of the expression has no size.
      ZeroDivisionError: A divisor is 0 for these sizes.
    """
    total = 0
    for monomial, coefficient in expression.terms.items():
        product = coefficient
        for atom, exponent in monomial:
            value = sizes[atom.name] if isinstance(atom, Variable) else _operation_value(atom, sizes)
            product *= value if exponent == 1 else value**exponent
        total += product
    return total


def _operation_value(operation: Operation, sizes: Mapping[str, int]) -> int:
    """Returns the value of an operation for given sizes."""
    values = [evaluate_integer(operand, sizes) for operand in operation.operands]
    return values[0] // values[1] if operation.name == FLOORDIV else max(0, *values)
