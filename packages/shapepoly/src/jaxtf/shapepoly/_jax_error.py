"""The error of what cannot be decided, as JAX knows it; imported only once JAX is loaded."""

from jax.errors import InconclusiveDimensionOperation as _JaxInconclusive

from jaxtf.shapepoly import _errors


class InconclusiveDimensionOperation(_errors.InconclusiveDimensionOperation, _JaxInconclusive):
    """The error of `jaxtf.shapepoly` as JAX knows it: raised in its place while JAX is loaded."""
