"""Operations on sizes that are integers or symbolic dimensions.

With these a plan for dimension variables runs while another program is being traced: a function that
was made for `(b, 4)` is called with `(2*n, 4)`, and `b` is `2*n`.
"""

from collections.abc import Sequence
from typing import Literal

from jaxtf.shapepoly._dimensions.operands import as_size
from jaxtf.shapepoly._dimensions.sizes import DimSize, max_dim, min_dim
from jaxtf.shapepoly._errors import InconclusiveDimensionOperation, ShapeMismatch
from jaxtf.shapepoly._expressions.evaluation import IntegerOperations, SizeOperations


class SymbolicOperations(SizeOperations[DimSize]):
    """Operations on integers and symbolic dimensions of one scope; what cannot be decided is a mismatch.

    >>> from jaxtf.shapepoly import solve_dimension_variables, symbolic_shape
    >>> solution = solve_dimension_variables([("args[0]", symbolic_shape("(2*b, 4)"))])
    >>> solution.run(SymbolicOperations([symbolic_shape("(6*n, 4)")]))
    {'b': 3*n}

    Args:
      shapes: The shapes of the flat arguments.
    """

    def __init__(self, shapes: Sequence[Sequence[DimSize]] = ()) -> None:
        self._shapes = shapes
        self._ranks = IntegerOperations([range(len(shape)) for shape in shapes])

    def size(self, value: DimSize) -> DimSize:
        """Returns an integer as one of Python, and a dimension itself."""
        size: DimSize = as_size(value)
        return size

    def constant(self, value: int) -> DimSize:
        """Returns the integer itself."""
        return self.size(value)

    def dimension_size(self, argument: int, axis: int) -> DimSize:
        """Returns the size of an axis of a flat argument; raises `ShapeMismatch` where there is none."""
        return self.size(self._shapes[argument][self._ranks.dimension_size(argument, axis)])

    def add(self, a: DimSize, b: DimSize) -> DimSize:
        """Returns a + b."""
        result: DimSize = as_size(a) + as_size(b)
        return result

    def multiply(self, a: DimSize, b: DimSize) -> DimSize:
        """Returns a * b."""
        result: DimSize = as_size(a) * as_size(b)
        return result

    def floordiv(self, a: DimSize, b: DimSize) -> DimSize:
        """Returns a // b."""
        result: DimSize = as_size(a) // as_size(b)
        return result

    def mod(self, a: DimSize, b: DimSize) -> DimSize:
        """Returns a % b."""
        result: DimSize = as_size(a) % as_size(b)
        return result

    def maximum(self, a: DimSize, b: DimSize) -> DimSize:
        """Returns the larger one."""
        return max_dim(a, b)

    def minimum(self, a: DimSize, b: DimSize) -> DimSize:
        """Returns the smaller one."""
        return min_dim(a, b)

    def require(
        self, relation: Literal["==", ">="], left: DimSize, right: DimSize, message: Sequence[str | DimSize]
    ) -> None:
        """Raises `ShapeMismatch` with the rendered message unless the relation holds for all sizes."""
        try:
            holds = left == right if relation == "==" else left >= right
        except InconclusiveDimensionOperation as error:
            raise ShapeMismatch("".join(map(str, message))) from error
        if not holds:
            raise ShapeMismatch("".join(map(str, message)))
