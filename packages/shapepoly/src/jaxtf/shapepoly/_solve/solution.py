"""The plan that computes dimension variables from argument shapes, and its execution.

A `Solution` is data; `_solve.solver` makes it. Running it needs a caller's operations only, so the same plan
checks Python integers and emits the checks of a StableHLO program. The texts of the checks are those
that `jax.export` uses, so that programs and people that look for them find them.
"""

from collections.abc import Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

from jaxtf.shapepoly._dimensions.dimension import Dimension
from jaxtf.shapepoly._dimensions.scope import Constraint
from jaxtf.shapepoly._expressions.evaluation import Operations, evaluate_expression
from jaxtf.shapepoly._expressions.expression import Expression
from jaxtf.shapepoly._expressions.text import to_text

V = TypeVar("V")

_MISMATCH = "Input shapes do not match the polymorphic shapes specification. "
_MORE = " Please see jaxtf's page 'Symbolic dimensions', section 'Shape assertion errors' for more details."


class Source(NamedTuple):
    """Where a size comes from: an axis of a flat argument, and the specification of that axis."""

    path: str
    argument: int
    axis: int
    specification: int | Dimension

    def __str__(self) -> str:
        return f"{self.path}.shape[{self.axis}]"


class Equation(NamedTuple):
    """`expression` equals the size at `source`; or 0, where it comes from an equality constraint."""

    expression: Expression
    source: Source | None


class Step(NamedTuple):
    """How a variable follows: it is the sum of factor * (size - known terms), divided by `divisor`.

    `terms` pairs each equation that takes part with its integer factor and with those of its terms that
    are known by then.
    """

    variable: str
    terms: tuple[tuple[Equation, int, Expression], ...]
    divisor: Expression


class Solution(NamedTuple):
    """A plan that computes dimension variables from argument shapes and checks the shapes.

    Attributes:
      variables: The names of all variables in the specifications, sorted.
      steps: How to compute them, in order; also variables that only constraints mention.
      sources: All dimensions of all arguments, in order.
      constraints: The constraints of the scope that mention these variables.
      specifications: The text of the shapes with symbolic dimensions, for messages.
    """

    variables: tuple[str, ...]
    steps: tuple[Step, ...]
    sources: tuple[Source, ...]
    constraints: tuple[Constraint, ...]
    specifications: str

    def run(self, operations: Operations[V]) -> dict[str, V]:
        """Computes every variable and issues every check.

        The checks come in the order of causes: no remainder in a division; each variable at least 1; each
        dimension equal to its specification; each constraint.

        Args:
          operations: How to compute and check, for example `IntegerOperations(shapes)`.

        Returns:
          The value of each of `variables`.
        """
        return _Run(self, operations).values()


class _Run(Generic[V]):
    """One execution of a solution; what is known so far is in its attributes."""

    def __init__(self, solution: Solution, operations: Operations[V]) -> None:
        self._solution = solution
        self._operations = operations
        self._sizes: dict[tuple[int, int], V] = {}
        self._values: dict[str, V] = {}
        self._obtained: list[str | V] = []

    def values(self) -> dict[str, V]:
        """Computes the variables and issues the checks."""
        for step in self._solution.steps:
            self._take(step)
        for source in self._solution.sources:
            self._check_dimension(source)
        for constraint in self._solution.constraints:
            self._check_constraint(constraint)
        return {name: self._values[name] for name in self._solution.variables}

    def _take(self, step: Step) -> None:
        """Computes a variable, and checks the division and the sign."""
        value = self._sum(step)
        if step.divisor.as_integer != 1:
            value = self._divided(step, value)
        self._values[step.variable] = value
        self._obtained += self._origin(step, value)
        cause = f"Expected value >= 1 for dimension variable '{step.variable}'."
        self._require(">=", value, self._operations.constant(1), [_MISMATCH + cause])

    def _sum(self, step: Step) -> V:
        """Returns the sum of factor * (size - known terms)."""
        total: V | None = None
        for equation, factor, known in step.terms:
            for part, sign in ((self._right_hand_side(equation), factor), (self._known(known), -factor)):
                if part is None:
                    continue
                term = part if sign == 1 else self._operations.multiply(self._operations.constant(sign), part)
                total = term if total is None else self._operations.add(total, term)
        return self._operations.constant(0) if total is None else total

    def _right_hand_side(self, equation: Equation) -> V | None:
        return None if equation.source is None else self._size(equation.source)

    def _known(self, terms: Expression) -> V | None:
        return self._value(terms) if terms.terms else None

    def _divided(self, step: Step, value: V) -> V:
        """Returns the quotient, and checks that there is no remainder."""
        divisor = self._value(step.divisor)
        if step.divisor.as_integer is None:
            cause = (
                f"Expected value >= 1 for the factor '{to_text(step.divisor)}' of dimension variable '{step.variable}'."
            )
            self._require(">=", divisor, self._operations.constant(1), [_MISMATCH + cause])
        remainder = self._operations.mod(value, divisor)
        cause_pieces: list[str | V] = [
            _MISMATCH + "Division had remainder ",
            remainder,
            f" when computing the value of '{step.variable}'.",
        ]
        self._require("==", remainder, self._operations.constant(0), cause_pieces)
        return self._operations.floordiv(value, divisor)

    def _check_dimension(self, source: Source) -> None:
        """Checks a dimension against its specification, unless a variable was solved from it alone."""
        specification = source.specification
        if isinstance(specification, Dimension):
            if any(
                equation.source == source
                for step in self._solution.steps
                if len(step.terms) == 1
                for equation, *_ in step.terms
            ):
                return
            expected = self._value(specification.scope.algebra.named(specification.expression))
        else:
            expected = self._operations.constant(specification)
        size = self._size(source)
        cause: list[str | V] = [
            _MISMATCH + f"Found inconsistency between dimension size {source} (= ",
            size,
            f") and the specification '{specification}' (= ",
            expected,
            ").",
        ]
        self._require("==", size, expected, cause)

    def _check_constraint(self, constraint: Constraint) -> None:
        """Checks an explicit constraint of the scope."""
        found = self._value(constraint.difference)
        expected = "greater or equal" if constraint.relation == ">=" else "equal"
        cause: list[str | V] = [
            f"Input shapes do not match the symbolic shape constraint {constraint.text}. "
            f"Expected '{constraint.difference_text}' to be {expected} to 0, but found ",
            found,
            ".",
        ]
        self._require(constraint.relation, found, self._operations.constant(0), cause)

    def _require(self, relation: Literal["==", ">="], left: V, right: V, cause: Sequence[str | V]) -> None:
        """Issues a check, with what is known by now in its message."""
        message: list[str | V] = [*cause]
        if self._solution.specifications:
            message.append(f" Using the following polymorphic shapes specifications: {self._solution.specifications}.")
        if self._obtained:
            message += [" Obtained dimension variables: ", *self._obtained, "."]
        self._operations.require(relation, left, right, [*message, _MORE])

    def _origin(self, step: Step, value: V) -> list[str | V]:
        """Returns the pieces that tell how a variable was obtained."""
        pieces: list[str | V] = [", "] if self._obtained else []
        pieces += [f"'{step.variable}' = ", value]
        sources = [equation.source for equation, *_ in step.terms if equation.source is not None]
        separator = " from specification " if len(sources) == 1 else " from specifications "
        for source in sources:
            pieces += [f"{separator}'{source.specification}' for dimension {source} (= ", self._size(source), ")"]
            separator = ", "
        return pieces if sources else [*pieces, " from a constraint"]

    def _size(self, source: Source) -> V:
        """Returns the size of a dimension, asked for once."""
        key = (source.argument, source.axis)
        if key not in self._sizes:
            self._sizes[key] = self._operations.dimension_size(*key)
        return self._sizes[key]

    def _value(self, expression: Expression) -> V:
        """Returns the value of an expression of known variables."""
        return evaluate_expression(expression, self._values, self._operations)
