"""Operations on expressions, simplified by what a scope knows.

Where `_expressions.normal` uses what holds for all integers, an `Algebra` also asks the decider of its scope:
`max(a, b)` is `a` where `a >= b`, a divisor that may be 0 is refused, and what can only be one integer is that
integer. Implements the protocol by which the parser makes expressions.
"""

from collections.abc import Mapping
from functools import cached_property
from time import perf_counter

from jaxtf.shapepoly._decide.advice import refused_division
from jaxtf.shapepoly._decide.decision import Decider, Zero
from jaxtf.shapepoly._dimensions.log import active_logger, log_answer
from jaxtf.shapepoly._expressions.expression import Expression, Operation, has_operations, integer, variable
from jaxtf.shapepoly._expressions.maximum import linear_maxima, maximum
from jaxtf.shapepoly._expressions.memo import Memo
from jaxtf.shapepoly._expressions.substitution import substituted
from jaxtf.shapepoly._expressions.text import to_text
from jaxtf.shapepoly._inconclusive import inconclusive

_MOST_COMPARED = 8
_STEPS_OF_A_DIVISION = 3  # of polynomials, for each pair of terms


class Algebra:
    """The operations of one scope.

    Args:
      decider: Knows what holds in the scope.

    Attributes:
      answers: Whether `left >= right`, for pairs that were asked before and decided.
      logger: Where comparisons are to be logged, answers are not kept; else None.
      is_free: Whether polynomials of variables are one integer by their form alone, and have no other form.
    """

    def __init__(self, decider: Decider) -> None:
        self.decider = decider
        self.logger = active_logger()
        self.answers: Memo[tuple[Expression, Expression], bool] = Memo(1024)
        self._equalities: Memo[tuple[Expression, Expression], bool] = Memo(1024)
        self.is_free = decider.is_unbounded and not decider.equalities.rules
        self._quotients: Memo[tuple[Expression, Expression], Expression] = Memo(1024)
        self._remainders: Memo[tuple[Expression, Expression], Expression] = Memo(1024)
        self._maxima: Memo[tuple[Expression, Expression], Expression] = Memo(1024)

    @cached_property
    def fixed_variables(self) -> Mapping[str, Expression]:
        """The variables that can have one size only, and this size."""
        return {name: value for name, value in self._values.items() if value.as_integer is not None}

    @cached_property
    def _values(self) -> Mapping[str, Expression]:
        """The expressions that are used in place of variables: of others, or integers."""
        sizes = {name: self.decider.only_value(variable(name)) for name in sorted(self.decider.tied_variables)}
        fixed = {name: integer(size) for name, size in sizes.items() if size is not None}
        definitions = self.decider.equalities.definitions
        return fixed | {name: substituted(value, fixed) if fixed else value for name, value in definitions.items()}

    def variable(self, name: str) -> Expression:
        """Returns the dimension variable of a name, or what it is equal to."""
        value = self._values.get(name)
        return variable(name) if value is None else value

    def named(self, expression: Expression) -> Expression:
        """Returns an expression in terms of variables that equalities define by operations, for people and solvers."""
        return self.decider.equalities.named(expression)

    def text(self, expression: Expression) -> str:
        """Returns the text of an expression, which the parser reads back to the same expression in this scope."""
        return to_text(self.named(expression))

    def variables(self, expression: Expression) -> frozenset[str]:
        """Returns the variables of an expression, and those that equalities may bring into its multiples."""
        return self.decider.equalities.with_tied(expression.variables())

    def equal(self, left: Expression, right: Expression) -> bool:
        """Returns whether two expressions denote the same value for all sizes."""
        known = self._equalities.get((left, right))
        if known is not None:
            return known
        start = perf_counter() if self.logger else 0.0
        zero = self._zero(left - right)
        if self.logger:
            log_answer(self.logger, f"{self.text(left)} == {self.text(right)}", zero.holds, zero.by, start)
            return zero.holds
        return self._equalities.put((left, right), zero.holds)

    def log_integer(self, expression: Expression, value: object) -> None:
        """Logs that a dimension, which is not an integer, was compared with one."""
        if self.logger is not None:
            log_answer(self.logger, f"{self.text(expression)} == {value}", False, "normal form", perf_counter())

    def is_zero(self, expression: Expression) -> bool:
        """Returns whether the expression is known to be 0 for all sizes."""
        return self._zero(expression).holds

    def _zero(self, expression: Expression) -> Zero:
        """Returns whether the expression is known to be 0 for all sizes, and by what."""
        if expression.terms and self.decider.equalities.are_zero(expression):
            return Zero(True, "equalities")
        return self.decider.zero(expression)

    def simplified(self, expression: Expression) -> Expression:
        """Returns an equal expression, simplified by the equalities of the scope."""
        return self.decider.equalities.simplified(expression)

    def settled(self, expression: Expression) -> Expression:
        """Returns an expression in simplified form, or the only integer that it can be."""
        if self.is_free and expression.is_plain:
            return expression
        expression = self.simplified(expression)
        if not self.decider.may_be_one_integer(expression):
            return expression
        value = self.decider.only_value(expression)
        return expression if value is None else integer(value)

    def _settled_operation(self, result: Expression) -> Expression:
        """Returns a quotient, remainder or maximum, or the only integer that it can be; so its terms that are such."""
        result = self.simplified(result)
        others = [monomial for monomial in result.terms if monomial]
        for monomial in others:
            if len(monomial) == 1 and isinstance(monomial[0][0], Operation):
                operation = Expression({monomial: 1})
                value = self.settled(operation)
                if value is not operation:
                    result = result.plus(value - operation, result.terms[monomial])
                elif len(others) == 1:
                    return result
        result.is_plain = not has_operations(result)
        return self.settled(result)

    def floordiv(self, dividend: Expression, divisor: Expression) -> Expression:
        """Returns `dividend // divisor`.

        Raises:
          ZeroDivisionError: The divisor is 0 for all sizes.
          InconclusiveDimensionOperation: It is 0 for some.
        """
        known = self._quotients.get((dividend, divisor))
        if known is not None:
            return known
        divided, by = self.settled(dividend), self.settled(divisor)
        if by.as_integer is None:
            self.decider.budget.spend(_STEPS_OF_A_DIVISION * len(divided.terms) ** 2)
            self._check_divisor(divided, by)
        quotient = self._settled_operation(self.decider.equalities.quotient(divided, by))
        return self._quotients.put((dividend, divisor), quotient)

    def mod(self, dividend: Expression, divisor: Expression) -> Expression:
        """Returns `dividend % divisor`; raises as `floordiv` does."""
        known = self._remainders.get((dividend, divisor))
        if known is not None:
            return known
        rest = dividend - divisor * self.floordiv(dividend, divisor)
        return self._remainders.put((dividend, divisor), self._settled_operation(rest))

    def maximum(self, left: Expression, right: Expression) -> Expression:
        """Returns the larger one."""
        asked = (left, right)
        known = self._maxima.get(asked)
        if known is not None:
            return known
        left, right = self.settled(left), self.settled(right)
        return self._maxima.put(asked, self._settled_operation(self._maximum(left, right)))

    def _maximum(self, left: Expression, right: Expression) -> Expression:
        """Returns the larger one. Comparing maxima of very many operands directly would take long."""
        operands = (atom.operands for side in (left, right) for atom in linear_maxima(side))
        if sum(map(len, operands)) <= _MOST_COMPARED:
            if self._never_negative(left - right):
                return left
            if self._never_negative(right - left):
                return right
        return maximum(left, right, self._never_negative)

    def minimum(self, left: Expression, right: Expression) -> Expression:
        """Returns the smaller one."""
        return -self.maximum(-left, -right)

    def _never_negative(self, expression: Expression) -> bool:
        return self.decider.verdict(expression).always

    def _check_divisor(self, dividend: Expression, divisor: Expression) -> None:
        """Raises where the divisor can be 0."""
        if self.decider.is_never_zero(divisor):
            return
        if self.is_zero(divisor):
            raise ZeroDivisionError(f"division of the symbolic dimension '{to_text(dividend)}' by zero")
        raise inconclusive(refused_division(self.decider, dividend, divisor))
