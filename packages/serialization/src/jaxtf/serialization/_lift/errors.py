"""The refusal of an operation: what it is, on what, where in the user's program, why, and what to do."""

from __future__ import annotations

from jaxtf.serialization._errors import LiftUnsupported
from jaxtf.serialization._program.program import Operation
from jaxtf.serialization._program.refusal import refusal_text

__all__ = ["REMEDY", "unsupported"]

REMEDY = "run the module as it is, by Exported.call or a TensorFlow consumer, or export it without the operation"


def unsupported(operation: Operation, reason: str, remedy: str = REMEDY) -> LiftUnsupported:
    """The error for an operation that has no function of `jax.lax`.

    Args:
      operation: The operation.
      reason: Why, in words.
      remedy: What to do instead.
    """
    return LiftUnsupported(refusal_text(operation, "lift does not evaluate", reason, remedy))
