"""Expressions with other expressions in place of variables, in normal form."""

from collections.abc import Mapping
from typing import Protocol

from jaxtf.shapepoly._expressions import normal
from jaxtf.shapepoly._expressions.evaluation import evaluate_expression
from jaxtf.shapepoly._expressions.expression import Expression, integer, variable
from jaxtf.shapepoly._expressions.maximum import maximum


class MadeOperations(Protocol):
    """Makes quotients and maxima."""

    def floordiv(self, dividend: Expression, divisor: Expression) -> Expression:
        """Returns the floor quotient."""

    def maximum(self, left: Expression, right: Expression) -> Expression:
        """Returns the larger one."""


class _Plain:
    """Operations by what holds for all integers."""

    def floordiv(self, dividend: Expression, divisor: Expression) -> Expression:
        return normal.floordiv(dividend, divisor)

    def maximum(self, left: Expression, right: Expression) -> Expression:
        return maximum(left, right, _is_natural_number)


_PLAIN = _Plain()


def substituted(
    expression: Expression, values: Mapping[str, Expression], operations: MadeOperations = _PLAIN
) -> Expression:
    """Returns an expression with values in place of some of its variables; the values are sizes, at least 1.

    Args:
      expression: The expression.
      values: A value for each variable that is replaced.
      operations: Makes the operations of the result.
    """
    everything = {name: values.get(name, variable(name)) for name in expression.variables()}
    return evaluate_expression(expression, everything, _Operations(operations))


class _Operations:
    """Operations on expressions."""

    def __init__(self, made: MadeOperations) -> None:
        self._made = made

    def constant(self, value: int) -> Expression:
        return integer(value)

    def add(self, a: Expression, b: Expression) -> Expression:
        return a + b

    def multiply(self, a: Expression, b: Expression) -> Expression:
        return a * b

    def floordiv(self, a: Expression, b: Expression) -> Expression:
        return self._made.floordiv(a, b)

    def mod(self, a: Expression, b: Expression) -> Expression:
        return a - b * self._made.floordiv(a, b)

    def maximum(self, a: Expression, b: Expression) -> Expression:
        return self._made.maximum(a, b)

    def minimum(self, a: Expression, b: Expression) -> Expression:
        return -self._made.maximum(-a, -b)


def _is_natural_number(expression: Expression) -> bool:
    value = expression.as_integer
    return value is not None and value >= 0
