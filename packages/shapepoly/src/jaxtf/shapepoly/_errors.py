"""One class for each kind of failure of symbolic dimensions.

The messages are written where the failure is found; this module only names the kinds, and imports nothing.
"""


class InconclusiveDimensionOperation(Exception):
    """A comparison or a division holds for some sizes of the dimension variables and fails for others.

    While JAX is loaded, what is raised is also a `jax.errors.InconclusiveDimensionOperation`, because
    JAX catches that class in several places.
    """


class ShapeSpecError(ValueError):
    """A shape text or a constraint text is not in the grammar, or does not fit the shape it is matched with."""


class ScopeError(ValueError):
    """Dimensions of two scopes were mixed, or the constraints of a scope contradict each other."""


class UnsolvableDimensionVariables(ValueError):
    """The argument shapes do not determine the value of some dimension variable."""


class ShapeMismatch(ValueError):
    """Actual argument shapes do not match their specifications, or violate a constraint."""


class JaxRequiredError(ImportError):
    """An operation that needs JAX was called in an environment without it."""
