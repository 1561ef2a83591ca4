"""Symbolic dimensions for array programs: expressions, scopes, constraints, exact decisions.

Importing this package imports neither JAX nor NumPy nor TensorFlow.
"""

import importlib
from typing import TYPE_CHECKING

from jaxtf.shapepoly._dimensions.computed import computed_parts
from jaxtf.shapepoly._dimensions.dimension import Dimension
from jaxtf.shapepoly._dimensions.scope import Constraint, SymbolicScope
from jaxtf.shapepoly._dimensions.size_reader import SizeReader
from jaxtf.shapepoly._dimensions.sizes import evaluate, is_symbolic_dim, max_dim, min_dim, symbolic_dim_bounds
from jaxtf.shapepoly._dimensions.symbolic_operations import SymbolicOperations
from jaxtf.shapepoly._errors import (
    InconclusiveDimensionOperation,
    JaxRequiredError,
    ScopeError,
    ShapeMismatch,
    ShapeSpecError,
    UnsolvableDimensionVariables,
)
from jaxtf.shapepoly._expressions.evaluation import Arithmetic, IntegerOperations, Operations
from jaxtf.shapepoly._polyshape import PolyShape
from jaxtf.shapepoly._shapes import symbolic_args_specs, symbolic_shape
from jaxtf.shapepoly._solve.solution import Solution
from jaxtf.shapepoly._solve.solver import solve_dimension_variables
from jaxtf.shapepoly._suggest import SuggestedConstraint, SuggestedConstraints, suggest_constraints

if TYPE_CHECKING:
    from jaxtf.shapepoly._version import __version__ as __version__

__all__ = [
    "Arithmetic",
    "Constraint",
    "Dimension",
    "InconclusiveDimensionOperation",
    "IntegerOperations",
    "JaxRequiredError",
    "Operations",
    "PolyShape",
    "ScopeError",
    "ShapeMismatch",
    "ShapeSpecError",
    "SizeReader",
    "Solution",
    "SuggestedConstraint",
    "SuggestedConstraints",
    "SymbolicOperations",
    "SymbolicScope",
    "UnsolvableDimensionVariables",
    "computed_parts",
    "evaluate",
    "is_symbolic_dim",
    "max_dim",
    "min_dim",
    "solve_dimension_variables",
    "suggest_constraints",
    "symbolic_args_specs",
    "symbolic_dim_bounds",
    "symbolic_shape",
]


def __getattr__(name: str) -> str:
    """The version, read on request, because the module that reads it is slow to import."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    version: str = importlib.import_module(f"{__name__}._version").__version__
    return version


def __dir__() -> list[str]:
    """The public names, without the modules that they are in."""
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("__"))})
