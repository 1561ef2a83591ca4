"""Sizes of shapes from texts that nobody vouches for: those of an artifact."""

from jaxtf.shapepoly._dimensions.algebra import Algebra
from jaxtf.shapepoly._dimensions.dimension import Dimension
from jaxtf.shapepoly._dimensions.scope import SymbolicScope, decider_of
from jaxtf.shapepoly._dimensions.sizes import DimSize
from jaxtf.shapepoly._errors import ShapeSpecError
from jaxtf.shapepoly._expressions.budget import Budget
from jaxtf.shapepoly._expressions.parser import parse_shape

__all__ = ["SizeReader"]


class SizeReader:
    """Reads sizes, one after another, that together may take so many steps.

    The steps are those to read their texts and to decide questions about them under the constraints. The
    dimensions that it returns belong to the scope, and later questions about them are not bounded.

    Args:
      scope: The scope of the dimensions.
      most_steps: Bound on the work for all sizes, about a microsecond each.

    >>> from jaxtf.shapepoly import SizeReader, SymbolicScope
    >>> reader = SizeReader(SymbolicScope(), most_steps=100_000)
    >>> reader.size("2*b + 1")
    2*b + 1
    """

    def __init__(self, scope: SymbolicScope, most_steps: int) -> None:
        self._scope = scope
        self._budget = Budget(most_steps, "the sizes take too many steps to read")
        self._algebra = Algebra(decider_of(scope.constraints, self._budget))

    def size(self, text: str) -> DimSize:
        """The size that a text denotes: an integer, or a dimension of the scope.

        Raises:
          ShapeSpecError: It is not in the grammar, not one size, or takes more steps than are left.
          InconclusiveDimensionOperation: A divisor in it can be 0.
        """
        parsed = parse_shape(text, self._algebra, self._budget)
        if len(parsed.dimensions) != 1 or parsed.ellipsis is not None or parsed.dimensions[0].value is None:
            raise ShapeSpecError(f"{text!r} is not one size")
        expression = parsed.dimensions[0].value
        constant = expression.as_integer
        if constant is None:
            return Dimension(expression, self._scope)
        if constant < 0:
            raise ShapeSpecError(f"the size {text!r} is {constant}")
        return constant
