"""Expressions with other expressions in place of variables, in normal form."""

from collections.abc import Mapping

from jaxtf.shapepoly._expressions import normal
from jaxtf.shapepoly._expressions.evaluation import evaluate_expression
from jaxtf.shapepoly._expressions.expression import Expression, integer, variable
from jaxtf.shapepoly._expressions.maximum import maximum


def substituted(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """Returns an expression with values in place of some of its variables; the values are sizes, at least 1."""
    everything = {name: values.get(name, variable(name)) for name in expression.variables()}
    return evaluate_expression(expression, everything, _Operations())


class _Operations:
    """Operations on expressions, which use what holds for all sizes."""

    def constant(self, value: int) -> Expression:
        return integer(value)

    def add(self, a: Expression, b: Expression) -> Expression:
        return a + b

    def multiply(self, a: Expression, b: Expression) -> Expression:
        return a * b

    def floordiv(self, a: Expression, b: Expression) -> Expression:
        return normal.floordiv(a, b)

    def mod(self, a: Expression, b: Expression) -> Expression:
        return normal.mod(a, b)

    def maximum(self, a: Expression, b: Expression) -> Expression:
        return maximum(a, b, _is_natural_number)

    def minimum(self, a: Expression, b: Expression) -> Expression:
        return -maximum(-a, -b, _is_natural_number)


def _is_natural_number(expression: Expression) -> bool:
    value = expression.as_integer
    return value is not None and value >= 0
