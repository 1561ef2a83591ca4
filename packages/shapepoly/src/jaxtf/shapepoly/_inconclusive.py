"""The error of a comparison or a division that cannot be decided: as JAX knows it, while JAX is loaded."""

from jaxtf.shapepoly._errors import InconclusiveDimensionOperation
from jaxtf.shapepoly._loaded import jax_is_loaded


def inconclusive(message: str) -> InconclusiveDimensionOperation:
    """Returns the error to raise: of the class in `_errors`, or of its subclass that JAX catches if JAX is loaded."""
    if jax_is_loaded():
        from jaxtf.shapepoly import _jax_error

        return _jax_error.InconclusiveDimensionOperation(message)
    return InconclusiveDimensionOperation(message)
