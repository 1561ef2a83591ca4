"""The functions of JAX that modules have written out for the parts of complex numbers, and their derivatives.

The value is that of the module. The derivative would be that of what is selected where the parts are equal, or one is
0: 2j for `square` at 1 + 1j, 0 for `sin` at 2j. It is JAX's own.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from jax import lax

from jaxtf.serialization._program.complex_functions import operations_of_complex_function
from jaxtf.serialization._program.program import Operation, Value

__all__ = ["complex_function"]

_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "chlo.acos": lax.acos,
    "chlo.acosh": lax.acosh,
    "chlo.asin": lax.asin,
    "chlo.asinh": lax.asinh,
    "chlo.atanh": lax.atanh,
    "stablehlo.cosine": lax.cos,
    "stablehlo.exponential": lax.exp,
    "stablehlo.log": lax.log,
    "stablehlo.log_plus_one": lax.log1p,
    "stablehlo.sine": lax.sin,
    "stablehlo.sqrt": lax.sqrt,
    "chlo.square": lax.square,
}


def complex_function(
    last: Operation, sources: Mapping[Value, Operation], within: Container[Operation]
) -> tuple[Value, tuple[Operation, ...], Callable[[Any], Any]] | None:
    """The argument of a function that ends with an operation, its operations in order, and JAX's function.

    Args:
      last: Any operation.
      sources: The operation that each value is a result of.
      within: Where all but constants have to be.
    """
    found = operations_of_complex_function(last, sources, within)
    if found is None:
        return None
    argument, operations, name = found
    return argument, operations, _FUNCTIONS[name]
